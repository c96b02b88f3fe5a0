//! The same input to `kustomize localize` and to us: the same copy comes out, or a reason is given.
//!
//! A case is a directory in `tests/parity/cases` (see `tests/parity/README.md`). What the real
//! `kustomize localize` makes of it is recorded there, so that our side is tested on machines
//! without kustomize; on machines with it, the records themselves are tested too.

mod case;
mod compare;
mod record;
mod upstream;

use std::fs;

use crate::support::{Kustomize, Sandbox};
use crate::whole::old_against_new::{Setting, Stage, script};
use case::{Case, Tree};
use upstream::Upstream;

/// Makes two tests of each case: our side, and the record.
macro_rules! cases {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        mod ours {
            $(
                #[test]
                #[cfg_attr(not(target_os = "linux"), ignore = "SSL_CERT_FILE is read on Linux")]
                fn $name() {
                    super::compare_with_record(stringify!($name));
                }
            )*
        }

        mod recorded {
            $(
                #[test]
                #[cfg_attr(not(target_os = "linux"), ignore = "SSL_CERT_FILE is read on Linux")]
                fn $name() {
                    super::record_or_check(stringify!($name));
                }
            )*
        }
    };
}

cases! {
    components
    default_name
    default_name_with_scope
    directory_for_file
    empty_values
    executable_file
    file_names
    file_outside_root
    file_repository
    generator_source_link
    generators
    helm_chart_inflation_generator
    helm_charts
    helm_home_absolute
    helm_homes
    helm_plugin
    inline_patch_with_comment
    key_case
    kustomization_file_names
    legacy_fields
    line_ends
    link_leaves_root
    links
    missing_file
    neither_file_nor_root
    nested_remote_roots
    new_dir_exists
    new_dir_inside_target
    no_kustomization_file
    no_type_meta
    openapi_configurations_crds
    patches
    path_spellings
    path_through_own_name
    plugin_mapping_as_path
    plugin_missing_file
    plugin_not_a_resource
    plugin_paths
    plugin_scalar_or_sequence
    plugins
    plugins_without_paths
    remote_component
    remote_file_in_bases
    remote_file_in_plugin
    remote_file_like_a_repository
    remote_file_link_leaves_repository
    remote_file_missing
    remote_file_name_encoded
    remote_file_names
    remote_file_redirect
    remote_file_server_error
    remote_files
    remote_helm_values
    remote_root_at_scope
    remote_root_attributes
    remote_root_azure
    remote_root_cycle
    remote_root_forms
    remote_root_is_a_page
    remote_root_leaves_repository
    remote_root_link_leaves_repository
    remote_root_links
    remote_root_missing_directory
    remote_root_missing_ref
    remote_root_refs
    remote_root_submodule
    remote_root_twice
    remote_root_with_plugins
    remote_root_without_ref
    remote_target
    remote_target_repository
    remote_target_with_scope
    remote_target_without_ref
    replacements
    resources
    root_cycle
    root_outside_scope
    roots
    scope_beside_target
    spelling
    ssh_and_scp
    target_is_a_file
    target_is_missing
    target_nested_in_scope
    two_kustomization_files
    unknown_field
    unreferenced_files
}

/// Every input, for a comparison of programs.
pub(crate) fn settings() -> Vec<Setting> {
    let setting = |name: &'static str| -> Setting {
        Box::new(move || {
            let case = Case::read(name);
            let sandbox = Sandbox::new();
            let upstream = Upstream::start(&sandbox);
            let directory = case.prepare(&sandbox);
            let arguments = case.arguments();
            let line = [&["--no-commit", "--no-verify"], &arguments[..]].concat();
            Stage {
                name: format!("parity {name}"),
                scripts: vec![script(&[
                    &line,
                    &["check", "--working-tree", "--format=json"],
                ])],
                sandbox,
                directory,
                _alive: Box::new(upstream),
            }
        })
    };
    NAMES.iter().map(|name| setting(name)).collect()
}

#[test]
fn every_case_is_listed() {
    let directories = fs::read_dir(case::cases()).unwrap();
    let mut found: Vec<String> = directories
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.replace('-', "_"))
        .collect();
    found.sort();
    assert_eq!(found, NAMES);
}

/// Localizes the input of a case with our program, and compares.
fn compare_with_record(name: &str) {
    let case = Case::read(name);
    let sandbox = Sandbox::new();
    let upstream = Upstream::start(&sandbox);
    let work = case.prepare(&sandbox);
    let before = Tree::read(&work);
    let earlier = case.result(&sandbox, &before);

    let mut args = vec!["--no-commit", "--no-verify"];
    args.extend(case.arguments());
    let output = sandbox.run(&work, &args);
    let result = case.result(&sandbox, &before);
    let label = format!(
        "{}\n{output:?}\nasked for: {:#?}",
        case.shows,
        upstream.log()
    );

    let expected = case.expected_of_us(&sandbox);
    match (&expected.tree, &expected.names) {
        (Some(tree), None) => {
            assert_eq!(output.status, 0, "{label}");
            let differences = compare::differences(tree, &expected.exact, &result.ours());
            assert!(
                differences.is_empty(),
                "{}\n{label}",
                differences.join("\n")
            );
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
    assert_eq!(sandbox.leftovers(), [""; 0], "{label}");
    let untouched = Tree::read(&work);
    for (path, bytes) in &before.files {
        assert_eq!(
            untouched.files.get(path),
            Some(bytes),
            "{path} was changed\n{label}"
        );
    }
}

/// Localizes the input of a case with the real kustomize, and stores the result or compares it.
fn record_or_check(name: &str) {
    let Some(kustomize) = Kustomize::find() else {
        return;
    };
    let case = Case::read(name);
    let sandbox = Sandbox::new();
    let upstream = Upstream::start(&sandbox);
    let record = record::make(&case, &sandbox, &kustomize);
    if record::wanted() {
        record::store(&case, &record);
    } else if record::is_comparable(&sandbox, &kustomize) {
        let stored = record::stored(&case);
        let log = upstream.log();
        assert_eq!(stored, record, "{}\nasked for: {log:#?}", case.shows);
    }
}
