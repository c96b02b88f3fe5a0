//! A check of a repository: which files it looks at, which base it compares them with, and whether it builds.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::build::{BaseTree, CheckBuildOptions, CheckBuilds};
use super::{BaseFindings, BuildTargets, Checked, Claim, Input, merged_back, renamed, surveyed};
use crate::config::{Config, FILE_NAME};
use crate::git::{LocalRepo, Snapshot};
use crate::graph::Survey;
use crate::kustomization::FILE_NAMES;
use crate::message::failure::{Failure, FailureKind, Failures, Location, Result, shown};
use crate::message::finding::Finding;
use crate::plan::{Changes, Plan, changed};
use crate::record::{LOCK_NAME, Lock, new_entries};
use crate::targets::Identity;
use crate::tree::overlay::OverlayTree;
use crate::tree::{Entry, SharedTree, Tree, path};
use crate::workspace::{Files, Workspace, from_top, merge_base};

/// The base of a check: it decides whose configuration counts, and which findings are old.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Base {
    /// There is none: the configuration of the checked files counts, and every finding is reported.
    None,
    /// A revision.
    Rev(String),
    /// The empty tree: the default configuration counts, and every exception is new.
    EmptyTree,
}

/// Checks `paths`, given relative to the current directory, or everything if `paths` is empty. Builds if `how` is
/// given.
pub(crate) fn check(
    repo: &Rc<LocalRepo>,
    snapshot: &Snapshot,
    paths: &[String],
    base: &Base,
    how: Option<&CheckBuildOptions<'_>>,
) -> Result<Checked, Failures> {
    let files = Files::open(repo, snapshot)?;
    let survey = Rc::new(Survey::of(files.checked_out()));
    checked(repo, &files, &survey, paths, base, how)
}

/// Checks files that are open like [`check`], from a survey that may have read a part of them already.
pub(crate) fn checked(
    repo: &Rc<LocalRepo>,
    files: &Files,
    survey: &Rc<Survey>,
    paths: &[String],
    base: &Base,
    how: Option<&CheckBuildOptions<'_>>,
) -> Result<Checked, Failures> {
    let tree = survey.tree();
    // The configuration is read even if that of the base counts: a change that breaks it would stop every change after
    // it.
    let own_config = Config::of(&*tree, "")?;
    let base_config = base_config(repo, base)?;
    let paths = paths.iter().map(|text| from_top(repo, &*tree, text)).collect::<Result<Vec<String>>>()?;
    let config = base_config.as_ref().unwrap_or(&own_config);
    let change_config = base_config.as_ref().map(|_| &own_config);
    let base_tree = open_base(repo, base, files)?;
    // Builds are prepared before the check, which runs them: they show objects that files do not.
    let building = how.map(|how| CheckBuilds::open(repo, (files, survey), (&paths, config), base_tree.as_ref(), how));
    let building = building.transpose()?;
    let checked = check_tree(files, survey, &paths, config, change_config, building.as_ref());
    let mut checked = checked.map_err(|failure| match count_unseen(files, &paths) {
        0 => failure,
        count => failure.hint(format!("untracked or ignored kustomizations there: {count}; git add -f them")),
    })?;
    if checked.kustomizations == 0 {
        checked.unseen = count_unseen(files, &paths);
    }
    checked.untracked = untracked_inputs(&*tree, &checked.read)?;
    // Exceptions of the change count only for findings that the base had.
    match (base, &base_tree) {
        (Base::Rev(rev), Some(base_tree)) => {
            let base_lock = judge_change(repo, (files, &tree), &mut checked, rev, base_tree, config)?;
            verify_claims(&tree, &mut checked, rev, &base_lock, config, building.as_ref());
        }
        (Base::EmptyTree, _) => {
            let left_out = checked.judge(&[], config, &Lock::default(), &*tree);
            checked.base = Some(BaseFindings { rev: String::new(), commit: String::new(), left_out });
        }
        _ => {}
    }
    if let Some(building) = building {
        // After the findings of the base are dropped: a build that only these would explain is then a finding itself.
        building.add_to(&mut checked);
    }
    // The fix may be in the working tree, and not staged yet.
    if checked.source == Snapshot::Index && checked.status() != 0 {
        let kustomizations = tree.kustomizations()?.into_iter().collect();
        checked.differing = repo.unstaged_paths(&kustomizations)?.len();
    }
    Ok(checked)
}

/// The configuration of a base, at its tip. `None` without a base.
fn base_config(repo: &Rc<LocalRepo>, base: &Base) -> Result<Option<Config>> {
    let rev = match base {
        Base::None => return Ok(None),
        Base::EmptyTree => return Ok(Some(Config::default())),
        Base::Rev(rev) => rev,
    };
    let files = Files::open(repo, &Snapshot::of(Some(rev)));
    let config = files.and_then(|files| Config::of(&*files.checked_out(), ""));
    config
        .map(Some)
        .map_err(|failure| failure.context(format_args!("cannot read the configuration of `{}`", shown(rev))))
}

/// Opens the merge base of the checked files with a revision. Later changes of others, up to the tip of the base, are
/// not a part of the change. `None` without a revision.
fn open_base(repo: &Rc<LocalRepo>, base: &Base, files: &Files) -> Result<Option<BaseTree>> {
    let Base::Rev(rev) = base else { return Ok(None) };
    // The index and the working tree are a change of HEAD.
    let commit = match files {
        Files::Commit { id, .. } => Some(&*id.commit),
        _ => None,
    };
    BaseTree::open(repo, &merge_base(repo, rev, commit)?).map(Some)
}

/// The untracked files that a check read: with them it may be green here and red elsewhere. The configuration and locks
/// always count.
fn untracked_inputs(tree: &dyn Tree, read: &BTreeSet<String>) -> Result<Vec<String>> {
    let mut untracked = tree.untracked()?;
    untracked.retain(|path| {
        path == FILE_NAME || path::name(path) == LOCK_NAME || path::and_above(path).any(|above| read.contains(above))
    });
    Ok(untracked)
}

/// Checks the tree before `branch` and `vendor` localize it: `paths` from the top, or everything if there are none.
/// `planned` is an existing plan, whose result is then built.
pub(crate) fn before_localizing(
    workspace: &Workspace,
    paths: &[String],
    how: Option<&CheckBuildOptions<'_>>,
    planned: Option<&Plan>,
) -> Result<Vec<Finding>, Failures> {
    let files = &workspace.files;
    // Only files of a repository are localized in place; those anywhere on disk are only copied.
    let Some(repo) = files.repo().filter(|_| files.snapshot().is_some()) else { return Ok(Vec::new()) };
    let tree = files.checked_out();
    // A build reads the checked-out bytes. They are the stored ones, and surveyed already, unless attributes convert
    // them.
    let is_surveyed = Rc::ptr_eq(&tree, &workspace.tree);
    let survey = if is_surveyed { workspace.survey().clone() } else { Rc::new(Survey::of(tree)) };
    let mut config = workspace.config.clone();
    if !paths.is_empty() {
        // A path that the user names counts, also if the configuration excludes it.
        (config.include, config.exclude) = Default::default();
    }
    let building = how.map(|how| CheckBuilds::open(repo, (files, &survey), (paths, &config), None, how)).transpose()?;
    let building = building.map(|building| building.with_plan(planned));
    let mut checked = check_tree(files, &survey, paths, &config, None, building.as_ref())?;
    if let Some(building) = building {
        building.add_to(&mut checked);
    }
    Failures::if_any(checked.failures)?;
    checked.findings.retain(|finding| finding.allowed.is_none());
    Ok(checked.findings)
}

/// Checks the working tree as it will be once `changes` are written and git has the configuration and the lock, by a
/// configuration that may be one of the changes.
pub(crate) fn once_written(workspace: &Workspace, changes: &Changes, config: &Config) -> Result<Checked, Failures> {
    let mut tree = OverlayTree::new(workspace.files.checked_out());
    // If git ignores them, the checked-out files lack them.
    for name in [FILE_NAME, LOCK_NAME] {
        if let Some(Entry::File { .. }) = workspace.tree.entry(name)? {
            tree.add_file(name, &workspace.tree.read(name)?);
        }
    }
    let tree: SharedTree = Rc::new(changed(tree, changes));
    let checked = check_tree(&workspace.files, &Survey::of(tree), &[], config, None, None)?;
    Failures::if_any(checked.failures.clone())?;
    Ok(checked)
}

/// Drops the findings that the merge base with `base` has too, and records the additions of the change to the
/// configuration and the locks. Returns the lock of the merge base.
fn judge_change(
    repo: &Rc<LocalRepo>,
    (files, tree): (&Files, &SharedTree),
    checked: &mut Checked,
    base: &str,
    base_tree: &BaseTree,
    config: &Config,
) -> Result<Rc<Lock>, Failures> {
    let (since, old_tree) = (&base_tree.commit.commit, base_tree.survey.tree());
    // A file that cannot be read may hide new references, so that its finding stays, unless the base has the same
    // content.
    for finding in checked.findings.iter_mut().filter(|finding| finding.unread && finding.url.is_empty()) {
        let state = |tree: &dyn Tree| (tree.entry(&finding.path).ok(), tree.read(&finding.path).ok());
        finding.unread = state(&**tree) != state(&*old_tree);
    }
    checked.new_config = repo.changed_lines(since, &checked.source, FILE_NAME)?;
    for path in tree.locks()? {
        // A lock that cannot be read is a failure of the check already.
        let new = new_entries(&**tree, &*old_tree, &path);
        checked.new_locked.extend(new.unwrap_or_default());
    }
    let old = base_findings(repo, checked, base_tree, config)?;
    let base_lock = Lock::find(&*old_tree, LOCK_NAME).ok().flatten().unwrap_or_default();
    merged_back(files, tree, checked, Some(&base_lock), config)?;
    let left_out = checked.judge(&old, config, &base_lock, &**tree);
    checked.base = Some(BaseFindings { rev: base.to_owned(), commit: since.clone(), left_out });
    Ok(base_lock)
}

/// The findings of the merge base with which those of a change are compared, also those that it allows. Empty if the
/// change has none.
fn base_findings(
    repo: &Rc<LocalRepo>,
    checked: &Checked,
    base_tree: &BaseTree,
    config: &Config,
) -> Result<Vec<Finding>> {
    if checked.findings.is_empty() {
        return Ok(Vec::new());
    }
    let since = &base_tree.commit.commit;
    let unknown = |failure: Failure| failure.context(format_args!("cannot tell what is new since {since}"));
    // The base is checked as its own change, so that its findings have their starts, and none is left out before they
    // are compared.
    let base_check = match check_tree(&base_tree.files, &base_tree.survey, &[], config, Some(config), None) {
        Ok(base_check) => base_check,
        // The first kustomizations that the configuration includes may come with the change.
        Err(failure) if failure.kind == FailureKind::Excluded => return Ok(Vec::new()),
        Err(failure) => return Err(unknown(failure)),
    };
    // The change may mend a lock of the base. While that cannot be read, no remote reference is known.
    let is_lock = |location: &Location| path::name(&location.file) == LOCK_NAME;
    let mut failures = base_check.failures.into_iter();
    match failures.find(|failure| !failure.location.as_deref().is_some_and(is_lock)) {
        Some(failure) => Err(unknown(failure)),
        None => Ok(renamed(base_check.findings, &repo.renames(since, &checked.source)?)),
    }
}

/// Verifies that the lock entries which the change adds or edits are signed as they claim. Without builds nothing may
/// be fetched, so each of them is a finding that names the command that verifies it. `before` is the lock of the base.
fn verify_claims(
    tree: &SharedTree,
    checked: &mut Checked,
    base: &str,
    before: &Lock,
    config: &Config,
    building: Option<&CheckBuilds<'_>>,
) {
    // A lock that cannot be read is a failure of the check already.
    let lock = Lock::find(&**tree, LOCK_NAME).ok().flatten().unwrap_or_default();
    let mut arguments = vec!["--base", base];
    if let Snapshot::Commit { rev, .. } = &checked.source {
        arguments.extend(["--rev", rev]);
    }
    // A signature that is wrong, or not verified, is a finding of the change. Any other failure only tells that the
    // signature could not be read.
    let mut findings = Vec::new();
    for claim in Claim::added(config, &lock, before) {
        match building.map_or_else(|| Err(claim.unverified(&arguments)), |building| building.verify(&claim)) {
            Ok(()) => {}
            Err(failure) if failure.kind == FailureKind::Unsigned => findings.push(claim.finding(&**tree, failure)),
            Err(failure) => checked.failures.push(failure),
        }
    }
    checked.add(findings, config, &**tree);
}

/// Checks `paths` of a tree by `config`. `change_config` is the configuration of the change, if `config` is that of its
/// base.
fn check_tree(
    files: &Files,
    survey: &Survey,
    paths: &[String],
    config: &Config,
    change_config: Option<&Config>,
    building: Option<&CheckBuilds<'_>>,
) -> Result<Checked> {
    let tree = &survey.tree();
    // A function, because which targets there are to build is known only in the middle of the check.
    let build = building.map(|building| |targets| building.targets(targets));
    let identity = files.repo().map(|repo| || Identity::of_any_clone(repo, config));
    let absences = files.absences(tree);
    let input = Input {
        source: files.snapshot().unwrap_or_default(),
        tree: tree.clone(),
        paths,
        config,
        change_config,
        absences: absences.as_ref(),
        identity: identity.as_ref().map(|identity| identity as &dyn Fn() -> Result<Identity>),
        build: build.as_ref().map(|build| BuildTargets(build)),
    };
    let mut checked = surveyed(survey, input)?;
    // With a base this needs the lock of the base: `judge_change` does it, and the base itself is not judged.
    if change_config.is_none() {
        merged_back(files, tree, &mut checked, None, config)?;
    }
    Ok(checked)
}

/// Adds a finding if the localized branch was merged into the checked files. `before` is the lock of the base.
fn merged_back(
    files: &Files,
    tree: &SharedTree,
    checked: &mut Checked,
    before: Option<&Lock>,
    config: &Config,
) -> Result<()> {
    if let Some(repo) = files.repo().filter(|_| checked.is_made_by_branch) {
        let finding = merged_back::find(repo, &checked.source, before)?;
        checked.add(finding.into_iter().collect(), config, &**tree);
    }
    Ok(())
}

/// Counts the kustomizations in or below `paths` that are on disk, but that the check does not see because git ignores
/// them or does not track them.
fn count_unseen(files: &Files, paths: &[String]) -> usize {
    let untracked = match files {
        Files::Index { repo, .. } => repo.untracked_named(&FILE_NAMES),
        Files::WorkingTree { repo, .. } => repo.ignored_named(&FILE_NAMES),
        Files::Commit { .. } | Files::Disk { .. } | Files::Tree(_) => Ok(Vec::new()),
    };
    // The number is only a hint, so a failure to list them is dropped.
    let untracked = untracked.unwrap_or_default();
    untracked.iter().filter(|file| path::covers_root(paths, path::parent(file))).count()
}
