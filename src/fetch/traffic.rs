//! What this process asked of servers, for `-v`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use indicatif::HumanBytes;

use super::reach::place;

/// How many requests, and how many bytes of files and packs, by host.
static TRAFFIC: Mutex<BTreeMap<String, (usize, u64)>> = Mutex::new(BTreeMap::new());

/// Counts what was asked of the host of `url`, and what came.
pub(super) fn count(url: &str, requests: usize, bytes: u64) {
    let host = place(url).unwrap_or_else(|| "this machine".to_owned());
    let mut traffic = TRAFFIC.lock().unwrap_or_else(PoisonError::into_inner);
    let (all_requests, all_bytes) = traffic.entry(host).or_default();
    (*all_requests, *all_bytes) = (*all_requests + requests, *all_bytes + bytes);
}

/// Returns what was asked, a line for each host.
pub(crate) fn traffic() -> String {
    let traffic = TRAFFIC.lock().unwrap_or_else(PoisonError::into_inner);
    let line = |(host, (requests, bytes)): (&String, &(usize, u64))| {
        let s = if *requests == 1 { "" } else { "s" };
        format!("fetched from {host}: {requests} request{s}, {}\n", HumanBytes(*bytes))
    };
    traffic.iter().map(line).collect()
}
