//! `remote-chart`: a Helm chart that helm would download.
//!
//! kustomize calls `helm pull` unless the directory of the chart is there: `{chartHome}/{name}-{version}/{name}` with a
//! repository and a version, else `{chartHome}/{name}` (`HelmChartInflationGenerator.go`). Its contents do not matter
//! ([`crate::graph::Named`]). So only the tree decides; a chart that is on disk but not staged does not count. An entry
//! of the lock at the top satisfies the rule. The rule applies below
//! `localized-files` too: a build would fetch what is left there.
//!
//! A chart without a repository that is not there is a path that names nothing: `missing-path`. So is the
//! `values.yaml` of a chart that is there, which kustomize reads like a file of the root; one beyond the root
//! is `out-of-scope`.

use super::{ADD_ALLOW, Context};
use crate::config::{Config, FILE_NAME};
use crate::graph::{self, Noted};
use crate::kustomization::NoteKind;
use crate::message::failure::stage;
use crate::message::finding::{Finding, Rule, Subject};
use crate::message::redact;
use crate::record::{LOCK_NAME, LoadRestrictor};
use crate::tree::absence::Absence;
use crate::tree::{self, Resolved, path};

/// Returns the charts that would be downloaded.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    found(context, Rule::RemoteChart)
}

/// Returns the charts that would be downloaded, but are locked: findings of `locked-reference`.
pub(super) fn find_locked(context: &Context<'_>) -> Vec<Finding> {
    found(context, Rule::LockedReference)
}

fn found(context: &Context<'_>, rule: Rule) -> Vec<Finding> {
    let mut charts = charts(context);
    charts.retain(|chart| chart.is_locked == (rule == Rule::LockedReference));
    charts
        .into_iter()
        .filter_map(|chart| {
            let from = chart.repo?;
            let shown = redact::url(from);
            let version = match chart.version {
                "" => "in its newest version".to_owned(),
                version => version.to_owned(),
            };
            let message = match &chart.place {
                Place::Outside(home) => format!(
                    "the chart `{}` {version} of {shown} is looked for in `{home}`, out of the repository, and downloaded there",
                    chart.name
                ),
                Place::Submodule(submodule) => format!(
                    "the chart `{}` lies in the submodule `{submodule}`, whose files this repository does not hold",
                    chart.name
                ),
                Place::Missing(directory) => format!(
                    "the chart `{}` {version} of {shown} is not in the tree: helm downloads it to `{directory}`",
                    chart.name
                ),
                Place::NoValues(_) | Place::ValuesBeyond(_) => return None,
            };
            let finding = context.at_note(
                rule,
                chart.noted,
                message,
                chart.help(context),
            );
            let finding = Finding {
                reference: [&shown, chart.name, chart.version]
                    .map(str::trim)
                    .join(" ")
                    .trim_end()
                    .to_owned(),
                subject: Subject::Helm {
                    url: shown,
                    chart: chart.name.to_owned(),
                    version: chart.version.to_owned(),
                },
                ..finding
            };
            Some(match chart.place {
                Place::Submodule(_) => Context::warning(finding),
                _ => finding,
            })
        })
        .collect()
}

/// Returns the charts that must be there, and are not: findings of `missing-path`.
pub(super) fn find_missing(context: &Context<'_>) -> Vec<Finding> {
    charts(context)
        .into_iter()
        .filter(|chart| chart.repo.is_none())
        .filter_map(|chart| {
            let Place::Missing(directory) = &chart.place else {
                return None;
            };
            let message = format!(
                "there is no `{directory}`, and the chart `{}` names no repository to download it from",
                chart.name
            );
            Some(Finding {
                subject: Subject::Path { path: directory.clone() },
                ..chart.local(context, Rule::MissingPath, message, chart.help(context))
            })
        })
        .collect()
}

/// Returns the errors of kustomize about charts that need no download: findings of this rule, `missing-path` or
/// `out-of-scope`.
pub(super) fn find_refused(context: &Context<'_>, rule: Rule) -> Vec<Finding> {
    let own = "or name a `valuesFile` below the kustomization root".to_owned();
    all(context)
        .into_iter()
        .filter_map(|chart| {
            let (wrong, message, help) = match &chart.place {
                Place::NoValues(path) => (
                    Rule::MissingPath,
                    format!("there is no `{path}`, which kustomize reads for the chart `{}`", chart.name),
                    vec!["add it, be it empty".to_owned(), own.clone()],
                ),
                Place::ValuesBeyond(path) => (
                    Rule::OutOfScope,
                    format!(
                        "`{path}`, the values of the chart `{}`, lies outside of its kustomization root",
                        chart.name
                    ),
                    vec![
                        "name a copy of it below the kustomization root as `valuesFile`".to_owned(),
                        "or put the chart home below the kustomization root".to_owned(),
                    ],
                ),
                Place::Outside(home) if chart.repo.is_none() => (
                    Rule::OutOfScope,
                    format!("the chart `{}` is looked for in `{home}`, out of the repository", chart.name),
                    chart.help(context),
                ),
                _ => return None,
            };
            (wrong == rule).then(|| chart.local(context, rule, message, help))
        })
        .collect()
}

/// A chart that helm or kustomize does not find.
struct Chart<'a> {
    noted: &'a Noted,
    repo: Option<&'a str>,
    name: &'a str,
    version: &'a str,
    place: Place,
    /// Whether the lock holds it, and no exception lets it stay remote.
    is_locked: bool,
}

/// Where a chart is looked for.
enum Place {
    /// At this path, from the top, and there is none.
    Missing(String),
    /// In this submodule.
    Submodule(String),
    /// Below this chart home, which lies out of the repository.
    Outside(String),
    /// There is one, but not its values, at this path.
    NoValues(String),
    /// There is one, but its values, at this path, lie beyond the root.
    ValuesBeyond(String),
}

impl Place {
    fn is_chart(&self) -> bool {
        matches!(self, Place::NoValues(_) | Place::ValuesBeyond(_))
    }
}

/// Returns the charts that are not in the tree.
fn charts<'a>(context: &Context<'a>) -> Vec<Chart<'a>> {
    let mut charts = all(context);
    charts.retain(|chart| !chart.place.is_chart());
    charts
}

/// Returns the charts with which something is wrong.
fn all<'a>(context: &Context<'a>) -> Vec<Chart<'a>> {
    let named = context.graph.named_charts();
    let has_target = context.lock().is_some_and(|lock| lock.target.is_some());
    let lock = context.lock().filter(|_| !has_target);
    named
        .into_iter()
        .filter_map(|chart| {
            let wanted = chart.wanted();
            let is_locked =
                wanted.filter(|wanted| lock.is_some_and(|lock| wanted.locked(lock).is_some())).is_some_and(|wanted| {
                    let (subject, lines) = (wanted.subject(), context.graph.lines_of(chart.note));
                    let graph = context.graph;
                    let left = graph.exception(context.config, Rule::RemoteChart, &subject, lines);
                    left.is_none()
                });
            let place = match chart.place {
                graph::Place::There(path) => match tree::resolve(context.tree, &path) {
                    Ok(Resolved::Directory { .. }) => values(context, chart.noted, &path)?,
                    // helm is called for what is not a directory, too.
                    _ => Place::Missing(path),
                },
                graph::Place::Outside => Place::Outside(chart.home.0.to_owned()),
                graph::Place::Submodule(path) => Place::Submodule(path),
                graph::Place::Missing(path) => Place::Missing(path),
            };
            Some(Chart {
                noted: chart.noted,
                repo: chart.repo,
                name: chart.name,
                version: chart.version,
                place,
                is_locked,
            })
        })
        .collect()
}

/// Returns what is wrong with the values of a chart that is there.
fn values(context: &Context<'_>, noted: &Noted, chart: &str) -> Option<Place> {
    if let NoteKind::RemoteChart { values_file: true, .. } | NoteKind::LocalChart { values_file: true, .. } =
        &noted.note.kind
    {
        return None;
    }
    let place = path::join(chart, "values.yaml");
    let real = match tree::resolve(context.tree, &place) {
        Ok(Resolved::File { path, .. }) => path,
        Ok(Resolved::Leaves { .. }) => return Some(Place::ValuesBeyond(place)),
        Ok(_) => return Some(Place::NoValues(place)),
        Err(_) => return None,
    };
    let bound = match context.config.load_restrictor {
        LoadRestrictor::None => "",
        LoadRestrictor::RootOnly => &context.graph.roots[noted.root].directory,
    };
    (!path::is_in(path::parent(&real), bound)).then_some(Place::ValuesBeyond(place))
}

impl Chart<'_> {
    /// Returns whether it is named in a localized file, which is not edited here.
    fn is_owned(&self, context: &Context<'_>) -> bool {
        context.is_owned(context.path(self.noted.file))
    }

    /// Makes a finding about a chart in the tree.
    fn local(&self, context: &Context<'_>, rule: Rule, message: String, help: Vec<String>) -> Finding {
        Finding { reference: self.name.to_owned(), ..context.at_note(rule, self.noted, message, help) }
    }

    fn help(&self, context: &Context<'_>) -> Vec<String> {
        if self.is_owned(context) {
            let bring = format!("localize again, with `helm: true` in {FILE_NAME}");
            return vec![bring, ADD_ALLOW.to_owned()];
        }
        let directory = match &self.place {
            Place::Missing(directory) | Place::NoValues(directory) | Place::ValuesBeyond(directory) => directory,
            Place::Submodule(_) => {
                return vec!["copy the chart into this repository".to_owned()];
            }
            Place::Outside(_) => {
                return vec!["name a directory of this repository in `chartHome`, and put the chart there".to_owned()];
            }
        };
        let add = stage([directory]);
        let absence = context.absences.map(|absences| {
            let inside = path::join(directory, "Chart.yaml");
            (absences.is_on_disk(directory), absences.of(&inside))
        });
        if let Some((true, absence)) = absence {
            return vec![match absence {
                Absence::Ignored(place, pattern) => {
                    format!("it is there, but kept out of git by `{pattern}` ({place}): {add}")
                }
                _ => format!("it is there, but not added: {add}"),
            }];
        }
        if self.repo.is_none() {
            return vec!["put the chart there, or name its `repo`".to_owned()];
        }
        vec![lock_charts(context.config), ADD_ALLOW.to_owned()]
    }
}

/// Returns how the charts of the repository are locked.
pub(super) fn lock_charts(config: &Config) -> String {
    let first = configure(config);
    let stage = stage(first.map(|_| FILE_NAME).into_iter().chain([LOCK_NAME]));
    format!("{}lock it: git kustomize-localize lock && {stage}", first.unwrap_or_default())
}

/// Returns what has to be done first, so that charts are brought in.
fn configure(config: &Config) -> Option<&'static str> {
    (!config.helm).then_some("write `helm: true` into .kustomize-localize, and ")
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
        let leave = ADD_ALLOW;
        let lock = "lock it: git kustomize-localize lock && git add -f -- ";
        assert_eq!(
            finding.help,
            [
                &format!(
                    "write `helm: true` into .kustomize-localize, and {lock}:/.kustomize-localize :/kustomize-localize.lock"
                ),
                leave
            ]
        );
        let help = |config: &str| {
            let scene = Scene::default().file("apps/web/kustomization.yaml", CHART);
            find(scene.config(config)).remove(0).help
        };
        assert_eq!(help("helm: true\n"), [&format!("{lock}:/kustomize-localize.lock"), leave]);
        assert_eq!(finding.field, "helmCharts[0]");
        assert_eq!(finding.reference, "https://charts.example nginx 1.2.3");
        assert_eq!(under_caret(finding), "https://charts.example");
        assert_eq!(
            finding.subject,
            Subject::Helm { url: "https://charts.example".into(), chart: "nginx".into(), version: "1.2.3".into() }
        );
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
        assert_eq!(find(scene().file("charts/nginx/Chart.yaml", "")), []);
        let found = find(scene());
        assert_eq!(
            found[0].message,
            "the chart `nginx` in its newest version of oci://ghcr.io/o/ is not in the tree: helm downloads it to `charts/nginx`"
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

    #[test]
    fn a_place_that_no_commit_holds() {
        let scene = Scene::of(&format!("{CHART}helmGlobals: {{chartHome: ../c}}\n"));
        let found = find(scene);
        assert_eq!(
            found[0].message,
            "the chart `nginx` 1.2.3 of https://charts.example is looked for in `../c`, out of the repository, and downloaded there"
        );
        assert!(!found[0].help[0].contains("git "), "{found:?}");
    }

    #[test]
    fn a_chart_without_a_repository_is_a_path() {
        let text = "helmCharts: [{name: nginx, version: 1.2.3}]\n";
        assert_eq!(find(Scene::of(text)), []);
        let found = Scene::of(text).find(Rule::MissingPath);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            found[0].message,
            "there is no `charts/nginx`, and the chart `nginx` names no repository to download it from"
        );
        let there = Scene::of(text).file("charts/nginx/values.yaml", "");
        assert_eq!(there.check().findings, []);
        let file = Scene::of(text).file("charts/nginx", "");
        assert_eq!(file.find(Rule::MissingPath).len(), 1);
    }

    #[test]
    fn a_file_is_not_a_chart() {
        let found = find(Scene::of(CHART).file("charts/nginx-1.2.3/nginx", ""));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.contains("is not in the tree"), "{found:?}");
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
            "there is no `a/charts/nginx/values.yaml`, which kustomize reads for the chart `nginx`".to_owned(),
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
            "`c/nginx/values.yaml`, the values of the chart `nginx`, lies outside of its kustomization root".to_owned(),
        );
        assert_eq!(told(scene("", up, "c/nginx/values.yaml")), [beyond]);
        let any = scene("", up, "c/nginx/values.yaml").config("load-restrictor: none\n");
        assert_eq!(told(any), []);
        assert_eq!(told(scene(", valuesFile: v.yaml", up, "c/nginx/Chart.yaml")), []);
        let abroad = "helmGlobals: {chartHome: /opt/charts}\n";
        assert_eq!(
            told(scene(", valuesFile: v.yaml", abroad, "x")),
            [(Rule::OutOfScope, "the chart `nginx` is looked for in `/opt/charts`, out of the repository".into())]
        );
    }
}
