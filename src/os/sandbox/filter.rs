//! The system calls that a closed child may make, as a program for the kernel.
//!
//! A filter sees numbers, no memory: which address a connection is for, [`super::requests`] reads.

use libc::{c_long, sock_filter};

/// What the kernel calls this processor; `None` if there is no filter for it.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xC000_003E)
} else if cfg!(all(target_arch = "aarch64", target_endian = "little")) {
    Some(0xC000_00B7)
} else {
    None
};
/// The first number of the calls with short pointers, which x86-64 has, too.
const X32: u32 = 0x4000_0000;
/// The flags of clone(2) that make namespaces.
const NAMESPACES: u32 = 0x7E02_0000;

/// Calls that change mounts and namespaces, or read other processes. No build needs them.
const FORBIDDEN: &[c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_open_by_handle_at,
];
/// Calls whose arguments no filter can see. They fail as on an old kernel, and programs go on without them.
const ABSENT: [c_long; 2] = [libc::SYS_io_uring_setup, libc::SYS_clone3];
const LISTENS: [c_long; 3] = [libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4];
/// The calls that can connect while they send, and which of their arguments says so.
const SENDS: [(c_long, u32); 3] = [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)];

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const ABOVE: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const HAS: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;

/// One instruction: compares or loads by `k`. A comparison skips `yes` instructions if it is true, `no` if it is false.
#[expect(clippy::cast_possible_truncation, reason = "codes of instructions have 16 bits")]
fn step(code: u32, k: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter { code: code as u16, jt: yes, jf: no, k }
}

/// Loads an argument of the system call.
fn load(argument: u32) -> sock_filter {
    // `struct seccomp_data`: number, architecture, instruction pointer, then six arguments; the low half comes first.
    step(LOAD, 16 + 8 * argument, 0, 0)
}

/// Ends the program: the kernel does this with the call.
fn end(action: u32) -> sock_filter {
    step(libc::BPF_RET | libc::BPF_K, action, 0, 0)
}

/// Ends the program: the call fails with this error.
fn fail(error: i32) -> sock_filter {
    end(libc::SECCOMP_RET_ERRNO | error.unsigned_abs())
}

/// The treatment of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionPolicy {
    /// The parent is notified of each one, and makes it or refuses it.
    Watched,
    /// New sockets fail, except for TCP, where Landlock decides about each connection, and for permitted local ones.
    Refused,
}

/// The filter, as a program for the kernel. `None` if there is none for this processor. `requests` is the treatment of
/// connections, `None` if the network is open. With `local` the child may talk to servers on this machine by path, as
/// container engines do.
pub(super) fn program(requests: Option<ConnectionPolicy>, local: bool) -> Option<Vec<sock_filter>> {
    let mut program = Filter::begin(ARCHITECTURE?);
    program.forbid_escapes();
    if let Some(requests) = requests {
        program.restrict_network(requests, local);
    }
    program.0.push(allow());
    Some(program.0)
}

/// Ends the program: the kernel makes the call.
fn allow() -> sock_filter {
    end(libc::SECCOMP_RET_ALLOW)
}

/// The instructions of a filter.
struct Filter(Vec<sock_filter>);

impl Filter {
    /// Refuses the calls of other architectures, to which other numbers belong, and loads the number of the call.
    fn begin(architecture: u32) -> Filter {
        let mut all =
            vec![step(LOAD, 4, 0, 0), step(EQUAL, architecture, 1, 0), fail(libc::ENOSYS), step(LOAD, 0, 0, 0)];
        if cfg!(target_arch = "x86_64") {
            all.extend([step(ABOVE, X32, 0, 1), fail(libc::ENOSYS)]);
        }
        Filter(all)
    }

    /// For one call the instructions `then` decide; for any other call they are skipped. They may load an argument in
    /// the place of the number, so each way through them must end the program.
    fn on(&mut self, call: c_long, then: &[sock_filter]) {
        // Both numbers are small, so neither conversion fails.
        let (call, length) = (u32::try_from(call).unwrap_or(u32::MAX), u8::try_from(then.len()).unwrap_or(u8::MAX));
        self.0.push(step(EQUAL, call, 0, length));
        self.0.extend(then);
    }

    /// Refuses calls by which a child could leave its sandbox.
    fn forbid_escapes(&mut self) {
        FORBIDDEN.iter().for_each(|call| self.on(*call, &[fail(libc::EPERM)]));
        ABSENT.iter().for_each(|call| self.on(*call, &[fail(libc::ENOSYS)]));
        self.on(libc::SYS_clone, &[load(0), step(HAS, NAMESPACES, 0, 1), fail(libc::EPERM), allow()]);
    }

    /// Watches or refuses calls that reach other machines. No build needs to listen, so that is always refused.
    fn restrict_network(&mut self, requests: ConnectionPolicy, local: bool) {
        LISTENS.iter().for_each(|call| self.on(*call, &[fail(libc::EACCES)]));
        let watch = end(libc::SECCOMP_RET_USER_NOTIF);
        let (refuse, connect) = match requests {
            ConnectionPolicy::Watched => (watch, watch),
            // Only permitted sockets can be connected: local ones, and those of TCP, about which Landlock decides.
            ConnectionPolicy::Refused => (fail(libc::EACCES), allow()),
        };
        self.on(libc::SYS_connect, &[connect]);
        for (call, flags) in SENDS {
            self.on(call, &[load(flags), step(HAS, libc::MSG_FASTOPEN.unsigned_abs(), 0, 1), refuse, allow()]);
        }
        // TCP sockets are allowed, because they send nothing before a connection. Any other socket, except for a local
        // one by `local`, is watched or refused.
        let socket = [
            load(0),
            step(EQUAL, libc::AF_UNIX.unsigned_abs(), 0, 1),
            if local { allow() } else { refuse },
            step(EQUAL, libc::AF_INET.unsigned_abs(), 1, 0),
            step(EQUAL, libc::AF_INET6.unsigned_abs(), 0, 6),
            load(1),
            step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0xF, 0, 0),
            step(EQUAL, libc::SOCK_STREAM.unsigned_abs(), 0, 3),
            load(2),
            step(EQUAL, 0, 2, 0),
            step(EQUAL, libc::IPPROTO_TCP.unsigned_abs(), 1, 0),
            refuse,
            allow(),
        ];
        self.on(libc::SYS_socket, &socket);
    }
}
