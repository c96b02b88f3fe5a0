//! A connection to one URL: how git gets the URL and its login, and the addresses that it connects to.

use std::net::IpAddr;
use std::process::Command;

use percent_encoding::percent_decode_str;
use url::Url;

use super::{REMOTE, RemoteGit};
use crate::os::process::Terminal;

/// A credential helper that prints the login of the URL from variables.
const HELPER: &str = r#"!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$KUSTOMIZE_LOCALIZE_USER" "$KUSTOMIZE_LOCALIZE_PASSWORD"; }; f"#;

/// An address that never answers.
const NOWHERE: &str = "255.255.255.255";

/// The checked addresses of the host of an http URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Peer {
    pub host: String,
    pub port: u16,
    /// Empty if only a proxy may resolve the name.
    pub addresses: Vec<IpAddr>,
}

/// A user name, and a password if there is one. Has no `Debug`: it is a secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Login {
    pub user: String,
    pub password: Option<String>,
}

/// Whether git passes a URL to curl.
pub(crate) fn is_http(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| ["http", "https"].contains(&&*scheme.to_ascii_lowercase()))
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Removes the login from a URL and returns it; `None` if there is none.
pub(crate) fn take_login(url: &mut Url) -> Option<Login> {
    let login = Login { user: decode(url.username()), password: url.password().map(decode) };
    // This fails only for a URL without a host, which has no login.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Some(login).filter(|login| !login.user.is_empty() || login.password.is_some())
}

/// Splits an http URL into a URL without login, and the login. An ssh URL keeps its user. A text without a login, or
/// that is not a URL, stays as it is.
pub(super) fn split_login(url: &str) -> (String, Option<Login>) {
    let mut parsed = match Url::parse(url) {
        Ok(parsed) if !parsed.username().is_empty() || parsed.password().is_some() => parsed,
        _ => return (url.to_owned(), None),
    };
    // ssh takes no password from a URL.
    if !is_http(url) {
        let _ = parsed.set_password(None);
        return (parsed.into(), None);
    }
    let login = take_login(&mut parsed);
    (parsed.into(), login)
}

impl RemoteGit {
    /// The same settings, restricted to connections to these addresses.
    pub(crate) fn with_peer(&self, peer: Peer) -> Self {
        RemoteGit { peer: Some(peer), ..self.clone() }
    }

    /// A command that talks to a URL as the remote [`REMOTE`]. It sends only permitted logins, and follows no
    /// redirects.
    pub(super) fn command_to(&self, url: &str, terminal: Terminal) -> Command {
        let (mut bare, mut login) = split_login(url);
        if bare != url {
            // The user's `insteadOf` rules may match a URL with a login, so they are applied before it is removed. To a
            // URL without a login git applies them itself.
            (bare, login) = split_login(&self.rewritten(url));
        }
        // The URL is a setting: arguments are public, and git would write one into the configuration after a partial
        // fetch.
        let mut settings = vec![(format!("remote.{REMOTE}.url"), bare.clone())];
        if let Some(Login { user, password: None }) = &login {
            settings.push((format!("credential.{bare}.username"), user.clone()));
        }
        // The caller decides whether a redirect is safe.
        let mut command = self.command(&settings);
        command.args([
            "-c",
            "protocol.version=2",
            "-c",
            "protocol.ext.allow=never",
            "-c",
            "http.followRedirects=false",
        ]);
        if self.anonymous {
            command.args(["-c", "credential.helper=", "-c", "core.askPass="]);
            command.env("GIT_ASKPASS", "").env("SSH_ASKPASS", "");
            // An empty value resets the user's setting, and the whole URL is more specific than any other section. By
            // default git would show a Kerberos ticket to every server that asks for one.
            for setting in ["extraHeader=", "cookieFile=", "emptyAuth=false", "proactiveAuth=none"] {
                command.args(["-c", &format!("http.{bare}.{setting}")]);
            }
        } else if terminal == Terminal::Shared {
            command.env_remove("GIT_TERMINAL_PROMPT");
        }
        if let Some(Login { user, password: Some(password) }) = &login {
            // The empty helper resets the list: no other helper may be asked for this login, or told to store it.
            for helper in ["", HELPER] {
                command.args(["-c", &format!("credential.{bare}.helper={helper}")]);
            }
            // Other users can read arguments, but not variables.
            command.env("KUSTOMIZE_LOCALIZE_USER", user).env("KUSTOMIZE_LOCALIZE_PASSWORD", password);
        }
        // curl takes these addresses instead of resolving the name again: the answer could be a private address.
        if let Some(Peer { host, port, addresses }) = &self.peer {
            let listed: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
            // Without an address only a proxy may resolve the name, so a direct connection must fail.
            let resolved = if listed.is_empty() { NOWHERE.to_owned() } else { listed.join(",") };
            command.args(["-c", &format!("http.curloptResolve={host}:{port}:{resolved}")]);
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_logins_no_setting_of_the_users_shows_one() {
        let url = "https://git.example.com/a/b";
        let command = RemoteGit::default().anonymous().command_to(url, Terminal::Shared);
        let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect();
        for setting in ["extraHeader=", "cookieFile=", "emptyAuth=false", "proactiveAuth=none"] {
            assert!(arguments.contains(&format!("http.{url}.{setting}")), "{setting}: {arguments:?}");
        }
        assert!(command.get_envs().any(|(name, value)| name == "GIT_TERMINAL_PROMPT" && value == Some("0".as_ref())));
    }

    /// Its name could stand for another address when git asks for it.
    #[test]
    fn a_pinned_host_is_connected_to_at_its_addresses() {
        let to = |url: &str, port, addresses: &[&str]| {
            let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
            let peer = Peer { host: "git.example.com".to_owned(), port, addresses };
            RemoteGit::default().with_peer(peer).command_to(url, Terminal::Detached)
        };
        for (url, port, addresses, expected) in [
            ("https://git.example.com/a/b", 443, &["1.1.1.1", "2606:4700::1"][..], "443:1.1.1.1,2606:4700::1"),
            ("http://git.example.com:8080/a/b", 8080, &["1.1.1.1"], "8080:1.1.1.1"),
            // A proxy may know it.
            ("http://git.example.com/a/b", 80, &[], "80:255.255.255.255"),
        ] {
            let command = to(url, port, addresses);
            let resolved = format!("http.curloptResolve=git.example.com:{expected}");
            assert!(command.get_args().any(|argument| argument == resolved.as_str()), "{command:?}");
        }
    }
}
