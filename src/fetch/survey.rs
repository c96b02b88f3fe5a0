//! What a build of some roots of a fetched repository reads, as far as the files that are here tell: so that what is
//! missing can be fetched together, before the walk asks for one file after the other.
//!
//! This only saves requests. A file that is not found here is fetched when it is read, and one too many does no harm.

use std::collections::HashSet;

use crate::graph::CHART_HOME;
use crate::kustomization::{self, Accepts, Note, NoteKind, Reference};
use crate::os::limits::FILE;
use crate::tree::{Entry, FILE_NAMES, Resolved, Tree, license, path, resolve};

/// How many files of a directory are fetched on suspicion.
const MOST_GUESSED: usize = 32;
/// How many files of a directory are fetched that is needed as a whole.
const MOST_BELOW: usize = 20_000;

/// A tree that some files are missing of.
pub(super) trait Partial: Tree {
    /// Returns whether the file at `path` can be read now; if it cannot, it is fetched next.
    fn want(&self, path: &str) -> bool;
}

/// Wants all that a build of the roots in these directories is known to read.
pub(super) fn roots(tree: &dyn Partial, directories: &[String]) {
    let mut survey = Survey {
        tree,
        todo: directories.to_vec(),
        seen: HashSet::new(),
        plugins: HashSet::new(),
        licensed: HashSet::new(),
    };
    while let Some(directory) = survey.todo.pop() {
        survey.root(&directory);
    }
}

/// Wants the file at `path`, and what is likely to be read next.
pub(super) fn around(tree: &dyn Partial, path: &str) {
    if FILE_NAMES.contains(&path::name(path)) {
        roots(tree, &[path::parent(path).to_owned()]);
    } else {
        guess(tree, path::parent(path));
    }
    tree.want(path);
}

/// Wants the YAML files of a directory, unless there are many.
fn guess(tree: &dyn Partial, directory: &str) {
    let is_yaml = |name: &String| name.ends_with(".yaml") || name.ends_with(".yml");
    let names = tree.names(directory).unwrap_or_default();
    let names: Vec<String> = names.into_iter().filter(is_yaml).collect();
    if names.len() <= MOST_GUESSED {
        for name in names {
            let place = path::join(directory, &name);
            if matches!(tree.entry(&place), Ok(Some(Entry::File { .. }))) {
                tree.want(&place);
            }
        }
    }
}

struct Survey<'a> {
    tree: &'a dyn Partial,
    todo: Vec<String>,
    seen: HashSet<String>,
    /// The plugin configurations that were read, each with the root that it is read for.
    plugins: HashSet<(String, String)>,
    /// The directories whose licences are wanted.
    licensed: HashSet<String>,
}

impl Survey<'_> {
    fn root(&mut self, directory: &str) {
        let Some(Resolved::Directory { path: directory }) = self.resolve(directory) else {
            return;
        };
        if !self.seen.insert(directory.clone()) {
            return;
        }
        let mut files = Vec::new();
        for name in FILE_NAMES {
            if let Some(Resolved::File { path, .. }) = self.resolve(&path::join(&directory, name)) {
                files.push(path);
            }
        }
        if files.is_empty() {
            return;
        }
        self.licenses(&directory);
        for file in files {
            if !self.tree.want(&file) {
                guess(self.tree, &directory);
            } else if let Some(bytes) = self.read(&file)
                && let Ok(read) = kustomization::read(&bytes)
            {
                self.charts(&directory, &read.notes);
                for reference in &read.references {
                    self.follow(&directory, reference);
                }
            }
        }
    }

    fn resolve(&self, path: &str) -> Option<Resolved> {
        resolve(self.tree, path).ok()
    }

    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let bytes = self.tree.read(path).ok()?;
        (bytes.len() <= FILE.most).then_some(bytes)
    }

    fn licenses(&mut self, directory: &str) {
        for above in [directory, ""] {
            if self.licensed.insert(above.to_owned()) {
                for place in license::paths(self.tree, above).unwrap_or_default() {
                    self.tree.want(&place);
                }
            }
        }
    }

    fn follow(&mut self, root: &str, reference: &Reference) {
        let text = reference.text.as_str();
        if text.is_empty() || path::is_absolute(text) {
            return;
        }
        let resolved = path::resolve(root, text).and_then(|path| self.resolve(&path));
        match resolved {
            Some(Resolved::File { path, .. }) => {
                let here = self.tree.want(&path);
                if here && reference.accepts == Accepts::Plugin {
                    self.plugin(root, path);
                }
            }
            Some(Resolved::Directory { path }) => match reference.accepts {
                Accepts::Component | Accepts::Either | Accepts::Plugin => self.todo.push(path),
                Accepts::File | Accepts::Program => {}
            },
            _ => {}
        }
    }

    /// Follows what a plugin configuration names, which counts from the root that lists it.
    fn plugin(&mut self, root: &str, file: String) {
        let Some(bytes) = self.read(&file) else {
            return;
        };
        if !self.plugins.insert((root.to_owned(), file)) {
            return;
        }
        if let Ok(plugin) = kustomization::read_plugin(&bytes) {
            self.charts(root, &plugin.notes);
            for reference in &plugin.references {
                self.follow(root, reference);
            }
        }
    }

    /// Wants the charts that lie in the repository, in any of the homes that a file names.
    fn charts(&mut self, root: &str, notes: &[Note]) {
        let homes = notes.iter().filter_map(|note| match &note.kind {
            NoteKind::ChartHome { path, .. } => Some(path.as_str()),
            _ => None,
        });
        let homes: HashSet<&str> = homes.chain([CHART_HOME]).collect();
        for note in notes {
            let (NoteKind::RemoteChart { name, version, .. } | NoteKind::LocalChart { name, version, .. }) = &note.kind
            else {
                continue;
            };
            for home in &homes {
                for place in [name.clone(), format!("{name}-{version}/{name}")] {
                    let place = path::resolve(root, home).and_then(|home| path::resolve(&home, &place));
                    if let Some(Resolved::Directory { path }) = place.and_then(|place| self.resolve(&place)) {
                        self.below(path);
                    }
                }
            }
        }
    }

    /// Wants every file below a directory.
    fn below(&self, directory: String) {
        let mut left = MOST_BELOW;
        let mut todo = vec![directory];
        while let Some(directory) = todo.pop() {
            for name in self.tree.names(&directory).unwrap_or_default() {
                let place = path::join(&directory, &name);
                left = left.saturating_sub(1);
                match self.tree.entry(&place) {
                    Ok(Some(Entry::Directory)) if left > 0 => todo.push(place),
                    Ok(Some(Entry::File { .. } | Entry::Link)) if left > 0 => {
                        self.tree.want(&place);
                    }
                    _ => {}
                }
            }
        }
    }
}
