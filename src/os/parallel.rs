//! Work on other threads.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// As much as the main thread has.
const STACK: usize = 8 << 20;

/// Locks a mutex.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of another thread is reported there, and nowhere else.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of threads that this machine can run at once.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Runs the jobs on a few threads, `most` at once, and returns their results in the order of the jobs.
pub fn side_by_side<J: Sync, D: Send>(jobs: &[J], most: usize, run: impl Fn(usize, &J) -> D + Sync) -> Vec<D> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { return };
            let result = run(index, job);
            locked(&done).push((index, result));
        }
    };
    thread::scope(|scope| {
        // This thread works, too. If no more threads can be started, fewer do the work.
        for _ in 1..jobs.len().min(most) {
            if thread::Builder::new().stack_size(STACK).spawn_scoped(scope, worker).is_err() {
                break;
            }
        }
        worker();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, done)| done).collect()
}

/// Begins work on another thread. Returns a function that waits for its end, and returns its result.
pub(crate) fn meanwhile<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> impl FnOnce() -> T {
    // A thread that cannot be started drops its closure, so both hold the work: then the caller does it.
    let work = Arc::new(Mutex::new(Some(work)));
    let take = |work: &Mutex<Option<_>>| locked(work).take();
    let taken = work.clone();
    let begun = thread::Builder::new().stack_size(STACK).spawn(move || take(&taken).map(|work| work()));
    move || match begun.map(thread::JoinHandle::join) {
        Ok(Ok(Some(done))) => done,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        // No thread could be started, so the work is done now.
        Ok(Ok(None)) | Err(_) => match take(&work) {
            Some(work) => work(),
            None => unreachable!("work is taken once"),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::time::Duration;

    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        for count in [0, 1, 2, 100] {
            let jobs: Vec<usize> = (0..count).collect();
            for most in [0, 1, 2, 8] {
                let done = side_by_side(&jobs, most, |index, job| (index, *job));
                let expected: Vec<_> = jobs.iter().map(|job| (*job, *job)).collect();
                assert_eq!(done, expected);
            }
        }
    }

    #[test]
    fn no_more_than_so_many_are_done_at_once() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        side_by_side(&[(); 40], 3, |_, ()| {
            let running = now.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(running, Ordering::SeqCst);
            thread::sleep(Duration::from_micros(200));
            now.fetch_sub(1, Ordering::SeqCst);
        });
        assert!(most.into_inner() <= 3);
        // All of them at once, or they would wait for ever.
        let all = Barrier::new(3);
        side_by_side(&[(); 3], 3, |_, ()| all.wait().is_leader());
    }
}
