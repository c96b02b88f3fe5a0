//! What stays remote, as the lock records it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{chart_label, text, validate};

/// Something that stays remote, so that a build reaches out for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "text::LeftKeys")]
pub struct Left {
    /// What it is.
    #[serde(flatten)]
    pub what: LeftWhat,
    /// The remote [references](super::Remote::references) to what names it; empty when only the tree itself does.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub through: BTreeSet<String>,
    /// Why it is left.
    pub reason: String,
    /// Whether that is accepted: by an exception.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub accepted: bool,
}

/// The sorts of what stays remote.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(untagged)]
pub enum LeftWhat {
    /// A file or a root.
    Reference {
        /// The reference as written, without secrets.
        url: String,
    },
    /// A Helm chart of a repository.
    Chart {
        /// The repository, without secrets.
        url: String,
        /// The name of the chart.
        chart: String,
        /// The version as it was written; none when none was.
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },
    /// The image of a function.
    Image {
        /// The image as written.
        image: String,
    },
}

impl LeftWhat {
    /// Returns whether a lock can hold it: an upstream may name anything.
    pub fn is_valid(&self) -> bool {
        validate::left_what(self).is_ok()
    }

    /// Returns what names it: a URL, `URL#CHART@VERSION`, or the image.
    pub fn label(&self) -> String {
        match self {
            LeftWhat::Reference { url } => url.clone(),
            LeftWhat::Chart { url, chart, version } => chart_label(url, chart, version.as_deref()),
            LeftWhat::Image { image } => image.clone(),
        }
    }
}
