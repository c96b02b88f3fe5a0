//! What an `ArtifactGenerator` of Flux makes: each form that source-watcher documents or tests.

use super::flux::{SOURCE, apps};
use super::*;

/// A `GitRepository` of this repository with a name, and more of a `spec`.
fn ours(name: &str, spec: &str) -> String {
    SOURCE.replace("name: flux-system\n  namespace", &format!("name: {name}\n  namespace")) + spec
}

fn generator(spec: &str) -> String {
    let sources = ["repo", "twin", "strict", "sparse", "part", "other", "tag"]
        .map(|name| format!("{{alias: {name}, kind: GitRepository, name: {name}}}"));
    let cluster = ["HelmChart", "ExternalArtifact"].map(|kind| format!("{{alias: {kind}, kind: {kind}, name: x}}"));
    let sources = [&sources[..], &cluster[..]].concat().join(", ");
    format!(
        "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {{name: made, namespace: flux-system}}\nspec: {{sources: [{sources}], {spec}}}\n"
    )
}

const FILES: [&str; 8] = [
    "apps/prod/kustomization.yaml",
    "apps/prod/app.yaml",
    "apps/base/web/kustomization.yaml",
    "apps/notes.md",
    "base/kustomization.yaml",
    "Auth/kustomization.yaml",
    "images/only/logo.png",
    "archive.tgz",
];

/// Returns what a Kustomization of an artifact deploys, with the generators and files that there are.
fn targets_of(generators: &[&str], artifact: &str, path: &str) -> Targets {
    let sources = [
        ours("repo", ""),
        ours("twin", ""),
        ours("strict", "  ignore: /apps\n"),
        ours("sparse", "  sparseCheckout: [base]\n"),
        ours("part", "  include: [{toPath: apps/part}]\n"),
        ours("other", "").replace("fleet", "other"),
        ours("tag", "").replace("branch: main", "tag: v1"),
    ];
    let sources = sources.join("---\n");
    let text = apps(&format!("path: {path}, sourceRef: {{kind: ExternalArtifact, name: {artifact}}}"));
    let generators = generators.join("---\n");
    let mut files = vec![("a.yml", &*text), ("c/s.yaml", &sources), ("g.yaml", &generators)];
    files.extend(FILES.map(|file| (file, "")));
    find_in(&files)
}

fn made(generators: &[&str], artifact: &str, path: &str) -> String {
    let targets = targets_of(generators, artifact, path).targets;
    let [only] = &targets[..] else { panic!("{targets:?}") };
    let line = line(only).replace("@Some(\"main\")true", "");
    let line = line.strip_prefix("Kustomization flux-system/apps (a.yml:1) ").unwrap();
    line.replace("the ArtifactGenerator `flux-system/made` ", "")
}

#[test]
fn what_it_copies_is_here_where_it_lies_as_in_the_repository() {
    const HINT_REWRITE: &str = "templated: rearranges its files";
    const MORE: &str = "templated: copies more than files and directories";
    const SEVERAL: &str = "templated: copies from several sources";
    for (copy, path, expected) in [
        // A file by its name: into a directory, to the top, under a name.
        ("{from: '@repo/apps/prod/app.yaml', to: '@artifact/'}", ".", "apps/prod kustomization"),
        ("{from: '@repo/apps/prod/app.yaml', to: '@artifact/prod/'}", "prod", "apps/prod kustomization"),
        ("{from: '@repo/apps/prod/app.yaml', to: '@artifact/prod/app.yaml'}", "prod", "apps/prod kustomization"),
        ("{from: '@repo/apps/prod/app.yaml', to: '@artifact/prod/.//app.yaml'}", "prod", "apps/prod kustomization"),
        ("{from: '@repo/apps/prod/app.yaml', to: '@artifact/prod'}", "prod", HINT_REWRITE),
        ("{from: '@repo/apps/prod/app.yaml', to: '@artifact/manifests/'}", "manifests", HINT_REWRITE),
        // Under a name, even if an earlier step made a directory: then Flux copies into it.
        (
            "{from: '@repo/apps/prod/', to: '@artifact/'}, {from: '@repo/apps/prod/app.yaml', to: '@artifact/prod'}",
            "prod",
            HINT_REWRITE,
        ),
        (
            "{from: '@repo/apps/base/web', to: '@artifact/base'}, {from: '@repo/apps/notes.md', to: '@artifact/base'}",
            "base",
            HINT_REWRITE,
        ),
        (
            "{from: '@repo/apps/prod/app.yaml', to: '@artifact/prod'}, {from: '@repo/apps/prod/', to: '@artifact/'}",
            "prod",
            HINT_REWRITE,
        ),
        // A directory by its name, with or without slashes; the top has none.
        ("{from: '@repo/apps/prod', to: '@artifact/'}", "prod", "apps/prod kustomization"),
        ("{from: '@repo/apps/prod/', to: '@artifact/'}", "prod", "apps/prod kustomization"),
        ("{from: '@repo/apps/prod/', to: '@artifact/apps'}", "apps/prod", "apps/prod kustomization"),
        ("{from: '@repo/apps/prod', to: '@artifact/apps/'}", "apps/prod", "apps/prod kustomization"),
        ("{from: '@repo/apps/prod/.', to: '@artifact/'}", "prod", "apps/prod kustomization"),
        ("{from: '@repo/apps/prod', to: '@artifact/x/'}", "x/prod", HINT_REWRITE),
        ("{from: '@repo/apps/prod', to: '@artifact/prod'}", "prod", HINT_REWRITE),
        ("{from: '@repo/', to: '@artifact/'}", "apps/prod", "apps/prod kustomization"),
        ("{from: '@repo/.', to: '@artifact/.'}", "apps/prod", "apps/prod kustomization"),
        ("{from: '@repo/', to: '@artifact/x'}", "x/apps/prod", HINT_REWRITE),
        // What is in a directory.
        ("{from: '@repo/**', to: '@artifact/'}", "./apps/prod", "apps/prod kustomization"),
        ("{from: '@repo/./**', to: '@artifact/'}", "apps/prod", "apps/prod kustomization"),
        ("{from: '@repo/apps/**', to: '@artifact/'}", "prod", "apps/prod kustomization"),
        ("{from: '@repo/apps/**', to: '@artifact/./'}", "../../prod", "apps/prod kustomization"),
        ("{from: '@repo/apps/**', to: '@artifact/apps'}", "apps/prod", "apps/prod kustomization"),
        ("{from: '@repo/apps/**', to: '@artifact/apps/'}", "./apps/gone", "apps/gone missing"),
        ("{from: '@repo/apps/**', to: '@artifact/dest/'}", "dest/prod", HINT_REWRITE),
        ("{from: '@repo/apps/**', to: '@artifact/', strategy: Overwrite}", "prod", "apps/prod kustomization"),
        // Several steps, of one source or of several.
        (
            "{from: '@repo/apps/base/**', to: '@artifact/base/'}, {from: '@repo/apps/prod/**', to: '@artifact/prod/'}",
            "./prod",
            "apps/prod kustomization",
        ),
        (
            "{from: '@repo/base/**', to: '@artifact/base/'}, {from: '@repo/apps/prod/**', to: '@artifact/prod/'}",
            "prod",
            HINT_REWRITE,
        ),
        (
            "{from: '@repo/base', to: '@artifact/'}, {from: '@twin/apps', to: '@artifact/'}",
            "apps/prod",
            "apps/prod kustomization",
        ),
        ("{from: '@repo/base', to: '@artifact/'}, {from: '@strict/apps', to: '@artifact/'}", "apps/prod", SEVERAL),
        ("{from: '@strict/base', to: '@artifact/'}, {from: '@repo/apps', to: '@artifact/'}", "apps/prod", SEVERAL),
        ("{from: '@repo/base', to: '@artifact/'}, {from: '@sparse/apps', to: '@artifact/'}", "apps/prod", SEVERAL),
        ("{from: '@repo/**', to: '@artifact/'}, {from: '@other/**', to: '@artifact/'}", "apps/prod", SEVERAL),
        ("{from: '@other/**', to: '@artifact/'}, {from: '@repo/apps/**', to: '@artifact/x/'}", "x/prod", SEVERAL),
        (
            "{from: '@other/**', to: '@artifact/'}",
            ".",
            "external: it is in ssh://git@github.com/acme/other.git at main",
        ),
        ("{from: '@tag/nowhere/**', to: '@artifact/'}", "x", "nowhere/x@Some(\"v1\")false missing"),
        ("{from: '@HelmChart/**', to: '@artifact/'}", "apps", "templated: copies from a generated source"),
        ("{from: '@ExternalArtifact/**', to: '@artifact/'}", "apps", "templated: copies from a generated source"),
        // What is not there is an error, and so is a pattern that matches nothing.
        ("{from: '@repo/gone.yaml', to: '@artifact/'}", ".", "templated: finds nothing to copy at `gone.yaml`"),
        (
            "{from: '@repo/apps', to: '@artifact/'}, {from: '@repo/gone/**', to: '@artifact/gone/'}",
            "apps/prod",
            "templated: finds nothing to copy at `gone`",
        ),
        (
            "{from: '@repo/apps/prod/app.yaml/**', to: '@artifact/'}",
            ".",
            "templated: finds nothing to copy at `apps/prod/app.yaml`",
        ),
        // The rule `engine` names the files that the source leaves out.
        ("{from: '@strict/apps/**', to: '@artifact/'}", "prod", "apps/prod kustomization"),
        ("{from: '@sparse/apps/**', to: '@artifact/'}", "prod", "apps/prod kustomization"),
        ("{from: '@sparse/**', to: '@artifact/'}", "base", "base kustomization"),
        ("{from: '@repo/images/**', to: '@artifact/'}", "only", "images/only directory"),
        (
            "{from: '@part/apps/part/x', to: '@artifact/'}",
            "x",
            "templated: copies from `apps/part`, which comes from another source",
        ),
        ("{from: '@none/apps/**', to: '@artifact/'}", ".", "templated: references an unknown source"),
        ("", ".", "templated: copies nothing"),
        // Before a pattern nothing is cleaned; nothing leads out of a source or an artifact.
        ("{from: '@repo/./apps/**', to: '@artifact/'}", "prod", MORE),
        ("{from: '@repo/apps//**', to: '@artifact/'}", "prod", MORE),
        ("{from: '@repo//**', to: '@artifact/'}", "apps/prod", MORE),
        ("{from: '@repo//apps', to: '@artifact/'}", "apps/prod", MORE),
        ("{from: '@repo/../apps/**', to: '@artifact/'}", "prod", MORE),
        ("{from: '@repo/apps/../../apps', to: '@artifact/'}", "apps/prod", MORE),
        ("{from: '@repo/apps/**', to: '@artifact/../'}", "prod", MORE),
        ("{from: '@repo/apps/**', to: '@artifact//'}", "prod", MORE),
        // Malformed.
        ("{from: '@repo', to: '@artifact/'}", ".", MORE),
        ("{from: 'repo/apps/**', to: '@artifact/'}", "prod", MORE),
        ("{from: '@repo/apps/**', to: '@other/'}", "prod", MORE),
        ("{from: '@repo/apps/**', to: '@artifact'}", "prod", MORE),
        ("{from: '@repo/apps/**', to: 'apps/'}", "apps/prod", MORE),
        ("{from: '@repo/apps/**'}", "prod", MORE),
        ("{to: '@artifact/'}", "prod", MORE),
    ] {
        let generator = generator(&format!("artifacts: [{{name: apps, copy: [{copy}]}}]"));
        assert_eq!(made(&[&generator], "apps", path), expected, "{copy}");
    }
}

/// What stays unknown: nothing of it may be external, or here.
#[test]
fn what_patterns_and_strategies_make_is_unknown() {
    for step in [
        // Patterns keep the whole path, match within one segment, and may match directories.
        "from: '@repo/*.yaml', to: '@artifact/manifests/'",
        "from: '@repo/apps/*', to: '@artifact/'",
        "from: '@repo/apps/*/', to: '@artifact/'",
        "from: '@repo/apps/prod/*.yaml', to: '@artifact/prod/'",
        "from: '@repo/**/*.yaml', to: '@artifact/'",
        "from: '@repo/apps/*/**', to: '@artifact/'",
        "from: '@repo/apps/pro?/**', to: '@artifact/'",
        "from: '@repo/apps/[o-q]rod/**', to: '@artifact/'",
        "from: '@repo/apps/[^a]*', to: '@artifact/'",
        "from: '@repo/{apps,base}/**', to: '@artifact/'",
        "from: '@repo/apps/**/kustomization.yaml', to: '@artifact/'",
        "from: '@repo/apps/***', to: '@artifact/'",
        "from: '@repo/apps**', to: '@artifact/'",
        "from: '@repo/[', to: '@artifact/'",
        "from: '@repo/apps]', to: '@artifact/'",
        "from: '@repo/nothing*.yaml', to: '@artifact/'",
        "from: '@repo/apps/**', to: '@artifact/{app}/'",
        "from: '@repo/apps/${x}/**', to: '@artifact/'",
        // Exclusions.
        "from: '@repo/*.yaml', to: '@artifact/configs/', exclude: [secret.yaml]",
        "from: '@repo/apps/notes.md', to: '@artifact/config.yaml', exclude: [notes.md]",
        "from: '@repo/apps', to: '@artifact/', exclude: ['*.md']",
        "from: '@repo/apps/**', to: '@artifact/', exclude: [prod/**]",
        // What is merged: files, JSON, what a pattern matches, where nothing is, what is no YAML.
        "from: '@repo/apps/prod/app.yaml', to: '@artifact/app.yaml', strategy: Merge",
        "from: '@repo/x.json', to: '@artifact/app.yaml', strategy: Merge",
        "from: '@repo/**', to: '@artifact/', strategy: Merge",
        "from: '@repo/**', to: '@artifact/', strategy: Merge, exclude: [secret.yaml]",
        "from: '@repo/config.env', to: '@artifact/app.yaml', strategy: Merge",
        // Archives: one, several, at any depth, what is none, a directory.
        "from: '@repo/archive.tgz', to: '@artifact/', strategy: Extract",
        "from: '@repo/archive.tar.gz', to: '@artifact/extracted/configs/', strategy: Extract",
        "from: '@repo/*.tg*', to: '@artifact/', strategy: Extract",
        "from: '@repo/**', to: '@artifact/', strategy: Extract",
        "from: '@repo/**/*.tgz', to: '@artifact/', strategy: Extract",
        "from: '@repo/*.tgz', to: '@artifact/', strategy: Extract, exclude: [archive.tgz]",
        "from: '@repo/*', to: '@artifact/', strategy: Extract",
        "from: '@repo/apps', to: '@artifact/', strategy: Extract",
        "from: '@repo/apps/prod/app.yaml', to: '@artifact/', strategy: Extract",
        "from: '@repo/apps/**', to: '@artifact/', strategy: Unheard",
        "from: '@repo/apps/**', to: '@artifact/', strategy: ''",
    ] {
        let alone = generator(&format!("artifacts: [{{name: apps, copy: [{{{step}}}]}}]"));
        let after = "{from: '@repo/', to: '@artifact/'}";
        let after = generator(&format!("artifacts: [{{name: apps, copy: [{after}, {{{step}}}]}}]"));
        for generator in [&alone, &after] {
            let expected = "templated: copies more than files and directories";
            assert_eq!(made(&[generator], "apps", "apps/prod"), expected, "{step}");
        }
    }
}

#[test]
fn what_is_left_out_is_not_in_it() {
    let left_out = |copy: &str, path: &str, file: &str| {
        let generator = generator(&format!("artifacts: [{{name: apps, copy: [{copy}]}}]"));
        let targets = targets_of(&[&generator], "apps", path).targets;
        let here = targets[0].local_dir().unwrap();
        here.left_out(file).map(|rule| format!("{} in {}", rule.pattern, rule.location))
    };
    let prod = "{from: '@repo/apps/prod', to: '@artifact/'}";
    assert_eq!(left_out(prod, "prod", "apps/prod/app.yaml"), None);
    let other = "apps/prod in `copy` of its ArtifactGenerator".to_owned();
    assert_eq!(left_out(prod, "prod", "apps/base/web/kustomization.yaml").as_ref(), Some(&other));
    assert_eq!(left_out(prod, "prod", "apps/prod2.yaml").as_ref(), Some(&other));
}

#[test]
fn what_flux_refuses_is_unknown() {
    let good = "{name: apps, copy: [{from: '@repo/apps/**', to: '@artifact/'}]}";
    let bad = "{name: bad, copy: [{from: '@repo/gone', to: '@artifact/'}]}";
    let odd = "{name: odd, copy: [{from: '@repo/*.yaml', to: '@artifact/'}]}";
    let of = |artifacts: &str| generator(&format!("artifacts: [{artifacts}]"));
    for (generator, expected) in [
        (of(good), "apps/prod kustomization"),
        // Each artifact is judged by itself.
        (of(&format!("{good}, {bad}")), "apps/prod kustomization"),
        (of(&format!("{bad}, {good}")), "apps/prod kustomization"),
        (of(&format!("{good}, {odd}")), "apps/prod kustomization"),
        (of(&format!("{odd}, {good}")), "apps/prod kustomization"),
        (of(&format!("{good}, {good}")), "templated: generates `apps` twice"),
        (of(&format!("{good}, {}", bad.replace("bad", "Bad"))), "templated: generates the invalid name `Bad`"),
        (of(&format!("{good}, {}", bad.replace("bad", "'${x}'"))), "apps/prod kustomization"),
        (of(bad), "external: its source is the ExternalArtifact `apps`, which the cluster generates"),
        (of(&bad.replace("bad", "'${x}'")), "templated: `${x}` is substituted elsewhere"),
        (of(good).replace("alias: twin", "alias: repo"), "templated: has two sources with the same alias"),
        (
            of(good).replace(
                "{name: made,",
                "{name: made, annotations: {source.extensions.fluxcd.io/reconcile: Disabled},",
            ),
            "templated: is disabled by an annotation",
        ),
        (
            of(good)
                .replace("{name: made,", "{name: made, annotations: {source.extensions.fluxcd.io/reconcile: enabled},"),
            "apps/prod kustomization",
        ),
        (
            of(good).replace("namespace: flux-system}", "namespace: other}"),
            "external: its source is the ExternalArtifact `apps`, which the cluster generates",
        ),
    ] {
        assert_eq!(made(&[&generator], "apps", "prod"), expected, "{generator}");
    }
    // Two that make the same: not the first of them.
    let other = of(good).replace("name: made", "name: more").replace("@repo/apps/**", "@repo/**");
    assert_eq!(made(&[&of(good), &other], "apps", "prod"), "templated: there are several ExternalArtifact `apps`");
    let other = of(good).replace("name: made", "name: more").replace("@repo/apps/**", "@other/**");
    assert_eq!(made(&[&of(good), &other], "apps", "prod"), "templated: there are several ExternalArtifact `apps`");
    let other = of(good).replace("name: made", "name: more");
    assert_eq!(made(&[&of(good), &other], "apps", "prod"), "apps/prod kustomization");
}

#[test]
fn each_directory_of_a_path_pattern_makes_its_artifacts() {
    let copy = "copy: [{from: '@repo/apps/{app}/**', to: '@artifact/'}]";
    let apps = format!("{{name: 'x-{{app}}', {copy}}}");
    for (pattern, artifacts, name, path, expected) in [
        ("@repo/apps/{app}", &*apps, "x-prod", "./", "apps/prod kustomization"),
        ("@repo/apps/{app}", &apps, "x-base", "web", "apps/base/web kustomization"),
        // Files do not match; what no directory makes is not made.
        ("@repo/apps/{app}", &apps, "x-notes.md", "./", "templated: matches no directory"),
        ("@repo/apps/{app}", &apps, "x-gone", "./", "templated: matches no directory"),
        ("@repo/gone/{app}", &apps, "x-prod", "./", "templated: matches no directory"),
        ("@repo/apps/{app}/", &apps, "x-prod", "./", "templated: matches no directory"),
        ("@repo/./apps/{app}", &apps, "x-prod", "./", "templated: matches no directory"),
        ("@repo/apps/*/{app}", &apps, "x-prod", "./", "templated: matches no directory"),
        // The whole path; part of a segment.
        (
            "@repo/{app}",
            "{name: '{app}', copy: [{from: '@repo/{app}', to: '@artifact/'}]}",
            "base",
            "base",
            "base kustomization",
        ),
        (
            "@repo/{a}/{b}",
            "{name: '{a}-{b}', copy: [{from: '@repo/{a}/{b}', to: '@artifact/{a}'}]}",
            "apps-prod",
            "apps/prod",
            "apps/prod kustomization",
        ),
        (
            "@repo/apps/p{app}",
            "{name: '{app}', copy: [{from: '@repo/apps/p{app}', to: '@artifact/'}]}",
            "rod",
            "prod",
            "apps/prod kustomization",
        ),
        (
            "@repo/apps/prod",
            "{name: x, copy: [{from: '@repo/apps', to: '@artifact/'}]}",
            "x",
            "apps/prod",
            "apps/prod kustomization",
        ),
        // Names in lower case, paths as they are found.
        (
            "@repo/{app}",
            "{name: '{app}', copy: [{from: '@repo/{app}/**', to: '@artifact/'}]}",
            "auth",
            "./",
            "Auth kustomization",
        ),
        (
            "@repo/{app}",
            "{name: '{app}', copy: [{from: '@repo/{app}/**', to: '@artifact/'}]}",
            "Auth",
            "./",
            "templated: matches no directory",
        ),
        // Errors.
        (
            "@repo/apps/{app}",
            "{name: '{gone}', copy: []}",
            "x-prod",
            "./",
            "templated: generates the invalid name `{gone}`",
        ),
        (
            "@repo/apps/{app}",
            "{name: '{app', copy: []}",
            "x-prod",
            "./",
            "templated: generates the invalid name `{app`",
        ),
        (
            "@repo/apps/{app}",
            "{name: 'x-{app}', copy: [{from: '@repo/{gone}/**', to: '@artifact/'}]}",
            "x-prod",
            "./",
            "templated: copies more than files and directories",
        ),
        (
            "@repo/apps/{app}",
            "{name: 'x-{app}', copy: [{from: '@repo/{app}/**', to: '@artifact/'}]}",
            "x-prod",
            "./",
            "templated: finds nothing to copy at `prod`",
        ),
        (
            "@repo/apps/{app}",
            "{name: x, copy: [{from: '@repo/apps/{app}/**', to: '@artifact/'}]}",
            "x",
            "./",
            "templated: generates `x` twice",
        ),
        (
            "@repo/apps/{app}",
            "{name: '_{app}', copy: []}",
            "x-prod",
            "./",
            "templated: generates the invalid name `_{app}`",
        ),
        ("@repo/apps/{app}/{app}", &apps, "x-prod", "./", "templated: names `app` twice in its `pathPattern`"),
        (
            "@repo/apps/{}",
            &apps,
            "x-prod",
            "./",
            "templated: has `{}` in its `pathPattern`, which is not supported here",
        ),
        (
            "@repo/apps/{1app}",
            &apps,
            "x-prod",
            "./",
            "templated: has `{1app}` in its `pathPattern`, which is not supported here",
        ),
        (
            "@repo/apps/{_app}",
            &apps,
            "x-prod",
            "./",
            "templated: has `{_app}` in its `pathPattern`, which is not supported here",
        ),
        (
            "@repo/apps/{a-b}",
            &apps,
            "x-prod",
            "./",
            "templated: has `{a-b}` in its `pathPattern`, which is not supported here",
        ),
        (
            "@repo/apps/{app",
            &apps,
            "x-prod",
            "./",
            "templated: has `{app` in its `pathPattern`, which is not supported here",
        ),
        (
            "@repo/apps/app}",
            &apps,
            "x-prod",
            "./",
            "templated: has `app}` in its `pathPattern`, which is not supported here",
        ),
        (
            "@repo/apps/{a}-{b}",
            &apps,
            "x-prod",
            "./",
            "templated: has `{a}-{b}` in its `pathPattern`, which is not supported here",
        ),
        ("@none/apps/{app}", &apps, "x-prod", "./", "templated: references an unknown source"),
        ("@other/apps/{app}", &apps, "x-prod", "./", "templated: looks for directories in another source"),
        ("@tag/apps/{app}", &apps, "x-prod", "./", "templated: looks for directories in another revision"),
        ("apps/{app}", &apps, "x-prod", "./", "templated: has a `pathPattern` that cannot be read here"),
        ("@repo", &apps, "x-prod", "./", "templated: has a `pathPattern` that cannot be read here"),
        ("@repo/${x}/{app}", &apps, "x-prod", "./", "templated: has a `pathPattern` that cannot be read here"),
        ("", "{name: x, copy: [{from: '@repo/apps', to: '@artifact/'}]}", "x", "apps/prod", "apps/prod kustomization"),
    ] {
        let generator = generator(&format!("pathPattern: '{pattern}', artifacts: [{artifacts}]"));
        assert_eq!(made(&[&generator], name, path), expected, "{pattern} {artifacts}");
    }
}

#[test]
fn directories_whose_names_cannot_be_labels_or_collide_make_nothing() {
    let generator = generator(
        "pathPattern: '@repo/apps/{app}', artifacts: [{name: 'x-{app}', copy: [{from: '@repo/apps/{app}/**', to: '@artifact/'}]}]",
    );
    let text = apps("path: ., sourceRef: {kind: ExternalArtifact, name: x-web}");
    let source = ours("repo", "");
    let long = format!("apps/{}/x.yaml", "a".repeat(64));
    let most = format!("apps/{}/x.yaml", "a".repeat(63));
    for (other, expected) in [
        ("apps/other/x.yaml", None),
        (&*most, None),
        ("apps/a.b-c/x.yaml", None),
        ("apps/.hidden/x.yaml", Some("matches `.hidden`, which is not a valid label value")),
        ("apps/a b/x.yaml", Some("matches `a b`, which is not a valid label value")),
        ("apps/a-/x.yaml", Some("matches `a-`, which is not a valid label value")),
        (&*long, Some("which is not a valid label value")),
        ("apps/a_b/x.yaml", Some("generates the invalid name `x-{app}`")),
        ("apps/WEB/x.yaml", Some("generates `x-web` twice")),
    ] {
        let files = [
            ("a.yml", &*text),
            ("s.yaml", &source),
            ("g.yaml", &generator),
            ("apps/web/kustomization.yaml", ""),
            (other, ""),
        ];
        let found = lines(&files);
        let [only] = &found[..] else { panic!("{found:?}") };
        let end = expected.unwrap_or("apps/web@Some(\"main\")true kustomization");
        assert!(only.ends_with(end), "{other}: {only}");
    }
}

#[test]
fn what_path_patterns_make_is_bounded() {
    let spec = "pathPattern: '@repo/apps/{app}', artifacts: [{name: 'x-{app}', copy: [{from: '@repo/apps/{app}/**', to: '@artifact/'}]}]";
    let many: Vec<String> = (0..MOST_WORK / FILE + 1).map(|n| format!("apps/a{n}/kustomization.yaml")).collect();
    let text = apps("path: ., sourceRef: {kind: ExternalArtifact, name: x-a1}");
    let (source, generator) = (ours("repo", ""), generator(spec));
    let mut files = vec![("a.yml", &*text), ("s.yaml", &source), ("g.yaml", &generator)];
    files.extend(many.iter().map(|file| (&**file, "")));
    assert!(lines(&files)[0].ends_with("templated: the ArtifactGenerator `flux-system/made` is one of too many"));
    files.truncate(1000);
    assert!(lines(&files)[0].ends_with("apps/a1@Some(\"main\")true kustomization"));
}
