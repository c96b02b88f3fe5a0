//! The sources of Flux, and which of them are this repository.

use std::cell::RefCell;
use std::rc::Rc;

use super::super::scan::Document;
use super::super::{Artifact, Identity, ObjectRef, Revision, Targets, unfilled};
use super::copied;
use super::ignore::Ignores;
use super::models::{ARTIFACT, BUCKET, GENERATOR, GIT, INSTANCE, Include, Instance, OCI, Reference, Repository, Sync};
use crate::message::failure::Result;
use crate::message::redact;
use crate::tree::{Entry, Tree, path};

/// The meaning of a `sourceRef`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bound {
    /// This repository.
    Local {
        /// The directory that is its top there.
        base: String,
        revision: Revision,
        artifact: Rc<Artifact>,
    },
    /// Something else, and why.
    Elsewhere(String),
    /// Something else, or made of this repository: nothing here says which, and why.
    MaybeLocal(String),
    /// Only known in the cluster.
    Templated(String),
}

/// The meaning of the `sourceRef` of an object.
pub(super) struct BoundSource {
    pub(super) bound: Bound,
    /// The objects that define it.
    pub(super) defined_by: Vec<ObjectRef>,
}

impl From<Bound> for BoundSource {
    fn from(bound: Bound) -> Self {
        BoundSource { bound, defined_by: Vec::new() }
    }
}

struct FluxSource {
    /// The object that makes it, under its own kind and name.
    object: ObjectRef,
    /// The directory from which that is deployed.
    home: String,
    source: BoundSource,
}

/// What the source is that `flux bootstrap` made, if no object of the tree defines it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bootstrapped {
    Unknown,
    ThisRepository,
}

/// The sources of a tree.
pub(super) struct FluxSources<'a> {
    pub(super) tree: &'a dyn Tree,
    identity: &'a Identity,
    ignores: &'a Ignores,
    /// The targets that are found so far, which count how much was searched.
    targets: RefCell<&'a mut Targets>,
    all: Vec<FluxSource>,
    /// Why the list of artifacts may be incomplete; `None` if it is complete.
    more: Option<String>,
}

/// The kind and the name of the source that bootstrapping makes of the repository of a cluster.
const BOOTSTRAPPED: (&str, &str) = (GIT, "flux-system");

impl<'a> FluxSources<'a> {
    /// Finds the sources that objects of the tree define, and the artifacts that generators make of them. With
    /// [`Bootstrapped::ThisRepository`], this repository is also the source of `flux bootstrap`. The caller asks for
    /// that only if no object defines this source ([`Self::has_bootstrapped`]).
    pub(super) fn of(
        tree: &'a dyn Tree,
        objects: &[Document],
        identity: &'a Identity,
        ignores: &'a Ignores,
        targets: &'a mut Targets,
        bootstrapped: Bootstrapped,
    ) -> Self {
        let (targets, all, more) = (RefCell::new(targets), Vec::new(), None);
        let mut sources = FluxSources { tree, identity, ignores, targets, all, more };
        for document in objects {
            // A `sourceRef` names a kind and a name, whatever object defines the source.
            let ObjectRef { kind, name, namespace, .. } = &document.object;
            match kind.as_str() {
                GIT | OCI => sources.add(document, kind, name, sources.of_url(document)),
                BUCKET | ARTIFACT => {
                    let bound = Bound::MaybeLocal(format!("its source is a {kind}"));
                    sources.add(document, kind, name, Some(bound));
                }
                INSTANCE => {
                    let Instance { sync, .. } = document.spec();
                    let namespace = Some(&**namespace).filter(|namespace| !namespace.is_empty());
                    // Without a name in `sync`, the operator names the source after the namespace of the instance.
                    let name = sync.name.as_deref().or(namespace).unwrap_or(BOOTSTRAPPED.1);
                    sources.add(document, &sync.kind, name, sources.of_instance(&sync));
                }
                _ => {}
            }
        }
        // Before the generators, which may copy from it. No object of the tree has its kind and name.
        if bootstrapped == Bootstrapped::ThisRepository {
            // The command line of Flux, or the chart of a `FluxInstance`, made its object elsewhere.
            let (kind, name) = BOOTSTRAPPED;
            let object = ObjectRef { namespace: name.to_owned(), ..ObjectRef::of("", 0, kind, name.to_owned()) };
            let (revision, artifact) = (Revision::this(), Rc::new(sources.whole()));
            let source = Bound::Local { base: String::new(), revision, artifact }.into();
            sources.all.push(FluxSource { object, home: String::new(), source });
        }
        // The artifacts that each generator makes from these sources.
        let generators = objects.iter().filter(|document| document.object.kind == GENERATOR);
        let all: Vec<_> = generators.map(|document| (document, copied::artifacts_of(&sources, document))).collect();
        for (generator, made) in all {
            sources.more = sources.more.take().or(made.more);
            for (name, BoundSource { bound, defined_by }) in made.artifacts {
                sources.add(generator, ARTIFACT, &name, Some(bound));
                sources.all.last_mut().into_iter().for_each(|last| last.source.defined_by.extend(defined_by.clone()));
            }
        }
        sources
    }

    /// Adds the source that an object makes, if it makes one.
    fn add(&mut self, document: &Document, kind: &str, name: &str, bound: Option<Bound>) {
        let Some(bound) = bound else { return };
        let (kind, name) = (kind.to_owned(), name.to_owned());
        let object = ObjectRef { kind, name, ..document.object.clone() };
        let source = BoundSource { bound, defined_by: vec![document.object.clone()] };
        self.all.push(FluxSource { object, home: document.home.clone(), source });
    }

    /// Whether an object defines the source that bootstrapping made.
    pub(super) fn has_bootstrapped(&self) -> bool {
        self.all.iter().any(|source| (&*source.object.kind, &*source.object.name) == BOOTSTRAPPED)
    }

    /// The meaning of a source with a URL; `None` without a URL, as in a patch for a source.
    fn of_url(&self, document: &Document) -> Option<Bound> {
        let spec: Repository = document.spec();
        let is_git = document.object.kind == GIT;
        let (named, is_tag) = spec.revision.named(is_git);
        Some(self.bind_url(spec.url.as_deref()?, named, is_tag, |base| {
            // A path that climbs out counts as the top of the source.
            let below = |written: &str| path::join(base, &path::resolve("", written).unwrap_or_default());
            // Only a git repository is packed by Flux itself; who packed an artifact of a registry may have left out
            // any file.
            let mut ignores = if is_git {
                self.ignores.for_source(&spec.ignore, &format!(" of {}", document.object))
            } else {
                Ignores::default()
            };
            ignores.sparse = spec.sparse_checkout.iter().map(|written| below(written)).collect();
            let included = spec.include.iter().map(Include::directory).map(below).collect();
            Artifact { ignores, included, has_submodules: spec.recurse_submodules }
        }))
    }

    /// The source that a `FluxInstance` makes; `None` without a URL.
    pub(super) fn of_instance(&self, sync: &Sync) -> Option<Bound> {
        let (url, is_tag) = (sync.url.as_deref()?, false);
        Some(self.bind_url(url, sync.revision.as_deref(), is_tag, |_| self.whole()))
    }

    /// The artifact of a source that packs the whole repository.
    fn whole(&self) -> Artifact {
        Artifact { ignores: self.ignores.for_source("", ""), ..Artifact::default() }
    }

    /// The meaning of the URL of a source at a revision, if one is `named`; `is_tag` tells whether the object calls it
    /// a tag. `artifact` makes the artifact from the directory that is the top at the URL.
    fn bind_url(&self, url: &str, named: Option<&str>, is_tag: bool, artifact: impl FnOnce(&str) -> Artifact) -> Bound {
        if let Some(why) = unfilled([url].into_iter().chain(named)) {
            return Bound::Templated(why);
        }
        let Some(base) = self.identity.directory_of(url) else {
            let at = named.map(|named| format!(" at {named}")).unwrap_or_default();
            let why = format!("it is in {}{at}", redact::url(url));
            // An artifact of a registry may be made of this repository.
            return if url.starts_with("oci://") { Bound::MaybeLocal(why) } else { Bound::Elsewhere(why) };
        };
        let revision = self.identity.revision(url, named, is_tag);
        Bound::Local { base: base.to_owned(), revision, artifact: Rc::new(artifact(base)) }
    }

    /// Counts work for a generator. Fails with the reason that the generator gives if it is too much.
    pub(super) fn spend(&self, work: usize) -> Result<(), String> {
        self.targets.borrow_mut().may_do(work).then_some(()).ok_or("is one of too many".to_owned())
    }

    /// The entry of the tree at a path. Fails with the reason that a generator gives.
    pub(super) fn entry(&self, path: &str) -> Result<Option<Entry>, String> {
        self.tree.entry(path).map_err(|failure| format!("copies from `{path}`: {}", failure.message))
    }

    /// The names in a directory of the tree. Fails with the reason that a generator gives.
    pub(super) fn names(&self, path: &str) -> Result<Vec<String>, String> {
        let names = self.tree.names(path);
        let names = names.map_err(|failure| format!("copies from `{path}`: {}", failure.message))?;
        self.spend(names.len())?;
        Ok(names)
    }

    /// The meaning of the `sourceRef` of an object: that of the nearest source with its kind, name and namespace.
    pub(super) fn bind(&self, document: &Document, reference: &Reference) -> BoundSource {
        let Reference { kind, namespace, name, .. } = reference;
        if let Some(why) = unfilled([kind, namespace, name].map(String::as_str)) {
            return Bound::Templated(why).into();
        }
        let nearest = self.nearest(document, reference);
        let defined_by = nearest.iter().flat_map(|source| source.defined_by.iter().cloned()).collect();
        BoundSource { bound: self.agreed(&nearest, kind, name), defined_by }
    }

    /// The sources with the kind, name and namespace of a reference that are nearest to the object that has it. A
    /// repository with many clusters has many sources of one name, and several of these may be equally near.
    fn nearest(&self, document: &Document, Reference { kind, namespace, name, .. }: &Reference) -> Vec<&BoundSource> {
        // A reference without a namespace is to one in the namespace of the object.
        let namespace = if namespace.is_empty() { &document.object.namespace } else { namespace };
        // A namespace need not be written: a kustomization may add it.
        let is_in = |other: &str| other == namespace || other.is_empty() || namespace.is_empty();
        let candidates = self.all.iter().filter(|FluxSource { object, .. }| {
            object.kind == *kind && object.name == *name && is_in(&object.namespace)
        });
        // One from the same build is nearest, then one in a near directory, preferably in the same file.
        let nearness = |source: &FluxSource| {
            let (object, other) = (&document.object, &source.object);
            let is_of_same_build = object.built_by.is_some() && other.built_by == object.built_by;
            (is_of_same_build, path::common(&source.home, &document.home).len(), other.file == object.file)
        };
        let best = candidates.clone().map(nearness).max();
        candidates.filter(|source| Some(nearness(source)) == best).map(|source| &source.source).collect()
    }

    /// The meaning of the nearest sources with a kind and a name: something else in the cluster may make one that no
    /// object defines, and several must agree.
    fn agreed(&self, nearest: &[&BoundSource], kind: &str, name: &str) -> Bound {
        let is_foreign = |source: &&BoundSource| matches!(source.bound, Bound::Elsewhere(_) | Bound::MaybeLocal(_));
        match (nearest, &self.more) {
            ([], Some(why)) if kind == ARTIFACT => Bound::Templated(why.clone()),
            ([], None) if kind == ARTIFACT => {
                Bound::MaybeLocal(format!("its source is the {kind} `{name}`, which the cluster generates"))
            }
            ([], _) => Bound::MaybeLocal(format!("no {kind} `{name}` is defined in this repository")),
            ([first, others @ ..], _) if others.iter().all(|other| other.bound == first.bound) => first.bound.clone(),
            _ if nearest.iter().all(is_foreign) => Bound::MaybeLocal(format!("there are several {kind} `{name}`")),
            _ => Bound::Templated(format!("there are several {kind} `{name}`")),
        }
    }
}

impl Artifact {
    /// The directory of another source that contains a path; `None` if the path is in no other source.
    pub(super) fn covers(&self, path: &str) -> Option<&str> {
        let mut included = self.included.iter().map(String::as_str);
        included.find(|directory| !directory.is_empty() && path::is_in(path, directory))
    }
}
