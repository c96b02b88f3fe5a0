//! One kustomization root, and what stands beside it.

use std::collections::BTreeMap;

use crate::support::Repo;

/// A resource that every variant has, so that there is something to transform.
const RESOURCE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {a: b}\n";

/// What stands at a path.
#[derive(Clone)]
enum Content {
    File(Vec<u8>),
    Program(Vec<u8>),
    Link(String),
}

/// A directory with a kustomization, which is checked and built.
#[derive(Clone)]
pub(super) struct Variant {
    /// What sort of thing is tried.
    pub(super) class: &'static str,
    /// What is tried, one of its class.
    pub(super) name: String,
    files: BTreeMap<String, Content>,
}

impl Variant {
    /// A root with this kustomization. `{loopback}` in it is the address of a server that writes down what it was asked
    /// for.
    pub(super) fn new(
        class: &'static str,
        name: impl Into<String>,
        kustomization: impl AsRef<[u8]>,
    ) -> Variant {
        Variant::bare(class, name).with("kustomization.yaml", kustomization)
    }

    /// A root without a kustomization.
    pub(super) fn bare(class: &'static str, name: impl Into<String>) -> Variant {
        let variant = Variant {
            class,
            name: name.into(),
            files: BTreeMap::new(),
        };
        variant.with("cm.yaml", RESOURCE)
    }

    /// Names it anew.
    pub(super) fn named(self, class: &'static str, name: impl Into<String>) -> Variant {
        Variant {
            class,
            name: name.into(),
            ..self
        }
    }

    /// Adds a file.
    pub(super) fn with(mut self, path: impl Into<String>, text: impl AsRef<[u8]>) -> Variant {
        let content = Content::File(text.as_ref().to_vec());
        self.files.insert(path.into(), content);
        self
    }

    /// Adds a file that can be executed.
    pub(super) fn program(mut self, path: impl Into<String>, text: &str) -> Variant {
        let content = Content::Program(text.as_bytes().to_vec());
        self.files.insert(path.into(), content);
        self
    }

    /// Adds a symbolic link.
    pub(super) fn link(mut self, path: impl Into<String>, target: impl Into<String>) -> Variant {
        self.files.insert(path.into(), Content::Link(target.into()));
        self
    }

    /// Adds a chart that is there.
    pub(super) fn chart(self, place: &str) -> Variant {
        self.with(format!("{place}/Chart.yaml"), "name: web\nversion: 1.2.3\n")
            .with(format!("{place}/values.yaml"), "")
    }

    /// Puts everything into a directory of a repository.
    pub(super) fn write(&self, repo: &Repo, directory: &str, loopback: &str) {
        for (path, content) in &self.files {
            let place = format!("{directory}/{path}");
            match content {
                Content::File(bytes) => repo.write(&place, filled(bytes, loopback)),
                Content::Program(bytes) => {
                    repo.write_executable(&place, filled(bytes, loopback));
                }
                Content::Link(target) => repo.symlink(&place, target),
            }
        }
    }

    /// Returns all of it, for people.
    pub(super) fn shown(&self) -> String {
        let files = self.files.iter().filter(|(path, _)| *path != "cm.yaml");
        let shown = files.map(|(path, content)| match content {
            Content::File(bytes) | Content::Program(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                let lines: Vec<String> = text
                    .split_inclusive('\n')
                    .map(|line| format!("    | {}\n", line.escape_debug()))
                    .collect();
                format!("    {path}:\n{}", lines.concat())
            }
            Content::Link(target) => format!("    {path} -> {target}\n"),
        });
        shown.collect()
    }
}

/// Replaces `{loopback}` by the address; other bytes do not change, UTF-8 or not.
fn filled(bytes: &[u8], loopback: &str) -> Vec<u8> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.replace("{loopback}", loopback).into_bytes(),
        Err(_) => bytes.to_vec(),
    }
}
