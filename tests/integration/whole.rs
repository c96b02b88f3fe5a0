#[cfg(target_os = "linux")]
mod faults;
pub(crate) mod fuzz;
mod generated;
mod hints;
mod judge;
#[cfg(debug_assertions)]
mod killed;
mod limits;
pub(crate) mod old_against_new;
mod parity;
mod secrets;
mod snapshots;
mod yaml;
mod year;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does something with each item, on as many threads as there are processors. `each` also gets the
/// number of its thread, which is below [`THREADS`].
fn in_parallel<'a, T: Sync, R: Send>(
    items: &'a [T],
    each: impl Fn(usize, &'a T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(BTreeMap::new());
    let work = |worker| {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(number) else {
                return;
            };
            let result = each(worker, item);
            results.lock().unwrap().insert(number, result);
        }
    };
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for worker in 0..workers.clamp(2, THREADS) {
            let work = &work;
            scope.spawn(move || work(worker));
        }
    });
    results.into_inner().unwrap().into_values().collect()
}

/// How many threads there are at most.
const THREADS: usize = 4;
