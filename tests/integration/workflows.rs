//! What runs on GitHub runs nothing that could change under us.

use std::fs;
use std::path::Path;

#[test]
fn every_action_is_pinned_and_says_what_it_is() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(".github/workflows");
    let mut actions = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in text.lines() {
            let Some((_, action)) = line.split_once("uses: ") else {
                continue;
            };
            let (id, version) = action
                .split_once('@')
                .and_then(|(_, rest)| rest.split_once(" # v"))
                .unwrap_or_else(|| panic!("no id and version: {line}"));
            let is_id = id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_id, "no commit id: {line}");
            assert!(version.starts_with(|first: char| first.is_ascii_digit()));
            actions += 1;
        }
    }
    assert!(actions > 0);
}
