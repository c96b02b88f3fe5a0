//! `generate`: manual pages, completions.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::{Running, Sandbox, skip, tool};

/// Returns a sandbox where git finds the program.
fn installed() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.offer_itself();
    sandbox
}

/// Returns the commands that a help lists.
fn commands(sandbox: &Sandbox, args: &[&str]) -> Vec<String> {
    let help = sandbox.run(&sandbox.path(""), &[args, &["-h"]].concat());
    let text = help.success().stdout.clone();
    let Some((_, list)) = text.split_once("\nCommands:\n") else {
        return Vec::new();
    };
    list.lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .filter(|name| args.is_empty() || name != "help")
        .collect()
}

/// Returns the guides that the help of the program names.
fn guides(sandbox: &Sandbox) -> Vec<String> {
    let help = sandbox.run(&sandbox.path(""), &["--help"]);
    let (_, list) = help
        .stdout
        .split_once("\nGuides, to read with `help`: ")
        .unwrap();
    let (list, _) = list.split_once('.').unwrap();
    list.split(',').map(|name| name.trim().to_owned()).collect()
}

#[test]
fn there_is_a_page_for_each_command() {
    let sandbox = Sandbox::new();
    let mut expected = BTreeSet::from(["man1/git-kustomize-localize.1".to_owned()]);
    for name in commands(&sandbox, &[]) {
        expected.insert(format!("man1/git-kustomize-localize-{name}.1"));
        for inner in commands(&sandbox, &[&name]) {
            expected.insert(format!("man1/git-kustomize-localize-{name}-{inner}.1"));
        }
    }
    assert!(expected.contains("man1/git-kustomize-localize-hook-install.1"));
    for name in guides(&sandbox) {
        expected.insert(format!("man7/git-kustomize-localize-{name}.7"));
    }
    assert!(expected.contains("man7/git-kustomize-localize-recipes.7"));
    let pages = sandbox.path("share/man");
    sandbox
        .run(
            &sandbox.path(""),
            &["generate", "man", pages.to_str().unwrap()],
        )
        .success()
        .stdout_has(&format!("wrote {} pages to", expected.len()));
    let found: BTreeSet<String> = ["man1", "man7"]
        .iter()
        .flat_map(|section| {
            let files = fs::read_dir(pages.join(section)).unwrap();
            let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            names.map(move |name| format!("{section}/{name}"))
        })
        .collect();
    assert_eq!(found, expected);
    let main = fs::read_to_string(pages.join("man1/git-kustomize-localize.1")).unwrap();
    assert!(
        main.contains("git\\-kustomize\\-localize\\-check(1)"),
        "{main}"
    );
    assert!(main.contains("\\-\\-scope"), "{main}");
    assert!(main.contains(" [OPTIONS] [TARGET] [NEW_DIR]\n"), "{main}");
    assert!(
        main.contains("\n.SH \"EXIT STATUS\"\n.PP\n0 done;"),
        "{main}"
    );
    for page in &found {
        let text = fs::read_to_string(pages.join(page)).unwrap();
        let (name, section) = page[5..].rsplit_once('.').unwrap();
        let name = name.to_uppercase();
        let version = env!("CARGO_PKG_VERSION");
        let head = format!(
            ".TH {name} {section} \"\" \"git-kustomize-localize {version}\" \"Git Manual\"\n"
        );
        assert!(text.contains(&head), "{page}: {text}");
        // Everything that is listed is described.
        for item in text.split("\n.TP\n").skip(1) {
            let described = item.lines().nth(1).unwrap_or_default();
            assert!(
                described.starts_with(|first: char| first.is_alphabetic() || first == '\\'),
                "{page}: {item}"
            );
        }
    }
    // A page is the same on every machine and day.
    sandbox
        .run(
            &sandbox.path(""),
            &["generate", "man", pages.to_str().unwrap()],
        )
        .success();
    assert_eq!(
        fs::read_to_string(pages.join("man1/git-kustomize-localize.1")).unwrap(),
        main
    );
}

#[test]
fn git_opens_the_page() {
    if tool("man").is_none() {
        return;
    }
    let sandbox = installed();
    let share = sandbox.path("share/man");
    sandbox
        .run(
            &sandbox.path(""),
            &["generate", "man", share.to_str().unwrap()],
        )
        .success();
    let mut git = sandbox.command("git", &sandbox.path(""));
    git.args(["kustomize-localize", "--help"])
        .env("MANPATH", &share)
        .env("MANPAGER", "cat")
        .env("MANWIDTH", "100");
    let output = git.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("SYNOPSIS"), "{text}");
    assert!(text.contains("git-kustomize-localize"), "{text}");
}

#[test]
fn an_unwritable_directory_is_reported() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("file"), "").unwrap();
    sandbox
        .run(&sandbox.path(""), &["generate", "man", "file/man"])
        .fails(2)
        .stderr_has("cannot write pages to `file/man`");
    sandbox
        .run(&sandbox.path(""), &["generate", "completion", "csh"])
        .fails(2)
        .stderr_has("[possible values: bash, zsh, fish]");
    sandbox.run(&sandbox.path(""), &["generate"]).fails(2);
}

#[test]
fn help_shows_the_pages() {
    let sandbox = Sandbox::new();
    let shown = |words: &[&str]| {
        let output = sandbox.run(&sandbox.path(""), &[&["help"], words].concat());
        output.success().stdout.clone()
    };
    let whole = shown(&[]);
    for name in commands(&sandbox, &[]) {
        assert!(
            whole.contains(&format!("\n  `{name}`\n")),
            "{name}: {whole}"
        );
        let page = shown(&[&name]);
        let head = format!("git kustomize-localize {name}\n\n");
        assert!(page.starts_with(&head), "{page}");
    }
    for name in guides(&sandbox) {
        assert!(
            whole.contains(&format!("\n  `{name}`\n")),
            "{name}: {whole}"
        );
        assert!(
            shown(&[&name]).starts_with(&format!("{name}\n\n")),
            "{name}"
        );
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
    sandbox
        .run(&sandbox.path(""), &["generate", "docs", "site"])
        .success()
        .stdout_has("files to site");
    let index = fs::read_to_string(sandbox.path("site/index.md")).unwrap();
    let mut count = 0;
    for line in index.lines().filter_map(|line| line.strip_prefix("- [")) {
        let (_, rest) = line.split_once("](").unwrap();
        let (path, _) = rest.split_once(')').unwrap();
        assert!(sandbox.path("site").join(path).is_file(), "{path}");
        count += 1;
    }
    assert!(count > 30, "{index}");
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
    let sandbox = installed();
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
    for shell in ["zsh", "fish"] {
        let script = sandbox
            .run(&sandbox.path(""), &["generate", "completion", shell])
            .success()
            .stdout
            .clone();
        for name in commands(&sandbox, &[]) {
            assert!(script.contains(&name), "{shell}: {name}");
        }
        assert!(script.contains("git-kustomize-localize"), "{shell}");
    }
}

#[test]
fn zsh_completes_a_target_without_the_word_localize() {
    let sandbox = Sandbox::new();
    let script = sandbox
        .run(&sandbox.path(""), &["generate", "completion", "zsh"])
        .success()
        .stdout
        .clone();
    let names = commands(&sandbox, &[]).join(" ");
    // The first word is a command or a directory; after a directory it goes on as after `localize`.
    for part in [
        "\n\":: :_git-kustomize-localize_first\" \\\n",
        "'commands:command:_git-kustomize-localize_commands' 'directories:directory:_directories'",
        &format!(
            "[[ ' {names} ' == *\" $line[1] \"* ]] || line[1]=localize\n        case $line[1] in\n            (localize)\n"
        ),
        "\n'::target -- ",
    ] {
        assert_eq!(script.matches(part).count(), 1, "{part}: {script}");
    }
    fs::write(sandbox.path("completion.zsh"), &script).unwrap();
    if tool("zsh").is_some() {
        let mut zsh = sandbox.command("zsh", &sandbox.path(""));
        Running::start(zsh.args(["-f", "-n", "completion.zsh"]))
            .wait()
            .success();
    }
}

#[test]
fn without_a_manual_page_the_short_help_is_the_whole() {
    let sandbox = Sandbox::new();
    let help = |args: &[&str]| {
        let output = sandbox.run(&sandbox.path(""), args);
        output.success().stdout.clone()
    };
    let whole = help(&["--help"]);
    // A `man` that knows no page, then one that knows it.
    sandbox.script("man", "exit 16");
    let short = help(&["-h"]);
    assert_eq!(short, whole.replace(" (see a summary with '-h')", ""));
    sandbox.script("man", "test \"$*\" = '-w git-kustomize-localize'");
    let short = help(&["-h"]);
    assert!(short.contains("(see more with '--help')"), "{short}");
    assert!(short.len() < whole.len());
}

#[test]
fn the_short_help_is_one_screen() {
    let sandbox = Sandbox::new();
    sandbox.script("man", "exit 0");
    let short = sandbox
        .run(&sandbox.path(""), &["-h"])
        .success()
        .stdout
        .clone();
    let lines = short.lines().count();
    assert!(lines <= 40, "{lines} lines: {short}");
    for name in commands(&sandbox, &[])
        .iter()
        .filter(|name| *name != "localize")
    {
        let help = sandbox.run(&sandbox.path(""), &[name, "-h"]);
        let lines = help.success().stdout.lines().count();
        assert!(lines <= 24, "{lines} lines: {}", help.stdout);
    }
    for name in [
        "--in-place",
        "--scope",
        "--branch",
        "--no-commit",
        "check",
        "verify",
    ] {
        assert!(short.contains(name), "{name}: {short}");
    }
    // Everything is in the long one.
    let long = sandbox
        .run(&sandbox.path(""), &["--help"])
        .success()
        .stdout
        .clone();
    for name in ["--load-restrictor", "--gpg-sign", "--kustomize"] {
        assert!(!short.contains(name) && long.contains(name), "{name}");
    }
}
