//! What is never shown: passwords and tokens in URLs; and what is safe to show of any other text ([`visible()`]).
//!
//! Whatever is printed, stored or committed and may hold a URL goes through here. None of this
//! parses strictly: a text that no parser accepts is shown in an error message all the more. In doubt
//! something is hidden that was no secret. What stays open: of a password that holds both a raw `@` and,
//! after it, a raw `/`, `?` or `#`, every client takes the part after the `@` for the host, and so do we.

mod query;
mod token;
mod visible;

use std::borrow::Cow;
use std::fmt;

pub(crate) use self::visible::{inert, is_hidden, visible};
pub(crate) use self::visible::{is_invisible, shown};

use self::token::{hide_tokens, is_known_token};

/// What stands in place of a hidden value.
pub(crate) const HIDDEN: &str = "REDACTED";

/// Returns a URL, an scp-like `user@host:path` or any other reference as it may be shown.
///
/// - Userinfo goes; for ssh, file and scp-like texts a plain user name stays (`git@host:o/r`).
/// - The fragment of a URL goes.
/// - Query keys stay, and so do values; a value whose key says that it is a secret, and one that holds a known token or
///   a login, becomes `REDACTED`. No value is hidden because it looks random: two files must not become one.
/// - Control characters and surrounding blanks go; known tokens (`ghp_…`) are hidden wherever they stand.
pub fn url(text: &str) -> String {
    Shown::of(text).text
}

/// A URL, or any other reference, that may hold a secret. `{:?}` shows it as [`url()`] does. There is no `{}`: who prints
/// it and who passes it on need different texts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SafeUrl(String);

impl SafeUrl {
    /// Returns the URL as it was written, to make requests. It must not be shown.
    pub fn exposed(&self) -> &str {
        &self.0
    }

    /// Returns the URL as it may be shown and stored.
    pub fn shown(&self) -> String {
        url(&self.0)
    }

    /// Returns whether it holds a secret, as [`has_secret`].
    pub fn has_secret(&self) -> bool {
        has_secret(&self.0)
    }
}

impl<T: Into<String>> From<T> for SafeUrl {
    fn from(url: T) -> SafeUrl {
        SafeUrl(url.into())
    }
}

impl fmt::Debug for SafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown())
    }
}

/// Returns whether [`url()`] hides a secret of this text: a login, a token or a signed query. A user name that is shown is
/// none.
pub fn has_secret(text: &str) -> bool {
    Shown::of(text).secret
}

/// Returns whether a placeholder of [`url()`] stands in a shown URL, so that it can no longer be requested. A password
/// that is left out leaves no trace.
pub(crate) fn lacks_secret(shown: &str) -> bool {
    shown.contains(HIDDEN)
}

/// Returns a text from outside, as what git printed, with every URL in it shown as by [`url()`], and
/// without control characters but newline and tab.
pub(crate) fn text(text: &str) -> String {
    let text = text.replace(|c: char| c.is_control() && !matches!(c, '\n' | '\t'), "");
    message(&text).into_owned()
}

/// Returns a message in which every secret is hidden, and everything else is as it was.
pub(crate) fn message(text: &str) -> Cow<'_, str> {
    if !(text.contains(['@', '?', '#']) || text.contains(ENCODED_AT) || is_known_token(text)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(worded(text, |_, hidden| hidden))
}

/// Returns a line of somebody else's text as [`visible`], with a mark where a secret was.
pub(crate) fn concealed(text: &str) -> String {
    if message(text) == text {
        return visible(text);
    }
    let marked = |bare: &str, hidden: String| {
        let first = bare.bytes().zip(hidden.bytes()).take_while(|(one, other)| one == other).count();
        let first = (0..=first).rev().find(|at| hidden.is_char_boundary(*at)).unwrap_or_default();
        if hidden.contains(HIDDEN) { hidden } else { format!("{}…{}", &hidden[..first], &hidden[first..]) }
    };
    visible(&worded(text, marked))
}

/// Returns a text with each word that holds a secret as `show` makes it of what may be shown.
fn worded(text: &str, show: impl Fn(&str, String) -> String) -> String {
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        // What opens or ends a quotation or a sentence is not part of the URL.
        let opening = |c: char| "'\"`([{<@".contains(c);
        let closing = |c: char| "'\"`)]}>,.:;!".contains(c);
        let bare = word.trim_start_matches(opening);
        let (before, bare) = word.split_at(word.len() - bare.len());
        let bare = bare.trim_end_matches(closing);
        shown.push_str(before);
        let hidden = Shown::of(bare);
        shown.push_str(&if hidden.secret { show(bare, hidden.text) } else { bare.to_owned() });
        shown.push_str(&piece[before.len() + bare.len()..]);
    }
    shown
}

/// What may be shown of a text, and whether a secret was left out.
struct Shown {
    text: String,
    secret: bool,
}

/// What the text before a userinfo shows about it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A scheme under which a user name is part of the address: ssh, file.
    Named,
    /// Any other scheme.
    Url,
    /// None: scp-like, or no reference at all.
    Bare,
}

/// How often a text is gone through before nothing of it is shown.
const MOST_TIMES: usize = 8;

impl Shown {
    /// What is left once something is hidden can look like another URL: it is gone through again until it stays.
    fn of(text: &str) -> Self {
        let mut shown = Shown::once(text);
        if shown.text == text {
            return shown;
        }
        for _ in 0..MOST_TIMES {
            let again = Shown::once(&shown.text);
            let secret = shown.secret || again.secret;
            if again.text == shown.text {
                return Shown { secret, ..again };
            }
            shown = Shown { secret, ..again };
        }
        Shown { text: HIDDEN.to_owned(), secret: true }
    }

    fn once(text: &str) -> Self {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        let mut shown = Shown { text: String::with_capacity(text.len()), secret: false };
        shown.reference(text.trim());
        // Restore the blanks outside if the text before them is hidden.
        shown.text = shown.text.trim().to_owned();
        shown
    }

    /// Goes through a text from authority to authority: there may be several, as in
    /// `git::https://…`, `'https://…` or `https://proxy/https://…`, and each can hold a password.
    fn reference(&mut self, text: &str) {
        let last_at = end_of_last_at(text);
        let mut end = location_end(text, 0);
        let head = authority_start(&text[..end]).map_or(text.len(), |(length, _)| length);
        let mut start = 0;
        // A path may lead to it: that of the directory to which it was joined.
        let path = text[..head.min(end)].trim_end_matches(['/', '\\']);
        for (slash, _) in path.match_indices('/') {
            start = self.userinfo(&text[..head], start, Kind::Bare, last_at);
            self.location(&text[start..=slash]);
            start = slash + 1;
        }
        start = self.userinfo(&text[..head], start, Kind::Bare, last_at);
        let mut is_url = false;
        while let Some((length, kind)) = authority_start(&text[start..end]) {
            self.location(&text[start..start + length]);
            start = self.userinfo(text, start + length, kind, last_at);
            if start > end {
                end = location_end(text, start);
            }
            is_url = true;
        }
        self.location(&text[start..end]);
        let tail = &text[end..];
        let (query, fragment) = tail.split_once('#').unwrap_or((tail, ""));
        if let Some(query) = query.strip_prefix('?') {
            self.text.push('?');
            self.secret |= query::redact(query, &mut self.text);
        }
        // Only a URL has a fragment; in a local path `#` is a character like any other. After a secret it
        // may be the secret's own.
        let keep = !is_url && !self.secret && tail.contains('#');
        let before = self.text.len();
        self.text.push('#');
        let secret = query::redact(fragment, &mut self.text);
        if secret || !keep {
            self.text.truncate(before);
        }
        self.secret |= secret;
    }

    /// Shows what may be shown of the userinfo that begins at `start`, and returns where the host begins.
    fn userinfo(&mut self, text: &str, start: usize, kind: Kind, last_at: usize) -> usize {
        let rest = &text[start..];
        let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
        let at = end_of_last_at(authority);
        let mut end = start + at;
        if kind != Kind::Bare && last_at > end && is_no_host(&authority[at..]) {
            // It is the beginning of a password that holds `/`, `?` or `#`.
            end = last_at;
        }
        if end == start {
            return start;
        }
        let userinfo = &text[start..end];
        let named = userinfo.strip_suffix('@').unwrap_or(userinfo);
        let named = named.strip_suffix(ENCODED_AT).unwrap_or(named);
        let colon = named.find([':', '@']).or(named.find("%3a")).or(named.find("%3A"));
        let name = &named[..colon.unwrap_or(named.len())];
        // A token is a secret even alone. Elsewhere than over http a name alone opens nothing.
        let is_token = is_known_token(name) || (kind == Kind::Url && is_no_user(name));
        let is_shown = kind != Kind::Url && !is_token && is_plain_name(name);
        let is_secret = colon.is_some() || is_token || (kind != Kind::Bare && !is_shown);
        // A file may be named like that, and an image `name:tag@sha256:…`.
        if kind == Kind::Bare && (!is_secret || is_digest(&authority[at..])) {
            return start;
        }
        self.secret |= is_secret;
        if is_shown {
            self.text.push_str(name);
            self.text.push_str(if colon.is_some() { "@" } else { &userinfo[name.len()..] });
        }
        end
    }

    fn location(&mut self, text: &str) {
        self.secret |= hide_tokens(text, &mut self.text);
    }
}

const ENCODED_AT: &str = "%40";

/// Returns the index after the last `@`, which may be percent-encoded; 0 when there is none.
fn end_of_last_at(text: &str) -> usize {
    let plain = text.rfind('@').map_or(0, |at| at + 1);
    let encoded = text.rfind(ENCODED_AT).map_or(0, |at| at + ENCODED_AT.len());
    plain.max(encoded)
}

/// Returns where the query or fragment begins, from `start` on; the length of the text if there is none.
fn location_end(text: &str, start: usize) -> usize {
    text[start..].find(['?', '#']).map_or(text.len(), |at| start + at)
}

/// Finds where the first authority begins: after `scheme://`, after `//` at the front, and after `https:/`
/// as well, for some clients read that as a URL.
fn authority_start(text: &str) -> Option<(usize, Kind)> {
    let is_slash = |c: char| c == '/' || c == '\\';
    let slashes = |at: usize| text[at..].len() - text[at..].trim_start_matches(is_slash).len();
    if slashes(0) >= 2 {
        return Some((slashes(0), Kind::Bare));
    }
    text.match_indices(':').find_map(|(colon, _)| {
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
        let before = &text[..colon];
        let scheme = &before[before.trim_end_matches(is_scheme).len()..];
        let scheme = scheme.to_ascii_lowercase();
        let needed = if matches!(scheme.as_str(), "http" | "https" | "ssh") { 1 } else { 2 };
        let count = slashes(colon + 1);
        let kind = match scheme.as_str() {
            "ssh" | "git+ssh" | "ssh+git" | "file" => Kind::Named,
            _ => Kind::Url,
        };
        (count >= needed).then_some((colon + 1 + count, kind))
    })
}

/// Returns whether a text cannot be `host[:port]`: nothing, a character that is in no host name, or
/// something other than digits for a port.
pub(crate) fn is_no_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        Some((address, port)) => (address, port.strip_prefix(':')),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let in_name = |c: char| c.is_alphanumeric() || "._-:%".contains(c);
    text.is_empty() || !host.chars().all(in_name) || port.is_some_and(|port| !port.bytes().all(|b| b.is_ascii_digit()))
}

fn is_digest(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Returns whether a text that stands for a user is a token: no forge gives out such long names, and tokens without a
/// known beginning are at least as long (old ones of GitHub, those of Azure DevOps).
fn is_no_user(name: &str) -> bool {
    name.len() >= 40 && name.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// Returns whether a user name can be shown: short, of letters, digits and `._-`.
fn is_plain_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}

#[cfg(test)]
mod tests;
