//! `.github/package.sh`: what a package holds, and whether the shells find it there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::top;
use crate::support::pages::source;
use crate::support::{Output, Running, Sandbox, program, skip, tool};

/// Calls the script as a row of the table on its page does, with what the builder of packages sets.
fn install(sandbox: &Sandbox, package: &str, variables: &[(&str, &str)]) -> Output {
    let page = source(".github/CONTRIBUTING.md");
    let (_, call) = page.split_once(&format!("| {package} | `")).unwrap();
    let mut call = call.split_once('`').unwrap().0.to_owned();
    // The installation steps of rpm and Homebrew, before a shell sees the files.
    for (name, value) in variables {
        call = call.replace(name, value);
    }
    let script = top().join(".github/package.sh");
    let call = call.replace(".github/package.sh", script.to_str().unwrap());
    let mut shell = sandbox.command("sh", &sandbox.path(""));
    shell.args(["-c", &call]).env("PROGRAM", program());
    Running::start(&mut shell).wait()
}

/// Returns mode and path of everything below `directory`, and where links lead to.
fn listing(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(path) = todo.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let name = path.strip_prefix(directory).unwrap().display().to_string();
        if metadata.is_dir() {
            todo.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        assert!(path.metadata().unwrap().len() > 0, "{name} is empty");
        let is = match fs::read_link(&path) {
            Ok(target) => target.display().to_string(),
            Err(_) => format!("{:o}", metadata.permissions().mode() & 0o777),
        };
        found.insert(name, is);
    }
    found
}

#[test]
fn a_package_holds_the_program_with_pages_and_completions() {
    let rpm = [("%{buildroot}", "root"), ("%{_prefix}", "/usr")];
    for (package, variables, place) in [
        ("Debian", &[][..], "debian/git-kustomize-localize/usr"),
        ("rpm", &rpm, "root/usr"),
        ("Arch", &[("$pkgdir", "pkg")], "pkg/usr"),
        ("Homebrew", &[("#{prefix}", "Cellar/it")], "Cellar/it"),
        ("Nix", &[("$out", "store/it")], "store/it"),
    ] {
        let (zsh, licenses) = match package {
            "Debian" => ("vendor-completions", "doc"),
            _ => ("site-functions", "licenses"),
        };
        let sandbox = Sandbox::new();
        let before = names(&sandbox);
        install(&sandbox, package, variables).success();
        let (pages, found): (BTreeMap<_, _>, BTreeMap<_, _>) =
            listing(&sandbox.path(place)).into_iter().partition(|(name, _)| name.starts_with("share/man/"));
        assert!(pages.len() > 10, "{package}: {pages:?}");
        assert!(pages.values().all(|mode| mode == "644"), "{pages:?}");
        let page = "share/man/man1/git-kustomize-localize.1";
        assert!(pages.contains_key(page), "{page}");
        let name = "git-kustomize-localize";
        let fish = format!("../vendor_completions.d/{name}.fish");
        let expected = [
            (format!("bin/{name}"), "755"),
            (format!("share/bash-completion/completions/{name}"), "644"),
            (format!("share/zsh/{zsh}/_{name}"), "644"),
            (format!("share/fish/vendor_completions.d/{name}.fish"), "644"),
            (format!("share/fish/vendor_conf.d/{name}.fish"), &fish),
            (format!("share/{licenses}/{name}/LICENSE-APACHE"), "644"),
            (format!("share/{licenses}/{name}/LICENSE-MIT"), "644"),
        ];
        let expected = expected.map(|(name, kind)| (name, kind.to_owned()));
        assert_eq!(found, BTreeMap::from(expected), "{package}");
        // Nothing else.
        let first = place.split('/').next().unwrap();
        let mut after = names(&sandbox);
        assert!(after.remove(first), "{after:?}");
        assert_eq!(after, before, "{package}");
    }
}

/// Returns what stands at the top of a sandbox.
fn names(sandbox: &Sandbox) -> BTreeSet<String> {
    let entries = fs::read_dir(sandbox.path("")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Returns a sandbox where it is installed, and the directory `share` of it. Twice: an update replaces all of it.
fn installed() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::new();
    for _ in 0..2 {
        install(&sandbox, "Nix", &[("$out", "prefix")]).success();
    }
    let bin = sandbox.path("prefix/bin/git-kustomize-localize");
    sandbox.offer("git-kustomize-localize", &bin);
    let share = sandbox.path("prefix/share");
    (sandbox, share)
}

#[test]
fn git_finds_the_page_beside_the_program() {
    if tool("man").is_none() {
        return;
    }
    let (sandbox, share) = installed();
    let mut git = sandbox.command("git", &sandbox.path(""));
    git.args(["kustomize-localize", "--help"]).env("MANPATH", share.join("man")).env("MANPAGER", "cat");
    Running::start(&mut git).wait().success().stdout_has("SYNOPSIS");
}

#[test]
fn bash_finds_the_completion_behind_git() {
    let git = Path::new("/usr/share/bash-completion/completions/git");
    if !git.is_file() {
        return skip("git's completion for bash is not installed");
    }
    let (sandbox, share) = installed();
    // Loaded on demand, as bash-completion does.
    let script = format!(
        r#"
_completion_loader() {{ source "{share}/bash-completion/completions/$1"; }}
source {git}
COMP_LINE='git kustomize-localize che'; COMP_POINT=${{#COMP_LINE}}; COMP_TYPE=9; COMP_KEY=9
COMP_WORDS=(git kustomize-localize che); COMP_CWORD=2
__git_wrap__git_main git che kustomize-localize
echo "${{COMPREPLY[*]}}"
"#,
        share = share.display(),
        git = git.display(),
    );
    let mut bash = sandbox.command("bash", &sandbox.path(""));
    assert_eq!(Running::start(bash.args(["-c", &script])).wait().success().stdout.trim(), "check");
}

#[test]
fn fish_finds_the_completion_behind_git_and_alone() {
    if tool("fish").is_none() {
        return;
    }
    let (sandbox, share) = installed();
    sandbox.set("XDG_DATA_DIRS", format!("{}:/usr/local/share:/usr/share", share.display()));
    for (line, expected) in [
        ("git kustomize-localize che", "check"),
        ("git-kustomize-localize che", "check"),
        ("git kustomize-localize check --fo", "--format"),
        ("git kustomize-lo", "kustomize-localize"),
    ] {
        let mut fish = sandbox.command("fish", &sandbox.path(""));
        let asked = format!("complete -C '{line}'");
        let output = Running::start(fish.args(["-c", &asked])).wait();
        let offered: Vec<&str> = output.success().stdout.lines().filter_map(|line| line.split('\t').next()).collect();
        assert_eq!(offered, [expected], "{line}");
    }
}

#[test]
fn zsh_takes_the_completion_from_its_directory() {
    if tool("zsh").is_none() {
        return;
    }
    let (sandbox, share) = installed();
    let mut zsh = sandbox.command("zsh", &sandbox.path(""));
    let script = format!(
        "fpath=({}/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -d dump; echo $_comps[git-kustomize-localize]",
        share.display()
    );
    let output = Running::start(zsh.args(["-f", "-c", &script])).wait();
    assert_eq!(output.success().stdout.trim(), "_git-kustomize-localize");
}

#[test]
fn where_it_cannot_install_it_fails() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("file"), "").unwrap();
    let output = install(&sandbox, "Nix", &[("$out", "file")]);
    assert_ne!(output.status, 0, "{output:?}");
    let mut shell = sandbox.command(top().join(".github/package.sh"), &sandbox.path(""));
    shell.env("PREFIX", sandbox.path("none"));
    shell.env("PROGRAM", sandbox.path("gone"));
    let output = Running::start(&mut shell).wait();
    assert_ne!(output.status, 0, "{output:?}");
}
