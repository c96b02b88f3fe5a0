//! Where requests that an upstream or a redirect chooses may lead, and which hosts get a login.

use std::fs;

use super::{lock, naming, upstream};
use crate::support::{Limit, Output, Reply, Repo, Sandbox, Server, Transcript, config_map, tool};

/// A server that answers for every public host, and also as the loopback service that is out of bounds.
struct World {
    sandbox: Sandbox,
    server: Server,
    work: Repo,
}

impl World {
    /// The user names `https://git.example.com/acme/base`, and that what `named` lists.
    fn new(named: impl Fn(&Server) -> Vec<String>) -> World {
        let sandbox = Sandbox::new();
        let server = Server::start();
        sandbox.send_through(&server);
        server.serve_git("https://git.example.com/", &sandbox.path("srv"));
        server.serve_git("/git/", &sandbox.path("srv"));
        server.route("/secret.yaml", Reply::ok(config_map("secret")));
        upstream(&sandbox, "srv/acme/inside");
        let base = sandbox.repo("srv/acme/base");
        let mut text = String::from("resources:\n");
        for (number, url) in named(&server).iter().enumerate() {
            let root = format!("resources: ['{url}']\nnamePrefix: r{number}-\n");
            base.write(&format!("r{number}/kustomization.yaml"), root);
            text += &format!("- https://git.example.com/acme/base/r{number}?ref=v1\n");
        }
        base.commit("one");
        base.git(&["tag", "v1"]);
        World { work: super::using(&sandbox, &text), sandbox, server }
    }

    /// Returns what was asked of the loopback service.
    fn asked_inside(&self) -> Vec<String> {
        let log = self.server.log().into_iter();
        log.filter(|line| !line.contains("://")).collect()
    }
}

/// Returns the port that a server listens on.
fn port(server: &Server) -> String {
    let url = server.url();
    let (_, port) = url.trim_end_matches('/').rsplit_once(':').unwrap();
    port.to_owned()
}

/// What a public upstream may not lead to, as URLs.
fn inwards(server: &Server) -> Vec<String> {
    let (port, git) = (port(server), server.git_url());
    let mut urls = vec![
        "http://169.254.169.254/latest/meta-data.yaml".to_owned(),
        "http://10.0.0.1/secret.yaml".to_owned(),
        format!("{git}acme/inside.git?ref=v1"),
        format!("http://localhost:{port}/git/acme/inside.git?ref=v1"),
        "ssh://git@127.0.0.1/acme/inside?ref=v1".to_owned(),
        "git@localhost:acme/inside?ref=v1".to_owned(),
        "ssh://git@192.168.0.1/acme/inside?ref=v1".to_owned(),
    ];
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0.0.0.0"] {
        urls.push(format!("http://{host}:{port}/secret.yaml"));
    }
    urls
}

#[test]
fn an_upstream_leads_to_public_addresses() {
    let world = World::new(inwards);
    let output = world.work.run_unchanged(&["app", "--no-verify"]);
    output.fails(2).stderr_has("allow-private: true");
    for url in inwards(&world.server) {
        let shown = url.split("?ref").next().unwrap();
        let says = |line: &str| line.contains(shown) && line.contains("address");
        assert!(output.stderr.lines().any(says), "{shown}: {output:?}");
    }
    assert_eq!(world.asked_inside(), crate::support::NONE);
}

#[test]
fn references_of_the_user_are_fetched_from_anywhere() {
    let world = World::new(|server| {
        vec![format!("{}secret.yaml", server.url()), format!("{}acme/inside.git?ref=v1", server.git_url())]
    });
    let work = &world.work;
    work.run_unchanged(&["app"]).fails(2);
    assert_eq!(world.asked_inside(), crate::support::NONE);
    // What the user names makes the host one of the user's.
    let text = work.read("app/kustomization.yaml");
    let named = format!("resources: ['{}secret.yaml']\n", world.server.url());
    work.write("app/own/kustomization.yaml", named);
    work.write("app/kustomization.yaml", format!("{text}- own\n"));
    work.commit("own");
    work.run(&["app", "--no-verify"]).success();

    work.write("app/kustomization.yaml", text);
    work.write(".kustomize-localize", "allow-private: true\n");
    work.git(&["rm", "-r", "--quiet", "--force", "app/own"]);
    work.commit("allow");
    for branch in [&["app", "--branch=a"][..], &["branch", "--branch=b"]] {
        work.run(&[branch, &["--no-verify"]].concat()).success();
    }
}

#[test]
fn a_redirect_leads_to_public_addresses() {
    let world = World::new(|_| Vec::new());
    let (server, work) = (&world.server, &world.work);
    let here = server.url();
    let refs = "acme/inside.git/info/refs?service=git-upload-pack";
    for (from, to) in [
        ("http://files.example.com/a.yaml", "secret.yaml".to_owned()),
        (&format!("http://old.example.com/{refs}"), format!("git/{refs}")),
    ] {
        server.route(from, Reply::redirect(&format!("{here}{to}")));
    }
    let mut transcript = Transcript::default();
    for url in ["http://files.example.com/a.yaml", "http://old.example.com/acme/inside.git?ref=v1"] {
        naming(&world.sandbox, &[url]);
        transcript.add(work.run_unchanged(&["app", "--no-verify"]).fails(2));
        assert_eq!(world.asked_inside(), crate::support::NONE);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app --no-verify
        error: app/kustomization.yaml:2:3: resources[0]: cannot fetch http://files.example.com/a.yaml: http://127.0.0.1:…/secret.yaml is refused: only an upstream or a redirect names it, and 127.0.0.1 is not a public address
          hint: if this is intended, name the host in a file of your own, or write `allow-private: true` into .kustomize-localize
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {url: 'http://files.example.com/a.yaml', reason: 'TODO'}
        $ git kustomize-localize app --no-verify
        error: app/kustomization.yaml:2:3: resources[0]: http://127.0.0.1:…/git/acme/inside.git is refused: only an upstream or a redirect names it, and 127.0.0.1 is not a public address
          hint: if this is intended, name the host in a file of your own, or write `allow-private: true` into .kustomize-localize
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {url: 'http://old.example.com/acme/inside.git?ref=v1', reason: 'TODO'}
    "#]]);
    // To the same host it is followed: a repository that moved.
    let refs = "info/refs?service=git-upload-pack";
    server.route(
        &format!("https://git.example.com/old/name.git/{refs}"),
        Reply::redirect(&format!("https://git.example.com/acme/inside.git/{refs}")),
    );
    let url = "https://git.example.com/old/name.git";
    naming(&world.sandbox, &[format!("{url}?ref=v1")]);
    work.run(&["app", "--no-verify"]).success();
    let lock = lock(work);
    assert!(lock.contains(&format!("url: {url}\n")), "{lock}");
}

#[test]
fn only_hosts_that_the_user_names_get_a_login() {
    let hosts = ["files", "code"].map(|name| format!("https://{name}.other.example/"));
    let urls = [format!("{}a.yaml", hosts[0]), format!("{}acme/inside.git?ref=v1", hosts[1])];
    let world = World::new(|_| urls.to_vec());
    let (sandbox, server) = (&world.sandbox, &world.server);
    server.serve_git(&hosts[1], &sandbox.path("srv"));
    server.route(&urls[0], Reply::ok(config_map("file")));
    for host in &hosts {
        server.require_password(host, "u", "p");
    }
    sandbox.script("git-credential-any", "test \"$1\" = get && printf 'username=u\\npassword=p\\n'");
    let each = hosts.iter().map(|host| {
        let host = host.trim_start_matches("https://").trim_end_matches('/');
        format!("machine {host} login u password p\n")
    });
    let each: String = each.collect();
    for helper in [false, true] {
        if helper {
            sandbox.configure("credential.helper", "any");
            hosts.iter().for_each(|host| sandbox.configure(&format!("credential.{host}.helper"), "any"));
        }
        for (netrc, sent) in [("default login u password p\n", false), (&each, true)] {
            fs::write(sandbox.path("home/.netrc"), netrc).unwrap();
            let _ = fs::remove_dir_all(sandbox.path("cache/git-kustomize-localize"));
            server.forget();
            world.work.run(&["app", "--no-verify", "--dry-run"]).fails(2);
            for host in &hosts {
                let requests = server.requests();
                let mut of_host = requests.iter().filter(|it| it.url().starts_with(host));
                let is_sent = of_host.any(|request| request.header("authorization").is_some());
                // Only git reads it, for what it lists.
                let sent = sent && *host == hosts[1];
                assert_eq!(is_sent, sent, "{host} {netrc:?} {helper}");
            }
        }
    }
}

#[test]
fn only_hosts_that_the_user_names_get_headers_and_cookies() {
    let host = "https://code.other.example/";
    let url = format!("{host}acme/inside.git?ref=v1");
    let world = World::new(|_| vec![url.clone()]);
    let (sandbox, server) = (&world.sandbox, &world.server);
    server.serve_git(host, &sandbox.path("srv"));
    fs::write(sandbox.path("cookies"), "code.other.example\tFALSE\t/\tTRUE\t0\tname\tcookie\n").unwrap();
    let cookies = sandbox.path("cookies").display().to_string();
    for place in ["http".to_owned(), format!("http.{host}"), format!("http.{host}acme/")] {
        sandbox.configure(&format!("{place}.extraHeader"), "X-Secret: header");
        sandbox.configure(&format!("{place}.cookieFile"), &cookies);
    }
    let sent = || {
        let _ = fs::remove_dir_all(sandbox.path("cache/git-kustomize-localize"));
        server.forget();
        world.work.run(&["app", "--no-verify", "--dry-run"]);
        let requests = server.requests();
        let of_host: Vec<_> =
            requests.iter().filter(|it| it.method != "CONNECT" && it.url().starts_with(host)).collect();
        assert!(!of_host.is_empty());
        ["x-secret", "cookie"].map(|name| of_host.iter().any(|request| request.header(name).is_some()))
    };
    assert_eq!(sent(), [false, false]);
    let text = world.work.read("app/kustomization.yaml");
    world.work.write("app/kustomization.yaml", format!("{text}- {url}\n"));
    world.work.commit("name it");
    assert_eq!(sent(), [true, true]);
}

/// Stands in for helm: writes down its arguments, and where it would find logins.
const HELM: &str = r#"
for last; do :; done
echo "$* registry=$HELM_REGISTRY_CONFIG docker=$DOCKER_CONFIG" >>"$HELM_LOG"
echo "Error: $last not found" >&2
exit 1"#;

#[test]
fn charts_of_an_upstream_lead_to_public_addresses() {
    let world = World::new(|_| Vec::new());
    let port = port(&world.server);
    let here =
        ["http://127.0.0.1", "https://localhost", "http://2130706433"].map(|host| format!("{host}:{port}/charts"));
    let inside = [
        &*here[0],
        &*here[1],
        "oci://localhost/charts",
        "oci://[::1]:5000/charts",
        "oci://10.1.2.3/charts",
        &*here[2],
        "https://169.254.169.254/charts",
    ];
    let public = ["https://charts.example.com/stable", "oci://registry.example.com/charts"];
    let all = [&inside[..], &public].concat();
    let (sandbox, work) = (&world.sandbox, &world.work);
    let log = sandbox.path("helm.log");
    sandbox.script("helm", HELM);
    sandbox.set("HELM_LOG", &log);
    let logins = sandbox.path("home").display().to_string();
    sandbox.set("HELM_REGISTRY_CONFIG", sandbox.path("home/logins"));
    sandbox.set("DOCKER_CONFIG", sandbox.path("home/docker"));
    sandbox.script("git-credential-any", "test \"$1\" = get && printf 'username=u\\npassword=p\\n'");
    sandbox.configure("credential.helper", "any");
    for prefix in ["/charts/", "https://169.254.169.254/", "https://charts.example.com/"] {
        world.server.require_password(prefix, "u", "p");
    }
    let base = Repo::new(sandbox, sandbox.path("srv/acme/base"));
    let mut theirs = String::from("resources:\n");
    let mut ours = String::from("helmCharts:\n");
    for (number, repo) in all.iter().enumerate() {
        let chart = format!("- {{name: web{number}, repo: '{repo}/{number}', version: 1.2.3}}\n");
        let root = format!("helmCharts:\n{chart}");
        base.write(&format!("c{number}/kustomization.yaml"), root);
        theirs += &format!("- https://git.example.com/acme/base/c{number}?ref=v1\n");
        ours += &chart;
    }
    base.commit("charts");
    base.git(&["tag", "--force", "v1"]);
    // Returns which repositories are refused, and which of them were asked, with logins or without.
    let run = |text: &str| {
        super::using(sandbox, text);
        fs::write(&log, "").unwrap();
        world.server.forget();
        let args = ["app", "--no-verify"];
        let output = work.run_unchanged(&args);
        output.fails(2);
        let asked = fs::read_to_string(&log).unwrap();
        let requests = world.server.requests();
        let asked_for = |with: bool| -> Vec<&str> {
            let is_asked = |&(number, repo): &(usize, &&str)| {
                let mut of_helm = asked.lines().filter(|line| line.contains(&format!("{repo}/{number}/")));
                let mut of_server = requests.iter().filter(|it| it.url().ends_with(&format!("/{number}/index.yaml")));
                // The first request carries no login.
                of_helm.any(|line| line.contains(&logins) == with)
                    || of_server.next_back().is_some_and(|last| last.header("authorization").is_some() == with)
            };
            all.iter().enumerate().filter(is_asked).map(|(_, repo)| *repo).collect()
        };
        let is_refused = |&(number, _): &(usize, &&str)| {
            let path = format!("/charts/{number}");
            let said = |it: &str| it.contains(&path) && it.contains("only an upstream or a redirect names it");
            output.stderr.split("error: ").any(said)
        };
        let refused: Vec<&str> = all.iter().enumerate().filter(is_refused).map(|(_, repo)| *repo).collect();
        (refused, asked_for(false), asked_for(true))
    };
    work.write(".kustomize-localize", "helm: true\n");
    assert_eq!(run(&theirs), (inside.to_vec(), public.to_vec(), vec![]));
    // The user may ask for it, with the user's logins.
    assert_eq!(run(&format!("{theirs}{ours}")), (vec![], vec![], all.clone()));
    // Or say that it may be asked for, without them.
    work.write(".kustomize-localize", "allow-private: true\nhelm: true\n");
    assert_eq!(run(&theirs), (vec![], all.clone(), vec![]));
}

/// An upstream names a URL. Returns what git was started with for it.
fn pinned(url: &str) -> (String, Output) {
    let (sandbox, _server, base, named) = super::served();
    let text = format!("resources: ['{url}']\n");
    base.write("kustomization.yaml", text);
    base.commit("two");
    let seen = sandbox.path("seen");
    for (program, body) in [("git", "exec \"$GIT\" \"$@\""), ("ssh", "exit 255")] {
        let body = format!("{{ echo \"$0 $*\"; env | grep ^GIT_CONFIG; }} >> '{}'; {body}", seen.display());
        sandbox.script(program, &body);
    }
    sandbox.set("GIT", tool("git").unwrap());
    let output = naming(&sandbox, &[named]).run(&["lock"]);
    (fs::read_to_string(seen).unwrap(), output)
}

#[test]
fn a_name_that_only_a_proxy_may_know_leads_nowhere_else() {
    let (seen, output) = pinned("http://no.such.invalid/acme/inside.git?ref=main");
    output.fails(1).says(expect![[r#"
        nothing was written
        error: http://127.0.0.1:…/git/acme/base.git: kustomization.yaml:1:13: resources[0]: could not fetch http://no.such.invalid/acme/inside.git: Failed to connect to no.such.invalid
          reached from app/kustomization.yaml:2:3
          hint: check the host's name, the network and the proxy (`https_proxy`)
        error: 1 reference could not be locked
    "#]]);
    assert!(seen.contains("=no.such.invalid:80:255.255.255.255 "), "{seen}");
    let (seen, output) = pinned("ssh://git@no.such.invalid/acme/inside?ref=main");
    output.fails(1);
    assert!(!seen.contains("bin/ssh"), "{seen}");
}

/// A server that limits us gets the user's login only where the user names it.
#[test]
fn only_hosts_that_the_user_names_get_a_login_when_they_limit() {
    let host = "https://code.other.example/";
    let url = format!("{host}acme/inside.git?ref=v1");
    let world = World::new(|_| vec![url.clone()]);
    let (sandbox, server) = (&world.sandbox, &world.server);
    server.serve_git(host, &sandbox.path("srv"));
    sandbox.script("git-credential-any", "test \"$1\" = get && printf 'username=u\\npassword=p\\n'");
    sandbox.configure("credential.helper", "any");
    let run = || {
        let _ = fs::remove_dir_all(sandbox.path("cache"));
        server.forget();
        server.limit(host, Limit::TooMany(Some(3600)), |_| true);
        let output = world.work.run(&["app", "--no-verify", "--dry-run"]);
        let requests = server.requests();
        let sent = requests.iter().filter(|it| it.header("authorization").is_some()).map(|it| it.url());
        (sent.collect::<Vec<_>>(), output)
    };
    let (sent, output) = run();
    output.fails(2).says(expect![[r#"
        error: https://git.example.com/acme/base?ref=v1: r0/kustomization.yaml:1:13: resources[0]: could not fetch https://code.other.example/acme/inside.git: code.other.example is rate limiting: it answered 429; retry after 3600 s
          reached from app/kustomization.yaml:2:3
          hint: try again later, or log in for a higher limit: store a login for code.other.example in git's credential helper, or set git's `http.https://code.other.example/.extraHeader`
    "#]]);
    assert_eq!(sent, crate::support::NONE);
    let text = world.work.read("app/kustomization.yaml");
    world.work.write("app/kustomization.yaml", format!("{text}- {url}\n"));
    world.work.commit("name it");
    let (sent, output) = run();
    output.success();
    assert!(!sent.is_empty() && sent.iter().all(|url| url.starts_with(host)), "{sent:?}");
}
