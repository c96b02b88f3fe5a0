//! A localized branch that `check` and `verify` pass builds without reaching out: random repositories and upstreams, in
//! place and as copies.

use std::fmt::Write as _;

use super::build::Judge;
use crate::support::{Kustomize, Random, Repo, World, config_map, full};

/// How many repositories are localized, each in place and as a copy.
const WORLDS: usize = 5;
const WORLDS_AT_NIGHT: usize = 16;

/// A kustomization in the making.
#[derive(Default)]
struct Root {
    resources: Vec<String>,
    charts: Vec<&'static str>,
    functions: Vec<String>,
    files: Vec<(&'static str, &'static str)>,
}

const DIGEST: &str = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

impl Root {
    fn random(random: &mut Random, named: &str) -> Root {
        let mut root = Root {
            resources: vec!["cm.yaml".to_owned()],
            files: vec![("cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n")],
            ..Root::default()
        };
        if !named.is_empty() {
            root.resources.push(named.to_owned());
        }
        for _ in 0..random.below(3) {
            root.add(random.below(24));
        }
        root.charts.sort_unstable();
        root.charts.dedup();
        root.resources.sort_unstable();
        root.resources.dedup();
        root.files.sort_unstable();
        root.files.dedup();
        root
    }

    /// Adds something that localizing leaves remote (0 to 3), brings in, or finds in place.
    fn add(&mut self, what: usize) {
        let function = |spec: &str| format!("{{container: {{image: 'example.com/fn{spec}}}}}");
        match what {
            0 => self.charts.push("{name: far, repo: https://charts.example.com/stable, version: 1.2.3}"),
            1 => self.charts.push("{name: oci, repo: oci://charts.example.com/stable, version: 1.2.3}"),
            2 => self.functions.push(function(":v1'")),
            3 => self.functions.push(function(&format!("{DIGEST}', network: true"))),
            4..8 => {
                self.charts.push("{name: near}");
                self.files.extend([
                    ("charts/near/Chart.yaml", "name: near\nversion: 1.2.3\n"),
                    ("charts/near/values.yaml", "{}\n"),
                ]);
            }
            8..12 => self.functions.push(function(&format!("{DIGEST}'"))),
            12..20 => self.resources.push("https://files.example.com/a.yaml".to_owned()),
            _ => {}
        }
    }

    fn write(&self, repo: &Repo, directory: &str, prefix: &str) {
        let mut text = format!("namePrefix: {prefix}-\nresources:\n");
        for resource in &self.resources {
            writeln!(text, "- {resource}").unwrap();
        }
        if !self.charts.is_empty() {
            writeln!(text, "helmCharts: [{}]", self.charts.join(", ")).unwrap();
        }
        if !self.functions.is_empty() {
            text += "transformers:\n";
        }
        for (number, function) in self.functions.iter().enumerate() {
            write!(
                text,
                "- |-\n  apiVersion: example.com/v1\n  kind: Fn\n  metadata:\n    name: fn-{number}\n    annotations:\n      config.kubernetes.io/function: \"{function}\"\n"
            )
            .unwrap();
        }
        repo.write(&format!("{directory}/kustomization.yaml"), text);
        for (path, text) in &self.files {
            repo.write(&format!("{directory}/{path}"), text);
        }
    }
}

/// A repository whose `app` names an upstream, which names another one.
fn world(number: usize) -> World {
    let world = World::new();
    world.sandbox.builds();
    world.file("https://files.example.com/a.yaml", config_map("file"));
    let mut random = Random::of(&format!("world {number}"));
    let mut named = String::new();
    for name in ["second", "first"].iter().take(2 - random.below(2)) {
        let upstream = world.upstream(&format!("acme/{name}"));
        Root::random(&mut random, &named).write(&upstream, "base", name);
        upstream.commit("one");
        upstream.git(&["tag", "v1"]);
        named = format!("https://github.com/acme/{name}//base?ref=v1");
    }
    Root::random(&mut random, &named).write(&world.work, "app", "app");
    Root::random(&mut random, "../app").write(&world.work, "over", "over");
    let rules = "rules: {function: warning, remote-chart: warning, missing-path: warning}\n";
    world.work.write(".kustomize-localize", rules);
    world.work.commit("source");
    world
}

/// Returns whether `check` passes these paths of the branch, and `verify` all of it.
fn passes(work: &Repo, branch: &str, paths: &[&str]) -> bool {
    let check = [&["check", "--rev", branch, "--"][..], paths].concat();
    [check, vec!["verify", branch]].iter().all(|arguments| {
        let output = work.run(arguments);
        assert!((0..=1).contains(&output.status), "{arguments:?}: {output:?}");
        output.status == 0
    })
}

#[test]
fn a_branch_that_passes_builds_without_reaching_out() {
    let Some(kustomize) = Kustomize::find() else { return };
    let judge = Judge::new(&kustomize);
    // How many pass; are refused, and reach out; are refused, and do not.
    let mut counts = [0; 3];
    let worlds = if full() { WORLDS_AT_NIGHT } else { WORLDS };
    for number in 0..worlds {
        let world = world(number);
        let work = &world.work;
        for (branch, arguments, root, paths) in [
            ("localized/main", &["branch"][..], "over", &[][..]),
            ("localized/copy", &["over", "out", "--scope=.", "--branch=localized/copy"], "out/over", &["out"]),
        ] {
            let output = work.run(&[arguments, &["--no-verify"]].concat());
            // What `check` refuses is not localized.
            if output.status == 1 {
                counts[1] += 1;
                continue;
            }
            output.success();
            let checkout = world.sandbox.path(&branch.replace('/', "-"));
            let path = checkout.display().to_string();
            work.git(&["worktree", "add", "-q", "--detach", &path, branch]);
            let passes = passes(work, branch, paths);
            let reached = judge.reached(&checkout, root, passes);
            assert!(
                !passes || reached.is_empty(),
                "world {number}, {branch}: {reached:?}\n{}",
                work.show(branch, &format!("{root}/kustomization.yaml")),
            );
            counts[usize::from(!passes) + usize::from(!passes && reached.is_empty())] += 1;
        }
    }
    println!("pass, reach, refused for nothing: {counts:?}");
    let [passed, reaching, needless] = counts;
    assert!(passed > worlds / 3 && reaching > worlds / 2 && needless == 0, "{counts:?}");
}
