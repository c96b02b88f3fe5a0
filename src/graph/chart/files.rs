//! The files of a chart that is in the tree. A build needs them all, byte for byte.

use std::collections::BTreeMap;

use crate::graph::local::WIDER;
use crate::graph::trouble::{Trouble, TroubleKind, WalkResult};
use crate::graph::{FileId, Source, SourceId, Walker};
use crate::os::limits::{CARRIED_FILES, PATH};
use crate::tree::{self, Resolved, path};

impl Walker<'_> {
    /// Returns the files of the chart at a path of a source, by their paths in it; a link is what it leads to.
    pub(super) fn files_of_chart(&mut self, source: SourceId, place: &str) -> WalkResult<BTreeMap<String, FileId>> {
        let Source { tree, scope, repository } = &self.graph.sources[source];
        let (tree, scope, is_own) = (tree.clone(), scope.clone(), repository.is_none());
        let mut files = BTreeMap::new();
        let Resolved::Directory { path: top } = tree::resolve(&*tree, place)? else {
            return Ok(files);
        };
        let shown = tree.label(&top);
        if !path::is_in(place, &scope) || !path::is_in(&top, &scope) {
            let message = format!("the chart `{shown}` is outside the scope `{}`", tree.label(&scope));
            return Err(Trouble::new(TroubleKind::OutOfScope, message).hint(WIDER));
        }
        // Only a copy takes along what is the user's.
        if is_own && self.options.forbidden.is_none() {
            return Ok(files);
        }
        let mut entries = 0;
        let mut todo = vec![(String::new(), top)];
        while let Some((inside, directory)) = todo.pop() {
            for name in tree.names(&directory)? {
                // A build has no business there, and git holds nothing of that name.
                if name.eq_ignore_ascii_case(".git") {
                    continue;
                }
                let (place, inside) = (path::join(&directory, &name), path::join(&inside, &name));
                entries += 1;
                CARRIED_FILES.check(entries, || shown.clone())?;
                match tree::resolve(&*tree, &place)? {
                    Resolved::File { path, .. } | Resolved::Directory { path } if !path::is_in(&path, &scope) => {
                        let message = format!(
                            "the link `{}` points to `{}`, outside of `{scope}`",
                            tree.label(&place),
                            tree.label(&path)
                        );
                        return Err(Trouble::new(TroubleKind::OutOfScope, message)
                            .hint("replace the link with a copy of its target"));
                    }
                    Resolved::Directory { path } => {
                        if path != place {
                            // Where links lead back, it grows and grows.
                            PATH.check(inside.len(), || tree.label(&place))?;
                        }
                        todo.push((inside, path));
                    }
                    Resolved::File { path, executable } => {
                        files.insert(inside, self.file(source, &path, executable));
                    }
                    other => return Err(self.unresolved(source, &tree.label(&place), other)),
                }
            }
        }
        Ok(files)
    }
}
