//! Running one build.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::closed;
use super::fake_git;
use super::program::Program;
use super::proxy::Proxy;
use crate::git::untied;
use crate::message::failure::{Failure, Result};
use crate::message::redact;
use crate::os::interrupt::unusable;
use crate::os::process::{self, Isolation, Limits, Terminal};

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

/// What a build reaches.
#[derive(Clone, Copy)]
pub(super) enum Reach<'a> {
    /// The network, by the user's git with the user's configuration.
    Upstream,
    /// The repositories in this manifest, by our own git; the rest of the network.
    Fetched(&'a Path),
    /// The repositories in this manifest, and what was downloaded.
    Served(&'a Path, &'a Proxy),
    /// The repositories in this manifest.
    Local(&'a Path),
    /// Nothing.
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
        let manifest = match self.reach {
            Reach::Upstream => None,
            Reach::Fetched(manifest) | Reach::Served(manifest, _) | Reach::Local(manifest) => Some(manifest),
            Reach::Nothing => Some(nothing.as_path()),
        };
        match manifest {
            // git needs what its user has configured. No program of upstream runs beside it.
            None => {
                untied(&mut command);
                command.env_remove(fake_git::VARIABLE);
            }
            Some(manifest) => {
                see(&mut command, matches!(self.reach, Reach::Fetched(_)));
                fake_git::link(&bin)
                    .map_err(|error| Failure::new(format!("git could not be stood in for: {error}")))?;
                command.env("HOME", &home).env("PATH", first_on_path(&bin)).env(fake_git::VARIABLE, manifest);
            }
        }
        command
            .args(self.arguments)
            .arg("--")
            .arg(self.target)
            .current_dir(&home)
            .env("TMPDIR", &temporary)
            .env("GIT_TERMINAL_PROMPT", "0");
        match self.reach {
            Reach::Upstream | Reach::Fetched(_) => {}
            Reach::Served(_, proxy) => proxy.serve(&mut command),
            Reach::Local(_) | Reach::Nothing => closed::Network::close(&mut command),
        }
        let is_closed = matches!(self.reach, Reach::Local(_) | Reach::Nothing);
        let walls = self.program.walls;
        let isolation = Isolation {
            network: is_closed && walls.network == closed::Network::Namespace,
            // The real git may ask ssh, which trusts no file whose owner it does not see.
            read_only: Some(self.input).filter(|_| manifest.is_some() && walls.read_only),
        };
        process::isolate(&mut command, isolation)
            .map_err(|error| Failure::new(format!("no directory to build in: {error}")))?;
        let limits = Limits { timeout: Some(TIMEOUT), cancel: None };
        match process::run(&mut command, None, limits, Terminal::Detached) {
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
            || is_open && (closed::PROXIES.contains(&name) || CONNECTION.contains(&name))
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
