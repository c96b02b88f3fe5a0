//! The applications that an `ApplicationSet` makes, as far as the tree tells.

use std::collections::BTreeSet;

use super::super::scan::Document;
use super::super::{Build, Component, DirectorySet, Engine, Object, Place, Target, Targets, Unread, Why, is_url};
use super::Argo;
use super::generator::{MOST, Reader, kinds};
use super::pattern::Pattern;
use super::template::{Parameters, fill_known};
use crate::kustomization::{Data, Value, read_object};
use crate::message::failure;
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::tree::path;

/// What the fields begin with that say where an application is built from.
const SOURCE: &str = "source";

/// Adds the applications of a set; those that only the cluster can make become one templated target.
pub(super) fn expand(
    argo: &Argo<'_>,
    set: &Document,
    applications: &mut Vec<Document>,
    targets: &mut Targets,
) -> failure::Result<()> {
    let spec = set.value.get("spec");
    // Without generators or a template it is a patch for one.
    let (Some(generators), Some(template)) =
        (spec.and_then(|spec| spec.get("generators")), spec.and_then(|spec| spec.get("template")))
    else {
        return Ok(());
    };
    let Some(generators) = generators.list() else {
        targets.unread.push(set.mistyped(generators, &["spec", "generators"], "a list"));
        return Ok(());
    };
    let go = spec.and_then(|spec| spec.get("goTemplate"));
    let is_go = go.is_some_and(|go| go.data == Data::Flag(true));
    let mut reader = Reader::new(argo.tree, argo.identity, set, is_go);
    let patch = spec.and_then(|spec| spec.get("templatePatch"));
    let mut count = 0;
    let kinds = |generator| kinds(generator).into_iter().map(move |kind| (generator, kind));
    for (generator, (kind, body)) in generators.iter().flat_map(kinds) {
        let given = reader.generate(generator, kind, body)?;
        let own = body.get("template");
        let template = own
            .map_or_else(|| template.clone(), |own| super::merge(template, &stated(own), (own.line, own.column), &[]));
        let mut told = BTreeSet::new();
        let mut tell = |why: &str, build: Build, targets: &mut Targets| {
            if told.insert(why.to_owned()) || !build.is_plain() {
                targets.targets.push(unknown(set, generator, why, build));
            }
        };
        for parameters in given.all {
            count += 1;
            if count > MOST {
                break;
            }
            let Some(mut found) = make(set, &template, &parameters, is_go) else {
                let why = "its template is more than names of parameters";
                let unknown = unknown(set, &template, why, Build::default());
                targets.targets.push(unknown);
                break;
            };
            if let Some(patch) = patch {
                match patched(&found, patch, &parameters, is_go) {
                    Some(value) => found.value = value,
                    None => {
                        let mut build = argo.added(&found, &mut targets.unread)?;
                        build.components.extend(urls(set, patch));
                        tell("`templatePatch` may change it", build, targets);
                        continue;
                    }
                }
            }
            match &given.more {
                Some(why) if !has_place(&found.value) => {
                    let build = argo.added(&found, &mut targets.unread)?;
                    tell(why, build, targets);
                }
                _ => applications.push(found),
            }
        }
    }
    if count > MOST {
        let name = set.object.full_name();
        let message = format!("ApplicationSet {name} makes more than {MOST} applications: the rest is not read");
        let file = set.object.file.clone();
        targets.unread.push(Unread { file, line: set.object.line, message, why: Why::Limit });
    }
    targets.sets.append(&mut reader.sets);
    targets.unread.append(&mut reader.unread);
    Ok(())
}

/// Returns the template of a generator without what it leaves empty: Argo CD takes that from the set.
fn stated(own: &Value) -> Value {
    let Data::Mapping(pairs) = &own.data else { return own.clone() };
    let is_empty = |value: &Value| match &value.data {
        Data::Null => true,
        Data::Text(text) => text.is_empty(),
        Data::List(items) => items.is_empty(),
        _ => false,
    };
    let pairs = pairs.iter().filter(|(_, value)| !is_empty(value));
    own.with(Data::Mapping(pairs.map(|(key, value)| (key.clone(), stated(value))).collect()))
}

/// Names what only the cluster can make.
fn unknown(set: &Document, at: &Value, why: &str, build: Build) -> Target {
    let (spot, place) = ((at.line, at.column), Place::Templated(why.to_owned()));
    set.target(Engine::ArgoCd, spot, place, build)
}

/// Returns an application as a `templatePatch` changes it; none where it may change what is built, and only the cluster
/// knows how.
fn patched(found: &Document, patch: &Value, parameters: &Parameters, is_go: bool) -> Option<Value> {
    let (filled, is_all) = fill_known(patch.text()?, parameters, is_go);
    if let (true, Ok(change)) = (is_all, read_object(&filled, 0))
        && !change.as_ref().is_some_and(super::is_respelled)
    {
        let change = change.map(|change| super::merge(&found.value, &change, (patch.line, patch.column), &[]));
        return Some(change.unwrap_or_else(|| found.value.clone()));
    }
    let mut actions = filled.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap_or(rest));
    let prints_nothing = |action: &str| {
        let action = action.trim_matches(['-', ' ']);
        let is_test = ["if ", "else if "].iter().any(|word| action.starts_with(word));
        is_go && (is_test || ["else", "end"].contains(&action))
    };
    // Keys are read without regard to case, and with escapes and tags.
    let may_move =
        filled.to_lowercase().contains(SOURCE) || filled.contains(['\\', '!']) || !actions.all(prints_nothing);
    (!may_move).then(|| found.value.clone())
}

/// Returns the URLs that a patch names besides repositories.
fn urls(set: &Document, patch: &Value) -> Vec<Component> {
    let mut before = "";
    let words = patch.text().unwrap_or_default().split([' ', '\t', '\r', '\n', '"', '\'', ',', '[', ']', '{', '}']);
    let urls = words.filter(|word| !word.trim_matches(':').is_empty()).filter(|word| {
        let key = std::mem::replace(&mut before, word).trim_end_matches(':');
        !key.eq_ignore_ascii_case("repourl") && is_url(word)
    });
    let urls = urls.map(|url| patch.with(Data::Text(url.to_owned())));
    urls.filter_map(|url| set.text_at(&url)).map(Component::from).collect()
}

/// Returns an application; none where the template gives it no name.
///
/// What does not matter may stay a template: only where the application is built from has to be known.
fn make(set: &Document, template: &Value, parameters: &Parameters, is_go: bool) -> Option<Document> {
    let filled = template.map_texts(&mut |text| fill_known(text, parameters, is_go).0);
    let name = filled.at(&["metadata", "name"]).and_then(Value::scalar)?;
    let namespace = filled.at(&["metadata", "namespace"]).and_then(Value::scalar);
    let object =
        Object { namespace: namespace.unwrap_or_else(|| set.object.namespace.clone()), name, ..set.object.clone() };
    Some(set.template(object, filled))
}

/// Returns whether it is known where an application is built from, whatever else of it only the cluster knows.
fn has_place(application: &Value) -> bool {
    let spec = application.get("spec");
    let spec = |keys: &[&str]| spec.and_then(|spec| spec.at(keys));
    let sources = spec(&["sources"]).and_then(Value::list).unwrap_or_default();
    let one = [spec(&["source"]), spec(&["sourceHydrator", "drySource"])];
    let mut sources = sources.iter().chain(one.into_iter().flatten());
    let is_known = |source: &Value, key: &str| {
        let text = source.get(key).and_then(Value::text);
        text.is_none_or(|text| !text.contains("{{"))
    };
    sources.all(|source| ["repoURL", "path", "chart", "targetRevision"].into_iter().all(|key| is_known(source, key)))
}

impl DirectorySet {
    /// Returns what tells whether it makes an application of a directory, named from the top of what it reads.
    pub(crate) fn matcher(&self) -> impl Fn(&str) -> bool {
        let patterns = self.patterns.iter();
        let patterns = patterns.filter_map(|(one, excludes)| Some((Pattern::new(one)?, *excludes)));
        let patterns: Vec<(Pattern, bool)> = patterns.collect();
        move |directory| {
            let matches = |exclude: bool| {
                let mut patterns = patterns.iter().filter(|(_, excludes)| *excludes == exclude);
                patterns.any(|(pattern, _)| pattern.matches(directory))
            };
            let is_hidden = path::components(directory).any(|name| name.starts_with('.'));
            !is_hidden && matches(false) && !matches(true)
        }
    }
}

/// Returns the pattern that excludes a directory which localizing adds, and those like it in other applications.
pub(crate) fn exclusion(directory: &str) -> String {
    let names: Vec<&str> = path::components(directory).collect();
    let Some(at) = names.iter().position(|name| *name == LOCALIZED_FILES) else {
        return directory.to_owned();
    };
    let star = |_| "*";
    let above = names.iter().take(at).map(star);
    let below = names.iter().skip(at + 1).map(star);
    let names: Vec<&str> = above.chain([LOCALIZED_FILES]).chain(below).collect();
    names.join("/")
}
