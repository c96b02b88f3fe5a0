//! The artifacts that an `ArtifactGenerator` makes from its sources, if they have the paths of this repository
//! (source-watcher, `internal/builder/builder.go`).

use std::collections::HashSet;
use std::rc::Rc;

use super::super::scan::Document;
use super::super::{Artifact, FILE, ObjectRef, unfilled};
use super::ignore::{Copied, Ignores};
use super::models::{self, ARTIFACT, CHART, GENERATOR, GeneratorSpec};
use super::path_pattern::{self, Captures, fill, is_label, is_object_name};
use super::source::{Bound, BoundSource, FluxSources};
use crate::tree::{Entry, path};

/// The reason for a step whose copies are unknown.
const MORE: &str = "copies more than files and directories";

/// The artifacts of a generator.
#[derive(Default)]
pub(super) struct Made {
    /// Each with its name.
    pub(super) artifacts: Vec<(String, BoundSource)>,
    /// Why there may be others; `None` if there are none.
    pub(super) more: Option<String>,
}

/// Finds the artifacts of a generator.
pub(super) fn made(sources: &FluxSources<'_>, document: &Document) -> Made {
    let why = |why: &str| format!("the {GENERATOR} `{}` {why}", document.object.full_name());
    let spec: models::Generator = document.read();
    let generator = ArtifactGenerator { sources, document, spec: &spec.spec };
    let (sets, defined_by) = match generator.sets() {
        Ok(generator) => generator,
        Err(reason) => return Made { more: Some(why(&reason)), ..Made::default() },
    };
    let mut more = (!spec.spec.path_pattern.is_empty()).then(|| why("matches no directory"));
    let mut wrong = refused(&spec).map(str::to_owned);
    let (mut wanted, mut names) = (Vec::new(), HashSet::new());
    for captures in &sets {
        let lower = path_pattern::lower(captures);
        if let Some((_, value)) = lower.iter().find(|(_, value)| !is_label(value)) {
            wrong.get_or_insert(format!("matches `{value}`, which is not a valid label value"));
        }
        for artifact in &spec.spec.artifacts {
            let written = artifact.name.as_str();
            let reason = match fill(written, &lower).filter(|name| is_object_name(name)) {
                Some(name) if names.insert(name.clone()) => {
                    wanted.push((name, captures, artifact));
                    continue;
                }
                None if unfilled([written]).is_some() => {
                    more = unfilled([written]);
                    continue;
                }
                Some(name) => format!("generates `{name}` twice"),
                None => format!("generates the invalid name `{written}`"),
            };
            wrong.get_or_insert(reason);
        }
    }
    // First all names: one wrong artifact stops the generator before it makes any.
    let mut artifacts = Vec::new();
    for (name, captures, artifact) in wanted {
        let mut defined_by = defined_by.clone();
        // They are made one after the other: if one fails, the old ones remain for those that follow.
        let bound = match &wrong {
            Some(reason) => Err(reason.clone()),
            None => generator.holds(artifact, captures, &mut defined_by),
        };
        let bound = bound.unwrap_or_else(|reason| Bound::Templated(why(wrong.insert(reason))));
        artifacts.push((name, BoundSource { bound, defined_by }));
    }
    Made { artifacts, more }
}

/// Why Flux makes nothing from a generator; `None` if it does.
fn refused(generator: &models::Generator) -> Option<&'static str> {
    let mut aliases = HashSet::new();
    if generator.is_disabled() {
        Some("is disabled by an annotation")
    } else if !generator.spec.sources.iter().all(|source| aliases.insert(&source.alias)) {
        Some("has two sources with the same alias")
    } else {
        None
    }
}

/// A generator, and the sources that it may copy from.
struct ArtifactGenerator<'a, 's> {
    sources: &'a FluxSources<'s>,
    document: &'a Document,
    spec: &'a GeneratorSpec,
}

impl ArtifactGenerator<'_, '_> {
    /// The values of the names in its `pathPattern`, one set for each time that it makes its artifacts, and the objects
    /// that define where. Without a pattern there is one set.
    fn sets(&self) -> Result<(Vec<Captures>, Vec<ObjectRef>), String> {
        let text = self.spec.path_pattern.as_str();
        if text.is_empty() {
            return Ok((vec![Captures::new()], Vec::new()));
        }
        let parts = text.strip_prefix('@').filter(|_| unfilled([text]).is_none()).and_then(|text| text.split_once('/'));
        let (alias, pattern) = parts.ok_or("has a `pathPattern` that cannot be read here")?;
        let BoundSource { bound, defined_by } = self.source(alias)?;
        let matches = path_pattern::matches(self.sources, &bound, pattern)?;
        self.sources.spend(matches.len().saturating_mul(self.spec.artifacts.len()).saturating_mul(FILE))?;
        Ok((matches, defined_by))
    }

    /// The source with an alias.
    fn source(&self, alias: &str) -> Result<BoundSource, String> {
        let source =
            self.spec.sources.iter().find(|source| source.alias == alias).ok_or("references an unknown source")?;
        let reference = source.reference();
        if [ARTIFACT, CHART].contains(&&*reference.kind) {
            return Err("copies from a generated source".to_owned());
        }
        Ok(self.sources.bind(self.document, &reference))
    }

    /// The content of an artifact; adds the objects that define its sources.
    fn holds(
        &self,
        artifact: &models::Output,
        captures: &Captures,
        defined_by: &mut Vec<ObjectRef>,
    ) -> Result<Bound, String> {
        let mut copies = Vec::new();
        for entry in &artifact.copy {
            let step = step(entry, captures).ok_or(MORE)?;
            let source = self.source(&step.alias)?;
            defined_by.extend(source.defined_by);
            copies.push((source.bound, step));
        }
        combined(self.sources, &copies)
    }
}

/// The content that steps copy together, each from its source.
fn combined(sources: &FluxSources<'_>, copies: &[(Bound, CopyStep)]) -> Result<Bound, String> {
    let (first, _) = copies.first().ok_or("copies nothing")?;
    if copies.iter().any(|(source, _)| source != first) {
        return Err("copies from several sources".to_owned());
    }
    let Bound::Local { base: top, revision, artifact } = first else { return Ok(first.clone()) };
    // A localized branch, or another revision, may contain more files than the tree.
    let is_known = revision.is_this && !revision.is_localized();
    let (mut above, mut placed): (Option<String>, Vec<(String, Copied)>) = (None, Vec::new());
    let mut artifact = artifact.as_deref().cloned().unwrap_or_default();
    for (_, step) in copies {
        let copied = copied(sources, top, &artifact, step, is_known)?;
        let to = destination(sources, step, &copied.from, &placed)?;
        let names: Vec<&str> = path::components(&copied.from).collect();
        let rest = names.strip_suffix(&path::components(&to).collect::<Vec<_>>()[..]).map(|rest| rest.join("/"));
        let Some(rest) = rest.filter(|rest| above.as_ref().is_none_or(|above| above == rest)) else {
            return Err("rearranges its files".to_owned());
        };
        // All steps must move the files alike, or else a path of the artifact is no path of this repository.
        above = Some(rest);
        placed.push((to, copied));
    }
    artifact.ignores = artifact.ignores.copied(placed.into_iter().map(|(_, copied)| copied).collect());
    Ok(Bound::Local { base: above.unwrap_or_default(), revision: revision.clone(), artifact: Some(Rc::new(artifact)) })
}

/// The content that a step copies out of a source whose top is a directory of this repository. Fails if it is known to
/// be missing.
fn copied(
    sources: &FluxSources<'_>,
    top: &str,
    source: &Artifact,
    step: &CopyStep,
    is_known: bool,
) -> Result<Copied, String> {
    let from = path::join(top, &step.from);
    if let Some((included, _)) = source.covers(&from) {
        return Err(format!("copies from `{included}`, which comes from another source"));
    }
    let is_file = matches!(sources.entry(&from)?, Some(Entry::File { .. }));
    let exclude = step.exclude.iter().map(|text| Some((text.clone(), Ignores::excluding(text)?)));
    let excluded: Option<Vec<_>> = exclude.collect();
    let excluded = excluded.filter(|all| !is_file || all.is_empty()).ok_or(MORE)?;
    let copied = Copied { from, inside: step.from.clone(), excluded };
    let from = &copied.from;
    let nothing = || format!("finds nothing to copy at `{}`", path::shown(from));
    if is_known && (is_file && step.is_contents || !sources.packs(source, from)?) {
        return Err(nothing());
    }
    if is_known && step.is_contents {
        let names = sources.names(from)?;
        let mut places = names.iter().map(|name| path::join(from, name));
        places.find(|path| copied.excludes(path).is_none()).ok_or_else(nothing)?;
    }
    Ok(copied)
}

/// The destination of the copy of a step: `to` may be its new name, or a directory that an earlier step made.
fn destination(
    sources: &FluxSources<'_>,
    step: &CopyStep,
    from: &str,
    placed: &[(String, Copied)],
) -> Result<String, String> {
    let is_made = |(known, copied): &(String, Copied)| -> Result<bool, String> {
        let Some(rest) = path::below(&step.to, known) else { return Ok(path::is_in(known, &step.to)) };
        let path = path::join(&copied.from, rest);
        Ok(sources.entry(&path)? == Some(Entry::Directory) && copied.excludes(&path).is_none())
    };
    let is_file = matches!(sources.entry(from)?, Some(Entry::File { .. }));
    let mut is_into = !is_file || step.is_into || step.to.is_empty();
    for copy in placed.iter().filter(|_| !step.is_contents) {
        is_into |= is_made(copy)?;
    }
    let name = if is_into && !step.is_contents { path::name(&step.from) } else { "" };
    Ok(path::join(&step.to, name))
}

/// A step of `copy`: the path that it copies out of a source, and the destination in the artifact.
struct CopyStep {
    alias: String,
    from: String,
    /// Whether it copies the content of the directory, and not the directory itself.
    is_contents: bool,
    to: String,
    /// Whether `to` can only be a directory.
    is_into: bool,
    exclude: Vec<String>,
}

/// Reads a step that copies a file, or a directory without excluded files; `None` for any other copy, for example of a
/// pattern.
fn step(entry: &models::Copy, captures: &Captures) -> Option<CopyStep> {
    let (written, to) = (fill(entry.from.as_ref()?, captures)?, fill(entry.to.as_ref()?, captures)?);
    let (alias, from) = written.strip_prefix('@')?.split_once('/')?;
    let to = to.strip_prefix("@artifact/")?;
    let contents = if from == "**" { Some(".") } else { from.strip_suffix("/**") };
    let from = contents.unwrap_or(from);
    let path = path::resolve("", from)?;
    // Before a pattern nothing is cleaned.
    let is_clean = contents.is_none() || from == "." || !from.is_empty() && from == path;
    let is_read = is_plain_path(from) && is_plain_path(to) && is_clean && entry.is_overwriting();
    is_read.then_some(CopyStep {
        alias: alias.to_owned(),
        from: path,
        is_contents: contents.is_some(),
        is_into: to.ends_with('/'),
        to: path::resolve("", to)?,
        exclude: entry.exclude.clone(),
    })
}

/// Whether a text is one path, relative and without a pattern.
fn is_plain_path(text: &str) -> bool {
    !text.starts_with('/') && !text.contains(['*', '?', '[', ']', '{', '\\', '$'])
}
