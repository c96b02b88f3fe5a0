//! The programs of this machine but for those that build kustomizations: most tests are about something else. Those
//! that build say so with [`Sandbox::builds`](super::Sandbox::builds).

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tempfile::TempDir;

/// A `PATH` without kustomize and kubectl.
pub(crate) struct Programs {
    path: OsString,
    _directory: TempDir,
}

/// Made once for as many sandboxes as there are at one time: these are thousands of links.
static SHARED: Mutex<Weak<Programs>> = Mutex::new(Weak::new());

impl Programs {
    /// Returns those of all sandboxes.
    pub(crate) fn shared() -> Arc<Programs> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let made = Arc::new(Programs::new());
            *shared = Arc::downgrade(&made);
            made
        })
    }

    fn new() -> Programs {
        let links = TempDir::with_prefix("programs-").unwrap();
        let path = env::var_os("PATH").unwrap_or_default();
        let directories = env::split_paths(&path).enumerate();
        let directories = directories.map(|(number, directory)| {
            if !builds(&directory) {
                return directory;
            }
            let without = links.path().join(number.to_string());
            link_others(&directory, &without);
            without
        });
        Programs {
            path: env::join_paths(directories).unwrap(),
            _directory: links,
        }
    }

    /// Returns the value of `PATH`.
    pub(crate) fn path(&self) -> &OsStr {
        &self.path
    }
}

const BUILDERS: [&str; 2] = ["kustomize", "kubectl"];

fn builds(directory: &Path) -> bool {
    BUILDERS.iter().any(|name| directory.join(name).is_file())
}

/// Makes a link to each program of `directory` that does not build.
fn link_others(directory: &Path, without: &Path) {
    fs::create_dir(without).unwrap();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if !BUILDERS.iter().any(|name| entry.file_name() == *name) {
            symlink(entry.path(), without.join(entry.file_name())).unwrap();
        }
    }
}
