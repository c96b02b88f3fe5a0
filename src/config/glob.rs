//! Globs: of directories, and of paths.

use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;

use crate::message::failure::shown;
use crate::message::finding::Span;
use crate::tree::path;

/// The longest glob, in bytes.
const LONGEST: usize = 1000;

/// A glob of directories, from the top of the repository.
///
/// `*` and `?` stand for characters of one name, `**` as a name for any number of directories, `[ab]` and `{a,b}` for
/// alternatives within one name. Letter case matters. `.` is the top only.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Glob {
    /// As it was written.
    pub text: String,
    matcher: GlobMatcher,
    /// Where it stands.
    pub span: Span,
    /// The line on which it stands.
    pub line_text: String,
}

/// A glob of paths from the top of the repository.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct PathGlob(pub(super) GlobMatcher);

/// Reads a glob: `*` stays within one name, `**` as a name stands for any number of them.
pub(super) fn compile(text: &str) -> Result<GlobMatcher, String> {
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    if text.len() > LONGEST {
        return Err(format!("is longer than {LONGEST} bytes"));
    }
    let glob = |text: &str| {
        let mut builder = GlobBuilder::new(text);
        let glob = builder.literal_separator(true).backslash_escape(true).build();
        glob.map_err(|error| format!("is not a glob: {}", error.kind()))
    };
    // Alternatives stay within one name, too.
    for name in text.split('/') {
        if name != "**" && name.contains("**") {
            return Err(format!(
                "holds `{name}`: `**` stands for directories only when it stands alone between slashes"
            ));
        }
        let is_range = |three: &[u8]| three[1] == b'-' && three[0] < b'/' && three[2] > b'/';
        if name.contains("[!") || name.contains("[^") || name.contains('[') && name.as_bytes().windows(3).any(is_range)
        {
            return Err(format!("holds `{name}`: `[…]` would match `/`, too: write out its characters"));
        }
        glob(name)?;
    }
    Ok(glob(text)?.compile_matcher())
}

/// Refuses what no path from the top is.
fn from_top(text: &str) -> Result<(), String> {
    if text.starts_with('/') || text.ends_with('/') {
        return Err("begins or ends with `/`: write it from the top of the repository".to_owned());
    }
    match text.split('/').find(|name| ["", ".", ".."].contains(name)) {
        Some("") if !text.is_empty() => Err("holds `//`".to_owned()),
        Some(name) if !name.is_empty() => Err(format!("holds `{name}`: write the path from the top")),
        _ => Ok(()),
    }
}

impl TryFrom<String> for Glob {
    type Error = String;

    fn try_from(text: String) -> Result<Glob, String> {
        Glob::parse(&text).map_err(|why| {
            let shown = shown(&text);
            format!("the glob `{shown}` {why}\nwrite directories from the top of the repository, for example `apps/*`")
        })
    }
}

impl TryFrom<String> for PathGlob {
    type Error = String;

    fn try_from(text: String) -> Result<PathGlob, String> {
        let glob = from_top(&text).and_then(|()| compile(&text));
        glob.map(PathGlob).map_err(|why| {
            let shown = shown(&text);
            format!(
                "the glob `{shown}` {why}\nwrite paths from the top of the repository, for example `apps/*/secret.env`"
            )
        })
    }
}

impl Glob {
    /// Reads a glob.
    ///
    /// Fails with the rest of a sentence ("the glob `x` …") where it can match no directory.
    pub(super) fn parse(text: &str) -> Result<Glob, String> {
        if text.contains(char::is_control) {
            return Err("holds a control character".to_owned());
        }
        if text.starts_with('!') {
            return Err("begins with `!`: there are no exceptions to exceptions".to_owned());
        }
        if text != "." {
            from_top(text)?;
        }
        let last = path::name(text);
        if crate::kustomization::FILE_NAMES.contains(&last) {
            return Err(format!("names the file `{last}`: name its directory"));
        }
        Ok(Glob { text: text.to_owned(), matcher: compile(text)?, span: Span::default(), line_text: String::new() })
    }

    /// Returns whether it matches this directory, a path from the top of the repository.
    pub fn matches(&self, directory: &str) -> bool {
        match directory {
            "" => [".", "**"].contains(&self.text.as_str()),
            "." => false,
            directory => self.matcher.is_match(directory),
        }
    }

    /// Returns whether it matches this directory or one above it.
    pub fn covers(&self, directory: &str) -> bool {
        and_above(directory).any(|directory| self.matches(directory))
    }
}

/// Returns the innermost of a directory and those above it that one of the globs matches.
pub(super) fn innermost(globs: &[Glob], directory: &str) -> Option<String> {
    let mut all = and_above(directory).filter(|directory| globs.iter().any(|glob| glob.matches(directory)));
    all.next().map(str::to_owned)
}

/// Returns a directory and those above it, but not the top (unless it is the top itself).
fn and_above(directory: &str) -> impl Iterator<Item = &str> {
    let top = Some(directory).filter(|directory| directory.is_empty());
    top.into_iter().chain(path::and_above(directory))
}
