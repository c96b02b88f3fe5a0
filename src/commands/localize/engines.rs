//! What Flux and Argo CD build of a repository that is localized where it stands.

use std::collections::HashSet;
use std::rc::Rc;

use super::deployed::Deployed;
use crate::build_check::{EngineBuild, EngineSide};
use crate::failure::Result;
use crate::plan::{Plan, Writes};
use crate::targets::generated::{Generated, generated};
use crate::targets::{self, Found, Here, Hidden, Place, SeenTree};
use crate::tree::overlay::OverlayTree;
use crate::tree::{Tree, path};
use crate::workspace::Workspace;

/// Returns what engines build of the result, as far as something that they build is written; without what is built as
/// any kustomization is.
pub(super) fn of(
    workspace: &Workspace,
    deployed: &Deployed,
    plan: &Plan,
) -> Result<Vec<EngineBuild>> {
    let Writes::InPlace { changes, .. } = &plan.writes else {
        return Ok(Vec::new());
    };
    let tree = &deployed.tree;
    let found = deployed.as_built(workspace)?;
    let mut after = OverlayTree::new(workspace.tree.clone());
    for change in changes {
        match &change.to {
            Some((bytes, executable)) => after.file(&change.path, bytes, *executable),
            None => after.remove(&change.path),
        }
    }
    let mut builds = Vec::new();
    let mut seen = HashSet::new();
    for target in &found.targets {
        // What is not known to be built is compared as its file has it.
        let here = match &target.place {
            Place::Here(here) if here.revision.is_this => here,
            _ => continue,
        };
        let roots = targets::roots(&**tree, target, here);
        if !is_touched(plan, &roots, here) {
            continue;
        }
        let hidden = Hidden::of(&**tree, target, here)?;
        let before = SeenTree::new(&*workspace.tree, &hidden);
        let after = SeenTree::new(&after, &hidden);
        let original = generated(&before, target, here)?;
        let localized = generated(&after, target, here)?;
        let (Some(original), Some(localized)) = (original, localized) else {
            continue;
        };
        let is_plain = !original.is_changed && !localized.is_changed;
        let has_plain = |directory: &String| {
            let mut affected = plan.affected.iter();
            affected.any(|root| root.localized == *directory)
        };
        let key = (
            original.directory.clone(),
            original.text.clone(),
            original.arguments.clone(),
            target.artifact(here).map(Rc::as_ptr),
        );
        if (is_plain && original.arguments.is_empty() && has_plain(&original.directory))
            || !seen.insert(key)
        {
            continue;
        }
        let object = &target.object;
        let declared = if object.built_by.is_some() {
            vec![String::new()]
        } else {
            let files = target.object_files().into_iter();
            files.map(str::to_owned).collect()
        };
        builds.push(EngineBuild {
            name: target.by(),
            declared,
            roots,
            original: side(&before, original)?,
            localized: side(&after, localized)?,
            hidden,
        });
    }
    Ok(builds)
}

fn side(tree: &dyn Tree, made: Generated) -> Result<EngineSide> {
    let files = made.files.iter().map(|place| {
        let bytes = tree.read(place)?;
        Ok((place.clone(), bytes))
    });
    Ok(EngineSide {
        files: files.collect::<Result<_>>()?,
        made,
    })
}

/// Returns whether something that an engine builds for a target is written.
fn is_touched(plan: &Plan, roots: &[String], here: &Here) -> bool {
    let is_in = |directory: &String| {
        let mut touched = plan.touched.iter();
        touched.any(|root| path::is_in(root, directory))
    };
    match &here.found {
        Found::Directory(directory) => is_in(directory),
        Found::Kustomization(_) => roots.iter().any(|root| plan.touched.contains(root)),
        Found::Chart(_) | Found::Plugin(_) | Found::Submodule(_) | Found::Nothing(_) => false,
    }
}
