//! What the result would do to what is deployed: a new directory or file is never neutral to an engine that looks for
//! them.

use std::collections::{BTreeMap, BTreeSet};

use super::Plan;
use crate::graph::{Graph, Origin, RootId, Target as Leads};
use crate::kustomization::FILE_NAMES;
use crate::message::failure::{Failure, Failures, Location, Result};
use crate::targets::{Engine, Found, Here, Hidden, Object, Target, Targets, exclusion};
use crate::tree::{self, Listing, path};

/// Refuses a result that changes what is deployed besides what was localized: a directory of which an ApplicationSet
/// makes an application, a file that Flux builds although nothing names it, a file that is built and that Flux leaves
/// out of its artifact. `tree` is the repository, with `targets` in it, and `top` where the plan has it.
pub(crate) fn refuse_harm(plan: &Plan, targets: &Targets, tree: &dyn Listing, top: &str) -> Result<(), Failures> {
    let written = written(plan, top);
    let mut failures = applications(targets, tree, &written)?;
    failures.extend(scanned(targets, tree, &written)?);
    if plan.new_dir.is_none() {
        failures.extend(left_out(targets, tree, &written, &plan.after)?);
    }
    if failures.is_empty() { Ok(()) } else { Err(Failures(failures)) }
}

/// Returns the files of the repository that are written, from its top.
fn written(plan: &Plan, top: &str) -> BTreeSet<String> {
    let written = plan.changes.iter().filter(|(_, to)| to.is_some());
    written.filter_map(|(path, _)| Some(path::below(path, top)?.to_owned())).collect()
}

fn failure(object: &Object, message: String, hint: String) -> Failure {
    Failure::new(message)
        .at(Location { file: object.file.clone(), line: object.line, ..Location::default() })
        .hint(hint)
}

/// Finds the directories of which an ApplicationSet would make applications.
fn applications(targets: &Targets, tree: &dyn Listing, written: &BTreeSet<String>) -> Result<Vec<Failure>> {
    let mut new = Vec::new();
    for directory in path::directories(written.iter().map(String::as_str)) {
        if tree.entry(directory)? != Some(tree::Entry::Directory) {
            new.push(directory);
        }
    }
    let mut failures = Vec::new();
    for set in targets.sets.iter().filter(|set| set.revision.is_this) {
        let inside = new.iter().filter_map(|place| path::below(place, &set.base));
        let takes = set.matcher();
        let taken: Vec<&str> = inside.filter(|place| takes(place)).collect();
        let Some(first) = taken.first() else {
            continue;
        };
        let more = match taken.len() {
            1 => String::new(),
            count => format!(", and of {} more directories", count - 1),
        };
        let message = format!("{} would make an application of `{first}`{more}, which localizing adds", set.object);
        let exclude: BTreeSet<String> = taken.iter().map(|place| exclusion(place)).collect();
        let exclude: Vec<String> = exclude.iter().map(|path| format!("{{path: \"{path}\", exclude: true}}")).collect();
        let hint = format!("exclude it in `git.directories` there: {}", exclude.join(", "));
        failures.push(failure(&set.object, message, hint));
    }
    Ok(failures)
}

/// Finds the files that Flux would build because it makes the kustomization of a directory.
fn scanned(targets: &Targets, tree: &dyn Listing, written: &BTreeSet<String>) -> Result<Vec<Failure>> {
    let mut failures = Vec::new();
    let mut source_ignore = None;
    for (target, here) in targets.here() {
        let (Engine::Flux, Found::Directory(directory)) = (target.engine, &here.found) else {
            continue;
        };
        let hidden = Hidden::of(tree, target, here, &mut source_ignore)?;
        for file in written {
            let is_read = file.ends_with(".yaml") || file.ends_with(".yml") || FILE_NAMES.contains(&path::name(file));
            // What was there before was read before.
            if !is_read
                || path::below(file, directory).is_none()
                || hidden.rule(file).is_some()
                || tree.entry(file)?.is_some()
            {
                continue;
            }
            let mut above = path::parent(file);
            let mut is_inside = false;
            while above != directory && !is_inside {
                is_inside = tree::kustomization_in(tree, above)?.is_some();
                above = path::parent(above);
            }
            if !is_inside {
                failures.push(scan(target, here, directory, file));
                break;
            }
        }
    }
    Ok(failures)
}

fn scan(target: &Target, here: &Here, directory: &str, file: &str) -> Failure {
    let shown = if directory.is_empty() { "." } else { directory };
    let message = format!(
        "{} makes the kustomization of `{shown}`, and would build `{file}`, which localizing adds",
        target.by()
    );
    let ignored = here.artifact.is_some();
    let hint = if ignored {
        format!(
            "add a kustomization to `{shown}` that names what is to be built; or leave the file out: a line `/{file}` in `.sourceignore`"
        )
    } else {
        format!("add a kustomization to `{shown}` that names what is to be built")
    };
    failure(&target.object, message, hint)
}

/// Finds the files that are built and that Flux leaves out of its artifact.
fn left_out(targets: &Targets, tree: &dyn Listing, written: &BTreeSet<String>, after: &Graph) -> Result<Vec<Failure>> {
    let mut failures = Vec::new();
    let mut source_ignore = None;
    let directories: BTreeMap<&str, RootId> =
        after.roots.iter().enumerate().map(|(id, root)| (root.directory.as_str(), id)).collect();
    for (target, here) in targets.here() {
        if target.artifact(here).is_none() {
            continue;
        }
        let hidden = Hidden::of(tree, target, here, &mut source_ignore)?;
        let starts = target.roots(here).filter_map(|root| directories.get(root));
        let mut reached = BTreeSet::new();
        for root in after.insisted(starts.copied()) {
            let root = &after.roots[root];
            let files = root.edges.iter().filter_map(|edge| match edge.target {
                Leads::File(file) => Some(file),
                _ => None,
            });
            reached.extend(files.chain([root.file]).filter_map(|file| match &after.files[file].origin {
                Origin::Tree { path, .. } if written.contains(path) => Some(path.as_str()),
                _ => None,
            }));
        }
        let out = reached.into_iter().find_map(|file| Some((file, hidden.rule(file)?)));
        if let Some((file, rule)) = out
            // What is left out already is another matter.
            && tree.entry(file)?.is_none()
        {
            let message = format!(
                "{} would build `{file}`, which is not in its artifact: `{}` in {} leaves it out",
                target.by(),
                rule.pattern,
                rule.place
            );
            let hint = rule.help("localized files", "localized-files/");
            failures.push(failure(&target.object, message, hint));
        }
    }
    Ok(failures)
}
