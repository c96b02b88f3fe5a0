//! Which values of a query may be shown.

use percent_encoding::percent_decode_str;

use super::HIDDEN;
use super::token::is_known_token;

/// Keys that are secret as a whole: of signed URLs (Azure, CloudFront, Google), and usual short names.
#[rustfmt::skip]
const SECRET_KEYS: [&str; 31] = [
    "sig", "se", "sp", "sv", "sr", "st", "ss", "srt", "sip", "spr", "ske", "skoid", "sks", "skt",
    "sktid", "skv", "saoid", "scid", "sdd", "suoid", "sas", "code", "expires", "policy", "key-pair-id",
    "googleaccessid", "pat", "pw", "pass", "otp", "sid",
];

/// Parts that make any key secret.
#[rustfmt::skip]
const SECRET_PARTS: [&str; 20] = [
    "token", "secret", "passw", "passphrase", "pwd", "credential", "signature", "accesskey", "access_key", "access-key", "private", "auth", "jwt", "session", "cookie",
    "bearer", "hmac", "apikey", "api_key", "api-key",
];

/// Beginnings of the keys of signed URLs.
const SECRET_PREFIXES: [&str; 5] = ["x-amz-", "x-goog-", "x-ms-", "x-oss-", "x-cos-"];

/// Adds a query, given without its `?`, to `shown` with its secrets hidden; returns whether there were any.
pub(super) fn redact(query: &str, shown: &mut String) -> bool {
    // A password may hold what separates the pairs.
    let all = holds_url_with_password(&decode(query));
    let mut secret = false;
    let mut hide = |text: &str, hide: bool| {
        let hide = hide && !matches!(text, "" | HIDDEN);
        shown.push_str(if hide { HIDDEN } else { text });
        secret |= hide;
    };
    for piece in query.split_inclusive(['&', ';']) {
        let pair = piece.trim_end_matches(['&', ';']);
        match pair.split_once('=') {
            Some((key, value)) => {
                hide(key, is_secret_value(key));
                hide("=", false);
                hide(value, all || is_secret_pair(key, value));
            }
            // The key can be the secret itself: `?ghp_…`.
            None => hide(pair, all || is_secret_value(pair)),
        }
        hide(&piece[pair.len()..], false);
    }
    secret
}

fn is_secret_pair(key: &str, value: &str) -> bool {
    let key = decode(key).to_ascii_lowercase();
    SECRET_KEYS.contains(&key.as_str())
        || key.ends_with("key")
        || SECRET_PARTS.iter().any(|part| key.contains(part))
        || SECRET_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
        || is_secret_value(value)
}

fn is_secret_value(value: &str) -> bool {
    let value = decode(value);
    is_known_token(&value) || holds_userinfo(&value)
}

/// Returns whether a value may itself hold a URL or an scp-like text with a password. A commit after the last `@` is no
/// host.
fn holds_userinfo(value: &str) -> bool {
    let value = match value.rsplit_once('@') {
        Some((before, id)) if matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => before,
        _ => value,
    };
    let before = value.rsplit_once('@').map(|(before, _)| before);
    before.is_some_and(|before| before.contains(':'))
}

/// Returns whether a text holds `scheme://user:password@`.
fn holds_url_with_password(text: &str) -> bool {
    let mut authorities = text.split("://").skip(1);
    authorities.any(|rest| holds_userinfo(rest.split('/').next().unwrap_or_default()))
}

/// Decodes until nothing changes, for a redirect may have encoded a URL in a URL; four times at most.
fn decode(text: &str) -> String {
    let mut text = text.replace('+', " ");
    for _ in 0..4 {
        let decoded = percent_decode_str(&text).decode_utf8_lossy().into_owned();
        if decoded == text {
            break;
        }
        text = decoded;
    }
    text
}
