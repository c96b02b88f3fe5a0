//! What a build needs as a whole and what holds no references for us: the program of a function, a chart. Every file of
//! it comes along, byte for byte.

use std::collections::BTreeMap;

use super::local::wider;
use super::nodes::{Carried, CarriedId, FileId, SourceId};
use super::trouble::{Beyond, TroubleKind, WalkError, WalkResult};
use super::{Contents, RootId, Target, Walker};
use crate::os::limits::{CARRIED_BYTES, CARRIED_FILES};
use crate::tree::{self, Entry, Resolved, SharedTree, path};

/// One directory that is being listed.
struct Open {
    /// Its path below what is carried.
    inside: String,
    /// Its real path.
    real: String,
    /// The real directories in which links were followed on the way here.
    via: Vec<String>,
}

impl Walker<'_> {
    /// Brings along the program that a local reference of this root names. It may lie anywhere in the scope.
    pub(super) fn program(&mut self, root: RootId, edge: usize, text: &str) -> WalkResult<Target> {
        let source_id = self.graph.roots[root].source;
        let source = &self.graph.sources[source_id];
        let (tree, bound) = (source.tree.clone(), source.scope.clone());
        let remote = source.repository.is_some();
        if remote && path::is_absolute(text) {
            let message = format!("`{text}` is an absolute path in a remote root");
            return Err(WalkError::new(TroubleKind::OutOfScope(Beyond::Absolute), message)
                .hint("no checkout of its repository has such a file"));
        }
        let lexical = self.graph.local_path(root, text);
        let beyond = |path: Option<&str>| {
            let message = format!("`{text}` lies outside the scope `{}`", tree.label(&bound));
            let hint = if remote {
                "a remote root cannot reach out of its repository".to_owned()
            } else {
                wider(&*tree, &bound, path)
            };
            WalkError::new(TroubleKind::OutOfScope(Beyond::Scope), message).hint(hint)
        };
        let outside = || beyond(lexical.as_deref());
        let Some(place) = lexical.clone() else {
            return Err(if path::is_absolute(text) { super::local::nowhere(text) } else { outside() });
        };
        self.not_forbidden(source_id, &place, text)?;
        // The system follows a link before it climbs; everything else here joins paths as text.
        let mut inside = path::components(text).skip_while(|name| [".", ".."].contains(name));
        if inside.any(|name| name == "..") {
            let message = format!("`{text}` climbs with `..` after a name, which may be a link");
            return Err(WalkError::new(TroubleKind::Refused, message)
                .hint("name the program by a path with `..` at its beginning alone"));
        }
        let resolved = tree::resolve(&*tree, &place)?;
        let lines = self.graph.roots[root].edges[edge].lines();
        let real = match &resolved {
            Resolved::File { path, .. } | Resolved::Directory { path } => path,
            Resolved::Missing { path } if self.may_be_missing(source_id, path, lines) => {
                let path = path.clone();
                return Ok(self.keep_missing(root, &path));
            }
            _ => return Err(self.unresolved(source_id, text, resolved, &outside, &bound)),
        };
        for path in [&place, real] {
            if !path::is_in(path, &bound) {
                return Err(beyond(Some(path)));
            }
        }
        self.not_forbidden(source_id, real, text)?;
        if matches!(resolved, Resolved::Directory { .. }) {
            return Err(WalkError::new(TroubleKind::Refused, format!("`{text}` is a directory, not a program")));
        }
        Ok(Target::Carried(self.bring(source_id, &place, &bound)?))
    }

    /// Brings along what is at a path of a source, which holds it or a link to it, as far as it lies in
    /// `bound`.
    pub(super) fn bring(&mut self, source: SourceId, place: &str, bound: &str) -> WalkResult<CarriedId> {
        let key = (source, place.to_owned(), bound.to_owned());
        if let Some(known) = self.carried.get(&key) {
            return Ok(*known);
        }
        let tree = self.graph.sources[source].tree.clone();
        let files = match tree::resolve(&*tree, place)? {
            Resolved::File { path, executable } => {
                let file = self.file(source, &path, executable)?;
                BTreeMap::from([(String::new(), file)])
            }
            Resolved::Directory { path } if self.looks_into(source) => {
                let files = self.files_below(source, &tree, path, bound)?;
                if files.is_empty() {
                    return Err(WalkError::new(
                        TroubleKind::Refused,
                        format!("`{}` holds no file, and git keeps no empty directory", tree.label(place)),
                    )
                    .hint("put a file into it"));
                }
                files
            }
            _ => BTreeMap::new(),
        };
        let id = self.graph.carried.len();
        self.graph.carried.push(Carried { source, path: place.to_owned(), files });
        self.carried.insert(key, id);
        Ok(id)
    }

    /// Returns whether what lies in the directories of a source is of interest.
    fn looks_into(&self, source: SourceId) -> bool {
        match self.options.contents {
            Contents::All => true,
            Contents::Configurations => false,
            Contents::Fetched => self.graph.sources[source].repository.is_some(),
        }
    }

    fn files_below(
        &mut self,
        source: SourceId,
        tree: &SharedTree,
        top: String,
        bound: &str,
    ) -> WalkResult<BTreeMap<String, FileId>> {
        let mut files = BTreeMap::new();
        let (mut entries, mut bytes) = (0, 0);
        let shown = tree.label(&top);
        let mut todo = vec![Open { inside: String::new(), real: top, via: Vec::new() }];
        while let Some(open) = todo.pop() {
            self.not_forbidden(source, &open.real, &tree.label(&open.real))?;
            for name in tree.names(&open.real)? {
                // A build has no business there, and git holds nothing of that name.
                if name.eq_ignore_ascii_case(".git") {
                    continue;
                }
                entries += 1;
                let place = path::join(&open.real, &name);
                let inside = path::join(&open.inside, &name);
                match tree.entry(&place)? {
                    None => {}
                    Some(Entry::File { executable }) => {
                        files.insert(inside, self.file(source, &place, executable)?);
                    }
                    Some(Entry::Directory) => todo.push(Open { inside, real: place, via: open.via.clone() }),
                    Some(Entry::Link | Entry::Submodule) => {
                        let resolved = tree::resolve(&**tree, &place)?;
                        match self.linked(source, tree, &open, &place, resolved, bound)? {
                            Linked::File(path, executable) => {
                                files.insert(inside, self.file(source, &path, executable)?);
                            }
                            Linked::Directory(real) => {
                                let mut via = open.via.clone();
                                via.push(open.real.clone());
                                todo.push(Open { inside, real, via });
                            }
                        }
                    }
                }
                if let Some(file) = files.get(&path::join(&open.inside, &name)) {
                    bytes += self.graph.files[*file].bytes.len();
                }
                for (limit, count) in [(CARRIED_FILES, entries), (CARRIED_BYTES, bytes)] {
                    limit.check(count, || shown.clone())?;
                }
            }
        }
        Ok(files)
    }

    /// Returns what a link in a carried directory leads to.
    fn linked(
        &self,
        source: SourceId,
        tree: &SharedTree,
        open: &Open,
        link: &str,
        resolved: Resolved,
        bound: &str,
    ) -> WalkResult<Linked> {
        let shown = tree.label(link);
        let beyond = |target: &str| {
            WalkError::new(
                TroubleKind::OutOfScope(Beyond::Link { link: link.to_owned(), target: target.to_owned() }),
                format!("the link `{shown}` leads to `{target}`, out of `{}`", tree.label(bound)),
            )
            .hint("replace the link by what it points to")
        };
        match resolved {
            Resolved::File { path, .. } | Resolved::Directory { path } if !path::is_in(&path, bound) => {
                Err(beyond(&tree.label(&path)))
            }
            Resolved::File { path, executable } => Ok(Linked::File(path, executable)),
            Resolved::Directory { path } => {
                let leads_back = |below: &str| path::is_in(below, &path);
                if leads_back(&open.real) || open.via.iter().any(|below| leads_back(below)) {
                    return Err(WalkError::new(
                        TroubleKind::Refused,
                        format!("the link `{shown}` leads back to a directory that it lies in"),
                    )
                    .hint("take the link out"));
                }
                Ok(Linked::Directory(path))
            }
            Resolved::Missing { .. } => {
                let target = tree.read(link).unwrap_or_default();
                Err(WalkError::new(
                    TroubleKind::Refused,
                    format!("the link `{shown}` leads nowhere: there is no `{}`", String::from_utf8_lossy(&target)),
                )
                .hint("take the link out, or add what it points to"))
            }
            other => Err(self.unresolved(source, &shown, other, &|| beyond("somewhere"), bound)),
        }
    }
}

/// What a link leads to.
enum Linked {
    File(String, bool),
    Directory(String),
}
