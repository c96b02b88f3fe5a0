//! Why a fetch failed, and what to do about it.

use super::GitRequest;
use crate::fetch::network::{Clock, Network};
use crate::git;
use crate::message::failure::{Failure, FailureKind, command};
use crate::os::process::{self, Output};
use crate::reference::Pin;

/// What to do where there is no such repository.
pub(in crate::fetch) const CHECK_URL: &str =
    "check the URL: kustomize splits it after two segments, at `.git`, or where `//` stands";

impl Network {
    pub(in crate::fetch) fn not_run(&self, request: &GitRequest, error: process::Error, clock: &Clock) -> Failure {
        let shown = request.url.shown();
        match error {
            process::Error::Deadline(..) => {
                Failure::new(format!("{shown} did not answer within {} s", clock.timeout.as_secs()))
                    .hint("give it more time: write `timeout=SECONDS` into the query of its URL")
                    .because(FailureKind::NoAnswer)
            }
            error => git::not_run(error),
        }
    }

    pub(in crate::fetch) fn no_such_ref(&self, request: &GitRequest, reference: &str) -> Failure {
        let shown = request.url.shown();
        let failure = match Pin::of(Some(reference)) {
            Pin::ShortCommit => {
                Failure::new(format!("{shown} has no ref `{reference}`, and a short commit id cannot be fetched"))
                    .hint("write the commit id in full, 40 digits")
            }
            Pin::Commit => Failure::new(format!("{shown} does not have commit {reference}"))
                .hint("it may be gone: name a commit that a branch or a tag of the repository reaches"),
            _ => Failure::new(format!("{shown} has no ref `{reference}`"))
                .hint(format!("list what there is: {}", command("git ls-remote", [&shown]))),
        };
        failure.because(FailureKind::NotInRepository)
    }

    pub(in crate::fetch) fn explain(&self, request: &GitRequest, reference: &str, output: &Output) -> Failure {
        let shown = request.url.shown();
        let said = git::said(output);
        if output.says(&["couldn't find remote ref", "could not find remote ref", "not our ref", "unadvertised object"])
        {
            return self.no_such_ref(request, reference);
        }
        if output.says(&[
            "authentication failed",
            "could not read username",
            "could not read password",
            "permission denied (",
            "terminal prompts disabled",
            "the requested url returned error: 401",
            "the requested url returned error: 403",
            "invalid credentials",
        ]) {
            return Failure::new(format!("{shown} wants credentials, or refuses those it got: {said}"))
                .hint(
                    "make `git ls-remote` of that URL work: a credential helper, an ssh key, or `url.<base>.insteadOf`",
                )
                .because(FailureKind::Login);
        }
        if output.says(&["host key verification failed"]) {
            return Failure::new(format!("could not fetch {shown}: {said}"))
                .hint("connect once with ssh to accept the host's key")
                .because(FailureKind::Login);
        }
        let failure = Failure::new(format!("could not fetch {shown}: {said}"));
        if output.says(&[
            "could not resolve host",
            "name or service not known",
            "failed to connect to",
            "couldn't connect to server",
            "connection refused",
            "connection timed out",
            "no route to host",
            "network is unreachable",
        ]) {
            return failure.hint("check the host's name, the network and the proxy").because(FailureKind::NoAnswer);
        }
        if output.says(&["the requested url returned error: 5"]) {
            return failure.hint("try again later: the server could not answer").because(FailureKind::NoConnection);
        }
        if output.says(&[
            "certificate problem",
            "certificate verif",
            "certificate chain",
            "certificate subject",
            "peer certificate",
        ]) {
            return failure.hint("if the host uses a private CA, name its certificate in git's `http.sslCAInfo`");
        }
        if output.says(&[
            "not found",
            "could not be found",
            "does not exist",
            "does not appear to be a git repository",
            "returned error: 404",
            "returned error: 410",
        ]) {
            // A program that is missing at the other end gives the same message.
            let trouble =
                if output.says(&["command not found"]) { FailureKind::Other } else { FailureKind::NoRepository };
            return failure.hint(CHECK_URL).because(trouble);
        }
        if output.says(&["no space left"]) { failure.hint(self.cache.room()) } else { failure }
    }
}
