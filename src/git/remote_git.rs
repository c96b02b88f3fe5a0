//! Repositories that are not the user's: what is fetched from, and what is fetched into.

mod exchange;
mod fetching;
mod spoken;

pub(crate) use exchange::Exchange;
pub(crate) use fetching::{Fetch, Part};
pub(crate) use spoken::{Login, Peer, is_http, take_login};

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::command;
use crate::os::process::{self, Terminal};

/// Variables that tie git to one repository (of `git rev-parse --local-env-vars`), and a few more that
/// would redirect what we read or write. `GIT_CONFIG_PARAMETERS` and `GIT_CONFIG_COUNT` are kept:
/// they carry the caller's `git -c` settings.
const TIES: [&str; 12] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_QUARANTINE_PATH",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Lets what `command` starts know nothing of the repository that we were started in.
pub(crate) fn untied(command: &mut Command) {
    for name in TIES {
        command.env_remove(name);
    }
}

/// What we call the remote that is spoken to. By name: arguments are public, and git would write a URL that it is to
/// fetch parts from into the repository's configuration.
const REMOTE: &str = "kl";

/// How remote repositories are spoken to: the user's configuration, and of this repository
/// only what concerns connections.
#[derive(Debug, Clone, Default)]
pub(crate) struct RemoteGit {
    settings: Vec<(String, String)>,
    /// Whether no login may be sent.
    anonymous: bool,
    /// Where the host lies that is spoken to, if its name does not decide.
    peer: Option<Peer>,
}

impl RemoteGit {
    /// Takes the settings of this repository that should hold for connections as well.
    pub(crate) fn new(settings: Vec<(String, String)>) -> Self {
        RemoteGit { settings, ..RemoteGit::default() }
    }

    /// Returns the same without logins: neither a credential helper nor the terminal is asked.
    pub(crate) fn anonymous(&self) -> Self {
        RemoteGit { anonymous: true, ..self.clone() }
    }

    /// Returns the same that sends a login with every request to `url`.
    pub(crate) fn with_login(&self, url: &str, Login { user, password }: &Login) -> Self {
        let mut git = self.clone();
        let bare = spoken::split_login(url).0;
        let words = STANDARD.encode(format!("{user}:{}", password.as_deref().unwrap_or_default()));
        git.settings.push((format!("http.{bare}.extraHeader"), format!("Authorization: Basic {words}")));
        // A helper would be told to erase a login that is refused.
        git.settings.push((format!("credential.{bare}.helper"), String::new()));
        git
    }

    /// Returns the URL that git asks when it is given `url`: as the user's `insteadOf` says.
    pub(crate) fn rewritten(&self, url: &str) -> String {
        let mut command = self.nowhere(&[(format!("remote.{REMOTE}.url"), url.to_owned())]);
        command.args(["ls-remote", "--get-url", "--end-of-options", REMOTE]);
        asks(&mut command, None).unwrap_or_else(|| url.to_owned())
    }

    /// A command with these settings, too.
    fn command(&self, more: &[(String, String)]) -> Command {
        let mut command = command();
        untied(&mut command);
        // What is missing is fetched by us, many files at once.
        command.env("GIT_NO_LAZY_FETCH", "1");
        // Through the environment, not `-c`: a header may hold a token, and arguments are public.
        // Before what the caller set there, because later settings win.
        let name = |what: &str, index: usize| format!("GIT_CONFIG_{what}_{index}");
        let given = std::env::var("GIT_CONFIG_COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
        let given = (0..given).map(|index| ["KEY", "VALUE"].map(|what| std::env::var_os(name(what, index))));
        let given = given.map(|[key, value]| [key.unwrap_or_default(), value.unwrap_or_default()]);
        let ours = self.settings.iter().chain(more).map(|(key, value)| [key.into(), value.into()]);
        let all: Vec<[OsString; 2]> = ours.chain(given).collect();
        command.env("GIT_CONFIG_COUNT", all.len().to_string());
        for (index, [key, value]) in all.into_iter().enumerate() {
            command.env(name("KEY", index), key).env(name("VALUE", index), value);
        }
        command
    }

    /// The same that works in no repository. It stays in the current directory, which settings may
    /// be relative to; found there, this repository would give its settings a second time.
    fn nowhere(&self, more: &[(String, String)]) -> Command {
        let mut command = self.command(more);
        command.env("GIT_DIR", "/dev/null");
        command
    }

    /// Asks git about the commits in the bare repository at `directory`, and fetches none for that. `None` when the
    /// answer is no.
    pub(crate) fn commits(
        &self,
        directory: &Path,
        arguments: &[&str],
        timeout: Duration,
    ) -> Result<Option<String>, process::Error> {
        let mut command = self.command(&[]);
        command.env("GIT_DIR", directory).args(arguments);
        let output = process::run(&mut command, None, Some(timeout), Terminal::Detached)?;
        let said = || String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(output.status.success().then(said))
    }

    fn config(&self, arguments: &[&str]) -> Option<String> {
        asks(self.nowhere(&[]).args(arguments), None)
    }

    /// Returns whether git shows a client certificate to every host that asks for one.
    pub(crate) fn has_certificate(&self) -> bool {
        std::env::var_os("GIT_SSL_CERT").is_some() || self.config(&["config", "--get", "http.sslCert"]).is_some()
    }

    /// Returns what names a certificate or a key for `url`, and that file, where it does not exist.
    pub(crate) fn missing_certificate(&self, url: &str) -> Option<(&'static str, String)> {
        let files =
            [("GIT_SSL_CAINFO", "http.sslCAInfo"), ("GIT_SSL_CERT", "http.sslCert"), ("GIT_SSL_KEY", "http.sslKey")];
        let named = files.into_iter().filter_map(|(variable, key)| {
            let by_key = || Some((key, self.config(&["config", "--type=path", "--get-urlmatch", key, url])?));
            std::env::var(variable).ok().map(|file| (variable, file)).or_else(by_key)
        });
        named.into_iter().find(|(_, file)| !Path::new(file).exists())
    }

    /// Returns whether credential helpers are configured for single URLs.
    pub(crate) fn has_helpers(&self) -> bool {
        self.config(&["config", "--get-regexp", r"^credential\..+\.(helper|usehttppath)$"]).is_some()
    }

    /// Returns whether one is for `url`, and no header that git sends there anyway.
    pub(crate) fn has_helper_for(&self, url: &str) -> bool {
        let matching = |section: &str| {
            // What is configured for all URLs does not count.
            let of_all = ["-c", "credential.helper=", "-c", "credential.useHttpPath="];
            self.config(&[&of_all[..], &["config", "--get-urlmatch", section, url]].concat()).unwrap_or_default()
        };
        let is_helper = |line: &str| match line.split_once(' ') {
            Some(("credential.helper", helper)) => !helper.is_empty(),
            setting => setting == Some(("credential.usehttppath", "true")),
        };
        matching("credential").lines().any(is_helper) && matching("http.extraHeader").is_empty()
    }

    /// Asks the user's credential helpers for a name and a password for `url`. Never prompts.
    pub(crate) fn credentials(&self, url: &url::Url) -> Option<(String, String)> {
        let request = format!("url={url}\n\n");
        let mut command = self.nowhere(&[]);
        command
            .args(["-c", "credential.interactive=false", "credential", "fill"])
            .env("GIT_ASKPASS", "")
            .env("SSH_ASKPASS", "");
        let answer = asks(&mut command, Some(request.as_bytes()))?;
        let field = |name: &str| answer.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        Some((field("username=")?, field("password=")?))
    }
}

/// Returns what a command says that talks to no server, without its final line end; none where it fails.
fn asks(command: &mut Command, input: Option<&[u8]>) -> Option<String> {
    let timeout = Some(Duration::from_secs(30));
    let output = process::run(command, input, timeout, Terminal::Detached).ok()?;
    let answer = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    Some(answer).filter(|_| output.status.success())
}
