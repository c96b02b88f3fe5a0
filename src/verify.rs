//! `verify`: what a commit holds, against its own record. Offline, from the lock and the message alone, unless
//! [upstream] is asked as well.
//!
//! That proves that nothing changed since the record was made. Who made it is proven by the signature of the
//! commit; lock and files that were changed together agree with each other.

mod outcome;
pub mod upstream;

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::check::{self, Checking, Input};
use crate::commit::objects::{differences, entries, lookup};
use crate::commit::{branch, tip};
use crate::config::{Config, Locked};
use crate::failure::{Failure, Failures, Result, argument, short, shown};
use crate::finding::{Finding, Rule};
use crate::git::{CommitId, Here};
use crate::record::stored::{self, Difference as Stored};
use crate::record::{Digest, LOCK_NAME, Lock, Trailers};
use crate::tree::checkout::CheckedOut;
use crate::tree::objects::{self, ObjectTree, object_id};
use crate::tree::{Listing, Tree, path};

pub use outcome::{Difference, Kind, Record, Verified};
use upstream::{Ask, Listed, Upstream};

/// How far back a message with a record is looked for.
const HISTORY: usize = 1000;

/// What is to be verified.
pub struct Request<'a> {
    /// The revision.
    pub rev: &'a str,
    /// Only what lies in or below these, from the top of the repository; everything when empty.
    pub paths: &'a [String],
    /// Whether the signature of the commit counts.
    pub require_signature: bool,
    /// Who asks upstream, where that is wanted. A lock at the top that only says what URLs are locked to is then enough of
    /// a record.
    pub upstream: Option<&'a Ask<'a>>,
}

/// Verifies a commit.
///
/// # Errors
/// When there is no such commit, no record in it, or a lock that cannot be read.
pub fn verify(here: &Rc<Here>, request: &Request<'_>) -> Result<Verified, Failures> {
    let id = here.commit(request.rev)?.ok_or_else(|| {
        let failure = Failure::new(format!("`{}` names no commit", request.rev));
        match at_remotes(here, request.rev).as_slice() {
            [] if std::path::Path::new(request.rev).exists() => failure.hint(format!(
                "paths stand after `--`: git kustomize-localize verify -- {}",
                argument(request.rev)
            )),
            [] if request.rev == "HEAD" => failure.hint("commit first: nothing is committed yet"),
            [] => failure.hint("fetch it first, or name another one"),
            names => failure.hint(format!("name it as it is here: {}", names.join(", "))),
        }
    })?;
    let tree = Rc::new(ObjectTree::of_here(here.clone(), object_id(&id.tree)?)?);
    let mut verifier = Verifier {
        here,
        id: &id,
        tree,
        paths: request.paths,
        is_whole: false,
        differences: Vec::new(),
        listed: request.upstream.map(|_| Vec::new()),
        is_locked: false,
    };
    // What cannot be read is as good as gone; the lock is the other copy.
    let told: Vec<(String, Trailers)> = here
        .first_parents(&id.commit, HISTORY)?
        .into_iter()
        .filter_map(|(commit, message)| Some((commit, Trailers::parse(&message).ok().flatten()?)))
        .collect();
    let name = here.ref_of(request.rev)?;
    let is_ours = name.is_some_and(|name| branch::is_ours(&name));
    verifier.is_whole = is_ours || is_made(here, &id.commit, &told)?;
    let newest = told.first().map(|(_, trailers)| trailers);
    let is_in_place = newest.is_some_and(|newest| newest.target.in_place);
    let locks = verifier.locks(is_in_place)?;
    verifier.refuse_nothing(request, &locks)?;
    let mut records = Vec::new();
    for (directory, lock) in &locks {
        verifier.files(directory, lock)?;
        let mut about = told
            .iter()
            .filter(|(_, trailers)| is_about(trailers, directory));
        let record = about.next();
        if let Some((commit, trailers)) = record {
            verifier.message(directory, lock, commit, trailers)?;
        }
        records.push(Record {
            directory: directory.clone(),
            target: lock.target.clone(),
            files: files(directory, lock)
                .filter(|place| verifier.is_asked(place))
                .count(),
            remotes: lock.remotes.len(),
            recorded_by: record.map(|(commit, _)| commit.clone()),
            source: record.and_then(|(_, trailers)| {
                let source = trailers.source.as_ref()?;
                Some(source.hex().to_owned())
            }),
            tree: record.map(|(_, trailers)| trailers.tree.hex().to_owned()),
        });
    }
    verifier.gone(&locks, newest)?;
    if let Some((commit, trailers)) = told.first()
        && !trailers.target.in_place
    {
        verifier.by_hand(commit)?;
    }
    let is_enough = request.upstream.is_some() && verifier.is_locked;
    if records.is_empty() && verifier.differences.is_empty() && !is_enough {
        return Err(no_record(request).into());
    }
    let mut failures = verifier.remotes(&locks)?;
    if is_ours && told.is_empty() {
        // What somebody committed on top cannot be told.
        failures.extend(tip::cut_off(here, request.rev)?);
    }
    if request.require_signature {
        verifier.signature()?;
    }
    let mut differences = verifier.differences;
    let upstream = request
        .upstream
        .zip(verifier.listed)
        .map(|(ask, listed)| asked(ask, listed));
    for one in upstream.iter().flatten() {
        differences.extend(one.difference());
        failures.extend(one.failure());
    }
    differences.sort_by(|one, other| {
        let key = |one: &Difference| (one.path.clone(), one.place, one.kind);
        key(one).cmp(&key(other))
    });
    differences.dedup();
    Ok(Verified {
        rev: request.rev.to_owned(),
        commit: id.commit,
        records,
        differences,
        upstream,
        failures,
        also: match request.require_signature {
            true => vec!["with a good signature"],
            false => Vec::new(),
        },
    })
}

/// Says whether a commit with a record is one that we made, and not a squash of such: its parents are the source that
/// it names, or a commit of ours that contains it.
fn is_made(here: &Here, commit: &str, told: &[(String, Trailers)]) -> Result<bool> {
    let Some((_, trailers)) = told.first().filter(|(newest, _)| newest == commit) else {
        return Ok(false);
    };
    // As it was written: a shallow clone has cut the parents off.
    let bytes = here.object("commit", commit)?.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let header = text.lines().take_while(|line| !line.is_empty());
    let parents = header.filter_map(|line| line.strip_prefix("parent "));
    let source = trailers.source.as_ref().map(Digest::hex);
    let before = told.get(1).map(|(commit, _)| commit.as_str());
    let is_one = |parent: &str| [source, before].contains(&Some(parent));
    Ok(parents.into_iter().any(is_one))
}

/// Returns the remote-tracking refs that `rev` may have meant, as they are named.
fn at_remotes(here: &Here, rev: &str) -> Vec<String> {
    if !matches!(here.is_branch_name(rev), Ok(true)) {
        return Vec::new();
    }
    let refs = here
        .refs(&[&format!("refs/remotes/*/{rev}")])
        .unwrap_or_default();
    let names = refs
        .keys()
        .map(|name| name.trim_start_matches("refs/remotes/").to_owned());
    names.collect()
}

fn asked(ask: &Ask<'_>, listed: Vec<Listed>) -> Vec<Upstream> {
    let answers = ask(&Vec::from_iter(listed.iter().map(|listed| &listed.remote)));
    let answered = listed.into_iter().zip(answers);
    answered
        .map(|(listed, answer)| listed.with(answer))
        .collect()
}

fn no_record(request: &Request<'_>) -> Failure {
    let rev = request.rev;
    match request.paths {
        [] if request.upstream.is_some() => Failure::new(format!(
            "`{rev}` holds no record: no `{LOCK_NAME}` at its top, and none that lists localized files"
        ))
        .hint("lock what it references: git kustomize-localize lock"),
        [] => Failure::new(format!(
            "`{rev}` holds no record: no `{LOCK_NAME}` in it lists localized files"
        ))
        .hint("name the commit or branch with the localized files, as localized/main"),
        [path, ..] => Failure::new(format!("`{rev}` holds no record of `{path}`"))
            .hint("see what it holds: git kustomize-localize verify, without PATH"),
    }
}

struct Verifier<'a> {
    here: &'a Rc<Here>,
    id: &'a CommitId,
    tree: Rc<ObjectTree>,
    paths: &'a [String],
    /// Whether it is what a run of ours made as a whole, and not a commit that people put together.
    is_whole: bool,
    differences: Vec<Difference>,
    /// The remotes to ask for; none where nobody is asked.
    listed: Option<Vec<Listed>>,
    /// Whether there is a lock at the top.
    is_locked: bool,
}

impl Verifier<'_> {
    /// Returns the locks that list what was localized, by directory. In place, that is the one at the top, also
    /// where nothing was remote.
    fn locks(&mut self, is_in_place: bool) -> Result<Vec<(String, Lock)>> {
        let mut locks = Vec::new();
        for place in self.tree.locks()? {
            let directory = path::parent(&place).to_owned();
            let asked =
                |path: &String| path::is_in(&directory, path) || path::is_in(path, &directory);
            if !self.paths.is_empty() && !self.paths.iter().any(asked) {
                continue;
            }
            let lock = Lock::parse(&self.tree.read(&place)?, &place)?;
            // One on main may only hold what URLs are locked to.
            let is_record = lock.target.is_some()
                || !lock.files.is_empty()
                || (is_in_place && directory.is_empty());
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
            let is_listed = |(directory, lock): &(String, Lock)| {
                files(directory, lock).any(|place| path::is_in(&place, path))
            };
            if self.tree.entry(path)?.is_none() && !locks.iter().any(is_listed) {
                return Err(Failure::new(format!(
                    "`{}` holds nothing at `{}`, and no lock in it lists that",
                    request.rev,
                    shown(path)
                ))
                .hint(format!(
                    "see what it holds: git ls-tree -r --name-only {}",
                    argument(request.rev)
                )));
            }
        }
        Ok(())
    }

    fn is_asked(&self, place: &str) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|path| path::is_in(place, path))
    }

    fn add(&mut self, kind: Kind, path: &str, message: String) {
        self.differences.push(Difference {
            kind,
            path: path.to_owned(),
            place: None,
            message,
        });
    }

    /// Holds every file against the lock.
    fn files(&mut self, directory: &str, lock: &Lock) -> Result<()> {
        for (place, difference) in stored::differences(&*self.tree, directory, lock)? {
            if !self.is_asked(&place) {
                continue;
            }
            let message = match difference {
                Stored::Missing => "is missing, although the lock lists it".to_owned(),
                Stored::NoFile => "is no file, although the lock lists it as one".to_owned(),
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

    /// Holds the lock and its directory against the message of the commit that tells of it.
    fn message(
        &mut self,
        directory: &str,
        lock: &Lock,
        commit: &str,
        trailers: &Trailers,
    ) -> Result<()> {
        let name = path::join(directory, LOCK_NAME);
        let by = short(commit);
        if self.is_asked(&name) {
            let listed: BTreeSet<_> = lock.remote_trailers().into_iter().collect();
            let told: BTreeSet<_> = trailers.remotes.iter().cloned().collect();
            for remote in listed.symmetric_difference(&told) {
                let (here, there) = match listed.contains(remote) {
                    true => ("lists", "does not"),
                    false => ("does not list", "does"),
                };
                let message = format!(
                    "{here} {} at {}, the message of {by} {there}",
                    remote.label, remote.digest
                );
                self.add(Kind::Trailers, &name, message);
            }
            if let Some(target) = &lock.target
                && (*target != trailers.target.target
                    || lock.options.scope != trailers.target.scope)
            {
                let message = format!(
                    "names the target `{target}`, the message of {by} `{}`, or another scope",
                    trailers.target.target
                );
                self.add(Kind::Trailers, &name, message);
            }
        }
        let repository = objects::open(&self.here.git_dir)?;
        let whole = object_id(&self.id.tree)?;
        // In place, the whole repository is the tree. Where people commit, every later commit has another one: only
        // the lock must be what it was.
        if trailers.target.in_place && !self.is_whole {
            let recorded = self.recorded(&repository, commit, trailers)?;
            let lock = |tree| lookup(&repository, tree, LOCK_NAME);
            if lock(recorded)? != lock(whole)? {
                self.changed([LOCK_NAME.to_owned()], by);
            }
            return Ok(());
        }
        let found = match directory {
            "" => Some(whole),
            _ => lookup(&repository, whole, directory)?.map(|(_, id)| id),
        };
        let recorded = object_id(trailers.tree.hex())?;
        let Some(found) = found.filter(|found| *found != recorded) else {
            return Ok(());
        };
        if entries(&repository, recorded).is_ok() {
            let places = differences(&repository, recorded, found, &BTreeSet::new())?;
            self.changed(places.iter().map(|place| path::join(directory, place)), by);
        }
        // Where the tree of the message is not here, only that it is another one can be told.
        let is_told = |told: &Difference| {
            told.kind != Kind::Trailers
                && !told.path.is_empty()
                && path::is_in(&told.path, directory)
        };
        if self.is_asked(directory) && !self.differences.iter().any(is_told) {
            let what = match directory {
                "" => "the repository ",
                _ => "",
            };
            let message = format!(
                "{what}is the tree {found}, in the message of {by} it is {}",
                trailers.tree.hex()
            );
            self.add(Kind::Tree, directory, message);
        }
        Ok(())
    }

    /// Returns the tree that a commit of ours made: the one that its message names, if that is here, as the commit itself
    /// may have been rewritten; else its own.
    fn recorded(
        &self,
        repository: &gix::Repository,
        commit: &str,
        trailers: &Trailers,
    ) -> Result<gix::ObjectId> {
        let recorded = object_id(trailers.tree.hex())?;
        if entries(repository, recorded).is_ok() {
            return Ok(recorded);
        }
        let own = self.here.commit(commit)?;
        own.map_or(Ok(recorded), |own| object_id(&own.tree))
    }

    /// Adds what is not what a commit of ours made, unless it is told already.
    fn changed(&mut self, places: impl IntoIterator<Item = String>, by: &str) {
        let told: BTreeSet<String> = self
            .differences
            .iter()
            .map(|one| one.path.clone())
            .collect();
        for place in places {
            let below = format!("{place}/");
            let mut next = told.range(below.clone()..);
            let is_told = path::and_above(&place).any(|above| told.contains(above))
                || next.next().is_some_and(|next| next.starts_with(&below));
            if self.is_asked(&place) && !is_told {
                self.add(
                    Kind::Tree,
                    &place,
                    format!("is not what the message of {by} tells of"),
                );
            }
        }
    }

    /// Finds what the newest message tells of, but has no lock any more.
    fn gone(&mut self, locks: &[(String, Lock)], newest: Option<&Trailers>) -> Result<()> {
        let Some(directory) = newest.and_then(|trailers| trailers.target.into.as_ref()) else {
            return Ok(());
        };
        let is_there = matches!(
            self.tree.entry(directory)?,
            Some(crate::tree::Entry::Directory)
        );
        let name = path::join(directory, LOCK_NAME);
        if is_there && self.is_asked(&name) && !locks.iter().any(|(other, _)| other == directory) {
            self.add(
                Kind::Lock,
                &name,
                "is gone, or lists nothing any more".to_owned(),
            );
        }
        Ok(())
    }

    /// Finds what a branch of ours holds otherwise than its newest commit of ours, `commit`, did: also where no lock is
    /// left to tell of it.
    fn by_hand(&mut self, commit: &str) -> Result<()> {
        if !self.is_whole || commit == self.id.commit {
            return Ok(());
        }
        let Some(ours) = self.here.commit(commit)? else {
            return Ok(());
        };
        let repository = objects::open(&self.here.git_dir)?;
        let (before, after) = (object_id(&ours.tree)?, object_id(&self.id.tree)?);
        let by = short(commit);
        self.changed(
            differences(&repository, before, after, &BTreeSet::new())?,
            by,
        );
        Ok(())
    }

    /// Finds what is still remote, with the rules of `check`: nothing allows it, and to be locked is not enough.
    fn remotes(&mut self, locks: &[(String, Lock)]) -> Result<Vec<Failure>> {
        let mut failures = Vec::new();
        let kustomizations = self.tree.kustomizations()?;
        for (directory, lock) in locks {
            // Where none is left, nothing remote is: that they are gone is told.
            if !kustomizations
                .iter()
                .any(|place| path::is_in(place, directory))
            {
                continue;
            }
            let own = match lock.target {
                // What was localized in place began where the configuration says.
                None => Config::of(&*self.tree, directory),
                Some(_) => Ok(Config::default()),
            };
            let own = match own {
                Ok(own) => own,
                Err(unreadable) => {
                    failures.extend(unreadable.0);
                    continue;
                }
            };
            let config = Config {
                file: own.file,
                include: own.include,
                exclude: own.exclude,
                locked: Locked::Error,
                load_restrictor: lock.options.load_restrictor,
                ..Config::default()
            };
            let inside = [directory.clone()];
            let tree = CheckedOut::new(self.tree.clone(), self.tree.hash());
            let checked = check::check(Input {
                checking: Checking::Commit {
                    rev: self.id.commit.clone(),
                    commit: self.id.commit.clone(),
                },
                tree: Rc::new(tree),
                paths: if directory.is_empty() { &[] } else { &inside },
                config: &config,
                no_allow: true,
                absences: None,
            })?;
            failures.extend(checked.failures);
            for finding in checked.findings {
                if is_remote(&finding) && self.is_asked(&finding.path) {
                    self.differences.push(Difference {
                        kind: Kind::Remote,
                        path: finding.path,
                        place: finding.span.map(|span| (span.line, span.column)),
                        message: format!(
                            "`{}` is still remote ({})",
                            finding.reference, finding.field
                        ),
                    });
                }
            }
        }
        Ok(failures)
    }

    fn signature(&mut self) -> Result<()> {
        if let Err(said) = self.here.verify_commit(&self.id.commit)? {
            let commit = short(&self.id.commit);
            let message = match said.lines().last().unwrap_or_default() {
                "" => format!("the commit {commit} is not signed"),
                line => format!("the signature of {commit} is not good: {line}"),
            };
            self.add(Kind::Signature, "", message);
        }
        Ok(())
    }
}

/// Returns the places of the files that a lock lists.
fn files<'a>(directory: &'a str, lock: &'a Lock) -> impl Iterator<Item = String> + 'a {
    let files = lock.files.iter();
    files.map(move |file| path::join(directory, &file.path))
}

fn is_remote(finding: &Finding) -> bool {
    matches!(finding.rule, Rule::RemoteReference | Rule::RemoteChart)
}

/// Says whether a message tells of what lies in a directory.
fn is_about(trailers: &Trailers, directory: &str) -> bool {
    match &trailers.target.into {
        Some(into) => into == directory,
        None => trailers.target.in_place && directory.is_empty(),
    }
}
