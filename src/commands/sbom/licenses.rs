//! Which license a text is, by the digest of its words.

use crate::record::sha256_hex;

/// The digests of the words of licenses, with their SPDX identifiers.
const KNOWN: &str = include_str!("licenses.sha256");

/// The SPDX identifier of a text; `None` unless it is exactly one license.
pub(super) fn identify(text: &str) -> Option<&'static str> {
    if text.lines().any(has_terms) {
        return None;
    }
    let digest = sha256_hex(words(text).as_bytes());
    KNOWN.lines().find_map(|line| line.strip_prefix(&*digest)).map(str::trim_start)
}

/// The words of a text in lower case, without copyright lines.
fn words(text: &str) -> String {
    let text = text.to_lowercase();
    let lines = text.lines().map(str::trim).filter(|line| !is_notice(line));
    let words = lines.flat_map(|line| line.split(|c: char| !c.is_alphanumeric()));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Whether a line of a license file, in lower case, is a copyright line: these differ in each copy of a license.
fn is_notice(line: &str) -> bool {
    let holder = line.strip_prefix("copyright").map(str::trim_start);
    line.starts_with("all rights reserved")
        || line.starts_with(['©'])
        || line.starts_with("(c)")
        || holder.is_some_and(|rest| {
            rest.starts_with("the ")
                || rest.starts_with(['(', '©', '[', '{', '<'])
                || rest.starts_with(|c: char| c.is_ascii_digit())
        })
}

/// Words of a line that grants or forbids something.
const TERMS: [&str; 12] =
    ["may", "must", "shall", "not", "no", "use", "used", "only", "except", "provided", "license", "licence"];

/// Whether a copyright line also contains terms, so that its text is not a known license only.
fn has_terms(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    // The Apache License itself has a line that begins with `(c) You must retain`.
    is_notice(&line)
        && !line.starts_with("(c) you must retain")
        && line.split(|c: char| !c.is_alphanumeric()).any(|word| TERMS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIT: &str = include_str!("../../../LICENSE-MIT");

    #[test]
    fn licenses_are_known_by_their_words() {
        assert_eq!(identify(include_str!("../../../LICENSE-APACHE")), Some("Apache-2.0"));
        assert_eq!(identify(MIT), Some("MIT"));
        let wrapped = MIT.split_whitespace().collect::<Vec<_>>();
        let (holder, rest) = wrapped.split_at(wrapped.iter().position(|word| *word == "Permission").unwrap());
        let other = format!("# The MIT License (MIT)\r\n\r\n{}\r\n\r\n{}", holder.join(" "), rest.join("\r\n"));
        assert_eq!(identify(&other), Some("MIT"));
    }

    #[test]
    fn a_text_with_other_words_is_another_license() {
        assert_eq!(identify(&format!("{MIT}\nYou may not sell it.")), None);
        assert_eq!(identify(&MIT.replace("without restriction", "with restriction")), None);
        assert_eq!(identify(""), None);
        for more in
            ["Не для продажи", "不得出售", "Copyright 2020 A. You may not sell it.", "(c) B, for private use only"]
        {
            assert_eq!(identify(&format!("{MIT}\n{more}\n")), None, "{more}");
        }
        for notice in [
            "Copyright (c) 2014-2020 Jürgen Müller <j@example.com>, et al.",
            "© 2020 The Authors. All rights reserved.",
        ] {
            assert_eq!(identify(&format!("{notice}\n{MIT}")), Some("MIT"), "{notice}");
        }
    }
}
