//! Who made the commit: identity, dates, signatures.

use std::process::Command;

use crate::support::{Project, Running};

const IDENTITY: [&str; 4] = [
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
];

#[test]
fn identity_and_dates_are_those_of_git() {
    let project = Project::new();
    for (name, value) in [
        ("GIT_AUTHOR_NAME", "Ann"),
        ("GIT_AUTHOR_EMAIL", "ann@example.com"),
        ("GIT_AUTHOR_DATE", "2001-02-03T04:05:06+0100"),
        ("GIT_COMMITTER_NAME", "Bob"),
        ("GIT_COMMITTER_EMAIL", "bob@example.com"),
        ("GIT_COMMITTER_DATE", "2002-02-03T04:05:06+0200"),
    ] {
        project.sandbox.set(name, value);
    }
    project.overlay(&["-s"]).success();
    assert_eq!(
        project.work.git(&[
            "log",
            "-1",
            "--format=%an <%ae> %aI, %cn <%ce> %cI, %(trailers:key=Signed-off-by,separator=|)",
            "localized/main"
        ]),
        "Ann <ann@example.com> 2001-02-03T04:05:06+01:00, Bob <bob@example.com> \
         2002-02-03T04:05:06+02:00, Signed-off-by: Bob <bob@example.com>"
    );
}

#[test]
fn without_an_identity_nothing_is_committed() {
    let project = Project::new();
    for name in IDENTITY {
        project.sandbox.unset(name);
    }
    project.sandbox.configure("user.useConfigOnly", "true");
    let before = project.work.state();
    for more in [&[][..], &["-s"]] {
        project
            .overlay(more)
            .fails(2)
            .stderr_has("git knows no name and mail address for the commit")
            .stderr_has("hint: git config user.name NAME")
            .stderr_has("hint: git config user.email MAIL");
    }
    before.assert_same(&project.work.state());

    project.work.git(&["config", "user.name", "NAME"]);
    project.work.git(&["config", "user.email", "MAIL"]);
    project.overlay(&["-s"]).success();
}

/// Makes a key for signatures and returns its file.
pub(crate) fn key(project: &Project) -> String {
    let file = project.sandbox.path("key");
    let mut command = Command::new("ssh-keygen");
    command
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "signer", "-f"])
        .arg(&file);
    Running::start(&mut command).wait().success();
    let public = std::fs::read_to_string(project.sandbox.path("key.pub")).unwrap();
    let allowed = project.sandbox.path("allowed");
    std::fs::write(&allowed, format!("committer@example.com {public}")).unwrap();
    project.sandbox.configure("gpg.format", "ssh");
    project
        .sandbox
        .configure("gpg.ssh.allowedSignersFile", allowed.to_str().unwrap());
    file.to_str().unwrap().to_owned()
}

/// Returns whether git finds a good signature at the tip.
fn is_signed(project: &Project) -> bool {
    let tip = project.work.try_git(&["verify-commit", "localized/main"]);
    tip.status == 0
}

#[test]
fn a_commit_is_signed_as_git_would() {
    let project = Project::new();
    let key = key(&project);
    project.overlay(&[&format!("-S{key}")]).success();
    assert!(is_signed(&project), "-SKEY");

    let again = |more: &[&str]| {
        project
            .work
            .git(&["update-ref", "-d", "refs/heads/localized/main"]);
        project.overlay(more)
    };
    again(&[&format!("--gpg-sign={key}")]).success();
    assert!(is_signed(&project), "--gpg-sign=KEY");
    again(&[]).success();
    assert!(!is_signed(&project), "not asked for");

    project.sandbox.configure("user.signingKey", &key);
    again(&["-S"]).success();
    assert!(is_signed(&project), "-S");
    for value in ["true", "yes", "1"] {
        project.work.git(&["config", "commit.gpgSign", value]);
        again(&[]).success();
        assert!(is_signed(&project), "commit.gpgSign={value}");
    }
    again(&["--no-gpg-sign"]).success();
    assert!(!is_signed(&project), "--no-gpg-sign");
    project.work.git(&["config", "commit.gpgSign", "off"]);
    again(&[]).success();
    assert!(!is_signed(&project), "commit.gpgSign=off");
}

#[test]
fn a_key_that_cannot_sign_is_reported_and_nothing_is_committed() {
    let project = Project::new();
    key(&project);
    let before = project.work.state();
    project
        .overlay(&["-S/no/such/key"])
        .fails(2)
        .stderr_has("git could not write the commit")
        .stderr_has("/no/such/key");
    project.work.git(&["config", "commit.gpgSign", "perhaps"]);
    project
        .overlay(&[])
        .fails(2)
        .stderr_has("commit.gpgsign")
        .stderr_has("perhaps");
    project.work.git(&["config", "--unset", "commit.gpgSign"]);
    before.assert_same(&project.work.state());
}
