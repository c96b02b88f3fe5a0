//! Whatever an earlier run has verified is not built again, and everything else is.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use super::{project, recorded, stand_in};
use crate::support::{Project, config};

/// A repository with three roots on one base, and a kustomize that writes down what it builds.
struct Logged {
    project: Project,
    log: PathBuf,
}

impl Logged {
    fn new() -> Option<Logged> {
        let project = project()?;
        let (log, seen) = (project.sandbox.path("log"), project.sandbox.path("seen"));
        let note = format!("echo \"$last\" >>'{}'; ls \"$last/..\" >>'{}'", log.display(), seen.display());
        let script = format!("[ $1 = version ] || {{ for last; do :; done; {note}; }}\nexec REAL \"$@\"");
        stand_in(&project.sandbox, &script);
        let work = &project.work;
        for name in ["production", "staging"] {
            work.write(
                &format!("example/{name}/kustomization.yaml"),
                format!("resources: [../base, own.yaml]\nnamePrefix: {name}-\n"),
            );
            let own = format!("example/{name}/own.yaml");
            work.write(&own, config("own"));
        }
        work.commit("more roots");
        work.lock();
        Some(Logged { project, log })
    }

    /// Runs the program, which must succeed, and returns the roots that were built, sorted. Of each the original was
    /// built as well, but of `other`, which names nothing remote.
    #[track_caller]
    fn built(&self, args: &[&str]) -> Vec<String> {
        fs::write(&self.log, "").unwrap();
        // What a clone remembers is not asked for here.
        fs::remove_dir_all(self.project.work.path().join(".git/kustomize-localize")).ok();
        self.project.work.run_as_is(args).success();
        let log = fs::read_to_string(&self.log).unwrap();
        let [originals, results] = ["/original/", "/localized/"].map(|side| {
            let roots = log.lines().filter(|line| line.contains(side)).filter_map(|line| line.rsplit('/').next());
            roots.map(str::to_owned).collect::<BTreeSet<String>>()
        });
        let changed = results.iter().filter(|root| *root != "other").cloned();
        assert_eq!(originals, changed.collect(), "{log}");
        results.into_iter().collect()
    }

    /// Returns the directories and files beside the roots that were built since the last call.
    fn seen(&self) -> BTreeSet<String> {
        let seen = self.project.sandbox.path("seen");
        let lines = fs::read_to_string(&seen).unwrap();
        fs::remove_file(seen).unwrap();
        lines.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn commit(&self, path: &str, text: impl AsRef<[u8]>) {
        self.project.work.write(path, text);
        self.project.work.commit(path);
    }

    fn verified(&self) -> String {
        recorded(&self.project.work)
    }
}

const ALL: [&str; 4] = ["other", "overlay", "production", "staging"];
const IN_PLACE: [&str; 1] = ["branch"];

#[test]
fn in_place_only_what_reaches_a_change_is_built() {
    let Some(logged) = Logged::new() else { return };
    let work = &logged.project.work;
    assert_eq!(logged.built(&IN_PLACE), ALL);
    assert!(logged.verified().starts_with("identical 4/4 kustomize/"));

    // Nothing changed.
    assert_eq!(logged.built(&IN_PLACE), crate::support::NONE);
    work.run_as_is(&IN_PLACE).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has <1> localized
    "#]]);

    // Nothing that a root reaches.
    logged.commit("README.md", "Changed.\n");
    work.run_as_is(&["branch", "--dry-run", "--format=json"]).success().stdout_has("\"verdict\": \"verified-before\"");
    assert_eq!(logged.built(&IN_PLACE), crate::support::NONE);
    assert!(logged.verified().starts_with("identical 4/4 kustomize/"));
    // What one of them reaches, and then all of them.
    logged.commit("example/staging/own.yaml", config("another"));
    logged.seen();
    assert_eq!(logged.built(&IN_PLACE), ["staging"]);
    // What it does not reach was not even written.
    assert_eq!(logged.seen(), ["base", "staging"].map(str::to_owned).into());
    assert!(logged.verified().starts_with("identical 4/4 kustomize/"));
    logged.commit("example/base/config.yaml", config("another-base"));
    assert_eq!(logged.built(&IN_PLACE), ALL[1..]);
    // A root that is new.
    let root = "resources: [../base]\n";
    logged.commit("example/fourth/kustomization.yaml", root);
    assert_eq!(logged.built(&IN_PLACE), ["fourth"]);
    assert!(logged.verified().starts_with("identical 5/5 kustomize/"));
    // What decides how files are read.
    logged.commit("example/staging/.gitattributes", "*.yaml text\n");
    assert_eq!(logged.built(&IN_PLACE), crate::support::NONE);
    logged.commit("example/staging/.gitattributes", "*.yaml eol=crlf\n");
    assert_eq!(logged.built(&IN_PLACE), ["staging"]);
    // What decides which roots there are.
    logged.commit(".kustomize-localize", "allow-private: true\n");
    let five = ["fourth", "other", "overlay", "production", "staging"];
    assert_eq!(logged.built(&IN_PLACE), five);
    // Another upstream, which all of them but one reach.
    logged.project.second_version();
    let v2 = crate::support::base_of("v2");
    logged.commit("example/base/kustomization.yaml", v2);
    work.lock();
    assert_eq!(logged.built(&IN_PLACE), ["fourth", "overlay", "production", "staging"]);
    assert_eq!(logged.built(&IN_PLACE), crate::support::NONE);
}

#[test]
fn unverified_roots_are_built() {
    let Some(logged) = Logged::new() else { return };
    let work = &logged.project.work;
    // A root whose original does not build: the same name twice.
    let twice = "resources: [../base, own.yaml]\n";
    work.write("example/twice/kustomization.yaml", twice);
    logged.commit("example/twice/own.yaml", config("base"));
    let all = ["other", "overlay", "production", "staging", "twice"];
    let built = |args: &[&str]| logged.built(args);
    work.run_as_is(&["branch", "--no-verify"]).success();
    assert_eq!(logged.verified(), "not built");
    assert_eq!(built(&IN_PLACE), all);
    logged.commit("README.md", "one\n");
    assert_eq!(built(&IN_PLACE), all);
    let verified = logged.verified();
    assert!(verified.starts_with("identical 4/5 kustomize/"), "{verified}");
    let format = "--format=%(trailers:key=Kustomize-Localize-Not-Built,valueonly)";
    assert_eq!(work.git(&["log", "-1", format, "localized/main"]), "example/twice");
    assert_eq!(built(&IN_PLACE), crate::support::NONE);
    work.run_as_is(&IN_PLACE).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has <1> localized
    "#]]);
    logged.commit("README.md", "and one\n");
    work.run_as_is(&["branch", "--dry-run"])
        .success().says(expect![[r#"
            would localize the repository on branch localized/main: 1 file written, 0 references rewritten, 0 removed
              verified: 4 builds verified before, from the same inputs, 1 root not built (kustomize/…, network closed)
              not built: example/twice: accumulating resources: accumulation err='merging resources from 'own.yaml': may not add resource with an already registered id: ConfigMap.v1.[noGrp]/base.[noNs]': must build at directory: 'example/twice/own.yaml': file is not directory
              file README.md (8)
        "#]]);
    // Of what did not build nobody knows what it reads.
    assert_eq!(built(&IN_PLACE), ["twice"]);
    assert!(logged.verified().starts_with("identical 4/5 kustomize/"));
    assert_eq!(work.git(&["log", "-1", format, "localized/main"]), "example/twice");
    logged.commit("example/twice/kustomization.yaml", "resources: [../base, ../base]\nnamePrefix: x-\n");
    assert_eq!(built(&IN_PLACE), ["twice"]);

    // With other arguments, or another kustomize, it is another build.
    let helm = ["branch", "--build-arg=--enable-helm"];
    assert_eq!(built(&helm), all);
    logged.commit("README.md", "two\n");
    assert_eq!(built(&helm), all);
    assert!(logged.verified().ends_with(" --enable-helm"), "{}", logged.verified());
    assert_eq!(built(&helm), ["twice"]);
    assert_eq!(built(&IN_PLACE), all);
    let script = logged.project.sandbox.path("bin/kustomize");
    let text = fs::read_to_string(&script).unwrap();
    let newer = text.replace("\nexec", "\n[ $1 = version ] && echo v99.0.0 && exit\nexec");
    assert_ne!(text, newer);
    fs::write(&script, newer).unwrap();
    assert_eq!(built(&helm), all);
}

#[test]
fn a_root_that_was_part_of_another_one_is_built_on_its_own() {
    let Some(logged) = Logged::new() else { return };
    let work = &logged.project.work;
    assert_eq!(logged.built(&IN_PLACE), ALL);
    for name in ["overlay", "production", "staging"] {
        work.git(&["rm", "-rq", &format!("example/{name}")]);
    }
    work.commit("nobody names the base any more");
    assert_eq!(logged.built(&IN_PLACE), ["base"]);
}

#[test]
fn targets_of_links_count() {
    let Some(logged) = Logged::new() else { return };
    let work = &logged.project.work;
    for name in ["one", "two"] {
        let text = "resources: [own.yaml, ../../base]\n";
        work.write(&format!("example/shared/{name}/kustomization.yaml"), text);
        work.write(&format!("example/shared/{name}/own.yaml"), config(name));
    }
    work.symlink("example/linked", "shared/one");
    logged.commit("example/overlay/kustomization.yaml", "resources: [../linked]\nnamePrefix: dev-\n");
    let first = logged.built(&IN_PLACE);
    assert!(first.contains(&"overlay".to_owned()), "{first:?}");
    assert_eq!(logged.built(&IN_PLACE), crate::support::NONE);
    fs::remove_file(work.path().join("example/linked")).unwrap();
    work.symlink("example/linked", "shared/two");
    work.commit("another link");
    let again = logged.built(&IN_PLACE);
    assert!(again.contains(&"overlay".to_owned()), "{again:?}");
}

#[test]
fn an_edited_tip_covers_nothing() {
    let Some(logged) = Logged::new() else { return };
    assert_eq!(logged.built(&IN_PLACE), ALL);
    let work = &logged.project.work;
    work.git(&["checkout", "-q", "localized/main"]);
    work.write("example/base/config.yaml", config("edited"));
    work.commit("edited");
    work.git(&["checkout", "-q", "main"]);
    assert_eq!(logged.built(&["branch", "--overwrite"]), ALL);
}

#[test]
fn a_copy_is_built_once() {
    let Some(logged) = Logged::new() else { return };
    let work = &logged.project.work;
    let overlay = crate::support::OVERLAY;
    let production = ["example/production", "--scope", "example"];
    assert_eq!(logged.built(&overlay), ["overlay"]);
    assert_eq!(logged.built(&overlay), crate::support::NONE);
    work.run_as_is(&overlay).success().says(expect![[r#"
            nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
              verified: 1 build verified before, from the same inputs (kustomize/…)
        "#]]);
    // Another copy on the same branch, and something that neither reaches.
    assert_eq!(logged.built(&production), ["production"]);
    logged.commit("README.md", "Changed.\n");
    assert_eq!(logged.built(&overlay), crate::support::NONE);
    assert_eq!(logged.built(&production), crate::support::NONE);
    logged.commit("example/production/own.yaml", config("another"));
    assert_eq!(logged.built(&overlay), crate::support::NONE);
    assert_eq!(logged.built(&production), ["production"]);
    // On disk there is no record.
    let plain = [&overlay[..], &["--no-commit"]].concat();
    assert_eq!(logged.built(&plain), ["overlay"]);
    let again = [&plain[..], &["--overwrite"]].concat();
    assert_eq!(logged.built(&again), ["overlay"]);
}
