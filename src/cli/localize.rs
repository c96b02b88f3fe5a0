//! `localize`: a copy of a kustomization with everything it references, committed or on disk.

mod disk;
mod earlier;
mod following;
mod history;
pub(super) mod in_place;
mod message;
pub(super) mod rebuild;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use clap::CommandFactory;
use globset::{GlobSet, GlobSetBuilder};

use super::online::{LeaveArgs, LocalizeArgs, Restrictor, Verify, tell};
use crate::build_check::{
    self, After, BuildCheck, Checkout, Earlier, Job, Metadata, Original, TargetCheck, Verdict,
};
use crate::config::{Config, Leave, Missing, Strict, path_glob};
use crate::failure::{Failure, Failures, Location, Result, argument, nearest};
use crate::fetch::{self, Fetcher, Tip};
use crate::finding::WarningId;
use crate::git::LocalRepo;
use crate::localize::{Content, Localized, ResultFile, Rules, localize, named_left, reached_left};
use crate::record::{LOCK_NAME, Left, LoadRestrictor, Lock, LockOptions, sha256_hex};
use crate::redact;
use crate::reference::{self, RepoSpec, default_new_dir};
use crate::report::{Outcome, Report};
use crate::tree::{self, Resolved, SharedTree, path};
use crate::walk::{self, Absence, Graph, Root, Source, Start, Warning};

/// Localizes what the arguments say, and says what was done.
pub(super) fn run(args: &LocalizeArgs) -> ExitCode {
    if args.target.is_none() && !args.in_place && is_top() {
        return tell(&args.output, Err::<Report, _>(what_to_do_here().into()));
    }
    if args.offline && args.verify.verify == Some(Verify::Full) {
        let failure = Failure::new("`--verify=full` asks upstream, and `--offline` forbids that")
            .hint("leave one of them out; to build everything again from what is here: --verify");
        return tell::<Report>(&args.output, Err(failure.into()));
    }
    if args.in_place {
        return tell(
            &args.output,
            if args.no_commit {
                in_place::run(args)
            } else {
                following::run(args)
            },
        );
    }
    let outcome = match args.more.first() {
        Some(more) => Err(
            Failure::new(format!("`{}` is one argument too many", more.display()))
                .hint("name one TARGET and one NEW_DIR; several targets are for `--in-place`")
                .into(),
        ),
        None if args.no_commit => disk::run(args),
        None => history::run(args),
    };
    tell(&args.output, outcome)
}

/// Says whether we were started at the top of a repository.
fn is_top() -> bool {
    matches!(LocalRepo::discover_offline(), Ok(Some(here)) if here.prefix.is_empty())
}

/// Says what there is to do at the top of a repository, where no TARGET was named.
fn what_to_do_here() -> Failure {
    Failure::new("say what to do: no TARGET is named, and this is the top of the repository")
        .hint("find what is remote, and change nothing: git kustomize-localize check")
        .hint("keep the URLs, and lock what they mean now: git kustomize-localize lock")
        .hint("commit the repository without URLs, on a branch: git kustomize-localize --in-place")
        .hint(
            "copy one kustomization with all it needs, on a branch: git kustomize-localize TARGET",
        )
        .hint("see all commands and options: git kustomize-localize -h")
}

/// Where the local files of a run come from.
struct Local {
    /// The files.
    tree: SharedTree,
    /// From the top of `tree` to the directory that we were started in.
    prefix: String,
    /// From the top of `tree` to that of the repository, if there is one.
    top: Option<String>,
    /// Whether the files are those of a commit.
    committed: bool,
    /// The lock at the top of the source, if it lies in a commit and there is one.
    lock: Option<Rc<Lock>>,
    /// The configuration at the top of the repository.
    config: Config,
}

/// A target that was found.
struct Target {
    start: Start,
    /// How locks and messages name it.
    name: String,
    /// The scope, where one was given, as locks name it.
    scope: Option<String>,
    /// The base name for the default NEW_DIR; none for the top of a repository.
    base: Option<String>,
}

/// Returns the target as a URL of a git repository, if it is one.
fn remote_target(args: &LocalizeArgs) -> Result<Option<RepoSpec>> {
    if args.target().is_empty() {
        return Err(Failure::new("the target is empty").hint("name a directory, or the URL of one"));
    }
    let Ok(spec) = RepoSpec::parse(args.target()) else {
        return match reference::unsupported_scheme(args.target()) {
            Some(scheme) => Err(Failure::new(format!(
                "`{}`: kustomize cannot read `{scheme}`",
                redact::url(args.target())
            ))
            .hint("use an https, ssh or file URL of a git repository")),
            None => Ok(None),
        };
    };
    reference::refuse_unsafe(args.target(), Some(&spec)).map_err(|reason| {
        Failure::new(format!(
            "`{}` is refused: {reason}",
            redact::url(args.target())
        ))
    })?;
    if args.scope.is_some() {
        return Err(Failure::new(
            "`--scope` cannot be given for a remote target: its repository is the scope",
        )
        .hint("leave `--scope` out"));
    }
    Ok(Some(spec))
}

/// Says what to do about a directory that is not there.
fn if_missing(what: &str, text: &str, local: &Local) -> String {
    if local.committed && std::path::Path::new(text).exists() {
        return format!(
            "a {what} is read from the source commit: commit it first, or use `--no-commit`"
        );
    }
    let command = super::Cli::command();
    let names = command.get_subcommands().map(clap::Command::get_name);
    match nearest(text, names) {
        Some(name) if what == "target" => {
            format!("if the command is meant: git kustomize-localize {name}")
        }
        _ if what == "scope" => "name a directory above the target, as seen from here".to_owned(),
        _ => "name the directory that holds the kustomization, as seen from here".to_owned(),
    }
}

/// Finds a local target and its scope in `local`. `give` names a missing directory.
fn local_target(args: &LocalizeArgs, local: &Local) -> Result<Target> {
    let directory = |what: &str, text: &str| -> Result<String> {
        let lexical = tree::named(&*local.tree, local.top.as_deref(), &local.prefix, text);
        let Some(lexical) = lexical else {
            return Err(Failure::new(format!(
                "the {what} `{text}` lies outside of the repository"
            ))
            .hint("to localize it without a repository: `--no-commit`"));
        };
        match tree::resolve(&*local.tree, &lexical)? {
            Resolved::Directory { path } => Ok(path),
            Resolved::File { .. } => Err(Failure::new(format!("the {what} `{text}` is a file"))
                .hint("name the directory that holds the kustomization")),
            Resolved::Missing { .. } => Err(Failure::new(format!(
                "there is no directory `{text}` for the {what}"
            ))
            .hint(if_missing(what, text, local))),
            Resolved::Submodule { path } => Err(Failure::new(format!(
                "the {what} `{text}` lies in the submodule `{}`",
                local.tree.label(&path)
            ))
            .hint("run it in the submodule, or name the submodule's repository by URL")),
            Resolved::Leaves { link, target } => Err(Failure::new(format!(
                "the {what} `{text}` leads out of the tree: the link `{}` says `{target}`",
                local.tree.label(&link)
            ))),
            Resolved::Loop { link } => Err(Failure::new(format!(
                "the {what} `{text}` leads nowhere: the links at `{}` lead to each other",
                local.tree.label(&link)
            ))),
        }
    };
    if args.scope.as_deref() == Some("") {
        return Err(
            Failure::new("the scope is empty").hint("name a directory, or leave `--scope` out")
        );
    }
    let target = directory("target", args.target())?;
    let scope = match &args.scope {
        Some(scope) => directory("scope", scope)?,
        None => target.clone(),
    };
    if !path::is_in(&target, &scope) {
        return Err(Failure::new(format!(
            "the scope `{}` does not contain the target `{}`",
            args.scope.as_deref().unwrap_or_default(),
            args.target()
        ))
        .hint("name a directory above the target"));
    }
    let named = |path: &str| {
        if path.is_empty() {
            ".".to_owned()
        } else {
            path.to_owned()
        }
    };
    Ok(Target {
        name: named(&target),
        scope: args.scope.as_ref().map(|_| named(&scope)),
        base: Some(path::name(&target).to_owned()).filter(|base| !base.is_empty()),
        start: Start {
            source: Source {
                tree: local.tree.clone(),
                scope,
                repository: None,
            },
            directory: target,
        },
    })
}

/// Fetches a remote target.
fn fetched_target(args: &LocalizeArgs, spec: &RepoSpec, fetcher: &mut Fetcher) -> Result<Target> {
    let repository = fetcher.repository(spec)?;
    let directory = match tree::resolve(&*repository.tree, &spec.directory())? {
        Resolved::Directory { path } => path,
        _ => {
            return Err(Failure::new(format!(
                "there is no directory `{}` in {} at {}",
                spec.directory(),
                repository.url,
                repository.commit
            )));
        }
    };
    Ok(Target {
        name: redact::url(args.target()),
        scope: None,
        base: None,
        start: Start {
            source: Source {
                tree: repository.tree.clone(),
                scope: String::new(),
                repository: Some(repository),
            },
            directory,
        },
    })
}

/// Returns NEW_DIR as the user would name it, from the directory that we were started in.
fn new_dir(args: &LocalizeArgs, spec: Option<&RepoSpec>, base: Option<&str>) -> Result<String> {
    let given = match &args.new_dir {
        Some(given) => Some(
            given
                .to_str()
                .ok_or_else(|| Failure::new("NEW_DIR is not UTF-8, so no reference could name it"))?
                .to_owned(),
        ),
        None => None,
    };
    match (given, spec, base) {
        (Some(given), ..) if given.is_empty() => Err(Failure::new("NEW_DIR is empty")),
        (Some(given), ..) => Ok(given),
        (None, Some(spec), _) if spec.reference.is_none() => {
            let failure = Failure::new(format!(
                "`{}` is named without a ref, so NEW_DIR has no name",
                redact::url(args.target())
            ));
            Err(if args.fetch.pin {
                failure.hint("give NEW_DIR")
            } else {
                failure
                    .hint("say which version: add `?ref=TAG-OR-COMMIT`")
                    .hint("or take what HEAD is now: `--pin`, with a NEW_DIR")
            })
        }
        (None, Some(spec), _) => Ok(default_new_dir(None, Some(spec))),
        (None, None, Some(base)) => Ok(default_new_dir(Some(base), None)),
        (None, None, None) => Err(Failure::new(
            "the target is the top of the repository, so NEW_DIR has no name",
        )
        .hint("give NEW_DIR, or localize the whole repository on a branch: --in-place")),
    }
}

/// Sets up fetching. The lock of the source decides before that of NEW_DIR as it was (`previous`).
fn fetcher(
    args: &LocalizeArgs,
    here: Option<&LocalRepo>,
    config: &Config,
    source_lock: Option<Rc<Lock>>,
    previous: Option<Tip>,
) -> Result<Fetcher> {
    let previous = previous.filter(|_| !args.update);
    let locks = source_lock
        .into_iter()
        .chain(previous.as_ref().map(|previous| previous.lock.clone()))
        .collect();
    let options = fetch::Options {
        locked: args.locked,
        offline: args.offline,
        allow_private: config.allow_private,
        ..args.fetch.options(&args.output)
    };
    super::online::fetcher(here, options, locks, previous)
}

fn load_restrictor(args: &LocalizeArgs) -> LoadRestrictor {
    match args.load_restrictor {
        Restrictor::RootOnly => LoadRestrictor::RootOnly,
        Restrictor::None => LoadRestrictor::None,
    }
}

pub(super) fn globs<'a>(
    option: &str,
    patterns: impl IntoIterator<Item = &'a String>,
) -> Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = path_glob(pattern).map_err(|why| {
            Failure::new(format!("`{pattern}` is not a pattern for {option}: {why}"))
                .hint("write a `[`, `{`, `*` or `?` that is meant as it stands with `\\` before it")
        })?;
        set.add(glob);
    }
    set.build().map_err(|error| {
        Failure::new(format!(
            "the patterns of `{option}` cannot be used: {error}"
        ))
    })
}

/// Returns the globs of what stays remote: as the arguments say, and the lock of the source.
pub(super) fn leave_remote(args: &LeaveArgs, lock: Option<&Lock>) -> BTreeSet<String> {
    let named = args.leave_remote.iter().map(|url| Leave::glob(url));
    let held = lock
        .into_iter()
        .flat_map(|lock| lock.options.leave_remote.iter().cloned());
    named.chain(held).collect()
}

/// The walk and the localizing of one target.
struct Copied {
    graph: Graph,
    localized: Localized,
    lock: Lock,
    strict: Strict,
}

/// Walks the target and localizes it. The patterns of `--leave-missing` are relative to the top of the repository, or to
/// where we were started. `forbidden` is where NEW_DIR lies in the tree of the source.
fn copy(
    args: &LocalizeArgs,
    local: &Local,
    target: Target,
    fetcher: &mut Fetcher,
    absence: &dyn Fn(&str) -> Absence,
    forbidden: Option<String>,
    owned: &dyn Fn(&str) -> bool,
) -> Result<Copied, Failures> {
    let patterns = globs("--leave-missing", &args.leave_missing)?;
    let base = local.top.as_deref().unwrap_or(&local.prefix);
    let leave_missing = |path: &str| match path::below(path, base) {
        Some(path) => local.config.missing(path, patterns.is_match(path)),
        None => Missing::Wrong,
    };
    let leave_remote = leave_remote(&args.leave, local.lock.as_deref());
    let leave = Leave::new(&local.config, &leave_remote)?;
    let options = walk::Options {
        load_restrictor: load_restrictor(args),
        leave: Some(&leave),
        leave_missing: Some(&leave_missing),
        absence: Some(absence),
        forbidden,
        ..walk::Options::default()
    };
    let graph = walk::walk(target.start, Some(fetcher), &options)?;
    let trusted = globs("--trust-exec", &args.trust_exec)?;
    let rules = Rules {
        owned,
        trusted: &|path| trusted.is_match(path),
        licenses: !args.no_licenses,
        leave: Some(&leave),
    };
    let localized = localize(&graph, options.load_restrictor, &rules)?;
    let lock = Lock {
        target: Some(target.name),
        trailers: false,
        options: LockOptions {
            scope: target.scope,
            pin: args.fetch.pin,
            helm: args.fetch.helm,
            no_licenses: args.no_licenses,
            load_restrictor: options.load_restrictor,
            leave_missing: args.leave_missing.iter().cloned().collect(),
            leave_remote: named_left(&leave, &localized.left),
            trust_exec: args.trust_exec.iter().cloned().collect(),
        },
        remotes: localized.remotes.clone(),
        left: localized.left.clone(),
        files: localized
            .files
            .iter()
            .map(|(path, file)| file.record(path))
            .collect(),
    };
    Ok(Copied {
        graph,
        localized,
        lock,
        strict: args.output.strict(&local.config),
    })
}

/// Builds original and result and compares them, unless the arguments say not to, or an earlier run has done it.
fn proven(
    args: &LocalizeArgs,
    here: Option<&LocalRepo>,
    copied: &Copied,
    checkout: Option<Checkout<'_>>,
    fetcher: &Fetcher,
    earlier: Option<Earlier>,
) -> Result<BuildCheck> {
    let graph = &copied.graph;
    let target = build_check::Target {
        name: copied.lock.target.clone().unwrap_or_default(),
        original: match &graph.sources[0].repository {
            Some(_) => Original::Url(args.target().to_owned()),
            None => {
                let directory = graph.in_scope(0, &graph.roots[0].directory);
                Original::Directory(directory.to_owned())
            }
        },
        localized: copied.localized.target.clone(),
        asked: Metadata::of(&graph.files[graph.roots[0].file].bytes),
    };
    let job = Job {
        before: graph,
        after: After::Copy(&copied.localized.files),
        checkout,
        targets: vec![target],
        load_restrictor: copied.lock.options.load_restrictor,
        trusted: &copied.localized.trusted,
        earlier,
        moved: &|repositories| fetcher.moved(repositories),
    };
    prove(args, here, job, &copied.lock.left)
}

/// Does what the arguments say about proving. Targets that reach something of `left` that was accepted are not built: one
/// build would reach out, and the other could not.
fn prove(
    args: &LocalizeArgs,
    here: Option<&LocalRepo>,
    mut job: Job<'_>,
    left: &[Left],
) -> Result<BuildCheck> {
    if args.verify.no_verify {
        return Ok(BuildCheck::without("--no-verify"));
    }
    let graph = job.before;
    let mut skipped = Vec::new();
    job.targets.retain(|target| {
        let is_it = |root: &Root| match &target.original {
            Original::Directory(directory) => {
                root.source == 0 && graph.in_scope(0, &root.directory) == directory
            }
            Original::Url(_) => true,
        };
        let root = graph.roots.iter().position(is_it);
        let reached = root.and_then(|root| reached_left(graph, root, left));
        skipped.extend(
            reached
                .iter()
                .map(|why| TargetCheck::not_built(target, why)),
        );
        reached.is_none()
    });
    let options = build_check::Options {
        program: args.verify.kustomize.clone(),
        arguments: args.verify.build_arg.clone(),
        full: args.verify.verify == Some(Verify::Full),
        offline: args.offline,
        timeout: args.fetch.timeout.map(Duration::from_secs),
        quiet: args.output.quiet,
        variables: args.verify.variables()?,
        outputs: outputs(here),
    };
    let mut proof = if job.targets.is_empty() && !skipped.is_empty() {
        BuildCheck::without("what is built lacks something, as accepted")
    } else {
        build_check::check_builds(&job, &options)?
    };
    proof.targets.append(&mut skipped);
    Ok(proof)
}

/// Returns what outputs of a repository that differ are kept under; outside of one, those of the directory at hand.
fn outputs(here: Option<&LocalRepo>) -> String {
    let place = match here {
        Some(here) => here.git_dir.clone(),
        None => std::env::current_dir().unwrap_or_default(),
    };
    let mut name = sha256_hex(place.as_os_str().as_encoded_bytes());
    name.truncate(12);
    name
}

/// Returns what was not built, as warnings. That there is no kustomize is one for those only who let no
/// warning pass: the report says so anyway.
fn not_built(args: &LocalizeArgs, strict: &Strict, proof: &BuildCheck) -> Vec<Warning> {
    let warning = |target: &str, message: String| Warning {
        id: WarningId::NotBuilt,
        location: Location {
            file: target.to_owned(),
            ..Location::default()
        },
        message,
    };
    let without = proof.without.as_ref();
    let is_accepted =
        !proof.targets.is_empty() && proof.targets.iter().all(TargetCheck::lacks_accepted);
    let is_strict = strict.takes(WarningId::NotBuilt) && !args.verify.no_verify;
    let without = without.filter(|_| is_strict && !is_accepted);
    let targets = proof.targets.iter().filter_map(|one| match &one.verdict {
        // Where somebody accepted that, there is nothing to warn of.
        Verdict::NotBuilt { .. } if one.lacks_accepted() => None,
        Verdict::NotBuilt { reason } => Some(warning(
            &one.target,
            format!("the original does not build by itself, so its copy is not verified: {reason}"),
        )),
        _ => None,
    });
    without
        .map(|reason| {
            warning(
                "",
                format!("the result is not verified by a build: {reason}"),
            )
        })
        .into_iter()
        .chain(targets)
        .collect()
}

/// Says what becomes of a result that is not written to NEW_DIR or `branch`; none if it is.
fn withheld(
    args: &LocalizeArgs,
    strict: &Strict,
    proof: &BuildCheck,
    warnings: &[Warning],
    branch: Option<&str>,
) -> Option<Outcome> {
    if proof.differs() {
        return Some(Outcome::Differs);
    }
    if warnings.iter().any(|one| strict.takes(one.id)) {
        return Some(Outcome::Warned);
    }
    args.fetch.dry_run.then(|| Outcome::DryRun {
        branch: branch.map(str::to_owned),
    })
}

impl Copied {
    /// Returns the files of NEW_DIR with the lock.
    fn files(&self) -> Result<BTreeMap<String, ResultFile>> {
        let mut files = self.localized.files.clone();
        let text = self.lock.render()?;
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
            Some(_) => Err(Failure::new(format!(
                "the copy would hold a file `{LOCK_NAME}` of its own"
            ))
            .hint("give a scope above the target, so that the copy begins higher: `--scope DIR`")),
        }
    }

    /// Returns what works but should be known, about the proof too.
    fn warnings(&self, args: &LocalizeArgs, proof: &BuildCheck) -> Vec<Warning> {
        let mut warnings: Vec<Warning> = self.graph.warnings.clone();
        warnings.extend(self.localized.warnings.iter().cloned());
        let untrusted = self.localized.untrusted.iter();
        warnings.extend(untrusted.map(|program| program.warning(&again_trusting)));
        warnings.extend(not_built(args, &self.strict, proof));
        warnings.sort();
        warnings
    }

    /// Returns the report of what was done with `files` (from [`Copied::files`]).
    fn report(
        &self,
        files: &BTreeMap<String, ResultFile>,
        new_dir: String,
        before: &Lock,
        outcome: Outcome,
        proof: BuildCheck,
        warnings: Vec<Warning>,
    ) -> Report {
        Report {
            target: self.lock.target.clone().unwrap_or_default(),
            new_dir,
            outcome,
            remotes: self.lock.remotes.clone(),
            left: self.lock.left.clone(),
            changes: Lock::changes(before, &self.lock),
            files: files
                .iter()
                .map(|(path, file)| (path.clone(), file.content.bytes().len() as u64))
                .collect(),
            rewritten: self.localized.rewritten.clone(),
            warnings,
            strict: self.strict.clone(),
            proof,
        }
    }
}

/// Returns the command line that we were started with, and that trusts what a pattern matches.
fn again_trusting(pattern: &str) -> String {
    let given = std::env::args_os().skip(1);
    let mut given = given
        .map(|given| redact::url(&given.to_string_lossy()))
        .peekable();
    let mut command = vec!["git kustomize-localize".to_owned()];
    command.extend(given.next_if(|given| given == "localize"));
    command.push(format!("--trust-exec {}", argument(pattern)));
    command.extend(given.map(|given| argument(&given).to_string()));
    command.join(" ")
}

/// Returns the lock that `tree` holds at `place`, if there is one.
fn lock_at(tree: &dyn tree::Tree, place: &str) -> Result<Option<Rc<Lock>>> {
    match tree.entry(place)? {
        Some(tree::Entry::File { .. }) => Ok(Some(Rc::new(Lock::parse(
            &tree.read(place)?,
            &tree.label(place),
        )?))),
        _ => Ok(None),
    }
}

/// Says whether a lock holds something below `directory`, both from the same top.
fn owns(lock: Option<&Rc<Lock>>, directory: &str) -> bool {
    lock.is_some_and(|lock| {
        lock.files
            .iter()
            .any(|file| path::is_in(&file.path, directory))
    })
}
