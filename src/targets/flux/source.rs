//! The sources of Flux, and which of them are this repository.

use std::rc::Rc;

use super::super::scan::Document;
use super::super::{Artifact, Identity, Object, Revision};
use super::{copied, is_variable, unfilled};
use crate::kustomization::Value;
use crate::message::failure::nearest;
use crate::message::redact;
use crate::tree::path;

/// What a `sourceRef` leads to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bound {
    /// This repository.
    Here {
        /// The directory that is its top there.
        base: String,
        revision: Revision,
        artifact: Option<Rc<Artifact>>,
    },
    /// Something else, and why.
    Elsewhere(String),
    /// Only known in the cluster.
    Templated(String),
}

impl Bound {
    /// Returns whether both are the same files of the same revision, whatever the names of the sources.
    pub(super) fn packs_the_same(&self, other: &Bound) -> bool {
        let unnamed = |bound: &Bound| {
            let mut bound = bound.clone();
            if let Bound::Here { artifact: Some(artifact), .. } = &mut bound {
                Rc::make_mut(artifact).object = None;
            }
            bound
        };
        unnamed(self) == unnamed(other)
    }
}

struct Source {
    /// What makes it, under its own kind and name.
    object: Object,
    /// The directory from which that is deployed.
    home: String,
    bound: Bound,
}

impl Source {
    fn of(found: &Document, kind: &str, name: &str, bound: Bound) -> Source {
        let object = Object { kind: kind.to_owned(), name: name.to_owned(), ..found.object.clone() };
        Source { object, home: found.home.clone(), bound }
    }
}

/// The sources of a tree.
pub(super) struct Sources(Vec<Source>);

/// The kind and the name of the source that bootstrapping makes of the repository of a cluster.
const BOOTSTRAPPED: (&str, &str) = ("GitRepository", "flux-system");

/// Returns what a URL of another repository is.
pub(super) fn elsewhere(url: &str) -> Bound {
    Bound::Elsewhere(format!("it is in {}", redact::url(url)))
}

impl Sources {
    /// Finds what the objects say. With `is_bootstrapped`, what bootstrapping made is this repository: the command line of
    /// Flux made it elsewhere, or the chart of a `FluxInstance` did.
    pub(super) fn of(objects: &[Document], identity: &Identity, is_bootstrapped: bool) -> Self {
        let mut sources = Vec::new();
        for found in objects {
            let Object { kind, name, .. } = &found.object;
            sources.extend(match kind.as_str() {
                // Without a URL it is a patch for one.
                "GitRepository" | "OCIRepository" => {
                    let url = found.value.at(&["spec", "url"]).and_then(Value::text);
                    url.map(|url| Source::of(found, kind, name, of_url(found, url, identity)))
                }
                "Bucket" | "ExternalArtifact" => {
                    Some(Source::of(found, kind, name, Bound::Elsewhere(format!("its source is a {kind}"))))
                }
                "FluxInstance" => {
                    let made = of_instance(found, identity);
                    made.map(|(kind, name, bound)| Source::of(found, &kind, &name, bound))
                }
                _ => None,
            });
        }
        if is_bootstrapped {
            let [kind, namespace, name] = [BOOTSTRAPPED.0, BOOTSTRAPPED.1, BOOTSTRAPPED.1].map(str::to_owned);
            let object = Object { file: String::new(), line: 0, kind, namespace, name, built_by: None };
            let bound = Bound::Here { base: String::new(), revision: Revision::this(), artifact: Some(Rc::default()) };
            sources.push(Source { object, home: String::new(), bound });
        }
        let mut sources = Sources(sources);
        sources.add_copied(objects);
        sources
    }

    /// Returns whether an object says what bootstrapping made.
    pub(super) fn has_bootstrapped(&self) -> bool {
        self.0.iter().any(|source| (&*source.object.kind, &*source.object.name) == BOOTSTRAPPED)
    }

    /// Adds what each `ArtifactGenerator` makes of these sources.
    fn add_copied(&mut self, objects: &[Document]) {
        let generators = objects.iter().filter(|found| found.object.kind == "ArtifactGenerator");
        let mut made = Vec::new();
        for found in generators {
            let artifacts = found.value.at(&["spec", "artifacts"]);
            for artifact in artifacts.and_then(Value::list).unwrap_or_default() {
                let Some(name) = artifact.get("name").and_then(Value::text) else {
                    continue;
                };
                made.push(Source::of(found, "ExternalArtifact", name, copied::bound(self, found, artifact)));
            }
        }
        self.0.extend(made);
    }

    /// Returns what an object means by its `sourceRef`.
    ///
    /// A namespace need not be written: a kustomization gives it. Of several sources of one name, as in a repository
    /// with many clusters, the nearest counts: one of the same build, else one whose directory is near, of these one of the
    /// same file.
    pub(super) fn bind(&self, found: &Document, kind: &str, namespace: &str, name: &str) -> Bound {
        // Its own where it names none.
        let namespace = match namespace {
            "" => &found.object.namespace,
            namespace => namespace,
        };
        let fits = |source: &&Source| {
            let is_in = |other: &str| other == namespace || other.is_empty() || namespace.is_empty();
            source.object.kind == kind && source.object.name == name && is_in(&source.object.namespace)
        };
        let object = &found.object;
        let near = |source: &Source| {
            let is_of_same = object.built_by.is_some() && source.object.built_by == object.built_by;
            let distance = path::common(&source.home, &found.home).len();
            (is_of_same, distance, source.object.file == object.file)
        };
        let candidates: Vec<&Source> = self.0.iter().filter(fits).collect();
        let nearest = candidates.iter().map(|source| near(source)).max();
        let mut nearest = candidates.iter().filter(|source| Some(near(source)) == nearest);
        let Some(first) = nearest.next() else {
            let why = match kind {
                "ExternalArtifact" => {
                    format!("its source is the {kind} `{name}`, which is made in the cluster")
                }
                _ => {
                    let why = format!("no {kind} `{name}` in this repository says what it is");
                    match self.like(kind, name) {
                        Some(like) => format!("{why}: did you mean `{like}`?"),
                        None => why,
                    }
                }
            };
            return Bound::Elsewhere(why);
        };
        if nearest.all(|other| other.bound.packs_the_same(&first.bound)) {
            return first.bound.clone();
        }
        let is_here = |source: &&&Source| matches!(source.bound, Bound::Here { .. });
        if candidates.iter().all(|source| is_here(&source))
            && let Bound::Here { base, .. } = &first.bound
        {
            // The same files, whichever it is, but nobody knows which revision.
            return Bound::Here {
                base: base.clone(),
                revision: Revision { name: None, is_this: false },
                artifact: None,
            };
        }
        Bound::Elsewhere(format!("there are several {kind} `{name}`"))
    }

    /// Returns a source that has the same name in another namespace, or nearly the same.
    fn like(&self, kind: &str, name: &str) -> Option<String> {
        let of_kind = || self.0.iter().map(|source| &source.object).filter(|object| object.kind == kind);
        match of_kind().find(|object| object.name == name) {
            Some(object) => Some(format!("{}/{name}", object.namespace)),
            None => nearest(name, of_kind().map(|object| object.name.as_str())).map(str::to_owned),
        }
    }
}

/// Returns what a source with a URL is.
fn of_url(found: &Document, url: &str, identity: &Identity) -> Bound {
    if is_variable(url) {
        return Bound::Templated(unfilled(url));
    }
    let spec = |keys: &[&str]| {
        let keys: Vec<&str> = std::iter::once("spec").chain(keys.iter().copied()).collect();
        found.value.at(&keys)
    };
    let reference = |key: &str| spec(&["ref", key]).and_then(Value::scalar);
    // In the order in which Flux takes them.
    let named = ["commit", "digest", "name", "semver", "tag", "branch"].into_iter().find_map(reference);
    if let Some(named) = named.as_deref().filter(|named| is_variable(named)) {
        return Bound::Templated(unfilled(named));
    }
    let Some(base) = identity.directory_of(url) else {
        return match named {
            Some(named) => Bound::Elsewhere(format!("it is in {} at {named}", redact::url(url))),
            None => elsewhere(url),
        };
    };
    let strings = |value: Option<&Value>, key: Option<&str>| -> Vec<String> {
        let items = value.and_then(Value::list).unwrap_or_default().iter();
        let texts = items.filter_map(|item| key.map_or(Some(item), |key| item.get(key))?.text());
        texts.map(str::to_owned).collect()
    };
    let below = |written: String| path::join(base, &path::resolve("", &written).unwrap_or_default());
    Bound::Here {
        base: base.to_owned(),
        revision: identity.revision(named.as_deref()),
        artifact: Some(Rc::new(Artifact {
            object: Some(found.object.clone()),
            ignore: spec(&["ignore"]).and_then(Value::text).map(str::to_owned),
            sparse: strings(spec(&["sparseCheckout"]), None).into_iter().map(below).collect(),
            included: strings(spec(&["include"]), Some("toPath")).into_iter().map(below).collect(),
            copied: Vec::new(),
        })),
    }
}

/// Returns the source that a `FluxInstance` makes: its kind, its name, and what it is.
pub(super) fn of_instance(found: &Document, identity: &Identity) -> Option<(String, String, Bound)> {
    let sync = found.value.at(&["spec", "sync"])?;
    let text = |key: &str| sync.get(key).and_then(Value::text);
    let url = text("url")?;
    let kind = text("kind").unwrap_or_default();
    let name = text("name").unwrap_or(match found.object.namespace.as_str() {
        "" => "flux-system",
        namespace => namespace,
    });
    let bound = match identity.directory_of(url) {
        _ if is_variable(url) => Bound::Templated(unfilled(url)),
        None => elsewhere(url),
        Some(base) => Bound::Here {
            base: base.to_owned(),
            revision: identity.revision(text("ref")),
            artifact: Some(Rc::default()),
        },
    };
    Some((kind.to_owned(), name.to_owned(), bound))
}

impl Artifact {
    /// Returns the directory of another source that a path lies in.
    pub(super) fn covers(&self, place: &str) -> Option<&str> {
        let included = self.included.iter().map(String::as_str);
        included.filter(|included| !included.is_empty()).find(|included| path::is_in(place, included))
    }
}
