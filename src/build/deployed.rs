//! The targets, with objects as builds make them.

use std::rc::Rc;

use super::builds::build_all;
use crate::config::Config;
use crate::git::LocalRepo;
use crate::graph::{Explored, Survey};
use crate::message::failure::{Failure, Failures, Result};
use crate::targets::built::{Builder, Output};
use crate::targets::{self, DeployedTree, Identity, UnresolvedTargets};

/// The most builds that are run for the objects that they make.
const MOST_BUILDS: usize = 1000;

/// Finds what is deployed, with objects as the builds that change them make them; where this program does not build, with
/// what may change them.
pub(crate) fn find(repo: &Rc<LocalRepo>, survey: &Survey) -> Result<DeployedTree, Failures> {
    let config = Config::of(&*survey.tree(), "")?;
    Ok(deployed(repo, survey, &config, &|| Identity::of(repo, &config))?)
}

/// Finds the targets as their objects are written, and walks the whole tree.
pub(crate) fn written(
    survey: &Survey,
    config: &Config,
    identity: &dyn Fn() -> Result<Identity>,
) -> Result<(Explored, UnresolvedTargets)> {
    let all = survey.tree().kustomizations()?;
    let targets = targets::find_in(survey, &[], &all, config, identity)?;
    Ok((survey.explore_all_inputs()?, targets))
}

/// Does the same as [`find`] with a configuration and an identity.
pub(crate) fn deployed(
    repo: &LocalRepo,
    survey: &Survey,
    config: &Config,
    identity: &dyn Fn() -> Result<Identity>,
) -> Result<DeployedTree> {
    let (explored, targets) = written(survey, config, identity)?;
    let mut left = MOST_BUILDS;
    let targets = targets.built(&explored, config, identity, &|_| false, &[], |builders: &[&Builder]| {
        outputs(repo, survey, config, builders, &mut left)
    })?;
    Ok(DeployedTree { explored, targets })
}

/// Runs the builds that need only the tree, as long as some are `left`.
fn outputs(repo: &LocalRepo, survey: &Survey, config: &Config, builders: &[&Builder], left: &mut usize) -> Vec<Output> {
    let all: Vec<&Builder> =
        builders.iter().filter(|builder| builder.reaches.is_empty()).take(*left).copied().collect();
    *left -= all.len();
    let mut outputs = build_all(survey, &all, config, repo).into_iter();
    let output = |builder: &&Builder| match builder.reaches.first() {
        Some(reached) => Err(Failure::new(format!("it reaches {}: {}", reached.name, reached.state))),
        None => {
            let spent = || Failure::new(format!("at most {MOST_BUILDS} builds are run"));
            outputs.next().ok_or_else(spent)?.map_err(Failures::joined)
        }
    };
    builders.iter().map(output).collect()
}
