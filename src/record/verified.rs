//! How a result was verified, as the trailers of its commit record it.

use std::collections::BTreeSet;

use super::trailers::{decode, encode};
use super::valid;
use crate::message::failure::{Failure, Result};

/// Replaces an argument that may have a secret.
const MASK: &str = "***";

/// The value of the trailer if nothing was built.
pub(super) const NOT_BUILT: &str = "not built";

/// A verification: every target that was built has the same output as before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The number of targets with the same output.
    pub same: usize,
    /// The targets whose original was not built, or failed, as the record names them.
    pub not_built: BTreeSet<String>,
    /// The program that built them.
    pub by: BuildTool,
}

/// The program that builds, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BuildTool {
    /// The program and its version, such as `kustomize/v5.8.1`.
    pub program: String,
    /// The arguments besides the target.
    pub arguments: Vec<String>,
}

impl BuildTool {
    /// The program as a record may name it: commit messages are public, so arguments that may contain a secret, such as
    /// a token, are masked.
    pub fn without_secrets(&self) -> BuildTool {
        let mut masked = self.clone();
        for argument in &mut masked.arguments {
            *argument = match argument.split_once('=') {
                Some(("--env", _)) => format!("--env={MASK}"),
                _ if argument.starts_with("--") && !argument.contains(char::is_control) => {
                    crate::message::redact::text(argument)
                }
                // A short option, the value of the option before it, or a text that no record could have.
                _ => MASK.to_owned(),
            };
        }
        masked
    }
}

impl Verified {
    /// Whether the record is still true for builds with `by`.
    pub fn holds_for(&self, by: &BuildTool) -> bool {
        // A program whose only known version is `(devel)` may have changed since.
        let is_known = !by.program.ends_with("/(devel)");
        // A masked argument may have another value now.
        is_known && self.by == *by && !by.arguments.iter().any(|argument| argument.contains(MASK))
    }

    /// The value of the trailer: how many targets were built with the same output, and by which program. The targets
    /// that were not built have trailers of their own. `is_rendered` tells that the commit has the outputs themselves.
    pub(super) fn render(&self, is_rendered: bool) -> String {
        let Verified { same, not_built, by } = self;
        let result = if is_rendered { "built" } else { "identical" };
        let mut value = format!("{result} {same}/{} {}", same + not_built.len(), encode(&by.program));
        for argument in &by.arguments {
            value.push(' ');
            value.push_str(&encode(argument));
        }
        value
    }

    /// Parses the value of the trailer. `not_built` are the targets in trailers of their own. `None` if it records no
    /// build. The caller renders the result again, and refuses a text that is different.
    pub(super) fn parse(value: &str, not_built: BTreeSet<String>) -> Result<Option<Self>> {
        let fields: Vec<&str> = value.split(' ').collect();
        let ["identical" | "built", counts, program, arguments @ ..] = fields.as_slice() else {
            return Ok(None);
        };
        let same = counts.split('/').next().and_then(|count| count.parse::<u32>().ok()).unwrap_or_default();
        let arguments: Result<_> = arguments.iter().map(|argument| decode(argument)).collect();
        let by = BuildTool { program: decode(program)?, arguments: arguments? };
        Ok(Some(Verified { same: same as usize, not_built, by }))
    }

    /// Refuses values that could not be parsed again, when they are read and before they are written: a commit message
    /// cannot be corrected.
    pub(super) fn check(&self) -> Result<()> {
        let Verified { by, same, not_built } = self;
        if *same == 0 && not_built.is_empty() {
            return Err(Failure::new("the verification is empty"));
        }
        let texts = std::iter::once(&by.program).chain(&by.arguments);
        for text in texts.chain(not_built) {
            valid::text_without_controls(text).map_err(|reason| Failure::new(format!("the verification {reason}")))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(arguments: &[&str]) -> BuildTool {
        BuildTool {
            program: "kustomize/v5.8.1".to_owned(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        }
    }

    fn identical(not_built: &[&str], by: BuildTool) -> Verified {
        Verified { same: 2, not_built: not_built.iter().map(|target| (*target).to_owned()).collect(), by }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for (verified, value) in [
            (identical(&[], by(&[])), "identical 2/2 kustomize/v5.8.1"),
            (
                identical(&["apps/a b"], by(&["--enable-helm", "--helm-command=my helm"])),
                "identical 2/3 kustomize/v5.8.1 --enable-helm --helm-command=my%20helm",
            ),
        ] {
            assert_eq!(verified.render(false), value);
            assert_eq!(Verified::parse(value, verified.not_built.clone()).unwrap(), Some(verified));
        }
        assert_eq!(Verified::parse(NOT_BUILT, BTreeSet::new()).unwrap(), None);
    }

    #[test]
    fn a_malformed_record_is_read_as_no_build_or_as_another_text() {
        let one: BTreeSet<String> = ["a".to_owned()].into();
        let none = BTreeSet::new();
        for (value, not_built, expected) in [
            ("", &none, "no build"),
            ("identical", &none, "no build"),
            ("identical 1/1", &none, "no build"),
            ("not built", &one, "no build"),
            ("mostly", &none, "no build"),
            ("identical 0/0 kustomize/v1", &none, "the verification is empty"),
            ("identical 1/2 kustomize/v1", &none, "identical 1/1 kustomize/v1"),
            ("identical 1/1 kustomize/v1", &one, "identical 1/2 kustomize/v1"),
            ("identical 1/3 kustomize/v1", &one, "identical 1/2 kustomize/v1"),
            ("identical x/2 kustomize/v1", &one, "identical 0/1 kustomize/v1"),
            ("identical 1/2,not kustomize/v1", &one, "identical 1/2 kustomize/v1"),
            ("identical x/1 kustomize/v1", &none, "the verification is empty"),
            ("identical 1/1 kustomize/v1  --a", &none, "the verification is empty"),
            ("identical 1/1 a%0Ab", &none, "the verification contains a control character"),
        ] {
            // As the trailers are read: the caller refuses a text that is not rendered again.
            let read = Verified::parse(value, not_built.clone()).and_then(|verified| {
                let Some(verified) = verified else { return Ok("no build".to_owned()) };
                verified.check().map(|()| verified.render(false))
            });
            let read = read.unwrap_or_else(|failure| failure.message);
            assert_eq!(read, expected, "{value}");
            assert_ne!(read, value);
        }
    }

    #[test]
    fn only_the_same_program_with_the_same_arguments_is_covered() {
        let verified = identical(&["apps/b"], by(&["--enable-helm"]));
        assert!(verified.holds_for(&by(&["--enable-helm"])));
        assert!(!verified.holds_for(&by(&[])));
        assert!(!verified.holds_for(&by(&["--enable-helm", "--enable-exec"])));
        let newer = BuildTool { program: "kustomize/v5.9.0".to_owned(), ..by(&["--enable-helm"]) };
        assert!(!verified.holds_for(&newer));
        let unknown = BuildTool { program: "kustomize/(devel)".to_owned(), ..by(&[]) };
        assert!(!identical(&[], unknown.clone()).holds_for(&unknown));
    }

    #[test]
    fn possible_secrets_are_not_recorded_and_cover_nothing() {
        for given in [
            &["--env=TOKEN=hunter2"] as &[&str],
            &["--env", "TOKEN=hunter2"],
            &["-e", "TOKEN=hunter2"],
            &["-eTOKEN=hunter2"],
        ] {
            let given = by(given);
            let recorded = given.without_secrets();
            let verified = identical(&[], recorded.clone());
            assert!(!verified.render(false).contains("hunter2"), "{verified:?}");
            assert!(!verified.holds_for(&given));
            assert!(!verified.holds_for(&recorded), "{recorded:?}");
        }
    }
}
