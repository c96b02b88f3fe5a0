//! What stays remote, also inside what was brought in: recorded, reported by `check` and `verify`, or accepted.

use crate::support::Transcript;
use std::fs;

use super::{BASE, CHART, LABEL, REGISTRY, REPO, Stage};

const LEAVE_CHART: &str = "- {chart: 'https://charts.example/stable#nginx@1.2.3', reason: our mirror holds it}";
const IN_PLACE: [&str; 2] = ["branch", "--no-verify"];

fn allow(stage: &Stage, entry: &str) {
    stage.work.write(".kustomize-localize", format!("allow:\n{entry}\n"));
    stage.work.commit("allow");
    stage.work.lock();
}

fn gates(stage: &Stage, status: i32) -> [String; 2] {
    [&["check", "--rev", "localized/main"][..], &["verify", "localized/main"]].map(|args| {
        let output = stage.work.run(args);
        let output = match status {
            0 => output.success(),
            status => output.fails(status),
        };
        output.stdout.clone()
    })
}

fn lock_on_branch(stage: &Stage) -> String {
    let name = "localized/main:kustomize-localize.lock";
    stage.work.git(&["show", name])
}

#[test]
fn both_gates_report_a_chart_of_an_upstream_until_it_is_accepted() {
    let stage = Stage::of_upstream(&[("kustomization.yaml", CHART)]);
    let work = &stage.work;
    work.run(&IN_PLACE).fails(1).says(expect![[r#"
        error[remote-chart]: `https://example.com/acme/base.git?ref=v1` is locked, but the chart https://charts.example/stable#nginx@1.2.3 behind it stays remote: https://example.com/acme/base.git?ref=v1 > https://charts.example/stable#nginx@1.2.3
         --> app/kustomization.yaml:2:3
          |
        2 | - https://example.com/acme/base.git?ref=v1
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: write `helm: true` into .kustomize-localize, and lock it: git kustomize-localize lock && git add -f -- :/.kustomize-localize :/kustomize-localize.lock

        error: <0> has 1 error (remote-chart 1): nothing was committed
          hint: for more: git kustomize-localize explain remote-chart
    "#]]);

    allow(&stage, LEAVE_CHART);
    let output = work.run(&IN_PLACE);
    let accepted = format!("stays remote (allowed): {LABEL}");
    output.success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 4 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/base.git?ref=v1 <1>
          not verified: --no-verify
          stays remote (allowed): https://charts.example/stable#nginx@1.2.3
          to look at it: git show --stat <0>
    "#]]);
    let [_, verify] = gates(&stage, 0);
    let accepted = format!("{accepted}: our mirror holds it");
    assert!(verify.contains(&accepted), "{verify}");
    work.run(&["verify", "localized/main", "--rebuild"]).success();

    // Whether helm could bring it in or not decides nothing.
    allow(&stage, &format!("{LEAVE_CHART}\nhelm: true"));
    work.run_as_is(&IN_PLACE).success();
    assert!(lock_on_branch(&stage).contains("left:\n"));
    assert_eq!(stage.pulls(), crate::support::NONE);
    gates(&stage, 0);
}

#[test]
fn on_main_a_locked_reference_behind_which_a_chart_is_left_is_not_fulfilled() {
    let stage = Stage::of_upstream(&[
        ("kustomization.yaml", "resources: [inner]\n"),
        ("inner/kustomization.yaml", "resources: ['https://example.com/acme/lib.git?ref=v1']\n"),
    ]);
    let work = &stage.work;
    stage.upstream("lib", &[("kustomization.yaml", CHART)]);
    work.run(&["lock"]).success();
    work.commit("locked");
    work.run(&["check"]).fails(1).says(expect![[r#"
        error[remote-chart]: `https://example.com/acme/base.git?ref=v1` is locked, but the chart https://charts.example/stable#nginx@1.2.3 behind it stays remote: https://example.com/acme/base.git?ref=v1 > https://example.com/acme/lib.git?ref=v1 > https://charts.example/stable#nginx@1.2.3
         --> app/kustomization.yaml:2:3
          |
        2 | - https://example.com/acme/base.git?ref=v1
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: write `helm: true` into .kustomize-localize, and lock it: git kustomize-localize lock && git add -f -- :/.kustomize-localize :/kustomize-localize.lock

        for more: git kustomize-localize explain remote-chart
        checked 1 kustomization with 1 reference in the working tree: 1 error
    "#]]);
    // Nothing is fetched to report the same again.
    let lock = stage.lock();
    std::fs::remove_dir_all(stage.sandbox.path("cache")).unwrap();
    work.run(&["lock", "--offline"]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 2 remote references
          1 reference not followed: see `git kustomize-localize check`
    "#]]);
    assert_eq!(stage.lock(), lock);

    allow(&stage, LEAVE_CHART);
    work.run(&["check"]).success();
    work.run(&["lock", "--offline"]).success();
    assert!(stage.lock().contains("left:\n"));
    work.decide("");
    work.run(&["check"]).fails(1);
    work.decide("helm: true\n");
    work.run(&["lock"]).success();
    work.git(&["add", "--all"]);
    work.run(&["check"]).success();
    let lock = stage.lock();
    assert!(!lock.contains("left:"), "{lock}");
}

#[test]
fn a_function_of_an_upstream_is_reported_until_it_is_accepted() {
    let function = "apiVersion: example.com/v1\nkind: Gen\nmetadata:\n  name: gen\n  annotations:\n    config.kubernetes.io/function: |\n      container: {image: 'example.com/fn:v1', network: true}\n";
    let stage = Stage::of_upstream(&[("kustomization.yaml", "generators: [fn.yaml]\n"), ("fn.yaml", function)]);
    let work = &stage.work;
    work.run(&["lock"]).success();
    work.commit("locked");
    work.run(&["check"])
        .fails(1).says(expect![[r#"
            error[function]: `https://example.com/acme/base.git?ref=v1` is locked, but the image docker://example.com/fn:v1 behind it stays remote: https://example.com/acme/base.git?ref=v1 > docker://example.com/fn:v1
             --> app/kustomization.yaml:2:3
              |
            2 | - https://example.com/acme/base.git?ref=v1
              |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
              = help: use a version whose functions are pinned by digest and need no network

            for more: git kustomize-localize explain function
            checked 1 kustomization with 1 reference in the working tree: 1 error
        "#]]);
    work.run(&IN_PLACE).fails(1).says(expect![[r#"
        error[function]: `https://example.com/acme/base.git?ref=v1` is locked, but the image docker://example.com/fn:v1 behind it stays remote: https://example.com/acme/base.git?ref=v1 > docker://example.com/fn:v1
         --> app/kustomization.yaml:2:3
          |
        2 | - https://example.com/acme/base.git?ref=v1
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: use a version whose functions are pinned by digest and need no network

        error: <0> has 1 error (function 1): nothing was committed
          hint: for more: git kustomize-localize explain function
    "#]]);
    allow(&stage, "- {image: 'example.com/fn:v1', rules: [function], reason: ours}");
    work.run(&["check"]).success();
    work.run(&IN_PLACE).success();
    gates(&stage, 0);
}

#[test]
fn references_left_by_configuration_stay_remote_even_if_reachable() {
    let gone = "https://example.com/acme/gone.git?ref=v1";
    let text = format!("resources: ['{gone}', x.yaml]\n");
    let x = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
    let stage = Stage::of_upstream(&[("kustomization.yaml", &text), ("x.yaml", x)]);
    let work = &stage.work;
    work.write("own/kustomization.yaml", format!("resources: ['{gone}']\n"));
    work.commit("own");
    let entry = "- {url: 'https://example.com/acme/gone.git?ref=v1', reason: 'TODO'}";
    work.run(&["lock"]).says(expect![[r#"
        nothing was written
        error: own/kustomization.yaml:1:13: resources[0]: could not fetch https://example.com/acme/gone.git: '/home/me/upstream/acme/gone.git' does not appear to be a git repository
        error: https://example.com/acme/base.git?ref=v1: kustomization.yaml:1:13: resources[0]: could not fetch https://example.com/acme/gone.git: '/home/me/upstream/acme/gone.git' does not appear to be a git repository
          reached from app/kustomization.yaml:2:3
          hint: check the URL (kustomize splits it after two segments, at `.git`, or at `//`); if the repository moved or is private, ask its owner
        hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
          - {url: 'https://example.com/acme/gone.git?ref=v1', reason: 'TODO'}
        error: 2 references could not be locked
    "#]]);
    allow(&stage, &entry.replace("TODO", "gone for good"));
    let run = || {
        work.run(&["lock"]).success();
        work.git(&["add", "--all"]);
        work.git(&["commit", "-q", "--allow-empty", "-m", "lock"]);
        work.run(&IN_PLACE).success();
        gates(&stage, 0);
        let show = |path: &str| work.git(&["show", &format!("localized/main:{path}")]);
        assert!(show("own/kustomization.yaml").contains(gone));
        let base = show("app/localized-files/example.com/acme/base/v1/kustomization.yaml");
        assert!(base.contains(gone), "{base}");
        let lock = lock_on_branch(&stage);
        assert!(lock.contains(&format!("  - url: {gone}\n    reason: \"gone for good\"\n")), "{lock}");
        lock
    };
    let lock = run();
    // Now it is available, and names something that is not.
    stage.upstream("gone", &[("kustomization.yaml", "resources: ['https://example.com/acme/never.git?ref=v1']\n")]);
    assert_eq!(run(), lock);
    work.run(&["branch"]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has <1> localized
          stays remote (allowed): https://example.com/acme/gone.git?ref=v1
    "#]]);
}

#[test]
fn an_edited_record_accepts_nothing() {
    let stage = Stage::of_upstream(&[("kustomization.yaml", CHART)]);
    let work = &stage.work;
    work.decide("rules: {remote-chart: warning}\n");
    work.run(&IN_PLACE).success();
    work.git(&["switch", "-q", "localized/main"]);
    let left =
        "left:\n  - url: https://charts.example/stable\n    chart: nginx\n    version: 1.2.3\n    reason: r\nfiles:\n";
    let lock = stage.lock();
    let edited = lock.replace("files:\n", left);
    assert_ne!(lock, edited);
    work.write("kustomize-localize.lock", edited);
    work.commit("mine");
    work.run(&["verify"]).fails(1);
}

/// The original could pull the chart into its clone, and the result, which is read-only, could not: there is nothing to
/// compare, and the user's arguments do not make that a difference.
#[test]
fn a_root_with_a_chart_that_stays_remote_is_not_compared() {
    let stage = Stage::of_upstream(&[("kustomization.yaml", CHART)]);
    let Some(_) = stage.sandbox.builds() else { return };
    let [enable, helm] = stage.build_args();
    allow(&stage, LEAVE_CHART);
    let mut transcript = Transcript::default();
    for args in [&["branch"][..], &["branch", &enable, &helm], &["app", "--branch=copy", &enable, &helm]] {
        transcript.add(stage.work.run(args).success());
        assert_eq!(stage.pulls(), crate::support::NONE, "{args:?}");
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize branch
        localized the repository on branch localized/main (<0>): 4 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/base.git?ref=v1 <1>
          not verified: 1 root not built (kustomize/…)
          not built: app: https://charts.example/stable#nginx@1.2.3 stays remote
          stays remote (allowed): https://charts.example/stable#nginx@1.2.3
          to look at it: git show --stat <0>
        $ git kustomize-localize branch --build-arg=--enable-helm --build-arg=--helm-command=/home/me/bin/helm
        nothing to do: branch localized/main (<0>) already has <1> localized
          not verified: 1 root not built (kustomize/…)
          not built: app: https://charts.example/stable#nginx@1.2.3 stays remote
          stays remote (allowed): https://charts.example/stable#nginx@1.2.3
        $ git kustomize-localize app --branch=copy --build-arg=--enable-helm --build-arg=--helm-command=/home/me/bin/helm
        localized app into localized-app on branch copy (<0>): 4 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/base.git?ref=v1 <1>
          not verified: 1 root not built (kustomize/…)
          not built: app: https://charts.example/stable#nginx@1.2.3 stays remote
          stays remote (allowed): https://charts.example/stable#nginx@1.2.3
          to look at it: git show --stat <0>
    "#]]);
    stage.work.decide("helm: true\n");
    stage.work.run(&["branch", &enable, &helm]).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 9 files written, 0 references rewritten, 0 removed
          added https://charts.example/stable#nginx@1.2.3 <1>
          verified: builds are identical: 321 bytes (kustomize/…, network closed)
          to look at it: git show --stat <0>
    "#]]);
    // kustomize had no chart to pull.
    assert_eq!(stage.pulls().len(), 1);
}

/// A tree that cannot be read may use anything: what was brought in stays, and no gate passes.
#[test]
fn nothing_is_removed_where_a_chart_cannot_be_looked_for() {
    let stage = Stage::of_upstream(&[("kustomization.yaml", CHART)]).with_helm();
    let work = &stage.work;
    let args = ["vendor", "--no-verify"];
    work.run(&args).success();
    work.commit("localized");
    let chart = "app/localized-files/example.com/acme/base/v1/charts/nginx-1.2.3/nginx/Chart.yaml";
    let there = work.read(chart);
    let lock = stage.lock();
    // No file system takes a name of this length.
    let text = format!("helmCharts: [{{name: {}, releaseName: r}}]\n", "x".repeat(300));
    work.write("other/kustomization.yaml", text);
    work.write("other/charts/web/Chart.yaml", "name: web\n");
    work.run(&args);
    assert_eq!(work.read(chart), there);
    assert_eq!(stage.lock(), lock);
    work.run(&["check"]).fails(2);
    work.run(&["lock"]);
    assert_eq!(stage.lock(), lock);
}

#[test]
fn a_chart_that_helm_was_asked_for_is_not_left_for_want_of_helm() {
    // Of the user, and of an upstream.
    let mut transcript = Transcript::default();
    for own in [true, false] {
        let stage = Stage::of_upstream(&[("kustomization.yaml", CHART)]);
        let work = &stage.work;
        if own {
            work.write("app/kustomization.yaml", CHART);
            work.commit("own");
        }
        work.run(&["lock"]).success();
        let lock = work.path().join("kustomize-localize.lock");
        let read = || std::fs::read_to_string(&lock).unwrap_or_default();
        let before = read();
        assert!(!before.contains("left:"), "{before}");
        work.write(".kustomize-localize", "helm: true\n");
        for is_there in [true, false] {
            if !is_there && lock.exists() {
                work.remove("kustomize-localize.lock");
            }
            std::fs::remove_dir_all(stage.sandbox.path("served")).unwrap();
            std::fs::create_dir(stage.sandbox.path("served")).unwrap();
            transcript.add(work.run(&["lock"]).fails(1));
            let lock = read();
            // What an entry that stays names is known.
            let stays = !own && is_there;
            assert_eq!(lock.contains(LABEL), stays, "{lock}");
            assert_eq!(lock.contains(BASE.trim_end_matches("?ref=v1")), stays, "{lock}");
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize lock
        nothing was written
        error: app/kustomization.yaml:2:23: helmCharts[0]: https://charts.example/stable#nginx@1.2.3: its repository has no such chart
          hint: to see what helm does: helm show chart --version=1.2.3 --repo=https://charts.example/stable -- nginx
        hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@1.2.3', reason: 'TODO'}
        error: 1 reference could not be locked
        $ git kustomize-localize lock
        kustomize-localize.lock not changed: 1 remote reference
        error: https://example.com/acme/base.git?ref=v1: kustomization.yaml:2:23: helmCharts[0]: https://charts.example/stable#nginx@1.2.3: its repository has no such chart
          reached from app/kustomization.yaml:2:3
          hint: to see what helm does: helm show chart --version=1.2.3 --repo=https://charts.example/stable -- nginx
        hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@1.2.3', reason: 'TODO'}
        error: 1 reference could not be locked
        $ git kustomize-localize lock
        nothing was written
        error: https://example.com/acme/base.git?ref=v1: kustomization.yaml:2:23: helmCharts[0]: https://charts.example/stable#nginx@1.2.3: its repository has no such chart
          reached from app/kustomization.yaml:2:3
          hint: to see what helm does: helm show chart --version=1.2.3 --repo=https://charts.example/stable -- nginx
        hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
          - {chart: 'https://charts.example/stable#nginx@1.2.3', reason: 'TODO'}
        error: 1 reference could not be locked
    "#]]);
}

/// Helm 4 asks a registry that wants a login in other words.
#[test]
fn a_chart_is_not_gone_for_want_of_a_login() {
    let chart = CHART.replace(REPO, REGISTRY);
    for (said, is_gone) in [("h.example/c/nginx:1.2.3: not found", true), ("basic credential not found", false)] {
        let stage = Stage::of_upstream(&[("kustomization.yaml", &chart)]).with_helm();
        let script = format!("[ $1 = version ] || {{ echo 'Error: {said}' >&2; exit 1; }}");
        stage.sandbox.script("helm", &script);
        let output = stage.work.run(&["init"]);
        let config = fs::read_to_string(stage.work.path().join(".kustomize-localize")).unwrap_or_default();
        assert_eq!(config.contains("oci://"), is_gone, "{output:?}");
    }
}

/// What may be there again tomorrow is no reason for an exception.
#[test]
fn an_exception_is_offered_for_a_chart_that_is_gone_and_not_for_an_outage() {
    let chart = CHART.replace(REPO, REGISTRY);
    let stage = Stage::of_upstream(&[("kustomization.yaml", &chart)]).with_helm();
    for (said, is_offered) in [
        ("chart \"nginx\" version \"1.2.3\" not found", true),
        ("failed to perform \\\"FetchReference\\\" on source: h.example/c/nginx:1.2.3: not found", true),
        ("dial tcp: lookup charts.example: no such host", false),
        ("failed to fetch index.yaml : 503 Service Unavailable", false),
    ] {
        let script = format!("[ $1 = version ] || {{ echo 'Error: {said}' >&2; exit 1; }}");
        stage.sandbox.script("helm", &script);
        let output = stage.work.run(&["lock"]);
        let offer = "- {chart: 'oci://registry.example/charts#nginx@";
        let offered = output.fails(1).stderr.contains(offer);
        assert_eq!(offered, is_offered, "{output:?}");
    }
}
