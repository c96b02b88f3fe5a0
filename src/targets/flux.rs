//! Flux: `Kustomization`, `FluxInstance` and the `HelmRelease` of a chart in git, bound to the sources that they name
//! or that an `ArtifactGenerator` makes. The objects of a `ResourceSet` are known only in the cluster.

mod copied;
mod edit;
pub(super) mod ignore;
mod models;
mod path_pattern;
mod release;
mod source;
mod substitution;
pub(crate) mod variables;

use serde_json::{Map, Value as Json};

use super::argo::PlainDirectory;
use super::engine::Engine;
use super::engine_versions::Workload;
use super::scan::{Document, ScannedKind, Spec};
use super::{
    BuildSettings, EngineName, Identity, PathContent, Target, TargetDir, TargetLocation, Targets, target_dir, unfilled,
};
use crate::kustomization::{Located, Scalar, Value};
use crate::message::failure::Result;
use crate::record::LoadRestrictor;
use crate::tree::{self, Tree, path};
use ignore::Ignores;
pub(super) use models::{Fate, KUSTOMIZATION, RELEASE};
use models::{INSTANCE, Instance, Kustomization, Overrides, RESOURCE_SET, Release};
use source::{Bootstrapped, Bound, BoundSource, FluxSources};
use variables::Variables;

/// Flux's kustomize-controller and helm-controller.
pub(super) struct Flux;

impl Engine for Flux {
    fn kinds(&self) -> &'static [ScannedKind] {
        models::KINDS
    }

    fn deploys(&self, kind: &str) -> bool {
        DEPLOYING.contains(&kind)
    }

    fn find(&self, tree: &dyn Tree, identity: &Identity, objects: &[Document], targets: &mut Targets) -> Result<()> {
        // Sources alone deploy nothing, and most trees have no object of Flux.
        if !objects.iter().any(|document| self.deploys(&document.object.kind)) {
            return Ok(());
        }
        // Patterns are read once, since many sources share them.
        let ignores = Ignores::of(tree)?;
        let targets_of = |sources: &FluxSources<'_>| -> Result<Vec<Target>> {
            let targets = objects.iter().filter_map(|document| target(tree, sources, document).transpose());
            targets.collect()
        };
        let sources = FluxSources::of(tree, objects, identity, &ignores, targets, Bootstrapped::Unknown);
        // The patterns of all sources are known only now.
        ignores.check()?;
        let mut bound = targets_of(&sources)?;
        // `flux bootstrap` need not leave its source in the tree, so this repository is tried for it.
        if !sources.has_bootstrapped() {
            let sources = FluxSources::of(tree, objects, identity, &ignores, targets, Bootstrapped::ThisRepository);
            assume_bootstrapped(&mut bound, targets_of(&sources)?);
        }
        targets.targets.extend(bound);
        Ok(())
    }

    fn installers(&self) -> &'static [&'static str] {
        &[CONTROLLER, INSTANCE]
    }

    fn installed(&self, object: &Value, workload: &Workload) -> Option<String> {
        if workload.kind == INSTANCE {
            let spec: Spec<Instance> = object.read().ok()?;
            return Scalar::given(spec.spec.distribution.version.as_ref()).map(str::to_owned);
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
        Some(path::join(
            base,
            &path::components(written)
                .fold(String::new(), |above: String, name: &str| path::resolve(&above, name).unwrap_or_default()),
        ))
    }

    fn classify(&self, tree: &dyn Tree, directory: String) -> Result<PathContent> {
        // Links are not in an artifact.
        let is_root = tree::kustomization_in(tree, &directory)?
            .is_some_and(|(name, file): (&str, String)| file == path::join(&directory, name));
        Ok(if is_root { PathContent::Kustomization(directory) } else { PathContent::Directory(directory) })
    }

    fn load_restrictor(&self, _: Option<&[String]>) -> Option<LoadRestrictor> {
        Some(LoadRestrictor::None)
    }

    fn edit(&self, kustomization: &mut Map<String, Json>, build: &BuildSettings, is_root: bool) {
        edit::edit(kustomization, build, is_root);
    }

    fn arguments(&self) -> &'static [&'static str] {
        &["--reorder=none"]
    }

    fn applies(&self, dir: &TargetDir, _: &PlainDirectory, file: &str) -> bool {
        matches!(dir.content, PathContent::Directory(_)) && dir.scanned.iter().any(|resource| resource.path == file)
    }
}

/// Replaces targets by those of the guess that the source of bootstrapping is this repository, unless none of their
/// paths exists here. Only targets of that source differ, so that one existing path tells for all of them.
fn assume_bootstrapped(targets: &mut [Target], guesses: Vec<Target>) {
    let is_right = targets.iter().zip(&guesses).any(|(target, guess)| {
        target.location != guess.location && matches!(&guess.location, TargetLocation::Local(dir) if !dir.is_missing())
    });
    for (target, guess) in targets.iter_mut().zip(guesses) {
        // A path that only the cluster knows tells nothing, and may be here.
        let may_be_here =
            matches!((&target.location, &guess.location), (TargetLocation::External(_), TargetLocation::Templated(_)));
        if is_right || may_be_here {
            *target = guess;
        }
    }
}

/// The controller that builds for Flux.
const CONTROLLER: &str = "kustomize-controller";

/// The kinds that name a directory to build, or a chart.
const DEPLOYING: [&str; 4] = [KUSTOMIZATION, INSTANCE, RESOURCE_SET, RELEASE];

/// The fields of an object that define its target.
struct TargetFields {
    source: BoundSource,
    path: Option<Located<String>>,
    build: BuildSettings,
    release: Option<Release>,
}

impl TargetFields {
    /// Reads an object; `None` for one that is a source, or a patch.
    fn of(sources: &FluxSources<'_>, document: &Document) -> Option<TargetFields> {
        // Flux builds without the load restrictor, whatever the configuration says.
        let mut build = BuildSettings { load_restrictor: Some(LoadRestrictor::None), ..BuildSettings::default() };
        let mut release = None;
        let (source, path) = match document.object.kind.as_str() {
            KUSTOMIZATION => {
                // A patch has no source, and is not a target itself.
                let mut spec: Kustomization = document.spec();
                let (source, path) = (sources.bind(document, &spec.source_ref.take()?), spec.path.take());
                build = self::build(document, spec);
                (source, path)
            }
            INSTANCE => {
                let Instance { sync, .. } = document.spec();
                (sources.of_instance(&sync)?.into(), sync.path)
            }
            RELEASE => {
                let spec = release.insert(document.spec::<Release>());
                (sources.bind(document, &spec.chart.spec.source_ref), spec.chart.spec.chart.take())
            }
            RESOURCE_SET => (Bound::Templated("the cluster generates its objects".to_owned()).into(), None),
            _ => return None,
        };
        Some(TargetFields { source, path, build, release })
    }
}

/// The target of an object; `None` for a source, or a patch.
fn target(tree: &dyn Tree, sources: &FluxSources<'_>, document: &Document) -> Result<Option<Target>> {
    let Some(TargetFields { source, path, mut build, release }) = TargetFields::of(sources, document) else {
        return Ok(None);
    };
    let spot = path.as_ref().map_or_else(|| document.spot(), Located::start);
    let written = path.as_ref().map_or("", |path| &*path.value);
    // A path can only be looked at if its source is this repository; otherwise the reason is kept.
    let location = match source.bound {
        Bound::Elsewhere(why) => TargetLocation::External(why),
        Bound::MaybeLocal(why) => match path::resolve("", written) {
            // The source may be made of this repository, which has the path: then changes below it count.
            Some(path) if !path.is_empty() && tree.entry(&path)?.is_some() => {
                let why = format!("{why}, and `{path}` is in this one");
                build.more_inputs.push(path);
                TargetLocation::Templated(why)
            }
            _ => TargetLocation::External(why),
        },
        Bound::Templated(why) => TargetLocation::Templated(why),
        Bound::Local { base, revision, artifact } => match unfilled([written]) {
            Some(why) => TargetLocation::Templated(why),
            None => {
                let artifact = Some(artifact);
                let mut dir = target_dir::inspect_path(tree, EngineName::Flux, &base, written, revision, artifact)?;
                if let Some(release) = &release {
                    dir = target_dir::as_chart(tree, dir)?;
                    build.more_inputs = release::values_files(release, &base);
                    build.release = Some(release::release(tree, &document.object, release, &base));
                }
                locate(tree, dir, &mut build)?
            }
        },
    };
    let target = document.target(tree, EngineName::Flux, spot, location, build)?;
    Ok(Some(Target { sources: source.defined_by, ..target }))
}

/// The location of a directory that was found in this repository; templated if an include of the source puts another
/// one there. Notes in the `build` which other paths may change it.
fn locate(tree: &dyn Tree, dir: TargetDir, build: &mut BuildSettings) -> Result<TargetLocation> {
    if let Some(artifact) = &dir.artifact {
        if let Some(included) = artifact.covers(&dir.path) {
            // The other source may be any part of this repository, so every change counts: an empty path is the whole
            // tree.
            build.more_inputs.push(String::new());
            return Ok(TargetLocation::Templated(format!("`{included}` comes from another source")));
        }
        if let PathContent::Directory(directory) = &dir.content
            && artifact.has_submodules
        {
            build.note_submodules(tree, &tree.below(directory)?)?;
        }
    }
    Ok(TargetLocation::Local(dir))
}

/// The build of a `Kustomization` by Flux.
fn build(document: &Document, spec: Kustomization) -> BuildSettings {
    BuildSettings {
        load_restrictor: Some(LoadRestrictor::None),
        overrides: document.spec::<Overrides>().named(),
        components: spec.components.into_iter().map(|component| document.text(component).into()).collect(),
        ignore_missing_components: spec.ignore_missing_components,
        variables: Variables::of(&spec.post_build),
        ..BuildSettings::default()
    }
}
