//! Flux: `Kustomization`, `FluxInstance` and the `HelmRelease` of a chart in git, bound to the sources that they name or
//! that an `ArtifactGenerator` makes. What a `ResourceSet` makes is the cluster's.

mod copied;
mod edit;
pub(super) mod ignore;
mod models;
mod path_pattern;
mod release;
mod source;
pub(crate) mod variables;

use serde_json::{Map, Value as Json};

use super::engine::Engine;
use super::installed::Workload;
use super::scan::{Document, Kind, Spec};
use super::{
    Build, Component, Directory, EngineName, Found, Here, Identity, Object, Place, Target, Targets, place, unfilled,
};
use crate::kustomization::{Placed, Value};
use crate::message::failure::Result;
use crate::message::position::Position;
use crate::record::LoadRestrictor;
use crate::tree::{self, Tree, path};
use ignore::Ignores;
pub(super) use models::RELEASE;
use models::{INSTANCE, Instance, KUSTOMIZATION, Kustomization, Overrides, RESOURCE_SET, Release};
use source::{Bound, Sources};
use variables::Variables;

/// Flux's kustomize-controller and helm-controller.
pub(super) struct Flux;

impl Engine for Flux {
    fn kinds(&self) -> &'static [Kind] {
        models::KINDS
    }

    fn find(&self, tree: &dyn Tree, identity: &Identity, objects: &[Document], targets: &mut Targets) -> Result<()> {
        find(tree, identity, objects, targets)
    }

    fn installers(&self) -> &'static [&'static str] {
        &[CONTROLLER, INSTANCE]
    }

    fn installed(&self, object: &Value, workload: &Workload) -> Option<String> {
        if workload.kind == INSTANCE {
            let said: Spec<Instance> = object.read().ok()?;
            return said.spec.distribution.version.map(|version| version.0).filter(|version| !version.is_empty());
        }
        let own =
            Some(workload).filter(|workload| workload.is_deployment() && workload.metadata.name.0 == CONTROLLER)?;
        own.version().or_else(|| Some(format!("{CONTROLLER} {}", own.tag(CONTROLLER)?)))
    }

    fn has_objects(&self) -> bool {
        true
    }

    fn leads_to_no_root(&self, kind: &str) -> bool {
        kind == RELEASE
    }

    fn packs(&self) -> bool {
        true
    }

    fn generates(&self) -> bool {
        true
    }

    fn runs_plugins(&self) -> bool {
        false
    }

    fn resolve(&self, base: &str, written: &str) -> Option<String> {
        // Nothing leads above the top of an artifact.
        let step = |above: String, name: &str| path::resolve(&above, name).unwrap_or_default();
        Some(path::join(base, &path::components(written).fold(String::new(), step)))
    }

    fn found(&self, tree: &dyn Tree, directory: String) -> Result<Found> {
        // Links are not in an artifact.
        let is_file = |(name, file): (&str, String)| file == path::join(&directory, name);
        let is_root = tree::kustomization_in(tree, &directory)?.is_some_and(is_file);
        Ok(if is_root { Found::Kustomization(directory) } else { Found::Directory(directory) })
    }

    fn load_restrictor(&self, _: Option<&[String]>) -> Option<LoadRestrictor> {
        Some(LoadRestrictor::None)
    }

    fn edit(&self, kustomization: &mut Map<String, Json>, build: &Build, is_root: bool) {
        edit::edit(kustomization, build, is_root);
    }

    fn arguments(&self) -> &'static [&'static str] {
        &["--reorder=none"]
    }

    fn applies(&self, here: &Here, _: &Directory, file: &str) -> bool {
        matches!(here.found, Found::Directory(_)) && here.scanned.iter().any(|one| one.path == file)
    }
}

/// What builds for Flux.
const CONTROLLER: &str = "kustomize-controller";

/// The kinds that name a directory to build, or a chart.
const DEPLOYING: [&str; 4] = [KUSTOMIZATION, INSTANCE, RESOURCE_SET, RELEASE];

/// Adds what Flux deploys. What bootstrapping made, where no object says what that is, is this repository, unless none of
/// the paths that are deployed from it is here.
fn find(tree: &dyn Tree, identity: &Identity, objects: &[Document], targets: &mut Targets) -> Result<()> {
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

/// What an object says of what it deploys.
struct Said {
    bound: Bound,
    /// The objects that say so.
    by: Vec<Object>,
    path: String,
    /// Where that is written, or else the object.
    spot: Position,
    build: Build,
    release: Option<Release>,
}

impl Said {
    fn new(found: &Document, (bound, by): (Bound, Vec<Object>), path: Option<Placed<String>>) -> Said {
        let build = Build { load_restrictor: Some(LoadRestrictor::None), ..Build::default() };
        let spot = path.as_ref().map_or_else(|| found.spot(), Placed::start);
        let path = path.map(|path| path.value).unwrap_or_default();
        Said { bound, by, path, spot, build, release: None }
    }

    /// Reads an object; `None` for one that is a source, or a patch.
    fn of(sources: &Sources<'_>, found: &Document) -> Option<Said> {
        Some(match found.object.kind.as_str() {
            KUSTOMIZATION => {
                let mut said: Kustomization = found.spec();
                let bound = sources.bind(found, &said.source_ref.take()?);
                let path = said.path.take();
                Said { build: build(found, said), ..Said::new(found, bound, path) }
            }
            INSTANCE => {
                let Instance { sync, .. } = found.spec();
                Said::new(found, (sources.of_instance(&sync)?, Vec::new()), sync.path)
            }
            RELEASE => {
                let mut said: Release = found.spec();
                let bound = sources.bind(found, &said.chart.spec.source_ref);
                let path = said.chart.spec.chart.take();
                Said { release: Some(said), ..Said::new(found, bound, path) }
            }
            RESOURCE_SET => {
                let bound = Bound::Templated("the cluster generates its objects".to_owned());
                Said::new(found, (bound, Vec::new()), None)
            }
            _ => return None,
        })
    }
}

/// Returns what an object deploys; `None` for one that is a source, or a patch.
fn target(tree: &dyn Tree, sources: &Sources<'_>, found: &Document) -> Result<Option<Target>> {
    let Some(Said { bound, by, path, spot, mut build, release }) = Said::of(sources, found) else { return Ok(None) };
    let written = path.as_str();
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
                let mut here = place::here(tree, EngineName::Flux, &base, written, revision, artifact)?;
                if let Some(release) = &release {
                    here = place::chart(tree, here)?;
                    build.values = release::values_files(release, &base);
                    build.release = Some(release::release(tree, &found.object, release, &base));
                }
                placed(tree, here, &mut build)?
            }
        },
    };
    let target = found.target(tree, EngineName::Flux, spot, place, build)?;
    Ok(Some(Target { sources: by, ..target }))
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

/// Returns how Flux builds a `Kustomization`.
fn build(found: &Document, said: Kustomization) -> Build {
    Build {
        load_restrictor: Some(LoadRestrictor::None),
        overrides: found.spec::<Overrides>().named(),
        components: said.components.into_iter().map(|one| Component::from(found.text(one))).collect(),
        ignore_missing_components: said.ignore_missing_components,
        variables: Variables::of(&said.post_build),
        ..Build::default()
    }
}
