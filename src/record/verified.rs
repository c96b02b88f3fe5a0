//! How a result was verified, as the trailers of its commit say.

use std::collections::BTreeSet;

use super::trailers::{decode, encode};
use super::valid;
use crate::message::failure::{Failure, Result};

/// What stands for an argument that may hold a secret.
const MASK: &str = "***";

/// The trailer where nothing was built.
pub(super) const NOT_BUILT: &str = "not built";

/// What was built builds to the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The number of targets that do.
    pub same: usize,
    /// The targets whose original does not build or was not built, as the record names them.
    pub not_built: BTreeSet<String>,
    /// What built them.
    pub by: Builder,
}

/// What builds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Builder {
    /// The program and its version, as `kustomize/v5.8.1`.
    pub program: String,
    /// What it is given beside the target.
    pub arguments: Vec<String>,
}

impl Builder {
    /// Returns what may be recorded: without the values of arguments that may be secrets. A value that was left out
    /// never equals one that is given.
    pub fn recorded(&self) -> Builder {
        let recorded = |argument: &String| match argument.split_once('=') {
            Some(("--env", _)) => format!("--env={MASK}"),
            _ if argument.starts_with("--") && !argument.contains(char::is_control) => {
                crate::message::redact::text(argument)
            }
            // A short option, or the value of the option before it.
            _ => MASK.to_owned(),
        };
        Builder { program: self.program.clone(), arguments: self.arguments.iter().map(recorded).collect() }
    }
}

impl Verified {
    /// Returns whether the record still says what builds with `by` give. A program of which nothing but `(devel)` is
    /// known may be another one today.
    pub fn holds_for(&self, by: &Builder) -> bool {
        let is_known = !by.program.ends_with("/(devel)");
        is_known && self.by == *by && !by.arguments.iter().any(|one| one.contains(MASK))
    }

    /// Returns the value of the trailer, without the names of what was not built.
    pub(super) fn render(&self) -> String {
        let Verified { same, not_built, by } = self;
        let mut value = format!("identical {same}/{} {}", same + not_built.len(), encode(&by.program));
        for argument in &by.arguments {
            value.push(' ');
            value.push_str(&encode(argument));
        }
        value
    }

    /// Reads the value of the trailer back, if it is as it was written: [`render`](Verified::render) tells.
    pub(super) fn parse(value: &str, not_built: BTreeSet<String>) -> Result<Option<Self>> {
        let fields: Vec<&str> = value.split(' ').collect();
        let ["identical", counts, program, arguments @ ..] = fields.as_slice() else {
            return Ok(None);
        };
        let same = counts.split('/').next().and_then(|count| count.parse::<u32>().ok()).unwrap_or_default();
        let arguments: Result<_> = arguments.iter().map(|argument| decode(argument)).collect();
        let by = Builder { program: decode(program)?, arguments: arguments? };
        Ok(Some(Verified { same: same as usize, not_built, by }))
    }

    /// Refuses what cannot be read back.
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

    fn by(arguments: &[&str]) -> Builder {
        Builder {
            program: "kustomize/v5.8.1".to_owned(),
            arguments: arguments.iter().map(|one| (*one).to_owned()).collect(),
        }
    }

    fn identical(not_built: &[&str], by: Builder) -> Verified {
        Verified { same: 2, not_built: not_built.iter().map(|one| (*one).to_owned()).collect(), by }
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
            assert_eq!(verified.render(), value);
            assert_eq!(Verified::parse(value, verified.not_built.clone()).unwrap(), Some(verified));
        }
        assert_eq!(Verified::parse(NOT_BUILT, BTreeSet::new()).unwrap(), None);
    }

    #[test]
    fn a_malformed_record_covers_nothing() {
        let one: BTreeSet<String> = ["a".to_owned()].into();
        for (value, not_built) in [
            ("", &BTreeSet::new()),
            ("identical", &BTreeSet::new()),
            ("identical 1/1", &BTreeSet::new()),
            ("identical 0/0 kustomize/v1", &BTreeSet::new()),
            ("identical 1/2 kustomize/v1", &BTreeSet::new()),
            ("identical 1/1 kustomize/v1", &one),
            ("identical 1/3 kustomize/v1", &one),
            ("identical x/2 kustomize/v1", &one),
            ("identical 1/2,not kustomize/v1", &one),
            ("identical x/1 kustomize/v1", &BTreeSet::new()),
            ("identical 1/1 kustomize/v1  --a", &BTreeSet::new()),
            ("identical 1/1 a%0Ab", &BTreeSet::new()),
            ("not built", &one),
            ("mostly", &BTreeSet::new()),
        ] {
            // As the trailers are read.
            let is_read = Verified::parse(value, not_built.clone()).is_ok_and(|verified| {
                verified.is_some_and(|verified| verified.check().is_ok() && verified.render() == value)
            });
            assert!(!is_read, "{value}");
        }
    }

    #[test]
    fn only_the_same_program_with_the_same_arguments_is_covered() {
        let verified = identical(&["apps/b"], by(&["--enable-helm"]));
        assert!(verified.holds_for(&by(&["--enable-helm"])));
        assert!(!verified.holds_for(&by(&[])));
        assert!(!verified.holds_for(&by(&["--enable-helm", "--enable-exec"])));
        let newer = Builder { program: "kustomize/v5.9.0".to_owned(), ..by(&["--enable-helm"]) };
        assert!(!verified.holds_for(&newer));
        let unknown = Builder { program: "kustomize/(devel)".to_owned(), ..by(&[]) };
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
            let recorded = given.recorded();
            let verified = identical(&[], recorded.clone());
            assert!(!verified.render().contains("hunter2"), "{verified:?}");
            assert!(!verified.holds_for(&given));
            assert!(!verified.holds_for(&recorded), "{recorded:?}");
        }
    }
}
