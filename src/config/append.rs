//! What is written into a configuration of which everything else stays as it is, byte for byte.

use serde_json::{Map, Value};

use super::Config;
use crate::kustomization::format;

impl Config {
    /// Returns the text of a configuration with more entries in one of its lists, each as [`Config::entries`] returns it,
    /// before those that it has; none where the list cannot be told from its lines, as in flow style.
    pub fn append(text: &str, key: &str, entries: &[String]) -> Option<String> {
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let mut lines: Vec<&str> = text.lines().collect();
        let head = format!("{key}:");
        let is_key = |line: &&str| line.strip_prefix(&*head).is_some_and(is_blank);
        let at = lines.iter().position(is_key).unwrap_or(lines.len());
        if at == lines.len() {
            lines.push(&head);
        }
        let first = lines[at + 1..].iter().find(|line| !is_blank(line));
        let first = first.filter(|line| line.trim_start().starts_with("- "));
        let indent = first.map_or(0, |line| line.len() - line.trim_start().len());
        let new: Vec<String> = entries.iter().map(|entry| " ".repeat(indent) + entry).collect();
        lines.splice(at + 1..at + 1, new.iter().map(String::as_str));
        let new = lines.join(end) + end;
        let [old, all] = values(text, &new, key)?;
        let rest = all.as_ref()?.as_array()?.get(entries.len()..)?;
        let old = old.map_or(Some(Vec::new()), |old| old.as_array().cloned())?;
        (rest == old).then_some(new)
    }

    /// Returns the text of a configuration with one more key; none where it has that key, or cannot have one more line.
    pub fn with(text: &str, key: &str, value: &str) -> Option<String> {
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let between = if text.is_empty() || text.ends_with('\n') { "" } else { end };
        let new = format!("{text}{between}{key}: {value}{end}");
        let [old, all] = values(text, &new, key)?;
        (old.is_none() && all? == value).then_some(new)
    }
}

/// Returns what a key is before and after an edit; none where the edit changes anything else: what could not be told from
/// the lines is not written.
fn values(old: &str, new: &str, key: &str) -> Option<[Option<Value>; 2]> {
    Config::parse(new.as_bytes(), "").ok()?;
    let read = |text: &str| {
        let (mut keys, _): (Map<String, Value>, _) = format::parse(text.trim_start_matches('\u{feff}'), "").ok()?;
        Some((keys.remove(key), keys))
    };
    let ((old, before), (new, after)) = (read(old)?, read(new)?);
    (before == after).then_some([old, new])
}

/// Returns whether a line, or the rest of one, holds nothing but a comment.
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
        ] {
            let found = Config::append(text, "allow", &[ENTRY.to_owned()]);
            assert_eq!(found, Some(new.replace('@', ENTRY)), "{text}");
        }
        let exclude = |text: &str| Config::append(text, "exclude", &["- a/b".to_owned()]);
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
            assert_eq!(Config::append(text, "allow", &[ENTRY.to_owned()]), None, "{text}");
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
