//! The one list of rules, for all commands.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::finding::Severity;

/// Whether an entry of `allow` in the configuration can apply to a rule.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AllowScope {
    /// Every entry that names no rules applies.
    Always,
    /// Only an entry that names the rule applies, because the rule is about something dangerous.
    Named,
    Never,
}

/// Which way of localizing in place fixes the findings of a rule, so that they do not stop it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MendedBy {
    Nothing,
    /// Every way.
    Localizing,
    /// A way that resolves references without a lock entry.
    Vendoring,
    /// A run that may replace localized files: with `--overwrite`, or after a killed one.
    Overwriting,
}

/// The facts about a rule.
struct Definition {
    id: &'static str,
    level: Severity,
    allow: AllowScope,
    mended_by: MendedBy,
    /// A summary as a heading, then the explanation.
    page: &'static str,
}

macro_rules! rules {
    ($($rule:ident $id:literal $severity:ident $allow:ident $mended:ident;)+) => {
        /// A rule, with a page in `check/ID.md`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Rule {
            $($rule,)+
        }

        impl Rule {
            /// Every rule, in the order in which they are listed.
            pub const ALL: &[Rule] = &[$(Rule::$rule,)+];

            fn definition(self) -> Definition {
                match self {
                    $(Rule::$rule => {
                        let page = include_str!(concat!("../check/", $id, ".md"));
                        let (level, allow, mended_by) = (Severity::$severity, AllowScope::$allow, MendedBy::$mended);
                        Definition { id: $id, level, allow, mended_by, page }
                    })+
                }
            }
        }
    };
}

rules! {
    RemoteReference "remote-reference" Error Always Vendoring;
    UnlistedSource "unlisted-source" Error Never Nothing;
    YoungSource "young-source" Error Named Nothing;
    UnsignedSource "unsigned-source" Error Never Nothing;
    LockedReference "locked-reference" Off Always Vendoring;
    FloatingRef "floating-ref" Warning Always Nothing;
    RemoteChart "remote-chart" Error Always Vendoring;
    OutOfScope "out-of-scope" Error Named Vendoring;
    MissingPath "missing-path" Error Always Overwriting;
    UntrackedPath "untracked-path" Warning Always Nothing;
    InvalidKustomization "invalid-kustomization" Error Named Nothing;
    UnsafeReference "unsafe-reference" Error Named Nothing;
    Function "function" Error Named Nothing;
    InvalidTarget "invalid-target" Error Never Nothing;
    MissingTarget "missing-target" Error Always Nothing;
    UnknownTarget "unknown-target" Warning Named Nothing;
    Engine "engine" Error Named Nothing;
    DeployedRemote "deployed-remote" Warning Named Localizing;
    EditedCopy "edited-copy" Error Never Overwriting;
    StaleLock "stale-lock" Warning Never Vendoring;
    StaleAllow "stale-allow" Warning Never Nothing;
    NewException "new-exception" Error Never Nothing;
    LeftLicense "left-license" Warning Never Nothing;
    MergedBack "merged-back" Warning Never Vendoring;
    NotBuilt "not-built" Warning Never Nothing;
    NotObserved "not-observed" Warning Never Nothing;
    RewrittenBranch "rewritten-branch" Warning Never Nothing;
    StrippedExecutable "stripped-executable" Warning Never Nothing;
    UnreadReference "unread-reference" Error Never Nothing;
}

impl Rule {
    /// The rules about files that should be in the tree.
    pub const MISSING: [Rule; 2] = [Rule::MissingPath, Rule::UntrackedPath];

    /// The name in messages, JSON and the configuration.
    pub fn id(self) -> &'static str {
        self.definition().id
    }

    /// The rule with an id; `None` if there is none.
    pub fn from_id(id: &str) -> Option<Rule> {
        Rule::ALL.iter().copied().find(|rule| rule.id() == id)
    }

    /// The level unless the configuration sets another.
    pub fn default_level(self) -> Severity {
        self.definition().level
    }

    /// The severity once the rule is switched on.
    pub fn default_severity(self) -> Severity {
        if self.default_level() == Severity::Off { Severity::Error } else { self.default_level() }
    }

    /// One phrase about the findings of this rule.
    pub fn summary(self) -> &'static str {
        self.definition().page.lines().next().unwrap_or_default().trim_start_matches("# ")
    }

    /// The findings of this rule, why they matter and how to fix them, as Markdown.
    pub fn explanation(self) -> &'static str {
        self.definition().page.split_once('\n').unwrap_or_default().1.trim()
    }

    /// Whether the configuration cannot change the severity.
    pub fn is_always_an_error(self) -> bool {
        matches!(self, Rule::YoungSource | Rule::InvalidTarget | Rule::UnreadReference)
    }

    /// The way of localizing that fixes its findings.
    pub(crate) fn mended_by(self) -> MendedBy {
        self.definition().mended_by
    }

    /// Whether an exception can cover its findings.
    pub fn can_be_allowed(self) -> bool {
        self.definition().allow != AllowScope::Never
    }

    /// Whether an entry of `allow` that names no rules applies to this one.
    pub fn is_allowed_by_default(self) -> bool {
        self.definition().allow == AllowScope::Always
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_found_by_its_id() {
        for rule in Rule::ALL {
            assert_eq!(Rule::from_id(rule.id()), Some(*rule));
            assert!(rule.id().chars().all(|character| character.is_ascii_lowercase() || character == '-'));
        }
        assert_eq!(Rule::from_id("remote"), None);
    }

    #[test]
    fn there_are_no_more_than_people_can_know() {
        assert!(Rule::ALL.len() <= 30, "{}", Rule::ALL.len());
    }
}
