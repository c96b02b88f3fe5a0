//! What the program does, one file per command: a request in, an outcome out. Nothing here reads arguments or prints.

use serde::Serialize;

use crate::message::failure::nearest;

mod add_allow;
pub(crate) mod affected;
mod builds;
pub(crate) mod check;
mod fetching;
pub(crate) mod hook;
pub(crate) mod localize;
pub(crate) mod lock;
pub(crate) mod targets;
pub(crate) mod tree;
pub(crate) mod update;
pub(crate) mod verify;

pub(crate) use add_allow::add_allow;
pub(crate) use builds::Builds;
pub(crate) use fetching::Fetching;

/// What stands for a copy, which has no command, where commands are listed.
pub(crate) const COPY: &str = "TARGET";

macro_rules! pages {
    ($($name:literal)*) => {
        /// The commands, as users type them, and [`COPY`], each with the text of its page.
        pub(crate) const PAGES: &[(&str, &str)] = &[
            (COPY, include_str!("commands/copy.md")),
            $(($name, include_str!(concat!("commands/", $name, ".md"))),)*
        ];
    };
}

pages! {
    "branch" "vendor" "lock" "update" "check" "verify" "tree" "targets" "affected" "hook" "explain"
    "generate" "help"
}

/// Returns the commands, as users type them.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|(name, _)| *name).filter(|name| *name != COPY)
}

/// The words of other programs for what a command does.
const OTHER_WORDS: [(&str, &str); 18] = [
    ("add", "lock"),
    ("completion", "generate completion"),
    ("diff", "affected"),
    ("graph", "tree"),
    ("init", "lock"),
    ("install", "hook install"),
    ("lint", "check"),
    ("list", "tree"),
    ("ls", "tree"),
    ("outdated", "verify --upstream"),
    ("pin", "lock"),
    ("push", "branch --push"),
    ("status", "check"),
    ("sync", "branch"),
    ("test", "check"),
    ("upgrade", "update"),
    ("validate", "check"),
    ("version", "-V"),
];

/// Returns the command that a word may mean.
pub(crate) fn meant(word: &str) -> Option<&'static str> {
    let other = OTHER_WORDS.iter().find(|(other, _)| *other == word);
    other.map(|(_, command)| *command).or_else(|| nearest(word, names()))
}

/// The subjects of the newest upstream commits in what moved, by the label of its entry.
pub(crate) type News = std::collections::BTreeMap<String, Vec<String>>;

/// What happened to the files that a command was to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Status {
    Written,
    /// It was as it must be.
    Unchanged,
    /// It would have been written: `--dry-run`.
    DryRun,
    /// It was left as it was: there are warnings that are errors.
    Warned,
    /// It was left as it was: the result does not build to what the original builds to.
    Differs,
}
