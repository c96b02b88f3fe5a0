//! What a rule is. Each stands with everything about it in a file of its own, and in [`each_rule`].

use std::fmt;

use super::Context;
use crate::message::finding::{Finding, Rule, Severity, each_rule};

/// What a rule is.
pub(super) struct Definition {
    /// The stable id, as `remote-reference`.
    pub(super) id: &'static str,
    /// The severity unless the configuration overrides it.
    pub(super) severity: Severity,
    /// Whether it finds nothing unless the configuration gives it a severity.
    pub(super) is_off: bool,
    /// What it finds, in one phrase.
    pub(super) summary: &'static str,
    /// What it finds, why that matters to a build without a network, and how to fix it.
    pub(super) explanation: &'static str,
    /// Whether `allow` in the configuration can be about it.
    pub(super) allow: Allow,
    pub(super) find: Find,
}

/// Whether an entry of `allow` in the configuration can be about a rule.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Allow {
    /// Every entry that names no rules is.
    Always,
    /// Only an entry that names the rule: what is dangerous has to be named.
    Named,
    /// None.
    Never,
}

/// What finds what a rule is about.
pub(super) enum Find {
    /// This, in what the walk and the record yield.
    Here(fn(&Context<'_>) -> Vec<Finding>),
    /// What sees the findings of the others.
    AfterAll,
    /// Localizing, or `update`.
    Elsewhere,
}

macro_rules! definitions {
    ($($rule:ident: $module:ident,)+) => {
        impl Rule {
            /// Returns what the rule is.
            pub(super) fn definition(self) -> &'static Definition {
                match self {
                    $(Rule::$rule => &super::$module::DEFINITION,)+
                }
            }
        }
    };
}

each_rule!(definitions);

impl Rule {
    /// Returns the stable id, as `remote-reference`.
    pub fn id(self) -> &'static str {
        self.definition().id
    }

    /// Returns the severity that applies unless the configuration overrides it.
    pub fn default_severity(self) -> Severity {
        self.definition().severity
    }

    /// Returns whether the rule finds nothing unless the configuration gives it a severity.
    pub fn is_off_by_default(self) -> bool {
        self.definition().is_off
    }

    /// Returns what applies unless the configuration overrides it, as the configuration names it.
    pub fn default_level(self) -> &'static str {
        if self.is_off_by_default() { "off" } else { self.default_severity().name() }
    }

    /// Returns what the rule finds, in one phrase.
    pub fn summary(self) -> &'static str {
        self.definition().summary
    }

    /// Returns what the rule finds, why that matters to a build without a network, and how to fix it.
    pub fn explanation(self) -> &'static str {
        self.definition().explanation
    }

    /// Returns whether an exception can be about the rule.
    pub fn can_be_allowed(self) -> bool {
        self.definition().allow != Allow::Never
    }

    /// The rules about what should be in the tree.
    pub const MISSING: [Rule; 2] = [Rule::MissingPath, Rule::UntrackedPath];

    /// Returns whether an entry of `allow` that names no rules is about this one.
    pub fn is_allowed_by_default(self) -> bool {
        self.definition().allow == Allow::Always
    }

    /// Returns the rule with this id.
    pub fn from_id(id: &str) -> Option<Rule> {
        Rule::ALL.iter().copied().find(|rule| rule.id() == id)
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

    #[test]
    fn the_module_of_a_rule_has_its_id() {
        let mut ids = Vec::new();
        macro_rules! files {
            ($($rule:ident: $module:ident,)+) => {
                $(ids.push((stringify!($module).replace('_', "-"), Rule::$rule.id()));)+
            };
        }
        each_rule!(files);
        for (file, id) in ids {
            assert_eq!(file, id);
        }
    }
}
