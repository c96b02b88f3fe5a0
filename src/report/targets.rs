//! The targets: as text, as JSON.

mod json;

pub(crate) use json::json;

use super::{counted, visible};
use crate::config::FILE_NAME;
use crate::targets::{Found, Here, Object, Place, Revision, Target, Targets};
use std::collections::BTreeMap;

/// Returns the targets as text: what names each, and below it where it is. The last line counts them.
pub(crate) fn text(targets: &Targets) -> String {
    let mut out = String::new();
    for target in &targets.targets {
        let mut line = format!("{}\n  {}", name(target), place(&target.place));
        line.push_str(&reaches(target));
        if let Some(by) = &target.object.built_by {
            line.push_str(&format!("\n  built by {by}"));
        }
        if let Some(by) = &target.changed_by {
            line.push_str(&format!("\n  may be changed by {}", by.name));
            if let Some(why) = &by.not_built {
                line.push_str(&format!("\n    not built: {why}"));
            }
        }
        for line in line.split('\n') {
            out.push_str(&visible(line));
            out.push('\n');
        }
    }
    for unread in &targets.unread {
        let line = match unread.line {
            0 => String::new(),
            line => format!(":{line}"),
        };
        let line = format!("{}{line}\n  not read: {}", unread.file, unread.message);
        for line in line.split('\n') {
            out.push_str(&visible(line));
            out.push('\n');
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    let mut places = targets.targets.iter().map(|target| &target.place);
    if !targets.targets.is_empty() && places.all(|place| matches!(place, Place::External(_))) {
        out.push_str(&format!(
            "note: nothing is deployed from here: if the cluster knows this repository by another URL, add that to `repository` in {FILE_NAME}; or list under `targets` there what is deployed\n"
        ));
    }
    out.push_str(&summary(targets));
    out.push('\n');
    if let Some(line) = deployed(targets) {
        out.push_str(&visible(&line));
        out.push('\n');
    }
    out
}

/// Returns what is deployed from a localized branch; none where nothing is localized, and nothing has to be.
fn deployed(targets: &Targets) -> Option<String> {
    let mut localized = targets.here().filter(|(_, here)| here.revision.is_localized());
    let first = localized.next().map(|(_, here)| &here.revision);
    let is_remote = |target: &Target| target.reaches.as_ref().is_some_and(|reached| !reached.is_empty());
    if first.is_none() && !targets.targets.iter().any(is_remote) {
        return None;
    }
    let is_one = first.is_some() && localized.all(|(_, here)| Some(&here.revision) == first);
    let name = first.and_then(|first| first.name.as_deref()).filter(|_| is_one);
    targets.deployed_from(name.unwrap_or("a localized branch"), Revision::is_localized)
}

/// Returns the annotation of each application.
pub(crate) fn generate_paths(paths: &BTreeMap<Object, String>) -> String {
    let lines = paths.iter().map(|(object, value)| {
        format!(
            "{}:{}: {} {}{}\n  argocd.argoproj.io/manifest-generate-paths: {}\n",
            visible(&object.file),
            object.line,
            visible(&object.kind),
            visible(&object.full_name()),
            built_by(object),
            visible(value)
        )
    });
    lines.collect()
}

fn built_by(object: &Object) -> String {
    match &object.built_by {
        Some(by) => format!(", built by {}", visible(by)),
        None => String::new(),
    }
}

/// Returns whether the build of a target needs only what is in the tree, and what else it reaches.
fn reaches(target: &Target) -> String {
    match target.reaches.as_deref() {
        None => String::new(),
        Some([]) => ", hermetic".to_owned(),
        Some(reached) => reached.iter().map(|one| format!("\n    reaches {}: {}", one.name, one.state)).collect(),
    }
}

fn name(target: &Target) -> String {
    let object = &target.object;
    let kind = match object.kind.as_str() {
        // The file says it.
        "fleet.yaml" | "target" => target.engine.name().to_owned(),
        kind => format!("{} {kind} {}", target.engine.name(), object.full_name()),
    };
    format!("{}:{}: {kind}", object.file, object.line)
}

fn place(place: &Place) -> String {
    match place {
        Place::Here(here) => here_text(here),
        Place::External(why) => format!("external: {why}"),
        Place::Templated(why) => format!("templated: {why}"),
    }
}

fn here_text(here: &Here) -> String {
    let path = match here.path.as_str() {
        "" => ".",
        path => path,
    };
    let revision = match &here.revision {
        Revision { name: None, is_this: true } => String::new(),
        Revision { name: None, is_this: false } => " at one of several revisions".to_owned(),
        Revision { name: Some(name), .. } => format!(" at {name}"),
    };
    let found = match &here.found {
        _ if !here.revision.is_this && here.revision.name.is_some() => "another revision, not looked at".to_owned(),
        Found::Kustomization(_) => "a kustomization".to_owned(),
        Found::Directory(_) => "a directory without a kustomization".to_owned(),
        Found::Chart(_) => "a chart".to_owned(),
        Found::Plugin(_) => "for a plugin".to_owned(),
        Found::Submodule(path) => format!("in the submodule {path}"),
        Found::Nothing(why) => format!("nothing: {why}"),
    };
    format!("{path}{revision}: {found}")
}

/// Returns the counts: nothing that was found is missing in them.
fn summary(targets: &Targets) -> String {
    let count = |is: fn(&Place) -> bool| {
        let places = targets.targets.iter().map(|target| &target.place);
        places.filter(|place| is(place)).count()
    };
    let all = targets.targets.len();
    let mut line = counted(all, "target");
    if all > 0 {
        line.push_str(&format!(
            ": {} here, {} external, {} templated",
            count(|place| matches!(place, Place::Here(_))),
            count(|place| matches!(place, Place::External(_))),
            count(|place| matches!(place, Place::Templated(_))),
        ));
    }
    if !targets.unread.is_empty() {
        line.push_str(&format!("; {} not read", targets.unread.len()));
    }
    line
}

#[cfg(test)]
mod tests;
