//! The configuration from text.

use std::collections::BTreeSet;

use globset::GlobMatcher;

use super::allow::from_top;
use super::deployed;
use super::{Allow, Config, Glob, Level, Named, RefPolicy};
use crate::failure::{Failure, Failures, Result, nearest, shown};
use crate::finding::{Rule, Span};
use crate::limits::CONFIGURATION;
use crate::record::LoadRestrictor;
use crate::yaml::{self, Mark, Reader, at_line};

/// The keys of the configuration.
pub(super) const KEYS: [&str; 14] = [
    "rules",
    "scopes",
    "include",
    "exclude",
    "allow",
    "helm",
    "licenses",
    "load-restrictor",
    "allow-private",
    "max-file-size",
    "trust-exec",
    "hydrator-metadata",
    "repository",
    "targets",
];

/// Keys that were, and what says the same now.
const FORMER: [(&str, &str); 6] = [
    (
        "comments",
        "remove it; to accept exceptions in the change that adds them: `rules: {new-exception: warning}`",
    ),
    (
        "leave",
        "write an exception: `allow: [{url: URL, reason: WHY}]`",
    ),
    (
        "leave-missing",
        "write an exception: `allow: [{path: GLOB, reason: WHY}]`",
    ),
    ("locked", "write `rules: {locked-reference: error}`"),
    (
        "new-only",
        "remove it; what is new since a revision: git kustomize-localize check --base REV",
    ),
    ("strict", "write `rules: {ID: error}`, or pass `--strict`"),
];

/// The keys of an entry of `allow`.
pub(super) const ALLOW_KEYS: [&str; 8] = [
    "url", "path", "chart", "image", "program", "refs", "rules", "reason",
];

pub(super) fn config(bytes: &[u8], file: &str) -> std::result::Result<Config, Failures> {
    let text = text(bytes, file)?;
    let mut config = Config {
        file: file.to_owned(),
        ..Config::default()
    };
    if is_without_content(text) {
        return Ok(config);
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut failures = Vec::new();
    let mut reader = Reader::new(text, file);
    let read = reader.document(|reader| top(reader, &lines, &mut config, &mut failures));
    failures.sort_by_key(|failure| {
        let place = failure.location.as_ref();
        place.map_or((0, 0), |place| (place.line, place.column))
    });
    // A YAML error comes last: it stands after everything that could be read.
    failures.extend(read.err());
    if failures.is_empty() {
        Ok(config)
    } else {
        Err(Failures(failures))
    }
}

/// Returns the text of a file that can be a configuration at all.
fn text<'a>(bytes: &'a [u8], file: &str) -> Result<&'a str> {
    let text = yaml::text(bytes, file, CONFIGURATION, "save the file as UTF-8")?;
    if let Some(index) = text.lines().position(|line| line.starts_with("<<<<<<< ")) {
        return Err(Failure::new("holds a merge conflict").at(at_line(file, index + 1)));
    }
    Ok(text)
}

/// Returns whether a text holds nothing but blank lines and comments.
fn is_without_content(text: &str) -> bool {
    text.lines().all(|line| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || line == "---"
    })
}

fn top(
    reader: &mut Reader<'_>,
    lines: &[&str],
    config: &mut Config,
    failures: &mut Vec<Failure>,
) -> Result<()> {
    let mut inner = Vec::new();
    reader.mapping(|reader, key, mark| {
        reader.recover(failures, |reader| match key {
            "rules" => rules(reader, config, &mut inner),
            "scopes" => globs(reader, &mut config.scopes, &mut inner),
            "include" => globs(reader, &mut config.include, &mut inner),
            "exclude" => globs(reader, &mut config.exclude, &mut inner),
            "allow" => entries(reader, &mut inner, |reader, failures| {
                config.allow.extend(allow(reader, lines, failures)?);
                Ok(())
            }),
            "helm" => flag(reader, &mut config.helm),
            "licenses" => {
                config.no_licenses = !reader.flag()?;
                Ok(())
            }
            "allow-private" => flag(reader, &mut config.allow_private),
            "max-file-size" => {
                config.max_file_size = Some(size(reader)?);
                Ok(())
            }
            "trust-exec" => reader.sequence(|reader| {
                reader.recover(&mut inner, |reader| {
                    config.trust_exec.push(paths(reader)?);
                    Ok(())
                })
            }),
            "hydrator-metadata" => flag(reader, &mut config.hydrator_metadata),
            "repository" => entries(reader, &mut inner, |reader, failures| {
                config
                    .repository
                    .extend(deployed::repository(reader, failures)?);
                Ok(())
            }),
            "targets" => entries(reader, &mut inner, |reader, failures| {
                config.targets.extend(deployed::target(reader, failures)?);
                Ok(())
            }),
            "load-restrictor" => {
                config.load_restrictor = choice(
                    reader,
                    &[
                        ("root-only", LoadRestrictor::RootOnly),
                        ("none", LoadRestrictor::None),
                    ],
                )?;
                Ok(())
            }
            _ => match FORMER.iter().find(|(former, _)| *former == key) {
                Some((_, now)) => {
                    reader.skip()?;
                    Err(reader.failure(mark, "not a key any more").hint(*now))
                }
                None => unknown(reader, key, mark, &KEYS),
            },
        })?;
        failures.append(&mut inner);
        Ok(())
    })?;
    Ok(())
}

fn rules(reader: &mut Reader<'_>, config: &mut Config, failures: &mut Vec<Failure>) -> Result<()> {
    let levels: Vec<(&str, Level)> = Level::ALL
        .iter()
        .map(|level| (level.name(), *level))
        .collect();
    reader.mapping(|reader, key, mark| {
        reader.recover(failures, |reader| match Rule::from_id(key) {
            Some(rule) => {
                let level = choice(reader, &levels)?;
                config.rules.insert(rule, level);
                Ok(())
            }
            None => {
                reader.skip()?;
                Err(unknown_rule(reader, key, mark))
            }
        })
    })?;
    Ok(())
}

fn globs(reader: &mut Reader<'_>, into: &mut Vec<Glob>, failures: &mut Vec<Failure>) -> Result<()> {
    reader.sequence(|reader| {
        reader.recover(failures, |reader| {
            let text = reader.text()?;
            match Glob::parse(&text.text) {
                Ok(glob) => into.push(glob),
                Err(why) => {
                    let message = format!("the glob `{}` {why}", shown(&text.text));
                    return Err(reader
                        .failure(text.mark, message)
                        .hint("write directories from the top of the repository, as `apps/*`"));
                }
            }
            Ok(())
        })
    })
}

/// Reads the entries of a list, each with everything that is wrong with it.
fn entries(
    reader: &mut Reader<'_>,
    failures: &mut Vec<Failure>,
    mut read: impl FnMut(&mut Reader<'_>, &mut Vec<Failure>) -> Result<()>,
) -> Result<()> {
    reader.sequence(|reader| {
        let mut entry = Vec::new();
        reader.recover(failures, |reader| read(reader, &mut entry))?;
        failures.append(&mut entry);
        Ok(())
    })
}

/// Reads a glob of paths.
fn paths(reader: &mut Reader<'_>) -> Result<GlobMatcher> {
    let text = reader.text()?;
    from_top(&text.text).map_err(|why| {
        let message = format!("the glob `{}` {why}", shown(&text.text));
        let failure = reader.failure(text.mark, message);
        failure.hint("write paths from the top of the repository, for example `apps/*/secret.env`")
    })
}

/// Reads a size as git writes it: a number, and k, m or g for powers of 1024.
fn size(reader: &mut Reader<'_>) -> Result<u64> {
    let text = reader.text()?;
    let (digits, shift) = match text.text.char_indices().next_back() {
        Some((end, 'k' | 'K')) => (&text.text[..end], 10),
        Some((end, 'm' | 'M')) => (&text.text[..end], 20),
        Some((end, 'g' | 'G')) => (&text.text[..end], 30),
        _ => (&*text.text, 0),
    };
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse::<u64>().ok().filter(|_| is_number);
    let size = number.and_then(|number| number.checked_mul(1 << shift));
    size.filter(|size| *size > 0).ok_or_else(|| {
        let message = format!("`{}` is not a size", shown(&text.text));
        reader
            .failure(text.mark, message)
            .hint("write a number of bytes, or one with k, m or g, for example `64m`")
    })
}

/// The reason of an entry.
#[derive(Default)]
struct Reason {
    text: Option<String>,
    is_there: bool,
}

impl Reason {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        self.is_there = true;
        let text = reader.text()?;
        if text.text.trim().is_empty() {
            return Err(reader.failure(text.mark, "the reason is empty"));
        }
        self.text = Some(text.text.split_whitespace().collect::<Vec<_>>().join(" "));
        Ok(())
    }
}

/// Reads an entry of `allow`; `None` when something of it is wrong, which is in `failures` then.
fn allow(
    reader: &mut Reader<'_>,
    lines: &[&str],
    failures: &mut Vec<Failure>,
) -> Result<Option<Allow>> {
    let mut what: Vec<Option<Named>> = Vec::new();
    let mut refs = RefPolicy::default();
    let mut why = Reason::default();
    let mut about = None;
    let policies: Vec<(&str, RefPolicy)> = RefPolicy::ALL
        .iter()
        .map(|policy| (policy.name(), *policy))
        .collect();
    let mut inner = Vec::new();
    let start = reader.mapping(|reader, key, mark| {
        reader.recover(failures, |reader| {
            match key {
                key if Named::KEYS.contains(&key) => {
                    what.push(None);
                    let text = reader.text()?;
                    let parsed = Named::parse(key, &text.text).map_err(|why| {
                        // A string that is not a glob may be a URL with a password.
                        let shown = shown(&crate::redact::url(&text.text));
                        let failure = reader.failure(
                            text.mark,
                            format!("the glob `{shown}` {}", crate::redact::text(&why)),
                        );
                        failure.hint(match key {
                            "path" => {
                                "write a path from the top of the repository, for example `apps/*/secret.env`"
                            }
                            "program" => "write the name of a program, for example `sed`",
                            _ => "write a host, or a host and a path, for example `github.com/acme/*`",
                        })
                    })?;
                    what.pop();
                    what.push(Some(parsed));
                }
                "refs" => refs = choice(reader, &policies)?,
                "reason" => why.read(reader)?,
                "rules" => {
                    let about = about.insert(BTreeSet::new());
                    reader.sequence(|reader| rule(reader, about, &mut inner))?;
                }
                _ => return unknown(reader, key, mark, &ALLOW_KEYS),
            }
            Ok(())
        })?;
        failures.append(&mut inner);
        Ok(())
    })?;
    if what.len() != 1 {
        let keys = Named::KEYS.map(|key| format!("`{key}`")).join(", ");
        let message = format!("an entry names exactly one of {keys}");
        failures.push(reader.failure(start, message));
    }
    if !why.is_there {
        failures.push(
            reader
                .failure(start, "missing `reason`")
                .hint("say in one line why this may stay, for those who review it"),
        );
    }
    if let Some(rules) = &about
        && rules.is_empty()
        && failures.is_empty()
    {
        failures.push(
            reader
                .failure(start, "`rules` names no rule")
                .hint("leave `rules` out for those that `allow` is about without it"),
        );
    }
    let what = what.pop().flatten();
    Ok(match (what, why.text, failures.is_empty()) {
        (Some(what), Some(reason), true) => Some(Allow {
            what,
            refs,
            reason,
            rules: about.unwrap_or_else(|| {
                let rules = Rule::ALL.iter().copied();
                rules.filter(|rule| rule.is_allowed_by_default()).collect()
            }),
            span: line_from(lines, start),
            line_text: line(lines, start).to_owned(),
        }),
        _ => None,
    })
}

fn rule(
    reader: &mut Reader<'_>,
    into: &mut BTreeSet<Rule>,
    failures: &mut Vec<Failure>,
) -> Result<()> {
    reader.recover(failures, |reader| {
        let text = reader.text()?;
        let rule =
            Rule::from_id(&text.text).ok_or_else(|| unknown_rule(reader, &text.text, text.mark))?;
        if !rule.can_be_allowed() {
            return Err(reader.failure(text.mark, format!("`{rule}` cannot be allowed")));
        }
        into.insert(rule);
        Ok(())
    })
}

fn flag(reader: &mut Reader<'_>, into: &mut bool) -> Result<()> {
    *into = reader.flag()?;
    Ok(())
}

/// Reads one of several words.
pub(super) fn choice<T: Copy>(reader: &mut Reader<'_>, choices: &[(&str, T)]) -> Result<T> {
    let text = reader.text()?;
    match choices.iter().find(|(word, _)| *word == text.text) {
        Some((_, value)) => Ok(*value),
        None => {
            let words: Vec<String> = choices
                .iter()
                .map(|(word, _)| format!("`{word}`"))
                .collect();
            Err(reader.failure(
                text.mark,
                format!("`{}` is none of {}", shown(&text.text), words.join(", ")),
            ))
        }
    }
}

pub(super) fn unknown(
    reader: &mut Reader<'_>,
    key: &str,
    mark: Mark,
    known: &[&str],
) -> Result<()> {
    reader.skip()?;
    let failure = reader.failure(mark, "this key is not known");
    Err(match nearest(key, known.iter().copied()) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None => failure.hint(format!("the keys are {}", known.join(", "))),
    })
}

fn unknown_rule(reader: &Reader<'_>, id: &str, mark: Mark) -> Failure {
    let failure = reader.failure(mark, format!("there is no rule `{}`", shown(id)));
    let known: Vec<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
    match nearest(id, known.iter().copied()) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None => failure.hint(format!("the rules are {}", known.join(", "))),
    }
}

/// Returns the line of a place.
fn line<'a>(lines: &[&'a str], mark: Mark) -> &'a str {
    lines
        .get(mark.line.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

/// Returns what is from a place to the end of its line.
fn line_from(lines: &[&str], mark: Mark) -> Span {
    let length = line(lines, mark).trim_end().chars().count();
    Span {
        line: mark.line,
        column: mark.column,
        end_line: mark.line,
        end_column: length.max(mark.column) + 1,
    }
}
