//! The files of a fetched commit as a checkout writes them, with submodules.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use gix::ObjectId;

use super::git::{Fetched, GitRequest, Missing};
use super::submodule::{self, Submodule};
use super::{Network, not_cached};
use crate::git::{object_id, open_fetched};
use crate::message::failure::{Failure, Result};
use crate::reference::{RepoSpec, Upstream};
use crate::tree::checkout::{Conversion, FILE_NAME as ATTRIBUTES};
use crate::tree::git::{GitTree, read_proven};
use crate::tree::{Entry, Tree, path};

/// A commit of a fetched repository. A file that did not come with the commit is fetched when it is read.
pub(super) struct CheckoutTree {
    objects: GitTree,
    network: Rc<Network>,
    pub(super) fetched: Fetched,
    /// Its name in messages: `URL?ref=REF`, without secrets.
    label: String,
    /// Whether its submodules are checked out, too.
    has_submodules: bool,
    modules: OnceCell<Vec<Submodule>>,
    mounts: RefCell<HashMap<String, Rc<CheckoutTree>>>,
    conversion: Conversion,
    /// Whether all attributes of the tree were fetched.
    has_all_attributes: Cell<bool>,
    /// The files that the budget has counted.
    counted: RefCell<HashSet<String>>,
    /// The missing files that were requested.
    requested: RefCell<BTreeSet<ObjectId>>,
}

impl CheckoutTree {
    /// Opens the fetched commit that a reference names, with submodules unless the reference excludes them.
    pub(super) fn open_root(network: &Rc<Network>, fetched: Fetched, spec: &RepoSpec) -> Result<Self> {
        let tree = CheckoutTree::of_commit(network, fetched, Upstream::git(spec).to_string())?;
        Ok(CheckoutTree { has_submodules: spec.submodules, ..tree })
    }

    /// Opens a fetched commit with its submodules. Reads only the commit: files are read, and if necessary fetched,
    /// when they are needed. `label` names the repository in messages.
    fn of_commit(network: &Rc<Network>, fetched: Fetched, label: String) -> Result<Self> {
        let commit = &fetched.commit;
        let repository = open_fetched(&fetched.directory, network.budget.memory())?;
        let bytes = read_proven(&repository, "commit", object_id(commit)?)?;
        // The tree of the commit, from which every path is looked up.
        let root = gix::objs::CommitRefIter::from_bytes(&bytes, repository.object_hash())
            .tree_id()
            .map_err(|error| Failure::new(format!("commit {commit} has no tree: {error}")))?;
        let hash = repository.object_hash();
        Ok(CheckoutTree {
            objects: GitTree::new(repository, root),
            network: network.clone(),
            fetched,
            label,
            has_submodules: true,
            modules: OnceCell::new(),
            mounts: RefCell::default(),
            // Filters are not configured in fetched repositories.
            conversion: Conversion::without_filters(hash),
            has_all_attributes: Cell::default(),
            counted: RefCell::default(),
            requested: RefCell::default(),
        })
    }

    /// Adds the missing objects that reading the file at `path` needs to `missing`. Each is requested once.
    pub(super) fn want(&self, path: &str, missing: &mut Vec<Missing>) {
        match self.submodule_with(path) {
            Ok(Some((mount, rest))) => mount.want(rest, missing),
            Ok(None) => self.want_directly(path, missing),
            // The failure of a submodule is reported when something in it is read.
            Err(_) => {}
        }
    }

    /// Adds the missing objects of a file of this repository to `missing`, without looking into submodules. Nothing is
    /// added offline, or after fetching has failed once.
    fn want_directly(&self, path: &str, missing: &mut Vec<Missing>) {
        // A failure is reported when the file is read. An object that was requested is not added again, even if the
        // server did not send it: the caller repeats until nothing is added.
        let lacking = self.lacks(path).unwrap_or_default();
        let mut requested = self.requested.borrow_mut();
        let lacking: BTreeSet<ObjectId> = lacking.difference(&requested).copied().collect();
        if !lacking.is_empty() && self.fetched.stop.get().is_none() && !self.network.offline {
            requested.extend(&lacking);
            Missing::add_to(missing, &self.fetched, lacking);
        }
    }

    /// The submodule that has `path`, and the path in it. `None` if no submodule has it. Fetches the submodule if this
    /// is the first path in it.
    fn submodule_with<'a>(&self, path: &'a str) -> Result<Option<(Rc<CheckoutTree>, &'a str)>> {
        // The directories of submodules that are not checked out stay empty, as in a clone.
        if !self.has_submodules {
            return Ok(None);
        }
        // `.gitmodules` is read once.
        if self.modules.get().is_none() {
            let modules = match self.objects.entry(".gitmodules")? {
                Some(Entry::File { .. }) => submodule::parse(&self.read_directly(".gitmodules")?)?,
                _ => Vec::new(),
            };
            let _ = self.modules.set(modules);
        }
        for module in self.modules.get().into_iter().flatten() {
            let Some(rest) = path::below(path, &module.path) else {
                continue;
            };
            // Each submodule is fetched once, and only if something in it is read.
            if let Some(mount) = self.mounts.borrow().get(&module.path) {
                return Ok(Some((mount.clone(), rest)));
            }
            // `.gitmodules` may list a path at which the tree has no commit.
            if self.objects.entry(&module.path)? != Some(Entry::Submodule) {
                continue;
            }
            let Some(commit) = self.objects.id(&module.path)? else {
                continue;
            };
            let shown = self.label(&module.path);
            let mount = self.submodule(module, &commit.to_string(), &shown);
            let mount = Rc::new(mount.map_err(|failure| failure.context(format!("submodule `{shown}`")))?);
            self.mounts.borrow_mut().insert(module.path.clone(), mount.clone());
            return Ok(Some((mount, rest)));
        }
        Ok(None)
    }

    /// Opens the commit of a submodule, and fetches it if necessary.
    fn submodule(&self, module: &Submodule, commit: &str, label: &str) -> Result<CheckoutTree> {
        let parent = &self.fetched.request.url;
        let url = submodule::resolve_url(parent.exposed(), &module.url)?;
        let request = GitRequest::new(url.as_str(), None, Some(commit));
        // The repository chose the URL, so nobody is asked for a password.
        let request = GitRequest { is_submodule: true, may_ask: false, ..request };
        let fetched = self.network.fetch_one(&request)?;
        CheckoutTree::of_commit(&self.network, fetched, label.to_owned())
    }

    /// The objects that reading a file of this repository needs and that were not fetched yet: of the file, and of the
    /// `.gitattributes` that decide how a checkout converts it. Attributes that are fetched can show that more are
    /// needed, so the caller asks again until there are none.
    fn lacks(&self, path: &str) -> Result<BTreeSet<ObjectId>> {
        let mut lacking = BTreeSet::from_iter(self.objects.lacks(path)?);
        let directory = path::parent(path);
        for attributes in attribute_files(directory) {
            lacking.extend(self.objects.lacks(&attributes)?);
        }
        // If these attributes convert files, git reads those of the whole tree.
        if lacking.is_empty() && !self.has_all_attributes.get() && self.conversion.applies(&self.objects, directory)? {
            for path in self.objects.files_named(&|name| name == ATTRIBUTES)? {
                lacking.extend(self.objects.lacks(&path)?);
            }
            self.has_all_attributes.set(lacking.is_empty());
        }
        Ok(lacking)
    }

    /// Fetches the missing objects for a file of this repository, which is about to be read. Does nothing if they came
    /// with the commit, or with an earlier request for many files.
    fn fetch_objects(&self, path: &str) -> Result<()> {
        if self.lacks(path)?.is_empty() {
            return Ok(());
        }
        if self.network.offline {
            return Err(not_cached(format_args!("`{}`", self.label(path))));
        }
        self.network.fetch_missing(|missing| self.want_directly(path, missing));
        self.fetched.stop.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Reads a file of this repository, but not of its submodules, as a checkout writes it. The budget of the run
    /// counts each file once, however often it is read.
    fn read_directly(&self, path: &str) -> Result<Vec<u8>> {
        self.fetch_objects(path)?;
        // The attributes above are read with the file, so the budget counts them, too. Not for a file of attributes,
        // which is among its own: it would be read without end.
        for attributes in attribute_files(path::parent(path)).filter(|_| path::name(path) != ATTRIBUTES) {
            let is_file = matches!(self.objects.entry(&attributes)?, Some(Entry::File { .. }));
            if is_file && !self.counted.borrow().contains(&attributes) {
                self.read_directly(&attributes)?;
            }
        }
        // Neither the stored file nor the checked-out one may be too large: a conversion can make it longer.
        if let Some(size) = self.objects.size(path)? {
            self.network.budget.check(size, || self.label(path))?;
        }
        let bytes = self.conversion.read(&self.objects, path)?;
        if !self.counted.borrow().contains(path) {
            // A file that was refused is not counted, so it is refused each time.
            self.network.budget.take(bytes.len() as u64, || self.label(path))?;
            self.counted.borrow_mut().insert(path.to_owned());
        }
        Ok(bytes)
    }
}

impl Tree for CheckoutTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        match self.submodule_with(path)? {
            Some((mount, rest)) => mount.entry(rest),
            None => self.objects.entry(path),
        }
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        match self.submodule_with(directory)? {
            Some((mount, rest)) => mount.names(rest),
            None => self.objects.names(directory),
        }
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        match self.submodule_with(path)? {
            Some((mount, rest)) => mount.read(rest),
            None => self.read_directly(path),
        }
    }

    fn label(&self, path: &str) -> String {
        format!("{}: {}", self.label, path::shown(path))
    }
}

/// The files with attributes that count in a directory, whether they exist or not.
fn attribute_files(directory: &str) -> impl Iterator<Item = String> {
    path::and_above(directory).chain([""]).map(|above| path::join(above, ATTRIBUTES))
}
