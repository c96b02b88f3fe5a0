//! What stopped us from doing the work: the one error type of the program.
//!
//! A [`Failure`] is something that stopped us from looking or writing (usage, git, network,
//! unreadable input). It always ends the command with exit status 2. It is not a finding, which is
//! something wrong with the user's files that `check` was asked to look for.

use std::fmt;

/// The place in a file that a message is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Location {
    /// The file as the user would name it: a path in the repository, or `URL: path` in a remote one.
    pub file: String,
    /// 1-based line, 0 when the whole file is meant.
    pub line: usize,
    /// 1-based column in characters, 0 when the whole line is meant.
    pub column: usize,
    /// The field that holds the reference, as `resources[2]`; empty when no field is meant.
    pub field: String,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
            if self.column > 0 {
                write!(f, ":{}", self.column)?;
            }
        }
        Ok(())
    }
}

/// One thing that stopped the work, with where it is and what to do about it.
///
/// Messages are lower-case phrases without a final stop, name the file or URL, and hold no secret
/// (see [`crate::redact`]).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Failure {
    /// Where in the user's files, if there is a place.
    pub location: Option<Location>,
    /// What is wrong.
    pub message: String,
    /// What to do, each an imperative phrase or an exact command.
    pub hints: Vec<String>,
}

impl Failure {
    /// A failure with no place and no hint yet.
    pub fn new(message: impl Into<String>) -> Self {
        Failure {
            location: None,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Says where it is, unless a more precise place is known already.
    #[must_use]
    pub fn at(mut self, location: Location) -> Self {
        self.location.get_or_insert(location);
        self
    }

    /// Puts what was being done before the message: `context: message`.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
            if !location.field.is_empty() {
                write!(f, "{}: ", location.field)?;
            }
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Everything that stopped one run, in the order in which it should be read.
///
/// Independent problems of one walk are reported together, not one per run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failures(pub Vec<Failure>);

impl From<Failure> for Failures {
    fn from(failure: Failure) -> Self {
        Failures(vec![failure])
    }
}

/// Returns `text` as one word of a command in a hint, quoted for a shell where that is needed.
#[must_use]
pub fn argument(text: &str) -> String {
    let plain =
        |character: char| character.is_ascii_alphanumeric() || "-_./:@%+=,".contains(character);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// The result of anything that can only fail for one reason at a time.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_command_is_quoted_where_a_shell_would_read_more() {
        for (text, word) in [
            ("a/b.yaml", "a/b.yaml"),
            (":/a/b", ":/a/b"),
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
            ("$(id)", "'$(id)'"),
            ("", "''"),
        ] {
            assert_eq!(argument(text), word);
        }
    }
}
