//! A network of a child's own, in which one listener answers: ours.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, bind, listen, recvmsg, sendmsg, socket_with, socketpair,
};

use super::ADDRESS;

/// How many connections wait to be accepted.
const BACKLOG: i32 = 128;

/// Receives a descriptor from a child.
#[derive(Debug)]
pub(crate) struct Outside(OwnedFd);

/// Sends a descriptor to the parent.
pub(super) struct Inside(OwnedFd);

pub(super) fn pair() -> io::Result<(Inside, Outside)> {
    let (inside, outside) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    Ok((Inside(inside), Outside(outside)))
}

impl Inside {
    /// Makes the listener in the new network of this process, and hands it out. Nothing but system calls, as it runs
    /// between fork and exec.
    pub(super) fn listen(&self) -> io::Result<()> {
        let socket = |kind| socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None);
        up(&socket(SocketType::DGRAM)?)?;
        let listener = socket(SocketType::STREAM)?;
        bind(&listener, &ADDRESS)?;
        listen(&listener, BACKLOG)?;
        self.hand_out(&listener)
    }

    pub(super) fn hand_out(&self, descriptor: &OwnedFd) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = SendAncillaryBuffer::new(&mut space);
        let handed = [descriptor.as_fd()];
        message.push(SendAncillaryMessage::ScmRights(&handed));
        sendmsg(&self.0, &[IoSlice::new(b"x")], &mut message, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

impl Outside {
    /// Waits until the child has begun; none if it never does, and its command is gone.
    pub(crate) fn listener(self) -> Option<TcpListener> {
        self.handed().map(TcpListener::from)
    }

    /// Waits until the child has handed something out; `None` if it never does, and its command is gone.
    pub(super) fn handed(self) -> Option<OwnedFd> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        recvmsg(&self.0, &mut [IoSliceMut::new(&mut byte)], &mut message, RecvFlags::CMSG_CLOEXEC).ok()?;
        message.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut handed) => handed.next(),
            _ => None,
        })
    }
}

/// Lets a network reach itself.
#[allow(unsafe_code)]
fn up(socket: &OwnedFd) -> io::Result<()> {
    const SIOCSIFFLAGS: libc::Ioctl = 0x8914;
    // SAFETY: all of it may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[..2].copy_from_slice(&[b'l' as libc::c_char, b'o' as libc::c_char]);
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: this request reads a value of that type.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCSIFFLAGS, &raw const request) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
