//! The type that kustomize gives to a scalar.

use super::{Document, NodeId, NodeKind, Style};

/// Whose rules for plain scalars hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kustomization) enum Dialect {
    /// The kustomization file: sigs.k8s.io/yaml, the rules of go-yaml 2 (`yes` is a boolean).
    Kustomization,
    /// Kubernetes objects and plugin configurations: kyaml, the rules of go-yaml 3 (`yes` is a string; merge keys are
    /// refused before).
    Objects,
}

/// The type of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kustomization) enum Type {
    Null,
    /// A boolean, with its value.
    Bool(bool),
    /// An integer, as Go's `json` sees it.
    Integer,
    /// Any other number.
    Float,
    Text,
    /// Written as base64 with the tag `!!binary`.
    Binary,
    /// The tag does not fit the value; kustomize refuses the file.
    Invalid,
}

impl Document {
    /// Returns the type of a scalar, through an alias; `None` for a collection.
    pub(crate) fn scalar_type(&self, id: NodeId, dialect: Dialect) -> Option<Type> {
        let node = self.resolved(id);
        let NodeKind::Scalar { value, style } = &node.kind else {
            return None;
        };
        let tag = match node.tag.as_deref() {
            None if *style == Style::Plain => return Some(plain_type(value, dialect)),
            None => return Some(Type::Text),
            Some(tag) => tag.strip_prefix("tag:yaml.org,2002:"),
        };
        let found = plain_type(value, dialect);
        let when = |fits: bool, then: Type| if fits { then } else { Type::Invalid };
        Some(match tag {
            Some("null") => when(found == Type::Null, Type::Null),
            Some("bool") => when(matches!(found, Type::Bool(_)), found),
            Some("int") => when(found == Type::Integer, Type::Integer),
            Some("float") => when(matches!(found, Type::Integer | Type::Float), Type::Float),
            Some("binary") => Type::Binary,
            _ => Type::Text,
        })
    }

    /// Whether a key is the merge key `<<`.
    pub(crate) fn is_merge_key(&self, id: NodeId) -> bool {
        let node = self.resolved(id);
        match (&node.kind, node.tag.as_deref()) {
            (NodeKind::Scalar { value, style }, None) => value == "<<" && *style == Style::Plain,
            (NodeKind::Scalar { value, .. }, Some("tag:yaml.org,2002:merge")) => value == "<<",
            _ => false,
        }
    }
}

/// Returns the type of a plain scalar without a tag (go-yaml `resolve.go`, measured on some 150 words).
pub(in crate::kustomization) fn plain_type(value: &str, dialect: Dialect) -> Type {
    match value {
        "" | "~" | "null" | "Null" | "NULL" => return Type::Null,
        "true" | "True" | "TRUE" => return Type::Bool(true),
        "false" | "False" | "FALSE" => return Type::Bool(false),
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON"
            if dialect == Dialect::Kustomization =>
        {
            return Type::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF"
            if dialect == Dialect::Kustomization =>
        {
            return Type::Bool(false);
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF"
        | ".nan" | ".NaN" | ".NAN" => return Type::Float,
        _ => {}
    }
    if value.starts_with('.') {
        return if is_float(value) {
            Type::Float
        } else {
            Type::Text
        };
    }
    if !value.starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == '-') {
        return Type::Text;
    }
    let digits = value.replace('_', "");
    if is_integer(&digits) {
        Type::Integer
    } else if is_float(&digits) {
        Type::Float
    } else {
        Type::Text
    }
}

/// Go's `ParseInt(s, 0, 64)` or `ParseUint(s, 0, 64)`.
fn is_integer(text: &str) -> bool {
    let (sign, unsigned) = match text.as_bytes().first() {
        Some(b'-') => ("-", &text[1..]),
        Some(b'+') => ("", &text[1..]),
        _ => ("", text),
    };
    let lower = unsigned.to_ascii_lowercase();
    let (radix, digits) = if let Some(digits) = lower.strip_prefix("0x") {
        (16, digits)
    } else if let Some(digits) = lower.strip_prefix("0b") {
        (2, digits)
    } else if let Some(digits) = lower.strip_prefix("0o") {
        (8, digits)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, &lower[1..])
    } else {
        (10, lower.as_str())
    };
    // `from_str_radix` would take a second sign.
    digits.chars().all(|c| c.is_digit(radix))
        && (i64::from_str_radix(&format!("{sign}{digits}"), radix).is_ok()
            || sign.is_empty()
                && !text.starts_with('+')
                && u64::from_str_radix(digits, radix).is_ok())
}

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`, and within the range of a double.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = if whole.is_empty() {
        !fraction.is_empty()
    } else {
        true
    };
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    has_digits
        && all_digits(whole)
        && all_digits(fraction)
        && exponent_fits
        && text.parse::<f64>().is_ok_and(f64::is_finite)
}

#[cfg(test)]
mod tests {
    use super::{Dialect, Type, plain_type};

    /// The output of kustomize 5.8.1 for `namePrefix: WORD`.
    #[test]
    fn plain_words_have_the_types_that_kustomize_gives_them() {
        let (yes, no) = (
            "yes Yes YES y Y on On ON true True TRUE",
            "n N no No NO off Off OFF false False FALSE",
        );
        let numbers = "1 01 010 0o10 0x1F 0X1F 0b101 0B1 1_000 1_ 1__0 +1 -1 .5 5. 1.5 1e3 1e+3 1E3 1.e3 \
            1_0.5 08 09 -0x1 +0x1 -0b1 -0o7 123456789012345678901234567890 18446744073709551615 \
            18446744073709551616 -9223372036854775809 0777 0_7 +0o7 -010 0x_1 0b_1 0_ 1e1_0 1e-5 +1.5 -.5 -1e3";
        let texts = "yEs tRue nUll << = _1 + . .e3 1e 0x 0xg 0b2 0o8 0o0x1 1:30 190:20:30 1:30.5 12:60 inf nan \
            +.nan 2020-01-01 2020-1-1 2001-12-14t21:59:43.10-05:00 1,000 1e400 0x1p3 1e3e ._5 .1_ 1.2.3 1.0.0 v1 \
            1a 1/2 Infinity NaN TRue 0xFFFFFFFFFFFFFFFFF 0b";
        let type_of = |word| plain_type(word, Dialect::Kustomization);
        for (words, value) in [(yes, true), (no, false)] {
            for word in words.split_whitespace() {
                assert_eq!(type_of(word), Type::Bool(value), "{word}");
            }
        }
        for word in numbers.split_whitespace() {
            let number = matches!(type_of(word), Type::Integer | Type::Float);
            assert!(number, "{word}: {:?}", type_of(word));
        }
        for word in texts.split_whitespace() {
            assert_eq!(type_of(word), Type::Text, "{word}");
        }
        for word in ["", "~", "null", "Null", "NULL"] {
            assert_eq!(type_of(word), Type::Null, "{word}");
        }
    }

    #[test]
    fn objects_know_fewer_booleans() {
        assert_eq!(plain_type("yes", Dialect::Objects), Type::Text);
        assert_eq!(plain_type("true", Dialect::Objects), Type::Bool(true));
        assert_eq!(plain_type("0777", Dialect::Objects), Type::Integer);
    }
}
