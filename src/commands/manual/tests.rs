use std::path::Path;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::*;

fn parse(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
}

/// Returns every text that links lead from or to, by its path from the top of the sources.
fn sources() -> Vec<(String, String)> {
    let readme = include_str!("../../../README.md");
    let mut texts = vec![("README.md".to_owned(), readme.to_owned())];
    for (name, text) in commands::PAGES {
        let file = if *name == commands::COPY { "copy" } else { name };
        texts.push((format!("src/commands/{file}.md"), (*text).to_owned()));
    }
    for (name, text) in GUIDES {
        texts.push((format!("src/manual/{name}.md"), (*text).to_owned()));
    }
    for rule in Rule::ALL {
        let file = format!("src/check/{}.rs", rule.id().replace('-', "_"));
        texts.push((file, self::rule(*rule)));
    }
    texts
}

/// Returns the anchors of the headings of a text, as the sites make them that show it.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors = Vec::new();
    let mut heading: Option<String> = None;
    for event in parse(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => anchors.extend(heading.take()),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            _ => {}
        }
    }
    for anchor in &mut anchors {
        let kept = anchor.to_lowercase();
        let kept = kept.chars().filter(|one| one.is_alphanumeric() || " -_".contains(*one));
        *anchor = kept.collect::<String>().replace(' ', "-");
    }
    anchors
}

#[test]
fn every_link_of_a_source_leads_to_a_source() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for (file, text) in sources() {
        for event in parse(&text) {
            let Event::Start(Tag::Link { dest_url, .. }) = event else {
                continue;
            };
            if dest_url.contains("://") {
                continue;
            }
            let (path, anchor) = dest_url.split_once('#').unwrap_or((&dest_url, ""));
            let place = match path {
                "" => file.clone(),
                path => crate::tree::path::resolve(crate::tree::path::parent(&file), path).unwrap(),
            };
            let there = top.join(&place);
            assert!(there.exists(), "{file}: {dest_url}");
            if !anchor.is_empty() {
                let anchors = anchors(&std::fs::read_to_string(there).unwrap());
                let is_there = anchors.iter().any(|one| one == anchor);
                assert!(is_there, "{file}: {dest_url}: {anchors:?}");
            }
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn only_links_change() {
    let text = "See [a `b`](x.md#y) and [c](https://example.com), not [d].\n";
    assert_eq!(unlinked(text), "See a `b` and c (https://example.com), not [d].\n");
    for rule in Rule::ALL {
        assert!(!unlinked(&self::rule(*rule)).contains("]("), "{}", rule.id());
    }
}

#[test]
fn every_command_and_option_is_described() {
    let mut commands = vec![crate::commands::documented()];
    while let Some(command) = commands.pop() {
        assert!(command.get_about().is_some(), "{command}");
        for argument in command.get_arguments().filter(|one| !one.is_hide_set()) {
            assert!(argument.get_help().is_some(), "{command}: {argument}");
        }
        commands.extend(command.get_subcommands().cloned());
    }
    for (name, text) in commands::PAGES {
        let words = if *name == commands::COPY { "" } else { name };
        let heading = format!("# git kustomize-localize {words}");
        assert_eq!(text.lines().next().unwrap(), heading.trim_end());
    }
    for (name, text) in GUIDES {
        assert!(text.starts_with("# ") && text.contains("\n\n"), "{name}");
    }
}

/// What stands twice makes this fail.
#[test]
fn the_manual_is_short() {
    let pages = commands::PAGES.iter().chain(GUIDES);
    let lines: usize = pages.map(|(_, text)| text.lines().count()).sum();
    assert!(lines <= 1630, "{lines} lines");
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
    let parts = line.split(['|', ';', '>', '`']).flat_map(|part| part.split("&&"));
    parts
        .filter_map(|part| {
            let (_, rest) = part.split_once("git kustomize-localize ")?;
            let words = rest.split_whitespace();
            let words = words.map(|word| word.trim_matches(['"', '\'', ')']).to_owned());
            Some(words.filter(|word| !word.is_empty()).collect())
        })
        .collect()
}

/// Returns the lines of code in a text, but for blocks of plain text.
fn code(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut is_code = false;
    for event in parse(text) {
        match event {
            Event::Code(code) => lines.push(code.into_string()),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                is_code = &*language != "text";
            }
            Event::End(TagEnd::CodeBlock) => is_code = false,
            Event::Text(code) if is_code => {
                lines.extend(code.replace("\\\n", " ").lines().map(str::to_owned));
            }
            _ => {}
        }
    }
    lines
}

#[test]
fn every_command_that_is_written_is_understood() {
    use clap::error::ErrorKind;
    let mut count = 0;
    let mut wrong = Vec::new();
    for (source, text) in sources() {
        for line in code(&text) {
            for words in calls(&line) {
                let all = std::iter::once("git-kustomize-localize".to_owned()).chain(words);
                if let Err(error) = crate::commands::documented().try_get_matches_from(all) {
                    let kind = error.kind();
                    if !matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
                        wrong.push(format!("{source}: {line}\n{error}"));
                    }
                }
                count += 1;
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert!(count > 60, "{count}");
}

/// One idea once: an option that does what another one does, or what the configuration says, makes this fail.
#[test]
fn the_program_has_few_options() {
    let command = crate::commands::documented();
    let mut todo = vec![&command];
    let mut options = std::collections::BTreeSet::new();
    while let Some(command) = todo.pop() {
        let names = command.get_arguments().filter_map(clap::Arg::get_long);
        options.extend(names.filter(|name| !["help", "version"].contains(name)));
        todo.extend(command.get_subcommands().filter(|one| !one.is_hide_set()));
    }
    assert!(options.len() <= 32, "{}: {options:?}", options.len());
}
