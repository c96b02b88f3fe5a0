//! The real kustomize, when there is one.

use std::env;
use std::path::{Path, PathBuf};
use std::thread;

use super::{Output, Running, Sandbox};

/// A kustomize executable: `$KUSTOMIZE`, else the first on `PATH`.
pub(crate) struct Kustomize {
    program: PathBuf,
}

impl Kustomize {
    /// Returns the executable, or reports on standard error that the calling test is skipped.
    ///
    /// # Panics
    ///
    /// With `KUSTOMIZE_LOCALIZE_REQUIRE_TOOLS=1` when there is none, so that CI skips nothing.
    pub(crate) fn find() -> Option<Kustomize> {
        let on_path = || {
            let path = env::var_os("PATH").unwrap_or_default();
            env::split_paths(&path)
                .map(|directory| directory.join("kustomize"))
                .find(|program| program.is_file())
        };
        let program = env::var_os("KUSTOMIZE").map(PathBuf::from).or_else(on_path);
        if program.is_none() {
            let thread = thread::current();
            let test = thread.name().unwrap_or("a test");
            let required = env::var_os("KUSTOMIZE_LOCALIZE_REQUIRE_TOOLS");
            assert_ne!(
                required.as_deref(),
                Some("1".as_ref()),
                "no kustomize on PATH and none in KUSTOMIZE"
            );
            eprintln!("skipped: {test} (no kustomize on PATH and none in KUSTOMIZE)");
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
