//! `build --output DIR`: one file for each target and each top root. The program deletes only files that the list in DIR
//! names, and follows no link below DIR.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::Serialize;

use super::BuildArgs;
use crate::build::builds::{Builds, Wanted};
use crate::build::choice::{Argument, Choice, is_meant, unknown};
use crate::build::deployed;
use crate::build::subject::Subject;
use crate::commands::messages::{counted, lines};
use crate::commands::output::{Done, Outcome, OutputArgs, Shown};
use crate::fetch::Progress;
use crate::git::LocalRepo;
use crate::message::failure::{Failure, FailureKind, Failures, Result};
use crate::message::finding::{Rule, Severity};
use crate::message::redact::visible;
use crate::os::parallel::processors;
use crate::targets::affected::Status;
use crate::targets::affected::changes::Changes;
use crate::targets::{Target, stopped};
use crate::tree::path;
use crate::workspace::{Files, Workspace, commit, from_lock, from_top, merge_base, repository_offline};

/// The list of the written files, one per line.
const LIST: &str = ".built";

/// The list of the builds that have no file, each with the reason, one per line.
const UNKNOWN: &str = ".unknown";

/// The builds by file, and the targets that are unknown.
#[derive(Default)]
struct Chosen {
    builds: BTreeMap<String, Wanted>,
    /// The targets of which it is unknown what they deploy, each with the reason.
    unknown: Vec<String>,
    /// The builds that were stopped, so that targets are unknown.
    stopped: Vec<Failure>,
}

/// The result of a run.
#[derive(Debug, Default, Serialize)]
struct Written {
    directory: String,
    /// The paths of the files, from `directory`.
    files: BTreeSet<String>,
    /// The number of files that are new or changed.
    changed: usize,
    /// The files that were deleted.
    removed: Vec<String>,
    /// The targets of which it is unknown what they deploy, each with the reason.
    unknown: Vec<String>,
    /// The files that could not be built, each with the reason.
    not_built: Vec<String>,
    #[serde(skip)]
    stopped: Vec<Failure>,
    #[serde(skip)]
    fails: bool,
}

/// Builds what the arguments select, and makes `directory` contain exactly that.
pub(super) fn write(args: &BuildArgs, workspace: &Workspace, directory: &Path, output: &OutputArgs) -> Done {
    let before = listed(directory)?;
    let repo = workspace.repo().map_or_else(repository_offline, |repo| Ok(repo.clone()))?;
    let Chosen { builds: chosen, unknown, stopped } = match &args.base {
        Some(base) => changed(args, workspace, &repo, base)?,
        None => all(args, workspace, &repo)?,
    };
    let (names, subjects): (Vec<String>, Vec<Wanted>) = chosen.into_iter().unzip();
    let mut fetcher = from_lock(workspace.repo(), workspace, args.offline, output.quiet)?;
    let builds = Builds::of(workspace, &subjects, &mut fetcher, args.with.programs())?;
    let progress = Progress::new("building", output.quiet);
    let built = progress.each(processors(), &names, String::clone, |number, _| builds.bytes(number));
    let level = workspace.config.level(Rule::UnknownTarget, Severity::Warning);
    let mut written = Written { directory: directory.display().to_string(), unknown, stopped, ..Written::default() };
    for (name, built) in names.into_iter().zip(built) {
        match built {
            Ok(bytes) => {
                written.changed += usize::from(put(directory, &name, &bytes)?);
                written.files.insert(name);
            }
            Err(failures) => {
                let reason = failures.0.first().map_or(String::new(), ToString::to_string);
                written.not_built.push(format!("{name}: {reason}"));
                written.stopped.extend(failures.0.into_iter().filter(|failure| failure.kind == FailureKind::Stopped));
            }
        }
    }
    written.fails = !written.not_built.is_empty() || (level.is_some() && !written.unknown.is_empty());
    for gone in before.difference(&written.files) {
        if remove(directory, gone)? {
            written.removed.push(gone.clone());
        }
    }
    put(directory, LIST, text(&written.files).as_bytes())?;
    match written.lines() {
        none if none.is_empty() => drop(remove(directory, UNKNOWN)?),
        some => drop(put(directory, UNKNOWN, text(&some).as_bytes())?),
    }
    Ok(Box::new(written))
}

/// Every target and every top root that no target builds, or those that the arguments select.
fn all(args: &BuildArgs, workspace: &Workspace, repo: &Rc<LocalRepo>) -> Result<Chosen, Failures> {
    let (explored, deployed) = deployed::find(repo, workspace.survey())?;
    let (tree, graph) = (&workspace.tree, &explored.graph);
    let arguments = args.what.iter().map(|text| Argument { text, path: from_top(repo, &**tree, text).ok() });
    let arguments: Vec<Argument<'_>> = arguments.collect();
    let starts = workspace.config.starting_points(&**tree, &[], &tree.kustomizations()?, deployed.roots())?;
    for argument in &arguments {
        let mut targets = deployed.targets.iter().filter(|target| is_meant(target, argument.text));
        let mut directories = deployed.here().map(|(_, dir)| &dir.path).chain(&starts);
        if targets.next().is_none() && !directories.any(|directory| argument.contains(directory)) {
            return Err(unknown(&deployed.targets, argument.text).into());
        }
    }
    let mut targets: Vec<&Target> = deployed.targets.iter().collect();
    targets.retain(|target| arguments.is_empty() || arguments.iter().any(|argument| argument.selects(target)));
    let mut chosen = Chosen::of(&targets, |target| Ok(Some(Subject::deployed(workspace, target)?)));
    // A root that a target builds is part of its file.
    let local = targets.iter().filter_map(|target| Some((target, target.here()?)));
    let built: BTreeSet<&str> = local.flat_map(|(target, dir)| target.roots(dir)).collect();
    let referrers = graph.referrers();
    for root in starts.iter().filter(|root| !built.contains(root.as_str())) {
        let is_top = graph.user_root(root).is_some_and(|id| referrers[id.0].is_empty());
        let is_named = arguments.iter().any(|argument| argument.path.as_ref() == Some(root));
        let is_selected = arguments.is_empty() || arguments.iter().any(|argument| argument.contains(root));
        if is_selected && (is_top || is_named) {
            chosen.builds.insert(root_file(root), Ok(Some(Subject::root(workspace, root))));
        }
    }
    chosen.stopped = stopped(targets).cloned().collect();
    let unread = deployed.unread.iter().filter(|_| arguments.is_empty());
    chosen.unknown.extend(unread.map(|unread| format!("{}: {}", unread.place(), visible(&unread.message))));
    Ok(chosen)
}

/// The targets and roots that a change since the merge base with `base` affects, if the arguments select them.
fn changed(args: &BuildArgs, workspace: &Workspace, repo: &Rc<LocalRepo>, base: &str) -> Result<Chosen, Failures> {
    let head = match &workspace.files {
        Files::Commit { id, .. } => id.clone(),
        _ => commit(repo, "HEAD")?,
    };
    let base = merge_base(repo, base, Some(&head.commit))?;
    let old = Workspace::of_rev(repo.clone(), Some(&base.commit))?.into_checkout();
    let changes = Changes::since(repo, &base, &workspace.files, [old.tree.clone(), workspace.tree.clone()])?;
    let surveys = [&**old.survey(), &**workspace.survey()];
    let choices = Choice::of(repo, &workspace.config, &changes, surveys, &args.what)?;
    let there = choices.builds.iter().filter(|choice| choice.status != Status::Removed);
    let (targets, roots): (Vec<&Choice>, Vec<&Choice>) = there.partition(|choice| choice.targets()[1].is_some());
    let targets: Vec<&Target> = targets.iter().filter_map(|choice| choice.targets()[1]).collect();
    let mut chosen = Chosen::of(&targets, |target| Ok(Some(Subject::deployed(workspace, target)?)));
    for root in roots {
        chosen.builds.insert(root_file(&root.title()), root.subject(1, workspace));
    }
    chosen.stopped = stopped(&choices.unbuilt).cloned().collect();
    chosen.unknown.extend(choices.unbuilt.iter().map(|target| format!("{}: it may be another one", target.by())));
    chosen
        .unknown
        .extend(choices.unread.iter().map(|unread| format!("{}: {}", unread.place(), visible(&unread.message))));
    Ok(chosen)
}

impl Chosen {
    /// The builds of targets. A target of another repository is skipped.
    fn of(targets: &[&Target], subject: impl Fn(&Target) -> Wanted) -> Chosen {
        let mut chosen = Chosen::default();
        let mut alike: HashMap<String, usize> = HashMap::new();
        targets.iter().for_each(|target| *alike.entry(target_file(target, "")).or_default() += 1);
        for target in targets {
            if let Some(why) = target.unknown() {
                chosen.unknown.push(format!("{}: {}", target.by(), visible(&why)));
            } else if target.here().is_some() {
                let name = target_file(target, "");
                let name = match alike.get(&name) {
                    Some(1) | None => name,
                    Some(_) => target_file(target, &format!("@{}:{}", target.object.file, target.object.line)),
                };
                chosen.builds.insert(name, subject(target));
            }
        }
        chosen
    }
}

/// The file of a target. `suffix` distinguishes targets with one name.
fn target_file(target: &Target, suffix: &str) -> String {
    let engine = target.engine.name().to_ascii_lowercase().replace(' ', "");
    let object = &target.object;
    let parts = [&*engine, &object.namespace, &format!("{}{suffix}", object.name)];
    let parts = parts.iter().filter(|part| !part.is_empty()).map(|part| plain(part));
    format!("{}.yaml", parts.collect::<Vec<_>>().join("/"))
}

/// A text as the name of a file. Different texts have different names.
fn plain(text: &str) -> String {
    let mut name = String::new();
    for byte in text.bytes() {
        match byte {
            b'-' | b'_' | b'@' => name.push(char::from(byte)),
            b'.' if !name.is_empty() => name.push('.'),
            byte if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            byte => name += &format!("%{byte:02X}"),
        }
    }
    name
}

/// Whether [`plain`] can make a name.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && plain(&name.replace('%', "-")) == name.replace('%', "-")
}

/// The file of a root.
fn root_file(directory: &str) -> String {
    match directory {
        "" | "." => "roots.yaml".to_owned(),
        directory => format!("roots/{}.yaml", directory.split('/').map(plain).collect::<Vec<_>>().join("/")),
    }
}

fn text<'a>(lines: impl IntoIterator<Item = &'a String>) -> String {
    lines.into_iter().map(|line| format!("{line}\n")).collect()
}

/// The files that an earlier run wrote into a directory.
///
/// # Errors
///
/// If the directory has other files, but no list: it is not one of ours.
fn listed(directory: &Path) -> Result<BTreeSet<String>> {
    match fs::read_to_string(inside(directory, LIST)?) {
        Ok(text) => Ok(text.lines().filter(|line| line.split('/').all(is_plain)).map(str::to_owned).collect()),
        Err(_) => {
            let is_empty = fs::read_dir(directory).map_or(true, |mut entries| entries.next().is_none());
            if is_empty {
                return Ok(BTreeSet::new());
            }
            Err(Failure::new(format!("`{}` holds other files: no `{LIST}` lists what was built", directory.display()))
                .hint("name a directory that is empty or new: --output DIR"))
        }
    }
}

/// The path of a file on disk. Refuses a link at or above it, below `directory`.
fn inside(directory: &Path, name: &str) -> Result<PathBuf> {
    let mut disk_path = directory.to_owned();
    for part in name.split('/') {
        disk_path.push(part);
        if fs::symlink_metadata(&disk_path).is_ok_and(|entry| entry.is_symlink()) {
            return Err(Failure::new(format!("`{}` is a link", disk_path.display())).hint("remove it"));
        }
    }
    Ok(disk_path)
}

/// Writes a file if its content differs. Returns whether it did.
fn put(directory: &Path, name: &str, bytes: &[u8]) -> Result<bool> {
    let disk_path = inside(directory, name)?;
    if fs::read(&disk_path).is_ok_and(|old| old == bytes) {
        return Ok(false);
    }
    let parent = disk_path.parent().unwrap_or(directory);
    let written = fs::create_dir_all(parent).and_then(|()| fs::write(&disk_path, bytes));
    written.map_err(|error| Failure::new(format!("could not write `{}`: {error}", disk_path.display())))?;
    Ok(true)
}

/// Deletes a file, and the directories that this leaves empty. Returns whether the file existed.
fn remove(directory: &Path, name: &str) -> Result<bool> {
    let disk_path = inside(directory, name)?;
    match fs::remove_file(&disk_path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        removed => {
            removed.map_err(|error| Failure::new(format!("could not delete `{}`: {error}", disk_path.display())))?
        }
    }
    for above in path::and_above(path::parent(name)).filter(|above| !above.is_empty()) {
        if fs::remove_dir(directory.join(above)).is_err() {
            break;
        }
    }
    Ok(true)
}

impl Written {
    /// The builds that have no file, one line each.
    fn lines(&self) -> Vec<String> {
        let unknown = self.unknown.iter().map(|target| format!("unknown: {target}"));
        let not_built = self.not_built.iter().map(|file| format!("not built: {file}"));
        unknown.chain(not_built).map(|line| line.replace('\n', " ")).collect()
    }
}

impl Outcome for Written {
    fn text(&self, _shown: Shown) -> String {
        let Written { directory, files, changed, removed, .. } = self;
        let files = counted(files.len(), "build");
        lines(vec![format!("{directory} has {files}: {changed} written, {} removed", removed.len())])
    }

    fn said(&self, _output: &OutputArgs) -> String {
        lines(self.lines())
    }

    fn stopped(&self) -> Vec<&Failure> {
        self.stopped.iter().collect()
    }

    fn status(&self) -> u8 {
        u8::from(self.fails)
    }
}
