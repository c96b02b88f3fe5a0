//! The files of a chart that is in the tree. A build needs them all, byte for byte.

use std::collections::BTreeMap;

use crate::graph::local::wider;
use crate::graph::trouble::{TroubleKind, WalkError, WalkResult};
use crate::graph::{FileId, SourceId, Walker};
use crate::os::limits::CARRIED_FILES;
use crate::tree::{self, Entry, Resolved, SharedTree, path};

/// One directory that is being listed.
struct Open {
    /// Its path below the chart.
    inside: String,
    /// Its real path.
    real: String,
    /// The real directories in which links were followed on the way here.
    via: Vec<String>,
}

impl Walker<'_> {
    /// Returns the files of the chart at a path of a source.
    pub(super) fn files_of_chart(&mut self, source: SourceId, place: &str) -> WalkResult<BTreeMap<String, FileId>> {
        let scope = self.graph.sources[source].scope.clone();
        let tree = self.graph.sources[source].tree.clone();
        let Resolved::Directory { path: real } = tree::resolve(&*tree, place)? else {
            return Ok(BTreeMap::new());
        };
        if !path::is_in(place, &scope) || !path::is_in(&real, &scope) {
            let message = format!("the chart `{}` lies outside the scope `{}`", tree.label(&real), tree.label(&scope));
            return Err(WalkError::new(TroubleKind::OutOfScope, message).hint(wider(&*tree, &scope, Some(&real))));
        }
        // Only a copy takes along what is the user's.
        if self.graph.sources[source].repository.is_none() && self.options.forbidden.is_none() {
            return Ok(BTreeMap::new());
        }
        let files = self.files_below(source, &tree, real, &scope)?;
        if files.is_empty() {
            let message = format!("`{}` holds no file, and git keeps no empty directory", tree.label(place));
            return Err(WalkError::new(TroubleKind::Refused, message).hint("put a file into it"));
        }
        Ok(files)
    }

    fn files_below(
        &mut self,
        source: SourceId,
        tree: &SharedTree,
        top: String,
        bound: &str,
    ) -> WalkResult<BTreeMap<String, FileId>> {
        let mut files = BTreeMap::new();
        let mut entries = 0;
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
                CARRIED_FILES.check(entries, || shown.clone())?;
                let place = path::join(&open.real, &name);
                let inside = path::join(&open.inside, &name);
                let resolved = match tree.entry(&place)? {
                    None => continue,
                    Some(Entry::File { executable }) => Resolved::File { path: place, executable },
                    Some(Entry::Directory) => Resolved::Directory { path: place },
                    Some(Entry::Link | Entry::Submodule) => self.linked(source, &open, &place, bound)?,
                };
                match resolved {
                    Resolved::Directory { path: real } => {
                        let mut via = open.via.clone();
                        via.push(open.real.clone());
                        todo.push(Open { inside, real, via });
                    }
                    Resolved::File { path, executable } => {
                        files.insert(inside, self.file(source, &path, executable));
                    }
                    _ => {}
                }
            }
        }
        Ok(files)
    }

    /// Returns the file or directory that a link in a chart leads to.
    fn linked(&self, source: SourceId, open: &Open, link: &str, bound: &str) -> WalkResult<Resolved> {
        let tree = &self.graph.sources[source].tree;
        let shown = tree.label(link);
        let resolved = tree::resolve(&**tree, link)?;
        match &resolved {
            Resolved::File { path, .. } | Resolved::Directory { path } if !path::is_in(path, bound) => {
                let target = tree.label(path);
                let message = format!("the link `{shown}` leads to `{target}`, out of `{}`", tree.label(bound));
                Err(WalkError::new(TroubleKind::OutOfScope, message).hint("replace the link by what it points to"))
            }
            Resolved::Directory { path }
                if [&open.real].into_iter().chain(&open.via).any(|below| path::is_in(below, path)) =>
            {
                let message = format!("the link `{shown}` leads back to a directory that it lies in");
                Err(WalkError::new(TroubleKind::Refused, message).hint("take the link out"))
            }
            Resolved::File { .. } | Resolved::Directory { .. } => Ok(resolved),
            Resolved::Missing { .. } => {
                let target = tree.read(link).unwrap_or_default();
                let target = String::from_utf8_lossy(&target);
                let message = format!("the link `{shown}` leads nowhere: there is no `{target}`");
                Err(WalkError::new(TroubleKind::Refused, message).hint("take the link out, or add what it points to"))
            }
            _ => Err(self.unresolved(source, &shown, resolved)),
        }
    }
}
