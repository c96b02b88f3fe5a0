//! A repository to localize, an internet to localize it from, and the builds before and after.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Kustomize, Output, Reply, Repo, Running, Sandbox, Server};

/// A sandbox in which `https://github.com/` is a directory and every other https host a server. Nothing is built in it
/// but where a test asks for that: by [`World::verified`], [`World::same_build`] or [`Sandbox::builds`].
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) server: Server,
    /// The repository of the user, without a commit.
    pub(crate) work: Repo,
    clones: AtomicUsize,
}

impl World {
    pub(crate) fn new() -> World {
        let sandbox = Sandbox::new();
        let server = Server::start();
        sandbox.send_through(&server);
        let upstream = sandbox.path("upstream");
        sandbox.pretend("https://github.com/", &format!("file://{}/", upstream.display()));
        World { work: sandbox.repo("work"), sandbox, server, clones: AtomicUsize::new(0) }
    }

    /// Returns one with two upstream repositories, of which `acme/lib` names `acme/deep`, and a file.
    pub(crate) fn acme() -> World {
        let world = World::new();
        world.upstream_of(
            "acme/deep",
            &[("app/kustomization.yaml", "resources: [map.yaml]\n"), ("app/map.yaml", &config_map("deep"))],
        );
        world.upstream_of(
            "acme/lib",
            &[
                ("web/kustomization.yaml", "resources: [map.yaml, 'https://github.com/acme/deep//app?ref=v1']\n"),
                ("web/map.yaml", &config_map("lib")),
                ("other/kustomization.yaml", "resources: [map.yaml]\n"),
                ("other/map.yaml", &config_map("other")),
                ("kustomization.yaml", "resources: [web]\n"),
                (
                    "part/kustomization.yaml",
                    "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: x-\n",
                ),
            ],
        );
        world.file("https://files.example.com/v1/app.yaml", deployment("app"));
        world
    }

    /// Returns a new repository `https://github.com/NAME`.
    pub(crate) fn upstream(&self, name: &str) -> Repo {
        self.sandbox.repo(&format!("upstream/{name}"))
    }

    /// Returns a new repository `https://github.com/NAME` with these files, tagged `v1`.
    pub(crate) fn upstream_of(&self, name: &str, files: &[(&str, &str)]) -> Repo {
        let repo = Repo::new(&self.sandbox, self.sandbox.path(&format!("upstream/{name}")));
        self.sandbox.once(&format!("{files:?}"), repo.path(), || {
            self.upstream(name);
            for (path, text) in files {
                repo.write(path, text);
            }
            repo.commit("first");
            repo.git(&["tag", "v1"]);
        });
        repo
    }

    /// Serves `body` at `url`.
    pub(crate) fn file(&self, url: &str, body: impl AsRef<[u8]>) {
        self.server.route(url, Reply::ok(body.as_ref()));
    }

    /// Writes and commits files of the user.
    pub(crate) fn commit(&self, files: &[(&str, &str)]) {
        self.work.commit_files(files);
    }

    /// Runs the program in the user's repository and returns a fresh clone of what it committed.
    #[track_caller]
    pub(crate) fn localized(&self, args: &[&str]) -> Repo {
        self.work.run(args).success();
        self.clone_of_branch()
    }

    /// Returns a fresh clone of the branch `localized/main`.
    #[track_caller]
    pub(crate) fn clone_of_branch(&self) -> Repo {
        let number = self.clones.fetch_add(1, Ordering::Relaxed);
        let path = self.sandbox.path(&format!("clone-{number}"));
        let (from, to) = (self.work.path().to_str().unwrap(), path.to_str().unwrap());
        let clone = ["clone", "-q", "-b", "localized/main", from, to];
        self.sandbox.git(&self.sandbox.path(""), &clone);
        Repo::new(&self.sandbox, path)
    }

    /// Runs the program, which must refuse and make no branch: for tests that ask often.
    #[track_caller]
    pub(crate) fn says_no(&self, args: &[&str]) -> Output {
        let output = self.work.run(args);
        output.fails(2).stderr_has("error: ");
        let branches = self.work.git(&["for-each-ref", "--format=%(refname)"]);
        assert_eq!(branches, "refs/heads/main");
        output
    }

    /// Runs the program, which must refuse and leave everything as it was.
    #[track_caller]
    pub(crate) fn refused(&self, args: &[&str]) -> Output {
        let before = self.work.state();
        let output = self.work.run(args);
        output.fails(2).stderr_has("error: ");
        before.assert_same(&self.work.state());
        assert_eq!(self.sandbox.leftovers(), crate::support::NONE);
        output
    }

    /// Asserts that `kustomize build` gives the same for `original` in the user's repository, with the network, and for
    /// `result` in `copy`, without. Does nothing without a kustomize.
    #[track_caller]
    pub(crate) fn same_build(&self, original: &str, copy: &Repo, result: &str) {
        self.same_build_with(original, copy, result, &[]);
    }

    /// Does the same with more arguments of `kustomize build`.
    #[track_caller]
    pub(crate) fn same_build_with(&self, original: &str, copy: &Repo, result: &str, args: &[&str]) {
        let Some(kustomize) = Kustomize::find() else { return };
        let before = self.build(&kustomize, self.work.path(), original, args, false);
        let after = self.build(&kustomize, copy.path(), result, args, true);
        before.success();
        after.success();
        assert!(!before.stdout.trim().is_empty(), "an empty build {before:?}");
        assert_eq!(before.stdout, after.stdout, "{after:?}");
    }

    /// Runs the program, which must build original and result and find them the same; nothing may be worth a warning.
    /// The caller has a kustomize ([`Sandbox::builds`]).
    #[track_caller]
    pub(crate) fn verified(&self, args: &[&str]) -> Output {
        self.sandbox.builds().expect("a kustomize, without which the builds are not compared");
        let output = self.work.run(args);
        output.success().stdout_has("verified: ").lacks("warning[");
        output
    }

    /// Builds with the real kustomize; with nothing but the files of `directory` if `closed`.
    pub(crate) fn build(
        &self,
        kustomize: &Kustomize,
        directory: &Path,
        target: &str,
        args: &[&str],
        closed: bool,
    ) -> Output {
        let unshare = closed && can_unshare();
        let mut command = if unshare {
            self.sandbox.command("unshare", directory)
        } else {
            self.sandbox.command(kustomize.program(), directory)
        };
        if unshare {
            command.arg("-rn").arg(kustomize.program());
        }
        command.arg("build").args(args).arg(target);
        if closed {
            // The port of the discard protocol: nothing listens there. Without `unshare` only this closes the network.
            for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"] {
                command.env(name, "http://127.0.0.1:9");
            }
            command.env("GIT_ALLOW_PROTOCOL", "none");
        }
        Running::start(&mut command).wait()
    }
}

/// Returns whether this machine lets anybody start something in a network of its own.
fn can_unshare() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let mut command = Command::new("unshare");
        let status = command.args(["-rn", "true"]).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    })
}

/// Returns a ConfigMap of this name.
pub(crate) fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
}

/// Returns a Deployment of this name.
pub(crate) fn deployment(name: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\nspec:\n  replicas: 1\n  \
         template:\n    spec:\n      containers:\n      - name: main\n        image: nginx\n"
    )
}
