//! What `check` reports: something wrong with the user's files.
//!
//! A [`Finding`] is not a [`crate::message::failure::Failure`], which is something that stopped us from looking.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use super::failure::Location;
pub(crate) use super::rule::MendedBy;
pub use super::rule::Rule;
use super::upstream::Upstream;
use crate::message::position::{Position, Span};

/// How much a finding matters, and what is made of the findings of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Fails the check.
    Error,
    /// Is shown, and fails nothing.
    Warning,
    /// Is left out. No finding has it.
    Off,
}

impl Severity {
    /// Returns its name, as in messages, JSON and the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Off => "off",
        }
    }
}

/// What a reference names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Subject {
    /// No reference, or one to something in the tree that is there.
    Local,
    /// What should be at a path from the top, and is not.
    Path {
        /// The path.
        path: String,
    },
    /// A program or plugin that is not in the tree.
    Program {
        /// As it is named.
        program: String,
    },
    /// Something on another host.
    #[serde(untagged, serialize_with = "remote")]
    Remote(Upstream),
}

impl Subject {
    /// Returns what it is on another host, if it is there.
    pub fn upstream(&self) -> Option<&Upstream> {
        if let Subject::Remote(upstream) = self { Some(upstream) } else { None }
    }
}

/// Shows something on another host in JSON.
fn remote<S: Serializer>(upstream: &Upstream, serializer: S) -> Result<S::Ok, S::Error> {
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
    /// The file that it stands in, from the top of the repository.
    pub path: String,
    /// Where it stands there.
    #[serde(flatten)]
    pub span: Span,
    /// The reason that it gives.
    pub reason: String,
    /// Whether the change that is judged adds it.
    #[serde(skip)]
    pub is_new: bool,
}

impl Allowed {
    /// Returns where it stands, as `apps/web/kustomization.yaml:4`.
    pub fn by(&self) -> String {
        format!("{}:{}", self.path, self.span.start.line)
    }
}

/// Something wrong with the user's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which rule found it.
    pub rule: Rule,
    /// How much it matters here.
    pub severity: Severity,
    /// The upstream that the file belongs to, without secrets; empty for a file of the user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The file, from the top of the repository.
    pub path: String,
    /// Where in the file; none when the whole file (or its absence) is meant.
    #[serde(flatten)]
    pub span: Option<Span>,
    /// The line of the file on which the span begins, without its end; empty without a span. May hold
    /// a secret: what shows it takes that out.
    #[serde(skip)]
    pub line_text: Arc<str>,
    /// The field, as `resources[2]`; empty when no field is meant.
    pub field: String,
    /// The reference as written, without secrets; empty when no reference is meant.
    pub reference: String,
    /// What of its place it is about, where neither field nor reference tell: an object, a function, a pattern. Without
    /// lines and counts.
    #[serde(skip)]
    pub about: String,
    /// What the reference names.
    pub subject: Subject,
    /// What is wrong: a lower-case phrase.
    pub message: String,
    /// What to do, each an imperative phrase or exact commands, one below the other. The way that
    /// keeps what the user wrote comes first.
    pub help: Vec<String>,
    /// What it has in common with others of its rule; `None` if each of those says something else.
    #[serde(skip)]
    pub common: Option<Common>,
    /// Whether something was not read as a whole: it may name more than is known, so nothing leaves this out.
    #[serde(skip)]
    pub unread: bool,
    /// Whether that is because something else makes YAML of it.
    #[serde(skip)]
    pub is_template: bool,
    /// Whether and where it is allowed.
    pub allowed: Option<Allowed>,
    /// What deploys the build that it is in, as `Flux Kustomization apps (clusters/prod/apps.yaml:3)`.
    #[serde(rename = "deployed_by")]
    pub deployed: Vec<String>,
    /// What leads to its file, where a change is judged against its base.
    #[serde(skip)]
    pub starts: Arc<Starts>,
}

/// What is said at once of several targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Common {
    /// What is said of all of them, after `3 targets`.
    pub all: &'static str,
    /// The target, and what is said of this one.
    pub each: String,
}

/// What leads to a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Starts {
    /// The directories of all roots that lead there.
    pub roots: BTreeSet<String>,
    /// Those of them that no other root names.
    pub tops: BTreeSet<String>,
    /// What deploys it, as messages name it, by what it is wherever its object stands.
    pub targets: BTreeMap<String, Vec<String>>,
}

impl Finding {
    /// Makes one about a whole file, with the severity of its rule.
    pub fn new(rule: Rule, path: &str, message: String, help: Vec<String>) -> Finding {
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
            help,
            common: None,
            unread: false,
            is_template: false,
            allowed: None,
            deployed: Vec::new(),
            starts: Arc::default(),
        }
    }

    /// Makes one about a place.
    pub fn at(rule: Rule, location: Location, message: String, help: Vec<String>) -> Finding {
        let Location { url, file, position: Position { line, column }, field } = location;
        let span = (line > 0).then(|| Span::from(Position::new(line, column.max(1))));
        Finding { url, span, field, ..Finding::new(rule, &file, message, help) }
    }

    /// Returns where it is.
    pub fn place(&self) -> Location {
        let position = self.span.map_or_else(Position::default, |span| span.start);
        Location { url: self.url.clone(), file: self.path.clone(), position, field: String::new() }
    }

    /// Returns whether it makes the check fail.
    pub fn fails(&self) -> bool {
        self.severity == Severity::Error && self.allowed.is_none()
    }

    /// Returns whether its reference alone says which one it is. Of one function, there are several.
    pub fn is_named(&self) -> bool {
        !self.reference.is_empty() && self.rule != Rule::Function
    }

    /// Returns what identifies it when lines have moved and messages count something else: rule, path and reference (the
    /// field without positions, and what it is about, where no reference tells).
    pub fn identity(&self) -> (Rule, &str, String) {
        let text = if self.is_named() {
            self.reference.clone()
        } else {
            let field = self.field.replace(|character: char| character.is_ascii_digit(), "");
            format!("{field} {} {}", self.about, self.reference)
        };
        (self.rule, &self.path, text)
    }
}

/// Sorts findings by place, and leaves out what is there twice.
pub(crate) fn sort(findings: &mut Vec<Finding>) {
    findings.sort_by(|one, other| {
        let [one, other] = [one, other].map(|one| (&one.url, &one.path, one.span, one.rule, &one.message));
        one.cmp(&other)
    });
    findings.dedup();
}
