//! What keeps a child from the rest of the machine: namespaces, Landlock, a filter of system calls, and a process that ends
//! all that it starts. Elsewhere than on Linux nothing does.

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
use std::process::Command;

use crate::os::network_namespace::Outside;

/// How a child is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Means {
    /// Namespaces; Landlock and the filter as well, as far as the machine has them.
    Namespaces,
    /// The filter, and Landlock as far as the machine has it.
    Filter,
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

/// An isolation that is prepared. The child enters it last of all that happens before its program starts.
pub(crate) struct Walls {
    #[cfg(target_os = "linux")]
    inner: linux::Walls,
}

/// The requests of a child that are refused.
pub(crate) struct Requests {
    #[cfg(target_os = "linux")]
    inner: Option<requests::Answering>,
}

impl Requests {
    /// Those that were refused once the child has ended, and its command is gone; `None` if the machine does not show
    /// them.
    pub(crate) fn refused(self) -> Option<BTreeSet<Request>> {
        #[cfg(target_os = "linux")]
        {
            self.inner?.refused()
        }
        #[cfg(not(target_os = "linux"))]
        None
    }
}

/// Prepares to isolate the child of a command. Returns what receives the listener in its network, too, if it gets one. Where
/// the machine forbids it, the child cannot be started.
#[cfg_attr(not(target_os = "linux"), expect(unused_variables))]
pub(crate) fn isolate(
    command: &Command,
    isolation: Isolation<'_>,
) -> std::io::Result<(Walls, Option<Outside>, Requests)> {
    #[cfg(target_os = "linux")]
    {
        let (inner, outside, requests) = linux::Walls::build(command, isolation)?;
        Ok((Walls { inner }, outside, Requests { inner: requests }))
    }
    #[cfg(not(target_os = "linux"))]
    match isolation.means {
        Means::Nothing => Ok((Walls {}, None, Requests {})),
        _ => Err(std::io::ErrorKind::Unsupported.into()),
    }
}

impl Walls {
    /// Lets the child of a command enter. What follows happens inside.
    #[cfg_attr(not(target_os = "linux"), expect(unused_variables))]
    pub(super) fn enclose(self, command: &mut Command) {
        #[cfg(target_os = "linux")]
        self.inner.enclose(command);
    }
}

#[cfg(test)]
mod tests;
