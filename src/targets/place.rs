//! What the tree holds where a target says.

use std::collections::{HashMap, hash_map};
use std::rc::Rc;

use serde_json::Value as Json;

use super::ignore::SourceIgnore;
use super::{Build, Engine, Found, Here, Identity, Ignores, Object, Place, Resource, Revision, Target, Targets};
use crate::config::Config;
use crate::kustomization::FILE_NAMES;
use crate::message::failure::Result;
use crate::record::LoadRestrictor;
use crate::reference::{RepoSpec, is_remote_file};
use crate::tree::git::GitTree;
use crate::tree::{self, Entry, Resolved, Tree, path};

/// Returns what is at a path that is joined to `base` as Flux does it: nothing leads above the top of the artifact, in
/// which there are no links.
pub(super) fn of_flux(tree: &dyn Tree, base: &str, written: &str) -> Result<(String, Found)> {
    let mut below: Vec<&str> = Vec::new();
    for component in path::components(written) {
        match component {
            "." => {}
            ".." => {
                below.pop();
            }
            component => below.push(component),
        }
    }
    let place = path::join(base, &below.join("/"));
    let found = match link_to(tree, &place)? {
        Some(link) => left_out(link),
        None => look(tree, &place, Engine::Flux)?,
    };
    Ok((place, found))
}

fn left_out(link: &str) -> Found {
    Found::Nothing(format!("`{link}` is a link, which Flux leaves out of its artifacts"))
}

/// Returns the link on the way to a path, or at it.
fn link_to<'a>(tree: &dyn Tree, place: &'a str) -> Result<Option<&'a str>> {
    let ends = place.match_indices('/').map(|(at, _)| at);
    for end in ends.chain([place.len()]) {
        match tree.entry(&place[..end])? {
            Some(Entry::Link) => return Ok(Some(&place[..end])),
            Some(Entry::Directory) => {}
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Returns what is at a path that is joined to `base` lexically.
pub(super) fn of_path(tree: &dyn Tree, base: &str, written: &str, engine: Engine) -> Result<(String, Found)> {
    let Some(place) = path::resolve(base, written).filter(|place| path::is_in(place, base)) else {
        let why = "it leads out of the repository".to_owned();
        return Ok((String::new(), Found::Nothing(why)));
    };
    let found = look(tree, &place, engine)?;
    Ok((place, found))
}

/// Returns what is at a path of the tree.
fn look(tree: &dyn Tree, place: &str, engine: Engine) -> Result<Found> {
    let directory = match tree::resolve(tree, place)? {
        Resolved::Directory { path } => path,
        Resolved::Missing { path } => {
            return Ok(Found::Nothing(format!("there is no `{path}`")));
        }
        Resolved::File { .. } => return Ok(Found::Nothing(format!("`{place}` is a file"))),
        Resolved::Submodule { path } => {
            return Ok(Found::Submodule(path));
        }
        Resolved::Leaves { link, .. } => {
            return Ok(Found::Nothing(format!("`{link}` leads out of the repository")));
        }
        Resolved::Loop { link } => {
            return Ok(Found::Nothing(format!("`{link}` leads to itself")));
        }
    };
    let is_plain = |found: &(&str, String)| found.1 == path::join(&directory, found.0);
    let found = tree::kustomization_in(tree, &directory)?;
    let found = found.filter(|found| match engine {
        // Links are not in an artifact.
        Engine::Flux => is_plain(found),
        // Fleet knows one name only.
        Engine::Fleet => found.0 == FILE_NAMES[0],
        Engine::ArgoCd | Engine::Kustomize => true,
    });
    if found.is_some() {
        return Ok(Found::Kustomization(directory));
    }
    let chart = path::join(&directory, "Chart.yaml");
    let has_chart = matches!(engine, Engine::ArgoCd | Engine::Fleet)
        && matches!(tree::resolve(tree, &chart)?, Resolved::File { .. });
    Ok(if has_chart { Found::Chart(directory) } else { Found::Directory(directory) })
}

/// Returns what is at the path of a component that an object adds to a directory; none for a URL, and where only the
/// engine knows what is meant: a pattern, a variable.
fn component(tree: &dyn Tree, engine: Engine, directory: &str, text: &str) -> Result<Option<Found>> {
    if is_url(text) || text.contains(['*', '?', '[', '\\', '{', '$']) {
        return Ok(None);
    }
    let Some(place) = path::resolve(directory, text).filter(|_| !path::is_absolute(text)) else {
        return Ok(Some(Found::Nothing("it leads out of the repository".to_owned())));
    };
    Ok(Some(match link_to(tree, &place)?.filter(|_| engine == Engine::Flux) {
        Some(link) => left_out(link),
        None => look(tree, &place, Engine::Kustomize)?,
    }))
}

/// Returns whether kustomize takes a text for a URL.
pub(crate) fn is_url(text: &str) -> bool {
    RepoSpec::parse(text).is_ok() || is_remote_file(text)
}

/// Looks at what targets hold besides: the components of their objects, what Flux leaves out and scans.
pub(super) fn look_inside(tree: &dyn Tree, targets: &mut [Target]) -> Result<()> {
    let mut source_ignore = None;
    for target in targets {
        let engine = target.engine;
        let Place::Here(here) = &target.place else {
            continue;
        };
        for one in &mut target.build.components {
            one.found = component(tree, engine, &here.path, &one.text.text)?;
        }
        let artifact = target.artifact(here);
        if artifact.is_some() && source_ignore.is_none() {
            source_ignore = Some(SourceIgnore::of(tree)?);
        }
        let hidden = source_ignore.as_ref().zip(artifact).map(|(known, artifact)| Rc::new(known.with(artifact)));
        let mut scanned = Vec::new();
        if let (Found::Directory(directory), Engine::Flux) = (&here.found, engine)
            // Else it is only in the tip of a localized branch.
            && (directory.is_empty() || tree.entry(directory)? == Some(Entry::Directory))
        {
            scan(tree, hidden.as_deref(), directory, &mut scanned)?;
        }
        if let Place::Here(here) = &mut target.place {
            (here.hidden, here.scanned) = (hidden, scanned);
        }
    }
    Ok(())
}

/// Adds what Flux takes for resources of a directory without a kustomization: directories with one, which it does not
/// enter, and YAML files at any depth.
fn scan(tree: &dyn Tree, hidden: Option<&Ignores>, directory: &str, scanned: &mut Vec<Resource>) -> Result<()> {
    for name in tree.names(directory)? {
        let path = path::join(directory, &name);
        let is_hidden = |file: &str| hidden.is_some_and(|hidden| hidden.rule(file).is_some());
        // A link is not in an artifact.
        let is_seen = |found: &(&str, String)| path::parent(&found.1) == path && !is_hidden(&found.1);
        match tree.entry(&path)? {
            Some(Entry::Directory) if tree::kustomization_in(tree, &path)?.is_some_and(|found| is_seen(&found)) => {
                scanned.push(Resource { path, is_root: true });
            }
            Some(Entry::Directory) => scan(tree, hidden, &path, scanned)?,
            Some(Entry::File { .. }) if (name.ends_with(".yaml") || name.ends_with(".yml")) && !is_hidden(&path) => {
                scanned.push(Resource { path, is_root: false });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Looks at the tips of localized branches for what the tree does not hold: copies are only there.
pub(super) fn on_localized(identity: &Identity, targets: &mut Targets) -> Result<()> {
    let mut tips: HashMap<Revision, Option<GitTree>> = HashMap::new();
    for target in &mut targets.targets {
        let Place::Here(here) = &mut target.place else {
            continue;
        };
        if !matches!(here.found, Found::Nothing(_)) || !here.revision.is_localized() {
            continue;
        }
        let tip = match tips.entry(here.revision.clone()) {
            hash_map::Entry::Occupied(known) => known.into_mut(),
            hash_map::Entry::Vacant(new) => new.insert(identity.tip(&here.revision)?),
        };
        if let Some(tip) = tip {
            here.found = look(tip, &here.path, target.engine)?;
        }
    }
    Ok(())
}

/// Adds what the configuration declares.
pub(super) fn declared(tree: &dyn Tree, config: &Config, targets: &mut Targets) -> Result<()> {
    for declared in &config.targets {
        let there = match declared.engine {
            Engine::Flux => of_flux(tree, "", &declared.path)?,
            engine => of_path(tree, "", &declared.path, engine)?,
        };
        let object = Object {
            file: config.place().to_owned(),
            line: declared.line,
            kind: "target".to_owned(),
            namespace: String::new(),
            name: tree.label(&there.0),
            built_by: None,
        };
        let load_restrictor = match declared.engine {
            Engine::Flux => Some(LoadRestrictor::None),
            Engine::Fleet => Some(LoadRestrictor::RootOnly),
            Engine::ArgoCd => targets.argo_restrictor(),
            Engine::Kustomize => None,
        };
        let build = Build { load_restrictor, ..Build::default() };
        let place = Place::Here(Here::new(&declared.path, there, Revision::this(), None));
        let spot = (declared.line, declared.column);
        targets.targets.push(Target::new(declared.engine, object, spot, place, build, &Json::Null));
    }
    Ok(())
}
