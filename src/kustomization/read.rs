//! The field table applied to a document.

use std::collections::HashMap;

use granit_parser::ScalarStyle;

use super::fields::{ChartKeys, FieldTree, KUSTOMIZATION_FIELDS, Role};
use super::yaml::{self, Data, Stream, Value};
use super::{
    Accepts, GeneratorKey, Kustomization, KustomizationKind, Note, NoteKind, Problem, ProblemKind, Reference, Refused,
    Spot, plugin,
};
use crate::message::failure::nearest;
use crate::message::position::{Position, Span};
use crate::message::redact;
use crate::os::failpoint::is_blind_to;
use crate::os::limits::PATH;
use crate::reference::is_url;
use crate::tree::CHART_HOME;

/// Reads a kustomization file.
///
/// Fails with the problems that keep its references from being read, in the order of the text. It does not check
/// whether the file of a reference exists.
pub fn read(bytes: &[u8]) -> Result<Kustomization, Refused> {
    let stream = parse(bytes, |text| yaml::read(text, 1))?;
    let mut reader = KustomizationReader { text: stream.text, ..KustomizationReader::default() };
    if let Some(root) = stream.documents.first().filter(|root| root.data != Data::Null) {
        let globals = root.folded_field("helmGlobals");
        reader.has_globals = globals.is_some();
        // All charts of a kustomization share one directory: the last one of the old generator (`SplitHelmParameters`),
        // or that of `helmGlobals`. If both are set, kustomize ignores the first, and `visit_scalar` reports it.
        let old = root.folded_field("helmChartInflationGenerator").and_then(Value::list);
        let homes = old.unwrap_or_default().iter().chain(globals);
        reader.chart_home = homes.filter_map(chart_home).next_back().unwrap_or(CHART_HOME).to_owned();
        reader.visit(&KUSTOMIZATION_FIELDS, root);
        reader.check_kind(root);
        if stream.repeated.is_some() {
            reader.check_replaced(Some(&KUSTOMIZATION_FIELDS), root);
        }
    }
    // kustomize refuses a file without fields, so that an empty base is noticed. After another problem this is noise.
    let mut pairs = stream.documents.iter().filter_map(Value::mapping).flatten();
    let is_filled = pairs.any(|(key, value)| {
        let is_type = is_same_key("kind", key) || is_same_key("apiVersion", key);
        value.data != Data::Null && !is_type
    });
    if reader.problems.is_empty() && !is_filled {
        let (message, hint) = ("kustomization.yaml is empty", "add a field; `resources: []` is enough");
        reader.add_problem_of(ProblemKind::Empty, Position::new(1, 1), message, hint);
    }
    if let Some(rest) = stream.rest {
        reader.add_note(rest, NoteKind::ExtraDocument);
    }
    reader.finish()
}

/// The directory of charts that an object sets. `None` if it sets none.
fn chart_home(value: &Value) -> Option<&str> {
    value.folded_field("chartHome")?.text().filter(|text| !text.is_empty())
}

/// Reads a file in `generators`, `transformers` or `validators`; all its documents count.
pub fn read_plugin(bytes: &[u8]) -> Result<Kustomization, Refused> {
    let stream = parse(bytes, |text| yaml::read_unique(text, usize::MAX))?;
    let mut reader = KustomizationReader { text: stream.text, ..KustomizationReader::default() };
    plugin::read_objects(&stream, &mut reader);
    reader.finish()
}

/// The fields of a kustomization that list resources and change nothing in them but names.
const LISTING: &str = "apiVersion kind metadata buildMetadata resources bases namePrefix nameSuffix";

/// The problem of a kustomization that is listed as plugin configurations, and has a field that may change its
/// resources, such as `patches`: this program reads the configurations from the files, but kustomize runs the changed
/// ones. `None` if there is no such field, or if the file cannot be parsed, which [`read`] reports.
pub fn reshaping(bytes: &[u8]) -> Option<Problem> {
    let stream = parse(bytes, |text| yaml::read(text, 1)).ok()?;
    let mut pairs = stream.documents.first()?.mapping()?.iter();
    let (key, value) = pairs.find(|(key, value)| {
        let is_empty = value.data == Data::Null || value.list().is_some_and(<[_]>::is_empty);
        !is_empty && !LISTING.split_whitespace().any(|name| is_same_key(name, key))
    })?;
    let message = format!(
        "`{key}` may change the plugin configurations of this root before they are used: only a build can tell what they name or run"
    );
    let hint = "build it once, and list its output as a file: kustomize build DIRECTORY > plugins.yaml";
    let problem = Problem::new(ProblemKind::Reshaped, value.key, message, hint);
    Some(Problem { field: key.clone(), ..problem })
}

/// Reads the bytes of a file as YAML with `read`, one of the functions of `yaml`. Fails with the likely cause of the
/// error.
fn parse<'t>(
    bytes: &'t [u8],
    read: impl FnOnce(&'t str) -> Result<Stream<'t>, Problem>,
) -> Result<Stream<'t>, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let lines = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n');
        let position = Position::new(lines.count(), 1);
        Problem::new(ProblemKind::Other, position, "not UTF-8", "save the file as UTF-8")
    })?;
    read(text).map_err(|error| explain_syntax(text, error))
}

/// The likely cause of an error of a YAML parser: conflict markers, or the text is a template. Otherwise it is the
/// error.
fn explain_syntax(text: &str, error: Problem) -> Problem {
    if error.kind == ProblemKind::TooLarge {
        return error;
    }
    let conflict = text.lines().position(|line| line.starts_with("<<<<<<< "));
    if let Some(line) = conflict.filter(|_| text.contains("\n>>>>>>> ")) {
        let message = "conflict markers: two sides of a merge changed the same lines";
        let hint = "resolve the conflict, remove the lines `<<<<<<<`, `=======` and `>>>>>>>`, and `git add` the file";
        return Problem::new(ProblemKind::Other, Position::new(line + 1, 1), message, hint);
    }
    let error = error.context("not valid YAML");
    if !text.contains("{{") && !text.contains("{%") {
        return error;
    }
    let hint = "if it is a template, list its directory below `exclude:` in .kustomize-localize".to_owned();
    Problem { kind: ProblemKind::Template, hint, ..error }
}

impl Problem {
    /// A problem of the whole file. `hint` may be empty.
    pub(super) fn new(kind: ProblemKind, position: Position, message: impl Into<String>, hint: &str) -> Self {
        Problem { position, field: String::new(), message: message.into(), hint: hint.to_owned(), kind }
    }

    /// Puts the context before the message.
    pub(super) fn context(self, context: &str) -> Self {
        Problem { message: format!("{context}: {}", self.message), ..self }
    }

    /// Adds to the message where the value is.
    fn in_a(self, container: &str) -> Self {
        Problem { message: format!("{} in {container}", self.message), ..self }
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Refused { problems: vec![problem], read: Kustomization::default() }
    }
}

/// Applies a table to a document, or to an object in it.
#[derive(Default)]
pub(super) struct KustomizationReader<'a> {
    /// The whole file.
    pub text: &'a str,
    /// The current field, as [`Reference::field`] names it.
    pub field: String,
    has_globals: bool,
    /// The directory with the charts of the current object.
    chart_home: String,
    read: Kustomization,
    problems: Vec<Problem>,
}

impl KustomizationReader<'_> {
    /// The references and notes that were read, in the order of the text. If there are problems, fails with these and
    /// what was read.
    fn finish(mut self) -> Result<Kustomization, Refused> {
        let mut read = self.read;
        // A test hides a field, to see that the program notices a reference that the table lacks.
        read.references.retain(|reference| !is_blind_to(&reference.field));
        read.notes.retain(|note| !is_blind_to(&note.field));
        // The table was applied field by field, and not in the order of the text.
        read.references.sort_by_key(|reference| reference.span.start);
        read.notes.sort_by_key(|note| note.position);
        if self.problems.is_empty() {
            return Ok(read);
        }
        self.problems.sort_by_key(|problem| problem.position);
        // The table and `add_chart` both check a value of a chart, and report the same problem.
        self.problems.dedup();
        Err(Refused { problems: self.problems, read })
    }

    /// Calls `read` while `name`, a field or item of the current field, is the current field.
    pub(super) fn within(&mut self, name: &str, read: impl FnOnce(&mut Self)) {
        let length = self.field.len();
        if length > 0 && !name.starts_with(['[', '#']) {
            self.field.push('.');
        }
        self.field += name;
        read(self);
        self.field.truncate(length);
    }

    /// Visits a plugin configuration, which has charts of its own.
    pub(super) fn visit_plugin(&mut self, tree: &FieldTree, value: &Value) {
        let home = chart_home(value).unwrap_or(CHART_HOME).to_owned();
        let shared = std::mem::replace(&mut self.chart_home, home);
        self.visit(tree, value);
        self.chart_home = shared;
    }

    /// Visits all values that are in the table, or on the way to a field of it. The table decides which type is
    /// expected: `[]` stands for the items of a list.
    pub(super) fn visit(&mut self, tree: &FieldTree, value: &Value) {
        // kustomize takes a null for a field that is missing.
        let is_missing = value.data == Data::Null && !tree.names.is_empty();
        if tree.role == Some(Role::Other) || is_missing {
            return;
        }
        // Readers of such a value may disagree about the reference in it.
        if let Some(problem) = plugin::tag_or_merge_key(value) {
            return self.push_problem(problem.in_a("a field that leads to a reference"));
        }
        if let Some(subtree) = tree.names.get("[]") {
            self.visit_items(subtree, value);
        } else if !tree.names.is_empty() {
            self.visit_fields(tree, value);
        } else if let Some(role) = tree.role {
            self.visit_scalar(role, value);
        }
        if let Some(Role::Chart(names)) = tree.role {
            self.add_chart(names, value);
        }
    }

    /// Visits the items of a list.
    fn visit_items(&mut self, subtree: &FieldTree, value: &Value) {
        let Some(items) = value.list() else {
            return self.wrong_type(value, "a list", None);
        };
        for (i, item) in items.iter().enumerate() {
            self.within(&format!("[{i}]"), |reader| reader.visit(subtree, item));
        }
    }

    /// Visits the fields of a mapping that the table has, and reports unknown and repeated ones.
    fn visit_fields(&mut self, tree: &FieldTree, value: &Value) {
        let Some(pairs) = value.mapping() else {
            // A bare path instead of `path: …` is a common mistake, so the hint shows the form.
            let path = value.text().filter(|text| tree.names.contains_key("path") && !is_inline(text));
            return self.wrong_type(value, "a mapping", path.map(|path| format!("write `path: {path}`")));
        };
        let mut seen = HashMap::new();
        for (key, value) in pairs {
            let earlier_line = seen.insert(folded(key).collect::<String>(), value.key.line);
            let known = tree.field(key);
            self.within(known.map_or(key, |(name, _)| name), |reader| match (earlier_line, known) {
                (Some(line), _) => {
                    // kustomize decodes with `encoding/json`, which ignores case: of the two it could take either.
                    let message = format!("duplicate of the field in line {line}");
                    let hint = "merge them, or remove one: kustomize ignores case";
                    reader.add_problem(value.key, message, hint);
                }
                (None, Some((_, subtree))) => reader.visit_field(subtree, value),
                (None, None) if tree.is_complete => {
                    let hint = did_you_mean(key, tree.names.keys().copied());
                    reader.add_problem(value.key, format!("unknown field `{key}`"), &hint);
                }
                (None, None) => {}
            });
        }
    }

    /// Visits the value of a field. A null or empty one has no reference: kustomize takes it for a missing one, or
    /// refuses it.
    fn visit_field(&mut self, tree: &FieldTree, value: &Value) {
        if value.data != Data::Null && value.text() != Some("") {
            self.visit(tree, value);
        }
    }

    /// Reports values that kustomize does not read because their key is repeated. `tree` has the fields of `value`;
    /// `None` below a field that the table does not have.
    fn check_replaced(&mut self, tree: Option<&FieldTree>, value: &Value) {
        // A key may be repeated at any depth, also in a field that the table does not have.
        let items = value.list().unwrap_or_default();
        for (i, item) in items.iter().enumerate() {
            let subtree = tree.and_then(|tree| tree.names.get("[]"));
            self.within(&format!("[{i}]"), |reader| reader.check_replaced(subtree, item));
        }
        for (key, value) in value.mapping().unwrap_or_default() {
            let known = tree.and_then(|tree| tree.field(key));
            let subtree = known.map(|(_, subtree)| subtree);
            self.within(known.map_or(key, |(name, _)| name), |reader| {
                for old in &value.replaced {
                    let line = value.key.line;
                    // Every value of a chart is an argument of helm, also those that the table does not name.
                    let is_in_chart = matches!(tree, Some(FieldTree { role: Some(Role::Chart(_)), .. }));
                    if is_in_chart || subtree.is_some_and(|subtree| may_have_reference(subtree, old)) {
                        // Not every reader takes the last one of the values.
                        let message = format!("kustomize ignores this `{key}`: line {line} repeats it");
                        reader.add_problem(old.key, message, &format!("merge it into line {line}, or remove it"));
                    } else {
                        reader.add_note(old.key, NoteKind::Replaced { line });
                    }
                }
                reader.check_replaced(subtree, value);
            });
        }
    }

    /// Adds the reference in a scalar, or the problem of it, by the role of its field.
    fn visit_scalar(&mut self, role: Role, value: &Value) {
        if let Role::Unsupported(hint) = role {
            return self.add_problem(value.start, "this field is not supported", hint);
        }
        // A null item of a list is an empty entry.
        let Some(text) = value.string().or_else(|| (value.data == Data::Null).then_some("")) else {
            return self.wrong_type(value, "a string", None);
        };
        match role {
            Role::Reference(Accepts::Plugin) => {
                if let Some(stream) = self.inline_or_reference(Accepts::Plugin, value, text) {
                    plugin::read_objects(&stream, self);
                }
            }
            // An inline patch has no references, but kustomize takes a text without objects for a path.
            Role::PatchOrFile => drop(self.inline_or_reference(Accepts::File, value, text)),
            Role::Reference(accepts) => self.add_reference(accepts, value, text, None),
            Role::Source => self.add_file_source(value, text),
            // A patch has no references, but its aliases must not fill the memory.
            Role::InlinePatch => {
                if let Err(problem) = yaml::refuse_expansion(text) {
                    self.push_problem(Problem { position: value.start, ..problem });
                }
            }
            Role::ChartHome if self.has_globals && self.field.ends_with("].chartHome") => {
                let hint = "remove it, or write it as `helmGlobals.chartHome`";
                self.add_problem(value.start, "kustomize ignores it if `helmGlobals` is set", hint);
            }
            Role::Argument => self.refuse_option(value, text, "helm"),
            Role::Variable if !text.contains('=') => {
                self.add_problem(value.start, "the value comes from the machine that builds", "write `NAME=VALUE`");
            }
            Role::Unsupported(_) | Role::Other | Role::Chart(_) | Role::ChartHome | Role::Variable => {}
        }
    }

    /// The objects that are written inline in a scalar whose field also takes a path. If it is a path, adds the
    /// reference, and returns `None`.
    fn inline_or_reference<'v>(&mut self, accepts: Accepts, value: &'v Value, text: &str) -> Option<Stream<'v>> {
        if is_inline(text) {
            return self.read_inline(value);
        }
        // kustomize reads the text as YAML first, and an empty one has no objects.
        if !text.is_empty() {
            self.add_reference(accepts, value, text, None);
        }
        None
    }

    /// Refuses a text that a program would take for an option.
    pub(super) fn refuse_option(&mut self, value: &Value, text: &str, program: &str) {
        if text.starts_with('-') {
            let message = format!("{program} would take `{}` for an option", redact::url(text));
            let hint = "rewrite it, and check where it came from";
            self.add_problem_of(ProblemKind::Option, value.start, message, hint);
        }
    }

    /// Adds the reference in an entry of a generator's `files`, a path or `key=path`, which is split as
    /// `ParseFileSource` does (api/internal/generators/utils.go).
    fn add_file_source(&mut self, value: &Value, text: &str) {
        let (name, path) = text.split_once('=').unwrap_or((base_name(text), text));
        let is_written = text.contains('=');
        // A `=` in a URL does not separate a key: a token may follow it.
        let is_url = name.contains("://") || name.contains('?') && redact::has_secret(text);
        if is_written && (is_url || name.is_empty() || path.is_empty() || path.contains('=')) {
            let shown = redact::url(text);
            let message = format!("expected a path, or `key=path` with one `=`, found `{shown}`");
            let hint = "write `key=path`, or only the path; download a file that has `=` in its name";
            return self.add_problem(value.start, message, hint);
        }
        let name = name.to_owned();
        self.add_reference(Accepts::File, value, path, Some(GeneratorKey { name, is_written }));
    }

    /// The objects that are written inline in a scalar, where the field also takes a path. `None` if kustomize would
    /// not read it as objects, which is reported as a problem.
    fn read_inline<'v>(&mut self, value: &'v Value) -> Option<Stream<'v>> {
        let stream = yaml::read_within(self.text, value);
        let why = match stream.as_ref().map(plugin::objects) {
            Ok(Ok(_)) if value.text().is_some_and(is_url) => {
                let hint = "do not begin the configuration with a URL, or put it into a file";
                self.add_problem(value.start, "kustomize takes this inline configuration for a URL", hint);
                return None;
            }
            Ok(Ok(_)) => return stream.ok(),
            Ok(Err(problem)) => problem.message,
            Err(error) => error.message.clone(),
        };
        let message = format!("neither a path nor an inline configuration: {why}");
        self.add_problem(value.start, message, "");
        None
    }

    /// Adds the reference `text` in the scalar `value`, as a reference of the current field. `key` is that of a
    /// generator. An empty text is a problem.
    pub(super) fn add_reference(&mut self, accepts: Accepts, value: &Value, text: &str, key: Option<GeneratorKey>) {
        if text.is_empty() {
            return self.add_problem(value.start, "empty entry", "remove it");
        }
        if text.len() > PATH.most {
            return self.add_problem_of(ProblemKind::TooLarge, value.start, PATH.more(), PATH.hint);
        }
        let spot = spot(value, self.read.references.len());
        self.read.references.push(Reference {
            field: self.field.clone(),
            accepts,
            text: text.to_owned(),
            key,
            span: Span { start: value.start, end: value.end },
            spot,
        });
    }

    /// Checks the values of a chart, and adds a note about it.
    fn add_chart(&mut self, keys: ChartKeys, value: &Value) {
        for (key, value) in value.mapping().unwrap_or_default() {
            for word in value.list().unwrap_or(std::slice::from_ref(value)) {
                self.within(key, |reader| reader.check_chart_value(keys, key, word));
            }
        }
        let [name, version, repo, values] = keys.all().map(|key| folded_text(value, key).to_owned());
        // With `valuesMerge: replace` the chart's own values are not read. The build checks whether there are others.
        let values_file = folded_text(value, "valuesMerge") == "replace" || !values.is_empty();
        let devel = value.folded_field("devel").is_some_and(Value::is_on);
        // kustomize refuses a chart without a name, but a repository is a remote reference all the same.
        if !name.is_empty() || !repo.is_empty() {
            let repo_value = value.folded_field(keys.repo).filter(|_| !repo.is_empty());
            let position = repo_value.unwrap_or(value).start;
            let version_at = value.folded_field(keys.version).filter(|_| !version.is_empty());
            let version_at = version_at.map(|version| spot(version, self.read.notes.len()));
            let home = self.chart_home.clone();
            self.add_note(position, NoteKind::Chart { repo, name, version, version_at, values_file, home, devel });
        }
    }

    /// Checks a value of a chart, or an item of a list in it. Only the fields that take a text refuse other scalars.
    fn check_chart_value(&mut self, keys: ChartKeys, key: &str, value: &Value) {
        if let Some(text) = value.text() {
            return self.check_chart_text(keys, key, value, text);
        }
        let is_text_field = keys.all().iter().any(|name| is_same_key(name, key));
        if is_text_field && value.scalar().is_some() {
            self.wrong_type(value, "a string", None);
        }
    }

    /// Refuses a text that helm would take for an option, and reports what kustomize or helm would misread. kustomize
    /// passes each value of a chart to helm as an argument, whether our table of fields names it or not.
    fn check_chart_text(&mut self, keys: ChartKeys, key: &str, value: &Value, text: &str) {
        self.refuse_option(value, text, "helm");
        // kyaml reads a date in a plugin's configuration, and writes it back with a time.
        let is_plugin = !self.field.starts_with("helmChart");
        if is_plugin && value.style == ScalarStyle::Plain && is_date(text) {
            self.add_problem(value.start, "a date in a chart: kustomize may add a time to it", "quote it");
        }
        let is_values_file = is_same_key(keys.values, key) || is_same_key("additionalValuesFiles", key);
        if is_values_file && text.contains(',') {
            self.add_problem(value.start, "helm reads two files where `,` separates them", "rename the file");
        }
        if is_same_key("nameTemplate", key) && text.contains("{{") {
            let message = "helm fills in this template from the machine that builds";
            self.add_problem(value.start, message, "write `releaseName`");
        }
        if let Some(problem) = plugin::tag_or_merge_key(value) {
            self.push_problem(problem.in_a("a chart"));
        }
    }

    /// Sets the kind of the kustomization, and reports a `kind` or `apiVersion` that kustomize refuses (`EnforceFields`
    /// in api/types/kustomization.go): both may be missing or empty.
    fn check_kind(&mut self, root: &Value) {
        // The two kinds have different versions.
        let (kind, name, version) = match root.folded_field("kind").and_then(Value::string) {
            Some("Component") => (KustomizationKind::Component, "Component", "v1alpha1"),
            _ => (KustomizationKind::Kustomization, "Kustomization", "v1beta1"),
        };
        self.read.kind = kind;
        let version = format!("kustomize.config.k8s.io/{version}");
        for (field, wanted) in [("kind", name), ("apiVersion", &version)] {
            let Some(value) = root.folded_field(field) else { continue };
            let actual = value.string().unwrap_or_default();
            if !actual.is_empty() && actual != wanted {
                let message = format!("expected `{field}: {wanted}`, found `{actual}`");
                let hint = format!("write `{field}: {wanted}`, or remove the line");
                self.within(field, |reader| {
                    reader.add_problem_of(ProblemKind::WrongKind, value.start, message, &hint);
                });
            }
        }
    }

    /// Adds the problem of a value that has another type than `wanted`. For a string the hint is to quote the value.
    fn wrong_type(&mut self, value: &Value, wanted: &str, hint: Option<String>) {
        let (mut is, mut hint) = (value.kind(), hint.unwrap_or_default());
        if let Some(word) = value.scalar().filter(|_| wanted == "a string") {
            // YAML 1.1 reads `yes` as a boolean.
            is = if value.text().is_some() { "a boolean" } else { is };
            hint = format!("quote it: `\"{word}\"`");
        }
        self.add_problem(value.start, format!("expected {wanted}, found {is}"), &hint);
    }

    /// Adds a note about the current field.
    pub(super) fn add_note(&mut self, position: Position, kind: NoteKind) {
        let field = self.field.clone();
        self.read.notes.push(Note { position, field, kind });
    }

    /// Adds a problem of the current field. `hint` may be empty.
    pub(super) fn add_problem(&mut self, position: Position, message: impl Into<String>, hint: &str) {
        self.add_problem_of(ProblemKind::Other, position, message, hint);
    }

    /// Adds a problem of a kind that other rooms handle differently.
    fn add_problem_of(&mut self, kind: ProblemKind, position: Position, message: impl Into<String>, hint: &str) {
        self.push_problem(Problem::new(kind, position, message, hint));
    }

    /// Adds a problem, as one of the current field.
    pub(super) fn push_problem(&mut self, problem: Problem) {
        self.problems.push(Problem { field: self.field.clone(), ..problem });
    }
}

/// The spot of a scalar. `number` distinguishes the references that show it.
fn spot(value: &Value, number: usize) -> Spot {
    // A block scalar is not edited: its indentation and its line breaks depend on the value.
    let is_block = matches!(value.style, ScalarStyle::Literal | ScalarStyle::Folded) && value.alias_of.is_none();
    let range = if is_block { 0..0 } else { value.range.clone() };
    Spot { range, start: value.start, in_flow: value.in_flow, number }
}

/// The text of a field, whose case does not count. Empty if it is missing, or not a string.
fn folded_text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.folded_field(name).and_then(Value::text).unwrap_or_default()
}

/// Whether go-yaml may read a plain word as a date, such as `2024-1-31`, perhaps with a time.
fn is_date(text: &str) -> bool {
    let day = text.split(['T', 't', ' ']).next().unwrap_or_default();
    let parts: Vec<&str> = day.split('-').collect();
    let are_digits = parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    matches!(parts.as_slice(), [year, month, day] if year.len() == 4 && month.len() < 3 && day.len() < 3) && are_digits
}

/// Whether a value may contain a reference, by the table of its field. If in doubt it does: the caller reports a value
/// that kustomize drops because its key is repeated, and a reference in it would be lost without notice.
fn may_have_reference(tree: &FieldTree, value: &Value) -> bool {
    match (&value.data, tree.role) {
        (_, Some(Role::Other | Role::Argument | Role::InlinePatch)) => false,
        _ if plugin::tag_or_merge_key(value).is_some() => true,
        (Data::Null, _) => false,
        (Data::List(items), None) => {
            items.iter().any(|item| tree.names.get("[]").is_none_or(|subtree| may_have_reference(subtree, item)))
        }
        (Data::Mapping(pairs), None) => pairs
            .iter()
            .any(|(key, value)| tree.field(key).is_some_and(|(_, subtree)| may_have_reference(subtree, value))),
        _ => value.text() != Some(""),
    }
}

/// The hint for a misspelled name. Empty if no known name is similar.
pub(super) fn did_you_mean(name: &str, known: impl Iterator<Item = &'static str>) -> String {
    nearest(name, known).map_or_else(String::new, |name| format!("did you mean `{name}`?"))
}

/// Whether kustomize may take a text for YAML, not for a path: any text that can be a mapping.
fn is_inline(text: &str) -> bool {
    // Such a text never counts as a path: if it has no objects but looks like a URL, kustomize asks the network for it.
    let start = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    text.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'])
        || start.starts_with(['{', '[', '!', '&'])
        || start.starts_with("---")
        || text.match_indices(':').any(|(at, _)| text[at + 1..].starts_with(char::is_whitespace))
}

/// Go's `path.Base`: the key that a generator gives to a file.
pub(super) fn base_name(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit('/').next() {
        Some("") | None if path.is_empty() => ".",
        Some("") | None => "/",
        Some(name) => name,
    }
}

/// A key as `encoding/json` compares it.
fn folded(key: &str) -> impl Iterator<Item = char> {
    key.chars().map(|c| match c {
        // Simple case folding: `ſ` equals `s`, and the Kelvin sign equals `k`.
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    })
}

/// Compares keys as Go does.
pub(crate) fn is_same_key(name: &str, key: &str) -> bool {
    folded(name).eq(folded(key))
}
