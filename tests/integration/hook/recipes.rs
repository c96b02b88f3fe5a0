//! The recipes, run as far as possible without GitHub.

mod living;
mod private;
mod rendered;
mod renovate;
mod upstream;

use std::path::Path;

use git_kustomize_localize::seams::record::sha256_hex;
use serde_json::{Value, json};

use crate::support::pages::{self, section, source};
use crate::support::{Kustomize, Output, Project, Reply, Repo, Running, Sandbox, Server, config};

/// Returns the page with the recipes.
fn page() -> String {
    source("src/manual/recipes.md")
}

/// Returns a workflow that others call.
fn called(name: &str) -> Value {
    serde_yaml::from_str(&source(name)).unwrap()
}

/// Returns the workflow on the page that calls it.
fn calling(name: &str) -> Value {
    let blocks = pages::blocks(&page(), "yaml").into_iter();
    let mut blocks = blocks.filter(|text| text.starts_with(&format!("# {name}\n")));
    serde_yaml::from_str(&blocks.next().unwrap()).unwrap()
}

/// Returns the steps of a workflow.
fn steps(workflow: &Value) -> Vec<Value> {
    let jobs = workflow["jobs"].as_object().unwrap().values();
    let steps = jobs.filter_map(|job| job["steps"].as_array());
    steps.flatten().cloned().collect()
}

/// Returns the script of a step of a workflow.
fn step(workflow: &str, name: &str) -> String {
    let steps = steps(&called(workflow));
    let step = steps.iter().find(|step| step["name"] == name);
    step.unwrap()["run"].as_str().unwrap().to_owned()
}

#[test]
fn what_calls_grants_and_gives_what_is_asked_for() {
    for name in ["localize", "lock", "upstream"] {
        let path = format!(".github/workflows/{name}.yml");
        let (called, short) = (called(&path), calling(&path));
        let job = &short["jobs"][name];
        assert_eq!(job["uses"], format!("OWNER/REPOSITORY/{path}@COMMIT"));
        assert_eq!(short["permissions"], called["jobs"][name]["permissions"]);
        let inputs = called["on"]["workflow_call"]["inputs"].as_object().unwrap();
        for (input, about) in inputs {
            let is_given = !job["with"][input].is_null();
            assert_eq!(is_given, about["required"] == true, "{name}: {input}");
        }
    }
}

#[test]
fn the_component_of_gitlab_is_the_job_of_the_page() {
    let template = source("templates/check/template.yml");
    let (_, job) = template.split_once("\n---\n").unwrap();
    let job: Value = serde_yaml::from_str(&job.replace(" $[[ inputs.paths ]]", "")).unwrap();
    let job = &job["kustomize-localize"];
    let script: Vec<&str> = job["script"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!(script.join("\n"), gitlab("check"));
    assert_eq!(job["artifacts"]["reports"]["codequality"], "gl-code-quality-report.json");
}

/// Returns the script of a job on the page about CI, as GitLab runs it: in one shell.
fn gitlab(job: &str) -> String {
    let page = source("src/manual/ci.md");
    let written = pages::blocks(&page, "yaml").into_iter();
    let mut parsed = written.filter(|text| text.starts_with("# .gitlab-ci.yml\n"));
    let parsed = parsed
        .find_map(|text| Some(serde_yaml::from_str::<Value>(&text).unwrap()[job].clone()).filter(|job| !job.is_null()));
    let found = parsed.unwrap();
    // Nothing that could change under us.
    let image = found["image"]["name"].as_str().unwrap();
    assert!(image.ends_with("@sha256:DIGEST"), "{image}");
    let lines = found["script"].as_array().unwrap();
    lines.iter().map(|line| line.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Returns a project on a runner that has the program and a kustomize; none without that.
fn runner() -> Option<Project> {
    let project = Project::new();
    project.sandbox.offer_itself();
    let kustomize = Kustomize::find()?;
    project.sandbox.offer("kustomize", kustomize.program());
    Some(project)
}

#[test]
fn gitlab_checks_and_follows() {
    let Some(project) = runner() else { return };
    let (sandbox, work) = (&project.sandbox, &project.work);
    // The check: a finding is in the report and in the log, and fails the job.
    let tree = work.git(&["hash-object", "-w", "-t", "tree", "/dev/null"]);
    let empty = work.git(&["commit-tree", "-m", "empty", &tree]);
    sandbox.set("CI_MERGE_REQUEST_DIFF_BASE_SHA", &empty);
    let check = gitlab("check");
    // A merged result has what its target has: only the rest is the change.
    sandbox.set("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", work.id("HEAD"));
    run(&project, work, &check).success().says(expect![[r#"
        checked 3 kustomizations with 4 references in commit <0> (HEAD): 1 finding already in <0>
    "#]]);
    sandbox.set("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", "");
    run(&project, work, &check).fails(1).says(expect![[r#"
        error[remote-reference]: `https://example.com/acme/remote.git?ref=v1` is neither localized nor locked
         --> example/base/kustomization.yaml:3:5
          |
        3 |   - https://example.com/acme/remote.git?ref=v1
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[1]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/example/base

        for more: git kustomize-localize explain remote-reference
        checked 3 kustomizations with 4 references in commit <0> (HEAD): 1 error
    "#]]);
    let report = "gl-code-quality-report.json";
    let found: Value = serde_json::from_str(&work.read(report)).unwrap();
    assert_eq!(found[0]["check_name"], "remote-reference");
    work.remove(report);
    work.run(&["lock"]).success();
    work.commit("lock");
    run(&project, work, &check).success();

    // The branch, twice: the second run goes on from the first.
    let origin = sandbox.clone_with(work, "origin.git", &["--bare"]);
    let url = sandbox.path("origin");
    sandbox.set("CI_DEFAULT_BRANCH", "main");
    sandbox.set("CI_SERVER_URL", "https://gitlab.example.com");
    sandbox.set("CI_PROJECT_URL", url);
    let to = origin.path().to_str().unwrap();
    let localize = gitlab("localize");
    let job = |name: &str| {
        let job = sandbox.clone_of(&origin, name);
        job.git(&["checkout", "--quiet", "--detach"]);
        job
    };
    let push = |name: &str| {
        work.write("README.md", name);
        work.commit(name);
        work.git(&["push", "--quiet", to, "main"]);
    };
    push("one");
    run(&project, &job("one"), &localize).success();
    let tip = origin.id("localized/main");
    push("two");
    let late = job("late");
    push("three");
    run(&project, &job("three"), &localize).success();
    origin.git(&["merge-base", "--is-ancestor", &tip, "localized/main"]);
    let tip = origin.id("localized/main");
    run(&project, &late, &localize).success().says(expect![[r#"
        checked 3 kustomizations with 4 references in commit <0> (HEAD), 2 builds (kustomize/…, network closed): no problems found
        nothing to do: branch localized/main (<1>) already has <0> localized
        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <1>
        verified localized/main (<1>): as recorded
        Everything up-to-date
    "#]]);
    assert_eq!(origin.id("localized/main"), tip);
    // After a reset, it says how to go on.
    origin.git(&["update-ref", "refs/heads/main", "main~2"]);
    let reset = job("reset");
    let refused = run(&project, &reset, &localize);
    let (_, command) = refused.fails(2).stderr.split_once("hint: if it was reset, localize it anyway: ").unwrap();
    let command = format!("{}; git push --quiet origin localized/main", command.trim_end());
    run(&project, &reset, &command).success();
    assert_eq!(origin.show("localized/main", "README.md"), "one");
    origin.git(&["merge-base", "--is-ancestor", &tip, "localized/main"]);
}

#[test]
fn validators_get_what_is_deployed() {
    let Some(project) = runner() else { return };
    let (sandbox, work) = (&project.sandbox, &project.work);
    // It takes a directory as kubeconform does, and refuses a replica count that is a text.
    sandbox.script(
        "kubeconform",
        r#"
        for directory; do :; done
        [ "$1" = -strict ] && [ -d "$directory" ] || exit 64
        cd "$directory" && find . -name '*.yaml' -o -name '*.yml' -o -name '*.json' | sort
        ! grep -r 'replicas: "' --include='*.yaml' .
        "#,
    );
    work.run(&["lock"]).success();
    work.commit("lock");
    let base = work.id("HEAD");
    sandbox.set("BASE", &base);
    sandbox.set("CI_MERGE_REQUEST_DIFF_BASE_SHA", &base);
    let page = source("src/commands/build.md");
    let all = pages::blocks(&page, "sh").pop().unwrap();
    let [github, gitlab, pre_commit] = pages::blocks(&page, "yaml").try_into().unwrap();
    let yaml = |text: &str| serde_yaml::from_str::<Value>(text).unwrap();
    let github = yaml(&github)[0]["run"].as_str().unwrap().to_owned();
    let gitlab = yaml(&gitlab)["validate"]["script"].as_array().unwrap().clone();
    let gitlab = gitlab.iter().map(|line| line.as_str().unwrap()).collect::<Vec<_>>().join("\n");
    let pre_commit = yaml(&pre_commit)[0]["entry"].as_str().unwrap().to_owned();
    let directory = sandbox.path("built");
    let play = |script: &str| {
        let script = format!("set -e\n{}", script.replace("/tmp/built", directory.to_str().unwrap()));
        run(&project, work, &script)
    };
    play(&all).success().says(expect![[r#"
        /home/me/built has 2 builds: 2 written, 0 removed
        ./roots/example/overlay.yaml
        ./roots/other.yaml
    "#]]);
    for (count, status) in [("2", 0), ("'2'", 1)] {
        let deployment =
            format!("kind: Deployment\napiVersion: apps/v1\nmetadata: {{name: a}}\nspec: {{replicas: {count}}}\n");
        work.write("new/deployment.yaml", deployment);
        work.write("new/kustomization.yaml", "resources: [deployment.yaml]\n");
        for script in [&github, &gitlab, &pre_commit] {
            let output = play(script);
            assert_eq!(output.status, status, "{script}\n{output:?}");
            assert!(output.stdout.contains("./roots/new.yaml"), "{output:?}");
            assert!(!output.stdout.contains("example"), "{output:?}");
        }
    }
}

#[test]
fn a_cache_is_kept_between_jobs() {
    let project = Project::new();
    let (sandbox, work) = (&project.sandbox, &project.work);
    sandbox.offer_itself();
    work.lock();
    let blocks = pages::blocks(&source("src/manual/ci.md"), "yaml").into_iter();
    let mut blocks = blocks.filter(|text| text.contains("/git-kustomize-localize") && text.contains("key: "));
    let mut next = || serde_yaml::from_str::<Value>(&blocks.next().unwrap()).unwrap();
    let [github, gitlab] = [next(), next()];
    let key = github[0]["with"]["key"].as_str().unwrap();
    assert_eq!(
        key,
        format!("upstream-${{{{ hashFiles('{}') }}}}", gitlab["cache"]["key"]["files"][0].as_str().unwrap())
    );

    let job = |name: &str| {
        let job = sandbox.clone_of(work, name);
        assert!(job.path().join("kustomize-localize.lock").exists());
        sandbox.set("CI_PROJECT_DIR", job.path());
        let cache = gitlab["variables"]["XDG_CACHE_HOME"].as_str().unwrap();
        sandbox.set("XDG_CACHE_HOME", cache.replace("$CI_PROJECT_DIR", job.path().to_str().unwrap()));
        job
    };
    let one = job("one");
    one.run(&["branch"]).success();
    let two = job("two");
    two.run(&["branch", "--offline"]).fails(2);
    // As a runner keeps and unpacks it.
    let kept = gitlab["cache"]["paths"][0].as_str().unwrap();
    let script = format!("rm -rf {kept} && mkdir -p .cache && cp -R ../one/{kept} {kept} && chmod -R a+rwX .cache");
    run(&project, &two, &script).success();
    two.run(&["branch", "--offline"]).fails(2);
    run(&project, &two, gitlab["before_script"][0].as_str().unwrap()).success();
    two.run(&["branch", "--offline"]).success();
    assert_eq!(one.id("localized/main^{tree}"), two.id("localized/main^{tree}"));

    // GitHub's runners do not name a directory.
    let path = github[0]["with"]["path"].as_str().unwrap().strip_prefix("~/").unwrap();
    sandbox.unset("XDG_CACHE_HOME");
    sandbox.clone_of(work, "three").run(&["branch"]).success();
    let kept = sandbox.path("home").join(path);
    assert!(kept.exists());
    std::fs::remove_dir_all(kept).unwrap();
    sandbox.clone_of(work, "four").run(&["branch", "--offline"]).fails(2);
}

#[test]
fn gitlab_has_one_note_for_a_merge_request() {
    let Some(project) = runner() else { return };
    let (sandbox, work, api) = (&project.sandbox, &project.work, Server::start());
    work.lock();
    let base = work.id("HEAD");
    work.write("example/overlay/kustomization.yaml", "resources: [map.yaml]\n");
    work.write("example/overlay/map.yaml", config("new"));
    work.commit("change");
    let url = api.url();
    sandbox.offer("kustomize-localize-comment", &Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/action/comment.sh"));
    let variables = [
        ("GITLAB_CI", "true"),
        ("CI_API_V4_URL", url.trim_end_matches('/')),
        ("CI_PROJECT_ID", "12"),
        ("CI_MERGE_REQUEST_IID", "7"),
        ("CI_MERGE_REQUEST_DIFF_BASE_SHA", &base),
        ("COMMENT_TOKEN", "s3cr3t"),
    ];
    variables.iter().for_each(|(name, value)| sandbox.set(name, value));
    let notes = "/projects/12/merge_requests/7/notes";
    let has = |page: u32, all: &[(u32, &str, &str)]| {
        let all = all.iter().map(|(id, author, body)| json!({"id": id, "author": {"username": author}, "body": body}));
        let url = format!("{notes}?per_page=100&page={page}");
        api.route(&url, Reply::ok(json!(all.collect::<Vec<_>>()).to_string()));
    };
    let sent_by = |script: &str| {
        api.forget();
        let output = run(&project, work, script);
        output.lacks("s3cr3t");
        let requests = api.requests().into_iter();
        let sent = requests.inspect(|request| assert_eq!(request.header("private-token"), Some("s3cr3t")));
        let sent = sent.filter(|request| request.method != "GET");
        let sent = sent.map(|request| (format!("{} {}", request.method, request.url()), request.text()));
        (output.status == 0, sent.collect::<Vec<_>>())
    };
    let sent = || sent_by(&gitlab("diff"));
    api.route("/user", Reply::ok(r#"{"username": "project_12_bot"}"#));
    api.route(notes, Reply::status(201));
    has(1, &[]);
    let (true, first) = sent() else { panic!() };
    let [(what, body)] = &first[..] else { panic!("{first:?}") };
    assert_eq!(*what, format!("POST {notes}"));
    let written = work.read("diff.md");
    let sent_text: Value = serde_json::from_str(body).unwrap();
    assert!(written.contains("ConfigMap") && sent_text == json!({"body": written}), "{body}");

    // Others quote it, or pretend to be it; ours is on the second page.
    let others = [(1, "mallory", &*written), (2, "project_12_bot", "something else")];
    has(1, &others.into_iter().cycle().take(100).collect::<Vec<_>>());
    has(2, &[(3, "mallory", &written), (4, "project_12_bot", &written), (5, "project_12_bot", &written)]);
    api.route(&format!("{notes}/4"), Reply::ok("{}"));
    assert_eq!(sent(), (true, vec![(format!("PUT {notes}/4"), body.clone())]));
    // What an earlier run has found does not stay.
    sandbox.set("CI_MERGE_REQUEST_DIFF_BASE_SHA", "1".repeat(40));
    let (is_done, unknown) = sent();
    assert!(!is_done && unknown.len() == 1 && unknown[0].1.contains("is not known"), "{unknown:?}");
    sandbox.set("CI_MERGE_REQUEST_DIFF_BASE_SHA", &base);
    let alone = "kustomize-localize-comment diff.md";
    assert!(gitlab("diff").contains(alone));
    // What cannot be read is not nothing; a comment that fails is no finding.
    let pages = format!("{notes}?per_page=100&page=2");
    for (url, reply) in
        [(&pages, Reply::ok("<html>")), (&pages, Reply::status(404)), (&"/user".to_owned(), Reply::status(401))]
    {
        api.route(url, reply);
        assert_eq!(sent_by(alone), (true, Vec::new()), "{url}");
    }
    // A fork has no token.
    sandbox.unset("COMMENT_TOKEN");
    run(&project, work, alone).success().says(expect![[r#"
        curl: (22) The requested URL returned error: 401
        warning: COMMENT_TOKEN is not the token of a user: give it the scope api
    "#]]);
}

/// Returns the JSON that has this key.
fn json(key: &str) -> Value {
    let blocks = pages::blocks(&page(), "json").into_iter();
    let mut parsed = blocks.map(|text| serde_json::from_str::<Value>(&text).unwrap());
    parsed.find(|json| !json[key].is_null()).unwrap()
}

/// Returns the blocks of a recipe, in this language.
fn blocks(recipe: &str, language: &str) -> Vec<String> {
    let page = page();
    let found = pages::blocks(section(&page, &format!("## {recipe}")), language);
    assert!(!found.is_empty(), "{recipe} has no {language}");
    found
}

/// Runs a step as a runner does.
fn run(project: &Project, repo: &Repo, script: &str) -> Output {
    super::step(&project.sandbox, repo.path(), script, [])
}

/// A hosting side that has the user's repository, and asks for a token.
pub(super) struct Hosting {
    sandbox: Sandbox,
    pub(super) server: Server,
    pub(super) origin: Repo,
}

impl Hosting {
    pub(super) fn of(sandbox: &Sandbox, work: &Repo, token: &str) -> Hosting {
        let server = Server::start();
        let origin = sandbox.clone_with(work, "srv/owner/repository.git", &["--bare"]);
        origin.git(&["config", "http.receivepack", "true"]);
        server.serve_git("/owner/", &sandbox.path("srv/owner"));
        server.require_password("/owner/", "x-access-token", token);
        sandbox.set("GITHUB_SERVER_URL", server.url().trim_end_matches('/'));
        sandbox.set("GITHUB_REPOSITORY", "owner/repository");
        sandbox.set("GITHUB_REF_NAME", "main");
        sandbox.set("BRANCH", "localized/main");
        sandbox.set("GITHUB_OUTPUT", sandbox.path("output"));
        Hosting { sandbox: sandbox.clone(), server, origin }
    }

    /// Returns what `actions/checkout` leaves of a branch.
    fn checkout(&self, name: &str, branch: &str) -> Repo {
        let options = ["--branch", branch];
        let checkout = self.sandbox.clone_with(&self.origin, name, &options);
        let url = format!("{}owner/repository", self.server.url());
        checkout.git(&["remote", "set-url", "origin", &url]);
        checkout
    }
}

#[test]
fn the_branch_follows_also_when_two_jobs_run_at_once() {
    let Some(project) = runner() else { return };
    let (sandbox, work) = (&project.sandbox, &project.work);
    work.lock();
    let origin = sandbox.clone_with(work, "origin.git", &["--bare"]);
    let to = origin.path().to_str().unwrap();
    let workflow = ".github/workflows/localize.yml";
    let steps = ["Localize", "Verify", "Push"].map(|name| step(workflow, name));
    let [localize, whole] = [steps[0].clone(), steps.join("\n")];
    sandbox.set("GITHUB_REF_NAME", "main");
    sandbox.set("BRANCH", "localized/main");

    let first = sandbox.clone_of(&origin, "first");
    run(&project, &first, &whole).success();
    let tip = first.id("refs/remotes/origin/localized/main");
    assert_eq!(origin.id("localized/main"), tip);

    // Two pushes to main, two jobs: the later commit is pushed first.
    work.write("README.md", "one");
    work.commit("one");
    work.git(&["push", "--quiet", to, "main"]);
    let [slow, fast] = ["slow", "fast"].map(|name| sandbox.clone_of(&origin, name));
    fast.write("README.md", "two");
    fast.commit("two");
    // A fast job gets in between a slow one and its push.
    run(&project, &fast, &localize).success();
    slow.hook(
        "pre-push",
        &format!(
            "#!/bin/sh\ntest -e \"$0.done\" && exit 0\n: > \"$0.done\"\nunset GIT_DIR\ngit -C '{}' push --quiet origin main localized/main\n",
            fast.path().display()
        ),
    );
    // It does not take the branch back.
    run(&project, &slow, &whole).fails(1).says(expect![[r#"
        ::add-mask::eC1hY2Nlc3MtdG9rZW46
        checked 3 kustomizations with 4 references in commit <0> (HEAD), 2 builds (kustomize/…, network closed): no problems found
        localized the repository on branch localized/main (<1>): 1 file written, 0 references rewritten, 0 removed
          verified: 2 builds verified before, from the same inputs (kustomize/…)
          to look at it: git show --stat <1>
        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <1>
        verified localized/main (<1>): as recorded
        remote: error: cannot lock ref 'refs/heads/localized/main': is at <2> but expected <3>        
        To /home/me/origin.git
         ! [remote rejected] localized/main -> localized/main (failed to update ref)
        error: failed to push some refs to '/home/me/origin.git'
    "#]]);
    assert_eq!(origin.id("localized/main"), fast.id("localized/main"));
    let again = sandbox.clone_of(&origin, "again");
    run(&project, &again, &whole).success().says(expect![[r#"
        ::add-mask::eC1hY2Nlc3MtdG9rZW46
        checked 3 kustomizations with 4 references in commit <0> (HEAD), 2 builds (kustomize/…, network closed): no problems found
        nothing to do: branch localized/main (<1>) already has <0> localized
          verified: 2 builds verified before, from the same inputs (kustomize/…)
        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <1>
        verified localized/main (<1>): as recorded
    "#]]);
    let log = origin.git(&["log", "--first-parent", "--format=%H", "localized/main"]);
    assert!(log.contains(&tip), "{log}");
    // Nothing was forced.
    assert!(log.contains(&fast.id("localized/main")), "{log}");
    assert_eq!(origin.show("localized/main", "README.md"), "two");

    // What does not verify is not pushed.
    let edited =
        steps.join("\ngit commit --quiet --allow-empty -m edited && git update-ref refs/heads/localized/main HEAD\n");
    again.write("README.md", "three");
    again.commit("three");
    let tip = origin.id("localized/main");
    assert_ne!(run(&project, &again, &edited).status, 0);
    assert_eq!(origin.id("localized/main"), tip);

    // With the key that the caller may give.
    let key = std::fs::read_to_string(crate::branch::commits::signed::key(&project)).unwrap();
    assert_ne!(origin.try_git(&["verify-commit", "localized/main"]).status, 0);
    work.git(&["pull", "--quiet", "--rebase", to, "main"]);
    work.write("README.md", "four");
    work.commit("four");
    work.git(&["push", "--quiet", to, "main"]);
    let signed = sandbox.clone_of(&origin, "signed");
    sandbox.set("SIGNING_KEY", key.trim_end());
    sandbox.set("RUNNER_TEMP", sandbox.path("").to_str().unwrap());
    run(&project, &signed, &whole).success();
    origin.git(&["verify-commit", "localized/main"]);
}

#[test]
fn the_branch_follows_any_branch() {
    let Some(project) = runner() else { return };
    let (sandbox, work) = (&project.sandbox, &project.work);
    work.lock();
    work.git(&["branch", "--quiet", "-m", "main", "master"]);
    let origin = sandbox.clone_with(work, "origin.git", &["--bare"]);
    let workflow = called(".github/workflows/localize.yml");
    let by_default = "${{ inputs.branch || format('localized/{0}', github.ref_name) }}";
    assert_eq!(workflow["jobs"]["localize"]["env"]["BRANCH"], by_default);
    let script = ["Localize", "Verify", "Push"].map(|name| step(".github/workflows/localize.yml", name)).join("\n");
    sandbox.set("GITHUB_REF_NAME", "master");
    for branch in ["localized/master", "deployed"] {
        sandbox.set("BRANCH", branch);
        let job = sandbox.clone_of(&origin, &format!("to {branch}").replace('/', " "));
        run(&project, &job, &script).success();
        assert!(!origin.show(branch, "example/base/kustomization.yaml").contains("https:"));
    }
}

#[test]
fn nothing_is_installed_but_what_was_asked_for() {
    // The tool comes from the commit that the caller names, and is installed as the action is: `super::action`. That is
    // done before the caller's repository is there, which removes it again.
    for name in ["localize", "lock", "upstream"] {
        let steps = steps(&called(&format!(".github/workflows/{name}.yml")));
        let [repository, commit] = ["${{ job.workflow_repository }}", "${{ job.workflow_sha }}"];
        let tool = json!({"repository": repository, "ref": commit, "path": "tool", "persist-credentials": false});
        assert_eq!(steps[0]["with"], tool);
        let variables = json!({
            "KL_INSTALL": "auto", "KL_ACTION": "${{ github.workspace }}/tool", "KL_REPOSITORY": repository, "KL_REF": commit
        });
        assert_eq!((&steps[1]["name"], &steps[1]["env"]), (&json!("Install"), &variables));
        assert_eq!(steps[1]["run"], "bash \"$KL_ACTION/hooks/action/install.sh\"");
        assert!(steps[2]["with"]["path"].is_null() && steps[2]["uses"] == steps[0]["uses"], "{name}");
    }
    // They log in in the same way.
    let login = |(name, job): (&str, &str)| {
        let script = step(&format!(".github/workflows/{name}.yml"), job);
        script.split_inclusive("\nfi\n").next().unwrap().to_owned()
    };
    let [localize, lock, upstream] = [("localize", "Localize"), ("lock", "Lock"), ("upstream", "Verify")].map(login);
    assert_eq!((&lock, &upstream), (&localize, &localize));

    // The kustomize that builds.
    let sandbox = Sandbox::new();
    let server = Server::start();
    std::fs::create_dir(sandbox.path("temp")).unwrap();
    sandbox.set("RUNNER_TEMP", sandbox.path("temp"));
    sandbox.set("GITHUB_PATH", sandbox.path("path"));
    sandbox.trust(&server);
    sandbox.set("CURL_CA_BUNDLE", sandbox.path("authority.pem"));
    sandbox.set("https_proxy", server.as_https_proxy());
    let script = step(".github/workflows/localize.yml", "Install kustomize");
    sandbox.script("kustomize", "echo built");
    let mut tar = sandbox.command("tar", &sandbox.path("bin"));
    Running::start(tar.args(["-czf", "../kustomize.tar.gz", "kustomize"])).wait().success();
    let archive = std::fs::read(sandbox.path("kustomize.tar.gz")).unwrap();
    let kustomize = sha256_hex(&archive);
    let release = "https://github.com/kubernetes-sigs/kustomize/releases/download";
    server.route(&format!("{release}/kustomize%2Fv5.8.1/kustomize_v5.8.1_linux_amd64.tar.gz"), Reply::ok(archive));
    let install = |digest: &str| {
        let given = [("VERSION", "5.8.1"), ("SHA256", digest)].map(|(name, value)| (name.to_owned(), value.to_owned()));
        super::step(&sandbox, &sandbox.path(""), &script, given)
    };
    for digest in ["", &"0".repeat(64)] {
        assert_ne!(install(digest).status, 0);
        assert!(!sandbox.path("temp/kustomize/kustomize").exists() && !sandbox.path("path").exists());
    }
    install(&kustomize).success();
    let added = std::fs::read_to_string(sandbox.path("path")).unwrap();
    assert!(Path::new(added.trim_end()).join("kustomize").exists(), "{added}");
}
