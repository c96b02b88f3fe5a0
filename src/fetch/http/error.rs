//! Why a URL could not be fetched, said without a secret.

use std::time::Duration;

use reqwest::StatusCode;

use super::credentials::Source;
use crate::fetch::reach::{ALLOW, Zone};
use crate::message::failure::Failure;
use crate::message::redact;

/// Why a URL could not be fetched.
///
/// Hosts are written as `host` or `host:port`. No variant holds userinfo, a path or a query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HttpError {
    /// The text is not an `http` or `https` URL with a host.
    #[error("it is not an http or https URL with a host")]
    BadUrl,
    /// The final answer was not a success (2xx). A redirect that cannot be followed, because it
    /// names no target, also comes out as its status.
    #[error("{}", status_text(*.code, .host, *.redirected))]
    Status {
        /// The status code of the answer.
        code: u16,
        /// Who answered.
        host: String,
        /// Whether a redirect led to another scheme, host or port before that answer.
        redirected: bool,
        /// Whose credentials the request carried.
        sent: Option<Source>,
        /// How long the server asks to wait before the next try.
        retry_after: Option<Duration>,
    },
    /// The answer was a success without a body.
    #[error("the server answered with an empty body")]
    Empty,
    /// The decoded body is larger than [`Options::max_bytes`](super::Options::max_bytes).
    #[error("the file is too large: the limit is {}", crate::fetch::budget::bytes(*.limit))]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The whole fetch, with redirects, retries and waits, took longer than
    /// [`Options::deadline`](super::Options::deadline).
    #[error("it took longer than {}", seconds(*.after))]
    Deadline {
        /// The limit.
        after: Duration,
    },
    /// The body ended before its announced end, or could not be decoded.
    #[error("the answer ended early or is damaged after {received} bytes: {reason}")]
    Truncated {
        /// The decoded bytes that arrived.
        received: u64,
        /// What the transport said.
        reason: String,
    },
    /// A redirect that is not followed.
    #[error(transparent)]
    Redirect(#[from] RedirectError),
    /// The host name could not be resolved.
    #[error("host {host} was not found: {reason}")]
    Dns {
        /// The host that was looked up (a proxy's look-up fails under the name of the target).
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// No connection could be made.
    #[error("cannot connect to {host}: {reason}")]
    Connect {
        /// The host that was meant.
        host: String,
        /// What the system said.
        reason: String,
    },
    /// The connection broke, or what came was not HTTP.
    #[error("the connection to {host} failed: {reason}")]
    Lost {
        /// The host that was meant.
        host: String,
        /// What the transport said.
        reason: String,
    },
    /// The TLS handshake failed, as a rule because the certificate is not trusted.
    #[error("no trusted connection to {host}: {reason}")]
    Tls {
        /// The host that was meant.
        host: String,
        /// What the verifier said.
        reason: String,
    },
    /// An upstream or a redirect leads there, further inwards than it may.
    #[error("{host} has {}, and only an upstream or a redirect leads there", .zone.what())]
    Inwards {
        /// The host.
        host: String,
        /// Where it lies.
        zone: Zone,
    },
    /// The HTTP client could not be built.
    #[error("the HTTP client cannot be set up: {reason}")]
    Setup {
        /// What is missing.
        reason: String,
    },
    /// The caller asked to stop.
    #[error("it was interrupted")]
    Cancelled,
}

/// A redirect that is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RedirectError {
    /// More redirects than are followed: as a rule a loop.
    #[error("the server redirected more than {limit} times")]
    TooMany {
        /// How many are followed.
        limit: usize,
    },
    /// From `https` to `http`.
    #[error("the server redirects from https to http, to host {host}")]
    Downgrade {
        /// The target's host.
        host: String,
    },
    /// To a scheme other than `http` and `https`.
    #[error("the server redirects to something other than http or https")]
    Scheme,
    /// To something that is not a URL.
    #[error("the server redirects to something that is not a URL")]
    Target,
}

impl HttpError {
    /// Returns the status code, when a server's final answer was not a success.
    pub(crate) fn is_status(&self) -> Option<u16> {
        match self {
            HttpError::Status { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the same request may succeed a moment later.
    pub(in crate::fetch) fn is_transient(&self) -> bool {
        match self {
            HttpError::Status { code, .. } => matches!(code, 408 | 429 | 500..=599),
            HttpError::Truncated { .. } | HttpError::Connect { .. } | HttpError::Lost { .. } => true,
            // Resolvers say "no such host" and "ask again" with the same error kind. The texts are
            // those of glibc, musl and Windows; elsewhere a look-up is not repeated.
            HttpError::Dns { reason, .. } => {
                let reason = reason.to_ascii_lowercase();
                reason.contains("temporary") || reason.contains("try again")
            }
            _ => false,
        }
    }

    /// Returns the failure to report for `url`, with what to do about it.
    ///
    /// The message names the redacted URL.
    pub(crate) fn into_failure(self, url: &str) -> Failure {
        let failure = match self {
            // One failure for all that is there.
            HttpError::Dns { .. } | HttpError::Connect { .. } => Failure::new(self.to_string()),
            _ => Failure::new(format!("cannot fetch {}: {self}", redact::url(url))),
        };
        self.hints().into_iter().fold(failure, Failure::hint)
    }

    fn hints(&self) -> Vec<String> {
        let mut hints = Vec::new();
        match self {
            HttpError::BadUrl => {
                hints.push("write it as `https://HOST/PATH`, with special characters percent-encoded".into())
            }
            HttpError::Status { code, host, redirected, sent, .. } => {
                hints.extend(status_hint(*code, host, *redirected, *sent))
            }
            HttpError::Inwards { .. } => hints.push(ALLOW.into()),
            HttpError::Empty => hints.push("check that the URL names a file".into()),
            HttpError::TooLarge { .. } => {
                hints.push("check that the URL names one file of manifests, not an archive".into());
                hints.push("to accept larger files, write `max-file-size: SIZE` in .kustomize-localize".into());
            }
            HttpError::Deadline { .. } | HttpError::Truncated { .. } | HttpError::Lost { .. } => {
                hints.push("try again: the server or the network broke off".into());
            }
            HttpError::Redirect(RedirectError::TooMany { .. }) => {
                hints.push("open the URL in a browser and use the one where it ends".into());
            }
            HttpError::Redirect(_) => {
                hints.push("use a URL that serves the file itself over https".into());
            }
            HttpError::Dns { .. } => {
                hints.push("check the spelling of the host and the network".into());
            }
            HttpError::Connect { .. } => {
                hints.push("check that the host can be reached from here".into());
            }
            // As rustls names it in its message.
            HttpError::Tls { reason, .. } if reason.contains("UnknownIssuer") => hints.push(
                "if the host uses a private CA, name its certificate in SSL_CERT_FILE; \
                 if this system has no CA certificates, install the package `ca-certificates`"
                    .into(),
            ),
            HttpError::Tls { .. } => {
                hints.push("check the host name, its certificate and the clock here".into());
            }
            HttpError::Setup { .. } | HttpError::Cancelled => {}
        }
        let reached = !matches!(self, HttpError::Dns { .. } | HttpError::Connect { .. });
        if !reached && let Some(variable) = proxy_variable() {
            hints.push(format!("check the proxy that {variable} names"));
        }
        hints
    }
}

fn status_text(code: u16, host: &str, redirected: bool) -> String {
    let phrase = StatusCode::from_u16(code).ok().and_then(|status| status.canonical_reason());
    let status = match phrase {
        Some(phrase) => format!("{code} {phrase}"),
        None => code.to_string(),
    };
    if redirected {
        format!("{host}, to which it redirects, answered {status}")
    } else {
        format!("{host} answered {status}")
    }
}

fn status_hint(code: u16, host: &str, redirected: bool, sent: Option<Source>) -> Option<String> {
    match code {
        // Credentials stop at the first redirect to elsewhere.
        401 | 403 if redirected => Some(format!(
            "credentials do not follow a redirect to another host: write the URL on {host} itself"
        )),
        401 | 403 => Some(match sent {
            None => "if it needs a login, store one in git's credential helper: git credential approve; over plain http none is sent".into(),
            Some(Source::Url) => "check the user name and password in the URL".into(),
            Some(Source::Helper) => {
                format!("check what git's credential helper knows about {host}")
            }
        }),
        404 | 410 if sent.is_none() => Some(format!(
            "check the URL; if the file is private, {host} may want a login: git credential approve"
        )),
        404 | 410 => Some("check the URL, and what the credentials give access to".into()),
        407 => Some("put the proxy's user name and password into its URL".into()),
        408 | 500..=599 => Some("try again later".into()),
        429 => Some(format!(
            "wait before trying again; with credentials {host} may allow more requests"
        )),
        _ => None,
    }
}

fn seconds(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
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
        HttpError::Status { code, host: "example.com:8443".into(), redirected, sent, retry_after: None }
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
        let hints = |error: HttpError| error.hints().join("\n");
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
        let dns = |reason: &str| HttpError::Dns { host: "h".into(), reason: reason.into() };
        assert!(dns("Temporary failure in name resolution").is_transient());
        assert!(!dns("Name or service not known").is_transient());
    }

    #[test]
    fn a_deadline_is_shown_as_it_was_given() {
        assert_eq!(seconds(Duration::from_secs(60)), "60 s");
        assert_eq!(seconds(Duration::from_millis(1500)), "1.5 s");
    }
}
