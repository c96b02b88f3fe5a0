//! Speaking to one URL: how git gets the URL and its login, and where it connects.

use std::net::IpAddr;
use std::process::Command;

use percent_encoding::percent_decode_str;

use super::{RemoteGit, asks};
use crate::message::failure::argument;
use crate::os::process::Terminal;

/// What we call the remote that is spoken to. By name: arguments are public, and git would write a URL that it is to
/// fetch parts from into the repository's configuration.
pub(super) const REMOTE: &str = "kl";

/// A credential helper that gives the login of the URL, which others cannot read in variables.
const HELPER: &str = r#"!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$KUSTOMIZE_LOCALIZE_USER" "$KUSTOMIZE_LOCALIZE_PASSWORD"; }; f"#;

/// Where nothing answers.
const NOWHERE: &str = "255.255.255.255";

/// Where the host of a URL lies, whatever its name stands for a moment later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pinned {
    /// Its name.
    pub host: String,
    /// The port that is asked.
    pub port: u16,
    /// Its addresses; none where only a proxy may know it.
    pub addresses: Vec<IpAddr>,
}

/// What one URL needs besides settings.
#[derive(Debug, Clone, Default)]
pub(super) struct Spoken {
    /// Where the login goes, the user and the password.
    login: Option<(String, String, String)>,
    /// The ssh that connects to where the host is pinned.
    ssh: Option<String>,
}

/// Returns whether git gives a URL to curl.
pub(crate) fn is_http(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| ["http", "https"].contains(&&*scheme.to_ascii_lowercase()))
}

/// Splits an http URL into one without login, and where the login goes, the user and the password. Of an ssh URL the
/// password goes, which ssh takes from no URL.
fn split_login(url: &str) -> (String, Option<(String, String, Option<String>)>) {
    let none = || (url.to_owned(), None);
    let Some((scheme, rest)) = url.split_once("://") else {
        return none();
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let Some((login, host)) = authority.rsplit_once('@') else {
        return none();
    };
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (login, None),
    };
    let place = format!("{scheme}://{host}");
    if !is_http(url) {
        return (format!("{scheme}://{user}@{host}{path}"), None);
    }
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let login = (place.clone(), decoded(user), password.map(decoded));
    (place + path, Some(login))
}

impl RemoteGit {
    /// Returns the same that connects to no other addresses.
    pub(crate) fn pinned(&self, pinned: Option<Pinned>) -> Self {
        RemoteGit { pinned, ..self.clone() }
    }

    /// Returns the same to speak to a URL, as the remote [`REMOTE`].
    pub(super) fn to(&self, url: &str) -> RemoteGit {
        let (mut bare, mut login) = split_login(url);
        if bare != url {
            // The user's `insteadOf` may name the login.
            (bare, login) = split_login(&self.rewritten(url));
        }
        let mut to = self.naming(&bare);
        if let Some((place, user, password)) = login {
            match password {
                Some(password) => to.spoken.login = Some((place, user, password)),
                None => to.set(&format!("credential.{place}.username"), user),
            }
        }
        if let Some(Pinned { host, port, addresses }) = &self.pinned {
            let listed: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
            if is_http(&bare) {
                let to_where = if listed.is_empty() { NOWHERE.to_owned() } else { listed.join(",") };
                to.set("http.curloptResolve", format!("{host}:{port}:{to_where}"));
            } else {
                let address = listed.first().map_or(NOWHERE, String::as_str);
                // As ssh names a host in its list of keys.
                let alias = match port {
                    22 => host.clone(),
                    port => format!("[{host}]:{port}"),
                };
                let ssh = self.ssh();
                let alias = argument(&alias);
                to.spoken.ssh = Some(format!("{ssh} -o HostName={address} -o HostKeyAlias={alias}"));
            }
        }
        to
    }

    /// Returns the same with a URL as the remote [`REMOTE`].
    pub(super) fn naming(&self, url: &str) -> RemoteGit {
        let mut naming = self.clone();
        naming.set(&format!("remote.{REMOTE}.url"), url);
        naming
    }

    pub(super) fn set(&mut self, key: &str, value: impl Into<String>) {
        self.settings.push((key.to_owned(), value.into()));
    }

    /// Returns the command of the user's ssh, in the order in which git looks for it.
    fn ssh(&self) -> String {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let configured = || {
            let mut command = self.nowhere();
            command.args(["config", "--get", "core.sshCommand"]);
            asks(command, None)
        };
        variable("GIT_SSH_COMMAND")
            .or_else(configured)
            .or_else(|| variable("GIT_SSH").map(|program| argument(&program)))
            .unwrap_or_else(|| "ssh".to_owned())
    }

    /// Sets which login a command that talks to a server may send, and that it follows no redirect: the caller decides
    /// where one may lead.
    pub(super) fn talking(&self, command: &mut Command, terminal: Terminal) {
        command.args(["-c", "http.followRedirects=false"]);
        if self.anonymous {
            command.args(["-c", "credential.helper=", "-c", "core.askPass="]);
            command.env("GIT_ASKPASS", "").env("SSH_ASKPASS", "");
        } else if terminal == Terminal::Shared {
            command.env_remove("GIT_TERMINAL_PROMPT");
        }
        if let Some((place, user, password)) = &self.spoken.login {
            // No other helper is asked, or told.
            for helper in ["", HELPER] {
                command.args(["-c", &format!("credential.{place}.helper={helper}")]);
            }
            command.env("KUSTOMIZE_LOCALIZE_USER", user);
            command.env("KUSTOMIZE_LOCALIZE_PASSWORD", password);
        }
        if let Some(ssh) = &self.spoken.ssh {
            command.env("GIT_SSH_COMMAND", ssh);
        }
    }
}
