//! The hosts that the cases refer to, all of them on one loopback server.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde::Deserialize;

use super::case::{Extra, Tree, parity, read_yaml};
use crate::support::{Reply, Sandbox, Server};

/// A repository that is described by this file beside one directory for each commit.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    /// In their order, one on top of the other.
    commits: Vec<Commit>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Commit {
    /// The directory that holds all files of the commit.
    files: String,
    /// The branch it is on, besides those after it, if that is not `main`.
    branch: Option<String>,
    tags: Vec<String>,
    annotated_tags: Vec<String>,
    /// Submodules by path, with the id of their commit.
    submodules: BTreeMap<String, String>,
    more: Extra,
}

/// A URL that a plain file cannot answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Special {
    url: String,
    #[serde(default)]
    body: String,
    status: Option<u16>,
    redirect: Option<String>,
}

/// The running server, and the repositories that it serves.
pub(super) struct Upstream {
    server: Server,
    _repositories: Sandbox,
}

/// Makes all described repositories, once for many cases.
pub(super) fn repositories() -> Sandbox {
    let sandbox = Sandbox::new();
    let directory = sandbox.path("");
    create_repositories(&sandbox, &parity().join("upstream"), &directory);
    sandbox
}

impl Upstream {
    /// Starts the server with everything in `tests/parity`, and sends the sandbox through it.
    ///
    /// Besides https, each host is reached by ssh in both spellings; `file:///srv/git/` is one more
    /// name of `https://git.example.com/`, so that no path of this machine is in any record.
    pub(super) fn start(sandbox: &Sandbox, repositories: &Sandbox) -> Upstream {
        let server = Server::start();
        sandbox.send_through(&server);
        sandbox.pretend("file:///srv/git/", "https://git.example.com/");
        for host in directories(&parity().join("upstream")) {
            let base = format!("https://{host}/");
            sandbox.pretend(&format!("git@{host}:"), &base);
            sandbox.pretend(&format!("ssh://git@{host}/"), &base);
            server.serve_git(&base, &repositories.path(&host));
        }
        for (path, bytes) in Tree::read(&parity().join("files")).files {
            server.route(&format!("https://{path}"), Reply::ok(bytes));
        }
        for special in read_yaml::<Vec<Special>>(&parity().join("replies.yaml")) {
            let reply = match &special.redirect {
                Some(location) => Reply::redirect(location),
                None => Reply::status(special.status.unwrap_or(200)).body(special.body),
            };
            server.route(&special.url, reply);
        }
        Upstream { server, _repositories: repositories.clone() }
    }

    /// Returns what was requested so far.
    pub(super) fn log(&self) -> Vec<String> {
        self.server.log()
    }
}

fn directories(of: &Path) -> Vec<String> {
    let entries = fs::read_dir(of).unwrap().map(Result::unwrap);
    entries.filter(|entry| entry.path().is_dir()).map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// Makes a repository in `to` of every description below `from`.
fn create_repositories(sandbox: &Sandbox, from: &Path, to: &Path) {
    let description = from.join("repository.yaml");
    if description.is_file() {
        create_repository(sandbox, from, &read_yaml(&description), to);
        return;
    }
    for name in directories(from) {
        create_repositories(sandbox, &from.join(&name), &to.join(&name));
    }
}

/// Makes a bare repository in one go: `git fast-import` needs one process for all commits.
fn create_repository(sandbox: &Sandbox, from: &Path, description: &Description, to: &Path) {
    const IDENTITY: &str = "U. Pstream <upstream@example.com> 1767323045 +0000";
    let mut stream = Vec::new();
    for (number, commit) in description.commits.iter().enumerate() {
        let mut tree = Tree::read(&from.join(&commit.files));
        commit.more.add_to(&mut tree);
        let mut head =
            format!("commit refs/heads/{}\nmark :{}\n", commit.branch.as_deref().unwrap_or("main"), number + 1);
        write!(head, "committer {IDENTITY}\ndata 0\n\n").unwrap();
        if number > 0 {
            writeln!(head, "from :{number}").unwrap();
        }
        head.push_str("deleteall\n");
        stream.extend(head.into_bytes());
        for (path, bytes) in &tree.files {
            let mode = if tree.executables.contains(path) { "100755" } else { "100644" };
            add_file(&mut stream, mode, path, bytes);
        }
        for (path, target) in &tree.links {
            add_file(&mut stream, "120000", path, target.as_bytes());
        }
        for (path, id) in &commit.submodules {
            writeln!(stream, "M 160000 {id} {path}").unwrap();
        }
        for tag in &commit.tags {
            write!(stream, "reset refs/tags/{tag}\nfrom :{}\n\n", number + 1).unwrap();
        }
        for tag in &commit.annotated_tags {
            let tagger = format!("from :{}\ntagger {IDENTITY}\ndata 0\n\n", number + 1);
            write!(stream, "tag {tag}\n{tagger}").unwrap();
        }
    }
    fs::create_dir_all(to).unwrap();
    sandbox.git(to, &["init", "--quiet", "--bare", "--template=", "-b", "main"]);
    let mut import = sandbox.command("git", to).args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().unwrap();
    import.stdin.take().unwrap().write_all(&stream).unwrap();
    assert!(import.wait().unwrap().success(), "{}", String::from_utf8_lossy(&stream));
}

fn add_file(stream: &mut Vec<u8>, mode: &str, path: &str, bytes: &[u8]) {
    write!(stream, "M {mode} inline {path}\ndata {}\n", bytes.len()).unwrap();
    stream.extend(bytes);
    stream.push(b'\n');
}
