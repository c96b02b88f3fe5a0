//! The real kustomize, when there is one.

use std::env;
use std::path::{Path, PathBuf};

use super::tool::{on_path, skip};
use super::{Output, Running, Sandbox};

/// A kustomize executable: `$KUSTOMIZE`, else the first on `PATH`.
pub(crate) struct Kustomize {
    program: PathBuf,
}

impl Kustomize {
    /// Returns the executable; else the calling test is [skipped](skip).
    #[track_caller]
    pub(crate) fn find() -> Option<Kustomize> {
        let named = env::var_os("KUSTOMIZE").map(PathBuf::from);
        let program = named.or_else(|| on_path("kustomize"));
        if program.is_none() {
            skip("no kustomize on PATH and none in KUSTOMIZE");
        }
        program.map(|program| Kustomize { program })
    }

    /// Returns where the executable is.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Runs `kustomize build` on `target` in `directory`.
    pub(crate) fn build(&self, sandbox: &Sandbox, directory: &Path, target: &str) -> Output {
        self.run(sandbox, directory, &["build", target])
    }

    /// Runs `kustomize localize --no-verify`: verifying builds, which is not what is wanted here.
    pub(crate) fn localize(&self, sandbox: &Sandbox, directory: &Path, args: &[&str]) -> Output {
        let args = [&["localize", "--no-verify"], args].concat();
        self.run(sandbox, directory, &args)
    }

    /// Runs kustomize with any arguments.
    pub(crate) fn run(&self, sandbox: &Sandbox, directory: &Path, args: &[&str]) -> Output {
        Running::start(sandbox.command(&self.program, directory).args(args)).wait()
    }
}
