//! A temporary directory, and an environment that holds nothing of the caller's configuration.

use std::cell::RefCell;
use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How git looks for the sub-command.
const PROGRAM: &str = "git-kustomize-localize";

/// Every commit has this date, so that the ids are the same on every machine.
const DATE: &str = "2026-01-02T03:04:05Z";

/// Variables that are taken from the caller: where programs are found, and what they need to start.
const INHERITED: [&str; 4] = ["PATH", "SYSTEMROOT", "TERM", "NO_COLOR"];

/// Returns whether this process was started as the program that is shown.
pub(crate) fn is_the_program() -> bool {
    let name = env::args_os().next().unwrap_or_default();
    Path::new(&name).file_stem() == Some(OsStr::new(PROGRAM))
}

/// Where the example is played.
pub(crate) struct Stage {
    root: PathBuf,
    variables: RefCell<Vec<(String, String)>>,
}

impl Stage {
    /// Makes the directory, and puts the program where git finds it.
    pub(crate) fn set() -> Result<Stage> {
        let root = tempfile::Builder::new().prefix("kustomize-localize-example-").tempdir()?.keep();
        for directory in ["home", "bin"] {
            fs::create_dir(root.join(directory))?;
        }
        fs::write(root.join("gitconfig"), "")?;
        let program = root.join("bin").join(PROGRAM).with_extension(env::consts::EXE_EXTENSION);
        link(&env::current_exe()?, &program)?;
        Ok(Stage { root, variables: RefCell::default() })
    }

    /// Sets a variable for everything that is started from now on.
    pub(crate) fn set_variable(&self, name: &str, value: String) {
        self.variables.borrow_mut().push((name.to_owned(), value));
    }

    /// Makes git look below `directory` for every repository whose URL starts with `prefix`.
    pub(crate) fn pretend(&self, prefix: &str, directory: &str) -> Result<()> {
        let base = self.root.join(directory).display().to_string().replace('\\', "/");
        let key = format!("url.{base}/.insteadOf");
        self.quiet(&self.root, &["config", "--global", &key, prefix])
    }

    /// Makes an empty repository.
    pub(crate) fn repository(&self, name: &str) -> Result<Repository<'_>> {
        let path = self.root.join(name);
        fs::create_dir_all(&path)?;
        self.quiet(&path, &["init", "--quiet", "--initial-branch=main"])?;
        Ok(Repository { stage: self, path })
    }

    /// Writes a file, and the directories it needs.
    pub(crate) fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.root.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        Ok(fs::write(path, text)?)
    }

    /// Commits the whole working tree of a repository.
    pub(crate) fn commit(&self, repository: &str, message: &str) -> Result<()> {
        let path = self.root.join(repository);
        self.quiet(&path, &["add", "--all"])?;
        self.quiet(&path, &["commit", "--quiet", "-m", message])
    }

    /// Runs git without showing it.
    pub(crate) fn quiet(&self, directory: &Path, args: &[&str]) -> Result<()> {
        let output = self.git(directory, args).output()?;
        if output.status.success() {
            Ok(())
        } else {
            Err(format!("`git {}` failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim_end())
                .into())
        }
    }

    /// Returns the path of something on the stage.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn git(&self, directory: &Path, args: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .args(args)
            .current_dir(directory)
            .stdin(Stdio::null())
            .env_clear()
            .envs(INHERITED.iter().filter_map(|name| Some((name, env::var_os(name)?))))
            .env("HOME", self.root.join("home"))
            .env("XDG_CACHE_HOME", self.root.join("cache"))
            .env("XDG_CONFIG_HOME", self.root.join("home"))
            .env("GIT_CONFIG_GLOBAL", self.root.join("gitconfig"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_PAGER", "cat")
            .envs(self.variables.borrow().iter().cloned());
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "You")
                .env(format!("GIT_{who}_EMAIL"), "you@example.com")
                .env(format!("GIT_{who}_DATE"), DATE);
        }
        let mut path = vec![self.root.join("bin")];
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        // A PATH that cannot be joined is not changed: git then reports what it does not find.
        if let Ok(path) = env::join_paths(path) {
            command.env("PATH", path);
        }
        command
    }
}

/// The repository whose commands are shown.
pub(crate) struct Repository<'a> {
    stage: &'a Stage,
    path: PathBuf,
}

impl Repository<'_> {
    /// Shows a command and what it says.
    pub(crate) fn show(&self, args: &[&str]) -> Result<()> {
        println!("$ git {}", args.join(" "));
        let mut child = self.stage.git(&self.path, args);
        // Errors belong between the lines where they happen.
        let output = child.stderr(Stdio::inherit()).output()?;
        for line in String::from_utf8_lossy(&output.stdout).trim_end().lines() {
            println!("{line}");
        }
        println!();
        if output.status.success() {
            Ok(())
        } else {
            Err(format!("`git {}` ended with {}", args.join(" "), output.status).into())
        }
    }

    /// Returns where the repository is.
    pub(crate) fn path(&self) -> String {
        self.path.display().to_string()
    }
}

#[cfg(unix)]
fn link(program: &Path, name: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(program, name)
}

#[cfg(not(unix))]
fn link(program: &Path, name: &Path) -> io::Result<()> {
    fs::copy(program, name).map(drop)
}
