//! Building with the network closed.

use std::fmt;
use std::process::Command;

use serde::Serialize;

use crate::os::process::{self, Isolation, Output};

/// How the network is closed for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Network {
    /// It has a network of its own, with nothing in it (Linux).
    Namespace,
    /// All that it sends goes to a proxy that is not there, and git answers nothing.
    Proxies,
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Network::Namespace => "network closed",
            Network::Proxies => "network closed by a dead proxy",
        })
    }
}

/// The variables that set a program's proxy.
pub(super) const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

impl Network {
    /// Makes `command` see no network. In a [namespace](Network::Namespace) there is none.
    pub(super) fn close(command: &mut Command) {
        for name in PROXIES {
            // Port 9 discards, and nothing has listened there for decades.
            command.env(name, "http://127.0.0.1:9");
        }
        command.env_remove("NO_PROXY").env_remove("no_proxy").env("GIT_ALLOW_PROTOCOL", "none");
    }
}

/// What this machine lets a build have of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Walls {
    /// How the network can be closed.
    pub(super) network: Network,
    /// Whether a directory can be made read-only for it.
    pub(super) read_only: bool,
}

/// Runs something as isolated as this machine allows. `run` isolates in the way that it is given.
pub(super) fn first(
    run: impl Fn(Isolation<'_>) -> Result<Output, process::Error>,
) -> Result<(Walls, Output), process::Error> {
    let directory = std::env::temp_dir();
    for read_only in [Some(directory.as_path()), None] {
        let isolation = Isolation { network: true, read_only };
        if process::CAN_ISOLATE
            && let Ok(output) = run(isolation)
        {
            let walls = Walls { network: Network::Namespace, read_only: read_only.is_some() };
            return Ok((walls, output));
        }
    }
    let walls = Walls { network: Network::Proxies, read_only: false };
    Ok((walls, run(Isolation::default())?))
}
