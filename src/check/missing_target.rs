//! `missing-target`: an object of Flux or Argo CD deploys a directory, or adds a component or patch, that does not
//! exist.
//!
//! There is no finding if the tree cannot tell: if the object is templated, names another repository or revision, or
//! can be changed by a build before it is deployed.

use super::Context;
use super::deployed::LocalTarget;
use crate::graph;
use crate::kustomization::KustomizationKind;
use crate::message::failure::Failure;
use crate::message::finding::{Finding, Rule, Subject};
use crate::reference::is_remote_file;
use crate::targets::{LocatedText, PathContent, Target, TargetDir};
use crate::tree::{self, Resolved, path};

/// Finds the directories, components and patches of targets that do not exist.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for local in context.deployed.local.iter().filter(|local| local.target.changed_by.is_none()) {
        // Components and patches are relative to the directory, so they are looked up only if it exists.
        if let PathContent::Nothing(why) = &local.directory.content {
            findings.push(absent_finding(context, local, why));
        } else {
            findings.extend(components(context, local));
            findings.extend(patches(context, local));
        }
    }
    findings.extend(perhaps_missing(context));
    let undeployed = &context.deployed.targets.undeployed;
    // Nothing deploys such an object, so its finding is only a warning.
    for finding in &mut findings {
        if let Some(directory) = undeployed.get(&finding.path) {
            let named = path::shown(directory);
            let hint = format!(
                "nothing here deploys `{named}`: if it is kept for later, list `{}` below `exclude:` in .kustomize-localize",
                globset::escape(named)
            );
            *finding = Finding { help: vec![hint], ..finding.clone().warning() };
        }
    }
    findings
}

/// Finds targets that are missing if the repository that they name is this one. The tree does not tell whether it is,
/// so these are warnings.
fn perhaps_missing<'a>(context: &'a Context<'_>) -> impl Iterator<Item = Finding> + 'a {
    let deployed = &context.deployed;
    // A build that changes an object may change its directory as well, so such an object has no finding.
    let missing = deployed.targets.perhaps_missing.iter().filter(|target: &&Target| {
        let mut written = deployed.targets.targets.iter().filter(|other| other.object == target.object);
        deployed.is_wanted(&target.object.file) && written.all(|other| other.changed_by.is_none())
    });
    missing.filter_map(|target| {
        let (directory, url) = (target.local_dir()?, target.url()?);
        let (by, path) = (target.by(), directory.shown());
        let failure = Failure::new(format!("{by} deploys {path}, which is missing if {url} is this repository"))
            .hint("write the URL of this repository below `repository` in .kustomize-localize");
        Some(at_path(context, target, directory, failure).warning())
    })
}

/// A finding about the path that a target deploys.
fn at_path(context: &Context<'_>, target: &Target, directory: &TargetDir, failure: Failure) -> Finding {
    let subject = Subject::Path { path: directory.path.clone() };
    Finding { subject, ..context.at_target(Rule::MissingTarget, target, failure) }
}

/// The finding for a target whose directory does not exist.
fn absent_finding(context: &Context<'_>, local: &LocalTarget<'_>, why: &str) -> Finding {
    let (target, directory) = (local.target, local.directory);
    let similar = graph::similar_path(context.tree, &directory.path);
    let failure = Failure::new(format!("{} deploys {}: {why}", target.by(), directory.shown()))
        .hints(similar.map(|similar| format!("did you mean `{similar}`?")))
        .hint(if target.object.is_listed() {
            "correct the path, or remove the entry"
        } else {
            "correct the object, or remove it; if nothing deploys it, list its directory below `exclude:` in .kustomize-localize"
        });
    at_path(context, target, directory, failure)
}

/// Finds the components of an object that do not exist, or are not components.
fn components(context: &Context<'_>, local: &LocalTarget<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Only a build with kustomize adds them.
    for component in local.target.build.components().filter(|_| local.target.is_built(local.directory)) {
        let why = match &component.content {
            Some(PathContent::Nothing(why)) => why.clone(),
            Some(PathContent::Directory(path)) => format!("no kustomization in `{path}`"),
            Some(PathContent::Kustomization(path)) if is_no_component(context, path) => {
                format!("the kustomization in `{path}` is not a Component")
            }
            // No finding here: `remote-reference` reports a URL, only the engine resolves a pattern or a variable, and
            // the tree does not hold a submodule. `missing-target` does not judge a root that could not be read.
            _ => continue,
        };
        findings.push(at_added(context, local.target, "component", &component.text, &why));
    }
    findings
}

/// Whether the kustomization in a directory was read and is not a Component.
fn is_no_component(context: &Context<'_>, directory: &str) -> bool {
    let root = context.graph.user_root(directory).map(|root| &context.graph.roots[root]);
    root.is_some_and(|root| root.kind == Some(KustomizationKind::Kustomization))
}

/// Finds the patches of an object whose files do not exist.
fn patches(context: &Context<'_>, local: &LocalTarget<'_>) -> Vec<Finding> {
    let (target, directory) = (local.target, local.directory);
    // The engine adds patches to a kustomization, so without one, or if its path is unknown, they are not looked up.
    if !matches!(directory.content, PathContent::Kustomization(_)) || target.why_undefined().is_some() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    // `remote-reference` reports the patches that kustomize would get by http. It takes any other text for a path.
    for patch in target.build.patches.iter().filter(|patch| !is_remote_file(&patch.text)) {
        let Some(path) = path::resolve(&directory.path, &patch.text) else {
            findings.push(at_added(context, target, "patch", patch, "it is outside of the repository"));
            continue;
        };
        let resolved = context.value_or_failure(tree::resolve(context.tree, &path));
        if !matches!(resolved, None | Some(Resolved::File { .. })) {
            findings.push(at_added(context, target, "patch", patch, &format!("there is no file `{path}`")));
        }
    }
    findings
}

/// A finding about a component or patch that an object adds.
fn at_added(context: &Context<'_>, target: &Target, kind: &str, added: &LocatedText, why: &str) -> Finding {
    let LocatedText { text, file, position } = added;
    let failure = Failure::new(format!("{} adds the {kind} `{text}`: {why}", target.by()))
        .hint(format!("correct the path, or remove the {kind}"));
    let finding = context.at_position(Rule::MissingTarget, file, *position, failure);
    finding.about(format!("{} {text}", target.name()))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::testing::{Scene, argo, flux, source, under_caret};
    use super::*;
    use crate::message::finding::Severity;

    const PART: &str = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: a-\n";

    fn apps(path: &str, more: &str) -> String {
        flux(&format!("{path} # where it is")) + more
    }

    fn scene(path: &str, more: &str) -> Scene {
        Scene::default()
            .file("clusters/prod/source.yaml", &source(""))
            .file("clusters/prod/apps.yaml", &apps(path, more))
            .file("apps/prod/kustomization.yaml", "resources: [x.yaml]\n")
            .file("apps/prod/x.yaml", "")
            .file("parts/tls/kustomization.yaml", PART)
    }

    #[test]
    fn a_path_that_is_not_there_is_found() {
        let findings = scene("./apps/prdo", "").find(Rule::MissingTarget);
        let [finding] = &findings[..] else { panic!("{findings:?}") };
        assert_eq!(
            finding.message,
            "Flux Kustomization apps (clusters/prod/apps.yaml:1) deploys `./apps/prdo`: there is no `apps/prdo`"
        );
        assert_eq!(finding.help[0], "did you mean `apps/prod`?");
        let components = "  components: ['../gone #1', \"../none\", ../nowhere]\n";
        let quoted = scene("./apps/prod", components).find(Rule::MissingTarget);
        let carets: Vec<String> = quoted.iter().map(under_caret).collect();
        assert_eq!(carets, ["'../gone #1'", "\"../none\"", "../nowhere]"]);
        let file = scene("./apps/prod/x.yaml", "").find(Rule::MissingTarget);
        assert!(file[0].message.ends_with("`apps/prod/x.yaml` is a file"), "{file:?}");
        assert_eq!(file[0].help.len(), 1, "{file:?}");
        assert_eq!(under_caret(finding), "./apps/prdo");
        assert_eq!(finding.path, "clusters/prod/apps.yaml");
    }

    #[test]
    fn a_directory_that_argo_cd_cannot_build_as_its_source_says_is_found() {
        let find = |source: &str| {
            let [finding] = &scene("./apps/prod", "").file("argo.yaml", &argo(source)).find(Rule::MissingTarget)[..]
            else {
                panic!()
            };
            let text = [&finding.message].into_iter().chain(&finding.help).map(|line| format!("{line}\n"));
            text.chain([under_caret(finding)]).collect::<String>()
        };
        expect![[r#"
            Argo CD Application web (argo.yaml:1) deploys `apps`: its source has `kustomize`, and `apps` has no kustomization
            correct the object, or remove it; if nothing deploys it, list its directory below `exclude:` in .kustomize-localize
            apps, kustomize: {namePrefix: x-}}"#]].assert_eq(&find("path: apps, kustomize: {namePrefix: x-}"));
        expect![[r#"
            Argo CD Application web (argo.yaml:1) deploys `apps/prod`: its source has `kustomize` and `directory`: Argo CD takes one of them
            correct the object, or remove it; if nothing deploys it, list its directory below `exclude:` in .kustomize-localize
            apps/prod, kustomize: {namePrefix: x-}, directory: {recurse: true}}"#]].assert_eq(&find("path: apps/prod, kustomize: {namePrefix: x-}, directory: {recurse: true}"));
    }

    #[test]
    fn what_an_object_adds_and_an_engine_cannot_use_is_found() {
        let find = |object: &str| {
            let scene = scene("./apps/prod", "").file("argo.yaml", object).file("apps/bare/x.yaml", "");
            let findings = scene.file("apps/prod/p.yaml", "[]").find(Rule::MissingTarget).into_iter();
            findings.map(|found| found.message.split_once(" adds the ").unwrap().1.to_owned()).collect::<Vec<_>>()
        };
        for ignores in [false, true] {
            let all =
                format!("../../parts/tls, ../bare, ../prod, x.yaml, ../gone], ignoreMissingComponents: {ignores}");
            let of_argo = argo(&format!("path: apps/prod, kustomize: {{components: [{all}}}"));
            let of_flux = flux("./apps/prod") + "  components: [" + &all.replace("], ", "]\n  ") + "\n";
            let mut expected = vec![
                "component `../bare`: no kustomization in `apps/bare`",
                "component `../prod`: the kustomization in `apps/prod` is not a Component",
                "component `x.yaml`: `apps/prod/x.yaml` is a file",
                "component `../gone`: there is no `apps/gone`",
            ];
            expected.truncate(if ignores { 3 } else { 4 });
            for object in [of_argo, of_flux] {
                assert_eq!(find(&object), expected, "{object}");
            }
        }
        let patches = "{path: p.yaml}, {path: gone.yaml, target: {kind: A}}, {path: ../bare}, {path: ../../../x}, {path: github.com/o/r/p.yaml}, {path: 'https://h/p.yaml'}, {patch: '[]'}, {path: '{{x}}'}";
        let object = |patches: &str| argo(&format!("path: apps/prod, kustomize: {{patches: [{patches}]}}"));
        assert_eq!(find(&object(patches)), [""; 0]);
        let known = patches.rsplit_once(", ").unwrap().0;
        let expected = [
            "`gone.yaml`: there is no file `apps/prod/gone.yaml`",
            "`../bare`: there is no file `apps/bare`",
            "`../../../x`: it is outside of the repository",
            "`github.com/o/r/p.yaml`: there is no file `apps/prod/github.com/o/r/p.yaml`",
        ];
        assert_eq!(find(&object(known)), expected.map(|text| format!("patch {text}")));
    }

    #[test]
    fn what_may_be_missing_is_a_warning_that_says_so() {
        let app = |name: &str, url: &str, path: &str| {
            argo(&format!("path: {path}")).replace("web", name).replace("acme/fleet", url) + "---\n"
        };
        let find = |objects: &[String], config: &str| {
            let scene = Scene::default().file("argo.yaml", &objects.concat()).file("here/kustomization.yaml", "");
            scene.config(config).find(Rule::MissingTarget)
        };
        // As many paths of it are here as are not.
        let even = [app("one", "acme/x", "here"), app("two", "acme/x", "gone")];
        let [found] = &find(&even, "")[..] else { panic!() };
        assert_eq!(
            found.message,
            "Argo CD Application two (argo.yaml:7) deploys `gone`, which is missing if github.com/acme/x is this repository"
        );
        assert_eq!((found.severity, &*under_caret(found)), (Severity::Warning, "gone}"));
        let own = |url: &str| format!("repository: [{{url: 'https://github.com/{url}'}}]\n");
        let most = [&even[..], &[app("three", "acme/x", "lost")]].concat();
        let messages: Vec<_> = find(&most, "").into_iter().map(|finding| finding.message).collect();
        expect![[r#"
            Argo CD Application two (argo.yaml:7) deploys `gone`, which is missing if github.com/acme/x is this repository
            Argo CD Application three (argo.yaml:13) deploys `lost`, which is missing if github.com/acme/x is this repository"#]].assert_eq(&messages.join("\n"));
        let declared = find(&even, &own("acme/x"));
        assert!(declared.len() == 1 && declared[0].fails(), "{declared:?}");
        assert_eq!(find(&even, &own("acme/other")), []);
        assert_eq!(find(&[app("one", "acme/x", "away"), app("two", "acme/x", "gone")], ""), []);
    }

    /// The findings about two Applications of another repository, of whose paths this tree has the half.
    fn may_be_missing(kustomization: &str, config: &str) -> String {
        let other = |path: &str| argo(&format!("path: {path}")).replace("acme/fleet", "acme/other");
        let objects = [other("apps").replace("web", "present"), other("gone")].join("---\n");
        let findings = Scene::default()
            .file("clusters/argo.yaml", &objects)
            .file("clusters/kustomization.yaml", kustomization)
            .file("apps/kustomization.yaml", "namePrefix: a-\n")
            .config(config)
            .find(Rule::MissingTarget);
        findings.iter().map(|finding| format!("{}\n", finding.message)).collect()
    }

    #[test]
    fn what_may_be_missing_is_reported_unless_it_is_excluded_or_a_build_changes_it() {
        let kustomization = "resources: [argo.yaml]\n";
        let patch = "{op: replace, path: /spec/source/path, value: apps}";
        let patched =
            format!("{kustomization}patches: [{{target: {{kind: Application, name: web}}, patch: '[{patch}]'}}]\n");
        expect![[r#"
            Argo CD Application web (clusters/argo.yaml:7) deploys `gone`, which is missing if github.com/acme/other is this repository
        "#]].assert_eq(&may_be_missing(kustomization, ""));
        assert_eq!(may_be_missing(kustomization, "exclude: [clusters]\n"), "");
        assert_eq!(may_be_missing(&patched, ""), "");
    }

    #[test]
    fn what_the_tree_does_not_tell_is_no_finding() {
        let allowed =
            apps("nowhere", "").replace("# where it is", "# kustomize-localize: allow[missing-target] made by CI");
        let found = scene("x", "").file("clusters/prod/apps.yaml", &allowed).check();
        assert!(found.findings.iter().all(|finding| finding.allowed.is_some()));
        assert_eq!(found.findings.len(), 1);
        for scene in [
            scene("./apps/prod", ""),
            scene("./apps/${cluster}", ""),
            scene("nowhere", "").file("clusters/prod/source.yaml", &source("").replace("fleet", "other")),
            scene("nowhere", "").file("clusters/prod/source.yaml", &source("").replace("branch: main", "tag: v1")),
            scene("nowhere", "").config("exclude: [clusters]\n"),
            scene("nowhere", "").config("allow: [{path: nowhere, reason: made by CI}]\n"),
            // An overlay may change it.
            scene("nowhere", "").file(
                "clusters/prod/kustomization.yaml",
                "resources: [source.yaml, apps.yaml]\npatches: [{path: p.yaml}]\n",
            ).file("clusters/prod/p.yaml", "kind: Kustomization\nmetadata: {name: apps}\nspec: {path: apps/prod}\n"),
            scene("nowhere", "").file(
                "clusters/prod/kustomization.yaml",
                "resources: [source.yaml, apps.yaml]\ncomponents: [../../parts/tls]\n",
            ).file("parts/tls/kustomization.yaml", "kind: Component\npatches: [{patch: '[{op: replace, path: /spec/path, value: x}]', target: {kind: Kustomization}}]\n"),
            scene("nowhere", "").file("overlay/kustomization.yaml", "resources: [../clusters/prod]\nreplacements: [{path: r.yaml}]\n").file("overlay/r.yaml", "targets: [{select: {kind: Kustomization}, fieldPaths: [spec.path]}]\n").file(
                "clusters/prod/kustomization.yaml",
                "resources: [source.yaml, apps.yaml]\n",
            ),
        ] {
            let mut findings = scene.find(Rule::MissingTarget);
            findings.retain(|finding| finding.allowed.is_none());
            assert!(findings.is_empty(), "{findings:?}");
        }
        // A patch of another kind changes nothing.
        let findings = scene("nowhere", "")
            .file(
                "clusters/prod/kustomization.yaml",
                "resources: [source.yaml, apps.yaml]\npatches: [{patch: '[{op: add, path: /spec/wait, value: true}]', target: {kind: Deployment}}]\n",
            )
            .find(Rule::MissingTarget);
        assert_eq!(findings.len(), 1);
    }

    #[test]
    fn a_component_that_is_not_there_is_found() {
        for (components, expected) in [
            ("[../../parts/tls]", None),
            ("[../../parts/tsl]", Some("there is no `parts/tsl`")),
            ("[../../parts]", Some("no kustomization in `parts`")),
            ("[../../../x]", Some("it is outside of the repository")),
            ("[https://github.com/acme/parts]", None),
        ] {
            let more = format!("  components: {components}\n");
            let findings = scene("./apps/prod", &more).find(Rule::MissingTarget);
            let found = findings.first().map(|finding| finding.message.clone());
            let expected = expected.map(|why| {
                let text = components.trim_matches(['[', ']']);
                format!("Flux Kustomization apps (clusters/prod/apps.yaml:1) adds the component `{text}`: {why}")
            });
            assert_eq!(found, expected);
        }
        let more = "  components: [../../parts/tsl]\n  ignoreMissingComponents: true\n";
        assert!(scene("./apps/prod", more).find(Rule::MissingTarget).is_empty());
    }

    #[test]
    fn what_nothing_deploys_is_a_warning_that_names_the_way_out() {
        let deploys = |name: &str, path: &str| flux(path).replace("name: apps", &format!("name: {name}"));
        let web = |path: &str| {
            let apps = "kubernetes/apps/default";
            let archive = |scene: Scene, name: &&str| {
                let app = format!("./{apps}/{name}/app");
                let both = format!("{}---\n{}", deploys(name, &app), deploys(&format!("{name}-db"), &app));
                scene.file(&format!("kubernetes/archive/default/{name}/ks.yaml"), &both)
            };
            let scene = Scene::default()
                .file(&format!("{apps}/kustomization.yaml"), "resources: [web/ks.yaml]\n")
                .file(&format!("{apps}/web/ks.yaml"), &deploys("web", &format!("./{apps}/web/{path}")))
                .file(&format!("{apps}/web/app/map.yaml"), "")
                .file("kubernetes/archive/default/kustomization.yaml", "resources: [old/ks.yaml]\n");
            ["old", "older"].iter().fold(scene, archive)
        };
        let cluster = "kubernetes/flux/cluster";
        let deployed =
            |path: &str| web(path).file(&format!("{cluster}/ks.yaml"), &deploys("cluster", "./kubernetes/apps"));
        let mistyped = || deployed("wbe").file(&format!("{cluster}/more.yaml"), &deploys("more", "./kubernetes/mroe"));
        let exclude = "list `kubernetes/archive` below `exclude:`";
        for (scene, warnings, errors, said) in [
            (deployed("app"), 4, 0, Some(exclude)),
            // A deployed target fails, and so does one beside it, which may be deployed by hand.
            (mistyped(), 4, 2, Some(exclude)),
            (mistyped().config("exclude: [kubernetes/archive]\n"), 0, 2, None),
            // If no object is deployed from this tree, all may be deployed from elsewhere.
            (web("app"), 0, 4, Some("below `exclude:`")),
        ] {
            let part =
                Scene { tree: scene.tree.clone(), paths: vec!["kubernetes/archive".to_owned()], ..Scene::default() };
            let found = scene.find(Rule::MissingTarget);
            let is_error = |one: &&Finding| one.fails();
            assert_eq!((found.len(), found.iter().filter(is_error).count()), (warnings + errors, errors), "{found:?}");
            let is_said = |text: &str| found.iter().any(|one| one.help.iter().any(|help| help.contains(text)));
            assert!(is_said(said.unwrap_or_default()) && (said.is_some() || !is_said("archive")), "{found:?}");
            if said == Some(exclude) {
                let of_part = part.find(Rule::MissingTarget);
                assert!(of_part.len() == warnings && !of_part.iter().any(Finding::fails), "{of_part:?}");
            }
        }
    }

    #[test]
    fn without_objects_nothing_changes() {
        let scene = Scene::of("resources: [x.yaml]\n").file("x.yaml", "kind: Application\n");
        assert!(scene.check().findings.is_empty());
    }
}
