//! Asking what became upstream of what a lock lists: from the lock alone, and nothing is kept.
//!
//! What several entries need is asked once: a repository for all of its refs together, a file or a chart for its
//! bytes. Everything is asked side by side, and each question has the whole time limit to itself. Only of a branch
//! that is something else now is there a second question: what lies in between.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::budget::{Budget, MAX_FILE_SIZE};
use super::git::{Clock, FetchFailure, GitRemotes, GitRequest, Listing, Trouble};
use super::history::{Course, History};
use super::reach::{Access, Reach};
use super::work::SIDE_BY_SIDE;
use super::{Cache, DEFAULT_TIMEOUT, Options, Progress, helm, http};
use crate::config::is_one_version;
use crate::git::RemoteGit;
use crate::graph::{ChartRef, NamedBy, Pulled};
use crate::kustomization;
use crate::message::failure::{Failure, Result};
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

/// What to ask upstream.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Question {
    /// A repository, what its refs are: all those that some entry names.
    Refs { url: String },
    /// A repository, for a commit or a tag object by its id.
    Object { url: String, id: String },
    /// A repository, what lies between two commits.
    History { url: String, reference: Option<String>, old: String, new: String },
    /// A server, for a file.
    File { url: String },
    /// helm, for a chart.
    Chart { url: String, chart: String, version: Option<String>, devel: bool },
}

/// What was answered.
enum Reply {
    Refs(Listing),
    /// The commit.
    Object(String),
    History(History),
    /// The digest of the bytes, and whether they are a page for people.
    File(String, bool),
    /// There is a file that cannot be used: why.
    BadFile(String),
    /// There is no such file: why.
    NoFile(String),
    /// The digest of the archive, and the version that it is, or why it is refused.
    Chart(String, Result<String, String>),
}

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
        let mut references: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for remote in remotes {
            if let Remote::Git(git) = remote {
                let reference = git.reference.as_deref().unwrap_or("HEAD");
                references.entry(&git.url).or_default().insert(reference);
            }
        }
        let first: Vec<Result<Question>> = remotes.iter().map(|remote| question(remote)).collect();
        let asked = self.replies(first.iter().flatten(), &references);
        let judged: Vec<Judged> = remotes
            .iter()
            .zip(&first)
            .map(|(remote, question)| match question {
                Ok(question) => judge(remote, &asked[question]),
                Err(failure) => Judged::Done(Answer::unreachable(failure.clone())),
            })
            .collect();
        let further = judged.iter().filter_map(|judged| match judged {
            Judged::Open { question, .. } => Some(question),
            Judged::Done(_) => None,
        });
        let known = self.replies(further, &references);
        self.progress.clear();
        let answers = judged.iter().map(|judged| match judged {
            Judged::Done(answer) => answer.clone(),
            Judged::Open { question, name, now } => concluded(&known[question], name, now),
        });
        answers.collect()
    }

    /// Asks each question once.
    fn replies<'q>(
        &self,
        questions: impl Iterator<Item = &'q Question>,
        references: &BTreeMap<&str, BTreeSet<&str>>,
    ) -> BTreeMap<&'q Question, Result<Reply, FetchFailure>> {
        let questions: Vec<&Question> = BTreeSet::from_iter(questions).into_iter().collect();
        self.progress.expect(questions.len());
        let replies = side_by_side(&questions, SIDE_BY_SIDE, |_, question| {
            let shown = question.shown();
            self.progress.begin(&shown);
            let reply = self.reply(question, references, Terminal::Detached);
            self.progress.end(&shown);
            reply
        });
        let may_ask = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        let replies = questions.into_iter().zip(replies).map(|(question, reply)| {
            let reply = match reply {
                // Alone, so that git can ask for a password.
                Err(failure) if failure.trouble == Trouble::Login && may_ask => {
                    self.progress.suspend(|| self.reply(question, references, Terminal::Shared))
                }
                reply => reply,
            };
            (question, reply)
        });
        replies.collect()
    }

    fn reply(
        &self,
        question: &Question,
        references: &BTreeMap<&str, BTreeSet<&str>>,
        terminal: Terminal,
    ) -> Result<Reply, FetchFailure> {
        let request = |url: &str, reference: Option<&str>, commit: Option<&str>| GitRequest {
            url: url.into(),
            reference: reference.map(str::to_owned),
            commit: commit.map(str::to_owned),
            by: NamedBy::User,
            is_submodule: false,
        };
        match question {
            Question::Refs { url } => {
                let references: Vec<&str> = references.get(url.as_str()).into_iter().flatten().copied().collect();
                let clock = Clock::start(DEFAULT_TIMEOUT, None);
                let request = request(url, None, None);
                let listing = self.git.list(&request, &references, &clock, terminal)?;
                Ok(Reply::Refs(listing))
            }
            Question::Object { url, id } => {
                let request = request(url, Some(id), None);
                let commit = self.git.given(&request, id, DEFAULT_TIMEOUT, terminal)?;
                Ok(Reply::Object(commit))
            }
            Question::History { url, reference, old, new } => {
                let request = request(url, reference.as_deref(), Some(new));
                let history = self.git.history_now(&request, old, DEFAULT_TIMEOUT, terminal)?;
                Ok(Reply::History(history))
            }
            Question::File { url } => self.file(url),
            Question::Chart { url, chart, version, devel } => self.chart(&ChartRef {
                repo: url.clone().into(),
                name: chart.clone(),
                version: version.clone().unwrap_or_default(),
                devel: *devel,
            }),
        }
    }

    fn file(&self, url: &str) -> Result<Reply, FetchFailure> {
        match self.client.get(url, Access::FREE, &AtomicBool::new(false)) {
            Ok(body) => {
                let is_page = kustomization::looks_like_html(&body.bytes);
                Ok(Reply::File(sha256_hex(&body.bytes), is_page))
            }
            Err(error @ (http::HttpError::Empty | http::HttpError::TooLarge { .. })) => {
                Ok(Reply::BadFile(error.to_string()))
            }
            Err(error) => match error.is_status() {
                Some(404 | 410) => Ok(Reply::NoFile(error.to_string())),
                _ => Err(error.into_failure(url).because(Trouble::NoAnswer)),
            },
        }
    }

    fn chart(&self, chart: &ChartRef) -> Result<Reply, FetchFailure> {
        chart.refuse_unsafe()?;
        match helm::pull(chart, Access::FREE.named, DEFAULT_TIMEOUT, &self.budget)? {
            helm::Got::Bytes(bytes) => {
                let version = match helm::unpacked(chart, &bytes) {
                    Ok(Pulled::Archive(archive)) => Ok(archive.resolved.clone()),
                    Ok(Pulled::Left) => Err("charts are not brought in".to_owned()),
                    Err(failure) => Err(failure.message),
                };
                Ok(Reply::Chart(sha256_hex(&bytes), version))
            }
            helm::Got::NoHelm => {
                Err(Failure::new(format!("{}: there is no helm on PATH to ask for it", chart.label()))
                    .hint("helm must be on PATH")
                    .into())
            }
        }
    }
}

impl Question {
    fn shown(&self) -> String {
        match self {
            Question::Refs { url }
            | Question::Object { url, .. }
            | Question::History { url, .. }
            | Question::File { url } => redact::url(url),
            Question::Chart { url, chart, version, .. } => chart_label(&redact::url(url), chart, version.as_deref()),
        }
    }
}

/// Returns what has to be asked about a remote.
fn question(remote: &Remote) -> Result<Question> {
    let (Remote::Git(GitRemote { url, .. })
    | Remote::File(FileRemote { url, .. })
    | Remote::Chart(ChartRemote { url, .. })) = remote;
    if redact::lacks_secret(url) {
        return Err(Failure::new(format!("{url} cannot be asked for: the lock does not hold the secret in it"))
            .hint("leave secrets out of URLs: git's credential helpers are asked for them"));
    }
    Ok(match remote {
        Remote::Git(git) => {
            refuse(git)?;
            match git.reference.as_deref() {
                Some(reference) if Pin::of(Some(reference)) == Pin::Commit => {
                    Question::Object { url: url.clone(), id: reference.to_ascii_lowercase() }
                }
                _ => Question::Refs { url: url.clone() },
            }
        }
        Remote::File(_) => Question::File { url: url.clone() },
        Remote::Chart(chart) => Question::Chart {
            url: url.clone(),
            chart: chart.chart.clone(),
            version: chart.version.clone(),
            // Without a version helm takes no pre-release unless it gets `--devel`, which the lock does not record.
            devel: chart.version.is_none() && chart.resolved.as_ref().is_some_and(|version| version.contains('-')),
        },
    })
}

/// Refuses what a walk would refuse as well: a lock comes with a pull request.
fn refuse(git: &GitRemote) -> Result<()> {
    let refused =
        |why: &str| Failure::new(format!("{} is refused: {why}", git.url)).hint("find out how it came into the lock");
    let text = format!("{}//.", git.url);
    let mut spec = RepoSpec::parse(&text)
        .ok()
        .filter(|spec| spec.clone_spec().shown() == git.url)
        .ok_or_else(|| refused("no kustomization can name such a repository"))?;
    spec.reference.clone_from(&git.reference);
    refuse_unsafe(&text, Some(&spec)).map_err(|reason| refused(&reason.to_string()))
}

/// What can be said after the first question.
enum Judged {
    Done(Answer),
    /// A ref that is not a tag names something else now.
    Open {
        question: Question,
        /// What it is: ``the branch `main` ``.
        name: String,
        now: String,
    },
}

fn judge(remote: &Remote, reply: &Result<Reply, FetchFailure>) -> Judged {
    let reply = match reply {
        Ok(reply) => reply,
        Err(failure) => return Judged::Done(failed(failure)),
    };
    Judged::Done(match (remote, reply) {
        (Remote::Git(git), Reply::Refs(listing)) => return of_ref(git, listing),
        (Remote::Git(git), Reply::Object(now)) => same_or(remote, Digest::GitCommit(now.clone()), |now| {
            let reference = git.reference.as_deref().unwrap_or_default();
            Answer::moved(now, format!("that is what `{reference}` stands for"))
        }),
        (Remote::File(file), Reply::File(now, is_page)) => {
            same_or(remote, Digest::Sha256(now.clone()), |now| Answer::moved(now, other_bytes(&file.url, *is_page)))
        }
        (Remote::File(_), Reply::BadFile(why)) => Answer::moved(None, why),
        (Remote::File(_), Reply::NoFile(why)) => Answer::gone(why),
        (Remote::Chart(chart), Reply::Chart(now, version)) => {
            same_or(remote, Digest::Sha256(now.clone()), |now| of_chart(chart, now, version))
        }
        // Every question has its own sort of reply.
        _ => Answer::unreachable(Failure::new(format!("{} was not asked", remote.label()))),
    })
}

fn same_or(remote: &Remote, now: Digest, otherwise: impl FnOnce(Option<Digest>) -> Answer) -> Answer {
    if now == remote.digest() { Answer::ok(now) } else { otherwise(Some(now)) }
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
fn failed(failure: &FetchFailure) -> Answer {
    match failure.trouble {
        Trouble::NotInRepository | Trouble::NoRepository => Answer::gone(failure.failure.message.clone()),
        Trouble::Login | Trouble::NoAnswer | Trouble::NoConnection | Trouble::Other => {
            Answer::unreachable(failure.failure.clone())
        }
    }
}

fn of_ref(git: &GitRemote, listing: &Listing) -> Judged {
    let reference = git.reference.as_deref().unwrap_or("HEAD");
    let Some((name, now)) = listing.find(reference) else {
        return Judged::Done(Answer::gone(match reference {
            "HEAD" => "the repository has no HEAD: it is empty".to_owned(),
            reference => format!("the repository has no ref `{reference}` any more"),
        }));
    };
    let digest = Digest::GitCommit(now.clone());
    if now == git.commit {
        return Judged::Done(Answer::ok(digest));
    }
    if let Some(tag) = name.strip_prefix("refs/tags/") {
        let hides = match listing.id(&format!("refs/heads/{tag}")) {
            Some(_) if tag == reference => ", and hides the branch of that name",
            _ => "",
        };
        let why = format!("the tag `{tag}` names another commit{hides}");
        return Judged::Done(Answer::moved(Some(digest), why));
    }
    Judged::Open {
        question: Question::History {
            url: git.url.clone(),
            reference: git.reference.clone(),
            old: git.commit.clone(),
            new: now.clone(),
        },
        name: match name.strip_prefix("refs/heads/") {
            Some(branch) => format!("the branch `{branch}`"),
            None => format!("`{name}`"),
        },
        now,
    }
}

/// Returns what it means that a ref which is not a tag names another commit.
fn concluded(reply: &Result<Reply, FetchFailure>, name: &str, now: &str) -> Answer {
    let now = Some(Digest::GitCommit(now.to_owned()));
    let history = match reply {
        Ok(Reply::History(history)) => history,
        Ok(_) => return Answer::moved(now, format!("{name} names another commit")),
        Err(failure) => {
            let failure = failure.failure.clone();
            return Answer {
                now,
                ..Answer::unreachable(failure.context(format_args!("{name} has moved, it is not known how")))
            };
        }
    };
    match history.course {
        Course::Forward => Answer {
            verdict: Verdict::Updated,
            commits: Some(history.commits),
            newest: history.newest.clone(),
            ..Answer::moved(now, format!("{name} moved forward"))
        },
        Course::Back => Answer::moved(now, format!("{name} was set back to an older commit")),
        Course::Apart => Answer::moved(now, format!("{name} was rewritten: it does not contain what it was")),
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
                refuse(&git(url, reference)).unwrap();
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
            refuse(&git(url, reference)).unwrap_err();
        }
    }
}
