//! `--worktree`: the branch checked out in a linked worktree, which changes together with it.

use std::fs;
use std::path::PathBuf;

use crate::support::{Output, Project, Repo, Transcript, base_of};

const IN_PLACE: [&str; 2] = ["branch", "--no-verify"];
const SERVICE: &str = "example/base/localized-files/example.com/acme/remote/v1/service.yaml";

/// A project, and where the worktree is to be.
struct Deployed {
    project: Project,
    place: PathBuf,
}

impl Deployed {
    fn new() -> Deployed {
        let project = Project::new();
        let place = project.sandbox.path("deployed");
        Deployed { project, place }
    }

    /// Localizes in place, with the worktree.
    fn follow(&self, more: &[&str]) -> Output {
        let there = ["--worktree", self.place.to_str().unwrap()];
        let args = [&IN_PLACE[..], &there, more].concat();
        self.project.work.run(&args)
    }

    /// Asserts that this changes nothing.
    #[track_caller]
    fn refused(&self, refusals: &mut Transcript, more: &[&str]) {
        self.project.work.lock();
        let before = self.project.work.state();
        refusals.add(self.follow(more).fails(2));
        before.assert_same(&self.project.work.state());
    }

    /// Returns the worktree.
    fn repo(&self) -> Repo {
        Repo::new(&self.project.sandbox, self.place.clone())
    }

    /// Asserts that the worktree has just what the branch has.
    #[track_caller]
    fn is_clean(&self) {
        let deployed = self.repo();
        assert_eq!(deployed.git(&["status", "--porcelain", "--branch"]), "## localized/main");
        assert_eq!(deployed.id("HEAD"), self.project.work.id("localized/main"));
    }
}

#[test]
fn it_is_made_and_follows() {
    let deployed = Deployed::new();
    let (work, place) = (&deployed.project.work, &deployed.place);
    // Also if there is nothing new for the branch.
    work.run(&IN_PLACE).success();
    let tip = work.id("localized/main");
    let said = format!("  checked out at {}\n", place.display());
    let mut transcript = Transcript::default();
    for _ in 0..2 {
        transcript
            .add(deployed.follow(&[]).success().stdout_has("nothing to do: branch localized/main (").stdout_has(&said));
        assert_eq!(work.id("localized/main"), tip);
        deployed.is_clean();
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize branch --no-verify --worktree /home/me/deployed
        nothing to do: branch localized/main (<0>) already has <1> localized
          not verified: --no-verify
          checked out at /home/me/deployed
    "#]]);
    assert!(place.join(SERVICE).is_file());
    let main = work.git(&["status", "--porcelain", "--branch"]);
    assert_eq!(main, "## main");
    deployed.project.second_version();
    work.write("example/base/kustomization.yaml", base_of("v2"));
    work.commit("v2");
    // Touched files have not changed, and untracked ones stay.
    fs::write(place.join("notes.txt"), "mine").unwrap();
    let file = place.join("README.md");
    fs::write(&file, fs::read(&file).unwrap()).unwrap();
    deployed.follow(&[]).success();
    assert!(!place.join(SERVICE).exists());
    fs::remove_file(place.join("notes.txt")).unwrap();
    deployed.is_clean();
    // Without it, the branch that is checked out does not move.
    work.write("README.md", "more");
    work.commit("more");
    work.run_unchanged(&IN_PLACE).fails(2).says(expect![[r#"
        error: branch `localized/main` is checked out at `/home/me/deployed`, whose files would not be updated
          hint: check out another branch there, or commit to another one: `--branch NAME`
          hint: or update its files as well: --worktree /home/me/deployed
    "#]]);
    deployed.follow(&[]).success();
    deployed.is_clean();
    // From a sub-directory, and for a copy, in a directory that is empty.
    work.git(&["worktree", "remove", "--force", place.to_str().unwrap()]);
    fs::create_dir(place).unwrap();
    let args = "overlay ../localized --scope . --no-verify --branch copy --worktree ../../deployed";
    let args: Vec<&str> = args.split(' ').collect();
    let inside = work.path().join("example");
    deployed.project.sandbox.run(&inside, &args).success();
    assert!(place.join("localized/overlay/kustomization.yaml").is_file());
}

#[test]
fn obstacles_are_found_before_anything_changes() {
    let mut refusals = Transcript::default();
    let deployed = Deployed::new();
    let (work, place) = (&deployed.project.work, &deployed.place);
    fs::create_dir(place).unwrap();
    fs::write(place.join("mine"), "").unwrap();
    deployed.refused(&mut refusals, &[]);
    assert_eq!(fs::read_dir(place).unwrap().count(), 1);
    fs::remove_dir_all(place).unwrap();
    fs::write(place, "").unwrap();
    deployed.refused(&mut refusals, &[]);
    fs::remove_file(place).unwrap();
    work.linked("deployed", &["-b", "other"]);
    deployed.refused(&mut refusals, &[]);
    work.git(&["worktree", "remove", place.to_str().unwrap()]);
    work.run_unchanged(&["branch", "--no-verify", "--worktree", "."]).fails(2).says(expect![[r#"
        error: `.` exists, and is not a linked worktree of `localized/main`
          hint: choose an empty or a new directory
    "#]]);

    deployed.follow(&[]).success();
    let tip = work.id("localized/main");
    work.write("README.md", "more");
    work.commit("more");
    // Changes of its own, staged or not.
    let repo = deployed.repo();
    repo.write(SERVICE, "changed");
    deployed.refused(&mut refusals, &[]);
    repo.git(&["add", "--all"]);
    deployed.refused(&mut refusals, &[]);
    repo.git(&["reset", "-q", "--hard"]);
    // An untracked file in the place of a new one.
    work.write("fresh.yaml", "a: b");
    work.commit("fresh");
    repo.write("fresh.yaml", "mine");
    deployed.refused(&mut refusals, &[]);
    // Before a push, too.
    let origin = deployed.project.sandbox.clone_with(work, "origin.git", &["--bare"]);
    work.git(&["remote", "add", "origin", origin.path().to_str().unwrap()]);
    refusals.add(deployed.follow(&["--push"]).fails(2));
    assert_eq!(origin.id("localized/main"), tip);
    work.git(&["remote", "remove", "origin"]);
    assert_eq!(repo.read("fresh.yaml"), "mine");
    assert_eq!(work.id("localized/main"), tip);
    repo.remove("fresh.yaml");
    deployed.is_clean();
    deployed.follow(&[]).success();
    deployed.is_clean();
    refusals.says(expect![[r#"
        $ git kustomize-localize branch --no-verify --worktree /home/me/deployed
        error: `/home/me/deployed` exists, and is not a linked worktree of `localized/main`
          hint: choose an empty or a new directory
        $ git kustomize-localize branch --no-verify --worktree /home/me/deployed
        error: the worktree `/home/me/deployed` has uncommitted changes
          hint: look at them: git -C /home/me/deployed status
          hint: to discard them: git -C /home/me/deployed reset --hard
        $ git kustomize-localize branch --no-verify --worktree /home/me/deployed
        $ git kustomize-localize branch --no-verify --worktree /home/me/deployed --push
        error: cannot update the worktree `/home/me/deployed`: Untracked working tree file 'fresh.yaml' would be overwritten by merge.
          hint: look at it: git -C /home/me/deployed status
    "#]]);
}

#[test]
fn a_worktree_that_is_not_at_its_remote_is_refused_with_a_hint() {
    let deployed = Deployed::new();
    let (sandbox, work) = (&deployed.project.sandbox, &deployed.project.work);
    work.run(&["lock"]).success();
    work.commit("lock");
    deployed.follow(&[]).success();
    let origin = sandbox.clone_with(work, "origin.git", &["--bare"]);
    work.git(&["remote", "add", "origin", origin.path().to_str().unwrap()]);
    let mut transcript = Transcript::default();
    for local in ["", "mine"] {
        // Somebody else localizes the next commit, and here perhaps another one.
        work.write("README.md", format!("More{local}.\n"));
        work.commit("more");
        work.git(&["push", "-q", "origin", "main"]);
        let clone = sandbox.clone_of(&origin, &format!("clone{local}"));
        clone.run(&["branch", "--no-verify", "--push"]).success();
        if !local.is_empty() {
            deployed.follow(&["-m", local]).success();
        }
        work.git(&["fetch", "-q"]);
        let output = deployed.follow(&[]);
        transcript.add(output.fails(2));
        // The command that the hint ends with.
        let command = output.stderr.split("git ").last().unwrap();
        work.git(&command.split_whitespace().collect::<Vec<_>>());
        assert_eq!(work.id("localized/main"), origin.id("localized/main"));
        deployed.is_clean();
        deployed.follow(&[]).success();
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize branch --no-verify --worktree /home/me/deployed
        error: branch `localized/main` is behind `origin/localized/main`
          hint: git -C /home/me/deployed merge --ff-only origin/localized/main
        $ git kustomize-localize branch --no-verify --worktree /home/me/deployed
        error: branch `localized/main` and `origin/localized/main` have diverged
          hint: to discard the local commits: git -C /home/me/deployed reset --keep origin/localized/main
    "#]]);
}

#[test]
fn missing_and_existing_worktrees_are_distinguished() {
    let deployed = Deployed::new();
    let work = &deployed.project.work;
    deployed.follow(&[]).success();
    let there = deployed.place.to_str().unwrap();
    // Locked or not makes no difference while it is there.
    work.git(&["worktree", "lock", there]);
    work.write("README.md", "more");
    work.commit("more");
    deployed.follow(&[]).success();
    deployed.is_clean();
    fs::remove_dir_all(&deployed.place).unwrap();
    let forget = ["worktree", "remove", "-f", "-f", there];
    let mut transcript = Transcript::default();
    for output in [deployed.follow(&[]), work.run(&IN_PLACE)] {
        transcript.add(output.fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize branch --no-verify --worktree /home/me/deployed
        error: the worktree `/home/me/deployed` was deleted, and git still lists it
          hint: to remove it, with staged changes: git worktree remove -f -f /home/me/deployed
        $ git kustomize-localize branch --no-verify
        error: branch `localized/main` is checked out at `/home/me/deployed`, whose files would not be updated
          hint: check out another branch there, or commit to another one: `--branch NAME`
          hint: that directory is gone; to remove its worktree, with staged changes: git worktree remove -f -f /home/me/deployed
    "#]]);
    work.git(&forget);
    deployed.follow(&[]).success();
    deployed.is_clean();
    // One of another branch is refused before anything is written, because git would refuse it at the end.
    work.git(&["-C", there, "switch", "-q", "-c", "other"]);
    fs::remove_dir_all(&deployed.place).unwrap();
    work.write("README.md", "and more");
    work.commit("and more");
    let before = work.state();
    deployed.follow(&[]).fails(2).says(expect![[r#"
        error: the worktree `/home/me/deployed` was deleted, and git still lists it
          hint: to remove it, with staged changes: git worktree remove -f -f /home/me/deployed
    "#]]);
    before.assert_same(&work.state());
}
