//! Running one build.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use super::program::Program;
use super::proxy::Proxy;
use super::stand_in;
use crate::failure::{Failure, Result};
use crate::git::untied;
use crate::process::{self, Limits, Terminal};
use crate::redact;

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
pub(super) struct Room<'a> {
    pub(super) git: Git<'a>,
    pub(super) network: Network<'a>,
}

/// What lets a build run plugins, which look for their code in the user's home.
const PLUGINS: &str = "--enable-alpha-plugins";

/// Builds `target` in a directory of its own, `private`, which is made.
pub(super) fn build(
    program: &Program,
    target: &OsStr,
    arguments: &[String],
    private: &Path,
    room: Room<'_>,
    timeout: Duration,
) -> Result<Build> {
    let home = private.join("home");
    let temporary = private.join("tmp");
    for directory in [&home, &temporary] {
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::new(format!("no directory to build in: {error}")))?;
    }
    let mut command = program.command();
    untied(&mut command);
    command
        .args(arguments)
        .arg("--")
        .arg(target)
        .current_dir(&home)
        .env("TMPDIR", &temporary)
        .env("GIT_TERMINAL_PROMPT", "0");
    let plugins = arguments
        .iter()
        .any(|argument| argument == PLUGINS || argument == "--enable-alpha-plugins=true");
    if !plugins {
        command.env_remove("KUSTOMIZE_PLUGIN_HOME");
        if let Git::StandIn(_) = room.git {
            command.env("HOME", &home).env("XDG_CONFIG_HOME", &home);
        }
    }
    command.env_remove(stand_in::VARIABLE);
    if let Git::StandIn(manifest) = room.git {
        let bin = private.join("bin");
        stand_in::link(&bin)
            .map_err(|error| Failure::new(format!("git could not be stood in for: {error}")))?;
        command
            .env("PATH", first_on_path(&bin))
            .env(stand_in::VARIABLE, manifest);
    }
    match room.network {
        Network::Open => {}
        Network::Fetched(proxy) => proxy.serve(&mut command),
        Network::Closed => program.network.close(&mut command),
    }
    let limits = Limits {
        timeout: Some(timeout),
        cancel: None,
    };
    match process::run(&mut command, None, limits, Terminal::Detached) {
        Ok(output) => Ok(Build {
            said: redact::text(&output.stderr),
            success: output.status.success(),
            stdout: output.stdout,
        }),
        Err(error @ process::Error::Deadline(..)) => Ok(Build {
            stdout: Vec::new(),
            said: error.to_string(),
            success: false,
        }),
        Err(error) => Err(Failure::new(error.to_string())),
    }
}

/// Returns `PATH` with a directory before all others.
fn first_on_path(directory: &Path) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(directory.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(all).unwrap_or_else(|_| directory.as_os_str().to_owned())
}
