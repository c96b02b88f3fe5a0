//! What must not reach git, a path or a record, whatever kustomize makes of it.

use std::fmt;

use percent_encoding::percent_decode_str;

use super::go_url::{HttpUrl, strip_prefix_ignore_case};
use super::pin::is_commit_id;
use super::spec::{RepoSpec, clean};
use crate::message::redact;

/// Refuses a reference that could be taken for an option, that hides control characters, that leaves
/// its repository, or whose ref git would not take for one.
///
/// Give the spec when the text is used as a git repository; without it only what holds for any text
/// and for an http URL is looked at. A reference that passes is well-formed, not trusted.
pub fn refuse_unsafe(text: &str, spec: Option<&RepoSpec>) -> Result<(), Unsafe> {
    refuse_controls(text, Part::Reference)?;
    // A record holds neither: its entry would be for what another URL names.
    refuse_blanks(text, Part::Reference)?;
    if text.contains('#') {
        return Err(Unsafe::Fragment);
    }
    let Some(spec) = spec else {
        // helm pulls charts from `oci://`, which is https.
        let oci = strip_prefix_ignore_case(text, "oci:").map(|rest| format!("https:{rest}"));
        return match HttpUrl::parse(oci.as_deref().unwrap_or(text)) {
            Some(HttpUrl { host: "", .. }) => Ok(()),
            Some(url) if url.host.contains(':') => refuse_authority(url.userinfo, &format!("[{}]", url.host)),
            Some(url) => refuse_authority(url.userinfo, url.host),
            None => Ok(()),
        };
    };
    if !spec.is_file() {
        let authority = spec.authority();
        let (userinfo, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        refuse_authority(userinfo, host)?;
    }
    refuse_encoded(&spec.repo_path, Part::Repository)?;
    refuse_blanks(&spec.repo_path, Part::Repository)?;
    if spec.repo_path.split('/').any(|segment| segment == "..") {
        return Err(Unsafe::Escapes(Part::Repository));
    }
    refuse_dash(spec.clone_spec().exposed(), Part::Repository)?;
    refuse_controls(&spec.path, Part::Directory)?;
    refuse_dash(&spec.path, Part::Directory)?;
    if clean(&spec.path).first() == Some(&"..") {
        return Err(Unsafe::Escapes(Part::Directory));
    }
    spec.reference.as_deref().map_or(Ok(()), refuse_ref)
}

/// The part of a reference that is unsafe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The text as a whole.
    Reference,
    /// The user name or password before the `@`.
    User,
    /// The host.
    Host,
    /// The path of the repository.
    Repository,
    /// The directory in the repository.
    Directory,
    /// The ref.
    Ref,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Reference => "reference",
            Part::User => "user",
            Part::Host => "host",
            Part::Repository => "repository path",
            Part::Directory => "directory",
            Part::Ref => "ref",
        })
    }
}

/// Why a reference is refused. The message names the part and never shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unsafe {
    /// The part begins with `-`, as an option does.
    LeadingDash(Part),
    /// The part holds a control character, as it stands or percent-encoded.
    Control(Part),
    /// The part begins or ends with a blank, which is easily overlooked.
    BlankEnd(Part),
    /// The part holds a blank where none can be.
    Blank(Part),
    /// The part holds what no such part holds, so that not everybody sees the same host: what is
    /// shown, judged or recorded could be another than the one that is asked.
    Malformed(Part),
    Fragment,
    /// The part climbs out with `..`.
    Escapes(Part),
    /// git takes no such text for a ref (`git check-ref-format`), for this reason.
    NotARef(&'static str),
}

impl fmt::Display for Unsafe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsafe::LeadingDash(part) => write!(f, "its {part} begins with `-`"),
            Unsafe::Control(part) => write!(f, "its {part} holds a control character"),
            Unsafe::BlankEnd(part) => write!(f, "its {part} begins or ends with a blank"),
            Unsafe::Blank(part) => write!(f, "its {part} contains a space"),
            Unsafe::Malformed(part) => write!(f, "its {part} is malformed"),
            Unsafe::Fragment => write!(f, "it holds `#`, which ends a URL"),
            Unsafe::Escapes(part) => write!(f, "its {part} climbs out with `..`"),
            Unsafe::NotARef(reason) => write!(f, "git takes no such ref: {reason}"),
        }
    }
}

impl std::error::Error for Unsafe {}

fn refuse_authority(userinfo: &str, host: &str) -> Result<(), Unsafe> {
    refuse_encoded(userinfo, Part::User)?;
    refuse_encoded(host, Part::Host)?;
    if host.contains(' ') {
        return Err(Unsafe::Blank(Part::Host));
    }
    // Where one client ends a userinfo or a host and another does not.
    if userinfo.contains(['\\', '/', '?', '#']) {
        return Err(Unsafe::Malformed(Part::User));
    }
    let decoded = percent_decode_str(host).decode_utf8_lossy();
    if redact::is_no_host(host) || decoded.contains(['@', '\\', '/', '?', '#']) {
        return Err(Unsafe::Malformed(Part::Host));
    }
    Ok(())
}

/// Refuses a leading dash and control characters in a part that git or a server decodes.
fn refuse_encoded(part: &str, name: Part) -> Result<(), Unsafe> {
    let decoded = percent_decode_str(part).decode_utf8_lossy();
    refuse_dash(&decoded, name)?;
    refuse_controls(&decoded, name)
}

fn refuse_dash(part: &str, name: Part) -> Result<(), Unsafe> {
    if part.starts_with('-') {
        return Err(Unsafe::LeadingDash(name));
    }
    Ok(())
}

fn refuse_blanks(part: &str, name: Part) -> Result<(), Unsafe> {
    if part.trim() != part {
        return Err(Unsafe::BlankEnd(name));
    }
    Ok(())
}

fn refuse_controls(part: &str, name: Part) -> Result<(), Unsafe> {
    if part.chars().any(char::is_control) {
        return Err(Unsafe::Control(name));
    }
    Ok(())
}

/// Refuses what `git check-ref-format` refuses, and what `git fetch` would not take literally.
fn refuse_ref(text: &str) -> Result<(), Unsafe> {
    if is_commit_id(text) {
        return Ok(());
    }
    refuse_dash(text, Part::Ref)?;
    refuse_controls(text, Part::Ref)?;
    let no = |reason| Err(Unsafe::NotARef(reason));
    if text.contains(' ') {
        return Err(Unsafe::Blank(Part::Ref));
    }
    if text.contains('\u{fffd}') {
        return no("it is not UTF-8");
    }
    if text.contains("..") {
        return no("it holds `..`");
    }
    if text.contains("@{") || text == "@" {
        return no("it holds `@{` or is `@`");
    }
    if text.contains(['~', '^', ':', '?', '*', '[', '\\']) {
        return no("it holds one of `~ ^ : ? * [ \\`");
    }
    if text.starts_with('+') {
        return no("it begins with `+`, which forces an update");
    }
    if text.ends_with('.') {
        return no("it ends with `.`");
    }
    for segment in text.split('/') {
        if segment.is_empty() {
            return no("it begins or ends with `/`, or holds `//`");
        }
        if segment.starts_with('.') {
            return no("a part of it begins with `.`");
        }
        if segment.ends_with(".lock") {
            return no("a part of it ends with `.lock`");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), Unsafe> {
        refuse_unsafe(text, RepoSpec::parse(text).ok().as_ref())
    }

    #[test]
    fn well_formed() {
        for text in [
            "base",
            "../base",
            "-patch.yaml",
            "https://host/x.yaml",
            "https://u:p@host:8443/x%0a.yaml",
            "github.com/o/r//dir?ref=v1.0.6",
            "github.com/o/r?ref=HEAD",
            "github.com/o/r?ref=feature/a@b%2Bc-d_e",
            "github.com/o/r?ref=refs/tags/v1",
            "github.com/o/r?ref=größe",
            "github.com/o/r?ref=0123456789abcdef0123456789ABCDEF01234567",
            "github.com/o/r//a/../b",
            "github.com/o/r",
            "git@github.com:o/r",
            "ssh://git@[2001:db8::1]:22/o/r",
            "https://dev.azure.com/o/my%20project/_git/r",
            "file:///srv/repo//p",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn options_in_disguise() {
        for (text, part) in [
            ("github.com/o/r?ref=-x", Part::Ref),
            ("github.com/o/r?ref=--upload-pack=touch%20x", Part::Ref),
            ("github.com/o/r?ref=%2Dx", Part::Ref),
            ("ssh://-oProxyCommand=x/o/r", Part::Host),
            ("ssh://%2DoProxyCommand=x/o/r", Part::Host),
            ("ssh://-oProxyCommand=x@host/o/r", Part::User),
            ("ssh://git@-oProxyCommand=x/o/r", Part::Host),
            ("git@-oProxyCommand=x:o/r", Part::Host),
            ("git@host:-o/r", Part::Repository),
            ("file://-x/y", Part::Repository),
            ("https://host/-o/r", Part::Repository),
            ("github.com/o/r//-dir", Part::Directory),
            ("https://-host/x.yaml", Part::Host),
            ("https://-u@host/x.yaml", Part::User),
        ] {
            assert_eq!(check(text), Err(Unsafe::LeadingDash(part)), "{text}");
        }
    }

    #[test]
    fn control_characters() {
        for (text, part) in [
            ("ba\nse", Part::Reference),
            ("https://host/x\u{1b}[2J.yaml", Part::Reference),
            ("github.com/o/r?ref=v1\t", Part::Reference),
            ("github.com/o/r//\u{9b}x", Part::Reference),
            ("github.com/o/r?ref=v1%0a", Part::Ref),
            ("github.com/o/r?ref=%7f", Part::Ref),
            ("github.com/o/r?ref=%c2%9b", Part::Ref),
            ("https://ho%0ast/o/r", Part::Host),
            ("https://u%00:p@host/o/r", Part::User),
            ("https://host/o%0d/r", Part::Repository),
        ] {
            assert_eq!(check(text), Err(Unsafe::Control(part)), "{text}");
        }
    }

    #[test]
    fn escapes_and_blanks() {
        for (text, expected) in [
            ("github.com/o/r////../x", Unsafe::Escapes(Part::Directory)),
            ("https://host/o/../r.git", Unsafe::Escapes(Part::Repository)),
            ("file://../repo//p", Unsafe::Escapes(Part::Repository)),
            ("https://ho st/o/r", Unsafe::Blank(Part::Host)),
            ("https://h/o/r ", Unsafe::BlankEnd(Part::Reference)),
            ("https://h/o/r\u{a0}", Unsafe::BlankEnd(Part::Reference)),
            ("git@h:o/r?ref=v1\u{3000}", Unsafe::BlankEnd(Part::Reference)),
            ("https://h/o/r\u{a0}?ref=v1", Unsafe::BlankEnd(Part::Repository)),
            ("https://h/o/r\u{3000}//d", Unsafe::BlankEnd(Part::Repository)),
            ("ssh://git@h/o/r#x?ref=v1", Unsafe::Fragment),
            ("https://h/x.yaml#x", Unsafe::Fragment),
            ("github.com/o/r?ref=a b", Unsafe::Blank(Part::Ref)),
            ("github.com/o/r?ref=a+b", Unsafe::Blank(Part::Ref)),
        ] {
            assert_eq!(check(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn hosts_that_two_clients_see_differently() {
        for (text, part) in [
            // Shown without what looks like a password, this would be github.com.
            ("https://evil.example=/@github.com/o/x.yaml", Part::Host),
            ("https://evil.example\u{3002}/x/@github.com/o/r", Part::Host),
            ("https://evil.example\\x:@github.com/o/r.git", Part::User),
            ("https://evil.example%40github.com/o/r", Part::Host),
            ("https://github.com\\.evil.example/o/r.git", Part::Host),
            ("https://u:pass/word@host/o/r", Part::Host),
            ("git@%40host:o/r", Part::Host),
            ("ssh://git@host:x/o/r", Part::Host),
        ] {
            assert_eq!(check(text), Err(Unsafe::Malformed(part)), "{text}");
        }
        for text in [
            "https://größe.example/x.yaml",
            "https://my_host-1.example:8443/o/r",
            "https://[2001:db8::1]/x.yaml",
            "https://u%5Cv:p%40q@host/o/r",
            "https:/host/x",
            "file:///srv/a b=c/r",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        // For a file as for a repository.
        let file = refuse_unsafe("https://evil.example=/@github.com/o/x.yaml", None);
        assert_eq!(file, Err(Unsafe::Malformed(Part::Host)));
        assert_eq!(refuse_unsafe("https://[2001:db8::1]:8/x.yaml", None), Ok(()));
    }

    #[test]
    fn refs_that_git_does_not_take() {
        for reference in [
            "HEAD~1",
            "v1^{}",
            "a:b",
            "a?b",
            "rel/*",
            "a[b",
            "a\\b",
            "a..b",
            "main@{1}",
            "@",
            "main.lock",
            "a.lock/b",
            "main.",
            "main/",
            "/main",
            "a//b",
            ".a",
            "a/.b",
            "%2Bmain",
            "%ff",
        ] {
            let text = format!("github.com/o/r?ref={reference}");
            let result = check(&text);
            assert!(matches!(result, Err(Unsafe::NotARef(_))), "{text}: {result:?}");
        }
    }

    #[test]
    fn messages_show_nothing_of_the_text() {
        let error = check("ssh://-hunter2@host/o/r").unwrap_err();
        assert_eq!(error.to_string(), "its user begins with `-`");
    }
}
