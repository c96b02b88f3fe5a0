//! `build --output DIR`: all that is deployed, a file for each build. The program writes and deletes only what the list in
//! DIR names, and follows no link below DIR.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::Serialize;

use super::BuildArgs;
use crate::build::builds::{Builds, Wanted};
use crate::build::choice::{Choice, is_meant, unknown};
use crate::build::deployed;
use crate::build::subject::Subject;
use crate::commands::localize::KustomizeArgs;
use crate::commands::messages::{counted, lines};
use crate::commands::output::{Done, Outcome, OutputArgs, Shown};
use crate::fetch::Progress;
use crate::git::LocalRepo;
use crate::message::failure::{Failure, Failures, Result};
use crate::message::finding::{Rule, Severity};
use crate::message::redact::visible;
use crate::os::parallel::processors;
use crate::targets::Target;
use crate::targets::affected::Status;
use crate::targets::affected::changes::Changes;
use crate::tree::path;
use crate::workspace::{Files, Workspace, commit, from_lock, from_top, merge_base, repository_offline};

/// The files that were written, a line each.
const LIST: &str = ".built";

/// What is not in the directory, and why, a line each.
const UNKNOWN: &str = ".unknown";

/// What is to be built, each with its file.
#[derive(Default)]
struct Chosen {
    builds: BTreeMap<String, Wanted>,
    /// What is deployed, and not known.
    unknown: Vec<String>,
}

/// What a directory holds now.
#[derive(Debug, Default, Serialize)]
struct Written {
    directory: String,
    /// The files, from there.
    files: BTreeSet<String>,
    /// Those of them that are new, or something else than before.
    changed: usize,
    /// The files that were deleted.
    removed: Vec<String>,
    /// What is deployed, and not known, with the reason.
    unknown: Vec<String>,
    /// What could not be built, with the reason.
    not_built: Vec<String>,
    #[serde(skip)]
    fails: bool,
}

/// Builds all that is asked for.
pub(super) fn write(args: &BuildArgs, workspace: &Workspace, directory: &Path, output: &OutputArgs) -> Done {
    let before = listed(directory)?;
    let repo = workspace.repo().map_or_else(repository_offline, |repo| Ok(repo.clone()))?;
    let Chosen { builds: chosen, unknown } = match &args.base {
        Some(base) => changed(args, workspace, &repo, base)?,
        None => all(args, workspace, &repo)?,
    };
    let (names, subjects): (Vec<String>, Vec<Wanted>) = chosen.into_iter().unzip();
    let mut fetcher = from_lock(workspace.repo(), workspace, args.offline, output.quiet)?;
    let KustomizeArgs { kustomize, build_arg } = &args.with;
    let builds = Builds::of(workspace, &subjects, &mut fetcher, kustomize.as_deref(), build_arg)?;
    let progress = Progress::new("building", output.quiet);
    let built = progress.each(processors(), &names, String::clone, |number, _| builds.bytes(number));
    let level = workspace.config.level(Rule::UnknownTarget, Severity::Warning);
    let mut written = Written { directory: directory.display().to_string(), unknown, ..Written::default() };
    for (name, built) in names.into_iter().zip(built) {
        match built {
            Ok(bytes) => {
                written.changed += usize::from(put(directory, &name, &bytes)?);
                written.files.insert(name);
            }
            Err(failures) => {
                let reason = failures.0.first().map_or(String::new(), ToString::to_string);
                written.not_built.push(format!("{name}: {reason}"));
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

/// Returns every target, and every root that no other one names and no target builds; of them what is meant.
fn all(args: &BuildArgs, workspace: &Workspace, repo: &Rc<LocalRepo>) -> Result<Chosen, Failures> {
    let (explored, found) = deployed::find(repo, workspace.survey())?;
    let (tree, graph, config) = (&workspace.tree, &explored.graph, &workspace.config);
    let words = args.what.iter().map(|word| Ok((word.as_str(), from_top(repo, &**tree, word).ok())));
    let words = words.collect::<Result<Vec<(&str, Option<String>)>>>()?;
    let starts = config.starting_points(&**tree, &[], &tree.kustomizations()?, found.roots())?;
    let referrers = graph.referrers();
    let is_top = |root: &str| graph.user_root(root).is_some_and(|id| referrers[id.0].is_empty());
    let is_below = |place: &str| {
        let is_it = |named: &Option<String>| named.as_ref().is_some_and(|named| path::is_in(place, named));
        words.is_empty() || words.iter().any(|(_, named)| is_it(named))
    };
    let is_target = |target: &Target| {
        words.iter().any(|(word, _)| is_meant(target, word)) || target.here().is_some_and(|here| is_below(&here.path))
    };
    let is_known = |(word, named): &&(&str, Option<String>)| {
        let is_there = |place: &str| named.as_ref().is_some_and(|named| path::is_in(place, named));
        let is_it = |target: &Target| is_meant(target, word) || target.here().is_some_and(|here| is_there(&here.path));
        starts.iter().any(|root| is_there(root)) || found.targets.iter().any(is_it)
    };
    if let Some((word, _)) = words.iter().find(|word| !is_known(word)) {
        return Err(unknown(&found.targets, word).into());
    }
    let targets: Vec<&Target> = found.targets.iter().filter(|target| is_target(target)).collect();
    let mut chosen = Chosen::of(&targets, |target| Ok(Some(Subject::deployed(workspace, target)?)));
    let there = targets.iter().filter_map(|target| Some((target, target.here()?)));
    let built: BTreeSet<&str> = there.flat_map(|(target, here)| target.roots(here)).collect();
    let is_named = |root: &str| words.iter().any(|(_, named)| named.as_deref() == Some(root));
    let roots = starts
        .iter()
        .filter(|root| is_below(root) && (is_top(root) || is_named(root)) && !built.contains(root.as_str()));
    chosen.builds.extend(roots.map(|root| (root_file(root), Ok(Some(Subject::root(workspace, root))))));
    let unread = found.unread.iter().filter(|_| words.is_empty());
    chosen.unknown.extend(unread.map(|one| format!("{}: {}", one.place(), visible(&one.message))));
    Ok(chosen)
}

/// Returns what a change affects.
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
    chosen.unknown.extend(choices.unbuilt.iter().map(|target| format!("{}: it may be another one", target.by())));
    chosen.unknown.extend(choices.unread.iter().map(|one| format!("{}: {}", one.place(), visible(&one.message))));
    Ok(chosen)
}

impl Chosen {
    /// Takes targets: what is in another repository is nothing of this one.
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

/// Returns the file of a target; `apart` sets it apart from others of its name.
fn target_file(target: &Target, apart: &str) -> String {
    let engine = target.engine.name().to_ascii_lowercase().replace(' ', "");
    let object = &target.object;
    let parts = [&*engine, &object.namespace, &format!("{}{apart}", object.name)];
    let parts = parts.iter().filter(|part| !part.is_empty()).map(|part| plain(part));
    format!("{}.yaml", parts.collect::<Vec<_>>().join("/"))
}

/// Returns a text as the name of a file: another one for each.
fn plain(text: &str) -> String {
    let is_kept =
        |at: usize, byte: u8| byte.is_ascii_alphanumeric() || b"-_@".contains(&byte) || byte == b'.' && at > 0;
    let byte = |(at, byte): (usize, u8)| match byte {
        byte if is_kept(at, byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().enumerate().map(byte).collect()
}

/// Returns whether that could be the name of a file.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && plain(&name.replace('%', "-")) == name.replace('%', "-")
}

/// Returns the file of a root.
fn root_file(directory: &str) -> String {
    match directory {
        "" | "." => "roots.yaml".to_owned(),
        directory => format!("roots/{}.yaml", directory.split('/').map(plain).collect::<Vec<_>>().join("/")),
    }
}

fn text<'a>(lines: impl IntoIterator<Item = &'a String>) -> String {
    lines.into_iter().map(|line| format!("{line}\n")).collect()
}

/// Returns the files that a directory has from an earlier run. One that is not empty and has none is somebody else's.
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

/// Returns where a file is. Nothing on the way from the directory may be a link.
fn inside(directory: &Path, name: &str) -> Result<PathBuf> {
    let mut place = directory.to_owned();
    for part in name.split('/') {
        place.push(part);
        if fs::symlink_metadata(&place).is_ok_and(|entry| entry.is_symlink()) {
            return Err(Failure::new(format!("`{}` is a link", place.display())).hint("remove it"));
        }
    }
    Ok(place)
}

/// Writes a file, unless it is as it must be; returns whether it did.
fn put(directory: &Path, name: &str, bytes: &[u8]) -> Result<bool> {
    let place = inside(directory, name)?;
    if fs::read(&place).is_ok_and(|there| there == bytes) {
        return Ok(false);
    }
    let parent = place.parent().unwrap_or(directory);
    let failed = |error| Failure::new(format!("could not write `{}`: {error}", place.display()));
    fs::create_dir_all(parent).map_err(failed)?;
    fs::write(&place, bytes).map_err(failed)?;
    Ok(true)
}

/// Deletes a file and the directories that are empty then; returns whether it was there.
fn remove(directory: &Path, name: &str) -> Result<bool> {
    let place = inside(directory, name)?;
    match fs::remove_file(&place) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        removed => removed.map_err(|error| Failure::new(format!("could not delete `{}`: {error}", place.display())))?,
    }
    for above in path::and_above(path::parent(name)).filter(|above| !above.is_empty()) {
        if fs::remove_dir(directory.join(above)).is_err() {
            break;
        }
    }
    Ok(true)
}

impl Written {
    /// Returns what is not there, a line each.
    fn lines(&self) -> Vec<String> {
        let unknown = self.unknown.iter().map(|one| format!("unknown: {one}"));
        let not_built = self.not_built.iter().map(|one| format!("not built: {one}"));
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

    fn status(&self) -> u8 {
        u8::from(self.fails)
    }
}
