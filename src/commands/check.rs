//! `check`: opens the files to check, applies the rules to them, and reports what was found.

mod build;
mod github;
mod gitlab;
mod human;
mod issue;
mod sarif;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use clap::{ArgGroup, Args, ValueHint};

use super::localize::KustomizeArgs;
use super::output::{Done, Format, Json as _, Outcome, OutputArgs, Shown};
use super::{json, messages};
use crate::check::{self, Checked, Checking, Input, merged_back, renamed};
use crate::config::{Config, FILE_NAME};
use crate::git::object_id;
use crate::git::{LocalRepo, Side};
use crate::kustomization::FILE_NAMES;
use crate::message::failure::{Failure, Failures, Result, shown};
use crate::message::finding::Finding;
use crate::message::redact::inert;
use crate::plan::{Changes, changed};
use crate::record::{LOCK_NAME, Lock, added, sha256_hex};
use crate::targets::Identity;
use crate::tree::absence::Absences;
use crate::tree::disk::DiskTree;
use crate::tree::git::GitTree;
use crate::tree::overlay::OverlayTree;
use crate::tree::{Tree, path};
use crate::workspace::{self, Files, Workspace, from_top, merge_base, repository_offline};
use build::Building;
pub(super) use build::How;

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

    /// Report only what is new since the merge base with REV, by the configuration of REV
    ///
    /// An exception that the change adds covers nothing new in it. What the change adds to the locks is shown as `new in
    /// the lock`, and what it does to the configuration as `new in the configuration`. For gates.
    #[arg(long, value_name = "REV")]
    base: Option<String>,

    /// Also build what is checked (with --base, what the change affects), and check the output
    ///
    /// Fetches what the lock holds and nothing else. Needs kustomize.
    #[arg(long, conflicts_with = "staged")]
    build: bool,

    /// With --build: use only what lock and cache hold
    #[arg(long, requires = "build")]
    offline: bool,

    #[command(flatten)]
    with: KustomizeArgs,

    /// Directories or kustomizations to begin at [default: all]
    ///
    /// Relative to the current directory or, as `:/apps/web`, to the top of the repository. Their references are
    /// followed. One without a kustomization is an error.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    paths: Vec<String>,
}

impl CheckArgs {
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        let what = if self.staged { Checking::Index } else { Checking::of(self.rev.as_deref()) };
        let base = self.base.clone().map_or(Base::Own, Base::Of);
        let how = How { with: &self.with, offline: self.offline, quiet: output.quiet };
        let checked = repository_offline().map_err(Into::into);
        let checked = checked.and_then(|here| check(&here, &what, &self.paths, &base, self.build.then_some(&how)));
        let mut checked = checked.unwrap_or_else(|failures| Checked::failed(what, failures.0));
        if output.format == Format::Github {
            checked.failures.extend(summarize(&checked, output.verbose).err());
        }
        Ok(Box::new(checked))
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
            _ => messages::failures(&self.failures),
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

/// Checks `paths`, as given from the directory that we were started in; everything when there are none. Builds, if it is
/// said how.
pub(super) fn check(
    here: &Rc<LocalRepo>,
    what: &Checking,
    paths: &[String],
    base: &Base,
    how: Option<&How<'_>>,
) -> Result<Checked, Failures> {
    let opened = open(here, what)?;
    // A change that breaks it would stop every change after it.
    let own = Config::of(&*opened.tree, "")?;
    let policy = match base {
        Base::Own => None,
        Base::Nothing => Some(Config::default()),
        Base::Of(rev) => {
            let policy = open(here, &Checking::of(Some(rev))).and_then(|base| Config::of(&*base.tree, ""));
            let why = || format!("cannot read the configuration of `{}`", shown(rev));
            Some(policy.map_err(|failure| failure.context(why()))?)
        }
    };
    let paths = paths.iter().map(|text| from_top(here, &*opened.tree, text)).collect::<Result<Vec<String>>>()?;
    let config = policy.as_ref().unwrap_or(&own);
    let own = policy.as_ref().map(|_| &own);
    let since = match (base, &opened.checking) {
        (Base::Of(rev), Checking::Commit { commit, .. }) => Some(merge_base(here, rev, Some(commit))?),
        (Base::Of(rev), _) => Some(merge_base(here, rev, None)?),
        (Base::Own | Base::Nothing, _) => None,
    };
    let built = (&opened.checking, &opened.tree);
    let building = how.map(|how| Building::open(here, built, (&paths, config), since.as_ref(), how)).transpose()?;
    let checked = opened.check(&paths, config, own, building.as_ref());
    let mut checked = checked.map_err(|failure| match opened.unseen(&paths) {
        0 => failure,
        count => failure.hint(format!("untracked or ignored kustomizations there: {count}; git add them")),
    })?;
    if checked.kustomizations == 0 {
        checked.unseen = opened.unseen(&paths);
    }
    checked.untracked = opened.tree.untracked()?;
    let is_read = |place: &String| path::and_above(place).any(|above| checked.read.contains(above));
    let is_used = |place: &String| place == FILE_NAME || path::name(place) == LOCK_NAME || is_read(place);
    checked.untracked.retain(is_used);
    match (base, &since) {
        (Base::Of(rev), Some(since)) => judge(&opened, &mut checked, rev, &since.commit, config)?,
        (Base::Nothing, _) => checked.judge(&[], "", config, &Lock::default(), &*opened.tree),
        _ => {}
    }
    if let Some(building) = building {
        building.add_to(&mut checked);
    }
    // A fix that is not staged yet.
    if opened.checking == Checking::Index && checked.status() != 0 {
        let kustomizations = opened.tree.kustomizations()?.into_iter().collect();
        checked.differing = here.unstaged_paths(&kustomizations)?.len();
    }
    Ok(checked)
}

/// Checks what is going to be localized where it stands, by paths from the top; everything without any.
pub(super) fn before(workspace: &Workspace, paths: &[String], how: Option<&How<'_>>) -> Result<Vec<Finding>, Failures> {
    let (here, tree, checking): (_, Rc<dyn Tree>, _) = match &workspace.files {
        // Links that the check follows are none that the result depends on.
        Files::Commit { repo, id, tree, is_head, .. } => {
            let rev = if *is_head { "HEAD" } else { &id.commit };
            let tree = tree.beside(object_id(&id.tree)?).checked_out();
            (repo, Rc::new(tree), Checking::Commit { rev: rev.to_owned(), commit: id.commit.clone() })
        }
        Files::WorkingTree { repo, tree, .. } => (repo, tree.clone(), Checking::WorkingTree),
        Files::Disk { .. } | Files::Tree(_) => return Ok(Vec::new()),
    };
    let lacks_some = !matches!(workspace.files, Files::Commit { is_head: false, .. });
    let opened = Opened { here: here.clone(), checking, tree, lacks_some };
    let mut config = workspace.config.clone();
    if !paths.is_empty() {
        // What is named is meant.
        config.include.clear();
        config.exclude.clear();
    }
    let built = (&opened.checking, &opened.tree);
    let building = how.map(|how| Building::open(here, built, (paths, &config), None, how)).transpose()?;
    let mut checked = opened.check(paths, &config, None, building.as_ref())?;
    if let Some(building) = building {
        building.add_to(&mut checked);
    }
    if !checked.failures.is_empty() {
        return Err(Failures(checked.failures));
    }
    checked.findings.retain(|finding| finding.allowed.is_none());
    Ok(checked.findings)
}

/// Checks the working tree as it is once changes are written, by another configuration.
pub(super) fn once_written(workspace: &Workspace, changes: &Changes, config: &Config) -> Result<Checked, Failures> {
    let Files::WorkingTree { repo, tree, .. } = &workspace.files else {
        return Err(Failure::new("only a working tree can be changed").into());
    };
    let tree = Rc::new(changed(OverlayTree::new(tree.clone()), changes));
    let opened = Opened { here: repo.clone(), checking: Checking::WorkingTree, tree, lacks_some: true };
    let checked = opened.check(&[], config, None, None)?;
    if checked.failures.is_empty() { Ok(checked) } else { Err(Failures(checked.failures)) }
}

/// Leaves out what the commit has, too, from which the change to `base` begins, and finds what is new in its
/// configuration and its locks.
fn judge(opened: &Opened, checked: &mut Checked, base: &str, since: &str, config: &Config) -> Result<(), Failures> {
    let here = &opened.here;
    let side = match &opened.checking {
        Checking::Commit { commit, .. } => Side::Commit(commit),
        Checking::Index => Side::Index,
        Checking::WorkingTree => Side::WorkingTree,
    };
    let before = open(here, &Checking::of(Some(since)))?;
    checked.new_config = here.changed_lines(since, side, FILE_NAME)?;
    for place in opened.tree.locks()? {
        // One that cannot be read is a failure of the check already.
        let new = added(&*opened.tree, &*before.tree, &place);
        checked.new_locked.extend(new.unwrap_or_default());
    }
    let mut old = Vec::new();
    if !checked.findings.is_empty() {
        // Whatever allows it there, it is not new.
        let found = before.check(&[], config, Some(config), None)?;
        if let Some(failure) = found.failures.into_iter().next() {
            let what = format_args!("cannot tell what is new since {since}");
            return Err(failure.context(what).into());
        }
        old = renamed(found.findings, &here.renames(since, side)?);
    }
    // One that cannot be read holds nothing.
    let locked = Lock::at(&*before.tree, LOCK_NAME).ok().flatten().unwrap_or_default();
    opened.merged_back(checked, Some(&locked), config)?;
    checked.judge(&old, base, config, &locked, &*opened.tree);
    Ok(())
}

/// What is checked, opened.
pub(super) struct Opened {
    here: Rc<LocalRepo>,
    checking: Checking,
    /// Its files, as git checks them out: those a build sees.
    pub tree: Rc<dyn Tree>,
    /// Whether what it lacks may be on disk, and can be added.
    lacks_some: bool,
}

impl Opened {
    /// Checks paths from the top, by a configuration. `own` is that of the change, where `config` is that of its base.
    fn check(
        &self,
        paths: &[String],
        config: &Config,
        own: Option<&Config>,
        building: Option<&Building<'_>>,
    ) -> Result<Checked> {
        let build = building.map(|building| |targets| building.targets(targets));
        let identity = || Identity::of_any_clone(&self.here, config);
        let absences = Absences::new(self.here.clone(), self.tree.clone(), self.lacks_some);
        let mut checked = check::check(Input {
            checking: self.checking.clone(),
            tree: self.tree.clone(),
            paths,
            config,
            own,
            absences: Some(&absences),
            identity: Some(&identity),
            build: build.as_ref().map(|build| check::Build(build)),
        })?;
        if own.is_none() {
            self.merged_back(&mut checked, None, config)?;
        }
        Ok(checked)
    }

    /// Adds that the localized branch was merged; `before` is the lock of a base.
    fn merged_back(&self, checked: &mut Checked, before: Option<&Lock>, config: &Config) -> Result<()> {
        if checked.is_made_by_branch {
            let found = merged_back::find(&self.here, &self.checking, before)?;
            checked.add(found.into_iter().collect(), config, &*self.tree);
        }
        Ok(())
    }

    /// Returns how many kustomizations in or below `paths` are on disk and not looked at: those that git ignores, or that
    /// it does not track.
    fn unseen(&self, paths: &[String]) -> usize {
        let untracked = match self.checking {
            Checking::Commit { .. } => Ok(Vec::new()),
            Checking::Index | Checking::WorkingTree => {
                self.here.untracked_named(&FILE_NAMES, self.checking == Checking::WorkingTree)
            }
        };
        let is_asked =
            |place: &&String| paths.is_empty() || paths.iter().any(|path| path::is_in(path::parent(place), path));
        untracked.unwrap_or_default().iter().filter(is_asked).count()
    }
}

/// Opens the files to check.
pub(super) fn open(here: &Rc<LocalRepo>, what: &Checking) -> Result<Opened> {
    let mut checking = what.clone();
    let tree: Rc<dyn Tree> = match &mut checking {
        // No index is what an empty repository has, too.
        Checking::Index if here.top.is_none() && !here.index.exists() => {
            return Err(Failure::new("this repository has no working tree, and no index to check")
                .hint("check a commit instead: --rev REV"));
        }
        Checking::Index => Rc::new(GitTree::of_index(here.clone())?.checked_out()),
        Checking::WorkingTree => Rc::new(DiskTree::of_working_tree(here.clone())?),
        Checking::Commit { rev, commit } => {
            let id = workspace::commit(here, rev)?;
            *commit = id.commit.clone();
            Rc::new(GitTree::of_commit(here, &id)?.checked_out())
        }
    };
    let lacks_some = !matches!(checking, Checking::Commit { .. });
    Ok(Opened { here: here.clone(), checking, tree, lacks_some })
}
