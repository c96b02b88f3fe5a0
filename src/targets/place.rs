//! What the tree holds where a target says.

use std::rc::Rc;

use serde_json::Value as Json;

use super::{
    Artifact, Build, Component, EngineName, Found, Here, Identity, Object, Place, Resource, Revision, Target, Targets,
};
use crate::config::Config;
use crate::message::failure::Result;
use crate::reference::is_url;
use crate::tree::{self, Entry, Resolved, Tree, path};

/// Returns what an engine finds at a path in what it has of this repository.
pub(super) fn here(
    tree: &dyn Tree,
    engine: EngineName,
    base: &str,
    written: &str,
    revision: Revision,
    artifact: Option<Rc<Artifact>>,
) -> Result<Here> {
    let place = engine.resolve(base, written);
    let found = match &place {
        None if !base.is_empty() => Found::Nothing(format!("it is outside of `{base}`")),
        place => look(tree, engine, place.as_deref())?,
    };
    let path = place.unwrap_or_else(|| base.to_owned());
    let mut here = Here { written: written.to_owned(), path, revision, found, artifact, scanned: Vec::new() };
    if let (true, Found::Directory(directory)) = (engine.generates(), &here.found) {
        here.scanned = scan(tree, &here, directory)?;
    }
    Ok(here)
}

/// Takes what is there for a chart, which may be packed.
pub(super) fn chart(tree: &dyn Tree, mut here: Here) -> Result<Here> {
    here.scanned.clear();
    here.found = match here.found {
        Found::Kustomization(at) | Found::Directory(at) => Found::Chart(at),
        Found::Nothing(why) => match tree::resolve(tree, &here.path)? {
            Resolved::File { path, .. } => Found::Chart(path),
            _ => Found::Nothing(why),
        },
        found => found,
    };
    Ok(here)
}

/// Returns what is at the path of a component that an object adds to a directory; none for a URL, and where only the
/// engine knows what is meant: a pattern, a variable.
pub(super) fn component(tree: &dyn Tree, engine: EngineName, directory: &str, text: &str) -> Result<Option<Found>> {
    if is_url(text) || text.contains(['*', '?', '[', '\\', '{', '$']) {
        return Ok(None);
    }
    let place = path::resolve(directory, text).filter(|_| !path::is_absolute(text));
    // A chart is none.
    let engine = if engine.packs() { engine } else { EngineName::Kustomize };
    look(tree, engine, place.as_deref()).map(Some)
}

/// Returns whether an engine leaves out a component that may be missing. What is no component, as a file, is not missing.
/// Argo CD takes whatever is written for a path.
pub(super) fn is_left_out(tree: &dyn Tree, engine: EngineName, directory: &str, one: &Component) -> Result<bool> {
    let text = &one.text.text;
    let is_read = match &one.found {
        Some(found) => matches!(found, Found::Nothing(_)),
        None => !engine.generates() && !text.contains(['{', '$']),
    };
    let place = path::resolve(directory, text).filter(|_| is_read);
    let Some(place) = place else { return Ok(is_read) };
    let is_link = engine.packs() && link_to(tree, &place)?.is_some();
    let there = tree::resolve(tree, &place)?;
    Ok(is_link || !matches!(there, Resolved::File { .. } | Resolved::Directory { .. } | Resolved::Submodule { .. }))
}

/// Returns what an engine finds at a place of the tree; none for one that is not in it.
fn look(tree: &dyn Tree, engine: EngineName, place: Option<&str>) -> Result<Found> {
    let nothing = |why: String| Ok(Found::Nothing(why));
    let Some(place) = place else { return nothing("it is outside of the repository".to_owned()) };
    let link = if engine.packs() { link_to(tree, place)? } else { None };
    if let Some(link) = link {
        return nothing(format!("`{link}` is a link, which Flux leaves out of its artifacts"));
    }
    let directory = match tree::resolve(tree, place)? {
        Resolved::Directory { path } => path,
        Resolved::Submodule { path } => return Ok(Found::Submodule(path)),
        Resolved::Missing { path } => return nothing(format!("there is no `{path}`")),
        Resolved::File { .. } => return nothing(format!("`{place}` is a file")),
        Resolved::Leaves { link, .. } => return nothing(format!("`{link}` leads out of the repository")),
        Resolved::Loop { link } => return nothing(format!("`{link}` leads to itself")),
    };
    engine.found(tree, directory)
}

/// Returns the link on the way to a path, or at it.
fn link_to<'a>(tree: &dyn Tree, place: &'a str) -> Result<Option<&'a str>> {
    let way: Vec<&str> = path::and_above(place).collect();
    for place in way.into_iter().rev() {
        if tree.entry(place)? == Some(Entry::Link) {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// Returns what Flux takes for resources of a directory without a kustomization: directories with one, which it does not
/// enter, and YAML files at any depth.
fn scan(tree: &dyn Tree, here: &Here, directory: &str) -> Result<Vec<Resource>> {
    let mut scanned = Vec::new();
    let is_in = |file: &str| here.left_out(file).is_none();
    for name in tree.names(directory)? {
        let path = path::join(directory, &name);
        // A link is not in an artifact.
        let is_seen = |found: &(&str, String)| path::parent(&found.1) == path && is_in(&found.1);
        match tree.entry(&path)? {
            Some(Entry::Directory) if tree::kustomization_in(tree, &path)?.is_some_and(|found| is_seen(&found)) => {
                scanned.push(Resource { path, is_root: true });
            }
            Some(Entry::Directory) => scanned.extend(scan(tree, here, &path)?),
            Some(Entry::File { .. }) if (name.ends_with(".yaml") || name.ends_with(".yml")) && is_in(&path) => {
                scanned.push(Resource { path, is_root: false });
            }
            _ => {}
        }
    }
    Ok(scanned)
}

/// Looks at the tips of localized branches for what the tree does not hold: copies are only there.
pub(super) fn on_localized(identity: &Identity, targets: &mut Targets) -> Result<()> {
    for target in &mut targets.targets {
        if let Place::Here(here) = &mut target.place
            && matches!(here.found, Found::Nothing(_))
            && here.revision.is_localized()
            && let Some(tip) = identity.tip(&here.revision)?
        {
            here.found = look(&tip, target.engine, Some(&here.path))?;
        }
    }
    Ok(())
}

impl Build {
    /// Notes which of the plain files that are read are submodules: this repository does not hold what is in them.
    pub(super) fn hold_submodule(&mut self, tree: &dyn Tree, files: &[String]) -> Result<()> {
        for place in files {
            if tree.entry(place)? == Some(Entry::Submodule) {
                self.unread.get_or_insert(format!("`{place}` is a submodule"));
                self.values.push(place.clone());
            }
        }
        Ok(())
    }
}

/// Adds what the configuration declares.
pub(super) fn declared(tree: &dyn Tree, config: &Config, targets: &mut Targets) -> Result<()> {
    for declared in &config.targets {
        let here = here(tree, declared.engine, "", &declared.path, Revision::this(), None)?;
        let object = Object::of(&config.file, declared.position.line, Object::LISTED, tree.label(&here.path));
        let load_restrictor = declared.engine.load_restrictor(targets.argo_options.as_deref());
        let build = Build { load_restrictor, ..Build::default() };
        targets.targets.push(Target::new(
            declared.engine,
            object,
            declared.position,
            Place::Here(here),
            build,
            &Json::Null,
        ));
    }
    Ok(())
}
