//! What a record describes, localized again: from the source commit and the lock alone, with bytes from cache or
//! network. Nothing is written, and what the branch holds is not looked at.

use std::rc::Rc;
use std::time::Duration;

use clap::Parser;

use super::{Local, copy, fetched_target, globs, local_target, lock_at, owns, remote_target};
use crate::cli::online::{LocalizeArgs, fetcher};
use crate::cli::{Cli, Command};
use crate::commit::objects;
use crate::config::Config;
use crate::failure::{Failure, Failures, Result};
use crate::fetch::{self, Fetcher};
use crate::git::{CommitId, LocalRepo};
use crate::mend::{Ground, in_place as mend};
use crate::record::{LOCK_NAME, LoadRestrictor, Lock};
use crate::tree::absence::Absences;
use crate::tree::objects::{ObjectTree, object_id};

/// A tree that was made again. Its objects are in memory only.
pub(in crate::cli) struct Rebuilt {
    /// Where the tree can be read.
    pub(in crate::cli) repository: gix::Repository,
    /// Its id.
    pub(in crate::cli) tree: gix::ObjectId,
}

/// Localizes again what `directory` holds by its lock; the whole repository where the lock has no target. `timeout`
/// holds for one repository or file.
///
/// # Errors
/// When something cannot be had any more, or would have to be resolved anew.
pub(in crate::cli) fn rebuild(
    here: &Rc<LocalRepo>,
    source: &CommitId,
    directory: &str,
    lock: &Rc<Lock>,
    timeout: Option<Duration>,
) -> Result<Rebuilt, Failures> {
    let repository = crate::tree::objects::open(&here.git_dir)?.with_object_memory();
    let source_tree = object_id(&source.tree)?;
    let tree = Rc::new(ObjectTree::of_here(here.clone(), source_tree)?);
    let tree = match &lock.target {
        Some(target) => {
            let args = arguments(target, directory, lock)?;
            let local = Local {
                lock: lock_at(&*tree, LOCK_NAME)?,
                config: Config::of(&*tree, "")?,
                tree: tree.clone(),
                committed: true,
                prefix: String::new(),
                top: Some(String::new()),
            };
            let mut fetcher = locked(here, &local.config, lock, lock.options.pin, timeout)?;
            let target = match remote_target(&args)? {
                Some(spec) => fetched_target(&args, &spec, &mut fetcher)?,
                None => local_target(&args, &local)?,
            };
            let absences = Absences::new(here.clone(), tree.clone(), false);
            let mut copied = copy(
                &args,
                &local,
                target,
                &mut fetcher,
                &|path| absences.of(path),
                Some(directory.to_owned()),
                &|path| owns(local.lock.as_ref(), path),
            )?;
            copied.lock.trailers = lock.trailers;
            let none = std::collections::BTreeMap::new();
            let files = copied.files()?;
            objects::write(&repository, source_tree, &none, directory, &files)?.directory
        }
        None => {
            let ground = Ground::at(here.clone(), tree)?;
            let mut fetcher = locked(here, &ground.config, lock, true, timeout)?;
            let trusted = globs("--trust-exec", &lock.options.trust_exec)?;
            let request = mend::Request {
                trusted: &|path| trusted.is_match(path),
                trust_exec: lock.options.trust_exec.clone(),
                again_trusting: &super::again_trusting,
                targets: &[],
                // What these let pass changes nothing in place.
                load_restrictor: LoadRestrictor::None,
                leave_missing: &|_| true,
                leave_remote: lock.options.leave_remote.clone(),
                helm: lock.options.helm,
                no_licenses: lock.options.no_licenses,
                overwrite: false,
                trailers: lock.trailers,
                again: Default::default(),
            };
            let plan = mend::plan(&ground, &request, &mut fetcher)?;
            objects::write_changes(&repository, source_tree, &plan.changes)?
        }
    };
    Ok(Rebuilt { repository, tree })
}

/// Fetches what the lock holds, and nothing else.
fn locked(
    here: &Rc<LocalRepo>,
    config: &Config,
    lock: &Rc<Lock>,
    pin: bool,
    timeout: Option<Duration>,
) -> Result<Fetcher> {
    let options = fetch::Options {
        timeout,
        pin,
        helm: lock.options.helm,
        locked: true,
        allow_private: config.allow_private,
        ..fetch::Options::default()
    };
    fetcher(Some(here), options, vec![lock.clone()], None)
}

/// Returns the arguments that a copy was made with.
fn arguments(target: &str, directory: &str, lock: &Lock) -> Result<LocalizeArgs> {
    let options = &lock.options;
    let mut words = vec!["git-kustomize-localize".to_owned(), "localize".to_owned()];
    let mut option = |name: &str, value: &str| words.push(format!("--{name}={value}"));
    if let Some(scope) = &options.scope {
        option("scope", scope);
    }
    if options.load_restrictor == LoadRestrictor::None {
        option("load-restrictor", "none");
    }
    for glob in &options.leave_missing {
        option("leave-missing", glob);
    }
    for glob in &options.leave_remote {
        option("leave-remote", glob);
    }
    for glob in &options.trust_exec {
        option("trust-exec", glob);
    }
    for (name, is_on) in [
        ("pin", options.pin),
        ("helm", options.helm),
        ("no-licenses", options.no_licenses),
    ] {
        if is_on {
            words.push(format!("--{name}"));
        }
    }
    words.extend(["--locked", "--", target, directory].map(str::to_owned));
    match Cli::try_parse_from(words).map(|cli| cli.command) {
        Ok(Some(Command::Localize(args))) => Ok(*args),
        _ => Err(Failure::new(format!(
            "the lock of `{directory}` names options that this version does not know"
        ))),
    }
}
