//! A team with a repository, two upstreams, a server of files, and a branch that must hold all of it localized:
//! what happens to them, and what must be true whenever something has happened.

use std::collections::BTreeMap;
use std::fs;

use git_kustomize_localize::seams::record::sha256_hex;
use serde_json::Value;

use super::{BRANCH, LOCK};
use crate::support::{Output, Repo, World, config_map, files, full};

/// Where NEW_DIR is, with copies.
const COPY: &str = "delivery";
/// The file that is on a server.
pub(super) const POLICY: &str = "https://files.example.com/policy.yaml";

/// What the branch holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The repository, localized where it stands.
    InPlace,
    /// A copy of `apps` beside it.
    Copy,
}

/// One deployment: a commit of the branch, over first parents.
struct Deployed {
    commit: String,
    /// The source commit; none for a manual commit.
    source: Option<String>,
}

pub(super) struct Team {
    pub(super) world: World,
    /// `https://github.com/acme/web`, with the branch `release`.
    pub(super) web: Repo,
    /// `https://github.com/acme/jobs`, with the tag `v1`.
    pub(super) jobs: Repo,
    /// What the branch must hold: how a message names a remote, and the digest there.
    pub(super) holds: BTreeMap<String, String>,
    /// The exit status of `check` on main.
    pub(super) check_of_main: i32,
    mode: Mode,
    log: Vec<Deployed>,
    /// How often it was to be built.
    builds: usize,
}

impl Team {
    /// Returns the team with one commit on main and no branch.
    pub(super) fn new(mode: Mode) -> Team {
        let world = World::new();
        world.sandbox.builds();
        let web = world.upstream("acme/web");
        web.write("kustomization.yaml", "resources: [page.yaml]\n");
        web.write("page.yaml", config_map("page-zero"));
        web.commit("Begin");
        web.git(&["switch", "-q", "-c", "release"]);
        web.write("page.yaml", config_map("page-one"));
        let released = web.commit("Show page one");
        let jobs = world.upstream_of(
            "acme/jobs",
            &[
                ("deploy/kustomization.yaml", "resources: [job.yaml]\n"),
                ("deploy/job.yaml", &config_map("job-one")),
                ("README.md", "Not for a cluster.\n"),
            ],
        );
        let policy = config_map("policy-one");
        world.file(POLICY, &policy);
        world.commit(&[
            ("README.md", "Manifests.\n"),
            ("bin/deploy.sh", "#!/bin/sh\n"),
            ("apps/kustomization.yaml", "resources:\n- web\n- jobs # nightly\n"),
            ("apps/web/kustomization.yaml", &format!("namePrefix: shop-\nresources:\n- ../../bases/web\n- {POLICY}\n")),
            (
                "apps/jobs/kustomization.yaml",
                "nameSuffix: -nightly\nresources:\n- https://github.com/acme/jobs//deploy?ref=v1\n",
            ),
            (
                "bases/web/kustomization.yaml",
                "resources:\n- config.yaml\n- https://github.com/acme/web?ref=release # theirs\n",
            ),
            ("bases/web/config.yaml", &config_map("web")),
        ]);
        let mut team =
            Team { holds: BTreeMap::new(), check_of_main: 1, log: Vec::new(), builds: 0, mode, world, web, jobs };
        team.holds_commit("https://github.com/acme/web?ref=release", &released);
        let v1 = team.jobs.id("v1");
        team.holds_commit("https://github.com/acme/jobs?ref=v1", &v1);
        team.holds_file(POLICY, &policy);
        team
    }

    pub(super) fn work(&self) -> &Repo {
        &self.world.work
    }

    /// Notes that the branch must hold a repository at a commit.
    pub(super) fn holds_commit(&mut self, label: &str, commit: &str) {
        let digest = format!("gitCommit:{commit}");
        self.holds.insert(label.to_owned(), digest);
    }

    /// Notes that the branch must hold a file with these bytes.
    pub(super) fn holds_file(&mut self, url: &str, text: &str) {
        let digest = format!("sha256:{}", sha256_hex(text.as_bytes()));
        self.holds.insert(url.to_owned(), digest);
    }

    /// Replaces text in a file of the working tree.
    #[track_caller]
    pub(super) fn edit(&self, path: &str, old: &str, new: &str) {
        let text = self.work().read(path);
        assert!(text.contains(old), "no {old:?} in {path}: {text}");
        self.work().write(path, text.replace(old, new));
    }

    /// Merges what `change` does into main, as a hosting service does.
    #[track_caller]
    pub(super) fn pull_request(&self, title: &str, change: impl FnOnce(&Team)) {
        let work = self.work();
        work.git(&["switch", "-q", "-c", "pull"]);
        change(self);
        work.commit(title);
        work.git(&["switch", "-q", "main"]);
        let merge = ["merge", "-q", "--no-ff", "-m", "Merge pull request", "pull"];
        work.git(&merge);
        work.git(&["branch", "-q", "-d", "pull"]);
    }

    /// Commits something on main that has nothing to do with kustomize.
    pub(super) fn something_else(&self, text: &str) {
        self.work().write("README.md", text);
        self.work().commit("Write more");
    }

    fn arguments(&self) -> &'static [&'static str] {
        match self.mode {
            Mode::InPlace => &["branch"],
            Mode::Copy => &["apps", COPY, "--scope", "."],
        }
    }

    pub(super) fn is_copy(&self) -> bool {
        self.mode == Mode::Copy
    }

    /// Returns where a file of the result is on the branch.
    pub(super) fn place(&self, path: &str) -> String {
        match self.mode {
            Mode::InPlace => path.to_owned(),
            Mode::Copy => format!("{COPY}/{path}"),
        }
    }

    /// Returns the text of a file of the result, as the branch has it.
    #[track_caller]
    pub(super) fn deployed(&self, path: &str) -> String {
        self.work().show(BRANCH, &self.place(path))
    }

    /// Asserts that the branch has nothing there.
    #[track_caller]
    pub(super) fn has_no(&self, path: &str) {
        let place = format!("{BRANCH}:{}", self.place(path));
        assert_ne!(self.work().try_git(&["cat-file", "-e", &place]).status, 0);
    }

    /// Localizes in the middle of other work, which is then as it was.
    #[track_caller]
    fn run(&self, more: &[&str]) -> Output {
        let work = self.work();
        work.write("staged.txt", "staged\n");
        work.git(&["add", "staged.txt"]);
        work.write("staged.txt", "and changed again\n");
        work.write("draft/kustomization.yaml", "resources: [\n");
        let before = work.state().without_ref(BRANCH);
        let output = work.run_as_is(&[self.arguments(), more].concat());
        before.assert_same(&work.state().without_ref(BRANCH));
        assert_eq!(self.world.sandbox.leftovers(), crate::support::NONE, "{output:?}");
        work.git(&["rm", "-q", "-f", "staged.txt"]);
        work.remove("draft/kustomization.yaml");
        output
    }

    /// Localizes without a build, which must make one more commit, and looks at all of it.
    #[track_caller]
    pub(super) fn follow(&mut self) -> Output {
        self.follow_with(&["--no-verify"])
    }

    /// Localizes, lets kustomize build before and after, and builds again without a network; by day every other time.
    #[track_caller]
    pub(super) fn follow_and_build(&mut self) {
        self.builds += 1;
        if !full() && self.builds.is_multiple_of(2) {
            self.follow();
            return;
        }
        let output = self.follow_with(&[]);
        if self.world.sandbox.builds().is_some() {
            output.stdout_has("verified: ");
            let clone = self.world.clone_of_branch();
            self.world.same_build("apps", &clone, &self.place("apps"));
        }
        self.work().run(&["verify", "localized/main", "--rebuild"]).success().stdout_has(": as recorded");
    }

    /// Does the same on a machine that has fetched nothing yet.
    #[track_caller]
    pub(super) fn follow_with_an_empty_cache(&mut self) -> Output {
        let output = self.with_an_empty_cache(|team| team.run(&["--no-verify"]));
        self.committed(output)
    }

    /// Localizes, which must make one more commit, and looks at all of it.
    #[track_caller]
    pub(super) fn follow_with(&mut self, more: &[&str]) -> Output {
        let output = self.run(more);
        self.committed(output)
    }

    #[track_caller]
    fn committed(&mut self, output: Output) -> Output {
        output.success().lacks("nothing to do");
        let tip = Tip::of(self);
        self.parents(&tip);
        self.log.push(Deployed { commit: tip.commit.clone(), source: Some(tip.source.clone()) });
        self.is_right(&tip);
        output
    }

    /// Localizes, which must find that there is nothing to do.
    #[track_caller]
    pub(super) fn nothing_to_do(&self) {
        let tip = self.work().id(BRANCH);
        self.run(&["--no-verify"]).success().stdout_has("nothing to do");
        assert_eq!(self.work().id(BRANCH), tip);
    }

    /// Localizes, which must be refused and change nothing at all.
    #[track_caller]
    pub(super) fn refused(&self, more: &[&str]) -> Output {
        let tip = self.work().id(BRANCH);
        let output = self.run(more);
        output.fails(2).stderr_has("error: ");
        assert_eq!(self.work().id(BRANCH), tip);
        output
    }

    /// Does something as on a machine that has fetched nothing yet.
    #[track_caller]
    pub(super) fn with_an_empty_cache<T>(&self, then: impl FnOnce(&Team) -> T) -> T {
        let sandbox = self.world.sandbox.clone();
        let empty = tempfile::tempdir_in(sandbox.path("")).unwrap();
        sandbox.set("XDG_CACHE_HOME", empty.path());
        let result = then(self);
        sandbox.set("XDG_CACHE_HOME", sandbox.path("cache"));
        result
    }

    /// Commits on the branch by hand, and returns that commit.
    pub(super) fn edit_branch(&mut self, change: impl FnOnce(&Team)) -> String {
        let work = &self.world.work;
        work.git(&["switch", "-q", "localized/main"]);
        change(self);
        let commit = self.work().commit("Fix it quickly");
        self.work().git(&["switch", "-q", "main"]);
        self.log.push(Deployed { commit: commit.clone(), source: None });
        commit
    }

    /// Asserts what the new tip's parents are: the source commit at first; later the tip before and the source
    /// commit.
    #[track_caller]
    fn parents(&self, tip: &Tip) {
        let source = &tip.source;
        let expected = match self.log.last() {
            None => source.clone(),
            Some(Deployed { commit, .. }) => format!("{commit} {source}"),
        };
        assert_eq!(tip.parents, expected);
    }

    /// Asserts everything that must be true after each step.
    #[track_caller]
    fn is_right(&self, tip: &Tip) {
        let work = self.work();
        self.log_reads_as_deployments();
        self.record_is_what_it_holds(tip);
        self.differs_from_main_where_it_must();
        // By day the rest is looked at every other time.
        if !full() && self.log.len().is_multiple_of(2) {
            return;
        }
        work.run(&["check", "--rev", "main"]).is(self.check_of_main);
        match self.mode {
            Mode::InPlace => work.run(&["check", "--rev", BRANCH]).is(0),
            Mode::Copy => work.run(&["check", "--rev", BRANCH, "--", COPY]).is(0),
        };
        work.run(&["verify", "localized/main"])
            .success()
            .stdout_has("recorded in the lock and in the message of ")
            .stdout_has(": as recorded\n");
        let clone = self.world.clone_of_branch();
        self.files_are_what_the_lock_lists(tip, &clone);
        if full() || tip.message.contains("Kustomize-Localize-Verified: identical") {
            self.never_drifts(tip, &clone);
        }
        fs::remove_dir_all(clone.path()).unwrap();
    }

    /// Over first parents, the branch is the list of what was deployed, and then the history of main.
    #[track_caller]
    fn log_reads_as_deployments(&self) {
        let format = "--format=%H %(trailers:key=Kustomize-Localize-Source,valueonly,separator=%x2C)|%s";
        let log = self.work().git(&["log", "--first-parent", format, BRANCH]);
        let mut log = log.lines();
        for deployed in self.log.iter().rev() {
            let (line, subject) = log.next().unwrap().split_once('|').unwrap();
            let source = deployed.source.as_ref();
            let named = source.map(|source| format!("gitCommit:{source}"));
            let named = named.unwrap_or_default();
            assert_eq!(line, format!("{} {named}", deployed.commit));
            assert!(source.is_none() || subject.starts_with("Localize "));
        }
        let first = self.log[0].source.as_ref().unwrap();
        let (line, _) = log.next().unwrap().split_once('|').unwrap();
        assert_eq!(line, format!("{first} "));
    }

    /// The trailers and the lock of the tip say what the team expects it to hold.
    #[track_caller]
    fn record_is_what_it_holds(&self, tip: &Tip) {
        let message = self.world.sandbox.path("message");
        fs::write(&message, &tip.message).unwrap();
        let parse = ["interpret-trailers", "--parse", message.to_str().unwrap()];
        let trailers = self.work().git(&parse);
        let mut lines = vec![
            match self.mode {
                Mode::InPlace => "Target: . in-place".to_owned(),
                Mode::Copy => format!("Target: apps scope=. into={COPY}"),
            },
            format!("Source: gitCommit:{}", tip.source),
        ];
        let remotes = self.holds.iter();
        lines.extend(remotes.map(|(label, digest)| format!("Remote: {label} {digest}")));
        lines.push(format!("Tree: gitTree:{}", tip.tree));
        let key = "Kustomize-Localize-Verified: ";
        let verified = trailers.lines().find_map(|line| line.strip_prefix(key));
        let verified = verified.unwrap();
        let is_one = verified == "not built" || verified.starts_with("identical 1/1 kustomize/");
        assert!(is_one, "{verified}");
        lines.push(format!("Verified: {verified}"));
        let version = env!("CARGO_PKG_VERSION");
        lines.push(format!("Tool: git-kustomize-localize/{version}"));
        let said = trailers.lines();
        let said: Vec<&str> = said.map(|line| line.strip_prefix("Kustomize-Localize-").unwrap()).collect();
        assert_eq!(said, lines);

        let remotes = tip.lock_list("remotes");
        let listed: BTreeMap<String, String> = remotes.iter().map(told).collect();
        assert_eq!(listed, self.holds);
    }

    /// Beside what is localized, every file is that of main.
    #[track_caller]
    fn differs_from_main_where_it_must(&self) {
        let diff = ["diff", "--name-status", "--no-renames", "main", BRANCH];
        for line in self.work().git(&diff).lines() {
            let (status, path) = line.split_once('\t').unwrap();
            let name = path.rsplit('/').next().unwrap();
            let expected = match (self.mode, status) {
                (Mode::Copy, "A") => path.starts_with(&format!("{COPY}/")),
                (Mode::InPlace, "A") => path.contains("localized-files/") || path == LOCK,
                (Mode::InPlace, "M") => name == "kustomization.yaml" || path == LOCK,
                _ => false,
            };
            assert!(expected, "{line}");
        }
    }

    /// Every localized file is listed with its digest, and nothing else is; nothing names a URL.
    #[track_caller]
    fn files_are_what_the_lock_lists(&self, tip: &Tip, clone: &Repo) {
        let top = clone.path().join(match self.mode {
            Mode::InPlace => "",
            Mode::Copy => COPY,
        });
        let mut digests = BTreeMap::new();
        for (path, what) in files(&top) {
            if path.ends_with("kustomization.yaml") {
                let text = fs::read_to_string(top.join(&path)).unwrap();
                assert!(!text.contains("https://"), "{path}: {text}");
            }
            // In place, the rest is the user's. A directory has no digest.
            if let Some((_, digest)) = what.split_once(' ')
                && (self.is_copy() || path.contains("localized-files/"))
            {
                digests.insert(path, digest.to_owned());
            }
        }
        digests.remove(LOCK);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let files = tip.lock_list("files");
        let listed: BTreeMap<String, String> =
            files.iter().map(|file| (text(&file["path"]), text(&file["sha256"]))).collect();
        assert_eq!(digests, listed);
    }

    /// A fresh start with the same source and lock gives the same tree, object by object. By day that is looked at
    /// where both were built as well.
    #[track_caller]
    fn never_drifts(&self, tip: &Tip, clone: &Repo) {
        clone.git(&["switch", "-q", "-c", "anew", "--no-track", "origin/main"]);
        let more = ["--no-verify", "--branch", "beginning"];
        clone.run_as_is(&[self.arguments(), &more].concat()).success();
        if clone.id(&self.localized_tree("beginning")) != tip.tree {
            let diff = clone.git(&["diff", "origin/localized/main", "beginning"]);
            panic!("following is not what beginning is:\n{diff}");
        }
    }

    /// Returns how git names the tree that was localized.
    fn localized_tree(&self, rev: &str) -> String {
        match self.mode {
            Mode::InPlace => format!("{rev}^{{tree}}"),
            Mode::Copy => format!("{rev}:{COPY}"),
        }
    }
}

/// The tip of the branch, read once.
struct Tip {
    commit: String,
    /// What was localized: the tree of the commit, or NEW_DIR.
    tree: String,
    /// The commit of main.
    source: String,
    /// Its parents with a space between them.
    parents: String,
    message: String,
    /// The text of the lock of the result, if there is one.
    lock: Option<String>,
}

impl Tip {
    fn of(team: &Team) -> Tip {
        let work = team.work();
        let ids = work.git(&["rev-parse", BRANCH, &team.localized_tree(BRANCH), "main"]);
        let ids: Vec<&str> = ids.lines().collect();
        let told = work.git(&["log", "-1", "--format=%P%n%B", BRANCH]);
        let (parents, message) = told.split_once('\n').unwrap();
        let place = format!("{BRANCH}:{}", team.place(LOCK));
        let lock = work.try_git(&["cat-file", "blob", &place]);
        Tip {
            commit: ids[0].to_owned(),
            tree: ids[1].to_owned(),
            source: ids[2].to_owned(),
            parents: parents.to_owned(),
            message: message.to_owned(),
            lock: (lock.status == 0).then_some(lock.stdout),
        }
    }

    /// Returns a list of the lock.
    fn lock_list(&self, name: &str) -> Vec<Value> {
        let Some(lock) = &self.lock else {
            return Vec::new();
        };
        let lock: Value = serde_yaml::from_str(lock).unwrap();
        lock[name].as_array().cloned().unwrap_or_default()
    }
}

impl Output {
    /// Asserts an exit status, 0 among them.
    #[track_caller]
    fn is(&self, status: i32) {
        match status {
            0 => self.success(),
            _ => self.fails(status),
        };
    }
}

/// Returns how a message names an entry of a lock, and its digest there.
fn told(remote: &Value) -> (String, String) {
    let text = |key: &str| remote[key].as_str().unwrap();
    match remote["commit"].as_str() {
        Some(commit) => {
            let label = format!("{}?ref={}", text("url"), text("ref"));
            (label, format!("gitCommit:{commit}"))
        }
        None => (text("url").to_owned(), format!("sha256:{}", text("sha256"))),
    }
}
