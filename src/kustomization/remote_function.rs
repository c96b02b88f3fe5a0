//! What functions get from elsewhere when they run.

use super::{FunctionRuntime, NoteKind, is_pinned};
use crate::finding::Subject;
use crate::redact;

/// Code that a function gets from elsewhere, whenever it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteFunction<'a> {
    /// An image that may be another tomorrow, or that is given the network.
    Image {
        /// The image.
        image: &'a str,
        /// Whether it is named by its digest.
        is_pinned: bool,
        /// Whether it is given the network.
        network: bool,
    },
    /// A script.
    Script {
        /// Where it is.
        url: &'a str,
    },
}

impl RemoteFunction<'_> {
    /// Returns what it is for a policy.
    #[must_use]
    pub fn subject(&self) -> Subject {
        match self {
            RemoteFunction::Image { image, .. } => Subject::Image {
                image: redact::url(image),
            },
            RemoteFunction::Script { url } => Subject::Http {
                url: redact::url(url),
            },
        }
    }
}

impl NoteKind {
    /// Returns what a function gets from elsewhere; none where it needs nothing, or an image that cannot change.
    #[must_use]
    pub fn remote_function(&self) -> Option<RemoteFunction<'_>> {
        let NoteKind::KrmFunction { runtime, .. } = self else {
            return None;
        };
        match runtime {
            FunctionRuntime::Container { image, network, .. } => {
                let is_pinned = is_pinned(image);
                (!image.is_empty() && (*network || !is_pinned)).then_some(RemoteFunction::Image {
                    image,
                    is_pinned,
                    network: *network,
                })
            }
            FunctionRuntime::Starlark { url, .. } if !url.is_empty() => {
                Some(RemoteFunction::Script { url })
            }
            FunctionRuntime::Exec { .. }
            | FunctionRuntime::Starlark { .. }
            | FunctionRuntime::Unknown => None,
        }
    }
}
