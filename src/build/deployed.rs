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

/// Finds the targets of a tree with its own configuration. The objects are as the builds make them that change them; an
/// object of a build that is not run has a note of what may change it.
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

/// Finds the targets of a tree, with objects as builds make them, with a given configuration and identity.
pub(crate) fn deployed(
    repo: &LocalRepo,
    survey: &Survey,
    config: &Config,
    identity: &dyn Fn() -> Result<Identity>,
) -> Result<DeployedTree> {
    let (explored, targets) = written(survey, config, identity)?;
    let mut remaining = MOST_BUILDS;
    // No build is run that cannot change a target: nobody wants the output of a target or root for itself.
    let targets =
        targets.resolve_by_builds(&explored, config, identity, &|_| false, &[], |builders: &[&Builder]| {
            outputs(repo, survey, config, builders, &mut remaining)
        })?;
    Ok(DeployedTree { explored, targets })
}

/// The outputs of some builds, each a failure once no `remaining` ones may be run. A build that reaches something
/// outside of the tree is not run either, because nothing is fetched here, and fails with the reason.
fn outputs(
    repo: &LocalRepo,
    survey: &Survey,
    config: &Config,
    builders: &[&Builder],
    remaining: &mut usize,
) -> Vec<Output> {
    let all: Vec<&Builder> =
        builders.iter().filter(|builder| builder.reaches.is_empty()).take(*remaining).copied().collect();
    *remaining -= all.len();
    let mut outputs = build_all(survey, &all, config, repo).into_iter();
    // `outputs` has one for each builder that reaches nothing outside, in this order, until `remaining` is spent.
    let output = |builder: &&Builder| match builder.reaches.first() {
        Some(reached) => Err(Failure::new(format!("it reaches {}: {}", reached.name, reached.state))),
        None => {
            let spent = || Failure::new(format!("at most {MOST_BUILDS} builds are run"));
            outputs.next().ok_or_else(spent)?.map_err(Failures::joined)
        }
    };
    builders.iter().map(output).collect()
}
