//! The field table applied to a document, as Go's `encoding/json` would decode it.

mod decode;
mod keys;
mod report;
mod strings;
mod whereabouts;

pub(super) use keys::equal;

use super::fields::KUSTOMIZATION;
use crate::limits::{ENTRIES, NODES};

use super::yaml::{Dialect, NodeKind, Stream, Type};
use super::{
    Kind, Kustomization, Note, NoteKind, Problem, ProblemKind, Reference, Refused, Reshaping,
};

pub(super) use decode::{Reader, join};
pub(super) use strings::base_name;
pub(super) use whereabouts::{Place, Whereabouts};

/// The versions that go with the kinds (api/types/kustomization.go).
const KUSTOMIZATION_VERSION: &str = "kustomize.config.k8s.io/v1beta1";
const COMPONENT_VERSION: &str = "kustomize.config.k8s.io/v1alpha1";

/// Reads a kustomization file.
///
/// # Errors
///
/// Returns everything that kustomize would refuse, in the order of the text. Whether a reference leads anywhere is
/// not looked at.
pub fn read(bytes: &[u8]) -> Result<Kustomization, Refused<Kustomization>> {
    let stream = parse(bytes, 1)?;
    let mut found = Found::default();
    let empty = |found: &mut Found| {
        found.problems.push(Problem {
            line: 1,
            column: 1,
            field: String::new(),
            message: "kustomization.yaml is empty".to_owned(),
            hints: vec!["add a field; `resources: []` is enough".to_owned()],
            kind: ProblemKind::Empty,
        });
    };
    let document = stream.documents.first();
    if let Some((document, root)) = document.and_then(|d| Some((d, d.root()?))) {
        let whereabouts = Whereabouts::file(&stream);
        let mut reader = Reader::new(document, 0, Dialect::Kustomization, whereabouts, &mut found);
        let root = Place::root(root);
        let is_null = document.scalar_type(root.node, Dialect::Kustomization) == Some(Type::Null);
        let filled = !is_null && reader.root(&KUSTOMIZATION, root.clone());
        let globals = reader.folded(&root, &["helmGlobals"]);
        if globals.is_some_and(|globals| !reader.is_null(globals.node)) {
            found.refuse_old_homes();
        }
        if !filled && found.problems.is_empty() {
            empty(&mut found);
        }
        found.check_kind();
    } else {
        empty(&mut found);
    }
    if let Some(rest) = stream.rest {
        let (line, column) = stream.position(rest);
        found.notes.push(Note {
            line,
            column,
            field: String::new(),
            kind: NoteKind::ExtraDocument,
            message: "kustomize reads the first document only, not this one".to_owned(),
        });
    }
    found.finish(|found| Kustomization {
        kind: found.kind,
        references: found.references,
        notes: found.notes,
        build_metadata: found.build_metadata,
    })
}

/// The fields that make resources, or change what is in them; and whether they change annotations only.
const RESHAPING: [(&str, bool); 16] = [
    ("commonAnnotations", true),
    ("components", false),
    ("configMapGenerator", false),
    ("configurations", false),
    // With them, names, labels and annotations reach any field.
    ("crds", false),
    ("generators", false),
    ("helmChartInflationGenerator", false),
    ("helmCharts", false),
    // Only where they name fields of their own.
    ("labels", false),
    ("patches", false),
    ("patchesJson6902", false),
    ("patchesStrategicMerge", false),
    ("replacements", false),
    ("secretGenerator", false),
    ("transformers", false),
    ("vars", false),
];

/// Returns the fields of a kustomization that make resources of their own or change what is in others, in the order
/// of the text: what is built there is not what stands in the files that it names. Names do not count, and labels
/// only where they go elsewhere than usual.
#[must_use]
pub fn reshaping(bytes: &[u8]) -> Vec<Reshaping> {
    let Ok(stream) = parse(bytes, 1) else {
        return Vec::new();
    };
    let Some((document, root)) = stream
        .documents
        .first()
        .and_then(|document| Some((document, document.root()?)))
    else {
        return Vec::new();
    };
    let mut scratch = Found::default();
    let whereabouts = Whereabouts::file(&stream);
    let dialect = Dialect::Kustomization;
    let mut reader = Reader::new(document, 0, dialect, whereabouts, &mut scratch);
    let mut found = Vec::new();
    for entry in reader.entries(&Place::root(root), "").unwrap_or_default() {
        let Some((field, annotations_only)) = RESHAPING
            .into_iter()
            .find(|(field, _)| keys::equal(field, &entry.key))
        else {
            continue;
        };
        let is_empty = match &document.resolved(entry.place.node).kind {
            NodeKind::Sequence(items) => items.is_empty(),
            NodeKind::Mapping(pairs) => pairs.is_empty(),
            _ => true,
        };
        if !is_empty && (field != "labels" || names_fields(&mut reader, &entry.place)) {
            let (line, column) = reader.whereabouts.start(document.node(entry.key_node));
            found.push(Reshaping {
                field,
                annotations_only,
                line,
                column,
            });
        }
    }
    found
}

/// Returns whether one of the labels names the fields that it goes to.
fn names_fields(reader: &mut Reader<'_>, labels: &Place) -> bool {
    let items = reader.items(labels);
    items
        .iter()
        .any(|item| reader.folded(item, &["fields"]).is_some())
}

/// Reads bytes as YAML, twice.
pub(super) fn parse(bytes: &[u8], limit: usize) -> Result<Stream<'_>, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid = String::from_utf8_lossy(bytes.get(..error.valid_up_to()).unwrap_or_default());
        let line_start = valid.rfind('\n').map_or(0, |at| at + 1);
        Problem {
            line: valid.matches('\n').count() + 1,
            column: valid.get(line_start..).map_or(0, |s| s.chars().count()) + 1,
            field: String::new(),
            message: "not UTF-8".to_owned(),
            hints: vec!["save the file as UTF-8".to_owned()],
            kind: ProblemKind::NotUtf8,
        }
    })?;
    super::libyaml_check::read(text, limit).map_err(|error| {
        let problem = |message: String, hint: Option<&str>, kind| Problem {
            line: error.line,
            column: error.column,
            field: String::new(),
            message,
            hints: hint.map(str::to_owned).into_iter().collect(),
            kind,
        };
        if error.is_too_large {
            return problem(error.message.clone(), Some(NODES.hint), ProblemKind::TooLarge);
        }
        conflict(text).unwrap_or_else(|| {
            let is_template = ["{{", "{%"].iter().any(|action| text.contains(action));
            let hint = "if it is a template, which other files are made of, add its directory to `exclude` in `.kustomize-localize`";
            let message = format!("not valid YAML: {}", error.message);
            problem(message, is_template.then_some(hint), ProblemKind::Syntax)
        })
    })
}

/// Finds the markers that a merge leaves where both sides changed the same lines.
fn conflict(text: &str) -> Option<Problem> {
    let begin = text.lines().position(|line| line.starts_with("<<<<<<< "))?;
    let mut rest = text.lines().skip(begin);
    let is_conflict =
        rest.any(|line| line == "=======") && rest.any(|line| line.starts_with(">>>>>>> "));
    is_conflict.then(|| Problem {
        line: begin + 1,
        column: 1,
        field: String::new(),
        message: "conflict markers: two sides of a merge changed the same lines".to_owned(),
        hints: vec![
            "choose what stays, remove the lines `<<<<<<<`, `=======` and `>>>>>>>`, and `git add` the file"
                .to_owned(),
        ],
        kind: ProblemKind::Syntax,
    })
}

impl<T: Default> From<Problem> for Refused<T> {
    fn from(problem: Problem) -> Self {
        Refused {
            problems: vec![problem],
            read: T::default(),
        }
    }
}

/// What has been found so far.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub references: Vec<Reference>,
    pub notes: Vec<Note>,
    pub problems: Vec<Problem>,
    kind: Kind,
    build_metadata: Vec<String>,
    declared_kind: Option<Declared>,
    declared_version: Option<Declared>,
    /// Whether a plugin configuration is code, which annotations can make another.
    pub has_code: bool,
}

/// The value of `kind` or `apiVersion`, with its position.
#[derive(Debug)]
struct Declared {
    value: String,
    field: String,
    line: usize,
    column: usize,
}

impl Found {
    /// `EnforceFields`: both may be missing or empty.
    fn check_kind(&mut self) {
        let kind = self
            .declared_kind
            .as_ref()
            .filter(|kind| !kind.value.is_empty());
        let version = self
            .declared_version
            .as_ref()
            .filter(|version| !version.value.is_empty());
        let (parsed, wanted) = match kind.map_or("Kustomization", |kind| &kind.value) {
            "Component" => (Some(Kind::Component), COMPONENT_VERSION),
            "Kustomization" => (Some(Kind::Kustomization), KUSTOMIZATION_VERSION),
            _ => (None, KUSTOMIZATION_VERSION),
        };
        let mut wrong = |declared: &Declared, message: String, hint: String| {
            self.problems.push(Problem {
                line: declared.line,
                column: declared.column,
                field: declared.field.clone(),
                message,
                hints: vec![hint],
                kind: ProblemKind::WrongKind,
            });
        };
        if let (None, Some(kind)) = (parsed, kind) {
            wrong(
                kind,
                format!(
                    "kind should be Kustomization or Component, not `{}`",
                    kind.value
                ),
                "write `kind: Kustomization`, or remove the line".to_owned(),
            );
        }
        if let Some(version) = version.filter(|version| version.value != wanted) {
            let hint = if version.value.starts_with("kustomize.toolkit.fluxcd.io/") {
                "this is a Flux object; a file with this name must be a kustomization of kustomize"
                    .to_owned()
            } else {
                format!("write `apiVersion: {wanted}`, or remove the line")
            };
            let kind = kind.map_or("Kustomization", |kind| &kind.value);
            wrong(
                version,
                format!("apiVersion for {kind} should be {wanted}"),
                hint,
            );
        }
        self.kind = parsed.unwrap_or_default();
    }

    /// Refuses homes that kustomize does not read beside `helmGlobals`, whatever stands there.
    fn refuse_old_homes(&mut self) {
        let homes = self.notes.iter().filter(|note| {
            matches!(note.kind, NoteKind::ChartHome { .. })
                && note.field.starts_with("helmChartInflationGenerator[")
        });
        self.problems.extend(homes.map(|note| Problem {
            line: note.line,
            column: note.column,
            field: note.field.clone(),
            message: "kustomize does not read it beside `helmGlobals`".to_owned(),
            hints: vec!["leave it out, or write it as `helmGlobals.chartHome`".to_owned()],
            kind: ProblemKind::Entry,
        }));
    }

    /// Returns whether there is room for one more reference, note or problem.
    pub(super) fn has_room(&mut self) -> bool {
        let count = self.references.len() + self.notes.len() + self.problems.len();
        if count == ENTRIES.most {
            self.problems.push(Problem {
                line: 0,
                column: 0,
                field: String::new(),
                message: ENTRIES.more(),
                hints: vec![ENTRIES.hint.to_owned()],
                kind: ProblemKind::TooLarge,
            });
        }
        count < ENTRIES.most
    }

    /// Puts everything in the order of the text; the error is what kustomize refuses.
    pub(super) fn finish<T>(mut self, read: impl FnOnce(Self) -> T) -> Result<T, Refused<T>> {
        self.references.sort_by_key(|r| (r.line, r.column));
        self.notes.sort_by_key(|n| (n.line, n.column));
        let mut problems = std::mem::take(&mut self.problems);
        if let Some(one) = problems
            .iter()
            .find(|one| one.kind == ProblemKind::TooLarge)
        {
            problems = vec![one.clone()];
            self.references.clear();
            self.notes.clear();
        }
        let read = read(self);
        if problems.is_empty() {
            return Ok(read);
        }
        problems.sort_by_key(|p| (p.line, p.column));
        problems.dedup();
        Err(Refused { problems, read })
    }
}
