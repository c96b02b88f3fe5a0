//! The applications that an `ApplicationSet` makes, as far as the tree tells.

use std::collections::BTreeSet;

use super::super::scan::Document;
use super::super::{Build, DirectorySet, Engine, Identity, Object, Place, Target, Targets, Unread};
use super::generator::{MOST, Reader, kinds};
use super::pattern::Pattern;
use super::template::{Parameters, fill_known, may_move};
use crate::failure::Result;
use crate::kustomization::{Data, Value};
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::tree::{Listing, path};

/// Adds the applications of a set; those that only the cluster can make become one templated target.
pub(super) fn expand(
    tree: &dyn Listing,
    identity: &Identity,
    set: &Document,
    applications: &mut Vec<Document>,
    targets: &mut Targets,
) -> Result<()> {
    let spec = set.value.get("spec");
    // Without generators or a template it is a patch for one.
    let (Some(generators), Some(template)) = (
        spec.and_then(|spec| spec.get("generators")),
        spec.and_then(|spec| spec.get("template")),
    ) else {
        return Ok(());
    };
    let Some(generators) = generators.list() else {
        super::wrong(
            set,
            generators,
            &["spec", "generators"],
            "a list",
            &mut targets.unread,
        );
        return Ok(());
    };
    let go = spec.and_then(|spec| spec.get("goTemplate"));
    let is_go = go.is_some_and(|go| go.data == Data::Flag(true));
    let mut reader = Reader::new(tree, identity, set, is_go);
    let patch = spec.and_then(|spec| spec.get("templatePatch"));
    let moves = |parameters: &Parameters| {
        let text = patch.map(Value::text);
        text.is_some_and(|text| text.is_none_or(|text| may_move(text, parameters, is_go)))
    };
    let mut count = 0;
    let kinds = |generator| {
        kinds(generator)
            .into_iter()
            .map(move |kind| (generator, kind))
    };
    for (generator, (kind, body)) in generators.iter().flat_map(kinds) {
        let given = reader.generate(generator, kind, body)?;
        let own = body.get("template");
        let template = own.map_or_else(|| template.clone(), |own| filled_up(own, template));
        let mut told = BTreeSet::new();
        let mut tell = |why: &str, targets: &mut Targets| {
            if told.insert(why.to_owned()) {
                targets.targets.push(unknown(set, generator, why));
            }
        };
        for parameters in given.all {
            count += 1;
            if count > MOST {
                break;
            }
            if moves(&parameters) {
                tell("`templatePatch` may change it", targets);
                continue;
            }
            let Some(found) = make(set, &template, &parameters, is_go) else {
                let why = "its template is more than names of parameters";
                targets.targets.push(unknown(set, &template, why));
                break;
            };
            match &given.more {
                Some(why) if !has_place(&found.value) => tell(why, targets),
                _ => applications.push(found),
            }
        }
    }
    if count > MOST {
        targets.unread.push(Unread::too_much(
            &set.object.file,
            set.object.line,
            format!(
                "ApplicationSet {} makes more than {MOST} applications: the rest is not read",
                set.object.full_name()
            ),
        ));
    }
    targets.sets.append(&mut reader.sets);
    targets.unread.append(&mut reader.unread);
    Ok(())
}

/// Names what only the cluster can make.
fn unknown(set: &Document, at: &Value, why: &str) -> Target {
    let (spot, place) = ((at.line, at.column), Place::Templated(why.to_owned()));
    set.target(Engine::ArgoCd, spot, place, Build::default())
}

/// Returns an application; none where the template gives it no name.
///
/// What does not matter may stay a template: only where the application is built from has to be known.
fn make(
    set: &Document,
    template: &Value,
    parameters: &Parameters,
    is_go: bool,
) -> Option<Document> {
    let filled = template.map_texts(&mut |text| fill_known(text, parameters, is_go).0);
    let name = filled.at(&["metadata", "name"]).and_then(Value::scalar)?;
    let namespace = filled
        .at(&["metadata", "namespace"])
        .and_then(Value::scalar);
    let object = Object {
        namespace: namespace.unwrap_or_else(|| set.object.namespace.clone()),
        name,
        ..set.object.clone()
    };
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
    sources.all(|source| {
        ["repoURL", "path", "chart", "targetRevision"]
            .into_iter()
            .all(|key| is_known(source, key))
    })
}

/// Returns the template of a generator with what it leaves empty taken from that of the set, as Argo CD merges them.
fn filled_up(own: &Value, of_set: &Value) -> Value {
    match (&own.data, &of_set.data) {
        (Data::Mapping(own_pairs), Data::Mapping(pairs)) => {
            let both = own_pairs.iter().map(|(key, value)| {
                let value = match of_set.get(key) {
                    Some(other) => filled_up(value, other),
                    None => value.clone(),
                };
                (key.clone(), value)
            });
            let rest = pairs.iter().filter(|(key, _)| own.get(key).is_none());
            Value {
                data: Data::Mapping(both.chain(rest.cloned()).collect()),
                ..*own
            }
        }
        (Data::Null, _) => of_set.clone(),
        (Data::Text(text), _) if text.is_empty() => of_set.clone(),
        (Data::List(items), _) if items.is_empty() => of_set.clone(),
        _ => own.clone(),
    }
}

impl DirectorySet {
    /// Returns what tells whether it makes an application of a directory, named from the top of what it reads.
    pub fn matcher(&self) -> impl Fn(&str) -> bool {
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
#[must_use]
pub fn exclusion(directory: &str) -> String {
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
