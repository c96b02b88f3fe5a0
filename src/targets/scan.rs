//! The YAML documents of a tree in which an engine is interested.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use crate::kustomization::{Data, Value, documents, read_object, unescaped};
use crate::message::failure::Result;
use crate::message::position::Position;
use crate::os::limits::{FILE, OBJECTS};
use crate::record::sha256_hex;
use crate::tree::{Entry, Search, Tree, path};

use super::unread::{Why, is_of_chart};
use super::{Build, Engine, Object, Place, Target, Text, Unread, place};

/// A kind, and the fields that must be texts where they are there, with `[]` each of a list, with nothing behind it
/// anything.
type KindFields = (&'static str, &'static str);

/// The kinds that say what is deployed, by what their `apiVersion` begins with.
const KINDS: [(&str, &[KindFields]); 6] = [
    (
        "kustomize.toolkit.fluxcd.io/v",
        &[(
            "Kustomization",
            "spec.path spec.sourceRef.kind spec.sourceRef.namespace spec.sourceRef.name spec.components[]",
        )],
    ),
    (
        "source.toolkit.fluxcd.io/v",
        &[
            ("GitRepository", ""),
            ("OCIRepository", ""),
            ("Bucket", ""),
            ("ExternalArtifact", ""),
            ("ArtifactGenerator", ""),
        ],
    ),
    ("source.extensions.fluxcd.io/v", &[("ArtifactGenerator", "")]),
    (RELEASES, &[(RELEASE, "")]),
    (
        "fluxcd.controlplane.io/v",
        &[
            ("FluxInstance", "spec.sync.kind spec.sync.name spec.sync.url spec.sync.ref spec.sync.path"),
            ("ResourceSet", ""),
        ],
    ),
    ("argoproj.io/v", &[("Application", "spec.sources[]."), ("ApplicationSet", "spec.generators[]."), ("ArgoCD", "")]),
];

/// The releases of Flux. What they say is read only if the chart is one of a repository of git.
const RELEASES: &str = "helm.toolkit.fluxcd.io/v";
pub(super) const RELEASE: &str = "HelmRelease";

/// How the names of the files end that are searched.
const SEARCHED: &[&str] = &[".yaml", ".yml", ".json"];

/// The ConfigMap that gives Argo CD its options.
const OPTIONS: &str = "argocd-cm";

/// The ends of the tag of base64, which hides what a text holds.
const BINARY: [&str; 2] = ["!binary", ":binary"];

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
    /// Returns what is wrong with a line of it.
    pub(super) fn wrong(&self, line: usize, message: &str) -> Unread {
        let Object { kind, file, .. } = &self.object;
        let message = format!("{kind} {}: {message}", self.object.full_name());
        Unread::invalid(file, line, message, self.is_template)
    }

    /// Returns that a value in it has not the types that `texts` says, as in [`KINDS`].
    pub(super) fn mistyped(&self, value: &Value, texts: &str) -> Option<Unread> {
        let mut all = texts.split_whitespace();
        let (line, message) = all.find_map(|keys| mistyped(value, keys, 0))?;
        Some(self.wrong(line, &message))
    }

    /// Returns something that it deploys.
    pub(super) fn target(
        &self,
        tree: &dyn Tree,
        engine: Engine,
        spot: Position,
        place: Place,
        mut build: Build,
    ) -> Result<Target> {
        if let Place::Here(here) = &place {
            for one in &mut build.components {
                one.found = place::component(tree, engine, &here.path, &one.text.text)?;
            }
        }
        let target = Target::new(engine, self.object.clone(), spot, place, build, &self.value.json());
        Ok(Target { home: self.home.clone(), ..target })
    }

    /// Returns the place of a value in it; its own where there is none.
    pub(super) fn spot(&self, value: Option<&Value>) -> Position {
        value.map_or(Position::new(self.object.line, 1), |value| value.start)
    }

    /// Returns whether it holds options of Argo CD.
    pub(super) fn has_options(&self) -> bool {
        ["ConfigMap", "ArgoCD"].contains(&&*self.object.kind)
    }

    /// Returns a text in it, with its place.
    pub(super) fn text_at(&self, value: &Value) -> Option<Text> {
        Some(Text { text: value.text()?.to_owned(), file: self.object.file.clone(), position: value.start })
    }

    /// Returns the texts of a list in it.
    pub(super) fn texts<'a>(&'a self, list: Option<&'a Value>) -> impl Iterator<Item = Text> + 'a {
        let items = list.and_then(Value::list).unwrap_or_default();
        items.iter().filter_map(|item| self.text_at(item))
    }
}

/// Returns the line of the first value of another type than `keys` says from there on, and what is wrong with it.
fn mistyped(value: &Value, keys: &str, from: usize) -> Option<(usize, String)> {
    let (before, rest) = keys.split_at(from);
    let wrong = |expected: &str| {
        let place = before.trim_end_matches('.');
        Some((value.start.line, format!("`{place}`: expected {expected}, found {}", value.kind())))
    };
    if value.data == Data::Null {
        return None;
    }
    if rest.is_empty() {
        return if before.ends_with('.') || value.text().is_some() { None } else { wrong("a string") };
    }
    if let Some(rest) = rest.strip_prefix("[]") {
        let Some(items) = value.list() else { return wrong("a list") };
        let next = from + 2 + usize::from(rest.starts_with('.'));
        return items.iter().find_map(|item| mistyped(item, keys, next));
    }
    if value.mapping().is_none() {
        return wrong("a mapping");
    }
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    let next = end + usize::from(rest[end..].starts_with('.'));
    mistyped(value.get(&rest[..end])?, keys, from + next)
}

/// What a scan comes to.
#[derive(Clone, Default)]
pub(super) struct Scan {
    pub(super) objects: Vec<Document>,
    pub(super) unread: Vec<Unread>,
}

/// Begins to search a tree for the YAML files that can hold an object that matters.
pub(crate) fn candidates(tree: &dyn Tree) -> Result<Search<'_>> {
    // An escape, or UTF-16, may hide any of them.
    let odd: [&'static [u8]; 3] = [b"\\", b"\xff\xfe", b"\xfe\xff"];
    let marks: Vec<&'static [u8]> = marks().map(str::as_bytes).chain(odd).collect();
    tree.files_with(SEARCHED, &marks)
}

/// Returns what stands in every object that matters, and in few other files.
fn marks() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(version, _)| *version).chain(BINARY).chain([OPTIONS])
}

/// Returns whether a text holds something as it stands, or as a reader of YAML may take it, as far as names of objects go:
/// of UTF-16 every second byte, and escapes resolved.
fn holds(text: &str, is_it: impl Fn(&str) -> bool) -> bool {
    is_it(text) || text.contains(['\\', '\0']) && is_it(&unescaped(&text.replace('\0', "")))
}

/// Returns whether a text that cannot be read may declare an object that matters: it names one outside of comments.
fn declares(text: &str) -> bool {
    holds(text, |text| {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
        let text = lines.join("\n");
        // `kind: !!binary QXBw…`, perhaps with an anchor before the tag.
        let has_tag = |text: &str| BINARY.iter().any(|tag| text.contains(tag));
        let is_hidden = text.split("kind").skip(1).any(|rest| rest.split_whitespace().take(3).any(has_tag));
        let names = |(version, kinds): &(&str, &[KindFields])| {
            (has_tag(&text) || text.contains(version)) && kinds.iter().any(|(kind, _)| is_hidden || text.contains(kind))
        };
        // Values may be more than what is read of them, as with anchors.
        KINDS.iter().filter(|(version, _)| *version != RELEASES).any(names)
            || text.contains(OPTIONS) && (is_hidden || text.contains("ConfigMap"))
    })
}

/// Returns the documents of a text that may declare objects that matter.
pub(super) fn declaring(text: &str) -> impl Iterator<Item = &str> {
    let is_it = |document: &&str| holds(document, |text| marks().any(|mark| text.contains(mark)));
    documents(text).map(|(_, document)| document).filter(is_it)
}

/// Reads the objects that matter in a file: once in a run, for both sides of a change and after each round of builds.
fn read(file: &str, bytes: &[u8], is_template: bool) -> Rc<Scan> {
    thread_local! {
        static READ: RefCell<HashMap<String, Rc<Scan>>> = RefCell::default();
    }

    let key = format!("{} {is_template} {file}", sha256_hex(bytes));
    let known = READ.with_borrow(|read| read.get(&key).cloned());
    known.unwrap_or_else(|| {
        let mut scan = Scan::default();
        scan.file(file, bytes, is_template);
        let scan = Rc::new(scan);
        READ.with_borrow_mut(|read| read.insert(key, scan.clone()));
        scan
    })
}

/// Reads every object that matters in these files.
pub(super) fn scan(tree: &dyn Tree, candidates: &BTreeSet<String>) -> Result<Scan> {
    let mut scan = Scan::default();
    for file in candidates {
        if tree.entry(file)? == Some(Entry::Link) {
            continue;
        }
        match tree.read(file) {
            Ok(bytes) => scan.extend(read(file, &bytes, is_of_chart(file, tree)?).as_ref().clone()),
            Err(failure) => {
                let why = Why::Away(failure.hints);
                scan.pass(file, 0, failure.message, why);
            }
        }
    }
    Ok(scan)
}

/// Returns whether a search looks into a file, by its name.
pub(super) fn is_searched(path: &str) -> bool {
    SEARCHED.iter().any(|end| path.ends_with(end))
}

impl Scan {
    pub(super) fn extend(&mut self, other: Scan) {
        self.objects.extend(other.objects);
        self.unread.extend(other.unread);
    }

    fn pass(&mut self, file: &str, line: usize, message: impl Into<String>, why: Why) {
        self.unread.push(Unread { file: file.to_owned(), line, message: message.into(), why });
    }

    fn file(&mut self, file: &str, bytes: &[u8], is_template: bool) {
        let text = String::from_utf8_lossy(bytes);
        if matches!(text, Cow::Borrowed(_)) && bytes.len() <= FILE.most {
            self.text(file, &text, OBJECTS.most, is_template);
        } else if !documents(&text).any(|(_, document)| declares(document)) {
        } else if bytes.len() > FILE.most {
            self.pass(file, 0, FILE.more(), Why::Limit);
        } else {
            self.unread.push(Unread::invalid(file, 0, "not UTF-8", is_template));
        }
    }

    /// Reads the documents of a text, of which at most so many may matter. With `is_template`, all are.
    pub(super) fn text(&mut self, file: &str, text: &str, most: usize, is_template: bool) {
        let first = self.objects.len() + self.unread.len();
        for (before, document) in documents(text) {
            if !holds(document, |text| marks().any(|mark| text.contains(mark))) {
                continue;
            }
            if self.objects.len() + self.unread.len() - first >= most {
                let message = format!("the file contains more than {most} objects: the rest is not read");
                return self.pass(file, before + 1, message, Why::Limit);
            }
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
        // kustomize takes any kind for one.
        if let Some(items) = value.get("items").and_then(Value::list)
            && value.get("kind").is_some()
        {
            if items.len() > OBJECTS.most {
                return self.pass(file, value.start.line, OBJECTS.more(), Why::Limit);
            }
            for item in items {
                self.object(file, item.clone(), is_template);
            }
        }
        if let Some((object, texts)) = identify(file, &value) {
            let home = path::parent(file).to_owned();
            let found = Document { object, value, home, is_template };
            match found.mistyped(&found.value, texts) {
                Some(wrong) => self.unread.push(wrong),
                None => self.objects.push(found),
            }
        }
    }
}

/// Returns what an object is, if it matters, and which texts it has.
fn identify(file: &str, value: &Value) -> Option<(Object, &'static str)> {
    let text = |keys: &[&str]| value.at(keys).and_then(Value::scalar);
    let version = text(&["apiVersion"])?;
    let kind = text(&["kind"])?;
    let name = text(&["metadata", "name"]).unwrap_or_default();
    if kind == RELEASE && text(&["spec", "chart", "spec", "sourceRef", "kind"]).as_deref() != Some("GitRepository") {
        return None;
    }
    let known = KINDS.iter().find(|(known, _)| version.starts_with(known));
    let known = known.and_then(|(_, kinds)| kinds.iter().find(|(known, _)| *known == kind));
    let is_options = (&*kind, &*name) == ("ConfigMap", OPTIONS);
    let texts = known.map(|(_, texts)| *texts).or(is_options.then_some(""))?;
    let namespace = text(&["metadata", "namespace"]).unwrap_or_default();
    Some((Object { file: file.to_owned(), line: value.start.line, kind, namespace, name, ..Object::default() }, texts))
}
