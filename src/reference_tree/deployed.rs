//! What the builds of targets reach that the tree does not hold.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::{NodeKind, ReferenceTree, locks};
use crate::failure::Result;
use crate::record::LoadRestrictor;
use crate::redact;
use crate::reference::{RepoSpec, is_remote_file};
use crate::targets::{Found, Place, Reached, Targets};
use crate::tree::{Listing, path};
use crate::walk::{self, Contents, Explored, RootId, Source};

/// Walks a tree without a network, and notes what may change the objects of targets before they are deployed.
///
/// # Errors
/// When the tree cannot be read.
pub fn settle_targets(tree: Rc<dyn Listing>, targets: &mut Targets) -> Result<()> {
    if !targets.targets.is_empty() {
        settled(&tree, &tree.kustomizations()?, targets);
    }
    Ok(())
}

/// Walks a tree from every kustomization: any may change an object, also one that the configuration leaves out.
fn settled(tree: &Rc<dyn Listing>, kustomizations: &[String], targets: &mut Targets) -> Explored {
    let parents = kustomizations.iter().map(|place| path::parent(place));
    let directories: BTreeSet<String> = parents.map(str::to_owned).collect();
    let directories: Vec<String> = directories.into_iter().collect();
    let options = walk::Options {
        // Which files a root may load is a question of `check`.
        load_restrictor: LoadRestrictor::None,
        contents: Contents::Configurations,
        ..walk::Options::default()
    };
    let source = Source {
        tree: tree.clone(),
        scope: String::new(),
        repository: None,
    };
    let explored = walk::explore(source, &directories, None, &options);
    targets.settle(&explored.graph, &**tree);
    explored
}

/// Does what [`settle_targets`] does, and notes for each target what its build reaches that the tree does not hold.
///
/// # Errors
/// When the tree or a lock in it cannot be read.
pub fn survey_targets(tree: Rc<dyn Listing>, targets: &mut Targets) -> Result<()> {
    let kustomizations = tree.kustomizations()?;
    let parents = kustomizations.iter().map(|place| path::parent(place));
    let all: BTreeSet<&str> = parents.collect();
    let locks = locks(&*tree)?;
    let explored = settled(&tree, &kustomizations, targets);
    let starts: Vec<RootId> = explored.starts.iter().copied().flatten().collect();
    let reference_tree = ReferenceTree::of(&explored, &starts, &locks, false);
    let reach = Reach::new(&reference_tree);
    for target in &mut targets.targets {
        let Place::Here(here) = &target.place else {
            continue;
        };
        let (Found::Kustomization(_) | Found::Directory(_)) = here.found else {
            continue;
        };
        let mut reached = reach.from(&target.roots(here, &all));
        let remote = target.build.components.iter().filter(|component| {
            let is_here = path::resolve(&here.path, &component.text)
                .is_some_and(|place| all.contains(place.as_str()));
            !is_here
                && (RepoSpec::parse(&component.text).is_ok() || is_remote_file(&component.text))
        });
        reached.extend(remote.map(|component| Reached {
            name: redact::url(&component.text),
            state: "component of the object, not locked".to_owned(),
        }));
        target.reaches = Some(reached);
    }
    Ok(())
}

/// The references of a tree, by what names.
struct Reach<'a> {
    tree: &'a ReferenceTree,
    roots: HashMap<&'a str, usize>,
    named: HashMap<usize, Vec<usize>>,
}

impl<'a> Reach<'a> {
    fn new(tree: &'a ReferenceTree) -> Self {
        let mut named: HashMap<usize, Vec<usize>> = HashMap::new();
        for link in &tree.links {
            named.entry(link.from).or_default().push(link.to);
        }
        let nodes = tree.nodes.iter().enumerate();
        let roots = nodes
            .filter(|(_, node)| matches!(node.kind, NodeKind::Root { .. }))
            .map(|(index, node)| (node.name.as_str(), index));
        Reach {
            tree,
            roots: roots.collect(),
            named,
        }
    }

    /// Returns what is not in the tree among what the directories lead to, sorted.
    fn from(&self, directories: &[String]) -> Vec<Reached> {
        let name = |directory: &String| match directory.as_str() {
            "" => ".".to_owned(),
            directory => directory.to_owned(),
        };
        let starts = directories.iter().map(name);
        let mut todo: Vec<usize> = starts
            .filter_map(|name| self.roots.get(name.as_str()).copied())
            .collect();
        let mut seen = HashSet::new();
        let mut reached = BTreeSet::new();
        while let Some(index) = todo.pop() {
            if !seen.insert(index) {
                continue;
            }
            todo.extend(self.named.get(&index).into_iter().flatten());
            let node = &self.tree.nodes[index];
            let is_away = match &node.kind {
                NodeKind::Git { .. }
                | NodeKind::Http { .. }
                | NodeKind::Chart { .. }
                | NodeKind::Broken(_) => true,
                NodeKind::Root { broken, .. } => broken.is_some(),
                NodeKind::File { .. } => false,
            };
            if is_away {
                reached.insert(Reached {
                    name: node.name.clone(),
                    state: node.state(),
                });
            }
        }
        reached.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::targets::{self, Identity};
    use crate::tree::memory::MemoryTree;

    const LOCK: &str = "version: 1
remotes:
- url: https://github.com/acme/bases
  ref: v1
  commit: 0123456789012345678901234567890123456789
  paths:
  - web
";

    fn target(name: &str, path: &str) -> String {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: {name}, namespace: flux-system}}
spec:
  path: ./{path}
  sourceRef: {{kind: GitRepository, name: flux-system}}
---
"
        )
    }

    /// Returns the targets of a tree, surveyed.
    fn surveyed(files: &[(&str, &str)]) -> Targets {
        let mut tree = MemoryTree::default();
        for (file, text) in files {
            tree.file(file, text.as_bytes(), false);
        }
        tree.file(
            "source.yaml",
            b"apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {url: 'https://github.com/acme/fleet', ref: {branch: main}}
",
            false,
        );
        let config = Config::default();
        let remotes = ["https://github.com/acme/fleet".to_owned()];
        let identity = || Ok(Identity::new(remotes, &config, ["main".to_owned()]));
        let mut targets = targets::find(&tree, &config, identity).unwrap();
        survey_targets(Rc::new(tree), &mut targets).unwrap();
        targets
    }

    fn reached(targets: &Targets, name: &str) -> Option<Vec<String>> {
        let mut all = targets.targets.iter();
        let target = all.find(|target| target.object.name == name).unwrap();
        let reaches = target.reaches.as_ref()?.iter();
        Some(
            reaches
                .map(|one| format!("{}: {}", one.name, one.state))
                .collect(),
        )
    }

    #[test]
    fn a_target_is_hermetic_or_names_what_it_reaches() {
        let objects = [
            target("local", "local"),
            target("locked", "locked"),
            target("floating", "floating"),
            target("generated", "generated"),
            target("gone", "gone"),
        ];
        let targets = surveyed(&[
            ("apps.yaml", &objects.concat()),
            ("kustomize-localize.lock", LOCK),
            ("local/kustomization.yaml", "resources: [../base/x.yaml]\n"),
            ("base/x.yaml", "kind: X\n"),
            (
                "locked/kustomization.yaml",
                "resources:\n- https://github.com/acme/bases//web?ref=v1\n",
            ),
            (
                "floating/kustomization.yaml",
                "resources:\n- ../locked\n- https://example.com/x.yaml\n- nothing.yaml\n",
            ),
            (
                "generated/a/kustomization.yaml",
                "resources: [../../locked]\n",
            ),
        ]);
        // Flux lets a root load files beside it.
        assert_eq!(reached(&targets, "local").unwrap(), [""; 0]);
        let locked = "https://github.com/acme/bases//web?ref=v1: tag, locked 012345678901";
        assert_eq!(reached(&targets, "locked").unwrap(), [locked]);
        assert_eq!(reached(&targets, "generated").unwrap(), [locked]);
        let floating = reached(&targets, "floating").unwrap();
        assert_eq!(floating.len(), 3, "{floating:?}");
        assert!(floating.contains(&locked.to_owned()));
        assert!(floating.contains(&"https://example.com/x.yaml: not locked".to_owned()));
        assert_eq!(reached(&targets, "gone"), None);
    }

    #[test]
    fn what_an_overlay_may_change_is_said() {
        let targets = surveyed(&[
            ("apps/kustomization.yaml", "resources: [apps.yaml]\n"),
            ("apps/apps.yaml", &target("web", "web")),
            ("web/kustomization.yaml", ""),
            (
                "prod/kustomization.yaml",
                "resources: [../apps]\npatches:\n- target: {kind: Kustomization}\n  patch: |-\n    - {op: replace, path: /spec/path, value: ./other}\n",
            ),
        ]);
        let target = &targets.targets[0];
        let by = target.changed_by.as_deref().unwrap();
        assert!(by.contains("prod/kustomization.yaml"), "{by}");
    }
}
