//! Fetches commits of repositories with git into the cache: first without their larger files, which are fetched when
//! they are read.

mod failure;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gix::ObjectId;

use super::budget::Budget;
use super::progress::SIDE_BY_SIDE;
use super::{DEFAULT_TIMEOUT, HINT_RELOCK, Network};
use crate::git::{Exchange, Fetch, FetchFilter, object_id, open_fetched};
use crate::message::failure::{Failure, FailureKind, Result};
use crate::message::redact::SafeUrl;
use crate::os::interrupt::Scratch;
use crate::os::process::Terminal;
use crate::record::is_object_id;

/// A request to fetch a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitRequest {
    /// The clone URL, as git takes it.
    pub url: SafeUrl,
    /// The ref as written. HEAD if `None`.
    pub reference: Option<String>,
    /// The commit, if a lock has it or the ref is a commit id.
    pub commit: Option<String>,
    pub is_submodule: bool,
    /// Whether git may ask the person at the terminal for a login.
    pub may_ask: bool,
    pub timeout: Duration,
}

impl GitRequest {
    /// A request that may ask for a login at the terminal, with the usual time limit.
    pub(super) fn new(url: impl Into<SafeUrl>, reference: Option<&str>, commit: Option<&str>) -> Self {
        let [reference, commit] = [reference, commit].map(|name| name.map(str::to_owned));
        GitRequest { url: url.into(), reference, commit, is_submodule: false, may_ask: true, timeout: DEFAULT_TIMEOUT }
    }

    /// The name by which the server is asked for the commit.
    fn name(&self) -> &str {
        self.commit.as_deref().unwrap_or_else(|| self.reference())
    }

    /// The ref as git takes it.
    pub(super) fn reference(&self) -> &str {
        self.reference.as_deref().unwrap_or("HEAD")
    }

    /// The request in a message about the cache.
    pub(super) fn label(&self) -> String {
        let url = self.url.shown();
        self.commit.as_ref().map_or(url.clone(), |commit| format!("commit {commit} of {url}"))
    }
}

/// A commit in the cache. Some of its files may still be missing.
#[derive(Debug, Clone)]
pub(super) struct Fetched {
    /// The bare repository that has it.
    pub directory: PathBuf,
    /// The full commit id.
    pub commit: String,
    /// The object that the ref names, if it was resolved and is a tag: a tag object, or the commit.
    pub tag: Option<String>,
    /// The request that led to it.
    pub request: GitRequest,
    /// Why no more files of it can be fetched. Unset while they can.
    pub stop: Arc<OnceLock<Failure>>,
}

/// Missing files of one repository, to be fetched together.
pub(super) struct Missing {
    /// The commits that need them.
    pub commits: Vec<Fetched>,
    pub ids: BTreeSet<ObjectId>,
}

impl Missing {
    /// Adds objects that a commit needs to those of its repository, so that one request fetches the files of all
    /// commits of a repository.
    pub(super) fn add_to(list: &mut Vec<Missing>, commit: &Fetched, ids: BTreeSet<ObjectId>) {
        let missing = list.iter_mut().find(|missing| {
            // A URL that a base chose in its `.gitmodules` gets fewer rights than the same URL in a reference.
            let request = &missing.commits[0].request;
            request.url == commit.request.url && request.is_submodule == commit.request.is_submodule
        });
        let Some(missing) = missing else {
            return list.push(Missing { commits: vec![commit.clone()], ids });
        };
        if missing.commits.iter().all(|other| other.directory != commit.directory) {
            missing.commits.push(commit.clone());
        }
        missing.ids.extend(ids);
    }
}

/// The refs that a server listed: lines `ID<tab>REF`.
#[derive(Debug, Clone)]
pub(super) struct Listing(String);

impl Listing {
    /// The id of a ref, by its full name.
    pub(super) fn id(&self, name: &str) -> Option<String> {
        let mut refs = self.0.lines().filter_map(|line| line.split_once('\t'));
        refs.find(|(_, listed)| *listed == name).map(|(id, _)| id.to_owned())
    }

    /// The short names of the tags.
    pub(super) fn tags(&self) -> impl Iterator<Item = &str> {
        let names = self.0.lines().filter_map(|line| line.split_once("\trefs/tags/"));
        names.map(|(_, name)| name).filter(|name| !name.ends_with("^{}"))
    }

    /// The full name of the ref that `reference` names, which may be short, and the commit that it points to. A tag
    /// object counts as the commit that it tags. `None` if the server has no such ref, or lists no valid id for it.
    pub(super) fn find(&self, reference: &str) -> Option<(String, String)> {
        // The order in which git looks for a short name (gitrevisions(7)).
        let names = [
            reference.to_owned(),
            format!("refs/{reference}"),
            format!("refs/tags/{reference}"),
            format!("refs/heads/{reference}"),
            format!("refs/remotes/{reference}"),
            format!("refs/remotes/{reference}/HEAD"),
        ];
        let name_and_id = names.into_iter().find_map(|name| {
            let id = self.id(&format!("{name}^{{}}")).or_else(|| self.id(&name))?;
            Some((name, id))
        });
        // The server may list any text as an id, and the id becomes a part of a path.
        name_and_id.filter(|(_, id)| is_object_id(id))
    }
}

impl Network {
    /// The requested commit, if it is in the cache and need not be fetched. `None` also for a request without a commit:
    /// only the server knows where a ref points today.
    pub(super) fn cached(&self, request: &GitRequest) -> Result<Option<Fetched>> {
        let Some(commit) = request.commit.clone() else {
            return Ok(None);
        };
        let directory = self.cache.repository(&request.url.shown(), &commit)?;
        Ok(directory.map(|directory| Fetched {
            directory,
            commit,
            tag: None,
            request: request.clone(),
            stop: Arc::default(),
        }))
    }

    /// Fetches the requested commits of one repository, unless the cache has them. Returns one answer for each, in
    /// their order.
    pub(super) fn fetch(&self, requests: &[GitRequest]) -> Vec<Result<Fetched>> {
        // One request for all of them first, because servers limit the number of requests.
        let answer = match (self.fetch_together(requests), requests) {
            (Ok(fetched), _) => return fetched.into_iter().map(Ok).collect(),
            (Err(failure), [request]) => self.fetch_by_ref(request, failure),
            // A server that does not answer is not asked again: all requests get this failure.
            (Err(failure), _) if failure.kind.is_outage() => Err(failure),
            // One missing ref fails the whole request. If each is fetched alone, the others succeed.
            (Err(_), _) => return requests.iter().map(|request| self.fetch_one(request)).collect(),
        };
        requests.iter().map(|_| answer.clone()).collect()
    }

    /// Fetches one commit, unless the cache has it.
    pub(super) fn fetch_one(&self, request: &GitRequest) -> Result<Fetched> {
        let fetched = self.fetch(std::slice::from_ref(request)).pop();
        fetched.unwrap_or_else(|| Err(self.no_such_ref(request, request.name())))
    }

    /// Fetches a locked commit by its ref after fetching it by its id has failed with `failure`, because servers may
    /// refuse to give a commit by its id. Fails with `failure` unless the ref still points to the commit.
    fn fetch_by_ref(&self, request: &GitRequest, failure: Failure) -> Result<Fetched> {
        let reference = request.reference();
        // Without a commit, or with its id as the ref, this is what has failed.
        let Some(commit) = request.commit.as_ref().filter(|commit| !reference.eq_ignore_ascii_case(commit)) else {
            return Err(failure);
        };
        // Any other failure would be the same again. The commit of a submodule has no ref.
        if failure.kind != FailureKind::NotInRepository || request.is_submodule {
            return Err(failure);
        }
        let by_ref = GitRequest { commit: None, ..request.clone() };
        match self.fetch_together(&[by_ref]).ok().and_then(|mut fetched| fetched.pop()) {
            Some(fetched) if fetched.commit == *commit => Ok(fetched),
            Some(Fetched { commit: now, .. }) => Err(Failure::new(format!(
                "{}: `{reference}` is now {now}, and the locked commit {commit} cannot be fetched",
                request.url.shown()
            ))
            .hint(HINT_RELOCK)
            .because(FailureKind::NotInRepository)),
            None => Err(failure),
        }
    }

    /// Fetches the requested commits with one request, unless the cache has them. Fails if any of them cannot be
    /// fetched.
    fn fetch_together(&self, requests: &[GitRequest]) -> Result<Vec<Fetched>> {
        let Some(first) = requests.first() else {
            return Ok(Vec::new());
        };
        let shown = first.url.shown();
        // Refs are listed only if the cache knows the repository: then their commits may be cached, and listing costs
        // less than a fetch.
        let is_known = self.cache.knows(&shown);
        let floating = requests.iter().filter(|request| is_known && request.commit.is_none());
        let floating: Vec<&str> = floating.map(GitRequest::reference).collect();
        let listing = if floating.is_empty() { None } else { Some(self.list(first, &floating)?) };
        // A ref becomes a commit first, because only a commit can be looked up in the cache. `None` is fetched below.
        let mut done: Vec<Option<Fetched>> = Vec::new();
        for request in requests {
            let (mut request, mut tag) = (request.clone(), None);
            if let (None, Some(listing)) = (&request.commit, &listing) {
                let resolved = listing.find(request.reference());
                let (name, commit) = resolved.ok_or_else(|| self.no_such_ref(&request, request.reference()))?;
                tag = listing.id(&name).filter(|_| name.starts_with("refs/tags/"));
                request.commit = Some(commit);
            }
            done.push(self.cached(&request)?.map(|fetched| Fetched { tag, ..fetched }));
        }
        // The commits that the cache lacks are fetched with one request, by the names in `requests`: a server may
        // refuse an id that it listed, and only a name tells whether it is a tag.
        let mut pending: Vec<_> = requests.iter().zip(&mut done).filter(|(_, done)| done.is_none()).collect();
        if !pending.is_empty() {
            let names: Vec<&str> = pending.iter().map(|(request, _)| request.name()).collect();
            let scratch = self.fetch_refs(first, &names, FetchFilter::SmallFiles)?;
            for (number, (request, done)) in pending.iter_mut().enumerate() {
                let (commit, tag) = fetched_commit(scratch.path(), number, request.name(), &self.budget)?;
                let directory = self.cache.store(&scratch, &shown, &commit)?;
                let request = GitRequest { commit: Some(commit.clone()), ..request.clone() };
                **done = Some(Fetched { directory, commit, tag, request, stop: Arc::default() });
            }
        }
        Ok(done.into_iter().flatten().collect())
    }

    /// Asks the server which objects `references` point to (`git ls-remote`).
    pub(super) fn list(&self, request: &GitRequest, references: &[&str]) -> Result<Listing> {
        let exchange =
            self.run_git(request, |git, url, terminal| git.list(url, references, request.timeout, terminal))?;
        if !exchange.output.status.success() {
            return Err(self.explain(request, references.first().unwrap_or(&"HEAD"), &exchange));
        }
        Ok(Listing(String::from_utf8_lossy(&exchange.output.stdout).into_owned()))
    }

    /// Fetches refs or commit ids (`names`) of one repository into a temporary repository, from which the cache takes
    /// their objects. The Nth is there as `refs/kl/N`. Without `filter` if the server does not support it.
    pub(super) fn fetch_refs(&self, request: &GitRequest, names: &[&str], filter: FetchFilter) -> Result<Scratch> {
        let first = names.first().copied().unwrap_or("HEAD");
        let numbered = names.iter().enumerate();
        let refspecs: String = numbered.map(|(number, name)| format!("+{name}:refs/kl/{number}\n")).collect();
        let mut format = format_of(first);
        let (mut scratch, mut exchange) = self.fetch_with(request, format, filter, &refspecs)?;
        // git refuses to fetch into a repository of another object format, which only a commit id tells before.
        if exchange.output.says(&["mismatched algorithms"]) {
            format = "sha256";
            (scratch, exchange) = self.fetch_with(request, format, filter, &refspecs)?;
        }
        if exchange.output.says(&["remote error: filter", "invalid filter"]) {
            (scratch, exchange) = self.fetch_with(request, format, FetchFilter::All, &refspecs)?;
        }
        if exchange.output.status.success() { Ok(scratch) } else { Err(self.explain(request, first, &exchange)) }
    }

    /// Fetches `refspecs` into a new temporary repository of this object format, without their history. The output of
    /// git tells whether it succeeded, and what to try instead.
    fn fetch_with(
        &self,
        request: &GitRequest,
        format: &str,
        filter: FetchFilter,
        refspecs: &str,
    ) -> Result<(Scratch, Exchange)> {
        let scratch = self.cache.scratch(&request.url.shown(), format)?;
        // Files, which are requested by their ids, have no history to cut off, and nobody reads their FETCH_HEAD.
        let option = if filter == FetchFilter::NoFiles { "--no-write-fetch-head" } else { "--depth=1" };
        let exchange = self.exchange(request, scratch.path(), filter, Some(option), refspecs)?;
        Ok((scratch, exchange))
    }

    /// Runs `git fetch` into a bare repository. `option` limits the history, such as `--depth=1`; `refspecs` are its
    /// lines of refs or ids. Fails only if git cannot be run; the exchange has its exit status.
    pub(super) fn exchange(
        &self,
        request: &GitRequest,
        into: &Path,
        filter: FetchFilter,
        option: Option<&str>,
        refspecs: &str,
    ) -> Result<Exchange> {
        self.run_git(request, |remote_git, url, terminal| {
            let filter = match (filter, terminal) {
                // git would ask for a password again for each batch of files.
                (FetchFilter::SmallFiles, Terminal::Shared) => FetchFilter::All,
                (filter, _) => filter,
            };
            let wanted = Fetch { into, filter, option, refspecs, by_repository: request.is_submodule };
            remote_git.fetch(url, wanted, request.timeout, terminal)
        })
    }

    /// Fetches the files that `want` adds, with one request per repository, until it adds none. A run calls it before
    /// it reads many files, because each file that is fetched alone costs a request.
    pub(super) fn fetch_missing(&self, want: impl Fn(&mut Vec<Missing>)) {
        loop {
            // `.gitattributes` that were fetched may show that more files are needed, so `want` is called again.
            let mut missing = Vec::new();
            want(&mut missing);
            if missing.is_empty() {
                return;
            }
            self.progress.each(
                SIDE_BY_SIDE,
                &missing,
                |missing: &Missing| missing.commits[0].request.url.shown(),
                |_, missing| {
                    if let Err(failure) = self.fetch_files(missing) {
                        // The failure is reported when one of the files is read. `want` skips commits that have one.
                        for commit in &missing.commits {
                            let _ = commit.stop.set(failure.clone());
                        }
                    }
                },
            );
        }
    }

    /// Fetches the missing files of one repository, and adds them to its commits in the cache.
    fn fetch_files(&self, missing: &Missing) -> Result<()> {
        // All commits have the same URL, so the request of any of them will do.
        let Fetched { commit, request, .. } = &missing.commits[0];
        let ids: String = missing.ids.iter().map(|id| format!("{id}\n")).collect();
        let (scratch, exchange) = self.fetch_with(request, format_of(commit), FetchFilter::NoFiles, &ids)?;
        if exchange.output.status.success() {
            let directories: Vec<&Path> = missing.commits.iter().map(|commit| &*commit.directory).collect();
            return self.cache.add_objects(&scratch, &directories);
        }
        let failure = self.explain(request, commit, &exchange);
        // Only these can mean that the server does not give files by their ids.
        if !matches!(failure.kind, FailureKind::NotInRepository | FailureKind::Other) {
            return Err(failure);
        }
        // Then each commit is fetched again, with all of its files.
        for Fetched { request, directory, .. } in &missing.commits {
            let scratch = self.fetch_refs(request, &[request.name()], FetchFilter::All)?;
            self.cache.add_objects(&scratch, &[directory])?;
        }
        Ok(())
    }
}

/// The object format of a repository with this object id.
pub(super) fn format_of(id: &str) -> &'static str {
    if id.len() == 64 { "sha256" } else { "sha1" }
}

/// The commit that a fetch brought, with tags peeled, and the object that the tag names if the ref is a tag.
fn fetched_commit(
    directory: &Path,
    number: usize,
    reference: &str,
    budget: &Budget,
) -> Result<(String, Option<String>)> {
    let read =
        |name: &str| std::fs::read_to_string(directory.join(name)).map_err(|error| unreadable(&error.to_string()));
    let id = read(&format!("refs/kl/{number}"))?;
    let id = id.trim_end();
    // A tag object is peeled to its commit: a lock names commits, because a tag can also name a single file.
    let repository = open_fetched(directory, budget.memory())?;
    let commit = repository
        .find_object(object_id(id)?)
        .map_err(|error| unreadable(&error.to_string()))?
        .peel_to_kind(gix::object::Kind::Commit)
        .map_err(|_| unreadable(&format!("{id} is not a commit")))?;
    // git wrote the kind of the ref into FETCH_HEAD: `ID<tab>not-for-merge or nothing<tab>tag 'NAME' of URL`. A branch
    // may name the same commit.
    let name = reference.strip_prefix("refs/").unwrap_or(reference);
    let tag = format!("tag '{}' of ", name.strip_prefix("tags/").unwrap_or(name));
    let is_tag = read("FETCH_HEAD")?.lines().any(|line| {
        let mut fields = line.split('\t');
        fields.next() == Some(id) && fields.nth(1).is_some_and(|source| source.starts_with(&tag))
    });
    Ok((commit.id.to_string(), is_tag.then(|| id.to_owned())))
}

/// The failure of a commit that was fetched, but cannot be read.
fn unreadable(reason: &str) -> Failure {
    Failure::new(format!("cannot read the fetched commit: {reason}"))
}
