//! Compares a localized commit with its lock and trailers. This is offline, and uses only the lock and the message,
//! unless upstream is asked too ([`upstream_status`]).
//!
//! It proves that nothing changed since the record was written. Who wrote it is proven by the signature of the commit:
//! files that were changed together with the lock match it.

mod message;
mod outcome;
pub(crate) mod upstream_status;

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::check::{self, Input};
use crate::config::{Config, RuleKey};
use crate::git::{self, CommitId, LocalRepo, Snapshot, object_id};
use crate::message::failure::{Failure, Failures, Result, command, short, shown};
use crate::message::finding::{Finding, Rule, Severity};
use crate::record::history::records::Recorded;
use crate::record::history::trees::{differences, entries};
use crate::record::{Digest, LOCK_NAME, LoadRestrictor, Lock, history, stored};
use crate::targets::Identity;
use crate::tree::absence::Absences;
use crate::tree::disk::DiskTree;
use crate::tree::git::GitTree;
use crate::tree::{Entry, Tree, path};

use message::History;
use outcome::LeftOf;
pub(crate) use outcome::{Difference, DifferenceKind, Record, VerifyOutcome};
use upstream_status::{Ask, EntryStatus};

/// Verifies a commit. `ask` asks upstream. A lock at the top without localized files is then enough of a record.
pub(crate) fn verify(repo: &Rc<LocalRepo>, rev: &str, ask: Option<&Ask<'_>>) -> Result<VerifyOutcome, Failures> {
    let (id, name) = repo.resolve_rev(rev)?.ok_or_else(|| unknown_revision(repo, rev))?;
    let tree = Rc::new(GitTree::of_commit(repo, &id)?);
    let checked_out: Rc<dyn Tree> = Rc::new(tree.checked_out());
    let mut verifier = Verifier::new(tree, ask);
    let repository = repo.repository()?.clone();
    let lock_paths = verifier.tree.locks()?;
    let mut history = History::of(repo, &repository, (rev, &id), &lock_paths)?;
    // Rendered files have no lock of their own, so only their record is compared.
    if let Some(recorded) = history.rendered() {
        let record = rendered(repo, &id, &mut verifier, recorded)?;
        return Ok(VerifyOutcome {
            rev: rev.to_owned(),
            commit: Some(id.commit),
            ..verifier.into_outcome(vec![record], ask)?
        });
    }
    // On a branch of somebody else a message may have been squashed away. A localized branch must have one for each
    // lock, and so must a commit that no branch names here, because it may be one of a localized branch.
    let is_ours = name.as_deref().is_some_and(history::is_localized_branch);
    let locks = verifier.read_locks(&lock_paths, Some(&history))?;
    // Each lock is compared with its files, and with the message that has the other copy of its record.
    let mut records = Vec::new();
    for (directory, lock) in &locks {
        verifier.compare_files(directory, lock)?;
        let recorded = history.compare_record(&mut verifier, directory, lock, name.is_some() && !is_ours)?;
        records.push(Record::of(directory, lock, recorded.as_deref()));
    }
    history.report_uncovered(&mut verifier, &locks, is_ours)?;
    // Without a record there is nothing to verify, unless upstream was asked about the lock at the top.
    let is_enough = ask.is_some() && verifier.is_locked;
    if records.is_empty() && verifier.differences.is_empty() && verifier.failures.is_empty() && !is_enough {
        let message = format!("`{rev}` has no record: no `{LOCK_NAME}` in it lists localized files");
        let hint = match ask {
            Some(_) => "if it references something remote, lock that: git kustomize-localize lock".to_owned(),
            None => hint_instead(repo, rev)?,
        };
        return Err(Failure::new(message).hint(hint).into());
    }
    let source = Snapshot::Commit { rev: id.commit.clone(), commit: id.commit.clone() };
    verifier.add_findings(&locks, &source, &checked_out, Some(repo))?;
    Ok(VerifyOutcome { rev: rev.to_owned(), commit: Some(id.commit), ..verifier.into_outcome(records, ask)? })
}

/// Compares rendered files with their record, and that with the lock of the source.
fn rendered(repo: &Rc<LocalRepo>, id: &CommitId, verifier: &mut Verifier, recorded: &Recorded) -> Result<Record> {
    let Recorded { commit, trailers, .. } = recorded;
    let (repository, by) = (repo.repository()?, short(commit));
    let made = object_id(trailers.tree.hex())?;
    // The recorded tree is kept by the history of the branch, so that only a rewritten one lacks it.
    if entries(repository, made).is_err() {
        let message = format!("the tree recorded in the message of {by} is gone: it was rewritten");
        verifier.add(DifferenceKind::Tree, "", message);
    } else {
        for path in differences(repository, made, object_id(&id.tree)?, &BTreeSet::new())? {
            verifier.add(DifferenceKind::Tree, &path, unlike_tree(by));
        }
    }
    match &trailers.source {
        Some(source) => compare_lock_of_source(repo, verifier, recorded, source)?,
        None => verifier.add_sourceless(by),
    }
    let (files, remotes) = (verifier.tree.below("")?.len(), trailers.remotes.len());
    Ok(Record { files, remotes, has_message: true, ..Record::of("", &Lock::default(), Some(recorded)) })
}

/// Compares the record of rendered files with the lock of their source.
fn compare_lock_of_source(
    repo: &Rc<LocalRepo>,
    verifier: &mut Verifier,
    Recorded { commit, trailers, .. }: &Recorded,
    source: &Digest,
) -> Result<()> {
    let by = short(commit);
    let Some(source) = repo.commit(source.hex())? else {
        let failure = Failure::new(format!("the source commit of {by} is not here, so its lock was not compared"));
        verifier.failures.push(failure.hint("fetch it: git fetch origin"));
        return Ok(());
    };
    let tree = GitTree::of_commit(repo, &source)?.checked_out();
    // Digest and trailers both: one proves the file, the other is the text that people read in the message.
    let lock = Lock::find(&tree, LOCK_NAME)?.map(|lock| lock.remote_trailers()).unwrap_or_default();
    if Lock::digest_at(&tree) != trailers.lock || lock != trailers.remotes {
        let source = short(&source.commit);
        let message = format!("differs: the lock of source {source} is not the one that the message of {by} records");
        verifier.add(DifferenceKind::Trailers, LOCK_NAME, message);
    }
    Ok(())
}

/// A hint that names what to verify instead of a commit without a record.
pub(crate) fn hint_instead(repo: &LocalRepo, rev: &str) -> Result<String> {
    const VERIFY: &str = "git kustomize-localize verify";
    // If a tag and a branch have this name, git reads it as the tag.
    let [branch, tag] = ["heads", "tags"].map(|kind| format!("refs/{kind}/{rev}"));
    if repo.commit(&tag)?.is_some() && repo.commit(&branch)?.is_some() {
        return Ok(format!("it is a tag; the branch of this name is {}", command(VERIFY, [branch])));
    }
    let branches = repo.refs(&[format!("refs/heads/{}", history::PREFIX)])?;
    let mut names = branches.keys().filter_map(|name| name.strip_prefix("refs/heads/"));
    Ok(match names.find(|name| *name != rev) {
        Some(branch) => format!("name the branch with the localized files: {}", command(VERIFY, [branch])),
        None => "commit the localized files: git kustomize-localize branch".to_owned(),
    })
}

/// Verifies a directory on disk, such as `--no-commit` writes, against the lock in it. With `is_checkout` its line ends
/// may differ from those that were written.
pub(crate) fn verify_directory(
    directory: &str,
    is_checkout: bool,
    ask: Option<&Ask<'_>>,
) -> Result<VerifyOutcome, Failures> {
    let tree: Rc<dyn Tree> = Rc::new(DiskTree::of_directory(std::path::Path::new(directory))?.converting(is_checkout));
    let has_lock = matches!(tree.entry(LOCK_NAME)?, Some(Entry::File { .. }));
    let mut verifier = Verifier::new(tree.clone(), ask);
    let lock_paths = if has_lock { vec![LOCK_NAME.to_owned()] } else { Vec::new() };
    let locks = verifier.read_locks(&lock_paths, None)?;
    for (directory, lock) in &locks {
        verifier.compare_files(directory, lock)?;
    }
    let records: Vec<Record> = locks.iter().map(|(directory, lock)| Record::of(directory, lock, None)).collect();
    // Without a record there is nothing to verify, unless upstream is asked about the lock.
    if records.is_empty() && !(has_lock && ask.is_some()) {
        let message = format!("`{}` has no `{LOCK_NAME}` that lists localized files", shown(directory));
        return Err(Failure::new(message).hint("name a directory that `--no-commit` wrote, or a commit").into());
    }
    verifier.add_findings(&locks, &Snapshot::WorkingTree, &tree, None)?;
    Ok(VerifyOutcome { rev: directory.to_owned(), ..verifier.into_outcome(records, ask)? })
}

/// The failure of an unknown revision, with a remote-tracking ref that may have been meant, if there is one.
fn unknown_revision(repo: &LocalRepo, rev: &str) -> Failure {
    // Only a name: git would take anything else for a pattern.
    let pattern = git::is_branch_name(rev).then(|| format!("refs/remotes/*/{rev}"));
    let refs = pattern.and_then(|pattern| repo.refs(&[pattern]).ok()).unwrap_or_default();
    Failure::new(format!("unknown revision `{rev}`")).hint(match refs.keys().next() {
        Some(name) => {
            let name = name.strip_prefix("refs/remotes/").unwrap_or(name);
            format!("use its local name: {name}")
        }
        None if rev.starts_with(history::PREFIX) => {
            "fetch it first, or commit one: git kustomize-localize branch".to_owned()
        }
        None => "fetch it first, or name another one".to_owned(),
    })
}

/// The message about a path that differs from the tree that the message of `commit` records.
fn unlike_tree(commit: &str) -> String {
    format!("differs from the tree recorded in the message of {commit}")
}

struct Verifier {
    tree: Rc<dyn Tree>,
    differences: Vec<Difference>,
    failures: Vec<Failure>,
    /// The entries to ask upstream about. `None` if upstream is not asked.
    listed: Option<Vec<EntryStatus>>,
    /// The upstreams that stay remote because of an exception.
    left: Vec<LeftOf>,
    /// Whether there is a lock at the top.
    is_locked: bool,
}

impl Verifier {
    /// A verifier that has found nothing yet.
    fn new(tree: Rc<dyn Tree>, ask: Option<&Ask<'_>>) -> Verifier {
        let (differences, failures, left, is_locked) = Default::default();
        Verifier { tree, differences, failures, listed: ask.map(|_| Vec::new()), left, is_locked }
    }

    /// The result: the differences by path, each once, and with `ask` those between the lock and upstream, too.
    fn into_outcome(self, records: Vec<Record>, ask: Option<&Ask<'_>>) -> Result<VerifyOutcome> {
        let (mut differences, mut failures) = (self.differences, self.failures);
        let mut upstream = self.listed;
        if let (Some(ask), Some(listed)) = (ask, &mut upstream) {
            let config = Config::of(&*self.tree, "")?;
            let entries = listed.iter().map(|EntryStatus { entry: (source, pinned), .. }| (source, pinned));
            let answers = ask(&config, &Vec::from_iter(entries));
            listed.iter_mut().zip(answers).for_each(|(listed, answer)| listed.answer = answer);
        }
        for status in upstream.iter().flatten() {
            differences.extend(status.difference());
            failures.extend(status.failure());
        }
        differences.sort_by(|a, b| (&a.path, a.span, a.kind).cmp(&(&b.path, b.span, b.kind)));
        differences.dedup();
        Ok(VerifyOutcome { records, differences, left: self.left, upstream, failures, ..VerifyOutcome::default() })
    }

    /// The locks that list localized files, by directory. If a message of `history` records a repository that was
    /// localized in place, the lock at the top is always among them, because it has the other copy of that record.
    /// `history` is `None` for a directory on disk. This also collects the entries to ask upstream about.
    fn read_locks(&mut self, lock_paths: &[String], history: Option<&History<'_>>) -> Result<Vec<(String, Lock)>> {
        let is_in_place = history.is_some_and(History::is_in_place);
        let mut locks = Vec::new();
        for lock_path in lock_paths {
            let directory = path::parent(lock_path).to_owned();
            let lock = Lock::parse(&self.tree.read(lock_path)?, lock_path)?;
            // A lock on a source branch may only pin URLs, and is not a record. In place the lock at the top is one
            // even if nothing was remote.
            let is_record = lock.target.is_some() || !lock.files.is_empty() || (is_in_place && directory.is_empty());
            self.is_locked |= directory.is_empty();
            if let Some(listed) = &mut self.listed
                && (is_record || directory.is_empty())
            {
                listed.extend(upstream_status::unasked_entries(&*self.tree, &directory, &lock)?);
            }
            if is_record {
                locks.push((directory, lock));
            }
        }
        if is_in_place && !locks.iter().any(|(directory, _)| directory.is_empty()) {
            locks.insert(0, (String::new(), Lock::default()));
        }
        Ok(locks)
    }

    /// Adds a difference in a file.
    fn add(&mut self, kind: DifferenceKind, path: &str, message: impl Into<String>) {
        self.differences.push(Difference { kind, path: path.to_owned(), span: None, message: message.into() });
    }

    /// Adds that the message of a commit lacks the source commit.
    fn add_sourceless(&mut self, commit: &str) {
        self.add(DifferenceKind::Trailers, "", format!("the message of {commit} does not name the source commit"));
    }

    /// Adds a difference for every file that differs from the lock.
    fn compare_files(&mut self, directory: &str, lock: &Lock) -> Result<()> {
        for (path, difference) in stored::differences(&*self.tree, directory, lock)? {
            self.add(DifferenceKind::File, &path, difference.to_string());
        }
        Ok(())
    }

    /// Adds a difference for everything that fails `check`. `tree` has the files that a build reads.
    fn add_findings(
        &mut self,
        locks: &[(String, Lock)],
        source: &Snapshot,
        tree: &Rc<dyn Tree>,
        repo: Option<&Rc<LocalRepo>>,
    ) -> Result<()> {
        let kustomizations = self.tree.kustomizations()?;
        // A commit is verified, which lacks a file even if the file is on disk.
        let absences = repo.map(|repo| Absences::new(repo.clone(), tree.clone(), false));
        for (directory, lock) in locks {
            // Without kustomizations nothing is remote. If they were removed, the lock reports missing files.
            if !kustomizations.iter().any(|file| path::is_in(file, directory)) {
                continue;
            }
            let config = match self.config_for(directory, lock) {
                Ok(config) => config,
                Err(unreadable) => {
                    self.failures.push(unreadable);
                    continue;
                }
            };
            let identity = repo.map(|repo| || Ok(Identity::new([], &config, repo.main_branches()?)));
            let inside = [directory.clone()];
            let checked = check::check(Input {
                source: source.clone(),
                tree: tree.clone(),
                paths: if directory.is_empty() { &[] } else { &inside },
                config: &config,
                change_config: None,
                absences: absences.as_ref(),
                identity: identity.as_ref().map(|identity| identity as &dyn Fn() -> _),
                build: None,
            })?;
            self.failures.extend(checked.failures);
            let differing = checked.findings.into_iter().filter(|finding| differs(finding, lock));
            self.differences.extend(differing.map(difference));
            // An upstream that stays remote by an exception is reported with its reason, not as a difference.
            self.left.extend(lock.left.iter().map(|entry @ (upstream, _)| LeftOf {
                directory: directory.to_owned(),
                upstream: upstream.clone(),
                left: entry.into(),
            }));
        }
        Ok(())
    }

    /// The configuration by which the files of a lock are checked.
    fn config_for(&self, directory: &str, lock: &Lock) -> Result<Config> {
        let mut config = match lock.target {
            // Localizing in place used the configuration of the repository.
            None => Config::of(&*self.tree, directory)?,
            // The files that a copy may load were decided in its source repository.
            Some(_) => Config { load_restrictor: LoadRestrictor::None, ..Config::default() },
        };
        // No rule of the configuration may allow a remote reference. `*` may stay: it does not weaken errors.
        config.rules.retain(|RuleKey(rule), _| rule.is_none_or(|rule| !REMOTE.contains(&rule)));
        // Only the record allows one: an entry of the lock is not enough.
        config.rules.insert(RuleKey(Some(Rule::LockedReference)), Severity::Error);
        Ok(config)
    }
}

/// Whether a finding of `check` is a difference from the record of a lock.
fn differs(finding: &Finding, lock: &Lock) -> bool {
    match finding.rule {
        // Copies were compared with the lock. A target that is unknown, for example until a build, is in no record.
        Rule::EditedCopy | Rule::UnknownTarget => false,
        // The source repository decided which files a copy may lack.
        Rule::MissingPath if lock.target.is_some() => false,
        // Only the lock excuses a remote reference, and it excuses nothing else.
        _ if is_remote(finding) => !lock.left.keys().any(|upstream| upstream.subject() == finding.subject),
        _ => finding.fails(),
    }
}

/// A finding of `check` as a difference: a localized commit must have no failing one.
fn difference(finding: Finding) -> Difference {
    let (kind, message) = if is_remote(&finding) {
        (DifferenceKind::Remote, format!("`{}` is still remote ({})", finding.reference, finding.field))
    } else {
        (DifferenceKind::Finding, format!("{} ({})", finding.message, finding.rule))
    };
    Difference { kind, path: finding.path, span: finding.span, message }
}

/// The rules about remote references.
const REMOTE: [Rule; 4] = [Rule::RemoteReference, Rule::LockedReference, Rule::RemoteChart, Rule::Function];

/// Whether a finding is about something that a build fetches.
fn is_remote(finding: &Finding) -> bool {
    match finding.rule {
        Rule::RemoteReference | Rule::LockedReference | Rule::RemoteChart => true,
        // An image is fetched. A build never fetches any other function.
        Rule::Function => finding.subject.upstream().is_some(),
        _ => false,
    }
}
