//! Bringing in what remote references name: the only room that reaches the network.
//!
//! Every repository and ref, and every URL, is fetched once per run; what is found at one depth of
//! the walk is fetched side by side. A lock decides before the network does: a locked reference is
//! not resolved again, and its bytes come from the branch's tip or the cache where they can.

mod cache;
mod checkout;
mod git;
pub mod http;
mod progress;
mod submodule;
mod tip;

pub use cache::Cache;
pub use git::{FetchFailure, Fetched, GitRemotes, Wish};
pub use progress::Progress;
pub use tip::Tip;

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::io::IsTerminal;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::failure::{Failure, Result};
use crate::git::Foreign;
use crate::kustomization;
use crate::process::Terminal;
use crate::record::{Lock, Remote, sha256_hex};
use crate::redact;
use crate::reference::{self, Pin, RepoSpec};
use crate::tree::SharedTree;
use crate::walk::{Found, RemoteFile, Remotes, Repository, Wanted, Wants};

use checkout::CheckoutTree;
use tip::TipTree;

/// How long one fetch may take when neither the user nor the URL says.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);
/// The largest file that is downloaded.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// How many things are fetched side by side.
const SIDE_BY_SIDE: usize = 8;

/// What changes how remote references are brought in.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How long one fetch may take; none: as the URL says, else [`DEFAULT_TIMEOUT`].
    pub timeout: Option<Duration>,
    /// Accept remote roots without a ref.
    pub pin: bool,
    /// Fail where something would have to be resolved that no lock holds.
    pub locked: bool,
    /// Use only what locks, tip and cache hold.
    pub offline: bool,
    /// Show no progress.
    pub quiet: bool,
}

/// Brings in what remote references name, each once.
pub struct Fetcher {
    git: Rc<GitRemotes>,
    cache: Cache,
    foreign: Foreign,
    client: OnceCell<http::Client>,
    options: Options,
    /// In the order in which they decide: the source's own lock, then the tip's.
    locks: Vec<Rc<Lock>>,
    tip: Option<Tip>,
    files: HashMap<String, Result<Rc<RemoteFile>>>,
    repositories: HashMap<Key, Result<Rc<Repository>>>,
    progress: Progress,
}

/// What makes one fetched repository differ from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    url: String,
    reference: Option<String>,
    submodules: bool,
}

impl Key {
    fn of(spec: &RepoSpec) -> Key {
        Key {
            url: spec.clone_spec(),
            reference: spec.reference.clone(),
            submodules: spec.submodules,
        }
    }
}

/// Something to fetch, and what came of it.
enum Job {
    Git {
        key: Key,
        wish: Wish,
        timeout: Option<Duration>,
        /// Stop when this URL turns out to be a file.
        unless: Option<String>,
    },
    Http {
        url: String,
    },
}

enum Done {
    Git(Result<Fetched, FetchFailure>),
    Http(Result<Vec<u8>, http::HttpError>),
}

/// What a wanted reference waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Only the file will do.
    File,
    /// Only the repository will do.
    Root,
    /// The file if the answer is one, else the repository.
    FileFirst,
    /// The repository, and if there is none the file.
    RootFirst,
}

impl Fetcher {
    /// Sets up fetching. Nothing is fetched, and no client is made, before something is asked for.
    #[must_use]
    pub fn new(
        foreign: Foreign,
        cache: Cache,
        options: Options,
        locks: Vec<Rc<Lock>>,
        tip: Option<Tip>,
    ) -> Self {
        let timeout = options.timeout.unwrap_or(DEFAULT_TIMEOUT);
        Fetcher {
            git: Rc::new(GitRemotes::new(
                foreign.clone(),
                cache.clone(),
                timeout,
                options.offline,
            )),
            cache,
            foreign,
            client: OnceCell::new(),
            progress: Progress::new(options.quiet),
            options,
            locks,
            tip,
            files: HashMap::new(),
            repositories: HashMap::new(),
        }
    }

    /// Brings in one repository: a remote target.
    ///
    /// # Errors
    /// As the walk's remote references.
    pub fn repository(&mut self, spec: &RepoSpec) -> Result<Rc<Repository>> {
        let wanted = Wanted {
            text: spec.clone_spec(),
            wants: Wants::Root,
            spec: Some(spec.clone()),
        };
        match self.resolve(&[wanted]).pop() {
            Some(Ok(Found::Root(repository))) => Ok(repository),
            Some(Err(failure)) => Err(failure),
            _ => Err(Failure::new("the target was not resolved")),
        }
    }

    fn client(&self) -> Result<&http::Client> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let foreign = self.foreign.clone();
        let client = http::Client::new(
            http::Options {
                deadline: self.options.timeout.unwrap_or(DEFAULT_TIMEOUT),
                max_bytes: MAX_BYTES,
                ..http::Options::default()
            },
            Box::new(move |url| foreign.credentials(url)),
        )?;
        Ok(self.client.get_or_init(|| client))
    }

    fn locked_commit(&self, key: &Key) -> Option<String> {
        let url = redact::url(&key.url);
        self.locks
            .iter()
            .find_map(|lock| lock.find_git(&url, key.reference.as_deref(), key.submodules))
            .map(|entry| entry.commit.clone())
    }

    fn locked_file(&self, url: &str) -> Option<String> {
        let shown = redact::url(url);
        self.locks
            .iter()
            .find_map(|lock| lock.find_file(&shown))
            .map(|entry| entry.sha256.clone())
    }

    /// Decides what a wanted reference waits for.
    fn order(&self, wanted: &Wanted) -> Order {
        match (wanted.wants, &wanted.spec) {
            (Wants::File, _) | (_, None) => Order::File,
            (Wants::Root, _) => Order::Root,
            (Wants::Either, Some(spec)) => {
                if !reference::is_remote_file(&wanted.text) {
                    Order::Root
                } else if self.locked_file(&wanted.text).is_some() {
                    Order::File
                } else if self.locked_commit(&Key::of(spec)).is_some() {
                    Order::Root
                } else if reference::has_git_marker(&wanted.text)
                    && (spec.reference.is_some() || self.options.pin)
                {
                    Order::RootFirst
                } else {
                    Order::FileFirst
                }
            }
        }
    }

    /// Refuses what must not be resolved before anything is started for it.
    fn refuse(&self, spec: &RepoSpec) -> Result<()> {
        let key = Key::of(spec);
        let locked = self.locked_commit(&key).is_some();
        let shown = redact::url(&key.url);
        if key.reference.is_none() && !self.options.pin && !locked {
            let failure = Failure::new(match spec.query_dropped {
                true => format!("{shown}: the query cannot be parsed, so kustomize builds HEAD"),
                false => format!("{shown} is named without a ref"),
            });
            return Err(match self.head(&key) {
                Some(commit) => failure.hint(format!("what it is now: add `?ref={commit}`")),
                None => failure.hint("say which version: add `?ref=TAG-OR-COMMIT`"),
            }
            .hint("or take what HEAD is now, and record it: `--pin`"));
        }
        let fixed = Pin::of(key.reference.as_deref()) == Pin::Commit;
        if !locked && self.options.locked {
            return Err(Failure::new(format!(
                "{shown} at `{}` is not in the lock",
                key.reference.as_deref().unwrap_or("HEAD")
            ))
            .hint("run once without `--locked`"));
        }
        if !locked && !fixed && self.options.offline {
            return Err(Failure::new(format!(
                "{shown}: which commit `{}` is cannot be told offline",
                key.reference.as_deref().unwrap_or("HEAD")
            ))
            .hint("run once without `--offline`"));
        }
        Ok(())
    }

    /// Returns what HEAD of a repository is now, for a hint. Asked briefly, and only when online.
    fn head(&self, key: &Key) -> Option<String> {
        if self.options.offline {
            return None;
        }
        let wish = Wish {
            url: key.url.clone(),
            reference: None,
            commit: None,
            by_repository: false,
        };
        let limits = crate::process::Limits {
            timeout: Some(Duration::from_secs(20)),
            cancel: None,
        };
        self.git.resolve(&wish, limits, Terminal::Detached).ok()
    }

    fn job(&self, spec: &RepoSpec, unless: Option<String>) -> Job {
        let key = Key::of(spec);
        let fixed = key
            .reference
            .clone()
            .filter(|reference| Pin::of(Some(reference)) == Pin::Commit);
        Job::Git {
            wish: Wish {
                url: key.url.clone(),
                reference: key.reference.clone(),
                commit: self.locked_commit(&key).or(fixed),
                by_repository: false,
            },
            key,
            timeout: self.options.timeout.or(spec.timeout),
            unless,
        }
    }

    /// Takes from tip and cache what needs no network; returns the job if something is left to do.
    fn without_network(&mut self, job: Job) -> Option<Job> {
        match &job {
            Job::Git { key, wish, .. } => {
                if self.repositories.contains_key(key) {
                    return None;
                }
                if let Some(repository) = self.held_by_tip(key, wish) {
                    self.repositories.insert(key.clone(), Ok(repository));
                    return None;
                }
                if let Some(fetched) = self.git.cached(wish) {
                    let opened = self.open(key, &fetched);
                    self.repositories.insert(key.clone(), opened);
                    return None;
                }
                Some(job)
            }
            Job::Http { url } => {
                if self.files.contains_key(url) {
                    return None;
                }
                if let Some(sha256) = self.locked_file(url) {
                    let label = redact::url(url);
                    let bytes = self
                        .tip
                        .as_ref()
                        .and_then(|tip| tip.file(&label, &sha256))
                        .or_else(|| self.cache.file(&sha256));
                    if let Some(bytes) = bytes {
                        let url = url.clone();
                        self.files.insert(url.clone(), Ok(remote_file(url, bytes)));
                        return None;
                    }
                } else if self.options.locked {
                    let failure = Failure::new(format!("{} is not in the lock", redact::url(url)))
                        .hint("run once without `--locked`");
                    self.files.insert(url.clone(), Err(failure));
                    return None;
                }
                if self.options.offline {
                    let failure = Failure::new(format!("{} is not in the cache", redact::url(url)))
                        .hint("run once without `--offline`");
                    self.files.insert(url.clone(), Err(failure));
                    return None;
                }
                Some(job)
            }
        }
    }

    fn held_by_tip(&self, key: &Key, wish: &Wish) -> Option<Rc<Repository>> {
        let tip = self.tip.as_ref()?;
        let url = redact::url(&key.url);
        let entry = tip
            .lock
            .find_git(&url, key.reference.as_deref(), key.submodules)?;
        // The source's own lock may name another commit than the tip was made from.
        if wish.commit.as_ref() != Some(&entry.commit) {
            return None;
        }
        let label = label(key);
        let files = tip.repository(&Remote::Git(entry.clone()).label())?;
        let (git, again, shown) = (self.git.clone(), wish.clone(), label.clone());
        let (timeout, submodules) = (self.options.timeout, key.submodules);
        let fallback = Box::new(move || -> Result<SharedTree> {
            let fetched = git
                .fetch(&again, timeout, None, Terminal::Detached)
                .map_err(|failure| failure.failure)?;
            let url = submodules.then(|| again.url.clone());
            let tree =
                CheckoutTree::open(&git, fetched.directory, &fetched.commit, shown.clone(), url)?;
            Ok(Rc::new(tree))
        });
        Some(Rc::new(Repository {
            tree: Rc::new(TipTree::new(tip.clone(), files, label, fallback)),
            url,
            reference: key.reference.clone(),
            submodules: key.submodules,
            commit: entry.commit.clone(),
        }))
    }

    fn open(&self, key: &Key, fetched: &Fetched) -> Result<Rc<Repository>> {
        let tree = CheckoutTree::open(
            &self.git,
            fetched.directory.clone(),
            &fetched.commit,
            label(key),
            key.submodules.then(|| key.url.clone()),
        )?;
        Ok(Rc::new(Repository {
            tree: Rc::new(tree),
            url: redact::url(&key.url),
            reference: key.reference.clone(),
            submodules: key.submodules,
            commit: fetched.commit.clone(),
        }))
    }

    /// Runs the jobs side by side and keeps what they bring.
    fn run(&mut self, mut jobs: Vec<Job>) -> Result<()> {
        // The same repository may be a guess for one reference and certain for another.
        jobs.sort_by_key(|job| {
            matches!(
                job,
                Job::Git {
                    unless: Some(_),
                    ..
                }
            )
        });
        let mut seen_git = HashSet::new();
        let mut seen_http = HashSet::new();
        let jobs: Vec<Job> = jobs
            .into_iter()
            .filter(|job| match job {
                Job::Git { key, .. } => seen_git.insert(key.clone()),
                Job::Http { url } => seen_http.insert(url.clone()),
            })
            .collect();
        let jobs: Vec<Job> = jobs
            .into_iter()
            .filter_map(|job| self.without_network(job))
            .collect();
        if jobs.is_empty() {
            return Ok(());
        }
        let client = match jobs.iter().any(|job| matches!(job, Job::Http { .. })) {
            true => Some(self.client()?),
            false => None,
        };
        let answers = work(&jobs, &self.git, client, &self.progress);
        for (job, answer) in jobs.into_iter().zip(answers) {
            match (job, answer) {
                (
                    Job::Git {
                        key, wish, timeout, ..
                    },
                    Some(Done::Git(answer)),
                ) => {
                    let answer = match answer {
                        Err(failure) if failure.unauthorized => self.ask(&wish, timeout, failure),
                        answer => answer,
                    };
                    let opened = answer
                        .map_err(|failure| failure.failure)
                        .and_then(|fetched| self.open(&key, &fetched));
                    self.repositories.insert(key, opened);
                }
                (Job::Http { url }, Some(Done::Http(answer))) => {
                    let file = self.received(&url, answer);
                    self.files.insert(url, file);
                }
                // A fetch that was given up because its URL turned out to be a file.
                _ => {}
            }
        }
        Ok(())
    }

    /// Fetches once more, alone and with the terminal, so that git can ask for a password.
    fn ask(
        &self,
        wish: &Wish,
        timeout: Option<Duration>,
        failure: FetchFailure,
    ) -> Result<Fetched, FetchFailure> {
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Err(failure);
        }
        self.progress
            .suspend(|| self.git.fetch(wish, timeout, None, Terminal::Shared))
    }

    fn received(
        &self,
        url: &str,
        answer: Result<Vec<u8>, http::HttpError>,
    ) -> Result<Rc<RemoteFile>> {
        let bytes = answer.map_err(|error| error.into_failure(url))?;
        if kustomization::looks_like_html(&bytes) {
            return Err(Failure::new(format!(
                "{} is an HTML page, not a file that a build can read",
                redact::url(url)
            ))
            .hint(
                "use the URL of the raw file; a page may also be a login that wants credentials",
            ));
        }
        let file = remote_file(url.to_owned(), bytes);
        if let Some(sha256) = self.locked_file(url)
            && sha256 != file.sha256
        {
            return Err(Failure::new(format!(
                "{} has changed since it was locked: sha256 {} instead of {sha256}",
                redact::url(url),
                file.sha256
            ))
            .hint(git::RELOCK));
        }
        self.cache.keep_file(&file.bytes, &file.sha256)?;
        Ok(file)
    }

    fn answer(&self, wanted: &Wanted, order: Order) -> Option<Result<Found>> {
        let file = || self.files.get(&wanted.text);
        let root = || {
            wanted
                .spec
                .as_ref()
                .and_then(|spec| self.repositories.get(&Key::of(spec)))
        };
        let found_file = |file: &Result<Rc<RemoteFile>>| file.clone().map(Found::File);
        let found_root = |root: &Result<Rc<Repository>>| root.clone().map(Found::Root);
        match order {
            Order::File => file().map(found_file),
            Order::Root => root().map(found_root),
            Order::FileFirst | Order::RootFirst => {
                let file = file().map(|file| match file {
                    Ok(file) => kustomization::looks_like_resources(&file.bytes)
                        .map(|()| file.clone())
                        .map_err(|what| {
                            Failure::new(format!(
                                "{} does not hold resources: {what}",
                                redact::url(&wanted.text)
                            ))
                        }),
                    Err(failure) => Err(failure.clone()),
                });
                match (order, file, root()) {
                    (Order::FileFirst, Some(Ok(file)), _) | (_, Some(Ok(file)), Some(Err(_))) => {
                        Some(Ok(Found::File(file)))
                    }
                    (Order::RootFirst, _, Some(Ok(root))) | (_, Some(Err(_)), Some(Ok(root))) => {
                        Some(Ok(Found::Root(root.clone())))
                    }
                    (_, Some(Err(file)), Some(Err(root))) => {
                        let mut failure = file;
                        failure.message =
                            format!("{}; as a git repository: {}", failure.message, root.message);
                        failure.hints.extend(root.hints.clone());
                        failure.hints.dedup();
                        Some(Err(failure))
                    }
                    _ => None,
                }
            }
        }
    }
}

impl Remotes for Fetcher {
    fn resolve(&mut self, wanted: &[Wanted]) -> Vec<Result<Found>> {
        let orders: Vec<Order> = wanted.iter().map(|one| self.order(one)).collect();
        let mut refused: HashMap<usize, Failure> = HashMap::new();
        let mut first = Vec::new();
        for (index, (one, order)) in wanted.iter().zip(&orders).enumerate() {
            let http = Job::Http {
                url: one.text.clone(),
            };
            let spec = one.spec.as_ref();
            match order {
                Order::File => first.push(http),
                Order::Root | Order::RootFirst => {
                    let Some(spec) = spec else { continue };
                    match self.refuse(spec) {
                        Ok(()) => first.push(self.job(spec, None)),
                        Err(failure) => {
                            refused.insert(index, failure);
                        }
                    }
                }
                Order::FileFirst => {
                    first.push(http);
                    // Beside the GET, unless everything says that this is a file.
                    if let Some(spec) = spec
                        && !looks_like_file(&one.text)
                        && (spec.reference.is_some() || self.options.pin)
                        && self.refuse(spec).is_ok()
                    {
                        first.push(self.job(spec, Some(one.text.clone())));
                    }
                }
            }
        }
        let mut failed = self.run(first).err();
        // What the first round left open: a URL that is no file after all, or no repository.
        let mut second = Vec::new();
        for (index, (one, order)) in wanted.iter().zip(&orders).enumerate() {
            if refused.contains_key(&index) || self.answer(one, *order).is_some() {
                continue;
            }
            match (order, &one.spec) {
                (Order::FileFirst, Some(spec)) => match self.refuse(spec) {
                    Ok(()) => second.push(self.job(spec, None)),
                    Err(failure) => {
                        // Without a ref it can only have been meant as a file, or be unfinished.
                        let file = self
                            .files
                            .get(&one.text)
                            .and_then(|file| file.as_ref().err());
                        let failure = match file {
                            Some(file) => {
                                let mut both = file.clone();
                                both.message = format!(
                                    "{}; as a git repository: {}",
                                    both.message, failure.message
                                );
                                both.hints.extend(failure.hints);
                                both
                            }
                            None => failure,
                        };
                        refused.insert(index, failure);
                    }
                },
                (Order::RootFirst, _) => second.push(Job::Http {
                    url: one.text.clone(),
                }),
                _ => {}
            }
        }
        failed = failed.or(self.run(second).err());
        self.progress.clear();
        wanted
            .iter()
            .zip(&orders)
            .enumerate()
            .map(|(index, (one, order))| match refused.remove(&index) {
                Some(failure) => Err(failure),
                None => self.answer(one, *order).unwrap_or_else(|| {
                    Err(failed.clone().unwrap_or_else(|| {
                        Failure::new(format!("{} was not fetched", redact::url(&one.text)))
                    }))
                }),
            })
            .collect()
    }
}

/// Runs the jobs on a few threads; `None` for one that was given up.
fn work(
    jobs: &[Job],
    git: &GitRemotes,
    client: Option<&http::Client>,
    progress: &Progress,
) -> Vec<Option<Done>> {
    let next = AtomicUsize::new(0);
    let answers: Vec<Mutex<Option<Done>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let given_up: Vec<AtomicBool> = jobs.iter().map(|_| AtomicBool::new(false)).collect();
    let never = AtomicBool::new(false);
    progress.expect(jobs.len());
    let one = |index: usize| {
        let what = match &jobs[index] {
            Job::Git { key, .. } => label(key),
            Job::Http { url } => redact::url(url),
        };
        progress.begin(&what);
        let done = match &jobs[index] {
            Job::Git { wish, timeout, .. } => Some(Done::Git(git.fetch(
                wish,
                *timeout,
                Some(&given_up[index]),
                Terminal::Detached,
            ))),
            Job::Http { url } => {
                client.map(|client| Done::Http(client.get(url, &never).map(|body| body.bytes)))
            }
        };
        if let (Job::Http { url }, Some(Done::Http(Ok(bytes)))) = (&jobs[index], &done)
            && kustomization::looks_like_resources(bytes).is_ok()
        {
            for (other, flag) in jobs.iter().zip(&given_up) {
                if matches!(other, Job::Git { unless: Some(unless), .. } if unless == url) {
                    flag.store(true, Ordering::Relaxed);
                }
            }
        }
        progress.end(&what);
        let done = done.filter(|_| !given_up[index].load(Ordering::Relaxed));
        *answers[index]
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = done;
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.len().min(SIDE_BY_SIDE) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= jobs.len() {
                        break;
                    }
                    one(index);
                }
            });
        }
    });
    answers
        .into_iter()
        .map(|answer| {
            answer
                .into_inner()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
        })
        .collect()
}

fn remote_file(url: String, bytes: Vec<u8>) -> Rc<RemoteFile> {
    Rc::new(RemoteFile {
        url,
        sha256: sha256_hex(&bytes),
        bytes: bytes.into(),
    })
}

/// How a repository at a ref is shown: its URL without secrets, and the ref.
fn label(key: &Key) -> String {
    let url = redact::url(&key.url);
    match &key.reference {
        Some(reference) => format!("{url}?ref={reference}"),
        None => url,
    }
}

/// Says whether the URL's path ends like a file that a build reads.
fn looks_like_file(url: &str) -> bool {
    let path = url
        .split(['?', '#'])
        .next()
        .unwrap_or(url)
        .to_ascii_lowercase();
    [".yaml", ".yml", ".json"]
        .iter()
        .any(|ending| path.ends_with(ending))
}
