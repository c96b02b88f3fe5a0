//! Which program builds.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::closed::{self, Walls};
use crate::message::failure::{Failure, Result};
use crate::os::process::{self, Limits, Terminal};
use crate::record::sha256_of;

/// How long a program may take to say its version.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The version of a program that was built without one.
const UNVERSIONED: &str = "(devel)";

/// What kind of program it is.
#[derive(Debug)]
pub(super) struct Kind {
    /// Its name.
    pub(super) name: &'static str,
    /// Its command that builds.
    build: &'static str,
    /// The arguments that print its version.
    version: &'static [&'static str],
    read_version: fn(&str) -> Option<String>,
}

pub(super) const KUSTOMIZE: Kind =
    Kind { name: "kustomize", build: "build", version: &["version"], read_version: version };
const KUBECTL: Kind = Kind {
    name: "kubectl",
    build: "kustomize",
    version: &["version", "--client", "--output=json"],
    read_version: kubectl_version,
};

/// A program that builds kustomizations.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// Where it is.
    pub(super) path: PathBuf,
    /// What it is.
    pub(super) kind: &'static Kind,
    /// Its version as it prints it; for a build without one, what distinguishes it from others.
    pub(super) version: String,
    /// What it can have of its own.
    pub(super) walls: Walls,
}

impl Program {
    /// Returns name and version, as `kustomize/v5.8.1`.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.kind.name, self.version)
    }

    /// Returns the command that builds, without arguments.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.arg(self.kind.build);
        command
    }
}

/// Finds the program: the one that was named (on the command line, else in `KUSTOMIZE`), else `kustomize` on
/// `PATH`, else `kubectl`. Returns why there is none; fails where the one that was named cannot be used.
pub(super) fn find(given: Option<&Path>) -> Result<Result<Program, String>> {
    let by_environment = || std::env::var_os("KUSTOMIZE").filter(|value| !value.is_empty());
    let named = match given {
        Some(given) => Some((given.to_owned(), "--kustomize")),
        None => by_environment().map(|value| (PathBuf::from(value), "KUSTOMIZE")),
    };
    if let Some((path, by)) = named {
        let refused = |reason: String| {
            Failure::new(format!("`{}` ({by}) {reason}", path.display()))
                .hint(format!("name the executable of kustomize with {by}"))
        };
        let absolute = std::path::absolute(&path).map_err(|error| refused(error.to_string()))?;
        return said(&absolute, &KUSTOMIZE).map(Ok).map_err(refused);
    }
    let mut reasons = Vec::new();
    for kind in [&KUSTOMIZE, &KUBECTL] {
        if let Some(path) = on_path(kind.name) {
            match said(&path, kind) {
                Ok(program) => return Ok(Ok(program)),
                Err(reason) => reasons.push(format!("`{}` {reason}", path.display())),
            }
        }
    }
    if reasons.is_empty() {
        reasons.push("there is neither `kustomize` nor `kubectl` on PATH".to_owned());
    }
    Ok(Err(reasons.join("; ")))
}

/// Looks for an executable where programs are. A directory of `PATH` that depends on where we are is left out:
/// what lies there belongs to whoever wrote the repository.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(&name))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    let Ok(metadata) = file.metadata() else {
        return false;
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    {
        metadata.is_file()
    }
}

/// Asks a program for its version, and finds out how its network can be closed.
fn said(path: &Path, kind: &'static Kind) -> Result<Program, String> {
    if !path.exists() {
        return Err("is not there".to_owned());
    }
    if !is_executable(path) {
        return Err("is not executable".to_owned());
    }
    let (walls, output) = closed::first(|isolation| {
        let mut command = Command::new(path);
        command.args(kind.version);
        process::isolate(&mut command, isolation)
            .map_err(|error| process::Error::Io(path.display().to_string(), error))?;
        let limits = Limits { timeout: Some(TIMEOUT), cancel: None };
        process::run(&mut command, None, limits, Terminal::Detached)
    })
    .map_err(|error| match error {
        process::Error::Io(_, error) => format!("cannot be run: {error}"),
        error => format!("cannot be used: {error}"),
    })?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    match (kind.read_version)(&stdout) {
        Some(version) if output.status.success() => {
            Ok(Program { path: path.to_owned(), kind, version: identified(version, path), walls })
        }
        _ => Err(match output.stderr.lines().find(|line| !line.is_empty()) {
            Some(line) if !output.status.success() => format!("does not say its version: {line}"),
            _ => "does not say its version as kustomize does".to_owned(),
        }),
    }
}

/// Returns a version; where it is none, with the digest of the program, so that another build is another version.
fn identified(version: String, path: &Path) -> String {
    const DIGITS: usize = 16;
    if version != UNVERSIONED {
        return version;
    }
    match std::fs::File::open(path).and_then(sha256_of) {
        Ok(digest) => format!("{version}-{}", &digest[..DIGITS]),
        Err(_) => version,
    }
}

/// Reads what `kustomize version` says: `v5.8.1`, `(devel)`, in older ones `{Version:kustomize/v4.5.7 …}`.
fn version(text: &str) -> Option<String> {
    let word = text.split_whitespace().next()?;
    let word = word.strip_prefix("{Version:").unwrap_or(word);
    let word = word.strip_prefix("kustomize/").unwrap_or(word);
    is_version(word).then(|| word.to_owned())
}

/// Reads what `kubectl version --client --output=json` says.
fn kubectl_version(text: &str) -> Option<String> {
    let json: serde_json::Value = serde_json::from_str(text).ok()?;
    let version = json["clientVersion"]["gitVersion"].as_str()?;
    is_version(version).then(|| version.to_owned())
}

fn is_version(word: &str) -> bool {
    let plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '+' | '_');
    let numbered = word.strip_prefix('v').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    word == UNVERSIONED || (numbered && word.chars().all(plain))
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
            assert_eq!(version(text).as_deref(), expected, "{text:?}");
        }
        let json = r#"{"clientVersion": {"gitVersion": "v1.34.1"}, "kustomizeVersion": "v5.7.1"}"#;
        assert_eq!(kubectl_version(json).as_deref(), Some("v1.34.1"));
        assert_eq!(kubectl_version("{}"), None);
    }
}
