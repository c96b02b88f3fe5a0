//! The configuration of a repository: `.kustomize-localize` at the top of its tree.
//!
//! ```yaml
//! sources:                    # the upstreams that may be locked, and their conditions
//! - {url: github.com/acme, signed-by: .github/allowed-signers}
//! - {url: "*", min-age: 7d}
//! rules:                      # error, warning or off, for each rule; "*" means all warnings of the others
//!   floating-ref: warning
//! scopes:                     # directories that may not reach out of themselves
//!   - apps/*
//! include:                    # only these directories, and those below, are starting points
//!   - clusters
//! exclude:                    # these, and those below, are not starting points
//!   - "**/templates"
//! allow:                      # exceptions, which stay as they are
//!   - url: https://github.com/acme/bases//web?ref=v1
//!     reason: gone upstream   # exactly this reference
//!   - url: github.com/acme
//!     refs: tag               # everything there; any < branch < tag < commit
//!     reason: our own bases, released with signed tags
//!   - path: "**/secret.env"
//!     reason: made by each cluster
//! helm: false                 # vendor charts of repositories, and render charts that are deployed from this tree
//! licenses: true              # the licenses of remote repositories are copied
//! load-restrictor: root-only  # or none, as Flux and Argo CD can build
//! allow-private: false        # a URL in an upstream may have a private address
//! max-file-size: 64m          # of files from elsewhere
//! trust-exec:                 # programs from elsewhere that stay executable
//!   - "**/transform.sh"
//! kustomize: "5.8"            # the version that builds
//! build-timeout: 60s          # how long one build may take
//! rendered-secrets: false     # a rendered branch may hold Secrets in the clear
//! hydrator-metadata: false    # whether `branch` writes the file that GitOps Promoter reads
//! repository:                 # URLs under which this repository is deployed
//!   - url: oci://ghcr.io/acme/manifests
//!     path: deploy                # the directory that is the top there
//! targets:                    # directories that are deployed although no object in the tree says so
//!   - path: clusters/edge
//!     engine: argo-cd             # flux, argo-cd or kustomize
//! ```
//!
//! Every key may be left out. An unknown key is an error with its position, so that a mistyped policy does not silently
//! do nothing. The configuration cannot name a command, a host to contact or (except for `signed-by`) a file to read.
//! If a change is checked, the keys that decide what runs and what is fetched are [those of its base](Config::run_by).
//!
//! # Directories
//!
//! `scopes`, `include` and `exclude` are [globs](Glob) of directories, from the top of the repository. A scope is a
//! directory that matches; the innermost scope bounds a directory ([`Config::scope_of`]). `include` and `exclude` say
//! where a walk starts, and mean the directories that match and everything below ([`Config::starting_points`]). A root
//! that is excluded is still walked if another root references it. Objects of engines in excluded directories count
//! only if a target applies their directory, or a deployed root lists them.
//!
//! # Exceptions
//!
//! A reference stays as it is if an entry of `allow` covers it ([`Allow`]), or a comment beside it does ([`Comments`]).
//! `address` defines which URLs an entry matches, and [`RefPolicy`] how firmly a ref must be pinned.

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
pub(crate) use deployed::{Declared, EngineName, RepositoryUrl};
pub(crate) use glob::{Glob, Globs};
pub(crate) use source::{Distrust, SourcePolicies, SourcePolicy};

/// The name of the configuration, at the top of the tree.
pub(crate) const FILE_NAME: &str = ".kustomize-localize";

/// The reason that a hint shows, for the user to replace.
pub(crate) const PLACEHOLDER: &str = "TODO";

/// The JSON Schema (draft 7) of the configuration, for editors.
#[cfg(test)]
pub(crate) const SCHEMA: &str = include_str!("config/schema.json");

/// The configuration of a repository; the default without a file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// How messages name the file; empty without a file.
    #[serde(skip)]
    pub file: String,
    /// The severities of rules that differ from their defaults.
    pub rules: BTreeMap<RuleKey, Severity>,
    /// The directories that their files may not reference out of.
    pub scopes: Globs,
    /// The directories that may be starting points; all if it is empty.
    pub include: Globs,
    /// The directories that are not starting points.
    pub exclude: Globs,
    /// The exceptions.
    pub allow: Exceptions,
    /// The upstreams that may be locked; `None` if all may.
    pub sources: Option<SourcePolicies>,
    /// Whether charts of repositories are vendored, and deployed charts in the tree rendered.
    pub helm: bool,
    /// Whether the licenses of vendored repositories are left out.
    #[serde(rename = "licenses", deserialize_with = "read::not")]
    pub no_licenses: bool,
    /// Which files a kustomization root may load.
    pub load_restrictor: LoadRestrictor,
    /// The version of kustomize that builds, or its first numbers; `None` if any may.
    #[serde(deserialize_with = "read::version")]
    pub kustomize: Option<String>,
    /// How long one build may take; `None` for the default.
    #[serde(deserialize_with = "read::duration")]
    pub build_timeout: Option<Duration>,
    /// Whether a URL that only an upstream names may have a private address.
    pub allow_private: bool,
    /// The size of the largest file that may be fetched, in bytes; `None` for the default.
    #[serde(deserialize_with = "read::size")]
    pub max_file_size: Option<u64>,
    /// The fetched programs that stay executable.
    pub trust_exec: Globs,
    /// Whether a rendered branch may hold Secrets in the clear.
    pub rendered_secrets: bool,
    /// Whether a branch gets a `hydrator.metadata`.
    pub hydrator_metadata: bool,
    /// The URLs under which this repository is deployed.
    pub repository: Vec<RepositoryUrl>,
    /// The directories that are deployed although no object in the tree says so.
    pub targets: Vec<Declared>,
}

/// A key of `rules`: a rule, or `None` for `*`, which means all warnings of the other rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleKey(pub Option<Rule>);

/// How firmly a reference must be pinned, as far as its text shows; each policy also accepts those after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefPolicy {
    /// Anything: no ref, an abbreviated id, a chart without version.
    Any,
    /// A ref, also one that looks like a branch; `releases/latest`.
    Branch,
    /// A ref that looks like a tag, a chart with one version, a single file whose URL has no part that is known to
    /// move.
    Tag,
    /// A full commit id.
    Commit,
}

impl RefPolicy {
    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            RefPolicy::Any => "any",
            RefPolicy::Branch => "branch",
            RefPolicy::Tag => "tag",
            RefPolicy::Commit => "commit",
        }
    }

    /// The strictest policy that the subject of a finding fulfils: an entry of `allow` with stricter `refs` does not
    /// cover the finding.
    fn of(rule: Rule, subject: &Subject) -> RefPolicy {
        match subject {
            Subject::Remote(git @ Upstream::Git { .. }) => RefPolicy::of_pin(git.pin()),
            Subject::Remote(Upstream::File { url }) => RefPolicy::of_file(rule, url),
            Subject::Remote(Upstream::Chart { version, .. }) if version.as_deref().is_some_and(is_one_version) => {
                RefPolicy::Tag
            }
            Subject::Remote(Upstream::Chart { .. }) => RefPolicy::Any,
            Subject::Remote(Upstream::Image { image }) => RefPolicy::of_image(image),
            // These have no ref, so that no `refs` excludes them.
            Subject::Local | Subject::Path { .. } | Subject::Program { .. } => RefPolicy::Commit,
        }
    }

    /// A URL without a part that is known to move counts as a version.
    fn of_file(rule: Rule, url: &str) -> RefPolicy {
        match reference::file_pin(url) {
            Some((pin, _)) => RefPolicy::of_pin(pin),
            // The finding says that the file moves, although its URL, as the subject has it, does not show that.
            None if rule == Rule::FloatingRef => RefPolicy::Any,
            None => RefPolicy::Tag,
        }
    }

    /// The digest of an image decides, whatever the tag beside it is.
    fn of_image(image: &str) -> RefPolicy {
        if is_pinned(image) {
            return RefPolicy::Commit;
        }
        let name = image.rsplit('/').next().unwrap_or(image);
        match name.rsplit_once(':') {
            None | Some((_, "" | "latest")) => RefPolicy::Any,
            Some(_) => RefPolicy::Tag,
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

/// Whether a reason is still a placeholder that a hint or a template suggested.
pub(crate) fn is_placeholder(reason: &str) -> bool {
    // People write `TODO:` or `<reason>`.
    let word = reason.trim_matches(|c: char| !c.is_alphanumeric());
    let mut placeholders = [PLACEHOLDER, "REASON", "WHY", "FIXME", "TBD", "XXX", ""].into_iter();
    placeholders.any(|placeholder| placeholder.eq_ignore_ascii_case(word))
}

/// Whether helm reads a version as exactly that version, not as a range.
pub(crate) fn is_one_version(version: &str) -> bool {
    let version = version.strip_prefix('v').unwrap_or(version);
    // helm reads fewer than three numbers as a range.
    let numbers: Vec<&str> = version.split(['-', '+']).next().unwrap_or_default().split('.').collect();
    numbers.len() == 3
        && numbers.iter().all(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        && version.chars().all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c))
}

impl Config {
    /// Reads the configuration in `directory`, the top of a repository; the default without a file.
    pub fn of(tree: &dyn Tree, directory: &str) -> Result<Config> {
        let path = path::join(directory, FILE_NAME);
        // A file with the wrong name is rejected: the user believes that it is in force.
        for wrong in [".yaml", ".yml"].map(|end| format!("{path}{end}")) {
            if tree.entry(&wrong)?.is_some() {
                let wrong = path::name(&wrong);
                return Err(Failure::new(format!("`{wrong}` is not read: the configuration is `{FILE_NAME}`"))
                    .hint(format!("rename it to `{FILE_NAME}`")));
            }
        }
        match tree.entry(&path)? {
            None => Ok(Config::default()),
            Some(Entry::File { .. }) => {
                let mut config = Config::parse(&tree.read(&path)?, FILE_NAME)?;
                config.read_signers(tree, directory)?;
                Ok(config)
            }
            // A policy that is never read must not look like a missing one.
            Some(_) => Err(Failure::new(format!("`{FILE_NAME}` is not a regular file"))
                .hint("replace it with a file: the configuration is read there")),
        }
    }

    /// The severity of a finding that has the severity `default` without a configuration; `None` if its rule is off.
    pub fn level(&self, rule: Rule, default: Severity) -> Option<Severity> {
        let is_off = rule.default_level() == Severity::Off;
        // `*` neither weakens an error nor switches on a rule that is off: both must be asked for by name.
        let wildcard = self.rules.get(&RuleKey(None)).filter(|_| default == Severity::Warning && !is_off);
        let severity = self.rules.get(&RuleKey(Some(rule))).or(wildcard);
        let severity = severity.copied().unwrap_or(if is_off { Severity::Off } else { default });
        Some(severity).filter(|severity| *severity != Severity::Off)
    }

    /// Gives findings the severity of the configuration, and removes those of rules that are off.
    pub(crate) fn judge(&self, findings: &mut Vec<Finding>) {
        findings.retain_mut(|finding| {
            let default = finding.severity;
            // A file that could not be read may hold anything, so no rule about it can be switched off.
            let level = if finding.unread { Some(default) } else { self.level(finding.rule, default) };
            finding.severity = level.unwrap_or(default);
            level.is_some()
        });
    }

    /// The scope of a directory: the innermost directory, itself or above, that `scopes` matches; `None` if only the
    /// repository bounds it.
    pub fn scope_of(&self, directory: &str) -> Option<String> {
        glob::and_above(directory).find(|directory| self.scopes.matches(directory)).map(str::to_owned)
    }

    /// The configuration of a change, with the keys about programs, time and fetching from the `policy` of its base.
    pub(crate) fn run_by(self, policy: &Config) -> Config {
        // A change must not decide what runs on the machine that checks it.
        let Config { helm, build_timeout, allow_private, max_file_size, .. } = *policy;
        let Config { kustomize, trust_exec, sources, .. } = policy.clone();
        Config { helm, build_timeout, allow_private, max_file_size, kustomize, trust_exec, sources, ..self }
    }

    /// Whether the root in this directory is a starting point: `include` is empty or covers it, and `exclude` does not.
    pub(crate) fn may_start_in(&self, directory: &str) -> bool {
        (self.include.is_empty() || self.include.covers(directory)) && !self.leaves_out(directory)
    }

    /// Whether it says which URLs are this repository.
    pub fn names_repository(&self) -> bool {
        // An artifact is made of it, and is not where it is.
        self.repository.iter().any(|repository| !repository.url.starts_with("oci://"))
    }

    /// Whether `exclude` matches a directory, or a directory above it.
    pub fn leaves_out(&self, directory: &str) -> bool {
        self.exclude.covers(directory)
    }

    /// Whether a fetched program stays executable at this path.
    pub fn trusts(&self, path: &str) -> bool {
        self.trust_exec.matches(path)
    }
}

#[cfg(test)]
mod tests;
