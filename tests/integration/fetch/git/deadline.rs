//! Servers that say nothing, and interrupts.

use super::*;

/// The address of a server that accepts connections and never answers.
fn silent() -> (std::net::TcpListener, String) {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/acme/base.git", listener.local_addr().unwrap());
    (listener, url)
}

/// Returns the processes of the sandbox that still run.
fn alive(sandbox: &Sandbox) -> Vec<String> {
    let marker = format!("XDG_CACHE_HOME={}", sandbox.path("cache").display());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if String::from_utf8_lossy(&environment).contains(&marker) {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    found
}

#[test]
fn a_server_that_says_nothing_ends_at_the_deadline() {
    let sandbox = Sandbox::new();
    let (_listener, url) = silent();
    let repo = naming(&sandbox, &[format!("{url}?ref=v1&timeout=1")]);
    let started = Instant::now();
    repo.run_unchanged(&["app"])
        .fails(2)
        .says(expect![[r#"
            error: app/kustomization.yaml:2:3: resources[0]: http://127.0.0.1:…/acme/base.git: `git` did not finish within 1 s
              hint: to allow more time for a URL: add `timeout=SECONDS` to its query
        "#]]);
    lasts_at_most(started, 40);
    is_over(&sandbox);
}

/// Asserts that nothing runs any more, and that the cache and the directory for temporary files hold nothing of it.
#[track_caller]
fn is_over(sandbox: &Sandbox) {
    let git = sandbox.path("cache/git-kustomize-localize/git");
    let urls = git.read_dir().into_iter().flatten().flatten();
    let mut halves = urls.flat_map(|url| url.path().read_dir().unwrap());
    assert!(halves.next().is_none());
    assert_eq!(sandbox.leftovers(), crate::support::NONE);
    assert_eq!(alive(sandbox), crate::support::NONE);
}

#[test]
fn an_interrupt_ends_a_fetch_at_once() {
    let sandbox = Sandbox::new();
    let (listener, url) = silent();
    // More than are fetched side by side: none may be started when another is ended.
    let url = |number| format!("{}?ref=v1", url.replace("base", &format!("base-{number}")));
    let repo = naming(&sandbox, &(0..20).map(url).collect::<Vec<_>>());
    let before = repo.state();
    let running = repo.start(&["app"]);
    let clients: Vec<_> = (0..3).map(|_| listener.accept().unwrap()).collect();
    let started = Instant::now();
    running.interrupt();
    running.wait().fails(130);
    lasts_at_most(started, 20);
    drop(clients);
    before.assert_same(&repo.state());
    is_over(&sandbox);
}
