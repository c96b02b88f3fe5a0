//! A year of a localized branch: what happens to main and upstream, one thing after the other. Whatever happens,
//! [`team::Team`] looks at tree, parents, trailers, lock, `check`, `verify`, the log, and that no work of others is
//! touched.

mod clones;
mod rewritten;
mod team;

use crate::support::{OVERLAY, config_map, full};

use team::{Mode, POLICY, Team};

const BRANCH: &str = "refs/heads/localized/main";
const IN_PLACE: &[&str] = &["branch", "--no-verify"];
const COPY: &[&str] = &[OVERLAY[0], OVERLAY[1], OVERLAY[2], "--no-verify"];
const BASE: &str = "example/base/kustomization.yaml";

const LOCK: &str = "kustomize-localize.lock";
const RELEASE: &str = "https://github.com/acme/web?ref=release";
const STABLE: &str = "https://github.com/acme/web?ref=stable";
const PAGE: &str = "bases/web/localized-files/github.com/acme/web/release/page.yaml";
const POLICY_FILE: &str = "apps/web/localized-files/files.example.com/policy.yaml";
const CRON: &str = "nameSuffix: -hourly\nresources:\n- https://github.com/acme/jobs//deploy?ref=v3\n";

#[test]
fn a_year_in_place() {
    year(Mode::InPlace);
}

#[test]
fn a_year_of_copies() {
    year(Mode::Copy);
}

fn year(mode: Mode) {
    const UNTIL_JUNE: [fn(&mut Team); 8] = [
        main_gets_a_lock,
        the_branch_begins,
        upstream_releases,
        a_pull_request_updates_the_lock,
        a_file_changes_at_its_url,
        a_bot_bumps_a_tag_with_the_lock,
        a_bot_bumps_a_tag_without_the_lock,
        a_tag_moves,
    ];
    const FROM_JULY: [fn(&mut Team); 9] = [
        a_branch_is_deleted_upstream,
        the_url_is_moved_to_what_is_there,
        a_base_is_renamed,
        an_overlay_is_added,
        an_overlay_is_removed,
        somebody_adds_a_file_to_the_branch,
        a_base_becomes_local,
        the_last_remote_goes,
        something_remote_comes_back,
    ];
    let mut team = Team::new(mode);
    // By day the second half is lived through in place alone.
    let is_whole = full() || !team.is_copy();
    for happens in UNTIL_JUNE.iter().chain(FROM_JULY.iter().filter(|_| is_whole)) {
        happens(&mut team);
    }
    assert_eq!(team.work().git(&["fsck", "--strict", "--no-dangling", "--no-progress"]), "");
}

/// January. Main has URLs.
fn main_gets_a_lock(team: &mut Team) {
    if !team.is_copy() {
        team.work().run_unchanged(IN_PLACE).fails(1).stderr_has("neither localized nor locked");
    }
    team.pull_request("Lock what is remote", |team| {
        team.work().run(&["lock"]).success();
    });
    team.check_of_main = 0;
}

/// What main has locked is on the branch.
fn the_branch_begins(team: &mut Team) {
    team.follow_and_build();
    assert_eq!(team.deployed(PAGE), config_map("page-one"));
    team.nothing_to_do();
}

/// February. The branch `release` moves on, twice, and is not wanted here yet.
fn upstream_releases(team: &mut Team) {
    for page in ["page-two", "page-three"] {
        team.web.write("page.yaml", config_map(page));
        team.web.commit(&format!("Show {page}"));
    }
    team.nothing_to_do();
    upstream_says(team, 0, &["updated", "release", "2 commits"]);
    team.something_else("February.\n");
    team.follow();
    assert_eq!(team.deployed(PAGE), config_map("page-one"));
}

/// Now it is wanted: the lock changes, by a merge commit.
fn a_pull_request_updates_the_lock(team: &mut Team) {
    let new = team.web.id("release");
    team.pull_request("Update web", |team| {
        team.work().run(&["update", RELEASE]).success().stdout_has(&new[..12]);
    });
    team.holds_commit(RELEASE, &new);
    team.follow_and_build();
    assert_eq!(team.deployed(PAGE), config_map("page-three"));
}

/// March. Other bytes at a URL change nothing until the lock records them, wherever the branch is brought up to date.
fn a_file_changes_at_its_url(team: &mut Team) {
    let new = config_map("policy-two");
    team.world.file(POLICY, &new);
    team.something_else("March.\n");
    // The tip holds what it was.
    team.world.server.forget();
    team.follow_with_an_empty_cache();
    assert_eq!(team.world.server.log(), crate::support::NONE);
    assert_eq!(team.deployed(POLICY_FILE), config_map("policy-one"));
    team.pull_request("Update the policy", |team| {
        team.work().run(&["update", POLICY]).success();
    });
    team.holds_file(POLICY, &new);
    team.follow();
    assert_eq!(team.deployed(POLICY_FILE), new);
}

/// April. A bot that knows the lock.
fn a_bot_bumps_a_tag_with_the_lock(team: &mut Team) {
    release_jobs(team, "v2", "job-two");
    team.pull_request("Bump jobs to v2", |team| {
        team.edit("apps/jobs/kustomization.yaml", "ref=v1", "ref=v2");
        team.work().run(&["lock"]).success();
    });
    jobs_are(team, "v1", "v2");
    team.follow_and_build();
    assert_eq!(team.deployed(&job("v2")), config_map("job-two"));
    team.has_no("apps/jobs/localized-files/github.com/acme/jobs/v1");
}

/// May. A bot that does not: `check` reports it, and nothing is deployed that nobody locked.
fn a_bot_bumps_a_tag_without_the_lock(team: &mut Team) {
    release_jobs(team, "v3", "job-three");
    team.pull_request("Bump jobs to v3", |team| {
        team.edit("apps/jobs/kustomization.yaml", "ref=v2", "ref=v3");
    });
    team.work().run(&["check"]).fails(1).stdout_has("v3` is neither localized nor locked");
    if !team.is_copy() {
        team.work().run_unchanged(IN_PLACE).fails(1).stderr_has("v3` is neither localized nor locked");
    }
    team.pull_request("Lock v3", |team| {
        team.work().run(&["lock"]).success();
    });
    jobs_are(team, "v2", "v3");
    team.follow();
    assert_eq!(team.deployed(&job("v3")), config_map("job-three"));
}

/// June. A tag moves: that is refused until it is accepted.
fn a_tag_moves(team: &mut Team) {
    team.jobs.write("deploy/job.yaml", config_map("job-three-again"));
    let new = team.jobs.commit("Fix v3");
    team.jobs.git(&["tag", "-f", "v3"]);
    team.nothing_to_do();
    team.something_else("June.\n");
    team.follow();
    assert_eq!(team.deployed(&job("v3")), config_map("job-three"));
    team.work()
        .run_unchanged(&["update"])
        .fails(1)
        .stderr_has(" moved: ")
        .stderr_has("update 'https://github.com/acme/jobs?ref=v3'");
    upstream_says(team, 1, &[": moved:", "v3"]);
    team.nothing_to_do();
    team.pull_request("Accept v3 as it is", |team| {
        team.work().run(&["update", "https://github.com/acme/jobs"]).success();
    });
    team.holds_commit("https://github.com/acme/jobs?ref=v3", &new);
    team.follow();
    assert_eq!(team.deployed(&job("v3")), config_map("job-three-again"));
}

/// July. The branch `release` is deleted, and what was on it is gone for good.
fn a_branch_is_deleted_upstream(team: &mut Team) {
    let web = &team.web;
    web.git(&["switch", "-q", "main"]);
    web.git(&["branch", "-q", "-D", "release"]);
    web.git(&["reflog", "expire", "--expire=now", "--all"]);
    web.git(&["gc", "-q", "--prune=now"]);
    team.something_else("July.\n");
    team.follow();
    team.something_else("Still July.\n");
    // A machine that has never seen it takes it from the tip; for one that has no tip either, it is gone.
    let locked = team.holds[RELEASE].replace("gitCommit:", "");
    let clone = team.world.clone_of_branch();
    clone.git(&["switch", "-q", "main"]);
    clone.git(&["branch", "-q", "-r", "-d", "origin/localized/main"]);
    clone.git(&["branch", "-q", "-D", "localized/main"]);
    team.with_an_empty_cache(|_| {
        clone
            .run_unchanged(&["branch", "--no-verify"])
            .fails(2)
            .stderr_has("bases/web/kustomization.yaml:3:3")
            .stderr_has(&locked[..12]);
    });
    team.follow_with_an_empty_cache();
    team.work().run_unchanged(&["update"]).fails(1).stderr_has("https://github.com/acme/web").stderr_has("`release`");
    upstream_says(team, 1, &["gone", "release"]);
    team.nothing_to_do();
}

/// The URL goes on to another branch, together with the lock.
fn the_url_is_moved_to_what_is_there(team: &mut Team) {
    team.web.git(&["switch", "-q", "-c", "stable"]);
    team.web.write("page.yaml", config_map("page-stable"));
    let stable = team.web.commit("Be stable");
    team.pull_request("Take the stable branch", |team| {
        team.edit("bases/web/kustomization.yaml", "release", "stable");
        team.work().run(&["lock"]).success();
    });
    team.holds.remove(RELEASE);
    team.holds_commit(STABLE, &stable);
    team.follow_and_build();
    team.has_no("bases/web/localized-files/github.com/acme/web/release");
}

/// August. What lies beside a base moves with it.
fn a_base_is_renamed(team: &mut Team) {
    team.pull_request("Call it shop", |team| {
        team.work().git(&["mv", "bases/web", "bases/shop"]);
        team.edit("apps/web/kustomization.yaml", "bases/web", "bases/shop");
    });
    team.follow();
    assert_eq!(
        team.deployed("bases/shop/localized-files/github.com/acme/web/stable/page.yaml"),
        config_map("page-stable")
    );
    team.has_no("bases/web");
}

/// September. One more overlay names what another names already: once per place, and the same objects.
fn an_overlay_is_added(team: &mut Team) {
    team.pull_request("Run it hourly", |team| {
        team.work().write("apps/cron/kustomization.yaml", CRON);
        team.edit("apps/kustomization.yaml", "- web\n", "- web\n- cron\n");
    });
    team.follow();
    let [nightly, hourly] = ["jobs", "cron"].map(|app| {
        let place = format!("apps/{app}/localized-files/github.com/acme/jobs/v3");
        team.work().id(&format!("{}:{}", BRANCH, team.place(&place)))
    });
    assert_eq!(nightly, hourly);
}

/// October. The other one goes, and with it what only it had.
fn an_overlay_is_removed(team: &mut Team) {
    team.pull_request("No longer nightly", |team| {
        team.work().git(&["rm", "-q", "-r", "apps/jobs"]);
        team.edit("apps/kustomization.yaml", "- jobs # nightly\n", "");
    });
    team.follow_and_build();
    team.has_no("apps/jobs");
}

/// November. A file that was added to the branch by hand is refused, and discarded when asked.
fn somebody_adds_a_file_to_the_branch(team: &mut Team) {
    let place = team.place("apps/cron/localized-files/hotfix.yaml");
    let by = team.edit_branch(|team| team.work().write(&place, config_map("hotfix")));
    team.work().run(&["verify", "localized/main"]).fails(1).stdout_has(&format!("{place}: was added"));
    let refused = |team: &Team| {
        team.refused(&["--no-verify"])
            .stderr_has(&format!("by {}: `", &by[..12]))
            .stderr_has(&place)
            .stderr_has("--overwrite");
    };
    refused(team);
    team.something_else("November.\n");
    refused(team);
    team.follow_with(&["--no-verify", "--overwrite"]);
    team.has_no("apps/cron/localized-files/hotfix.yaml");
    // The same again, with nothing new on main.
    team.edit_branch(|team| team.work().write(&place, config_map("hotfix")));
    team.follow_with(&["--no-verify", "--overwrite"]);
}

/// December. A base is written at home from now on.
fn a_base_becomes_local(team: &mut Team) {
    team.pull_request("Keep the page ourselves", |team| {
        team.work().write("bases/shop/page.yaml", config_map("page-stable"));
        team.edit("bases/shop/kustomization.yaml", &format!("{STABLE} # theirs"), "page.yaml");
        team.work().run(&["lock"]).success().stdout_has("dropped https://github.com/acme/web?ref=stable");
    });
    team.holds.remove(STABLE);
    team.follow_and_build();
    team.has_no("bases/shop/localized-files");
}

/// Nothing remote is left, and the branch still follows.
fn the_last_remote_goes(team: &mut Team) {
    team.pull_request("Be at home", |team| {
        team.work().write("apps/web/policy.yaml", config_map("policy-two"));
        team.edit("apps/web/kustomization.yaml", POLICY, "policy.yaml");
        team.work().git(&["rm", "-q", "-r", "apps/cron"]);
        team.edit("apps/kustomization.yaml", "- cron\n", "");
        team.work().remove(LOCK);
    });
    team.holds.clear();
    team.follow();
    if !team.is_copy() {
        let [main, branch] = ["main", BRANCH].map(|rev| team.work().id(&format!("{rev}^{{tree}}")));
        assert_eq!(main, branch);
    }
    team.something_else("Christmas.\n");
    team.follow();
    team.nothing_to_do();
}

/// Next year. It goes on as it began.
fn something_remote_comes_back(team: &mut Team) {
    team.pull_request("Run it hourly again", |team| {
        team.work().write("apps/cron/kustomization.yaml", CRON);
        team.edit("apps/kustomization.yaml", "- web\n", "- web\n- cron\n");
        team.work().run(&["lock"]).success();
    });
    let v3 = team.jobs.id("v3");
    team.holds_commit("https://github.com/acme/jobs?ref=v3", &v3);
    team.follow_and_build();
}

/// Asks each remote of the branch: one is reported with these words.
#[track_caller]
fn upstream_says(team: &Team, status: i32, words: &[&str]) {
    let output = team.work().run_unchanged(&["verify", "localized/main", "--upstream"]);
    assert_eq!(output.status, status, "{output:?}");
    let is_it = |line: &str| words.iter().all(|word| line.contains(word));
    let count = output.stdout.lines().filter(|line| is_it(line)).count();
    // With copies, main and copy have a lock each.
    assert_eq!(count, 1 + usize::from(team.is_copy()), "{output:?}");
}

/// Tags a new version of the jobs.
fn release_jobs(team: &Team, tag: &str, name: &str) {
    team.jobs.write("deploy/job.yaml", config_map(name));
    team.jobs.commit(&format!("Make it {name}"));
    team.jobs.git(&["tag", tag]);
}

/// Notes that the branch must hold another version of the jobs.
fn jobs_are(team: &mut Team, old: &str, new: &str) {
    team.holds.remove(&format!("https://github.com/acme/jobs?ref={old}"));
    let commit = team.jobs.id(new);
    team.holds_commit(&format!("https://github.com/acme/jobs?ref={new}"), &commit);
}

/// Returns where a version of the job is.
fn job(tag: &str) -> String {
    format!("apps/jobs/localized-files/github.com/acme/jobs/{tag}/deploy/job.yaml")
}

/// Returns the lock of a branch as it would be on main: what was meant, without files and target.
fn remotes_of(lock: &str) -> Option<String> {
    let lock = lock.split("\nfiles:").next()?;
    let (head, remotes) = lock.split_once("\nremotes:")?;
    let head = head.split("\ntarget:").next()?;
    Some(format!("{head}\nremotes:{}\n", remotes.trim_end()))
}
