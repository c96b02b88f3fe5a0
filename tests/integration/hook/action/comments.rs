//! The comment of the action on a pull request.

use super::*;

/// A runner for the pull request 7, and the API of GitHub.
struct Commented {
    runner: Runner,
    api: Server,
}

const HEAD_REPOSITORY: &str = "github.event.pull_request.head.repo.full_name";
const COMMENTS: &str = "/api/repos/acme/fleet/issues/7/comments";

impl Commented {
    /// Returns one whose change differs; none without kustomize.
    fn new() -> Option<Commented> {
        let files = [("app/kustomization.yaml", "resources: [map.yaml]\n"), ("app/map.yaml", &*config("new"))];
        let (mut runner, _) = Runner::pulled(&files);
        let kustomize = Kustomize::find()?;
        let api = Server::start();
        runner.sandbox.offer("kustomize", kustomize.program());
        runner.sandbox.set("GITHUB_API_URL", format!("{}api", api.url()));
        runner.sandbox.set("GITHUB_REPOSITORY", "acme/fleet");
        runner.set("inputs.comment", "true");
        runner.set("github.event.pull_request.number", "7");
        runner.set(HEAD_REPOSITORY, "acme/fleet");
        runner.set("github.token", "s3cr3t");
        api.route(COMMENTS, Reply::status(201));
        Some(Commented { runner, api })
    }

    /// Lets a page of the comments be so many of somebody, then these by (id, login, body).
    fn has(&self, page: u32, others: usize, comments: &[(u32, &str, &str)]) {
        let others = std::iter::repeat_n(&(1, "somebody", "looks good"), others);
        let all =
            others.chain(comments).map(|(id, login, body)| json!({"id": id, "user": {"login": login}, "body": body}));
        let all = Reply::ok(json!(all.collect::<Vec<_>>()).to_string());
        self.api.route(&format!("{COMMENTS}?per_page=100&page={page}"), all);
    }

    /// Runs the action; returns how it ended, and what was sent to the API: method, path and body.
    fn run(&mut self) -> (i32, Vec<(String, String, String)>) {
        self.api.forget();
        let output = self.runner.run();
        output.lacks("s3cr3t");
        let requests = self.api.requests().into_iter();
        let sent = requests.filter(|request| request.method != "GET").map(|request| {
            assert_eq!(request.header("authorization"), Some("Bearer s3cr3t"));
            let body: serde_json::Value = serde_json::from_str(&request.text()).unwrap();
            (request.method.clone(), request.url(), body["body"].as_str().unwrap().to_owned())
        });
        (output.status, sent.collect())
    }
}

#[test]
fn a_pull_request_has_one_comment() {
    let Some(mut commented) = Commented::new() else { return };
    let bot = "github-actions[bot]";
    commented.has(1, 0, &[]);
    let (status, sent) = commented.run();
    let [(method, url, body)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((status, &method[..], &url[..]), (0, "POST", COMMENTS));
    assert_eq!(*body, commented.runner.file("kustomize-localize-diff.md"));
    assert!(body.contains("ConfigMap"), "{body}");

    // Others quote it, or pretend to be it.
    let marker = body.lines().next().unwrap();
    let quoted = format!("> {body}");
    commented.has(1, 97, &[(2, "mallory", body), (3, bot, &quoted), (4, "github-actions", body)]);
    commented.has(2, 0, &[(5, bot, "about something else"), (6, bot, marker), (8, bot, marker)]);
    let patched = "/api/repos/acme/fleet/issues/comments/6";
    commented.api.route(patched, Reply::ok("{}"));
    let (status, sent) = commented.run();
    let [(method, url, again)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((status, &method[..], &url[..], again), (0, "PATCH", patched, body));

    // A check that fails has its comment, too.
    commented.runner.set("inputs.paths", "nowhere");
    let (status, sent) = commented.run();
    assert_eq!((status, sent.len()), (2, 1), "{sent:?}");
    let expected = format!("{marker}\n**what this change deploys is not known**: see the log of the check\n");
    assert_eq!(sent[0].2, expected);
    // That alone is no comment, and neither is what was not asked for.
    commented.has(1, 0, &[]);
    assert_eq!(commented.run(), (2, Vec::new()));
    commented.runner.set("inputs.paths", "");
    commented.runner.set("inputs.diff", "false");
    assert_eq!(commented.run(), (0, Vec::new()));
}

#[test]
fn a_comment_that_cannot_be_written_is_a_warning() {
    let Some(mut commented) = Commented::new() else { return };
    let last = |commented: &mut Commented| {
        let action = yaml("action.yml");
        let step = action["runs"]["steps"].as_sequence().unwrap().last().unwrap().clone();
        commented.runner.step(&step)
    };
    let first_page = format!("{COMMENTS}?per_page=100&page=1");
    let refused = Reply::status(403).body("Resource not\naccessible by integration");
    commented.api.route(&first_page, refused.clone());
    assert_eq!(commented.run(), (0, Vec::new()));
    last(&mut commented).success().says(expect![[r#"
        ::warning title=git kustomize-localize::the comments cannot be read: Resource not%0Aaccessible by integration
        curl: (22) The requested URL returned error: 403
    "#]]);
    commented.has(1, 0, &[]);
    commented.api.route(COMMENTS, refused);
    last(&mut commented).success().says(expect![[r#"
        ::warning title=git kustomize-localize::the comment cannot be written, which needs pull-requests: write, or the scope api: Resource not%0Aaccessible by integration
        curl: (22) The requested URL returned error: 403
    "#]]);
    // What is busy is asked again.
    commented.api.route_in_turn(&first_page, [Reply::status(502), Reply::ok("[]")]);
    commented.api.route(COMMENTS, Reply::status(201));
    last(&mut commented).success().says(expect![[r#"
        curl: (22) The requested URL returned error: 502
    "#]]);
    // No comment where there is no pull request, or the token may not write: not in the repository that is forked, and
    // where the fork is gone; but in a fork of its own.
    for (repository, number, count) in
        [("other/fleet", "7", 0), ("", "7", 0), ("acme/fleet", "", 0), ("acme/fleet", "7", 1)]
    {
        commented.runner.set(HEAD_REPOSITORY, repository);
        commented.runner.set("github.event.pull_request.head.repo.fork", "true");
        commented.runner.set("github.event.pull_request.number", number);
        commented.api.forget();
        last(&mut commented).success();
        let sent = commented.api.requests().iter().filter(|request| request.method == "POST").count();
        assert_eq!(sent, count, "{repository} {number}");
    }
    commented.runner.set("inputs.comment", "false");
    assert_eq!(commented.run(), (0, Vec::new()));
}
