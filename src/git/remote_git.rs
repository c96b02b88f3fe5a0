//! Repositories that are not the user's: those to fetch from, and those to fetch into.

mod connection;
mod exchange;
mod fetching;

pub(crate) use connection::{Login, Peer, is_http, take_login};
pub(crate) use exchange::Exchange;
pub(crate) use fetching::{Fetch, FetchFilter};

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::command;
use crate::os::process::{self, Terminal};

/// Variables that tie git to one repository (of `git rev-parse --local-env-vars`), and a few more that would redirect
/// reads or writes.
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

/// Removes the variables that tie a command to the repository of this process.
pub(crate) fn untie(command: &mut Command) {
    // `GIT_CONFIG_PARAMETERS` and `GIT_CONFIG_COUNT` are kept: they contain the caller's `git -c` settings.
    for name in TIES {
        command.env_remove(name);
    }
}

/// The name under which git knows the URL that it talks to.
const REMOTE: &str = "kl";

/// The settings for talking to remote repositories: the user's configuration, and those of this repository that concern
/// connections.
#[derive(Debug, Clone, Default)]
pub(crate) struct RemoteGit {
    settings: Vec<(String, String)>,
    /// Whether no login may be sent.
    anonymous: bool,
    /// The addresses to connect to; `None` to resolve the name of the host.
    peer: Option<Peer>,
}

impl RemoteGit {
    /// `settings` are those of [`LocalRepo::connection_config`](super::LocalRepo::connection_config).
    pub(crate) fn new(settings: Vec<(String, String)>) -> Self {
        RemoteGit { settings, ..RemoteGit::default() }
    }

    /// The same settings without logins: neither a credential helper nor the terminal is asked.
    pub(crate) fn anonymous(&self) -> Self {
        RemoteGit { anonymous: true, ..self.clone() }
    }

    /// The same settings, which also send a login with every request to `url`.
    pub(crate) fn with_login(&self, url: &str, Login { user, password }: &Login) -> Self {
        let mut git = self.clone();
        let bare = connection::split_login(url).0;
        let words = STANDARD.encode(format!("{user}:{}", password.as_deref().unwrap_or_default()));
        git.settings.push((format!("http.{bare}.extraHeader"), format!("Authorization: Basic {words}")));
        // If the server rejects the login, git would tell a helper to erase the user's stored one.
        git.settings.push((format!("credential.{bare}.helper"), String::new()));
        git
    }

    /// The URL after the user's `insteadOf` rules.
    pub(crate) fn rewritten(&self, url: &str) -> String {
        let mut command = self.outside_of_repositories(&[(format!("remote.{REMOTE}.url"), url.to_owned())]);
        command.args(["ls-remote", "--get-url", "--end-of-options", REMOTE]);
        answer_of(&mut command, None).unwrap_or_else(|| url.to_owned())
    }

    /// A git that is not tied to this repository, with these settings and `more`.
    fn command(&self, more: &[(String, String)]) -> Command {
        let mut command = command();
        untie(&mut command);
        // Missing objects are fetched in batches by the `fetch` room: git would send one request for each.
        command.env("GIT_NO_LAZY_FETCH", "1");
        // Through the environment, not `-c`: a header may contain a token, and arguments are public.
        // Before the settings of the caller in the environment, because later settings win.
        let count = std::env::var("GIT_CONFIG_COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
        let callers = (0..count)
            .map(|index| setting_variables(index).map(|variable| std::env::var_os(variable).unwrap_or_default()));
        let ours = self.settings.iter().chain(more).map(|(key, value)| [key.into(), value.into()]);
        let all: Vec<[OsString; 2]> = ours.chain(callers).collect();
        command.env("GIT_CONFIG_COUNT", all.len().to_string());
        for (index, setting) in all.into_iter().enumerate() {
            command.envs(setting_variables(index).into_iter().zip(setting));
        }
        command
    }

    /// A command that uses no repository.
    fn outside_of_repositories(&self, more: &[(String, String)]) -> Command {
        let mut command = self.command(more);
        command.env("GIT_DIR", "/dev/null");
        command
    }

    /// The output of a query about the commits in the bare repository at `directory`, such as `git merge-base`. Nothing
    /// is fetched. `None` if git fails, which is also how it says no.
    pub(crate) fn query_commits(
        &self,
        directory: &Path,
        arguments: &[&str],
        timeout: Duration,
    ) -> Result<Option<String>, process::Error> {
        let mut command = self.command(&[]);
        command.env("GIT_DIR", directory).args(arguments);
        let output = process::run(&mut command, None, Some(timeout), Terminal::Detached)?;
        Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    /// The output of `git config` outside of this repository, with the settings for connections; `None` if git fails.
    fn config(&self, arguments: &[&str]) -> Option<String> {
        answer_of(self.outside_of_repositories(&[]).args(arguments), None)
    }

    /// Whether git shows a client certificate to every host that asks for one.
    pub(crate) fn has_certificate(&self) -> bool {
        // The variable counts before the configuration.
        std::env::var_os("GIT_SSL_CERT").is_some() || self.config(&["config", "--get", "http.sslCert"]).is_some()
    }

    /// The variable or key that names a missing file with a certificate or a key for `url`, and the file; `None` if all
    /// exist.
    pub(crate) fn missing_certificate(&self, url: &str) -> Option<(&'static str, String)> {
        let files =
            [("GIT_SSL_CAINFO", "http.sslCAInfo"), ("GIT_SSL_CERT", "http.sslCert"), ("GIT_SSL_KEY", "http.sslKey")];
        // As in git, the variable counts before the configuration.
        let mut named = files.into_iter().filter_map(|(variable, key)| match std::env::var(variable) {
            Ok(file) => Some((variable, file)),
            Err(_) => Some((key, self.config(&["config", "--type=path", "--get-urlmatch", key, url])?)),
        });
        named.find(|(_, file)| !Path::new(file).exists())
    }

    /// Whether credential helpers, or `useHttpPath`, are configured for single URLs.
    pub(crate) fn has_helpers(&self) -> bool {
        self.config(&["config", "--get-regexp", r"^credential\..+\.(helper|usehttppath)$"]).is_some()
    }

    /// Whether a credential helper is configured for `url`, or `useHttpPath`, which also shows that the user has a
    /// login there; and git does not send a header with a login to it anyway.
    pub(crate) fn has_helper_for(&self, url: &str) -> bool {
        let [credential, header] = ["credential", "http.extraHeader"].map(|section| {
            // Empty values hide the helpers that are configured for all URLs.
            let no_general = ["-c", "credential.helper=", "-c", "credential.useHttpPath="];
            self.config(&[&no_general[..], &["config", "--get-urlmatch", section, url]].concat()).unwrap_or_default()
        });
        let has_helper = credential.lines().any(|line| match line.split_once(' ') {
            Some(("credential.helper", helper)) => !helper.is_empty(),
            setting => setting == Some(("credential.usehttppath", "true")),
        });
        has_helper && header.is_empty()
    }

    /// Asks the user's credential helpers for a name and a password for `url`. Never prompts.
    pub(crate) fn credentials(&self, url: &url::Url) -> Option<(String, String)> {
        // A helper may open a window or ask at the terminal: both are switched off.
        let request = format!("url={url}\n\n");
        let mut command = self.outside_of_repositories(&[]);
        command
            .args(["-c", "credential.interactive=false", "credential", "fill"])
            .env("GIT_ASKPASS", "")
            .env("SSH_ASKPASS", "");
        let answer = answer_of(&mut command, Some(request.as_bytes()))?;
        let [user, password] = ["username=", "password="]
            .map(|name| answer.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned));
        Some((user?, password?))
    }
}

/// The variables with the key and the value of a setting.
fn setting_variables(index: usize) -> [String; 2] {
    [format!("GIT_CONFIG_KEY_{index}"), format!("GIT_CONFIG_VALUE_{index}")]
}

/// The stdout of a command that talks to no server, without its final line break; `None` if it fails.
fn answer_of(command: &mut Command, input: Option<&[u8]>) -> Option<String> {
    let timeout = Some(Duration::from_secs(30));
    let output = process::run(command, input, timeout, Terminal::Detached).ok()?;
    let answer = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    Some(answer).filter(|_| output.status.success())
}
