//! `check`: opens the files to check, and applies the rules to them.

use std::rc::Rc;

use crate::check::{self, Checked, Checking, Input, Renames};
use crate::config::{Config, FILE_NAME};
use crate::git::{LocalRepo, Side};
use crate::kustomization::FILE_NAMES;
use crate::message::failure::{Failure, Failures, Result, shown};
use crate::message::finding::Finding;
use crate::record::added;
use crate::targets::Identity;
use crate::tree::absence::Absences;
use crate::tree::disk::DiskTree;
use crate::tree::git::{GitTree, object_id};
use crate::tree::{Tree, path};
use crate::workspace::{Files, Workspace, commit, from_top, merge_base};

pub(crate) use crate::hook::Base;

/// What to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// The index.
    Index,
    /// The working tree.
    WorkingTree,
    Commit(String),
}

/// A check to do.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// What is checked.
    pub what: What,
    /// Paths as given, from the directory that we were started in.
    pub paths: Vec<String>,
    /// What it is judged against.
    pub base: Base,
}

impl What {
    /// Returns a commit, or the working tree where none is named.
    pub(crate) fn of(rev: Option<&str>) -> What {
        rev.map_or(What::WorkingTree, |rev| What::Commit(rev.to_owned()))
    }

    /// Returns how reports name it, before it was opened.
    pub(crate) fn checking(&self) -> Checking {
        match self {
            What::Index => Checking::Index,
            What::WorkingTree => Checking::WorkingTree,
            What::Commit(rev) => Checking::Commit { rev: rev.clone(), commit: String::new() },
        }
    }
}

/// Runs the check.
pub(crate) fn check(here: &Rc<LocalRepo>, request: &Request) -> Result<Checked, Failures> {
    let opened = open(here, &request.what)?;
    // A change that breaks it would stop every change after it.
    let own = Config::of(&*opened.tree, "")?;
    let base =
        match &request.base {
            Base::Own => None,
            Base::Nothing => Some(Config::default()),
            Base::Of(rev) => Some(policy(here, rev).map_err(|failures| {
                failures.context(format_args!("cannot read the configuration of `{}`", shown(rev)))
            })?),
        };
    let paths =
        request.paths.iter().map(|text| from_top(here, &*opened.tree, text)).collect::<Result<Vec<String>>>()?;
    let looks = Looks { here, config: base.as_ref().unwrap_or(&own), own: base.is_some().then_some(&own) };
    let unseen = || match opened.checking {
        Checking::Index => unseen(here, &paths, false),
        Checking::WorkingTree => unseen(here, &paths, true),
        Checking::Commit { .. } => 0,
    };
    let mut checked = looks.at(&opened, &paths).map_err(|failure| match unseen() {
        0 => failure,
        count => failure.hint(format!("untracked or ignored kustomizations there: {count}; git add them")),
    })?;
    if checked.kustomizations == 0 {
        checked.unseen = unseen();
    }
    if opened.checking == Checking::Index {
        let kustomizations = opened.tree.kustomizations()?.into_iter().collect();
        checked.differing = here.unstaged_paths(&kustomizations)?.len();
    }
    match &request.base {
        Base::Own => {}
        Base::Nothing => checked.judge(&[], "", looks.config),
        Base::Of(rev) => judge(&looks, &opened, &mut checked, rev)?,
    }
    Ok(checked)
}

fn policy(here: &Rc<LocalRepo>, rev: &str) -> Result<Config, Failures> {
    let opened = open(here, &What::Commit(rev.to_owned()))?;
    Ok(Config::of(&*opened.tree, "")?)
}

/// Returns how many kustomizations in or below `paths` are on disk and not looked at: those that git ignores, or that it
/// does not track.
fn unseen(here: &LocalRepo, paths: &[String], is_ignored: bool) -> usize {
    let is_asked =
        |place: &&String| paths.is_empty() || paths.iter().any(|path| path::is_in(path::parent(place), path));
    let untracked = here.untracked(&FILE_NAMES, is_ignored).unwrap_or_default();
    untracked.iter().filter(is_asked).count()
}

/// Checks what is going to be localized where it stands, by paths from the top; everything without any.
pub(super) fn before(workspace: &Workspace, paths: &[String]) -> Result<Vec<Finding>, Failures> {
    let (here, opened) = match &workspace.files {
        Files::Commit { repo, id, tree, .. } => {
            // Links that the check follows are none that the result depends on.
            let tree = tree.beside(object_id(&id.tree)?);
            let commit = id.commit.clone();
            (repo, Opened::commit(repo, &id.commit, commit, &tree))
        }
        Files::WorkingTree { repo, tree, .. } => (repo, Opened::working_tree(repo, tree.clone())),
        Files::Disk { .. } | Files::Tree(_) => return Ok(Vec::new()),
    };
    let mut config = workspace.config.clone();
    if !paths.is_empty() {
        // What is named is meant.
        config.include.clear();
        config.exclude.clear();
    }
    let looks = Looks { here, config: &config, own: None };
    let checked = looks.at(&opened, paths)?;
    if !checked.failures.is_empty() {
        return Err(Failures(checked.failures));
    }
    let counting = checked.findings.into_iter();
    Ok(counting.filter(|finding| finding.allowed.is_none()).collect())
}

/// Leaves out what the commit has, too, from which the change to `base` begins, and finds what is new in its
/// configuration and its locks.
fn judge(looks: &Looks<'_>, opened: &Opened, checked: &mut Checked, base: &str) -> Result<(), Failures> {
    let here = looks.here;
    let of = match &opened.checking {
        Checking::Commit { commit, .. } => Some(commit.as_str()),
        Checking::Index | Checking::WorkingTree => None,
    };
    let since = merge_base(here, base, of)?.commit;
    let before = open(here, &What::Commit(since.clone()))?;
    checked.new_config = here.changed_lines(&since, opened.side(), FILE_NAME)?;
    for place in opened.tree.locks()? {
        // One that cannot be read is a failure of the check already.
        let new = added(&*opened.tree, &*before.tree, &place);
        checked.new_locked.extend(new.unwrap_or_default());
    }
    let mut old = Vec::new();
    if !checked.findings.is_empty() {
        let before = Looks {
            // Whatever allows it there, it is not new.
            own: Some(looks.config),
            ..*looks
        }
        .at(&before, &[])?;
        if let Some(failure) = before.failures.into_iter().next() {
            let what = format_args!("cannot tell what is new since {since}");
            return Err(failure.context(what).into());
        }
        let renames = Renames::new(here.renames(&since, opened.side())?);
        old = renames.apply(before.findings);
    }
    checked.judge(&old, base, looks.config);
    Ok(())
}

/// How files are looked at.
#[derive(Clone, Copy)]
struct Looks<'a> {
    here: &'a Rc<LocalRepo>,
    config: &'a Config,
    /// That of the change, where `config` is that of its base.
    own: Option<&'a Config>,
}

impl Looks<'_> {
    fn at(&self, opened: &Opened, paths: &[String]) -> Result<Checked> {
        let identity = || Identity::of(self.here, self.config);
        check::check(Input {
            checking: opened.checking.clone(),
            tree: opened.tree.clone(),
            paths,
            config: self.config,
            own: self.own,
            absences: Some(&opened.absences),
            identity: Some(&identity),
        })
    }
}

/// What is checked, opened.
pub(crate) struct Opened {
    checking: Checking,
    /// Its files, as git checks them out.
    pub tree: Rc<dyn Tree>,
    absences: Absences,
}

impl Opened {
    fn working_tree(here: &Rc<LocalRepo>, tree: Rc<DiskTree>) -> Opened {
        Opened { checking: Checking::WorkingTree, absences: Absences::new(here.clone(), tree.clone(), false), tree }
    }

    /// A build sees the files as git checks them out.
    fn commit(here: &Rc<LocalRepo>, rev: &str, commit: String, tree: &GitTree) -> Opened {
        let tree = Rc::new(tree.checked_out());
        Opened {
            checking: Checking::Commit { rev: rev.to_owned(), commit },
            absences: Absences::new(here.clone(), tree.clone(), false),
            tree,
        }
    }

    /// Returns what git compares a base with.
    fn side(&self) -> Side<'_> {
        match &self.checking {
            Checking::Index => Side::Index,
            Checking::WorkingTree => Side::WorkingTree,
            Checking::Commit { commit, .. } => Side::Commit(commit),
        }
    }
}

/// Opens the files to check.
pub(crate) fn open(here: &Rc<LocalRepo>, what: &What) -> Result<Opened> {
    Ok(match what {
        // No index is what an empty repository has, too.
        What::Index if here.top.is_none() && !here.index.exists() => {
            return Err(Failure::new("this repository has no working tree, and no index to check")
                .hint("check a commit instead: --rev REV"));
        }
        What::Index => {
            let tree = Rc::new(GitTree::of_index(here.clone())?.checked_out());
            Opened { checking: Checking::Index, absences: Absences::new(here.clone(), tree.clone(), true), tree }
        }
        What::WorkingTree => Opened::working_tree(here, Rc::new(DiskTree::of_working_tree(here.clone())?)),
        What::Commit(rev) => {
            let id = commit(here, rev)?;
            let tree = GitTree::of_here(here.clone(), object_id(&id.tree)?)?;
            Opened::commit(here, rev, id.commit, &tree)
        }
    })
}
