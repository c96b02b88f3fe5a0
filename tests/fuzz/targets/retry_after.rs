//! The header `Retry-After`, seconds or a date.

#![no_main]

use std::time::{Duration, SystemTime};

use git_kustomize_localize::seams::fetch::retry_after;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|value: &str| {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let _ = retry_after(value, now);
});
