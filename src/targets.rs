//! Targets: the objects of Flux and Argo CD that name directories to build, and how each engine builds them. They are
//! found in the YAML files of a tree, without a network and without a build.
//!
//! [`find_from`] reads every YAML and JSON file that may contain such an object, binds each object to the repository
//! that it names, and inspects the path in the tree. A target that cannot be resolved stays a [`Target`] with the
//! reason; a file that cannot be read is in [`Targets::unread`]. Only directories that the configuration excludes are
//! left out silently.
//!
//! | module | content |
//! |---|---|
//! | `scan` | the YAML documents in which an engine is interested |
//! | `flux`, `argo` | the engines; the objects of each, as types: its `models` |
//! | [`chart`] | the arguments that engines give to helm |
//! | [`deployments`] | which targets deploy an object |
//! | `engine` | the questions that each engine answers |
//! | `identity` | which URLs are this repository |
//! | [`generated`] | the kustomization that an engine builds |
//! | `read_paths` | the paths that engines read |
//! | `target_dir` | the content of the tree at the path of a target |
//! | [`policy`] | pruning, waiting and deletion of deployed objects |
//! | `changers` | which objects a build may change before they are deployed |
//! | [`built`] | objects of engines as builds make them |
//! | `engine_versions` | which versions of the engines run |
//! | `undeployed` | which objects nothing deploys |
//! | `unread` | files that could not be read |
//! | [`elsewhere`] | deployments that no build of this tree has |
//! | [`affected`] | targets and roots that a change touches |
//! | `external_inputs` | inputs of builds that the tree lacks |

pub(crate) mod affected;
mod argo;
pub(crate) mod built;
mod changers;
pub(crate) mod chart;
pub(crate) mod deployments;
pub(crate) mod elsewhere;
mod engine;
mod engine_versions;
mod external_inputs;
mod flux;
pub(crate) mod generated;
mod identity;
pub(crate) mod policy;
mod read_paths;
mod scan;
mod target_dir;
mod undeployed;
mod unread;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::rc::Rc;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json};

use crate::config::Config;
pub(crate) use crate::config::EngineName;
use crate::git::LocalRepo;
use crate::graph::{Explored, FileId, Graph, RootId, Survey, TroubleKind};
use crate::kustomization::{Data, ProblemKind, Value, is_flux_object};
use crate::message::failure::{Failure, FailureKind, Result};
use crate::message::position::Position;
use crate::message::redact;
use crate::record::LoadRestrictor;
#[cfg(test)]
use crate::tree::overlay::OverlayTree;
use crate::tree::{Tree, path};

pub(crate) use argo::plain;
pub(crate) use argo::watched::{GENERATE_PATHS, generate_paths, unwatched};
pub(crate) use changers::readers;
pub(crate) use engine_versions::{Installed, installed};
pub(crate) use external_inputs::TargetState;
use flux::ignore::Ignores;
pub(crate) use flux::ignore::{FILE_NAME as IGNORE_NAME, Ignored};
pub(crate) use flux::variables;
pub use identity::Identity;
pub(crate) use read_paths::{MissingChart, inputs, missing_charts};
use scan::Document;
pub(crate) use scan::candidates;
pub(crate) use unread::{Unread, Why};

/// The identity of a target: an object of an engine, or an entry of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub(crate) struct ObjectRef {
    /// The file, from the top of the repository.
    pub file: String,
    /// The line on which it begins.
    pub line: usize,
    /// The kind, such as `Kustomization`; `target` for an entry of the configuration.
    pub kind: String,
    /// Its namespace; empty where nothing says it.
    pub namespace: String,
    pub name: String,
    /// The `ApplicationSet` that makes it.
    pub set: Option<String>,
    /// The directory that it deploys, if others of its set have its name.
    #[serde(skip)]
    pub apart: Option<String>,
    /// The build that made the object; `None` if it is deployed as written.
    pub built_by: Option<String>,
    /// The same without a line, so that edits of files do not change it.
    #[serde(skip)]
    pub maker: Option<String>,
}

/// Something that is deployed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Target {
    /// Who builds it.
    pub engine: EngineName,
    /// The identity of the target.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// The sha256 of all that the object and its source say, in hex.
    #[serde(skip)]
    pub digest: String,
    /// The objects that define its source.
    #[serde(skip)]
    pub sources: Vec<ObjectRef>,
    /// All that the object says, as JSON.
    #[serde(skip)]
    pub manifest: Rc<str>,
    /// The same as its file has it, if a build made the object. `None` if none did, or nothing tells the file.
    #[serde(skip)]
    pub written: Option<Rc<str>>,
    /// The position of its path, or else of the object.
    #[serde(skip)]
    pub spot: Position,
    /// The location of its directory.
    #[serde(flatten)]
    pub location: TargetLocation,
    /// How it is built.
    pub build: BuildSettings,
    /// The directory from which its object is deployed: that of its file, or of the build that makes it.
    #[serde(skip)]
    pub home: String,
    /// The build that may change the object before it is deployed, so that it may name something else.
    pub changed_by: Option<Changer>,
}

/// A build that may change an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Changer {
    /// The name: a kustomization, or the target that deploys one.
    pub name: String,
    /// Why the result of that build is unknown; `None` if it was not run.
    #[serde(serialize_with = "message")]
    pub not_built: Option<Failure>,
}

impl Changer {
    /// A build that was not run.
    fn new(name: String) -> Changer {
        Changer { name, not_built: None }
    }
}

#[expect(clippy::ref_option, reason = "serde calls it")]
fn message<S: Serializer>(failure: &Option<Failure>, to: S) -> std::result::Result<S::Ok, S::Error> {
    failure.as_ref().map(|failure| &failure.message).serialize(to)
}

/// The builds that were stopped, so that targets are not known.
pub(crate) fn stopped<'a>(targets: impl IntoIterator<Item = &'a Target>) -> impl Iterator<Item = &'a Failure> {
    let changers = targets.into_iter().filter_map(|target| target.changed_by.as_ref());
    changers.filter_map(|changer| changer.not_built.as_ref()).filter(|why| why.kind == FailureKind::Stopped)
}

/// Something that a build reaches, and that the tree does not hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub(crate) struct ExternalInput {
    /// The URL without secrets, or the path from the top.
    pub name: String,
    /// The known facts, such as `tag, locked 0123456789ab`.
    pub state: String,
    /// Whether it is on another host; else it cannot be used, as something that is missing.
    #[serde(skip)]
    pub is_remote: bool,
}

/// The location of the directory of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TargetLocation {
    /// In this repository.
    #[serde(rename = "here")]
    Local(TargetDir),
    /// In another repository, or in one that is not known: why.
    External(String),
    /// Only known in the cluster: why.
    Templated(String),
}

impl TargetLocation {
    /// A description of the location and its content for people, such as `apps/web at v1: another revision, not read`.
    pub(crate) fn described(&self) -> String {
        let dir = match self {
            TargetLocation::Local(dir) => dir,
            TargetLocation::External(why) => return format!("external: {why}"),
            TargetLocation::Templated(why) => return format!("templated: {why}"),
        };
        let TargetDir { revision, path, .. } = dir;
        let named = revision.name.as_ref().map_or(String::new(), |name| format!(" at {name}"));
        let content = match &dir.content {
            _ if !revision.is_this => "another revision, not read".to_owned(),
            PathContent::Kustomization(_) => "a kustomization".to_owned(),
            PathContent::Directory(_) => "a directory without a kustomization".to_owned(),
            PathContent::Chart(_) => "a chart".to_owned(),
            PathContent::Plugin(_) => "for a plugin".to_owned(),
            PathContent::Submodule(path) => format!("in the submodule {path}"),
            PathContent::Nothing(why) => format!("missing: {why}"),
        };
        format!("{}{named}: {content}", path::shown(path))
    }
}

/// A directory of this repository that is deployed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TargetDir {
    /// The directory as written.
    #[serde(skip)]
    pub written: String,
    /// The directory from the top, without `.` and `..`; empty for the top.
    #[serde(serialize_with = "path::serialize")]
    pub path: String,
    /// Which revision is deployed.
    pub revision: Revision,
    /// The content at the path.
    pub content: PathContent,
    /// The part of the repository that the engine sees; `None` for the whole repository.
    #[serde(skip)]
    pub artifact: Option<Rc<Artifact>>,
    /// The resources that Flux finds, if it generates the kustomization.
    #[serde(skip)]
    pub scanned: Vec<Resource>,
}

/// A resource that Flux finds in a directory without a kustomization.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Resource {
    /// Its path from the top of the repository.
    pub path: String,
    /// Whether it is a directory with a kustomization, else it is a file.
    pub is_root: bool,
}

impl TargetDir {
    /// Whether nothing is at the path that could be deployed.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self.content, PathContent::Nothing(_))
    }

    /// The pattern that leaves a file out of the artifact; `None` if it is included.
    pub(crate) fn left_out(&self, file: &str) -> Option<Ignored> {
        self.artifact.as_ref()?.ignores.exclusion(file)
    }

    /// The directory as messages name it.
    pub(crate) fn shown(&self) -> String {
        match self.written.as_str() {
            "" => "the top".to_owned(),
            written => format!("`{written}`"),
        }
    }
}

/// Which revision of this repository is deployed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Revision {
    /// The name as written: a branch, a tag, a commit; `None` for the default of the engine.
    pub name: Option<String>,
    /// Whether it may be the revision that is inspected: its branch, or a branch that is localized from it. Only then
    /// the tree says something about the deployment.
    pub is_this: bool,
    /// Whether it can never change: a commit, a tag, the digest of an artifact.
    #[serde(skip)]
    is_fixed: bool,
    /// The URL of the repository, if only the tree shows that it means this repository, or if that is the question.
    #[serde(skip)]
    url: Option<String>,
}

/// Branches below are made of others by localizing.
const LOCALIZED: &str = "localized/";

impl Revision {
    /// The one that is looked at.
    fn this() -> Revision {
        Revision { name: None, is_this: true, is_fixed: false, url: None }
    }

    /// Whether it is a branch that is localized.
    pub fn is_localized(&self) -> bool {
        let name = self.name.as_deref();
        name.is_some_and(|name| name.starts_with(LOCALIZED))
    }

    /// The name for messages.
    pub fn shown(&self) -> String {
        match self.name.as_deref() {
            None | Some("HEAD") => "the default branch".to_owned(),
            Some(name) => format!("`{name}`"),
        }
    }
}

/// The content at the path of a target.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PathContent {
    /// A kustomization root, at its real path.
    Kustomization(String),
    /// A directory without a kustomization, at its real path: Flux generates one, Argo CD takes the files.
    Directory(String),
    /// A Helm chart, at its real path.
    Chart(String),
    /// A directory that a plugin of Argo CD takes.
    Plugin(String),
    /// Something in the submodule at this path, whose files this repository does not hold.
    Submodule(String),
    /// Nothing, and why.
    #[serde(rename = "missing")]
    Nothing(String),
}

impl PathContent {
    /// The real path of the deployed content; `None` if this repository does not hold it.
    pub(crate) fn real_path(&self) -> Option<&str> {
        match self {
            PathContent::Kustomization(path)
            | PathContent::Directory(path)
            | PathContent::Chart(path)
            | PathContent::Plugin(path) => Some(path),
            PathContent::Submodule(_) | PathContent::Nothing(_) => None,
        }
    }
}

/// A source of Flux: the part of the repository that it packs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Artifact {
    /// The patterns that leave files out.
    ignores: Ignores,
    /// The directories from other sources: `spec.include[].toPath`.
    included: Vec<String>,
    /// Whether submodules are in it.
    has_submodules: bool,
}

impl Artifact {
    /// A text that is equal for artifacts with equal content, whatever the names of their objects.
    fn fingerprint(&self) -> String {
        format!("{:?} {} {:?}", self.included, self.has_submodules, self.ignores.fingerprint())
    }
}

/// Those that pack the same are equal.
impl PartialEq for Artifact {
    fn eq(&self, other: &Artifact) -> bool {
        self.fingerprint() == other.fingerprint()
    }
}

impl Eq for Artifact {}

/// How an engine builds a target.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize)]
pub(crate) struct BuildSettings {
    /// The files that a root may load, if the engine decides; `None` if that is unknown.
    pub load_restrictor: Option<LoadRestrictor>,
    /// The options of `kustomize build` from `argocd-cm`.
    pub options: Vec<String>,
    /// The variables that are filled in after the build.
    #[serde(skip)]
    pub variables: variables::Variables,
    /// The components that the object adds.
    pub components: Vec<AddedComponent>,
    /// The patches that it adds by their paths.
    pub patches: Vec<LocatedText>,
    /// Whether a component that is not there is left out.
    pub ignore_missing_components: bool,
    /// The changes of the object to the kustomization, under the names of the engine: `targetNamespace`, `namePrefix`,
    /// `nameSuffix`, `patches`, `images`, `commonLabels` and so on. Without `components`.
    pub overrides: Map<String, Json>,
    /// More paths, from the top, that may change the build, each with everything below it: files with values for a
    /// chart and patterns for components (of a pattern the directory that it begins with), submodules, and directories
    /// of which only the cluster knows whether they are read. An empty path is the whole tree.
    #[serde(skip)]
    pub more_inputs: Vec<String>,
    /// The URLs from which a chart takes more values.
    #[serde(skip)]
    pub remote_values: Vec<String>,
    /// How a chart is rendered, or why that is unknown; `None` if no object says it.
    #[serde(skip)]
    pub release: Option<Result<chart::Release, String>>,
    /// The arguments of `kustomize edit` with which the engine changes the kustomization, without components, or why
    /// they are not known; `None` if it runs none.
    #[serde(skip)]
    pub edits: Option<Result<Vec<Vec<String>>, String>>,
    /// Why not every object is known that a directory without a kustomization holds.
    #[serde(skip)]
    pub unread: Option<String>,
    /// How Argo CD reads a directory without a kustomization.
    #[serde(skip)]
    pub directory: argo::PlainDirectory,
}

/// A component that an object adds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct AddedComponent {
    /// As it is written.
    #[serde(flatten)]
    pub text: LocatedText,
    /// The content at its path; `None` for a URL, a pattern, and a variable that only the engine resolves.
    #[serde(skip)]
    pub content: Option<PathContent>,
    /// The roots that it matches, if it is a pattern for its engine.
    #[serde(skip)]
    pub matched: Vec<String>,
    /// Whether its engine leaves it out, since the object says that it may be missing, and nothing is there.
    #[serde(skip)]
    pub is_left_out: bool,
}

impl From<LocatedText> for AddedComponent {
    fn from(text: LocatedText) -> Self {
        AddedComponent { text, content: None, matched: Vec::new(), is_left_out: false }
    }
}

/// A text with its place.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct LocatedText {
    /// The text.
    pub text: String,
    /// The file with the text, from the top of the repository.
    pub file: String,
    #[serde(flatten)]
    pub position: Position,
}

/// A git generator: directories or files of this repository of which an ApplicationSet makes applications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitGenerator {
    /// The ApplicationSet.
    pub object: ObjectRef,
    /// Whether it takes files, else it takes directories.
    pub is_files: bool,
    /// The directory that its path is relative to, from the top of the repository.
    pub base: String,
    patterns: Vec<argo::Pattern>,
    /// Which revision it reads.
    pub revision: Revision,
}

/// Targets as their objects are written, before it is known which builds [change](Target::changed_by) them.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnresolvedTargets(Targets);

impl UnresolvedTargets {
    pub(crate) fn as_written(&self) -> &Targets {
        &self.0
    }
}

/// The targets of a tree.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Targets {
    /// Every target, by file, line, name and path.
    pub targets: Vec<Target>,
    /// The git generators that read this repository.
    pub generators: Vec<GitGenerator>,
    /// The files that could not be read.
    pub unread: Vec<Unread>,
    /// Whether no target is known to use this repository, but a path of one exists in it.
    pub assumes_this_repo: bool,
    /// Targets that are missing if their repository is this one, which the tree does not show: some of its paths exist,
    /// but not most.
    pub perhaps_missing: Vec<Target>,
    /// The files of objects that nothing deploys, each with the topmost directory of which nothing is deployed.
    pub undeployed: BTreeMap<String, String>,
    /// The options of `kustomize build` in the configuration of Argo CD; `None` if the tree does not have it.
    argo_options: Option<Vec<String>>,
    /// The files of the tree that hold objects of engines, and whether that is more than options of Argo CD.
    files: BTreeMap<String, bool>,
    /// Which builds the objects are taken from.
    builds: built::ParentBuilds,
    /// The used part of [`MOST_WORK`].
    work: usize,
    /// The used part of [`MOST_BYTES`].
    bytes: usize,
}

/// The targets of a tree, and the result of a walk over all of it.
pub(crate) struct DeployedTree {
    pub explored: Explored,
    pub targets: Targets,
}

/// How much all objects of a tree may make us do, in paths that are compared with a pattern.
const MOST_WORK: usize = 10_000_000;

/// How many paths a file weighs that is read.
const FILE: usize = 1000;

/// How much text they may make of templates, in bytes.
const MOST_BYTES: usize = 30_000_000;

impl Targets {
    /// Counts work, and returns whether it is within the limit.
    fn may_do(&mut self, work: usize) -> bool {
        self.work = self.work.saturating_add(work);
        self.work <= MOST_WORK
    }

    /// Counts bytes, and returns whether they are within the limit.
    fn has_room(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes <= MOST_BYTES
    }

    /// The targets in this repository at a revision that may be the inspected one, as their objects are written.
    pub(crate) fn local_targets(&self) -> impl Iterator<Item = (&Target, &TargetDir)> + Clone {
        let targets = self.targets.iter();
        targets.filter_map(|target| Some((target, target.local_dir()?)))
    }

    /// A sentence about how many targets deploy the branch `name`, as `is_branch` tells of their revisions, with one
    /// target that does not: a localized branch has no effect before an object names it. `None` without
    /// [local targets](Self::local_targets); only these count.
    pub(crate) fn deployed_from(&self, name: &str, is_branch: impl Fn(&Revision) -> bool) -> Option<String> {
        let (from, others): (Vec<_>, Vec<_>) = self.local_targets().partition(|(_, dir)| is_branch(&dir.revision));
        let all = from.len() + others.len();
        let other = others.first().map_or(String::new(), |(Target { object, .. }, dir)| {
            let (full_name, revision) = (object.full_name(), dir.revision.shown());
            format!("; {full_name} ({}:{}) reads {revision}", object.file, object.line)
        });
        let targets = if all == 1 { "target" } else { "targets" };
        let from = from.len();
        (all > 0).then(|| format!("deployed from {name}: {from} of {all} {targets}{other}"))
    }

    /// The kustomization roots that are deployed, by their real paths.
    pub(crate) fn roots(&self) -> BTreeSet<String> {
        self.local_targets().flat_map(|(target, dir)| target.roots(dir)).map(str::to_owned).collect()
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.kind, self.full_name(), self.location_text())
    }
}

impl ObjectRef {
    /// The kind of entries of the configuration.
    pub(crate) const LISTED: &str = "target";

    /// Whether it is an entry of the configuration.
    pub(crate) fn is_listed(&self) -> bool {
        self.kind == ObjectRef::LISTED
    }

    /// An object without a namespace, as its file has it.
    fn of(file: &str, line: usize, kind: &str, name: String) -> ObjectRef {
        let [file, kind] = [file, kind].map(str::to_owned);
        ObjectRef { file, line, kind, name, ..ObjectRef::default() }
    }

    /// The namespace and the name, as `kubectl` prints them.
    pub(crate) fn full_name(&self) -> String {
        policy::qualified(&self.namespace, &self.name)
    }

    /// A suffix that distinguishes it from objects with the same name; empty if there are none.
    pub(crate) fn own_directory(&self) -> String {
        self.apart.as_ref().map_or(String::new(), |directory| format!(", {}", path::shown(directory)))
    }

    /// The name and the location of the set that generates it; `None` if there is none.
    pub(crate) fn set_text(&self) -> Option<String> {
        let ObjectRef { file, line, set, .. } = self;
        set.as_ref().map(|set| format!("ApplicationSet {set} ({file}:{line})"))
    }

    /// The kind in its file.
    fn written_kind(&self) -> &str {
        if self.set.is_some() { argo::SET } else { &self.kind }
    }

    /// The location of the object, with its set, the directory that distinguishes it, and the build that made it.
    pub(crate) fn location_text(&self) -> String {
        let mut path = format!("{}:{}", self.file, self.line);
        if let Some(set) = &self.set {
            path.push_str(&format!(", of ApplicationSet {set}"));
        }
        path.push_str(&self.own_directory());
        if let Some(by) = &self.built_by {
            path.push_str(&format!(", built by {by}"));
        }
        path
    }
}

impl BuildSettings {
    /// The components and patches that the object adds, as they are written.
    fn added(&self) -> BTreeSet<&str> {
        let components = self.components.iter().map(|component| &component.text);
        components.chain(&self.patches).map(|component| component.text.as_str()).collect()
    }

    /// The components that the object adds, without those that its engine skips.
    pub(crate) fn components(&self) -> impl Iterator<Item = &AddedComponent> {
        self.components.iter().filter(|component| !component.is_left_out)
    }
}

impl Target {
    /// The target of a directory of the tree that no object deploys: an entry of the configuration names it, or it is a
    /// root that is built by itself.
    fn of_directory(
        tree: &dyn Tree,
        engine: EngineName,
        directory: &str,
        object: ObjectRef,
        load_restrictor: Option<LoadRestrictor>,
    ) -> Result<Target> {
        let dir = target_dir::inspect_path(tree, engine, "", directory, Revision::this(), None)?;
        let build = BuildSettings { load_restrictor, ..BuildSettings::default() };
        let (location, spot) = (TargetLocation::Local(dir), Position::new(object.line, 1));
        // Without an object, only the location and the options make the digest.
        let value = Value::new(spot, Data::Null);
        let document = Document { object, value, home: String::new(), is_template: false, written: None };
        document.target(tree, engine, spot, location, build)
    }

    /// Why its output is unknown. `None` if it is known, and for a `HelmRelease`. Unless a build may change the object,
    /// also `None` if the path is missing, or in another repository.
    pub(crate) fn why_unknown(&self) -> Option<String> {
        // helm, not kustomize, renders a release: [`chart::release`] tells why that is unknown.
        if self.engine.leads_to_no_root(&self.object.kind) {
            return None;
        }
        if let Some(changer) = &self.changed_by {
            return Some(format!("{} may change it", changer.name));
        }
        let is_missing = self.local_dir().is_some_and(TargetDir::is_missing);
        // Nothing is built from a missing path, whatever the object leaves open.
        self.why_undefined().filter(|_| !is_missing)
    }

    /// Why its object and the tree do not define the build, which only the cluster or somebody else does; `None` if
    /// they define it, or if it is external. Why a chart cannot be rendered is not among these: [`chart::release`].
    pub(crate) fn why_undefined(&self) -> Option<String> {
        match &self.location {
            TargetLocation::External(_) => None,
            TargetLocation::Templated(why) => Some(why.clone()),
            TargetLocation::Local(dir) => {
                let unread = unfilled(self.build.added()).or_else(|| self.build.unread.clone());
                unread.or_else(|| match &dir.content {
                    PathContent::Submodule(path) => Some(format!("`{path}` is a submodule")),
                    _ => None,
                })
            }
        }
    }

    /// Whether it stands for targets whose names only the cluster knows.
    fn has_open_name(&self) -> bool {
        // The kinds of Flux and Argo CD that make objects.
        self.object.kind.ends_with("Set") || unfilled([&*self.object.name]).is_some()
    }

    /// The URL of its repository, where only the tree tells that it is this one.
    pub(crate) fn url(&self) -> Option<&str> {
        self.local_dir()?.revision.url.as_deref()
    }

    /// The directory in this repository, if the revision may be the inspected one.
    pub(crate) fn local_dir(&self) -> Option<&TargetDir> {
        match &self.location {
            TargetLocation::Local(dir) if dir.revision.is_this => Some(dir),
            _ => None,
        }
    }

    /// The kustomization roots that its engine builds, by their real paths: its own, or those that Flux finds in a
    /// directory without a kustomization, and the components that the object adds.
    pub(crate) fn roots<'a>(&'a self, dir: &'a TargetDir) -> impl Iterator<Item = &'a str> {
        let components = self.build.components().filter_map(|component| component.content.as_ref());
        let own = std::iter::once(&dir.content).chain(components).filter_map(|content| match content {
            PathContent::Kustomization(root) => Some(root),
            _ => None,
        });
        own.chain(self.build.components().flat_map(|component| &component.matched))
            .chain(dir.scanned.iter().filter(|resource| resource.is_root).map(|resource| &resource.path))
            .map(String::as_str)
    }

    /// Those of [`Self::roots`] that a walk over the tree came to.
    pub(crate) fn walked<'a>(&'a self, dir: &'a TargetDir, graph: &'a Graph) -> impl Iterator<Item = RootId> {
        self.roots(dir).filter_map(|root| graph.user_root(root))
    }

    /// The target and its location, such as `Flux Kustomization apps (clusters/prod/apps.yaml:3)`, and the build that
    /// made it.
    pub(crate) fn by(&self) -> String {
        format!("{} ({})", self.name(), self.object.location_text())
    }

    /// The engine, kind and name of the target.
    pub(crate) fn title(&self) -> String {
        let ObjectRef { file, line, .. } = &self.object;
        format!("{} ({file}:{line}{})", self.name(), self.object.own_directory())
    }

    /// The name and the file of the target: a text that does not change with the lines of the file.
    pub(crate) fn name_and_file(&self) -> String {
        format!("{} ({}{})", self.name(), self.object.file, self.object.own_directory())
    }

    /// The name of the target, independent of its location and of the build that makes it.
    pub(crate) fn name(&self) -> String {
        let ObjectRef { kind, name, .. } = &self.object;
        format!("{} {kind} {name}", self.engine.name())
    }
}

/// The first text that is unknown here; `None` if all are known.
fn unfilled<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<String> {
    // A template has `{{`, and a variable of Flux `${`, but Flux reads `$${` as text.
    let text = texts.into_iter().find(|text| text.contains("{{") || text.replace("$${", "").contains("${"))?;
    Some(format!("`{}` is substituted elsewhere", redact::url(text)))
}

/// The revision that a target deploys, if that is known, and not the one that is looked at.
pub(crate) fn at_other_revision(target: &Target) -> Option<&str> {
    match &target.location {
        TargetLocation::Local(dir) if !dir.revision.is_this => dir.revision.name.as_deref(),
        _ => None,
    }
}

/// Finds the targets of a tree. `identity` is called only if an object names a repository.
#[cfg(test)]
pub(crate) fn find(
    tree: &OverlayTree,
    config: &Config,
    identity: &dyn Fn() -> Result<Identity>,
) -> Result<UnresolvedTargets> {
    find_from(&Survey::of(Rc::new(tree.clone())), &[], config, identity)
}

/// The roots that are deployed, as objects are written. Empty if the configuration leaves no roots out: then each root
/// is a starting point anyway, and nobody needs the search.
pub(crate) fn deployed_roots(repo: &Rc<LocalRepo>, survey: &Survey, config: &Config) -> Result<BTreeSet<String>> {
    if config.include.is_empty() && config.exclude.is_empty() {
        return Ok(BTreeSet::new());
    }
    let kustomizations = survey.tree().kustomizations()?;
    let targets = find_in(survey, &[], &kustomizations, config, &|| Identity::of_any_clone(repo, config))?;
    Ok(targets.as_written().roots())
}

/// Finds the targets of a tree as written. The walk starts at the roots among `kustomizations` that `paths` contain, or
/// at all of them if there are no paths.
pub(crate) fn find_in(
    survey: &Survey,
    paths: &[String],
    kustomizations: &[String],
    config: &Config,
    identity: &dyn Fn() -> Result<Identity>,
) -> Result<UnresolvedTargets> {
    // An error is dropped: files of objects are found without a walk, and whoever walks from these starts reports it.
    let starts = config.starting_points(&*survey.tree(), paths, kustomizations, []);
    find_from(survey, &starts.unwrap_or_default(), config, identity)
}

/// Finds the targets of a tree as written: the only search for them. It reads the files that look as if they held
/// objects, and those that the roots in `directories` list as resources, whatever their names are.
pub(crate) fn find_from(
    survey: &Survey,
    directories: &[String],
    config: &Config,
    identity: &dyn Fn() -> Result<Identity>,
) -> Result<UnresolvedTargets> {
    let tree = &*survey.tree();
    // The search begins before the walk, and runs beside it.
    let candidates = candidates(tree)?;
    let mut more = survey.listed(directories);
    let is_left_out = |file: &String| config.leaves_out(path::parent(file));
    let (left_out, mut read): (BTreeSet<String>, BTreeSet<String>) = candidates()?.into_iter().partition(is_left_out);
    let mut last: Option<Targets> = None;
    // Each round may show more files, which may define more targets, until one shows nothing new.
    loop {
        // The search has already looked into files with a usual name that are not excluded.
        more.retain(|file| !read.contains(file) && (!scan::is_searched(file) || is_left_out(file)));
        if let Some(targets) = last.take_if(|_| more.is_empty()) {
            return Ok(UnresolvedTargets(targets));
        }
        read.append(&mut more);
        let targets = targets_of_scan(tree, config, identity, scan::scan(tree, &read)?)?;
        // Excluded files count if a target applies them, or a deployed root lists them.
        more.extend(
            left_out
                .difference(&read)
                .filter(|file: &&String| {
                    let mut local_targets = targets.local_targets();
                    // The cheap question first.
                    local_targets.any(|(target, dir)| {
                        matches!(&dir.content, PathContent::Directory(top) if path::is_in(file, top))
                            && target.takes(dir, file)
                    })
                })
                .cloned(),
        );
        // Only roots that the configuration leaves out: any other root is in `directories`, or outside of the paths
        // that the user named.
        let roots: Vec<String> = targets.roots().into_iter().filter(|root| !config.may_start_in(root)).collect();
        if !roots.is_empty() {
            more.extend(survey.listed(&roots));
        }
        last = Some(targets);
    }
}

/// Finds the targets that the objects of a scan define, and those that are deployed without an object.
fn targets_of_scan(
    tree: &dyn Tree,
    config: &Config,
    identity: &dyn Fn() -> Result<Identity>,
    scan: scan::Scan,
) -> Result<Targets> {
    let mut targets = Targets { unread: scan.unread, ..Targets::default() };
    for object in &scan.objects {
        *targets.files.entry(object.object.file.clone()).or_default() |= !object.has_options();
    }
    // Only objects name repositories: without any, the remotes are not looked up.
    if !scan.objects.is_empty() {
        add_defined(tree, identity()?, &scan.objects, &mut targets)?;
    }
    argo::find_unclaimed_overrides(tree, config, &mut targets)?;
    target_dir::add_declared(tree, config, &mut targets)?;
    // If nothing in the tree sets the load restrictor of Argo CD or of plain kustomize, the configuration does.
    let unset = targets.targets.iter_mut().filter(|target| target.build.load_restrictor.is_none());
    unset.for_each(|target| target.build.load_restrictor = Some(config.load_restrictor));
    // An old Flux takes an unset variable for empty. Only targets with variables need to know which one runs.
    if targets.targets.iter().any(|target: &Target| !target.build.variables.is_empty())
        && !variables::are_strict(tree, &installed(tree, config, &targets)?)
    {
        targets.targets.iter_mut().for_each(|target| target.build.variables.allow_unset());
    }
    // Reports and digests must not depend on the order of the search.
    targets.targets.sort_by_cached_key(|target| (target.object.clone(), target.spot));
    tell_apart(&mut targets.targets);
    targets.unread.sort();
    targets.unread.dedup();
    Ok(targets)
}

/// Adds the targets that objects define.
fn add_defined(
    tree: &dyn Tree,
    mut identity: Identity,
    objects: &[scan::Document],
    targets: &mut Targets,
) -> Result<()> {
    // As if every URL were this repository: the paths that exist then tell which URL is. It takes as long as all of the
    // rest, so it is left out if the configuration names the URLs.
    let any_url = identity.of_any_url();
    let any = if identity.is_declared() { None } else { Some(defined_by(tree, &any_url, objects)?) };
    targets.perhaps_missing = identity.add_urls_shown_by(any.iter().flat_map(|any| &any.targets));
    EngineName::ALL.iter().try_for_each(|engine| engine.find(tree, &identity, objects, targets))?;
    // If nothing is deployed from this repository, a missing entry of `repository` may be the reason.
    if !targets.targets.iter().any(|target| matches!(target.location, TargetLocation::Local(_))) {
        let any = any.map_or_else(|| defined_by(tree, &any_url, objects), Ok)?;
        // This is only a hint for people. The top exists in every repository, so it does not count as a path.
        targets.assumes_this_repo = any.local_targets().any(|(_, dir)| !dir.path.is_empty() && !dir.is_missing());
    }
    target_dir::look_on_localized_branches(tree, &identity, targets)?;
    target_dir::mark_missing_submodules(targets);
    Ok(())
}

/// The targets that objects define for an identity of the repository.
fn defined_by(tree: &dyn Tree, identity: &Identity, objects: &[scan::Document]) -> Result<Targets> {
    let mut targets = Targets::default();
    EngineName::ALL.iter().try_for_each(|engine| engine.find(tree, identity, objects, &mut targets))?;
    Ok(targets)
}

/// Notes the directories of targets to which their set gives one name, so that messages can distinguish them.
fn tell_apart(targets: &mut [Target]) {
    // Several sources of one application are at several positions of the template.
    let mut named: BTreeMap<(ObjectRef, Position), BTreeSet<String>> = BTreeMap::new();
    for target in targets.iter().filter(|target| target.object.set.is_some()) {
        if let TargetLocation::Local(dir) = &target.location {
            named.entry((target.object.clone(), target.spot)).or_default().insert(dir.path.clone());
        }
    }
    for target in targets {
        if let TargetLocation::Local(dir) = &target.location
            && named.get(&(target.object.clone(), target.spot)).is_some_and(|directories| directories.len() > 1)
        {
            target.object.apart = Some(dir.path.clone());
        }
    }
}

/// The files that are named like a kustomization, but are objects of Flux that nothing builds. They are not
/// kustomizations with an error, so callers leave out their troubles, and do not count them as roots. `deployed` are
/// the directories of the roots that targets build.
pub(crate) fn flux_objects(explored: &Explored, deployed: &BTreeSet<String>) -> HashSet<FileId> {
    let candidates: HashSet<FileId> = explored
        .troubles
        .iter()
        .filter(|trouble| trouble.kind == TroubleKind::Problem(ProblemKind::WrongKind))
        .filter_map(|trouble| explored.graph.file_at(trouble.at))
        .filter(|file| is_flux_object(&explored.graph.bytes(*file)))
        .collect();
    if candidates.is_empty() {
        return candidates;
    }
    // If a reference or a target leads to one, a root is expected, and `kustomize build` refuses it.
    let graph = &explored.graph;
    let referenced = graph.root_ids().flat_map(|root| graph.referenced_roots(root)).map(|(_, root)| root);
    let built = referenced.chain(deployed.iter().filter_map(|directory| graph.user_root(directory)));
    let built: HashSet<FileId> = built.map(|root| graph.roots[root].file).collect();
    candidates.difference(&built).copied().collect()
}

#[cfg(test)]
mod tests;
