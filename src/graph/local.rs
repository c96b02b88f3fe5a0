//! References to what lies in the same tree.

use std::collections::HashSet;

use super::trouble::{Beyond, TroubleKind, WalkError, WalkResult};
use super::{Absence, FileId, LoadRestrictor, RootId, SourceId, Target, Walker};
use crate::config::{Config, FILE_NAME, PLACEHOLDER};
use crate::kustomization::{Accepts, Kind};
use crate::message::failure::{Result, command, stage};
use crate::message::finding::{Rule, Subject};
use crate::message::redact;
use crate::reference::{self, RepoSpec};
use crate::tree::{self, Resolved, path};

/// Returns a hint which scope would hold `path` as well; `None` lies out of the tree.
pub(super) fn wider(tree: &dyn tree::Tree, scope: &str, path: Option<&str>) -> String {
    let Some(path) = path else {
        return "it lies out of the repository, where no scope leads: copy it in, or name it by its URL".to_owned();
    };
    match path::common(scope, path) {
        // A link leads on from there.
        common if common == scope => "name a directory that holds both with `--scope DIR`".to_owned(),
        common => format!("name a directory that holds both: {}", command("--scope", [tree.word(common)])),
    }
}

impl Walker<'_> {
    pub(super) fn is_local_file(&self, root: RootId, text: &str) -> Result<bool> {
        let Some(path) = self.graph.local_path(root, text) else {
            return Ok(false);
        };
        let root = &self.graph.roots[root];
        let tree = &self.graph.sources[root.source].tree;
        Ok(match tree::resolve(&**tree, &path)? {
            Resolved::File { .. } => true,
            // A link that leaves may be a file: `local_file` reports what is wrong with it.
            Resolved::Leaves { .. } | Resolved::Loop { .. } => true,
            _ => false,
        })
    }

    pub(super) fn local_file(&mut self, root: RootId, edge: usize, text: &str) -> WalkResult<Target> {
        let directory = self.graph.roots[root].directory.clone();
        let source_id = self.graph.roots[root].source;
        let source = &self.graph.sources[source_id];
        let remote = source.repository.is_some();
        let tree = source.tree.clone();
        let is_unrestricted = |known: &HashSet<String>| known.contains(&directory);
        let none = !remote
            && (self.options.load_restrictor == LoadRestrictor::None
                || self.options.unrestricted.is_some_and(is_unrestricted));
        let bound = if none { source.scope.clone() } else { directory };
        let lexical = self.graph.local_path(root, text);
        let outside = |what: &str| {
            let stop = if none {
                WalkError::new(
                    TroubleKind::OutOfScope(Beyond::Scope),
                    format!("`{text}` {what} the scope `{}`", tree.label(&bound)),
                )
            } else {
                WalkError::new(
                    TroubleKind::OutOfScope(Beyond::Root),
                    format!("`{text}` {what} its kustomization root `{}`", tree.label(&bound)),
                )
            };
            match (none, remote) {
                (true, _) => stop.hint(wider(&*tree, &bound, lexical.as_deref())),
                (false, true) => stop.hint("`kustomize build` refuses files outside their root in a remote root"),
                (false, false) => {
                    stop.hint("kustomize builds this with `--load-restrictor LoadRestrictionsNone` only: write `load-restrictor: none` in .kustomize-localize")
                }
            }
        };
        if remote && path::is_absolute(text) {
            return Err(WalkError::new(
                TroubleKind::OutOfScope(Beyond::Absolute),
                format!("`{text}` is an absolute path in a remote root"),
            )
            .hint("no checkout of its repository has such a file: `kustomize build` refuses it too"));
        }
        let Some(path) = lexical.clone() else {
            return Err(if path::is_absolute(text) { nowhere(text) } else { outside("lies outside") });
        };
        self.not_forbidden(source_id, &path, text)?;
        let lines = self.graph.roots[root].edges[edge].lines();
        match tree::resolve(&*tree, &path)? {
            Resolved::File { path, executable } => {
                self.not_forbidden(source_id, &path, text)?;
                if !path::is_in(path::parent(&path), &bound) {
                    let stop = outside(if path::is_in(&path, &bound) { "leaves" } else { "lies outside" });
                    // Who builds it all the same builds what it names, too.
                    let from = self.graph.roots[root].edges[edge].from;
                    self.trouble(stop, Some((root, edge)), Some(from));
                }
                Ok(Target::File(self.file(source_id, &path, executable)?))
            }
            Resolved::Directory { .. } => {
                Err(WalkError::new(TroubleKind::Refused, format!("`{text}` is a directory, not a file")))
            }
            Resolved::Missing { path } if self.may_be_missing(source_id, &path, lines) => {
                Ok(self.keep_missing(root, &path))
            }
            other => Err(self.unresolved(source_id, text, other, &|| outside("lies outside"), &bound)),
        }
    }

    pub(super) fn local_root(&mut self, root: RootId, edge: usize, text: &str, accepts: Accepts) -> WalkResult<Target> {
        let Some((source, directory)) = self.local_directory(root, edge, text)? else {
            return Ok(Target::Kept);
        };
        let id = self.enter(source, &directory)?;
        self.check_kind(id, text, accepts)?;
        Ok(Target::Root { id, remote: false })
    }

    /// Returns the real path of the directory that a local reference names; `None` if it is missing
    /// and may be.
    pub(super) fn local_directory(
        &mut self,
        root: RootId,
        edge: usize,
        text: &str,
    ) -> WalkResult<Option<(SourceId, String)>> {
        if let Some(stop) = unsupported(text) {
            return Err(stop);
        }
        if path::is_absolute(text) {
            return Err(WalkError::new(
                TroubleKind::OutOfScope(Beyond::Absolute),
                format!("`{text}` is an absolute path, which leads to no file here"),
            )
            .hint("`kustomize build` takes those for files only, in or below the root that names them: write a relative path"));
        }
        let source_id = self.graph.roots[root].source;
        let source = &self.graph.sources[source_id];
        let tree = source.tree.clone();
        let scope = source.scope.clone();
        let remote = source.repository.is_some();
        let lexical = path::resolve(&self.graph.roots[root].directory, text);
        let beyond = |path: Option<&str>| {
            let stop = WalkError::new(
                TroubleKind::OutOfScope(Beyond::Scope),
                format!("`{text}` lies outside the scope `{}`", tree.label(&scope)),
            );
            if remote {
                stop.hint("a remote root cannot reach out of its repository")
            } else {
                stop.hint(wider(&*tree, &scope, path))
            }
        };
        let outside = || beyond(lexical.as_deref());
        let Some(path) = lexical.clone() else {
            return Err(outside());
        };
        let lines = self.graph.roots[root].edges[edge].lines();
        match tree::resolve(&*tree, &path)? {
            Resolved::Directory { path } => {
                if !path::is_in(&path, &scope) {
                    return Err(beyond(Some(&path)));
                }
                self.not_forbidden(source_id, &path, text)?;
                Ok(Some((source_id, path)))
            }
            Resolved::File { .. } => {
                Err(WalkError::new(TroubleKind::Refused, format!("`{text}` is a file, not a directory")))
            }
            Resolved::Missing { path } if self.may_be_missing(source_id, &path, lines) => {
                self.keep_missing(root, &path);
                Ok(None)
            }
            other => Err(self.unresolved(source_id, text, other, &outside, &scope)),
        }
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

    /// Explains why a local path leads nowhere.
    pub(super) fn unresolved(
        &self,
        source: SourceId,
        text: &str,
        resolved: Resolved,
        outside: &dyn Fn() -> WalkError,
        bound: &str,
    ) -> WalkError {
        let tree = &self.graph.sources[source].tree;
        match resolved {
            Resolved::Leaves { link, target } => {
                let message =
                    format!("`{text}` follows the link `{}` to `{target}`, out of the tree", tree.label(&link));
                WalkError::new(TroubleKind::OutOfScope(Beyond::Link { link, target }), message)
                    .hint("replace the link by what it points to")
            }
            Resolved::Loop { link } => WalkError::new(
                TroubleKind::Refused,
                format!("`{text}`: the links at `{}` lead to each other", tree.label(&link)),
            ),
            Resolved::Submodule { path } => {
                let message = format!(
                    "`{text}` lies in the submodule `{}`, whose files this repository does not hold",
                    tree.label(&path)
                );
                WalkError::new(TroubleKind::Submodule { path }, message)
                    .hint("name the submodule's repository by URL, or copy the files into this one")
            }
            Resolved::Missing { path } if !path::is_in(&path, bound) => outside(),
            Resolved::Missing { path } => {
                let local = self.graph.sources[source].repository.is_none();
                self.missing(text, &path, local, &**tree)
            }
            Resolved::File { .. } | Resolved::Directory { .. } => {
                WalkError::new(TroubleKind::Refused, format!("`{text}` cannot be used here"))
            }
        }
    }

    pub(super) fn missing(&self, text: &str, path: &str, local: bool, tree: &dyn tree::Tree) -> WalkError {
        if let Some(stop) = unsupported(text) {
            return stop;
        }
        if RepoSpec::parse(text).is_ok() {
            return WalkError::new(
                TroubleKind::Unsupported,
                format!("`{}` names a git repository, but this field takes a file", redact::url(text)),
            )
            .hint("name the file by its raw https URL");
        }
        let shown = tree.label(path);
        let absence = match self.options.absence {
            Some(absence) if local => absence(path),
            _ => Absence::Nowhere,
        };
        let kind = TroubleKind::Missing { path: path.to_owned(), absence: absence.clone() };
        match absence {
            Absence::Nowhere => WalkError::new(kind, format!("`{text}` does not exist: there is no `{shown}`")),
            Absence::Untracked => WalkError::new(kind, format!("`{text}` is not committed: `{shown}` is on disk only"))
                .hint(format!("{} && git commit", stage([&shown]))),
            Absence::Ignored(place, pattern) => WalkError::new(
                kind,
                format!("`{text}` is kept out of git: `{shown}` matches `{pattern}` ({place})"),
            )
            .hint(format!(
                "to let it be missing, add to `allow` in `{FILE_NAME}`: - {{path: {shown}, reason: {PLACEHOLDER}}}"
            )),
        }
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

/// Returns the error for an absolute path that leads to nothing in the tree.
pub(super) fn nowhere(text: &str) -> WalkError {
    WalkError::new(
        TroubleKind::OutOfScope(Beyond::Absolute),
        format!("`{text}` is an absolute path, which leads to nothing in this repository"),
    )
    .hint("it holds on one machine, in one checkout only: write it relative to the kustomization")
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
