//! One kustomization root, and what stands beside it.

use std::collections::BTreeMap;

use git_kustomize_localize::seams::tree::Entry;

use crate::support::Repo;

/// A resource that every variant has, so that there is something to transform.
const RESOURCE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {a: b}\n";

/// A directory with a kustomization, which is checked and built.
#[derive(Clone)]
pub(super) struct Variant {
    /// What sort of thing is tried.
    pub(super) class: &'static str,
    /// What is tried, one of its class.
    pub(super) name: String,
    files: BTreeMap<String, (Entry, Vec<u8>)>,
}

impl Variant {
    /// A root with this kustomization. `{loopback}` in it is the address of a server that writes down what it was asked
    /// for.
    pub(super) fn new(class: &'static str, name: impl Into<String>, kustomization: impl AsRef<[u8]>) -> Variant {
        Variant::bare(class, name).with("kustomization.yaml", kustomization)
    }

    /// A root without a kustomization.
    pub(super) fn bare(class: &'static str, name: impl Into<String>) -> Variant {
        let variant = Variant { class, name: name.into(), files: BTreeMap::new() };
        variant.with("cm.yaml", RESOURCE)
    }

    /// Adds a file.
    pub(super) fn with(self, path: impl AsRef<str>, text: impl AsRef<[u8]>) -> Variant {
        self.put(path.as_ref(), Entry::File { executable: false }, text.as_ref())
    }

    /// Adds a file that can be executed.
    pub(super) fn program(self, path: &str, text: &str) -> Variant {
        self.put(path, Entry::File { executable: true }, text.as_bytes())
    }

    /// Adds a symbolic link.
    pub(super) fn link(self, path: &str, target: impl AsRef<str>) -> Variant {
        self.put(path, Entry::Link, target.as_ref().as_bytes())
    }

    fn put(mut self, path: &str, entry: Entry, bytes: &[u8]) -> Variant {
        self.files.insert(path.to_owned(), (entry, bytes.to_vec()));
        self
    }

    /// Adds a chart that is there.
    pub(super) fn chart(self, place: &str) -> Variant {
        self.with(format!("{place}/Chart.yaml"), "name: web\nversion: 1.2.3\n").with(format!("{place}/values.yaml"), "")
    }

    /// Puts everything into a directory of a repository.
    pub(super) fn write(&self, repo: &Repo, directory: &str, loopback: &str) {
        for (path, (entry, bytes)) in &self.files {
            let place = format!("{directory}/{path}");
            // Other bytes do not change, UTF-8 or not.
            let filled = match str::from_utf8(bytes) {
                Ok(text) => text.replace("{loopback}", loopback).into_bytes(),
                Err(_) => bytes.clone(),
            };
            match entry {
                Entry::Link => repo.symlink(&place, str::from_utf8(bytes).unwrap()),
                Entry::File { executable: true } => repo.write_executable(&place, filled),
                _ => repo.write(&place, filled),
            }
        }
    }

    /// Returns all of it, for people.
    pub(super) fn shown(&self) -> String {
        let mut shown = String::new();
        for (path, (kind, text)) in &self.files {
            let text = String::from_utf8_lossy(text);
            if path != "cm.yaml" {
                shown += &format!("    {path}: {kind:?}\n");
                for line in text.split_inclusive('\n') {
                    shown += &format!("    | {}\n", line.escape_debug());
                }
            }
        }
        shown
    }
}
