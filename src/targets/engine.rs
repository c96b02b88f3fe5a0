//! What is asked of an engine, one function for each question. Nothing but its own modules knows one by name.

use serde_json::{Map, Value as Json};

use super::generated::{append, list};
use super::{Build, Engine, Found, Here, Target, argo, flux};
use crate::message::failure::Result;
use crate::record::LoadRestrictor;
use crate::tree::{self, Resolved, Tree, path};

impl Engine {
    /// Returns whether it builds from an artifact: without links, and of files as they are stored.
    pub(crate) fn packs(self) -> bool {
        self == Engine::Flux
    }

    /// Returns whether it makes the kustomization of a directory that has none; components that it adds must be here.
    pub(crate) fn generates(self) -> bool {
        self == Engine::Flux
    }

    /// Returns whether it inflates charts, and runs functions and plugins.
    pub(crate) fn runs_plugins(self) -> bool {
        matches!(self, Engine::ArgoCd | Engine::Kustomize)
    }

    /// Returns whether a chart that it renders gets answers from the cluster: Argo CD runs `helm template`, too.
    pub(super) fn gives_lookup(self) -> bool {
        self != Engine::ArgoCd
    }

    /// Returns whether it refuses a repository that holds a link out of it.
    pub(crate) fn refuses_links(self) -> bool {
        self == Engine::ArgoCd
    }

    /// Returns whether one object may deploy several sources.
    pub(crate) fn takes_sources(self) -> bool {
        self == Engine::ArgoCd
    }

    /// Returns whether components that an object adds may be patterns.
    pub(crate) fn takes_patterns(self) -> bool {
        self == Engine::ArgoCd
    }

    /// Returns what it takes a directory for.
    pub(super) fn found(self, tree: &dyn Tree, directory: String) -> Result<Found> {
        let is_built = |(name, file): (&str, String)| match self {
            // Links are not in an artifact.
            Engine::Flux => file == path::join(&directory, name),
            Engine::ArgoCd | Engine::Kustomize => true,
        };
        if tree::kustomization_in(tree, &directory)?.is_some_and(is_built) {
            return Ok(Found::Kustomization(directory));
        }
        let chart = path::join(&directory, "Chart.yaml");
        let has_chart = self == Engine::ArgoCd && matches!(tree::resolve(tree, &chart)?, Resolved::File { .. });
        Ok(if has_chart { Found::Chart(directory) } else { Found::Directory(directory) })
    }

    /// Returns which files it lets a root load; none where nothing says it.
    pub(super) fn load_restrictor(self, argo_options: Option<&[String]>) -> Option<LoadRestrictor> {
        match self {
            Engine::Flux => Some(LoadRestrictor::None),
            Engine::ArgoCd => argo::restrictor(argo_options),
            Engine::Kustomize => None,
        }
    }

    /// Returns whether it changes a kustomization by `kustomize edit`, but for patches.
    pub(super) fn runs_edits(self) -> bool {
        self == Engine::ArgoCd
    }

    /// Writes into a kustomization what an object changes in it, and no command of kustomize does.
    pub(super) fn edit(self, kustomization: &mut Map<String, Json>, build: &Build, is_root: bool) {
        match self {
            Engine::Flux => flux::edit(kustomization, build, is_root),
            Engine::ArgoCd => append(kustomization, "patches", list(build, "patches").to_vec()),
            Engine::Kustomize => {}
        }
    }

    /// Returns the arguments that it gives to kustomize.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        if self == Engine::Flux { &["--reorder=none"] } else { &[] }
    }
}

impl Target {
    /// Returns the files that its engine reads besides the directory that is deployed.
    pub(super) fn beside(&self, here: &Here) -> Vec<String> {
        match self.engine {
            Engine::ArgoCd => argo::override_files(&here.path, &self.object.name),
            Engine::Flux | Engine::Kustomize => Vec::new(),
        }
    }

    /// Returns whether its engine renders a file as part of a chart, or applies it as it is.
    pub(super) fn takes(&self, here: &Here, file: &str) -> bool {
        match (&here.found, self.engine) {
            (Found::Chart(directory), _) => path::is_in(file, directory),
            (Found::Directory(directory), Engine::ArgoCd) => {
                path::is_in(file, directory) && (self.build.directory.recurse || path::parent(file) == directory)
            }
            (Found::Directory(_), Engine::Flux) => here.scanned.iter().any(|one| one.path == file),
            _ => false,
        }
    }
}
