//! The field table applied to a document.

use std::collections::HashMap;

use granit_parser::ScalarStyle;

use super::fields::{Role, TREE, Tree};
use super::yaml::{self, Data, Place, Stream, Value};
use super::{
    Accepts, GeneratorKey, Kind, Kustomization, Note, NoteKind, Problem, ProblemKind, Reference, Refused, Spot, plugin,
};
use crate::message::failure::nearest;
use crate::message::redact;
use crate::os::limits::{ENTRIES, PATH};

/// Reads a kustomization file.
///
/// Returns what keeps its references from being read, in the order of the text. Whether a reference leads anywhere is not
/// looked at.
pub fn read(bytes: &[u8]) -> Result<Kustomization, Refused> {
    let stream = parse(bytes, 1)?;
    let mut reader = Reader::new(stream.text);
    if let Some(root) = stream.documents.first().filter(|root| root.data != Data::Null) {
        reader.has_globals = root.folded_field("helmGlobals").is_some();
        reader.visit(&TREE, root, "");
        reader.check_kind(root);
    }
    let is_filled = |(key, value): &(String, Value)| {
        value.data != Data::Null && !["kind", "apiVersion"].iter().any(|name| is_same_key(name, key))
    };
    let mut pairs = stream.documents.iter().filter_map(Value::mapping).flatten();
    if reader.problems.is_empty() && !pairs.any(is_filled) {
        let hint = "add a field; `resources: []` is enough";
        reader.problem_of(ProblemKind::Empty, (1, 1), "", "kustomization.yaml is empty", hint);
    }
    if let Some(rest) = stream.rest {
        reader.note(rest, "", NoteKind::ExtraDocument);
    }
    reader.finish()
}

/// Reads a file that is named in `generators`, `transformers` or `validators`; all its documents count.
pub fn read_plugin(bytes: &[u8]) -> Result<Kustomization, Refused> {
    let stream = parse(bytes, usize::MAX)?;
    let mut reader = Reader::new(stream.text);
    plugin::read_objects(&stream, "", &mut reader);
    reader.finish()
}

/// Returns the first field of a kustomization besides those that only list resources and name them: with it, what is built
/// may be another thing than what stands in the files that are named. With the line and column of its key.
pub fn reshaping(bytes: &[u8]) -> Option<(String, usize, usize)> {
    const LISTING: [&str; 8] =
        ["apiVersion", "kind", "metadata", "buildMetadata", "resources", "bases", "namePrefix", "nameSuffix"];
    let stream = parse(bytes, 1).ok()?;
    let mut pairs = stream.documents.first()?.mapping()?.iter();
    let (key, value) = pairs.find(|(key, value)| {
        let is_empty = value.data == Data::Null || value.list().is_some_and(<[_]>::is_empty);
        !is_empty && !LISTING.iter().any(|name| is_same_key(name, key))
    })?;
    Some((key.clone(), value.key.0, value.key.1))
}

/// Reads bytes as YAML.
fn parse(bytes: &[u8], limit: usize) -> Result<Stream<'_>, Problem> {
    let problem = |place, message: &str, hint: &str| Problem::new(ProblemKind::Other, place, message, hint);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        problem((line, 1), "not UTF-8", "save the file as UTF-8")
    })?;
    yaml::read(text, limit).map_err(|error| {
        let line = text.lines().position(|line| line.starts_with("<<<<<<< "));
        let is_template = ["{{", "{%"].iter().any(|action| text.contains(action));
        if error.kind == ProblemKind::TooLarge {
            error
        } else if let Some(line) = line.filter(|_| text.contains("\n>>>>>>> ")) {
            let message = "conflict markers: two sides of a merge changed the same lines";
            let hint = "choose what stays, remove the lines `<<<<<<<`, `=======` and `>>>>>>>`, and `git add` the file";
            problem((line + 1, 1), message, hint)
        } else {
            let hint = "if it is a template, add its directory to `exclude` in `.kustomize-localize`";
            let hint = if is_template { hint } else { "" };
            Problem { hint: hint.to_owned(), ..error.context("not valid YAML") }
        }
    })
}

impl Problem {
    /// A problem of the whole file. `hint` may be empty.
    pub(super) fn new(kind: ProblemKind, (line, column): Place, message: impl Into<String>, hint: &str) -> Self {
        Problem { line, column, field: String::new(), message: message.into(), hint: hint.to_owned(), kind }
    }

    pub(super) fn context(self, context: &str) -> Self {
        Problem { message: format!("{context}: {}", self.message), ..self }
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Refused { problems: vec![problem], read: Kustomization::default() }
    }
}

/// Applies a table to a document, or an object in it.
#[derive(Default)]
pub(super) struct Reader<'a> {
    /// The whole file.
    pub text: &'a str,
    /// Stands before every field.
    pub prefix: String,
    has_globals: bool,
    read: Kustomization,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Reader { text, ..Reader::default() }
    }

    /// Returns whether there is room for one more reference, note or problem.
    fn has_room(&mut self) -> bool {
        let count = self.read.references.len() + self.read.notes.len() + self.problems.len();
        if count == ENTRIES.most {
            self.problems.push(Problem::new(ProblemKind::TooLarge, (0, 0), ENTRIES.more(), ENTRIES.hint));
        }
        count < ENTRIES.most
    }

    /// Puts everything in the order of the text.
    fn finish(self) -> Result<Kustomization, Refused> {
        let Reader { mut read, mut problems, .. } = self;
        read.references.sort_by_key(|r| (r.line, r.column));
        read.notes.sort_by_key(|n| (n.line, n.column));
        if let Some(one) = problems.iter().find(|one| one.kind == ProblemKind::TooLarge) {
            return Err(one.clone().into());
        }
        if problems.is_empty() {
            return Ok(read);
        }
        problems.sort_by_key(|p| (p.line, p.column));
        problems.dedup();
        Err(Refused { problems, read })
    }

    /// Visits everything on the way to a field of the table.
    pub(super) fn visit(&mut self, tree: &Tree, value: &Value, field: &str) {
        let leads_on = !tree.names.is_empty();
        if tree.role == Some(Role::Other) || (value.data == Data::Null && leads_on) {
            return;
        }
        if let Some((place, what, hint)) = plugin::odd_here(value) {
            return self.problem(place, field, format!("{what} on the way to a reference"), hint);
        }
        match (&value.data, tree.names.get("[]")) {
            (Data::List(items), Some(of)) => {
                for (i, item) in items.iter().enumerate() {
                    self.visit(of, item, &format!("{field}[{i}]"));
                }
            }
            (_, Some(_)) => self.wrong_type(value, field, "a list"),
            (Data::Mapping(pairs), None) if leads_on => self.visit_fields(tree, pairs, field),
            (_, None) if leads_on => self.wrong_type(value, field, "a mapping"),
            _ => self.leaf(tree.role.unwrap_or(Role::Other), value, field),
        }
        if let Some(Role::Chart(names)) = tree.role {
            self.chart(names, value, field);
        }
    }

    /// Where kustomize could take one of two, nothing is taken.
    fn visit_fields(&mut self, tree: &Tree, pairs: &[(String, Value)], field: &str) {
        let mut seen = HashMap::new();
        for (key, value) in pairs {
            let place = value.key;
            if let Some(line) = seen.insert(folded(key).collect::<String>(), place.0) {
                let message = format!("the same field is in line {line}");
                self.problem(place, &join(field, key), message, "put both into one field, or remove one of them");
                continue;
            }
            match tree.names.iter().find(|(name, _)| is_same_key(name, key)) {
                Some((name, of)) if value.data != Data::Null && value.text() != Some("") => {
                    self.visit(of, value, &join(field, name));
                }
                None if tree.is_complete => {
                    let hint = did_you_mean(key, tree.names.keys().copied());
                    self.problem(place, &join(field, key), format!("unknown field `{key}`"), &hint);
                }
                _ => {}
            }
        }
    }

    fn leaf(&mut self, role: Role, value: &Value, field: &str) {
        if let Role::Unsupported(hint) = role {
            return self.problem(value.place(), field, "this field is not supported", hint);
        }
        let text = match value.string() {
            Some(text) => text,
            None if value.data == Data::Null => "",
            None => return self.wrong_type(value, field, "a string"),
        };
        match role {
            Role::Leads(Accepts::Plugin) | Role::Patch if text.is_empty() => {}
            Role::Leads(_) | Role::Source if text.is_empty() => {
                self.problem(value.place(), field, "an empty entry names nothing", "take it out");
            }
            Role::Leads(Accepts::Plugin) if is_inline(text) => {
                if let Some(stream) = self.inline(value, field) {
                    plugin::read_objects(&stream, &format!("{field}#"), self);
                }
            }
            Role::Patch if is_inline(text) => drop(self.inline(value, field)),
            Role::Patch => self.reference(Accepts::File, value, field, text, None),
            Role::Leads(accepts) => self.reference(accepts, value, field, text, None),
            Role::Source => self.file_source(value, field, text),
            Role::ChartHome if self.has_globals && field.ends_with("].chartHome") => {
                let hint = "leave it out, or write it as `helmGlobals.chartHome`";
                self.problem(value.place(), field, "kustomize does not read it beside `helmGlobals`", hint);
            }
            Role::ChartHome => {
                self.note(value.place(), field, NoteKind::ChartHome { path: text.to_owned(), spot: self.spot(value) });
            }
            Role::Argument => self.argument(value, field, text, "helm"),
            Role::Other | Role::Chart(_) | Role::Unsupported(_) => {}
        }
    }

    /// Refuses a text that a program would take for an option.
    pub(super) fn argument(&mut self, value: &Value, field: &str, text: &str, program: &str) {
        if text.starts_with('-') {
            let message = format!("{program} would take `{}` for an option", redact::url(text));
            let hint = "write it again, and check where it came from";
            self.problem_of(ProblemKind::Option, value.place(), field, message, hint);
        }
    }

    /// `ParseFileSource` (api/internal/generators/utils.go). What stands behind the `=` of a URL may be a token.
    fn file_source(&mut self, value: &Value, field: &str, text: &str) {
        let (name, path) = text.split_once('=').unwrap_or((base_name(text), text));
        let is_written = text.contains('=');
        let is_url = name.contains("://") || name.contains('?') && redact::has_secret(text);
        if is_written && (is_url || name.is_empty() || path.is_empty() || path.contains('=')) {
            let hint = "write `key=path`, or the path alone; download what has `=` in its name";
            let message = format!("expected a path, or `key=path` with one `=`, found `{}`", redact::url(text));
            return self.problem(value.place(), field, message, hint);
        }
        let key = GeneratorKey { name: name.to_owned(), is_written };
        self.reference(Accepts::File, value, field, path, Some(key));
    }

    /// Reads a text that stands in a scalar, and is YAML with objects itself.
    fn inline<'v>(&mut self, value: &'v Value, field: &str) -> Option<Stream<'v>> {
        let stream = yaml::read_within(self.text, value);
        let why = match &stream {
            Err(error) => error.message.clone(),
            Ok(found) => match plugin::objects(found) {
                Ok(_) => return stream.ok(),
                Err((_, why)) => why,
            },
        };
        self.problem(value.place(), field, format!("neither a path nor an inline configuration: {why}"), "");
        None
    }

    pub(super) fn reference(
        &mut self,
        accepts: Accepts,
        value: &Value,
        field: &str,
        text: &str,
        key: Option<GeneratorKey>,
    ) {
        if text.len() > PATH.most {
            return self.problem_of(ProblemKind::TooLarge, value.place(), field, PATH.more(), PATH.hint);
        }
        if self.has_room() {
            let field = join(&self.prefix, field);
            let ((line, column), (end_line, end_column)) = (value.place(), value.end);
            let (text, spot) = (text.to_owned(), self.spot(value));
            let reference = Reference { field, accepts, text, key, line, column, end_line, end_column, spot };
            self.read.references.push(reference);
        }
    }

    /// Returns where a scalar is edited: none but a plain or quoted one, or an alias.
    fn spot(&self, value: &Value) -> Spot {
        let is_block = matches!(value.style, ScalarStyle::Literal | ScalarStyle::Folded) && !value.is_alias;
        let range = if is_block { 0..0 } else { value.range.clone() };
        let number = self.read.references.len() + self.read.notes.len();
        Spot { range, place: value.place(), in_flow: value.in_flow, number }
    }

    /// `names` are those of its name, version, repository and file of values.
    fn chart(&mut self, names: [&str; 4], value: &Value, field: &str) {
        for (key, value) in value.mapping().unwrap_or_default() {
            // Each is an argument of helm.
            for word in value.list().unwrap_or(std::slice::from_ref(value)) {
                let (field, Some(text)) = (join(field, key), word.text()) else { continue };
                self.argument(word, &field, text, "helm");
                if let Some((place, what, hint)) = plugin::odd_here(word) {
                    self.problem(place, &field, format!("{what} of a chart"), hint);
                }
            }
        }
        let [name, version, repo, values] =
            names.map(|name| value.folded_field(name).and_then(Value::text).unwrap_or_default().to_owned());
        // Nothing else is read then; that there are values to replace them by is taken for granted.
        let replaces = value.folded_field("valuesMerge").and_then(Value::text) == Some("replace");
        let values_file = replaces || !values.is_empty();
        let devel = value.folded_field("devel").is_some_and(Value::is_on);
        if !name.is_empty() || !repo.is_empty() {
            let at = value.folded_field(names[2]).filter(|_| !repo.is_empty()).unwrap_or(value).place();
            self.note(at, field, NoteKind::Chart { repo, name, version, values_file, devel });
        }
    }

    /// `EnforceFields`: both may be missing or empty.
    fn check_kind(&mut self, root: &Value) {
        // api/types/kustomization.go
        let (kind, name, version) = match root.folded_field("kind").and_then(Value::string) {
            Some("Component") => (Kind::Component, "Component", "kustomize.config.k8s.io/v1alpha1"),
            _ => (Kind::Kustomization, "Kustomization", "kustomize.config.k8s.io/v1beta1"),
        };
        self.read.kind = kind;
        for (field, wanted) in [("kind", name), ("apiVersion", version)] {
            let Some(value) = root.folded_field(field) else { continue };
            let found = value.string().unwrap_or_default();
            if !found.is_empty() && found != wanted {
                let message = format!("{field} should be {wanted} here, not `{found}`");
                let hint = format!("write `{field}: {wanted}`, or remove the line");
                self.problem_of(ProblemKind::WrongKind, value.place(), field, message, &hint);
            }
        }
    }

    fn wrong_type(&mut self, value: &Value, field: &str, wanted: &str) {
        let is_string = wanted == "a string";
        // For YAML 1.1, `yes` is one.
        let is = if is_string && value.text().is_some() { "a boolean" } else { value.kind() };
        let hint = value.scalar().filter(|_| is_string).map(|word| format!("quote it: `\"{word}\"`"));
        let message = format!("expected {wanted}, found {is}");
        self.problem(value.place(), field, message, hint.as_deref().unwrap_or_default());
    }

    pub(super) fn note(&mut self, (line, column): Place, field: &str, kind: NoteKind) {
        if self.has_room() {
            let field = join(&self.prefix, field);
            self.read.notes.push(Note { line, column, field, kind });
        }
    }

    pub(super) fn problem(&mut self, place: Place, field: &str, message: impl Into<String>, hint: &str) {
        self.problem_of(ProblemKind::Other, place, field, message, hint);
    }

    fn problem_of(&mut self, kind: ProblemKind, place: Place, field: &str, message: impl Into<String>, hint: &str) {
        if self.has_room() {
            let field = join(&self.prefix, field);
            self.problems.push(Problem { field, ..Problem::new(kind, place, message, hint) });
        }
    }
}

pub(super) fn did_you_mean(name: &str, known: impl Iterator<Item = &'static str>) -> String {
    nearest(name, known).map(|name| format!("did you mean `{name}`?")).unwrap_or_default()
}

/// Returns whether kustomize may take a text for YAML, not for a path: every text that can be a mapping. It goes on to the
/// network with one that looks like a URL and is not an object after all, so that such a text is never a path.
fn is_inline(text: &str) -> bool {
    let start = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let after_colon = |(at, _)| text[at + 1..].starts_with(char::is_whitespace);
    text.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'])
        || start.starts_with(['{', '[', '!', '&'])
        || start.starts_with("---")
        || text.match_indices(':').any(after_colon)
}

/// Go's `path.Base`: the key that a generator gives to a file.
pub(super) fn base_name(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit('/').next() {
        Some("") | None if path.is_empty() => ".",
        Some("") | None => "/",
        Some(name) => name,
    }
}

/// Returns a key as `encoding/json` compares it: by simple case folding, so that `ſ` is `s` and the Kelvin sign is `k`.
fn folded(key: &str) -> impl Iterator<Item = char> {
    key.chars().map(|c| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    })
}

/// Compares keys as Go does.
pub(crate) fn is_same_key(name: &str, key: &str) -> bool {
    folded(name).eq(folded(key))
}

/// Joins a field and the name of one in it.
fn join(field: &str, name: &str) -> String {
    match (field, name) {
        ("", name) => name.to_owned(),
        (field, "") => field.to_owned(),
        (field, name) => [field, ".", name].concat(),
    }
}
