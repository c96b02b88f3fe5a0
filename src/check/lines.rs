//! Lines of files for findings: each is made once, however many findings stand on it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// The lines that were requested, by the paths of their files.
#[derive(Default)]
pub(super) struct Lines(RefCell<HashMap<String, File>>);

struct File {
    bytes: Vec<u8>,
    /// Where each line begins.
    starts: Vec<usize>,
    lines: HashMap<usize, Arc<str>>,
}

impl Lines {
    /// Returns a line (1-based) of a file without its end; empty when there is none. A byte order mark is not part of a
    /// line: columns do not count it.
    pub(super) fn get(&self, path: &str, read: impl FnOnce() -> Vec<u8>, number: usize) -> Arc<str> {
        let mut files = self.0.borrow_mut();
        let file = files.entry(path.to_owned()).or_insert_with(|| {
            let bytes = read();
            File { starts: starts(&bytes), bytes, lines: HashMap::new() }
        });
        let (bytes, starts) = (&file.bytes, &file.starts);
        let line = file.lines.entry(number).or_insert_with(|| {
            let start = number.checked_sub(1).and_then(|index| starts.get(index));
            let end = starts.get(number).copied().unwrap_or(bytes.len());
            let line = start.and_then(|start| bytes.get(*start..end));
            let line = String::from_utf8_lossy(line.unwrap_or_default());
            let line = line.trim_end_matches(['\r', '\n']);
            line.strip_prefix('\u{feff}').unwrap_or(line).into()
        });
        line.clone()
    }
}

fn starts(bytes: &[u8]) -> Vec<usize> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect()
}
