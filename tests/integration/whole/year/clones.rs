//! The branch on other machines: in clones that hold as little as they can, and in two at the same moment.

use super::{BASE, BRANCH, COPY, IN_PLACE, LOCK, remotes_of};
use crate::support::{Output, Project, Repo, Transcript, base_of, full};

/// A project on a server.
struct Hosted {
    project: Project,
    origin: Repo,
    args: &'static [&'static str],
}

impl Hosted {
    fn new(args: &'static [&'static str]) -> Hosted {
        let project = Project::new();
        project.work.write("README.md", "Two commits.\n");
        project.work.run_as_is(&["lock"]).success();
        project.work.commit("more");
        let origin = project.sandbox.path("origin.git");
        let path = origin.to_str().unwrap();
        project.work.git(&["clone", "-q", "--bare", ".", path]);
        project.work.git(&["remote", "add", "origin", path]);
        Hosted { origin: Repo::new(&project.sandbox, origin), project, args }
    }

    /// Pushes another commit of main.
    fn push_main(&self, text: &str) {
        let work = &self.project.work;
        work.write("README.md", text);
        work.run_as_is(&["lock"]).success();
        work.commit("Write more");
        work.git(&["push", "-q", "origin", "main"]);
    }

    /// Returns a clone that holds one commit of main, and of the branch that many.
    fn clone(&self, name: &str, depth: Option<u32>) -> Repo {
        let sandbox = &self.project.sandbox;
        let path = sandbox.path(name);
        let url = format!("file://{}", self.origin.path().display());
        let to = path.to_str().unwrap();
        let clone = ["clone", "-q", "--depth=1", "-b", "main", &url, to];
        sandbox.git(&sandbox.path(""), &clone);
        let clone = Repo::new(sandbox, path);
        fetch(&clone, depth);
        clone
    }

    /// Brings the branch up to date in a new clone and pushes it, without force. Returns what was said.
    #[track_caller]
    fn job(&self, name: &str, depth: Option<u32>) -> Output {
        let clone = self.clone(name, depth);
        let output = clone.run(self.args);
        output.success();
        clone.run(&["verify", "localized/main"]).success();
        clone.git(&["push", "-q", "origin", "localized/main"]);
        assert_eq!(clone.id(BRANCH), self.origin.id(BRANCH));
        output
    }

    /// Asserts that nothing is to do in a new clone, which then has the branch.
    #[track_caller]
    fn nothing_to_do(&self, name: &str, depth: Option<u32>) {
        let tip = self.origin.id(BRANCH);
        self.job(name, depth).stdout_has("nothing to do");
        assert_eq!(self.origin.id(BRANCH), tip);
    }

    fn parents(&self) -> String {
        self.origin.git(&["log", "-1", "--format=%P", BRANCH])
    }

    /// Asserts that the tip is what a clone that holds everything makes of main, and sound.
    #[track_caller]
    fn never_drifts(&self, name: &str) {
        let clone = self.project.sandbox.clone_of(&self.origin, name);
        let more = ["--branch", "beginning"];
        // References that only the branch knows are decided by its lock.
        let (directory, lock) = match self.args {
            IN_PLACE => ("", LOCK),
            _ => ("localized-overlay", "localized-overlay/kustomize-localize.lock"),
        };
        let lock = clone.show("origin/localized/main", lock);
        clone.write(LOCK, remotes_of(&lock).unwrap());
        clone.commit("Lock");
        clone.run(&[self.args, &more].concat()).success();
        let [made, begun] = ["origin/localized/main", "beginning"].map(|rev| clone.id(&format!("{rev}:{directory}")));
        assert_eq!(made, begun);
        clone.git(&["fsck", "--strict"]);
    }
}

/// Fetches main and the branch, with that many commits of each.
fn fetch(clone: &Repo, depth: Option<u32>) {
    let depth = depth.map(|depth| format!("--depth={depth}"));
    let mut fetch = vec!["fetch", "-q"];
    fetch.extend(depth.as_deref());
    fetch.extend([
        "origin",
        "+refs/heads/main:refs/remotes/origin/main",
        "+refs/heads/localized/*:refs/remotes/origin/localized/*",
    ]);
    clone.git(&fetch);
}

#[test]
fn shallow_clones_follow() {
    let mut ways = vec![(IN_PLACE, Some(1)), (COPY, None)];
    if full() {
        ways.extend([(IN_PLACE, None), (COPY, Some(1))]);
    }
    for (args, depth) in ways {
        follows_in_shallow_clones(args, depth);
    }
}

fn follows_in_shallow_clones(args: &'static [&'static str], depth: Option<u32>) {
    let hosted = Hosted::new(args);
    let work = &hosted.project.work;
    hosted.job("first", depth);
    assert_eq!(hosted.parents(), work.id("main"));
    hosted.nothing_to_do("idle", depth);
    // Main goes on, by more than a shallow clone sees.
    hosted.push_main("three");
    hosted.project.second_version();
    work.write(BASE, base_of("v2"));
    hosted.push_main("four");
    let tip = hosted.origin.id(BRANCH);
    hosted.job("second", depth).lacks("nothing to do");
    assert_eq!(hosted.parents(), format!("{tip} {}", work.id("main")));
    hosted.never_drifts("full");
    hosted.nothing_to_do("idle-again", depth);
    // A manual commit, between the source and the commit that discards it.
    let hand = hosted.project.sandbox.clone_of(&hosted.origin, "hand");
    hand.git(&["switch", "-q", "localized/main"]);
    hand.write("other/hotfix.yaml", "a: b\n");
    let by = hand.commit("By hand");
    hand.git(&["push", "-q", "origin", "localized/main"]);
    let clone = hosted.clone("refused", depth);
    let output = clone.run(args);
    output.fails(2).stderr_has("error: ");
    if depth.is_some() {
        output.stderr_has("no commit of `localized/main` in this shallow clone has a record");
        let hint = "hint: ";
        let hint = output.stderr.split_once(hint).expect(hint).1;
        let command: Vec<&str> = hint.lines().next().unwrap().split(' ').collect();
        clone.git(&command[1..]);
    }
    clone.run(args).fails(2).stderr_has(&format!("edited by hand by {}", &by[..12])).stderr_has("other/hotfix.yaml");
    clone.run(&[args, &["--overwrite"]].concat()).success();
    clone.git(&["push", "-q", "origin", "localized/main"]);
    assert_eq!(hosted.parents(), format!("{by} {}", work.id("main")));
    let idle = hosted.clone("idle-at-last", depth);
    idle.run(args).success().stdout_has("nothing to do");
    idle.run(&["verify", "localized/main"]).success();
    hosted.never_drifts("full-again");
}

#[test]
fn the_second_of_two_clones_begins_again() {
    let mut transcript = Transcript::default();
    for args in [IN_PLACE, COPY] {
        let hosted = Hosted::new(args);
        hosted.job("first", None);
        hosted.push_main("three");
        let slow = hosted.clone("slow", None);
        hosted.push_main("four");
        let fast = hosted.clone("fast", None);
        let running = [&slow, &fast].map(|clone| clone.start(args));
        for running in running {
            running.wait().success();
        }
        fast.git(&["push", "-q", "origin", "localized/main"]);
        let tip = fast.id(BRANCH);
        let push = ["push", "origin", "localized/main"];
        slow.try_git(&push).fails(1).stderr_has("rejected");
        // The hint comes before anything else is done.
        fetch(&slow, None);
        transcript.add(slow.run_unchanged(args).fails(2));
        slow.git(&["branch", "-q", "-f", "localized/main", "origin/localized/main"]);
        // Its main is older than what is deployed by now.
        transcript.add(slow.run_unchanged(args).fails(2));
        slow.git(&["pull", "-q", "--ff-only", "origin", "main"]);
        transcript.add(slow.run(args).success());
        assert_eq!(slow.id(BRANCH), tip);
        hosted.push_main("five");
        slow.git(&["pull", "-q", "--ff-only", "origin", "main"]);
        slow.run(args).success();
        slow.git(&push);
        let main = hosted.project.work.id("main");
        assert_eq!(hosted.parents(), format!("{tip} {main}"));
        hosted.never_drifts("full");
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize branch --no-verify
        error: branch `localized/main` and `origin/localized/main` have diverged
          hint: to discard the local commits: git branch -f localized/main origin/localized/main
        $ git kustomize-localize branch --no-verify
        error: `localized/main` was localized from <0>, which is newer than HEAD (<1>)
          hint: git pull
          hint: if it was reset, localize it anyway: git kustomize-localize branch --rev HEAD --branch localized/main
        $ git kustomize-localize branch --no-verify
        nothing to do: branch localized/main (<0>) already has <1> localized
        $ git kustomize-localize example/overlay --scope example --no-verify
        error: branch `localized/main` and `origin/localized/main` have diverged
          hint: to discard the local commits: git branch -f localized/main origin/localized/main
        $ git kustomize-localize example/overlay --scope example --no-verify
        error: `localized/main` was localized from <0>, which is newer than HEAD (<1>)
          hint: git pull
          hint: if it was reset, localize it anyway: --rev HEAD
        $ git kustomize-localize example/overlay --scope example --no-verify
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
    "#]]);
}
