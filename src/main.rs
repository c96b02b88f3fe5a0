//! `git kustomize-localize`: arguments in, exit status out.

use std::process::ExitCode;

fn main() -> ExitCode {
    git_kustomize_localize::interrupt::install();
    git_kustomize_localize::cli::run()
}
