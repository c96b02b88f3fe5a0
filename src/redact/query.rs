//! Which values of a query may be shown.

use percent_encoding::percent_decode_str;

use super::HIDDEN;
use super::token::is_credential;

/// Keys whose values are shown even when they look like a token: versions are often commit ids.
const SHOWN_KEYS: [&str; 10] = [
    "ref",
    "version",
    "timeout",
    "submodules",
    "at",
    "path",
    "commit",
    "sha",
    "rev",
    "versiondescriptor.version",
];

/// Keys that are secret as a whole: of signed URLs (Azure SAS, CloudFront, S3), and usual short names.
const SECRET_KEYS: [&str; 37] = [
    "key",
    "sig",
    "se",
    "sp",
    "sv",
    "sr",
    "st",
    "ss",
    "srt",
    "sip",
    "spr",
    "ske",
    "skoid",
    "sks",
    "skt",
    "sktid",
    "skv",
    "saoid",
    "scid",
    "sdd",
    "suoid",
    "sas",
    "code",
    "expires",
    "policy",
    "key-pair-id",
    "googleaccessid",
    "pat",
    "pw",
    "pass",
    "otp",
    "sid",
    "state",
    "nonce",
    "ticket",
    "hash",
    "login",
];

/// Parts that make any key secret.
const SECRET_PARTS: [&str; 22] = [
    "token",
    "secret",
    "passw",
    "passphrase",
    "passcode",
    "pwd",
    "credential",
    "signature",
    "apikey",
    "api_key",
    "api-key",
    "accesskey",
    "access_key",
    "access-key",
    "private",
    "auth",
    "jwt",
    "session",
    "cookie",
    "bearer",
    "hmac",
    "crumb",
];

/// Beginnings of the keys of signed URLs.
const SECRET_PREFIXES: [&str; 5] = ["x-amz-", "x-goog-", "x-ms-", "x-oss-", "x-cos-"];

/// Adds a query, given without its `?`, to `shown` with its secrets hidden; returns whether there were any.
pub(super) fn redact(query: &str, shown: &mut String) -> bool {
    let mut secret = false;
    for piece in query.split_inclusive(['&', ';']) {
        let pair = piece.trim_end_matches(['&', ';']);
        let (key, value) = match pair.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (pair, None),
        };
        let name = decode(key).to_ascii_lowercase();
        // A key can be the secret itself: `?ghp_…`.
        let hide_key = is_secret_value(key);
        shown.push_str(if hide_key { HIDDEN } else { key });
        secret |= hide_key;
        if let Some(value) = value {
            shown.push('=');
            let hide = !value.is_empty() && is_secret_pair(&name, value);
            shown.push_str(if hide { HIDDEN } else { value });
            secret |= hide;
        }
        shown.push_str(&piece[pair.len()..]);
    }
    secret
}

fn is_secret_pair(key: &str, value: &str) -> bool {
    if SHOWN_KEYS.contains(&key) {
        let value = decode(value);
        return super::is_known_token(&value) || holds_userinfo(&value);
    }
    SECRET_KEYS.contains(&key)
        || SECRET_PARTS.iter().any(|part| key.contains(part))
        || SECRET_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
        || is_secret_value(value)
}

fn is_secret_value(value: &str) -> bool {
    let value = decode(value);
    is_credential(&value) || holds_userinfo(&value)
}

/// Returns whether a value may itself hold a URL or an scp-like text with a password.
fn holds_userinfo(value: &str) -> bool {
    let before = value.rsplit_once('@').map(|(before, _)| before);
    before.is_some_and(|before| before.contains(':'))
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
