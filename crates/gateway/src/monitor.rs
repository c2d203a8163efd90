//! What people look through who want to see a node at work: one picture each second for all who watch, made by one task as one text;
//! samples of the last hour; and the alerts. Nothing here changes an order.

mod alerts;
mod announce;
mod facts;
mod history;
mod latencies;
mod marks;
mod oldest;
mod settings;

pub use announce::Announcement;
pub(crate) use facts::{Facts, Phases};
pub(crate) use history::Sample;
pub(crate) use latencies::{Latencies, SECONDS};
pub use settings::{AlertSettings, ShownSetting, Webhook};

use crate::OrderService;
use alerts::Post;
use bytes::Bytes;
use facts::Looks;
use history::History;
use quittance_lifecycle::Timestamp;
use quittance_ports::{Account, AlertNote};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, MissedTickBehavior};

/// For how long after a failed write the store counts as away.
pub(crate) const STORE_TROUBLE: Duration = Duration::from_secs(10);
/// How often whoever watches is shown a new picture.
const PICTURE_SPAN: Duration = Duration::from_secs(1);
/// Over which the time that answers take is told.
const LATENCY_SPAN: Duration = Duration::from_secs(300);
/// How often the provider is asked for the account: while somebody watches, and while nobody does.
const ACCOUNT_SPAN: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(300));
/// How often a node that does not raise alerts looks at the account.
const ACCOUNT_SPAN_ELSE: Duration = Duration::from_secs(1800);
/// How many alerts may wait for whoever passes them on.
const ANNOUNCED_MAX: usize = 64;

/// Clones share it.
#[derive(Clone)]
pub struct Monitor {
    inner: Arc<Inner>,
}

struct Inner {
    orders: OrderService,
    settings: AlertSettings,
    store: Option<&'static str>,
    started: Timestamp,
    /// Whoever holds it is looking; the others wait for what he sees.
    seen: tokio::sync::Mutex<Seen>,
    pictures: watch::Sender<Bytes>,
    is_painting: AtomicBool,
    is_closed: AtomicBool,
    account: Mutex<(Option<Instant>, Option<Account>)>,
    announced: broadcast::Sender<Announcement>,
}

/// What was seen so far.
struct Seen {
    looks: Looks,
    history: History,
    post: Post,
    picture: Option<(Instant, Bytes)>,
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lookout({} watch)", self.inner.pictures.receiver_count())
    }
}

impl Monitor {
    pub(crate) fn new(orders: OrderService, settings: AlertSettings, store: Option<&'static str>) -> Self {
        let seen = Seen {
            looks: Looks::default(),
            history: History::default(),
            post: Post::new(&settings.thresholds),
            picture: None,
        };
        let inner = Inner {
            started: orders.clock().now(),
            orders,
            settings,
            store,
            seen: tokio::sync::Mutex::new(seen),
            pictures: watch::Sender::new(Bytes::new()),
            is_painting: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            account: Mutex::default(),
            announced: broadcast::Sender::new(ANNOUNCED_MAX),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Takes samples, and looks after the alerts, until it is dropped. Without it, pictures are made for whoever asks for one, and
    /// nobody is ever told anything.
    pub async fn keep_watch(self) {
        let telling =
            announce::pass_on(self.inner.orders.webhooks().clone(), &self.inner.settings, self.announced());
        tokio::join!(self.look_again_and_again(), telling);
    }

    async fn look_again_and_again(&self) {
        let mut ticks = tokio::time::interval(self.inner.settings.look_span);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_first = true;
        loop {
            ticks.tick().await;
            let mut seen = self.inner.seen.lock().await;
            let is_watched = self.inner.pictures.receiver_count() > 0;
            self.look(&mut seen, is_watched).await;
            // Whoever is started and ended at once asks nobody for his account.
            if !std::mem::take(&mut is_first) {
                let span = if self.is_keeper(&seen) { ACCOUNT_SPAN.1 } else { ACCOUNT_SPAN_ELSE };
                self.ask_for_account(if is_watched { ACCOUNT_SPAN.0 } else { span });
            }
            self.tend(&mut seen).await;
        }
    }

    /// Every alert that is raised or cleared by this node from now on, for whoever passes them on.
    #[must_use]
    pub fn announced(&self) -> broadcast::Receiver<Announcement> {
        self.inner.announced.subscribe()
    }

    /// The picture of this moment, as JSON.
    pub(crate) async fn picture(&self) -> Bytes {
        let mut seen = self.inner.seen.lock().await;
        if let Some((_, picture)) = seen.picture.as_ref().filter(|(at, _)| at.elapsed() < PICTURE_SPAN / 2) {
            return picture.clone();
        }
        self.look(&mut seen, true).await;
        self.ask_for_account(ACCOUNT_SPAN.0);
        let picture = Bytes::from(crate::v1::picture(&self.facts(&seen)));
        seen.picture = Some((Instant::now(), picture.clone()));
        picture
    }

    /// Pictures as they are made, the first of them at once; each is a whole event of a stream.
    pub(crate) fn watch(&self) -> watch::Receiver<Bytes> {
        let pictures = self.inner.pictures.subscribe();
        if !self.inner.is_painting.swap(true, Ordering::AcqRel) {
            tokio::spawn(self.clone().paint());
        }
        pictures
    }

    /// Until nobody watches any more.
    async fn paint(self) {
        let mut ticks = tokio::time::interval(PICTURE_SPAN);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if self.inner.pictures.receiver_count() == 0 || self.is_closed() {
                self.inner.is_painting.store(false, Ordering::Release);
                // Whoever came between the two has seen that somebody paints.
                let is_needed = self.inner.pictures.receiver_count() > 0 && !self.is_closed();
                if !is_needed || self.inner.is_painting.swap(true, Ordering::AcqRel) {
                    return;
                }
            }
            let picture = self.picture().await;
            let event = [b"event: now\ndata: ".as_slice(), &picture, b"\n\n"].concat();
            self.inner.pictures.send_replace(Bytes::from(event));
        }
    }

    /// Ends every stream.
    pub(crate) fn close(&self) {
        self.inner.is_closed.store(true, Ordering::Release);
        self.inner.pictures.send_modify(|_| {});
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.inner.is_closed.load(Ordering::Acquire)
    }

    /// How far apart the samples are, and all of them.
    pub(crate) async fn history(&self) -> (Duration, Vec<Sample>) {
        let seen = self.inner.seen.lock().await;
        (self.inner.settings.look_span, seen.history.samples())
    }

    /// Every alert that stands or has stood a while ago, the latest first.
    pub(crate) async fn alerts(&self) -> Vec<AlertNote> {
        let mut seen = self.inner.seen.lock().await;
        self.look(&mut seen, true).await;
        seen.post.all(&seen.looks.documents)
    }

    async fn look(&self, seen: &mut Seen, is_watched: bool) {
        let Inner { orders, settings, .. } = &*self.inner;
        let Seen { looks, history, .. } = seen;
        looks.look(orders, history, is_watched).await;
        let latencies = orders.hub().latencies();
        history.sample(orders.clock().now(), settings.look_span, looks.order_counts, looks.saved, latencies);
    }

    fn facts<'a>(&'a self, seen: &'a Seen) -> Facts<'a> {
        let Inner { orders, store, started, .. } = &*self.inner;
        let Seen { looks, history, post, .. } = seen;
        let (engine, now) = (orders.engine(), orders.clock().now());
        let (phases, is_sampled) = looks.phases();
        let (lately, lately_span) = history.lately();
        let own = looks.members.nodes.iter().find(|signed| signed.node_status.node == engine.node());
        Facts {
            at: now,
            node: engine.node(),
            currency: engine.currency(),
            name: own.map(|signed| signed.node_status.name.clone()).unwrap_or_default(),
            started: own.map_or(*started, |signed| signed.node_status.started),
            store: *store,
            // One that can be read and not written is not up: readiness says the same.
            store_is_up: looks.store_is_up && !engine.store_was_away(STORE_TROUBLE),
            order_counts: looks.order_counts,
            phases,
            is_sampled,
            lately,
            lately_span,
            latency: orders.hub().latencies().within(now, LATENCY_SPAN),
            sample: history.newest(),
            today: looks.today,
            saved: looks.saved,
            account: self.account().1,
            provider: (engine.provider_name(), engine.provider_state()),
            pools: engine.pools_among(&looks.documents, &looks.members),
            members: &looks.members,
            alerts: post.all(&looks.documents),
            bulks: looks.bulks(),
        }
    }

    /// Asks for it beside all else: a provider that is slow holds up nobody.
    fn ask_for_account(&self, span: Duration) {
        {
            let mut account = self.account();
            if account.0.is_some_and(|asked| asked.elapsed() < span) {
                return;
            }
            account.0 = Some(Instant::now());
        }
        let monitor = self.clone();
        drop(tokio::spawn(async move {
            let told = monitor.inner.orders.account().await;
            monitor.account().1 = told;
        }));
    }

    fn account(&self) -> MutexGuard<'_, (Option<Instant>, Option<Account>)> {
        self.inner.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
