mod example;
mod generate;
mod packaging;
mod pictures;
mod readme;
pub(crate) mod release;
mod rooms;
mod workflows;

use std::path::Path;

use crate::support::Sandbox;

/// Returns the top of the sources.
fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns what the program prints in the top of a sandbox, where there is no repository.
#[track_caller]
fn said(sandbox: &Sandbox, args: &[&str]) -> String {
    let output = sandbox.run(&sandbox.path(""), args);
    output.success().stdout.clone()
}
