//! The versions of one chart in the index of a repository. The index may have tens of megabytes: it is read event by
//! event, and nothing else of it is kept.

use granit_parser::{Event, Parser, ScalarStyle};

use crate::os::limits::{CHART_VERSIONS, INDEX};

/// A version of a chart.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ChartVersion {
    pub version: String,
    /// The first URL, which is the one that helm takes. May be relative.
    pub url: String,
    /// The SHA-256 of the archive; may be empty.
    pub digest: String,
}

/// A collection that is not complete.
enum Open {
    List,
    /// A mapping whose next key comes.
    Key,
    /// A mapping with the key whose value comes.
    Value(String),
}

/// The versions that an index lists for a chart. Empty if it does not list the chart.
pub(super) fn versions(bytes: &[u8], chart: &str) -> Result<Vec<ChartVersion>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    // `open` are the collections around the current event, from the outermost one.
    let (mut open, mut listed, mut has_entries) = (Vec::new(), Vec::<ChartVersion>::new(), false);
    for (count, event) in Parser::new_from_str(text).enumerate() {
        // The index comes from anybody, so its size is limited.
        let bounds = [(count, INDEX), (listed.len(), CHART_VERSIONS)];
        if let Some((_, limit)) = bounds.iter().find(|(count, limit)| *count > limit.most) {
            return Err(format!("it has {}", limit.more()));
        }
        let (event, _) = event.map_err(|error| format!("line {}: {}", error.marker().line(), error.info()))?;
        has_entries |= matches!(&*open, [Open::Value(key)] if key == "entries");
        // The collections inside of `entries.CHART[]`; empty at the start of an entry. Anywhere else it is `[Key]`,
        // which matches no arm below: such values are parsed, and forgotten.
        let in_entry = match &*open {
            [Open::Value(key), Open::Value(name), Open::List, rest @ ..] if key == "entries" && name == chart => rest,
            _ => &[Open::Key],
        };
        // An event with the number 0 has no anchor.
        match event {
            Event::DocumentEnd => break,
            Event::MappingStart(_, 0, _) => {
                if in_entry.is_empty() {
                    listed.push(ChartVersion::default());
                }
                open.push(Open::Key);
            }
            Event::SequenceStart(_, 0, _) => open.push(Open::List),
            Event::MappingEnd | Event::SequenceEnd => {
                open.pop();
                complete(&mut open, "");
            }
            Event::Scalar(word, style, 0, _) => {
                let word = if style == ScalarStyle::Plain && matches!(&*word, "~" | "null") { "" } else { &word };
                if let Some(last) = listed.last_mut() {
                    match in_entry {
                        [Open::Value(key)] if key == "version" => word.clone_into(&mut last.version),
                        [Open::Value(key)] if key == "digest" => word.clone_into(&mut last.digest),
                        [Open::Value(key), Open::List] if key == "urls" && last.url.is_empty() => {
                            word.clone_into(&mut last.url);
                        }
                        _ => {}
                    }
                }
                complete(&mut open, word);
            }
            // Aliases could multiply the size of the index.
            Event::MappingStart(..) | Event::SequenceStart(..) | Event::Scalar(..) | Event::Alias(_) => {
                return Err("it has anchors".to_owned());
            }
            _ => {}
        }
    }
    // helm also skips entries without a version.
    listed.retain(|listed| !listed.version.is_empty());
    if has_entries { Ok(listed) } else { Err("it has no `entries`".to_owned()) }
}

/// Records in the innermost mapping that a value is complete, or that its next key is `word`.
fn complete(open: &mut [Open], word: &str) {
    if let Some(last @ (Open::Key | Open::Value(_))) = open.last_mut() {
        *last = if matches!(last, Open::Key) { Open::Value(word.to_owned()) } else { Open::Key };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<ChartVersion>, String> {
        versions(text.as_bytes(), "web")
    }

    #[test]
    fn the_versions_of_one_chart_are_read() {
        let listed = |version: &str, url: &str, digest: &str| ChartVersion {
            version: version.to_owned(),
            url: url.to_owned(),
            digest: digest.to_owned(),
        };
        let text = "apiVersion: v1\nentries:\n  other:\n  - version: 9.0.0\n    urls: [o.tgz]\n  web:\n  - annotations:\n      version: 7.0.0\n      urls: [a.tgz]\n    dependencies:\n    - {name: web, version: 8.0.0, digest: d}\n    digest: abc\n    name: web\n    urls:\n    - web-1.10.0.tgz\n    - https://mirror.example/web.tgz\n    version: 1.10.0\n  - {version: \"1.0\", urls: [], digest: null}\n  - {urls: [x.tgz]}\n  - {version: 1.x, urls: ['~']}\n  webs:\n  - version: 6.0.0\nweb:\n- version: 5.0.0\n";
        let expected = [listed("1.10.0", "web-1.10.0.tgz", "abc"), listed("1.0", "", ""), listed("1.x", "~", "")];
        assert_eq!(read(text).unwrap(), expected);
        let json = r#"{"entries": {"web": [{"version": "1.0.0", "urls": ["a", "b"]}], "x": []}}"#;
        assert_eq!(read(json).unwrap(), [listed("1.0.0", "a", "")]);
        // Only the first document counts.
        assert_eq!(read("entries: {}\n---\nentries: {web: [{version: 1.0.0}]}\n").unwrap(), []);
        assert_eq!(
            read("? {a: b}\n: c\n? [entries]\n: {}\nentries: {[web]: [{version: 1.0.0}], web: x}\n").unwrap(),
            []
        );
    }

    #[test]
    fn what_is_no_index_is_refused() {
        let bomb: String = (1..40).map(|n| format!("b{n}: &a{n} [*a{0}, *a{0}]\n", n - 1)).collect();
        for (text, why) in [
            ("<!doctype html>\n<p>Log in\n", "it has no `entries`"),
            ("", "it has no `entries`"),
            ("- entries: {}\n", "it has no `entries`"),
            ("entries: {web: [{version: 1.0.0, urls: [", "line "),
            (&format!("entries:\na: &a0 [x, x]\n{bomb}"), "it has anchors"),
            ("entries: {web: &web [{version: 1.0.0}]}\n", "it has anchors"),
            ("entries: *web\n", "line 1: "),
            (&format!("entries: {{web: [{}]}}", "{},".repeat(50_001)), "it has more than 50000 versions"),
            (&format!("entries: {}", "[".repeat(1 << 20)), "line 1: recursion limit exceeded"),
            (&format!("entries: {}x", "- ".repeat(1 << 20)), "line 1: "),
            (&format!("entries:\n {}x", "- ".repeat(1 << 20)), "line 2: recursion limit exceeded"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.starts_with(why), "{why}: {said}");
        }
        assert_eq!(versions(b"entries: {}\n\xff", "web").unwrap_err(), "it is not UTF-8");
    }
}
