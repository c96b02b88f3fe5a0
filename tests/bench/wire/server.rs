//! `git http-backend` over HTTP: below `/parts/` with parts of commits, below `/whole/` without.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::thread;

pub(crate) struct Server(SocketAddr);

impl Server {
    /// Serves the repositories in `directory` until the program ends.
    pub(crate) fn start(directory: &Path) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let directory = directory.to_owned();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let directory = directory.clone();
                thread::spawn(move || serve(stream, &directory));
            }
        });
        Server(address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0
    }
}

/// Answers one request after the other.
fn serve(stream: TcpStream, directory: &PathBuf) {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while answer(&mut reader, &stream, directory).is_some() {}
}

fn answer(reader: &mut BufReader<TcpStream>, stream: &TcpStream, directory: &PathBuf) -> Option<()> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let header = |name: &str| headers.iter().find(|(one, _)| one == name);
    let length = header("content-length").map_or(0, |(_, length)| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (kind, path) = path.strip_prefix('/')?.split_once('/')?;
    let mut command = Command::new("git");
    command
        .arg("http-backend")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "uploadpack.allowFilter")
        .env("GIT_CONFIG_VALUE_0", (kind == "parts").to_string())
        .env("GIT_PROJECT_ROOT", directory)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", format!("/{path}"))
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", method)
        .env("REMOTE_ADDR", "127.0.0.1")
        .env("CONTENT_LENGTH", length.to_string());
    for (variable, name) in [
        ("CONTENT_TYPE", "content-type"),
        ("GIT_PROTOCOL", "git-protocol"),
        ("HTTP_CONTENT_ENCODING", "content-encoding"),
    ] {
        if let Some((_, value)) = header(name) {
            command.env(variable, value);
        }
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = thread::spawn(move || input.write_all(&body));
    let sent = send(child.stdout.take().unwrap(), stream);
    let _ = writer.join();
    child.wait().unwrap();
    sent
}

/// Sends what the program answers, as it comes.
fn send(output: ChildStdout, mut stream: &TcpStream) -> Option<()> {
    let mut output = BufReader::new(output);
    let mut head = String::new();
    let mut status = "200 OK".to_owned();
    loop {
        let mut line = String::new();
        output.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        if name == "Status" {
            status = value.to_owned();
        } else {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    write!(stream, "HTTP/1.1 {status}\r\n{head}Transfer-Encoding: chunked\r\n\r\n").ok()?;
    let mut buffer = vec![0; 16 << 10];
    loop {
        let length = output.read(&mut buffer).ok()?;
        write!(stream, "{length:x}\r\n").ok()?;
        stream.write_all(&buffer[..length]).ok()?;
        stream.write_all(b"\r\n").ok()?;
        if length == 0 {
            return Some(());
        }
    }
}
