//! The inputs of the builds of targets that the tree lacks, and the one word for that state.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{ExternalInput, PathContent, Revision, Target, TargetDir, TargetLocation, Targets, at_other_revision};
use crate::config::Config;
use crate::graph::named::{ALLOWED, NOT_LOCKED, Namer};
use crate::graph::{Explored, RootId};
use crate::message::failure::Result;
use crate::message::finding::Rule;
use crate::message::redact;
use crate::reference::{Upstream, is_url};

impl Targets {
    /// For each target, in their order, the inputs of its build that the tree lacks: empty if there are none. `None` if
    /// they are unknown, if its path is missing, for a chart or plugin, and unless it is at a revision that the tree
    /// has, as `is_of_tree` tells.
    pub(crate) fn missing_inputs(
        &self,
        explored: &Explored,
        config: &Config,
        is_of_tree: impl Fn(&Revision) -> bool,
    ) -> Result<Vec<Option<Vec<ExternalInput>>>> {
        let namer = Namer::of(explored, config)?;
        let of_target = |target: &Target| {
            // The tree says nothing about another revision.
            let dir = target.local_dir().filter(|dir| is_of_tree(&dir.revision))?;
            // The graph does not have the inputs of a chart or of a plugin.
            let (PathContent::Kustomization(_) | PathContent::Directory(_)) = &dir.content else { return None };
            let roots: Option<Vec<RootId>> = target.roots(dir).map(|root| explored.graph.user_root(root)).collect();
            let mut reached = beyond(&namer, roots?);
            // The object adds these components, so that the graph of the directory does not have them.
            for component in target.build.components() {
                let state = match &component.content {
                    None if is_url(&component.text.text) => {
                        let subject = Upstream::named(&redact::url(&component.text.text)).subject();
                        let reason = config.reason(Rule::RemoteReference, &subject);
                        reason.map_or(NOT_LOCKED, |_| ALLOWED).to_owned()
                    }
                    Some(PathContent::Directory(_)) => "without a kustomization".to_owned(),
                    Some(PathContent::Nothing(why)) => why.clone(),
                    Some(PathContent::Submodule(_)) => "in a submodule".to_owned(),
                    // A root of the tree, and those that a pattern matches, were reached above. A directory that a
                    // variable means is not looked for.
                    _ => continue,
                };
                reached.push(ExternalInput {
                    is_remote: component.content.is_none(),
                    name: redact::url(&component.text.text),
                    state: format!("component of the object, {state}"),
                });
            }
            // An unknown build with no known external input may still have some.
            Some(reached).filter(|reached| !reached.is_empty() || target.why_unknown().is_none())
        };
        Ok(self.targets.iter().map(of_target).collect())
    }
}

/// The state of a target, with the same word in every command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub(crate) enum TargetState {
    /// Its build needs nothing but the tree.
    Localized,
    /// Its build needs these from other hosts.
    Remote { reaches: Vec<String> },
    /// Its directory is not there.
    Missing { why: String },
    /// Something that it needs in the tree is not there, or is not valid.
    Invalid { why: String },
    /// It is deployed from another repository.
    External { why: String },
    /// It is deployed from another revision, or something else than kustomize makes it.
    Other { why: String },
    /// The content of the deployment is unknown.
    Unknown { why: String },
}

impl TargetState {
    pub(crate) const WORDS: [&str; 7] = ["localized", "remote", "missing", "invalid", "external", "other", "unknown"];

    pub(crate) fn word(&self) -> &'static str {
        match self {
            TargetState::Localized => "localized",
            TargetState::Remote { .. } => "remote",
            TargetState::Missing { .. } => "missing",
            TargetState::Invalid { .. } => "invalid",
            TargetState::External { .. } => "external",
            TargetState::Other { .. } => "other",
            TargetState::Unknown { .. } => "unknown",
        }
    }
}

impl Target {
    /// The state that follows from the inputs that its build [lacks](Targets::missing_inputs).
    pub(crate) fn state(&self, reaches: Option<&[ExternalInput]>) -> TargetState {
        if let Some(why) = self.why_unknown() {
            return TargetState::Unknown { why };
        }
        // The order matters: this tree says nothing about another revision, a missing directory has no inputs, and one
        // remote input outweighs all invalid ones.
        match (&self.location, reaches) {
            (location, _) if at_other_revision(self).is_some() => TargetState::Other { why: location.described() },
            (TargetLocation::External(why), _) => TargetState::External { why: why.clone() },
            (TargetLocation::Local(TargetDir { content: PathContent::Nothing(why), .. }), _) => {
                TargetState::Missing { why: why.clone() }
            }
            (_, Some([])) => TargetState::Localized,
            (_, Some([first, rest @ ..])) if !first.is_remote && !rest.iter().any(|reached| reached.is_remote) => {
                TargetState::Invalid { why: input_line(first) }
            }
            (_, Some(all)) => TargetState::Remote {
                reaches: all.iter().filter(|reached| reached.is_remote).map(input_line).collect(),
            },
            (location, None) => TargetState::Other { why: location.described() },
        }
    }
}

/// An input with its state.
fn input_line(reached: &ExternalInput) -> String {
    format!("{}: {}", reached.name, reached.state)
}

/// The inputs of roots that are remote, or that are broken, such as a missing file; each once, and sorted.
pub(super) fn beyond(namer: &Namer<'_>, roots: impl IntoIterator<Item = RootId>) -> Vec<ExternalInput> {
    let reached = namer.beyond(roots).map(|node| ExternalInput {
        state: node.state(),
        is_remote: node.is_remote(),
        name: node.name,
    });
    reached.collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use expect_test::expect;

    use super::*;
    use crate::check::testing::{argo, flux, source};
    use crate::config::Config;
    use crate::graph::inputs::explore_all;
    use crate::graph::testing;
    use crate::message::failure::Failure;
    use crate::targets::built::{Builder, Output};
    use crate::targets::{self, Identity, TargetLocation};
    use crate::tree::overlay::OverlayTree;

    const LOCK: &str = "version: 1
remotes:
- url: https://github.com/acme/bases
  ref: v1
  commit: 0123456789012345678901234567890123456789
  paths: {web: {}}
";

    fn target(name: &str, path: &str) -> String {
        flux(&format!("./{path}")).replace("name: apps", &format!("name: {name}")) + "---\n"
    }

    fn tree(files: &[(&str, &str)]) -> Rc<OverlayTree> {
        let source = source("");
        Rc::new(testing::tree(&[files, &[("source.yaml", &*source)]].concat()))
    }

    fn identity(config: &Config) -> Identity {
        let remotes = ["https://github.com/acme/fleet".to_owned()];
        Identity::new(remotes, config, ["main".to_owned()])
    }

    /// The targets of a tree with their external inputs, after the builds that may change them are known.
    fn of_tree(tree: &Rc<OverlayTree>) -> (Targets, Vec<Option<Vec<ExternalInput>>>) {
        let config = Config::of(&**tree, "").unwrap();
        let found = targets::find(tree, &config, &|| Ok(identity(&config))).unwrap();
        let explored = explore_all(tree.clone()).unwrap();
        let targets = found.resolve_changers(&explored.graph);
        let reaches = targets.missing_inputs(&explored, &config, |_| true).unwrap();
        (targets, reaches)
    }

    fn surveyed(files: &[(&str, &str)]) -> (Targets, Vec<Option<Vec<ExternalInput>>>) {
        of_tree(&tree(files))
    }

    fn reached((targets, reaches): &(Targets, Vec<Option<Vec<ExternalInput>>>), name: &str) -> Option<Vec<String>> {
        let at = targets.targets.iter().position(|target| target.object.name == name).unwrap();
        Some(reaches[at].as_ref()?.iter().map(|reached| format!("{}: {}", reached.name, reached.state)).collect())
    }

    #[test]
    fn a_target_is_hermetic_or_names_what_it_reaches() {
        let objects = [
            target("local", "local"),
            target("locked", "locked"),
            target("floating", "floating"),
            target("generated", "generated"),
            target("gone", "gone"),
        ];
        let targets = surveyed(&[
            ("apps.yaml", &objects.concat()),
            ("kustomize-localize.lock", LOCK),
            ("local/kustomization.yaml", "resources: [../base/x.yaml]\n"),
            ("base/x.yaml", "kind: X\n"),
            ("locked/kustomization.yaml", "resources:\n- https://github.com/acme/bases//web?ref=v1\n"),
            ("floating/kustomization.yaml", "resources:\n- ../locked\n- https://example.com/x.yaml\n- nothing.yaml\n"),
            ("generated/a/kustomization.yaml", "resources: [../../locked]\n"),
        ]);
        // Flux lets a root load files beside it.
        assert_eq!(reached(&targets, "local").unwrap(), [""; 0]);
        let locked = "https://github.com/acme/bases//web?ref=v1: tag, locked 012345678901";
        assert_eq!(reached(&targets, "locked").unwrap(), [locked]);
        assert_eq!(reached(&targets, "generated").unwrap(), [locked]);
        let floating = reached(&targets, "floating").unwrap();
        assert_eq!(floating.len(), 3, "{floating:?}");
        assert!(floating.contains(&locked.to_owned()));
        assert!(floating.contains(&"https://example.com/x.yaml: not locked".to_owned()));
        assert_eq!(reached(&targets, "gone"), None);
        // Nobody knows here what Jsonnet makes.
        let targets = surveyed(&[("a.yaml", &argo("path: d")), ("d/main.jsonnet", "{}\n")]);
        assert_eq!(reached(&targets, "web"), None);
    }

    #[test]
    fn a_directory_that_the_lock_does_not_hold_is_not_locked() {
        let targets = surveyed(&[
            ("apps.yaml", &target("web", "web")),
            ("kustomize-localize.lock", LOCK),
            ("web/kustomization.yaml", "resources:\n- https://github.com/acme/bases//other?ref=v1\n"),
        ]);
        assert_eq!(reached(&targets, "web").unwrap(), ["https://github.com/acme/bases//other?ref=v1: tag, not locked"]);
    }

    #[test]
    fn an_exception_counts_where_no_lock_decides() {
        let allow = "allow: [{url: 'https://github.com/acme/', refs: any, reason: ours}, {chart: 'https://charts.example.com/stable#web@1.0.0', reason: r}]\nhelm: true\n";
        let root = "components: ['https://github.com/acme/other//a?ref=v1']
resources:
- https://github.com/acme/bases//web?ref=v1
- https://example.com/x.yaml # kustomize-localize: allow[remote-reference] a mirror
- https://example.com/y.yaml
helmCharts: [{name: web, repo: 'https://charts.example.com/stable', version: 1.0.0}]
";
        let targets = surveyed(&[
            (".kustomize-localize", allow),
            (
                "apps.yaml",
                &target("web", "web").replace("---\n", "  components: ['https://github.com/acme/parts?ref=v1']\n"),
            ),
            ("kustomize-localize.lock", LOCK),
            ("web/kustomization.yaml", root),
        ]);
        expect![[r#"
            https://charts.example.com/stable#web@1.0.0: chart, allowed
            https://example.com/x.yaml: allowed
            https://example.com/y.yaml: not locked
            https://github.com/acme/bases//web?ref=v1: tag, locked 012345678901
            https://github.com/acme/other//a?ref=v1: tag, allowed
            https://github.com/acme/parts?ref=v1: component of the object, allowed"#]]
        .assert_eq(&reached(&targets, "web").unwrap().join("\n"));
    }

    #[test]
    fn what_is_here_says_nothing_of_another_revision() {
        let mut all = tree(&[("apps.yaml", &target("web", "web")), ("web/kustomization.yaml", "namePrefix: a-\n")]);
        let tagged = source("").replace("branch: main", "tag: v1");
        let files = Rc::get_mut(&mut all).unwrap();
        files.add_file("source.yaml", tagged.as_bytes());
        assert_eq!(reached(&of_tree(&all), "web"), None);
    }

    #[test]
    fn a_component_that_is_not_there_is_reached() {
        let components = "../parts, ../gone, ../base, ../base/x.yaml, ../../out, 'https://example.com/o/r//part', '../all/*', '../${x}'";
        let reached = |more: &str| {
            let added = format!("  components: [{components}]\n{more}");
            let targets = surveyed(&[
                ("apps.yaml", &target("web", "web").replace("---\n", &added)),
                ("web/kustomization.yaml", "namePrefix: a-\n"),
                (
                    "parts/kustomization.yaml",
                    "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: b-\n",
                ),
                ("base/x.yaml", "kind: X\n"),
            ]);
            reached(&targets, "web").unwrap()
        };
        let remote = "https://example.com/o/r//part: component of the object, not locked";
        assert_eq!(
            reached(""),
            [
                "../gone: component of the object, there is no `gone`",
                "../base: component of the object, without a kustomization",
                "../base/x.yaml: component of the object, `base/x.yaml` is a file",
                "../../out: component of the object, it is outside of the repository",
                remote,
                // Only Argo CD takes patterns.
                "../all/*: component of the object, there is no `all/*`",
            ]
        );
        // A path that exists is not missing.
        let base = "../base: component of the object, without a kustomization";
        let file = "../base/x.yaml: component of the object, `base/x.yaml` is a file";
        let ignoring = reached("  ignoreMissingComponents: true\n");
        assert_eq!(ignoring, [base, file, remote]);
    }

    #[test]
    fn the_components_that_a_pattern_matches_are_reached() {
        let component = |more: &str| format!("kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\n{more}");
        let (tls, deep) = (
            component("resources: ['https://h.example/x.yaml']\n"),
            component("resources: ['https://h.example/y.yaml']\n"),
        );
        let reached = |pattern: &str| {
            let object = argo(&format!("path: web, kustomize: {{components: ['{pattern}']}}"));
            let targets = surveyed(&[
                ("a.yaml", &object),
                ("web/kustomization.yaml", "namePrefix: a-\n"),
                ("parts/tls/kustomization.yaml", &tls),
                ("parts/plain/x.yaml", "a: b\n"),
                ("parts/db/deep/kustomization.yaml", &deep),
            ]);
            reached(&targets, "web").unwrap()
        };
        let [x, y] = ["x", "y"].map(|file| format!("https://h.example/{file}.yaml: not locked"));
        assert_eq!(reached("../parts/*"), [&*x]);
        assert_eq!(reached("../p?rts/[a-z]ls"), [&*x]);
        assert_eq!(reached("../parts/*/deep"), [&*y]);
        assert_eq!(reached("../parts/*/../db/de*"), [&*y]);
        for pattern in ["../none/*", "../parts/[", "../../*"] {
            assert_eq!(reached(pattern), [""; 0], "{pattern}");
        }
    }

    #[test]
    fn a_component_that_is_no_directory_of_the_tree_is_reached() {
        let flux = target("web", "web").replace("---\n", "  components: [../link, ../file, ../loop, ../away]\n");
        let argo = "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web}
spec:
  source:
    repoURL: https://github.com/acme/fleet
    path: web
    kustomize: {components: [../link, ../file, ../loop, ../away]}
";
        let link = "../link: component of the object, `link` is a link, which Flux leaves out of its artifacts";
        for (object, rest) in [
            (
                flux.as_str(),
                [
                    "../loop: component of the object, `loop` is a link, which Flux leaves out of its artifacts",
                    "../away: component of the object, `away` is a link, which Flux leaves out of its artifacts",
                ],
            ),
            (
                argo,
                [
                    "../loop: component of the object, `loop` leads to itself",
                    "../away: component of the object, `away` leads out of the repository",
                ],
            ),
        ] {
            let mut tree = tree(&[
                ("apps.yaml", object),
                ("web/kustomization.yaml", "namePrefix: a-\n"),
                (
                    "part/kustomization.yaml",
                    "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: a-\n",
                ),
                ("file", ""),
            ]);
            let links = Rc::get_mut(&mut tree).unwrap();
            links.link("link", "part");
            links.link("loop", "loop");
            links.link("away", "../../part");
            let targets = of_tree(&tree);
            let file = "../file: component of the object, `file` is a file";
            let mut expected = vec![file, rest[0], rest[1]];
            if object == flux {
                expected.insert(0, link);
            }
            assert_eq!(reached(&targets, "web").unwrap(), expected, "{object}");
        }
    }

    /// Returns what would be built, as `NAME: FILE…`, and the targets with what a build makes of them.
    fn built(files: &[(&str, &str)], outputs: &[(&str, Output)]) -> (Vec<String>, Vec<String>) {
        let (names, targets) = resolved(files, outputs);
        let line = |target: &targets::Target| {
            let path = match &target.location {
                TargetLocation::Local(dir) => dir.path.as_str(),
                _ => "",
            };
            let changed = target.changed_by.as_ref();
            let changed = changed.map(|by| (by.name.as_str(), by.not_built.as_ref().map(|why| &*why.message)));
            format!("{} {path} {changed:?}", target.object)
        };
        (names, targets.targets.iter().map(line).collect())
    }

    /// Returns what would be built, and the targets.
    fn resolved(files: &[(&str, &str)], outputs: &[(&str, Output)]) -> (Vec<String>, targets::Targets) {
        let tree = tree(files);
        let config = Config::default();
        let targets = targets::find(&tree, &config, &|| Ok(identity(&config))).unwrap();
        let explored = explore_all(tree).unwrap();
        let mut names = Vec::new();
        let run = |builders: &[&Builder]| {
            let output = |builder: &&Builder| {
                let reaches = builder.reaches.iter().map(|reached| reached.name.as_str());
                let reaches: Vec<&str> = reaches.collect();
                names.push(format!("{}{reaches:?}", builder.by));
                let output = outputs.iter().find(|(by, _)| *by == builder.by);
                let (_, output) = output.unwrap_or_else(|| panic!("{}", builder.by));
                output.clone()
            };
            builders.iter().map(output).collect()
        };
        let targets =
            targets.resolve_by_builds(&explored, &config, &|| Ok(identity(&config)), &|_| false, &[], run).unwrap();
        (names, targets)
    }

    const PATCHED: &str = "resources: [../apps]
patches:
- target: {kind: Kustomization}
  patch: |-
    - {op: replace, path: /spec/path, value: ./other}
";

    #[test]
    fn each_overlay_of_one_base_makes_an_object() {
        let objects = target("web", "web");
        let (names, lines) = built(
            &[
                ("apps/kustomization.yaml", "resources: [apps.yaml]\n"),
                ("apps/apps.yaml", &objects),
                ("prod/kustomization.yaml", PATCHED),
                ("test/kustomization.yaml", "resources: [../apps]\n"),
                ("more/kustomization.yaml", "resources: [../test]\n"),
                ("away/kustomization.yaml", "resources: [../apps, 'https://example.com/x.yaml']\n"),
                ("unrelated/kustomization.yaml", "namePrefix: x-\n"),
            ],
            &[
                ("prod/kustomization.yaml", Ok(target("web", "other").into())),
                ("more/kustomization.yaml", Ok(target("more-web", "web").into())),
                ("away/kustomization.yaml", Err(Failure::new("it is away"))),
            ],
        );
        let expected = [
            "away/kustomization.yaml[\"https://example.com/x.yaml\"]",
            "more/kustomization.yaml[]",
            "prod/kustomization.yaml[]",
        ];
        assert_eq!(names, expected);
        assert_eq!(
            lines,
            [
                "Kustomization flux-system/more-web (apps/apps.yaml:1, built by more/kustomization.yaml) web None",
                "Kustomization flux-system/web (apps/apps.yaml:1) web Some((\"prod/kustomization.yaml\", Some(\"away/kustomization.yaml: it is away\")))",
                "Kustomization flux-system/web (apps/apps.yaml:1, built by prod/kustomization.yaml) other None",
            ]
        );
    }

    #[test]
    fn a_part_of_what_is_not_built_deploys_nothing_by_itself() {
        let away = Failure::new("it is away");
        let (names, lines) = built(
            &[
                ("apps/kustomization.yaml", "resources: [apps.yaml]\n"),
                ("apps/apps.yaml", &target("web", "web")),
                ("prod/kustomization.yaml", &PATCHED.replace("../apps", "../apps, 'https://example.com/x.yaml'")),
            ],
            &[
                ("prod/kustomization.yaml", Err(away.clone())),
                ("apps/kustomization.yaml", Ok(target("web", "web").into())),
            ],
        );
        assert_eq!(names, ["prod/kustomization.yaml[\"https://example.com/x.yaml\"]", "apps/kustomization.yaml[]"]);
        expect![[r#"Kustomization flux-system/web (apps/apps.yaml:1) web Some(("prod/kustomization.yaml", Some("prod/kustomization.yaml: it is away")))"#]].assert_eq(&lines.join("\n"));
        // What only lists a part does not change it.
        let (_, lines) = built(
            &[
                ("apps/kustomization.yaml", "resources: [apps.yaml]\n"),
                ("apps/apps.yaml", &target("web", "web")),
                ("prod/kustomization.yaml", PATCHED),
                ("all/kustomization.yaml", "resources: [../prod, 'https://example.com/x.yaml']\n"),
            ],
            &[("all/kustomization.yaml", Err(away)), ("prod/kustomization.yaml", Ok(target("web", "other").into()))],
        );
        expect![[r#"
            Kustomization flux-system/web (apps/apps.yaml:1) web Some(("prod/kustomization.yaml", Some("all/kustomization.yaml: it is away")))
            Kustomization flux-system/web (apps/apps.yaml:1, built by prod/kustomization.yaml) other None"#]].assert_eq(&lines.join("\n"));
    }

    /// An object that patches what it deploys.
    fn patching(name: &str, path: &str) -> String {
        target(name, path).replace(
            "  sourceRef",
            "  patches: [{target: {kind: Kustomization}, patch: '[{op: replace, path: /spec/path, value: x}]'}]\n  sourceRef",
        )
    }

    #[test]
    fn rings_are_built_by_nothing() {
        // Two that deploy and patch each other.
        let by = |name: &str| format!("Some((\"Flux Kustomization {name} ({name}/x.yaml:1)\", None))");
        let (names, lines) =
            built(&[("one/x.yaml", &patching("one", "two")), ("two/x.yaml", &patching("two", "one"))], &[]);
        assert_eq!(names, [""; 0]);
        let line =
            |name: &str, path: &str| format!("Kustomization flux-system/{name} ({name}/x.yaml:1) {path} {}", by(path));
        assert_eq!(lines, [line("one", "two"), line("two", "one")]);
        // Kustomizations that lead to each other.
        let (names, lines) = built(
            &[
                ("apps/kustomization.yaml", "resources: [x.yaml, ../prod]\n"),
                ("apps/x.yaml", &target("web", "web")),
                ("prod/kustomization.yaml", PATCHED),
            ],
            &[],
        );
        assert_eq!(names, [""; 0]);
        assert!(lines[0].contains("kustomization.yaml\", None))"), "{lines:?}");
    }

    #[test]
    fn of_thousands_of_parents_in_a_row_each_is_named() {
        let mut files: Vec<(String, String)> = (0..4000)
            .map(|number| {
                let next = format!("n{}", number + 1);
                (format!("n{number}/x.yaml"), patching(&format!("o{number}"), &next))
            })
            .collect();
        files.push(("all/x.yaml".to_owned(), patching("all", "")));
        let files: Vec<(&str, &str)> = files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
        let (targets, _) = surveyed(&files);
        assert_eq!(targets.targets.len(), 4001);
        let changed = |target: &&targets::Target| target.changed_by.is_some();
        assert_eq!(targets.targets.iter().filter(changed).count(), 4000);
    }

    #[test]
    fn what_a_build_makes_builds_others() {
        let patched = patching("root", "apps").replace("path: ./apps", "path: ./more");
        let by = "Flux Kustomization root (base/root.yaml:1, built by prod/kustomization.yaml)";
        let (names, lines) = built(
            &[
                ("base/kustomization.yaml", "resources: [root.yaml]\n"),
                ("base/root.yaml", &patching("root", "apps")),
                ("prod/kustomization.yaml", &PATCHED.replace("../apps", "../base")),
                ("more/kustomization.yaml", "resources: [web.yaml]\n"),
                ("more/web.yaml", &target("web", "web")),
            ],
            &[("prod/kustomization.yaml", Ok(patched.into())), (by, Ok(target("web", "x").into()))],
        );
        assert_eq!(names, ["prod/kustomization.yaml[]", &format!("{by}[]")]);
        assert_eq!(
            lines,
            [
                "Kustomization flux-system/root (base/root.yaml:1, built by prod/kustomization.yaml) more None"
                    .to_owned(),
                "Kustomization flux-system/web (more/web.yaml:1, built by Flux Kustomization root (base/root.yaml:1)) x None"
                    .to_owned(),
            ]
        );
    }

    #[test]
    fn what_deploys_itself_is_built_once_more_and_no_deeper() {
        let patched = "resources: [root.yaml]\npatches: [{target: {kind: Kustomization}, path: x.yaml}]\n";
        let files = [
            ("all/kustomization.yaml", patched),
            ("all/root.yaml", &patching("root", "all")),
            ("all/x.yaml", "a: b\n"),
        ];
        let itself = "Flux Kustomization root (all/root.yaml:1)";
        let first = "Flux Kustomization root (all/root.yaml:1, built by all/kustomization.yaml)";
        let output = || Ok(patching("root", "all").into());
        let (names, lines) =
            built(&files, &[("all/kustomization.yaml", output()), (first, output()), (itself, output())]);
        assert_eq!(names, ["all/kustomization.yaml[]", &format!("{first}[]"), &format!("{itself}[]")]);
        assert!(lines.iter().all(|line| line.ends_with(" None")), "{lines:?}");
    }

    #[test]
    fn a_build_that_makes_only_the_source_settles_the_target() {
        let made = source("").replace("name: flux-system,", "name: flux-system, labels: {a: b},");
        let (names, lines) = built(
            &[
                ("kustomization.yaml", "resources: [source.yaml]\ncommonLabels: {a: b}\n"),
                ("boot/web.yaml", &target("web", "web")),
            ],
            &[("kustomization.yaml", Ok(made.into()))],
        );
        assert_eq!(names, ["kustomization.yaml[]"]);
        assert_eq!(lines, ["Kustomization flux-system/web (boot/web.yaml:1) web None"]);
    }

    #[test]
    fn an_object_of_the_wrong_type_is_invalid_wherever_that_comes_from() {
        let unread = |object: &str| {
            let files = [
                ("apps/kustomization.yaml", "resources: [apps.yaml, web.yaml]\ncommonLabels: {a: b}\n"),
                ("apps/apps.yaml", object),
                ("apps/web.yaml", &target("web", "web")),
            ];
            let (_, targets) = resolved(&files, &[("apps/kustomization.yaml", Ok(flux("[1]").into()))]);
            assert!(targets.unread.iter().all(|unread| unread.why == targets::Why::Invalid), "{:?}", targets.unread);
            targets.unread.iter().map(targets::Unread::location_text).collect::<Vec<_>>()
        };
        assert_eq!(unread(&flux("./web")), ["apps/kustomization.yaml:1"]);
        // As it is written, it is wrong in its own file, and once.
        assert_eq!(unread(&flux("[1]")), ["apps/apps.yaml:5"]);
    }

    #[test]
    fn nothing_is_built_where_nothing_changes_an_object() {
        let (names, _) = built(
            &[
                ("apps/kustomization.yaml", "resources: [apps.yaml]\n"),
                ("apps/apps.yaml", &target("web", "web")),
                ("prod/kustomization.yaml", "resources: [../apps]\nconfigMapGenerator: [{name: a}]\n"),
            ],
            &[],
        );
        assert_eq!(names, [""; 0]);
    }
}
