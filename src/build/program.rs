//! Which program builds, and how the network is closed for it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::memory::Memory;
use super::run::Spent;
use crate::config::Config;
use crate::message::failure::{Failure, Result};
use crate::os::parallel::locked;
use crate::os::process::{self, Output};
use crate::os::sandbox::{self, Isolation, Means};
use crate::record::sha256_of_reader;

/// How long a program may take to say its version.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The version of a program that was built without one.
const UNVERSIONED: &str = "(devel)";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Kustomize,
    Kubectl,
    Helm,
}

impl Tool {
    /// The name of the executable, and of the program in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Tool::Kustomize => "kustomize",
            Tool::Kubectl => "kubectl",
            Tool::Helm => "helm",
        }
    }
}

/// Says how the network is closed for a program.
impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Means::Filter => "network closed",
            // Its requests go to our proxy, if it respects the settings; programs that fetch are replaced by stand-ins.
            Means::Nothing => "network closed by a proxy only (no sandbox on this machine)",
        })
    }
}

/// The variables that set a program's proxy.
pub(super) const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// The message if no program is found.
const NONE: &str = "neither `kustomize` nor `kubectl` was found on PATH";

/// The programs that build, as the user names them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Programs<'a> {
    /// kustomize, or a kubectl. `None` finds one.
    pub kustomize: Option<&'a Path>,
    /// `None` finds helm on `PATH`.
    pub helm: Option<&'a Path>,
    /// The extra arguments of each build by kustomize.
    pub arguments: &'a [String],
}

/// A program that builds kustomizations.
#[derive(Debug, Clone)]
pub(super) struct Program {
    path: PathBuf,
    pub(super) kind: Tool,
    /// The printed version; for a build without a version, text that distinguishes it from others.
    version: String,
    /// The version of kustomize that it is, or has in it, if it says one.
    kustomize: Option<String>,
    /// How the network can be closed for it.
    pub(super) network: Means,
    /// How long a build may take, if that is said.
    pub(super) timeout: Option<Duration>,
    /// The memory of builds; `None` if builds are not remembered.
    pub(super) memory: Option<Arc<Memory>>,
    /// The helm that it runs, and that renders charts beside it. `None` finds it on `PATH`.
    pub(super) helm: Option<PathBuf>,
    /// The digest, once it is needed; `None` if the program cannot be read.
    digest: Arc<OnceLock<Option<String>>>,
    /// The time that its builds have taken in this run.
    pub(super) spent: Arc<Mutex<Spent>>,
}

impl Program {
    /// The name and version, such as `kustomize/v5.8.1`.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.kind.name(), self.version)
    }

    /// The full name, with the kustomize in a kubectl and the named helm.
    pub(super) fn full_name(&self) -> String {
        let inner = self.kustomize.as_ref().filter(|_| self.kind == Tool::Kubectl);
        let inner = inner.map_or(String::new(), |version| format!(" (kustomize/{version})"));
        let helm = self.helm.as_ref().and_then(|_| self.helm().ok());
        let helm = helm.map_or(String::new(), |helm| format!(" with {}", helm.name()));
        self.name() + &inner + &helm
    }

    /// Adds the time limit of builds, and the memory. Fails if the configuration requires another version.
    pub(super) fn configured(self, config: &Config, memory: Option<Arc<Memory>>) -> Result<Program> {
        if let Some(wanted) = &config.kustomize
            && !self.kustomize.as_deref().is_some_and(|version| is_version(version, wanted))
        {
            let version = self.kustomize.as_deref().unwrap_or("of an unknown version");
            let (path, file) = (self.path.display(), &config.file);
            return Err(Failure::new(format!("`{path}` is kustomize {version}, but `{file}` requires {wanted}")).hint(
                format!("install kustomize {wanted}, and name it: --kustomize FILE, or the variable KUSTOMIZE"),
            ));
        }
        Ok(Program { timeout: config.build_timeout, memory, ..self })
    }

    /// A text that no other program has: name, version and digest; `None` if it cannot be read.
    pub(super) fn identity(&self) -> Option<String> {
        Some(format!("{} {}", self.name(), self.digest.get_or_init(|| digest(&self.path)).as_ref()?))
    }

    /// The helm that is named, else the one on `PATH`, to run no longer than this program.
    pub(super) fn helm(&self) -> Result<Program> {
        let path = self.helm.clone().or_else(|| on_path(Tool::Helm.name()));
        let path = path.ok_or_else(|| Failure::new("it is a Helm chart, and no `helm` was found on PATH"))?;
        let helm = examine(&path, Tool::Helm).map_err(|why| Failure::new(format!("`{}` {why}", path.display())))?;
        Ok(Program { timeout: self.timeout, memory: self.memory.clone(), ..helm })
    }

    /// Uses the helm at a path, if one is named. Fails if it cannot print its version: no other helm takes its place.
    pub(super) fn with_helm(self, named: Option<&Path>) -> Result<Program> {
        let Some(named) = named else { return Ok(self) };
        // Builds run in other directories, where a relative path would name another file.
        let helm = std::path::absolute(named);
        let helm = helm.map_err(|error| Failure::new(format!("`{}` cannot be used: {error}", named.display())))?;
        let program = Program { helm: Some(helm), ..self };
        program.helm().map_err(|failure| failure.hint("set --helm to the executable of helm"))?;
        Ok(program)
    }

    /// The program with its subcommand, without further arguments: it builds, or with `edits` it edits a kustomization.
    /// Only kustomize can edit: `kubectl edit` would change a cluster, so [`Edits`](super::edits::Edits) refuses it.
    pub(super) fn command(&self, edits: bool) -> Command {
        let mut command = Command::new(&self.path);
        command.arg(match self.kind {
            _ if edits => "edit",
            Tool::Kustomize => "build",
            Tool::Kubectl => "kustomize",
            Tool::Helm => "template",
        });
        command
    }
}

/// Finds the program: the named one (on the command line, else in `KUSTOMIZE`), else `kustomize` on `PATH`, else
/// `kubectl`. The inner error says why there is none; fails if the named one cannot be used.
pub(super) fn find(given: Option<&Path>) -> Result<Result<Program, String>> {
    let named = match given {
        Some(given) => Some((given.to_owned(), "--kustomize")),
        None => from_environment().map(|path| (path, "KUSTOMIZE")),
    };
    // The user chose a named program, so no other program takes its place.
    if let Some((path, by)) = named {
        let refused = |reason: String| {
            Failure::new(format!("`{}` ({by}) {reason}", path.display()))
                .hint(format!("set {by} to the executable of kustomize or kubectl"))
        };
        // A build runs in another directory, where a relative path would name another file.
        let absolute = std::path::absolute(&path).map_err(|error| refused(error.to_string()))?;
        let is_kubectl = absolute.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"kubectl"));
        let kind = if is_kubectl { Tool::Kubectl } else { Tool::Kustomize };
        return examine(&absolute, kind).map(Ok).map_err(refused);
    }
    // Without a named program, the first on `PATH` that works is taken.
    let mut reasons = Vec::new();
    for kind in [Tool::Kustomize, Tool::Kubectl] {
        if let Some(path) = on_path(kind.name()) {
            match examine(&path, kind) {
                Ok(program) => return Ok(Ok(program)),
                Err(reason) => reasons.push(format!("`{}` {reason}", path.display())),
            }
        }
    }
    if reasons.is_empty() {
        reasons.push(NONE.to_owned());
    }
    Ok(Err(reasons.join("; ")))
}

/// The program that `KUSTOMIZE` names; `None` if it names none.
fn from_environment() -> Option<PathBuf> {
    std::env::var_os("KUSTOMIZE").filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Why no program can be found, without starting one; `None` if there is one.
pub(crate) fn missing() -> Option<&'static str> {
    let is_there = from_environment().is_some()
        || [Tool::Kustomize, Tool::Kubectl].iter().any(|kind| on_path(kind.name()).is_some());
    (!is_there).then_some(NONE)
}

/// Looks for an executable in the absolute directories of `PATH`.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    // The files of a relative directory belong to whoever wrote the repository.
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(&name))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file);
    #[cfg(unix)]
    let metadata = metadata.filter(|file| std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o111 != 0);
    metadata.is_some()
}

/// Asks a program for its version, and finds out how its network can be closed.
fn examine(path: &Path, kind: Tool) -> Result<Program, String> {
    // Once in a run, because each answer takes a process.
    static KNOWN: Mutex<BTreeMap<PathBuf, Result<Program, String>>> = Mutex::new(BTreeMap::new());

    let mut known = locked(&KNOWN);
    known.entry(path.to_owned()).or_insert_with(|| examined(path, kind)).clone()
}

/// The program at a path with its version and the means to close its network. Fails if it cannot print its version.
fn examined(path: &Path, kind: Tool) -> Result<Program, String> {
    if !is_executable(path) {
        return Err("is not an executable file".to_owned());
    }
    // A program that cannot print its version could not build either, but its message would be worse.
    let (network, output) = run_version(path, kind).map_err(|error| match error {
        process::Error::Io(_, error) => format!("cannot be run: {error}"),
        error => format!("cannot be used: {error}"),
    })?;
    match parse_version(kind, &output.stdout) {
        Some((version, kustomize)) if output.status.success() => {
            let (path, digest, spent) = (path.to_owned(), Arc::default(), Arc::default());
            let version = identified(version, &path, &digest);
            let (timeout, memory, helm) = (None, None, None);
            Ok(Program { path, kind, version, kustomize, network, timeout, memory, helm, digest, spent })
        }
        _ => Err(match output.stderr.lines().find(|line| !line.is_empty()) {
            Some(line) if !output.status.success() => format!("did not print its version: {line}"),
            _ => format!("did not print its version as {} does", kind.name()),
        }),
    }
}

/// Runs a program for its version, with the network closed as well as this machine allows.
fn run_version(path: &Path, kind: Tool) -> Result<(Means, Output), process::Error> {
    let failed = |error| process::Error::Io(path.display().to_string(), error);
    let private = tempfile::tempdir().map_err(failed)?;
    let input = private.path().join("input");
    std::fs::create_dir(&input).map_err(failed)?;
    let run_with = |means: Means| {
        let mut command = Command::new(path);
        command.args(match kind {
            Tool::Kustomize => &["version"] as &[&str],
            Tool::Kubectl => &["version", "--client", "--output=json"],
            Tool::Helm => &["version", "--short"],
        });
        let isolation = Isolation {
            means,
            // Nothing listens at port 0, so the network is closed.
            network: Some((Ipv4Addr::LOCALHOST, 0).into()),
            input: &input,
            writable: &[private.path()],
            local: false,
        };
        Ok(sandbox::run(&mut command, isolation, Some(TIMEOUT))?.output)
    };
    // Whether the filter works is tried with the program itself, whatever the system promises.
    match run_with(Means::Filter) {
        Ok(output) if output.status.success() => Ok((Means::Filter, output)),
        _ => Ok((Means::Nothing, run_with(Means::Nothing)?)),
    }
}

/// The version; for a program that was built without one, with the beginning of its digest, so that records tell two
/// such programs apart.
fn identified(version: String, path: &Path, known: &OnceLock<Option<String>>) -> String {
    const DIGITS: usize = 16;
    if version != UNVERSIONED {
        return version;
    }
    match known.get_or_init(|| digest(path)) {
        Some(digest) => format!("{version}-{}", &digest[..DIGITS]),
        None => version,
    }
}

/// The digest of an executable; `None` if it cannot be read.
fn digest(program: &Path) -> Option<String> {
    File::open(program).and_then(sha256_of_reader).ok()
}

/// Whether a version begins with these numbers.
fn is_version(version: &str, numbers: &str) -> bool {
    let rest = version.trim_start_matches('v').strip_prefix(numbers);
    // `5.1` must not match `5.10`.
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
}

/// Reads the version that a program prints, and the version of the kustomize that it is or has in it; `None` if it
/// prints anything else.
fn parse_version(kind: Tool, stdout: &[u8]) -> Option<(String, Option<String>)> {
    match kind {
        Tool::Helm => Some((first_version(stdout)?, None)),
        Tool::Kustomize => {
            let version = first_version(stdout)?;
            let kustomize = Some(version.clone()).filter(|version| version != UNVERSIONED);
            Some((version, kustomize))
        }
        Tool::Kubectl => {
            // kubectl prints both versions.
            let json: serde_json::Value = serde_json::from_slice(stdout).ok()?;
            let version = json["clientVersion"]["gitVersion"].as_str().filter(|word| may_be_version(word))?;
            Some((version.to_owned(), json["kustomizeVersion"].as_str().map(str::to_owned)))
        }
    }
}

/// The version in the first word of a text; `None` if that is anything else. Versions look like `v5.8.1` or `(devel)`,
/// in older programs like `{Version:kustomize/v4.5.7 …}`.
fn first_version(stdout: &[u8]) -> Option<String> {
    let word = str::from_utf8(stdout).ok()?.split_whitespace().next()?;
    let word = word.strip_prefix("{Version:").unwrap_or(word);
    let word = word.strip_prefix("kustomize/").unwrap_or(word);
    may_be_version(word).then(|| word.to_owned())
}

/// Whether a word is written like a version: `v5.8.1`, or the text of a program without one.
fn may_be_version(word: &str) -> bool {
    let is_numbered = |rest: &str| {
        rest.starts_with(|first: char| first.is_ascii_digit())
            && rest.chars().all(|c| c.is_ascii_alphanumeric() || ".-+_".contains(c))
    };
    word == UNVERSIONED || word.strip_prefix('v').is_some_and(is_numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_all_ages_are_read() {
        for (text, expected) in [
            ("v5.8.1\n", Some("v5.8.1")),
            ("(devel)\n", Some("(devel)")),
            ("{Version:kustomize/v4.5.7 GitCommit:56d8 BuildDate:x GoOs:linux}\n", Some("v4.5.7")),
            ("git version 2.47\n", None),
            ("", None),
            ("very good", None),
        ] {
            let found = parse_version(Tool::Kustomize, text.as_bytes()).map(|(version, _)| version);
            assert_eq!(found.as_deref(), expected, "{text:?}");
        }
        let json = r#"{"clientVersion": {"gitVersion": "v1.34.1"}, "kustomizeVersion": "v5.7.1"}"#;
        let found = parse_version(Tool::Kubectl, json.as_bytes());
        assert_eq!(found, Some(("v1.34.1".to_owned(), Some("v5.7.1".to_owned()))));
        assert_eq!(parse_version(Tool::Kubectl, b"{}"), None);
    }

    #[test]
    fn the_first_numbers_of_a_version_are_compared() {
        for (found, numbers, expected) in [
            ("v5.8.1", "5.8", true),
            ("v5.8.1", "5.8.1", true),
            ("5.8.1", "5", true),
            ("v5.8.1-rc.1", "5.8.1", true),
            ("v5.80.1", "5.8", false),
            ("v5.7.1", "5.8", false),
            ("v15.8.1", "5.8", false),
        ] {
            assert_eq!(is_version(found, numbers), expected, "{found} {numbers}");
        }
    }
}
