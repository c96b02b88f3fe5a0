//! Trees in memory and upstreams without a network, for tests of walks and plans.

use std::cell::OnceCell;
use std::rc::Rc;

use super::{ExpectedContent, RemoteCommit, RemoteContent, RemoteFile, RemoteRef, Remotes, ScopedTree};
use crate::message::failure::{Failure, Result};
use crate::reference::RepoSpec;
use crate::tree::overlay::OverlayTree;

pub(crate) fn tree(files: &[(&str, &str)]) -> OverlayTree {
    let mut tree = OverlayTree::default();
    for (path, text) in files {
        tree.add_file(path, text.as_bytes());
    }
    tree
}

pub(crate) fn source(files: &[(&str, &str)]) -> ScopedTree {
    ScopedTree { tree: Rc::new(tree(files)), scope: String::new(), repository: None }
}

/// Repositories and files by their URLs. Nothing else exists.
#[derive(Default, Clone)]
pub(crate) struct Upstreams(Vec<(String, RemoteContent)>);

impl Upstreams {
    /// Adds a repository, which has the ref `v1`.
    pub(crate) fn repository(mut self, url: &str, files: &[(&str, &str)]) -> Upstreams {
        let repository = RemoteCommit {
            tree: Rc::new(tree(files)),
            version: RepoSpec::parse(&format!("{url}?ref=v1")).unwrap(),
            commit: "c".repeat(40),
            signed: OnceCell::new(),
        };
        self.0.push((url.to_owned(), RemoteContent::Root(Rc::new(repository))));
        self
    }

    pub(crate) fn file(mut self, url: &str, text: &str) -> Upstreams {
        let file = RemoteFile {
            url: url.into(),
            sha256: crate::record::sha256_hex(text.as_bytes()),
            bytes: text.as_bytes().into(),
        };
        self.0.push((url.to_owned(), RemoteContent::File(Rc::new(file))));
        self
    }
}

impl Remotes for Upstreams {
    fn resolve(&mut self, wanted: &[Rc<RemoteRef>]) -> Vec<Result<RemoteContent>> {
        let resolve = |wanted: &Rc<RemoteRef>| {
            let text = wanted.text.exposed();
            let answer = self.0.iter().find(|(url, content)| match content {
                RemoteContent::File(_) => text == url && wanted.wants != ExpectedContent::Root,
                _ => text.strip_prefix(url.as_str()).is_some_and(|rest| rest.starts_with(['/', '?'])),
            });
            answer.map(|(_, content)| content.clone()).ok_or_else(|| Failure::new("not there"))
        };
        wanted.iter().map(resolve).collect()
    }
}
