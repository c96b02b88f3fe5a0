//! How much is read of files, paths and charts, and how much is reported, in one table. More is a failure that names
//! the file and the limit: nothing is left out in silence, and no input makes the program run out of memory or time.

use crate::message::failure::{Failure, Result};

/// The most of something, with its name and the hint if there is more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) most: usize,
    what: &'static str,
    pub(crate) hint: &'static str,
}

/// A limit with the name of what it counts, and the hint if it is exceeded.
const fn limit(most: usize, what: &'static str, hint: &'static str) -> Limit {
    Limit { most, what, hint }
}

/// The length of a path, and of a reference: Linux opens no longer one. It also limits the depth of a tree.
pub(crate) const PATH: Limit = limit(4096, "bytes in one path", "shorten it");
/// The paths of a tree; directories count, too.
pub(crate) const PATHS: Limit = limit(1_000_000, "paths", "remove generated files");
pub(crate) const PATH_BYTES: Limit = limit(100_000_000, "bytes of paths", PATHS.hint);

/// The size of a file that is read as YAML.
pub(crate) const FILE: Limit = limit(10_000_000, "bytes", "split it");
/// The nodes of a text that is read as YAML. An alias counts as its value, a long scalar as several nodes.
pub(crate) const NODES: Limit = limit(500_000, "YAML nodes", FILE.hint);

/// The references that a run reads.
pub(crate) const RUN: Limit = limit(250_000, "references", PART);
/// The remote references of a run, with their problems and notes.
pub(crate) const FINDINGS: Limit = limit(100_000, "remote references and problems", PART);
/// The size of the texts of all findings.
pub(crate) const FINDING_BYTES: Limit = limit(50_000_000, "bytes of findings", PART);
const PART: &str = "check only a part: name a PATH";

/// The kustomizations that the build of a root loads, each as often as it is named.
pub(crate) const LOADS: Limit = limit(100_000, "kustomizations to load in a build", "reference fewer of them twice");

/// The files of a directory that a build needs as a whole.
pub(crate) const CARRIED_FILES: Limit = limit(20_000, "files", "name a directory with only the files that are needed");
/// The size of all files of a chart: helm's own limit is the same.
pub(crate) const CHART_BYTES: Limit = limit(100 << 20, "bytes", "");
pub(crate) const CHART_FILES: Limit = limit(20_000, "files", "");
/// The size of a `Chart.yaml`.
pub(crate) const CHART_METADATA: Limit = limit(1_000_000, "bytes", "");
/// The size of the index of a chart repository.
pub(crate) const INDEX: Limit = limit(5_000_000, "YAML nodes", "");
/// The versions of a chart in such an index.
pub(crate) const CHART_VERSIONS: Limit = limit(50_000, "versions", "");
/// The objects in a file that an engine may read.
pub(crate) const OBJECTS: Limit = limit(1000, "objects", FILE.hint);
/// The exclusions from artifacts of Flux in a tree; equal texts count once.
pub(crate) const PATTERNS: Limit = limit(50_000, "patterns", "merge some of them");
/// The work of finding attributes in a tree where some change files: git compares each line with each file.
pub(crate) const ATTRIBUTES: Limit = limit(200_000_000, "pairs of a line and a file to compare", "write fewer lines");
/// The sizes of a configuration and of a lock.
pub(crate) const CONFIGURATION: Limit = limit(256 << 10, "bytes", FILE.hint);
pub(crate) const LOCK: Limit = limit(32 << 20, "bytes", "");

impl Limit {
    /// Fails if the count is above the limit; `location` says what has so many.
    pub(crate) fn check(self, count: usize, location: impl FnOnce() -> String) -> Result<()> {
        if count <= self.most {
            return Ok(());
        }
        Err(self.exceeded(&location()))
    }

    /// The failure of a file or directory that has more.
    pub(crate) fn exceeded(self, location: &str) -> Failure {
        Failure::new(format!("`{location}` has {}", self.more())).hint(self.hint)
    }

    /// The message for an exceeded limit, such as `more than 1000 objects`.
    pub(crate) fn more(self) -> String {
        format!("more than {} {}", self.most, self.what)
    }
}
