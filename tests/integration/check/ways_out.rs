//! The ways out that findings print: the hook refuses a commit, and lets it pass after each of them, wherever it is
//! run.

use std::fs;

use super::{commands, copy_of, findings, shell};
use crate::support::{Kustomize, Repo, Sandbox, World, deployment, rows};

const FILE: &str = "https://files.example.com/v1/app.yaml";
const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";
const ROOT: &str = "resources: [map.yaml]\n";
const BASE: &str = "resources: [../base]\n";

/// Files by their paths. A text that begins with `-> ` is a link, one that begins with `#!` a program.
type Files<'a> = &'a [(&'a str, &'a str)];

/// An internet, and the programs that commands call.
fn world() -> World {
    let world = World::acme();
    world.sandbox.offer_itself();
    if let Some(kustomize) = Kustomize::find() {
        world.sandbox.offer("kustomize", kustomize.program());
    }
    // The archive that `helm pull` leaves behind, and that a repository serves.
    let make = "mkdir nginx && printf 'name: nginx\\nversion: 1.2.3\\n' > nginx/Chart.yaml && echo 'a: b' > nginx/values.yaml && tar -czf nginx-1.2.3.tgz nginx && rm -r nginx";
    world.sandbox.script("helm", &format!("test \"$1 $2\" = 'pull --destination' || exit 64\ncd \"$3\" && {make}"));
    let made = world.sandbox.path("made");
    fs::create_dir(&made).unwrap();
    assert!(world.sandbox.command("sh", &made).args(["-c", make]).status().unwrap().success());
    world.file("https://charts.example/nginx.tgz", fs::read(made.join("nginx-1.2.3.tgz")).unwrap());
    world.file("https://charts.example/index.yaml", "entries: {nginx: [{version: 1.2.3, urls: [nginx.tgz]}]}\n");
    world.file("https://files.example.com/latest/app.yaml", deployment("app"));
    world
}

fn write(repo: &Repo, files: Files) {
    for (path, text) in files {
        match text.strip_prefix("-> ") {
            Some(target) => repo.symlink(path, target),
            None if text.starts_with("#!") => repo.write_executable(path, text),
            None => repo.write(path, text),
        }
    }
}

/// Stages files in a new repository with the hook, writes others beside them, and returns every command that the
/// refused commit leads to.
#[track_caller]
fn blocked(sandbox: &Sandbox, name: &str, staged: Files, beside: Files) -> (Repo, Vec<String>) {
    let repo = sandbox.repo(name);
    let head = repo.commit("begin");
    repo.run(&["hook", "install"]).success();
    write(&repo, staged);
    repo.git(&["add", "-f", "--all"]);
    write(&repo, beside);
    repo.try_git(&["commit", "-q", "-m", "refused"]).fails(1);
    assert_eq!(repo.id("HEAD"), head);
    let commands = commands(&findings(&repo, &["--staged"]));
    (repo, commands)
}

/// Takes each way out in a copy of the repository, at the top or elsewhere in turn. The commit must then pass, and
/// leave nothing to find and nothing else behind.
#[track_caller]
fn each_leads_out(repo: &Repo, commands: &[String]) {
    for (number, command) in commands.iter().enumerate() {
        let name = format!("{}-{number}", repo.path().file_name().unwrap().display());
        let at_top = name.bytes().map(usize::from).sum::<usize>().is_multiple_of(2);
        let (copy, place) = (copy_of(repo, &name), if at_top { "" } else { "in side/deep" });
        fs::create_dir_all(copy.path().join(place)).unwrap();
        shell(&copy, place, command).success();
        let done = copy.try_git(&["commit", "-q", "-m", "mended"]);
        assert_eq!(done.status, 0, "{command}: {done:?}");
        assert_eq!(findings(&copy, &["--rev", "HEAD"]).len(), 0, "{command}");
        assert_eq!(copy.git(&["status", "--porcelain"]), "", "{command}");
    }
}

/// Asserts that each of these is refused, with this many commands, and that each of them leads out.
#[track_caller]
fn ways_out(rows: &[(Files, Files, usize)]) {
    let world = world();
    for (number, (staged, beside, count)) in self::rows(rows.iter().enumerate(), 2) {
        let name = format!("row-{number}");
        let (repo, commands) = blocked(&world.sandbox, &name, staged, beside);
        assert_eq!(commands.len(), *count, "{staged:?}: {commands:#?}");
        each_leads_out(&repo, &commands);
    }
}

#[test]
fn of_a_missing_path() {
    let function = "apiVersion: x/v1\nkind: Gen\nmetadata:\n  name: g\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: ./bin/gen}\n";
    let chart = |repo: &str| format!("helmCharts: [{{name: nginx, version: 1.2.3, releaseName: a{repo}}}]\n");
    let (local, remote) = (chart(""), chart(", repo: 'https://charts.example'"));
    let excluded = (".git/info/exclude", "charts/\n");
    let [of_local, of_remote] = ["charts/nginx", "charts/nginx-1.2.3/nginx"]
        .map(|place| ["Chart.yaml", "values.yaml"].map(|name| format!("{place}/{name}")));
    let program = [("a/kustomization.yaml", "generators: [fn.yaml]\n"), ("a/fn.yaml", function)];
    let mut rows: Vec<(Files, Files, usize)> = vec![
        (&[("a b/kustomization.yaml", ROOT)], &[("a b/map.yaml", MAP)], 1),
        (&[("a/kustomization.yaml", BASE)], &[("base/kustomization.yaml", ROOT), ("base/map.yaml", MAP)], 1),
        (&[("a/kustomization.yaml", BASE), ("base/map.yaml", MAP)], &[("base/kustomization.yml", ROOT)], 1),
        (&program, &[("a/bin/gen", "#!/bin/sh\n")], 1),
    ];
    // On disk, with a repository and without; kustomize reads the values of a chart, even of one that has none.
    let on_disk = [of_local, of_remote].map(|[chart, values]| (chart, values));
    let beside = on_disk.each_ref().map(|(chart, values)| [(&**chart, "name: nginx\n"), (&**values, ""), excluded]);
    let staged = [&local, &remote].map(|text| [("kustomization.yaml", &**text)]);
    rows.push((&staged[0], &beside[0], 1));
    rows.push((&staged[1], &beside[1], 1));
    ways_out(&rows);
}

#[test]
fn of_what_is_remote() {
    let every_field = format!(
        "configMapGenerator: [{{name: a, files: [key={FILE}]}}]\npatches: [{{path: {FILE}}}]\nresources: [{FILE}]\n"
    );
    let plugin =
        format!("apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {{name: a}}\nname: a\nfiles: [{FILE}]\n");
    let overlay = format!("resources: [../base, {FILE}]\n");
    ways_out(&[
        (&[("apps/web/kustomization.yaml", "resources:\n- https://github.com/acme/lib//web?ref=v1\n")], &[], 2),
        (&[("kustomization.yaml", "resources:\n- https://github.com/acme/lib\n")], &[], 2),
        (&[("kustomization.yaml", "resources: [https://files.example.com/latest/app.yaml]\n")], &[], 2),
        (
            &[(".gitignore", "build/\nlocalized-files/\n*.lock\n"), ("build/-a b/kustomization.yaml", &every_field)],
            &[],
            2,
        ),
        (
            &[
                ("overlay/kustomization.yaml", &overlay),
                (
                    "base/kustomization.yaml",
                    "resources: [../base2]\ngenerators: [gen.yaml]\ncomponents: ['https://github.com/acme/lib//part?ref=v1']\n",
                ),
                ("base/gen.yaml", &plugin),
                ("base2/kustomization.yaml", "resources: [a.yaml]\n"),
                ("base2/a.yaml", MAP),
            ],
            &[],
            3,
        ),
    ]);
}

#[test]
fn of_a_chart_once_the_configuration_asks_for_it() {
    let world = world();
    for (number, repo) in ["https://charts.example", "oci://ghcr.io/acme"].iter().enumerate() {
        for policy in ["", "# ours\n"] {
            let chart = format!("helmCharts:\n- {{name: nginx, version: 1.2.3, releaseName: a, repo: '{repo}'}}\n");
            let files =
                [(".gitignore", "charts/\n"), (".kustomize-localize", policy), ("a b/kustomization.yaml", &chart)];
            let name = format!("chart-{number}-{}", policy.len());
            let (work, commands) = blocked(&world.sandbox, &name, &files, &[]);
            assert_eq!(commands.len(), 1, "{commands:#?}");
            work.write(".kustomize-localize", format!("{policy}helm: true\n"));
            each_leads_out(&work, &commands);
        }
    }
}

#[test]
fn of_a_stale_lock() {
    let world = world();
    let work = &world.work;
    world.commit(&[(
        "kustomization.yaml",
        &format!("resources: [{FILE}, 'https://github.com/acme/lib//web?ref=v1']\n"),
    )]);
    work.run(&["lock"]).success();
    work.commit("locked");
    assert_eq!(findings(work, &["--staged"]).len(), 0);
    work.write("kustomization.yaml", format!("resources: [{FILE}]\n"));
    work.git(&["add", "--all"]);
    let stale = findings(work, &["--staged"]);
    let stale: Vec<_> = stale.iter().map(|one| &one["reference"]).collect();
    // Entries that only the first of them names are stale as well.
    let wanted = ["deep", "lib"].map(|name| format!("https://github.com/acme/{name}?ref=v1"));
    assert_eq!(stale, wanted.each_ref());
    let commands = commands(&findings(work, &["--staged"]));
    assert_eq!(commands.len(), 1);
    each_leads_out(work, &commands);
}
