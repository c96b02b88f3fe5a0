//! Plans a copy of one target with everything that it references.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::files::{LocalizedRoots, ResultFile};
use super::placing::LayoutBuilder;
use super::remotes::{self, UserRemotes};
use super::{ComparedRoot, Plan, PlanOptions, lock, proof};
use crate::config::Config;
use crate::graph::{self, Explored, Graph, Remotes, RootId, SourceId, Start, Survey};
use crate::message::failure::{Failure, Failures, Result};
use crate::record::{LOCK_NAME, Lock};
use crate::reference::Upstream;
use crate::tree::overlay::OverlayTree;
use crate::tree::path;
use crate::workspace::Workspace;

/// The target to copy.
pub(crate) struct CopySource {
    /// The tree and directory in which the walk starts.
    pub start: Start,
    /// Its name in locks and messages.
    pub name: String,
    /// The scope as locks name it. `None` if none was given.
    pub scope: Option<String>,
}

/// Plans a copy of the target into `into`, a path in the tree of the workspace. The paths of `allow` are relative to
/// the top of the repository, or to the working directory outside of one.
pub(crate) fn plan(
    workspace: &Workspace,
    target: CopySource,
    into: String,
    options: &PlanOptions,
    remotes: &mut dyn Remotes,
) -> Result<Plan, Failures> {
    let base = workspace.top.as_deref().unwrap_or(&workspace.prefix);
    let config = &workspace.config;
    let absences = workspace.absences();
    let old_lock = workspace.lock.as_deref().cloned().unwrap_or_default();
    // The lock of the user decides about its upstreams, and `into` must not become a part of the copy.
    let policy = graph::WalkPolicy {
        load_restrictor: config.load_restrictor,
        config: Some(config),
        lock: Some(&old_lock),
        allows_missing: Some(&|path: &str| path::below(path, base).is_some_and(|path| config.may_be_missing(path))),
        absences: absences.as_ref(),
        forbidden: Some(into.clone()),
        ..graph::WalkPolicy::default()
    };
    let graph = graph::walk(target.start, Some(remotes), &policy)?;
    let (localized, after) = localized(&graph, config, &old_lock)?;
    // `urls` are the entries in which a bot may change the commit, and no bot edits the lock of a copy.
    let user_remotes = UserRemotes { urls: BTreeSet::new(), ..remotes::user_remotes(&graph, config, &old_lock) };
    // The walk localizes whatever the old lock has, also against an exception.
    let exception = |upstream: &Upstream| lock::excepted(config, upstream).filter(|_| !old_lock.holds(upstream));
    // Everything in the copy was fetched by this walk, so no old entry is needed.
    let lock = Lock {
        target: Some(target.name.clone()),
        trailers: options.trailers,
        scope: target.scope,
        files: localized.files.values().map(|(_, entry)| entry.clone()).collect(),
        ..lock::reachable_lock(&Lock::default(), &localized.remotes, &BTreeSet::new(), &user_remotes, &exception)
    };
    // The lock of the copy needs this path.
    if localized.files.contains_key(LOCK_NAME) {
        return Err(Failure::new(format!("the target contains its own file `{LOCK_NAME}`"))
            .hint("choose a scope above the target: `--scope DIR`")
            .into());
    }
    // The lock lists all files but itself.
    let files = localized.files.into_iter().map(|(path, (file, _))| (path, file));
    let files = files.chain([(LOCK_NAME.to_owned(), ResultFile::of(&lock)?)]);
    let mut findings = graph.findings.clone();
    findings.extend(localized.findings);
    // A copy has one target, so one build of each side proves it.
    let affected = ComparedRoot {
        name: target.name,
        root: RootId(0),
        original: graph.in_scope(SourceId::FIRST, &graph.roots[0].directory).to_owned(),
        localized: localized.target,
        is_changed: true,
    };
    Ok(Plan {
        changes: files.map(|(path, file)| (path::join(&into, &path), Some(file))).collect(),
        new_dir: Some(into),
        stage: Vec::new(),
        lock,
        rewritten: localized.rewritten,
        findings,
        trusted: localized.trusted,
        affected: vec![affected],
        before: graph,
        after: after.graph,
        survey: None,
    })
}

/// Localizes a graph from its first root, and walks the result without a network, to prove that each reference in it
/// leads to something there, unless it stays remote or may be missing.
pub(super) fn localized(
    graph: &Graph,
    config: &Config,
    old_lock: &Lock,
) -> Result<(LocalizedRoots, Explored), Failures> {
    let localized = LayoutBuilder::new(graph, config).localize(&[RootId(0)], old_lock)?;
    let tree = Rc::new(localized.on(OverlayTree::default()));
    // The copy is walked as the user's own tree, because it will be one.
    let policy = graph::WalkPolicy {
        load_restrictor: config.load_restrictor,
        allows_missing: Some(&|path: &str| localized.allowed_missing.contains(path)),
        config: Some(config),
        // The comments of a fetched target are not the user's.
        ignores_comments: graph.sources[0].repository.is_some(),
        ..graph::WalkPolicy::default()
    };
    let after = Survey::of(tree).judged(std::slice::from_ref(&localized.target), &policy);
    // This does not depend on a build: kustomize may be missing on this machine.
    proof::assert_whole(None, &after, &localized)?;
    Ok((localized, after))
}
