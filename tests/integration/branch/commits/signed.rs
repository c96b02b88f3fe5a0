//! Who made the commit: identity, dates, signatures.

use std::process::Command;

use super::BRANCH;
use crate::support::{OVERLAY, Project, Running};

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
    project.overlay(&[]).success();
    let format = "--format=%an <%ae> %aI, %cn <%ce> %cI";
    assert_eq!(
        project.work.git(&["log", "-1", format, "localized/main"]),
        "Ann <ann@example.com> 2001-02-03T04:05:06+01:00, Bob <bob@example.com> \
         2002-02-03T04:05:06+02:00"
    );
}

#[test]
fn without_an_identity_nothing_is_committed() {
    let project = Project::new();
    for who in ["AUTHOR", "COMMITTER"] {
        project.sandbox.unset(&format!("GIT_{who}_NAME"));
        project.sandbox.unset(&format!("GIT_{who}_EMAIL"));
    }
    project.sandbox.configure("user.useConfigOnly", "true");
    project.work.run_unchanged(&OVERLAY).fails(2).says(expect![[r#"
        error: missing user name or email for the commit
          hint: git config user.name NAME
          hint: git config user.email MAIL
    "#]]);
    project.work.git(&["config", "user.name", "NAME"]);
    project.work.git(&["config", "user.email", "MAIL"]);
    project.overlay(&[]).success();
}

/// Makes a key for signatures and returns its file.
pub(crate) fn key(project: &Project) -> String {
    let file = project.sandbox.path("key");
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-N", "", "-C", "signer", "-f"]).arg(&file);
    Running::start(&mut command).wait().success();
    let public = std::fs::read_to_string(project.sandbox.path("key.pub")).unwrap();
    let allowed = project.sandbox.path("allowed");
    std::fs::write(&allowed, format!("committer@example.com {public}")).unwrap();
    project.sandbox.configure("gpg.format", "ssh");
    project.sandbox.configure("gpg.ssh.allowedSignersFile", allowed.to_str().unwrap());
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_commit_is_signed_as_git_would() {
    let project = Project::new();
    let work = &project.work;
    let key = key(&project);
    let made = |how: &str, signed: bool| {
        assert_eq!(work.try_git(&["verify-commit", BRANCH]).status == 0, signed, "{how}");
        work.git(&["update-ref", "-d", BRANCH]);
    };
    project.overlay(&[]).success();
    made("not configured", false);
    project.sandbox.configure("user.signingKey", &key);
    for (value, signed) in [("true", true), ("yes", true), ("1", true), ("off", false)] {
        work.git(&["config", "commit.gpgSign", value]);
        project.overlay(&[]).success();
        made(value, signed);
    }
    // For one run.
    work.lock();
    project.sandbox.offer_itself();
    let once = ["-c", "commit.gpgSign=true", "kustomize-localize", "branch", "--no-verify"];
    work.git(&once);
    made("git -c", true);
}

#[test]
fn a_key_that_cannot_sign_is_reported_and_nothing_is_committed() {
    let project = Project::new();
    key(&project);
    project.work.git(&["config", "commit.gpgSign", "true"]);
    project.work.git(&["config", "user.signingKey", "/no/such/key"]);
    let output = project.work.run_unchanged(&OVERLAY);
    output.fails(2).stderr_has("git could not write the commit").stderr_has("/no/such/key");
    project.work.git(&["config", "commit.gpgSign", "perhaps"]);
    project.work.run_unchanged(&OVERLAY).fails(2).says(expect![[r#"
        error: bad boolean value for `commit.gpgsign` in the git configuration: Booleans need to be 'no', 'off', 'false', '' or 'yes', 'on', 'true' or any number, input="perhaps"
    "#]]);
}
