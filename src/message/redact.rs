//! Hides passwords and tokens in URLs; [`visible()`] makes any other text safe to show.
//!
//! Every text that is printed, stored or committed and may hold a URL goes through here. None of this
//! parses strictly, because a text that no parser accepts is likely to be shown in an error message. In doubt
//! harmless text is hidden. One leak remains: if a password holds a raw `@` and,
//! after it, a raw `/`, `?` or `#`, every client takes the part after the `@` for the host, and so do we.

mod query;
mod token;
mod visible;

use std::borrow::Cow;
use std::fmt;

pub(crate) use self::visible::{inert, is_hidden, visible};
pub(crate) use self::visible::{is_invisible, shown};

use self::token::{hide_tokens, is_known_token};

/// The placeholder for a hidden value.
pub(crate) const HIDDEN: &str = "REDACTED";

/// A URL, an scp-like `user@host:path` or any other reference as it may be shown.
///
/// - Userinfo goes; for ssh, file and scp-like texts a plain user name stays (`git@host:o/r`).
/// - The fragment of a URL goes.
/// - Query keys stay, and so do values; a value whose key says that it is a secret, and one that holds a known token or
///   a login, becomes `REDACTED`. No value is hidden because it looks random: two files must not become one.
/// - Control characters and surrounding blanks go; known tokens (`ghp_…`) are hidden everywhere.
pub fn url(text: &str) -> String {
    Redacted::of(text).text
}

/// A URL, or any other reference, that may hold a secret. `{:?}` shows it as [`url()`] does. It has no `{}`, because
/// messages and requests need different texts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SafeUrl(String);

impl SafeUrl {
    /// The URL as it was written, for requests. It must not be shown.
    pub fn exposed(&self) -> &str {
        &self.0
    }

    /// The URL as it may be shown and stored.
    pub fn shown(&self) -> String {
        url(&self.0)
    }

    /// See [`has_secret`].
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

/// Whether [`url()`] hides a secret of this text: a login, a token or a signed query. A user name that is shown does
/// not count.
pub fn has_secret(text: &str) -> bool {
    Redacted::of(text).secret
}

/// Whether a shown URL holds a placeholder of [`url()`], so that it can no longer be requested. A removed password
/// leaves no trace.
pub(crate) fn has_placeholder(shown: &str) -> bool {
    shown.contains(HIDDEN)
}

/// A text from outside, such as the output of git, with every URL in it shown as by [`url()`], and
/// without control characters other than newline and tab.
pub(crate) fn text(text: &str) -> String {
    let text = text.replace(|c: char| c.is_control() && !matches!(c, '\n' | '\t'), "");
    message(&text).into_owned()
}

/// A message in which every secret is hidden, and everything else is unchanged.
pub(crate) fn message(text: &str) -> Cow<'_, str> {
    // A secret is a known token, or belongs to a login, a query or a fragment.
    if !(text.contains(['@', '?', '#']) || text.contains(ENCODED_AT) || is_known_token(text)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(replace_secrets(text, |_, hidden| hidden))
}

/// A line of somebody else's text as [`visible`], with a mark in each word from which a secret was removed without a
/// trace.
pub(crate) fn visible_with_marks(text: &str) -> String {
    if message(text) == text {
        return visible(text);
    }
    visible(&replace_secrets(text, marked))
}

/// Adds a mark at the first difference between a word and its redacted form, unless that has a placeholder.
fn marked(bare: &str, hidden: String) -> String {
    if hidden.contains(HIDDEN) {
        return hidden;
    }
    let common = bare.bytes().zip(hidden.bytes()).take_while(|(before, after)| before == after).count();
    let common = (0..=common).rev().find(|at| hidden.is_char_boundary(*at)).unwrap_or_default();
    format!("{}…{}", &hidden[..common], &hidden[common..])
}

/// Replaces each word that holds a secret by the result of `show`, which gets the word and its redacted form.
fn replace_secrets(text: &str, show: impl Fn(&str, String) -> String) -> String {
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        // Marks around a quotation or a sentence are not part of the URL.
        let bare = word.trim_start_matches(|c: char| "'\"`([{<@".contains(c));
        let (before, bare) = word.split_at(word.len() - bare.len());
        let bare = bare.trim_end_matches(|c: char| "'\"`)]}>,.:;!".contains(c));
        shown.push_str(before);
        match Redacted::of(bare) {
            hidden if hidden.secret => shown.push_str(&show(bare, hidden.text)),
            _ => shown.push_str(bare),
        }
        shown.push_str(&piece[before.len() + bare.len()..]);
    }
    shown
}

/// The redacted form of a text, and whether a secret was hidden.
struct Redacted {
    text: String,
    secret: bool,
}

/// The kind of text before a userinfo.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemeKind {
    /// A scheme under which a user name is part of the address: ssh, file.
    Named,
    /// Any other scheme.
    Url,
    /// No scheme: scp-like, or not a reference at all.
    Bare,
}

/// The prefix with which kustomize takes any text for a git URL.
const FORCED_GIT: &str = "git::";

/// The number of passes over a text after which it is hidden completely.
const MOST_PASSES: usize = 8;

impl Redacted {
    /// Redacts a text until nothing changes, because a redacted text can look like another URL with a secret.
    fn of(text: &str) -> Self {
        // A report may show a hundred thousand URLs, most of them with nothing to hide.
        if has_nothing_to_hide(text) {
            return Redacted { text: text.to_owned(), secret: false };
        }
        // Most texts hold no URL, so one pass tells that nothing is hidden.
        let mut shown = Redacted::in_one_pass(text);
        if shown.text == text {
            return shown;
        }
        for _ in 0..MOST_PASSES {
            let again = Redacted::in_one_pass(&shown.text);
            let secret = shown.secret || again.secret;
            if again.text == shown.text {
                return Redacted { secret, ..again };
            }
            shown = Redacted { secret, ..again };
        }
        Redacted { text: HIDDEN.to_owned(), secret: true }
    }

    /// The redacted form of a text, which may still look like a URL with a secret.
    fn in_one_pass(text: &str) -> Self {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        let mut shown = Redacted { text: String::with_capacity(text.len()), secret: false };
        shown.mask_reference(text.trim());
        // If the text at an end is hidden, blanks that were inside are at that end now.
        shown.text = shown.text.trim().to_owned();
        shown
    }

    /// Adds the redacted form of a text: from authority to authority, then the query and the fragment.
    fn mask_reference(&mut self, text: &str) {
        // kustomize takes everything behind this prefix for the URL: its `git` is no user, and what follows no
        // password.
        let is_forced = text.get(..FORCED_GIT.len()).is_some_and(|head| head.eq_ignore_ascii_case(FORCED_GIT));
        let (prefix, text) = text.split_at(if is_forced { FORCED_GIT.len() } else { 0 });
        self.text.push_str(prefix);
        // `start` is the end of the text that was added, `end` the beginning of the query or fragment. Authorities are
        // only looked for before `end`; the rest is redacted by its keys.
        let last_at = end_of_last_at(text);
        let mut end = location_end(text, 0);
        let head = authority_start(&text[..end]).map_or(text.len(), |(length, _)| length);
        let mut start = 0;
        // The first authority may follow the path of a directory to which the reference was joined: each of its
        // segments may begin an scp-like text with a login. The slashes at its end belong to the authority.
        let path = text[..head.min(end)].trim_end_matches(['/', '\\']);
        for (slash, _) in path.match_indices('/') {
            start = self.mask_userinfo(&text[..head], start, SchemeKind::Bare, last_at);
            self.push_location(&text[start..=slash]);
            start = slash + 1;
        }
        start = self.mask_userinfo(&text[..head], start, SchemeKind::Bare, last_at);
        // There may be several authorities, as in `git::https://…`, `'https://…` or `https://proxy/https://…`, and each
        // can hold a password. A userinfo may hold `?` or `#`, so the query can begin later than it seemed.
        let mut is_url = false;
        while let Some((length, kind)) = authority_start(&text[start..end]) {
            self.push_location(&text[start..start + length]);
            start = self.mask_userinfo(text, start + length, kind, last_at);
            if start > end {
                end = location_end(text, start);
            }
            is_url = true;
        }
        self.push_location(&text[start..end]);
        self.push_tail(&text[end..], is_url);
    }

    /// Adds the redacted form of a query and a fragment: both are redacted by keys and by tokens. `is_url` tells that
    /// an authority comes before them.
    fn push_tail(&mut self, tail: &str, is_url: bool) {
        let (query, fragment) = tail.split_once('#').unwrap_or((tail, ""));
        if let Some(query) = query.strip_prefix('?') {
            self.text.push('?');
            self.secret |= query::redact(query, &mut self.text);
        }
        // A URL is shown without its fragment, which no server gets. In a local path `#` is an ordinary character,
        // unless a secret comes before it: then it may be a part of the secret. A fragment with a secret always goes.
        let is_path = !is_url && !self.secret && tail.contains('#');
        let before = self.text.len();
        self.text.push('#');
        let secret = query::redact(fragment, &mut self.text);
        if secret || !is_path {
            self.text.truncate(before);
        }
        self.secret |= secret;
    }

    /// Adds the redacted form of the userinfo that begins at `start`, and returns the offset after it; `start` if there
    /// is none, or none that may hold a secret. `last_at` is the end of the last `@` in the text.
    fn mask_userinfo(&mut self, text: &str, start: usize, kind: SchemeKind, last_at: usize) -> usize {
        let end = userinfo_end(text, start, kind, last_at);
        if end == start {
            return start;
        }
        let userinfo = Userinfo::of(&text[start..end], kind);
        // Without a scheme and a secret this may be the name of a file, and with a digest that of an image:
        // `name:tag@sha256:…`. Nothing is added: the caller goes on with the text as a location.
        if kind == SchemeKind::Bare && (!userinfo.is_secret || is_digest(authority(&text[end..]))) {
            return start;
        }
        self.secret |= userinfo.is_secret;
        if userinfo.is_shown {
            self.text.push_str(userinfo.name);
            self.text.push_str(userinfo.end);
        }
        end
    }

    /// Adds a text that is neither a userinfo nor a query, without tokens.
    fn push_location(&mut self, text: &str) {
        self.secret |= hide_tokens(text, &mut self.text);
    }
}

/// Whether a text certainly has nothing to hide: no userinfo, fragment or encoded character, no token, no secret key.
fn has_nothing_to_hide(text: &str) -> bool {
    let query = text.split_once('?').map_or("", |(_, query)| query);
    text.bytes().all(|byte| byte.is_ascii_graphic() && !b"@#%+".contains(&byte))
        && !is_known_token(text)
        && !query::has_secret_key(query)
}

const ENCODED_AT: &str = "%40";

/// A login in a URL.
struct Userinfo<'a> {
    name: &'a str,
    /// The text between the name and the host, without the password.
    end: &'a str,
    is_secret: bool,
    /// Whether the name may be shown.
    is_shown: bool,
}

impl<'a> Userinfo<'a> {
    /// Reads a userinfo, which includes the `@` after it.
    fn of(text: &'a str, kind: SchemeKind) -> Self {
        let named = text.strip_suffix('@').unwrap_or(text);
        let named = named.strip_suffix(ENCODED_AT).unwrap_or(named);
        // The name ends at the first raw separator, or else at an encoded one.
        let colon = named.find([':', '@']).or(named.find("%3a")).or(named.find("%3A"));
        let name = &named[..colon.unwrap_or(named.len())];
        let end = if colon.is_some() { "@" } else { &text[name.len()..] };
        // A token is a secret even alone. A name alone gives no access except over http.
        let is_token = is_known_token(name) || (kind == SchemeKind::Url && is_token_by_length(name));
        let is_shown = kind != SchemeKind::Url && !is_token && is_plain_name(name);
        let is_secret = colon.is_some() || is_token || (kind != SchemeKind::Bare && !is_shown);
        Userinfo { name, end, is_secret, is_shown }
    }
}

/// The index after the userinfo that begins at `start`; `start` if there is none. It ends at the last `@` of the
/// authority. `last_at` is the end of the last `@` in the text.
fn userinfo_end(text: &str, start: usize, kind: SchemeKind, last_at: usize) -> usize {
    let authority = authority(&text[start..]);
    let at = end_of_last_at(authority);
    // If no host follows, this is the middle of a password that holds `/`, `?` or `#`.
    let is_cut = kind != SchemeKind::Bare && last_at > start + at && is_not_host(&authority[at..]);
    if is_cut { last_at } else { start + at }
}

/// The authority with which a text begins.
fn authority(text: &str) -> &str {
    &text[..text.find(['/', '?', '#']).unwrap_or(text.len())]
}

/// The index after the last `@`, which may be percent-encoded; 0 if there is none.
fn end_of_last_at(text: &str) -> usize {
    let plain = text.rfind('@').map_or(0, |at| at + 1);
    let encoded = text.rfind(ENCODED_AT).map_or(0, |at| at + ENCODED_AT.len());
    plain.max(encoded)
}

/// The index of the first query or fragment from `start` on; the length of the text if there is none.
fn location_end(text: &str, start: usize) -> usize {
    text[start..].find(['?', '#']).map_or(text.len(), |at| start + at)
}

/// The offset of the first authority of a text, where a login may begin, and the kind of the text before it: after
/// `scheme://`, after `//` at the front, and after `https:/`. `None` if it has no authority.
fn authority_start(text: &str) -> Option<(usize, SchemeKind)> {
    let slashes = leading_slashes(text);
    if slashes >= 2 {
        return Some((slashes, SchemeKind::Bare));
    }
    text.match_indices(':').find_map(|(colon, _)| {
        let before = &text[..colon];
        let before_scheme = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "+.-".contains(c));
        let scheme = before[before_scheme.len()..].to_ascii_lowercase();
        // Some clients also read `https:/` as the beginning of a URL.
        let needed = if matches!(scheme.as_str(), "http" | "https" | "ssh") { 1 } else { 2 };
        let count = leading_slashes(&text[colon + 1..]);
        let kind = match scheme.as_str() {
            "ssh" | "git+ssh" | "ssh+git" | "file" => SchemeKind::Named,
            _ => SchemeKind::Url,
        };
        (count >= needed).then_some((colon + 1 + count, kind))
    })
}

fn leading_slashes(text: &str) -> usize {
    text.len() - text.trim_start_matches(['/', '\\']).len()
}

/// Whether a text cannot be `host[:port]`: the host is empty, has a character that no host name has, or something else
/// than a port follows it. In doubt it is true, by which the callers hide or refuse more.
pub(crate) fn is_not_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        Some((address, "")) => (address, None),
        // git connects to the address, and drops whatever else follows it.
        Some((address, rest)) => (address, Some(rest.strip_prefix(':').unwrap_or(rest))),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    host.is_empty()
        || !host.chars().all(|c| c.is_alphanumeric() || "._-:%".contains(c))
        || port.is_some_and(|port| !port.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether a text after an `@` is the digest of an image, not a host.
fn is_digest(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Whether a user name is so long that it must be a token.
fn is_token_by_length(name: &str) -> bool {
    // No forge has such long names, and tokens without a known prefix are at least as long (old tokens of GitHub,
    // those of Azure DevOps).
    name.len() >= 40 && name.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// Whether a user name can be shown: it is short, and consists of letters, digits and `._-`.
fn is_plain_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

#[cfg(test)]
mod tests;
