//! What a text that cannot be read seems to declare: one with an error in it, or one that is too large.

use super::scan::KINDS;
use crate::kustomization::unescaped;
use crate::message::redact::REPLACED;

/// The name of the object that gives Argo CD its options.
const OPTIONS: &str = "argocd-cm";

/// Returns what a reader of YAML may make of a text that need not be taken as it stands, as far as names of objects go: of
/// UTF-16 every second byte, and escapes resolved.
pub(super) fn meant(bytes: &[u8]) -> Option<String> {
    memchr::memchr2(b'\\', 0, bytes)?;
    let text: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
    let text = String::from_utf8_lossy(&text);
    // Of the byte order mark.
    Some(unescaped(text.trim_start_matches(REPLACED)))
}

/// Returns whether a text that names an object that matters may declare it: anything else only mentions what does.
pub(super) fn matters(text: &str) -> bool {
    let declares = |text: &str| declares(text) || (names(text) && is_odd(text));
    declares(text) || meant(text.as_bytes()).is_some_and(|text| declares(&text))
}

fn names(text: &str) -> bool {
    let mut names = KINDS.iter().map(|(group, _)| *group).chain([OPTIONS]);
    names.any(|name| !name.is_empty() && text.contains(name))
}

/// Returns whether a tag, an anchor, an alias, a merge key or a key after `?` may stand in a text: any key or value may be
/// another one then.
fn is_odd(text: &str) -> bool {
    let mut words = text.lines().flat_map(|line| without_comment(line).split([' ', '\t', '[', '{', ',']));
    words.any(|word| {
        let rest = word.strip_prefix(['!', '&', '*']);
        let is_mark = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || "!<".contains(c));
        matches!(word, "?" | "<<:" | "<<") || rest.is_some_and(is_mark)
    })
}

fn declares(text: &str) -> bool {
    let Declared { versions, kinds, is_options } = Declared::of(text);
    // A tag, an anchor, an alias or a block: what it comes to may be anything.
    if versions.iter().any(|one| one.starts_with(['!', '&', '*', '|', '>'])) {
        return true;
    }
    let is_of = |group: &str| {
        let mut versions = versions.iter();
        versions.any(|version| version.strip_prefix(group).is_some_and(|rest| rest.starts_with('/')))
    };
    let groups: Vec<&str> = KINDS.iter().map(|(group, _)| *group).filter(|group| is_of(group)).collect();
    // What is wrong may be the kind.
    let is_named = kinds.iter().any(|kind| is_word(kind));
    (!is_named && !groups.is_empty())
        || kinds.iter().any(|kind| {
            let is_known = |group: &&str| KINDS.contains(&(*group, *kind));
            groups.iter().any(is_known) || (is_options && *kind == "ConfigMap")
        })
}

/// Returns whether a text declares an ApplicationSet.
pub(super) fn is_application_set(text: &str) -> bool {
    Declared::of(text).kinds.contains(&"ApplicationSet")
}

/// Returns a line without the comment at its end.
pub(super) fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with('#') {
        return "";
    }
    line.find(" #").map_or(line, |at| &line[..at])
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|one| one.is_ascii_alphanumeric())
}

/// The values of some keys.
#[derive(Default)]
struct Declared<'a> {
    /// Of `apiVersion`.
    versions: Vec<&'a str>,
    kinds: Vec<&'a str>,
    /// Whether some `name` is that of the options of Argo CD.
    is_options: bool,
}

impl<'a> Declared<'a> {
    /// Reads the keys at the top of a text, and in a list or in JSON all of them.
    fn of(text: &'a str) -> Declared<'a> {
        let lines = || {
            let lines = text.lines().map(|line| line.strip_prefix("---").unwrap_or(line));
            let lines = lines.map(without_comment);
            lines.filter(|line| !line.trim().is_empty())
        };
        let indent = |line: &str| line.len() - line.trim_start().len();
        let top = lines().map(indent).min().unwrap_or_default();
        let is_json = lines().next().is_some_and(|line| line.trim_start().starts_with(['{', '[']));
        let mut at_top = Declared::default();
        let mut all = Declared::default();
        for line in lines() {
            if is_json {
                let parts = line.split(['{', '}', '[', ']', ',']);
                parts.for_each(|part| all.add(part));
            } else {
                if indent(line) == top {
                    at_top.add(line);
                }
                all.add(line);
            }
        }
        if is_json || at_top.kinds.contains(&"List") {
            return all;
        }
        Declared { is_options: all.is_options, ..at_top }
    }

    /// Reads a key with its value.
    fn add(&mut self, part: &'a str) {
        let Some((key, value)) = part.split_once(':') else {
            return;
        };
        let plain = |text: &'a str| text.trim().trim_matches(['"', '\'']);
        let key = key.trim_start();
        let value = plain(value);
        match plain(key.strip_prefix("- ").unwrap_or(key)) {
            "apiVersion" => self.versions.push(value),
            "kind" => self.kinds.push(value),
            "name" => self.is_options |= value == OPTIONS,
            // Of `metadata: {name: argocd-cm}`, and where that does not end.
            "metadata" => {
                let mut words = value.split(['{', '}', ',']);
                self.is_options |= words.any(|word| {
                    let pair = word.split_once(':');
                    pair.is_some_and(|(key, value)| plain(key) == "name" && plain(value) == OPTIONS)
                });
            }
            _ => {}
        }
    }
}
