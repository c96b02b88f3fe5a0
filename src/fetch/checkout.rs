//! The files of a fetched commit as a checkout of it gives them, submodules included.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use gix::ObjectId;

use super::git::{Fetched, GitRequest, Missing};
use super::submodule::{self, Submodule};
use super::{Network, ONLINE};
use crate::git::{object_id, open_fetched};
use crate::message::failure::{Failure, Result};
use crate::tree::checkout::{Conversion, FILE_NAME as ATTRIBUTES};
use crate::tree::git::{GitTree, proven};
use crate::tree::{Entry, Tree, path};

/// One commit of a fetched repository. A file that did not come with it is fetched when it is read.
pub(super) struct CheckoutTree {
    objects: GitTree,
    network: Rc<Network>,
    fetched: Fetched,
    /// How the user names it: `URL?ref=REF`, without secrets.
    label: String,
    /// Whether submodules are part of it.
    has_submodules: bool,
    modules: OnceCell<Vec<Submodule>>,
    mounts: RefCell<HashMap<String, Rc<CheckoutTree>>>,
    conversion: Conversion,
    /// Whether all attributes of the tree are known to be here.
    has_attributes: Cell<bool>,
    /// The files that the budget has counted.
    counted: RefCell<HashSet<String>>,
    /// Whether missing files are only noted now.
    is_noting: Cell<bool>,
    /// The missing files that were noted.
    noted: RefCell<BTreeSet<ObjectId>>,
    /// Those that were fetched, or should have been.
    requested: RefCell<HashSet<ObjectId>>,
}

impl CheckoutTree {
    /// Opens a fetched commit.
    pub(super) fn open(network: &Rc<Network>, fetched: Fetched, label: String, has_submodules: bool) -> Result<Self> {
        let commit = &fetched.commit;
        let repository = open_fetched(&fetched.directory, network.budget.memory())?;
        let bytes = proven(&repository, "commit", object_id(commit)?)?;
        let root = gix::objs::CommitRefIter::from_bytes(&bytes, repository.object_hash())
            .tree_id()
            .map_err(|error| Failure::new(format!("commit {commit} has no tree: {error}")))?;
        let hash = repository.object_hash();
        Ok(CheckoutTree {
            objects: GitTree::new(repository, root),
            network: network.clone(),
            fetched,
            label,
            has_submodules,
            modules: OnceCell::new(),
            mounts: RefCell::default(),
            // Filter drivers are not configured here.
            conversion: Conversion::new(false, hash),
            has_attributes: Cell::default(),
            counted: RefCell::default(),
            is_noting: Cell::default(),
            noted: RefCell::default(),
            requested: RefCell::default(),
        })
    }

    /// Returns which files are missing, in submodules too, that `look` asks for.
    pub(super) fn missing(&self, look: impl FnOnce()) -> Vec<Missing> {
        self.note(true);
        look();
        self.note(false);
        self.take_noted()
    }

    fn note(&self, is_noting: bool) {
        self.is_noting.set(is_noting);
        for mount in self.mounts.borrow().values() {
            mount.note(is_noting);
        }
    }

    fn take_noted(&self) -> Vec<Missing> {
        let mut all = Vec::new();
        let ids = self.noted.take();
        if !ids.is_empty() && self.fetched.stop.get().is_none() && !self.network.offline {
            self.requested.borrow_mut().extend(ids.iter().copied());
            all.push(Missing { commits: vec![self.fetched.clone()], ids });
        }
        for mount in self.mounts.borrow().values() {
            all.extend(mount.take_noted());
        }
        all
    }

    /// Asks for the file at `path`, which is noted where it is missing.
    pub(super) fn want(&self, path: &str) {
        match self.mounted(path) {
            Ok(Some((mount, rest))) => mount.want(rest),
            Ok(None) => drop(self.bring(path)),
            Err(_) => {}
        }
    }

    /// Returns the submodule that holds `path`, fetched when it is first looked into, and the path
    /// in it.
    fn mounted<'a>(&self, path: &'a str) -> Result<Option<(Rc<CheckoutTree>, &'a str)>> {
        if !self.has_submodules {
            return Ok(None);
        }
        if self.modules.get().is_none() {
            let modules = match self.objects.entry(".gitmodules")? {
                Some(Entry::File { .. }) => submodule::parse(&self.read_own(".gitmodules")?)?,
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
            let mount = self
                .submodule(module, &commit.to_string(), &shown)
                .map_err(|failure| failure.context(format!("submodule `{shown}`")))?;
            mount.note(self.is_noting.get());
            let mount = Rc::new(mount);
            self.mounts.borrow_mut().insert(module.path.clone(), mount.clone());
            return Ok(Some((mount, rest)));
        }
        Ok(None)
    }

    /// Opens the commit of a submodule, fetching it if need be.
    fn submodule(&self, module: &Submodule, commit: &str, label: &str) -> Result<CheckoutTree> {
        let parent = &self.fetched.request.url;
        let url = submodule::resolve_url(parent.exposed(), &module.url)?;
        let request = GitRequest::new(url.as_str(), None, Some(commit));
        let request = GitRequest { is_submodule: true, may_ask: false, ..request };
        let fetched = self.network.fetch_one(&request)?;
        CheckoutTree::open(&self.network, fetched, label.to_owned(), true)
    }

    /// Returns what is not here of what it takes to read a file of this repository.
    fn lacks(&self, path: &str) -> Result<BTreeSet<ObjectId>> {
        let mut lacking = BTreeSet::new();
        lacking.extend(self.objects.lacks(path)?);
        let directory = path::parent(path);
        for above in path::and_above(directory).chain([""]) {
            lacking.extend(self.objects.lacks(&path::join(above, ATTRIBUTES))?);
        }
        // Then all attributes of the tree are read.
        if lacking.is_empty() && !self.has_attributes.get() && self.conversion.applies(&self.objects, directory)? {
            for place in self.objects.files_named(&|name| name == ATTRIBUTES)? {
                lacking.extend(self.objects.lacks(&place)?);
            }
            self.has_attributes.set(lacking.is_empty());
        }
        Ok(lacking)
    }

    /// Fetches what is missing of a file of this repository, or only notes it.
    fn bring(&self, path: &str) -> Result<()> {
        let lacking = self.lacks(path)?;
        if lacking.is_empty() {
            return Ok(());
        }
        let missing = || Failure::new(format!("`{}` is not in the cache", self.label(path)));
        if self.is_noting.get() {
            let requested = self.requested.borrow();
            let new = lacking.iter().filter(|id| !requested.contains(*id));
            self.noted.borrow_mut().extend(new);
            return Err(missing());
        }
        if self.network.offline {
            return Err(missing().hint(ONLINE));
        }
        loop {
            if let Some(failure) = self.fetched.stop.get() {
                return Err(failure.clone());
            }
            let missing = self.missing(|| self.want(path));
            if missing.is_empty() {
                return Ok(());
            }
            self.network.fetch_missing(&missing);
        }
    }

    /// Reads a file of this repository, which counts once. What is stored, and what a checkout makes of it, may not be
    /// larger than is allowed.
    fn read_own(&self, path: &str) -> Result<Vec<u8>> {
        self.bring(path)?;
        // They are read with it.
        for above in path::and_above(path::parent(path)).chain([""]).filter(|_| path::name(path) != ATTRIBUTES) {
            let place = path::join(above, ATTRIBUTES);
            let is_file = matches!(self.objects.entry(&place)?, Some(Entry::File { .. }));
            if is_file && !self.counted.borrow().contains(&place) {
                self.read_own(&place)?;
            }
        }
        if let Some(size) = self.objects.size(path)? {
            self.network.budget.check(size, || self.label(path))?;
        }
        let bytes = self.conversion.read(&self.objects, path)?;
        if !self.counted.borrow().contains(path) {
            // One that is refused is refused each time.
            self.network.budget.take(bytes.len() as u64, || self.label(path))?;
            self.counted.borrow_mut().insert(path.to_owned());
        }
        Ok(bytes)
    }
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
        match self.mounted(path)? {
            Some((mount, rest)) => mount.read(rest),
            None => self.read_own(path),
        }
    }

    fn label(&self, path: &str) -> String {
        format!("{}: {}", self.label, path::shown(path))
    }
}
