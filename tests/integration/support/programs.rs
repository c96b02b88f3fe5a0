//! The programs of this machine but for those that build kustomizations: most tests are about something else. Those
//! that build say so with [`Sandbox::builds`](super::Sandbox::builds).

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use git_kustomize_localize::seams::record::sha256_hex;
use tempfile::TempDir;

const BUILDERS: [&str; 2] = ["kustomize", "kubectl"];

/// Returns `PATH` without kustomize and kubectl.
pub(super) fn path() -> &'static OsString {
    static PATH: OnceLock<OsString> = OnceLock::new();
    PATH.get_or_init(|| {
        let path = env::var_os("PATH").unwrap_or_default();
        let directories = env::split_paths(&path);
        env::join_paths(directories.map(|directory| without_builders(&directory))).unwrap()
    })
}

/// A directory with the programs of this one that do not build: itself if it has no other, else one with links to them.
/// That may have thousands of links, so it is made once for each state of the directory, and not removed.
fn without_builders(directory: &Path) -> PathBuf {
    let holds = |name: &&str| directory.join(name).is_file();
    if !BUILDERS.iter().any(holds) {
        return directory.to_owned();
    }
    let changed = fs::metadata(directory).unwrap();
    let state = format!("{directory:?} {} {}", changed.ctime(), changed.ctime_nsec());
    let all = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let without = all.join(format!("programs-{}", &sha256_hex(state.as_bytes())[..16]));
    if !without.is_dir() {
        let made = TempDir::new_in(all).unwrap();
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if !BUILDERS.iter().any(|name| entry.file_name() == *name) {
                symlink(entry.path(), made.path().join(entry.file_name())).unwrap();
            }
        }
        // Another run of the tests may have been faster.
        if fs::rename(made.path(), &without).is_ok() {
            let _ = made.keep();
        }
    }
    without
}
