//! Another program in the same worlds: what a redesign must not change, compared byte by byte.
//!
//! `KUSTOMIZE_LOCALIZE_OLD=FILE cargo test --locked old_against_new` runs FILE and the program under test, one after the
//! other and each from the same beginning, and compares exit status, findings, files, branches, trailers and what locks
//! hold. `KUSTOMIZE_LOCALIZE_STAGE=TEXT` takes the stages with TEXT in their name. The lock's own bytes are not compared:
//! its format may change, what it says may not.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use git_kustomize_localize::seams::{processors, side_by_side};
use serde_json::Value;

use crate::copy::stories;
use crate::support::{Running, Sandbox, World, files, program};
use crate::whole::{generated, judge, parity};

/// What is meant to be different, by a part of the name of a stage and by a part of a difference.
const MEANT: [(&str, &str); 1] = [("parity helm-home-absolute", "")];

/// Where both programs do the same.
pub(crate) struct Stage {
    pub(crate) name: String,
    pub(crate) sandbox: Sandbox,
    /// Where they run: `work` of the sandbox, or below it.
    pub(crate) directory: PathBuf,
    /// Command lines. Each list begins where the stage begins.
    pub(crate) scripts: Vec<Vec<Vec<String>>>,
    /// Servers, which go with the stage.
    pub(crate) _alive: Box<dyn Any>,
}

impl Stage {
    pub(crate) fn of(name: &str, world: World, scripts: Vec<Vec<Vec<String>>>) -> Stage {
        Stage {
            name: name.to_owned(),
            sandbox: world.sandbox.clone(),
            directory: world.work.path().to_owned(),
            scripts,
            _alive: Box::new(world),
        }
    }
}

/// Makes a stage when its turn comes.
pub(crate) type Setting = Box<dyn Fn() -> Stage + Sync>;

/// Returns the same command line for a program that had options for what are commands now.
fn translated(line: &[String]) -> Vec<String> {
    let (words, rest): (&[&str], _) = match line {
        [first, rest @ ..] if first == "branch" => (&["--in-place"], rest),
        [first, rest @ ..] if first == "vendor" => (&["--in-place", "--no-commit"], rest),
        // What is on disk was not looked at by default.
        [first, rest @ ..] if first == "check" && !rest.iter().any(|it| is_source(it)) => {
            (&["check", "--working-tree"], rest)
        }
        [first, rest @ ..] if first == "affected" => (&["affected", "--since"], rest),
        line => (&[], line),
    };
    let words = words.iter().map(|&word| word.to_owned());
    words.chain(rest.iter().cloned()).collect()
}

fn is_source(word: &str) -> bool {
    ["--staged", "--rev"].contains(&word)
}

/// Returns the lines of a script.
pub(crate) fn script(lines: &[&[&str]]) -> Vec<Vec<String>> {
    let owned = |line: &&[&str]| line.iter().map(|&word| word.to_owned()).collect();
    lines.iter().map(owned).collect()
}

/// What there is to see after a run.
#[derive(Default, PartialEq)]
struct Outcome {
    status: i32,
    findings: BTreeSet<String>,
    /// Files with modes and digests, by their path in the sandbox or in a branch.
    files: BTreeMap<String, String>,
    locked: BTreeSet<String>,
    trailers: Vec<String>,
}

impl Outcome {
    fn of(stage: &Stage, beside: &BTreeSet<String>, status: i32, stdout: &str) -> Outcome {
        let mut outcome = Outcome { status, findings: findings(stdout), ..Outcome::default() };
        let root = stage.sandbox.path("");
        for entry in fs::read_dir(&root).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name == "work" || !beside.contains(&name) {
                outcome.add_files(&root.join(&name), &name);
            }
        }
        let work = stage.sandbox.path("work");
        if work.join(".git").exists() {
            outcome.add_branches(stage, &work);
        }
        outcome
    }

    fn add_files(&mut self, directory: &Path, name: &str) {
        for (path, what) in files(directory) {
            let shown = format!("{name}/{path}");
            if path.ends_with("kustomize-localize.lock") {
                self.add_lock(&shown, &fs::read(directory.join(path)).unwrap());
            } else {
                self.files.insert(shown, what);
            }
        }
    }

    fn add_branches(&mut self, stage: &Stage, work: &Path) {
        let git = |args: &[&str]| stage.sandbox.git(work, args);
        let refs = git(&["for-each-ref", "--format=%(refname)", "refs/heads/localized"]);
        for name in refs.lines() {
            for line in git(&["ls-tree", "-r", name]).lines() {
                let (object, path) = line.split_once('\t').unwrap();
                if path.ends_with("kustomize-localize.lock") {
                    let text = git(&["show", &format!("{name}:{path}")]);
                    self.add_lock(&format!("{name}:{path}"), text.as_bytes());
                } else {
                    self.files.insert(format!("{name}:{path}"), object.to_owned());
                }
            }
            let log = git(&["log", "--first-parent", "--format=%P%n%B", name]);
            let trailers = log.lines().filter(|line| {
                let key = line.strip_prefix("Kustomize-Localize-");
                key.is_some_and(|key| !key.starts_with("Tool") && !key.starts_with("Tree"))
            });
            self.trailers.extend(trailers.map(str::to_owned));
        }
    }

    /// Adds what a lock pins, whatever its format: all that has a digest or a commit.
    fn add_lock(&mut self, name: &str, bytes: &[u8]) {
        let value: Value = serde_yaml::from_slice(bytes).unwrap();
        let mut todo = vec![&value];
        while let Some(value) = todo.pop() {
            match value {
                Value::Array(items) => todo.extend(items),
                Value::Object(fields) => {
                    if ["commit", "sha256"].iter().any(|key| fields.contains_key(*key)) {
                        let named = ["url", "ref", "chart", "version", "path", "mode", "commit"];
                        let said = named.iter().chain(&["sha256"]).filter_map(|key| {
                            let text = fields.get(*key)?.as_str()?;
                            Some(format!("{key}={text} "))
                        });
                        self.locked.insert(format!("{name}: {}", said.collect::<String>()));
                    }
                    todo.extend(fields.values());
                }
                _ => {}
            }
        }
    }

    /// Returns what the other one has and this one has not, or the other way round.
    fn differences(&self, new: &Outcome) -> Vec<String> {
        let mut all = Vec::new();
        if self.status != new.status {
            all.push(format!("exit status {} is {}", self.status, new.status));
        }
        let lines = |one: &Outcome| -> BTreeSet<String> {
            let files = one.files.iter().map(|(path, what)| format!("{path} {what}"));
            let locked = one.locked.iter().map(|one| format!("locked {one}"));
            let trailers = one.trailers.iter().cloned();
            let found = one.findings.iter().map(|one| format!("finding {one}"));
            files.chain(locked).chain(trailers).chain(found).collect()
        };
        let (old, new) = (lines(self), lines(new));
        all.extend(old.difference(&new).map(|line| format!("-{line}")));
        all.extend(new.difference(&old).map(|line| format!("+{line}")));
        all
    }
}

/// Returns rule and place of each finding of a report in JSON.
fn findings(stdout: &str) -> BTreeSet<String> {
    let report: Value = serde_json::from_str(stdout).unwrap_or_default();
    let found = report["findings"].as_array().into_iter().flatten();
    let said = found.map(|one| {
        let part = |name: &str| one[name].to_string();
        format!("{} {} {} {} {}", part("severity"), part("rule"), part("path"), part("line"), part("column"))
    });
    said.collect()
}

/// How the old program takes a command line.
type Words = fn(&[String]) -> Vec<String>;

/// Runs the scripts of a stage with both programs, and returns what is different.
fn compare(stage: &Stage, old: &Path, words: Words, new: &Path) -> Vec<String> {
    let root = stage.sandbox.path("");
    let beside: BTreeSet<String> =
        fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let kept = tempfile::tempdir().unwrap();
    copy(&stage.sandbox.path("work"), &kept.path().join("work"));
    let mut differences = Vec::new();
    for script in &stage.scripts {
        let outcomes = |program: &Path, lines: Vec<Vec<String>>| -> Vec<Outcome> {
            for entry in fs::read_dir(&root).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                if name == "work" || !beside.contains(&name) {
                    fs::remove_dir_all(root.join(name)).unwrap();
                }
            }
            fs::remove_dir_all(stage.sandbox.path("cache")).unwrap();
            fs::create_dir(stage.sandbox.path("cache")).unwrap();
            copy(&kept.path().join("work"), &stage.sandbox.path("work"));
            let run = |line: Vec<String>| {
                let mut command = stage.sandbox.command(program, &stage.directory);
                let output = Running::start(command.args(line)).wait();
                Outcome::of(stage, &beside, output.status, &output.stdout)
            };
            lines.into_iter().map(run).collect()
        };
        let before = outcomes(old, script.iter().map(|line| words(line)).collect());
        let after = outcomes(new, script.clone());
        for ((line, before), after) in script.iter().zip(before).zip(after) {
            let found = before.differences(&after);
            let meant = |one: &String| {
                let is = |(name, part): &(&str, &str)| stage.name.contains(name) && one.contains(part);
                MEANT.iter().any(is)
            };
            let found: Vec<String> = found.into_iter().filter(|one| !meant(one)).collect();
            if !found.is_empty() {
                let line = line.join(" ");
                differences.push(format!("{}: {line}\n  {}", stage.name, found.join("\n  ")));
                break;
            }
        }
    }
    differences
}

/// Copies a directory with links, modes and times.
fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(status.unwrap().success());
}

#[test]
fn old_against_new() {
    let Some(old) = env::var_os("KUSTOMIZE_LOCALIZE_OLD") else {
        eprintln!("skipped: old_against_new (KUSTOMIZE_LOCALIZE_OLD names no program)");
        return;
    };
    let (old, new) = (PathBuf::from(old), program());
    let help = Command::new(&old).arg("-h").output().unwrap();
    let words: Words =
        if String::from_utf8_lossy(&help.stdout).contains("--in-place") { translated } else { <[String]>::to_vec };
    let mut settings = stories::settings();
    settings.extend(parity::settings());
    settings.extend(judge::settings());
    settings.extend(generated::settings(500));
    let only = env::var("KUSTOMIZE_LOCALIZE_STAGE").unwrap_or_default();
    let compared = side_by_side(&settings, processors(), |_, setting| {
        let stage = setting();
        if !stage.name.contains(&only) {
            return (0, Vec::new());
        }
        let count = stage.scripts.iter().map(Vec::len).sum::<usize>();
        (count, compare(&stage, &old, words, &new))
    });
    let count: usize = compared.iter().map(|(count, _)| count).sum();
    let mut found: Vec<String> = compared.into_iter().flat_map(|(_, found)| found).collect();
    found.sort();
    println!("{count} runs of each program in {} stages", settings.len());
    let mut text = String::new();
    for one in &found {
        let _ = writeln!(text, "{one}");
    }
    assert!(found.is_empty(), "{} differences:\n{text}", found.len());
}

/// What compares nothing is useless: an old program that does something else is found out.
#[test]
fn a_planted_change_is_seen() {
    let stage = stories::settings()[0]();
    assert_eq!(compare(&stage, &program(), <[String]>::to_vec, &program()), [""; 0]);
    let ours = program();
    let ours = ours.display();
    for (after, seen) in [
        ("exit 1", "exit status 1 is 0"),
        ("touch more", "-work/more 100644"),
        ("git branch -f localized/main HEAD", "-refs/heads/localized/main:README.md"),
    ] {
        let planted = stage.sandbox.path("bin/planted");
        stage.sandbox.script("planted", &format!("'{ours}' \"$@\"; status=$?\n{after}\nexit $status"));
        let found = compare(&stage, &planted, <[String]>::to_vec, &program()).concat();
        assert!(found.contains(seen), "{after}: {found}");
    }
}
