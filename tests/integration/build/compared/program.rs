//! Which program builds, and what becomes of one that cannot.

use std::fs;

use super::{project, recorded, stand_in};
use crate::support::{Kustomize, Project, Transcript};

#[test]
fn a_program_that_is_named_must_be_one_that_builds() {
    let project = Project::new();
    let sandbox = &project.sandbox;
    sandbox.script("other", "echo git version 2.47");
    sandbox.script("broken", "echo it is broken >&2; exit 1");
    fs::write(sandbox.path("bin/text"), "no program").unwrap();
    let before = project.work.state();
    for name in ["other", "broken", "text", "nowhere"] {
        let program = sandbox.path(&format!("bin/{name}")).display().to_string();
        project.overlay(&["--kustomize", &program]).fails(2);
        sandbox.set("KUSTOMIZE", &program);
        project.overlay(&[]).fails(2);
        sandbox.unset("KUSTOMIZE");
    }
    before.assert_same(&project.work.state());
}

#[test]
fn a_named_program_takes_precedence_over_path() {
    let Some(project) = project() else { return };
    // None of these can build anything.
    let sandbox = &project.sandbox;
    sandbox.script("kustomize", "exit 7");
    sandbox.set("KUSTOMIZE", "");
    project.overlay(&["--no-commit", "one"]).success().says(expect![[r#"
        localized example/overlay into one: 7 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/remote.git?ref=v1 <0>
          not verified: `/home/me/bin/kustomize` did not print its version as kustomize does
    "#]]);
    sandbox.set("KUSTOMIZE", "/dev/null");
    let kustomize = Kustomize::find().unwrap();
    let named = kustomize.program().display().to_string();
    project.overlay(&["--kustomize", &named]).success().says(expect![[r#"
        localized example/overlay into localized-overlay on branch localized/main (<0>): 7 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/remote.git?ref=v1 <1>
          verified: builds are identical: 117 bytes (kustomize/…, network closed)
          to look at it: git show --stat <0>
    "#]]);
    // A relative name is one from here, as for any file.
    fs::copy(kustomize.program(), project.work.path().join("builder")).unwrap();
    project.overlay(&["--no-commit", "two", "--kustomize", "builder"]).success().says(expect![[r#"
        localized example/overlay into two: 7 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/remote.git?ref=v1 <0>
          verified: builds are identical: 117 bytes (kustomize/…, network closed)
    "#]]);
}

#[test]
fn programs_in_the_current_directory_are_not_used() {
    let project = Project::new();
    let sandbox = &project.sandbox;
    sandbox.script("kustomize", "touch \"$HOME/ran\"; exit 1");
    fs::rename(sandbox.path("bin/kustomize"), project.work.path().join("kustomize")).unwrap();
    let git = sandbox.path("bin/git");
    let path = std::env::var_os("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|directory| directory.join("git")).find(|file| file.is_file());
    std::os::unix::fs::symlink(real.unwrap(), git).unwrap();
    for path in [".", ""] {
        let path = format!("{path}:{}", sandbox.path("bin").display());
        sandbox.set("PATH", path);
        project.overlay(&["--no-commit", "copy", "--overwrite"]).success();
    }
    assert!(!sandbox.path("home/ran").exists());
}

#[test]
fn kubectl_builds_where_there_is_no_kustomize() {
    let Some(project) = project() else { return };
    let sandbox = &project.sandbox;
    sandbox.unset("KUSTOMIZE");
    let kustomize = Kustomize::find().unwrap();
    let real = kustomize.program().display();
    let version = "echo '{\"clientVersion\": {\"gitVersion\": \"v1.34.1\"}}'";
    let script = format!("case $1 in version) {version};; *) shift; exec {real} build \"$@\";; esac");
    sandbox.script("kubectl", &script);
    project.overlay(&[]).success().says(expect![[r#"
        localized example/overlay into localized-overlay on branch localized/main (<0>): 7 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/remote.git?ref=v1 <1>
          verified: builds are identical: 117 bytes (kubectl/v1.34.1, network closed)
          to look at it: git show --stat <0>
    "#]]);
    assert_eq!(recorded(&project.work), "identical 1/1 kubectl/v1.34.1");
}

#[test]
fn arguments_reach_both_builds() {
    let Some(project) = project() else { return };
    let log = project.sandbox.path("log");
    let note = format!("[ $1 = version ] || echo \"$@\" >>'{}'", log.display());
    stand_in(&project.sandbox, &format!("{note}; exec REAL \"$@\""));
    project.work.decide("load-restrictor: none\n");
    project
        .overlay(&["--build-arg=--enable-helm", "--build-arg", "--helm-command=nothing"])
        .success().says(expect![[r#"
            localized example/overlay into localized-overlay on branch localized/main (<0>): 7 files written, 1 reference rewritten, 0 removed
              added https://example.com/acme/remote.git?ref=v1 <1>
              verified: builds are identical: 117 bytes (kustomize/…, network closed)
              to look at it: git show --stat <0>
        "#]]);
    let log = fs::read_to_string(log).unwrap();
    let arguments = "build --enable-helm --helm-command=nothing --load-restrictor=LoadRestrictionsNone -- /";
    assert_eq!(log.lines().count(), 2, "{log}");
    for line in log.lines() {
        assert!(line.starts_with(arguments), "{log}");
    }
}

#[test]
fn a_kustomize_that_is_too_old_for_helm_4_is_named_as_such() {
    let Some(project) = project() else { return };
    let refused = "Error: unknown shorthand flag: 'c' in -c";
    project.sandbox.script("helm", &format!("[ \"$2\" != -c ] || {{ echo \"{refused}\" >&2; exit 1; }}; echo v4.2.1"));
    for (version, asks, is_too_old) in [("v5.8.0", "-c --short", true), ("v5.8.1", "--short", false)] {
        // As kustomize runs it for a chart.
        let helm = format!(
            "out=$(helm version {asks} 2>&1) || {{ echo \"Error: unable to run: 'helm version {asks}': $out\" >&2; exit 1; }}"
        );
        stand_in(
            &project.sandbox,
            &format!("[ $1 != version ] || {{ echo {version}; exit; }}; {helm}; exec REAL \"$@\""),
        );
        let output = project.overlay(&[&format!("--branch=with-{version}")]);
        let said = output.success().stdout.contains("kustomize before 5.8.1, alone or in kubectl, cannot run Helm 4");
        assert_eq!(said, is_too_old, "{output:?}");
    }
}

#[test]
fn arguments_that_leave_nothing_to_compare_are_refused() {
    let Some(project) = project() else { return };
    for argument in ["-o", "-oout", "--output=out", "--output", "--help", "-h", "--"] {
        project.overlay(&[&format!("--build-arg={argument}")]).fails(2);
    }
    // What kustomize does not know is the original's to say.
    project.overlay(&["--build-arg=--nonsense"]).success().says(expect![[r#"
        localized example/overlay into localized-overlay on branch localized/main (<0>): 7 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/remote.git?ref=v1 <1>
          not verified: 1 root not built (kustomize/…, network closed)
          not built: example/overlay: unknown flag: --nonsense
          to look at it: git show --stat <0>
    "#]]);
}

#[test]
fn options_of_a_verification_that_is_not_wanted() {
    let project = Project::new();
    let mut transcript = Transcript::default();
    for more in [&["--kustomize=k"] as &[&str], &["--build-arg=x"]] {
        let args = [&["--no-verify"], more].concat();
        transcript.add(project.overlay(&args).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize example/overlay --scope example --no-verify --kustomize=k
        error: the argument '--no-verify' cannot be used with '--kustomize <FILE>'

        Usage: git kustomize-localize [OPTIONS] <TARGET> [NEW_DIR]
               git kustomize-localize <COMMAND>

        For more information, try '-h'.
        $ git kustomize-localize example/overlay --scope example --no-verify --build-arg=x
        error: the argument '--no-verify' cannot be used with '--build-arg <ARG>'

        Usage: git kustomize-localize [OPTIONS] <TARGET> [NEW_DIR]
               git kustomize-localize <COMMAND>

        For more information, try '-h'.
    "#]]);
}

#[test]
fn only_the_version_that_the_configuration_names_builds() {
    let Some(project) = project() else { return };
    let kustomize = Kustomize::find().unwrap();
    let real = kustomize.program().display().to_string();
    let sandbox = &project.sandbox;
    for (name, says) in [("v5.8", "echo v5.8.1"), ("v5.80", "echo v5.80.0"), ("none", "echo '(devel)'")] {
        sandbox.script(name, &format!("[ \"$1\" = version ] && {{ {says}; exit; }}\nexec {real} \"$@\""));
    }
    let program = |name: &str| sandbox.path(&format!("bin/{name}")).display().to_string();
    project.work.decide("kustomize: '5.8'\n");
    project.work.lock();
    let before = project.work.state();
    let mut transcript = Transcript::default();
    for (name, version) in [("v5.80", "v5.80.0"), ("none", "of an unknown version")] {
        let said = format!("is kustomize {version}, but `.kustomize-localize` requires 5.8");
        let args = ["--kustomize", &program(name)];
        project.overlay(&args).fails(2).stderr_has(&said).stderr_has("install kustomize 5.8, and name it: --kustomize");
        for command in [&["build", "example/overlay"][..], &["check", "--build"]] {
            transcript.add(project.work.run(&[command, &args].concat()).fails(2));
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize build example/overlay --kustomize /home/me/bin/v5.80
        error: `/home/me/bin/v5.80` is kustomize v5.80.0, but `.kustomize-localize` requires 5.8
          hint: install kustomize 5.8, and name it: --kustomize FILE, or the variable KUSTOMIZE
        $ git kustomize-localize check --build --kustomize /home/me/bin/v5.80
        checked 3 kustomizations with 4 references in the working tree, and built nothing: 1 could not be checked
        error: `/home/me/bin/v5.80` is kustomize v5.80.0, but `.kustomize-localize` requires 5.8
          hint: install kustomize 5.8, and name it: --kustomize FILE, or the variable KUSTOMIZE
        $ git kustomize-localize build example/overlay --kustomize /home/me/bin/none
        error: `/home/me/bin/none` is kustomize of an unknown version, but `.kustomize-localize` requires 5.8
          hint: install kustomize 5.8, and name it: --kustomize FILE, or the variable KUSTOMIZE
        $ git kustomize-localize check --build --kustomize /home/me/bin/none
        checked 3 kustomizations with 4 references in the working tree, and built nothing: 1 could not be checked
        error: `/home/me/bin/none` is kustomize of an unknown version, but `.kustomize-localize` requires 5.8
          hint: install kustomize 5.8, and name it: --kustomize FILE, or the variable KUSTOMIZE
    "#]]);
    before.assert_same(&project.work.state());
    project.overlay(&["--kustomize", &program("v5.8")]).success().stdout_has("kustomize/v5.8.1");
    // What is not built needs no program.
    project.overlay(&["--no-commit", "copy", "--no-verify"]).success();
    // A change decides nothing of this for itself.
    project.work.commit("lock");
    project.work.write(".kustomize-localize", "build-timeout: 1h\n");
    project.work.write("example/overlay/new.yaml", "");
    project.work.commit("change");
    let args = ["check", "--build", "--base", "HEAD~1", "--kustomize", &program("none")];
    project.work.run_unchanged(&args).fails(2).says(expect![[r#"
        new in the configuration: -kustomize: '5.8'
        new in the configuration: +build-timeout: 1h
        checked 6 kustomizations with 8 references in the working tree, and built nothing: 1 could not be checked
        error: `/home/me/bin/none` is kustomize of an unknown version, but `.kustomize-localize` requires 5.8
          hint: install kustomize 5.8, and name it: --kustomize FILE, or the variable KUSTOMIZE
    "#]]);
}
