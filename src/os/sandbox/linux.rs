//! The walls on Linux: made before the fork, entered by the child.

use std::ffi::{CStr, CString, OsStr};
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
use rustix::mount::{MountFlags, MountPropagationFlags, mount_bind, mount_change, mount_remount};
use rustix::process::{Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_child_subreaper, wait};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::filter::{self, Asked};
use super::network_namespace::{self, Outside};
use super::requests::{Allowed, Answering};
use super::{Isolation, Means};
use crate::os::process::end_with;

/// The rights that are known here; of a kernel that has fewer, those that it has.
const RIGHTS: ABI = ABI::V7;

/// An isolation that is prepared. The child enters it last of all that happens before its program starts.
pub(crate) struct Walls {
    namespaces: Option<Namespaces>,
    ruleset: Option<OwnedFd>,
    filter: Option<Filter>,
}

/// What is needed for namespaces.
struct Namespaces {
    user: String,
    group: String,
    input: CString,
    flags: MountFlags,
    /// What hands out the listener in a network of its own.
    network: Option<network_namespace::Inside>,
}

struct Filter {
    /// With requests that are watched, and without.
    programs: [Vec<libc::sock_filter>; 2],
    /// What hands out where the kernel asks.
    kernel: Option<network_namespace::Inside>,
    /// Whether something else closes the network where requests cannot be watched.
    is_closed: bool,
}

/// Prepares to isolate the child of a command. Returns what receives the listener in its network, too, if it gets one, and what
/// answers its requests, if the machine shows them. Where the machine forbids it, the child cannot be started.
pub(crate) fn isolate(
    command: &Command,
    isolation: Isolation<'_>,
) -> io::Result<(Walls, Option<Outside>, Option<Answering>)> {
    let Isolation { means, network, input, local, .. } = isolation;
    if means == Means::Nothing {
        return Ok((Walls { namespaces: None, ruleset: None, filter: None }, None, None));
    }
    let is_alone = means == Means::Namespaces;
    let pair = || network.is_some().then(network_namespace::pair).transpose().map(Option::unzip);
    let (inside, outside) = if is_alone { pair()? } else { (None, None) };
    let namespaces = is_alone.then(|| Namespaces::of(input, inside)).transpose()?;
    let ruleset = ruleset(command, &isolation).map_err(io::Error::other)?;
    let program = |asked| filter::program(network.map(|_| asked), local);
    let (Some(watched), Some(refused)) = (program(Asked::Watched), program(Asked::Refused)) else {
        let walls = Walls { namespaces, ruleset, filter: None };
        return if is_alone { Ok((walls, outside, None)) } else { Err(io::ErrorKind::Unsupported.into()) };
    };
    let (inside, kernel) = pair()?;
    let allowed = network.map(|address| Allowed { address, is_alone, local });
    let answering = kernel.zip(allowed).map(|(kernel, allowed)| Answering::start(kernel, allowed));
    let is_closed = is_alone || network.is_none() || has_ports();
    let filter = Some(Filter { programs: [watched, refused], kernel: inside, is_closed });
    Ok((Walls { namespaces, ruleset, filter }, outside, answering.transpose()?))
}

impl Walls {
    /// Lets the child of a command enter. All of it happens between fork and exec.
    #[allow(unsafe_code)]
    pub(in crate::os) fn enclose(self, command: &mut Command) {
        let us = getpid();
        // SAFETY: these are plain system calls, which touch no memory of the parent; nothing allocates.
        unsafe {
            command.pre_exec(move || {
                self.namespaces.as_ref().map_or(Ok(()), Namespaces::enter)?;
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

impl Namespaces {
    /// Prepares to mount a directory over itself, read-only.
    fn of(input: &Path, network: Option<network_namespace::Inside>) -> io::Result<Namespaces> {
        use rustix::fs::StatVfsMountFlags as Has;
        let has = rustix::fs::statvfs(input)?.f_flag;
        let mut flags = MountFlags::BIND | MountFlags::RDONLY;
        // A new user namespace may not drop these flags of the mount below.
        flags.set(MountFlags::NOSUID, has.contains(Has::NOSUID));
        flags.set(MountFlags::NODEV, has.contains(Has::NODEV));
        flags.set(MountFlags::NOEXEC, has.contains(Has::NOEXEC));
        flags.set(MountFlags::NOATIME, has.contains(Has::NOATIME));
        flags.set(MountFlags::NODIRATIME, has.contains(Has::NODIRATIME));
        flags.set(MountFlags::RELATIME, has.contains(Has::RELATIME));
        let user = format!("{0} {0} 1", rustix::process::geteuid().as_raw());
        let group = format!("{0} {0} 1", rustix::process::getegid().as_raw());
        let input = CString::new(input.as_os_str().as_bytes())?;
        Ok(Namespaces { user, group, input, flags, network })
    }

    #[allow(unsafe_code)]
    fn enter(&self) -> io::Result<()> {
        let write = |file: &CStr, text: &str| -> io::Result<()> {
            let file = openat(CWD, file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            rustix::io::write(&file, text.as_bytes())?;
            Ok(())
        };
        let mut own = UnshareFlags::NEWUSER | UnshareFlags::NEWNS;
        own.set(UnshareFlags::NEWNET, self.network.is_some());
        // SAFETY: nothing that it unshares is memory or a descriptor.
        unsafe { unshare_unsafe(own)? };
        write(c"/proc/self/setgroups", "deny")?;
        write(c"/proc/self/uid_map", &self.user)?;
        write(c"/proc/self/gid_map", &self.group)?;
        mount_change(c"/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
        mount_bind(self.input.as_c_str(), self.input.as_c_str())?;
        mount_remount(self.input.as_c_str(), self.flags, c"")?;
        self.network.as_ref().map_or(Ok(()), network_namespace::Inside::listen)
    }
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
        let [watched, refused] = &self.programs;
        if let Some(inside) = &self.kernel {
            let asks = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
            // Else a signal, as Go sends them all the time, lets a call be asked again.
            let kernel = install(watched, asks | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
            match kernel.or_else(|_| install(watched, asks)) {
                // SAFETY: it is a new descriptor, which nobody else has.
                Ok(kernel) => return inside.hand_out(&unsafe { OwnedFd::from_raw_fd(kernel as i32) }),
                Err(error) if !self.is_closed => return Err(error),
                Err(_) => {}
            }
        }
        install(refused, 0).map(drop)
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
    let programs = [std::env::current_exe().ok(), Path::new(command.get_program()).canonicalize().ok()];
    let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path);
    let path = path.map(OsStr::to_owned).or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    let readable = readable(&programs, &path).into_iter().chain(programs.into_iter().flatten());
    let readable = readable.chain([isolation.input.to_owned()]);
    let mut created = rules.create()?;
    created = created.add_rules(path_beneath_rules(readable, AccessFs::from_read(RIGHTS)))?;
    created = created.add_rules(path_beneath_rules(isolation.writable, all))?;
    created = created.add_rules(path_beneath_rules(["/dev/null"], all))?;
    if let Some(network) = isolation.network {
        created = created.add_rule(NetPort::new(network.port(), AccessNet::ConnectTcp))?;
    }
    Ok(created.into())
}

/// The directories and files which, with all that is below, are what a build may read: everything but where servers
/// listen, and where this user's programs keep their logins, unless they keep programs there.
fn readable(programs: &[Option<PathBuf>], path: &OsStr) -> Vec<PathBuf> {
    let entries = |path: &Path| path.read_dir().into_iter().flatten().flatten().collect::<Vec<_>>();
    let path = std::env::split_paths(path).filter_map(|directory| directory.canonicalize().ok());
    let used: Vec<PathBuf> = path.chain(programs.iter().flatten().cloned()).collect();
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
            // What a link leads to is there by itself.
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
