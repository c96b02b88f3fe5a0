//! What is asked of an engine, one method for each question. What the trait says by itself is what plain kustomize does.

use std::ops::Deref;

use serde_json::{Map, Value as Json};

use super::argo::ArgoCd;
use super::flux::Flux;
use super::installed::Workload;
use super::scan::{Document, Kind};
use super::{Build, Directory, EngineName, Found, Here, Identity, Target, Targets};
use crate::kustomization::Value;
use crate::message::failure::Result;
use crate::record::LoadRestrictor;
use crate::tree::{self, Tree, path};

/// Who builds what is deployed.
pub(crate) trait Engine: Sync {
    /// Returns the kinds of its objects that matter.
    fn kinds(&self) -> &'static [Kind] {
        &[]
    }

    /// Returns whether objects of a kind hold its options, and deploy nothing.
    fn has_options(&self, _kind: &str) -> bool {
        false
    }

    /// Adds what it deploys.
    fn find(&self, _: &dyn Tree, _: &Identity, _: &[Document], _: &mut Targets) -> Result<()> {
        Ok(())
    }

    /// Returns the names of the objects that install it.
    fn installers(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns its version, as an object says it that installs it.
    fn installed(&self, _: &Value, _: &Workload) -> Option<String> {
        None
    }

    /// Whether objects tell it what to deploy. Without objects, messages name a target by its file.
    fn has_objects(&self) -> bool {
        false
    }

    /// Returns whether what an object of a kind deploys leads to no root.
    fn leads_to_no_root(&self, _kind: &str) -> bool {
        false
    }

    /// Returns whether it builds from an artifact: without links, and of files as they are stored.
    fn packs(&self) -> bool {
        false
    }

    /// Returns whether it makes the kustomization of a directory that has none; components that it adds must be here.
    fn generates(&self) -> bool {
        false
    }

    /// Returns whether it inflates charts, and runs functions and plugins.
    fn runs_plugins(&self) -> bool {
        true
    }

    /// Returns whether a chart that it renders gets answers from the cluster.
    fn gives_lookup(&self) -> bool {
        true
    }

    /// Returns whether it refuses a repository that holds a link out of it.
    fn refuses_links(&self) -> bool {
        false
    }

    /// Returns whether one object may deploy several sources.
    fn takes_sources(&self) -> bool {
        false
    }

    /// Returns whether components that an object adds may be patterns.
    fn takes_patterns(&self) -> bool {
        false
    }

    /// Returns the place that it takes a path for, from the top of the repository: `base` is the top of what it has. `None`
    /// if it leads out of that.
    fn resolve(&self, base: &str, written: &str) -> Option<String> {
        path::resolve(base, written).filter(|place| path::is_in(place, base))
    }

    /// Returns what it takes a directory for.
    fn found(&self, tree: &dyn Tree, directory: String) -> Result<Found> {
        let is_root = tree::kustomization_in(tree, &directory)?.is_some();
        Ok(if is_root { Found::Kustomization(directory) } else { Found::Directory(directory) })
    }

    /// Returns which files it lets a root load, with its options in the tree; `None` if nothing says it.
    fn load_restrictor(&self, _options: Option<&[String]>) -> Option<LoadRestrictor> {
        None
    }

    /// Returns whether it changes a kustomization by `kustomize edit`, but for patches.
    fn runs_edits(&self) -> bool {
        false
    }

    /// Writes into a kustomization what an object changes in it, and no command of kustomize does.
    fn edit(&self, _: &mut Map<String, Json>, _: &Build, _is_root: bool) {}

    /// Returns the arguments that it gives to kustomize.
    fn arguments(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the files that it takes for manifests of a directory of plain files; `None` if it does something else.
    fn manifests(&self, _: &dyn Tree, _: &Here, _: &Directory) -> Result<Option<Vec<String>>> {
        Ok(None)
    }

    /// Returns the files that it reads besides the directory that is deployed under a name.
    fn beside(&self, _: &Here, _name: &str) -> Vec<String> {
        Vec::new()
    }

    /// Returns whether it applies a file of a directory without a kustomization as it is.
    fn applies(&self, _: &Here, _: &Directory, _file: &str) -> bool {
        false
    }
}

/// `kustomize build`, by hand or in a pipeline.
struct Kustomize;

impl Engine for Kustomize {}

/// A name stands for its engine.
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
    /// Returns whether its engine renders a file as part of a chart, or applies it as it is.
    pub(super) fn takes(&self, here: &Here, file: &str) -> bool {
        match &here.found {
            Found::Chart(directory) => path::is_in(file, directory),
            _ => self.engine.applies(here, &self.build.directory, file),
        }
    }
}
