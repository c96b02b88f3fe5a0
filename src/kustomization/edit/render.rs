//! A value as a YAML scalar.

use std::fmt::Write as _;
use std::ops::Range;

use crate::kustomization::libyaml_check;
use crate::kustomization::yaml::{
    Dialect, Document, NodeId, NodeKind, Stream, Style, Type, plain_type,
};

/// Writes a value in the style of what it replaces, as far as the value allows: plain, else single quotes, else double
/// quotes. A block scalar becomes one quoted line. `quote` rules plain out.
pub(super) fn scalar(value: &str, style: Style, in_flow: bool, quote: bool) -> String {
    match style {
        Style::Plain if !quote && plain_is_safe(value, in_flow) => value.to_owned(),
        Style::Plain | Style::Single if value.chars().all(is_printable) => {
            format!("'{}'", value.replace('\'', "''"))
        }
        _ => double_quoted(value),
    }
}

fn double_quoted(value: &str) -> String {
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(c);
            }
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if is_printable(c) => quoted.push(c),
            c => {
                let code = u32::from(c);
                // Writing to a string cannot fail.
                let _ = match code {
                    0..=0xff => write!(quoted, "\\x{code:02x}"),
                    0x100..=0xffff => write!(quoted, "\\u{code:04x}"),
                    _ => write!(quoted, "\\U{code:08x}"),
                };
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Whether a character can stand unescaped in a quoted scalar, for every YAML reader.
fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
        && u32::from(c) & 0xfffe != 0xfffe
}

/// Whether a value is a string without quotes, for every YAML reader and wherever it stands.
fn plain_is_safe(value: &str, in_flow: bool) -> bool {
    let numeric = value.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
    let special =
        matches!(value, "<<" | "=") || value.starts_with("---") || value.starts_with("...");
    if special
        || value.starts_with('%')
        || (numeric && !value.contains('/'))
        || plain_type(value, Dialect::Kustomization) != Type::Text
        || !value.chars().all(is_printable)
        || (in_flow && !libyaml_check::plain_in_flow(value))
    {
        return false;
    }
    let probe = if in_flow {
        format!("[{value}, {value}, {{k: {value}}}, {value} ]\n")
    } else {
        format!("- {value} # c\n- k: {value}\n- {value}\n")
    };
    let Ok(stream) = Stream::parse(&probe, 1) else {
        return false;
    };
    let values = stream.documents.first().map_or(&[][..], Document::nodes);
    let same = |node: &&crate::kustomization::yaml::Node| matches!(&node.kind, NodeKind::Scalar { value: v, style: Style::Plain } if v == value);
    // The list, its entries, the mapping and its key, and nothing else.
    let copies = if in_flow { 4 } else { 3 };
    values.len() == copies + 3 && values.iter().filter(same).count() >= copies
}

/// Finds the `|` or `>` of a block scalar with its indicators, and the end of that line.
pub(super) fn block_header(
    stream: &Stream<'_>,
    document: &Document,
    id: NodeId,
) -> Option<(Range<usize>, usize)> {
    let text = stream.text;
    let node = document.node(id);
    let mut at = match id.checked_sub(1).map(|before| document.node(before)) {
        Some(before) => stream.scalar_end(before),
        None => 0,
    };
    // Between the node before and the content stand punctuation, properties, comments and the header.
    while at < node.range.start {
        let rest = text.get(at..node.range.start)?;
        let c = rest.chars().next()?;
        at += match c {
            '#' => rest.find(['\n', '\r'])?,
            '&' | '!' => rest.find(char::is_whitespace)?,
            '|' | '>' => {
                let length =
                    rest.find(|c: char| !matches!(c, '|' | '>' | '-' | '+' | '0'..='9'))?;
                let line = rest.find(['\n', '\r'])?;
                return Some((at..at + length, at + line));
            }
            c => c.len_utf8(),
        };
    }
    None
}
