//! Sends spans to a collector (OTLP over HTTP), in batches. No order waits for it: if the collector is slow or down, spans are
//! dropped and counted.

use super::{Placing, Span, TraceParent, encode, handed_out, news_of, placed};
use bytes::Bytes;
use hyper::Uri;
use quittance_lifecycle::{Order, Origin, Timestamp};
use quittance_wire::call::HttpCaller;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

/// How many batches may wait to be sent; more are dropped.
const WAITING_MAX: usize = 4096;
/// How many spans are sent at once.
const BATCH_MAX: usize = 512;
/// How long the first span of a batch can wait for others.
const BATCH_WAIT: Duration = Duration::from_secs(1);
/// How long sending one batch may take.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct TraceSettings {
    /// Address of the collector, such as `http://127.0.0.1:4318/v1/traces`.
    pub collector: Uri,
    /// Name of this node.
    pub node: String,
}

/// A message to the exporter. It holds spans and no orders: the queue is bounded by number, and an order can contain
/// an image.
enum Message {
    Spans(Vec<Span>),
    /// A request for a signal when all earlier spans have been sent.
    Finish(oneshot::Sender<()>),
}

/// The exporter. Clones share it.
#[derive(Clone)]
pub struct Traces {
    queue: Sender<Message>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    ids: AtomicU64,
    sent: AtomicU64,
    dropped: AtomicU64,
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Traces({} sent, {} dropped)", self.sent(), self.dropped())
    }
}

impl Traces {
    /// Spawns the task that sends spans; it ends with the last clone.
    #[must_use]
    pub fn start(settings: TraceSettings) -> Self {
        let (queue, messages) = channel(WAITING_MAX);
        let counts = Arc::<Counts>::default();
        let exporter =
            Exporter { settings, caller: HttpCaller::default(), counts: Arc::clone(&counts), is_down: false };
        tokio::spawn(exporter.run(messages));
        Self { queue, counts }
    }

    #[must_use]
    pub fn sent(&self) -> u64 {
        self.counts.sent.load(Ordering::Relaxed)
    }

    /// Spans that could not be sent.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }

    /// Exports the spans of a commit, if it completes any.
    pub fn note(&self, order: &Order) {
        let spans = news_of(order, quittance_protocol::kinds::label(&order.terms.kind));
        if !spans.is_empty() {
            self.enqueue(spans);
        }
    }

    /// Begins the span of a placement. `trace_parent` is the caller's `traceparent` header; an invalid one is ignored.
    #[must_use]
    pub fn placing(&self, trace_parent: &str, now: Timestamp) -> Placing {
        let id = self.unique_id();
        let caller = TraceParent::parse(trace_parent).unwrap_or_else(|| {
            let (mut trace, more) = ([0; 16], self.unique_id());
            trace[..8].copy_from_slice(&id);
            trace[8..].copy_from_slice(&more);
            TraceParent { trace, span: [0; 8], is_sampled: true }
        });
        Placing { caller, id, start: now }
    }

    /// Ends the span of a placement, with its order or its error.
    pub fn placed(
        &self,
        placing: &Placing,
        kind: &str,
        outcome: Result<(&Order, Origin), &str>,
        now: Timestamp,
    ) {
        if placing.caller.is_sampled {
            self.enqueue(vec![placed(placing, quittance_protocol::kinds::label(kind), outcome, now)]);
        }
    }

    /// Adds the span of a hand-out; `above` is its placement, if it belongs to one.
    pub fn handed_out(&self, order: &Order, above: Option<TraceParent>, start: Timestamp, now: Timestamp) {
        let nonce = u64::from_le_bytes(self.unique_id());
        if let Some(span) = handed_out(order, above, (start, now), nonce) {
            self.enqueue(vec![span]);
        }
    }

    /// Returns when all spans so far are sent or dropped.
    pub async fn finish(&self) {
        let (done, finished) = oneshot::channel();
        if self.queue.send(Message::Finish(done)).await.is_ok() {
            // If the task has ended, there is nothing to wait for.
            _ = finished.await;
        }
    }

    /// An id that is unique in this process, and almost certainly elsewhere.
    fn unique_id(&self) -> [u8; 8] {
        use std::hash::{BuildHasher, RandomState};
        let count = self.counts.ids.fetch_add(1, Ordering::Relaxed);
        RandomState::new().hash_one(count).max(1).to_le_bytes()
    }

    fn enqueue(&self, spans: Vec<Span>) {
        let count = spans.len() as u64;
        if self.queue.try_send(Message::Spans(spans)).is_err() {
            self.counts.dropped.fetch_add(count, Ordering::Relaxed);
        }
    }
}

struct Exporter {
    settings: TraceSettings,
    caller: HttpCaller,
    counts: Arc<Counts>,
    is_down: bool,
}

impl Exporter {
    async fn run(mut self, mut messages: Receiver<Message>) {
        while let Some(first) = messages.recv().await {
            let (mut spans, mut finish) = (Vec::new(), None);
            let gathering = async {
                let mut next = Some(first);
                while let Some(message) = next {
                    match message {
                        Message::Spans(more) => spans.extend(more),
                        Message::Finish(done) => return finish = Some(done),
                    }
                    if spans.len() >= BATCH_MAX {
                        return;
                    }
                    next = messages.recv().await;
                }
            };
            _ = tokio::time::timeout(BATCH_WAIT, gathering).await;
            self.send(&spans).await;
            if let Some(finish) = finish {
                // The receiver may no longer wait.
                _ = finish.send(());
            }
        }
    }

    async fn send(&mut self, spans: &[Span]) {
        if spans.is_empty() {
            return;
        }
        let TraceSettings { collector, node } = &self.settings;
        let body = Bytes::from(encode(node, env!("CARGO_PKG_VERSION"), spans));
        let sent = tokio::time::timeout(SEND_TIMEOUT, self.caller.post_json(collector, body)).await;
        let error = match sent {
            Ok(Ok(status)) if status.is_success() => None,
            Ok(Ok(status)) => Some(format!("its response is {status}")),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {} s", SEND_TIMEOUT.as_secs())),
        };
        let count = if error.is_none() { &self.counts.sent } else { &self.counts.dropped };
        count.fetch_add(spans.len() as u64, Ordering::Relaxed);
        // Log a change only, not every batch.
        match &error {
            Some(error) if !self.is_down => {
                tracing::warn!(
                    "the collector of traces does not accept spans, and they are dropped: {error}. Check traces.url"
                );
            }
            None if self.is_down => tracing::info!("the collector accepts spans again"),
            _ => {}
        }
        self.is_down = error.is_some();
    }
}
