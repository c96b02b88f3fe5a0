//! `check` of files in memory: what it finds and says, without a process.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::rc::Rc;

use git_kustomize_localize::seams::Config;
use git_kustomize_localize::seams::Failures;
use git_kustomize_localize::seams::Identity;
use git_kustomize_localize::seams::check::report;
use git_kustomize_localize::seams::check::{Checked, Input, Snapshot, check};
use git_kustomize_localize::seams::tree::OverlayTree;
use git_kustomize_localize::seams::tree::{Entry, Tree as _};
use serde_json::Value;

/// The files of a repository `https://github.com/acme/fleet`.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    tree: OverlayTree,
}

impl Memory {
    /// Returns a repository with these files.
    pub(crate) fn of(files: &[(&str, &str)]) -> Memory {
        let mut memory = Memory::default();
        for (path, text) in files {
            memory.write(path, text);
        }
        memory
    }

    /// Writes a file.
    pub(crate) fn write(&mut self, path: &str, contents: impl AsRef<[u8]>) {
        self.tree.add_file(path, contents.as_ref());
    }

    /// Makes `path` a symbolic link with this text.
    pub(crate) fn symlink(&mut self, path: &str, target: &str) {
        self.tree.link(path, target);
    }

    /// Writes all files into a directory, to be built.
    pub(crate) fn lay_out(&self, directory: &Path) {
        for path in self.tree.below("").unwrap() {
            let place = directory.join(&path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            let bytes = self.tree.read(&path).unwrap();
            if self.tree.entry(&path).unwrap() == Some(Entry::Link) {
                symlink(str::from_utf8(&bytes).unwrap(), place).unwrap();
            } else {
                fs::write(place, bytes).unwrap();
            }
        }
    }

    /// Checks as the command does, with the configuration among the files. There is no repository, so a missing path
    /// has no reason.
    pub(crate) fn check(&self) -> Result<Checked, Failures> {
        let config = Config::of(&self.tree, "")?;
        let fleet = "https://github.com/acme/fleet".to_owned();
        let identity = || Ok(Identity::new([fleet.clone()], &config, ["main".to_owned()]));
        Ok(check(Input {
            source: Snapshot::Index,
            config: &config,
            change_config: None,
            tree: Rc::new(self.tree.clone()),
            paths: &[],
            absences: None,
            identity: Some(&identity),
            build: None,
        })?)
    }

    /// The same for files that can all be read: a failure ends the test.
    #[track_caller]
    pub(crate) fn checked(&self) -> Checked {
        let checked = self.check().unwrap();
        assert!(checked.failures.is_empty(), "{:?}", checked.failures);
        checked
    }

    /// Returns the findings, as JSON.
    #[track_caller]
    pub(crate) fn findings(&self) -> Vec<Value> {
        let mut report: Value = serde_json::from_str(&report::json(&self.checked())).unwrap();
        match report["findings"].take() {
            Value::Array(findings) => findings,
            findings => panic!("{findings}"),
        }
    }
}
