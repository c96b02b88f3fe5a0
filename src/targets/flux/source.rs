//! The sources of Flux, and which of them are this repository.

use std::cell::RefCell;
use std::rc::Rc;

use super::super::scan::Document;
use super::super::{Artifact, Identity, ObjectRef, Revision, Targets, unfilled};
use super::copied;
use super::ignore::Ignores;
use super::models::{ARTIFACT, BUCKET, GENERATOR, GIT, INSTANCE, Instance, OCI, Reference, Repository, Sync};
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
        artifact: Option<Rc<Artifact>>,
    },
    /// Something else, and why.
    Elsewhere(String),
    /// Something else, or made of this repository: nothing here says which, and why.
    Unsaid(String),
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
    /// The objects that define it.
    defined_by: Vec<ObjectRef>,
    /// The directory from which that is deployed.
    home: String,
    bound: Bound,
}

/// The sources of a tree.
pub(super) struct FluxSources<'a> {
    pub(super) tree: &'a dyn Tree,
    identity: &'a Identity,
    ignores: &'a Ignores,
    /// The counters that limit the work.
    targets: RefCell<&'a mut Targets>,
    all: Vec<FluxSource>,
    /// Why an artifact that is not among them may be made.
    more: Option<String>,
}

/// The kind and the name of the source that bootstrapping makes of the repository of a cluster.
const BOOTSTRAPPED: (&str, &str) = (GIT, "flux-system");

impl<'a> FluxSources<'a> {
    /// Finds the sources. With `is_bootstrapped`, the source that bootstrapping made is this repository: the command
    /// line of Flux, or the chart of a `FluxInstance`, made its object elsewhere.
    pub(super) fn of(
        tree: &'a dyn Tree,
        objects: &[Document],
        identity: &'a Identity,
        ignores: &'a Ignores,
        targets: &'a mut Targets,
        is_bootstrapped: bool,
    ) -> Self {
        let targets = RefCell::new(targets);
        let mut sources = FluxSources { tree, identity, ignores, targets, all: Vec::new(), more: None };
        for document in objects {
            let ObjectRef { kind, name, .. } = &document.object;
            match kind.as_str() {
                GIT | OCI => sources.add(document, kind, name, sources.of_url(document, objects), &[]),
                BUCKET | ARTIFACT => {
                    sources.add(document, kind, name, Some(Bound::Unsaid(format!("its source is a {kind}"))), &[]);
                }
                INSTANCE => {
                    let Instance { sync, .. } = document.spec();
                    let namespace = Some(&*document.object.namespace).filter(|namespace| !namespace.is_empty());
                    let name = sync.name.as_deref().or(namespace).unwrap_or(BOOTSTRAPPED.1);
                    sources.add(document, &sync.kind, name, sources.of_instance(&sync), &[]);
                }
                _ => {}
            }
        }
        // Last: an object of that name in the tree would have said more.
        if is_bootstrapped {
            let object = ObjectRef {
                namespace: BOOTSTRAPPED.1.to_owned(),
                ..ObjectRef::of("", 0, BOOTSTRAPPED.0, BOOTSTRAPPED.1.to_owned())
            };
            let bound = Bound::Local { base: String::new(), revision: Revision::this(), artifact: sources.whole() };
            sources.all.push(FluxSource { object, defined_by: Vec::new(), home: String::new(), bound });
        }
        sources.add_copied(objects);
        sources
    }

    fn add(&mut self, document: &Document, kind: &str, name: &str, bound: Option<Bound>, others: &[ObjectRef]) {
        let object = ObjectRef { kind: kind.to_owned(), name: name.to_owned(), ..document.object.clone() };
        let defined_by = [std::slice::from_ref(&document.object), others].concat();
        self.all.extend(bound.map(|bound| FluxSource { object, defined_by, home: document.home.clone(), bound }));
    }

    /// Whether an object defines the source that bootstrapping made.
    pub(super) fn has_bootstrapped(&self) -> bool {
        self.all.iter().any(|source| (&*source.object.kind, &*source.object.name) == BOOTSTRAPPED)
    }

    /// The meaning of a source with a URL; `None` without a URL, as in a patch for a source.
    fn of_url(&self, document: &Document, objects: &[Document]) -> Option<Bound> {
        let spec: Repository = document.spec();
        let is_git = document.object.kind == GIT;
        Some(self.bound(spec.url.as_deref()?, spec.revision.named(is_git), |base| {
            let below = |written: &str| path::join(base, &path::resolve("", written).unwrap_or_default());
            // The other content of an included artifact is unknown.
            let mut ignores = if is_git {
                self.ignores.with(&spec.ignore, &format!(" of {}", document.object))
            } else {
                Ignores::default()
            };
            ignores.sparse = spec.sparse_checkout.iter().map(|written| below(written)).collect();
            let included = spec.include.iter().map(|include| {
                let name = &include.repository.name;
                let from = self.top_of(objects, name).and_then(|top| path::resolve(top, &include.from_path));
                (below(if include.to_path.is_empty() { name } else { &include.to_path }), from)
            });
            let included = included.collect();
            Some(Rc::new(Artifact { ignores, included, has_submodules: spec.recurse_submodules }))
        }))
    }

    /// The directory that is the top of a `GitRepository`; `None` if that is another repository.
    fn top_of(&self, objects: &[Document], name: &str) -> Option<&'a str> {
        let spec: Repository =
            objects.iter().find(|top_of: &&Document| top_of.object.kind == GIT && top_of.object.name == name)?.spec();
        self.identity.directory_of(&spec.url?)
    }

    /// The source that a `FluxInstance` makes; `None` without a URL.
    pub(super) fn of_instance(&self, sync: &Sync) -> Option<Bound> {
        Some(self.bound(sync.url.as_deref()?, (sync.revision.as_deref(), false), |_| self.whole()))
    }

    /// The artifact of a source that packs the whole repository.
    fn whole(&self) -> Option<Rc<Artifact>> {
        Some(Rc::new(Artifact { ignores: self.ignores.with("", ""), ..Artifact::default() }))
    }

    /// The meaning of a URL at a revision, if it has one; `is_tag` tells whether the object calls it a tag.
    fn bound(
        &self,
        url: &str,
        (named, is_tag): (Option<&str>, bool),
        artifact: impl FnOnce(&str) -> Option<Rc<Artifact>>,
    ) -> Bound {
        if let Some(why) = unfilled([url].into_iter().chain(named)) {
            return Bound::Templated(why);
        }
        match self.identity.directory_of(url) {
            Some(base) => Bound::Local {
                base: base.to_owned(),
                revision: self.identity.revision(url, named, is_tag),
                artifact: artifact(base),
            },
            None => {
                let at = named.map(|named| format!(" at {named}")).unwrap_or_default();
                let why = format!("it is in {}{at}", redact::url(url));
                if url.starts_with("oci://") { Bound::Unsaid(why) } else { Bound::Elsewhere(why) }
            }
        }
    }

    /// Adds the artifacts that each `ArtifactGenerator` makes from these sources.
    fn add_copied(&mut self, objects: &[Document]) {
        let generators = objects.iter().filter(|document| document.object.kind == GENERATOR);
        let all: Vec<_> = generators.map(|document| (document, copied::made(self, document))).collect();
        for (generator, made) in all {
            self.more = self.more.take().or(made.more);
            for (name, BoundSource { bound, defined_by }) in made.artifacts {
                self.add(generator, ARTIFACT, &name, Some(bound), &defined_by);
            }
        }
    }

    /// Counts work; fails where it is too much.
    pub(super) fn spend(&self, work: usize) -> Result<(), String> {
        self.targets.borrow_mut().may_do(work).then_some(()).ok_or("is one of too many".to_owned())
    }

    pub(super) fn entry(&self, path: &str) -> Result<Option<Entry>, String> {
        self.tree.entry(path).map_err(|failure| format!("copies from `{path}`: {}", failure.message))
    }

    pub(super) fn names(&self, path: &str) -> Result<Vec<String>, String> {
        let names = self.tree.names(path);
        let names = names.map_err(|failure| format!("copies from `{path}`: {}", failure.message))?;
        self.spend(names.len())?;
        Ok(names)
    }

    /// Whether a file, or one in a directory, is in an artifact of this repository.
    pub(super) fn packs(&self, artifact: &Artifact, path: &str) -> Result<bool, String> {
        match self.entry(path)? {
            None | Some(Entry::Link) => Ok(false),
            Some(Entry::File { .. }) => Ok(artifact.ignores.exclusion(path).is_none()),
            // Nobody here knows.
            Some(Entry::Submodule) => Ok(true),
            Some(Entry::Directory) => {
                for name in self.names(path)? {
                    if self.packs(artifact, &path::join(path, &name))? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// The meaning of the `sourceRef` of an object.
    ///
    /// A namespace need not be written: a kustomization may add it. Of several sources with the same name, as in a
    /// repository with many clusters, the nearest counts: one from the same build, then one in a near directory,
    /// preferably in the same file.
    pub(super) fn bind(&self, document: &Document, reference: &Reference) -> BoundSource {
        let object = &document.object;
        let Reference { kind, namespace, name } = reference;
        if let Some(why) = unfilled([kind, namespace, name].map(String::as_str)) {
            return Bound::Templated(why).into();
        }
        // Its own where it names none.
        let namespace = if namespace.is_empty() { &object.namespace } else { namespace };
        let near = |source: &FluxSource| {
            let is_of_same = object.built_by.is_some() && source.object.built_by == object.built_by;
            let distance = path::common(&source.home, &document.home).len();
            (is_of_same, distance, source.object.file == object.file)
        };
        let candidates: Vec<&FluxSource> = self
            .all
            .iter()
            .filter(|source: &&FluxSource| {
                let is_in = |other: &str| other == namespace || other.is_empty() || namespace.is_empty();
                source.object.kind == *kind && source.object.name == *name && is_in(&source.object.namespace)
            })
            .collect();
        // Several may be equally near, and then must agree.
        let best = candidates.iter().map(|source| near(source)).max();
        let nearest: Vec<&FluxSource> =
            candidates.iter().copied().filter(|source| Some(near(source)) == best).collect();
        let defined_by = nearest.iter().flat_map(|source| source.defined_by.iter().cloned()).collect();
        let bound = match nearest.first().map(|source| &source.bound) {
            None if kind == ARTIFACT => match &self.more {
                Some(why) => Bound::Templated(why.clone()),
                None => Bound::Unsaid(format!("its source is the {kind} `{name}`, which the cluster generates")),
            },
            None => Bound::Unsaid(format!("no {kind} `{name}` is defined in this repository")),
            Some(first) if nearest.iter().all(|other| other.bound == *first) => first.clone(),
            Some(_) => {
                let why = format!("there are several {kind} `{name}`");
                if nearest
                    .iter()
                    .all(|source: &&FluxSource| matches!(source.bound, Bound::Elsewhere(_) | Bound::Unsaid(_)))
                {
                    Bound::Unsaid(why)
                } else {
                    Bound::Templated(why)
                }
            }
        };
        BoundSource { bound, defined_by }
    }
}

impl Artifact {
    /// The directory of another source that contains a path, with its directory in this repository; `None` if the path
    /// is in no other source.
    pub(super) fn covers(&self, path: &str) -> Option<&(String, Option<String>)> {
        self.included.iter().find(|(to, _)| !to.is_empty() && path::is_in(path, to))
    }
}
