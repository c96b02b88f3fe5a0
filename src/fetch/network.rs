//! Speaking to upstream, side by side: one request for what one request can bring, and git as far as it may go.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use url::Url;

use super::budget::Budget;
use super::git::GitRequest;
use super::http::{Bounds, Client, Stop, redirected};
use super::limit::{self, Patience};
use super::progress::SIDE_BY_SIDE;
use super::reach::Reach;
use super::{Cache, DEFAULT_TIMEOUT, Got, Job, Key, MAX_FILE_SIZE, Options, Progress, helm, traffic};
use crate::git::{Exchange, Login, RemoteGit};
use crate::message::failure::{Failure, FailureKind, Result};
use crate::os::process::{self, Terminal};

/// How many redirects of a repository are followed, one after the other.
const MAX_REDIRECTS: usize = 5;

/// The network, as one run may use it; shared by its threads.
pub(crate) struct Network {
    pub(super) remote_git: RemoteGit,
    pub(super) cache: Cache,
    pub(super) budget: Budget,
    pub(super) reach: Arc<Reach>,
    pub(super) client: Client,
    pub(super) progress: Arc<Progress>,
    pub(super) offline: bool,
    /// Held by the one that asks the person at the terminal.
    terminal: Mutex<()>,
}

impl Network {
    /// Sets up speaking to upstream, with the user's logins. No request is sent yet.
    pub(crate) fn new(remote_git: RemoteGit, options: &Options) -> Self {
        let budget = Budget::new(options.max_file_size.unwrap_or(MAX_FILE_SIZE));
        let reach = Arc::new(Reach::new(remote_git.clone(), options.allow_private));
        let (deadline, max_bytes) = (DEFAULT_TIMEOUT, budget.largest());
        let bounds = Bounds { deadline, max_bytes };
        let progress = Arc::new(Progress::new("fetching", options.quiet));
        // Tests wait for servers that never answer.
        let first = Duration::from_millis(if cfg!(debug_assertions) { 50 } else { 500 });
        let patience = Patience::new(progress.clone(), 3, first);
        let asked = remote_git.clone();
        let ask = Box::new(move |url: &Url| asked.credentials(url));
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

    /// Brings in what is wanted, commits of one repository with one request.
    pub(super) fn bring(&self, jobs: Vec<Job>) -> Vec<(Job, Result<Got>)> {
        let mut groups: Vec<Vec<Job>> = Vec::new();
        let mut repositories = HashMap::new();
        for job in jobs {
            let next = groups.len();
            let at = match &job.key {
                Key::Git(key) => *repositories.entry((key.clone_spec(), job.timeout)).or_insert(next),
                _ => next,
            };
            groups.resize_with(next.max(at + 1), Vec::new);
            groups[at].push(job);
        }
        // Counted where it comes in: what is too much in all is not kept until the last one has come.
        let taken = |group: &[Job], bytes: Vec<u8>| {
            self.budget.take(bytes.len() as u64, || group[0].key.upstream().to_string())?;
            Ok(Got::Bytes(bytes))
        };
        let got = self.progress.each(
            SIDE_BY_SIDE,
            &groups,
            |group| group[0].key.upstream().to_string(),
            |_, group| match &group[0].key {
                Key::Git(_) => {
                    let requests: Vec<GitRequest> = group.iter().filter_map(Job::request).collect();
                    let fetched = self.fetch(&requests).into_iter();
                    fetched.map(|fetched| fetched.map(Got::Commit)).collect()
                }
                Key::File(url) => vec![self.client.get(url.exposed()).and_then(|bytes| taken(group, bytes))],
                Key::Chart(chart) => vec![helm::pull(self, chart).and_then(|bytes| taken(group, bytes))],
            },
        );
        groups.into_iter().flatten().zip(got.into_iter().flatten()).collect()
    }

    /// Lets git talk to the server of a request, and to where that redirects.
    pub(super) fn talk(
        &self,
        request: &GitRequest,
        say: impl Fn(&RemoteGit, &str, Terminal) -> Result<Exchange, process::Error>,
    ) -> Result<Exchange> {
        let mut url = request.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let say = |git: &RemoteGit, terminal| {
                let said = say(git, url.exposed(), terminal).map_err(|error| self.not_run(request, error))?;
                // Over ssh it is one.
                traffic::count(url.exposed(), said.requests.max(1), said.bytes);
                Ok(said)
            };
            let exchange = self.talk_to_one(request, url.exposed(), say)?;
            match self.redirect(url.exposed(), &exchange)? {
                Some(next) => url = next.into(),
                None => return Ok(exchange),
            }
        }
        Err(Failure::new(format!("{} redirects more than {MAX_REDIRECTS} times", request.url.shown())))
    }

    /// Lets git talk to one server, which may limit us. If git wants a login, the person at the terminal is asked, alone.
    fn talk_to_one(
        &self,
        request: &GitRequest,
        url: &str,
        say: impl Fn(&RemoteGit, Terminal) -> Result<Exchange>,
    ) -> Result<Exchange> {
        let git = self.reach.git(url)?;
        let rewritten = || self.remote_git.rewritten(url);
        let at_once = || self.reach.sends_login(url, rewritten);
        let ask = |_: Option<&Login>| self.client.login_of_git(url, &rewritten());
        let send = |login: Option<&Login>| -> Result<Exchange, Stop> {
            let git = login.map_or_else(|| git.clone(), |login| git.with_login(&rewritten(), login));
            let exchange = say(&git, Terminal::Detached)?;
            let is_refused = || self.explain(request, "", &exchange).kind == FailureKind::Login;
            match limit::of_git(&exchange) {
                Some(wait) => Err(self.limited(request, &exchange, wait)),
                None if login.is_some() && is_refused() => Err(self.explain(request, "", &exchange).into()),
                None => Ok(exchange),
            }
        };
        let exchange = self.client.patience.persist(url, None, at_once, ask, send).map_err(|stop| *stop.failure)?;
        let may_ask = request.may_ask && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if may_ask && self.reach.access(url).named && self.explain(request, "", &exchange).kind == FailureKind::Login {
            let _alone = self.terminal.lock().unwrap_or_else(PoisonError::into_inner);
            return self.progress.suspend(|| say(&git, Terminal::Shared));
        }
        Ok(exchange)
    }

    /// Returns where a server sends a request of git, which follows no redirect itself; none where it sends it nowhere.
    fn redirect(&self, url: &str, exchange: &Exchange) -> Result<Option<String>> {
        const ASKED: &str = "/info/refs";
        let Some(location) = exchange.header("location").filter(|_| (300..400).contains(&exchange.status)) else {
            return Ok(None);
        };
        let from = self.remote_git.rewritten(url);
        let from = Url::parse(&format!("{}{ASKED}?service=git-upload-pack", from.trim_end_matches('/')));
        let Ok(from) = from else { return Ok(None) };
        let mut to = redirected(&from, location)?;
        to.set_query(None);
        Ok(to.as_str().strip_suffix(ASKED).map(str::to_owned))
    }
}
