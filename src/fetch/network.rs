//! Speaking to upstream, side by side: one request for what one request can bring, and git as far as it may go.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use url::Url;

use super::budget::Budget;
use super::git::GitRequest;
use super::http::{Bounds, Client};
use super::progress::SIDE_BY_SIDE;
use super::reach::Reach;
use super::{Cache, DEFAULT_TIMEOUT, Got, Job, Key, MAX_FILE_SIZE, Options, Progress, helm};
use crate::git::RemoteGit;
use crate::message::failure::{Failure, FailureKind, Result};
use crate::os::process::{self, Output, Terminal};

/// How many redirects of a repository are followed, one after the other.
const MAX_REDIRECTS: usize = 5;

/// The network, as one run may use it; shared by its threads.
pub(crate) struct Network {
    pub(super) remote_git: RemoteGit,
    pub(super) cache: Cache,
    pub(super) budget: Budget,
    pub(super) reach: Arc<Reach>,
    pub(super) client: Client,
    pub(super) progress: Progress,
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
        let bounds = Bounds { deadline, max_bytes, retries: 3, first_delay: Duration::from_millis(500) };
        let asked = remote_git.clone();
        let ask = Box::new(move |url: &Url| asked.credentials(url));
        Network {
            client: Client::new(bounds, reach.clone(), ask),
            remote_git,
            cache: Cache::of_user(),
            budget,
            reach,
            progress: Progress::new("fetching", options.quiet),
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
                Key::Git(key) => *repositories.entry((key.url.clone(), job.timeout)).or_insert(next),
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
                    let requests = group.iter().filter_map(|job| match &job.key {
                        Key::Git(key) => Some(job.git(key)),
                        _ => None,
                    });
                    let fetched = self.fetch(&requests.collect::<Vec<_>>()).into_iter();
                    fetched.map(|fetched| fetched.map(Got::Commit)).collect()
                }
                Key::File(url) => vec![self.client.get(url.exposed()).and_then(|body| taken(group, body.bytes))],
                Key::Chart(chart) => vec![helm::pull(self, chart).and_then(|bytes| taken(group, bytes))],
            },
        );
        groups.into_iter().flatten().zip(got.into_iter().flatten()).collect()
    }

    /// Lets git talk to the server of a request, and to where that redirects. If git wants a login, the person at the
    /// terminal is asked, alone.
    pub(super) fn talk(
        &self,
        request: &GitRequest,
        say: impl Fn(&RemoteGit, &str, Terminal) -> Result<Output, process::Error>,
    ) -> Result<Output> {
        let mut url = request.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let remote_git = self.reach.git(url.exposed())?;
            let say =
                |terminal| say(&remote_git, url.exposed(), terminal).map_err(|error| self.not_run(request, error));
            let output = say(Terminal::Detached)?;
            if output.status.success() {
                return Ok(output);
            }
            let may_ask = request.may_ask && self.may_ask(url.exposed());
            if may_ask && self.explain(request, "", &output).kind == FailureKind::Login {
                let _alone = self.terminal.lock().unwrap_or_else(PoisonError::into_inner);
                return self.progress.suspend(|| say(Terminal::Shared));
            }
            match self.redirect(url.exposed(), &output)? {
                Some(next) => url = next.into(),
                None => return Ok(output),
            }
        }
        Err(Failure::new(format!("{} redirects more than {MAX_REDIRECTS} times", request.url.shown())))
    }

    fn may_ask(&self, url: &str) -> bool {
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && self.reach.access(url).named
    }

    /// Returns where a server sends a request of git, which follows no redirect itself; none where git failed for
    /// another reason.
    fn redirect(&self, url: &str, output: &Output) -> Result<Option<String>> {
        const ASKED: &str = "/info/refs";
        let is_redirect = |code| output.says(&[&format!("requested url returned error: {code}") as &str]);
        if ![301, 302, 303, 307, 308].into_iter().any(is_redirect) {
            return Ok(None);
        }
        let from = self.remote_git.rewritten(url);
        let mut to = self.client.get(&format!("{}{ASKED}?service=git-upload-pack", from.trim_end_matches('/')))?.url;
        to.set_query(None);
        Ok(to.as_str().strip_suffix(ASKED).map(str::to_owned))
    }
}
