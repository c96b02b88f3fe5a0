//! `git http-backend` behind the server, as a CGI program.

use std::env;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use super::{Reply, Request};

/// Returns whether `path` is one that only a git client asks for.
pub(super) fn is_request(path: &str) -> bool {
    const SERVICES: [&str; 4] = ["/info/refs", "/git-upload-pack", "/git-receive-pack", "/HEAD"];
    SERVICES.iter().any(|service| path.ends_with(service)) || path.contains("/objects/")
}

/// Answers a request for `path` in one of the repositories below `directory`.
pub(super) fn answer(directory: &Path, path: &str, request: &Request) -> Reply {
    let mut command = Command::new("git");
    command
        .arg("http-backend")
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_PROJECT_ROOT", directory)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", format!("/{}", on_disk(directory, path)))
        .env("QUERY_STRING", request.query.as_deref().unwrap_or_default())
        .env("REQUEST_METHOD", &request.method)
        .env("REMOTE_ADDR", "127.0.0.1")
        .env("CONTENT_LENGTH", request.body.len().to_string());
    // Without `GIT_PROTOCOL` the server would fall back to protocol version 0.
    for (variable, header) in [
        ("CONTENT_TYPE", "content-type"),
        ("GIT_PROTOCOL", "git-protocol"),
        ("HTTP_CONTENT_ENCODING", "content-encoding"),
    ] {
        if let Some(value) = request.header(header) {
            command.env(variable, value);
        }
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let body = request.body.clone();
    // The backend may write before it has read everything, so its output is read meanwhile.
    let writer = thread::spawn(move || stdin.write_all(&body));
    let output = child.wait_with_output().unwrap().stdout;
    // A backend that refuses the request may end before it has read it all.
    writer.join().unwrap().ok();
    parse(&output)
}

/// What GitHub answers with status 200 if it limits git; `None` for a request to which it does not answer so.
pub(super) fn limited(request: &Request) -> Option<Reply> {
    let kind = match request.path.rsplit_once('/')? {
        (_, "refs") => "advertisement",
        (_, "git-upload-pack") => "result",
        _ => return None,
    };
    let text = "ERR GitHub is temporarily limiting some unauthenticated downloads to protect the stability of the \
                platform. Please retry later or authenticate.";
    let reply = Reply::ok(format!("{:04x}{text}", text.len() + 4));
    Some(reply.header("Content-Type", &format!("application/x-git-upload-pack-{kind}")))
}

/// `path` with `.git` added to or taken from its repository, if only that one exists; unchanged if none does.
fn on_disk(directory: &Path, path: &str) -> String {
    for (end, _) in path.match_indices('/') {
        let (repository, rest) = path.split_at(end);
        let bare = repository.trim_end_matches(".git");
        for name in [repository, bare, &format!("{bare}.git")] {
            let place = directory.join(name);
            if place.join("HEAD").is_file() || place.join(".git").is_dir() {
                return format!("{name}{rest}");
            }
        }
    }
    path.to_owned()
}

/// Turns the output of a CGI program into a reply.
fn parse(output: &[u8]) -> Reply {
    let Some(end) = output.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Reply::status(500).body("no reply from git http-backend\n");
    };
    let head = String::from_utf8_lossy(&output[..end]);
    let mut reply = Reply::ok(&output[end + 4..]);
    for (name, value) in head.lines().filter_map(|line| line.split_once(": ")) {
        if name == "Status" {
            let code = value.split(' ').next().and_then(|code| code.parse().ok());
            reply.status_is(code.unwrap_or(500));
        } else {
            reply = reply.header(name, value);
        }
    }
    reply
}
