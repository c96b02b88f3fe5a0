//! The proof that localizing changed nothing: original and result are built with the user's own
//! kustomize, and their outputs compared.
//!
//! Both are put out into a private directory at the same relative path ([`scene`]) and built side by side with
//! the same flags ([`build`]). The original sees the upstream as this run fetched it: where kustomize calls git,
//! our own executable answers ([`stand_in`]), and for remote files a proxy on this machine (`proxy`). The result is built with the network closed ([`closed`]).

mod build;
pub mod closed;
pub mod compare;
mod diff;
mod objects;
mod program;
mod proxy;
mod scene;
pub mod stand_in;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub use build::Build;
pub use compare::{Changed, Difference, DifferenceKind, Metadata, ObjectChange, Verdict};
pub use program::{Program, Search};

use crate::failure::{Failure, Result};
use crate::interrupt::Scratch;
use crate::kustomization::{FunctionRuntime, NoteKind};
use crate::localize::ResultFile;
use crate::record::{Change, LoadRestrictor};
use crate::walk::Graph;
use build::{Git, Network, Room};
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
    /// Whether the network is closed for the original as well.
    pub offline: bool,
    /// How long one build may take.
    pub timeout: Option<Duration>,
}

/// What is proven: that localized targets build to what the targets build to.
pub struct Job<'a> {
    /// What was walked. The scope of its first tree is where both sides begin.
    pub before: &'a Graph,
    /// What came of it.
    pub after: After<'a>,
    /// What is built.
    pub targets: Vec<Target>,
    /// Where files may lie.
    pub load_restrictor: LoadRestrictor,
    /// Asks upstream again, for files and maybe for repositories: what is something else than what was fetched.
    pub moved: &'a dyn Fn(bool) -> Vec<Change>,
}

/// What localizing yields.
pub enum After<'a> {
    /// A tree, where the original stood.
    InPlace(&'a Graph),
    /// A copy: its files by path.
    Copy(&'a BTreeMap<String, ResultFile>),
}

/// One thing that is built, twice.
#[derive(Debug, Clone)]
pub struct Target {
    /// How records name it.
    pub name: String,
    /// What to build for the original.
    pub original: Original,
    /// The directory to build for the result, from where it begins.
    pub localized: String,
    /// Which annotations about the build the kustomization asks for.
    pub asked: Metadata,
}

/// What is built for the original.
#[derive(Debug, Clone)]
pub enum Original {
    /// A directory, from the scope.
    Directory(String),
    /// A directory of a git repository.
    Url(String),
}

/// What came of building.
#[derive(Debug, Clone)]
pub struct Proof {
    /// What built, as `kustomize/v5.8.1`; none where nothing did.
    pub program: Option<String>,
    /// Why nothing was built.
    pub without: Option<String>,
    /// How the network was closed for the result.
    pub network: Option<closed::Network>,
    /// What came of each target.
    pub targets: Vec<TargetProof>,
    /// What upstream holds now is something else, where that may be why a target differs.
    pub moved: Vec<Change>,
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
            moved: Vec::new(),
        }
    }

    /// Says whether some result does not build to what its original builds to.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.targets.iter().any(|target| target.verdict.differs())
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

impl TargetProof {
    /// Returns what to do about the verdict.
    #[must_use]
    pub fn next_steps(&self) -> Vec<String> {
        let steps: &[&str] = match &self.verdict {
            Verdict::Identical | Verdict::AnnotationsOnly => &[],
            Verdict::Differs(_) => &["to take it as it is all the same: --no-verify"],
            Verdict::Unsteady(_) => &[
                "let it build to the same each time (charts need a release name, functions no clock), or leave it unverified: --no-verify",
            ],
            Verdict::NotBuilt { reason } | Verdict::Broken { reason } => {
                let step = NEXT_STEPS.iter().find(|(said, _)| reason.contains(said));
                match step {
                    Some((_, step)) => &[*step],
                    None => &[],
                }
            }
        };
        steps.iter().map(|step| (*step).to_owned()).collect()
    }
}

/// What kustomize says where a build needs something that it was not given, and what to do.
const NEXT_STEPS: [(&str, &str); 6] = [
    (
        "must specify --enable-helm",
        "to build it with helm: --build-arg=--enable-helm",
    ),
    (
        "external plugins disabled",
        "to run its plugins and functions, which is to run their code: --build-arg=--enable-alpha-plugins, and for programs --build-arg=--enable-exec",
    ),
    (
        SKIPPED,
        "to run them, which is to run their code: --build-arg=--enable-alpha-plugins --build-arg=--enable-exec, with kustomize",
    ),
    (
        "is not in or below",
        "if it is built with files from outside of their root: --load-restrictor=none",
    ),
    (
        "permission denied",
        "a program that was brought in is not executable before you trust it: see the warnings",
    ),
    (
        "did not finish within",
        "give it more time: --timeout SECONDS",
    ),
];

/// What is said where a build would leave functions out without a word.
const SKIPPED: &str = "functions that are programs are left out silently";

/// Builds original and result of each target, and compares what comes out.
///
/// # Errors
/// When the program that the user named cannot be used, or nothing can be put out.
pub fn prove(job: &Job<'_>, options: &Options) -> Result<Proof> {
    refuse_arguments(&options.arguments)?;
    let program = match program::find(options.program.as_deref())? {
        Search::Found(program) => program,
        Search::Nothing(reason) => return Ok(Proof::without(&reason)),
    };
    let unusable = |error| Failure::new(format!("no temporary directory: {error}"));
    let scratch = Scratch::new().map_err(unusable)?;
    let scene = Scene::put(job, scratch.path())?;
    let mut arguments = options.arguments.clone();
    if job.load_restrictor == LoadRestrictor::None {
        arguments.push("--load-restrictor=LoadRestrictionsNone".to_owned());
    }
    // kustomize skips them unless it was told to run programs, and kubectl cannot be told.
    let has = |name: &str| {
        let on = [name.to_owned(), format!("{name}=true")];
        arguments.iter().any(|argument| on.contains(argument))
    };
    let skips = has("--enable-alpha-plugins")
        && (program.kind == program::Kind::Kubectl || !has("--enable-exec"))
        && runs_programs(job.before);
    let stage = Stage {
        skips,
        program: &program,
        scene: &scene,
        arguments,
        full: options.full,
        offline: options.offline,
        timeout: options.timeout.unwrap_or(TIMEOUT),
    };
    let mut proof = Proof {
        program: Some(program.name()),
        without: None,
        network: Some(program.network),
        targets: stage.all(&job.targets)?,
        moved: Vec::new(),
    };
    let live = options.full || proof.targets.iter().any(|target| target.live.is_some());
    if proof.differs() && (live || !scene.is_complete) {
        proof.moved = (job.moved)(live);
    }
    Ok(proof)
}

/// Everything that is the same for all targets. No tree is in it: those cannot be read side by side.
struct Stage<'a> {
    program: &'a Program,
    scene: &'a Scene,
    arguments: Vec<String>,
    full: bool,
    offline: bool,
    /// Whether the builds leave functions out.
    skips: bool,
    timeout: Duration,
}

impl Stage<'_> {
    /// Builds all targets, as many side by side as there are processors.
    fn all(&self, targets: &[Target]) -> Result<Vec<TargetProof>> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                match targets.get(number) {
                    Some(target) => done.push((number, self.one(number, target))),
                    None => return done,
                }
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let mut done: Vec<(usize, Result<TargetProof>)> = std::thread::scope(|threads| {
            let workers: Vec<_> = (0..workers.min(targets.len()))
                .map(|_| threads.spawn(work))
                .collect();
            let done = workers.into_iter().filter_map(|worker| worker.join().ok());
            done.flatten().collect()
        });
        if done.len() < targets.len() {
            return Err(Failure::new("a build was lost"));
        }
        done.sort_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, proof)| proof).collect()
    }

    fn one(&self, number: usize, target: &Target) -> Result<TargetProof> {
        let scene = self.scene;
        let private = scene.private(number);
        let build = |what: &str, target: &OsStr, room: Room<'_>| {
            let private = private.join(what);
            build::build(
                self.program,
                target,
                &self.arguments,
                &private,
                room,
                self.timeout,
            )
        };
        let source = scene.original(&target.original);
        let fetched = || Room {
            git: Git::StandIn(&scene.manifest),
            network: match &scene.proxy {
                Some(proxy) if scene.is_complete || !self.offline => Network::Fetched(proxy),
                None if !scene.is_complete && !self.offline => Network::Open,
                _ => Network::Closed,
            },
        };
        let live = || Room {
            git: Git::Real,
            network: Network::Open,
        };
        let original = |what: &str, full: bool| {
            let room = if full { live() } else { fetched() };
            build(what, source.as_os_str(), room)
        };
        let localized = || {
            let room = Room {
                git: Git::StandIn(&scene.nothing),
                network: Network::Closed,
            };
            let directory = scene.localized(&target.localized);
            build("localized", directory.as_os_str(), room)
        };
        let (first, localized) = std::thread::scope(|threads| {
            let localized = threads.spawn(localized);
            let first = original("original", self.full);
            let lost = || Err(Failure::new("a build was lost"));
            (first, localized.join().unwrap_or_else(|_| lost()))
        });
        let (mut first, localized) = (first?, localized?);
        let mut unknown = None;
        if !first.success && !self.full && !self.offline {
            let proxy = scene.proxy.as_ref();
            unknown = stand_in::unknown(&scene.manifest)
                .or_else(|| proxy.and_then(|proxy| proxy.unknown(&first.said)));
            if unknown.is_some() {
                first = original("live", true)?;
            }
        }
        let mut verdict = match (first.success, localized.success) {
            (false, _) => Verdict::NotBuilt {
                reason: scene.plain(&first.said),
            },
            (true, false) => Verdict::Broken {
                reason: scene.plain(&localized.said),
            },
            (true, true) => compare::compare(&first.stdout, &localized.stdout, target.asked),
        };
        if self.skips && verdict.is_same() {
            verdict = Verdict::NotBuilt {
                reason: SKIPPED.to_owned(),
            };
        }
        if let Verdict::Differs(difference) = &verdict {
            let again = original("again", self.full || unknown.is_some())?;
            if again.success && again.stdout != first.stdout {
                verdict = Verdict::Unsteady(difference.clone());
            }
        }
        let kept = match verdict.differs() {
            true => Some(keep(&first, &localized).map_err(|error| {
                Failure::new(format!("the outputs could not be kept: {error}"))
            })?),
            false => None,
        };
        Ok(TargetProof {
            target: target.name.clone(),
            verdict,
            size: first.stdout.len() as u64,
            live: unknown,
            kept,
        })
    }
}

/// Says whether a function of the graph is a program.
fn runs_programs(graph: &Graph) -> bool {
    graph.notes.iter().any(|noted| {
        matches!(
            noted.note.kind,
            NoteKind::KrmFunction {
                runtime: FunctionRuntime::Exec { .. },
                ..
            }
        )
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
