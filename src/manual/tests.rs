use std::collections::BTreeMap;
use std::path::Path;

use super::markdown::{Block, anchor};
use super::*;

#[test]
fn only_links_change() {
    let text = "See [a `b`](x.md#y) and [c](https://example.com), not `[d](x.md)`.\n";
    assert_eq!(
        unlinked(text),
        "See a `b` and [c](https://example.com), not `[d](x.md)`.\n"
    );
}

/// Returns the targets of the links of a text.
fn targets(text: &str) -> Vec<String> {
    docs::links(text)
        .into_iter()
        .map(|(_, target)| target)
        .collect()
}

/// Returns whether a text has a heading with this anchor.
fn has_anchor(text: &str, name: &str) -> bool {
    markdown::read(text).iter().any(|block| match block {
        Block::Heading(_, spans) => anchor(&markdown::text(spans)) == name,
        _ => false,
    })
}

/// Returns what a link of a file leads to: a path from the same top, and an anchor.
fn led_to(file: &str, target: &str) -> (String, String) {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let parent = crate::tree::path::parent(file);
    let place = match path {
        "" => file.to_owned(),
        path => crate::tree::path::resolve(parent, path).unwrap(),
    };
    (place, anchor.to_owned())
}

#[test]
fn every_link_of_a_source_leads_to_a_source() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(top.join("README.md")).unwrap();
    let mut texts = vec![("README.md".to_owned(), readme)];
    for (name, text) in commands::PAGES {
        texts.push((format!("src/commands/{name}.md"), (*text).to_owned()));
    }
    for (name, text) in GUIDES {
        texts.push((format!("src/manual/{name}.md"), (*text).to_owned()));
    }
    for rule in Rule::ALL {
        let page = of_rule(*rule);
        texts.push((page.source, page.body));
    }
    let mut count = 0;
    for (file, text) in texts {
        for target in targets(&text).iter().filter(|one| !one.contains("://")) {
            let (place, anchor) = led_to(&file, target);
            let there = top.join(&place);
            assert!(there.exists(), "{file}: {target}");
            if !anchor.is_empty() {
                let text = std::fs::read_to_string(there).unwrap();
                assert!(has_anchor(&text, &anchor), "{file}: {target}");
            }
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
}

mod whole {
    use super::*;

    fn command() -> clap::Command {
        crate::cli::documented()
    }

    #[test]
    fn every_link_of_the_docs_leads_to_a_file() {
        let files: BTreeMap<String, String> = docs(&command())
            .into_iter()
            .map(|(path, text)| (path.to_str().unwrap().to_owned(), text))
            .collect();
        let mut count = 0;
        for (file, text) in files.iter().filter(|(file, _)| file.ends_with(".md")) {
            for target in targets(text).iter().filter(|one| !one.contains("://")) {
                let (place, anchor) = led_to(file, target);
                let there = files.get(&place);
                let there = there.unwrap_or_else(|| panic!("{file}: {target}"));
                assert!(
                    anchor.is_empty() || has_anchor(there, &anchor),
                    "{file}: {target}"
                );
                count += 1;
            }
        }
        assert!(count > 100, "{count}");
        // No link was lost on the way.
        for page in pages(&command()) {
            let file = files
                .values()
                .find(|text| {
                    text.starts_with(&format!("{}\n", page.markdown().lines().next().unwrap()))
                })
                .unwrap();
            assert_eq!(
                targets(&page.markdown()).len(),
                targets(file).len(),
                "{}",
                page.name
            );
        }
    }

    #[test]
    fn every_command_and_option_is_described() {
        for page in pages(&command()) {
            assert!(!page.about.is_empty(), "{}", page.name);
            for row in page.body.lines().filter(|line| line.starts_with("| `-")) {
                assert!(!row.ends_with("|  |"), "{}: {row}", page.name);
            }
        }
        for (name, text) in commands::PAGES {
            assert!(
                text.starts_with(&format!("# git kustomize-localize {name}\n\n")),
                "{name}"
            );
        }
        for (name, text) in GUIDES {
            assert!(text.starts_with("# ") && text.contains("\n\n"), "{name}");
        }
    }

    /// Returns the words of the commands of this program in a line of a shell.
    fn calls(line: &str) -> Vec<Vec<String>> {
        let line = line.split(" #").next().unwrap_or_default();
        let line = line.replace("run HOOK", "run pre-commit");
        // What another command prints is one word.
        let line = match line.split_once("\"$(") {
            Some((before, rest)) => {
                let (_, after) = rest.split_once(")\"").unwrap_or_default();
                format!("{before}WORD{after}")
            }
            None => line,
        };
        let parts = line
            .split(['|', ';', '>'])
            .flat_map(|part| part.split("&&"));
        parts
            .filter_map(|part| {
                let (_, rest) = part.split_once("git kustomize-localize ")?;
                let words = rest.split_whitespace();
                let words = words.map(|word| word.trim_matches(['"', '\'', ')']).to_owned());
                Some(words.filter(|word| !word.is_empty()).collect())
            })
            .collect()
    }

    #[test]
    fn every_command_that_is_written_is_understood() {
        let mut lines = Vec::new();
        let readme = include_str!("../../README.md");
        let mut texts = vec![("README.md".to_owned(), readme.to_owned())];
        texts.extend(
            pages(&command())
                .into_iter()
                .map(|page| (page.source, page.body)),
        );
        for (source, text) in texts {
            let mut collect = |line: &str| lines.push((source.clone(), line.to_owned()));
            fn walk(blocks: &[Block], collect: &mut dyn FnMut(&str)) {
                for block in blocks {
                    match block {
                        Block::Code(language, code) if language != "text" => {
                            code.replace("\\\n", " ").lines().for_each(&mut *collect);
                        }
                        Block::Code(..) => {}
                        Block::List(_, entries) => {
                            entries.iter().for_each(|entry| walk(entry, collect));
                        }
                        Block::Heading(_, spans) | Block::Paragraph(spans) => {
                            codes(spans, collect);
                        }
                        Block::Table(rows) => {
                            rows.iter().flatten().for_each(|cell| codes(cell, collect))
                        }
                    }
                }
            }
            fn codes(spans: &[markdown::Span], collect: &mut dyn FnMut(&str)) {
                let codes = spans
                    .iter()
                    .filter(|one| one.style == markdown::Style::Code);
                codes.for_each(|one| collect(&one.text));
            }
            walk(&markdown::read(&text), &mut collect);
        }
        let mut count = 0;
        let mut wrong = Vec::new();
        for (source, line) in lines {
            for words in calls(&line) {
                let all = std::iter::once("git-kustomize-localize".to_owned()).chain(words);
                let all: Vec<String> = all.collect();
                if let Err(error) = crate::cli::documented().try_get_matches_from(&all) {
                    use clap::error::ErrorKind;
                    let is_help = matches!(
                        error.kind(),
                        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
                    );
                    if !is_help {
                        wrong.push(format!("{source}: {line}\n{error}"));
                    }
                }
                count += 1;
            }
        }
        assert_eq!(wrong, [""; 0]);
        assert!(count > 60, "{count}");
    }

    #[test]
    fn manual_pages_hold_no_markdown() {
        for (path, text) in manuals(&command()) {
            for sign in ["](", "\n|", "\n## ", "```"] {
                assert!(!text.contains(sign), "{}: {sign}", path.display());
            }
        }
    }
}
