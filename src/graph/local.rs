//! References to files and directories of the same tree.

use super::trouble::{At, Trouble, TroubleKind, WalkResult};
use super::{Absence, EdgeId, Graph, Resolution, Root, RootId, ScopedTree, SourceId, WalkPolicy, Walker};
use crate::config::FILE_NAME;
use crate::kustomization::{Accepts, FILE_NAMES, KustomizationKind, Reference};
use crate::message::failure::{Failure, Result, command, nearest, pathspec, stage};
use crate::message::redact;
use crate::reference::{self, RepoSpec};
use crate::tree::{self, Resolved, Tree, path};

/// How many names are compared with a missing one, and for how many troubles a similar name is searched.
const MOST_COMPARED: usize = 500;

/// The hint for a path outside of the scope of a copy.
pub(super) const HINT_WIDER_SCOPE: &str = "name a directory that contains both with `--scope DIR`";

/// A name without its extension, and whether it has one.
fn stem(name: &str) -> (&str, bool) {
    name.rsplit_once('.').map_or((name, false), |(stem, _)| (stem, true))
}

/// The existing path in the same directory that was probably meant by a missing path, for the hint "did you mean".
/// `None` if no name is similar enough, or the directory has too many names.
pub(crate) fn similar_path(tree: &dyn Tree, missing: &str) -> Option<String> {
    let parent = path::parent(missing);
    let names = tree.names(parent).ok().filter(|names| names.len() <= MOST_COMPARED)?;
    let (missing_stem, has_extension) = stem(path::name(missing));
    // A name with an extension is probably a file, so it is compared with files.
    let mut candidates = names.iter().filter(|name| stem(name).1 == has_extension);
    let nearest_stem = nearest(missing_stem, candidates.clone().map(|name| stem(name).0))?;
    let name = candidates.find(|name| stem(name).0 == nearest_stem)?;
    // A pipe or device is missing for a tree, but has a name.
    Some(path::join(parent, name)).filter(|path| path != missing)
}

impl Graph {
    /// The failure of an absolute path, with the relative path to write instead.
    pub(crate) fn absolute_path_failure(&self, root: RootId, text: &str) -> Failure {
        let failure = Failure::new(format!("`{text}` is an absolute path, which does not exist in other checkouts"));
        failure.hint(match self.local_path(root, text) {
            Some(path) => format!("write `{}`", path::relative(&self.roots[root].directory, &path)),
            None => "copy its target into this repository, and write a relative path".to_owned(),
        })
    }

    /// The failure of a path through a link that leads to something that other checkouts do not have. `pointee` is the
    /// path that the link contains.
    pub(crate) fn link_failure(&self, source: SourceId, text: &str, link: &str, pointee: &str) -> Failure {
        let tree = &self.sources[source].tree;
        let link = tree.label(link);
        let to = match tree.absolute(pointee) {
            Some(_) if path::is_absolute(pointee) => {
                format!("the absolute path `{pointee}`, which does not exist in other checkouts")
            }
            _ => format!("`{pointee}`, outside of the repository"),
        };
        let message = if text == link {
            format!("the link `{link}` leads to {to}")
        } else {
            format!("`{text}` goes through the link `{link}` to {to}")
        };
        Failure::new(message).hint("replace the link with a copy of its target")
    }
}

impl Walker {
    /// Resolves a reference to a path of the same tree.
    pub(super) fn resolve_local(&mut self, edge: EdgeId, reference: &Reference) -> WalkResult<Resolution> {
        let (text, accepts) = (reference.text.as_str(), reference.accepts);
        let source = self.graph.roots[edge.root].source;
        let Some(local_path) = self.graph.local_path(edge.root, text) else {
            refuse_unsupported(text)?;
            return Err(self.refused_path(edge.root, text));
        };
        let resolved = tree::resolve(&*self.graph.sources[source].tree, &local_path)?;
        // A text that is the path of a file is that file, even if it looks like a URL.
        if !matches!(resolved, Resolved::File { .. }) {
            refuse_unsupported(text)?;
        }
        // An absolute path to a file goes on: the rule `out-of-scope` reports it.
        let expects_file = expects_file(accepts, &resolved);
        if path::is_absolute(text) && !expects_file {
            return Err(self.refused_path(edge.root, text));
        }
        let is_program = accepts == Accepts::Program;
        if is_program {
            self.refuse_program_path(source, text, &local_path)?;
        }
        match resolved {
            Resolved::File { path, executable } if expects_file => {
                // Recorded, not returned: a build without the load restrictor reads this file, so the walk goes on.
                self.check_bounds(edge, path::parent(&path), is_program);
                Ok(Resolution::File(self.find_or_add_file(source, &path, executable)))
            }
            Resolved::Directory { path } if !expects_file => self.enter_local(edge, reference, &path),
            Resolved::File { .. } => Err(Trouble::refused(format!("`{text}` is a file, not a directory"))),
            Resolved::Directory { .. } => Err(Trouble::refused(format!("`{text}` is a directory, not a file"))),
            Resolved::Missing { path } => {
                // The missing thing may be a root, and a reference to a root may leave this one.
                self.check_bounds(edge, &path, is_program || !expects_file);
                // The message is written by [`Walker::explain_missing`], once the reason for the absence can be asked.
                let absence = Absence::Nowhere;
                Err(Trouble::new(TroubleKind::Missing { path, absence }, String::new()))
            }
            other => Err(self.unresolved(source, text, other)),
        }
    }

    /// The trouble of a path that is not followed: it is absolute, or leads out of its repository.
    fn refused_path(&self, root: RootId, text: &str) -> Box<Trouble> {
        if path::is_absolute(text) {
            return Trouble::of(TroubleKind::OutOfScope, self.graph.absolute_path_failure(root, text));
        }
        let hint = if self.graph.sources[self.graph.roots[root].source].repository.is_some() {
            "a remote root cannot reach out of its repository"
        } else {
            "copy its target into this repository, or reference it by URL"
        };
        Trouble::new(TroubleKind::OutOfScope, format!("`{text}` leads out of the repository")).hint(hint)
    }

    /// Refuses a program outside of the scope, or one whose path does not tell where it is.
    fn refuse_program_path(&self, source: SourceId, text: &str, local_path: &str) -> WalkResult<()> {
        let ScopedTree { tree, scope, .. } = &self.graph.sources[source];
        // A program runs with the rights of the user.
        if !path::is_in(local_path, scope) {
            return Err(out_of_scope(text, &tree.label(scope)));
        }
        // The system follows a link before it climbs, but this program joins the paths as text, so they could differ.
        if climbs_after_name(text) {
            let message = format!("`{text}` has `..` after a directory name, which may be a link");
            return Err(Trouble::refused(message).hint("use `..` only at the beginning of the path"));
        }
        Ok(())
    }

    /// Enters the root in a directory, which must be in the scope and have the kind that the field takes.
    fn enter_local(&mut self, edge: EdgeId, reference: &Reference, directory: &str) -> WalkResult<Resolution> {
        let source = self.graph.roots[edge.root].source;
        let ScopedTree { tree, scope, .. } = &self.graph.sources[source];
        if !path::is_in(directory, scope) {
            return Err(out_of_scope(&reference.text, &tree.label(scope)));
        }
        let id = self.enter(source, directory)?;
        let checked = self.check_kind(id, &reference.text, reference.accepts);
        if checked.is_err() {
            self.misfits.insert(edge, id);
        }
        checked.map(|()| Resolution::Root { id, remote: false })
    }

    /// Records a trouble for a reference to `path` that leads out of the scope, or out of its root unless
    /// `may_leave_root`. The walk still follows the reference, because the policy may allow both.
    fn check_bounds(&mut self, edge: EdgeId, path: &str, may_leave_root: bool) {
        let Root { source, directory, .. } = &self.graph.roots[edge.root];
        let ScopedTree { tree, scope, repository } = &self.graph.sources[*source];
        let text = &self.graph[edge].reference.text;
        let mut troubles = Vec::new();
        if !may_leave_root && !path::is_in(path, directory) {
            troubles.push(out_of_root(text, &tree.label(directory), repository.is_some()));
        }
        if !path::is_in(path, scope) {
            troubles.push(out_of_scope(text, &tree.label(scope)));
        }
        troubles.into_iter().for_each(|trouble| self.record_trouble(*trouble, At::Edge(edge)));
    }

    /// Records a trouble for each reference into `forbidden`, the NEW_DIR of this run: the copy would be made from its
    /// own earlier content.
    pub(super) fn refuse_forbidden(&mut self, forbidden: &str) {
        let mut troubles = Vec::new();
        for (id, edge) in self.graph.edges() {
            if self.graph.real_path(edge).is_some_and(|path| path::is_in(path, forbidden)) {
                let (text, label) = (&edge.reference.text, self.graph.sources[0].tree.label(forbidden));
                let message = format!("`{text}` is in `{label}`, where the result will be written");
                troubles.push((Trouble::refused(message).hint("choose another NEW_DIR"), At::Edge(id)));
            }
        }
        troubles.into_iter().for_each(|(trouble, at)| self.record_trouble(*trouble, at));
    }

    /// The trouble of a reference with the path `text`, which leads to neither a file nor a directory, by the result of
    /// following its path.
    pub(super) fn unresolved(&self, source: SourceId, text: &str, resolved: Resolved) -> Box<Trouble> {
        let tree = &self.graph.sources[source].tree;
        match resolved {
            Resolved::Leaves { link, pointee } => {
                Trouble::of(TroubleKind::OutOfScope, self.graph.link_failure(source, text, &link, &pointee))
            }
            Resolved::Submodule { path } => {
                let label = tree.label(&path);
                let message = format!("`{text}` is in the submodule `{label}`, whose files are not in this repository");
                Trouble::new(TroubleKind::Submodule { path }, message).hint(
                    "copy the files into this repository, or name the submodule's repository by URL, with its commit",
                )
            }
            Resolved::Missing { path } => {
                Trouble::refused(format!("`{text}` resolves to nothing: there is no `{}`", tree.label(&path)))
            }
            // The callers take files and directories themselves, so that only a loop is left.
            Resolved::Loop { link: path } | Resolved::File { path, .. } | Resolved::Directory { path } => {
                Trouble::refused(format!("`{text}`: the links at `{}` form a loop", tree.label(&path)))
            }
        }
    }

    /// A trouble of a missing path or kustomization again, now with the message and hints for the reason of its
    /// absence: the walk did not know it, because only the policy tells whether the file is ignored or not committed.
    /// `number` is the index of the trouble among all. `None` for a trouble whose message is complete.
    pub(super) fn explain_missing(
        &self,
        trouble: &Trouble,
        number: usize,
        policy: &WalkPolicy<'_>,
    ) -> Option<Box<Trouble>> {
        match (&trouble.kind, trouble.at) {
            (TroubleKind::Missing { path, .. }, At::Edge(edge)) => {
                // Only the first ones are compared with similar names, because each comparison reads a directory.
                Some(self.missing_trouble(edge, path, number < MOST_COMPARED, policy))
            }
            (TroubleKind::NoKustomization { directory, .. }, at) => {
                // In a fetched repository nothing can be ignored or not committed, so the message is complete.
                let source = match at {
                    At::Edge(edge) if self.graph[edge].remote.is_some() => return None,
                    at => self.graph.root_at(at).map_or(SourceId::FIRST, |root| self.graph.roots[root].source),
                };
                Some(self.no_kustomization(source, directory, policy))
            }
            _ => None,
        }
    }

    /// Explains why there is nothing at the path that a reference names; if `is_compared`, also by a similar name.
    fn missing_trouble(&self, edge: EdgeId, path: &str, is_compared: bool, policy: &WalkPolicy<'_>) -> Box<Trouble> {
        let Root { source, directory, .. } = &self.graph.roots[edge.root];
        let Reference { text, accepts, .. } = &*self.graph[edge].reference;
        let takes_file = matches!(accepts, Accepts::File | Accepts::Program);
        // A file field may name a git repository by mistake.
        if RepoSpec::parse(text).is_ok() {
            let message = format!("`{}` names a git repository, but this field takes a file", redact::url(text));
            return Trouble::new(TroubleKind::Unsupported, message).hint("name the file by its raw https URL");
        }
        let tree = &self.graph.sources[*source].tree;
        let mut absence = policy.absence(&self.graph, *source, path);
        // A rule for directories (`build/`) does not match the missing path itself, but would match its contents.
        if absence == Absence::Nowhere && !takes_file {
            absence = policy.absence(&self.graph, *source, &path::join(path, FILE_NAMES[0]));
        }
        let message = format!("there is no `{}`", tree.label(path));
        let mut failure = absent_failure(&absence, path, message, &missing_hint(text));
        let is_gone = matches!(absence, Absence::Nowhere | Absence::Deleted);
        if is_gone
            && is_compared
            && let Some(like) = similar_path(&**tree, path)
        {
            let hint = format!("did you mean `{}`?", path::relative(directory, &like));
            // The likeliest fix comes first.
            failure.hints.insert(0, redact::message(&hint).into_owned());
        }
        Trouble::of(TroubleKind::Missing { path: path.to_owned(), absence }, failure)
    }

    /// Explains why there is no kustomization in a directory. During the walk the policy knows no absences, so
    /// [`Walker::explain_missing`] calls this again.
    fn no_kustomization(&self, source: SourceId, directory: &str, policy: &WalkPolicy<'_>) -> Box<Trouble> {
        let tree = &self.graph.sources[source].tree;
        // A kustomization that is ignored, deleted or not committed is the likeliest cause: the message and the hint
        // are about the first such path.
        let mut candidates = FILE_NAMES.iter().map(|name| path::join(directory, name));
        let uncommitted = candidates.find_map(|path| match policy.absence(&self.graph, source, &path) {
            Absence::Nowhere => None,
            absence => Some((absence, path)),
        });
        let (absence, path) = uncommitted.unwrap_or((Absence::Nowhere, String::new()));
        let message = format!("no kustomization in `{}`", tree.label(directory));
        let hint = "add a `kustomization.yaml` to it, or name its files one by one";
        let failure = absent_failure(&absence, &path, message, hint);
        Trouble::of(TroubleKind::NoKustomization { directory: directory.to_owned(), absence }, failure)
    }

    /// The trouble of a directory in which kustomize finds no kustomization: there is no file of such a name, or it is
    /// a directory or a link out. Fails if the tree cannot be read.
    pub(super) fn without_kustomization(&self, source: SourceId, directory: &str) -> Result<Box<Trouble>> {
        let tree = &self.graph.sources[source].tree;
        for path in FILE_NAMES.iter().map(|name| path::join(directory, name)) {
            if tree.entry(&path)?.is_some() {
                let shown = tree.label(&path);
                let message = format!("`{shown}` is not a file in its directory: kustomize finds no kustomization");
                let trouble = Trouble::new(TroubleKind::BadKustomization { path }, message);
                return Ok(trouble.hint("put the kustomization itself there"));
            }
        }
        Ok(self.no_kustomization(source, directory, &WalkPolicy::default()))
    }

    /// Refuses a Component that is not referenced in `components`, and a Kustomization that is, as kustomize does.
    /// `text` is the reference to the root, and `accepts` tells its field.
    pub(super) fn check_kind(&self, id: RootId, text: &str, accepts: Accepts) -> WalkResult<()> {
        let (kind, field) = match (self.graph.roots[id].kind, accepts) {
            (Some(KustomizationKind::Kustomization), Accepts::Component) => ("Kustomization", "resources"),
            (Some(KustomizationKind::Component), accepts) if accepts != Accepts::Component => {
                ("Component", "components")
            }
            _ => return Ok(()),
        };
        let message = format!("`{}` is a {kind}, which must be listed in `{field}`", redact::url(text));
        Err(Trouble::refused(message).hint(format!("move it to `{field}`")))
    }
}

/// The trouble of a path outside of the scope.
fn out_of_scope(text: &str, scope: &str) -> Box<Trouble> {
    let message = format!("`{text}` is outside the scope `{scope}`");
    Trouble::new(TroubleKind::OutOfScope, message).hint(HINT_WIDER_SCOPE)
}

/// The trouble of a file outside of the root that references it, which only some builds of the user's roots may read.
fn out_of_root(text: &str, root: &str, is_remote: bool) -> Box<Trouble> {
    let message = format!("`{text}` is outside its kustomization root `{root}`");
    let trouble = Trouble::new(TroubleKind::Restricted, message);
    if is_remote {
        return trouble.hint("`kustomize build` refuses files outside their root in a remote root");
    }
    trouble.hint(format!("copy it below `{root}`, or make its directory a root, and reference that"))
        .hint(format!("if this is built with `--load-restrictor LoadRestrictionsNone`, as Flux does: write `load-restrictor: none` into {FILE_NAME}"))
}

/// The failure of a path that is missing in the tree, with the fix that its absence needs: a file on disk must be
/// added, an ignored one only if it has no secret, and a deleted one restored. If there never was such a file,
/// `message` and `hint` say it all.
pub(super) fn absent_failure(absence: &Absence, path: &str, message: String, hint: &str) -> Failure {
    let (message, hint) = match absence {
        Absence::Nowhere => (message, hint.to_owned()),
        // It is in HEAD, so that git has the content.
        Absence::Deleted => {
            let restore = command("git restore --staged --worktree --", [pathspec(path)]);
            (message, format!("restore it: {restore}"))
        }
        Absence::Untracked { is_forced } => {
            let add = if *is_forced { stage([path]) } else { command("git add --", [pathspec(path)]) };
            (format!("`{path}` is on disk, but not committed"), add)
        }
        Absence::Ignored { rule, on_disk } => {
            let state = if *on_disk == Some(false) { "does not exist, and" } else { "is not committed, and" };
            let fix = match on_disk {
                Some(true) => format!("if it contains no secret, commit it: {}", stage([path])),
                _ => hint.to_owned(),
            };
            (format!("`{path}` {state} git ignores it ({rule})"), fix)
        }
    };
    Failure::new(message).hint(hint)
}

/// The hint for a text that names nothing, by the likeliest mistake in it.
fn missing_hint(text: &str) -> String {
    if let Some(hint) = reference::without_scheme(text) {
        return hint;
    }
    let is_expanded_by_a_shell = text.starts_with("~/") || text.starts_with('$') || text.contains("${");
    let hint = if text.contains('*') {
        "list each file: kustomize expands no pattern"
    } else if is_expanded_by_a_shell {
        "write the path: kustomize expands neither `~` nor variables"
    } else if text.contains('\\') {
        "separate names by `/`"
    } else {
        "add it, or remove the reference"
    };
    hint.to_owned()
}

/// Whether a field expects a file, not a root. If it takes both, the resolved path decides.
fn expects_file(accepts: Accepts, resolved: &Resolved) -> bool {
    match accepts {
        Accepts::File | Accepts::Program => true,
        Accepts::Component => false,
        Accepts::Either | Accepts::Plugin => matches!(resolved, Resolved::File { .. }),
    }
}

/// Whether a path has `..` after a name.
fn climbs_after_name(text: &str) -> bool {
    path::components(text).skip_while(|name| [".", ".."].contains(name)).any(|name| name == "..")
}

/// Refuses a reference that was surely meant to be remote, but has a scheme or form that kustomize does not support:
/// kustomize would look for a file of that name, and its message would not help.
fn refuse_unsupported(text: &str) -> WalkResult<()> {
    let (why, hint) = if let Some(scheme) = reference::unsupported_scheme(text) {
        let (reason, hint) = reference::why_unsupported(&scheme);
        (format!(": {reason}"), hint)
    } else {
        match RepoSpec::parse(text) {
            Err(reason) if text.contains("://") => (
                format!(" is not the URL of a git repository: {reason}"),
                "write it as https://HOST/ORG/REPO//DIRECTORY?ref=REF",
            ),
            _ => return Ok(()),
        }
    };
    Err(Trouble::new(TroubleKind::Unsupported, format!("`{}`{why}", redact::url(text))).hint(hint))
}
