//! The configuration from text.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::de::{Deserialize, Deserializer, Error as _};

use super::glob::{self, PathGlob};
use super::{Allow, Config, Named, RefPolicy, UrlGlob};
use crate::kustomization::format::{self, at_line};
use crate::kustomization::{Data, Value};
use crate::message::failure::{Failure, Result, shown};
use crate::message::finding::{Rule, Span};
use crate::os::limits::CONFIGURATION;
use crate::tree::path;

/// Keys that were, and what says the same now.
const FORMER: [(&str, &str); 6] = [
    ("comments", "remove it; to accept exceptions in the change that adds them: `rules: {new-exception: warning}`"),
    ("leave", "write an exception: `allow: [{url: URL, reason: WHY}]`"),
    ("leave-missing", "write an exception: `allow: [{path: GLOB, reason: WHY}]`"),
    ("locked", "write `rules: {locked-reference: error}`"),
    ("new-only", "remove it; what is new since a revision: git kustomize-localize check --base REV"),
    ("strict", "write `rules: {ID: error}`, or pass `--strict`"),
];

impl Config {
    /// Reads a configuration; `file` is how messages name it.
    ///
    /// A byte order mark, CRLF, comments and any style of YAML are accepted. A file without content is
    /// the default.
    ///
    /// With the first thing that is wrong, and its place: too many bytes, not UTF-8, not YAML,
    /// keys or rules that are not known, keys that are there twice, values of another type, globs that
    /// can match nothing, an entry of `allow` without a reason, anchors and aliases.
    pub fn parse(bytes: &[u8], file: &str) -> Result<Config> {
        let text = format::text(bytes, file, CONFIGURATION, "save the file as UTF-8")?;
        let lines: Vec<&str> = text.lines().collect();
        if let Some(index) = lines.iter().position(|line| line.starts_with("<<<<<<< ")) {
            return Err(Failure::new("holds a merge conflict").at(at_line(file, index + 1)));
        }
        let is_blank = |line: &&str| matches!(line.trim(), "" | "---") || line.trim().starts_with('#');
        let (mut config, mut root) = (Config::default(), Value::new((1, 1), Data::Null));
        if !lines.iter().all(is_blank) {
            (config, root) = format::parse(text, file).map_err(|failure: Failure| {
                let is_it = |(key, _): &&(&str, &str)| failure.message.starts_with(&format!("unknown field `{key}`"));
                let former = FORMER.iter().find(is_it);
                former.into_iter().fold(failure.clone(), |failure, (_, now)| failure.hint(*now))
            })?;
        }
        config.file = file.to_owned();
        let span = |(line, column): (usize, usize)| {
            let text = lines.get(line - 1).copied().unwrap_or_default();
            let end_column = text.trim_end().chars().count().max(column) + 1;
            (Span { line, column, end_line: line, end_column }, text.to_owned())
        };
        let places = |key: &str| format::places(&root, key);
        for (allow, place) in config.allow.iter_mut().zip(places("allow")) {
            (allow.span, allow.line_text) = span(place);
        }
        for (key, globs) in [("include", &mut config.include), ("exclude", &mut config.exclude)] {
            for (glob, place) in globs.iter_mut().zip(places(key)) {
                (glob.span, glob.line_text) = span(place);
            }
        }
        for (target, place) in config.targets.iter_mut().zip(places("targets")) {
            (target.line, target.column) = place;
        }
        Ok(config)
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rule, D::Error> {
        static IDS: LazyLock<Vec<&str>> = LazyLock::new(|| Rule::ALL.iter().map(|rule| rule.id()).collect());
        let id = String::deserialize(deserializer)?;
        Rule::from_id(&id).ok_or_else(|| D::Error::unknown_variant(&id, &IDS))
    }
}

/// The keys of an entry of `allow`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AllowKeys {
    url: Option<UrlGlob>,
    path: Option<PathGlob>,
    chart: Option<UrlGlob>,
    image: Option<UrlGlob>,
    program: Option<String>,
    #[serde(default)]
    refs: RefPolicy,
    rules: Option<BTreeSet<Rule>>,
    #[serde(deserialize_with = "words")]
    reason: String,
}

impl TryFrom<AllowKeys> for Allow {
    type Error = String;

    fn try_from(keys: AllowKeys) -> Result<Allow, String> {
        let program = keys.program.map(|text| {
            let glob = glob::compile(&text);
            glob.map_err(|why| format!("the glob `{}` {why}", shown(&text)))
        });
        let named = [
            keys.url.map(Named::Url),
            keys.path.map(|glob| Named::Path(glob.0)),
            keys.chart.map(Named::Chart),
            keys.image.map(Named::Image),
            program.transpose()?.map(Named::Program),
        ];
        let mut named = named.into_iter().flatten();
        let (Some(what), None) = (named.next(), named.next()) else {
            let reason = shown(&keys.reason);
            return Err(format!(
                "the entry because of `{reason}` must name exactly one of `url`, `path`, `chart`, `image`, `program`"
            ));
        };
        let rules = match keys.rules {
            None => Rule::ALL.iter().copied().filter(|rule| rule.is_allowed_by_default()).collect(),
            Some(rules) if rules.is_empty() => {
                return Err("`rules` names no rule\nleave it out for those that `allow` is about without it".to_owned());
            }
            Some(rules) => rules,
        };
        if let Some(rule) = rules.iter().find(|rule| !rule.can_be_allowed()) {
            return Err(format!("`{rule}` cannot be allowed"));
        }
        let (span, line_text) = Default::default();
        Ok(Allow { what, refs: keys.refs, reason: keys.reason, rules, span, line_text })
    }
}

/// Reads a text that says something, with one space between its words.
pub(super) fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.split_whitespace().collect::<Vec<_>>().join(" ") {
        words if words.is_empty() => Err(D::Error::custom("a string is empty")),
        words => Ok(words),
    }
}

/// Reads a directory of the repository.
pub(super) fn directory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let written = String::deserialize(deserializer)?;
    let resolved = path::resolve("", &written).filter(|_| !path::is_absolute(&written));
    let is_same = |path: &String| *path == written || path.is_empty() && written == ".";
    resolved.filter(is_same).ok_or_else(|| {
        D::Error::custom(format!(
            "`{}` is not a directory of the repository\nwrite directories from the top of the repository, for example `clusters/edge`; `.` for the top",
            shown(&written)
        ))
    })
}

/// Reads a size as git writes it: a number, and k, m or g for powers of 1024.
pub(super) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let (digits, shift) = match text.char_indices().next_back() {
        Some((end, 'k' | 'K')) => (&text[..end], 10),
        Some((end, 'm' | 'M')) => (&text[..end], 20),
        Some((end, 'g' | 'G')) => (&text[..end], 30),
        _ => (&*text, 0),
    };
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse::<u64>().ok().filter(|number| is_number && *number > 0);
    let size = number.and_then(|number| number.checked_mul(1 << shift));
    size.map(Some).ok_or_else(|| {
        let text = shown(&text);
        D::Error::custom(format!(
            "`{text}` is not a size\nwrite a number of bytes, or one with k, m or g, for example `64m`"
        ))
    })
}

/// Reads whether something is not so.
pub(super) fn not<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    bool::deserialize(deserializer).map(|flag| !flag)
}
