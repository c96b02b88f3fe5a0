//! Objects of engines as builds make them: each judged once, where it is written, and by every command alike.

use expect_test::expect;

use crate::support::{Repo, Sandbox, World, config};

const SOURCE: &str = "apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: flux-system}
spec: {url: 'https://github.com/acme/fleet', ref: {branch: main}}
---
";

fn flux(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: {name}, namespace: flux-system}}
spec:
  sourceRef: {{kind: GitRepository, name: fleet}}
{spec}---
"
    )
}

fn argo(name: &str, path: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec: {{project: default, source: {{repoURL: 'https://github.com/acme/fleet', targetRevision: main, path: {path}}}}}
---
"
    )
}

/// Returns a repository with kustomize; `None` without one.
fn fleet() -> Option<(Sandbox, Repo)> {
    let sandbox = Sandbox::new();
    sandbox.builds()?;
    let work = sandbox.repo("fleet");
    work.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    Some((sandbox, work))
}

#[test]
fn flux_refuses_a_variable_that_nothing_sets() {
    let Some((_sandbox, work)) = fleet() else { return };
    let build = "  path: ./apps\n  postBuild: {substitute: {A: x}}\n";
    work.commit_files(&[
        ("clusters/apps.yaml", &format!("{SOURCE}{}", flux("apps", build))),
        ("apps/kustomization.yaml", "resources: [a.yaml]\n"),
        ("apps/a.yaml", &config("a").replace("data:", "data:\n  run: echo ${A} ${TOKEN} $${B} ${C:=d}\n")),
    ]);
    work.run(&["build", "flux-system/apps"]).fails(2).says(expect![[r#"
        error: cannot build `apps`: Flux 2.9 fails if a variable is not set: `${TOKEN}`
    "#]]);
    work.run(&["check", "--build"]).fails(1).says(expect![[r#"
        error[engine]: Flux 2.9 fails if a variable is not set: `${TOKEN}`
         --> clusters/apps.yaml
         = note: deployed by Flux Kustomization apps (clusters/apps.yaml:6)
         = help: set variables in `postBuild.substitute`, write a default as `${NAME:=}`, and escape other texts as `$${`

        for more: git kustomize-localize explain engine
        checked 1 kustomization with 1 reference in the working tree, 0 builds (kustomize/…, network closed): 1 error
    "#]]);
    work.run(&["branch"]).fails(1).says(expect![[r#"
        error[engine]: Flux 2.9 fails if a variable is not set: `${TOKEN}`
         --> clusters/apps.yaml
         = note: deployed by Flux Kustomization apps (clusters/apps.yaml:6)
         = help: set variables in `postBuild.substitute`, write a default as `${NAME:=}`, and escape other texts as `$${`

        error: <0> has 1 error (engine 1): nothing was committed
          hint: for more: git kustomize-localize explain engine
    "#]]);
    // An older Flux does not; the tree says which one runs.
    let installs = |version: &str| {
        let labels = format!("{{app.kubernetes.io/version: {version}}}");
        format!("apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: kustomize-controller, labels: {labels}}}\n")
    };
    work.write("clusters/gotk-components.yaml", installs("v2.8.7"));
    work.run(&["build", "flux-system/apps"]).success().says(expect![[r#"
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: a
          run: echo x  ${B} d
    "#]]);
    work.write("clusters/gotk-components.yaml", installs("v2.9.0"));
    work.write("apps/a.yaml", config("a").replace("data:", "data:\n  run: echo ${A} $${B} ${C:=d}\n"));
    work.run(&["build", "flux-system/apps"]).success().says(expect![[r#"
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: a
          run: echo x ${B} d
    "#]]);
    work.commit("escaped");
    work.write("apps/a.yaml", config("a").replace("data:", "data:\n  run: echo ${TOKEN}\n"));
    work.run(&["diff", "HEAD"]).success().says(expect![[r#"
        Flux Kustomization apps (clusters/apps.yaml:6): apps/a.yaml
          not built (new side): Flux 2.9 fails if a variable is not set: `${TOKEN}`
        --- v1 ConfigMap a
        +++ v1 ConfigMap a
        @@ -2,4 +2,4 @@
         kind: ConfigMap
         metadata:
           name: a
        -  run: echo ${A} $${B} ${C:=d}
        +  run: echo ${TOKEN}
        1 object (1 changed) in 1 of 1 affected build since <0>; unknown: 1 target
    "#]]);
    // An expression that only Flux evaluates makes the output unknown, and one that it cannot parse is an error.
    work.write("apps/a.yaml", config("a").replace("data:", "data:\n  run: echo ${A^^}\n"));
    work.run(&["build", "flux-system/apps"]).fails(2).says(expect![[r#"
        error: cannot build `apps`: this program cannot evaluate `${A^^}`, but Flux does
    "#]]);
    work.run(&["check", "--build"]).says(expect![[r#"
        unknown: Flux Kustomization apps (clusters/apps.yaml:6): this program cannot evaluate `${A^^}`, but Flux does
        checked 1 kustomization with 1 reference in the working tree, 0 builds (kustomize/…, network closed): no problems found; 1 build unknown
    "#]]);
    work.write("apps/a.yaml", config("a").replace("data:", "data:\n  run: echo ${a.b}\n"));
    work.run(&["check", "--build"]).fails(1).says(expect![[r#"
        error[engine]: Flux cannot parse `${a.b}`
         --> clusters/apps.yaml
         = note: deployed by Flux Kustomization apps (clusters/apps.yaml:6)
         = help: set variables in `postBuild.substitute`, write a default as `${NAME:=}`, and escape other texts as `$${`

        for more: git kustomize-localize explain engine
        checked 1 kustomization with 1 reference in the working tree, 0 builds (kustomize/…, network closed): 1 error
    "#]]);
}

#[test]
fn what_builds_make_of_objects_is_judged_once() {
    let Some((_sandbox, work)) = fleet() else { return };
    // Two clusters over one base, each with its own path and variables; a file that is a patch alone is no object.
    let base = [SOURCE, &flux("gone", "  path: ./apps/gone\n"), &flux("all", "  path: ./clusters/${ENV}\n")].concat();
    let cluster = |name: &str| {
        let own = format!("  path: ./clusters/{name}\n  postBuild: {{substitute: {{ENV: {name}, C: '${{ENV}}'}}}}\n");
        let kustomization = "resources: [../../base]\npatches: [{path: own.yaml}]\n";
        work.write(&format!("clusters/{name}/own.yaml"), flux("all", &own));
        work.write(&format!("clusters/{name}/kustomization.yaml"), kustomization);
    };
    ["demo", "dev"].into_iter().for_each(cluster);
    work.write("base/kustomization.yaml", "resources: [flux.yaml]\n");
    work.write("base/flux.yaml", &base);
    // A component that nothing names is built by itself.
    let broken =
        "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\npatches: [{target: {kind: X}, patch: '['}]\n";
    work.write("parts/off/kustomization.yaml", broken);
    work.commit("two clusters");
    work.run(&["targets", "-v"]).success().says(expect![[r#"
        base/flux.yaml:6: Flux Kustomization flux-system/gone
          apps/gone at main: missing: there is no `apps/gone`
          built by Flux Kustomization all (base/flux.yaml:13)
        base/flux.yaml:6: Flux Kustomization flux-system/gone
          apps/gone at main: missing: there is no `apps/gone`
          built by Flux Kustomization all (base/flux.yaml:13)
        base/flux.yaml:13: Flux Kustomization flux-system/all
          clusters/demo at main: a kustomization, localized
          built by Flux Kustomization all (base/flux.yaml:13)
        base/flux.yaml:13: Flux Kustomization flux-system/all
          clusters/dev at main: a kustomization, localized
          built by Flux Kustomization all (base/flux.yaml:13)

        4 targets: 4 here, 0 external, 0 templated; 2 missing
    "#]]);
    work.run(&["check", "--build"]).fails(1).says(expect![[r#"
        error[missing-target]: Flux Kustomization gone (base/flux.yaml:6, built by Flux Kustomization all (base/flux.yaml:13)) deploys `./apps/gone`: there is no `apps/gone`
          --> base/flux.yaml:11:9
           |
        11 |   path: ./apps/gone
           |         ^^^^^^^^^^^
           = help: correct the object, or remove it; if nothing deploys it, list its directory below `exclude:` in .kustomize-localize

        warning[not-built]: not built: trouble configuring builtin PatchTransformer with config: ` patch: '[' target: kind: X `: unable to parse SM or JSON patch from [patch: "["]
         --> parts/off/kustomization.yaml
         = help: fix it, or, if it is not built by itself, list its directory below `exclude:` in .kustomize-localize

        for more: git kustomize-localize explain missing-target not-built
        checked 4 kustomizations with 5 references in the working tree, 6 builds (kustomize/…, network closed): 1 error; 1 not built
    "#]]);
}

#[test]
fn branch_judges_objects_as_its_builds_make_them() {
    let Some((_sandbox, work)) = fleet() else { return };
    let overlay = |path: &str| {
        let patch = format!("- {{op: replace, path: /spec/source/path, value: {path}}}");
        let target = "target: {kind: Application, name: web}";
        let text = format!("resources: [../base]\npatches: [{{{target}, patch: '{patch}'}}]\n");
        work.write("prod/kustomization.yaml", text);
        work.commit(path);
    };
    work.write(".kustomize-localize", "repository: [{url: 'https://github.com/acme/fleet'}]\n");
    work.write("base/kustomization.yaml", "resources: [web.yaml]\n");
    work.write("base/web.yaml", argo("web", "web"));
    work.write("web/kustomization.yaml", "resources: [a.yaml]\n");
    work.write("web/a.yaml", config("a"));
    overlay("gone");
    work.run(&["branch"]).fails(1).says(expect![[r#"
        error[missing-target]: Argo CD Application web (base/web.yaml:1, built by prod/kustomization.yaml) deploys `gone`: there is no `gone`
         --> base/web.yaml:4:105
          |
        4 | spec: {project: default, source: {repoURL: 'https://github.com/acme/fleet', targetRevision: main, path: web}}
          |                                                                                                         ^^^^^
          = help: correct the object, or remove it; if nothing deploys it, list its directory below `exclude:` in .kustomize-localize

        error: <0> has 1 error (missing-target 1): nothing was committed
          hint: for more: git kustomize-localize explain missing-target
    "#]]);
    overlay("web");
    work.run(&["branch"]).success();
}

#[test]
fn what_only_a_build_settles_differs_from_no_record() {
    let Some((_sandbox, work)) = fleet() else { return };
    work.commit_files(&[
        (".kustomize-localize", "rules: {unknown-target: error}\n"),
        ("base/kustomization.yaml", "resources: [web.yaml]\n"),
        ("base/web.yaml", &argo("web", "web")),
        ("prod/kustomization.yaml", "resources: [../base]\nnamePrefix: p-\n"),
        ("web/kustomization.yaml", "resources: [a.yaml]\n"),
        ("web/a.yaml", &config("a")),
    ]);
    work.run(&["check", "--build"]).success();
    work.run(&["branch"]).success();
    work.run(&["verify", "localized/main"]).success().says(expect![[r#"
        .: 0 localized files, 0 upstreams; recorded in the lock and in the message of <0>
        verified localized/main (<0>): as recorded
    "#]]);
}

#[test]
fn a_target_in_a_submodule_is_missing_or_unknown() {
    let Some((_sandbox, work)) = fleet() else { return };
    let deploys = |source: &str| {
        work.write("clusters/apps.yaml", format!("{source}{}{}", flux("a", "  path: ./sub/a\n"), argo("b", "sub/b")));
        work.git(&["add", "--all"]);
        work.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{},sub", "1".repeat(40))]);
        work.git(&["commit", "--quiet", "--message=submodule"]);
    };
    deploys(SOURCE);
    work.run(&["check", "--rev", "HEAD"]).fails(1).says(expect![[r#"
        error[missing-target]: Flux Kustomization a (clusters/apps.yaml:6) deploys `./sub/a`: `sub` is a submodule, which Flux fetches only with `recurseSubmodules` in its source
          --> clusters/apps.yaml:11:9
           |
        11 |   path: ./sub/a
           |         ^^^^^^^
           = help: correct the object, or remove it; if nothing deploys it, list its directory below `exclude:` in .kustomize-localize

        warning[unknown-target]: cannot tell what Argo CD Application b (clusters/apps.yaml:13) deploys: `sub` is a submodule
          --> clusters/apps.yaml:16:105
           |
        16 | spec: {project: default, source: {repoURL: 'https://github.com/acme/fleet', targetRevision: main, path: sub/b}}
           |                                                                                                         ^^^^^^^
           = help: write it out, or allow it: # kustomize-localize: allow[unknown-target] REASON

        for more: git kustomize-localize explain missing-target unknown-target
        no kustomization in commit <0> (HEAD): 1 error; 1 target unknown
    "#]]);
    deploys(&SOURCE.replace("main}", "main}, recurseSubmodules: true"));
    work.run(&["check", "--rev", "HEAD"]).success().says(expect![[r#"
        warning[unknown-target]: 2 targets are unknown: the files do not tell what they deploy
          --> clusters/apps.yaml:11:9
           = note: Flux Kustomization a (clusters/apps.yaml:6): `sub` is a submodule
           = note: Argo CD Application b (clusters/apps.yaml:13): `sub` is a submodule
           = help: write it out, or allow it: # kustomize-localize: allow[unknown-target] REASON

        for more: git kustomize-localize explain unknown-target
        no kustomization in commit <0> (HEAD): no problems found; 2 targets unknown
    "#]]);
}

#[test]
fn status_and_targets_count_what_cannot_be_read() {
    let Some((_sandbox, work)) = fleet() else { return };
    work.commit_files(&[
        ("a.yaml", &argo("a", "web")),
        ("b.yaml", &argo("b", "web, path: web")),
        ("web/kustomization.yaml", "namePrefix: a-\n"),
    ]);
    work.run(&["targets"]).success().says(expect![[r#"
        a.yaml:1: Argo CD Application argocd/a
          web at main: a kustomization, localized
        b.yaml:4
          unknown: not YAML: the key `path` appears twice

        1 target: 1 here, 0 external, 0 templated; 1 unknown
    "#]]);
    work.run(&["status"]).success().says(expect![[r#"
        1 kustomization, 0 remote references
        check: 1 error, 0 warnings
        1 target: 1 localized, 0 remote, 1 unknown
          unknown    b.yaml:4: not YAML: the key `path` appears twice
          localized  a.yaml:1: Argo CD Application argocd/a
        branch localized/main: missing
        next: git kustomize-localize init
    "#]]);
}

#[test]
fn an_object_that_cannot_be_read_counts_where_it_is_deployed_although_it_is_excluded() {
    let Some((_sandbox, work)) = fleet() else { return };
    let broken = argo("b", "[web]");
    work.commit_files(&[
        (".kustomize-localize", "exclude: [apps/web, old]\n"),
        ("flux.yaml", &[SOURCE, &flux("apps", "  path: ./apps\n")].concat()),
        ("apps/web/app.yaml", &broken),
        ("old/app.yaml", &broken),
    ]);
    work.run_unchanged(&["check"]).fails(1).says(expect![[r#"
        error[invalid-target]: cannot read what is deployed: Application argocd/b: `path`: expected a string, found a list
         --> apps/web/app.yaml:4:1
          |
        4 | spec: {project: default, source: {repoURL: 'https://github.com/acme/fleet', targetRevision: main, path: [web]}}
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: fix it: a file that cannot be read is not checked

        for more: git kustomize-localize explain invalid-target
        no kustomization in the working tree: 1 error
    "#]]);
    work.run_unchanged(&["targets"]).success().says(expect![[r#"
        flux.yaml:6: Flux Kustomization flux-system/apps
          apps at main: a directory without a kustomization, localized
        apps/web/app.yaml:4
          unknown: Application argocd/b: `path`: expected a string, found a list

        1 target: 1 here, 0 external, 0 templated; 1 unknown
    "#]]);
}

#[test]
fn what_only_a_build_deploys_must_be_included() {
    let world = World::new();
    if world.sandbox.builds().is_none() {
        return;
    }
    let lib = [("kustomization.yaml", "resources: [a.yaml]\n"), ("a.yaml", &*config("a"))];
    world.upstream_of("acme/lib", &lib);
    let work = &world.work;
    work.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    let remote = "resources: ['https://github.com/acme/lib?ref=v1']\n";
    let patch = "- {op: replace, path: /spec/source/path, value: other/web}";
    work.commit_files(&[
        (".kustomize-localize", "include: [base, prod, lib]\nrules: {'*': off}\n"),
        ("base/kustomization.yaml", "resources: [web.yaml]\n"),
        ("base/web.yaml", &argo("web", "lib")),
        (
            "prod/kustomization.yaml",
            &format!("resources: [../base]\npatches: [{{target: {{name: web}}, patch: '{patch}'}}]\n"),
        ),
        ("lib/kustomization.yaml", remote),
        ("other/web/kustomization.yaml", remote),
    ]);
    // `lock` builds nothing, and `branch` localizes what the lock lists.
    work.run(&["lock"]).success();
    work.commit("lock");
    work.run(&["check", "--build"]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/lib?ref=v1` stays remote: only a build shows that `other/web` is deployed
         --> other/web/kustomization.yaml:1:13
          |
        1 | resources: ['https://github.com/acme/lib?ref=v1']
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = note: deployed by Argo CD Application web (base/web.yaml:1, built by prod/kustomization.yaml)
          = help: list `other/web` below `include:` in .kustomize-localize

        for more: git kustomize-localize explain remote-reference
        checked 4 kustomizations with 4 references in the working tree, 3 builds (kustomize/…, network closed): 1 error
    "#]]);
    work.run(&["branch"]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/lib?ref=v1` stays remote: only a build shows that `other/web` is deployed
         --> other/web/kustomization.yaml:1:13
          |
        1 | resources: ['https://github.com/acme/lib?ref=v1']
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = note: deployed by Argo CD Application web (base/web.yaml:1, built by prod/kustomization.yaml)
          = help: list `other/web` below `include:` in .kustomize-localize

        error: <0> has 1 error (remote-reference 1): nothing was committed
          hint: for more: git kustomize-localize explain remote-reference
    "#]]);
    work.write(".kustomize-localize", "include: [base, prod, lib, other/web]\nrules: {'*': off}\n");
    work.commit("include");
    work.run(&["check", "--build"]).success();
    work.run(&["branch"]).success();
}

#[test]
fn applications_of_one_name_say_their_directories() {
    let sandbox = Sandbox::new();
    let work = sandbox.repo("fleet");
    work.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    let set = "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: all, namespace: argocd}
spec:
  generators: [{list: {elements: [{at: one}, {at: two}]}}]
  template:
    metadata: {name: web}
    spec: {source: {repoURL: 'https://github.com/acme/fleet', targetRevision: main, path: 'apps/{{at}}'}}
";
    work.commit_files(&[
        ("argo/set.yaml", set),
        ("base/kustomization.yaml", "resources: [a.yaml]\n"),
        ("base/a.yaml", &config("a")),
        ("apps/one/kustomization.yaml", "resources: [../../base]\n"),
        ("apps/two/kustomization.yaml", "resources: [../../base]\n"),
    ]);
    work.write("base/a.yaml", config("b"));
    work.commit("another name");
    work.run(&["affected", "HEAD~1"]).success().says(expect![[r#"
        apps/one: base/a.yaml
        apps/two: base/a.yaml
        Argo CD Application web (argo/set.yaml:1, of ApplicationSet argocd/all, apps/one): base/a.yaml
        Argo CD Application web (argo/set.yaml:1, of ApplicationSet argocd/all, apps/two): base/a.yaml
        2 of 2 kustomizations and 2 of 2 targets since <0>
    "#]]);
}

#[test]
fn what_cannot_be_built_is_compared_in_parts() {
    let Some((_sandbox, work)) = fleet() else { return };
    let all = [SOURCE, &flux("all", "  path: ./apps\n")].concat();
    work.commit_files(&[
        ("clusters/all.yaml", &all),
        ("apps/kustomization.yaml", "resources: [web, group]\n"),
        ("apps/group/kustomization.yaml", "resources: [db, broken]\n"),
        ("apps/group/broken/kustomization.yaml", "resources: [gone.yaml]\n"),
        ("apps/group/db/kustomization.yaml", "resources: [a.yaml, b.yaml]\n"),
        ("apps/group/db/a.yaml", &config("db")),
        ("apps/group/db/b.yaml", &config("other")),
        ("apps/web/kustomization.yaml", "resources: [a.yaml]\n"),
        ("apps/web/a.yaml", &config("web")),
    ]);
    work.write("apps/web/a.yaml", config("web").replace("data:", "data:\n  more: x\n"));
    work.write("apps/group/db/kustomization.yaml", "resources: [a.yaml]\n");
    work.run(&["diff", "HEAD", "--stat"]).success().says(expect![[r#"
        Flux Kustomization all (clusters/all.yaml:6): apps/group/db/kustomization.yaml
          not built: in `apps/group/broken`: accumulating resources: accumulation err='accumulating resources from 'gone.yaml': open apps/grou…l' : lstat apps/group/broken/gone.yaml: no such file or directory
          removed v1 ConfigMap other
          changed v1 ConfigMap web
        2 objects (1 changed, 1 removed) in 1 of 1 affected build since <0>; unknown: 1 target
    "#]]);
    // What has left one part may be in another one that does not build.
    work.write("apps/group/broken/kustomization.yaml", "resources: [gone.yaml, ../db/b.yaml]\n");
    work.run(&["diff", "HEAD", "flux-system/all", "--stat"]).success().says(expect![[r#"
        Flux Kustomization all (clusters/all.yaml:6): apps/group/broken/kustomization.yaml
          not built: in `apps/group/broken`: accumulating resources: accumulation err='accumulating resources from 'gone.yaml': open apps/grou…l' : lstat apps/group/broken/gone.yaml: no such file or directory
          changed v1 ConfigMap web
        1 object (1 changed) in 1 of 1 affected build since <0>; unknown: 1 target
    "#]]);
}

#[test]
fn a_part_that_one_side_lists_is_added_or_removed() {
    let Some((_sandbox, work)) = fleet() else { return };
    let all = [SOURCE, &flux("all", "  path: ./apps\n")].concat();
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n";
    work.commit_files(&[
        ("clusters/all.yaml", &all),
        ("apps/kustomization.yaml", "resources: [db, broken]\n"),
        ("apps/broken/kustomization.yaml", "resources: [gone.yaml, was.yaml]\n"),
        ("apps/broken/was.yaml", &config("was")),
        ("apps/db/kustomization.yaml", "resources: [claim.yaml]\n"),
        ("apps/db/claim.yaml", claim),
        ("apps/web/kustomization.yaml", "resources: [a.yaml]\n"),
        ("apps/web/a.yaml", &config("web")),
        ("apps/whole/kustomization.yaml", "resources: [was.yaml]\n"),
        ("apps/whole/was.yaml", &config("was")),
    ]);
    work.write("apps/kustomization.yaml", "resources: [web, broken]\n");
    work.run(&["diff", "HEAD", "--stat"]).success().says(expect![[r#"
        Flux Kustomization all (clusters/all.yaml:6): apps/kustomization.yaml
          not built: in `apps/broken`: accumulating resources: accumulation err='accumulating resources from 'gone.yaml': open apps/broken/gon…ne.yaml' : lstat apps/broken/gone.yaml: no such file or directory
          added   v1 ConfigMap web
          removed v1 PersistentVolumeClaim data
            consequence[removed-pvc]: a PersistentVolumeClaim is removed, perhaps with the data of its volume (orphaned: the target does not prune)
        2 objects (1 added, 1 removed) in 1 of 1 affected build, 1 consequence since <0>; unknown: 1 target
    "#]]);
    // The claim may be in what fails now.
    work.write("apps/broken/kustomization.yaml", "resources: [gone.yaml, was.yaml, ../db/claim.yaml]\n");
    work.run(&["diff", "HEAD", "--stat"]).success().says(expect![[r#"
        Flux Kustomization all (clusters/all.yaml:6): apps/kustomization.yaml
          not built: in `apps/broken`: accumulating resources: accumulation err='accumulating resources from 'gone.yaml': open apps/broken/gon…ne.yaml' : lstat apps/broken/gone.yaml: no such file or directory
          added   v1 ConfigMap web
        1 object (1 added) in 1 of 1 affected build since <0>; unknown: 1 target
    "#]]);
    // What is in a part now may have been in what failed.
    work.git(&["checkout", "-q", "apps/broken"]);
    work.write("apps/kustomization.yaml", "resources: [whole]\n");
    work.run(&["diff", "HEAD", "--stat"]).success().says(expect![[r#"
        Flux Kustomization all (clusters/all.yaml:6): apps/kustomization.yaml
          not built (old side): in `apps/broken`: accumulating resources: accumulation err='accumulating resources from 'gone.yaml': open apps…ne.yaml' : lstat apps/broken/gone.yaml: no such file or directory
          removed v1 PersistentVolumeClaim data
            consequence[removed-pvc]: a PersistentVolumeClaim is removed, perhaps with the data of its volume (orphaned: the target does not prune)
        1 object (1 removed) in 1 of 1 affected build, 1 consequence since <0>; unknown: 1 target
    "#]]);
}

#[test]
fn the_files_of_a_failed_root_are_compared_as_they_stand() {
    let Some((_sandbox, work)) = fleet() else { return };
    let all = [SOURCE, &flux("all", "  path: ./apps\n"), &flux("bare", "  path: ./bare\n")].concat();
    work.commit_files(&[
        ("clusters/all.yaml", &all),
        (
            "apps/kustomization.yaml",
            "namePrefix: p-\nresources: [a.yaml, same.yaml, goes.yaml, moves.yaml, gone.yaml, web]\n",
        ),
        ("apps/a.yaml", &config("a")),
        ("apps/same.yaml", &config("same")),
        ("apps/goes.yaml", &config("goes")),
        ("apps/moves.yaml", &config("moves")),
        ("apps/web/kustomization.yaml", "resources: [gone.yaml, web.yaml]\n"),
        ("apps/web/web.yaml", &config("web")),
        ("bare/broken.yaml", "kind: [\n"),
        ("bare/a.yaml", &config("bare")),
    ]);
    let more = |name: &str| config(name).replace("data:", "data:\n  more: x\n");
    work.write(
        "apps/kustomization.yaml",
        "namePrefix: p-\nresources: [a.yaml, same.yaml, comes.yaml, gone.yaml, web]\n",
    );
    work.write("apps/web/kustomization.yaml", "resources: [gone.yaml, web.yaml, ../moves.yaml]\n");
    work.write("apps/a.yaml", more("a"));
    work.write("apps/comes.yaml", config("comes"));
    work.write("apps/web/web.yaml", more("web"));
    work.write("bare/a.yaml", more("bare"));
    work.run(&["diff", "HEAD", "--stat"]).success().says(expect![[r#"
        Flux Kustomization all (clusters/all.yaml:6): apps/kustomization.yaml
          not built: accumulating resources: accumulation err='accumulating resources from 'gone.yaml': open apps/gone.yaml: no such file or d…apps/gone.yaml' : lstat apps/gone.yaml: no such file or directory
          changed v1 ConfigMap a
          added   v1 ConfigMap comes
          removed v1 ConfigMap goes
          changed v1 ConfigMap web
        Flux Kustomization bare (clusters/all.yaml:13): bare/a.yaml
          not built: accumulating resources: accumulating resources from './broken.yaml': MalformedYAMLError: yaml: line 1: did not find expected node content in File: ./broken.yaml
          changed v1 ConfigMap bare
        5 objects (1 added, 3 changed, 1 removed) in 2 of 2 affected builds since <0>; unknown: 2 targets
    "#]]);
    // A file that is no object hides what it may hold.
    work.write("apps/a.yaml", "kind: [\n");
    work.run(&["diff", "HEAD", "--stat", "flux-system/all"]).success().says(expect![[r#"
        Flux Kustomization all (clusters/all.yaml:6): apps/kustomization.yaml
          not built (old side): accumulating resources: accumulation err='accumulating resources from 'gone.yaml': open apps/gone.yaml: no suc…apps/gone.yaml' : lstat apps/gone.yaml: no such file or directory
          not built (new side): accumulating resources: accumulating resources from 'a.yaml': MalformedYAMLError: yaml: line 1: did not find expected node content in File: a.yaml
          changed v1 ConfigMap web
        1 object (1 changed) in 1 of 1 affected build since <0>; unknown: 1 target
    "#]]);
}

#[test]
fn a_target_that_one_side_has_is_compared_in_parts() {
    let Some((_sandbox, work)) = fleet() else { return };
    work.commit_files(&[
        ("clusters/source.yaml", SOURCE),
        ("apps/kustomization.yaml", "resources: [web, broken]\n"),
        ("apps/broken/kustomization.yaml", "resources: [gone.yaml]\n"),
        ("apps/web/kustomization.yaml", "resources: [a.yaml]\n"),
        ("apps/web/a.yaml", &config("web")),
    ]);
    work.git(&["branch", "before"]);
    work.write("clusters/all.yaml", flux("all", "  path: ./apps\n"));
    work.commit("deploy it");
    work.run(&["diff", "before", "--stat"]).success().says(expect![[r#"
        Flux Kustomization all (clusters/all.yaml:1): added
          not built (new side): in `apps/broken`: accumulating resources: accumulation err='accumulating resources from 'gone.yaml': open apps…ne.yaml' : lstat apps/broken/gone.yaml: no such file or directory
          added   v1 ConfigMap web
        1 object (1 added) in 1 of 1 affected build since <0>; unknown: 1 target
    "#]]);
    // Under another name: equal as far as it builds, which does not show that all objects are equal.
    work.write("clusters/all.yaml", flux("other", "  path: ./apps\n"));
    work.run(&["diff", "HEAD", "--stat"]).success().says(expect![[r#"
        Flux Kustomization all (clusters/all.yaml:1): removed
          not built (old side): in `apps/broken`: accumulating resources: accumulation err='accumulating resources from 'gone.yaml': open apps…ne.yaml' : lstat apps/broken/gone.yaml: no such file or directory
          consequence[removed-target]: a target is removed (its objects stay, and nothing updates them)
          removed v1 ConfigMap web
            consequence[moved-object]: an object moves to another target (Flux Kustomization other (clusters/all.yaml:1) has it now)
        Flux Kustomization other (clusters/all.yaml:1): added
          not built (new side): in `apps/broken`: accumulating resources: accumulation err='accumulating resources from 'gone.yaml': open apps…ne.yaml' : lstat apps/broken/gone.yaml: no such file or directory
          added   v1 ConfigMap web
        2 objects (1 added, 1 removed) in 2 of 2 affected builds, 2 consequences since <0>; unknown: 2 targets
    "#]]);
}

#[test]
fn what_a_broken_parent_listed_is_not_removed() {
    let Some((_sandbox, work)) = fleet() else { return };
    work.commit_files(&[
        ("argo/kustomization.yaml", "resources: [root.yaml, web.yaml]\n"),
        ("argo/root.yaml", &argo("root", "argo")),
        ("argo/web.yaml", &argo("web", "web")),
        ("web/kustomization.yaml", "resources: [a.yaml]\n"),
        ("web/a.yaml", &config("web")),
    ]);
    work.write("web/a.yaml", config("web").replace("data:", "data:\n  more: x\n"));
    work.write("argo/kustomization.yaml", "resources: [root.yaml, gone.yaml]\n");
    work.run(&["diff", "HEAD", "--stat"]).success().says(expect![[r#"
        Argo CD Application root (argo/root.yaml:1): argo/kustomization.yaml
          not built (new side): accumulating resources: accumulation err='accumulating resources from 'gone.yaml': evalsymlink failure on 'arg…argo/gone.yaml' : lstat argo/gone.yaml: no such file or directory
        Argo CD Application web (argo/web.yaml:1): web/a.yaml
          changed v1 ConfigMap web
        Argo CD Application web (argo/web.yaml:1): compared as written: Argo CD Application root (argo/root.yaml:1) may change it
        1 object (1 changed) in 1 of 2 affected builds since <0>; unknown: 2 targets
    "#]]);
    work.write("argo/kustomization.yaml", "resources: [root.yaml]\n");
    work.run(&["diff", "HEAD", "--stat"]).success().says(expect![[r#"
        Argo CD Application root (argo/root.yaml:1): argo/kustomization.yaml
          removed argoproj.io/v1alpha1 Application argocd/web
            consequence[removed-target]: a target is removed (its objects stay, and nothing updates them)
        Argo CD Application web (argo/web.yaml:1): removed
          removed v1 ConfigMap web
        web: web/a.yaml
          changed v1 ConfigMap web
        3 objects (1 changed, 2 removed) in 3 of 3 affected builds, 1 consequence since <0>
    "#]]);
}

#[test]
fn an_object_that_a_broken_build_would_change_is_compared_as_written() {
    let Some((_sandbox, work)) = fleet() else { return };
    let app = argo("web", "web").replace(", namespace: argocd", "");
    work.commit_files(&[
        ("env/kustomization.yaml", "namespace: argocd\nresources: [web.yaml]\n"),
        ("env/web.yaml", &app),
        ("web/kustomization.yaml", "resources: [a.yaml]\n"),
        ("web/a.yaml", &config("web")),
    ]);
    work.write("env/kustomization.yaml", "namespace: argocd\nresources: [web.yaml, gone.yaml]\n");
    work.write("env/web.yaml", app.replace("default", "team"));
    work.run(&["diff", "HEAD", "--stat"]).success().says(expect![[r#"
        env: env/kustomization.yaml
          not built (new side): accumulating resources: accumulation err='accumulating resources from 'gone.yaml': evalsymlink failure on 'env… 'env/gone.yaml' : lstat env/gone.yaml: no such file or directory
          changed argoproj.io/v1alpha1 Application web
        Argo CD Application web (env/web.yaml:1): compared as written: env/kustomization.yaml may change it
          not built: env/kustomization.yaml: it reaches env/gone.yaml: missing
        1 object (1 changed) in 1 of 2 affected builds since <0>; unknown: 1 target, 1 root
    "#]]);
    // The way back is read alike.
    work.commit("Break it");
    work.write("env/kustomization.yaml", "namespace: argocd\nresources: [web.yaml]\n");
    work.run(&["diff", "HEAD", "--stat"]).success().says(expect![[r#"
        env: env/kustomization.yaml
          not built (old side): accumulating resources: accumulation err='accumulating resources from 'gone.yaml': evalsymlink failure on 'env… 'env/gone.yaml' : lstat env/gone.yaml: no such file or directory
        0 objects differ in 2 affected builds since <0>; unknown: 1 root
    "#]]);
}

#[test]
fn every_command_says_that_argo_cd_has_no_kustomization_to_change() {
    let Some((_sandbox, work)) = fleet() else { return };
    work.write(".kustomize-localize", "repository: [{url: 'https://github.com/acme/fleet'}]\n");
    let object = argo("web", "plain").replace("targetRevision: main", "targetRevision: localized/main");
    work.commit_files(&[("argo/web.yaml", &object), ("plain/map.yaml", &config("a"))]);
    // The directory is on the localized branch, too.
    work.git(&["branch", "localized/main"]);
    work.write("argo/web.yaml", object.replace("path: plain", "path: plain, kustomize: {namePrefix: x-}"));
    work.run(&["check"]).fails(1).says(expect![[r#"
        error[missing-target]: Argo CD Application web (argo/web.yaml:1) deploys `plain`: its source has `kustomize`, and `plain` has no kustomization
         --> argo/web.yaml:4:115
          |
        4 | spec: {project: default, source: {repoURL: 'https://github.com/acme/fleet', targetRevision: localized/main, path: plain, kustomize: {namePrefix: x-}}}
          |                                                                                                                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: correct the object, or remove it; if nothing deploys it, list its directory below `exclude:` in .kustomize-localize

        for more: git kustomize-localize explain missing-target
        no kustomization in the working tree: 1 error
    "#]]);
    work.run(&["build", "web"]).fails(2).says(expect![[r#"
        error: Argo CD Application web (argo/web.yaml:1) cannot be built here: its source has `kustomize`, and `plain` has no kustomization
    "#]]);
    work.run(&["diff", "HEAD", "--stat"]).success().says(expect![[r#"
        Argo CD Application web (argo/web.yaml:1): argo/web.yaml
          not built (new side): its source has `kustomize`, and `plain` has no kustomization
          changed argoproj.io/v1alpha1 Application argocd/web
        1 object (1 changed) in 1 of 1 affected build since <0>; unknown: 1 target
    "#]]);
    work.run(&["targets"]).success().says(expect![[r#"
        argo/web.yaml:1: Argo CD Application argocd/web
          plain at localized/main: missing: its source has `kustomize`, and `plain` has no kustomization

        1 target: 1 here, 0 external, 0 templated; 1 missing
        deployed from a localized branch: 1 of 1 target
    "#]]);
}
