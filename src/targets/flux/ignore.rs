//! The files that Flux leaves out of the artifact of a `GitRepository`: `.sourceignore`, `spec.ignore`, its defaults
//! and `sparseCheckout`; and the files that an `ArtifactGenerator` does not copy.
//!
//! Patterns look like those of `.gitignore`, but differ: the last pattern that matches a path decides, and a directory
//! matches with everything below it, so that a file in an excluded directory can be included again.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use globset::{Glob, GlobSet, GlobSetBuilder};

use super::super::argo::{glob, in_go};
use super::super::{Target, TargetDir};
use crate::message::failure::Result;
use crate::os::limits::PATTERNS;
use crate::tree::{self, Entry, Resolved, Tree, path};

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
    globs: GlobSet,
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
struct Texts {
    known: Rc<RefCell<HashMap<String, Rc<Compiled>>>>,
    /// The number of their lines, also of those that are too many to be compiled.
    lines: Rc<Cell<usize>>,
}

impl Texts {
    /// The patterns in a text, compiled once. Beyond the limit of lines none are compiled, and [`Ignores::check`]
    /// fails.
    fn compile(&self, text: &str) -> Rc<Compiled> {
        if let Some(known) = self.known.borrow().get(text) {
            return known.clone();
        }
        let lines = self.lines.get().saturating_add(text.lines().count());
        let compiled = Some(text).filter(|_| lines <= PATTERNS.most).and_then(Compiled::of);
        self.lines.set(if compiled.is_some() { lines } else { usize::MAX });
        let compiled = Rc::new(compiled.unwrap_or_default());
        self.known.borrow_mut().insert(text.to_owned(), compiled.clone());
        compiled
    }
}

impl Compiled {
    /// Reads the lines of a text as Flux does; `None` if its patterns are too large.
    fn of(text: &str) -> Option<Compiled> {
        let (mut patterns, mut globs, mut of_globs) = (Vec::new(), GlobSetBuilder::new(), Vec::new());
        for (index, line) in text.lines().enumerate() {
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            let rest = line.strip_prefix('!').unwrap_or(line);
            // An escaped space at the end belongs to the pattern.
            let rest = if rest.ends_with("\\ ") { rest } else { rest.trim_end_matches(' ') };
            // A broken pattern matches nothing.
            if let Some(glob) = pattern_glob(rest) {
                globs.add(glob);
                of_globs.push(patterns.len());
            }
            let (text, takes_in) = (line.trim_end().to_owned(), line.starts_with('!'));
            patterns.push(Pattern { line: index + 1, text, takes_in, is_directory: rest.ends_with('/') });
        }
        Some(Compiled { patterns, globs: globs.build().ok()?, of_globs })
    }

    /// The last pattern that matches a path, or a directory above it.
    fn last(&self, path: &str) -> Option<&Pattern> {
        path::and_above(path)
            .filter_map(|above: &str| {
                let all = self.globs.matches(above).into_iter().rev().map(|glob| self.of_globs[glob]);
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
    copied: Vec<String>,
    /// The results for files: many targets ask about the same files.
    known: Rc<RefCell<HashMap<String, Option<Ignored>>>>,
    texts: Texts,
}

impl Ignores {
    /// Reads every `.sourceignore` of a tree: each source of Flux that is this repository obeys them.
    pub(in crate::targets) fn of(tree: &dyn Tree) -> Result<Ignores> {
        let texts = Texts::default();
        let mut given = vec![without_file(&texts, &ALWAYS.join("\n"), "the fixed patterns of Flux")];
        let mut files = tree.files_named(&|name| name == FILE_NAME)?;
        // The last match decides, so a directory must come before those in it. The paths are sorted otherwise: they
        // have `.github/.sourceignore` before `.sourceignore`.
        files.sort_by_cached_key(|file| path::parent(file).to_owned());
        for file in &files {
            // Flux opens the file in a checkout, where a link leads to another one.
            if let Resolved::File { path, .. } = tree::resolve(tree, file)? {
                let bytes = tree.read(&path)?;
                let text = String::from_utf8_lossy(&bytes);
                let (domain, compiled) = (path::parent(file).to_owned(), texts.compile(&text));
                given.push(Patterns { location: file.clone(), domain, has_lines: true, compiled });
            }
        }
        Ok(Ignores { given: given.into(), texts, ..Ignores::default() })
    }

    /// The patterns for the artifact of a source with its own `ignore`, or without.
    pub(in crate::targets) fn for_source(&self, ignore: &str, source: &str) -> Ignores {
        let mut own = without_file(&self.texts, ignore, &format!("`spec.ignore`{source}"));
        // The first patterns always apply, so they do not replace the defaults.
        if [&own].into_iter().chain(self.given.iter().skip(1)).all(|all| all.compiled.patterns.is_empty()) {
            own = without_file(&self.texts, &DEFAULTS.join(",").replace(',', "\n"), "the defaults of Flux");
        }
        Ignores { given: self.given.clone(), own: Some(own), texts: self.texts.clone(), ..Ignores::default() }
    }

    /// The patterns for the artifact that a generator makes from these copies.
    pub(in crate::targets) fn for_copies(&self, copied: Vec<String>) -> Ignores {
        Ignores { copied, known: Rc::default(), ..self.clone() }
    }

    /// Refuses more patterns than are compared with every file.
    pub(in crate::targets) fn check(&self) -> Result<()> {
        PATTERNS.check(self.texts.lines.get(), || "spec.ignore".to_owned())
    }

    /// The fields of the source that decide which files are in its artifact.
    pub(in crate::targets) fn fingerprint(&self) -> (Vec<&str>, &[String], &[String]) {
        let patterns = self.own.iter().flat_map(|all| &all.compiled.patterns);
        (patterns.map(|pattern| &*pattern.text).collect(), &self.sparse, &self.copied)
    }

    /// The pattern that leaves a file out, if one does.
    pub(in crate::targets) fn exclusion(&self, file: &str) -> Option<Ignored> {
        if let Some(known) = self.known.borrow().get(file) {
            return known.clone();
        }
        let ignored = self.find_exclusion(file);
        self.known.borrow_mut().insert(file.to_owned(), ignored.clone());
        ignored
    }

    /// The reason why a file is left out: it is not in a list of included paths, or the last pattern that matches
    /// excludes it. `None` if it is included.
    fn find_exclusion(&self, file: &str) -> Option<Ignored> {
        for (listed, location) in
            [(&self.sparse, "`spec.sparseCheckout`"), (&self.copied, "`copy` of its ArtifactGenerator")]
        {
            if !listed.is_empty() && !listed.iter().any(|path| path::is_in(file, path)) {
                let (pattern, location) = (listed.join(", "), location.to_owned());
                return Some(Ignored { pattern, location, cause: Exclusion::Unlisted });
            }
        }
        // The last pattern decides: the source comes last, after the files from the top downwards.
        let mut texts = self.own.iter().chain(self.given.iter().rev());
        let (text, last) = texts.find_map(|text| Some((text, text.last(file)?)))?;
        (!last.takes_in).then(|| Ignored {
            pattern: last.text.clone(),
            location: text.location_of(last),
            cause: Exclusion::Pattern,
        })
    }
}

/// The patterns of a text that is not a file, so that messages name no line.
fn without_file(texts: &Texts, text: &str, location: &str) -> Patterns {
    Patterns { location: location.to_owned(), domain: String::new(), has_lines: false, compiled: texts.compile(text) }
}

/// The glob of a pattern; `None` for a pattern that Flux considers broken, which matches nothing.
fn pattern_glob(pattern: &str) -> Option<Glob> {
    let inside = pattern.strip_suffix('/').unwrap_or(pattern);
    let names: Vec<&str> = path::components(inside).collect();
    // A pattern without a slash matches a name at any depth.
    if !inside.contains('/') {
        return glob(&format!("**/{}", in_go(names.first()?)));
    }
    // For Flux, a pattern that has only `**`, or `**` as a part of a name, is broken.
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
    /// The last pattern that matches a file, or a directory above it; `None` if none matches.
    fn last(&self, file: &str) -> Option<&Pattern> {
        self.compiled.last(path::below(file, &self.domain)?)
    }

    /// The location of a pattern for messages.
    fn location_of(&self, pattern: &Pattern) -> String {
        if self.has_lines { format!("{}:{}", self.location, pattern.line) } else { self.location.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::testing::tree;

    fn left_out(files: &[(&str, &str)], ignore: &str, file: &str) -> Option<String> {
        let rule = Ignores::of(&tree(files)).unwrap().for_source(ignore, "").exclusion(file);
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
    fn patterns_behind_a_link_count() {
        let mut tree = tree(&[("common", "*.txt\n")]);
        tree.link("a/.sourceignore", "../common");
        tree.link("b/.sourceignore", "../gone");
        let ignores = Ignores::of(&tree).unwrap().for_source("", "");
        assert_eq!(ignores.exclusion("a/x.txt").unwrap().location, "a/.sourceignore:1");
        // The defaults of Flux no longer hold, either.
        assert!(["b/x.txt", "logo.png"].iter().all(|file| ignores.exclusion(file).is_none()));
    }

    #[test]
    fn what_stands_nearer_or_in_the_source_has_the_last_word() {
        let files = [(".sourceignore", "*.yaml\n"), ("a/.sourceignore", "!/x.yaml\n")];
        assert_eq!(left_out(&files, "", "a/x.yaml"), None);
        assert!(left_out(&files, "", "a/b/x.yaml").is_some());
        let hidden = [(".github/.sourceignore", "!/x.yaml\n"), (".sourceignore", "*.yaml\n")];
        assert_eq!(left_out(&hidden, "", ".github/x.yaml"), None);
        let ignore = "!*.yaml\n/a/x.yaml\n";
        assert_eq!(left_out(&files, ignore, "b.yaml"), None);
        assert_eq!(left_out(&files, ignore, "a/x.yaml").as_deref(), Some("/a/x.yaml `spec.ignore`"));
        let sparse = Ignores { sparse: vec!["apps".to_owned()], ..Ignores::default() };
        assert!(sparse.exclusion("apps/x.yaml").is_none());
        assert_eq!(sparse.exclusion("base/x.yaml").unwrap().location, "`spec.sparseCheckout`");
    }
}
