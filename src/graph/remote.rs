//! Remote references: collected while a level is walked, then resolved together.

use std::fmt::Display;
use std::rc::Rc;

use super::local::alike;
use super::trouble::{At, Trouble, TroubleKind, WalkResult};
use super::{
    ANEW, EdgeId, FileId, Found, Lines, Origin, Policy, RemoteRef, Remotes, Repository, RootId, Source, SourceId,
    Target, Walker,
};
use crate::kustomization::{Accepts, Reference};
use crate::message::failure::{Failure, FailureKind, Result};
use crate::message::finding::Rule;
use crate::reference::{self, RepoSpec, Upstream};
use crate::tree::{self, Resolved};

impl Walker {
    /// Leaves a remote reference for the end of this level.
    pub(super) fn wait(&mut self, edge: EdgeId, wanted: &RemoteRef) -> WalkResult<Target> {
        let (text, spec) = (wanted.text.exposed(), wanted.spec.as_ref());
        let refused = |why: &dyn Display| {
            Trouble::new(TroubleKind::Unsafe, format!("`{}` is refused: {why}", wanted.text.shown()))
        };
        // Of what is meant as a file, what git could misread is refused before git gets it: kustomize asks for the file first.
        reference::refuse_unsafe(text, wanted.repository()).map_err(|reason| {
            let meant = reference::web_page(text).or_else(|| reference::plus_hint(text, spec?));
            refused(&reason).hint(meant.unwrap_or_else(|| ANEW.to_owned()))
        })?;
        let is_from_here = wanted.by.as_ref().is_none_or(|url| url.starts_with("file://"));
        if spec.is_some_and(RepoSpec::is_file) && !is_from_here {
            return Err(refused(&"an upstream may not reference a local path")
                .hint("your local files would be published: use another ref or a fork"));
        }
        self.pending.push(edge);
        Ok(Target::Remote)
    }

    /// Refuses something that came in and lacks what the entry of `sources` asks of it that covers the reference.
    pub(super) fn trust(
        &self,
        remotes: &dyn Remotes,
        by: &Policy<'_>,
        named: &Upstream,
        upstream: &Upstream,
        lines: Lines,
    ) -> Result<()> {
        let policy = by.leave.and_then(|config| config.source(named));
        let is_lifted = || by.exception(&self.graph, Rule::YoungSource, &named.subject(), lines).is_some();
        policy.map_or(Ok(()), |policy| remotes.trust(upstream, policy, is_lifted()))
    }

    /// Returns the URL of the upstream that a file is of; none of the user's.
    pub(super) fn named_by(&self, file: FileId) -> Option<String> {
        Some(match &self.graph.files[file].origin {
            Origin::Remote(file) => file.url.shown(),
            Origin::Archive { archive, .. } => archive.chart.repo.shown(),
            Origin::Tree { source, .. } => match &self.graph.sources[*source].repository {
                Some(repository) => repository.version.clone_spec().shown(),
                None => return None,
            },
        })
    }

    /// Returns the kustomizations and plugin configurations of repositories that following the queue reads.
    pub(super) fn read_next(&self) -> Vec<(Rc<Repository>, String)> {
        let read_for = |edge: &EdgeId| {
            let Source { tree, repository, .. } = &self.graph.sources[self.graph.roots[edge.root].source];
            let (repository, Reference { text, accepts, .. }) = (repository.as_ref()?, &*self.graph[*edge].reference);
            let path = match tree::resolve(&**tree, &self.graph.local_path(edge.root, text)?).ok()? {
                Resolved::Directory { path } => tree::kustomization_in(&**tree, &path).ok()??.1,
                Resolved::File { path, .. } if *accepts == Accepts::Plugin => path,
                _ => return None,
            };
            Some((repository.clone(), path))
        };
        self.queue.iter().filter_map(read_for).collect()
    }

    /// Brings in what references wait for.
    pub(super) fn resolve(&mut self, pending: Vec<EdgeId>, remotes: &mut dyn Remotes, policy: &Policy<'_>) {
        let remote = |edge: &EdgeId| self.graph[*edge].remote.clone();
        let wanted: Vec<Rc<RemoteRef>> = pending.iter().filter_map(remote).collect();
        let answers = remotes.resolve(&wanted);
        let found = answers.iter().zip(&wanted).filter_map(|(answer, one)| match (answer, &one.spec) {
            (Ok(Found::Root(repository)), Some(spec)) => Some((repository.clone(), spec.directory())),
            _ => None,
        });
        let kustomization = |(repository, directory): (Rc<Repository>, String)| {
            let (_, path) = tree::kustomization_in(&*repository.tree, &directory).ok()??;
            Some((repository, path))
        };
        remotes.prefetch(&found.filter_map(kustomization).collect::<Vec<_>>());
        for ((edge, one), answer) in pending.into_iter().zip(wanted).zip(answers) {
            let reference = self.graph[edge].reference.clone();
            let lines = self.graph[edge].lines();
            let answer = answer.and_then(|found| {
                self.trust(remotes, policy, &one.meant(), &found.upstream(&one), lines)?;
                Ok(found)
            });
            let target = self.arrive(&one, reference.accepts, answer);
            let target = target.and_then(|target| self.list_plugins(edge.root, &reference, target));
            let target = target.unwrap_or_else(|mut stop| {
                // Other fixes for a page do not make it a file or a root.
                let hint = reference::web_page_hint(&reference.text);
                stop.failure.kind = meaning(&one, stop.failure.kind, hint.is_some());
                stop.failure.hints.splice(0..0, hint);
                self.trouble(*stop, At::Edge(edge));
                Target::Broken
            });
            self.graph[edge].target = target;
        }
    }

    /// Refuses a URL of a root that is also a path here. kustomize takes a file of that name first, and goes on to git
    /// when it does not load, if only because an object in it is there already.
    ///
    /// Only of the user's tree: of an upstream, what no reference names may not be here. What is made of it names nothing
    /// remote any more, and is built.
    pub(super) fn refuse_shadowed(&self, root: RootId, wanted: &RemoteRef) -> WalkResult<()> {
        let source = &self.graph.sources[self.graph.roots[root].source];
        let path = self.graph.local_path(root, wanted.text.exposed());
        let Some(path) = path.filter(|_| source.repository.is_none()) else {
            return Ok(());
        };
        if let Resolved::Missing { .. } = tree::resolve(&*source.tree, &path)? {
            return Ok(());
        }
        let shown = wanted.text.shown();
        let message = format!("kustomize takes `{shown}` for a URL, although `{}` exists", source.tree.label(&path));
        Err(Trouble::new(TroubleKind::Unsupported, message)
            .hint(format!("write `./{shown}` for the local path"))
            .hint("or rename the local path"))
    }

    fn arrive(&mut self, wanted: &RemoteRef, accepts: Accepts, answer: Result<Found>) -> WalkResult<Target> {
        let (repository, spec) = match (answer?, &wanted.spec) {
            (Found::File(remote), _) => return Ok(Target::File(self.downloaded(&remote))),
            (Found::Root(repository), Some(spec)) => (repository, spec),
            _ => return Err(Failure::new("the reference is not a git URL").into()),
        };
        let source = self.source(&repository);
        let shown = wanted.text.shown();
        match tree::resolve(&*repository.tree, &spec.directory())? {
            Resolved::Directory { path } => {
                let id = self.enter(source, &path)?;
                self.check_kind(id, wanted.text.exposed(), accepts)?;
                Ok(Target::Root { id, remote: true })
            }
            Resolved::File { .. } => {
                let message = format!("`{shown}` names a file of a repository, not a directory");
                Err(Trouble::refused(message).hint("name the file by its raw https URL"))
            }
            Resolved::Missing { .. } => {
                let mut failure = no_directory(&repository, &spec.directory());
                if !failure.hints.is_empty() {
                    failure.kind = FailureKind::Misspelled;
                }
                Err(Trouble::of(TroubleKind::Refused, failure.context(format_args!("`{shown}`"))))
            }
            other => Err(self.unresolved(source, &shown, other)),
        }
    }

    fn source(&mut self, repository: &Rc<Repository>) -> SourceId {
        let is_it = |source: &Source| source.repository.as_ref().is_some_and(|known| Rc::ptr_eq(known, repository));
        if let Some(known) = self.graph.sources.iter().position(is_it) {
            return SourceId(known);
        }
        self.graph.sources.push(Source {
            tree: repository.tree.clone(),
            scope: String::new(),
            repository: Some(repository.clone()),
        });
        SourceId(self.graph.sources.len() - 1)
    }
}

/// Returns the failure of a directory that a repository does not hold.
pub(crate) fn no_directory(repository: &Repository, directory: &str) -> Failure {
    let failure = Failure::new(format!(
        "there is no directory `{directory}` in {} at {}",
        repository.version.clone_spec().shown(),
        repository.commit
    ));
    let failure = failure.because(FailureKind::NotInRepository);
    match alike(&*repository.tree, directory) {
        Some(like) => failure.hint(format!("did you mean `{like}`?")),
        None => failure,
    }
}

/// Returns what it means that a reference could not be resolved: what is not there, but was probably misspelled, is not
/// gone. Nobody here can correct an upstream.
fn meaning(wanted: &RemoteRef, kind: FailureKind, has_hint: bool) -> FailureKind {
    match kind {
        FailureKind::Misspelled if wanted.by.is_some() => FailureKind::NotInRepository,
        _ if wanted.by.is_some() => kind,
        kind if kind.is_gone() && (has_hint || wanted.correction().is_some()) => FailureKind::Misspelled,
        kind => kind,
    }
}
