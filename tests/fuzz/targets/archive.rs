//! The archive of a chart: raw, and compressed here, so that its contents are reached.

#![no_main]

use std::io::Write as _;

use git_kustomize_localize::seams::graph::archive;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = archive::unpack(bytes);
    let mut compressed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    compressed.write_all(bytes).unwrap();
    let Ok(files) = archive::unpack(&compressed.finish().unwrap()) else {
        return;
    };
    for path in files.keys() {
        assert!(!path.starts_with('/') && !path.split('/').any(|part| part == ".."), "{path:?}");
    }
    let _ = archive::metadata(&files);
});
