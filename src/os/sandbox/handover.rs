//! Hands a descriptor from a child to its parent.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// Sends a descriptor to the parent.
pub(super) struct Sender(OwnedFd);

/// Receives a descriptor from a child.
pub(super) struct Receiver(OwnedFd);

pub(super) fn pair() -> io::Result<(Sender, Receiver)> {
    let (sender, receiver) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    Ok((Sender(sender), Receiver(receiver)))
}

impl Sender {
    /// Makes nothing but system calls, as it runs between fork and exec.
    pub(super) fn send(&self, descriptor: &OwnedFd) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = SendAncillaryBuffer::new(&mut space);
        let sent = [descriptor.as_fd()];
        message.push(SendAncillaryMessage::ScmRights(&sent));
        sendmsg(&self.0, &[IoSlice::new(b"x")], &mut message, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

impl Receiver {
    /// Waits until the child has sent one; `None` if it never does, and its command is gone.
    pub(super) fn receive(self) -> Option<OwnedFd> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        recvmsg(&self.0, &mut [IoSliceMut::new(&mut byte)], &mut message, RecvFlags::CMSG_CLOEXEC).ok()?;
        message.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut received) => received.next(),
            _ => None,
        })
    }
}
