//! Fleet: each path of a `GitRepo` is a bundle, also where there is no `fleet.yaml`.

use std::collections::HashSet;

use super::argo::matcher;
use super::scan::Document;
use super::{Engine, FILE, Found, Identity, Place, Targets, Unread, Why, fleet, place, unfilled};
use crate::kustomization::Value;
use crate::message::failure::Result;
use crate::message::redact;
use crate::tree::{Tree, path};

/// Adds what Fleet deploys of the paths of each `GitRepo`, but for what a `fleet.yaml` in them says.
pub(super) fn find(tree: &dyn Tree, identity: &Identity, objects: &[Document], targets: &mut Targets) -> Result<()> {
    for found in objects.iter().filter(|one| one.object.kind == "GitRepo") {
        let spec = |key: &str| found.value.at(&["spec", key]);
        // Without a URL it is a patch for one.
        let Some(url) = spec("repo") else { continue };
        let repository = url.text().unwrap_or_default();
        let revision = spec("revision").or(spec("branch")).and_then(Value::text).unwrap_or_default();
        let paths = spec("paths").and_then(Value::list).unwrap_or_default();
        let paths = paths.iter().map(|path| (path.text().unwrap_or_default(), found.spot(Some(path))));
        let mut paths: Vec<(&str, (usize, usize))> = paths.collect();
        if paths.is_empty() {
            paths.push(("", found.spot(Some(url))));
        }
        let (mut seen, mut written_before) = (HashSet::new(), HashSet::new());
        for (written, spot) in expanded(tree, identity.directory_of(repository), paths, targets)? {
            let written = &*written;
            if !written_before.insert(written.to_owned()) {
                continue;
            }
            if !targets.may_do(FILE) {
                targets.unread.push(Unread { why: Why::Limit, ..found.wrong(spot.0, "has too many paths") });
                break;
            }
            let place = if let Some(why) = unfilled([repository, revision, written]) {
                Place::Templated(why)
            } else if let Some(base) = identity.directory_of(repository) {
                if is_pattern(written) {
                    Place::Templated(format!("`{written}` is a pattern"))
                } else {
                    let here = place::here(
                        tree,
                        Engine::Fleet,
                        base,
                        written,
                        identity.revision(repository, Some(revision), false),
                        None,
                    )?;
                    // What is not there makes no bundle, but was meant to.
                    let is_one = matches!(here.found, Found::Nothing(_)) || is_bundle(tree, &here.path)?;
                    if !is_one || !seen.insert((here.path.clone(), here.found.clone())) {
                        continue;
                    }
                    Place::Here(here)
                }
            } else {
                Place::External(format!("it is in {}", redact::url(repository)))
            };
            let build = fleet::build(tree, &place, None)?;
            targets.targets.push(found.target(tree, Engine::Fleet, spot, place, build)?);
        }
    }
    Ok(())
}

fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '[', '\\'])
}

/// Returns paths with the directories that match in the place of each pattern, as Go's `filepath.Glob` finds them below the
/// top of this repository. A pattern of another one, that is broken, or that is too much to match, stays.
fn expanded<P: Copy>(
    tree: &dyn Tree,
    top: Option<&str>,
    paths: Vec<(&str, P)>,
    targets: &mut Targets,
) -> Result<Vec<(String, P)>> {
    let mut all = Vec::new();
    let is_any = paths.iter().any(|(written, _)| is_pattern(written));
    let files = top.filter(|_| is_any).map_or(Ok(Vec::new()), |top| tree.below(top))?;
    let inside = path::directories(files.iter().filter_map(|file| path::below(file, top?)));
    for (written, spot) in paths {
        let pattern = Some(written).filter(|written| is_pattern(written) && unfilled([*written]).is_none());
        let pattern = pattern.and_then(|written| matcher(written.trim_start_matches("./").trim_matches('/')));
        match pattern.filter(|_| top.is_some() && targets.may_do(inside.len())) {
            Some(pattern) => {
                let matching = inside.iter().filter(|inside| pattern.is_match(inside));
                all.extend(matching.map(|inside| ((*inside).to_owned(), spot)));
            }
            None => all.push((written.to_owned(), spot)),
        }
    }
    Ok(all)
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
