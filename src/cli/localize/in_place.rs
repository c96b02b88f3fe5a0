//! In the working tree: what was brought in goes beside the kustomization that names it.

use std::collections::BTreeSet;

use super::globs;
use crate::build_check::{self, After, BuildCheck, Checkout, Earlier, Job, Metadata, Original};
use crate::cli::online::{LocalizeArgs, Restrictor, fetcher};
use crate::config::Strict;
use crate::failure::{Failure, Failures, Result};
use crate::fetch::{self, Fetcher, Tip};
use crate::mend::{Ground, in_place};
use crate::record::{Change, LoadRestrictor, Lock};
use crate::reference::RepoSpec;
use crate::report::{InPlaceReport, LockOutcome};
use crate::tree::{self, Resolved, path};
use crate::walk::{Graph, Root};

pub(super) fn run(args: &LocalizeArgs) -> Result<InPlaceReport, Failures> {
    if args.update {
        return Err(
            Failure::new("`--update` cannot be used with `--in-place --no-commit`")
                .hint("to resolve again what the lock holds: git kustomize-localize update")
                .into(),
        );
    }
    let ground = Ground::find()?;
    let targets = targets(args, &ground)?;
    let patterns = globs("--leave-missing", &args.leave_missing)?;
    let leave_missing = |path: &str| patterns.is_match(path);
    let previous = ground.lock.clone().map(|lock| Tip {
        tree: ground.tree.clone(),
        directory: String::new(),
        lock,
    });
    let so_far = ground.lock.as_ref().is_some_and(|lock| lock.options.helm);
    let helm = args.fetch.helm(so_far);
    let mut fetcher = fetcher(
        Some(&ground.here),
        fetch::Options {
            pin: args.fetch.pin || ground.config.pin,
            allow_private: ground.config.allow_private,
            helm,
            locked: args.locked,
            offline: args.offline,
            ..args.fetch.options(&args.output)
        },
        Vec::from_iter(ground.lock.clone()),
        previous,
    )?;
    let held = ground.lock.iter().flat_map(|lock| &lock.options.trust_exec);
    let trust_exec: BTreeSet<String> = held.chain(&args.trust_exec).cloned().collect();
    let trusted = globs("--trust-exec", &trust_exec)?;
    let request = in_place::Request {
        trusted: &|path| trusted.is_match(path),
        trust_exec,
        again_trusting: &super::again_trusting,
        targets: &targets,
        load_restrictor: load_restrictor(args, &ground),
        leave_missing: &leave_missing,
        leave_remote: super::leave_remote(&args.leave, ground.lock.as_deref()),
        helm,
        no_licenses: args.leaves_licenses(ground.lock.iter()),
        overwrite: args.overwrite,
        trailers: false,
        again: BTreeSet::new(),
    };
    let mut plan = in_place::plan(&ground, &request, &mut fetcher)?;
    let proof = proven(
        args,
        &ground,
        request.load_restrictor,
        &plan,
        None,
        &fetcher,
        None,
    )?;
    let strict = args.output.strict(&ground.config);
    if let Some(proof) = &proof {
        plan.warnings.extend(super::not_built(args, &strict, proof));
    }
    let report = finish(&ground, args.fetch.dry_run, strict, plan, proof)?;
    Ok(InPlaceReport { targets, ..report })
}

/// Builds every affected root as it is and as it is going to be, unless the arguments say not to, or an earlier run
/// has done it.
pub(super) fn proven(
    args: &LocalizeArgs,
    ground: &Ground,
    load_restrictor: LoadRestrictor,
    plan: &in_place::Plan,
    checkout: Option<Checkout<'_>>,
    fetcher: &Fetcher,
    earlier: Option<Earlier>,
) -> Result<Option<BuildCheck>> {
    if plan.affected.is_empty() {
        return Ok(None);
    }
    let target = |directory: &String| build_check::Target {
        name: match directory.as_str() {
            "" => ".".to_owned(),
            directory => directory.to_owned(),
        },
        original: Original::Directory(directory.clone()),
        localized: directory.clone(),
        asked: asked(&plan.before, directory),
    };
    let job = Job {
        before: &plan.before,
        after: After::InPlace(&plan.after),
        checkout,
        targets: plan.affected.iter().map(target).collect(),
        load_restrictor,
        trusted: &plan.trusted,
        earlier,
        moved: &|repositories| fetcher.moved(repositories),
    };
    super::prove(args, Some(&ground.here), job, &plan.lock.left).map(Some)
}

/// Returns which annotations about the build the kustomization in a directory asks for.
fn asked(graph: &Graph, directory: &str) -> Metadata {
    let is_it = |root: &&Root| root.source == 0 && root.directory == directory;
    let root = graph.roots.iter().find(is_it);
    root.map_or(Metadata::default(), |root| {
        Metadata::of(&graph.files[root.file].bytes)
    })
}

/// Makes the changes of a plan, and says what came of it.
pub(in crate::cli) fn finish(
    ground: &Ground,
    dry_run: bool,
    strict: Strict,
    plan: in_place::Plan,
    proof: Option<BuildCheck>,
) -> Result<InPlaceReport, Failures> {
    let differs = proof.as_ref().is_some_and(BuildCheck::differs);
    let outcome = match (plan.changes.is_empty(), dry_run || differs) {
        _ if !differs && plan.warnings.iter().any(|one| strict.takes(one.id)) => {
            LockOutcome::Warned
        }
        (true, true) => LockOutcome::Unchanged,
        (false, true) => LockOutcome::DryRun,
        (is_same, false) => {
            ground.apply(&plan.changes)?;
            if is_same {
                LockOutcome::Unchanged
            } else {
                LockOutcome::Written
            }
        }
    };
    let before = ground.lock.as_deref().cloned().unwrap_or_default();
    let changes = Lock::changes(&before, &plan.lock);
    Ok(report(outcome, plan, changes, proof, strict))
}

/// Returns what came of a plan, of all roots and in the working tree. `changes` are those of the lock.
pub(super) fn report(
    outcome: LockOutcome,
    plan: in_place::Plan,
    changes: Vec<Change>,
    proof: Option<BuildCheck>,
    strict: Strict,
) -> InPlaceReport {
    InPlaceReport {
        outcome,
        strict,
        updated: false,
        targets: Vec::new(),
        changes,
        remotes: plan.lock.remotes,
        left: plan.lock.left,
        written: plan
            .changes
            .iter()
            .filter_map(|change| {
                let (bytes, _) = change.to.as_ref()?;
                Some((change.path.clone(), bytes.len() as u64))
            })
            .collect(),
        removed: plan
            .changes
            .iter()
            .filter(|change| change.to.is_none())
            .map(|change| change.path.clone())
            .collect(),
        rewritten: plan.rewritten,
        stage: plan.paths,
        warnings: plan.warnings,
        proof,
        branch: None,
    }
}

/// Returns which files a root may load: as the arguments say, or else the configuration.
pub(super) fn load_restrictor(args: &LocalizeArgs, ground: &Ground) -> LoadRestrictor {
    match args.load_restrictor {
        Restrictor::None => LoadRestrictor::None,
        Restrictor::RootOnly => ground.config.load_restrictor,
    }
}

/// Returns the directories of the roots that are named, from the top.
fn targets(args: &LocalizeArgs, ground: &Ground) -> Result<Vec<String>> {
    let given = args
        .target
        .iter()
        .map(std::path::Path::new)
        .chain(args.new_dir.iter().map(AsRef::as_ref))
        .chain(args.more.iter().map(AsRef::as_ref));
    let mut targets = Vec::new();
    for given in given {
        let text = given
            .to_str()
            .ok_or_else(|| Failure::new("a target is not UTF-8, so no reference could name it"))?;
        targets.push(target(text, ground)?);
    }
    targets.sort();
    targets.dedup();
    Ok(targets)
}

fn target(text: &str, ground: &Ground) -> Result<String> {
    if text.is_empty() {
        return Err(Failure::new("the target is empty").hint("name a directory"));
    }
    let prefix = ground.here.prefix.trim_end_matches('/');
    let Some(lexical) = tree::named(&*ground.tree, Some(""), prefix, text) else {
        return Err(Failure::new(format!(
            "the target `{text}` lies outside of the repository"
        ))
        .hint("run it in the repository that holds it"));
    };
    let found = match tree::resolve(&*ground.tree, &lexical)? {
        Resolved::Directory { path } => path,
        Resolved::File { .. } => {
            return Err(Failure::new(format!("the target `{text}` is a file"))
                .hint("name the directory that holds the kustomization"));
        }
        Resolved::Submodule { path } => {
            return Err(Failure::new(format!(
                "the target `{text}` lies in the submodule `{path}`"
            ))
            .hint("run it in the submodule"));
        }
        _ if RepoSpec::parse(text).is_ok() => {
            return Err(Failure::new(
                "only a directory of this repository can be localized in place",
            )
            .hint("to bring in a copy of a remote target: leave `--in-place` out"));
        }
        _ => {
            return Err(
                Failure::new(format!("there is no directory `{text}` for the target"))
                    .hint("with `--in-place` every argument is a target: there is no NEW_DIR"),
            );
        }
    };
    if ground.is_owned(&path::join(&found, "kustomization.yaml")) {
        return Err(Failure::new(format!(
            "the target `{text}` was localized itself: it lies in localized files"
        ))
        .hint("name the root that references it"));
    }
    Ok(found)
}
