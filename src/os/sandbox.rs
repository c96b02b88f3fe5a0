//! The isolation of a child from the rest of the machine, on Linux only: a filter of system calls, Landlock, and a process
//! that ends all that the child starts.
//!
//! Namespaces would add nothing: the filter asks us for each connection, Landlock keeps the files as they are, and both are
//! allowed on machines that forbid namespaces. So every machine gives the same verdict.

#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod handover;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod requests;

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

use serde::Serialize;

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{Walls, isolate};
#[cfg(target_os = "linux")]
pub(crate) use linux::{Walls, isolate};

/// The means that isolate a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Means {
    /// The filter, and Landlock as far as the machine has it.
    Filter,
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

/// Nothing keeps a child from anything.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::collections::BTreeSet;
    use std::io;
    use std::process::Command;

    use super::{Isolation, Means, Request};

    pub(crate) struct Walls;
    pub(crate) enum Answering {}

    impl Walls {
        pub(in crate::os) fn enclose(self, _: &mut Command) {}
    }

    impl Answering {
        pub(crate) fn refused(self) -> Option<BTreeSet<Request>> {
            match self {}
        }
    }

    pub(crate) fn isolate(_: &Command, isolation: Isolation<'_>) -> io::Result<(Walls, Option<Answering>)> {
        match isolation.means {
            Means::Nothing => Ok((Walls, None)),
            Means::Filter => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

#[cfg(test)]
mod tests;
