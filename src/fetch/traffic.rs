//! Counts the requests of this process, for `-v`.

use std::collections::BTreeMap;
use std::sync::Mutex;

use indicatif::HumanBytes;

use super::reach::authority;
use crate::os::parallel::locked;

/// The number of requests, and of bytes of files and packs, by host.
static TRAFFIC: Mutex<BTreeMap<String, (usize, u64)>> = Mutex::new(BTreeMap::new());

/// Counts requests to the host of `url`, and the bytes that it sent.
pub(super) fn count(url: &str, requests: usize, bytes: u64) {
    let host = authority(url).unwrap_or_else(|| "this machine".to_owned());
    let mut traffic = locked(&TRAFFIC);
    let (all_requests, all_bytes) = traffic.entry(host).or_default();
    (*all_requests, *all_bytes) = (*all_requests + requests, *all_bytes + bytes);
}

/// One line for each host with its requests and bytes.
pub(crate) fn traffic() -> String {
    let traffic = locked(&TRAFFIC);
    let lines = traffic.iter().map(|(host, (requests, bytes))| {
        let s = if *requests == 1 { "" } else { "s" };
        format!("fetched from {host}: {requests} request{s}, {}\n", HumanBytes(*bytes))
    });
    lines.collect()
}
