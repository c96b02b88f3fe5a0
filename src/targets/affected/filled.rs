//! The targets into which a change fills something else, as nobody here does it: variables of Flux, whose values come from an
//! object that the change has; and another repository, which only the tree tells to be this one.

use std::collections::HashMap;

use serde_json::Value as Json;

use super::{AffectedTarget, Cause, Causes, Sides};
use crate::graph::inputs::BuildInput;
use crate::kustomization::{documents, read_object};
use crate::message::failure::Result;
use crate::message::position::Position;
use crate::os::limits::FILE;
use crate::targets::scan::{self, models};
use crate::targets::{Changer, ObjectRef, Target};
use crate::tree::{Tree, path};

/// The names of objects with values, each with the file that has it.
type Maps = HashMap<String, String>;

/// The kinds of these objects.
const KINDS: [&str; 2] = ["ConfigMap", "Secret"];

/// Adds the targets that fill in changed values to those that the change touches.
pub(super) fn filled(
    causes: &Causes<'_>,
    targets: &[Target],
    touched: &mut Vec<AffectedTarget>,
) -> Result<Vec<Target>> {
    // Maps are read only if somebody fills them in: this reads every ConfigMap of both trees.
    let maps = if targets.iter().any(|target: &Target| target.build.variables.from().next().is_some()) {
        causes.maps()?
    } else {
        Maps::new()
    };
    // A target that the change touches anyway is not listed twice.
    let known: HashMap<_, usize> = touched.iter().enumerate().map(|(at, target)| (key(&target.target), at)).collect();
    let mut filled = Vec::new();
    for target in targets {
        let map = target.build.variables.from().find_map(|name| maps.get_key_value(name));
        if map.is_none() && target.url().is_none() {
            continue;
        }
        let at = known.get(&key(target)).copied();
        let was = at.and_then(|at| touched[at].was.as_ref());
        let is_moved = was
            .is_some_and(|was| was.local_dir().is_some() && target.local_dir().is_some() && was.url() != target.url());
        let by = map.map(|(name, file)| format!("`{name}` in {file}"));
        let Some(name) = by.or_else(|| is_moved.then(|| "the URL of its source".to_owned())) else { continue };
        // No file of its build changed, only a value that the cluster fills in.
        if let (None, Some((_, file))) = (at, map) {
            let cause = Cause::Path(file.clone());
            touched.push(AffectedTarget { cause, ..AffectedTarget::changed(target, target) });
        }
        filled.push(Target { changed_by: Some(Changer::new(name)), ..target.clone() });
    }
    Ok(filled)
}

/// The identity of a target among those of its object.
fn key(target: &Target) -> (ObjectRef, Position) {
    (target.object.clone(), target.spot)
}

impl Causes<'_> {
    /// The objects with values in a change, as written in files and as kustomizations generate them.
    fn maps(&self) -> Result<Maps> {
        let mut maps = Maps::new();
        for file in self.changes.files(scan::is_searched)? {
            let Sides { old, new } = self.changes.trees.as_ref().map(|tree| objects(&**tree, &file));
            // A value may be new, changed or gone.
            let differs = |(name, object): (&String, &Json), other: &HashMap<String, Json>| {
                (other.get(name) != Some(object)).then(|| (name.clone(), file.clone()))
            };
            maps.extend(old.iter().filter_map(|map| differs(map, &new)));
            maps.extend(new.iter().filter_map(|map| differs(map, &old)));
        }
        // A generated object is in no file, but its inputs are.
        for (root, _) in self.graph.roots.iter().zip(&self.of_roots).filter(|(_, cause)| cause.is_some()) {
            let Some(file) = self.graph.user_path(root.file) else { continue };
            for (name, read) in generated(&*self.changes.trees.new, file) {
                let mut read: Vec<BuildInput> = read.into_iter().map(BuildInput::At).collect();
                read.push(BuildInput::At(file.to_owned()));
                if self.changes.first_of(&read)?.is_some() {
                    maps.insert(name, file.to_owned());
                }
            }
        }
        Ok(maps)
    }
}

models! {
    /// An object that may have values for others.
    Named {
        kind: String,
        metadata: Metadata,
    }

    Metadata {
        name: String,
    }

    /// A kustomization that generates such objects.
    Generators {
        config_map_generator: Vec<Generated>,
        secret_generator: Vec<Generated>,
    }

    Generated {
        name: String,
        files: Vec<String>,
        envs: Vec<String>,
        env: Option<String>,
    }
}

/// The objects with values in a file, by their names.
fn objects(tree: &dyn Tree, file: &str) -> HashMap<String, Json> {
    let bytes = tree.read(file).unwrap_or_default();
    let text = str::from_utf8(&bytes).ok().filter(|text| text.len() <= FILE.most).unwrap_or_default();
    let read = documents(text).filter(|read| KINDS.iter().any(|kind| read.text.contains(kind)));
    let read = read.filter_map(|document| {
        let object = read_object(document).ok()??;
        let Named { kind, metadata } = object.read().ok()?;
        KINDS.contains(&&*kind).then(|| (metadata.name, object.json()))
    });
    read.collect()
}

/// The objects that a kustomization generates, each with the files that it does so of.
fn generated(tree: &dyn Tree, file: &str) -> Vec<(String, Vec<String>)> {
    let bytes = tree.read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let read = Some(&*text).filter(|text| text.contains("Generator")).and_then(|text| read_object(text).ok()?);
    let read: Generators = read.and_then(|read| read.read().ok()).unwrap_or_default();
    let generated = read.config_map_generator.into_iter().chain(read.secret_generator).map(|generated| {
        let texts = generated.files.iter().chain(&generated.envs).chain(&generated.env);
        let files = texts.filter_map(|text| {
            path::resolve(path::parent(file), text.split_once('=').map_or(text, |(_, named)| named))
        });
        (generated.name, files.collect())
    });
    generated.collect()
}
