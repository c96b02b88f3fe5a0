//! Unpacks the archive of a chart in memory. An archive decides only about the content of its files.

use std::collections::BTreeMap;
use std::io::Read;
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use tar::EntryType;

use crate::os::limits::{CHART_BYTES, CHART_FILES, CHART_METADATA};

/// The longest path in a chart.
const LONGEST_PATH: usize = 1024;

/// The files of a chart by their path below its directory.
pub type Files = BTreeMap<String, Rc<[u8]>>;

/// Unpacks an archive. The first directory of each path is that of the chart, whatever its name, as for helm
/// (`LoadArchiveFiles`).
///
/// Fails with the reason if it is not an archive, has a path out of its directory, a link, a device or a name twice, or
/// is larger than a chart may be.
pub fn unpack(bytes: &[u8]) -> Result<Files, String> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Err("it is not compressed with gzip".to_owned());
    }
    // The whole stream is limited, headers included: otherwise an archive of headers alone could grow without end.
    let most = (CHART_BYTES.most + CHART_FILES.most * 2048) as u64;
    let mut archive = tar::Archive::new(MultiGzDecoder::new(bytes).take(most));
    let mut files = Files::new();
    let mut total = 0;
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let raw = entry.path_bytes().into_owned();
        let shown = crate::message::failure::shown(&String::from_utf8_lossy(&raw));
        match entry.header().entry_type() {
            EntryType::Regular => {}
            EntryType::Directory | EntryType::XGlobalHeader => continue,
            // A link could lead out of the chart, or make one file many: helm charts need neither.
            EntryType::Symlink | EntryType::Link => return Err(format!("`{shown}` is a link")),
            _ => return Err(format!("`{shown}` is not a regular file")),
        }
        let text = String::from_utf8(raw).map_err(|_| format!("the name `{shown}` is not UTF-8"))?;
        let entry_path = safe_path(&text).map_err(|reason| format!("`{shown}` {reason}"))?;
        if files.len() >= CHART_FILES.most {
            return Err(format!("it has {}", CHART_FILES.more()));
        }
        // The size in the header is only a claim, so one byte more than is allowed is read, to see if there are more.
        let mut content = Vec::new();
        let remaining = CHART_BYTES.most as u64 - total;
        (&mut entry).take(remaining + 1).read_to_end(&mut content).map_err(broken)?;
        if content.len() as u64 != entry.size() || content.len() as u64 > remaining {
            return Err(format!("`{shown}` is truncated, or the chart has {}", CHART_BYTES.more()));
        }
        total += content.len() as u64;
        // The mode is not kept: helm unpacks everything as 0644.
        if files.insert(entry_path, content.into()).is_some() {
            return Err(format!("`{shown}` appears twice"));
        }
    }
    // An archive that is cut between two entries looks like one that ends there.
    if archive.into_inner().limit() == 0 {
        return Err("it is too large".to_owned());
    }
    // A path that begins with the path of a file and `/` makes that file a directory as well.
    for path in files.keys() {
        let below = format!("{path}/");
        if files.range(below.clone()..).next().is_some_and(|(next, _)| next.starts_with(&below)) {
            return Err(format!("`{path}` is both a file and a directory"));
        }
    }
    Ok(files)
}

/// Archives in archives of one chart: they can be nested without end, so the total of what is unpacked is limited.
#[derive(Default)]
pub(crate) struct NestedArchives {
    unpacked: usize,
}

impl NestedArchives {
    /// Unpacks one more archive. Fails as [`unpack`] does, and if those before it are larger than a chart may be.
    pub(crate) fn unpack(&mut self, bytes: &[u8]) -> Result<Files, String> {
        if self.unpacked > CHART_BYTES.most {
            return Err(format!("the chart has {}", CHART_BYTES.more()));
        }
        let files = unpack(bytes)?;
        // Each file counts with its header, so that many empty files reach the limit as well.
        self.unpacked += files.values().map(|bytes| bytes.len() + 512).sum::<usize>();
        Ok(files)
    }
}

/// Why an archive cannot be read.
fn broken(error: std::io::Error) -> String {
    format!("it is damaged, or too large ({error})")
}

/// The path of a file in its chart, from its name in the archive: without the first directory. Fails with the reason if
/// the name could lead out of the chart, or would mean another path on another system.
fn safe_path(text: &str) -> Result<String, &'static str> {
    // A file system would refuse a longer path only later, after half of the chart is written.
    if text.len() > LONGEST_PATH {
        return Err("is too long for a path in a chart");
    }
    if text.starts_with('/') {
        return Err("is absolute");
    }
    if text.contains(['\\', ':']) || text.contains(char::is_control) {
        return Err("contains a character that is not allowed in a chart path");
    }
    let mut parts = text.split('/').filter(|part| !matches!(*part, "" | "."));
    if text.split('/').any(|part| part == "..") {
        return Err("leads out of the archive");
    }
    // The first part is the directory of the chart, whose name helm does not look at.
    parts.next();
    let rest: Vec<&str> = parts.collect();
    if rest.is_empty() { Err("is not in the directory of the chart") } else { Ok(rest.join("/")) }
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    version: String,
}

/// The name and the version of a chart from its `Chart.yaml`. Fails with the reason if they are missing, or could not
/// be names of directories.
pub fn metadata(files: &Files) -> Result<(String, String), String> {
    let bytes = files.get("Chart.yaml").ok_or("it has no `Chart.yaml`")?;
    if bytes.len() > CHART_METADATA.most {
        return Err(format!("its `Chart.yaml` has {}", CHART_METADATA.more()));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "its `Chart.yaml` is not UTF-8")?;
    // helm skips a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let metadata: Metadata =
        serde_yaml::from_str(text).map_err(|error| format!("its `Chart.yaml` cannot be read: {error}"))?;
    if metadata.name.is_empty() || metadata.version.is_empty() {
        return Err("its `Chart.yaml` has no name or version".to_owned());
    }
    // Both become names of directories.
    if is_name_part(&metadata.name) && is_name_part(&metadata.version) {
        Ok((metadata.name, metadata.version))
    } else {
        Err("its `Chart.yaml` has an invalid name or version".to_owned())
    }
}

/// Whether a text can be a part of a file name.
fn is_name_part(text: &str) -> bool {
    !text.contains(['/', '\\']) && !text.contains(char::is_control)
}
