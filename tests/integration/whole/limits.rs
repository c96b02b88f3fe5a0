//! Hostile sizes: each is a clear failure that names what is too much, where, and the limit. Never a program that runs
//! out of memory.

use std::io::Write as _;
use std::process::Stdio;

use crate::support::{Output, Repo, Running, Sandbox, Transcript, World, config, program, rows};

/// Runs the program with as much memory as it may need for anything.
fn run(sandbox: &Sandbox, repo: &Repo, args: &[&str]) -> Output {
    let mut command = sandbox.command("sh", repo.path());
    command.args(["-c", "ulimit -v 1500000 && exec \"$@\"", "sh"]).arg(program()).args(args);
    Running::start(&mut command).wait()
}

/// Runs git with this input.
fn git(sandbox: &Sandbox, repo: &Repo, args: &[&str], input: &[u8]) -> String {
    let mut command = sandbox.command("git", repo.path());
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Commits a tree object.
fn commit(repo: &Repo, tree: &str) -> String {
    let commit = repo.git(&["commit-tree", "-m", "hostile", tree]);
    repo.git(&["update-ref", "refs/heads/main", &commit]);
    commit
}

/// Commits ten levels of ten equal directories, from twelve objects; the names have as many letters.
fn bush(sandbox: &Sandbox, repo: &Repo, letters: usize) {
    let blob = git(sandbox, repo, &["hash-object", "-w", "--stdin"], b"resources: []\n");
    let leaf = format!("100644 blob {blob}\tkustomization.yaml\n");
    let mut tree = git(sandbox, repo, &["mktree"], leaf.as_bytes());
    for _ in 0..10 {
        let name = |number| format!("{}{number}", "d".repeat(letters));
        let level: String = (0..10).map(|number| format!("040000 tree {tree}\t{}\n", name(number))).collect();
        tree = git(sandbox, repo, &["mktree"], level.as_bytes());
    }
    commit(repo, &tree);
}

/// Commits a file that lies as many directories deep.
fn deep(sandbox: &Sandbox, repo: &Repo, levels: usize) {
    let path = format!("{}kustomization.yaml", "a/".repeat(levels));
    let stream = format!(
        "commit refs/heads/main\ncommitter a <a@b> 0 +0000\ndata 1\nx\nM 100644 inline {path}\ndata 14\nresources: []\n\n"
    );
    git(sandbox, repo, &["fast-import", "--quiet"], stream.as_bytes());
}

const LOOKING: [&[&str]; 5] = [
    &["check", "--rev", "HEAD"],
    &["targets", "--rev", "HEAD"],
    &["tree", "--rev", "HEAD"],
    &["affected", "HEAD~0"],
    &["branch", "--dry-run", "--no-verify"],
];

#[test]
fn a_few_objects_that_make_any_number_of_paths_are_refused() {
    // Long names are soon too many bytes.
    let mut transcript = Transcript::default();
    for (letters, looking) in [(1, &LOOKING[..1]), (200, &LOOKING)] {
        let sandbox = Sandbox::new();
        let repo = sandbox.repo("work");
        bush(&sandbox, &repo, letters);
        for args in looking {
            transcript.add(run(&sandbox, &repo, args).fails(2));
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check --rev HEAD
        error: `tree <0>` has more than 1000000 paths
          hint: remove generated files
        $ git kustomize-localize check --rev HEAD
        $ git kustomize-localize targets --rev HEAD
        $ git kustomize-localize tree --rev HEAD
        $ git kustomize-localize affected HEAD~0
        $ git kustomize-localize branch --dry-run --no-verify
        error: `tree <0>` has more than 100000000 bytes of paths
          hint: remove generated files
    "#]]);
}

#[test]
fn directories_below_names_that_are_no_text_count_too() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let mut tree = git(&sandbox, &repo, &["mktree"], b"");
    for _ in 0..10 {
        let mut level = Vec::new();
        for number in 0..10 {
            level.extend(format!("040000 tree {tree}\t").bytes());
            level.extend([&[0xff; 100][..], &[b'0' + number, b'\n']].concat());
        }
        tree = git(&sandbox, &repo, &["mktree"], &level);
    }
    commit(&repo, &tree);
    run(&sandbox, &repo, &["check", "--rev", "HEAD"]).fails(2).says(expect![[r#"
        error: `tree <0>` has more than 100000000 bytes of paths
          hint: remove generated files
    "#]]);
}

#[test]
fn a_path_that_no_system_opens_is_refused() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    deep(&sandbox, &repo, 3000);
    let mut transcript = Transcript::default();
    for args in LOOKING {
        transcript.add(run(&sandbox, &repo, args).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check --rev HEAD
        $ git kustomize-localize targets --rev HEAD
        $ git kustomize-localize tree --rev HEAD
        $ git kustomize-localize affected HEAD~0
        $ git kustomize-localize branch --dry-run --no-verify
        error: `a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/…` has more than 4096 bytes in one path
          hint: shorten it
    "#]]);
    let blob = git(&sandbox, &repo, &["hash-object", "-w", "--stdin"], b"");
    let entry = format!("100644,{blob},{}kustomization.yaml", "a/".repeat(3000));
    repo.git(&["update-index", "--add", "--cacheinfo", &entry]);
    let mut transcript = Transcript::default();
    for args in [&["check"][..], &["check", "--staged"]] {
        transcript.add(run(&sandbox, &repo, args).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check
        $ git kustomize-localize check --staged
        error: `a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/…` has more than 4096 bytes in one path
          hint: shorten it
    "#]]);
}

/// A list of a few bytes, which aliases make just too many nodes of.
fn many() -> String {
    format!("[&a [{}], {}]", "a,".repeat(999), "*a,".repeat(498))
}

#[test]
fn nodes_of_yaml_are_bounded_wherever_they_stand() {
    let object = "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\n";
    let many = many();
    let block = format!("resources:\n{}", "- a\n".repeat(499_998));
    let all = [
        (format!("resources: {many}\n"), String::new()),
        (format!("buildMetadata: {many}\n"), String::new()),
        (format!("commonLabels: {{a: {many}}}\n"), String::new()),
        (block, String::new()),
        ("transformers: [p.yaml]\n".into(), format!("{object}x: {many}\n")),
        ("generators: [p.yaml]\n".into(), format!("{object}x: {many}\n")),
        ("validators: [p.yaml]\n".into(), format!("{object}---\n{object}x: {many}\n")),
    ];
    let mut transcript = Transcript::default();
    for (text, plugin) in rows(all, 4) {
        let sandbox = Sandbox::new();
        let repo = sandbox.repo("work");
        let file = if plugin.is_empty() { "kustomization.yaml:" } else { "p.yaml:" };
        repo.write("kustomization.yaml", &text);
        repo.write("p.yaml", plugin);
        repo.write(".kustomize-localize", "rules: {invalid-kustomization: off}\n");
        repo.commit("many");
        transcript
            .add(run(&sandbox, &repo, &["check"]).fails(2).stderr_has(file).stderr_has("more than 500000 YAML nodes"));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check
        checked 1 kustomization with 0 references in the working tree: 1 could not be checked
        error: kustomization.yaml:1:3509: more than 500000 YAML nodes
          hint: split it
        $ git kustomize-localize check
        checked 1 kustomization with 1 reference in the working tree: 1 could not be checked
        error: p.yaml:4:3501: more than 500000 YAML nodes
          hint: split it
    "#]]);
}

#[test]
fn nodes_of_an_object_are_bounded() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let head = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\n";
    repo.write("one.yaml", format!("{head}spec: {}\n", many()));
    repo.commit("many");
    run(&sandbox, &repo, &["targets"]).success().says(expect![[r#"
        one.yaml:4
          unknown: not YAML: more than 500000 YAML nodes

        no targets: no object of Flux or Argo CD was found; 1 unknown
    "#]]);
}

#[test]
fn what_an_upstream_sends_is_bounded() {
    let world = World::new();
    let body = format!("{}x: {}\n", config("a"), many());
    world.file("https://files.example.com/app.yaml", &body);
    world.upstream_of("acme/lib", &[("kustomization.yaml", &format!("resources: {}\n", many()))]);
    let mut transcript = Transcript::default();
    for (url, query) in [("https://files.example.com/app.yaml", ""), ("https://github.com/acme/lib", "?ref=v1")] {
        world.commit(&[("app/kustomization.yaml", &format!("resources: ['{url}{query}']\n"))]);
        transcript.add(run(&world.sandbox, &world.work, &["lock"]).fails(1));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize lock
        nothing was written
        error: app/kustomization.yaml:1:13: resources[0]: https://files.example.com/app.yaml does not contain resources: not YAML (line 5: more than 500000 YAML nodes)
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {url: 'https://files.example.com/app.yaml', reason: 'TODO'}
        error: 1 reference could not be locked
        $ git kustomize-localize lock
        nothing was written
        error: https://github.com/acme/lib?ref=v1: kustomization.yaml:1:3509: more than 500000 YAML nodes
          reached from app/kustomization.yaml:1:13
          hint: split it
        error: 1 reference could not be locked
    "#]]);
}

#[test]
fn what_is_kept_of_a_file_and_of_a_run_is_bounded() {
    let all = [
        ("- []\n", 16_700, "`.` has more than 100000 remote references and problems"),
        ("- a.yaml\n", 41_700, "`.` has more than 250000 references"),
    ];

    for (item, count, limit) in rows(all, 2) {
        let sandbox = Sandbox::new();
        let repo = sandbox.repo("work");
        for number in 0..6 {
            repo.write(&format!("{number}/kustomization.yaml"), format!("resources:\n{}", item.repeat(count)));
            repo.write(&format!("{number}/a.yaml"), "");
        }
        repo.commit("many");

        run(&sandbox, &repo, &["check", "--quiet"]).fails(2).stderr_has(limit).stderr_has("hint: check only a part");
    }
}

#[test]
fn a_reference_is_no_longer_than_a_path() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let mut transcript = Transcript::default();
    for text in
        ["-".repeat(2_000_000), "a - ".repeat(500_000), format!("http://h/{}", "a".repeat(4096)), "a/".repeat(3000)]
    {
        repo.write("kustomization.yaml", format!("resources: ['{text}']\n"));
        repo.commit("long");
        transcript.add(run(&sandbox, &repo, &["check"]).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check
        checked 1 kustomization with 0 references in the working tree: 1 could not be checked
        error: kustomization.yaml:1:13: resources[0]: more than 4096 bytes in one path
          hint: shorten it
    "#]]);
}

#[test]
fn an_entry_that_git_checks_out_nowhere_is_refused() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let blob = git(&sandbox, &repo, &["hash-object", "-w", "--stdin"], b"resources: []\n");
    let id: Vec<u8> = (0..20).map(|at| u8::from_str_radix(&blob[2 * at..2 * at + 2], 16).unwrap()).collect();
    let tree = |mode: &str, name: &str, id: &[u8]| {
        let entry = [mode.as_bytes(), b" ", name.as_bytes(), b"\0", id].concat();
        let args = ["hash-object", "-w", "--stdin", "-t", "tree", "--literally"];
        git(&sandbox, &repo, &args, &entry)
    };
    let mut transcript = Transcript::default();
    for name in rows(["", ".", "..", ".git", ".GIT", "a/b", "../a", "a/", "/a"], 3) {
        let odd = tree("100644", name, &id);
        let below = git(&sandbox, &repo, &["mktree"], format!("040000 tree {odd}\td\n").as_bytes());
        for (tree, args) in [(odd, &LOOKING[..]), (below, &LOOKING[..1])] {
            commit(&repo, &tree);
            for args in args {
                transcript.add(run(&sandbox, &repo, args).fails(2));
            }
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check --rev HEAD
        $ git kustomize-localize targets --rev HEAD
        $ git kustomize-localize tree --rev HEAD
        $ git kustomize-localize affected HEAD~0
        $ git kustomize-localize branch --dry-run --no-verify
        error: tree <0> of the top directory has an entry ``, which git cannot check out
        $ git kustomize-localize check --rev HEAD
        error: tree <0> of `d` has an entry ``, which git cannot check out
        $ git kustomize-localize check --rev HEAD
        $ git kustomize-localize targets --rev HEAD
        $ git kustomize-localize tree --rev HEAD
        $ git kustomize-localize affected HEAD~0
        $ git kustomize-localize branch --dry-run --no-verify
        error: tree <0> of the top directory has an entry `.git`, which git cannot check out
        $ git kustomize-localize check --rev HEAD
        error: tree <0> of `d` has an entry `.git`, which git cannot check out
        $ git kustomize-localize check --rev HEAD
        $ git kustomize-localize targets --rev HEAD
        $ git kustomize-localize tree --rev HEAD
        $ git kustomize-localize affected HEAD~0
        $ git kustomize-localize branch --dry-run --no-verify
        error: tree <0> of the top directory has an entry `../a`, which git cannot check out
        $ git kustomize-localize check --rev HEAD
        error: tree <0> of `d` has an entry `../a`, which git cannot check out
    "#]]);
}

/// Checks a kustomization and a list with many findings, `between` two of them. Returns what is said, and how many
/// seconds of processor time that took.
fn wide(between: &str) -> (Output, f64) {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.git(&["remote", "add", "origin", "https://git.example.com/work"]);
    let names = (0..4_000).map(|number| format!("a{number:0>39}"));
    let names = names.collect::<Vec<_>>().join(&format!(",{between}"));
    repo.write("kustomization.yaml", format!("configMapGenerator: [{{name: a, files: [{names}]}}]\n"));
    let head = "apiVersion: argoproj.io/v1alpha1, kind: Application";
    let spec = "spec: {source: {repoURL: 'https://git.example.com/work', path: gone}}";
    let application = format!("{{{head}, metadata: {{name: a}}, {spec}}},{between}");
    let text =
        format!("{{apiVersion: v1, kind: List, items: [{}'{}']}}\n", application.repeat(900), "a".repeat(400_000));
    repo.write("list.yaml", text);
    repo.write(".kustomize-localize", "repository: [{url: 'https://git.example.com/work'}]\n");
    repo.commit("wide");
    let mut command = sandbox.command("sh", repo.path());
    command.args(["-c", "ulimit -v 1500000; \"$@\"; status=$?; times >&2; exit $status", "sh"]);
    let output = Running::start(command.arg(program()).arg("check")).wait();
    // Of the shell, and of what it has started: `0m1.25s 0m0.05s`.
    let spent = output.stderr.lines().last().unwrap().split(['m', 's', ' ']).filter_map(|word| word.parse().ok());
    let spent: Vec<f64> = spent.collect();
    let [minutes, seconds, ..] = spent[..] else { panic!("{output:?}") };
    (output, minutes * 60.0 + seconds)
}

#[test]
fn thousands_of_findings_on_one_line_are_as_much_work_as_on_many() {
    let (output, one) = wide(" ");
    output
        .fails(1)
        .stdout_has("kustomization.yaml:1:40: configMapGenerator[0].files[0]\n")
        .stdout_has("kustomization.yaml:1:167998: configMapGenerator[0].files[3999]\n")
        .stdout_has("list.yaml:1:176\n")
        .stdout_has(": 4900 errors");
    let (output, many) = wide("\n");
    output.fails(1).stdout_has("kustomization.yaml:4000:1\n").stdout_has(": 4900 errors");
    assert!(one < 2.0 * many, "{one} s, {many} s");
}

/// Runs the program. Returns how many MiB of it were resident at most.
#[cfg(target_os = "linux")]
fn peak(sandbox: &Sandbox, repo: &Repo, args: &[&str]) -> u64 {
    const WATCH: &str = "\"$@\" & while grep VmHWM /proc/$!/status >&2; do sleep 0.1; done; wait $!";
    let mut command = sandbox.command("sh", repo.path());
    command.args(["-c", WATCH, "sh"]).arg(program()).args(args);
    let output = Running::start(&mut command).wait();
    let sizes =
        output.success().stderr.lines().filter_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    sizes.filter_map(|size| size.parse::<u64>().ok()).max().unwrap() >> 10
}

/// What is built of large files is compared and let go, and these lie on the disk once.
#[test]
#[cfg(target_os = "linux")]
fn many_large_builds_are_neither_held_nor_written_together() {
    const TARGETS: usize = 24;
    let sandbox = Sandbox::new();
    let Some(kustomize) = sandbox.builds() else { return };
    let repo = sandbox.repo("work");
    let head = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.example.com}\nspec:\n  versions:\n  - schema:\n      openAPIV3Schema:\n";
    let field =
        |number| format!("        field{number}: {{description: says what field {number} is for, type: string}}\n");
    let schema = format!("{head}{}", (0..4_000).map(field).collect::<String>());
    let large = vec![schema; 10].join("---\n");
    let object = |number| {
        let head = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n";
        format!(
            "{head}metadata: {{name: o{number}, namespace: x}}\nspec: {{path: ./o{number}, targetNamespace: n{number}, sourceRef: {{kind: GitRepository, name: fleet}}}}\n---\n"
        )
    };
    let fleet = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: fleet, namespace: x}\nspec: {url: 'https://github.com/acme/fleet'}\n";
    repo.decide("repository: [{url: 'https://github.com/acme/fleet'}]\n");
    repo.write("clusters/flux.yaml", (0..TARGETS).map(object).collect::<String>() + fleet);
    repo.write("base/kustomization.yaml", "resources: [crds.yaml]\n");
    for number in 0..TARGETS {
        repo.write(&format!("o{number}/kustomization.yaml"), "resources: [../base]\n");
    }
    repo.write("base/crds.yaml", &large);
    repo.commit("large");
    // The program is not what is measured.
    let inodes = sandbox.path("inodes");
    let real = kustomize.program().display();
    let cat =
        "for last; do :; done; stat -c %i \"$last/../base/crds.yaml\" >>INODES; exec cat \"$last/../base/crds.yaml\"";
    let cat = cat.replace("INODES", &inodes.display().to_string());
    sandbox.script("kustomize", &format!("[ $1 = version ] && exec '{real}' version\n{cat}"));
    sandbox.set("KUSTOMIZE", sandbox.path("bin/kustomize"));
    sandbox.set("KUSTOMIZE_LOCALIZE_WRITABLE", sandbox.path(""));
    let size = (large.len() * TARGETS) >> 20;
    let peak = peak(&sandbox, &repo, &["check", "--build"]);
    assert!(size > 60 && peak < 100, "{peak} MiB of {size}");
    let seen = std::fs::read_to_string(&inodes).unwrap();
    let first = seen.lines().next().unwrap();
    assert_eq!(seen, format!("{first}\n").repeat(TARGETS));
}
