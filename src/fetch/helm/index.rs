//! The versions of one chart in the index of a repository. The index may have tens of megabytes: it is read event by
//! event, and nothing else of it is kept.

use granit_parser::{Event, Parser, ScalarStyle};

use crate::os::limits::{CHART_VERSIONS, INDEX, Limit};

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
    let mut reader = IndexReader { chart, open: Vec::new(), listed: Vec::new(), has_entries: false };
    for (count, event) in Parser::new_from_str(text).enumerate() {
        refuse_more(count, INDEX)?;
        refuse_more(reader.listed.len(), CHART_VERSIONS)?;
        let (event, _) = event.map_err(|error| format!("line {}: {}", error.marker().line(), error.info()))?;
        // Only the first document counts.
        if event == Event::DocumentEnd {
            break;
        }
        reader.read_event(event)?;
    }
    if !reader.has_entries {
        return Err("it has no `entries`".to_owned());
    }
    // helm also skips entries without a version.
    reader.listed.retain(|listed| !listed.version.is_empty());
    Ok(reader.listed)
}

/// Refuses an index that has more of something than the limit: it comes from anybody.
fn refuse_more(count: usize, limit: Limit) -> Result<(), String> {
    if count > limit.most { Err(format!("it has {}", limit.more())) } else { Ok(()) }
}

/// Reads an index, event by event.
struct IndexReader<'a> {
    /// The name of the chart.
    chart: &'a str,
    /// The collections around the current event, from the outermost one.
    open: Vec<Open>,
    /// The versions of the chart that were found.
    listed: Vec<ChartVersion>,
    /// Whether the index has a value for `entries`.
    has_entries: bool,
}

impl IndexReader<'_> {
    /// Reads the next event. Fails for anchors and aliases, which could multiply the size of the index.
    fn read_event(&mut self, event: Event<'_>) -> Result<(), String> {
        self.has_entries |= matches!(&*self.open, [Open::Value(key)] if key == "entries");
        // An event with the number 0 has no anchor.
        match event {
            Event::MappingStart(_, 0, _) => self.begin_mapping(),
            Event::SequenceStart(_, 0, _) => self.open.push(Open::List),
            Event::MappingEnd | Event::SequenceEnd => {
                self.open.pop();
                self.complete("");
            }
            Event::Scalar(word, style, 0, _) => self.read_scalar(&word, style),
            Event::MappingStart(..) | Event::SequenceStart(..) | Event::Scalar(..) | Event::Alias(_) => {
                return Err("it has anchors".to_owned());
            }
            _ => {}
        }
        Ok(())
    }

    /// Opens a mapping. An item of `entries.CHART` is a version of the chart.
    fn begin_mapping(&mut self) {
        if inside_entry(&self.open, self.chart).is_some_and(<[Open]>::is_empty) {
            self.listed.push(ChartVersion::default());
        }
        self.open.push(Open::Key);
    }

    /// Reads a key or a value. A null is like an empty text.
    fn read_scalar(&mut self, word: &str, style: ScalarStyle) {
        let is_null = style == ScalarStyle::Plain && matches!(word, "~" | "null");
        let word = if is_null { "" } else { word };
        self.set_field(word);
        self.complete(word);
    }

    /// Stores a scalar in the last version, if it is one of its fields.
    fn set_field(&mut self, word: &str) {
        let Some(last) = self.listed.last_mut() else { return };
        match inside_entry(&self.open, self.chart) {
            Some([Open::Value(key)]) if key == "version" => word.clone_into(&mut last.version),
            Some([Open::Value(key)]) if key == "digest" => word.clone_into(&mut last.digest),
            Some([Open::Value(key), Open::List]) if key == "urls" && last.url.is_empty() => {
                word.clone_into(&mut last.url);
            }
            _ => {}
        }
    }

    /// Records in the innermost mapping that a value is complete, or that its next key is `word`.
    fn complete(&mut self, word: &str) {
        match self.open.last_mut() {
            Some(last @ Open::Key) => *last = Open::Value(word.to_owned()),
            Some(last @ Open::Value(_)) => *last = Open::Key,
            Some(Open::List) | None => {}
        }
    }
}

/// The collections around the current event inside of an item of `entries.CHART`: empty for the item itself. `None` if
/// the event is anywhere else in the index.
fn inside_entry<'a>(open: &'a [Open], chart: &str) -> Option<&'a [Open]> {
    match open {
        [Open::Value(key), Open::Value(name), Open::List, inside @ ..] if key == "entries" && name == chart => {
            Some(inside)
        }
        _ => None,
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
