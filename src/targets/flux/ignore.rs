//! The files that Flux leaves out of the artifact of a `GitRepository`: `.sourceignore`, `spec.ignore`, its defaults
//! and `sparseCheckout`; and out of the copies of an `ArtifactGenerator`.
//!
//! Patterns look like those of `.gitignore`, but differ: the last pattern that matches a path decides, and a directory
//! matches with everything below it, so that a file in an excluded directory can be included again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use globset::{Glob, GlobSet, GlobSetBuilder};

use super::super::argo::{glob, in_go};
use super::super::{Target, TargetDir};
use crate::message::failure::Result;
use crate::os::limits::PATTERNS;
use crate::tree::{Entry, Tree, path};

/// The name of the files with patterns.
pub(crate) const FILE_NAME: &str = ".sourceignore";

/// The patterns of files that are always left out.
const ALWAYS: [&str; 4] = [".git/", ".gitignore", ".gitmodules", ".gitattributes"];

/// The patterns of files that are left out without other patterns.
const DEFAULTS: [&str; 3] = [
    "*.jpg,*.jpeg,*.gif,*.png,*.wmv,*.flv,*.tar.gz,*.zip",
    ".github/,.circleci/,.travis.yml,.gitlab-ci.yml,appveyor.yml,.drone.yml,cloudbuild.yaml,codeship-services.yml,codeship-steps.yml",
    "**/.goreleaser.yml,**/.sops.yaml,**/.flux.yaml",
];

/// The patterns of one text.
#[derive(Debug, Clone)]
struct Patterns {
    /// The location: `.sourceignore`, `spec.ignore`, or the defaults.
    location: String,
    /// The directory of the file that they are in, to which they are relative.
    domain: String,
    /// Whether they are the lines of a file.
    has_lines: bool,
    compiled: Rc<Compiled>,
}

/// The lines of a text that are patterns, in their order.
#[derive(Debug, Default)]
struct Compiled {
    patterns: Vec<Pattern>,
    /// `None` if they are too many.
    globs: Option<GlobSet>,
    /// The index of the pattern of each glob: one that is broken has none.
    of_globs: Vec<usize>,
}

#[derive(Debug)]
struct Pattern {
    line: usize,
    /// As it is written.
    text: String,
    takes_in: bool,
    /// Whether it matches directories only.
    is_directory: bool,
}

/// The texts with patterns that were read: many sources have the same.
#[derive(Debug, Clone, Default)]
struct Texts(Rc<RefCell<HashMap<String, Rc<Compiled>>>>);

impl Texts {
    /// The patterns in a text.
    fn get(&self, text: &str) -> Rc<Compiled> {
        if let Some(known) = self.0.borrow().get(text) {
            return known.clone();
        }
        let has_room = self.count().saturating_add(text.lines().count()) <= PATTERNS.most;
        let compiled = Rc::new(Compiled::of(text, has_room));
        self.0.borrow_mut().insert(text.to_owned(), compiled.clone());
        compiled
    }

    fn count(&self) -> usize {
        self.0
            .borrow()
            .values()
            .map(|text: &Rc<Compiled>| text.globs.as_ref().map_or(usize::MAX, |_| text.patterns.len()))
            .fold(0, usize::saturating_add)
    }
}

impl Compiled {
    /// Reads a text, if there is room for its patterns.
    fn of(text: &str, has_room: bool) -> Compiled {
        let (mut patterns, mut globs, mut of_globs) = (Vec::new(), GlobSetBuilder::new(), Vec::new());
        for (index, line) in text.lines().enumerate().take_while(|_| has_room) {
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            let rest = line.strip_prefix('!').unwrap_or(line);
            let rest = if rest.ends_with("\\ ") { rest } else { rest.trim_end_matches(' ') };
            if let Some(glob) = pattern(rest) {
                globs.add(glob);
                of_globs.push(patterns.len());
            }
            let (text, takes_in) = (line.trim_end().to_owned(), line.starts_with('!'));
            patterns.push(Pattern { line: index + 1, text, takes_in, is_directory: rest.ends_with('/') });
        }
        Compiled { patterns, globs: globs.build().ok().filter(|_| has_room), of_globs }
    }

    /// The last pattern that matches a path, or a directory above it.
    fn last(&self, path: &str) -> Option<&Pattern> {
        let globs = self.globs.as_ref()?;
        path::and_above(path)
            .filter_map(|above: &str| {
                let all = globs.matches(above).into_iter().rev().map(|glob| self.of_globs[glob]);
                all.into_iter().find(|index| above != path || !self.patterns[*index].is_directory)
            })
            .max()
            .map(|index| &self.patterns[index])
    }
}

/// A pattern that leaves something out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ignored {
    /// The pattern as written, or the only directories that are included.
    pub pattern: String,
    /// The location, such as `.sourceignore:3`.
    pub location: String,
    cause: Exclusion,
}

/// The way in which a file is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exclusion {
    /// By a pattern, which a later one can reverse.
    Pattern,
    /// By a pattern that nothing can reverse.
    FinalPattern,
    /// By an `exclude` of an `ArtifactGenerator`.
    Copy,
    /// Only the listed directories are included.
    Unlisted,
}

impl Ignored {
    /// Why it is left out.
    pub(crate) fn why(&self) -> String {
        let Ignored { pattern, location, cause } = self;
        match cause {
            Exclusion::Unlisted => format!("{location} includes only `{pattern}`"),
            _ => format!("`{pattern}` in {location} excludes it"),
        }
    }

    /// How to include `what` again with `pattern`.
    pub(crate) fn help(&self, what: &str, pattern: &str) -> String {
        match self.cause {
            Exclusion::Pattern => format!("include {what} with a later pattern: `!{pattern}`"),
            Exclusion::FinalPattern => "rename it so that they do not match".to_owned(),
            Exclusion::Copy => "exclude less".to_owned(),
            Exclusion::Unlisted => "add a directory that contains it there".to_owned(),
        }
    }
}

impl Target {
    /// Whether its engine does not get to see something: Flux leaves links out of an artifact, too.
    pub(crate) fn hides(&self, dir: &TargetDir, path: &str, entry: Entry) -> bool {
        match entry {
            Entry::Link => self.engine.packs(),
            Entry::File { .. } => dir.left_out(path).is_some(),
            Entry::Directory | Entry::Submodule => false,
        }
    }
}

/// A file or directory that an `ArtifactGenerator` copies, without what it excludes.
#[derive(Debug, Clone)]
pub(in crate::targets) struct Copied {
    /// Its path from the top of the repository.
    pub(in crate::targets) from: String,
    /// Its path from the top of the source.
    pub(in crate::targets) inside: String,
    /// The patterns and their globs.
    pub(in crate::targets) excluded: Vec<(String, Rc<GlobSet>)>,
}

impl Copied {
    /// The pattern that excludes a path in it, or a directory above that path; `None` if it is included. Patterns are
    /// compared with paths from the top of the source and from this directory; those for names with names, too
    /// (source-watcher, `shouldExcludePath`).
    pub(in crate::targets) fn excludes(&self, path: &str) -> Option<&str> {
        let rest = path::below(path, &self.from)?;
        path::and_above(rest).find_map(|rest| {
            let whole = path::join(&self.inside, rest);
            self.excluded
                .iter()
                .find(|(text, globs): &&(String, Rc<GlobSet>)| {
                    let name = if text.contains('/') { rest } else { path::name(rest) };
                    [rest, &whole, name].iter().any(|name| globs.is_match(name))
                })
                .map(|(text, _)| text.as_str())
        })
    }
}

/// The patterns that leave files out of an artifact.
#[derive(Debug, Clone, Default)]
pub(in crate::targets) struct Ignores {
    /// The patterns that always apply, and those of every `.sourceignore`.
    given: Rc<[Patterns]>,
    /// The patterns of the source, which are decisive; `None` if there are none.
    own: Option<Patterns>,
    /// The only directories that are packed, each with a slash at its end; all if it is empty.
    pub(in crate::targets) sparse: Vec<String>,
    /// The only files and directories that an `ArtifactGenerator` copies; all if it is empty.
    copied: Vec<Copied>,
    /// The patterns for the result of a generator, whatever the source says.
    after: Option<Patterns>,
    /// The results for files: many targets ask about the same files.
    known: Rc<RefCell<HashMap<String, Option<Ignored>>>>,
    texts: Texts,
}

impl Ignores {
    /// Reads every `.sourceignore` of a tree.
    pub(in crate::targets) fn of(tree: &dyn Tree) -> Result<Ignores> {
        let texts = Texts::default();
        let mut given = vec![always(&texts, "the fixed patterns of Flux")];
        let mut files = tree.files_named(&|name| name == FILE_NAME)?;
        // The patterns of a directory come before those of the directories in it, by name.
        files.sort_by_cached_key(|file| {
            let names = path::components(path::parent(file));
            names.map(str::to_owned).collect::<Vec<_>>()
        });
        for file in &files {
            if matches!(tree.entry(file)?, Some(Entry::File { .. })) {
                let bytes = tree.read(file)?;
                let text = String::from_utf8_lossy(&bytes);
                let (domain, compiled) = (path::parent(file).to_owned(), texts.get(&text));
                given.push(Patterns { location: file.clone(), domain, has_lines: true, compiled });
            }
        }
        Ok(Ignores { given: given.into(), texts, ..Ignores::default() })
    }

    /// The patterns for the artifact of a source with its own `ignore`, or without.
    pub(in crate::targets) fn with(&self, ignore: &str, source: &str) -> Ignores {
        let mut own = plain(&self.texts, ignore, &format!("`spec.ignore`{source}"));
        // The first patterns always apply, so they do not replace the defaults.
        if [&own].into_iter().chain(self.given.iter().skip(1)).all(|all| all.compiled.patterns.is_empty()) {
            own = self.defaults("the defaults of Flux");
        }
        Ignores { given: self.given.clone(), own: Some(own), texts: self.texts.clone(), ..Ignores::default() }
    }

    /// The patterns for the artifact that a generator makes from these copies.
    pub(in crate::targets) fn copied(&self, copied: Vec<Copied>) -> Ignores {
        let location = "the defaults of Flux, which apply to every ArtifactGenerator";
        let after = [&ALWAYS[..], &DEFAULTS].concat().join(",").replace(',', "\n");
        let after = Some(plain(&self.texts, &after, location));
        Ignores { copied, after, known: Rc::default(), ..self.clone() }
    }

    /// The paths of a copy that a pattern excludes; `None` for a pattern that is not supported.
    pub(in crate::targets) fn excluding(text: &str) -> Option<Rc<GlobSet>> {
        excluded(text).map(Rc::new)
    }

    fn defaults(&self, location: &str) -> Patterns {
        plain(&self.texts, &DEFAULTS.join(",").replace(',', "\n"), location)
    }

    /// Refuses more patterns than are compared with every file.
    pub(in crate::targets) fn check(&self) -> Result<()> {
        PATTERNS.check(self.texts.count(), || "spec.ignore".to_owned())
    }

    /// The fields of the source that decide.
    pub(in crate::targets) fn fingerprint(&self) -> (Vec<&str>, &[String], Vec<&String>) {
        let copied = self.copied.iter();
        let copied = copied.flat_map(|step| [&step.from].into_iter().chain(step.excluded.iter().map(|(text, _)| text)));
        let patterns = self.own.iter().chain(&self.after).flat_map(|all| &all.compiled.patterns);
        (patterns.map(|pattern| &*pattern.text).collect(), &self.sparse, copied.collect())
    }

    /// The pattern that leaves a file out, if one does.
    pub(in crate::targets) fn exclusion(&self, file: &str) -> Option<Ignored> {
        if let Some(known) = self.known.borrow().get(file) {
            return known.clone();
        }
        let ignored = self.find(file);
        self.known.borrow_mut().insert(file.to_owned(), ignored.clone());
        ignored
    }

    fn find(&self, file: &str) -> Option<Ignored> {
        if !self.sparse.is_empty() && !self.sparse.iter().any(|path| file.starts_with(path)) {
            return left_out_by(self.sparse.join(", "), "`spec.sparseCheckout`", Exclusion::Unlisted);
        }
        let steps = self.copied.iter().filter(|step| path::is_in(file, &step.from));
        let steps: Vec<Option<&str>> = steps.map(|step| step.excludes(file)).collect();
        if !self.copied.is_empty() && steps.iter().all(Option::is_some) {
            let copied: Vec<&str> = self.copied.iter().map(|step| step.from.as_str()).collect();
            return match steps.into_iter().flatten().next() {
                Some(pattern) => left_out_by(pattern.to_owned(), "`exclude` of its ArtifactGenerator", Exclusion::Copy),
                None => left_out_by(copied.join(", "), "`copy` of its ArtifactGenerator", Exclusion::Unlisted),
            };
        }
        let source = self.own.iter().chain(self.given.iter().rev()).find_map(|all| all.decide(file)).flatten();
        let after = || self.after.as_ref()?.decide(file).flatten();
        source.or_else(|| after().map(|ignored| Ignored { cause: Exclusion::FinalPattern, ..ignored }))
    }
}

/// What leaves a file out, if no ignore pattern does.
fn left_out_by(pattern: String, location: &str, cause: Exclusion) -> Option<Ignored> {
    Some(Ignored { pattern, location: location.to_owned(), cause })
}

/// The patterns that always hold.
fn always(texts: &Texts, location: &str) -> Patterns {
    plain(texts, &ALWAYS.join("\n"), location)
}

/// The patterns of a text that is not a file.
fn plain(texts: &Texts, text: &str, location: &str) -> Patterns {
    Patterns { location: location.to_owned(), domain: String::new(), has_lines: false, compiled: texts.get(text) }
}

/// The glob of a pattern of an `ArtifactGenerator`; `None` for a pattern that is not supported.
fn excluded(pattern: &str) -> Option<GlobSet> {
    if pattern.contains(['[', ']', '{', '}', '\\', '$'])
        || !pattern.split('/').all(|name: &str| !name.is_empty() && (name == "**" || !name.contains("**")))
    {
        return None;
    }
    let mut globs = GlobSetBuilder::new();
    // If a directory is excluded, so is everything in it.
    for text in [Some(pattern), pattern.strip_suffix("/**")].into_iter().flatten() {
        globs.add(glob(text)?);
    }
    globs.build().ok()
}

/// The glob of a pattern; `None` for a pattern that Flux considers broken, which matches nothing.
fn pattern(pattern: &str) -> Option<Glob> {
    let inside = pattern.strip_suffix('/').unwrap_or(pattern);
    let names: Vec<&str> = path::components(inside).collect();
    if !inside.contains('/') {
        return glob(&format!("**/{}", in_go(names.first()?)));
    }
    if names.iter().all(is_any) || names.iter().any(|name| !is_any(name) && name.contains("**")) {
        return None;
    }
    let names = names.iter().map(|name| if is_any(name) { "**".to_owned() } else { in_go(name) });
    glob(&names.collect::<Vec<_>>().join("/"))
}

/// Whether a name of a pattern stands for any number of directories.
fn is_any(name: &&str) -> bool {
    *name == "**"
}

impl Patterns {
    /// The decision of the last pattern that matches a file, or a directory above it. `None` if none matches.
    fn decide(&self, file: &str) -> Option<Option<Ignored>> {
        let last = self.compiled.last(path::below(file, &self.domain)?)?;
        let location = if self.has_lines { format!("{}:{}", self.location, last.line) } else { self.location.clone() };
        Some((!last.takes_in).then(|| Ignored { pattern: last.text.clone(), location, cause: Exclusion::Pattern }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::testing::tree;

    fn left_out(files: &[(&str, &str)], ignore: &str, file: &str) -> Option<String> {
        let rule = Ignores::of(&tree(files)).unwrap().with(ignore, "").exclusion(file);
        rule.map(|rule| format!("{} {}", rule.pattern, rule.location))
    }

    #[test]
    fn without_patterns_the_defaults_hold() {
        for (file, expected) in [
            ("apps/logo.png", Some("*.png the defaults of Flux")),
            (".github/workflows/x.yaml", Some(".github/ the defaults of Flux")),
            ("a/.sops.yaml", Some("**/.sops.yaml the defaults of Flux")),
            (".sops.yaml", Some("**/.sops.yaml the defaults of Flux")),
            ("a/.gitattributes", Some(".gitattributes the fixed patterns of Flux")),
            ("apps/web/x.yaml", None),
            (".pre-commit-config.yaml", None),
            ("localized-files/github.com/x.yaml", None),
        ] {
            let rule = left_out(&[], "", file);
            assert_eq!(rule.as_deref(), expected, "{file}");
        }
    }

    #[test]
    fn patterns_match_as_in_flux() {
        for (text, file, expected) in [
            ("/*\n!/deploy\n", "deploy/x.yaml", None),
            ("/*\n!/deploy\n", "vendor/x.yaml", Some("/* .sourceignore:1")),
            // git would not take it in again.
            ("/*\n!/deploy/x.yaml\n", "deploy/x.yaml", None),
            ("# all\n\n*.md\n", "docs/x.md", Some("*.md .sourceignore:3")),
            ("*.md\n", "logo.png", None),
            ("docs/\n", "docs", None),
            ("docs/\n", "a/docs/x.yaml", Some("docs/ .sourceignore:1")),
            ("/docs/\n", "a/docs/x.yaml", None),
            ("a/*/c\n", "a/b/c/d.yaml", Some("a/*/c .sourceignore:1")),
            ("a/*/c\n", "a/b/x.yaml", None),
            ("**/test\n", "a/b/test/x.yaml", Some("**/test .sourceignore:1")),
            ("a/**\n", "a/b/x.yaml", Some("a/** .sourceignore:1")),
            ("a**b/c\n", "axb/c", None),
            ("a\\ \n", "a ", Some("a\\ .sourceignore:1")),
            ("[\n", "[", None),
        ] {
            let rule = left_out(&[(".sourceignore", text)], "", file);
            assert_eq!(rule.as_deref(), expected, "{text} {file}");
        }
    }

    #[test]
    fn what_stands_nearer_or_in_the_source_has_the_last_word() {
        let files = [(".sourceignore", "*.yaml\n"), ("a/.sourceignore", "!/x.yaml\n")];
        assert_eq!(left_out(&files, "", "a/x.yaml"), None);
        assert!(left_out(&files, "", "a/b/x.yaml").is_some());
        let ignore = "!*.yaml\n/a/x.yaml\n";
        assert_eq!(left_out(&files, ignore, "b.yaml"), None);
        assert_eq!(left_out(&files, ignore, "a/x.yaml").as_deref(), Some("/a/x.yaml `spec.ignore`"));
        let sparse = Ignores { sparse: vec!["apps".to_owned()], ..Ignores::default() };
        assert!(sparse.exclusion("apps/x.yaml").is_none());
        assert_eq!(sparse.exclusion("base/x.yaml").unwrap().location, "`spec.sparseCheckout`");
    }
}
