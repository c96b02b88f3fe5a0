//! The one list of what is reported of the user's files, in every command.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::finding::Severity;

/// Whether an entry of `allow` in the configuration can be about a rule.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allow {
    /// Every entry that names no rules is.
    Always,
    /// Only an entry that names the rule: what is dangerous has to be named.
    Named,
    Never,
}

/// Which way of localizing where things stand mends what a rule finds, and so is not kept from it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MendedBy {
    Nothing,
    /// Each of them.
    Localizing,
    /// One that resolves what no lock holds.
    Vendoring,
    /// One that may bring in again what is localized.
    Refreshing,
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

            /// Returns its id, what applies unless the configuration says otherwise, what can allow it, what mends it, and its
            /// page: its summary as a heading, then what it finds, why that matters, and how to fix it.
            fn definition(self) -> (&'static str, Severity, Allow, MendedBy, &'static str) {
                match self {
                    $(Rule::$rule => {
                        let page = include_str!(concat!("../check/", $id, ".md"));
                        ($id, Severity::$severity, Allow::$allow, MendedBy::$mended, page)
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
    MissingPath "missing-path" Error Always Refreshing;
    UntrackedPath "untracked-path" Warning Always Nothing;
    InvalidKustomization "invalid-kustomization" Error Named Nothing;
    UnsafeReference "unsafe-reference" Error Named Nothing;
    Function "function" Error Named Nothing;
    InvalidTarget "invalid-target" Error Never Nothing;
    MissingTarget "missing-target" Error Always Nothing;
    UnknownTarget "unknown-target" Warning Named Nothing;
    Engine "engine" Error Named Nothing;
    DeployedRemote "deployed-remote" Warning Named Localizing;
    EditedCopy "edited-copy" Error Never Refreshing;
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
    /// The rules about what should be in the tree.
    pub const MISSING: [Rule; 2] = [Rule::MissingPath, Rule::UntrackedPath];

    pub fn id(self) -> &'static str {
        self.definition().0
    }

    pub fn from_id(id: &str) -> Option<Rule> {
        Rule::ALL.iter().copied().find(|rule| rule.id() == id)
    }

    /// Returns what applies unless the configuration says otherwise.
    pub fn default_level(self) -> Severity {
        self.definition().1
    }

    /// Returns the severity where it is not off.
    pub fn default_severity(self) -> Severity {
        if self.default_level() == Severity::Off { Severity::Error } else { self.default_level() }
    }

    /// Returns what it finds, in one phrase.
    pub fn summary(self) -> &'static str {
        self.definition().4.lines().next().unwrap_or_default().trim_start_matches("# ")
    }

    /// Returns what it finds, why that matters, and how to fix it, as Markdown.
    pub fn explanation(self) -> &'static str {
        self.definition().4.split_once('\n').unwrap_or_default().1.trim()
    }

    /// Returns whether the configuration cannot give it another severity.
    pub fn is_always_an_error(self) -> bool {
        matches!(self, Rule::YoungSource | Rule::InvalidTarget | Rule::UnreadReference)
    }

    pub(crate) fn mended_by(self) -> MendedBy {
        self.definition().3
    }

    pub fn can_be_allowed(self) -> bool {
        self.definition().2 != Allow::Never
    }

    /// Returns whether an entry of `allow` that names no rules is about this one.
    pub fn is_allowed_by_default(self) -> bool {
        self.definition().2 == Allow::Always
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
