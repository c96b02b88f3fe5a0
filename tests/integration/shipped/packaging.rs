//! `.github/package.sh`: what a package holds, and whether the shells find it there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::pages::source;
use crate::support::{Output, Running, Sandbox, program, skip, tool};

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Calls the script as a row of the table on its page does, with what the builder of packages sets.
fn install(sandbox: &Sandbox, package: &str, variables: &[(&str, &str)]) -> Output {
    let page = source("src/commands/generate.md");
    let row = format!("| {package} | `");
    let (_, call) = page
        .split_once(&row)
        .unwrap_or_else(|| panic!("no {package}"));
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
        if metadata.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            assert!(path.exists(), "{name} leads nowhere");
            found.insert(name, target.display().to_string());
        } else if metadata.is_dir() {
            todo.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
        } else {
            assert!(metadata.len() > 0, "{name} is empty");
            found.insert(name, format!("{:o}", metadata.permissions().mode() & 0o777));
        }
    }
    found
}

#[test]
fn a_package_holds_the_program_with_pages_and_completions() {
    for (package, variables, place, zsh, licenses) in [
        (
            "Debian",
            &[] as &[_],
            "debian/git-kustomize-localize/usr",
            "share/zsh/vendor-completions",
            "share/doc/git-kustomize-localize",
        ),
        (
            "rpm",
            &[("%{buildroot}", "root"), ("%{_prefix}", "/usr")],
            "root/usr",
            "share/zsh/site-functions",
            "share/licenses/git-kustomize-localize",
        ),
        (
            "Arch",
            &[("$pkgdir", "pkg")],
            "pkg/usr",
            "share/zsh/site-functions",
            "share/licenses/git-kustomize-localize",
        ),
        (
            "Homebrew",
            &[("#{prefix}", "Cellar/it")],
            "Cellar/it",
            "share/zsh/site-functions",
            "share/licenses/git-kustomize-localize",
        ),
        (
            "Nix",
            &[("$out", "store/it")],
            "store/it",
            "share/zsh/site-functions",
            "share/licenses/git-kustomize-localize",
        ),
    ] {
        let sandbox = Sandbox::new();
        let before = names(&sandbox);
        install(&sandbox, package, variables).success();
        let mut found = listing(&sandbox.path(place));
        let pages: Vec<String> = found
            .keys()
            .filter(|name| name.starts_with("share/man/"))
            .cloned()
            .collect();
        assert!(pages.len() > 10, "{package}: {pages:?}");
        for page in [
            "man1/git-kustomize-localize.1",
            "man7/git-kustomize-localize-recipes.7",
        ] {
            assert!(pages.contains(&format!("share/man/{page}")), "{page}");
        }
        for page in pages {
            assert_eq!(found.remove(&page).unwrap(), "644", "{page}");
        }
        let expected = [
            ("bin/git-kustomize-localize".to_owned(), "755"),
            (
                "share/bash-completion/completions/git-kustomize-localize".to_owned(),
                "644",
            ),
            (format!("{zsh}/_git-kustomize-localize"), "644"),
            (
                "share/fish/vendor_completions.d/git-kustomize-localize.fish".to_owned(),
                "644",
            ),
            (
                "share/fish/vendor_conf.d/git-kustomize-localize.fish".to_owned(),
                "../vendor_completions.d/git-kustomize-localize.fish",
            ),
            (format!("{licenses}/LICENSE-APACHE"), "644"),
            (format!("{licenses}/LICENSE-MIT"), "644"),
        ];
        let expected = expected.map(|(name, kind)| (name, kind.to_owned()));
        assert_eq!(found, BTreeMap::from(expected), "{package}");
        // Nothing else.
        let first = place.split('/').next().unwrap().to_owned();
        let mut after = names(&sandbox);
        assert!(after.remove(&first), "{after:?}");
        assert_eq!(after, before, "{package}");
    }
}

/// Returns what stands at the top of a sandbox.
fn names(sandbox: &Sandbox) -> BTreeSet<String> {
    let entries = fs::read_dir(sandbox.path("")).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
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
    git.args(["kustomize-localize", "--help"])
        .env("MANPATH", share.join("man"))
        .env("MANPAGER", "cat");
    Running::start(&mut git)
        .wait()
        .success()
        .stdout_has("SYNOPSIS");
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
    let output = Running::start(bash.args(["-c", &script])).wait();
    assert_eq!(output.success().stdout.trim(), "check");
}

#[test]
fn fish_finds_the_completion_behind_git_and_alone() {
    if tool("fish").is_none() {
        return;
    }
    let (sandbox, share) = installed();
    sandbox.set(
        "XDG_DATA_DIRS",
        format!("{}:/usr/local/share:/usr/share", share.display()),
    );
    for (line, expected) in [
        ("git kustomize-localize che", "check"),
        ("git-kustomize-localize che", "check"),
        ("git kustomize-localize check --fo", "--format"),
        ("git kustomize-lo", "kustomize-localize"),
    ] {
        let mut fish = sandbox.command("fish", &sandbox.path(""));
        let asked = format!("complete -C '{line}'");
        let output = Running::start(fish.args(["-c", &asked])).wait();
        let offered: Vec<&str> = output
            .success()
            .stdout
            .lines()
            .filter_map(|line| line.split('\t').next())
            .collect();
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
