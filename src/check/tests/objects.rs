//! Objects of engines: what they add by a URL, however and wherever they are written, and what of them nobody here can
//! tell.

use super::super::testing::{Scene, argo, flux, source};
use crate::message::finding::{Rule, Severity};

const COMPONENT: &str = "https://github.com/acme/parts//tls?ref=v1";
const PATCH: &str = "https://files.example.com/p.yaml";
const HERE: &str = "repoURL: 'https://github.com/acme/fleet', path: apps";
const LIST: &str = "{list: {elements: [{name: a}]}}";
const CLUSTERS: &str = "{clusters: {}}";

/// Returns these files beside a root `apps` and the source of Flux.
fn scene(files: &[(&str, &str)]) -> Scene {
    let scene = Scene::default()
        .file("clusters/source.yaml", &source(""))
        .file("apps/kustomization.yaml", "resources: [x.yaml]\n")
        .file("apps/x.yaml", "");
    let add = |scene: Scene, (path, text): &(&str, &str)| scene.file(path, text);
    files.iter().fold(scene, add)
}

/// Returns what is found that is added by a URL, sorted.
fn added(scene: Scene) -> Vec<String> {
    let findings = scene.find(Rule::RemoteReference);
    assert!(findings.iter().all(|one| one.fails()), "{findings:?}");
    let mut found: Vec<String> = findings.into_iter().map(|one| one.reference).collect();
    found.sort();
    found
}

#[track_caller]
fn adds_both(files: &[(&str, &str)]) {
    let mut found = added(scene(files));
    found.dedup();
    assert_eq!(found, [PATCH, COMPONENT], "{files:?}");
}

fn application(source: &str) -> String {
    argo("").replace("source: {repoURL: 'https://github.com/acme/fleet', }", source)
}

fn set(generator: &str, source: &str, more: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: all, namespace: argocd}}\nspec:\n  goTemplate: true\n  generators: [{generator}]\n  template:\n    metadata: {{name: 'web'}}\n    spec:\n      source: {{{source}}}\n{more}"
    )
}

/// Returns the part of a source that adds both, with keys spelled as `spell` does.
fn kustomize(spell: impl Fn(&str) -> String) -> String {
    let [kustomize, components, patches, path] = ["kustomize", "components", "patches", "path"].map(spell);
    format!("{kustomize}: {{{components}: ['{COMPONENT}'], {patches}: [{{{path}: '{PATCH}'}}]}}")
}

/// Returns an application that adds both.
fn both() -> String {
    argo(&format!("path: apps, {}", kustomize(str::to_owned)))
}

/// How a key may be written that Go reads as this one.
const SPELLINGS: [fn(&str) -> String; 4] = [
    str::to_owned,
    |key| key.to_uppercase(),
    |key| key[..1].to_uppercase() + &key[1..],
    |key| key.replace('k', "\u{212a}").replace('s', "\u{17f}"),
];

#[test]
fn what_an_application_adds_by_a_url_is_found() {
    let adds = kustomize(str::to_owned);
    let source = format!("{HERE}, {adds}");
    let element = format!("{{list: {{elements: [{{name: a}}], template: {{spec: {{source: {{{adds}}}}}}}}}}}");
    // Where only the cluster knows what is built, too.
    let unknown = source.replace("path: apps", "path: '{{.name}}'");
    for text in [
        application(&format!("source: {{{source}}}")),
        application(&format!("sources: [{{{HERE}}}, {{{source}}}]")),
        application(&format!("sourceHydrator: {{drySource: {{{source}}}}}")),
        set(LIST, &source, ""),
        set(CLUSTERS, &unknown, ""),
        set(&element, HERE, ""),
    ] {
        adds_both(&[("argo/a.yaml", &text)]);
    }
    for name in [".argocd-source.yaml", ".argocd-source-web.yaml"] {
        let place = format!("apps/{name}");
        adds_both(&[("argo/a.yaml", &argo("path: apps")), (&place, &adds)]);
    }
}

/// What no API server has seen may have its keys in any case.
#[test]
fn what_is_merged_has_its_keys_as_they_are_known() {
    for spell in SPELLINGS {
        let adds = kustomize(spell);
        let patch = format!("  templatePatch: |\n    spec: {{source: {{{adds}}}}}\n");
        let patched = [("argo/a.yaml", &*set(LIST, HERE, &patch))];
        let beside = [("argo/a.yaml", &*argo("path: apps")), ("apps/.argocd-source.yaml", &adds)];
        for files in [&patched[..], &beside] {
            if spell("k") == "k" {
                adds_both(files);
            } else {
                assert_eq!(scene(files).find(Rule::InvalidTarget).len(), 1, "{adds}");
            }
        }
    }
}

#[test]
fn what_is_merged_takes_nothing_away() {
    for beside in ["kustomize: null\n", "kustomize: {components: ~, patches: null}\n"] {
        adds_both(&[("argo/a.yaml", &both()), ("apps/.argocd-source.yaml", beside)]);
    }
    let adds = kustomize(str::to_owned);
    let files = [("argo/a.yaml", &*argo("path: apps")), ("shared.yaml", &adds)];
    let mut linked = scene(&files);
    linked.tree.link("apps/.argocd-source.yaml", "../shared.yaml");
    assert_eq!(added(linked), [PATCH, COMPONENT]);
}

#[test]
fn what_any_file_beside_adds_is_found_where_only_the_cluster_knows_the_name() {
    let of_clusters = |name: &str, source: &str| {
        let text = set(CLUSTERS, source, "");
        text.replace("{name: 'web'}", &format!("{{name: '{name}'}}"))
    };
    let object = |name: &str, source: &str| {
        let text = application(&format!("source: {{{source}}}"));
        text.replace("{name: web,", &format!("{{name: '{name}',"))
    };
    let floating = format!("{HERE}, targetRevision: '{{{{.metadata.labels.rev}}}}'");
    let component = "kustomize: {components: ['https://github.com/acme/parts//a?ref=v1']}\n";
    let patch = "kustomize: {patches: [{path: 'https://files.example.com/b.yaml'}]}\n";
    let other = "kustomize: {components: ['https://github.com/acme/parts//c?ref=v1']}\n";
    for text in [
        of_clusters("web-{{.name}}", HERE),
        of_clusters("{{ index .labels \"a/b\" }}", HERE),
        of_clusters("{{.name}}", &floating),
        object("${NAME}", HERE),
        object("{{ .Values.name }}", HERE),
    ] {
        let files = [
            ("argo/a.yaml", &*text),
            ("apps/.argocd-source.yaml", component),
            ("apps/.argocd-source-web-b.yaml", patch),
            ("apps/.argocd-source-c.yaml", other),
            ("apps/deeper/.argocd-source-d.yaml", component),
        ];
        let wanted = [
            "https://files.example.com/b.yaml",
            "https://github.com/acme/parts//a?ref=v1",
            "https://github.com/acme/parts//c?ref=v1",
        ];
        assert_eq!(added(scene(&files)), wanted, "{text}");
    }
    // Of a known name its own counts, where the revision is not known, too; the other one is for one elsewhere.
    let files = [
        ("argo/a.yaml", &*object("web", &floating)),
        ("apps/.argocd-source-web.yaml", component),
        ("apps/.argocd-source-c.yaml", other),
    ];
    let both = ["https://github.com/acme/parts//a?ref=v1", "https://github.com/acme/parts//c?ref=v1"];
    assert_eq!(added(scene(&files)), both);
    // What each of them shares with the object is found once.
    let shared = format!("{HERE}, {}", kustomize(str::to_owned));
    let files = [
        ("argo/a.yaml", &*of_clusters("{{.name}}", &shared)),
        ("apps/.argocd-source-a.yaml", "kustomize: {namePrefix: a}\n"),
        ("apps/.argocd-source-b.yaml", "kustomize: [\n"),
    ];
    assert_eq!(added(scene(&files)), [PATCH, COMPONENT]);
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

/// The same as JSON, with or without escapes.
fn as_json(version: &str, kind: &str) -> String {
    let kustomize = format!("{{\"components\": [\"{COMPONENT}\"], \"patches\": [{{\"path\": \"{PATCH}\"}}]}}");
    format!(
        "{{\n\t\"apiVersion\": \"{version}\",\n\t\"kind\": \"{kind}\",\n\t\"metadata\": {{\"name\": \"web\"}},\n\t\"spec\": {{\"source\": {{\"repoURL\": \"https://github.com/acme/fleet\", \"path\": \"apps\", \"kustomize\": {kustomize}}}}}\n}}\n"
    )
}

#[test]
fn an_object_is_found_however_it_is_written() {
    let json = as_json("argoproj.io\\u002fv1alpha1", "Applicat\\u0069on");
    for text in spelled(&both()).iter().chain([&json]) {
        for name in ["a.yaml", "a.txt"] {
            let listed = format!("resources: [{name}]\n");
            adds_both(&[(&format!("argo/{name}"), text), ("argo/kustomization.yaml", &listed)]);
        }
    }
}

/// kustomize flattens any of them.
#[test]
fn an_object_in_a_list_is_found() {
    let within = |kind: &str, text: &str| {
        let text = text.trim_end().replace('\n', "\n  ");
        format!("apiVersion: v1\nkind: {kind}\nitems:\n- {text}\n")
    };
    let list = within("List", &both());
    let lists = [within("ApplicationList", &both()), within("List", &list), list];
    for text in lists {
        adds_both(&[("argo/a.yaml", &text)]);
    }
}

#[test]
fn objects_are_read_wherever_they_are_deployed_from() {
    let (yaml, json) = (both(), as_json("argoproj.io/v1alpha1", "Application"));
    for (name, text) in [("a.yaml", &yaml), ("a.yml", &yaml), ("a.json", &json), ("a.json", &yaml)] {
        adds_both(&[(&format!("argo/{name}"), text)]);
    }
    for name in ["a.txt", "a", "a.YAML", "a.yaml.tpl", "a.md"] {
        let path = format!("argo/{name}");
        let listed = format!("resources: [{name}]\n");
        for text in [&yaml, &json] {
            let files = [(&*path, &**text), ("argo/kustomization.yaml", &*listed)];
            adds_both(&files);
            // Nothing deploys it.
            assert_eq!(added(scene(&files[..1])).len(), 0, "{name}");
        }
    }
}

/// Checks a file: how many findings there are, all of which must say that it cannot be read.
#[track_caller]
fn unread(bytes: &[u8]) -> usize {
    let mut scene = scene(&[]);
    scene.tree.add_file("argo/a.yaml", bytes);
    let findings = scene.check().findings;
    let mut others = findings.iter();
    let other = others.find(|one| one.rule != Rule::InvalidTarget || one.path != "argo/a.yaml");
    assert_eq!(other, None);
    findings.len()
}

#[test]
fn an_object_that_cannot_be_read_is_found_however_it_is_written() {
    let object = argo("path: apps");
    for text in spelled(&object) {
        let broken = format!("{text}broken: [\n");
        assert_eq!(unread(broken.as_bytes()), 1, "{broken}");
        for bytes_of in [u16::to_be_bytes, u16::to_le_bytes] {
            let units = "\u{feff}".encode_utf16().chain(text.encode_utf16());
            let bytes: Vec<u8> = units.flat_map(bytes_of).collect();
            assert_eq!(unread(&bytes), 1, "{text}");
        }
        let latin = [text.as_bytes(), b"# \xe4\n"].concat();
        assert_eq!(unread(&latin), 1, "{text}");
    }
    let tagged = [
        "!!binary YXJnb3Byb2ouaW8vdjFhbHBoYTE=",
        "!!binary |\n  YXJnb3Byb2ou\n  aW8vdjFhbHBoYTE=",
        "!!str argoproj.io/v1alpha1",
    ];
    let tagged = tagged.map(|version| object.replace("argoproj.io/v1alpha1", version));
    let heads = [
        "apiVersion: !<tag:yaml.org,2002:binary> YXJnb3Byb2ouaW8vdjFhbHBoYTE=\nkind: Application\n",
        "apiVersion: argoproj.io/v1alpha1\nkind: !!binary QXBwbGljYXRpb24=\n",
        "apiVersion: argoproj.io/v1alpha1\n\"kind\":\n  !!binary QXBwbGljYXRpb24=\n",
        "x: &m {apiVersion: argoproj.io/v1alpha1}\n<<: *m\nkind: Application\n",
        "apiVersion:\n  !!str argoproj.io/v1alpha1\nkind: Application\n",
        "? apiVersion\n: !!str argoproj.io/v1alpha1\nkind: Application\n",
        "&a apiVersion: !!str argoproj.io/v1alpha1\nkind: Application\n",
        "&k kind: Application\n!!str apiVersion: argoproj.io/v1alpha1\n",
    ];
    let headed = heads.map(|head| format!("{head}spec: {{source: {{{HERE}}}}}\nmetadata: {{name: a}}\n"));
    let whole = [
        "!!map {apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a}}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: !!str argocd-cm}\ndata: {a: b}\n",
    ];
    let whole = whole.map(str::to_owned);
    for text in tagged.iter().chain(&headed).chain(&whole) {
        assert_eq!(unread(text.as_bytes()), 1, "{text}");
    }
}

#[test]
fn what_only_looks_like_an_object_is_passed_over() {
    for bytes in [
        // A script, which no reader of YAML takes for escapes.
        &b"kind: ConfigMap\napiVersion: v1\ndata:\n  a: |\n    sed 's/argoproj.io\\/v1alpha1/x/' \\\n      'C:\\x' \\u\n"[..],
        // A dashboard.
        b"{\"title\": \"{{ \\\"apiVersion\\\": \\\"argoproj.io\\/v1alpha1\\\", \\\"kind\\\": \\\"Application\\\" }}\"}\n",
        // Templates.
        b"{{- if .Values.a }}\napiVersion: v1\nkind: ConfigMap\ndata: {a: \"argoproj.io\\/v1alpha1\"}\n{{- end }}\n",
        b"apiVersion: v1\nkind: ConfigMap\nbinaryData: {a: !!binary YQ==}\n",
        b"a: [\n\\x41 argoproj.io\\/v1\n",
        b"apiVersion: \"\\x\"\nkind: [\n",
        b"\xff\xfe",
        b"\xff\xfea",
        b"\xfe\xff\xd8\x00\x00a",
        b"\\",
        b"\xff\\",
    ] {
        assert_eq!(unread(bytes), 0, "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn what_nobody_here_can_tell_is_a_finding_at_its_object() {
    let part = |source: &str| set(LIST, &format!("{HERE}, kustomize: {{{source}}}"), "");
    let patch = |text: &str| set(LIST, HERE, &format!("  templatePatch: |\n{text}"));
    let of_flux = |component: &str| format!("{}  components: ['{component}']\n", flux("./apps"));
    for text in [
        part("components: ['{{.part}}']"),
        part("patches: [{path: '{{.part}}'}]"),
        set(CLUSTERS, &HERE.replace("apps", "'{{.name}}'"), ""),
        patch("    spec: {source: {kustomize: {components: ['{{ .part }}']}}}\n"),
        patch("    {{ if .a }}spec: {syncPolicy: {}}{{ end }}\n"),
        argo("path: plain, directory: {recurse: true}"),
        argo("path: plain/deeper"),
        argo("path: bare, directory: {disableExtensionFilter: true}"),
        of_flux("${part}"),
        of_flux("../${part}/x"),
    ] {
        let scene = || scene(&[("argo/a.yaml", &text), ("plain/deeper/x.jsonnet", "{}"), ("bare/x.yaml", "")]);
        let findings = scene().find(Rule::UnknownTarget);
        let [finding] = &findings[..] else { panic!("{text} {findings:?}") };
        assert_eq!((&*finding.path, finding.severity), ("argo/a.yaml", Severity::Warning));
        assert!(finding.message.starts_with("cannot tell what ") && finding.span.is_some(), "{finding:?}");
        assert_eq!(scene().check().status(), 0, "{text}");
        assert_eq!(scene().config("rules: {unknown-target: error}\n").check().status(), 1, "{text}");
        assert_eq!(scene().config("rules: {unknown-target: off}\n").find(Rule::UnknownTarget).len(), 0);
    }
    // What is told is not counted.
    for text in [of_flux("../parts"), argo("path: apps")] {
        let scene = scene(&[("argo/a.yaml", &text)]);
        assert_eq!(scene.find(Rule::UnknownTarget).len(), 0, "{text}");
    }
}

#[test]
fn what_is_added_is_found_wherever_it_is_deployed_from() {
    let adds = kustomize(str::to_owned);
    for source in [
        format!("repoURL: 'https://elsewhere.example/o/r', path: apps, {adds}"),
        format!("repoURL: 'https://github.com/acme/fleet', targetRevision: v1, path: apps, {adds}"),
        format!("repoURL: 'https://github.com/acme/fleet', path: gone, {adds}"),
    ] {
        adds_both(&[("argo/a.yaml", &application(&format!("source: {{{source}}}")))]);
    }
}

#[test]
fn what_is_deployed_is_read_where_the_configuration_leaves_it_out() {
    let exclude = "exclude: [parts]\n";
    for beside in [
        ("apps/more/kustomization.yaml", "resources: [../../parts/a.yaml]\n".to_owned()),
        ("argo/plain.yaml", argo("path: parts")),
        ("clusters/plain.yaml", flux("parts")),
    ] {
        let files = [("parts/a.yaml", &*both()), (beside.0, &*beside.1)];
        assert_eq!(added(scene(&files).config(exclude)), [PATCH, COMPONENT], "{beside:?}");
    }
    assert!(added(scene(&[("parts/a.yaml", &*both())]).config(exclude)).is_empty());
}

/// Argo CD reads a stream of JSON also from a file that is called YAML.
#[test]
fn no_object_of_a_json_stream_is_passed_by() {
    let json = |source: &str| {
        format!(
            r#"{{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{{"name":"a"}},"spec":{{"source":{source}}}}}"#
        )
    };
    let adds = format!(
        r#"{{"repoURL":"https://elsewhere.example/o/r","path":"x","kustomize":{{"components":["{COMPONENT}"]}}}}"#
    );
    for between in ["", " ", "\n", "\n\n"] {
        let text = format!("{{\"kind\":\"ConfigMap\"}}{between}{}", json(&adds));
        let files = [("argo/a.yaml", &*text)];
        let found = added(scene(&files)).len() + scene(&files).find(Rule::InvalidTarget).len();
        assert_eq!(found, 1, "{text}");
    }
}
