//! Helm charts: pulled with helm, and kept as the archive that helm got.
//!
//! kustomize runs `helm pull --untar` into the kustomization's own directory. Here helm only downloads, into a
//! temporary directory and with homes of its own, as kustomize gives it homes of its own
//! (`HelmChartInflationGenerator.go`); what the archive holds is decided by [`archive`], not by helm.

pub mod archive;

use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use super::{DEFAULT_TIMEOUT, Network};
use crate::config::is_one_version;
use crate::git;
use crate::graph::{Archive, ChartRef};
use crate::message::failure::{self, Failure, FailureKind, Result};
use crate::os::interrupt::{Scratch, unusable};
use crate::os::process::{self, Output, Terminal};
use crate::record::sha256_hex;

/// Runs `helm pull` as kustomize does, except that nothing is unpacked. helm gets the user's logins only for a host that
/// the user's files name.
pub(super) fn pull(network: &Network, chart: &ChartRef) -> Result<Vec<u8>> {
    network.reach.refuse(chart.repo.exposed())?;
    // Arguments are seen by everybody on this machine.
    if chart.repo.has_secret() {
        return Err(Failure::new(format!(
            "{}: the URL holds a secret, which helm takes as an argument",
            chart.upstream()
        ))
        .hint("take it out of the URL, and let helm know the login: `helm repo add`, `helm registry login`"));
    }
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
    if !network.reach.access(chart.repo.exposed()).named {
        // Where helm finds logins, in the environment or without it.
        command
            .env("HELM_REGISTRY_CONFIG", directory("config").join("registry.json"))
            .env("HELM_REPOSITORY_CONFIG", directory("config").join("repositories.yaml"))
            .env("DOCKER_CONFIG", directory("config"));
    }
    command.arg("pull").arg("--destination").arg(directory("pulled")).args(words(chart, chart.repo.exposed()));
    let output =
        process::run(&mut command, None, Some(DEFAULT_TIMEOUT), Terminal::Detached).map_err(|error| match error {
            process::Error::NotFound(_) => {
                Failure::new(format!("{}: there is no helm on PATH to pull it", chart.upstream()))
                    .hint("put helm on PATH; or leave charts remote, without `helm: true` in .kustomize-localize")
            }
            error @ process::Error::Deadline(..) => {
                Failure::new(format!("{}: {error}", chart.upstream())).because(FailureKind::NoAnswer)
            }
            error => Failure::new(format!("{}: {error}", chart.upstream())),
        })?;
    if !output.status.success() {
        let said = git::said(&output);
        let trouble = if says_that_it_is_gone(&output) {
            FailureKind::NotInRepository
        } else if output.says(NOT_ANSWERED) {
            FailureKind::NoConnection
        } else {
            FailureKind::Other
        };
        return Err(Failure::new(format!("{}: helm could not pull it: {said}", chart.upstream()))
            .hint(format!(
                "to see what helm does: {}",
                failure::command("helm pull", words(chart, &chart.repo.shown()))
            ))
            .because(trouble));
    }
    the_archive(chart, &directory("pulled"), network.budget.largest())
}

/// Returns what helm is told to pull, with each value in one argument, so that none can be taken for another option.
fn words(chart: &ChartRef, repo: &str) -> Vec<String> {
    let mut words = match &*chart.version {
        "" if chart.devel => vec!["--devel".to_owned()],
        "" => Vec::new(),
        version => vec![format!("--version={version}")],
    };
    if chart.is_oci() {
        words.extend(["--".to_owned(), format!("{}/{}", repo.trim_end_matches('/'), chart.name)]);
    } else {
        words.extend([format!("--repo={repo}"), "--".to_owned(), chart.name.clone()]);
    }
    words
}

/// What helm says where nothing answered, or not for want of the chart.
const NOT_ANSWERED: &[&str] = &[
    "dial tcp",
    "timeout exceeded",
    "deadline exceeded",
    "connection reset",
    "too many requests",
    "toomanyrequests",
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

/// Returns the one archive that helm left.
fn the_archive(chart: &ChartRef, directory: &Path, largest: u64) -> Result<Vec<u8>> {
    let unreadable = |error: std::io::Error| Failure::new(format!("cannot read what helm pulled: {error}"));
    let entries = directory.read_dir().map_err(unreadable)?;
    let archives: Vec<_> =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>().map_err(unreadable)?;
    let [path] = archives.as_slice() else {
        return Err(Failure::new(format!(
            "{}: expected one archive from helm pull, found {}",
            chart.upstream(),
            archives.len()
        )));
    };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    // One byte more than is allowed is refused as it is counted.
    file.take(largest.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

/// Unpacks an archive, and compares its metadata with the request.
pub(super) fn unpacked(chart: &ChartRef, bytes: &[u8]) -> Result<Archive> {
    let shown = chart.upstream();
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
    Ok(Archive { chart: chart.clone(), resolved: version, sha256: sha256_hex(bytes), size: bytes.len() as u64, files })
}

#[cfg(test)]
mod tests;
