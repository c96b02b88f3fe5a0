//! `update`: the entries of a lock that are resolved again, and those that must not have moved.

use std::collections::{BTreeMap, BTreeSet};

use super::Changes;
use super::files::edited;
use crate::graph::{ChartRef, ExpectedContent, Noted, RemoteRef, WalkPolicy};
use crate::kustomization::{Edit, NoteKind, Reference};
use crate::message::failure::{Failure, Failures, Result, command, listed, short};
use crate::message::redact;
use crate::record::{ChangeKind, Lock, LockChange};
use crate::reference::{self, RepoSpec, Upstream};
use crate::tree::path;
use crate::workspace::Workspace;

/// The sources of the lock that `urls`, the arguments of `update`, name; all if there are none.
///
/// A URL names an entry by its own URL, with or without a ref; by the beginning of it, up to a `/`; and by a reference
/// of a kustomization that leads to it. The scheme may be omitted.
///
/// Fails for every URL that names no entry, with the most similar entry.
pub(crate) fn select(lock: &Lock, urls: &[String]) -> Result<BTreeSet<Upstream>, Failures> {
    if urls.is_empty() {
        return Ok(lock.remotes.keys().cloned().collect());
    }
    let (mut selected, mut unknown) = (BTreeSet::new(), Vec::new());
    for url in urls.iter().map(|url| UrlArgument::of(url)) {
        let mut sources = lock.remotes.keys().filter(|source| url.is_of_reference(&source.to_string())).peekable();
        if sources.peek().is_none() {
            unknown.push(no_entry(lock, &url.shown));
        }
        selected.extend(sources.cloned());
    }
    // All at once, and before any request: an argument that names no entry is a typing error.
    Failures::if_any(unknown)?;
    Ok(selected)
}

/// A URL on the command line, which may be the beginning of one.
pub(crate) struct UrlArgument {
    shown: String,
    /// The prefixes of URLs that it names, each with the ref if one is given.
    prefixes: Vec<(String, Option<String>)>,
}

impl UrlArgument {
    /// Parses a URL with or without its scheme and ref, or the beginning of one.
    pub(crate) fn of(url: &str) -> UrlArgument {
        // A chart is written as `REPOSITORY#NAME`. Its name is shown; any other fragment could be a secret.
        if let Some((repository, chart)) = url.split_once('#')
            && is_chart(chart)
        {
            let shown = format!("{}#{chart}", redact::url(repository));
            let prefixes = vec![(bare(&shown).to_owned(), None)];
            return UrlArgument { shown, prefixes };
        }
        let shown = redact::url(url);
        let mut prefixes = vec![(bare(&shown).to_owned(), None)];
        // A git URL also names its repository, at the ref if it has one.
        if let Ok(spec) = RepoSpec::parse(url) {
            let repository = spec.clone_spec().shown();
            prefixes.push((bare(&repository).to_owned(), spec.reference));
        }
        // A scheme alone would be the beginning of every path.
        prefixes.retain(|(prefix, _)| !prefix.is_empty());
        UrlArgument { shown, prefixes }
    }

    /// Whether it names the upstream of a reference. `url` is the text of the reference without secrets.
    pub(crate) fn is_of_reference(&self, url: &str) -> bool {
        let named = UrlArgument::of(url);
        self.prefixes.iter().any(|(prefix, wanted)| {
            bare(&named.shown) == prefix
                || named.prefixes.iter().any(|(other, reference): &(String, Option<String>)| {
                    begins(other, prefix) && (wanted.is_none() || wanted == reference)
                })
        })
    }
}

/// Whether the text after `#` is the name of a chart, with or without a version. Any other text could be a secret.
fn is_chart(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 100
        && text.chars().all(|character: char| character.is_ascii_alphanumeric() || "._-@+^~*".contains(character))
}

/// A URL without its optional parts: the scheme, and a `/` or `.git` at its end.
fn bare(url: &str) -> &str {
    let url = url.split_once("://").map_or(url, |(_, rest)| rest);
    let url = url.trim_end_matches('/');
    url.strip_suffix(".git").unwrap_or(url)
}

/// Whether `url` is `prefix`, or continues it with a path, a query, a chart, or the version of a chart. A query is the
/// end: a `/` after it belongs to the name of a ref.
fn begins(url: &str, prefix: &str) -> bool {
    url.strip_prefix(prefix).is_some_and(|rest| {
        rest.is_empty()
            || !prefix.contains('?') && rest.starts_with(['/', '?', '#'])
            || prefix.contains('#') && rest.starts_with('@')
    })
}

/// The failure of a URL that names no entry, with the most similar entries first.
fn no_entry(lock: &Lock, shown: &str) -> Failure {
    let mut labels: Vec<String> = lock.remotes.keys().map(ToString::to_string).collect();
    labels.sort_by_key(|label| strsim::levenshtein(bare(label), bare(shown)));
    Failure::new(format!("no entry of the lock matches `{shown}`")).hint(match labels.as_slice() {
        [] => "it has none; list the references: git kustomize-localize tree".to_owned(),
        _ => format!("it contains {}", listed(&labels)),
    })
}

/// The source as a reference of the user. `None` for a chart or an image, or if no text would be parsed as this source.
pub(crate) fn as_reference(source: &Upstream) -> Option<RemoteRef> {
    let (wants, spec) = match source {
        Upstream::File { .. } => (ExpectedContent::File, None),
        Upstream::Git { .. } => (ExpectedContent::Root, Some(spec_of(source)?)),
        Upstream::Chart { .. } | Upstream::Image { .. } => return None,
    };
    let is_page = reference::names_page(source.url());
    Some(RemoteRef { text: source.to_string().into(), wants, spec, by: None, is_page })
}

/// The lock without some entries, so that they are resolved again.
pub(crate) fn without(lock: &Lock, selected: &BTreeSet<Upstream>) -> Lock {
    let mut lock = lock.clone();
    lock.remotes.retain(|source, _| !selected.contains(source));
    lock
}

/// The lock without the stored files of the `selected` entries, so that these are fetched and not taken from disk.
pub(crate) fn without_files(lock: &Lock, selected: &BTreeSet<Upstream>) -> Lock {
    let mut lock = lock.clone();
    lock.files.retain(|file| file.remote.as_ref().is_none_or(|source| !selected.contains(source)));
    lock
}

/// Whether files of some entries are stored in the tree, so that an update must write them again.
pub(crate) fn is_stored(lock: &Lock, selected: &BTreeSet<Upstream>) -> bool {
    lock.files.iter().any(|file| file.remote.as_ref().is_some_and(|source| selected.contains(source)))
}

/// The directory of a repository as kustomize parses its text. `None` if kustomize would parse something else.
pub(crate) fn spec_of(upstream: &Upstream) -> Option<RepoSpec> {
    let spec = RepoSpec::parse(&upstream.to_string()).ok()?;
    (Upstream::git(&spec) == *upstream).then_some(spec)
}

/// The sources that should never change, such as a tag, and that did: each with the failure for which `update` keeps
/// its entry. `is_version` tells which should not.
pub(crate) fn moved_versions(
    changes: &[LockChange],
    is_version: impl Fn(&Upstream) -> bool,
) -> impl Iterator<Item = (Upstream, Failure)> {
    changes.iter().filter(move |change| is_version(&change.upstream)).filter_map(|change| {
        let LockChange { kind: ChangeKind::Moved, upstream, old: Some(old), new: Some(new), .. } = change else {
            return None;
        };
        let (old, new) = (short(old.hex()), short(new.hex()));
        let failure = Failure::new(format!("{upstream} moved: {old} -> {new}; the lock keeps {old}"));
        let update = command("git kustomize-localize update", [upstream.to_string()]);
        Some((upstream.clone(), failure.hint(format!("find out why; if it is intended: {update}"))))
    })
}

/// A remote reference whose ref or version can be written.
pub(crate) enum Versioned<'a> {
    Repository(&'a RepoSpec),
    Chart(&'a ChartRef),
}

impl Versioned<'_> {
    /// The source under which the lock has it.
    pub(crate) fn source(&self) -> Upstream {
        match self {
            Versioned::Repository(spec) => Upstream::git(spec).source(),
            Versioned::Chart(chart) => chart.upstream(),
        }
    }
}

/// The ref or version that a reference should name. `None` if it should not change.
pub(crate) type NewRef<'a> = dyn FnMut(&Versioned<'_>) -> Result<Option<String>> + 'a;

/// The edits that give references a new ref or version: those that `urls` name and that are below `paths`. An empty
/// list selects all.
pub(crate) fn with_new_refs(
    workspace: &Workspace,
    urls: &[UrlArgument],
    paths: &[String],
    new_ref: &mut NewRef<'_>,
) -> Result<Changes> {
    let starts = super::starts(workspace)?;
    let no_lock = Lock::default();
    let lock = workspace.lock.as_deref().unwrap_or(&no_lock);
    // The walk has no lock and no exceptions: a reference that stays remote has a ref that can be raised, too.
    let graph = &workspace.survey().judged(&starts, &WalkPolicy::default()).graph;
    let mut edits: BTreeMap<&str, Vec<Edit<'_>>> = BTreeMap::new();
    // An argument that selects nothing is an error, or else a typing error would look like success.
    let mut is_named = false;
    for chart in &graph.charts {
        let Noted { file, note, .. } = &graph.notes[chart.note];
        let (Some(wanted), Some(file)) = (&chart.wanted, graph.user_path(*file)) else { continue };
        if !is_selected(urls, paths, &wanted.upstream().to_string(), file) {
            continue;
        }
        is_named = true;
        let located = |failure: Failure| failure.at(graph.note_location(chart.note));
        if let Some(to) = new_ref(&Versioned::Chart(wanted)).map_err(located)? {
            edits.entry(file).or_default().extend(with_version(wanted, &note.kind, &to).map_err(located)?);
        }
    }
    for edge in graph.roots.iter().flat_map(|root| &root.edges) {
        // A URL of a file may parse as a repository, but has no ref that could be written.
        let spec = edge.remote.as_ref().and_then(|wanted| wanted.repository_by(lock));
        let (Some(spec), Some(file)) = (spec, graph.user_path(edge.from)) else {
            continue;
        };
        if !is_selected(urls, paths, &redact::url(&edge.reference.text), file) {
            continue;
        }
        is_named = true;
        let located = |failure: Failure| failure.at(graph.location(edge));
        if let Some(to) = new_ref(&Versioned::Repository(spec)).map_err(located)? {
            // A selected file is listed even without an edit: the localized files below it are written again, too.
            edits.entry(file).or_default().extend(with_new_ref(&edge.reference, spec, &to).map_err(located)?);
        }
    }
    if !urls.is_empty() && !is_named {
        let in_paths = if paths.is_empty() { "" } else { " there" };
        return Err(Failure::new(format!(
            "no kustomization{in_paths} references a git repository or chart with this URL"
        ))
        .hint("list the references: git kustomize-localize tree"));
    }
    let files = edits.into_iter().map(|(path, edits)| {
        let file = edited(&*workspace.tree, path, &edits)?;
        Ok((path.to_owned(), Some(file)))
    });
    files.collect()
}

/// The edit that gives a chart another version. `None` if the chart has it already.
fn with_version<'a>(chart: &ChartRef, note: &'a NoteKind, to: &str) -> Result<Option<Edit<'a>>> {
    if chart.version == to {
        return Ok(None);
    }
    ChartRef { version: to.to_owned(), ..chart.clone() }.refuse_unsafe()?;
    let NoteKind::Chart { version_at: Some(spot), .. } = note else {
        let failure = Failure::new(format!("{} has no version to write another one over", chart.upstream()));
        return Err(failure.hint(format!("write `version: {to}` there")));
    };
    Ok(Some(Edit { spot, value: to.to_owned() }))
}

/// The edit that gives a reference to a repository another ref. `None` if the reference has it already.
fn with_new_ref<'a>(reference: &'a Reference, spec: &RepoSpec, to: &str) -> Result<Option<Edit<'a>>> {
    let text = &reference.text;
    // kustomize ignores a ref in some spellings of a URL, so each edit is read back.
    let new = with_ref(text, spec, to)
        .ok_or_else(|| Failure::new(format!("`{}` cannot be written with the ref `{to}`", redact::url(text))))?;
    Ok((new != *text).then(|| Edit { spot: &reference.spot, value: reference.with_path(&new) }))
}

/// Whether a reference of `file` is one that `urls` name, below `paths`. An empty list selects all.
fn is_selected(urls: &[UrlArgument], paths: &[String], reference: &str, file: &str) -> bool {
    let is_named = urls.is_empty() || urls.iter().any(|url| url.is_of_reference(reference));
    is_named && path::is_in_any(file, paths)
}

/// A reference with another ref. `None` if kustomize would parse it differently.
fn with_ref(text: &str, spec: &RepoSpec, to: &str) -> Option<String> {
    let (location, query) = text.split_once('?').unwrap_or((text, ""));
    let mut parts: Vec<String> = query.split('&').map(str::to_owned).collect();
    parts.retain(|part| !part.is_empty());
    // The ref goes into a query, where characters such as `&` must be escaped.
    let written = reference::escaped(to);
    // kustomize reads `version` only if there is no `ref`.
    let position = |key: &str| parts.iter().position(|part| part.starts_with(key));
    let keys = ["ref=", "version="].into_iter();
    match keys.filter_map(|key| Some((position(key)?, key))).next() {
        Some((index, key)) => parts[index] = format!("{key}{written}"),
        None => parts.insert(0, format!("ref={written}")),
    }
    let new = format!("{location}?{}", parts.join("&"));
    let read = RepoSpec::parse(&new).ok()?;
    // The new text is parsed again, because kustomize splits a query by rules of its own, and ignores all of a query
    // that it cannot parse.
    let is_same = read.reference.as_deref() == Some(to)
        && !read.query_dropped
        && read.clone_spec() == spec.clone_spec()
        && read.directory() == spec.directory()
        && read.submodules == spec.submodules;
    (is_same && reference::refuse_unsafe(&new, Some(&read)).is_ok()).then_some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> Lock {
        let git =
            |url: &str, reference: &str| format!("- {{url: \"{url}\"{reference}, commit: \"{}\"}}\n", "0".repeat(40));
        let file = |url: &str| format!("- {{url: \"{url}\", sha256: \"{}\", size: 1}}\n", "0".repeat(64));
        let entries = [
            git("https://github.com/acme/lib", ", ref: v1"),
            git("https://github.com/acme/lib", ", ref: main"),
            git("https://github.com/acme/library", ""),
            git("git@example.com:team/repo.git", ", ref: v1"),
            git("git@example.com:team/repo.git", ", ref: v1/next"),
            git("file:///srv/lib", ", ref: v1"),
            file("https://files.example.com/v1/app.yaml"),
            file("https://files.example.com/v10/app.yaml"),
        ];
        let text = format!("version: 1\nremotes:\n{}", entries.concat());
        Lock::parse(text.as_bytes(), "x").unwrap()
    }

    fn selected(url: &str) -> Vec<String> {
        let selected = select(&lock(), &[url.to_owned()]);
        selected.map_or(Vec::new(), |sources| sources.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_url_names_what_it_is_or_begins() {
        let lib = ["https://github.com/acme/lib?ref=main", "https://github.com/acme/lib?ref=v1"];
        assert_eq!(selected("https://github.com/acme/lib"), lib);
        assert_eq!(selected("https://github.com/acme/lib.git"), lib);
        assert_eq!(selected("github.com/acme/lib/"), lib);
        assert_eq!(selected("https://github.com/acme/lib?ref=v1"), lib[1..]);
        assert_eq!(selected("https://github.com/acme/lib//web?ref=main"), lib[..1]);
        assert_eq!(selected("https://github.com/acme").len(), 3);
        assert_eq!(selected("github.com").len(), 3);
        assert_eq!(selected("https://files.example.com/v1"), ["https://files.example.com/v1/app.yaml"]);
        let repo = ["git@example.com:team/repo.git?ref=v1", "git@example.com:team/repo.git?ref=v1/next"];
        assert_eq!(selected("git@example.com:team/repo"), repo);
        assert_eq!(selected(repo[0]), repo[..1]);
        assert_eq!(select(&lock(), &[]).unwrap().len(), lock().remotes.len());
        for nothing in ["https://github.com/ac", "https://github.com/acme/lib?ref=v2", "x", "", "https://", "file:///"]
        {
            assert_eq!(selected(nothing), [""; 0], "{nothing}");
        }
    }

    #[test]
    fn only_the_short_name_of_a_chart_is_shown_after_a_hash() {
        for chart in ["redis", "redis@^1.2.3+k3s~*", &"a".repeat(100)] {
            let url = format!("https://charts.example.com/stable#{chart}");
            assert_eq!(UrlArgument::of(&url).shown, url);
        }
        for secret in ["", "hunter2=", &"a".repeat(101)] {
            let argument = UrlArgument::of(&format!("https://charts.example.com/stable#{secret}"));
            assert!(!argument.shown.ends_with(&format!("#{secret}")), "{}", argument.shown);
        }
    }

    #[test]
    fn a_ref_is_written_as_a_query_has_it() {
        let written = |to: &str| {
            let text = "https://github.com/o/r//d?submodules=false&ref=v1%2B1&timeout=9";
            with_ref(text, &RepoSpec::parse(text).unwrap(), to)
        };
        for (to, reference) in [
            ("v1.2.3+k3s1", "v1.2.3%2Bk3s1"),
            ("a#b", "a%23b"),
            ("a&b;c%2", "a%26b%3Bc%252"),
            ("größe/x@y", "größe/x@y"),
        ] {
            let expected = format!("https://github.com/o/r//d?submodules=false&ref={reference}&timeout=9");
            assert_eq!(written(to), Some(expected));
        }
        for no_ref in ["a b", "-x", "a..b", ""] {
            assert_eq!(written(no_ref), None, "{no_ref}");
        }
        for (query, expected) in [("version=x", "version=v2"), ("version=x&ref=v1", "version=x&ref=v2"), ("", "ref=v2")]
        {
            let [text, expected] = [query, expected].map(|query| format!("https://github.com/o/r?{query}"));
            assert_eq!(with_ref(&text, &RepoSpec::parse(&text).unwrap(), "v2"), Some(expected));
        }
    }

    #[test]
    fn an_unknown_name_gets_a_suggestion() {
        let failures = select(
            &lock(),
            &[
                "https://github.com/acme/lib?ref=v2".to_owned(),
                "files.example.com/v10/ap.yaml".to_owned(),
                "ssh://git.example.org/other".to_owned(),
            ],
        )
        .unwrap_err();
        let hints: Vec<&str> = failures.0.iter().map(|failure| failure.hints[0].as_str()).collect();
        // The nearest comes first.
        assert!(hints[0].starts_with("it contains `https://github.com/acme/lib?ref=v1`, "), "{hints:?}");
        assert!(hints[1].starts_with("it contains `https://files.example.com/v10/app.yaml`, "), "{hints:?}");
    }
}
