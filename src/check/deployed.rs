//! The targets that are deployed from the tree: the additional starts of the walk, the roots that are built without the
//! load restrictor, and the names of the targets that a finding concerns.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::Input;
use crate::graph::{self, Explored, Graph, Root, RootId, Survey};
use crate::message::failure::{Failure, Result};
use crate::message::finding::Finding;
use crate::os::limits::FINDING_BYTES;
use crate::record::LoadRestrictor;
use crate::targets::deployments::Deployments;
use crate::targets::{self, ObjectRef, Target, TargetDir, Targets, Unread, UnresolvedTargets, Why};
use crate::tree::{Tree, checkout, path};

/// The graph of a tree and the targets in it.
pub(super) struct Walked {
    /// The targets; with builds, as their outputs declare them.
    pub(super) targets: Targets,
    /// With builds: the targets as they are written. `None` without builds.
    pub(super) written: Option<Targets>,
    /// The directories of the roots to which only a build leads, and at which `lock` and `branch` do not look.
    pub(super) left_out: BTreeSet<String>,
    pub(super) explored: Explored,
}

/// Finds the targets, and walks the tree from the starts of the check and from everything that is deployed.
pub(super) fn walk(
    input: &Input<'_>,
    survey: &Survey,
    kustomizations: &[String],
    policy: graph::WalkPolicy<'_>,
    failures: &mut Vec<Failure>,
) -> Result<Walked> {
    let starts_with = |deployed| input.config.starting_points(&*input.tree, input.paths, kustomizations, deployed);
    // Without targets the kustomizations are checked all the same.
    let UnwalkedTargets { unresolved, built } =
        unwalked_targets(input, survey, kustomizations).unwrap_or_else(|failure| {
            failures.push(failure);
            UnwalkedTargets::default()
        });
    let targets = built.as_ref().unwrap_or_else(|| unresolved.as_written());
    let (starts, has_targets) = (starts_with(targets.roots())?, !targets.targets.is_empty());
    let unrestricted = unrestricted_roots(survey, targets, &starts);
    let explored = survey.judged(&starts, &graph::WalkPolicy { unrestricted, ..policy });
    // With builds the objects are known as they are deployed. The written ones are kept to name the way to a root.
    let Some(targets) = built else {
        // Without builds it is unknown which kustomizations change an object: any may, also one that this walk does not
        // reach. It reaches everything if it starts everywhere.
        let all: BTreeSet<String> = kustomizations.iter().map(|file| path::parent(file).to_owned()).collect();
        let may_miss_some = has_targets && starts.len() < all.len();
        let wider = may_miss_some.then(|| survey.explore_inputs(&Vec::from_iter(all)));
        let targets = unresolved.resolve_changers(&wider.as_ref().unwrap_or(&explored).graph);
        return Ok(Walked { targets, written: None, left_out: BTreeSet::new(), explored });
    };
    let written = unresolved.as_written().clone();
    let left_out = roots_left_out(&explored.graph, &starts_with(written.roots())?);
    Ok(Walked { targets, written: Some(written), left_out, explored })
}

/// The targets of a tree before it is walked.
#[derive(Default)]
struct UnwalkedTargets {
    /// As they are written.
    unresolved: UnresolvedTargets,
    /// As builds show them. `None` without builds.
    built: Option<Targets>,
}

/// Finds the targets of a tree. Empty if the check does not look at deployed targets.
fn unwalked_targets(input: &Input<'_>, survey: &Survey, kustomizations: &[String]) -> Result<UnwalkedTargets> {
    let Some(identity) = input.identity else { return Ok(UnwalkedTargets::default()) };
    let unresolved = targets::find_in(survey, input.paths, kustomizations, input.config, identity)?;
    let built = input.build.as_ref().map(|build| (build.0)(unresolved.clone())).transpose()?;
    Ok(UnwalkedTargets { unresolved, built })
}

/// The directories of the roots that an engine builds without the load restrictor: there a reference out of the root is
/// no trouble. They are known only after a walk, and troubles are judged after that.
fn unrestricted_roots(survey: &Survey, targets: &Targets, starts: &[String]) -> HashSet<String> {
    let graph = survey.walk(starts);
    if !survey.leaves_roots() {
        return HashSet::new();
    }
    // A target counts whatever the paths of the check are.
    DeployedTargets::new(targets, &graph, &[]).unrestricted()
}

/// The directories of the user's roots that none of these starts leads to.
fn roots_left_out(graph: &Graph, starts: &[String]) -> BTreeSet<String> {
    let reached = graph.reachable(starts.iter().filter_map(|start| graph.user_root(start)));
    let left_out = graph.user_roots().into_iter().filter(|(_, root)| !reached.contains(root));
    left_out.map(|(directory, _)| directory.to_owned()).collect()
}

/// A target whose directory is in this tree, with the roots that it reaches.
pub(super) struct LocalTarget<'a> {
    pub(super) target: &'a Target,
    pub(super) directory: &'a TargetDir,
    /// The roots that the engine builds, and those that they lead to.
    pub(super) roots: Rc<BTreeSet<RootId>>,
}

/// The targets of the tree, and the parts of the graph that they reach.
pub(super) struct DeployedTargets<'a> {
    pub(super) targets: &'a Targets,
    /// The targets whose directory is in this tree. With paths, only those whose object or directory is in one of them.
    pub(super) local: Vec<LocalTarget<'a>>,
    /// All targets, without the duplicates that several builds make of one object.
    distinct: Vec<&'a Target>,
    graph: &'a Graph,
    paths: &'a [String],
}

impl<'a> DeployedTargets<'a> {
    /// Finds for each target in this tree the roots that it reaches in `graph`. `paths` are those of the check, or
    /// empty.
    pub(super) fn new(targets: &'a Targets, graph: &'a Graph, paths: &'a [String]) -> Self {
        let mut deployed = DeployedTargets { targets, local: Vec::new(), distinct: distinct(targets), graph, paths };
        if targets.targets.is_empty() {
            return deployed;
        }
        let deployments = Deployments::of(graph, deployed.distinct.iter().copied(), &BTreeSet::new());
        for (number, target) in deployed.distinct.iter().copied().enumerate() {
            if let Some(directory) = target.local_dir().filter(|_| deployed.is_wanted_target(target)) {
                deployed.local.push(LocalTarget { target, directory, roots: deployments.roots(number).clone() });
            }
        }
        deployed
    }

    /// Whether the check covers a path.
    pub(super) fn is_wanted(&self, path: &str) -> bool {
        path::is_in_any(path, self.paths)
    }

    /// The targets with unknown deployments, each with the reason. With paths, only those whose object is in one
    /// of them.
    pub(super) fn unknown_targets(&self) -> impl Iterator<Item = (&'a Target, String)> {
        let targets = self.distinct.iter().copied().filter(|target| self.is_wanted(&target.object.file));
        targets.filter_map(|target| Some((target, target.why_unknown()?)))
    }

    /// All targets. With paths, only those whose object or directory is in one of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &'a Target> {
        self.distinct.iter().copied().filter(|target| self.is_wanted_target(target))
    }

    /// Whether the check covers the object or the directory of a target.
    fn is_wanted_target(&self, target: &Target) -> bool {
        self.is_wanted(&target.object.file)
            || target.local_dir().is_some_and(|dir| path::covers_root(self.paths, &dir.path))
    }

    /// The objects that cannot be read. With paths, only those in one of them.
    pub(super) fn unread(&self) -> impl Iterator<Item = &'a Unread> {
        self.targets.unread_objects(self.graph).filter(|unread| self.is_wanted(&unread.file))
    }

    /// The target whose chart has a template that could not be read; `None` if it is another file.
    pub(super) fn renderer(&self, unread: &Unread) -> Option<&'a Target> {
        let mut targets = self.targets.local_targets().filter(|_| unread.why == Why::Template);
        let renders = |(target, dir): &(&Target, &TargetDir)| target.is_chart() && target.takes(dir, &unread.file);
        targets.find(renders).map(|(target, _)| target)
    }

    /// The directories of the roots that an engine builds without the load restrictor.
    pub(super) fn unrestricted(&self) -> HashSet<String> {
        let local = self.local.iter();
        let unrestricted = local.filter(|local| local.target.build.load_restrictor == Some(LoadRestrictor::None));
        let roots = unrestricted.flat_map(|local| &*local.roots).filter(|root| self.graph.is_user_root(**root));
        roots.map(|root| self.graph.roots[*root].directory.clone()).collect()
    }

    /// The files of the tree that contain the references of a target's roots.
    fn files(&self, local: &LocalTarget<'_>) -> BTreeSet<&'a str> {
        let roots = local.roots.iter().map(|root| &self.graph.roots[*root]);
        roots.flat_map(Root::files).filter_map(|file| self.graph.user_path(file)).collect()
    }

    /// A failure for each file of a Flux target that a checkout converts by more than line ends: Flux reads the stored
    /// bytes, and this check the converted ones.
    pub(super) fn conversion_failures(&self, tree: &dyn Tree) -> Vec<Failure> {
        let flux = self.local.iter().filter(|local| local.target.engine.packs());
        let files: BTreeSet<&str> = flux.flat_map(|local| self.files(local)).collect();
        let look = |path: &str| -> Result<()> {
            // A checkout does not convert the file.
            let Some(raw) = tree.raw(path)? else {
                return Ok(());
            };
            if without_returns(raw) == without_returns(tree.read(path)?) {
                return Ok(());
            }
            // The file beside it, and its last line, count before all others.
            let attributes = path::join(path::parent(path), checkout::FILE_NAME);
            // git splits a line at blanks, and `?` stands for any character.
            let pattern = path::name(path).replace(|c: char| c.is_ascii_whitespace() || "*[\\\"".contains(c), "?");
            Err(Failure::new(format!("a checkout changes `{path}`, but Flux reads the file that git stores"))
                .hint(format!("add a line at the end of `{attributes}`: /{pattern} -ident -working-tree-encoding")))
        };
        files.into_iter().filter_map(|path| look(path).err()).collect()
    }

    /// Fills in the targets that deploy the file of each finding, so that people see which deployments it concerns.
    ///
    /// # Errors
    ///
    /// If the texts of the findings exceed their limit: the rest is dropped, and the failure says so.
    pub(super) fn fill_in_targets(&self, findings: &mut Vec<Finding>) -> Result<()> {
        if findings.is_empty() {
            return Ok(());
        }
        let mut by_file: HashMap<&str, Vec<&Target>> = HashMap::new();
        for local in &self.local {
            for file in self.files(local) {
                by_file.entry(file).or_default().push(local.target);
            }
        }
        // Many targets may deploy one file with many findings: the product is limited.
        let mut bytes = 0;
        for (index, finding) in findings.iter_mut().enumerate() {
            let targets = by_file.get(&*finding.path).into_iter().flatten();
            finding.deployed = targets.map(|target| target.by()).collect();
            let Finding { message, reference, help, deployed, .. } = &*finding;
            bytes += [message, reference].into_iter().chain(help).chain(deployed).map(String::len).sum::<usize>();
            if bytes > FINDING_BYTES.most {
                findings.truncate(index);
                return Err(FINDING_BYTES.exceeded(path::shown("")));
            }
        }
        Ok(())
    }
}

/// The bytes without carriage returns, because a difference in line ends does not matter to Flux.
fn without_returns(bytes: Vec<u8>) -> Vec<u8> {
    bytes.into_iter().filter(|byte| *byte != b'\r').collect()
}

/// The targets without duplicates: several builds may make the same target of one object, and its findings count once.
fn distinct(targets: &Targets) -> Vec<&Target> {
    let mut known: HashMap<ObjectRef, Vec<&Target>> = HashMap::new();
    let mut distinct = Vec::new();
    for target in &targets.targets {
        let alike = known.entry(ObjectRef { built_by: None, maker: None, ..target.object.clone() }).or_default();
        let is_same = |other: &Target| {
            (other.spot, &other.location, &other.build, &other.changed_by)
                == (target.spot, &target.location, &target.build, &target.changed_by)
        };
        if !alike.iter().any(|other| is_same(other)) {
            alike.push(target);
            distinct.push(target);
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, argo, flux, source};
    use crate::message::finding::Rule;

    const REMOTE: &str = "resources: ['https://github.com/acme/base//x?ref=v1']\n";

    #[test]
    fn a_finding_says_what_deploys_it() {
        let checked = Scene::default()
            .file("clusters/source.yaml", &source(""))
            .file("clusters/apps.yaml", &flux("apps/prod"))
            .file("clusters/web.yaml", &argo("path: apps/base"))
            .file("apps/prod/kustomization.yaml", "resources: [../base]\n")
            .file("apps/base/kustomization.yaml", REMOTE)
            .file("apps/test/kustomization.yaml", REMOTE)
            .check();
        let deployed: Vec<(&str, Vec<&str>)> = checked
            .findings
            .iter()
            .map(|finding| {
                let by = finding.deployed.iter().map(String::as_str);
                (finding.path.as_str(), by.collect())
            })
            .collect();
        assert_eq!(
            deployed,
            [
                (
                    "apps/base/kustomization.yaml",
                    vec![
                        "Flux Kustomization apps (clusters/apps.yaml:1)",
                        "Argo CD Application web (clusters/web.yaml:1)"
                    ]
                ),
                ("apps/test/kustomization.yaml", vec![]),
            ]
        );
    }

    #[test]
    fn excluded_roots_are_checked_if_they_are_deployed() {
        let scene = || {
            Scene::default()
                .file("clusters/source.yaml", &source(""))
                .file("clusters/apps.yaml", &flux("./"))
                .file("apps/prod/kustomization.yaml", REMOTE)
                .file("apps/prod/nested/kustomization.yaml", REMOTE)
                .file("test/kustomization.yaml", REMOTE)
        };
        let paths = |scene: Scene| -> Vec<String> {
            let findings = scene.find(Rule::RemoteReference).into_iter();
            findings.map(|finding| finding.path).collect()
        };
        assert_eq!(paths(scene()).len(), 3);
        let config = "exclude: [test, apps]\n";
        let expected = ["apps/prod/kustomization.yaml", "test/kustomization.yaml"];
        // An excluded root is checked if something deploys it.
        assert_eq!(paths(scene().config(config)), expected);
    }

    #[test]
    fn what_a_build_may_change_is_counted() {
        let patch = "resources: [../clusters]\npatches: [{target: {kind: Kustomization}, patch: '[{op: replace, path: /spec/path, value: x}]'}]\n";
        let scene = || {
            Scene::default()
                .file("clusters/source.yaml", &source(""))
                .file("clusters/apps.yaml", &flux("./apps"))
                .file("clusters/kustomization.yaml", "resources: [apps.yaml]\n")
        };
        assert_eq!(scene().find(Rule::UnknownTarget).len(), 0);
        assert_eq!(scene().find(Rule::MissingTarget).len(), 1);
        let scene = || scene().file("prod/kustomization.yaml", patch);
        assert_eq!(scene().find(Rule::UnknownTarget).len(), 1);
        assert_eq!(scene().find(Rule::MissingTarget).len(), 0);
    }

    #[test]
    fn what_only_others_need_is_not_stale() {
        let lock = "version: 1\nremotes:\n  - url: https://github.com/acme/bases\n    ref: v1\n    commit: 0123456789012345678901234567890123456789\n    paths: {web: {}}\n";
        let scene = || {
            Scene::default()
                .file("clusters/source.yaml", &source(""))
                .file("clusters/apps.yaml", &flux("./apps"))
                .file("apps/kustomization.yaml", "resources: []\n")
                .file("kustomize-localize.lock", lock)
        };
        let stale = |scene: Scene| scene.find(Rule::StaleLock).len();
        assert_eq!(stale(scene()), 1);
    }

    #[test]
    fn the_engine_decides_which_files_a_root_may_load() {
        let scene = |object: &str| {
            Scene::default()
                .file("clusters/source.yaml", &source(""))
                .file("clusters/apps.yaml", object)
                .file("apps/kustomization.yaml", "resources: [../other/base]\n")
                .file(
                    "other/base/kustomization.yaml",
                    "resources: [../x.yaml]\ngenerators: [../g.yaml]\nhelmGlobals: {chartHome: ../charts}\nhelmCharts: [{name: c}]\n",
                )
                .file("other/charts/c/values.yaml", "")
                .file("other/x.yaml", "")
                .file(
                    "other/g.yaml",
                    "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: [missing.txt]\n",
                )
        };
        let options = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata: {kustomize.buildOptions: --load-restrictor LoadRestrictionsNone}\n";
        for (scene, expected) in [
            (scene(&flux("apps")), 0),
            (scene(&flux("nowhere")), 3),
            (scene(&argo("path: apps")), 3),
            (scene(&argo("path: apps")).file("cm.yaml", options), 0),
        ] {
            let findings = scene.check().findings;
            let of = |rule| findings.iter().filter(|one| one.rule == rule).count();
            assert_eq!(of(Rule::OutOfScope), expected);
            // The walk goes on behind these paths.
            assert_eq!(of(Rule::MissingPath), 1);
        }
    }
}
