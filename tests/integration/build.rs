mod command;
mod compared;
mod edits;
mod engines;
mod observed;
mod planted;
mod proof;
mod remembered;
mod written;

use crate::support::{Kustomize, Project, Repo, Sandbox};

/// Returns the project, with a kustomize; none where there is no kustomize.
fn project() -> Option<Project> {
    let project = Project::new();
    project.sandbox.builds()?;
    Some(project)
}

/// Puts a script in the place of kustomize, which may leave something in the sandbox. `REAL` in it is the real one.
fn stand_in(sandbox: &Sandbox, body: &str) {
    let kustomize = Kustomize::find().unwrap();
    let real = format!("'{}'", kustomize.program().display());
    sandbox.script("kustomize", &body.replace("REAL", &real));
    sandbox.set("KUSTOMIZE", sandbox.path("bin/kustomize"));
    sandbox.set("KUSTOMIZE_LOCALIZE_WRITABLE", sandbox.path(""));
}

/// Returns what the commit of the branch says about builds.
fn recorded(work: &Repo) -> String {
    let format = "--format=%(trailers:key=Kustomize-Localize-Verified,valueonly)";
    work.git(&["log", "-1", format, "localized/main"])
}
