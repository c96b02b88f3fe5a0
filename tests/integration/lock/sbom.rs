//! `sbom`: what the lock holds, in the formats of auditors.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Repo, World, config_map, full, rows, skip, tool};

const MIT: &str = include_str!("../../../LICENSE-MIT");
const VALIDATE: &str = include_str!("../../schemas/validate.py");

/// Returns a repository that is localized, of upstreams with and without a license that is known.
fn world() -> World {
    let world = World::acme();
    for (name, license) in [("acme/licensed", MIT), ("acme/other", "All yours.\n")] {
        let files = [("LICENSE", license), ("kustomization.yaml", "resources: [map.yaml]\n")];
        world.upstream_of(name, &[&files[..], &[("map.yaml", &config_map(name.trim_start_matches("acme/")))]].concat());
    }
    world.commit(&[
        (
            ".kustomize-localize",
            "allow:\n- {url: github.com/acme/internal, refs: any, reason: by hand}\n",
        ),
        (
            "app/kustomization.yaml",
            "resources:\n- https://github.com/acme/licensed?ref=v1\n- https://github.com/acme/other?ref=v1\n- https://github.com/acme/lib//web?ref=v1\n- https://files.example.com/v1/app.yaml\n- https://github.com/acme/internal?ref=v1\n- https://github.com/acme/internal//a/crds.yaml?ref=v1\n- https://github.com/acme/internal//a b?ref=v2\n",
        ),
    ]);
    world.work.run(&["lock"]).success();
    world.work.commit("Lock");
    world.work.run(&["branch", "--no-verify"]).success();
    world
}

fn sbom(repo: &Repo, rev: &str, format: &str) -> String {
    let output = repo.run_unchanged(&["sbom", rev, "--format", format]);
    output.success();
    assert_eq!(output.stderr, "");
    output.stdout.clone()
}

fn component<'a>(document: &'a Value, name: &str) -> &'a Value {
    let components = document["components"].as_array().unwrap();
    components.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}: {document:#}"))
}

#[test]
fn a_partial_clone_has_the_date_of_its_commit() {
    let world = world();
    world.work.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", world.work.path().display());
    world.sandbox.git(&world.sandbox.path(""), &["clone", "-q", "--filter=blob:none", &url, "clone"]);
    let clone = Repo::new(&world.sandbox, world.sandbox.path("clone"));
    let date = |repo: &Repo| {
        let document: Value = serde_json::from_str(&sbom(repo, "main", "cyclonedx")).unwrap();
        document["metadata"]["timestamp"].as_str().unwrap().to_owned()
    };
    assert_eq!(date(&clone), date(&world.work));
}

#[test]
fn every_format_is_valid_and_says_the_same_again() {
    let world = world();
    for format in ["cyclonedx", "spdx", "slsa"] {
        for rev in ["main", "localized/main"] {
            let document = sbom(&world.work, rev, format);
            assert_eq!(sbom(&world.work, rev, format), document);
            // The branch has licenses and files as well.
            if full() || rev != "main" {
                validate(format, &document);
            }
        }
    }
}

#[track_caller]
fn validate(format: &str, document: &str) {
    let Some(python) = tool("python3") else { return };
    let mut child = Command::new(python)
        .args(["-c", VALIDATE, format])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(document.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("ModuleNotFoundError") {
        return skip("no validators for python3");
    }
    assert!(output.status.success(), "{stderr}\n{document}");
}

#[test]
fn a_component_has_its_version_and_its_license() {
    let world = world();
    let document: Value = serde_json::from_str(&sbom(&world.work, "localized/main", "cyclonedx")).unwrap();
    let licensed = component(&document, "acme/licensed");
    let commit = world.sandbox.git(&world.sandbox.path("upstream/acme/licensed"), &["rev-parse", "v1"]);
    let commit = commit.trim();
    assert_eq!(licensed["version"], commit);
    assert_eq!(licensed["purl"], format!("pkg:github/acme/licensed@{commit}"));
    assert_eq!(licensed["licenses"][0]["expression"], "MIT");
    assert_eq!(licensed["supplier"]["name"], "acme");
    let url = format!("git+https://github.com/acme/licensed@{commit}");
    assert_eq!(licensed["externalReferences"][0], serde_json::json!({ "type": "vcs", "url": url }));
    assert!(component(&document, "acme/other").get("licenses").is_none());
    let file = component(&document, "app.yaml");
    assert_eq!(file["hashes"][0]["alg"], "SHA-256");
    let internal = component(&document, "acme/internal");
    assert_eq!((&internal["purl"], &internal["version"]), (&"pkg:github/acme/internal@v1".into(), &"v1".into()));
    let purls = document["components"].as_array().unwrap().iter().map(|one| one["purl"].as_str().unwrap());
    let internal_purls: Vec<&str> = purls.filter(|purl| purl.contains("internal")).collect();
    let of_parts = ["pkg:github/acme/internal@v1#a/crds.yaml", "pkg:github/acme/internal@v2#a%20b"];
    assert!(of_parts.iter().all(|purl| internal_purls.contains(purl)), "{internal_purls:?}");
    assert!(internal["properties"].to_string().contains("by hand"), "{internal}");
    // What names what.
    for (rev, line) in [("main", 2), ("localized/main", 2)] {
        let document: Value = serde_json::from_str(&sbom(&world.work, rev, "cyclonedx")).unwrap();
        let properties = component(&document, "acme/licensed")["properties"].to_string();
        let place = format!("\"git-kustomize-localize:named-by\",\"value\":\"app/kustomization.yaml:{line}\"");
        assert!(properties.contains(&place), "{rev}: {properties}");
        assert!(!component(&document, "acme/deep")["properties"].to_string().contains("named-by"));
    }
    let id = |name: &str| component(&document, name)["bom-ref"].as_str().unwrap().to_owned();
    let dependencies = document["dependencies"].as_array().unwrap();
    let of = |from: &str| dependencies.iter().find(|one| one["ref"] == from).unwrap()["dependsOn"].to_string();
    assert!(of(&id("acme/lib")).contains(&id("acme/deep")), "{document:#}");
    assert!(!of("repository").contains(&id("acme/deep")), "{document:#}");
    // On main no license has been brought in.
    let document: Value = serde_json::from_str(&sbom(&world.work, "main", "cyclonedx")).unwrap();
    assert!(component(&document, "acme/licensed").get("licenses").is_none());
    let document: Value = serde_json::from_str(&sbom(&world.work, "main", "spdx")).unwrap();
    assert_eq!(document["packages"][0]["licenseDeclared"], "NOASSERTION");
}

#[test]
fn a_date_is_that_of_the_commit_or_of_the_environment() {
    let world = world();
    let dated = |format: &str| sbom(&world.work, "main", format);
    let day = world.work.git(&["show", "-s", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", "main"]);
    for (format, name) in [("cyclonedx", "timestamp"), ("spdx", "created"), ("slsa", "finishedOn")] {
        assert!(dated(format).contains(&format!("\"{name}\": \"{}\"", day.trim())), "{day} {}", dated(format));
    }
    world.sandbox.set("SOURCE_DATE_EPOCH", "1700000000");
    assert!(dated("cyclonedx").contains("\"timestamp\": \"2023-11-14T22:13:20Z\""));
    assert!(dated("spdx").contains("\"created\": \"2023-11-14T22:13:20Z\""));
    world.sandbox.set("SOURCE_DATE_EPOCH", "yesterday");
    world.work.run_unchanged(&["sbom"]).fails(2).says(expect![[r#"
        error: `SOURCE_DATE_EPOCH` is not a number of seconds
    "#]]);
}

#[test]
fn a_copy_has_its_own() {
    let world = world();
    world.work.run(&["app", "copy", "--no-commit", "--no-verify"]).success();
    for format in rows(["cyclonedx", "spdx", "slsa"], 2) {
        let document = sbom(&world.work, "copy", format);
        validate(format, &document);
        assert!(document.contains("acme/licensed"), "{document}");
    }
}

#[test]
fn images_come_with_what_runs_them() {
    let world = World::acme();
    let Some(_) = world.sandbox.builds() else { return };
    let digest = "5".repeat(64);
    let pods = |kind: &str, images: &[&str]| {
        let images = images.iter().map(|image| format!("{{name: c, image: '{image}'}}")).collect::<Vec<_>>().join(", ");
        format!(
            "apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: web}}\nspec: {{template: {{spec: {{containers: [{images}]}}}}}}\n"
        )
    };
    let remote = pods("Deployment", &[&format!("ghcr.io/acme/Web:1.2@sha256:{digest}"), "localhost:5000/side"]);
    world.upstream_of("acme/pods", &[("kustomization.yaml", "resources: [pods.yaml]\n"), ("pods.yaml", &remote)]);
    let object = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: web, namespace: flux-system}\nspec:\n  path: ./web\n  sourceRef: {kind: GitRepository, name: flux-system}\n";
    world.commit(&[
        ("web/kustomization.yaml", "resources:\n- https://github.com/acme/pods?ref=v1\n"),
        ("clusters/web.yaml", object),
        ("base/kustomization.yaml", "resources: [pods.yaml]\n"),
        ("base/pods.yaml", &pods("Sensor", &["nginx:1"])),
        ("next/kustomization.yaml", "resources: [../base]\nimages: [{name: nginx, newTag: '2'}]\n"),
    ]);
    world.work.run(&["lock"]).success();
    world.work.commit("Lock");
    world.server.forget();
    let sbom = |format: &str| world.work.run_unchanged(&["sbom", "--images", "--format", format]);
    for format in ["cyclonedx", "spdx"] {
        let output = sbom(format);
        output.success();
        assert_eq!(sbom(format).stdout, output.stdout);
        validate(format, &output.stdout);
    }
    assert_eq!(world.server.log(), crate::support::NONE);
    let document: Value = serde_json::from_str(&sbom("cyclonedx").stdout).unwrap();
    for (name, purl, by) in [
        (
            "ghcr.io/acme/Web",
            &*format!("pkg:oci/web@sha256%3A{digest}?repository_url=ghcr.io/acme/Web&tag=1.2"),
            "Flux Kustomization web (clusters/web.yaml:1)",
        ),
        (
            "localhost:5000/side",
            "pkg:oci/side?repository_url=localhost:5000/side",
            "Flux Kustomization web (clusters/web.yaml:1)",
        ),
        ("nginx", "pkg:oci/nginx?repository_url=docker.io/library/nginx&tag=2", "next"),
    ] {
        let image = component(&document, name);
        assert_eq!((&image["purl"], &image["type"]), (&Value::from(purl), &Value::from("container")));
        assert_eq!(image["properties"][0]["value"], by, "{image}");
    }
    assert_eq!(document["components"].as_array().unwrap().len(), 4, "{document:#}");
    // What cannot be built is named, and so it is in the document.
    world.commit(&[("bad/kustomization.yaml", "resources: [nothing.yaml]\n")]);

    for format in rows(["cyclonedx", "spdx"], 2) {
        let output = sbom(format);
        output.fails(1).stderr_has("error: bad").stderr_has("nothing.yaml");
        validate(format, &output.stdout);
        assert!(output.stdout.contains("nothing.yaml") && output.stdout.contains("ghcr.io/acme/Web"), "{output:?}");
    }

    sbom("slsa").fails(2).says(expect![[r#"
        error: `--images` needs a commit, and a format other than `slsa`
    "#]]);
    world.work.run_unchanged(&["sbom", "web", "--images"]).fails(2).says(expect![[r#"
        error: `--images` needs a commit, and a format other than `slsa`
    "#]]);
}

#[test]
fn what_has_no_lock_has_none() {
    let world = World::new();
    world.commit(&[("app/kustomization.yaml", "resources: []\n")]);
    // `lock` would write none.
    world.work.run_unchanged(&["sbom"]).success();
    world.commit(&[("web/kustomization.yaml", "resources: [\"https://github.com/acme/lib?ref=v1\"]\n")]);
    world.work.run_unchanged(&["sbom"]).fails(2).says(expect![[r#"
        error: `HEAD` has no `kustomize-localize.lock`
          hint: lock the remote references: git kustomize-localize lock
    "#]]);
    world.work.run_unchanged(&["sbom", "app"]).fails(2).says(expect![[r#"
        error: `app` has no `kustomize-localize.lock`
          hint: name a directory that `--no-commit` wrote, or a commit
    "#]]);
    world.work.run_unchanged(&["sbom", "nowhere"]).fails(2).says(expect![[r#"
        error: unknown revision `nowhere`
          hint: fetch it first, or name another one: git log --oneline --all
    "#]]);
    world.work.run_unchanged(&["lock", "--format", "spdx"]).fails(2).says(expect![[r#"
        error: unsupported format `spdx`: expected one of human, json
    "#]]);
}

#[test]
fn a_file_that_stays_remote_has_the_version_of_its_release() {
    let world = World::new();
    let url = "https://github.com/acme/app/releases/download/v1.16.1/app.yaml";
    world.work.decide(&format!("allow: [{{url: '{url}', reason: generated}}]\n"));
    world.commit(&[("app/kustomization.yaml", &format!("resources: [{url}]\n"))]);
    world.work.run(&["lock"]).success();
    world.work.commit("locked");
    let output = world.work.run(&["sbom", "--format=cyclonedx"]);
    output.success().stdout_has("\"version\": \"v1.16.1\"").stdout_has(&format!("?download_url={url}\""));
}
