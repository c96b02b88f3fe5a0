//! The Markdown that pages are written in: what can be shown on a terminal and as a manual page.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// A part of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block {
    /// A heading below that of the page: 2 and deeper.
    Heading(usize, Vec<Span>),
    /// A paragraph.
    Paragraph(Vec<Span>),
    /// Lines to be shown as written, and their language.
    Code(String, String),
    /// The entries of a list, and whether they are counted.
    List(bool, Vec<Vec<Block>>),
    /// A table: its head, then its rows.
    Table(Vec<Vec<Vec<Span>>>),
}

/// A piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) text: String,
    pub(super) style: Style,
    /// Where it leads.
    pub(super) link: Option<String>,
}

impl Span {
    /// Returns the URL that it leads to, where the text does not say it. Other pages are named at the end.
    pub(super) fn address(&self) -> Option<&str> {
        let link = self.link.as_deref()?;
        (link.contains("://") && link != self.text).then_some(link)
    }
}

/// How a piece of text is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Code,
    Emphasis,
    Strong,
}

/// Returns the text of spans.
pub(super) fn text(spans: &[Span]) -> String {
    spans.iter().map(|span| span.text.as_str()).collect()
}

/// Reads a page. What a page cannot hold (HTML, pictures) is left out.
pub(super) fn read(text: &str) -> Vec<Block> {
    let mut reader = Reader::default();
    let mut open = vec![Vec::new()];
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        reader.take(event, &mut open);
    }
    open.swap_remove(0)
}

/// Returns the anchor of a heading, as GitHub makes it.
#[cfg(test)]
pub(super) fn anchor(heading: &str) -> String {
    let kept =
        |character: &char| character.is_alphanumeric() || [' ', '-', '_'].contains(character);
    let lower = heading.to_lowercase();
    lower
        .chars()
        .filter(kept)
        .collect::<String>()
        .replace(' ', "-")
}

#[derive(Default)]
struct Reader {
    spans: Vec<Span>,
    styles: Vec<Style>,
    link: Option<String>,
    /// The lists around, and whether each is counted.
    lists: Vec<bool>,
    cells: Vec<Vec<Span>>,
    rows: Vec<Vec<Vec<Span>>>,
    code: Option<(String, String)>,
}

impl Reader {
    /// Takes an event; `open` holds the blocks of the page, then of each list entry around, and before them the entries
    /// of their lists as [`Block::List`].
    fn take(&mut self, event: Event<'_>, open: &mut Vec<Vec<Block>>) {
        match event {
            Event::Start(tag) => self.start(tag, open),
            Event::End(tag) => self.end(tag, open),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.push(&text, self.styles.last().copied().unwrap_or(Style::Plain)),
            },
            Event::Code(text) => self.push(&text, Style::Code),
            Event::SoftBreak | Event::HardBreak => self.push(" ", Style::Plain),
            _ => {}
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        self.spans.push(Span {
            text: text.to_owned(),
            style,
            link: self.link.clone(),
        });
    }

    fn start(&mut self, tag: Tag<'_>, open: &mut Vec<Vec<Block>>) {
        match tag {
            Tag::Emphasis => self.styles.push(Style::Emphasis),
            Tag::Strong => self.styles.push(Style::Strong),
            Tag::Link { dest_url, .. } => self.link = Some(dest_url.into_string()),
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    pulldown_cmark::CodeBlockKind::Fenced(language) => language.into_string(),
                    pulldown_cmark::CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.flush(open);
                self.lists.push(first.is_some());
                open.push(Vec::new());
            }
            Tag::Item => open.push(Vec::new()),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, open: &mut Vec<Vec<Block>>) {
        let block = match tag {
            TagEnd::Emphasis | TagEnd::Strong => {
                self.styles.pop();
                return;
            }
            TagEnd::Link => {
                self.link = None;
                return;
            }
            TagEnd::TableCell => {
                self.cells.push(std::mem::take(&mut self.spans));
                return;
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                self.rows.push(std::mem::take(&mut self.cells));
                return;
            }
            TagEnd::Paragraph => return self.flush(open),
            TagEnd::Item => {
                self.flush(open);
                // An entry is a list of one until its list ends.
                let blocks = open.pop().unwrap_or_default();
                Block::List(false, vec![blocks])
            }
            TagEnd::List(_) => {
                let entries = open.pop().unwrap_or_default().into_iter();
                let entries = entries.flat_map(|entry| match entry {
                    Block::List(_, blocks) => blocks,
                    other => vec![vec![other]],
                });
                Block::List(self.lists.pop().unwrap_or_default(), entries.collect())
            }
            TagEnd::Heading(level) => {
                Block::Heading(level as usize, std::mem::take(&mut self.spans))
            }
            TagEnd::CodeBlock => match self.code.take() {
                Some((language, code)) => Block::Code(language, code),
                None => return,
            },
            TagEnd::Table => Block::Table(std::mem::take(&mut self.rows)),
            _ => return,
        };
        add(open, block);
    }

    /// Ends the paragraph that is open.
    fn flush(&mut self, open: &mut [Vec<Block>]) {
        if !self.spans.is_empty() {
            add(open, Block::Paragraph(std::mem::take(&mut self.spans)));
        }
    }
}

fn add(open: &mut [Vec<Block>], block: Block) {
    if let Some(blocks) = open.last_mut() {
        blocks.push(block);
    }
}
