//! Written by hand stays as it was, and what is fetched is what a checkout of it gives.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::{Repo, Running, World, config_map, rows};

const URL: &str = "https://files.example.com/map.yaml";
const LOCAL: &str = "localized-files/files.example.com/map.yaml";

/// Returns the mode and blob id of every file of a tree, by its path.
fn blobs(repo: &Repo, tree: &str) -> BTreeMap<String, String> {
    let listing = repo.git(&["ls-tree", "-r", tree]);
    listing
        .lines()
        .map(|line| {
            let (entry, path) = line.split_once('\t').unwrap();
            (path.to_owned(), entry.to_owned())
        })
        .collect()
}

#[test]
fn only_the_bytes_of_a_changed_scalar_differ() {
    let world = World::new();
    world.file(URL, config_map("file"));
    let texts = [
        format!("# top\n\n\nresources:   # why\n\n    -   {URL}   # comment \t\n# between\n    - 'map.yaml'\n#end"),
        format!("\u{feff}resources:\r\n- {URL}\r\n\r\nnamePrefix:   \"a-\" \r\n"),
        format!("{{resources: [ \"{URL}\",map.yaml , ], 'namePrefix': 'a-'}}"),
        format!("resources: &all\n- &one '{URL}'\n- map.yaml\ncommonAnnotations: &two {{a: b}}\n"),
        format!("%YAML 1.1\n---\nresources:\n- {URL}\nnameSuffix: -b\n...\n"),
        format!("resources:\n- {URL}\n- ./map.yaml\nlabels:\n- pairs: {{\"x\":   'y'}}\n"),
        format!("resources: [{URL}]"),
        format!("{{\"resources\": [\"{URL}\", \"map.yaml\"], \"nameSuffix\": \"-c\"}}"),
    ];
    for (number, text) in texts.iter().enumerate() {
        let name = format!("app-{number}");
        world.commit(&[
            (&format!("{name}/kustomization.yaml"), text),
            (&format!("{name}/map.yaml"), &config_map("map")),
        ]);
        let clone = world.localized(&[&name]);
        let after = clone.read(&format!("localized-{name}/kustomization.yaml"));
        assert_eq!(after, text.replace(URL, LOCAL));
        world.same_build(&name, &clone, &format!("localized-{name}"));
    }
}

#[test]
fn local_files_keep_blob_and_mode() {
    let world = World::new();
    world.file(URL, config_map("file"));
    let work = &world.work;
    work.write("app/crlf.txt", "a\r\nb\r\n");
    work.write("app/binary.bin", b"\x00\xff\x01\r\n\x80");
    work.write("app/no-newline.txt", "end");
    work.write_executable("app/run.sh", "#!/bin/sh\n");
    work.write("app/named like this=.yaml", config_map("odd"));
    work.write("app/base/kustomization.yaml", "\u{feff}# same\r\nresources: [map.yaml]");
    work.write("app/base/map.yaml", config_map("base"));
    work.write(
        "app/kustomization.yaml",
        format!("resources: [{URL}, base, named like this=.yaml]\nconfigMapGenerator:\n- name: g\n  files: [crlf.txt, binary.bin, no-newline.txt, run.sh]\n"),
    );
    work.commit("files");
    work.run(&["app"]).success();
    let before = blobs(work, "main:app");
    let after = blobs(work, "localized/main:localized-app");
    for (path, entry) in &before {
        if path == "kustomization.yaml" {
            assert_ne!(Some(entry), after.get(path));
        } else {
            assert_eq!(Some(entry), after.get(path), "{path}");
        }
    }
    assert!(after["run.sh"].starts_with("100755 "));
    world.same_build("app", &world.clone_of_branch(), "localized-app");
}

/// Upstreams whose attributes change what a checkout gives.
fn attributes(world: &World) -> Repo {
    let upstream = world.upstream("acme/base");
    upstream.write(
        ".gitattributes",
        "[attr]windows eol=crlf\n*.crlf text eol=crlf\n*.win text windows\n*.id ident\n*.u16 text working-tree-encoding=UTF-16LE-BOM\n*.auto text=auto\n*.skip export-ignore\n*.subst export-subst\n*.lf text eol=lf\n",
    );
    upstream.write("sub/.gitattributes", "*.plain text eol=crlf\n*.crlf -text\n");
    let names = [
        "a.crlf",
        "a.win",
        "a.id",
        "a.u16",
        "a.auto",
        "a.skip",
        "a.subst",
        "a.lf",
        "a.plain",
        "stored.txt",
        "sub/a.plain",
        "sub/a.crlf",
        "sub/a.id",
    ];
    let mut text = String::from("configMapGenerator:\n- name: all\n  files:\n");
    for name in names {
        let body = match name {
            "a.u16" => "\u{feff}one\ntwo\n".encode_utf16().flat_map(u16::to_le_bytes).collect(),
            "stored.txt" => b"one\r\ntwo\r\n".to_vec(),
            "a.id" | "sub/a.id" => b"$Id$\none\n".to_vec(),
            "a.subst" => b"$Format:%H$\n".to_vec(),
            _ => b"one\ntwo\n".to_vec(),
        };
        upstream.write(name, body);
        text.push_str(&format!("  - {}={name}\n", name.replace('/', "-")));
    }
    upstream.write("kustomization.yaml", text);
    upstream.commit("first");
    upstream.git(&["tag", "v1"]);
    upstream
}

/// Returns the contents of a clone without any configuration.
fn null_clone(world: &World, upstream: &Repo) -> Repo {
    let path = world.sandbox.path("null-clone");
    let mut command = world.sandbox.command("git", &world.sandbox.path(""));
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .args(["-c", "advice.detachedHead=false", "clone", "-q"])
        .args([upstream.path(), &path]);
    Running::start(&mut command).wait().success();
    Repo::new(&world.sandbox, path)
}

/// Commits a root that names what has all [`attributes`], and returns what a checkout of that holds.
fn checkout_of_named(world: &World) -> Repo {
    let upstream = attributes(world);
    world.commit(&[("app/kustomization.yaml", "resources: ['https://github.com/acme/base?ref=v1']\n")]);
    null_clone(world, &upstream)
}

fn compare(expected: &Path, actual: &Path) -> usize {
    let mut compared = 0;
    for entry in fs::read_dir(actual).unwrap() {
        let path = entry.unwrap().path();
        let other = expected.join(path.file_name().unwrap());
        if path.is_dir() {
            compared += compare(&other, &path);
        } else {
            assert_eq!(
                fs::read(&path).unwrap().escape_ascii().to_string(),
                fs::read(&other).unwrap().escape_ascii().to_string(),
                "{}",
                path.display()
            );
            compared += 1;
        }
    }
    compared
}

#[test]
fn a_remote_root_has_the_bytes_of_a_checkout() {
    let world = World::new();
    let expected = checkout_of_named(&world);
    assert_eq!(fs::read(expected.path().join("a.crlf")).unwrap(), b"one\r\ntwo\r\n");
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
    let place = "localized-app/localized-files/github.com/acme/base/v1";
    assert_eq!(compare(expected.path(), &clone.path().join(place)), 14);
}

#[test]
fn the_configuration_of_the_user_changes_no_byte() {
    let world = World::new();
    let expected = checkout_of_named(&world);
    let file = world.sandbox.path("attributes");
    fs::write(&file, "* text eol=crlf ident\n*.plain filter=shout\n").unwrap();
    world.sandbox.configure("core.attributesFile", file.to_str().unwrap());
    world.sandbox.configure("core.autocrlf", "true");
    world.sandbox.configure("core.eol", "crlf");
    world.sandbox.configure("filter.shout.smudge", "tr a-z A-Z");
    // Not even that of this repository, which connection settings are taken from.
    world.work.git(&["config", "core.autocrlf", "true"]);
    // The clone has all of this, too.
    let clone = world.localized(&["app"]);
    let place = "localized-app/localized-files/github.com/acme/base/v1";
    assert_eq!(compare(expected.path(), &clone.path().join(place)), 14);
    assert_eq!(clone.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_downloaded_executable_loses_its_bit() {
    let world = World::new();
    let upstream = world.upstream("acme/base");
    upstream.write_executable("run.sh", "#!/bin/sh\n");
    upstream.write("kustomization.yaml", "configMapGenerator:\n- {name: g, files: [run.sh]}\n");
    upstream.commit("first");
    upstream.git(&["tag", "v1"]);
    world.commit(&[("app/kustomization.yaml", "resources: ['https://github.com/acme/base?ref=v1']\n")]);
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
    let files = world.work.files("localized/main");
    assert!(
        files.contains(&"100644 localized-app/localized-files/github.com/acme/base/v1/run.sh".to_owned()),
        "{files:?}"
    );
    world.work.run(&["app"]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has app in localized-app
          not verified: --no-verify
    "#]]);
}

/// An upstream with CRLF and binary files, also in a kustomization that is edited.
fn windows_upstream(world: &World) {
    let upstream = world.upstream("acme/windows");
    upstream.write(
        "kustomization.yaml",
        format!("resources:\r\n- map.yaml\r\n- {URL}\r\nconfigMapGenerator:\r\n- name: g\r\n  files: [data.bin, run.bat, $Id$]\r\n"),
    );
    upstream.write("map.yaml", config_map("windows").replace('\n', "\r\n"));
    upstream.write("data.bin", b"\x00\x01\r\n\xff\n");
    upstream.write("run.bat", "one\r\ntwo\nthree\r\n");
    upstream.write("$Id$", "$Id$\n");
    upstream.commit("first");
    upstream.git(&["tag", "v1"]);
    world.file(URL, config_map("file").replace('\n', "\r\n"));
}

fn stays_clean(attributes: &str, autocrlf: bool) {
    let world = World::new();
    let work = &world.work;
    windows_upstream(&world);
    if autocrlf {
        world.sandbox.configure("core.autocrlf", "true");
    }
    if !attributes.is_empty() {
        work.write(".gitattributes", attributes);
    }
    world.commit(&[(
        "app/kustomization.yaml",
        &format!("resources: ['https://github.com/acme/windows?ref=v1', base]\npatches:\n- path: {URL}\n"),
    )]);
    world.commit(&[
        ("app/base/kustomization.yaml", "resources: [map.yaml]\n"),
        ("app/base/map.yaml", &config_map("base")),
    ]);
    work.run(&["app", "--no-verify"]).success();
    let linked = world.sandbox.path("linked");
    work.git(&["worktree", "add", "-q", linked.to_str().unwrap(), "localized/main"]);
    let clone = world.clone_of_branch();
    for repo in [&Repo::new(&world.sandbox, linked), &clone] {
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "{attributes}");
        repo.git(&["add", "--renormalize", "."]);
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "{attributes}");
        // The bytes on disk are those that were fetched.
        let place = "localized-app/localized-files/github.com/acme/windows/v1";
        assert_eq!(fs::read(repo.path().join(place).join("run.bat")).unwrap(), b"one\r\ntwo\nthree\r\n");
        assert_eq!(fs::read(repo.path().join(place).join("data.bin")).unwrap(), b"\x00\x01\r\n\xff\n");
    }
    // kustomize's own clone would be another one for such a user.
    if !autocrlf {
        world.same_build("app", &clone, "localized-app");
    }
    // Nor does a file that was written back by an editor and git look changed.
    work.git(&["worktree", "remove", "--force", "../linked"]);
    work.run(&["app", "--no-verify"]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has app in localized-app
          not verified: --no-verify
    "#]]);
}

#[test]
fn checkouts_of_the_branch_stay_clean() {
    for attributes in rows(["* text eol=crlf\n*.bin -text\n", "* text=auto\n", "* ident filter=nobody\n", ""], 2) {
        stays_clean(attributes, false);
    }
}

#[test]
fn checkouts_stay_clean_for_a_user_on_windows() {
    stays_clean("", true);
    stays_clean("* text=auto\n", true);
}

/// The branch itself is the first place to take remote files from, whatever they had to be called.
#[test]
fn the_tip_gives_back_what_was_localized() {
    let world = World::new();
    let work = &world.work;
    world.file("https://files.example.com/plain.txt", "plain\n");
    world.file("https://files.example.com/a%20b.txt", "blank\n");
    let upstream = world.upstream("acme/base");
    upstream.symlink("app/link.txt", "files/real one.txt");
    upstream.write("app/files/real one.txt", "real\n");
    upstream.write("app/$Id$", "id\n");
    upstream.write(
        "app/kustomization.yaml",
        "resources: [../my base, app@v1/base/x, ../app/../my base/../other]\nconfigMapGenerator:\n- name: g\n  files:\n  - k.txt=https://files.example.com/plain.txt\n  - https://files.example.com/a%20b.txt\n  - link.txt\n  - $Id$\n  - other=../app/$Id$\n",
    );
    // kustomize would take this directory for a git URL.
    upstream.write("app/kustomization.yaml", upstream.read("app/kustomization.yaml").replace(" app@", " ./app@"));
    for (directory, name) in [("my base", "my"), ("app/app@v1/base/x", "x"), ("other", "other")] {
        upstream.write(&format!("{directory}/kustomization.yaml"), "resources: [a map.yaml]\n");
        upstream.write(&format!("{directory}/a map.yaml"), config_map(name));
    }
    upstream.commit("first");
    upstream.git(&["tag", "v1"]);
    world.commit(&[
        ("app/kustomization.yaml", "resources: ['https://github.com/acme/base//app?ref=v1', map.yaml]\n"),
        ("app/map.yaml", &config_map("map")),
    ]);
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
    let stored = work.id("localized/main:localized-app/localized-files");

    fs::remove_dir_all(world.sandbox.path("cache")).unwrap();
    fs::rename(world.sandbox.path("upstream"), world.sandbox.path("gone")).unwrap();
    world.server.forget();
    world.commit(&[("app/map.yaml", &config_map("changed"))]);
    work.run(&["app"]).success().says(expect![[r#"
        localized app into localized-app on branch localized/main (<0>): 2 files written, 0 references rewritten, 0 removed
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
    assert_eq!(work.id("localized/main:localized-app/localized-files"), stored);
    assert_eq!(world.server.log(), crate::support::NONE);
    work.run(&["app", "--offline"]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has app in localized-app
          not verified: --no-verify
    "#]]);
}
