//! Refuses references that must not reach git, a path or a record, even if kustomize accepts them.

use percent_encoding::percent_decode_str;

use super::Pin;
use super::go_url::{HttpUrl, strip_prefix_ignore_case};
use super::spec::RepoSpec;
use crate::message::redact;

/// The beginning of a URL of GitHub that kustomize passes to git unchanged.
const GITHUB: &str = "https://github.com/";

/// Refuses a reference that could be taken for an option, that hides control characters, that clients read
/// differently, that leaves its repository, or whose ref git would not take for one. The error says why, and shows
/// nothing of the text.
///
/// Pass the spec if the text is used as a git repository; without it only the rules for any text
/// and for http URLs apply. A reference that passes is well-formed, not trusted.
pub fn refuse_unsafe(text: &str, spec: Option<&RepoSpec>) -> Result<(), String> {
    refuse_controls(text, "reference")?;
    // A record keeps neither blanks around a URL nor a fragment, so its entry would be for another URL.
    refuse_blanks(text, "reference")?;
    refuse("it", text.contains('#'), "contains `#`, which ends a URL")?;
    let Some(spec) = spec else {
        // helm pulls charts from `oci://`, which is https.
        let oci = strip_prefix_ignore_case(text, "oci:").map(|rest| format!("https:{rest}"));
        return match HttpUrl::parse(oci.as_deref().unwrap_or(text)) {
            // Without a host no client sends a request.
            Some(HttpUrl { host: "", .. }) => Ok(()),
            // An IPv6 address, which `HttpUrl` has without its brackets.
            Some(url) if url.host.contains(':') => refuse_authority(url.userinfo, &format!("[{}]", url.host)),
            Some(url) => refuse_authority(url.userinfo, url.host),
            None => Ok(()),
        };
    };
    // kustomize requests the text as written before git gets `https://github.com/`.
    let unforced = strip_prefix_ignore_case(text, "git::").unwrap_or(text);
    let is_respelled = HttpUrl::parse(unforced).is_some() && strip_prefix_ignore_case(unforced, GITHUB).is_none();
    let why = "is requested as written first, and then as `https://github.com/`: write that";
    refuse("it", spec.authority() == "github.com" && is_respelled, why)?;
    // git and ssh could take any of these parts for an option, and a server decodes them.
    if !spec.is_file() {
        let authority = spec.authority();
        let (userinfo, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        refuse_authority(userinfo, host)?;
    }
    refuse_encoded(&spec.repo_path, "repository path")?;
    refuse_blanks(&spec.repo_path, "repository path")?;
    refuse_controls(&spec.path, "directory")?;
    refuse_dash(&spec.path, "directory")?;
    refuse("its path", spec.escapes(), "leads out with `..`")?;
    spec.reference.as_deref().map_or(Ok(()), refuse_ref)
}

/// Fails with a phrase about a part of the reference if `is_refused`.
fn refuse(part: &str, is_refused: bool, why: &str) -> Result<(), String> {
    if is_refused { Err(format!("{part} {why}")) } else { Ok(()) }
}

/// Refuses a user or a host that clients could read differently, or take for an option.
fn refuse_authority(userinfo: &str, host: &str) -> Result<(), String> {
    refuse_encoded(userinfo, "user")?;
    refuse_encoded(host, "host")?;
    // Clients disagree on where these characters end a userinfo or a host: the host that we show, judge and record
    // could differ from the one that gets the request.
    refuse("its user", userinfo.contains(['\\', '/', '?', '#']), "is malformed")?;
    let decoded = percent_decode_str(host).decode_utf8_lossy();
    refuse("its host", redact::is_not_host(host) || decoded.contains(['@', '\\', '/', '?', '#', ' ']), "is malformed")
}

/// Refuses a leading dash and control characters in a part that git or a server decodes.
fn refuse_encoded(text: &str, part: &str) -> Result<(), String> {
    let decoded = percent_decode_str(text).decode_utf8_lossy();
    refuse_dash(&decoded, part)?;
    refuse_controls(&decoded, part)
}

fn refuse_dash(text: &str, part: &str) -> Result<(), String> {
    refuse(&format!("its {part}"), text.starts_with('-'), "begins with `-`")
}

fn refuse_blanks(text: &str, part: &str) -> Result<(), String> {
    refuse(&format!("its {part}"), text.trim() != text, "begins or ends with whitespace")
}

fn refuse_controls(text: &str, part: &str) -> Result<(), String> {
    refuse(&format!("its {part}"), text.chars().any(char::is_control), "contains a control character")
}

/// Refuses the refs that `git check-ref-format` refuses, and those that `git fetch` would not take literally.
fn refuse_ref(text: &str) -> Result<(), String> {
    // A commit id has hexadecimal digits only, which nothing can misread.
    if Pin::of(Some(text)) == Pin::Commit {
        return Ok(());
    }
    refuse_dash(text, "ref")?;
    refuse_controls(text, "ref")?;
    let has_odd_segment =
        text.split('/').any(|segment| segment.is_empty() || segment.starts_with('.') || segment.ends_with(".lock"));
    for (is_refused, why) in [
        (text.contains(' '), "it contains a space"),
        (text.contains('\u{fffd}'), "it is not UTF-8"),
        (text.contains("..") || text.ends_with('.'), "it contains `..` or ends with `.`"),
        (text.contains("@{") || text == "@", "it contains `@{` or is `@`"),
        (text.contains(['~', '^', ':', '?', '*', '[', '\\']), "it contains one of `~ ^ : ? * [ \\`"),
        (text.starts_with('+'), "it begins with `+`, which forces an update"),
        (has_odd_segment, "a part of it is empty, begins with `.` or ends with `.lock`"),
    ] {
        refuse("git rejects its ref:", is_refused, why)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), String> {
        refuse_unsafe(text, RepoSpec::parse(text).ok().as_ref())
    }

    #[test]
    fn what_kustomize_asks_before_git_is_what_git_gets() {
        for text in ["HTTPS://GitHub.com/o/r", "git::https://github.com/o/r//d?ref=v1", "git::github.com/o/r"] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        for text in [
            "http://github.com/o/r//d?ref=v1",
            "http://github.com:80/o/r",
            "https://github.com:8443/o/r",
            "https://github.com:443/o/r",
            "https://g\u{130}thub.com/o/r",
        ] {
            assert!(check(text).is_err(), "{text}");
        }
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
            ("github.com/o/r?ref=-x", "ref"),
            ("github.com/o/r?ref=--upload-pack=touch%20x", "ref"),
            ("github.com/o/r?ref=%2Dx", "ref"),
            ("ssh://-oProxyCommand=x/o/r", "host"),
            ("ssh://%2DoProxyCommand=x/o/r", "host"),
            ("ssh://-oProxyCommand=x@host/o/r", "user"),
            ("ssh://git@-oProxyCommand=x/o/r", "host"),
            ("git@-oProxyCommand=x:o/r", "host"),
            ("git@host:-o/r", "repository path"),
            ("file://-x/y", "repository path"),
            ("https://host/-o/r", "repository path"),
            ("github.com/o/r//-dir", "directory"),
            ("https://-host/x.yaml", "host"),
            ("https://-u@host/x.yaml", "user"),
        ] {
            assert_eq!(check(text), Err(format!("its {part} begins with `-`")), "{text}");
        }
    }

    #[test]
    fn control_characters() {
        for (text, part) in [
            ("ba\nse", "reference"),
            ("https://host/x\u{1b}[2J.yaml", "reference"),
            ("github.com/o/r?ref=v1\t", "reference"),
            ("github.com/o/r//\u{9b}x", "reference"),
            ("github.com/o/r?ref=v1%0a", "ref"),
            ("github.com/o/r?ref=%7f", "ref"),
            ("github.com/o/r?ref=%c2%9b", "ref"),
            ("https://ho%0ast/o/r", "host"),
            ("https://u%00:p@host/o/r", "user"),
            ("https://host/o%0d/r", "repository path"),
        ] {
            assert_eq!(check(text), Err(format!("its {part} contains a control character")), "{text}");
        }
    }

    #[test]
    fn escapes_and_blanks() {
        for (text, expected) in [
            ("github.com/o/r////../x", "its path leads out with `..`"),
            ("https://host/o/../r.git", "its path leads out with `..`"),
            ("file://../repo//p", "its path leads out with `..`"),
            ("https://ho st/o/r", "its host is malformed"),
            ("https://h/o/r ", "its reference begins or ends with whitespace"),
            ("https://h/o/r\u{a0}", "its reference begins or ends with whitespace"),
            ("git@h:o/r?ref=v1\u{3000}", "its reference begins or ends with whitespace"),
            ("https://h/o/r\u{a0}?ref=v1", "its repository path begins or ends with whitespace"),
            ("https://h/o/r\u{3000}//d", "its repository path begins or ends with whitespace"),
            ("ssh://git@h/o/r#x?ref=v1", "it contains `#`, which ends a URL"),
            ("https://h/x.yaml#x", "it contains `#`, which ends a URL"),
            ("github.com/o/r?ref=a b", "git rejects its ref: it contains a space"),
            ("github.com/o/r?ref=a+b", "git rejects its ref: it contains a space"),
        ] {
            assert_eq!(check(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn hosts_that_two_clients_see_differently() {
        for (text, part) in [
            // Shown without what looks like a password, this would be github.com.
            ("https://evil.example=/@github.com/o/x.yaml", "host"),
            ("https://evil.example\u{3002}/x/@github.com/o/r", "host"),
            ("https://evil.example\\x:@github.com/o/r.git", "user"),
            ("https://evil.example%40github.com/o/r", "host"),
            ("https://github.com\\.evil.example/o/r.git", "host"),
            ("https://u:pass/word@host/o/r", "host"),
            ("git@%40host:o/r", "host"),
            ("ssh://git@host:x/o/r", "host"),
            // git drops what follows the brackets.
            ("ssh://git@[evil.example]github.com/o/r", "host"),
            ("https://[2001:db8::1]x/o/r", "host"),
        ] {
            assert_eq!(check(text), Err(format!("its {part} is malformed")), "{text}");
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
        assert_eq!(file, Err("its host is malformed".to_owned()));
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
            assert!(result.is_err_and(|why| why.starts_with("git rejects its ref")), "{text}");
        }
    }

    #[test]
    fn messages_show_nothing_of_the_text() {
        let error = check("ssh://-hunter2@host/o/r").unwrap_err();
        assert_eq!(error, "its user begins with `-`");
    }
}
