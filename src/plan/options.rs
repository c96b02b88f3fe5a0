//! How to localize, wherever the result goes.

/// How to localize, besides what the configuration says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Options {
    /// Whether edits in localized files are discarded.
    pub overwrite: bool,
    /// Whether the message of a commit is going to hold the record.
    pub trailers: bool,
}
