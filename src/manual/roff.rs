//! A page as a manual page.

use super::Page;
use super::markdown::{self, Block, Span, Style};

/// Returns the manual page. It holds no date: it is the same on every day.
pub(super) fn roff(page: &Page) -> String {
    let name = page.file();
    let mut out = format!(
        ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n.TH {} {} \"\" \"{} {}\" \"Git Manual\"\n.nh\n",
        name.to_uppercase(),
        page.section(),
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_VERSION")
    );
    out.push_str(&format!(
        ".SH NAME\n{} \\- {}\n",
        escaped(&name),
        escaped(&page.about)
    ));
    if let Some(usage) = &page.usage {
        out.push_str(".SH SYNOPSIS\n.nf\n");
        for line in usage.lines() {
            out.push_str(&format!("{}\n", escaped(line.trim())));
        }
        out.push_str(".fi\n");
    }
    let blocks = markdown::read(&page.body);
    if !matches!(blocks.first(), Some(Block::Heading(..)) | None) {
        out.push_str(".SH DESCRIPTION\n");
    }
    for block in &blocks {
        write(&mut out, block);
    }
    out
}

fn write(out: &mut String, block: &Block) {
    match block {
        Block::Heading(2, spans) => {
            let title = escaped(&markdown::text(spans)).to_uppercase();
            out.push_str(&format!(".SH \"{title}\"\n"));
        }
        Block::Heading(_, spans) => {
            out.push_str(&format!(".SS \"{}\"\n", escaped(&markdown::text(spans))));
        }
        Block::Paragraph(spans) => out.push_str(&format!(".PP\n{}\n", line(spans))),
        Block::Code(_, code) => {
            out.push_str(".PP\n.RS 4\n.nf\n");
            for line in code.lines() {
                out.push_str(&format!("{}\n", guarded(escaped(line))));
            }
            out.push_str(".fi\n.RE\n");
        }
        Block::List(is_counted, entries) => {
            for (index, entry) in entries.iter().enumerate() {
                let mark = if *is_counted {
                    format!("{}.", index + 1)
                } else {
                    "\\(bu".to_owned()
                };
                out.push_str(&format!(".IP \"{mark}\" 4\n"));
                for (index, block) in entry.iter().enumerate() {
                    match block {
                        Block::Paragraph(spans) if index == 0 => {
                            out.push_str(&format!("{}\n", line(spans)));
                        }
                        Block::Paragraph(spans) => out.push_str(&format!(".IP\n{}\n", line(spans))),
                        block => {
                            out.push_str(".RS 4\n");
                            write(out, block);
                            out.push_str(".RE\n");
                        }
                    }
                }
            }
        }
        Block::Table(rows) => table(out, rows),
    }
}

/// Writes a table: its first column says what the others are about.
fn table(out: &mut String, rows: &[Vec<Vec<Span>>]) {
    let [head, rows @ ..] = rows else { return };
    for row in rows {
        let [term, cells @ ..] = row.as_slice() else {
            continue;
        };
        let mut meaning: Vec<String> = Vec::new();
        for (cell, head) in cells.iter().zip(head.iter().skip(1)) {
            match (cells.len(), cell.is_empty()) {
                (_, true) => {}
                (1, false) => meaning.push(line(cell)),
                (_, false) if head.is_empty() => meaning.push(line(cell)),
                (_, false) => meaning.push(format!("{}: {}", line(head), line(cell))),
            }
        }
        out.push_str(&format!(".TP\n{}\n{}\n", line(term), meaning.join("; ")));
    }
}

/// Returns text as one line of input.
fn line(spans: &[Span]) -> String {
    let mut line = String::new();
    for span in spans {
        let text = escaped(&span.text);
        match span.style {
            Style::Plain => line.push_str(&text),
            Style::Code | Style::Strong => line.push_str(&format!("\\fB{text}\\fR")),
            Style::Emphasis => line.push_str(&format!("\\fI{text}\\fR")),
        }
        if let Some(url) = span.address() {
            line.push_str(&format!(" <{}>", escaped(url)));
        }
    }
    guarded(line)
}

/// Returns a line that is not a request, whatever it begins with.
fn guarded(line: String) -> String {
    if line.starts_with(['.', '\'']) {
        format!("\\&{line}")
    } else {
        line
    }
}

/// Escapes what roff would take for more than text.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\*(Aq")
        .replace('"', "\\(dq")
        .replace('`', "\\(ga")
        .replace('^', "\\(ha")
        .replace('~', "\\(ti")
}
