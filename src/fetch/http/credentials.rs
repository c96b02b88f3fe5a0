//! Who may know which login: the URL's own, the credential helper's.

use percent_encoding::percent_decode_str;
use url::{Host, Url};

use super::error::HttpError;

/// Where the credentials of a request came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The userinfo of the URL.
    Url,
    /// The closure given to [`Client::new`](super::Client::new).
    Helper,
}

/// A login. Has no `Debug`: it is a secret.
#[derive(Clone)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: Option<String>,
    pub(super) source: Source,
}

impl Credentials {
    fn same_secret(&self, other: &Credentials) -> bool {
        self.user == other.user && self.password.as_deref() == other.password.as_deref()
    }
}

/// What is requested, with the userinfo taken out of the URL. Has no `Debug`: it holds a secret.
pub(super) struct Target {
    /// Without userinfo and fragment.
    pub(super) url: Url,
    user: String,
    password: Option<String>,
}

impl Target {
    /// Takes a URL apart.
    ///
    /// An error when it is not an `http` or `https` URL with a host, or holds control
    /// characters (which the URL standard would silently drop, and Go refuses).
    pub(super) fn parse(text: &str) -> Result<Self, HttpError> {
        if text.chars().any(char::is_control) {
            return Err(HttpError::bad_url());
        }
        let mut url = Url::parse(text).map_err(|_| HttpError::bad_url())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(HttpError::bad_url());
        }
        let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let user = decode(url.username());
        let password = url.password().map(decode);
        forget_userinfo(&mut url);
        Ok(Target { url, user, password })
    }

    /// Returns what to send with the first request: the URL's own login, as kustomize does (Go's `http.Client`). A user
    /// name alone is sent alone: some hosts take a token so.
    pub(super) fn credentials(&self) -> Option<Credentials> {
        let given = !self.user.is_empty() || self.password.is_some();
        given.then(|| Credentials { user: self.user.clone(), password: self.password.clone(), source: Source::Url })
    }

    /// Asks for a login after `refused` (or nothing) was answered with 401. Returns `None` when there is nothing new to
    /// try. If the URL has a password, there is no asking.
    ///
    /// `ask` sees the URL without password and query.
    pub(super) fn ask(&self, ask: &super::AskCredentials, refused: Option<&Credentials>) -> Option<Credentials> {
        if self.password.is_some() || !self.may_look_up() {
            return None;
        }
        let mut url = self.url.clone();
        url.set_query(None);
        // Cannot fail: the URL has a host.
        let _ = url.set_username(&self.user);
        let (user, password) = ask(&url)?;
        let found = Credentials { user, password: Some(password), source: Source::Helper };
        match refused {
            Some(refused) if refused.same_secret(&found) => None,
            _ => Some(found),
        }
    }

    /// Whether logins that the user did not write into this very URL may be sent: over TLS, or
    /// without leaving this machine. A remote base may name any host with `http://`, and must not
    /// be able to make us show the login for it to the whole network.
    fn may_look_up(&self) -> bool {
        self.url.scheme() == "https" || is_loopback(&self.url)
    }
}

/// Whether the URL names this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    }
}

/// Removes userinfo and fragment.
pub(super) fn forget_userinfo(url: &mut Url) {
    // Fails only where there is no host, and so no userinfo.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn the_login_of_a_url_is_sent_and_cleartext_asks_for_no_other() {
        let first = |url: &str| {
            let found = Target::parse(url).unwrap().credentials()?;
            Some((found.user, found.password))
        };
        let login = |user: &str, password: Option<&str>| Some((user.to_owned(), password.map(str::to_owned)));
        for (url, expected) in [
            ("https://u%40x:p%3a%2F@example.com/f", login("u@x", Some("p:/"))),
            ("https://token@example.com/f", login("token", None)),
            ("https://:p@example.com/f", login("", Some("p"))),
            ("http://u:p@example.com/f", login("u", Some("p"))),
            ("https://other.example/f", None),
        ] {
            assert_eq!(first(url), expected, "{url}");
        }
        let ask = |_: &Url| Some(("u".to_owned(), "p".to_owned()));
        let asked = |url: &str| Target::parse(url).unwrap().ask(&ask, None).is_some();
        assert!(asked("https://example.com/f"));
        assert!(asked("http://127.0.0.1/f"));
        assert!(asked("http://[::1]:80/f"));
        assert!(asked("http://LOCALHOST/f"));
        assert!(!asked("http://example.com/f"));
        assert!(!asked("http://localhost.example.com/f"));
        assert!(!asked("http://127.0.0.1.example.com/f"));
        assert!(!asked("https://u:p@example.com/f"));
    }

    #[test]
    fn the_helper_sees_the_user_and_no_secret() {
        let seen = Arc::new(Mutex::new(String::new()));
        let store = Arc::clone(&seen);
        let ask = move |url: &Url| {
            *store.lock().unwrap() = url.to_string();
            Some(("me".to_owned(), "p".to_owned()))
        };
        let target = Target::parse("https://me@example.com/f?token=hunter2#x").unwrap();
        let found = target.ask(&ask, None).unwrap();
        assert_eq!(*seen.lock().unwrap(), "https://me@example.com/f");
        assert!(target.ask(&ask, Some(&found)).is_none());
    }

    #[test]
    fn only_http_urls_are_accepted() {
        for bad in [
            "",
            "file:///etc/passwd",
            "ftp://h/f",
            "https://",
            "https:///",
            "https://h/a\nb",
            "\thttps://h/",
            "github.com/o/r",
            "https://h:99999/",
        ] {
            assert!(Target::parse(bad).is_err(), "{bad:?}");
        }
        let target = Target::parse("HTTP://u:p@Example.COM:80/a?b=c#d").unwrap();
        assert_eq!(target.url.as_str(), "http://example.com/a?b=c");
    }
}
