//! A page for reviewers: the effects of a change on deployments, in one file that loads and runs nothing.
//!
//! Text from outside is put only between tags, never inside of a tag: [`html`] escapes everything that matters there.

use super::human::built_by;
use super::{Compared, Diff, titles};
use crate::build::compare::ObjectChange;
use crate::build::consequences::Consequence;
use crate::commands::affected::unknown;
use crate::commands::messages::{counted, html};
use crate::message::redact::visible;

const TEMPLATE: &str = include_str!("page.html");
/// The mark in the template that a part replaces.
const PART: &str = "<!-- part -->";
/// How many lines of an object are shown before somebody opens it.
const LONG: usize = 200;

impl Diff {
    /// The page: the builds on the left, then the consequences of the change, the unknown builds, and the objects.
    pub(super) fn html(&self) -> String {
        let groups = self.groups(true);
        let named: String = groups.iter().enumerate().map(|(number, group)| entries(number, group)).collect();
        let consequences = groups.iter().enumerate().flat_map(|(number, group)| summed(number, group));
        let consequences = summary("Consequences", consequences.collect());
        let unbuilt = unknown(&self.unbuilt, &self.unread, true);
        let unknown = unbuilt.lines().map(str::to_owned).chain(self.unlocked(true));
        let unknown = summary("Not known", unknown.map(|line| text(&line)).collect());
        let remote = self.now_remote.iter().map(|upstream| text(&upstream.line())).collect();
        let builds = groups.iter().enumerate().map(|(number, group)| section(number, group, self.is_short));
        let images = summary("Images", self.images.iter().map(|one| text(&one.line())).collect());
        let main = images + &consequences + &unknown + &summary("Remote now", remote) + &builds.collect::<String>();
        let [repository, sides] = self.sides();
        let title = text(&format!("What {repository} deploys: {sides}"));
        let mut rest = TEMPLATE.split(PART);
        let mut out = rest.next().unwrap_or_default().to_owned();
        for (part, rest) in [title.clone(), title, text(&self.counts()), named, main].iter().zip(rest) {
            out += part;
            out += rest;
        }
        out
    }
}

/// A line, escaped for use between tags.
fn text(line: &str) -> String {
    html(&visible(line))
}

fn code(line: &str) -> String {
    format!("<code>{}</code>", text(line))
}

/// The links to a group, one for each of its builds.
fn entries(number: usize, group: &[&Compared]) -> String {
    let about = match group[0].objects.len() {
        _ if group[0].is_unknown() => "unknown".to_owned(),
        0 => String::new(),
        count => counted(count, "object"),
    };
    titles(group)
        .into_iter()
        .map(|[name, _]: [String; 2]| {
            format!("<li><a href=\"#b{number}\">{}</a> <small>{about}</small></li>\n", text(&name))
        })
        .collect()
}

/// A box with these lines; empty without lines.
fn summary(title: &str, lines: Vec<String>) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let items: String = lines.iter().map(|line| format!("<li>{line}</li>\n")).collect();
    format!("<section class=\"summed\">\n<h2>{title}</h2>\n<ul>\n{items}</ul>\n</section>\n")
}

/// The consequences of the differences of a group, one line each.
fn summed(number: usize, group: &[&Compared]) -> Vec<String> {
    let build = group[0];
    let builds = match group.len() {
        1 => code(&build.name),
        count => format!("{} and {}", code(&build.name), counted(count - 1, "other")),
    };
    let line = |consequence: &Consequence| {
        let at = build.objects.iter().position(|object| object.id == consequence.object);
        let object = at.map(|at| format!("<a href=\"#b{number}o{at}\">{}</a> of ", code(&consequence.object)));
        let object =
            object.or_else(|| (consequence.object != build.name).then(|| format!("{} of ", code(&consequence.object))));
        format!("<b>{}</b>: {}{builds}: {}", text(consequence.id), object.unwrap_or_default(), text(&consequence.text))
    };
    build.consequences.iter().map(line).collect()
}

/// A group: the names of its builds, the causes or failures, and the objects.
fn section(number: usize, group: &[&Compared], is_short: bool) -> String {
    let build = group[0];
    let title = |[name, why]: &[String; 2]| format!("{} <span class=\"why\">{}</span>", code(name), text(why));
    let titles: Vec<String> = titles(group).iter().map(title).collect();
    let mut out = format!("<section id=\"b{number}\">\n<h2>{}</h2>\n", titles[0]);
    if let alike @ 1.. = titles.len() - 1 {
        let others: String = titles[1..].iter().map(|title| format!("<li>{title}</li>\n")).collect();
        let alike = counted(alike, "more build");
        out += &format!("<details><summary>the same in {alike}</summary><ul>\n{others}</ul></details>\n");
    }
    out += &built_by(group, true).map_or(String::new(), |by| format!("<p><small>{}</small></p>\n", text(&by)));
    out += &build
        .unknown(true)
        .iter()
        .map(|line| format!("<p class=\"unknown\">{}</p>\n", text(line)))
        .collect::<String>();
    out += &build.consequences(None).map(consequence_line).collect::<String>();
    for (at, object) in build.objects.iter().enumerate() {
        let was = object.was.as_ref().map_or(String::new(), |was| format!(" <small>was {}</small>", code(was)));
        let open = if object.diff.lines().count() > LONG { "" } else { " open" };
        let change = object.change.name();
        out += &format!("<details class=\"object\" id=\"b{number}o{at}\"{open}><summary>");
        out += &format!("<b class=\"{change}\">{change}</b> {}{was}</summary>\n", code(&object.id));
        out += &build.consequences(Some(&object.id)).map(consequence_line).collect::<String>();
        out += &if is_short { String::new() } else { runs(object) };
        out += "</details>\n";
    }
    out + "</section>\n"
}

fn consequence_line(consequence: &Consequence) -> String {
    format!("<p class=\"consequence\"><b>{}</b>: {}</p>\n", text(consequence.id), text(&consequence.text))
}

/// The lines of a diff as runs of old and new lines, which a browser can show below or beside each other.
fn runs(object: &ObjectChange) -> String {
    let lines: Vec<&str> = object.diff.lines().collect();
    let kind = |line: &str| line.bytes().next().filter(|first| b"-+@".contains(first));
    let pre = |class: &str, lines: &[&str]| format!("<pre{class}>{}</pre>", html(&lines.join("\n")));
    let mut out = String::new();
    for run in lines.chunk_by(|line: &&str, next: &&str| {
        let kinds = (kind(line), kind(next));
        kinds.0 == kinds.1 || kinds == (Some(b'-'), Some(b'+'))
    }) {
        out += &match kind(run[0]) {
            Some(b'@') => pre(" class=\"hunk\"", run),
            None => format!("<div class=\"run\">{}{}</div>", pre("", run), pre(" class=\"copy\"", run)),
            _ => {
                let (old, new) = run.split_at(run.partition_point(|line| line.starts_with('-')));
                format!("<div class=\"run\">{}{}</div>", pre(" class=\"old\"", old), pre(" class=\"new\"", new))
            }
        };
        out.push('\n');
    }
    out
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

    /// Reads a page as strictly as possible, independently of what writes it: the tags with their attributes in order, and
    /// the text between them. Every element is closed, and of an element without content it is known.
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
        let more = "section class=\"summed\"|ul|li|b|code|small|details|summary|section id=\"b#\"|a href=\"#b#\"|\
             a href=\"#b#o#\"|span class=\"why\"|p|p class=\"consequence\"|details class=\"object\" id=\"b#o#\" open|\
             b class=\"changed\"|div class=\"run\"|pre|pre class=\"hunk\"|pre class=\"old\"|pre class=\"new\"|\
             pre class=\"copy\"|/a|/b|/code|/details|/div|/h2|/li|/pre|/section|/small|/span|/summary|/ul|h2";
        known.extend(more.split('|').map(str::to_owned));
        let (tags, text) = read(&diff.html());
        let numbers = regex::Regex::new("(b|o)[0-9]+").unwrap();
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
        let mut builds = vec![build("a", &["+x\n"]), build("b", &["+x\n"]), build("c", &[&"+y\n".repeat(LONG + 1)])];
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
        // What is long is opened by who wants it.
        assert!(page.contains("id=\"b0o0\" open>") && page.contains("id=\"b1o0\">"), "{page}");
        assert!(page.contains("3 objects (3 changed) in 3 of 3 affected builds, 1 consequence"), "{page}");
        assert!(Diff::default().html().contains("<p>no build is affected</p>"));
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
        assert_eq!(TEMPLATE.matches(PART).count(), 5);
    }
}
