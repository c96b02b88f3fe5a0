//! Only the files that are needed are fetched, together.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::support::{Output, Random, Transcript, each_file};

/// Returns a ConfigMap of about 3 kB that cannot be compressed: too large to come along with its commit.
fn large(name: &str) -> String {
    let mut random = Random::of(name);
    let noise: String = (0..3_000).map(|_| char::from(b'a' + u8::try_from(random.below(26)).unwrap())).collect();
    format!("{}data:\n  noise: {noise}\n", config_map(name))
}

fn padding() -> String {
    "# a long comment\n".repeat(150)
}

/// Returns a sandbox and an upstream with many large files, of which `base` needs three, in two directories and a
/// plugin. Its URL is without what follows the slashes.
fn monorepo() -> (Sandbox, Repo, String) {
    let sandbox = Sandbox::new();
    let up = sandbox.repo("up");
    fill(&up);
    let url = format!("file://{}/", up.path().display());
    (sandbox, up, url)
}

fn fill(repo: &Repo) {
    let padding = padding();
    repo.write("base/kustomization.yaml", "resources: [cm.yaml, ../common]\ntransformers: [label.yaml]\n");
    repo.write("base/cm.yaml", large("base"));
    repo.write(
        "base/label.yaml",
        format!("{padding}apiVersion: builtin\nkind: PatchTransformer\nmetadata:\n  name: patch\npath: patch.yaml\n"),
    );
    repo.write("base/patch.yaml", format!("{padding}{}data:\n  patched: \"1\"\n", config_map("base")));
    // Its kustomization does not come along, so that the file beside it is known later.
    repo.write("common/kustomization.yaml", format!("{padding}resources: [cm.yaml]\n"));
    repo.write("common/cm.yaml", large("common"));
    repo.write("LICENSE", large("terms"));
    for number in 0..60 {
        let other = format!("other/{number}");
        repo.write(&format!("{other}/cm.yaml"), large(&other));
        let root = format!("{other}/kustomization.yaml");
        repo.write(&root, "resources: [cm.yaml]\n");
    }
    repo.commit("many");
    repo.git(&["tag", "-f", "-a", "-m", "one", "v1"]);
}

/// Returns the files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    each_file(directory, &mut |path| found.push(path.to_owned()));
    found
}

/// Returns the packs of the cache, with when they were written and their bytes.
fn packs(sandbox: &Sandbox) -> BTreeMap<PathBuf, (std::time::SystemTime, u64)> {
    let is_pack = |path: &PathBuf| path.extension().is_some_and(|it| it == "pack" || it == "idx");
    let packs = files(&sandbox.path("cache")).into_iter().filter(is_pack);
    let facts = packs.map(|path| {
        let metadata = path.metadata().unwrap();
        (path, (metadata.modified().unwrap(), metadata.len()))
    });
    facts.collect()
}

fn bytes(sandbox: &Sandbox) -> u64 {
    let packs = packs(sandbox).into_iter();
    let packs = packs.filter(|(path, _)| path.extension().unwrap() == "pack");
    packs.map(|(_, (_, size))| size).sum()
}

#[test]
fn only_what_a_build_reads_is_fetched() {
    let (sandbox, server, up, url) = served();
    fill(&up);
    let repo = naming(&sandbox, &[format!("{url}//base?ref=main")]);
    let log = count_git(&sandbox);
    repo.run(&["app"]).success();
    // The commit, what is known then, what the plugin and the other kustomization name.
    let fetches = taken(&log, "fetch");
    assert_eq!(fetches.len(), 3, "{fetches:#?}");
    let files = repo.files("localized/main").join("\n");
    for file in ["base/patch.yaml", "common/cm.yaml", "/LICENSE"] {
        assert!(files.contains(file), "{files}");
    }
    // 60 others of 2 kB are not.
    assert!(bytes(&sandbox) < 30_000, "{}", bytes(&sandbox));

    // Another file of the same commit is a pack of its own.
    let before = packs(&sandbox);
    naming(&sandbox, &[format!("{url}//other/7?ref={}", up.id("HEAD"))]);
    repo.run_unchanged(&["app", "--no-commit", "--offline"])
        .fails(2)
        .says(expect![[r#"
            error: `http://127.0.0.1:…/git/acme/base.git?ref=<0>: other/7/cm.yaml` is not in the cache
              reached from app/kustomization.yaml:2:3 -> http://127.0.0.1:…/git/acme/base.git?ref=<0>: other/7/kustomization.yaml:1:13
              hint: run once without `--offline`
        "#]]);
    assert_eq!(packs(&sandbox), before);
    repo.run(&["app", "--no-commit"]).success();
    assert_eq!(taken(&log, "fetch").len(), 1);
    let after = packs(&sandbox);
    assert_eq!(after.len(), before.len() + 2);
    assert!(before.iter().all(|(name, facts)| after[name] == *facts));
    server.forget();
    repo.run(&["app", "--no-commit", "--overwrite", "--offline"]).success();
    assert_eq!(server.log(), crate::support::NONE);
    assert_eq!(sandbox.leftovers(), crate::support::NONE);
}

#[test]
fn a_server_that_gives_whole_commits_only_is_taken_as_it_is() {
    let mut transcript = Transcript::default();
    for setting in ["uploadpack.allowFilter", "uploadpackfilter.allow", "uploadpackfilter.blob:limit.allow"] {
        let (sandbox, up, url) = monorepo();
        up.git(&["config", setting, "false"]);
        let repo = naming(&sandbox, &[format!("{url}/base?ref=v1")]);
        transcript.add(repo.run(&["app"]).success());
        assert!(bytes(&sandbox) > 100_000, "{setting}");
        let offline = ["app", "out", "--no-commit", "--offline"];
        repo.run(&offline).fails(2);
        naming(&sandbox, &[format!("{url}/other/3?ref={}", up.id("HEAD"))]);
        repo.run(&offline).success();
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app --no-verify
        localized app into localized-app on branch localized/main (<0>): 10 files written, 1 reference rewritten, 0 removed
          added file:///home/me/up?ref=v1 <1>
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
    let (sandbox, _up, url) = monorepo();
    // The first version of the protocol knows filters, but gives nothing that no ref names.
    let old = "env -u GIT_PROTOCOL git-upload-pack";
    sandbox.configure("remote.kl.uploadpack", old);
    let repo = naming(&sandbox, &[format!("{url}/base?ref=v1")]);
    repo.run(&["app"]).success().says(expect![[r#"
        localized app into localized-app on branch localized/main (<0>): 10 files written, 1 reference rewritten, 0 removed
          added file:///home/me/up?ref=v1 <1>
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
    assert!(bytes(&sandbox) > 100_000);
}

#[test]
fn files_that_are_gone_from_the_cache_or_upstream() {
    let (sandbox, up, url) = monorepo();
    let id = up.id("HEAD");
    let repo = naming(&sandbox, &[format!("{url}/base?ref={id}")]);
    let run = || repo.run(&["app", "--dry-run"]).success().status;
    run();
    // Each pack that is gone, with and without its index: fetched again.
    for path in packs(&sandbox).into_keys() {
        fs::remove_file(&path).unwrap();
        run();
        if path.extension().unwrap() == "pack" {
            let _ = fs::remove_file(&path);
            let _ = fs::remove_file(path.with_extension("idx"));
            run();
        }
    }
    let before = packs(&sandbox);
    fs::rename(up.path(), sandbox.path("elsewhere")).unwrap();
    naming(&sandbox, &[format!("{url}/other/1?ref={id}")]);
    repo.run_unchanged(&["app", "--no-commit"])
        .fails(2)
        .says(expect![[r#"
            error: file:///home/me/up?ref=<0>: other/1/cm.yaml: could not fetch file:///home/me/up: '/home/me/up' does not appear to be a git repository
              reached from app/kustomization.yaml:2:3 -> file:///home/me/up?ref=<0>: other/1/kustomization.yaml:1:13
              hint: check the URL (kustomize splits it after two segments, at `.git`, or at `//`); if the repository moved or is private, ask its owner
        "#]]);
    assert_eq!(packs(&sandbox), before);
}

#[test]
fn runs_may_meet_in_one_repository_of_the_cache() {
    let (sandbox, _up, url) = monorepo();
    let repo = sandbox.repo("work");
    for number in 0..8 {
        let url = format!("{url}/other/{}?ref=v1", number / 2);
        let root = format!("app-{number}/kustomization.yaml");
        repo.write(&root, format!("resources: [{url:?}]\n"));
    }
    repo.commit("source");
    let runs = [0, 1, 2, 3, 4, 5, 6, 7].map(|number| repo.start(&[&format!("app-{number}"), "--no-commit"]));
    for run in runs {
        run.wait().success();
    }
    assert_eq!(sandbox.leftovers(), crate::support::NONE);
    assert!(bytes(&sandbox) < 40_000, "{}", bytes(&sandbox));
}

#[test]
fn attributes_submodules_and_links_on_the_way_are_fetched_too() {
    let (sandbox, server, up, url) = served();
    let padding = padding();
    let library = sandbox.repo("srv/acme/library");
    library.write("kustomization.yaml", format!("{padding}resources: [cm.yaml]\n"));
    library.write("cm.yaml", large("library"));
    library.write("unused.yaml", large("unused"));
    library.commit("one");
    let from = format!("{}acme/library", server.git_url());
    up.git(&["submodule", "--quiet", "add", &from, "lib"]);
    let overlay = "resources: [../lib, cm.yaml]\n";
    up.write("overlay/kustomization.yaml", overlay);
    up.write("overlay/real.yaml", large("real"));
    up.symlink("overlay/cm.yaml", "real.yaml");
    for (directory, attributes) in [("", "*.yaml text"), ("overlay/", "real.yaml eol=crlf"), ("other/", "*.txt ident")]
    {
        let path = format!("{directory}.gitattributes");
        up.write(&path, format!("{padding}{attributes}\n"));
    }
    up.commit("submodule");
    let repo = naming(&sandbox, &[format!("{url}//overlay?ref=main")]);
    repo.run(&["app", "--no-commit"]).success();
    let all = files(&repo.path().join("localized-app"));
    let text = |end: &str| {
        let path = all.iter().find(|path| path.ends_with(end)).unwrap();
        fs::read_to_string(path).unwrap()
    };
    let real = large("real").replace('\n', "\r\n");
    assert_eq!(text("overlay/real.yaml"), real);
    assert_eq!(text("lib/cm.yaml"), large("library"));
}

#[test]
fn files_of_a_sha256_repository_are_fetched() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("up");
    fs::create_dir(&path).unwrap();
    let init = ["init", "-q", "-b", "main", "--object-format=sha256"];
    sandbox.git(&path, &init);
    let up = Repo::new(&sandbox, path);
    up.git(&["config", "uploadpack.allowFilter", "true"]);
    fill(&up);
    let id = up.id("HEAD");
    assert_eq!(id.len(), 64);

    for reference in ["v1", &id] {
        let url = format!("file://{}//base?ref={reference}", up.path().display());
        let repo = naming(&sandbox, &[url]);
        repo.run(&["app", "--dry-run", "--format", "json"]).success().stdout_has(&id);
        assert!(bytes(&sandbox) < 30_000, "{}", bytes(&sandbox));
    }
}

#[test]
fn no_secret_of_a_url_is_kept_with_a_part_of_a_repository() {
    let (sandbox, server, up, url) = served();
    fill(&up);
    server.require_password("/git/", "me", "s3cr3t");
    let url = url.replace("http://", "http://me:s3cr3t@");
    let repo = naming(&sandbox, &[format!("{url}//base?ref=main")]);
    repo.run(&["app", "--no-commit"]).success();
    for path in files(&sandbox.path("cache")) {
        let bytes = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for secret in ["s3cr3t", "kl.url", "[remote"] {
            assert!(!text.contains(secret), "{}: {text}", path.display());
        }
    }
}

#[test]
fn refs_of_one_repository_are_one_request() {
    let (sandbox, up, url) = monorepo();
    let first = up.id("HEAD");
    let mut references = vec!["v1".to_owned(), first.clone()];
    for number in 0..4 {
        up.write("base/cm.yaml", large(&format!("base-{number}")));
        up.commit("next");
        up.git(&["branch", &format!("b{number}")]);
        references.push(format!("b{number}"));
    }
    let url = |reference: &String| format!("{url}/base?ref={reference}");
    let mut urls: Vec<String> = references.iter().map(url).collect();
    let repo = naming(&sandbox, &urls);
    let log = count_git(&sandbox);
    let json = ["app", "--dry-run", "--format", "json"];
    let output = repo.run(&json);
    output.success().stdout_has(&first);
    // The commits, their files, what these name.
    assert_eq!(taken(&log, "fetch").len(), 3);
    assert!(bytes(&sandbox) < 6 * 30_000, "{}", bytes(&sandbox));
    // Each of them is whole for itself.
    for reference in &references[2..] {
        let id = up.id(reference);
        output.stdout_has(&id);
        naming(&sandbox, &[url(&id)]);
        repo.run(&["app", "--dry-run", "--offline"]).success();
    }
    taken(&log, "");
    naming(&sandbox, &urls);
    let again = repo.run(&json);
    let parts = |output: &Output| {
        let mut json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        [json["files"].take(), json["remotes"].take()]
    };
    assert_eq!(parts(again.success()), parts(&output));
    let calls = fs::read_to_string(&log).unwrap();
    let times = [" ls-remote ", " fetch "].map(|command| calls.matches(command).count());
    assert_eq!(times, [1, 0], "{calls}");

    // One that is missing is named, and the others are there.
    forget(&sandbox);
    urls.push(url(&"nowhere".to_owned()));
    naming(&sandbox, &urls);
    repo.run_unchanged(&["app"]).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:8:3: resources[6]: file:///home/me/up has no ref `nowhere`
          hint: list its refs: git ls-remote file:///home/me/up
        hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
          - {url: 'file:///home/me/up//base?ref=nowhere', reason: 'TODO'}
    "#]]);
}
