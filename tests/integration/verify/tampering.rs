//! Whatever is changed on a localized branch by hand is named: by `verify`, which has the whole record, and by `check`
//! as far as the files and the lock tell.

mod trailers;

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::support::{Project, Repo, Transcript, World};

const PINNED: &str = "https://files.example.com/acme/1.0/pod.yaml";

/// A localized branch that is checked out, with most of what a lock can hold.
struct Branch {
    _world: World,
    repo: Repo,
    /// The directory of the lock, with a final slash unless it is the top.
    directory: &'static str,
    tip: String,
}

impl Branch {
    fn new(is_in_place: bool) -> Branch {
        let world = World::new();
        world.upstream_of(
            "acme/inner",
            &[("kustomization.yaml", "resources: [inner.yaml]\n"), ("inner.yaml", &config("inner"))],
        );
        let base = world.upstream("acme/base");
        base.write(
            "app/kustomization.yaml",
            format!(
                "resources: [deep/x.yaml, 'https://github.com/acme/inner?ref=v1', {PINNED}]\n\
                 configMapGenerator:\n- {{name: script, files: [run.sh]}}\n"
            ),
        );
        base.write("app/deep/x.yaml", config("x"));
        base.write("LICENSE", "terms\n");
        base.write("app/NOTICE", "who\n");
        base.write_executable("app/run.sh", "#!/bin/sh\n");
        base.commit("first");
        base.git(&["tag", "v1"]);
        world.file(PINNED, "apiVersion: v1\nkind: Pod\nmetadata: {name: pod}\n");
        world.commit(&[
            ("app/kustomization.yaml", "resources: [../base]\n"),
            ("base/kustomization.yaml", "resources: ['https://github.com/acme/base//app?ref=v1', cm.yaml]\n"),
            ("base/cm.yaml", &config("cm")),
        ]);
        world.work.decide("trust-exec: ['**/run.sh']\n");
        let output = if is_in_place {
            world.work.run(&["branch", "--no-verify"])
        } else {
            let args = ["app", "out", "--scope", ".", "--no-verify"];
            world.work.run(&args)
        };
        output.success();
        let repo = world.clone_of_branch();
        Branch { _world: world, tip: repo.id("HEAD"), repo, directory: if is_in_place { "" } else { "out/" } }
    }

    fn lock(&self) -> String {
        format!("{}kustomize-localize.lock", self.directory)
    }

    /// Returns the paths of what the lock lists.
    fn listed(&self) -> Vec<String> {
        let lock = self.repo.read(&self.lock());
        let paths = lock.lines().filter_map(|line| line.strip_prefix("  - path: "));
        paths.map(|path| format!("{}{path}", self.directory)).collect()
    }

    fn commit(&self) {
        self.repo.git(&["add", "--all"]);
        self.repo.git(&["commit", "--quiet", "--message", "By hand"]);
    }

    fn reset(&self) {
        self.repo.git(&["reset", "--quiet", "--hard", &self.tip]);
        self.repo.git(&["clean", "--quiet", "--force", "-d"]);
    }

    /// Returns the paths that `verify` names as files that differ.
    fn verified(&self) -> BTreeSet<String> {
        let output = self.repo.run(&["verify", "--format", "json"]);
        let report: Value = serde_json::from_str(&output.fails(1).stdout).unwrap();
        let differences = report["differences"].as_array().unwrap().iter();
        differences
            .filter(|difference| difference["kind"] == "file")
            .map(|difference| difference["path"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Returns the paths that `check` finds edited.
    fn checked(&self) -> BTreeSet<String> {
        let output = self.repo.run(&["check", "--format", "json"]);
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(output.status, 1, "{output:?}");
        let findings = report["findings"].as_array().unwrap().iter();
        findings
            .filter(|finding| finding["rule"] == "edited-copy")
            .map(|finding| finding["path"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn config(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

/// Does something to a localized file, and returns the path that must be named.
type Tampering = fn(&Repo, &str) -> String;

const TAMPERINGS: [(&str, Tampering); 7] = [
    ("first byte", |repo, path| {
        let mut bytes = fs::read(repo.path().join(path)).unwrap();
        bytes[0] ^= 1;
        repo.write(path, bytes);
        path.to_owned()
    }),
    ("last byte", |repo, path| {
        let mut bytes = fs::read(repo.path().join(path)).unwrap();
        bytes.pop();
        repo.write(path, bytes);
        path.to_owned()
    }),
    ("added", |repo, path| {
        let added = format!("{path}.orig");
        repo.write(&added, "");
        added
    }),
    ("removed", |repo, path| {
        repo.remove(path);
        path.to_owned()
    }),
    ("mode", |repo, path| {
        let is_executable = repo.git(&["ls-files", "--stage", "--", path]).starts_with("100755");
        let bytes = fs::read(repo.path().join(path)).unwrap();
        repo.remove(path);
        if is_executable {
            repo.write(path, bytes)
        } else {
            repo.write_executable(path, bytes)
        }
        path.to_owned()
    }),
    ("link", |repo, path| {
        // To the very same bytes.
        let same = format!("../{}", "same".repeat(3));
        repo.remove(path);
        repo.symlink(path, &same);
        path.to_owned()
    }),
    ("directory", |repo, path| {
        let bytes = fs::read(repo.path().join(path)).unwrap();
        repo.remove(path);
        repo.write(&format!("{path}/inside"), bytes);
        path.to_owned()
    }),
];

fn every_file_that_is_tampered_with_is_named(is_in_place: bool) {
    let branch = Branch::new(is_in_place);
    let listed = branch.listed();
    let count = if is_in_place { 8 } else { 11 };
    assert!(listed.len() >= count, "{listed:?}");
    let in_nobody_s_way = |path: &&String| !path.ends_with(".gitattributes");
    for (what, tamper) in TAMPERINGS {
        let paths = listed.iter().filter(|path| {
            // git reads it itself: it ignores a link or a directory, and its contents are about its neighbours.
            in_nobody_s_way(path) || what != "directory"
        });
        let expected: BTreeSet<String> = paths.map(|path| tamper(&branch.repo, path)).collect();
        branch.commit();
        assert_eq!(branch.verified(), expected, "{what}");
        assert_eq!(branch.checked(), expected, "{what}");
        branch.reset();
    }
    // One alone.
    for path in [&listed[0], listed.last().unwrap()] {
        let named = TAMPERINGS[0].1(&branch.repo, path);
        branch.commit();
        assert_eq!(branch.verified(), BTreeSet::from([named.clone()]));
        assert_eq!(branch.checked(), BTreeSet::from([named]));
        branch.reset();
    }
    branch.repo.run(&["verify"]).success();
}

#[test]
fn every_file_of_a_copy_that_is_tampered_with_is_named() {
    every_file_that_is_tampered_with_is_named(false);
}

#[test]
fn every_file_in_place_that_is_tampered_with_is_named() {
    every_file_that_is_tampered_with_is_named(true);
}

/// Returns every way to edit one field of a lock: the first field of each name in each section, with another value
/// and left out. The number is that of its line, from 1.
fn edits(lock: &str) -> Vec<(usize, String, String)> {
    let lines: Vec<&str> = lock.lines().collect();
    let mut edits = Vec::new();
    let mut seen = BTreeSet::new();
    let mut section = "";
    for (index, line) in lines.iter().enumerate() {
        let Some((key, value)) = line.split_once(':').filter(|_| !line.starts_with('#')) else {
            continue;
        };
        if !line.starts_with(' ') {
            section = key;
        }
        let name = format!("{section} {}", key.trim_start_matches([' ', '-']));
        // A chart, a file and a repository each have their own.
        if !seen.insert(name.clone()) {
            continue;
        }
        let other = match value.trim() {
            "" => continue,
            "true" => "false".to_owned(),
            "\"100644\"" => "\"100755\"".to_owned(),
            "\"100755\"" => "\"100644\"".to_owned(),
            number if number.bytes().all(|byte| byte.is_ascii_digit()) => format!("{number}1"),
            hex if hex.len() >= 40 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                let digit = if hex.starts_with('0') { "1" } else { "0" };
                format!("{digit}{}", &hex[1..])
            }
            text => format!("{}x", text.trim_matches('"')),
        };
        let with = |replacement: Option<String>| {
            let mut lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
            match replacement {
                Some(line) => lines[index] = line,
                None => drop(lines.remove(index)),
            }
            lines.join("\n") + "\n"
        };
        edits.push((index + 1, name.clone(), with(Some(format!("{key}: {other}")))));
        if !key.contains('-') {
            edits.push((index + 1, format!("{name}, left out"), with(None)));
        }
    }
    edits
}

/// What a lock in place and one of a copy hold.
const FIELDS: [&str; 11] = [
    "version version",
    "remotes url",
    "remotes ref",
    "remotes commit",
    "remotes sha256",
    "remotes size",
    "files path",
    "files mode",
    "files sha256",
    "files remote",
    "files source",
];

fn every_edit_of_a_lock_is_named(is_in_place: bool, more: &[&str]) {
    let branch = Branch::new(is_in_place);
    let name = branch.lock();
    let lock = branch.repo.read(&name);
    let edits = edits(&lock);
    for field in FIELDS.iter().chain(more) {
        let is_it = |(_, name, _): &&(usize, String, String)| name == field;
        assert!(edits.iter().any(|edit| is_it(&edit)), "{field}: {lock}");
    }
    for (line, what, text) in edits {
        branch.repo.write(&name, text);
        branch.repo.git(&["commit", "-q", "-a", "-m", "By hand"]);
        let output = branch.repo.run(&["verify"]);
        match output.status {
            1 => output.stdout_has(if what.starts_with("files path") {
                "was added: the lock does not list it"
            } else if what.starts_with("files mode") {
                ": has a different mode than in the lock"
            } else if what.starts_with("files sha256") {
                ": was changed: its sha256 "
            } else {
                &name
            }),
            // A file that is no longer a lock cannot be a record.
            2 => output.stderr_has(&format!("{name}:")),
            _ => panic!("line {line}, {what}: {output:?}"),
        };
        assert!(!output.stdout.contains("as recorded"), "{what}: {output:?}");
    }
}

#[test]
fn every_edit_of_the_lock_of_a_copy_is_named() {
    let more = ["target target", "scope scope"];
    every_edit_of_a_lock_is_named(false, &more);
}

#[test]
fn every_edit_of_the_lock_at_the_top_is_named() {
    every_edit_of_a_lock_is_named(true, &[]);
}

#[test]
fn check_finds_files_that_the_lock_no_longer_lists() {
    for (is_in_place, way) in
        [(false, "again with `--overwrite`, in the scope of"), (true, "recreate the branch: git switch main")]
    {
        let branch = Branch::new(is_in_place);
        let name = branch.lock();
        let lock = branch.repo.read(&name);
        branch.repo.write(&name, lock.replacen("ref: v1\n", "ref: v2\n", 1));
        branch.commit();
        let found = branch.checked();
        assert!(!found.is_empty());
        let output = branch.repo.run(&["check"]);

        output
            .fails(1)
            .stdout_has("` is from https://github.com/acme/base?ref=v1, which the lock does not list")
            .stdout_has(way);
        assert_eq!(branch.verified(), found);
    }
}

#[test]
fn a_copy_that_is_gone_as_a_whole_is_named() {
    let project = Project::new();
    let work = &project.work;
    project.overlay(&[]).success();
    work.run(&["other", "--no-verify"]).success();
    work.git(&["switch", "--quiet", "localized/main"]);
    work.git(&["rm", "--quiet", "-r", "localized-other"]);
    work.commit("by hand");
    work.run_unchanged(&["verify", "localized/main"]).fails(1).says(expect![[r#"
        localized-other: differs from the localized commit <0>

        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock and in the message of <1>
        NOT verified localized/main (<2>): 1 difference
    "#]]);
    // From the commit with its record itself.
    work.git(&["reset", "--quiet", "--hard", "HEAD~"]);
    work.git(&["rm", "--quiet", "-r", "localized-other"]);
    work.write("README.md", "Edited.\n");
    work.git(&["commit", "--quiet", "--all", "--amend", "--no-edit"]);
    work.run_unchanged(&["verify", "localized/main"]).fails(1).says(expect![[r#"
        README.md: differs from the source commit that the message of <0> records
        localized-other/kustomize-localize.lock: is gone, or no longer lists files

        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock and in the message of <1>
        NOT verified localized/main (<0>): 2 differences
    "#]]);
}

#[test]
fn a_branch_of_ours_holds_nothing_else() {
    let project = Project::new();
    let work = &project.work;
    work.run(&["branch", "--no-verify"]).success();
    let made = work.id("localized/main");
    work.git(&["switch", "--quiet", "localized/main"]);
    work.write("other/config.yaml", "kind: Edited\n");
    work.write("more/new.yaml", "a: b\n");
    work.git(&["rm", "--quiet", "README.md"]);
    work.commit("by hand");
    let mut transcript = Transcript::default();
    for rev in ["HEAD", "localized/main", "refs/heads/localized/main"] {
        let output = work.run_unchanged(&["verify", rev]);
        transcript.add(output.fails(1).stdout_has(&made[..12]));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify HEAD
        README.md: differs from the tree recorded in the message of <0>
        more: differs from the tree recorded in the message of <0>
        other/config.yaml: differs from the tree recorded in the message of <0>

        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
        NOT verified HEAD (<1>): 3 differences
        $ git kustomize-localize verify localized/main
        README.md: differs from the tree recorded in the message of <0>
        more: differs from the tree recorded in the message of <0>
        other/config.yaml: differs from the tree recorded in the message of <0>

        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
        NOT verified localized/main (<1>): 3 differences
        $ git kustomize-localize verify refs/heads/localized/main
        README.md: differs from the tree recorded in the message of <0>
        more: differs from the tree recorded in the message of <0>
        other/config.yaml: differs from the tree recorded in the message of <0>

        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
        NOT verified refs/heads/localized/main (<1>): 3 differences
    "#]]);
    // In a clone, too, and by the name that it has there.
    let clone = project.sandbox.clone_of(work, "clone");
    clone.git(&["switch", "--quiet", "--detach"]);
    clone.git(&["branch", "--quiet", "-D", "localized/main"]);
    clone.run_unchanged(&["verify", "localized/main"]).fails(2).says(expect![[r#"
        error: unknown revision `localized/main`
          hint: use its local name: origin/localized/main
    "#]]);
    clone.run_unchanged(&["verify", "origin/localized/main"]).fails(1).says(expect![[r#"
            README.md: differs from the tree recorded in the message of <0>
            more: differs from the tree recorded in the message of <0>
            other/config.yaml: differs from the tree recorded in the message of <0>

            .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
            NOT verified origin/localized/main (<1>): 3 differences
        "#]]);
}

#[test]
fn a_squash_on_a_main_that_went_on_is_as_recorded() {
    let project = Project::new();
    let work = &project.work;
    work.run(&["branch", "--no-verify"]).success();
    work.write("README.md", "Went on.\n");
    work.commit("more");
    work.git(&["merge", "--quiet", "--squash", "localized/main"]);
    work.git(&["commit", "--quiet", "--no-edit"]);
    work.run(&["verify"]).success().says(expect![[r#"
        .: 3 localized files, 1 upstream; recorded in the lock alone
        verified HEAD (<0>): as recorded
    "#]]);
    // The same on the branch is not a squash, whatever its subject.
    work.git(&["reset", "--quiet", "--hard"]);
    work.git(&["switch", "--quiet", "--detach", "localized/main"]);
    work.write("README.md", "Edited.\n");
    work.git(&["commit", "--quiet", "--all", "--amend", "--no-edit"]);
    work.run(&["verify"]).fails(1).says(expect![[r#"
        README.md: differs from the tree recorded in the message of <0>

        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
        NOT verified HEAD (<0>): 1 difference
    "#]]);
}

#[test]
fn a_commit_of_ours_that_was_rewritten_is_named() {
    let mut transcript = Transcript::default();
    for is_in_place in [false, true] {
        let branch = Branch::new(is_in_place);
        let name = branch.lock();
        let lock = branch.repo.read(&name);
        branch.repo.write(&name, lock.replacen("source: app/", "source: other/", 1));
        branch.repo.git(&["commit", "--quiet", "--all", "--amend", "--no-edit"]);
        transcript.add(branch.repo.run(&["verify"]).fails(1));
        // If the commit in the message was never fetched, only that there was something else can be reported.
        let path = branch.repo.path().with_extension("shallow");
        let from = format!("file://{}", branch.repo.path().display());
        let to = path.to_str().unwrap();
        branch.repo.git(&["clone", "--quiet", "--depth=1", &from, to]);
        let clone = Repo::new(&branch._world.sandbox, path);
        // Files beside a copy cannot be judged at all.
        let status = if is_in_place { 1 } else { 2 };
        transcript.add(clone.run(&["verify"]).fails(status));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify
        out/kustomize-localize.lock: differs from the tree recorded in the message of <0>

        out from app: 13 localized files, 3 upstreams; recorded in the lock and in the message of <0>
        NOT verified HEAD (<0>): 1 difference
        $ git kustomize-localize verify
        out: has the tree <0>, but the message of <1> records <2>

        out from app: 13 localized files, 3 upstreams; recorded in the lock and in the message of <1>
        NOT verified HEAD (<1>): 1 difference
        error: cannot compare the files beside the copies: this shallow clone lacks the source commit of <1>
          hint: fetch more of it: git fetch --deepen=100
        $ git kustomize-localize verify
        kustomize-localize.lock: differs from the tree recorded in the message of <0>

        .: 10 localized files, 3 upstreams; recorded in the lock and in the message of <0>
        NOT verified HEAD (<0>): 1 difference
        $ git kustomize-localize verify
        the repository has the tree <0>, but the message of <1> records <2>

        .: 10 localized files, 3 upstreams; recorded in the lock and in the message of <1>
        NOT verified HEAD (<1>): 1 difference
    "#]]);
}
