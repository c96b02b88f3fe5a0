//! Validates the values of a record, with the same rules for reading and for writing.
//!
//! Each function returns the reason as the end of a sentence: "the path `a/../b` *contains `..`*".

use gix::validate::path::component;

use crate::message::redact::has_secret;
use crate::os::limits::PATH;

/// `Ok` for a valid text, else the reason why it is not.
type Validity = std::result::Result<(), &'static str>;

/// Accepts a path from the top of a repository to a file or a directory below it: `/` between the components, no `..`,
/// no drive letter or backslash of Windows, nothing inside `.git` under any of its names. The names of Windows devices,
/// such as `aux`, are accepted.
pub(super) fn path(text: &str) -> Validity {
    if text.len() > PATH.most {
        return Err("is too long for a path");
    }
    if text.starts_with('/') {
        return Err("is absolute");
    }
    if has_drive(text) {
        return Err("begins like a Windows drive");
    }
    text_without_controls(text)?;
    if text.contains('\\') {
        return Err("contains a backslash");
    }
    // These are all names that some file system takes for `.git`, as with `core.protectNTFS` and `core.protectHFS`.
    let options = component::Options { protect_windows: false, ..component::Options::default() };
    for name in text.split('/') {
        match name {
            "" => return Err("contains an empty component"),
            "." => return Err("contains `.`"),
            ".." => return Err("contains `..`"),
            name if component(name.into(), None, options).is_err() => return Err("contains `.git`"),
            _ => {}
        }
    }
    Ok(())
}

/// Accepts a [`path`], or `.` for the top.
pub(super) fn path_or_top(text: &str) -> Validity {
    if text == "." { Ok(()) } else { path(text) }
}

/// Accepts the URL or scp-like address of an upstream. Its syntax is not checked, only that it is safe to store and to
/// pass to git.
pub(super) fn url(text: &str) -> Validity {
    text_without_controls(text)?;
    if text.starts_with('-') {
        return Err("begins with `-`");
    }
    // Secrets were removed from the URL before. They are refused here again.
    if has_secret(text) { Err("contains a user name or a password") } else { Ok(()) }
}

/// Accepts a ref that git cannot take for an option, a refspec or an expression such as `a~1`. Git refuses some more
/// names, for example `a.lock` and `a//b`: no server has such a ref, so fetching it fails.
pub(super) fn reference(text: &str) -> Validity {
    text_without_controls(text)?;
    if text.starts_with(['-', '+']) {
        return Err("begins with `-` or `+`");
    }
    if text.contains([' ', '~', '^', ':', '?', '*', '[', '\\']) || text.contains("..") || text.contains("@{") {
        return Err("is not a valid ref name");
    }
    Ok(())
}

/// Accepts a target: a local one like [`path_or_top`], a remote one like [`url()`].
pub(super) fn target(text: &str) -> Validity {
    path_or_top(text).or_else(|reason| {
        // A path that is refused must not pass as a URL.
        let could_be_remote = text.contains("//") || text.contains([':', '?']);
        if could_be_remote && !text.starts_with(['.', '/']) && !has_drive(text) { url(text) } else { Err(reason) }
    })
}

/// Accepts the name of a chart: one component of a path that is not an option to any program.
pub(super) fn chart(text: &str) -> Validity {
    path(text)?;
    chart_version(text)
}

/// Accepts the version of a chart, or a range of versions.
pub(super) fn chart_version(text: &str) -> Validity {
    text_without_controls(text)?;
    if text.starts_with('-') {
        return Err("begins with `-`");
    }
    if text.contains(['/', '\\']) { Err("contains a slash") } else { Ok(()) }
}

/// Accepts any text of one line that is not empty.
pub(super) fn text_without_controls(text: &str) -> Validity {
    if text.is_empty() {
        Err("is empty")
    } else if text.contains(char::is_control) {
        Err("contains a control character")
    } else {
        Ok(())
    }
}

/// Whether a path begins with the letter of a Windows drive.
fn has_drive(text: &str) -> bool {
    matches!(text.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        for text in ["a", "a/b.yaml", ".gitattributes", "a/..b/c", "a b", "日本", ".github/x", "git/x"] {
            assert_eq!(path(text), Ok(()), "{text}");
        }
        for text in [
            "",
            "/a",
            "C:/a",
            "c:a",
            "a//b",
            "a/",
            "./a",
            "a/./b",
            ".",
            "..",
            "../a",
            "a/../b",
            "a/..",
            ".git",
            "a/.git/config",
            ".GIT/x",
            ".git./x",
            ".git /x",
            "git~1/x",
            ".g\u{200c}it/x",
            ".git::$INDEX_ALLOCATION/x",
            "a\\b",
            "a\nb",
            "a\0b",
            "a\u{85}b",
        ] {
            assert!(path(text).is_err(), "{text:?}");
        }
        assert!(path(&"a".repeat(PATH.most)).is_ok());
        assert!(path(&"a".repeat(PATH.most + 1)).is_err());
        assert_eq!(path_or_top("."), Ok(()));
        assert!(path_or_top("..").is_err());
    }

    #[test]
    fn urls_hold_no_password() {
        for text in [
            "https://github.com/a/b",
            "https://github.com/a/b?x=a@b:c",
            "ssh://git@github.com/a/b",
            "git@github.com:a/b",
            "https://example.com/a b.yaml",
            "https://example.com/@scope/x:y@z",
            "file:///srv/a.git",
        ] {
            assert_eq!(url(text), Ok(()), "{text}");
        }
        for text in [
            "",
            "https://token@github.com/a/b",
            "HTTPS://token@github.com/a/b",
            "git::https://token@github.com/a/b",
            "https://u:p@github.com/a/b",
            "https://u:p@h?x",
            "ssh://git:p@github.com/a/b",
            "https://a\nb",
            "--upload-pack=x",
        ] {
            assert!(url(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn refs_are_no_options_and_no_refspecs() {
        for text in ["v1.0.6", "main", "feature/x", "refs/heads/a", "HEAD", "yes", "1e3", "a@b", "é"] {
            assert_eq!(reference(text), Ok(()), "{text}");
        }
        for text in ["", "-x", "+a", "a:b", "a b", "a..b", "a^", "a~1", "a@{1}", "a*", "a\tb"] {
            assert!(reference(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn targets_are_paths_or_urls() {
        for text in [
            ".",
            "example/overlay",
            "https://github.com/a/b//c?ref=v1",
            "github.com/a/b//c?ref=v1",
            "github.com/a/b",
            "git@github.com:a/b",
            "-a?b",
        ] {
            assert_eq!(target(text), Ok(()), "{text}");
        }
        for text in ["", "..", "../a", "..//a", "/a", "//a", "C:/a", "a/../b", "https://t@h/a", "a\n"] {
            assert!(target(text).is_err(), "{text:?}");
        }
    }
}
