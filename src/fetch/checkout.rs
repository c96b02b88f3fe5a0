//! The files of a fetched commit as a checkout of it gives them, submodules included.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;

use gix::ObjectId;

use super::budget::Budget;
use super::git::{GitRemotes, GitRequest};
use super::submodule::{self, Submodule};
use crate::failure::{Failure, Result};
use crate::git::RemoteGit;
use crate::process::Terminal;
use crate::redact::SafeUrl;
use crate::tree::checkout::{Conversion, Filters};
use crate::tree::objects::{self, ObjectTree};
use crate::tree::{Entry, Tree, path};
use crate::walk::NamedBy;

/// One commit of a fetched repository.
pub(super) struct CheckoutTree {
    objects: ObjectTree,
    remote_git: RemoteGit,
    /// How the user names it: `URL?ref=REF`, without secrets.
    label: String,
    /// The clone spec as git takes it, for submodules with a relative URL. None: leave them alone.
    submodules: Option<(Rc<GitRemotes>, SafeUrl)>,
    modules: OnceCell<Vec<Submodule>>,
    mounts: RefCell<HashMap<String, Rc<CheckoutTree>>>,
    conversion: Conversion,
    budget: Budget,
    /// The files that the budget has counted.
    counted: RefCell<HashSet<ObjectId>>,
}

impl CheckoutTree {
    /// Opens `commit` of the bare repository at `directory`.
    ///
    /// # Errors
    /// When the commit cannot be read.
    pub(super) fn open(
        remotes: &Rc<GitRemotes>,
        directory: PathBuf,
        commit: &str,
        label: String,
        submodules_of: Option<SafeUrl>,
    ) -> Result<Self> {
        let budget = remotes.budget().clone();
        let repository = objects::open_fetched(&directory, budget.memory())?;
        let bytes = objects::proven(&repository, "commit", objects::object_id(commit)?)?;
        let root = gix::objs::CommitRefIter::from_bytes(&bytes, repository.object_hash())
            .tree_id()
            .map_err(|error| Failure::new(format!("commit {commit} has no tree: {error}")))?;
        let hash = repository.object_hash();
        Ok(CheckoutTree {
            objects: ObjectTree::new(repository, root),
            remote_git: remotes.remote_git().clone(),
            label,
            submodules: submodules_of.map(|url| (remotes.clone(), url)),
            modules: OnceCell::new(),
            mounts: RefCell::default(),
            // Filter drivers are not configured here.
            conversion: Conversion::new(Filters::None, hash),
            budget,
            counted: RefCell::default(),
        })
    }

    /// Returns the submodule that holds `path`, fetched when it is first looked into, and the path
    /// in it.
    fn mounted<'a>(&self, path: &'a str) -> Result<Option<(Rc<CheckoutTree>, &'a str)>> {
        let Some((remotes, parent)) = &self.submodules else {
            return Ok(None);
        };
        if self.modules.get().is_none() {
            let modules = match self.objects.entry(".gitmodules")? {
                Some(Entry::File { .. }) => {
                    self.count(".gitmodules")?;
                    submodule::parse(&self.remote_git, &self.objects.read(".gitmodules")?)?
                }
                _ => Vec::new(),
            };
            let _ = self.modules.set(modules);
        }
        for module in self.modules.get().into_iter().flatten() {
            let Some(rest) = path::below(path, &module.path) else {
                continue;
            };
            if let Some(mount) = self.mounts.borrow().get(&module.path) {
                return Ok(Some((mount.clone(), rest)));
            }
            if self.objects.entry(&module.path)? != Some(Entry::Submodule) {
                continue;
            }
            let Some(commit) = self.objects.id(&module.path)? else {
                continue;
            };
            let shown = self.label(&module.path);
            let mount = submodule::resolve_url(parent.exposed(), &module.url)
                .and_then(|url| {
                    let by = NamedBy::Upstream([parent.shown()].into());
                    submodule_tree(remotes, by, &url, &commit.to_string(), &shown)
                })
                .map_err(|failure| failure.context(format!("submodule `{shown}`")))?;
            let mount = Rc::new(mount);
            self.mounts
                .borrow_mut()
                .insert(module.path.clone(), mount.clone());
            return Ok(Some((mount, rest)));
        }
        Ok(None)
    }

    /// Counts a file before it is read, once.
    fn count(&self, path: &str) -> Result<()> {
        let (Some(id), Some(size)) = (self.objects.id(path)?, self.objects.size(path)?) else {
            return Ok(());
        };
        if !self.counted.borrow().contains(&id) {
            // One that is refused is refused each time.
            self.budget.take(size, || self.label(path))?;
            self.counted.borrow_mut().insert(id);
        }
        Ok(())
    }
}

/// Opens the commit of a submodule, fetching it if need be.
fn submodule_tree(
    remotes: &Rc<GitRemotes>,
    by: NamedBy,
    url: &str,
    commit: &str,
    label: &str,
) -> Result<CheckoutTree> {
    let request = GitRequest {
        url: url.into(),
        reference: None,
        commit: Some(commit.to_owned()),
        by,
        is_submodule: true,
    };
    let fetched = remotes
        .fetch(&request, None, None, Terminal::Detached)
        .map_err(|failure| failure.failure)?;
    CheckoutTree::open(
        remotes,
        fetched.directory,
        commit,
        label.to_owned(),
        Some(url.into()),
    )
}

impl Tree for CheckoutTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        match self.mounted(path)? {
            Some((mount, rest)) => mount.entry(rest),
            None => self.objects.entry(path),
        }
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        match self.mounted(directory)? {
            Some((mount, rest)) => mount.names(rest),
            None => self.objects.names(directory),
        }
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        if let Some((mount, rest)) = self.mounted(path)? {
            return mount.read(rest);
        }
        self.count(path)?;
        // They are read with it.
        for directory in path::and_above(path::parent(path)).chain([""]) {
            self.count(&path::join(directory, ".gitattributes"))?;
        }
        self.conversion.read(&self.objects, path)
    }

    fn label(&self, path: &str) -> String {
        format!(
            "{}: {}",
            self.label,
            if path.is_empty() { "." } else { path }
        )
    }
}
