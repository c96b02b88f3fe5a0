//! What tests of rules start from: a tree in memory, and what is found in it.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use super::{Checked, Input, check};
use crate::config::Config;
use crate::git::Snapshot;
use crate::message::finding::{Finding, Rule};
use crate::record::{Digest, LOCK_NAME, Lock, Pinned, StoredFile};
use crate::reference::Upstream;
use crate::targets::Identity;
use crate::tree::overlay::OverlayTree;

/// A commit id.
pub(super) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// The directories of a repository in a scene.
const DIRECTORIES: [&str; 5] = ["", "a", "base", "dir", "gen"];

/// A tree in memory to check.
#[derive(Default)]
pub(crate) struct Scene {
    /// What the files and the lock name.
    pub(super) texts: String,
    pub(super) tree: OverlayTree,
    pub(super) lock: Lock,
    pub(super) config: Config,
    /// That of the change, where `config` is that of its base.
    pub(super) own: Option<Config>,
    pub(super) paths: Vec<String>,
}

impl Scene {
    /// Returns a tree of one kustomization at the top.
    pub(crate) fn of(text: &str) -> Scene {
        Scene::default().file("kustomization.yaml", text)
    }

    pub(crate) fn file(mut self, path: &str, text: &str) -> Scene {
        self.tree.add_file(path, text.as_bytes());
        self.texts += text;
        self
    }

    /// Reads a configuration.
    pub(crate) fn config(mut self, text: &str) -> Scene {
        self.config = Config::parse(text.as_bytes(), ".kustomize-localize").unwrap();
        self
    }

    /// Locks a repository at a ref, with those of [`DIRECTORIES`] that something names, or all of them.
    pub(super) fn git(self, url: &str, reference: Option<&str>) -> Scene {
        let reference = reference.map(str::to_owned);
        let source = Upstream::Git { url: url.to_owned(), reference, submodules: true, path: String::new() };
        let paths = DIRECTORIES.map(|path| (path.to_owned(), BTreeSet::new())).into();
        self.remote(source, Pinned { paths, ..Pinned::new(Digest::GitCommit(COMMIT.to_owned())) })
    }

    /// Locks a file.
    pub(super) fn http(self, url: &str) -> Scene {
        let paths = [(String::new(), BTreeSet::new())].into();
        let pinned = Pinned { size: Some(1), paths, ..Pinned::new(Digest::Sha256("5".repeat(64))) };
        self.remote(Upstream::File { url: url.to_owned() }, pinned)
    }

    /// Notes in the lock that something in it names another thing.
    pub(super) fn names(mut self, from: &str, to: &str) -> Scene {
        let from = Upstream::named(from);
        let pinned = self.lock.remotes.get_mut(&from.source()).unwrap();
        pinned.paths.get_mut(from.path()).unwrap().insert(Upstream::named(to));
        self.texts += &format!("{to}\n");
        self
    }

    /// Stores a file beside the lock, as localizing does.
    pub(super) fn stored(mut self, path: &str, text: &str) -> Scene {
        self.lock.files.push(StoredFile {
            path: path.to_owned(),
            sha256: crate::record::sha256_hex(text.as_bytes()),
            ..StoredFile::default()
        });
        self.file(path, text)
    }

    pub(super) fn remote(mut self, source: Upstream, pinned: Pinned) -> Scene {
        self.lock.remotes.insert(source, pinned);
        self
    }

    pub(crate) fn check(mut self) -> Checked {
        // Without the scheme and a login, and with `/` for `//`, as a reference may be written.
        let plain = |url: &str| url.rsplit(['@']).next().unwrap().trim_start_matches("https://").replace("//", "/");
        let words = self.texts.split(|c: char| c.is_whitespace() || "'\"[]{},".contains(c));
        let words: HashSet<String> = words.map(plain).collect();
        for (source, pinned) in &mut self.lock.remotes {
            let is_named = |path: &str| words.contains(&plain(&source.at(path).to_string()));
            if pinned.paths.keys().map(String::as_str).eq(DIRECTORIES) && DIRECTORIES.into_iter().any(is_named) {
                pinned.paths.retain(|path, names| !names.is_empty() || is_named(path));
            }
        }
        if self.lock != Lock::default() {
            let lock = self.lock.render().unwrap();
            self.tree.add_file(LOCK_NAME, lock.as_bytes());
        }
        let config = self.config.clone();
        let identity = || Ok(identity(&config));
        check(Input {
            source: Snapshot::Index,
            tree: Rc::new(self.tree),
            paths: &self.paths,
            config: &self.config,
            change_config: self.own.as_ref(),
            absences: None,
            identity: Some(&identity),
            build: None,
        })
        .unwrap()
    }

    /// Returns the one finding, which must be of this rule.
    #[track_caller]
    pub(super) fn one(self, rule: Rule) -> Finding {
        let mut findings = self.check().findings;
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].rule, rule);
        findings.remove(0)
    }

    pub(super) fn find(self, rule: Rule) -> Vec<Finding> {
        let mut findings = self.check().findings;
        findings.retain(|finding| finding.rule == rule);
        findings
    }
}

/// Returns the identity of a repository `acme/fleet`.
pub(super) fn identity(config: &Config) -> Identity {
    let remotes = ["https://github.com/acme/fleet".to_owned()];
    Identity::new(remotes, config, ["main".to_owned()])
}

/// Returns everything that a report shows unchanged. The line of the file is not included: reports remove secrets from
/// it.
pub(super) fn shown(findings: &[Finding]) -> String {
    let mut findings = findings.to_vec();
    for finding in &mut findings {
        finding.line_text = Default::default();
    }
    format!("{findings:?}")
}

/// Returns what is under the caret of a finding.
pub(super) fn under_caret(finding: &Finding) -> String {
    let Some(span) = finding.span else {
        return String::new();
    };
    let line = finding.line_text.chars();
    let line = line.skip(span.start.column - 1);
    if span.start.line == span.end.line {
        line.take(span.end.column - span.start.column).collect()
    } else {
        line.collect()
    }
}

/// Returns the GitRepository `flux-system` of `acme/fleet`, with more in its `spec`.
pub(crate) fn source(more: &str) -> String {
    let more = match more {
        "" => String::new(),
        more => format!(", {more}"),
    };
    format!(
        "apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: flux-system, namespace: flux-system}}
spec: {{url: 'https://github.com/acme/fleet', ref: {{branch: main}}{more}}}
"
    )
}

/// Returns the Kustomization `apps` of Flux, which deploys a path of [`source`].
pub(crate) fn flux(path: &str) -> String {
    format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: apps, namespace: flux-system}}
spec:
  path: {path}
  sourceRef: {{kind: GitRepository, name: flux-system}}
"
    )
}

/// Returns the Application `web` of Argo CD with this source in `acme/fleet`.
pub(crate) fn argo(source: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: web, namespace: argocd}}
spec:
  source: {{repoURL: 'https://github.com/acme/fleet', {source}}}
"
    )
}
