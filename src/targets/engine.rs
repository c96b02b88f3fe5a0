//! The questions to an engine, one method each. The default methods are the answers of plain kustomize.

use std::ops::Deref;

use serde_json::{Map, Value as Json};

use super::argo::{ArgoCd, PlainDirectory};
use super::engine_versions::Workload;
use super::flux::Flux;
use super::scan::{Document, ScannedKind};
use super::{BuildSettings, EngineName, Identity, PathContent, Target, TargetDir, Targets};
use crate::kustomization::Value;
use crate::message::failure::Result;
use crate::record::LoadRestrictor;
use crate::tree::{self, Tree, path};

/// A program that builds and deploys targets.
pub(crate) trait Engine: Sync {
    /// The kinds of its objects that are read.
    fn kinds(&self) -> &'static [ScannedKind] {
        &[]
    }

    /// Whether an object of a kind deploys something.
    fn deploys(&self, _kind: &str) -> bool {
        false
    }

    /// Whether objects of a kind contain its options, and deploy nothing.
    fn has_options(&self, _kind: &str) -> bool {
        false
    }

    /// Adds the targets of its objects.
    fn find(&self, _: &dyn Tree, _: &Identity, _: &[Document], _: &mut Targets) -> Result<()> {
        Ok(())
    }

    /// The names of the objects that install it.
    fn installers(&self) -> &'static [&'static str] {
        &[]
    }

    /// Its version, if the object installs it and tells the version.
    fn installed(&self, _: &Value, _: &Workload) -> Option<String> {
        None
    }

    /// Whether objects define its targets. Without objects, messages name a target by its file.
    fn has_objects(&self) -> bool {
        false
    }

    /// Whether a target of this kind is not built from a root.
    fn leads_to_no_root(&self, _kind: &str) -> bool {
        false
    }

    /// Whether it builds from an artifact, which has no links, and files as git stores them.
    fn packs(&self) -> bool {
        false
    }

    /// Whether it generates a kustomization for a directory without one. Then the components of an object must be
    /// local.
    fn generates(&self) -> bool {
        false
    }

    /// Whether it inflates charts, and runs functions and plugins.
    fn runs_plugins(&self) -> bool {
        true
    }

    /// Whether a chart that it renders gets answers from the cluster.
    fn gives_lookup(&self) -> bool {
        true
    }

    /// Whether it refuses a repository that contains a link out of it.
    fn refuses_links(&self) -> bool {
        false
    }

    /// Whether the components of an object may be patterns.
    fn takes_patterns(&self) -> bool {
        false
    }

    /// Resolves a path of an object. `base` is the top of the files that the engine has. `None` if the path leaves
    /// `base`.
    fn resolve(&self, base: &str, written: &str) -> Option<String> {
        path::resolve(base, written).filter(|path| path::is_in(path, base))
    }

    /// The kind of content that it sees in a directory.
    fn classify(&self, tree: &dyn Tree, directory: String) -> Result<PathContent> {
        let is_root = tree::kustomization_in(tree, &directory)?.is_some();
        Ok(if is_root { PathContent::Kustomization(directory) } else { PathContent::Directory(directory) })
    }

    /// The load restrictor of its builds, if it or its options in the tree set one.
    fn load_restrictor(&self, _options: Option<&[String]>) -> Option<LoadRestrictor> {
        None
    }

    /// Whether it applies the overrides of an object, except patches, by `kustomize edit`.
    fn runs_edits(&self) -> bool {
        false
    }

    /// Writes those overrides of an object into a kustomization that no command of kustomize can apply.
    fn edit(&self, _: &mut Map<String, Json>, _: &BuildSettings, _is_root: bool) {}

    /// The arguments that it passes to kustomize.
    fn arguments(&self) -> &'static [&'static str] {
        &[]
    }

    /// The paths in the deployed directory, beside its content, that it reads for a target with this name; the files
    /// may be missing.
    fn override_paths(&self, _: &TargetDir, _name: &str) -> Vec<String> {
        Vec::new()
    }

    /// Whether it applies a file of a directory without a kustomization as it is.
    fn applies(&self, _: &TargetDir, _: &PlainDirectory, _file: &str) -> bool {
        false
    }
}

/// `kustomize build`, by hand or in a pipeline.
struct Kustomize;

impl Engine for Kustomize {}

/// A name gives access to its engine.
impl Deref for EngineName {
    type Target = dyn Engine;

    fn deref(&self) -> &Self::Target {
        match self {
            EngineName::Flux => &Flux,
            EngineName::ArgoCd => &ArgoCd,
            EngineName::Kustomize => &Kustomize,
        }
    }
}

impl Target {
    /// Whether its engine renders a file as a part of a chart, or applies it as it is.
    pub(crate) fn takes(&self, dir: &TargetDir, file: &str) -> bool {
        match &dir.content {
            PathContent::Chart(directory) => path::is_in(file, directory),
            _ => self.engine.applies(dir, &self.build.directory, file),
        }
    }
}
