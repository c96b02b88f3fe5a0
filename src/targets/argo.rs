//! Argo CD: `Application`, the applications that an `ApplicationSet` makes, and how they are built.

mod application_set;
mod edit;
mod generator;
mod pattern;
mod release;
mod template;

use std::cell::OnceCell;
use std::collections::HashSet;

use super::scan::Document;
use super::{
    Build, Component, Directory, Engine, Found, Identity, Object, Place, Revision, Target, Targets, Unread, place,
    unfilled,
};
use crate::config::Config;
use crate::kustomization::{Data, Value, is_same_key, read_object};
use crate::message::failure::Result;
use crate::message::position::Position;
use crate::message::redact;
use crate::record::LoadRestrictor;
use crate::tree::{self, Resolved, Tree, path};

pub(super) use pattern::{crossing, glob, in_go, matcher};
use release::PATTERN;

/// The fields of `source.kustomize` that change nothing of the kustomization.
const NOT_OVERRIDES: [&str; 3] = ["components", "ignoreMissingComponents", "version"];

/// How the names of files begin that change a source of an application beside them.
const OVERRIDES: &str = ".argocd-source";

/// The option of `kustomize build` that lets a root load any file, as people write it.
const ANY_FILE: &str = "LoadRestrictionsNone";

/// What is a text in a source.
const TEXTS: &str = "repoURL path chart targetRevision kustomize.components[]";

/// What says where a source is, and what no file beside it changes.
const PLACE: [&str; 4] = ["path", "repoURL", "targetRevision", "chart"];

/// What Argo CD builds from.
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
    found: Document,
    /// Why something of it is not known.
    untold: Option<String>,
    /// Whether that may be anything.
    is_open: bool,
}

/// Adds what Argo CD deploys.
pub(super) fn find(tree: &dyn Tree, identity: &Identity, objects: &[Document], targets: &mut Targets) -> Result<()> {
    let options = options(objects);
    let argo = Argo { tree, identity, options, files: OnceCell::new(), directories: OnceCell::new() };
    targets.argo_options.clone_from(&argo.options);
    let mut all = Vec::new();
    for found in objects {
        match found.object.kind.as_str() {
            "Application" => all.push(Application { found: found.clone(), untold: None, is_open: false }),
            "ApplicationSet" => application_set::expand(&argo, found, &mut all, targets)?,
            _ => {}
        }
    }
    for application in &all {
        let mut sources = sources(&application.found.value);
        // Without a repository it is a patch for one, or something else says the rest.
        sources.retain(|source| application.is_open || source.get("repoURL").is_some());
        if application.is_open && sources.is_empty() {
            sources.push(application.found.value.with(Data::Mapping(Vec::new())));
        }
        for source in sources {
            targets.targets.extend(argo.of_source(application, &source, &mut targets.unread)?);
        }
    }
    Ok(())
}

/// Adds an application for each file that adds something to one by its directory, which no application of this tree reads:
/// one of another repository may.
pub(super) fn find_elsewhere(tree: &dyn Tree, config: &Config, targets: &mut Targets) -> Result<()> {
    let is_override = |name: &str| name.starts_with(OVERRIDES) && name.ends_with(".yaml");
    for file in tree.files_named(&is_override)? {
        let directory = path::parent(&file);
        let name = path::name(&file).trim_start_matches(OVERRIDES).trim_end_matches(".yaml").trim_start_matches('-');
        if config.leaves_out(directory) {
            continue;
        }
        let value = match change_in(tree, &file)? {
            None => continue,
            Some(Ok(value)) => value,
            Some(Err(wrong)) => {
                targets.unread.push(wrong);
                continue;
            }
        };
        let object =
            Object::of(&file, value.start.line, "Application", if name.is_empty() { "any" } else { name }.to_owned());
        let found = Document { object, value, home: directory.to_owned(), is_template: false };
        let build = build(None, &found, &found.value);
        let added = build.added();
        let is_read = |target: &Target| {
            let is_there = match &target.place {
                Place::Here(here) => here.path == directory,
                Place::Templated(_) => true,
                Place::External(_) => false,
            };
            let names = &target.object.name;
            let is_of_it = name.is_empty() || names == name || unfilled([names.as_str()]).is_some();
            is_there && is_of_it && added.is_subset(&target.build.added())
        };
        if !added.is_empty() && !targets.targets.iter().any(is_read) {
            let place = Place::External("no application in this repository reads it".to_owned());
            targets.targets.push(found.target(
                tree,
                Engine::ArgoCd,
                Position::new(found.value.start.line, 1),
                place,
                build,
            )?);
        }
    }
    Ok(())
}

/// Returns the options of `kustomize build` that the tree gives Argo CD; none where nothing in it says them.
fn options(objects: &[Document]) -> Option<Vec<String>> {
    let is_it = |key: &str| key.starts_with("kustomize.buildOptions") || key == "kustomizeBuildOptions";
    let mut options: Option<Vec<String>> = None;
    for found in objects.iter().filter(|found| found.has_options()) {
        let pairs = ["data", "spec"].into_iter().filter_map(|key| found.value.get(key)?.mapping()).flatten();
        let texts = pairs.filter(|(key, _)| is_it(key)).filter_map(|(_, value)| value.text());
        let words = texts.flat_map(str::split_whitespace).map(str::to_owned);
        options.get_or_insert_default().extend(words);
    }
    options
}

/// Returns which files Argo CD lets a root load; none where nothing in the tree says it.
pub(super) fn restrictor(options: Option<&[String]>) -> Option<LoadRestrictor> {
    let is_none = options?.iter().any(|option| option.ends_with(ANY_FILE));
    Some(if is_none { LoadRestrictor::None } else { LoadRestrictor::RootOnly })
}

/// Returns what an application is built from, and what a hydrator writes for it into a repository of its own.
fn sources(application: &Value) -> Vec<Value> {
    let at = |keys: &[&str]| application.at(keys).cloned();
    let many = [at(&["spec", "sources"]), at(&["operation", "sync", "sources"])];
    let many = many.iter().flatten().filter_map(Value::list).flatten().cloned();
    let one = at(&["spec", "source"]).filter(|_| at(&["spec", "sources"]).is_none());
    let hydrator = |key: &str| at(&["spec", "sourceHydrator", key]);
    let written = hydrator("syncSource").map(|sync| {
        let branch = sync.get("targetBranch").map(|branch| ("targetRevision".to_owned(), branch.clone()));
        sync.with(Data::Mapping(sync.mapping().unwrap_or_default().iter().cloned().chain(branch).collect()))
    });
    // What is synchronized once, as soon as the object is there.
    let once = at(&["operation", "sync", "source"]);
    many.chain([one, hydrator("drySource"), written, once].into_iter().flatten()).collect()
}

impl Argo<'_> {
    fn files(&self) -> Result<&[String]> {
        if self.files.get().is_none() {
            self.files.set(self.tree.below("")?).ok();
        }
        Ok(self.files.get().map(Vec::as_slice).unwrap_or_default())
    }

    fn directories(&self) -> Result<&[String]> {
        let files = self.files()?.iter().map(String::as_str);
        let all = || path::directories(files).into_iter().map(str::to_owned).collect();
        Ok(self.directories.get_or_init(all))
    }

    /// Returns what one source deploys; none for one that only holds values for others.
    fn of_source(&self, of: &Application, source: &Value, unread: &mut Vec<Unread>) -> Result<Option<Target>> {
        let found = &of.found;
        if let Some(wrong) = found.mistyped(source, TEXTS) {
            unread.push(wrong);
            return Ok(None);
        }
        let text = |key: &str| source.get(key).and_then(Value::text);
        let url = text("repoURL").unwrap_or_default();
        let spot = found.spot(source.get("path").or(Some(source)));
        let built = |source: &Value| build(self.options.as_deref(), found, source);
        let external = |why: String| {
            let build = Build { values: self.values(found, source, None), ..built(source) };
            found.target(self.tree, Engine::ArgoCd, spot, Place::External(why), build).map(Some)
        };
        let written = text("path").or(text("chart").map(|_| ""));
        let is_partial = (written.is_none() && text("ref").is_none()) || source.get("repoURL").is_none();
        if let (true, Some(why)) = (is_partial && of.is_open, &of.untold) {
            let place = Place::Templated(why.clone());
            return found.target(self.tree, Engine::ArgoCd, spot, place, built(source)).map(Some);
        }
        let Some(written) = written else {
            if is_partial {
                unread.push(found.wrong(source.start.line, "a source has neither `path` nor `chart`"));
            }
            return Ok(None);
        };
        if let Some(chart) = text("chart") {
            return external(format!("it is the chart `{chart}` of {}", redact::url(url)));
        }
        let (base, is_known) = (self.identity.directory_of(url), unfilled([url]).is_none());
        if base.is_none() && is_known {
            return external(format!("it is in {}", redact::url(url)));
        }
        let base = base.unwrap_or_default();
        let directory = Some(written).filter(|written| is_known && unfilled([*written]).is_none());
        let directory = directory.and_then(|written| place::resolve(Engine::ArgoCd, base, written));
        let beside = directory.map_or(Ok(Vec::new()), |directory| self.beside(&directory, &found.object.name))?;
        let is_named = unfilled([&*found.object.name]).is_none();
        let (mut merged, mut build) = (source.clone(), built(source));
        for file in &beside {
            let merge = |from: &Value, change| merge(from, change, source.start, &PLACE);
            match change_in(self.tree, file)? {
                None => {}
                Some(Ok(change)) if is_named => merged = merge(&merged, &change),
                // It may be any of them.
                Some(Ok(change)) => build.join(built(&merge(source, &change))),
                Some(Err(wrong)) => unread.push(wrong),
            }
        }
        if is_named {
            build = built(&merged);
        }
        let named = text("targetRevision");
        let revision = self::revision(self.identity, url, named);
        // What lies in a tag does not change.
        let below = path::resolve(base, written).filter(|_| !revision.is_fixed);
        build.values = self.values(found, &merged, below.as_deref().map(|below| [base, below]));
        let place = match self.open(of, [url, written, named.unwrap_or_default()], &beside) {
            Some(why) => Place::Templated(why),
            None => {
                let mut here = place::here(self.tree, Engine::ArgoCd, base, written, revision, None)?;
                here.found = explicit(&merged, here.found);
                if let Found::Directory(directory) = &here.found {
                    let files = self.read_in(directory, build.directory.recurse)?;
                    build.unread = self::unread(&merged, &files);
                    build.values.extend(self.imports(&merged, &files, base)?);
                    build.hold_submodule(self.tree, &files)?;
                }
                if matches!(here.found, Found::Chart(_)) {
                    build.remote_values =
                        files_of(&merged).filter(|text| text.contains("://")).map(str::to_owned).collect();
                    build.release = Some(self.release(found, &merged, base, &here.path));
                }
                Place::Here(here)
            }
        };
        found.target(self.tree, Engine::ArgoCd, spot, place, build).map(Some)
    }

    /// Returns why it is not known where an application is built from, or how; none where it is.
    fn open(&self, of: &Application, texts: [&str; 3], beside: &[String]) -> Option<String> {
        let name = &of.found.object.name;
        // The name says nothing about the place, but for the variables that a parent gives each of its copies.
        let copied = Some(name.as_str()).filter(|name| name.contains("${"));
        let is_named = |file: &String| path::name(file).starts_with(".argocd-source-");
        let why = unfilled(texts.into_iter().chain(copied)).or_else(|| {
            let is_any = unfilled([&**name]).is_some() && beside.iter().any(is_named);
            is_any.then(|| format!("an override file may match its name, `{name}`"))
        });
        if why.is_some() || of.is_open { of.untold.clone().or(why) } else { None }
    }

    /// Returns the files beside those of an application that change its source: all, where its name is not known here.
    fn beside(&self, directory: &str, name: &str) -> Result<Vec<String>> {
        if unfilled([name]).is_none() {
            return Ok(override_files(directory, name));
        }
        let Resolved::Directory { path: directory } = tree::resolve(self.tree, directory)? else {
            return Ok(Vec::new());
        };
        let mut names = self.tree.names(&directory)?;
        names.retain(|name| name.starts_with(OVERRIDES) && name.ends_with(".yaml"));
        Ok(names.iter().map(|name| path::join(&directory, name)).collect())
    }

    /// Returns the files from which a source takes the values of a chart; of a pattern the directory that it begins with.
    fn values(&self, found: &Document, source: &Value, places: Option<[&str; 2]>) -> Vec<String> {
        let places = files_of(source).filter_map(|text| self.values_file(found, places, text).ok());
        let plain = |place: String| match place.find(PATTERN) {
            Some(end) => place[..end].rsplit_once('/').map_or("", |(plain, _)| plain).to_owned(),
            None => place,
        };
        places.map(plain).collect()
    }

    /// Returns what Argo CD looks at in a directory of plain files.
    fn read_in(&self, directory: &str, recurse: bool) -> Result<Vec<String>> {
        if recurse {
            return self.tree.below(directory);
        }
        let names = self.tree.names(directory)?;
        Ok(names.iter().map(|name| path::join(directory, name)).collect())
    }

    /// Returns the libraries of files of Jsonnet, and what these and they import from elsewhere in this repository.
    fn imports(&self, source: &Value, files: &[String], base: &str) -> Result<Vec<String>> {
        let libraries = source.at(&["directory", "jsonnet", "libs"]).and_then(Value::list).unwrap_or_default();
        let mut read: Vec<String> = libraries.iter().filter_map(|one| path::resolve(base, one.text()?)).collect();
        let mut todo = files.to_vec();
        for library in &read {
            todo.extend(self.tree.below(library)?);
        }
        todo.retain(|file| file.ends_with("sonnet"));
        let mut seen: HashSet<String> = todo.iter().cloned().collect();
        while let Some(file) = todo.pop() {
            let Resolved::File { path: real, .. } = tree::resolve(self.tree, &file)? else { continue };
            let bytes = self.tree.read(&real)?;
            let text = String::from_utf8_lossy(&bytes);
            let names = text.split("import").skip(1).filter_map(|rest| rest.split(['\'', '"']).nth(1));
            let new = names.filter_map(|name| path::resolve(path::parent(&file), name));
            let new: Vec<String> = new.filter(|place| seen.insert(place.clone())).collect();
            read.extend(new.iter().cloned());
            todo.extend(new);
        }
        Ok(read)
    }
}

/// Returns why not every object is known that Argo CD applies from the files of a directory; none where all are.
fn unread(source: &Value, files: &[String]) -> Option<String> {
    let said = |key: &str| source.at(&["directory", key]);
    if said("disableExtensionFilter").and_then(Value::scalar).as_deref() == Some("true") {
        return Some("`disableExtensionFilter` includes files of any name".to_owned());
    }
    let globs = ["include", "exclude"].into_iter().filter_map(|key| said(key)?.text());
    let jsonnet = || {
        let file = files.iter().find(|file| file.ends_with(".jsonnet"))?;
        Some(format!("Argo CD generates its objects from Jsonnet: `{}`", path::name(file)))
    };
    unfilled(globs).or_else(jsonnet)
}

/// Returns a revision as Argo CD reads it: what looks like a version is a tag.
fn revision(identity: &Identity, url: &str, name: Option<&str>) -> Revision {
    let is_version = |name: &str| {
        let numbers = name.strip_prefix('v').unwrap_or(name).split('.');
        let is_number = |one: &str| one.starts_with(|first: char| first.is_ascii_digit());
        numbers.clone().count() > 1 && numbers.take(2).all(is_number)
    };
    identity.revision(url, name, name.is_some_and(is_version))
}

/// Returns how Argo CD builds a source.
fn build(options: Option<&[String]>, found: &Document, source: &Value) -> Build {
    let mut build = Build {
        load_restrictor: restrictor(options),
        options: options.unwrap_or_default().to_vec(),
        ..Build::default()
    };
    if let Some(kustomize) = source.get("kustomize") {
        let pairs = kustomize.mapping().unwrap_or_default().iter();
        let pairs = pairs.filter(|(key, value)| value.data != Data::Null && !NOT_OVERRIDES.contains(&&**key));
        build.overrides = pairs.map(|(key, value)| (key.clone(), value.json())).collect();
        build.components = found.texts(kustomize.get("components")).map(Component::from).collect();
        let patches = kustomize.get("patches").and_then(Value::list).unwrap_or_default();
        build.patches = patches.iter().filter_map(|patch| found.text_at(patch.get("path")?)).collect();
        build.ignore_missing_components =
            kustomize.get("ignoreMissingComponents").is_some_and(|flag| flag.data == Data::Flag(true));
        build.edits = Some(edit::commands(found, source));
    }
    let text = |key: &str| source.at(&["directory", key]).and_then(Value::scalar).unwrap_or_default();
    build.directory =
        Directory { recurse: text("recurse") == "true", include: text("include"), exclude: text("exclude") };
    build
}

/// Reads what changes a source or an application; none where it is empty.
fn change(file: &str, text: &str, before: usize) -> std::result::Result<Option<Value>, Unread> {
    match read_object(text, before) {
        Ok(Some(change)) if is_respelled(&change) => {
            let message = "Argo CD ignores the case of its keys: write them as documented";
            Err(Unread::invalid(file, change.start.line, message, false))
        }
        Ok(change) => Ok(change),
        Err((line, message)) => Err(Unread::invalid(file, line, message, false)),
    }
}

/// Reads a file that changes a source; none where there is none, and where it is empty.
fn change_in(tree: &dyn Tree, file: &str) -> Result<Option<std::result::Result<Value, Unread>>> {
    let Resolved::File { path, .. } = tree::resolve(tree, file)? else { return Ok(None) };
    Ok(change(file, &String::from_utf8_lossy(&tree.read(&path)?), 0).transpose())
}

/// Returns the files beside those of an application that change its source, whether they are there or not.
pub(super) fn override_files(directory: &str, application: &str) -> Vec<String> {
    if application.is_empty() || application.contains('/') {
        return Vec::new();
    }
    let own = format!(".argocd-source-{application}.yaml");
    [".argocd-source.yaml", &own].map(|name| path::join(directory, name)).into()
}

/// Returns whether something has a key that Argo CD takes for another one, which says what an application is built from.
fn is_respelled(value: &Value) -> bool {
    const KEYS: [&str; 10] = [
        "spec",
        "source",
        "sources",
        "sourceHydrator",
        "drySource",
        "syncSource",
        "kustomize",
        "components",
        "patches",
        "path",
    ];
    let is_other = |key: &str| KEYS.iter().any(|known| key != *known && is_same_key(known, key));
    match &value.data {
        Data::Mapping(pairs) => pairs.iter().any(|(key, value)| is_other(key) || is_respelled(value)),
        Data::List(items) => items.iter().any(is_respelled),
        _ => false,
    }
}

/// Returns a value with a JSON merge patch applied, but for some keys. What the patch brings in is put at `place`. It
/// takes nothing away: Argo CD reads what comes out into what was there.
fn merge(value: &Value, patch: &Value, place: Position, kept: &[&str]) -> Value {
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
    let is_given = |key: &str| source.get(key).is_some();
    let is_plain = is_given("directory") && !is_given("kustomize");
    match there {
        Found::Kustomization(at) | Found::Directory(at) | Found::Chart(at) if is_given("plugin") => Found::Plugin(at),
        Found::Kustomization(at) | Found::Directory(at) | Found::Chart(at) if is_given("helm") => Found::Chart(at),
        Found::Kustomization(at) | Found::Chart(at) if is_plain => Found::Directory(at),
        there => there,
    }
}

/// Returns the files from which a source takes the values of a chart, as it names them.
fn files_of(source: &Value) -> impl Iterator<Item = &str> {
    let list = |key: &str| source.at(&["helm", key]).and_then(Value::list).unwrap_or_default().iter();
    let files = list("valueFiles").chain(list("fileParameters").filter_map(|one| one.get("path")));
    // What a plugin of helm decrypts is a file.
    files.filter_map(Value::text).map(|text| text.strip_prefix("secrets://").unwrap_or(text))
}
