//! The walls on Linux, which a thread enters before it starts the child.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};

use super::filter::{self, ConnectionPolicy};
use super::requests::Requests;
use super::{Isolated, Isolation, Means};
use crate::os::process::{self, Bounds, Error, Terminal};

/// The rights that are known here; of a kernel that has fewer, those that it has.
const RIGHTS: ABI = ABI::V7;

/// Runs a command in a sandbox, or with [`Means::Nothing`] without one. If the machine does not allow the sandbox, the
/// command is not started.
pub(crate) fn run(
    command: &mut Command,
    isolation: Isolation<'_>,
    bounds: impl Into<Bounds>,
) -> Result<Isolated, Error> {
    let bounds = Bounds { is_supervised: true, ..bounds.into() };
    if isolation.means == Means::Nothing {
        return Ok(Isolated { output: process::run(command, None, bounds, Terminal::Detached)?, refused: None });
    }
    let name = process::name(command);
    let failed = |error| Error::Io(name.clone(), error);
    let (ended, end) = io::pipe().map_err(failed)?;
    let (sender, receiver) = mpsc::channel();
    let run = move || {
        // Closed when the command has ended, so that `answer` waits for no more requests.
        let _end = end;
        sender.send(enter(command, &isolation).map_err(failed)?).ok();
        process::run(command, None, bounds, Terminal::Detached)
    };
    thread::scope(|threads| {
        // A sandbox holds for a thread and all that it starts, so this thread starts nothing but the command.
        let inside = thread::Builder::new().spawn_scoped(threads, run).map_err(failed)?;
        let kernel = receiver.recv().ok().flatten();
        let refused = kernel.map(|kernel| Requests { kernel, isolation }.answer(&ended));
        let output = inside.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        Ok(Isolated { output, refused })
    })
}

/// Isolates this thread, and all that it starts. Returns the descriptor on which the kernel asks about their requests;
/// `None` if the network is open, or if the machine does not show requests.
fn enter(command: &Command, isolation: &Isolation<'_>) -> io::Result<Option<OwnedFd>> {
    let closed = ruleset(command, isolation).and_then(RulesetCreated::restrict_self);
    closed.map_err(io::Error::other)?;
    let program = |policy| {
        let policy = isolation.network.map(|_| policy);
        filter::program(policy, isolation.local).ok_or(io::ErrorKind::Unsupported)
    };
    // The filter comes last, because it may refuse the system calls that install Landlock.
    if isolation.network.is_some() {
        let (watched, asks) = (program(ConnectionPolicy::Watched)?, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
        // With this flag only a fatal signal interrupts a call. Go sends signals all the time, and each one would let
        // the kernel ask about the call again. Older kernels do not have the flag.
        let kernel = install(&watched, asks | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
        match kernel.or_else(|_| install(&watched, asks)) {
            Ok(kernel) => return own(kernel).map(Some),
            // Another filter may be watched already, as in a container. Requests then fail without being seen, and
            // Landlock must refuse the connections.
            Err(error) if !has_ports() => return Err(error),
            Err(_) => {}
        }
    }
    install(&program(ConnectionPolicy::Refused)?, 0).map(|_| None)
}

/// Installs a filter for this thread and all that it starts.
#[allow(unsafe_code)]
fn install(program: &[libc::sock_filter], flags: libc::c_ulong) -> io::Result<libc::c_long> {
    let len = libc::c_ushort::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel reads a program of that length.
    match unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) } {
        ..0 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

/// Takes over the descriptor that the kernel made.
#[allow(unsafe_code)]
fn own(descriptor: libc::c_long) -> io::Result<OwnedFd> {
    let descriptor = i32::try_from(descriptor).map_err(io::Error::other)?;
    // SAFETY: it is new, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Whether Landlock decides over connections here.
fn has_ports() -> bool {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    rules.handle_access(AccessNet::from_all(RIGHTS)).is_ok()
}

/// The rules of Landlock for the files and ports of a child, as far as this kernel has them.
fn ruleset(command: &Command, isolation: &Isolation<'_>) -> Result<RulesetCreated, RulesetError> {
    let all = AccessFs::from_all(RIGHTS);
    let mut rules = Ruleset::default().handle_access(all)?;
    if isolation.network.is_some() {
        let scopes = Scope::AbstractUnixSocket | Scope::Signal;
        rules = rules.handle_access(AccessNet::from_all(RIGHTS))?.scope(scopes)?;
    }
    // Programs that run must be readable, wherever they are. A build also calls this executable, in place of git and
    // helm.
    let programs = [std::env::current_exe().ok(), Path::new(command.get_program()).canonicalize().ok()];
    let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path);
    let path = path.map(OsStr::to_owned).or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    let readable = readable(&programs, &path).into_iter().chain(programs.into_iter().flatten());
    let readable = readable.chain([isolation.input.to_owned()]);
    // A child may read its inputs and everything that is not hidden, but write only to its own directories.
    let mut created = rules.create()?;
    created = created.add_rules(path_beneath_rules(readable, AccessFs::from_read(RIGHTS)))?;
    created = created.add_rules(path_beneath_rules(isolation.writable, all))?;
    created = created.add_rules(path_beneath_rules(["/dev/null"], all))?;
    if let Some(network) = isolation.network {
        created = created.add_rule(NetPort::new(network.port(), AccessNet::ConnectTcp))?;
    }
    Ok(created)
}

/// The directories and files that a child may read, with everything below them: the whole machine without servers and
/// the private files of the user, as Landlock can only permit paths, not hide them.
fn readable(programs: &[Option<PathBuf>], path: &OsStr) -> Vec<PathBuf> {
    let entries = |path: &Path| path.read_dir().into_iter().flatten().flatten().collect::<Vec<_>>();
    let path = std::env::split_paths(path).filter_map(|directory| directory.canonicalize().ok());
    let used: Vec<PathBuf> = path.chain(programs.iter().flatten().cloned()).collect();
    // Servers listen in `/run`, and programs keep logins in the hidden files of the user. A directory that has a
    // program which runs is not hidden.
    let mut hidden = vec![PathBuf::from("/run")];
    if let Some(home) = std::env::home_dir().and_then(|home| home.canonicalize().ok()) {
        let names = entries(&home).into_iter().filter(|entry| entry.file_name().as_bytes().starts_with(b"."));
        hidden.extend(names.map(|entry| entry.path()));
    }
    hidden.retain(|directory| !used.iter().any(|used| used.starts_with(directory)));
    let (mut todo, mut readable) = (vec![PathBuf::from("/")], Vec::new());
    while let Some(path) = todo.pop() {
        // A directory with something hidden in it is not permitted as a whole, but by its other entries.
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
