//! `check`: local references. Compared with the real kustomize; every fix that is printed is applied.

use std::path::Path;

use serde_json::Value;

use crate::support::{Kustomize, Memory, Output, Repo, Running, Sandbox, config};

/// Returns the findings of a check, as JSON; it changes nothing.
#[track_caller]
fn findings(repo: &Repo, args: &[&str]) -> Vec<Value> {
    let output = repo.run_unchanged(&[&["check", "--format", "json"], args].concat());
    assert!(output.status < 2, "{output:?}");
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    report["findings"].as_array().unwrap().clone()
}

/// Returns what was found as `rule path:line: message`.
#[track_caller]
fn told(repo: &Repo, args: &[&str]) -> Vec<String> {
    listed(&findings(repo, args))
}

fn listed(findings: &[Value]) -> Vec<String> {
    findings
        .iter()
        .map(|finding| {
            let text = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
            format!(
                "{} {}:{}: {}",
                text("rule"),
                text("path"),
                finding["line"].as_u64().unwrap_or(0),
                text("message")
            )
        })
        .collect()
}

/// The expected result of a case.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Is {
    Clean,
    Found(&'static str),
    /// Found although kustomize builds it: something else than what is written there.
    Misread(&'static str),
}
use Is::{Clean, Found, Misread};

/// A root `app`, its kustomization, and whether kustomize builds it. Beside it lie `base`, `component`, `files`
/// and links.
const CASES: &[(&str, Is)] = &[
    ("resources: [map.yaml, ../base]", Clean),
    ("resources: [./map.yaml, ../other/../base]", Clean),
    ("resources: []", Clean),
    ("RESOURCES: [map.yaml]", Clean),
    ("resources: [map.yaml]\ncomponents: [../component]", Clean),
    ("transformers: ['']\nresources: [map.yaml]", Clean),
    ("resources: ['']", Found("invalid-kustomization")),
    ("components: ['']", Found("invalid-kustomization")),
    (
        "resources: [map.yaml, null]",
        Found("invalid-kustomization"),
    ),
    ("bases: [../base]\nresources: [link.yaml]", Clean),
    ("resources: [linked-base]", Clean),
    (
        "resources: [map.yaml]\npatches: [{path: patch.yaml}]",
        Clean,
    ),
    (
        "resources: [map.yaml]\npatches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}'}]",
        Clean,
    ),
    (
        "resources: [map.yaml]\npatchesStrategicMerge: ['{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}']",
        Clean,
    ),
    (
        "configMapGenerator: [{name: a, files: [map.yaml, k=map.yaml], literals: [gone=gone.yaml], envs: [one.env]}]",
        Clean,
    ),
    ("resources: [map.yaml]\n# resources: [gone.yaml]", Clean),
    ("transformers: [prefix.yaml]\nresources: [map.yaml]", Clean),
    (
        "transformers:\n- |\n  apiVersion: builtin\n  kind: PrefixTransformer\n  metadata: {name: a}\n  prefix: x-\n  fieldSpecs: [{path: metadata/name}]\nresources: [map.yaml]",
        Clean,
    ),
    ("resources: [gone.yaml]", Found("missing-path")),
    ("resources: [../gone]", Found("missing-path")),
    ("resources: [map.yaml/x]", Found("missing-path")),
    ("resources: [dangling.yaml]", Found("missing-path")),
    ("resources: ['*.yaml']", Found("missing-path")),
    ("resources: [../files]", Found("missing-path")),
    ("components: [../files]", Found("missing-path")),
    ("components: [../gone]", Found("missing-path")),
    ("crds: [gone.yaml]", Found("missing-path")),
    ("configurations: [gone.yaml]", Found("missing-path")),
    (
        "openapi: {path: gone.yaml}\nresources: [map.yaml]",
        Found("missing-path"),
    ),
    (
        "resources: [map.yaml]\npatches: [{path: gone.yaml}]",
        Found("missing-path"),
    ),
    (
        "resources: [map.yaml]\nreplacements: [{path: gone.yaml}]",
        Found("missing-path"),
    ),
    (
        "configMapGenerator: [{name: a, files: [gone]}]",
        Found("missing-path"),
    ),
    (
        "configMapGenerator: [{name: a, envs: [gone]}]",
        Found("missing-path"),
    ),
    (
        "secretGenerator: [{name: a, files: [k=gone]}]",
        Found("missing-path"),
    ),
    (
        "transformers: [gone.yaml]\nresources: [map.yaml]",
        Found("missing-path"),
    ),
    (
        "transformers: [patch-gone.yaml]\nresources: [map.yaml]",
        Found("missing-path"),
    ),
    ("resources: [../files/map.yaml]", Found("out-of-scope")),
    (
        "resources: [map.yaml]\npatches: [{path: ../files/map.yaml}]",
        Found("out-of-scope"),
    ),
    (
        "configMapGenerator: [{name: a, files: [../files/map.yaml]}]",
        Found("out-of-scope"),
    ),
    ("resources: [out.yaml]", Found("out-of-scope")),
    ("resources: [/etc]", Found("out-of-scope")),
    ("resources: [/nowhere/base]", Found("out-of-scope")),
    ("resources: [.]", Found("cycle")),
    ("resources: [../app]", Found("cycle")),
    ("resources: [../back]", Found("cycle")),
    ("resources: [inner]", Found("cycle")),
    ("resources: [linked-self]", Found("cycle")),
    ("", Found("invalid-kustomization")),
    ("kind: Kustomization", Found("invalid-kustomization")),
    ("resource: [map.yaml]", Found("invalid-kustomization")),
    ("resources: map.yaml", Found("invalid-kustomization")),
    (
        "kind: Deployment\nresources: [map.yaml]",
        Found("invalid-kustomization"),
    ),
    (
        "apiVersion: v1\nresources: [map.yaml]",
        Found("invalid-kustomization"),
    ),
    ("resources: [map.yaml", Found("invalid-kustomization")),
    ("resources: [../component]", Found("invalid-kustomization")),
    ("components: [../base]", Found("invalid-kustomization")),
    ("components: [map.yaml]", Found("invalid-kustomization")),
    ("resources: [../two]", Found("invalid-kustomization")),
    ("resources: [../flux]", Found("invalid-kustomization")),
    ("resources: [../linked]", Found("invalid-kustomization")),
    (
        "resources: [map.yaml]\npatches: [{path: .}]",
        Found("invalid-kustomization"),
    ),
    (
        "configMapGenerator: [{name: a, files: [sub]}]",
        Found("invalid-kustomization"),
    ),
    ("resources: [loop.yaml]", Found("invalid-kustomization")),
    (
        "transformers: [nonsense.yaml]\nresources: [map.yaml]",
        Found("invalid-kustomization"),
    ),
];

/// Puts a case into a directory.
fn prepare(memory: &mut Memory, at: &str, case: &str) {
    let mut write = |path: &str, text: &str| memory.write(&format!("{at}/{path}"), text);
    write("app/kustomization.yaml", case);
    write("app/map.yaml", &config("app"));
    write("app/one.env", "ONE=1\n");
    write("app/patch.yaml", &config("app"));
    write(
        "app/prefix.yaml",
        "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: a}\nprefix: x-\nfieldSpecs: [{path: metadata/name}]\n",
    );
    write(
        "app/patch-gone.yaml",
        "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\npath: gone.yaml\n",
    );
    write(
        "app/nonsense.yaml",
        "apiVersion: builtin\nkind: Nonsense\nmetadata: {name: a}\n",
    );
    write("base/kustomization.yaml", "resources: [map.yaml]\n");
    write("base/map.yaml", &config("base"));
    write(
        "component/kustomization.yaml",
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: c-\n",
    );
    write("files/map.yaml", &config("files"));
    write("app/sub/x.txt", "x");
    // Files that are wrong by themselves are only there if the case needs them.
    for (name, path, text) in [
        (
            "../back]",
            "back/kustomization.yaml",
            "resources: [../app]\n",
        ),
        (
            "[inner]",
            "app/inner/kustomization.yaml",
            "resources: [..]\n",
        ),
        ("../two]", "two/kustomization.yaml", "resources: []\n"),
        ("../two]", "two/Kustomization", "resources: []\n"),
        ("../flux]", "flux/kustomization.yaml", FLUX),
    ] {
        if case.contains(name) {
            write(path, text);
        }
    }
    let mut link = |path: &str, to: &str| memory.symlink(&format!("{at}/{path}"), to);
    link("app/link.yaml", "map.yaml");
    link("app/out.yaml", "../files/map.yaml");
    link("app/dangling.yaml", "gone.yaml");
    link("app/loop.yaml", "loop.yaml");
    link("app/linked-base", "../base");
    link("app/linked-self", ".");
    if case.contains("../linked]") {
        link("linked/kustomization.yaml", "../base/kustomization.yaml");
    }
}

const FLUX: &str = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a, namespace: b}\nspec: {path: ./app}\n";

#[test]
fn exactly_the_errors_of_kustomize_are_found() {
    agree(CASES);
}

/// Checks many cases at once, and builds each.
pub(crate) fn agree<T: AsRef<str>>(cases: &[(T, Is)]) {
    let Some(kustomize) = Kustomize::find() else {
        return;
    };
    let mut memory = Memory::default();
    for (number, (text, _)) in cases.iter().enumerate() {
        prepare(&mut memory, &format!("case-{number:02}"), text.as_ref());
    }
    let sandbox = Sandbox::new();
    let work = sandbox.path("work");
    memory.lay_out(&work);
    let findings = memory.findings();
    for (number, (text, is)) in cases.iter().enumerate() {
        let text = text.as_ref();
        let place = format!("case-{number:02}");
        let inside = format!("{place}/");
        let rules: Vec<&str> = findings
            .iter()
            .filter(|finding| finding["path"].as_str().unwrap().starts_with(&inside))
            .map(|finding| finding["rule"].as_str().unwrap())
            .collect();
        let built = kustomize.build(&sandbox, &work, &format!("{place}/app"));
        match is {
            Clean => {
                assert_eq!(rules, [""; 0], "{text}");
                assert_eq!(built.status, 0, "{text}: {built:?}");
            }
            Found(rule) | Misread(rule) => {
                assert!(
                    !rules.is_empty() && rules.iter().all(|one| one == rule),
                    "{text}: {rules:?}"
                );
                let builds = matches!(is, Misread(_));
                assert_eq!(built.status == 0, builds, "{text}: {built:?}");
            }
        }
    }
}

#[test]
fn a_path_that_is_on_disk_only() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write(
        "a/kustomization.yaml",
        "resources:\n- map.yaml\n- ../base\n- ../part\n- secret.env\n- ../build\n",
    );
    repo.write("part/map.yaml", config("part"));
    repo.write(".gitignore", "*.env\nbuild/\n");
    repo.git(&["add", "--all"]);
    repo.write("a/map.yaml", config("a"));
    repo.write("part/kustomization.yaml", "resources: [map.yaml]\n");
    repo.write("base/kustomization.yaml", "resources: [map.yaml]\n");
    repo.write("base/map.yaml", config("base"));
    let place = "a/kustomization.yaml";
    let ignored = [
        format!("ignored-path {place}:5: git ignores `a/secret.env`: by `*.env` in .gitignore:1"),
        format!("ignored-path {place}:6: git ignores `build`: by `build/` in .gitignore:2"),
    ];
    let mut expected = vec![
        format!("missing-path {place}:2: `a/map.yaml` is on disk, but not staged"),
        format!("missing-path {place}:3: `base` is on disk, but not staged"),
        format!("missing-path {place}:4: `part/kustomization.yaml` is on disk, but not staged"),
    ];
    expected.extend(ignored.clone());
    assert_eq!(told(&repo, &[]), expected);
    assert_eq!(told(&repo, &["--working-tree"]), ignored);
    repo.git(&["commit", "-q", "--no-verify", "-m", "lost"]);
    let mut expected = vec![
        format!("missing-path {place}:2: there is no `a/map.yaml`"),
        format!("missing-path {place}:3: there is no `base`"),
        format!("missing-path {place}:4: `part` holds no kustomization"),
    ];
    expected.extend(ignored);
    assert_eq!(told(&repo, &["--rev", "HEAD"]), expected);
    // Only the name of a file is staged.
    repo.git(&["add", "-N", "a/map.yaml"]);
    assert!(told(&repo, &[])[0].contains("`a/map.yaml` is on disk, but not staged"));
    repo.git(&["add", "--all"]);
    // Ignored files warn and fail nothing.
    repo.run(&["check"]).success().stdout_has("ignored-path");
}

#[test]
fn a_secret_that_several_kustomizations_name_is_still_ignored() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let text = "secretGenerator:\n- {name: a, envs: [../secret.env]}\n- {name: b, envs: [../secret.env]}\n";
    repo.write("a/kustomization.yaml", text);
    repo.write("b/kustomization.yaml", text);
    repo.write(".gitignore", "*.env\n");
    repo.write(".kustomize-localize", "load-restrictor: none\n");
    repo.write("secret.env", "password=x\n");
    repo.git(&["add", "--all"]);
    // The report must not suggest to add it.
    let told = told(&repo, &[]);
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(
        told.iter().all(|one| one.starts_with("ignored-path ")),
        "{told:?}"
    );
    repo.run(&["check"]).success();
}

#[test]
fn a_path_in_a_submodule_warns() {
    let sandbox = Sandbox::new();
    let other = sandbox.repo("other");
    other.write("base/kustomization.yaml", "namePrefix: a-\n");
    other.commit("other");
    let repo = sandbox.repo("work");
    let url = other.path().to_str().unwrap();
    repo.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        url,
        "sub",
    ]);
    repo.write(
        "a/kustomization.yaml",
        "resources: [../sub/base]\npatches: [{path: x.yaml}]\n",
    );
    repo.symlink("a/x.yaml", "../sub/base/kustomization.yaml");
    repo.commit("submodule");
    let expected = [
        "submodule-path a/kustomization.yaml:1: `../sub/base` lies in the submodule `sub`, whose files this repository does not hold",
        "submodule-path a/kustomization.yaml:2: `x.yaml` lies in the submodule `sub`, whose files this repository does not hold",
    ];
    for source in [&["--staged"][..], &["--working-tree"], &["--rev", "HEAD"]] {
        assert_eq!(told(&repo, source), expected, "{source:?}");
    }
    repo.run(&["check"]).success().stdout_has("submodule-path");
}

/// Returns the commands that help prints: what follows a phrase and a colon, or all of it.
fn commands(findings: &[Value]) -> Vec<String> {
    findings
        .iter()
        .flat_map(|finding| finding["help"].as_array().unwrap())
        .filter_map(|help| {
            let help = help.as_str().unwrap();
            ["git ", "(cd ", "printf "].iter().find_map(|program| {
                match (
                    help.starts_with(program),
                    help.find(&format!(": {program}")),
                ) {
                    (true, _) => Some(help.to_owned()),
                    (_, Some(at)) => Some(help[at + 2..].to_owned()),
                    _ => None,
                }
            })
        })
        .collect()
}

fn shell(sandbox: &Sandbox, directory: &Path, command: &str) -> Output {
    Running::start(sandbox.command("sh", directory).args(["-c", command])).wait()
}

/// Stages what `stage` leaves in the index, and asserts that the hook refuses to commit it, that this many
/// commands are printed, and that the commit passes after each of them.
#[track_caller]
fn ways_out(stage: impl Fn(&Repo), then: impl Fn(&Repo, usize), count: usize) {
    let mut number = 0;
    loop {
        let sandbox = Sandbox::new();
        sandbox.offer_itself();
        if let Some(kustomize) = Kustomize::find() {
            sandbox.offer("kustomize", kustomize.program());
        }
        let repo = sandbox.repo("work");
        repo.git(&["commit", "-q", "--allow-empty", "-m", "begin"]);
        repo.run(&["hook", "install"]).success();
        stage(&repo);
        repo.try_git(&["commit", "-q", "-m", "blocked"]).fails(1);
        let commands = commands(&findings(&repo, &[]));
        assert_eq!(commands.len(), count, "{commands:#?}");
        // From anywhere in the repository.
        let inside = repo.path().join("in side");
        std::fs::create_dir_all(&inside).unwrap();
        shell(&sandbox, &inside, &commands[number]).success();
        then(&repo, number);
        let done = repo.try_git(&["commit", "-q", "-m", "mended"]);
        assert_eq!(done.status, 0, "{}: {done:?}", commands[number]);
        assert_eq!(
            told(&repo, &["--rev", "HEAD"]),
            [""; 0],
            "{}",
            commands[number]
        );
        number += 1;
        if number == count {
            return;
        }
    }
}

fn nothing_more(_: &Repo, _: usize) {}

#[test]
fn the_ways_out_of_a_missing_path() {
    let root = "resources: [map.yaml]\n";
    ways_out(
        |repo| {
            repo.write("a b/kustomization.yaml", root);
            repo.git(&["add", "--all"]);
            repo.write("a b/map.yaml", config("a"));
        },
        nothing_more,
        1,
    );
    ways_out(
        |repo| {
            repo.write("a/kustomization.yaml", "resources: [../base]\n");
            repo.git(&["add", "--all"]);
            repo.write("base/kustomization.yaml", root);
            repo.write("base/map.yaml", config("base"));
        },
        nothing_more,
        1,
    );
    ways_out(
        |repo| {
            repo.write("a/kustomization.yaml", "resources: [../base]\n");
            repo.write("base/map.yaml", config("base"));
            repo.git(&["add", "--all"]);
            repo.write("base/kustomization.yml", root);
        },
        nothing_more,
        1,
    );
}

#[test]
fn the_way_to_make_a_root() {
    if Kustomize::find().is_none() {
        return;
    }
    ways_out(
        |repo| {
            repo.write("a/kustomization.yaml", "resources: [../base]\n");
            repo.write("base/map.yaml", config("base"));
            repo.git(&["add", "--all"]);
        },
        |repo, _| {
            assert!(
                repo.git(&["show", ":base/kustomization.yaml"])
                    .contains("map.yaml")
            )
        },
        1,
    );
}

#[test]
fn the_ways_out_of_a_file_outside_of_its_root() {
    let named = |repo: &Repo, number: usize| {
        // The copy must be named.
        if number == 0 {
            repo.write("a/kustomization.yaml", "resources: [map.yaml]\n");
            repo.git(&["add", "a"]);
        }
    };
    for more in ["", "locked: allow", "locked: allow\n"] {
        ways_out(
            |repo| {
                repo.write("a/kustomization.yaml", "resources: [../files/map.yaml]\n");
                repo.write("files/map.yaml", config("base"));
                if !more.is_empty() {
                    repo.write(".kustomize-localize", more);
                }
                repo.git(&["add", "--all"]);
            },
            named,
            2,
        );
    }
    ways_out(
        |repo| {
            repo.write("a/kustomization.yaml", "resources: [map.yaml]\n");
            repo.write("files/map.yaml", config("base"));
            repo.symlink("a/map.yaml", "../files/map.yaml");
            repo.git(&["add", "--all"]);
        },
        |repo, number| {
            let mode = repo.git(&["ls-files", "-s", "a/map.yaml"]);
            assert_eq!(mode.starts_with("100644"), number == 0, "{mode}");
        },
        2,
    );
}

#[test]
fn the_way_out_of_a_link_that_leaves() {
    for (target, link) in [("file.yaml", "a/x.yaml"), ("directory", "a/x.yaml")] {
        ways_out(
            |repo| {
                let outside = repo.path().parent().unwrap().join("outside");
                std::fs::create_dir_all(outside.join("directory")).unwrap();
                std::fs::write(outside.join("file.yaml"), config("a")).unwrap();
                std::fs::write(
                    outside.join("directory/kustomization.yaml"),
                    "namePrefix: a-\n",
                )
                .unwrap();
                repo.write("a/kustomization.yaml", "resources: [x.yaml]\n");
                repo.symlink(link, outside.join(target).to_str().unwrap());
                repo.git(&["add", "--all"]);
            },
            nothing_more,
            1,
        );
    }
}

#[test]
fn the_way_out_of_two_kustomizations() {
    ways_out(
        |repo| {
            repo.write("a/kustomization.yaml", "resources: []\n");
            repo.write("a/Kustomization", "resources: []\n");
            repo.git(&["add", "--all"]);
        },
        // Nothing is lost.
        |repo, _| assert!(repo.path().join("a/Kustomization").is_file()),
        1,
    );
}

#[test]
fn ignored_files_can_be_added() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("a/kustomization.yaml", "resources: [build/map.yaml]\n");
    repo.write(".gitignore", "build/\n");
    repo.write("a/build/map.yaml", config("a"));
    repo.git(&["add", "--all"]);
    let findings = findings(&repo, &[]);
    assert_eq!(findings[0]["severity"], "warning");
    let commands = commands(&findings);
    assert_eq!(commands, ["git add -f -- :/a/build/map.yaml"]);
    shell(&sandbox, repo.path(), &commands[0]).success();
    assert_eq!(told(&repo, &[]), [""; 0]);
}

#[test]
fn scopes_apply_to_their_files() {
    let memory = Memory::of(&[
        (".kustomize-localize", "scopes: [apps/*]\n"),
        (
            "apps/web/kustomization.yaml",
            "resources:\n- ../api\n- base\n",
        ),
        ("apps/web/base/kustomization.yaml", "namePrefix: a-\n"),
        ("apps/api/kustomization.yaml", "namePrefix: a-\n"),
        (
            "all/kustomization.yaml",
            "resources: [../apps/web, ../apps/api]\n",
        ),
    ]);
    assert_eq!(
        listed(&memory.findings()),
        [
            "out-of-scope apps/web/kustomization.yaml:2: `../api` names `apps/api`, outside of the scope `apps/web` that .kustomize-localize sets"
        ]
    );
    let allowed = memory.with(
        "apps/web/kustomization.yaml",
        "resources:\n- ../api # kustomize-localize: allow[out-of-scope] moves next week\n- base\n",
    );
    assert_eq!(allowed.checked().status(), 0);
}

#[test]
fn an_absolute_link_names_nothing_in_another_checkout() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("base/kustomization.yaml", "resources: [map.yaml]\n");
    repo.write("base/map.yaml", config("base"));
    let place = |path: &str| repo.path().join(path).to_str().unwrap().to_owned();
    repo.write("app/more.yaml", config("more"));
    repo.symlink("app/map.yaml", &place("app/more.yaml"));
    repo.symlink("app/base", &place("base"));
    repo.write("app/kustomization.yaml", "resources: [map.yaml, base]\n");
    repo.commit("links");
    for args in [&[][..], &["--working-tree"], &["--rev", "HEAD"]] {
        let told = told(&repo, args);
        assert_eq!(told.len(), 2, "{told:?}");
        for (told, name) in told.iter().zip(["map.yaml", "base"]) {
            assert!(
                told.starts_with("out-of-scope app/kustomization.yaml:1: "),
                "{told}"
            );
            let link = format!("follows the link `app/{name}` to `/");
            assert!(told.contains(&link), "{told}");
            let why = "an absolute path, which names nothing in another checkout";
            assert!(told.ends_with(why), "{told}");
        }
    }
    // A relative link is not affected.
    repo.remove("app/map.yaml");
    repo.remove("app/base");
    repo.symlink("app/map.yaml", "more.yaml");
    repo.symlink("app/base", "../base");
    repo.git(&["add", "--all"]);
    assert_eq!(told(&repo, &[]), [""; 0]);
}
