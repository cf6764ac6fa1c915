//! An HTTP server for one page, which believes nobody: one request a connection, of a bounded
//! length and in a bounded time, one connection after the other. So whoever keeps it waiting keeps
//! others from the page for that time and does no other harm; it listens where the configuration
//! says, which should be an address that only the host itself or its monitoring reaches.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::Error;

/// The longest request.
const LONGEST: usize = 8 << 10;

/// The time that a request may take to arrive, and the answer to leave.
const PATIENCE: Duration = Duration::from_secs(2);

/// The server.
pub(crate) struct Server {
    listener: TcpListener,
}

/// What is said to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The page, or of a HEAD request its headers alone.
    Page {
        /// Whether the page itself is wanted.
        with_body: bool,
    },
    /// It is no request for the page: status and reason.
    Refusal(u16, &'static str),
}

impl Server {
    /// Listens.
    pub(crate) fn bind(address: SocketAddr) -> Result<Self, Error> {
        let listener = TcpListener::bind(address).map_err(|source| Error::System {
            doing: format!(
                "listen at {address} for Prometheus (another program may use the port: set \
                 'metrics' to another address)"
            ),
            source,
        })?;
        Ok(Server { listener })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until the gateway stops, which connects once more to say so.
    pub(crate) fn serve(&self, is_stopping: impl Fn() -> bool, page: impl Fn() -> String) {
        for stream in self.listener.incoming() {
            if is_stopping() {
                return;
            }
            if let Err(error) = stream.and_then(|stream| converse(stream, &page)) {
                tracing::debug!("nobody has read the metrics: {error}");
                // Out of descriptors, for one: accept would fail again at once.
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// Wakes who waits at an address.
pub(crate) fn nudge(address: SocketAddr) {
    let _ = TcpStream::connect_timeout(&address, PATIENCE);
}

fn converse(mut stream: TcpStream, page: &impl Fn() -> String) -> io::Result<()> {
    let begin = Instant::now();
    let mut request = Vec::with_capacity(1024);
    let mut bytes = [0; 1024];
    let answer = loop {
        if let Some(answer) = answer(&request) {
            break answer;
        }
        let left = PATIENCE.saturating_sub(begin.elapsed());
        if left.is_zero() {
            break Answer::Refusal(408, "Request Timeout");
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(len) => request.extend_from_slice(&bytes[..len]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    let head = |status: u16, reason: &str, kind: &str, len: usize| {
        format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: \
             {len}\r\nConnection: close\r\n\r\n"
        )
    };
    let text = match answer {
        Answer::Page { with_body } => {
            let page = page();
            let mut text = head(
                200,
                "OK",
                "text/plain; version=0.0.4; charset=utf-8",
                page.len(),
            );
            if with_body {
                text.push_str(&page);
            }
            text
        }
        Answer::Refusal(status, reason) => {
            let body = format!("{status} {reason}; ask for /metrics\n");
            head(status, reason, "text/plain; charset=utf-8", body.len()) + &body
        }
    };
    send(&mut stream, text.as_bytes())
}

/// Sends within a bounded time, however slowly it is read.
fn send(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    let begin = Instant::now();
    while !bytes.is_empty() {
        let left = PATIENCE.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => bytes = &bytes[len..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    // What was sent behind the request would make the kernel reset the connection, and the page
    // could be lost with it.
    stream.shutdown(std::net::Shutdown::Write)
}

/// What to say to the beginning of a request; `None`: more of it must come.
pub(crate) fn answer(request: &[u8]) -> Option<Answer> {
    let ends = [b"\r\n\r\n".as_slice(), b"\n\n"];
    let is_whole = ends
        .iter()
        .any(|end| request.windows(end.len()).any(|window| window == *end));
    if !is_whole {
        return (request.len() >= LONGEST)
            .then_some(Answer::Refusal(431, "Request Header Fields Too Large"));
    }
    let bad = Some(Answer::Refusal(400, "Bad Request"));
    let line = request.split(|&byte| byte == b'\n').next()?;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut words = line.split(|&byte| byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return bad;
    };
    if !matches!(version, b"HTTP/1.0" | b"HTTP/1.1") {
        return bad;
    }
    let path = target.split(|&byte| byte == b'?').next()?;
    Some(match (method, path) {
        (b"GET", b"/metrics") => Answer::Page { with_body: true },
        (b"HEAD", b"/metrics") => Answer::Page { with_body: false },
        (b"GET" | b"HEAD", _) => Answer::Refusal(404, "Not Found"),
        _ => Answer::Refusal(405, "Method Not Allowed"),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: Option<Answer> = Some(Answer::Page { with_body: true });

    fn refusal(request: &[u8]) -> u16 {
        match answer(request) {
            Some(Answer::Refusal(status, _)) => status,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_page_is_given_to_those_who_ask_for_it() {
        let whole = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
        assert_eq!(answer(whole), PAGE);
        assert_eq!(answer(b"GET /metrics?x=1 HTTP/1.0\n\n"), PAGE);
        for len in 0..whole.len() {
            assert_eq!(answer(&whole[..len]), None, "{len}");
        }
        let head = answer(b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert_eq!(head, Some(Answer::Page { with_body: false }));
        assert_eq!(refusal(b"GET / HTTP/1.1\r\n\r\n"), 404);
        assert_eq!(refusal(b"POST /metrics HTTP/1.1\r\n\r\n"), 405);
        assert_eq!(refusal(b"GET /metrics HTTP/2.0\r\n\r\n"), 400);
        assert_eq!(refusal(b"GET  /metrics HTTP/1.1\r\n\r\n"), 400);
        assert_eq!(refusal(b"\n\n"), 400);
        assert_eq!(refusal(&[b'a'; LONGEST]), 431);
    }

    #[test]
    fn slow_silent_and_wrong_clients_keep_nobody_for_ever() {
        let server = Server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = server.address().unwrap();
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stopping = stop.clone();
        let thread = std::thread::spawn(move || {
            let is_stopping = || stopping.load(std::sync::atomic::Ordering::Relaxed);
            server.serve(is_stopping, || "the page\n".repeat(1 << 20));
        });
        let said = |request: &[u8]| {
            let mut stream = TcpStream::connect(address).unwrap();
            let _ = stream.write_all(request);
            let mut text = Vec::new();
            let _ = stream.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        };
        let silent = TcpStream::connect(address).unwrap();
        assert!(said(b"GET /metrics HTTP/1.1\r\n").starts_with("HTTP/1.1 408"));
        drop(silent);
        // One that asks for a large page and does not read it.
        let mut deaf = TcpStream::connect(address).unwrap();
        deaf.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let text = said(b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 200"));
        assert_eq!(text.matches("the page\n").count(), 1 << 20);
        assert!(said(&[b'a'; 2 * LONGEST]).starts_with("HTTP/1.1 431"));
        let text = said(b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(
            text.ends_with("\r\n\r\n") && text.contains("Content-Length: 9437184"),
            "{text}"
        );
        drop(deaf);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        nudge(address);
        thread.join().unwrap();
    }

    proptest! {
        #[test]
        fn whatever_is_said_has_an_answer(request: Vec<u8>, end in "(\r\n\r\n|\n\n|)") {
            let whole = [request.as_slice(), end.as_bytes()].concat();
            let _ = answer(&whole);
        }
    }
}
