//! Bringing in what remote references name: the only room that reaches the network.
//!
//! Every repository and ref, and every URL, is fetched once per run; what is found at one depth of
//! the walk is fetched side by side. Of a commit come first its trees and small files; a survey of the roots in it then
//! tells which others are needed, and those come together. A lock decides before the network does: a locked reference is
//! not resolved again, and its bytes come from the branch's tip or the cache where they can.

mod ahead;
mod budget;
mod cache;
mod checkout;
mod git;
pub(crate) mod helm;
mod history;
pub(crate) mod http;
mod progress;
mod published;
mod reach;
mod submodule;
mod survey;
mod tip;
mod upstream;
mod work;

pub(crate) use budget::MAX_FILE_SIZE;
pub(crate) use cache::Cache;
pub(crate) use git::{Fetched, GitRemotes, GitRequest};
pub(crate) use history::{Course, History, Move};
pub(crate) use progress::Progress;
pub(crate) use published::Published;
pub(crate) use tip::Tip;
pub(crate) use upstream::Upstream;

use std::collections::{HashMap, HashSet};
use std::io::IsTerminal;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::config::Config;
use crate::git::RemoteGit;
use crate::graph::{ChartRef, Found, NamedBy, Pulled, RemoteFile, RemoteRef, Remotes, Repository, Wants};
use crate::kustomization;
use crate::message::failure::{Failure, FailureKind, Result, command};
use crate::message::finding::Rule;
use crate::message::redact::{self, SafeUrl};
use crate::os::process::Terminal;
use crate::record::{Lock, Remote, sha256_hex};
use crate::reference::{self, Pin, RepoRef, RepoSpec};
use crate::tree::{self, Resolved, SharedTree};

use budget::Budget;
use checkout::CheckoutTree;
use reach::Reach;
use tip::TipTree;
use work::{Done, Git, Job, label, work};

/// How long one fetch may take where the URL does not say.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

/// What to do where a commit is localized whose lock lacks something.
const COMMIT_LOCK: &str =
    "lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock && git commit";

/// What changes how remote references are brought in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// The largest file that is taken, in bytes; none: [`MAX_FILE_SIZE`].
    pub max_file_size: Option<u64>,
    /// Fetch what an upstream names also where it lies further inwards than that upstream.
    pub allow_private: bool,
    /// A lock that decides nothing: what it holds was there once.
    pub before: Option<Rc<Lock>>,
    /// Refuse what no lock holds: nothing is resolved.
    pub locked: bool,
    /// Use only what locks, tip and cache hold.
    pub offline: bool,
    /// Pull charts with the user's helm.
    pub helm: bool,
    /// Show no progress.
    pub quiet: bool,
}

/// Brings in what remote references name, each once.
pub(crate) struct Fetcher {
    git: Rc<GitRemotes>,
    budget: Budget,
    cache: Cache,
    client: Arc<http::Client>,
    reach: Arc<Reach>,
    /// Whose files name each URL that was requested.
    named_by: HashMap<SafeUrl, NamedBy>,
    options: Options,
    /// In the order in which they decide: that of the repository, then that of NEW_DIR.
    locks: Vec<Rc<Lock>>,
    tip: Option<Tip>,
    files: HashMap<SafeUrl, Result<Rc<RemoteFile>>>,
    repositories: HashMap<RepoRef, Result<Rc<Repository>>>,
    /// Those of them whose files are taken from the cache.
    checkouts: HashMap<RepoRef, Rc<CheckoutTree>>,
    charts: HashMap<ChartRef, Result<Pulled>>,
    progress: Progress,
}

/// Sets up HTTP with the user's credentials. One file may take as long as `timeout`, and be as large as `budget`
/// allows.
fn client(remote_git: &RemoteGit, timeout: Duration, budget: &Budget, reach: &Arc<Reach>) -> Result<Arc<http::Client>> {
    let asked = remote_git.clone();
    let client = http::Client::new(
        http::Options { deadline: timeout, max_bytes: budget.largest(), ..http::Options::default() },
        Box::new(move |url| asked.credentials(url)),
        reach.clone(),
    );
    client.map(Arc::new)
}

/// A way to bring in what is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// With a GET.
    File,
    /// With git.
    Root,
}

impl Fetcher {
    /// Sets up fetching. Nothing is read or fetched before something is requested.
    pub(crate) fn new(
        remote_git: RemoteGit,
        cache: Cache,
        options: Options,
        locks: Vec<Rc<Lock>>,
        tip: Option<Tip>,
    ) -> Result<Self> {
        let budget = Budget::new(options.max_file_size.unwrap_or(MAX_FILE_SIZE));
        let reach = Arc::new(Reach::new(remote_git.clone(), options.allow_private));
        let client = client(&remote_git, DEFAULT_TIMEOUT, &budget, &reach)?;
        Ok(Fetcher {
            git: Rc::new(GitRemotes::new(
                remote_git,
                cache.clone(),
                DEFAULT_TIMEOUT,
                options.offline,
                budget.clone(),
                reach.clone(),
                client.clone(),
            )),
            budget,
            reach,
            named_by: HashMap::new(),
            cache,
            client,
            progress: Progress::new("fetching", options.quiet),
            options,
            locks,
            tip,
            files: HashMap::new(),
            repositories: HashMap::new(),
            checkouts: HashMap::new(),
            charts: HashMap::new(),
        })
    }

    /// Brings in one repository: a remote target.
    pub(crate) fn repository(&mut self, spec: &RepoSpec) -> Result<Rc<Repository>> {
        let wanted =
            RemoteRef { text: spec.clone_spec(), wants: Wants::Root, spec: Some(spec.clone()), by: NamedBy::User };
        match self.bring(&[wanted]).pop() {
            Some(Ok(Found::Root(repository))) => Ok(repository),
            Some(Err(failure)) => Err(failure),
            _ => Err(Failure::new("the target was not resolved")),
        }
    }

    /// Returns whether a ref (of a URL without secrets) was resolved in this run, and is a tag.
    pub(crate) fn is_tag(&self, url: &str, reference: &str) -> bool {
        self.git.is_tag(url, reference)
    }

    /// Returns whose files name a URL that was requested in this run.
    fn named_by(&self, url: &str) -> NamedBy {
        self.named_by.get(&SafeUrl::from(url)).cloned().unwrap_or(NamedBy::User)
    }

    fn locked_commit(&self, key: &RepoRef) -> Option<String> {
        let url = key.url.shown();
        self.locks
            .iter()
            .find_map(|lock| lock.find_git(&url, key.reference.as_deref(), key.submodules))
            .map(|entry| entry.commit.clone())
    }

    fn locked_file(&self, url: &str) -> Option<String> {
        let shown = redact::url(url);
        self.locks.iter().find_map(|lock| lock.find_file(&shown)).map(|entry| entry.sha256.clone())
    }

    /// Returns the ways to bring in what is wanted, in the order in which they decide.
    fn ways(&self, wanted: &RemoteRef) -> &'static [Way] {
        let text = wanted.text.exposed();
        match (wanted.wants, &wanted.spec) {
            (Wants::File, _) | (_, None) => &[Way::File],
            (Wants::Root, _) => &[Way::Root],
            (Wants::Either, Some(spec)) => {
                match self.locks.iter().find_map(|lock| wanted.locked(lock)) {
                    Some(Remote::File(_)) => &[Way::File],
                    Some(entry @ Remote::Git(_)) if wanted.unlocked_directory(entry).is_none() => &[Way::Root],
                    Some(Remote::Git(_)) => &[Way::Root, Way::File],
                    Some(Remote::Chart(_)) => &[Way::File, Way::Root],
                    None if reference::has_git_marker(text) => &[Way::Root, Way::File],
                    // It was not meant as a repository.
                    None if reference::looks_like_file(text) && spec.reference.is_none() => &[Way::File],
                    None => &[Way::File, Way::Root],
                }
            }
        }
    }

    /// Refuses what cannot be resolved.
    fn refuse(&self, key: &RepoRef) -> Result<()> {
        let reference = key.reference.as_deref();
        let shown = key.url.shown();
        let name = reference.unwrap_or("HEAD");
        if self.locked_commit(key).is_some() {
            return Ok(());
        }
        if self.options.offline && Pin::of(reference) != Pin::Commit {
            return Err(Failure::new(format!("{shown}: `{name}` cannot be resolved offline"))
                .hint("run once without `--offline`"));
        }
        Ok(())
    }

    /// Returns what is left to do for one way, once lock, tip and cache have been asked. With
    /// `beside` the repository is a guess: the GET of the same URL runs at the same time.
    fn job(&mut self, wanted: &RemoteRef, way: Way, beside: bool) -> Option<Job> {
        if way == Way::File {
            return self.without_network(Job::Http {
                url: wanted.text.clone(),
                access: self.reach.access(&wanted.by, wanted.text.exposed()),
            });
        }
        let spec = wanted.spec.as_ref().filter(|spec| !spec.query_dropped)?;
        let key = spec.repo_ref();
        let what = if beside { Git::Unless(wanted.text.clone()) } else { Git::Fetch };
        let locked = self.locked_commit(&key);
        if let Err(failure) = self.refuse(&key) {
            self.repositories.insert(key, Err(failure));
            return None;
        }
        let fixed = key
            .reference
            .as_ref()
            .filter(|reference| Pin::of(Some(reference)) == Pin::Commit)
            .map(|commit| commit.to_ascii_lowercase());
        let job = Job::Git {
            request: GitRequest {
                url: key.url.clone(),
                reference: key.reference.clone(),
                commit: locked.or(fixed),
                by: wanted.by.clone(),
                is_submodule: false,
            },
            key,
            timeout: spec.timeout,
            what,
        };
        self.without_network(job)
    }

    /// Takes from tip and cache what needs no network; returns the job if something is left to do.
    fn without_network(&mut self, job: Job) -> Option<Job> {
        match &job {
            Job::Git { key, request, timeout, .. } => {
                if self.repositories.contains_key(key) {
                    return None;
                }
                if let Some(repository) = self.held_by_tip(key, request, *timeout) {
                    self.repositories.insert(key.clone(), Ok(repository));
                    return None;
                }
                let opened = match self.git.cached(request, *timeout) {
                    Ok(None) => return Some(job),
                    Ok(Some(fetched)) => self.open(key, fetched),
                    Err(failure) => Err(failure),
                };
                self.repositories.insert(key.clone(), opened);
                None
            }
            Job::Http { url, .. } => {
                if self.files.contains_key(url) {
                    return None;
                }
                if let Some(sha256) = self.locked_file(url.exposed()) {
                    let label = url.shown();
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
                }
                if self.options.offline {
                    let failure = Failure::new(format!("{} is not in the cache", url.shown()))
                        .hint("run once without `--offline`");
                    self.files.insert(url.clone(), Err(failure));
                    return None;
                }
                Some(job)
            }
        }
    }

    fn held_by_tip(&self, key: &RepoRef, request: &GitRequest, timeout: Option<Duration>) -> Option<Rc<Repository>> {
        let tip = self.tip.as_ref()?;
        let url = key.url.shown();
        let entry = tip.lock.find_git(&url, key.reference.as_deref(), key.submodules)?;
        // The source's own lock may name another commit than the tip was made from.
        if request.commit.as_ref() != Some(&entry.commit) {
            return None;
        }
        let label = label(key);
        let files = tip.repository(&Remote::Git(entry.clone()).label())?;
        let (git, again, shown) = (self.git.clone(), request.clone(), label.clone());
        let submodules = key.submodules;
        let fallback = Box::new(move || -> Result<SharedTree> {
            let fetched = git.fetch(&again, timeout, None, Terminal::Detached)?;
            let tree = CheckoutTree::open(&git, fetched, shown.clone(), submodules)?;
            Ok(Rc::new(tree))
        });
        Some(Rc::new(Repository {
            tree: Rc::new(TipTree::new(tip.clone(), files, label, fallback)),
            version: key.clone(),
            commit: entry.commit.clone(),
        }))
    }

    fn open(&mut self, key: &RepoRef, fetched: Fetched) -> Result<Rc<Repository>> {
        let commit = fetched.commit.clone();
        let tree = CheckoutTree::open(&self.git, fetched, label(key), key.submodules)?;
        let tree = Rc::new(tree);
        self.checkouts.insert(key.clone(), tree.clone());
        Ok(Rc::new(Repository { tree, version: key.clone(), commit }))
    }

    /// Runs the jobs side by side and keeps what they bring.
    fn run(&mut self, mut jobs: Vec<Job>) {
        // The same repository may be a guess for one reference and certain for another.
        let is_guess = |job: &Job| matches!(job, Job::Git { what: Git::Unless(_), .. });
        jobs.sort_by_key(is_guess);
        let mut seen_git = HashSet::new();
        let mut seen_http = HashSet::new();
        jobs.retain(|job| match job {
            Job::Git { key, .. } => seen_git.insert(key.clone()),
            Job::Http { url, .. } => seen_http.insert(url.clone()),
        });
        if jobs.is_empty() {
            return;
        }
        let answers = work(&jobs, &self.git, &self.client, &self.progress);
        for (job, answer) in jobs.into_iter().zip(answers) {
            match (job, answer) {
                (Job::Git { key, request, timeout, .. }, Some(Done::Git(answer))) => {
                    let answer = match answer {
                        Err(failure) if failure.kind == FailureKind::Login => self.ask(&request, timeout, failure),
                        answer => answer,
                    };
                    let opened = answer.and_then(|fetched| self.open(&key, fetched));
                    self.repositories.insert(key, opened);
                }
                (Job::Http { url, .. }, Some(Done::Http(answer))) => {
                    let file = self.received(url.exposed(), answer);
                    self.files.insert(url, file);
                }
                // A guess that was given up: a caller that still needs it asks again.
                _ => {}
            }
        }
    }

    /// Fetches again, alone and with the terminal, so that git can ask for a password.
    fn ask(&self, request: &GitRequest, timeout: Option<Duration>, failure: Failure) -> Result<Fetched> {
        if !self.may_ask(request) {
            return Err(failure);
        }
        self.progress.suspend(|| self.git.fetch(request, timeout, None, Terminal::Shared))
    }

    fn may_ask(&self, request: &GitRequest) -> bool {
        let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        is_terminal && self.reach.access(&request.by, request.url.exposed()).named
    }

    fn received(&self, url: &str, answer: Result<Vec<u8>, http::HttpError>) -> Result<Rc<RemoteFile>> {
        let bytes = answer.map_err(|error| {
            let trouble = match error.kind {
                http::Kind::Deadline => FailureKind::NoAnswer,
                http::Kind::Dns => FailureKind::NoConnection,
                _ if error.is_transient() => FailureKind::NoConnection,
                _ => FailureKind::Other,
            };
            error.into_failure(url).because(trouble)
        })?;
        if kustomization::looks_like_html(&bytes) {
            return Err(Failure::new(format!(
                "{} is an HTML page, not a file that a build can read",
                redact::url(url)
            ))
            .hint("use the URL of the raw file; a page may also be a login that wants credentials"));
        }
        self.budget.take(bytes.len() as u64, || redact::url(url))?;
        let file = remote_file(url.into(), bytes);
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

    /// Returns the result of one way; `None` if it was not tried.
    fn outcome(&self, wanted: &RemoteRef, way: Way) -> Option<Result<Found>> {
        match way {
            Way::Root => {
                let spec = wanted.spec.as_ref()?;
                if spec.query_dropped {
                    let shown = wanted.text.shown();
                    let message = format!("{shown}: the query cannot be parsed, so kustomize builds HEAD");
                    return Some(Err(Failure::new(message).hint(reference::PLAIN_QUERY)));
                }
                let root = self.repositories.get(&spec.repo_ref())?;
                Some(root.clone().map(Found::Root))
            }
            Way::File => Some(self.files.get(&wanted.text)?.clone().and_then(|file| {
                // Where a root would do as well, what the file holds decides.
                if wanted.wants == Wants::Either
                    && let Err(what) = kustomization::looks_like_resources(&file.bytes)
                {
                    let shown = wanted.text.shown();
                    return Err(Failure::new(format!("{shown} does not hold resources: {what}")));
                }
                Ok(Found::File(file))
            })),
        }
    }

    /// Returns whether the result of one way makes the other ways needless: it is what is wanted, or
    /// they would fare no better.
    fn settles(&self, wanted: &RemoteRef, outcome: &Result<Found>) -> bool {
        match outcome {
            Ok(Found::File(_)) => true,
            // kustomize would take a file for which its server answers to git as well.
            Ok(Found::Root(repository)) => wanted.spec.as_ref().is_none_or(|spec| {
                let directory = tree::resolve(&*repository.tree, &spec.directory());
                !matches!(directory, Ok(Resolved::Missing { .. } | Resolved::File { .. }))
            }),
            Err(failure) => failure.kind == FailureKind::NoAnswer,
        }
    }

    fn answer(&self, wanted: &RemoteRef, ways: &[Way]) -> Result<Found> {
        let outcomes: Vec<_> = ways.iter().filter_map(|way| Some((*way, self.outcome(wanted, *way)?))).collect();
        let settled = outcomes.iter().find(|(_, outcome)| outcome.is_ok() && self.settles(wanted, outcome));
        if let Some((_, outcome)) = settled {
            return outcome.clone();
        }
        // An error in an existing repository says more than that it is not a file.
        let known = outcomes.iter().enumerate().find(|(index, (way, outcome))| {
            *way == Way::Root
                && match outcome {
                    Ok(_) => true,
                    // And so does what is wrong where a repository was meant.
                    Err(failure) => *index == 0 || failure.kind == FailureKind::NotInRepository,
                }
        });
        if let Some((_, (_, outcome))) = known {
            return outcome.clone();
        }
        let mut failures = outcomes.into_iter().filter_map(|(way, outcome)| Some((way, outcome.err()?)));
        let Some((_, first)) = failures.next() else {
            let shown = wanted.text.shown();
            return Err(Failure::new(format!("{shown} was not fetched")));
        };
        let mut failure = first;
        for (way, other) in failures {
            let as_what = match way {
                Way::File => "a file",
                Way::Root => "a git repository",
            };
            failure.message = format!("{}; as {as_what}: {}", failure.message, other.message);
            for hint in other.hints {
                if !failure.hints.contains(&hint) {
                    failure.hints.push(hint);
                }
            }
        }
        Err(failure)
    }

    /// Refuses what no lock holds, as `check` does.
    fn unlocked(&self, wanted: &RemoteRef) -> Option<Failure> {
        let locked = self.locks.iter().find_map(|lock| wanted.locked(lock));
        let failure = wanted.unlocked(locked)?;
        Some(match &wanted.by {
            _ if !failure.hints.is_empty() => failure,
            NamedBy::User => failure.hint(COMMIT_LOCK),
            // A lock that was made by hand, or merged: `lock` asks for no upstream that it holds.
            NamedBy::Upstream(urls) => failure.hint(command("git kustomize-localize update", urls)),
        })
    }

    /// Returns a failure with what else can be done about it.
    fn advised(&self, wanted: &RemoteRef, mut failure: Failure) -> Failure {
        let exception = Config::exception(Rule::RemoteReference, &wanted.subject(), "");
        let host = || reach::place(wanted.text.exposed());
        failure.upstream = match &exception {
            Some(exception) if !failure.kind.is_outage() => exception.repository.as_str().into(),
            _ => host().unwrap_or_default().into(),
        };
        let mut locks = self.locks.iter().chain(&self.options.before);
        if locks.any(|lock| wanted.locked(lock).is_some()) {
            // It was there, so neither is the URL mistyped, nor is it to stay remote.
            for hint in &mut failure.hints {
                if hint == git::CHECK_URL {
                    *hint = "it was there when it was locked: ask where it is now, or who may read it".to_owned();
                }
            }
            return failure;
        }
        // What cannot be reached today is there tomorrow.
        if !failure.kind.is_outage() && !self.options.offline {
            failure.exception = exception.map(Box::new);
        }
        failure
    }

    /// Brings in what references name: one answer for each, in their order.
    fn bring(&mut self, wanted: &[RemoteRef]) -> Vec<Result<Found>> {
        for one in wanted {
            let mut urls = vec![one.text.clone()];
            urls.extend(one.spec.as_ref().map(RepoSpec::clone_spec));
            for url in urls {
                if one.by == NamedBy::User {
                    self.reach.name(url.exposed());
                }
                let by = self.named_by.entry(url).or_insert_with(|| one.by.clone());
                by.extend(&one.by);
            }
        }
        let ways: Vec<&[Way]> = wanted.iter().map(|one| self.ways(one)).collect();
        for round in 0..2 {
            let mut jobs = Vec::new();
            for (one, ways) in wanted.iter().zip(&ways) {
                let Some(way) = ways.get(round) else {
                    continue;
                };
                let settled = ways[..round]
                    .iter()
                    .any(|way| self.outcome(one, *way).is_some_and(|outcome| self.settles(one, &outcome)));
                if settled {
                    continue;
                }
                let job = self.job(one, *way, false);
                // In parallel with the GET, unless it is clearly a file.
                if **ways == [Way::File, Way::Root]
                    && round == 0
                    && !reference::looks_like_file(one.text.exposed())
                    && job.is_some()
                {
                    jobs.extend(self.job(one, Way::Root, true));
                }
                jobs.extend(job);
            }
            self.run(jobs);
        }
        let answers = wanted.iter().zip(&ways);
        let answers: Vec<_> = answers.map(|(one, ways)| self.answer(one, ways)).collect();
        let mut roots: HashMap<RepoRef, Vec<String>> = HashMap::new();
        for (one, answer) in wanted.iter().zip(&answers) {
            if let (Some(spec), Ok(Found::Root(_))) = (&one.spec, answer) {
                let directories = roots.entry(spec.repo_ref()).or_default();
                directories.push(spec.directory());
            }
        }
        self.bring_files(&roots);
        self.progress.clear();
        answers
    }
}

impl Remotes for Fetcher {
    fn charts(&mut self, wanted: &[(ChartRef, NamedBy)]) -> Vec<Result<Pulled>> {
        for (chart, by) in wanted {
            if *by == NamedBy::User {
                self.reach.name(chart.repo.exposed());
            }
        }
        let charts = helm::Charts {
            cache: &self.cache,
            locks: &self.locks,
            tip: self.tip.as_ref(),
            progress: &self.progress,
            helm: self.options.helm,
            locked: self.options.locked,
            offline: self.options.offline,
            timeout: DEFAULT_TIMEOUT,
            budget: &self.budget,
            reach: &self.reach,
        };
        charts.bring(wanted, &mut self.charts)
    }

    fn resolve(&mut self, wanted: &[RemoteRef]) -> Vec<Result<Found>> {
        let refused = |one| {
            let is_refused = self.options.locked;
            is_refused.then(|| self.unlocked(one)).flatten()
        };
        let refused: Vec<Option<Failure>> = wanted.iter().map(refused).collect();
        let both = wanted.iter().zip(&refused);
        let rest = both.filter(|(_, refused)| refused.is_none());
        let rest: Vec<RemoteRef> = rest.map(|(one, _)| one.clone()).collect();
        let mut answers = self.bring(&rest).into_iter();
        let answer = |(one, refused): (&RemoteRef, Option<Failure>)| match refused {
            Some(failure) => Err(failure),
            None => match answers.next() {
                Some(answer) => answer.map_err(|failed| self.advised(one, failed)),
                None => Err(Failure::new("the reference was not resolved")),
            },
        };
        wanted.iter().zip(refused).map(answer).collect()
    }
}

fn remote_file(url: SafeUrl, bytes: Vec<u8>) -> Rc<RemoteFile> {
    Rc::new(RemoteFile { url, sha256: sha256_hex(&bytes), bytes: bytes.into() })
}
