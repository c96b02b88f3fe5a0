//! What keeps a child from the rest of the machine: namespaces, Landlock, a filter of system calls, and a process that ends
//! all that it starts. Elsewhere than on Linux nothing does.

#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod network_namespace;
#[cfg(target_os = "linux")]
mod requests;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;

use serde::Serialize;

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{Outside, Walls, isolate};
#[cfg(target_os = "linux")]
pub(crate) use linux::{Walls, isolate};
#[cfg(target_os = "linux")]
pub(crate) use network_namespace::Outside;

/// Where a child finds the listener in its network.
pub(crate) const ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 3128));

/// How a child is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Means {
    /// Namespaces; Landlock and the filter as well, as far as the machine has them.
    #[serde(rename = "namespace")]
    Namespaces,
    /// The filter, and Landlock as far as the machine has it.
    Filter,
    #[serde(rename = "proxies")]
    Nothing,
}

/// What a child gets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Isolation<'a> {
    pub means: Means,
    /// All that it may connect to, if its network is closed. With namespaces it is a listener of ours that only the child has.
    pub network: Option<SocketAddr>,
    /// What it reads, with all that is below, and cannot change.
    pub input: &'a Path,
    /// Where alone it may write.
    pub writable: &'a [&'a Path],
    /// Whether it may talk to servers on this machine by path, as container engines do.
    pub local: bool,
}

/// What an isolated child asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Request {
    /// A connection; with its address where that could be read.
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
    use std::net::TcpListener;
    use std::process::Command;

    use super::{Isolation, Means, Request};

    pub(crate) struct Walls;
    pub(crate) enum Answering {}
    #[derive(Debug)]
    pub(crate) enum Outside {}

    impl Outside {
        pub(crate) fn listener(self) -> Option<TcpListener> {
            match self {}
        }
    }

    impl Walls {
        pub(in crate::os) fn enclose(self, _: &mut Command) {}
    }

    impl Answering {
        pub(crate) fn refused(self) -> Option<BTreeSet<Request>> {
            match self {}
        }
    }

    pub(crate) fn isolate(
        _: &Command,
        isolation: Isolation<'_>,
    ) -> io::Result<(Walls, Option<Outside>, Option<Answering>)> {
        match isolation.means {
            Means::Nothing => Ok((Walls, None, None)),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

#[cfg(test)]
mod tests;
