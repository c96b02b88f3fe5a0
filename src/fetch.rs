//! Fetches the content of remote references. No other room reaches the network.
//!
//! There are three kinds of content: commits of repositories, files and charts. Each is fetched once per run. A lock
//! decides before the network does, and its content comes from the tip of a localized branch or from the cache if they
//! have it. Everything else that one level of the walk needs is requested in parallel.

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
pub(crate) use history::{Ancestry, Histories, Move, REWRITTEN, RefCommit};
pub(crate) use network::Network;
pub(crate) use progress::Progress;
pub(crate) use published::Published;
pub(crate) use tip::Tip;
pub(crate) use traffic::traffic;
pub(crate) use trust::Provenance;

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::rc::Rc;
use std::time::Duration;

use crate::config::{Comments, Config, SourcePolicy};
use crate::git::{LocalRepo, RemoteGit};
use crate::graph::{
    Archive, ChartRef, ExpectedContent, HINT_REWRITE, RemoteCommit, RemoteContent, RemoteFile, RemoteRef, Remotes,
};
use crate::kustomization;
use crate::message::failure::{Failure, FailureKind, Result, command};
use crate::message::redact::SafeUrl;
use crate::record::{Lock, sha256_hex};
use crate::reference::{self, Pin, RepoSpec, Upstream};
use crate::tree::{self, Entry, Resolved, Tree as _, license};

use checkout::CheckoutTree;
use git::{Fetched, GitRequest};
use tip::TipTree;

/// The longest time for one fetch, unless the URL has a timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

/// The hint for a commit whose lock lacks an upstream.
const COMMIT_LOCK: &str =
    "lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock && git commit";

/// The hint for a lock that does not match upstream any more.
const HINT_RELOCK: &str = "to lock its new content: `git kustomize-localize update`; if only the lock of NEW_DIR has it, \
                      remove NEW_DIR and copy again";

/// The hint for content that only the network has.
pub(crate) const HINT_RUN_ONLINE: &str = "run once without `--offline`";

/// The options of fetching.
#[derive(Debug, Clone, Default)]
pub(crate) struct FetchOptions {
    /// The largest file that is accepted, in bytes. [`MAX_FILE_SIZE`] if `None`.
    pub max_file_size: Option<u64>,
    /// Whether an upstream may reference addresses that are not public.
    pub allow_private: bool,
    /// An older lock. It pins nothing; it shows which upstreams existed when it was written.
    pub before: Option<Rc<Lock>>,
    /// Whether references that no lock has are refused. Nothing is resolved then.
    pub locked: bool,
    /// Whether only locks, tips and the cache are used.
    pub offline: bool,
    /// Whether charts are pulled with the user's helm.
    pub helm: bool,
    /// Whether progress is hidden.
    pub quiet: bool,
}

/// The identity of content to fetch.
#[derive(Clone, PartialEq, Eq, Hash)]
enum ContentKey {
    Git(RepoSpec),
    File(SafeUrl),
    Chart(ChartRef),
}

impl ContentKey {
    /// The upstream as a record names it, without secrets.
    fn upstream(&self) -> Upstream {
        match self {
            ContentKey::Git(spec) => Upstream::git(spec),
            ContentKey::File(url) => Upstream::File { url: url.shown() },
            ContentKey::Chart(chart) => chart.upstream(),
        }
    }
}

/// A fetch to do.
struct FetchJob {
    key: ContentKey,
    /// The commit or SHA-256 that the content must have, from a lock. `None` if no lock has the upstream.
    locked_id: Option<String>,
    /// The signer in the lock.
    signed: Option<String>,
    /// The version that a range of versions means, as that lock says.
    resolved: Option<String>,
    timeout: Duration,
}

impl FetchJob {
    /// The request to git. `None` unless the key is a repository.
    fn request(&self) -> Option<GitRequest> {
        let ContentKey::Git(key) = &self.key else { return None };
        let reference = key.reference.as_deref();
        // A ref that is a commit id names its commit without a lock. The cache has the ids in lower case.
        let fixed = reference.filter(|_| Pin::of(reference) == Pin::Commit).map(str::to_ascii_lowercase);
        let request = GitRequest::new(key.clone_spec(), reference, self.locked_id.as_deref().or(fixed.as_deref()));
        Some(GitRequest { timeout: self.timeout, ..request })
    }

    /// The content in a message about the cache, which lacks a commit whatever the ref is.
    fn label(&self) -> String {
        match self.request() {
            Some(request) if request.commit.is_some() => request.label(),
            _ => self.key.upstream().to_string(),
        }
    }
}

/// The answer of the network for a key.
enum Downloaded {
    Commit(Fetched),
    Bytes(Vec<u8>),
}

/// Fetches the content of remote references, each once.
pub(crate) struct Fetcher {
    network: Rc<Network>,
    options: FetchOptions,
    /// The locks, in the order in which they decide: first the lock of the repository, then that of NEW_DIR.
    locks: Vec<Rc<Lock>>,
    tips: OnceCell<Vec<Tip>>,
    /// The repository whose localized branches are read when something is fetched. `None` if only the given tips count.
    branches: Option<Rc<LocalRepo>>,
    known: HashMap<ContentKey, Result<RemoteContent>>,
    /// The locked files that are HTML pages now: a page that no reference expects may be a login.
    changed_pages: HashSet<SafeUrl>,
    /// The repositories that were opened from the cache.
    opened: HashMap<RepoSpec, (Rc<CheckoutTree>, Rc<RemoteCommit>)>,
    /// The verified signers, by upstream, commit and file of keys.
    verified: RefCell<HashMap<(Upstream, String, String), Result<String>>>,
}

impl Fetcher {
    /// Sets up fetching for one run. Nothing is read or fetched before something is requested. `tip` is the localized
    /// branch that the run continues: its files need not be fetched again.
    pub(crate) fn new(remote_git: RemoteGit, options: FetchOptions, locks: Vec<Rc<Lock>>, tip: Option<Tip>) -> Self {
        Fetcher {
            network: Rc::new(Network::new(remote_git, &options)),
            options,
            locks,
            tips: OnceCell::from(Vec::from_iter(tip)),
            branches: None,
            known: HashMap::new(),
            changed_pages: HashSet::new(),
            opened: HashMap::new(),
            verified: RefCell::default(),
        }
    }

    /// Takes locked content from the localized branches of a repository, instead of from a given tip.
    pub(crate) fn with_branches(self, repo: Option<&Rc<LocalRepo>>) -> Self {
        Fetcher { tips: OnceCell::new(), branches: repo.cloned(), ..self }
    }

    /// Replaces the locks and tips in the middle of a run: `update` resolves some references again, and only then knows
    /// the lock that pins all others. Content that the new lock pins differently is forgotten.
    pub(crate) fn relock(&mut self, lock: Lock, tip: Tip) {
        let changed = |upstream: Upstream| {
            let pinned = self.locks.iter().find_map(|lock| lock.get(&upstream));
            pinned != lock.get(&upstream)
        };
        self.known.retain(|key, _| !changed(key.upstream()));
        self.changed_pages.retain(|url| self.known.contains_key(&ContentKey::File(url.clone())));
        self.opened.retain(|key, _| !changed(Upstream::git(key)));
        self.locks = vec![Rc::new(lock)];
        self.tips = OnceCell::from(vec![tip]);
    }

    /// Sets whether references that no lock has are refused, or resolved as they are today.
    pub(crate) fn locked(mut self, locked: bool) -> Self {
        self.options.locked = locked;
        self
    }

    /// The upstreams that were fetched although no lock pins them, so that they may be something else tomorrow.
    pub(crate) fn unlocked(&self) -> impl Iterator<Item = Upstream> {
        let fetched = self.known.iter().filter(|(_, known)| !matches!(known, Err(_) | Ok(RemoteContent::Chart(None))));
        let upstreams = fetched.map(|(key, _)| key.upstream()).filter(|upstream| upstream.pin() != Pin::Commit);
        upstreams.filter(|upstream| self.locks.iter().all(|lock| lock.get(upstream).is_none()))
    }

    /// The tips that content is taken from: those that were given, or else those of the localized branches, which are
    /// read only when they are first needed.
    fn tips(&self) -> Result<&[Tip]> {
        if let Some(tips) = self.tips.get() {
            return Ok(tips);
        }
        let tips = self.branches.as_ref().map_or(Ok(Vec::new()), Tip::of_branches)?;
        Ok(self.tips.get_or_init(|| tips))
    }

    /// Fetches a repository that no file names: a remote TARGET, or a release that `update --to` tries.
    pub(crate) fn repository(&mut self, spec: &RepoSpec) -> Result<Rc<RemoteCommit>> {
        let reference = RemoteRef {
            text: spec.clone_spec(),
            wants: ExpectedContent::Root,
            spec: Some(spec.clone()),
            // No upstream names the URL, so it may point anywhere, and gets the user's logins.
            by: None,
            is_page: false,
        };
        match self.fetch_references(&[Rc::new(reference)]).remove(0)? {
            RemoteContent::Root(repository) => Ok(repository),
            // A reference that expects a root is resolved to a root, or fails.
            RemoteContent::File(_) | RemoteContent::Chart(_) => Err(Failure::new("the target was not resolved")),
        }
    }

    /// Whether an upstream never changes by convention. A ref counts if this run resolved it and it is a tag.
    pub(crate) fn is_version(&self, source: &Upstream) -> bool {
        answers::is_version(source, || {
            self.opened.iter().any(|(key, (tree, _))| {
                tree.fetched.tag.is_some()
                    && key.reference.as_deref() == source.reference()
                    && key.clone_spec().shown() == source.url()
            })
        })
    }

    /// Fetches the content of `wanted` keys, each with the timeout of its URL, into `known`: from a tip, from the
    /// cache, or over the network. A key that has an answer is not fetched again, so that content stays the same within
    /// a run.
    fn fetch(&mut self, wanted: impl IntoIterator<Item = (ContentKey, Option<Duration>)>) {
        let (mut jobs, mut requested) = (Vec::new(), HashSet::new());
        for (key, timeout) in wanted {
            if self.known.contains_key(&key) || !requested.insert(key.clone()) {
                continue;
            }
            let upstream = key.upstream();
            // The first lock that has the upstream counts, in the order of the caller.
            let locked = self.locks.iter().find_map(|lock| lock.get(&upstream));
            let locked_id = locked.map(|pinned| pinned.digest.hex().to_owned());
            let signed = locked.and_then(|pinned| pinned.signed.clone());
            let resolved = locked.and_then(|pinned| pinned.resolved.clone());
            let job = FetchJob { key, locked_id, signed, resolved, timeout: timeout.unwrap_or(DEFAULT_TIMEOUT) };
            match self.resolve_offline(&job).transpose() {
                None => jobs.push(job),
                Some(known) => self.keep_known(job, known),
            }
        }
        // All jobs at once, so that the run waits for slow servers in parallel.
        for (job, downloaded) in self.network.fetch_all(jobs) {
            let known = downloaded.and_then(|downloaded| self.add_downloaded(&job, downloaded));
            self.keep_known(job, known);
        }
    }

    /// Remembers the result for a key, so that the run does not fetch it again. The signer in the lock goes with a
    /// repository.
    fn keep_known(&mut self, job: FetchJob, known: Result<RemoteContent>) {
        if let (Ok(RemoteContent::Root(repository)), Some(signed)) = (&known, job.signed) {
            let _ = repository.signed.set(signed);
        }
        self.known.insert(job.key, known);
    }

    /// The content of a key that this machine has; `None` if the network must be asked. A chart that stays remote, for
    /// lack of an entry in the lock, has the content `Chart(None)`. Fails if what the machine has cannot be read, if
    /// the text of a chart is unsafe, and offline instead of `None`.
    fn resolve_offline(&mut self, job: &FetchJob) -> Result<Option<RemoteContent>> {
        let content = match &job.key {
            ContentKey::Git(key) => self.stored_commit(key, job)?,
            ContentKey::File(url) => self.stored_file(url, job)?,
            ContentKey::Chart(chart) => self.stored_chart(chart, job)?,
        };
        // Only here, so that a lock, a tip and the cache serve without a network.
        if content.is_none() && self.options.offline {
            return Err(not_cached(job.label()));
        }
        Ok(content)
    }

    /// A commit from a localized branch, whose files are in this repository, or from the cache.
    fn stored_commit(&mut self, key: &RepoSpec, job: &FetchJob) -> Result<Option<RemoteContent>> {
        let Some(request) = job.request() else { return Ok(None) };
        if let Some(repository) = self.tip_repository(key, &request)? {
            return Ok(Some(RemoteContent::Root(repository)));
        }
        match self.network.cached(&request)? {
            Some(fetched) => self.add_commit(key, fetched).map(Some),
            None => Ok(None),
        }
    }

    /// A file from a localized branch, or from the cache. It is found by its digest, so only if a lock has it.
    fn stored_file(&self, url: &SafeUrl, job: &FetchJob) -> Result<Option<RemoteContent>> {
        let Some(sha256) = &job.locked_id else { return Ok(None) };
        let upstream = job.key.upstream();
        let from_tip = self.tips()?.iter().find_map(|tip| tip.file(&upstream, sha256));
        let bytes = from_tip.or_else(|| self.network.cache.file(sha256));
        Ok(bytes.map(|bytes| remote_file(url, bytes)))
    }

    /// A chart from a localized branch, or from the cache, if a lock has it. A chart that no lock has stays remote if
    /// charts are not pulled with helm, or only locked content is used: the rule `remote-chart` decides whether that is
    /// an error. Fails if the text of the chart is unsafe.
    fn stored_chart(&self, chart: &ChartRef, job: &FetchJob) -> Result<Option<RemoteContent>> {
        // Refused wherever the archive comes from: a path, or helm in a build, could misread the text.
        chart.refuse_unsafe()?;
        let Some(sha256) = &job.locked_id else {
            let stays_remote = !self.options.helm || self.options.locked;
            return Ok(stays_remote.then_some(RemoteContent::Chart(None)));
        };
        if let Some(archive) = self.tips()?.iter().find_map(|tip| tip.archive(chart, sha256)) {
            return Ok(Some(archived(archive)));
        }
        let Some(bytes) = self.network.cache.file(sha256) else { return Ok(None) };
        helm::unpack(chart, &bytes).map(|archive| Some(archived(archive)))
    }

    /// The requested commit of a repository with the files that a localized branch has of it, so that a run without new
    /// references needs no network. `None` without a requested commit, or if no tip has files of that commit.
    fn tip_repository(&self, key: &RepoSpec, request: &GitRequest) -> Result<Option<Rc<RemoteCommit>>> {
        let source = Upstream::git(key);
        // Without a commit, only the server knows where the ref points today.
        let (Some(commit), tips) = (&request.commit, self.tips()?) else { return Ok(None) };
        // The lock of the source may have another commit than the one that a tip was made from.
        let mut same_commit =
            tips.iter().filter(|tip| tip.lock.get(&source).is_some_and(|entry| entry.digest.hex() == commit));
        let Some((tip, files)) = same_commit.find_map(|tip| Some((tip, tip.repository(&source)?))) else {
            return Ok(None);
        };
        // Files that the tip lacks are fetched with `request`, when they are read.
        let tree = TipTree {
            tip: tip.clone(),
            files,
            version: key.clone(),
            network: self.network.clone(),
            request: request.clone(),
            fetched: OnceCell::new(),
        };
        let (version, commit, signed) = (key.clone(), commit.clone(), OnceCell::new());
        Ok(Some(Rc::new(RemoteCommit { tree: Rc::new(tree), version, commit, signed })))
    }

    /// Opens a fetched commit, and remembers its tree for [`Remotes::prefetch`].
    fn add_commit(&mut self, key: &RepoSpec, fetched: Fetched) -> Result<RemoteContent> {
        let (version, commit, signed) = (key.clone(), fetched.commit.clone(), OnceCell::new());
        let tree = Rc::new(CheckoutTree::open_root(&self.network, fetched, key)?);
        let repository = Rc::new(RemoteCommit { tree: tree.clone(), version, commit, signed });
        self.opened.insert(key.clone(), (tree, repository.clone()));
        Ok(RemoteContent::Root(repository))
    }

    /// Turns the answer of the network into content: opens a fetched commit, or parses downloaded bytes and writes them
    /// to the cache. Fails if the lock has another digest, because upstream replaced the content since.
    fn add_downloaded(&mut self, job: &FetchJob, downloaded: Downloaded) -> Result<RemoteContent> {
        match (&job.key, downloaded) {
            (ContentKey::Git(key), Downloaded::Commit(fetched)) => self.add_commit(key, fetched),
            (ContentKey::File(url), Downloaded::Bytes(bytes)) => {
                let sha256 = unchanged_digest(job, &bytes).inspect_err(|_| {
                    if kustomization::looks_like_html(&bytes) {
                        self.changed_pages.insert(url.clone());
                    }
                })?;
                self.network.cache.keep_file(&bytes, &sha256)?;
                Ok(remote_file(url, bytes))
            }
            (ContentKey::Chart(chart), Downloaded::Bytes(bytes)) => {
                // Unpacked first, so that the cache has only archives that can be read.
                let archive = helm::unpack(chart, &bytes)?;
                self.network.cache.keep_file(&bytes, &unchanged_digest(job, &bytes)?)?;
                Ok(archived(archive))
            }
            // `Network::fetch_all` answers with commits for repositories, and with bytes for everything else.
            _ => Err(Failure::new("the network gave something else")),
        }
    }

    /// The keys under which a reference may be found, in the order in which they are tried; each costs a request. Two
    /// keys if the field takes files and roots, and neither a lock nor the text tells which one the URL is.
    fn candidate_keys(&self, wanted: &RemoteRef) -> Vec<ContentKey> {
        let (text, file) = (wanted.text.exposed(), ContentKey::File(wanted.text.clone()));
        // A field for files never means a repository, nor does a URL that kustomize does not take for one of git.
        let Some(spec) = wanted.spec.as_ref().filter(|_| wanted.wants != ExpectedContent::File) else {
            return vec![file];
        };
        let root = ContentKey::Git(spec.source());
        if wanted.wants == ExpectedContent::Root {
            return vec![root];
        }
        // A lock tells what the URL was when it was locked.
        if let Some((lock, upstream)) = self.locks.iter().find_map(|lock| Some((lock, wanted.locked(lock)?))) {
            return match upstream {
                Upstream::File { .. } => vec![file],
                _ if lock.holds(&upstream) => vec![root],
                // The lock has the repository without this directory, so that the URL may also name a file.
                _ => vec![root, file],
            };
        }
        // The marker tells that a repository was meant, but kustomize takes a file if the server has one.
        if reference::has_git_marker(text) {
            return vec![root, file];
        }
        // A URL that looks like a file, without a ref, was not meant as a repository.
        if reference::looks_like_file(text) && spec.reference.is_none() {
            return vec![file];
        }
        // As kustomize does: a GET, then git.
        vec![file, root]
    }

    /// The result for one key, as this reference may use it. `None` if it was not tried. Fails if fetching failed, if
    /// kustomize would read another repository than the URL seems to name, or if the content cannot be what the field
    /// takes.
    fn outcome(&self, wanted: &RemoteRef, key: &ContentKey) -> Option<Result<RemoteContent>> {
        if let (ContentKey::Git(_), Some(spec)) = (key, &wanted.spec)
            && let Err(failure) = refuse_repository(wanted, spec)
        {
            return Some(Err(failure));
        }
        Some(match self.known.get(key)?.clone() {
            // A page is content only if the reference names one. Otherwise it may be a login, and to lock it again
            // would be the wrong advice.
            Err(_) if !wanted.is_page && self.is_changed_page(key) => Err(page(&wanted.text)),
            Ok(RemoteContent::File(file)) => refuse_file(wanted, &file).map(|()| RemoteContent::File(file)),
            known => known,
        })
    }

    /// Whether a key is a locked file that is an HTML page now.
    fn is_changed_page(&self, key: &ContentKey) -> bool {
        matches!(key, ContentKey::File(url) if self.changed_pages.contains(url))
    }

    /// The content of a reference, or its failure, by the keys that were fetched. The outer `Err` has a key that must
    /// be fetched first.
    fn answer(&self, wanted: &RemoteRef, keys: &[ContentKey]) -> Result<Result<RemoteContent>, ContentKey> {
        if let Some(failure) = self.not_locked(wanted) {
            return Ok(Err(failure));
        }
        let outcome = |key: &ContentKey| self.outcome(wanted, key).ok_or_else(|| key.clone());
        let first = outcome(&keys[0])?;
        let failure = first.as_ref().err();
        let has_no_answer =
            failure.is_some_and(|failure| matches!(failure.kind, FailureKind::NoAnswer | FailureKind::Limited));
        // If the server does not answer, or limits us, the second key of the same server would fail too. After
        // `NoConnection` it is tried, because git may have its own proxy.
        let Some(other) = keys.get(1).filter(|_| !has_no_answer && !is_usable(&first, wanted)) else {
            return Ok(first);
        };
        // Both were tried, and the first one is not usable.
        let other = outcome(other)?;
        let is_root_first = matches!(keys[0], ContentKey::Git(_));
        Ok(if is_usable(&other, wanted) {
            other
        } else if is_root_first {
            // A lock or a marker tells that a repository was meant, so its answer says more than that of the file.
            first
        } else {
            neither_file_nor_root(first, other)
        })
    }

    /// The failure of a reference that no lock has, or whose directory the lock lacks, if the run must not resolve
    /// anything that is not locked: its result would depend on the day. `None` if it is locked, or may be resolved.
    fn not_locked(&self, wanted: &RemoteRef) -> Option<Failure> {
        let lock = self.locks.iter().find(|lock| wanted.locked(lock).is_some());
        let mut failure = wanted.not_locked_failure(lock.map(|lock| &**lock)).filter(|_| self.options.locked)?;
        failure.kind = FailureKind::NotLocked;
        Some(match &wanted.by {
            // The text must be corrected first. Then it is another reference, with hints of its own.
            _ if !failure.hints.is_empty() => failure,
            None => failure.hint(COMMIT_LOCK),
            // The lock was written by hand or merged: `lock` does not ask for upstreams that it has already.
            Some(url) => failure.hint(command("git kustomize-localize update", [url])),
        })
    }

    /// Adds to a failure how the reference can stay remote, so that one dead URL does not block the user. `by` is the
    /// upstream that has the reference; `None` if the user's files have it. `was_locked` tells that it existed once.
    fn with_way_out(&self, failure: Failure, upstream: &Upstream, by: Option<&str>, was_locked: bool) -> Failure {
        // An upstream that existed once, or is unreachable today, must not become an exception. A reference that is
        // only not locked needs none. Offline, nobody has asked whether the upstream exists.
        let may_exist = was_locked || failure.kind.is_outage() || failure.kind == FailureKind::NotLocked;
        if may_exist || self.options.offline {
            return failure;
        }
        let rule = upstream.rule();
        match Config::exception(rule, &upstream.subject(), "").map(Box::new) {
            // An entry of `allow` cannot name this upstream, and a comment is possible only in the user's own files.
            None if by.is_none() => {
                failure.hint(format!("to leave it remote, write above it: {}", Comments::of_rule(rule)))
            }
            exception => Failure { exception, ..failure },
        }
    }

    /// Whether a lock has an upstream, or an older lock had it.
    fn was_locked<T>(&self, locked: impl Fn(&Rc<Lock>) -> Option<T>) -> bool {
        self.locks.iter().chain(&self.options.before).any(|lock| locked(lock).is_some())
    }

    /// Fetches the content of references, in as few rounds as possible. Returns one answer for each, in their order.
    fn fetch_references(&mut self, wanted: &[Rc<RemoteRef>]) -> Vec<Result<RemoteContent>> {
        // The user's own URLs may point anywhere, and get the user's logins.
        for reference in wanted.iter().filter(|reference| reference.by.is_none()) {
            self.network.reach.add_user_url(reference.text.exposed());
            if let Some(spec) = &reference.spec {
                self.network.reach.add_user_url(spec.clone_spec().exposed());
            }
        }
        let keys: Vec<Vec<ContentKey>> = wanted.iter().map(|reference| self.candidate_keys(reference)).collect();
        // First every first key in parallel, then the second keys that are still needed. No reference has a third one.
        for _ in 0..2 {
            let references = wanted.iter().zip(&keys);
            let next = references.filter_map(|(reference, keys)| {
                let timeout = reference.spec.as_ref().and_then(|spec| spec.timeout);
                Some((self.answer(reference, keys).err()?, timeout))
            });
            self.fetch(next.collect::<Vec<_>>());
        }
        let answers = wanted.iter().zip(&keys).map(|(reference, keys)| {
            let answer = self.answer(reference, keys);
            // Every key has a result after two rounds, so this failure is not expected.
            answer.unwrap_or_else(|key| Err(Failure::new(format!("{} was not fetched", key.upstream()))))
        });
        answers.collect()
    }
}

impl Remotes for Fetcher {
    /// Refuses content that lacks what `policy` demands. With `is_lifted`, it may be younger than `min-age`.
    fn trust(&self, upstream: &Upstream, policy: &SourcePolicy, is_lifted: bool) -> Result<()> {
        self.trusted(upstream, policy, is_lifted)
    }

    /// Pulls charts, as the trait says. If the user's files name a chart, and no upstream, its repository gets the
    /// user's logins.
    fn charts(&mut self, wanted: &[(ChartRef, Option<String>)]) -> Vec<Result<Option<Rc<Archive>>>> {
        for (chart, _) in wanted.iter().filter(|(_, by)| by.is_none()) {
            self.network.reach.add_user_url(chart.repo.exposed());
        }
        self.fetch(wanted.iter().map(|(chart, _)| (ContentKey::Chart(chart.clone()), None)));
        let answers = wanted.iter().map(|(chart, by)| match self.known.get(&ContentKey::Chart(chart.clone())) {
            Some(Ok(RemoteContent::Chart(pulled))) => Ok(pulled.clone()),
            Some(Err(failure)) => {
                let was_locked = self.was_locked(|lock| chart.locked(lock).map(drop));
                Err(self.with_way_out(failure.clone(), &chart.upstream(), by.as_deref(), was_locked))
            }
            // `fetch` gives each key a result, and that of a chart is a chart.
            _ => Err(Failure::new("the chart was not pulled")),
        });
        answers.collect()
    }

    /// Fetches files that the walk or a build will read, with one request per repository instead of one per file. For a
    /// directory, its licenses are fetched.
    fn prefetch(&mut self, files: &[(Rc<RemoteCommit>, String)]) {
        self.network.fetch_missing(|missing| {
            for (repository, path) in files {
                // A repository of a tip is not among the opened ones: its localized files are on this machine, and the
                // few others are fetched when they are read.
                let Some((tree, _)) = self.opened.get(&repository.version) else { continue };
                match tree.entry(path) {
                    Ok(Some(Entry::Directory)) => {
                        // An error is reported when the licenses are read.
                        let licenses = license::paths(&**tree, path).unwrap_or_default();
                        licenses.iter().for_each(|path| tree.want(path, missing));
                    }
                    _ => tree.want(path, missing),
                }
            }
        });
    }

    /// Fetches the content of references, and adds to each failure how the reference can stay remote.
    fn resolve(&mut self, wanted: &[Rc<RemoteRef>]) -> Vec<Result<RemoteContent>> {
        let answers = self.fetch_references(wanted);
        let with_hints = wanted.iter().zip(answers).map(|(reference, answer)| {
            answer.map_err(|failure| {
                let was_locked = self.was_locked(|lock| reference.locked(lock).map(drop));
                self.with_way_out(failure, &reference.meant(), reference.by.as_deref(), was_locked)
            })
        });
        with_hints.collect()
    }
}

/// Refuses a repository that cannot be what the text of a reference means.
fn refuse_repository(wanted: &RemoteRef, spec: &RepoSpec) -> Result<()> {
    let shown = wanted.text.shown();
    // kustomize ignores such a query and builds HEAD, which is probably not the ref that was meant.
    if spec.query_dropped {
        let message = format!("{shown}: the query cannot be parsed, so kustomize builds HEAD");
        return Err(Failure::new(message).hint(reference::PLAIN_QUERY));
    }
    // The walk lets such a text pass only if it looks like a file. It cannot be a repository instead, which counts as
    // if a server had said so.
    reference::refuse_unsafe(wanted.text.exposed(), Some(spec)).map_err(|why| {
        let failure = Failure::new(format!("`{shown}` is refused: {why}"));
        failure.hint(HINT_REWRITE).because(FailureKind::NoRepository)
    })
}

/// Refuses a file that cannot be what a reference means: a page for people, or, if the field takes a root too, a file
/// without objects.
fn refuse_file(wanted: &RemoteRef, file: &RemoteFile) -> Result<()> {
    if !wanted.is_page && kustomization::looks_like_html(&file.bytes) {
        return Err(page(&file.url));
    }
    if wanted.wants != ExpectedContent::Either {
        return Ok(());
    }
    let why = match kustomization::count_objects(&file.bytes) {
        Ok(0) => "without any object".to_owned(),
        Ok(_) => return Ok(()),
        Err(why) => why,
    };
    Err(Failure::new(format!("{} does not contain resources: {why}", wanted.text.shown())))
}

/// The result for a URL that is not a usable file, and as a repository has the result `root`, which is not usable
/// either: the one that says more.
fn neither_file_nor_root(file: Result<RemoteContent>, root: Result<RemoteContent>) -> Result<RemoteContent> {
    // A repository may exist although it does not answer, or exists, but lacks the ref or the directory: this says more
    // than that the URL is not a file.
    let says_all = |failure: &Failure| failure.kind.is_outage() || failure.kind == FailureKind::NotInRepository;
    match (file, root) {
        (Err(mut failure), Err(other)) if !says_all(&other) => {
            failure.message = format!("{}; as a git repository: {}", failure.message, other.message);
            failure.hints.extend(other.hints);
            // It is gone only if both answers say so.
            if failure.kind.is_gone() {
                failure.kind = other.kind;
            }
            Err(failure)
        }
        (_, root) => root,
    }
}

/// Whether a result is what the reference can mean, so that its second key need not be tried. A directory that cannot
/// be looked up counts: the walk looks it up again, and reports the error.
fn is_usable(outcome: &Result<RemoteContent>, wanted: &RemoteRef) -> bool {
    // The URL of a repository that lacks the directory may still be that of a file.
    match (outcome, &wanted.spec) {
        (Ok(RemoteContent::Root(repository)), Some(spec)) => {
            let directory = tree::resolve(&*repository.tree, &spec.directory());
            !matches!(directory, Ok(Resolved::Missing { .. } | Resolved::File { .. }))
        }
        (outcome, _) => outcome.is_ok(),
    }
}

/// The failure of content that only the network has, which this run must not use.
fn not_cached(label: impl Display) -> Failure {
    Failure::new(format!("{label} is not in the cache")).hint(HINT_RUN_ONLINE)
}

/// The failure of a URL that serves a page for people.
fn page(url: &SafeUrl) -> Failure {
    Failure::new(format!("{} is an HTML page, not a file that a build can read", url.shown()))
        .hint("use the URL of the raw file; if it is a login page, the server requires credentials")
}

/// The digest of downloaded bytes. Fails if the lock has another one.
fn unchanged_digest(job: &FetchJob, bytes: &[u8]) -> Result<String> {
    let sha256 = sha256_hex(bytes);
    let Some(locked) = job.locked_id.as_ref().filter(|locked| **locked != sha256) else { return Ok(sha256) };
    let label = job.key.upstream();
    let message = format!("{label} has changed since it was locked: expected sha256 {locked}, found {sha256}");
    Err(Failure::new(message).hint(HINT_RELOCK))
}

/// The content of a downloaded file.
fn remote_file(url: &SafeUrl, bytes: Vec<u8>) -> RemoteContent {
    RemoteContent::File(Rc::new(RemoteFile { url: url.clone(), sha256: sha256_hex(&bytes), bytes: bytes.into() }))
}

/// The content of a pulled chart.
fn archived(archive: Archive) -> RemoteContent {
    RemoteContent::Chart(Some(Rc::new(archive)))
}
