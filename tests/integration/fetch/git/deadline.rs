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
    for (query, args) in [
        ("&timeout=1", [].as_slice()),
        ("&timeout=50", &["--timeout", "1"]),
    ] {
        let repo = naming(&sandbox, &[&format!("{url}?ref=v1{query}")]);
        let before = repo.state();
        let started = Instant::now();
        let output = repo.run(&[["app"].as_slice(), args].concat());
        output
            .fails(2)
            .stderr_has(&format!("{url} did not answer within 1 s"));
        output.stderr_has("hint: give it more time with `--timeout SECONDS`");
        lasts_at_most(started, 40);
        before.assert_same(&repo.state());
        assert_eq!(alive(&sandbox), [""; 0]);
        assert_eq!(half_repositories(&sandbox), [""; 0]);
    }
}

fn half_repositories(sandbox: &Sandbox) -> Vec<String> {
    let git = sandbox.path("cache/git-kustomize-localize/git");
    let urls = git.read_dir().into_iter().flatten().flatten();
    urls.flat_map(|url| url.path().read_dir().unwrap().flatten())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

#[test]
fn an_interrupt_ends_a_fetch_at_once() {
    let sandbox = Sandbox::new();
    let (listener, url) = silent();
    // More than are fetched side by side: none may be started when another is ended.
    let references: Vec<String> = (0..20)
        .map(|number| format!("{}?ref=v1", url.replace("base", &format!("base-{number}"))))
        .collect();
    let repo = naming(
        &sandbox,
        &references.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    let before = repo.state();
    let running = repo.start(&["app"]);
    let clients: Vec<_> = (0..3).map(|_| listener.accept().unwrap()).collect();
    let started = Instant::now();
    running.interrupt();
    let output = running.wait();
    output.fails(130);
    lasts_at_most(started, 20);
    drop(clients);
    before.assert_same(&repo.state());
    assert_eq!(half_repositories(&sandbox), [""; 0]);
    assert_eq!(sandbox.leftovers(), [""; 0]);
    assert_eq!(alive(&sandbox), [""; 0]);
}
