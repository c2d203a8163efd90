//! How long a new connection may have waited in the system's queue before it was accepted. While no seat is free,
//! connections wait there. A callback among them looks younger than it is, so the handler must know.

use crate::RequestHandler;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::coop::unconstrained;
use tokio::time::Instant;

/// A wait in the queue that takes longer than this is reported.
const WAIT_LATE: Duration = Duration::from_secs(2);
/// The most connections in the system's queue. As many accepted connections mean that all earlier ones have left it.
const QUEUE_MAX: usize = 4096;

/// What is known about the queue of one listener.
pub(super) struct AcceptQueue {
    handler: Arc<dyn RequestHandler>,
    /// No connection in the queue came before this moment.
    oldest: Instant,
    /// A later moment, and how many connections were accepted since then.
    checkpoint: (Instant, usize),
    is_late: bool,
}

impl AcceptQueue {
    pub(super) fn new(handler: Arc<dyn RequestHandler>) -> Self {
        let now = Instant::now();
        Self { handler, oldest: now, checkpoint: (now, 0), is_late: false }
    }

    /// Accepts the next connection. If it may have waited for long, `accepts_late` is called before this returns.
    pub(super) async fn accept(&mut self, listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
        // A budget that is used up would look like an empty queue.
        let mut accepting = pin!(unconstrained(listener.accept()));
        let mut was_empty = false;
        let accepted = poll_fn(|context| {
            let polled = accepting.as_mut().poll(context);
            if polled.is_pending() {
                was_empty = true;
                self.empty();
            }
            polled
        });
        let accepted = accepted.await;
        if was_empty {
            self.empty();
        }
        if accepted.is_ok() {
            self.accepted();
        }
        self.check();
        accepted
    }

    /// Tells the handler if connections may have waited for long.
    pub(super) fn check(&mut self) {
        let waited = self.oldest.elapsed();
        if waited > WAIT_LATE {
            self.is_late = true;
            self.handler.accepts_late(waited, false);
        }
    }

    fn empty(&mut self) {
        if std::mem::take(&mut self.is_late) {
            self.handler.accepts_late(self.oldest.elapsed(), true);
        }
        let now = Instant::now();
        self.oldest = now;
        self.checkpoint = (now, 0);
    }

    fn accepted(&mut self) {
        self.checkpoint.1 += 1;
        if self.checkpoint.1 > QUEUE_MAX {
            self.oldest = self.checkpoint.0;
            self.checkpoint = (Instant::now(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PendingRequest;
    use futures_util::FutureExt;
    use hyper::http::request::Parts;
    use std::sync::Mutex;
    use tokio::time::advance;

    /// Keeps the reports of late connections, in seconds.
    #[derive(Default)]
    struct Reports(Mutex<Vec<(u64, bool)>>);

    impl RequestHandler for Reports {
        fn begin(&self, _: Parts) -> Box<dyn PendingRequest> {
            unreachable!("no request is read")
        }

        fn has_one_tenant(&self) -> bool {
            true
        }

        fn needs_no_key(&self) -> bool {
            false
        }

        fn accepts_late(&self, waited: Duration, is_over: bool) {
            self.0.lock().unwrap().push((waited.as_secs(), is_over));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_waited_behind_others_is_reported_until_the_queue_is_empty() {
        let reports = Arc::new(Reports::default());
        let reported = || std::mem::take(&mut *reports.0.lock().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut queue = AcceptQueue::new(Arc::clone(&reports) as Arc<dyn RequestHandler>);
        let mut callers = vec![TcpStream::connect(address).await.unwrap()];
        queue.accept(&listener).await.unwrap();
        for _ in 0..2 {
            callers.push(TcpStream::connect(address).await.unwrap());
        }
        advance(Duration::from_secs(1)).await;
        queue.check();
        assert_eq!(reported(), [], "a short wait changes nothing");
        advance(Duration::from_secs(2)).await;
        queue.accept(&listener).await.unwrap();
        assert_eq!(reported(), [(3, false)]);
        advance(Duration::from_secs(1)).await;
        queue.accept(&listener).await.unwrap();
        assert_eq!(reported(), [(4, false)], "it came as early as the one before");
        assert!(queue.accept(&listener).now_or_never().is_none());
        assert_eq!(reported(), [(4, true)]);
        advance(Duration::from_secs(3600)).await;
        queue.check();
        assert_eq!(reported(), [(3600, false)], "nothing was accepted for an hour");
    }

    /// A busy queue is never seen empty, although each connection waits for a moment only.
    #[tokio::test(start_paused = true)]
    async fn connections_that_come_faster_than_the_queue_is_seen_empty_do_not_count_as_late() {
        let reports = Arc::new(Reports::default());
        let mut queue = AcceptQueue::new(Arc::clone(&reports) as Arc<dyn RequestHandler>);
        for _ in 0..100 {
            for _ in 0..QUEUE_MAX / 4 {
                queue.accepted();
            }
            advance(Duration::from_millis(100)).await;
            queue.check();
        }
        assert_eq!(*reports.0.lock().unwrap(), []);
    }
}
