//! Our own executable in the place of the programs that fetch for a build. For git it answers what kustomize asks from
//! what this run has fetched. It lets the real helm render charts, and a container engine run the images that
//! kustomizations name. Whatever else these programs are asked for is refused, and written down.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde::{Deserialize, Serialize};

use super::disk;
use crate::graph::RemoteCommit;
use crate::message::failure::Result;
use crate::message::redact;
use crate::os::interrupt::unusable;

/// The variable with the path of the manifest. Without it, our executable is not a stand-in, whatever its name is.
const MANIFEST: &str = "KUSTOMIZE_LOCALIZE_STAND_IN";
/// The variable with the file for refused calls.
const REFUSED: &str = "KUSTOMIZE_LOCALIZE_REFUSED";

/// The programs that it stands in for: kustomize starts these to fetch something.
const PROGRAMS: [&str; 4] = ["git", "helm", "docker", "podman"];

/// Answers the calls of git that have nothing to find out: kustomize makes five for each reference, and a shell starts
/// faster than this program.
const SCRIPT: &str = "#!/bin/sh
case \"$1\" in
init | checkout) exit 0 ;;
remote) [ \"$#\" = 4 ] && printf %s \"$4\" >.git-origin && exit ;;
submodule) [ -e .git-submodules ] || exit 0 ;;
esac
exec \"${0%/*}/program/git\" \"$@\"
";

/// The repositories and images that builds may ask for.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) upstreams: Vec<ClonedCommit>,
    /// The images of the functions that the kustomizations name.
    pub(super) images: Vec<String>,
}

/// A fetched commit of a repository, checked out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClonedCommit {
    /// The clone spec without secrets.
    url: String,
    /// The ref as written; `None` for HEAD.
    reference: Option<String>,
    /// Whether submodules are part of it.
    submodules: bool,
    /// The commit.
    commit: String,
    /// The directory with its files.
    directory: PathBuf,
}

impl ClonedCommit {
    /// A commit that was fetched, and the directory in which its files are for builds.
    pub(super) fn new(repository: &RemoteCommit, directory: PathBuf) -> ClonedCommit {
        let version = &repository.version;
        ClonedCommit {
            url: version.clone_spec().shown(),
            reference: version.reference.clone(),
            submodules: version.submodules,
            commit: repository.commit.clone(),
            directory,
        }
    }

    /// The request of kustomize that gets it, as a text for digests, and the directory with its files.
    pub(super) fn identity(&self) -> (String, PathBuf) {
        let ClonedCommit { url, reference, submodules, commit, directory } = self;
        (format!("{url:?} {reference:?} {submodules} {commit}"), directory.clone())
    }
}

impl Manifest {
    /// Writes the manifest into a directory, with the script that stands in for git beside it. Returns the path of the
    /// manifest.
    pub(super) fn write(&self, directory: &Path) -> Result<PathBuf> {
        let manifest = directory.join("fetched.json");
        let text = serde_json::to_vec(self).map_err(unusable)?;
        fs::create_dir_all(directory).and_then(|()| fs::write(&manifest, text)).map_err(unusable)?;
        // The script is written before any build begins: a program cannot be run while a process has it open for
        // writing. If programs here cannot run, our executable answers the calls of the script, too.
        #[cfg(unix)]
        if !is_noexec(directory) {
            disk::write_program(&directory.join("git"), SCRIPT).map_err(unusable)?;
        }
        Ok(manifest)
    }
}

/// Puts our executable in the place of the programs that `command` finds first: in `directory`, where it also writes
/// down what it [refuses](refused). The helm that it runs is the one that is named.
pub(super) fn replace_programs(
    command: &mut Command,
    manifest: &Path,
    directory: &Path,
    helm: Option<&Path>,
) -> io::Result<()> {
    let program = std::env::current_exe()?;
    for name in PROGRAMS {
        let link = directory.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        #[cfg(unix)]
        std::os::unix::fs::symlink(&program, link)?;
        #[cfg(not(unix))]
        fs::hard_link(&program, &link).or_else(|_| fs::copy(&program, &link).map(drop))?;
    }
    // The script comes first, and calls our executable in a directory below if it has no answer of its own.
    #[cfg(unix)]
    if let Some(script) = manifest.parent().map(|beside| beside.join("git")).filter(|script| script.is_file()) {
        let inner = directory.join("program");
        fs::create_dir(&inner)?;
        fs::rename(directory.join("git"), inner.join("git"))?;
        std::os::unix::fs::symlink(script, directory.join("git"))?;
    }
    // Ours come first, so that kustomize finds them instead of the real ones. The named helm comes right after ours,
    // which calls the next one.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = vec![directory.to_owned()];
    let helm = helm.map(Path::canonicalize).transpose()?;
    #[cfg(unix)]
    if let Some(helm) = &helm {
        let named = directory.join("named");
        fs::create_dir(&named)?;
        std::os::unix::fs::symlink(helm, named.join("helm"))?;
        all.push(named);
    }
    all.extend(std::env::split_paths(&path));
    // The sandbox lets a build read the directories of `PATH`, which helm's own must be among.
    all.extend(helm.as_deref().and_then(Path::parent).map(Path::to_owned));
    command.env("PATH", std::env::join_paths(all).unwrap_or_else(|_| directory.as_os_str().to_owned()));
    command.env(MANIFEST, manifest).env(REFUSED, directory.join("refused"));
    Ok(())
}

/// Whether programs in a directory cannot be run.
#[cfg(unix)]
fn is_noexec(directory: &Path) -> bool {
    use rustix::fs::{StatVfsMountFlags, statvfs};
    !statvfs(directory).is_ok_and(|found| !found.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

/// The calls that our executable refused in a build, without secrets: it was [put](replace_programs) into `directory`.
pub(super) fn refused(directory: &Path) -> Vec<String> {
    let text = fs::read(directory.join("refused")).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}

/// Stands in for another program, if that is what we were started for. `None` if not: then we are the command of the
/// user.
pub(crate) fn run() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let name = PathBuf::from(arguments.next()?);
    // Without the variable nobody replaced a program, whatever our name is.
    let manifest = PathBuf::from(std::env::var_os(MANIFEST)?);
    let name = PROGRAMS.into_iter().find(|program| name.file_stem().is_some_and(|name| name == *program))?;
    let arguments: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Err(refusal) = answer(&manifest, name, &words) else { return Some(ExitCode::SUCCESS) };
    // A call may have a login, which is hidden, or a control character, which would end its line in the list.
    let call = redact::text(&format!("{name} {}", arguments.join(" "))).replace(char::is_control, " ");
    let reason = match refusal {
        Refusal::Unknown(reason) => {
            note(&call);
            reason
        }
        Refusal::Failed(reason) => reason,
        // The program has printed its own message.
        Refusal::Ended(code) => return Some(ExitCode::from(code)),
    };
    let _ = writeln!(io::stderr(), "fatal: `{call}`: {reason}");
    Some(ExitCode::from(128))
}

/// Answers one call of a program.
fn answer(manifest: &Path, name: &str, words: &[&str]) -> Result<(), Refusal> {
    match (name, words) {
        ("git", _) => answer_git(manifest, Path::new("."), words),
        // Without the version kustomize would not try to pull the chart, and the request would not be seen.
        ("helm", ["version", ..]) => run_real(name, words).or_else(|refusal| match refusal {
            Refusal::Failed(_) => writeln!(io::stdout(), "v3.0.0").map_err(Refusal::because),
            other => Err(other),
        }),
        ("helm", ["template", ..]) => run_real(name, words),
        ("docker" | "podman", ["run", .., image]) if has_image(manifest, image) => run_real(name, words),
        _ => Err(Refusal::Unknown("builds have no network".to_owned())),
    }
}

/// Whether a kustomization names the image for a function, so that it may run in a container engine.
fn has_image(manifest: &Path, image: &str) -> bool {
    Manifest::read(manifest).is_ok_and(|manifest| manifest.images.iter().any(|known| known == image))
}

/// Writes down a call.
fn note(call: &str) {
    let file = std::env::var_os(REFUSED);
    let file = file.and_then(|file| fs::File::options().create(true).append(true).open(file).ok());
    // One write: several programs may do so at once.
    file.map(|mut file| file.write_all(format!("{call}\n").as_bytes()));
}

/// Runs the real program, which comes after ours on `PATH`.
fn run_real(name: &str, arguments: &[&str]) -> Result<(), Refusal> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // The first directory of `PATH` has our stand-ins.
    let rest = std::env::join_paths(std::env::split_paths(&path).skip(1)).unwrap_or_default();
    let program = std::env::split_paths(&rest).map(|directory| directory.join(name)).find(|file| file.is_file());
    let Some(program) = program else {
        return Err(Refusal::Failed(format!("no `{name}` was found on PATH")));
    };
    let ended = Command::new(program).args(arguments).env("PATH", &rest).status();
    match ended.map_err(|error| Refusal::Failed(error.to_string()))?.code() {
        Some(0) => Ok(()),
        // kustomize says the same of programs that it starts itself.
        None => Err(Refusal::Failed("signal: killed".to_owned())),
        code => Err(Refusal::Ended(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))),
    }
}

/// Why a call fails.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// It asks for something that was not fetched.
    Unknown(String),
    /// It asks for something that is known, in vain.
    Failed(String),
    /// The program that ran ended with this status.
    Ended(u8),
}

impl Refusal {
    /// The refusal of a call that is known, for any error.
    fn because(reason: impl ToString) -> Refusal {
        Refusal::Failed(reason.to_string())
    }
}

/// Answers one call of git, in the directory `clone`.
fn answer_git(manifest: &Path, clone: &Path, arguments: &[&str]) -> Result<(), Refusal> {
    // Each call is a process of its own. The clone remembers the URL of `origin`, and the directory of the same commit
    // with submodules if that is another one.
    let [origin, with_submodules] = [".git-origin", ".git-submodules"].map(|name| clone.join(name));
    // kustomize 4.0 to 5.8 makes these calls only (`api/internal/git/cloner.go`).
    match arguments {
        ["init"] | ["checkout", "FETCH_HEAD"] => Ok(()),
        ["remote", "add", "origin", url] => fs::write(origin, url).map_err(Refusal::because),
        ["fetch", "--depth=1", url, reference] => {
            let origin = fs::read_to_string(origin).unwrap_or_default();
            let url = if *url == "origin" { &origin } else { *url };
            let commits = Manifest::read(manifest)?.commits(url, reference)?;
            let Some(first) = commits.first() else {
                return Err(Refusal::Unknown(format!("{} at {reference} was not fetched", redact::url(url))));
            };
            if let Some(other) = commits.get(1) {
                fs::write(with_submodules, other.directory.as_os_str().as_encoded_bytes()).map_err(Refusal::because)?;
            }
            // The files are checked out now, so that `checkout FETCH_HEAD` has nothing to do.
            disk::copy(&first.directory, clone).map_err(Refusal::because)
        }
        ["submodule", "update", "--init", "--recursive"] => match fs::read_to_string(with_submodules) {
            Ok(directory) => disk::copy(Path::new(&directory), clone).map_err(Refusal::because),
            Err(_) => Ok(()),
        },
        _ => Err(Refusal::Unknown("the network is closed for builds".to_owned())),
    }
}

impl Manifest {
    /// Reads the manifest that was written for the build.
    fn read(manifest: &Path) -> Result<Manifest, Refusal> {
        let text = fs::read(manifest).map_err(Refusal::because)?;
        serde_json::from_slice(&text).map_err(|error| Refusal::because(format!("no manifest: {error}")))
    }

    /// The fetched commits of a repository that a call of git may mean: without submodules, with them, or both in this
    /// order.
    fn commits(self, url: &str, reference: &str) -> Result<Vec<ClonedCommit>, Refusal> {
        let (mut commits, url) = (self.upstreams, redact::url(url));
        // kustomize asks for `HEAD` if a URL names no ref, or names that one.
        commits.retain(|cloned| cloned.url == url && cloned.reference.as_deref().unwrap_or("HEAD") == reference);
        // Two logins may see different commits. The manifest has no logins, so it is unknown which commit is meant.
        if commits.iter().any(|cloned| cloned.commit != commits[0].commit) {
            return Err(Refusal::because(format!("{url} at {reference} was fetched as two commits")));
        }
        // A commit without submodules also serves requests with them.
        commits.sort_by_key(|upstream| upstream.submodules);
        Ok(commits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with what was fetched from one repository, once and from two logins.
    fn fetched() -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        let upstream = |commit: &str| ClonedCommit {
            url: "https://h/o/r".to_owned(),
            reference: Some("v1".to_owned()),
            submodules: false,
            commit: commit.to_owned(),
            directory: top.path().join(commit),
        };
        for (name, commits) in [("manifest.json", &["1"][..]), ("two.json", &["1", "2"])] {
            let upstreams: Vec<ClonedCommit> = commits.iter().map(|commit| upstream(commit)).collect();
            let written = Manifest { upstreams, images: Vec::new() }.write(top.path()).unwrap();
            fs::rename(written, top.path().join(name)).unwrap();
        }
        top
    }

    /// Makes calls. Returns why the last one fails, and whether that is written down.
    fn refused(top: &Path, manifest: &str, calls: &[&str]) -> (String, bool) {
        let clone = top.join("clone");
        fs::remove_dir_all(&clone).ok();
        fs::create_dir(&clone).unwrap();
        let refusal = calls.iter().try_for_each(|call| {
            let words: Vec<&str> = call.split(' ').collect();
            answer_git(&top.join(manifest), &clone, &words)
        });
        match refusal.unwrap_err() {
            Refusal::Unknown(reason) => (reason, true),
            Refusal::Failed(reason) => (reason, false),
            Refusal::Ended(code) => panic!("{code}"),
        }
    }

    #[test]
    fn requests_for_unfetched_repositories_fail() {
        let top = fetched();
        let begin = ["init", "remote add origin https://h/o/r"];
        for (call, reason, noted) in [
            ("fetch --depth=1 https://h/o/r v2", "at v2 was not fetched", true),
            ("fetch --depth=1 https://h/o/r HEAD", "at HEAD was not fetched", true),
            ("fetch --depth=1 https://u:secret@h/o/x v1", "https://h/o/x at v1", true),
            ("fetch https://h/o/r v1", "the network is closed for builds", true),
            ("clone https://h/o/r", "the network is closed for builds", true),
            ("-c core.x=y fetch", "the network is closed for builds", true),
        ] {
            let calls = [&begin[..], &[call]].concat();
            let (error, is_noted) = refused(top.path(), "manifest.json", &calls);
            assert!(error.contains(reason), "{call}: {error}");
            assert!(!error.contains("secret"), "{error}");
            assert_eq!(is_noted, noted, "{call}");
        }
        // Two logins saw two commits: which one is meant is unknown.
        let fetch = [&begin[..], &["fetch --depth=1 https://h/o/r v1"]].concat();
        let (error, is_noted) = refused(top.path(), "two.json", &fetch);
        assert!(error.contains("as two commits") && !is_noted, "{error}");
        refused(top.path(), "nowhere.json", &fetch);
    }
}
