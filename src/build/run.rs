//! Running one build.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::fake_git;
use super::inputs::{Fetched, Files};
use super::program::{Network, PROXIES, Program};
use crate::message::failure::{Failure, Result};
use crate::message::redact;
use crate::os::interrupt::unusable;
use crate::os::process::{self, Isolation, Terminal};

/// How long one build may take.
const TIMEOUT: Duration = Duration::from_secs(300);

/// What one build left.
#[derive(Debug, Clone)]
pub(super) struct Build {
    /// Everything that it wrote to its standard output.
    pub(super) stdout: Vec<u8>,
    /// What it said on its standard error, without secrets.
    pub(super) said: String,
    /// Whether it ended with status 0.
    pub(super) success: bool,
}

impl Build {
    /// Returns why it failed, on one line and without `top`, the temporary directory that it was built in.
    pub(super) fn reason(&self, top: &Path) -> String {
        // What is deprecated is no reason, and kustomize says it before the reason.
        let is_cause = |line: &&str| {
            let is_flag = line.starts_with("Flag --") && line.contains(" has been deprecated");
            !is_flag && !line.starts_with("# Warning:")
        };
        let text = self.said.lines().filter(is_cause).collect::<Vec<_>>().join("\n");
        let top = top.display().to_string();
        let top = top.trim_end_matches('/');
        let text = text.replace(&format!("{top}/"), "").replace(top, ".");
        // The message of a command that it ran has several lines.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        cause(text.strip_prefix("Error: ").unwrap_or(&text))
    }
}

/// Returns what went wrong, and in which root: kustomize first lists everything else that it took the root for.
fn cause(text: &str) -> String {
    let innermost = text.rsplit_once("recursed ").and_then(|(_, rest)| rest.split_once("path '")?.1.split_once("': "));
    match innermost {
        None => text.to_owned(),
        // A fetched root lies in a temporary directory, whose name means nothing to the user.
        Some((path, cause)) if path.starts_with('/') => cause.to_owned(),
        Some((path, cause)) => format!("in `{path}`: {cause}"),
    }
}

/// What a build reaches.
#[derive(Clone, Copy)]
pub(super) enum Reach<'a> {
    /// What was fetched: repositories by our own git, files as it says.
    Fetched(&'a Fetched),
    Nothing,
}

/// One build.
pub(super) struct Building<'a> {
    pub(super) program: &'a Program,
    /// A directory, or a URL.
    pub(super) target: &'a Path,
    pub(super) arguments: &'a [String],
    pub(super) reach: Reach<'a>,
    /// What it builds from, which it may not change.
    pub(super) input: &'a Path,
}

/// What a build sees of our environment: where programs are, and the locale.
const VARIABLES: &[&str] =
    if cfg!(windows) { &["PATH", "PATHEXT", "SystemRoot", "ComSpec"] } else { &["PATH", "LANG", "LANGUAGE"] };

/// What it also sees where it asks upstream itself.
const CONNECTION: [&str; 4] = ["NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"];

impl Building<'_> {
    /// Builds in a new directory of its own, `private`.
    pub(super) fn run(&self, private: &Path) -> Result<Build> {
        let [home, temporary, bin] = ["home", "tmp", "bin"].map(|name| private.join(name));
        for directory in [&home, &temporary, &bin] {
            std::fs::create_dir_all(directory).map_err(|error| unusable(&error))?;
        }
        let mut command = self.program.command();
        let nothing = private.join("nothing");
        let (manifest, files) = match self.reach {
            Reach::Fetched(fetched) => (fetched.manifest.as_path(), &fetched.files),
            Reach::Nothing => (nothing.as_path(), &Files::None),
        };
        see(&mut command, matches!(files, Files::Upstream));
        fake_git::link(&bin).map_err(|error| Failure::new(format!("git could not be stood in for: {error}")))?;
        command.env("HOME", &home).env("PATH", first_on_path(&bin)).env(fake_git::VARIABLE, manifest);
        command
            .args(self.arguments)
            .arg("--")
            .arg(self.target)
            .current_dir(&home)
            .env("TMPDIR", &temporary)
            .env("GIT_TERMINAL_PROMPT", "0");
        match files {
            Files::Upstream => {}
            Files::Served(proxy) => proxy.serve(&mut command),
            Files::None => Network::close(&mut command),
        }
        let is_isolated = self.program.network == Network::Namespace;
        let isolation = Isolation {
            network: is_isolated && matches!(files, Files::None),
            read_only: Some(self.input).filter(|_| is_isolated),
        };
        process::isolate(&mut command, isolation)
            .map_err(|error| Failure::new(format!("no directory to build in: {error}")))?;
        match process::run(&mut command, None, Some(TIMEOUT), Terminal::Detached) {
            Ok(output) => Ok(Build {
                said: redact::text(&output.stderr),
                success: output.status.success(),
                stdout: output.stdout,
            }),
            Err(error) => Err(Failure::new(error.to_string())),
        }
    }
}

/// Lets a build see nothing of our environment but what it needs.
fn see(command: &mut Command, is_open: bool) {
    command.env_clear();
    let is_seen = |name: &str| {
        VARIABLES.contains(&name)
            || name.starts_with("LC_")
            || is_open && (PROXIES.contains(&name) || CONNECTION.contains(&name))
    };
    let seen = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_seen));
    command.envs(seen);
}

/// Returns `PATH` with a directory before all others.
fn first_on_path(directory: &Path) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(directory.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(all).unwrap_or_else(|_| directory.as_os_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::cause;

    #[test]
    fn the_cause_is_extracted_from_kustomize_output() {
        for (said, expected) in [
            ("no such file", "no such file"),
            (
                "accumulating resources: accumulation err='accumulating resources from '../../base': 'base' must resolve to a file': recursed merging from path 'base': may not add resource",
                "in `base`: may not add resource",
            ),
            (
                "accumulating resources: accumulation err='x': recursed accumulation of path '/tmp/a/kustomize-1/gen': accumulation err='y': recursed accumulation of path '/tmp/a/kustomize-2': external plugins disabled",
                "external plugins disabled",
            ),
        ] {
            assert_eq!(cause(said), expected);
        }
    }
}
