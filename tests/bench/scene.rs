//! The inputs: upstream repositories, and a user's repository that names them.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// One thing to compare.
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    /// How many times faster than kustomize we want to be.
    pub(crate) goal: f64,
    /// The same where both verify.
    pub(crate) verified: f64,
    /// How many roots the user names.
    roots: usize,
    /// How many files each upstream has beside its roots.
    ballast: usize,
    /// How many upstreams there are, each named by the one before.
    chain: usize,
}

pub(crate) const SCENES: [Scene; 3] = [
    Scene {
        name: "60 references to one repository and ref",
        goal: 20.0,
        verified: 5.0,
        roots: 60,
        ballast: 0,
        chain: 1,
    },
    Scene {
        name: "8 roots of a repository with 5,000 files",
        goal: 5.0,
        verified: 3.0,
        roots: 8,
        ballast: 5_000,
        chain: 1,
    },
    Scene { name: "a chain of 4 repositories", goal: 1.5, verified: 1.5, roots: 1, ballast: 0, chain: 4 },
];

/// A directory with the upstreams and the user's repository.
pub(crate) struct Stage(TempDir);

impl Stage {
    /// Makes the repositories.
    pub(crate) fn set(scene: &Scene) -> Stage {
        let ram = Path::new("/dev/shm");
        let stage = Stage(if ram.is_dir() { TempDir::new_in(ram).unwrap() } else { TempDir::new().unwrap() });
        for upstream in 0..scene.chain {
            let name = format!("upstream-{upstream}");
            for root in 0..scene.roots {
                let mut text = "resources:\n- map.yaml\n".to_owned();
                if upstream + 1 < scene.chain {
                    stage.name_root(&mut text, upstream + 1, root);
                }
                stage.write(&format!("{name}/roots/{root}/kustomization.yaml"), &text);
                let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map-{upstream}-{root}\n");
                stage.write(&format!("{name}/roots/{root}/map.yaml"), &map);
            }
            for file in 0..scene.ballast {
                let path = format!("{name}/other/{}/{file}.yaml", file % 50);
                stage.write(&path, &format!("file: {file}\n").repeat(40));
            }
            stage.commit(&name);
            stage.git(&name, &["tag", "v1"]);
        }
        let mut text = "resources:\n".to_owned();
        for root in 0..scene.roots {
            stage.name_root(&mut text, 0, root);
        }
        stage.write("user/app/kustomization.yaml", &text);
        stage.commit("user");
        stage
    }

    /// Returns a command that has nothing of the caller's configuration, and an empty cache.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>, directory: &Path) -> Command {
        let cache = self.path("cache");
        if cache.exists() {
            fs::remove_dir_all(&cache).unwrap();
        }
        let mut command = Command::new(program);
        command
            .current_dir(directory)
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("XDG_CACHE_HOME", cache)
            .env("TMPDIR", self.0.path())
            .env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Bench").env(format!("GIT_{who}_EMAIL"), "bench@example.com");
        }
        command
    }

    /// Returns a fresh copy of the user's repository.
    pub(crate) fn fresh(&self) -> PathBuf {
        let path = self.path("run");
        if path.exists() {
            fs::remove_dir_all(&path).unwrap();
        }
        self.git("", &["clone", "--quiet", "user", "run"]);
        path
    }

    /// Counts the files that the last run copied, without those that only we add.
    pub(crate) fn copied(&self, committed: bool) -> usize {
        if committed {
            self.git("run", &["switch", "--quiet", "localized/main"]);
        }
        count(&self.path("run/copy"))
    }

    fn name_root(&self, text: &mut String, upstream: usize, root: usize) {
        let path = self.path(&format!("upstream-{upstream}"));
        writeln!(text, "- file://{}//roots/{root}?ref=v1", path.display()).unwrap();
    }

    fn commit(&self, name: &str) {
        self.git(name, &["init", "--quiet", "--initial-branch=main"]);
        self.git(name, &["add", "--all"]);
        self.git(name, &["commit", "--quiet", "-m", "Begin"]);
    }

    fn git(&self, directory: &str, args: &[&str]) {
        let mut command = self.command("git", &self.path(directory));
        let output = command.args(args).output().unwrap();
        assert!(output.status.success(), "{command:?}: {output:?}");
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.0.path().join(relative)
    }
}

fn count(directory: &Path) -> usize {
    let added = [".gitattributes", "kustomize-localize.lock"];
    let mut files = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            files += count(&entry.path())
        } else {
            files += usize::from(!added.iter().any(|name| entry.file_name() == *name))
        }
    }
    files
}
