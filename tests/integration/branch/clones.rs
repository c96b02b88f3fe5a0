//! In place, in clones of all sorts: shallow, bare, with several remotes, of other object formats.

use crate::support::{Project, Repo};

const BRANCH: &str = "refs/heads/localized/main";
const TRACKING: &str = "refs/remotes/origin/localized/main";

/// Returns a clone of `main` that is one commit deep.
fn shallow(project: &Project, name: &str) -> Repo {
    let path = project.sandbox.path(name);
    let from = format!("file://{}", project.work.path().display());
    project.work.git(&[
        "clone",
        "--quiet",
        "--depth=1",
        "--branch=main",
        &from,
        path.to_str().unwrap(),
    ]);
    Repo::new(&project.sandbox, path)
}

fn fetch(clone: &Repo, depth: &[&str]) {
    let refspec = format!("{BRANCH}:{TRACKING}");
    clone.git(&[&["fetch", "--quiet"], depth, &["origin", &refspec]].concat());
}

/// Returns the parents that a commit names, also those that are not here.
fn parents(repo: &Repo, commit: &str) -> Vec<String> {
    let text = repo.git(&["cat-file", "commit", commit]);
    let parents = text.lines().filter_map(|line| line.strip_prefix("parent "));
    parents.map(str::to_owned).collect()
}

#[test]
fn shallow_clones_go_on_where_the_branch_is() {
    let project = Project::new();
    let work = &project.work;
    work.run(&["--in-place"]).success();
    work.write("README.md", "Second.\n");
    work.commit("second");
    work.run(&["--in-place"]).success();
    let (main, tip) = (work.id("main"), work.id(BRANCH));
    // How deep main and the branch are.
    let cases: [(&str, &[&str], bool); 4] = [
        ("both", &["--depth=1"], false),
        ("branch", &["--depth=1"], true),
        ("main", &[], false),
        ("neither", &[], true),
    ];
    for (name, depth, is_main_whole) in cases {
        let clone = shallow(&project, name);
        if is_main_whole {
            clone.git(&["fetch", "--quiet", "--unshallow", "origin", "main"]);
        }
        fetch(&clone, depth);
        // Nothing is new, so that there is nothing to commit, however often it runs.
        clone
            .run(&["--in-place", "--no-verify"])
            .success()
            .stdout_has("nothing to do");
        assert_eq!(clone.id(BRANCH), tip, "{name}");
        clone
            .run(&["verify", "localized/main"])
            .success()
            .stdout_has("as recorded");
        clone.write("README.md", format!("From {name}.\n"));
        let source = clone.commit("more");
        clone.run(&["--in-place", "--no-verify"]).success();
        assert_eq!(parents(&clone, BRANCH), [tip.clone(), source], "{name}");
        // It can be pushed right away, to a repository that has everything.
        let to = format!("{BRANCH}:refs/heads/from/{name}");
        clone.git(&["push", "--quiet", "origin", &to]);
        work.git(&["fsck", "--strict", "--no-dangling"]);
        assert_eq!(
            work.git(&["merge-base", &main, &format!("from/{name}")]),
            main
        );
    }
}

#[test]
fn a_shallow_clone_without_the_branch_begins_it() {
    let project = Project::new();
    let clone = shallow(&project, "clone");
    clone.run(&["--in-place"]).success();
    assert_eq!(parents(&clone, BRANCH), [clone.id("main")]);
    clone
        .run(&["--in-place"])
        .success()
        .stdout_has("nothing to do");
    clone
        .run(&["verify", "localized/main", "--rebuild"])
        .success();
}

#[test]
fn a_shallow_clone_that_lacks_the_record_says_so() {
    let project = Project::new();
    let work = &project.work;
    work.run(&["--in-place"]).success();
    work.git(&["switch", "--quiet", "localized/main"]);
    work.write("other/config.yaml", "a: b\n");
    let by = work.commit("by hand");
    let clone = shallow(&project, "clone");
    fetch(&clone, &["--depth=1"]);
    clone
        .run_unchanged(&["--in-place"])
        .fails(2)
        .stderr_has("no commit of `localized/main` that is in this shallow clone holds a record")
        .stderr_has("git fetch --deepen=100");
    // Nor can the gate tell what the commit on top has changed.
    let verify = ["verify", "origin/localized/main"];
    clone
        .run_unchanged(&verify)
        .fails(2)
        .stdout_has("not everything could be looked at")
        .stderr_has(
            "no commit of `origin/localized/main` that is in this shallow clone holds a record",
        )
        .stderr_has("git fetch --deepen=100");
    fetch(&clone, &["--deepen=100"]);
    clone
        .run_unchanged(&verify)
        .fails(1)
        .stdout_has("other/config.yaml: is not what the message of ");
    clone
        .run_unchanged(&["--in-place"])
        .fails(2)
        .stderr_has(&format!(
            "`localized/main` was edited by hand by {}: `other/config.yaml`",
            &by[..12]
        ));
}

#[test]
fn the_source_is_never_the_branch() {
    let project = Project::new();
    let work = &project.work;
    work.git(&["switch", "--quiet", "--detach"]);
    for args in [
        &["--in-place", "--rev", "main", "--branch", "main"][..],
        &["--in-place", "--rev", "main", "--branch", "refs/heads/main"],
        &["other", "copy", "--rev", "main", "--branch", "main"],
    ] {
        work.run_unchanged(args)
            .fails(2)
            .stderr_has("`main` is the source, and cannot be the branch to commit to")
            .stderr_has("--branch localized/main");
    }
    // Detached, and without a name to begin with.
    work.run_unchanged(&["--in-place"])
        .fails(2)
        .stderr_has("--branch NAME");
    work.run(&["--in-place", "--branch", "localized/main"])
        .success();
    work.run(&["--in-place", "--rev", "main"])
        .success()
        .stdout_has("nothing to do");
}

#[test]
fn a_bare_repository_has_the_branch_too() {
    let project = Project::new();
    let bare = project.sandbox.path("bare.git");
    let (from, to) = (
        project.work.path().to_str().unwrap(),
        bare.to_str().unwrap(),
    );
    project.work.git(&["clone", "--quiet", "--bare", from, to]);
    let bare = Repo::new(&project.sandbox, bare);
    bare.run(&["--in-place"]).success();
    bare.run(&["--in-place"])
        .success()
        .stdout_has("nothing to do");
    bare.run(&["--in-place", "--branch", "main"])
        .fails(2)
        .stderr_has("`main` is the source");
    bare.run(&["verify", "localized/main", "--rebuild"])
        .success();
    bare.run(&["tree", "--rev", "localized/main"])
        .success()
        .stdout_has("(from https://example.com/");
    let place = project.sandbox.path("deployed");
    bare.run(&["--in-place", "--worktree", place.to_str().unwrap()])
        .success();
    let deployed = Repo::new(&project.sandbox, place);
    assert_eq!(deployed.git(&["status", "--porcelain"]), "");
    assert_eq!(deployed.id("HEAD"), bare.id(BRANCH));
}

#[test]
fn several_remotes_are_a_question() {
    let project = Project::new();
    let work = &project.work;
    work.run(&["--in-place"]).success();
    let clone = project.sandbox.clone_of(work, "clone");
    clone.git(&["remote", "rename", "origin", "one"]);
    clone.git(&["config", "--unset", "branch.main.remote"]);
    clone.git(&["remote", "add", "two", work.path().to_str().unwrap()]);
    clone.git(&["fetch", "--quiet", "two"]);
    clone
        .run_unchanged(&["--in-place"])
        .fails(2)
        .stderr_has("several remotes have a branch `localized/main`")
        .stderr_has("git branch --track localized/main REMOTE/localized/main");
    clone.git(&[
        "branch",
        "-q",
        "--track",
        "localized/main",
        "two/localized/main",
    ]);
    clone
        .run(&["--in-place"])
        .success()
        .stdout_has("nothing to do");
}

#[test]
fn other_formats_of_repositories_work_the_same() {
    for format in ["--object-format=sha256", "--ref-format=reftable"] {
        let project = Project::new();
        let path = project.sandbox.path("other");
        let there = path.to_str().unwrap();
        let made =
            project
                .work
                .try_git(&["init", "--quiet", "--initial-branch=main", format, there]);
        if made.status != 0 {
            // A git that does not know the format yet.
            continue;
        }
        let repo = Repo::new(&project.sandbox, path);
        let place = project.sandbox.path("deployed");
        let follow = ["--in-place", "--worktree", place.to_str().unwrap()];
        for version in ["v1", "v1 "] {
            repo.write("base/kustomization.yaml", crate::support::base_of("v1"));
            repo.write("base/config.yaml", crate::support::config(version.trim()));
            repo.write("README.md", version);
            let source = repo.commit("more");
            repo.run(&follow).success();
            assert_eq!(parents(&repo, BRANCH).last(), Some(&source), "{format}");
            let tip = repo.id(BRANCH);
            repo.run(&follow).success().stdout_has("nothing to do");
            assert_eq!(repo.id(BRANCH), tip, "{format}");
        }
        repo.run(&["verify", "localized/main", "--rebuild"])
            .success();
        repo.git(&["fsck", "--strict", "--no-dangling"]);
        let deployed = Repo::new(&project.sandbox, place);
        assert_eq!(deployed.git(&["status", "--porcelain"]), "", "{format}");
    }
}
