//! A build of a tree: of a root as it is, or as an engine builds it.

use std::rc::Rc;

use serde_json::json;

use super::builds::Wanted;
use super::roots::Built;
use crate::config::{Config, FILE_NAME};
use crate::kustomization::FILE_NAMES;
use crate::message::failure::{Failure, FailureKind, Failures, Result};
use crate::record::LoadRestrictor;
use crate::targets::built::Builder;
use crate::targets::generated::{ANY_FILE, Generated, generated};
use crate::targets::plain::plain;
use crate::targets::variables::Variables;
use crate::targets::{PathContent, Target, TargetDir, TargetLocation, chart};
use crate::tree::overlay::OverlayTree;
use crate::tree::{Entry, SharedTree, path};
use crate::workspace::Workspace;

/// The subject of a build: a kustomization or a chart, in the tree that whoever builds it gets to see.
#[derive(Clone)]
pub(crate) struct BuildSpec {
    pub(super) tree: SharedTree,
    pub(super) directory: String,
    /// The path of the kustomization that [`with`](Self::with) and edits replace; empty if neither is used.
    pub(super) file: String,
    /// The arguments of `kustomize edit` that changes it first, each time.
    pub(super) edits: Vec<Vec<String>>,
    /// The arguments of kustomize or helm.
    pub(super) arguments: Vec<String>,
    pub(super) by: By,
    /// The variables that are filled in afterwards.
    pub(super) variables: Variables,
}

/// The program that builds a subject.
#[derive(Clone)]
pub(super) enum By {
    Kustomize,
    /// helm, with values, and why a cluster may get another output; `None` if nothing indicates that.
    Helm(Vec<Vec<u8>>, Option<String>),
    /// No program: the engine applies these bytes as they are.
    Plain(Vec<u8>),
}

/// The objects of engines in the output of a build that has only these; fails if a cluster may get others.
pub(crate) fn objects(subject: &Wanted, built: Built) -> Result<Vec<u8>, Failures> {
    match subject {
        Ok(Some(BuildSpec { by: By::Helm(_, Some(why)), .. })) => Err(Failure::new(why).into()),
        _ => Ok(built?.stdout),
    }
}

impl BuildSpec {
    /// The build of the root in a directory as it is.
    pub(crate) fn root(workspace: &Workspace, directory: &str) -> BuildSpec {
        let arguments = match workspace.config.load_restrictor {
            LoadRestrictor::None => vec![ANY_FILE.to_owned()],
            LoadRestrictor::RootOnly => Vec::new(),
        };
        BuildSpec::new(workspace.tree.clone(), directory, arguments, By::Kustomize)
    }

    /// The build of a part of another build, to compare it by itself: of the root in a directory, or of a file as the
    /// only resource of a new root.
    pub(super) fn part(workspace: &Workspace, part: &str) -> Result<BuildSpec> {
        let tree = workspace.tree.clone();
        let is_root = tree.entry(part)? == Some(Entry::Directory);
        let directory = if is_root { part.to_owned() } else { format!("{part}.alone") };
        let subject = BuildSpec::new(tree, &directory, vec![ANY_FILE.to_owned()], By::Kustomize);
        if is_root {
            return Ok(subject);
        }
        // The new root lies beside the file, so it reads a file outside of itself.
        let text = json!({"resources": [format!("../{}", path::name(part))]}).to_string();
        Ok(BuildSpec { file: path::join(&directory, FILE_NAMES[0]), ..subject }.with(text.as_bytes()))
    }

    /// A build without a kustomization of its own, edits and variables.
    fn new(tree: SharedTree, directory: &str, arguments: Vec<String>, by: By) -> BuildSpec {
        let (directory, file, variables) = (directory.to_owned(), String::new(), Variables::default());
        BuildSpec { tree, directory, file, edits: Vec::new(), arguments, by, variables }
    }

    /// The build of objects of engines in a tree, or why it cannot be built here.
    pub(crate) fn of_builder(builder: &Builder, tree: &SharedTree, config: &Config) -> Result<BuildSpec> {
        match &builder.made {
            Some(made) => BuildSpec::generated(tree.clone(), made),
            None => BuildSpec::deployed(tree, config, &builder.target),
        }
    }

    /// The build of a target in a tree by its engine, or why it cannot be built here.
    pub(crate) fn deployed(tree: &SharedTree, config: &Config, target: &Target) -> Result<BuildSpec> {
        let dir = match &target.location {
            TargetLocation::Local(dir) => dir,
            TargetLocation::External(why) | TargetLocation::Templated(why) => return Err(Failure::new(why)),
        };
        if let Some(why) = target.elsewhere().or_else(|| target.why_undefined()) {
            return Err(Failure::new(why));
        }
        let seen = seen_by(target, dir, tree)?;
        // `generated` is the kustomization of every build with kustomize: the one at the path, with the changes of the
        // object, or the one that Flux makes from the files that it sees. Only targets without kustomize go on.
        if let Some(made) = generated(&*seen, target, dir)? {
            return BuildSpec::generated(seen, &made);
        }
        // A chart is not a plain directory: `classify` decides that, in the order of the engine.
        if let PathContent::Chart(directory) = &dir.content {
            return BuildSpec::chart(config, seen, target, directory);
        }
        let plain = plain(&*seen, target, dir)?.ok_or_else(|| match &dir.content {
            PathContent::Nothing(why) => Failure::new(why),
            _ => Failure::new(format!("kustomize does not build `{}`", path::shown(&dir.path))),
        })?;
        Ok(BuildSpec::new(seen, &dir.path, Vec::new(), By::Plain(plain)))
    }

    /// The build of a chart by its engine, with helm.
    fn chart(config: &Config, tree: SharedTree, target: &Target, directory: &str) -> Result<BuildSpec> {
        if !config.helm {
            return Err(Failure::new("it is a Helm chart, and `helm` is off")
                .hint(format!("write `helm: true` into {FILE_NAME}")));
        }
        let release = chart::release(target)?;
        let depends_on_cluster = chart::why_cluster_differs(&*tree, target, &release, directory)?;
        let by = By::Helm(chart::read_values(&*tree, target, &release, directory)?, depends_on_cluster);
        let mut seen = OverlayTree::new(tree);
        // helm reads the values of the chart whenever the file is there.
        if release.replaces_own {
            seen.remove(&path::join(directory, "values.yaml"));
        }
        Ok(BuildSpec::new(Rc::new(seen), directory, release.arguments, by))
    }

    /// The build of a directory of a tree by its engine, or why it is unknown.
    pub(crate) fn generated(tree: SharedTree, made: &Generated) -> Result<BuildSpec> {
        let Generated { directory, arguments, variables, edits, .. } = made.clone();
        let edits = edits.map_err(|why| Failure::new(why).because(FailureKind::NotKnown))?;
        let file = path::join(&directory, made.file_name);
        let subject =
            BuildSpec { file, edits, variables, ..BuildSpec::new(tree, &directory, arguments, By::Kustomize) };
        Ok(if made.is_changed { subject.with(&made.text) } else { subject })
    }

    /// The same build with another text of the kustomization.
    pub(super) fn with(self, text: &[u8]) -> BuildSpec {
        let mut tree = OverlayTree::new(self.tree.clone());
        tree.add_file(&self.file, text);
        BuildSpec { tree: Rc::new(tree), ..self }
    }
}

/// The tree as the engine of a target sees it: the artifact of Flux lacks ignored files and links. If nothing is
/// hidden, it is the very tree of the roots: `Builds::write` compares the pointers, and shares one walk and one copy
/// among these builds.
fn seen_by(target: &Target, dir: &TargetDir, tree: &SharedTree) -> Result<SharedTree> {
    if !target.engine.packs() {
        return Ok(tree.clone());
    }
    let mut hidden = Vec::new();
    for path in tree.below("")? {
        if tree.entry(&path)?.is_some_and(|entry| target.hides(dir, &path, entry)) {
            hidden.push(path);
        }
    }
    if hidden.is_empty() {
        return Ok(tree.clone());
    }
    let mut packed = OverlayTree::new(tree.clone());
    hidden.iter().for_each(|path| packed.remove(path));
    Ok(Rc::new(packed))
}
