//! Requests of a closed child that the kernel shows us before it answers them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, PipeReader};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;

use libc::{c_long, seccomp_notif, seccomp_notif_addfd, seccomp_notif_resp};
use rustix::event::{PollFd, PollFlags, poll};

use super::{Isolation, Request};

/// The requests of a child while it runs.
pub(super) struct Requests<'a> {
    /// The descriptor on which the kernel asks.
    pub(super) kernel: OwnedFd,
    pub(super) isolation: Isolation<'a>,
}

/// The answer to a request.
enum Answer {
    /// The kernel makes the call.
    Allowed,
    /// We have made the connection for the child.
    Connected,
    Refused(Option<Request>),
}

impl Requests<'_> {
    /// Answers the kernel until the other end of `ended` is closed, when the child has ended. Returns the refused
    /// requests.
    pub(super) fn answer(&self, ended: &PipeReader) -> BTreeSet<Request> {
        let mut refused = BTreeSet::new();
        loop {
            let mut ready = [PollFd::new(&self.kernel, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
            match poll(&mut ready, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Ok(_) if ready[0].revents().contains(PollFlags::IN) => {}
                _ => return refused,
            }
            // A request is gone if its process has ended.
            let Ok(asked) = self.receive() else { continue };
            let answer = self.judge(&asked);
            let mut reply = seccomp_notif_resp { id: asked.id, val: 0, error: 0, flags: 0 };
            match answer {
                // SECCOMP_USER_NOTIF_FLAG_CONTINUE
                Answer::Allowed => reply.flags = 1,
                Answer::Connected => {}
                Answer::Refused(request) => {
                    reply.error = -libc::EACCES;
                    refused.extend(request);
                }
            }
            self.tell(libc::SECCOMP_IOCTL_NOTIF_SEND, &mut reply).ok();
        }
    }

    /// Decides about a call: only a connection to the permitted address is made, and with `local` one to a server on
    /// this machine. A refused request is a finding, unless programs make such a request in vain without needing it.
    fn judge(&self, asked: &seccomp_notif) -> Answer {
        match c_long::from(asked.data.nr) {
            libc::SYS_connect => self.judge_connection(asked),
            libc::SYS_socket => Answer::Refused(refused_socket(asked)),
            // The filter asks about no other calls than those that would connect while they send. Such a call is never
            // permitted, so its address is not read.
            _ => Answer::Refused(Some(Request::Connection(None))),
        }
    }

    /// Decides about a call that connects a socket.
    fn judge_connection(&self, asked: &seccomp_notif) -> Answer {
        let [socket, at, length, ..] = asked.data.args;
        match self.read_address(asked, at, length) {
            None => Answer::Refused(Some(Request::Connection(None))),
            Some(Address::Other) if self.isolation.local => Answer::Allowed,
            Some(Address::Other) => Answer::Refused(None),
            Some(Address::Internet(address)) if Some(address) != self.isolation.network => {
                Answer::Refused(Some(Request::Connection(Some(address))))
            }
            // We connect, not the child: another thread of it may change the address before the kernel reads it. If our
            // server cannot be reached, the child is not to blame.
            Some(Address::Internet(address)) => match self.connect(asked, socket, address) {
                Ok(()) => Answer::Connected,
                Err(_) => Answer::Refused(None),
            },
        }
    }

    /// Reads the address that a call is given; `None` if it cannot be read, or belongs to a family that we do not know.
    fn read_address(&self, asked: &seccomp_notif, at: u64, length: u64) -> Option<Address> {
        let mut bytes = [0; 28];
        let length = bytes.len().min(usize::try_from(length & 0xFFFF_FFFF).ok()?);
        let memory = File::open(format!("/proc/{}/mem", asked.pid)).ok()?;
        let read = memory.read_at(&mut bytes[..length], at).ok()?;
        // The number may belong to another process by now.
        let is_valid = self.tell(libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &mut { asked.id }).is_ok();
        (is_valid && read == length).then(|| Address::read(&bytes)).flatten()
    }

    /// Connects to the permitted address for the child, and puts the connected socket in the place of its own.
    fn connect(&self, asked: &seccomp_notif, socket: u64, address: SocketAddr) -> io::Result<()> {
        let socket = u32::try_from(socket).map_err(io::Error::other)?;
        // The new socket behaves as the one that it replaces: whether it blocks, and ends with exec.
        let flags = fs::read_to_string(format!("/proc/{}/fdinfo/{socket}", asked.pid))?;
        let flags = flags.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok()).unwrap_or(libc::O_CLOEXEC);
        let ours = TcpStream::connect(address)?;
        ours.set_nonblocking(flags & libc::O_NONBLOCK != 0)?;
        let mut added = seccomp_notif_addfd {
            id: asked.id,
            // SECCOMP_ADDFD_FLAG_SETFD: the new socket gets the number `newfd`.
            flags: 1,
            srcfd: ours.as_raw_fd().unsigned_abs(),
            newfd: socket,
            newfd_flags: (flags & libc::O_CLOEXEC).unsigned_abs(),
        };
        self.tell(libc::SECCOMP_IOCTL_NOTIF_ADDFD, &mut added)
    }

    /// Takes the next request from the kernel.
    #[allow(unsafe_code)]
    fn receive(&self) -> io::Result<seccomp_notif> {
        // SAFETY: all of it may be zero, and the kernel wants it to be.
        let mut asked: seccomp_notif = unsafe { std::mem::zeroed() };
        self.tell(libc::SECCOMP_IOCTL_NOTIF_RECV, &mut asked)?;
        Ok(asked)
    }

    /// Makes a request to the kernel, with the value that seccomp_unotify(2) names for it.
    #[allow(unsafe_code)]
    fn tell<T>(&self, request: libc::Ioctl, value: &mut T) -> io::Result<()> {
        // SAFETY: each request reads or writes a value of that type and nothing else.
        let status = unsafe { libc::ioctl(self.kernel.as_raw_fd(), request, std::ptr::from_mut(value)) };
        if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// The content of a `struct sockaddr`.
enum Address {
    Internet(SocketAddr),
    /// The path of a server on this machine, or the end of a connection.
    Other,
}

impl Address {
    /// Reads a `struct sockaddr`; `None` for an address of another family.
    fn read(bytes: &[u8; 28]) -> Option<Address> {
        let family = i32::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        let port = u16::from_be_bytes([bytes[2], bytes[3]]);
        let part = |from: usize| <[u8; 4]>::try_from(&bytes[from..from + 4]).unwrap_or_default();
        match family {
            libc::AF_INET => Some(Address::Internet((Ipv4Addr::from(part(4)), port).into())),
            libc::AF_INET6 => {
                let address = <[u8; 16]>::try_from(&bytes[8..24]).unwrap_or_default();
                Some(Address::Internet((Ipv6Addr::from(address).to_canonical(), port).into()))
            }
            libc::AF_UNIX | libc::AF_UNSPEC => Some(Address::Other),
            _ => None,
        }
    }
}

/// The request for a socket that no child gets; `None` for a socket that programs try to make without needing it.
fn refused_socket(asked: &seccomp_notif) -> Option<Request> {
    let [family, kind, ..] = asked.data.args.map(|argument| (argument & 0xFFFF_FFFF) as i32);
    match (family, kind & 0xF) {
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM) => Some(Request::Socket("a UDP socket")),
        // The filter allows sockets of TCP without asking.
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM) => Some(Request::Socket("a socket of MPTCP or SCTP")),
        (libc::AF_INET | libc::AF_INET6 | libc::AF_PACKET, _) => Some(Request::Socket("a raw socket")),
        // Most scripts look up a user, and need no answer.
        (libc::AF_UNIX, _) if !is_lookup(asked.pid, kind) => Some(Request::Socket("a Unix socket")),
        (libc::AF_VSOCK, _) => Some(Request::Socket("a socket of the virtual machine")),
        _ => None,
    }
}

/// Whether a Unix socket is made as a C library makes it to look up a user.
fn is_lookup(process: u32, kind: i32) -> bool {
    let plain = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    let library = match kind {
        kind if kind == plain | libc::SOCK_NONBLOCK => "/libc.so.6",
        kind if kind == plain => "/ld-musl-",
        _ => return false,
    };
    fs::read_to_string(format!("/proc/{process}/maps")).is_ok_and(|maps| maps.contains(library))
}
