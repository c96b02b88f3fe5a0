//! `hydrator-metadata: true`: a branch in place says which commit it was made from, as GitOps Promoter reads it.

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
    work.decide("hydrator-metadata: true\n");
    work.run(&IN_PLACE).success();
    let found = metadata(work);
    assert_eq!(
        found,
        json!({
            "drySha": work.id("main"),
            "author": work.git(&["log", "-1", "--format=%an <%ae>", "main"]),
            "date": work.git(&["log", "-1", "--format=%aI", "main"]).replace('Z', "+00:00"),
            "subject": "lock",
            "body": "",
            "references": [{"commit": {
                "sha": project.upstream.id("v1"),
                "repoURL": "https://example.com/acme/remote.git",
            }}],
        })
    );
    work.run(&IN_PLACE).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has <1> localized
    "#]]);

    // The next commit moves it on.
    work.write("README.md", "Changed.\n");
    work.commit("second\n\nWith a body.");
    work.run(&IN_PLACE).success();
    let found = metadata(work);
    assert_eq!(found["drySha"], work.id("main"));
    assert_eq!(found["subject"], "second");
    assert_eq!(found["body"], "With a body.");
    work.run(&["verify", "localized/main", "--rebuild"]).success().says(expect![[r#"
        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
        verified localized/main (<0>): as recorded, the same when localized again
    "#]]);

    // It is part of the tree that the record names.
    work.git(&["switch", "-q", "localized/main"]);
    work.write(FILE, "{}\n");
    work.commit("edited");
    work.git(&["switch", "-q", "main"]);
    work.run(&["verify", "localized/main"]).fails(1).says(expect![[r#"
        hydrator.metadata: differs from the tree recorded in the message of <0>

        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
        NOT verified localized/main (<1>): 1 difference
    "#]]);
    work.run(&IN_PLACE).fails(2).says(expect![[r#"
        error: `localized/main` was edited by hand by <0>: `hydrator.metadata`
          hint: make the changes in the source; to discard these edits: --overwrite
    "#]]);
    work.decide("");
    work.run(&[IN_PLACE, ["--overwrite", "-q"]].concat()).success();
    let files = work.git(&["ls-tree", "-r", "--name-only", "localized/main"]);
    assert!(!files.contains(FILE), "{files}");
}

#[test]
fn without_the_decision_a_file_of_that_name_is_the_users() {
    let project = Project::new();
    let work = &project.work;
    work.write(FILE, "{}\n");
    work.commit("ours");
    work.run(&IN_PLACE).success();
    assert_eq!(work.show("localized/main", FILE), "{}\n");
}
