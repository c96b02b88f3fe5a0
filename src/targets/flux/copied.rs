//! The artifacts that an `ArtifactGenerator` makes from its sources, if they have the paths of this repository
//! (source-watcher, `internal/builder/builder.go`).

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use super::super::scan::Document;
use super::super::{Artifact, FILE, ObjectRef, unfilled};
use super::models::{self, ARTIFACT, CHART, GENERATOR, GeneratorSpec};
use super::path_pattern::{self, Captures, fill, is_label, is_object_name};
use super::source::{Bound, BoundSource, FluxSources};
use crate::tree::{Entry, path};

/// The reason for a step whose copies are unknown.
const UNKNOWN_COPIES: &str = "copies more than files and directories";

/// The reason for steps after which a path in the artifact is no path of this repository.
const REARRANGES: &str = "rearranges its files";

/// The artifacts of a generator.
#[derive(Default)]
pub(super) struct GeneratedArtifacts {
    /// Each with its name.
    pub(super) artifacts: Vec<(String, BoundSource)>,
    /// Why there may be others; `None` if there are none.
    pub(super) more: Option<String>,
}

/// Finds the artifacts that a generator makes of known sources.
pub(super) fn artifacts_of(sources: &FluxSources<'_>, document: &Document) -> GeneratedArtifacts {
    let read: models::Generator = document.read();
    let generator = ArtifactGenerator { sources, document, spec: &read.spec };
    // The reason names the generator: several may make artifacts of one name.
    let made = why_refused(&read).map_or_else(|| generator.evaluate(), |why| Err(why.to_owned()));
    made.unwrap_or_else(|why| GeneratedArtifacts { more: Some(generator.why(&why)), ..GeneratedArtifacts::default() })
}

/// Why Flux makes no artifacts from a generator; `None` if it does.
fn why_refused(generator: &models::Generator) -> Option<&'static str> {
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
    /// A reason, with the name of the generator.
    fn why(&self, why: &str) -> String {
        format!("the {GENERATOR} `{}` {why}", self.document.object.full_name())
    }

    /// The artifacts that it makes, once for each directory that its `pathPattern` matches. Fails with the reason if
    /// they are unknown.
    fn evaluate(&self) -> Result<GeneratedArtifacts, String> {
        let (sets, defined_by) = self.capture_sets()?;
        // If a `sourceRef` names another artifact than these, no directory of this tree matches for it.
        let more = (!self.spec.path_pattern.is_empty()).then(|| self.why("matches no directory"));
        let (mut made, mut names) = (GeneratedArtifacts { more, ..GeneratedArtifacts::default() }, HashSet::new());
        for captures in &sets {
            // The values become labels of the artifact, and parts of its name.
            let lower = path_pattern::lower(captures);
            if let Some((_, value)) = lower.iter().find(|(_, value)| !is_label(value)) {
                return Err(format!("matches `{value}`, which is not a valid label value"));
            }
            for artifact in &self.spec.artifacts {
                let written = artifact.name.as_str();
                if let Some(why) = unfilled([written]) {
                    made.more = Some(why);
                    continue;
                }
                // One wrong name stops the generator before it makes any.
                let name = fill(written, &lower).filter(|name| is_object_name(name));
                let name = name.ok_or_else(|| format!("generates the invalid name `{written}`"))?;
                if !names.insert(name.clone()) {
                    return Err(format!("generates `{name}` twice"));
                }
                let mut defined_by = defined_by.clone();
                let bound = self.bind_copies(artifact, captures, &mut defined_by);
                let bound = bound.unwrap_or_else(|why| Bound::Templated(self.why(&why)));
                made.artifacts.push((name, BoundSource { bound, defined_by }));
            }
        }
        Ok(made)
    }

    /// The values of the names in its `pathPattern`, one set for each directory that matches, and the objects that
    /// define the source with these directories. Fails with the reason if they are unknown.
    fn capture_sets(&self) -> Result<(Vec<Captures>, Vec<ObjectRef>), String> {
        let text = self.spec.path_pattern.as_str();
        if text.is_empty() {
            // Without a pattern there is one set.
            return Ok((vec![Captures::new()], Vec::new()));
        }
        let parts = text.strip_prefix('@').filter(|_| unfilled([text]).is_none()).and_then(|text| text.split_once('/'));
        let (alias, pattern) = parts.ok_or("has a `pathPattern` that cannot be read here")?;
        let BoundSource { bound, defined_by } = self.source(alias)?;
        let matches = path_pattern::matches(self.sources, &bound, pattern)?;
        self.sources.spend(matches.len().saturating_mul(self.spec.artifacts.len()).saturating_mul(FILE))?;
        Ok((matches, defined_by))
    }

    /// The source with an alias. Fails for an unknown alias, and for a source that is itself generated.
    fn source(&self, alias: &str) -> Result<BoundSource, String> {
        let source =
            self.spec.sources.iter().find(|source| source.alias == alias).ok_or("references an unknown source")?;
        // Artifacts are known only after all generators are evaluated, and objects of charts are not read.
        if [ARTIFACT, CHART].contains(&&*source.kind) {
            return Err("copies from a generated source".to_owned());
        }
        Ok(self.sources.bind(self.document, source))
    }

    /// The source whose files an artifact has, with only those that its steps copy. Adds the objects that define its
    /// sources.
    fn bind_copies(
        &self,
        artifact: &models::Output,
        captures: &Captures,
        defined_by: &mut Vec<ObjectRef>,
    ) -> Result<Bound, String> {
        let mut copies = Vec::new();
        for entry in &artifact.copy {
            let step = CopyStep::parse(entry, captures).ok_or(UNKNOWN_COPIES)?;
            let source = self.source(&step.alias)?;
            defined_by.extend(source.defined_by);
            copies.push((source.bound, step));
        }
        combine(self.sources, &copies)
    }
}

/// The content that steps copy together, each from its source. Fails unless it is a part of one source in which all
/// files keep their paths, below one directory: only then a path in the artifact is a path of this repository.
fn combine(sources: &FluxSources<'_>, copies: &[(Bound, CopyStep)]) -> Result<Bound, String> {
    let (first, _) = copies.first().ok_or("copies nothing")?;
    if copies.iter().any(|(source, _)| source != first) {
        return Err("copies from several sources".to_owned());
    }
    // Copies of a source elsewhere are elsewhere, too.
    let Bound::Local { base: top, revision, artifact } = first else { return Ok(first.clone()) };
    // A localized branch, or another revision, may contain more files than the tree.
    let is_known = revision.is_this && !revision.is_localized();
    // A path of the artifact is looked for in this repository, so every step must lead to the same top.
    let (mut tops, mut copied) = (BTreeSet::new(), Vec::new());
    for (_, step) in copies {
        let from = path::join(top, &step.from);
        if let Some(included) = artifact.covers(&from) {
            return Err(format!("copies from `{included}`, which comes from another source"));
        }
        let entry = sources.entry(&from)?;
        let is_file = matches!(entry, Some(Entry::File { .. }));
        if is_known && (entry.is_none() || is_file && step.is_contents) {
            return Err(format!("finds nothing to copy at `{}`", path::shown(&from)));
        }
        tops.insert(step.top(&from, is_file).ok_or(REARRANGES)?);
        copied.push(from);
    }
    if tops.len() > 1 {
        return Err(REARRANGES.to_owned());
    }
    let artifact = Artifact { ignores: artifact.ignores.for_copies(copied), ..artifact.as_ref().clone() };
    let base = tops.pop_first().unwrap_or_default();
    Ok(Bound::Local { base, revision: revision.clone(), artifact: Rc::new(artifact) })
}

/// A step of `copy`: the path that it copies out of a source, and the destination in the artifact.
struct CopyStep {
    alias: String,
    from: String,
    /// Whether it copies the content of the directory, and not the directory itself.
    is_contents: bool,
    to: String,
    /// Whether `to` is a directory.
    is_into: bool,
}

impl CopyStep {
    /// Reads a step that copies a file, or a whole directory; `None` for any other copy, for example of a pattern.
    fn parse(entry: &models::Copy, captures: &Captures) -> Option<CopyStep> {
        let (written, to) = (fill(entry.from.as_ref()?, captures)?, fill(entry.to.as_ref()?, captures)?);
        let (alias, from) = written.strip_prefix('@')?.split_once('/')?;
        let to = to.strip_prefix("@artifact/")?;
        // `DIRECTORY/**` copies the content of a directory.
        let contents = if from == "**" { Some(".") } else { from.strip_suffix("/**") };
        let from = contents.unwrap_or(from);
        let path = path::resolve("", from)?;
        // Flux does not clean the path before a pattern.
        let is_clean = contents.is_none() || from == "." || !from.is_empty() && from == path;
        let is_whole = entry.exclude.is_empty() && entry.is_overwriting();
        let is_read = is_plain_path(from) && is_plain_path(to) && is_clean && is_whole;
        is_read.then_some(CopyStep {
            alias: alias.to_owned(),
            from: path,
            is_contents: contents.is_some(),
            is_into: to.is_empty() || to.ends_with('/'),
            to: path::resolve("", to)?,
        })
    }

    /// The directory that is the top of the artifact, if the step copies the file or directory `from` of the
    /// repository: the end of that path must be the path in the artifact. `None` if it is not.
    fn top(&self, from: &str, is_file: bool) -> Option<String> {
        // A directory keeps its name, and so does a file that is copied into a directory.
        let keeps_name = !self.is_contents && (!is_file || self.is_into);
        let to = path::join(&self.to, if keeps_name { path::name(&self.from) } else { "" });
        let names: Vec<&str> = path::components(from).collect();
        names.strip_suffix(&path::components(&to).collect::<Vec<_>>()[..]).map(|rest| rest.join("/"))
    }
}

/// Whether a text is one path, relative and without a pattern.
fn is_plain_path(text: &str) -> bool {
    !text.starts_with('/') && !text.contains(['*', '?', '[', ']', '{', '\\', '$'])
}
