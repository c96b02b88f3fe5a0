//! What two outputs have in common, and where they differ.

use super::diff::{self, Masked};
use super::objects::{self, Object};
use crate::kustomization;

/// The annotations that a kustomization can ask for, which name where objects come from.
const ORIGIN: &str = "config.kubernetes.io/origin";
/// See [`ORIGIN`].
const TRANSFORMATIONS: &str = "alpha.config.kubernetes.io/transformations";

/// Which annotations about the build itself a kustomization asks for (`buildMetadata`). What they say is
/// bound to be another path in a copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Metadata {
    /// `originAnnotations`
    pub origin: bool,
    /// `transformerAnnotations`
    pub transformer: bool,
}

impl Metadata {
    /// Every annotation about the build.
    const ALL: Metadata = Metadata {
        origin: true,
        transformer: true,
    };

    /// Returns what a kustomization asks for. Those that it names have no say.
    #[must_use]
    pub fn of(kustomization: &[u8]) -> Metadata {
        let asked = kustomization::read(kustomization).map(|read| read.build_metadata);
        let asked = asked.unwrap_or_default();
        let asks = |what: &str| asked.iter().any(|one| one == what);
        Metadata {
            origin: asks("originAnnotations"),
            transformer: asks("transformerAnnotations"),
        }
    }

    fn names(self) -> Vec<&'static str> {
        let both = [(self.origin, ORIGIN), (self.transformer, TRANSFORMATIONS)];
        let asked = both.into_iter().filter(|(asked, _)| *asked);
        asked.map(|(_, name)| name).collect()
    }
}

/// What comparing says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Byte for byte the same.
    Identical,
    /// The same but for annotations that the kustomization asks for, and that name paths.
    AnnotationsOnly,
    /// It was the same when an earlier run built it from the same inputs.
    VerifiedBefore,
    /// Not the same.
    Differs(Difference),
    /// Not the same, but the original is not even the same as itself.
    Unsteady(Difference),
    /// The original builds, and the result does not.
    Broken {
        /// What was said.
        reason: String,
    },
    /// The original does not build, or not as a whole.
    NotBuilt {
        /// Why.
        reason: String,
    },
    /// It was not built: something that it needs stays remote, or may be missing.
    Skipped {
        /// What that is.
        reason: String,
    },
}

impl Verdict {
    /// Returns whether the result is as good as the original.
    #[must_use]
    pub fn is_same(&self) -> bool {
        match self {
            Verdict::Identical | Verdict::AnnotationsOnly | Verdict::VerifiedBefore => true,
            Verdict::Differs(_)
            | Verdict::Unsteady(_)
            | Verdict::Broken { .. }
            | Verdict::NotBuilt { .. }
            | Verdict::Skipped { .. } => false,
        }
    }

    /// Returns whether the result must not be used.
    #[must_use]
    pub fn differs(&self) -> bool {
        match self {
            Verdict::Differs(_) | Verdict::Unsteady(_) | Verdict::Broken { .. } => true,
            Verdict::Identical
            | Verdict::AnnotationsOnly
            | Verdict::VerifiedBefore
            | Verdict::NotBuilt { .. }
            | Verdict::Skipped { .. } => false,
        }
    }

    /// Returns its name, as in JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Identical => "identical",
            Verdict::AnnotationsOnly => "annotations-only",
            Verdict::VerifiedBefore => "verified-before",
            Verdict::Differs(_) => "differs",
            Verdict::Unsteady(_) => "unsteady",
            Verdict::Broken { .. } => "broken",
            Verdict::NotBuilt { .. } => "not-built",
            Verdict::Skipped { .. } => "skipped",
        }
    }
}

/// How two outputs differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// In what.
    pub kind: DifferenceKind,
    /// The objects that are not the same, in the order of the outputs.
    pub objects: Vec<ObjectChange>,
    /// The changed lines, limited in length, without what Secrets hold.
    pub diff: String,
}

/// In what two outputs differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceKind {
    /// The objects are the same, in another order.
    OrderOnly,
    /// Only annotations about the build differ, and the kustomization does not ask for them.
    Annotations,
    /// The objects are the same, and written in another way.
    Spelling,
    /// The objects.
    Content,
}

impl DifferenceKind {
    /// Returns its name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DifferenceKind::OrderOnly => "order",
            DifferenceKind::Annotations => "annotations",
            DifferenceKind::Spelling => "spelling",
            DifferenceKind::Content => "content",
        }
    }
}

/// One object that is not the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectChange {
    /// What names it: `apps/v1 Deployment NAMESPACE/NAME`.
    pub id: String,
    /// What happened to it.
    pub change: Changed,
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// Only the result has it.
    Added,
    /// Only the original has it.
    Removed,
    /// It is another one.
    Changed,
}

impl Changed {
    /// Returns its name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Changed::Added => "added",
            Changed::Removed => "removed",
            Changed::Changed => "changed",
        }
    }
}

/// Compares what the original and the result build to.
#[must_use]
pub fn compare(original: &[u8], localized: &[u8], asked: Metadata) -> Verdict {
    if original == localized {
        return Verdict::Identical;
    }
    let before = objects::split(&String::from_utf8_lossy(original));
    let after = objects::split(&String::from_utf8_lossy(localized));
    let same_without = |names: &[&str]| {
        let strip = |objects: &[Object]| -> Option<Vec<_>> {
            let all = objects.iter().map(|object| object.without(names));
            all.collect()
        };
        matches!((strip(&before), strip(&after)), (Some(one), Some(other)) if one == other)
    };
    let same_text_without = |names: &[&str]| {
        let text = |objects: &[Object]| {
            let all = objects.iter().flat_map(|object| {
                let lines = object.text_without(names);
                lines.into_iter().chain(["---"]).map(str::to_owned)
            });
            all.collect::<Vec<_>>()
        };
        text(&before) == text(&after)
    };
    let names = asked.names();
    if !names.is_empty() && same_without(&names) && same_text_without(&names) && !same_without(&[])
    {
        return Verdict::AnnotationsOnly;
    }
    let pairs = objects::pairs(&before, &after);
    let kind = if same_without(&[]) {
        DifferenceKind::Spelling
    } else if same_without(&Metadata::ALL.names()) {
        DifferenceKind::Annotations
    } else if pairs.iter().all(|pair| match pair {
        (Some(one), Some(other)) => one.text == other.text,
        _ => false,
    }) {
        DifferenceKind::OrderOnly
    } else {
        DifferenceKind::Content
    };
    let mut objects = Vec::new();
    let mut diff = diff::Limited::default();
    if kind == DifferenceKind::OrderOnly {
        let ids = |objects: &[Object]| {
            let lines = objects.iter().map(|object| format!("{}\n", object.id));
            lines.collect::<String>()
        };
        diff.add("order of the objects", &ids(&before), &ids(&after));
    }
    for (one, other) in pairs {
        let (id, change) = match (one, other) {
            (Some(one), Some(other)) if one.text == other.text => continue,
            (Some(one), Some(_)) => (&one.id, Changed::Changed),
            (Some(one), None) => (&one.id, Changed::Removed),
            (None, Some(other)) => (&other.id, Changed::Added),
            (None, None) => continue,
        };
        let Masked { before, after } = diff::masked(one, other);
        diff.add(id, &before, &after);
        objects.push(ObjectChange {
            id: id.clone(),
            change,
        });
    }
    Verdict::Differs(Difference {
        kind,
        objects,
        diff: diff.finish(),
    })
}

#[cfg(test)]
mod tests;
