//! Argo CD: `Application`, the applications that an `ApplicationSet` makes, and how they are built.

mod application_set;
mod edit;
mod environment;
mod generator;
mod models;
mod pattern;
pub(crate) mod plain;
mod release;
mod template;
pub(super) mod watched;

use std::cell::OnceCell;

use serde_json::{Map, Value as Json};

use super::engine::Engine;
use super::engine_versions::Workload;
use super::generated::{append, list};
use super::scan::{Document, ScannedKind};
use super::{
    BuildSettings, EngineName, Identity, ObjectRef, PathContent, Revision, Target, TargetDir, TargetLocation, Targets,
    Unread, Why, target_dir, unfilled,
};
use crate::config::Config;
use crate::kustomization::{Data, FileDocument, ObjectError, Value, read_object};
use crate::message::failure::Result;
use crate::message::position::Position;
use crate::message::redact;
use crate::record::LoadRestrictor;
use crate::tree::{self, Entry, Resolved, Tree, path};

use environment::Environment;
pub(super) use models::{APPLICATION, FINALIZER, Fate, Pattern, PlainDirectory, SET};
use models::{DIRECTORY, HELM, KUSTOMIZE, Options, PLUGIN, Source, Written, is_respelled, sources};
use pattern::crossing;
pub(super) use pattern::{glob, in_go, matcher};
use release::{PATTERN, SourceDir};

/// The beginning of the names of files that change a source of an application beside them.
const OVERRIDES: &str = ".argocd-source";

/// The name of such a file for every application.
const OVERRIDE: &str = ".argocd-source.yaml";

/// How the names of files end of which Argo CD generates objects.
const JSONNET: &str = ".jsonnet";

/// The option of `kustomize build` that lets a root load any file, as people write it.
const ANY_FILE: &str = "LoadRestrictionsNone";

/// Argo CD's repo-server.
pub(super) struct ArgoCd;

impl Engine for ArgoCd {
    fn kinds(&self) -> &'static [ScannedKind] {
        models::KINDS
    }

    fn deploys(&self, kind: &str) -> bool {
        kind == APPLICATION
    }

    fn has_options(&self, kind: &str) -> bool {
        models::has_options(kind)
    }

    fn find(&self, tree: &dyn Tree, identity: &Identity, objects: &[Document], targets: &mut Targets) -> Result<()> {
        let options = options(objects);
        let argo = Argo { tree, identity, options, files: OnceCell::new(), directories: OnceCell::new() };
        targets.argo_options.clone_from(&argo.options);
        let mut applications = Vec::new();
        for document in objects {
            match document.object.kind.as_str() {
                APPLICATION => applications.push(Application {
                    document: document.clone(),
                    why_unknown: None,
                    is_open: false,
                    has_templates: document.is_template,
                }),
                SET => application_set::expand(&argo, document, &mut applications, targets)?,
                _ => {}
            }
        }
        for application in &applications {
            let mut sources = sources(&application.document.value);
            // A template that is filled in elsewhere may still get a source.
            if application.is_open && sources.is_empty() {
                sources.push(application.document.value.with(Data::Mapping(Vec::new())));
            }
            for source in sources {
                targets.targets.extend(argo.target_of_source(application, &source, &mut targets.unread)?);
            }
        }
        Ok(())
    }

    fn installers(&self) -> &'static [&'static str] {
        &[SERVER]
    }

    fn installed(&self, _: &Value, workload: &Workload) -> Option<String> {
        // A Helm release puts its name before it.
        let is_it = workload.is_deployment() && workload.metadata.name.0.ends_with(SERVER);
        Some(workload).filter(|_| is_it)?.version().or_else(|| workload.tag("argocd"))
    }

    fn has_objects(&self) -> bool {
        true
    }

    fn gives_lookup(&self) -> bool {
        // It runs `helm template`.
        false
    }

    fn refuses_links(&self) -> bool {
        true
    }

    fn takes_patterns(&self) -> bool {
        true
    }

    fn classify(&self, tree: &dyn Tree, directory: String) -> Result<PathContent> {
        if tree::kustomization_in(tree, &directory)?.is_some() {
            return Ok(PathContent::Kustomization(directory));
        }
        let chart = tree::resolve(tree, &path::join(&directory, "Chart.yaml"))?;
        let is_chart = matches!(chart, Resolved::File { .. });
        Ok(if is_chart { PathContent::Chart(directory) } else { PathContent::Directory(directory) })
    }

    fn load_restrictor(&self, options: Option<&[String]>) -> Option<LoadRestrictor> {
        restrictor(options)
    }

    fn runs_edits(&self) -> bool {
        true
    }

    fn edit(&self, kustomization: &mut Map<String, Json>, build: &BuildSettings, _: bool) {
        append(kustomization, "patches", list(build, "patches").to_vec());
    }

    fn override_paths(&self, dir: &TargetDir, name: &str) -> Vec<String> {
        override_files(&dir.path, name)
    }

    fn applies(&self, dir: &TargetDir, options: &PlainDirectory, file: &str) -> bool {
        matches!(&dir.content, PathContent::Directory(directory) if plain::manifest_matcher(directory, options)(file))
    }
}

/// The container that builds for Argo CD.
const SERVER: &str = "argocd-repo-server";

/// The context of a build by Argo CD.
struct Argo<'a> {
    tree: &'a dyn Tree,
    identity: &'a Identity,
    options: Option<Vec<String>>,
    /// Every file of the tree, once a set asks for them.
    files: OnceCell<Vec<String>>,
    /// Every directory.
    directories: OnceCell<Vec<String>>,
}

/// An application, as its object or a set makes it.
struct Application {
    document: Document,
    /// Why something of it is not known.
    why_unknown: Option<String>,
    /// Whether that may be anything.
    is_open: bool,
    /// Whether an expression that is left in it is evaluated elsewhere; otherwise such a text means itself.
    has_templates: bool,
}

/// Why a source is unknown although its path is known: an expression that only something else evaluates is left in a
/// field of it, such as a prefix or a value. `None` if none is.
fn unevaluated(application: &Application, written: &Value) -> Option<String> {
    if !application.has_templates {
        return None;
    }
    let mut left = None;
    written.map_texts(&mut |text| {
        if let (None, Some((_, rest))) = (&left, text.split_once("{{")) {
            left = Some(format!("{{{{{}}}}}", rest.split("}}").next().unwrap_or_default()));
        }
        text.to_owned()
    });
    unfilled([&*left?])
}

/// Adds an application for each override file with components or patches that no application of this tree adds: one of
/// another repository may read it.
pub(super) fn find_unclaimed_overrides(tree: &dyn Tree, config: &Config, targets: &mut Targets) -> Result<()> {
    for file in tree.files_named(&is_override)? {
        let directory = path::parent(&file);
        if config.leaves_out(directory) {
            continue;
        }
        let Some(value) = read_override(tree, &file, &mut targets.unread)? else { continue };
        let name = path::name(&file).trim_start_matches(OVERRIDES).trim_end_matches(".yaml").trim_start_matches('-');
        let name = if name.is_empty() { "any" } else { name }.to_owned();
        let object = ObjectRef::of(&file, value.start.line, APPLICATION, name);
        let document = Document { object, value, home: directory.to_owned(), is_template: false, written: None };
        // Nobody builds it here, so the options of `kustomize build` do not matter.
        let build = build(None, &document, &document.value, &document.value.read().unwrap_or_default());
        // Only a component or a patch can reach out of the tree, so that the other overrides need no target.
        let added = build.added();
        if !added.is_empty() && !targets.targets.iter().any(|target| added.is_subset(&target.build.added())) {
            let location = TargetLocation::External("no application that is known here reads it".to_owned());
            targets.targets.push(document.target(tree, EngineName::ArgoCd, document.spot(), location, build)?);
        }
    }
    Ok(())
}

/// The options of `kustomize build` that the tree gives Argo CD; `None` if nothing in it says them.
fn options(objects: &[Document]) -> Option<Vec<String>> {
    let mut options: Option<Vec<String>> = None;
    for document in objects.iter().filter(|document| document.has_options()) {
        options.get_or_insert_default().extend(document.read::<Options>().words());
    }
    options
}

/// The files that Argo CD lets a root load; `None` if the tree does not say it.
fn restrictor(options: Option<&[String]>) -> Option<LoadRestrictor> {
    let is_none = options?.iter().any(|option| option.ends_with(ANY_FILE));
    Some(if is_none { LoadRestrictor::None } else { LoadRestrictor::RootOnly })
}

impl Argo<'_> {
    /// Every file of the tree.
    fn files(&self) -> Result<&[String]> {
        if self.files.get().is_none() {
            self.files.set(self.tree.below("")?).ok();
        }
        Ok(self.files.get().map(Vec::as_slice).unwrap_or_default())
    }

    /// Every directory of the tree.
    fn directories(&self) -> Result<&[String]> {
        let files = self.files()?.iter().map(String::as_str);
        Ok(self.directories.get_or_init(|| path::directories(files).into_iter().map(str::to_owned).collect()))
    }

    /// The target of one source of an application. `None` for a source that deploys nothing: without a repository, with
    /// only values for others, or with an error, which is added to `unread`.
    fn target_of_source(
        &self,
        application: &Application,
        written: &Value,
        unread: &mut Vec<Unread>,
    ) -> Result<Option<Target>> {
        let document = &application.document;
        let source: Source = match written.read() {
            Ok(source) => source,
            Err(wrong) => {
                unread.push(document.mistyped(&wrong));
                return Ok(None);
            }
        };
        let elsewhere = |location: TargetLocation, more_inputs| {
            let build = BuildSettings { more_inputs, ..build(self.options.as_deref(), document, written, &source) };
            document.target(self.tree, EngineName::ArgoCd, source.spot(written), location, build).map(Some)
        };
        // A chart of a repository has no path. A source with neither is complete if it has a `ref` (its `name`), by
        // which other sources find values; any other may get a path from a patch.
        let path = source.path.as_ref().map(|path| path.value.as_str()).or(source.chart.as_ref().map(|_| ""));
        let lacks_path = path.is_none() && source.name.is_none();
        // The unknown part of the template may add what this source lacks.
        if application.is_open
            && (lacks_path || source.repo_url.is_none())
            && let Some(why) = &application.why_unknown
        {
            return elsewhere(TargetLocation::Templated(why.clone()), Vec::new());
        }
        // Without a repository it is a patch for one, or something else says the rest.
        let Some(url) = source.repo_url.as_deref() else { return Ok(None) };
        let Some(path) = path else {
            if lacks_path {
                unread.push(document.error_at(written.start.line, "a source has neither `path` nor `chart`"));
            }
            return Ok(None);
        };
        // A URL with a variable may be this repository, so that its path is looked at below the top.
        let external = match &source.chart {
            Some(chart) => Some(format!("it is the chart `{chart}` of {}", redact::url(url))),
            None if self.identity.directory_of(url).is_some() || unfilled([url]).is_some() => None,
            None => Some(format!("it is in {}", redact::url(url))),
        };
        match external {
            Some(why) => {
                let location = match unevaluated(application, written) {
                    Some(why) => TargetLocation::Templated(why),
                    None => TargetLocation::External(why),
                };
                elsewhere(location, self.values_inputs(document, &source, None))
            }
            None => self.target_of_path(application, written, &source, path, unread).map(Some),
        }
    }

    /// The target of a source whose path may be in this repository.
    fn target_of_path(
        &self,
        application: &Application,
        written: &Value,
        source: &Source,
        path: &str,
        unread: &mut Vec<Unread>,
    ) -> Result<Target> {
        let document = &application.document;
        let (url, named) = (source.repo_url.as_deref().unwrap_or_default(), source.target_revision.as_deref());
        let base = self.identity.directory_of(url).unwrap_or_default();
        // Overrides are in the directory, so they are unknown as long as it is.
        let directory = ArgoCd.resolve(base, path).filter(|_| unfilled([url, path]).is_none());
        let beside = directory.as_ref().map_or(Vec::new(), |path| override_files(path, &document.object.name));
        let (merged, mut build) = self.with_overrides(document, written, &beside, unread)?;
        let revision = self::revision(self.identity, url, named);
        // Unlike `directory`, it keeps a variable: then values count below its known part. The files of a tag never
        // change.
        let below = path::resolve(base, path).filter(|_| !revision.is_fixed);
        let source_dir = below.as_deref().map(|directory| SourceDir { top: base, directory });
        build.more_inputs = self.values_inputs(document, &merged, source_dir);
        let texts = [url, path, named.unwrap_or_default()];
        // The inputs above count also if the directory is unknown. Otherwise the tree tells what is in it.
        let location = match self.why_unknown(application, texts, directory.as_deref())? {
            Some(why) => TargetLocation::Templated(why),
            None => {
                let mut dir = target_dir::inspect_path(self.tree, EngineName::ArgoCd, base, path, revision, None)?;
                // To find out which URL is this repository, only the files count, not the type of the source.
                if !self.identity.is_any_url() {
                    dir.content = content_for_type(&merged, dir.content);
                }
                self.inspect_content(document, &merged, base, &dir, &mut build)?;
                // What a template leaves in the values of a chart makes its release unknown.
                if !matches!(dir.content, PathContent::Chart(_)) {
                    build.unread = build.unread.or_else(|| unevaluated(application, written));
                }
                TargetLocation::Local(dir)
            }
        };
        document.target(self.tree, EngineName::ArgoCd, source.spot(written), location, build)
    }

    /// A source with the changes of these override files, as far as they exist and can be read, and its build.
    fn with_overrides(
        &self,
        document: &Document,
        written: &Value,
        beside: &[String],
        unread: &mut Vec<Unread>,
    ) -> Result<(Source, BuildSettings)> {
        let mut merged = written.clone();
        for file in beside {
            if let Some(change) = read_override(self.tree, file, unread)? {
                merged = merge(&merged, &change, written.start, &Source::PLACE);
            }
        }
        // All of its parts were read without an error, so it can be read, too.
        let source: Source = merged.read().unwrap_or_default();
        let build = build(self.options.as_deref(), document, &merged, &source);
        Ok((source, build))
    }

    /// Adds the parts of a build that depend on the content of the directory: how a chart is rendered, and why not all
    /// plain files are known.
    fn inspect_content(
        &self,
        document: &Document,
        source: &Source,
        base: &str,
        dir: &TargetDir,
        build: &mut BuildSettings,
    ) -> Result<()> {
        // Any file may make the objects unknown: Jsonnet, or one in a submodule.
        if let PathContent::Directory(directory) = &dir.content {
            let files = self.files_in(directory, build.directory.recurse)?;
            build.unread = why_objects_unknown(source, &files);
            // Jsonnet may import any file of the repository.
            build.more_inputs.extend(files.iter().any(|file| file.ends_with(JSONNET)).then(|| base.to_owned()));
            build.note_submodules(self.tree, &files)?;
        }
        if matches!(dir.content, PathContent::Chart(_)) {
            let remote = source.values_files().filter(|text| text.contains("://"));
            build.remote_values = remote.map(str::to_owned).collect();
            build.release = Some(self.release(document, source, SourceDir { top: base, directory: &dir.path }));
        }
        Ok(())
    }

    /// Why the directory or the build of an application is unknown; `None` if both are known. `texts` locate its
    /// source.
    fn why_unknown(
        &self,
        application: &Application,
        texts: [&str; 3],
        directory: Option<&str>,
    ) -> Result<Option<String>> {
        let name = &application.document.object.name;
        // A parent of Flux fills in `${…}`, and may do so in each copy of the application with another value.
        let copied = Some(name.as_str()).filter(|name| name.contains("${"));
        let mut why = unfilled(texts.into_iter().chain(copied));
        // Other templates in the name matter only if an override file is for one application: it may be this one.
        if why.is_none()
            && unfilled([&**name]).is_some()
            && let Some(directory) = directory
            && let Resolved::Directory { path } = tree::resolve(self.tree, directory)?
            && self.tree.names(&path)?.iter().any(|name| is_override(name) && name != OVERRIDE)
        {
            why = Some(format!("an override file may match its name, `{name}`"));
        }
        // Unknown parameters matter only if they leave a variable in these texts. Then their reason says more than the
        // text.
        Ok(if why.is_some() || application.is_open { application.why_unknown.clone().or(why) } else { None })
    }

    /// The paths at which a source finds the values of a chart, whose changes change its build: files, and for a
    /// pattern the directory that it begins with.
    fn values_inputs(&self, document: &Document, source: &Source, dir: Option<SourceDir<'_>>) -> Vec<String> {
        // Most sources have no chart, and the environment reads the object again.
        if source.helm.is_none() {
            return Vec::new();
        }
        let environment = Environment::of(document, source);
        // An error means that the file is not in this revision of this repository.
        let paths = source.values_files().filter_map(|text| self.values_file(document, &environment, dir, text).ok());
        paths
            .map(|path: String| match path.find(PATTERN) {
                Some(end) => path[..end].rsplit_once('/').map_or("", |(plain, _)| plain).to_owned(),
                None => path,
            })
            .collect()
    }

    /// The files in a directory of plain files; with `recurse` all below it, and the submodules there. `include` and
    /// `exclude` are not applied, so a file that they leave out may make the objects unknown.
    fn files_in(&self, directory: &str, recurse: bool) -> Result<Vec<String>> {
        if recurse {
            return self.tree.below(directory);
        }
        let mut files = Vec::new();
        for name in self.tree.names(directory)? {
            let file = path::join(directory, &name);
            // Argo CD does not enter a directory, and a submodule is one.
            if !matches!(self.tree.entry(&file)?, Some(Entry::Directory | Entry::Submodule)) {
                files.push(file);
            }
        }
        Ok(files)
    }
}

/// Why some objects are unknown that Argo CD applies from the files of a directory; `None` if all are known.
fn why_objects_unknown(source: &Source, files: &[String]) -> Option<String> {
    let jsonnet = || {
        let file = files.iter().find(|file| file.ends_with(JSONNET))?;
        Some(format!("Argo CD generates its objects from Jsonnet: `{}`", path::name(file)))
    };
    let Some(plain) = &source.directory else { return jsonnet() };
    if plain.disable_extension_filter {
        return Some("`disableExtensionFilter` includes files of any name".to_owned());
    }
    unfilled([&*plain.include, &plain.exclude]).or_else(jsonnet)
}

/// A revision as Argo CD reads it.
fn revision(identity: &Identity, url: &str, name: Option<&str>) -> Revision {
    // Its objects do not say which names are tags, so one that looks like a version is taken for a tag.
    let is_tag = name.is_some_and(|name: &str| {
        let numbers = name.strip_prefix('v').unwrap_or(name).split('.');
        numbers.clone().count() > 1
            && numbers.take(2).all(|text: &str| text.starts_with(|first: char| first.is_ascii_digit()))
    });
    identity.revision(url, name, is_tag)
}

/// How Argo CD builds a `source`, which is `written` in a document. `options` are those of `kustomize build`.
fn build(options: Option<&[String]>, document: &Document, written: &Value, source: &Source) -> BuildSettings {
    let mut build = BuildSettings {
        load_restrictor: restrictor(options),
        options: options.unwrap_or_default().to_vec(),
        directory: source.directory.clone().unwrap_or_default(),
        ..BuildSettings::default()
    };
    if let Some(kustomize) = &source.kustomize {
        build.overrides = written.read::<Written>().unwrap_or_default().overrides();
        let components = kustomize.components.iter().cloned();
        build.components = components.map(|component| document.text(component).into()).collect();
        let patches = kustomize.patches.iter().filter_map(|patch| patch.path.clone());
        build.patches = patches.map(|path| document.text(path)).collect();
        build.ignore_missing_components = kustomize.ignore_missing_components;
        build.edits = Some(edit::commands(&Environment::of(document, source), kustomize));
    }
    build
}

/// Reads a merge patch for a source or an application; `None` if the text is empty.
fn read_patch(file: &str, text: FileDocument<'_>) -> std::result::Result<Option<Value>, Unread> {
    match read_object(text) {
        Ok(Some(change)) if is_respelled(&change) => {
            let message = "Argo CD ignores the case of its keys: write them as documented";
            Err(Unread::new(file, change.start.line, message, Why::Invalid))
        }
        Ok(change) => Ok(change),
        Err(ObjectError { line, message }) => Err(Unread::new(file, line, message, Why::Invalid)),
    }
}

/// Reads an override file, or adds it to `unread`; `None` if it is missing, empty or invalid.
fn read_override(tree: &dyn Tree, file: &str, unread: &mut Vec<Unread>) -> Result<Option<Value>> {
    let Resolved::File { path, .. } = tree::resolve(tree, file)? else { return Ok(None) };
    let text = tree.read(&path)?;
    let patch = read_patch(file, (&*String::from_utf8_lossy(&text)).into()).and_then(|patch| {
        let source = patch.as_ref().map(Value::read::<Source>).transpose();
        source.map_err(|wrong| Unread::new(file, wrong.start.line, wrong.to_string(), Why::Invalid))?;
        Ok(patch)
    });
    Ok(patch.unwrap_or_else(|invalid| {
        unread.push(invalid);
        None
    }))
}

/// Whether a file with this name changes a source of an application beside it.
fn is_override(name: &str) -> bool {
    name.starts_with(OVERRIDES) && name.ends_with(".yaml")
}

/// The paths of the files in the directory of an application that change its source, whether they exist or not.
fn override_files(directory: &str, application: &str) -> Vec<String> {
    // No application has such a name; a slash would lead to another directory.
    if application.is_empty() || application.contains('/') {
        return Vec::new();
    }
    // If the name is unknown, only the file that each application reads is certain.
    let own = Some(format!("{OVERRIDES}-{application}.yaml")).filter(|_| unfilled([application]).is_none());
    [OVERRIDE].into_iter().chain(own.as_deref()).map(|name| path::join(directory, name)).collect()
}

/// A value after a merge patch, as Argo CD applies it. The patch cannot change the keys of the top level in `fixed`.
/// Its values get `position`, because those in another file would mislead.
fn merge(value: &Value, patch: &Value, position: Position, fixed: &[&str]) -> Value {
    let Data::Mapping(changes) = &patch.data else {
        let mut patch = patch.clone();
        patch.set_position(position);
        return patch;
    };
    let mut pairs = value.mapping().unwrap_or_default().to_vec();
    for (key, change) in changes.iter().filter(|(key, _)| !fixed.contains(&key.as_str())) {
        let old = pairs.iter().position(|(name, _)| name == key);
        // Unlike in a JSON merge patch, `null` removes nothing: Argo CD reads the result into the old value.
        if change.data == Data::Null {
            continue;
        }
        let empty = Value::new(position, Data::Null);
        match old.and_then(|index| pairs.get_mut(index)) {
            Some((_, old)) => *old = merge(old, change, position, &[]),
            None => pairs.push((key.clone(), merge(&empty, change, position, &[]))),
        }
    }
    value.with(Data::Mapping(pairs))
}

/// The content that Argo CD sees in a directory: the type of the source decides, or else the files in the directory, as
/// `content` says.
fn content_for_type(source: &Source, content: PathContent) -> PathContent {
    let Some(at) = content.real_path().map(str::to_owned) else { return content };
    let types = source.types();
    match types[..] {
        [] => content,
        [KUSTOMIZE] if matches!(content, PathContent::Kustomization(_)) => content,
        [KUSTOMIZE] => PathContent::Nothing(format!("its source has `{KUSTOMIZE}`, and `{at}` has no kustomization")),
        [HELM] => PathContent::Chart(at),
        [DIRECTORY] => PathContent::Directory(at),
        [PLUGIN] => PathContent::Plugin(at),
        _ => PathContent::Nothing(format!("its source has `{}`: Argo CD takes one of them", types.join("` and `"))),
    }
}
