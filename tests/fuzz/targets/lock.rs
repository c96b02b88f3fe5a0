//! A lock, which a pull request can bring: what is read is written, and read as the same.

#![no_main]

use git_kustomize_localize::seams::record::Lock;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = Lock::positions(bytes);
    let Ok(lock) = Lock::parse(bytes, "kustomize-localize.lock") else {
        return;
    };
    let text = lock.render().expect("what was read can be written");
    let again = Lock::parse(text.as_bytes(), "kustomize-localize.lock");
    assert_eq!(again.expect("what was written can be read"), lock);
});
