//! A small server that runs a script for each connection and keeps every request that it read in full.

use quittance_protocol::classic::Form;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Longer than any step here takes, so that a broken test fails and does not hang.
const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Clone)]
pub(crate) struct ClassicRequest {
    pub(crate) head: String,
    pub(crate) form: Form,
}

impl ClassicRequest {
    pub(crate) fn text(&self, name: &str) -> &str {
        self.form.text(name).unwrap_or_default()
    }

    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }
}

#[derive(Default)]
struct Book {
    received: Vec<ClassicRequest>,
    connections: usize,
    closed: usize,
    /// Whether connections that wait for the test may continue.
    is_released: bool,
}

#[derive(Clone, Default)]
struct ServerShared(Arc<(Mutex<Book>, Condvar)>);

impl ServerShared {
    fn write(&self, change: impl FnOnce(&mut Book)) {
        change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
    }

    fn wait(&self, until: impl Fn(&Book) -> bool) {
        let book = self.0.0.lock().unwrap();
        let (_book, late) = self.0.1.wait_timeout_while(book, TIMEOUT, |book| !until(book)).unwrap();
        assert!(!late.timed_out(), "the server has waited in vain");
    }
}

pub(crate) struct ClassicServer {
    pub(crate) port: u16,
    shared: ServerShared,
}

impl ClassicServer {
    /// Starts a server that runs `play` on each connection, with the number of earlier connections.
    pub(crate) fn start(play: impl Fn(usize, ClassicClient) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = ServerShared::default();
        let (play, book) = (Arc::new(play), shared.clone());
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let Ok(stream) = stream else { continue };
                stream.set_read_timeout(Some(TIMEOUT)).unwrap();
                book.write(|book| book.connections += 1);
                let (play, book) = (play.clone(), book.clone());
                std::thread::spawn(move || {
                    play(number, ClassicClient { stream, unread: Vec::new(), shared: book.clone() });
                    book.write(|book| book.closed += 1);
                });
            }
        });
        Self { port, shared }
    }

    /// A server that answers every request with the result of `answer`, on connections that stay open.
    pub(crate) fn answering(answer: impl Fn(&ClassicRequest) -> String + Send + Sync + 'static) -> Self {
        Self::start(move |_, mut guest| {
            while let Some(received) = guest.read_request() {
                guest.write(&answer(&received));
            }
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn received(&self) -> Vec<ClassicRequest> {
        self.shared.0.0.lock().unwrap().received.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.0.0.lock().unwrap().connections
    }

    /// Releases the waiting connections, and waits until `count` are closed. This blocks the test's runtime, so that
    /// only the kernel knows of the close.
    pub(crate) fn tell_and_wait_until_closed(&self, count: usize) {
        self.shared.write(|book| book.is_released = true);
        self.shared.wait(|book| book.closed >= count);
    }

    pub(crate) fn wait_for_requests(&self, count: usize) {
        self.shared.wait(|book| book.received.len() >= count);
    }
}

/// A reply on a connection that stays open.
pub(crate) fn http(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nContent-Type: text/html\r\n\r\n{body}", body.len())
}

pub(crate) fn ok(body: &str) -> String {
    http("200 OK", body)
}

/// A client that has connected.
pub(crate) struct ClassicClient {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
    shared: ServerShared,
}

impl ClassicClient {
    /// Reads a whole request and keeps it. `None` if the connection ends before.
    pub(crate) fn read_request(&mut self) -> Option<ClassicRequest> {
        let mut stream = self.stream.try_clone().unwrap();
        let received = read_request(&mut stream, &mut self.unread)?;
        self.remember(&received);
        Some(received)
    }

    pub(crate) fn remember(&self, received: &ClassicRequest) {
        self.shared.write(|book| book.received.push(received.clone()));
    }

    pub(crate) fn write(&mut self, text: &str) {
        // The other side may be gone, and that is its right.
        _ = self.stream.write_all(text.as_bytes());
    }

    pub(crate) fn wait_until_ended(&self) {
        self.shared.wait(|book| book.is_released);
    }

    /// Waits until a byte has arrived, and leaves it unread.
    pub(crate) fn wait_for_bytes(&self) {
        _ = self.stream.peek(&mut [0]);
    }

    pub(crate) fn read_some(&mut self, bytes: usize) {
        _ = self.stream.read_exact(&mut vec![0; bytes]);
    }

    /// Waits until the other side has closed.
    pub(crate) fn hold(mut self) {
        while self.stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
    }

    /// Leaves the connection open without reading, until the tests end.
    pub(crate) fn neglect(self) {
        std::mem::forget(self);
    }

    /// Ends the connection with a reset.
    pub(crate) fn reset(self) {
        socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// Waits for this time without reading or writing.
    pub(crate) fn pause(&mut self, span: Duration) {
        self.stream.set_read_timeout(Some(span)).unwrap();
        _ = self.stream.peek(&mut [0]);
        self.stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    }
}

pub(crate) fn read_request(stream: &mut impl Read, unread: &mut Vec<u8>) -> Option<ClassicRequest> {
    let mut more = |unread: &mut Vec<u8>| {
        let mut chunk = [0; 8192];
        match stream.read(&mut chunk) {
            Ok(count) if count > 0 => {
                unread.extend_from_slice(&chunk[..count]);
                Some(())
            }
            _ => None,
        }
    };
    let end = loop {
        match unread.windows(4).position(|window| window == b"\r\n\r\n") {
            Some(at) => break at + 4,
            None => more(unread)?,
        }
    };
    let head = String::from_utf8(unread[..end].to_vec()).unwrap();
    let header = |name: &str| {
        head.lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(outcome_of, _)| outcome_of.eq_ignore_ascii_case(name))
    };
    let length: usize = header("content-length").unwrap().1.parse().unwrap();
    while unread.len() < end + length {
        more(unread)?;
    }
    let form =
        Form::read("", header("content-type").map(|(_, outcome_of)| outcome_of), &unread[end..end + length])
            .unwrap();
    unread.drain(..end + length);
    Some(ClassicRequest { head, form })
}
