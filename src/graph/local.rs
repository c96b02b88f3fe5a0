//! References to what lies in the same tree.

use super::trouble::{At, TroubleKind, WalkError, WalkResult};
use super::{Absence, FileId, Graph, LoadRestrictor, Root, RootId, Source, SourceId, Target, Walker};
use crate::config::{ADD_ALLOW, Config, FILE_NAME};
use crate::kustomization::{Accepts, FILE_NAMES, Kind, Reference};
use crate::message::failure::{Failure, Result, command, pathspec, stage};
use crate::message::finding::{Rule, Subject};
use crate::message::redact;
use crate::reference::{self, RepoSpec};
use crate::tree::{self, Resolved, path};

/// Returns a hint which scope would hold `path` as well; `None` lies out of the tree.
pub(super) fn wider(tree: &dyn tree::Tree, scope: &str, path: Option<&str>) -> String {
    let Some(path) = path else {
        return "bring what it names into this repository, or name it by its URL".to_owned();
    };
    match path::common(scope, path) {
        // A link leads on from there.
        common if common == scope => "name a directory that holds both with `--scope DIR`".to_owned(),
        common => format!("name a directory that holds both: {}", command("--scope", [tree.word(common)])),
    }
}

impl Graph {
    /// Returns what to say of an absolute path.
    pub(crate) fn absolute(&self, root: RootId, text: &str) -> Failure {
        let failure = Failure::new(format!("`{text}` is an absolute path, which names nothing in another checkout"));
        failure.hint(match self.local_path(root, text) {
            Some(path) => format!("write `{}`", path::relative(&self.roots[root].directory, &path)),
            None => "bring what it names into this repository, and write a relative path".to_owned(),
        })
    }

    /// Returns what to say of a path that follows a link to what no other checkout has.
    pub(crate) fn leaves(&self, source: SourceId, text: &str, link: &str, target: &str) -> Failure {
        let tree = &self.sources[source].tree;
        let link = tree.label(link);
        let to = match tree.absolute(target) {
            Some(_) if path::is_absolute(target) => "an absolute path, which names nothing in another checkout",
            _ => "out of the repository",
        };
        Failure::new(format!("`{text}` follows the link `{link}` to `{target}`, {to}"))
            .hint("replace the link by what it names")
    }
}

impl Walker<'_> {
    /// Follows a local reference.
    pub(super) fn local(&mut self, root: RootId, edge: usize, reference: &Reference) -> WalkResult<Target> {
        let (text, accepts) = (reference.text.as_str(), reference.accepts);
        let Root { source: id, directory, .. } = &self.graph.roots[root];
        let (id, directory) = (*id, directory.clone());
        let Source { tree, scope, repository } = &self.graph.sources[id];
        let (tree, scope, is_remote) = (tree.clone(), scope.clone(), repository.is_some());
        let place = self.graph.local_path(root, text);
        let resolved = place.as_deref().map(|place| tree::resolve(&*tree, place)).transpose()?;
        let is_file = match accepts {
            Accepts::File | Accepts::Program => true,
            Accepts::Component => false,
            // A link that leaves may lead to a file.
            Accepts::Either | Accepts::Plugin => {
                matches!(resolved, Some(Resolved::File { .. } | Resolved::Leaves { .. } | Resolved::Loop { .. }))
            }
        };
        let is_restricted = is_file && accepts != Accepts::Program && (is_remote || !self.is_unrestricted(&directory));
        let bound = if is_restricted { directory } else { scope };
        let outside = |place: Option<&str>| {
            let shown = tree.label(&bound);
            if is_restricted {
                let message = format!("`{text}` lies outside its kustomization root `{shown}`");
                let stop = WalkError::new(TroubleKind::Restricted, message);
                return if is_remote {
                    stop.hint("`kustomize build` refuses files outside their root in a remote root")
                } else {
                    stop.hint(format!("copy it below `{shown}`, or make its directory a root, and name that"))
                        .hint(format!("if this is built with `--load-restrictor LoadRestrictionsNone`, as Flux does: write `load-restrictor: none` into {FILE_NAME}"))
                };
            }
            let message = match place {
                None => format!("`{text}` leads out of the repository"),
                Some(_) => format!("`{text}` lies outside the scope `{shown}`"),
            };
            WalkError::new(TroubleKind::OutOfScope, message).hint(if is_remote {
                "a remote root cannot reach out of its repository".to_owned()
            } else {
                wider(&*tree, &bound, place)
            })
        };
        if !is_file && let Some(stop) = unsupported(text) {
            return Err(stop);
        }
        if path::is_absolute(text) && (!is_file || is_remote || place.is_none()) {
            return Err(WalkError::of(TroubleKind::OutOfScope, self.graph.absolute(root, text)));
        }
        let (Some(place), Some(resolved)) = (place, resolved) else {
            return Err(outside(None));
        };
        if accepts == Accepts::Program && !path::is_in(&place, &bound) {
            return Err(outside(Some(&place)));
        }
        if accepts == Accepts::Program && climbs(text) {
            let message = format!("`{text}` climbs with `..` after a name, which may be a link");
            return Err(WalkError::new(TroubleKind::Refused, message)
                .hint("name the program by a path with `..` at its beginning alone"));
        }
        self.not_forbidden(id, &place, text)?;
        let lines = self.graph.roots[root].edges[edge].lines();
        match resolved {
            Resolved::File { path, executable } if is_file => {
                self.not_forbidden(id, &path, text)?;
                if !path::is_in(path::parent(&path), &bound) {
                    // Who builds it all the same builds what it names, too.
                    self.trouble(outside(Some(&place)), At::Edge(root, edge));
                }
                Ok(Target::File(self.file(id, &path, executable)))
            }
            Resolved::Directory { path } if !is_file => {
                if !path::is_in(&path, &bound) {
                    return Err(outside(Some(&path)));
                }
                self.not_forbidden(id, &path, text)?;
                let root = self.enter(id, &path)?;
                self.check_kind(root, text, accepts)?;
                Ok(Target::Root { id: root, remote: false })
            }
            Resolved::Missing { path } if self.may_be_missing(id, &path, lines) => Ok(self.keep_missing(root, &path)),
            Resolved::Missing { path } if !path::is_in(&path, &bound) => Err(outside(Some(&place))),
            Resolved::File { .. } | Resolved::Directory { .. } => {
                let (is, wanted) = match accepts {
                    Accepts::Program => ("directory", "program"),
                    _ if is_file => ("directory", "file"),
                    _ => ("file", "directory"),
                };
                Err(WalkError::new(TroubleKind::Refused, format!("`{text}` is a {is}, not a {wanted}")))
            }
            Resolved::Missing { path } => Err(self.missing(id, text, path, accepts)),
            other => Err(self.unresolved(id, text, other)),
        }
    }

    /// Returns whether a root of the user may load any file in its scope.
    fn is_unrestricted(&self, directory: &str) -> bool {
        self.options.load_restrictor == LoadRestrictor::None
            || self.options.unrestricted.is_some_and(|known| known.contains(directory))
    }

    pub(super) fn not_forbidden(&self, source: SourceId, path: &str, text: &str) -> WalkResult<()> {
        match &self.options.forbidden {
            Some(directory) if source == 0 && path::is_in(path, directory) => Err(WalkError::new(
                TroubleKind::Refused,
                format!(
                    "`{text}` lies in `{}`, where the result is going to be",
                    self.graph.sources[0].tree.label(directory)
                ),
            )
            .hint("choose another NEW_DIR")),
            _ => Ok(()),
        }
    }

    /// Explains why a path cannot be followed.
    pub(super) fn unresolved(&self, source: SourceId, text: &str, resolved: Resolved) -> WalkError {
        let tree = &self.graph.sources[source].tree;
        match resolved {
            Resolved::Leaves { link, target } => {
                WalkError::of(TroubleKind::OutOfScope, self.graph.leaves(source, text, &link, &target))
            }
            Resolved::Submodule { path } => {
                let message = format!(
                    "`{text}` lies in the submodule `{}`, whose files this repository does not hold",
                    tree.label(&path)
                );
                WalkError::new(TroubleKind::Submodule { path }, message)
                    .hint("copy the files into this repository, or name the submodule's repository by URL, with its commit")
                    .hint(ADD_ALLOW)
            }
            Resolved::Loop { link: path }
            | Resolved::Missing { path }
            | Resolved::File { path, .. }
            | Resolved::Directory { path } => WalkError::new(
                TroubleKind::Refused,
                format!("`{text}`: the links at `{}` lead to each other", tree.label(&path)),
            ),
        }
    }

    /// Explains why there is nothing at the path that a text means.
    fn missing(&self, source: SourceId, text: &str, path: String, accepts: Accepts) -> WalkError {
        if let Some(stop) = unsupported(text) {
            return stop;
        }
        if RepoSpec::parse(text).is_ok() {
            let message = format!("`{}` names a git repository, but this field takes a file", redact::url(text));
            return WalkError::new(TroubleKind::Unsupported, message).hint("name the file by its raw https URL");
        }
        let message = format!("there is no `{}`", self.graph.sources[source].tree.label(&path));
        let mut absence = self.absence(source, &path);
        let is_file = matches!(accepts, Accepts::File | Accepts::Program);
        // A rule for directories (`build/`) does not match the missing path itself, but would match its contents.
        if absence == Absence::Nowhere
            && !is_file
            && let ignored @ Absence::Ignored(..) = self.absence(source, &path::join(&path, FILE_NAMES[0]))
        {
            absence = ignored;
        }
        let (message, hints) = absent(&absence, &path, is_file, message, "add it, or take the reference out");
        let stop = WalkError::new(TroubleKind::Missing { path, absence }, message);
        hints.into_iter().fold(stop, WalkError::hint)
    }

    /// Explains why there is no kustomization in a directory.
    pub(super) fn no_kustomization(&self, source: SourceId, directory: &str) -> Result<WalkError> {
        let tree = &self.graph.sources[source].tree;
        let names = || FILE_NAMES.iter().map(|name| path::join(directory, name));
        for path in names() {
            if tree.entry(&path)?.is_some() {
                let shown = tree.label(&path);
                let message = format!("`{shown}` is not a file of its directory: kustomize sees no kustomization");
                let stop = WalkError::new(TroubleKind::BadKustomization { path }, message);
                return Ok(stop.hint("put the kustomization itself there"));
            }
        }
        let there = names().map(|path| (self.absence(source, &path), path));
        let there = there.min_by_key(|(absence, _)| *absence == Absence::Nowhere);
        let (absence, path) = there.unwrap_or((Absence::Nowhere, String::new()));
        let message = format!("`{}` holds no kustomization", tree.label(directory));
        let (message, hints) =
            absent(&absence, &path, true, message, "add a `kustomization.yaml` to it, or name its files one by one");
        let directory = directory.to_owned();
        let stop = WalkError::new(TroubleKind::NoKustomization { directory, absence }, message);
        Ok(hints.into_iter().fold(stop, WalkError::hint))
    }

    /// Returns why there is nothing at a path of a source.
    pub(super) fn absence(&self, source: SourceId, path: &str) -> Absence {
        let is_own = self.graph.sources[source].repository.is_none();
        let absences = self.options.absences.filter(|_| is_own);
        absences.map_or(Absence::Nowhere, |absences| absences.of(path))
    }

    pub(super) fn check_kind(&self, id: RootId, text: &str, accepts: Accepts) -> WalkResult<()> {
        let expected = match accepts {
            Accepts::Component => Kind::Component,
            _ => Kind::Kustomization,
        };
        let shown = || redact::url(text);
        match (expected, self.graph.roots[id].kind) {
            (Kind::Component, Some(Kind::Kustomization)) => Err(WalkError::new(
                TroubleKind::Refused,
                format!("`{}` is a Kustomization, but `components` takes a Component", shown()),
            )
            .hint("name it in `resources`")),
            (Kind::Kustomization, Some(Kind::Component)) => Err(WalkError::new(
                TroubleKind::Refused,
                format!("`{}` is a Component, which only `components` takes", shown()),
            )
            .hint("name it in `components`")),
            _ => Ok(()),
        }
    }

    /// Returns whether an exception covers what a rule finds in these lines.
    pub(super) fn is_allowed(&self, rule: Rule, subject: &Subject, lines: (FileId, usize, usize)) -> bool {
        let reason = |leave| self.graph.exception(leave, rule, subject, lines);
        self.options.leave.and_then(reason).is_some()
    }

    /// Returns whether there may be nothing at a path that is named in these lines.
    pub(super) fn may_be_missing(&self, source: SourceId, path: &str, lines: (FileId, usize, usize)) -> bool {
        let Some(may) = self.options.leave_missing.filter(|_| source == 0) else {
            return false;
        };
        let (subject, none) = (Subject::Local, Config::default());
        let says = |rule| self.graph.exception(&none, rule, &subject, lines).is_some();
        may(path) || Rule::MISSING.into_iter().any(says)
    }

    pub(super) fn keep_missing(&mut self, root: RootId, path: &str) -> Target {
        let shown = self.graph.sources[0].tree.label(path);
        self.graph.missing.entry(root).or_insert(shown);
        Target::Kept
    }
}

/// Returns what to say of what is missing, and what to do; `message` and `hint` where it is nowhere.
pub(super) fn absent(
    absence: &Absence,
    path: &str,
    is_file: bool,
    message: String,
    hint: &str,
) -> (String, Vec<String>) {
    match absence {
        Absence::Nowhere => (message, vec![hint.to_owned()]),
        Absence::Deleted => {
            let restore = command("git restore --staged --worktree --", [pathspec(path)]);
            (message, vec![format!("bring it back: {restore}")])
        }
        // A directory may hold what is ignored for good reason: only a file is added by force.
        Absence::Untracked if is_file || path::name(path).contains('.') => {
            (format!("`{path}` is on disk, but not committed"), vec![stage([path])])
        }
        Absence::Untracked => {
            (format!("`{path}` is on disk, but not committed"), vec![command("git add --", [pathspec(path)])])
        }
        Absence::Ignored(rule, pattern) => (
            format!("git ignores `{path}`: by `{pattern}` in {rule}"),
            vec![format!("if it holds no secret, commit it: {}", stage([path])), ADD_ALLOW.to_owned()],
        ),
    }
}

/// Returns whether a path climbs after a name: the system follows a link before it climbs, and everything else here joins
/// paths as text.
fn climbs(text: &str) -> bool {
    path::components(text).skip_while(|name| [".", ".."].contains(name)).any(|name| name == "..")
}

/// Returns the error for a reference that was surely meant to be remote, but that kustomize does not support.
fn unsupported(text: &str) -> Option<WalkError> {
    let shown = || redact::url(text);
    if let Some(scheme) = reference::unsupported_scheme(text) {
        return Some(
            WalkError::new(TroubleKind::Unsupported, format!("`{}`: kustomize cannot read `{scheme}`", shown()))
                .hint("use an https, ssh or file URL of a git repository, or the https URL of a file"),
        );
    }
    match RepoSpec::parse(text) {
        Err(reason) if text.contains("://") => Some(
            WalkError::new(
                TroubleKind::Unsupported,
                format!("`{}` is not the URL of a git repository: {reason}", shown()),
            )
            .hint("write it as https://HOST/ORG/REPO//DIRECTORY?ref=REF"),
        ),
        _ => None,
    }
}
