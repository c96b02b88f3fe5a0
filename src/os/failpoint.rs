//! The moments before something changes that outlives the run: a file, a ref, an entry of the cache.
//!
//! Each of them is announced, in the order in which they happen, so that a test can count them and end the
//! program at any one of them as SIGKILL does. Only builds with debug assertions listen.

/// Where a debug build writes the names of the effects of a run, one a line.
#[cfg(debug_assertions)]
const LIST: &str = "KUSTOMIZE_LOCALIZE_FAILPOINTS";
/// At which effect a debug build ends: 1 is the first.
#[cfg(debug_assertions)]
const STOP: &str = "KUSTOMIZE_LOCALIZE_STOP_AT";

/// Announces an effect, in the words of its name, right before it happens.
#[cfg(debug_assertions)]
pub(crate) fn before(name: &str) {
    use std::io::Write as _;
    use std::sync::Mutex;

    static COUNT: Mutex<u64> = Mutex::new(0);

    let mut count = COUNT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *count += 1;
    if let Some(list) = std::env::var_os(LIST) {
        let opened = std::fs::File::options().append(true).create(true).open(list);
        let _ = opened.and_then(|mut list| writeln!(list, "{name}"));
    }
    let stop = std::env::var(STOP).ok().and_then(|stop| stop.parse().ok());
    if stop == Some(*count) {
        end();
    }
}

/// Announces an effect; without the feature, a no-op.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn before(_name: &str) {}

/// Ends the program, and gives it no chance to clean up.
#[cfg(debug_assertions)]
fn end() -> ! {
    #[cfg(unix)]
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort()
}
