//! A comment of a pull request: the effects of a change on deployments, as Markdown.

use super::human::built_by;
use super::{Compared, Diff, Title, titles};
use crate::build::compare::ObjectChange;
use crate::build::consequences::Consequence;
use crate::commands::affected::unknown_lines;
use crate::commands::messages::{NAMED, counted, first, html, present};
use crate::localize::NowRemote;
use crate::message::redact::{inert, visible};

/// How many characters a comment may have on GitHub.
const MOST: usize = 65_536;
/// The characters that are reserved for the sentence about omitted parts.
const LAST: usize = 300;
/// The first line of a comment, by which the next run finds it.
const MARKER: &str = "<!-- git-kustomize-localize diff -->";
/// A comment has little room.
const VERBOSE: bool = false;

impl Diff {
    /// As much as fits into a comment: first the consequences of the change, then whole objects, and the number of
    /// omitted ones.
    pub(super) fn markdown(&self) -> String {
        let (repository, sides) = (code(&visible(&self.repository)), code(&self.sides()));
        let mut out = format!("{MARKER}\n**{}** in {repository}, {sides}\n\n", self.counts(""));
        // Doubts come right after the headline: whoever reads only the beginning must see them.
        let mut doubts = self.lock_warnings(VERBOSE);
        let unknown = unknown_lines(&self.unbuilt, &self.unread, VERBOSE);
        doubts.extend(first(unknown.lines().map(str::to_owned), NAMED));
        doubts.extend(self.skipped_lines(VERBOSE));
        doubts.extend(first(self.now_remote.iter().map(NowRemote::line), NAMED));
        doubts.iter().for_each(|text| out += &format!("<p>{}</p>\n\n", code(text)));
        let images: Vec<String> =
            self.images.iter().map(|image| inert(&format!("- {}", code(&image.line())))).collect();
        if !images.is_empty() {
            out += &(first(images.into_iter(), NAMED).join("\n") + "\n\n");
        }
        let mut comment = Comment { used: out.chars().count() + LAST, out, left: LeftOut::default() };
        comment.add_consequences(&self.consequences);
        for group in self.groups(VERBOSE) {
            comment.add_group(&group, self.is_short);
        }
        comment.out + &comment.left.sentence()
    }
}

/// A comment as far as it is written. GitHub refuses one that is too long, so each part is measured before it is added.
struct Comment {
    out: String,
    /// The number of characters that are taken, with those that are reserved.
    used: usize,
    left: LeftOut,
}

impl Comment {
    /// Takes the room for a text; false if there is not enough.
    fn fits(&mut self, text: &str) -> bool {
        let length = text.chars().count();
        let is_room = self.used + length <= MOST;
        self.used += if is_room { length } else { 0 };
        is_room
    }

    /// Adds a text if there is room; false if there is not.
    fn add(&mut self, text: &str) -> bool {
        let is_room = self.fits(text);
        self.out += if is_room { text } else { "" };
        is_room
    }

    /// Adds one line for each consequence, so that all of them fit before the first object takes the room.
    fn add_consequences(&mut self, all: &[Consequence]) {
        let left_out = all.iter().filter(|consequence| !self.add(&consequence_line(consequence))).count();
        self.left.consequences = left_out;
        if left_out < all.len() {
            self.out.push('\n');
        }
    }

    /// Adds the builds of a group with their objects.
    fn add_group(&mut self, group: &[&Compared], is_short: bool) {
        let (head, end) = (head(group), "</details>\n\n");
        // A build is not begun if its end would not fit: an open element would swallow the rest.
        if !self.fits(&(head.clone() + end)) {
            self.left.builds += 1;
            return;
        }
        self.out += &head;
        for object in &group[0].objects {
            // An object is shown with all of its lines, or only named: half of a diff misleads.
            if self.add(&object_lines(object, is_short)) {
                continue;
            }
            let is_named = self.add(&named(object, &format!(": {}", object.counts())));
            *if is_named { &mut self.left.lines } else { &mut self.left.objects } += 1;
        }
        self.out += end;
    }
}

/// The numbers of parts that did not fit.
#[derive(Default)]
struct LeftOut {
    consequences: usize,
    builds: usize,
    /// The objects of other builds that are not even named.
    objects: usize,
    /// The objects that are named without their lines.
    lines: usize,
}

impl LeftOut {
    /// The sentence at the end; empty if everything did fit.
    fn sentence(&self) -> String {
        let parts = present([
            (self.consequences, counted(self.consequences, "consequence")),
            (self.builds, counted(self.builds, "build")),
            (self.objects, counted(self.objects, "object")),
            (self.lines, format!("the lines of {}", counted(self.lines, "object"))),
        ]);
        match parts.split_last() {
            None => String::new(),
            Some((last, [])) => format!("Too long for a comment: left out {last}.\n"),
            Some((last, others)) => format!("Too long for a comment: left out {} and {last}.\n", others.join(", ")),
        }
    }
}

/// A consequence as an item of a list, with the object and the build that it is about.
fn consequence_line(consequence: &Consequence) -> String {
    let object = Some(&consequence.object).filter(|object| **object != consequence.target);
    let of = object.map_or(String::new(), |object| format!("{} of ", code(object)));
    inert(&format!("- {}: {of}{}: {}\n", code(consequence.id), code(&consequence.target), code(&consequence.text)))
}

/// The beginning of a group: the names of its builds with the causes, and why they could not be compared.
fn head(group: &[&Compared]) -> String {
    let count = match group[0].objects.len() {
        0 => String::new(),
        count => format!(" ({})", counted(count, "object")),
    };
    let unknown = group[0].unknown_lines(VERBOSE).into_iter().chain(built_by(group, VERBOSE));
    let unknown: String = unknown.map(|line| format!("<p>{}</p>\n\n", code(&line))).collect();
    let titles = titles(group).into_iter().map(|Title { name, why, .. }| format!("{}: {}", code(&name), code(&why)));
    let titles = first(titles, NAMED).join("<br>");
    inert(&format!("<details><summary>{titles}{count}</summary>\n\n{unknown}"))
}

/// An object by its name and its change, without the lines of its diff. `why` follows them.
fn named(object: &ObjectChange, why: &str) -> String {
    let was = object.was.as_ref().map_or(String::new(), |was| format!(", was {}", code(was)));
    inert(&format!("<p>{} {}{was}{why}</p>\n\n", object.change.name(), code(&object.id)))
}

/// An object with the lines of its diff, or only its name if `is_short`.
fn object_lines(object: &ObjectChange, is_short: bool) -> String {
    let named = named(object, "");
    if is_short {
        return named;
    }
    // The fence is longer than any run of backticks in the diff, so that no line of the diff can end the block.
    let longest = object.diff.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    // The text is made inert before it is counted, because that changes its length.
    inert(&format!("{named}{fence}diff\n{}{fence}\n\n", object.diff))
}

/// Text as code in HTML.
fn code(text: &str) -> String {
    // Markdown, links and mentions in such code are not interpreted.
    format!("<code>{}</code>", html(&visible(text)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::targets::affected::{Cause, DiffStatus};

    pub(in crate::commands::diff) fn build(name: &str, diffs: &[&str]) -> Compared {
        let change = |diff: &&str| ObjectChange {
            id: "v1 ConfigMap <b>@all".to_owned(),
            was: None,
            diff: (*diff).to_owned(),
            ..ObjectChange::default()
        };
        Compared {
            name: name.to_owned(),
            status: DiffStatus::Changed,
            cause: Some(Cause::Path(String::new())),
            because: "a`b&c\u{202e}".to_owned(),
            objects: diffs.iter().map(change).collect(),
            ..Compared::default()
        }
    }

    #[test]
    fn nothing_ends_its_fence_or_is_markup() {
        let diff = Diff { affected: 1, builds: vec![build("a</summary>", &["+```\n ````\n"])], ..Diff::default() };
        let text = diff.markdown();
        assert!(text.contains("\n`````diff\n+```\n ````\n`````\n"), "{text}");
        assert!(text.contains("<code>a&lt;/summary&gt;</code>: <code>a`b&amp;c\\u{202e}</code> (1 object)"), "{text}");
        assert!(text.contains("<code>v1 ConfigMap &lt;b&gt;@all</code>"), "{text}");
    }

    #[test]
    fn what_differs_alike_is_shown_once_wherever_it_stands() {
        let [first, other, unlike] = ["1,2 @@\n a\n-x\n+y\n", "5,2 @@\n b\n-x\n+y\n", "1,2 @@\n a\n-x\n+z\n"];
        let mut builds: Vec<Compared> =
            [first, other, unlike, HIDDEN, HIDDEN].map(|diff| build("a", &[&format!("@@ -{diff}")])).into();
        builds[3].objects[0].values.new = Some("hidden".into());
        let text = Diff { affected: 5, builds, ..Diff::default() }.markdown();
        assert_eq!(text.matches("<details>").count(), 4, "{text}");
    }

    /// An object whose lines are not shown may contain any difference.
    const HIDDEN: &str = "the difference is hidden: it may be in a Secret\n";

    #[test]
    fn a_comment_holds_whole_objects_and_counts_the_others() {
        let (small, large) = ("+x\n", "+y\n".repeat(30_000));
        let builds = vec![build("a", &[small, &large, small]), build("b", &[small])];
        let text = Diff { affected: 2, builds, ..Diff::default() }.markdown();
        assert_eq!(text.matches("+x\n").count(), 3);
        assert!(
            !text.contains("+y\n") && text.ends_with("Too long for a comment: left out the lines of 1 object.\n"),
            "{text}"
        );
        assert!(text.contains("</code>: 0 lines removed, 30000 added</p>"), "{text}");
        let many =
            (0..2_000).map(|number| build(&format!("apps/{number}"), &[&format!("+{number}\n").repeat(200)])).collect();
        let text = Diff { affected: 2_000, builds: many, ..Diff::default() }.markdown();
        assert!(text.chars().count() <= MOST && text.chars().count() > MOST * 9 / 10);
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
        assert_eq!(text.matches("```").count() % 2, 0);
    }
}
