//! As much of HTTP/1.1 as a browser on the same machine needs: one thread and one request a connection.
//!
//! A library was tried first. Its pool of threads can leave a connection unanswered when a browser opens several at once, and
//! the page then loads for ever.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// A request's head. Nothing that is served here takes a body.
#[derive(Debug, PartialEq)]
pub(super) struct Request {
    pub(super) method: String,
    /// From the first `/` to the `?`.
    pub(super) path: String,
    /// After the `?`.
    pub(super) query: String,
    headers: Vec<(String, String)>,
}

impl Request {
    /// A header's value; `None` also where it is given twice, because two readers could then read different things.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
        match (found.next(), found.next()) {
            (Some((_, value)), None) => Some(value),
            _ => None,
        }
    }

    /// Whether it only asks for something.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD")
    }
}

/// What is sent back.
pub(super) struct Answer {
    status: u16,
    content_type: &'static str,
    body: Vec<u8>,
    tag: Option<String>,
}

impl Answer {
    pub(super) fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Answer {
        Answer { status, content_type, body: body.into(), tag: None }
    }

    /// A sentence that a page shows as it is.
    pub(super) fn sentence(status: u16, sentence: impl Into<String>) -> Answer {
        Answer::new(status, "text/plain; charset=utf-8", sentence.into())
    }

    /// Says which content it is.
    pub(super) fn tagged(self, tag: &str) -> Answer {
        Answer { tag: Some(tag.to_owned()), ..self }
    }
}

/// Takes a port of the loopback address, which no other machine can reach.
pub(super) fn listen(port: u16) -> Result<TcpListener> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match TcpListener::bind(address) {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => bail!(
            "port {port} is taken, perhaps by another `cargo book serve`: stop that one, or choose another port by --port {}",
            port.saturating_add(1)
        ),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            bail!("port {port} needs rights that this user does not have: choose one above 1023 by --port")
        }
        Err(error) => Err(error).with_context(|| format!("listening on {address}")),
    }
}

/// Answers until `stop` says so; it is asked after each connection.
pub(super) fn answer_all(
    listener: &TcpListener,
    stop: impl Fn() -> bool,
    answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) {
    let answer = Arc::new(answer);
    for stream in listener.incoming() {
        if stop() {
            return;
        }
        // A connection that failed before it began is the other side's matter.
        let Ok(stream) = stream else { continue };
        let answer = Arc::clone(&answer);
        std::thread::spawn(move || {
            // A reader who has gone away needs no answer.
            let _ = answer_one(stream, &*answer);
        });
    }
}

fn answer_one(mut stream: TcpStream, answer: &dyn Fn(&Request) -> Answer) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?).take(MOST);
    let Some(request) = read_request(&mut reader)? else {
        let refusal = Answer::sentence(400, "this is no request that a browser sends");
        return write_answer(&mut stream, &refusal, true);
    };
    write_answer(&mut stream, &answer(&request), request.method != "HEAD")
}

/// Bytes of the longest head that is read.
const MOST: u64 = 32 << 10;

/// Reads a request's head; `None` where it is not well-formed, in whatever way.
fn read_request(reader: &mut impl BufRead) -> std::io::Result<Option<Request>> {
    let mut line = || -> std::io::Result<Option<String>> {
        let mut bytes = Vec::new();
        reader.read_until(b'\n', &mut bytes)?;
        let line = bytes.strip_suffix(b"\r\n").or_else(|| bytes.strip_suffix(b"\n"));
        Ok(line.and_then(|line| String::from_utf8(line.to_vec()).ok()))
    };
    let Some(first) = line()? else { return Ok(None) };
    let [method, target, version] = first.split(' ').collect::<Vec<_>>()[..] else {
        return Ok(None);
    };
    if !target.starts_with('/') || !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return Ok(None);
    }
    let mut headers = Vec::new();
    loop {
        let Some(line) = line()? else { return Ok(None) };
        if line.is_empty() {
            break;
        }
        let Some((field, value)) = line.split_once(':') else { return Ok(None) };
        if field.is_empty() || field.contains(char::is_whitespace) {
            return Ok(None);
        }
        headers.push((field.to_owned(), value.trim().to_owned()));
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Ok(Some(Request { method: method.to_owned(), path: path.to_owned(), query: query.to_owned(), headers }))
}

/// Everything comes from this server, and nobody else may show these pages in a frame of theirs.
const POLICY: &str = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

fn write_answer(stream: &mut TcpStream, answer: &Answer, with_body: bool) -> std::io::Result<()> {
    let Answer { status, content_type, body, tag } = answer;
    let reason = match status {
        200 => "OK",
        202 => "Accepted",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        _ => "Service Unavailable",
    };
    let tag = tag.as_ref().map_or_else(String::new, |tag| format!("ETag: \"{tag}\"\r\n"));
    let mut bytes = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{tag}Connection: close\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: {POLICY}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    if with_body {
        bytes.extend_from_slice(body);
    }
    stream.write_all(&bytes)?;
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Request> {
        read_request(&mut text.as_bytes()).expect("bytes in memory")
    }

    #[test]
    fn what_a_browser_sends_is_read() {
        let request = read("GET /a.html?b=c?d HTTP/1.1\r\nHost: localhost:3000\r\nX-Lab-Token:  t \r\n\r\n")
            .expect("a request");
        assert_eq!((request.path.as_str(), request.query.as_str()), ("/a.html", "b=c?d"));
        assert_eq!(request.header("host"), Some("localhost:3000"));
        assert_eq!(request.header("X-Lab-Token"), Some("t"));
        assert_eq!(request.header("Origin"), None);
    }

    #[test]
    fn a_header_given_twice_is_not_believed() {
        let request = read("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n").expect("a request");
        assert_eq!(request.header("Host"), None);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "\r\n",
            "GET /\r\n\r\n",
            "GET  / HTTP/1.1\r\n\r\n",
            "GET http://evil.test/ HTTP/1.1\r\n\r\n",
            "GET / HTTP/2\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
            "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n",
            "GET / HTTP/1.1",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}
