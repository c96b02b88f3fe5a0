//! `remote-chart`: a Helm chart that helm would download.
//!
//! kustomize calls `helm pull` unless the directory of the chart is there: `{chartHome}/{name}-{version}/{name}` with a
//! repository and a version, else `{chartHome}/{name}` (`HelmChartInflationGenerator.go`). The contents of the
//! directory do not matter ([`crate::graph::Chart`]), so the tree decides; a chart that is on disk but not staged does
//! not count. An entry of the lock at the top satisfies the rule. The rule also applies below `localized-files`: a
//! build would fetch such a chart.
//!
//! A missing chart without a repository is a finding of `missing-path`.

use super::Context;
use super::remote_reference::hint_vendor;
use crate::config::{Config, FILE_NAME};
use crate::graph::{Chart, ChartLookup, ChartRef};
use crate::message::failure::{Failure, command, stage};
use crate::message::finding::{Finding, Rule};
use crate::message::redact;
use crate::record::LOCK_NAME;
use crate::reference::Upstream;
use crate::targets::{MissingChart, PathContent, missing_charts};
use crate::tree::path;

/// Finds the charts that a build would download, and the files that engines download for charts of the tree.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = chart_findings(context, Rule::RemoteChart);
    // A chart that an engine renders is in no kustomization, so the graph does not know it.
    for local in &context.deployed.local {
        let PathContent::Chart(directory) = &local.directory.content else { continue };
        for url in &local.target.build.remote_values {
            let url = redact::url(url);
            let message = format!("the values of the chart `{directory}` come from {url}, which each build fetches");
            let failure = Failure::new(message).hint("commit the file, and name it there");
            let finding = context.at_target(Rule::RemoteChart, local.target, failure);
            findings.push(finding.naming(&Upstream::File { url }));
        }
        let missing = context.value_or_failure(missing_charts(context.tree, directory));
        for MissingChart { home, name, version, repository } in missing.into_iter().flatten() {
            let url = redact::url(&repository);
            let mut named = format!("`{name}`");
            for (word, text) in [(" ", &version), (" of ", &url)] {
                named += &if text.is_empty() { String::new() } else { format!("{word}{text}") };
            }
            let failure = Failure::new(format!(
                "the chart `{directory}` depends on {named}, which is not in `{home}`: each build downloads it"
            ))
            .hint(format!(
                "to bring it in, at the top of the repository: {} && {}",
                command("helm dependency update", [path::shown(directory)]),
                stage([home])
            ));
            let reference = format!("{url} {name} {version}").trim().to_owned();
            let subject = Upstream::Chart { url, chart: name, version: Some(version) }.subject();
            let finding = context.at_target(Rule::RemoteChart, local.target, failure);
            findings.push(Finding { reference, subject, ..finding });
        }
    }
    findings
}

/// The charts that a build would download, and that the lock has.
pub(super) fn locked_charts<'a>(context: &'a Context<'_>) -> impl Iterator<Item = &'a Chart> {
    let charts = context.graph.charts.iter().filter(|chart| !chart.is_there());
    charts.filter(|chart| chart.wanted.as_ref().is_some_and(|wanted| is_locked(context, wanted)))
}

/// Whether the lock that decides about the tree has a chart.
fn is_locked(context: &Context<'_>, wanted: &ChartRef) -> bool {
    context.lock().is_some_and(|lock| wanted.locked(lock).is_some())
}

/// The findings of a rule for charts that a build would download: of `locked-reference` for those that the lock has, of
/// `remote-chart` for the others.
pub(super) fn chart_findings(context: &Context<'_>, rule: Rule) -> Vec<Finding> {
    let graph = context.graph;
    let charts = graph.charts.iter().filter_map(|chart| {
        let wanted = chart.wanted.as_ref()?;
        // An entry of the lock does not help a root that nothing localizes.
        let left_out = context.left_out(chart.root, &chart.name);
        let is_locked = is_locked(context, wanted) && left_out.is_none();
        if is_locked != (rule == Rule::LockedReference) {
            return None;
        }
        let (name, repo) = (&chart.name, wanted.repo.shown());
        let version = if wanted.version.is_empty() { "(newest)" } else { &wanted.version };
        let odd = wanted.odd_repository();
        let failure = Failure::new(match &chart.lookup {
            ChartLookup::There(_) => return None,
            ChartLookup::Outside | ChartLookup::Missing(_) if odd.is_some() => odd.unwrap_or_default(),
            ChartLookup::Outside => format!(
                "kustomize reads the chart `{name}` {version} of {repo} from `{}`, outside of the repository, or downloads it there",
                chart.home
            ),
            ChartLookup::Submodule(submodule) => format!(
                "the chart `{name}` is in the submodule `{submodule}`, whose files are not in this repository"
            ),
            ChartLookup::Missing(directory) => {
                format!("the chart `{name}` {version} of {repo} is not in the tree: helm downloads it to `{directory}`")
            }
        });
        let failure = match left_out {
            Some(left_out) => left_out,
            None if is_locked => failure.hint(hint_vendor(context, chart.root)),
            None => failure.hint(hint(context, chart)),
        };
        Some(Finding {
            reference: [&repo, name, &wanted.version].map(|part| part.trim()).join(" ").trim_end().to_owned(),
            subject: wanted.upstream().subject(),
            ..context.at_note(rule, &graph.notes[chart.note], failure)
        })
    });
    charts.collect()
}

/// How to bring in a chart that the lock lacks.
fn hint(context: &Context<'_>, chart: &Chart) -> String {
    // Localized files are not edited here.
    if context.is_owned(context.path(context.graph.notes[chart.note].file)) {
        return format!("localize again, with `helm: true` in {FILE_NAME}");
    }
    match &chart.lookup {
        ChartLookup::Submodule(_) => "copy the chart into this repository".to_owned(),
        ChartLookup::Outside => {
            "name a directory of this repository in `chartHome`, and put the chart there".to_owned()
        }
        ChartLookup::Missing(directory)
            if context.input.absences.is_some_and(|absences| absences.is_on_disk(directory)) =>
        {
            format!("it exists, but is not tracked: {}", stage([directory]))
        }
        ChartLookup::Missing(_) if chart.wanted.as_ref().is_some_and(|wanted| wanted.odd_repository().is_some()) => {
            let below = path::join(&chart.home, &chart.name);
            format!(
                "write the https, http or oci URL of its repository; or remove `repo` and `version`, and put the chart into `{below}`"
            )
        }
        _ => hint_lock_charts(context.config),
    }
}

/// The hint to lock charts: with `helm: true` first, if the configuration lacks it.
pub(super) fn hint_lock_charts(config: &Config) -> String {
    let (first, files) = if config.helm {
        ("", &[LOCK_NAME][..])
    } else {
        ("write `helm: true` into .kustomize-localize, and ", &[FILE_NAME, LOCK_NAME][..])
    };
    format!("{first}lock it: git kustomize-localize lock && {}", stage(files))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, under_caret};
    use super::*;

    fn find(scene: Scene) -> Vec<Finding> {
        scene.find(Rule::RemoteChart)
    }

    const CHART: &str = "helmCharts:\n- name: nginx\n  repo: https://charts.example # ours\n  version: 1.2.3\n";

    #[test]
    fn a_finding_names_the_download_and_the_fix() {
        let scene = Scene::default().file("apps/web/kustomization.yaml", CHART);
        let findings = find(scene);
        let [finding] = findings.as_slice() else {
            panic!("{findings:?}");
        };
        assert_eq!(
            finding.message,
            "the chart `nginx` 1.2.3 of https://charts.example is not in the tree: helm downloads it to `apps/web/charts/nginx-1.2.3/nginx`"
        );
        let lock = "lock it: git kustomize-localize lock && git add -f -- ";
        assert_eq!(
            finding.help,
            [format!(
                "write `helm: true` into .kustomize-localize, and {lock}:/.kustomize-localize :/kustomize-localize.lock"
            )]
        );
        let help = |config: &str| {
            let scene = Scene::default().file("apps/web/kustomization.yaml", CHART);
            find(scene.config(config)).remove(0).help
        };
        assert_eq!(help("helm: true\n"), [format!("{lock}:/kustomize-localize.lock")]);
        assert_eq!(finding.field, "helmCharts[0]");
        assert_eq!(finding.reference, "https://charts.example nginx 1.2.3");
        assert_eq!(under_caret(finding), "https://charts.example");
        assert_eq!(finding.subject, Upstream::named("https://charts.example#nginx@1.2.3").subject());
    }

    #[test]
    fn a_lock_that_lists_a_handwritten_file_hides_nothing() {
        let lock = format!(
            "version: 1\nfiles:\n  - path: kustomization.yaml\n    mode: \"100644\"\n    sha256: {}\n",
            crate::record::sha256_hex(CHART.as_bytes())
        );
        let scene = Scene::default().file("app/kustomization.yaml", CHART).file("app/kustomize-localize.lock", &lock);
        assert!(find(scene)[0].fails());
    }

    #[test]
    fn the_chart_is_looked_for_where_kustomize_looks() {
        let with = |globals: &str, place: &str| {
            Scene::default().file("a/kustomization.yaml", &format!("{CHART}{globals}")).file(place, "")
        };
        for (globals, place) in [
            ("", "a/charts/nginx-1.2.3/nginx/Chart.yaml"),
            ("helmGlobals: {}\n", "a/charts/nginx-1.2.3/nginx/x"),
            ("helmGlobals: {chartHome: c}\n", "a/c/nginx-1.2.3/nginx/x"),
            ("helmGlobals: {chartHome: ../c}\n", "c/nginx-1.2.3/nginx/x"),
        ] {
            assert_eq!(find(with(globals, place)), [], "{globals}{place}");
        }
        for (globals, place) in [
            ("", "charts/nginx-1.2.3/nginx/Chart.yaml"),
            ("", "a/charts/nginx/Chart.yaml"),
            ("", "a/charts/nginx-1.2.3/nginx-1.2.3.tgz"),
            ("helmGlobals: {chartHome: c}\n", "a/charts/nginx-1.2.3/nginx/x"),
            ("helmGlobals: {chartHome: ''}\n", "a/nginx-1.2.3/nginx/x"),
        ] {
            assert_eq!(find(with(globals, place)).len(), 1, "{globals}{place}");
        }
        let no_version = "helmCharts: [{name: nginx, repo: 'oci://ghcr.io/o/'}]\n";
        let scene = || Scene::of(no_version);
        let there = || scene().file("charts/nginx/Chart.yaml", "");
        assert_eq!(find(there()), []);
        // A kustomization in a chart is not one of the repository; beside other charts it is.
        let remote = "resources: [https://example.com/x.yaml]\n";
        for (place, expected) in [("charts/nginx/x", 0), ("charts/nginx", 0), ("charts/other", 1), ("other", 1)] {
            let found =
                there().file("charts/nginx/Chart.yaml", "").file(&format!("{place}/kustomization.yaml"), remote);
            assert_eq!(found.find(Rule::RemoteReference).len(), expected, "{place}");
        }
        let found = find(scene());
        assert_eq!(
            found[0].message,
            "the chart `nginx` (newest) of oci://ghcr.io/o/ is not in the tree: helm downloads it to `charts/nginx`"
        );
    }

    #[test]
    fn plugin_configurations_have_a_place_of_their_own() {
        let plugin = "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: a}\nname: nginx\nrepo: https://charts.example\nversion: 1.2.3\nchartHome: own\n";
        let inline = format!(
            "helmGlobals: {{chartHome: c}}\ngenerators:\n- |-\n  {}\n",
            plugin.trim_end().replace('\n', "\n  ")
        );
        let listed = "helmGlobals: {chartHome: c}\ngenerators: [plugins/gen.yaml]\n";
        for text in [inline.as_str(), listed] {
            let scene = || Scene::of(text).file("plugins/gen.yaml", plugin);
            let found = find(scene());
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].message.ends_with("to `own/nginx-1.2.3/nginx`"), "{found:?}");
            assert_eq!(under_caret(&found[0]), "https://charts.example");
            let there = scene().file("own/nginx-1.2.3/nginx/Chart.yaml", "");
            assert_eq!(find(there), []);
        }
        let other = plugin.replace("chartHome: own", "chartHome: other");
        let two = Scene::of("generators: [one.yaml, two.yaml]\n")
            .file("one.yaml", plugin)
            .file("two.yaml", &other)
            .file("own/nginx-1.2.3/nginx/Chart.yaml", "");
        let found = find(two);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].path, "two.yaml");
    }

    /// A chart of the tree with more files.
    fn vendored(files: &[(&str, &str)]) -> Scene {
        let scene = Scene::of("helmCharts: [{name: c}]\n").file("charts/c/values.yaml", "");
        files.iter().fold(scene, |scene, (path, text)| scene.file(&format!("charts/c/{path}"), text))
    }

    const REMOTE: &str = "{\n \"$ref\": \"https://h/s.json\"}";

    #[test]
    fn what_a_schema_of_a_chart_refers_to_is_remote() {
        for path in ["values.schema.json", "charts/d/values.schema.json"] {
            let finding = vendored(&[(path, REMOTE)]).one(Rule::RemoteChart);
            assert_eq!(finding.message, "helm fetches `https://h/s.json` when it renders the chart `c`");
            assert_eq!(
                finding.help,
                ["inline it below `$defs`, or remove `values.schema.json` from the vendored chart"]
            );
            assert_eq!(
                (finding.path.as_str(), under_caret(&finding).as_str()),
                (&*format!("charts/c/{path}"), "\"https://h/s.json\"")
            );
        }
        let local =
            vendored(&[("values.schema.json", "{\"$ref\": \"#/$defs/a\"}"), ("files/values.schema.json", REMOTE)]);
        assert_eq!(local.check().findings, []);
        let file = vendored(&[("values.schema.json", "{\"$ref\": \"other.json\"}"), ("other.json", "{}")]);
        assert_eq!(
            file.one(Rule::RemoteChart).message,
            "helm reads `file:///other.json` when it renders the chart `c`"
        );
        let broken = vendored(&[("values.schema.json", "{")]).one(Rule::RemoteChart);
        assert!(
            broken.message.starts_with("helm cannot read `values.schema.json` of the chart `c`: EOF"),
            "{broken:?}"
        );
        assert_eq!(broken.span, None);
        let packed = vendored(&[("charts/d.tgz", "x")]).one(Rule::RemoteChart);
        assert_eq!(packed.path, "charts/c/charts/d.tgz");
    }

    #[test]
    fn a_schema_is_found_once_and_allowed_by_its_url() {
        let scene = || {
            let chart = "helmGlobals: {chartHome: ../charts}\nhelmCharts: [{name: c, valuesFile: v.yaml}]\n";
            let scene = vendored(&[("values.schema.json", REMOTE)]);
            ["a", "b"].into_iter().fold(scene, |scene, root| {
                scene.file(&format!("{root}/kustomization.yaml"), chart).file(&format!("{root}/v.yaml"), "")
            })
        };
        assert!(scene().one(Rule::RemoteChart).fails());
        let allowed = scene().config("allow: [{url: 'https://h/s.json', reason: r}]\n").one(Rule::RemoteChart);
        assert!(allowed.allowed.is_some());
        let other = scene().config("allow: [{url: 'https://h/t.json', reason: r}]\n");
        assert!(find(other)[0].fails());
    }

    #[test]
    fn links_in_a_chart_stay_in_the_repository() {
        let linked = |to: &str| {
            let mut scene = vendored(&[]).file("shared/a.yaml", "");
            scene.tree.link("charts/c/templates/a.yaml", to);
            scene.check().findings
        };
        assert_eq!(linked("../../../shared/a.yaml"), []);
        assert_eq!(linked("../../../shared"), []);
        let message = "the link `charts/c/templates/a.yaml` leads to `/etc/a.yaml`, outside of the repository";
        assert_eq!(linked("/etc/a.yaml")[0].message, message);
        for (to, rule) in [
            ("/etc/a.yaml", Rule::OutOfScope),
            ("../../../../a.yaml", Rule::OutOfScope),
            ("../../../shared/b.yaml", Rule::InvalidKustomization),
            ("a.yaml", Rule::InvalidKustomization),
            ("../..", Rule::InvalidKustomization),
        ] {
            let found = linked(to);
            assert_eq!(found.iter().map(|one| one.rule).collect::<Vec<_>>(), [rule], "{to} {found:?}");
            assert_eq!(under_caret(&found[0]), "{name: c}]", "{to}");
        }
    }

    #[test]
    fn a_place_that_no_commit_holds() {
        let scene = Scene::of(&format!("{CHART}helmGlobals: {{chartHome: ../c}}\n"));
        let found = find(scene);
        assert_eq!(
            found[0].message,
            "kustomize reads the chart `nginx` 1.2.3 of https://charts.example from `../c`, outside of the repository, or downloads it there"
        );
        assert!(!found[0].help[0].contains("git "), "{found:?}");
    }

    #[test]
    fn a_chart_without_a_repository_is_a_path() {
        let text = "helmCharts: [{name: nginx, version: 1.2.3}]\n";
        assert_eq!(find(Scene::of(text)), []);
        let found = Scene::of(text).find(Rule::MissingPath);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].message, "there is no `charts/nginx`, and the chart `nginx` has no `repo`");
        let there = Scene::of(text).file("charts/nginx/values.yaml", "");
        assert_eq!(there.check().findings, []);
        let file = Scene::of(text).file("charts/nginx", "");
        assert_eq!(file.find(Rule::MissingPath).len(), 1);
    }

    #[test]
    fn a_file_is_not_a_chart() {
        let found = Scene::of(CHART).file("charts/nginx-1.2.3/nginx", "").check().findings;
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].message, "`charts/nginx-1.2.3/nginx` is not a directory, so it is not a chart");
    }

    #[test]
    fn the_values_of_a_chart_are_a_file_of_the_root() {
        let scene = |fields: &str, globals: &str, place: &str| {
            let text = format!("helmCharts: [{{name: nginx{fields}}}]\n{globals}");
            Scene::default().file("a/kustomization.yaml", &text).file("a/v.yaml", "").file(place, "")
        };
        let told = |scene: Scene| -> Vec<(Rule, String)> {
            let findings = scene.check().findings.into_iter();
            findings.map(|one| (one.rule, one.message)).collect()
        };
        let chart = "a/charts/nginx/Chart.yaml";
        let missing = (
            Rule::MissingPath,
            "`a/charts/nginx/values.yaml` does not exist, but kustomize reads it for the chart `nginx`".to_owned(),
        );
        for fields in ["", ", valuesInline: {a: b}", ", repo: 'https://h'"] {
            assert_eq!(told(scene(fields, "", chart)), std::slice::from_ref(&missing), "{fields}");
        }
        for fields in [", valuesFile: v.yaml", ", valuesInline: {a: b}, valuesMerge: replace"] {
            assert_eq!(told(scene(fields, "", chart)), [], "{fields}");
        }
        let up = "helmGlobals: {chartHome: ../c}\n";
        let beyond = (
            Rule::OutOfScope,
            "`c/nginx/values.yaml`, the values of the chart `nginx`, is outside of its kustomization root".to_owned(),
        );
        assert_eq!(told(scene("", up, "c/nginx/values.yaml")), [beyond]);
        let any = scene("", up, "c/nginx/values.yaml").config("load-restrictor: none\n");
        assert_eq!(told(any), []);
        assert_eq!(told(scene(", valuesFile: v.yaml", up, "c/nginx/Chart.yaml")), []);
        let abroad = "helmGlobals: {chartHome: /opt/charts}\n";
        assert_eq!(
            told(scene(", valuesFile: v.yaml", abroad, "x")),
            [(Rule::OutOfScope, "the chart `nginx` is expected in `/opt/charts`, outside of the repository".into())]
        );
    }

    #[test]
    fn the_commands_that_bring_in_a_dependency_are_quoted() {
        let chart = "name: web\nversion: 1.0.0\ndependencies: [{name: redis, repository: 'https://charts.example'}]\n";
        let object = super::super::testing::argo("path: my charts/web, targetRevision: main");
        let scene = Scene::default().file("app.yaml", &object).file("my charts/web/Chart.yaml", chart);
        assert_eq!(
            scene.one(Rule::RemoteChart).help,
            [
                "to bring it in, at the top of the repository: helm dependency update 'my charts/web' && git add -f -- ':/my charts/web/charts'"
            ]
        );
    }

    #[test]
    fn what_an_engine_downloads_for_a_chart_of_the_tree_is_found() {
        let scene = |helm: &str, dependency: &str, beside: &str| {
            let chart = format!("apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: [{dependency}]\n");
            let object =
                super::super::testing::argo(&format!("path: charts/web, targetRevision: main, helm: {{{helm}}}"));
            let scene = Scene::default().file("app.yaml", &object).file("charts/web/Chart.yaml", &chart);
            find(scene.file(beside, "x").file("charts/other/Chart.yaml", "name: other\nversion: 1.0.0\n"))
        };
        let says = |found: Vec<Finding>| found.into_iter().map(|one| one.message).collect::<Vec<_>>();
        let redis = "{name: redis, version: 1.x, repository: 'https://me:hunter2@charts.example'}";
        let message = "the chart `charts/web` depends on `redis` 1.x of https://charts.example, which is not in `charts/web/charts`: each build downloads it";
        for (helm, dependency, beside, expected) in [
            ("", "", "x", &[][..]),
            ("valueFiles: [values-prod.yaml, 'secrets://s.yaml']", "", "x", &[]),
            (
                "valueFiles: [a.yaml, 'https://me:hunter2@example.com/v.yaml']",
                "",
                "x",
                &[
                    "the values of the chart `charts/web` come from https://example.com/v.yaml, which each build fetches",
                ],
            ),
            ("", redis, "x", &[message]),
            ("", redis, "charts/web/charts/redis-ha-1.0.0.txt", &[message]),
            ("", redis, "charts/web/charts/redis-1.0.0.tgz", &[]),
            ("", redis, "charts/web/charts/redis/Chart.yaml", &[]),
            ("", "{name: other, version: 1.0.0, repository: 'file://../other'}", "x", &[]),
            (
                "",
                "{name: lib}",
                "x",
                &[
                    "the chart `charts/web` depends on `lib`, which is not in `charts/web/charts`: each build downloads it",
                ],
            ),
        ] {
            assert_eq!(says(scene(helm, dependency, beside)), expected, "{helm} {dependency} {beside}");
        }
    }
}
