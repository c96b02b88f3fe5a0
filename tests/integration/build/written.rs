//! `build --output`: all that is deployed, as files.

use expect_test::expect;

use crate::support::{World, config_map, files};

/// What two engines deploy, a root that nothing deploys, and what is not known.
fn deployed() -> World {
    let world = World::acme();
    let flux = |name: &str, path: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\nspec: {{path: {path}, prune: true, sourceRef: {{kind: GitRepository, name: flux-system}}}}\n---\n"
        )
    };
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: shown}\n";
    world.commit(&[
        ("clusters/a/apps.yaml", &(flux("web", "./apps/web") + &flux("gone", "./apps/gone"))),
        ("apps/web/kustomization.yaml", "resources: [secret.yaml, ../../base]\n"),
        ("apps/web/secret.yaml", secret),
        ("apps/gone/kustomization.yaml", "resources: [map.yaml]\n"),
        ("apps/gone/map.yaml", &config_map("gone")),
        ("base/kustomization.yaml", "resources: [map.yaml]\n"),
        ("base/map.yaml", &config_map("base")),
        ("tools/one two/kustomization.yaml", "resources: [../../base]\nnamePrefix: x-\n"),
        ("broken/kustomization.yaml", "resources: [map.yaml]\npatches: [{path: gone.yaml}]\n"),
        ("broken/map.yaml", &config_map("broken")),
        ("broken/gone.yaml", &config_map("other")),
    ]);
    world
}

#[test]
fn all_that_is_deployed_is_written_as_files() {
    let world = deployed();
    if world.sandbox.builds().is_none() {
        return;
    }
    let work = &world.work;
    let out = |args: &[&str]| work.run(&[&["build", "--output", "../out"], args].concat());
    let there = || {
        let all = files(&world.sandbox.path("out")).into_keys();
        all.filter(|name| !name.ends_with('/')).collect::<Vec<_>>().join(" ")
    };
    out(&[]).fails(1).says(expect![[r#"
        ../out has 3 builds: 3 written, 0 removed
        not built: roots/broken.yaml: cannot build `broken`: no resource matches strategic merge patch "ConfigMap.v1.[noGrp]/other.[noNs]": no matches for Id ConfigMap.v1.[noGrp]/other.[noNs]; failed to find unique target for patch ConfigMap.v1.[noGrp]/other.[noNs]
    "#]]);
    let all = ".built .unknown flux/flux-system/gone.yaml flux/flux-system/web.yaml roots/tools/one%20two.yaml";
    assert_eq!(there(), all);
    let read = |name: &str| std::fs::read_to_string(world.sandbox.path("out").join(name)).unwrap();
    assert!(read("flux/flux-system/web.yaml").contains("a: shown"));
    let direct = work.run(&["build", "tools/one two"]);
    assert_eq!(read("roots/tools/one%20two.yaml"), direct.success().stdout);
    // What is not built any more goes, and so does what was unknown; the rest is not touched.
    work.remove("broken/kustomization.yaml");
    work.write("clusters/a/apps.yaml", work.read("clusters/a/apps.yaml").split_once("---\n").unwrap().0);
    work.remove("apps/gone/kustomization.yaml");
    out(&[]).success().says(expect![[r#"
        ../out has 2 builds: 0 written, 1 removed
    "#]]);
    assert_eq!(there(), all.replace(" .unknown flux/flux-system/gone.yaml", ""));
    // One of them by its name, one by its path; what a change affects.
    for word in ["web", "apps/web"] {
        out(&[word]).success();
        assert_eq!(there(), ".built flux/flux-system/web.yaml", "{word}");
    }
    out(&["nowhere"]).fails(2).says(expect![[r#"
            error: `nowhere` is neither a directory with a kustomization nor a target
              hint: list the targets: git kustomize-localize targets
        "#]]);
    work.commit("fewer");
    work.write("apps/web/secret.yaml", config_map("no secret"));
    out(&["--base", "HEAD"]).success().says(expect![[r#"
        ../out has 1 build: 1 written, 0 removed
    "#]]);
    assert_eq!(there(), ".built flux/flux-system/web.yaml");

    // A run that ends at any moment leaves a directory that the next one knows.
    for stop in (1..).step_by(3) {
        std::fs::remove_dir_all(world.sandbox.path("out")).unwrap();
        world.sandbox.set("KUSTOMIZE_LOCALIZE_STOP_AT", format!("{stop}"));
        let ended = out(&[]);
        world.sandbox.unset("KUSTOMIZE_LOCALIZE_STOP_AT");
        out(&[]).success();
        assert_eq!(there(), ".built flux/flux-system/web.yaml roots/tools/one%20two.yaml", "{stop}");
        if ended.status == 0 {
            break;
        }
    }

    // Files of others stay, and nothing is written through a link.
    work.run(&["build", "--output", "base"]).fails(2).says(expect![[r#"
            error: `base` holds other files: no `.built` lists what was built
              hint: name a directory that is empty or new: --output DIR
        "#]]);
    // Its own files would be read as targets by the next command.
    work.run(&["build", "--output", "built"]).fails(2).says(expect![[r#"
        error: `built` is in the working tree, so the files would be read as deployed objects
          hint: list it in .gitignore, or below `exclude:` in .kustomize-localize
          hint: name a directory outside of the repository: --output DIR
    "#]]);
    // Nor is it enough that git ignores their list.
    work.write(".git/info/exclude", ".*\n");
    work.run(&["build", "--output", "built"]).fails(2).stderr_has("is in the working tree");
    work.write(".git/info/exclude", "built\n");
    work.run(&["build", "--output", "built"]).success();
    let (link, elsewhere) = (world.sandbox.path("out/roots"), world.sandbox.path("elsewhere"));
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::fs::remove_dir_all(&link).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
    out(&[]).fails(2).says(expect![[r#"
        error: `roots` is not a directory, so `roots/tools/one%20two.yaml` cannot be written
          hint: move it away, then run the same command again
    "#]]);
    std::fs::write(world.sandbox.path("out/.built"), "../work/base/map.yaml\n").unwrap();
    std::fs::remove_file(link).unwrap();
    out(&[]).success();
    assert_eq!(work.read("base/map.yaml"), config_map("base"));
    work.run(&["build", "base", "apps/web"]).fails(2).says(expect![[r#"
            error: only one PATH or TARGET is built to standard output
              hint: to build all of them into files: --output DIR
        "#]]);
}

#[test]
fn an_unknown_target_is_listed() {
    let world = World::acme();
    if world.sandbox.builds().is_none() {
        return;
    }
    let target = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: web, namespace: flux-system}\nspec: {path: './apps/${place}', sourceRef: {kind: GitRepository, name: flux-system}}\n";
    world.commit(&[("clusters/a/apps.yaml", target), ("tools/kustomization.yaml", "namePrefix: x-\n")]);
    let out = |args: &[&str]| world.work.run(&[&["build", "--output", "../out"], args].concat());
    out(&[]).fails(1).says(expect![[r#"
        ../out has 1 build: 1 written, 0 removed
        unknown: Flux Kustomization web (clusters/a/apps.yaml:1): `./apps/${place}` is substituted elsewhere
    "#]]);
    out(&["web"]).fails(1).says(expect![[r#"
        ../out has 0 builds: 0 written, 1 removed
        unknown: Flux Kustomization web (clusters/a/apps.yaml:1): `./apps/${place}` is substituted elsewhere
    "#]]);
}

#[test]
fn what_no_change_touches_is_known() {
    let world = World::acme();
    let work = &world.work;
    if world.sandbox.builds().is_none() {
        return;
    }
    // The variables of an object are not filled in, and nobody asks who may deploy a chart.
    let target = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: web, namespace: flux-system}\nspec: {path: ./apps/web, sourceRef: {kind: GitRepository, name: flux-system}, postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}]}}\n";
    work.write("clusters/a/apps.yaml", target);
    work.write("apps/web/kustomization.yaml", "resources: [map.yaml]\n");
    work.write("apps/web/map.yaml", config_map("settings"));
    work.write("chart/Chart.yaml", "name: chart\nversion: 1.0.0\n");
    work.run(&["build", "--output", "../out"]).success().says(expect![[r#"
        ../out has 1 build: 1 written, 0 removed
    "#]]);
}

#[test]
fn what_is_built_elsewhere_is_listed() {
    let world = World::acme();
    if world.sandbox.builds().is_none() {
        return;
    }
    let work = &world.work;
    let application = |name: &str, source: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}}}\nspec: {{source: {{{source}}}}}\n---\n"
        )
    };
    let own = "repoURL: 'https://github.com/acme/fleet', path: apps/web";
    let applications = |version: &str| {
        [
            ("chart", format!("repoURL: 'https://charts.example.com', chart: redis, targetRevision: {version}")),
            ("old", format!("{own}, targetRevision: v{version}")),
            ("other", "repoURL: 'https://github.com/acme/other', path: apps/web".to_owned()),
            ("web", own.to_owned()),
        ]
        .map(|(name, source)| application(name, &source))
        .concat()
    };
    // Charts of registries are objects of a build, and so is what another repository declares.
    let release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: pg, namespace: x}\nspec: {chartRef: {kind: OCIRepository, name: pg}}\n";
    let remote = application("remote", own);
    world.upstream_of("acme/apps", &[("kustomization.yaml", "resources: [app.yaml]\n"), ("app.yaml", &remote)]);
    world.commit(&[
        (".kustomize-localize", "repository: [{url: 'https://github.com/acme/fleet'}]\n"),
        ("apps/web/kustomization.yaml", "resources: [pg.yaml, 'https://github.com/acme/apps?ref=v1']\n"),
        ("apps/web/pg.yaml", release),
        ("argo/apps.yaml", &applications("1.0.0")),
    ]);
    work.run(&["lock"]).success();
    work.commit("Lock");
    let out = |args: &[&str]| work.run(&[&["build", "--output", "../out"], args].concat());
    let unknown = || std::fs::read_to_string(world.sandbox.path("out/.unknown")).unwrap();
    out(&[]).success().says(expect![[r#"
        ../out has 1 build: 1 written, 0 removed
        note: 5 deployments are not built from here: see `.unknown`
    "#]]);
    let all = unknown();
    expect![[r#"
        elsewhere: Argo CD Application chart (argo/apps.yaml): it is the chart `redis` of https://charts.example.com
        elsewhere: Argo CD Application old (argo/apps.yaml): it deploys another revision, `v1.0.0`
        elsewhere: Argo CD Application other (argo/apps.yaml): it is in https://github.com/acme/other
        elsewhere: Argo CD Application remote in argocd/web.yaml: this repository does not have what it deploys
        elsewhere: Flux HelmRelease x/pg in argocd/web.yaml: this repository does not have what it deploys
    "#]]
    .assert_eq(&all);
    // It is as external in the part that a change affects, and in the part that is named.
    work.write("argo/apps.yaml", applications("1.0.1"));
    out(&["--base", "HEAD"]).success().says(expect![[r#"
        ../out has 0 builds: 0 written, 1 removed
        note: 2 deployments are not built from here: see `.unknown`
    "#]]);
    expect![[r#"
        elsewhere: Argo CD Application chart (argo/apps.yaml): it is the chart `redis` of https://charts.example.com
        elsewhere: Argo CD Application old (argo/apps.yaml): it deploys another revision, `v1.0.1`
    "#]]
    .assert_eq(&unknown());
    out(&["chart"]).success().says(expect![[r#"
        ../out has 0 builds: 0 written, 0 removed
        note: 1 deployment is not built from here: see `.unknown`
    "#]]);
    expect![[r#"
        elsewhere: Argo CD Application chart (argo/apps.yaml): it is the chart `redis` of https://charts.example.com
    "#]]
    .assert_eq(&unknown());
    // The branch has the same list, which lines of other objects do not change.
    work.write("argo/apps.yaml", format!("# a comment\n{}", applications("1.0.0")));
    work.commit("Comment");
    work.run(&["branch", "--rendered"]).success().says(expect![[r#"
        rendered 1 build on branch rendered/main (<0>): 2 files written, 0 removed
          to look at it: git show --stat <0>
        note: 5 deployments are not built from here: see `.unknown`
    "#]]);
    assert_eq!(work.show("rendered/main", ".unknown"), all);
    // So has the bill of materials.
    work.run(&["sbom", "--images"]).success().says(expect![[r#"
        pkg:github/acme/apps@<0> (license unknown)
        note: 5 deployments are not built from here: see the document
    "#]]);
}

#[test]
fn a_file_has_all_sources_of_its_target() {
    let world = World::acme();
    if world.sandbox.builds().is_none() {
        return;
    }
    let work = &world.work;
    let source = |path: &str| format!("  - {{repoURL: 'https://github.com/acme/fleet', path: {path}}}\n");
    let chart = "  - {repoURL: 'https://charts.example.com', chart: redis, targetRevision: 1.0.0}\n";
    let application = |name: &str, sources: &[&str]| {
        let head = format!("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}}}\nspec:\n");
        head + "  sources:\n" + &sources.concat()
    };
    let overlay = |name: &str| {
        format!("namespace: argocd\nnameSuffix: -x\nresources: [../shared]\nbuildMetadata: []\n# {name}\n")
    };
    world.commit(&[
        ("argo/two.yaml", &application("two", &[&source("b"), chart, &source("a")])),
        ("shared/app.yaml", &application("shared", &[&source("a")])),
        ("shared/kustomization.yaml", "resources: [app.yaml]\n"),
        ("east/kustomization.yaml", &overlay("east")),
        ("west/kustomization.yaml", &overlay("west")),
        ("a/map.yaml", &config_map("a")),
        ("b/map.yaml", &config_map("b")),
    ]);
    let both = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";
    let out = |args: &[&str]| work.run(&[&["build", "--output", "../out"], args].concat());
    let written = || files(&world.sandbox.path("out"));
    out(&[]).success().says(expect![[r#"
        ../out has 5 builds: 5 written, 0 removed
        partial: Argo CD Application two (argo/two.yaml): without its source: it is the chart `redis` of https://charts.example.com
    "#]]);
    expect![[r#"
        .built
        .unknown
        argocd/
        argocd/argocd/
        argocd/argocd/shared-x@shared%2Fapp.yaml%2C%20built%20by%20east%2Fkustomization.yaml.yaml
        argocd/argocd/shared-x@shared%2Fapp.yaml%2C%20built%20by%20west%2Fkustomization.yaml.yaml
        argocd/two.yaml
        roots/
        roots/east.yaml
        roots/west.yaml"#]]
    .assert_eq(&written().into_keys().collect::<Vec<_>>().join("\n"));
    let name = "argocd/two.yaml";
    assert_eq!(work.read(&format!("../out/{name}")), both);
    // Also if a change touches only one of them.
    work.write("a/map.yaml", config_map("changed"));
    out(&["--base", "HEAD", "two"]).success().says(expect![[r#"
        ../out has 1 build: 1 written, 4 removed
        partial: Argo CD Application two (argo/two.yaml): without its source: it is the chart `redis` of https://charts.example.com
    "#]]);
    assert_eq!(work.read(&format!("../out/{name}")), both.replace("name: a", "name: changed"));
    // A file without one of them would remove its objects.
    work.write("a/kustomization.yaml", "resources: [gone.yaml]\n");
    out(&["two"]).fails(1).says(expect![[r#"
        ../out has 0 builds: 0 written, 1 removed
        not built: argocd/two.yaml: cannot build `a`: accumulating resources: accumulation err='accumulating resources from 'gone.yaml': evalsymlink failure on 'a/gone.yaml' : lstat a/gone.yaml: no such file or directory': must build at directory: not a valid directory: evalsymlink failure on 'a/gone.yaml' : lstat a/gone.yaml: no such file or directory
        note: 1 deployment is not built from here: see `.unknown`
    "#]]);
    assert!(!written().contains_key(name));
    // So would one of a set of which only the cluster knows a source.
    let set = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: set}\nspec:\n  generators: [{list: {elements: [{name: made}]}}]\n  template:\n    metadata: {name: '{{name}}'}\n    spec:\n      sources:\n";
    let set = [set, &source("b"), &source("'{{where}}'")].concat().replace("  - {", "      - {");
    work.write("argo/two.yaml", set);
    out(&["made"]).fails(1).says(expect![[r#"
        ../out has 0 builds: 0 written, 0 removed
        unknown: Argo CD Application made (argo/two.yaml:1, of ApplicationSet set): `{{where}}` is substituted elsewhere
    "#]]);
    assert!(!written().contains_key("argocd/made.yaml"));
}

#[test]
fn a_comment_above_an_object_renames_no_file() {
    let world = World::acme();
    if world.sandbox.builds().is_none() {
        return;
    }
    let kustomization = |name: &str, path: &str, more: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}}}\nspec: {{path: {path}, sourceRef: {{kind: GitRepository, name: flux-system}}, {more}}}\n"
        )
    };
    let parent = |cluster: &str| {
        let substitute = format!("postBuild: {{substitute: {{cluster: {cluster}}}}}");
        kustomization("apps", "./apps", &substitute)
    };
    let child = kustomization("web", "./web", "targetNamespace: '${cluster}'");
    let objects = [("one.yaml", parent("one")), ("two.yaml", parent("two")), ("apps/web.yaml", child)];
    world.commit(&[("web/map.yaml", &config_map("web"))]);
    let written = |above: &str| {
        objects.iter().for_each(|(file, object)| world.work.write(file, format!("{above}{object}")));
        world.work.run(&["build", "--output", "../out"]).success();
        files(&world.sandbox.path("out"))
    };
    let before = written("");
    expect![[r#"
        .built
        flux/
        flux/apps@one.yaml.yaml
        flux/apps@two.yaml.yaml
        flux/web@apps%2Fweb.yaml%2C%20built%20by%20Flux%20Kustomization%20apps%20%28one.yaml%29.yaml
        flux/web@apps%2Fweb.yaml%2C%20built%20by%20Flux%20Kustomization%20apps%20%28two.yaml%29.yaml"#]]
    .assert_eq(&before.keys().map(String::as_str).collect::<Vec<_>>().join("\n"));
    assert_eq!(written("# a comment\n"), before);
}

#[test]
fn two_runs_leave_the_files_that_the_list_names() {
    let world = deployed();
    let Some(kustomize) = world.sandbox.builds() else { return };
    let (out, args) = (world.sandbox.path("out"), ["build", "--output", "../out"]);
    world.sandbox.script("slow", &format!("[ $1 = build ] && sleep 1\nexec {} \"$@\"", kustomize.program().display()));
    world.sandbox.set("KUSTOMIZE", world.sandbox.path("bin/slow"));
    let slow = world.work.start(&[&args[..], &["base"]].concat());
    world.sandbox.set("KUSTOMIZE", kustomize.program());
    world.work.run(&[&args[..], &["apps/gone"]].concat()).success();
    slow.wait().success();
    let list = std::fs::read_to_string(out.join(".built")).unwrap();
    let all = files(&out).into_keys().filter(|name| name.ends_with(".yaml"));
    assert_eq!(all.map(|name| name + "\n").collect::<String>(), list);
}
