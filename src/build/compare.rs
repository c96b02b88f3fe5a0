//! What two outputs have in common, and where they differ.

use serde::Serialize;

use super::diff;
use super::objects::{self, Object};

/// What comparing says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// The same bytes, but for the annotations of `buildMetadata`: they name the paths of what was built.
    Identical,
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
    pub(crate) fn is_same(&self) -> bool {
        match self {
            Verdict::Identical | Verdict::VerifiedBefore => true,
            Verdict::Differs(_)
            | Verdict::Unsteady(_)
            | Verdict::Broken { .. }
            | Verdict::NotBuilt { .. }
            | Verdict::Skipped { .. } => false,
        }
    }

    /// Returns whether the result must not be used.
    pub(crate) fn differs(&self) -> bool {
        match self {
            Verdict::Differs(_) | Verdict::Unsteady(_) | Verdict::Broken { .. } => true,
            Verdict::Identical | Verdict::VerifiedBefore | Verdict::NotBuilt { .. } | Verdict::Skipped { .. } => false,
        }
    }
}

/// How two outputs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    /// The objects that are not the same, in the order of the outputs; none where only the order differs.
    pub objects: Vec<ObjectChange>,
    /// The changed lines, limited in length, without what Secrets hold.
    pub diff: String,
}

/// One object that is not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ObjectChange {
    /// What names it: `apps/v1 Deployment NAMESPACE/NAME`.
    pub id: String,
    /// What happened to it.
    pub change: Changed,
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(clippy::enum_variant_names)]
pub(crate) enum Changed {
    /// Only the result has it.
    Added,
    /// Only the original has it.
    Removed,
    /// It is another one.
    Changed,
}

impl Changed {
    /// Returns its name, as in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Changed::Added => "added",
            Changed::Removed => "removed",
            Changed::Changed => "changed",
        }
    }
}

/// Compares what the original and the result build to.
pub(crate) fn compare(original: &[u8], localized: &[u8]) -> Verdict {
    if original == localized {
        return Verdict::Identical;
    }
    let text = (str::from_utf8(original), str::from_utf8(localized));
    let before = objects::split(&String::from_utf8_lossy(original));
    let after = objects::split(&String::from_utf8_lossy(localized));
    let is_same = |(one, other): (&Object, &Object)| one.compared() == other.compared();
    if before.len() == after.len() && matches!(text, (Ok(_), Ok(_))) && before.iter().zip(&after).all(is_same) {
        return Verdict::Identical;
    }
    let mut objects = Vec::new();
    let mut diff = diff::Limited::default();
    for (one, other) in objects::pairs(&before, &after) {
        let (id, change) = match (one, other) {
            (Some(one), Some(other)) if one.text == other.text => continue,
            (Some(one), Some(_)) => (&one.id, Changed::Changed),
            (Some(one), None) => (&one.id, Changed::Removed),
            (None, Some(other)) => (&other.id, Changed::Added),
            (None, None) => continue,
        };
        let shown = |object: Option<&Object>| object.map_or(String::new(), Object::shown);
        diff.add(id, &shown(one), &shown(other));
        objects.push(ObjectChange { id: id.clone(), change });
    }
    if objects.is_empty() {
        let ids = |objects: &[Object]| {
            let lines = objects.iter().map(|object| format!("{}\n", object.id));
            lines.collect::<String>()
        };
        diff.add("order of the objects", &ids(&before), &ids(&after));
    }
    let diff = diff.finish();
    Verdict::Differs(Difference { objects, diff })
}

#[cfg(test)]
mod tests;
