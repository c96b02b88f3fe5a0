//! `function`: a function or plugin whose code is not in the tree, or can be another tomorrow.
//!
//! A build runs the programs and images that plugin configurations name. What is certain fails: a program out
//! of the repository or named by a URL (nothing downloads it), an image that is not pinned by its digest,
//! the network. What a team may have reason for is a warning: a program on the `PATH`, a plugin in the plugin
//! home, Starlark. Strings that only a function understands are not looked at.

use super::Context;
use crate::failure::argument;
use crate::finding::{Finding, Rule, Subject};
use crate::kustomization::{FunctionRuntime, NoteKind};
use crate::redact;
use crate::tree::{self, Resolved, path};
use crate::walk::Noted;

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for noted in &context.graph.notes {
        if context.is_owned(context.path(noted.file)) {
            continue;
        }
        let one = One { context, noted };
        match &noted.note.kind {
            NoteKind::KrmFunction { runtime, kind, .. } => one.function(runtime, kind, &mut found),
            NoteKind::LegacyPlugin {
                api_version,
                kind,
                args_from_file,
                ..
            } => {
                found.push(one.plugin(api_version, kind));
                found.extend(
                    args_from_file
                        .as_deref()
                        .and_then(|file| one.arguments(file)),
                );
            }
            _ => {}
        }
    }
    found
}

struct One<'a> {
    context: &'a Context<'a>,
    noted: &'a Noted,
}

/// How what a function names may be bounded.
#[derive(Clone, Copy)]
enum Bound {
    /// Programs may lie anywhere for kustomize, for us in the scope.
    Scope,
    /// Mounts and arguments lie below the root.
    Root,
}

impl One<'_> {
    fn function(&self, runtime: &FunctionRuntime, kind: &str, found: &mut Vec<Finding>) {
        match runtime {
            FunctionRuntime::Exec { path } if is_url(path) => {
                let shown = redact::url(path);
                found.push(self.remote(
                    path,
                    format!("the function `{kind}` runs `{shown}`, which nothing downloads"),
                    "put the program into this repository, and name it by its path",
                ));
            }
            FunctionRuntime::Exec { path } if !path.contains('/') => {
                found.push(Context::warning(self.finding(
                    path,
                    format!("the function `{kind}` runs `{path}`, whatever that is on the PATH of who builds"),
                    vec![format!(
                        "put the program into this repository, and name it by its path: `./{path}`"
                    )],
                )));
            }
            FunctionRuntime::Exec { path } => {
                let what = format!("the program `{path}` of the function `{kind}`");
                found.extend(self.local(path, Bound::Scope, &what));
            }
            FunctionRuntime::Container {
                image,
                network,
                mounts,
            } => {
                if !is_pinned(image) {
                    found.push(self.finding(
                        image,
                        format!("the image `{image}` of the function `{kind}` is not pinned by its digest"),
                        vec![format!(
                            "write it with its digest, as its registry tells it: `{}@sha256:DIGEST`",
                            image.split('@').next().unwrap_or(image)
                        )],
                    ));
                }
                if *network {
                    found.push(self.finding(
                        image,
                        format!("the function `{kind}` asks for the network"),
                        vec!["commit what it fetches, and leave `network` out".to_owned()],
                    ));
                }
                for mount in mounts {
                    let what = format!("the mount `{mount}` of the function `{kind}`");
                    found.extend(self.local(mount, Bound::Root, &what));
                }
            }
            FunctionRuntime::Starlark { url, .. } if !url.is_empty() => {
                let shown = redact::url(url);
                found.push(self.remote(
                    url,
                    format!("the function `{kind}` runs the script at {shown}"),
                    "kustomize dropped Starlark in 5.5: write a program in this repository instead",
                ));
            }
            FunctionRuntime::Starlark { path, .. } => found.push(Context::warning(self.finding(
                path,
                format!(
                    "the function `{kind}` is written in Starlark, which kustomize dropped in 5.5"
                ),
                vec!["write a program in this repository instead".to_owned()],
            ))),
            FunctionRuntime::Unknown => found.push(Context::warning(self.finding(
                kind,
                format!("the function `{kind}` says neither a program nor an image"),
                vec!["write `exec: {path: …}` or `container: {image: …}`".to_owned()],
            ))),
        }
    }

    fn plugin(&self, api_version: &str, kind: &str) -> Finding {
        let place = format!("{api_version}/{}/{kind}", kind.to_lowercase());
        Context::warning(self.finding(
            kind,
            format!(
                "the code of the plugin `{kind}` is not in the repository, but in the plugin home of who builds: `{place}`"
            ),
            vec!["use a built-in plugin, or a function whose program is in this repository".to_owned()],
        ))
    }

    fn arguments(&self, file: &str) -> Option<Finding> {
        if is_url(file) {
            return Some(self.remote(
                file,
                format!("`argsFromFile` fetches {}", redact::url(file)),
                "put the file into this repository, and name it by its path",
            ));
        }
        self.local(file, Bound::Root, &format!("`{file}` of `argsFromFile`"))
    }

    /// Looks whether something local is where it should be.
    fn local(&self, text: &str, bound: Bound, what: &str) -> Option<Finding> {
        let context = self.context;
        let directory = &context.graph.roots[self.noted.root].directory;
        let (bound, name) = match bound {
            Bound::Root => (directory.clone(), "its kustomization root"),
            Bound::Scope => match context.config.scope_of(directory) {
                Some(scope) => (scope, "its scope"),
                None => (String::new(), "the repository"),
            },
        };
        let outside = || {
            let message = format!("{what} lies outside {name}");
            self.finding(text, message, vec!["put it inside".to_owned()])
        };
        if path::is_absolute(text) {
            return Some(outside());
        }
        let Some(place) = path::resolve(directory, text).filter(|place| path::is_in(place, &bound))
        else {
            return Some(outside());
        };
        match tree::resolve(context.tree, &place) {
            Ok(Resolved::File { path, .. } | Resolved::Directory { path }) => {
                (!path::is_in(&path, &bound)).then(outside)
            }
            Ok(Resolved::Leaves { .. }) => Some(outside()),
            Ok(Resolved::Missing { path }) => {
                let on_disk = context
                    .absences
                    .is_some_and(|absences| absences.is_on_disk(&path));
                let help = match on_disk {
                    true => format!(
                        "it is there, but not added: git add -f -- {}",
                        argument(&format!(":/{path}"))
                    ),
                    false => format!("put it there: `{path}`"),
                };
                Some(self.finding(text, format!("{what} is not in the tree"), vec![help]))
            }
            _ => None,
        }
    }

    fn remote(&self, url: &str, message: String, help: &str) -> Finding {
        Finding {
            subject: Subject::Http {
                url: redact::url(url),
            },
            ..self.finding(url, message, vec![help.to_owned()])
        }
    }

    fn finding(&self, reference: &str, message: String, help: Vec<String>) -> Finding {
        let finding = self
            .context
            .at_note(Rule::Function, self.noted, message, help);
        Finding {
            reference: redact::url(reference),
            ..finding
        }
    }
}

fn is_url(text: &str) -> bool {
    text.contains("://")
}

fn is_pinned(image: &str) -> bool {
    image.rsplit_once("@sha256:").is_some_and(|(name, digest)| {
        !name.is_empty() && digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, shown};
    use super::*;
    use crate::finding::Severity;

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
        assert!(
            findings
                .iter()
                .all(|finding| !finding.help.is_empty() && finding.span.is_some())
        );
        findings
            .into_iter()
            .map(|finding| (finding.severity, finding.message))
            .collect()
    }

    const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn programs() {
        use Severity::{Error, Warning};
        for (path, severity, message) in [
            (
                "https://example.com/run.sh",
                Error,
                "the function `Gen` runs `https://example.com/run.sh`, which nothing downloads",
            ),
            (
                "/usr/bin/run",
                Error,
                "the program `/usr/bin/run` of the function `Gen` lies outside the repository",
            ),
            (
                "../../run.sh",
                Error,
                "the program `../../run.sh` of the function `Gen` lies outside the repository",
            ),
            (
                "./gone.sh",
                Error,
                "the program `./gone.sh` of the function `Gen` is not in the tree",
            ),
            (
                "sed",
                Warning,
                "the function `Gen` runs `sed`, whatever that is on the PATH of who builds",
            ),
        ] {
            let found = find(function(&format!("exec: {{path: '{path}'}}")));
            assert_eq!(found, [(severity, message.to_owned())]);
        }
        for path in ["./run.sh", "../b/run.sh", "data/../run.sh"] {
            let scene = || function(&format!("exec: {{path: '{path}'}}"));
            assert_eq!(find(scene()), [], "{path}");
        }
        let scoped = function("exec: {path: ../b/run.sh}").config("scopes: [a]\n");
        assert_eq!(
            find(scoped)[0].1,
            "the program `../b/run.sh` of the function `Gen` lies outside its scope"
        );
        let mut linked = function("exec: {path: ./link.sh}");
        linked.tree.link("a/link.sh", "../../run.sh");
        assert_eq!(find(linked).len(), 1);
        let mut linked = function("exec: {path: ./link.sh}").config("scopes: [a]\n");
        linked.tree.link("a/link.sh", "../b/run.sh");
        assert_eq!(find(linked).len(), 1);
        let mut linked = function("exec: {path: ./link.sh}");
        linked.tree.link("a/link.sh", "../b/run.sh");
        assert_eq!(find(linked), []);
    }

    #[test]
    fn containers() {
        let found = find(function(
            "container: {image: 'gcr.io/x/gen:v1', network: true}",
        ));
        assert_eq!(
            found,
            [
                (
                    Severity::Error,
                    "the image `gcr.io/x/gen:v1` of the function `Gen` is not pinned by its digest"
                        .to_owned()
                ),
                (
                    Severity::Error,
                    "the function `Gen` asks for the network".to_owned()
                ),
            ]
        );
        let pinned = |more: &str| {
            function(&format!(
                "container:\n  image: gcr.io/x/gen@sha256:{DIGEST}\n{more}"
            ))
        };
        assert_eq!(find(pinned("")), []);
        assert_eq!(find(pinned("  network: false\n")), []);
        for image in ["x@sha256:abc", &format!("@sha256:{DIGEST}"), "x"] {
            let found = find(function(&format!("container: {{image: '{image}'}}")));
            assert_eq!(found.len(), 1, "{image}");
        }
        let mounts = |src: &str| {
            pinned(&format!(
                "  mounts:\n  - {{type: bind, src: '{src}', dst: /x}}\n"
            ))
        };
        assert_eq!(find(mounts("data")), []);
        assert_eq!(find(mounts("./data/x")), []);
        for (src, message) in [
            ("../b", "lies outside its kustomization root"),
            ("/etc", "lies outside its kustomization root"),
            ("gone", "is not in the tree"),
        ] {
            assert_eq!(
                find(mounts(src)),
                [(
                    Severity::Error,
                    format!("the mount `{src}` of the function `Gen` {message}")
                )]
            );
        }
        let old = Scene::of(
            "transformers:\n- |\n  apiVersion: a/v1\n  kind: A\n  metadata: {name: a, annotations: {config.kubernetes.io/container: x}}\n",
        );
        assert_eq!(find(old).len(), 1);
    }

    #[test]
    fn scripts_and_plugins() {
        use Severity::{Error, Warning};
        assert_eq!(
            find(function(
                "starlark: {url: 'https://me:hunter2@example.com/x.star'}"
            )),
            [(
                Error,
                "the function `Gen` runs the script at https://example.com/x.star".to_owned()
            )]
        );
        assert_eq!(find(function("starlark: {path: run.sh}"))[0].0, Warning);
        assert_eq!(find(function("other: {}"))[0].0, Warning);
        let plugin = |more: &str| {
            Scene::of("validators: [v.yaml]\n")
                .file(
                    "v.yaml",
                    &format!(
                        "apiVersion: example.com/v1\nkind: DatePrefixer\nmetadata: {{name: a}}\n{more}"
                    ),
                )
                .file("args", "")
        };
        let first = (
            Warning,
            "the code of the plugin `DatePrefixer` is not in the repository, but in the plugin home of who builds: `example.com/v1/dateprefixer/DatePrefixer`"
                .to_owned(),
        );
        assert_eq!(
            find(plugin("argsFromFile: args\n")),
            std::slice::from_ref(&first)
        );
        for (args, message) in [
            (
                "https://example.com/args",
                "`argsFromFile` fetches https://example.com/args",
            ),
            ("gone", "`gone` of `argsFromFile` is not in the tree"),
            (
                "../args",
                "`../args` of `argsFromFile` lies outside its kustomization root",
            ),
        ] {
            let found = find(plugin(&format!("argsFromFile: {args}\n")));
            assert_eq!(found, [first.clone(), (Error, message.to_owned())]);
        }
    }

    #[test]
    fn what_is_built_in_is_no_function() {
        let text = "transformers:\n- |\n  apiVersion: builtin\n  kind: PrefixTransformer\n  metadata: {name: a}\n  prefix: a-\n";
        assert_eq!(find(Scene::of(text)), []);
    }

    #[test]
    fn no_secret_is_shown() {
        for spec in [
            "exec: {path: 'https://me:hunter2@example.com/run'}",
            "starlark: {url: 'https://me:hunter2@example.com/x?sig=hunter2'}",
        ] {
            let found = function(spec).check().findings;
            assert_eq!(
                found
                    .iter()
                    .filter(|one| one.rule == Rule::Function)
                    .count(),
                1
            );
            assert!(!shown(&found).contains("hunter2"), "{found:?}");
        }
    }
}
