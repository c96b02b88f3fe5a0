//! `git kustomize-localize`: arguments in, exit status out.

fn main() -> std::process::ExitCode {
    git_kustomize_localize::main()
}
