//! Repositories that are not the user's: what is fetched from, and what is fetched into.

mod fetching;
mod spoken;

pub(crate) use fetching::{Asked, Depth, RefSpec, Wanted};
pub(crate) use spoken::{Pinned, is_http};

use std::path::{Path, PathBuf};
use std::process::Command;

use self::spoken::{REMOTE, Spoken};
use super::{command, not_run, said};
use crate::message::failure::{Failure, Result};
use crate::os::failpoint;
use crate::os::process::{self, Limits, Output, Terminal};

/// Variables that tie git to one repository (`git rev-parse --local-env-vars`), and a few more that
/// would redirect what we read or write. `GIT_CONFIG_PARAMETERS` and `GIT_CONFIG_COUNT` are kept:
/// they carry the caller's `git -c` settings.
const TIES: [&str; 20] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DEFAULT_HASH",
    "GIT_DIR",
    "GIT_EXTERNAL_DIFF",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
    "GIT_TEMPLATE_DIR",
];

/// Lets what `command` starts know nothing of the repository that we were started in.
pub(crate) fn untied(command: &mut Command) {
    for name in TIES {
        command.env_remove(name);
    }
}

/// How remote repositories are spoken to: the user's configuration, and of this repository
/// only what concerns connections.
#[derive(Debug, Clone, Default)]
pub(crate) struct RemoteGit {
    settings: Vec<(String, String)>,
    /// Whether no login may be sent.
    anonymous: bool,
    /// Where the host lies that is spoken to, if its name does not decide.
    pinned: Option<Pinned>,
    spoken: Spoken,
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

    /// Returns the URL that git asks when it is given `url`: as the user's `insteadOf` says.
    pub(crate) fn rewritten(&self, url: &str) -> String {
        let mut command = self.naming(url).nowhere();
        command.args(["ls-remote", "--get-url", "--end-of-options", REMOTE]);
        asks(command, None).unwrap_or_else(|| url.to_owned())
    }

    fn command(&self) -> Command {
        let mut command = command();
        untied(&mut command);
        // What is missing is fetched by us, many files at once.
        command.env("GIT_NO_LAZY_FETCH", "1");
        // Through the environment, not `-c`: a header may hold a token, and arguments are public.
        // Before what the caller set there, because later settings win.
        let given: usize = std::env::var("GIT_CONFIG_COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
        let ours = self.settings.len();
        if ours > 0 {
            let name = |what: &str, index: usize| format!("GIT_CONFIG_{what}_{index}");
            for index in 0..given {
                for what in ["KEY", "VALUE"] {
                    if let Some(value) = std::env::var_os(name(what, index)) {
                        command.env(name(what, ours + index), value);
                    }
                }
            }
            for (index, (key, value)) in self.settings.iter().enumerate() {
                command.env(name("KEY", index), key);
                command.env(name("VALUE", index), value);
            }
            command.env("GIT_CONFIG_COUNT", (ours + given).to_string());
        }
        command
    }

    /// A command that works in no repository. It stays in the current directory, which settings may
    /// be relative to; found there, this repository would give its settings a second time.
    fn nowhere(&self) -> Command {
        let mut command = self.command();
        command.env("GIT_DIR", "/dev/null");
        command
    }

    /// Asks git about the commits in the bare repository at `directory`, and fetches none for that. `None` when the
    /// answer is no.
    pub(crate) fn commits(
        &self,
        directory: &Path,
        arguments: &[&str],
        limits: Limits<'_>,
    ) -> Result<Option<String>, process::Error> {
        let mut command = self.command();
        command.arg(path_option("--git-dir=", directory)).args(arguments);
        let output = process::run(&mut command, None, limits, Terminal::Detached)?;
        let said = || String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(output.status.success().then(said))
    }

    /// Asks `url` what `references` are, without fetching them: lines `ID<tab>REF`, also of refs that only end
    /// in one of them.
    pub(crate) fn list(
        &self,
        url: &str,
        references: &[&str],
        limits: Limits<'_>,
        terminal: Terminal,
    ) -> Result<Output, process::Error> {
        let spoken = self.to(url);
        let mut command = spoken.nowhere();
        command.args(["-c", "protocol.version=2", "-c", "protocol.ext.allow=never"]);
        spoken.talking(&mut command, terminal);
        command.args(["ls-remote", "--quiet", "--end-of-options", REMOTE]);
        for reference in references {
            command.arg(reference).arg(format!("{reference}^{{}}"));
        }
        process::run(&mut command, None, limits, terminal)
    }

    /// Parses a file in git's configuration syntax, with no includes: pairs of key and value.
    pub(crate) fn parse_config(&self, bytes: &[u8]) -> Result<Vec<(String, String)>> {
        let mut command = self.nowhere();
        command.args(["config", "--file", "-", "--no-includes", "--list", "-z"]);
        let output = process::run(&mut command, Some(bytes), Limits::default(), Terminal::Detached).map_err(not_run)?;
        if !output.status.success() {
            return Err(Failure::new(said(&output)));
        }
        Ok(String::from_utf8_lossy(&output.stdout)
            .split('\0')
            .filter_map(|entry| entry.split_once('\n'))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect())
    }

    /// Asks the user's credential helpers for a name and a password for `url`. Never prompts.
    pub(crate) fn credentials(&self, url: &url::Url) -> Option<(String, String)> {
        let mut request = format!("protocol={}\nhost={}", url.scheme(), url.host_str()?);
        if let Some(port) = url.port() {
            request.push_str(&format!(":{port}"));
        }
        request.push_str(&format!("\npath={}\n", url.path().trim_start_matches('/')));
        if !url.username().is_empty() {
            request.push_str(&format!("username={}\n", url.username()));
        }
        request.push('\n');
        let mut command = self.nowhere();
        command.args(["credential", "fill"]).env("GIT_ASKPASS", "").env("SSH_ASKPASS", "");
        let answer = asks(command, Some(request.as_bytes()))?;
        let field = |name: &str| answer.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        Some((field("username=")?, field("password=")?))
    }
}

/// Returns what a command says that talks to no server, without its final line end; none where it fails.
fn asks(mut command: Command, input: Option<&[u8]>) -> Option<String> {
    let limits = Limits { timeout: Some(std::time::Duration::from_secs(30)), cancel: None };
    let output = process::run(&mut command, input, limits, Terminal::Detached).ok()?;
    let answer = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    Some(answer).filter(|_| output.status.success())
}

/// Makes an empty bare repository of the directory at `directory`. `format` is `sha1` or `sha256`.
pub(crate) fn init(directory: &Path, format: &str) -> std::io::Result<()> {
    // As `git init --bare --template=` does; a process takes longer.
    let config = match format {
        "sha1" => "[core]\n\trepositoryformatversion = 0\n\tbare = true\n".to_owned(),
        format => {
            format!("[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = {format}\n")
        }
    };
    failpoint::before("make a repository to fetch into");
    for below in ["objects/info", "objects/pack", "refs/heads", "refs/tags"] {
        std::fs::create_dir_all(directory.join(below))?;
    }
    std::fs::write(directory.join("config"), config)?;
    std::fs::write(directory.join("HEAD"), "ref: refs/heads/main\n")
}

/// `--option=PATH` for a path that need not be UTF-8.
fn path_option(option: &str, path: &Path) -> PathBuf {
    let mut argument = std::ffi::OsString::from(option);
    argument.push(path);
    PathBuf::from(argument)
}
