//! Running one build.

use std::ffi::{OsStr, OsString};
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

/// What one build left.
#[derive(Debug, Clone)]
pub(super) struct Build {
    /// Everything that it wrote to its standard output.
    pub(super) stdout: Vec<u8>,
    /// What it said on its standard error, without secrets.
    pub(super) said: String,
    /// Whether it ended with status 0.
    pub(super) success: bool,
    /// Whether it was ended because it took too long, which says nothing about what is built.
    pub(super) is_late: bool,
}

/// Which git a build finds.
pub(super) enum Git<'a> {
    /// The user's, with the user's configuration.
    Real,
    /// Our own, which knows what is in this manifest.
    StandIn(&'a Path),
}

/// What a build reaches over http and https.
#[derive(Clone, Copy)]
pub(super) enum Network<'a> {
    /// Everything.
    Open,
    /// What was fetched, and what is on this machine.
    Fetched(&'a Proxy),
    /// Nothing.
    Closed,
}

/// What is around a build.
pub(super) struct BuildEnv<'a> {
    pub(super) git: Git<'a>,
    pub(super) network: Network<'a>,
    /// What it builds from, which it may not change.
    pub(super) input: &'a Path,
}

/// What a build sees of our environment: where programs are, and the locale.
const VARIABLES: &[&str] =
    if cfg!(windows) { &["PATH", "PATHEXT", "SystemRoot", "ComSpec"] } else { &["PATH", "LANG", "LANGUAGE"] };

/// What it also sees where it asks upstream itself.
const CONNECTION: [&str; 4] = ["NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Builds `target` in a directory of its own, `private`, which is made.
pub(super) fn build(
    program: &Program,
    target: &OsStr,
    arguments: &[String],
    private: &Path,
    room: BuildEnv<'_>,
    timeout: Duration,
) -> Result<Build> {
    let home = private.join("home");
    let temporary = private.join("tmp");
    for directory in [&home, &temporary] {
        std::fs::create_dir_all(directory).map_err(|error| unusable(&error))?;
    }
    let mut command = program.command();
    match room.git {
        // git needs what its user has configured. No program of upstream runs beside it.
        Git::Real => {
            untied(&mut command);
            command.env_remove(fake_git::VARIABLE);
        }
        Git::StandIn(manifest) => {
            let is_open = matches!(room.network, Network::Open);
            see(&mut command, is_open);
            command.env("HOME", &home);
            let bin = private.join("bin");
            fake_git::link(&bin).map_err(|error| Failure::new(format!("git could not be stood in for: {error}")))?;
            command.env("PATH", first_on_path(&bin)).env(fake_git::VARIABLE, manifest);
        }
    }
    command
        .args(arguments)
        .arg("--")
        .arg(target)
        .current_dir(&home)
        .env("TMPDIR", &temporary)
        .env("GIT_TERMINAL_PROMPT", "0");
    match room.network {
        Network::Open => {}
        Network::Fetched(proxy) => proxy.serve(&mut command),
        Network::Closed => closed::Network::close(&mut command),
    }
    let is_closed = matches!(room.network, Network::Closed);
    // The real git may ask ssh, which trusts no file whose owner it does not see.
    let is_apart = matches!(room.git, Git::StandIn(_));
    let isolation = Isolation {
        network: is_closed && program.walls.network == closed::Network::Namespace,
        read_only: Some(room.input).filter(|_| is_apart && program.walls.read_only),
    };
    process::isolate(&mut command, isolation)
        .map_err(|error| Failure::new(format!("no directory to build in: {error}")))?;
    let limits = Limits { timeout: Some(timeout), cancel: None };
    match process::run(&mut command, None, limits, Terminal::Detached) {
        Ok(output) => Ok(Build {
            said: redact::text(&output.stderr),
            success: output.status.success(),
            is_late: false,
            stdout: output.stdout,
        }),
        Err(error @ process::Error::Deadline(..)) => {
            Ok(Build { stdout: Vec::new(), said: error.to_string(), success: false, is_late: true })
        }
        Err(error) => Err(Failure::new(error.to_string())),
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
