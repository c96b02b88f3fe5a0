//! Globs of paths and directories.

use std::collections::BTreeSet;
use std::ops::Deref;

use globset::{GlobBuilder, GlobMatcher, GlobSet};
use serde::Deserialize;

use crate::message::failure::shown;
use crate::message::position::Span;
use crate::tree::path;

/// The longest glob, in bytes.
const LONGEST: usize = 1000;

/// A glob of paths or directories, from the top of the repository.
///
/// `*` and `?` stand for characters of one name, `**` as a name for any number of directories, `[ab]` and `{a,b}` for
/// alternatives within one name. Letter case matters. `.` is the top only.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Glob {
    /// The glob as written.
    pub text: String,
    matcher: GlobMatcher,
    /// The location in the configuration.
    pub span: Span,
}

/// Reads a glob: `*` stays within one name, `**` as a name stands for any number of them. Fails with the rest of a
/// sentence ("the glob `x` …") also for globs that would match more than they seem to.
pub(super) fn compile(text: &str) -> Result<GlobMatcher, String> {
    // The size of a compiled glob grows with its text, which a pull request brings.
    if text.is_empty() || text.len() > LONGEST {
        return Err(format!("is empty, or longer than {LONGEST} bytes"));
    }
    // Each name must be a glob by itself, so that the alternatives `{a,b}` stay within one name.
    for name in text.split('/') {
        if name != "**" && name.contains("**") {
            return Err(format!("contains `{name}`: `**` matches directories only alone between slashes"));
        }
        if name.contains("[!") || name.contains("[^") || name.contains('[') && has_range_over_slash(name) {
            return Err(format!("contains `{name}`: `[…]` would match `/`, too: write out its characters"));
        }
        parse(name)?;
    }
    Ok(parse(text)?.compile_matcher())
}

fn parse(text: &str) -> Result<globset::Glob, String> {
    let mut builder = GlobBuilder::new(text);
    let glob = builder.literal_separator(true).backslash_escape(true).build();
    glob.map_err(|error| format!("is not a glob: {}", error.kind()))
}

/// Whether a name contains a range of characters, such as `+-9`, with a slash among them.
fn has_range_over_slash(name: &str) -> bool {
    name.as_bytes().windows(3).any(|three| three[1] == b'-' && three[0] < b'/' && three[2] > b'/')
}

/// Reads a glob of paths from the top of the repository.
pub(super) fn from_top(text: &str) -> Result<GlobMatcher, String> {
    match text.split('/').find(|name| ["", ".", ".."].contains(name)) {
        Some(name) if text != "." => Err(format!("contains the name `{name}`: write the path from the top")),
        _ => compile(text),
    }
}

impl TryFrom<String> for Glob {
    type Error = String;

    fn try_from(text: String) -> Result<Glob, String> {
        let matcher = from_top(&text).map_err(|why| format!("the glob `{}` {why}", shown(&text)))?;
        Ok(Glob { text, matcher, span: Span::default() })
    }
}

/// Globs that are compared with a path in one pass.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "Vec<Glob>")]
pub struct Globs {
    globs: Vec<Glob>,
    set: GlobSet,
    /// The indices of the globs that match the top.
    top: Vec<usize>,
}

impl TryFrom<Vec<Glob>> for Globs {
    type Error = String;

    fn try_from(globs: Vec<Glob>) -> Result<Globs, String> {
        let set = set(globs.iter().map(|glob| &glob.matcher))?;
        // The path of the top is empty, which a glob cannot match.
        let top = (0..globs.len()).filter(|index| [".", "**"].contains(&globs[*index].text.as_str())).collect();
        Ok(Globs { globs, set, top })
    }
}

impl Deref for Globs {
    type Target = [Glob];

    fn deref(&self) -> &[Glob] {
        &self.globs
    }
}

impl Globs {
    /// Whether a glob matches this path from the top of the repository.
    pub fn matches(&self, path: &str) -> bool {
        match path {
            "" => !self.top.is_empty(),
            "." => false,
            path => self.set.is_match(path),
        }
    }

    /// Whether a glob matches this directory or a directory above it.
    pub fn covers(&self, directory: &str) -> bool {
        and_above(directory).any(|directory| self.matches(directory))
    }

    /// The indices of the globs that match this directory or a directory above it.
    pub fn covering(&self, directory: &str) -> BTreeSet<usize> {
        let directories = and_above(directory);
        directories.flat_map(|path| if path.is_empty() { self.top.clone() } else { self.set.matches(path) }).collect()
    }

    /// Sets the location of each glob.
    pub(super) fn set_spans(&mut self, spans: impl Iterator<Item = Span>) {
        self.globs.iter_mut().zip(spans).for_each(|(glob, span)| glob.span = span);
    }
}

/// Makes one set of globs. Fails with the rest of a sentence if they take too much memory together.
pub(super) fn set<'a>(globs: impl IntoIterator<Item = &'a GlobMatcher>) -> Result<GlobSet, String> {
    let mut set = GlobSet::builder();
    for glob in globs {
        set.add(glob.glob().clone());
    }
    set.build().map_err(|error| format!("its globs cannot be compared at once: {}", error.kind()))
}

/// A directory and those above it, but not the top (unless it is the top itself).
pub(super) fn and_above(directory: &str) -> impl Iterator<Item = &str> {
    // The top has no name that a glob could match.
    let top = Some(directory).filter(|directory| directory.is_empty());
    top.into_iter().chain(path::and_above(directory))
}
