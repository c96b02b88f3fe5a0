//! What is given to helm.

use super::*;
use crate::targets::chart::{Values, read_values};

/// Returns what is given to helm for the first target, in a line, or why that is not known.
fn given(files: &[(&str, &str)]) -> String {
    let found = find_in(files);
    let release = found.targets[0].build.release.as_ref().unwrap();
    let Ok(release) = release else { return release.clone().unwrap_err() };
    let values = release.values.iter().map(|values| match values {
        Values::File(place) => place.clone(),
        Values::Text(text) => text.trim_end().to_owned(),
    });
    assert_eq!(release.arguments[0], "--skip-tests");
    release.arguments.iter().skip(1).cloned().chain(values).collect::<Vec<_>>().join(" ")
}

const CHART: (&str, &str) = ("charts/web/Chart.yaml", "name: web\nversion: 1.0.0\n");

#[test]
fn argo_cd_gives_helm_what_the_object_says() {
    let usual = "--name-template=web --namespace=prod --include-crds";
    let source = |more: &str| format!("source: {{repoURL: {HERE}, path: charts/web{more}}}");
    for (helm, expected) in [
        ("", usual.to_owned()),
        ("releaseName: rel, namespace: x", "--name-template=rel --namespace=x --include-crds".to_owned()),
        (
            "kubeVersion: 1.30.0, apiVersions: [a/v1, b/v2], skipCrds: true, skipSchemaValidation: true",
            "--name-template=web --namespace=prod --kube-version=1.30.0 --api-versions=a/v1 --api-versions=b/v2 --skip-schema-validation"
                .to_owned(),
        ),
        ("valueFiles: [own.yaml, ../../v/a.yaml, /v/b.yaml]", format!("{usual} charts/web/own.yaml v/a.yaml v/b.yaml")),
        ("valueFiles: [own.yaml, /v/a.yaml], ignoreMissingValueFiles: true", format!("{usual} v/a.yaml")),
        // The last ones win.
        ("values: 'a: 2', valueFiles: [own.yaml]", format!("{usual} charts/web/own.yaml a: 2")),
        ("values: 'a: 2', valuesObject: {a: {b: [1, x]}}", format!("{usual} {{\"a\":{{\"b\":[1,\"x\"]}}}}")),
        ("parameters: [], values: 'password: s3cr3t'", format!("{usual} password: s3cr3t")),
        ("releaseName: --post-renderer=x", "`--post-renderer=x` is not a valid name".to_owned()),
        ("releaseName: '{{env \"HOME\"}}'", "`{{env \"HOME\"}}` is not a valid name".to_owned()),
        ("namespace: -x", "`-x` is not a valid name".to_owned()),
        ("valueFiles: [../../../out.yaml]", "`../../../out.yaml` leads out of the repository".to_owned()),
        ("valueFiles: ['https://u:s3cr3t@h.example/v.yaml']", "its values come from https://h.example/v.yaml".to_owned()),
        ("valueFiles: ['secrets://v.yaml']", "its values come from secrets://v.yaml".to_owned()),
        ("valueFiles: ['*.yaml']", "`charts/web/*.yaml` is not the name of one file".to_owned()),
        (
            "valueFiles: [v-$ARGOCD_APP_NAME.yaml, '${ARGOCD_APP_NAMESPACE}/v.yaml', $none/v/a.yaml]",
            format!("{usual} charts/web/v-web.yaml charts/web/prod/v.yaml v/a.yaml"),
        ),
        (
            "valueFiles: [v-$ARGOCD_APP_REVISION.yaml]",
            "`charts/web/v-$ARGOCD_APP_REVISION.yaml` is not the name of one file".to_owned(),
        ),
        // The last one of a name wins; a comma begins no other value, but in a list.
        (
            "parameters: [{name: b, value: '1,2\\,3'}, {name: a, value: x}, {name: a, value: $ARGOCD_APP_NAME}, {name: l, value: '{1,2}'}]",
            format!("{usual} --set=a=web --set=b=1\\,2\\,3 --set=l={{1,2}}"),
        ),
        // Argo CD's image updater writes the key in small letters.
        (
            "parameters: [{name: s, value: '1', forcestring: true}, {name: t, value: '2', forceString: true}, {name: u, value: '3'}]",
            format!("{usual} --set=u=3 --set-string=s=1 --set-string=t=2"),
        ),
        (
            "parameters: [{name: a, value: $ARGOCD_APP_REVISION}]",
            "`ARGOCD_APP_REVISION` is only known to Argo CD".to_owned(),
        ),
        (
            "fileParameters: [{name: a, path: x}]",
            "`helm.fileParameters` may change it, and is not read".to_owned(),
        ),
    ] {
        let more = if helm.is_empty() { String::new() } else { format!(", helm: {{{helm}}}") };
        let spec = source(&more);
        let object = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: web}}\nspec: {{destination: {{namespace: prod}}, {spec}}}\n"
        );
        assert_eq!(given(&[("a.yaml", &object), CHART, ("v/a.yaml", "x: y\n")]), expected, "{helm}");
    }
}

#[test]
fn values_may_lie_in_another_source_of_this_revision() {
    let object = |url: &str, revision: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: web}}\nspec:\n  sources:\n  - {{repoURL: {HERE}, path: charts/web, helm: {{valueFiles: [$v/v/a.yaml]}}}}\n  - {{repoURL: '{url}', targetRevision: {revision}, ref: v}}\n"
        )
    };
    let given = |url: &str, revision: &str| given(&[("a.yaml", &object(url, revision)), CHART]);
    assert_eq!(given(HERE, "main"), "--name-template=web --include-crds v/a.yaml");
    let unknown = "`$v/v/a.yaml` is not in this revision of this repository";
    assert_eq!(given(HERE, "v1.0.0"), unknown);
    assert_eq!(given("https://github.com/acme/other", "main"), unknown);
    let unnamed = object(HERE, "main").replace("[$v/", "[$w/");
    assert_eq!(super::chart::given(&[("a.yaml", &unnamed), CHART]), unknown.replace("$v", "$w"));
}

#[test]
fn what_a_set_leaves_open_is_not_known() {
    let object = |value: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: all}}\nspec:\n  generators: [{{list: {{elements: [{{name: web}}]}}}}]\n  template:\n    metadata: {{name: '{{{{name}}}}'}}\n    spec: {{source: {{repoURL: {HERE}, path: charts/web, helm: {{valuesObject: {{a: '{value}'}}}}}}}}\n"
        )
    };
    let given = |value: &str| given(&[("a.yaml", &object(value)), CHART]);
    assert_eq!(given("{{name}}"), r#"--name-template=web --include-crds {"a":"web"}"#);
    assert_eq!(given("{{metadata.labels.x}}"), "its `helm` is filled in elsewhere");
}

#[test]
fn flux_gives_helm_what_the_release_says() {
    let source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: fleet, namespace: x}\nspec: {url: https://github.com/acme/fleet}\n";
    let object = |chart: &str, spec: &str| {
        format!(
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: web, namespace: x}}\nspec: {{chart: {{spec: {{{chart}}}}}, {spec}}}\n"
        )
    };
    let here = "chart: ./charts/web, sourceRef: {kind: GitRepository, name: fleet}";
    for (more, spec, expected) in [
        ("", "", "--name-template=web --namespace=x --include-crds"),
        ("", "releaseName: r", "--name-template=r --namespace=x --include-crds"),
        ("", "targetNamespace: y, install: {crds: Skip}", "--name-template=y-web --namespace=y"),
        ("", "targetNamespace: y, releaseName: r", "--name-template=r --namespace=y --include-crds"),
        // They are found from the top of the source, and what stands in the object wins.
        (
            ", valuesFiles: [./v/a.yaml, charts/web/values.yaml], ignoreMissingValuesFiles: true",
            "values: {password: s3cr3t}, valuesFrom: [], postRenderers: null",
            "--name-template=web --namespace=x --include-crds {\"password\":\"s3cr3t\"}",
        ),
        // Nothing leads out of an artifact.
        (", valuesFiles: [../../a.yaml]", "", "--name-template=web --namespace=x --include-crds a.yaml"),
        ("", "releaseName: -r", "`-r` is not a valid name"),
        ("", "valuesFrom: [{kind: ConfigMap, name: a}]", "`spec.valuesFrom` may change it, and is not read"),
        ("", "postRenderers: [{kustomize: {}}]", "`spec.postRenderers` may change it, and is not read"),
        (", valuesFile: v.yaml", "", "`spec.chart.spec.valuesFile` may change it, and is not read"),
        (
            "",
            "targetNamespace: a-namespace-with-a-name, releaseName: a-release-whose-name-has-more-than-fifty-three-letters",
            "the name of its release has more than 53 letters",
        ),
    ] {
        let release = object(&format!("{here}{more}"), spec);
        assert_eq!(given(&[("r.yaml", &release), ("source.yaml", source), CHART]), expected, "{more} {spec}");
    }
    // What is packed is a chart, too; what is not there is missing.
    let at = |chart: &str| {
        let release = object(&here.replace("./charts/web", chart), "");
        lines(&[
            ("r.yaml", &release),
            ("source.yaml", source),
            CHART,
            ("charts/packed.tgz", ""),
            ("charts/web/kustomization.yaml", ""),
        ])
    };
    for (chart, expected) in [
        ("charts/web", "charts/web chart"),
        ("charts/packed.tgz", "charts/packed.tgz chart"),
        ("charts/gone", "charts/gone missing"),
    ] {
        assert_eq!(at(chart), [format!("HelmRelease x/web (r.yaml:1) {expected}")]);
    }
    // Only the objects of the others are compared; and values may hold more than what is read of YAML.
    let stable = object("chart: web, sourceRef: {kind: HelmRepository, name: stable}", "");
    let merged = object(here, "values: {a: &a {b: c}, d: {<<: *a}}");
    for release in [stable, merged] {
        let files = [("r.yaml", &*release), ("source.yaml", source), CHART];
        assert_eq!((lines(&files), unread(&files)), (vec![], vec![]));
    }
    let elsewhere = source.replace("acme/fleet", "acme/other");
    let release = object(here, "");
    assert_eq!(
        lines(&[("r.yaml", &release), ("source.yaml", &elsewhere)]),
        ["HelmRelease x/web (r.yaml:1) external: it is in https://github.com/acme/other"]
    );
}

/// Returns a release of Flux, with its source.
fn release(more: &str) -> String {
    format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: web, namespace: x}}\nspec: {{chart: {{spec: {{chart: charts/web, sourceRef: {{kind: GitRepository, name: fleet}}{more}}}}}}}\n---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {{name: fleet, namespace: x}}\nspec: {{url: {HERE}}}\n"
    )
}

#[test]
fn a_packed_chart_that_is_a_link_is_nothing_to_flux() {
    let object = release("").replace("charts/web", "charts/web.tgz");
    let mut tree = tree(&[("a.yaml", &object), ("charts/web-1.0.0.tgz", "")]);
    tree.link("charts/web.tgz", "web-1.0.0.tgz");
    let config = Config::default();
    let content = |tree: &OverlayTree| {
        let found = find(tree, &config, &|| Ok(identity(&config))).unwrap().0;
        found.targets[0].local_dir().unwrap().content.clone()
    };
    let why = "`charts/web.tgz` is a link, which Flux leaves out of its artifacts";
    assert_eq!(content(&tree), PathContent::Nothing(why.to_owned()));
    tree.add_file("charts/web.tgz", b"");
    assert_eq!(content(&tree), PathContent::Chart("charts/web.tgz".to_owned()));
}

#[test]
fn what_only_the_cluster_answers_is_refused() {
    let release = release(", valuesFiles: [v.yaml]");
    let application = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: web}}\nspec: {{source: {{repoURL: {HERE}, path: charts/web}}}}\n"
    );
    let outcome = |files: &[(&str, &str)]| {
        let found = find_in(files);
        let release = found.targets[0].build.release.clone().unwrap().unwrap();
        let values = read_values(&tree(files), &found.targets[0], &release, "charts/web");
        values.map(|texts| texts.len()).map_err(|failure| failure.message)
    };
    let asks = |text: &str| {
        let template = ("charts/web/templates/a.yaml", text);
        let by = |file: (&str, &str)| outcome(&[file, ("v.yaml", "a: b\n"), CHART, template]);
        // What Argo CD renders gets no answer there, either.
        assert_eq!(by(("a.yaml", &application)), Ok(0));
        by(("a.yaml", &release))
    };
    let refused = Err("`charts/web/templates/a.yaml` may ask the cluster (`lookup`)".to_owned());
    for text in [
        "a: {{ (lookup \"v1\" \"Secret\" \"a\" \"b\").data }}",
        "{{- $x := lookup\n\"v1\" }}",
        "{{-lookup}}",
        "{{ $x :=lookup 1 }}",
    ] {
        assert_eq!(asks(text), refused, "{text}");
    }
    for text in ["# lookup in the table", "{{ .Values.lookup }}", "{{ lookups }}", "{{ $lookup }}"] {
        assert_eq!(asks(text), Ok(1), "{text}");
    }
    let with = |file: (&str, &str)| {
        let files = [("a.yaml", &*release), ("v.yaml", "a: b\n"), CHART, file];
        outcome(&files)
    };
    assert_eq!(
        with(("charts/web/charts/a.tgz", "")),
        Err("`charts/web/charts/a.tgz` may ask the cluster (`lookup`)".to_owned())
    );
    let with = |text: &str| outcome(&[("a.yaml", &release), ("v.yaml", text), CHART]);
    assert_eq!(with("a: '{{ lookup `v1` }}'"), Err("its values may ask the cluster (`lookup`)".to_owned()));
    assert_eq!(outcome(&[("a.yaml", &release), CHART]), Err("its values file `v.yaml` does not exist".to_owned()));
}

#[test]
fn what_a_cluster_may_get_otherwise_is_said() {
    let application = |helm: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: web}}\nspec: {{source: {{repoURL: {HERE}, path: charts/web, helm: {{{helm}}}}}}}\n"
        )
    };
    let release = release("");
    let asks = |object: (&str, &str), text: &str| {
        let files = [object, CHART, ("charts/web/templates/a.yaml", text)];
        let target = &find_in(&files).targets[0];
        let release = target.build.release.clone().unwrap().unwrap();
        crate::targets::chart::why_cluster_differs(&tree(&files), target, &release, "charts/web").unwrap().is_some()
    };
    let (plain, said) = (application("releaseName: x"), application("kubeVersion: 1.30.0"));
    for (object, text, expected) in [
        (("a.yaml", &*plain), "{{ if .Capabilities.APIVersions.Has \"a/v1\" }}", true),
        (("a.yaml", &*plain), "{{ $.Capabilities.KubeVersion }}", true),
        (("a.yaml", &*said), "{{ .Capabilities.KubeVersion }}", false),
        (("a.yaml", &*plain), ".Capabilities {{ .Values.Capabilities }}", false),
        (("a.yaml", &*plain), "{{ if .Release.IsUpgrade }}", false),
        (("a.yaml", &*release), "{{ if not .Release.IsUpgrade }}", true),
        (("a.yaml", &*release), "{{ .Release.Name }}", false),
    ] {
        assert_eq!(asks(object, text), expected, "{text}");
    }
}

#[test]
fn what_is_packed_in_a_chart_is_looked_into() {
    let packed = |files: &[(&str, &[u8])]| -> std::rc::Rc<[u8]> {
        let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        for (path, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            builder.append_data(&mut header, format!("sub/{path}"), *bytes).unwrap();
        }
        builder.into_inner().unwrap().finish().unwrap().into()
    };
    let names = |bytes: std::rc::Rc<[u8]>| super::super::chart::uses_any_within("charts/a.tgz", bytes, &["lookup"]);
    assert!(!names(packed(&[("templates/a.yaml", b"{{ .Values.a }}"), ("README.md", b"lookup")])));
    let asks = packed(&[("templates/a.yaml", b"{{ lookup \"v1\" }}")]);
    assert!(names(packed(&[("charts/b.tgz", &asks)])));
    assert!(names(asks));
    // What cannot be read.
    assert!(names(packed(&[("charts/b.tgz", b"x")])));
}
