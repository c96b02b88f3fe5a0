//! What a string means where it stands.

use super::decode::{Chart, Reader};
use super::{Declared, Place, Whereabouts};
use crate::kustomization::fields::Role;
use crate::kustomization::yaml::{NodeId, Stream, Type};
use crate::kustomization::{
    Accepts, GeneratorKey, NoteKind, PluginUse, ProblemKind, Reference, Spot, plugin,
};
use crate::limits::PATH;
use crate::redact;

impl<'d> Reader<'d> {
    pub(super) fn text(&mut self, role: Role, place: &Place, field: &str) -> bool {
        let Some(text) = self.string(place, field) else {
            return true;
        };
        if text.is_empty() {
            return false;
        }
        if role != Role::Plain
            && self.document.scalar_type(place.node, self.dialect) == Some(Type::Binary)
        {
            let message = "a string written as !!binary cannot be followed".to_owned();
            let hints = vec!["write it as text".to_owned()];
            self.problem(place.node, field, ProblemKind::WrongType, message, hints);
            return true;
        }
        if matches!(
            role,
            Role::ChartName | Role::ChartVersion | Role::ChartRepo | Role::HelmArgument
        ) && text.starts_with('-')
        {
            let message = format!("helm would take `{}` for an option", redact::url(text));
            self.misleading(place.node, field, text, message);
        }
        match role {
            Role::Plain | Role::HelmArgument | Role::Code => {}
            Role::Kind | Role::ApiVersion => {
                let (line, column) = self.whereabouts.start(self.document.node(place.node));
                let declared = Some(Declared {
                    value: text.to_owned(),
                    field: field.to_owned(),
                    line,
                    column,
                });
                match role {
                    Role::Kind => self.found.declared_kind = declared,
                    _ => self.found.declared_version = declared,
                }
                return false;
            }
            Role::BuildMetadata => self.found.build_metadata.push(text.to_owned()),
            Role::Reference(accepts) => self.reference(accepts, place, field, text, None),
            Role::FileSource => self.file_source(place, field, text),
            Role::PatchOrFile if is_inline(text) => match plugin::objects(text) {
                Ok(inline) => {
                    let whereabouts = self.within_scalar(place, text, &inline);
                    plugin::refuse_odd(&inline, &whereabouts.within(field), self.found);
                }
                Err(why) => self.not_inline(place, field, &why),
            },
            Role::PatchOrFile => self.reference(Accepts::File, place, field, text, None),
            Role::Plugin(listed) => self.plugin(listed, place, field, text),
            Role::ValuesFile => {
                self.chart_text(role, place, text);
                self.reference(Accepts::File, place, field, text, None);
            }
            Role::ValuesMerge | Role::ChartName | Role::ChartVersion | Role::ChartRepo => {
                self.chart_text(role, place, text);
            }
            Role::ChartHome => {
                let (path, spot) = (text.to_owned(), self.spot(place, text));
                let message = format!("charts are looked for in `{text}`");
                self.note(
                    place.node,
                    field,
                    NoteKind::ChartHome { path, spot },
                    message,
                );
            }
        }
        true
    }

    /// Takes note of what a chart says.
    fn chart_text(&mut self, role: Role, place: &Place, text: &str) {
        let Some(chart) = &mut self.chart else {
            return;
        };
        match role {
            Role::ValuesFile => chart.values_file = true,
            // Nothing else is read then; that there are values to replace them by is taken for granted.
            Role::ValuesMerge => chart.values_file |= text == "replace",
            Role::ChartName => chart.name = text.to_owned(),
            Role::ChartVersion => chart.version = text.to_owned(),
            Role::ChartRepo => chart.repo = Some((place.clone(), text.to_owned())),
            _ => {}
        }
    }

    /// `ParseFileSource` (api/internal/generators/utils.go).
    fn file_source(&mut self, place: &Place, field: &str, text: &str) {
        let wrong = |message: &str, hint: &str| (message.to_owned(), vec![hint.to_owned()]);
        let problem = match text.split_once('=') {
            None => {
                let key = GeneratorKey::Implied(base_name(text).to_owned());
                self.reference(Accepts::File, place, field, text, Some(key));
                return;
            }
            Some((_, path)) if path.contains('=') => wrong(
                "key name or file path contains '='",
                "download the file and name it without `=`, as `key=path`",
            ),
            Some(("", _)) => wrong(
                "no key name before '='",
                "write `key=path`, or the path alone",
            ),
            Some((_, "")) => wrong(
                "no file path after '='",
                "write `key=path`, or the path alone",
            ),
            // What stands behind `=` may be a token.
            Some((key, _))
                if key.contains("://") || (key.contains('?') && redact::has_secret(text)) =>
            {
                (
                    format!(
                        "kustomize takes the text before `=` in `{}` for the key",
                        redact::url(text)
                    ),
                    vec!["download the file, and name it without `=`".to_owned()],
                )
            }
            Some((key, path)) => {
                let key = GeneratorKey::Explicit(key.to_owned());
                let spot = self.spot(place, text);
                self.push(Accepts::File, place, field, path, Some(key), spot);
                return;
            }
        };
        self.problem(
            place.node,
            field,
            ProblemKind::FileSource,
            problem.0,
            problem.1,
        );
    }

    fn plugin(&mut self, listed: PluginUse, place: &Place, field: &str, text: &str) {
        if !is_inline(text) {
            self.reference(Accepts::Plugin(listed), place, field, text, None);
            return;
        }
        match plugin::objects(text) {
            Ok(inline) => {
                let whereabouts = self.within_scalar(place, text, &inline);
                let prefix = format!("{field}#");
                plugin::read_objects(&inline, &whereabouts, &prefix, Some(listed), self.found);
            }
            Err(why) => self.not_inline(place, field, &why),
        }
    }

    /// Returns where the nodes of a stream are that is the text of a scalar.
    pub(in crate::kustomization) fn within_scalar<'i>(
        &self,
        place: &Place,
        text: &str,
        inline: &'i Stream<'i>,
    ) -> Whereabouts<'i> {
        let outer = self.spot(place, text);
        let node = self.document.node(place.node);
        let is_alias = self.document.target(place.node) != place.node;
        self.whereabouts
            .nested(node, (!is_alias).then_some(node), inline, outer)
    }

    fn not_inline(&mut self, place: &Place, field: &str, why: &str) {
        let message = format!("neither a path nor an inline configuration: {why}");
        let kind = ProblemKind::InlineConfiguration;
        self.problem(place.node, field, kind, message, vec![]);
    }

    pub(in crate::kustomization) fn reference(
        &mut self,
        accepts: Accepts,
        place: &Place,
        field: &str,
        text: &str,
        key: Option<GeneratorKey>,
    ) {
        let spot = self.spot(place, text);
        self.push(accepts, place, field, text, key, spot);
    }

    fn push(
        &mut self,
        accepts: Accepts,
        place: &Place,
        field: &str,
        text: &str,
        key: Option<GeneratorKey>,
        spot: Spot,
    ) {
        if text.len() > PATH.most {
            self.problem(
                place.node,
                field,
                ProblemKind::TooLarge,
                PATH.more(),
                vec![PATH.hint.to_owned()],
            );
            return;
        }
        if !self.found.has_room() {
            return;
        }
        if let Some((one, other)) = run_together(text) {
            let message = format!("two entries in one: `{one}` and `{other}`");
            let hints =
                vec!["put each on its own line, its `-` below that of the other".to_owned()];
            self.problem(place.node, field, ProblemKind::Entry, message, hints);
            return;
        }
        let node = self.document.node(place.node);
        let (line, column) = self.whereabouts.start(node);
        let (end_line, end_column) = self.whereabouts.end(node);
        self.found.references.push(Reference {
            field: self.whereabouts.label(field),
            accepts,
            text: text.to_owned(),
            key,
            line,
            column,
            end_line,
            end_column,
            spot,
        });
    }

    fn spot(&self, place: &Place, text: &str) -> Spot {
        self.whereabouts.spot(Spot {
            document: self.index,
            path: place.path.clone(),
            inner: None,
            text: text.into(),
        })
    }

    pub(super) fn note_chart(&mut self, chart: Chart, place: &Place, field: &str) {
        let Chart {
            name,
            version,
            repo,
            values_file,
            devel,
        } = chart;
        if name.is_empty() && repo.is_none() {
            return;
        }
        match repo {
            Some((at, repo)) => {
                let repo_spot = self.spot(&at, &repo);
                let message =
                    format!("chart `{name}` comes from a repository unless it is vendored");
                let kind = NoteKind::RemoteChart {
                    repo,
                    name,
                    version,
                    values_file,
                    devel,
                    repo_spot,
                };
                self.note(at.node, field, kind, message);
            }
            None => {
                let message = format!("chart `{name}` must be in the directory of charts");
                let kind = NoteKind::LocalChart {
                    name,
                    version,
                    values_file,
                };
                self.note(place.node, field, kind, message);
            }
        }
    }

    /// Refuses an empty text, or nothing: kustomize takes it for the directory itself, not for none.
    pub(super) fn empty_entry(&mut self, node: NodeId, field: &str) {
        let message = "an empty entry names nothing".to_owned();
        let hints = vec!["take it out".to_owned()];
        self.problem(node, field, ProblemKind::Entry, message, hints);
    }

    /// Notes a text that a program would take for something else.
    pub(in crate::kustomization) fn misleading(
        &mut self,
        node: NodeId,
        field: &str,
        text: &str,
        message: String,
    ) {
        let text = text.to_owned();
        self.note(node, field, NoteKind::Misleading { text }, message);
    }

    pub(super) fn string(&mut self, place: &Place, field: &str) -> Option<&'d str> {
        match self.document.scalar_type(place.node, self.dialect) {
            Some(Type::Text | Type::Binary) => self.document.scalar(place.node),
            _ => {
                self.wrong_type(place, field, "a string");
                None
            }
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

/// Returns two entries of a list that stand in one text, because the second does not begin a line, or is indented
/// below the first. kustomize joins `../base - ../../b` to a path, in which `..` takes the first away again.
fn run_together(text: &str) -> Option<(&str, &str)> {
    text.match_indices('-').find_map(|(at, _)| {
        let (one, other) = (&text[..at], &text[at + 1..]);
        let is_apart = one.ends_with(char::is_whitespace) && other.starts_with(char::is_whitespace);
        if !is_apart {
            return None;
        }
        let (one, other) = (one.trim(), other.trim());
        let begins = ["./", "../", "/"]
            .iter()
            .any(|begin| other.starts_with(begin));
        let is_file = |text: &str| {
            [".yaml", ".yml", ".json"]
                .iter()
                .any(|end| text.ends_with(end))
        };
        let is_entry =
            begins || other == ".." || other.contains("://") || (is_file(one) && is_file(other));
        (is_entry && !one.is_empty()).then_some((one, other))
    })
}

/// Go's `path.Base`.
pub(in crate::kustomization) fn base_name(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    match trimmed.rsplit('/').next() {
        Some("") | None if path.is_empty() => ".",
        Some("") | None => "/",
        Some(name) => name,
    }
}
