//! The objects that builds make from those in the tree: an overlay for an app of apps patches the paths of its
//! applications, a parent those of its children, and a chart renders them from templates. Several overlays of one base
//! make several objects from one.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::Value as Json;

use super::deployments::Deployments;
use super::external_inputs::beyond;
use super::generated::{Generated, generated};
use super::scan::{self, Document, Scan};
use super::unread::{Why, read_as};
use super::{
    EngineName, ExternalInput, Identity, ObjectRef, PathContent, Target, TargetDir, Targets, Unread, UnresolvedTargets,
};
use crate::config::Config;
use crate::graph::named::Namer;
use crate::graph::{Explored, Graph, RootId, reach};
use crate::kustomization::{KustomizationKind, Value};
use crate::message::failure::{Failure, FailureKind, Result};
use crate::message::position::Position;
use crate::record::sha256_hex;
use crate::tree::{Tree, path};

/// How often objects that builds make may deploy others that are to be built.
const DEEPEST: usize = 10;

/// The largest number of objects of engines in the output of one build.
const MOST: usize = 100_000;

/// A build that deploys objects of the tree.
#[derive(Debug, Clone)]
pub(crate) struct Builder {
    /// The name: the kustomization, or the target that deploys a changed one.
    pub by: String,
    /// The same without the builds that made the builder.
    name: String,
    /// The same without a line.
    maker: String,
    /// The target that is built.
    pub target: Target,
    /// The kustomization that is built; `None` if a chart is rendered.
    pub made: Option<Generated>,
    /// The directory of the kustomization or chart.
    directory: String,
    /// A unique key.
    key: String,
    /// The inputs that the tree lacks.
    pub reaches: Vec<ExternalInput>,
    /// The location of an object that does not come from a single object of the tree.
    location: (String, usize),
    /// The files of the tree with objects that it reads.
    files: BTreeSet<String>,
}

/// The documents of an output that may declare objects of engines.
pub(crate) fn declaring(output: &[u8]) -> Vec<u8> {
    // Outputs are large, and all of them are held together, so only these documents are kept.
    let output = String::from_utf8_lossy(output);
    scan::declaring(&output).map(|document| document.text).collect::<String>().into_bytes()
}

/// The output of a build, as far as it [declares](declaring) objects, or its failure.
pub(crate) type Output = Result<Vec<u8>>;

/// The builds from which objects are taken.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ParentBuilds {
    /// The names of the builds that succeeded.
    pub(super) done: BTreeSet<String>,
    /// Why the objects in a file are not known, by file.
    pub(super) failed: BTreeMap<String, Failure>,
    /// The directories that are built alone because no build with them succeeded.
    pub(super) parts: BTreeSet<String>,
    /// The files that all of them read.
    files: BTreeSet<String>,
}

impl ParentBuilds {
    /// Adds the failure of a build, after which the objects in the files that it reads are not known.
    fn fail(&mut self, builder: &Builder, why: &Failure) {
        let why = why.clone().context(&builder.by);
        for file in &builder.files {
            let known = self.failed.entry(file.clone()).or_insert_with(|| why.clone());
            // A build that was stopped must be reported, also beside one that failed.
            if why.kind == FailureKind::Stopped {
                known.clone_from(&why);
            }
        }
    }

    /// Removes the written objects and templates in the files `replaced`, of which builds made objects. Where a build
    /// failed they stay, and a template says why it is not rendered.
    fn remove_replaced(&self, scan: &mut Scan, replaced: &BTreeSet<&str>) {
        scan.objects.retain(|document| {
            let file = &document.object.file;
            document.has_options() || !replaced.contains(file.as_str()) || self.failed.contains_key(file)
        });
        scan.unread.retain_mut(|unread| {
            if unread.why != Why::Template {
                return true;
            }
            let Some(why) = self.failed.get(&unread.file) else { return !replaced.contains(unread.file.as_str()) };
            unread.message = format!("a template, which is not rendered: {}", why.message);
            true
        });
    }
}

impl UnresolvedTargets {
    /// These targets with objects as builds make them, and the targets that these objects define. `explored` is a walk
    /// over the whole tree; `run` builds. The `wanted` targets and the roots in the directories `named` are built too,
    /// whether they change an object or not, because the caller needs their outputs.
    pub(crate) fn resolve_by_builds(
        self,
        explored: &Explored,
        config: &Config,
        identity: &dyn Fn() -> Result<Identity>,
        wanted: &dyn Fn(&Target) -> bool,
        named: &[String],
        mut run: impl FnMut(&[&Builder]) -> Vec<Output>,
    ) -> Result<Targets> {
        let mut targets = self.resolve_changers(&explored.graph);
        let mut known: BTreeMap<String, Output> = BTreeMap::new();
        let root_in = |directory: &str| explored.graph.user_root(directory);
        let overloaded = explored.graph.overloaded();
        let mut alone: BTreeSet<RootId> = named.iter().filter_map(|directory| root_in(directory)).collect();
        let mut parts = BTreeSet::new();
        // A build may make objects that deploy roots with further objects, so that this takes rounds. After the last
        // one, a target keeps the build that may still change it.
        for _ in 0..DEEPEST {
            let builders = targets.builders(explored, config, wanted, &alone)?;
            let new: Vec<&Builder> = builders.iter().filter(|builder| !known.contains_key(&builder.key)).collect();
            // If the last round changed nothing that a build reads, all outputs are known.
            if new.is_empty() {
                break;
            }
            let outputs = run(&new);
            known.extend(new.into_iter().map(|new| new.key.clone()).zip(outputs));
            let (built, failed): (Vec<&Builder>, Vec<&Builder>) =
                builders.iter().partition(|builder| known.get(&builder.key).is_some_and(Result::is_ok));
            let roots = |all: Vec<&'_ Builder>| -> Vec<RootId> {
                all.into_iter().flat_map(Builder::roots).filter_map(root_in).collect()
            };
            // If a build fails, the roots that only it builds are built alone, to know their objects. This does not
            // help for roots that load too many others.
            let failed = roots(failed).into_iter().filter(|root| !overloaded.contains(root));
            let unverified = explored.graph.unverified_roots(roots(built), failed);
            parts.extend(unverified.iter().map(|root| explored.graph.roots[*root].directory.clone()));
            alone.extend(unverified);
            let built = builders.iter().filter_map(|builder| Some((builder, known.get(&builder.key)?)));
            let tree = &*explored.graph.sources[0].tree;
            let mut as_built = find_in_outputs((tree, &explored.graph), config, identity, &targets, built)?;
            as_built.0.builds.parts.clone_from(&parts);
            targets = as_built.resolve_changers(&explored.graph);
        }
        Ok(targets)
    }
}

impl Targets {
    /// The builds that are needed to know the final objects of engines: of each file whose objects something may
    /// change, all builds that deploy it, by targets and by top roots that none of these deploys. Also the `wanted`
    /// ones, those of charts with templates of objects, and those of earlier rounds.
    fn builders(
        &self,
        explored: &Explored,
        config: &Config,
        wanted: &dyn Fn(&Target) -> bool,
        alone: &BTreeSet<RootId>,
    ) -> Result<Vec<Builder>> {
        let graph = &explored.graph;
        // The files that builds of an earlier round read count, too, or their results would be taken back.
        let changed = self.targets.iter().filter(|target| target.changed_by.is_some());
        let changed: BTreeSet<&str> =
            changed.flat_map(Target::object_files).chain(self.builds.files.iter().map(String::as_str)).collect();
        let all = self.buildable(graph, config, alone)?;
        let wanted: Vec<usize> = (0..all.len()).filter(|index| wanted(&all[*index])).collect();
        // Options of Argo CD are read as they are written, so files with nothing else need no build.
        let objects = self.files.iter().filter(|(_, is_object)| **is_object).map(|(file, _)| file.as_str());
        let templates = self.unread.iter().filter(|unread| unread.why == Why::Template);
        let objects = objects.chain(templates.map(|unread| unread.file.as_str()));
        let objects = objects.chain(self.builds.files.iter().map(String::as_str)).collect();
        // Only helm tells the objects that a chart has templates for.
        let charts: Vec<usize> = (0..all.len()).filter(|index| all[*index].renders_any(&objects)).collect();
        // Most trees need no build.
        if changed.is_empty() && wanted.is_empty() && charts.is_empty() {
            return Ok(Vec::new());
        }
        let tree = &*graph.sources[0].tree;
        let deployments = Deployments::of(graph, &all, &objects);
        // One build replaces the written objects of all files that it reads, so all other builds of these are needed,
        // too.
        let readers = |files: &BTreeSet<&str>| -> Vec<usize> {
            files.iter().flat_map(|file| deployments.users(file)).copied().collect()
        };
        let namer = Namer::of(explored, config)?;
        let mut builders = BTreeMap::new();
        let starts = readers(&changed).into_iter().chain(wanted).chain(charts);
        for index in reach(starts, |index| readers(deployments.files(*index))) {
            let target = &all[index];
            let Some(dir) = target.local_dir() else { continue };
            let Some(mut builder) = Builder::of(tree, target, dir)? else { continue };
            builder.files = deployments.files(index).iter().map(|file| (*file).to_owned()).collect();
            builder.reaches = beyond(&namer, target.walked(dir, graph));
            builders.entry(builder.key.clone()).or_insert(builder);
        }
        Ok(builders.into_values().collect())
    }

    /// Whether the objects that the chart in a directory makes are known, for all targets that deploy it.
    pub(super) fn is_rendered(&self, directory: &str) -> bool {
        let deploys =
            |(target, dir): &(&Target, &TargetDir)| target.is_chart() && dir.content.real_path() == Some(directory);
        let mut deploying = self.local_targets().filter(deploys).peekable();
        deploying.peek().is_some() && deploying.all(|(target, _)| self.builds.done.contains(&target.builder()))
    }

    /// Everything whose build may make objects: the targets that no other build may change, and targets for the top
    /// roots that none of these deploys and for the roots that are built `alone`.
    fn buildable(&self, graph: &Graph, config: &Config, alone: &BTreeSet<RootId>) -> Result<Vec<Target>> {
        // A target that another build may change is built in a later round, once that build shows the result.
        let deployed = self.local_targets();
        let deployed = deployed.filter(|(target, dir)| {
            target.changed_by.is_none() && (target.is_built(dir) || config.helm && target.is_chart())
        });
        let mut all: Vec<Target> = deployed.clone().map(|(target, _)| target.clone()).collect();
        let roots: HashSet<&str> = deployed.flat_map(|(target, dir)| target.roots(dir)).collect();
        let users = graph.referrers();
        for (root, id) in graph.user_roots() {
            // A component is meant for other roots. One that the configuration leaves out is not built alone.
            let is_meant = graph.roots[id].kind != Some(KustomizationKind::Component) || config.may_start_in(root);
            if (users[id.0].is_empty() && is_meant || alone.contains(&id)) && !roots.contains(root) {
                let (engine, tree) = (EngineName::Kustomize, &*graph.sources[0].tree);
                let load_restrictor = Some(config.load_restrictor);
                all.push(Target::of_directory(tree, engine, root, ObjectRef::default(), load_restrictor)?);
            }
        }
        Ok(all)
    }
}

/// Finds the targets again that were found `before`, now with the objects that builds made instead of the written ones.
fn find_in_outputs<'a>(
    (tree, graph): (&dyn Tree, &Graph),
    config: &Config,
    identity: &dyn Fn() -> Result<Identity>,
    before: &Targets,
    built: impl Iterator<Item = (&'a Builder, &'a Output)>,
) -> Result<UnresolvedTargets> {
    let unread = before.unread.iter().map(|unread| &unread.file);
    let files: BTreeSet<String> = before.files.keys().chain(unread).cloned().collect();
    let mut scan = scan::scan(tree, &files)?;
    // A file that roots only use as a patch defines no target, but may hold options of Argo CD.
    let read = read_as(graph);
    scan.objects.retain(|document| document.has_options() || read.get(&*document.object.file) != Some(&false));
    let mut builds = ParentBuilds::default();
    let mut replaced: BTreeSet<&str> = BTreeSet::new();
    let mut made = Vec::new();
    for (builder, output) in built {
        builds.files.extend(builder.files.iter().cloned());
        match output {
            Ok(text) => {
                builds.done.insert(builder.by.clone());
                replaced.extend(builder.files.iter().map(String::as_str));
                made.push(builder.objects_in(&String::from_utf8_lossy(text), &scan));
            }
            Err(why) => builds.fail(builder, why),
        }
    }
    builds.remove_replaced(&mut scan, &replaced);
    // Only now, because the written objects of these files are removed by their file, which the new ones have, too.
    made.into_iter().for_each(|objects| scan.extend(objects));
    let mut targets = super::targets_of_scan(tree, config, identity, scan)?;
    targets.builds = builds;
    // The scan has no more objects of files that a build replaced, but the next round needs these files again.
    targets.files.clone_from(&before.files);
    Ok(UnresolvedTargets(targets))
}

impl Builder {
    /// The build of a target in this repository, before it is known what it reads; `None` if its engine builds nothing.
    fn of(tree: &dyn Tree, target: &Target, dir: &TargetDir) -> Result<Option<Builder>> {
        let made = generated(tree, target, dir)?;
        let directory = match (&made, &dir.content) {
            (Some(made), _) => made.directory.clone(),
            (None, PathContent::Chart(directory)) => directory.clone(),
            _ => return Ok(None),
        };
        let mut builder = Builder {
            by: target.builder(),
            // Without the build that made the target: an object may deploy itself, and its name would grow with each
            // round.
            name: target.title(),
            maker: target.name_and_file(),
            target: target.clone(),
            made,
            directory,
            key: String::new(),
            reaches: Vec::new(),
            location: (target.object.file.clone(), target.object.line),
            files: BTreeSet::new(),
        };
        // A kustomization that is built as it is has the name of its file, also if several targets deploy it.
        if let Some(made) = builder.made.as_ref().filter(|made| !made.is_of_engine()) {
            let file = path::join(&builder.directory, made.file_name);
            let label = tree.label(&file);
            (builder.by, builder.name, builder.maker) = (label.clone(), label.clone(), label);
            builder.location = (file, 1);
        }
        // The same build in a later round has the same key, and is not run again.
        let settings = format!("{:?} {:?}", builder.made, target.build.release);
        builder.key = format!("{} {} {}", builder.by, builder.directory, sha256_hex(settings.as_bytes()));
        Ok(Some(builder))
    }

    /// The roots that it builds.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &str> {
        self.target.local_dir().into_iter().flat_map(|dir| self.target.roots(dir))
    }

    /// The kustomization that the same target builds in another tree; `None` if it builds none there.
    pub(crate) fn made_in(&self, tree: &dyn Tree) -> Result<Option<Generated>> {
        self.target.local_dir().map_or(Ok(None), |dir| generated(tree, &self.target, dir))
    }

    /// The file in which a build that fails is to be mended: the kustomization, or the object that names the chart.
    pub(crate) fn file(&self) -> String {
        let made = self.made.as_ref();
        made.map_or_else(|| self.target.object.file.clone(), |made| path::join(&made.directory, made.file_name))
    }

    /// The objects in its output, each at the location of the object in `tree` that it was made of, so that findings
    /// point to the file that people edit.
    fn objects_in(&self, output: &str, tree: &Scan) -> Scan {
        let mut made = Scan::default();
        made.add_text(&self.location.0, output, MOST);
        // Options of Argo CD are read as they are written.
        made.objects.retain(|document| !document.has_options());
        for unread in &mut made.unread {
            // An object that is wrong as it is written is one finding, in its own file.
            let is_same = |written: &&Unread| written.why == unread.why && written.message == unread.message;
            let written = tree.unread.iter().find(is_same).map(|written| (written.file.clone(), written.line));
            (unread.file, unread.line) = written.unwrap_or_else(|| self.location.clone());
        }
        // An object of the output has the name of its source, or a new one: only a source without a namesake can have
        // been renamed.
        let names: HashSet<_> = made.objects.iter().map(|document| kind_and_name(&document.object)).collect();
        let (mut kept, mut renamed): (HashMap<_, Vec<_>>, HashMap<_, Vec<_>>) = Default::default();
        for document in tree.objects.iter().filter(|document| self.files.contains(&document.object.file)) {
            let name = kind_and_name(&document.object);
            if names.contains(&name) {
                kept.entry(name).or_default().push(document);
            } else {
                renamed.entry(name.0).or_default().push(document);
            }
        }
        let templates = self.templates(output);
        for document in &mut made.objects {
            let sources = kept.get(&kind_and_name(&document.object)).or_else(|| renamed.get(&document.object.kind));
            let source = sources.and_then(|sources| source_of(document, sources));
            let template = templates.range(..=document.object.line).next_back().map(|(_, template)| template);
            self.set_source(document, source, template);
        }
        made
    }

    /// Sets the origin of an object in the output: the object of the tree that it was made of, or else the template, or
    /// else the builder.
    fn set_source(&self, document: &mut Document, source: Option<&Document>, template: Option<&(String, usize)>) {
        let object = &mut document.object;
        object.built_by = Some(self.name.clone());
        object.maker = Some(self.maker.clone());
        document.home.clone_from(&self.directory);
        if let Some(source) = source {
            (object.file, object.line) = (source.object.file.clone(), source.object.line);
            document.written = Some(source.value.json().to_string().into());
            document.value.copy_positions(&source.value);
        } else {
            (object.file, object.line) = template.unwrap_or(&self.location).clone();
            // Positions in an output tell nobody where to edit.
            document.value.set_position(Position::new(object.line, 1));
        }
    }

    /// The template of a chart, with its first line, from each line of its output where helm names it. Empty unless
    /// helm made the output; only templates with objects count.
    fn templates(&self, output: &str) -> BTreeMap<usize, (String, usize)> {
        let named = output.lines().zip(1..).filter_map(|(text, line)| {
            // The first name is that of the chart.
            let (_, inside) = text.strip_prefix("# Source: ")?.split_once('/')?;
            Some((line, path::join(&self.directory, inside)))
        });
        let read = named.filter(|(_, file)| self.made.is_none() && self.files.contains(file));
        read.map(|(line, file)| (line, (file, 1))).collect()
    }
}

/// The part of the identity that a build rarely changes.
fn kind_and_name(object: &ObjectRef) -> (String, String) {
    (object.kind.clone(), object.name.clone())
}

/// The object of the tree of which a build probably made this one, among those of its kind; `None` if no name fits.
fn source_of<'a>(made: &Document, sources: &[&'a Document]) -> Option<&'a Document> {
    let ObjectRef { name, namespace, .. } = &made.object;
    // A prefix and a suffix leave the name of the source as a part of the new one.
    let named = sources.iter().filter(|source| !source.object.name.is_empty() && name.contains(&source.object.name));
    let longest = named.clone().map(|source| source.object.name.len()).max()?;
    let longest: Vec<_> = named.copied().filter(|source| source.object.name.len() == longest).collect();
    // If several have this name, prefer the one with the same namespace, then the one with the same content, which
    // takes long to compare.
    let has_rivals = longest.len() > 1;
    longest
        .into_iter()
        .max_by_key(|source| (source.object.namespace == *namespace, has_rivals && spec(source) == spec(made)))
}

/// The `spec` of an object.
fn spec(document: &Document) -> Option<Json> {
    document.value.get("spec").map(Value::json)
}
