//! A page for reviewers: the effects of a change on deployments, in one file that loads and runs nothing.
//!
//! Text from outside is put only between tags, never inside of a tag: [`html`] escapes everything that matters there.

use std::collections::BTreeSet;

use super::human::built_by;
use super::{Compared, Diff, Title, titles};
use crate::build::compare::ObjectChange;
use crate::build::consequences::Consequence;
use crate::commands::affected::unknown_lines;
use crate::commands::messages::{counted, html};
use crate::message::redact::visible;

const TEMPLATE: &str = include_str!("page.html");
/// The mark in the template that a part replaces.
const PART: &str = "<!-- part -->";
/// How many lines and bytes of an object are shown before somebody opens it: more is unreadable.
const LONG: [usize; 2] = [200, 20_000];
/// A page has room for everything, because a browser folds it.
const VERBOSE: bool = true;

impl Diff {
    /// The page: the list of builds on the left; beside it the images that moved, the consequences, what is not known,
    /// what is remote now, and the objects of each build.
    pub(super) fn html(&self) -> String {
        let groups = self.groups(VERBOSE);
        // The builds of a group have the same objects, so the first one stands for all.
        let objects = groups.iter().flat_map(|group| &group[0].objects);
        let kinds: BTreeSet<&str> = objects.map(|object| kind(&object.id)).filter(|kind| !kind.is_empty()).collect();
        let page = Page { groups, kinds: kinds.into_iter().collect(), is_short: self.is_short };
        let numbers = || 0..page.groups.len();
        let consequences = summary("Consequences", numbers().flat_map(|number| page.consequences(number)).collect());
        let unbuilt = unknown_lines(&self.unbuilt, &self.unread, VERBOSE);
        let unknown = unbuilt.lines().map(str::to_owned).chain(self.lock_warnings(VERBOSE));
        let unknown = summary("Not known", unknown.map(|line| item(&text(&line))).collect());
        let remote = self.now_remote.iter().map(|upstream| item(&text(&upstream.line()))).collect();
        let images = summary("Images", self.images.iter().map(|image| item(&text(&image.line()))).collect());
        let builds: String = numbers().map(|number| page.section(number)).collect();
        let main = images + &consequences + &unknown + &summary("Remote now", remote) + &builds;
        let (repository, sides) = (visible(&self.repository), self.sides());
        let title = text(&format!("What {repository} deploys: {sides}"));
        let [rules, build_options, kind_options] = page.filters();
        let entries = numbers().map(|number| page.entries(number)).collect();
        // The parts stand in the order of the marks in the template, which is filled in one pass: a mark in a text from
        // outside is not replaced.
        let counts = text(&self.counts(""));
        let parts = [title.clone(), rules, title, counts, build_options, kind_options, entries, main];
        let mut between = TEMPLATE.split(PART);
        let mut out = between.next().unwrap_or_default().to_owned();
        for (part, after) in parts.iter().zip(between) {
            out += part;
            out += after;
        }
        out
    }
}

/// A line, escaped for use between tags.
fn text(line: &str) -> String {
    html(&visible(line))
}

/// A name, escaped, in the font of code.
fn code(line: &str) -> String {
    format!("<code>{}</code>", text(line))
}

/// An item of a list.
fn item(content: &str) -> String {
    format!("<li>{content}</li>\n")
}

/// A box with these items; empty without items.
fn summary(title: &str, items: Vec<String>) -> String {
    if items.is_empty() {
        return String::new();
    }
    format!("<section class=\"summed\">\n<h2>{title}</h2>\n<ul>\n{}</ul>\n</section>\n", items.concat())
}

/// The kind of an object; empty for a document that is not an object.
fn kind(id: &str) -> &str {
    let mut words = id.splitn(3, ' ').skip(1);
    words.next().filter(|_| words.next().is_some()).unwrap_or_default()
}

/// The builds in the page, with the classes by which a browser filters them without a script: the Nth group of builds
/// that differ alike has `bN`, and the objects of the Nth kind have `kN`.
struct Page<'a> {
    groups: Vec<Vec<&'a Compared>>,
    /// In order, each once.
    kinds: Vec<&'a str>,
    /// Whether the objects are only named.
    is_short: bool,
}

impl Page<'_> {
    /// The filters by build and by kind of object: the CSS rules that hide what is not selected, the options for
    /// builds, and those for kinds.
    fn filters(&self) -> [String; 3] {
        let builds = (0..self.groups.len()).map(|number| hiding_rule(format!("b{number}"), ".build"));
        // The objects of a build that could not be compared may be of any kind.
        let kinds = (0..self.kinds.len())
            .map(|number| hiding_rule(format!("k{number}"), ":is(.build:not(.unknown-build), .object)"));
        let build_options = self.groups.iter().enumerate().flat_map(|(number, group)| {
            titles(group).into_iter().map(move |title: Title| option(format!("b{number}"), &title.name))
        });
        let kind_options = self.kinds.iter().enumerate().map(|(number, kind)| option(format!("k{number}"), kind));
        [builds.chain(kinds).collect(), build_options.collect(), kind_options.collect()]
    }

    /// The class by which the filter for kinds finds an object; empty for a document without a kind.
    fn kind(&self, object: &ObjectChange) -> String {
        self.kinds.binary_search(&kind(&object.id)).map_or(String::new(), |number| format!(" k{number}"))
    }

    /// The classes by which the filters find a group: its number, and the kinds of its objects.
    fn classes(&self, number: usize) -> String {
        let kinds: BTreeSet<String> = self.groups[number][0].objects.iter().map(|object| self.kind(object)).collect();
        let unknown = if self.groups[number][0].is_unknown() { " unknown-build" } else { "" };
        format!("build b{number}{}{unknown}", String::from_iter(kinds))
    }

    /// The entries of the table of contents for a group: a link for each of its builds.
    fn entries(&self, number: usize) -> String {
        let group = &self.groups[number];
        let classes = self.classes(number);
        let about = match group[0].objects.len() {
            _ if group[0].is_unknown() => "unknown".to_owned(),
            0 => String::new(),
            count => counted(count, "object"),
        };
        titles(group)
            .into_iter()
            .map(|title: Title| {
                let link = format!("<a href=\"#b{number}\">{}</a>", text(&title.name));
                format!("<li class=\"{classes}\">{link} <small>{about}</small></li>\n")
            })
            .collect()
    }

    /// The consequences of the differences of a group, one item each, with a link to the object that causes it.
    fn consequences(&self, number: usize) -> Vec<String> {
        let group = &self.groups[number];
        let build = group[0];
        let builds = match group.len() {
            1 => code(&build.name),
            count => format!("{} and {}", code(&build.name), counted(count - 1, "other")),
        };
        let line = |consequence: &Consequence| {
            let at = build.objects.iter().position(|object| object.id == consequence.object);
            let kind = at.map_or(String::new(), |at| self.kind(&build.objects[at]));
            // A consequence may be about the target itself, or about an object that is not shown, as those of a renamed
            // build.
            let object = match at {
                Some(at) => format!("<a href=\"#b{number}o{at}\">{}</a> of ", code(&consequence.object)),
                None if consequence.object == build.name => String::new(),
                None => format!("{} of ", code(&consequence.object)),
            };
            let [id, text] = [consequence.id, &consequence.text].map(text);
            format!("<li class=\"build b{number}{kind}\"><b>{id}</b>: {object}{builds}: {text}</li>\n")
        };
        build.consequences.iter().map(line).collect()
    }

    /// A group: the names of its builds, the causes or failures, and the objects.
    fn section(&self, number: usize) -> String {
        let group = &self.groups[number];
        let build = group[0];
        let titles = titles(group);
        let (class, first) = (self.classes(number), title_line(&titles[0]));
        let mut out = format!("<section class=\"{class}\" id=\"b{number}\">\n<h2>{first}</h2>\n");
        if let others @ [_, ..] = &titles[1..] {
            let alike = counted(others.iter().map(|title| title.builds).sum(), "more build");
            let others: String = others.iter().map(|title| item(&title_line(title))).collect();
            out += &format!("<details><summary>the same in {alike}</summary><ul>\n{others}</ul></details>\n");
        }
        out += &built_by(group, VERBOSE).map_or(String::new(), |by| format!("<p><small>{}</small></p>\n", text(&by)));
        let unknown: String =
            build.unknown_lines(VERBOSE).iter().map(|line| format!("<p>{}</p>\n", text(line))).collect();
        if !unknown.is_empty() {
            let about = "<summary>could not be compared</summary>";
            out += &format!("<details class=\"unknown\">{about}\n{unknown}</details>\n");
        }
        out += &build.consequences(None).map(consequence_line).collect::<String>();
        out + &(0..build.objects.len()).map(|at| self.object(number, at)).collect::<String>() + "</section>\n"
    }

    /// An object with its diff, closed if the diff is long. With `--stat` the diff is omitted.
    fn object(&self, number: usize, at: usize) -> String {
        let build = self.groups[number][0];
        let object = &build.objects[at];
        let was = object.was.as_ref().map_or(String::new(), |was| format!(" <small>was {}</small>", code(was)));
        // A browser does not lay out a closed element, so that a large page opens fast.
        let is_long = object.diff.lines().count() > LONG[0] || object.diff.len() > LONG[1];
        let (kind, open) = (self.kind(object), if is_long { "" } else { " open" });
        let mut out = format!("<details class=\"object{kind}\" id=\"b{number}o{at}\"{open}><summary>");
        let (change, counts) = (object.change.name(), object.counts());
        out += &format!(
            "<b class=\"{change}\">{change}</b> {}{was} <small>{counts}</small></summary>\n",
            code(&object.id)
        );
        out += &build.consequences(Some(&object.id)).map(consequence_line).collect::<String>();
        out += &if self.is_short { String::new() } else { runs(object) };
        out + "</details>\n"
    }
}

/// A title with its cause.
fn title_line(Title { name, why, .. }: &Title) -> String {
    format!("{} <span class=\"why\">{}</span>", code(name), text(why))
}

/// An option of a filter, which selects a class.
fn option(class: String, name: &str) -> String {
    format!("<option value=\"{class}\">{}</option>\n", text(name))
}

/// The rule that hides what lacks a class while its option is selected.
fn hiding_rule(class: String, hidden: &str) -> String {
    format!("body:has([value={class}]:checked) {hidden}:not(.{class}) {{ display: none; }}\n")
}

/// A consequence, above the object or build that it is about.
fn consequence_line(consequence: &Consequence) -> String {
    format!("<p class=\"consequence\"><b>{}</b>: {}</p>\n", text(consequence.id), text(&consequence.text))
}

/// The lines of a diff as runs of old and new lines, which a browser can show below or beside each other.
fn runs(object: &ObjectChange) -> String {
    // Old and new lines of one change belong to one run, so that they can stand beside each other.
    let lines: Vec<&str> = object.diff.lines().collect();
    let mut out = String::new();
    for run in lines.chunk_by(|line: &&str, next: &&str| {
        let kinds = (line_kind(line), line_kind(next));
        kinds.0 == kinds.1 || kinds == (Some(b'-'), Some(b'+'))
    }) {
        out += &match line_kind(run[0]) {
            Some(b'@') => preformatted(" class=\"hunk\"", run),
            // Lines that did not change are there twice: the second copy is shown only if the sides stand beside each
            // other.
            None => {
                format!("<div class=\"run\">{}{}</div>", preformatted("", run), preformatted(" class=\"copy\"", run))
            }
            _ => {
                let (old, new) = run.split_at(run.partition_point(|line| line.starts_with('-')));
                format!(
                    "<div class=\"run\">{}{}</div>",
                    preformatted(" class=\"old\"", old),
                    preformatted(" class=\"new\"", new)
                )
            }
        };
        out.push('\n');
    }
    out
}

/// Lines with their blanks and line ends, escaped.
fn preformatted(class: &str, lines: &[&str]) -> String {
    format!("<pre{class}>{}</pre>", html(&lines.join("\n")))
}

/// The kind of a line of a diff, by its first character; `None` if it did not change.
fn line_kind(line: &str) -> Option<u8> {
    line.bytes().next().filter(|first| b"-+@".contains(first))
}

#[cfg(test)]
mod tests {
    use super::super::markdown::tests::build;
    use super::*;
    use crate::reference::Upstream;

    /// Names and values that try to be more than text.
    const HOSTILE: &[&str] = &[
        "<script>alert(1)</script>",
        "</pre></details></main><img src=x onerror=alert(1)>",
        "\"><b onclick='x'>",
        "' onmouseover=x '",
        "<!-- part -->",
        "--><svg/onload=x>",
        "</style></title><base href=//evil.example>",
        "&lt;i&gt; &#60;i&#62; &amp;",
        "javascript:x",
        "<",
        "]]><?php",
    ];

    /// Reads a page as strictly as possible, independently of what writes it: the tags with their attributes in order,
    /// and the text between them. Every element is closed, and of an element without content it is known.
    fn read(page: &str) -> (Vec<String>, String) {
        let (mut tags, mut open, mut text, mut rest) = (Vec::new(), Vec::new(), String::new(), page);
        while let Some((before, after)) = rest.split_once('<') {
            let (tag, after) = after.split_once('>').expect("a tag ends");
            assert!(!before.contains('>') || open.last() == Some(&"style"), "{before}");
            text += before;
            let name = tag.split(' ').next().unwrap();
            assert!(name.trim_start_matches(['/', '!']).bytes().all(|byte| byte.is_ascii_alphanumeric()), "<{tag}>");
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name), "{before}"),
                None if ["!doctype", "meta", "input"].contains(&name) => {}
                None => open.push(name),
            }
            tags.push(tag.to_owned());
            rest = after;
        }
        assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
        (tags, text)
    }

    fn hostile() -> Diff {
        let builds = HOSTILE.iter().enumerate().map(|(number, name)| {
            let mut compared =
                build(name, &[&format!("@@ -1 +1 @@ {name}\n {name}\n-{name}\n+{name}\n{name}\n{number}\n")]);
            (compared.because, compared.built_by) = ((*name).to_owned(), Some((*name).to_owned()));
            compared.objects[0].was = Some((*name).to_owned());
            compared.objects[0].id = format!("v1 ConfigMap {name}");
            let consequence = |object: &str| Consequence {
                id: "privileged",
                object: object.to_owned(),
                target: (*name).to_owned(),
                built_by: None,
                text: (*name).to_owned(),
            };
            compared.consequences =
                vec![consequence(&compared.objects[0].id), consequence(name), consequence("other <i>")];
            compared
        });
        let builds: Vec<Compared> = builds.collect();
        let consequences = builds.iter().flat_map(|build| build.consequences.clone()).collect();
        let unlocked = HOSTILE.iter().map(|name| Upstream::Image { image: (*name).to_owned() }).collect();
        Diff { affected: 9, builds, consequences, unlocked, ..Diff::default() }
    }

    #[test]
    fn nothing_gets_out_of_its_element() {
        let (tame, diff) = (Diff::default().html(), hostile());
        let (mut known, _) = read(&tame);
        let more = "section class=\"summed\"|ul|li|b|code|small|details|summary|section class=\"build b# k#\" id=\"b#\"|\
             a href=\"#b#\"|a href=\"#b#o#\"|span class=\"why\"|p|p class=\"consequence\"|\
             details class=\"object k#\" id=\"b#o#\" open|option value=\"b#\"|option value=\"k#\"|\
             li class=\"build b#\"|li class=\"build b# k#\"|\
             b class=\"changed\"|div class=\"run\"|pre|pre class=\"hunk\"|pre class=\"old\"|pre class=\"new\"|\
             pre class=\"copy\"|/a|/b|/code|/details|/div|/h2|/li|/pre|/section|/small|/span|/summary|/ul|h2";
        known.extend(more.split('|').map(str::to_owned));
        let (tags, text) = read(&diff.html());
        let numbers = regex::Regex::new("(b|o|k)[0-9]+").unwrap();
        for tag in tags {
            let shape = numbers.replace_all(&tag, "$1#").into_owned();
            assert!(known.contains(&shape), "<{tag}>");
        }
        // Nothing is lost either, and nothing is more than text.
        let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
        for name in HOSTILE {
            assert!(text.matches(name).count() >= 12, "{name}");
        }
    }

    #[test]
    fn what_matters_most_comes_first_and_what_is_alike_once() {
        let mut builds = vec![build("a", &["+x\n"]), build("b", &["+x\n"]), build("c", &[&"+y\n".repeat(LONG[0] + 1)])];
        builds[2].consequences = vec![Consequence {
            id: "removed-pvc",
            object: builds[2].objects[0].id.clone(),
            target: "c".to_owned(),
            built_by: None,
            text: "gone".to_owned(),
        }];
        let consequences = builds[2].consequences.clone();
        let page = Diff { affected: 3, builds, consequences, ..Diff::default() }.html();
        assert_eq!(page.matches("<pre class=\"new\">+x</pre>").count(), 1, "{page}");
        assert_eq!((page.matches("href=\"#b0\"").count(), page.matches("href=\"#b1\"").count()), (2, 1));
        assert!(page.contains("<summary>the same in 1 more build</summary>"), "{page}");
        let [first, link, section] =
            ["<h2>Consequences</h2>", "href=\"#b1o0\"", "id=\"b0\""].map(|part| page.find(part).unwrap());
        assert!(first < link && link < section);
        // A long object is closed at first.
        assert!(page.contains("id=\"b0o0\" open>") && page.contains("id=\"b1o0\">"), "{page}");
        assert!(page.contains("3 objects (3 changed) in 3 of 3 affected builds, 1 consequence"), "{page}");
        assert!(Diff::default().html().contains("<p>no build is affected</p>"));
    }

    #[test]
    fn a_browser_filters_without_a_script_and_opens_what_is_closed() {
        let mut builds = vec![build("a", &["+x\n"]), build("b", &["+x\n"]), build("c", &[&"y".repeat(LONG[1] + 1)])];
        builds[2].objects[0].id = "apps/v1 Deployment <c>".to_owned();
        builds[2].not_built.new = vec![crate::message::failure::Failure::new("gone")];
        let page = Diff { affected: 3, builds, ..Diff::default() }.html();
        for part in [
            "body:has([value=b1]:checked) .build:not(.b1) { display: none; }\n\
             body:has([value=k0]:checked) :is(.build:not(.unknown-build), .object):not(.k0) { display: none; }\n",
            "All builds</option>\n<option value=\"b0\">a</option>\n<option value=\"b0\">b</option>\n\
             <option value=\"b1\">c</option>\n</select>",
            "All kinds</option>\n<option value=\"k0\">ConfigMap</option>\n<option value=\"k1\">Deployment</option>\n</select>",
            "<section class=\"build b1 k1 unknown-build\" id=\"b1\">",
            "<details class=\"unknown\"><summary>could not be compared</summary>\n<p>not built (new side): gone</p>\n</details>",
            "<details class=\"object k1\" id=\"b1o0\"><summary><b class=\"changed\">changed</b> \
             <code>apps/v1 Deployment &lt;c&gt;</code> <small>0 lines removed, 0 added</small></summary>",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
    }

    #[test]
    fn lines_stand_beside_what_they_were() {
        let object = ObjectChange { diff: "@@ x\n a\n-b\n-c\n+d\n-e\n f\n".to_owned(), ..ObjectChange::default() };
        let old = |old: &str, new: &str| {
            format!("<div class=\"run\"><pre class=\"old\">{old}</pre><pre class=\"new\">{new}</pre></div>\n")
        };
        let same = |line: &str| format!("<div class=\"run\"><pre>{line}</pre><pre class=\"copy\">{line}</pre></div>\n");
        let hunk = "<pre class=\"hunk\">@@ x</pre>\n";
        assert_eq!(runs(&object), [hunk, &same(" a"), &old("-b\n-c", "+d"), &old("-e", ""), &same(" f")].concat());
    }

    #[test]
    fn the_page_loads_and_runs_nothing() {
        assert!(TEMPLATE.contains(
            "content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\""
        ));
        for part in ["<script", "src=", "url(", "@import", "<link", "http:", "https:"] {
            assert!(!TEMPLATE.contains(part), "{part}");
        }
        assert_eq!(TEMPLATE.matches(PART).count(), 8);
    }
}
