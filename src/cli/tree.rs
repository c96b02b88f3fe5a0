//! `tree`: the reference graph.

use std::process::ExitCode;
use std::rc::Rc;

use clap::{Args, ValueEnum, ValueHint};

use super::check::{self, What};
use super::output;
use crate::config::Config;
use crate::failure::{Failure, Failures, Result};
use crate::git::LocalRepo;
use crate::mend;
use crate::redact;
use crate::reference::RepoSpec;
use crate::reference_tree::{self, Node, NodeKind, ReferenceTree};
use crate::report::reference_tree as report;
use crate::tree::path;

/// Arguments of `tree`.
#[derive(Debug, Clone, Args)]
pub(super) struct TreeArgs {
    /// The kustomization roots to begin with [default: all that no other names]
    #[arg(value_name = "TARGET", value_hint = ValueHint::DirPath)]
    targets: Vec<String>,

    /// Show the files on disk (default)
    #[arg(long, conflicts_with_all = ["staged", "rev"])]
    working_tree: bool,

    /// Show the index: what would be committed
    #[arg(long, conflicts_with = "rev")]
    staged: bool,

    /// Show a commit
    #[arg(long, value_name = "REV")]
    rev: Option<String>,

    /// Show only what is remote or was brought in, and what leads to it
    #[arg(long)]
    remote: bool,

    /// Show who names this: a URL with or without its ref, or the beginning of one
    #[arg(long, value_name = "URL", conflicts_with_all = ["remote", "since"])]
    invert: Option<String>,

    /// Show only the references that the commit BASE does not have, and those that only it has
    #[arg(long, value_name = "BASE")]
    since: Option<String>,

    /// How the graph is written to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    format: Format,
}

/// How the graph is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// As a tree; `(*)` marks what was shown before
    Text,
    /// For machines: one JSON object
    Json,
    /// For Markdown on GitHub and GitLab: a picture
    Mermaid,
}

/// Shows what the arguments say.
pub(super) fn run(args: &TreeArgs) -> ExitCode {
    match reference_tree(args) {
        Ok(reference_tree) => {
            if reference_tree.nodes.is_empty() && args.format == Format::Text {
                output::say(match (args.remote, args.since.is_some()) {
                    (_, true) => "no difference\n",
                    (true, _) => "nothing remote is referenced, and nothing was brought in\n",
                    _ => "there is no kustomization\n",
                });
            }
            output::print(&match args.format {
                Format::Text => report::text(&reference_tree),
                Format::Json => report::json(&reference_tree),
                Format::Mermaid => report::mermaid(&reference_tree),
            });
            ExitCode::SUCCESS
        }
        Err(failures) => output::failed(&failures, false),
    }
}

fn reference_tree(args: &TreeArgs) -> Result<ReferenceTree, Failures> {
    let here = check::here()?;
    let what = match (&args.rev, args.staged) {
        (Some(rev), _) => What::Commit(rev.clone()),
        (None, true) => What::Index,
        (None, false) => What::WorkingTree,
    };
    let mut reference_tree = of(&here, &what, args)?;
    if let Some(base) = &args.since {
        let base = of(&here, &What::Commit(base.clone()), args)
            .map_err(|failures| in_base(failures, base))?;
        reference_tree.since(&base);
    }
    if let Some(url) = &args.invert {
        let name = mend::update::Name::of(url);
        if !reference_tree.invert(|node| is_named(&name, node) && is_there(url, node)) {
            return Err(
                Failure::new(format!("nothing names `{}`", redact::url(url)))
                    .hint("see what is named: git kustomize-localize tree --remote")
                    .into(),
            );
        }
    }
    Ok(reference_tree)
}

fn in_base(failures: Failures, base: &str) -> Failures {
    let context = format!("cannot tell what is new since {base}");
    let failures = failures.0.into_iter();
    Failures(failures.map(|failure| failure.context(&context)).collect())
}

fn of(here: &Rc<LocalRepo>, what: &What, args: &TreeArgs) -> Result<ReferenceTree, Failures> {
    let opened = check::open(here, what)?;
    let config = Config::of(&*opened.tree, "")?;
    let targets = args
        .targets
        .iter()
        .map(|text| {
            if text.contains("://") {
                Err(Failure::new(format!(
                    "`{}` is not a directory of this repository",
                    redact::url(text)
                ))
                .hint("to see who names it: --invert URL"))
            } else {
                check::from_top(here, &*opened.tree, text)
            }
        })
        .collect::<Result<Vec<String>>>()?;
    let mut reference_tree =
        reference_tree::survey(opened.tree, &config, &targets, args.invert.is_some())?;
    if args.remote {
        reference_tree.only_remote();
    }
    Ok(reference_tree)
}

/// Says whether a node lies where the URL says, which may name a directory of a repository.
fn is_there(url: &str, node: &Node) -> bool {
    match (RepoSpec::parse(url), RepoSpec::parse(&node.name)) {
        (Ok(asked), Ok(found)) => path::is_in(&found.directory(), &asked.directory()),
        _ => true,
    }
}

/// Says whether a URL of the command line means a node, by its own URL or by what it was brought in from.
fn is_named(name: &mend::update::Name, node: &Node) -> bool {
    match &node.kind {
        NodeKind::Root { localized, .. } | NodeKind::File { localized } => localized
            .as_ref()
            .is_some_and(|label| name.is_of_reference(label)),
        NodeKind::Git { .. } | NodeKind::Http { .. } | NodeKind::Chart { .. } => {
            name.is_of_reference(&node.name)
        }
        NodeKind::Broken(_) => false,
    }
}
