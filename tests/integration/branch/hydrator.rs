//! `--hydrator-metadata`: a branch in place says which commit it was made from, as GitOps Promoter reads it.

use serde_json::{Value, json};

use crate::support::{Project, Repo};

const FILE: &str = "hydrator.metadata";
const IN_PLACE: [&str; 2] = ["branch", "--no-verify"];

fn metadata(work: &Repo) -> Value {
    serde_json::from_str(&work.show("localized/main", FILE)).unwrap()
}

#[test]
fn the_branch_names_its_source_commit_and_goes_on_doing_so() {
    let project = Project::new();
    let work = &project.work;
    work.run(&["branch", "--hydrator-metadata", "--no-verify"])
        .success();
    let found = metadata(work);
    assert_eq!(
        found,
        json!({
            "drySha": work.id("main"),
            "author": work.git(&["log", "-1", "--format=%an <%ae>", "main"]),
            "date": work.git(&["log", "-1", "--format=%aI", "main"]).replace('Z', "+00:00"),
            "subject": "manifests",
            "references": [{"commit": {
                "sha": project.upstream.id("v1"),
                "repoURL": "https://example.com/acme/remote.git",
            }}],
        })
    );
    work.run(&IN_PLACE).success().stdout_has("nothing to do: ");

    // The lock keeps it, and the next commit moves it on.
    work.write("README.md", "Changed.\n");
    work.commit("second\n\nWith a body.");
    work.run(&IN_PLACE).success();
    let found = metadata(work);
    assert_eq!(found["drySha"], work.id("main"));
    assert_eq!(found["subject"], "second");
    assert_eq!(found["body"], "With a body.");
    work.run(&["verify", "localized/main", "--rebuild"])
        .success()
        .stdout_has("the same when localized again");

    // It is part of the tree that the record names.
    work.git(&["switch", "-q", "localized/main"]);
    work.write(FILE, "{}\n");
    work.commit("edited");
    work.git(&["switch", "-q", "main"]);
    work.run(&["verify", "localized/main"])
        .fails(1)
        .stdout_has(FILE);
    work.run(&IN_PLACE)
        .fails(2)
        .stderr_has("was edited by hand")
        .stderr_has(FILE);
    let without = ["--overwrite", "--no-hydrator-metadata"];
    work.run(&[IN_PLACE, without].concat()).success();
    let files = work.git(&["ls-tree", "-r", "--name-only", "localized/main"]);
    assert!(!files.contains(FILE), "{files}");
    let lock = work.show("localized/main", "kustomize-localize.lock");
    assert!(!lock.contains("hydrator"), "{lock}");
}

#[test]
fn a_file_of_the_user_is_not_overwritten() {
    let project = Project::new();
    let work = &project.work;
    work.write(FILE, "{}\n");
    work.commit("ours");
    work.run(&["branch", "--hydrator-metadata", "--no-verify"])
        .fails(2)
        .stderr_has("the source has a `hydrator.metadata` of its own")
        .stderr_has("git rm hydrator.metadata");
    work.run(&IN_PLACE).success();
    assert_eq!(work.show("localized/main", FILE), "{}\n");
    for args in [
        &["example/overlay", "--hydrator-metadata"][..],
        &["vendor", "--hydrator-metadata"],
    ] {
        work.run(args).fails(2).stderr_has("--hydrator-metadata");
    }
}
