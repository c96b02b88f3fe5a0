//! Globs of directories.

use globset::{GlobBuilder, GlobMatcher};

/// The longest glob, in bytes.
const LONGEST: usize = 1000;

/// A glob of directories, from the top of the repository.
///
/// `*` and `?` stand for characters of one name, `**` as a name for any number of directories, `[ab]` and `{a,b}` for
/// alternatives within one name. Letter case matters. `.` is the top only.
#[derive(Debug, Clone)]
pub struct Glob {
    /// As it was written.
    pub text: String,
    /// Names from the top; empty for the top.
    names: Vec<Name>,
}

/// What a name of a path must be.
#[derive(Debug, Clone)]
pub(super) enum Name {
    /// This.
    Is(String),
    /// Anything of this form.
    Like(Box<GlobMatcher>),
    /// Anything.
    Any,
    /// Any number of names.
    AnyNumber,
}

impl Name {
    /// Reads one component of a glob.
    pub(super) fn parse(text: &str) -> Result<Name, String> {
        match text {
            "**" => return Ok(Name::AnyNumber),
            "*" => return Ok(Name::Any),
            _ if text.contains("**") => {
                return Err(format!(
                    "holds `{text}`: `**` stands for directories only when it stands alone between slashes"
                ));
            }
            _ => {}
        }
        if !text.contains(['*', '?', '[', ']', '{', '}', '\\']) {
            return Ok(Name::Is(text.to_owned()));
        }
        let glob = GlobBuilder::new(text)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| format!("is not a glob: {}", error.kind()))?;
        Ok(Name::Like(Box::new(glob.compile_matcher())))
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Name::Is(text) => text == name,
            Name::Like(glob) => glob.is_match(name),
            Name::Any | Name::AnyNumber => true,
        }
    }
}

/// Returns whether `names` is what `pattern` says, all of it or (`begins`) its beginning.
///
/// Takes at most as many steps as there are pairs of one and the other.
pub(super) fn matches(pattern: &[Name], names: &[&str], begins: bool) -> bool {
    let mut at = 0;
    let mut name = 0;
    // Where to go on when a guess was wrong: after the last `**`, and the names that it has taken.
    let mut again: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(at), names.get(name)) {
            (Some(Name::AnyNumber), _) => {
                at += 1;
                again = Some((at, name));
                continue;
            }
            (Some(wanted), Some(found)) if wanted.matches(found) => {
                at += 1;
                name += 1;
                continue;
            }
            (None, None) => return true,
            (None, Some(_)) if begins => return true,
            _ => {}
        }
        match again {
            Some((after, taken)) if taken < names.len() => {
                again = Some((after, taken + 1));
                at = after;
                name = taken + 1;
            }
            _ => return false,
        }
    }
}

impl Glob {
    /// Reads a glob.
    ///
    /// # Errors
    /// Fails with the rest of a sentence ("the glob `x` …") where it can match no directory.
    pub(super) fn parse(text: &str) -> Result<Glob, String> {
        let top = Glob {
            text: text.to_owned(),
            names: Vec::new(),
        };
        if text == "." {
            return Ok(top);
        }
        let refused = |why: &str| Err(why.to_owned());
        if text.is_empty() {
            return refused("is empty");
        }
        if text.len() > LONGEST {
            return refused("is too long");
        }
        if text.contains(char::is_control) {
            return refused("holds a control character");
        }
        if text.starts_with('!') {
            return refused("begins with `!`: there are no exceptions to exceptions");
        }
        if text.starts_with('/') {
            return refused("begins with `/`: it is read from the top of the repository anyway");
        }
        if text.ends_with('/') {
            return refused("ends with `/`: only directories are meant anyway");
        }
        let mut names = Vec::new();
        for part in text.split('/') {
            match part {
                "" => return refused("holds `//`"),
                "." | ".." => {
                    return Err(format!("holds `{part}`: write the path from the top"));
                }
                part if crate::kustomization::FILE_NAMES.contains(&part) => {
                    return Err(format!("names the file `{part}`: name its directory"));
                }
                part => names.push(Name::parse(part)?),
            }
        }
        // A path below a directory is not the directory.
        if names.len() > 1 && matches!(names.last(), Some(Name::AnyNumber)) {
            names.insert(names.len() - 1, Name::Any);
        }
        Ok(Glob { names, ..top })
    }

    /// Returns whether it matches this directory, a path from the top of the repository.
    #[must_use]
    pub fn matches(&self, directory: &str) -> bool {
        matches(&self.names, &names(directory), false)
    }

    /// Returns whether it matches this directory or one above it.
    #[must_use]
    pub fn covers(&self, directory: &str) -> bool {
        let names = names(directory);
        with_parents(&names).any(|names| matches(&self.names, names, false))
    }
}

/// Returns the innermost of a directory and those above it that one of the globs matches.
pub(super) fn innermost(globs: &[Glob], directory: &str) -> Option<String> {
    if globs.is_empty() {
        return None;
    }
    let names = names(directory);
    with_parents(&names)
        .find(|names| globs.iter().any(|glob| matches(&glob.names, names, false)))
        .map(|names| names.join("/"))
}

fn names(directory: &str) -> Vec<&str> {
    directory
        .split('/')
        .filter(|name| !name.is_empty())
        .collect()
}

/// Returns a directory and those above it, but not the top (unless it is the top itself).
fn with_parents<'a>(names: &'a [&'a str]) -> impl Iterator<Item = &'a [&'a str]> {
    let top = names.is_empty().then_some(names);
    top.into_iter()
        .chain((1..=names.len()).rev().map(|length| &names[..length]))
}
