//! `targets`: what Flux, Argo CD and Fleet deploy from the repository.

mod object_builds;

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use super::check::{self, What};
use crate::config::Config;
use crate::git::LocalRepo;
use crate::message::failure::{Failures, Result};
use crate::reference_tree::Survey;
use crate::targets::{self, Identity, Object, Revision, Targets};
use crate::tree::Tree;
use crate::workspace::repository_offline;
use {
    crate::build,
    crate::message::failure::{Failure, nearest, shown},
    crate::os::interrupt::{Scratch, unusable},
    crate::targets::built::{Builder, find_built},
    crate::targets::generated::generated,
    crate::targets::{Found, Place, SeenTree, Target},
    object_builds::{ObjectBuilds, export},
};

/// What to show.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The files to look at.
    pub what: What,
}

/// Finds what is deployed, and what the builds of it reach that the tree does not hold.
pub(crate) fn targets(request: &Request) -> Result<Targets, Failures> {
    let here = repository_offline()?;
    let opened = check::open(&here, &request.what)?;
    let (survey, mut found) = find(&here, &opened.tree)?;
    survey.reaches(&mut found, |_| true)?;
    // What is deployed from a localized branch is what that holds, where it is here.
    let identity = Identity::of(&here, &Config::of(&*opened.tree, "")?)?;
    let places = found.targets.iter().filter_map(|target| match &target.place {
        Place::Here(there) => Some(there.revision.clone()),
        Place::External(_) | Place::Templated(_) => None,
    });
    let revisions: HashSet<Revision> = places.collect();
    for revision in revisions.iter().filter(|revision| revision.is_localized()) {
        if let Some(tip) = identity.tip(revision)? {
            Survey::of(Rc::new(tip))?.reaches(&mut found, |other| other == revision)?;
        }
    }
    Ok(found)
}

/// Finds what is deployed, with objects as the builds that change them make them.
fn find(here: &Rc<LocalRepo>, tree: &Rc<dyn Tree>) -> Result<(Survey, Targets), Failures> {
    let config = Config::of(&**tree, "")?;
    let found = targets::find(&**tree, &config, || Identity::of(here, &config))?;
    let survey = Survey::of(tree.clone())?;
    let found = as_built(here, &survey, &config, found)?;
    Ok((survey, found))
}

/// Returns what is deployed with objects as the builds that change them make them; where this program does not build, with
/// what may change them.
pub(super) fn as_built(here: &Rc<LocalRepo>, survey: &Survey, config: &Config, mut found: Targets) -> Result<Targets> {
    survey.settle(&mut found);
    let tree = &**survey.tree();
    let mut builds = ObjectBuilds::default();
    let run = |builders: &[&Builder]| builds.run(survey, builders);
    let find = |before: &Targets, built: &[_]| find_built(tree, config, || Identity::of(here, config), before, built);
    survey.built(found, config.load_restrictor, run, find)
}

/// Returns the value of `argocd.argoproj.io/manifest-generate-paths` for each application of Argo CD, by its object.
pub(crate) fn generate_paths(request: &Request) -> Result<BTreeMap<Object, String>, Failures> {
    let here = repository_offline()?;
    let opened = check::open(&here, &request.what)?;
    let (_, found) = find(&here, &opened.tree)?;
    Ok(targets::generate_paths(&opened.tree, &found)?)
}

/// Builds a target as its engine does, but for what it does with the output: substitutes variables, decrypts, applies.
pub(crate) fn build(request: &Request, name: &str) -> Result<Vec<u8>, Failures> {
    let here = repository_offline()?;
    let opened = check::open(&here, &request.what)?;
    let tree = &*opened.tree;
    let (_, found) = find(&here, &opened.tree)?;
    let target = named(&found, name)?;
    let not_built = |why: &str| Failure::new(format!("{} cannot be built here: {why}", target.by()));
    let there = match &target.place {
        Place::Here(there) => there,
        Place::External(why) | Place::Templated(why) => return Err(not_built(why).into()),
    };
    let seen = SeenTree::new(tree, &there.hidden);
    let generated = generated(&seen, target, there)?.ok_or_else(|| match &there.found {
        Found::Nothing(why) => not_built(why),
        found => not_built(&format!("it is a {}, and no kustomization", found.id())),
    })?;
    let scratch = Scratch::new().map_err(|error| unusable(&error))?;
    let put = |error: std::io::Error| unusable(&error).context("cannot write what is built");
    export(tree, &there.hidden, scratch.path())?;
    let directory = scratch.path().join(&generated.directory);
    std::fs::create_dir_all(&directory).map_err(put)?;
    std::fs::write(directory.join(generated.file_name), &generated.text).map_err(put)?;
    Ok(build::build_one(scratch.path(), &directory, &generated.arguments)?)
}

/// Returns the target that a name means: that of its object, with or without its namespace, else its directory, which
/// also tells those of one object apart. What is not here cannot be built, and is meant only where nothing else is.
fn named<'a>(found: &'a Targets, name: &str) -> Result<&'a Target> {
    let of_object = |target: &Target| {
        let object = &target.object;
        object.name == name || object.full_name() == name || target.by() == name
    };
    let of_directory = |target: &&Target| directory(target) == Some(name);
    let mut meant: Vec<&Target> = found.targets.iter().filter(|one| of_object(one)).collect();
    if meant.iter().any(|one| directory(one).is_some()) {
        meant.retain(|one| directory(one).is_some());
    }
    if meant.len() > 1 && meant.iter().any(of_directory) {
        meant.retain(of_directory);
    }
    if meant.is_empty() {
        meant = found.targets.iter().filter(of_directory).collect();
    }
    match meant.as_slice() {
        [target] => Ok(target),
        [] => {
            let failure = Failure::new(format!("no target has the name `{}`", shown(name)));
            let known = found.targets.iter().map(|target| &target.object);
            let known: Vec<String> = known.flat_map(|object| [object.name.clone(), object.full_name()]).collect();
            Err(match nearest(name, known.iter().map(String::as_str)) {
                Some(meant) => failure.hint(format!("did you mean `{}`?", shown(meant))),
                None => failure.hint("list them: git kustomize-localize targets"),
            })
        }
        [one, other, ..] if one.by() == other.by() => {
            let [one_path, other_path] = [one, other].map(|target| shown(directory(target).unwrap_or_default()));
            let message = format!("{} deploys `{one_path}` and `{other_path}`", one.by());
            Err(Failure::new(message).hint("name one of the directories"))
        }
        [one, other, ..] => {
            Err(Failure::new(format!("`{}` is the name of {} and of {}", shown(name), one.by(), other.by()))
                .hint("name one of them in full, as these are"))
        }
    }
}

/// Returns the name of the directory that a target deploys, where it is here.
fn directory(target: &Target) -> Option<&str> {
    match &target.place {
        Place::Here(here) if here.path.is_empty() => Some("."),
        Place::Here(here) => Some(&here.path),
        Place::External(_) | Place::Templated(_) => None,
    }
}
