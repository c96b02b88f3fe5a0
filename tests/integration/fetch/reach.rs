//! Where requests that an upstream or a redirect chooses may lead, and which hosts get a login.

use std::fs;

use crate::support::{Output, Reply, Repo, Sandbox, Server};

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
}

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
        let inside = sandbox.repo("srv/acme/inside");
        inside.write("kustomization.yaml", "resources: [cm.yaml]\n");
        inside.write("cm.yaml", config_map("inside"));
        inside.commit("one");
        inside.git(&["tag", "v1"]);
        let base = sandbox.repo("srv/acme/base");
        let mut text = String::from("resources:\n");
        for (number, url) in named(&server).iter().enumerate() {
            let root = format!("r{number}/kustomization.yaml");
            base.write(
                &root,
                format!("resources: ['{url}']\nnamePrefix: r{number}-\n"),
            );
            text += &format!("- https://git.example.com/acme/base/r{number}?ref=v1\n");
        }
        base.commit("one");
        base.git(&["tag", "v1"]);
        let work = sandbox.repo("work");
        work.write("app/kustomization.yaml", text);
        work.commit("source");
        World {
            sandbox,
            server,
            work,
        }
    }

    /// Returns what was asked of the loopback service.
    fn asked_inside(&self) -> Vec<String> {
        let log = self.server.log().into_iter();
        log.filter(|line| !line.contains("://")).collect()
    }
}

/// What a public upstream may not lead to, as URLs.
fn inwards(server: &Server) -> Vec<String> {
    let port = server.url();
    let port = port
        .trim_end_matches('/')
        .rsplit(':')
        .next()
        .unwrap()
        .to_owned();
    let git = server.git_url();
    [
        format!("http://127.0.0.1:{port}/secret.yaml"),
        format!("http://localhost:{port}/secret.yaml"),
        format!("http://[::ffff:127.0.0.1]:{port}/secret.yaml"),
        format!("http://2130706433:{port}/secret.yaml"),
        format!("http://0.0.0.0:{port}/secret.yaml"),
        "http://169.254.169.254/latest/meta-data.yaml".to_owned(),
        "http://10.0.0.1/secret.yaml".to_owned(),
        format!("{git}acme/inside.git?ref=v1"),
        format!("http://localhost:{port}/git/acme/inside.git?ref=v1"),
        "ssh://git@127.0.0.1/acme/inside?ref=v1".to_owned(),
        "git@localhost:acme/inside?ref=v1".to_owned(),
        "ssh://git@192.168.0.1/acme/inside?ref=v1".to_owned(),
    ]
    .to_vec()
}

#[test]
fn an_upstream_leads_no_further_inwards() {
    let world = World::new(inwards);
    let output = world.work.run_unchanged(&["app", "--no-verify"]);
    output.fails(2).stderr_has("allow-private: true");
    for url in inwards(&world.server) {
        let shown = url.split("?ref").next().unwrap();
        let host = shown.split("//").last().unwrap().split('/').next().unwrap();
        let lines = || output.stderr.lines();
        assert!(
            lines().any(|line| line.contains(shown) && line.contains("address")),
            "{host}: {}",
            output.stderr
        );
    }
    assert_eq!(world.asked_inside(), [""; 0]);
}

#[test]
fn references_of_the_user_are_fetched_from_anywhere() {
    let inside = |server: &Server| {
        vec![
            format!("{}secret.yaml", server.url()),
            format!("{}acme/inside.git?ref=v1", server.git_url()),
        ]
    };
    let world = World::new(inside);
    world.work.run_unchanged(&["app"]).fails(2);
    assert_eq!(world.asked_inside(), [""; 0]);
    world
        .work
        .write(".kustomize-localize", "allow-private: true\n");
    world.work.commit("allow");
    for arguments in [
        &["app", "--no-verify"][..],
        &["--in-place", "--no-verify", "--branch=b"],
    ] {
        world.work.run(arguments).success();
    }

    let world = World::new(inside);
    let named = format!("resources: ['{}secret.yaml']\n", world.server.url());
    world.work.write("app/own/kustomization.yaml", named);
    let text = world.work.read("app/kustomization.yaml");
    world
        .work
        .write("app/kustomization.yaml", format!("{text}- own\n"));
    world.work.commit("own");
    world.work.run(&["app", "--no-verify"]).success();
}

#[test]
fn a_redirect_leads_no_further_inwards() {
    let world = World::new(|_| Vec::new());
    let (server, work) = (&world.server, &world.work);
    let here = server.url();
    server.route(
        "http://files.example.com/a.yaml",
        Reply::redirect(&format!("{here}secret.yaml")),
    );
    server.route(
        "http://old.example.com/acme/inside.git/info/refs?service=git-upload-pack",
        Reply::redirect(&format!(
            "{here}git/acme/inside.git/info/refs?service=git-upload-pack"
        )),
    );
    for url in [
        "http://files.example.com/a.yaml",
        "http://old.example.com/acme/inside.git?ref=v1",
    ] {
        work.write("app/kustomization.yaml", format!("resources: ['{url}']\n"));
        work.commit("source");
        work.run_unchanged(&["app", "--no-verify"])
            .fails(2)
            .stderr_has("has a loopback or link-local address");
        assert_eq!(world.asked_inside(), [""; 0]);
    }
}

#[test]
fn a_repository_that_moved_is_followed() {
    let world = World::new(|_| Vec::new());
    world.server.route(
        "https://git.example.com/old/name.git/info/refs?service=git-upload-pack",
        Reply::redirect(
            "https://git.example.com/acme/inside.git/info/refs?service=git-upload-pack",
        ),
    );
    let url = "https://git.example.com/old/name.git?ref=v1";
    world
        .work
        .write("app/kustomization.yaml", format!("resources: ['{url}']\n"));
    world.work.commit("source");
    world.work.run(&["app", "--no-verify"]).success();
    let lock = world
        .work
        .show("localized/main", "localized-app/kustomize-localize.lock");
    assert!(
        lock.contains("url: https://git.example.com/old/name.git\n"),
        "{lock}"
    );
}

#[test]
fn only_hosts_that_the_user_or_netrc_names_get_a_login() {
    for (netrc, sent) in [
        ("default login u password p\n", false),
        (
            "machine files.other.example login u password p\nmachine code.other.example login u password p\n",
            true,
        ),
    ] {
        let world = World::new(|_| {
            vec![
                "https://files.other.example/a.yaml".to_owned(),
                "https://code.other.example/acme/inside.git?ref=v1".to_owned(),
            ]
        });
        let (sandbox, server) = (&world.sandbox, &world.server);
        server.serve_git("https://code.other.example/", &sandbox.path("srv"));
        server.route(
            "https://files.other.example/a.yaml",
            Reply::ok(config_map("file")),
        );
        server.require_password("https://files.other.example/", "u", "p");
        server.require_password("https://code.other.example/", "u", "p");
        fs::write(sandbox.path("home/.netrc"), netrc).unwrap();
        sandbox.script(
            "git-credential-any",
            "test \"$1\" = get && printf 'username=u\\npassword=p\\n'",
        );
        let login = |url: &str| {
            server.requests().iter().any(|request| {
                request.url().starts_with(url) && request.header("authorization").is_some()
            })
        };
        for helper in [false, true] {
            if helper {
                sandbox.configure("credential.helper", "any");
            }
            let output = world.work.run(&["app", "--no-verify", "--dry-run"]);
            assert_eq!(output.status, if sent { 0 } else { 2 }, "{}", output.stderr);
            for host in [
                "https://files.other.example/",
                "https://code.other.example/",
            ] {
                assert_eq!(login(host), sent, "{host} {netrc:?} {helper}");
            }
        }
    }
}

/// Stands in for helm: writes down its arguments, and where it would find logins.
const HELM: &str = r#"
for last; do :; done
echo "$* registry=$HELM_REGISTRY_CONFIG docker=$DOCKER_CONFIG" >>"$HELM_LOG"
echo "Error: $last not found" >&2
exit 1"#;

#[test]
fn charts_of_an_upstream_lead_no_further_inwards() {
    for (repo, refused) in [
        ("http://127.0.0.1:8080/charts", true),
        ("https://localhost/charts", true),
        ("oci://localhost/charts", true),
        ("oci://[::1]:5000/charts", true),
        ("oci://10.1.2.3/charts", true),
        ("http://2130706433/charts", true),
        ("https://169.254.169.254/charts", true),
        ("https://charts.example.com/stable", false),
        ("oci://registry.example.com/charts", false),
    ] {
        let world = World::new(|_| Vec::new());
        let sandbox = &world.sandbox;
        let log = sandbox.path("helm.log");
        sandbox.script("helm", HELM);
        sandbox.set("HELM_LOG", &log);
        for (name, file) in [
            ("HELM_REGISTRY_CONFIG", "logins"),
            ("DOCKER_CONFIG", "docker"),
        ] {
            sandbox.set(name, sandbox.path("home").join(file));
        }
        let logins = sandbox.path("home").display().to_string();
        let asked = || fs::read_to_string(&log).unwrap_or_default();
        let chart = format!("helmCharts:\n- {{name: web, repo: '{repo}', version: 1.2.3}}\n");
        let base = Repo::new(sandbox, sandbox.path("srv/acme/base"));
        base.write("c/kustomization.yaml", &chart);
        base.commit("chart");
        base.git(&["tag", "--force", "v1"]);
        let named = "resources:\n- https://git.example.com/acme/base/c?ref=v1\n";
        world.work.write("app/kustomization.yaml", named);
        world.work.commit("source");
        let run = |args: &[&str]| {
            let all = [&["app", "--no-verify", "--helm"], args].concat();
            world.work.run_unchanged(&all).fails(2).stderr.clone()
        };
        let said = run(&[]);
        assert_eq!(
            said.contains("an upstream names it"),
            refused,
            "{repo}: {said}"
        );
        assert_eq!(asked().is_empty(), refused, "{repo}: {}", asked());
        assert!(!asked().contains(&logins), "{repo}: {}", asked());

        // The user may ask for it, with the user's logins.
        world
            .work
            .write("app/kustomization.yaml", format!("{named}{chart}"));
        world.work.commit("own");
        fs::write(&log, "").unwrap();
        let said = run(&[]);
        assert!(!said.contains("an upstream names it"), "{repo}: {said}");
        assert!(asked().contains(&logins), "{repo}: {}", asked());
        // Or say that it may be asked for, without them.
        world.work.write("app/kustomization.yaml", named);
        world
            .work
            .write(".kustomize-localize", "allow-private: true\n");
        world.work.commit("allow");
        fs::write(&log, "").unwrap();
        run(&[]);
        assert!(
            !asked().is_empty() && !asked().contains(&logins),
            "{repo}: {}",
            asked()
        );
    }
}

/// A server on this machine names it by a name, which could stand for another address when git asks for it again. Returns
/// what git was started with, and the port of the server.
fn pinned(url: impl Fn(&Server) -> String, config: &str) -> (String, String, Output) {
    let sandbox = Sandbox::new();
    let server = Server::start();
    server.serve_git("/git/", &sandbox.path("srv"));
    let inside = sandbox.repo("srv/acme/inside");
    inside.write("kustomization.yaml", "resources: [cm.yaml]\n");
    inside.write("cm.yaml", config_map("inside"));
    inside.commit("one");
    let base = sandbox.repo("srv/acme/base");
    base.write(
        "kustomization.yaml",
        format!("resources: ['{}']\n", url(&server)),
    );
    base.commit("one");
    let seen = sandbox.path("seen");
    for (program, body) in [("git", "exec \"$GIT\" \"$@\""), ("ssh", "exit 255")] {
        let body = format!(
            "{{ echo \"$0 $*\"; env | grep ^GIT_CONFIG; }} >> '{}'; {body}",
            seen.display()
        );
        sandbox.script(program, &body);
    }
    sandbox.set("GIT", crate::support::tool("git").unwrap());
    let work = sandbox.repo("work");
    work.write(".kustomize-localize", config);
    work.write(
        "kustomization.yaml",
        format!("resources: ['{}acme/base.git']\n", server.git_url()),
    );
    work.commit("source");
    let output = work.run(&["lock"]);
    let port = server
        .git_url()
        .split(':')
        .nth(2)
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    (fs::read_to_string(seen).unwrap(), port, output)
}

#[test]
fn git_connects_to_the_address_that_was_judged() {
    let by_name = |server: &Server| {
        let url = server.git_url().replace("127.0.0.1", "LocalHost");
        format!("{url}acme/inside.git?ref=main")
    };
    let (seen, port, output) = pinned(by_name, "");
    output.success();
    let entry = seen
        .lines()
        .find_map(|line| line.split_once(&format!("=localhost:{port}:")));
    let (_, addresses) = entry.unwrap_or_else(|| panic!("{seen}"));
    let addresses: Vec<std::net::IpAddr> = addresses
        .split(',')
        .map(|one| one.parse().unwrap())
        .collect();
    assert!(!addresses.is_empty() && addresses.iter().all(|one| one.is_loopback()));
    // Who allows every address leaves it to git.
    let (seen, _, output) = pinned(by_name, "allow-private: true\n");
    output.success();
    assert!(!seen.to_lowercase().contains("curloptresolve"), "{seen}");
}

#[test]
fn a_name_that_only_a_proxy_may_know_leads_nowhere_else() {
    let unknown = |_: &Server| "http://no.such.invalid/acme/inside.git?ref=main".to_owned();
    let (seen, _, output) = pinned(unknown, "");
    output.fails(1).stderr_has("no.such.invalid");
    assert!(
        seen.contains("=no.such.invalid:80:255.255.255.255\n"),
        "{seen}"
    );
    let unknown = |_: &Server| "ssh://git@no.such.invalid/acme/inside?ref=main".to_owned();
    let (seen, _, output) = pinned(unknown, "");
    output.fails(1).stderr_has("where it lies cannot be told");
    assert!(!seen.contains("bin/ssh"), "{seen}");
}

#[test]
fn ssh_connects_to_the_address_that_was_judged() {
    for (url, alias) in [
        ("ssh://git@localhost/acme/inside?ref=main", "localhost"),
        ("git@localhost:acme/inside?ref=main", "localhost"),
        (
            "ssh://git@localhost:2222/acme/inside?ref=main",
            "[localhost]:2222",
        ),
    ] {
        let (seen, _, output) = pinned(|_| url.to_owned(), "");
        output.fails(1);
        let ssh = seen
            .lines()
            .find(|line| line.contains("bin/ssh "))
            .unwrap_or_else(|| panic!("{seen}"));
        let judged = ["HostName=127.0.0.1", "HostName=::1"];
        assert!(
            judged.iter().any(|one| ssh.contains(&format!("-o {one} "))),
            "{ssh}"
        );
        assert!(ssh.contains(&format!("-o HostKeyAlias={alias} ")), "{ssh}");
        let (seen, _, _) = pinned(|_| url.to_owned(), "allow-private: true\n");
        assert!(
            seen.contains("bin/ssh ") && !seen.contains("HostName="),
            "{seen}"
        );
    }
}
