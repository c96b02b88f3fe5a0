//! What an `ArtifactGenerator` copies out of its sources, where that is directories as they lie in this repository.

use std::rc::Rc;

use super::super::Artifact;
use super::super::scan::Document;
use super::source::{Bound, Sources};
use crate::kustomization::Value;
use crate::tree::path;

/// A directory that is copied with all that is in it, from its source and to the artifact.
struct Copy<'a> {
    alias: &'a str,
    from: String,
    to: String,
}

impl<'a> Copy<'a> {
    /// Reads an entry of `copy`; none where it is anything else, as a file or a pattern.
    fn of(entry: &'a Value) -> Option<Self> {
        let text = |key: &str| entry.get(key).and_then(Value::text);
        let (alias, from) = text("from")?.strip_prefix('@')?.split_once('/')?;
        let from = match from {
            "**" => "",
            from => from.strip_suffix("/**")?,
        };
        let to = text("to")?.strip_prefix("@artifact/")?;
        let to = match to {
            "" => "",
            to => to.strip_suffix('/')?,
        };
        let is_plain = |text: &str| !text.contains(['*', '?', '[', '{', '\\', '$']);
        let is_whole = entry.get("exclude").is_none();
        if !is_whole || !is_plain(from) || !is_plain(to) {
            return None;
        }
        let [from, to] = [path::resolve("", from)?, path::resolve("", to)?];
        Some(Copy { alias, from, to })
    }
}

/// Returns what an artifact of a generator holds.
pub(super) fn bound(sources: &Sources, generator: &Document, artifact: &Value) -> Bound {
    let elsewhere = |why: &str| {
        let name = generator.object.full_name();
        Bound::Elsewhere(format!("the ArtifactGenerator `{name}` {why}"))
    };
    let entries = artifact.get("copy").and_then(Value::list);
    let copies = entries.unwrap_or_default().iter().map(Copy::of);
    let Some(copies) = copies.collect::<Option<Vec<Copy<'_>>>>() else {
        return elsewhere("copies more than whole directories");
    };
    let mut all = Vec::new();
    for copy in copies {
        let Some(source) = source(sources, generator, copy.alias) else {
            return elsewhere("names a source that it does not have");
        };
        all.push((copy, source));
    }
    let Some((_, first)) = all.first() else {
        return elsewhere("copies nothing");
    };
    // An artifact has one set of patterns here.
    if !all.iter().all(|(_, source)| source.packs_the_same(first)) {
        let why = format!("the ArtifactGenerator `{}` copies from several sources", generator.object.full_name());
        let is_here = all.iter().any(|(_, source)| matches!(source, Bound::Here { .. }));
        return if is_here { Bound::Templated(why) } else { Bound::Elsewhere(why) };
    }
    let Bound::Here { base: source, revision, artifact } = first else {
        return first.clone();
    };
    let mut base: Option<String> = None;
    let mut copied = Vec::new();
    for (copy, _) in &all {
        let from = path::join(source, &copy.from);
        let above = match copy.to.as_str() {
            "" => Some(from.as_str()),
            to if to == from => Some(""),
            to => from.strip_suffix(to).and_then(|from| from.strip_suffix('/')),
        };
        match above {
            Some(above) if base.get_or_insert_with(|| above.to_owned()) == above => copied.push(format!("{from}/")),
            _ => return elsewhere("arranges its files anew"),
        }
    }
    if copied.iter().any(|directory| directory == "/") {
        copied.clear();
    }
    let artifact = Artifact { copied, ..artifact.as_deref().cloned().unwrap_or_default() };
    Bound::Here { base: base.unwrap_or_default(), revision: revision.clone(), artifact: Some(Rc::new(artifact)) }
}

/// Returns what a generator means by the alias of a source.
fn source(sources: &Sources, generator: &Document, alias: &str) -> Option<Bound> {
    let all = generator.value.at(&["spec", "sources"])?.list()?;
    let text = |one: &'_ Value, key: &str| one.get(key).and_then(Value::text).map(str::to_owned);
    let one = all.iter().find(|one| text(one, "alias").as_deref() == Some(alias))?;
    let [kind, namespace, name] = ["kind", "namespace", "name"].map(|key| text(one, key).unwrap_or_default());
    Some(sources.bind(generator, &kind, &namespace, &name))
}
