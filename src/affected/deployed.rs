//! The targets whose build can differ: what Flux, Argo CD and Fleet deploy.

use std::collections::HashMap;
use std::rc::Rc;

use super::changes::Changes;
use super::{AffectedTarget, Cause, Causes, Status};
use crate::config::Engine;
use crate::failure::Result;
use crate::targets::{self, Found, Here, Object, Place, Target, Targets};
use crate::tree::{Entry, Listing, path};
use crate::walk::Graph;
use crate::walk::inputs::{self, Input};

/// What names the object of a target, wherever it stands.
type Name<'a> = (Engine, &'a str, &'a str, &'a str);

fn name(target: &Target) -> Name<'_> {
    let Object {
        kind,
        namespace,
        name,
        ..
    } = &target.object;
    (target.engine, kind, namespace, name)
}

/// What was deployed, what is, and what of the roots differs.
pub(super) struct Deployed<'a> {
    pub(super) changes: &'a Changes,
    pub(super) graph: &'a Graph,
    pub(super) causes: &'a Causes,
    /// The roots by their directories.
    pub(super) roots: HashMap<&'a str, usize>,
}

impl Deployed<'_> {
    /// Returns the targets of `new` whose build can differ, and those that are gone.
    pub(super) fn affected(&self, old: &Targets, new: &Targets) -> Result<Vec<AffectedTarget>> {
        let mut was: HashMap<Name<'_>, Vec<&Target>> = HashMap::new();
        for target in &old.targets {
            was.entry(name(target)).or_default().push(target);
        }
        let mut is: HashMap<Name<'_>, usize> = HashMap::new();
        for target in &new.targets {
            *is.entry(name(target)).or_default() += 1;
        }
        let mut affected = Vec::new();
        for target in &new.targets {
            let old = was.get(&name(target)).map_or(&[][..], Vec::as_slice);
            let declared = || Some(Cause::Path(target.object.file.clone()));
            let is_one_of_as_many = is.get(&name(target)) == Some(&old.len());
            let (status, cause) = match old {
                [] => (Status::Added, declared()),
                _ if !is_one_of_as_many || !self.is_declared_as(target, old)? => {
                    (Status::Changed, declared())
                }
                _ => (Status::Changed, self.cause(target)?),
            };
            affected.extend(cause.map(|cause| AffectedTarget {
                target: target.clone(),
                status,
                cause,
            }));
        }
        let gone = old
            .targets
            .iter()
            .filter(|target| !is.contains_key(&name(target)));
        affected.extend(gone.map(|target| AffectedTarget {
            cause: Cause::Path(target.object.file.clone()),
            target: target.clone(),
            status: Status::Removed,
        }));
        Ok(affected)
    }

    /// Returns whether an object says the same of a target as one of `old` did.
    fn is_declared_as(&self, target: &Target, old: &[&Target]) -> Result<bool> {
        let plain = without_places(target);
        let Some(same) = old.iter().find(|old| without_places(old) == plain) else {
            return Ok(false);
        };
        // It may say more than is known here, as what is filled in after the build.
        let is_whole = ["target", "fleet.yaml"].contains(&target.object.kind.as_str());
        let differs = |object: &Object| self.changes.first_of(&[Input::At(object.file.clone())]);
        if is_whole || (differs(&target.object)?.is_none() && differs(&same.object)?.is_none()) {
            return Ok(true);
        }
        let old = text(&*self.changes.old, &same.object)?;
        Ok(old == text(&*self.changes.new, &target.object)?)
    }

    /// Returns what differs for a target that is declared as it was.
    fn cause(&self, target: &Target) -> Result<Option<Cause>> {
        let Place::Here(here) = &target.place else {
            return Ok(None);
        };
        if let Some(cause) = self.changes.first_of(&own(target, here))? {
            return Ok(Some(cause));
        }
        let directories = targets::roots(&*self.changes.new, target, here);
        for directory in &directories {
            if let Some(root) = self.roots.get(directory.as_str()) {
                if let Some(cause) = &self.causes.found[*root] {
                    return Ok(Some(cause.clone()));
                }
            } else {
                let inputs = inputs::of_no_root(&*self.changes.new, directory)?;
                if let Some(cause) = self.changes.first_of(&inputs)? {
                    return Ok(Some(cause));
                }
            }
        }
        if let Found::Directory(directory) = &here.found {
            // Flux makes resources of the roots in it.
            let roots = self.graph.roots.iter().zip(&self.causes.found);
            let mut inside = roots.filter(|(root, _)| path::is_in(&root.directory, directory));
            if let Some(cause) = inside.find_map(|(_, cause)| cause.clone()) {
                return Ok(Some(cause));
            }
        }
        // It may hide something, or no longer.
        let ignores = here.artifact.as_ref();
        let ignores = ignores.and_then(|_| self.changes.named(".sourceignore"));
        Ok(ignores.map(Cause::Path))
    }
}

/// Returns what an engine reads for a target besides roots.
fn own(target: &Target, here: &Here) -> Vec<Input> {
    let mut inputs = vec![Input::At(here.path.clone())];
    match &here.found {
        Found::Directory(directory) | Found::Chart(directory) | Found::Plugin(directory) => {
            inputs.push(Input::Below(directory.clone()));
        }
        Found::Kustomization(_) | Found::Submodule(_) | Found::Nothing(_) => {}
    }
    if target.object.kind == "fleet.yaml" {
        // A bundle holds everything beside its file.
        inputs.push(Input::Below(path::parent(&target.object.file).to_owned()));
    }
    inputs
}

/// Returns a target without the places where things stand.
fn without_places(target: &Target) -> Target {
    let mut plain = target.clone();
    let unplaced = |object: &mut Object| {
        object.file.clear();
        object.line = 0;
        object.filled_by = None;
    };
    unplaced(&mut plain.object);
    plain.spot = (0, 0);
    plain.build.generate_paths = None;
    for component in &mut plain.build.components {
        component.file.clear();
        (component.line, component.column) = (0, 0);
    }
    if let Place::Here(here) = &mut plain.place
        && let Some(artifact) = &mut here.artifact
    {
        let artifact = Rc::make_mut(artifact);
        artifact.object.iter_mut().for_each(unplaced);
    }
    plain
}

/// Returns the document in which an object stands, from the object on.
fn text(tree: &dyn Listing, object: &Object) -> Result<Option<String>> {
    if !matches!(tree.entry(&object.file)?, Some(Entry::File { .. })) {
        return Ok(None);
    }
    let bytes = tree.read(&object.file)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().skip(object.line.saturating_sub(1));
    let document = lines.take_while(|line| !line.starts_with("---"));
    Ok(Some(document.flat_map(|line| [line, "\n"]).collect()))
}
