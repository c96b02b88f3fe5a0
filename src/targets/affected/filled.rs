//! The targets that change although no file of their builds does: Flux fills in variables, whose values come from an
//! object that the change has; or their source is at another URL, which only the tree tells to be this repository.

use std::collections::HashMap;

use serde_json::Value as Json;

use super::{AffectedTarget, Cause, Causes, Sides};
use crate::graph::inputs::BuildInput;
use crate::kustomization::{FILE_NAMES, documents, read_object};
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

/// The targets whose output is unknown because the cluster fills in changed values, each with what may change it. Those
/// that the change does not touch otherwise are added to `touched`.
pub(super) fn filled_targets(
    causes: &Causes<'_>,
    targets: &[Target],
    touched: &mut Vec<AffectedTarget>,
) -> Result<Vec<Target>> {
    // Only if a target fills in values: this reads every changed ConfigMap in both trees.
    let maps = if targets.iter().any(|target: &Target| target.build.variables.from().next().is_some()) {
        causes.changed_maps()?
    } else {
        Maps::new()
    };
    // A target that the change touches anyway is not listed twice.
    let known: HashMap<_, usize> =
        touched.iter().enumerate().map(|(index, change)| (key(&change.target), index)).collect();
    let mut filled = Vec::new();
    for target in targets {
        let map = target.build.variables.from().find_map(|name| maps.get_key_value(name));
        let index = known.get(&key(target)).copied();
        let was = index.and_then(|index| touched[index].was.as_ref());
        let changer = match map {
            Some((name, file)) => format!("`{name}` in {file}"),
            None if was.is_some_and(|was| is_moved(was, target)) => "the URL of its source".to_owned(),
            None => continue,
        };
        // No file of its build changed, only a value that the cluster fills in.
        if let (None, Some((_, file))) = (index, map) {
            let cause = Cause::Path(file.clone());
            touched.push(AffectedTarget { cause, ..AffectedTarget::changed(target, target) });
        }
        filled.push(Target { changed_by: Some(Changer::new(changer)), ..target.clone() });
    }
    Ok(filled)
}

/// Whether the same path may be in another repository now. A URL is only kept if it is not certain that it is this
/// repository: any other source cannot have moved.
fn is_moved(was: &Target, target: &Target) -> bool {
    let is_local = was.local_dir().is_some() && target.local_dir().is_some();
    is_local && target.url().is_some() && was.url() != target.url()
}

/// The identity of a target among those of its object.
fn key(target: &Target) -> (ObjectRef, Position) {
    (target.object.clone(), target.spot)
}

impl Causes<'_> {
    /// The ConfigMaps and Secrets that differ, in files and as kustomizations generate them.
    fn changed_maps(&self) -> Result<Maps> {
        let mut maps = Maps::new();
        for file in self.changes.files(scan::is_searched)? {
            let Sides { old, new } = self.changes.trees.as_ref().map(|tree| written_maps(&**tree, &file));
            // A value may be new, changed or gone.
            let differs = |(name, object): (&String, &Json), other: &HashMap<String, Json>| {
                (other.get(name) != Some(object)).then(|| (name.clone(), file.clone()))
            };
            maps.extend(old.iter().filter_map(|map| differs(map, &new)));
            maps.extend(new.iter().filter_map(|map| differs(map, &old)));
        }
        // A generated object is in no file: it differs if the kustomization or one of the files with values does.
        let roots = self.graph.roots.iter().zip(&self.of_roots).filter(|(_, cause)| cause.is_some());
        let roots: Vec<&str> = roots.filter_map(|(root, _)| self.graph.user_path(root.file)).collect();
        // A root may be gone with its objects.
        let mut gone = self.changes.files(|file| FILE_NAMES.contains(&path::name(file)))?;
        for file in &roots {
            gone.remove(*file);
        }
        let Sides { old, new } = &self.changes.trees;
        for file in gone.iter().map(String::as_str).chain(roots) {
            // A file that is the same on both sides generates the same objects.
            let old = self.changes.at(file)?.map(|_| old);
            for (name, files) in old.into_iter().chain([new]).flat_map(|tree| generated_maps(&**tree, file)) {
                let mut inputs: Vec<BuildInput> = files.into_iter().map(BuildInput::At).collect();
                inputs.push(BuildInput::At(file.to_owned()));
                if self.changes.cause_in(&inputs)?.is_some() {
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

/// The ConfigMaps and Secrets in a file, whose values variables may have, as JSON and by their names. Empty if the tree
/// lacks the file, or it cannot be read: then all maps that the other tree has there differ.
fn written_maps(tree: &dyn Tree, file: &str) -> HashMap<String, Json> {
    let bytes = tree.read(file).unwrap_or_default();
    let text = str::from_utf8(&bytes).ok().filter(|text| text.len() <= FILE.most).unwrap_or_default();
    let candidates = documents(text).filter(|document| KINDS.iter().any(|kind| document.text.contains(kind)));
    let maps = candidates.filter_map(|document| {
        let object = read_object(document).ok()??;
        let Named { kind, metadata } = object.read().ok()?;
        KINDS.contains(&&*kind).then(|| (metadata.name, object.json()))
    });
    maps.collect()
}

/// The names of the ConfigMaps and Secrets that a kustomization generates, each with the files that their values come
/// from.
fn generated_maps(tree: &dyn Tree, file: &str) -> Vec<(String, Vec<String>)> {
    let bytes = tree.read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    // Most kustomizations generate nothing, and parsing takes long.
    let object = Some(&*text).filter(|text| text.contains("Generator")).and_then(|text| read_object(text).ok()?);
    let generators: Generators = object.and_then(|object| object.read().ok()).unwrap_or_default();
    let maps = generators.config_map_generator.into_iter().chain(generators.secret_generator).map(|map| {
        // A file may be written as `KEY=FILE`.
        let texts = map.files.iter().chain(&map.envs).chain(&map.env);
        let files = texts
            .filter_map(|text| path::resolve(path::parent(file), text.split_once('=').map_or(text, |(_, file)| file)));
        (map.name, files.collect())
    });
    maps.collect()
}
