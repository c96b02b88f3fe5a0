//! Helm charts: the archive that helm would get, and its content.
//!
//! kustomize runs `helm pull --untar` into the kustomization's own directory. Here an archive of a repository over
//! http(s) is fetched as every other file, as its index may name any URL; helm says which version a range means. What
//! lies in a registry is downloaded by helm. It gets homes of its own, as from kustomize
//! (`HelmChartInflationGenerator.go`), and what the archive holds is decided by [`archive`](crate::graph::archive).

mod index;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use url::Url;

use self::index::ChartVersion;
use super::http::forget_userinfo;
use super::{DEFAULT_TIMEOUT, Network};
use crate::config::is_one_version;
use crate::git;
use crate::graph::{Archive, ChartRef, archive};
use crate::message::failure::{self, Failure, FailureKind, Result};
use crate::message::redact;
use crate::os::interrupt::{Scratch, unusable};
use crate::os::process::{self, Output, Terminal};
use crate::record::sha256_hex;

/// The archive of a chart. helm and servers get the user's logins only for a host that the user's files name.
pub(super) fn pull(network: &Network, chart: &ChartRef) -> Result<Vec<u8>> {
    // Arguments are seen by everybody on this machine.
    if chart.repo.has_secret() {
        return Err(Failure::new(format!(
            "{}: the URL contains a secret, which helm's arguments would expose",
            chart.upstream()
        ))
        .hint(
            "remove it from the URL; store the login: `git credential approve`, for a registry `helm registry login`",
        ));
    }
    if chart.is_oci() {
        return pull_from_registry(network, chart);
    }
    // The index may list an archive anywhere. The checks below keep it from lowering the protection of the URL that the
    // user wrote.
    let repository = Url::parse(chart.repo.exposed()).map_err(|error| odd_url(chart, error))?;
    let listed = choose_version(chart, index_versions(network, chart)?)?;
    let odd = |why: &str| {
        Failure::new(format!("{}: the index lists the archive {}: {why}", chart.upstream(), redact::url(&listed.url)))
            .hint("report this to the owner of the chart repository")
            .because(FailureKind::Unusable)
    };
    let url = resolved_url(&repository, &listed.url).map_err(|error| odd(&error.to_string()))?;
    match (repository.scheme(), url.scheme()) {
        ("http", "http") | (_, "https") => {}
        (_, "oci") => {
            return pull_from_registry(
                network,
                &artifact(&url, &listed).ok_or_else(|| odd("expected `oci://HOST/PATH:TAG`"))?,
            );
        }
        ("https", "http") => return Err(odd("https is never downgraded to http")),
        _ => return Err(odd("not an http, https or oci URL")),
    }
    // The digest of the index is the only proof that the archive is the one that its owner published.
    let bytes = network.client.get(url.as_str())?;
    let (expected, digest) = (listed.digest.trim_start_matches("sha256:"), sha256_hex(&bytes));
    if !expected.is_empty() && !expected.eq_ignore_ascii_case(&digest) {
        return Err(odd(&format!("its sha256 is {digest}, and the index says {expected}")));
    }
    Ok(bytes)
}

/// The failure of a chart whose `repo` is not a URL.
fn odd_url(chart: &ChartRef, error: url::ParseError) -> Failure {
    Failure::new(format!("{}: `repo` is not a URL: {error}", chart.upstream()))
}

/// The versions of a chart that its repository lists.
pub(super) fn versions(network: &Network, chart: &ChartRef) -> Result<Vec<String>> {
    Ok(index_versions(network, chart)?.into_iter().map(|listed| listed.version).collect())
}

/// The entries of a chart in the `index.yaml` of its repository.
fn index_versions(network: &Network, chart: &ChartRef) -> Result<Vec<ChartVersion>> {
    let index = Url::parse(chart.repo.exposed()).and_then(|url| resolved_url(&url, "index.yaml"));
    let index = network.client.get(index.map_err(|error| odd_url(chart, error))?.as_str())?;
    index::versions(&index, &chart.name)
        .map_err(|why| Failure::new(format!("cannot read the index of {}: {why}", chart.repo.shown())))
}

/// The URL of an archive that the index of a `repository` lists as `reference`, which may be relative, as helm resolves
/// it (`repo.ResolveReferenceURL`).
fn resolved_url(repository: &Url, reference: &str) -> Result<Url, url::ParseError> {
    // A query of the repository counts for references that are relative to it.
    let mut base = repository.clone();
    base.set_path(&format!("{}/", repository.path().trim_end_matches('/')));
    let mut url = base.join(reference)?;
    if Url::parse(reference).is_ok() {
        // The login in an absolute URL comes from the publisher of the index, not from the user.
        forget_userinfo(&mut url);
    } else if url.origin() == repository.origin() {
        url.set_query(repository.query());
    }
    Ok(url)
}

/// The version of a chart that `helm pull` would get, by the index of its repository: the version of the reference, or
/// else the newest version that its range accepts.
fn choose_version(chart: &ChartRef, versions: Vec<ChartVersion>) -> Result<ChartVersion> {
    // helm starts only for a range: a version that is listed as it is written needs no choice.
    let is_listed = versions.iter().any(|listed| listed.version == chart.version);
    let version = if is_listed { chart.version.clone() } else { newest_version(chart, &versions)? };
    let missing = if versions.is_empty() { "chart" } else { "version" };
    // An entry without a URL has nothing to download.
    versions.into_iter().find(|listed| !listed.url.is_empty() && listed.version == version).ok_or_else(|| {
        Failure::new(format!("{}: its repository has no such {missing}", chart.upstream()))
            .hint(format!(
                "to see what helm does: {}",
                failure::command("helm show chart", pull_arguments(chart, &chart.repo.shown()))
            ))
            .because(FailureKind::NotInRepository)
    })
}

/// The newest version that helm takes for the one that is written; empty if there is none.
fn newest_version(chart: &ChartRef, versions: &[ChartVersion]) -> Result<String> {
    let entries: Vec<Value> =
        versions.iter().map(|listed| json!({"name": chart.name, "version": listed.version})).collect();
    // Without versions there is nothing to choose from, so helm need not start.
    if entries.is_empty() {
        return Ok(String::new());
    }
    // helm itself chooses, because only its code knows which versions a range accepts.
    let helm = Helm::new(chart)?;
    // helm gets an index of our own, and asks nobody.
    let repositories = json!({"repositories": [{"name": "charts", "url": "https://charts.invalid"}]});
    let index = json!({"apiVersion": "v1", "entries": {&*chart.name: entries}});
    for (name, content) in [("config/repositories.yaml", repositories), ("cache/charts-index.yaml", index)] {
        std::fs::write(helm.path(name), content.to_string()).map_err(unusable)?;
    }
    // `helm search` lists releases only unless a range says otherwise; `helm pull` means these ranges.
    let range = match &*chart.version {
        "" if chart.devel => ">0.0.0-0",
        "" => "*",
        version => version,
    };
    let mut command = helm.command();
    command
        .env("HELM_REPOSITORY_CONFIG", helm.path("config/repositories.yaml"))
        .env("HELM_REPOSITORY_CACHE", helm.path("cache"))
        .args(["search", "repo", "--output=json", &format!("--version={range}")]);
    let output = helm.run(&mut command)?;
    if !output.status.success() {
        let stderr = git::error_message(&output);
        return Err(Failure::new(format!("{}: helm could not choose a version: {stderr}", chart.upstream())));
    }
    let tags: Value = serde_json::from_slice(&output.stdout).map_err(|error| {
        Failure::new(format!("{}: cannot read the output of helm search repo: {error}", chart.upstream()))
    })?;
    // Without `--versions` helm lists only the newest one of a chart.
    Ok(tags[0]["version"].as_str().unwrap_or_default().to_owned())
}

/// The artifact of a registry that an index names for a version.
fn artifact(url: &Url, listed: &ChartVersion) -> Option<ChartRef> {
    let (repo, name) = url.as_str().rsplit_once('/')?;
    let (name, _tag) = name.split_once(':').unwrap_or((name, ""));
    let artifact = ChartRef { repo: repo.into(), name: name.to_owned(), version: listed.version.clone(), devel: false };
    let is_plain = !name.is_empty() && artifact.refuse_unsafe().is_ok() && !artifact.repo.has_secret();
    is_plain.then_some(artifact)
}

/// helm, with homes of its own.
struct Helm<'c> {
    chart: &'c ChartRef,
    scratch: Scratch,
}

impl<'c> Helm<'c> {
    /// Prepares to run helm for a chart, with empty directories that only this run uses.
    fn new(chart: &'c ChartRef) -> Result<Helm<'c>> {
        let helm = Helm { chart, scratch: Scratch::new().map_err(unusable)? };
        for name in ["pulled", "config", "cache", "data"] {
            std::fs::create_dir(helm.path(name)).map_err(unusable)?;
        }
        Ok(helm)
    }

    /// The path of one of the directories that only this run uses, or of a file in it.
    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// A command of helm with homes of its own. Only logins for registries still come from the user.
    fn command(&self) -> Command {
        let mut command = Command::new("helm");
        command.current_dir(self.scratch.path());
        for name in ["config", "cache", "data"] {
            command.env(format!("HELM_{}_HOME", name.to_uppercase()), self.path(name));
        }
        command
    }

    /// Runs a command of helm to its end. Fails if it cannot be started or does not end in time; the output has its
    /// exit status.
    fn run(&self, command: &mut Command) -> Result<Output> {
        let shown = self.chart.upstream();
        process::run(command, None, Some(DEFAULT_TIMEOUT), Terminal::Detached).map_err(|error| match error {
            process::Error::NotFound(_) => Failure::new(format!("{shown}: `helm` was not found on PATH"))
                .hint("put helm on PATH; or leave charts remote, without `helm: true` in .kustomize-localize"),
            error @ process::Error::Deadline(..) => {
                Failure::new(format!("{shown}: {error}")).because(FailureKind::NoAnswer)
            }
            error => Failure::new(format!("{shown}: {error}")),
        })
    }
}

/// Pulls a chart from a registry (`oci://`) with helm, because only helm has the user's logins there. Runs `helm pull`
/// as kustomize does, except that nothing is unpacked.
fn pull_from_registry(network: &Network, chart: &ChartRef) -> Result<Vec<u8>> {
    // helm connects on its own, so the address is checked before it starts.
    network.reach.check_addresses(chart.repo.exposed())?;
    let helm = Helm::new(chart)?;
    let mut command = helm.command();
    if !network.reach.access(chart.repo.exposed()).named {
        // Without these variables helm reads logins from the home of the user.
        command
            .env("HELM_REGISTRY_CONFIG", helm.path("config/registry.json"))
            .env("DOCKER_CONFIG", helm.path("config"));
    }
    command.arg("pull").arg("--destination").arg(helm.path("pulled")).args(pull_arguments(chart, chart.repo.exposed()));
    let output = helm.run(&mut command)?;
    if !output.status.success() {
        let stderr = git::error_message(&output);
        // helm has one exit status for all failures, so its words tell whether trying again can help.
        let kind = if is_missing_chart(&output) {
            FailureKind::NotInRepository
        } else if output.says(NOT_ANSWERED) {
            FailureKind::NoConnection
        } else {
            FailureKind::Other
        };
        return Err(Failure::new(format!("{}: helm could not pull it: {stderr}", chart.upstream()))
            .hint(format!(
                "to see what helm does: {}",
                failure::command("helm pull", pull_arguments(chart, &chart.repo.shown()))
            ))
            .because(kind));
    }
    read_archive(network, chart, &helm.path("pulled"))
}

/// The arguments that name a chart for `helm pull` and `helm show chart`. `repo` is its URL, which a message shows
/// without its secret. Each value stands in one argument with its option, or after `--`, so that helm cannot take it
/// for an option.
fn pull_arguments(chart: &ChartRef, repo: &str) -> Vec<String> {
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

/// Phrases in messages of helm if the server did not answer, or refused for another reason than a missing chart.
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

/// Whether helm failed because the registry answered that it has no such chart: only then it is useless to try again.
/// helm has one exit status for all failures, so its messages decide.
fn is_missing_chart(output: &Output) -> bool {
    /// Phrases about the chart. Messages about a login or a program, such as `basic credential not found`, have none.
    /// [`Output::says`] drops words with a slash: `Error: h/c/web:1.2.3: not found` becomes `error: not found`.
    const GONE: &[&str] = &[
        ": not found",
        "\" not found",
        "404 not found",
        "no chart name found",
        "no chart version found",
        "manifest unknown",
        "410 gone",
    ];
    output.says(GONE) && !output.says(NOT_ANSWERED)
}

/// Reads the one archive that `helm pull` wrote to a directory. Fails if it is too large: helm has no limit for its
/// size.
fn read_archive(network: &Network, chart: &ChartRef, directory: &Path) -> Result<Vec<u8>> {
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
    let size = path.metadata().map_err(unreadable)?.len();
    let fits = network.budget.check(size, || chart.upstream().to_string());
    fits.map_err(|failure| failure.because(FailureKind::Unusable))?;
    std::fs::read(path).map_err(unreadable)
}

/// The failure of reading the files that helm wrote.
fn unreadable(error: std::io::Error) -> Failure {
    Failure::new(format!("cannot read the output of helm pull: {error}"))
}

/// Unpacks the archive of a chart. Fails if its `Chart.yaml` has another name than the reference, or another version
/// than its exact one, because the build would then get another chart than the one that was reviewed. For a range, any
/// version is accepted.
pub(super) fn unpack(chart: &ChartRef, bytes: &[u8]) -> Result<Archive> {
    let shown = chart.upstream();
    let files = archive::unpack(bytes)
        .map_err(|reason| Failure::new(format!("the archive of {shown} is refused: {reason}")))?;
    // A mirror may serve another chart under the requested name.
    let (name, version) = archive::metadata(&files)
        .map_err(|reason| Failure::new(format!("the archive of {shown} is not a chart: {reason}")))?;
    if name != chart.name {
        return Err(Failure::new(format!("{shown}: expected the chart `{}`, found `{name}`", chart.name))
            .hint("report this to the owner of the chart repository"));
    }
    if is_one_version(&chart.version) && bare(&chart.version) != bare(&version) {
        return Err(Failure::new(format!("{shown}: expected version `{}`, found `{version}`", chart.version))
            .hint("report this to the owner of the chart repository"));
    }
    Ok(Archive { chart: chart.clone(), resolved: version, sha256: sha256_hex(bytes), size: bytes.len() as u64, files })
}

/// A version without the `v` and the build metadata, which helm does not compare.
fn bare(version: &str) -> &str {
    let version = version.strip_prefix('v').unwrap_or(version);
    // The rest does not count for precedence, and OCI tags cannot hold a `+`.
    version.split(['+', '_']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
