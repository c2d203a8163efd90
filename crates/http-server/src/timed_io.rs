//! A stream with timeouts for its client: a short timeout to finish a head that has begun, a longer one between two
//! requests, and one for reading a response. While a request is being answered, its handler watches the time.

use super::Limits;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// What a connection is doing. The stream and the handler of its requests share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Stage(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    stage: AtomicU8,
    /// When the current request began.
    begun: Mutex<Instant>,
    /// Whether the client has shown a key.
    is_known: AtomicBool,
    /// Whether the current request may be cut off for another connection.
    may_be_cut: AtomicBool,
}

/// The client has just connected. A busy machine may read the first bytes only when the time is over, so the time
/// starts again with them.
const NEW: u8 = 0;
/// The client has begun to send a head.
const HEAD: u8 = 1;
const ANSWERING: u8 = 2;
const IDLE: u8 = 3;
/// The body is arriving, or the response is held back.
const PAUSED: u8 = 4;

impl Default for Shared {
    fn default() -> Self {
        Self {
            stage: AtomicU8::new(NEW),
            begun: Mutex::new(Instant::now()),
            is_known: AtomicBool::new(false),
            may_be_cut: AtomicBool::new(false),
        }
    }
}

/// How long a connection without a key can be idle between two requests.
const STRANGER_IDLE_WAIT: Duration = Duration::from_secs(10);

impl Stage {
    /// Marks the request as being answered until the returned value is dropped.
    pub(super) fn begin_answer(&self) -> Answering {
        self.0.may_be_cut.store(false, Ordering::Relaxed);
        self.set(ANSWERING);
        Answering(self.clone())
    }

    fn set(&self, stage: u8) {
        // A thread that reads this stage also reads the `may_be_cut` of its request.
        self.0.stage.store(stage, Ordering::Release);
    }

    /// Waits for `waiting` in the middle of a response, and marks the connection as paused meanwhile.
    pub(super) async fn paused<T>(&self, waiting: impl Future<Output = T>) -> T {
        self.set(PAUSED);
        let waited = waiting.await;
        self.set(ANSWERING);
        waited
    }

    pub(super) fn is_idle(&self) -> bool {
        self.now() == IDLE
    }

    /// Whether the body is arriving, or the response is held back.
    pub(super) fn is_paused(&self) -> bool {
        self.now() == PAUSED
    }

    pub(super) fn is_answering(&self) -> bool {
        self.now() == ANSWERING
    }

    pub(super) fn is_known(&self) -> bool {
        self.0.is_known.load(Ordering::Relaxed)
    }

    pub(super) fn set_known(&self) {
        self.0.is_known.store(true, Ordering::Relaxed);
    }

    /// Lets the current request be cut off for another connection. Not for a request on a reserved route, such as a
    /// callback.
    pub(super) fn set_may_be_cut(&self) {
        self.0.may_be_cut.store(true, Ordering::Relaxed);
    }

    /// Whether a request is being read or answered that may be cut off.
    pub(super) fn may_be_cut(&self) -> bool {
        (self.is_answering() || self.is_paused()) && self.0.may_be_cut.load(Ordering::Relaxed)
    }

    /// Whether a head has begun and has not ended.
    pub(super) fn is_in_head(&self) -> bool {
        self.now() == HEAD
    }

    /// Whether the client has sent nothing yet.
    pub(super) fn is_new(&self) -> bool {
        self.now() == NEW
    }

    /// When the current request began: for the first one of a connection, when the connection was accepted; for a
    /// later one, with its first byte. A request that was sent before the response to the one before it counts from
    /// the beginning of that one.
    pub(super) fn request_begun(&self) -> Instant {
        *self.0.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the beginning of a head. Returns whether these are its first bytes.
    fn begin_head(&self) -> bool {
        let is_first = |waiting| {
            self.0.stage.compare_exchange(waiting, HEAD, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        if is_first(IDLE) {
            *self.0.begun.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            return true;
        }
        is_first(NEW)
    }

    fn now(&self) -> u8 {
        self.0.stage.load(Ordering::Acquire)
    }
}

#[derive(Debug)]
pub(super) struct Answering(Stage);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.set(IDLE);
    }
}

pub(super) struct TimedIo<S> {
    inner: S,
    stage: Stage,
    /// The stage that is timed; `until` is its end.
    timed: Option<u8>,
    until: Instant,
    /// A timer that fires at `until` or earlier. It is not reset for each request, and only checked when it fires.
    timer: Pin<Box<Sleep>>,
    /// The timer that runs while the client does not read.
    stall: Option<Pin<Box<Sleep>>>,
    read_wait: Duration,
    idle_wait: Duration,
    write_wait: Duration,
}

impl<S> TimedIo<S> {
    pub(super) fn new(inner: S, stage: Stage, limits: &Limits) -> Self {
        let Limits { read_wait, idle_wait, write_wait, .. } = *limits;
        let timer = Box::pin(sleep(read_wait));
        let (timed, until) = (Some(NEW), timer.deadline());
        Self { inner, stage, timed, until, timer, stall: None, read_wait, idle_wait, write_wait }
    }

    fn check_timer(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let stage = self.stage.now();
        let wait = match stage {
            NEW | HEAD => self.read_wait,
            IDLE if self.stage.is_known() => self.idle_wait,
            IDLE => self.idle_wait.min(STRANGER_IDLE_WAIT),
            _ => {
                self.timed = None;
                return Ok(());
            }
        };
        if self.timed != Some(stage) {
            self.timed = Some(stage);
            self.until = Instant::now() + wait;
            if self.until < self.timer.deadline() {
                self.timer.as_mut().reset(self.until);
            }
        }
        while self.timer.as_mut().poll(context).is_ready() {
            let now = Instant::now();
            if now >= self.until {
                return Err(ErrorKind::TimedOut.into());
            }
            // No later than a head may take, so that the next one that begins finds it set early enough.
            let next = self.until.min(now + self.read_wait);
            self.timer.as_mut().reset(next);
        }
        Ok(())
    }

    /// Checks how long nothing could be written.
    fn check_stall<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stall = None;
            return written;
        }
        let wait = self.write_wait;
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(wait)));
        ready!(stall.as_mut().poll(context));
        Poll::Ready(Err(ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        if buffer.filled().len() > before && self.stage.begin_head() {
            // Also if the head before it was the last thing that was timed: each has a time of its own.
            self.timed = None;
        }
        match read {
            // Also one who sends a byte at a time has only so long.
            Poll::Ready(Ok(())) if buffer.filled().len() > before => {
                self.check_timer(context)?;
                read
            }
            Poll::Pending => {
                self.check_timer(context)?;
                Poll::Pending
            }
            ended => ended,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.check_stall(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.check_stall(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(context);
        self.check_stall(context, shut)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, bytes);
        self.check_stall(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn a_request_begins_when_its_connection_is_accepted_or_else_with_its_first_byte() {
        let (accepted, stage) = (Instant::now(), Stage::default());
        let (mut caller, ours) = tokio::io::duplex(64);
        let mut stream = TimedIo::new(ours, stage.clone(), &Limits::default());
        let mut read_a_byte_after = async |seconds| {
            advance(Duration::from_secs(seconds)).await;
            caller.write_all(b"?").await.unwrap();
            stream.read_u8().await.unwrap();
            stage.request_begun().duration_since(accepted).as_secs()
        };
        assert_eq!(read_a_byte_after(3).await, 0);
        assert_eq!(read_a_byte_after(4).await, 0, "the head comes slowly");
        drop(stage.begin_answer());
        assert_eq!(read_a_byte_after(5).await, 12, "the next request");
        let answering = stage.begin_answer();
        assert_eq!(read_a_byte_after(1).await, 12, "its body comes slowly");
        drop(answering);
        let answering = stage.begin_answer();
        assert_eq!(
            stage.request_begun().duration_since(accepted).as_secs(),
            12,
            "it was sent with the one before"
        );
        drop(answering);
    }

    #[tokio::test]
    async fn a_caller_that_always_has_its_next_request_ready_is_not_taken_for_slow() {
        let limits = Limits { read_wait: Duration::from_millis(20), ..Limits::default() };
        let stage = Stage::default();
        let (mut caller, ours) = tokio::io::duplex(64);
        let mut stream = TimedIo::new(ours, stage.clone(), &limits);
        for _ in 0..5 {
            drop(stage.begin_answer());
            // However long this takes, the next head begins after it.
            sleep(limits.read_wait).await;
            caller.write_all(b"?").await.unwrap();
            assert_eq!(stream.read_u8().await.unwrap(), b'?');
        }
    }
}
