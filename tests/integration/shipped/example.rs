//! The bundled example does what the README claims.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::support::{Kustomize, Output, Running, Sandbox};

/// Plays the example as in the README, but into the sandbox.
fn play(sandbox: &Sandbox) -> Output {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["run", "--locked", "--offline", "--quiet", "--example", "localize"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("TMPDIR", sandbox.path("tmp"));
    // Build scripts depend on the variables that cargo sets for a test of its package, and would all run again.
    for (name, _) in env::vars_os() {
        let told = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| told.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    // The git variables of the caller must not change the output.
    command.env("GIT_DIR", sandbox.path("nowhere")).env("GIT_AUTHOR_NAME", "Somebody Else");
    Running::start(&mut command).wait()
}

#[test]
fn shows_the_main_job_and_leaves_the_repository() {
    let sandbox = Sandbox::new();
    let output = play(&sandbox);
    output
        .success()
        .stdout_has("into localized-production on branch localized/main")
        .stdout_has("+  - localized-files/github.com/example-org/platform/v2.1.0/monitoring\n")
        .stdout_has("nothing to do: branch localized/main")
        .lacks("warning")
        .lacks("error");
    let shop = output.stdout.lines().find_map(|line| line.trim().strip_prefix("cd "));
    let shop = Path::new(shop.unwrap());

    // One commit on top of the user's, and nothing that was not committed.
    assert_eq!(sandbox.git(shop, &["rev-list", "--count", "main..localized/main"]), "1");
    assert_eq!(sandbox.git(shop, &["status", "--porcelain"]), "");

    // The branch's copy builds on its own: there is nothing left to answer the URLs.
    let Some(kustomize) = Kustomize::find() else { return };
    sandbox.git(shop, &["switch", "--quiet", "localized/main"]);
    std::fs::rename(shop.join("../upstream"), shop.join("../gone")).unwrap();
    sandbox.set("http_proxy", "http://127.0.0.1:9");
    sandbox.set("https_proxy", "http://127.0.0.1:9");
    let built = kustomize.build(&sandbox, shop, "localized-production/overlays/production");
    built.success().stdout_has("kind: ResourceQuota").stdout_has("owner: platform").stdout_has("page when slow");
}
