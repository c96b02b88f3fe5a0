//! The field table applied to a document.

use std::collections::HashMap;

use granit_parser::ScalarStyle;

use super::fields::{Role, TREE, Tree};
use super::yaml::{self, Data, Stream, Value};
use super::{
    Accepts, GeneratorKey, Kind, Kustomization, Note, NoteKind, Problem, ProblemKind, Reference, Refused, Spot, plugin,
};
use crate::message::failure::nearest;
use crate::message::position::{Position, Span};
use crate::message::redact;
use crate::os::failpoint::is_blind_to;
use crate::os::limits::PATH;
use crate::reference::is_url;

/// Reads a kustomization file.
///
/// Returns what keeps its references from being read, in the order of the text. Whether a reference leads anywhere is not
/// looked at.
pub fn read(bytes: &[u8]) -> Result<Kustomization, Refused> {
    let stream = parse(bytes, |text| yaml::read_repeated(text, 1))?;
    let mut reader = Reader { text: stream.text, ..Reader::default() };
    if let Some(root) = stream.documents.first().filter(|root| root.data != Data::Null) {
        let globals = root.folded_field("helmGlobals");
        reader.has_globals = globals.is_some();
        // All share one, of the old generator the last one (`SplitHelmParameters`); both is refused.
        let old = root.folded_field("helmChartInflationGenerator").and_then(Value::list);
        let homes = old.unwrap_or_default().iter().chain(globals);
        reader.chart_home = homes.filter_map(chart_home).next_back().unwrap_or(CHART_HOME).to_owned();
        reader.visit(&TREE, root);
        reader.check_kind(root);
        if stream.repeated.is_some() {
            reader.check_replaced(Some(&TREE), root);
        }
    }
    let is_filled = |(key, value): &(String, Value)| {
        let is_type = is_same_key("kind", key) || is_same_key("apiVersion", key);
        value.data != Data::Null && !is_type
    };
    let mut pairs = stream.documents.iter().filter_map(Value::mapping).flatten();
    if reader.problems.is_empty() && !pairs.any(is_filled) {
        let (message, hint) = ("kustomization.yaml is empty", "add a field; `resources: []` is enough");
        reader.problem_of(ProblemKind::Empty, Position::new(1, 1), message, hint);
    }
    if let Some(rest) = stream.rest {
        reader.note(rest, NoteKind::ExtraDocument);
    }
    reader.finish()
}

/// The default of `chartHome`.
const CHART_HOME: &str = "charts";

fn chart_home(of: &Value) -> Option<&str> {
    of.folded_field("chartHome")?.text().filter(|text| !text.is_empty())
}

/// Reads a file that is named in `generators`, `transformers` or `validators`; all its documents count.
pub fn read_plugin(bytes: &[u8]) -> Result<Kustomization, Refused> {
    let stream = parse(bytes, |text| yaml::read(text, usize::MAX))?;
    let mut reader = Reader { text: stream.text, ..Reader::default() };
    plugin::read_objects(&stream, &mut reader);
    reader.finish()
}

/// The fields of a kustomization that only list resources and name them.
const LISTING: &str = "apiVersion kind metadata buildMetadata resources bases namePrefix nameSuffix";

/// Returns what is wrong with a kustomization that is listed for the plugin configurations in its resources: a field by
/// which what is built may be another thing than what stands in the files that are named.
pub fn reshaping(bytes: &[u8]) -> Option<Problem> {
    let stream = parse(bytes, |text| yaml::read_repeated(text, 1)).ok()?;
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

/// Reads bytes as YAML.
fn parse<'t>(
    bytes: &'t [u8],
    read: impl FnOnce(&'t str) -> Result<Stream<'t>, Problem>,
) -> Result<Stream<'t>, Problem> {
    let wrong = |line, message, hint| Problem::new(ProblemKind::Other, Position::new(line, 1), message, hint);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let lines = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n');
        wrong(lines.count(), "not UTF-8", "save the file as UTF-8")
    })?;
    read(text).map_err(|error| {
        let conflict = text.lines().position(|line| line.starts_with("<<<<<<< "));
        let conflict = conflict.filter(|_| text.contains("\n>>>>>>> "));
        if error.kind == ProblemKind::TooLarge {
            error
        } else if let Some(line) = conflict {
            let message = "conflict markers: two sides of a merge changed the same lines";
            let hint =
                "resolve the conflict, remove the lines `<<<<<<<`, `=======` and `>>>>>>>`, and `git add` the file";
            wrong(line + 1, message, hint)
        } else {
            let error = error.context("not valid YAML");
            if !text.contains("{{") && !text.contains("{%") {
                return error;
            }
            let hint = "if it is a template, list its directory below `exclude:` in .kustomize-localize".to_owned();
            Problem { kind: ProblemKind::Template, hint, ..error }
        }
    })
}

impl Problem {
    /// A problem of the whole file. `hint` may be empty.
    pub(super) fn new(kind: ProblemKind, position: Position, message: impl Into<String>, hint: &str) -> Self {
        Problem { position, field: String::new(), message: message.into(), hint: hint.to_owned(), kind }
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
    /// The field that is looked at, as [`Reference::field`] names it.
    pub field: String,
    has_globals: bool,
    /// Where the charts of the object that is looked at are.
    chart_home: String,
    read: Kustomization,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    /// Puts everything in the order of the text.
    fn finish(mut self) -> Result<Kustomization, Refused> {
        let mut read = self.read;
        read.references.retain(|reference| !is_blind_to(&reference.field));
        read.notes.retain(|note| !is_blind_to(&note.field));
        read.references.sort_by_key(|reference| reference.span.start);
        read.notes.sort_by_key(|note| note.position);
        if self.problems.is_empty() {
            return Ok(read);
        }
        self.problems.sort_by_key(|problem| problem.position);
        self.problems.dedup();
        Err(Refused { problems: self.problems, read })
    }

    /// Looks at a field in the one that is looked at.
    pub(super) fn within(&mut self, name: &str, look: impl FnOnce(&mut Self)) {
        let length = self.field.len();
        if length > 0 && !name.starts_with(['[', '#']) {
            self.field.push('.');
        }
        self.field += name;
        look(self);
        self.field.truncate(length);
    }

    /// Visits a plugin configuration, which has charts of its own.
    pub(super) fn visit_plugin(&mut self, tree: &Tree, value: &Value) {
        let home = chart_home(value).unwrap_or(CHART_HOME).to_owned();
        let shared = std::mem::replace(&mut self.chart_home, home);
        self.visit(tree, value);
        self.chart_home = shared;
    }

    /// Visits everything on the way to a field of the table.
    pub(super) fn visit(&mut self, tree: &Tree, value: &Value) {
        let leads_on = !tree.names.is_empty();
        if tree.role == Some(Role::Other) || (value.data == Data::Null && leads_on) {
            return;
        }
        if let Some((place, what, hint)) = plugin::odd_here(value) {
            return self.problem(place, format!("{what} in a field that leads to a reference"), hint);
        }
        match (&value.data, tree.names.get("[]")) {
            (Data::List(items), Some(of)) => {
                for (i, item) in items.iter().enumerate() {
                    self.within(&format!("[{i}]"), |reader| reader.visit(of, item));
                }
            }
            (_, Some(_)) => self.wrong_type(value, "a list", None),
            (Data::Mapping(pairs), None) if leads_on => self.visit_fields(tree, pairs),
            (_, None) if leads_on => {
                let path = value.text().filter(|text| tree.names.contains_key("path") && !is_inline(text));
                self.wrong_type(value, "a mapping", path.map(|path| format!("write `path: {path}`")))
            }
            _ => self.leaf(tree.role.unwrap_or(Role::Other), value),
        }
        if let Some(Role::Chart(names)) = tree.role {
            self.chart(names, value);
        }
    }

    /// Where kustomize could take one of two, nothing is taken.
    fn visit_fields(&mut self, tree: &Tree, pairs: &[(String, Value)]) {
        let mut seen = HashMap::new();
        for (key, value) in pairs {
            let before = seen.insert(folded(key).collect::<String>(), value.key.line);
            let known = tree.field(key);
            let name = known.map_or(key.as_str(), |(name, _)| name);
            self.within(name, |reader| match (before, known) {
                (Some(line), _) => {
                    let message = format!("duplicate of the field in line {line}");
                    let hint = "merge them, or remove one: kustomize ignores case";
                    reader.problem(value.key, message, hint);
                }
                (None, Some((_, of))) if value.data != Data::Null && value.text() != Some("") => {
                    reader.visit(of, value);
                }
                (None, None) if tree.is_complete => {
                    let hint = did_you_mean(key, tree.names.keys().copied());
                    reader.problem(value.key, format!("unknown field `{key}`"), &hint);
                }
                _ => {}
            });
        }
    }

    /// Says what kustomize does not read, because its key is there again. Where that may lead somewhere it is a problem:
    /// not every reader takes the last one.
    fn check_replaced(&mut self, tree: Option<&Tree>, value: &Value) {
        let items = value.list().unwrap_or_default();
        for (i, item) in items.iter().enumerate() {
            let of = tree.and_then(|tree| tree.names.get("[]"));
            self.within(&format!("[{i}]"), |reader| reader.check_replaced(of, item));
        }
        for (key, value) in value.mapping().unwrap_or_default() {
            let known = tree.and_then(|tree| tree.field(key));
            let of = known.map(|(_, of)| of);
            self.within(known.map_or(key, |(name, _)| name), |reader| {
                for old in &value.replaced {
                    let line = value.key.line;
                    if !matches!(tree, Some(Tree { role: Some(Role::Chart(_)), .. }))
                        && of.is_none_or(|of| !leads(of, old))
                    {
                        reader.note(old.key, NoteKind::Replaced { line });
                        continue;
                    }
                    let message = format!("kustomize ignores this `{key}`: line {line} repeats it");
                    reader.problem(old.key, message, &format!("merge it into line {line}, or remove it"));
                }
                reader.check_replaced(of, value);
            });
        }
    }

    fn leaf(&mut self, role: Role, value: &Value) {
        let text = match value.string() {
            Some(text) => text,
            None if value.data == Data::Null => "",
            None if matches!(role, Role::Unsupported(_)) => "",
            None => return self.wrong_type(value, "a string", None),
        };
        let place = value.start;
        match role {
            Role::Unsupported(hint) => self.problem(place, "this field is not supported", hint),
            Role::Variable if !text.contains('=') => {
                self.problem(place, "the value comes from the machine that builds", "write `NAME=VALUE`");
            }
            Role::Leads(Accepts::Plugin) | Role::Patch if text.is_empty() => {}
            Role::Leads(_) | Role::Source if text.is_empty() => {
                self.problem(place, "empty entry", "remove it");
            }
            Role::Leads(Accepts::Plugin) if is_inline(text) => {
                if let Some(stream) = self.inline(value) {
                    plugin::read_objects(&stream, self);
                }
            }
            Role::Patch if is_inline(text) => drop(self.inline(value)),
            Role::Patch => self.reference(Accepts::File, value, text, None),
            Role::Leads(accepts) => self.reference(accepts, value, text, None),
            Role::Source => self.file_source(value, text),
            Role::ChartHome if self.has_globals && self.field.ends_with("].chartHome") => {
                let hint = "remove it, or write it as `helmGlobals.chartHome`";
                self.problem(place, "kustomize ignores it if `helmGlobals` is set", hint);
            }
            Role::Argument => self.argument(value, text, "helm"),
            Role::Other | Role::Chart(_) | Role::ChartHome | Role::Variable => {}
        }
    }

    /// Refuses a text that a program would take for an option.
    pub(super) fn argument(&mut self, value: &Value, text: &str, program: &str) {
        if text.starts_with('-') {
            let message = format!("{program} would take `{}` for an option", redact::url(text));
            let hint = "rewrite it, and check where it came from";
            self.problem_of(ProblemKind::Option, value.start, message, hint);
        }
    }

    /// `ParseFileSource` (api/internal/generators/utils.go). What stands behind the `=` of a URL may be a token.
    fn file_source(&mut self, value: &Value, text: &str) {
        let (name, path) = text.split_once('=').unwrap_or((base_name(text), text));
        let is_written = text.contains('=');
        let is_url = name.contains("://") || name.contains('?') && redact::has_secret(text);
        if is_written && (is_url || name.is_empty() || path.is_empty() || path.contains('=')) {
            let shown = redact::url(text);
            let message = format!("expected a path, or `key=path` with one `=`, found `{shown}`");
            let hint = "write `key=path`, or only the path; download a file that has `=` in its name";
            return self.problem(value.start, message, hint);
        }
        let name = name.to_owned();
        self.reference(Accepts::File, value, path, Some(GeneratorKey { name, is_written }));
    }

    /// Reads a text that stands in a scalar, and is YAML with objects itself.
    fn inline<'v>(&mut self, value: &'v Value) -> Option<Stream<'v>> {
        let stream = yaml::read_within(self.text, value);
        let why = match stream.as_ref().map(plugin::objects) {
            Ok(Ok(_)) if value.text().is_some_and(is_url) => {
                let hint = "do not begin the configuration with a URL, or put it into a file";
                self.problem(value.start, "kustomize takes this inline configuration for a URL", hint);
                return None;
            }
            Ok(Ok(_)) => return stream.ok(),
            Ok(Err((_, why))) => why,
            Err(error) => error.message.clone(),
        };
        let message = format!("neither a path nor an inline configuration: {why}");
        self.problem(value.start, message, "");
        None
    }

    pub(super) fn reference(&mut self, accepts: Accepts, value: &Value, text: &str, key: Option<GeneratorKey>) {
        let place = value.start;
        if text.len() > PATH.most {
            return self.problem_of(ProblemKind::TooLarge, place, PATH.more(), PATH.hint);
        }
        let spot = spot(value, self.read.references.len());
        self.read.references.push(Reference {
            field: self.field.clone(),
            accepts,
            text: text.to_owned(),
            key,
            span: Span { start: place, end: value.end },
            spot,
        });
    }

    /// `names` are those of its name, version, repository and file of values.
    fn chart(&mut self, names: [&str; 4], value: &Value) {
        for (key, value) in value.mapping().unwrap_or_default() {
            let is = |name: &str| is_same_key(name, key);
            let is_plugin = !self.field.starts_with("helmChart");
            // Each is an argument of helm.
            for word in value.list().unwrap_or(std::slice::from_ref(value)) {
                self.within(key, |reader| {
                    let Some(text) = word.text() else {
                        if names.iter().any(|name| is(name)) && word.scalar().is_some() && word.data != Data::Null {
                            reader.wrong_type(word, "a string", None);
                        }
                        return;
                    };
                    reader.argument(word, text, "helm");
                    let is_values = is(names[3]) || is("additionalValuesFiles");
                    if let Some((what, hint)) = odd_argument(word, text, is_plugin, is_values, is("nameTemplate")) {
                        reader.problem(word.start, what, hint);
                    }
                    if let Some((place, what, hint)) = plugin::odd_here(word) {
                        reader.problem(place, format!("{what} in a chart"), hint);
                    }
                });
            }
        }
        let text = |name| value.folded_field(name).and_then(Value::text).unwrap_or_default();
        let [name, version, repo, values] = names.map(|name| text(name).to_owned());
        // Nothing else is read then; that there are values to replace them by is taken for granted.
        let values_file = text("valuesMerge") == "replace" || !values.is_empty();
        let devel = value.folded_field("devel").is_some_and(Value::is_on);
        if !name.is_empty() || !repo.is_empty() {
            let at = value.folded_field(names[2]).filter(|_| !repo.is_empty());
            let place = at.unwrap_or(value).start;
            let version_at = value.folded_field(names[1]).filter(|_| !version.is_empty());
            let version_at = version_at.map(|version| spot(version, self.read.notes.len()));
            let home = self.chart_home.clone();
            self.note(place, NoteKind::Chart { repo, name, version, version_at, values_file, home, devel });
        }
    }

    /// `EnforceFields` (api/types/kustomization.go): both may be missing or empty.
    fn check_kind(&mut self, root: &Value) {
        let (kind, name, version) = match root.folded_field("kind").and_then(Value::string) {
            Some("Component") => (Kind::Component, "Component", "v1alpha1"),
            _ => (Kind::Kustomization, "Kustomization", "v1beta1"),
        };
        self.read.kind = kind;
        let version = format!("kustomize.config.k8s.io/{version}");
        for (field, wanted) in [("kind", name), ("apiVersion", &version)] {
            let Some(value) = root.folded_field(field) else { continue };
            let found = value.string().unwrap_or_default();
            if !found.is_empty() && found != wanted {
                let message = format!("expected `{field}: {wanted}`, found `{found}`");
                let hint = format!("write `{field}: {wanted}`, or remove the line");
                let place = value.start;
                self.within(field, |reader| reader.problem_of(ProblemKind::WrongKind, place, message, &hint));
            }
        }
    }

    fn wrong_type(&mut self, value: &Value, wanted: &str, hint: Option<String>) {
        let (mut is, mut hint) = (value.kind(), hint.unwrap_or_default());
        if let Some(word) = value.scalar().filter(|_| wanted == "a string") {
            // For YAML 1.1, `yes` is one.
            is = if value.text().is_some() { "a boolean" } else { is };
            hint = format!("quote it: `\"{word}\"`");
        }
        self.problem(value.start, format!("expected {wanted}, found {is}"), &hint);
    }

    pub(super) fn note(&mut self, position: Position, kind: NoteKind) {
        let field = self.field.clone();
        self.read.notes.push(Note { position, field, kind });
    }

    pub(super) fn problem(&mut self, place: Position, message: impl Into<String>, hint: &str) {
        self.problem_of(ProblemKind::Other, place, message, hint);
    }

    fn problem_of(&mut self, kind: ProblemKind, place: Position, message: impl Into<String>, hint: &str) {
        let problem = Problem::new(kind, place, message, hint);
        self.problems.push(Problem { field: self.field.clone(), ..problem });
    }
}

/// Returns where a scalar is edited; of several places that show it this is the one of this number.
fn spot(value: &Value, number: usize) -> Spot {
    // Only a plain or quoted scalar is edited, or an alias.
    let is_block = matches!(value.style, ScalarStyle::Literal | ScalarStyle::Folded) && value.alias_of.is_none();
    let range = if is_block { 0..0 } else { value.range.clone() };
    Spot { range, start: value.start, in_flow: value.in_flow, number }
}

/// Returns what a text of a chart says to kustomize and helm besides itself, and what to do.
fn odd_argument(
    word: &Value,
    text: &str,
    is_plugin: bool,
    is_values: bool,
    is_template: bool,
) -> Option<(&'static str, &'static str)> {
    // kyaml reads a date, and writes it back with a time.
    if is_plugin && word.style == ScalarStyle::Plain && is_date(text) {
        return Some(("a date in a chart: kustomize may add a time to it", "quote it"));
    }
    if is_values && text.contains(',') {
        return Some(("helm reads two files where `,` separates them", "rename the file"));
    }
    let is_filled = is_template && text.contains("{{");
    is_filled.then_some(("helm fills in this template from the machine that builds", "write `releaseName`"))
}

/// Returns whether go-yaml may take a plain word for a date: `2024-1-31`, and a time behind it.
fn is_date(text: &str) -> bool {
    let day = text.split(['T', 't', ' ']).next().unwrap_or_default();
    let parts: Vec<&str> = day.split('-').collect();
    let are_digits = parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    matches!(parts.as_slice(), [year, month, day] if year.len() == 4 && month.len() < 3 && day.len() < 3) && are_digits
}

/// Returns whether a value may name something.
fn leads(tree: &Tree, value: &Value) -> bool {
    match (&value.data, tree.role) {
        (_, Some(Role::Other | Role::Argument)) => false,
        _ if plugin::odd_here(value).is_some() => true,
        (Data::Null, _) => false,
        (Data::List(items), None) => items.iter().any(|item| tree.names.get("[]").is_none_or(|of| leads(of, item))),
        (Data::Mapping(pairs), None) => {
            pairs.iter().any(|(key, value)| tree.field(key).is_some_and(|(_, of)| leads(of, value)))
        }
        _ => value.text() != Some(""),
    }
}

pub(super) fn did_you_mean(name: &str, known: impl Iterator<Item = &'static str>) -> String {
    nearest(name, known).map_or_else(String::new, |name| format!("did you mean `{name}`?"))
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
