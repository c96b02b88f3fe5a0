//! Checks that localizing changed nothing: builds original and result with the kustomize on this machine, and compares
//! the outputs.
//!
//! Both are written into private directories (`roots`, `inputs`) and built side by side with the same flags (`runner`,
//! `run`). The original sees the upstream as this run fetched it: where kustomize calls git, our own executable answers
//! ([`stand_in`]), and for remote files a proxy on this machine (`proxy`). The result is built with the network closed.
//!
//! Whatever a build asks for beyond that is refused, and a finding: [`Verdict::Unread`]. A build that reads a file
//! which no walk has found is a finding, too: each root of the user lies in a directory of its own, with its known
//! inputs and nothing else. Only the roots of a copy share one directory, which has the files of the copy.

pub(crate) mod builds;
pub(crate) mod choice;
pub(crate) mod compare;
pub(crate) mod consequences;
pub(crate) mod deployed;
pub(crate) mod disk;
mod earlier;
mod edits;
mod inputs;
pub(crate) mod memory;
pub(crate) mod parts;
pub(crate) mod program;
mod proxy;
pub(crate) mod rendered;
mod roots;
mod run;
mod runner;
mod secrets;
pub(crate) mod stand_in;
pub(crate) mod subject;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Serialize, Serializer};

pub(crate) use compare::{OutputDifference, Verdict};
pub(crate) use earlier::Earlier;
use memory::Memory;
pub(crate) use roots::{Built, Unbuilt};
pub(crate) use runner::check_builds;

use crate::config::Config;
use crate::graph::RootId;
use crate::os::sandbox::Means;
use crate::plan::{ComparedRoot, Plan};
use crate::record::{BuildTool, Verified};
use crate::tree::SharedTree;

/// How to build.
#[derive(Debug, Clone, Default)]
pub(crate) struct BuildOptions {
    /// The kustomize that the user named, else one is looked for.
    pub program: Option<PathBuf>,
    /// More arguments for `kustomize build`.
    pub arguments: Vec<String>,
    /// The configuration of the team.
    pub config: Config,
    /// Whether the network is closed for the original as well.
    pub offline: bool,
    /// Whether to show no progress.
    pub quiet: bool,
    /// The memory of builds; `None` if builds are not remembered.
    pub memory: Option<Arc<Memory>>,
    /// The name of the directory for differing outputs; those of the last run with this name are deleted.
    pub outputs: String,
}

/// The roots of a plan to build, before and after.
pub(crate) struct PlanBuilds<'a> {
    pub plan: &'a Plan,
    /// The source commit, if both sides are parts of commits: the builds then see the files as a checkout writes them.
    pub checkout: Option<SharedTree>,
    /// The results of an earlier run; `None` to build everything.
    pub earlier: Option<Earlier>,
}

/// The result of the builds.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct BuildCheck {
    /// The program that built, or would have; `None` if there is none.
    #[serde(rename = "program", serialize_with = "program_of")]
    pub by: Option<BuildTool>,
    /// Why nothing was built.
    #[serde(rename = "without")]
    pub not_built: Option<String>,
    /// How the network was closed for the builds; `None` if nothing was built.
    pub network: Option<Means>,
    /// The result of each target.
    pub targets: Vec<TargetCheck>,
}

/// The result of building one target.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TargetCheck {
    /// Its name in records.
    pub target: String,
    /// The root, of the graph that was walked.
    #[serde(skip)]
    pub root: RootId,
    /// Whether it is built from something else than before.
    #[serde(skip)]
    pub is_changed: bool,
    /// The result of the comparison.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The fix; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_step: Option<&'static str>,
    /// The number of bytes that the original builds to; 0 if the verdict rests on no output.
    pub size: u64,
    /// The directory in which the outputs were kept, if they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs: Option<String>,
}

impl BuildCheck {
    /// Nothing was built, for this reason.
    pub(crate) fn not_built(reason: &str) -> BuildCheck {
        BuildCheck { not_built: Some(reason.to_owned()), ..BuildCheck::default() }
    }

    /// Whether a result builds differently from its original.
    pub(crate) fn differs(&self) -> bool {
        self.targets.iter().any(|target| target.verdict.differs())
    }

    /// The value for the record; `None` if no program was found, or if each target differs or has an unknown request.
    /// An earlier proof that still holds counts as the same output.
    pub(crate) fn verified(&self) -> Option<Verified> {
        let same = self.targets.iter().filter(|target| target.verdict.is_same()).count();
        let not_built = self.targets.iter().filter(|target: &&TargetCheck| {
            matches!(target.verdict, Verdict::NotBuilt { .. } | Verdict::Skipped { .. })
        });
        let not_built: BTreeSet<String> = not_built.map(|target| target.target.clone()).collect();
        let by = self.by.as_ref().filter(|_| same > 0 || !not_built.is_empty())?;
        Some(Verified { same, not_built, by: by.without_secrets() })
    }
}

/// The message for a build that requested something unknown.
pub(crate) fn unread_reference(by: &str, request: &str) -> String {
    format!("{by} asks for `{request}`, which no reference names")
}

/// The message for a root that fails, but builds if all other files of the tree are beside it.
pub(crate) fn unread_file(reason: &str) -> String {
    format!("kustomize reads a file that no reference names; without that file the build fails: {reason}")
}

/// The hint that names the missing flag, if a build failed for this reason; else `None`.
pub(crate) fn missing_flag(reason: &str) -> Option<&'static str> {
    const FLAGS: [(&str, &str); 2] = [
        ("--enable-helm", "to pass the flag to all builds: --build-arg=--enable-helm"),
        (
            "plugins disabled",
            "a function needs the flag --build-arg=--enable-alpha-plugins; a plugin of this machine never runs",
        ),
    ];
    FLAGS.into_iter().find(|(message, _)| reason.contains(message)).map(|(_, help)| help)
}

/// Writes only the name of the program, as JSON has it.
fn program_of<S: Serializer>(by: &Option<BuildTool>, serializer: S) -> Result<S::Ok, S::Error> {
    by.as_ref().map(|by| &by.program).serialize(serializer)
}

impl TargetCheck {
    /// The result for a root, with the hint that its verdict gives. The caller sets size and outputs after a build.
    fn new(pair: &ComparedRoot, verdict: Verdict) -> TargetCheck {
        let next_step = match &verdict {
            Verdict::Identical | Verdict::Unchanged | Verdict::VerifiedBefore => None,
            // The reason names the exception that the user wrote, or the path to change; an unknown request is a
            // finding.
            Verdict::Skipped { .. } | Verdict::Unread { .. } => None,
            Verdict::Differs(_) | Verdict::Broken { .. } => Some("to accept the difference: --no-verify"),
            Verdict::Unsteady(_) => Some(
                "make the build deterministic (charts need a release name, functions must not read the clock), or skip verification: --no-verify",
            ),
            Verdict::NotBuilt { reason } => missing_flag(reason),
        };
        let (target, root, is_changed) = (pair.name.clone(), pair.root, pair.is_changed);
        TargetCheck { target, root, is_changed, verdict, next_step, size: 0, outputs: None }
    }
}
