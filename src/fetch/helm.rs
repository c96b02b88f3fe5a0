//! Helm charts: pulled with helm, once each, and kept as the archive that helm got.
//!
//! kustomize runs `helm pull --untar` into the kustomization's own directory. Here helm only downloads, into a
//! temporary directory and with homes of its own, as kustomize gives it homes of its own
//! (`HelmChartInflationGenerator.go`); what the archive holds is decided by [`archive`], not by helm.

pub mod archive;

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use super::budget::Budget;
use super::git::RELOCK;
use super::reach::Reach;
use super::{Cache, Progress, Tip};
use crate::config::{Config, is_one_version};
use crate::graph::{Archive, ChartRef, NamedBy, Pulled};
use crate::message::failure::{Failure, FailureKind, Result, command};
use crate::message::finding::Rule;
use crate::message::redact;
use crate::os::interrupt::{Scratch, unusable};
use crate::os::parallel::side_by_side;
use crate::os::process::{self, Limits, Output, Terminal};
use crate::record::{ChartRemote, Lock, sha256_hex};

/// How many charts are pulled side by side.
pub(super) const SIDE_BY_SIDE: usize = 4;

/// What decides about charts.
pub(super) struct Charts<'a> {
    pub(super) cache: &'a Cache,
    pub(super) locks: &'a [Rc<Lock>],
    pub(super) tip: Option<&'a Tip>,
    pub(super) progress: &'a Progress,
    /// Whether helm may be asked.
    pub(super) helm: bool,
    pub(super) locked: bool,
    pub(super) offline: bool,
    pub(super) timeout: Duration,
    pub(super) budget: &'a Budget,
    pub(super) reach: &'a Reach,
}

/// A chart to pull.
struct Job<'a> {
    chart: &'a ChartRef,
    /// Whether its host may get the user's logins.
    named: bool,
}

/// What helm gave for one chart.
pub(super) enum Got {
    /// Its archive.
    Bytes(Vec<u8>),
    /// helm is not installed.
    NoHelm,
}

impl Charts<'_> {
    /// Brings in charts, each once.
    pub(super) fn bring(
        &self,
        wanted: &[(ChartRef, NamedBy)],
        known: &mut HashMap<ChartRef, Result<Pulled>>,
    ) -> Vec<Result<Pulled>> {
        let mut by: HashMap<&ChartRef, NamedBy> = HashMap::new();
        for (chart, one) in wanted {
            by.entry(chart).and_modify(|by| by.extend(one)).or_insert_with(|| one.clone());
        }
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for (chart, _) in wanted {
            // Taken out, so that a chart that is wanted twice is pulled once.
            let Some(by) = by.remove(chart).filter(|_| !known.contains_key(chart)) else {
                continue;
            };
            let access = self.reach.access(&by, chart.repo.exposed());
            let refuse = || self.reach.refuse(chart.repo.exposed(), access).err().map(Err);
            match self.without_helm(chart).or_else(refuse) {
                Some(answer) => {
                    known.insert(chart.clone(), answer);
                }
                None => jobs.push(Job { chart, named: access.named }),
            }
        }
        for (job, got) in jobs.iter().zip(self.pull(&jobs)) {
            known.insert(job.chart.clone(), self.received(job.chart, got));
        }
        let lost = || Err(Failure::new("the chart was not pulled"));
        wanted.iter().map(|(chart, _)| known.get(chart).cloned().unwrap_or_else(lost)).collect()
    }

    fn entry(&self, chart: &ChartRef) -> Option<&ChartRemote> {
        self.locks.iter().find_map(|lock| chart.locked(lock))
    }

    /// Returns what is known without running helm; none if helm has to run.
    fn without_helm(&self, chart: &ChartRef) -> Option<Result<Pulled>> {
        if let Err(failure) = chart.refuse_unsafe() {
            return Some(Err(failure));
        }
        let shown = chart.label();
        if let Some(entry) = self.entry(chart) {
            if let Some(held) = self.tip.and_then(|tip| held_by_tip(tip, chart, entry)).map(Rc::new) {
                return Some(Ok(Pulled::Archive(held)));
            }
            if let Some(bytes) = self.cache.file(&entry.sha256) {
                return Some(unpacked(chart, &bytes));
            }
        } else if !self.helm || self.locked {
            // `remote-chart` says what comes of it.
            return Some(Ok(Pulled::Left));
        }
        if self.offline {
            return Some(
                Err(Failure::new(format!("{shown} is not in the cache")).hint("run once without `--offline`")),
            );
        }
        None
    }

    /// Runs helm for each, side by side.
    fn pull(&self, jobs: &[Job<'_>]) -> Vec<Result<Got>> {
        let (progress, timeout, budget) = (self.progress, self.timeout, self.budget);
        progress.expect(jobs.len());
        let got = side_by_side(jobs, SIDE_BY_SIDE, |_, job| {
            let shown = job.chart.label();
            progress.begin(&shown);
            let got = pull(job.chart, job.named, timeout, budget);
            progress.end(&shown);
            got.map_err(|failed| {
                let exception = Config::exception(Rule::RemoteChart, &job.chart.subject(), "");
                Failure {
                    upstream: job.chart.repo.shown().into(),
                    exception: exception.filter(|_| !failed.kind.is_outage()).map(Box::new),
                    ..failed
                }
            })
        });
        progress.clear();
        got
    }

    fn received(&self, chart: &ChartRef, got: Result<Got>) -> Result<Pulled> {
        let shown = chart.label();
        let bytes = match got? {
            Got::Bytes(bytes) => bytes,
            Got::NoHelm if self.entry(chart).is_some() => {
                return Err(Failure::new(format!("{shown} is locked, but in no cache here"))
                    .hint("to download it, helm must be on PATH"));
            }
            Got::NoHelm => {
                return Err(Failure::new(format!("{shown}: there is no helm on PATH to bring it in"))
                    .hint("put helm on PATH; or leave charts remote, without `helm: true` in .kustomize-localize"));
            }
        };
        let sha256 = sha256_hex(&bytes);
        if let Some(entry) = self.entry(chart)
            && entry.sha256 != sha256
        {
            return Err(Failure::new(format!(
                "{shown} has changed since it was locked: sha256 {sha256} instead of {}",
                entry.sha256
            ))
            .hint(RELOCK));
        }
        let pulled = unpacked(chart, &bytes)?;
        self.cache.keep_file(&bytes, &sha256)?;
        Ok(pulled)
    }
}

/// Runs `helm pull` as kustomize does, except that nothing is unpacked. helm gets the user's logins only for a `named`
/// host, one that the user's files name.
pub(super) fn pull(chart: &ChartRef, named: bool, timeout: Duration, budget: &Budget) -> Result<Got> {
    let no_room = |error: std::io::Error| unusable(&error);
    let scratch = Scratch::new().map_err(no_room)?;
    let directory = |name: &str| scratch.path().join(name);
    for name in ["pulled", "config", "cache", "data"] {
        std::fs::create_dir(directory(name)).map_err(no_room)?;
    }
    let mut command = Command::new("helm");
    command
        .current_dir(scratch.path())
        .env("HELM_CONFIG_HOME", directory("config"))
        .env("HELM_CACHE_HOME", directory("cache"))
        .env("HELM_DATA_HOME", directory("data"));
    if !named {
        // Where helm finds logins, in the environment or without it.
        command
            .env("HELM_REGISTRY_CONFIG", directory("config").join("registry.json"))
            .env("HELM_REPOSITORY_CONFIG", directory("config").join("repositories.yaml"))
            .env("DOCKER_CONFIG", directory("config"));
    }
    command.arg("pull").arg("--destination").arg(directory("pulled"));
    // As one argument each, so that none can be taken for an option of its own.
    match chart.version.as_str() {
        "" if chart.devel => {
            command.arg("--devel");
        }
        "" => {}
        version => {
            command.arg(format!("--version={version}"));
        }
    }
    if chart.is_oci() {
        let repository = chart.repo.exposed().trim_end_matches('/');
        command.arg("--").arg(format!("{repository}/{}", chart.name));
    } else {
        command.arg(format!("--repo={}", chart.repo.exposed()));
        command.arg("--").arg(&chart.name);
    }
    let limits = Limits { timeout: Some(timeout), cancel: None };
    let output = match process::run(&mut command, None, limits, Terminal::Detached) {
        Ok(output) => output,
        Err(process::Error::NotFound(_)) => return Ok(Got::NoHelm),
        Err(error @ process::Error::Deadline(..)) => {
            return Err(Failure::new(format!("{}: {error}", chart.label())).because(FailureKind::NoAnswer));
        }
        Err(error) => return Err(Failure::new(format!("{}: {error}", chart.label()))),
    };
    if !output.status.success() {
        let said = said(&output.stderr);
        let trouble = if says_that_it_is_gone(&output) {
            FailureKind::NotInRepository
        } else if output.says(NOT_ANSWERED) {
            FailureKind::NoConnection
        } else {
            FailureKind::Other
        };
        return Err(Failure::new(format!("{}: helm could not pull it: {said}", chart.label()))
            .hint(format!("to see what helm does: {}", by_hand(chart)))
            .because(trouble));
    }
    Ok(Got::Bytes(the_archive(chart, &directory("pulled"), budget)?))
}

/// Returns what helm said when it failed, on one line.
fn said(stderr: &str) -> String {
    let text = redact::text(stderr);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("WARNING:"))
        .map(|line| line.strip_prefix("Error: ").unwrap_or(line))
        .collect();
    if lines.is_empty() { "it did not say why".to_owned() } else { lines.join("; ") }
}

/// What helm says where nothing answered, or not for want of the chart.
const NOT_ANSWERED: &[&str] = &[
    "no such host",
    "dial tcp",
    "timeout exceeded",
    "deadline exceeded",
    "connection reset",
    "internal server error",
    "bad gateway",
    "service unavailable",
    "gateway timeout",
];

/// Returns whether the repository answered, and has no such chart. helm has one exit status for everything.
fn says_that_it_is_gone(output: &Output) -> bool {
    output.says(&["not found", "no chart name found", "no chart version found", "manifest unknown", "410 gone"])
        && !output.says(NOT_ANSWERED)
        && !output.says(&["executable file not found"])
}

/// The command that a person can run.
fn by_hand(chart: &ChartRef) -> String {
    let shown = chart.repo.shown();
    let mut words = Vec::new();
    if !chart.version.is_empty() {
        words.extend(["--version", &chart.version]);
    }
    let name = format!("{}/{}", shown.trim_end_matches('/'), chart.name);
    if chart.is_oci() {
        words.push(&name);
    } else {
        words.extend(["--repo", &shown, &chart.name]);
    }
    command("helm pull", words)
}

/// Returns the one archive that helm left.
fn the_archive(chart: &ChartRef, directory: &Path, budget: &Budget) -> Result<Vec<u8>> {
    let unreadable = |error: std::io::Error| Failure::new(format!("cannot read what helm pulled: {error}"));
    let mut archives = Vec::new();
    for entry in directory.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_file = path.symlink_metadata().map_err(unreadable)?.is_file();
        if is_file && path.extension().is_some_and(|extension| extension == "tgz") {
            archives.push(path);
        }
    }
    let [path] = archives.as_slice() else {
        return Err(Failure::new(format!(
            "{}: expected one archive from helm pull, found {}",
            chart.label(),
            archives.len()
        )));
    };
    let size = path.metadata().map_err(unreadable)?.len();
    budget.take(size, || format!("the archive of {}", chart.label()))?;
    std::fs::read(path).map_err(unreadable)
}

/// Unpacks an archive, and compares its metadata with the request.
pub(super) fn unpacked(chart: &ChartRef, bytes: &[u8]) -> Result<Pulled> {
    let shown = chart.label();
    let files = archive::unpack(bytes)
        .map_err(|reason| Failure::new(format!("the archive of {shown} is refused: {reason}")))?;
    let (name, version) = archive::metadata(&files)
        .map_err(|reason| Failure::new(format!("the archive of {shown} is not a chart: {reason}")))?;
    if name != chart.name {
        return Err(Failure::new(format!("{shown} is an archive of the chart `{name}`"))
            .hint("its repository is wrong about it: ask whoever runs it"));
    }
    let bare = |version: &str| {
        let version = version.strip_prefix('v').unwrap_or(version);
        // The rest does not count for precedence, and OCI tags cannot hold a `+`.
        version.split(['+', '_']).next().map(str::to_owned)
    };
    if is_one_version(&chart.version) && bare(&chart.version) != bare(&version) {
        return Err(Failure::new(format!("{shown} is an archive of the version `{version}`"))
            .hint("its repository is wrong about it: ask whoever runs it"));
    }
    Ok(Pulled::Archive(Rc::new(Archive {
        chart: chart.clone(),
        resolved: version,
        sha256: sha256_hex(bytes),
        size: bytes.len() as u64,
        files,
    })))
}

/// Returns a chart that was localized before, from the files that the lock lists for it.
fn held_by_tip(tip: &Tip, chart: &ChartRef, entry: &ChartRemote) -> Option<Archive> {
    let held = chart.locked(&tip.lock)?;
    if held.sha256 != entry.sha256 {
        return None;
    }
    let files = tip.chart(&chart.label())?;
    let (name, resolved) = archive::metadata(&files).ok()?;
    (name == chart.name).then(|| Archive {
        chart: chart.clone(),
        resolved,
        sha256: entry.sha256.clone(),
        size: entry.size,
        files,
    })
}

#[cfg(test)]
mod tests;
