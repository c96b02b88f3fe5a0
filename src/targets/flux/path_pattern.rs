//! The `pathPattern` of an `ArtifactGenerator`, of which each directory that matches makes artifacts (source-watcher,
//! `internal/controller/artifactgenerator_pathpattern.go`).

use super::source::{Bound, FluxSources};
use crate::tree::{Entry, path};

/// The values of the names in braces for a directory that matches.
pub(super) type Captures = Vec<(String, String)>;

/// The values of the names for each directory of `source` that `pattern` matches. Fails if they are unknown.
pub(super) fn matches(sources: &FluxSources<'_>, source: &Bound, pattern: &str) -> Result<Vec<Captures>, String> {
    let Bound::Local { base, revision, .. } = source else {
        return Err("looks for directories in another source".to_owned());
    };
    if !revision.is_this {
        return Err("looks for directories in another revision".to_owned());
    }
    let mut matches = vec![(base.clone(), Captures::new())];
    // Segment by segment, so that no directory is read that cannot match.
    for segment in pattern.split('/') {
        let Some(parsed) = Segment::parse(segment) else {
            return Err(format!("has `{segment}` in its `pathPattern`, which is not supported here"));
        };
        if let Some(name) = parsed.name
            && matches.iter().any(|(_, known)| known.iter().any(|(known, _)| known == name))
        {
            return Err(format!("names `{name}` twice in its `pathPattern`"));
        }
        let mut inside = Vec::new();
        for (directory, captures) in matches {
            for name in sources.names(&directory)? {
                let path = path::join(&directory, &name);
                let Some(value) = parsed.value(&name) else { continue };
                if sources.entry(&path)? == Some(Entry::Directory) {
                    let named = parsed.name.map(|name| (name.to_owned(), value.to_owned()));
                    inside.push((path, captures.iter().cloned().chain(named).collect()));
                }
            }
        }
        matches = inside;
    }
    Ok(matches.into_iter().map(|(_, captures)| captures).collect())
}

/// A segment of a pattern: a name in braces with the text around it, or a literal.
struct Segment<'a> {
    before: &'a str,
    name: Option<&'a str>,
    after: &'a str,
}

impl<'a> Segment<'a> {
    /// Reads a segment; `None` for an invalid segment, and for one with several names.
    fn parse(segment: &'a str) -> Option<Segment<'a>> {
        let Some((before, rest)) = segment.split_once('{') else {
            return (!segment.contains('}')).then_some(Segment { before: segment, name: None, after: "" });
        };
        let (name, after) = rest.split_once('}')?;
        // The name becomes that of a label of the artifact.
        let is_name = is_label(name) && name.starts_with(|first: char| first.is_ascii_alphabetic());
        // Several names would be ambiguous.
        let is_valid = is_name && !name.contains(['-', '.']) && !before.contains('}') && !after.contains(['{', '}']);
        is_valid.then_some(Segment { before, name: Some(name), after })
    }

    /// The value of its name in the name of a directory; `None` if it does not match.
    fn value<'n>(&self, name: &'n str) -> Option<&'n str> {
        let value = name.strip_prefix(self.before)?.strip_suffix(self.after)?;
        // A name needs a value, and a literal must match as a whole.
        (value.is_empty() != self.name.is_some()).then_some(value)
    }
}

/// The values in lower case, for names of objects.
pub(super) fn lower(captures: &Captures) -> Captures {
    captures.iter().map(|(name, value)| (name.clone(), value.to_lowercase())).collect()
}

/// A text of the generator with its names in braces filled in; `None` if one has no value, or a brace has no partner.
pub(super) fn fill(text: &str, captures: &Captures) -> Option<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, name)) = rest.split_once('{') {
        let (name, after) = name.split_once('}')?;
        let (_, value) = captures.iter().find(|(known, _)| known == name)?;
        if before.contains('}') {
            return None;
        }
        filled.extend([before, value]);
        rest = after;
    }
    (!rest.contains('}')).then(|| filled + rest)
}

/// Whether a text can be the value of a label, and is one.
pub(super) fn is_label(text: &str) -> bool {
    text.len() <= 63
        && is_letter_or_digit(text.chars().next())
        && is_letter_or_digit(text.chars().last())
        && text.chars().all(|inside: char| inside.is_ascii_alphanumeric() || "-_.".contains(inside))
}

/// Whether a name may begin or end with a character.
fn is_letter_or_digit(end: Option<char>) -> bool {
    end.is_some_and(|end| end.is_ascii_alphanumeric())
}

/// Whether a text can be the name of an object.
pub(super) fn is_object_name(text: &str) -> bool {
    text.len() <= 253
        && text.split('.').all(|part: &str| {
            !part.is_empty()
                && !part.starts_with('-')
                && !part.ends_with('-')
                && part.bytes().all(|byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        })
}
