//! Go's `path.Match`: `*` and `?` within one name, `[a-z]`, `\` before what stands for itself; no `**`.

/// Returns whether the pattern matches all of the name; none where the pattern is broken.
#[must_use]
pub(in crate::targets) fn matches(pattern: &str, name: &str) -> Option<bool> {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let tokens = tokens(&pattern)?;
    let (mut token, mut at) = (0, 0);
    // The last `*`, and what it has taken.
    let mut again: Option<(usize, usize)> = None;
    loop {
        let next = name.get(at).copied();
        match (tokens.get(token), next) {
            (None, None) => return Some(true),
            (Some(Token::Any), _) => {
                again = Some((token + 1, at));
                token += 1;
                continue;
            }
            (Some(Token::One), Some(next)) if next != '/' => {
                token += 1;
                at += 1;
                continue;
            }
            (Some(Token::Is(wanted)), Some(next)) if *wanted == next => {
                token += 1;
                at += 1;
                continue;
            }
            (Some(Token::Class { ranges, negated }), Some(next)) => {
                let is_in = ranges
                    .iter()
                    .any(|(low, high)| (*low..=*high).contains(&next));
                if is_in != *negated && next != '/' {
                    token += 1;
                    at += 1;
                    continue;
                }
            }
            _ => {}
        }
        match again {
            Some((after, taken)) if name.get(taken).is_some_and(|taken| *taken != '/') => {
                again = Some((after, taken + 1));
                token = after;
                at = taken + 1;
            }
            _ => return Some(false),
        }
    }
}

enum Token {
    /// `*`
    Any,
    /// `?`
    One,
    Is(char),
    Class {
        ranges: Vec<(char, char)>,
        negated: bool,
    },
}

fn tokens(pattern: &[char]) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = pattern.iter().copied().peekable();
    while let Some(character) = rest.next() {
        tokens.push(match character {
            '*' => Token::Any,
            '?' => Token::One,
            '\\' => Token::Is(rest.next()?),
            '[' => {
                let negated = rest.next_if_eq(&'^').is_some();
                let mut ranges = Vec::new();
                loop {
                    let mut one = || match rest.next()? {
                        '\\' => rest.next(),
                        '-' | ']' => None,
                        other => Some(other),
                    };
                    let low = one()?;
                    let high = if rest.next_if_eq(&'-').is_some() {
                        match rest.next()? {
                            '\\' => rest.next()?,
                            '-' | ']' => return None,
                            other => other,
                        }
                    } else {
                        low
                    };
                    ranges.push((low, high));
                    if rest.next_if_eq(&']').is_some() {
                        break;
                    }
                }
                Token::Class { ranges, negated }
            }
            other => Token::Is(other),
        });
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_go() {
        // From Go's own `path/match_test.go`.
        for (pattern, name, expected) in [
            ("abc", "abc", Some(true)),
            ("*", "abc", Some(true)),
            ("*c", "abc", Some(true)),
            ("a*", "a", Some(true)),
            ("a*", "abc", Some(true)),
            ("a*", "ab/c", Some(false)),
            ("a*/b", "abc/b", Some(true)),
            ("a*/b", "a/c/b", Some(false)),
            ("a*b*c*d*e*/f", "axbxcxdxe/f", Some(true)),
            ("a*b*c*d*e*/f", "axbxcxdxexxx/f", Some(true)),
            ("a*b*c*d*e*/f", "axbxcxdxe/xxx/f", Some(false)),
            ("a*b?c*x", "abxbbxdbxebxczzx", Some(true)),
            ("a*b?c*x", "abxbbxdbxebxczzy", Some(false)),
            ("ab[c]", "abc", Some(true)),
            ("ab[b-d]", "abc", Some(true)),
            ("ab[e-g]", "abc", Some(false)),
            ("ab[^c]", "abc", Some(false)),
            ("ab[^e-g]", "abc", Some(true)),
            ("a\\*b", "a*b", Some(true)),
            ("a\\*b", "ab", Some(false)),
            ("a?b", "a☺b", Some(true)),
            ("a[^a]b", "a☺b", Some(true)),
            ("a???b", "a☺b", Some(false)),
            ("[a-ζ]*", "α", Some(true)),
            ("*[a-ζ]", "A", Some(false)),
            ("a?b", "a/b", Some(false)),
            ("a*b", "a/b", Some(false)),
            ("[\\]a]", "]", Some(true)),
            ("[\\-x]", "-", Some(true)),
            ("[x\\-]", "z", Some(false)),
            ("[]a]", "]", None),
            ("[-]", "-", None),
            ("[x-]", "x", None),
            ("[a-b-c]", "a", None),
            ("[", "a", None),
            ("[^bc", "a", None),
            ("a[", "ab", None),
            ("*x", "xxx", Some(true)),
            ("apps/*/*", "apps/web/localized-files", Some(true)),
            ("apps/**", "apps/web/x", Some(false)),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
