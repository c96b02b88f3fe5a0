//! The starting point of most tests of `localize`: a repository with an overlay, a base, and an upstream.

pub(crate) use super::config_map as config;
use super::{Output, Repo, Sandbox};

/// The arguments that localize the overlay.
pub(crate) const OVERLAY: [&str; 3] = ["example/overlay", "--scope", "example"];

/// A repository `work` whose base names a remote root, and the repository that this root is in.
///
/// `other` is a second target, which names nothing remote.
pub(crate) struct Project {
    pub(crate) sandbox: Sandbox,
    pub(crate) upstream: Repo,
    pub(crate) work: Repo,
}

impl Project {
    /// Returns the project with one commit on `main`.
    pub(crate) fn new() -> Project {
        let sandbox = Sandbox::new();
        let work = Repo::new(&sandbox, sandbox.path("work"));
        Project::of(sandbox, work, |sandbox, work| {
            let is_copy = sandbox.once("project", work.path(), || {
                sandbox.repo("work");
                commit(work);
            });
            // The index of a copy does not know its files yet.
            if is_copy {
                work.git(&["update-index", "-q", "--refresh"]);
            }
        })
    }

    /// Returns the project with its files committed in `work`.
    pub(crate) fn in_repo(sandbox: Sandbox, work: Repo) -> Project {
        Project::of(sandbox, work, |_, work| commit(work))
    }

    fn of(sandbox: Sandbox, work: Repo, make: impl FnOnce(&Sandbox, &Repo)) -> Project {
        let name = "upstream/acme/remote.git";
        let upstream = Repo::new(&sandbox, sandbox.path(name));
        sandbox.once("upstream of project", upstream.path(), || {
            sandbox.repo(name);
            upstream.write("kustomization.yaml", "resources: [service.yaml]\n");
            upstream.write("service.yaml", service("one"));
            upstream.commit("one");
            upstream.git(&["tag", "v1"]);
        });
        make(&sandbox, &work);
        let base = format!("file://{}/", sandbox.path("upstream").display());
        sandbox.pretend("https://example.com/", &base);
        Project { sandbox, upstream, work }
    }

    /// Runs the program for the overlay, with more arguments.
    pub(crate) fn overlay(&self, more: &[&str]) -> Output {
        self.work.run(&[&OVERLAY, more].concat())
    }

    /// Adds `v2` to the upstream.
    pub(crate) fn second_version(&self) {
        self.upstream.write("service.yaml", service("two"));
        self.upstream.commit("two");
        self.upstream.git(&["tag", "v2"]);
    }
}

/// Commits the files of the project.
fn commit(work: &Repo) {
    work.write("README.md", "Manifests.\n");
    work.write("example/base/kustomization.yaml", base_of("v1"));
    work.write("example/base/config.yaml", config("base"));
    work.write("example/overlay/kustomization.yaml", "resources:\n  - ../base\nnamePrefix: dev-\n");
    work.write("other/kustomization.yaml", "resources: [config.yaml]\n");
    work.write("other/config.yaml", config("other"));
    work.commit("manifests");
}

/// Returns the kustomization of the base, with the upstream at `reference`.
pub(crate) fn base_of(reference: &str) -> String {
    format!("resources:\n  - config.yaml\n  - https://example.com/acme/remote.git?ref={reference}\n")
}

pub(crate) fn service(name: &str) -> String {
    format!("apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\n")
}
