//! Removes child process groups and unfinished directories at the end of a run.
//!
//! Ctrl-C (and SIGTERM, SIGHUP) ends the program at once, whatever the threads are waiting for:
//! the handler stops every registered process group, removes every registered directory and exits
//! with the status that a shell gives a program which that signal ended.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::message::failure::Failure;
use crate::os::failpoint;
use crate::os::parallel::locked;

/// How the names of our directories begin, in the system's temporary directory, in that of a repository, beside a
/// NEW_DIR.
pub(crate) const TEMPORARY: &str = "kustomize-localize-tmp-";
/// How the names of directories that are kept for the user begin.
const KEPT: &str = "kustomize-localize-output-";
/// How many letters and digits make the name of one of them unlike the others.
const RANDOM: usize = 6;
/// After this time a directory whose run cannot be looked up is assumed to be abandoned.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

static GROUPS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
static DIRECTORIES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
static HELD: Mutex<()> = Mutex::new(());

/// The signals that end a group of processes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GroupSignal {
    /// Asks each process to end, so that it can clean up.
    Terminate,
    Kill,
}

/// Sends a signal to every process of the group that `leader` leads. A group that is gone is fine.
#[cfg_attr(not(unix), expect(unused_variables))]
pub(crate) fn signal_group(leader: u32, signal: GroupSignal) {
    #[cfg(unix)]
    if let Some(pid) = i32::try_from(leader).ok().and_then(rustix::process::Pid::from_raw) {
        let signal = match signal {
            GroupSignal::Terminate => rustix::process::Signal::TERM,
            GroupSignal::Kill => rustix::process::Signal::KILL,
        };
        let _ = rustix::process::kill_process_group(pid, signal);
    }
}

/// Installs the handler. Called once, before any command runs.
pub(crate) fn install() {
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        // Without a handler the signals end the program as they end any other.
        if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM]) {
            std::thread::spawn(move || signals.forever().next().map(end));
        }
    }
    #[cfg(not(unix))]
    {
        // The number of SIGINT everywhere else.
        const SIGINT: i32 = 2;
        let _ = ctrlc::set_handler(|| end(SIGINT));
    }
}

/// Cleans up, and ends the program as a signal with this number does.
fn end(signal: i32) {
    // First the end of steps that belong together is waited for. All stay locked to the end: a thread whose child was
    // ended cannot start another.
    let _held = locked(&HELD);
    let groups = locked(&GROUPS);
    let directories = locked(&DIRECTORIES);
    groups.iter().for_each(|group| signal_group(*group, GroupSignal::Terminate));
    // Programs get a moment to end by themselves: git removes its locks.
    if !groups.is_empty() {
        std::thread::sleep(Duration::from_millis(100));
    }
    groups.iter().for_each(|group| signal_group(*group, GroupSignal::Kill));
    for directory in directories.iter() {
        remove(directory);
    }
    std::process::exit(128 + signal);
}

/// Makes an interruption wait until the result is dropped, for steps that belong together. No thread may hold two.
pub(crate) fn delay_interrupts() -> MutexGuard<'static, ()> {
    locked(&HELD)
}

/// Removes a directory, with a few attempts.
fn remove(directory: &Path) {
    // A process that was just killed may still finish a write there.
    for _ in 0..10 {
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                std::thread::sleep(Duration::from_millis(20));
            }
            _ => return,
        }
    }
}

/// Starts a child, and with `own_group` keeps the group that it leads registered until the returned
/// [`Group`] is dropped. A child in our own group gets a Ctrl-C from the terminal itself.
pub(crate) fn spawn(command: &mut Command, own_group: bool) -> std::io::Result<(Child, Option<Group>)> {
    // Locked before the child starts, so that an interruption knows each child.
    let mut groups = locked(&GROUPS);
    let child = command.spawn()?;
    let group = own_group.then(|| {
        groups.insert(child.id());
        Group(child.id())
    });
    Ok((child, group))
}

/// Keeps a process group registered while it runs.
#[derive(Debug)]
pub(crate) struct Group(u32);

impl Drop for Group {
    fn drop(&mut self) {
        locked(&GROUPS).remove(&self.0);
    }
}

/// A scratch directory that is removed when this is dropped, and when the program is interrupted.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    is_kept: bool,
    /// Locked as long as the directory is in use; none where directories cannot be locked.
    _alive: Option<File>,
}

impl Scratch {
    /// Creates a private directory in the system's temporary directory.
    pub(crate) fn new() -> std::io::Result<Self> {
        Self::private(TEMPORARY)
    }

    /// Makes a new directory in the system's temporary directory, to be [kept](Scratch::keep) for the user alone. It
    /// takes the place of the one that was kept last under the same `name`.
    pub(crate) fn for_user(name: &str) -> std::io::Result<Self> {
        Self::private(&format!("{KEPT}{name}-"))
    }

    /// Makes a new directory in `parent`, so that it can later be renamed to a place beside it. No other
    /// program has names there that begin with `prefix`.
    pub(crate) fn beside(parent: &Path, prefix: &str) -> std::io::Result<Self> {
        Self::make(parent, prefix, tempfile::Builder::new().prefix(prefix))
    }

    /// Makes a new directory in the system's temporary directory that only this user can open.
    fn private(prefix: &str) -> std::io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        Self::make(&std::env::temp_dir(), prefix, builder.prefix(prefix))
    }

    /// Makes a new directory in `parent`, locked against the sweeps of other runs.
    fn make(parent: &Path, prefix: &str, builder: &mut tempfile::Builder<'_, '_>) -> std::io::Result<Self> {
        // A run that was killed could not remove its directories, so the next one does.
        sweep(parent, prefix);
        builder.rand_bytes(RANDOM);
        loop {
            failpoint::before("make a temporary directory");
            // Locked, so that an interruption knows each directory that was made.
            let mut directories = locked(&DIRECTORIES);
            let path = builder.tempdir_in(parent)?.keep();
            let alive = open(&path).filter(|alive| alive.lock().is_ok());
            // Before it was locked, another run may have removed it as abandoned.
            if path.exists() {
                directories.insert(path.clone());
                return Ok(Scratch { path, is_kept: false, _alive: alive });
            }
        }
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives up ownership of the directory: it stays where it is.
    pub(crate) fn keep(mut self) -> PathBuf {
        self.is_kept = true;
        self.path.clone()
    }

    /// Moves the directory to `to` in one step and gives up ownership of it.
    pub(crate) fn persist(self, to: &Path) -> std::io::Result<()> {
        fs::rename(self.path(), to)?;
        let _ = self.keep();
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.is_kept {
            failpoint::before("remove a temporary directory");
            let _ = fs::remove_dir_all(&self.path);
        }
        locked(&DIRECTORIES).remove(&self.path);
    }
}

/// Opens a directory, to lock it.
#[cfg(unix)]
fn open(directory: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(directory, flags, Mode::empty()).ok().map(File::from)
}

#[cfg(not(unix))]
fn open(_: &Path) -> Option<File> {
    None
}

/// Whether `parent` has a directory of a run that was killed, or that goes on.
pub(crate) fn has_directory(parent: &Path, prefix: &str) -> bool {
    let entries = parent.read_dir().into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    names.any(|name| name.to_string_lossy().starts_with(prefix))
}

/// The failure for a temporary directory that cannot be used.
pub(crate) fn unusable(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("could not write to the temporary directory `{}`: {error}", std::env::temp_dir().display()))
        .hint("set TMPDIR to a directory that can be written and has room")
}

/// Locks a directory against other runs; waits for `patience` if another run has locked it, and returns `None` if it
/// still has. Does nothing if the directory cannot be opened or its file system has no locks. The lock ends when the
/// result is dropped, or with the process.
pub(crate) fn lock(directory: &Path, patience: Duration) -> Option<DirectoryLock> {
    let Some(opened) = open(directory) else {
        return Some(DirectoryLock(None));
    };
    let start = Instant::now();
    loop {
        match opened.try_lock() {
            Ok(()) => return Some(DirectoryLock(Some(opened))),
            Err(TryLockError::Error(_)) => return Some(DirectoryLock(None)),
            Err(TryLockError::WouldBlock) if start.elapsed() > patience => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Keeps a directory [locked](lock).
#[derive(Debug)]
pub struct DirectoryLock(#[allow(dead_code)] Option<File>);

/// Removes the directories that dead runs left in `parent`, where no other program has names that begin with `prefix`.
pub(crate) fn sweep(parent: &Path, prefix: &str) {
    for entry in parent.read_dir().into_iter().flatten().flatten() {
        if !entry.file_name().to_str().is_some_and(|name| is_made(name, prefix)) {
            continue;
        }
        let metadata = entry.metadata().ok().filter(is_own_directory);
        if metadata.is_some_and(|metadata| is_abandoned(&entry.path(), &metadata)) {
            failpoint::before("remove what a dead run left");
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether a name is the prefix and a few random characters, as ours are.
fn is_made(name: &str, prefix: &str) -> bool {
    let random = name.strip_prefix(prefix).unwrap_or_default();
    random.len() == RANDOM && random.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Whether this is a directory of this user.
fn is_own_directory(metadata: &Metadata) -> bool {
    #[cfg(unix)]
    let is_of_user = std::os::unix::fs::MetadataExt::uid(metadata) == rustix::process::geteuid().as_raw();
    #[cfg(not(unix))]
    let is_of_user = true;
    metadata.is_dir() && is_of_user
}

/// Whether the run that made a directory has ended: a living run holds its lock.
fn is_abandoned(directory: &Path, metadata: &Metadata) -> bool {
    match open(directory).as_ref().map(File::try_lock) {
        Some(Ok(())) => true,
        Some(Err(TryLockError::WouldBlock)) => false,
        // It cannot be opened or locked here, so its age decides.
        _ => metadata.modified().is_ok_and(|time| time.elapsed().is_ok_and(|age| age > ABANDONED)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_directory_kept_under_a_name_stays() {
        let name = format!("test{}", std::process::id());
        let keep = |name: &str| Scratch::for_user(name).unwrap().keep();
        let (first, other) = (keep(&name), keep(&format!("{name}x")));
        let in_use = Scratch::for_user(&name).unwrap();
        assert!(!first.exists() && other.exists());
        let last = keep(&name);
        assert!(in_use.path().exists(), "another run still writes to it");
        for directory in [last, other] {
            fs::remove_dir_all(directory).unwrap();
        }
    }

    #[test]
    fn a_clock_that_jumps_makes_nothing_live_or_dead() {
        let parent = tempfile::tempdir().unwrap();
        let year = Duration::from_secs(365 * 24 * 60 * 60);
        let now = std::time::SystemTime::now();
        for time in [now + 40 * year, now, std::time::UNIX_EPOCH] {
            let living = Scratch::beside(parent.path(), "fetching-").unwrap();
            let dead = parent.path().join("fetching-dead00");
            fs::create_dir(&dead).unwrap();
            for directory in [living.path(), &dead] {
                let opened = File::open(directory).unwrap();
                opened.set_modified(time).unwrap();
            }
            sweep(parent.path(), "fetching-");
            assert!(living.path().exists(), "{time:?}");
            assert!(!dead.exists(), "{time:?}");
        }
    }

    #[test]
    fn leftovers_of_dead_runs_go_and_other_files_stay() {
        let parent = tempfile::tempdir().unwrap();
        let living = Scratch::beside(parent.path(), TEMPORARY).unwrap();
        let others = ["a.b.cd", "mine", "backups"].map(|name| format!("{TEMPORARY}{name}"));
        for name in others.iter().map(String::as_str).chain(["kustomize-localize-tmp-dEad01"]) {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        fs::write(parent.path().join("kustomize-localize-tmp-file00"), "").unwrap();
        sweep(parent.path(), TEMPORARY);
        let mut left: Vec<String> = (parent.path().read_dir().unwrap())
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !living.path().ends_with(name))
            .collect();
        left.sort();
        let mut expected = Vec::from(others);
        expected.push("kustomize-localize-tmp-file00".to_owned());
        expected.sort();
        assert_eq!(left, expected);
    }

    #[test]
    fn steps_that_are_held_together_may_make_directories() {
        let _held = delay_interrupts();
        drop(Scratch::new().unwrap());
    }
}
