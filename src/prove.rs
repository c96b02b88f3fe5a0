//! The proof that localizing changed nothing: original and result are built with the user's own
//! kustomize, and their outputs compared.
//!
//! Both are put out into a private directory at the same relative path ([`scene`]) and built side by side with
//! the same flags ([`build`]). The original sees the upstream as this run fetched it: where kustomize calls git,
//! our own executable answers ([`stand_in`]). The result is built with the network closed ([`closed`]).

mod build;
pub mod closed;
pub mod compare;
mod program;
mod scene;
pub mod stand_in;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use build::Build;
pub use compare::{Metadata, Verdict};
pub use program::{Program, Search};

use crate::failure::{Failure, Result};
use crate::interrupt::Scratch;
use crate::localize::Localized;
use crate::record::LoadRestrictor;
use crate::walk::Graph;
use build::{Git, Room};
use closed::Network;
use scene::Scene;

/// How long one build may take where the user does not say.
const TIMEOUT: Duration = Duration::from_secs(300);

/// How to build.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The kustomize that the user named, else one is looked for.
    pub program: Option<PathBuf>,
    /// More arguments for `kustomize build`.
    pub arguments: Vec<String>,
    /// Whether the original is built against its live upstream, with the real git.
    pub full: bool,
    /// How long one build may take.
    pub timeout: Option<Duration>,
}

/// What is proven: that a localized target builds to what the target builds to.
pub struct Job<'a> {
    /// What was walked.
    pub graph: &'a Graph,
    /// What came of it.
    pub localized: &'a Localized,
    /// How records name the target.
    pub target: &'a str,
    /// The target as a URL, if it is one.
    pub url: Option<&'a str>,
    /// Where files may lie.
    pub load_restrictor: LoadRestrictor,
}

/// What came of building.
#[derive(Debug, Clone)]
pub struct Proof {
    /// What built, as `kustomize/v5.8.1`; none where nothing did.
    pub program: Option<String>,
    /// Why nothing was built.
    pub without: Option<String>,
    /// How the network was closed for the result.
    pub network: Option<Network>,
    /// What came of each target.
    pub targets: Vec<TargetProof>,
}

/// What came of building one target.
#[derive(Debug, Clone)]
pub struct TargetProof {
    /// How records name it.
    pub target: String,
    /// What the comparison says.
    pub verdict: Verdict,
    /// The number of bytes that the original builds to.
    pub size: u64,
    /// Why the original was built against its live upstream, if it was.
    pub live: Option<String>,
    /// Where the outputs were kept, if they differ.
    pub kept: Option<PathBuf>,
}

impl Proof {
    /// Returns a proof without a build, and why.
    #[must_use]
    pub fn without(reason: &str) -> Proof {
        Proof {
            program: None,
            without: Some(reason.to_owned()),
            network: None,
            targets: Vec::new(),
        }
    }

    /// Says whether some result does not build to what its original builds to.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.targets
            .iter()
            .any(|target| matches!(target.verdict, Verdict::Differs(_) | Verdict::Unsteady(_)))
    }

    /// Returns what the trailer says.
    #[must_use]
    pub fn trailer(&self) -> String {
        let same = |target: &&TargetProof| target.verdict.is_same();
        let same = self.targets.iter().filter(same).count();
        let not_built = |target: &&TargetProof| matches!(target.verdict, Verdict::NotBuilt { .. });
        let not_built = self.targets.iter().filter(not_built).count();
        match &self.program {
            Some(program) if same > 0 => {
                let also = match not_built {
                    0 => String::new(),
                    count => format!(", not built {count}"),
                };
                format!("identical {same}/{}{also} {program}", self.targets.len())
            }
            _ => "not built".to_owned(),
        }
    }
}

/// Builds original and result, and compares what comes out.
///
/// # Errors
/// When the program that the user named cannot be used, or nothing can be put out.
pub fn prove(jobs: &[Job<'_>], options: &Options) -> Result<Proof> {
    refuse_arguments(&options.arguments)?;
    let program = match program::find(options.program.as_deref())? {
        Search::Found(program) => program,
        Search::Nothing(reason) => return Ok(Proof::without(&reason)),
    };
    let unusable = |error| Failure::new(format!("no temporary directory: {error}"));
    let scratch = Scratch::new().map_err(unusable)?;
    let mut targets = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        let directory = scratch.path().join(number.to_string());
        targets.push(one(&program, job, options, &directory)?);
    }
    Ok(Proof {
        program: Some(program.name()),
        without: None,
        network: Some(program.network),
        targets,
    })
}

fn one(program: &Program, job: &Job<'_>, options: &Options, top: &Path) -> Result<TargetProof> {
    let scene = Scene::put(job, top)?;
    let mut arguments = options.arguments.clone();
    if job.load_restrictor == LoadRestrictor::None {
        arguments.push("--load-restrictor=LoadRestrictionsNone".to_owned());
    }
    let timeout = options.timeout.unwrap_or(TIMEOUT);
    let build = |what: &str, target: &std::ffi::OsStr, room: Room| {
        build::build(program, target, &arguments, &top.join(what), room, timeout)
    };
    let original = || {
        let git = match options.full {
            true => Git::Real,
            false => Git::StandIn(&scene.manifest),
        };
        let room = Room {
            git,
            closed: !options.full && scene.is_complete,
        };
        build("original-room", scene.original.as_os_str(), room)
    };
    let localized = || {
        let room = Room {
            git: Git::StandIn(&scene.nothing),
            closed: true,
        };
        build("localized-room", scene.localized.as_os_str(), room)
    };
    let (original, localized) = std::thread::scope(|threads| {
        let localized = threads.spawn(localized);
        let original = original();
        let lost = || Err(Failure::new("the build was lost"));
        (original, localized.join().unwrap_or_else(|_| lost()))
    });
    let (mut original, localized) = (original?, localized?);
    let mut live = None;
    if !original.success
        && !options.full
        && let Some(unknown) = stand_in::unknown(&scene.manifest)
    {
        let room = Room {
            git: Git::Real,
            closed: false,
        };
        original = build("live-room", scene.original.as_os_str(), room)?;
        live = Some(unknown);
    }
    let verdict = match (original.success, localized.success) {
        (false, _) => Verdict::NotBuilt {
            reason: scene.plain(&original.said),
        },
        (true, false) => compare::does_not_build(&scene.plain(&localized.said)),
        (true, true) => {
            let asked = Metadata::asked(job.graph);
            compare::compare(&original.stdout, &localized.stdout, asked)
        }
    };
    let kept = match verdict {
        Verdict::Differs(_) | Verdict::Unsteady(_) => Some(
            keep(&original, &localized)
                .map_err(|error| Failure::new(format!("the outputs could not be kept: {error}")))?,
        ),
        _ => None,
    };
    Ok(TargetProof {
        target: job.target.to_owned(),
        verdict,
        size: original.stdout.len() as u64,
        live,
        kept,
    })
}

/// Keeps what was built, for the user to look at. Only the user can: it may hold secrets.
fn keep(original: &Build, localized: &Build) -> std::io::Result<PathBuf> {
    let scratch = Scratch::new()?;
    for (name, build) in [("original", original), ("localized", localized)] {
        let place = |end: &str| scratch.path().join(format!("{name}.{end}"));
        std::fs::write(place("yaml"), &build.stdout)?;
        if !build.said.is_empty() {
            std::fs::write(place("stderr"), &build.said)?;
        }
    }
    Ok(scratch.keep())
}

/// Refuses what would leave nothing to compare.
fn refuse_arguments(arguments: &[String]) -> Result<()> {
    for argument in arguments {
        let name = argument.split('=').next().unwrap_or_default();
        let short = argument.starts_with("-o") || argument.starts_with("-h");
        if matches!(name, "--output" | "--help" | "--") || short {
            return Err(Failure::new(format!(
                "`--build-arg {argument}` would leave nothing to compare"
            ))
            .hint("leave it out"));
        }
    }
    Ok(())
}
