//! The manual as a directory of Markdown: a site is made of that.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pulldown_cmark::{Event, Options, Parser, Tag};

use super::{Kind, Page, pages, sentence};
use crate::tree::path;

macro_rules! schemas {
    ($($source:literal $place:literal)*) => {
        /// What pages lead to beside other pages: its source, its place in the directory, and what it holds.
        const SCHEMAS: &[(&str, &str, &str)] = &[
            $((concat!("src/", $source), $place, include_str!(concat!("../", $source))),)*
        ];
    };
}

schemas! {
    "config/schema.json" "schemas/configuration.json"
    "report/affected/schema.json" "schemas/affected.json"
    "report/check/schema.json" "schemas/check.json"
    "report/localize/schema.json" "schemas/localize.json"
    "report/reference_tree/schema.json" "schemas/tree.json"
    "report/targets/schema.json" "schemas/targets.json"
    "report/verify/schema.json" "schemas/verify.json"
}

/// Returns every page as a file: its path below the directory, and what it holds. `index.md` lists them.
#[must_use]
pub fn docs(command: &clap::Command) -> Vec<(PathBuf, String)> {
    let pages = pages(command);
    let mut places: Vec<(String, String)> = pages
        .iter()
        .map(|page| (page.source.clone(), place(page)))
        .collect();
    let beside = SCHEMAS.iter();
    places.extend(beside.map(|(source, place, _)| ((*source).to_owned(), (*place).to_owned())));
    let mut files: Vec<(PathBuf, String)> = pages
        .iter()
        .map(|page| {
            let here = place(page);
            let text = relinked(&page.markdown(), &|target| {
                moved(target, page, &here, &places)
            });
            (PathBuf::from(here), format!("{}\n", text.trim_end()))
        })
        .collect();
    let beside = SCHEMAS.iter();
    files.extend(beside.map(|(_, place, text)| (PathBuf::from(place), (*text).to_owned())));
    files.push((PathBuf::from("index.md"), index(&pages)));
    files
}

/// Returns the sources that the links of a page lead to.
pub(super) fn targets(page: &Page) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, target) in links(&page.body) {
        let (file, _) = target.split_once('#').unwrap_or((&target, ""));
        let source = source(file, page);
        let is_page = [".md", ".rs"].iter().any(|end| source.ends_with(end));
        if !file.is_empty() && !file.contains("://") && is_page {
            found.insert(source);
        }
    }
    found
}

/// Returns Markdown with other targets for its links; a link without a target becomes its text.
pub(super) fn relinked(text: &str, moved: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut end = 0;
    for (range, target) in links(text) {
        let link = &text[range.clone()];
        let Some((label, _)) = link
            .strip_prefix('[')
            .and_then(|rest| rest.rsplit_once("]("))
        else {
            continue;
        };
        out.push_str(&text[end..range.start]);
        match moved(&target) {
            Some(target) => out.push_str(&format!("[{label}]({target})")),
            None => out.push_str(label),
        }
        end = range.end;
    }
    out + &text[end..]
}

/// Returns the links of a text, with their targets.
pub(super) fn links(text: &str) -> Vec<(std::ops::Range<usize>, String)> {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    events
        .filter_map(|(event, range)| match event {
            Event::Start(Tag::Link { dest_url, .. }) => Some((range, dest_url.into_string())),
            _ => None,
        })
        .collect()
}

/// Returns what a link of a page names, from the top of the sources.
fn source(file: &str, page: &Page) -> String {
    path::resolve(path::parent(&page.source), file).unwrap_or_default()
}

/// Returns the target that a link has in the directory.
fn moved(target: &str, page: &Page, here: &str, places: &[(String, String)]) -> Option<String> {
    let (file, anchor) = match target.split_once('#') {
        Some((file, anchor)) => (file, format!("#{anchor}")),
        None => (target, String::new()),
    };
    if file.is_empty() || file.contains("://") {
        return Some(target.to_owned());
    }
    let source = source(file, page);
    let (_, place) = places.iter().find(|(known, _)| *known == source)?;
    let depth = here.matches('/').count();
    Some(format!("{}{place}{anchor}", "../".repeat(depth)))
}

/// Returns the place of a page in the directory.
fn place(page: &Page) -> String {
    let name = page.name.replace(' ', "-");
    match page.kind {
        Kind::Command if name.is_empty() => "commands/git-kustomize-localize.md".to_owned(),
        Kind::Command => format!("commands/{name}.md"),
        Kind::Guide => format!("guides/{name}.md"),
        Kind::Rule => format!("rules/{name}.md"),
    }
}

fn index(pages: &[Page]) -> String {
    let mut out = format!("# git kustomize-localize {}\n", env!("CARGO_PKG_VERSION"));
    for (kind, title) in [
        (Kind::Guide, "Guides"),
        (Kind::Command, "Commands"),
        (Kind::Rule, "Rules of `check`"),
    ] {
        out.push_str(&format!("\n## {title}\n\n"));
        for page in pages.iter().filter(|page| page.kind == kind) {
            let (title, place) = (page.title(), place(page));
            out.push_str(&format!(
                "- [{title}]({place}): {}\n",
                sentence(&page.about)
            ));
        }
    }
    out
}
