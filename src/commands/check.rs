//! `check`: opens the files to check, applies the rules to them, and reports what was found.

mod github;
mod gitlab;
mod human;
mod sarif;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use clap::{ArgGroup, Args, ValueHint};

use super::allow::{add_allow, say_added};
use super::output::{Done, Format, Json as _, Outcome, OutputArgs, Shown};
use super::{json, messages};
use crate::check::{self, Checked, Checking, Input, Renames};
use crate::config::{Config, FILE_NAME};
use crate::git::{LocalRepo, Side};
use crate::kustomization::FILE_NAMES;
use crate::message::failure::{Failure, Failures, Result, shown};
use crate::message::finding::Finding;
use crate::message::redact::inert;
use crate::record::{added, sha256_hex};
use crate::targets::Identity;
use crate::tree::absence::Absences;
use crate::tree::disk::DiskTree;
use crate::tree::git::{GitTree, object_id};
use crate::tree::{Tree, path};
use crate::workspace::{Files, Workspace, commit, from_top, merge_base, repository_offline};

/// Arguments of `check`.
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("source"))]
pub(super) struct CheckArgs {
    /// Check the index, as hooks do: what would be committed [default: the working tree]
    #[arg(long, group = "source")]
    staged: bool,

    /// Check a commit
    ///
    /// Works in a bare repository.
    #[arg(long, group = "source", value_name = "REV")]
    rev: Option<String>,

    /// Judge a change to REV: what is new since the merge base counts, by the configuration of REV
    ///
    /// An exception that the change adds covers nothing new in it. What the change adds to the locks is shown as `new in
    /// the lock`, and what it does to the configuration as `new in the configuration`. For gates.
    #[arg(long, value_name = "REV")]
    base: Option<String>,

    /// Write an entry of `allow` for each error that can have one, into the configuration of the working tree
    ///
    /// With `--strict` for each warning, too. Each with `reason: TODO`, which is a warning until somebody says why.
    #[arg(long, conflicts_with_all = ["rev", "base"])]
    add_allow: bool,

    /// Treat warnings as errors, and fail where it is not known what is deployed
    ///
    /// The last line counts the targets that only a build or the cluster knows.
    #[arg(long)]
    strict: bool,

    /// Directories or kustomizations to begin at [default: all]
    ///
    /// Seen from here or, as `:/apps/web`, from the top of the repository. What they reference is followed. One that
    /// holds no kustomization is an error.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    paths: Vec<String>,
}

impl CheckArgs {
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        let what = match (&self.rev, self.staged) {
            (Some(rev), _) => What::Commit(rev.clone()),
            (None, true) => What::Index,
            (None, false) => What::WorkingTree,
        };
        let mut checked = match self.checked(&what) {
            Err(failures) if output.format == Format::Human => return Err(failures),
            // Reports for machines need one all the more.
            checked => checked.unwrap_or_else(|failures| Checked::failed(what.checking(), failures.0)),
        };
        if self.strict {
            checked.strictly();
        }
        if output.format == Format::Github {
            checked.failures.extend(summarize(&checked, output.verbose).err());
        }
        Ok(Box::new(checked))
    }

    /// Checks; again, once exceptions are written.
    fn checked(&self, what: &What) -> Result<Checked, Failures> {
        let here = repository_offline()?;
        let base = self.base.clone().map_or(Base::Own, Base::Of);
        let check = || check(&here, what, &self.paths, &base);
        let checked = check()?;
        if !self.add_allow || !checked.failures.is_empty() {
            return Ok(checked);
        }
        let count = add_allow(&checked.exceptions(|one| self.strict || one.fails()))?;
        if say_added(count) { check() } else { Ok(checked) }
    }
}

/// Adds to the summary of the step, where GitHub Actions gives us one.
fn summarize(checked: &Checked, verbose: bool) -> Result<()> {
    use std::io::Write;
    let Some(file) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|file| !file.is_empty()) else {
        return Ok(());
    };
    std::fs::File::options()
        .append(true)
        .create(true)
        .open(&file)
        .and_then(|mut summary| summary.write_all(github::github_summary(checked, verbose).as_bytes()))
        .map_err(|error| Failure::new(format!("could not write the summary to `{}`: {error}", file.to_string_lossy())))
}

impl Outcome for Checked {
    fn text(&self, shown: Shown) -> String {
        human::human(self, shown)
    }

    fn report(&self, output: &OutputArgs) -> String {
        let text = match output.format {
            Format::Json => self.json(),
            Format::Sarif => sarif::sarif(self),
            Format::Gitlab => gitlab::gitlab(self),
            Format::Github => return github::github(self, output.shown()),
            _ => self.text(output.shown()),
        };
        inert(&text)
    }

    fn said(&self, output: &OutputArgs) -> String {
        match output.format {
            // The log of a step is one: what could not be looked at is in there.
            Format::Github => String::new(),
            _ => messages::failures(&Failures(self.failures.clone())),
        }
    }

    fn status(&self) -> u8 {
        Checked::status(self)
    }
}

/// How a check is written.
pub mod formats {
    pub use super::github::{github, github_summary};
    pub use super::gitlab::gitlab;
    pub use super::human::human;
    pub use super::sarif::sarif;
    pub use crate::commands::output::Shown;

    /// Returns what was found as one JSON object, with a final newline.
    pub fn json(checked: &crate::check::Checked) -> String {
        super::json::report(checked)
    }
}

/// Returns what stays the same when lines move.
fn fingerprint(finding: &Finding) -> String {
    let (rule, path, text) = finding.identity();
    sha256_hex(format!("{}\0{path}\0{text}", rule.id()).as_bytes())
}

/// What files are judged against: whose configuration counts, and what is old.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Base {
    /// Themselves.
    Own,
    /// What this revision names.
    Of(String),
    /// No configuration, and no file.
    Nothing,
}

/// What to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// The index.
    Index,
    /// The working tree.
    WorkingTree,
    Commit(String),
}

impl What {
    /// Returns a commit, or the working tree where none is named.
    pub(super) fn of(rev: Option<&str>) -> What {
        rev.map_or(What::WorkingTree, |rev| What::Commit(rev.to_owned()))
    }

    /// Returns how reports name it, before it was opened.
    pub(super) fn checking(&self) -> Checking {
        match self {
            What::Index => Checking::Index,
            What::WorkingTree => Checking::WorkingTree,
            What::Commit(rev) => Checking::Commit { rev: rev.clone(), commit: String::new() },
        }
    }
}

/// Checks `paths`, as given from the directory that we were started in; everything when there are none.
pub(super) fn check(here: &Rc<LocalRepo>, what: &What, paths: &[String], base: &Base) -> Result<Checked, Failures> {
    let opened = open(here, what)?;
    // A change that breaks it would stop every change after it.
    let own = Config::of(&*opened.tree, "")?;
    let policy = match base {
        Base::Own => None,
        Base::Nothing => Some(Config::default()),
        Base::Of(rev) => {
            let policy = open(here, &What::Commit(rev.clone())).and_then(|base| Config::of(&*base.tree, ""));
            Some(policy.map_err(|failure| {
                failure.context(format_args!("cannot read the configuration of `{}`", shown(rev)))
            })?)
        }
    };
    let paths = paths.iter().map(|text| from_top(here, &*opened.tree, text)).collect::<Result<Vec<String>>>()?;
    let looks = Looks { here, config: policy.as_ref().unwrap_or(&own), own: policy.is_some().then_some(&own) };
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
    match base {
        Base::Own => {}
        Base::Nothing => checked.judge(&[], "", looks.config),
        Base::Of(rev) => judge(&looks, &opened, &mut checked, rev)?,
    }
    Ok(checked)
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
            (repo, Opened::commit(&id.commit, id.commit.clone(), &tree))
        }
        Files::WorkingTree { repo, tree, .. } => (repo, Opened { checking: Checking::WorkingTree, tree: tree.clone() }),
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
        let absences = Absences::new(self.here.clone(), opened.tree.clone(), opened.checking == Checking::Index);
        check::check(Input {
            checking: opened.checking.clone(),
            tree: opened.tree.clone(),
            paths,
            config: self.config,
            own: self.own,
            absences: Some(&absences),
            identity: Some(&identity),
        })
    }
}

/// What is checked, opened.
pub(super) struct Opened {
    checking: Checking,
    /// Its files, as git checks them out: those a build sees.
    pub tree: Rc<dyn Tree>,
}

impl Opened {
    fn commit(rev: &str, commit: String, tree: &GitTree) -> Opened {
        let tree = Rc::new(tree.checked_out());
        Opened { checking: Checking::Commit { rev: rev.to_owned(), commit }, tree }
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
pub(super) fn open(here: &Rc<LocalRepo>, what: &What) -> Result<Opened> {
    Ok(match what {
        // No index is what an empty repository has, too.
        What::Index if here.top.is_none() && !here.index.exists() => {
            return Err(Failure::new("this repository has no working tree, and no index to check")
                .hint("check a commit instead: --rev REV"));
        }
        What::Index => {
            let tree = Rc::new(GitTree::of_index(here.clone())?.checked_out());
            Opened { checking: Checking::Index, tree }
        }
        What::WorkingTree => {
            Opened { checking: Checking::WorkingTree, tree: Rc::new(DiskTree::of_working_tree(here.clone())?) }
        }
        What::Commit(rev) => {
            let id = commit(here, rev)?;
            let tree = GitTree::of_here(here.clone(), object_id(&id.tree)?)?;
            Opened::commit(rev, id.commit, &tree)
        }
    })
}
