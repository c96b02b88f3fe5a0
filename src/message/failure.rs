//! What stopped us from doing the work: the one error type of the program.
//!
//! A [`Failure`] is something that stopped us from looking or writing (usage, git, network,
//! unreadable input). It always ends the command with exit status 2. It is not a finding, which is
//! something wrong with the user's files that `check` was asked to look for.

use std::fmt;

use strsim::levenshtein;

pub(crate) use crate::message::redact::shown;
use serde::Serialize;

use crate::message::position::Position;
use crate::message::redact::{self, visible};
use crate::message::upstream::Upstream;

/// The place in a file that a message is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct Location {
    /// The upstream that the file belongs to, without secrets; empty for a file of the user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The file as the user would name it: a path, in the repository or in that upstream; empty where the upstream
    /// is the file.
    pub file: String,
    #[serde(flatten)]
    pub position: Position,
    /// The field that holds the reference, as `resources[2]`; empty when no field is meant.
    pub field: String,
}

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

/// One thing that stopped the work, with where it is and what to do about it.
///
/// Messages are lower-case phrases without a final stop, name the file or URL, and hold no secret
/// (see [`crate::message::redact`]).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Failure {
    /// Where in the user's files, if there is a place. Boxed, as every result holds room for a failure.
    #[serde(flatten)]
    pub location: Option<Box<Location>>,
    /// Where that place is in an upstream: the references that lead there, starting in the user's files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<Location>,
    /// What is wrong.
    pub message: String,
    /// What to do, each an imperative phrase or an exact command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// What else can be done where something remote cannot be resolved: leave it. Boxed as the place is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exception: Option<Box<Exception>>,
    /// The source that lacks what `sources` asks of it; `None` if it is about something else.
    #[serde(skip)]
    pub distrusted: Option<Box<Upstream>>,
    /// What it means for what could be tried next.
    #[serde(skip)]
    pub kind: FailureKind,
}

/// What a failure means for what could be tried next: of a fetch more than nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// The user could help at a terminal: with a password, or by trusting a host's key.
    Login,
    /// The repository is there, but not what was wished of it.
    NotInRepository,
    /// The server says that there is no such repository, or none that we may read.
    NoRepository,
    /// No answer, or not in time.
    NoAnswer,
    /// No connection for a file, or none that held; git may have a proxy of its own.
    NoConnection,
    /// The server limits how much it gives to us today.
    Limited,
    /// What is there cannot be used.
    Unusable,
    /// There is no such thing, but a hint says what was probably meant.
    Misspelled,
    /// It is younger than `sources` wants.
    Young,
    /// Nobody of those who may has signed it.
    Unsigned,
    /// The lock that decides does not hold it.
    NotLocked,
    /// A build asks for something that no reference names.
    UnreadReference,
    /// Something stays remote by an exception, so that nothing is built.
    Left,
    /// kustomize says why it does not build something.
    NotBuilt,
    /// A build was ended before it came to anything, or not begun: the machine or the configuration gave it no more.
    Stopped,
    /// What is built is known in the cluster, or with another program, and not here.
    NotKnown,
    /// Anything else.
    #[default]
    Other,
}

impl FailureKind {
    /// Returns whether the same may be answered another time.
    pub fn is_outage(self) -> bool {
        matches!(self, FailureKind::NoAnswer | FailureKind::NoConnection | FailureKind::Limited)
    }

    /// Returns whether upstream answered that what it was asked for is not there. A server that refuses, breaks off or gives
    /// what cannot be used does not say that.
    pub fn is_gone(self) -> bool {
        matches!(self, FailureKind::NotInRepository | FailureKind::NoRepository)
    }
}

/// An entry of `allow` that leaves something as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Exception {
    /// Which key names it, as `url`.
    pub key: &'static str,
    /// What it names.
    pub text: String,
    /// The rule that it has to name; empty for none.
    pub rule: &'static str,
}

impl Failure {
    /// A failure with no place and no hint yet.
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

    /// Says what it means for what could be tried next.
    pub fn because(mut self, kind: FailureKind) -> Self {
        self.kind = kind;
        self
    }

    /// Adds what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(redact::message(&hint.into()).into_owned());
        self
    }

    /// Adds where it is, unless a more precise place is known already.
    pub fn at(mut self, location: Location) -> Self {
        self.location.get_or_insert_with(|| Box::new(location));
        self
    }

    /// Puts what was being done before the message: `context: message`.
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = redact::message(&format!("{context}: {}", self.message)).into_owned();
        self
    }

    /// Returns where it is, with the field.
    pub fn place(&self) -> Option<String> {
        let location = self.location.as_ref()?;
        Some(match location.field.as_str() {
            "" => location.to_string(),
            field => format!("{location}: {field}"),
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place() {
            write!(f, "{place}: ")?;
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

impl Failures {
    /// Puts what was being done before the message of each.
    pub fn context(self, context: impl fmt::Display) -> Self {
        let failures = self.0.into_iter();
        Failures(failures.map(|failure| failure.context(&context)).collect())
    }
}

impl From<Failure> for Failures {
    fn from(failure: Failure) -> Self {
        Failures(vec![failure])
    }
}

/// How many digits of a commit id people read.
pub(crate) const SHORT: usize = 12;

/// Returns the first digits of an object id or a digest, enough to name it to a person and to git.
pub(crate) fn short(id: &str) -> &str {
    id.get(..SHORT).unwrap_or(id)
}

/// Returns a command for a hint: its beginning as it stands, which holds no value, then each word quoted for a shell.
/// Paths, refs, URLs come into a command here and nowhere else, so that none of them is taken for anything but a word. It
/// is one line, and shows every character: a word with one that would not be seen names nothing as it stands.
pub(crate) fn command(beginning: &'static str, words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let add = |all: String, word: &str| format!("{all} {}", argument(&visible(word)));
    words.into_iter().fold(beginning.to_owned(), |all, word| add(all, word.as_ref()))
}

/// Returns the command that stages files, given from the top of the repository, also those that git ignores.
pub(crate) fn stage(places: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    command("git add -f --", places.into_iter().map(|place| pathspec(place.as_ref())))
}

/// Returns `text` as one word of a command, quoted for a shell where that is needed.
pub(crate) fn argument(text: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./:@%+=,".contains(character);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// How many paths an error names before it only counts the rest.
const MOST_PATHS: usize = 10;

/// Returns paths as a message names them.
pub(crate) fn listed(paths: &[impl fmt::Display]) -> String {
    enumerated(paths.iter().map(|path| format!("`{path}`")), MOST_PATHS)
}

/// Returns the first of these, and how many more there are, in one line.
pub(crate) fn enumerated<T: AsRef<str>>(all: impl IntoIterator<Item = T>, most: usize) -> String {
    let mut all = all.into_iter();
    let named: Vec<T> = all.by_ref().take(most).collect();
    let named: Vec<&str> = named.iter().map(AsRef::as_ref).collect();
    match all.count() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Returns the word of `known` that was probably meant by `word`.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer inputs are not typos, and outside input may be huge.
    if word.is_empty() || word.len() > 40 {
        return None;
    }
    let word = word.to_lowercase();
    let known: Vec<&str> = known.into_iter().collect();
    let distances = known.iter().map(|known| (levenshtein(&word, &known.to_lowercase()), *known));
    let (distance, found) = distances.min_by_key(|(distance, _)| *distance)?;
    // One that was cut short, as `remote-ref` or `remote-refs`.
    let start = word.char_indices().next_back().map_or("", |(last, _)| &word[..last]);
    let is_short = |known: &&&str| start.len() >= 4 && known.to_lowercase().starts_with(start);
    let is_near = distance <= 3 && distance * 2 <= found.len();
    if is_near { Some(found) } else { known.iter().find(is_short).copied() }
}

/// Returns a path (from the top of the repository) as git takes it, wherever git is started.
pub(crate) fn pathspec(place: &str) -> String {
    // After `:/` git takes most signs for more of that kind.
    let is_sign = |c: char| !c.is_alphanumeric() && c != '.';
    let is_plain = !place.starts_with(is_sign);
    if is_plain && !place.contains(['*', '?', '[', '\\']) {
        format!(":/{place}")
    } else {
        format!(":(top,literal){place}")
    }
}

/// The result of anything that can only fail for one reason at a time.
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
