//! `stale-lock`: an entry of the lock at the top, or a directory of one, that nothing references, or whose commit
//! somebody has changed.
//!
//! An upstream is needed if the tree or another needed one names it, or if stored files came from it
//! ([`crate::record::Lock::reach`]), so `git kustomize-localize lock` drops exactly the reported ones. The rule is
//! silent if the check may not see a reference: if it has paths, or if a kustomization cannot be read.

use std::collections::BTreeSet;

use super::Context;
use crate::message::failure::{Failure, short};
use crate::message::finding::{Finding, Rule};
use crate::plan::user_upstreams;
use crate::record::{LOCK_NAME, Lock};
use crate::reference::Upstream;

/// Finds the entries that nothing needs, and those that may lack references because their commit was edited.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let Some(lock) = context.lock() else { return Vec::new() };
    // A partial walk does not know all references, so every entry might look unused.
    if !context.input.paths.is_empty() || context.troubles.iter().any(|trouble| trouble.kind.hides_references()) {
        return Vec::new();
    }
    let needed = lock.reach(user_upstreams(context.graph, lock).chain(lock.stored_upstreams()));
    let needed_sources: BTreeSet<Upstream> = needed.iter().map(Upstream::source).collect();
    // First what nothing needs, a whole entry or a directory of one, then entries whose own references may have
    // changed.
    let sources = lock.remotes.keys().filter(|source| !needed_sources.contains(source)).cloned();
    let directories = lock.upstreams().filter(|upstream| !needed.contains(upstream));
    let directories = directories.filter(|upstream| needed_sources.contains(&upstream.source()));
    let left = lock.left.keys().filter(|upstream| !needed.contains(*upstream)).cloned();
    let unused = sources.chain(directories).map(|upstream| ("remotes", upstream));
    let unused = unused.chain(left.map(|upstream| ("left", upstream)));
    let unused = unused.map(|(list, upstream)| {
        let message = format!("nothing references `{upstream}`");
        (list, upstream, message, "drop it")
    });
    let changed = lock.remotes.iter().filter(|(source, pinned)| pinned.is_stale() && needed_sources.contains(source));
    let changed = changed.map(|(source, pinned)| {
        let read_at = pinned.paths_of.as_deref().unwrap_or_default();
        let now = short(pinned.digest.hex());
        let message = format!("`{source}` is at {now} now, but what it names was read at {read_at}");
        ("remotes", source.clone(), message, "read it again")
    });
    let stale: Vec<_> = unused.chain(changed).collect();
    let bytes = if stale.is_empty() { Vec::new() } else { context.tree.read(LOCK_NAME).unwrap_or_default() };
    let (remotes, left) = (Lock::positions(&bytes), Lock::left_positions(&bytes));
    let findings = stale.into_iter().filter_map(|(list, upstream, message, action)| {
        let position = if list == "left" { left.get(&upstream) } else { remotes.get(&upstream.source()) };
        let failure =
            Failure::new(message).hint(format!("{action}: git kustomize-localize lock && git add -f -- :/{LOCK_NAME}"));
        let finding = context.at_position(Rule::StaleLock, LOCK_NAME, *position?, failure);
        Some(Finding { field: list.to_owned(), reference: upstream.to_string(), ..finding })
    });
    findings.collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{COMMIT, Scene, under_caret};
    use super::*;
    use crate::message::finding::Severity;
    use crate::record::{Digest, Pinned};

    fn find(scene: Scene) -> Vec<String> {
        let findings = scene.find(Rule::StaleLock);
        findings.into_iter().map(|one| one.reference).collect()
    }

    /// The entry of a repository of which the top is in use.
    fn top() -> Pinned {
        let paths = [(String::new(), BTreeSet::new())].into();
        Pinned { paths, ..Pinned::new(Digest::GitCommit(COMMIT.to_owned())) }
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
        assert_eq!(git.span.map(|span| span.start.line), Some(12));
        assert_eq!(file.span.map(|span| span.start.line), Some(4));
        assert_eq!(under_caret(file), "url: https://example.com/x.yaml");
        assert_eq!(git.path, "kustomize-localize.lock");
    }

    #[test]
    fn an_entry_that_a_needed_one_names_is_needed() {
        let lock = |text: &str| {
            let scene = ["a", "b", "c"].iter().fold(Scene::of(text), |scene, name| {
                scene.remote(Upstream::named(&format!("https://h/o/{name}")), top())
            });
            scene.names("https://h/o/a", "https://h/o/b").names("https://h/o/b", "https://h/o/c")
        };
        assert_eq!(find(lock("resources: [https://h/o/a]\n")), [""; 0]);
        assert_eq!(find(lock("resources: [https://h/o/b]\n")), ["https://h/o/a"]);
        assert_eq!(find(lock("namePrefix: a-\n")).len(), 3);
        // One that only names itself is not needed.
        assert_eq!(find(lock("resources: [https://h/o/c]\n").names("https://h/o/b", "https://h/o/a")).len(), 2);
    }

    #[test]
    fn a_directory_and_what_is_left_are_needed_too() {
        let mut scene = Scene::of("resources: ['https://github.com/o/r//a?ref=v1', 'https://h/left.yaml']\n");
        let paths = ["a", "b"].map(|path| (path.to_owned(), BTreeSet::new())).into();
        let pinned = Pinned { paths, ..Pinned::new(Digest::GitCommit(COMMIT.to_owned())) };
        scene = scene.remote(Upstream::named("https://github.com/o/r?ref=v1"), pinned);
        scene = scene.names("https://github.com/o/r//a?ref=v1", "https://h/behind.yaml");
        for left in ["https://h/left.yaml", "https://h/behind.yaml", "https://h/gone.yaml"] {
            scene.lock.left.insert(Upstream::named(left), "r".to_owned());
        }
        let findings = scene.find(Rule::StaleLock);
        let found: Vec<_> = findings.iter().map(|one| (&*one.message, under_caret(one), &*one.field)).collect();
        let directory =
            ("nothing references `https://github.com/o/r//b?ref=v1`", "url: https://github.com/o/r".to_owned());
        let left = ("nothing references `https://h/gone.yaml`", "url: https://h/gone.yaml".to_owned());
        assert_eq!(found, [(directory.0, directory.1, "remotes"), (left.0, left.1, "left")]);
    }

    #[test]
    fn one_with_submodules_is_not_one_without() {
        let scene = Scene::of("resources: [https://h/o/a]\n").remote(Upstream::named("https://h/o/a"), top());
        let stale = find(scene.remote(Upstream::named("https://h/o/a?submodules=false"), top()));
        assert_eq!(stale, ["https://h/o/a?submodules=false"]);
    }

    #[test]
    fn the_origin_of_stored_files_is_needed() {
        let mut scene = Scene::of("resources: [localized-files/x.yaml]\n")
            .stored("localized-files/x.yaml", "")
            .http("https://h/x.yaml");
        scene.lock.files[0].remote = Some(Upstream::named("https://h/x.yaml"));
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
        let scene = Scene::of("generators: ['https://h/o/r//a?ref=v1']\n").git("https://h/o/r", Some("v1"));
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
