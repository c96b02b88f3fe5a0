//! `edited-copy`: a localized file whose bytes or mode are not what its lock says, one that is missing,
//! one that was added.
//!
//! Every lock of the tree is looked at: the one at the top with the `localized-files` that it lists, and
//! those of copies, which own all of their directory.

use std::collections::HashMap;

use super::{Context, finding};
use crate::message::failure::{command, pathspec, short, stage};
use crate::message::finding::{Finding, Rule};
use crate::record::stored::{self, Difference};
use crate::record::{LOCK_NAME, Lock, StoredFile};
use crate::tree::{self, path};

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (directory, lock) in context.locks {
        let differences = match stored::differences(context.tree, directory, lock) {
            Ok(differences) => differences,
            Err(failure) => {
                context.failures.borrow_mut().push(failure);
                continue;
            }
        };
        let listed: HashMap<String, &StoredFile> = if differences.is_empty() {
            HashMap::new()
        } else {
            let files = lock.files.iter();
            files.map(|file| (path::join(directory, &file.path), file)).collect()
        };
        for (place, difference) in &differences {
            let file = listed.get(place).copied();
            findings.push(differing(context, (directory, lock), place, file, difference));
        }
    }
    findings
}

fn differing(
    context: &Context<'_>,
    (directory, lock): (&str, &Lock),
    place: &str,
    listed: Option<&StoredFile>,
    difference: &Difference,
) -> Finding {
    let name = path::join(directory, LOCK_NAME);
    let again = again(context, directory, lock, place);
    let (message, help) = match difference {
        Difference::Missing => {
            let on_disk = context.absences.is_some_and(|absences| absences.is_on_disk(place));
            if on_disk {
                (format!("`{place}` is on disk, but not staged, although `{name}` lists it"), vec![stage([place])])
            } else {
                (format!("`{place}` is missing, although `{name}` lists it"), vec![again])
            }
        }
        Difference::NoFile => (format!("`{place}` is not a file, although `{name}` lists it as one"), vec![again]),
        Difference::Edited { sha256 } => {
            let wanted = listed.map_or("", |file| short(&file.sha256));
            (
                format!("`{place}` was edited: its sha256 is {}…, in `{name}` it is {wanted}…", short(sha256)),
                vec![again, "what should be different belongs in an overlay".to_owned()],
            )
        }
        Difference::Mode => {
            let (is, was) =
                if listed.is_some_and(|file| file.executable) { ("100644", "100755") } else { ("100755", "100644") };
            (format!("the mode of `{place}` is {is}, in `{name}` it is {was}"), vec![again])
        }
        Difference::Unlisted { remote } => (
            format!("`{name}` says that `{place}` is from `{remote}`, which it does not list"),
            vec![format!(
                "the lock was edited; to take it as it was: {}",
                command("git checkout HEAD --", [pathspec(&name)])
            )],
        ),
        Difference::Added => (
            format!("`{name}` does not list `{place}`: it was added by hand, or is left of a run that was undone"),
            vec![
                command("git rm -f --", [pathspec(place)]),
                "what you need beside the localized files belongs in a directory of your own".to_owned(),
            ],
        ),
    };
    finding(Rule::EditedCopy, place, message, help)
}

/// Returns what restores what the lock lists.
fn again(context: &Context<'_>, directory: &str, lock: &Lock, place: &str) -> String {
    let name = path::join(directory, LOCK_NAME);
    if let Some(target) = &lock.target {
        return format!("make the copy of `{target}` again with `--overwrite`, in the scope that `{name}` names");
    }
    // Named by the root beside them: without one every locked URL of the repository would be localized.
    let root = path::parent(stored::home(place).unwrap_or(directory));
    match tree::kustomization_in(context.tree, root) {
        Ok(Some(_)) => command("git kustomize-localize vendor --overwrite", [format!(":/{root}")]),
        _ => format!("bring back the kustomization in `{}`, which these files belong to", path::shown(root)),
    }
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
            "`a/localized-files/h/x.yaml` was edited: its sha256 is a1fce4363854…, in `kustomize-localize.lock` it is 2d711642b726…"
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
                "`a/localized-files/h/x.yaml` is missing, although `kustomize-localize.lock` lists it",
                "`kustomize-localize.lock` does not list `a/localized-files/new.yaml`: it was added by hand, or is left of a run that was undone",
            ]
        );
        assert_eq!(findings[1].help[0], "git rm -f -- :/a/localized-files/new.yaml");
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
            "make the copy of `app` again with `--overwrite`, in the scope that `copy/kustomize-localize.lock` names"
        );
    }
}
