//! What the tree holds where a target says.

use std::collections::{HashMap, hash_map};

use super::{Build, Engine, Found, Here, Identity, Object, Place, Revision, Target, Targets};
use crate::config::{Config, FILE_NAME};
use crate::kustomization::FILE_NAMES;
use crate::message::failure::Result;
use crate::record::LoadRestrictor;
use crate::tree::objects::ObjectTree;
use crate::tree::{self, Entry, Listing, Resolved, Tree, path};

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
        Some(link) => Found::Nothing(format!("`{link}` is a link, which Flux leaves out of its artifacts")),
        None => look(tree, &place, Engine::Flux)?,
    };
    Ok((place, found))
}

/// Returns the link on the way to a path, or at it.
pub(crate) fn link_to<'a>(tree: &dyn Tree, place: &'a str) -> Result<Option<&'a str>> {
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
    let is_file = |name: &str| -> Result<bool> {
        let entry = tree.entry(&path::join(&directory, name))?;
        Ok(match entry {
            Some(Entry::File { .. }) => true,
            Some(Entry::Link) => engine != Engine::Flux,
            _ => false,
        })
    };
    // Fleet knows one name only.
    let names: &[&str] = match engine {
        Engine::Fleet => FILE_NAMES.get(..1).unwrap_or_default(),
        Engine::Flux | Engine::ArgoCd | Engine::Kustomize => &FILE_NAMES,
    };
    for name in names {
        if is_file(name)? {
            return Ok(Found::Kustomization(directory));
        }
    }
    let charts = match engine {
        Engine::ArgoCd | Engine::Fleet => is_file("Chart.yaml")?,
        Engine::Flux | Engine::Kustomize => false,
    };
    Ok(if charts { Found::Chart(directory) } else { Found::Directory(directory) })
}

/// Looks at the tips of localized branches for what the tree does not hold: copies are only there.
pub(super) fn on_localized(identity: &Identity, targets: &mut Targets) -> Result<()> {
    let mut tips: HashMap<Revision, Option<ObjectTree>> = HashMap::new();
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
pub(super) fn declared(tree: &dyn Listing, config: &Config, targets: &mut Targets) -> Result<()> {
    for declared in &config.targets {
        let (place, found) = match declared.engine {
            Engine::Flux => of_flux(tree, "", &declared.path)?,
            engine => of_path(tree, "", &declared.path, engine)?,
        };
        let file = match config.file.as_str() {
            "" => FILE_NAME,
            file => file,
        };
        targets.targets.push(Target {
            engine: declared.engine,
            object: Object {
                file: file.to_owned(),
                line: declared.line,
                kind: "target".to_owned(),
                namespace: String::new(),
                name: tree.label(&place),
                built_by: None,
            },
            digest: String::new(),
            spot: (declared.line, declared.column),
            place: Place::Here(Here {
                written: declared.path.clone(),
                path: place,
                revision: Revision { name: None, is_this: true },
                found,
                artifact: None,
            }),
            build: Build {
                load_restrictor: match declared.engine {
                    Engine::Flux => Some(LoadRestrictor::None),
                    Engine::Fleet => Some(LoadRestrictor::RootOnly),
                    Engine::ArgoCd => targets.argo_restrictor(),
                    Engine::Kustomize => None,
                },
                ..Build::default()
            },
            changed_by: None,
            reaches: None,
        });
    }
    Ok(())
}
