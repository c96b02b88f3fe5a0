//! `.kustomize-localize`, which a pull request can bring.

#![no_main]

use git_kustomize_localize::seams::Config;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = Config::parse(bytes, ".kustomize-localize");
});
