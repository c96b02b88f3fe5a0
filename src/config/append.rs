//! Entries that are written into a configuration of which everything else stays as it is.

use super::Config;

impl Config {
    /// Returns the text of a configuration with more entries of `allow`, each as [`Config::entries`] returns it, before
    /// those that it has; none where the list cannot be told from its lines, as in flow style.
    pub fn append(text: &str, entries: &[String]) -> Option<String> {
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let mut lines: Vec<&str> = text.lines().collect();
        let is_key = |line: &&str| line.strip_prefix("allow:").is_some_and(is_blank);
        let key = lines.iter().position(is_key).unwrap_or(lines.len());
        if key == lines.len() {
            lines.push("allow:");
        }
        let first = lines[key + 1..].iter().find(|line| !is_blank(line));
        let first = first.filter(|line| line.trim_start().starts_with("- "));
        let indent = first.map_or(0, |line| line.len() - line.trim_start().len());
        let new: Vec<String> = entries.iter().map(|entry| " ".repeat(indent) + entry).collect();
        lines.splice(key + 1..key + 1, new.iter().map(String::as_str));
        let new = lines.join(end) + end;
        // Read again: what could not be told from the lines is not written.
        let [mut before, mut after] = [text, &new].map(|text| Config::parse(text.as_bytes(), "").ok());
        let (before, after) = (before.as_mut()?, after.as_mut()?);
        let is_same = after.allow.len() == before.allow.len() + entries.len()
            && before
                .allow
                .iter()
                .zip(&after.allow[entries.len()..])
                .all(|(old, new)| old.says(new) && old.reason == new.reason);
        before.allow.clear();
        after.allow.clear();
        (is_same && format!("{before:?}") == format!("{after:?}")).then_some(new)
    }
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
                "allow:\n- {url: a.example, reason: r} # why\n\n# below\nhelm: true\n",
                "allow:\n@\n- {url: a.example, reason: r} # why\n\n# below\nhelm: true\n",
            ),
            (
                "allow: # ours\n  # first\n  - url: a.example\n    reason: >-\n      r\n      # s\n",
                "allow: # ours\n  @\n  # first\n  - url: a.example\n    reason: >-\n      r\n      # s\n",
            ),
            ("allow:\r\n- {url: a.example, reason: r}\r\n", "allow:\r\n@\r\n- {url: a.example, reason: r}\r\n"),
        ] {
            let found = Config::append(text, &[ENTRY.to_owned()]);
            assert_eq!(found, Some(new.replace('@', ENTRY)), "{text}");
        }
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
            assert_eq!(Config::append(text, &[ENTRY.to_owned()]), None, "{text}");
        }
    }
}
