//! A repository of given files.

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// A repository with everything committed and checked out.
pub(crate) struct Repository(TempDir);

impl Repository {
    /// Makes a repository of these files.
    pub(crate) fn of(files: impl IntoIterator<Item = (String, String)>) -> Repository {
        let ram = Path::new("/dev/shm");
        let repository = Repository(if ram.is_dir() { TempDir::new_in(ram).unwrap() } else { TempDir::new().unwrap() });
        let path = repository.path();
        fs::create_dir(&path).unwrap();
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        let mut import = repository.command("git");
        let mut import = import.args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().unwrap();
        let mut stream = std::io::BufWriter::new(import.stdin.take().unwrap());
        writeln!(stream, "commit refs/heads/main").unwrap();
        writeln!(stream, "committer Bench <bench@example.com> 1767323045 +0000").unwrap();
        writeln!(stream, "data 5\nBegin").unwrap();
        for (path, text) in files {
            let length = text.len();
            write!(stream, "M 644 inline {path}\ndata {length}\n{text}\n").unwrap();
        }
        stream.flush().unwrap();
        drop(stream);
        assert!(import.wait().unwrap().success());
        repository.git(&["reset", "--quiet", "--hard"]);
        // Like a clone: one pack, with deltas.
        repository.git(&["repack", "-adqf", "--window=5"]);
        // Nobody must pay for index entries of files that were written in the same second.
        thread::sleep(Duration::from_millis(1100));
        repository.git(&["update-index", "--refresh"]);
        repository
    }

    /// Returns a command in the repository that has nothing of the caller's configuration.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.0.path())
            .env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Bench").env(format!("GIT_{who}_EMAIL"), "bench@example.com");
        }
        command
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("repository")
    }

    pub(crate) fn git(&self, args: &[&str]) {
        let mut command = self.command("git");
        let output = command.args(args).output().unwrap();
        assert!(output.status.success(), "{command:?}: {output:?}");
    }
}
