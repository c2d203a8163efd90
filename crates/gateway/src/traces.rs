//! Traces: what the stories of orders tell, sent to whoever collects traces (OTLP over HTTP), in batches. Nobody waits for it:
//! where the collector is slow or away, traces are left out and counted, and orders go on as ever.

use crate::outbound::Caller;
use bytes::Bytes;
use hyper::Uri;
use quittance_lifecycle::{Order, Timestamp};
use quittance_trace::{Span, TraceParent, encode, handed_out, is_worth_telling, placed, spans_of};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};

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

enum Told {
    Ended(Arc<Order>),
    Span(Box<Span>),
}

/// Clones share it.
#[derive(Clone)]
pub struct Traces {
    queue: Sender<Told>,
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

/// A placement that is being traced: its own name, which the order's trace stands below.
pub(crate) struct Placing {
    caller: TraceParent,
    id: [u8; 8],
    start: Timestamp,
}

impl Placing {
    /// What the order is told of whose part it is.
    pub(crate) fn trace(&self) -> String {
        TraceParent { span: self.id, ..self.caller }.to_string()
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
    pub(crate) fn note(&self, order: &Arc<Order>) {
        if is_worth_telling(order) {
            self.tell(Told::Ended(Arc::clone(order)));
        }
    }

    /// A caller comes to place an order. Nothing, if he wants no trace of it.
    pub(crate) fn placing(&self, caller: &str, now: Timestamp) -> Option<Placing> {
        let id = self.draw();
        let caller = TraceParent::parse(caller).unwrap_or_else(|| {
            let (mut trace, more) = ([0; 16], self.draw());
            trace[..8].copy_from_slice(&id);
            trace[8..].copy_from_slice(&more);
            TraceParent { trace, span: [0; 8], is_sampled: true }
        });
        caller.is_sampled.then_some(Placing { caller, id, start: now })
    }

    pub(crate) fn placed(
        &self,
        placing: &Placing,
        kind: &str,
        outcome: Result<&Order, &str>,
        now: Timestamp,
    ) {
        let span = placed(placing.caller, placing.id, kind, outcome, (placing.start, now));
        self.tell(Told::Span(Box::new(span)));
    }

    pub(crate) fn handed_out(&self, order: &Order, start: Timestamp, now: Timestamp) {
        let nonce = u64::from_le_bytes(self.draw());
        if let Some(span) = handed_out(order, start, now, nonce) {
            self.tell(Told::Span(Box::new(span)));
        }
    }

    /// A name that no other span of this process has, and hardly one of any other.
    fn draw(&self) -> [u8; 8] {
        use std::hash::{BuildHasher, RandomState};
        let count = self.counts.drawn.fetch_add(1, Ordering::Relaxed);
        RandomState::new().hash_one(count).max(1).to_le_bytes()
    }

    fn tell(&self, told: Told) {
        if self.queue.try_send(told).is_err() {
            self.counts.left_out.fetch_add(1, Ordering::Relaxed);
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
    async fn run(mut self, mut told: Receiver<Told>) {
        let mut batch = Vec::new();
        while let Some(first) = told.recv().await {
            batch.push(first);
            let more =
                async { while batch.len() < BATCH_MAX && told.recv_many(&mut batch, BATCH_MAX).await > 0 {} };
            // Whoever is alone is not kept waiting for company for long.
            _ = tokio::time::timeout(BATCH_SPAN, more).await;
            let spans: Vec<Span> = batch.drain(..).flat_map(spans).collect();
            self.send(&spans).await;
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

fn spans(told: Told) -> Vec<Span> {
    match told {
        Told::Ended(order) => spans_of(&order),
        Told::Span(span) => vec![*span],
    }
}
