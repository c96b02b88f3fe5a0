//! Only the files that are needed are fetched, together.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::support::Random;

/// Returns a ConfigMap of about 3 kB that cannot be compressed: too large to come along with its commit.
fn large(name: &str) -> String {
    let mut random = Random::of(name);
    let noise: String = (0..3_000)
        .map(|_| char::from(b'a' + u8::try_from(random.below(26)).unwrap()))
        .collect();
    format!("{}data:\n  noise: {noise}\n", config_map(name))
}

/// Returns an upstream with many large files, of which `base` needs three, in two directories and a plugin.
fn monorepo(sandbox: &Sandbox, path: &str) -> Repo {
    let repo = sandbox.repo(path);
    fill(&repo);
    repo
}

fn fill(repo: &Repo) {
    let padding = "# a long comment\n".repeat(100);
    repo.write(
        "base/kustomization.yaml",
        "resources: [cm.yaml, ../common]\ntransformers: [label.yaml]\n",
    );
    repo.write("base/cm.yaml", large("base"));
    repo.write(
        "base/label.yaml",
        format!(
            "{padding}apiVersion: builtin\nkind: PatchTransformer\nmetadata:\n  name: patch\npath: patch.yaml\n"
        ),
    );
    repo.write(
        "base/patch.yaml",
        format!("{padding}{}data:\n  patched: \"1\"\n", config_map("base")),
    );
    // Its kustomization does not come along, so that only a guess finds the file beside it at once.
    repo.write(
        "common/kustomization.yaml",
        format!("{padding}resources: [cm.yaml]\n"),
    );
    repo.write("common/cm.yaml", large("common"));
    repo.write("LICENSE", large("terms"));
    for number in 0..60 {
        repo.write(
            &format!("other/{number}/cm.yaml"),
            large(&number.to_string()),
        );
        repo.write(
            &format!("other/{number}/kustomization.yaml"),
            "resources: [cm.yaml]\n",
        );
    }
    repo.commit("many");
    repo.git(&["tag", "-a", "-m", "one", "v1"]);
}

/// Returns the packs of the cache, with when they were written and their bytes.
fn packs(sandbox: &Sandbox) -> BTreeMap<String, (std::time::SystemTime, u64)> {
    fn add(place: &Path, all: &mut BTreeMap<String, (std::time::SystemTime, u64)>) {
        for entry in place.read_dir().into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add(&path, all);
            } else if path
                .extension()
                .is_some_and(|it| it == "pack" || it == "idx")
            {
                let metadata = path.metadata().unwrap();
                let facts = (metadata.modified().unwrap(), metadata.len());
                all.insert(path.to_str().unwrap().to_owned(), facts);
            }
        }
    }
    let mut all = BTreeMap::new();
    add(&sandbox.path("cache"), &mut all);
    all
}

fn bytes(sandbox: &Sandbox) -> u64 {
    let packs = packs(sandbox);
    let sizes = packs.iter().filter(|(name, _)| name.ends_with(".pack"));
    sizes.map(|(_, (_, size))| size).sum()
}

#[test]
fn only_what_a_build_reads_is_fetched() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let up = monorepo(&sandbox, "srv/acme/base");
    server.serve_git("/git/", &sandbox.path("srv"));
    let url = format!("{}acme/base.git", server.git_url());
    let repo = naming(&sandbox, &[&format!("{url}/base?ref=v1")]);
    let log = count_git(&sandbox);
    repo.run(&["app"]).success();
    // The commit, what is known then, what the plugin names.
    let fetches = taken(&log, "fetch");
    assert_eq!(fetches.len(), 3, "{fetches:#?}");
    assert!(
        repo.show("localized/main", "localized-app/kustomization.yaml")
            .contains("localized-files")
    );
    let files = repo.files("localized/main").join("\n");
    for file in ["base/patch.yaml", "common/cm.yaml", "/LICENSE"] {
        assert!(files.contains(file), "{files}");
    }
    // 60 others of 2 kB are not.
    assert!(bytes(&sandbox) < 30_000, "{}", bytes(&sandbox));
    assert!(!fetches.concat().contains("ls-remote"));

    // Another file of the same commit is a pack of its own.
    let id = up.id("HEAD");
    let before = packs(&sandbox);
    name(&repo, &[&format!("{url}/other/7?ref={id}")]);
    let offline = ["app", "--no-commit", "--offline"];
    repo.run_unchanged(&offline)
        .fails(2)
        .stderr_has("other/7/cm.yaml` is not in the cache")
        .stderr_has("hint: run once without `--offline`");
    assert_eq!(packs(&sandbox), before);
    repo.run(&["app", "--no-commit"]).success();
    assert_eq!(taken(&log, "fetch").len(), 1);
    let after = packs(&sandbox);
    assert_eq!(after.len(), before.len() + 2);
    assert!(before.iter().all(|(name, facts)| after[name] == *facts));
    server.forget();
    repo.run(&["app", "--no-commit", "--overwrite", "--offline"])
        .success();
    assert_eq!(server.log(), [""; 0]);
    assert_eq!(sandbox.leftovers(), [""; 0]);
}

#[test]
fn a_server_that_gives_whole_commits_only_is_taken_as_it_is() {
    for settings in [
        &[("uploadpack.allowFilter", "false")][..],
        &[("uploadpackfilter.allow", "false")],
        &[("uploadpackfilter.blob:limit.allow", "false")],
    ] {
        let sandbox = Sandbox::new();
        let up = monorepo(&sandbox, "up");
        for (key, value) in settings {
            up.git(&["config", key, value]);
        }
        let url = format!("file://{}//base?ref=v1", up.path().display());
        let repo = naming(&sandbox, &[&url]);
        repo.run(&["app"]).success().lacks("filter");
        assert!(bytes(&sandbox) > 100_000, "{settings:?}");
        repo.run(&["app", "out", "--no-commit", "--offline"])
            .fails(2);
        let id = up.id("HEAD");
        name(
            &repo,
            &[&format!("file://{}//other/3?ref={id}", up.path().display())],
        );
        repo.run(&["app", "out", "--no-commit", "--offline"])
            .success();
    }
}

#[test]
fn a_server_that_gives_no_single_files_gives_all_of_them() {
    let sandbox = Sandbox::new();
    let up = monorepo(&sandbox, "up");
    // The first version of the protocol knows filters, but gives nothing that no ref names.
    sandbox.configure(
        "remote.kl.uploadpack",
        "env -u GIT_PROTOCOL git-upload-pack",
    );
    let url = format!("file://{}//base?ref=v1", up.path().display());
    let repo = naming(&sandbox, &[&url]);
    repo.run(&["app"]).success().lacks("unadvertised");
    assert!(bytes(&sandbox) > 100_000);
}

#[test]
fn files_that_are_gone_from_the_cache_or_upstream() {
    let sandbox = Sandbox::new();
    let up = monorepo(&sandbox, "up");
    let id = up.id("HEAD");
    let url = |directory: &str| format!("file://{}//{directory}?ref={id}", up.path().display());
    let repo = naming(&sandbox, &[&url("base")]);
    let run = || repo.run(&["app", "--no-commit", "--overwrite"]);
    run().success();
    // Each pack that is gone, with and without its index: fetched again.
    let names: Vec<String> = packs(&sandbox).into_keys().collect();
    for name in &names {
        fs::remove_file(name).unwrap();
        run().success();
        if name.ends_with(".pack") {
            let _ = fs::remove_file(name);
            let _ = fs::remove_file(Path::new(name).with_extension("idx"));
            run().success();
        }
    }
    let before = packs(&sandbox);
    fs::rename(up.path(), sandbox.path("elsewhere")).unwrap();
    name(&repo, &[&url("other/1")]);
    let output = repo.run_unchanged(&["app", "--no-commit", "--overwrite"]);
    output
        .fails(2)
        .stderr_has("app/kustomization.yaml:2")
        .stderr_has("could not fetch file://");
    assert_eq!(packs(&sandbox), before);
}

#[test]
fn runs_may_meet_in_one_repository_of_the_cache() {
    let sandbox = Sandbox::new();
    let up = monorepo(&sandbox, "up");
    let repo = sandbox.repo("work");
    for number in 0..8 {
        let url = format!(
            "file://{}//other/{}?ref=v1",
            up.path().display(),
            number / 2
        );
        repo.write(
            &format!("app-{number}/kustomization.yaml"),
            format!("resources: [{url:?}]\n"),
        );
    }
    repo.commit("source");
    let runs: Vec<_> = (0..8)
        .map(|number| repo.start(&[&format!("app-{number}"), "--no-commit"]))
        .collect();
    for run in runs {
        run.wait().success();
    }
    assert_eq!(sandbox.leftovers(), [""; 0]);
    assert!(bytes(&sandbox) < 40_000, "{}", bytes(&sandbox));
}

#[test]
fn attributes_submodules_and_links_on_the_way_are_fetched_too() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let library = sandbox.repo("srv/acme/library");
    let padding = "# a long comment\n".repeat(100);
    library.write(
        "kustomization.yaml",
        format!("{padding}resources: [cm.yaml]\n"),
    );
    library.write("cm.yaml", large("library"));
    library.write("unused.yaml", large("unused"));
    library.commit("one");
    server.serve_git("/git/", &sandbox.path("srv"));
    let git = server.git_url();
    let up = sandbox.repo("srv/acme/app");
    let add = ["submodule", "--quiet", "add"];
    up.git(&[&add[..], &[&format!("{git}acme/library"), "lib"]].concat());
    up.write(
        "overlay/kustomization.yaml",
        "resources: [../lib, cm.yaml]\n",
    );
    up.write("overlay/real.yaml", large("real"));
    up.symlink("overlay/cm.yaml", "real.yaml");
    up.write(".gitattributes", format!("{padding}*.yaml text\n"));
    up.write(
        "overlay/.gitattributes",
        format!("{padding}real.yaml eol=crlf\n"),
    );
    up.write("other/.gitattributes", format!("{padding}*.txt ident\n"));
    up.commit("submodule");
    let repo = naming(&sandbox, &[&format!("{git}acme/app.git/overlay?ref=main")]);
    repo.run(&["app", "--no-commit"]).success();
    let find = |end: &str| {
        let mut todo = vec![repo.path().join("localized-app")];
        while let Some(place) = todo.pop() {
            if place.is_dir() {
                todo.extend(place.read_dir().unwrap().map(|one| one.unwrap().path()));
            } else if place.ends_with(end) {
                return fs::read_to_string(place).unwrap();
            }
        }
        panic!("no {end}");
    };
    assert_eq!(
        find("overlay/real.yaml"),
        large("real").replace('\n', "\r\n")
    );
    assert_eq!(find("lib/cm.yaml"), large("library"));
}

#[test]
fn files_of_a_sha256_repository_are_fetched() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("up");
    fs::create_dir(&path).unwrap();
    sandbox.git(
        &path,
        &["init", "-q", "-b", "main", "--object-format=sha256"],
    );
    let up = Repo::new(&sandbox, path);
    up.git(&["config", "uploadpack.allowFilter", "true"]);
    fill(&up);
    let url = format!("file://{}//base?ref=v1", up.path().display());
    let repo = naming(&sandbox, &[&url]);
    repo.run(&["app", "--no-commit"]).success();
    assert!(bytes(&sandbox) < 30_000, "{}", bytes(&sandbox));
}

#[test]
fn no_secret_of_a_url_is_kept_with_a_part_of_a_repository() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    monorepo(&sandbox, "srv/acme/base");
    server.serve_git("/git/", &sandbox.path("srv"));
    server.require_password("/git/", "me", "s3cr3t");
    let url = format!("{}acme/base.git/base?ref=v1", server.git_url());
    let url = url.replace("http://", "http://me:s3cr3t@");
    let repo = naming(&sandbox, &[&url]);
    repo.run(&["app", "--no-commit"]).success();
    let mut todo = vec![sandbox.path("cache")];
    while let Some(place) = todo.pop() {
        if place.is_dir() {
            todo.extend(place.read_dir().unwrap().map(|one| one.unwrap().path()));
        } else {
            let bytes = fs::read(&place).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            for secret in ["s3cr3t", "kl.url", "[remote"] {
                assert!(!text.contains(secret), "{}: {text}", place.display());
            }
        }
    }
}

#[test]
fn refs_of_one_repository_are_one_request() {
    let sandbox = Sandbox::new();
    let up = monorepo(&sandbox, "up");
    let first = up.id("HEAD");
    let mut references = vec!["v1".to_owned(), first.clone()];
    for number in 0..4 {
        up.write("base/cm.yaml", large(&format!("base-{number}")));
        up.commit("next");
        up.git(&["branch", &format!("b{number}")]);
        references.push(format!("b{number}"));
    }
    let url = |reference: &String| format!("file://{}//base?ref={reference}", up.path().display());
    let urls: Vec<String> = references.iter().map(url).collect();
    let mut urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let repo = naming(&sandbox, &urls);
    let log = count_git(&sandbox);
    let json = ["app", "--dry-run", "--format", "json"];
    let output = repo.run(&json);
    output.success();
    for number in 0..4 {
        output.stdout_has(&up.id(&format!("b{number}")));
    }
    output.stdout_has(&first);
    // The commits, their files, what the plugin names.
    assert_eq!(taken(&log, "fetch").len(), 3);
    assert!(bytes(&sandbox) < 6 * 30_000, "{}", bytes(&sandbox));
    // Each of them is whole for itself.
    for reference in &references[2..] {
        let id = up.id(reference);
        name(&repo, &[&url(&id)]);
        repo.run(&["app", "--dry-run", "--offline"]).success();
    }
    taken(&log, "");
    name(&repo, &urls);
    let again = repo.run(&json);
    assert_eq!(again.success().stdout, output.stdout);
    let calls = fs::read_to_string(&log).unwrap();
    assert_eq!(calls.matches(" ls-remote ").count(), 1, "{calls}");
    assert_eq!(calls.matches(" fetch ").count(), 0, "{calls}");

    // One that is missing is named, and the others are there.
    fs::remove_dir_all(sandbox.path("cache")).unwrap();
    let missing = url(&"nowhere".to_owned());
    urls.push(&missing);
    name(&repo, &urls);
    let output = repo.run_unchanged(&["app"]);
    output
        .fails(2)
        .stderr_has("has no ref `nowhere`")
        .lacks("b1");
}
