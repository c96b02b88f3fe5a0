//! What is deployed, with objects as builds make them.

use std::rc::Rc;

use super::builds::build_all;
use crate::config::Config;
use crate::git::LocalRepo;
use crate::graph::{Explored, Survey};
use crate::message::failure::{Failure, Failures, Result};
use crate::targets::built::{Builder, Output};
use crate::targets::generated::Generated;
use crate::targets::{self, Identity, Targets, Unsettled};

/// How many builds are run for what they make of objects.
const MOST_BUILDS: usize = 1000;

/// Finds what is deployed, with objects as the builds that change them make them; where this program does not build, with
/// what may change them.
pub(crate) fn find(here: &Rc<LocalRepo>, survey: &Survey) -> Result<(Explored, Targets), Failures> {
    Ok(deployed(here, survey, &Config::of(&*survey.tree(), "")?)?)
}

/// Finds what is deployed as its objects are written, and walks all of the tree.
pub(crate) fn written(here: &Rc<LocalRepo>, survey: &Survey, config: &Config) -> Result<(Explored, Unsettled)> {
    let all = survey.tree().kustomizations()?;
    let found = targets::find_in(survey, &[], &all, config, &|| Identity::of(here, config))?;
    Ok((survey.read_all()?, found))
}

/// Does what [`find`] does for both sides of a change, with one configuration.
pub(crate) fn both(
    here: &Rc<LocalRepo>,
    [old, new]: [&Survey; 2],
    config: &Config,
) -> Result<[(Explored, Targets); 2]> {
    Ok([deployed(here, old, config)?, deployed(here, new, config)?])
}

fn deployed(here: &Rc<LocalRepo>, survey: &Survey, config: &Config) -> Result<(Explored, Targets)> {
    let (explored, found) = written(here, survey, config)?;
    let identity = || Identity::of(here, config);
    let mut left = MOST_BUILDS;
    let run = |builders: &[&Builder]| outputs(here, survey, config, builders, &mut left);
    let found = found.built(&explored, config, &identity, &|_| false, &[], run)?;
    Ok((explored, found))
}

/// Builds what needs nothing but the tree, as long as some are `left`.
fn outputs(here: &LocalRepo, survey: &Survey, config: &Config, builders: &[&Builder], left: &mut usize) -> Vec<Output> {
    let all: Vec<&Generated> =
        builders.iter().filter(|one| one.reaches.is_empty()).map(|one| &one.made).take(*left).collect();
    *left -= all.len();
    let mut outputs = build_all(survey, &all, config, here).into_iter();
    let output = |builder: &&Builder| match builder.reaches.first() {
        Some(reached) => Err(Failure::new(format!("it reaches {}: {}", reached.name, reached.state))),
        None => match outputs.next() {
            Some(output) => output.map_err(Failures::joined),
            None => Err(Failure::new(format!("at most {MOST_BUILDS} builds are run"))),
        },
    };
    builders.iter().map(output).collect()
}
