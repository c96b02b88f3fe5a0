//! A network of a child's own, in which one listener answers: ours.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};

#[cfg(target_os = "linux")]
pub(super) use linux::{Inside, pair};

/// Where a child finds the listener in its network.
pub(crate) const ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 3128));

/// Receives the descriptor of the listener from a child.
#[derive(Debug)]
pub(crate) struct Outside(#[cfg(target_os = "linux")] std::os::fd::OwnedFd);

impl Outside {
    /// Waits until the child has begun; none if it never does, and its command is gone.
    pub(crate) fn listener(self) -> Option<TcpListener> {
        #[cfg(target_os = "linux")]
        {
            self.handed().map(TcpListener::from)
        }
        #[cfg(not(target_os = "linux"))]
        {
            None
        }
    }

    /// Waits until the child has handed something out; `None` if it never does, and its command is gone.
    #[cfg(target_os = "linux")]
    pub(super) fn handed(self) -> Option<std::os::fd::OwnedFd> {
        linux::receive(&self.0)
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, IoSlice, IoSliceMut};
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd as _, OwnedFd};

    use rustix::ioctl::{Opcode, Setter, ioctl};
    use rustix::net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, SocketFlags, SocketType, bind, listen, recvmsg, sendmsg, socket_with, socketpair,
    };

    use super::{ADDRESS, Outside};

    /// How many connections wait to be accepted.
    const BACKLOG: i32 = 128;

    /// Sends a descriptor to the parent.
    pub(in crate::os) struct Inside(OwnedFd);

    pub(in crate::os) fn pair() -> io::Result<(Inside, Outside)> {
        let (inside, outside) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        Ok((Inside(inside), Outside(outside)))
    }

    impl Inside {
        /// Makes the listener in the new network of this process, and hands it out. Nothing but system calls, as it runs
        /// between fork and exec.
        pub(in crate::os) fn listen(&self) -> io::Result<()> {
            let socket = |kind| socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None);
            up(&socket(SocketType::DGRAM)?)?;
            let listener = socket(SocketType::STREAM)?;
            bind(&listener, &ADDRESS)?;
            listen(&listener, BACKLOG)?;
            self.hand_out(&listener)
        }

        pub(in crate::os) fn hand_out(&self, descriptor: &OwnedFd) -> io::Result<()> {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut message = SendAncillaryBuffer::new(&mut space);
            let handed = [descriptor.as_fd()];
            message.push(SendAncillaryMessage::ScmRights(&handed));
            sendmsg(&self.0, &[IoSlice::new(b"x")], &mut message, SendFlags::NOSIGNAL)?;
            Ok(())
        }
    }

    pub(super) fn receive(from: &OwnedFd) -> Option<OwnedFd> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut message, RecvFlags::CMSG_CLOEXEC).ok()?;
        message.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut handed) => handed.next(),
            _ => None,
        })
    }

    /// Lets a network reach itself.
    #[allow(unsafe_code)]
    fn up(socket: &OwnedFd) -> io::Result<()> {
        /// `struct ifreq` of netdevice(7), with flags.
        #[repr(C)]
        struct IfReq {
            name: [u8; 16],
            flags: u16,
            rest: [u8; 22],
        }
        const SIOCSIFFLAGS: Opcode = 0x8914;
        const IFF_UP: u16 = 1;
        let mut request = IfReq { name: [0; 16], flags: IFF_UP, rest: [0; 22] };
        request.name[..2].copy_from_slice(b"lo");
        // SAFETY: this request reads a `struct ifreq`, which is as large as ours.
        unsafe { Ok(ioctl(socket, Setter::<SIOCSIFFLAGS, IfReq>::new(request))?) }
    }
}
