//! How many git processes a command starts: it takes longer to start one than to read a hundred kustomizations.

use std::fs;

use crate::support::{Repo, Sandbox, World, config_map};

/// Runs the program, and returns how many git processes it started; those that git starts itself do not count.
fn started(sandbox: &Sandbox, repo: &Repo, args: &[&str]) -> usize {
    let trace = sandbox.path("trace");
    sandbox.set("GIT_TRACE2_EVENT", &trace);
    let output = repo.run_as_is(args);
    let events = fs::read_to_string(&trace).unwrap();
    fs::remove_file(&trace).unwrap();
    output.success();
    let starts = events.lines().filter(|line| line.contains("\"event\":\"start\""));
    let own = starts.filter(|line| {
        let id = line.split("\"sid\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        !id.contains('/')
    });
    own.count()
}

#[test]
fn a_command_starts_as_many_processes_for_sixty_references_as_for_one() {
    for references in [1, 60] {
        let world = World::new();
        world.sandbox.builds();
        let files: Vec<(String, String)> = (0..references)
            .flat_map(|number| {
                let root = format!("r{number}/kustomization.yaml");
                [(root, "resources: [map.yaml]\n".to_owned()), (format!("r{number}/map.yaml"), config_map("map"))]
            })
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        world.upstream_of("acme/lib", &files);
        let listed: Vec<String> =
            (0..references).map(|number| format!("'https://github.com/acme/lib//r{number}?ref=v1'")).collect();
        let root = format!("namePrefix: a-\nresources: [{}]\n", listed.join(", "));
        world.commit(&[
            ("app/kustomization.yaml", &root),
            ("other/kustomization.yaml", "resources: [map.yaml]\n"),
            ("other/map.yaml", &config_map("x")),
        ]);
        let started = |args: &[&str]| (args.join(" "), started(&world.sandbox, &world.work, args));
        let mut counts = vec![started(&["lock"])];
        world.work.commit("lock");
        for args in [
            ["check"].as_slice(),
            &["check", "--staged"],
            &["check", "--rev", "HEAD"],
            &["targets"],
            &["tree"],
            &["affected", "HEAD"],
            &["branch", "--no-verify"],
            &["branch", "--no-verify"],
            &["other", "--branch", "copies", "--no-verify"],
            &["other", "../copy", "--no-commit", "--no-verify"],
        ] {
            counts.push(started(args));
        }
        let counts: Vec<(&str, usize)> = counts.iter().map(|(args, count)| (args.as_str(), *count)).collect();
        assert_eq!(
            counts,
            [
                ("lock", 6),
                ("check", 5),
                ("check --staged", 2),
                ("check --rev HEAD", 2),
                ("targets", 5),
                ("tree", 3),
                ("affected HEAD", 3),
                ("branch --no-verify", 9),
                ("branch --no-verify", 6),
                ("other --branch copies --no-verify", 9),
                ("other ../copy --no-commit --no-verify", 2),
            ],
            "{references}"
        );
    }
}
