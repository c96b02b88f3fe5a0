//! `diff`: shows how a change affects deployments. `schema.json` describes each field of the JSON.

mod html;
mod human;
mod markdown;
mod summary;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::rc::Rc;

use clap::{Args, ValueHint};
use serde::Serialize;

use super::affected::unknown_lines;
use super::messages::{self, counted, cut, fitting, grouped};
use super::output::{Done, Format, Json as _, Outcome, OutputArgs, Shown};
use super::verify::names_both;
use crate::build::builds::{Builds, Wanted};
use crate::build::choice::{Choice, Choices, Comparison, group_sources};
use crate::build::compare::{self, ObjectChange};
use crate::build::consequences::{BuildDiff, Consequence, Needs, add_needs, consequences, namespace, rank};
use crate::build::parts::{BuiltParts, parts};
use crate::build::program::Programs;
use crate::build::rendered::{ProgramOptions, append};
use crate::destination::message::moves;
use crate::fetch::{Fetcher, Move, Progress};
use crate::git::LocalRepo;
use crate::graph::inputs::BuildInput;
use crate::localize::NowRemote;
use crate::message::failure::{Failure, FailureKind, Failures, Result, command, short, shown};
use crate::message::redact::{inert, visible};
use crate::os::parallel::processors;
use crate::record::Lock;
use crate::reference::Upstream;
use crate::targets::affected::changes::Changes;
use crate::targets::affected::{Cause, DiffStatus, Sides};
use crate::targets::{Target, Unread, stopped};
use crate::tree::path;
use crate::workspace::{Workspace, fetcher_of, from_top, repository_offline};
use summary::{ImageMove, Moved};

/// Arguments of `diff`.
#[derive(Debug, Clone, Args)]
pub(super) struct DiffArgs {
    /// The commit to compare with, by its merge base [default: the upstream of this branch, else the default branch of
    /// `origin`, else the commit before]; then what alone is compared: directories, or targets by FILE:LINE, NAME or
    /// NAMESPACE/NAME
    #[arg(value_name = "BASE] [PATH|TARGET", value_hint = ValueHint::AnyPath)]
    words: Vec<String>,

    /// Read a commit [default: the working tree]
    #[arg(long, value_name = "REV")]
    rev: Option<String>,

    /// Only name the objects
    #[arg(long)]
    stat: bool,

    /// Exit with 1 if anything differs, or could not be built
    #[arg(long)]
    exit_code: bool,

    /// Use only what lock, branch and cache hold
    #[arg(long)]
    offline: bool,

    /// The kustomize that builds [default: the environment variable KUSTOMIZE, else `kustomize` on PATH, else
    /// `kubectl`]
    ///
    /// Given twice, one tree is built by both: what differs is what the second one deploys otherwise.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    kustomize: Vec<PathBuf>,

    /// The helm that renders charts [default: `helm` on PATH]; also twice, as `--kustomize`
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    helm: Vec<PathBuf>,

    /// Pass an extra argument to `kustomize build`, for example `--build-arg=--enable-helm`; may be given several times
    #[arg(long, value_name = "ARG", allow_hyphen_values = true, hide_short_help = true)]
    build_arg: Vec<String>,
}

/// The outcome of `diff`.
#[derive(Debug, Default, Serialize)]
pub(super) struct Diff {
    /// The base commit; empty if files of the working tree were compared.
    #[serde(skip_serializing_if = "String::is_empty")]
    since: String,
    /// The commit of the new side; `None` for the working tree.
    commit: Option<String>,
    /// The programs that built one tree, before and after. `None` if two trees were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    programs: Option<Sides<String>>,
    /// How many builds the change can touch.
    affected: usize,
    /// Those that differ, or that could not be built.
    builds: Vec<Compared>,
    /// The consequences of all differences.
    consequences: Vec<Consequence>,
    /// The targets whose objects are shown as written, because the build that makes them is unknown.
    unbuilt: Vec<Target>,
    /// The files that could not be read, so that their deployments are unknown.
    unread: Vec<Unread>,
    /// Whether one of these files differs.
    #[serde(skip)]
    is_unread_changed: bool,
    /// The references that were localized before, and stay remote now.
    now_remote: Vec<NowRemote>,
    /// Whether the base has no lock, and was built with the lock of the change.
    takes_lock: bool,
    /// The images that run in another version.
    images: Vec<ImageMove>,
    /// The upstreams that no lock contains, built in their current version.
    unlocked: BTreeSet<Upstream>,
    /// The effects of each changed lock entry.
    moved: Vec<Moved>,
    /// The name of the repository.
    #[serde(skip)]
    repository: String,
    /// Whether the objects are only named.
    #[serde(skip)]
    is_short: bool,
    /// Whether a difference is a failure.
    #[serde(skip)]
    fails: bool,
    #[serde(skip)]
    pager: Option<String>,
}

/// What is compared as one, before and after: a target with the outputs of all its sources, or a root.
#[derive(Debug, Default, Serialize)]
struct Compared {
    /// The directory of a kustomization root, or the name of a target.
    name: String,
    /// The build that made the object of the target; `None` if it is as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    built_by: Option<String>,
    /// The old name, if all objects are equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    was: Option<String>,
    status: DiffStatus,
    /// One of the causes. `None` if only the programs differ.
    #[serde(flatten)]
    cause: Option<Cause>,
    /// The cause in one line.
    because: String,
    objects: Vec<ObjectChange>,
    /// Why a side was not built.
    not_built: Sides<Vec<Failure>>,
    #[serde(skip)]
    consequences: Vec<Consequence>,
    #[serde(skip)]
    is_target: bool,
    /// The name of the set that generates the target.
    #[serde(skip)]
    set: Option<String>,
    /// The changed entries of the lock that its build reads.
    #[serde(skip)]
    moved: BTreeSet<Upstream>,
}

impl DiffArgs {
    /// Compares the deployments of a change with its base, or the outputs of two programs if two are named.
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        let repo = repository_offline()?;
        let new = Workspace::to_read(repo.clone(), self.rev.as_deref())?;
        let mut diff = if self.kustomize.len().max(self.helm.len()) > 1 {
            self.between_programs(&repo, new, output.quiet)?
        } else {
            self.since_base(&repo, new, output.quiet)?
        };
        (diff.repository, diff.is_short, diff.fails) = (repo.name()?, self.stat, self.exit_code);
        if output.format == Format::Human {
            diff.pager = repo.pager()?;
        }
        Ok(Box::new(diff))
    }

    /// Compares `new` with its base. Only builds are run that the changes between them can affect.
    fn since_base(&self, repo: &Rc<LocalRepo>, new: Workspace, quiet: bool) -> Result<Diff, Failures> {
        let (base, only) = self.base(repo, &new)?;
        let new = new.into_checkout();
        let comparison = Comparison::since(repo, &base, &new)?;
        let choices = comparison.choices(repo, &new, only)?;
        let Comparison { base, old, changes } = comparison;
        let sides = Sides { old: &old, new: &new };
        let diff = Diff::between(repo, sides, &changes, choices, self.build_options(quiet))?;
        Ok(Diff { since: base.commit, ..diff })
    }

    /// Compares the outputs of two programs for one tree.
    fn between_programs(&self, repo: &Rc<LocalRepo>, tree: Workspace, quiet: bool) -> Result<Diff, Failures> {
        if self.kustomize.len().max(self.helm.len()) > 2 {
            return Err(Failure::new("at most two programs are compared")
                .hint("give `--kustomize` or `--helm` twice")
                .into());
        }
        let mut tree = tree.into_checkout();
        // The configuration requires one version of kustomize, but one of the two programs is another version.
        tree.config.kustomize = None;
        // A word that is also a directory with kustomizations selects their builds.
        if let Some(word) = self.words.first()
            && repo.commit(word)?.is_some()
            && !has_kustomizations(repo, &tree, word)?
        {
            return Err(Failure::new(format!("`{}` is a commit, and both programs build one tree", shown(word)))
                .hint(format!("to build its tree: {}", command("--rev", [word])))
                .into());
        }
        let choices = Choices::of_workspace(repo, &tree, &self.words)?;
        // Both sides are one tree, so no file differs.
        let sides = Sides { old: &tree, new: &tree };
        let changes = Changes::of(sides.map(|side| side.tree.clone()), BTreeSet::new())?;
        Diff::between(repo, sides, &changes, choices, self.build_options(quiet))
    }

    /// The programs that build each side: the first and the last that is named. With one name, these are the same.
    fn build_options(&self, quiet: bool) -> Sides<ProgramOptions<'_>> {
        let named =
            Sides { old: [self.kustomize.first(), self.helm.first()], new: [self.kustomize.last(), self.helm.last()] };
        named.map(|programs| {
            let [kustomize, helm] = programs.map(|path| path.map(PathBuf::as_path));
            ProgramOptions {
                programs: Programs { kustomize, helm, arguments: &self.build_arg },
                offline: self.offline,
                quiet,
            }
        })
    }

    /// The base, and the words that select builds: the first word is a revision, if there is a commit of that name.
    fn base(&self, repo: &LocalRepo, new: &Workspace) -> Result<(String, &[String])> {
        let named = self.words.first();
        if let Some(base) = named
            && let Some(id) = repo.commit(base)?
        {
            // A branch that somebody makes later must not change in silence what a directory of its name means.
            if has_kustomizations(repo, new, base)? {
                return Err(names_both(base, &id, "a directory with kustomizations"));
            }
            return Ok((base.clone(), &self.words[1..]));
        }
        // Otherwise the base is the branch that this one follows, or else the default branch, or else the commit
        // before.
        let before = format!("{}~", self.rev.as_deref().unwrap_or("HEAD"));
        for base in ["@{upstream}", "refs/remotes/origin/HEAD", &before] {
            if repo.commit(base)?.is_some() {
                return Ok((base.to_owned(), &self.words));
            }
        }
        let hint = match named {
            Some(named) if !is_path(repo, new, named)? => {
                format!("fetch it first: {}", command("git fetch origin", [named]))
            }
            _ => format!("name one: {}", command("git kustomize-localize diff BASE", named)),
        };
        Err(Failure::new("no commit to compare with").hint(hint))
    }
}

/// Whether a word names a file or a directory, from the current directory.
fn is_path(repo: &LocalRepo, workspace: &Workspace, word: &str) -> Result<bool> {
    let Ok(path) = from_top(repo, &*workspace.tree, word) else { return Ok(false) };
    Ok(workspace.tree.entry(&path)?.is_some())
}

/// Whether a word names a directory with kustomizations, from the current directory.
fn has_kustomizations(repo: &LocalRepo, workspace: &Workspace, word: &str) -> Result<bool> {
    let Ok(directory) = from_top(repo, &*workspace.tree, word) else { return Ok(false) };
    Ok(workspace.tree.kustomizations()?.iter().any(|file| path::is_in(file, &directory)))
}

impl Diff {
    /// Builds the roots and targets that may differ between two sides, and compares the outputs. Each side is built
    /// with its own lock, or with that of the new side if it has none.
    pub(super) fn between(
        repo: &Rc<LocalRepo>,
        workspaces: Sides<&Workspace>,
        changes: &Changes,
        Choices { builds: chosen, unbuilt, unread, needs, differing, .. }: Choices,
        how: Sides<ProgramOptions<'_>>,
    ) -> Result<Diff, Failures> {
        let Sides { old, new } = workspaces;
        let quiet = how.new.quiet;
        let commit = new.files.commit().map(|id| id.commit.clone());
        // Without a lock on both sides nothing was localized before.
        let now_remote = match (&old.lock, &new.lock) {
            (Some(was), Some(is)) => NowRemote::between(was, is, &new.config),
            _ => Vec::new(),
        };
        let is_locked = |source: &&Upstream| new.lock.as_ref().is_some_and(|lock| lock.remotes.contains_key(*source));
        let changed_entries: Vec<&Upstream> = changes.sources.iter().filter(is_locked).collect();
        let unread_files: Vec<BuildInput> = unread.iter().map(|unread| BuildInput::At(unread.file.clone())).collect();
        let is_unread_changed = changes.cause_in(&unread_files)?.is_some();
        let diff = Diff { commit, unbuilt, unread, is_unread_changed, now_remote, ..Diff::default() };
        // Without builds nothing is fetched, and no program is needed.
        if chosen.is_empty() {
            return Ok(Diff { moved: Moved::of(&changed_entries, &[]), ..diff });
        }
        let mut builders = SideBuilder::of_sides(repo, workspaces, how)?;
        let subjects = chosen.iter().map(|choice| choice.subjects(workspaces)).map(|side| (side.old, side.new));
        let (old_subjects, new_subjects) = subjects.unzip();
        let mut build = |subjects: Sides<Vec<Wanted>>| -> Result<Sides<Builds>> {
            Ok(Sides { old: builders.old.build(&subjects.old)?, new: builders.new.build(&subjects.new)? })
        };
        let builds = build(Sides { old: old_subjects, new: new_subjects })?;
        // If both sides are one tree, its programs are compared.
        let programs = std::ptr::eq(old, new).then(|| builds.as_ref().map(Builds::programs));
        let parts = |failed: &[&Choice]| parts(failed, workspaces, (&differing, changes), build);
        let mut all = Compared::all(&chosen, needs, &builds, parts, quiet)?;
        let causes = all.iter().filter_map(|build| match &build.cause {
            Some(Cause::Remote(source)) => Some(source.clone()),
            Some(Cause::Path(_)) | None => None,
        });
        let move_lines = move_lines(workspaces, &builders.new.fetcher, &causes.collect());
        for build in &mut all {
            build.because = build.cause_text(&move_lines, programs.as_ref());
        }
        // Builds without a difference are counted, and not shown.
        let (affected, moved) = (all.len(), Moved::of(&changed_entries, &all));
        let all = all.into_iter().filter(|build| build.has_news() || build.is_unknown());
        let mut builds = renamed(all.collect());
        // The worst comes first, in every format.
        builds.sort_by_key(|build: &Compared| build.consequences.iter().map(rank).min().unwrap_or(usize::MAX));
        let images = ImageMove::of(&builds);
        let mut consequences: Vec<Consequence> =
            builds.iter().flat_map(|build: &Compared| build.consequences.clone()).collect();
        consequences.sort_by_key(rank);
        let takes_lock = old.lock.is_none() && new.lock.is_some();
        let unlocked = builders.iter().flat_map(|builder| builder.fetcher.unlocked()).collect();
        Ok(Diff { affected, builds, consequences, images, programs, takes_lock, unlocked, moved, ..diff })
    }

    /// The builds in groups that are shown once: those that differ alike, or that could not be built for the same
    /// reason. Builds of which something stays remote are in it only with `verbose`, because nothing is known about
    /// them.
    fn groups(&self, verbose: bool) -> Vec<Vec<&Compared>> {
        grouped(self.builds.iter().filter(|build| verbose || !build.is_skipped_for_remote()), |build| {
            let consequences = build
                .consequences
                .iter()
                .map(|consequence| (consequence.id, &consequence.text, consequence.object != build.name));
            let objects: Vec<_> = build.objects.iter().map(ObjectChange::alike).collect();
            // A renamed build is shown with its old name, so it is alone in its group.
            (objects, &build.not_built, &build.was, consequences.collect::<Vec<_>>())
        })
    }
}

/// Builds on one side, with its lock and its programs.
struct SideBuilder<'a> {
    workspace: &'a Workspace,
    lock: Option<&'a Lock>,
    fetcher: Fetcher,
    programs: Programs<'a>,
}

impl<'a> SideBuilder<'a> {
    /// Sets up both sides. A side without a lock takes that of the new side. Only such a side may resolve references
    /// that this lock lacks.
    fn of_sides(
        repo: &Rc<LocalRepo>,
        workspaces: Sides<&'a Workspace>,
        how: Sides<ProgramOptions<'a>>,
    ) -> Result<Sides<SideBuilder<'a>>> {
        workspaces.zip(how).try_map(|(workspace, how)| {
            let lock = workspace.lock.as_ref().or(workspaces.new.lock.as_ref());
            let fetcher = fetcher_of(lock, Some(repo), &workspace.config, how.offline, how.quiet)?;
            let fetcher = fetcher.locked(workspace.lock.is_some());
            Ok(SideBuilder { workspace, lock: lock.map(|lock| &**lock), fetcher, programs: how.programs })
        })
    }

    fn build(&mut self, subjects: &[Wanted]) -> Result<Builds> {
        Builds::of_workspace(self.workspace, self.lock, subjects, &mut self.fetcher, self.programs)
    }
}

/// A source of a target, or a root: the number of its build.
struct Source {
    number: usize,
    /// Whether it is the same on both sides: only other sources of its target differ.
    is_same: bool,
}

/// How the outputs of all sources of a target, or of a root, differ.
#[derive(Default)]
struct Outputs {
    objects: Vec<ObjectChange>,
    /// The needs of the objects that stay.
    needed: Needs,
    /// Why a side was not built.
    not_built: Sides<Vec<Failure>>,
    /// The numbers of the sources that were not built on both sides.
    failed: Vec<usize>,
    /// The outputs of the others.
    built: Sides<Vec<u8>>,
}

impl Outputs {
    /// Builds some sources on both sides, and compares the outputs. `namespaces` are those of objects that name none.
    fn of(builds: &Sides<Builds>, sources: &[Source], namespaces: &Sides<String>) -> Outputs {
        let mut all = Outputs::default();
        let namespaces = namespaces.as_ref().map(String::as_str);
        for source in sources {
            all.add(builds, source, namespaces);
        }
        let outputs = all.built.as_ref().map(Vec::as_slice);
        all.objects = compare::changes(outputs, namespaces);
        // The needs of the objects that stay matter only if an object goes.
        if all.objects.iter().any(|object| object.change == DiffStatus::Removed) {
            add_needs(outputs.new, &mut all.needed);
        }
        // Outputs are large, and only [`Outputs::compare_with`] needs them again.
        if all.failed.is_empty() {
            all.built = Sides::default();
        }
        all
    }

    /// Builds a source on both sides, and adds the outputs, or why it was not built.
    fn add(&mut self, builds: &Sides<Builds>, Source { number, is_same }: &Source, namespaces: Sides<&str>) {
        match builds.as_ref().map(|side| side.build(*number)) {
            Sides { old: Ok(before), new: Ok(after) } => {
                let outputs = Sides { old: before.stdout, new: after.stdout };
                // A source that the change does not touch gets the same answer of the cluster on both sides.
                let why = builds.iter().find_map(|side| side.depends_on_cluster(*number)).filter(|_| !is_same);
                // Equal here, but a cluster may answer a chart in another way.
                if let Some(why) = why
                    && compare::changes(outputs.as_ref().map(Vec::as_slice), namespaces).is_empty()
                {
                    self.fail(Sides { old: vec![Failure::new(why)], new: vec![Failure::new(why)] });
                }
                self.append(outputs);
            }
            // It fails on both sides for the same reason, so it hides no difference.
            _ if *is_same => {}
            failed => {
                self.failed.push(*number);
                let mut failures = failed.map(|result| result.err().map_or(Vec::new(), |why| Failures::from(why).0));
                // The lock of the base cannot change any more, so no hint asks for that.
                let unlocked = failures.old.iter_mut().filter(|failure| failure.kind == FailureKind::NotLocked);
                unlocked.for_each(|failure| failure.hints.clear());
                self.fail(failures);
            }
        }
    }

    /// Adds the outputs of a source to those that are compared.
    fn append(&mut self, more: Sides<Vec<u8>>) {
        append(&mut self.built.old, &more.old);
        append(&mut self.built.new, &more.new);
    }

    /// Adds why a side of a source was not built.
    fn fail(&mut self, Sides { old, new }: Sides<Vec<Failure>>) {
        self.not_built.old.extend(old);
        self.not_built.new.extend(new);
    }

    /// Compares again after sources failed: the outputs of those that were built, together with `parts`, the parts of
    /// the others that could be built. Only objects are kept that surely differ between the whole builds. If a source
    /// has no parts on a side, objects are also kept that differed without it.
    fn compare_with(&mut self, parts: &[BuiltParts], namespaces: Sides<&str>) {
        for parts in parts {
            self.append(parts.outputs.as_ref().map(|output| output.clone().into_bytes()));
        }
        let mut objects = compare::changes(self.built.as_ref().map(Vec::as_slice), namespaces);
        objects.retain(|object| {
            let is_of_built = self.objects.iter().any(|built| built.id == object.id && built.change == object.change);
            // The unknown rest of a failed source may have the object on the other side. A side without parts, such as
            // a chart or another repository, would hide all new or removed objects: then the first comparison decides.
            parts.iter().all(|parts| parts.proves(object.change) || parts.is_opaque && is_of_built)
        });
        self.objects = objects;
    }
}

/// Whether something was not built because a reference stays remote.
fn is_skipped_for_remote(failure: &Failure) -> bool {
    failure.kind == FailureKind::Left
}

/// Whether a limit stopped a build, which the end of the report tells.
fn is_stopped(failure: &Failure) -> bool {
    failure.kind == FailureKind::Stopped
}

/// The old and the new target of the sources of one application: those of the first source that has one. `None` for a
/// root.
fn of_sources<'a>(sources: &[&'a Choice]) -> Sides<Option<&'a Target>> {
    let targets = sources.iter().map(|choice| choice.targets());
    targets.fold(Sides::default(), |all, more| all.zip(more).map(|(first, more)| first.or(more)))
}

impl Compared {
    /// Builds both sides of all choices, and compares them. `parts` builds the parts of those that fail as a whole.
    fn all(
        chosen: &[Choice],
        mut needed: Needs,
        builds: &Sides<Builds>,
        parts: impl FnOnce(&[&Choice]) -> Result<Vec<BuiltParts>>,
        quiet: bool,
    ) -> Result<Vec<Compared>> {
        let groups = group_sources(chosen.iter().map(Choice::targets));
        let choices: Vec<Vec<&Choice>> =
            groups.iter().map(|sources| sources.iter().map(|number| &chosen[*number]).collect()).collect();
        let targets: Vec<_> = choices.iter().map(|sources| of_sources(sources)).collect();
        let namespaces: Vec<_> = targets.iter().map(|target| target.map(namespace)).collect();
        let mut all: Vec<Compared> = choices.iter().map(|sources| Compared::of(sources)).collect();
        // If the change touches a target, the sources of it without a cause are those that it does not touch. If
        // nothing has a cause, the programs differ, and with them any source.
        let sources = groups.into_iter().zip(&all).map(|(numbers, Compared { cause, .. })| {
            let sources = numbers.into_iter().map(|number| (number, cause.is_some() && chosen[number].cause.is_none()));
            sources.map(|(number, is_same)| Source { number, is_same }).collect()
        });
        let sources: Vec<Vec<Source>> = sources.collect();
        // The outputs are large, so they are compared in parallel.
        let names: Vec<String> = all.iter().map(|compared| compared.name.clone()).collect();
        let mut built = Progress::new("building", quiet).each(processors(), &names, String::clone, |number, _| {
            Outputs::of(builds, &sources[number], &namespaces[number])
        });
        // A build that fails as a whole is compared in parts.
        let failed: Vec<&Choice> =
            built.iter().flat_map(|outputs| &outputs.failed).map(|number| &chosen[*number]).collect();
        if !failed.is_empty() {
            let mut parts = parts(&failed)?.into_iter();
            let built = built.iter_mut().zip(&namespaces).filter(|(outputs, _)| !outputs.failed.is_empty());
            for (outputs, namespaces) in built {
                let parts: Vec<BuiltParts> = parts.by_ref().take(outputs.failed.len()).collect();
                outputs.compare_with(&parts, namespaces.as_ref().map(String::as_str));
            }
        }
        // The consequences of one build depend on all others: an object may move between them.
        let mut diffs = Vec::new();
        for ((((name, target), namespaces), outputs), compared) in
            names.iter().zip(targets).zip(namespaces).zip(built).zip(&mut all)
        {
            let Outputs { objects, needed: more, not_built, .. } = outputs;
            diffs.push(BuildDiff { name, target, objects, is_built: not_built.iter().all(Vec::is_empty), namespaces });
            compared.not_built = not_built;
            needed.extend(more);
        }
        let consequences_of_builds = consequences(&mut diffs, &needed);
        for ((compared, diff), consequences) in all.iter_mut().zip(diffs).zip(consequences_of_builds) {
            (compared.objects, compared.consequences) = (diff.objects, consequences);
        }
        Ok(all)
    }

    /// A comparison before anything is built: of all sources of an application of Argo CD, each with its own build
    /// (see [`group_sources`]), or of one other target or root.
    fn of(sources: &[&Choice]) -> Compared {
        // The name is that of a source that remains, if there is one.
        let stays = |choice: &&&Choice| choice.status != DiffStatus::Removed;
        let Some(first) = sources.iter().find(stays).or(sources.first()) else { return Compared::default() };
        Compared {
            name: first.title(),
            built_by: first.built_by(),
            status: DiffStatus::of_all(sources.iter().map(|choice| choice.status)),
            cause: sources.iter().find_map(|choice| choice.cause.clone()),
            is_target: sources.iter().any(|choice| choice.targets() != Sides::default()),
            set: first.set(),
            moved: sources.iter().flat_map(|choice| choice.moved.clone()).collect(),
            ..Compared::default()
        }
    }

    /// The cause in one line: a file, an upstream with the line of its change, or else the programs that differ.
    fn cause_text(&self, move_lines: &BTreeMap<Upstream, String>, programs: Option<&Sides<String>>) -> String {
        match (&self.cause, programs) {
            (Some(Cause::Path(file)), _) => path::shown(file).to_owned(),
            (Some(Cause::Remote(source)), _) => move_lines.get(source).cloned().unwrap_or_else(|| source.to_string()),
            (None, Some(Sides { old, new })) => format!("{old} -> {new}"),
            (None, None) => String::new(),
        }
    }

    /// Whether anything is known to differ, so that the build is worth showing.
    fn has_news(&self) -> bool {
        !self.objects.is_empty() || !self.consequences.is_empty()
    }

    /// The reason beside the name of a build, in a line: its old name, its status, or the cause of the difference.
    fn why(&self) -> String {
        match (self.status, &self.was) {
            (_, Some(was)) => format!("was {was}, all objects are equal"),
            (DiffStatus::Added | DiffStatus::Removed, _) => self.status.name().to_owned(),
            (DiffStatus::Changed, _) => self.because.clone(),
        }
    }

    /// The name, or that of the set if nothing is known about its targets, and the cause: a line of limited length.
    fn title(&self) -> Title {
        const WIDTH: usize = 195;
        let set = self.set.as_ref().filter(|_| self.is_unknown() && !self.has_news());
        let name = cut(&visible(set.unwrap_or(&self.name)), 3 * WIDTH / 4);
        let why = cut(&visible(&self.why()), WIDTH - name.chars().count());
        Title { name, why, builds: 1 }
    }

    /// Whether a side could not be built.
    fn is_unknown(&self) -> bool {
        self.not_built.iter().any(|failures| !failures.is_empty())
    }

    /// Whether the new side requests something that no reference names.
    fn reaches_out(&self) -> bool {
        self.not_built.new.iter().any(|failure| failure.kind == FailureKind::UnreadReference)
    }

    /// Whether nothing is known about it because a reference stays remote.
    fn is_skipped_for_remote(&self) -> bool {
        self.is_unknown() && !self.has_news() && self.not_built.iter().flatten().all(is_skipped_for_remote)
    }

    /// The reasons why it was not built, one line each. If both sides fail for the same reasons, these are told once.
    fn unknown_lines(&self, verbose: bool) -> Vec<String> {
        let Sides { old: before, new: after } = &self.not_built;
        let lines = |side: &'static str, all: &[Failure]| {
            all.iter()
                .map(|failure: &Failure| fitting(&visible(&format!("not built{side}: {failure}")), 2, verbose))
                .collect::<Vec<_>>()
        };
        if before == after {
            return lines("", before);
        }
        [lines(" (old side)", before), lines(" (new side)", after)].concat()
    }

    /// The consequences of the differences of one object, to be shown with it; `None` for those of objects that are not
    /// shown.
    fn consequences(&self, object: Option<&str>) -> impl Iterator<Item = &Consequence> {
        self.consequences.iter().filter(move |consequence| match object {
            Some(object) => consequence.object == object,
            None => !(self.objects.iter().any(|object| object.id == consequence.object)),
        })
    }
}

/// The name of builds, and what happened to them.
struct Title {
    name: String,
    why: String,
    /// The number of builds that have both.
    builds: usize,
}

/// The titles of the builds of a group, each once. Builds with the same title, such as those of a set, are counted in
/// it.
fn titles(group: &[&Compared]) -> Vec<Title> {
    let mut all: Vec<Title> = Vec::new();
    for title in group.iter().map(|build| build.title()) {
        match all.iter_mut().find(|known| known.name == title.name && known.why == title.why) {
            Some(known) => known.builds += 1,
            None => all.push(title),
        }
    }
    for title in all.iter_mut().filter(|title| title.builds > 1) {
        title.name = format!("{} builds of {}", title.builds, title.name);
    }
    all
}

/// The number of last components that two names have in common.
fn in_common(old: &str, other: &str) -> usize {
    old.rsplit('/').zip(other.rsplit('/')).take_while(|(old, other)| old == other).count()
}

/// Merges a removed and an added build with the same objects into one renamed build.
fn renamed(mut all: Vec<Compared>) -> Vec<Compared> {
    let (mut merged, mut renamed) = (BTreeSet::new(), BTreeSet::new());
    for Sides { old, new } in equal_builds(&all) {
        if merged.contains(&old) || renamed.contains(&new) {
            continue;
        }
        merged.insert(old);
        renamed.insert(new);
        let mut consequences = std::mem::take(&mut all[old].consequences);
        // All objects move to the new name together, which `was` tells already. And only a target deploys: nothing
        // happens in a cluster because of a root.
        consequences.retain(|consequence| consequence.id != "moved-object" && all[new].is_target);
        all[new].was = Some(all[old].name.clone());
        all[new].objects.clear();
        all[new].consequences = consequences;
    }
    let mut numbers = 0..;
    all.retain(|_| numbers.next().is_some_and(|number| !merged.contains(&number)));
    all
}

/// The pairs of a removed and an added build with the same objects, by their positions in `all`. If several are equal,
/// those with the most similar endings of names come first: they belong together.
fn equal_builds(all: &[Compared]) -> Vec<Sides<usize>> {
    // Builds without objects would all be equal, and of a build that failed the objects are not all known.
    let of_status = |status: DiffStatus| {
        let builds = all.iter().enumerate().filter(move |(_, build)| build.status == status);
        builds.filter(|(_, build)| !build.objects.is_empty() && !build.is_unknown())
    };
    let mut removed: HashMap<_, Vec<usize>> = HashMap::new();
    for (old, build) in of_status(DiffStatus::Removed) {
        removed.entry(objects_of(build)).or_default().push(old);
    }
    let mut pairs = Vec::new();
    for (new, build) in of_status(DiffStatus::Added) {
        let equal = removed.get(&objects_of(build)).into_iter().flatten();
        pairs.extend(equal.map(|&old| Sides { old, new }));
    }
    pairs.sort_by_key(|pair| std::cmp::Reverse(in_common(&all[pair.old].name, &all[pair.new].name)));
    pairs
}

/// The objects of a build on the side that it has, which tell it from others.
fn objects_of(build: &Compared) -> (bool, Vec<(String, Option<serde_yaml::Value>)>) {
    let mut objects: Vec<_> = build
        .objects
        .iter()
        .map(|object: &ObjectChange| (object.id.clone(), object.values.iter().flatten().next().cloned()))
        .collect();
    objects.sort_by(|(left, _), (other, _)| left.cmp(other));
    (build.is_target, objects)
}

/// Lines about the changed upstreams, which tell why builds differ: the old and the new version, and for the
/// repositories in `asked` also the number of commits between them. An upstream that only one side locks has a line
/// only if it replaces another ref of the same repository.
fn move_lines(sides: Sides<&Workspace>, fetcher: &Fetcher, asked: &BTreeSet<Upstream>) -> BTreeMap<Upstream, String> {
    // A side without a lock pins nothing.
    let locks = sides.map(|side| side.lock.as_deref().cloned().unwrap_or_default());
    let changes = Lock::changes(&locks.old, &locks.new).into_iter().filter(|change| change.old != change.new);
    let changes = changes.filter_map(|change| {
        let move_line = move_line(&change.upstream, change.old?.hex(), change.new?.hex());
        Some((change.upstream, move_line))
    });
    let mut moved: BTreeMap<Upstream, String> = changes.collect();
    // Counting commits asks the network, so only upstreams that caused a difference are asked for.
    let mut moves = moves(&locks.old, &locks.new);
    moves.retain(|upstream_move| asked.contains(upstream_move.new.upstream));
    for (Move { old, new }, history) in moves.iter().zip(fetcher.histories(&moves)) {
        let count = history.filter(|history| history.is_forward).map(|history| counted(history.commits, "commit"));
        let count = count.map_or(String::new(), |count| format!(", {count}"));
        let move_line = match [old, new].map(|side| short(side.upstream.reference().unwrap_or("HEAD")).to_owned()) {
            [from, to] if from != to => format!("{}: {from} -> {to}", new.upstream.url()),
            _ => move_line(new.upstream, old.commit, new.commit),
        };
        moved.insert(new.upstream.clone(), move_line + &count);
    }
    moved
}

/// The old and the new digest of an upstream.
fn move_line(source: &Upstream, old: &str, new: &str) -> String {
    format!("{source}: {} -> {}", short(old), short(new))
}

impl Outcome for Diff {
    fn text(&self, shown: Shown) -> String {
        human::text(self, shown)
    }

    fn report(&self, output: &OutputArgs) -> String {
        inert(&match output.format {
            Format::Json => self.json(),
            Format::Markdown => self.markdown(),
            Format::Html => self.html(),
            _ => self.text(output.shown()),
        })
    }

    /// What is unknown, skipped, not locked or remote now, with hints; then the number of differing objects.
    fn stderr(&self, output: &OutputArgs) -> String {
        let failures = self.builds.iter().flat_map(|build| build.not_built.iter().flatten());
        let failures = failures.filter(|failure| !is_stopped(failure));
        let hints = messages::hints(&failures.collect::<Vec<_>>(), output.verbose);
        let warnings = self.lock_warnings(output.verbose).into_iter().map(|text| messages::warning(&text, None));
        let warnings: String = warnings.collect();
        let skipped = messages::lines(self.skipped_lines(output.verbose));
        let now_remote = messages::lines(self.now_remote.iter().map(NowRemote::line).collect());
        let unknown = unknown_lines(&self.unbuilt, &self.unread, output.verbose);
        let since = match &self.programs {
            Some(Sides { old, new }) => format!(" ({old} -> {new})"),
            None if self.since.is_empty() => String::new(),
            None => format!(" since {}", short(&self.since)),
        };
        format!("{unknown}{skipped}{warnings}{hints}{now_remote}{}\n", self.counts(&since))
    }

    fn stopped(&self) -> Vec<Failure> {
        let failures = self.builds.iter().flat_map(|build| {
            let failures = build.not_built.iter().flatten().filter(|failure| is_stopped(failure));
            failures.map(|failure| failure.clone().context(&build.name))
        });
        failures.chain(stopped(&self.unbuilt).cloned()).collect()
    }

    /// With `--exit-code` 1 if a build differs or is unknown, or a file differs that could not be read: an unread file
    /// that is the same must not fail every change. A build that requests something unnamed fails in any case.
    fn status(&self) -> u8 {
        let differs = !self.builds.is_empty() || self.is_unread_changed;
        u8::from(self.fails && differs || self.builds.iter().any(Compared::reaches_out))
    }

    fn pager(&self) -> Option<&str> {
        self.pager.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::markdown::tests::build;
    use super::*;

    #[test]
    fn equal_builds_are_renamed_each_to_the_nearest() {
        let of = |name: &str, status| Compared { status, ..build(name, &["+x\n"]) };
        let gone = |name| of(name, DiffStatus::Removed);
        let new = |name| of(name, DiffStatus::Added);
        let names = |all: Vec<Compared>| -> Vec<(String, String)> {
            renamed(all).into_iter().map(|build| (build.name.clone(), build.why())).collect()
        };
        let was = |name: &str, was: &str| (name.to_owned(), format!("was {was}, all objects are equal"));
        let twins = vec![new("new/a"), new("new/b"), gone("old/a"), gone("old/b")];
        assert_eq!(names(twins), [was("new/a", "old/a"), was("new/b", "old/b")]);
        // Whoever comes first takes none that is nearer to another.
        let more = vec![gone("x/a"), new("y/b"), new("y/a")];
        assert_eq!(names(more), [("y/b".to_owned(), "added".to_owned()), was("y/a", "x/a")]);
        let fewer = vec![gone("x/a"), gone("x/b"), new("y/b")];
        assert_eq!(names(fewer), [("x/a".to_owned(), "removed".to_owned()), was("y/b", "x/b")]);
    }
}
