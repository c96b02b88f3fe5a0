//! The one error type of the program.
//!
//! A [`Failure`] stopped us from reading or writing (usage, git, network,
//! unreadable input). It always ends the command with exit status 2. A finding, by contrast, is
//! an error in the user's files that `check` was asked to look for.

use std::fmt;

use strsim::levenshtein;

pub(crate) use crate::message::redact::shown;
use serde::Serialize;

use crate::message::position::Position;
use crate::message::redact::{self, visible};
use crate::message::upstream::Upstream;

/// The exit status if the work could not be done: usage, git, network, unreadable input. The others are 0, and 1 for
/// findings or differing builds.
pub(crate) const FAILED: u8 = 2;

/// The location that a message is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct Location {
    /// The upstream that the file belongs to, without secrets; empty for a file of the user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The file as the user would name it: a path in the repository or in the upstream; empty if the upstream
    /// is the file.
    pub file: String,
    #[serde(flatten)]
    pub position: Position,
    /// The field that holds the reference, for example `resources[2]`; empty if the message is about no field.
    pub field: String,
}

/// `URL: FILE:LINE:COLUMN`, as far as each part is known. The field is not shown.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)?;
        if !self.url.is_empty() && !self.file.is_empty() {
            f.write_str(": ")?;
        }
        f.write_str(&self.file)?;
        let Position { line, column } = self.position;
        if line > 0 {
            write!(f, ":{line}")?;
            if column > 0 {
                write!(f, ":{column}")?;
            }
        }
        Ok(())
    }
}

/// One reason why the work stopped, with its location and hints.
///
/// Messages are lower-case phrases without a final stop, name the file or URL, and hold no secret
/// (see [`crate::message::redact`]).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Failure {
    /// The location; `None` if it is not about a file. Boxed, because every result has room for a failure.
    #[serde(flatten)]
    pub location: Option<Box<Location>>,
    /// The references that lead to a location in an upstream, starting in the user's files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<Location>,
    pub message: String,
    /// Ways to fix it, each an imperative phrase or an exact command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// The exception with which an unresolved reference could stay remote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exception: Option<Box<Exception>>,
    /// The source that does not meet its policy in `sources`; `None` if the failure is about something else.
    #[serde(skip)]
    pub distrusted: Option<Box<Upstream>>,
    #[serde(skip)]
    pub kind: FailureKind,
}

/// The class of a failure. Callers decide by it what to try next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// The user could help at a terminal: with a password, or by trusting a host's key.
    Login,
    /// The repository exists, but not the requested ref or path in it.
    NotInRepository,
    /// The server says that the repository does not exist, or that we may not read it.
    NoRepository,
    /// The server did not answer, or not in time.
    NoAnswer,
    /// A connection for a file could not be made, or broke off; git may have its own proxy.
    NoConnection,
    /// The server limits the rate of our requests.
    Limited,
    /// The content exists but cannot be used.
    Unusable,
    /// The name does not exist, and a hint has the intended one.
    Misspelled,
    /// The upstream is younger than `sources` demands.
    Young,
    /// None of the permitted keys has signed the upstream.
    Unsigned,
    /// The lock has no entry for the upstream.
    NotLocked,
    /// A build requests something that no reference names.
    UnreadReference,
    /// A reference stays remote by an exception, so that its root is not built.
    Left,
    /// The configuration excludes every kustomization of the tree.
    Excluded,
    /// kustomize reports why it does not build something.
    NotBuilt,
    /// A build was stopped early, or not begun, because of the limits of the machine or the configuration.
    Stopped,
    /// The inputs of the build are known only in the cluster, or to another program.
    NotKnown,
    /// Anything else.
    #[default]
    Other,
}

impl FailureKind {
    /// Whether the same request may succeed later.
    pub fn is_outage(self) -> bool {
        matches!(self, FailureKind::NoAnswer | FailureKind::NoConnection | FailureKind::Limited)
    }

    /// Whether upstream answered that the requested content does not exist.
    pub fn is_gone(self) -> bool {
        // A server that refuses, breaks off or sends unusable content does not say so.
        matches!(self, FailureKind::NotInRepository | FailureKind::NoRepository)
    }
}

/// An entry of `allow` that a message proposes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Exception {
    /// The key that selects the reference, for example `url`.
    pub key: &'static str,
    /// The value of that key.
    pub text: String,
    /// The rule that the entry must name; empty if it need not name any.
    pub rule: &'static str,
}

impl Failure {
    /// A failure without a location and hints.
    pub fn new(message: impl Into<String>) -> Self {
        Failure {
            location: None,
            chain: Vec::new(),
            message: redact::message(&message.into()).into_owned(),
            hints: Vec::new(),
            exception: None,
            distrusted: None,
            kind: FailureKind::Other,
        }
    }

    /// Sets the class.
    pub fn because(mut self, kind: FailureKind) -> Self {
        self.kind = kind;
        self
    }

    /// Adds a way to fix it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(redact::message(&hint.into()).into_owned());
        self
    }

    /// Adds ways to fix it.
    pub fn hints(self, hints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        hints.into_iter().fold(self, Failure::hint)
    }

    /// Sets the location, unless a more precise one is already set.
    pub fn at(mut self, location: Location) -> Self {
        self.location.get_or_insert_with(|| Box::new(location));
        self
    }

    /// Prefixes the message with the step that failed: `context: message`.
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        // The context may name a URL, too.
        self.message = redact::message(&format!("{context}: {}", self.message)).into_owned();
        self
    }

    /// The location as text, with the field; `None` if the failure has no location.
    pub fn location_text(&self) -> Option<String> {
        let location = self.location.as_ref()?;
        Some(match location.field.as_str() {
            "" => location.to_string(),
            field => format!("{location}: {field}"),
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.location_text() {
            // A message that begins with its location names it once.
            Some(location) if !self.message.starts_with(&format!("`{location}`")) => {
                write!(f, "{location}: {}", self.message)
            }
            _ => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Failure {}

/// All failures of one run, in the order in which they should be read.
///
/// Independent problems of one walk are reported together, not one per run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failures(pub Vec<Failure>);

impl Failures {
    /// Fails with these failures, unless there are none.
    pub(crate) fn if_any(failures: Vec<Failure>) -> Result<(), Failures> {
        if failures.is_empty() { Ok(()) } else { Err(Failures(failures)) }
    }

    /// Whether all of them are of one kind.
    pub(crate) fn are_all(&self, kind: FailureKind) -> bool {
        self.0.iter().all(|failure| failure.kind == kind)
    }

    /// Prefixes each message with the step that failed.
    pub fn context(self, context: impl fmt::Display) -> Self {
        let failures = self.0.into_iter();
        Failures(failures.map(|failure| failure.context(&context)).collect())
    }

    /// All messages as one failure, with the other facts of the first.
    pub(crate) fn joined(self) -> Failure {
        let message = self.0.iter().map(|failure| failure.message.as_str()).collect::<Vec<_>>().join("; ");
        let first = self.0.into_iter().next().unwrap_or_else(|| Failure::new(""));
        Failure { message, ..first }
    }
}

impl From<Failure> for Failures {
    fn from(failure: Failure) -> Self {
        Failures(vec![failure])
    }
}

/// The number of digits of a commit id that people read.
pub(crate) const SHORT: usize = 12;

/// The first digits of an object id or a digest, enough for a person and for git.
pub(crate) fn short(id: &str) -> &str {
    id.get(..SHORT).unwrap_or(id)
}

/// A command for a hint: `beginning` unchanged, which holds no values, then each word quoted for a shell.
///
/// Paths, refs and URLs get into a command only by this or [`argument`].
pub(crate) fn command(beginning: &'static str, words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    // For the shell, each is one word and never code. Secrets are hidden and invisible characters escaped; a command
    // with such a word shows the way, but does not work if it is pasted.
    let mut command = beginning.to_owned();
    for word in words {
        command.push(' ');
        command += &argument(&visible(word.as_ref()));
    }
    command
}

/// The command that stages files, also ignored ones, by their paths from the top of the repository.
pub(crate) fn stage(paths: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    command("git add -f --", paths.into_iter().map(|path| pathspec(path.as_ref())))
}

/// `text` as one word of a command, quoted for a shell if needed.
pub(crate) fn argument(text: &str) -> String {
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c)) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// The number of paths that an error names before it only counts the rest.
const MOST_PATHS: usize = 10;

/// A list of paths for a message.
pub(crate) fn listed(paths: &[impl fmt::Display]) -> String {
    enumerated(paths.iter().map(|path| format!("`{path}`")), MOST_PATHS)
}

/// The first `most` names and the number of the others, in one line.
pub(crate) fn enumerated<T: AsRef<str>>(names: impl IntoIterator<Item = T>, most: usize) -> String {
    // The rest is counted, not kept: there may be many.
    let mut names = names.into_iter();
    let named: Vec<T> = names.by_ref().take(most).collect();
    let named: Vec<&str> = named.iter().map(AsRef::as_ref).collect();
    match names.count() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// The word of `known` that was probably meant by `word`; `None` if none is similar.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer inputs are not misspelled words, and outside input may be huge.
    if word.is_empty() || word.len() > 40 {
        return None;
    }
    let word = word.to_lowercase();
    let known: Vec<&str> = known.into_iter().collect();
    let distances = known.iter().map(|known| (levenshtein(&word, &known.to_lowercase()), *known));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    // Up to three letters may be wrong, but no more than half of the word.
    if distance <= 3 && distance * 2 <= nearest.len() {
        return Some(nearest);
    }
    // At least four letters may be the beginning of a much longer word, with a wrong one after them: `remote-refs` for
    // `remote-reference`.
    let start = word.char_indices().next_back().map_or("", |(last, _)| &word[..last]);
    known.into_iter().find(|known| start.len() >= 4 && known.to_lowercase().starts_with(start))
}

/// The pathspec of a path from the top of the repository, for git in any directory.
pub(crate) fn pathspec(path: &str) -> String {
    // git takes most signs after `:/` for further magic, and `*`, `?`, `[` or `\` anywhere for a pattern.
    let begins_with_sign = path.starts_with(|c: char| !c.is_alphanumeric() && c != '.');
    if begins_with_sign || path.contains(['*', '?', '[', '\\']) {
        format!(":(top,literal){path}")
    } else {
        format!(":/{path}")
    }
}

/// The result of a function that stops at its first failure.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

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
            ("a\n::b", "'a\\n::b'"),
            ("\u{202e}it's 1%\\", "'\\u{202e}it'\\''s 1%\\'"),
            ("##[x]", "'##\u{fffd}[x]'"),
            ("", "''"),
        ] {
            assert_eq!(command("rm", [text]), format!("rm {word}"));
        }
    }

    #[test]
    fn a_place_names_the_upstream_and_the_file_in_it() {
        let place = |url: &str, file: &str| Location {
            url: url.to_owned(),
            file: file.to_owned(),
            position: Position::new(2, 0),
            ..Location::default()
        };
        for (location, shown) in [
            (place("", "a/x.yaml"), "a/x.yaml:2"),
            (place("https://h/o/r", "a/x.yaml"), "https://h/o/r: a/x.yaml:2"),
            (place("https://h/x.yaml", ""), "https://h/x.yaml:2"),
        ] {
            assert_eq!(location.to_string(), shown);
        }
    }

    #[test]
    fn a_message_that_begins_with_its_location_names_it_once() {
        let at = |message: &str| {
            let location =
                Location { url: "https://h/o/r".to_owned(), file: "x.yaml".to_owned(), ..Location::default() };
            Failure::new(message).at(location).to_string()
        };
        assert_eq!(at("`https://h/o/r: x.yaml` is too large"), "`https://h/o/r: x.yaml` is too large");
        assert_eq!(at("`https://h/o/r: x` is too large"), "https://h/o/r: x.yaml: `https://h/o/r: x` is too large");
        assert_eq!(at("too large"), "https://h/o/r: x.yaml: too large");
    }

    #[test]
    fn a_path_is_named_from_the_top_and_means_only_itself() {
        for (place, word) in [
            ("a/b.yaml", ":/a/b.yaml"),
            ("a b", ":/a b"),
            ("a[1]/b", ":(top,literal)a[1]/b"),
            (".a/b", ":/.a/b"),
            ("_a/b", ":(top,literal)_a/b"),
            ("!a", ":(top,literal)!a"),
        ] {
            assert_eq!(pathspec(place), word);
        }
    }

    #[test]
    fn the_word_that_was_meant_is_found() {
        let known = ["rules", "scopes", "trust-exec", "load-restrictor", "url", "NamespaceTransformer"];
        for (word, meant) in [
            ("rule", Some("rules")),
            ("trustExec", Some("trust-exec")),
            ("trust_exec", Some("trust-exec")),
            ("loadRestrictor", Some("load-restrictor")),
            ("Scope", Some("scopes")),
            ("namespacetransformr", Some("NamespaceTransformer")),
            ("load-restrict", Some("load-restrictor")),
            ("trust-x", Some("trust-exec")),
            ("load", None),
            ("rlu", None),
            ("command", None),
            ("", None),
            (&"rules".repeat(20), None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
