//! The program that the action installs.

use super::*;

const ARCHIVE: &str = "git-kustomize-localize-x86_64-unknown-linux-musl.tar.gz";

/// Returns an archive of a release, whose program prints `released`.
fn archive(sandbox: &Sandbox) -> Vec<u8> {
    let root = ARCHIVE.strip_suffix(".tar.gz").unwrap();
    let directory = sandbox.path("release").join(root);
    fs::create_dir_all(&directory).unwrap();
    sandbox.script("new", "echo released");
    let program = directory.join("git-kustomize-localize");
    fs::rename(sandbox.path("bin/new"), program).unwrap();
    let mut command = sandbox.command("tar", &sandbox.path("release"));
    command.args(["-czf", "../release.tar.gz", root]);
    Running::start(&mut command).wait().success();
    fs::read(sandbox.path("release.tar.gz")).unwrap()
}

/// A runner without the program, and the server that has the release v1.2.3. Its program prints `released`.
struct Release {
    runner: Runner,
    server: Server,
    digest: String,
    /// The file of the action that says which release it comes with.
    known: PathBuf,
}

impl Release {
    fn new(archive: impl FnOnce(&Sandbox) -> Vec<u8>) -> Release {
        let mut runner = Runner::without_the_program();
        let sandbox = &runner.sandbox;
        let server = Server::start();
        sandbox.trust(&server);
        sandbox.set("CURL_CA_BUNDLE", sandbox.path("authority.pem"));
        sandbox.set("GITHUB_SERVER_URL", server.tls_url().trim_end_matches('/'));
        let archive = archive(sandbox);
        let digest = sha256_hex(&archive);
        server.route(&format!("/owner/repository/releases/download/v1.2.3/{ARCHIVE}"), Reply::ok(archive));
        let action = sandbox.path("action");
        fs::create_dir_all(action.join("hooks/action")).unwrap();
        for script in ["install.sh", "check.sh"] {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/action");
            fs::copy(from.join(script), action.join("hooks/action").join(script)).unwrap();
        }
        runner.set("github.action_path", action.to_str().unwrap());
        runner.set("inputs.install", "release");
        Release { runner, server, digest, known: action.join("hooks/action/release") }
    }

    /// Lets the action come with these lines about v1.2.3.
    fn knows(&self, digests: &str) {
        fs::write(&self.known, format!("v1.2.3\n{digests}")).unwrap();
    }
}

#[test]
#[ignore = "needs a release"]
fn the_archive_that_is_shipped_is_installed() {
    let directory = shipped();
    let mut release = Release::new(|_| fs::read(directory.join(ARCHIVE)).unwrap());
    let said = fs::read_to_string(directory.join(format!("{ARCHIVE}.sha256"))).unwrap();
    assert_eq!(said, format!("{}  {ARCHIVE}\n", release.digest));
    release.knows(&said);
    release.runner.set("github.action_ref", "v1.2.3");
    release.runner.run().success().stdout_has("checked 1 kustomization with 1 reference");
    release.runner.set("inputs.sha256", "0".repeat(64));
    release.runner.run().fails(2).stdout_has("has the SHA-256");
}

#[test]
fn only_the_release_that_the_action_comes_with_is_installed() {
    let mut release = Release::new(archive);
    let digest = release.digest.clone();
    let (id, other) = ("0123456789012345678901234567890123456789", "0".repeat(64));
    // What the server says of the digest counts for nothing.
    let said = Reply::ok(format!("{digest}  {ARCHIVE}\n"));
    release.server.route(&format!("/owner/repository/releases/download/v1.2.3/{ARCHIVE}.sha256"), said);
    let mut transcript = Transcript::default();
    for reference in ["v1", "main", id, "v1.2.3"] {
        release.runner.set("github.action_ref", reference);
        transcript.add(release.runner.run().fails(2));
    }
    transcript.says(expect![[r#"
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/install.sh\""
        ::error title=git kustomize-localize::v1 of this action comes with no release for Linux X64: use a tag that has one, or install: source
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/install.sh\""
        ::error title=git kustomize-localize::main of this action comes with no release for Linux X64: use a tag that has one, or install: source
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/install.sh\""
        ::error title=git kustomize-localize::<0> of this action comes with no release for Linux X64: use a tag that has one, or install: source
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/install.sh\""
        ::error title=git kustomize-localize::v1.2.3 of this action comes with no release for Linux X64: use a tag that has one, or install: source
    "#]]);
    let mut transcript = Transcript::default();
    for digests in
        [format!("{other}  {ARCHIVE}\n"), format!("{digest}  other-{ARCHIVE}\n"), format!("{digest}  {ARCHIVE}.sig\n")]
    {
        release.knows(&digests);
        for reference in ["v1", "main", id, "v1.2.3"] {
            for install in ["release", "auto"] {
                // An unexpected digest must not lead to a fallback.
                release.runner.set("inputs.install", install);
                release.runner.set("github.action_ref", reference);
                transcript.add(release.runner.run().fails(2));
            }
        }
    }
    transcript.says(expect![[r#"
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/install.sh\""
        ::error title=git kustomize-localize::https://localhost:…/owner/repository/releases/download/v1.2.3/git-kustomize-localize-x86_64-unknown-linux-musl.tar.gz has the SHA-256 <0>, and not <1>
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/install.sh\""
        ::error title=git kustomize-localize::no digest of git-kustomize-localize-x86_64-unknown-linux-musl.tar.gz in /home/me/action/hooks/action/release
    "#]]);
    release.knows(&format!("{digest}  {ARCHIVE}\n"));
    release.runner.set("github.action_ref", "v1.2.4");
    release.runner.run().fails(2).says(expect![[r#"
        ::error title=git kustomize-localize::this action is used at v1.2.4, and comes with the release v1.2.3: use it at v1.2.3
    "#]]);
    release.runner.set("github.action_ref", "v1.2.3");
    release.runner.set("inputs.sha256", &other);
    release.runner.run().fails(2).says(expect![[r#"
        ::error title=git kustomize-localize::https://localhost:…/owner/repository/releases/download/v1.2.3/git-kustomize-localize-x86_64-unknown-linux-musl.tar.gz has the SHA-256 <0>, and not <1>
    "#]]);
    release.runner.set("inputs.sha256", "");
    release.runner.run().success().says(expect![[r#"
        released
    "#]]);
    let _ = fs::remove_dir_all(release.runner.sandbox.path("runner/git-kustomize-localize"));
    release.runner.set("github.action_ref", "v1");
    release.runner.run().success().says(expect![[r#"
        released
    "#]]);
}

#[test]
fn an_archive_without_an_attestation_is_refused_where_gh_can_tell() {
    let sandbox = Sandbox::new();
    let script = crate::support::pages::source("hooks/action/install.sh");
    let (_, rest) = script.split_once("\nattested() {").unwrap();
    let (function, _) = rest.split_once("\n}\n").unwrap();
    let run = format!("attested() {{{function}\n}}\nKL_REPOSITORY=owner/repository\nattested archive");
    for (server, token, gh, is_taken) in [
        ("https://github.com", "t", "exit 0", true),
        ("https://github.com", "t", "exit 1", false),
        ("https://github.com", "", "exit 1", true),
        ("https://ghe.example.com", "t", "exit 1", true),
    ] {
        let wanted = "[ \"$*\" = 'attestation verify archive --repo owner/repository' ] || exit 9";
        sandbox.script("gh", &format!("{wanted}\n{gh}"));
        let mut bash = sandbox.command("bash", &sandbox.path(""));
        let path = format!("{}:/usr/bin:/bin", sandbox.path("bin").display());
        bash.args(["-euc", &run]).env("GITHUB_SERVER_URL", server).env("GH_TOKEN", token).env("PATH", path);
        assert_eq!(bash.status().unwrap().success(), is_taken, "{server} {token} {gh}");
    }
}

#[test]
fn the_source_is_compiled_where_there_is_no_release() {
    let mut runner = Runner::without_the_program();
    runner.run().fails(2).says(expect![[r#"
        ::error title=git kustomize-localize::git-kustomize-localize is not on PATH
    "#]]);
    // A fake cargo prints its arguments, and makes the program.
    let body = format!(
        "echo \"$@\" > \"$RUNNER_TEMP/cargo\"\nwhile [ \"$1\" != --root ]; do shift; done\n\
         mkdir -p \"$2/bin\" && ln -s {} \"$2/bin/git-kustomize-localize\"",
        program().display()
    );
    runner.sandbox.script("cargo", &body);
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", runner.sandbox.path("bin").display());
    let mut transcript = Transcript::default();
    for install in ["source", "auto"] {
        runner.set("inputs.install", install);
        let _ = fs::remove_dir_all(runner.sandbox.path("runner/git-kustomize-localize"));
        runner.sandbox.set("PATH", &path);
        transcript.add(runner.run().success());
        let asked = runner.file("cargo");
        let source = concat!("install --quiet --locked --path ", env!("CARGO_MANIFEST_DIR"));
        assert!(asked.contains(source), "{asked}");
    }
    transcript.says(expect![[r#"
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        checked 1 kustomization with 1 reference in commit <0> (HEAD): no problems found
    "#]]);
    runner.set("inputs.install", "something");
    runner.run().fails(2).says(expect![[r#"
        ::error title=git kustomize-localize::install must be auto, release, source or none
    "#]]);
}
