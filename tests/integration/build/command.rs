//! `build`: what kustomize makes of a root, from the lock alone.

use std::fs;

use crate::support::{Kustomize, Repo, Transcript, World, config_map};

/// Returns a repository whose lock is committed, with a kustomize; none where there is no kustomize.
fn world() -> Option<(World, Kustomize)> {
    let world = World::acme();
    let kustomize = world.sandbox.builds()?;
    world.commit(&[
        (
            "web/kustomization.yaml",
            "resources:\n- map.yaml\n- https://github.com/acme/lib//web?ref=v1\n- https://files.example.com/v1/app.yaml\n",
        ),
        ("web/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\ndata: {a: \"\\n::debug::x\\n\"}\n"),
    ]);
    world.work.run(&["lock"]).success();
    world.work.commit("Lock");
    Some((world, kustomize))
}

#[test]
fn a_root_is_built_from_the_lock_without_the_network() {
    let Some((world, kustomize)) = world() else { return };
    let expected = world.build(&kustomize, world.work.path(), "web", &[], false);
    expected.success();
    world.server.forget();
    fs::rename(world.sandbox.path("upstream"), world.sandbox.path("gone")).unwrap();
    for args in [&["web"][..], &["./web"], &["web/kustomization.yaml"], &["web", "--rev", "main"]] {
        let built = world.work.run_unchanged(&[&["build"], args].concat());
        assert_eq!(built.success().stdout, expected.stdout);
        assert_eq!(built.stderr, "");
    }
    assert_eq!(world.server.log(), crate::support::NONE);
    // An exception keeps nothing remote that the lock has.
    world.work.write(".kustomize-localize", "allow: [{url: '**', refs: any, reason: all}]\n");
    assert_eq!(world.work.run_unchanged(&["build", "web"]).success().stdout, expected.stdout);
    world.work.remove(".kustomize-localize");
    assert_eq!(world.sandbox.run(&world.work.path().join("web"), &["build"]).success().stdout, expected.stdout);
    // Reading a localized branch changes nothing on it.
    world.work.run(&["branch"]).success();
    world.work.git(&["switch", "-q", "localized/main"]);
    assert_eq!(world.work.run_unchanged(&["build", "web"]).success().stdout, expected.stdout);
    world.work.run_unchanged(&["diff", "main"]).success().stderr_has("nothing differs in 1 affected build");
    world.work.git(&["switch", "-q", "main"]);
    world.work.run_unchanged(&["build", "web", "--format=json"]).fails(2).says(expect![[r#"
        {
          "version": 1,
          "tool": {
            "name": "git-kustomize-localize",
            "version": "…"
          },
          "errors": [
            {
              "message": "unsupported format `json`: expected one of human"
            }
          ],
          "outcome": "failed"
        }
        error: unsupported format `json`: expected one of human
    "#]]);
    assert_eq!(world.work.run_unchanged(&["build", "web", "--quiet"]).success().stdout, expected.stdout);
    // The line is no command here: it is what kustomize wrote.
    assert!(expected.stdout.lines().any(|line| line.trim() == "::debug::x"), "{expected:?}");
}

#[test]
fn what_the_lock_lacks_is_an_error() {
    let Some((world, _)) = world() else { return };
    world.work.write("new/kustomization.yaml", "resources: ['https://github.com/acme/deep//app?ref=main']\n");
    let output = world.work.run_unchanged(&["build", "new"]);
    output.fails(2).says(expect![[r#"
        error: new/kustomization.yaml:1:13: resources[0]: `https://github.com/acme/deep//app?ref=main` is neither localized nor locked
          hint: lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock && git commit
    "#]]);
    assert_eq!(output.stdout, "");
    // What it holds, and nobody has brought here.
    fs::remove_dir_all(world.sandbox.path("cache")).unwrap();
    world.work.run_unchanged(&["build", "web", "--offline"]).fails(2).says(expect![[r#"
        error: web/kustomization.yaml:3:3: resources[1]: commit <0> of https://github.com/acme/lib is not in the cache
        error: web/kustomization.yaml:4:3: resources[2]: https://files.example.com/v1/app.yaml is not in the cache
          hint: run once without `--offline`
    "#]]);
    world.work.run_unchanged(&["build", "web"]).success();
    world.work.run_unchanged(&["build", "web", "--offline"]).success();
    // What kustomize says.
    world.work.write("bad/kustomization.yaml", "resources: [nothing.yaml]\n");
    world.work.run_unchanged(&["build", "bad"]).fails(2).says(expect![[r#"
        error: cannot build `bad`: accumulating resources: accumulation err='accumulating resources from 'nothing.yaml': evalsymlink failure on 'bad/nothing.yaml' : lstat bad/nothing.yaml: no such file or directory': must build at directory: not a valid directory: evalsymlink failure on 'bad/nothing.yaml' : lstat bad/nothing.yaml: no such file or directory
    "#]]);
}

#[test]
fn what_cache_and_upstream_lack_comes_from_the_localized_branch() {
    let Some((world, kustomize)) = world() else { return };
    let work = &world.work;
    let expected = world.build(&kustomize, work.path(), "web", &[], false);
    work.run(&["branch"]).success();
    fs::rename(world.sandbox.path("upstream"), world.sandbox.path("gone")).unwrap();
    fs::remove_dir_all(world.sandbox.path("cache")).unwrap();
    world.server.forget();
    // The local branch, or what a clone has of it.
    let clone = world.sandbox.path("clone");
    world.sandbox.git(work.path(), &["clone", "-q", ".", clone.to_str().unwrap()]);
    let clone = Repo::new(&world.sandbox, clone);
    let mut transcript = Transcript::default();
    for repo in [work, &clone] {
        assert_eq!(repo.run_unchanged(&["build", "web", "--offline"]).success().stdout, expected.stdout);
        assert_eq!(repo.run_unchanged(&["build", "web"]).success().stdout, expected.stdout);
        repo.write("web/map.yaml", config_map("another"));
        transcript.add(repo.run_unchanged(&["diff", "HEAD", "--exit-code", "--stat"]).fails(1));
        repo.git(&["checkout", "-q", "web"]);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize diff HEAD --exit-code --stat
        web: web/map.yaml
          added   v1 ConfigMap another
          removed v1 ConfigMap own
        2 objects (1 added, 1 removed) in 1 of 1 affected build since <0>
    "#]]);
    assert_eq!(world.server.log(), crate::support::NONE);
    // One that was edited by hand says nothing, and one of another commit neither.
    let edit = |text: &str, to: &str| {
        let lock = clone.git(&["show", "origin/localized/main:kustomize-localize.lock"]);
        assert!(lock.contains(text), "{lock}");
        clone.git(&["checkout", "-q", "origin/localized/main"]);
        clone.write("kustomize-localize.lock", format!("{}\n", lock.replace(text, to)));
        let edited = clone.commit("Edit");
        clone.git(&["checkout", "-q", "main"]);
        clone.git(&["update-ref", "refs/remotes/origin/localized/main", &edited]);
    };
    edit("version: 1\n", "version: 1 \n");
    clone.run_unchanged(&["build", "web", "--offline"]).fails(2).says(expect![[r#"
        error: web/kustomization.yaml:3:3: resources[1]: commit <0> of https://github.com/acme/lib is not in the cache
        error: web/kustomization.yaml:4:3: resources[2]: https://files.example.com/v1/app.yaml is not in the cache
          hint: run once without `--offline`
    "#]]);
    clone.git(&["fetch", "-q"]);
    clone.run_unchanged(&["build", "web", "--offline"]).success();
    let (lib, lock) = (world.sandbox.path("gone/acme/lib"), clone.git(&["show", "main:kustomize-localize.lock"]));
    let was = world.sandbox.git(&lib, &["rev-parse", "v1"]);
    clone.write("kustomize-localize.lock", format!("{lock}\n").replace(&was, &"1".repeat(40)));
    clone.run_unchanged(&["build", "web", "--offline"]).fails(2).says(expect![[r#"
        error: web/kustomization.yaml:3:3: resources[1]: commit <0> of https://github.com/acme/lib is not in the cache
          hint: run once without `--offline`
    "#]]);
}

#[test]
fn a_declared_target_may_load_what_the_configuration_allows() {
    let Some((world, _)) = world() else { return };
    let root = ("db/kustomization.yaml", "configMapGenerator: [{name: own, files: [../shared.txt]}]\n");
    let declared = |restrictor: &str| {
        let targets = "targets: [{path: db, engine: kustomize}, {path: db, engine: argo-cd}]\n";
        world.commit(&[(".kustomize-localize", &*format!("load-restrictor: {restrictor}\n{targets}"))]);
    };
    world.commit(&[root, ("shared.txt", "a: b\n")]);
    declared("none");
    world.work.run_unchanged(&["build", ".kustomize-localize:2", "--offline"]).success().says(expect![[r#"
        apiVersion: v1
        data:
          shared.txt: |
            a: b
        kind: ConfigMap
        metadata:
          name: own-b869ddtdmc
    "#]]);
    world.work.run_unchanged(&["check", "--build", "--offline"]).success().says(expect![[r#"
        checked 2 kustomizations with 4 references in the working tree, 2 builds (kustomize/…, network closed): no problems found
    "#]]);
    declared("root-only");
    world.work.run_unchanged(&["build", ".kustomize-localize:2", "--offline"]).fails(2).says(expect![[r#"
        error: cannot build `db`: loading KV pairs: file sources: [../shared.txt]: security; file 'shared.txt' is not in or below 'db'
    "#]]);
}

#[test]
fn what_is_meant_is_named_or_asked_for() {
    let Some((world, _)) = world() else { return };
    let object = |name: &str, path: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\nspec:\n  path: {path}\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n"
        )
    };
    let clusters = [object("plain", "./plain"), object("web", "./plain")].join("---\n");
    world.commit(&[("clusters/all.yaml", &clusters), ("plain/map.yaml", &config_map("plain"))]);
    for name in ["plain", "flux-system/plain", "clusters/all.yaml:1", "flux-system/web", "clusters/all.yaml:8"] {
        assert_eq!(world.work.run_unchanged(&["build", name]).success().stdout, config_map("plain"), "{name}");
    }
    world.work.run_unchanged(&["build", "web"]).fails(2).says(expect![[r#"
        error: `web` is ambiguous
          hint: the directory: git kustomize-localize build ./web
          hint: Flux Kustomization web (clusters/all.yaml:8), `./plain`: git kustomize-localize build clusters/all.yaml:8
    "#]]);
    // An entry of the configuration has no name but its directory.
    world.commit(&[(".kustomize-localize", "targets: [{path: db, engine: kustomize}]\n")]);
    world.commit(&[("db/kustomization.yaml", "resources: [map.yaml]\n"), ("db/map.yaml", &config_map("db"))]);
    let db = world.work.run_unchanged(&["build", "db"]);
    assert_eq!((db.success().stdout.as_str(), db.stderr.as_str()), (config_map("db").as_str(), ""));
    // Each source of one Application has a place of its own, also where the line is one.
    let source = |path: &str| format!("{{repoURL: 'https://github.com/acme/fleet', path: {path}}}");
    let application = |sources: &str| {
        let head = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: both}\nspec:\n  sources:";
        format!("{head}{sources}\n").replace("PLAIN", &source("plain")).replace("WEB", &source("web"))
    };
    world.commit(&[("both.yaml", &application("\n  - PLAIN\n  - WEB")), ("flow.yaml", &application(" [PLAIN, WEB]"))]);
    world.work.run_unchanged(&["build", "both"]).fails(2).says(expect![[r#"
        error: `both` is ambiguous
          hint: Argo CD Application both (both.yaml:1), `plain`: git kustomize-localize build both.yaml:6
          hint: Argo CD Application both (both.yaml:1), `web`: git kustomize-localize build both.yaml:7
          hint: Argo CD Application both (flow.yaml:1), `plain`: git kustomize-localize build flow.yaml:5:62
          hint: Argo CD Application both (flow.yaml:1), `web`: git kustomize-localize build flow.yaml:5:119
    "#]]);
    world.work.run_unchanged(&["build", "both.yaml:1"]).success().says(expect![[r#"
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: plain
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: deep
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: lib
        ---
        apiVersion: v1
        data:
          a: |2

            ::debug::x
        kind: ConfigMap
        metadata:
          name: own
        ---
        apiVersion: apps/v1
        kind: Deployment
        metadata:
          name: app
        spec:
          replicas: 1
          template:
            spec:
              containers:
              - image: nginx
                name: main
    "#]]);
    world.work.run_unchanged(&["build", "both.yaml:6"]).success().says(expect![[r#"
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: plain
    "#]]);
    // Flux does not get to see what it leaves out.
    let (ignored, root) = (object("ignored", "./ignored"), "resources: [map.yaml]\n");
    let map = ("ignored/map.yaml", &*config_map("ignored"));
    world.commit(&[("clusters/ignored.yaml", &ignored), ("ignored/kustomization.yaml", root), map]);
    assert_eq!(world.work.run_unchanged(&["build", "flux-system/ignored"]).success().stdout, config_map("ignored"));
    world.commit(&[("ignored/.sourceignore", "map.yaml\n")]);
    world.work.run_unchanged(&["build", "flux-system/ignored"]).fails(2).says(expect![[r#"
        error: cannot build `ignored`: accumulating resources: accumulation err='accumulating resources from 'map.yaml': open ignored/map.yaml: no such file or directory': must build at directory: not a valid directory: evalsymlink failure on 'ignored/map.yaml' : lstat ignored/map.yaml: no such file or directory
    "#]]);
    // A directory is built as it is, whoever deploys it.
    let deep = object("deep", "./apps/deep");
    let map = ("apps/deep/map.yaml", &*config_map("deep"));
    world.commit(&[("clusters/deep.yaml", &deep), ("apps/deep/kustomization.yaml", root), map]);
    let built = world.work.run_unchanged(&["build", "apps/deep"]);
    assert_eq!(built.success().stdout, config_map("deep"));
    built.says(expect![[r#"
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: deep
        note: to build it as Flux Kustomization deep (clusters/deep.yaml:1) does: git kustomize-localize build clusters/deep.yaml:1
    "#]]);
    world.work.run_unchanged(&["build", "plian"]).fails(2).says(expect![[r#"
        error: `plian` is neither a directory with a kustomization nor a target
          hint: did you mean `plain`?
    "#]]);
    world.work.run_unchanged(&["build", "clusters"]).fails(2).says(expect![[r#"
        error: `clusters` is neither a directory with a kustomization nor a target
          hint: list the targets: git kustomize-localize targets
    "#]]);
    world.work.run_unchanged(&["build", "../x"]).fails(2).says(expect![[r#"
        error: `../x` is outside of the repository
          hint: name a directory of this repository
    "#]]);
    world.work.run_unchanged(&["build", ""]).fails(2).says(expect![[r#"
        error: empty PATH
          hint: name a directory of this repository, or omit PATH to check all
    "#]]);
}

/// Prints the templates of a chart, unless there is an error in it.
const HELM: &str = r#"[ "$1" = version ] && { echo v3.19.4+g0; exit; }
for one; do [ -d "$one" ] && chart=$one; done
[ ! -f "$chart/error" ] || { cat "$chart/error" >&2; exit 1; }
cat "$chart"/templates/*.yaml
"#;

#[test]
fn a_chart_is_built_with_all_that_helm_reads_or_not_at_all() {
    let Some((world, _)) = world() else { return };
    world.sandbox.script("helm", HELM);
    let map = |name: &str| format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let work = &world.work;
    work.write("chart/kustomization.yaml", "helmCharts: [{name: c, releaseName: r}]\n");
    work.write("chart/charts/c/values.yaml", "a: b\n");
    work.write("chart/charts/c/templates/a.yaml", map("a"));
    work.write("shared/b.yaml", map("b"));
    work.symlink("chart/charts/c/templates/b.yaml", "../../../../shared/b.yaml");
    work.commit("Chart");
    let build = || work.run_unchanged(&["build", "chart", "--build-arg=--enable-helm"]);
    build().success().says(expect![[r#"
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: a
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: b
    "#]]);
    // What helm says, and nothing of where it was called.
    work.write("chart/charts/c/error", "Error: because\n");
    build().fails(2).says(expect![[r#"
        error: cannot build `chart`: because
    "#]]);
    work.remove("chart/charts/c/error");
    // Both are there on this machine.
    fs::write(world.sandbox.path("outside.yaml"), map("c")).unwrap();
    work.symlink("chart/charts/c/templates/c.yaml", "../../../../../outside.yaml");
    build().fails(2).says(expect![[r#"
        error: cannot build `chart`: the link `chart/charts/c/templates/c.yaml` leads out of the repository, and helm may read what is there
          hint: put a copy of it there
    "#]]);
    work.remove("chart/charts/c/templates/c.yaml");
    let other = world.sandbox.repo("dep");
    other.commit_files(&[("templates/d.yaml", &map("d"))]);
    let url = format!("file://{}", other.path().display());
    work.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "chart/charts/c/charts/dep"]);
    work.commit("Submodule");
    build().fails(2).says(expect![[r#"
        error: cannot build `chart`: the files of the submodule `chart/charts/c/charts/dep` are not in this repository, and helm may read what is there
          hint: put a copy of it there
    "#]]);
    let branch = work.run_as_is(&["branch", "--build-arg=--enable-helm"]);
    branch.success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 9 files written, 3 references rewritten, 0 removed
          added https://files.example.com/v1/app.yaml <1>
          added https://github.com/acme/deep?ref=v1 <2>
          added https://github.com/acme/lib?ref=v1 <3>
          verified: 1 build identical, 1 root not built (kustomize/…, network closed)
          not built: chart: the files of the submodule `chart/charts/c/charts/dep` are not in this repository, and helm may read what is there
          1 warning (untracked-path 1)
          to look at it: git show --stat <0>
        warning[untracked-path]: `chart/charts/c/charts/dep` is in the submodule `chart/charts/c/charts/dep`, whose files are not in this repository
         --> chart/kustomization.yaml:1:14
          |
        1 | helmCharts: [{name: c, releaseName: r}]
          |              ^^^^^^^^^^^^^^^^^^^^^^^^^^ helmCharts[0]
          = help: copy the files into this repository, or name the submodule's repository by URL, with its commit
    "#]]);
}
