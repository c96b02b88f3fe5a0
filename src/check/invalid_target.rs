//! `invalid-target`: an object of Flux or Argo CD that cannot be read, so that its deployment is unknown.

use std::collections::HashSet;

use super::Context;
use crate::message::failure::{Failure, Location};
use crate::message::finding::{Finding, Rule};
use crate::message::position::Position;
use crate::targets::{Unread, Why};
use crate::tree::path;

/// The way out for a file that nothing deploys.
const EXCLUDE: &str = "or, if nothing deploys it, move it to a directory in `exclude` of .kustomize-localize";

/// Finds objects that cannot be read. An object that may be fine, but that a limit or a missing file keeps from being
/// read, is a failure of the check instead.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut unavailable = Vec::new();
    // The walk has reported the kustomizations that it could not read.
    let reported: HashSet<&str> = context.troubles.iter().map(|trouble| &*trouble.failure.message).collect();
    for unread in context.deployed.unread() {
        match &unread.why {
            // `unknown-target` reports the template until helm renders it.
            Why::Template if context.config.helm && context.deployed.renderer(unread).is_some() => {}
            Why::Invalid | Why::Template => findings.push(unreadable(context, unread)),
            Why::Limit => context.failures.borrow_mut().push(too_much(unread)),
            Why::Unavailable(_) if reported.contains(&*unread.message) => {}
            Why::Unavailable(hints) => unavailable.push((unread, hints)),
        }
    }
    // Often all for one reason, such as a partial clone: one failure names the first file.
    if let Some(((first, hints), rest)) = unavailable.split_first() {
        let more = match rest.len() {
            0 => String::new(),
            1 => ", and 1 more file".to_owned(),
            count => format!(", and {count} more files"),
        };
        let failure = Failure::new(format!("{}{more}", first.message)).hints(hints.iter());
        context.failures.borrow_mut().push(failure);
    }
    findings
}

/// The failure of a file that exceeds a limit, so that it was not read.
fn too_much(unread: &Unread) -> Failure {
    Failure::new(format!("cannot read what is deployed: {}", unread.message))
        .at(Location {
            file: unread.file.clone(),
            position: Position::new(unread.line.max(1), 1),
            ..Location::default()
        })
        .hint("split it, or, if nothing deploys it, move it to a directory in `exclude` of .kustomize-localize")
}

/// The finding for a file or template whose objects cannot be read.
fn unreadable(context: &Context<'_>, unread: &Unread) -> Finding {
    let Unread { file, line, message, why } = unread;
    let failure = if context.deployed.renderer(unread).is_some() {
        Failure::new("a chart that is deployed renders this template: what its objects deploy is unknown")
            .hint("let helm render it: write `helm: true` into .kustomize-localize")
            .hint("or list what they deploy in `targets` there, and the chart in `exclude`")
    } else {
        Failure::new(match why {
            Why::Template => "this template is deployed without being rendered".to_owned(),
            _ => format!("cannot read what is deployed: {message}"),
        })
        .hint("fix it: a file that cannot be read is not checked")
        // An excluded file is read only because a target applies it.
        .hints((!context.config.leaves_out(path::parent(file))).then_some(EXCLUDE))
    };
    let finding = match line {
        0 => Finding::new(Rule::InvalidTarget, file, failure),
        line => context.at_position(Rule::InvalidTarget, file, Position::new(*line, 1), failure),
    };
    Finding { unread: true, ..finding }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, argo, flux, source};
    use super::*;

    /// The places and messages of what is found.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let scene = Scene::default().file("clusters/source.yaml", &source(""));
        let scene = files.iter().fold(scene, |scene, (path, text)| scene.file(path, text));
        let findings = scene.find(Rule::InvalidTarget);
        let shown = findings.iter().map(|one| {
            let line = one.span.map_or(0, |span| span.start.line);
            let message = one.message.split_once(": ").map_or(&*one.message, |(_, why)| why);
            let message = message.split(" at ").next().unwrap();
            format!("{}:{line}: {message}", one.path)
        });
        shown.collect()
    }

    fn is_found(text: &str) -> bool {
        let found = found(&[("x.yaml", text)]);
        assert!(found.len() < 2, "{found:?}");
        found.len() == 1
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let broken = flux("./apps").replace("path: ", "path: [");
        let wrong = flux("[./apps]");
        let found = found(&[("a.yaml", &broken), ("b.yaml", &wrong), ("d.yaml", &argo("path: {a: b}"))]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("a.yaml:6: not YAML: "), "{found:?}");
        assert_eq!(found[1], "b.yaml:5: Kustomization flux-system/apps: `spec.path`: expected a string, found a list");
        assert_eq!(found[2], "d.yaml:5: Application argocd/web: `path`: expected a string, found a mapping");
    }

    #[test]
    fn a_wrong_type_is_named_with_its_field() {
        let git = "source.toolkit.fluxcd.io/v1 GitRepository";
        let release = "helm.toolkit.fluxcd.io/v2 HelmRelease";
        let kustomization = "kustomize.toolkit.fluxcd.io/v1 Kustomization";
        let generator = "source.extensions.fluxcd.io/v1beta1 ArtifactGenerator";
        let (application, set) = ("argoproj.io/v1alpha1 Application", "argoproj.io/v1alpha1 ApplicationSet");
        let chart = "chart: {spec: {chart: x, sourceRef: {kind: GitRepository, name: f}";
        let source = "source: {repoURL: 'https://github.com/acme/fleet', path: x";
        let list = "template: {}, generators: [{list: {elements: []}}]";
        for (kind, spec, expected) in [
            (git, "url: [a]", "`spec.url`: expected a string, found a list"),
            (git, "recurseSubmodules: 1", "`spec.recurseSubmodules`: expected a boolean, found a number"),
            (git, "include: [{repository: x}]", "`spec.include[].repository`: expected a mapping, found a string"),
            (git, "ref: {tag: 1.10}, recurseSubmodules: '${RECURSE}'", ""),
            (kustomization, "patches: {}", "`spec.patches`: expected a list, found a mapping"),
            (kustomization, "namePrefix: 1", "`spec.namePrefix`: expected a string, found a number"),
            (
                kustomization,
                "postBuild: {substitute: {N: 3}}",
                "`spec.postBuild.substitute.N`: expected a string, found a number",
            ),
            (generator, "pathPattern: [x]", "`spec.pathPattern`: expected a string, found a list"),
            (
                generator,
                "artifacts: [{name: a, copy: [{from: a, to: b, exclude: x}]}]",
                "`spec.artifacts[].copy[].exclude`: expected a list, found a string",
            ),
            (
                release,
                &format!("{chart}, valuesFiles: x}}}}"),
                "`spec.chart.spec.valuesFiles`: expected a list, found a string",
            ),
            // A chart of a repository of charts is not looked at.
            (release, &format!("{}, valuesFiles: x}}}}", chart.replace("GitRepository", "HelmRepository")), ""),
            (application, "sources: x", "`spec.sources`: expected a list, found a string"),
            (
                application,
                &format!("{source}, helm: {{valueFiles: x}}}}"),
                "`helm.valueFiles`: expected a list, found a string",
            ),
            (
                application,
                &format!("{source}, directory: {{recurse: 'true'}}}}"),
                "`directory.recurse`: expected a boolean, found a string",
            ),
            (set, &format!("{list}, templatePatch: {{}}"), "`spec.templatePatch`: expected a string, found a mapping"),
            (
                set,
                "template: {}, generators: [{git: {repoURL: 'https://github.com/acme/fleet', directories: x}}]",
                "`directories`: expected a list, found a string",
            ),
        ] {
            let (version, name) = kind.split_once(' ').unwrap();
            let text = format!("apiVersion: {version}\nkind: {name}\nmetadata: {{name: a}}\nspec: {{{spec}}}\n");
            let expected: Vec<String> = match expected {
                "" => Vec::new(),
                expected => vec![format!("x.yaml:4: {name} a: {expected}")],
            };
            assert_eq!(found(&[("x.yaml", &text)]), expected, "{text}");
        }
    }

    #[test]
    fn an_object_is_plain_yaml() {
        for (rest, what) in [
            ("path: !!str apps", "the tag `!!str`"),
            ("!!binary cGF0aA==: apps", "expected a plain or quoted string as a key"),
            ("<<: {path: apps}", "the merge key `<<`"),
            ("? path\n  : apps\n  ? [a]\n  : b", "expected a plain or quoted string as a key"),
            ("path: apps\n  path: other", "the key `path` appears twice"),
        ] {
            let text = flux("apps").replace("path: apps", rest);
            let list = format!("kind: List\nitems:\n- {}", text.replace('\n', "\n  "));
            let in_source = argo("path: apps").replace("path: apps", &rest.replace("\n  ", ", "));
            let mut texts = vec![text];
            if !rest.contains('?') {
                texts.extend([list, in_source]);
            }
            for text in texts {
                let found = found(&[("x.yaml", &text)]);
                assert!(found.len() == 1 && found[0].contains(what), "{text}\n{found:?}");
            }
        }
        let text = flux("apps").replace("spec:", "---x: y\nspec:");
        let after = found(&[("x.yaml", &text)]);
        assert!(after[0].contains("text after `---`"), "{after:?}");
    }

    #[test]
    fn every_object_that_matters_counts_and_no_other() {
        for (version, kind, expected) in [
            ("kustomize.toolkit.fluxcd.io/v1", "Kustomization", true),
            ("source.toolkit.fluxcd.io/v1", "GitRepository", true),
            ("source.toolkit.fluxcd.io/v1beta2", "OCIRepository", true),
            ("fluxcd.controlplane.io/v1", "ResourceSet", true),
            ("fluxcd.controlplane.io/v1", "FluxReport", false),
            ("source.toolkit.fluxcd.io/v1", "HelmRepository", false),
            ("argoproj.io/v1alpha1", "Application", true),
            ("argoproj.io/v1alpha1", "ApplicationSet", true),
            ("argoproj.io/v1alpha1", "AppProject", false),
            ("argoproj.io/v1alpha1", "Workflow", false),
            ("example.com/v1", "Application", false),
        ] {
            for text in [
                format!("apiVersion: {version}\nkind: {kind}\nspec: [\n"),
                format!("kind: '{kind}' # one\nspec: [\napiVersion: \"{version}\"\n"),
                format!("{{\n  \"apiVersion\": \"{version}\",\n  \"kind\": \"{kind}\",\n"),
                format!("kind: List # all\nitems:\n  - apiVersion: {version}\n    kind: {kind}\n    spec: [\n"),
                format!("---\n{{\"apiVersion\": \"{version}\", \"kind\": \"{kind}\", \"spec\": [}}\n"),
                format!("  'apiVersion': {version}\n  \"kind\": {kind} # one\n  spec: [\n"),
            ] {
                assert_eq!(is_found(&text), expected, "{text}");
            }
        }
        assert!(is_found("apiVersion: argoproj.io/v1alpha1\nkind Application\n"));
        let options = "kind: ConfigMap\nmetadata: {name: argocd-cm\n";
        assert!(is_found(options));
        assert!(!is_found(&options.replace("-cm", "-rbac-cm")));
        // A text that cannot be read may be any kind that it mentions.
        let inside =
            "kind: ConfigMap\ndata:\n  a: |\n    apiVersion: argoproj.io/v1alpha1\n    kind: Application\n  b: [\n";
        assert!(is_found(inside));
        assert!(!is_found(&inside.replace("Application", "Workflow")));
    }

    #[test]
    fn a_template_is_no_object_unless_it_is_deployed_as_it_is() {
        let template = |action: &str| flux("./apps").replace("./apps", action);
        // Nothing says that something else makes the object.
        for action in ["{{ .Values.path }}: [", "[\n{% if a %}", "[<% a %>", "[a]\n  interval: '{{ b }}'"] {
            assert!(is_found(&template(action)), "{action}");
        }
        let set = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nspec:\n  template: {{ a }}: [\n";
        assert!(is_found(set));
        let broken = flux("[");
        let chart = ("charts/a/Chart.yaml", "name: a\n");
        for text in [set, &broken] {
            let place = "charts/a/templates/x/y.yaml";
            assert_eq!(found(&[(place, text), chart]).len(), 0);
            assert_eq!(found(&[(place, text)]).len(), 1);
            assert_eq!(found(&[("charts/a/x.yaml", text), chart]).len(), 1);
        }
        // An engine may apply the directory as it is, which is then not a chart.
        for (source, count) in [
            ("path: charts/a/templates", 1),
            ("path: charts/a/templates/x", 0),
            ("path: charts", 0),
            ("path: charts/b, directory: {recurse: true}", 0),
            ("path: ., directory: {recurse: true}", 1),
            ("path: .", 0),
        ] {
            let files = [("charts/a/templates/y.yaml", &*broken), chart, ("charts/b/x.yaml", "kind: X\n")];
            let app = argo(source);
            let files = [&files[..], &[("app.yaml", &*app)]].concat();
            assert_eq!(found(&files).len(), count, "{source}");
        }
        let text = template("{{ path }}");
        let scene = |kustomization| found(&[("a/x.yaml", &text), ("a/kustomization.yaml", kustomization)]);
        assert_eq!(
            scene("resources: [x.yaml]\n"),
            ["a/x.yaml:5: not YAML: expected a plain or quoted string as a key"]
        );
        let text_of = "charts/a/templates/x.yaml";
        let listing = [(text_of, &*text), chart, ("charts/a/templates/kustomization.yaml", "resources: [x.yaml]\n")];
        assert_eq!(found(&listing), [format!("{text_of}:5: this template is deployed without being rendered")]);
        // Its engine renders it.
        let app = argo("path: charts/a");
        let message = "a chart that is deployed renders this template: what its objects deploy is unknown";
        let rendered = Scene::default().file(text_of, &text).file(chart.0, chart.1).file("app.yaml", &app);
        assert_eq!(rendered.one(Rule::InvalidTarget).message, message);
        assert_eq!(scene("configMapGenerator: [{name: a, files: [x.yaml]}]\n").len(), 0);
        let patch = |kustomization| found(&[("a/x.yaml", &broken), ("a/kustomization.yaml", kustomization)]);
        assert_eq!(patch("patches: [{path: x.yaml}]\n").len(), 0);
        assert_eq!(patch("resources: []\n").len(), 1);
    }

    #[test]
    fn what_is_too_much_could_not_be_looked_at() {
        let failures = |text: &str| {
            let checked = Scene::default().file("x.yaml", text).check();
            assert_eq!(checked.findings, []);
            checked.failures.len()
        };
        let object = |kind: &str| format!("---\napiVersion: argoproj.io/v1alpha1\nkind: {kind}\n");
        assert_eq!(failures(&object("Application").repeat(1000)), 0);
        assert_eq!(failures(&object("Application").repeat(1001)), 1);
        assert_eq!(failures(&object("Rollout").repeat(1001)), 0);
        let item = "- {apiVersion: argoproj.io/v1alpha1, kind: Application}\n";
        assert_eq!(failures(&format!("kind: List\nitems:\n{}", item.repeat(1001))), 1);
        let large = "# argoproj.io/v1alpha1\n".repeat(500_000);
        assert_eq!(failures(&large), 0);
        assert_eq!(failures(&format!("{large}{}", object("Application"))), 1);
    }

    #[test]
    fn much_that_is_wrong_is_read_once() {
        // Each of these took minutes when every line was looked at again for every other one.
        let kinds = format!("# argoproj.io/v1\n{}a: [", "kind: Application\n".repeat(100_000));
        assert_eq!(found(&[("x.yaml", &kinds)]).len(), 0);
        let item = "- {apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {sources: {}}}\n";
        let list = format!("---\nkind: List\nitems:\n{}", item.repeat(100));
        assert_eq!(found(&[("x.yaml", &list.repeat(100))]).len(), 1000);
    }

    #[test]
    fn what_is_left_out_or_not_asked_for_is_no_finding() {
        let broken = flux("[");
        let scene = || Scene::default().file("a/x.yaml", &broken).file("b/kustomization.yaml", "resources: []\n");
        assert_eq!(scene().find(Rule::InvalidTarget).len(), 1);
        let config = "exclude: [a]\n";
        assert_eq!(scene().config(config).find(Rule::InvalidTarget).len(), 0);
        for (path, expected) in [("a", 1), ("b", 0)] {
            let scene =
                Scene { paths: vec![path.to_owned()], ..scene().file("a/kustomization.yaml", "resources: []\n") };
            assert_eq!(scene.find(Rule::InvalidTarget).len(), expected, "{path}");
        }
    }

    #[test]
    fn null_is_as_nothing() {
        let text = flux("").replace("path: ", "path: null\n  components: null");
        assert!(!is_found(&text), "{text}");
    }
}
