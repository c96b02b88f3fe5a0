//! Argo CD: `Application`, the applications that an `ApplicationSet` makes, and how they are built.

mod application_set;
mod files;
mod generator;
mod pattern;
mod template;

use super::flux::{given, text, texts, wrong};
use super::scan::Document;
use super::unread::is_template;
use super::{Build, Component, Directory, Engine, Found, Here, Identity, Place, Target, Targets, Unread, place};
use crate::kustomization::{Data, Value, read_object};
use crate::message::failure::Result;
use crate::message::redact;
use crate::record::LoadRestrictor;
use crate::tree::{self, Listing, Resolved, path};

pub(crate) use application_set::exclusion;
pub(super) use pattern::Pattern;

/// The annotation that says which paths matter to an application.
pub(super) const GENERATE_PATHS: &str = "argocd.argoproj.io/manifest-generate-paths";

/// The fields of `source.kustomize` that change nothing of the kustomization.
const NOT_OVERRIDES: [&str; 3] = ["components", "ignoreMissingComponents", "version"];

/// The keys that say what an application is built from. Argo CD reads them in any case.
const KEYS: &str = "spec source sources sourceHydrator drySource repoURL path chart targetRevision ref kustomize \
    components patches ignoreMissingComponents helm valueFiles fileParameters plugin directory recurse include exclude";

/// The option of `kustomize build` that lets a root load any file, as people write it.
const ANY_FILE: &str = "LoadRestrictionsNone";

/// Adds what Argo CD deploys.
pub(super) fn find(tree: &dyn Listing, identity: &Identity, objects: &[Document], targets: &mut Targets) -> Result<()> {
    let options = options(objects);
    targets.argo_options.clone_from(&options);
    let mut all = Vec::new();
    for found in objects {
        match found.object.kind.as_str() {
            "Application" => all.push(found.clone()),
            "ApplicationSet" => {
                application_set::expand(tree, identity, found, &mut all, targets)?;
            }
            _ => {}
        }
    }
    for found in &all {
        let found = found.template(found.object.clone(), found.value.folded(KEYS));
        application(tree, identity, &found, options.as_deref(), targets)?;
    }
    Ok(())
}

/// Returns the options of `kustomize build` that the tree gives Argo CD; none where nothing in it says them.
fn options(objects: &[Document]) -> Option<Vec<String>> {
    let mut options: Option<Vec<String>> = None;
    for Document { object, value, .. } in objects {
        let texts: Vec<&Value> = match object.kind.as_str() {
            "ConfigMap" => {
                let data = value.get("data").and_then(Value::mapping).unwrap_or_default();
                let keys = data
                    .iter()
                    .filter(|(key, _)| key == "kustomize.buildOptions" || key.starts_with("kustomize.buildOptions."));
                keys.map(|(_, value)| value).collect()
            }
            "ArgoCD" => value.at(&["spec", "kustomizeBuildOptions"]).into_iter().collect(),
            _ => continue,
        };
        let words = texts.iter().filter_map(|value| value.text());
        let words = words.flat_map(str::split_whitespace).map(str::to_owned);
        options.get_or_insert_default().extend(words);
    }
    options
}

impl Targets {
    /// Returns which files Argo CD lets a root load; none where nothing in the tree says it.
    pub(super) fn argo_restrictor(&self) -> Option<LoadRestrictor> {
        restrictor(self.argo_options.as_deref())
    }
}

fn restrictor(options: Option<&[String]>) -> Option<LoadRestrictor> {
    let is_none = options?.iter().any(|option| option.ends_with(ANY_FILE));
    Some(if is_none { LoadRestrictor::None } else { LoadRestrictor::RootOnly })
}

/// Adds what an application deploys: a target for each of its sources.
fn application(
    tree: &dyn Listing,
    identity: &Identity,
    found: &Document,
    options: Option<&[String]>,
    targets: &mut Targets,
) -> Result<()> {
    for source in sources(found, &mut targets.unread) {
        // Without a repository it is a patch for one.
        if source.get("repoURL").is_none() {
            continue;
        }
        let target = of_source(tree, identity, found, source, options, &mut targets.unread)?;
        targets.targets.extend(target);
    }
    Ok(())
}

/// Returns what an application is built from.
fn sources<'a>(found: &'a Document, unread: &mut Vec<Unread>) -> Vec<&'a Value> {
    let Some(spec) = found.value.get("spec") else {
        return Vec::new();
    };
    let mut sources: Vec<&Value> = Vec::new();
    match given(spec, &["sources"]) {
        None => sources.extend(spec.get("source")),
        Some(value) => match value.list() {
            Some(items) => sources.extend(items),
            None => wrong(found, value, &["spec", "sources"], "a list", unread),
        },
    }
    sources.extend(spec.at(&["sourceHydrator", "drySource"]));
    // What is synchronized once, as soon as the object is there.
    if let Some(sync) = found.value.at(&["operation", "sync"]) {
        let several = sync.get("sources").and_then(Value::list);
        sources.extend(sync.get("source"));
        sources.extend(several.unwrap_or_default());
    }
    sources
}

/// Returns what the sources of an application add, wherever it is built from.
fn added(tree: &dyn Listing, identity: &Identity, found: &Document, unread: &mut Vec<Unread>) -> Result<Build> {
    let found = found.template(found.object.clone(), found.value.folded(KEYS));
    let mut all = Build::default();
    for source in sources(&found, unread) {
        let beside = beside(tree, identity, &found, source)?;
        all.join(any(tree, &found, source, &beside, None, unread)?);
    }
    Ok(all)
}

/// Returns what one source deploys; none for one that only holds values for others.
fn of_source(
    tree: &dyn Listing,
    identity: &Identity,
    found: &Document,
    source: &Value,
    options: Option<&[String]>,
    unread: &mut Vec<Unread>,
) -> Result<Option<Target>> {
    let fields = ["repoURL", "path", "chart", "targetRevision"];
    let fields = fields.map(|key| text(found, source, &[key], unread));
    let [Ok(url), Ok(written), Ok(chart), Ok(revision)] = fields else {
        return Ok(None);
    };
    let url = url.map_or("", |(text, _)| text);
    if written.is_none() && chart.is_none() {
        if source.get("ref").is_none() {
            wrong(found, source, &["spec", "source"], "a source with `path` or `chart`", unread);
        }
        return Ok(None);
    }
    let (written, spot) = written.unwrap_or(("", (source.line, source.column)));
    let target = |place, build| Some(found.target(Engine::ArgoCd, spot, place, build));
    if let Some((chart, _)) = chart {
        let why = format!("it is the chart `{chart}` of {}", redact::url(url));
        return Ok(target(Place::External(why), Build::default()));
    }
    let revision = revision.map(|(text, _)| text);
    let name = found.object.name.as_str();
    let beside = beside(tree, identity, found, source)?;
    // The name says nothing about the place, but for the variables that a parent gives each of its copies.
    let copied = Some(name).filter(|name| name.contains("${"));
    let texts = [url, written, revision.unwrap_or_default()];
    let open = texts.into_iter().find(|text| is_open(text)).or(copied);
    let is_named = |file: &String| path::name(file).starts_with(".argocd-source-");
    let why = match open {
        Some(text) => format!("`{}` is filled in elsewhere", redact::url(text)),
        None if is_open(name) && beside.iter().any(is_named) => {
            format!("a file beside it changes it by its name, `{name}`")
        }
        None => String::new(),
    };
    if !why.is_empty() {
        let build = any(tree, found, source, &beside, options, unread)?;
        return Ok(target(Place::Templated(why), build));
    }
    let Some(base) = identity.directory_of(url) else {
        let why = format!("it is in {}", redact::url(url));
        return Ok(target(Place::External(why), Build::default()));
    };
    let (path, there) = place::of_path(tree, base, written, Engine::ArgoCd)?;
    let merged = overridden(tree, source, &beside, unread)?;
    let Some(mut build) = build(found, &merged, options, unread) else {
        return Ok(None);
    };
    build.values = values(identity, found, &merged, base, &path);
    let found = explicit(&merged, there);
    let here = Here::new(written, (path, found), identity.revision(revision), None);
    Ok(target(Place::Here(here), build))
}

/// Returns what the source of an application adds, with what any of these files beside it does.
fn any(
    tree: &dyn Listing,
    found: &Document,
    source: &Value,
    beside: &[String],
    options: Option<&[String]>,
    unread: &mut Vec<Unread>,
) -> Result<Build> {
    let mut all = build(found, source, options, unread).unwrap_or_default();
    for file in beside {
        let merged = overridden(tree, source, std::slice::from_ref(file), unread)?;
        all.join(build(found, &merged, options, unread).unwrap_or_default());
    }
    Ok(all)
}

/// Returns whether something in a text is filled in elsewhere.
fn is_open(text: &str) -> bool {
    text.contains("{{") || text.contains("${")
}

/// Returns the files beside those of an application that change its source: all, where its name is not known here.
fn beside(tree: &dyn Listing, identity: &Identity, found: &Document, source: &Value) -> Result<Vec<String>> {
    let text = |key: &str| source.get(key)?.text().filter(|text| !is_open(text));
    let base = text("repoURL").and_then(|url| identity.directory_of(url));
    let (Some(base), Some(written)) = (base, text("path")) else {
        return Ok(Vec::new());
    };
    let (path, _) = place::of_path(tree, base, written, Engine::ArgoCd)?;
    if !is_open(&found.object.name) {
        return Ok(override_files(&path, &found.object.name));
    }
    let Resolved::Directory { path: directory } = tree::resolve(tree, &path)? else {
        return Ok(Vec::new());
    };
    let mut files = tree.below(&directory)?;
    files.retain(|file| {
        let name = path::name(file).strip_prefix(".argocd-source");
        path::parent(file) == directory && name.is_some_and(|rest| rest.ends_with(".yaml"))
    });
    Ok(files)
}

/// Returns the files beside those of an application that change its source, whether they are there or not.
pub(crate) fn override_files(directory: &str, application: &str) -> Vec<String> {
    if application.is_empty() || application.contains('/') {
        return Vec::new();
    }
    let own = format!(".argocd-source-{application}.yaml");
    [".argocd-source.yaml", &own].map(|name| path::join(directory, name)).into()
}

/// Returns a source with what these files beside those of an application change in it.
fn overridden(tree: &dyn Listing, source: &Value, files: &[String], unread: &mut Vec<Unread>) -> Result<Value> {
    let mut merged = source.clone();
    for file in files {
        let Resolved::File { path: file, .. } = tree::resolve(tree, file)? else {
            continue;
        };
        let bytes = tree.read(&file)?;
        let text = String::from_utf8_lossy(&bytes);
        match read_object(&text, 0) {
            Ok(Some(patch)) => {
                // What says where the files are stays.
                let kept = ["path", "repoURL", "targetRevision", "chart"];
                merged = merge(&merged, &patch, (source.line, source.column), &kept);
                // A key in another case does not stand for the same before it is read.
                merged = merged.folded(KEYS);
            }
            Ok(None) => {}
            Err((line, message)) => {
                unread.push(Unread::invalid(&file, line, message, is_template(&text)));
            }
        }
    }
    Ok(merged)
}

/// Returns a value with a JSON merge patch applied, but for some keys. What the patch brings in is put at `place`. It
/// takes nothing away: Argo CD reads what comes out into what was there.
fn merge(value: &Value, patch: &Value, place: (usize, usize), kept: &[&str]) -> Value {
    let Data::Mapping(changes) = &patch.data else {
        let mut patch = patch.clone();
        patch.place_at(place);
        return patch;
    };
    let mut pairs = value.mapping().unwrap_or_default().to_vec();
    for (key, change) in changes.iter().filter(|(key, _)| !kept.contains(&key.as_str())) {
        let old = pairs.iter().position(|(name, _)| name == key);
        if change.data == Data::Null {
            continue;
        }
        let empty = Value::new(place, Data::Null);
        match old.and_then(|index| pairs.get_mut(index)) {
            Some((_, old)) => *old = merge(old, change, place, &[]),
            None => pairs.push((key.clone(), merge(&empty, change, place, &[]))),
        }
    }
    value.with(Data::Mapping(pairs))
}

/// Returns what Argo CD takes a directory for: the object decides, then the files in it.
fn explicit(source: &Value, there: Found) -> Found {
    let (Found::Kustomization(directory) | Found::Directory(directory) | Found::Chart(directory)) = &there else {
        return there;
    };
    let directory = directory.clone();
    let is_given = |key: &str| source.get(key).is_some();
    if is_given("plugin") {
        Found::Plugin(directory)
    } else if is_given("helm") {
        Found::Chart(directory)
    } else if is_given("directory") && !is_given("kustomize") {
        Found::Directory(directory)
    } else {
        there
    }
}

/// Returns how Argo CD builds a source; none where something of it has the wrong type.
fn build(found: &Document, source: &Value, options: Option<&[String]>, unread: &mut Vec<Unread>) -> Option<Build> {
    let mut build = Build {
        load_restrictor: restrictor(options),
        options: options.unwrap_or_default().to_vec(),
        ..Build::default()
    };
    if let Some(kustomize) = source.get("kustomize") {
        let pairs = kustomize.mapping();
        let pairs = pairs.or_else(|| {
            wrong(found, kustomize, &["kustomize"], "a mapping", unread);
            None
        })?;
        for (key, value) in pairs {
            if !NOT_OVERRIDES.contains(&key.as_str()) && value.data != Data::Null {
                build.overrides.insert(key.clone(), value.json());
            }
        }
        let wrapped = found.template(found.object.clone(), kustomize.clone());
        build.components = texts(&wrapped, &["components"], unread)?.into_iter().map(Component::from).collect();
        let patches = kustomize.get("patches").and_then(Value::list);
        let paths = patches.into_iter().flatten().filter_map(|patch| patch.get("path"));
        build.patches = paths.filter_map(|path| found.text_at(path)).collect();
        build.ignore_missing_components =
            kustomize.get("ignoreMissingComponents").is_some_and(|flag| flag.data == Data::Flag(true));
    }
    let text = |keys: &[&str]| source.at(keys).and_then(Value::scalar).unwrap_or_default();
    build.directory = Some(Directory {
        recurse: text(&["directory", "recurse"]) == "true",
        include: text(&["directory", "include"]),
        exclude: text(&["directory", "exclude"]),
    });
    let annotation = found.value.at(&["metadata", "annotations", GENERATE_PATHS]);
    build.generate_paths = annotation.and_then(Value::text).map(str::to_owned);
    Some(build)
}

/// Returns the files from which a source takes the values of a chart, which may lie in a source that is named: `$REF/…`.
fn values(identity: &Identity, found: &Document, source: &Value, base: &str, directory: &str) -> Vec<String> {
    let list = |value: Option<&'_ Value>| value.and_then(Value::list).unwrap_or_default().to_vec();
    let named = |name: &str| {
        let all = list(found.value.at(&["spec", "sources"]));
        let is_it = |one: &&Value| one.get("ref").and_then(Value::text) == Some(name);
        let url = all.iter().find(is_it)?.get("repoURL")?.text()?;
        identity.directory_of(url)
    };
    let files = list(source.at(&["helm", "valueFiles"])).into_iter();
    let parameters = list(source.at(&["helm", "fileParameters"])).into_iter();
    let files = files.chain(parameters.filter_map(|one| one.get("path").cloned()));
    let files = files.filter_map(|file| {
        let text = file.text().filter(|text| !text.contains("://"))?;
        let (from, text) = match text.strip_prefix('$').and_then(|text| text.split_once('/')) {
            Some((name, text)) => (named(name)?, text),
            None if text.starts_with('/') => (base, text),
            None => (directory, text),
        };
        let plain = match text.find(['*', '?', '[']) {
            Some(end) => text[..end].rsplit_once('/').map_or("", |(plain, _)| plain),
            None => text,
        };
        path::resolve(from, plain)
    });
    files.collect()
}
