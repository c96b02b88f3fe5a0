//! What builds make of the objects in the tree: an overlay for an app of apps patches the paths of its applications, a
//! parent those of its children. Several overlays of one base make several objects of one.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::generated::{Generated, generated};
use super::reaches::Beyond;
use super::reference_tree::ReferenceTree;
use super::scan::{self, Document, Scan};
use super::settle::{files_of, readers};
use super::{Identity, Object, Reached, Target, Targets, Why};
use crate::config::Config;
use crate::graph::inputs::{Input, Inputs};
use crate::graph::{Explored, Graph, RootId};
use crate::kustomization::Kind;
use crate::message::failure::Result;
use crate::record::LoadRestrictor;
use crate::tree::{Tree, path};

/// How often objects that builds make may deploy others that are to be built.
const DEEPEST: usize = 10;

/// How many objects of engines are read in what one build makes.
const MOST: usize = 100_000;

/// The option of `kustomize build` that lets a root load any file.
const ANY_FILE: &str = "--load-restrictor=LoadRestrictionsNone";

/// Why objects of a build are not known.
const NOT_TEXT: &str = "what it makes is not UTF-8";

/// A build that deploys objects of the tree.
#[derive(Debug, Clone)]
pub(crate) struct Builder {
    /// Its name: the kustomization, or what deploys a changed one.
    pub by: String,
    /// The directories of the roots that it builds.
    pub roots: Vec<String>,
    /// What it builds.
    pub made: Generated,
    /// What it reaches that the tree does not hold.
    pub reaches: Vec<Reached>,
    /// Where an object stands of which no single one in the tree is the source.
    place: (String, usize),
    /// The files of the tree that it reads.
    files: BTreeSet<String>,
}

/// What a build made: its output, or why there is none.
pub(crate) type Output = std::result::Result<Vec<u8>, String>;

/// The builds from which objects are taken.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Builds {
    /// The names of those that succeeded.
    pub(super) done: BTreeSet<String>,
    /// Why the objects in a file are not known, by file.
    pub(super) failed: BTreeMap<String, String>,
    /// The files that all of them read.
    files: BTreeSet<String>,
}

impl Targets {
    /// Returns these targets with objects as the builds that change them make them, and the objects that these deploy in
    /// turn. `explored` is a walk over all of the tree; `run` builds.
    pub(crate) fn built(
        mut self,
        explored: &Explored,
        config: &Config,
        identity: &dyn Fn() -> Result<Identity>,
        mut run: impl FnMut(&[&Builder]) -> Result<Vec<Output>>,
    ) -> Result<Targets> {
        self.settle(&explored.graph);
        let mut known: BTreeMap<String, Output> = BTreeMap::new();
        for _ in 0..DEEPEST {
            let builders = self.builders(explored, config.load_restrictor)?;
            let new: Vec<&Builder> = builders.iter().filter(|one| !known.contains_key(&one.by)).collect();
            if new.is_empty() {
                break;
            }
            let outputs = run(&new)?;
            known.extend(new.into_iter().map(|one| one.by.clone()).zip(outputs));
            let built = builders.iter().filter_map(|one| Some((one, known.get(&one.by)?)));
            self = find_built(&*explored.graph.sources[0].tree, config, identity, &self, built)?;
            self.settle(&explored.graph);
        }
        Ok(self)
    }

    /// Returns the builds that show what becomes of the objects that something may change: for each file of those, the
    /// targets that deploy it, and the topmost roots that nothing here deploys. Those from which objects are taken
    /// already are among them.
    fn builders(&self, explored: &Explored, load_restrictor: LoadRestrictor) -> Result<Vec<Builder>> {
        let graph = &explored.graph;
        let changed = || self.targets.iter().filter(|one| one.changed_by.is_some());
        let files = changed().flat_map(Target::object_files);
        let mut wanted: BTreeSet<String> = files.map(str::to_owned).collect();
        wanted.extend(self.builds.files.iter().cloned());
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let users = graph.users();
        let mut builders = loop {
            let above = readers(graph, &|file| wanted.contains(file));
            let mut builders = self.deploying(graph, &above, &wanted)?;
            let deployed: HashSet<String> = builders.values().flat_map(|one| one.roots.clone()).collect();
            for root in above {
                let found = &graph.roots[root];
                let is_top = users[root].is_empty() && found.kind != Some(Kind::Component);
                if is_top && !deployed.contains(&found.directory) {
                    let builder = plain(graph, root, load_restrictor);
                    builders.insert(builder.by.clone(), builder);
                }
            }
            let before = wanted.len();
            // Whoever reads a file of these may read another one with objects.
            let read = builders.values().flat_map(|builder| &builder.files);
            wanted.extend(read.filter(|file| self.files.contains(*file)).cloned());
            if wanted.len() == before {
                break builders;
            }
        };
        let reference_tree = ReferenceTree::of(explored, [], false)?;
        let beyond = Beyond::new(&reference_tree);
        for builder in builders.values_mut() {
            builder.reaches = beyond.of(builder.roots.iter().map(String::as_str));
        }
        Ok(builders.into_values().collect())
    }

    /// Returns the files of the tree that have something to do with an engine.
    fn scanned(&self) -> Vec<String> {
        let unread = self.unread.iter().map(|unread| &unread.file);
        let files: BTreeSet<&String> = self.files.iter().chain(unread).collect();
        files.into_iter().cloned().collect()
    }

    /// Returns the targets that deploy one of some files, as builds by their names.
    fn deploying(
        &self,
        graph: &Graph,
        above: &BTreeSet<RootId>,
        files: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, Builder>> {
        let known = graph.own_roots();
        let tree = &*graph.sources[0].tree;
        let mut builders = BTreeMap::new();
        for (target, here) in self.here().filter(|(target, _)| target.changed_by.is_none()) {
            let roots: Vec<String> = target.roots(here).map(str::to_owned).collect();
            let ids = roots.iter().filter_map(|root| known.get(root.as_str()));
            let ids: Vec<RootId> = ids.copied().collect();
            let may_read = here.scanned.iter().any(|one| files.contains(&one.path));
            if !may_read && !ids.iter().any(|id| above.contains(id)) {
                continue;
            }
            let Some(made) = generated(tree, target, here)? else {
                continue;
            };
            let mut read: BTreeSet<String> = made.files.iter().cloned().collect();
            read.extend(files_of(graph, ids).into_iter().map(str::to_owned));
            if read.is_disjoint(files) {
                continue;
            }
            let file = path::join(&made.directory, made.file_name);
            let (by, place) = if made.is_changed {
                let object = &target.object;
                (target.builder(), (object.file.clone(), object.line))
            } else {
                (tree.label(&file), (file, 1))
            };
            builders.entry(by.clone()).or_insert(Builder { by, roots, made, reaches: Vec::new(), place, files: read });
        }
        Ok(builders)
    }
}

/// Returns what builds read of the tree of a walk: everything, where an engine changes what is built.
pub(crate) fn inputs_of(graph: &Graph, builders: &[&Builder]) -> Result<Vec<Input>> {
    if builders.iter().any(|builder| builder.made.is_changed) {
        return Ok(vec![Input::Below(String::new())]);
    }
    let known = graph.own_roots();
    let built = builders.iter().flat_map(|builder| &builder.roots);
    let built = built.filter_map(|directory| known.get(directory.as_str()).copied());
    let inputs = Inputs::of(graph);
    let mut all = Vec::new();
    for root in graph.insisted(built) {
        all.extend(inputs.of_root(root)?.own);
    }
    Ok(all)
}

/// Returns the build of a root as it is.
fn plain(graph: &Graph, root: RootId, load_restrictor: LoadRestrictor) -> Builder {
    let found = &graph.roots[root];
    let file = path::join(&found.directory, found.file_name);
    let arguments = match load_restrictor {
        LoadRestrictor::None => vec![ANY_FILE.to_owned()],
        LoadRestrictor::RootOnly => Vec::new(),
    };
    Builder {
        by: graph.label(found.file),
        roots: vec![found.directory.clone()],
        made: Generated {
            directory: found.directory.clone(),
            file_name: found.file_name,
            text: graph.bytes(found.file).to_vec(),
            is_changed: false,
            files: Vec::new(),
            arguments,
        },
        reaches: Vec::new(),
        place: (file, 1),
        files: files_of(graph, [root]).into_iter().map(str::to_owned).collect(),
    }
}

/// Finds what is deployed, as [`find`](super::find) did `before`, with objects as builds made them. Where one of the builds
/// that deploy an object failed, the object is looked at as its file has it, too.
fn find_built<'a>(
    tree: &dyn Tree,
    config: &Config,
    identity: &dyn Fn() -> Result<Identity>,
    before: &Targets,
    built: impl Iterator<Item = (&'a Builder, &'a Output)>,
) -> Result<Targets> {
    let mut scan = scan::scan(tree, config, &before.scanned())?;
    let mut builds = Builds::default();
    let mut replaced: BTreeSet<&str> = BTreeSet::new();
    let mut made = Vec::new();
    for (builder, output) in built {
        builds.files.extend(builder.files.iter().cloned());
        let text =
            output.as_ref().map_err(String::as_str).and_then(|bytes| std::str::from_utf8(bytes).map_err(|_| NOT_TEXT));
        match text {
            Ok(text) => {
                builds.done.insert(builder.by.clone());
                replaced.extend(builder.files.iter().map(String::as_str));
                made.push(builder.objects(text, &scan));
            }
            Err(why) => {
                let why = format!("{}: {why}", builder.by);
                for file in &builder.files {
                    let first = builds.failed.entry(file.clone());
                    first.or_insert_with(|| why.clone());
                }
            }
        }
    }
    scan.objects.retain(|found| {
        let file = &found.object.file;
        !replaced.contains(file.as_str()) || builds.failed.contains_key(file)
    });
    for mut own in made {
        scan.objects.append(&mut own.objects);
        scan.unread.append(&mut own.unread);
    }
    let mut targets = super::of_scan(tree, config, identity, scan)?;
    targets.builds = builds;
    targets.files.clone_from(&before.files);
    Ok(targets)
}

impl Builder {
    /// Returns the objects in its output, each at the place of the one in the tree that it was made of.
    fn objects(&self, output: &str, tree: &Scan) -> Scan {
        let mut made = Scan::default();
        let (file, line) = &self.place;
        made.text(file, output, MOST, false);
        for unread in &mut made.unread {
            unread.line = *line;
            // The place is that of a kustomization, with which nothing is wrong.
            unread.why = Why::Limit;
        }
        let mut named: HashMap<(&str, &str), Vec<&Object>> = HashMap::new();
        for Document { object, .. } in &tree.objects {
            if self.files.contains(&object.file) {
                let name = (object.kind.as_str(), object.name.as_str());
                named.entry(name).or_default().push(object);
            }
        }
        for found in &mut made.objects {
            let object = &mut found.object;
            let sources = named.get(&(object.kind.as_str(), object.name.as_str()));
            let sources = sources.map_or(&[][..], Vec::as_slice);
            let mut exact = sources.iter().filter(|one| one.namespace == object.namespace);
            let source = match (sources, exact.next(), exact.next()) {
                ([one], ..) | (_, Some(one), None) => Some(one),
                _ => None,
            };
            (object.file, object.line) = match source {
                Some(source) => (source.file.clone(), source.line),
                None => (file.clone(), *line),
            };
            object.built_by = Some(self.by.clone());
            found.home.clone_from(&self.made.directory);
            found.value.place_at((object.line, 1));
        }
        made
    }
}
