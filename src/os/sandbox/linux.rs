//! The walls on Linux: made before the fork, entered by the child.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_child_subreaper, wait};

use super::filter::{self, Asked};
use super::requests::Answering;
use super::{Isolation, Means, handover};
use crate::os::process::end_with;

/// The rights that are known here; of a kernel that has fewer, those that it has.
const RIGHTS: ABI = ABI::V7;

/// An isolation that is prepared. The child enters it last of all that happens before its program starts.
pub(crate) struct Walls {
    ruleset: Option<OwnedFd>,
    filter: Option<Filter>,
}

struct Filter {
    /// The program for requests that are watched.
    watched: Vec<libc::sock_filter>,
    /// The program for requests that fail.
    refused: Vec<libc::sock_filter>,
    /// Sends the descriptor on which the kernel asks; `None` if the network is open.
    kernel: Option<handover::Sender>,
    /// Whether requests may fail unseen: the network is closed, or open, all the same.
    may_be_unseen: bool,
}

/// Prepares to isolate the child of a command. Returns what answers its requests, too, if its network is closed. If the
/// machine forbids it, the child cannot be started.
pub(crate) fn isolate(command: &Command, isolation: Isolation<'_>) -> io::Result<(Walls, Option<Answering>)> {
    let Isolation { means, network, local, .. } = isolation;
    if means == Means::Nothing {
        return Ok((Walls { ruleset: None, filter: None }, None));
    }
    let ruleset = ruleset(command, &isolation).map_err(io::Error::other)?;
    let program = |asked| filter::program(network.map(|_| asked), local).ok_or(io::ErrorKind::Unsupported);
    // Which of the two is installed, the child finds out: another filter may be watched already.
    let (watched, refused) = (program(Asked::Watched)?, program(Asked::Refused)?);
    let (mut kernel, mut answering) = (None, None);
    if let Some(address) = network {
        let (sender, receiver) = handover::pair()?;
        kernel = Some(sender);
        answering = Some(Answering::start(receiver, address, local)?);
    }
    let filter = Filter { watched, refused, kernel, may_be_unseen: network.is_none() || has_ports() };
    Ok((Walls { ruleset, filter: Some(filter) }, answering))
}

impl Walls {
    /// Lets the child of a command enter. All of it happens between fork and exec.
    #[allow(unsafe_code)]
    pub(in crate::os) fn enclose(self, command: &mut Command) {
        let us = getpid();
        // SAFETY: these are plain system calls, which touch no memory of the parent; nothing allocates.
        unsafe {
            command.pre_exec(move || {
                supervise(us)?;
                rustix::thread::set_no_new_privs(true)?;
                if let Some(ruleset) = &self.ruleset {
                    done(libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0))?;
                }
                // Last of all: it may refuse what comes before.
                self.filter.as_ref().map_or(Ok(()), Filter::enter)
            });
        }
    }
}

fn done(status: libc::c_long) -> io::Result<libc::c_long> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}

impl Filter {
    #[allow(unsafe_code)]
    fn enter(&self) -> io::Result<()> {
        let install = |program: &[libc::sock_filter], flags: libc::c_ulong| {
            let len = libc::c_ushort::try_from(program.len()).unwrap_or_default();
            let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
            // SAFETY: the kernel reads a program of that length.
            done(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) })
        };
        if let Some(sender) = &self.kernel {
            let asks = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
            // Else a signal, as Go sends them all the time, lets a call be asked again.
            let kernel = install(&self.watched, asks | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
            match kernel.or_else(|_| install(&self.watched, asks)) {
                // SAFETY: it is a new descriptor, which nobody else has.
                Ok(kernel) => return sender.send(&unsafe { OwnedFd::from_raw_fd(kernel as i32) }),
                Err(error) if !self.may_be_unseen => return Err(error),
                Err(_) => {}
            }
        }
        install(&self.refused, 0).map(drop)
    }
}

/// Whether Landlock decides over connections here.
fn has_ports() -> bool {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    rules.handle_access(AccessNet::from_all(RIGHTS)).is_ok()
}

/// Returns what the child may do with files and ports, as far as this kernel lets us say.
fn ruleset(command: &Command, isolation: &Isolation<'_>) -> Result<Option<OwnedFd>, RulesetError> {
    let all = AccessFs::from_all(RIGHTS);
    let mut rules = Ruleset::default().handle_access(all)?;
    if isolation.network.is_some() {
        let scopes = Scope::AbstractUnixSocket | Scope::Signal;
        rules = rules.handle_access(AccessNet::from_all(RIGHTS))?.scope(scopes)?;
    }
    // Programs that run must be readable, wherever they lie.
    let programs = [std::env::current_exe().ok(), Path::new(command.get_program()).canonicalize().ok()];
    let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path);
    let path = path.map(OsStr::to_owned).or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    let readable = readable(&programs, &path).into_iter().chain(programs.into_iter().flatten());
    let readable = readable.chain([isolation.input.to_owned()]);
    // All may be read but what is hidden; written only where the build works.
    let mut created = rules.create()?;
    created = created.add_rules(path_beneath_rules(readable, AccessFs::from_read(RIGHTS)))?;
    created = created.add_rules(path_beneath_rules(isolation.writable, all))?;
    created = created.add_rules(path_beneath_rules(["/dev/null"], all))?;
    if let Some(network) = isolation.network {
        created = created.add_rule(NetPort::new(network.port(), AccessNet::ConnectTcp))?;
    }
    Ok(created.into())
}

/// The directories and files that a build may read, with all that is below.
fn readable(programs: &[Option<PathBuf>], path: &OsStr) -> Vec<PathBuf> {
    let entries = |path: &Path| path.read_dir().into_iter().flatten().flatten().collect::<Vec<_>>();
    let path = std::env::split_paths(path).filter_map(|directory| directory.canonicalize().ok());
    let used: Vec<PathBuf> = path.chain(programs.iter().flatten().cloned()).collect();
    // Servers listen there, and programs of this user keep their logins in the others, unless they keep programs there.
    let mut hidden = vec![PathBuf::from("/run")];
    if let Some(home) = std::env::home_dir().and_then(|home| home.canonicalize().ok()) {
        let names = entries(&home).into_iter().filter(|entry| entry.file_name().as_bytes().starts_with(b"."));
        hidden.extend(names.map(|entry| entry.path()));
    }
    hidden.retain(|directory| !used.iter().any(|used| used.starts_with(directory)));
    let (mut todo, mut readable) = (vec![PathBuf::from("/")], Vec::new());
    while let Some(path) = todo.pop() {
        if !hidden.iter().any(|directory| directory.starts_with(&path)) {
            readable.push(path);
        } else if !hidden.contains(&path) {
            // A link needs no rule: its target has one of its own.
            let real =
                entries(&path).into_iter().filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
            todo.extend(real.map(|entry| entry.path()));
        }
    }
    readable
}

/// Goes on in a new process. This one waits for it, ends all that it leaves behind, and then ends as it did; without `starter`
/// it ends at once.
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
        // Before there is a child: our handlers would take them.
        libc::sigprocmask(libc::SIG_BLOCK, &raw const wanted, std::ptr::null_mut());
        wanted
    };
    // SAFETY: this is fork(2), without what others have registered for it.
    match done(unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) })? {
        0 => {
            // SAFETY: a plain system call.
            unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &raw const wanted, std::ptr::null_mut()) };
            end_with(us, Signal::KILL)
        }
        child => wait_for(i32::try_from(child).ok().and_then(Pid::from_raw), &wanted, starter),
    }
}

/// Waits until a child has ended or somebody wants us to, and ends what is left.
#[allow(unsafe_code)]
fn wait_for(child: Option<Pid>, wanted: &libc::sigset_t, starter: Pid) -> ! {
    // SAFETY: the pipes are the child's alone.
    unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) };
    let mut status = None;
    loop {
        while let Ok(Some((ended, how))) = wait(WaitOptions::NOHANG) {
            status = status.or(Some(how).filter(|_| Some(ended) == child));
        }
        let mut signal = libc::SIGCHLD;
        let is_over = status.is_some() || getppid() != Some(starter);
        // SAFETY: a plain system call.
        if is_over || unsafe { libc::sigwait(wanted, &raw mut signal) } != 0 || signal != libc::SIGCHLD {
            break;
        }
    }
    // Children of what was ended become ours in turn.
    while end_children() {
        let _ = wait(WaitOptions::empty());
    }
    match status.and_then(|status| status.exit_status()) {
        // SAFETY: nothing of this process is left to do.
        Some(code) => unsafe { libc::_exit(code) },
        None => loop {
            let _ = kill_process(getpid(), Signal::KILL);
        },
    }
}

/// Ends all children, and returns whether there was one.
fn end_children() -> bool {
    let mut text = [0; 4096];
    let file = openat(CWD, c"/proc/thread-self/children", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let length = file.and_then(|file| rustix::io::read(&file, &mut text)).unwrap_or_default();
    let numbers =
        text[..length].split(|byte| *byte == b' ').filter_map(|number| str::from_utf8(number).ok()?.parse().ok());
    let mut has_any = false;
    for child in numbers.filter_map(Pid::from_raw) {
        has_any = true;
        let _ = kill_process(child, Signal::KILL);
    }
    has_any
}
