//! The YAML documents of a tree in which an engine is interested.

use std::collections::BTreeSet;

use crate::config::Config;
use crate::kustomization::{Value, documents, read_object};
use crate::message::failure::Result;
use crate::os::limits::{FILE, OBJECTS};
use crate::record::sha256_hex;
use crate::tree::{Entry, Listing, Search, path};

use super::declared;
use super::unread::Why;
use super::{Build, Engine, Object, Place, Target, Text, Unread};

/// What stands in every object that matters, and in few other files.
const MARKS: [&str; 5] = ["fluxcd.", "argoproj.io/", "argocd-cm", "fleet.cattle.io/", BINARY];

/// The tag of any of these in base64, however it is written.
const BINARY: &str = "binary";

/// What a document must hold to be read.
const GROUPS: [&str; 8] = [
    "kustomize.toolkit.fluxcd.io/v",
    "source.toolkit.fluxcd.io/v",
    "source.extensions.fluxcd.io/v",
    "fluxcd.controlplane.io/v",
    "argoproj.io/v",
    "fleet.cattle.io/v",
    "argocd-cm",
    BINARY,
];

/// The kinds that matter, with the group of each.
pub(super) const KINDS: [(&str, &str); 13] = [
    ("kustomize.toolkit.fluxcd.io", "Kustomization"),
    ("source.toolkit.fluxcd.io", "GitRepository"),
    ("source.toolkit.fluxcd.io", "OCIRepository"),
    ("source.toolkit.fluxcd.io", "Bucket"),
    ("source.toolkit.fluxcd.io", "ExternalArtifact"),
    ("source.extensions.fluxcd.io", "ArtifactGenerator"),
    ("fluxcd.controlplane.io", "FluxInstance"),
    ("fluxcd.controlplane.io", "ResourceSet"),
    ("argoproj.io", "Application"),
    ("argoproj.io", "ApplicationSet"),
    ("argoproj.io", "ArgoCD"),
    ("fleet.cattle.io", "GitRepo"),
    ("", "ConfigMap"),
];

/// An object that matters.
#[derive(Debug, Clone)]
pub(super) struct Document {
    pub(super) object: Object,
    pub(super) value: Value,
    /// The directory from which it is deployed: that of its file, or of what builds it.
    pub(super) home: String,
}

impl Document {
    /// Returns an object that a template in this one makes.
    pub(super) fn template(&self, object: Object, value: Value) -> Document {
        Document { object, value, home: self.home.clone() }
    }

    /// Returns something that it deploys.
    pub(super) fn target(&self, engine: Engine, spot: (usize, usize), place: Place, build: Build) -> Target {
        Target {
            engine,
            object: self.object.clone(),
            digest: sha256_hex(self.value.json().to_string().as_bytes()),
            spot,
            place,
            build,
            changed_by: None,
            reaches: None,
        }
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
}

/// What a scan comes to.
#[derive(Default)]
pub(super) struct Scan {
    pub(super) objects: Vec<Document>,
    pub(super) unread: Vec<Unread>,
}

/// Searches a tree for the YAML files that can hold an object that matters.
pub(crate) fn candidates(tree: &dyn Listing) -> Result<Search<'_>> {
    candidates_at(tree, &[String::new()].into())
}

/// Searches for those files at or below these places, of which none lies below another one.
pub(crate) fn candidates_at<'a>(tree: &'a dyn Listing, places: &BTreeSet<String>) -> Result<Search<'a>> {
    tree.files_with(places, &is_searched, may_matter)
}

/// Returns whether bytes may hold an object that matters.
pub(super) fn may_matter(bytes: &[u8]) -> bool {
    holds(bytes, &MARKS)
}

/// Returns whether bytes hold one of some texts, as they stand or as a reader of YAML takes them.
fn holds(bytes: &[u8], marks: &[&str]) -> bool {
    let find = |bytes: &[u8], mark: &str| memchr::memmem::find(bytes, mark.as_bytes()).is_some();
    let holds = |bytes: &[u8]| marks.iter().any(|mark| find(bytes, mark));
    holds(bytes) || declared::meant(bytes).is_some_and(|text| holds(text.as_bytes()))
}

/// Reads every object of a tree that matters.
pub(super) fn scan(tree: &dyn Listing, config: &Config) -> Result<Scan> {
    scan_in(tree, config, &candidates(tree)?()?)
}

/// Reads every object that matters in these files.
pub(super) fn scan_in(tree: &dyn Listing, config: &Config, candidates: &[String]) -> Result<Scan> {
    let mut scan = Scan::default();
    for file in candidates {
        if config.leaves_out(path::parent(file)) || tree.entry(file)? == Some(Entry::Link) {
            continue;
        }
        match tree.read(file) {
            Ok(bytes) => scan.file(file, &bytes),
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
    [".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end))
}

impl Scan {
    fn pass(&mut self, file: &str, line: usize, message: impl Into<String>, why: Why) {
        self.unread.push(Unread { file: file.to_owned(), line, message: message.into(), why });
    }

    fn file(&mut self, file: &str, bytes: &[u8]) {
        let matters = |text: &str| documents(text).any(|(_, document)| declared::matters(document));
        if bytes.len() > FILE.most {
            if matters(&String::from_utf8_lossy(bytes)) {
                self.pass(file, 0, FILE.more(), Why::Limit);
            }
            return;
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => self.text(file, text, OBJECTS.most),
            Err(_) if matters(&String::from_utf8_lossy(bytes)) => {
                self.pass(file, 0, "not UTF-8", Why::NotYaml);
            }
            Err(_) => {}
        }
    }

    /// Reads the documents of a text, of which at most so many may matter.
    pub(super) fn text(&mut self, file: &str, text: &str, most: usize) {
        let first = self.objects.len();
        for (before, document) in documents(text) {
            if !holds(document.as_bytes(), &GROUPS) {
                continue;
            }
            if self.objects.len() - first >= most {
                let message = format!("the file holds more than {most} objects: the rest is not read");
                return self.pass(file, before + 1, message, Why::Limit);
            }
            match read_object(document, before) {
                Ok(Some(value)) => self.object(file, value),
                Ok(None) => {}
                Err(_) if !declared::matters(document) => {}
                Err((line, message)) => {
                    self.pass(file, line, message, Why::NotYaml);
                }
            }
        }
    }

    /// Adds an object, or those in a list.
    fn object(&mut self, file: &str, value: Value) {
        let kind = value.get("kind").and_then(Value::text);
        if let Some(items) = value.get("items").and_then(Value::list)
            && kind.is_some_and(|kind| kind.ends_with("List"))
        {
            if items.len() > OBJECTS.most {
                return self.pass(file, value.line, OBJECTS.more(), Why::Limit);
            }
            for item in items {
                self.object(file, item.clone());
            }
            return;
        }
        if let Some(object) = identify(file, &value) {
            let home = path::parent(file).to_owned();
            self.objects.push(Document { object, value, home });
        }
    }
}

/// Returns what an object is, if it matters.
pub(super) fn identify(file: &str, value: &Value) -> Option<Object> {
    let text = |keys: &[&str]| value.at(keys).and_then(Value::scalar);
    let version = text(&["apiVersion"])?;
    let kind = text(&["kind"])?;
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    if !KINDS.contains(&(group, kind.as_str())) {
        return None;
    }
    Some(Object {
        file: file.to_owned(),
        line: value.line,
        kind,
        namespace: text(&["metadata", "namespace"]).unwrap_or_default(),
        name: text(&["metadata", "name"]).unwrap_or_default(),
        built_by: None,
    })
}
