//! Deployments that no build of this tree has: of another repository or revision, of a chart that a registry has, and
//! by objects that come from another repository.

use super::scan::{declaring, identify};
use super::{EngineName, ObjectRef, Target, TargetLocation, at_other_revision};
use crate::kustomization::read_object;
use crate::message::failure::shown;
use crate::message::redact::visible;

impl Target {
    /// Why no build of this tree has the objects of the target, so that a list of all deployed objects must say that
    /// they are missing. `None` if its directory is in this tree, even if nothing is there, or if only the cluster
    /// knows the directory.
    pub(crate) fn elsewhere(&self) -> Option<String> {
        match &self.location {
            TargetLocation::External(why) => Some(why.clone()),
            TargetLocation::Local(_) => {
                let revision = at_other_revision(self)?;
                Some(format!("it deploys another revision, `{}`", shown(revision)))
            }
            TargetLocation::Templated(_) => None,
        }
    }

    /// The sentence that no build of this tree has the objects of the target, and why; `None` if one has.
    pub(crate) fn elsewhere_line(&self) -> Option<String> {
        Some(visible(&format!("{}: {}", self.name_and_file(), self.elsewhere()?)))
    }
}

/// The objects in the output of a build that deploy something.
pub(crate) fn deploying(output: &[u8]) -> Vec<ObjectRef> {
    let output = String::from_utf8_lossy(output);
    let objects = declaring(&output).filter_map(|document| identify("", &read_object(document).ok()??));
    objects.map(|(object, _)| object).filter(|object| engine(object).is_some()).collect()
}

/// The engines that deploy something because of the objects in the output of a build.
pub(crate) fn deploying_engines(output: &[u8]) -> impl Iterator<Item = EngineName> {
    deploying(output).into_iter().filter_map(|object| engine(&object))
}

/// The engine that deploys something because of an object.
fn engine(object: &ObjectRef) -> Option<EngineName> {
    EngineName::ALL.into_iter().find(|engine| engine.deploys(&object.kind))
}

/// The sentence that no build of this tree has the objects that an object in the output of `build`
/// [deploys](deploying). `None` if it is one of these targets, which are built themselves.
pub(crate) fn object_line(object: &ObjectRef, build: &str, targets: &[Target]) -> Option<String> {
    let is_target = targets.iter().map(|target| &target.object).any(|known| {
        // A namespace need not be written in the tree.
        let namespaces = [&known.namespace, &object.namespace];
        let may_be_same = namespaces[0] == namespaces[1] || namespaces.iter().any(|namespace| namespace.is_empty());
        known.kind == object.kind && known.name == object.name && may_be_same
    });
    let engine = engine(object).filter(|_| !is_target)?.name();
    let ObjectRef { kind, .. } = object;
    let name = object.full_name();
    Some(visible(&format!("{engine} {kind} {name} in {build}: this repository does not have what it deploys")))
}
