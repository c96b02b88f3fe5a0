//! Many kustomizations, read side by side before the walk follows what they reference.

use std::thread;

use crate::kustomization::{self, Kustomization, Refused};
use crate::os::parallel::processors;

pub(super) type Read = Result<Kustomization, Refused>;

/// How many kustomizations are worth a thread.
const SHARE: usize = 250;
/// How many threads there are at most: what they wait for is memory.
const THREADS: usize = 8;
/// As much as the main thread has.
const STACK: usize = 8 << 20;

/// Reads kustomizations. Returns one answer for each, in their order.
pub(super) fn read(texts: &[&[u8]]) -> Vec<Read> {
    let threads = processors().min(THREADS).min(texts.len() / SHARE).max(1);
    let one_by_one = |texts: &[&[u8]]| -> Vec<Read> { texts.iter().map(|text| kustomization::read(text)).collect() };
    let (ours, theirs) = texts.split_at(texts.len() / threads);
    thread::scope(|scope| {
        let shares: Vec<_> = theirs
            .chunks(theirs.len().div_ceil((threads - 1).max(1)).max(1))
            .map(|share| {
                let thread = thread::Builder::new().stack_size(STACK);
                (share, thread.spawn_scoped(scope, move || one_by_one(share)))
            })
            .collect();
        let mut all = one_by_one(ours);
        for (share, thread) in shares {
            all.extend(match thread.map(thread::ScopedJoinHandle::join) {
                Ok(Ok(read)) => read,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                // No thread available: then it is done here.
                Err(_) => one_by_one(share),
            });
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_the_order_of_the_texts() {
        for count in [0, 1, 7, SHARE, 2 * SHARE + 1, 20 * SHARE + 3] {
            let texts: Vec<String> = (0..count)
                .map(|number| match number % 3 {
                    0 => format!("resources: [file-{number}]\nunknown-{number}: 1\n"),
                    _ => format!("resources:\n- file-{number}\n"),
                })
                .collect();
            let texts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
            let expected: Vec<Read> = texts.iter().map(|text| kustomization::read(text)).collect();
            assert_eq!(read(&texts), expected, "{count}");
        }
    }
}
