//! Explains why a fetch with git failed, and how to mend it.

use std::time::Duration;

use super::GitRequest;
use crate::fetch::cache::HINT_CACHE_HOME;
use crate::fetch::http::RequestError;
use crate::fetch::{Network, limit, reach};
use crate::git::{self, Exchange};
use crate::message::failure::{Failure, FailureKind, command};
use crate::os::process;
use crate::reference::Pin;

/// Messages of git, the kind of failure that they mean, and a hint.
struct KnownMessage(&'static [&'static str], FailureKind, &'static str);

/// The first cause whose message git printed counts.
const CAUSES: [KnownMessage; 9] = [
    KnownMessage(
        &["could not read username", "could not read password"],
        FailureKind::Login,
        "it is private, or does not exist: make `git ls-remote` of that URL work, with a credential helper or `url.<base>.insteadOf`",
    ),
    KnownMessage(
        &["authentication failed", "permission denied (", "returned error: 401", "returned error: 403"],
        FailureKind::Login,
        "the server rejected the credentials: make `git ls-remote` of that URL work, with a credential helper, an ssh key, or `url.<base>.insteadOf`",
    ),
    KnownMessage(&["no space left"], FailureKind::Other, HINT_CACHE_HOME),
    KnownMessage(
        &["host key verification failed"],
        FailureKind::Login,
        "connect once with ssh to accept the host's key",
    ),
    KnownMessage(
        &[
            "could not resolve host",
            "name or service not known",
            "failed to connect to",
            "couldn't connect to server",
            "connection refused",
            "connection timed out",
            "no route to host",
            "network is unreachable",
        ],
        FailureKind::NoAnswer,
        "check the host's name, the network and the proxy (`https_proxy`)",
    ),
    KnownMessage(
        &["could not resolve proxy"],
        FailureKind::NoAnswer,
        "correct the proxy: `https_proxy`, or git's `http.proxy`",
    ),
    KnownMessage(&["returned error: 5"], FailureKind::NoConnection, "try again later: the server could not answer"),
    KnownMessage(
        &["certificate problem", "certificate verif", "certificate subject", "ssl ca cert", "certificate file"],
        FailureKind::Other,
        "if the host uses a private CA, name its certificate in git's `http.sslCAInfo`",
    ),
    KnownMessage(
        &[
            "repository not found",
            "could not be found",
            "does not exist",
            "does not appear to be a git repository",
            "returned error: 404",
            "returned error: 410",
        ],
        FailureKind::NoRepository,
        "check the URL (kustomize splits it after two segments, at `.git`, or at `//`); if the repository moved or is private, ask its owner",
    ),
];

impl Network {
    /// The failure of a git command that could not be run, or did not end in time.
    pub(in crate::fetch) fn not_run(&self, request: &GitRequest, error: process::Error) -> Failure {
        let is_late = matches!(error, process::Error::Deadline(..));
        let failure = git::not_run(error).context(request.url.shown());
        if !is_late {
            return failure;
        }
        failure.hint("to allow more time for a URL: add `timeout=SECONDS` to its query").because(FailureKind::NoAnswer)
    }

    /// The failure of a repository that answered, but does not have `reference`: a branch, a tag or a commit id.
    pub(in crate::fetch) fn no_such_ref(&self, request: &GitRequest, reference: &str) -> Failure {
        let shown = request.url.shown();
        let failure = match Pin::of(Some(reference)) {
            Pin::ShortCommit => {
                Failure::new(format!("{shown} has no ref `{reference}`, and a short commit id cannot be fetched"))
                    .hint("write the commit id in full, 40 digits")
            }
            Pin::Commit => Failure::new(format!("{shown} does not have commit {reference}"))
                .hint("it may be gone: use a commit in a branch or tag of the repository"),
            _ => Failure::new(format!("{shown} has no ref `{reference}`"))
                .hint(format!("list its refs: {}", command("git ls-remote", [&shown]))),
        };
        failure.because(FailureKind::NotInRepository)
    }

    /// The failure of a git command, with its kind, by which the caller decides what to try next, and a hint for the
    /// user. Both are taken from the output of git. `reference` is the ref that was requested.
    pub(in crate::fetch) fn explain(&self, request: &GitRequest, reference: &str, exchange: &Exchange) -> Failure {
        let output = &exchange.output;
        if output.says(&["couldn't find remote ref", "could not find remote ref", "not our ref", "unadvertised object"])
        {
            return self.no_such_ref(request, reference);
        }
        let failure = Failure::new(format!("could not fetch {}: {}", request.url.shown(), git::error_message(output)));
        // git has no error codes. A message that is not known gets no hint, because it could be wrong.
        let Some(KnownMessage(_, kind, hint)) = CAUSES.iter().find(|KnownMessage(messages, ..)| output.says(messages))
        else {
            return failure;
        };
        let hint = self.exact_hint(request, *kind, exchange).unwrap_or_else(|| (*hint).to_owned());
        failure.hint(hint).because(*kind)
    }

    /// A hint about this request that is more exact than the general hint for the kind of failure. `None` if there is
    /// nothing more to say.
    fn exact_hint(&self, request: &GitRequest, kind: FailureKind, exchange: &Exchange) -> Option<String> {
        match kind {
            FailureKind::NoRepository if exchange.has_login => {
                Some("it does not exist, or your login cannot read it: check both".to_owned())
            }
            FailureKind::Other if exchange.output.says(&["certificate", "ssl ca cert"]) => {
                let (name, file) =
                    self.remote_git.missing_certificate(&self.remote_git.rewritten(request.url.exposed()))?;
                Some(format!("`{name}` names a file that does not exist: {file}"))
            }
            _ => None,
        }
    }

    /// The error of a server that limits the rate of requests and demands to `wait` before the next one. The caller
    /// retries after that time, or with the user's login, which often has a higher limit.
    pub(in crate::fetch) fn limited(&self, request: &GitRequest, exchange: &Exchange, wait: Duration) -> RequestError {
        let words = match exchange.status {
            // Over ssh there is no status, and a success only says in a sentence that the server limits us.
            0 | 200..=299 => git::error_message(&exchange.output),
            401 => "it requires a login for refs that it listed without one".to_owned(),
            status => format!("it answered {status}"),
        };
        let host = reach::authority(request.url.exposed()).unwrap_or_default();
        let failure =
            limit::limit_failure(&words, &host, wait).context(format_args!("could not fetch {}", request.url.shown()));
        // If a login was sent already, such as that of the user's own header, no other is tried.
        RequestError { retry_after: Some(wait), wants_login: !exchange.has_login, ..failure.into() }
    }
}
