//! Flux: `Kustomization` and `FluxInstance`, bound to the sources that they name or that an `ArtifactGenerator` makes.
//! Variables, and what a `ResourceSet` makes, are the cluster's.

mod copied;
mod source;

use super::scan::Document;
use super::unread::{Stop, noted};
use super::{Build, Component, Engine, Found, Here, Identity, Place, Target, Targets, Unread, place};
use crate::kustomization::Data;
use crate::message::failure::Result;
use crate::message::redact;
use crate::record::LoadRestrictor;
use crate::tree::Tree;
use source::{Bound, Sources};

type Read<T> = std::result::Result<T, Stop>;

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
pub(super) fn find(tree: &dyn Tree, identity: &Identity, objects: &[Document], targets: &mut Targets) -> Result<()> {
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
    tree: &dyn Tree,
    identity: &Identity,
    sources: &Sources,
    objects: &[Document],
    unread: &mut Vec<Unread>,
) -> Result<Vec<Target>> {
    let mut made = Vec::new();
    for found in objects {
        made.extend(match found.object.kind.as_str() {
            "Kustomization" => noted(kustomization(tree, sources, found), unread)?,
            "FluxInstance" => noted(instance(tree, identity, found), unread)?,
            "ResourceSet" => {
                let place = Place::Templated("the cluster makes its objects".to_owned());
                Some(found.target(Engine::Flux, (found.object.line, 1), place, Build::default()))
            }
            _ => None,
        });
    }
    Ok(made)
}

/// Returns whether a parent fills in a text after its build.
fn is_variable(text: &str) -> bool {
    text.replace("$${", "").contains("${")
}

/// Returns why a text with a variable is not known.
pub(super) fn unfilled(text: &str) -> String {
    format!("`{}` is filled in by a parent", redact::url(text))
}

fn kustomization(tree: &dyn Tree, sources: &Sources, found: &Document) -> Read<Option<Target>> {
    // Without a source it is a patch for one.
    let Some(reference) = found.value.at(&["spec", "sourceRef"]) else {
        return Ok(None);
    };
    if reference.mapping().is_none() {
        return Err(found.mistyped(reference, &["spec", "sourceRef"], "a mapping").into());
    }
    let word = |key| found.text(reference, &[key]).map(|text| text.map_or("", |(text, _)| text));
    let (kind, namespace, name) = (word("kind")?, word("namespace")?, word("name")?);
    let written = found.text(&found.value, &["spec", "path"])?;
    let (path, spot) = written.unwrap_or(("", (found.object.line, 1)));
    let place = match [path, kind, namespace, name].into_iter().find(|text| is_variable(text)) {
        Some(text) => Place::Templated(unfilled(text)),
        None => from(tree, sources.bind(found, kind, namespace, name), path)?,
    };
    Ok(Some(found.target(Engine::Flux, spot, place, build(found)?)))
}

/// Returns where a path of a source is.
fn from(tree: &dyn Tree, bound: Bound, written: &str) -> Result<Place> {
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

/// Returns how Flux builds an object.
fn build(found: &Document) -> Read<Build> {
    let mut build = Build { load_restrictor: Some(LoadRestrictor::None), ..Build::default() };
    let spec = |key: &str| found.value.at(&["spec", key]);
    build.overrides = OVERRIDES.iter().filter_map(|key| Some(((*key).to_owned(), spec(key)?.json()))).collect();
    build.components = found.texts(&found.value, &["spec", "components"])?.into_iter().map(Component::from).collect();
    build.ignore_missing_components = spec("ignoreMissingComponents").is_some_and(|flag| flag.data == Data::Flag(true));
    Ok(build)
}

/// Returns what a `FluxInstance` bootstraps.
fn instance(tree: &dyn Tree, identity: &Identity, found: &Document) -> Read<Option<Target>> {
    let Some(sync) = found.value.at(&["spec", "sync"]) else {
        return Ok(None);
    };
    for key in ["kind", "name", "url", "ref"] {
        found.text(sync, &[key])?;
    }
    let written = found.text(sync, &["path"])?;
    // Without a URL it is a patch for one.
    let Some((_, _, bound)) = source::of_instance(found, identity) else {
        return Ok(None);
    };
    let (path, spot) = written.unwrap_or(("", (found.object.line, 1)));
    let place = if is_variable(path) { Place::Templated(unfilled(path)) } else { from(tree, bound, path)? };
    let build = Build { load_restrictor: Some(LoadRestrictor::None), ..Build::default() };
    Ok(Some(found.target(Engine::Flux, spot, place, build)))
}
