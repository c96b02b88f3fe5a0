//! The configuration of `check`: `.kustomize-localize` at the top of the tree that is checked.
//!
//! ```yaml
//! rules:                      # error, warning or off, for each rule
//!   floating-ref: warning
//! locked: allow               # or error: a reference that the lock holds is a finding too
//! scopes:                     # directories that may not reach out of themselves
//!   - apps/*
//! include:                    # only these directories, and what is below, are starting points
//!   - clusters
//! exclude:                    # these, and what is below, are none
//!   - "**/templates"
//! allow:                      # what need be neither localized nor locked
//!   - url: github.com/acme
//!     refs: tag               # any < branch < tag < commit
//!     reason: our own bases, released with signed tags
//!     leave: false                # true: stays remote, also on a localized branch
//! leave-missing:              # local files that may be missing
//!   - path: "**/secret.env"
//!     reason: made by each cluster
//! strict: [not-built]         # warnings that are errors where something is brought in
//! comments: base              # or accept: allow comments that a change adds count in its own gate
//! new-only: false             # only findings that the base does not have
//! helm: false                 # charts of repositories are brought in
//! licenses: true              # those of remote repositories come along
//! load-restrictor: root-only  # or none, as Flux and Argo CD can build
//! allow-private: false        # what an upstream names may lie at a private address
//! max-file-size: 64m          # of files from elsewhere
//! trust-exec:                 # programs from elsewhere that stay executable
//!   - "**/transform.sh"
//! hydrator-metadata: false    # whether `branch` writes the file that GitOps Promoter reads
//! repository:                 # URLs under which this repository is deployed, besides its remotes
//!   - url: oci://ghcr.io/acme/manifests
//!     path: deploy                # the directory that is the top there
//! targets:                    # what is deployed although no object in the tree says so
//!   - path: clusters/edge
//!     engine: argo-cd             # flux, argo-cd, fleet or kustomize
//! ```
//!
//! Every key may be left out. What is not known is an error with its place, so that a policy that
//! was mistyped is not a policy that silently does nothing. Nothing in it can name a command, a file
//! to read or a host to ask: whoever may change the configuration can make the check say less, and
//! no more.
//!
//! # Directories
//!
//! `scopes`, `include` and `exclude` are [globs](Glob) of directories, from the top of the repository.
//! A scope is the directory that matches, and of several on the way up the innermost bounds
//! ([`Config::scope_of`]). `include` and `exclude` say where a walk starts, and mean what matches and
//! everything below ([`Config::starting_points`]); a root that is excluded is still followed when something
//! references it.
//!
//! # URLs
//!
//! `allow` is for references, not for localizing: what it allows is localized and locked all the same, unless the entry
//! says `leave: true` ([`Leave`]). See [`UrlGlob`] for what a URL matches and [`RefPolicy`] for what a ref is worth.

mod address;
mod deployed;
mod glob;
mod leave;
mod missing;
mod read;
mod starts;
mod strict;

use std::collections::{BTreeMap, BTreeSet};

use globset::GlobMatcher;

use crate::failure::{Failure, Failures};
use crate::finding::{Finding, Rule, Severity, Span, Subject};
use crate::kustomization::is_pinned;
use crate::record::LoadRestrictor;
use crate::reference;
use crate::tree::{Entry, Tree, path};

pub use address::UrlGlob;
pub use deployed::{Declared, Engine, Repository};
pub use glob::Glob;
pub use leave::Leave;
pub use missing::{LeaveMissing, Missing, path_glob};
pub use strict::Strict;

/// The name of the configuration, at the top of the tree.
pub const FILE_NAME: &str = ".kustomize-localize";

/// What a hint shows where a reason goes.
pub const PLACEHOLDER: &str = "WHY";

/// The JSON Schema (draft 7) of the configuration, for editors.
pub const SCHEMA: &str = include_str!("config/schema.json");

/// What the configuration says. The default is that of a repository without one.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// How messages name the file; empty when there is none.
    pub file: String,
    /// What holds instead of the severity that a rule gives its findings.
    pub rules: BTreeMap<Rule, Level>,
    /// What a remote reference is that the lock holds.
    pub locked: Locked,
    /// The directories that bound what is in them.
    pub scopes: Vec<Glob>,
    /// Where starting points lie; anywhere when empty.
    pub include: Vec<Glob>,
    /// Where none lie.
    pub exclude: Vec<Glob>,
    /// What need be neither localized nor locked.
    pub allow: Vec<Allow>,
    /// Which local files may be missing.
    pub leave_missing: Vec<LeaveMissing>,
    /// Which warnings are errors.
    pub strict: Strict,
    /// Which comments count when a change is judged against its base.
    pub comments: Comments,
    /// Whether only findings count that the base does not have.
    pub new_only: bool,
    /// Whether charts of repositories are brought in.
    pub helm: bool,
    /// Whether the licences of what is brought in are left out.
    pub no_licenses: bool,
    /// Which files a kustomization root may load.
    pub load_restrictor: LoadRestrictor,
    /// Whether what an upstream names may lie further inwards than that upstream.
    pub allow_private: bool,
    /// The largest file that is taken from elsewhere, in bytes; none: the default.
    pub max_file_size: Option<u64>,
    /// Which programs from elsewhere stay executable.
    pub trust_exec: Vec<GlobMatcher>,
    /// Whether a branch gets a `hydrator.metadata`.
    pub hydrator_metadata: bool,
    /// The URLs under which this repository is deployed, besides its remotes.
    pub repository: Vec<Repository>,
    /// What is deployed although no object in the tree says so.
    pub targets: Vec<Declared>,
}

/// What is made of the findings of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// They fail the check.
    Error,
    /// They are shown.
    Warning,
    /// They are left out.
    Off,
}

impl Level {
    /// Every level.
    pub const ALL: &[Level] = &[Level::Error, Level::Warning, Level::Off];

    /// Returns its name, as in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Off => "off",
        }
    }
}

/// Which comments allow something when a change is judged against its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Comments {
    /// Those that allowed the same in the base.
    #[default]
    Base,
    /// Also those that the change adds.
    Accept,
}

/// What a remote reference is that the lock of the tree holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Locked {
    /// As good as localized.
    #[default]
    Allow,
    /// Not localized: a build would still reach out.
    Error,
}

/// How firmly a reference must be pinned, as far as its text shows; each includes those after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum RefPolicy {
    /// Whatever is there today: no ref, an abbreviated id, a chart without version.
    Any,
    /// A ref, also one that looks like a branch; `releases/latest`.
    Branch,
    /// A ref that looks like a tag, a chart with one version, a single file whose URL names nothing
    /// that is known to move. Such references do not float, so this is the default.
    #[default]
    Tag,
    /// A full commit id.
    Commit,
}

impl RefPolicy {
    /// Every policy, from the weakest.
    pub const ALL: &[RefPolicy] = &[
        RefPolicy::Any,
        RefPolicy::Branch,
        RefPolicy::Tag,
        RefPolicy::Commit,
    ];

    /// Returns its name, as in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RefPolicy::Any => "any",
            RefPolicy::Branch => "branch",
            RefPolicy::Tag => "tag",
            RefPolicy::Commit => "commit",
        }
    }

    /// Returns the strictest policy that is fulfilled by what a rule found.
    fn of(rule: Rule, subject: &Subject) -> RefPolicy {
        match subject {
            Subject::Git { pin, .. } => RefPolicy::of_pin(pin),
            Subject::Http { url } => match reference::file_pin(url) {
                Some((pin, _)) => RefPolicy::of_pin(pin.name()),
                // The finding knows why it floats.
                None if rule == Rule::FloatingRef => RefPolicy::Any,
                None => RefPolicy::Tag,
            },
            Subject::Helm { version, .. } => {
                if is_one_version(version) {
                    RefPolicy::Tag
                } else {
                    RefPolicy::Any
                }
            }
            Subject::Image { image } => {
                let name = image.rsplit('/').next().unwrap_or(image);
                match name.rsplit_once(':') {
                    _ if is_pinned(image) => RefPolicy::Commit,
                    None | Some((_, "" | "latest")) => RefPolicy::Any,
                    Some(_) => RefPolicy::Tag,
                }
            }
            Subject::Local => RefPolicy::Any,
        }
    }

    /// Returns what a [`reference::Pin`] of this name is worth.
    fn of_pin(pin: &str) -> RefPolicy {
        match pin {
            "commit" => RefPolicy::Commit,
            "tag" => RefPolicy::Tag,
            "branch" => RefPolicy::Branch,
            _ => RefPolicy::Any,
        }
    }
}

/// Returns whether a reason is what somebody else wrote where one goes.
#[must_use]
pub fn is_placeholder(reason: &str) -> bool {
    let word = reason.trim_matches(|c: char| !c.is_alphanumeric());
    let mut known = [PLACEHOLDER, "REASON", "TODO", "FIXME", "TBD", "XXX", ""].into_iter();
    known.any(|one| one.eq_ignore_ascii_case(word))
}

/// Returns whether helm takes a version for itself, not for a range of versions.
pub(crate) fn is_one_version(version: &str) -> bool {
    let version = version.strip_prefix('v').unwrap_or(version);
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let mut parts = 0;
    numbers.split('.').all(|number| {
        parts += 1;
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    }) && parts == 3
        && version
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c))
}

/// An entry of `allow`: remote references that may stay remote.
#[derive(Debug, Clone)]
pub struct Allow {
    /// Which URLs.
    pub url: UrlGlob,
    /// How firmly they must name what they mean.
    pub refs: RefPolicy,
    /// Why.
    pub reason: String,
    /// The rules that it is about.
    pub rules: BTreeSet<Rule>,
    /// Whether what it accepts stays remote: neither locking nor localizing insists on it.
    pub leave: bool,
    /// Where it stands.
    pub span: Span,
    /// The line on which it begins.
    pub line_text: String,
}

impl Config {
    /// Reads a configuration; `file` is how messages name it.
    ///
    /// A byte order mark, CRLF, comments and any style of YAML are accepted. A file without content is
    /// the default.
    ///
    /// # Errors
    ///
    /// Returns everything that is wrong, each with its place: too many bytes, not UTF-8, not YAML,
    /// keys or rules that are not known, keys that are there twice, values of another type, globs that
    /// can match nothing, an entry of `allow` without a reason, anchors and aliases.
    pub fn parse(bytes: &[u8], file: &str) -> Result<Config, Failures> {
        read::config(bytes, file)
    }

    /// Reads the configuration that a tree has in `directory`, the top of a repository; the default where there is
    /// none.
    ///
    /// # Errors
    ///
    /// As [`Config::parse`], and when it cannot be read.
    pub fn of(tree: &dyn Tree, directory: &str) -> Result<Config, Failures> {
        let place = path::join(directory, FILE_NAME);
        for wrong in [".yaml", ".yml"].map(|end| format!("{place}{end}")) {
            if tree.entry(&wrong)?.is_some() {
                let wrong = path::name(&wrong);
                return Err(Failure::new(format!(
                    "`{wrong}` is not read: the configuration is `{FILE_NAME}`"
                ))
                .hint(format!("git mv -- :/{wrong} :/{FILE_NAME}"))
                .into());
            }
        }
        match tree.entry(&place)? {
            None => Ok(Config::default()),
            Some(Entry::File { .. }) => Config::parse(&tree.read(&place)?, FILE_NAME),
            // A policy that is never read must not look like none.
            Some(_) => Err(Failure::new(format!("`{FILE_NAME}` is not a regular file")).into()),
        }
    }

    /// Returns the severity that a finding has here; `None` when its rule is off.
    ///
    /// The severity of the configuration applies to every finding of the rule. Without one, a finding keeps its own
    /// severity, which may be lower than that of its rule.
    #[must_use]
    pub fn severity(&self, finding: &Finding) -> Option<Severity> {
        match self.rules.get(&finding.rule).filter(|_| !finding.unread) {
            None if finding.rule.is_off_by_default() => None,
            None => Some(finding.severity),
            Some(Level::Error) => Some(Severity::Error),
            Some(Level::Warning) => Some(Severity::Warning),
            Some(Level::Off) => None,
        }
    }

    /// Returns the scope of a directory: of it and the directories above it, the innermost that one of
    /// `scopes` matches; `None` when none does, so that the repository bounds.
    #[must_use]
    pub fn scope_of(&self, directory: &str) -> Option<String> {
        glob::innermost(&self.scopes, directory)
    }

    /// Returns whether the root in this directory is a starting point: it lies in what `include`
    /// matches, if there is any, and not in what `exclude` matches.
    #[must_use]
    fn starts(&self, directory: &str) -> bool {
        let is_included = || self.include.iter().any(|glob| glob.covers(directory));
        (self.include.is_empty() || is_included()) && !self.leaves_out(directory)
    }

    /// Returns whether `exclude` matches a directory, or one above it.
    #[must_use]
    pub fn leaves_out(&self, directory: &str) -> bool {
        self.exclude.iter().any(|glob| glob.covers(directory))
    }

    /// Returns where the entries stand whose reason is a placeholder, which accept nothing: the place, its line, and the
    /// reason.
    pub fn unreasoned(&self) -> impl Iterator<Item = (Span, &str, &str)> {
        let allow = self.allow.iter();
        let allow = allow.map(|one| (one.span, &*one.line_text, &*one.reason));
        let missing = self.leave_missing.iter();
        let missing = missing.map(|one| (one.span, &*one.line_text, &*one.reason));
        allow
            .chain(missing)
            .filter(|(_, _, reason)| is_placeholder(reason))
    }

    /// Returns the first entry of `allow` that accepts a finding: its rule, the URL of what it is about
    /// and how firmly that is named.
    #[must_use]
    pub fn allows(&self, finding: &Finding) -> Option<&Allow> {
        self.allow.get(self.allowed_by(finding)?)
    }

    /// Returns whether a program from elsewhere stays executable where it is stored.
    #[must_use]
    pub fn trusts(&self, path: &str) -> bool {
        self.trust_exec.iter().any(|glob| glob.is_match(path))
    }

    /// Returns the index of what [`Config::allows`] returns.
    #[must_use]
    pub fn allowed_by(&self, finding: &Finding) -> Option<usize> {
        let refs = RefPolicy::of(finding.rule, &finding.subject);
        self.allow.iter().position(|allow| {
            !is_placeholder(&allow.reason)
                && allow.rules.contains(&finding.rule)
                && allow.refs <= refs
                && allow.url.matches(&finding.subject)
        })
    }
}

#[cfg(test)]
mod tests;
