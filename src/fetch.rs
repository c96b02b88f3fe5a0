//! Bringing in what remote references name: the only room that reaches the network.
//!
//! Three kinds of things are brought in, each once a run: commits of repositories, files and charts. A lock decides
//! before the network does, and its bytes come from the branch's tip or the cache where they can; what the network has
//! to be asked for at one depth of the walk is requested side by side.

mod answers;
mod budget;
mod cache;
mod checkout;
mod git;
pub(crate) mod helm;
mod history;
pub(crate) mod http;
mod limit;
mod network;
mod progress;
mod published;
mod reach;
mod release;
mod submodule;
mod tip;
mod traffic;
mod trust;

pub(crate) use budget::MAX_FILE_SIZE;
pub(crate) use cache::Cache;
pub(crate) use history::{Histories, History, Move, REWRITTEN};
pub(crate) use network::Network;
pub(crate) use progress::Progress;
pub(crate) use published::Published;
pub(crate) use tip::Tip;
pub(crate) use traffic::traffic;

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::Duration;

use crate::config::{Comments, Config, Source};
use crate::git::{LocalRepo, RemoteGit};
use crate::graph::{Archive, ChartRef, HINT_REWRITE, RemoteContent, RemoteFile, RemoteRef, Remotes, Repository, Wants};
use crate::kustomization;
use crate::message::failure::{Failure, FailureKind, Result, command};
use crate::message::finding::Rule;
use crate::message::redact::SafeUrl;
use crate::record::{Lock, sha256_hex};
use crate::reference::{self, Pin, RepoSpec, Upstream};
use crate::tree::{self, Entry, Resolved, Tree as _, license};

use checkout::CheckoutTree;
use git::{Fetched, GitRequest};
use tip::TipTree;

/// How long one fetch may take where the URL does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

/// What to do where a commit is localized whose lock lacks something.
const COMMIT_LOCK: &str =
    "lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock && git commit";

/// What to do about a lock that no longer fits what is upstream.
const RELOCK: &str = "to lock its new content: `git kustomize-localize update`; if only the lock of NEW_DIR has it, \
                      remove NEW_DIR and copy again";

/// What to do where only the network could help.
pub(crate) const ONLINE: &str = "run once without `--offline`";

/// What changes how remote references are brought in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// The largest file that is taken, in bytes; none: [`MAX_FILE_SIZE`].
    pub max_file_size: Option<u64>,
    /// Fetch what an upstream names also from addresses that are not public.
    pub allow_private: bool,
    /// A lock that decides nothing: what it holds was there once.
    pub before: Option<Rc<Lock>>,
    /// Refuse what no lock holds: nothing is resolved.
    pub locked: bool,
    /// Use only what locks, tips and cache hold.
    pub offline: bool,
    /// Pull charts with the user's helm.
    pub helm: bool,
    /// Show no progress.
    pub quiet: bool,
}

/// One thing to bring in.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Git(RepoSpec),
    File(SafeUrl),
    Chart(ChartRef),
}

impl Key {
    /// Returns what it is in a record, without secrets.
    fn upstream(&self) -> Upstream {
        match self {
            Key::Git(spec) => Upstream::git(spec),
            Key::File(url) => Upstream::File { url: url.shown() },
            Key::Chart(chart) => chart.upstream(),
        }
    }
}

/// A key that is wanted.
struct Job {
    key: Key,
    /// The commit or the sha256 that it must be: a lock, or the ref itself, says so.
    id: Option<String>,
    /// Who signed it, as that lock says.
    signed: Option<String>,
    timeout: Duration,
}

impl Job {
    /// Returns what to fetch of a repository; none for anything else.
    fn request(&self) -> Option<GitRequest> {
        let Key::Git(key) = &self.key else { return None };
        let reference = key.reference.as_deref();
        let fixed = reference.filter(|_| Pin::of(reference) == Pin::Commit).map(str::to_ascii_lowercase);
        let request = GitRequest::new(key.clone_spec(), reference, self.id.as_deref().or(fixed.as_deref()));
        Some(GitRequest { timeout: self.timeout, ..request })
    }
}

/// What the network gave for a key.
enum Got {
    Commit(Fetched),
    Bytes(Vec<u8>),
}

/// Brings in what remote references name, each once.
pub(crate) struct Fetcher {
    network: Rc<Network>,
    options: Options,
    /// In the order in which they decide: that of the repository, then that of NEW_DIR.
    locks: Vec<Rc<Lock>>,
    tips: OnceCell<Vec<Tip>>,
    /// The repository whose localized branches are looked at, if something is wanted.
    branches: Option<Rc<LocalRepo>>,
    known: HashMap<Key, Result<RemoteContent>>,
    /// The repositories whose files are taken from the cache.
    opened: HashMap<RepoSpec, (Rc<CheckoutTree>, Rc<Repository>)>,
    /// Who signed which commit of what, by a key of which file.
    verified: RefCell<HashMap<(Upstream, String, String), Result<String>>>,
}

impl Fetcher {
    /// Sets up fetching. Nothing is read or fetched before something is requested.
    pub(crate) fn new(remote_git: RemoteGit, options: Options, locks: Vec<Rc<Lock>>, tip: Option<Tip>) -> Self {
        Fetcher {
            network: Rc::new(Network::new(remote_git, &options)),
            options,
            locks,
            tips: OnceCell::from(Vec::from_iter(tip)),
            branches: None,
            known: HashMap::new(),
            opened: HashMap::new(),
            verified: RefCell::default(),
        }
    }

    /// Takes what is locked from the localized branches of a repository, too.
    pub(crate) fn with_branches(self, here: Option<&Rc<LocalRepo>>) -> Self {
        Fetcher { tips: OnceCell::new(), branches: here.cloned(), ..self }
    }

    /// Lets another lock and another tip decide from now on. What that lock says otherwise is forgotten.
    pub(crate) fn relock(&mut self, lock: Lock, tip: Tip) {
        let old = |one: &Upstream| self.locks.iter().find_map(|lock| lock.get(one));
        let is_same = |one: &Upstream| old(one) == lock.get(one);
        self.known.retain(|key, _| is_same(&key.upstream()));
        self.opened.retain(|key, _| is_same(&Upstream::git(key)));
        self.locks = vec![Rc::new(lock)];
        self.tips = OnceCell::from(vec![tip]);
    }

    /// Refuses what no lock holds, or takes it as it is today.
    pub(crate) fn locked(mut self, locked: bool) -> Self {
        self.options.locked = locked;
        self
    }

    /// Returns what was brought in as it is today: no lock holds it, and it may be something else tomorrow.
    pub(crate) fn unlocked(&self) -> impl Iterator<Item = Upstream> {
        let is_there = |known: &Result<RemoteContent>| !matches!(known, Err(_) | Ok(RemoteContent::Chart(None)));
        let found = self.known.iter().filter(move |(_, known)| is_there(known)).map(|(key, _)| key.upstream());
        let is_fixed = |one: &Upstream| one.pin() == Pin::Commit;
        found.filter(move |one| !is_fixed(one) && self.locks.iter().all(|lock| lock.get(one).is_none()))
    }

    fn tips(&self) -> Result<&[Tip]> {
        if let Some(tips) = self.tips.get() {
            return Ok(tips);
        }
        let tips = self.branches.as_ref().map_or(Ok(Vec::new()), Tip::of_branches)?;
        Ok(self.tips.get_or_init(|| tips))
    }

    /// Brings in one repository: a remote target.
    pub(crate) fn repository(&mut self, spec: &RepoSpec) -> Result<Rc<Repository>> {
        let wanted = RemoteRef {
            text: spec.clone_spec(),
            wants: Wants::Root,
            spec: Some(spec.clone()),
            by: None,
            is_page: false,
        };
        match self.references(&[Rc::new(wanted)]).remove(0)? {
            RemoteContent::Root(repository) => Ok(repository),
            RemoteContent::File(_) | RemoteContent::Chart(_) => Err(Failure::new("the target was not resolved")),
        }
    }

    /// Returns whether something by convention never changes: of a ref, whether it was resolved in this run, and is a tag.
    pub(crate) fn is_version(&self, source: &Upstream) -> bool {
        let is_it =
            |key: &RepoSpec| key.reference.as_deref() == source.reference() && key.clone_spec().shown() == source.url();
        let mut opened = self.opened.iter();
        answers::is_version(source, || opened.any(|(key, (tree, _))| tree.fetched.tag.is_some() && is_it(key)))
    }

    /// Brings in what is not known yet: from lock and tip, the cache, the network.
    fn bring(&mut self, wanted: impl IntoIterator<Item = (Key, Option<Duration>)>) {
        let (mut jobs, mut asked) = (Vec::new(), HashSet::new());
        for (key, timeout) in wanted {
            if self.known.contains_key(&key) || !asked.insert(key.clone()) {
                continue;
            }
            let upstream = key.upstream();
            let locked = self.locks.iter().find_map(|lock| lock.get(&upstream));
            let id = locked.map(|pinned| pinned.digest.hex().to_owned());
            let signed = locked.and_then(|pinned| pinned.signed.clone());
            let job = Job { key, id, signed, timeout: timeout.unwrap_or(DEFAULT_TIMEOUT) };
            match self.held(&job).transpose() {
                None => jobs.push(job),
                Some(known) => self.keep_known(job, known),
            }
        }
        for (job, got) in self.network.bring(jobs) {
            let known = got.and_then(|got| self.received(&job, got));
            self.keep_known(job, known);
        }
    }

    fn keep_known(&mut self, job: Job, known: Result<RemoteContent>) {
        if let (Ok(RemoteContent::Root(repository)), Some(signed)) = (&known, job.signed) {
            let _ = repository.signed.set(signed);
        }
        self.known.insert(job.key, known);
    }

    /// Returns what needs no network; none if that has to be asked.
    fn held(&mut self, job: &Job) -> Result<Option<RemoteContent>> {
        let upstream = job.key.upstream();
        let mut label = upstream.to_string();
        if let (Key::Git(key), Some(request)) = (&job.key, job.request()) {
            if let Some(repository) = self.held_by_tip(key, &request)? {
                return Ok(Some(RemoteContent::Root(repository)));
            }
            if let Some(fetched) = self.network.cached(&request)? {
                return self.open(key, fetched).map(Some);
            }
            if let Some(commit) = &request.commit {
                label = format!("commit {commit} of {}", key.clone_spec().shown());
            }
        }
        match (&job.key, &job.id) {
            (Key::File(url), Some(sha256)) => {
                let of_tip = self.tips()?.iter().find_map(|tip| tip.file(&upstream, sha256));
                if let Some(bytes) = of_tip.or_else(|| self.network.cache.file(sha256)) {
                    return Ok(Some(remote_file(url, bytes)));
                }
            }
            (Key::Chart(chart), Some(sha256)) => {
                chart.refuse_unsafe()?;
                if let Some(archive) = self.tips()?.iter().find_map(|tip| tip.archive(chart, sha256)) {
                    return Ok(Some(archived(archive)));
                }
                if let Some(bytes) = self.network.cache.file(sha256) {
                    return helm::unpacked(chart, &bytes).map(|archive| Some(archived(archive)));
                }
            }
            (Key::Chart(chart), None) => {
                chart.refuse_unsafe()?;
                // `remote-chart` says what comes of it.
                if !self.options.helm || self.options.locked {
                    return Ok(Some(RemoteContent::Chart(None)));
                }
            }
            (Key::File(_), None) | (Key::Git(_), _) => {}
        }
        if self.options.offline {
            return Err(Failure::new(format!("{label} is not in the cache")).hint(ONLINE));
        }
        Ok(None)
    }

    fn held_by_tip(&self, key: &RepoSpec, request: &GitRequest) -> Result<Option<Rc<Repository>>> {
        let source = Upstream::git(key);
        // The source's own lock may name another commit than a tip was made from.
        let is_it = |tip: &&Tip| tip.lock.get(&source).map(|entry| entry.digest.hex()) == request.commit.as_deref();
        let (Some(commit), tips) = (&request.commit, self.tips()?) else { return Ok(None) };
        let Some((tip, files)) = tips.iter().filter(is_it).find_map(|tip| Some((tip, tip.repository(&source)?))) else {
            return Ok(None);
        };
        let tree = TipTree {
            tip: tip.clone(),
            files,
            version: key.clone(),
            network: self.network.clone(),
            request: request.clone(),
            fetched: OnceCell::new(),
        };
        let (version, commit, signed) = (key.clone(), commit.clone(), OnceCell::new());
        Ok(Some(Rc::new(Repository { tree: Rc::new(tree), version, commit, signed })))
    }

    fn open(&mut self, key: &RepoSpec, fetched: Fetched) -> Result<RemoteContent> {
        let (version, commit, signed) = (key.clone(), fetched.commit.clone(), OnceCell::new());
        let tree = CheckoutTree::open(&self.network, fetched, Upstream::git(key).to_string(), key.submodules)?;
        let tree = Rc::new(tree);
        let repository = Rc::new(Repository { tree: tree.clone(), version, commit, signed });
        self.opened.insert(key.clone(), (tree, repository.clone()));
        Ok(RemoteContent::Root(repository))
    }

    /// Takes what the network gave, if it is what the lock says, and keeps its bytes.
    fn received(&mut self, job: &Job, got: Got) -> Result<RemoteContent> {
        match (&job.key, got) {
            (Key::Git(key), Got::Commit(fetched)) => self.open(key, fetched),
            (Key::File(url), Got::Bytes(bytes)) => {
                let is_page = kustomization::looks_like_html(&bytes);
                self.keep(job, &bytes).map_err(|failure| if is_page { page(url) } else { failure })?;
                Ok(remote_file(url, bytes))
            }
            (Key::Chart(chart), Got::Bytes(bytes)) => {
                let archive = helm::unpacked(chart, &bytes)?;
                self.keep(job, &bytes)?;
                Ok(archived(archive))
            }
            _ => Err(Failure::new("the network gave something else")),
        }
    }

    /// Keeps bytes in the cache, if they are what the lock says.
    fn keep(&self, job: &Job, bytes: &[u8]) -> Result<()> {
        let sha256 = sha256_hex(bytes);
        if let Some(locked) = job.id.as_ref().filter(|locked| **locked != sha256) {
            let label = job.key.upstream();
            let message = format!("{label} has changed since it was locked: expected sha256 {locked}, found {sha256}");
            return Err(Failure::new(message).hint(RELOCK));
        }
        self.network.cache.keep_file(bytes, &sha256)
    }

    /// Returns the ways to bring in what is wanted, in the order in which they decide.
    fn ways(&self, wanted: &RemoteRef) -> Vec<Key> {
        let (text, file) = (wanted.text.exposed(), Key::File(wanted.text.clone()));
        let Some(spec) = wanted.spec.as_ref().filter(|_| wanted.wants != Wants::File) else {
            return vec![file];
        };
        let root = Key::Git(spec.source());
        if wanted.wants == Wants::Root {
            return vec![root];
        }
        match self.locks.iter().find_map(|lock| wanted.locked(lock).map(|upstream| (lock.holds(&upstream), upstream))) {
            Some((_, Upstream::File { .. })) => vec![file],
            Some((true, _)) => vec![root],
            Some((false, _)) => vec![root, file],
            None if reference::has_git_marker(text) => vec![root, file],
            // It was not meant as a repository.
            None if reference::looks_like_file(text) && spec.reference.is_none() => vec![file],
            _ => vec![file, root],
        }
    }

    /// Returns the result of one way; none if it was not tried.
    fn outcome(&self, wanted: &RemoteRef, way: &Key) -> Option<Result<RemoteContent>> {
        let shown = || wanted.text.shown();
        if let (Key::Git(_), Some(spec)) = (way, &wanted.spec) {
            if spec.query_dropped {
                let message = format!("{}: the query cannot be parsed, so kustomize builds HEAD", shown());
                return Some(Err(Failure::new(message).hint(reference::PLAIN_QUERY)));
            }
            if let Err(why) = reference::refuse_unsafe(wanted.text.exposed(), Some(spec)) {
                let failure = Failure::new(format!("`{}` is refused: {why}", shown()));
                return Some(Err(failure.hint(HINT_REWRITE).because(FailureKind::NoRepository)));
            }
        }
        Some(match self.known.get(way)?.clone() {
            Err(failure) => Err(failure),
            Ok(RemoteContent::File(file)) if !wanted.is_page && kustomization::looks_like_html(&file.bytes) => {
                Err(page(&file.url))
            }
            Ok(RemoteContent::File(file)) => match kustomization::looks_like_resources(&file.bytes) {
                // Where a root would do as well, what the file holds decides.
                Err(what) if wanted.wants == Wants::Either => {
                    Err(Failure::new(format!("{} does not contain resources: {what}", shown())))
                }
                _ => Ok(RemoteContent::File(file)),
            },
            Ok(found) => Ok(found),
        })
    }

    /// Returns what a reference names; what has to be brought in for that, where it is not known yet.
    fn answer(&self, wanted: &RemoteRef, ways: &[Key]) -> Result<Result<RemoteContent>, Key> {
        if let Some(failure) = self.refused(wanted) {
            return Ok(Err(failure));
        }
        let outcome = |way: &Key| self.outcome(wanted, way).ok_or_else(|| way.clone());
        // kustomize would take a file for which its server answers to git as well.
        let is_it = |outcome: &Result<RemoteContent>| match (outcome, &wanted.spec) {
            (Ok(RemoteContent::Root(repository)), Some(spec)) => {
                let directory = tree::resolve(&*repository.tree, &spec.directory());
                !matches!(directory, Ok(Resolved::Missing { .. } | Resolved::File { .. }))
            }
            (outcome, _) => outcome.is_ok(),
        };
        let first = outcome(&ways[0])?;
        let is_away = |failure: &Failure| matches!(failure.kind, FailureKind::NoAnswer | FailureKind::Limited);
        let is_away = first.as_ref().err().is_some_and(is_away);
        // The other way would fare no better.
        let Some(other) = ways.get(1).filter(|_| !is_away && !is_it(&first)) else {
            return Ok(first);
        };
        let is_root_first = matches!(ways[0], Key::Git(_));
        Ok(match (first, outcome(other)?) {
            (_, other) if is_it(&other) => other,
            // An error in an existing repository says more than that it is not a file, and so does what is wrong where a
            // repository was meant.
            (first, _) if is_root_first => first,
            // That it is no file does not say that there is nothing.
            (_, Err(other)) if other.kind.is_outage() => Err(other),
            (Err(mut failure), Err(other)) if other.kind != FailureKind::NotInRepository => {
                failure.message = format!("{}; as a git repository: {}", failure.message, other.message);
                failure.hints.extend(other.hints);
                // It is gone if both say so.
                if failure.kind.is_gone() {
                    failure.kind = other.kind;
                }
                Err(failure)
            }
            (_, other) => other,
        })
    }

    /// Refuses what no lock holds, as `check` does, where nothing is to be resolved.
    fn refused(&self, wanted: &RemoteRef) -> Option<Failure> {
        let lock = self.locks.iter().find(|lock| wanted.locked(lock).is_some());
        let mut failure = wanted.unlocked(lock.map(|lock| &**lock)).filter(|_| self.options.locked)?;
        failure.kind = FailureKind::NotLocked;
        Some(match &wanted.by {
            _ if !failure.hints.is_empty() => failure,
            None => failure.hint(COMMIT_LOCK),
            // A lock that was made by hand, or merged: `lock` asks for no upstream that it holds.
            Some(url) => failure.hint(command("git kustomize-localize update", [url])),
        })
    }

    /// Returns a failure with what else can be done about it: an exception, unless it was there once. `by` names what only an
    /// upstream names.
    fn advised(&self, failure: Failure, rule: Rule, upstream: &Upstream, by: Option<&str>, was_there: bool) -> Failure {
        // What was there once, or cannot be reached today, is not to stay remote.
        if was_there || failure.kind.is_outage() || self.options.offline {
            return failure;
        }
        match Config::exception(rule, &upstream.subject(), "").map(Box::new) {
            None if by.is_none() => {
                failure.hint(format!("to leave it remote, write above it: {}", Comments::of_rule(rule)))
            }
            exception => Failure { exception, ..failure },
        }
    }

    /// Returns whether a lock holds something, or held it before.
    fn was_there<T>(&self, locked: impl Fn(&Rc<Lock>) -> Option<T>) -> bool {
        self.locks.iter().chain(&self.options.before).any(|lock| locked(lock).is_some())
    }

    /// Brings in what references name: one answer for each, in their order.
    fn references(&mut self, wanted: &[Rc<RemoteRef>]) -> Vec<Result<RemoteContent>> {
        for one in wanted.iter().filter(|one| one.by.is_none()) {
            self.network.reach.name(one.text.exposed());
            if let Some(spec) = &one.spec {
                self.network.reach.name(spec.clone_spec().exposed());
            }
        }
        let ways: Vec<Vec<Key>> = wanted.iter().map(|one| self.ways(one)).collect();
        let timeout = |one: &RemoteRef| one.spec.as_ref().and_then(|spec| spec.timeout);
        // All that has to be tried first, side by side, and then what is left.
        for _ in 0..2 {
            let next = wanted.iter().zip(&ways);
            let next = next.filter_map(|(one, ways)| Some((self.answer(one, ways).err()?, timeout(one))));
            self.bring(next.collect::<Vec<_>>());
        }
        let not_fetched = |key: Key| Err(Failure::new(format!("{} was not fetched", key.upstream())));
        wanted.iter().zip(&ways).map(|(one, ways)| self.answer(one, ways).unwrap_or_else(not_fetched)).collect()
    }
}

impl Remotes for Fetcher {
    fn trust(&self, upstream: &Upstream, policy: &Source, is_lifted: bool) -> Result<()> {
        self.trusted(upstream, policy, is_lifted)
    }

    fn charts(&mut self, wanted: &[(ChartRef, Option<String>)]) -> Vec<Result<Option<Rc<Archive>>>> {
        for (chart, _) in wanted.iter().filter(|(_, by)| by.is_none()) {
            self.network.reach.name(chart.repo.exposed());
        }
        self.bring(wanted.iter().map(|(chart, _)| (Key::Chart(chart.clone()), None)));
        let answer = |(chart, by): &(ChartRef, Option<String>)| match self.known.get(&Key::Chart(chart.clone())) {
            Some(Ok(RemoteContent::Chart(pulled))) => Ok(pulled.clone()),
            Some(Err(failure)) => {
                let was_there = self.was_there(|lock| chart.locked(lock).map(drop));
                Err(self.advised(failure.clone(), Rule::RemoteChart, &chart.upstream(), by.as_deref(), was_there))
            }
            _ => Err(Failure::new("the chart was not pulled")),
        };
        wanted.iter().map(answer).collect()
    }

    fn prefetch(&mut self, files: &[(Rc<Repository>, String)]) {
        self.network.fetch_missing(|missing| {
            for (repository, path) in files {
                let Some((tree, _)) = self.opened.get(&repository.version) else { continue };
                match tree.entry(path) {
                    Ok(Some(Entry::Directory)) => {
                        let licenses = license::paths(&**tree, path).unwrap_or_default();
                        licenses.iter().for_each(|path| tree.want(path, missing));
                    }
                    _ => tree.want(path, missing),
                }
            }
        });
    }

    fn resolve(&mut self, wanted: &[Rc<RemoteRef>]) -> Vec<Result<RemoteContent>> {
        let answers = self.references(wanted);
        let advised = |one: &RemoteRef, failure| {
            let was_there = self.was_there(|lock| one.locked(lock).map(drop));
            self.advised(failure, Rule::RemoteReference, &one.meant(), one.by.as_deref(), was_there)
        };
        let answer = |(one, answer): (&Rc<RemoteRef>, Result<RemoteContent>)| match self.refused(one) {
            Some(failure) => Err(failure),
            None => answer.map_err(|failure| advised(one, failure)),
        };
        wanted.iter().zip(answers).map(answer).collect()
    }
}

/// Returns what is wrong with a page for people in the place of a file.
fn page(url: &SafeUrl) -> Failure {
    Failure::new(format!("{} is an HTML page, not a file that a build can read", url.shown()))
        .hint("use the URL of the raw file; if it is a login page, the server requires credentials")
}

fn remote_file(url: &SafeUrl, bytes: Vec<u8>) -> RemoteContent {
    RemoteContent::File(Rc::new(RemoteFile { url: url.clone(), sha256: sha256_hex(&bytes), bytes: bytes.into() }))
}

fn archived(archive: Archive) -> RemoteContent {
    RemoteContent::Chart(Some(Rc::new(archive)))
}
