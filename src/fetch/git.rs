//! Fetches commits of repositories with git into the cache: first without their larger files, which are fetched once
//! something asks for them.

mod failure;
mod files;
mod together;

pub(super) use files::Batch;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use url::Url;

pub(super) use failure::CHECK_URL;

use super::budget::Budget;
use super::cache::Cache;
use super::http;
use super::reach::{Access, Reach};
use crate::git::{Fetch, Part, RemoteGit};
use crate::graph::NamedBy;
use crate::message::failure::{Failure, FailureKind, Result};
use crate::message::redact::{self, SafeUrl};
use crate::os::interrupt::Scratch;
use crate::os::process::{self, Limits, Output, Terminal};
use crate::record::is_object_id;
use crate::tree::git::{object_id, open_fetched};

/// How many redirects of a repository are followed, one after the other.
const MAX_REDIRECTS: usize = 5;

/// What to do about a lock that no longer fits what is upstream.
pub(super) const RELOCK: &str = "to lock what it is now: `git kustomize-localize update`; where only the lock of NEW_DIR holds it, \
                                remove NEW_DIR and copy again";

/// What to fetch: everything that makes one fetch differ from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct GitRequest {
    /// The clone spec, as git takes it.
    pub url: SafeUrl,
    /// The ref as written; none stands for HEAD.
    pub reference: Option<String>,
    /// The commit, where it is known: from a lock, or because the ref is one.
    pub commit: Option<String>,
    /// Whose files name it.
    pub by: NamedBy,
    pub is_submodule: bool,
}

/// A commit that lies in the cache now. Some of its files may still be elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetched {
    /// The bare repository that holds it.
    pub directory: PathBuf,
    /// Its full id.
    pub commit: String,
    /// The request that led to it.
    pub request: GitRequest,
    /// How long one fetch for it may take, where the request says.
    pub timeout: Option<Duration>,
}

/// The answer of a server to a request for its refs: lines `ID<tab>REF`.
#[derive(Debug, Clone)]
pub(super) struct Listing(String);

impl Listing {
    /// Returns the full name of a ref, and its commit: a tag object stands for that.
    pub(super) fn find(&self, reference: &str) -> Option<(String, String)> {
        // git's order for a short name (gitrevisions(7)).
        let names = [
            reference.to_owned(),
            format!("refs/{reference}"),
            format!("refs/tags/{reference}"),
            format!("refs/heads/{reference}"),
            format!("refs/remotes/{reference}"),
            format!("refs/remotes/{reference}/HEAD"),
        ];
        let found = names.into_iter().find_map(|name| {
            let id = self.id(&format!("{name}^{{}}")).or_else(|| self.id(&name))?;
            Some((name, id.to_owned()))
        });
        found.filter(|(_, id)| is_object_id(id))
    }

    /// Returns what a full name stands for.
    pub(super) fn id(&self, name: &str) -> Option<&str> {
        self.0.lines().filter_map(|line| line.split_once('\t')).find(|(_, listed)| *listed == name).map(|(id, _)| id)
    }
}

/// The time that one request may take, however many times git is started for it.
pub(super) struct Clock<'a> {
    start: Instant,
    timeout: Duration,
    cancel: Option<&'a AtomicBool>,
}

impl<'a> Clock<'a> {
    pub(super) fn start(timeout: Duration, cancel: Option<&'a AtomicBool>) -> Self {
        Clock { start: Instant::now(), timeout, cancel }
    }

    pub(super) fn limits(&self) -> Limits<'a> {
        Limits { timeout: Some(self.timeout.saturating_sub(self.start.elapsed())), cancel: self.cancel }
    }
}

/// Fetches commits, each once; safe to share between threads.
#[derive(Clone)]
pub(crate) struct GitRemotes {
    remote_git: RemoteGit,
    cache: Cache,
    timeout: Duration,
    offline: bool,
    budget: Budget,
    reach: Arc<Reach>,
    client: Arc<http::Client>,
    /// The refs that were resolved and turned out to be tags: URLs without secrets, and refs.
    tags: Arc<Mutex<HashSet<(String, String)>>>,
    /// The URLs that were fetched from, with whether the cache held something of them before.
    known: Arc<Mutex<HashMap<String, bool>>>,
}

impl GitRemotes {
    /// Sets up fetching into `cache`. `timeout` holds for one fetch, `budget` for all files that are read.
    pub(super) fn new(
        remote_git: RemoteGit,
        cache: Cache,
        timeout: Duration,
        offline: bool,
        budget: Budget,
        reach: Arc<Reach>,
        client: Arc<http::Client>,
    ) -> Self {
        GitRemotes {
            remote_git,
            cache,
            timeout,
            offline,
            budget,
            reach,
            client,
            tags: Arc::default(),
            known: Arc::default(),
        }
    }

    /// Returns whether a ref (of a URL without secrets) was resolved here, and is a tag.
    pub(crate) fn is_tag(&self, url: &str, reference: &str) -> bool {
        let tags = self.tags.lock().unwrap_or_else(PoisonError::into_inner);
        tags.contains(&(url.to_owned(), reference.to_owned()))
    }

    fn learn_tag(&self, request: &GitRequest, reference: &str) {
        let mut tags = self.tags.lock().unwrap_or_else(PoisonError::into_inner);
        tags.insert((request.url.shown(), reference.to_owned()));
    }

    /// How remote repositories are spoken to.
    pub(crate) fn remote_git(&self) -> &RemoteGit {
        &self.remote_git
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    pub(super) fn cache(&self) -> &Cache {
        &self.cache
    }

    pub(super) fn is_offline(&self) -> bool {
        self.offline
    }

    /// Returns the wished commit if the cache holds it, so that nothing needs to be fetched.
    pub(crate) fn cached(&self, request: &GitRequest, timeout: Option<Duration>) -> Result<Option<Fetched>> {
        let Some(commit) = request.commit.clone() else {
            return Ok(None);
        };
        let directory = self.cache.repository(&request.url.shown(), &commit, self.offline)?;
        Ok(directory.map(|directory| Fetched { directory, commit, request: request.clone(), timeout }))
    }

    /// Fetches what is wished, unless the cache holds it.
    pub(crate) fn fetch(
        &self,
        request: &GitRequest,
        timeout: Option<Duration>,
        cancel: Option<&AtomicBool>,
        terminal: Terminal,
    ) -> Result<Fetched> {
        if let Some(fetched) = self.cached(request, timeout)? {
            return Ok(fetched);
        }
        let shown = request.url.shown();
        if self.offline {
            return Err(self.not_cached(request));
        }
        let clock = Clock::start(timeout.unwrap_or(self.timeout), cancel);
        if request.commit.is_none() && self.knew(&shown) {
            // Something of this repository is here: asking what the ref is costs less than a fetch.
            let commit = self.resolve_by(request, &clock, terminal)?;
            let known = GitRequest { commit: Some(commit), ..request.clone() };
            if let Some(fetched) = self.cached(&known, timeout)? {
                return Ok(fetched);
            }
        }
        // git would ask for a password again with each batch of files.
        let part = match terminal {
            Terminal::Shared => Part::All,
            Terminal::Detached => Part::SmallFiles,
        };
        let (scratch, commit) = self.bring(request, part, &clock, terminal)?;
        let directory = self.cache.keep(scratch, &shown, &commit)?;
        Ok(Fetched {
            directory,
            request: GitRequest { commit: Some(commit.clone()), ..request.clone() },
            commit,
            timeout,
        })
    }

    /// Returns whether the cache held something of a URL (without secrets) before this run fetched from it.
    fn knew(&self, shown: &str) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let knows = || self.cache.knows(shown);
        *known.entry(shown.to_owned()).or_insert_with(knows)
    }

    /// Fetches what is wished into a temporary repository. Returns the commit, too.
    fn bring(
        &self,
        request: &GitRequest,
        part: Part,
        clock: &Clock<'_>,
        terminal: Terminal,
    ) -> Result<(Scratch, String)> {
        let reference = request.reference.as_deref().unwrap_or("HEAD");
        let Some(commit) = &request.commit else {
            return self.fetch_reference(request, reference, part, clock, terminal);
        };
        let failure = match self.fetch_reference(request, commit, part, clock, terminal) {
            Err(failure) if failure.kind == FailureKind::NotInRepository => failure,
            done => return done,
        };
        if reference.eq_ignore_ascii_case(commit) || request.is_submodule {
            return Err(failure);
        }
        // Servers may refuse to give a commit by its id: the ref may still lead there.
        match self.fetch_reference(request, reference, part, clock, terminal) {
            Ok((scratch, found)) if found == *commit => Ok((scratch, found)),
            Ok((_, found)) => Err(Failure::new(format!(
                "{}: `{reference}` is {found} now, and the locked commit {commit} cannot be fetched",
                request.url.shown()
            ))
            .hint(RELOCK)
            .because(FailureKind::NotInRepository)),
            Err(_) => Err(failure),
        }
    }

    fn resolve_by(&self, request: &GitRequest, clock: &Clock<'_>, terminal: Terminal) -> Result<String> {
        let reference = request.reference.as_deref().unwrap_or("HEAD");
        let listing = self.list(request, &[reference], clock, terminal)?;
        let found = listing.find(reference);
        let (name, id) = found.ok_or_else(|| self.no_such_ref(request, reference))?;
        if name.starts_with("refs/tags/") {
            self.learn_tag(request, reference);
        }
        Ok(id)
    }

    /// Asks the server of what is wished what several refs of it are.
    pub(super) fn list(
        &self,
        request: &GitRequest,
        references: &[&str],
        clock: &Clock<'_>,
        terminal: Terminal,
    ) -> Result<Listing> {
        let output =
            self.talk(request, clock, |remote_git, url| remote_git.list(url, references, clock.limits(), terminal))?;
        if output.status.success() {
            Ok(Listing(String::from_utf8_lossy(&output.stdout).into_owned()))
        } else {
            Err(self.explain(request, references.first().unwrap_or(&"HEAD"), &output))
        }
    }

    /// Lets git talk to the server of a request: with the user's logins only if the user names its host, no further
    /// inwards than the file that names it may lead, and also where a redirect leads.
    pub(super) fn talk(
        &self,
        request: &GitRequest,
        clock: &Clock<'_>,
        say: impl Fn(&RemoteGit, &str) -> Result<Output, process::Error>,
    ) -> Result<Output> {
        let mut access = self.reach.access(&request.by, request.url.exposed());
        let mut url = request.url.clone();
        let mut redirects = 0;
        loop {
            let pinned = self.reach.judge_repository(url.exposed(), access)?;
            self.refuse_default_login(url.exposed(), access)?;
            let mut remote_git = self.remote_git.pinned(pinned);
            if !access.named {
                remote_git = remote_git.anonymous();
            }
            let output = say(&remote_git, url.exposed()).map_err(|error| self.not_run(request, error, clock))?;
            if output.status.success() || redirects == MAX_REDIRECTS {
                return Ok(output);
            }
            let Some(next) = self.redirect(url.exposed(), access, &output)? else {
                return Ok(output);
            };
            redirects += 1;
            (url, access) = (next.0.into(), next.1);
        }
    }

    /// Returns where a server sends a request of git, which follows no redirect itself; none where git failed for
    /// another reason.
    fn redirect(&self, url: &str, access: Access, output: &Output) -> Result<Option<(String, Access)>> {
        const ASKED: &str = "/info/refs";
        let codes = [301, 302, 303, 307, 308];
        let is_redirect = |code| output.says(&[&format!("requested url returned error: {code}") as &str]);
        if !codes.into_iter().any(is_redirect) {
            return Ok(None);
        }
        let from = self.remote_git.rewritten(url);
        let asked = format!("{}{ASKED}?service=git-upload-pack", from.trim_end_matches('/'));
        let mut to = self.client.get(&asked, access).map_err(|error| error.into_failure(url))?.url;
        to.set_query(None);
        let (Some(to), Ok(from)) = (to.as_str().strip_suffix(ASKED), Url::parse(&from)) else {
            return Ok(None);
        };
        let Ok(target) = Url::parse(to) else {
            return Ok(None);
        };
        let access = self.reach.redirected(&from, None, &target);
        Ok(Some((to.to_owned(), access)))
    }

    /// Refuses to let git send the `default` login of `~/.netrc` to a host that only an upstream names.
    fn refuse_default_login(&self, url: &str, access: Access) -> Result<()> {
        let Ok(parsed) = Url::parse(url) else {
            return Ok(());
        };
        let host = parsed.host_str().unwrap_or_default();
        let netrc = std::env::home_dir().map(|home| home.join(".netrc"));
        let netrc = netrc.and_then(|path| std::fs::read(path).ok());
        let netrc = String::from_utf8_lossy(netrc.as_deref().unwrap_or_default());
        let words: Vec<&str> = netrc.split_whitespace().collect();
        if access.named || !words.contains(&"default") || words.windows(2).any(|two| two == ["machine", host]) {
            return Ok(());
        }
        Err(Failure::new(format!(
            "{} is refused: only an upstream names {host}, and git would send it the `default` login of ~/.netrc",
            redact::url(url)
        ))
        .hint(format!("if that is meant: add `machine {host}` with a login to ~/.netrc")))
    }

    fn fetch_reference(
        &self,
        request: &GitRequest,
        reference: &str,
        part: Part,
        clock: &Clock<'_>,
        terminal: Terminal,
    ) -> Result<(Scratch, String)> {
        let references = [reference];
        let scratch = self.fetch_references(request, &references, part, clock, terminal)?;
        let (commit, is_tag) = fetched_commit(scratch.path(), 0, reference, &self.budget)?;
        if is_tag {
            self.learn_tag(request, reference);
        }
        Ok((scratch, commit))
    }

    fn fetch_references(
        &self,
        request: &GitRequest,
        references: &[&str],
        part: Part,
        clock: &Clock<'_>,
        terminal: Terminal,
    ) -> Result<Scratch> {
        let first = references.first().copied().unwrap_or("HEAD");
        // The other format applies if the server says so; a request by id does not ask.
        let formats = if first.len() == 64 && is_object_id(first) { ["sha256", "sha1"] } else { ["sha1", "sha256"] };
        let numbered = references.iter().enumerate();
        let refspecs: String = numbered.map(|(number, one)| format!("+{one}:refs/kl/{number}\n")).collect();
        for format in formats {
            let fetch = |part| self.fetch_into(request, part, &refspecs, format, clock, terminal);
            let mut done = fetch(part)?;
            if !done.1.status.success() && refuses_filter(&done.1) {
                done = fetch(Part::All)?;
            }
            let (scratch, output) = done;
            if output.status.success() {
                return Ok(scratch);
            }
            if !output.says(&["mismatched algorithms"]) {
                return Err(self.explain(request, first, &output));
            }
        }
        Err(Failure::new(format!("{} uses an object format that this git does not know", request.url.shown())))
    }

    /// Fetches into a temporary repository beside those of the same URL.
    fn fetch_into(
        &self,
        request: &GitRequest,
        part: Part,
        refspecs: &str,
        format: &str,
        clock: &Clock<'_>,
        terminal: Terminal,
    ) -> Result<(Scratch, Output)> {
        let scratch = self.cache.scratch(&request.url.shown(), format)?;
        let option = match part {
            Part::All | Part::SmallFiles => Some("--depth=1"),
            Part::NoFiles | Part::NoTrees => Some("--no-write-fetch-head"),
        };
        let wanted = Fetch { into: scratch.path(), part, option, refspecs, by_repository: request.is_submodule };
        let output =
            self.talk(request, clock, |remote_git, url| remote_git.fetch(url, wanted, clock.limits(), terminal))?;
        Ok((scratch, output))
    }
}

/// Returns whether a server gives whole commits only, and says so. One that does not know of filters ignores them.
fn refuses_filter(output: &Output) -> bool {
    output.says(&["remote error: filter", "invalid filter"])
}

/// Returns a commit that a fetch brought in, tags followed, and whether it was a tag.
fn fetched_commit(directory: &Path, number: usize, reference: &str, budget: &Budget) -> Result<(String, bool)> {
    let failed = |what: String| Failure::new(format!("git fetched something that cannot be used: {what}"));
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).map_err(|error| failed(error.to_string()));
    let id = read(&format!("refs/kl/{number}"))?;
    let id = id.trim_end();
    let repository = open_fetched(directory, budget.memory())?;
    let commit = repository
        .find_object(object_id(id)?)
        .map_err(|error| failed(error.to_string()))?
        .peel_to_kind(gix::object::Kind::Commit)
        .map_err(|_| failed(format!("{id} is not a commit")))?;
    // `ID<tab>not-for-merge or nothing<tab>tag 'NAME' of URL`. A branch that came with it may be the same commit.
    let name = reference.strip_prefix("refs/").unwrap_or(reference);
    let tag = format!("tag '{}' of ", name.strip_prefix("tags/").unwrap_or(name));
    let is_tag = read("FETCH_HEAD")?.lines().any(|line| {
        let mut fields = line.split('\t');
        fields.next() == Some(id) && fields.nth(1).is_some_and(|what| what.starts_with(&tag))
    });
    Ok((commit.id.to_string(), is_tag))
}
