//! `out-of-scope`: a path that leaves what bounds it: a file its kustomization root, a root the repository or
//! one of the `scopes` of the configuration, a link the repository. And an absolute path, which names
//! something of one machine.

use super::{Context, remote_chart};
use crate::config::{FILE_NAME, PLACEHOLDER};
use crate::graph::{Beyond, Edge, Origin, Root, Target, TroubleKind};
use crate::kustomization::{Accepts, FILE_NAMES};
use crate::message::failure::Result;
use crate::message::finding::{Finding, Rule};
use crate::tree::{self, Resolved, Tree, path};

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for trouble in context.troubles {
        let TroubleKind::OutOfScope(beyond) = &trouble.kind else {
            continue;
        };
        let Some((root, edge)) = context.edge_of(trouble) else {
            continue;
        };
        let one = One { context, root, edge };
        let (message, help) = match beyond {
            _ if path::is_absolute(one.text()) => one.absolute(),
            Beyond::Absolute => one.absolute(),
            Beyond::Root => one.beyond_root(),
            Beyond::Scope => one.beyond_repository(),
            Beyond::Link { link, target } => one.link(link, target),
        };
        findings.push(one.finding(message, help));
    }
    for (root, edge) in context.edges() {
        let one = One { context, root, edge };
        if matches!(edge.target, Target::File(_) | Target::Carried(_)) && path::is_absolute(one.text()) {
            let (message, help) = one.absolute();
            findings.push(one.finding(message, help));
        } else if let Some((message, help)) = one.absolute_link() {
            findings.push(one.finding(message, help));
        } else if let Some((message, help)) = one.beyond_scope() {
            findings.push(one.finding(message, help));
        }
    }
    findings.extend(remote_chart::find_refused(context, Rule::OutOfScope));
    findings
}

/// The tree as another checkout would see it, where no absolute path leads into it.
struct Elsewhere<'a>(&'a dyn Tree);

impl Tree for Elsewhere<'_> {
    fn entry(&self, path: &str) -> Result<Option<tree::Entry>> {
        self.0.entry(path)
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        self.0.names(directory)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        self.0.read(path)
    }

    fn label(&self, path: &str) -> String {
        self.0.label(path)
    }
}

/// One reference.
struct One<'a> {
    context: &'a Context<'a>,
    root: &'a Root,
    edge: &'a Edge,
}

impl One<'_> {
    fn text(&self) -> &str {
        &self.edge.reference.text
    }

    fn finding(&self, message: String, help: Vec<String>) -> Finding {
        let rule = Rule::OutOfScope;
        self.context.at_reference(rule, self.edge, message, help)
    }

    /// Returns the path from the top that the text means; none when that is not in the repository.
    fn local(&self) -> Option<String> {
        if path::is_absolute(self.text()) {
            self.context.tree.absolute(self.text())
        } else {
            path::resolve(&self.root.directory, self.text())
        }
    }

    fn beyond_root(&self) -> (String, Vec<String>) {
        let text = self.text();
        let Some(local) = self.local() else {
            return self.beyond_repository();
        };
        let root = shown(&self.root.directory);
        let real = match tree::resolve(self.context.tree, &local) {
            Ok(Resolved::File { path, .. }) => Some(path),
            _ => None,
        };
        let message = match &real {
            Some(real) if path::is_in(&local, &self.root.directory) => {
                format!("`{text}` is a link to `{real}`, outside of its kustomization root `{root}`")
            }
            _ => {
                format!("`{text}` is a file outside of its kustomization root `{root}`, which kustomize does not read")
            }
        };
        let mut help = Vec::new();
        if let Some(real) = &real {
            help.push(if path::is_in(&local, &self.root.directory) {
                format!("put a copy of `{real}` where the link is")
            } else {
                format!("copy `{real}` below `{root}`, and name the copy")
            });
            let directory = path::parent(real);
            let up = path::relative(&self.root.directory, directory);
            let contains = path::is_in(&self.root.directory, directory);
            if self.edge.reference.accepts == Accepts::Either && !contains {
                help.push(if is_root(self.context.tree, directory) {
                    format!("or name the root that it lies in: `{up}`")
                } else {
                    format!("or make `{directory}` a root of its own, and name that: `{up}`")
                });
            }
        } else {
            help.push(format!("put what it names below `{root}`"));
        }
        help.push(format!(
            "if this is built with `--load-restrictor LoadRestrictionsNone`, as Flux does: write `load-restrictor: none` \
             into {}",
            self.configuration()
        ));
        (message, help)
    }

    fn configuration(&self) -> &str {
        let file = &self.context.config.file;
        if file.is_empty() { FILE_NAME } else { file }
    }

    fn beyond_repository(&self) -> (String, Vec<String>) {
        let what = match self.edge.reference.accepts {
            Accepts::File => ", or name it by its https URL",
            Accepts::Program => "",
            _ => ", or name it by its URL, with `?ref=TAG-OR-COMMIT`",
        };
        (
            format!("`{}` leads out of the repository", self.text()),
            vec![format!("bring what it names into this repository{what}")],
        )
    }

    fn absolute(&self) -> (String, Vec<String>) {
        let message = format!("`{}` is an absolute path, which names nothing in another checkout", self.text());
        let help = match self.local() {
            Some(local) => format!("write `{}`", path::relative(&self.root.directory, &local)),
            None => "bring what it names into this repository, and write a relative path".to_owned(),
        };
        (message, vec![help])
    }

    fn link(&self, link: &str, target: &str) -> (String, Vec<String>) {
        let message = format!(
            "`{}` follows the link `{link}` to `{target}`, {}",
            self.text(),
            match self.context.tree.absolute(target) {
                Some(_) if path::is_absolute(target) => {
                    "an absolute path, which names nothing in another checkout"
                }
                _ => "out of the repository",
            }
        );
        let help = "replace the link by what it names".to_owned();
        (message, vec![help])
    }

    /// Looks whether the reference follows a link to an absolute path, which leads into this checkout only.
    fn absolute_link(&self) -> Option<(String, Vec<String>)> {
        let real = match self.edge.target {
            Target::File(id) => self.context.path(id),
            Target::Root { id, remote: false } => &self.context.graph.roots[id].directory,
            _ => return None,
        };
        // Where no link was followed, the path is the one that is written.
        let local = self.local().filter(|local| local != real)?;
        match tree::resolve(&Elsewhere(self.context.tree), &local) {
            Ok(Resolved::Leaves { link, target }) => Some(self.link(&link, &target)),
            _ => None,
        }
    }

    /// Checks whether the reference leaves the scope that the configuration sets for its root.
    fn beyond_scope(&self) -> Option<(String, Vec<String>)> {
        let context = self.context;
        let scope = context.config.scope_of(&self.root.directory)?;
        let real = match self.edge.target {
            Target::Root { id, remote: false } => context.graph.roots[id].directory.clone(),
            Target::File(id) => match &context.graph.files[id].origin {
                Origin::Tree { path, .. } => path.clone(),
                Origin::Remote(_) | Origin::Archive { .. } => return None,
            },
            Target::Carried(id) => match tree::resolve(context.tree, &context.graph.carried[id].path) {
                Ok(Resolved::File { path, .. } | Resolved::Directory { path }) => path,
                _ => return None,
            },
            _ => return None,
        };
        if path::is_in(&real, &scope) {
            return None;
        }
        let message = format!(
            "`{}` names `{}`, outside of the scope `{}` that {} sets",
            self.text(),
            shown(&real),
            shown(&scope),
            self.configuration()
        );
        let help = vec![
            format!("bring what it names below `{}`", shown(&scope)),
            format!("or say why it may: # kustomize-localize: allow[{}] {PLACEHOLDER}", Rule::OutOfScope),
        ];
        Some((message, help))
    }
}

fn shown(directory: &str) -> &str {
    match directory {
        "" => ".",
        directory => directory,
    }
}

fn is_root(tree: &dyn Tree, directory: &str) -> bool {
    FILE_NAMES.iter().any(|name| matches!(tree.entry(&path::join(directory, name)), Ok(Some(_))))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, under_caret};
    use super::*;

    const RESTRICTOR: &str = "if this is built with `--load-restrictor LoadRestrictionsNone`, as Flux does: write `load-restrictor: none` into .kustomize-localize";

    fn scene(text: &str) -> Scene {
        Scene::default()
            .file("app/kustomization.yaml", text)
            .file("shared/x.yaml", "")
            .file("base/kustomization.yaml", "namePrefix: b-\n")
            .file("base/y.yaml", "")
    }

    /// Returns the one finding, which must be of this rule.
    #[track_caller]
    fn one(scene: Scene) -> Finding {
        let mut findings = scene.check().findings;
        assert_eq!(findings.len(), 1, "{findings:?}");
        let finding = findings.remove(0);
        assert_eq!(finding.rule, Rule::OutOfScope);
        finding
    }

    #[test]
    fn a_file_outside_of_its_root() {
        let finding = one(scene("resources:\n- ../shared/x.yaml # ours\n"));
        assert_eq!(
            finding.message,
            "`../shared/x.yaml` is a file outside of its kustomization root `app`, which kustomize does not read"
        );
        assert_eq!(
            finding.help,
            [
                "copy `shared/x.yaml` below `app`, and name the copy",
                "or make `shared` a root of its own, and name that: `../shared`",
                RESTRICTOR,
            ]
        );
        assert_eq!(under_caret(&finding), "../shared/x.yaml");
        assert_eq!((finding.field.as_str(), finding.span.unwrap().line), ("resources[0]", 2));
        assert!(finding.fails());
        let rooted = one(scene("resources: [../base/y.yaml]\n"));
        assert_eq!(rooted.help[1], "or name the root that it lies in: `../base`");
        // Only a field that takes roots.
        let patch = one(scene("patches: [{path: ../base/y.yaml}]\n"));
        assert_eq!(patch.help.len(), 2);
        // Whether it is there does not matter.
        let gone = one(scene("patches: [{path: ../base/gone.yaml}]\n"));
        assert_eq!(gone.help[0], "put what it names below `app`");
    }

    #[test]
    fn the_way_that_concerns_one_file_comes_first() {
        let taken = one(scene("resources: [../shared/x.yaml]\n").file("app/x.yaml", ""));
        assert_eq!(
            taken.help,
            [
                "copy `shared/x.yaml` below `app`, and name the copy",
                "or make `shared` a root of its own, and name that: `../shared`",
                RESTRICTOR,
            ]
        );
        let patch = one(scene("patches: [{path: ../shared/x.yaml}]\n").file("app/x.yaml", ""));
        assert_eq!(patch.help[1..], [RESTRICTOR]);
    }

    #[test]
    fn every_field_of_files_is_bounded() {
        for field in [
            "crds: [../shared/x.yaml]",
            "configurations: [../shared/x.yaml]",
            "openapi: {path: ../shared/x.yaml}",
            "patchesStrategicMerge: [../shared/x.yaml]",
            "replacements: [{path: ../shared/x.yaml}]",
            "configMapGenerator: [{name: a, files: [k=../shared/x.yaml]}]",
            "secretGenerator: [{name: a, envs: [../shared/x.yaml]}]",
            "helmCharts: [{name: a, repo: 'https://c.example', valuesFile: ../shared/x.yaml}]",
            "transformers: [../shared/x.yaml]",
        ] {
            let found = scene(&format!("{field}\n")).find(Rule::OutOfScope);
            assert_eq!(found.len(), 1, "{field}");
        }
    }

    #[test]
    fn the_configuration_may_let_files_lie_anywhere_in_the_repository() {
        let none = "load-restrictor: none\n";
        for text in ["../shared/x.yaml", "../base/y.yaml"] {
            let scene = scene(&format!("resources: [{text}]\n")).config(none);
            assert_eq!(scene.check().findings, [], "{text}");
        }
        let out = one(scene("resources: [../../x.yaml]\n").config(none));
        assert_eq!(out.message, "`../../x.yaml` leads out of the repository");
    }

    #[test]
    fn a_root_outside_of_the_repository() {
        for text in ["../../other", "../../app"] {
            let finding = one(scene(&format!("resources: [{text}]\n")));
            assert_eq!(finding.message, format!("`{text}` leads out of the repository"));
            assert_eq!(
                finding.help,
                ["bring what it names into this repository, or name it by its URL, with `?ref=TAG-OR-COMMIT`"]
            );
        }
        one(scene("components: [../../other]\n"));
        for inside in ["../base", "../app/../base/"] {
            let text = format!("resources: [{inside}]\n");
            assert_eq!(scene(&text).check().findings, [], "{inside}");
        }
    }

    #[test]
    fn an_absolute_path() {
        for text in ["resources: [/srv/base]", "components: [/srv/base]", "patches: [{path: /srv/x.yaml}]"] {
            let finding = one(scene(&format!("{text}\n")));
            assert!(finding.message.ends_with("` is an absolute path, which names nothing in another checkout"));
        }
    }

    #[test]
    fn a_link_that_leaves() {
        let mut link = scene("resources: [x.yaml]\n");
        link.tree.link("app/x.yaml", "../shared/x.yaml");
        let finding = one(link);
        assert_eq!(finding.message, "`x.yaml` is a link to `shared/x.yaml`, outside of its kustomization root `app`");
        assert_eq!(finding.help[0], "put a copy of `shared/x.yaml` where the link is");
        let mut out = scene("resources: [x.yaml]\n");
        out.tree.link("app/x.yaml", "/etc/x.yaml");
        let finding = one(out);
        assert_eq!(finding.message, "`x.yaml` follows the link `app/x.yaml` to `/etc/x.yaml`, out of the repository");
        assert_eq!(finding.help, ["replace the link by what it names"]);
        let mut inside = scene("resources: [x.yaml, b]\n");
        inside.tree.link("app/x.yaml", "y.yaml");
        inside.tree.link("app/b", "../base");
        assert_eq!(inside.file("app/y.yaml", "").check().findings, []);
    }

    #[test]
    fn the_scopes_of_the_configuration_apply_to_their_files() {
        let scopes = "scopes: [apps/*, clusters/*]\n";
        let scene = |text: &str| {
            Scene::default()
                .file("apps/web/prod/kustomization.yaml", text)
                .file("apps/web/base/kustomization.yaml", "namePrefix: b-\n")
                .file("apps/api/kustomization.yaml", "namePrefix: b-\n")
                .file("shared/kustomization.yaml", "resources: [../apps/api]\n")
                .config(scopes)
        };
        let finding = one(scene("resources: [../base, ../../api]\n"));
        assert_eq!(
            finding.message,
            "`../../api` names `apps/api`, outside of the scope `apps/web` that .kustomize-localize sets"
        );
        assert_eq!(under_caret(&finding), "../../api");
        one(scene("resources: [../../../shared]\n"));
        let files = "load-restrictor: none\nscopes: [apps/*]\n";
        let file = scene("resources: [../base/x.yaml, ../../api/x.yaml]\n")
            .file("apps/web/base/x.yaml", "")
            .file("apps/api/x.yaml", "")
            .config(files);
        assert_eq!(one(file).reference, "../../api/x.yaml");
    }
}
