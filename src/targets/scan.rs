//! The YAML documents of a tree in which an engine is interested.

use crate::config::Config;
use crate::kustomization::{Value, documents, read_object, unescaped};
use crate::message::failure::Result;
use crate::os::limits::{FILE, OBJECTS};
use crate::tree::{Entry, Tree, path};

use super::unread::{self, Why, is_of_chart};
use super::{Build, Engine, Object, Place, Target, Text, Unread};

/// The kinds that say what is deployed, each with what its `apiVersion` begins with.
const KINDS: [(&str, &[&str]); 6] = [
    ("kustomize.toolkit.fluxcd.io/v", &["Kustomization"]),
    ("source.toolkit.fluxcd.io/v", &["GitRepository", "OCIRepository", "Bucket", "ExternalArtifact"]),
    ("source.extensions.fluxcd.io/v", &["ArtifactGenerator"]),
    ("fluxcd.controlplane.io/v", &["FluxInstance", "ResourceSet"]),
    ("argoproj.io/v", &["Application", "ApplicationSet", "ArgoCD"]),
    ("fleet.cattle.io/v", &["GitRepo"]),
];

/// How the names of the files end that are searched.
const SEARCHED: [&str; 3] = [".yaml", ".yml", ".json"];

/// The ConfigMap that gives Argo CD its options.
const OPTIONS: &str = "argocd-cm";

/// The ends of the tag of base64, which hides what a text holds.
const BINARY: [&str; 2] = ["!binary", ":binary"];

/// Returns whether objects of a kind say what is deployed.
pub(super) fn is_known(kind: &str) -> bool {
    KINDS.iter().any(|(_, kinds)| kinds.contains(&kind))
}

/// A text with its line and column.
pub(super) type Word<'a> = (&'a str, (usize, usize));

/// An object that matters.
#[derive(Debug, Clone)]
pub(super) struct Document {
    pub(super) object: Object,
    pub(super) value: Value,
    /// The directory from which it is deployed: that of its file, or of what builds it.
    pub(super) home: String,
    /// Whether something else makes the object of it first.
    pub(super) is_template: bool,
}

impl Document {
    /// Returns an object that a template in this one makes.
    pub(super) fn template(&self, object: Object, value: Value) -> Document {
        Document { object, value, home: self.home.clone(), is_template: self.is_template }
    }

    /// Returns what is wrong with a line of it.
    pub(super) fn wrong(&self, line: usize, message: &str) -> Unread {
        let Object { kind, file, .. } = &self.object;
        let message = format!("{kind} {}: {message}", self.object.full_name());
        Unread::invalid(file, line, message, self.is_template)
    }

    /// Returns something that it deploys.
    pub(super) fn target(&self, engine: Engine, spot: (usize, usize), place: Place, build: Build) -> Target {
        Target::new(engine, self.object.clone(), spot, place, build, &self.value.json())
    }

    /// Returns a text in it, with its place.
    pub(super) fn text_at(&self, value: &Value) -> Option<Text> {
        Some(Text {
            text: value.text()?.to_owned(),
            file: self.object.file.clone(),
            line: value.line,
            column: value.column,
        })
    }

    /// Returns the text behind some keys of a value in it, if there is one.
    pub(super) fn text<'a>(&self, value: &'a Value, keys: &[&str]) -> std::result::Result<Option<Word<'a>>, Unread> {
        let text = |value: &'a Value| match value.text() {
            Some(text) => Ok((text, (value.line, value.column))),
            None => Err(self.mistyped(value, keys, "a text")),
        };
        value.at(keys).map(text).transpose()
    }

    /// Returns the list of texts behind some keys of a value in it.
    pub(super) fn texts(&self, value: &Value, keys: &[&str]) -> std::result::Result<Vec<Text>, Unread> {
        let Some(value) = value.at(keys) else {
            return Ok(Vec::new());
        };
        let texts = value.list().and_then(|items| items.iter().map(|item| self.text_at(item)).collect());
        texts.ok_or_else(|| self.mistyped(value, keys, "a list of texts"))
    }

    /// Returns that a value has the wrong type.
    pub(super) fn mistyped(&self, value: &Value, keys: &[&str], expected: &str) -> Unread {
        let message = format!("`{}` is {} where {expected} should be", keys.join("."), value.kind());
        self.wrong(value.line, &message)
    }
}

/// What a scan comes to.
#[derive(Default)]
pub(super) struct Scan {
    pub(super) objects: Vec<Document>,
    pub(super) unread: Vec<Unread>,
}

/// Searches a tree for the YAML files that can hold an object that matters.
pub(crate) fn candidates(tree: &dyn Tree) -> Result<Vec<String>> {
    // An escape, or UTF-16, may hide any of them.
    let odd: [&[u8]; 3] = [b"\\", b"\xff\xfe", b"\xfe\xff"];
    let marks: Vec<&[u8]> = marks().map(str::as_bytes).chain(odd).collect();
    tree.files_with(&[String::new()].into(), &SEARCHED, &marks)
}

/// Returns what stands in every object that matters, and in few other files.
fn marks() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(version, _)| *version).chain(BINARY).chain([OPTIONS])
}

/// Returns whether bytes may hold an object that matters, as they stand or as a reader of YAML takes them.
fn may_matter(bytes: &[u8]) -> bool {
    let has_mark = |bytes: &[u8]| marks().any(|mark| memchr::memmem::find(bytes, mark.as_bytes()).is_some());
    has_mark(bytes) || meant(bytes).is_some_and(|text| has_mark(text.as_bytes()))
}

/// Returns what a reader of YAML may make of a text that need not be taken as it stands, as far as names of objects go: of
/// UTF-16 every second byte, and escapes resolved.
fn meant(bytes: &[u8]) -> Option<String> {
    memchr::memchr2(b'\\', 0, bytes)?;
    let text: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
    Some(unescaped(&String::from_utf8_lossy(&text)))
}

/// Returns whether a text that cannot be read declares an object that matters: it names one outside of comments, or has
/// something else where the name should be: a tag, for example.
fn declares(text: &str) -> bool {
    let declares = |text: &str| {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
        let text = lines.join("\n");
        let is_hidden = |key: &str| {
            let mut values = text.split(key).skip(1);
            values.any(|value| {
                let value = value.trim_start_matches(['"', '\'', ':', ' ', '\t', '\n']);
                value.starts_with(|first: char| !first.is_alphanumeric())
            })
        };
        let (any_version, any_kind) = (is_hidden("apiVersion"), is_hidden("kind"));
        let names = |(version, kinds): &(&str, &[&str])| {
            (any_version || text.contains(version)) && (any_kind || kinds.iter().any(|kind| text.contains(kind)))
        };
        KINDS.iter().any(names) || text.contains(OPTIONS) && (any_kind || text.contains("ConfigMap"))
    };
    declares(text) || meant(text.as_bytes()).is_some_and(|text| declares(&text))
}

/// Reads every object that matters in these files.
pub(super) fn scan(tree: &dyn Tree, config: &Config, candidates: &[String]) -> Result<Scan> {
    let mut scan = Scan::default();
    for file in candidates {
        if config.leaves_out(path::parent(file)) || tree.entry(file)? == Some(Entry::Link) {
            continue;
        }
        match tree.read(file) {
            Ok(bytes) => scan.file(file, &bytes, is_of_chart(file, tree)?),
            Err(failure) => {
                let why = Why::Away(failure.hints);
                scan.pass(file, 0, failure.message, why);
            }
        }
    }
    Ok(scan)
}

/// Returns whether a search looks into a file, by its name.
pub(crate) fn is_searched(path: &str) -> bool {
    SEARCHED.iter().any(|end| path.ends_with(end))
}

impl Scan {
    fn pass(&mut self, file: &str, line: usize, message: impl Into<String>, why: Why) {
        self.unread.push(Unread { file: file.to_owned(), line, message: message.into(), why });
    }

    fn file(&mut self, file: &str, bytes: &[u8], is_template: bool) {
        match std::str::from_utf8(bytes) {
            Ok(text) if bytes.len() <= FILE.most => return self.text(file, text, OBJECTS.most, is_template),
            _ => {}
        }
        if !documents(&String::from_utf8_lossy(bytes)).any(|(_, document)| declares(document)) {
        } else if bytes.len() > FILE.most {
            self.pass(file, 0, FILE.more(), Why::Limit);
        } else {
            self.unread.push(Unread::invalid(file, 0, "not UTF-8", is_template));
        }
    }

    /// Reads the documents of a text, of which at most so many may matter. With `is_template`, all are.
    pub(super) fn text(&mut self, file: &str, text: &str, most: usize, is_template: bool) {
        let first = self.objects.len();
        for (before, document) in documents(text) {
            if !may_matter(document.as_bytes()) {
                continue;
            }
            if self.objects.len() - first >= most {
                let message = format!("the file holds more than {most} objects: the rest is not read");
                return self.pass(file, before + 1, message, Why::Limit);
            }
            let is_template = is_template || unread::is_template(document);
            match read_object(document, before) {
                Ok(Some(value)) => self.object(file, value, is_template),
                Ok(None) => {}
                Err(_) if !declares(document) => {}
                Err((line, message)) => self.unread.push(Unread::invalid(file, line, message, is_template)),
            }
        }
    }

    /// Adds an object, or those in a list.
    fn object(&mut self, file: &str, value: Value, is_template: bool) {
        let kind = value.get("kind").and_then(Value::text);
        if let Some(items) = value.get("items").and_then(Value::list)
            && kind.is_some_and(|kind| kind.ends_with("List"))
        {
            if items.len() > OBJECTS.most {
                return self.pass(file, value.line, OBJECTS.more(), Why::Limit);
            }
            for item in items {
                self.object(file, item.clone(), is_template);
            }
            return;
        }
        if let Some(object) = identify(file, &value) {
            let home = path::parent(file).to_owned();
            self.objects.push(Document { object, value, home, is_template });
        }
    }
}

/// Returns what an object is, if it matters.
fn identify(file: &str, value: &Value) -> Option<Object> {
    let text = |keys: &[&str]| value.at(keys).and_then(Value::scalar);
    let version = text(&["apiVersion"])?;
    let kind = text(&["kind"])?;
    let name = text(&["metadata", "name"]).unwrap_or_default();
    let known = KINDS.iter().find(|(known, _)| version.starts_with(known));
    if !known.is_some_and(|(_, kinds)| kinds.contains(&&*kind)) && (&*kind, &*name) != ("ConfigMap", OPTIONS) {
        return None;
    }
    Some(Object {
        file: file.to_owned(),
        line: value.line,
        kind,
        namespace: text(&["metadata", "namespace"]).unwrap_or_default(),
        name,
        built_by: None,
    })
}
