//! The files and URLs that the schemas of a chart make helm read when it renders the chart.
//!
//! Helm compiles the `values.schema.json` of a chart and of each subchart, and reads whatever these refer to: a URL
//! from the network, everything else from the machine, because it takes `file:///values.schema.json` for the URL of
//! each. Measured with Helm 4.1.4: it reads them even if a value is not set, but not if the document itself contains a
//! schema with that `$id`, where its draft looks for one.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value;
use url::{ParseError, Url};

use super::archive::{Files, NestedArchives};
use crate::message::position::Position;
use crate::os::limits::FILE;
use crate::tree::path;

/// Something outside of a schema that the schema refers to; or a schema, or an archive, that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExternalRef {
    /// The file of the chart that has the schema: the schema itself, or an archive.
    pub carrier: String,
    /// The path of the schema in the archive, through all archives. Empty if the carrier is not an archive.
    pub inside: String,
    /// The URL that the schema names, or why the schema or an archive cannot be read.
    pub url: Result<String, String>,
    /// The position of the reference in the schema. Line 0 if it is unknown.
    pub position: Position,
}

/// A file of a chart, or of an archive in it, that is to be read.
struct UnreadFile {
    carrier: String,
    inside: String,
    /// The path in the chart, or in the innermost archive.
    path: String,
    bytes: Rc<[u8]>,
}

/// A file that helm reads in a chart.
enum ChartFileKind {
    Schema,
    Archive,
}

impl ChartFileKind {
    /// The kind of the file at a path of a chart, by its name. `None` if helm reads no schema from it. A subchart is a
    /// directory or an archive in `charts`, with a schema of its own.
    fn of(path: &str) -> Option<ChartFileKind> {
        let Some(below) = path.strip_prefix("charts/") else {
            return (path == "values.schema.json").then_some(ChartFileKind::Schema);
        };
        match below.split_once('/') {
            // helm ignores these.
            _ if below.starts_with(['.', '_']) => None,
            Some((_, rest)) => ChartFileKind::of(rest),
            None => below.ends_with(".tgz").then_some(ChartFileKind::Archive),
        }
    }
}

/// Whether the file at a path of a chart can contain a schema, so that it has to be read.
pub(super) fn is_read(path: &str) -> bool {
    ChartFileKind::of(path).is_some()
}

/// The references of the schemas of a chart and its subcharts to other documents.
pub(super) fn external_refs(files: Files) -> Vec<ExternalRef> {
    let (mut references, mut archives) = (Vec::new(), NestedArchives::default());
    let files = files.into_iter();
    let mut todo: Vec<UnreadFile> =
        files.map(|(path, bytes)| UnreadFile { carrier: path.clone(), inside: String::new(), path, bytes }).collect();
    while let Some(UnreadFile { carrier, inside, path, bytes }) = todo.pop() {
        let urls = match ChartFileKind::of(&path) {
            None => continue,
            Some(ChartFileKind::Schema) => external_urls(&bytes),
            Some(ChartFileKind::Archive) => archives.unpack(&bytes).map(|files| {
                todo.extend(files.into_iter().map(|(path, bytes)| UnreadFile {
                    carrier: carrier.clone(),
                    inside: path::join(&inside, &path),
                    path,
                    bytes,
                }));
                Vec::new()
            }),
        };
        // Each URL becomes a reference, and so does the reason why a file cannot be read.
        let urls = urls.map_or_else(
            |why| vec![(Err(why), Position::default())],
            |urls| urls.into_iter().map(|(url, position)| (Ok(url), position)).collect(),
        );
        references.extend(urls.into_iter().map(|(url, position)| ExternalRef {
            carrier: carrier.clone(),
            inside: inside.clone(),
            url,
            // A position in an archive is not a position in the file that is shown.
            position: if inside.is_empty() { position } else { Position::default() },
        }));
    }
    references
}

/// The keywords of a draft of JSON Schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Draft {
    /// Since 2019: `$id` below `$defs` or `definitions`.
    New,
    /// 6 and 7: `$id` below `definitions`, and not beside a `$ref`.
    Old,
    /// Another draft, whose identifiers are not read.
    Other,
}

impl Draft {
    /// The draft that a schema is written in, by its `$schema`; without one it is the draft of the `outer` schema. The
    /// draft decides where an `$id` counts.
    fn of(schema: &Value, outer: Draft) -> Draft {
        match schema.get("$schema").map(|text| text.as_str().and_then(known_draft)) {
            None => outer,
            Some(Some("schema" | "draft/2019-09/schema" | "draft/2020-12/schema")) => Draft::New,
            Some(Some("draft-06/schema" | "draft-07/schema")) => Draft::Old,
            Some(_) => Draft::Other,
        }
    }

    /// The URL that a schema gives to itself.
    fn id(self, schema: &Value, base: &Url) -> Option<Url> {
        let text = schema.get("$id")?.as_str()?;
        let text = text.strip_suffix('#').unwrap_or(text);
        let counts = self == Draft::New || self == Draft::Old && schema.get("$ref").is_none();
        unambiguous_url(text, Some(base)).filter(|_| counts)
    }
}

/// The name of a draft of JSON Schema in its URL, as in `$schema`. helm contains these drafts, so that it does not
/// fetch such a URL. `None` for any other URL.
fn known_draft(url: &str) -> Option<&str> {
    let url = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    let path = url.strip_prefix("json-schema.org/")?;
    let path = path.split_once('#').map_or(path, |(path, _)| path);
    let drafts = [
        "schema",
        "draft-04/schema",
        "draft-06/schema",
        "draft-07/schema",
        "draft/2019-09/schema",
        "draft/2020-12/schema",
    ];
    drafts.contains(&path).then_some(path)
}

/// The URL that a text means relative to `base`. `None` if another parser could read another URL in it, or if its base
/// is unknown: the caller then assumes that the text leads out of the document.
fn unambiguous_url(text: &str, base: Option<&Url>) -> Option<Url> {
    match Url::parse(text) {
        // Parsing must not have changed anything.
        Ok(url) => Some(url).filter(|url| url.as_str() == text),
        // A relative URL may only have plain names.
        Err(ParseError::RelativeUrlWithoutBase)
            if text.strip_prefix('/').unwrap_or(text).split('/').all(|part: &str| {
                !matches!(part, "" | "." | "..")
                    && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.~".contains(c))
            }) =>
        {
            base?.join(text).ok()
        }
        Err(_) => None,
    }
}

/// The URLs of other documents that helm would read for a schema, one for each text that names one, with the position
/// of the reference; line 0 if that is not known. Fails with the reason if the schema is too large or cannot be parsed.
fn external_urls(bytes: &[u8]) -> Result<Vec<(String, Position)>, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.len() > FILE.most {
        return Err(format!("it has {}", FILE.more()));
    }
    let schema: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    // helm resolves references against the URL of the file that it read, so that a relative one leads to a file.
    let file_url = Url::parse("file:///values.schema.json").map_err(|error| error.to_string())?;
    let draft = Draft::of(&schema, Draft::New);
    let base = draft.id(&schema, &file_url).unwrap_or_else(|| file_url.clone());
    // A reference to one of these URLs stays in the document.
    let definitions = definition_urls(&schema, draft, &base);
    let known = definitions.values().cloned().chain([file_url, base.clone()]).collect();
    let mut scanner = SchemaScanner { known, definitions, external: BTreeMap::new() };
    // If the base is in doubt, a reference is taken to lead out of the document.
    let is_base_unknown = has_id(&schema) && draft.id(&schema, &base).is_none();
    scanner.visit(&schema, Some(&base).filter(|_| !is_base_unknown));
    let text = String::from_utf8_lossy(bytes);
    Ok(scanner.external.into_iter().map(|(written, url)| (url, position(&text, written))).collect())
}

/// The URLs that the schemas in the definitions of a schema give to themselves by `$id`, by the address of the schema
/// in memory. helm does not fetch such a URL.
fn definition_urls(schema: &Value, draft: Draft, base: &Url) -> BTreeMap<*const Value, Url> {
    let keys: &[&str] = match draft {
        Draft::New => &["$defs", "definitions"],
        Draft::Old => &["definitions"],
        Draft::Other => &[],
    };
    let definitions = keys.iter().filter_map(|key| schema.get(key)?.as_object()).flat_map(|schemas| schemas.values());
    definitions
        .filter_map(|value| Some((std::ptr::from_ref(value), Draft::of(value, draft).id(value, base)?)))
        .collect()
}

/// Whether a schema has an identifier, to which the relative references in it may be relative.
fn has_id(schema: &Value) -> bool {
    ["$id", "id"].iter().filter_map(|key| schema.get(key)?.as_str()).any(|id| !id.starts_with('#'))
}

struct SchemaScanner {
    /// The URLs that mean the document, or a schema in it.
    known: BTreeSet<Url>,
    /// The schemas in the document that have a URL, by their address in memory.
    definitions: BTreeMap<*const Value, Url>,
    /// The URLs of references to other documents, by the texts of the references.
    external: BTreeMap<String, String>,
}

impl SchemaScanner {
    /// Collects the external references of a schema, or of a part of one. Relative references are relative to `base`;
    /// `None` if the base is unknown.
    fn visit(&mut self, value: &Value, base: Option<&Url>) {
        let children: Vec<&Value> = match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(fields) => {
                // `$schema` is loaded, too, unless it names a draft that helm knows.
                for key in ["$ref", "$dynamicRef", "$recursiveRef", "$schema"] {
                    if let Some(text) = fields.get(key).and_then(Value::as_str) {
                        self.record_reference(text, base);
                    }
                }
                fields.values().collect()
            }
            _ => return,
        };
        for child in children {
            let url = self.definitions.get(&std::ptr::from_ref(child)).cloned();
            // An `$id` that is not one of a definition leaves the base in doubt.
            self.visit(child, url.as_ref().or(base.filter(|_| !has_id(child))));
        }
    }

    /// Records the reference `text` as external, unless it leads to the document itself, or helm contains its target.
    fn record_reference(&mut self, text: &str, base: Option<&Url>) {
        let url = text.split_once('#').map_or(text, |(url, _)| url);
        // Helm accepts any value for a schema with a URN.
        if url.is_empty() || url.starts_with("urn:") || known_draft(url).is_some() {
            return;
        }
        if !unambiguous_url(url, base).is_some_and(|url| self.known.contains(&url)) {
            // A relative URL is shown as the URL that helm would read.
            let shown = if Url::parse(url).is_ok() { None } else { base.and_then(|base| base.join(url).ok()) };
            self.external.insert(text.to_owned(), shown.map_or_else(|| url.to_owned(), String::from));
        }
    }
}

/// The position where a string first stands in a text.
fn position(text: &str, string: String) -> Position {
    let Some(at) = text.find(&Value::String(string).to_string()) else { return Position::default() };
    let line = text[..at].rsplit('\n').next().unwrap_or_default();
    Position::new(text[..at].matches('\n').count() + 1, line.chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::limits::CHART_BYTES;

    const HOST: &str = "https://h/s.json";

    /// Returns what a schema refers to; a `'` in it stands for `"`.
    fn of(text: &str) -> Vec<String> {
        let urls = external_urls(text.replace('\'', "\"").as_bytes()).unwrap();
        urls.into_iter().map(|(url, _)| url).collect()
    }

    /// Measured with Helm 4.1.4.
    #[test]
    fn what_leads_out_of_a_document() {
        for (text, url) in [
            ("{'properties': {'a': {'$ref': 'https://h/s.json'}}}", HOST),
            ("{'properties': {'a': {'$ref': 'https://h/s.json#/x'}}}", HOST),
            ("{'items': [true, {'allOf': [{'$ref': 'https://h/s.json'}]}]}", HOST),
            ("{'x': {'y': {'$ref': 'https://h/s.json'}}, 'properties': {'a': {'$ref': '#/x/y'}}}", HOST),
            ("{'$dynamicRef': 'https://h/s.json'}", HOST),
            ("{'$recursiveRef': 'https://h/s.json'}", HOST),
            ("{'$schema': 'https://h/s.json'}", HOST),
            ("{'properties': {'a': {'$schema': 'https://h/s.json'}}}", HOST),
            ("{'$ref': 'HTTP://h/x'}", "HTTP://h/x"),
            ("{'$ref': 'ftp://h/x'}", "ftp://h/x"),
            ("{'$ref': 'file:///etc/passwd'}", "file:///etc/passwd"),
            ("{'$ref': '//h/x'}", "file://h/x"),
            ("{'$ref': 'other.json'}", "file:///other.json"),
            ("{'$ref': '../charts/x.json'}", "file:///charts/x.json"),
            ("{'$id': 'https://h/d/c.json', '$ref': '../s.json'}", HOST),
            ("{'$id': '/d/c.json', '$ref': 's.json'}", "file:///d/s.json"),
            // Not every draft of this name is one that helm has.
            ("{'$schema': 'http://json-schema.org/draft-03/schema#'}", "http://json-schema.org/draft-03/schema"),
            (
                "{'$ref': 'http://json-schema.org/draft-07/hyper-schema#'}",
                "http://json-schema.org/draft-07/hyper-schema",
            ),
            ("{'$schema': 'https://json-schema.org.h/schema'}", "https://json-schema.org.h/schema"),
            // Nobody looks for an `$id` there.
            ("{'x': {'$id': 'https://h/s.json'}, '$ref': 'https://h/s.json'}", HOST),
            ("{'$defs': {'x': {'$id': 'HTTPS://h/s.json'}}, '$ref': 'https://h/s.json'}", HOST),
            ("{'$defs': {'x': {'y': {'$id': 'https://h/s.json'}}}, '$ref': 'https://h/s.json'}", HOST),
        ] {
            assert_eq!(of(text), [url], "{text}");
        }
        for (draft, definitions) in [
            ("draft-07", "'$defs': {'x': {'$id': 'https://h/s.json'}}"),
            ("draft-07", "'definitions': {'x': {'$id': 'https://h/s.json', '$ref': '#/a'}}"),
            ("draft-04", "'definitions': {'x': {'$id': 'https://h/s.json'}}"),
        ] {
            let draft = format!("'$schema': 'http://json-schema.org/{draft}/schema#'");
            let text = format!("{{{draft}, {definitions}, 'not': {{'$ref': 'https://h/s.json'}}}}");
            assert_eq!(of(&text), [HOST], "{text}");
        }
        // Relative to what, nobody can tell.
        for key in ["id", "$id"] {
            let text = format!("{{'properties': {{'a': {{'{key}': 'https://h/d/', '$ref': 'values.schema.json'}}}}}}");
            assert_eq!(of(&text), ["values.schema.json"], "{key}");
        }
    }

    #[test]
    fn what_stays_in_a_document() {
        for text in [
            "true",
            "{}",
            "\u{feff}{}",
            "{'$schema': 'http://json-schema.org/draft-07/schema#'}",
            "{'$schema': 'https://json-schema.org/draft/2020-12/schema', '$ref': 'https://json-schema.org/draft-04/schema#/x'}",
            "{'$id': 'https://h/s.json', '$defs': {'x': {}}, '$ref': '#/$defs/x'}",
            "{'$id': 'https://h/s.json', '$ref': 'https://h/s.json#/x'}",
            "{'$id': 'https://h/s.json#', '$ref': 's.json'}",
            "{'$ref': 'values.schema.json#/$defs/x'}",
            "{'$ref': 'urn:x:y'}",
            "{'properties': {'$ref': {'type': 'string'}, '$schema': {'const': 'https://h/s.json'}}}",
            "{'description': 'https://h/s.json', 'default': 'https://h/s.json'}",
            "{'$defs': {'x': {'$id': 'https://h/s.json'}}, '$ref': 'https://h/s.json'}",
            "{'$defs': {'x': {'$id': 's.json'}}, '$ref': 's.json'}",
            "{'definitions': {'x': {'$id': 'https://h/s.json'}}, '$ref': 'https://h/s.json#/a'}",
            "{'$defs': {'x': {'$id': 'https://h/d/s.json', '$ref': 't.json'}, 'y': {'$id': 'https://h/d/t.json'}}}",
            "{'$schema': 'http://json-schema.org/draft-07/schema#', 'definitions': {'x': {'$id': 'https://h/s.json'}}, 'not': {'$ref': 'https://h/s.json'}}",
        ] {
            assert_eq!(of(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_place_is_that_of_the_text() {
        let text = "{\n  \"b\": {\"$ref\": \"https://h/b\"},\n \"a\": {\"$ref\": \"https:\\/\\/h/a\"}}";
        let expected =
            [("https://h/a".to_owned(), Position::default()), ("https://h/b".to_owned(), Position::new(2, 17))];
        assert_eq!(external_urls(text.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        let deep = "[".repeat(10_000);
        for text in ["", "{", "{} {}", "{'$ref': 'x'}", &deep] {
            assert!(external_urls(text.as_bytes()).is_err(), "{text}");
        }
    }

    fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
        let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut builder = tar::Builder::new(gzip);
        for (path, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            builder.append_data(&mut header, format!("dep/{path}"), *bytes).unwrap();
        }
        builder.into_inner().unwrap().finish().unwrap()
    }

    #[test]
    fn subcharts_have_schemas_too() {
        let schema: &[u8] = b"{\"$ref\": \"https://h/s.json\"}";
        let inner = packed(&[("values.schema.json", schema)]);
        let outer = packed(&[("charts/e.tgz", &inner), ("charts/d/values.schema.json", schema)]);
        let files = [
            ("values.schema.json", schema),
            ("charts/d/values.schema.json", schema),
            ("charts/d/charts/e/values.schema.json", schema),
            ("charts/d.tgz", &outer),
            ("charts/broken.tgz", b"x"),
            // Helm does not read these.
            ("files/values.schema.json", schema),
            ("charts/values.schema.json", schema),
            ("charts/_d/values.schema.json", schema),
            ("charts/.d.tgz", b"x"),
            ("x.tgz", b"x"),
        ];
        let files: Files = files.into_iter().map(|(path, bytes)| (path.to_owned(), bytes.into())).collect();
        let found = external_refs(files);
        let mut found: Vec<(&str, &str, bool)> =
            found.iter().map(|one| (&*one.carrier, &*one.inside, one.url.is_ok())).collect();
        found.sort_unstable();
        assert_eq!(
            found,
            [
                ("charts/broken.tgz", "", false),
                ("charts/d.tgz", "charts/d/values.schema.json", true),
                ("charts/d.tgz", "charts/e.tgz/values.schema.json", true),
                ("charts/d/charts/e/values.schema.json", "", true),
                ("charts/d/values.schema.json", "", true),
                ("values.schema.json", "", true),
            ]
        );
    }

    #[test]
    fn an_archive_that_grows_without_end_is_refused() {
        let empty = vec![0; CHART_BYTES.most / 8];
        let one = packed(&[("x", &empty)]);
        let files = (0..9).map(|number| (format!("charts/{number}.tgz"), one.clone().into())).collect();
        let found = external_refs(files);
        let [ExternalRef { url: Err(why), .. }] = &*found else { panic!("{found:?}") };
        assert_eq!(why, &format!("the chart has {}", CHART_BYTES.more()));
    }
}
