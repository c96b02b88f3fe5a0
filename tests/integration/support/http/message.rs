//! HTTP/1.1 as far as the tests need it: one request and one reply for each connection.

use std::io::{self, Read, Write};
use std::thread;
use std::time::Duration;

/// A request of a client.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// `https://host` in a tunnel, `http://host` through the proxy, else empty.
    pub(crate) origin: String,
    /// As sent, percent-encoded; `host:port` for `CONNECT`.
    pub(crate) path: String,
    /// What follows the `?`.
    pub(crate) query: Option<String>,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// Returns the URL in the form of [`Server::route`](super::Server::route).
    pub(crate) fn url(&self) -> String {
        let query = self.query.as_ref().map(|query| format!("?{query}"));
        format!("{}{}{}", self.origin, self.path, query.unwrap_or_default())
    }

    /// Returns the body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the value of a header, whose name is given in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns how often a header was sent, whose name is given in lower case.
    pub(crate) fn headers(&self, name: &str) -> usize {
        self.headers.iter().filter(|(known, _)| known == name).count()
    }

    /// Reads one request with its body.
    pub(super) fn read(stream: &mut (impl Read + Write), origin: &str) -> io::Result<Request> {
        let malformed = || io::Error::new(io::ErrorKind::InvalidData, "not a request");
        let first = read_line(stream)?;
        let mut words = first.split(' ');
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Err(malformed());
        };
        let (origin, target) = match target.strip_prefix("http://") {
            Some(rest) => {
                let (host, _) = rest.split_once('/').unwrap_or((rest, ""));
                (format!("http://{host}"), &rest[host.len()..])
            }
            None => (origin.to_owned(), target),
        };
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        let mut headers = Vec::new();
        loop {
            let line = read_line(stream)?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(malformed)?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut request =
            Request { method: method.to_owned(), origin, path: path.to_owned(), query, headers, body: Vec::new() };
        if request.header("expect").is_some_and(|value| value == "100-continue") {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            stream.flush()?;
        }
        request.body = if request.header("transfer-encoding") == Some("chunked") {
            read_chunks(stream)?
        } else {
            let length = request.header("content-length").unwrap_or("0");
            let mut body = vec![0; length.parse().map_err(|_| malformed())?];
            stream.read_exact(&mut body)?;
            body
        };
        Ok(request)
    }
}

/// Reads up to a line end, one byte at a time: what follows a `CONNECT` belongs to the tunnel.
fn read_line(stream: &mut impl Read) -> io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    while byte[0] != b'\n' {
        stream.read_exact(&mut byte)?;
        line.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

fn read_chunks(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(stream)?;
        let size =
            usize::from_str_radix(&line, 16).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let start = body.len();
        body.resize(start + size, 0);
        stream.read_exact(&mut body[start..])?;
        read_line(stream)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

/// The answer of the server.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    delay: Duration,
}

impl Reply {
    /// Status 200 with this body.
    pub(crate) fn ok(body: impl Into<Vec<u8>>) -> Reply {
        Reply::status(200).body(body)
    }

    /// This status without a body.
    pub(crate) fn status(status: u16) -> Reply {
        Reply { status, headers: Vec::new(), body: Vec::new(), delay: Duration::ZERO }
    }

    /// Status 302 to `location`.
    pub(crate) fn redirect(location: &str) -> Reply {
        Reply::status(302).header("Location", location)
    }

    /// Sets the body.
    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Reply {
        self.body = body.into();
        self
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Waits before the first byte.
    pub(crate) fn delay(mut self, delay: Duration) -> Reply {
        self.delay = delay;
        self
    }

    /// Replaces the status.
    pub(super) fn status_is(&mut self, status: u16) {
        self.status = status;
    }

    pub(super) fn write(&self, stream: &mut impl Write, method: &str) -> io::Result<()> {
        thread::sleep(self.delay);
        let mut head = format!("HTTP/1.1 {} -\r\nConnection: close\r\n", self.status);
        head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes())?;
        stream.flush()?;
        if method == "HEAD" {
            return Ok(());
        }
        stream.write_all(&self.body)?;
        stream.flush()
    }
}

/// Encodes as in RFC 4648, section 4.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let mut bits = [0; 4];
        bits[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(bits);
        for place in 0..4 {
            let index = (bits >> (18 - 6 * place)) & 0x3f;
            let letter = char::from(ALPHABET[index as usize]);
            text.push(if place <= group.len() { letter } else { '=' });
        }
    }
    text
}
