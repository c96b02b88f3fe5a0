//! The field table applied to a document.

use std::collections::HashMap;
use std::ops::Range;

use super::fields::{Role, TREE, Tree};
use super::within::{Lines, Within};
use super::yaml::{self, Data, Stream, Value};
use super::{
    Accepts, GeneratorKey, Kind, Kustomization, Note, NoteKind, Problem, ProblemKind, Reference, Refused, Reshaping,
    Spot, plugin,
};
use crate::message::failure::nearest;
use crate::message::redact;
use crate::os::limits::{ENTRIES, NODES, PATH};

/// The versions that go with the kinds (api/types/kustomization.go).
const KUSTOMIZATION_VERSION: &str = "kustomize.config.k8s.io/v1beta1";
const COMPONENT_VERSION: &str = "kustomize.config.k8s.io/v1alpha1";

/// Reads a kustomization file.
///
/// Returns what keeps its references from being read, in the order of the text. Whether a reference leads anywhere is not
/// looked at.
pub fn read(bytes: &[u8]) -> Result<Kustomization, Refused> {
    let stream = parse(bytes, 1)?;
    let mut found = Found::default();
    let mut reader = Reader { text: stream.text, within: None, prefix: String::new(), found: &mut found };
    if let Some(root) = stream.documents.first().filter(|root| root.data != Data::Null) {
        reader.visit(&TREE, root, "");
        reader.check_kind(root);
        reader.check_homes(root);
    }
    let is_filled =
        |(key, value): &(String, Value)| !equal("kind", key) && !equal("apiVersion", key) && value.data != Data::Null;
    let pairs = stream.documents.first().map(|root| root.mapping().unwrap_or_default());
    if !pairs.is_some_and(|pairs| pairs.iter().any(is_filled)) && reader.found.problems.is_empty() {
        let hint = "add a field; `resources: []` is enough";
        reader.problem_of(ProblemKind::Empty, (1, 1), "", "kustomization.yaml is empty".to_owned(), hint);
    }
    if let Some(rest) = stream.rest {
        let message = "kustomize reads the first document only, not this one".to_owned();
        reader.note(rest, "", NoteKind::ExtraDocument, message);
    }
    found.finish()
}

/// Reads a file that is named in `generators`, `transformers` or `validators`; all its documents count.
pub fn read_plugin(bytes: &[u8]) -> Result<Kustomization, Refused> {
    let stream = parse(bytes, usize::MAX)?;
    let mut found = Found::default();
    let mut reader = Reader { text: stream.text, within: None, prefix: String::new(), found: &mut found };
    plugin::read_objects(&stream, "", &mut reader);
    found.finish()
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
pub fn reshaping(bytes: &[u8]) -> Vec<Reshaping> {
    let stream = parse(bytes, 1).ok();
    let Some(root) = stream.as_ref().and_then(|stream| stream.documents.first()) else {
        return Vec::new();
    };
    let found = RESHAPING.into_iter().filter_map(|(field, annotations_only)| {
        let value = root.folded_field(field)?;
        let is_empty = match &value.data {
            Data::List(items) if field == "labels" => items.iter().all(|item| item.folded_field("fields").is_none()),
            Data::List(items) => items.is_empty(),
            Data::Mapping(pairs) => pairs.is_empty(),
            _ => true,
        };
        let (_, line, column) = value.key;
        (!is_empty).then_some(Reshaping { field, annotations_only, line, column })
    });
    let mut found: Vec<Reshaping> = found.collect();
    found.sort_by_key(|one| (one.line, one.column));
    found
}

/// Reads bytes as YAML.
fn parse(bytes: &[u8], limit: usize) -> Result<Stream<'_>, Problem> {
    let problem = |(line, column), message: String, hint: &str, kind| Problem {
        line,
        column,
        field: String::new(),
        message,
        hints: Some(hint.to_owned()).filter(|hint| !hint.is_empty()).into_iter().collect(),
        kind,
    };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid = String::from_utf8_lossy(bytes.get(..error.valid_up_to()).unwrap_or_default());
        let (above, last) = valid.rsplit_once('\n').unwrap_or(("", &valid));
        let line = above.matches('\n').count() + 1 + usize::from(last.len() < valid.len());
        let place = (line, last.chars().count() + 1);
        problem(place, "not UTF-8".to_owned(), "save the file as UTF-8", ProblemKind::Other)
    })?;
    yaml::read(text, limit).map_err(|error| {
        let place = (error.line, error.column);
        if error.is_too_large {
            return problem(place, error.message, NODES.hint, ProblemKind::TooLarge);
        }
        if let Some(line) = text.lines().position(|line| line.starts_with("<<<<<<< ")).filter(|_| text.contains("\n>>>>>>> ")) {
            let message = "conflict markers: two sides of a merge changed the same lines".to_owned();
            let hint = "choose what stays, remove the lines `<<<<<<<`, `=======` and `>>>>>>>`, and `git add` the file";
            return problem((line + 1, 1), message, hint, ProblemKind::Other);
        }
        let hint = if ["{{", "{%"].iter().any(|action| text.contains(action)) {
            "if it is a template, which other files are made of, add its directory to `exclude` in `.kustomize-localize`"
        } else {
            ""
        };
        problem(place, format!("not valid YAML: {}", error.message), hint, ProblemKind::Other)
    })
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Refused { problems: vec![problem], read: Kustomization::default() }
    }
}

/// What has been found so far.
#[derive(Debug, Default)]
pub(super) struct Found {
    read: Kustomization,
    problems: Vec<Problem>,
}

impl Found {
    /// Returns whether there is room for one more reference, note or problem.
    fn has_room(&mut self) -> bool {
        let count = self.read.references.len() + self.read.notes.len() + self.problems.len();
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

    /// Puts everything in the order of the text.
    fn finish(self) -> Result<Kustomization, Refused> {
        let Found { mut read, mut problems } = self;
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
}

/// What stands behind each name of a step of the table: the key, the value, and whether a merge key brought it in.
type Slots<'v> = HashMap<&'static str, (&'v str, &'v Value, bool)>;

/// Applies a table to a document, or an object in it.
pub(super) struct Reader<'a> {
    pub text: &'a str,
    pub within: Option<&'a Within<'a>>,
    /// Stands before every field.
    pub prefix: String,
    pub found: &'a mut Found,
}

impl Reader<'_> {
    /// Visits everything on the way to a field of the table.
    pub(super) fn visit(&mut self, tree: &Tree, value: &Value, field: &str) {
        let leads_on = tree.items.is_some() || !tree.names.is_empty();
        if tree.role == Some(Role::Other) || (value.data == Data::Null && leads_on) {
            return;
        }
        if let Some(tag) = &value.tag {
            let tag = tag.replace("tag:yaml.org,2002:", "!!");
            let message = format!("the tag `{tag}` on the way to a reference");
            return self.problem(value.place(), field, message, "write the value without a tag");
        }
        match (&value.data, &tree.items) {
            (Data::List(items), Some(of)) => {
                for (i, item) in items.iter().enumerate() {
                    self.visit(of, item, &format!("{field}[{i}]"));
                }
            }
            (_, Some(_)) => self.wrong_type(value, field, "a list"),
            (Data::Mapping(_), None) if leads_on => {
                let mut slots = Slots::new();
                self.fill(tree, value, field, false, &mut slots);
                for (name, of) in &tree.names {
                    if let Some((_, value, _)) = slots.get(name) {
                        let is_nothing = value.data == Data::Null || value.text() == Some("");
                        if !is_nothing {
                            self.visit(of, value, &join(field, name));
                        }
                    }
                }
                if tree.role == Some(Role::Chart) {
                    self.chart(value, &slots, field);
                }
            }
            (_, None) if leads_on => self.wrong_type(value, field, "a mapping"),
            _ => self.leaf(tree.role.unwrap_or(Role::Other), value, field),
        }
    }

    /// Finds what a mapping says behind the names of a table. Where kustomize could take one of two, nothing is taken.
    fn fill<'v>(&mut self, tree: &Tree, value: &'v Value, field: &str, is_merged: bool, slots: &mut Slots<'v>) {
        for (key, value) in value.mapping().unwrap_or_default() {
            let place = (value.key.1, value.key.2);
            if key == "<<" {
                let merged = value.list().unwrap_or(std::slice::from_ref(value));
                if is_merged || merged.iter().any(|one| one.mapping().is_none()) {
                    let message = "the merge key `<<` needs a mapping without one, or a list of them".to_owned();
                    self.problem(place, field, message, "write out what it merges");
                    continue;
                }
                for one in merged {
                    self.fill(tree, one, field, true, slots);
                }
                continue;
            }
            let Some((name, _)) = tree.names.iter().find(|(name, _)| equal(name, key)) else {
                if tree.is_complete {
                    let names = tree.names.iter().map(|(name, _)| *name);
                    let hint = nearest(key, names).map(|name| format!("did you mean `{name}`?"));
                    let message = format!("unknown field `{key}`");
                    self.problem(place, &join(field, key), message, hint.as_deref().unwrap_or_default());
                }
                continue;
            };
            match slots.get(name) {
                // Of what merge keys bring in, the first counts.
                Some((known, _, true)) if is_merged && known == key => {}
                // And is meant to be replaced by what comes after.
                Some((known, _, true)) if !is_merged && known == key => {
                    slots.insert(name, (key, value, is_merged));
                }
                None => {
                    slots.insert(name, (key, value, is_merged));
                }
                Some((_, other, _)) => {
                    let (line, _) = self.place((other.key.1, other.key.2), |within| within.start);
                    let message = format!("the same field is in line {line}");
                    let hint = "put both into one field, or remove one of them";
                    self.problem(place, &join(field, name), message, hint);
                }
            }
        }
    }

    fn leaf(&mut self, role: Role, value: &Value, field: &str) {
        if let Role::Unsupported(hint) = role {
            return self.problem(value.place(), field, "this field is not supported".to_owned(), hint);
        }
        let text = match value.string() {
            Some(text) => text,
            None if value.data == Data::Null => "",
            None => return self.wrong_type(value, field, "a string"),
        };
        match role {
            Role::Leads(Accepts::Plugin) | Role::Patch if text.is_empty() => {}
            Role::Leads(_) | Role::Source if text.is_empty() => {
                self.problem(value.place(), field, "an empty entry names nothing".to_owned(), "take it out");
            }
            Role::Leads(Accepts::Plugin) if is_inline(text) => {
                if let Some(stream) = self.inline(value, text, field) {
                    let prefix = format!("{field}#");
                    self.nested(value, text, |reader| plugin::read_objects(&stream, &prefix, reader));
                }
            }
            Role::Patch if is_inline(text) => drop(self.inline(value, text, field)),
            Role::Patch => self.reference(Accepts::File, value, field, text, None),
            Role::Leads(accepts) => self.reference(accepts, value, field, text, None),
            Role::Source => self.file_source(value, field, text),
            Role::BuildMetadata => self.found.read.build_metadata.push(text.to_owned()),
            Role::ChartHome => {
                let spot = self.spot(value);
                let message = format!("charts are looked for in `{text}`");
                self.note(value.place(), field, NoteKind::ChartHome { path: text.to_owned(), spot }, message);
            }
            Role::Argument => self.argument(value, field, text, "helm"),
            Role::Other | Role::Word | Role::Chart | Role::Unsupported(_) => {}
        }
    }

    /// Notes a text that a program would take for an option.
    pub(super) fn argument(&mut self, value: &Value, field: &str, text: &str, program: &str) {
        if text.starts_with('-') {
            let message = format!("{program} would take `{}` for an option", redact::url(text));
            self.note(value.place(), field, NoteKind::Misleading { text: text.to_owned() }, message);
        }
    }

    /// `ParseFileSource` (api/internal/generators/utils.go).
    fn file_source(&mut self, value: &Value, field: &str, text: &str) {
        let (message, hint) = match text.split_once('=') {
            None => {
                let key = GeneratorKey::Implied(base_name(text).to_owned());
                return self.reference(Accepts::File, value, field, text, Some(key));
            }
            Some((_, path)) if path.contains('=') => (
                "key name or file path contains '='".to_owned(),
                "download the file and name it without `=`, as `key=path`",
            ),
            Some(("", _)) => ("no key name before '='".to_owned(), "write `key=path`, or the path alone"),
            Some((_, "")) => ("no file path after '='".to_owned(), "write `key=path`, or the path alone"),
            // What stands behind `=` may be a token.
            Some((key, _)) if key.contains("://") || (key.contains('?') && redact::has_secret(text)) => (
                format!("kustomize takes the text before `=` in `{}` for the key", redact::url(text)),
                "download the file, and name it without `=`",
            ),
            Some((key, path)) => {
                let key = GeneratorKey::Explicit(key.to_owned());
                return self.reference(Accepts::File, value, field, path, Some(key));
            }
        };
        self.problem(value.place(), field, message, hint);
    }

    /// Reads a text that stands in a scalar, and is YAML with objects itself.
    fn inline<'t>(&mut self, value: &Value, text: &'t str, field: &str) -> Option<Stream<'t>> {
        let stream = yaml::read(text, usize::MAX).map_err(|error| error.message);
        let stream = stream.and_then(|stream| match plugin::objects(&stream) {
            Ok(_) => Ok(stream),
            Err((_, why)) => Err(why),
        });
        stream
            .map_err(|why| {
                let message = format!("neither a path nor an inline configuration: {why}");
                self.problem(value.place(), field, message, "");
            })
            .ok()
    }

    /// Reads the text of a scalar.
    pub(super) fn nested(&mut self, value: &Value, text: &str, read: impl FnOnce(&mut Reader<'_>)) {
        let lines = Lines::find(self.text, value);
        let within =
            Within { above: self.within, lines, ranges: self.ranges(value), start: value.place(), end: value.end };
        let (within, prefix) = (Some(&within), self.prefix.clone());
        read(&mut Reader { text, within, prefix, found: self.found });
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
        if !self.found.has_room() {
            return;
        }
        let (line, column) = self.place(value.place(), |within| within.start);
        let (end_line, end_column) = self.place(value.end, |within| within.end);
        let field = join(&self.prefix, field);
        let (text, spot) = (text.to_owned(), self.spot(value));
        self.found.read.references.push(Reference {
            field,
            accepts,
            text,
            key,
            line,
            column,
            end_line,
            end_column,
            spot,
        });
    }

    fn spot(&self, value: &Value) -> Spot {
        let (line, column) = self.place(value.place(), |within| within.start);
        let number = self.found.read.references.len() + self.found.read.notes.len();
        Spot { ranges: self.ranges(value), line, column, number }
    }

    fn ranges(&self, value: &Value) -> Vec<Range<usize>> {
        let mut ranges = self.within.map_or_else(Vec::new, |within| within.ranges.clone());
        ranges.push(value.range.clone());
        ranges
    }

    fn chart(&mut self, value: &Value, slots: &Slots<'_>, field: &str) {
        let at = |names: [&str; 2]| names.iter().find_map(|name| slots.get(name)).map(|(_, value, _)| *value);
        let text = |value: Option<&Value>| value.and_then(Value::text).unwrap_or_default().to_owned();
        let name = text(at(["name", "chartName"]));
        let version = text(at(["version", "chartVersion"]));
        let repo = at(["repo", "chartRepoUrl"]).filter(|repo| repo.text().is_some_and(|repo| !repo.is_empty()));
        // Nothing else is read then; that there are values to replace them by is taken for granted.
        let replaces = value.folded_field("valuesMerge").and_then(Value::text) == Some("replace");
        let values_file = !text(at(["valuesFile", "values"])).is_empty() || replaces;
        match repo {
            Some(at) => {
                let message = format!("chart `{name}` comes from a repository unless it is vendored");
                let devel = value.folded_field("devel").is_some_and(Value::is_on);
                let (repo, repo_spot) = (text(Some(at)), self.spot(at));
                let kind = NoteKind::RemoteChart { repo, name, version, values_file, devel, repo_spot };
                self.note(at.place(), field, kind, message);
            }
            None if name.is_empty() => {}
            None => {
                let message = format!("chart `{name}` must be in the directory of charts");
                self.note(value.place(), field, NoteKind::LocalChart { name, version, values_file }, message);
            }
        }
    }

    /// `EnforceFields`: both may be missing or empty.
    fn check_kind(&mut self, root: &Value) {
        let word = |name| root.folded_field(name).and_then(|value| Some((value, value.string()?)));
        let (kind, version) = (word("kind"), word("apiVersion"));
        let kind = kind.filter(|(_, kind)| !kind.is_empty());
        let wanted = match kind {
            Some((_, "Component")) => {
                self.found.read.kind = Kind::Component;
                COMPONENT_VERSION
            }
            None | Some((_, "Kustomization")) => KUSTOMIZATION_VERSION,
            Some((at, kind)) => {
                let message = format!("kind should be Kustomization or Component, not `{kind}`");
                let hint = "write `kind: Kustomization`, or remove the line";
                self.problem_of(ProblemKind::WrongKind, at.place(), "kind", message, hint);
                KUSTOMIZATION_VERSION
            }
        };
        if let Some((at, version)) = version.filter(|(_, version)| !version.is_empty() && *version != wanted) {
            let hint = if version.starts_with("kustomize.toolkit.fluxcd.io/") {
                "this is a Flux object; a file with this name must be a kustomization of kustomize".to_owned()
            } else {
                format!("write `apiVersion: {wanted}`, or remove the line")
            };
            let kind = kind.map_or("Kustomization", |(_, kind)| kind);
            let message = format!("apiVersion for {kind} should be {wanted}");
            self.problem_of(ProblemKind::WrongKind, at.place(), "apiVersion", message, &hint);
        }
    }

    /// Refuses homes of charts that kustomize does not read beside `helmGlobals`, whatever stands there.
    fn check_homes(&mut self, root: &Value) {
        if root.folded_field("helmGlobals").is_none() {
            return;
        }
        let charts = root.folded_field("helmChartInflationGenerator").and_then(Value::list);
        for (i, chart) in charts.unwrap_or_default().iter().enumerate() {
            if let Some(home) = chart.folded_field("chartHome") {
                let field = format!("helmChartInflationGenerator[{i}].chartHome");
                let hint = "leave it out, or write it as `helmGlobals.chartHome`";
                let message = "kustomize does not read it beside `helmGlobals`".to_owned();
                self.problem(home.place(), &field, message, hint);
            }
        }
    }

    fn wrong_type(&mut self, value: &Value, field: &str, wanted: &str) {
        let (is, hint) = match &value.data {
            Data::Flag(flag) => (format!("the boolean `{flag}`"), format!("quote it: `\"{flag}\"`")),
            Data::Number(text) => (format!("the number `{text}`"), format!("quote it: `\"{text}\"`")),
            Data::Text(text) if wanted == "a string" => {
                (format!("the boolean `{text}`"), format!("quote it: `\"{text}\"`"))
            }
            // As `patches` was written before kustomize 3.
            Data::Text(text) if wanted == "a mapping" && field.starts_with("patches[") => {
                let key = if text.contains('\n') { "patch: |-".to_owned() } else { format!("path: {text}") };
                ("a string".to_owned(), format!("say what it is: `- {key}`"))
            }
            Data::Text(_) => ("a string".to_owned(), "write each entry on its own line, after `- `".to_owned()),
            Data::Null => ("nothing".to_owned(), String::new()),
            Data::List(_) => ("a list".to_owned(), String::new()),
            Data::Mapping(_) => ("a mapping".to_owned(), String::new()),
        };
        let hint = if wanted == "a string" || matches!(value.data, Data::Text(_)) { hint.as_str() } else { "" };
        self.problem(value.place(), field, format!("expected {wanted}, found {is}"), hint);
    }

    /// Returns the place in the file of one in the text; `whole` says what it is if lines are unknown.
    fn place(&self, place: (usize, usize), whole: impl Fn(&Within<'_>) -> (usize, usize)) -> (usize, usize) {
        self.within.map_or(place, |within| within.place(place, &whole))
    }

    pub(super) fn note(&mut self, place: (usize, usize), field: &str, kind: NoteKind, message: String) {
        if self.found.has_room() {
            let (line, column) = self.place(place, |within| within.start);
            let field = join(&self.prefix, field);
            self.found.read.notes.push(Note { line, column, field, kind, message });
        }
    }

    pub(super) fn problem(&mut self, place: (usize, usize), field: &str, message: String, hint: &str) {
        self.problem_of(ProblemKind::Other, place, field, message, hint);
    }

    fn problem_of(&mut self, kind: ProblemKind, place: (usize, usize), field: &str, message: String, hint: &str) {
        if self.found.has_room() {
            let (line, column) = self.place(place, |within| within.start);
            let hints = Some(hint.to_owned()).filter(|hint| !hint.is_empty()).into_iter().collect();
            self.found.problems.push(Problem { line, column, field: join(&self.prefix, field), message, hints, kind });
        }
    }
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

/// Compares keys as `encoding/json` does: simple case folding, so that `ſ` is `s` and the Kelvin sign is `k`.
pub(super) fn equal(name: &str, key: &str) -> bool {
    let fold = |c: char| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    };
    name.chars().map(fold).eq(key.chars().map(fold))
}

/// Joins a field and the name of one in it.
pub(super) fn join(field: &str, name: &str) -> String {
    match (field, name) {
        ("", name) => name.to_owned(),
        (field, "") => field.to_owned(),
        (field, name) if name.starts_with('[') => [field, name].concat(),
        (field, name) => [field, ".", name].concat(),
    }
}
