//! The numbers of differing objects, and of builds that could not be compared.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Compared, Diff};
use crate::build::compare::ObjectChange;
use crate::build::consequences::facts::moved_images;
use crate::commands::messages::{self, NAMED, counted, fitting, present};
use crate::message::failure::short;
use crate::message::redact::visible;
use crate::reference::Upstream;
use crate::targets::affected::{DiffStatus, Sides};

/// The effects of a changed lock entry.
#[derive(Debug, Serialize)]
pub(super) struct Moved {
    remote: Upstream,
    /// How many objects differ in the builds that it leads to.
    objects: usize,
    /// The number of consequences of these differences.
    consequences: usize,
    /// How many of these builds could not be compared.
    not_known: usize,
}

/// An image that runs in another version.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct ImageMove {
    from: String,
    to: String,
    /// How many objects run it.
    objects: usize,
    /// A warning for the reviewer: its digest is gone, or its tag may name something else tomorrow. `None` if neither
    /// is.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

impl ImageMove {
    /// Sums up the images of all objects that change. Those with a warning come first.
    pub(super) fn of(builds: &[Compared]) -> Vec<ImageMove> {
        let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
        for object in builds.iter().flat_map(|build| &build.objects) {
            if let Sides { old: Some(old), new: Some(new) } = &object.values {
                // An object with several containers of one image counts once.
                let moved: BTreeSet<(String, String)> = moved_images(old, new).into_iter().collect();
                moved.into_iter().for_each(|images| *counts.entry(images).or_default() += 1);
            }
        }
        let mut all: Vec<ImageMove> = counts
            .into_iter()
            .map(|((from, to), objects): ((String, String), usize)| {
                // A port of the registry has a colon as well, so only the last component has a tag.
                let tag = to.rsplit_once('/').map_or(to.as_str(), |(_, name)| name).split_once(':').map(|(_, tag)| tag);
                // A digest fixes the image. A tag with a digit is taken for a version; any other, or no tag, can move.
                let note = match tag {
                    _ if has_digest(&to) => None,
                    _ if has_digest(&from) => Some("the digest was lost"),
                    Some(tag) if tag.contains(|digit: char| digit.is_ascii_digit()) => None,
                    _ => Some("a floating tag"),
                };
                ImageMove { from, to, objects, note }
            })
            .collect();
        all.sort_by_key(|image| image.note.is_none());
        all
    }

    /// The change in a line.
    pub(super) fn line(&self) -> String {
        let ImageMove { from, to, objects, note } = self;
        let note = note.map_or(String::new(), |note| format!(", {note}"));
        visible(&format!("image {from} -> {to} ({}{note})", counted(*objects, "object")))
    }
}

/// Whether an image is named by its digest.
fn has_digest(image: &str) -> bool {
    image.contains('@')
}

impl Moved {
    /// The effects of each of these changed lock entries, summed up over those of `compared` that reach it.
    pub(super) fn of(sources: &[&Upstream], compared: &[Compared]) -> Vec<Moved> {
        sources
            .iter()
            .map(|remote: &&Upstream| {
                let builds: Vec<&Compared> = compared.iter().filter(|build| build.moved.contains(*remote)).collect();
                Moved {
                    objects: builds.iter().map(|build| build.objects.len()).sum(),
                    consequences: builds.iter().map(|build| build.consequences.len()).sum(),
                    not_known: builds.iter().filter(|build| build.is_unknown()).count(),
                    remote: (*remote).clone(),
                }
            })
            .collect()
    }
}

impl Diff {
    /// The effects of a changed lock entry in one phrase, for the report of `update`; `None` if it did not change.
    pub(in crate::commands) fn effects_of(&self, upstream: &Upstream) -> Option<String> {
        let Moved { objects, consequences, not_known, .. } =
            self.moved.iter().find(|moved| moved.remote == *upstream)?;
        let change = if *objects == 1 { "changes" } else { "change" };
        let mut text = format!("{} {change}", counted(*objects, "object"));
        if *consequences > 0 {
            text += &format!(", {}", counted(*consequences, "consequence"));
        }
        if *not_known > 0 {
            text += &format!("; unknown: {}", counted(*not_known, "build"));
        }
        Some(text)
    }

    /// A sentence with the numbers of differences, consequences and unknown builds. `between` names both sides.
    pub(super) fn counts(&self, between: &str) -> String {
        let unknown = self.not_known();
        let mut text = self.object_counts(unknown.is_empty());
        if !self.consequences.is_empty() {
            text += &format!(", {}", counted(self.consequences.len(), "consequence"));
        }
        text += between;
        if !unknown.is_empty() {
            text += &format!("; unknown: {unknown}");
        }
        text
    }

    /// The numbers of differing objects and of their builds. Whether everything `is_known` counts only if nothing
    /// differs: a count of 0 must not hide that something could not be compared.
    fn object_counts(&self, is_known: bool) -> String {
        let affected = counted(self.affected, if self.programs.is_some() { "build" } else { "affected build" });
        let objects: Vec<&ObjectChange> = self.builds.iter().flat_map(|build| &build.objects).collect();
        // In the order in which people read a diff.
        let counts = [DiffStatus::Added, DiffStatus::Changed, DiffStatus::Removed].map(|change| {
            let count = objects.iter().filter(|object| object.change == change).count();
            (count, format!("{count} {}", change.name()))
        });
        let (objects, counts) = (counted(objects.len(), "object"), present(counts).join(", "));
        // Unknown builds without objects are counted at the end of the sentence.
        match self.builds.iter().filter(|build| !build.objects.is_empty() || !build.is_unknown()).count() {
            0 if is_known && self.affected == 0 => "no build is affected".to_owned(),
            0 if is_known => format!("nothing differs in {affected}"),
            0 if self.is_all_unknown() => format!("{affected} could not be compared"),
            0 => format!("0 objects differ in {affected}"),
            builds if counts.is_empty() => format!("{objects} in {builds} of {affected}"),
            builds => format!("{objects} ({counts}) in {builds} of {affected}"),
        }
    }

    /// The names of both sides, for the title: two programs, or the base and the compared files.
    pub(super) fn sides(&self) -> String {
        let tree = self.commit.as_deref().map_or("the working tree", short);
        match &self.programs {
            Some(Sides { old, new }) => format!("{old} to {new}, {tree}"),
            None => format!("{} to {tree}", short(&self.since)),
        }
    }

    /// Whether none of the affected builds could be compared.
    fn is_all_unknown(&self) -> bool {
        let unknown = self.builds.iter().filter(|build| build.is_unknown()).count();
        self.affected > 0 && unknown == self.affected
    }

    /// The numbers of builds without both outputs, and of unreadable files.
    fn not_known(&self) -> String {
        let (targets, roots): (Vec<_>, Vec<_>) =
            self.builds.iter().filter(|build| build.is_unknown()).partition(|build| build.is_target);
        let counts =
            [(targets.len() + self.unbuilt.len(), "target"), (roots.len(), "root"), (self.unread.len(), "file")];
        present(counts.map(|(count, what)| (count, counted(count, what)))).join(", ")
    }

    /// Warnings that a side was not built as its own lock says: it has no lock, or not for these references.
    pub(super) fn lock_warnings(&self, verbose: bool) -> Vec<String> {
        let names: Vec<String> = self.unlocked.iter().map(Upstream::to_string).collect();
        let mut warnings = Vec::new();
        if self.takes_lock {
            let since = short(&self.since);
            warnings.push(format!("{since} has no lock: its remote references were built as the new lock has them"));
        }
        if !names.is_empty() {
            warnings.push(format!("not locked, so built as of today: {}", messages::named(&names, verbose)));
        }
        warnings.iter().map(|text| fitting(&visible(text), "warning: ".len(), verbose)).collect()
    }

    /// The builds that were not compared because a reference stays remote, in lines; empty with `verbose`.
    pub(super) fn skipped_lines(&self, verbose: bool) -> Vec<String> {
        // With `verbose` they are shown among the others.
        if verbose {
            return Vec::new();
        }
        let skipped: Vec<&Compared> = self.builds.iter().filter(|build| build.is_skipped_for_remote()).collect();
        if skipped.len() > NAMED {
            let count = counted(skipped.len(), "build");
            return vec![format!("{count} not built: something stays remote (`-v` shows each)")];
        }
        skipped
            .into_iter()
            .map(|build: &Compared| {
                let why: BTreeSet<&str> =
                    build.not_built.iter().flatten().map(|failure| failure.message.as_str()).collect();
                let why = Vec::from_iter(why).join("; ");
                fitting(&visible(&format!("{}: not built: {why}", build.name)), 0, verbose)
            })
            .collect()
    }
}
