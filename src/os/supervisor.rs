//! A process above a child on Linux, which ends all that the child leaves behind.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_child_subreaper, wait};

use crate::os::process::end_with;

/// Makes the child of a command a process that waits: the command itself runs in a process below it.
#[allow(unsafe_code)]
pub(super) fn put_above(command: &mut Command) {
    let us = getpid();
    // SAFETY: these are plain system calls, which touch no memory of the parent; nothing allocates.
    unsafe {
        command.pre_exec(move || supervise(us));
    }
}

/// Continues in a new process. This process waits for the new one, ends all processes that it leaves behind, and then
/// ends with its status. If `starter` ends first, everything ends at once.
#[allow(unsafe_code)]
fn supervise(starter: Pid) -> io::Result<()> {
    let us = getpid();
    set_child_subreaper(Some(us))?;
    // SAFETY: a set of signals may be zero; these are plain system calls.
    let wanted = unsafe {
        let mut wanted = std::mem::zeroed();
        libc::sigemptyset(&raw mut wanted);
        for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&raw mut wanted, signal);
        }
        // Blocked before there is a child, so that no signal is lost to the handlers of this program.
        libc::sigprocmask(libc::SIG_BLOCK, &raw const wanted, std::ptr::null_mut());
        wanted
    };
    // SAFETY: this is fork(2), without what others have registered for it.
    match unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } {
        ..0 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: a plain system call.
            unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &raw const wanted, std::ptr::null_mut()) };
            end_with(us, Signal::KILL)
        }
        child => {
            let child = i32::try_from(child).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
            wait_for(child, &wanted, starter)
        }
    }
}

/// Waits until `child` has ended, `starter` has ended, or one of the `signals` asks this process to end. Then it ends
/// all processes below it, and itself.
#[allow(unsafe_code)]
fn wait_for(child: Pid, signals: &libc::sigset_t, starter: Pid) -> ! {
    // The reader of the pipes waits until every process has closed them, so this one must not keep them open.
    // SAFETY: this process uses no file any more.
    unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) };
    let mut status = None;
    loop {
        // Other children are orphans of the child, which the system has given to this process.
        while let Ok(Some((ended, its_status))) = wait(WaitOptions::NOHANG) {
            status = status.or(Some(its_status).filter(|_| ended == child));
        }
        let mut signal = libc::SIGCHLD;
        // The system sends a signal when the starter ends; only the parent tells if it ended before that was asked for.
        let is_over = status.is_some() || getppid() != Some(starter);
        // SAFETY: a plain system call.
        if is_over || unsafe { libc::sigwait(signals, &raw mut signal) } != 0 || signal != libc::SIGCHLD {
            break;
        }
    }
    // The children of a process that was ended become children of this one, so this is repeated until there are none.
    while end_children() {
        let _ = wait(WaitOptions::empty());
    }
    match status.and_then(|status| status.exit_status()) {
        // SAFETY: this process has nothing else to do.
        Some(code) => unsafe { libc::_exit(code) },
        // A signal ended the child, or the wait was broken off, so this process ends by a signal, too.
        None => loop {
            let _ = kill_process(getpid(), Signal::KILL);
        },
    }
}

/// Ends all children of this process. Returns whether there was one: its own children then become children of this
/// process, and must be ended, too.
fn end_children() -> bool {
    let mut text = [0; 4096];
    let file = openat(CWD, c"/proc/thread-self/children", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let length = file.and_then(|file| rustix::io::read(&file, &mut text)).unwrap_or_default();
    let mut has_any = false;
    for child in process_ids(&text[..length]) {
        has_any = true;
        let _ = kill_process(child, Signal::KILL);
    }
    has_any
}

/// The process ids in a text that may be cut off: a blank follows each id.
fn process_ids(text: &[u8]) -> impl Iterator<Item = Pid> {
    let whole = text.iter().rposition(|byte| *byte == b' ').map_or(&[][..], |end| &text[..end]);
    let numbers = whole.split(|byte| *byte == b' ').filter_map(|number| str::from_utf8(number).ok()?.parse().ok());
    numbers.filter_map(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_id_that_is_cut_off_is_left_out() {
        let ids = |text: &str| process_ids(text.as_bytes()).map(Pid::as_raw_pid).collect::<Vec<_>>();
        assert_eq!(ids("12 345 "), [12, 345]);
        assert_eq!(ids("12 345 67"), [12, 345]);
        assert_eq!(ids("12345"), [0; 0]);
        assert_eq!(ids(""), [0; 0]);
    }
}
