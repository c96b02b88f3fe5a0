//! Finds the objects of engines in the YAML files of a tree. An object matters if an engine reads its kind.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::kustomization::{FileDocument, Located, Mistyped, ObjectError, Value, documents, read_object, unescaped};
use crate::message::failure::Result;
use crate::message::position::Position;
use crate::os::limits::{FILE, OBJECTS};
use crate::record::sha256_hex;
use crate::tree::{Entry, Search, Tree, path};

use super::unread::{Why, is_chart_template};
use super::{BuildSettings, EngineName, LocatedText, ObjectRef, Target, TargetLocation, Unread, target_dir};

/// A kind of objects that is read.
#[derive(Clone, Copy)]
pub(crate) struct ScannedKind {
    /// A text that each such object contains: the beginning of its `apiVersion`, or its name.
    mark: &'static str,
    is_version: bool,
    kind: &'static str,
    /// Whether an unreadable document may be one.
    reports_unreadable: bool,
    /// Whether an object is relevant, or the error in it.
    matters: fn(&Value) -> Result<bool, Mistyped>,
}

impl ScannedKind {
    /// A kind whose `apiVersion` begins with `version`. `matters` tells whether an object is relevant.
    pub(super) const fn of(
        version: &'static str,
        kind: &'static str,
        matters: fn(&Value) -> Result<bool, Mistyped>,
    ) -> ScannedKind {
        ScannedKind { mark: version, is_version: true, kind, reports_unreadable: true, matters }
    }

    /// The kind of the one object with this name.
    pub(super) const fn named(name: &'static str, kind: &'static str) -> ScannedKind {
        ScannedKind { is_version: false, ..ScannedKind::of(name, kind, ScannedKind::any) }
    }

    /// A kind that is not searched for in unreadable documents, because only some of its objects matter.
    pub(super) const fn ignoring_unreadable(self) -> ScannedKind {
        ScannedKind { reports_unreadable: false, ..self }
    }

    /// Whether an object of this kind has its mark.
    fn is_marked(&self, version: &str, name: &str) -> bool {
        if self.is_version { version.starts_with(self.mark) } else { name == self.mark }
    }

    /// For kinds of which every object is relevant.
    pub(super) fn any(_: &Value) -> Result<bool, Mistyped> {
        Ok(true)
    }
}

/// The kinds that any engine reads.
fn kinds() -> impl Iterator<Item = &'static ScannedKind> {
    EngineName::ALL.iter().flat_map(|engine| engine.kinds())
}

/// An object of which only the `spec` is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Spec<T> {
    pub(super) spec: T,
}

/// `true` if an object has the type `T`, else the error.
pub(super) fn is_readable<T: DeserializeOwned>(value: &Value) -> Result<bool, Mistyped> {
    value.read::<T>().map(|_| true)
}

/// Types of objects and their parts. A missing field has its default; fields that are not declared are not read.
macro_rules! models {
    ($($(#[$of:meta])* $name:ident { $($(#[$on:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$of])*
        #[derive(Debug, Default, serde::Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        pub(crate) struct $name {
            $($(#[$on])* pub(in crate::targets) $field: $type,)*
        }
    )*};
}
pub(super) use models;

/// How the names of the files end that are searched.
const SEARCHED: &[&str] = &[".yaml", ".yml", ".json"];

/// The ends of the tag of base64, which hides the content of a text.
const BINARY: [&str; 2] = ["!binary", ":binary"];

/// An object that matters.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(super) object: ObjectRef,
    pub(super) value: Value,
    /// The directory from which it is deployed: that of its file, or of the build that makes it.
    pub(super) home: String,
    /// Whether something else makes the object of it first.
    pub(super) is_template: bool,
    /// The object in its file, as JSON, of which a build made this one. `None` if none did.
    pub(super) written: Option<Rc<str>>,
}

impl Document {
    /// The report of an error at a line of the object.
    pub(super) fn error_at(&self, line: usize, message: &str) -> Unread {
        let ObjectRef { kind, file, .. } = &self.object;
        let message = format!("{kind} {}: {message}", self.object.full_name());
        Unread::invalid(file, line, message, self.is_template)
    }

    /// Deserializes the object. One with an error has the default.
    pub(super) fn read<T: DeserializeOwned + Default>(&self) -> T {
        // The scan has reported the error.
        self.value.read().unwrap_or_default()
    }

    /// Deserializes its `spec`.
    pub(super) fn spec<T: DeserializeOwned + Default>(&self) -> T {
        self.read::<Spec<T>>().spec
    }

    /// The report of a value with a wrong type.
    pub(super) fn mistyped(&self, wrong: &Mistyped) -> Unread {
        self.error_at(wrong.start.line, &wrong.to_string())
    }

    /// The target that it defines, of which the engine already knows location and build. Looks for the components in
    /// the tree.
    pub(super) fn target(
        &self,
        tree: &dyn Tree,
        engine: EngineName,
        spot: Position,
        location: TargetLocation,
        mut build: BuildSettings,
    ) -> Result<Target> {
        if let TargetLocation::Local(dir) = &location {
            let may_be_missing = build.ignore_missing_components;
            for component in &mut build.components {
                target_dir::find_component(tree, engine, &dir.path, component, may_be_missing)?;
                build.more_inputs.extend(component.pattern_base(engine, &dir.path));
            }
        }
        // An object that deploys another directory than before counts as changed, so its digest has the location. The
        // same holds for options, which another object has.
        let location_text = match &location {
            TargetLocation::External(why) | TargetLocation::Templated(why) => why.clone(),
            TargetLocation::Local(dir) => {
                let artifact = dir.artifact.as_ref().map(|artifact| artifact.fingerprint());
                format!("{} {:?} {artifact:?}", dir.path, dir.revision)
            }
        };
        let json = self.value.json().to_string();
        let digest = sha256_hex(format!("{json} {location_text} {:?}", build.options).as_bytes());
        let Document { object, home, written, .. } = self.clone();
        // The sources of a target of Flux are added by its caller. Which build changes the object is not known yet.
        let (manifest, sources, changed_by) = (json.into(), Vec::new(), None);
        Ok(Target { engine, object, digest, sources, manifest, written, spot, location, build, home, changed_by })
    }

    /// The position of its beginning.
    pub(super) fn spot(&self) -> Position {
        Position::new(self.object.line, 1)
    }

    /// Whether it contains options of an engine.
    pub(super) fn has_options(&self) -> bool {
        EngineName::ALL.iter().any(|engine| engine.has_options(&self.object.kind))
    }

    /// A text of the object, with its location.
    pub(super) fn text(&self, text: Located<String>) -> LocatedText {
        LocatedText { position: text.start(), text: text.value, file: self.object.file.clone() }
    }
}

/// The result of a scan.
#[derive(Clone, Default)]
pub(super) struct Scan {
    pub(super) objects: Vec<Document>,
    pub(super) unread: Vec<Unread>,
    /// Whether the scanned file is a template, of which something else makes the objects.
    is_template: bool,
}

/// Begins to search a tree for the YAML files that can hold an object that matters.
pub(crate) fn candidates(tree: &dyn Tree) -> Result<Search<'_>> {
    // An escape, or UTF-16, may hide any of them.
    let odd: [&'static [u8]; 3] = [b"\\", b"\xff\xfe", b"\xfe\xff"];
    let marks: Vec<&'static [u8]> = MARKS.iter().map(|mark| mark.as_bytes()).chain(odd).collect();
    tree.files_with(SEARCHED, &marks)
}

/// Texts of which every object that matters has one, and few other files.
static MARKS: LazyLock<BTreeSet<&'static str>> =
    LazyLock::new(|| kinds().map(|kind| kind.mark).chain(BINARY).collect());

/// Whether `is_match` accepts a text as written, or as a parser of YAML may decode it: no encoding may hide the name of
/// an object.
fn matches_decoded(text: &str, is_match: impl Fn(&str) -> bool) -> bool {
    // UTF-16 has a zero in every second byte, and an escape may hide any letter.
    is_match(text) || text.contains(['\\', '\0']) && is_match(&unescaped(&text.replace('\0', "")))
}

/// Whether a text that cannot be read may declare an object that matters: it names one outside of comments. Only then
/// its error is reported.
fn declares(text: &str) -> bool {
    matches_decoded(text, |text| {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
        let text = lines.join("\n");
        let is_hidden = text.split("kind").skip(1).any(|rest| rest.split_whitespace().take(3).any(has_tag));
        // Without `HelmRelease`: only one with a chart in git matters, which an unreadable text does not show, and its
        // values may have merge keys, which are refused.
        kinds().filter(|kind| kind.reports_unreadable).any(|kind| {
            let is_marked = kind.is_version && has_tag(&text) || text.contains(kind.mark);
            is_marked && (is_hidden || text.contains(kind.kind))
        })
    })
}

/// Whether a text has a tag of YAML for binary values.
fn has_tag(text: &str) -> bool {
    // `kind: !!binary QXBw…`, perhaps with an anchor before the tag.
    BINARY.iter().any(|tag| text.contains(tag))
}

/// The documents of a text that may declare objects that matter.
pub(super) fn declaring(text: &str) -> impl Iterator<Item = FileDocument<'_>> {
    documents(text)
        .filter(|document| matches_decoded(document.text, |text| MARKS.iter().any(|mark| text.contains(mark))))
}

/// Reads the objects that matter in a file, once in a run.
fn scan_file(file: &str, bytes: &[u8], is_template: bool) -> Rc<Scan> {
    thread_local! {
        static KNOWN: RefCell<HashMap<String, Rc<Scan>>> = RefCell::default();
    }

    // Both sides of a change, and each round of builds, ask for the same files.
    let key = format!("{} {is_template} {file}", sha256_hex(bytes));
    let known = KNOWN.with_borrow(|known| known.get(&key).cloned());
    known.unwrap_or_else(|| {
        let mut scan = Scan { is_template, ..Scan::default() };
        scan.add_bytes(file, bytes);
        let scan = Rc::new(scan);
        KNOWN.with_borrow_mut(|known| known.insert(key, scan.clone()));
        scan
    })
}

/// Reads every object that matters in these files of a tree.
pub(super) fn scan(tree: &dyn Tree, files: &BTreeSet<String>) -> Result<Scan> {
    let mut scan = Scan::default();
    for file in files {
        // A link has no text of its own. The file that it leads to is scanned under its own path.
        if tree.entry(file)? == Some(Entry::Link) {
            continue;
        }
        match tree.read(file) {
            Ok(bytes) => scan.extend(scan_file(file, &bytes, is_chart_template(file, tree)?).as_ref().clone()),
            Err(failure) => scan.unread.push(Unread::new(file, 0, failure.message, Why::Unavailable(failure.hints))),
        }
    }
    Ok(scan)
}

/// Whether a search looks into a file, by its name.
pub(super) fn is_searched(path: &str) -> bool {
    SEARCHED.iter().any(|end| path.ends_with(end))
}

impl Scan {
    pub(super) fn extend(&mut self, other: Scan) {
        self.objects.extend(other.objects);
        self.unread.extend(other.unread);
    }

    /// Adds the objects of a file; or an error, if the file is not UTF-8 or too large, and may have some.
    fn add_bytes(&mut self, file: &str, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        if matches!(text, Cow::Borrowed(_)) && bytes.len() <= FILE.most {
            self.add_text(file, &text, OBJECTS.most);
        } else if !documents(&text).any(|document| declares(document.text)) {
        } else if bytes.len() > FILE.most {
            self.unread.push(Unread::new(file, 0, FILE.more(), Why::Limit));
        } else {
            self.unread.push(Unread::invalid(file, 0, "not UTF-8", self.is_template));
        }
    }

    /// Adds the objects of a text of a file, at most so many: one text must not fill the memory.
    pub(super) fn add_text(&mut self, file: &str, text: &str, most: usize) {
        // Documents that do not matter are free: the limit counts the others.
        let first = self.objects.len() + self.unread.len();
        for document in declaring(text) {
            if self.objects.len() + self.unread.len() - first >= most {
                let message = format!("the file contains more than {most} objects: the rest is not read");
                return self.unread.push(Unread::new(file, document.before + 1, message, Why::Limit));
            }
            match read_object(document) {
                // An object of another kind adds nothing, so it does not count for the limit.
                Ok(Some(value)) => self.add_object(file, value),
                // An empty document: the mark is in a comment.
                Ok(None) => {}
                // Broken, but the mark is in a comment, or the text names no kind that is reported.
                Err(_) if !declares(document.text) => {}
                Err(ObjectError { line, message }) => {
                    self.unread.push(Unread::invalid(file, line, message, self.is_template))
                }
            }
        }
    }

    /// Adds an object if it matters, and those in a list.
    fn add_object(&mut self, file: &str, value: Value) {
        // kustomize takes an object of any kind with `items` for a list.
        if let Some(items) = value.get("items").and_then(Value::list)
            && value.get("kind").is_some()
        {
            if items.len() > OBJECTS.most {
                return self.unread.push(Unread::new(file, value.start.line, OBJECTS.more(), Why::Limit));
            }
            for item in items {
                self.add_object(file, item.clone());
            }
        }
        if let Some((object, kind)) = identify(file, &value) {
            let home = path::parent(file).to_owned();
            let document = Document { object, value, home, is_template: self.is_template, written: None };
            match (kind.matters)(&document.value) {
                Ok(true) => self.objects.push(document),
                Ok(false) => {}
                Err(wrong) => self.unread.push(document.mistyped(&wrong)),
            }
        }
    }
}

/// The identity of an object that matters, and its kind among those that engines read; `None` for any other object.
pub(super) fn identify(file: &str, value: &Value) -> Option<(ObjectRef, &'static ScannedKind)> {
    let text = |keys: &[&str]| value.at(keys).and_then(Value::scalar);
    let (version, kind) = (text(&["apiVersion"])?, text(&["kind"])?);
    let [namespace, name] = ["namespace", "name"].map(|key| text(&["metadata", key]).unwrap_or_default());
    let known = kinds().find(|known| known.kind == kind && known.is_marked(&version, &name))?;
    let object = ObjectRef::of(file, value.start.line, &kind, name);
    Some((ObjectRef { namespace, ..object }, known))
}
