//! The message of a commit: what is read from its trailers is written, and read as the same.

#![no_main]

use git_kustomize_localize::seams::record::Trailers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|message: &str| {
    let Ok(Some(trailers)) = Trailers::parse(message) else {
        return;
    };
    let text = trailers.render().expect("what was read can be written");
    let again = Trailers::parse(&format!("Localize\n\n{text}"));
    assert_eq!(again.expect("what was written can be read"), Some(trailers));
});
