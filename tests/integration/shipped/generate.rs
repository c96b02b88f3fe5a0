//! `generate`: manual pages, completions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::said;
use crate::support::{Running, Sandbox, skip, tool};

/// Returns the commands that a help lists.
fn commands(sandbox: &Sandbox, args: &[&str]) -> Vec<String> {
    let text = said(sandbox, &[args, &["-h"]].concat());
    let list = text.split_once("\nCommands:\n").map_or("", |(_, list)| list);
    let lines = list.lines().take_while(|line| !line.is_empty());
    lines
        .filter(|line| !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .filter(|name| args.is_empty() || name != "help")
        .collect()
}

#[test]
fn there_is_a_page_for_each_command() {
    let sandbox = Sandbox::new();
    let mut expected = BTreeSet::from(["git-kustomize-localize.1".to_owned()]);
    for name in commands(&sandbox, &[]) {
        for inner in commands(&sandbox, &[&name]) {
            expected.insert(format!("git-kustomize-localize-{name}-{inner}.1"));
        }
        expected.insert(format!("git-kustomize-localize-{name}.1"));
    }
    let page = "git-kustomize-localize-hook-install.1";
    assert!(expected.contains(page), "{expected:?}");
    let write = || {
        let wrote = said(&sandbox, &["generate", "man", "man"]);
        assert_eq!(wrote, "wrote the manual pages to man\n");
        let pages = fs::read_dir(sandbox.path("man/man1")).unwrap();
        let pages = pages.map(|entry| {
            let entry = entry.unwrap();
            let text = fs::read_to_string(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), text)
        });
        pages.collect::<BTreeMap<String, String>>()
    };
    let pages = write();
    assert_eq!(pages.keys().cloned().collect::<BTreeSet<_>>(), expected);
    // What the short help leaves out, and the exit status.
    for (page, part) in [
        ("git-kustomize-localize.1", "\\-\\-offline"),
        ("git-kustomize-localize-lock.1", "\\-\\-color"),
        ("git-kustomize-localize-lock.1", "When to use colour"),
        ("git-kustomize-localize-verify.1", "Exit status: 0 as recorded"),
        ("git-kustomize-localize-branch.1", "Exit status: 0 done"),
    ] {
        assert!(pages[page].contains(part), "{page}: {part}: {}", pages[page]);
    }
    // A page is the same on every machine and day.
    assert_eq!(write(), pages);
}

#[test]
fn what_cannot_be_generated_is_reported() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("file"), "").unwrap();
    for (args, said) in [
        (&["man", "file/man"][..], "cannot write pages to `file/man`"),
        (&["completion", "csh"], "[possible values: bash, elvish, fish, powershell, zsh]"),
        (&[], ""),
    ] {
        sandbox.run(&sandbox.path(""), &[&["generate"], args].concat()).fails(2).stderr_has(said);
    }
}

#[test]
fn help_shows_the_pages() {
    let sandbox = Sandbox::new();
    let shown = |words: &[&str]| said(&sandbox, &[&["help"], words].concat());
    let whole = shown(&[]);
    let (names, guides) = whole.split_once("\nGuides:\n").unwrap();
    let listed = |text: &str| -> Vec<String> {
        let rows = text.lines().filter_map(|line| line.strip_prefix("  "));
        rows.map(|row| row.split(' ').next().unwrap().to_owned()).collect()
    };
    assert_eq!(listed(names)[1..], commands(&sandbox, &[]));
    for name in listed(names) {
        let (usage, text) = match name.as_str() {
            "TARGET" => ("[OPTIONS] <TARGET> [NEW_DIR]\n".to_owned(), "The target may also be remote"),
            "branch" => ("branch [OPTIONS]\n".to_owned(), "## Again, after a change\n"),
            name => (format!("{name} "), "\n"),
        };
        let page = shown(&[&name]);
        let usage = format!("Usage: git kustomize-localize {usage}");
        assert!(page.contains(&usage) && page.contains(text), "{name}: {page}");
        assert!(!page.contains("](") && !page.contains("```console "), "{name}: {page}");
    }
    for name in listed(guides) {
        assert!(shown(&[&name]).starts_with("# "), "{name}");
    }
    assert!(shown(&["hook", "install"]).contains("--quiet"));
    sandbox.run(&sandbox.path(""), &["help", "recipe"]).fails(2).says(expect![[r#"
        error: there is no page `recipe`
          hint: to list them: git kustomize-localize help
    "#]]);
}

/// Asks bash what it would offer, with git's own completion where `line` begins with `git `.
fn offered(sandbox: &Sandbox, git: &Path, line: &str) -> String {
    let script = format!(
        r#"
source {git}
source <(git-kustomize-localize generate completion bash)
COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_TYPE=9; COMP_KEY=9
read -r -a COMP_WORDS <<<"$COMP_LINE"
[[ $COMP_LINE == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
registered=$(complete -p "${{COMP_WORDS[0]}}"); registered=${{registered#*-F }}; function=${{registered%% *}}
"$function" "${{COMP_WORDS[0]}}" "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD - 1]}}"
echo "${{COMPREPLY[*]}}"
"#,
        git = git.display(),
    );
    let mut bash = sandbox.command("bash", &sandbox.path(""));
    let output = bash.args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn bash_completes_behind_git_and_alone() {
    let known =
        ["/usr/share/bash-completion/completions/git", "/usr/share/git-core/contrib/completion/git-completion.bash"];
    let Some(git) = known.iter().map(Path::new).find(|path| path.is_file()) else {
        return skip("git's completion for bash is not installed");
    };
    let sandbox = Sandbox::new();
    sandbox.offer_itself();
    for (rest, expected) in [
        ("che", "check"),
        ("check --fo", "--format"),
        ("check --format ", "human json sarif github gitlab markdown html cyclonedx spdx slsa"),
        ("hook ins", "install"),
        ("hook install pre-m", "pre-merge-commit"),
        ("generate completion z", "zsh"),
        ("check --color ", "auto always never"),
        ("base overlay --off", "--offline"),
    ] {
        for program in ["git kustomize-localize", "git-kustomize-localize"] {
            let line = format!("{program} {rest}");
            let offered = offered(&sandbox, git, &line);
            assert_eq!(offered, expected, "{line}");
        }
    }
    let name = offered(&sandbox, git, "git kustomize-lo");
    assert_eq!(name, "kustomize-localize");
}

#[test]
fn scripts_for_other_shells_name_every_command() {
    let sandbox = Sandbox::new();
    let commands = commands(&sandbox, &[]);
    let [fish, zsh] = ["fish", "zsh"].map(|shell| {
        let script = said(&sandbox, &["generate", "completion", shell]);
        for name in commands.iter().map(String::as_str).chain(["git-kustomize-localize"]) {
            assert!(script.contains(name), "{shell}: {name}");
        }
        script
    });
    assert_ne!(fish, zsh);
    fs::write(sandbox.path("completion.zsh"), &zsh).unwrap();
    if let Some(zsh) = tool("zsh") {
        let mut zsh = sandbox.command(zsh, &sandbox.path(""));
        Running::start(zsh.args(["-f", "-n", "completion.zsh"])).wait().success();
    }
}

#[test]
fn the_help_of_every_command_fits_on_a_screen() {
    let sandbox = Sandbox::new();
    for name in commands(&sandbox, &[]).iter().map(String::as_str).chain([""]) {
        let words: Vec<&str> = name.split_terminator(' ').collect();
        let help = said(&sandbox, &[&words[..], &["-h"]].concat());
        let lines = help.lines().count();
        assert!(lines <= 45, "{lines} lines: {help}");
        assert_eq!(said(&sandbox, &[&words[..], &["--help"]].concat()), help);
    }
}
