//! `git kustomize-localize`: arguments in, exit status out.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(status) = git_kustomize_localize::build_check::fake_git::run() {
        return status;
    }
    git_kustomize_localize::interrupt::install();
    git_kustomize_localize::cli::run()
}
