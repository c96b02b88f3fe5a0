//! The moments before something changes that outlives the run: a file, a ref, an entry of the cache.
//!
//! Each of them is announced, in the order in which they happen, so that a test can count them and end the
//! program at any one of them as SIGKILL does. Only builds with debug assertions listen.
//!
//! It also hides a field, so that a test learns who else finds its reference; counts walks; and names a directory in
//! which a build may leave a trace.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex};

use crate::os::parallel::locked;

/// The file to which a debug build writes the names of the effects of a run, one a line.
const LIST: &str = "KUSTOMIZE_LOCALIZE_FAILPOINTS";
/// At which effect a debug build ends: 1 is the first.
const STOP: &str = "KUSTOMIZE_LOCALIZE_STOP_AT";

/// Where a debug build writes a line for each walk of a run.
const WALKS: &str = "KUSTOMIZE_LOCALIZE_WALKS";

/// The field that a debug build does not see.
const BLIND_TO: &str = "KUSTOMIZE_LOCALIZE_BLIND_TO";

/// Where builds of a debug build may write, too.
const WRITABLE: &str = "KUSTOMIZE_LOCALIZE_WRITABLE";

/// The directory in which a build may leave something for a test.
pub(crate) fn writable() -> Option<PathBuf> {
    std::env::var_os(WRITABLE).filter(|_| cfg!(debug_assertions)).map(PathBuf::from)
}

/// Whether this run must not see a field, such as `resources[0]`.
pub(crate) fn is_blind_to(field: &str) -> bool {
    static FIELD: LazyLock<Option<String>> = LazyLock::new(|| std::env::var(BLIND_TO).ok());

    cfg!(debug_assertions) && FIELD.as_ref().is_some_and(|hidden| field.starts_with(hidden))
}

/// Notes a walk.
pub(crate) fn walks() {
    if cfg!(debug_assertions) {
        note(WALKS, "walk");
    }
}

/// Appends a line to the file that a variable names.
fn note(variable: &str, line: &str) {
    if let Some(list) = std::env::var_os(variable) {
        let opened = std::fs::File::options().append(true).create(true).open(list);
        let _ = opened.and_then(|mut list| writeln!(list, "{line}"));
    }
}

/// Announces an effect by its name, right before it happens. A test may end the program there.
pub(crate) fn before(name: &str) {
    static COUNT: Mutex<u64> = Mutex::new(0);

    if !cfg!(debug_assertions) {
        return;
    }
    let mut count = locked(&COUNT);
    *count += 1;
    note(LIST, name);
    if std::env::var(STOP).is_ok_and(|stop| stop == count.to_string()) {
        // Without a chance to clean up.
        #[cfg(unix)]
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::process::abort();
    }
}
