//! Traces: what the stories of orders tell, sent to whoever collects traces (OTLP over HTTP), in batches. Nobody waits for it:
//! where the collector is slow or away, traces are left out and counted, and orders go on as ever.

use crate::webhooks::Caller;
use bytes::Bytes;
use hyper::Uri;
use quittance_lifecycle::{Order, Origin, Timestamp};
use quittance_trace::{Placing, Span, TraceParent, encode, handed_out, news_of, placed};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

/// How much may wait to be sent; the rest is left out.
const WAITING_MAX: usize = 4096;
/// How much is sent at once, and how long the first may wait for others.
const BATCH_MAX: usize = 512;
const BATCH_SPAN: Duration = Duration::from_secs(1);
/// How long one batch may take to be sent.
const SEND_WAIT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct TraceSettings {
    /// Where spans are sent: `http://127.0.0.1:4318/v1/traces`, say.
    pub collector: Uri,
    /// What people call this node.
    pub node: String,
}

/// Spans, and not the orders that they tell of: what waits here is bounded in number, and an order may hold a picture.
enum TraceBatch {
    Spans(Vec<Span>),
    /// Whoever waits until all that was told before has been sent.
    Finish(oneshot::Sender<()>),
}

/// Clones share it.
#[derive(Clone)]
pub struct Traces {
    queue: Sender<TraceBatch>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    drawn: AtomicU64,
    sent: AtomicU64,
    left_out: AtomicU64,
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Traces({} sent, {} left out)", self.sent(), self.left_out())
    }
}

impl Traces {
    /// Spawns the one task that sends them; it ends with the last clone.
    #[must_use]
    pub fn start(settings: TraceSettings) -> Self {
        let (queue, told) = channel(WAITING_MAX);
        let counts = Arc::<Counts>::default();
        let sending =
            Sending { settings, caller: Caller::new(), counts: Arc::clone(&counts), is_away: false };
        tokio::spawn(sending.run(told));
        Self { queue, counts }
    }

    #[must_use]
    pub fn sent(&self) -> u64 {
        self.counts.sent.load(Ordering::Relaxed)
    }

    /// Those that nobody could be sent.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.counts.left_out.load(Ordering::Relaxed)
    }

    /// An order was written.
    pub(crate) fn note(&self, order: &Order) {
        let spans = news_of(order, quittance_protocol::kinds::label(&order.terms.kind));
        if !spans.is_empty() {
            self.tell(spans);
        }
    }

    /// A caller comes to place an order, and says this of himself.
    pub(crate) fn placing(&self, caller: &str, now: Timestamp) -> Placing {
        let id = self.draw();
        let caller = TraceParent::parse(caller).unwrap_or_else(|| {
            let (mut trace, more) = ([0; 16], self.draw());
            trace[..8].copy_from_slice(&id);
            trace[8..].copy_from_slice(&more);
            TraceParent { trace, span: [0; 8], is_sampled: true }
        });
        Placing { caller, id, start: now }
    }

    pub(crate) fn placed(
        &self,
        placing: &Placing,
        kind: &str,
        outcome: Result<(&Order, Origin), &str>,
        now: Timestamp,
    ) {
        if placing.caller.is_sampled {
            self.tell(vec![placed(placing, quittance_protocol::kinds::label(kind), outcome, now)]);
        }
    }

    /// `above` is the placement in the middle of which he was given it.
    pub(crate) fn handed_out(
        &self,
        order: &Order,
        above: Option<TraceParent>,
        start: Timestamp,
        now: Timestamp,
    ) {
        let nonce = u64::from_le_bytes(self.draw());
        if let Some(span) = handed_out(order, above, (start, now), nonce) {
            self.tell(vec![span]);
        }
    }

    /// Returns when all that was told before has been sent, or left out.
    pub async fn finish(&self) {
        let (done, finished) = oneshot::channel();
        if self.queue.send(TraceBatch::Finish(done)).await.is_ok() {
            // Whoever sends is gone: then nothing can be waited for.
            _ = finished.await;
        }
    }

    /// A name that no other span of this process has, and hardly one of any other.
    fn draw(&self) -> [u8; 8] {
        use std::hash::{BuildHasher, RandomState};
        let count = self.counts.drawn.fetch_add(1, Ordering::Relaxed);
        RandomState::new().hash_one(count).max(1).to_le_bytes()
    }

    fn tell(&self, spans: Vec<Span>) {
        let count = spans.len() as u64;
        if self.queue.try_send(TraceBatch::Spans(spans)).is_err() {
            self.counts.left_out.fetch_add(count, Ordering::Relaxed);
        }
    }
}

struct Sending {
    settings: TraceSettings,
    caller: Caller,
    counts: Arc<Counts>,
    is_away: bool,
}

impl Sending {
    async fn run(mut self, mut told: Receiver<TraceBatch>) {
        while let Some(first) = told.recv().await {
            let (mut spans, mut finish) = (Vec::new(), None);
            let gathering = async {
                let mut next = Some(first);
                while let Some(told_next) = next {
                    match told_next {
                        TraceBatch::Spans(more) => spans.extend(more),
                        TraceBatch::Finish(done) => return finish = Some(done),
                    }
                    if spans.len() >= BATCH_MAX {
                        return;
                    }
                    next = told.recv().await;
                }
            };
            // Whoever is alone is not kept waiting for company for long.
            _ = tokio::time::timeout(BATCH_SPAN, gathering).await;
            self.send(&spans).await;
            if let Some(finish) = finish {
                // Who no longer waits needs no word.
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
        let sent = tokio::time::timeout(SEND_WAIT, self.caller.post(collector, body)).await;
        let why = match sent {
            Ok(Ok(status)) if status.is_success() => None,
            Ok(Ok(status)) => Some(format!("it answers {status}")),
            Ok(Err(trouble)) => Some(trouble.to_string()),
            Err(_) => Some(format!("no answer within {} s", SEND_WAIT.as_secs())),
        };
        let count = if why.is_none() { &self.counts.sent } else { &self.counts.left_out };
        count.fetch_add(spans.len() as u64, Ordering::Relaxed);
        // Once, and not with every batch.
        match &why {
            Some(why) if !self.is_away => {
                tracing::warn!("traces are left out until the collector takes them again: {why}");
            }
            None if self.is_away => tracing::info!("the collector takes traces again"),
            _ => {}
        }
        self.is_away = why.is_some();
    }
}
