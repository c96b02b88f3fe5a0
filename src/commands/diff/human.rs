//! The text of `diff` for people.

use std::collections::BTreeSet;

use console::Style;

use super::summary::ImageMove;
use super::{Compared, Diff, Title};
use crate::build::compare::ObjectChange;
use crate::build::consequences::Consequence;
use crate::commands::messages::{first, fitting, most_named, named};
use crate::commands::output::Shown;
use crate::message::redact::visible;
use crate::targets::affected::DiffStatus;

/// The images that moved, then the differences: the names of builds, their consequences and their objects.
pub(super) fn text(diff: &Diff, shown: Shown) -> String {
    let bold = styled(shown, Style::new().bold());
    let images = first(diff.images.iter().map(ImageMove::line), most_named(shown.verbose));
    let mut out: String = images.into_iter().map(|line| line + "\n").collect();
    for group in diff.groups(shown.verbose) {
        let build = group[0];
        out += &titles(&group, shown.verbose, |name| bold.apply_to(name).to_string());
        build.unknown_lines(shown.verbose).iter().for_each(|line| out += &format!("  {line}\n"));
        for consequence in build.consequences(None) {
            let object = Some(&consequence.object).filter(|object| **object != build.name);
            let object = object.map_or(String::new(), |object| format!("{}: ", visible(object)));
            out += &format!("  {}", consequence_line(consequence, &object, shown));
        }
        for object in &build.objects {
            let consequences = build.consequences(Some(&object.id)).map(|of| consequence_line(of, "", shown));
            if diff.is_short {
                let was = object.was.as_deref().map_or(String::new(), |was| format!(", was {}", visible(was)));
                out += &format!("  {:<7} {}{was}\n", object.change.name(), visible(&object.id));
                consequences.for_each(|line| out += &format!("    {line}"));
            } else {
                let consequences: String = consequences.collect();
                // The empty line shows that they belong to the object below, not to the one above.
                out += if consequences.is_empty() { "" } else { "\n" };
                out += &(consequences + &object_diff(object, shown));
            }
        }
    }
    out
}

/// The difference of an object, with its name on both sides.
fn object_diff(object: &ObjectChange, shown: Shown) -> String {
    let (id, was) = (visible(&object.id), object.was.as_deref().map(visible));
    let [before, after] = match object.change {
        DiffStatus::Added => ["/dev/null", &id],
        DiffStatus::Removed => [&*id, "/dev/null"],
        DiffStatus::Changed => [was.as_deref().unwrap_or(&id), &id],
    };
    let bold = styled(shown, Style::new().bold());
    let mut out = format!("{}\n", bold.apply_to(format!("--- {before}")));
    out += &format!("{}\n", bold.apply_to(format!("+++ {after}")));
    for line in object.shown().lines() {
        let color = match line.as_bytes().first() {
            Some(b'+') => Style::new().green(),
            Some(b'-') => Style::new().red(),
            Some(b'@') => Style::new().cyan(),
            _ => Style::new(),
        };
        out += &format!("{}\n", styled(shown, color).apply_to(line));
    }
    out
}

/// A style, if the output is colored.
fn styled(shown: Shown, style: Style) -> Style {
    if shown.color { style.force_styling(true) } else { Style::new() }
}

/// A consequence in a line that fits the terminal. `object` is its object with a colon, or empty below its object.
fn consequence_line(consequence: &Consequence, object: &str, shown: Shown) -> String {
    let mark = styled(shown, Style::new().yellow().bold()).apply_to(format!("consequence[{}]:", consequence.id));
    let before = "    consequence[]: ".len() + consequence.id.len();
    let text = fitting(&format!("{object}{}", visible(&consequence.text)), before, shown.verbose);
    format!("{mark} {text}\n")
}

/// The names of the builds of a group, one line each, and the builds that defined their objects.
fn titles(group: &[&Compared], verbose: bool, bold: impl Fn(String) -> String) -> String {
    let titles = super::titles(group).into_iter().map(|Title { name, why, .. }| format!("{}: {why}", bold(name)));
    let lines = first(titles, most_named(verbose));
    let by = built_by(group, verbose).map(|by| format!("  {}", fitting(&visible(&by), 2, verbose)));
    lines.into_iter().chain(by).map(|line| line + "\n").collect()
}

/// The builds that defined the objects of the targets in a group, each once; `None` if they are as written.
pub(super) fn built_by(group: &[&Compared], verbose: bool) -> Option<String> {
    let by: BTreeSet<String> = group.iter().filter_map(|build| build.built_by.clone()).collect();
    let by: Vec<String> = by.into_iter().collect();
    (!by.is_empty()).then(|| format!("defined by the build of {}", named(&by, verbose)))
}
