//! `signed-by`: who must have signed what is locked.

use std::fs;
use std::process::Command;

use crate::support::{Kustomize, Repo, Running, World, rows, tool};

const LOCK: &str = "kustomize-localize.lock";
const SIGNERS: &str = ".github/allowed-signers";
const POLICY: &str = "sources: [{url: github.com/acme, signed-by: .github/allowed-signers}]\n";

/// Makes an ssh key of this name; returns its line for allowed signers, with these options.
fn key(world: &World, name: &str, options: &str) -> String {
    let file = world.sandbox.path(name);
    if !file.exists() {
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(&file);
        Running::start(&mut command).wait().success();
    }
    let public = fs::read_to_string(file.with_extension("pub")).unwrap();
    format!("{name}@acme.example {options}{public}")
}

/// Runs git with the ssh key of this name.
fn signing(world: &World, repo: &Repo, name: &str, args: &[&str]) {
    let key = format!("user.signingKey={}", world.sandbox.path(name).display());
    repo.git(&[&["-c", "gpg.format=ssh", "-c", &key], args].concat());
}

/// Commits by the key of this name; returns the id.
fn sign(world: &World, repo: &Repo, name: &str) -> String {
    signing(world, repo, name, &["commit", "-q", "-S", "--allow-empty", "-m", name]);
    repo.id("HEAD")
}

/// Names a ref of `acme/lib`, and commits.
fn names(world: &World, reference: &str) {
    let text = format!("resources:\n- https://github.com/acme/lib//web?ref={reference}\n");
    world.commit(&[("app/kustomization.yaml", &text)]);
}

/// Returns a world in which `alice` may sign, and an upstream without a signature.
fn world() -> (World, Repo) {
    let world = World::new();
    let lib = world.upstream_of("acme/lib", &[("web/kustomization.yaml", "resources: []\n")]);
    world.work.write(SIGNERS, format!("# who may\n\n{}", key(&world, "alice", "")));
    world.work.decide(POLICY);
    key(&world, "mallory", "");
    (world, lib)
}

#[test]
fn the_tag_or_else_the_commit_must_be_signed() {
    let (world, lib) = world();
    let work = &world.work;
    lib.git(&["tag", "-a", "unsigned-tag", "-m", "x"]);
    signing(&world, &lib, "alice", &["tag", "-s", "tag", "-m", "x"]);
    signing(&world, &lib, "mallory", &["tag", "-s", "unknown-tag", "-m", "x"]);
    let first = lib.id("HEAD");
    sign(&world, &lib, "mallory");
    lib.git(&["tag", "unknown"]);
    let good = sign(&world, &lib, "alice");
    lib.git(&["tag", "light"]);
    // What is signed below an unsigned tag, below a tag of another name, below a tag of a tag.
    lib.git(&["tag", "-a", "moved", "-m", "x"]);
    lib.git(&["update-ref", "refs/tags/renamed", "refs/tags/tag"]);
    signing(&world, &lib, "alice", &["tag", "-s", "nested", "-m", "x", "tag"]);
    let unsigned = |what: &str| format!("the {what} is not signed");
    let unknown = |what: &str| format!("the {what} is not signed by a key of `{SIGNERS}` that is valid at its date");
    let refused = [
        ("v1", unsigned("commit")),
        (&first, unsigned("commit")),
        ("unsigned-tag", unsigned("tag")),
        ("unknown-tag", unknown("tag")),
        ("unknown", unknown("commit")),
        ("moved", unsigned("tag")),
        ("renamed", "the tag object is not named `renamed`".to_owned()),
        ("refs/tags/renamed", "the tag object is not named `renamed`".to_owned()),
        ("nested", "does not point at the commit".to_owned()),
    ];
    for (reference, why) in rows(refused, 2) {
        names(&world, reference);
        work.run(&["lock"]).fails(1).stderr_has(&why).stderr_has("app/kustomization.yaml:2:3: ").lacks("leave it");
        work.run_unchanged(&["vendor"]).fails(2).stderr_has(&why);
        let url = format!("https://github.com/acme/lib//web?ref={reference}");
        work.run_unchanged(&[&url, "copy"]).fails(2).stderr_has(&why);
        assert!(!work.path().join(LOCK).exists(), "{reference}");
    }
    for reference in ["tag", "tags/tag", "light", "main", &good] {
        names(&world, reference);
        work.run(&["lock"]).success();
        let lock = work.read(LOCK);
        assert!(lock.contains("\n    signed: \"SHA256:") && lock.contains(" alice@acme.example\"\n"), "{lock}");
        work.run_unchanged(&["check"]).success();
    }
    // Nothing of the user's configuration counts, whose file knows the other key.
    let all = world.sandbox.path("all");
    fs::write(&all, key(&world, "mallory", "")).unwrap();
    world.sandbox.configure("gpg.ssh.allowedSignersFile", all.to_str().unwrap());
    world.sandbox.configure("gpg.ssh.program", "true");
    names(&world, "unknown");
    work.remove(LOCK);
    work.run(&["lock"]).fails(1).stderr_has(&unknown("commit"));
}

#[test]
fn a_key_counts_while_it_is_valid() {
    let (world, lib) = world();
    let work = &world.work;
    sign(&world, &lib, "alice");
    lib.git(&["tag", "light"]);
    names(&world, "light");
    for (options, is_signer) in [
        ("valid-before=\"20200101\" ", false),
        ("valid-after=\"20990101\" ", false),
        ("valid-after=\"20200101\",valid-before=\"20990101\" ", true),
        ("namespaces=\"file\" ", false),
        ("namespaces=\"file,git\" ", true),
    ] {
        work.write(SIGNERS, key(&world, "alice", options));
        let output = work.run(&["lock"]);
        assert_eq!(output.status == 0, is_signer, "{options} {output:?}");
        if is_signer {
            work.remove(LOCK);
        }
    }
}

#[test]
fn what_is_no_list_of_signers_is_an_error() {
    let (world, _) = world();
    let work = &world.work;
    let alice = key(&world, "alice", "");
    for (text, why) in [
        ("", "it contains no key"),
        ("# alice\n", "it contains no key"),
        ("alice@acme.example ssh-ed25519 AAAA\n", "line 1 has no key"),
        (&alice.replace("ssh-ed25519", "ssh-rsa"), "line 1 has no key"),
        (&key(&world, "alice", "cert-authority "), "line 1 names a certificate authority"),
        (&fs::read_to_string(world.sandbox.path("alice")).unwrap(), "it contains a private key"),
    ] {
        work.write(SIGNERS, text);
        for command in ["lock", "check"] {
            work.run_unchanged(&[command]).fails(2).stderr_has(&format!("`{SIGNERS}`: {why}"));
        }
    }
    work.remove(SIGNERS);
    work.run_unchanged(&["check"])
        .fails(2)
        .stderr_has("`signed-by: .github/allowed-signers` is not a file of this repository");
    work.symlink(SIGNERS, world.sandbox.path("alice.pub").to_str().unwrap());
    work.run_unchanged(&["check"]).fails(2).stderr_has("is not a file of this repository");
    work.write(".kustomize-localize", "sources: [{url: github.com, signed-by: ../../etc/passwd}]\n");
    work.run_unchanged(&["check"])
        .fails(2)
        .stderr_has("`signed-by: ../../etc/passwd` is not a file of this repository");
}

#[test]
fn the_lock_is_held_against_the_configuration() {
    let (world, lib) = world();
    let work = &world.work;
    work.decide("");
    names(&world, "main");
    work.lock();
    work.decide(POLICY);
    // It was locked before anybody asked for a signature.
    let unsigned = "error[unsigned-source]: `https://github.com/acme/lib//web?ref=main` is not signed by a key of";
    work.run_unchanged(&["check"]).fails(1).stdout_has(unsigned);
    work.run_unchanged(&["branch"]).fails(1).stderr_has("error[unsigned-source]");
    let hint = ["update", "https://github.com/acme/lib"];
    work.run_unchanged(&hint).fails(1).stderr_has("?ref=main: the commit is not signed");
    let good = sign(&world, &lib, "alice");
    work.run(&hint).success().stdout_has("old, signed by SHA256:");
    work.run_unchanged(&["check"]).success();
    let base = work.commit("signed");
    // The same commit, verified later.
    let signed = work.read(LOCK);
    let line = signed.lines().find(|line| line.contains("signed: ")).unwrap();
    work.write(LOCK, signed.replace(&format!("{line}\n"), ""));
    work.run(&["update"]).success();
    assert_eq!(work.read(LOCK), signed);
    // A branch that somebody else moved stays what it was, with all else.
    sign(&world, &lib, "mallory");
    work.run_unchanged(&["update"]).fails(1).stderr_has("the commit is not signed by a key of");
    assert!(work.read(LOCK).contains(&good));
    // A change that brings its own signers.
    work.write(SIGNERS, key(&world, "mallory", ""));
    work.run(&["update"]).success();
    work.run_unchanged(&["check"]).success();
    work.commit("mine");
    let said = " mallory@acme.example, whose key is not in `.github/allowed-signers`, so it may not be locked";
    work.run_unchanged(&["check", "--base", &base]).fails(1).stdout_has("error[unsigned-source]").stdout_has(said);
    // What only the lock holds counts as well.
    world.commit(&[("app/kustomization.yaml", "resources: []\n")]);
    work.run_unchanged(&["check", "--base", &base])
        .fails(1)
        .stdout_has("the lock contains https://github.com/acme/lib?ref=main, which is signed by");
}

/// Removes what was fetched.
fn forget(world: &World) {
    fs::remove_dir_all(world.sandbox.path("cache/git-kustomize-localize")).unwrap();
}

#[test]
fn a_lock_is_not_believed_who_signed_what_it_holds() {
    let (world, lib) = world();
    let work = &world.work;
    let good = sign(&world, &lib, "alice");
    names(&world, "main");
    work.lock();
    let base = work.id("HEAD");
    lib.write("web/kustomization.yaml", "namePrefix: evil-\n");
    let evil = lib.commit("unsigned");
    let edited = work.read(LOCK).replace(&good, &evil);
    work.write(LOCK, &edited);
    work.commit("edited");
    let claim = "error[unsigned-source]: the change locks https://github.com/acme/lib?ref=main at ";
    let verify = format!("verify it: git kustomize-localize check --build --base {base} --rev HEAD");
    work.run_unchanged(&["check", "--rev", "HEAD", "--base", &base])
        .fails(1)
        .stdout_has(claim)
        .stdout_has(", and nothing has verified that SHA256:")
        .stdout_has(" alice@acme.example signed it\n --> kustomize-localize.lock:")
        .stdout_has(&verify);
    let said = "https://github.com/acme/lib?ref=main: the commit is not signed";
    let hint = "hint: restore its entry in the lock, or lock its current version: git kustomize-localize update https://github.com/acme/lib";
    let commands: [&[&str]; 5] = [&["branch"], &["vendor"], &["app"], &["build", "app"], &["check", "--build"]];
    let kustomize = Kustomize::find();
    let has_kustomize = kustomize.is_some_and(|kustomize| {
        world.sandbox.set("KUSTOMIZE", kustomize.program());
        true
    });
    // From the network, and then from the cache.
    for command in commands.into_iter().filter(|command| has_kustomize || command.len() == 1) {
        for offline in [false, true] {
            let more: &[&str] = if offline { &["--offline"] } else { &[] };
            let output = work.run_unchanged(&[command, more].concat());
            output.fails(2).stderr_has(said).stderr_has(hint);
        }
    }
    if has_kustomize {
        work.run_unchanged(&["diff", &base]).success().stdout_has("not built (new side): ").stdout_has(said);
        let build = ["check", "--rev", "HEAD", "--base", &base, "--build"];
        work.run_unchanged(&build).fails(1).stdout_has(&format!("error[unsigned-source]: {said}"));
    }
    // A lock that names somebody else who may sign.
    work.write(SIGNERS, key(&world, "alice", "") + &key(&world, "mallory", ""));
    let other = sign(&world, &lib, "mallory");
    work.write(LOCK, edited.replace(&evil, &other));
    work.commit("other");
    work.run_unchanged(&["branch"])
        .fails(2)
        .stderr_has("expected a signature by SHA256:")
        .stderr_has(", found one by SHA256:");
    work.run(&["update"]).success();
    work.commit("updated");
    work.run(&["branch"]).success();
}

#[test]
fn a_locked_tag_is_verified_again() {
    let (world, lib) = world();
    let work = &world.work;
    signing(&world, &lib, "alice", &["tag", "-s", "tag", "-m", "x"]);
    names(&world, "tag");
    work.lock();
    let base = work.id("HEAD");
    // As in a clone of somebody else: the lock names the commit, which is not signed.
    forget(&world);
    work.run(&["branch"]).success();
    // From now on the cache has the tag.
    let work_of = |name: &str| world.sandbox.git(work.path(), &["branch", "-q", "-D", name]);
    work_of("localized/main");
    work.run(&["branch", "--offline"]).success();
    work_of("localized/main");
    // What the tip holds was verified.
    forget(&world);
    names(&world, "light");
    lib.git(&["tag", "light"]);
    let edited = work.read(LOCK).replace("ref: tag", "ref: light");
    work.write(LOCK, edited);
    work.commit("light");
    work.run_unchanged(&["branch"]).fails(2).stderr_has("?ref=light: the commit is not signed");
    work.git(&["reset", "--quiet", "--hard", &base]);
    signing(&world, &lib, "alice", &["commit", "-q", "--allow-empty", "-m", "moved"]);
    signing(&world, &lib, "alice", &["tag", "-f", "-s", "tag", "-m", "x"]);
    forget(&world);
    work.run_unchanged(&["branch"]).fails(2).stderr_has("the tag `tag` does not point at the commit");
}

#[test]
fn what_is_behind_is_held_to_it_and_what_has_no_signature_cannot_pass() {
    let (world, lib) = world();
    let work = &world.work;
    lib.write("web/kustomization.yaml", "resources: ['https://github.com/acme/deep?ref=v1']\n");
    lib.git(&["add", "--all"]);
    sign(&world, &lib, "alice");
    let deep = world.upstream_of("acme/deep", &[("kustomization.yaml", "resources: []\n")]);
    names(&world, "main");
    work.run(&["lock"]).fails(1).stderr_has("https://github.com/acme/deep?ref=v1: the commit is not signed");
    sign(&world, &deep, "alice");
    deep.git(&["tag", "-f", "v1"]);
    work.run(&["lock"]).success();
    let lock = work.read(LOCK);
    assert_eq!(lock.matches("signed: ").count(), 2);
    let (before, after) = lock.split_once("    signed: ").unwrap();
    work.write(LOCK, format!("{before}{}", after.split_once('\n').unwrap().1));
    work.run_unchanged(&["check"])
        .fails(1)
        .stdout_has("is locked, but https://github.com/acme/deep?ref=v1 behind it is not signed");
    let url = "https://files.example.com/v1/app.yaml";
    world.file(url, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    world.commit(&[("app/kustomization.yaml", &format!("resources: ['{url}']\n"))]);
    work.decide("sources: [{url: '*', signed-by: .github/allowed-signers}]\n");
    work.run(&["lock"]).fails(1).stderr_has(&format!("{url} has no signature, which `sources` requires"));
    work.decide("");
    work.run(&["lock"]).success();
    work.decide("sources: [{url: '*', signed-by: .github/allowed-signers}]\n");
    work.run_unchanged(&["check"])
        .fails(1)
        .stdout_has("error[unsigned-source]")
        .stdout_has("before the entry that it cannot satisfy");
}

/// Makes an OpenPGP key of this name in its own home; returns its keyring.
fn openpgp(world: &World, name: &str, expires: &str) -> String {
    let home = world.sandbox.path(&format!("gpg-{name}"));
    if !home.exists() {
        fs::create_dir(&home).unwrap();
        fs::set_permissions(&home, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let user = format!("{name} <{name}@acme.example>");
        gpg(world, name, &["--quick-generate-key", &user, "ed25519", "sign", expires]);
    }
    gpg(world, name, &["--armor", "--export"])
}

fn gpg(world: &World, name: &str, args: &[&str]) -> String {
    let mut command = Command::new("gpg");
    command.arg("--homedir").arg(world.sandbox.path(&format!("gpg-{name}")));
    command.args(["--batch", "--quiet", "--no-tty", "--pinentry-mode", "loopback", "--passphrase", ""]).args(args);
    let output = Running::start(&mut command).wait();
    output.success();
    output.stdout.clone()
}

#[test]
fn an_openpgp_keyring_counts_as_git_says() {
    let Some(_) = tool("gpg") else { return };
    let (world, lib) = world();
    let work = &world.work;
    let keyring = openpgp(&world, "alice", "0");
    openpgp(&world, "mallory", "0");
    for name in ["alice", "mallory"] {
        world.sandbox.script(
            &format!("gpg-of-{name}"),
            &format!(
                "exec gpg --homedir '{}' --batch --no-tty \"$@\"",
                world.sandbox.path(&format!("gpg-{name}")).display()
            ),
        );
        let program = format!("gpg.program=gpg-of-{name}");
        let id = format!("{name}@acme.example");
        lib.git(&["-c", &program, "commit", "-q", &format!("-S{id}"), "--allow-empty", "-m", name]);
        lib.git(&["tag", &format!("by-{name}")]);
        lib.git(&["-c", &program, "tag", "-u", &id, "-m", "x", &format!("tag-{name}")]);
    }
    let fingerprint = gpg(&world, "alice", &["--list-keys", "--with-colons"]);
    let fingerprint =
        fingerprint.lines().find_map(|line| line.strip_prefix("fpr:")).unwrap().trim_matches(':').to_owned();
    sign(&world, &lib, "alice");
    lib.git(&["tag", "by-ssh"]);
    work.write(SIGNERS, "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END");
    work.run_unchanged(&["check"])
        .fails(2)
        .stderr_has(&format!("`{SIGNERS}`: it is not a keyring of OpenPGP public keys: gpg: "));
    work.write(SIGNERS, private(&world));
    work.run_unchanged(&["check"]).fails(2).stderr_has(&format!("`{SIGNERS}`: it contains a private key"));
    for keyring in [keyring.clone().into_bytes(), dearmored(&world)] {
        work.write(SIGNERS, keyring);
        for (reference, is_signed) in
            [("by-alice", true), ("tag-alice", true), ("by-mallory", false), ("tag-mallory", false), ("by-ssh", false)]
        {
            names(&world, reference);
            let output = work.run(&["lock"]);
            assert_eq!(output.status == 0, is_signed, "{reference} {output:?}");
            if is_signed {
                let lock = work.read(LOCK);
                assert!(lock.contains(&format!("signed: \"{fingerprint} alice <alice@acme.example>\"\n")), "{lock}");
                work.run_unchanged(&["check"]).success();
                work.remove(LOCK);
            }
        }
    }
    // An agent that the test has started.
    for name in ["alice", "mallory"] {
        let mut command = Command::new("gpgconf");
        command.arg("--homedir").arg(world.sandbox.path(&format!("gpg-{name}"))).args(["--kill", "all"]);
        Running::start(&mut command).wait();
    }
}

/// Returns a keyring of private keys, which no text tells as that.
fn private(world: &World) -> Vec<u8> {
    let file = world.sandbox.path("private.gpg");
    gpg(world, "alice", &["--output", file.to_str().unwrap(), "--export-secret-keys"]);
    fs::read(file).unwrap()
}

fn dearmored(world: &World) -> Vec<u8> {
    let file = world.sandbox.path("keyring.gpg");
    gpg(world, "alice", &["--output", file.to_str().unwrap(), "--export"]);
    fs::read(file).unwrap()
}

#[test]
fn upstream_is_verified_again() {
    let (world, lib) = world();
    let work = &world.work;
    signing(&world, &lib, "alice", &["tag", "-s", "tag", "-m", "x"]);
    sign(&world, &lib, "alice");
    let commit = lib.id("HEAD");
    let root = |reference: &str| format!("resources: ['https://github.com/acme/lib//web?ref={reference}']\n");
    world.commit(&[
        ("tag/kustomization.yaml", &root("tag")),
        ("main/kustomization.yaml", &root("main")),
        ("id/kustomization.yaml", &root(&commit)),
    ]);
    work.lock();
    let verify = ["verify", "--upstream"];
    work.run_unchanged(&verify).success().stdout_has("upstream of 3 remotes: 3 ok");
    sign(&world, &lib, "mallory");
    work.run_unchanged(&verify).success().stdout_has("2 ok, 1 updated");
    // The same commit, below a tag that somebody else has signed.
    signing(&world, &lib, "mallory", &["tag", "-f", "-s", "tag", "-m", "x", "tag^{}"]);
    work.run_unchanged(&verify)
        .fails(1)
        .stdout_has("unsigned: https://github.com/acme/lib?ref=tag is ")
        .stdout_has("the tag is not signed by a key of `.github/allowed-signers`");
    // A lock that says who signed, although that was somebody else.
    signing(&world, &lib, "alice", &["tag", "-f", "-s", "tag", "-m", "x", "tag^{}"]);
    let lock = work.read(LOCK);
    let forged = lock.replacen("alice@acme.example", "bob@acme.example", 1);
    work.write(LOCK, forged);
    work.commit("forged");
    work.run_unchanged(&verify)
        .fails(1)
        .stdout_has("expected a signature by SHA256:")
        .stdout_has(" bob@acme.example, found one by SHA256:");
}
