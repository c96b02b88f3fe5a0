//! Argo CD: `Application`, the applications that an `ApplicationSet` makes, and how they are built.

mod application_set;
mod files;
mod generator;
mod pattern;
mod template;

use super::scan::Document;
use super::unread::{Stop, is_template, noted};
use super::{Build, Component, Directory, Engine, Found, Here, Identity, Place, Target, Targets, Unread, place};
use crate::kustomization::{Data, Value, is_same_key, read_object};
use crate::message::failure::Result;
use crate::message::redact;
use crate::record::LoadRestrictor;
use crate::tree::{self, Resolved, Tree, path};

pub(crate) use application_set::exclusion;
pub(super) use pattern::Pattern;

type Read<T> = std::result::Result<T, Stop>;

/// The fields of `source.kustomize` that change nothing of the kustomization.
const NOT_OVERRIDES: [&str; 3] = ["components", "ignoreMissingComponents", "version"];

/// The option of `kustomize build` that lets a root load any file, as people write it.
const ANY_FILE: &str = "LoadRestrictionsNone";

/// What Argo CD builds from.
struct Argo<'a> {
    tree: &'a dyn Tree,
    identity: &'a Identity,
    options: Option<Vec<String>>,
}

/// Adds what Argo CD deploys.
pub(super) fn find(tree: &dyn Tree, identity: &Identity, objects: &[Document], targets: &mut Targets) -> Result<()> {
    let argo = Argo { tree, identity, options: options(objects) };
    targets.argo_options.clone_from(&argo.options);
    let mut all = Vec::new();
    for found in objects {
        match found.object.kind.as_str() {
            "Application" => all.push(found.clone()),
            "ApplicationSet" => application_set::expand(&argo, found, &mut all, targets)?,
            _ => {}
        }
    }
    for found in &all {
        for source in noted(sources(found), &mut targets.unread)? {
            // Without a repository it is a patch for one.
            if source.get("repoURL").is_some() {
                let target = argo.of_source(found, source, &mut targets.unread);
                targets.targets.extend(noted(target, &mut targets.unread)?);
            }
        }
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

/// Returns what an application is built from.
fn sources(found: &Document) -> Read<Vec<&Value>> {
    let spec = |keys: &[&str]| found.value.get("spec")?.at(keys);
    let mut sources: Vec<&Value> = Vec::new();
    match spec(&["sources"]) {
        None => sources.extend(spec(&["source"])),
        Some(value) => match value.list() {
            Some(items) => sources.extend(items),
            None => return Err(found.mistyped(value, &["spec", "sources"], "a list").into()),
        },
    }
    sources.extend(spec(&["sourceHydrator", "drySource"]));
    // What is synchronized once, as soon as the object is there.
    if let Some(sync) = found.value.at(&["operation", "sync"]) {
        sources.extend(sync.get("source"));
        sources.extend(sync.get("sources").and_then(Value::list).unwrap_or_default());
    }
    Ok(sources)
}

impl Argo<'_> {
    /// Returns what the sources of an application add, wherever it is built from.
    fn added(&self, found: &Document, unread: &mut Vec<Unread>) -> Result<Build> {
        let mut all = Build::default();
        for source in noted(sources(found), unread)? {
            let beside = self.beside(found, source)?;
            all.join(self.any(found, source, &beside, unread)?);
        }
        Ok(all)
    }

    /// Returns what one source deploys; none for one that only holds values for others.
    fn of_source(&self, found: &Document, source: &Value, unread: &mut Vec<Unread>) -> Read<Option<Target>> {
        let url = found.text(source, &["repoURL"])?.map_or("", |(text, _)| text);
        let (written, chart) = (found.text(source, &["path"])?, found.text(source, &["chart"])?);
        let revision = found.text(source, &["targetRevision"])?.map(|(text, _)| text);
        if written.is_none() && chart.is_none() {
            return match source.get("ref") {
                Some(_) => Ok(None),
                None => Err(found.mistyped(source, &["spec", "source"], "a source with `path` or `chart`").into()),
            };
        }
        let (written, spot) = written.unwrap_or(("", (source.line, source.column)));
        let target = |place, build| Ok(Some(found.target(Engine::ArgoCd, spot, place, build)));
        if let Some((chart, _)) = chart {
            let why = format!("it is the chart `{chart}` of {}", redact::url(url));
            return target(Place::External(why), Build::default());
        }
        let beside = self.beside(found, source)?;
        if let Some(why) = open(&found.object.name, [url, written, revision.unwrap_or_default()], &beside) {
            return target(Place::Templated(why), self.any(found, source, &beside, unread)?);
        }
        let Some(base) = self.identity.directory_of(url) else {
            return target(Place::External(format!("it is in {}", redact::url(url))), Build::default());
        };
        let (path, there) = place::of_path(self.tree, base, written, Engine::ArgoCd)?;
        let mut merged = source.clone();
        for file in &beside {
            let change = self.overridden(&merged, file);
            merged = noted(change.map(Some), unread)?.unwrap_or(merged);
        }
        let mut build = self.build(found, &merged)?;
        build.values = values(self.identity, found, &merged, base, &path);
        let there = (path, explicit(&merged, there));
        target(Place::Here(Here::new(written, there, self.identity.revision(revision), None)), build)
    }

    /// Returns what the source of an application adds, with what any of these files beside it does.
    fn any(&self, found: &Document, source: &Value, beside: &[String], unread: &mut Vec<Unread>) -> Result<Build> {
        let mut all = noted(self.build(found, source), unread)?;
        for file in beside {
            let build = self.overridden(source, file).and_then(|merged| self.build(found, &merged));
            all.join(noted(build, unread)?);
        }
        Ok(all)
    }

    /// Returns the files beside those of an application that change its source: all, where its name is not known here.
    fn beside(&self, found: &Document, source: &Value) -> Result<Vec<String>> {
        let text = |key: &str| source.get(key)?.text().filter(|text| !is_open(text));
        let base = text("repoURL").and_then(|url| self.identity.directory_of(url));
        let (Some(base), Some(written)) = (base, text("path")) else {
            return Ok(Vec::new());
        };
        let (path, _) = place::of_path(self.tree, base, written, Engine::ArgoCd)?;
        if !is_open(&found.object.name) {
            return Ok(override_files(&path, &found.object.name));
        }
        let Resolved::Directory { path: directory } = tree::resolve(self.tree, &path)? else {
            return Ok(Vec::new());
        };
        let mut files = self.tree.below(&directory)?;
        files.retain(|file| {
            let name = path::name(file).strip_prefix(".argocd-source");
            path::parent(file) == directory && name.is_some_and(|rest| rest.ends_with(".yaml"))
        });
        Ok(files)
    }

    /// Returns a source with what a file beside those of an application changes in it.
    fn overridden(&self, source: &Value, file: &str) -> Read<Value> {
        let Resolved::File { path: file, .. } = tree::resolve(self.tree, file)? else {
            return Ok(source.clone());
        };
        let bytes = self.tree.read(&file)?;
        let text = String::from_utf8_lossy(&bytes);
        match read_object(&text, 0) {
            Ok(Some(patch)) if is_respelled(&patch) => {
                let message = "Argo CD reads its keys in any case: write them as it does";
                Err(Unread::invalid(&file, patch.line, message, false).into())
            }
            Ok(Some(patch)) => {
                // What says where the files are stays.
                let kept = ["path", "repoURL", "targetRevision", "chart"];
                Ok(merge(source, &patch, (source.line, source.column), &kept))
            }
            Ok(None) => Ok(source.clone()),
            Err((line, message)) => Err(Unread::invalid(&file, line, message, is_template(&text)).into()),
        }
    }

    /// Returns how Argo CD builds a source.
    fn build(&self, found: &Document, source: &Value) -> Read<Build> {
        let mut build = Build {
            load_restrictor: restrictor(self.options.as_deref()),
            options: self.options.clone().unwrap_or_default(),
            ..Build::default()
        };
        if let Some(kustomize) = source.get("kustomize") {
            let Some(pairs) = kustomize.mapping() else {
                return Err(found.mistyped(kustomize, &["kustomize"], "a mapping").into());
            };
            let pairs = pairs.iter().filter(|(_, value)| value.data != Data::Null);
            let pairs = pairs.filter(|(key, _)| !NOT_OVERRIDES.contains(&key.as_str()));
            build.overrides = pairs.map(|(key, value)| (key.clone(), value.json())).collect();
            build.components = found.texts(kustomize, &["components"])?.into_iter().map(Component::from).collect();
            let patches = kustomize.get("patches").and_then(Value::list).unwrap_or_default();
            build.patches = patches.iter().filter_map(|patch| found.text_at(patch.get("path")?)).collect();
            build.ignore_missing_components =
                kustomize.get("ignoreMissingComponents").is_some_and(|flag| flag.data == Data::Flag(true));
        }
        let text = |key: &str| source.at(&["directory", key]).and_then(Value::scalar).unwrap_or_default();
        build.directory =
            Some(Directory { recurse: text("recurse") == "true", include: text("include"), exclude: text("exclude") });
        Ok(build)
    }
}

/// Returns why it is not known where an application is built from, or how; none where it is.
fn open(name: &str, texts: [&str; 3], beside: &[String]) -> Option<String> {
    // The name says nothing about the place, but for the variables that a parent gives each of its copies.
    let copied = Some(name).filter(|name| name.contains("${"));
    let is_named = |file: &String| path::name(file).starts_with(".argocd-source-");
    match texts.into_iter().find(|text| is_open(text)).or(copied) {
        Some(text) => Some(format!("`{}` is filled in elsewhere", redact::url(text))),
        None if is_open(name) && beside.iter().any(is_named) => {
            Some(format!("a file beside it changes it by its name, `{name}`"))
        }
        None => None,
    }
}

/// Returns whether something in a text is filled in elsewhere.
fn is_open(text: &str) -> bool {
    text.contains("{{") || text.contains("${")
}

/// Returns the files beside those of an application that change its source, whether they are there or not.
pub(crate) fn override_files(directory: &str, application: &str) -> Vec<String> {
    if application.is_empty() || application.contains('/') {
        return Vec::new();
    }
    let own = format!(".argocd-source-{application}.yaml");
    [".argocd-source.yaml", &own].map(|name| path::join(directory, name)).into()
}

/// Returns whether something has a key that Argo CD takes for another one, which says what an application is built from.
fn is_respelled(value: &Value) -> bool {
    const KEYS: [&str; 9] =
        ["spec", "source", "sources", "sourceHydrator", "drySource", "kustomize", "components", "patches", "path"];
    let is_other = |key: &str| KEYS.iter().any(|known| key != *known && is_same_key(known, key));
    match &value.data {
        Data::Mapping(pairs) => pairs.iter().any(|(key, value)| is_other(key) || is_respelled(value)),
        Data::List(items) => items.iter().any(is_respelled),
        _ => false,
    }
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
