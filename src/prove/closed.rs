//! Building with the network closed.

use std::fmt;
#[cfg(feature = "localize")]
use std::process::Command;

#[cfg(feature = "localize")]
use crate::process::{self, Output};

/// How the network is closed for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
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

/// What programs read that tells them through which proxy to go.
#[cfg(feature = "localize")]
pub(super) const PROXIES: [&str; 6] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

impl Network {
    /// Returns its name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Network::Namespace => "namespace",
            Network::Proxies => "proxies",
        }
    }

    /// Closes the network for what `command` is going to start.
    #[cfg(feature = "localize")]
    pub(super) fn close(self, command: &mut Command) {
        for name in PROXIES {
            // Port 9 discards, and nothing has listened there for decades.
            command.env(name, "http://127.0.0.1:9");
        }
        command
            .env_remove("NO_PROXY")
            .env_remove("no_proxy")
            .env("GIT_ALLOW_PROTOCOL", "none");
        if self == Network::Namespace {
            process::without_network(command);
        }
    }
}

/// Runs something in the tightest way that this machine allows: with a network, then with none is an
/// error of its own.
#[cfg(feature = "localize")]
pub(super) fn first(
    run: impl Fn(Option<Network>) -> Result<Output, process::Error>,
) -> Result<(Network, Output), process::Error> {
    if process::CAN_CLOSE_NETWORK
        && let Ok(output) = run(Some(Network::Namespace))
    {
        return Ok((Network::Namespace, output));
    }
    Ok((Network::Proxies, run(None)?))
}
