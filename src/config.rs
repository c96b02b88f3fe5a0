//! The configuration of `check`: `.kustomize-localize` at the top of the tree that is checked.
//!
//! ```yaml
//! sources:                    # what may be locked at all, and what is asked of it
//! - {url: github.com/acme, signed-by: .github/allowed-signers}
//! - {url: "*", min-age: 7d}
//! rules:                      # error, warning or off, for each rule; "*" is all that are warnings by default
//!   floating-ref: warning
//! scopes:                     # directories that may not reach out of themselves
//!   - apps/*
//! include:                    # only these directories, and what is below, are starting points
//!   - clusters
//! exclude:                    # these, and what is below, are none
//!   - "**/templates"
//! allow:                      # what stays as it is
//!   - url: https://github.com/acme/bases//web?ref=v1
//!     reason: gone upstream   # exactly this reference
//!   - url: github.com/acme
//!     refs: tag               # everything there; any < branch < tag < commit
//!     reason: our own bases, released with signed tags
//!   - path: "**/secret.env"
//!     reason: made by each cluster
//! helm: false                 # charts of repositories are brought in, deployed ones in the tree rendered
//! licenses: true              # those of remote repositories come along
//! load-restrictor: root-only  # or none, as Flux and Argo CD can build
//! allow-private: false        # what an upstream names may lie at a private address
//! max-file-size: 64m          # of files from elsewhere
//! trust-exec:                 # programs from elsewhere that stay executable
//!   - "**/transform.sh"
//! hydrator-metadata: false    # whether `branch` writes the file that GitOps Promoter reads
//! repository:                 # URLs under which this repository is deployed
//!   - url: oci://ghcr.io/acme/manifests
//!     path: deploy                # the directory that is the top there
//! targets:                    # what is deployed although no object in the tree says so
//!   - path: clusters/edge
//!     engine: argo-cd             # flux, argo-cd or kustomize
//! ```
//!
//! Every key may be left out. What is not known is an error with its place, so that a policy that
//! was mistyped is not a policy that silently does nothing. Nothing in it can name a command, a host to ask or, but for the
//! keys of `signed-by`, a file to read: whoever may change the configuration can make the check say less, and no more.
//!
//! # Directories
//!
//! `scopes`, `include` and `exclude` are [globs](Glob) of directories, from the top of the repository.
//! A scope is the directory that matches, and of several on the way up the innermost bounds
//! ([`Config::scope_of`]). `include` and `exclude` say where a walk starts, and mean what matches and
//! everything below ([`Config::starting_points`]); a root that is excluded is still followed when something
//! references it.
//!
//! # Exceptions
//!
//! What an entry of `allow` covers ([`Allow`]), or a comment at the reference ([`Comments`]), stays as it is. See `address`
//! for what a URL matches and [`RefPolicy`] for what a ref is worth.

mod address;
mod allow;
mod append;
mod comment;
mod deployed;
mod glob;
mod read;
mod source;
mod starts;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::kustomization::is_pinned;
use crate::message::failure::{Failure, Result};
use crate::message::finding::{Finding, Rule, Severity, Subject};
use crate::record::LoadRestrictor;
use crate::reference::{self, Pin, Upstream};
use crate::tree::{Entry, Tree, path};

pub(crate) use allow::{Allow, Exceptions, quoted};
pub(crate) use comment::{Comment, Comments};
pub(crate) use deployed::{Declared, EngineName, Repository};
pub(crate) use glob::{Glob, Globs};
pub(crate) use source::{Source, Sources};

/// The name of the configuration, at the top of the tree.
pub(crate) const FILE_NAME: &str = ".kustomize-localize";

/// What a hint shows where a reason goes.
pub(crate) const PLACEHOLDER: &str = "TODO";

/// The JSON Schema (draft 7) of the configuration, for editors.
#[cfg(test)]
pub(crate) const SCHEMA: &str = include_str!("config/schema.json");

/// What the configuration says. The default is that of a repository without one.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// How messages name the file; empty when there is none.
    #[serde(skip)]
    pub file: String,
    /// What holds instead of the severity that a rule gives its findings.
    pub rules: BTreeMap<RuleKey, Severity>,
    /// The directories that bound what is in them.
    pub scopes: Globs,
    /// Where starting points lie; anywhere when empty.
    pub include: Globs,
    /// Where none lie.
    pub exclude: Globs,
    /// What stays as it is.
    pub allow: Exceptions,
    /// What may be locked; none: anything.
    pub sources: Option<Sources>,
    /// Whether charts of repositories are brought in, and deployed ones in the tree rendered.
    pub helm: bool,
    /// Whether the licences of what is brought in are left out.
    #[serde(rename = "licenses", deserialize_with = "read::not")]
    pub no_licenses: bool,
    /// Which files a kustomization root may load.
    pub load_restrictor: LoadRestrictor,
    /// The version of kustomize that builds, or the first numbers of it; none: any.
    #[serde(deserialize_with = "read::version")]
    pub kustomize: Option<String>,
    /// How long one build may take; none: the default.
    #[serde(deserialize_with = "read::duration")]
    pub build_timeout: Option<Duration>,
    /// Whether what only an upstream names may lie at an address that is not public.
    pub allow_private: bool,
    /// The largest file that is taken from elsewhere, in bytes; none: the default.
    #[serde(deserialize_with = "read::size")]
    pub max_file_size: Option<u64>,
    /// Which programs from elsewhere stay executable.
    pub trust_exec: Globs,
    /// Whether a branch gets a `hydrator.metadata`.
    pub hydrator_metadata: bool,
    /// The URLs under which this repository is deployed.
    pub repository: Vec<Repository>,
    /// What is deployed although no object in the tree says so.
    pub targets: Vec<Declared>,
}

/// What a severity is given to: a rule, or none for all else that is a warning (`*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleKey(pub Option<Rule>);

/// How firmly a reference must be pinned, as far as its text shows; each includes those after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefPolicy {
    /// Whatever is there today: no ref, an abbreviated id, a chart without version.
    Any,
    /// A ref, also one that looks like a branch; `releases/latest`.
    Branch,
    /// A ref that looks like a tag, a chart with one version, a single file whose URL names nothing
    /// that is known to move.
    Tag,
    /// A full commit id.
    Commit,
}

impl RefPolicy {
    /// Returns its name, as in the configuration.
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
            Subject::Remote(git @ Upstream::Git { .. }) => RefPolicy::of_pin(git.pin()),
            Subject::Remote(Upstream::File { url }) => match reference::file_pin(url) {
                Some((pin, _)) => RefPolicy::of_pin(pin),
                // The finding knows why it floats.
                None if rule == Rule::FloatingRef => RefPolicy::Any,
                None => RefPolicy::Tag,
            },
            Subject::Remote(Upstream::Chart { version: Some(version), .. }) if is_one_version(version) => {
                RefPolicy::Tag
            }
            Subject::Remote(Upstream::Chart { .. }) => RefPolicy::Any,
            Subject::Remote(Upstream::Image { image }) => {
                let name = image.rsplit('/').next().unwrap_or(image);
                match name.rsplit_once(':') {
                    _ if is_pinned(image) => RefPolicy::Commit,
                    None | Some((_, "" | "latest")) => RefPolicy::Any,
                    Some(_) => RefPolicy::Tag,
                }
            }
            Subject::Local | Subject::Path { .. } | Subject::Program { .. } => RefPolicy::Commit,
        }
    }

    fn of_pin(pin: Pin) -> RefPolicy {
        match pin {
            Pin::Commit => RefPolicy::Commit,
            Pin::Tag => RefPolicy::Tag,
            Pin::Branch => RefPolicy::Branch,
            Pin::ShortCommit | Pin::None => RefPolicy::Any,
        }
    }
}

/// Returns whether a reason is what somebody else wrote where one goes.
pub(crate) fn is_placeholder(reason: &str) -> bool {
    let word = reason.trim_matches(|c: char| !c.is_alphanumeric());
    let mut known = [PLACEHOLDER, "REASON", "WHY", "FIXME", "TBD", "XXX", ""].into_iter();
    known.any(|one| one.eq_ignore_ascii_case(word))
}

/// Returns whether helm takes a version for itself, not for a range of versions.
pub(crate) fn is_one_version(version: &str) -> bool {
    let version = version.strip_prefix('v').unwrap_or(version);
    let numbers: Vec<&str> = version.split(['-', '+']).next().unwrap_or_default().split('.').collect();
    let is_number = |number: &&str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    numbers.len() == 3
        && numbers.iter().all(is_number)
        && version.chars().all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c))
}

impl Config {
    /// Reads the configuration that a tree has in `directory`, the top of a repository; the default where there is
    /// none.
    pub fn of(tree: &dyn Tree, directory: &str) -> Result<Config> {
        let place = path::join(directory, FILE_NAME);
        for wrong in [".yaml", ".yml"].map(|end| format!("{place}{end}")) {
            if tree.entry(&wrong)?.is_some() {
                let wrong = path::name(&wrong);
                return Err(Failure::new(format!("`{wrong}` is not read: the configuration is `{FILE_NAME}`"))
                    .hint(format!("git mv -- :/{wrong} :/{FILE_NAME}")));
            }
        }
        match tree.entry(&place)? {
            None => Ok(Config::default()),
            Some(Entry::File { .. }) => {
                let mut config = Config::parse(&tree.read(&place)?, FILE_NAME)?;
                config.read_signers(tree, directory)?;
                Ok(config)
            }
            // A policy that is never read must not look like none.
            Some(_) => Err(Failure::new(format!("`{FILE_NAME}` is not a regular file"))),
        }
    }

    /// Returns the severity of what a rule finds here, which has this one by itself; `None` when the rule is off.
    pub fn level(&self, rule: Rule, own: Severity) -> Option<Severity> {
        let is_off = rule.default_level() == Severity::Off;
        let of_all = || self.rules.get(&RuleKey(None)).filter(|_| own == Severity::Warning && !is_off);
        let severity = self.rules.get(&RuleKey(Some(rule))).or_else(of_all);
        let severity = severity.copied().unwrap_or(if is_off { Severity::Off } else { own });
        Some(severity).filter(|severity| *severity != Severity::Off)
    }

    /// Gives findings the severity that they have here; those of rules that are off go. What was not read as a whole keeps
    /// its own.
    pub(crate) fn judge(&self, findings: &mut Vec<Finding>) {
        findings.retain_mut(|finding| {
            let own = finding.severity;
            let level = if finding.unread { Some(own) } else { self.level(finding.rule, own) };
            finding.severity = level.unwrap_or(own);
            level.is_some()
        });
    }

    /// Returns the scope of a directory: of it and the directories above it, the innermost that one of
    /// `scopes` matches; `None` when none does, so that the repository bounds.
    pub fn scope_of(&self, directory: &str) -> Option<String> {
        glob::and_above(directory).find(|directory| self.scopes.matches(directory)).map(str::to_owned)
    }

    /// Returns it with what `policy` decides about programs, time and fetching: no change decides that for itself.
    pub(crate) fn run_by(self, policy: &Config) -> Config {
        let Config { helm, build_timeout, allow_private, max_file_size, .. } = *policy;
        let Config { kustomize, trust_exec, sources, .. } = policy.clone();
        Config { helm, build_timeout, allow_private, max_file_size, kustomize, trust_exec, sources, ..self }
    }

    /// Returns whether the root in this directory is a starting point: it lies in what `include`
    /// matches, if there is any, and not in what `exclude` matches.
    pub(crate) fn starts(&self, directory: &str) -> bool {
        (self.include.is_empty() || self.include.covers(directory)) && !self.leaves_out(directory)
    }

    /// Returns whether `exclude` matches a directory, or one above it.
    pub fn leaves_out(&self, directory: &str) -> bool {
        self.exclude.covers(directory)
    }

    /// Returns whether a program from elsewhere stays executable where it is stored.
    pub fn trusts(&self, path: &str) -> bool {
        self.trust_exec.matches(path)
    }
}

#[cfg(test)]
mod tests;
