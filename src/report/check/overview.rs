//! The overview of many findings: how many there are of what and from where, the first of each, and how to begin.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

use super::counted;
use crate::message::finding::{Finding, Rule, Severity, Span, Subject};
use crate::report::visible;

/// So many findings are shown one by one.
const MANY: usize = 20;
/// How many upstreams are named, and places of one URL.
const NAMED: usize = 10;
/// Of how many upstreams a finding is shown.
const SHOWN: usize = 3;
/// How the command begins that locks everything.
const LOCK: &str = "git kustomize-localize lock ";

/// Hosts whose repositories are `OWNER/NAME`, where the URLs of files say so, too.
const FORGES: [&str; 6] = [
    "bitbucket.org",
    "codeberg.org",
    "gist.githubusercontent.com",
    "github.com",
    "gitlab.com",
    "raw.githubusercontent.com",
];

/// Findings, of which there are many.
pub(super) struct Overview<'a> {
    /// How many there are.
    count: usize,
    /// The rules with their findings by severity, the commonest first.
    rules: Vec<(Rule, [usize; 2])>,
    /// The upstreams with the number of places that name them, the commonest first.
    upstreams: Vec<(String, usize)>,
    /// The first finding of each rule and of the commonest upstreams, in the order of the findings.
    pub(super) first: Vec<&'a Finding>,
    /// The help that locks everything.
    lock: Option<&'a str>,
    /// The URL that most findings name.
    url: Option<&'a str>,
    /// Where that is, but for the finding that is shown.
    places: Vec<String>,
}

impl<'a> Overview<'a> {
    /// Returns what to say first, unless there are few.
    pub(super) fn of(findings: &[&'a Finding]) -> Option<Overview<'a>> {
        if findings.len() <= MANY {
            return None;
        }
        let mut rules: BTreeMap<Rule, [usize; 2]> = BTreeMap::new();
        let mut upstreams: BTreeMap<String, HashSet<(&str, Option<Span>)>> = BTreeMap::new();
        let mut urls: HashMap<&str, usize> = HashMap::new();
        for finding in findings {
            let counts = rules.entry(finding.rule).or_default();
            counts[usize::from(finding.severity == Severity::Warning)] += 1;
            if let Some(upstream) = upstream(&finding.subject) {
                let place = (finding.path.as_str(), finding.span);
                upstreams.entry(upstream).or_default().insert(place);
                *urls.entry(&finding.reference).or_default() += 1;
            }
        }
        let mut rules = Vec::from_iter(rules);
        rules.sort_by_key(|(_, counts)| std::cmp::Reverse(counts[0] + counts[1]));
        let mut upstreams: Vec<(String, usize)> =
            upstreams.into_iter().map(|(upstream, places)| (upstream, places.len())).collect();
        upstreams.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let most = urls.into_iter().find(|(_, count)| count * 2 > findings.len());
        let url = most.map(|(url, _)| url);
        let first = first(findings, &upstreams);
        let is_url = |finding: &&&Finding| Some(finding.reference.as_str()) == url;
        let mut places: Vec<String> = findings.iter().filter(is_url).map(|one| place(one)).collect();
        places.dedup();
        let shown = first.iter().find(|one| is_url(one)).map(|one| place(one));
        places.retain(|place| Some(place) != shown.as_ref());
        let remote = findings.iter().filter(|finding| finding.rule == Rule::RemoteReference);
        let mut help = remote.flat_map(|finding| &finding.help);
        let lock = help.find_map(|line| {
            let command = line.split_once(": ").map_or("", |(_, command)| command);
            command.starts_with(LOCK).then_some(command)
        });
        Some(Overview { count: findings.len(), lock, rules, upstreams, first, url, places })
    }

    /// Returns the two tables, each row with a number and what it counts.
    pub(super) fn tables(&self) -> [(&'static str, Vec<(usize, String)>); 2] {
        let rules = self.rules.iter().map(|(rule, [errors, warnings])| {
            let severity = match (errors, warnings) {
                (_, 0) => "error",
                (0, _) => "warning",
                _ => "error and warning",
            };
            (errors + warnings, format!("{rule} ({severity})"))
        });
        let named = self.upstreams.iter().take(NAMED);
        let mut upstreams: Vec<(usize, String)> = named.map(|(upstream, count)| (*count, visible(upstream))).collect();
        if let rest @ [_, ..] = self.upstreams.get(NAMED..).unwrap_or_default() {
            let sum = rest.iter().map(|(_, count)| count).sum();
            upstreams.push((sum, format!("in {}", counted(rest.len(), "other upstream"))));
        }
        [("findings by rule", rules.collect()), ("places by upstream", upstreams)]
    }

    /// Returns what is said below the first findings: where else the commonest URL is, and what was left out.
    pub(super) fn rest(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(url) = self.url.filter(|_| !self.places.is_empty()) {
            let count = counted(self.places.len(), "other place");
            lines.push(format!("`{}` stands in {count}:", visible(url)));
            let named = self.places.iter().take(NAMED);
            lines.extend(named.map(|place| format!("  {}", visible(place))));
            if let more @ 1.. = self.places.len().saturating_sub(NAMED) {
                lines.push(format!("  and {more} more"));
            }
        }
        if let left_out @ 1.. = self.count - self.first.len() {
            let findings = counted(left_out, "more finding");
            lines.push(format!("{findings} not shown here: -v shows everything"));
        }
        lines
    }

    /// Returns how to begin, a line each.
    pub(super) fn begin(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(command) = self.lock {
            lines.push(format!("keep the URLs, and lock what they are now: {command}"));
        }
        lines.push("or let everything stay as it is: git kustomize-localize check --add-allow".to_owned());
        lines
    }

    /// Returns the tables as text.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        for (name, rows) in self.tables() {
            if rows.is_empty() {
                continue;
            }
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{name}:");
            let most = rows.iter().map(|(count, _)| *count).max();
            let width = most.unwrap_or_default().to_string().len();
            for (count, what) in rows {
                let _ = writeln!(out, "  {count:>width$}  {what}");
            }
            out.push('\n');
        }
        out
    }
}

/// Returns the first finding of each rule, and one of each of the commonest upstreams.
fn first<'a>(findings: &[&'a Finding], upstreams: &[(String, usize)]) -> Vec<&'a Finding> {
    let mut rules = HashSet::new();
    let mut wanted: HashSet<&str> = upstreams.iter().take(SHOWN).map(|(upstream, _)| upstream.as_str()).collect();
    let is_first = |finding: &&&Finding| {
        let is_wanted = upstream(&finding.subject).is_some_and(|one| wanted.remove(one.as_str()));
        rules.insert(finding.rule) || is_wanted
    };
    findings.iter().filter(is_first).copied().collect()
}

/// Returns the URL of what a finding is about without a path in it.
fn upstream(subject: &Subject) -> Option<String> {
    match subject {
        // An image has no URL.
        Subject::Local | Subject::Path { .. } | Subject::Program { .. } | Subject::Image { .. } => None,
        Subject::Git { url, .. } | Subject::Helm { url, .. } => Some(url.clone()),
        Subject::Http { url } => {
            let (scheme, rest) = url.split_once("://")?;
            let rest = rest.split(['?', '#']).next().unwrap_or_default();
            let mut names = rest.split('/').filter(|name| !name.is_empty());
            let host = names.next()?;
            let is_forge = FORGES.iter().any(|forge| forge.eq_ignore_ascii_case(host));
            let depth = if is_forge { 2 } else { 0 };
            let names = std::iter::once(host).chain(names.take(depth));
            Some(format!("{scheme}://{}", Vec::from_iter(names).join("/")))
        }
    }
}

fn place(finding: &Finding) -> String {
    match finding.span {
        Some(span) => format!("{}:{}:{}", finding.path, span.line, span.column),
        None => finding.path.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Checked;
    use crate::check::testing::Scene;
    use crate::report::check::human::{Shown, human};
    use crate::report::check::{github, github_summary};

    const BRIEF: Shown = Shown { overview: true, verbose: false, quiet: false, color: false };

    /// Finds one reference in each of many roots: the first ones name one URL, the last a path, the others each their
    /// own on two hosts.
    fn many(count: usize, of_one: usize) -> Checked {
        let one = |scene: Scene, index: usize| {
            let reference = match index {
                _ if index == count - 1 => "gone.yaml".to_owned(),
                _ if index < of_one => "https://raw.githubusercontent.com/o/r/v1/x.yaml".to_owned(),
                _ => format!("https://h{}.example/{index}.yaml", index % 2),
            };
            let root = format!("app{index:03}/kustomization.yaml");
            scene.file(&root, &format!("resources: ['{reference}']\n"))
        };
        (0..count).fold(Scene::default(), one).check()
    }

    #[test]
    fn few_are_shown_one_by_one() {
        let few = many(MANY, 0);
        assert_eq!(human(&few, BRIEF), human(&few, Shown::default()));
        let more = many(MANY + 1, 0);
        let all = human(&more, Shown::default());
        assert_eq!(all.matches("error[").count(), MANY + 1);
        for shown in [Shown { verbose: true, ..BRIEF }, Shown { quiet: true, ..BRIEF }] {
            let text = human(&more, shown);
            assert_eq!(text.matches("error[").count(), MANY + 1);
        }
    }

    #[test]
    fn many_findings_begin_with_tables_and_end_with_help() {
        let text = human(&many(120, 0), BRIEF);
        let begin = "findings by rule:\n  119  remote-reference (error)\n    1  missing-path (error)\n\n\
                     places by upstream:\n  60  https://h0.example\n  59  https://h1.example\n\n";
        assert!(text.starts_with(begin), "{text}");
        // The first of each rule and upstream.
        assert_eq!(text.matches("error[").count(), 3, "{text}");
        let end = "117 more findings not shown here: -v shows everything\n\n\
            to begin:\n  \
            keep the URLs, and lock what they are now: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock\n  \
            or let everything stay as it is: git kustomize-localize check --add-allow\n\n\
            note: same fix as above where none is shown: -v shows all\n\
            for more: git kustomize-localize explain remote-reference missing-path\n\
            checked 120 kustomizations with 120 references in the index: 120 errors\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn a_url_is_listed_once_with_its_places() {
        let text = human(&many(40, 30), BRIEF);
        assert_eq!(text.matches("v1/x.yaml` is a remote file").count(), 1, "{text}");
        let places = "`https://raw.githubusercontent.com/o/r/v1/x.yaml` stands in 29 other places:\n  app001/kustomization.yaml:";
        assert!(text.contains(places), "{text}");
        assert!(text.contains("\n  and 19 more\n"), "{text}");
        assert!(text.contains("  30  https://raw.githubusercontent.com/o/r\n"));
        assert!(!text.contains("app020/"), "{text}");
    }

    #[test]
    fn upstreams_beyond_the_commonest_are_counted() {
        let urls: String = (0..32).map(|n| format!("- https://github.com/o/r{n}//base\n")).collect();
        let text = human(&Scene::of(&format!("resources:\n{urls}")).check(), BRIEF);
        assert!(text.contains("  22  in 22 other upstreams\n"), "{text}");
    }

    #[test]
    fn the_summary_of_github_is_brief_and_its_log_is_not() {
        let many = many(120, 0);
        let summary = github_summary(&many, false);
        assert_eq!(summary.matches("<td>error</td>").count(), 3, "{summary}");
        for part in [
            "<td>119</td><td><code>remote-reference (error)</code></td>",
            "<td>60</td><td><code>https://h0.example</code></td>",
            "117 more findings",
        ] {
            assert!(summary.contains(part), "{part}: {summary}");
        }
        let all = github_summary(&many, true);
        assert_eq!(all.matches("<td>error</td>").count(), 120);
        let log = github(&many, Shown::default());
        assert_eq!(log.matches("error[").count(), 120);
    }
}
