//! A kustomization and a plugin configuration, with both readers of YAML: what is read can be edited, and nothing else
//! changes.

#![no_main]

use git_kustomize_localize::seams::kustomization::{Edit, edit, read, read_plugin, reshaping};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = read_plugin(bytes);
    let Ok(kustomization) = read(bytes) else {
        return;
    };
    let _ = reshaping(bytes);
    for reference in &kustomization.references {
        let value = reference.with_path("there");
        let edits = [Edit { spot: &reference.spot, value: value.clone() }];
        let Ok(edited) = edit(bytes, &edits) else {
            continue;
        };
        let again = read(&edited).expect("what was edited can be read");
        assert!(again.references.iter().any(|one| one.text == "there"));
    }
});
