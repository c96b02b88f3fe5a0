//! How firmly a ref names a commit, as far as its text tells.

/// What kind of name a ref is, by its text alone: offline, a tag cannot be told from a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pin {
    /// A full commit id (40 or 64 hex digits): pinned.
    Commit,
    /// What looks like an abbreviated commit id. kustomize cannot build it, because git fetches only
    /// full ids: 7 to 39 lower-case hex digits, with a digit and a letter among them, so that words
    /// (`deadbeef`, `defaced`) and dates (`20240131`) stay names.
    ShortCommit,
    /// Anything else that is written: a tag, a branch, `HEAD`, `refs/…`. It can move.
    Name,
    /// No ref at all: whatever HEAD is.
    None,
}

impl Pin {
    /// Returns its name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Pin::Commit => "commit",
            Pin::ShortCommit => "short-commit",
            Pin::Name => "name",
            Pin::None => "none",
        }
    }

    /// Returns the kind of a ref as [`super::RepoSpec::reference`] holds it.
    pub fn of(reference: Option<&str>) -> Pin {
        let text = match reference {
            None | Some("") => return Pin::None,
            Some(text) => text,
        };
        if is_commit_id(text) {
            return Pin::Commit;
        }
        let short = (7..40).contains(&text.len())
            && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            && text.bytes().any(|b| b.is_ascii_digit())
            && text.bytes().any(|b| b.is_ascii_alphabetic());
        if short { Pin::ShortCommit } else { Pin::Name }
    }
}

/// Returns whether a text is a full object id, SHA-1 or SHA-256, in any case.
pub(super) fn is_commit_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        let sha1 = "0123456789abcdef0123456789abcdef01234567";
        let sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        for (text, expected) in [
            (sha1, Pin::Commit),
            (&sha1.to_uppercase(), Pin::Commit),
            (sha256, Pin::Commit),
            (&sha1[..39], Pin::ShortCommit),
            (&sha1[..7], Pin::Name),
            ("abc1234", Pin::ShortCommit),
            ("1e0f2a9c", Pin::ShortCommit),
            ("abc123", Pin::Name),
            ("ABC1234", Pin::Name),
            ("deadbeef", Pin::Name),
            ("20240131", Pin::Name),
            (&sha256[..41], Pin::Name),
            (&sha1.replace('0', "g"), Pin::Name),
            ("v1", Pin::Name),
            ("v1.0.6", Pin::Name),
            ("main", Pin::Name),
            ("HEAD", Pin::Name),
            ("refs/tags/v1", Pin::Name),
            ("", Pin::None),
        ] {
            assert_eq!(Pin::of(Some(text)), expected, "{text}");
        }
        assert_eq!(Pin::of(None), Pin::None);
    }
}
