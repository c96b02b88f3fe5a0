//! What an entry of a lock is for: the URL that kustomize requests.

use serde_json::Value;

use super::*;
use crate::record::LOCK_NAME;

const FILE: &str = "https://files.example.com/v1/app.yaml";
const GIT: &str = "https://git.example.com/o/r";
const SSH: &str = "ssh://git@git.example.com/o/r";
const CHARTS: &str = "https://charts.example.com/stable";

/// A lock that holds each of the URLs.
fn lock() -> String {
    let (digest, commit) = ("0".repeat(64), "1".repeat(40));
    let git =
        |url: &str| format!("- {{url: \"{url}\", ref: v1, commit: \"{commit}\", paths: {{\".\": {{}}, a: {{}}}}}}\n");
    format!(
        "version: 1\nremotes:\n- {{url: \"{FILE}\", sha256: \"{digest}\", size: 1}}\n{}{}\
         - {{url: \"{CHARTS}\", chart: web, version: 1.2.3, sha256: \"{digest}\", size: 1}}\n",
        git(GIT),
        git(SSH),
    )
}

/// Returns kustomizations that name a file at a URL, by what names it.
fn files(url: &str) -> Vec<(&'static str, String)> {
    let text = Value::from(url).to_string();
    let entry = Value::from(format!("k={url}")).to_string();
    let plugin = format!(
        "apiVersion: builtin\\nkind: PatchTransformer\\nmetadata: {{name: a}}\\npath: {}\\n",
        text.replace('"', "\\\"")
    );
    vec![
        ("resources", format!("resources: [{text}]\n")),
        ("patches", format!("patches: [{{path: {text}}}]\n")),
        ("crds", format!("crds: [{text}]\n")),
        ("files", format!("configMapGenerator: [{{name: a, files: [{entry}]}}]\n")),
        ("inline", format!("transformers: [\"{plugin}\"]\n")),
    ]
}

/// Returns kustomizations that name a repository.
fn roots(url: &str) -> Vec<(&'static str, String)> {
    let text = Value::from(url).to_string();
    ["resources", "components", "generators", "transformers"]
        .map(|field| (field, format!("{field}: [{text}]\n")))
        .into()
}

fn charts(url: &str) -> Vec<(&'static str, String)> {
    let text = Value::from(url).to_string();
    let chart = format!("helmCharts: [{{name: web, version: 1.2.3, repo: {text}}}]\n");
    vec![("repo", chart)]
}

/// Returns what a client requests instead of a URL that looks the same, or is the same in the lock.
fn others(url: &str) -> Vec<String> {
    let mut others: Vec<String> =
        [" ", "\u{a0}", "\u{3000}", "\u{2003}", "#", "#x"].map(|end| format!("{url}{end}")).into();
    if let Some(rest) = url.strip_prefix("https://") {
        others.extend(["evil@", "@", "evil%40"].map(|user| format!("https://{user}{rest}")));
    }
    others
}

#[test]
fn an_entry_is_for_what_kustomize_requests() {
    let lock = lock();
    let check = |kustomization: &str| Scene::of(kustomization).file(LOCK_NAME, &lock).check();
    let of = |url: &str, named: &dyn Fn(&str) -> Vec<(&'static str, String)>| {
        for (field, kustomization) in named(url) {
            assert_eq!(check(&kustomization).status(), 0, "{field}: {url}");
        }
        for other in others(url) {
            for (field, kustomization) in named(&other) {
                let checked = check(&kustomization);
                let is_unsafe = checked.findings.iter().any(|one| one.rule == Rule::UnsafeReference && one.fails());
                assert!(is_unsafe && checked.status() == 1, "{field}: {other:?}: {:?}", checked.findings);
            }
        }
    };
    of(FILE, &files);
    of(CHARTS, &charts);
    for url in [GIT, SSH] {
        of(url, &|url| roots(&format!("{url}?ref=v1")));
        of(url, &|url| roots(&format!("{url}//a?ref=v1")));
    }
    for other in others(&format!("{GIT}//a?ref=v1")) {
        for (field, kustomization) in roots(&other) {
            assert_eq!(check(&kustomization).status(), 1, "{field}: {other:?}");
        }
    }
}

#[test]
fn the_lock_of_a_copy_locks_nothing() {
    let text = format!("resources: ['{GIT}//a?ref=v1']\n");
    let config = Config::parse(b"rules: {locked-reference: warning}\n", "x").unwrap();
    for (target, expected) in [("", "locked-reference"), ("target: app\n", "remote-reference")] {
        let files = [("app/kustomization.yaml", text.as_str()), (LOCK_NAME, &format!("{target}{}", lock()))];
        let checked = checked_with(&files, &[], &config);
        assert!(found(&checked).contains(&(expected, "app/kustomization.yaml", 1)), "{target} {checked:?}");
    }
}
