//! A copy of one target with everything it references.

use std::collections::BTreeMap;

use super::{Affected, Content, Options, Original, Plan, ResultFile, Rules, Writes, localize};
use crate::graph::{self, Absence, Remotes, Start};
use crate::message::failure::{Failure, Failures, Result};
use crate::record::{LOCK_NAME, Lock};
use crate::tree::path;
use crate::workspace::Workspace;

/// What to copy.
pub(crate) struct Target {
    /// Where the walk begins.
    pub start: Start,
    /// How locks and messages name it.
    pub name: String,
    /// The scope, where one was given, as locks name it.
    pub scope: Option<String>,
    /// The URL that names it, unless it is local.
    pub url: Option<String>,
}

/// Walks the target and localizes it into `into`, a path in the tree of the workspace. Nothing is written. The paths
/// of `allow` are relative to the top of the repository, or to the working directory.
pub(crate) fn plan(
    workspace: &Workspace,
    target: Target,
    into: String,
    options: &Options,
    remotes: &mut dyn Remotes,
) -> Result<Plan, Failures> {
    let base = workspace.top.as_deref().unwrap_or(&workspace.prefix);
    let config = &workspace.config;
    let leave_missing = |path: &str| {
        let path = path::below(path, base);
        path.is_some_and(|path| config.may_be_missing(path))
    };
    let absences = workspace.absences();
    let absence = |path: &str| match &absences {
        Some(absences) => absences.of(path),
        None => Absence::Nowhere,
    };
    let walking = graph::Options {
        load_restrictor: config.load_restrictor,
        leave: Some(config),
        leave_missing: Some(&leave_missing),
        absence: Some(&absence),
        forbidden: Some(into.clone()),
        ..graph::Options::default()
    };
    let graph = graph::walk(target.start, Some(remotes), &walking)?;
    let rules = Rules {
        owned: &|path| workspace.owns(path),
        trusted: &|path| config.trusts(path),
        licenses: !config.no_licenses,
        leave: Some(config),
    };
    let localized = localize(&graph, config.load_restrictor, &rules)?;
    let files = localized.files.iter();
    let mut lock = Lock {
        target: Some(target.name.clone()),
        trailers: options.trailers,
        scope: target.scope,
        remotes: localized.remotes,
        left: localized.left,
        files: files.map(|(path, file)| file.record(path)).collect(),
        ..Lock::default()
    };
    lock.sort();
    let mut warnings = graph.warnings.clone();
    warnings.extend(localized.warnings);
    let untrusted = localized.untrusted.iter();
    warnings.extend(untrusted.map(|program| program.warning()));
    let affected = Affected {
        name: target.name,
        root: 0,
        original: match target.url {
            Some(url) => Original::Url(url),
            None => {
                let directory = graph.in_scope(0, &graph.roots[0].directory);
                Original::Directory(directory.to_owned())
            }
        },
        localized: localized.target,
    };
    Ok(Plan {
        writes: Writes::Copy { into, files: with_lock(localized.files, &lock)? },
        lock,
        rewritten: localized.rewritten,
        warnings,
        trusted: localized.trusted,
        used: localized.local_files,
        load_restrictor: config.load_restrictor,
        affected: vec![affected],
        before: graph,
    })
}

/// Returns the files of NEW_DIR with its lock.
fn with_lock(mut files: BTreeMap<String, ResultFile>, lock: &Lock) -> Result<BTreeMap<String, ResultFile>> {
    let text = lock.render()?;
    let lock = ResultFile {
        content: Content::Bytes(text.into_bytes().into()),
        executable: false,
        stripped: false,
        remote: None,
        source: None,
        rewritten: BTreeMap::new(),
    };
    match files.insert(LOCK_NAME.to_owned(), lock) {
        None => Ok(files),
        Some(_) => Err(Failure::new(format!("the copy would hold a file `{LOCK_NAME}` of its own"))
            .hint("give a scope above the target, so that the copy begins higher: `--scope DIR`")),
    }
}
