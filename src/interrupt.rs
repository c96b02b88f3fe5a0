//! What must not outlive us: child process groups and unfinished directories.
//!
//! Ctrl-C (and SIGTERM, SIGHUP) ends the program at once, whatever the threads are waiting for:
//! the handler stops every registered process group, removes every registered directory and exits
//! with the status a shell expects.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The status of a program ended by SIGINT, as shells report it.
const INTERRUPTED: i32 = 130;

static GROUPS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
static DIRECTORIES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn locked<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    // A panic elsewhere must not keep the handler from cleaning up.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A signal that ends a process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Ask it to end.
    Terminate,
    /// End it.
    Kill,
}

/// Sends `signal` to every process of the group that `leader` leads. A group that is gone is fine.
pub fn signal_group(leader: u32, signal: Signal) {
    #[cfg(unix)]
    {
        let signal = match signal {
            Signal::Terminate => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        if let Some(pid) = i32::try_from(leader)
            .ok()
            .and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }
    #[cfg(not(unix))]
    {
        let _ = (leader, signal);
    }
}

/// Installs the handler. Called once, first thing in `main`; a second call does nothing.
pub fn install() {
    // An error means that a handler is there already: then somebody else cleans up.
    let _ = ctrlc::set_handler(|| {
        // Both stay locked to the end: a thread whose child was ended cannot start another.
        let groups = locked(&GROUPS);
        let directories = locked(&DIRECTORIES);
        for group in groups.iter() {
            signal_group(*group, Signal::Terminate);
        }
        if !groups.is_empty() {
            std::thread::sleep(Duration::from_millis(100));
        }
        for group in groups.iter() {
            signal_group(*group, Signal::Kill);
        }
        for directory in directories.iter() {
            remove(directory);
        }
        std::process::exit(INTERRUPTED);
    });
}

/// Lets an interruption wait until what this returns is dropped: for steps that belong together. No
/// [`Scratch`] may be made or dropped meanwhile.
#[must_use]
pub fn hold() -> impl Drop {
    struct Held(#[allow(dead_code)] MutexGuard<'static, BTreeSet<PathBuf>>);
    impl Drop for Held {
        fn drop(&mut self) {}
    }
    Held(locked(&DIRECTORIES))
}

/// Removes a directory in which a process that was just killed may still finish a write.
fn remove(directory: &Path) {
    for _ in 0..10 {
        match std::fs::remove_dir_all(directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                std::thread::sleep(Duration::from_millis(20));
            }
            _ => return,
        }
    }
}

/// Starts a child, and with `own_group` keeps the group that it leads registered until the returned
/// [`Group`] is dropped.
///
/// # Errors
/// When the child cannot be started.
pub fn spawn(command: &mut Command, own_group: bool) -> std::io::Result<(Child, Option<Group>)> {
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
pub struct Group(u32);

impl Drop for Group {
    fn drop(&mut self) {
        locked(&GROUPS).remove(&self.0);
    }
}

/// A directory that is removed when this is dropped, and when the program is interrupted.
#[derive(Debug)]
pub struct Scratch(Option<tempfile::TempDir>);

impl Scratch {
    /// Makes a new directory in the system's temporary directory, for nobody else to look into.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn new() -> std::io::Result<Self> {
        Self::register(|| {
            let mut builder = tempfile::Builder::new();
            builder.prefix("kustomize-localize-");
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt as _;
                builder.permissions(std::fs::Permissions::from_mode(0o700));
            }
            builder.tempdir()
        })
    }

    /// Makes a new directory in `parent`, so that it can later be renamed to a place beside it.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn beside(parent: &Path, prefix: &str) -> std::io::Result<Self> {
        Self::register(|| tempfile::Builder::new().prefix(prefix).tempdir_in(parent))
    }

    fn register(
        make: impl FnOnce() -> std::io::Result<tempfile::TempDir>,
    ) -> std::io::Result<Self> {
        let mut directories = locked(&DIRECTORIES);
        let directory = make()?;
        directories.insert(directory.path().to_owned());
        Ok(Scratch(Some(directory)))
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0
            .as_ref()
            .map_or(Path::new(""), tempfile::TempDir::path)
    }

    /// Gives up ownership of the directory: it stays where it is.
    #[must_use]
    pub fn keep(mut self) -> PathBuf {
        match self.0.take() {
            Some(directory) => {
                let path = directory.keep();
                locked(&DIRECTORIES).remove(&path);
                path
            }
            None => PathBuf::new(),
        }
    }

    /// Moves the directory to `to` in one step and gives up ownership of it.
    ///
    /// # Errors
    /// When the rename fails; the directory is then removed as if it had been dropped.
    pub fn persist(self, to: &Path) -> std::io::Result<()> {
        std::fs::rename(self.path(), to)?;
        let _ = self.keep();
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(directory) = self.0.take() {
            let path = directory.path().to_owned();
            drop(directory);
            locked(&DIRECTORIES).remove(&path);
        }
    }
}
