//! The requests of git and the responses of a server over http, read from git's own trace.

use std::process::Command;
use std::time::Duration;

use crate::os::process::{self, Output, Terminal};

/// The output of git, and the responses of its server.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// The output without the trace.
    pub output: Output,
    /// The number of requests that git sent over http.
    pub requests: usize,
    /// The number of bytes of packs that were received.
    pub bytes: u64,
    /// Whether a request had a login.
    pub has_login: bool,
    /// Whether the server accepted a request without a login.
    pub is_public: bool,
    /// The status of the last response; 0 if there was none.
    pub status: u16,
    /// The headers of the last response, with names in lower case.
    headers: Vec<(String, String)>,
}

impl Exchange {
    /// Runs a git that talks to a server, with a trace of its requests.
    pub(super) fn run(
        command: &mut Command,
        input: Option<&[u8]>,
        timeout: Duration,
        terminal: Terminal,
    ) -> Result<Exchange, process::Error> {
        // git itself prints at most the status of the last response, and for a server that wants a login late only
        // that it could not ask for one.
        command.env("GIT_TRACE_CURL", "2").env("GIT_TRACE_CURL_NO_DATA", "1");
        process::run(command, input, Some(timeout), terminal).map(Exchange::of)
    }

    /// Reads the requests and responses from the trace in the standard error of git.
    fn of(mut output: Output) -> Exchange {
        let text = std::mem::take(&mut output.stderr);
        // git writes trace and messages to one stream.
        let (trace, words): (Vec<&str>, Vec<&str>) = text.split_inclusive('\n').partition(|line| is_trace(line));
        output.stderr = words.concat();
        let (status, headers) = (0, Vec::new());
        let mut all = Exchange { output, requests: 0, bytes: 0, has_login: false, is_public: false, status, headers };
        // The response to `CONNECT` comes from a proxy, not from the server.
        let mut is_connect = false;
        for line in trace {
            if let Some((_, sent)) = line.split_once("=> Send header: ") {
                let is_first = sent.trim_end().contains(" HTTP/");
                is_connect = if is_first { sent.starts_with("CONNECT ") } else { is_connect };
                all.requests += usize::from(is_first && !is_connect);
                all.has_login |= sent.to_ascii_lowercase().starts_with("authorization:");
            } else if let Some((_, received)) = line.split_once("<= Recv header: ").filter(|_| !is_connect) {
                all.receive(received.trim_end());
            }
        }
        all
    }

    /// Takes one line of the head of a response.
    fn receive(&mut self, line: &str) {
        if let Some(status) = line.strip_prefix("HTTP/").and_then(|line| line.split(' ').nth(1)?.parse().ok()) {
            // Only the last response counts, so its head replaces the one before.
            (self.status, self.headers) = (status, Vec::new());
            self.is_public |= (200..300).contains(&status) && !self.has_login;
        } else if let Some((name, value)) = line.split_once(':') {
            self.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// A header of the last response, by its name in lower case; `None` if the response has no such header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Whether this line belongs to git's trace, such as `11:26:01.013522 http.c:872 …`.
fn is_trace(line: &str) -> bool {
    // The text of a server begins otherwise.
    line.starts_with(|first: char| first.is_ascii_digit())
        && line.split_whitespace().nth(1).is_some_and(|origin| origin.starts_with("http.c:"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn exchange(stderr: &str) -> Exchange {
        let output = Output { status: ExitStatus::from_raw(0), stdout: Vec::new(), stderr: stderr.to_owned() };
        Exchange::of(output)
    }

    /// A trace of these headers: what was sent and received.
    fn traced(headers: &[&str]) -> String {
        let arrow = |header: &&str| match header.strip_prefix('>') {
            Some(sent) => format!("11:26:01.013522 http.c:872              => Send header: {sent}\n"),
            None => format!("11:26:01.018804 http.c:872              <= Recv header: {header}\n"),
        };
        headers.iter().map(arrow).collect()
    }

    #[test]
    fn the_last_answer_counts_and_the_trace_is_not_git_s_word() {
        let trace = traced(&[
            ">CONNECT git.example.com:443 HTTP/1.1",
            "HTTP/1.1 200 Connection established",
            ">GET /a/b/info/refs?service=git-upload-pack HTTP/2",
            "HTTP/2 200",
            "retry-after: 9",
            ">POST /a/b/git-upload-pack HTTP/2",
            "HTTP/1.1 100 Continue",
            "HTTP/2 401",
            "Location: https://else.example.com/x: y",
        ]);
        let one = exchange(&format!("{trace}fatal: could not read Username\n"));
        assert_eq!((one.requests, one.status, one.is_public, one.has_login), (2, 401, true, false));
        assert_eq!(one.header("location"), Some("https://else.example.com/x: y"));
        assert_eq!(one.header("retry-after"), None);
        assert_eq!(one.output.stderr, "fatal: could not read Username\n");
    }

    #[test]
    fn what_came_with_a_login_is_not_public() {
        let sent = [">GET /a HTTP/1.1", ">Authorization: Basic <redacted>", "HTTP/1.1 200 OK", ">POST /a HTTP/1.1"];
        let one = exchange(&traced(&[&sent[..], &["HTTP/1.1 401 No"]].concat()));
        assert_eq!((one.is_public, one.has_login), (false, true));
        // A proxy that lets nobody through says nothing about the server.
        let one = exchange(&traced(&[">CONNECT h:443 HTTP/1.1", "HTTP/1.1 429 Slow", "Retry-After: 1"]));
        assert_eq!((one.requests, one.status, one.is_public, one.header("retry-after")), (0, 0, false, None));
    }

    #[test]
    fn a_server_cannot_trace() {
        let said = format!("remote: {}", traced(&["HTTP/1.1 429 Slow"]));
        let one = exchange(&said);
        assert_eq!((one.status, one.output.stderr), (0, said));
    }
}
