//! Guesses from the text of a ref how firmly it names a commit.

use serde::Serialize;

/// The kind of a ref, by its text alone: offline there is no way to look up whether a name belongs to a tag or
/// a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pin {
    /// A full commit id (40 or 64 hex digits): pinned.
    Commit,
    /// Probably an abbreviated commit id: 7 to 39 lower-case hex digits, with a digit and a letter among them, so that
    /// words (`deadbeef`, `defaced`) and dates (`20240131`) stay names. kustomize cannot build it, because git fetches
    /// only full ids.
    ShortCommit,
    /// Probably a tag: `v1.2.3`, `2024-01-31`, `kustomize/v5.8.1`, `refs/tags/…`. It can move,
    /// but by convention it does not.
    Tag,
    /// Probably a branch: `main`, `HEAD`, `feature/x`, `release-1.2`, `v1.x`, `refs/heads/…`.
    Branch,
    /// A missing ref, which means HEAD.
    None,
}

impl Pin {
    /// The name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Pin::Commit => "commit",
            Pin::ShortCommit => "short-commit",
            Pin::Tag => "tag",
            Pin::Branch => "branch",
            Pin::None => "none",
        }
    }

    /// Whether the ref can move without breaking a convention, as a branch does; also true for a short commit id, which
    /// names nothing.
    pub(crate) fn floats(self) -> bool {
        matches!(self, Pin::ShortCommit | Pin::Branch | Pin::None)
    }

    /// The kind of a ref in a reference to a repository.
    pub(crate) fn of(reference: Option<&str>) -> Pin {
        let text = match reference {
            None | Some("") => return Pin::None,
            Some(text) => text,
        };
        if is_commit_id(text) {
            return Pin::Commit;
        }
        // git shows at least 7 characters. A digit and a letter must be among them, so that words and dates stay names.
        let short = (7..40).contains(&text.len())
            && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            && text.bytes().any(|b| b.is_ascii_digit())
            && text.bytes().any(|b| b.is_ascii_alphabetic());
        if short {
            Pin::ShortCommit
        } else if looks_like_tag(text) {
            Pin::Tag
        } else {
            Pin::Branch
        }
    }
}

/// The first parts of names that people give to branches only.
#[rustfmt::skip]
const LINES_OF_WORK: [&str; 17] = [
    "feature", "feat", "features", "fix", "fixes", "bugfix", "hotfix", "chore", "docs", "test", "wip", "dev",
    "user", "users", "dependabot", "renovate", "backport",
];

/// Whether a ref is probably a tag: its name has a digit, and is not one that people give to branches. A full name,
/// `refs/…`, says by itself what it is.
fn looks_like_tag(text: &str) -> bool {
    if let Some(name) = text.strip_prefix("refs/") {
        return name.starts_with("tags/");
    }
    let lower = text.to_ascii_lowercase();
    // Branches such as `fix/issue-12`.
    let is_work = lower.split_once('/').is_some_and(|(first, _)| LINES_OF_WORK.contains(&first));
    // Branches such as `1.x` and `v1.2.x`.
    let is_open = lower.split(['-', '_', '/']).any(|part| part.rsplit_once('.').is_some_and(|(_, last)| last == "x"));
    // Branches such as `release-1.2`, `release/v1.2`, `releases/1` and `stable-1.2`: Kubernetes and many others name a
    // line of releases so, not a single release.
    let is_release_line = ["release", "releases", "stable", "support"]
        .iter()
        .filter_map(|word| lower.strip_prefix(word)?.strip_prefix(['-', '/', '_']))
        .any(|version| {
            let version = version.strip_prefix('v').unwrap_or(version);
            version.split('.').count() <= 2 && version.split('.').all(is_number)
        });
    // By convention releases are numbered, and branches are not.
    lower.bytes().any(|b| b.is_ascii_digit()) && !is_work && !is_open && !is_release_line
}

/// Whether a part of a version has only digits.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a text is a full object id, SHA-1 or SHA-256, in any case.
fn is_commit_id(text: &str) -> bool {
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
            (&sha1[..7], Pin::Tag),
            ("abc1234", Pin::ShortCommit),
            ("1e0f2a9c", Pin::ShortCommit),
            ("abc123", Pin::Tag),
            ("ABC1234", Pin::Tag),
            ("deadbeef", Pin::Branch),
            ("20240131", Pin::Tag),
            (&sha256[..41], Pin::Tag),
            (&sha1.replace('0', "g"), Pin::Tag),
            ("v1", Pin::Tag),
            ("v1.0.6", Pin::Tag),
            ("1.2", Pin::Tag),
            ("2024-01-31", Pin::Tag),
            ("kustomize/v5.8.1", Pin::Tag),
            ("release-1.2.3", Pin::Tag),
            ("release-v1.2.3", Pin::Tag),
            ("release-1.2.3-rc.1", Pin::Tag),
            ("RELEASE.2024-01-31T20-20-33Z", Pin::Tag),
            ("helm-chart-4.10.1", Pin::Tag),
            ("v1.2.3-x", Pin::Tag),
            ("refs/tags/v1", Pin::Tag),
            ("refs/tags/latest", Pin::Tag),
            ("main", Pin::Branch),
            ("master", Pin::Branch),
            ("HEAD", Pin::Branch),
            ("develop", Pin::Branch),
            ("trunk", Pin::Branch),
            ("latest", Pin::Branch),
            ("refs/heads/v1", Pin::Branch),
            ("refs/pull/12/head", Pin::Branch),
            ("feature/v2", Pin::Branch),
            ("Fix/issue-12", Pin::Branch),
            ("dependabot/npm/a-1.2.3", Pin::Branch),
            ("release-1.2", Pin::Branch),
            ("release/v1.2", Pin::Branch),
            ("stable-2", Pin::Branch),
            ("1.x", Pin::Branch),
            ("v1.2.x", Pin::Branch),
            ("", Pin::None),
        ] {
            assert_eq!(Pin::of(Some(text)), expected, "{text}");
        }
        assert_eq!(Pin::of(None), Pin::None);
    }

    #[test]
    fn commits_and_tags_do_not_float() {
        for (pin, floats) in
            [(Pin::Commit, false), (Pin::Tag, false), (Pin::ShortCommit, true), (Pin::Branch, true), (Pin::None, true)]
        {
            assert_eq!(pin.floats(), floats, "{}", pin.name());
        }
    }
}
