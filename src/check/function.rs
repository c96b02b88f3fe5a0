//! `function`: a function or plugin whose code is not in the tree, or can change.
//!
//! A build runs the programs and images that plugin configurations name. Errors are those that reach outside of the
//! tree: an image that is not pinned by its digest, the network, a program on the `PATH`, a plugin in the plugin home,
//! and a configuration that is changed before it is used, so that its program is unknown. Warnings, which are not
//! reported below `localized-files`, are a program of the tree, and a program that is named by a URL: kustomize does
//! not run it, and only a localized copy has it. A missing program is a finding of `missing-path`.

use super::Context;
use crate::graph::{Noted, Resolution};
use crate::kustomization::{NoteKind, Runs, is_pinned};
use crate::message::failure::Failure;
use crate::message::finding::{Finding, Rule, Subject};
use crate::message::redact;

/// Finds the functions and plugins whose code is not in the tree, or can change.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    context.graph.notes.iter().filter_map(|noted| code(context, noted)).collect()
}

/// The help for a function in localized files, which are not edited here.
const UPSTREAM: &str = "use a version of its upstream whose functions are pinned by digest and need no network";

/// The help for a program of the tree.
const OBSERVE: &str = "to see what it asks for: git kustomize-localize check --build --build-arg=--enable-alpha-plugins \
                       --build-arg=--enable-exec";

/// Whether the program that a function names is a file of the tree.
fn is_in_tree(context: &Context<'_>, noted: &Noted, program: &str) -> bool {
    let edges = &context.graph.roots[noted.root].edges;
    let mut named = edges.iter().filter(|edge| edge.from == noted.file && edge.reference.text == program);
    named.any(|edge| matches!(edge.resolution, Resolution::File(_)))
}

/// The finding for code that a note of the walk names. `None` for an image that is pinned by its digest and needs no
/// network, and for a program that is missing: the walk reports it.
fn code(context: &Context<'_>, noted: &Noted) -> Option<Finding> {
    let kind = &noted.note.kind;
    let NoteKind::Code { kind: name, runs } = kind else { return None };
    let (message, is_warning) = match (kind.untracked_code(), runs) {
        // The code reaches outside of the tree.
        (Some(message), _) => (message, false),
        (None, Runs::Program(path)) if path.contains("://") => {
            let shown = redact::url(path);
            let why = "which kustomize does not download: only a localized copy contains it";
            (format!("the function `{name}` runs `{shown}`, {why}"), true)
        }
        (None, Runs::Program(path)) if is_in_tree(context, noted, path) => {
            (format!("the function `{name}` runs `{path}`, a program of this repository"), true)
        }
        _ => return None,
    };
    let failure = Failure::new(message);
    // Exceptions match the subject, so one covers each use of the same program.
    let named = match runs {
        Runs::Program(named) | Runs::Image { image: named, .. } => named,
        Runs::Unknown | Runs::Plugin(_) => name,
    };
    // The fix depends on who owns the file and on what runs.
    let failure = match runs {
        // Localized files are not edited here.
        _ if context.is_owned(context.path(noted.file)) => failure.hint(UPSTREAM),
        Runs::Program(path) if is_warning && !path.contains("://") => failure.hint(OBSERVE),
        Runs::Program(_) => failure.hint("add the program to this repository, and use its path"),
        Runs::Image { image, network } => {
            let name = image.split('@').next().unwrap_or(image);
            let pin = (!is_pinned(image)).then(|| format!("pin it by its digest: `{name}@sha256:DIGEST`"));
            failure.hints(pin).hints(network.then_some("commit what it fetches, and remove `network`"))
        }
        Runs::Unknown => failure.hint("write `exec: {path: …}` or `container: {image: …}`"),
        Runs::Plugin(_) => failure.hint("use a built-in plugin, or a function whose program is in this repository"),
    };
    let reference = redact::url(named);
    let finding = Finding {
        subject: kind.subject().unwrap_or_else(|| Subject::Program { program: reference.clone() }),
        reference,
        // The annotation that is not understood may name a program of the tree.
        unread: *runs == Runs::Unknown,
        ..context.at_note(Rule::Function, noted, failure).about(name)
    };
    Some(if is_warning { finding.warning() } else { finding })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;
    use crate::message::finding::Severity;

    fn function(spec: &str) -> Scene {
        Scene::default()
            .file("a/kustomization.yaml", "generators: [fn.yaml]\n")
            .file(
                "a/fn.yaml",
                &format!(
                    "apiVersion: example.com/v1\nkind: Gen\nmetadata:\n  name: gen\n  annotations:\n    config.kubernetes.io/function: |\n      {}\n",
                    spec.replace('\n', "\n      ")
                ),
            )
            .file("a/run.sh", "")
            .file("a/data/x", "")
            .file("b/run.sh", "")
    }

    fn find(scene: Scene) -> Vec<(Severity, String)> {
        let findings = scene.find(Rule::Function);
        assert!(findings.iter().all(|finding| !finding.help.is_empty() && finding.span.is_some()));
        findings.into_iter().map(|finding| (finding.severity, finding.message)).collect()
    }

    const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn programs() {
        use Severity::{Error, Warning};
        for (path, severity, message) in [
            (
                "https://example.com/run.sh",
                Warning,
                "the function `Gen` runs `https://example.com/run.sh`, which kustomize does not download: only a localized copy contains it",
            ),
            ("sed", Error, "the function `Gen` runs whatever `sed` is on the PATH of the build machine"),
        ] {
            let found = find(function(&format!("exec: {{path: '{path}'}}")));
            assert_eq!(found, [(severity, message.to_owned())]);
        }
        for path in ["./run.sh", "../b/run.sh", ".././b/run.sh"] {
            let found = others(function(&format!("exec: {{path: '{path}'}}")));
            let message = format!("the function `Gen` runs `{path}`, a program of this repository");
            assert_eq!(found, [(Rule::Function, message)], "{path}");
        }
    }

    /// The findings of all rules about a function with this spec.
    fn others(scene: Scene) -> Vec<(Rule, String)> {
        let findings = scene.check().findings;
        findings.into_iter().map(|finding| (finding.rule, finding.message)).collect()
    }

    #[test]
    fn paths_of_a_function_are_checked_like_any_other() {
        let exec = |path: &str| function(&format!("exec: {{path: '{path}'}}"));
        for (path, rule, message) in [
            (
                "/usr/bin/run",
                Rule::OutOfScope,
                "`/usr/bin/run` is an absolute path, which does not exist in other checkouts",
            ),
            ("../../run.sh", Rule::OutOfScope, "`../../run.sh` leads out of the repository"),
            (
                "data/../run.sh",
                Rule::InvalidKustomization,
                "`data/../run.sh` has `..` after a directory name, which may be a link",
            ),
            ("./gone.sh", Rule::MissingPath, "there is no `a/gone.sh`"),
            ("./data", Rule::InvalidKustomization, "`./data` is a directory, not a file"),
        ] {
            assert_eq!(others(exec(path)), [(rule, message.to_owned())]);
        }
        let scoped = "`../b/run.sh` names `b/run.sh`, outside of the scope `a` that .kustomize-localize sets";
        let found = others(exec("../b/run.sh").config("scopes: [a]\n"));
        assert_eq!(found.last(), Some(&(Rule::OutOfScope, scoped.to_owned())));
        for (target, config, count) in
            [("../../run.sh", "", 1), ("../b/run.sh", "scopes: [a]\n", 1), ("../b/run.sh", "", 0)]
        {
            let mut linked = exec("./link.sh");
            linked.tree.link("a/link.sh", target);
            let linked = match config {
                "" => linked,
                config => linked.config(config),
            };
            let others = others(linked).into_iter().filter(|(rule, _)| *rule != Rule::Function);
            assert_eq!(others.count(), count, "{target} {config}");
        }
        let url = others(exec("https://example.com/v1.2.3/run.sh"));
        assert_eq!(url.iter().map(|(rule, _)| *rule).collect::<Vec<_>>(), [Rule::Function, Rule::RemoteReference]);
    }

    #[test]
    fn configurations_that_are_changed_before_they_are_used() {
        let scene = |kind: &str, more: &str| {
            let list = if kind.ends_with("Generator") { "generators" } else { "transformers" };
            Scene::of(&format!("{list}: [gens]\n"))
                .file("gens/kustomization.yaml", &format!("resources: [g.yaml]\n{more}"))
                .file("gens/g.yaml", &format!("apiVersion: builtin\nkind: {kind}\nmetadata: {{name: a}}\n"))
        };
        let patch = "patches: [{patch: '[]', target: {kind: A}}]\n";
        let found = scene("ConfigMapGenerator", patch).find(Rule::Function);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].severity, Severity::Error);
        assert_eq!((&*found[0].path, &*found[0].field), ("gens/kustomization.yaml", "patches"));
        for (kind, more, count) in [
            // A patch makes of what is built in what is not.
            ("PrefixTransformer", patch, 1),
            ("PrefixTransformer", "crds: [g.yaml]\n", 1),
            ("ConfigMapGenerator", "CommonAnnotations: {a: b}\n", 1),
            ("ConfigMapGenerator", "Kind: Kustomization\n", 0),
            ("PrefixTransformer", "Generators: [g.yaml]\n", 1),
            ("ConfigMapGenerator", "namePrefix: a-\nnameSuffix: -b\n", 0),
            ("ConfigMapGenerator", "replacements: [{path: g.yaml}]\n", 1),
        ] {
            let found = scene(kind, more).find(Rule::Function);
            assert_eq!(found.len(), count, "{kind} {more} {found:?}");
        }
    }

    /// Each spelling means what kustomize takes it for.
    #[test]
    fn specifications_are_read_as_kustomize_reads_them() {
        use Rule::{Function, InvalidKustomization};
        let pinned = format!("image: x@sha256:{DIGEST}");
        for (spec, rules) in [
            ("container: {PINNED}", &[][..]),
            ("CONTAINER: {PINNED, Network: no}", &[]),
            ("container: {PINNED, network: yes}", &[Function]),
            ("container: {PINNED, networK: ON}", &[Function]),
            ("Container: {Image: x}", &[Function]),
            ("container: {PINNED, network: 'true'}", &[Function]),
            ("container: {PINNED}\nContainer: {network: true}", &[InvalidKustomization]),
            ("container: {PINNED, Image: x}", &[InvalidKustomization]),
            // The image is what runs.
            ("exec: {path: ./run.sh}\ncontainer: {image: x}", &[Function]),
            ("exec: {path: sed}\ncontainer: {PINNED}", &[]),
            ("Exec: {PATH: sed}", &[Function]),
            ("container: {image: '-x'}", &[Function, InvalidKustomization]),
            ("container: {PINNED, Mounts: [{src: data}]}", &[InvalidKustomization]),
        ] {
            let mut found: Vec<Rule> =
                others(function(&spec.replace("PINNED", &pinned))).into_iter().map(|(rule, _)| rule).collect();
            found.sort();
            let mut expected = rules.to_vec();
            expected.sort();
            assert_eq!(found, expected, "{spec}");
        }
    }

    /// The first annotation that is not empty counts, the specification among the metadata after both.
    #[test]
    fn where_a_specification_stands() {
        for (metadata, count) in [
            ("annotations: {config.kubernetes.io/function: '', config.k8s.io/function: 'container: {image: x}'}", 1),
            ("annotations: {config.kubernetes.io/function: , config.k8s.io/function: 'container: {image: x}'}", 1),
            ("annotations: {config.kubernetes.io/function: {container: {image: x}}}", 1),
            (
                "annotations: {config.kubernetes.io/function: 'exec: {path: ./run}', config.k8s.io/function: 'container: {image: x}'}",
                0,
            ),
            ("annotations: {config.kubernetes.io/function: ''}, configFn: {Container: {image: x}}", 1),
            ("annotations: {config.kubernetes.io/function: '', config.kubernetes.io/container: x}", 1),
        ] {
            let scene = Scene::of("transformers: [fn.yaml]\n")
                .file("run", "")
                .file("fn.yaml", &format!("apiVersion: a/v1\nkind: A\nmetadata: {{name: a, {metadata}}}\n"));
            let errors = find(scene).into_iter().filter(|(severity, _)| *severity == Severity::Error);
            assert_eq!(errors.count(), count, "{metadata}");
        }
    }

    #[test]
    fn containers() {
        let found = find(function("container: {image: 'gcr.io/x/gen:v1', network: true}"));
        assert_eq!(
            found,
            [(
                Severity::Error,
                "the function `Gen` runs the image `gcr.io/x/gen:v1`, not pinned by digest, with network access"
                    .to_owned()
            )]
        );
        let pinned = |more: &str| function(&format!("container:\n  image: gcr.io/x/gen@sha256:{DIGEST}\n{more}"));
        assert_eq!(find(pinned("")), []);
        assert_eq!(find(pinned("  network: false\n")), []);
        for image in ["x@sha256:abc", &format!("@sha256:{DIGEST}"), "x"] {
            let found = find(function(&format!("container: {{image: '{image}'}}")));
            assert_eq!(found.len(), 1, "{image}");
        }
        let old = Scene::of(
            "transformers:\n- |\n  apiVersion: a/v1\n  kind: A\n  metadata: {name: a, annotations: {config.kubernetes.io/container: x}}\n",
        );
        assert_eq!(find(old).len(), 1);
    }

    #[test]
    fn odd_functions_and_plugins() {
        use Severity::Error;
        assert_eq!(find(function("{}"))[0].0, Error);
        assert_eq!(
            others(function("other: {}")),
            [(Rule::Function, "the function `Gen` names neither a program nor an image".to_owned())]
        );
        let plugin = "apiVersion: example.com/v1\nkind: DatePrefixer\nmetadata: {name: a}\n";
        let plugin = Scene::of("validators: [v.yaml]\n").file("v.yaml", plugin);
        let first = "the code of plugin `DatePrefixer` is in the plugin home of the build machine, at `example.com/v1/dateprefixer/DatePrefixer`";
        assert_eq!(find(plugin), [(Error, first.to_owned())]);
    }

    #[test]
    fn built_in_plugins_are_not_functions() {
        let text = "transformers:\n- |\n  apiVersion: builtin\n  kind: PrefixTransformer\n  metadata: {name: a}\n  prefix: a-\n";
        assert_eq!(find(Scene::of(text)), []);
    }

    /// The system follows a link before it climbs; whoever joins paths as text sees another program.
    #[test]
    fn the_path_of_a_program_does_not_climb_after_a_link() {
        let found = |path: &str| {
            let function = format!(
                "apiVersion: a/v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: 'exec: {{path: {path}}}'\n"
            );
            let mut scene = Scene::default()
                .file("app/fn.sh", "#!/bin/sh\n")
                .file("lib/fn.sh", "#!/bin/sh\n")
                .file("lib/deep/cm.yaml", "")
                .file("app/real/cm.yaml", "")
                .file("app/kustomization.yaml", "transformers: [fn.yaml]\n")
                .file("app/fn.yaml", &function);
            scene.tree.link("app/link", "../lib/deep");
            scene.tree.link("app/real/out", "../../lib/deep");
            scene.check().findings
        };
        for path in ["./fn.sh", "../lib/fn.sh", ".././/app/./fn.sh"] {
            assert_eq!(found(path).iter().filter(|one| one.fails()).count(), 0, "{path}");
        }
        for path in [
            "link/../fn.sh",
            "./link/../fn.sh",
            "real/out/../../fn.sh",
            "real/../link/../fn.sh",
            "../app/link/../fn.sh",
            "real/../fn.sh",
            "none/../fn.sh",
            "fn.sh/../fn.sh",
        ] {
            let found = found(path);
            let climbs = |one: &Finding| one.message.contains("has `..` after a directory name") && one.fails();
            assert!(found.iter().any(climbs), "{path}: {found:?}");
        }
    }
}
