//! `branch --rendered`: what everything is built to, on a branch of its own.

use crate::support::{Repo, World, config_map};

const RENDER: [&str; 2] = ["branch", "--rendered"];

/// What Flux deploys with an upstream of an upstream, what is listed, and a root that nothing deploys. `None` without
/// kustomize.
fn deployed() -> Option<World> {
    let world = World::acme();
    world.sandbox.builds()?;
    world.commit(&[
        (".kustomize-localize", "targets: [{path: apps/db, engine: argo-cd}]\n"),
        ("clusters/a.yaml", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: web, namespace: flux-system}\nspec: {path: ./apps/web, targetNamespace: prod, sourceRef: {kind: GitRepository, name: flux-system}}\n"),
        ("apps/web/kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=v1']\n"),
        ("apps/db/kustomization.yaml", "resources: [map.yaml]\n"),
        ("apps/db/map.yaml", &config_map("db")),
        ("tools/kustomization.yaml", "resources: [map.yaml]\n"),
        ("tools/map.yaml", &config_map("tools")),
    ]);
    world.work.run(&["lock"]).success();
    world.work.commit("Lock");
    Some(world)
}

fn files(work: &Repo) -> String {
    let files = work.files("rendered/main");
    files.iter().map(|file| file.split_once(' ').unwrap().1).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_branch_holds_what_everything_is_built_to() {
    let Some(world) = deployed() else { return };
    let work = &world.work;
    work.run(&[&RENDER[..], &["--dry-run"]].concat()).success().says(expect![[r#"
        would render 3 builds on branch rendered/main: 3 files written, 0 removed
          file argocd/apps/db.yaml (52)
          file flux/flux-system/web.yaml (147)
          file roots/tools.yaml (55)
    "#]]);
    work.run(&RENDER).success().says(expect![[r#"
        rendered 3 builds on branch rendered/main (<0>): 3 files written, 0 removed
          to look at it: git show --stat <0>
    "#]]);
    assert_eq!(files(work), "argocd/apps/db.yaml flux/flux-system/web.yaml roots/tools.yaml");
    // Each target has one file, which is what `build` prints, so that each object is in the branch once.
    let mut objects = Vec::new();
    for (file, what) in [
        ("argocd/apps/db.yaml", ".kustomize-localize:1"),
        ("flux/flux-system/web.yaml", "flux-system/web"),
        ("roots/tools.yaml", "./tools"),
    ] {
        let text = work.show("rendered/main", file);
        assert_eq!(text, work.run(&["build", what]).success().stdout, "{file}");
        objects.extend(text.split("---\n").map(str::to_owned));
    }
    let count = objects.len();
    objects.sort();
    objects.dedup();
    assert_eq!((objects.len(), count), (4, 4), "{objects:?}");
    // The commit is no descendant of its source.
    assert_eq!(work.parents("rendered/main"), crate::support::NONE);
    let message = work.message("rendered/main");
    let keys: Vec<&str> = message.lines().filter_map(|line| line.split_once(": ")).map(|(key, _)| key).collect();
    let expected = ["Target", "Source", "Lock", "Remote", "Remote", "Tree", "Verified", "Tool"];
    assert_eq!(keys, expected.map(|key| format!("Kustomize-Localize-{key}")));
    assert!(message.starts_with("Render main\n") && message.contains("Verified: built 3/3 kustomize/"), "{message}");
    work.run(&["verify", "rendered/main", "--rebuild"]).success().says(expect![[r#"
        .: 3 rendered files, 2 upstreams; recorded in the message of <0>
        verified rendered/main (<0>): as recorded, the same when rendered again
    "#]]);
    let sourceless: Vec<&str> = message.lines().filter(|line| !line.contains("-Source: ")).collect();
    let tree = work.id("rendered/main^{tree}");
    let sourceless = work.git(&["commit-tree", &tree, "-m", &sourceless.join("\n")]);
    work.run_unchanged(&["verify", &sourceless]).fails(1).says(expect![[r#"
        the message of <0> does not name the source commit

        .: 3 rendered files, 2 upstreams; recorded in the message of <0>
        NOT verified <0>: 1 difference
    "#]]);
    // Another clone makes the same tree. What changes nothing makes no commit.
    let clone = world.sandbox.clone_of(work, "clone");
    clone.run(&RENDER).success().says(expect![[r#"
        nothing to do: branch rendered/main (<0>) already has what <1> is built to
    "#]]);
    clone.git(&["update-ref", "-d", "refs/remotes/origin/rendered/main"]);
    clone.git(&["branch", "-q", "-D", "rendered/main"]);
    clone.run(&[&RENDER[..], &["--push", "--overwrite"]].concat()).success();
    assert_eq!(clone.id("rendered/main^{tree}"), work.id("rendered/main^{tree}"));
    work.write("README.md", "x\n");
    work.commit("Nothing that is built");
    work.run(&RENDER).success().says(expect![[r#"
        nothing to do: branch rendered/main (<0>) already has what <1> is built to
    "#]]);
    work.run(&["status"]).success().says(expect![[r#"
        3 kustomizations, 1 remote reference (1 locked)
        check: 0 errors, 1 warning
        2 targets: 1 localized, 1 remote, 0 unknown
          remote     clusters/a.yaml:1: Flux Kustomization flux-system/web: https://github.com/acme/lib//web?ref=v1: tag, locked <0>
          localized  .kustomize-localize:1: Argo CD target apps/db
        branch localized/main: missing
        branch rendered/main: at most 1 commit behind
        next: git kustomize-localize branch
    "#]]);

    // A root that is gone loses its file; what is not built, or unknown, keeps it and is named.
    work.remove("tools/kustomization.yaml");
    work.write("apps/db/kustomization.yaml", "resources: [gone.yaml]\n");
    work.write("clusters/a.yaml", work.read("clusters/a.yaml").replace("./apps/web", "'./apps/${name}'"));
    work.write("apps/new/kustomization.yaml", "namePrefix: x-\n");
    work.commit("Break most of it");
    work.run(&RENDER).fails(1).says(expect![[r#"
        rendered 2 builds on branch rendered/main (<0>): 3 files written, 1 removed
          to look at it: git show --stat <0>
        unknown: Flux Kustomization web (clusters/a.yaml:1): `./apps/${name}` is substituted elsewhere
        not built: argocd/apps/db.yaml: cannot build `apps/db`: accumulating resources: accumulation err='accumulating resources from 'gone.yaml': evalsymlink failure on 'apps/db/gone.yaml' : lstat apps/db/gone.yaml: no such file or directory': must build at directory: not a valid directory: evalsymlink failure on 'apps/db/gone.yaml' : lstat apps/db/gone.yaml: no such file or directory
    "#]]);
    let kept = "argocd/apps/db.yaml flux/flux-system/web.yaml roots/apps/new.yaml roots/apps/web.yaml";
    assert_eq!(files(work), format!(".unknown {kept}"));
    // What is named is in the branch as well, as `build --output` writes it.
    work.run(&["build", "--output", "../out"]).fails(1);
    let listed = std::fs::read_to_string(work.path().join("../out/.unknown")).unwrap();
    assert_eq!(work.show("rendered/main", ".unknown"), listed);
    assert!(listed.starts_with("unknown: Flux Kustomization web ") && listed.lines().count() == 2, "{listed}");
    assert!(work.message("rendered/main").contains("Kustomize-Localize-Not-Built: argocd/apps/db.yaml\n"));
    work.run(&["verify", "rendered/main", "--rebuild"]).fails(2).says(expect![[r#"
        .: 5 rendered files, 2 upstreams; recorded in the message of <0>
        NOT verified rendered/main (<0>): not everything could be checked
        error: `argocd/apps/db.yaml` cannot be rendered again: its build is not known
        error: `flux/flux-system/web.yaml` cannot be rendered again: its build is not known
    "#]]);
    // Mended, the list goes. A branch that cannot be examined is not hidden.
    work.git(&["revert", "--no-edit", "HEAD"]);
    work.run(&RENDER).success();
    assert_eq!(files(work), "argocd/apps/db.yaml flux/flux-system/web.yaml roots/tools.yaml");
    let other = work.git(&["commit-tree", "-m", "other", "HEAD^{tree}"]);
    work.git(&["update-ref", "refs/heads/rendered/main", other.trim()]);
    work.run(&["status"]).success().says(expect![[r#"
        3 kustomizations, 1 remote reference (1 locked)
        check: 0 errors, 1 warning
        2 targets: 1 localized, 1 remote, 0 unknown
          remote     clusters/a.yaml:1: Flux Kustomization flux-system/web: https://github.com/acme/lib//web?ref=v1: tag, locked <0>
          localized  .kustomize-localize:1: Argo CD target apps/db
        branch localized/main: missing
        rendered branch: unknown: branch `rendered/main` was not made by this tool: none of its commits has a record
        next: git kustomize-localize branch
    "#]]);
}

#[test]
fn edits_secrets_and_other_branches_are_refused() {
    let Some(world) = deployed() else { return };
    let work = &world.work;
    work.run(&RENDER).success();
    let linked = work.linked("linked", &["rendered/main"]);
    linked.write("roots/tools.yaml", config_map("mine"));
    linked.write("roots/more.yaml", config_map("more"));
    linked.commit("By hand");
    work.git(&["worktree", "remove", "-f", linked.path().to_str().unwrap()]);
    work.run(&RENDER).fails(2).says(expect![[r#"
        error: `rendered/main` was edited by hand by <0>: `roots/more.yaml`, `roots/tools.yaml`
          hint: make the changes in the source; to discard these edits: --overwrite
    "#]]);
    work.run(&["verify", "rendered/main"]).fails(1).says(expect![[r#"
        roots/more.yaml: differs from the tree recorded in the message of <0>
        roots/tools.yaml: differs from the tree recorded in the message of <0>

        .: 4 rendered files, 2 upstreams; recorded in the message of <0>
        NOT verified rendered/main (<1>): 2 differences
    "#]]);
    work.run(&[&RENDER[..], &["--overwrite"]].concat()).success().says(expect![[r#"
        rendered 3 builds on branch rendered/main (<0>): 1 file written, 1 removed
          discarded edits by hand by <1>: `roots/more.yaml`, `roots/tools.yaml`
          to look at it: git show --stat <0>
    "#]]);
    work.run(&["verify", "rendered/main"]).success();

    work.run(&["branch", "--branch=rendered/main"]).fails(2).says(expect![[r#"
        error: branch `rendered/main` contains rendered files, not the localized repository
          hint: commit the localized repository to another branch: `--branch NAME`
    "#]]);
    work.run(&["branch"]).success();
    work.run(&[&RENDER[..], &["--branch=localized/main"]].concat()).fails(2).says(expect![[r#"
        error: branch `localized/main` contains the localized repository, not rendered files
          hint: commit rendered files to another branch: `--branch NAME`
    "#]]);
    work.run(&[&RENDER[..], &["--rev=rendered/main"]].concat()).fails(2).says(expect![[r#"
        error: `rendered/main` is a rendered branch, not a source
          hint: name the branch it was made from: `--rev BRANCH`
    "#]]);

    work.write(
        "tools/map.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: hunter2}\n",
    );
    work.commit("A Secret");
    let before = work.id("rendered/main");
    work.run(&RENDER).fails(2).says(expect![[r#"
        error: the branch would hold a Secret in the clear: `login (roots/tools.yaml)`
          hint: encrypt them (SOPS, SealedSecret), or let the cluster fetch them (ExternalSecret)
          hint: if everybody who reads the branch may read them, write `rendered-secrets: true` into .kustomize-localize
    "#]]);
    assert_eq!(work.id("rendered/main"), before);
    work.decide("rendered-secrets: true\nhydrator-metadata: true\n");
    work.run(&RENDER).success();
    assert!(work.show("rendered/main", "roots/tools.yaml").contains("hunter2"));
    assert!(work.show("rendered/main", "hydrator.metadata").contains(&work.id("main")));
    work.run(&["verify", "rendered/main", "--rebuild"]).success();
    // Somebody who commits files and record together is found out by rendering again.
    let record = work.message("rendered/main");
    work.git(&["checkout", "-q", "rendered/main"]);
    work.write("roots/tools.yaml", config_map("mine"));
    work.git(&["add", "-A"]);
    let tree = work.git(&["write-tree"]);
    let made = record.lines().find(|line| line.starts_with("Kustomize-Localize-Tree")).unwrap();
    work.git(&["commit", "-q", "-m", &record.replace(made, &format!("Kustomize-Localize-Tree: gitTree:{tree}"))]);
    work.git(&["checkout", "-q", "main"]);
    work.run(&["verify", "rendered/main"]).success();
    work.run(&["verify", "rendered/main", "--rebuild"]).fails(1).says(expect![[r#"
        roots/tools.yaml: differs when rendered again

        .: 4 rendered files, 2 upstreams; recorded in the message of <0>
        NOT verified rendered/main (<0>): 1 difference
    "#]]);
}

#[test]
fn a_branch_that_the_source_contains_is_not_rewritten() {
    let Some(world) = deployed() else { return };
    let work = &world.work;
    work.git(&["branch", "rendered/main"]);
    work.run_unchanged(&RENDER).fails(2).says(expect![[r#"
        error: branch `rendered/main` was not made by this tool: none of its commits has a record
          hint: commit to another branch: `--branch NAME`
    "#]]);
    work.git(&["branch", "-D", "rendered/main"]);
    work.run(&RENDER).success();
    let tip = work.id("rendered/main");
    work.git(&["merge", "-q", "--allow-unrelated-histories", "-s", "ours", "-m", "back", "rendered/main"]);
    work.write("tools/map.yaml", config_map("changed"));
    work.commit("Change it");
    work.run(&RENDER).success();
    assert_eq!(work.parents("rendered/main"), [tip]);
}

#[test]
fn arguments_of_a_message_are_not_repeated() {
    let Some(world) = deployed() else { return };
    let work = &world.work;
    work.run(&[&RENDER[..], &["--build-arg=--enable-helm"]].concat()).success();
    work.run(&["verify", "rendered/main", "--rebuild"]).fails(2).says(expect![[r#"
        .: 3 rendered files, 2 upstreams; recorded in the message of <0>
        NOT verified rendered/main (<0>): not everything could be checked
        error: `.` cannot be localized again: the builds had the arguments `--enable-helm`, which a commit message names
          hint: render it again without `--build-arg`, and compare the trees
    "#]]);
}

/// A target of Argo CD in this repository.
fn application(name: &str, path: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}}}\nspec: {{source: {{repoURL: 'https://github.com/acme/fleet', path: {path}}}}}\n"
    )
}

#[test]
fn no_remote_of_the_clone_changes_the_result() {
    let world = World::acme();
    if world.sandbox.builds().is_none() {
        return;
    }
    let work = &world.work;
    world.commit(&[
        ("a.yaml", &application("web", "web")),
        ("b.yaml", &application("other", "charts")),
        ("web/kustomization.yaml", "resources: [map.yaml]\n"),
        ("web/map.yaml", &config_map("web")),
        ("charts/kustomization.yaml", "resources: [map.yaml]\n"),
        ("charts/map.yaml", &config_map("charts")),
    ]);
    work.run(&RENDER).success();
    assert_eq!(files(work), "argocd/other.yaml argocd/web.yaml");
    // No path is left that tells that the URL is this repository.
    work.git(&["mv", "web", "renamed"]);
    work.remove("b.yaml");
    work.commit("Rename the directory");
    work.git(&["config", "remote.mirror.url", "https://github.com/acme/fleet"]);
    work.run(&RENDER).fails(1).says(expect![[r#"
        rendered 2 builds on branch rendered/main (<0>): 3 files written, 1 removed
          to look at it: git show --stat <0>
        kept: argocd/web.yaml: its target may still exist: it is in https://github.com/acme/fleet; write the URL of this repository below `repository` in .kustomize-localize
        note: 1 deployment is not built from here: see `.unknown`
    "#]]);
    let kept = ".unknown argocd/web.yaml roots/charts.yaml roots/renamed.yaml";
    assert_eq!(files(work), kept);
    work.git(&["config", "remote.mirror.url", "https://git.example.com/mirror"]);
    work.run(&["verify", "rendered/main", "--rebuild"]).fails(2).says(expect![[r#"
        .: 4 rendered files, 0 upstreams; recorded in the message of <0>
        NOT verified rendered/main (<0>): not everything could be checked
        error: `argocd/web.yaml` cannot be rendered again: its build is not known
    "#]]);
    work.run(&RENDER).fails(1).says(expect![[r#"
        nothing to do: branch rendered/main (<0>) already has what <1> is built to
        kept: argocd/web.yaml: its target may still exist: it is in https://github.com/acme/fleet; write the URL of this repository below `repository` in .kustomize-localize
        note: 1 deployment is not built from here: see `.unknown`
    "#]]);
    // Told, it is certain: the target is elsewhere.
    work.decide("repository: [{url: 'https://git.example.com/mirror'}]\n");
    work.run(&RENDER).success();
    assert_eq!(files(work), kept.replace("argocd/web.yaml ", ""));
}

#[test]
fn a_target_of_an_unknown_build_keeps_its_file() {
    let world = World::acme();
    if world.sandbox.builds().is_none() {
        return;
    }
    let work = &world.work;
    world.commit(&[
        ("base/web.yaml", &application("web", "web")),
        ("base/map.yaml", &config_map("base")),
        ("base/kustomization.yaml", "resources: [web.yaml, map.yaml]\n"),
        ("prod/kustomization.yaml", "resources: [../base]\nnamePrefix: prod-\n"),
        ("stage/kustomization.yaml", "resources: [../base]\nnamePrefix: stage-\n"),
        ("web/kustomization.yaml", "resources: [map.yaml]\n"),
        ("web/map.yaml", &config_map("web")),
        ("tools/kustomization.yaml", "resources: [map.yaml]\n"),
        ("tools/map.yaml", &config_map("tools")),
    ]);
    work.run(&RENDER).success();
    let targets = "argocd/prod-web.yaml argocd/stage-web.yaml";
    let roots = "roots/prod.yaml roots/stage.yaml";
    assert_eq!(files(work), format!("{targets} {roots} roots/tools.yaml"));
    // Which targets the overlays make is unknown, and that the other root is gone is certain.
    work.remove("base/map.yaml");
    work.remove("tools/kustomization.yaml");
    work.commit("Break the base");
    work.run(&RENDER).fails(1).says(expect![[r#"
        rendered 0 builds on branch rendered/main (<0>): 1 file written, 1 removed
          to look at it: git show --stat <0>
        unknown: Argo CD Application web (base/web.yaml:1): prod/kustomization.yaml may change it
        not built: roots/prod.yaml: cannot build `prod`: in `base`: accumulating resources: accumulation err='accumulating resources from 'map.yaml': evalsymlink failure on 'base/map.yaml' : lstat base/map.yaml: no such file or directory': must build at directory: not a valid directory: evalsymlink failure on 'base/map.yaml' : lstat base/map.yaml: no such file or directory
        not built: roots/stage.yaml: cannot build `stage`: in `base`: accumulating resources: accumulation err='accumulating resources from 'map.yaml': evalsymlink failure on 'base/map.yaml' : lstat base/map.yaml: no such file or directory': must build at directory: not a valid directory: evalsymlink failure on 'base/map.yaml' : lstat base/map.yaml: no such file or directory
        kept: argocd/prod-web.yaml: its target may still exist
        kept: argocd/stage-web.yaml: its target may still exist
    "#]]);
    assert_eq!(files(work), format!(".unknown {targets} {roots}"));
    work.run(&["verify", "rendered/main", "--rebuild"]).fails(2).says(expect![[r#"
        .: 5 rendered files, 0 upstreams; recorded in the message of <0>
        NOT verified rendered/main (<0>): not everything could be checked
        error: `argocd/prod-web.yaml` cannot be rendered again: its build is not known
        error: `argocd/stage-web.yaml` cannot be rendered again: its build is not known
        error: `roots/prod.yaml` cannot be rendered again: its build is not known
        error: `roots/stage.yaml` cannot be rendered again: its build is not known
    "#]]);
    // No object is left of which a build could make another one, but the output of that build is unknown.
    work.remove("base/web.yaml");
    work.commit("Remove the file of the object");
    work.run(&RENDER).fails(1).says(expect![[r#"
        rendered 1 build on branch rendered/main (<0>): 2 files written, 0 removed
          to look at it: git show --stat <0>
        not built: roots/prod.yaml: cannot build `prod`: in `base`: accumulating resources: accumulation err='accumulating resources from 'web.yaml': evalsymlink failure on 'base/web.yaml' : lstat base/web.yaml: no such file or directory': must build at directory: not a valid directory: evalsymlink failure on 'base/web.yaml' : lstat base/web.yaml: no such file or directory
        not built: roots/stage.yaml: cannot build `stage`: in `base`: accumulating resources: accumulation err='accumulating resources from 'web.yaml': evalsymlink failure on 'base/web.yaml' : lstat base/web.yaml: no such file or directory': must build at directory: not a valid directory: evalsymlink failure on 'base/web.yaml' : lstat base/web.yaml: no such file or directory
        kept: argocd/prod-web.yaml: its target may still exist
        kept: argocd/stage-web.yaml: its target may still exist
    "#]]);
    assert_eq!(files(work), format!(".unknown {targets} {roots} roots/web.yaml"));
    // A build without the objects tells that the targets are gone.
    work.write("base/kustomization.yaml", "nameSuffix: -x\n");
    work.commit("Mend the base");
    work.run(&RENDER).success();
    assert_eq!(files(work), format!("{roots} roots/web.yaml"));
}
