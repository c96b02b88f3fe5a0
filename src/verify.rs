//! `verify`: a localized commit against its lock and trailers. Offline, from the lock and the message alone, unless
//! upstream is asked as well ([listed]).
//!
//! That proves that nothing changed since the record was made. Who made it is proven by the signature of the
//! commit; lock and files that were changed together agree with each other.

pub(crate) mod listed;
mod message;
mod outcome;

use std::rc::Rc;

use crate::check::{self, Input};
use crate::config::{Config, RuleKey};
use crate::git::{self, LocalRepo, Snapshot};
use crate::message::failure::{Failure, Failures, Result, command, shown};
use crate::message::finding::{Finding, Rule, Severity};
use crate::record::{LOCK_NAME, LoadRestrictor, Lock, history, stored};
use crate::targets::Identity;
use crate::tree::absence::Absences;
use crate::tree::disk::DiskTree;
use crate::tree::git::GitTree;
use crate::tree::{Entry, Tree, path};

use listed::{Ask, Listed};
use message::History;
use outcome::LeftOf;
pub(crate) use outcome::{Difference, Kind, Record, Verified};

/// Verifies a commit. `ask` asks upstream, if wanted: a lock at the top that only records what URLs are locked to is then
/// enough of a record.
pub(crate) fn verify(here: &Rc<LocalRepo>, rev: &str, ask: Option<&Ask<'_>>) -> Result<Verified, Failures> {
    let (id, name) = here.named(rev)?.ok_or_else(|| unknown(here, rev))?;
    let tree = Rc::new(GitTree::of_commit(here, &id)?);
    let checked_out: Rc<dyn Tree> = Rc::new(tree.checked_out(true));
    let mut verifier = Verifier::new(tree, ask);
    let repository = here.repository()?.clone();
    let places = verifier.tree.locks()?;
    let mut history = History::of(here, &repository, (rev, &id), &places)?;
    let is_ours = name.as_deref().is_some_and(history::is_ours);
    let locks = verifier.locks(&places, history.is_in_place())?;
    let mut records = Vec::new();
    for (directory, lock) in &locks {
        verifier.files(directory, lock)?;
        let recorded = history.message(&mut verifier, directory, lock, name.is_some() && !is_ours)?;
        records.push(Record::of(directory, lock, recorded.as_deref()));
    }
    history.whole(&mut verifier, &locks, is_ours)?;
    let is_enough = ask.is_some() && verifier.is_locked;
    if records.is_empty() && verifier.differences.is_empty() && verifier.failures.is_empty() && !is_enough {
        let message = format!("`{rev}` has no record: no `{LOCK_NAME}` in it lists localized files");
        let hint = match ask {
            Some(_) => "if it references something remote, lock that: git kustomize-localize lock".to_owned(),
            None => instead(here, rev)?,
        };
        return Err(Failure::new(message).hint(hint).into());
    }
    let source = Snapshot::Commit { rev: id.commit.clone(), commit: id.commit.clone() };
    verifier.findings(&locks, &source, &checked_out, Some(here))?;
    Ok(Verified { rev: rev.to_owned(), commit: Some(id.commit), ..verifier.verified(records, ask)? })
}

/// Returns what to verify instead of a commit without a record.
pub(crate) fn instead(here: &LocalRepo, rev: &str) -> Result<String> {
    const VERIFY: &str = "git kustomize-localize verify";
    // Of a tag and a branch of this name, git takes the tag.
    let [branch, tag] = ["heads", "tags"].map(|kind| format!("refs/{kind}/{rev}"));
    if here.commit(&tag)?.is_some() && here.commit(&branch)?.is_some() {
        return Ok(format!("it is a tag; the branch of this name is {}", command(VERIFY, [branch])));
    }
    let known = here.refs(&[format!("refs/heads/{}", history::PREFIX)])?;
    let known = known.keys().find_map(|name| name.strip_prefix("refs/heads/").filter(|name| *name != rev));
    Ok(match known {
        Some(branch) => format!("name the branch with the localized files: {}", command(VERIFY, [branch])),
        None => "commit the localized files: git kustomize-localize branch".to_owned(),
    })
}

/// Verifies a directory of the file system, as `--no-commit` writes one: its files against its own lock. `is_checkout`
/// says whether its line ends may be others than those that were written.
pub(crate) fn verify_directory(
    directory: &str,
    is_checkout: bool,
    ask: Option<&Ask<'_>>,
) -> Result<Verified, Failures> {
    let tree: Rc<dyn Tree> = Rc::new(DiskTree::of_directory(std::path::Path::new(directory), is_checkout)?);
    let is_there = matches!(tree.entry(LOCK_NAME)?, Some(Entry::File { .. }));
    let mut verifier = Verifier::new(tree.clone(), ask);
    let places = if is_there { vec![LOCK_NAME.to_owned()] } else { Vec::new() };
    let locks = verifier.locks(&places, false)?;
    for (directory, lock) in &locks {
        verifier.files(directory, lock)?;
    }
    let records: Vec<Record> = locks.iter().map(|(directory, lock)| Record::of(directory, lock, None)).collect();
    if records.is_empty() && !(is_there && ask.is_some()) {
        let message = format!("`{}` has no `{LOCK_NAME}` that lists localized files", shown(directory));
        return Err(Failure::new(message).hint("name a directory that `--no-commit` wrote, or a commit").into());
    }
    verifier.findings(&locks, &Snapshot::WorkingTree, &tree, None)?;
    Ok(Verified { rev: directory.to_owned(), ..verifier.verified(records, ask)? })
}

/// Returns the failure for what names no commit, with the remote-tracking refs that it may have meant.
fn unknown(here: &LocalRepo, rev: &str) -> Failure {
    let failure = Failure::new(format!("unknown revision `{rev}`"));
    let pattern = git::is_branch_name(rev).then(|| format!("refs/remotes/*/{rev}"));
    let refs = pattern.and_then(|pattern| here.refs(&[pattern]).ok()).unwrap_or_default();
    match refs.keys().next() {
        Some(name) => failure.hint(format!("use its local name: {}", name.trim_start_matches("refs/remotes/"))),
        None if rev.starts_with(history::PREFIX) => {
            failure.hint("fetch it first, or commit one: git kustomize-localize branch")
        }
        None => failure.hint("fetch it first, or name another one"),
    }
}

struct Verifier {
    tree: Rc<dyn Tree>,
    differences: Vec<Difference>,
    failures: Vec<Failure>,
    /// The remotes to ask; none if upstream is not asked.
    listed: Option<Vec<Listed>>,
    /// What stays remote because of an exception.
    left: Vec<LeftOf>,
    /// Whether there is a lock at the top.
    is_locked: bool,
}

impl Verifier {
    fn new(tree: Rc<dyn Tree>, ask: Option<&Ask<'_>>) -> Verifier {
        let (differences, failures, left, is_locked) = Default::default();
        Verifier { tree, differences, failures, listed: ask.map(|_| Vec::new()), left, is_locked }
    }

    /// Returns the result, with the state of the remotes upstream.
    fn verified(self, records: Vec<Record>, ask: Option<&Ask<'_>>) -> Result<Verified> {
        let (mut differences, mut failures) = (self.differences, self.failures);
        let mut upstream = self.listed;
        if let (Some(ask), Some(listed)) = (ask, &mut upstream) {
            let config = Config::of(&*self.tree, "")?;
            let entries = listed.iter().map(|Listed { entry: (source, pinned), .. }| (source, pinned));
            let answers = ask(&config, &Vec::from_iter(entries));
            listed.iter_mut().zip(answers).for_each(|(listed, answer)| listed.answer = answer);
        }
        for one in upstream.iter().flatten() {
            differences.extend(one.difference());
            failures.extend(one.failure());
        }
        differences.sort_by(|one, other| {
            let key = |one: &Difference| (one.path.clone(), one.place, one.kind);
            key(one).cmp(&key(other))
        });
        differences.dedup();
        Ok(Verified { records, differences, left: self.left, upstream, failures, ..Verified::default() })
    }

    /// Returns the locks that list what was localized, by directory. In place, that is the one at the top, also
    /// where nothing was remote.
    fn locks(&mut self, places: &[String], is_in_place: bool) -> Result<Vec<(String, Lock)>> {
        let mut locks = Vec::new();
        for place in places {
            let directory = path::parent(place).to_owned();
            let lock = Lock::parse(&self.tree.read(place)?, place)?;
            // One on main may only hold what URLs are locked to.
            let is_record = lock.target.is_some() || !lock.files.is_empty() || (is_in_place && directory.is_empty());
            self.is_locked |= directory.is_empty();
            if let Some(listed) = &mut self.listed
                && (is_record || directory.is_empty())
            {
                listed.extend(listed::listed(&*self.tree, &directory, &lock)?);
            }
            if is_record {
                locks.push((directory, lock));
            }
        }
        let top = |(directory, _): &(String, Lock)| directory.is_empty();
        if is_in_place && !locks.iter().any(top) {
            locks.insert(0, (String::new(), Lock::default()));
        }
        Ok(locks)
    }

    fn add(&mut self, kind: Kind, path: &str, message: String) {
        self.differences.push(Difference { kind, path: path.to_owned(), place: None, message });
    }

    /// Compares every file with the lock.
    fn files(&mut self, directory: &str, lock: &Lock) -> Result<()> {
        for (place, difference) in stored::differences(&*self.tree, directory, lock)? {
            self.add(Kind::File, &place, difference.to_string());
        }
        Ok(())
    }

    /// Finds what fails `check`. What is remote nothing allows but the record, and to be locked is not enough. `tree` is
    /// what a build reads.
    fn findings(
        &mut self,
        locks: &[(String, Lock)],
        source: &Snapshot,
        tree: &Rc<dyn Tree>,
        here: Option<&Rc<LocalRepo>>,
    ) -> Result<()> {
        let kustomizations = self.tree.kustomizations()?;
        let absences = here.map(|here| Absences::new(here.clone(), tree.clone(), false));
        for (directory, lock) in locks {
            // If none is left, nothing is remote: that they are gone is reported.
            if !kustomizations.iter().any(|place| path::is_in(place, directory)) {
                continue;
            }
            let own = match lock.target {
                // Localizing in place began where the configuration says.
                None => Config::of(&*self.tree, directory),
                // What a copy may load was decided where its source is.
                Some(_) => Ok(Config { load_restrictor: LoadRestrictor::None, ..Config::default() }),
            };
            let own = match own {
                Ok(own) => own,
                Err(unreadable) => {
                    self.failures.push(unreadable);
                    continue;
                }
            };
            let mut config = Config { ..own };
            config.rules.retain(|RuleKey(rule), _| rule.is_none_or(|rule| !REMOTE.contains(&rule)));
            config.rules.insert(RuleKey(Some(Rule::LockedReference)), Severity::Error);
            let identity = here.map(|here| || Ok(Identity::new([], &config, here.main_branches()?)));
            let inside = [directory.clone()];
            let checked = check::check(Input {
                source: source.clone(),
                tree: tree.clone(),
                paths: if directory.is_empty() { &[] } else { &inside },
                config: &config,
                own: None,
                absences: absences.as_ref(),
                identity: identity.as_ref().map(|identity| identity as &dyn Fn() -> _),
                build: None,
            })?;
            self.failures.extend(checked.failures);
            let mut findings = checked.findings;
            // What may be missing in a copy is said where its source is; other files were compared with the lock.
            findings.retain(|finding| {
                finding.rule != Rule::EditedCopy
                    && finding.allowed.is_none()
                    && (finding.fails() || is_remote(finding))
                    && (finding.rule != Rule::MissingPath || lock.target.is_none())
            });
            let left = lock.left.iter();
            self.left.extend(left.map(|entry @ (upstream, _)| LeftOf {
                directory: directory.to_owned(),
                upstream: upstream.clone(),
                left: entry.into(),
            }));
            for finding in findings {
                if !lock.left.keys().any(|upstream| upstream.subject() == finding.subject) {
                    let (kind, message) = if is_remote(&finding) {
                        let reference = &finding.reference;
                        let message = format!("`{reference}` is still remote ({})", finding.field);
                        (Kind::Remote, message)
                    } else {
                        let message = format!("{} ({})", finding.message, finding.rule);
                        (Kind::Finding, message)
                    };
                    self.differences.push(Difference { kind, path: finding.path, place: finding.span, message });
                }
            }
        }
        Ok(())
    }
}

/// The rules about what is remote.
const REMOTE: [Rule; 4] = [Rule::RemoteReference, Rule::LockedReference, Rule::RemoteChart, Rule::Function];

/// Returns whether a build reaches out for what a finding is about. Of a function that is an image or a script.
fn is_remote(finding: &Finding) -> bool {
    match finding.rule {
        Rule::RemoteReference | Rule::LockedReference | Rule::RemoteChart => true,
        Rule::Function => finding.subject.upstream().is_some(),
        _ => false,
    }
}
