//! `stale-lock`: an entry of the lock at the top that nothing references.
//!
//! An entry is needed if the tree names it, if a needed entry names it in turn (`through` in the lock: the tree does
//! not show it), or if stored files came from it ([`crate::record::Lock::stale`]); so `git kustomize-localize lock`
//! drops exactly what is reported here. The rule is silent where a reference could be out of sight: when only some
//! paths or only targets are checked, and while a kustomization cannot be read.

use std::collections::HashSet;

use super::Context;
use crate::message::finding::{Finding, Rule};
use crate::record::{LOCK_NAME, Lock, Remote};

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let Some(lock) = context.lock().filter(|lock| lock.target.is_none()) else {
        return Vec::new();
    };
    if !context.input.paths.is_empty() || context.troubles.iter().any(|trouble| trouble.kind.hides_references()) {
        return Vec::new();
    }
    // With submodules and without is not the same.
    let key = |remote: &Remote| (remote.label(), matches!(remote, Remote::Git(git) if git.submodules));
    let named = context.remotes.iter().filter_map(|one| one.locked).map(key);
    let charts = context.graph.charts.iter().filter_map(|chart| Some((chart.wanted.as_ref()?.label(), false)));
    let named: HashSet<(String, bool)> = named.chain(charts).collect();
    let stale: HashSet<_> = lock.stale(|remote| named.contains(&key(remote))).into_iter().map(key).collect();
    let bytes = if stale.is_empty() { Vec::new() } else { context.tree.read(LOCK_NAME).unwrap_or_default() };
    let found = lock.remotes.iter().zip(Lock::places(&bytes)).filter_map(|(remote, place)| {
        let label = stale.contains(&key(remote)).then(|| remote.label())?;
        let message = format!("nothing references `{label}`");
        let help = vec![format!("drop it: git kustomize-localize lock && git add -f -- :/{LOCK_NAME}")];
        let finding = context.at_place(Rule::StaleLock, LOCK_NAME, place, message, help);
        Some(Finding { field: "remotes".to_owned(), reference: label, ..finding })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{COMMIT, Scene, under_caret};
    use super::*;
    use crate::message::finding::Severity;
    use crate::record::GitRemote;

    fn find(scene: Scene) -> Vec<String> {
        let findings = scene.find(Rule::StaleLock);
        findings.into_iter().map(|one| one.reference).collect()
    }

    fn through(url: &str, through: &[&str]) -> Remote {
        Remote::Git(GitRemote {
            url: url.to_owned(),
            reference: None,
            submodules: true,
            commit: COMMIT.to_owned(),
            paths: [".".to_owned()].into(),
            through: through.iter().map(|label| (*label).to_owned()).collect(),
        })
    }

    #[test]
    fn an_unreferenced_entry_is_reported_at_its_line() {
        let scene = Scene::of("resources: ['https://github.com/o/r?ref=v1']\n")
            .git("https://github.com/o/r", Some("v1"))
            .git("https://github.com/o/r", Some("v2"))
            .http("https://example.com/x.yaml");
        let findings = scene.check().findings;
        let [file, git] = findings.as_slice() else {
            panic!("{findings:?}");
        };
        assert_eq!(git.message, "nothing references `https://github.com/o/r?ref=v2`");
        assert_eq!(git.help, ["drop it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock"]);
        assert_eq!(git.severity, Severity::Warning);
        assert_eq!(under_caret(git), "url: https://github.com/o/r");
        assert_eq!(git.span.map(|span| span.line), Some(11));
        assert_eq!(file.span.map(|span| span.line), Some(4));
        assert_eq!(under_caret(file), "url: https://example.com/x.yaml");
        assert_eq!(git.path, "kustomize-localize.lock");
    }

    #[test]
    fn an_entry_that_a_needed_one_names_is_needed() {
        let lock = |scene: Scene| {
            scene
                .remote(through("https://h/o/a", &[]))
                .remote(through("https://h/o/b", &["https://h/o/a"]))
                .remote(through("https://h/o/c", &["https://h/o/b"]))
        };
        assert_eq!(find(lock(Scene::of("resources: [https://h/o/a]\n"))), [""; 0]);
        assert_eq!(find(lock(Scene::of("resources: [https://h/o/b]\n"))), ["https://h/o/a"]);
        assert_eq!(find(lock(Scene::of("namePrefix: a-\n"))).len(), 3);
    }

    #[test]
    fn one_with_submodules_is_not_one_without() {
        let without = |mut remote: Remote| {
            let Remote::Git(git) = &mut remote else { panic!("{remote:?}") };
            git.submodules = false;
            remote
        };
        let scene = Scene::of("resources: [https://h/o/a]\n").remote(without(through("https://h/o/a", &[])));
        assert_eq!(find(scene.remote(through("https://h/o/a", &[]))), ["https://h/o/a"]);
    }

    #[test]
    fn an_entry_that_only_names_itself_is_not_needed() {
        let scene = Scene::of("namePrefix: a-\n")
            .remote(through("https://h/o/a", &["https://h/o/b"]))
            .remote(through("https://h/o/b", &["https://h/o/a"]));
        assert_eq!(find(scene), ["https://h/o/a", "https://h/o/b"]);
    }

    #[test]
    fn the_origin_of_stored_files_is_needed() {
        let mut scene = Scene::of("resources: [localized-files/x.yaml]\n")
            .stored("localized-files/x.yaml", "")
            .http("https://h/x.yaml");
        scene.lock.files[0].remote = Some("https://h/x.yaml".into());
        assert_eq!(find(scene), [""; 0]);
    }

    #[test]
    fn a_reference_of_any_field_and_file_counts() {
        let scene = Scene::default()
            .file("a/kustomization.yaml", "patches: [{path: https://h/x.yaml}]\ngenerators: [g.yaml]\n")
            .file(
                "a/g.yaml",
                "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: [https://h/y.yaml]\n",
            )
            .http("https://h/x.yaml")
            .http("https://h/y.yaml");
        assert_eq!(find(scene), [""; 0]);
    }

    #[test]
    fn repositories_of_plugins_need_an_entry() {
        let scene = Scene::of("generators: ['https://h/o/r//x?ref=v1']\n").git("https://h/o/r", Some("v1"));
        assert_eq!(find(scene), [""; 0]);
    }

    #[test]
    fn nothing_is_reported_if_unread_files_may_reference_it() {
        let scene = || Scene::of("namePrefix: a-\n").http("https://h/x.yaml");
        assert_eq!(find(scene()).len(), 1);
        let mut part = scene();
        part.paths = vec!["kustomization.yaml".to_owned()];
        assert_eq!(find(part), [""; 0]);
        for (place, text) in [
            ("a/kustomization.yaml", "resources: [x\n"),
            ("a/kustomization.yaml", "unknown: x\n"),
            ("kustomization.yml", "namePrefix: b-\n"),
        ] {
            assert_eq!(find(scene().file(place, text)), [""; 0], "{text}");
        }
        // A path that leads nowhere hides nothing.
        let missing = scene().file("a/kustomization.yaml", "resources: [gone.yaml]\n");
        assert_eq!(find(missing).len(), 1);
    }

    #[test]
    fn only_the_lock_of_the_tree_itself_is_looked_at() {
        let lock = "version: 1\ntarget: a\nremotes:\n- {url: https://h/x.yaml, sha256: 0000000000000000000000000000000000000000000000000000000000000000, size: 1}\n";
        let scene = || Scene::of("namePrefix: a-\n");
        assert_eq!(find(scene().file("copy/kustomize-localize.lock", lock)), [""; 0]);
        assert_eq!(find(scene().file("kustomize-localize.lock", lock)), [""; 0]);
    }
}
