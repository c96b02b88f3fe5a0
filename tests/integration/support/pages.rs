//! What is written about the program: the README and the pages of the manual, as their sources stand.

use std::fs;
use std::path::Path;

/// Returns a file of the sources.
pub(crate) fn source(path: &str) -> String {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(top.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns every page with the path of its source: the README, those of commands and guides, and what is said about
/// rules.
pub(crate) fn pages() -> Vec<(String, String)> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![("README.md".to_owned(), source("README.md"))];
    for directory in ["src/check", "src/commands", "src/manual"] {
        for entry in fs::read_dir(top.join(directory)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = format!("{directory}/{name}");
            if name.ends_with(".md") {
                pages.push((path.clone(), source(&path)));
            }
        }
    }
    assert!(pages.len() > 30, "{}", pages.len());
    pages
}

/// Returns the contents of the fenced blocks that are marked with `language`.
pub(crate) fn blocks(text: &str, language: &str) -> Vec<String> {
    text.split(&format!("```{language}\n")).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Returns the text of the section with this heading.
#[track_caller]
pub(crate) fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let found = text.split_once(&format!("\n{heading}\n"));
    let (_, rest) = found.unwrap_or_else(|| panic!("no {heading}"));
    let level = heading.split(' ').next().unwrap();
    rest.split(&format!("\n{level} ")).next().unwrap()
}
