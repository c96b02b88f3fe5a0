//! The isolation of a child from the rest of the machine, on Linux only: a filter of system calls, Landlock, and a
//! process that ends all that the child starts.
//!
//! Namespaces would add nothing: the filter asks us for each connection, Landlock keeps the files as they are, and both
//! are allowed on machines that forbid namespaces. So every machine gives the same verdict.

#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod requests;

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

use serde::Serialize;

#[cfg(target_os = "linux")]
pub(crate) use linux::run;

use super::process::Output;

/// The means that isolate a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Means {
    /// The filter, and Landlock as far as the machine has it.
    Filter,
    /// Nothing, if the machine does not allow the filter. A child then asks our proxy only if it respects the settings.
    #[serde(rename = "proxies")]
    Nothing,
}

/// The walls around a child.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Isolation<'a> {
    pub means: Means,
    /// The only address that it may connect to; `None` if its network is open.
    pub network: Option<SocketAddr>,
    /// The directory that it reads, with all that is below, and cannot change.
    pub input: &'a Path,
    /// The only directories in which it may write.
    pub writable: &'a [&'a Path],
    /// Whether it may talk to servers on this machine by path, as container engines do.
    pub local: bool,
}

/// A request of an isolated child.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Request {
    /// A connection, with its address if that could be read.
    Connection(Option<SocketAddr>),
    /// A socket that no child gets.
    Socket(&'static str),
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Connection(Some(address)) => address.fmt(f),
            Request::Connection(None) => f.write_str("a connection"),
            Request::Socket(kind) => f.write_str(kind),
        }
    }
}

/// The result of an isolated child.
#[derive(Debug)]
pub(crate) struct Isolated {
    pub output: Output,
    /// The requests that were refused; `None` if the network was open, or if the machine does not show them.
    pub refused: Option<BTreeSet<Request>>,
}

/// Runs a command to its end, without any isolation: only Linux has it. Fails if `isolation` demands the filter.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run(
    command: &mut std::process::Command,
    isolation: Isolation<'_>,
    bounds: impl Into<super::process::Bounds>,
) -> Result<Isolated, super::process::Error> {
    use super::process::{self, Error, Terminal};
    match isolation.means {
        Means::Nothing => {
            Ok(Isolated { output: process::run(command, None, bounds, Terminal::Detached)?, refused: None })
        }
        Means::Filter => Err(Error::Io(process::name(command), std::io::ErrorKind::Unsupported.into())),
    }
}

#[cfg(test)]
mod tests;
