//! YAML of our own formats, the lock and the configuration, by `serde`.
//!
//! The text is untrusted, so it is looked over before: plain data only, no deeper than the formats, without anchors to
//! expand, and no key twice. Nothing (`~`, or no value) is nowhere right.

use std::collections::{BTreeMap, BTreeSet};

use granit_parser::{Event, Marker, Parser, ScalarStyle};
use serde::de::DeserializeOwned;

use crate::message::failure::{Failure, Location, Result, shown};
use crate::message::redact;
use crate::os::limits::Limit;

/// More levels than the formats have.
const MAX_DEPTH: usize = 8;

/// Of a message, which may quote the text.
const LONGEST: usize = 1000;

/// A place in the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl From<Marker> for Mark {
    fn from(marker: Marker) -> Self {
        Mark { line: marker.line(), column: marker.col() + 1 }
    }
}

/// Where the values of the keys at the top begin; of a list, its items.
pub(crate) type Marks = BTreeMap<String, Vec<Mark>>;

/// Returns the text of a file if it can be one of ours at all. `hint` says what to do about one that is not text.
pub(crate) fn text<'a>(bytes: &'a [u8], file: &str, limit: Limit, hint: &str) -> Result<&'a str> {
    limit.check(bytes.len(), || file.to_owned())?;
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Failure::new("not UTF-8").at(at_line(file, line)).hint(hint)
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Returns a line of a file; 0 for the whole of it.
pub(crate) fn at_line(file: &str, line: usize) -> Location {
    Location { file: file.to_owned(), line, ..Location::default() }
}

/// Reads a text, which is one document. In the message of a type of ours, a hint may stand on a line of its own.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, file: &str) -> Result<(T, Marks)> {
    let marks = scan(text).map_err(|(mark, message)| {
        Failure::new(message).at(Location { column: mark.column, ..at_line(file, mark.line) })
    })?;
    let value = serde_yaml::from_str(text).map_err(|error| {
        let whole = error.to_string();
        let message = whole.rsplit_once(" at line ").map_or(&*whole, |(message, _)| message);
        let (line, column) = error.location().map_or((0, 0), |at| (at.line(), at.column()));
        let (message, hint) = message.split_once('\n').map_or((message, None), |(one, two)| (one, Some(two)));
        let message: String = message.chars().take(LONGEST).collect();
        let failure = Failure::new(redact::visible(&message)).at(Location { column, ..at_line(file, line) });
        hint.into_iter().fold(failure, Failure::hint)
    })?;
    Ok((value, marks))
}

/// A mapping or a list that is being read.
#[derive(Default)]
struct Open {
    is_mapping: bool,
    keys: BTreeSet<String>,
    /// The key whose value comes next.
    key: Option<String>,
}

/// Refuses what is not plain data, and finds where items begin.
fn scan(text: &str) -> Result<Marks, (Mark, String)> {
    let options = granit_parser::options! {
        disallow_directives: true,
        emit_unresolved_aliases: true,
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let (mut marks, mut documents) = (Marks::new(), 0);
    let mut open: Vec<Open> = Vec::new();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| ((*error.marker()).into(), format!("not YAML: {}", error.info())))?;
        let mark = Mark::from(span.start);
        let refused = |message: &str| Err((mark, message.to_owned()));
        let (anchor, tag) = match &event {
            Event::Scalar(_, _, anchor, tag)
            | Event::SequenceStart(_, anchor, tag)
            | Event::MappingStart(_, anchor, tag) => (*anchor, tag.is_some()),
            Event::Alias(_) | Event::UnresolvedAlias(_) => (1, false),
            Event::SequenceEnd | Event::MappingEnd => {
                open.pop();
                if let Some(parent) = open.last_mut() {
                    parent.key = None;
                }
                continue;
            }
            Event::DocumentStart(..) => {
                documents += 1;
                if documents > 1 {
                    return refused("a second document");
                }
                continue;
            }
            _ => continue,
        };
        if anchor != 0 || tag {
            return refused("anchors, aliases and tags are not allowed here");
        }
        let parent = open.last_mut();
        if let (Some(parent), Event::Scalar(word, ..)) = (parent, &event)
            && parent.is_mapping
            && parent.key.is_none()
        {
            if !parent.keys.insert(word.to_string()) {
                return Err((mark, format!("the key `{}` is there twice", shown(word))));
            }
            parent.key = Some(word.to_string());
            continue;
        }
        let key = match &open[..] {
            [top] if !matches!(event, Event::SequenceStart(..)) => top.key.as_ref(),
            [top, Open { is_mapping: false, .. }] => top.key.as_ref(),
            _ => None,
        };
        if let Some(key) = key {
            marks.entry(key.clone()).or_default().push(mark);
        }
        match &event {
            Event::Scalar(word, ScalarStyle::Plain, ..) if matches!(&**word, "" | "~" | "null" | "Null" | "NULL") => {
                return refused("nothing stands here: write a value, or leave the key out");
            }
            Event::Scalar(..) => {
                if let Some(parent) = open.last_mut() {
                    parent.key = None;
                }
            }
            _ => open.push(Open { is_mapping: matches!(event, Event::MappingStart(..)), ..Open::default() }),
        }
    }
    Ok(marks)
}
