//! Go's `path.Match`: `*` and `?` within one name, `[a-z]`, `\` before what stands for itself; no `**`.

/// A pattern for the whole of a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::targets) struct Pattern(Vec<Token>);

impl Pattern {
    /// Reads a pattern; none where it is broken.
    pub(in crate::targets) fn new(pattern: &str) -> Option<Pattern> {
        tokens(pattern).map(Pattern)
    }

    /// Returns whether it matches all of the name.
    pub(in crate::targets) fn matches(&self, name: &str) -> bool {
        let (mut tokens, mut rest) = (self.0.as_slice(), name);
        // What stands behind the last `*`, and what that has left over.
        let mut again: Option<(&[Token], &str)> = None;
        loop {
            if let Some(Token::Any) = tokens.first() {
                tokens = &tokens[1..];
                again = Some((tokens, rest));
                continue;
            }
            match (tokens.first(), first(rest)) {
                (None, None) => return true,
                (Some(token), Some((character, after))) if token.takes(character) => {
                    tokens = &tokens[1..];
                    rest = after;
                }
                _ => match again.map(|(behind, left)| (behind, first(left))) {
                    Some((behind, Some((character, left)))) if character != '/' => {
                        again = Some((behind, left));
                        tokens = behind;
                        rest = left;
                    }
                    _ => return false,
                },
            }
        }
    }
}

/// Returns the first character, and the rest.
fn first(text: &str) -> Option<(char, &str)> {
    let mut rest = text.chars();
    let first = rest.next()?;
    Some((first, rest.as_str()))
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

impl Token {
    /// Returns whether it takes this one character.
    fn takes(&self, character: char) -> bool {
        match self {
            Token::Any => false,
            Token::One => character != '/',
            Token::Is(wanted) => *wanted == character,
            Token::Class { ranges, negated } => {
                let is_in = |(low, high): &(char, char)| (*low..=*high).contains(&character);
                ranges.iter().any(is_in) != *negated && character != '/'
            }
        }
    }
}

fn tokens(pattern: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = pattern.chars().peekable();
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
    use super::Pattern;

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
            let found = Pattern::new(pattern).map(|pattern| pattern.matches(name));
            assert_eq!(found, expected, "{pattern} {name}");
        }
    }
}
