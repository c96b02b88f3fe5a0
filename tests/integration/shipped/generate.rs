//! `generate`: manual pages, completions.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::said;
use crate::support::{Running, Sandbox, skip, tool};

/// Returns the commands that a help lists.
fn commands(sandbox: &Sandbox, args: &[&str]) -> Vec<String> {
    let text = said(sandbox, &[args, &["-h"]].concat());
    let list = text
        .split_once("\nCommands:\n")
        .map_or("", |(_, list)| list);
    let lines = list.lines().take_while(|line| !line.is_empty());
    lines
        .filter(|line| !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .filter(|name| args.is_empty() || name != "help")
        .collect()
}

/// Returns the guides that the help of the program names.
fn guides(sandbox: &Sandbox) -> Vec<String> {
    let help = said(sandbox, &["--help"]);
    let (_, list) = help.split_once("\nGuides, to read with `help`: ").unwrap();
    let (list, _) = list.split_once('.').unwrap();
    list.split(',').map(|name| name.trim().to_owned()).collect()
}

#[test]
fn there_is_a_page_for_each_command() {
    let sandbox = Sandbox::new();
    let mut expected = BTreeSet::from(["man1/git-kustomize-localize.1".to_owned()]);
    for name in commands(&sandbox, &[]) {
        for inner in commands(&sandbox, &[&name]) {
            expected.insert(format!("man1/git-kustomize-localize-{name}-{inner}.1"));
        }
        expected.insert(format!("man1/git-kustomize-localize-{name}.1"));
    }
    for name in guides(&sandbox) {
        expected.insert(format!("man7/git-kustomize-localize-{name}.7"));
    }
    for page in [
        "man1/git-kustomize-localize-hook-install.1",
        "man7/git-kustomize-localize-recipes.7",
    ] {
        assert!(expected.contains(page), "{page}");
    }
    let wrote = said(&sandbox, &["generate", "man", "man"]);
    let count = format!("wrote {} pages to", expected.len());
    assert!(wrote.contains(&count), "{wrote}");
    let main = sandbox.path("man/man1/git-kustomize-localize.1");
    let main = || fs::read_to_string(&main).unwrap();
    let text = main();
    for part in [
        "git\\-kustomize\\-localize\\-check(1)",
        "\\-\\-scope",
        " [OPTIONS] [TARGET] [NEW_DIR]\n",
        "\n.SH \"EXIT STATUS\"\n.PP\n0 done;",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let mut found = BTreeSet::new();
    for section in ["man1", "man7"] {
        for entry in fs::read_dir(sandbox.path("man").join(section)).unwrap() {
            let entry = entry.unwrap();
            let page = entry.file_name().into_string().unwrap();
            let text = fs::read_to_string(entry.path()).unwrap();
            let (name, number) = page.rsplit_once('.').unwrap();
            let name = name.to_uppercase();
            let version = env!("CARGO_PKG_VERSION");
            let head = format!(
                ".TH {name} {number} \"\" \"git-kustomize-localize {version}\" \"Git Manual\"\n"
            );
            assert!(text.contains(&head), "{page}: {text}");
            // Everything that is listed is described.
            for item in text.split("\n.TP\n").skip(1) {
                let described = item.lines().nth(1).unwrap_or_default();
                let is_text = |first: char| first.is_alphabetic() || first == '\\';
                assert!(described.starts_with(is_text), "{page}: {item}");
            }
            found.insert(format!("{section}/{page}"));
        }
    }
    assert_eq!(found, expected);
    // A page is the same on every machine and day.
    said(&sandbox, &["generate", "man", "man"]);
    assert_eq!(main(), text);
}

#[test]
fn what_cannot_be_generated_is_reported() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("file"), "").unwrap();
    for (args, said) in [
        (&["man", "file/man"][..], "cannot write pages to `file/man`"),
        (&["completion", "csh"], "[possible values: bash, zsh, fish]"),
        (&[], ""),
    ] {
        let output = sandbox.run(&sandbox.path(""), &[&["generate"], args].concat());
        output.fails(2).stderr_has(said);
    }
}

#[test]
fn help_shows_the_pages() {
    let sandbox = Sandbox::new();
    let shown = |words: &[&str]| said(&sandbox, &[&["help"], words].concat());
    let whole = shown(&[]);
    let is_shown = |name: &str, head: String| {
        let row = format!("\n  `{name}`\n");
        assert!(whole.contains(&row), "{name}: {whole}");
        assert!(shown(&[name]).starts_with(&head), "{name}");
    };
    for name in commands(&sandbox, &[]) {
        is_shown(&name, format!("git kustomize-localize {name}\n\n"));
    }
    for name in guides(&sandbox) {
        is_shown(&name, format!("{name}\n\n"));
    }
    assert!(shown(&["hook", "install"]).contains("--force"));
    assert!(shown(&["cycle"]).starts_with("cycle\n\n"));
    sandbox
        .run(&sandbox.path(""), &["help", "recipe"])
        .fails(2)
        .stderr_has("error: there is no page `recipe`")
        .stderr_has("did you mean `recipes`? git kustomize-localize help recipes");
}

#[test]
fn docs_are_written_with_an_index() {
    let sandbox = Sandbox::new();
    let wrote = said(&sandbox, &["generate", "docs", "site"]);
    assert!(wrote.contains("files to site"), "{wrote}");
    let index = fs::read_to_string(sandbox.path("site/index.md")).unwrap();
    let lines = index.lines().filter_map(|line| line.strip_prefix("- ["));
    let paths = lines.map(|line| {
        let (_, rest) = line.split_once("](").unwrap();
        rest.split_once(')').unwrap().0
    });
    let paths: Vec<&str> = paths.collect();
    assert!(paths.len() > 30, "{index}");
    for path in paths {
        assert!(sandbox.path("site").join(path).is_file(), "{path}");
    }
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
    let known = [
        "/usr/share/bash-completion/completions/git",
        "/usr/share/git-core/contrib/completion/git-completion.bash",
    ];
    let Some(git) = known.iter().map(Path::new).find(|path| path.is_file()) else {
        return skip("git's completion for bash is not installed");
    };
    let sandbox = Sandbox::new();
    sandbox.offer_itself();
    for (rest, expected) in [
        ("che", "check"),
        ("check --fo", "--format"),
        ("check --format ", "human json sarif github gitlab"),
        ("hook ins", "install"),
        ("hook install pre-m", "pre-merge-commit"),
        ("generate completion z", "zsh"),
        ("--load-restrictor ", "root-only none"),
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
        for name in commands
            .iter()
            .map(String::as_str)
            .chain(["git-kustomize-localize"])
        {
            assert!(script.contains(name), "{shell}: {name}");
        }
        script
    });
    assert_ne!(fish, zsh);
    // The first word is a command or a directory; after a directory it goes on as after `localize`.
    for part in [
        "\n\":: :_git-kustomize-localize_first\" \\\n",
        "'commands:command:_git-kustomize-localize_commands' 'directories:directory:_directories'",
        &format!(
            "[[ ' {} ' == *\" $line[1] \"* ]] || line[1]=localize\n        case $line[1] in\n            (localize)\n",
            commands.join(" ")
        ),
        "\n'::target -- ",
    ] {
        assert_eq!(zsh.matches(part).count(), 1, "{part}: {zsh}");
    }
    fs::write(sandbox.path("completion.zsh"), &zsh).unwrap();
    if let Some(zsh) = tool("zsh") {
        let mut zsh = sandbox.command(zsh, &sandbox.path(""));
        Running::start(zsh.args(["-f", "-n", "completion.zsh"]))
            .wait()
            .success();
    }
}

#[test]
fn without_a_manual_page_the_short_help_is_the_whole() {
    let sandbox = Sandbox::new();
    let whole = said(&sandbox, &["--help"]);
    // A `man` that knows no page, then one that knows it.
    sandbox.script("man", "exit 16");
    let short = said(&sandbox, &["-h"]);
    assert_eq!(short, whole.replace(" (see a summary with '-h')", ""));
    sandbox.script("man", "test \"$*\" = '-w git-kustomize-localize'");
    let short = said(&sandbox, &["-h"]);
    assert!(short.contains("(see more with '--help')"), "{short}");
    let lines = short.lines().count();
    assert!(lines <= 40, "{lines} lines: {short}");
    let commands = commands(&sandbox, &[]).into_iter();
    for name in commands.filter(|name| name != "localize") {
        let help = said(&sandbox, &[&name, "-h"]);
        let lines = help.lines().count();
        assert!(lines <= 24, "{lines} lines: {help}");
    }
    // Everything is in the long one.
    let short_ones = [
        "--in-place",
        "--scope",
        "--branch",
        "--no-commit",
        "check",
        "verify",
    ];
    let long_ones = ["--load-restrictor", "--gpg-sign", "--kustomize"];
    for (names, is_short) in [(&short_ones[..], true), (&long_ones, false)] {
        for name in names {
            assert_eq!(short.contains(name), is_short, "{name}");
            assert!(whole.contains(name), "{name}");
        }
    }
}
