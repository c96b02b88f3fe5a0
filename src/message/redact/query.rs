//! Hides the secrets in a query.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::HIDDEN;
use super::token::is_known_token;

/// Whole keys whose values are secret: of signed URLs (Azure, CloudFront, Google), and usual short names.
#[rustfmt::skip]
const SECRET_KEYS: [&str; 31] = [
    "sig", "se", "sp", "sv", "sr", "st", "ss", "srt", "sip", "spr", "ske", "skoid", "sks", "skt",
    "sktid", "skv", "saoid", "scid", "sdd", "suoid", "sas", "code", "expires", "policy", "key-pair-id",
    "googleaccessid", "pat", "pw", "pass", "otp", "sid",
];

/// Parts of a key that make its value secret.
#[rustfmt::skip]
const SECRET_PARTS: [&str; 20] = [
    "token", "secret", "passw", "passphrase", "pwd", "credential", "signature", "accesskey", "access_key", "access-key", "private", "auth", "jwt", "session", "cookie",
    "bearer", "hmac", "apikey", "api_key", "api-key",
];

/// Prefixes of the keys of signed URLs.
const SECRET_PREFIXES: [&str; 5] = ["x-amz-", "x-goog-", "x-ms-", "x-oss-", "x-cos-"];

/// Adds a query, given without its `?`, to `shown` with its secrets hidden; returns whether it had any.
pub(super) fn redact(query: &str, shown: &mut String) -> bool {
    // A password may hold the separators of the pairs, so that every value may be a part of it.
    let has_password = holds_url_with_password(&decode(query));
    let mut secret = false;
    for piece in query.split_inclusive(['&', ';']) {
        let pair = piece.trim_end_matches(['&', ';']);
        if let Some((key, value)) = pair.split_once('=') {
            secret |= push(shown, key, is_secret_value(key));
            shown.push('=');
            secret |= push(shown, value, has_password || is_secret_pair(key, value));
        } else {
            // The key can be the secret itself: `?ghp_…`.
            secret |= push(shown, pair, has_password || is_secret_value(pair));
        }
        shown.push_str(&piece[pair.len()..]);
    }
    secret
}

/// Adds a text to `shown`, or a placeholder if it is secret; returns whether it was hidden.
fn push(shown: &mut String, text: &str, is_secret: bool) -> bool {
    let hide = is_secret && !matches!(text, "" | HIDDEN);
    shown.push_str(if hide { HIDDEN } else { text });
    hide
}

/// Whether a key of a query, given without its `?`, says that its value is secret.
pub(super) fn has_secret_key(query: &str) -> bool {
    query.split(['&', ';']).any(|pair| is_secret_key(pair.split_once('=').map_or(pair, |(key, _)| key)))
}

fn is_secret_pair(key: &str, value: &str) -> bool {
    is_secret_key(key) || is_secret_value(value)
}

/// Whether a key says that its value is secret.
fn is_secret_key(key: &str) -> bool {
    let key = decode(key).to_ascii_lowercase();
    SECRET_KEYS.contains(&key.as_str())
        || key.ends_with("key")
        || SECRET_PARTS.iter().any(|part| key.contains(part))
        || SECRET_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

/// Whether a value shows by itself that it is secret: by a token, or a login in a URL.
fn is_secret_value(value: &str) -> bool {
    let value = decode(value);
    is_known_token(&value) || holds_userinfo(&value)
}

/// Whether a value may itself hold a URL or an scp-like text with a password.
fn holds_userinfo(value: &str) -> bool {
    // A commit id after the last `@` is not a host.
    let value = match value.rsplit_once('@') {
        Some((before, id)) if matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => before,
        _ => value,
    };
    let before = value.rsplit_once('@').map(|(before, _)| before);
    before.is_some_and(|before| before.contains(':'))
}

/// Whether a text holds `scheme://user:password@`.
fn holds_url_with_password(text: &str) -> bool {
    let mut authorities = text.split("://").skip(1);
    authorities.any(|rest| holds_userinfo(rest.split('/').next().unwrap_or_default()))
}

/// Decodes percent-encoding until nothing changes, four times at most: a redirect may have a URL in a URL.
fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    // A form encodes blanks as `+`.
    let mut text = text.replace('+', " ");
    for _ in 0..4 {
        let decoded = percent_decode_str(&text).decode_utf8_lossy().into_owned();
        if decoded == text {
            break;
        }
        text = decoded;
    }
    Cow::Owned(text)
}
