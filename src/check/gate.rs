//! A check of a repository: of what files, against what base, and with which builds.

use std::rc::Rc;

use super::build::{Before, Building, How};
use super::{Build, Checked, Claim, Input, Known, merged_back, renamed, surveyed};
use crate::config::{Config, FILE_NAME};
use crate::git::{LocalRepo, Snapshot};
use crate::graph::Survey;
use crate::kustomization::FILE_NAMES;
use crate::message::failure::{FailureKind, Failures, Result, shown};
use crate::message::finding::Finding;
use crate::plan::{Changes, Plan, changed};
use crate::record::{LOCK_NAME, Lock, added};
use crate::targets::Identity;
use crate::tree::overlay::OverlayTree;
use crate::tree::{SharedTree, path};
use crate::workspace::{Files, Workspace, from_top, merge_base};

/// What files are judged against: whose configuration counts, and what is old.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Base {
    /// Themselves.
    Own,
    /// What this revision names.
    Of(String),
    /// No configuration, and no file.
    Nothing,
}

/// Checks `paths`, as given from the directory that we were started in; everything when there are none. Builds, if it is
/// said how.
pub(crate) fn check(
    here: &Rc<LocalRepo>,
    what: &Snapshot,
    paths: &[String],
    base: &Base,
    how: Option<&How<'_>>,
) -> Result<Checked, Failures> {
    let files = Files::open(here, what)?;
    let survey = Rc::new(Survey::of(files.checked_out()));
    checked(here, &files, &survey, paths, base, how)
}

/// Does what [`check`] does with files that are open, of which something may be known.
pub(crate) fn checked(
    here: &Rc<LocalRepo>,
    files: &Files,
    survey: &Rc<Survey>,
    paths: &[String],
    base: &Base,
    how: Option<&How<'_>>,
) -> Result<Checked, Failures> {
    let tree = survey.tree();
    // A change that breaks it would stop every change after it.
    let own = Config::of(&*tree, "")?;
    let policy = match base {
        Base::Own => None,
        Base::Nothing => Some(Config::default()),
        Base::Of(rev) => {
            let base = Files::open(here, &Snapshot::of(Some(rev)));
            let policy = base.and_then(|base| Config::of(&*base.checked_out(), ""));
            let why = || format!("cannot read the configuration of `{}`", shown(rev));
            Some(policy.map_err(|failure| failure.context(why()))?)
        }
    };
    let paths = paths.iter().map(|text| from_top(here, &*tree, text)).collect::<Result<Vec<String>>>()?;
    let config = policy.as_ref().unwrap_or(&own);
    let own = policy.as_ref().map(|_| &own);
    let since = match (base, files) {
        (Base::Of(rev), Files::Commit { id, .. }) => Some(merge_base(here, rev, Some(&id.commit))?),
        (Base::Of(rev), _) => Some(merge_base(here, rev, None)?),
        (Base::Own | Base::Nothing, _) => None,
    };
    let before = since.as_ref().map(|since| Before::open(here, since)).transpose()?;
    let building = how.map(|how| Building::open(here, (files, survey), (&paths, config), before.as_ref(), how));
    let building = building.transpose()?;
    let checked = check_tree(files, survey, &paths, config, own, building.as_ref());
    let mut checked = checked.map_err(|failure| match unseen(files, &paths) {
        0 => failure,
        count => failure.hint(format!("untracked or ignored kustomizations there: {count}; git add them")),
    })?;
    if checked.kustomizations == 0 {
        checked.unseen = unseen(files, &paths);
    }
    checked.untracked = tree.untracked()?;
    let is_read = |place: &String| path::and_above(place).any(|above| checked.read.contains(above));
    let is_used = |place: &String| place == FILE_NAME || path::name(place) == LOCK_NAME || is_read(place);
    checked.untracked.retain(is_used);
    match (base, &before) {
        (Base::Of(rev), Some(before)) => {
            let locked = judge(here, (files, &tree), &mut checked, rev, before, config)?;
            verify_claims(&tree, &mut checked, rev, &locked, config, building.as_ref());
        }
        (Base::Nothing, _) => {
            let left_out = checked.judge(&[], config, &Lock::default(), &*tree);
            checked.known = Some(Known { rev: String::new(), commit: String::new(), left_out });
        }
        _ => {}
    }
    if let Some(building) = building {
        building.add_to(&mut checked);
    }
    // A fix that is not staged yet.
    if checked.source == Snapshot::Index && checked.status() != 0 {
        let kustomizations = tree.kustomizations()?.into_iter().collect();
        checked.differing = here.unstaged_paths(&kustomizations)?.len();
    }
    Ok(checked)
}

/// Checks what is going to be localized where it stands, by paths from the top; everything without any. `planned` is what
/// comes of it, as far as that is known.
pub(crate) fn before(
    workspace: &Workspace,
    paths: &[String],
    how: Option<&How<'_>>,
    planned: Option<&Plan>,
) -> Result<Vec<Finding>, Failures> {
    let files = &workspace.files;
    let Some(here) = files.repo().filter(|_| files.snapshot().is_some()) else { return Ok(Vec::new()) };
    let tree = files.checked_out();
    // What is stored is what a build reads, unless attributes say otherwise.
    let is_known = Rc::ptr_eq(&tree, &workspace.tree);
    let survey = if is_known { workspace.survey().clone() } else { Rc::new(Survey::of(tree)) };
    let mut config = workspace.config.clone();
    if !paths.is_empty() {
        // What is named is meant.
        (config.include, config.exclude) = Default::default();
    }
    let building = how.map(|how| Building::open(here, (files, &survey), (paths, &config), None, how)).transpose()?;
    let building = building.map(|building| building.of_plan(planned));
    let mut checked = check_tree(files, &survey, paths, &config, None, building.as_ref())?;
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
pub(crate) fn once_written(workspace: &Workspace, changes: &Changes, config: &Config) -> Result<Checked, Failures> {
    let tree: SharedTree = Rc::new(changed(OverlayTree::new(workspace.tree.clone()), changes));
    let checked = check_tree(&workspace.files, &Survey::of(tree), &[], config, None, None)?;
    if checked.failures.is_empty() { Ok(checked) } else { Err(Failures(checked.failures)) }
}

/// Leaves out what the commit has, too, from which the change to `base` begins, and finds what is new in its
/// configuration and its locks. Returns the lock of that commit.
fn judge(
    here: &Rc<LocalRepo>,
    (files, tree): (&Files, &SharedTree),
    checked: &mut Checked,
    base: &str,
    before: &Before,
    config: &Config,
) -> Result<Rc<Lock>, Failures> {
    let (since, old_tree) = (&before.commit.commit, before.survey.tree());
    // What is not read names the same where it is the same.
    let has = |tree: &SharedTree, path: &str| (tree.entry(path).ok(), tree.read(path).ok());
    for finding in checked.findings.iter_mut().filter(|one| one.unread && one.url.is_empty()) {
        finding.unread = has(tree, &finding.path) != has(&old_tree, &finding.path);
    }
    checked.new_config = here.changed_lines(since, &checked.source, FILE_NAME)?;
    for place in tree.locks()? {
        // One that cannot be read is a failure of the check already.
        let new = added(&**tree, &*old_tree, &place);
        checked.new_locked.extend(new.unwrap_or_default());
    }
    let mut old = Vec::new();
    if !checked.findings.is_empty() {
        // Whatever allows it there, it is not new.
        let found = check_tree(&before.files, &before.survey, &[], config, Some(config), None)?;
        if let Some(failure) = found.failures.into_iter().next() {
            let what = format_args!("cannot tell what is new since {since}");
            return Err(failure.context(what).into());
        }
        old = renamed(found.findings, &here.renames(since, &checked.source)?);
    }
    // One that cannot be read holds nothing.
    let locked = Lock::at(&*old_tree, LOCK_NAME).ok().flatten().unwrap_or_default();
    merged_back(files, tree, checked, Some(&locked), config)?;
    let left_out = checked.judge(&old, config, &locked, &**tree);
    checked.known = Some(Known { rev: base.to_owned(), commit: since.clone(), left_out });
    Ok(locked)
}

/// Verifies who signed what the change locks, if it is built; nothing else may fetch.
fn verify_claims(
    tree: &SharedTree,
    checked: &mut Checked,
    base: &str,
    before: &Lock,
    config: &Config,
    building: Option<&Building<'_>>,
) {
    // One that cannot be read is a failure already.
    let lock = Lock::at(&**tree, LOCK_NAME).ok().flatten().unwrap_or_default();
    let mut words = vec!["--base", base];
    if let Snapshot::Commit { rev, .. } = &checked.source {
        words.extend(["--rev", rev]);
    }
    let (mut findings, mut failures) = (Vec::new(), Vec::new());
    for claim in Claim::all(config, &lock, before) {
        match building.map_or_else(|| Err(claim.unverified(&words)), |building| building.verify(&claim)) {
            Ok(()) => {}
            Err(failure) if failure.kind == FailureKind::Unsigned => findings.push(claim.finding(&**tree, failure)),
            Err(failure) => failures.push(failure),
        }
    }
    checked.failures.extend(failures);
    checked.add(findings, config, &**tree);
}

/// Checks paths of a tree from its top, by a configuration. `own` is that of the change, where `config` is that of its
/// base.
fn check_tree(
    files: &Files,
    survey: &Survey,
    paths: &[String],
    config: &Config,
    own: Option<&Config>,
    building: Option<&Building<'_>>,
) -> Result<Checked> {
    let tree = &survey.tree();
    let build = building.map(|building| |targets| building.targets(targets));
    let identity = files.repo().map(|repo| || Identity::of_any_clone(repo, config));
    let absences = files.absences(tree);
    let input = Input {
        source: files.snapshot().unwrap_or_default(),
        tree: tree.clone(),
        paths,
        config,
        own,
        absences: absences.as_ref(),
        identity: identity.as_ref().map(|identity| identity as &dyn Fn() -> Result<Identity>),
        build: build.as_ref().map(|build| Build(build)),
    };
    let mut checked = surveyed(survey, input)?;
    if own.is_none() {
        merged_back(files, tree, &mut checked, None, config)?;
    }
    Ok(checked)
}

/// Adds that the localized branch was merged; `before` is the lock of a base.
fn merged_back(
    files: &Files,
    tree: &SharedTree,
    checked: &mut Checked,
    before: Option<&Lock>,
    config: &Config,
) -> Result<()> {
    if let Some(repo) = files.repo().filter(|_| checked.is_made_by_branch) {
        let found = merged_back::find(repo, &checked.source, before)?;
        checked.add(found.into_iter().collect(), config, &**tree);
    }
    Ok(())
}

/// Returns how many kustomizations in or below `paths` are on disk and not looked at: those that git ignores, or that it
/// does not track.
fn unseen(files: &Files, paths: &[String]) -> usize {
    let untracked = match files {
        Files::Index { repo, .. } => repo.untracked_named(&FILE_NAMES, false),
        Files::WorkingTree { repo, .. } => repo.untracked_named(&FILE_NAMES, true),
        Files::Commit { .. } | Files::Disk { .. } | Files::Tree(_) => Ok(Vec::new()),
    };
    let is_asked =
        |place: &&String| paths.is_empty() || paths.iter().any(|path| path::is_in(path::parent(place), path));
    untracked.unwrap_or_default().iter().filter(is_asked).count()
}
