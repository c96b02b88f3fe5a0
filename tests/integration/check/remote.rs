//! `check`: what is remote, and every way out of it that is printed, taken.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Kustomize, Memory, Output, Repo, Running, World, config_map, deployment};

const FILE: &str = "https://files.example.com/v1/app.yaml";

/// An internet with a repository that names another one, a repository of one file, and a file; and the
/// program on `PATH`.
fn world() -> World {
    let world = World::acme();
    world.sandbox.offer_itself();
    // The archive that `helm pull` leaves behind.
    world.sandbox.script(
        "helm",
        "test \"$1 $2\" = 'pull --destination' || exit 64\n\
         cd \"$3\" && mkdir nginx && printf 'name: nginx\\nversion: 1.2.3\\n' > nginx/Chart.yaml && echo 'a: b' > nginx/values.yaml && tar -czf nginx-1.2.3.tgz nginx && rm -r nginx",
    );
    world.file(
        "https://files.example.com/latest/app.yaml",
        deployment("app"),
    );
    world
}

/// Returns the findings of a check of the index, as JSON.
#[track_caller]
fn findings(repo: &Repo) -> Vec<Value> {
    let output = repo.run(&["check", "--format", "json"]);
    assert!(output.status < 2, "{output:?}");
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    report["findings"].as_array().unwrap().clone()
}

/// Returns the commands that the findings print: what follows a phrase and a colon.
fn commands(findings: &[Value]) -> Vec<String> {
    let mut commands: Vec<String> = findings
        .iter()
        .flat_map(|finding| finding["help"].as_array().unwrap())
        .filter_map(|help| {
            let help = help.as_str().unwrap();
            ["git ", "touch "].iter().find_map(|program| {
                let at = help.find(&format!(": {program}"))?;
                Some(help[at + 2..].to_owned())
            })
        })
        .collect();
    commands.sort();
    commands.dedup();
    commands
}

fn shell(world: &World, directory: &Path, command: &str) -> Output {
    let mut shell = world.sandbox.command("sh", directory);
    Running::start(shell.args(["-c", command])).wait()
}

/// Commits nothing but what is not remote yet, installs the hook, stages everything, and returns every
/// command that the refused commit leads to.
#[track_caller]
fn blocked(world: &World, files: &[(&str, &str)]) -> Vec<String> {
    let work = &world.work;
    work.git(&["commit", "-q", "--allow-empty", "-m", "begin"]);
    work.run(&["hook", "install"]).success();
    for (path, text) in files {
        work.write(path, text);
    }
    work.git(&["add", "-f", "--all"]);
    let before = work.id("HEAD");
    work.try_git(&["commit", "-q", "-m", "remote"]).fails(1);
    assert_eq!(work.id("HEAD"), before);
    commands(&findings(work))
}

/// Takes each way out in a copy of the repository, at the top and elsewhere; the commit must then pass, and leave
/// nothing to find.
#[track_caller]
fn each_leads_out(world: &World, commands: &[String]) {
    let places = ["", "elsewhere/deep"];
    let ways = commands
        .iter()
        .flat_map(|command| places.map(|place| (command, place)));
    for (number, (command, place)) in ways.enumerate() {
        let copy = world.sandbox.path(&format!("way-{number}"));
        let copied = std::process::Command::new("cp")
            .arg("-R")
            .args([world.work.path(), &copy])
            .status();
        assert!(copied.unwrap().success());
        let repo = Repo::new(&world.sandbox, copy);
        fs::create_dir_all(repo.path().join(place)).unwrap();
        shell(world, &repo.path().join(place), command).success();
        repo.git(&["commit", "-q", "-m", "localized"]);
        let left = findings(&repo);
        assert_eq!(left, [Value::Null; 0], "{command}");
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "{command}");
    }
}

/// Asserts that these files are refused, with this many different commands, and that each leads out.
#[track_caller]
fn ways_out(files: &[(&str, &str)], count: usize) -> Vec<String> {
    let world = world();
    let commands = blocked(&world, files);
    assert_eq!(commands.len(), count, "{commands:#?}");
    each_leads_out(&world, &commands);
    commands
}

#[test]
fn the_way_out_of_a_remote_root() {
    let commands = ways_out(
        &[(
            "apps/web/kustomization.yaml",
            "resources:\n- https://github.com/acme/lib//web?ref=v1\n",
        )],
        2,
    );
    assert_eq!(
        commands,
        [
            "git kustomize-localize --in-place --no-commit :/apps/web && git add -f -- :/apps/web/kustomization.yaml :/apps/web/localized-files :/kustomize-localize.lock",
            "git kustomize-localize lock && git add -f -- :/kustomize-localize.lock",
        ]
    );
}

#[test]
fn the_way_out_of_a_remote_root_without_a_ref() {
    ways_out(
        &[(
            "kustomization.yaml",
            "resources:\n- https://github.com/acme/lib\n",
        )],
        2,
    );
}

#[test]
fn a_reference_that_floats_is_one_finding() {
    let world = world();
    let work = &world.work;
    let told = || {
        let found = findings(work);
        let found = found.iter().filter(|one| one["allowed"].is_null());
        found
            .map(|one| format!("{}[{}]", one["severity"], one["rule"]).replace('"', ""))
            .collect::<Vec<_>>()
    };
    for reference in ["", "?ref=main"] {
        let write = |comment: &str| {
            let text =
                format!("resources:\n- https://github.com/acme/lib//web{reference}{comment}\n");
            work.write("kustomization.yaml", text);
            work.git(&["add", "--all"]);
        };
        // What nothing holds is remote. That it floats, too, is no second thing to do.
        write("");
        assert_eq!(told(), ["error[remote-reference]"]);
        let no_allow = work.run(&["check", "--no-allow"]);
        assert_eq!(no_allow.fails(1).stdout.matches("error[").count(), 1);
        // An exception leaves it remote.
        write(" # kustomize-localize: allow[remote-reference] ours");
        assert_eq!(told(), ["warning[floating-ref]"]);
        work.run(&["check"]).success();
        write(" # kustomize-localize: allow[remote-reference, floating-ref] ours");
        assert_eq!(told(), [""; 0]);
        // What matters less does not stand for what matters more.
        write("");
        let rules = "rules: {remote-reference: warning, floating-ref: error}\n";
        work.write(".kustomize-localize", rules);
        work.git(&["add", "--all"]);
        let both = ["error[floating-ref]", "warning[remote-reference]"];
        assert_eq!(BTreeSet::from_iter(told()), both.map(str::to_owned).into());
        work.run(&["check"]).fails(1);
        work.git(&["rm", "--quiet", "-f", ".kustomize-localize"]);
        // What the lock holds does not float.
        write("");
        work.run(&["lock"]).success();
        work.git(&["add", "--all"]);
        assert_eq!(told(), [""; 0]);
        work.git(&["rm", "--quiet", "-f", "kustomize-localize.lock"]);
    }
}

#[test]
fn the_way_out_of_remote_files_in_an_ignored_directory() {
    ways_out(
        &[
            (".gitignore", "build/\nlocalized-files/\n*.lock\n"),
            (
                "build/-a b/kustomization.yaml",
                &format!(
                    "configMapGenerator: [{{name: a, files: [key={FILE}]}}]\npatches: [{{path: {FILE}}}]\nresources: [{FILE}]\n"
                ),
            ),
        ],
        2,
    );
}

#[test]
fn the_way_out_of_a_file_that_moves() {
    ways_out(
        &[(
            "kustomization.yaml",
            "resources: [https://files.example.com/latest/app.yaml]\n",
        )],
        2,
    );
}

#[test]
fn the_way_out_of_an_overlay_and_its_base() {
    let commands = ways_out(
        &[
            (
                "overlay/kustomization.yaml",
                &format!("resources: [../base, {FILE}]\n"),
            ),
            (
                "base/kustomization.yaml",
                "resources: [../base2]\ngenerators: [gen.yaml]\ncomponents: ['https://github.com/acme/lib//part?ref=v1']\n",
            ),
            (
                "base/gen.yaml",
                &format!(
                    "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {{name: a}}\nname: a\nfiles: [{FILE}]\n"
                ),
            ),
            ("base2/kustomization.yaml", "resources: [a.yaml]\n"),
            ("base2/a.yaml", &config_map("a")),
        ],
        3,
    );
    // With the base alone, what the overlay names is in the lock.
    assert!(commands[0].contains("--no-commit :/base "), "{commands:#?}");
}

#[test]
fn the_way_out_of_charts() {
    let chart = |repo: &str| {
        format!("helmCharts:\n- {{name: nginx, version: 1.2.3, releaseName: a{repo}}}\n")
    };
    for repo in [
        ", repo: 'https://charts.example'",
        ", repo: 'oci://ghcr.io/acme'",
    ] {
        for config in ["", "locked: error\n"] {
            let world = world();
            let commands = blocked(
                &world,
                &[
                    (".gitignore", "charts/\n"),
                    (".kustomize-localize", config),
                    ("a b/kustomization.yaml", &chart(repo)),
                ],
            );
            assert_eq!(commands.len(), 1, "{commands:#?}");
            let said = findings(&world.work)[0]["help"][0].to_string();
            assert!(said.starts_with("\"write `helm: true` into"), "{said}");
            let config = format!("{config}helm: true\n");
            world.work.write(".kustomize-localize", config);
            each_leads_out(&world, &commands);
        }
    }
    // kustomize reads the values of a chart, even of one that has none.
    let taken = ways_out(
        &[
            ("a b/kustomization.yaml", &chart("")),
            ("a b/charts/nginx/Chart.yaml", "name: nginx\n"),
        ],
        1,
    );
    assert!(taken[0].starts_with("touch "), "{taken:?}");
    // On disk already, but not staged: with a repository and without.
    for (repo, place) in [
        (
            ", repo: 'https://charts.example'",
            "charts/nginx-1.2.3/nginx",
        ),
        ("", "charts/nginx"),
    ] {
        let world = world();
        world
            .work
            .write(&format!("{place}/Chart.yaml"), "name: nginx\n");
        world.work.write(&format!("{place}/values.yaml"), "");
        world.work.write(".git/info/exclude", "charts/\n");
        world.work.write("kustomization.yaml", chart(repo));
        world.work.git(&["add", "kustomization.yaml"]);
        let commands = commands(&findings(&world.work));
        assert_eq!(commands, [format!("git add -f -- :/{place}")]);
        each_leads_out(&world, &commands);
    }
}

#[test]
fn the_way_out_of_a_program_that_is_not_staged() {
    let world = world();
    let files = [
        ("a/kustomization.yaml", "generators: [fn.yaml]\n"),
        (
            "a/fn.yaml",
            "apiVersion: x/v1\nkind: Gen\nmetadata:\n  name: g\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: ./bin/gen}\n",
        ),
    ];
    for (path, text) in files {
        world.work.write(path, text);
    }
    world.work.git(&["add", "--all"]);
    world.work.write_executable("a/bin/gen", "#!/bin/sh\n");
    let findings = findings(&world.work);
    assert_eq!(findings[0]["rule"], "missing-path");
    assert_eq!(
        findings[0]["help"],
        serde_json::json!(["git add -f -- :/a/bin/gen"])
    );
    each_leads_out(&world, &["git add -f -- :/a/bin/gen".to_owned()]);
}

#[test]
fn the_way_out_of_a_stale_lock() {
    let world = world();
    world.commit(&[(
        "kustomization.yaml",
        &format!("resources: [{FILE}, 'https://github.com/acme/lib//web?ref=v1']\n"),
    )]);
    world.work.run(&["lock"]).success();
    world.work.commit("locked");
    assert_eq!(findings(&world.work), [Value::Null; 0]);
    world
        .work
        .write("kustomization.yaml", format!("resources: [{FILE}]\n"));
    world.work.git(&["add", "--all"]);
    let found = findings(&world.work);
    let stale: Vec<_> = found
        .iter()
        .map(|finding| finding["reference"].as_str().unwrap())
        .collect();
    // Entries that only the first of them names are stale as well.
    assert_eq!(
        stale,
        [
            "https://github.com/acme/deep?ref=v1",
            "https://github.com/acme/lib?ref=v1"
        ]
    );
    for finding in &found {
        assert_eq!(finding["rule"], "stale-lock");
        assert_eq!(finding["severity"], "warning");
        assert_eq!(finding["path"], "kustomize-localize.lock");
    }
    let commands = commands(&found);
    assert_eq!(commands.len(), 1);
    each_leads_out(&world, &commands);
    // A check of some paths cannot tell.
    world.work.run(&["check", "."]).success();
    world.work.write("other/kustomization.yaml", "unknown: x\n");
    world.work.git(&["add", "--all"]);
    assert!(
        findings(&world.work)
            .iter()
            .all(|finding| finding["rule"] != "stale-lock")
    );
}

#[test]
fn check_and_localize_agree_on_what_is_locked() {
    let world = world();
    // The same URL shape, once a repository and once a file: only the answer decides, and the lock records it.
    world.file("https://files.example.com/a/b/c", deployment("c"));
    let resources = [
        "https://github.com/acme/lib//web?ref=v1",
        "https://github.com/acme/lib/web?ref=v1",
        "github.com/acme/lib//?ref=v1&submodules=false",
        "https://files.example.com/a/b/c",
        FILE,
    ];
    for (index, text) in resources.iter().enumerate() {
        let kustomization = format!("namePrefix: p{index}-\nresources: ['{text}']\n");
        world
            .work
            .write(&format!("r{index}/kustomization.yaml"), kustomization);
    }
    world.work.write(
        "p/kustomization.yaml",
        format!("resources: [../r4]\npatches: [{{path: '{FILE}'}}]\n"),
    );
    world.work.commit("all");
    world.work.run(&["check"]).fails(1);
    world.work.run(&["lock"]).success();
    world.work.commit("locked");
    world.work.run(&["check"]).success();
    for index in 0..resources.len() {
        world
            .work
            .run(&[
                &format!("r{index}"),
                &format!("out-{index}"),
                "--no-commit",
                "--locked",
                "--offline",
            ])
            .success();
    }
    // An entry for another directory of the same repository, for another ref.
    world.work.write(
        "r0/kustomization.yaml",
        "resources: ['https://github.com/acme/lib//part?ref=v1']\n",
    );
    world.work.git(&["add", "r0"]);
    world
        .work
        .run(&["check"])
        .fails(1)
        .stdout_has("the lock does not hold `part`");
    world.work.write(
        "r0/kustomization.yaml",
        "resources: ['https://github.com/acme/lib//web?ref=v2']\n",
    );
    world.work.git(&["add", "r0"]);
    world
        .work
        .run(&["check"])
        .fails(1)
        .stdout_has("neither localized nor locked");
}

#[test]
fn messages_name_the_place_and_the_fixes() {
    let memory = Memory::of(&[(
        "a/kustomization.yaml",
        "resources:\n- https://github.com/acme/lib//web?ref=main # ours\n",
    )]);
    let said = memory.human();
    for part in [
        "a/kustomization.yaml:2:3",
        "remote-reference",
        "`https://github.com/acme/lib//web?ref=main` is a git repository at `main`, neither localized nor locked",
        "keep the URL, and lock what it is now: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock",
        "git kustomize-localize --in-place --no-commit :/a && git add -f --",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let found = memory.findings();
    assert_eq!(found[0]["kind"], "git");
    assert_eq!(found[0]["git"]["pin"], "branch");
    assert_eq!(found[0]["git"]["path"], "web");
}

#[test]
fn no_format_shows_a_secret() {
    let world = world();
    world.work.write(
        "kustomization.yaml",
        "resources: ['https://me:hunter2@github.com/acme/lib//web?ref=v1', 'https://files.example.com/x.yaml?sig=hunter2']\n\
         components: [\"https://me:hunter2@h/o/.github/x?ref=v1\"]\n\
         patches:\n- path: https://me:hunter2@files.example.com/latest/p.yaml # https://me:hunter2@h\n\
         helmCharts: [{name: nginx, repo: 'https://me:hunter2@charts.example'}]\n\
         generators:\n- |-\n  apiVersion: x/v1\n  kind: A\n  metadata: {name: a}\n  argsFromFile: https://me:hunter2@h/x\n",
    );
    world.work.git(&["add", "--all"]);
    let rules = |found: &[Value]| {
        let mut rules: Vec<String> = found
            .iter()
            .map(|one| one["rule"].as_str().unwrap().to_owned())
            .collect();
        rules.sort();
        rules.dedup();
        rules
    };
    assert_eq!(
        rules(&findings(&world.work)),
        [
            "ambiguous-path",
            "function",
            "invalid-kustomization",
            "remote-chart",
            "remote-reference",
            "unsafe-reference"
        ]
    );
    let summary = world.sandbox.path("summary.md");
    fs::write(&summary, "").unwrap();
    world.sandbox.set("GITHUB_STEP_SUMMARY", &summary);
    for format in ["human", "json", "sarif", "github"] {
        let output = world.work.run(&["check", "--format", format]);
        output.fails(1).lacks("hunter2");
    }
    assert!(!fs::read_to_string(&summary).unwrap().contains("hunter2"));
}

#[test]
fn a_dot_before_an_ambiguous_path_is_what_kustomize_needs() {
    let Some(kustomize) = Kustomize::find() else {
        return;
    };
    let world = World::new();
    for text in ["app@v1/base/x", "github.com/o/r/dir"] {
        let build = |written: &str| {
            let memory = Memory::of(&[
                (
                    &format!("{text}/kustomization.yaml"),
                    "resources: [map.yaml]\n",
                ),
                (&format!("{text}/map.yaml"), &config_map("here")),
                ("kustomization.yaml", &format!("resources: ['{written}']\n")),
            ]);
            memory.lay_out(world.work.path());
            let built = kustomize.build(&world.sandbox, world.work.path(), ".");
            (built.status == 0, memory.findings())
        };
        let (built, found) = build(text);
        assert!(!built, "{text}");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0]["rule"], "ambiguous-path");
        let help = format!("write `./{text}` for what lies here");
        assert_eq!(found[0]["help"][0], help.as_str());
        let (built, found) = build(&format!("./{text}"));
        assert!(built, "{text}");
        assert_eq!(found, [Value::Null; 0]);
    }
}

/// Where kustomize looks for a chart is what it does, not what we say.
#[test]
fn a_chart_is_remote_when_kustomize_pulls_it() {
    let Some(kustomize) = Kustomize::find() else {
        return;
    };
    let world = World::new();
    let pulled = world.sandbox.path("pulled");
    world.sandbox.script(
        "helm",
        &format!(
            "case $1 in\n\
             version) echo v3.15.0;;\n\
             pull) touch '{}'; exit 1;;\n\
             template) printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {{name: x}}\\n';;\n\
             esac",
            pulled.display()
        ),
    );
    let repo = "repo: https://charts.example, releaseName: r";
    let charts = |version: &str, globals: &str| {
        format!("{globals}helmCharts:\n- {{name: nginx, {version}{repo}}}\n")
    };
    let plugin = format!(
        "helmGlobals: {{chartHome: c}}\ngenerators:\n- |-\n  {{apiVersion: builtin, kind: HelmChartInflationGenerator, metadata: {{name: x}}, name: nginx, version: 1.2.3, {repo}, chartHome: own}}\n"
    );
    let old = "helmChartInflationGenerator:\n- {chartName: nginx, chartVersion: 1.2.3, chartRepoUrl: 'https://charts.example'}\n";
    let one = "version: 1.2.3, ";
    let home = "helmGlobals: {chartHome: ../c}\n";
    let cases = [
        (charts(one, ""), "a/charts/nginx-1.2.3/nginx", false),
        (charts(one, ""), "a/charts/nginx", true),
        (charts(one, ""), "charts/nginx-1.2.3/nginx", true),
        (charts("", ""), "a/charts/nginx", false),
        (charts("", ""), "a/charts/nginx-1.2.3/nginx", true),
        (charts(one, home), "c/nginx-1.2.3/nginx", false),
        (charts(one, home), "a/charts/nginx-1.2.3/nginx", true),
        (old.to_owned(), "a/charts/nginx-1.2.3/nginx", false),
        (format!("{home}{old}"), "c/nginx-1.2.3/nginx", false),
        (format!("{home}{old}"), "a/charts/nginx-1.2.3/nginx", true),
        (plugin.clone(), "a/own/nginx-1.2.3/nginx", false),
        (plugin, "a/c/nginx-1.2.3/nginx", true),
    ];
    for (number, (text, place, remote)) in cases.iter().enumerate() {
        let memory = Memory::of(&[
            ("a/kustomization.yaml", text),
            (&format!("{place}/values.yaml"), "a: b\n"),
        ]);
        let work = world.sandbox.path(&format!("work-{number}"));
        memory.lay_out(&work);
        let args = [
            "build",
            "--enable-helm",
            "--load-restrictor",
            "LoadRestrictionsNone",
            "a",
        ];
        let built = kustomize.run(&world.sandbox, &work, &args);
        let pulls = fs::remove_file(&pulled).is_ok();
        assert_eq!(pulls, *remote, "{text}{place}: {built:?}");
        let found = memory.findings();
        let told = found
            .iter()
            .any(|finding| finding["rule"] == "remote-chart");
        assert_eq!(told, *remote, "{text}{place}: {found:?}");
    }
}
