//! Secrets in a URL are written nowhere but where the user wrote them.

use std::fs;
use std::path::Path;

use crate::support::{Reply, Repo, Sandbox, Server, config_map, rows};

/// Part of every secret of these tests.
const SECRET: &str = "s3cr3t";

/// The last one is named by a repository, the others by the user.
const FILES: [&str; 4] = [
    "cm.yaml?token=s3cr3t-query&x=1",
    "cm.yaml?X-Amz-Signature=s3cr3tsigned0123456789abcdef",
    "cm.yaml?private_token=s3cr3t&ref=main",
    "nested.yaml?token=s3cr3t-nested",
];

struct World {
    sandbox: Sandbox,
    server: Server,
    /// `http://me:s3cr3t@127.0.0.1:PORT/`.
    login: String,
}

impl World {
    fn new() -> World {
        let sandbox = Sandbox::new();
        let server = Server::start();
        let login = server.url().replace("http://", "http://me:s3cr3t@");
        let library = sandbox.repo("srv/private/library");
        library.write("kustomization.yaml", "resources: [cm.yaml]\n");
        library.write("cm.yaml", config_map("library"));
        library.commit("library");
        let base = sandbox.repo("srv/private/base");
        let nested = format!("{}files/nested.yaml?token=s3cr3t-nested", server.url());
        base.write("app/kustomization.yaml", format!("resources:\n- cm.yaml\n- ../lib\n- {nested}\n"));
        base.write("app/cm.yaml", config_map("base"));
        base.git(&["clone", "-q", library.path().to_str().unwrap(), "lib"]);
        base.write(".gitmodules", format!("[submodule \"lib\"]\n\tpath = lib\n\turl = {login}private/library\n"));
        base.commit("base");
        server.serve_git("/private/", &sandbox.path("srv/private"));
        server.require_password("/private/", "me", SECRET);
        for (number, file) in FILES.iter().enumerate() {
            let body = config_map(&format!("file-{number}"));
            server.route(&format!("/files/{file}"), Reply::ok(body));
        }
        server.route("/files/crd.json", Reply::ok("{}\n"));
        server.require_password("/files/crd.json", "me", SECRET);
        World { sandbox, server, login }
    }

    fn user(&self) -> Repo {
        let repo = self.sandbox.repo("work");
        let (url, login) = (self.server.url(), &self.login);
        let files = FILES[..3].iter();
        let files: String = files.map(|file| format!("- {url}files/{file}\n")).collect();
        repo.write(
            "app/kustomization.yaml",
            format!("resources:\n- {login}private/base//app?ref=main\n{files}crds: ['{login}files/crd.json']\n"),
        );
        repo.commit("source");
        repo
    }

    /// Looks into everything that outlives a run, outside of `allowed`.
    #[track_caller]
    fn assert_kept(&self, allowed: &[&Path]) {
        let mut todo = ["cache", "tmp", "work"].map(|top| self.sandbox.path(top)).to_vec();
        while let Some(path) = todo.pop() {
            let shown = path.display().to_string();
            assert!(!shown.contains(SECRET), "{shown}");
            if allowed.contains(&path.as_path()) {
                continue;
            }
            if path.is_dir() {
                todo.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
            } else {
                let bytes = fs::read(&path).unwrap();
                let text = String::from_utf8_lossy(&bytes);
                assert!(!text.contains(SECRET), "{shown}\n{text}");
            }
        }
    }
}

fn empty_cache(sandbox: &Sandbox) {
    fs::remove_dir_all(sandbox.path("cache")).unwrap();
    fs::create_dir(sandbox.path("cache")).unwrap();
}

#[test]
fn no_output_or_stored_file_holds_a_secret() {
    let world = World::new();
    world.sandbox.builds();
    let repo = world.user();
    for args in [
        ["app", "--dry-run"].as_slice(),
        &["app", "--dry-run", "-v"],
        &["app", "--dry-run", "--format", "json"],
        &["app", "-v"],
    ] {
        repo.run(args).success().lacks(SECRET);
    }
    let branch = "localized/main";
    let own = "app/kustomization.yaml";
    for file in repo.files(branch) {
        let path = file.split_once(' ').unwrap().1;
        assert!(!path.contains(SECRET), "{path}");
        assert!(path == own || !repo.show(branch, path).contains(SECRET), "{path}\n{}", repo.show(branch, path));
    }
    let commit = repo.git(&["cat-file", "commit", branch]);
    assert!(commit.contains("private/base"), "{commit}");
    assert!(!commit.contains(SECRET), "{commit}");
    let reflog = repo.git(&["reflog", "show", branch]);
    assert!(!reflog.is_empty() && !reflog.contains(SECRET), "{reflog}");
    world.assert_kept(&[&repo.path().join(own)]);

    // Nor what the next run makes of it, which has to fetch the file that named a secret.
    empty_cache(&world.sandbox);
    repo.run(&["app"]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has app in localized-app
          verified: 1 build verified before, from the same inputs (kustomize/…)
    "#]]);
    repo.run(&["app", "disk", "--no-commit"]).success();
    world.assert_kept(&[&repo.path().join(own)]);

    // A target may hold a login. The same target again, with another login or none, is the same.
    let target = format!("{}private/base//app?ref=main", world.login);
    repo.run(&[&target, "copy"]).success().lacks(SECRET);
    repo.run(&[&target, "copy"]).success().stdout_has("nothing to do");
    let commit = repo.git(&["cat-file", "commit", branch]);
    let lock = repo.show(branch, "copy/kustomize-localize.lock");
    assert!(!(commit + &lock).contains(SECRET), "{lock}");

    // Two logins for one repository are one entry.
    let library = format!("{}private/library.git?ref=main", world.login);
    let other = library.replace("me:s3cr3t", "me:s3cr3%74");
    for (path, named) in [("two/a", &library), ("two/b", &other)] {
        let prefix = path.replace('/', "-");
        let text = format!("resources: ['{named}']\nnamePrefix: {prefix}-\n");
        repo.write(&format!("{path}/kustomization.yaml"), text);
    }
    repo.write("two/kustomization.yaml", "resources: [a, b]\n");
    repo.commit("two");
    repo.run(&["two"]).success();
    let lock = repo.show(branch, "localized-two/kustomize-localize.lock");
    let remotes = lock.split("files:\n").next().unwrap();
    assert_eq!(remotes.matches("private/library").count(), 1, "{lock}");
}

#[test]
fn a_failure_shows_no_secret_either() {
    let world = World::new();
    world.sandbox.builds();
    let (url, login) = (world.server.url(), &world.login);
    let wrong = login.replace(SECRET, "s3cr3t-wrong");
    let repo = world.sandbox.repo("work");
    let references = [
        format!("{wrong}private/base.git?ref=main"),
        format!("{login}private/base.git?ref=nowhere"),
        format!("{login}private/base.git"),
        format!("{login}private/nothing.git?ref=v1"),
        format!("{login}private/base//nowhere?ref=main"),
        format!("{url}files/gone.yaml?token=s3cr3t-query"),
        format!("{url}files/gone?token=s3cr3t-query&ref=v1"),
        "https://me:s3cr3t@host.invalid/o/r.git?ref=v1".to_owned(),
        "ssh://me:s3cr3t@-host/o/r?ref=v1".to_owned(),
        "ssh://me:s3cr3t@127.0.0.1:1/o/r?ref=v1".to_owned(),
        "https://me:s3cr3t@host.invalid/o/r.git?ref=--x".to_owned(),
        "git://me:s3cr3t@host/o/r".to_owned(),
    ];
    let list: Vec<String> = references.iter().map(|it| format!("- {it}\n")).collect();
    repo.write("app/kustomization.yaml", format!("resources:\n{}", list.concat()));
    repo.commit("failing");
    for args in [["app", "-v"].as_slice(), &["app", "--format", "json"], &["app", "--offline"]] {
        let output = repo.run(args);
        output.fails(2).lacks(SECRET);
        for index in 0..references.len() {
            output.stderr_has(&format!("resources[{index}]"));
        }
    }
    for reference in &references[..4] {
        repo.run(&[reference, "copy"]).fails(2).lacks(SECRET);
    }
    world.assert_kept(&[&repo.path().join("app/kustomization.yaml")]);
}

/// Spellings that are no reference to kustomize, or no URL, and hold a secret all the same.
const MISTAKEN: [&str; 12] = [
    "resources: ['a.yaml - http://u:s3cr3t@host.example/x.yaml']",
    "resources:\n- a.yaml\n  - http://u:s3cr3t@host.example/y.yaml",
    "resources: ['u:s3cr3t@host:a/b']",
    "resources: ['a.yaml http://u:s3cr3t@host.example/x.yaml']",
    "resources: ['https://h.example/o/r?sshkey=s3cr3t&deploy-key=s3cr3t']",
    "resources: ['git@h.example:o/r?sshkey=s3cr3t']",
    "components: ['u:s3cr3t@host:a/b']",
    "generators: ['u:s3cr3t@host/a/b.yaml']",
    "patches: [{path: 'u:s3cr3t@host:a/b.yaml'}]",
    "crds: ['x https://u:s3cr3t@host/a b']",
    "openapi: {path: 'a.yaml,http://u:s3cr3t@host.example/x.yaml'}",
    "helmCharts: [{name: a, valuesFile: 'u:s3cr3t@host:a/b'}]",
];

/// The same in lists of generators, which split at `=`.
const SOURCES: [&str; 8] = [
    "https://h.example/x.yaml?token=s3cr3t",
    "h.example/x.yaml?token=s3cr3t",
    "git@h.example:x?token=s3cr3t",
    "k=u:s3cr3t@host:a/b",
    "u:s3cr3t@host:a/b=x",
    "k=ghp_s3cr3t0123456789abcdef",
    "k=a/ghp_s3cr3t0123456789abcdef/x",
    "- http://u:s3cr3t@host.example/z",
];

#[test]
fn what_is_no_url_shows_no_secret() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("README.md", "");
    repo.commit("before");
    let generators = ["configMapGenerator", "secretGenerator"];
    let sources = generators.iter().flat_map(|generator| {
        let list = move |list: &str, source: &str| format!("{generator}: [{{name: a, {list}: ['{source}']}}]");
        SOURCES.iter().flat_map(move |source| [list("files", source), list("envs", source)])
    });
    let texts = MISTAKEN.into_iter().map(str::to_owned).chain(sources);
    let roots: Vec<String> = texts
        .enumerate()
        .map(|(number, text)| {
            repo.write(&format!("{number}/kustomization.yaml"), text + "\n");
            number.to_string()
        })
        .collect();
    for format in ["human", "json", "sarif", "github", "gitlab"] {
        let output = repo.run(&["check", "--format", format]);
        output.fails(1).lacks(SECRET);
        if format == "json" {
            for root in &roots {
                output.stdout_has(&format!("\"{root}/kustomization.yaml\""));
            }
        }
    }
    let localizing = ["--no-verify", "--dry-run"];
    for format in ["--format=human", "--format=json"] {
        for args in [&["lock"][..], &["tree"], &["affected", "HEAD"], &[&["vendor"], &localizing[..]].concat()] {
            repo.run(&[args, &[format]].concat()).lacks(SECRET);
        }
    }
    let out = sandbox.path("out");
    let out = out.to_str().unwrap();
    for root in rows(&roots, 3) {
        let copying = [&localizing[..], &["--no-commit", root, out]].concat();
        repo.run(&copying).lacks(SECRET);
    }
}

/// A kustomization in which every field names what is a path to kustomize, and a password to who wrote it.
fn mistaken_everywhere() -> String {
    let mut number = 0;
    let mut text = String::new();
    for field in [
        "resources: [there, '@', './@', '../@', 'k/../@', '@/../../../../x']",
        "components: ['@']",
        "crds: ['@']",
        "configurations: ['@']",
        "openapi: {path: '@'}",
        "generators: ['@']",
        "transformers: ['@']",
        "validators: ['@']",
        "patches: [{path: '@'}]",
        "patchesStrategicMerge: ['@']",
        "patchesJson6902: [{path: '@', target: {kind: A, name: b}}]",
        "replacements: [{path: '@'}]",
        "configMapGenerator: [{name: a, files: ['@', 'k=@'], envs: ['@'], env: '@'}]",
        "secretGenerator: [{name: a, files: ['@'], envs: ['@']}]",
        "helmGlobals: {chartHome: '@'}",
        "helmCharts: [{name: '@', valuesFile: '@', additionalValuesFiles: ['@']}]",
    ] {
        for piece in field.split_inclusive('@') {
            number += 1;
            text += &piece.replace('@', &format!("u:{SECRET}@host:a/{number}"));
        }
        text.push('\n');
    }
    text
}

#[test]
fn no_path_that_leads_to_a_secret_shows_it() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.git(&["remote", "add", "origin", "https://git.example.com/work"]);
    for place in ["", "x/", "x/y/"] {
        repo.write(&format!("{place}kustomization.yaml"), mistaken_everywhere());
    }
    let bad = format!("u:{SECRET}@host:a/b");
    let ours = "repoURL: 'https://git.example.com/work'";
    let adds = format!("kustomize: {{components: ['{bad}'], patches: [{{path: '{bad}'}}]}}");
    repo.write(
        "clusters/argo.yaml",
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: a}}\nspec:\n  sources:\n  - {{{ours}, path: 'x/{bad}'}}\n  - {{{ours}, path: x/y, {adds}}}\n  - {{repoURL: '{bad}', path: x}}\n"
        ),
    );
    repo.write(
        "clusters/flux.yaml",
        format!(
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {{name: s, namespace: f}}\nspec: {{url: 'https://git.example.com/work'}}\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: a, namespace: f}}\nspec: {{path: 'x/y/{bad}', components: ['{bad}'], sourceRef: {{kind: GitRepository, name: s}}}}\n"
        ),
    );
    let rules = [
        "missing-path",
        "out-of-scope",
        "missing-target",
        "remote-chart",
        "engine",
        "unsafe-reference",
        "invalid-kustomization",
    ];
    let rules = rules.map(|rule| format!("{rule}: warning"));
    repo.write(".kustomize-localize", format!("rules: {{{}}}\n", rules.join(", ")));
    repo.commit("hostile");
    repo.write("x/y/new", "");
    repo.commit("more");
    let out = sandbox.path("out");
    let out = out.to_str().unwrap();
    let mut said = 0;
    let mut run = |args: &[&str]| {
        let output = repo.run(args);
        output.lacks(SECRET);
        said += (output.stdout.clone() + &output.stderr).matches("u@host").count();
    };
    for format in ["human", "json", "sarif", "github", "gitlab"] {
        run(&["check", "--format", format]);
    }
    for more in [&[][..], &["--format=json"]] {
        let mut run = |args: &[&str]| run(&[args, more].concat());
        run(&["check", "x/y"]);
        run(&["tree"]);
        run(&["tree", "x/y"]);
        run(&["targets"]);
        run(&["affected", "HEAD~1"]);
        run(&["lock", "--dry-run"]);
        run(&["update", "--dry-run"]);
        for place in [".", "x", "x/y"] {
            run(&["--no-commit", "--no-verify", place, out]);
            run(&["--no-verify", place]);
        }
        run(&["branch", "--no-verify"]);
        run(&["verify", "localized/main"]);
        run(&["lock"]);
    }
    let kept = repo.git(&["log", "--format=%B", "localized/main"]);
    assert!(!kept.contains(SECRET), "{kept}");
    assert!(said > 1000, "{said}");
}

/// The arguments of a process are seen by every user of the machine.
#[test]
fn no_argument_of_git_holds_a_login() {
    let world = World::new();
    world.sandbox.builds();
    let trace = world.sandbox.path("trace");
    world.sandbox.set("GIT_TRACE2_EVENT", &trace);
    world.sandbox.set("GIT_TRACE2_REDACT", "0");
    let repo = world.user();
    let target = format!("{}private/base//app?ref=main", world.login);
    let mut ran = String::new();
    for args in [["lock"].as_slice(), &["update"], &["app", "--no-verify"], &[&target, "copy", "--no-verify"]] {
        repo.run(args).success();
        if args == ["lock"] {
            repo.commit("locked");
        }
        ran += &String::from_utf8_lossy(&fs::read(&trace).unwrap());
        fs::remove_file(&trace).unwrap();
    }
    // Where a repository has moved, git is asked what it makes of the URL.
    world.server.route(
        "/moved/base/info/refs?service=git-upload-pack",
        Reply::redirect(&format!("{}nowhere/info/refs", world.server.url())),
    );
    let moved = format!("resources: ['{}moved/base?ref=main']\n", world.login);
    repo.write("kustomization.yaml", moved);
    repo.run(&["lock"]).fails(1);
    ran += &String::from_utf8_lossy(&fs::read(&trace).unwrap());
    for part in ["\"ls-remote\"", "\"fetch\"", "remote-http", "--get-url"] {
        assert!(ran.contains(part), "no {part}\n{ran}");
    }
    let telling = ran.lines().find(|line| line.contains(SECRET));
    assert_eq!(telling, None);
}

/// A login of a URL is what git sends, whatever helpers there are, and none of them learns it.
#[test]
fn the_login_of_a_url_is_sent_and_told_nobody() {
    let world = World::new();
    world.sandbox.builds();
    let told = world.sandbox.path("told");
    let script =
        format!("echo \"$1\" >> '{0}'; cat >> '{0}'; echo username=other; echo password=wrong", told.display());
    world.sandbox.script("git-credential-spy", &script);
    world.sandbox.configure("credential.helper", "spy");
    let repo = world.sandbox.repo("work");
    let lock = |login: &str| {
        let url = world.login.replace("me:s3cr3t", login);
        let text = format!("resources: ['{url}private/library.git?ref=main']\n");
        repo.write("kustomization.yaml", text);
        repo.run(&["lock"])
    };
    for login in ["me:s3cr3t", "%6de:s3cr3%74"] {
        lock(login).success();
        empty_cache(&world.sandbox);
        repo.remove("kustomize-localize.lock");
    }
    assert!(!told.exists(), "{}", fs::read_to_string(&told).unwrap());
    // With a name alone, a helper is asked for the password to it.
    lock("me").fails(1);
    let told = fs::read_to_string(&told).unwrap();
    assert!(told.contains("username=me\n"), "{told}");
}

#[test]
fn errors_about_arguments_are_clean() {
    let repo = Sandbox::new().repo("work");
    let url = "https://user:SECRET-word-1@example.com/a";
    let hostile = format!("x\u{1b}[31m\u{202e}\nerror: fake {url}");
    for text in [url, &hostile] {
        for args in [
            &["check", "--frmat", text][..],
            &["check", "--format", text],
            &["check", &format!("--format={text}")],
            &["check", &format!("--{text}")],
            &["check", &format!("--x={text}")],
            &["lock", "--format", text],
            &["explain", text, text],
            &["a", "b", text],
            &["hook", text],
            &["help", text],
        ] {
            let output = repo.run(args);
            output.fails(2).lacks("SECRET-word-1").lacks("\u{1b}").lacks("\u{202e}");
            assert!(!output.stderr.contains("\nerror: fake"), "{output:?}");
        }
    }
}
