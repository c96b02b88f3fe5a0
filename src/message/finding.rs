//! The findings of `check`.
//!
//! A [`Finding`] is an error in the user's files. A [`Failure`] stops the check itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use super::failure::{Failure, Location};
pub(crate) use super::rule::MendedBy;
pub use super::rule::Rule;
use super::upstream::Upstream;
use crate::message::position::{Position, Span};

/// The severity of a finding, or the level of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Fails the check.
    Error,
    /// Is shown, but does not fail the check.
    Warning,
    /// Switches a rule off. No finding has this severity.
    Off,
}

impl Severity {
    /// The name in messages, JSON and the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Off => "off",
        }
    }
}

/// The thing that a finding is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Subject {
    /// A text that is not a reference, or a reference to an existing path of the tree.
    Local,
    /// A path that is missing in the tree.
    Path { path: String },
    /// A program or plugin that is not in the tree.
    Program {
        /// The name as written.
        program: String,
    },
    /// Something on another host.
    #[serde(untagged, serialize_with = "upstream_keys")]
    Remote(Upstream),
}

impl Subject {
    /// The upstream; `None` if the subject is local.
    pub fn upstream(&self) -> Option<&Upstream> {
        if let Subject::Remote(upstream) = self { Some(upstream) } else { None }
    }
}

/// Writes the keys of an upstream in JSON, as the schema of `check` has them: a missing ref is null, a missing version
/// of a chart is empty.
fn upstream_keys<S: Serializer>(upstream: &Upstream, serializer: S) -> Result<S::Ok, S::Error> {
    let url = Some(upstream.url());
    serializer.collect_map(match upstream {
        Upstream::Git { path, reference, .. } => vec![
            ("kind", Some("git")),
            ("url", url),
            ("path", Some(path)),
            ("ref", reference.as_deref()),
            ("pin", Some(upstream.pin().name())),
        ],
        Upstream::File { .. } => vec![("kind", Some("http")), ("url", url)],
        Upstream::Chart { chart, version, .. } => {
            let version = version.as_deref().unwrap_or_default();
            vec![("kind", Some("helm")), ("url", url), ("chart", Some(chart)), ("version", Some(version))]
        }
        Upstream::Image { .. } => vec![("kind", Some("image")), ("image", url)],
    })
}

/// The exception that covers a finding: a comment or an entry of `allow`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Allowed {
    /// The path of the file with the exception.
    pub path: String,
    #[serde(flatten)]
    pub span: Span,
    pub reason: String,
    /// Whether the exception is added by the change that `check` compares with its base.
    #[serde(skip)]
    pub is_new: bool,
}

impl Allowed {
    /// The location of the exception, for example `apps/web/kustomization.yaml:4`.
    pub fn by(&self) -> String {
        format!("{}:{}", self.path, self.span.start.line)
    }
}

/// A violated rule at a location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub rule: Rule,
    pub severity: Severity,
    /// The upstream that the file belongs to, without secrets; empty for a file of the user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The file, from the top of the repository.
    pub path: String,
    /// The span in the file; `None` if the finding is about the whole file or its absence.
    #[serde(flatten)]
    pub span: Option<Span>,
    /// The line of the file on which the span begins, without its end; empty without a span. May hold
    /// a secret, which must be hidden before it is shown.
    #[serde(skip)]
    pub line_text: Arc<str>,
    /// The field, for example `resources[2]`; empty if the finding is not about a field.
    pub field: String,
    /// The reference as written, without secrets; empty if the finding is not about a reference.
    pub reference: String,
    /// The object, function or pattern that tells findings of the same location apart if neither field nor reference
    /// does. Without lines and counts, so that it stays equal after edits.
    #[serde(skip)]
    pub about: String,
    pub subject: Subject,
    /// A lower-case phrase.
    pub message: String,
    /// Ways to fix it, each an imperative phrase or exact commands, one per line. The way that
    /// keeps the user's text comes first.
    pub help: Vec<String>,
    /// The text with which messages merge findings of the same rule; `None` if they differ too much.
    #[serde(skip)]
    pub common: Option<Common>,
    /// Whether a file was not read completely. It may have more references than we know, so this finding is always
    /// shown.
    #[serde(skip)]
    pub unread: bool,
    /// Whether the file was not read because it is a template for YAML.
    #[serde(skip)]
    pub is_template: bool,
    /// The exception that covers the finding; `None` if it is not allowed.
    pub allowed: Option<Allowed>,
    /// The targets that deploy the build with the finding, for example
    /// `Flux Kustomization apps (clusters/prod/apps.yaml:3)`.
    #[serde(rename = "deployed_by")]
    pub deployed: Vec<String>,
    /// The roots and targets that lead to the file; only filled if `check` compares with a base.
    #[serde(skip)]
    pub starts: Arc<Starts>,
}

/// The texts with which one message covers several targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Common {
    /// The phrase about all of them, after `3 targets`.
    pub all: &'static str,
    /// The target with the detail of this finding.
    pub each: String,
}

/// The roots and targets that lead to a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Starts {
    /// The directories of all roots that lead there.
    pub roots: BTreeSet<String>,
    /// The top roots among them.
    pub tops: BTreeSet<String>,
    /// The targets that deploy it, as messages name them, by an identity without the location of their object.
    pub targets: BTreeMap<String, Vec<String>>,
}

impl Finding {
    /// A finding about a whole file, with the severity of its rule. Its message and its help are those of a failure.
    pub fn new(rule: Rule, path: &str, Failure { message, hints, .. }: Failure) -> Finding {
        Finding {
            rule,
            severity: rule.default_severity(),
            url: String::new(),
            path: path.to_owned(),
            span: None,
            line_text: Arc::default(),
            field: String::new(),
            reference: String::new(),
            about: String::new(),
            subject: Subject::Local,
            message,
            help: hints,
            common: None,
            unread: false,
            is_template: false,
            allowed: None,
            deployed: Vec::new(),
            starts: Arc::default(),
        }
    }

    /// A finding at a location.
    pub fn at(rule: Rule, location: Location, failure: Failure) -> Finding {
        let Location { url, file, position: Position { line, column }, field } = location;
        let span = (line > 0).then(|| Span::from(Position::new(line, column.max(1))));
        Finding { url, span, field, ..Finding::new(rule, &file, failure) }
    }

    /// Sets what tells it apart from other findings at its location.
    pub fn about(self, about: impl Into<String>) -> Finding {
        Finding { about: about.into(), ..self }
    }

    /// Sets the upstream as its reference and subject.
    pub fn naming(self, upstream: &Upstream) -> Finding {
        Finding { reference: upstream.to_string(), subject: upstream.subject(), ..self }
    }

    /// Makes it a warning, whatever the default of its rule.
    pub fn warning(self) -> Finding {
        Finding { severity: Severity::Warning, ..self }
    }

    /// The location, without the field.
    pub fn location(&self) -> Location {
        let position = self.span.map_or_else(Position::default, |span| span.start);
        Location { url: self.url.clone(), file: self.path.clone(), position, field: String::new() }
    }

    /// Whether it makes the check fail.
    pub fn fails(&self) -> bool {
        self.severity == Severity::Error && self.allowed.is_none()
    }

    /// Whether its reference alone identifies it.
    pub fn is_named(&self) -> bool {
        // One function can have several findings.
        !self.reference.is_empty() && self.rule != Rule::Function
    }

    /// An identity that survives moved lines and changed counts in messages: rule, path and reference. If the reference
    /// does not identify the finding, the field without indices and `about` are added.
    pub fn identity(&self) -> (Rule, &str, String) {
        let text = if self.is_named() {
            self.reference.clone()
        } else {
            // An index changes as soon as somebody adds an item above.
            let field = self.field.replace(|character: char| character.is_ascii_digit(), "");
            format!("{field} {} {}", self.about, self.reference)
        };
        (self.rule, &self.path, text)
    }
}

/// Sorts findings by location, and removes duplicates.
pub(crate) fn sort(findings: &mut Vec<Finding>) {
    // Several walks reach one file, so that findings come twice and in any order.
    findings.sort_by(|left, right| {
        let [left, right] =
            [left, right].map(|finding| (&finding.url, &finding.path, finding.span, finding.rule, &finding.message));
        left.cmp(&right)
    });
    findings.dedup();
}
