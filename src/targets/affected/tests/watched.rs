//! The paths that Argo CD has to watch.

use super::*;

/// Returns a world with applications of Argo CD that use what does not lie in their directories; `annotated` gives each
/// its annotation.
fn that_share(annotated: impl Fn(&str) -> String) -> World {
    let here = "repoURL: 'https://github.com/acme/fleet', targetRevision: main";
    let values = "valueFiles: [own.yaml, ../../values/prod.yaml, /values/all.yaml, '../../values/*/x.yaml']";
    let more = "valueFiles: [$values/values/other.yaml], fileParameters: [{name: a, path: ../../values/file.txt}]";
    let objects = [
        ("web", format!("source: {{{here}, path: apps/web}}")),
        ("linked", format!("source: {{{here}, path: apps/linked}}")),
        ("shop", format!("source: {{{here}, path: charts/shop, helm: {{{values}}}}}")),
        ("many", format!("sources: [{{{here}, path: charts/many, helm: {{{more}}}}}, {{{here}, ref: values}}]")),
    ];
    let objects = objects.map(|(name, spec)| {
        let annotation = format!("argocd.argoproj.io/manifest-generate-paths: '{}'", annotated(name));
        let text = format!("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, annotations: {{{annotation}}}}}\nspec: {{{spec}}}\n");
        (format!("argo/{name}.yaml"), (text, Some(false)))
    });
    let mut all = world(&[
        (
            "apps/web/kustomization.yaml",
            "resources: [../base]\nhelmGlobals: {chartHome: ../../charts}\nhelmCharts: [{name: web, valuesFile: ../../values/web.yaml}]\n",
        ),
        ("apps/base/kustomization.yaml", "resources: [map.yaml]\n"),
        ("apps/base/map.yaml", MAP),
        ("charts/web/Chart.yaml", "name: web\nversion: 1.0.0\n"),
        ("charts/web/templates/map.yaml", MAP),
        ("real/linked/kustomization.yaml", "resources: [map.yaml]\n"),
        ("real/linked/map.yaml", MAP),
        (
            "charts/shop/Chart.yaml",
            "name: shop\nversion: 1.0.0\ndependencies: [{name: common, repository: file://../common}]\n",
        ),
        (
            "charts/common/Chart.yaml",
            "name: common\nversion: 1.0.0\ndependencies: [{name: shop, repository: file://../shop}]\n",
        ),
        ("charts/many/Chart.yaml", "name: many\nversion: 1.0.0\n"),
        ("values/web.yaml", "a: b\n"),
        ("values/prod.yaml", "a: b\n"),
        ("values/all.yaml", "a: b\n"),
        ("values/some/x.yaml", "a: b\n"),
        ("values/other.yaml", "a: b\n"),
        ("values/file.txt", "a\n"),
        ("README.md", "No application uses it.\n"),
    ]);
    all.extend(objects);
    all.insert("apps/linked".to_owned(), ("../real/linked".to_owned(), None));
    all
}

/// Returns whether Argo CD looks again at an application when a file changes, as its webhook decides that.
fn is_watched(value: &str, own: &str, file: &str) -> bool {
    value.split(';').any(|item| {
        let item = item.strip_prefix('/').unwrap_or(own);
        file == item || file.strip_prefix(item).is_some_and(|rest| rest.starts_with('/'))
    })
}

#[test]
fn what_argo_cd_watches_covers_every_file_that_makes_a_difference() {
    let old = that_share(|_| ".".to_owned());
    let DeployedTree { explored, targets: found } = side(&tree(&old));
    let values = targets::generate_paths(&explored.graph, &found).unwrap();
    let values: BTreeMap<String, String> = values.into_iter().map(|(object, value)| (object.name, value)).collect();
    assert_eq!(values.len(), 4, "{values:?}");
    let mut uses = BTreeSet::new();
    for file in old.keys().filter(|file| !file.starts_with("argo/")) {
        let mut new = old.clone();
        let (text, mode) = &old[file];
        new.insert(file.clone(), (format!("{text}# changed\n"), Some(mode.unwrap_or_default())));
        for one in compared(&old, &new).targets {
            let name = one.target.object.name;
            let own =
                if ["web", "linked"].contains(&&*name) { format!("apps/{name}") } else { format!("charts/{name}") };
            assert!(is_watched(&values[&name], &own, file), "{name} {}: {file}", values[&name]);
            uses.insert(format!("{name} {file}"));
        }
    }
    let expected = [
        ("linked", "apps/linked real/linked/kustomization.yaml real/linked/map.yaml"),
        ("many", "charts/many/Chart.yaml values/file.txt values/other.yaml"),
        (
            "shop",
            "charts/common/Chart.yaml charts/shop/Chart.yaml values/all.yaml values/file.txt values/other.yaml values/prod.yaml values/some/x.yaml values/web.yaml",
        ),
        (
            "web",
            "apps/base/kustomization.yaml apps/base/map.yaml apps/web/kustomization.yaml charts/web/Chart.yaml charts/web/templates/map.yaml values/web.yaml",
        ),
    ];
    let expected = expected.iter().flat_map(|(name, all)| all.split(' ').map(move |file| format!("{name} {file}")));
    assert_eq!(uses, expected.collect());
    // What the help says is enough.
    let DeployedTree { explored, targets: found } = side(&tree(&that_share(|name| values[name].clone())));
    for (target, here) in found.local_targets() {
        let unwatched = targets::unwatched(&explored.graph, &found, target, here).unwrap();
        assert!(unwatched.is_empty(), "{}: {unwatched:?}", target.object.name);
    }
}
