//! Manual pages, made from the command line that clap knows.

use std::io;

/// Returns the pages of a command and of those in it: the name of a file, and what it holds.
///
/// # Errors
/// When a page cannot be rendered.
pub fn pages(command: &clap::Command) -> io::Result<Vec<(String, String)>> {
    // Text that only the short help leaves out would have no description here.
    let mut command = command.clone().mut_args(|one| one.hide_short_help(false));
    // The usage shows what belongs together; the generator's own lists every option again, without values.
    let usage = command.render_usage().to_string();
    command = command.override_usage(usage.trim_start_matches("Usage: ").to_owned());
    let man = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    man.render(&mut text)?;
    let text = titled(&command, &String::from_utf8_lossy(&text));
    let mut pages = vec![(man.get_filename(), text)];
    let inner = command.get_subcommands();
    for inner in inner.filter(|inner| !inner.is_hide_set()) {
        pages.extend(self::pages(inner)?);
    }
    Ok(pages)
}

/// Gives a page its head and foot: no date, so that a page is the same on every day; and its last section the name that
/// other pages have for that.
fn titled(command: &clap::Command, page: &str) -> String {
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name());
    let title = format!(
        ".TH {} 1 \"\" \"{} {}\" \"Git Manual\"",
        name.to_uppercase(),
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_VERSION")
    );
    let lines = page.lines().map(|line| match line {
        line if line.starts_with(".TH ") => title.as_str(),
        ".SH EXTRA" => ".SH \"EXIT STATUS\"",
        line => line.strip_prefix("Exit status: ").unwrap_or(line),
    });
    let mut text: String = lines.flat_map(|line| [line.trim_end(), "\n"]).collect();
    // Text without a paragraph of its own would end up in the line before.
    text = text.replace(".br\n\n.br\n", ".sp\n");
    text
}
