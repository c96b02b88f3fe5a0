//! `check`: opens the files to check, and applies the rules to them.

use std::rc::Rc;

use crate::check::{self, Checked, Checking, Input, Renames};
use crate::config::{AcceptedComments, Config, FILE_NAME};
use crate::failure::{Failure, Failures, Result};
use crate::finding::Finding;
use crate::git::{LocalRepo, Side};
use crate::kustomization::FILE_NAMES;
use crate::record::added;
use crate::targets::Identity;
use crate::tree::absence::Absences;
use crate::tree::checkout::CheckedOut;
use crate::tree::index::IndexTree;
use crate::tree::objects::{ObjectTree, object_id};
use crate::tree::working::WorkingTree;
use crate::tree::{self, Listing, path};
use crate::workspace::{Files, Workspace, from_top};

/// What to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The index.
    Index,
    /// The working tree.
    WorkingTree,
    /// A commit.
    Commit(String),
}

/// Against what findings are new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// All findings count, whatever the configuration says.
    Nothing,
    /// Not given; the configuration must not ask for it. With the hint to show if it does.
    NotGiven(&'static [&'static str]),
    /// These revisions; a finding that one of them has is not new.
    Revisions(Vec<String>),
    /// These revisions, if the configuration asks for it: in a hook.
    IfConfigured(Vec<String>),
}

/// Where the configuration comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Policy {
    /// What is checked.
    Checked,
    /// A commit, for a gate that does not trust the change that it judges.
    Commit(String),
    /// Nowhere: as without a configuration.
    Default,
}

/// A check to do.
#[derive(Debug, Clone)]
pub struct Request {
    /// What is checked.
    pub what: What,
    /// Paths as given, from the directory that we were started in.
    pub paths: Vec<String>,
    /// Where the configuration comes from.
    pub config: Policy,
    /// Against what findings are new.
    pub base: Base,
    /// What a change is judged against: what the change itself accepts does not count.
    pub since: Option<String>,
}

/// Returns what to say where it is not known what is old, and what to do.
#[must_use]
pub fn no_base(hints: &[&str]) -> Failure {
    let failure = Failure::new("`new-only` needs a base to compare with");
    hints
        .iter()
        .fold(failure, |failure, hint| failure.hint(*hint))
}

impl What {
    /// Returns a commit, or the working tree where none is named.
    #[must_use]
    pub fn of(rev: Option<&str>) -> What {
        rev.map_or(What::WorkingTree, |rev| What::Commit(rev.to_owned()))
    }

    /// Returns how reports name it, before it was opened.
    #[must_use]
    pub fn checking(&self) -> Checking {
        match self {
            What::Index => Checking::Index,
            What::WorkingTree => Checking::WorkingTree,
            What::Commit(rev) => Checking::Commit {
                rev: rev.clone(),
                commit: String::new(),
            },
        }
    }
}

/// Runs the check.
///
/// # Errors
/// When nothing could be checked: a source that cannot be opened, a revision that names nothing, a
/// configuration that cannot be read, a path without a kustomization.
pub fn check(here: &Rc<LocalRepo>, request: &Request) -> Result<Checked, Failures> {
    let opened = open(here, &request.what)?;
    let config = configuration(here, &request.config, &*opened.tree)?;
    let paths = request
        .paths
        .iter()
        .map(|text| from_top(here, &*opened.tree, text))
        .collect::<Result<Vec<String>>>()?;
    let looks = Looks {
        here,
        config: &config,
    };
    let unseen = || match opened.checking {
        Checking::Index | Checking::WorkingTree => unseen(here, &paths),
        Checking::Commit { .. } => 0,
    };
    let mut checked = looks
        .at(&opened, &paths)
        .map_err(|failure| match unseen() {
            0 => failure,
            count => failure.hint(format!(
                "untracked or ignored kustomizations there: {count}; git add them"
            )),
        })?;
    if checked.kustomizations == 0 {
        checked.unseen = unseen();
    }
    if let Some(index) = &opened.index {
        checked.differing = here.not_staged(&index.touched(&index.kustomizations()?))?;
    }
    if let Some(since) = &request.since {
        compare(&looks, &opened, &mut checked, since)?;
    }
    let revisions = match &request.base {
        Base::Nothing => return Ok(checked),
        Base::NotGiven(hints) if config.new_only => return Err(no_base(hints).into()),
        Base::IfConfigured(_) if !config.new_only => return Ok(checked),
        // Everything is new where there is nothing yet.
        Base::IfConfigured(revisions) if revisions.is_empty() => return Ok(checked),
        Base::NotGiven(_) => return Ok(checked),
        Base::Revisions(revisions) | Base::IfConfigured(revisions) => revisions,
    };
    let mut old = Vec::new();
    for revision in revisions {
        let base = open(here, &What::Commit(revision.clone()))
            .map_err(|failure| failure.context("cannot tell what is new"))?;
        let Checking::Commit { commit, .. } = &base.checking else {
            continue;
        };
        if checked.findings.is_empty() {
            continue;
        }
        let renames = Renames::new(here.renames(commit, opened.side())?);
        // Today's rules and scopes apply to both sides, so that a stricter configuration can be adopted; but what the
        // base allowed was never accepted for its own sake.
        let mut config = config.clone();
        if request.config == Policy::Checked
            && let Ok(own) = Config::of(&*base.tree, "")
        {
            config.allow = own.allow;
        }
        // A path that the base does not have holds nothing old.
        let looks = Looks {
            config: &config,
            ..looks
        };
        let base = looks.at(&base, &[])?;
        if let Some(failure) = base.failures.into_iter().next() {
            return Err(failure
                .context(format_args!("cannot tell what is new since {revision}"))
                .into());
        }
        old.extend(renames.apply(base.findings));
    }
    checked.leave_out(&old, &revisions.join(" and "));
    Ok(checked)
}

/// Returns how many kustomizations in or below `paths` are on disk and not known to git.
fn unseen(here: &LocalRepo, paths: &[String]) -> usize {
    let is_asked = |place: &&String| {
        paths.is_empty()
            || paths
                .iter()
                .any(|path| path::is_in(path::parent(place), path))
    };
    let untracked = here.untracked(&FILE_NAMES).unwrap_or_default();
    untracked.iter().filter(is_asked).count()
}

/// Checks what is going to be localized where it stands, by paths from the top; everything without any.
///
/// # Errors
/// As [`check`], and when something could not be looked at.
pub(super) fn before(workspace: &Workspace, paths: &[String]) -> Result<Vec<Finding>, Failures> {
    let (here, opened) = match &workspace.files {
        Files::Commit { repo, id, tree, .. } => {
            // Links that the check follows are none that the result depends on.
            let tree = tree.beside(object_id(&id.tree)?);
            let commit = id.commit.clone();
            (
                repo,
                Opened::commit(repo, &id.commit, commit, Rc::new(tree)),
            )
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
    let looks = Looks {
        here,
        config: &config,
    };
    let checked = looks.at(&opened, paths)?;
    if !checked.failures.is_empty() {
        return Err(Failures(checked.failures));
    }
    let counting = checked.findings.into_iter();
    Ok(counting
        .filter(|finding| finding.allowed.is_none())
        .collect())
}

/// Takes back what the change accepts itself, and finds what is new in its configuration and its locks.
fn compare(
    looks: &Looks<'_>,
    opened: &Opened,
    checked: &mut Checked,
    since: &str,
) -> Result<(), Failures> {
    let config = looks.config;
    let base = open(looks.here, &What::Commit(since.to_owned()))
        .map_err(|failure| failure.context("cannot read the base"))?;
    if config.accepts == AcceptedComments::Base && checked.has_comments() {
        // A base that cannot be read accepts nothing.
        let old = looks
            .at(&base, &[])
            .map_or(Vec::new(), |base| base.findings);
        checked.take_back(&old, config, since);
    }
    if let Checking::Commit { commit, .. } = &base.checking {
        let lines = looks.here.changed_lines(commit, opened.side(), FILE_NAME);
        checked.new_config = lines?;
    }
    for place in opened.tree.locks()? {
        // One that cannot be read is a failure of the check already.
        checked
            .new_locked
            .extend(added(&*opened.tree, &*base.tree, &place).unwrap_or_default());
    }
    Ok(())
}

/// How files are looked at.
#[derive(Clone, Copy)]
struct Looks<'a> {
    here: &'a Rc<LocalRepo>,
    config: &'a Config,
}

impl Looks<'_> {
    fn at(&self, opened: &Opened, paths: &[String]) -> Result<Checked> {
        let identity = || Identity::of(self.here, self.config);
        check::check(Input {
            checking: opened.checking.clone(),
            tree: opened.tree.clone(),
            paths,
            config: self.config,
            absences: Some(&opened.absences),
            identity: Some(&identity),
        })
    }
}

/// What is checked, opened.
pub struct Opened {
    checking: Checking,
    /// Its files, as git checks them out.
    pub tree: Rc<dyn Listing>,
    absences: Absences,
    /// The same tree, where the index is checked.
    index: Option<Rc<IndexTree>>,
}

impl Opened {
    fn working_tree(here: &Rc<LocalRepo>, tree: Rc<WorkingTree>) -> Opened {
        Opened {
            checking: Checking::WorkingTree,
            absences: Absences::new(here.clone(), tree.clone(), false),
            tree,
            index: None,
        }
    }

    /// A build sees the files as git checks them out.
    fn commit(here: &Rc<LocalRepo>, rev: &str, commit: String, tree: Rc<ObjectTree>) -> Opened {
        let hash = tree.hash();
        let tree = Rc::new(CheckedOut::new(tree, hash));
        Opened {
            checking: Checking::Commit {
                rev: rev.to_owned(),
                commit,
            },
            absences: Absences::new(here.clone(), tree.clone(), false),
            tree,
            index: None,
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
///
/// # Errors
/// When it is not there.
pub fn open(here: &Rc<LocalRepo>, what: &What) -> Result<Opened> {
    Ok(match what {
        // No index is what an empty repository has, too.
        What::Index if here.top.is_none() && !here.index.exists() => {
            return Err(
                Failure::new("this repository has no working tree, and no index to check")
                    .hint("check a commit instead: --rev REV"),
            );
        }
        What::Index => {
            let index = Rc::new(IndexTree::open(here.clone())?);
            let tree = Rc::new(CheckedOut::new(index.clone(), index.hash()));
            Opened {
                checking: Checking::Index,
                absences: Absences::new(here.clone(), tree.clone(), true),
                tree,
                index: Some(index),
            }
        }
        What::WorkingTree => Opened::working_tree(here, Rc::new(WorkingTree::open(here.clone())?)),
        What::Commit(rev) => {
            let id = here.commit(rev)?.ok_or_else(|| {
                Failure::new(format!("`{rev}` names no commit"))
                    .hint("fetch it first, or name another one: git log --oneline --all")
            })?;
            let tree = ObjectTree::of_here(here.clone(), object_id(&id.tree)?)?;
            Opened::commit(here, rev, id.commit, Rc::new(tree))
        }
    })
}

/// Reads the configuration, from where it is to come from.
fn configuration(
    here: &Rc<LocalRepo>,
    policy: &Policy,
    checked: &dyn tree::Tree,
) -> Result<Config, Failures> {
    match policy {
        Policy::Default => Ok(Config::default()),
        Policy::Checked => Config::of(checked, ""),
        Policy::Commit(rev) => {
            // A change that breaks it would stop every change after it.
            Config::of(checked, "")?;
            let base = open(here, &What::Commit(rev.clone()))
                .map_err(|failure| failure.context("cannot read the configuration of the base"))?;
            Config::of(&*base.tree, "")
        }
    }
}
