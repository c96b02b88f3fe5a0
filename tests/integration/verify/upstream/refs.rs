//! Branches, tags and commits of repositories, on disk and over smart HTTP.

use std::fs;

use super::*;
use crate::support::Server;

/// Where an upstream is asked.
struct Place {
    sandbox: Sandbox,
    _server: Option<Server>,
    /// The URL of `srv/acme/base`.
    url: String,
    up: Repo,
}

/// Returns an upstream on disk, and one behind a server.
fn places() -> [Place; 2] {
    [false, true].map(|over_http| {
        let sandbox = Sandbox::new();
        let up = upstream(&sandbox, "srv/acme/base");
        let server = over_http.then(Server::start);
        let url = match &server {
            Some(server) => {
                server.serve_git("/git/", &sandbox.path("srv"));
                format!("{}acme/base", server.git_url())
            }
            None => format!("file://{}", up.path().display()),
        };
        Place { sandbox, _server: server, url, up }
    })
}

fn references(url: &str, refs: &[&str]) -> Vec<String> {
    refs.iter().map(|it| format!("{url}//?ref={it}")).collect()
}

#[test]
fn every_ref_gets_its_verdict() {
    for place in places() {
        let Place { sandbox, url, up, .. } = &place;
        for branch in ["forward", "rewritten", "deleted", "hidden", "still"] {
            up.git(&["branch", branch]);
        }
        let first = up.id("HEAD");
        up.commit("more");
        up.git(&["branch", "back"]);
        for tag in ["light", "light-moved", "tag-deleted"] {
            up.git(&["tag", tag]);
        }
        for tag in ["annotated", "annotated-moved", "annotated-again"] {
            up.git(&["tag", "-a", "-m", "released", tag]);
        }
        let refs = [
            "forward",
            "rewritten",
            "deleted",
            "hidden",
            "still",
            "back",
            "light",
            "light-moved",
            "tag-deleted",
            "annotated",
            "annotated-moved",
            "annotated-again",
            "refs/heads/still",
            "refs/tags/light",
        ];
        let repo = locked(sandbox, &references(url, &refs));
        let before = report(&repo, &[], 0);
        let all_ok: Vec<String> = told(&before);
        assert!(all_ok.iter().all(|one| one.starts_with("ok ")), "{all_ok:?}");
        assert_eq!(all_ok.len(), refs.len());

        let old = up.id("HEAD");
        up.git(&["switch", "--quiet", "forward"]);
        up.commit("two");
        let new = up.commit("three");
        up.git(&["switch", "--quiet", "--orphan", "other"]);
        up.write("kustomization.yaml", "resources: []\n");
        let other = up.commit("other");
        up.git(&["branch", "--force", "rewritten"]);
        up.git(&["branch", "--force", "back", &first]);
        up.git(&["branch", "-D", "deleted"]);
        up.git(&["tag", "hidden"]);
        up.git(&["tag", "--force", "light-moved"]);
        up.git(&["tag", "--delete", "tag-deleted"]);
        up.git(&["tag", "--force", "-a", "-m", "again", "annotated-moved"]);
        // Another tag object, the same commit.
        up.git(&["tag", "--force", "-a", "-m", "again", "annotated-again", &old]);
        let after = report(&repo, &[], 1);
        let mut expected = vec![
            "ok still".to_owned(),
            "ok light".to_owned(),
            "ok annotated".to_owned(),
            "ok annotated-again".to_owned(),
            "ok refs/heads/still".to_owned(),
            "ok refs/tags/light".to_owned(),
            "updated forward: the branch `forward` moved forward".to_owned(),
            "moved rewritten: the branch `rewritten` was rewritten or reset: it no longer contains the locked commit"
                .to_owned(),
            "moved back: the branch `back` was rewritten or reset: it no longer contains the locked commit".to_owned(),
            "gone deleted: the repository no longer has the ref `deleted`".to_owned(),
            "gone tag-deleted: the repository no longer has the ref `tag-deleted`".to_owned(),
            "moved hidden: the tag `hidden` points to another commit".to_owned(),
            "moved light-moved: the tag `light-moved` points to another commit".to_owned(),
            "moved annotated-moved: the tag `annotated-moved` points to another commit".to_owned(),
        ];
        expected.sort();
        assert_eq!(told(&after), expected);
        agrees_with_update(&repo, &after);
        for one in after["upstream"].as_array().unwrap() {
            let (was, is) = match one["ref"].as_str().unwrap() {
                "forward" => (&first, Some(&new)),
                "rewritten" | "hidden" => (&first, Some(&other)),
                "back" => (&old, Some(&first)),
                "light-moved" | "annotated-moved" => (&old, Some(&other)),
                "deleted" => (&first, None),
                "tag-deleted" => (&old, None),
                "still" | "refs/heads/still" => (&first, Some(&first)),
                _ => (&old, Some(&old)),
            };
            assert_eq!(one["commit"], *was, "{one:#}");
            match is {
                Some(is) => assert_eq!(one["new"], format!("gitCommit:{is}"), "{one:#}"),
                None => assert_eq!(one["new"], Value::Null, "{one:#}"),
            }
            let is_forward = one["ref"] == "forward";
            assert_eq!(one["commits"] == 2, is_forward, "{one:#}");
            assert_eq!(one["newest"].as_array().unwrap().len() == 2, is_forward);
            assert_eq!(one["lock"], "kustomize-localize.lock");
            let line = usize::try_from(one["line"].as_u64().unwrap()).unwrap();
            let lock = repo.read("kustomize-localize.lock");
            let entry: Vec<&str> = lock.lines().skip(line - 1).take(2).collect();
            assert_eq!(entry[0], format!("  - url: {url}"));
            assert_eq!(entry[1], format!("    ref: {}", one["ref"].as_str().unwrap()));
        }
    }
}

#[test]
fn people_read_one_line_for_each() {
    let [place, _] = places();
    let (url, up) = (&place.url, &place.up);
    up.git(&["tag", "v1"]);
    let old = up.id("HEAD");
    let repo = locked(&place.sandbox, &references(url, &["main", "v1"]));
    let commit = repo.id("HEAD");
    ask(&repo, &["--quiet"]).success().lacks("ok");
    assert_eq!(
        ask(&repo, &[]).success().stdout,
        format!(
            "kustomize-localize.lock:4: ok: {url}?ref=main is {was}\n\
             kustomize-localize.lock:10: ok: {url}?ref=v1 is {was}\n\
             upstream of 2 remotes: 2 ok\n\
             verified HEAD ({}): as locked\n",
            &commit[..12],
            was = &old[..12],
        )
    );
    for number in 1..=12 {
        up.commit(&format!("change {number}\u{1b}[31m"));
    }
    up.git(&["tag", "--force", "v1"]);
    ask(&repo, &[]).fails(1).says(expect![[r#"
        kustomize-localize.lock:4: updated: file:///home/me/srv/acme/base?ref=main was <0>, is <1>: the branch `main` moved forward by 12 commits
            <1> change 12\u{1b}[31m
            <2> change 11\u{1b}[31m
            <3> change 10\u{1b}[31m
            <4> change 9\u{1b}[31m
            <5> change 8\u{1b}[31m
            <6> change 7\u{1b}[31m
            <7> change 6\u{1b}[31m
            <8> change 5\u{1b}[31m
            <9> change 4\u{1b}[31m
            <10> change 3\u{1b}[31m
            and 2 more
        kustomize-localize.lock:10: moved: file:///home/me/srv/acme/base?ref=v1 was <0>, is <1>: the tag `v1` points to another commit
        upstream of 2 remotes: 1 updated, 1 moved
          to update the lock: git kustomize-localize update
          a moved version is only updated by name, once you know why it moved: git kustomize-localize update 'file:///home/me/srv/acme/base?ref=v1'
        NOT verified HEAD (<11>): 1 difference
    "#]]);
    // A ref that moved forward is not a difference by itself.
    up.git(&["tag", "--force", "v1", &old]);
    ask(&repo, &[]).success().says(expect![[r#"
        kustomize-localize.lock:4: updated: file:///home/me/srv/acme/base?ref=main was <0>, is <1>: the branch `main` moved forward by 12 commits
            <1> change 12\u{1b}[31m
            <2> change 11\u{1b}[31m
            <3> change 10\u{1b}[31m
            <4> change 9\u{1b}[31m
            <5> change 8\u{1b}[31m
            <6> change 7\u{1b}[31m
            <7> change 6\u{1b}[31m
            <8> change 5\u{1b}[31m
            <9> change 4\u{1b}[31m
            <10> change 3\u{1b}[31m
            and 2 more
        kustomize-localize.lock:10: ok: file:///home/me/srv/acme/base?ref=v1 is <0>
        upstream of 2 remotes: 1 ok, 1 updated
          to update the lock: git kustomize-localize update
        verified HEAD (<11>): as locked
    "#]]);
    assert_eq!(ask(&repo, &["--quiet"]).success().stdout, "");
}

#[test]
fn only_an_update_that_is_taken_is_offered() {
    let [place, _] = places();
    let (url, up) = (&place.url, &place.up);
    let version = [format!("{url}//?ref=v1")];
    up.git(&["tag", "v1"]);
    let repo = locked(&place.sandbox, &version);
    up.commit("two");
    up.git(&["tag", "--force", "v1"]);
    ask(&repo, &[]).fails(1).says(expect![[r#"
        kustomize-localize.lock:4: moved: file:///home/me/srv/acme/base?ref=v1 was <0>, is <1>: the tag `v1` points to another commit
        upstream of 1 remote: 1 moved
          a moved version is only updated by name, once you know why it moved: git kustomize-localize update 'file:///home/me/srv/acme/base?ref=v1'
        NOT verified HEAD (<2>): 1 difference
    "#]]);
    repo.run_unchanged(&["update"]).fails(1).says(expect![[r#"
        kustomize-localize.lock not changed: 1 remote reference
        error: file:///home/me/srv/acme/base?ref=v1 moved: <0> -> <1>; the lock keeps <0>
          hint: find out why; if it is intended: git kustomize-localize update 'file:///home/me/srv/acme/base?ref=v1'
    "#]]);
    repo.run(&["update", &format!("{url}?ref=v1")]).success();
    repo.commit("updated by name");
    ask(&repo, &[]).success().says(expect![[r#"
        kustomize-localize.lock:4: ok: file:///home/me/srv/acme/base?ref=v1 is <0>
        upstream of 1 remote: 1 ok
        verified HEAD (<1>): as locked
    "#]]);
    // A branch that was reset is as good as any other.
    repo.write("app/kustomization.yaml", format!("resources: ['{url}//?ref=main']\n"));
    repo.run(&["lock"]).success();
    repo.commit("main");
    up.git(&["reset", "-q", "--hard", "HEAD^"]);
    ask(&repo, &[]).fails(1).says(expect![[r#"
        kustomize-localize.lock:4: moved: file:///home/me/srv/acme/base?ref=main was <0>, is <1>: the branch `main` was rewritten or reset: it no longer contains the locked commit
        upstream of 1 remote: 1 moved
          to update the lock: git kustomize-localize update
        NOT verified HEAD (<2>): 1 difference
    "#]]);
    repo.run(&["update"]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 1 remote reference
          moved file:///home/me/srv/acme/base?ref=main <0> -> <1>
            … days old
          1 warning (rewritten-branch 1)
          to stage it: git add -f -- :/kustomize-localize.lock
        warning[rewritten-branch]: `main` of file:///home/me/srv/acme/base was rewritten or reset: it no longer contains the locked commit <0>
         --> kustomize-localize.lock
    "#]]);
    repo.commit("updated");
    ask(&repo, &[]).success().says(expect![[r#"
        kustomize-localize.lock:4: ok: file:///home/me/srv/acme/base?ref=main is <0>
        upstream of 1 remote: 1 ok
        verified HEAD (<1>): as locked
    "#]]);
}

#[test]
fn a_commit_is_asked_for_by_its_id() {
    for place in places() {
        let Place { sandbox, url, up, .. } = &place;
        up.git(&["tag", "-a", "-m", "released", "v1"]);
        let (commit, tag) = (up.id("HEAD"), up.id("v1"));
        let later = up.commit("two");
        let repo = locked(sandbox, &references(url, &[&commit, &tag, &later.to_uppercase()]));
        let ok = told(&report(&repo, &[], 0));
        assert!(ok.len() == 3 && ok.iter().all(|one| one.starts_with("ok ")), "{ok:?}");
        // No ref leads there any more, but the server still has it.
        up.git(&["reset", "--quiet", "--hard", &commit]);
        report(&repo, &[], 0);
        up.git(&["reflog", "expire", "--expire=all", "--all"]);
        up.git(&["gc", "--quiet", "--prune=now"]);
        let gone = told(&report(&repo, &[], 1));
        let upper = later.to_uppercase();
        assert!(gone[0].starts_with(&format!("gone {upper}: {url} does not have commit {later}")), "{gone:?}");
        assert!(gone[1..].iter().all(|one| one.starts_with("ok ")), "{gone:?}");
    }
}

#[test]
fn a_repository_may_be_gone() {
    for place in places() {
        let Place { sandbox, url, up, .. } = &place;
        let commit = up.id("HEAD");
        let repo = locked(sandbox, &references(url, &["main", &commit]));
        fs::rename(up.path(), sandbox.path("elsewhere")).unwrap();
        let gone = report(&repo, &[], 1);
        for one in gone["upstream"].as_array().unwrap() {
            assert_eq!(one["verdict"], "gone", "{one:#}");
            let message = one["message"].as_str().unwrap();
            assert!(message.starts_with(&format!("could not fetch {url}: ")), "{message}");
        }
        // The cache does not count.
        repo.run(&["lock"]).success();
    }
}

#[test]
fn a_branch_whose_locked_commit_is_gone_has_moved() {
    let [place, _] = places();
    let (url, up) = (&place.url, &place.up);
    let repo = locked(&place.sandbox, &references(url, &["main"]));
    up.git(&["switch", "--quiet", "--orphan", "other"]);
    up.commit("other");
    up.git(&["branch", "--force", "main"]);
    up.git(&["reflog", "expire", "--expire=all", "--all"]);
    up.git(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(
        told(&report(&repo, &[], 1)),
        ["moved main: the branch `main` was rewritten or reset: it no longer contains the locked commit"]
    );
}

#[test]
fn a_ref_that_was_not_written_is_head() {
    let [place, _] = places();
    let (url, up) = (&place.url, &place.up);
    let repo = locked(&place.sandbox, &[format!("{url}//")]);
    assert_eq!(told(&report(&repo, &[], 0)), ["ok base"]);
    up.commit("two");
    assert_eq!(told(&report(&repo, &[], 0)), ["updated base: `HEAD` moved forward"]);
    // Merges alone are no commits of anybody.
    let [tree, head] = ["HEAD^{tree}", "HEAD"].map(|revision| up.id(revision));
    let merge = up.git(&["commit-tree", "-p", &head, "-p", "HEAD^", "-m", "merge", &tree]);
    up.git(&["reset", "--quiet", "--hard", &merge]);
    repo.run(&["update"]).success();
    repo.commit("updated");
    let tree = up.id("HEAD^{tree}");
    let merge = up.git(&["commit-tree", "-p", "HEAD", "-p", "HEAD^", "-m", "merge", &tree]);
    up.git(&["reset", "--quiet", "--hard", &merge]);
    ask(&repo, &[]).success().says(expect![[r#"
        kustomize-localize.lock:4: updated: file:///home/me/srv/acme/base was <0>, is <1>: `HEAD` moved forward by merges only
        upstream of 1 remote: 1 updated
          to update the lock: git kustomize-localize update
        verified HEAD (<2>): as locked
    "#]]);
    // An empty repository in the place of the one that was there.
    fs::remove_dir_all(up.path()).unwrap();
    place.sandbox.repo("srv/acme/base");
    assert_eq!(told(&report(&repo, &[], 1)), ["gone base: the repository has no HEAD: it is empty"]);
}

#[test]
fn a_repository_is_asked_once_for_all_of_its_refs() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let up = upstream(&sandbox, "srv/acme/base");
    server.serve_git("/git/", &sandbox.path("srv"));
    let url = format!("{}acme/base", server.git_url());
    let mut all = vec![format!("{url}//?ref=main&submodules=false")];
    for number in 1..=9 {
        up.git(&["tag", &format!("v{number}")]);
        all.push(format!("{url}//?ref=v{number}"));
    }
    all.push(format!("{url}//?ref=main"));
    let repo = locked(&sandbox, &all);
    server.forget();
    let ok = report(&repo, &[], 0);
    assert_eq!(ok["upstream"].as_array().unwrap().len(), 11);
    let listed = |log: &[String]| log.iter().filter(|line| line.contains("/info/refs")).count();
    assert_eq!(listed(&server.log()), 1, "{:?}", server.log());
    // So is what lies between, for both entries that differ in their submodules.
    up.commit("two");
    server.forget();
    let updated = report(&repo, &[], 0);
    let of_main: Vec<&Value> =
        updated["upstream"].as_array().unwrap().iter().filter(|one| one["verdict"] == "updated").collect();
    assert_eq!(of_main.len(), 2, "{updated:#}");
    assert_eq!(of_main[0]["submodules"], false);
    assert!(of_main[1]["submodules"].is_null());
    assert_eq!(of_main[0]["new"], of_main[1]["new"]);
    let log = server.log();
    assert!(listed(&log) <= 3, "{log:?}");
}

#[test]
fn ids_may_be_longer() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("srv/base");
    fs::create_dir_all(&path).unwrap();
    sandbox.git(&path, &["init", "--quiet", "-b", "main", "--object-format=sha256"]);
    let up = Repo::new(&sandbox, path);
    up.write("kustomization.yaml", "resources: []\n");
    let commit = up.commit("one");
    assert_eq!(commit.len(), 64);
    let url = format!("file://{}", up.path().display());
    let repo = locked(&sandbox, &references(&url, &["main", &commit]));
    assert_eq!(told(&report(&repo, &[], 0)).len(), 2);
    up.commit("two");
    assert_eq!(told(&report(&repo, &[], 0))[1], "updated main: the branch `main` moved forward");
}
