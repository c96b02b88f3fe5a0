//! `signed-by`: who must have signed what is locked.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::support::{Kustomize, Repo, Running, Transcript, World, config_map, rows, tool};

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
    let refused =
        ["v1", &first, "unsigned-tag", "unknown-tag", "unknown", "moved", "renamed", "refs/tags/renamed", "nested"];
    let mut transcript = Transcript::default();
    for reference in rows(refused, 2) {
        names(&world, reference);
        transcript.add(work.run(&["lock"]).fails(1));
        transcript.add(work.run_unchanged(&["vendor"]).fails(2));
        let url = format!("https://github.com/acme/lib//web?ref={reference}");
        transcript.add(work.run_unchanged(&[&url, "copy"]).fails(2));
        assert!(!work.path().join(LOCK).exists(), "{reference}");
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize lock
        nothing was written
        error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=v1: the commit is not signed
        error: 1 reference could not be locked
        $ git kustomize-localize vendor
        error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=v1: the commit is not signed
        $ git kustomize-localize https://github.com/acme/lib//web?ref=v1 copy --no-verify
        error: https://github.com/acme/lib?ref=v1: the commit is not signed
        $ git kustomize-localize lock
        nothing was written
        error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=unsigned-tag: the tag is not signed
        error: 1 reference could not be locked
        $ git kustomize-localize vendor
        error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=unsigned-tag: the tag is not signed
        $ git kustomize-localize https://github.com/acme/lib//web?ref=unsigned-tag copy --no-verify
        error: https://github.com/acme/lib?ref=unsigned-tag: the tag is not signed
        $ git kustomize-localize lock
        nothing was written
        error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=unknown: the commit is not signed by a key of `.github/allowed-signers` that is valid at its date
        error: 1 reference could not be locked
        $ git kustomize-localize vendor
        error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=unknown: the commit is not signed by a key of `.github/allowed-signers` that is valid at its date
        $ git kustomize-localize https://github.com/acme/lib//web?ref=unknown copy --no-verify
        error: https://github.com/acme/lib?ref=unknown: the commit is not signed by a key of `.github/allowed-signers` that is valid at its date
        $ git kustomize-localize lock
        nothing was written
        error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=renamed: the tag object is not named `renamed`
        error: 1 reference could not be locked
        $ git kustomize-localize vendor
        error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=renamed: the tag object is not named `renamed`
        $ git kustomize-localize https://github.com/acme/lib//web?ref=renamed copy --no-verify
        error: https://github.com/acme/lib?ref=renamed: the tag object is not named `renamed`
        $ git kustomize-localize lock
        nothing was written
        error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=nested: the tag `nested` does not point at the commit <0> directly
        error: 1 reference could not be locked
        $ git kustomize-localize vendor
        error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=nested: the tag `nested` does not point at the commit <0> directly
        $ git kustomize-localize https://github.com/acme/lib//web?ref=nested copy --no-verify
        error: https://github.com/acme/lib?ref=nested: the tag `nested` does not point at the commit <0> directly
    "#]]);
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
    work.run(&["lock"]).fails(1).says(expect![[r#"
        nothing was written
        error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=unknown: the commit is not signed by a key of `.github/allowed-signers` that is valid at its date
        error: 1 reference could not be locked
    "#]]);
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
    let mut transcript = Transcript::default();
    for text in [
        "",
        "# alice\n",
        "alice@acme.example ssh-ed25519 AAAA\n",
        &alice.replace("ssh-ed25519", "ssh-rsa"),
        &key(&world, "alice", "cert-authority "),
        &fs::read_to_string(world.sandbox.path("alice")).unwrap(),
    ] {
        work.write(SIGNERS, text);
        for command in ["lock", "check"] {
            transcript.add(work.run_unchanged(&[command]).fails(2));
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize lock
        $ git kustomize-localize check
        error: `.github/allowed-signers`: it contains no key
          hint: expected lines of git's allowed signers file (`EMAIL KEYTYPE KEY`), or a keyring: gpg --armor --export KEY
        $ git kustomize-localize lock
        $ git kustomize-localize check
        error: `.github/allowed-signers`: line 1 has no key
          hint: expected lines of git's allowed signers file (`EMAIL KEYTYPE KEY`), or a keyring: gpg --armor --export KEY
        $ git kustomize-localize lock
        $ git kustomize-localize check
        error: `.github/allowed-signers`: line 1 names a certificate authority: name keys instead
          hint: expected lines of git's allowed signers file (`EMAIL KEYTYPE KEY`), or a keyring: gpg --armor --export KEY
        $ git kustomize-localize lock
        $ git kustomize-localize check
        error: `.github/allowed-signers`: it contains a private key
          hint: expected lines of git's allowed signers file (`EMAIL KEYTYPE KEY`), or a keyring: gpg --armor --export KEY
    "#]]);
    work.remove(SIGNERS);
    work.run_unchanged(&["check"]).fails(2).says(expect![[r#"
            error: `signed-by: .github/allowed-signers` is not a file of this repository
              hint: write its path from the top into .kustomize-localize, and `git add` the file
        "#]]);
    work.symlink(SIGNERS, world.sandbox.path("alice.pub").to_str().unwrap());
    work.run_unchanged(&["check"]).fails(2).says(expect![[r#"
        error: `signed-by: .github/allowed-signers` is not a file of this repository
          hint: write its path from the top into .kustomize-localize, and `git add` the file
    "#]]);
    work.write(".kustomize-localize", "sources: [{url: github.com, signed-by: ../../etc/passwd}]\n");
    work.run_unchanged(&["check"]).fails(2).says(expect![[r#"
            error: `signed-by: ../../etc/passwd` is not a file of this repository
              hint: write its path from the top into .kustomize-localize, and `git add` the file
        "#]]);
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
    work.run_unchanged(&["check"]).fails(1).says(expect![[r#"
        error[unsigned-source]: `https://github.com/acme/lib//web?ref=main` is not signed by a key of `.github/allowed-signers`, according to the lock, so it may not be locked
         --> app/kustomization.yaml:2:3
          |
        2 | - https://github.com/acme/lib//web?ref=main
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: to verify its current version: git kustomize-localize update https://github.com/acme/lib

        warning[stale-lock]: nothing references `https://github.com/acme/lib?ref=main`
         --> kustomize-localize.lock:4:5
          |
        4 |   - url: https://github.com/acme/lib
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
          = help: drop it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

        for more: git kustomize-localize explain unsigned-source stale-lock
        checked 1 kustomization with 1 reference in the working tree: 1 error, 1 warning
    "#]]);
    work.run_unchanged(&["branch"]).fails(1).says(expect![[r#"
        error[unsigned-source]: `https://github.com/acme/lib//web?ref=main` is not signed by a key of `.github/allowed-signers`, according to the lock, so it may not be locked
         --> app/kustomization.yaml:2:3
          |
        2 | - https://github.com/acme/lib//web?ref=main
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: to verify its current version: git kustomize-localize update https://github.com/acme/lib

        warning[stale-lock]: nothing references `https://github.com/acme/lib?ref=main`
         --> kustomize-localize.lock:4:5
          |
        4 |   - url: https://github.com/acme/lib
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
          = help: drop it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

        error: <0> has 1 error (unsigned-source 1): nothing was committed
          hint: for more: git kustomize-localize explain unsigned-source
    "#]]);
    let hint = ["update", "https://github.com/acme/lib"];
    work.run_unchanged(&hint).fails(1).says(expect![[r#"
        kustomize-localize.lock not changed: 1 remote reference
        error: https://github.com/acme/lib?ref=main: the commit is not signed
          at app/kustomization.yaml:2:3: resources[0]
          at app/kustomization.yaml:2:3: resources[0]
        error: 1 reference could not be locked
    "#]]);
    let good = sign(&world, &lib, "alice");
    work.run(&hint).success().says(expect![[r#"
        wrote kustomize-localize.lock: 1 remote reference
          moved https://github.com/acme/lib?ref=main <0> -> <1>
            … days old, signed by SHA256:… alice@acme.example
            <1> alice
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
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
    work.run_unchanged(&["update"]).fails(1).says(expect![[r#"
        kustomize-localize.lock not changed: 1 remote reference
        error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=main: the commit is not signed by a key of `.github/allowed-signers` that is valid at its date
    "#]]);
    assert!(work.read(LOCK).contains(&good));
    // A change that brings its own signers.
    work.write(SIGNERS, key(&world, "mallory", ""));
    work.run(&["update"]).success();
    work.run_unchanged(&["check"]).success();
    work.commit("mine");
    work.run_unchanged(&["check", "--base", &base]).fails(1).says(expect![[r#"
        error[unsigned-source]: `https://github.com/acme/lib//web?ref=main` is signed by SHA256:… mallory@acme.example, whose key is not in `.github/allowed-signers`, so it may not be locked
         --> app/kustomization.yaml:2:3
          |
        2 | - https://github.com/acme/lib//web?ref=main
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: to verify its current version: git kustomize-localize update https://github.com/acme/lib

        warning[stale-lock]: nothing references `https://github.com/acme/lib?ref=main`
         --> kustomize-localize.lock:4:5
          |
        4 |   - url: https://github.com/acme/lib
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
          = help: drop it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

        for more: git kustomize-localize explain unsigned-source stale-lock
        new in the lock: kustomize-localize.lock:4: https://github.com/acme/lib?ref=main gitCommit:<0>
        checked 1 kustomization with 1 reference in the working tree: 1 error, 1 warning
    "#]]);
    // What only the lock holds counts as well.
    world.commit(&[("app/kustomization.yaml", "resources: []\n")]);
    work.run_unchanged(&["check", "--base", &base])
        .fails(1).says(expect![[r#"
            error[unsigned-source]: the lock contains https://github.com/acme/lib//web?ref=main, which is signed by SHA256:… mallory@acme.example, whose key is not in `.github/allowed-signers`
             --> kustomize-localize.lock
             = help: to verify its current version: git kustomize-localize update https://github.com/acme/lib

            warning[stale-lock]: nothing references `https://github.com/acme/lib?ref=main`
             --> kustomize-localize.lock:4:5
              |
            4 |   - url: https://github.com/acme/lib
              |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
              = help: drop it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

            for more: git kustomize-localize explain unsigned-source stale-lock
            new in the lock: kustomize-localize.lock:4: https://github.com/acme/lib?ref=main gitCommit:<0>
            checked 1 kustomization with 0 references in the working tree: 1 error, 1 warning
        "#]]);
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
    work.run_unchanged(&["check", "--rev", "HEAD", "--base", &base])
        .fails(1).says(expect![[r#"
            error[unsigned-source]: the change locks https://github.com/acme/lib?ref=main at <0>, and nothing has verified that SHA256:… alice@acme.example signed it
             --> kustomize-localize.lock:4:5
              |
            4 |   - url: https://github.com/acme/lib
              |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
              = help: verify it: git kustomize-localize check --build --base <1> --rev HEAD

            warning[stale-lock]: `https://github.com/acme/lib?ref=main` is at <0> now, but what it names was read at <2>
             --> kustomize-localize.lock:4:5
              |
            4 |   - url: https://github.com/acme/lib
              |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
              = help: read it again: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

            for more: git kustomize-localize explain unsigned-source stale-lock
            new in the lock: kustomize-localize.lock:4: https://github.com/acme/lib?ref=main gitCommit:<0>
            checked 1 kustomization with 1 reference in commit <3> (HEAD): 1 error, 1 warning
        "#]]);
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
        work.run_unchanged(&["diff", &base])
            .success()
            .says(expect![[r#"
                app: https://github.com/acme/lib?ref=main: <0> -> <1>, 1 commit
                  not built (new side): app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=main: the commit is not signed
                hint: restore its entry in the lock, or lock its current version: git kustomize-localize update https://github.com/acme/lib
                1 affected build could not be compared since <2>; unknown: 1 root
            "#]]);
        let build = ["check", "--rev", "HEAD", "--base", &base, "--build"];
        work.run_unchanged(&build).fails(1).says(expect![[r#"
            error[unsigned-source]: https://github.com/acme/lib?ref=main: the commit is not signed
             --> kustomize-localize.lock:4:5
              |
            4 |   - url: https://github.com/acme/lib
              |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
              = help: restore its entry in the lock, or lock its current version: git kustomize-localize update https://github.com/acme/lib

            warning[stale-lock]: `https://github.com/acme/lib?ref=main` is at <0> now, but what it names was read at <1>
             --> kustomize-localize.lock:4:5
              |
            4 |   - url: https://github.com/acme/lib
              |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
              = help: read it again: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

            for more: git kustomize-localize explain unsigned-source stale-lock
            new in the lock: kustomize-localize.lock:4: https://github.com/acme/lib?ref=main gitCommit:<0>
            checked 1 kustomization with 1 reference in commit <2> (HEAD), and built nothing: 1 error, 1 warning
        "#]]);
    }
    // A lock that names somebody else who may sign.
    work.write(SIGNERS, key(&world, "alice", "") + &key(&world, "mallory", ""));
    let other = sign(&world, &lib, "mallory");
    work.write(LOCK, edited.replace(&evil, &other));
    work.commit("other");
    work.run_unchanged(&["branch"])
        .fails(2).says(expect![[r#"
            error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=main: expected a signature by SHA256:… alice@acme.example, found one by SHA256:… mallory@acme.example
              hint: restore its entry in the lock, or lock its current version: git kustomize-localize update https://github.com/acme/lib
        "#]]);
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
    work.run_unchanged(&["branch"]).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=light: the commit is not signed
          hint: restore its entry in the lock, or lock its current version: git kustomize-localize update https://github.com/acme/lib
    "#]]);
    work.git(&["reset", "--quiet", "--hard", &base]);
    signing(&world, &lib, "alice", &["commit", "-q", "--allow-empty", "-m", "moved"]);
    signing(&world, &lib, "alice", &["tag", "-f", "-s", "tag", "-m", "x"]);
    forget(&world);
    work.run_unchanged(&["branch"]).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=tag: the tag `tag` does not point at the commit <0> directly
          hint: restore its entry in the lock, or lock its current version: git kustomize-localize update https://github.com/acme/lib
    "#]]);
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
    work.run(&["lock"]).fails(1).says(expect![[r#"
        nothing was written
        error: https://github.com/acme/lib?ref=main: web/kustomization.yaml:1:13: resources[0]: https://github.com/acme/deep?ref=v1: the commit is not signed
          reached from app/kustomization.yaml:2:3
        error: 1 reference could not be locked
    "#]]);
    sign(&world, &deep, "alice");
    deep.git(&["tag", "-f", "v1"]);
    work.run(&["lock"]).success();
    let lock = work.read(LOCK);
    assert_eq!(lock.matches("signed: ").count(), 2);
    let (before, after) = lock.split_once("    signed: ").unwrap();
    work.write(LOCK, format!("{before}{}", after.split_once('\n').unwrap().1));
    work.run_unchanged(&["check"])
        .fails(1).says(expect![[r#"
            error[unsigned-source]: `https://github.com/acme/lib//web?ref=main` is locked, but https://github.com/acme/deep?ref=v1 behind it is not signed by a key of `.github/allowed-signers`, according to the lock: https://github.com/acme/lib//web?ref=main > https://github.com/acme/deep?ref=v1
             --> app/kustomization.yaml:2:3
              |
            2 | - https://github.com/acme/lib//web?ref=main
              |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
              = help: to verify its current version: git kustomize-localize update https://github.com/acme/deep

            for more: git kustomize-localize explain unsigned-source
            not tracked by git: 1 file that `branch` does not see: kustomize-localize.lock
            hint: git add -- :/kustomize-localize.lock && git commit
            checked 1 kustomization with 1 reference in the working tree: 1 error
        "#]]);
    let url = "https://files.example.com/v1/app.yaml";
    world.file(url, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    world.commit(&[("app/kustomization.yaml", &format!("resources: ['{url}']\n"))]);
    work.decide("sources: [{url: '*', signed-by: .github/allowed-signers}]\n");
    work.run(&["lock"]).fails(1).says(expect![[r#"
        wrote kustomize-localize.lock: 0 remote references
          dropped https://github.com/acme/deep?ref=v1 <0>
          dropped https://github.com/acme/lib?ref=main <1>
          to stage it: git add -f -- :/kustomize-localize.lock
        error: app/kustomization.yaml:1:13: resources[0]: https://files.example.com/v1/app.yaml has no signature, which `sources` requires: it is not a repository
          hint: if it may be used, add it to `sources` in .kustomize-localize: - {url: files.example.com/v1/app.yaml}, before the entry that it cannot satisfy
        error: 1 reference could not be locked
    "#]]);
    work.decide("");
    work.run(&["lock"]).success();
    work.decide("sources: [{url: '*', signed-by: .github/allowed-signers}]\n");
    work.run_unchanged(&["check"])
        .fails(1).says(expect![[r#"
            error[unsigned-source]: `https://files.example.com/v1/app.yaml` is not signed by a key of `.github/allowed-signers`, according to the lock, so it may not be locked
             --> app/kustomization.yaml:1:13
              |
            1 | resources: ['https://files.example.com/v1/app.yaml']
              |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
              = help: if it may be used, add it to `sources` in .kustomize-localize: - {url: files.example.com/v1/app.yaml}, before the entry that it cannot satisfy

            warning[stale-lock]: nothing references `https://files.example.com/v1/app.yaml`
             --> kustomize-localize.lock:4:5
              |
            4 |   - url: https://files.example.com/v1/app.yaml
              |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
              = help: drop it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

            for more: git kustomize-localize explain unsigned-source stale-lock
            checked 1 kustomization with 1 reference in the working tree: 1 error, 1 warning
        "#]]);
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
    work.run_unchanged(&["check"]).fails(2).says(expect![[r#"
        error: `.github/allowed-signers`: it contains a private key
          hint: expected lines of git's allowed signers file (`EMAIL KEYTYPE KEY`), or a keyring: gpg --armor --export KEY
    "#]]);
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
    work.run_unchanged(&verify).success().says(expect![[r#"
        kustomize-localize.lock:4: ok: https://github.com/acme/lib?ref=<0> is <0>
        kustomize-localize.lock:11: ok: https://github.com/acme/lib?ref=main is <0>
        kustomize-localize.lock:18: ok: https://github.com/acme/lib?ref=tag is <1>
        upstream of 3 remotes: 3 ok
        verified HEAD (<2>): as locked
    "#]]);
    sign(&world, &lib, "mallory");
    work.run_unchanged(&verify).success().says(expect![[r#"
        kustomize-localize.lock:4: ok: https://github.com/acme/lib?ref=<0> is <0>
        kustomize-localize.lock:11: updated: https://github.com/acme/lib?ref=main was <0>, is <1>: the branch `main` moved forward by 1 commit
            <1> mallory
        kustomize-localize.lock:18: ok: https://github.com/acme/lib?ref=tag is <2>
        upstream of 3 remotes: 2 ok, 1 updated
          to update the lock: git kustomize-localize update
        verified HEAD (<3>): as locked
    "#]]);
    // The same commit, below a tag that somebody else has signed.
    signing(&world, &lib, "mallory", &["tag", "-f", "-s", "tag", "-m", "x", "tag^{}"]);
    work.run_unchanged(&verify)
        .fails(1).says(expect![[r#"
            kustomize-localize.lock:4: ok: https://github.com/acme/lib?ref=<0> is <0>
            kustomize-localize.lock:11: updated: https://github.com/acme/lib?ref=main was <0>, is <1>: the branch `main` moved forward by 1 commit
                <1> mallory
            kustomize-localize.lock:18: unsigned: https://github.com/acme/lib?ref=tag is <2>: the tag is not signed by a key of `.github/allowed-signers` that is valid at its date
            upstream of 3 remotes: 1 ok, 1 updated, 1 unsigned
              to update the lock: git kustomize-localize update
            NOT verified HEAD (<3>): 1 difference
        "#]]);
    // A lock that says who signed, although that was somebody else.
    signing(&world, &lib, "alice", &["tag", "-f", "-s", "tag", "-m", "x", "tag^{}"]);
    let lock = work.read(LOCK);
    let forged = lock.replacen("alice@acme.example", "bob@acme.example", 1);
    work.write(LOCK, forged);
    work.commit("forged");
    work.run_unchanged(&verify)
        .fails(1).says(expect![[r#"
            kustomize-localize.lock:4: unsigned: https://github.com/acme/lib?ref=<0> is <0>: expected a signature by SHA256:… bob@acme.example, found one by SHA256:… alice@acme.example
            kustomize-localize.lock:11: updated: https://github.com/acme/lib?ref=main was <0>, is <1>: the branch `main` moved forward by 1 commit
                <1> mallory
            kustomize-localize.lock:18: ok: https://github.com/acme/lib?ref=tag is <2>
            upstream of 3 remotes: 1 ok, 1 updated, 1 unsigned
              to update the lock: git kustomize-localize update
            NOT verified HEAD (<3>): 1 difference
        "#]]);
}

#[test]
fn a_signature_that_nobody_can_read_is_unknown() {
    let (world, lib) = world();
    let work = &world.work;
    sign(&world, &lib, "alice");
    names(&world, "main");
    work.lock();
    sign(&world, &lib, "alice");
    // Neither ssh-keygen nor gpg is on `PATH`.
    let programs = world.sandbox.path("programs");
    fs::create_dir(&programs).unwrap();
    for name in ["git", "sh"] {
        symlink(tool(name).unwrap(), programs.join(name)).unwrap();
    }
    world.sandbox.set("PATH", &programs);
    work.run_unchanged(&["verify", "--upstream"]).fails(2).says(expect![[r#"
        kustomize-localize.lock:4: unreachable: https://github.com/acme/lib?ref=main was <0>
        upstream of 1 remote: 1 unreachable
        NOT verified HEAD (<1>): not everything could be checked
        error: kustomize-localize.lock:4: the signature of the commit cannot be verified: cannot run ssh-keygen: No such file or directory
          hint: install OpenSSH and GnuPG
    "#]]);
    work.run_unchanged(&["update", "--dry-run"]).fails(1).says(expect![[r#"
        kustomize-localize.lock not changed: 1 remote reference
        error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=main: the signature of the commit cannot be verified: cannot run ssh-keygen: No such file or directory
          hint: install OpenSSH and GnuPG
        error: 1 reference could not be locked
    "#]]);
}

#[test]
fn a_change_may_not_lock_the_name_of_another_signer() {
    let (world, lib) = world();
    let work = &world.work;
    let Some(_) = world.sandbox.builds() else { return };
    let base = work.id("HEAD");
    sign(&world, &lib, "alice");
    names(&world, "main");
    work.lock();
    work.write(LOCK, work.read(LOCK).replace("alice@acme.example", "bob@acme.example"));
    work.commit("named");
    let build = ["check", "--rev", "HEAD", "--base", &base, "--build"];
    work.run_unchanged(&build).fails(1).says(expect![[r#"
        error[unsigned-source]: https://github.com/acme/lib?ref=main: expected a signature by SHA256:… bob@acme.example, found one by SHA256:… alice@acme.example
         --> kustomize-localize.lock:4:5
          |
        4 |   - url: https://github.com/acme/lib
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
          = help: restore its entry in the lock, or lock its current version: git kustomize-localize update https://github.com/acme/lib

        for more: git kustomize-localize explain unsigned-source
        new in the lock: kustomize-localize.lock:4: https://github.com/acme/lib?ref=main gitCommit:<0>
        checked 1 kustomization with 1 reference in commit <1> (HEAD), 1 build (kustomize/…, network closed): 1 error
    "#]]);
}

#[test]
fn an_entry_about_one_directory_is_enforced() {
    let (world, lib) = world();
    let work = &world.work;
    work.decide(&POLICY.replace("github.com/acme", "github.com/acme/lib/web"));
    let good = sign(&world, &lib, "alice");
    let base = work.id("HEAD");
    names(&world, "main");
    work.lock();
    lib.write("web/kustomization.yaml", "namePrefix: evil-\n");
    let evil = lib.commit("unsigned");
    work.write(LOCK, work.read(LOCK).replace(&good, &evil).replace(&good[..12], &evil[..12]));
    work.commit("edited");
    work.run_unchanged(&["check", "--rev", "HEAD", "--base", &base]).fails(1).says(expect![[r#"
        error[unsigned-source]: the change locks https://github.com/acme/lib?ref=main at <0>, and nothing has verified that SHA256:… alice@acme.example signed it
         --> kustomize-localize.lock:4:5
          |
        4 |   - url: https://github.com/acme/lib
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
          = help: verify it: git kustomize-localize check --build --base <1> --rev HEAD

        for more: git kustomize-localize explain unsigned-source
        new in the lock: kustomize-localize.lock:4: https://github.com/acme/lib?ref=main gitCommit:<0>
        checked 1 kustomization with 1 reference in commit <2> (HEAD): 1 error
    "#]]);
    work.run_unchanged(&["verify", "--upstream"]).fails(1).says(expect![[r#"
        kustomize-localize.lock:4: unsigned: https://github.com/acme/lib?ref=main is <0>: the commit is not signed
        upstream of 1 remote: 1 unsigned
        NOT verified HEAD (<1>): 1 difference
    "#]]);
    // The claim is older than the directory that needs it.
    let other = work.read(LOCK).replace("      web: {}", "      other: {}");
    work.write(LOCK, &other);
    work.commit("other");
    let base = work.id("HEAD");
    work.write(LOCK, other.replace("      other: {}", "      other: {}\n      web: {}"));
    work.commit("web");
    work.run_unchanged(&["check", "--rev", "HEAD", "--base", &base]).fails(1).says(expect![[r#"
        error[unsigned-source]: the change locks https://github.com/acme/lib?ref=main at <0>, and nothing has verified that SHA256:… alice@acme.example signed it
         --> kustomize-localize.lock:4:5
          |
        4 |   - url: https://github.com/acme/lib
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
          = help: verify it: git kustomize-localize check --build --base <1> --rev HEAD

        for more: git kustomize-localize explain unsigned-source
        new in the lock: kustomize-localize.lock:4: https://github.com/acme/lib//web?ref=main gitCommit:<0>
        checked 1 kustomization with 1 reference in commit <2> (HEAD): 1 error, 2 findings already in <1>
    "#]]);
}

#[test]
fn many_moves_are_one_table() {
    let (world, _) = world();
    let Some(_) = world.sandbox.builds() else { return };
    let (work, file) = (&world.work, "https://files.example.com/app.yaml");
    work.decide(&POLICY.replace("]", ", {url: '*'}]"));
    world.file(file, config_map("file"));
    work.write("file/kustomization.yaml", format!("resources: ['{file}']\n"));
    let names = ["a", "bases", "c", "d", "e"];
    let upstreams = names.map(|name| {
        let files = [("kustomization.yaml", "resources: [map.yaml]\n"), ("map.yaml", &*config_map(name))];
        let upstream = world.upstream_of(&format!("acme/{name}"), &files);
        sign(&world, &upstream, "alice");
        let root = format!("resources: ['https://github.com/acme/{name}?ref=main']\n");
        work.write(&format!("{name}/kustomization.yaml"), root);
        upstream
    });
    work.run(&["lock"]).success();
    work.commit("Lock");
    world.file(file, format!("{}\n", config_map("file")));
    upstreams[0].write("map.yaml", config_map("other"));
    for upstream in &upstreams {
        upstream.git(&["add", "--all"]);
        sign(&world, upstream, "alice");
    }
    work.run_unchanged(&["update", "--dry-run", "--diff"]).success().says(expect![[r#"
        would write kustomize-localize.lock: 6 remote references
          moved  https://files.example.com/app.yaml      <0> -> <1>  0 objects change
          moved  https://github.com/acme/a?ref=main      <2> -> <3>  2 objects change  … days old  signed by SHA256:… alice@acme.example
          moved  https://github.com/acme/bases?ref=main  <4> -> <5>  0 objects change  … days old  signed by SHA256:… alice@acme.example
          moved  https://github.com/acme/c?ref=main      <6> -> <7>  0 objects change  … days old  signed by SHA256:… alice@acme.example
          moved  https://github.com/acme/d?ref=main      <8> -> <9>  0 objects change  … days old  signed by SHA256:… alice@acme.example
          moved  https://github.com/acme/e?ref=main      <10> -> <11>  0 objects change  … days old  signed by SHA256:… alice@acme.example
          file kustomize-localize.lock (…)
        a: https://github.com/acme/a?ref=main: <2> -> <3>, 1 commit
        --- v1 ConfigMap a
        +++ /dev/null
        @@ -1,4 +0,0 @@
        -apiVersion: v1
        -kind: ConfigMap
        -metadata:
        -  name: a
        --- /dev/null
        +++ v1 ConfigMap other
        @@ -0,0 +1,4 @@
        +apiVersion: v1
        +kind: ConfigMap
        +metadata:
        +  name: other
        2 objects (1 added, 1 removed) in 1 of 6 affected builds
    "#]]);
    work.run_unchanged(&["update", "--dry-run", "-v"]).success().says(expect![[r#"
        would write kustomize-localize.lock: 6 remote references
          moved https://files.example.com/app.yaml <0> -> <1>
          moved https://github.com/acme/a?ref=main <2> -> <3>
            … days old, signed by SHA256:… alice@acme.example
            <3> alice
          moved https://github.com/acme/bases?ref=main <4> -> <5>
            … days old, signed by SHA256:… alice@acme.example
            <5> alice
          moved https://github.com/acme/c?ref=main <6> -> <7>
            … days old, signed by SHA256:… alice@acme.example
            <7> alice
          moved https://github.com/acme/d?ref=main <8> -> <9>
            … days old, signed by SHA256:… alice@acme.example
            <9> alice
          moved https://github.com/acme/e?ref=main <10> -> <11>
            … days old, signed by SHA256:… alice@acme.example
            <11> alice
          file kustomize-localize.lock (…)
        fetched from files.example.com: 1 request, … B
        fetched from github.com: 20 requests, … B
    "#]]);
    let json = work.run_unchanged(&["update", "--dry-run", "--format=json"]);
    let json: serde_json::Value = serde_json::from_str(&json.success().stdout).unwrap();
    let news = &json["news"]["https://github.com/acme/bases?ref=main"];
    assert!(news["date"].is_string() && news["signed"].as_str().unwrap().ends_with(" alice@acme.example"), "{json}");
    work.run(&["update"]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 6 remote references
          moved  https://files.example.com/app.yaml      <0> -> <1>
          moved  https://github.com/acme/a?ref=main      <2> -> <3>  … days old  signed by SHA256:… alice@acme.example
          moved  https://github.com/acme/bases?ref=main  <4> -> <5>  … days old  signed by SHA256:… alice@acme.example
          moved  https://github.com/acme/c?ref=main      <6> -> <7>  … days old  signed by SHA256:… alice@acme.example
          moved  https://github.com/acme/d?ref=main      <8> -> <9>  … days old  signed by SHA256:… alice@acme.example
          moved  https://github.com/acme/e?ref=main      <10> -> <11>  … days old  signed by SHA256:… alice@acme.example
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
}
