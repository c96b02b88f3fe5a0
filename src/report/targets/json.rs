//! The targets for machines. Fields are only ever added; `version` changes if one goes away. `schema.json` beside this
//! file describes each of them.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::record::LoadRestrictor;
use crate::report::json::{JsonObject, JsonUnread, report};
use crate::targets::{Found, Place, Reached, Target, Targets};

#[derive(Serialize)]
struct JsonTargets<'a> {
    counts: Counts,
    targets: Vec<JsonTarget<'a>>,
    unread: Vec<JsonUnread<'a>>,
}

#[derive(Serialize, Default)]
struct Counts {
    here: usize,
    external: usize,
    templated: usize,
    unread: usize,
}

#[derive(Serialize)]
struct JsonTarget<'a> {
    #[serde(flatten)]
    object: JsonObject<'a>,
    /// `here`, `external` or `templated`.
    place: &'static str,
    why: Option<&'a str>,
    path: Option<&'a str>,
    revision: Option<&'a str>,
    this_revision: bool,
    found: Option<&'static str>,
    load_restrictor: Option<&'static str>,
    build_options: &'a [String],
    components: Vec<&'a str>,
    ignore_missing_components: bool,
    overrides: &'a Map<String, Value>,
    built_by: Option<&'a str>,
    changed_by: Option<&'a str>,
    not_built: Option<&'a str>,
    hermetic: Option<bool>,
    reaches: Vec<JsonReached<'a>>,
}

#[derive(Serialize)]
struct JsonReached<'a> {
    name: &'a str,
    state: &'a str,
}

/// Returns the targets as one JSON object.
pub(crate) fn json(targets: &Targets) -> String {
    let mut counts = Counts { unread: targets.unread.len(), ..Counts::default() };
    for target in &targets.targets {
        match target.place {
            Place::Here(_) => counts.here += 1,
            Place::External(_) => counts.external += 1,
            Place::Templated(_) => counts.templated += 1,
        }
    }
    report(&JsonTargets {
        counts,
        targets: targets.targets.iter().map(of).collect(),
        unread: targets.unread.iter().map(JsonUnread::from).collect(),
    })
}

fn reached(one: &Reached) -> JsonReached<'_> {
    JsonReached { name: &one.name, state: &one.state }
}

fn of(target: &Target) -> JsonTarget<'_> {
    let object = &target.object;
    let (place, why, here) = match &target.place {
        Place::Here(here) => {
            let why = match &here.found {
                Found::Nothing(why) => Some(why.as_str()),
                Found::Kustomization(_)
                | Found::Directory(_)
                | Found::Chart(_)
                | Found::Plugin(_)
                | Found::Submodule(_) => None,
            };
            ("here", why, Some(here))
        }
        Place::External(why) => ("external", Some(why.as_str()), None),
        Place::Templated(why) => ("templated", Some(why.as_str()), None),
    };
    let build = &target.build;
    let changer = target.changed_by.as_ref();
    JsonTarget {
        object: target.into(),
        place,
        why,
        path: here.map(|here| match here.path.as_str() {
            "" => ".",
            path => path,
        }),
        revision: here.and_then(|here| here.revision.name.as_deref()),
        this_revision: here.is_some_and(|here| here.revision.is_this),
        found: here.map(|here| here.found.id()),
        load_restrictor: build.load_restrictor.map(|restrictor| match restrictor {
            LoadRestrictor::RootOnly => "root-only",
            LoadRestrictor::None => "none",
        }),
        build_options: &build.options,
        components: build.components.iter().map(|one| one.text.text.as_str()).collect(),
        ignore_missing_components: build.ignore_missing_components,
        overrides: &build.overrides,
        built_by: object.built_by.as_deref(),
        changed_by: changer.map(|by| by.name.as_str()),
        not_built: changer.and_then(|by| by.not_built.as_deref()),
        hermetic: target.reaches.as_ref().map(Vec::is_empty),
        reaches: target.reaches.iter().flatten().map(reached).collect(),
    }
}
