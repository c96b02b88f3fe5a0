//! Fleet: each path of a `GitRepo` is a bundle, also where there is no `fleet.yaml`.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::argo::Pattern;
use super::flux::{Word, text, texts};
use super::scan::Document;
use super::{Build, Engine, Found, Here, Identity, Place, Targets, Text, fleet, place};
use crate::message::failure::Result;
use crate::message::redact;
use crate::record::LoadRestrictor;
use crate::tree::{Listing, path};

/// Adds what Fleet deploys of the paths of each `GitRepo`, but for what a `fleet.yaml` in them says.
pub(super) fn find(tree: &dyn Listing, identity: &Identity, objects: &[Document], targets: &mut Targets) -> Result<()> {
    let mut paths_of = Paths { tree, directories: HashMap::new(), bundles: HashMap::new() };
    for found in objects.iter().filter(|one| one.object.kind == "GitRepo") {
        let unread = &mut targets.unread;
        let fields = ["repo", "branch", "revision"].map(|key| text(found, &found.value, &["spec", key], unread));
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
        let broken = |pattern: &str, line: usize| {
            unread.push(found.wrong(line, &format!("`{pattern}` in `spec.paths` is a broken pattern")));
        };
        let places = places(&mut paths_of, identity, url, revision, &paths, broken)?;
        targets.targets.extend(places.into_iter().map(|(spot, place)| {
            let build = Build { load_restrictor: Some(LoadRestrictor::RootOnly), ..Build::default() };
            found.target(Engine::Fleet, spot, place, build)
        }));
    }
    Ok(())
}

/// Returns what is deployed of the paths of a repository, and where that is said; tells which are broken patterns, for
/// which Fleet stops.
fn places(
    paths_of: &mut Paths<'_>,
    identity: &Identity,
    (url, spot): Word<'_>,
    revision: &str,
    paths: &[Text],
    mut broken: impl FnMut(&str, usize),
) -> Result<Vec<((usize, usize), Place)>> {
    let mut texts = [url, revision].into_iter().chain(paths.iter().map(|path| path.text.as_str()));
    if let Some(text) = texts.find(|text| text.contains("{{") || text.contains("${")) {
        let why = format!("`{}` is filled in elsewhere", redact::url(text));
        return Ok(vec![(spot, Place::Templated(why))]);
    }
    let Some(base) = identity.directory_of(url) else {
        let why = format!("it is in {}", redact::url(url));
        return Ok(vec![(spot, Place::External(why))]);
    };
    let mut written: Vec<Word<'_>> = paths.iter().map(|path| (path.text.as_str(), (path.line, path.column))).collect();
    if written.is_empty() {
        written.push(("", spot));
    }
    let mut places = Vec::new();
    let mut seen = HashSet::new();
    for (written, spot) in written {
        let Some(meant) = paths_of.meant(base, written)? else {
            broken(written, spot.0);
            continue;
        };
        for directory in meant {
            let (path, found) = place::of_path(paths_of.tree, base, &directory, Engine::Fleet)?;
            let is_there = !matches!(found, Found::Nothing(_));
            // What leads out of the repository has no path.
            let is_out = !is_there && path.is_empty();
            let named = if is_out { directory } else { path.clone() };
            if !seen.insert(named) {
                continue;
            }
            // What is not there makes no bundle, but was meant to.
            if is_there && !paths_of.is_bundle(&path)? {
                continue;
            }
            let here = Here::new(written, (path, found), identity.revision(Some(revision)), None);
            places.push((spot, Place::Here(here)));
        }
    }
    Ok(places)
}

/// What paths lead to: each is looked at once, however many objects name it.
struct Paths<'a> {
    tree: &'a dyn Listing,
    /// The directories below one, which holds the repository.
    directories: HashMap<String, Vec<String>>,
    /// Whether a directory is a bundle by itself.
    bundles: HashMap<String, bool>,
}

impl Paths<'_> {
    /// Returns the directories that a path means: itself, or all that match where it is a pattern; none where that
    /// is broken.
    fn meant(&mut self, base: &str, written: &str) -> Result<Option<Vec<String>>> {
        let Some(written) = path::resolve("", written) else {
            return Ok(Some(vec![written.to_owned()]));
        };
        if !written.contains(['*', '?', '[', '\\']) {
            return Ok(Some(vec![written]));
        }
        let Some(pattern) = Pattern::new(&written) else {
            return Ok(None);
        };
        let all = match self.directories.entry(base.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(directories(self.tree, base)?),
        };
        let matching = all.iter().filter(|one| pattern.matches(one));
        Ok(Some(matching.cloned().collect()))
    }

    fn is_bundle(&mut self, directory: &str) -> Result<bool> {
        if let Some(known) = self.bundles.get(directory) {
            return Ok(*known);
        }
        let is_one = is_bundle(self.tree, directory)?;
        self.bundles.insert(directory.to_owned(), is_one);
        Ok(is_one)
    }
}

/// Returns all directories below one, as they are named from there, sorted.
fn directories(tree: &dyn Listing, base: &str) -> Result<Vec<String>> {
    let files = tree.below(base)?;
    let inside = files.iter().filter_map(|file| path::below(file, base));
    let directories = path::directories(inside).into_iter();
    Ok(directories.map(str::to_owned).collect())
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
