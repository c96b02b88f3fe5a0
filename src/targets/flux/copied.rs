//! What an `ArtifactGenerator` copies out of its sources, where that lies in the artifact as it lies in this repository.

use std::rc::Rc;

use super::super::Object;
use super::super::scan::Document;
use super::source::{Bound, Sources};
use crate::kustomization::Value;
use crate::tree::{Entry, path};

/// Returns what an artifact of a generator holds, and the objects that say what its sources are.
pub(super) fn bound(sources: &Sources<'_>, generator: &Document, artifact: &Value) -> (Bound, Vec<Object>) {
    let why = |why| format!("the ArtifactGenerator `{}` {why}", generator.object.full_name());
    let mut said_by = Vec::new();
    let bound = match made(sources, generator, artifact, &mut said_by) {
        Ok(Some(bound)) => bound,
        // An artifact has one set of patterns here.
        Ok(None) => Bound::Templated(why("copies from several sources")),
        Err(reason) => Bound::Templated(why(reason)),
    };
    (bound, said_by)
}

/// Returns what it holds; none of several sources. Fails where that is not here as it lies.
fn made(
    sources: &Sources<'_>,
    generator: &Document,
    artifact: &Value,
    said_by: &mut Vec<Object>,
) -> Result<Option<Bound>, &'static str> {
    let mut copies = Vec::new();
    for entry in artifact.get("copy").and_then(Value::list).unwrap_or_default() {
        let Copied { alias, from, to, may_rename } = step(entry).ok_or("copies more than files and directories")?;
        let mut known = generator.value.at(&["spec", "sources"]).and_then(Value::list).unwrap_or_default().iter();
        let source = known.find(|one| one.get("alias").and_then(Value::text) == Some(alias));
        let source = source.ok_or("names a source that it does not have")?;
        let (bound, mut objects) = sources.bind(generator, source);
        said_by.append(&mut objects);
        copies.push((bound, from, to, may_rename));
    }
    let (first, ..) = copies.first().ok_or("copies nothing")?;
    if !copies.iter().all(|(source, ..)| source == first) {
        return Ok(None);
    }
    let Bound::Here { base: top, revision, artifact } = first else { return Ok(Some(first.clone())) };
    let mut artifact = artifact.as_deref().cloned().unwrap_or_default();
    let mut base = None;
    for (_, from, to, may_rename) in &copies {
        let from = path::join(top, from);
        let (names, last): (Vec<&str>, Vec<&str>) = (path::components(&from).collect(), path::components(to).collect());
        let above = names.strip_suffix(&last[..]).map(|above| above.join("/"));
        if above.is_none() || base.as_ref().is_some_and(|base| *base != above) {
            return Err("arranges its files anew");
        }
        base = Some(above);
        let is_file = matches!(sources.tree.entry(&from), Ok(Some(Entry::File { .. })));
        if is_file && *may_rename {
            return Err("copies a file under a name of its own");
        }
        artifact.ignores.copied.push(if is_file { from } else { format!("{from}/") });
    }
    if artifact.ignores.copied.iter().any(|directory| directory == "/") {
        artifact.ignores.copied.clear();
    }
    let base = base.flatten().unwrap_or_default();
    Ok(Some(Bound::Here { base, revision: revision.clone(), artifact: Some(Rc::new(artifact)) }))
}

/// A step of `copy`: what it copies out of a source, and where that is in the artifact.
struct Copied<'a> {
    alias: &'a str,
    from: String,
    to: String,
    /// Whether `to` may be the new name of a file, and not the directory that it goes to.
    may_rename: bool,
}

/// Reads a step that copies a file or a directory with all that is in it; none where it copies anything else, for example
/// what a pattern matches (source-watcher, `internal/builder/builder.go`).
fn step(entry: &Value) -> Option<Copied<'_>> {
    let text = |key: &str| entry.get(key).and_then(Value::text);
    let (alias, from) = text("from")?.strip_prefix('@')?.split_once('/')?;
    let to = text("to")?.strip_prefix("@artifact/")?;
    let is_plain = |text: &str| !text.contains(['*', '?', '[', '{', '\\', '$']);
    let contents = if from == "**" { Some("") } else { from.strip_suffix("/**") };
    let (from, name) = match contents {
        Some(directory) => (directory, ""),
        None => (from, path::name(from.trim_end_matches('/'))),
    };
    let is_odd = entry.get("exclude").is_some() || text("strategy").is_some_and(|strategy| strategy != "Overwrite");
    if is_odd || !is_plain(from) || !is_plain(to) {
        return None;
    }
    let may_rename = contents.is_none() && !to.is_empty() && !to.ends_with('/');
    Some(Copied { alias, from: path::resolve("", from)?, to: path::join(&path::resolve("", to)?, name), may_rename })
}
