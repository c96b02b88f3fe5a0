//! Additions to a configuration. Every other byte stays the same.

use serde_json::{Map, Value};

use super::Config;
use crate::kustomization::format;

impl Config {
    /// The text of a configuration with more entries, as [`Config::entries`] returns them, at the beginning of one of
    /// its lists; `None` if lines are not enough to see the list, as in flow style.
    pub fn with_entries(text: &str, key: &str, entries: &[String]) -> Option<String> {
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let head = format!("{key}:");
        // The end of the line with the key. Without such a line it is the end of the text, where the key is added.
        let mut at = 0;
        let is_head = text.split_inclusive('\n').any(|line| {
            at += line.len();
            line.strip_prefix(&*head).is_some_and(is_blank)
        });
        let (above, below) = text.split_at(at);
        // YAML wants all items of a list at the same indentation, so the new ones take that of the first.
        let first = below.lines().find(|line| !is_blank(line));
        let first = first.filter(|line| line.trim_start().starts_with("- "));
        let indent = first.map_or(0, |line| line.len() - line.trim_start().len());
        let head = Some(head).filter(|_| !is_head);
        let new = head.into_iter().chain(entries.iter().map(|entry| " ".repeat(indent) + entry));
        let new: String = new.map(|line| line + end).collect();
        let new = format!("{above}{}{new}{below}", end_between(above, end));
        // Lines are a guess about YAML: reading both texts proves that the old entries are still there.
        let KeyChange { before, after } = KeyChange::of_key(text, &new, key)?;
        let rest = after.as_ref()?.as_array()?.get(entries.len()..)?;
        let old = before.map_or(Some(Vec::new()), |before| before.as_array().cloned())?;
        (rest == old).then_some(new)
    }

    /// The text of a configuration with one more key; `None` if it has that key, or a line cannot be added at its end.
    pub fn with(text: &str, key: &str, value: &str) -> Option<String> {
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let new = format!("{text}{}{key}: {value}{end}", end_between(text, end));
        let KeyChange { before, after } = KeyChange::of_key(text, &new, key)?;
        (before.is_none() && after? == value).then_some(new)
    }
}

/// The values of the only key that an edit changes.
struct KeyChange {
    before: Option<Value>,
    after: Option<Value>,
}

impl KeyChange {
    /// `None` if the edit changes another key, or the new text is not a configuration.
    fn of_key(old: &str, new: &str, key: &str) -> Option<KeyChange> {
        Config::parse(new.as_bytes(), "").ok()?;
        // All other keys must be equal: an edit of lines may end in another key.
        let (mut old, mut new) = (values(old)?, values(new)?);
        let change = KeyChange { before: old.remove(key), after: new.remove(key) };
        (old == new).then_some(change)
    }
}

/// The values of the keys of a configuration; `None` if it is not YAML.
fn values(text: &str) -> Option<Map<String, Value>> {
    let (values, _) = format::parse(text.trim_start_matches('\u{feff}'), "").ok()?;
    Some(values)
}

/// The text to add before a new line: `end` if the last line lacks its end, else nothing.
fn end_between<'a>(text: &str, end: &'a str) -> &'a str {
    if text.is_empty() || text.ends_with('\n') { "" } else { end }
}

/// Whether a line, or the rest of a line, is empty except for a comment.
fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "- {url: github.com/o, reason: TODO}";

    #[test]
    fn entries_come_first_and_all_else_stays() {
        for (text, new) in [
            ("", "allow:\n@\n"),
            ("# ours\n", "# ours\nallow:\n@\n"),
            ("helm: true", "helm: true\nallow:\n@\n"),
            (
                "allow:\n- {url: a.example, reason: r} # why\n\n# below\nhelm: true\nexclude: [a]\n",
                "allow:\n@\n- {url: a.example, reason: r} # why\n\n# below\nhelm: true\nexclude: [a]\n",
            ),
            (
                "allow: # ours\n  # first\n  - url: a.example\n    reason: >-\n      r\n      # s\n",
                "allow: # ours\n  @\n  # first\n  - url: a.example\n    reason: >-\n      r\n      # s\n",
            ),
            ("allow:\r\n- {url: a.example, reason: r}\r\n", "allow:\r\n@\r\n- {url: a.example, reason: r}\r\n"),
            (
                "helm: true\r\nallow:\n- {url: a.example, reason: r}",
                "helm: true\r\nallow:\n@\r\n- {url: a.example, reason: r}",
            ),
        ] {
            let found = Config::with_entries(text, "allow", &[ENTRY.to_owned()]);
            assert_eq!(found, Some(new.replace('@', ENTRY)), "{text}");
        }
        let exclude = |text: &str| Config::with_entries(text, "exclude", &["- a/b".to_owned()]);
        assert_eq!(exclude("exclude:\n- c # why\n").as_deref(), Some("exclude:\n- a/b\n- c # why\n"));
        assert_eq!(exclude("exclude: [c]\n"), None);
    }

    #[test]
    fn what_cannot_be_told_from_the_lines_is_not_edited() {
        for text in [
            "allow: [{url: a.example, reason: r}]\n",
            "allow: []\n",
            "{helm: true}\n",
            "'allow':\n- {url: a.example, reason: r}\n",
            "helm: true\n...\n",
            "helm: [\n",
        ] {
            assert_eq!(Config::with_entries(text, "allow", &[ENTRY.to_owned()]), None, "{text}");
        }
    }

    #[test]
    fn a_key_is_added_once() {
        let with = |text: &str| Config::with(text, "load-restrictor", "none");
        assert_eq!(with("").as_deref(), Some("load-restrictor: none\n"));
        assert_eq!(with("helm: true # ours").as_deref(), Some("helm: true # ours\nload-restrictor: none\n"));
        assert_eq!(with("helm: true\r\n").as_deref(), Some("helm: true\r\nload-restrictor: none\r\n"));
        for text in ["load-restrictor: root-only\n", "'load-restrictor': none\n", "{helm: true}\n", "helm: true\n...\n"]
        {
            assert_eq!(with(text), None, "{text}");
        }
    }
}
