//! Talks to upstreams in parallel: one request for all content that one request can get, and git within its bounds.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use url::Url;

use super::budget::Budget;
use super::git::GitRequest;
use super::http::{Client, FetchBounds, RequestError, redirected};
use super::limit::{self, Patience, RETRIES};
use super::progress::SIDE_BY_SIDE;
use super::reach::NetworkPolicy;
use super::{
    Cache, ContentKey, DEFAULT_TIMEOUT, Downloaded, FetchJob, FetchOptions, MAX_FILE_SIZE, Progress, helm, not_cached,
    traffic,
};
use crate::config::is_one_version;
use crate::git::{Exchange, RemoteGit};
use crate::graph::ChartRef;
use crate::message::failure::{Failure, FailureKind, Result};
use crate::os::parallel::locked;
use crate::os::process::{self, Terminal};

/// The most redirects of a repository that are followed.
const MAX_REDIRECTS: usize = 5;

/// The network, as one run may use it. All threads of the run share it.
pub(crate) struct Network {
    pub(super) remote_git: RemoteGit,
    pub(super) cache: Cache,
    pub(super) budget: Budget,
    pub(super) reach: Arc<NetworkPolicy>,
    pub(super) client: Client,
    pub(super) progress: Arc<Progress>,
    pub(super) offline: bool,
    /// Locked by the thread that asks the person at the terminal.
    terminal: Mutex<()>,
}

impl Network {
    /// Sets up the network with the user's logins. No request is sent yet.
    pub(crate) fn new(remote_git: RemoteGit, options: &FetchOptions) -> Self {
        let budget = Budget::new(options.max_file_size.unwrap_or(MAX_FILE_SIZE));
        let reach = Arc::new(NetworkPolicy::new(remote_git.clone(), options.allow_private));
        let (deadline, max_bytes) = (DEFAULT_TIMEOUT, budget.largest());
        let bounds = FetchBounds { deadline, max_bytes };
        let progress = Arc::new(Progress::new("fetching", options.quiet));
        // The first wait before a retry. Tests have servers that never answer, which must not take long.
        let first = Duration::from_millis(if cfg!(debug_assertions) { 50 } else { 500 });
        let patience = Patience::new(progress.clone(), RETRIES, first);
        let git = remote_git.clone();
        let ask = Box::new(move |url: &Url| git.credentials(url));
        Network {
            client: Client::new(bounds, patience, reach.clone(), ask),
            remote_git,
            cache: Cache::of_user(),
            budget,
            reach,
            progress,
            offline: options.offline,
            terminal: Mutex::default(),
        }
    }

    /// Fetches the content of jobs in parallel. Commits of one repository are fetched with one request. Returns each
    /// job with its answer.
    pub(super) fn fetch_all(&self, jobs: Vec<FetchJob>) -> Vec<(FetchJob, Result<Downloaded>)> {
        let groups = by_request(jobs);
        let downloaded = self.progress.each(
            SIDE_BY_SIDE,
            &groups,
            |group| group[0].key.upstream().to_string(),
            |_, group| self.download(group),
        );
        groups.into_iter().flatten().zip(downloaded.into_iter().flatten()).collect()
    }

    /// Fetches the content of jobs that one request can get.
    fn download(&self, group: &[FetchJob]) -> Vec<Result<Downloaded>> {
        match &group[0].key {
            ContentKey::Git(_) => {
                let requests: Vec<GitRequest> = group.iter().filter_map(FetchJob::request).collect();
                self.fetch(&requests).into_iter().map(|fetched| fetched.map(Downloaded::Commit)).collect()
            }
            ContentKey::File(url) => vec![self.counted(&group[0], self.client.get(url.exposed()))],
            ContentKey::Chart(chart) => {
                // The lock decides: by now, and to another helm, a range may mean another version.
                let resolved = group[0].resolved.as_ref().filter(|_| !is_one_version(&chart.version));
                let chart = ChartRef { version: resolved.unwrap_or(&chart.version).clone(), ..chart.clone() };
                vec![self.counted(&group[0], helm::pull(self, &chart))]
            }
        }
    }

    /// Counts bytes when they arrive, so that a run stops before all of them are in memory.
    fn counted(&self, job: &FetchJob, bytes: Result<Vec<u8>>) -> Result<Downloaded> {
        let bytes = bytes?;
        self.budget.take(bytes.len() as u64, || job.key.upstream().to_string())?;
        Ok(Downloaded::Bytes(bytes))
    }

    /// Runs a git command for a request by `run`, which gets git with its rights and the URL, and follows redirects.
    /// git itself must not follow them: they could lead it to a private address.
    pub(super) fn run_git(
        &self,
        request: &GitRequest,
        run: impl Fn(&RemoteGit, &str, Terminal) -> Result<Exchange, process::Error>,
    ) -> Result<Exchange> {
        // Checked so late, because submodules and files are also fetched when a tree is read.
        if self.offline {
            return Err(not_cached(request.label()));
        }
        let mut url = request.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let exchange = self.run_git_at(request, url.exposed(), |git, terminal| {
                let exchange = run(git, url.exposed(), terminal).map_err(|error| self.not_run(request, error))?;
                // git reports no requests over ssh, but there was at least one.
                traffic::count(url.exposed(), exchange.requests.max(1), exchange.bytes);
                Ok(exchange)
            })?;
            match self.redirect(url.exposed(), &exchange)? {
                Some(next) => url = next.into(),
                None => return Ok(exchange),
            }
        }
        Err(Failure::new(format!("{} redirects more than {MAX_REDIRECTS} times", request.url.shown())))
    }

    /// Runs git against one URL. git itself asks the credential helpers if the server demands a login. If the server
    /// limits us, git also gets the login of a helper, and if all of this fails, it asks the person at the terminal.
    fn run_git_at(
        &self,
        request: &GitRequest,
        url: &str,
        run: impl Fn(&RemoteGit, Terminal) -> Result<Exchange>,
    ) -> Result<Exchange> {
        let git = self.reach.git_for(url)?;
        // Asking git for the rewritten URL starts a process, so it is done only if a login is at stake.
        let rewritten = || self.remote_git.rewritten(url);
        // The first attempt has no login, so that a public server never sees one that it does not need, unless a helper
        // is configured for that URL. A login in the URL is passed by `RemoteGit`.
        let exchange = self.client.patience.retry(
            url,
            None,
            || self.reach.sends_login(url, rewritten),
            |_| self.client.login_of_git(url, &rewritten()),
            |login| match login {
                None => self.judged(request, run(&git, Terminal::Detached)?),
                Some(login) => {
                    self.judged_login(request, run(&git.with_login(&rewritten(), login), Terminal::Detached)?)
                }
            },
        );
        let exchange = exchange.map_err(|error| *error.failure)?;
        if may_ask_person(request) && self.reach.access(url).named && self.is_refused(request, &exchange) {
            // Two prompts at a time on one terminal could not be told apart, and would be hidden by the progress bar.
            let _guard = locked(&self.terminal);
            return self.progress.suspend(|| run(&git, Terminal::Shared));
        }
        Ok(exchange)
    }

    /// The exchange, or the error of a server that limits us. The caller judges all other failures of git.
    fn judged(&self, request: &GitRequest, exchange: Exchange) -> Result<Exchange, RequestError> {
        match limit::demanded_wait_of_git(&exchange) {
            Some(wait) => Err(self.limited(request, &exchange, wait)),
            None => Ok(exchange),
        }
    }

    /// As [`Network::judged`], for a request with the user's login: if the server refuses it, this is an error as well,
    /// so that the login is dropped.
    fn judged_login(&self, request: &GitRequest, exchange: Exchange) -> Result<Exchange, RequestError> {
        let exchange = self.judged(request, exchange)?;
        if self.is_refused(request, &exchange) {
            return Err(self.explain(request, "", &exchange).into());
        }
        Ok(exchange)
    }

    /// Whether git failed because the server demands another login.
    fn is_refused(&self, request: &GitRequest, exchange: &Exchange) -> bool {
        // Only the failure of a missing ref names the ref, so it is not given here.
        self.explain(request, "", exchange).kind == FailureKind::Login
    }

    /// The URL of the repository that a server redirects git to, from the URL of its first request: git asks for the
    /// refs at `URL/info/refs`. `None` if the server does not redirect, or to anything but the refs of a repository:
    /// then the failure of git stands.
    fn redirect(&self, url: &str, exchange: &Exchange) -> Result<Option<String>> {
        const INFO_REFS: &str = "/info/refs";
        let Some(location) = exchange.header("location").filter(|_| (300..400).contains(&exchange.status)) else {
            return Ok(None);
        };
        // The server redirects the URL that it got, which is the rewritten one.
        let from = self.remote_git.rewritten(url);
        let from = Url::parse(&format!("{}{INFO_REFS}?service=git-upload-pack", from.trim_end_matches('/')));
        let Ok(from) = from else { return Ok(None) };
        let mut to = redirected(&from, location)?;
        to.set_query(None);
        Ok(to.as_str().strip_suffix(INFO_REFS).map(str::to_owned))
    }
}

/// The jobs, in groups that one request can get. Servers count requests, and a connection costs more than most objects,
/// so all commits of a repository are one group; but git has one time limit, so jobs with other timeouts are another.
fn by_request(jobs: Vec<FetchJob>) -> Vec<Vec<FetchJob>> {
    let mut groups: Vec<Vec<FetchJob>> = Vec::new();
    let mut repositories = HashMap::new();
    for job in jobs {
        let index = match &job.key {
            ContentKey::Git(key) => *repositories.entry((key.clone_spec(), job.timeout)).or_insert(groups.len()),
            ContentKey::File(_) | ContentKey::Chart(_) => groups.len(),
        };
        if index == groups.len() {
            groups.push(Vec::new());
        }
        groups[index].push(job);
    }
    groups
}

/// Whether git may ask the person at the terminal for a login.
fn may_ask_person(request: &GitRequest) -> bool {
    request.may_ask && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}
