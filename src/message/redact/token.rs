//! Recognizes the tokens of well-known services.

use super::HIDDEN;

/// The prefixes of the tokens of forges (GitHub, GitLab, Atlassian) and Docker Hub, and of any JWT.
#[rustfmt::skip]
const PREFIXES: [&str; 16] = [
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-", "glptt-", "gloas-",
    "ATBB", "ATATT3x", "ATCTT3x", "dckr_pat_", "eyJ",
];

/// The least number of characters after the prefix of a token.
const AFTER_PREFIX: usize = 16;

/// The length of the shortest token, with its prefix.
pub(super) const SHORTEST: usize = AFTER_PREFIX + 3;

/// Whether a text holds a token with a known prefix, at the front or after a character that is neither
/// a letter nor a digit: at least 16 more characters follow, a digit among them.
pub(super) fn is_known_token(text: &str) -> bool {
    // The last digit is looked for once, because each prefix needs a digit after it.
    let (bytes, digit) = (text.as_bytes(), text.rfind(|c: char| c.is_ascii_digit()));
    (0..text.len().saturating_sub(SHORTEST - 1)).any(|at| {
        let is_start = at.checked_sub(1).is_none_or(|before| !bytes[before].is_ascii_alphanumeric());
        is_start
            && PREFIXES.iter().any(|prefix| {
                let end = at + prefix.len();
                bytes[at..].starts_with(prefix.as_bytes()) && bytes.len() >= end + AFTER_PREFIX && digit >= Some(end)
            })
    })
}

/// Adds a text to `shown` with its tokens hidden; returns whether it had any.
pub(super) fn hide_tokens(text: &str, shown: &mut String) -> bool {
    // A token ends at any character that no token has, so that the rest of a text stays.
    let mut secret = false;
    for piece in text.split_inclusive(ends_token) {
        let word = piece.trim_end_matches(ends_token);
        let hide = is_known_token(word);
        shown.push_str(if hide { HIDDEN } else { word });
        shown.push_str(&piece[word.len()..]);
        secret |= hide;
    }
    secret
}

/// Whether a character cannot be part of a token.
fn ends_token(c: char) -> bool {
    !(c.is_ascii_alphanumeric() || "_-.".contains(c))
}
