//! The gate and the job agree: `branch` localizes a commit if and only if `check` passes it. Only a build that changes
//! may stand against it.
//!
//! `KUSTOMIZE_LOCALIZE_WORLDS` says how many random worlds there are (default 8, at night 400),
//! `KUSTOMIZE_LOCALIZE_WORLD` takes one of them.

use std::env;

use git_kustomize_localize::seams::{processors, side_by_side};

use crate::support::{Kustomize, Random, World, config_map, full};

/// What a kustomization may name: the field, what stands in it, and what an entry of `allow` says about it.
const NAMED: [(&str, &str, &str); 17] = [
    ("resources", "map.yaml", ""),
    ("resources", "../../base", ""),
    ("resources", "https://github.com/acme/lib//other?ref=v1", "url: 'github.com/acme/lib//other?ref=v1'"),
    ("resources", "https://github.com/acme/lib//web?ref=v1", "url: github.com/acme, refs: any"),
    ("resources", "https://github.com/acme/lib//other?ref=main", "url: github.com/acme/lib, refs: any"),
    ("resources", "https://github.com/acme/lib//other", "url: github.com/acme/lib, refs: any"),
    ("resources", "https://github.com/acme/gone//web?ref=v1", "url: 'https://github.com/acme/gone//web?ref=v1'"),
    ("resources", "https://files.example.com/v1/app.yaml", "url: files.example.com, refs: any"),
    ("resources", "https://files.example.com/v1/gone.yaml", "url: files.example.com/v1/gone.yaml"),
    ("resources", "https://dead.invalid/x.yaml", "url: dead.invalid/x.yaml"),
    ("resources", "missing.yaml", "path: '**/missing.yaml'"),
    ("resources", "ignored.yaml", "path: '**/ignored.yaml'"),
    ("resources", "../../../outside", "path: 'apps/**', rules: [out-of-scope]"),
    ("components", "https://github.com/acme/lib//part?ref=v1", "url: 'github.com/acme/lib//part?ref=v1'"),
    ("transformers", "function.yaml", "image: docker.io/library/busybox, rules: [function]"),
    ("transformers", "program.yaml", "program: sed, rules: [function]"),
    (
        "helmCharts",
        "{name: web, repo: 'https://charts.example.com', version: 1.2.3}",
        "chart: 'https://charts.example.com#web@1.2.3'",
    ),
];

const RULES: [&str; 12] = [
    "remote-reference",
    "floating-ref",
    "missing-path",
    "untracked-path",
    "out-of-scope",
    "function",
    "remote-chart",
    "stale-allow",
    "stale-lock",
    "locked-reference",
    "merged-back",
    "not-built",
];

const FUNCTION: &str = "apiVersion: example.com/v1
kind: Change
metadata:
  name: change
  annotations:
    config.kubernetes.io/function: |
      container: {image: docker.io/library/busybox}
";

/// Writes a repository, and returns what it is for a message.
fn written(world: &World, choices: &mut Random) -> String {
    let work = &world.work;
    let mut config = String::new();
    let mut allow = String::new();
    for app in 0..1 + choices.below(3) {
        let mut text = String::new();
        let mut used: Vec<&(&str, &str, &str)> = Vec::new();
        for _ in 0..1 + choices.below(3) {
            let named = &NAMED[choices.below(NAMED.len())];
            if !used.contains(&named) {
                used.push(named);
            }
        }
        used.sort();
        let mut field = "";
        for (in_field, named, entry) in used {
            if field != *in_field {
                text += &format!("{in_field}:\n");
                field = in_field;
            }
            let rule = choices.one_of(&RULES);
            match choices.below(4) {
                0 if !entry.is_empty() => allow += &format!("- {{{entry}, reason: of ours}}\n"),
                1 => text += &format!("# kustomize-localize: allow[{rule}] of ours\n"),
                _ => {}
            }
            text += &format!("- {named}\n");
        }
        let directory = format!("apps/app{app}");
        work.write(&format!("{directory}/kustomization.yaml"), text);
        work.write(&format!("{directory}/map.yaml"), config_map("map"));
        work.write(&format!("{directory}/function.yaml"), FUNCTION);
        let program = FUNCTION.replace("container: {image: docker.io/library/busybox}", "exec: {path: sed}");
        work.write(&format!("{directory}/program.yaml"), program);
        work.write(&format!("{directory}/ignored.yaml"), config_map("ignored"));
    }
    work.write(".gitignore", "ignored.yaml\n");
    work.write("base/kustomization.yaml", "resources: [map.yaml]\n");
    work.write("base/map.yaml", config_map("base"));
    let rules: Vec<String> = (0..choices.below(7))
        .map(|index| {
            let severity = choices.one_of(&["error", "warning", "off"]);
            format!("{}: {severity}", RULES[index * 2 + choices.below(2)])
        })
        .collect();
    let all = (choices.below(2) == 0).then(|| "\"*\": error".to_owned());
    let rules: Vec<String> = rules.into_iter().chain(all).collect();
    config += &format!("rules: {{{}}}\n", rules.join(", "));
    if !allow.is_empty() {
        config += &format!("allow:\n{allow}");
    }
    work.write(".kustomize-localize", &config);
    work.commit("source");
    // What it cannot resolve is not there then.
    if choices.below(8) > 0 {
        world.work.run_as_is(&["lock"]);
        work.commit("lock");
    }
    // What is named no more, a root that does not build, and the branch merged back.
    match choices.below(6) {
        0 => {
            work.write("apps/app0/kustomization.yaml", "resources: [map.yaml]\n");
            work.commit("stale");
        }
        1 => {
            work.write("apps/broken/kustomization.yaml", "resources: [../../base, map.yaml]\n");
            work.write("apps/broken/map.yaml", config_map("base"));
            work.commit("broken");
        }
        2 if work.run_as_is(&["branch", "--no-verify"]).status == 0 => {
            work.git(&["merge", "--quiet", "--squash", "localized/main"]);
            work.git(&["commit", "--quiet", "--allow-empty", "-m", "merged back"]);
        }
        3 => {
            let own = work.path().join("apps/app0/map.yaml");
            work.write("apps/app0/kustomization.yaml", format!("resources: ['{}']\n", own.display()));
            work.commit("absolute");
        }
        _ => {}
    }
    let shown = work.git(&["grep", "", "--", "*kustomization.yaml", ".kustomize-localize"]);
    format!("{shown}\n")
}

/// Returns whether the gate was green, or how the two disagree.
fn held(index: usize) -> Result<bool, String> {
    let mut choices = Random::of(&format!("green {index}"));
    let world = World::acme();
    world.sandbox.builds();
    world.file("https://files.example.com/v1/app.yaml", config_map("app"));
    let source = written(&world, &mut choices);
    let run = |command: &[&str]| world.work.run_as_is(command);
    let builds = choices.below(2) == 0 && Kustomize::find().is_some();
    let gate = run(&[&["check", "--rev", "HEAD"][..], if builds { &["--build"][..] } else { &[] }].concat());
    let job = run(&["branch"]);
    let is_found_by_build = !builds && job.stderr.contains("error[not-built]");
    let is_changed_build = is_found_by_build || job.status == 1 && job.stdout.contains("differ");
    // What is deployed now is no reason not to make what is to be deployed.
    let mut errors = gate.stdout.lines().filter(|line| line.starts_with("error["));
    let is_mended = errors.all(|line| line.starts_with("error[deployed-remote]"));
    let is_agreed = if gate.status == 0 { job.status == 0 } else { job.status != 0 || is_mended };
    if !is_agreed && !is_changed_build {
        return Err(format!("world {index}\n{source}\n{}\n{}{}", gate.stdout, job.stdout, job.stderr));
    }
    // What is deployed is as recorded then. That what is remote stays is only an exception's to say there.
    let is_lowered = |rule: &&str| ["off", "warning"].iter().any(|level| source.contains(&format!("{rule}: {level}")));
    let is_lowered = ["remote-reference", "remote-chart", "function"].iter().any(is_lowered);
    if gate.status == 0 && job.status == 0 && !is_lowered {
        let verified = world.work.run_as_is(&["verify", "localized/main"]);
        if verified.status != 0 {
            return Err(format!("world {index}\n{source}\n{}\n{}", job.stdout, verified.stdout));
        }
    }
    Ok(gate.status == 0)
}

#[test]
fn what_the_gate_passes_is_localized() {
    if Kustomize::find().is_none() {
        return;
    }
    let number = |name: &str| env::var(name).ok().map(|text| text.parse().unwrap());
    let count = number("KUSTOMIZE_LOCALIZE_WORLDS").unwrap_or(if full() { 400 } else { 8 });
    let worlds: Vec<usize> = match number("KUSTOMIZE_LOCALIZE_WORLD") {
        Some(index) => vec![index],
        None => (0..count).collect(),
    };
    let held = side_by_side(&worlds, processors(), |_, index| held(*index));
    let failed: Vec<&String> = held.iter().filter_map(|one| one.as_ref().err()).collect();
    assert!(failed.is_empty(), "{} worlds, as\n{}", failed.len(), failed[0]);
    let green = held.iter().filter(|one| **one == Ok(true)).count();
    println!("{green} of {} worlds are green", worlds.len());
    assert!(worlds.len() == 1 || green * 10 > worlds.len(), "{green}");
}
