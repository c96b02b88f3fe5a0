//! Fleet: each path of a `GitRepo` is a bundle, also where there is no `fleet.yaml`.

use std::collections::HashSet;

use super::scan::{Document, Word};
use super::unread::noted;
use super::{Build, Engine, Found, Here, Identity, Place, Targets, Unread, fleet, place};
use crate::message::failure::Result;
use crate::message::redact;
use crate::record::LoadRestrictor;
use crate::tree::{Tree, path};

/// Adds what Fleet deploys of the paths of each `GitRepo`, but for what a `fleet.yaml` in them says.
pub(super) fn find(tree: &dyn Tree, identity: &Identity, objects: &[Document], targets: &mut Targets) -> Result<()> {
    for found in objects.iter().filter(|one| one.object.kind == "GitRepo") {
        let unread = &mut targets.unread;
        let read = || {
            let [url, branch, revision] =
                ["repo", "branch", "revision"].map(|key| found.text(&found.value, &["spec", key]));
            Ok::<_, Unread>(Some((url?, revision?.or(branch?), found.texts(&found.value, &["spec", "paths"])?)))
        };
        // Without a URL it is a patch for one.
        let Some((Some((url, spot)), revision, paths)) = noted(read(), unread)? else {
            continue;
        };
        let revision = revision.map_or("", |(text, _)| text);
        let mut add = |spot: (usize, usize), place: Place| {
            let build = Build { load_restrictor: Some(LoadRestrictor::RootOnly), ..Build::default() };
            targets.targets.push(found.target(Engine::Fleet, spot, place, build));
        };
        let mut texts = [url, revision].into_iter().chain(paths.iter().map(|path| path.text.as_str()));
        if let Some(text) = texts.find(|text| text.contains("{{") || text.contains("${")) {
            add(spot, Place::Templated(format!("`{}` is filled in elsewhere", redact::url(text))));
            continue;
        }
        let Some(base) = identity.directory_of(url) else {
            add(spot, Place::External(format!("it is in {}", redact::url(url))));
            continue;
        };
        let mut paths: Vec<Word<'_>> = paths.iter().map(|path| (&*path.text, (path.line, path.column))).collect();
        if paths.is_empty() {
            paths.push(("", spot));
        }
        let mut seen = HashSet::new();
        for (written, spot) in paths {
            if written.contains(['*', '?', '[', '\\']) {
                add(spot, Place::Templated(format!("`{written}` is a pattern")));
                continue;
            }
            let there = place::of_path(tree, base, written, Engine::Fleet)?;
            let is_nothing = matches!(there.1, Found::Nothing(_));
            // What is not there makes no bundle, but was meant to.
            if seen.insert(there.clone()) && (is_nothing || is_bundle(tree, &there.0)?) {
                add(spot, Place::Here(Here::new(written, there, identity.revision(Some(revision)), None)));
            }
        }
    }
    Ok(())
}

/// Returns whether a directory is a bundle by itself: it has no `fleet.yaml`, but YAML that no such file below it covers.
fn is_bundle(tree: &dyn Tree, directory: &str) -> Result<bool> {
    for file in tree.below(directory)? {
        if !file.ends_with(".yaml") && !file.ends_with(".yml") {
            continue;
        }
        let mut above = path::parent(&file);
        loop {
            if fleet::file_in(tree, above)?.is_some() {
                break;
            }
            if above == directory {
                return Ok(true);
            }
            above = path::parent(above);
        }
    }
    Ok(false)
}
