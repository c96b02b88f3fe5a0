//! `check`: what the objects of engines add to a build, and what of it nobody here can tell.

use serde_json::Value;

use crate::support::{Repo, Sandbox, config};

const OURS: &str = "https://git.example.com/acme/work";
const COMPONENT: &str = "https://github.com/acme/parts//tls?ref=v1";
const PATCH: &str = "https://files.example.com/p.yaml";

fn work(sandbox: &Sandbox) -> Repo {
    let repo = sandbox.repo("work");
    repo.git(&["remote", "add", "origin", OURS]);
    repo.write("apps/kustomization.yaml", "resources: [config.yaml]\n");
    repo.write("apps/config.yaml", config("app"));
    repo
}

/// Checks these files beside those of [`work`]: the status, what is found of `remote-component`, and the last line.
fn check(repo: &Repo, files: &[(&str, &str)], more: &[&str]) -> (i32, Vec<String>, String) {
    for (path, text) in files {
        repo.write(path, text);
    }
    let args = [&["check", "--working-tree"], more].concat();
    let human = repo.run(&args);
    let json = repo.run(&[&args[..], &["--format=json"]].concat());
    assert_eq!(human.status, json.status);
    for (path, _) in files {
        std::fs::remove_file(repo.path().join(path)).unwrap();
    }
    let report: Value = serde_json::from_str(&json.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap().iter();
    let findings = findings.filter(|one| one["rule"] == "remote-component");
    let found = findings.map(|one| one["reference"].as_str().unwrap().to_owned());
    let last = human.stdout.lines().last().unwrap_or_default().to_owned();
    (human.status, found.collect(), last)
}

fn application(source: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: web, namespace: argocd}}\nspec:\n  {source}\n"
    )
}

fn set(generator: &str, source: &str, more: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: all, namespace: argocd}}\nspec:\n  goTemplate: true\n  generators: [{generator}]\n  template:\n    metadata: {{name: 'web'}}\n    spec:\n      {source}\n{more}"
    )
}

/// Returns the part of a source that adds both, with keys spelled as `spell` does.
fn kustomize(spell: impl Fn(&str) -> String) -> String {
    let [kustomize, components, patches, path] =
        ["kustomize", "components", "patches", "path"].map(spell);
    format!("{kustomize}: {{{components}: ['{COMPONENT}'], {patches}: [{{{path}: '{PATCH}'}}]}}")
}

/// How a key may be written that Go reads as this one.
const SPELLINGS: [fn(&str) -> String; 4] = [
    str::to_owned,
    |key| key.to_uppercase(),
    |key| key[..1].to_uppercase() + &key[1..],
    |key| key.replace('k', "\u{212a}").replace('s', "\u{17f}"),
];

const LIST: &str = "{list: {elements: [{name: a}]}}";

#[test]
fn what_an_application_adds_by_a_url_is_found() {
    let sandbox = Sandbox::new();
    let repo = work(&sandbox);
    let here = format!("repoURL: {OURS}, path: apps");
    let both = [COMPONENT, PATCH].map(str::to_owned);
    for spell in SPELLINGS {
        let adds = kustomize(spell);
        for text in [
            application(&format!("source: {{{here}, {adds}}}")),
            application(&format!("sources: [{{{here}}}, {{{here}, {adds}}}]")),
            application(&format!(
                "sourceHydrator: {{drySource: {{{here}, {adds}}}}}"
            )),
            set(LIST, &format!("source: {{{here}, {adds}}}"), ""),
            // Where only the cluster knows what is built, too.
            set(
                "{clusters: {}}",
                &format!("source: {{repoURL: {OURS}, path: '{{{{.name}}}}', {adds}}}"),
                "",
            ),
            set(
                &format!(
                    "{{list: {{elements: [{{name: a}}], template: {{spec: {{source: {{{adds}}}}}}}}}}}"
                ),
                &format!("source: {{{here}}}"),
                "",
            ),
            set(
                LIST,
                &format!("source: {{{here}}}"),
                &format!("  templatePatch: |\n    spec: {{source: {{{adds}}}}}\n"),
            ),
        ] {
            let (status, mut found, _) = check(&repo, &[("argo/a.yaml", &text)], &[]);
            found.sort();
            found.dedup();
            let mut wanted = both.to_vec();
            wanted.sort();
            assert_eq!((status, found), (1, wanted), "{text}");
        }
        let plain = application(&format!("source: {{{here}}}"));
        for name in [".argocd-source.yaml", ".argocd-source-web.yaml"] {
            let place = format!("apps/{name}");
            let files = [("argo/a.yaml", &*plain), (&*place, &*adds)];
            let (status, found, _) = check(&repo, &files, &[]);
            assert_eq!((status, found.len()), (1, 2), "{place}: {adds}");
        }
    }
}

#[test]
fn what_is_merged_takes_nothing_away() {
    let sandbox = Sandbox::new();
    let repo = work(&sandbox);
    let adds = kustomize(str::to_owned);
    let object = application(&format!("source: {{repoURL: {OURS}, path: apps, {adds}}}"));
    for beside in [
        "kustomize: null\n",
        "kustomize: {components: ~, patches: null}\n",
        "Kustomize: {Components: [], Patches: []}\n",
    ] {
        let files = [
            ("argo/a.yaml", &*object),
            ("apps/.argocd-source.yaml", beside),
        ];
        let (status, found, _) = check(&repo, &files, &[]);
        assert_eq!(status, 1, "{beside}");
        assert_eq!(found.len(), 2, "{beside}");
    }
    // A link is followed.
    let plain = application(&format!("source: {{repoURL: {OURS}, path: apps}}"));
    repo.symlink("apps/.argocd-source.yaml", "../shared.yaml");
    let files = [("argo/a.yaml", &*plain), ("shared.yaml", &*adds)];
    assert_eq!(check(&repo, &files, &[]).1.len(), 2);
}

#[test]
fn what_any_file_beside_adds_is_found_where_only_the_cluster_knows_the_name() {
    let sandbox = Sandbox::new();
    let repo = work(&sandbox);
    let here = format!("repoURL: {OURS}, path: apps");
    let of_clusters = |name: &str, source: &str| {
        let text = set("{clusters: {}}", &format!("source: {{{source}}}"), "");
        text.replace("{name: 'web'}", &format!("{{name: '{name}'}}"))
    };
    let object = |name: &str, source: &str| {
        let text = application(&format!("source: {{{source}}}"));
        text.replace("{name: web,", &format!("{{name: '{name}',"))
    };
    let floating = format!("{here}, targetRevision: '{{{{.metadata.labels.rev}}}}'");
    let component = "kustomize: {components: ['https://github.com/acme/parts//a?ref=v1']}\n";
    let patch = "kustomize: {patches: [{path: 'https://files.example.com/b.yaml'}]}\n";
    let other = "KUSTOMIZE: {Components: ['https://github.com/acme/parts//c?ref=v1']}\n";
    for text in [
        of_clusters("web-{{.name}}", &here),
        of_clusters("{{ index .labels \"a/b\" }}", &here),
        of_clusters("{{.name}}", &floating),
        object("${NAME}", &here),
        object("{{ .Values.name }}", &here),
    ] {
        let files = [
            ("argo/a.yaml", &*text),
            ("apps/.argocd-source.yaml", component),
            ("apps/.argocd-source-web-b.yaml", patch),
            ("apps/.argocd-source-c.yaml", other),
            ("apps/deeper/.argocd-source-d.yaml", component),
        ];
        let (status, mut found, _) = check(&repo, &files, &[]);
        found.sort();
        let wanted = [
            "https://files.example.com/b.yaml",
            "https://github.com/acme/parts//a?ref=v1",
            "https://github.com/acme/parts//c?ref=v1",
        ];
        assert_eq!(
            (status, &*found),
            (1, &wanted.map(str::to_owned)[..]),
            "{text}"
        );
    }
    // Of a known name only its own counts, where the revision is not known, too.
    let files = [
        ("argo/a.yaml", &*object("web", &floating)),
        ("apps/.argocd-source-web.yaml", component),
        ("apps/.argocd-source-c.yaml", other),
    ];
    assert_eq!(
        check(&repo, &files, &[]).1,
        ["https://github.com/acme/parts//a?ref=v1"]
    );
    // What each of them shares with the object is found once.
    let text = of_clusters(
        "{{.name}}",
        &format!("{here}, {}", kustomize(str::to_owned)),
    );
    let files = [
        ("argo/a.yaml", &*text),
        ("apps/.argocd-source-a.yaml", "kustomize: {namePrefix: a}\n"),
        ("apps/.argocd-source-b.yaml", "kustomize: [\n"),
    ];
    let (status, found, _) = check(&repo, &files, &[]);
    assert_eq!((status, found.len()), (1, 2), "{found:?}");
}

/// How the names in an object may be written that YAML reads as these.
fn spelled(object: &str) -> Vec<String> {
    let version = "argoproj.io/v1alpha1";
    let mut all = Vec::new();
    for spelling in [
        "\"argoproj.io\\x2fv1alpha1\"",
        "\"argoproj.io\\u002fv1alpha1\"",
        "\"argoproj\\U0000002eio/v1alpha1\"",
        "\"\\x61rgoproj.io/v1alpha1\"",
        "\"argoproj.\\\n  io/v1alpha1\"",
        "\"argoproj.\\\r\n  io/v1alpha1\"",
        "|-\n  argoproj.io/v1alpha1",
        "&a argoproj.io/v1alpha1",
    ] {
        all.push(object.replace(version, spelling));
    }
    for (name, spelling) in [
        ("apiVersion:", "\"apiVersio\\x6e\":"),
        ("kind:", "\"\\u006bind\":"),
        ("Application\n", "\"Applicatio\\x6e\"\n"),
        ("spec:", "\"s\\x70ec\":"),
    ] {
        all.push(object.replace(name, spelling));
        all.push(all[0].replace(name, spelling));
    }
    all
}

#[test]
fn an_object_is_found_however_it_is_written() {
    let sandbox = Sandbox::new();
    let repo = work(&sandbox);
    let adds = kustomize(str::to_owned);
    let object = application(&format!("source: {{repoURL: {OURS}, path: apps, {adds}}}"));
    let json = "{\"apiVersion\": \"argoproj.io\\u002fv1alpha1\", \"kind\": \"Applicat\\u0069on\", \"metadata\": {\"name\": \"a\"}, \"spec\": {\"source\": {\"repoURL\": \"OURS\", \"path\": \"apps\", \"kustomize\": {\"components\": [\"COMPONENT\"], \"patches\": [{\"path\": \"PATCH\"}]}}}}\n";
    let json = json.replace("OURS", OURS).replace("COMPONENT", COMPONENT);
    let json = json.replace("PATCH", PATCH);
    for text in spelled(&object).iter().chain([&json]) {
        for (path, list) in [("argo/a.yaml", "[a.yaml]"), ("argo/a.txt", "[a.txt]")] {
            let listed = format!("resources: {list}\n");
            let files = [(path, &**text), ("argo/kustomization.yaml", &*listed)];
            assert_eq!(check(&repo, &files, &[]).1.len(), 2, "{path}: {text}");
        }
    }
}

/// kustomize flattens any of them.
#[test]
fn an_object_in_a_list_is_found() {
    let sandbox = Sandbox::new();
    let repo = work(&sandbox);
    let adds = kustomize(str::to_owned);
    let object = application(&format!("source: {{repoURL: {OURS}, path: apps, {adds}}}"));
    let within = |kind: &str, text: &str| {
        let text = text.trim_end().replace('\n', "\n  ");
        format!("apiVersion: v1\nkind: {kind}\nitems:\n- {text}\n")
    };
    let list = within("List", &object);
    for text in [
        &list,
        &within("ApplicationList", &object),
        &within("List", &list),
    ] {
        assert_eq!(
            check(&repo, &[("argo/a.yaml", text)], &[]).1.len(),
            2,
            "{text}"
        );
    }
}

/// Checks a file: how many findings there are, all of which must say that it cannot be read.
fn unread(repo: &Repo, bytes: &[u8]) -> usize {
    let place = repo.path().join("argo/a.yaml");
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::fs::write(place, bytes).unwrap();
    let output = repo.run(&["check", "--working-tree", "--format=json"]);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let is_it = |one: &Value| one["rule"] == "invalid-target" && one["path"] == "argo/a.yaml";
    assert!(findings.iter().all(is_it), "{output:?}");
    findings.len()
}

#[test]
fn an_object_that_cannot_be_read_is_found_however_it_is_written() {
    let sandbox = Sandbox::new();
    let repo = work(&sandbox);
    let object = application(&format!("source: {{repoURL: {OURS}, path: apps}}"));
    for text in spelled(&object) {
        let broken = format!("{text}broken: [\n");
        assert_eq!(unread(&repo, broken.as_bytes()), 1, "{broken}");
        for big in [false, true] {
            let units = || "\u{feff}".encode_utf16().chain(text.encode_utf16());
            let bytes = |unit: u16| {
                if big {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                }
            };
            let bytes: Vec<u8> = units().flat_map(bytes).collect();
            assert_eq!(unread(&repo, &bytes), 1, "{text}");
        }
        let latin = [text.as_bytes(), b"# \xe4\n"].concat();
        assert_eq!(unread(&repo, &latin), 1, "{text}");
    }
    for (tag, encoded) in [
        ("!!binary", "YXJnb3Byb2ouaW8vdjFhbHBoYTE="),
        ("!!binary", "|\n  YXJnb3Byb2ou\n  aW8vdjFhbHBoYTE="),
        ("!!str", "argoproj.io/v1alpha1"),
        // JSON has this escape, libyaml does not.
        ("", "\"argoproj.io\\/v1alpha1\""),
        ("&a !!str", "\"argoproj.io\\/v1alpha1\""),
    ] {
        let text = object.replace("argoproj.io/v1alpha1", &format!("{tag} {encoded}"));
        assert_eq!(unread(&repo, text.as_bytes()), 1, "{text}");
    }
    let rest = "spec: {source: {repoURL: OURS, path: apps}}\nmetadata: {name: a}\n";
    let rest = rest.replace("OURS", OURS);
    for head in [
        "apiVersion: !<tag:yaml.org,2002:binary> YXJnb3Byb2ouaW8vdjFhbHBoYTE=\nkind: Application\n",
        "x: &m {apiVersion: argoproj.io/v1alpha1}\n<<: *m\nkind: Application\n",
        "apiVersion:\n  !!str argoproj.io/v1alpha1\nkind: Application\n",
        "? apiVersion\n: !!str argoproj.io/v1alpha1\nkind: Application\n",
        "&a apiVersion: !!str argoproj.io/v1alpha1\nkind: Application\n",
        "&k kind: Application\n!!str apiVersion: argoproj.io/v1alpha1\n",
    ] {
        let text = format!("{head}{rest}");
        assert_eq!(unread(&repo, text.as_bytes()), 1, "{text}");
    }
    for text in [
        "!!map {apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a}}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: !!str argocd-cm}\ndata: {a: b}\n",
    ] {
        assert_eq!(unread(&repo, text.as_bytes()), 1, "{text}");
    }
}

#[test]
fn what_only_looks_like_an_object_is_passed_over() {
    let sandbox = Sandbox::new();
    let repo = work(&sandbox);
    for text in [
        // A script, which no reader of YAML takes for escapes.
        "kind: ConfigMap\napiVersion: v1\ndata:\n  a: |\n    sed 's/argoproj.io\\/v1alpha1/x/' \\\n      'C:\\x' \\u\n",
        // A dashboard.
        "{\"title\": \"{{ \\\"apiVersion\\\": \\\"argoproj.io\\/v1alpha1\\\", \\\"kind\\\": \\\"Application\\\" }}\"}\n",
        // Templates.
        "{{- if .Values.a }}\napiVersion: v1\nkind: ConfigMap\ndata: {a: \"argoproj.io\\/v1alpha1\"}\n{{- end }}\n",
        "apiVersion: v1\nkind: ConfigMap\nbinaryData: {a: !!binary YQ==}\n",
        "a: [\n\\x41 argoproj.io\\/v1\n",
        "apiVersion: \"\\x\"\nkind: [\n",
    ] {
        assert_eq!(unread(&repo, text.as_bytes()), 0, "{text}");
    }
    for bytes in [
        &b"\xff\xfe"[..],
        b"\xff\xfea",
        b"\xfe\xff\xd8\x00\x00a",
        b"\\",
        b"\xff\\",
    ] {
        assert_eq!(unread(&repo, bytes), 0, "{bytes:?}");
    }
}

#[test]
fn objects_are_read_wherever_they_are_deployed_from() {
    let sandbox = Sandbox::new();
    let repo = work(&sandbox);
    let adds = kustomize(str::to_owned);
    let yaml = application(&format!("source: {{repoURL: {OURS}, path: apps, {adds}}}"));
    let json = format!(
        "{{\n\t\"apiVersion\": \"argoproj.io/v1alpha1\",\n\t\"kind\": \"Application\",\n\t\"metadata\": {{\"name\": \"web\"}},\n\t\"spec\": {{\"source\": {{\"repoURL\": \"{OURS}\", \"path\": \"apps\", \"kustomize\": {{\"components\": [\"{COMPONENT}\"], \"patches\": [{{\"path\": \"{PATCH}\"}}]}}}}}}\n}}\n"
    );
    for (path, text) in [
        ("argo/a.yaml", &yaml),
        ("argo/a.yml", &yaml),
        ("argo/a.json", &json),
        ("argo/a.json", &yaml),
    ] {
        assert_eq!(check(&repo, &[(path, text)], &[]).1.len(), 2, "{path}");
    }
    for name in ["a.txt", "a", "a.YAML", "a.yaml.tpl", "a.md"] {
        let path = format!("argo/{name}");
        let list = format!("resources: [{name}]\n");
        let listed = ("argo/kustomization.yaml", &*list);
        for text in [&yaml, &json] {
            for more in [&[][..], &["--targets-only"]] {
                let files = [(&*path, &**text), listed];
                assert_eq!(check(&repo, &files, more).1.len(), 2, "{name} {more:?}");
            }
            // Nothing deploys it.
            assert_eq!(check(&repo, &[(&path, text)], &[]).1.len(), 0, "{name}");
        }
    }
}

#[test]
fn what_nobody_here_can_tell_is_counted_and_fails_where_that_is_asked_for() {
    let sandbox = Sandbox::new();
    let repo = work(&sandbox);
    let here = format!("repoURL: {OURS}, path: apps");
    let flux = |component: &str| {
        format!(
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {{name: work, namespace: flux-system}}\nspec: {{url: {OURS}}}\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: apps, namespace: flux-system}}\nspec:\n  path: ./apps\n  sourceRef: {{kind: GitRepository, name: work}}\n  components: ['{component}']\n"
        )
    };
    let unknown = [
        set(
            LIST,
            &format!("source: {{{here}, kustomize: {{components: ['{{{{.part}}}}']}}}}"),
            "",
        ),
        set(
            LIST,
            &format!("source: {{{here}, kustomize: {{patches: [{{path: '{{{{.part}}}}'}}]}}}}"),
            "",
        ),
        set(
            "{clusters: {}}",
            &format!("source: {{repoURL: {OURS}, path: '{{{{.name}}}}'}}"),
            "",
        ),
        set(
            LIST,
            &format!("source: {{{here}}}"),
            "  templatePatch: |\n    spec: {source: {kustomize: {components: ['{{ .part }}']}}}\n",
        ),
        flux("${part}"),
        flux("../${part}/x"),
    ];
    for text in &unknown {
        let files = [("argo/a.yaml", &**text)];
        let (status, found, last) = check(&repo, &files, &[]);
        assert_eq!((status, found.len()), (0, 0), "{text}");
        let counted = "not looked at: 1 target that only a build or the cluster knows";
        assert!(last.ends_with(counted), "{last}\n{text}");
        assert_eq!(check(&repo, &files, &["--strict"]).0, 2, "{text}");
    }
    // A patch that is a template, and names a URL.
    let patch = format!(
        "  templatePatch: |\n    spec:\n      source:\n        kustomize:\n          components: ['{COMPONENT}'] # repoURL\n          patches: [{{path: \"{PATCH}\"}}]\n    {{{{ if .a }}}}x: y{{{{ end }}}}\n"
    );
    let text = set(LIST, &format!("source: {{{here}}}"), &patch);
    assert_eq!(check(&repo, &[("argo/a.yaml", &text)], &[]).1.len(), 2);
    // What is told is not counted.
    for text in [
        flux("../parts"),
        application(&format!("source: {{{here}}}")),
    ] {
        let (status, _, last) = check(&repo, &[("argo/a.yaml", &text)], &["--strict"]);
        assert!(
            !last.contains("not looked at") && status < 2,
            "{status} {last}"
        );
    }
}
