//! `tree`: prints the reference graph, as `cargo tree` prints dependencies. `schema.json` describes the JSON.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use clap::{Args, ValueHint};
use console::Style;
use serde::Serialize;

use super::output::{Done, Outcome, OutputArgs, Shown};
use crate::config::Config;
use crate::git::{LocalRepo, Snapshot};
use crate::graph::named::{NamedReference, Namer, Node, NodeKind};
use crate::graph::{RootId, Survey, reach};
use crate::message::failure::{Failure, Result, command};
use crate::message::redact::{self, visible};
use crate::plan::update;
use crate::record::{LOCK_NAME, Lock};
use crate::reference::{RepoSpec, Upstream};
use crate::targets::{deployed_roots, flux_objects};
use crate::tree::{Tree, path};
use crate::workspace::{Files, from_top, repository_offline};

/// Arguments of `tree`.
#[derive(Debug, Clone, Args)]
pub(super) struct TreeArgs {
    /// The directories to start at [default: all top-level roots]
    #[arg(value_name = "TARGET", value_hint = ValueHint::DirPath)]
    targets: Vec<String>,

    /// Show a commit [default: the working tree]
    #[arg(long, value_name = "REV")]
    rev: Option<String>,

    /// Show what references this URL, given with or without its ref, or as a prefix
    ///
    /// Also through other remotes, as far as the lock tells.
    #[arg(long, value_name = "URL")]
    invert: Option<String>,
}

impl TreeArgs {
    /// Surveys the tree, and inverts the graph if requested.
    pub(super) fn run(&self) -> Done {
        let repo = repository_offline()?;
        let files = Files::open(&repo, &Snapshot::of(self.rev.as_deref()))?.checked_out();
        let config = Config::of(&*files, "")?;
        // A URL is a likely mistake: `--invert` takes it.
        let targets = self.targets.iter().map(|text| {
            if text.contains("://") {
                let url = redact::url(text);
                let invert = command("git kustomize-localize tree --invert", [&url]);
                return Err(Failure::new(format!("`{url}` is not a directory of this repository"))
                    .hint(format!("to see what references it: {invert}")));
            }
            from_top(&repo, &*files, text)
        });
        let targets = targets.collect::<Result<Vec<String>>>()?;
        let lock = Lock::find(&*files, LOCK_NAME)?.unwrap_or_default();
        let mut tree = ReferenceTree::survey(Some(&repo), files, &config, &targets)?;
        if let Some(url) = &self.invert {
            tree.invert(url, &lock)?;
        }
        Ok(Box::new(tree))
    }
}

/// Whether a URL of the command line means a reference. A URL with a directory means only what is in that directory.
fn is_named(url: &str, reference: &str) -> bool {
    let is_there = match (RepoSpec::parse(url), RepoSpec::parse(reference)) {
        (Ok(asked), Ok(named)) => path::is_in(&named.directory(), &asked.directory()),
        _ => true,
    };
    is_there && update::UrlArgument::of(url).is_of_reference(reference)
}

/// The entries of a lock that lead to the entries that a URL means: only the lock knows what an upstream references.
fn leading_to(url: &str, lock: &Lock) -> BTreeSet<Upstream> {
    let named_by = lock.referrers();
    let above = |upstream: &Upstream| named_by.get(upstream).cloned().unwrap_or_default();
    let meant: Vec<Upstream> = lock.upstreams().filter(|upstream| is_named(url, &upstream.to_string())).collect();
    reach(meant.iter().flat_map(above), above).into_iter().map(|upstream| upstream.source()).collect()
}

/// The reference graph: the outcome of `tree`.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct ReferenceTree {
    /// The nodes at the top.
    starts: Vec<Node>,
    /// The references, in the order of the file for each node.
    pub(super) references: Vec<NamedReference>,
}

impl ReferenceTree {
    /// Walks a tree without the network, from the roots in `paths` (from the top), or else from all roots that no other
    /// root references. `repo` tells which roots are deployed although the configuration leaves them out.
    pub(super) fn survey(
        repo: Option<&Rc<LocalRepo>>,
        tree: Rc<dyn Tree>,
        config: &Config,
        paths: &[String],
    ) -> Result<ReferenceTree> {
        let survey = Survey::of(tree.clone());
        let deployed = repo.map(|repo| deployed_roots(repo, &survey, config)).transpose()?.unwrap_or_default();
        let directories = config.starting_points(&*tree, paths, &tree.kustomizations()?, deployed.clone())?;
        let explored = survey.explore_inputs(&directories);
        let graph = &explored.graph;
        let flux = flux_objects(&explored, &deployed);
        // A kustomization file of Flux is an object, not a root.
        let mut roots: Vec<RootId> = explored.starts.iter().copied().flatten().collect();
        roots.retain(|root| !flux.contains(&graph.roots[*root].file));
        let starts = graph.top_roots(&roots, graph.root_ids());
        let namer = Namer::of(&explored, config)?;
        let references = graph.root_ids().flat_map(|root| namer.references_of(root)).collect();
        Ok(ReferenceTree { starts: starts.into_iter().map(|root| namer.root(root)).collect(), references })
    }

    /// The nodes that each node references, each once, in the order of the references.
    fn referenced_nodes(&self) -> HashMap<&Node, Vec<&Node>> {
        let mut below: HashMap<&Node, Vec<&Node>> = HashMap::new();
        let mut seen = HashSet::new();
        for reference in &self.references {
            if seen.insert((&reference.from, &reference.to)) {
                below.entry(&reference.from).or_default().push(&reference.to);
            }
        }
        below
    }

    /// Inverts the graph: it starts at the remote or localized nodes that `url` means, and at those whose upstream
    /// leads to `url` by the lock, and goes on to the nodes that reference these. Fails if there is no node to start
    /// at.
    fn invert(&mut self, url: &str, lock: &Lock) -> Result<()> {
        let sources = leading_to(url, lock);
        let named = self.references.iter().map(|reference| &reference.to).chain(&self.starts);
        let meant: BTreeSet<Node> = named
            .filter(|node: &&Node| {
                (node.is_remote() || node.remote.is_some())
                    && (is_named(url, &node.name)
                        || node.remote.as_ref().is_some_and(|source: &Upstream| {
                            is_named(url, &source.to_string()) || sources.contains(source)
                        }))
            })
            .cloned()
            .collect();
        let mut above: HashMap<&Node, Vec<&Node>> = HashMap::new();
        for reference in &self.references {
            above.entry(&reference.to).or_default().push(&reference.from);
        }
        // Everything that leads to the URL is shown, at any distance: a change at the URL touches all of it.
        let leading = reach(&meant, |node| above.get(node).cloned().unwrap_or_default());
        let leading: HashSet<Node> = leading.into_iter().cloned().collect();
        self.references.retain(|reference| leading.contains(&reference.to));
        self.starts = meant.into_iter().collect();
        // The references are turned around, so that the printer of the tree serves both directions.
        for reference in &mut self.references {
            let from = Rc::new(reference.to.clone());
            reference.to = std::mem::replace(&mut reference.from, from).as_ref().clone();
        }
        if self.starts.is_empty() {
            return Err(Failure::new(format!("nothing names `{}`", redact::url(url)))
                .hint("list the remote references: git kustomize-localize tree"));
        }
        Ok(())
    }
}

impl Outcome for ReferenceTree {
    /// A tree below each start.
    fn text(&self, shown: Shown) -> String {
        let below = self.referenced_nodes();
        let mut known = HashSet::new();
        let mut out = String::new();
        for start in &self.starts {
            if !out.is_empty() {
                out.push('\n');
            }
            // A work list, not recursion: how deep roots are nested is up to whoever wrote them.
            let mut todo = vec![(start, String::new(), "", "")];
            while let Some((node, prefix, branch, indent)) = todo.pop() {
                let children = below.get(node).map_or(&[][..], Vec::as_slice);
                // A node that was already printed with all below it is only marked.
                let again = !children.is_empty() && !known.insert(node);
                let mark = if again { " (*)" } else { "" };
                let frame = Style::new().force_styling(shown.color).dim().apply_to(format!("{prefix}{branch}"));
                out += &format!("{frame}{}{mark}\n", styled(node, shown.color));
                for (index, child) in children.iter().enumerate().rev().filter(|_| !again) {
                    let is_last = index + 1 == children.len();
                    let (branch, indent_below) =
                        if is_last { ("└── ", "    ") } else { ("├── ", "│   ") };
                    todo.push((child, format!("{prefix}{indent}"), branch, indent_below));
                }
            }
        }
        out
    }

    fn stderr(&self, _output: &OutputArgs) -> String {
        if self.starts.is_empty() { "no kustomization found\n".to_owned() } else { String::new() }
    }
}

/// The name of a node in the colour of its state, and its state: green if it is locked, else red if a build would fetch
/// it or cannot read it.
fn styled(node: &Node, color: bool) -> String {
    let plain = Style::new().force_styling(color);
    let (dim, state) = (plain.clone().dim(), node.state());
    let style = match node.kind {
        _ if node.locked.is_some() => plain.green(),
        _ if node.is_remote() || node.why.is_some() => plain.red(),
        NodeKind::Kustomization => plain.bold(),
        _ => plain,
    };
    let name = style.apply_to(visible(&node.name));
    if state.is_empty() {
        name.to_string()
    } else {
        format!("{name} {}", dim.apply_to(format!("({})", visible(&state))))
    }
}

#[cfg(test)]
mod tests;
