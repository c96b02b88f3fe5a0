//! Fleet: each path of a `GitRepo` is a bundle, also where there is no `fleet.yaml`.

use std::collections::BTreeSet;

use super::argo::Pattern;
use super::flux::{Word, text, texts};
use super::scan::Document;
use super::{Build, Engine, Found, Here, Identity, Place, Targets, Text, fleet, place};
use crate::failure::Result;
use crate::record::LoadRestrictor;
use crate::redact;
use crate::tree::{Listing, path};

/// Adds what Fleet deploys of the paths of each `GitRepo`, but for what a `fleet.yaml` in them says.
pub(super) fn find(
    tree: &dyn Listing,
    identity: &Identity,
    objects: &[Document],
    targets: &mut Targets,
) -> Result<()> {
    for found in objects.iter().filter(|one| one.object.kind == "GitRepo") {
        let unread = &mut targets.unread;
        let fields = ["repo", "branch", "revision"]
            .map(|key| text(found, &found.value, &["spec", key], unread));
        let [Ok(url), Ok(branch), Ok(revision)] = fields else {
            continue;
        };
        let Some(paths) = texts(found, &["spec", "paths"], unread) else {
            continue;
        };
        // Without a URL it is a patch for one.
        let Some(url) = url else {
            continue;
        };
        let revision = revision.or(branch).map_or("", |(text, _)| text);
        let places = places(tree, identity, url, revision, &paths)?;
        targets
            .targets
            .extend(places.into_iter().map(|(spot, place)| {
                let build = Build {
                    load_restrictor: Some(LoadRestrictor::RootOnly),
                    ..Build::default()
                };
                found.target(Engine::Fleet, spot, place, build)
            }));
    }
    Ok(())
}

/// Returns what is deployed of the paths of a repository, and where that is said.
fn places(
    tree: &dyn Listing,
    identity: &Identity,
    (url, spot): Word<'_>,
    revision: &str,
    paths: &[Text],
) -> Result<Vec<((usize, usize), Place)>> {
    let mut texts = [url, revision]
        .into_iter()
        .chain(paths.iter().map(|path| path.text.as_str()));
    if let Some(text) = texts.find(|text| text.contains("{{") || text.contains("${")) {
        let why = format!("`{}` is filled in elsewhere", redact::url(text));
        return Ok(vec![(spot, Place::Templated(why))]);
    }
    let Some(base) = identity.directory_of(url) else {
        let why = format!("it is in {}", redact::url(url));
        return Ok(vec![(spot, Place::External(why))]);
    };
    let mut written: Vec<Word<'_>> = paths
        .iter()
        .map(|path| (path.text.as_str(), (path.line, path.column)))
        .collect();
    if written.is_empty() {
        written.push(("", spot));
    }
    let mut places = Vec::new();
    for (written, spot) in written {
        for directory in directories(tree, base, written)? {
            let (path, found) = place::of_path(tree, base, &directory, Engine::Fleet)?;
            // What is not there makes no bundle, but was meant to.
            if !matches!(found, Found::Nothing(_)) && !is_bundle(tree, &path)? {
                continue;
            }
            let here = Here {
                written: written.to_owned(),
                path,
                revision: identity.revision(Some(revision)),
                found,
                artifact: None,
            };
            places.push((spot, Place::Here(here)));
        }
    }
    Ok(places)
}

/// Returns the directories that a path means: itself, or all that match where it is a pattern.
fn directories(tree: &dyn Listing, base: &str, written: &str) -> Result<BTreeSet<String>> {
    let written = written.trim_matches('/');
    if !written.contains(['*', '?', '[']) {
        return Ok(BTreeSet::from([written.to_owned()]));
    }
    let mut all = BTreeSet::new();
    let Some(pattern) = Pattern::new(written) else {
        return Ok(all);
    };
    for file in tree.below(base)? {
        let Some(inside) = path::below(&file, base) else {
            continue;
        };
        let directories = path::and_above(path::parent(inside));
        all.extend(
            directories
                .filter(|one| pattern.matches(one))
                .map(str::to_owned),
        );
    }
    Ok(all)
}

/// Returns whether a directory is a bundle by itself: it has no `fleet.yaml`, but YAML that no such file below it covers.
fn is_bundle(tree: &dyn Listing, directory: &str) -> Result<bool> {
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
