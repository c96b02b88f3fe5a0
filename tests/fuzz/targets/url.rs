//! A reference: no panic, no secret that shows, no place outside of the directory.

#![no_main]

use git_kustomize_localize::seams::redact;
use git_kustomize_localize::seams::reference::{RepoSpec, refuse_unsafe};
use git_kustomize_localize::seams::reference::{file_segments, root_segments};
use libfuzzer_sys::fuzz_target;

fn assert_inside(place: &[String]) {
    for part in place {
        assert!(!matches!(&**part, "" | "." | "..") && !part.contains('/'), "{place:?}");
    }
}

fuzz_target!(|text: &str| {
    let shown = redact::url(text);
    assert_eq!(redact::url(&shown), shown);
    assert!(!redact::has_secret(&shown), "{shown:?}");
    let spec = RepoSpec::parse(text).ok();
    if refuse_unsafe(text, spec.as_ref()).is_err() {
        return;
    }
    match &spec {
        Some(spec) => assert_inside(&root_segments(spec, "main")),
        None => assert_inside(&file_segments(text)),
    }
});
