//! `edited-copy`: a localized file that differs from its lock in bytes or mode, is missing, or was added.
//!
//! The rule looks at every lock of the tree: the lock at the top lists files of `localized-files` directories, and the
//! lock of a copy owns its whole directory.

use super::Context;
use crate::git::{Snapshot, branch_of};
use crate::message::failure::{Failure, command, pathspec, stage};
use crate::message::finding::{Finding, Rule};
use crate::record::history::PREFIX;
use crate::record::stored::{self, FileDifference};
use crate::record::{LOCK_NAME, Lock};
use crate::tree::{self, path};

/// Compares all localized files with the locks that list them.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (directory, lock) in context.locks {
        let differences = context.value_or_failure(stored::differences(context.tree, directory, lock));
        let differences = differences.unwrap_or_default();
        if differences.is_empty() {
            continue;
        }
        let recorded = RecordedFiles { context, directory, lock, source: source(context).filter(|_| lock.trailers) };
        findings.extend(differences.iter().map(|(path, difference)| {
            let failure = Failure::new(format!("`{path}` {difference}"));
            Finding::new(Rule::EditedCopy, path, recorded.with_hints(path, difference, failure))
        }));
    }
    findings
}

/// The files of one lock.
struct RecordedFiles<'a> {
    context: &'a Context<'a>,
    /// The directory of the lock.
    directory: &'a str,
    lock: &'a Lock,
    /// The source of the localized branch that is checked, if `branch` wrote the lock.
    source: Option<String>,
}

impl RecordedFiles<'_> {
    /// Adds to a failure how to restore the file, or the lock if that is what was edited.
    fn with_hints(&self, path: &str, difference: &FileDifference, failure: Failure) -> Failure {
        let absences = self.context.input.absences;
        match difference {
            // The file exists, but git does not have it.
            FileDifference::Missing if absences.is_some_and(|absences| absences.is_on_disk(path)) => {
                failure.hint(stage([path]))
            }
            FileDifference::Missing | FileDifference::NotAFile | FileDifference::Mode => {
                failure.hints(self.restoring(path))
            }
            FileDifference::Edited { .. } => {
                failure.hints(self.restoring(path)).hint("put your own changes upstream or in an overlay")
            }
            FileDifference::Unlisted { .. } => failure.hints(self.restoring(&path::join(self.directory, LOCK_NAME))),
            // No command: git may not track the file yet, and then nothing brings it back.
            FileDifference::Added => failure.hint("move it to another directory, or remove it"),
        }
    }

    /// The help for a file that differs, or for the edited lock itself: the ways to the recorded bytes. They depend on
    /// who wrote the lock: a copy, `branch`, `vendor`, or another repository from which files and lock were copied.
    fn restoring(&self, path: &str) -> Vec<String> {
        let directory = self.directory;
        let name = path::join(directory, LOCK_NAME);
        if let Some(target) = &self.lock.target {
            return vec![format!("copy `{target}` again with `--overwrite`, in the scope of `{name}`")];
        }
        let way = if let Some(source) = &self.source {
            let switch = command("git switch", [source]);
            format!("recreate the branch: {switch} && git kustomize-localize branch --overwrite")
        } else if !directory.is_empty() {
            // `vendor` uses only the lock at the top.
            format!("copy `{directory}` again from the repository that `{name}` is from")
        } else if path == name {
            "the lock was edited: restore it from a commit before that".to_owned()
        } else {
            // Name the root beside the files: without an argument, `vendor` would localize the whole repository.
            let root = path::parent(stored::localized_dir(path).unwrap_or_default());
            return vec![match tree::kustomization_in(self.context.tree, root) {
                Ok(Some(_)) => command("git kustomize-localize vendor --overwrite", [format!(":/{root}")]),
                _ => format!("restore the kustomization in `{}`, which uses these files", path::shown(root)),
            }];
        };
        let undo = format!("undo uncommitted changes: {}", command("git checkout HEAD --", [pathspec(path)]));
        let is_committed = matches!(self.context.input.source, Snapshot::Commit { .. });
        Some(undo).filter(|_| !is_committed).into_iter().chain([way]).collect()
    }
}

/// The source branch of the localized branch that is checked. `None` if the checked revision is not a localized branch.
fn source(context: &Context<'_>) -> Option<String> {
    let rev = match &context.input.source {
        Snapshot::Commit { rev, .. } => rev,
        Snapshot::Index | Snapshot::WorkingTree => "HEAD",
    };
    let name = context.input.absences?.full_name(rev)?;
    Some(branch_of(&name)?.strip_prefix(PREFIX)?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;

    fn found(scene: Scene) -> Vec<Finding> {
        scene.find(Rule::EditedCopy)
    }

    fn in_place() -> Scene {
        Scene::default()
            .file("a/kustomization.yaml", "resources: [localized-files/h/x.yaml]\n")
            .stored("a/localized-files/h/x.yaml", "x")
    }

    #[test]
    fn unedited_files_are_not_reported() {
        assert_eq!(found(in_place()), []);
    }

    #[test]
    fn an_edit_names_lock_and_digests_and_how_to_undo_it() {
        let findings = found(in_place().file("a/localized-files/h/x.yaml", "y"));
        let [finding] = findings.as_slice() else {
            panic!("{findings:?}");
        };
        assert_eq!(finding.path, "a/localized-files/h/x.yaml");
        assert_eq!(
            finding.message,
            "`a/localized-files/h/x.yaml` was changed: its sha256 a1fce4363854ff888cff4b8e7875d600c2682390412a8cf79b37d0b11148b0fa differs from the lock"
        );
        assert_eq!(finding.help[0], "git kustomize-localize vendor --overwrite :/a");
        assert!(finding.fails());
    }

    #[test]
    fn missing_and_added_files_are_reported() {
        let mut scene = in_place().file("a/localized-files/new.yaml", "");
        scene.tree.remove("a/localized-files/h/x.yaml");
        let findings = found(scene);
        let told: Vec<&str> = findings.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(
            told,
            [
                "`a/localized-files/h/x.yaml` is missing, although the lock lists it",
                "`a/localized-files/new.yaml` was added: the lock does not list it",
            ]
        );
        assert_eq!(findings[1].help, ["move it to another directory, or remove it"]);
    }

    #[test]
    fn an_edited_lock_is_restored_from_git() {
        let mut scene = in_place();
        scene.lock.files[0].remote = Some(crate::reference::Upstream::File { url: "https://h/x.yaml".to_owned() });
        let help = [
            "undo uncommitted changes: git checkout HEAD -- :/kustomize-localize.lock",
            "the lock was edited: restore it from a commit before that",
        ];
        assert_eq!(found(scene)[0].help, help);
    }

    #[test]
    fn files_with_a_lock_below_the_top_come_from_another_repository() {
        let lock = Lock { files: in_place().lock.files, ..Lock::default() };
        let scene = Scene::default()
            .file("sub/a/kustomization.yaml", "resources: [localized-files/h/x.yaml]\n")
            .file("sub/a/localized-files/h/x.yaml", "y")
            .file("sub/kustomize-localize.lock", &lock.render().unwrap());
        let help = [
            "undo uncommitted changes: git checkout HEAD -- :/sub/a/localized-files/h/x.yaml",
            "copy `sub` again from the repository that `sub/kustomize-localize.lock` is from",
            "put your own changes upstream or in an overlay",
        ];
        assert_eq!(found(scene)[0].help, help);
    }

    #[test]
    fn a_copy_says_how_it_was_made() {
        let mut lock = Lock {
            target: Some("app".to_owned()),
            files: Scene::default().stored("x.yaml", "x").lock.files,
            ..Lock::default()
        };
        lock.scope = Some(".".to_owned());
        let scene =
            Scene::default().file("copy/x.yaml", "y").file("copy/kustomize-localize.lock", &lock.render().unwrap());
        assert_eq!(
            found(scene)[0].help[0],
            "copy `app` again with `--overwrite`, in the scope of `copy/kustomize-localize.lock`"
        );
    }
}
