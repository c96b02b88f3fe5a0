//! Remote references: collected while a level is walked, then resolved together.

use std::fmt::Display;
use std::rc::Rc;

use super::local::similar_path;
use super::trouble::{At, Trouble, TroubleKind, WalkResult};
use super::{
    EdgeId, FileId, HINT_REWRITE, Lines, Origin, RemoteCommit, RemoteContent, RemoteRef, Remotes, Resolution, RootId,
    ScopedTree, SourceId, WalkPolicy, Walker,
};
use crate::kustomization::{Accepts, Reference};
use crate::message::failure::{Failure, FailureKind, Result};
use crate::message::finding::Rule;
use crate::reference::{self, RepoSpec, Upstream};
use crate::tree::{self, Resolved};

impl Walker {
    /// Queues a remote reference until all local ones are followed, so that one request per repository is enough.
    /// Refuses text that git could misread, and an upstream that names a local path of this machine.
    pub(super) fn queue_remote(&mut self, edge: EdgeId, wanted: &RemoteRef) -> WalkResult<Resolution> {
        let (text, spec) = (wanted.text.exposed(), wanted.spec.as_ref());
        // Also if kustomize asks for a file first: git gets the same text if there is none.
        reference::refuse_unsafe(text, wanted.repository()).map_err(|reason| {
            let correction = reference::web_page(text).or_else(|| reference::plus_hint(text, spec?));
            refused_reference(wanted, &reason).hint(correction.unwrap_or_else(|| HINT_REWRITE.to_owned()))
        })?;
        // An upstream on this machine may reference another one here.
        let is_by_user = wanted.by.as_ref().is_none_or(|url| url.starts_with("file://"));
        if spec.is_some_and(RepoSpec::is_file) && !is_by_user {
            return Err(refused_reference(wanted, &"an upstream may not reference a local path")
                .hint("your local files would be published: use another ref or a fork"));
        }
        self.pending.push(edge);
        Ok(Resolution::Remote)
    }

    /// Refuses fetched content that lacks what `sources` of the configuration demands, such as a signature. `named` is
    /// the upstream as the reference names it, which selects the entry of `sources`; `fetched` is the upstream of the
    /// content.
    pub(super) fn check_source(
        &self,
        remotes: &dyn Remotes,
        policy: &WalkPolicy<'_>,
        named: &Upstream,
        fetched: &Upstream,
        lines: Lines,
    ) -> Result<()> {
        let Some(source) = policy.config.and_then(|config| config.source(named)) else { return Ok(()) };
        let may_be_young = policy.exception(&self.graph, Rule::YoungSource, &named.subject(), lines).is_some();
        remotes.trust(fetched, source, may_be_young)
    }

    /// The URL of the upstream that has a file. `None` if the file is the user's.
    pub(super) fn upstream_url(&self, file: FileId) -> Option<String> {
        Some(match &self.graph.files[file].origin {
            Origin::Remote(file) => file.url.shown(),
            Origin::Archive { archive, .. } => archive.chart.repo.shown(),
            Origin::Tree { source, .. } => {
                self.graph.sources[*source].repository.as_ref()?.version.clone_spec().shown()
            }
        })
    }

    /// The kustomizations and plugin configurations of fetched repositories that following the queue will read.
    pub(super) fn next_files(&self) -> Vec<(Rc<RemoteCommit>, String)> {
        self.queue.iter().filter_map(|edge| self.next_file(*edge)).collect()
    }

    /// The file of a fetched repository that following a local reference in it will read for more references. `None`
    /// for any other reference, or if nothing is read. An error is dropped, because following the reference reports it.
    fn next_file(&self, edge: EdgeId) -> Option<(Rc<RemoteCommit>, String)> {
        let ScopedTree { tree, repository, .. } = &self.graph.sources[self.graph.roots[edge.root].source];
        let (repository, Reference { text, accepts, .. }) = (repository.as_ref()?, &*self.graph[edge].reference);
        let path = match tree::resolve(&**tree, &self.graph.local_path(edge.root, text)?).ok()? {
            Resolved::Directory { path } => tree::kustomization_in(&**tree, &path).ok()??.1,
            Resolved::File { path, .. } if *accepts == Accepts::Plugin => path,
            _ => return None,
        };
        Some((repository.clone(), path))
    }

    /// Fetches the files and roots that pending references name, and resolves the references.
    pub(super) fn resolve(&mut self, pending: Vec<EdgeId>, remotes: &mut dyn Remotes, policy: &WalkPolicy<'_>) {
        let wanted: Vec<Rc<RemoteRef>> = pending.iter().filter_map(|edge| self.graph[*edge].remote.clone()).collect();
        let answers = remotes.resolve(&wanted);
        // One request per repository gets the kustomizations of all new roots.
        let roots = answers.iter().zip(&wanted).filter_map(|(answer, wanted)| match (answer, &wanted.spec) {
            (Ok(RemoteContent::Root(repository)), Some(spec)) => Some((repository, spec.directory())),
            _ => None,
        });
        // An error is dropped, because `add_content` reports it.
        let kustomizations = roots.filter_map(|(repository, directory)| {
            let (_, path) = tree::kustomization_in(&*repository.tree, &directory).ok()??;
            Some((repository.clone(), path))
        });
        remotes.prefetch(&kustomizations.collect::<Vec<_>>());
        for ((edge, wanted), answer) in pending.into_iter().zip(wanted).zip(answers) {
            let reference = self.graph[edge].reference.clone();
            let lines = self.graph[edge].lines();
            // `sources` is checked on the content before it becomes part of the graph.
            let answer = answer.and_then(|content| {
                self.check_source(remotes, policy, &wanted.meant(), &content.upstream(&wanted), lines)?;
                Ok(content)
            });
            let resolution = self.add_content(&wanted, reference.accepts, answer);
            let resolution = resolution.map(|resolution| self.list_plugins(edge.root, &reference, resolution));
            let resolution = resolution.unwrap_or_else(|mut trouble| {
                // The hint for a web page comes first: other fixes do not turn a page into a file or a root.
                let hint = reference::web_page_hint(&reference.text);
                trouble.failure.kind = failure_kind(&wanted, trouble.failure.kind, hint.is_some());
                trouble.failure.hints.splice(0..0, hint);
                self.record_trouble(*trouble, At::Edge(edge));
                Resolution::Broken
            });
            self.graph[edge].resolution = resolution;
        }
    }

    /// Refuses the URL of a root that is also a path of the user's tree: kustomize reads that path first, and the URL
    /// only if that fails, so what it builds depends on files that look unrelated.
    pub(super) fn refuse_shadowed(&self, root: RootId, wanted: &RemoteRef) -> WalkResult<()> {
        let source = &self.graph.sources[self.graph.roots[root].source];
        let path = self.graph.local_path(root, wanted.text.exposed());
        // In an upstream this is not an error: its tree may lack files that no reference names, and the localized copy,
        // which is built, has no URL any more.
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

    /// Adds the content that was fetched for a reference to the graph.
    fn add_content(
        &mut self,
        wanted: &RemoteRef,
        accepts: Accepts,
        answer: Result<RemoteContent>,
    ) -> WalkResult<Resolution> {
        // A file is complete with its bytes. A root must be a directory of its repository that kustomize could load.
        let (repository, spec) = match (answer?, &wanted.spec) {
            (RemoteContent::File(remote), _) => return Ok(Resolution::File(self.find_or_add_download(&remote))),
            (RemoteContent::Root(repository), Some(spec)) => (repository, spec),
            _ => return Err(Failure::new("the reference is not a git URL").into()),
        };
        // Two references to one commit share a tree, so that its roots are walked once.
        let source = self.find_or_add_source(&repository);
        let shown = wanted.text.shown();
        match tree::resolve(&*repository.tree, &spec.directory())? {
            Resolved::Directory { path } => {
                let id = self.enter(source, &path)?;
                self.check_kind(id, wanted.text.exposed(), accepts)?;
                Ok(Resolution::Root { id, remote: true })
            }
            Resolved::File { .. } => {
                let message = format!("`{shown}` names a file of a repository, not a directory");
                Err(Trouble::refused(message).hint("name the file by its raw https URL"))
            }
            Resolved::Missing { .. } => {
                let mut failure = no_directory(&repository, &spec.directory());
                // A directory with a similar name is there: this is a typing error, and trying again does not help.
                if !failure.hints.is_empty() {
                    failure.kind = FailureKind::Misspelled;
                }
                Err(Trouble::of(TroubleKind::Refused, failure.context(format_args!("`{shown}`"))))
            }
            other => Err(self.unresolved(source, &shown, other)),
        }
    }

    /// The tree of a fetched commit in the graph. A new one is added.
    fn find_or_add_source(&mut self, repository: &Rc<RemoteCommit>) -> SourceId {
        let sources = &mut self.graph.sources;
        let mut repositories = sources.iter().map(|source| source.repository.as_ref());
        let known = repositories.position(|known| known.is_some_and(|known| Rc::ptr_eq(known, repository)));
        SourceId(known.unwrap_or_else(|| {
            sources.push(ScopedTree::of(repository.clone()));
            sources.len() - 1
        }))
    }
}

/// The trouble of a reference whose text may not be passed on.
fn refused_reference(wanted: &RemoteRef, why: &dyn Display) -> Box<Trouble> {
    Trouble::new(TroubleKind::Unsafe, format!("`{}` is refused: {why}", wanted.text.shown()))
}

/// The failure of a reference to a directory that the commit of its repository does not have.
pub(crate) fn no_directory(repository: &RemoteCommit, directory: &str) -> Failure {
    let failure = Failure::new(format!(
        "there is no directory `{directory}` in {} at {}",
        repository.version.clone_spec().shown(),
        repository.commit
    ));
    let failure = failure.because(FailureKind::NotInRepository);
    match similar_path(&*repository.tree, directory) {
        Some(like) => failure.hint(format!("did you mean `{like}`?")),
        None => failure,
    }
}

/// The kind of a failure to resolve a remote reference, which decides what the user is told to do. `kind` is what the
/// fetcher says; `has_hint` tells that the URL is one of a web page.
fn failure_kind(wanted: &RemoteRef, kind: FailureKind, has_hint: bool) -> FailureKind {
    match kind {
        // If an upstream misspelled it, the user cannot correct it, so it counts as missing.
        FailureKind::Misspelled if wanted.by.is_some() => FailureKind::NotInRepository,
        _ if wanted.by.is_some() => kind,
        // A missing upstream is not gone if the reference is probably misspelled.
        kind if kind.is_gone() && (has_hint || wanted.correction().is_some()) => FailureKind::Misspelled,
        kind => kind,
    }
}
