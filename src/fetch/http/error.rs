//! Why a URL could not be fetched, said without a secret.

use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;

use super::credentials::Source;
use crate::fetch::reach::{ALLOW, Zone};
use crate::message::failure::Failure;
use crate::message::redact;

/// Why a URL could not be fetched. Hosts are written as `host` or `host:port`; userinfo, path and query are not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpError {
    pub kind: Kind,
    message: String,
    hints: Vec<String>,
}

/// What sort of error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The final answer was not a success.
    Status {
        code: u16,
        /// Whether a redirect led to another scheme, host or port before.
        redirected: bool,
        /// How long the server asks to wait before the next try.
        retry_after: Option<Duration>,
    },
    /// What is there cannot be used: it is empty or too large.
    Unusable,
    /// The whole fetch, with redirects, retries and waits, took too long.
    Deadline,
    /// The host name could not be resolved.
    Dns,
    /// No connection, or one that broke.
    Connection,
    /// It is not asked for, or not trusted.
    Refused,
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl HttpError {
    pub(super) fn new(kind: Kind, message: impl Into<String>, hint: &str) -> HttpError {
        HttpError { kind, message: message.into(), hints: vec![hint.to_owned()] }
    }

    fn hint(mut self, hint: impl Into<String>) -> HttpError {
        self.hints.push(hint.into());
        self
    }

    pub(super) fn bad_url() -> HttpError {
        let hint = "write it as `https://HOST/PATH`, with special characters percent-encoded";
        HttpError::new(Kind::Refused, "it is not an http or https URL with a host", hint)
    }

    /// A redirect that is not followed.
    pub(super) fn redirect(what: &str) -> HttpError {
        let hint = "use a URL that serves the file itself over https";
        HttpError::new(Kind::Refused, format!("the server redirects {what}"), hint)
    }

    pub(super) fn setup(reason: &str) -> HttpError {
        let message = format!("the HTTP client cannot be set up: {reason}");
        HttpError { kind: Kind::Refused, message, hints: Vec::new() }
    }

    /// An upstream or a redirect leads further inwards than it may.
    pub(super) fn inwards(host: &str, zone: Zone) -> HttpError {
        let message = format!("{host} has {}, and only an upstream or a redirect leads there", zone.what());
        HttpError::new(Kind::Refused, message, ALLOW)
    }

    pub(super) fn empty() -> HttpError {
        let message = "the server answered with an empty body";
        HttpError::new(Kind::Unusable, message, "check that the URL names a file")
    }

    pub(super) fn too_large(limit: u64) -> HttpError {
        let message = format!("the file is too large: the limit is {}", crate::fetch::budget::bytes(limit));
        HttpError::new(Kind::Unusable, message, "check that the URL names one file of manifests, not an archive")
            .hint("to accept larger files, write `max-file-size: SIZE` in .kustomize-localize")
    }

    pub(super) fn deadline(after: Duration) -> HttpError {
        let message = format!("it took longer than {} s", after.as_secs_f64());
        HttpError::new(Kind::Deadline, message, "try again: the server or the network broke off")
    }

    pub(super) fn broken(message: String) -> HttpError {
        HttpError::new(Kind::Connection, message, "try again: the server or the network broke off")
    }

    /// No connection was made, as the host was not found or did not answer.
    pub(super) fn unreached(kind: Kind, message: String, hint: &str) -> HttpError {
        let error = HttpError::new(kind, message, hint);
        match proxy_variable() {
            Some(variable) => error.hint(format!("check the proxy that {variable} names")),
            None => error,
        }
    }

    pub(super) fn tls(host: &str, reason: &str) -> HttpError {
        // As rustls names it in its message.
        let hint = if reason.contains("UnknownIssuer") {
            "if the host uses a private CA, name its certificate in SSL_CERT_FILE; if this system has no CA certificates, install the package `ca-certificates`"
        } else {
            "check the host name, its certificate and the clock here"
        };
        HttpError::new(Kind::Refused, format!("no trusted connection to {host}: {reason}"), hint)
    }

    /// The final answer of `host` was not a success. `sent` is whose login the request carried.
    pub(super) fn status(
        code: u16,
        host: &str,
        redirected: bool,
        sent: Option<Source>,
        retry_after: Option<Duration>,
    ) -> HttpError {
        let phrase = StatusCode::from_u16(code).ok().and_then(|status| status.canonical_reason());
        let which = if redirected { ", to which it redirects," } else { "" };
        let message = format!("{host}{which} answered {code} {}", phrase.unwrap_or_default());
        let kind = Kind::Status { code, redirected, retry_after };
        HttpError {
            kind,
            message: message.trim_end().to_owned(),
            hints: status_hint(code, host, redirected, sent).into_iter().collect(),
        }
    }

    /// Returns the status code, when a server's final answer was not a success.
    pub(crate) fn is_status(&self) -> Option<u16> {
        match self.kind {
            Kind::Status { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Whether the same request may succeed a moment later.
    pub(in crate::fetch) fn is_transient(&self) -> bool {
        match self.kind {
            Kind::Status { code, .. } => matches!(code, 408 | 429 | 500..=599),
            Kind::Connection => true,
            // Resolvers say "no such host" and "ask again" with the same error kind. The texts are those of glibc, musl
            // and Windows; elsewhere a look-up is not repeated.
            Kind::Dns => ["temporary", "try again"].iter().any(|said| self.message.to_ascii_lowercase().contains(said)),
            Kind::Unusable | Kind::Deadline | Kind::Refused => false,
        }
    }

    /// Returns the failure to report for `url`, with what to do about it. The message names the redacted URL, unless it
    /// is one for all that is at a host.
    pub(crate) fn into_failure(self, url: &str) -> Failure {
        let is_of_host = self.kind == Kind::Dns || self.message.starts_with("cannot connect");
        let message = if is_of_host { self.message } else { format!("cannot fetch {}: {self}", redact::url(url)) };
        self.hints.into_iter().fold(Failure::new(message), Failure::hint)
    }
}

fn status_hint(code: u16, host: &str, redirected: bool, sent: Option<Source>) -> Option<String> {
    Some(match (code, sent) {
        // Credentials stop at the first redirect to elsewhere.
        (401 | 403, _) if redirected => {
            format!("credentials do not follow a redirect to another host: write the URL on {host} itself")
        }
        (401 | 403, None) => "if it needs a login, store one in git's credential helper: git credential approve; over plain http none is sent".into(),
        (401 | 403, Some(Source::Url)) => "check the user name and password in the URL".into(),
        (401 | 403, Some(Source::Helper)) => format!("check what git's credential helper knows about {host}"),
        (404 | 410, None) => {
            format!("check the URL; if the file is private, {host} may want a login: git credential approve")
        }
        (404 | 410, Some(_)) => "check the URL, and what the credentials give access to".into(),
        (407, _) => "put the proxy's user name and password into its URL".into(),
        (408 | 500..=599, _) => "try again later".into(),
        (429, _) => format!("wait before trying again; with credentials {host} may allow more requests"),
        _ => return None,
    })
}

/// The first proxy variable that is set. Its value may hold a password and is not looked at.
fn proxy_variable() -> Option<&'static str> {
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
        .into_iter()
        .find(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, redirected: bool, sent: Option<Source>) -> HttpError {
        HttpError::status(code, "example.com:8443", redirected, sent, None)
    }

    #[test]
    fn a_failure_names_the_url_without_its_secrets() {
        let failure = status(404, false, None).into_failure("https://me:hunter2@example.com:8443/a.yaml?token=hunter3");
        assert!(failure.message.contains("example.com:8443/a.yaml"), "{failure}");
        assert!(failure.message.ends_with("answered 404 Not Found"));
        assert!(!format!("{failure:?}").contains("hunter"));
    }

    #[test]
    fn the_hint_for_a_login_says_where_it_came_from() {
        let hints = |error: HttpError| error.hints.join("\n");
        assert!(hints(status(401, false, None)).contains("git credential approve"));
        assert!(hints(status(401, false, Some(Source::Url))).contains("in the URL"));
        assert!(hints(status(401, false, Some(Source::Helper))).contains("helper"));
        let redirected = status(401, true, None);
        assert!(redirected.to_string().starts_with("example.com:8443, to which"));
        assert!(hints(redirected).contains("on example.com:8443 itself"));
    }

    #[test]
    fn only_temporary_errors_are_transient() {
        for code in [408, 429, 500, 503, 599] {
            assert!(status(code, false, None).is_transient(), "{code}");
        }
        for code in [302, 400, 401, 403, 404, 410] {
            assert!(!status(code, false, None).is_transient(), "{code}");
        }
        let dns = |reason: &str| HttpError::unreached(Kind::Dns, format!("host h was not found: {reason}"), "");
        assert!(dns("Temporary failure in name resolution").is_transient());
        assert!(!dns("Name or service not known").is_transient());
    }

    #[test]
    fn a_deadline_is_shown_as_it_was_given() {
        assert_eq!(HttpError::deadline(Duration::from_secs(60)).to_string(), "it took longer than 60 s");
        assert_eq!(HttpError::deadline(Duration::from_millis(1500)).to_string(), "it took longer than 1.5 s");
    }
}
