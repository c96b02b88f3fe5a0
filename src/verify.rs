//! `verify`: a localized commit against its lock and trailers. Offline, from the lock and the message alone, unless
//! [upstream] is asked as well.
//!
//! That proves that nothing changed since the record was made. Who made it is proven by the signature of the
//! commit; lock and files that were changed together agree with each other.

mod message;
mod outcome;
pub(crate) mod upstream;

use std::rc::Rc;

use crate::check::{self, Checking, Input};
use crate::config::{Config, Level};
use crate::git::{self, LocalRepo};
use crate::graph;
use crate::message::failure::{Failure, Failures, Result, command, shown};
use crate::message::finding::{Finding, Rule, Subject};
use crate::record::history;
use crate::record::stored::{self, Difference as Stored};
use crate::record::{LOCK_NAME, Left, LeftWhat, LoadRestrictor, Lock};
use crate::targets::Identity;
use crate::tree::absence::Absences;
use crate::tree::disk::DiskTree;
use crate::tree::git::{GitTree, object_id};
use crate::tree::{Entry, Tree, path};

use message::History;
use outcome::LeftOf;
pub(crate) use outcome::{Difference, Kind, Record, Verified};
use upstream::{Ask, Upstream};

/// What to verify.
pub(crate) struct Request<'a> {
    /// The revision.
    pub rev: &'a str,
    /// Only what lies in or below these, from the top of the repository; everything when empty.
    pub paths: &'a [String],
    /// Asks upstream, if wanted. A lock at the top that only records what URLs are locked to is then enough of a
    /// record.
    pub upstream: Option<&'a Ask<'a>>,
}

/// Verifies a commit.
pub(crate) fn verify(here: &Rc<LocalRepo>, request: &Request<'_>) -> Result<Verified, Failures> {
    let (id, name) = here.named(request.rev)?.ok_or_else(|| no_commit(here, request.rev))?;
    let tree = Rc::new(GitTree::of_here(here.clone(), object_id(&id.tree)?)?);
    let checked_out: Rc<dyn Tree> = Rc::new(tree.checked_out());
    let mut verifier = Verifier::new(tree, request.paths, request.upstream.is_some());
    let repository = crate::tree::git::open(&here.git_dir)?;
    let places = verifier.tree.locks()?;
    let mut history = History::of(here, &repository, (request.rev, &id), &places)?;
    let is_ours = name.as_deref().is_some_and(history::is_ours);
    let is_other = name.is_some() && !is_ours;
    let locks = verifier.locks(&places, history.is_in_place())?;
    verifier.refuse_nothing(request, &locks)?;
    let mut records = Vec::new();
    for (directory, lock) in &locks {
        verifier.files(directory, lock)?;
        let record = history.message(&mut verifier, directory, lock, is_other)?;
        records.push(Record {
            directory: directory.clone(),
            target: lock.target.clone(),
            files: files(directory, lock).filter(|place| verifier.is_asked(place)).count(),
            remotes: lock.remotes.len(),
            recorded_by: record.as_ref().map(|record| record.commit.clone()),
            source: record.as_ref().and_then(|record| {
                let source = record.trailers.source.as_ref()?;
                Some(source.hex().to_owned())
            }),
            has_message: lock.trailers,
            tree: record.map(|record| record.trailers.tree.hex().to_owned()),
        });
    }
    history.whole(&mut verifier, &locks, is_ours)?;
    let is_enough = request.upstream.is_some() && verifier.is_locked;
    let is_nothing = verifier.differences.is_empty() && verifier.failures.is_empty();
    if records.is_empty() && is_nothing && !is_enough {
        return Err(no_record(request).into());
    }
    verifier.findings(
        &locks,
        &Checking::Commit { rev: id.commit.clone(), commit: id.commit.clone() },
        &checked_out,
        Some(here),
    )?;
    Ok(Verified {
        rev: request.rev.to_owned(),
        commit: Some(id.commit.clone()),
        ..verifier.verified(records, request.upstream)
    })
}

/// Verifies a directory of the file system, as `--no-commit` writes one: its files against its own lock. `is_checkout`
/// says whether its line ends may be others than those that were written.
pub(crate) fn verify_directory(
    directory: &str,
    is_checkout: bool,
    upstream: Option<&Ask<'_>>,
) -> Result<Verified, Failures> {
    let tree = DiskTree::of_directory(std::path::Path::new(directory), is_checkout)?;
    let is_there = matches!(tree.entry(LOCK_NAME)?, Some(Entry::File { .. }));
    let mut verifier = Verifier::new(Rc::new(tree), &[], upstream.is_some());
    let places = if is_there { vec![LOCK_NAME.to_owned()] } else { Vec::new() };
    let locks = verifier.locks(&places, false)?;
    let mut records = Vec::new();
    for (directory, lock) in &locks {
        verifier.files(directory, lock)?;
        records.push(Record {
            target: lock.target.clone(),
            files: lock.files.len(),
            remotes: lock.remotes.len(),
            ..Record::default()
        });
    }
    if records.is_empty() && !(is_there && upstream.is_some()) {
        let message = format!("`{}` holds no `{LOCK_NAME}` that lists localized files", shown(directory));
        return Err(Failure::new(message)
            .hint("name a directory that `--no-commit` wrote")
            .hint(format!("what a commit holds there: {}", command("git kustomize-localize verify --", [directory])))
            .into());
    }
    let tree = verifier.tree.clone();
    verifier.findings(&locks, &Checking::WorkingTree, &tree, None)?;
    Ok(Verified { rev: directory.to_owned(), ..verifier.verified(records, upstream) })
}

/// Returns the failure for what names no commit.
fn no_commit(here: &LocalRepo, rev: &str) -> Failure {
    let failure = Failure::new(format!("unknown revision `{rev}`"));
    match at_remotes(here, rev).as_slice() {
        [] if std::path::Path::new(rev).exists() => {
            failure.hint(format!("put paths after `--`: {}", command("git kustomize-localize verify --", [rev])))
        }
        [] if rev == "HEAD" => failure.hint("commit first: nothing is committed yet"),
        [] => failure.hint("fetch it first, or name another one"),
        names => failure.hint(format!("name it as it is here: {}", names.join(", "))),
    }
}

/// Returns the remote-tracking refs that `rev` may have meant, by their names.
fn at_remotes(here: &LocalRepo, rev: &str) -> Vec<String> {
    if !git::is_branch_name(rev) {
        return Vec::new();
    }
    let refs = here.refs(&[format!("refs/remotes/*/{rev}")]).unwrap_or_default();
    let names = refs.keys().map(|name| name.trim_start_matches("refs/remotes/").to_owned());
    names.collect()
}

fn no_record(request: &Request<'_>) -> Failure {
    let (rev, which) = (request.rev, request.paths.first());
    let which = which.map_or_else(String::new, |path| format!(" of `{}`", shown(path)));
    let failure = Failure::new(format!("`{rev}` holds no record{which}: no `{LOCK_NAME}` in it lists localized files"));
    match request.upstream {
        Some(_) => failure.hint("lock what it references: git kustomize-localize lock"),
        None => failure.hint(
            "name the branch with the localized files, for example: git kustomize-localize verify localized/main",
        ),
    }
}

struct Verifier<'a> {
    tree: Rc<dyn Tree>,
    paths: &'a [String],
    differences: Vec<Difference>,
    failures: Vec<Failure>,
    /// The remotes to ask; none if upstream is not asked.
    listed: Option<Vec<Upstream>>,
    /// What stays remote and was accepted.
    left: Vec<LeftOf>,
    /// Whether there is a lock at the top.
    is_locked: bool,
}

impl<'a> Verifier<'a> {
    fn new(tree: Rc<dyn Tree>, paths: &'a [String], asks: bool) -> Self {
        Verifier {
            tree,
            paths,
            differences: Vec::new(),
            failures: Vec::new(),
            listed: asks.then(Vec::new),
            left: Vec::new(),
            is_locked: false,
        }
    }

    /// Returns the result, with the state of the remotes upstream.
    fn verified(self, records: Vec<Record>, ask: Option<&Ask<'_>>) -> Verified {
        let (mut differences, mut failures) = (self.differences, self.failures);
        let mut upstream = self.listed;
        if let (Some(ask), Some(listed)) = (ask, &mut upstream) {
            let answers = ask(&Vec::from_iter(listed.iter().map(|listed| &listed.remote)));
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
        Verified { records, differences, left: self.left, upstream, failures, ..Verified::default() }
    }

    /// Returns the locks that list what was localized, by directory. In place, that is the one at the top, also
    /// where nothing was remote.
    fn locks(&mut self, places: &[String], is_in_place: bool) -> Result<Vec<(String, Lock)>> {
        let mut locks = Vec::new();
        for place in places {
            let directory = path::parent(place).to_owned();
            let asked = |path: &String| path::is_in(&directory, path) || path::is_in(path, &directory);
            if !self.paths.is_empty() && !self.paths.iter().any(asked) {
                continue;
            }
            let lock = Lock::parse(&self.tree.read(place)?, place)?;
            // One on main may only hold what URLs are locked to.
            let is_record = lock.target.is_some() || !lock.files.is_empty() || (is_in_place && directory.is_empty());
            self.is_locked |= directory.is_empty();
            if let Some(listed) = &mut self.listed
                && (is_record || directory.is_empty())
            {
                listed.extend(upstream::listed(&self.tree, &directory, &lock, self.paths)?);
            }
            if is_record {
                locks.push((directory, lock));
            }
        }
        let top = |(directory, _): &(String, Lock)| directory.is_empty();
        if is_in_place && self.paths.is_empty() && !locks.iter().any(top) {
            locks.insert(0, (String::new(), Lock::default()));
        }
        Ok(locks)
    }

    /// Refuses a path at which there is nothing, and was nothing.
    fn refuse_nothing(&self, request: &Request<'_>, locks: &[(String, Lock)]) -> Result<()> {
        for path in self.paths {
            let is_listed =
                |(directory, lock): &(String, Lock)| files(directory, lock).any(|place| path::is_in(&place, path));
            if self.tree.entry(path)?.is_none() && !locks.iter().any(is_listed) {
                return Err(Failure::new(format!(
                    "`{}` holds nothing at `{}`, and no lock in it lists that",
                    request.rev,
                    shown(path)
                ))
                .hint(format!("see what it holds: {}", command("git ls-tree -r --name-only", [request.rev]))));
            }
        }
        Ok(())
    }

    fn is_asked(&self, place: &str) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|path| path::is_in(place, path))
    }

    fn add(&mut self, kind: Kind, path: &str, message: String) {
        self.differences.push(Difference { kind, path: path.to_owned(), place: None, message });
    }

    /// Compares every file with the lock.
    fn files(&mut self, directory: &str, lock: &Lock) -> Result<()> {
        for (place, difference) in stored::differences(&*self.tree, directory, lock)? {
            if !self.is_asked(&place) {
                continue;
            }
            let message = match difference {
                Stored::Missing => "is missing, although the lock lists it".to_owned(),
                Stored::NoFile => "is not a file, although the lock lists it as one".to_owned(),
                Stored::Edited { sha256 } => {
                    format!("was changed: its sha256 is {sha256}, not what the lock lists")
                }
                Stored::Mode => "has another mode than the lock lists".to_owned(),
                Stored::Added => "was added: the lock does not list it".to_owned(),
                Stored::Unlisted { remote } => {
                    format!("is from {remote} as the lock says, which the lock does not list")
                }
            };
            self.add(Kind::File, &place, message);
        }
        Ok(())
    }

    /// Finds what fails `check`. What is remote nothing allows but the record, and to be locked is not enough. `tree` is
    /// what a build reads.
    fn findings(
        &mut self,
        locks: &[(String, Lock)],
        checking: &Checking,
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
            config.rules.retain(|rule, _| !REMOTE.contains(rule));
            config.rules.insert(Rule::LockedReference, Level::Error);
            let identity = here.map(|here| || Ok(Identity::new(here.remote_urls()?, &config, here.main_branches()?)));
            let inside = [directory.clone()];
            let checked = check::check(Input {
                checking: checking.clone(),
                tree: tree.clone(),
                paths: if directory.is_empty() { &[] } else { &inside },
                config: &config,
                own: None,
                absences: absences.as_ref(),
                identity: identity.as_ref().map(|identity| identity as &dyn Fn() -> _),
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
            self.left(directory, lock, &findings);
            for finding in findings {
                let is_accepted = |left: &Left| left.accepted && is_about_left(&finding, left);
                if self.is_asked(&finding.path) && !lock.left.iter().any(is_accepted) {
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

    /// Takes over what a lock lists as remote. What was not accepted is a difference, found in the tree or not.
    fn left(&mut self, directory: &str, lock: &Lock, findings: &[Finding]) {
        let name = path::join(directory, LOCK_NAME);
        for left in &lock.left {
            let is_found = || findings.iter().any(|finding| is_about_left(finding, left));
            if left.accepted {
                self.left.push(LeftOf { directory: directory.to_owned(), left: left.clone() });
            } else if self.is_asked(&name) && !is_found() {
                let message = format!("`{}` is left remote: {}", left.what.label(), left.reason);
                self.add(Kind::Remote, &name, message);
            }
        }
    }
}

/// Returns the places of the files that a lock lists.
fn files<'a>(directory: &'a str, lock: &'a Lock) -> impl Iterator<Item = String> + 'a {
    let files = lock.files.iter();
    files.map(move |file| path::join(directory, &file.path))
}

/// The rules about what is remote.
const REMOTE: [Rule; 4] = [Rule::RemoteReference, Rule::LockedReference, Rule::RemoteChart, Rule::Function];

/// Returns whether a build reaches out for what a finding is about. Of a function that is an image or a script.
fn is_remote(finding: &Finding) -> bool {
    match finding.rule {
        Rule::RemoteReference | Rule::LockedReference | Rule::RemoteChart => true,
        Rule::Function => matches!(finding.subject, Subject::Image { .. } | Subject::Http { .. } | Subject::Git { .. }),
        _ => false,
    }
}

/// Returns whether a finding is about something that a lock lists as left.
fn is_about_left(finding: &Finding, left: &Left) -> bool {
    match &left.what {
        LeftWhat::Reference { url } => *url == finding.reference && !matches!(finding.subject, Subject::Helm { .. }),
        LeftWhat::Chart { .. } | LeftWhat::Image { .. } => finding.subject == graph::subject(&left.what),
    }
}
