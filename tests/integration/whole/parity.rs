//! The same input to `kustomize localize` and to us: the same copy comes out, or a reason is given.
//!
//! A case is a directory in `tests/parity/cases` (see `tests/parity/README.md`). What the real
//! `kustomize localize` makes of it is recorded there, so that our side is tested on machines
//! without kustomize; on machines with it, the records themselves are tested too.

mod case;
mod compare;
mod record;
mod upstream;

use std::panic::catch_unwind;
use std::{env, fs};

use git_kustomize_localize::seams::{processors, side_by_side};

use crate::support::{Kustomize, Sandbox, rows};
use case::{Case, Tree};
use upstream::{Upstream, repositories};

/// Returns the names of all cases, or of those with `KUSTOMIZE_LOCALIZE_CASE` in their name.
fn names() -> Vec<String> {
    let only = env::var("KUSTOMIZE_LOCALIZE_CASE").unwrap_or_default();
    let directories = fs::read_dir(case::cases()).unwrap();
    let names = directories.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.contains(&only)).collect();
    names.sort();
    names
}

/// Looks at each case, at those after one that fails, too.
fn each_case(names: &[String], look: impl Fn(&str, &Sandbox) + Sync) {
    let repositories = repositories();
    assert!(!names.is_empty(), "there is no such case");
    let failed = side_by_side(names, processors(), |_, name| {
        let look = std::panic::AssertUnwindSafe(|| look(name, &repositories));
        catch_unwind(look).is_err().then(|| name.clone())
    });
    let failed: Vec<_> = failed.into_iter().flatten().collect();
    assert!(failed.is_empty(), "to try one alone: KUSTOMIZE_LOCALIZE_CASE={failed:?}");
}

/// Localizes the input of each case with our program, and compares.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "SSL_CERT_FILE is read on Linux")]
fn ours() {
    each_case(&names(), compare_with_record);
}

/// Localizes the input of each case with the real kustomize, and stores the result or compares it.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "SSL_CERT_FILE is read on Linux")]
fn recorded() {
    if let Some(kustomize) = Kustomize::find() {
        // A record changes with kustomize alone.
        let step = if record::wanted() || env::var_os("KUSTOMIZE_LOCALIZE_CASE").is_some() { 1 } else { 3 };
        let names: Vec<String> = rows(names(), step).collect();
        each_case(&names, |name, repositories| record_or_check(name, repositories, &kustomize));
    }
}

fn compare_with_record(name: &str, repositories: &Sandbox) {
    let case = Case::read(name);
    let sandbox = Sandbox::new();
    let upstream = Upstream::start(&sandbox, repositories);
    let work = case.prepare(&sandbox);
    // What kustomize leaves as it is.
    let rules = "rules: {remote-chart: warning, function: warning}\n";
    std::fs::write(work.join(".kustomize-localize"), rules).unwrap();
    let before = Tree::read(&work);
    let earlier = case.result(&sandbox, &before);

    let mut args = vec!["--no-commit", "--no-verify"];
    args.extend(case.arguments());
    let output = sandbox.run(&work, &args);
    let result = case.result(&sandbox, &before);
    let label = format!("{}\n{output:?}\nasked for: {:#?}", case.shows, upstream.log());

    let expected = case.expected_of_us(&sandbox);
    match (&expected.tree, &expected.names) {
        (Some(tree), None) => {
            assert_eq!(output.status, 0, "{label}");
            let differences = compare::differences(tree, &expected.exact, &result.ours());
            assert!(differences.is_empty(), "{}\n{label}", differences.join("\n"));
            assert_eq!(result.executables, expected.executables, "{label}");
        }
        (None, Some(culprit)) => {
            assert_eq!(output.status, 2, "{label}");
            output.stderr_has(culprit);
            assert_eq!(result, earlier, "a failure leaves nothing behind\n{label}");
        }
        (Some(_), Some(_)) => panic!("{name} names a culprit, and nothing fails"),
        (None, None) => panic!("{name} fails, and names no culprit"),
    }
    assert_eq!(sandbox.leftovers(), crate::support::NONE, "{label}");
    let untouched = Tree::read(&work);
    for (path, bytes) in &before.files {
        assert_eq!(untouched.files.get(path), Some(bytes), "{path} was changed\n{label}");
    }
}

fn record_or_check(name: &str, repositories: &Sandbox, kustomize: &Kustomize) {
    let case = Case::read(name);
    let sandbox = Sandbox::new();
    let upstream = Upstream::start(&sandbox, repositories);
    let record = record::make(&case, &sandbox, kustomize);
    if record::wanted() {
        record::store(&case, &record);
    } else if record::is_comparable(&sandbox, kustomize) {
        let stored = record::stored(&case);
        let log = upstream.log();
        assert_eq!(stored, record, "{}\nasked for: {log:#?}", case.shows);
    }
}
