//! `.pre-commit-hooks.yaml`, with the real pre-commit and the real prek.

use std::fs;
use std::path::Path;

use super::{LOCAL, REMOTE, ROOT, clean, stage};
use crate::support::{Output, Repo, Running, Sandbox, Transcript, base_of, config, tool};

/// A repository that has its hooks from the framework `program`.
struct Framework {
    program: &'static str,
    sandbox: Sandbox,
    work: Repo,
}

impl Framework {
    /// Returns a repository with a clean commit, and `id` of our hooks installed, once for each program
    /// that there is.
    fn each(id: &str) -> impl Iterator<Item = Framework> {
        ["pre-commit", "prek"]
            .into_iter()
            .filter(|program| tool(program).is_some())
            .map(move |program| Framework::new(program, id))
    }

    fn new(program: &'static str, id: &str) -> Framework {
        let sandbox = Sandbox::new();
        sandbox.offer_itself();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(".pre-commit-hooks.yaml");
        let hooks = sandbox.repo("hooks");
        hooks.write(".pre-commit-hooks.yaml", fs::read(source).unwrap());
        hooks.commit("hooks");
        hooks.git(&["tag", "v1"]);

        let work = sandbox.repo("work");
        work.write(
            ".pre-commit-config.yaml",
            format!(
                "default_install_hook_types: [pre-commit, pre-merge-commit, pre-push]\n\
                 repos:\n  - repo: {}\n    rev: v1\n    hooks: [{{id: {id}}}]\n",
                hooks.path().display()
            ),
        );
        clean(&work);
        let framework = Framework { program, sandbox, work };
        framework.run(&["install"]).success();
        framework
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = self.sandbox.command(self.program, self.work.path());
        Running::start(command.args(args)).wait()
    }

    /// Asserts that our check has refused this.
    #[track_caller]
    fn refused(&self, output: &Output, rule: &str) {
        output.fails(1);
        let said = format!("{}{}", output.stdout, output.stderr);
        assert!(said.contains("Failed") && said.contains(rule), "{}: {output:?}", self.program);
    }
}

#[test]
fn a_commit_is_blocked_or_passes() {
    for framework in Framework::each("kustomize-localize-system") {
        let work = &framework.work;
        stage(work, ROOT, REMOTE);
        let state = work.state().without("index");
        framework.refused(&work.try_git(&["commit", "-m", "x"]), "remote-reference");
        state.assert_same(&work.state().without("index"));
        // The fix is on disk, but not staged.
        work.write(ROOT, LOCAL);
        framework.refused(&work.try_git(&["commit", "-m", "x"]), "remote-reference");
        work.git(&["add", "."]);
        work.write("note", "x");
        work.git(&["add", "note"]);
        work.git(&["commit", "-m", "x"]);
        // Another name of the file.
        stage(work, "other/Kustomization", REMOTE);
        framework.refused(&work.try_git(&["commit", "-m", "x"]), "other/Kustomization");
    }
}

#[test]
fn a_clean_checkout_is_still_checked() {
    for framework in Framework::each("kustomize-localize-system") {
        let work = &framework.work;
        framework.run(&["run", "--all-files"]).success();
        work.write(ROOT, REMOTE);
        work.git(&["commit", "--quiet", "--no-verify", "-am", "remote"]);
        let output = framework.run(&["run", "--all-files"]);
        framework.refused(&output, "remote-reference");
        let output = framework.run(&["run", "--hook-stage", "manual", "--all-files"]);
        framework.refused(&output, "remote-reference");
        let output = framework.run(&["run", "--from-ref", "HEAD^", "--to-ref", "HEAD"]);
        framework.refused(&output, "remote-reference");
    }
}

#[test]
fn a_merge_and_a_push_are_checked_for_what_they_bring() {
    for framework in Framework::each("kustomize-localize-system") {
        let work = &framework.work;
        work.git(&["init", "--quiet", "--bare", "-b", "main", "../server.git"]);
        work.git(&["remote", "add", "origin", "../server.git"]);
        // With nothing there, pre-commit names no commit, but the branch.
        work.git(&["push", "origin", "main"]);
        work.git(&["switch", "--quiet", "-c", "other"]);
        stage(work, "b/kustomization.yaml", REMOTE);
        work.git(&["commit", "--quiet", "--no-verify", "-m", "remote"]);
        // The staged files are clean, the pushed ones are not.
        work.git(&["rm", "--quiet", "b/kustomization.yaml"]);
        let output = work.try_git(&["push", "origin", "other"]);
        framework.refused(&output, "remote-reference");
        work.git(&["reset", "--quiet", "--hard"]);
        work.git(&["switch", "--quiet", "main"]);
        stage(work, "note", "x");
        work.git(&["commit", "--quiet", "-m", "note"]);
        let output = work.try_git(&["merge", "-m", "merge", "other"]);
        framework.refused(&output, "remote-reference");
        work.git(&["merge", "--abort"]);
        work.git(&["push", "origin", "main"]);
        // A first push of a branch that is not clean, to where nothing is.
        work.git(&["init", "--quiet", "--bare", "../empty.git"]);
        work.git(&["remote", "add", "empty", "../empty.git"]);
        let output = work.try_git(&["push", "empty", "other"]);
        framework.refused(&output, "remote-reference");
    }
}

#[test]
fn it_can_be_tried_without_a_configuration() {
    for framework in Framework::each("kustomize-localize-system") {
        let hooks = framework.sandbox.path("hooks");
        let hooks = hooks.to_str().unwrap();
        let work = &framework.work;
        work.write(ROOT, REMOTE);
        work.git(&["commit", "--quiet", "--no-verify", "-am", "remote"]);
        let output = framework.run(&["try-repo", hooks, "kustomize-localize-system", "--all-files"]);
        framework.refused(&output, "remote-reference");
    }
}

#[test]
fn our_own_hook_is_not_put_where_the_framework_writes() {
    let mut transcript = Transcript::default();
    for framework in Framework::each("kustomize-localize-system") {
        let work = &framework.work;
        let before = work.read(".git/hooks/pre-commit");
        let output = work.run(&["hook", "install", "pre-commit"]);
        transcript.add(output.fails(2));
        assert_eq!(work.read(".git/hooks/pre-commit"), before);
        output.stderr_has("git kustomize-localize help hook");
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize hook install pre-commit
        error: not overwriting the existing hook `/home/me/work/.git/hooks/pre-commit`
          hint: to run both, add to it: git kustomize-localize hook run pre-commit "$@" || exit $?
          hint: for a hook of husky, lefthook, pre-commit or prek: git kustomize-localize help hook
    "#]]);
}

#[test]
fn what_is_not_locked_is_locked_and_not_committed_yet() {
    for framework in Framework::each("kustomize-localize-system") {
        let (sandbox, work) = (&framework.sandbox, &framework.work);
        // What it runs, with the program that is here.
        let hooks = fs::read_to_string(sandbox.path("hooks/.pre-commit-hooks.yaml")).unwrap();
        let (_, lock) = hooks.split_once("- id: kustomize-localize-lock\n").unwrap();
        let lock = lock.replace("language: rust", "language: system");
        let ours = format!("repos:\n  - repo: local\n    hooks:\n    - id: lock\n{}", indented(&lock));
        let configuration = work.read(".pre-commit-config.yaml").replace("repos:\n", &ours);
        stage(work, ".pre-commit-config.yaml", &configuration);
        let upstream = sandbox.repo("upstream/acme/remote.git");
        let base = format!("file://{}/", sandbox.path("upstream").display());
        sandbox.pretend("https://example.com/", &base);
        for version in ["v1", "v2"] {
            upstream.write("kustomization.yaml", format!("namePrefix: {version}-\n"));
            upstream.commit(version);
            upstream.git(&["tag", version]);
            stage(work, "example/base/config.yaml", &config("base"));
            stage(work, "example/base/kustomization.yaml", &base_of(version));
            let head = work.id("HEAD");
            let output = work.try_git(&["commit", "-m", version]);
            output.fails(1);
            let said = format!("{}{}", output.stdout, output.stderr);
            assert!(said.contains("Failed") && said.contains("  added https:"), "{said}");
            assert_eq!(work.id("HEAD"), head);
            work.git(&["add", "kustomize-localize.lock"]);
            work.git(&["commit", "-m", version]);
        }
        stage(work, "README.md", "No kustomization.\n");
        work.git(&["commit", "-m", "readme"]);
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// Builds the program as the frameworks do, from a clone of this repository. What is not committed is not in the clone.
#[test]
#[ignore = "takes minutes"]
fn the_hook_that_is_compiled_works() {
    for framework in Framework::each("kustomize-localize") {
        let (sandbox, work) = (&framework.sandbox, &framework.work);
        fs::remove_file(sandbox.path("bin/git-kustomize-localize")).unwrap();
        for name in ["CARGO_HOME", "RUSTUP_HOME"] {
            let home = std::env::home_dir().unwrap();
            let default = home.join(if name == "CARGO_HOME" { ".cargo" } else { ".rustup" });
            sandbox.set(name, std::env::var_os(name).unwrap_or(default.into()));
        }
        // As it is, but for what takes most of the time.
        for (name, value) in [("OPT_LEVEL", "0"), ("LTO", "off"), ("CODEGEN_UNITS", "256")] {
            sandbox.set(&format!("CARGO_PROFILE_RELEASE_{name}"), value);
        }
        let configuration = work.read(".pre-commit-config.yaml");
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let head = sandbox.git(here, &["rev-parse", "HEAD"]);
        let hooks = sandbox.path("hooks");
        work.write(
            ".pre-commit-config.yaml",
            configuration
                .replace(hooks.to_str().unwrap(), here.to_str().unwrap())
                .replace("rev: v1", &format!("rev: {head}")),
        );
        work.git(&["add", "."]);
        // No deadline: it compiles.
        let mut install = sandbox.command(framework.program, work.path());
        assert!(install.arg("install-hooks").status().unwrap().success(), "{}", framework.program);
        framework.run(&["run", "--all-files"]).success();
        stage(work, ROOT, REMOTE);
        framework.refused(&work.try_git(&["commit", "-m", "x"]), "remote-reference");
    }
}
