//! What `.github/release.sh` made, installed as its users install it. `KUSTOMIZE_LOCALIZE_SHIPPED` names the directory,
//! `KUSTOMIZE_LOCALIZE_WHEELS` one with what pre-commit builds its own package with.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Output, Repo, Running, Sandbox, config, tool};

const NAME: &str = "git-kustomize-localize";
const ARCHIVE: &str = "git-kustomize-localize-x86_64-unknown-linux-musl";
const REMOTE: &str = "resources:\n  - https://example.com/acme/app//deploy?ref=v1\n";

/// Returns the directory of what is shipped.
pub(crate) fn shipped() -> PathBuf {
    env::var_os("KUSTOMIZE_LOCALIZE_SHIPPED").unwrap().into()
}

/// Runs a program in the sandbox.
#[track_caller]
fn run(sandbox: &Sandbox, program: impl AsRef<Path>, args: &[&str]) -> Output {
    let mut command = sandbox.command(program.as_ref(), &sandbox.path(""));
    let output = Running::start(command.args(args)).wait();
    output.success();
    output
}

/// Unpacks the archive, and returns its directory.
fn unpacked(sandbox: &Sandbox, shipped: &Path) -> PathBuf {
    let archive = shipped.join(format!("{ARCHIVE}.tar.gz"));
    run(sandbox, "tar", &["-xzf", archive.to_str().unwrap()]);
    sandbox.path(ARCHIVE)
}

/// Returns a repository with a reference that needs the network.
fn repository(sandbox: &Sandbox) -> Repo {
    let work = sandbox.repo("work");
    work.write("app/kustomization.yaml", REMOTE);
    work.git(&["add", "."]);
    work
}

/// Asserts that `git kustomize-localize` is found, and works.
#[track_caller]
fn works(sandbox: &Sandbox, work: &Repo) {
    let version = work.git(&["kustomize-localize", "--version"]);
    assert_eq!(version, format!("{NAME} {}", env!("CARGO_PKG_VERSION")));
    sandbox.try_git(work.path(), &["kustomize-localize", "check"]).fails(1).stdout_has("app/kustomization.yaml:2:5");
}

#[test]
#[ignore = "needs a release"]
fn the_archive_is_complete() {
    let shipped = shipped();
    let sandbox = Sandbox::new();
    let directory = unpacked(&sandbox, &shipped);
    sandbox.offer(NAME, &directory.join(NAME));
    works(&sandbox, &repository(&sandbox));
    for file in [
        "README.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "man/man1/git-kustomize-localize.1",
        "completions/git-kustomize-localize.bash",
        "completions/git-kustomize-localize.fish",
        "completions/git-kustomize-localize.zsh",
    ] {
        assert!(directory.join(file).is_file(), "{file}");
    }
    let licenses = fs::read_to_string(directory.join("THIRD-PARTY-LICENSES.txt")).unwrap();
    for text in ["\ngix 0.", "\nring 0.", "Permission is hereby granted"] {
        assert!(licenses.contains(text), "{text}");
    }
    assert!(!licenses.contains("\nproptest "), "it is linked into no program");
}

#[test]
#[ignore = "needs a release"]
fn the_wheel_installs_the_same_program() {
    let shipped = shipped();
    let sandbox = Sandbox::new();
    run(&sandbox, "python3", &["-m", "venv", "environment"]);
    let pip = sandbox.path("environment/bin/pip");
    let from = shipped.to_str().unwrap();
    run(&sandbox, pip, &["install", "--quiet", "--no-index", "--find-links", from, NAME]);
    let program = sandbox.path("environment/bin").join(NAME);
    let archived = unpacked(&sandbox, &shipped).join(NAME);
    assert!(fs::read(&program).unwrap() == fs::read(archived).unwrap());
    sandbox.offer(NAME, &program);
    works(&sandbox, &repository(&sandbox));
}

#[test]
#[ignore = "needs a release"]
fn the_debian_package_installs_the_same_program() {
    let shipped = shipped();
    let Some(dpkg) = tool("dpkg-deb") else { return };
    let sandbox = Sandbox::new();
    let package = shipped.join(format!("{NAME}_{}_amd64.deb", env!("CARGO_PKG_VERSION")));
    let package = package.to_str().unwrap();
    run(&sandbox, &dpkg, &["--extract", package, "root"]);
    let depends = run(&sandbox, &dpkg, &["--field", package, "Depends"]);
    assert_eq!(depends.stdout.trim(), "git");
    let program = sandbox.path("root/usr/bin").join(NAME);
    let archived = unpacked(&sandbox, &shipped).join(NAME);
    assert!(fs::read(&program).unwrap() == fs::read(archived).unwrap());
    sandbox.offer(NAME, &program);
    works(&sandbox, &repository(&sandbox));
    for file in [
        "share/man/man1/git-kustomize-localize.1",
        "share/bash-completion/completions/git-kustomize-localize",
        "share/zsh/vendor-completions/_git-kustomize-localize",
        "share/fish/vendor_completions.d/git-kustomize-localize.fish",
        "share/doc/git-kustomize-localize/THIRD-PARTY-LICENSES.txt",
    ] {
        assert!(sandbox.path("root/usr").join(file).is_file(), "{file}");
    }
}

#[test]
#[ignore = "needs a release"]
fn a_hook_installs_the_wheel_and_compiles_nothing() {
    let shipped = shipped();
    for program in ["pre-commit", "prek"] {
        if tool(program).is_none() {
            continue;
        }
        let sandbox = Sandbox::new();
        // The index is a folder: nothing comes from elsewhere, and there is no cargo that could compile.
        let wheels = env::var("KUSTOMIZE_LOCALIZE_WHEELS").unwrap();
        sandbox.set("PIP_NO_INDEX", "1");
        sandbox.set("PIP_FIND_LINKS", format!("{} {wheels}", shipped.display()));
        sandbox.set("UV_NO_INDEX", "1");
        sandbox.set("UV_OFFLINE", "1");
        sandbox.set("UV_PYTHON_DOWNLOADS", "never");
        sandbox.set("UV_FIND_LINKS", shipped.to_str().unwrap());
        sandbox.script("cargo", "exit 1");
        let work = sandbox.repo("work");
        work.write(
            ".pre-commit-config.yaml",
            format!(
                "repos:\n  - repo: local\n    hooks:\n      - id: kustomize-localize\n        \
                 name: kustomize builds need no network\n        language: python\n        \
                 additional_dependencies: [{NAME}=={}]\n        \
                 entry: git-kustomize-localize hook run framework\n        \
                 always_run: true\n        pass_filenames: false\n",
                env!("CARGO_PKG_VERSION")
            ),
        );
        work.write("app/kustomization.yaml", "resources:\n  - config.yaml\n");
        work.write("app/config.yaml", config("app"));
        work.commit("clean");
        let mut command = sandbox.command(program, work.path());
        Running::start(command.arg("install")).wait().success();
        work.write("note", "x");
        work.git(&["add", "."]);
        work.try_git(&["commit", "-m", "clean"]).success();
        work.write("app/kustomization.yaml", REMOTE);
        work.git(&["add", "."]);
        let output = work.try_git(&["commit", "-m", "remote"]);
        output.fails(1);
        let said = format!("{}{}", output.stdout, output.stderr);
        assert!(said.contains("remote-reference"), "{program}: {said}");
    }
}
