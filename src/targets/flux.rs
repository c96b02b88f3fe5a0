//! Flux: `Kustomization` and `FluxInstance`, bound to the sources that they name or that an `ArtifactGenerator` makes.
//! Variables, and what a `ResourceSet` makes, are the cluster's.

mod copied;
mod source;

use super::scan::Document;
use super::{Build, Component, Engine, Found, Here, Identity, Place, Target, Targets, Text, Unread, place};
use crate::kustomization::{Data, Value};
use crate::message::failure::Result;
use crate::message::redact;
use crate::record::LoadRestrictor;
use crate::tree::Listing;
use source::{Bound, Sources};

/// The fields of a `Kustomization` that change what is built, as Flux writes them into the kustomization.
const OVERRIDES: [&str; 8] = [
    "targetNamespace",
    "namePrefix",
    "nameSuffix",
    "patches",
    "patchesStrategicMerge",
    "patchesJson6902",
    "images",
    "buildMetadata",
];

/// Adds what Flux deploys. What bootstrapping made, where no object says what that is, is this repository, unless none of
/// the paths that are deployed from it is here.
pub(super) fn find(tree: &dyn Listing, identity: &Identity, objects: &[Document], targets: &mut Targets) -> Result<()> {
    let mut sources = Sources::of(objects, identity, false);
    let mut made = made(tree, identity, &sources, objects, &mut targets.unread)?;
    if !sources.has_bootstrapped() {
        sources = Sources::of(objects, identity, true);
        let assumed = self::made(tree, identity, &sources, objects, &mut Vec::new())?;
        let is_here = |(one, other): (&Target, &Target)| {
            one.place != other.place
                && matches!(&one.place, Place::Here(here) if !matches!(here.found, Found::Nothing(_)))
        };
        if assumed.iter().zip(&made).any(is_here) {
            made = assumed;
        }
    }
    targets.targets.extend(made);
    Ok(())
}

fn made(
    tree: &dyn Listing,
    identity: &Identity,
    sources: &Sources,
    objects: &[Document],
    unread: &mut Vec<Unread>,
) -> Result<Vec<Target>> {
    let mut made = Vec::new();
    for found in objects {
        made.extend(match found.object.kind.as_str() {
            "Kustomization" => kustomization(tree, sources, found, unread)?,
            "FluxInstance" => instance(tree, identity, found, unread)?,
            "ResourceSet" => {
                let place = Place::Templated("the cluster makes its objects".to_owned());
                Some(found.target(Engine::Flux, (found.object.line, 1), place, Build::default()))
            }
            _ => None,
        });
    }
    Ok(made)
}

/// A text with its line and column.
pub(super) type Word<'a> = (&'a str, (usize, usize));

/// Something had the wrong type, and was noted.
pub(super) struct Wrong;

/// Returns a text of an object; an error where there is something else, which is noted.
pub(super) fn text<'a>(
    found: &'a Document,
    value: &'a Value,
    keys: &[&str],
    unread: &mut Vec<Unread>,
) -> std::result::Result<Option<Word<'a>>, Wrong> {
    match given(value, keys) {
        None => Ok(None),
        Some(value) => match value.text() {
            Some(text) => Ok(Some((text, (value.line, value.column)))),
            None => {
                wrong(found, value, keys, "a text", unread);
                Err(Wrong)
            }
        },
    }
}

/// Returns a value that is there: null is as none.
pub(super) fn given<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a Value> {
    value.at(keys).filter(|value| value.data != Data::Null)
}

/// Notes a value of the wrong type.
pub(super) fn wrong(found: &Document, value: &Value, keys: &[&str], expected: &str, unread: &mut Vec<Unread>) {
    let message = format!("`{}` is {} where {expected} should be", keys.join("."), value.kind());
    unread.push(found.wrong(value.line, &message));
}

/// Returns whether a parent fills in a text after its build.
fn is_variable(text: &str) -> bool {
    text.replace("$${", "").contains("${")
}

/// Returns why a text with a variable is not known.
pub(super) fn unfilled(text: &str) -> String {
    format!("`{}` is filled in by a parent", redact::url(text))
}

fn kustomization(
    tree: &dyn Listing,
    sources: &Sources,
    found: &Document,
    unread: &mut Vec<Unread>,
) -> Result<Option<Target>> {
    // Without a source it is a patch for one.
    let Some(reference) = given(&found.value, &["spec", "sourceRef"]) else {
        return Ok(None);
    };
    if reference.mapping().is_none() {
        wrong(found, reference, &["spec", "sourceRef"], "a mapping", unread);
        return Ok(None);
    }
    let Ok(written) = text(found, &found.value, &["spec", "path"], unread) else {
        return Ok(None);
    };
    let Some(build) = build(found, unread) else {
        return Ok(None);
    };
    let names = ["kind", "namespace", "name"].map(|key| text(found, reference, &[key], unread));
    let [Ok(kind), Ok(namespace), Ok(name)] = names else {
        return Ok(None);
    };
    let [kind, namespace, name] = [kind, namespace, name].map(|text| text.map_or("", |(text, _)| text));
    let (path, spot) = written.unwrap_or(("", (found.object.line, 1)));
    let place = match [path, kind, namespace, name].into_iter().find(|text| is_variable(text)) {
        Some(text) => Place::Templated(unfilled(text)),
        None => {
            let bound = sources.bind(found, kind, namespace, name);
            from(tree, bound, path)?
        }
    };
    Ok(Some(found.target(Engine::Flux, spot, place, build)))
}

/// Returns where a path of a source is.
fn from(tree: &dyn Listing, bound: Bound, written: &str) -> Result<Place> {
    let (base, revision, artifact) = match bound {
        Bound::Here { base, revision, artifact } => (base, revision, artifact),
        Bound::Elsewhere(why) => return Ok(Place::External(why)),
        Bound::Templated(why) => return Ok(Place::Templated(why)),
    };
    let (path, found) = place::of_flux(tree, &base, written)?;
    if let Some(artifact) = &artifact
        && let Some(included) = artifact.covers(&path)
    {
        return Ok(Place::External(format!("`{included}` comes from another source")));
    }
    Ok(Place::Here(Here::new(written, (path, found), revision, artifact)))
}

/// Returns how Flux builds an object; none where something of it has the wrong type.
fn build(found: &Document, unread: &mut Vec<Unread>) -> Option<Build> {
    let mut build = Build { load_restrictor: Some(LoadRestrictor::None), ..Build::default() };
    let spec = found.value.get("spec")?;
    for key in OVERRIDES {
        if let Some(value) = spec.get(key) {
            build.overrides.insert(key.to_owned(), value.json());
        }
    }
    build.components = texts(found, &["spec", "components"], unread)?.into_iter().map(Component::from).collect();
    build.ignore_missing_components =
        spec.get("ignoreMissingComponents").is_some_and(|flag| flag.data == Data::Flag(true));
    Some(build)
}

/// Returns a list of texts; none where it is something else, which is noted.
pub(super) fn texts(found: &Document, keys: &[&str], unread: &mut Vec<Unread>) -> Option<Vec<Text>> {
    let Some(value) = given(&found.value, keys) else {
        return Some(Vec::new());
    };
    let items = value.list().map(|items| {
        let items = items.iter().map(|item| found.text_at(item));
        items.collect::<Option<Vec<Text>>>()
    });
    match items {
        Some(Some(items)) => Some(items),
        _ => {
            wrong(found, value, keys, "a list of texts", unread);
            None
        }
    }
}

/// Returns what a `FluxInstance` bootstraps.
fn instance(
    tree: &dyn Listing,
    identity: &Identity,
    found: &Document,
    unread: &mut Vec<Unread>,
) -> Result<Option<Target>> {
    let Some(sync) = found.value.at(&["spec", "sync"]) else {
        return Ok(None);
    };
    let fields = ["kind", "name", "url", "ref", "path"].map(|key| text(found, sync, &[key], unread));
    let [Ok(_), Ok(_), Ok(_), Ok(_), Ok(written)] = fields else {
        return Ok(None);
    };
    // Without a URL it is a patch for one.
    let Some((_, _, bound)) = source::of_instance(found, identity) else {
        return Ok(None);
    };
    let (path, spot) = written.unwrap_or(("", (found.object.line, 1)));
    let place = if is_variable(path) { Place::Templated(unfilled(path)) } else { from(tree, bound, path)? };
    let build = Build { load_restrictor: Some(LoadRestrictor::None), ..Build::default() };
    Ok(Some(found.target(Engine::Flux, spot, place, build)))
}
