//! When commits and tags say that they were made.

/// The date of a commit (its committer's) or a tag, in seconds. `None` without one, or before 1970.
pub(crate) fn made(object: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(object);
    // A message may have such a line, too.
    let mut head = text.lines().take_while(|line| !line.is_empty());
    let line = head.find(|line| ["committer ", "tagger "].iter().any(|name| line.starts_with(name)))?;
    line.rsplit(' ').nth(1)?.parse().ok()
}

/// A date as RFC 3339 writes it.
pub(crate) fn date(seconds: u64) -> String {
    let time = gix::date::Time::new(i64::try_from(seconds).unwrap_or_default(), 0);
    time.format_or_unix(gix::date::time::format::ISO8601_STRICT).replace("+00:00", "Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_alone_tells_when_it_was_made() {
        for (text, expected) in [
            (
                "tree 0\nauthor a <a> 5 +0000\ncommitter b <b> 1700000000 +0100\n\ncommitter b <b> 1 +0000\n",
                Some(1_700_000_000),
            ),
            ("object 0\ntag v1\ntagger b <b> 7 +0000\n\n", Some(7)),
            ("object 0\ntag v1\n\ntagger b <b> 7 +0000\n", None),
            ("committer b <b> -7 +0000\n\n", None),
            ("committer b <b> 99999999999999999999999 +0000\n\n", None),
            ("committer b\n\n", None),
            ("", None),
        ] {
            assert_eq!(made(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
    }
}
