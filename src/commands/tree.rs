//! `tree`: the reference graph.

use std::rc::Rc;

use super::check::{self, What};
use crate::config::Config;
use crate::git::LocalRepo;
use crate::message::failure::{Failure, Failures, Result};
use crate::message::redact;
use crate::plan::update;
use crate::reference::RepoSpec;
use crate::reference_tree::{self, Node, NodeKind, ReferenceTree};
use crate::tree::path;
use crate::workspace::{from_top, repository_offline};

/// What to show.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The files to look at.
    pub what: What,
    /// The roots to begin with, from the directory that we were started in; none: all that no other names.
    pub targets: Vec<String>,
    /// Only what is remote or was brought in, and what leads to it.
    pub remote: bool,
    /// Only what references this URL, with or without its ref.
    pub invert: Option<String>,
}

/// Returns the graph.
pub(crate) fn tree(request: &Request) -> Result<ReferenceTree, Failures> {
    let here = repository_offline()?;
    let mut reference_tree = of(&here, &request.what, request)?;
    if let Some(url) = &request.invert {
        let name = update::Name::of(url);
        if !reference_tree.invert(|node| is_named(&name, node) && is_there(url, node)) {
            return Err(Failure::new(format!("nothing names `{}`", redact::url(url)))
                .hint("list the remote references: git kustomize-localize tree --remote")
                .into());
        }
    }
    Ok(reference_tree)
}

fn of(here: &Rc<LocalRepo>, what: &What, request: &Request) -> Result<ReferenceTree, Failures> {
    let opened = check::open(here, what)?;
    let config = Config::of(&*opened.tree, "")?;
    let targets = request
        .targets
        .iter()
        .map(|text| {
            if text.contains("://") {
                Err(Failure::new(format!("`{}` is not a directory of this repository", redact::url(text)))
                    .hint("to see what references it: --invert URL"))
            } else {
                from_top(here, &*opened.tree, text)
            }
        })
        .collect::<Result<Vec<String>>>()?;
    let mut reference_tree = reference_tree::survey(opened.tree, &config, &targets, request.invert.is_some())?;
    if request.remote {
        reference_tree.only_remote();
    }
    Ok(reference_tree)
}

/// Returns whether a node lies where the URL says, which may name a directory of a repository.
fn is_there(url: &str, node: &Node) -> bool {
    match (RepoSpec::parse(url), RepoSpec::parse(&node.name)) {
        (Ok(asked), Ok(found)) => path::is_in(&found.directory(), &asked.directory()),
        _ => true,
    }
}

/// Returns whether a URL of the command line means a node, by its own URL or by what it was brought in from.
fn is_named(name: &update::Name, node: &Node) -> bool {
    match &node.kind {
        NodeKind::Root { localized, .. } | NodeKind::File { localized } => {
            localized.as_ref().is_some_and(|label| name.is_of_reference(label))
        }
        NodeKind::Git { .. } | NodeKind::Http { .. } | NodeKind::Chart { .. } => name.is_of_reference(&node.name),
        NodeKind::Broken { .. } => false,
    }
}
