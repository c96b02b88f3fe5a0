//! Reads the configuration from text.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, IntoDeserializer as _, Visitor};

use super::{Allow, Config, RefPolicy, RuleKey, allow, glob};
use crate::kustomization::{Value, format};
use crate::message::failure::{Failure, Result, shown};
use crate::message::finding::Rule;
use crate::message::position::{Position, Span};
use crate::message::redact;
use crate::os::limits::CONFIGURATION;

impl Config {
    /// Reads a configuration; `file` is how messages name it.
    ///
    /// A byte order mark, CRLF, comments and any style of YAML are accepted. A file without content is
    /// the default.
    ///
    /// Fails with the first error and its location: too many bytes, not UTF-8, not YAML, unknown keys or rules,
    /// repeated keys, values of a wrong type, globs that can match nothing, an entry of `allow` without a reason,
    /// anchors and aliases.
    pub fn parse(bytes: &[u8], file: &str) -> Result<Config> {
        let text = format::text(bytes, file, CONFIGURATION)?;
        let (mut config, root): (Config, _) = format::parse(text, file).map_err(with_example)?;
        config.file = file.to_owned();
        // `serde` does not know positions, so those of the entries are added from the YAML values.
        let lines: Vec<&str> = text.lines().collect();
        config.allow.set_spans(spans(&root, "allow", &lines));
        config.include.set_spans(spans(&root, "include", &lines));
        config.exclude.set_spans(spans(&root, "exclude", &lines));
        for (target, position) in config.targets.iter_mut().zip(format::positions(&root, "targets")) {
            target.position = position;
        }
        Ok(config)
    }
}

/// The keys whose values people write in a wrong form, each with a value that is read.
pub(super) const EXAMPLES: [(&str, &str); 5] = [
    ("allow", "[{url: github.com/acme, refs: tag, reason: our own bases}]"),
    ("repository", "[{url: 'oci://ghcr.io/acme/manifests'}]"),
    ("rules", "{floating-ref: error}"),
    ("sources", "[{url: github.com/acme, min-age: 7d}]"),
    ("targets", "[{path: clusters/edge, engine: argo-cd}]"),
];

/// The failure of a value of a wrong type, with the whole form of its key.
fn with_example(failure: Failure) -> Failure {
    let (key, problem) = failure.message.split_once(": ").unwrap_or_default();
    let key = key.split('[').next().unwrap_or_default();
    // The error of `serde` names one level only.
    let named = EXAMPLES.iter().find(|(known, _)| *known == key && problem.starts_with("expected "));
    let example = named.map(|(key, example)| format!("for example: {key}: {example}"));
    example.into_iter().fold(failure, Failure::hint)
}

/// The spans of the items of a list, each from its start to the end of its line.
fn spans(root: &Value, key: &str, lines: &[&str]) -> impl Iterator<Item = Span> {
    format::positions(root, key).into_iter().map(|start| {
        let text = lines.get(start.line - 1).copied().unwrap_or_default();
        // YAML values have only their start.
        let end_column = text.trim_end().chars().count().max(start.column) + 1;
        Span { start, end: Position { column: end_column, ..start } }
    })
}

impl<'de> Deserialize<'de> for RuleKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RuleKey, D::Error> {
        match String::deserialize(deserializer)? {
            key if key == "*" => Ok(RuleKey(None)),
            key => match Rule::deserialize(key.into_deserializer())? {
                rule if rule.is_always_an_error() => Err(D::Error::custom(format!("`{rule}` is always an error"))),
                rule => Ok(RuleKey(Some(rule))),
            },
        }
    }
}

/// The keys of an entry of `allow`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AllowKeys {
    url: Option<String>,
    path: Option<String>,
    chart: Option<String>,
    image: Option<String>,
    program: Option<String>,
    refs: Option<RefPolicy>,
    rules: Option<BTreeSet<Rule>>,
    #[serde(deserialize_with = "words")]
    reason: String,
}

impl TryFrom<AllowKeys> for Allow {
    type Error = String;

    fn try_from(keys: AllowKeys) -> Result<Allow, String> {
        let named = [
            ("url", keys.url),
            ("path", keys.path),
            ("chart", keys.chart),
            ("image", keys.image),
            ("program", keys.program),
        ];
        let mut named = named.into_iter().filter_map(|(key, text)| Some((key, text?)));
        // With two keys it would be open whether both must match, or either.
        let (Some((key, text)), None) = (named.next(), named.next()) else {
            let reason = shown(&keys.reason);
            return Err(format!(
                "the entry with the reason `{reason}` must have exactly one of `url`, `path`, `chart`, `image`, `program`"
            ));
        };
        // Redacted, because the text and the error may contain a URL with a password.
        let matcher = allow::compile(key, &text, keys.refs)
            .map_err(|why| format!("the entry for `{}` {}", shown(&redact::url(&text)), redact::text(&why)))?;
        let rules = match keys.rules {
            None => Rule::ALL.iter().copied().filter(|rule| rule.is_allowed_by_default()).collect(),
            Some(rules) if rules.is_empty() => {
                return Err("`rules` is empty\nremove it to allow the default rules".to_owned());
            }
            Some(rules) => rules,
        };
        // Refused, because an exception that never applies would look as if it did.
        if let Some(rule) = rules.iter().find(|rule| !rule.can_be_allowed()) {
            return Err(format!("`{rule}` cannot be allowed"));
        }
        Ok(Allow { key, text, matcher, refs: keys.refs, reason: keys.reason, rules, span: Span::default() })
    }
}

/// Reads a scalar with a function. The YAML reader adds the key and the position to its error, but not to an error that
/// is made after the scalar was read.
struct Parser<F>(F);

impl<T, F: FnOnce(&str) -> Result<T, String>> Visitor<'_> for Parser<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(E::custom)
    }
}

/// Reads a text that is not empty, and puts one space between its words.
pub(super) fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    deserializer.deserialize_str(Parser(|text: &str| {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.is_empty() { Err("a string is empty".to_owned()) } else { Ok(words) }
    }))
}

/// Reads a directory of the repository. `.` is the top, which is empty in paths.
pub(super) fn directory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    deserializer.deserialize_str(Parser(|text: &str| match text {
        "." => Ok(String::new()),
        // Escaped, it matches only itself: a directory may not contain `..` or empty names either.
        _ => glob::from_top(&globset::escape(text)).map(|_| text.to_owned()).map_err(|why| {
            format!("the path `{}` {why}\nwrite a directory from the top of the repository", shown(text))
        }),
    }))
}

/// Reads a size as git writes it: a number, and k, m or g for powers of 1024. Never `None`, which is the default of the
/// key.
pub(super) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    deserializer.deserialize_str(Parser(|text: &str| {
        let (digits, unit) = text.split_at(text.trim_end_matches(char::is_alphabetic).len());
        let shift = ["", "k", "m", "g"].iter().position(|known| known.eq_ignore_ascii_case(unit));
        let number = digits.parse::<u64>().ok().filter(|number| *number > 0);
        let size = number.zip(shift).and_then(|(number, shift)| number.checked_mul(1 << (10 * shift)));
        size.map(Some).ok_or_else(|| {
            let text = shown(text);
            format!("`{text}` is not a size\nwrite a number of bytes, or one with k, m or g, for example `64m`")
        })
    }))
}

/// Reads a duration: a number, and s, m, h or d. Never `None`, which is the default of the key.
pub(super) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    deserializer.deserialize_str(Parser(|text: &str| {
        let units = [('s', 1), ('m', 60), ('h', 60 * 60), ('d', 24 * 60 * 60)];
        let seconds = units.into_iter().find_map(|(unit, factor)| {
            let number = text.strip_suffix(unit)?.parse::<u64>().ok()?;
            number.checked_mul(factor).filter(|seconds| *seconds > 0)
        });
        seconds.map(|seconds| Some(Duration::from_secs(seconds))).ok_or_else(|| {
            let text = shown(text);
            format!("`{text}` is not a duration\nwrite a number with s, m, h or d, for example `90s`")
        })
    }))
}

/// Reads a version, or its first numbers: `5.8` accepts every patch release. Never `None`, which is the default of the
/// key.
pub(super) fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserializer.deserialize_str(Parser(|text: &str| {
        let numbers = text.strip_prefix('v').unwrap_or(text);
        if numbers.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())) {
            return Ok(Some(numbers.to_owned()));
        }
        let text = shown(text);
        Err(format!("`{text}` is not a version\nwrite its numbers, or the first of them, for example `5.8`"))
    }))
}

/// Reads a boolean and negates it.
pub(super) fn not<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    bool::deserialize(deserializer).map(|flag| !flag)
}
