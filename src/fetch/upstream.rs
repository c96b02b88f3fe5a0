//! Asking what became upstream of what a lock lists: from the lock alone, and nothing is kept.
//!
//! What several entries need is asked once: a repository for all of its refs together, a file or a chart for its
//! bytes. Everything is asked side by side, and each question has the whole time limit to itself. Only of a branch
//! that is something else now is there a second question: what lies in between.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::IsTerminal;
use std::sync::Arc;

use super::budget::{Budget, MAX_FILE_SIZE};
use super::git::{Clock, GitRemotes, GitRequest, Listing};
use super::history::Course;
use super::reach::{Access, Reach};
use super::work::SIDE_BY_SIDE;
use super::{Cache, DEFAULT_TIMEOUT, Options, Progress, helm, http};
use crate::config::is_one_version;
use crate::git::RemoteGit;
use crate::graph::{ChartRef, NamedBy, Pulled};
use crate::kustomization;
use crate::message::failure::{Failure, FailureKind, Result};
use crate::message::redact;
use crate::os::parallel::side_by_side;
use crate::os::process::Terminal;
use crate::record::upstream::{Answer, Verdict};
use crate::record::{ChartRemote, Digest, FileRemote, GitRemote, Remote, chart_label, sha256_hex};
use crate::reference::{Pin, RepoSpec, file_pin, refuse_unsafe};

/// Asks upstream.
pub(crate) struct Upstream {
    git: GitRemotes,
    budget: Budget,
    client: Arc<http::Client>,
    progress: Progress,
}

/// What became of one remote, or why that is not known.
type Asked = Result<Answer>;

impl Upstream {
    /// Sets up asking. No request is sent yet.
    pub(crate) fn new(remote_git: RemoteGit, options: &Options) -> Result<Self> {
        let budget = Budget::new(options.max_file_size.unwrap_or(MAX_FILE_SIZE));
        let reach = Arc::new(Reach::new(remote_git.clone(), options.allow_private));
        let client = super::client(&remote_git, DEFAULT_TIMEOUT, &budget, &reach)?;
        Ok(Upstream {
            git: GitRemotes::new(
                remote_git,
                Cache::of_user(),
                DEFAULT_TIMEOUT,
                options.offline,
                budget.clone(),
                reach,
                client.clone(),
            ),
            budget,
            client,
            progress: Progress::new("fetching", options.quiet),
        })
    }

    /// Returns the state of each of these, in their order.
    pub(crate) fn ask(&self, remotes: &[&Remote]) -> Vec<Answer> {
        let mut answers: Vec<Option<Answer>> = Vec::new();
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, remote) in remotes.iter().enumerate() {
            let refused = refuse(remote).err().map(Answer::unreachable);
            if refused.is_none() {
                groups.entry(shown(remote)).or_default().push(index);
            }
            answers.push(refused);
        }
        let groups: Vec<(String, Vec<usize>)> = groups.into_iter().collect();
        let of_group = |indices: &[usize], terminal| {
            let group: Vec<&Remote> = indices.iter().map(|index| remotes[*index]).collect();
            self.group(&group, terminal)
        };
        self.progress.expect(groups.len());
        let asked = side_by_side(&groups, SIDE_BY_SIDE, |_, (what, indices)| {
            self.progress.begin(what);
            let asked = of_group(indices, Terminal::Detached);
            self.progress.end(what);
            asked
        });
        let may_ask = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        for ((_, indices), mut asked) in groups.iter().zip(asked) {
            let wants_login = |one: &Asked| one.as_ref().is_err_and(|failure| failure.kind == FailureKind::Login);
            if may_ask && asked.iter().any(wants_login) {
                // Alone, so that git can ask for a password.
                asked = self.progress.suspend(|| of_group(indices, Terminal::Shared));
            }
            for (index, asked) in indices.iter().zip(asked) {
                answers[*index] = Some(asked.unwrap_or_else(failed));
            }
        }
        self.progress.clear();
        let not_asked = || Answer::unreachable(Failure::new("it was not asked"));
        answers.into_iter().map(|answer| answer.unwrap_or_else(not_asked)).collect()
    }

    /// Asks for what one request tells of: entries of one repository, one file or one chart.
    fn group<'a>(&self, group: &[&'a Remote], terminal: Terminal) -> Vec<Asked> {
        let gits: Vec<&'a GitRemote> = group.iter().filter_map(|remote| git_of(remote)).collect();
        let names = gits.iter().map(|git| git.reference.as_deref().unwrap_or("HEAD"));
        let names: BTreeSet<&str> = names.filter(|name| Pin::of(Some(name)) != Pin::Commit).collect();
        let listing = names.first().map(|_| {
            let clock = Clock::start(DEFAULT_TIMEOUT, None);
            let names: Vec<&str> = names.iter().copied().collect();
            self.git.list(&request(&gits[0].url, None, None), &names, &clock, terminal)
        });
        let same_for_all = match group[0] {
            Remote::Git(_) => None,
            Remote::File(file) => Some(self.file(file)),
            Remote::Chart(chart) => Some(self.chart(chart)),
        };
        // Two entries may differ in their submodules alone.
        let mut known: HashMap<(Option<&str>, &str), Asked> = HashMap::new();
        let mut of_git = |git: &'a GitRemote, asked: &dyn Fn() -> Asked| {
            known.entry((git.reference.as_deref(), &git.commit)).or_insert_with(asked).clone()
        };
        let answer = |remote: &&'a Remote| match (remote, &listing, &same_for_all) {
            (Remote::Git(git), _, _) if Pin::of(git.reference.as_deref()) == Pin::Commit => {
                of_git(git, &|| self.given(git, terminal))
            }
            (Remote::Git(git), Some(Ok(listing)), _) => of_git(git, &|| self.of_ref(git, listing, terminal)),
            (_, Some(Err(failure)), _) | (_, _, Some(Err(failure))) => Err(failure.clone()),
            (_, _, Some(Ok(answer))) if answer.now == Some(remote.digest()) => Ok(Answer::ok(remote.digest())),
            (_, _, Some(Ok(answer))) => Ok(answer.clone()),
            (_, _, None) => Err(Failure::new("it was not asked")),
        };
        group.iter().map(answer).collect()
    }

    /// Asks for an object by its id.
    fn given(&self, git: &GitRemote, terminal: Terminal) -> Asked {
        let id = git.reference.as_deref().unwrap_or_default().to_ascii_lowercase();
        let now = self.git.given(&request(&git.url, Some(&id), None), &id, DEFAULT_TIMEOUT, terminal)?;
        let is_same = now == git.commit;
        let now = Digest::GitCommit(now);
        if is_same {
            Ok(Answer::ok(now))
        } else {
            Ok(Answer::moved(Some(now), format!("that is what `{id}` stands for")))
        }
    }

    /// Returns what it means what a ref of a repository is now.
    fn of_ref(&self, git: &GitRemote, listing: &Listing, terminal: Terminal) -> Asked {
        let reference = git.reference.as_deref().unwrap_or("HEAD");
        let Some((name, id)) = listing.find(reference) else {
            return Ok(Answer::gone(match reference {
                "HEAD" => "the repository has no HEAD: it is empty".to_owned(),
                reference => format!("the repository has no ref `{reference}` any more"),
            }));
        };
        let now = Some(Digest::GitCommit(id.clone()));
        if id == git.commit {
            return Ok(Answer::ok(Digest::GitCommit(id)));
        }
        if let Some(tag) = name.strip_prefix("refs/tags/") {
            let hides = match listing.id(&format!("refs/heads/{tag}")) {
                Some(_) if tag == reference => ", and hides the branch of that name",
                _ => "",
            };
            return Ok(Answer::moved(now, format!("the tag `{tag}` names another commit{hides}")));
        }
        let name = match name.strip_prefix("refs/heads/") {
            Some(branch) => format!("the branch `{branch}`"),
            None => format!("`{name}`"),
        };
        let request = request(&git.url, git.reference.as_deref(), Some(&id));
        Ok(match self.git.history_now(&request, &git.commit, DEFAULT_TIMEOUT, terminal) {
            Ok(history) => match history.course {
                Course::Forward => Answer {
                    verdict: Verdict::Updated,
                    commits: Some(history.commits),
                    newest: history.newest,
                    ..Answer::moved(now, format!("{name} moved forward"))
                },
                Course::Back => Answer::moved(now, format!("{name} was set back to an older commit")),
                Course::Apart => Answer::moved(now, format!("{name} was rewritten: it does not contain what it was")),
            },
            // It may be asked again.
            Err(failure) if failure.kind == FailureKind::Login && terminal == Terminal::Detached => {
                return Err(failure);
            }
            Err(failure) => {
                let failure = failure.context(format_args!("{name} has moved, it is not known how"));
                Answer { now, ..Answer::unreachable(failure) }
            }
        })
    }

    /// Returns what a file would be if it were not what the lock says.
    fn file(&self, file: &FileRemote) -> Asked {
        let url = &file.url;
        match self.client.get(url, Access::FREE) {
            Ok(body) => {
                let is_page = kustomization::looks_like_html(&body.bytes);
                Ok(Answer::moved(Some(Digest::Sha256(sha256_hex(&body.bytes))), other_bytes(url, is_page)))
            }
            Err(error) if error.kind == http::Kind::Unusable => Ok(Answer::moved(None, error.to_string())),
            Err(error) if matches!(error.is_status(), Some(404 | 410)) => Ok(Answer::gone(error.to_string())),
            Err(error) => Err(error.into_failure(url).because(FailureKind::NoAnswer)),
        }
    }

    /// The same for the archive of a chart.
    fn chart(&self, remote: &ChartRemote) -> Asked {
        let chart = ChartRef {
            repo: remote.url.clone().into(),
            name: remote.chart.clone(),
            version: remote.version.clone().unwrap_or_default(),
            // Without a version helm takes no pre-release unless it gets `--devel`, which the lock does not record.
            devel: remote.version.is_none() && remote.resolved.as_ref().is_some_and(|version| version.contains('-')),
        };
        chart.refuse_unsafe()?;
        match helm::pull(&chart, Access::FREE.named, DEFAULT_TIMEOUT, &self.budget)? {
            helm::Got::Bytes(bytes) => {
                let version = match helm::unpacked(&chart, &bytes) {
                    Ok(Pulled::Archive(archive)) => Ok(archive.resolved.clone()),
                    Ok(Pulled::Left) => Err("charts are not brought in".to_owned()),
                    Err(failure) => Err(failure.message),
                };
                Ok(of_chart(remote, Some(Digest::Sha256(sha256_hex(&bytes))), &version))
            }
            helm::Got::NoHelm => {
                let message = format!("{}: there is no helm on PATH to ask for it", chart.label());
                Err(Failure::new(message).hint("helm must be on PATH"))
            }
        }
    }
}

/// Returns a request about a repository that the user's lock names.
fn request(url: &str, reference: Option<&str>, commit: Option<&str>) -> GitRequest {
    GitRequest {
        url: url.into(),
        reference: reference.map(str::to_owned),
        commit: commit.map(str::to_owned),
        by: NamedBy::User,
        is_submodule: false,
    }
}

fn git_of(remote: &Remote) -> Option<&GitRemote> {
    match remote {
        Remote::Git(git) => Some(git),
        Remote::File(_) | Remote::Chart(_) => None,
    }
}

/// Returns what one request tells of, as it may be shown.
fn shown(remote: &Remote) -> String {
    match remote {
        Remote::Git(git) => redact::url(&git.url),
        Remote::File(file) => redact::url(&file.url),
        Remote::Chart(chart) => chart_label(&redact::url(&chart.url), &chart.chart, chart.version.as_deref()),
    }
}

/// Refuses what cannot be asked for, and what a walk would refuse as well: a lock comes with a pull request.
fn refuse(remote: &Remote) -> Result<()> {
    let (Remote::Git(GitRemote { url, .. })
    | Remote::File(FileRemote { url, .. })
    | Remote::Chart(ChartRemote { url, .. })) = remote;
    if redact::lacks_secret(url) {
        return Err(Failure::new(format!("{url} cannot be asked for: the lock does not hold the secret in it"))
            .hint("leave secrets out of URLs: git's credential helpers are asked for them"));
    }
    let Some(git) = git_of(remote) else {
        return Ok(());
    };
    let refused =
        |why: &str| Failure::new(format!("{url} is refused: {why}")).hint("find out how it came into the lock");
    let text = format!("{url}//.");
    let mut spec = RepoSpec::parse(&text)
        .ok()
        .filter(|spec| spec.clone_spec().shown() == *url)
        .ok_or_else(|| refused("no kustomization can name such a repository"))?;
    spec.reference.clone_from(&git.reference);
    refuse_unsafe(&text, Some(&spec)).map_err(|reason| refused(&reason.to_string()))
}

/// Explains why a URL may give other bytes.
fn other_bytes(url: &str, is_page: bool) -> String {
    match file_pin(url) {
        _ if is_page => "it is a web page, which may be a login".to_owned(),
        Some((Pin::Tag | Pin::Commit, version)) => {
            format!("`{version}` should never change, but it holds other bytes")
        }
        _ => "it holds other bytes".to_owned(),
    }
}

/// Returns what a failure to answer means.
fn failed(failure: Failure) -> Answer {
    match failure.kind {
        FailureKind::NotInRepository | FailureKind::NoRepository => Answer::gone(failure.message),
        FailureKind::Login | FailureKind::NoAnswer | FailureKind::NoConnection | FailureKind::Other => {
            Answer::unreachable(failure)
        }
    }
}

/// Returns what it means that a chart has another archive, of a version if it is one.
fn of_chart(chart: &ChartRemote, now: Option<Digest>, version: &Result<String, String>) -> Answer {
    let is = match version {
        Ok(version) => version,
        Err(why) => return Answer::moved(now, why),
    };
    let was = chart.resolved.as_ref().or(chart.version.as_ref());
    let floats = !chart.version.as_deref().is_some_and(is_one_version);
    match was.filter(|was| *was != is) {
        None => Answer::moved(now, "it is another archive of the same version"),
        Some(was) => Answer {
            verdict: if floats && newer(is, was) { Verdict::Updated } else { Verdict::Moved },
            ..Answer::moved(now, format!("it is version {is} now, was {was}"))
        },
    }
}

/// Returns whether a version comes after another one, as far as their numbers tell.
fn newer(version: &str, than: &str) -> bool {
    let numbers = |version: &str| -> Vec<u64> {
        let version = version.trim_start_matches('v');
        let numbers = version.split(['-', '+']).next().unwrap_or_default();
        numbers.split('.').map_while(|n| n.parse().ok()).collect()
    };
    let is_whole = |version: &str| !version.contains('-');
    match numbers(version).cmp(&numbers(than)) {
        std::cmp::Ordering::Greater => true,
        // A version comes after its pre-releases; the order of pre-releases is ignored.
        std::cmp::Ordering::Equal => is_whole(version) >= is_whole(than) && version != than,
        std::cmp::Ordering::Less => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (version, than, expected) in [
            ("1.10.0", "1.9.3", true),
            ("1.2.3", "1.2.3", false),
            ("1.2.2", "1.2.3", false),
            ("v2.0.0", "1.2.3", true),
            ("1.2.3", "1.2.3-rc.1", true),
            ("1.2.3-rc.1", "1.2.3", false),
            ("1.2.3-rc.2", "1.2.3-rc.1", true),
            ("0.0.1", "1.2.3+build", false),
        ] {
            assert_eq!(newer(version, than), expected, "{version} after {than}");
        }
    }

    #[test]
    fn only_versions_that_a_kustomization_can_name_are_asked() {
        let git = |url: &str, reference: Option<&str>| GitRemote {
            url: url.to_owned(),
            reference: reference.map(str::to_owned),
            submodules: true,
            commit: "0".repeat(40),
            paths: BTreeSet::new(),
            through: BTreeSet::new(),
        };
        for url in [
            "https://github.com/acme/lib",
            "https://github.com/acme/lib.git",
            "https://gitlab.com/a/b/c",
            "https://dev.azure.com/org/project/_git/repo",
            "https://localhost:8443/git/acme/base",
            "git@github.com:acme/lib",
            "ssh://git@example.com:2222/acme/lib.git",
            "file:///srv/acme/lib",
            "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/lib",
        ] {
            for reference in [None, Some("v1"), Some("feature/a+b"), Some("größe")] {
                refuse(&Remote::Git(git(url, reference))).unwrap();
            }
        }
        for (url, reference) in [
            ("ext::sh -c id", None),
            ("/srv/acme/lib", None),
            ("../lib", None),
            ("git://example.com/acme/lib", None),
            ("https://-host/acme/lib", None),
            ("https://example.com/../lib", None),
            ("https://github.com/acme/lib", Some("a..b")),
            ("https://github.com/acme/lib", Some("--upload-pack=id")),
        ] {
            refuse(&Remote::Git(git(url, reference))).unwrap_err();
        }
    }
}
