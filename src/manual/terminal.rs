//! A page as text for a terminal.

use super::markdown::{self, Block, Span, Style};

/// The widest line, where the terminal is wider.
const WIDTH: usize = 100;

/// How text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// With colour.
    pub color: bool,
    /// The width of the terminal.
    pub width: usize,
}

/// Returns Markdown as text.
#[must_use]
pub fn text(body: &str, look: Look) -> String {
    let mut out = String::new();
    for block in markdown::read(body) {
        if !out.is_empty() {
            out.push('\n');
        }
        write(&mut out, &block, 0, look);
    }
    out
}

fn write(out: &mut String, block: &Block, indent: usize, look: Look) {
    let margin = " ".repeat(indent);
    match block {
        Block::Heading(_, spans) => {
            let title = markdown::text(spans);
            out.push_str(&format!(
                "{margin}{}\n",
                styled(&title, Style::Strong, look)
            ));
        }
        Block::Paragraph(spans) => out.push_str(&wrapped(spans, &margin, indent, look)),
        Block::Code(_, code) => {
            for line in code.lines() {
                let line = format!("{margin}    {line}");
                out.push_str(&format!("{}\n", line.trim_end()));
            }
        }
        Block::List(is_counted, entries) => {
            for (index, entry) in entries.iter().enumerate() {
                let mark = match is_counted {
                    true => format!("{margin}{}. ", index + 1),
                    false => format!("{margin}- "),
                };
                let below = indent + if *is_counted { 3 } else { 2 };
                for (index, block) in entry.iter().enumerate() {
                    match block {
                        Block::Paragraph(spans) if index == 0 => {
                            out.push_str(&wrapped(spans, &mark, below, look));
                        }
                        block => {
                            out.push('\n');
                            write(out, block, below, look);
                        }
                    }
                }
            }
        }
        Block::Table(rows) => table(out, rows, indent, look),
    }
}

/// Writes a table: its first column says what the others are about.
fn table(out: &mut String, rows: &[Vec<Vec<Span>>], indent: usize, look: Look) {
    let [head, rows @ ..] = rows else { return };
    let margin = " ".repeat(indent + 2);
    for row in rows {
        let [term, cells @ ..] = row.as_slice() else {
            continue;
        };
        out.push_str(&wrapped(term, &margin, indent + 6, look));
        for (cell, head) in cells.iter().zip(head.iter().skip(1)) {
            let mut spans = Vec::new();
            if cells.len() > 1 && !head.is_empty() {
                spans.extend(head.iter().cloned());
                spans.push(Span {
                    text: ": ".to_owned(),
                    style: Style::Plain,
                    link: None,
                });
            }
            spans.extend(cell.iter().cloned());
            if !cell.is_empty() {
                out.push_str(&wrapped(&spans, &" ".repeat(indent + 6), indent + 6, look));
            }
        }
    }
}

/// Returns text in lines that fit: the first begins with `first`, the others are indented.
fn wrapped(spans: &[Span], first: &str, indent: usize, look: Look) -> String {
    let width = look.width.clamp(40, WIDTH);
    let mut out = first.to_owned();
    let mut column = console::measure_text_width(first);
    let mut is_fresh = true;
    for word in words(spans, look) {
        let wide = console::measure_text_width(&word);
        if !is_fresh && column + 1 + wide > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if !is_fresh {
            out.push(' ');
            column += 1;
        }
        out.push_str(&word);
        column += wide;
        is_fresh = false;
    }
    out.push('\n');
    out
}

/// Returns the words of a text. Code is not broken: a command is copied in one piece.
fn words(spans: &[Span], look: Look) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_glued = false;
    let mut add = |word: String, is_glued: bool| match words.last_mut() {
        Some(last) if is_glued => last.push_str(&word),
        _ => words.push(word),
    };
    for span in spans {
        let mut text = span.text.clone();
        if let Some(link) = span.address() {
            text.push_str(&format!(" <{link}>"));
        }
        if span.style == Style::Code {
            add(styled(&text, Style::Code, look), is_glued);
            is_glued = true;
            continue;
        }
        is_glued &= !text.starts_with(char::is_whitespace);
        for word in text.split_whitespace() {
            add(styled(word, span.style, look), is_glued);
            is_glued = false;
        }
        is_glued = !text.ends_with(char::is_whitespace);
    }
    words
}

fn styled(text: &str, style: Style, look: Look) -> String {
    let set = console::Style::new().force_styling(look.color);
    match style {
        Style::Plain => text.to_owned(),
        Style::Code if look.color => set.cyan().apply_to(text).to_string(),
        Style::Code => format!("`{text}`"),
        Style::Emphasis => set.underlined().apply_to(text).to_string(),
        Style::Strong => set.bold().apply_to(text).to_string(),
    }
}
