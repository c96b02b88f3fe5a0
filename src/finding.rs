//! What `check` reports: something wrong with the user's files.
//!
//! A [`Finding`] is not a [`crate::failure::Failure`], which is something that stopped us from looking.

mod explanation;
mod warning;

use std::fmt;
use std::sync::Arc;

pub use warning::WarningId;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Fails the check.
    Error,
    /// Is shown, and fails nothing.
    Warning,
}

impl Severity {
    /// Returns its name, as in messages, JSON and the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $rule:ident $id:literal $severity:ident $summary:literal,)+) => {
        /// A rule of `check`. The one table of ids, default severities and what each rule is about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[doc = $doc])+ $rule,)+
        }

        impl Rule {
            /// Every rule, in the order of the README.
            pub const ALL: &[Rule] = &[$(Rule::$rule,)+];

            /// Returns the stable id, as `remote-reference`.
            #[must_use]
            pub fn id(self) -> &'static str {
                match self {
                    $(Rule::$rule => $id,)+
                }
            }

            /// Returns the severity that holds unless the configuration says otherwise.
            #[must_use]
            pub fn default_severity(self) -> Severity {
                match self {
                    $(Rule::$rule => Severity::$severity,)+
                }
            }

            /// Returns what the rule finds, in one phrase.
            #[must_use]
            pub fn summary(self) -> &'static str {
                match self {
                    $(Rule::$rule => $summary,)+
                }
            }

            /// Returns the rule with this id.
            #[must_use]
            pub fn from_id(id: &str) -> Option<Rule> {
                Rule::ALL.iter().copied().find(|rule| rule.id() == id)
            }
        }
    };
}

rules! {
    /// A remote file or root that is neither localized nor locked.
    RemoteReference "remote-reference" Error "a remote reference that is neither localized nor locked",
    /// A remote reference whose ref can move, and that no lock holds still.
    FloatingRef "floating-ref" Error "a remote reference that can mean something else tomorrow",
    /// A Helm chart that helm would download.
    RemoteChart "remote-chart" Error "a Helm chart that is not in the tree",
    /// A path that leaves its root or its scope.
    OutOfScope "out-of-scope" Error "a path that leaves its kustomization root or its scope",
    /// A path that names nothing in the tree.
    MissingPath "missing-path" Error "a path that names nothing in the tree",
    /// A path that names nothing in the tree because git ignores it.
    IgnoredPath "ignored-path" Warning "a path that git ignores",
    /// Roots that lead back to themselves.
    Cycle "cycle" Error "kustomization roots that lead back to themselves",
    /// A path in another repository.
    SubmodulePath "submodule-path" Warning "a path in a submodule, whose files this repository does not hold",
    /// A kustomization that `kustomize build` would refuse.
    InvalidKustomization "invalid-kustomization" Error "a kustomization that `kustomize build` refuses or misreads",
    /// A reference that nothing should be given.
    UnsafeReference "unsafe-reference" Error "a reference that git or kustomize could take for something else",
    /// A local path that kustomize takes for a URL.
    AmbiguousPath "ambiguous-path" Error "a local path that kustomize takes for a git URL",
    /// A KRM function whose code is not in the tree.
    Function "function" Error "a function whose code is not in the tree, or not pinned",
    /// Localized files that are not what their lock says.
    EditedCopy "edited-copy" Error "a localized file that is not what the lock says",
    /// An entry of the lock that nothing references.
    StaleLock "stale-lock" Warning "an entry of the lock that nothing references",
    /// A suppression that suppresses nothing.
    StaleAllow "stale-allow" Warning "a suppression that suppresses nothing",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// A range of a file. 1-based; columns in characters; the end is after the last character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first line.
    pub line: usize,
    /// The first column.
    pub column: usize,
    /// The last line.
    pub end_line: usize,
    /// The column after the last character.
    pub end_column: usize,
}

/// What a reference names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A path in the tree, or no reference at all.
    Local,
    /// A git repository, as kustomize splits the URL. Without secrets.
    Git {
        /// The clone specification.
        url: String,
        /// The directory in it; empty for the top.
        path: String,
        /// The ref as written.
        reference: Option<String>,
        /// What the ref is by its text ([`crate::reference::Pin::name`]).
        pin: &'static str,
    },
    /// A file over http(s), or the answer decides between that and git.
    Http {
        /// The URL without secrets.
        url: String,
    },
    /// A chart of a Helm repository.
    Helm {
        /// The repository, without secrets.
        url: String,
        /// The chart.
        chart: String,
        /// The version; empty when none is written.
        version: String,
    },
    /// The image of a function.
    Image {
        /// The image as written.
        image: String,
    },
}

/// Why a finding does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// Where it is allowed, as `apps/web/kustomization.yaml:4` or `.kustomize-localize:12`.
    pub by: String,
    /// Whether that is a comment in the file itself.
    pub is_comment: bool,
    /// The reason that is given there.
    pub reason: String,
}

/// Something wrong with the user's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which rule found it.
    pub rule: Rule,
    /// How much it matters here.
    pub severity: Severity,
    /// The file, from the top of the repository.
    pub path: String,
    /// Where in the file; none when the whole file (or its absence) is meant.
    pub span: Option<Span>,
    /// The line of the file on which the span begins, without its end; empty without a span. May hold
    /// a secret: what shows it takes that out.
    pub line_text: Arc<str>,
    /// The field, as `resources[2]`; empty when no field is meant.
    pub field: String,
    /// The reference as written, without secrets; empty when no reference is meant.
    pub reference: String,
    /// What the reference names.
    pub subject: Subject,
    /// What is wrong: a lower-case phrase.
    pub message: String,
    /// What to do, each an imperative phrase or exact commands, one below the other. The way that
    /// keeps what the user wrote comes first.
    pub help: Vec<String>,
    /// Whether and where it is allowed.
    pub allowed: Option<Allowed>,
}

impl Finding {
    /// Returns whether it makes the check fail.
    #[must_use]
    pub fn fails(&self) -> bool {
        self.severity == Severity::Error && self.allowed.is_none()
    }

    /// Returns what identifies it when lines have moved: rule, path and reference text (the field
    /// and message where there is no reference).
    #[must_use]
    pub fn identity(&self) -> (Rule, &str, String) {
        let text = if self.reference.is_empty() {
            format!("{} {}", self.field, self.message)
        } else {
            self.reference.clone()
        };
        (self.rule, &self.path, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_found_by_its_id() {
        for rule in Rule::ALL {
            assert_eq!(Rule::from_id(rule.id()), Some(*rule));
            assert!(
                rule.id()
                    .chars()
                    .all(|character| character.is_ascii_lowercase() || character == '-')
            );
        }
        assert_eq!(Rule::from_id("remote"), None);
    }
}
