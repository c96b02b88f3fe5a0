//! Measures time and memory.

use std::process::Command;
use std::thread;
use std::time::Duration;

/// Returns the one in the middle.
pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Returns the most memory that the process had at once, in bytes; 0 where the system does not tell.
pub(crate) fn peak(command: &mut Command) -> u64 {
    let mut child = command.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    // The high-water mark only rises, and is gone with the process: the last look is the best one.
    while child.try_wait().unwrap().is_none() {
        let kibibytes = std::fs::read_to_string(&status).ok().and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        });
        peak = peak.max(kibibytes.unwrap_or_default() << 10);
        thread::sleep(Duration::from_micros(500));
    }
    peak
}
