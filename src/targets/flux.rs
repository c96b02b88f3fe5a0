//! Flux: `Kustomization`, `FluxInstance` and the `HelmRelease` of a chart in git, bound to the sources that they name or
//! that an `ArtifactGenerator` makes. What a `ResourceSet` makes is the cluster's.

mod copied;
mod edit;
mod path_pattern;
mod release;
mod source;

use super::scan::{self, Document};
use super::{Build, Component, Engine, Found, Here, Identity, Ignores, Place, Target, Targets, place, unfilled};
use crate::kustomization::{Data, Value};
use crate::message::failure::Result;
use crate::record::LoadRestrictor;
use crate::tree::{Tree, path};
pub(super) use edit::edit;
use source::{Bound, Sources};

/// The kinds that name a directory to build, or a chart.
const DEPLOYING: [&str; 4] = ["Kustomization", "FluxInstance", "ResourceSet", scan::RELEASE];

/// Adds what Flux deploys. What bootstrapping made, where no object says what that is, is this repository, unless none of
/// the paths that are deployed from it is here.
pub(super) fn find(tree: &dyn Tree, identity: &Identity, objects: &[Document], targets: &mut Targets) -> Result<()> {
    if !objects.iter().any(|found| DEPLOYING.contains(&&*found.object.kind)) {
        return Ok(());
    }
    let ignores = Ignores::of(tree)?;
    let made = |sources: &Sources<'_>| -> Result<Vec<Target>> {
        let made = objects.iter().filter_map(|found| target(tree, sources, found).transpose());
        made.collect()
    };
    let sources = Sources::of(tree, objects, identity, &ignores, targets, false);
    ignores.check()?;
    let mut all = made(&sources)?;
    if !sources.has_bootstrapped() {
        let assumed = made(&Sources::of(tree, objects, identity, &ignores, targets, true))?;
        let is_here = |(one, other): (&Target, &Target)| {
            one.place != other.place
                && matches!(&one.place, Place::Here(here) if !matches!(here.found, Found::Nothing(_)))
        };
        let is_any_here = assumed.iter().zip(&all).any(is_here);
        for (one, assumed) in all.iter_mut().zip(assumed) {
            let may_be_here = matches!((&one.place, &assumed.place), (Place::External(_), Place::Templated(_)));
            if is_any_here || may_be_here {
                *one = assumed;
            }
        }
    }
    targets.targets.extend(all);
    Ok(())
}

/// Returns what an object deploys; none for one that is a source, or a patch.
fn target(tree: &dyn Tree, sources: &Sources<'_>, found: &Document) -> Result<Option<Target>> {
    let ((bound, said_by), path) = match found.object.kind.as_str() {
        "Kustomization" => {
            // Without a source it is a patch for one.
            let Some(reference) = found.value.at(&["spec", "sourceRef"]) else { return Ok(None) };
            (sources.bind(found, reference), found.value.at(&["spec", "path"]))
        }
        "FluxInstance" => match sources.of_instance(found) {
            Some(bound) => ((bound, Vec::new()), found.value.at(&["spec", "sync", "path"])),
            None => return Ok(None),
        },
        scan::RELEASE => {
            let chart = |key: &str| found.value.at(&["spec", "chart", "spec", key]);
            let Some(reference) = chart("sourceRef") else { return Ok(None) };
            (sources.bind(found, reference), chart("chart"))
        }
        "ResourceSet" => ((Bound::Templated("the cluster generates its objects".to_owned()), Vec::new()), None),
        _ => return Ok(None),
    };
    let written = path.and_then(Value::text).unwrap_or_default();
    let mut build = build(found);
    let place = match bound {
        Bound::Elsewhere(why) => Place::External(why),
        Bound::Unsaid(why) => match path::resolve("", written) {
            Some(place) if !place.is_empty() && tree.entry(&place)?.is_some() => {
                let why = format!("{why}, and `{place}` is in this one");
                build.values.push(place);
                Place::Templated(why)
            }
            _ => Place::External(why),
        },
        Bound::Templated(why) => Place::Templated(why),
        Bound::Here { base, revision, artifact } => match unfilled([written]) {
            Some(why) => Place::Templated(why),
            None => {
                let mut here = place::here(tree, Engine::Flux, &base, written, revision, artifact)?;
                if found.object.kind == scan::RELEASE {
                    here = place::chart(tree, here)?;
                    build.values = release::values_files(found, &base);
                    build.release = Some(release::release(tree, found, &base));
                }
                placed(tree, here, &mut build)?
            }
        },
    };
    let target = found.target(tree, Engine::Flux, found.spot(path), place, build)?;
    Ok(Some(Target { sources: said_by, ..target }))
}

/// Returns where something is that a source has at a place: an include may bring that from elsewhere.
fn placed(tree: &dyn Tree, here: Here, build: &mut Build) -> Result<Place> {
    let artifact = here.artifact.as_ref();
    Ok(match artifact.and_then(|artifact| artifact.covers(&here.path)) {
        Some((included, None)) => Place::External(format!("`{included}` comes from another source")),
        Some((included, Some(from))) => {
            build.values.push(from.clone());
            Place::Templated(format!("`{included}` comes from `{}`", path::shown(from)))
        }
        None => {
            if let (Found::Directory(directory), true) = (&here.found, artifact.is_some_and(|one| one.has_submodules)) {
                build.hold_submodule(tree, &tree.below(directory)?)?;
            }
            Place::Here(here)
        }
    })
}

/// The fields of a `Kustomization` that say how it is built, and not what.
const OVERRIDES: [&str; 9] = [
    "buildMetadata",
    "images",
    "namePrefix",
    "nameSuffix",
    "patches",
    "patchesJson6902",
    "patchesStrategicMerge",
    "postBuild",
    "targetNamespace",
];

/// Returns how Flux builds an object.
fn build(found: &Document) -> Build {
    let mut build = Build { load_restrictor: Some(LoadRestrictor::None), ..Build::default() };
    if found.object.kind == "Kustomization" {
        let spec = |key: &str| found.value.at(&["spec", key]);
        build.overrides = OVERRIDES.iter().filter_map(|key| Some(((*key).to_owned(), spec(key)?.json()))).collect();
        build.components = found.texts(spec("components")).map(Component::from).collect();
        build.ignore_missing_components =
            spec("ignoreMissingComponents").is_some_and(|flag| flag.data == Data::Flag(true));
    }
    build
}
