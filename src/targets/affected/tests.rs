//! Changes of a tree, and the roots and targets that they touch.

mod random;
mod unknown;
mod watched;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::changes::Changes;
use super::{Affected, AffectedRoot, Cause, Causes, DiffStatus, Sides, affected};
use crate::config::Config;
use crate::graph::inputs::{explore, explore_all};
use crate::graph::{Origin, Survey};
use crate::record::LOCK_NAME;
use crate::targets::{self, DeployedTree, Identity, Target};
use crate::tree::overlay::OverlayTree;
use crate::tree::{self, Tree, path};

/// What a tree holds: files with their bytes and mode, and links (`None`).
type World = BTreeMap<String, (String, Option<bool>)>;

fn tree(world: &World) -> Rc<dyn Tree> {
    let mut tree = OverlayTree::default();
    for (place, (text, executable)) in world {
        match executable {
            Some(executable) => tree.add_file_with_mode(place, text.as_bytes(), *executable),
            None => tree.link(place, text),
        }
    }
    Rc::new(tree)
}

/// Walks a tree, and finds what is deployed from it.
fn side(tree: &Rc<dyn Tree>) -> DeployedTree {
    let config = Config::default();
    let identity = || {
        let here = ["https://github.com/acme/fleet".to_owned()];
        Ok(Identity::new(here, &config, ["main".to_owned()]))
    };
    let survey = Survey::of(tree.clone());
    let found = targets::find_in(&survey, &[], &tree.kustomizations().unwrap(), &config, &identity).unwrap();
    let explored = survey.explore_all_inputs().unwrap();
    let targets = found.resolve_changers(&explored.graph);
    DeployedTree { explored, targets }
}

fn compared(old: &World, new: &World) -> Affected {
    let trees = Sides { old: tree(old), new: tree(new) };
    let changes = Changes::among(trees, old.keys().chain(new.keys()).cloned()).unwrap();
    let deployed = changes.trees.as_ref().map(side);
    affected(&changes, &Config::default(), deployed.as_ref()).unwrap()
}

fn world(files: &[(&str, &str)]) -> World {
    let file = |(place, text): &(&str, &str)| (place.to_string(), (text.to_string(), Some(false)));
    files.iter().map(file).collect()
}

/// Returns the targets that a change of one file touches, each with whether something is known of what it deploys then.
fn by_file(files: &[(&str, &str)], file: &str, text: &str) -> Vec<(String, bool)> {
    let old = world(files);
    let mut new = old.clone();
    new.insert(file.to_owned(), (text.to_owned(), Some(false)));
    let found = compared(&old, &new);
    let is_known = |target: &Target| {
        let is_open = found.unbuilt.iter().any(|one| one.object == target.object);
        !is_open && target.why_undefined().is_none() && target.local_dir().is_some_and(|here| here.revision.is_this)
    };
    found.targets.iter().map(|one| (one.target.object.name.clone(), is_known(&one.target))).collect()
}

/// A false all-clear is the worst answer: what reads a file is named, and what is not built then is not known.
#[test]
fn all_that_is_built_is_listed() {
    let tree = tree(&world(&[
        ("app/kustomization.yaml", "resources: [../base]\n"),
        ("base/kustomization.yaml", "namePrefix: a-\n"),
        ("broken/kustomization.yaml", "resources: [\n"),
        ("chart/Chart.yaml", "name: chart\n"),
    ]));
    let listed = super::other_builds(&*tree, &Config::default(), &side(&tree)).unwrap();
    assert_eq!(listed.roots, ["app", "broken"]);
    assert_eq!(listed.unread.iter().map(|file| &*file.file).collect::<Vec<_>>(), ["broken/kustomization.yaml"]);
}

#[test]
fn whoever_reads_a_file_is_named() {
    let git = |name: &str, spec: &str| {
        format!(
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {{name: {name}}}\nspec: {{url: 'https://github.com/acme/fleet', {spec}}}\n---\n"
        )
    };
    let apps = |spec: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: a}}\nspec: {{sourceRef: {{kind: GitRepository, name: g}}, {spec}}}\n"
        )
    };
    let flux = |spec: &str| git("g", "ref: {branch: main}") + &apps(spec);
    let source = |kind: &str, spec: &str| {
        format!("apiVersion: source.toolkit.fluxcd.io/v1\nkind: {kind}\nmetadata: {{name: g}}\nspec: {{{spec}}}\n---\n")
    };
    let of = |kind: &str| apps("path: ./a").replace("kind: GitRepository", &format!("kind: {kind}"));
    let app = |more: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: a}}\nspec: {{source: {{repoURL: 'https://github.com/acme/fleet', path: a, {more}}}}}\n"
        )
    };
    let set = |more: &str| {
        let text = app(more).replace("metadata: {name: a}", "").replace("kind: Application\n", "");
        let template = text.lines().last().unwrap().replacen(
            "spec: ",
            "spec: {generators: [{clusters: {}}], template: {metadata: {name: a}, spec: ",
            1,
        );
        format!("apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: s}}\n{template}}}}}\n")
    };
    let resources = |template: &str| {
        format!(
            "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {{name: a}}\nspec:\n  resourcesTemplate: |\n    kind: Kustomization\n    spec:\n      path: {template}\n"
        )
    };
    let release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\nspec: {chart: {spec: {chart: a, valuesFiles: [v.yaml], sourceRef: {kind: GitRepository, name: g}}}}\n";
    let generated = |spec: &str| {
        format!(
            "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {{name: g}}\nspec: {{sources: [{{alias: g, kind: GitRepository, name: g}}], {spec}}}\n---\n{}{}",
            git("g", "ref: {branch: main}"),
            apps("path: ./").replace("GitRepository, name: g", "ExternalArtifact, name: a-x"),
        )
    };
    let plain = ("a/x.yaml", MAP);
    let component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n";
    let root = ("a/kustomization.yaml", "resources: [x.yaml]\n");
    for (object, files, changed, is_known) in [
        (flux("path: ./a"), vec![plain], "a/x.yaml", Some(true)),
        (flux("path: ./b"), vec![plain], "a/x.yaml", None),
        // Another branch may hold the change tomorrow; a tag does not.
        (git("g", "ref: {branch: production}") + &apps("path: ./a"), vec![plain], "a/x.yaml", Some(false)),
        (git("g", "ref: {tag: v1.0.0}") + &apps("path: ./a"), vec![plain], "a/x.yaml", None),
        (app("targetRevision: v1.0.0"), vec![plain], "a/x.yaml", None),
        (git("g", "ref: {branch: eu1}") + &apps("path: ./a"), vec![plain], "a/x.yaml", Some(false)),
        (
            app("targetRevision: v1.0.0, helm: {valueFiles: [v.yaml]}"),
            vec![("a/Chart.yaml", "name: a\n"), ("a/v.yaml", "a: b\n")],
            "a/v.yaml",
            None,
        ),
        // Nobody here says that it is another repository.
        (of("GitRepository"), vec![plain], "a/x.yaml", Some(false)),
        (source("Bucket", "endpoint: x") + &of("Bucket"), vec![plain], "a/x.yaml", Some(false)),
        (source("OCIRepository", "url: 'oci://h/x'") + &of("OCIRepository"), vec![plain], "a/x.yaml", Some(false)),
        // An artifact holds this repository elsewhere, too.
        (
            git("g", "include: [{repository: {name: h}, fromPath: a, toPath: inc}]")
                + &git("h", "")
                + &apps("path: ./inc"),
            vec![plain],
            "a/x.yaml",
            Some(false),
        ),
        (
            flux("path: ./b, components: ['../c/${x}']"),
            vec![("b/x.yaml", MAP), ("c/d/kustomization.yaml", component)],
            "c/d/kustomization.yaml",
            Some(false),
        ),
        (
            set("kustomize: {components: ['../c/{{name}}']}"),
            vec![root, plain, ("c/d/kustomization.yaml", component)],
            "c/d/kustomization.yaml",
            Some(false),
        ),
        (set("directory: {include: '{{name}}.yaml'}"), vec![plain], "a/x.yaml", Some(false)),
        (
            app("directory: {jsonnet: {libs: [lib]}}"),
            vec![("a/x.jsonnet", "{}\n"), ("lib/l.libsonnet", "{}\n")],
            "lib/l.libsonnet",
            Some(false),
        ),
        (
            app(""),
            vec![("a/x.jsonnet", "import '../lib/l.libsonnet'\n"), ("lib/l.libsonnet", "{}\n")],
            "lib/l.libsonnet",
            Some(false),
        ),
        (
            app("kustomize: {patches: [{path: ../p.yaml}]}"),
            vec![root, plain, ("p.yaml", "a: b\n")],
            "p.yaml",
            Some(true),
        ),
        (
            app(""),
            vec![
                root,
                plain,
                ("a/.argocd-source-a-prod.yaml", "kustomize: {namePrefix: x-}\n"),
                ("kustomization.yaml", "resources: [o.yaml]\nnameSuffix: -prod\n"),
            ],
            "a/.argocd-source-a-prod.yaml",
            Some(false),
        ),
        (
            app(""),
            vec![root, plain, ("a/.argocd-source-b.yaml", "kustomize: {namePrefix: x-}\n")],
            "a/.argocd-source-b.yaml",
            None,
        ),
        (
            app("helm: {valueFiles: ['secrets://../v.yaml']}"),
            vec![("a/Chart.yaml", "name: a\n"), ("v.yaml", "a: b\n")],
            "v.yaml",
            Some(true),
        ),
        (
            app(""),
            vec![
                ("a/x.jsonnet", "import '../lib/l.libsonnet'\n"),
                ("lib/l.libsonnet", "import 'm.libsonnet'\n"),
                ("lib/m.libsonnet", "{}\n"),
            ],
            "lib/m.libsonnet",
            Some(false),
        ),
        // What Argo CD leaves out of a directory of plain files.
        (app(""), vec![plain, ("a/b/y.yaml", MAP)], "a/b/y.yaml", None),
        (app("directory: {recurse: true}"), vec![plain, ("a/b/y.yaml", MAP)], "a/b/y.yaml", Some(true)),
        (app("directory: {exclude: 'x*'}"), vec![plain, ("a/y.yaml", MAP)], "a/x.yaml", None),
        (app("directory: {include: 'x*'}"), vec![plain, ("a/y.yaml", MAP)], "a/y.yaml", None),
        (app("directory: {include: 'x*'}"), vec![plain, ("a/y.yaml", MAP)], "a/x.yaml", Some(true)),
        (app(""), vec![plain, ("a/README.md", "a")], "a/README.md", None),
        // That of a request.
        (resources("/"), vec![("README.md", "")], "README.md", None),
        (resources("./a"), vec![plain], "a/x.yaml", Some(false)),
        (resources("./<< inputs.x >>/b"), vec![plain], "a/x.yaml", Some(false)),
        // The values of a release, and those of its chart, which may count again.
        (
            git("g", "ref: {branch: main}") + release,
            vec![("a/Chart.yaml", "name: a\n"), ("a/values.yaml", "a: b\n"), ("v.yaml", "a: b\n")],
            "v.yaml",
            Some(true),
        ),
        (
            git("g", "ref: {branch: main}") + release,
            vec![("a/Chart.yaml", "name: a\n"), ("a/values.yaml", "a: b\n"), ("v.yaml", "a: b\n")],
            "a/values.yaml",
            Some(true),
        ),
        // What a generator copies is read where it lies.
        (
            generated("artifacts: [{name: a-x, copy: [{from: '@g/a/**', to: '@artifact/'}]}]"),
            vec![root, plain],
            "a/x.yaml",
            Some(true),
        ),
        (
            generated(
                "pathPattern: '@g/{app}/x', artifacts: [{name: '{app}-x', copy: [{from: '@g/{app}/x/**', to: '@artifact/'}]}]",
            ),
            vec![("a/x/kustomization.yaml", "resources: [m.yaml]\n"), ("a/x/m.yaml", MAP), ("b/x/m.yaml", MAP)],
            "a/x/m.yaml",
            Some(true),
        ),
        (
            generated(
                "pathPattern: '@g/{app}/x', artifacts: [{name: '{app}-x', copy: [{from: '@g/{app}/x/**', to: '@artifact/'}]}]",
            ),
            vec![("a/x/m.yaml", MAP), ("b/x/m.yaml", MAP)],
            "b/x/m.yaml",
            None,
        ),
        // What is filled in comes from an object of the tree.
        (
            flux("path: ./a, postBuild: {substituteFrom: [{kind: ConfigMap, name: map}]}"),
            vec![plain, ("b/m.yaml", MAP)],
            "b/m.yaml",
            Some(false),
        ),
        (
            flux("path: ./a, postBuild: {substituteFrom: [{kind: ConfigMap, name: ma}]}"),
            vec![plain, ("b/m.yaml", MAP)],
            "b/m.yaml",
            None,
        ),
    ] {
        let all = [vec![("o.yaml", &*object)], files].concat();
        let text = all
            .iter()
            .find(|(file, _)| *file == changed)
            .unwrap()
            .1
            .replace("metadata: {name: map}", "metadata: {name: map, labels: {a: b}}");
        let expected: Vec<_> = is_known.map(|is_known| ("a".to_owned(), is_known)).into_iter().collect();
        assert_eq!(by_file(&all, changed, &(text + "\n# changed\n")), expected, "{object}");
    }
    // A generator makes the object of a file, and who takes values from it is none.
    let taking = flux("path: ./a, postBuild: {substituteFrom: [{kind: ConfigMap, name: map}]}");
    let other = taking.replace("name: a", "name: b");
    let root = "configMapGenerator: [{name: map, envs: [c.env]}, {name: other, envs: [d.env]}]\n";
    let all = [
        ("o.yaml", &*taking),
        plain,
        ("k.yaml", &*other),
        ("vars/kustomization.yaml", root),
        ("vars/c.env", "A=b\n"),
        ("vars/d.env", "A=b\n"),
    ];
    let both = [("b".to_owned(), false), ("a".to_owned(), false)];
    assert_eq!(by_file(&all, "vars/c.env", "A=c\n"), both);
    assert_eq!(by_file(&all, "vars/d.env", "A=c\n"), []);
    assert_eq!(by_file(&all, "k.yaml", &(other.clone() + "# x\n")), []);
    // The object may be gone, and its kustomization, too.
    assert_eq!(by_file(&all, "vars/kustomization.yaml", "namePrefix: a-\n"), both);
    let old = world(&all);
    let mut new = old.clone();
    new.remove("vars/kustomization.yaml");
    assert_eq!(touched(&old, &new), ["b 6: vars/kustomization.yaml", "a 6: vars/kustomization.yaml"]);
    // A pattern adds components, also those that are new below the directory that it begins with.
    let pattern = app("kustomize: {components: ['../parts/*']}");
    let component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [../../lib]\n";
    let files = [
        ("o.yaml", &*pattern),
        ("a/kustomization.yaml", "namePrefix: a-\n"),
        ("parts/tls/kustomization.yaml", component),
        ("lib/kustomization.yaml", "resources: [x.yaml]\n"),
        ("lib/x.yaml", MAP),
    ];
    for (file, is_input) in [("parts/db/kustomization.yaml", true), ("lib/x.yaml", true), ("other/x.yaml", false)] {
        let expected: Vec<_> = is_input.then(|| ("a".to_owned(), true)).into_iter().collect();
        assert_eq!(by_file(&files, file, component), expected, "{file}");
    }
    // The object stands in a file of another name.
    let files = [("k.tmpl", &*flux("path: ./a")), ("kustomization.yaml", "resources: [k.tmpl]\n"), plain];
    assert_eq!(by_file(&files, "a/x.yaml", "a: b\n"), [("a".to_owned(), true)]);
    // Only the tree tells that either is this repository.
    let url = |name: &str| git("g", "").replace("acme/fleet", name) + &apps("path: ./a");
    assert_eq!(by_file(&[("o.yaml", &url("o/x")), plain], "o.yaml", &url("o/y")), [("a".to_owned(), false)]);
}

/// Returns the affected roots with what differs.
fn told(affected: &Affected) -> Vec<String> {
    let tell = |root: &AffectedRoot| {
        let cause = match &root.cause {
            Cause::Path(path) => path.clone(),
            Cause::Remote(source) => source.to_string(),
        };
        format!("{:?} {} {cause}", root.status, root.directory)
    };
    affected.roots.iter().map(tell).collect()
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n";

#[test]
fn a_moved_entry_of_the_lock_touches_what_leads_there() {
    let lock = |one: char, two: char| {
        let file = |url: &str, digit: char| {
            format!("  - url: {url}\n    sha256: {}\n    size: 1\n", digit.to_string().repeat(64))
        };
        format!(
            "version: 1\nremotes:\n  - url: https://h/o/a\n    ref: v1\n    commit: {}\n    paths: {{web: {{names: ['https://h/one.yaml']}}}}\n{}{}",
            "a".repeat(40),
            file("https://h/one.yaml", one),
            file("https://h/two.yaml", two),
        )
    };
    let with = |lock: &str| {
        world(&[
            ("through/kustomization.yaml", "resources: ['https://h/o/a//web?ref=v1']\n"),
            ("two/kustomization.yaml", "resources: ['https://h/two.yaml']\n"),
            ("none/kustomization.yaml", "resources: ['https://h/none.yaml']\n"),
            (LOCK_NAME, lock),
        ])
    };
    let old = with(&lock('1', '2'));
    assert_eq!(compared(&old, &old).roots, []);
    assert_eq!(told(&compared(&old, &with(&lock('1', '3')))), ["Changed two https://h/two.yaml"]);
    assert_eq!(told(&compared(&old, &with(&lock('3', '2')))), ["Changed through https://h/o/a?ref=v1"]);
    assert_eq!(
        told(&compared(&old, &with("version: 1\n"))),
        ["Changed through https://h/o/a?ref=v1", "Changed two https://h/two.yaml"]
    );
}

const FLUX: &str = "apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet}
spec: {url: https://github.com/acme/fleet, ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web}
spec: {path: ./web, sourceRef: {kind: GitRepository, name: fleet}, components: [../mixin]}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: plain}
spec: {path: ./plain, sourceRef: {kind: GitRepository, name: fleet}, postBuild: {substitute: {a: b}}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: other}
spec: {url: https://github.com/acme/other, ref: {tag: v1}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: other}
spec: {path: ./x, sourceRef: {kind: GitRepository, name: other}}
";
const ARGO: &str = "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web}
spec:
  source:
    repoURL: https://github.com/acme/fleet
    path: web
    kustomize: {namePrefix: a-}
";

#[test]
fn targets_are_touched_by_what_they_build_and_by_how() {
    let old = world(&[
        ("clusters/flux.yaml", FLUX),
        ("clusters/argo.yaml", ARGO),
        ("web/kustomization.yaml", "resources: [../base]\n"),
        ("base/kustomization.yaml", "resources: [map.yaml]\n"),
        ("base/map.yaml", MAP),
        ("plain/map.yaml", MAP),
        ("plain/inner/kustomization.yaml", "resources: [../../shared/map.yaml]\n"),
        ("plain/inner/app/kustomization.yaml", "resources: [map.yaml]\n"),
        ("plain/inner/app/map.yaml", MAP),
        ("plain/beside/map.yaml", MAP),
        ("shared/map.yaml", MAP),
        (
            "mixin/kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{path: p.yaml}]\n",
        ),
        ("mixin/p.yaml", MAP),
    ]);
    let changed = |place: &str, from: &str, to: &str| -> Vec<String> {
        let mut new = old.clone();
        let (text, mode) = old.get(place).cloned().unwrap_or((String::new(), Some(false)));
        assert!(text.contains(from), "{place}: {from}");
        match to {
            "gone" => new.remove(place),
            to => new.insert(place.to_owned(), (text.replacen(from, to, 1), mode)),
        };
        let found = compared(&old, &new).targets.into_iter().map(|one| {
            let cause = match one.cause {
                Cause::Path(path) => path,
                Cause::Remote(source) => source.to_string(),
            };
            let name = &one.target.object.name;
            format!("{:?} {} {name}: {cause}", one.status, one.target.engine.name())
        });
        found.collect()
    };
    let none: [&str; 0] = [];
    assert_eq!(compared(&old, &old).targets, []);
    assert_eq!(compared(&old, &old).targets_total, 4);
    assert_eq!(changed("README.md", "", "x"), none);
    assert_eq!(
        changed("base/map.yaml", "map", "pam"),
        ["Changed Argo CD web: base/map.yaml", "Changed Flux web: base/map.yaml"]
    );
    assert_eq!(changed("mixin/p.yaml", "map", "pam"), ["Changed Flux web: mixin/p.yaml"]);
    assert_eq!(changed("plain/map.yaml", "map", "pam"), ["Changed Flux plain: plain/map.yaml"]);
    assert_eq!(changed("plain/new/x.yaml", "", MAP), ["Changed Flux plain: plain/new"]);
    assert_eq!(changed("plain/beside/map.yaml", "map", "pam"), ["Changed Flux plain: plain/beside/map.yaml"]);
    assert_eq!(changed("shared/map.yaml", "map", "pam"), ["Changed Flux plain: shared/map.yaml"]);
    // Flux does not enter a root.
    assert_eq!(changed("plain/inner/app/map.yaml", "map", "pam"), none);
    assert_eq!(changed("plain/inner/README.md", "", "x"), none);
    assert_eq!(
        changed("plain/inner/kustomization.yaml", "", "gone"),
        ["Changed Flux plain: plain/inner/kustomization.yaml"]
    );
    assert_eq!(
        changed("plain/beside/kustomization.yaml", "", "namePrefix: a-\n"),
        ["Changed Flux plain: plain/beside/kustomization.yaml"]
    );
    let flux = |from: &str, to: &str| changed("clusters/flux.yaml", from, to);
    assert_eq!(flux("{a: b}", "{a: c}"), ["Changed Flux plain: clusters/flux.yaml"]);
    assert_eq!(flux("[../mixin]", "[]"), ["Changed Flux web: clusters/flux.yaml"]);
    assert_eq!(flux("tag: v1", "tag: v2"), ["Changed Flux other: clusters/flux.yaml"]);
    assert_eq!(
        flux("branch: main", "branch: next"),
        ["Changed Flux web: clusters/flux.yaml", "Changed Flux plain: clusters/flux.yaml"]
    );
    assert_eq!(flux("{name: other}\nspec: {path", "{name: moved}\nspec: {path").len(), 2);
    let argo = changed("clusters/argo.yaml", "a-", "b-");
    assert_eq!(argo, ["Changed Argo CD web: clusters/argo.yaml"]);
    assert_eq!(
        changed("web/.argocd-source.yaml", "", "kustomize: {nameSuffix: -x}\n"),
        ["Changed Argo CD web: web/.argocd-source.yaml"]
    );
    assert_eq!(changed("clusters/argo.yaml", "", "gone"), ["Removed Argo CD web: clusters/argo.yaml"]);
    assert_eq!(
        changed("web/.sourceignore", "", "x"),
        ["Changed Flux web: web/.sourceignore", "Changed Flux plain: web/.sourceignore"]
    );
    let new = "docs/new/.sourceignore";
    assert_eq!(changed(new, "", "x"), [format!("Changed Flux web: {new}"), format!("Changed Flux plain: {new}")]);
    assert_eq!(changed("web/kustomization.yaml", "", "gone"), ["Changed Argo CD web: web", "Changed Flux web: web"]);
}

/// Returns the affected targets, with what differs.
fn touched(old: &World, new: &World) -> Vec<String> {
    let targets = compared(old, new).targets.into_iter();
    let tell = targets.map(|one| {
        let what = match one.cause {
            Cause::Path(what) => what,
            Cause::Remote(source) => source.to_string(),
        };
        format!("{} {}: {what}", one.target.object.name, one.target.object.line)
    });
    tell.collect()
}

#[test]
fn what_differs_for_a_target_is_where_it_is_said() {
    let (source, apps) = FLUX.split_once("---\n").unwrap();
    let old = world(&[("source.yaml", source), ("apps.yaml", apps)]);
    let new = source.replace("main", "next");
    let new = world(&[("source.yaml", &new), ("apps.yaml", apps)]);
    assert_eq!(touched(&old, &new), ["web 1: source.yaml", "plain 6: source.yaml"]);
    // Only a comment, and only another place.
    let moved = format!("# One\n{apps}");
    let new = world(&[("source.yaml", source), ("apps.yaml", &moved)]);
    assert_eq!(touched(&old, &new), [""; 0]);
    let new = world(&[("source.yaml", source), ("other.yaml", apps)]);
    assert_eq!(touched(&old, &new), [""; 0]);
}

#[test]
fn of_many_roots_that_differ_the_first_is_named() {
    let with = |text: &str| {
        let directories = ('a'..='z').map(|name| format!("plain/{name}"));
        let mut all = world(&[("flux.yaml", FLUX)]);
        all.extend(directories.flat_map(|directory| {
            let root = format!("{directory}/kustomization.yaml");
            let patch = format!("{directory}/patch.yaml");
            world(&[(&root, "patches: [{path: patch.yaml}]\n"), (&patch, text)])
        }));
        all
    };
    let other = MAP.replace("map", "pam");
    assert_eq!(touched(&with(MAP), &with(&other)), ["plain 11: plain/a/patch.yaml"]);
}

#[test]
fn each_of_several_targets_of_one_object_counts() {
    let sources = |one: &str, two: &str| {
        let source = |path: &str| format!("  - {{repoURL: 'https://github.com/acme/fleet', path: {path}}}\n");
        let text = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: web}}\nspec:\n  sources:\n{}{}",
            source(one),
            source(two)
        );
        world(&[("argo.yaml", &text)])
    };
    assert_eq!(touched(&sources("a", "b"), &sources("a", "b")), [""; 0]);
    assert_eq!(touched(&sources("a", "b"), &sources("a", "a")).len(), 2);
}

#[test]
fn targets_of_one_name_are_told_apart_by_their_files() {
    let application = |path: &str| {
        let source = format!("{{repoURL: 'https://github.com/acme/fleet', path: {path}}}");
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: web}}\nspec: {{source: {source}}}\n"
        )
    };
    let old = world(&[("east.yaml", &application("one"))]);
    let new = world(&[("alpha.yaml", &application("two")), ("east.yaml", &application("three"))]);
    let targets = compared(&old, &new).targets.into_iter();
    let told: Vec<_> =
        targets.map(|one| (one.target.object.file, one.was.map(|was| was.object.file), one.status)).collect();
    let east = || "east.yaml".to_owned();
    assert_eq!(told, [("alpha.yaml".to_owned(), None, DiffStatus::Added), (east(), Some(east()), DiffStatus::Changed)]);
}

#[test]
fn what_is_gone_counts_where_something_deployed_it_alone() {
    let source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: fleet, namespace: flux-system}\nspec: {url: https://github.com/acme/fleet}\n";
    let object = |path: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: web, namespace: flux-system}}\nspec: {{path: {path}, sourceRef: {{kind: GitRepository, name: fleet}}}}\n"
        )
    };
    let root = "resources: [map.yaml]\n";
    let at = |place: &str, rest: &[(&str, &str)]| {
        let object = object(place);
        let own = [
            ("clusters/source.yaml", source),
            ("clusters/web.yaml", object.as_str()),
            (&*format!("{place}/kustomization.yaml"), root),
            (&*format!("{place}/map.yaml"), MAP),
        ];
        world(&[&own[..], rest].concat())
    };
    // The target follows: it is what differs.
    let moved = compared(&at("apps/web", &[]), &at("apps/web2", &[]));
    assert_eq!(told(&moved), ["Added apps/web2 apps/web2"]);
    assert_eq!(moved.targets.len(), 1);
    // A base that is inlined into its only overlay.
    let base = [
        ("base/kustomization.yaml", root),
        ("base/map.yaml", MAP),
        ("over/kustomization.yaml", "resources: [../base]\n"),
    ];
    let inlined = [("over/kustomization.yaml", root), ("over/map.yaml", MAP)];
    let told_of = |old: &[(&str, &str)], new: &[(&str, &str)]| told(&compared(&world(old), &world(new)));
    let [only] = &told_of(&base, &inlined)[..] else { panic!() };
    assert!(only.starts_with("Changed over "), "{only}");
    // What stood for itself is gone.
    let [gone, _] = &told_of(
        &[("a/kustomization.yaml", root), ("b/kustomization.yaml", root)],
        &[("b/kustomization.yaml", "")],
    )[..] else {
        panic!()
    };
    assert_eq!(gone, "Removed a a");
}

#[test]
fn a_template_that_nothing_deploys_is_named_if_it_changes() {
    let template =
        |text: &str| format!("kind: Kustomization\napiVersion: kustomize.toolkit.fluxcd.io/v1\n{{{{ {text}\n");
    let with = |chart: &str, map: &str| {
        world(&[("a/Chart.yaml", "name: a\n"), ("a/templates/x.yaml", &template(chart)), ("b/map.yaml", map)])
    };
    let unread = |old: &World, new: &World| compared(old, new).unread.len();
    let old = with("a", MAP);
    assert_eq!(unread(&old, &with("a", "")), 0);
    assert_eq!(unread(&old, &with("b", MAP)), 1);
    // What may be deployed as it is is named in any case.
    let bad = world(&[("x.yaml", &template("a"))]);
    assert_eq!(unread(&bad, &bad), 1);
}

#[test]
fn what_is_not_read_whole_is_said_and_counts_with_all_of_its_directory() {
    for (text, is_hidden) in
        [("resources: !!seq [map.yaml]\n", true), ("resources: [map.yaml\n", true), ("resources: [x.yaml]\n", false)]
    {
        let with = |map: &str| {
            let files = [
                ("a/kustomization.yaml", text),
                ("a/x.yaml", MAP),
                ("a/map.yaml", map),
                ("over/kustomization.yaml", "resources: [../a]\n"),
                ("b/kustomization.yaml", "namePrefix: b-\n"),
            ];
            world(&files)
        };
        let found = compared(&with(MAP), &with(&MAP.replace("map", "other")));
        let expected: &[&str] = if is_hidden { &["Changed over a/map.yaml"] } else { &[] };
        assert_eq!(told(&found), expected, "{text}");
        let unread: Vec<&str> = found.unread.iter().map(|one| one.file.as_str()).collect();
        let expected: &[&str] = if is_hidden { &["a/kustomization.yaml"] } else { &[] };
        assert_eq!(unread, expected, "{text}");
    }
}

#[test]
fn a_kustomization_that_is_a_template_is_named_if_it_changes_or_is_deployed() {
    let with = |map: &str, other: &str, flux: &str| {
        world(&[
            ("a/kustomization.yaml", "resources: [map.yaml]\n{% if x %}\n"),
            ("a/map.yaml", map),
            ("b/kustomization.yaml", "resources: [map.yaml]\n"),
            ("b/map.yaml", other),
            ("flux.yaml", flux),
        ])
    };
    let (old, other, flux) = (with(MAP, MAP, ""), MAP.replace("map", "other"), FLUX.replace("./web", "./a"));
    assert_ne!(flux, FLUX);
    for (is, expected) in [(with(MAP, &other, ""), 0), (with(&other, MAP, ""), 1), (with(MAP, &other, &flux), 1)] {
        assert_eq!(compared(&old, &is).unread.len(), expected);
    }
}

#[test]
fn what_a_new_root_names_was_deployed_by_itself() {
    let with = |map: &str, more: &[(&str, &str)]| {
        world(&[&[("a/kustomization.yaml", "resources: [map.yaml]\n"), ("a/map.yaml", map)][..], more].concat())
    };
    let over = [("over/kustomization.yaml", "resources: [../a]\n")];
    let (old, other) = (with(MAP, &[]), MAP.replace("map", "other"));
    assert_eq!(told(&compared(&old, &with(&other, &over))), ["Changed a a/map.yaml", "Added over over"]);
    assert_eq!(told(&compared(&old, &with(MAP, &over))), ["Added over over"]);
    // What was named before was no more than a part.
    assert_eq!(told(&compared(&with(MAP, &over), &with(&other, &over))), ["Changed over a/map.yaml"]);
}

#[test]
fn what_a_build_may_change_is_open_whatever_the_change_touches() {
    let parent = |patch: &str| {
        format!("resources: [ks.yaml]\npatches: [{{target: {{kind: Kustomization}}, patch: '{patch}'}}]\n")
    };
    let with = |patch: &str, web: &str, other: &str| {
        world(&[
            ("apps/kustomization.yaml", &*parent(patch)),
            ("apps/ks.yaml", FLUX.rsplit_once("---\n").map_or(FLUX, |(first, _)| first)),
            ("web/kustomization.yaml", "resources: [map.yaml]\n"),
            ("web/map.yaml", web),
            ("mixin/kustomization.yaml", "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\n"),
            ("other/kustomization.yaml", "resources: [map.yaml]\n"),
            ("other/map.yaml", other),
        ])
    };
    let other = MAP.replace("map", "other");
    let patch = "{kind: Kustomization, spec: {namePrefix: x}}";
    for (web, other) in [(MAP, &*other), (&*other, MAP)] {
        let found = compared(&with(patch, MAP, MAP), &with(patch, web, other));
        let open: Vec<&str> = found.unbuilt.iter().map(|one| one.object.name.as_str()).collect();
        assert_eq!(open, ["web", "plain"]);
    }
}

/// Returns the targets that are affected, each with its status.
fn statuses(old: &World, new: &World) -> Vec<String> {
    let targets = compared(old, new).targets.into_iter();
    let mut all: Vec<_> = targets.map(|one| format!("{:?} {}", one.status, one.target.object.name)).collect();
    all.sort();
    all
}

#[test]
fn what_a_parent_no_longer_names_is_gone() {
    let child = |name: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}}}\nspec: {{path: ./run/{name}, sourceRef: {{kind: GitRepository, name: fleet}}}}\n"
        )
    };
    let parent = child("apps").replace("./run/apps", "./apps");
    let (web, source) = (child("web"), FLUX.split("---").next().unwrap());
    let side = |kustomization: &str, more: &[(&str, &str)]| {
        let files = [
            ("flux/source.yaml", source),
            ("flux/apps.yaml", &*parent),
            ("apps/kustomization.yaml", kustomization),
            ("apps/map.yaml", MAP),
            ("run/web/kustomization.yaml", "resources: [map.yaml]\n"),
            ("run/web/map.yaml", MAP),
        ];
        world(&[&files[..], more].concat())
    };
    let [with, without] = ["resources: [map.yaml, web/ks.yaml]\n", "resources: [map.yaml]\n"];
    let there = [("apps/web/ks.yaml", &*web)];
    let named = side(with, &there);
    assert_eq!(statuses(&named, &side(without, &there)), ["Changed apps", "Removed web"]);
    assert_eq!(statuses(&side(without, &there), &named), ["Added web", "Changed apps"]);
    // Archived, and deleted.
    assert_eq!(statuses(&named, &side(without, &[("old/web/ks.yaml", &*web)])), ["Changed apps", "Removed web"]);
    assert_eq!(statuses(&named, &side(without, &[])), ["Changed apps", "Removed web"]);
    // Another one deploys it now.
    let infra = child("infra").replace("./run/infra", "./infra");
    let other =
        [there[0], ("flux/infra.yaml", &*infra), ("infra/kustomization.yaml", "resources: [../apps/web/ks.yaml]\n")];
    assert_eq!(statuses(&named, &side(without, &other)), ["Added infra", "Changed apps"]);
    // It is not known what the parent names now, or named before.
    for unread in ["resources: !!seq [map.yaml]\n", "resources: [map.yaml, 'https://h/o/r?ref=v1']\nnamePrefix: [\n"] {
        for (old, new) in [(&named, &side(unread, &there)), (&side(unread, &there), &named)] {
            let statuses = statuses(old, new);
            assert!(!statuses.iter().any(|one| one.ends_with("ed web") && !one.starts_with("Changed")), "{statuses:?}");
        }
    }
    // Whatever the object is made from now, no file shows it.
    let charts = "resources: [map.yaml]\nhelmCharts: [{name: web, repo: https://h/charts, version: 1.0.0}]\n";
    let remote = "resources: [map.yaml, 'https://h/o/r//web?ref=v1']\n";
    let chart = "kind: Deployment\n---\nkind: Kustomization\nspec: {{ .Values.spec }}\n";
    let made = [("charts/web/Chart.yaml", "name: web\nversion: 1.0.0\n"), ("charts/web/templates/web.yaml", chart)];
    let other = [made[0], ("charts/web/templates/web.yaml", "kind: Deployment\n")];
    let away = child("apps").replace("./run/apps", "./apps").replace("name: fleet", "name: other");
    let mut moved = side(without, &[]);
    moved.insert("flux/apps.yaml".to_owned(), (away, Some(false)));
    for (new, by) in [
        (side(charts, &[]), "Flux Kustomization apps (flux/apps.yaml:1)"),
        (side(charts, &there), "Flux Kustomization apps (flux/apps.yaml:1)"),
        (side(remote, &[]), "Flux Kustomization apps (flux/apps.yaml:1)"),
        (moved, "Flux Kustomization apps (flux/apps.yaml:1)"),
        (side(without, &made), "charts/web/Chart.yaml"),
    ] {
        let found = compared(&named, &new);
        let open: Vec<_> =
            found.unbuilt.iter().map(|one| (&*one.object.name, &*one.changed_by.as_ref().unwrap().name)).collect();
        assert_eq!(open, [("web", by)]);
        assert!(!statuses(&named, &new).contains(&"Removed web".to_owned()));
    }
    assert_eq!(statuses(&named, &side(without, &other)), ["Changed apps", "Removed web"]);
    let with_charts = |resources: &str| charts.replace("[map.yaml]", resources);
    let before = side(&with_charts("[map.yaml, web/ks.yaml]"), &there);
    assert_eq!(statuses(&before, &side(charts, &[])), ["Changed apps", "Removed web"]);
    // The parent goes, and what it deployed.
    let mut gone = side(with, &there);
    gone.remove("flux/apps.yaml");
    assert_eq!(statuses(&named, &gone), ["Removed apps", "Removed web"]);
    // One that is new may take over what people applied by hand.
    assert_eq!(statuses(&gone, &named), ["Added apps"]);
}

#[test]
fn a_chart_that_nothing_here_deploys_is_not_known() {
    let side = |value: &str, more: &[(&str, &str)]| {
        let files = [
            ("charts/web/Chart.yaml", "name: web\nversion: 1.0.0\n"),
            ("charts/web/charts/db/Chart.yaml", "name: db\nversion: 1.0.0\n"),
            ("charts/web/charts/db/templates/map.yaml", value),
            (
                "release.yaml",
                "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web}\nspec: {chart: {spec: {chart: ./charts/web}}}\n",
            ),
            ("a/kustomization.yaml", "resources: [map.yaml]\n"),
            ("a/map.yaml", MAP),
        ];
        world(&[&files[..], more].concat())
    };
    let unread =
        |old: &World, new: &World| compared(old, new).unread.into_iter().map(|one| one.file).collect::<Vec<_>>();
    assert_eq!(unread(&side("a: 1", &[]), &side("a: 2", &[])), ["charts/web/Chart.yaml"]);
    assert_eq!(unread(&side("a: 1", &[]), &side("a: 1", &[("a/x.yaml", "")])), [""; 0]);
    // Also if only one side has the directory above.
    let without = world(&[("a/kustomization.yaml", "resources: [map.yaml]\n"), ("a/map.yaml", MAP)]);
    assert_eq!(unread(&without, &side("a: 1", &[])), ["charts/web/Chart.yaml"]);
    assert_eq!(unread(&side("a: 1", &[]), &without), ["charts/web/Chart.yaml"]);
    let app = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec: {source: {repoURL: 'https://github.com/acme/fleet', path: charts/web}}\n";
    assert_eq!(unread(&side("a: 1", &[("app.yaml", app)]), &side("a: 2", &[("app.yaml", app)])), [""; 0]);
    let inflated = ("a/kustomization.yaml", "helmGlobals: {chartHome: ../charts}\nhelmCharts: [{name: web}]\n");
    assert_eq!(unread(&side("a: 1", &[inflated]), &side("a: 2", &[inflated])), [""; 0]);
}
