//! A little server that does exactly what a test tells it to do with each connection, and remembers every request that it
//! has seen in full.

use quittance_protocol::classic::Form;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Longer than anything here takes, so that a broken test fails rather than hangs.
const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) form: Form,
}

impl Seen {
    pub(crate) fn text(&self, name: &str) -> &str {
        self.form.text(name).unwrap_or_default()
    }

    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }
}

#[derive(Default)]
struct Book {
    seen: Vec<Seen>,
    connections: usize,
    closed: usize,
    /// Whether those who wait for a sign from the test may go on.
    is_told: bool,
}

#[derive(Clone, Default)]
struct Shared(Arc<(Mutex<Book>, Condvar)>);

impl Shared {
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

pub(crate) struct Server {
    pub(crate) port: u16,
    shared: Shared,
}

impl Server {
    /// `play` is what happens on each connection; it is given the number of those before.
    pub(crate) fn start(play: impl Fn(usize, Guest) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Shared::default();
        let (play, book) = (Arc::new(play), shared.clone());
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let Ok(stream) = stream else { continue };
                stream.set_read_timeout(Some(TIMEOUT)).unwrap();
                book.write(|book| book.connections += 1);
                let (play, book) = (play.clone(), book.clone());
                std::thread::spawn(move || {
                    play(number, Guest { stream, unread: Vec::new(), shared: book.clone() });
                    book.write(|book| book.closed += 1);
                });
            }
        });
        Self { port, shared }
    }

    /// Answers every request with what `answer` makes of it, on connections that stay open.
    pub(crate) fn answering(answer: impl Fn(&Seen) -> String + Send + Sync + 'static) -> Self {
        Self::start(move |_, mut guest| {
            while let Some(seen) = guest.read_request() {
                guest.write(&answer(&seen));
            }
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.0.0.lock().unwrap().seen.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.0.0.lock().unwrap().connections
    }

    /// Lets those go on who wait to be told, and waits until so many connections are closed. It blocks the test's
    /// runtime, so that nobody but the kernel knows of the close.
    pub(crate) fn tell_and_wait_until_closed(&self, count: usize) {
        self.shared.write(|book| book.is_told = true);
        self.shared.wait(|book| book.closed >= count);
    }

    pub(crate) fn wait_until_seen(&self, count: usize) {
        self.shared.wait(|book| book.seen.len() >= count);
    }
}

/// An answer on a connection that stays open.
pub(crate) fn http(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nContent-Type: text/html\r\n\r\n{body}", body.len())
}

pub(crate) fn ok(body: &str) -> String {
    http("200 OK", body)
}

/// Whoever has connected.
pub(crate) struct Guest {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
    shared: Shared,
}

impl Guest {
    /// A whole request, which is then remembered; nothing, if the connection ends before.
    pub(crate) fn read_request(&mut self) -> Option<Seen> {
        let mut stream = self.stream.try_clone().unwrap();
        let seen = read_request(&mut stream, &mut self.unread)?;
        self.remember(&seen);
        Some(seen)
    }

    pub(crate) fn remember(&self, seen: &Seen) {
        self.shared.write(|book| book.seen.push(seen.clone()));
    }

    pub(crate) fn write(&mut self, text: &str) {
        // The other side may be gone, and that is its right.
        _ = self.stream.write_all(text.as_bytes());
    }

    pub(crate) fn wait_to_be_told(&self) {
        self.shared.wait(|book| book.is_told);
    }

    /// Until something has arrived, which is left unread.
    pub(crate) fn wait_for_bytes(&self) {
        _ = self.stream.peek(&mut [0]);
    }

    pub(crate) fn read_some(&mut self, bytes: usize) {
        _ = self.stream.read_exact(&mut vec![0; bytes]);
    }

    /// Until the other side has closed.
    pub(crate) fn hold(mut self) {
        while self.stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
    }

    /// Leaves it open, and reads nothing, for as long as the tests run.
    pub(crate) fn neglect(self) {
        std::mem::forget(self);
    }

    /// Ends the connection with a reset.
    pub(crate) fn reset(self) {
        socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// Passes some time, without anything happening.
    pub(crate) fn pause(&mut self, span: Duration) {
        self.stream.set_read_timeout(Some(span)).unwrap();
        _ = self.stream.peek(&mut [0]);
        self.stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    }
}

pub(crate) fn read_request(stream: &mut impl Read, unread: &mut Vec<u8>) -> Option<Seen> {
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
            .find(|(said, _)| said.eq_ignore_ascii_case(name))
    };
    let length: usize = header("content-length").unwrap().1.parse().unwrap();
    while unread.len() < end + length {
        more(unread)?;
    }
    let form =
        Form::read("", header("content-type").map(|(_, said)| said), &unread[end..end + length]).unwrap();
    unread.drain(..end + length);
    Some(Seen { head, form })
}
