//! Monitors a node: one snapshot each second for all watchers, made once as text; samples of the last hour; and the
//! alerts.

mod alert_keeper;
mod announcement;
mod history;
mod marks;
mod oldest_dead_letter;
mod settings;
mod store_reader;

pub use announcement::Announcement;
pub use history::Sample;
pub use settings::{AlertSettings, AlertWebhook};
pub use store_reader::{OpenPhases, SnapshotData};

use crate::account::{AccountCaches, KnownAccount};
use crate::alert::Thresholds;
use crate::latencies::Latencies;
use alert_keeper::AlertKeeper;
use bytes::Bytes;
use history::History;
use quittance_engine::Engine;
use quittance_lifecycle::Timestamp;
use quittance_ports::AlertNote;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store_reader::StoreReader;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, MissedTickBehavior};

/// How long the store counts as down after a failed write.
pub const STORE_ERROR_PERIOD: Duration = Duration::from_secs(10);
/// Time between two snapshots of a stream.
const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(1);
/// The period of the latencies in a snapshot.
const LATENCY_PERIOD: Duration = Duration::from_secs(300);
/// The time between two reads of the providers' accounts while the node is watched.
const ACCOUNT_INTERVAL_WATCHED: Duration = Duration::from_secs(60);
/// The time between two reads on an unwatched node that keeps the alerts.
const ACCOUNT_INTERVAL_KEEPER: Duration = Duration::from_secs(300);
/// The time between two reads on any other node.
const ACCOUNT_INTERVAL: Duration = Duration::from_secs(1800);
/// How many announcements may wait for a slow receiver.
const ANNOUNCED_MAX: usize = 64;

/// The sources of the monitor.
#[derive(Clone, Debug)]
pub struct MonitorSources {
    pub engine: Arc<Engine>,
    pub accounts: AccountCaches,
    /// Fed by the commits of this node.
    pub latencies: Arc<Latencies>,
    /// The kind of the store, for the snapshot.
    pub store: Option<&'static str>,
}

/// The monitor of a node. Clones share its state.
#[derive(Clone)]
pub struct Monitor {
    inner: Arc<Inner>,
}

struct Inner {
    sources: MonitorSources,
    settings: AlertSettings,
    /// Writes a snapshot as JSON.
    render: fn(&SnapshotData<'_>) -> String,
    started: Timestamp,
    /// One task reads the store at a time; the other tasks wait for the result.
    state: tokio::sync::Mutex<MonitorState>,
    /// The newest event of the snapshot stream.
    events: watch::Sender<Bytes>,
    is_publishing: AtomicBool,
    /// When the accounts of the providers were last requested, and their values.
    accounts: Mutex<(Option<Instant>, Vec<KnownAccount>)>,
    announced: broadcast::Sender<Announcement>,
}

/// What the monitor has read so far.
struct MonitorState {
    reader: StoreReader,
    history: History,
    keeper: AlertKeeper,
    snapshot: Option<(Instant, Bytes)>,
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Monitor({} streams)", self.inner.events.receiver_count())
    }
}

impl Monitor {
    /// A monitor whose snapshots `render` writes as JSON.
    #[must_use]
    pub fn new(
        sources: MonitorSources,
        settings: AlertSettings,
        render: fn(&SnapshotData<'_>) -> String,
    ) -> Self {
        let state = MonitorState {
            reader: StoreReader::default(),
            history: History::default(),
            keeper: AlertKeeper::new(&settings.thresholds),
            snapshot: None,
        };
        let inner = Inner {
            started: sources.engine.now(),
            sources,
            settings,
            render,
            state: tokio::sync::Mutex::new(state),
            events: watch::Sender::new(Bytes::new()),
            is_publishing: AtomicBool::new(false),
            accounts: Mutex::default(),
            announced: broadcast::Sender::new(ANNOUNCED_MAX),
        };
        Self { inner: Arc::new(inner) }
    }

    #[must_use]
    pub fn sources(&self) -> &MonitorSources {
        &self.inner.sources
    }

    #[must_use]
    pub fn settings(&self) -> &AlertSettings {
        &self.inner.settings
    }

    /// Judges alerts by these thresholds from now on.
    pub async fn set_thresholds(&self, thresholds: &Thresholds) {
        self.inner.state.lock().await.keeper.set_thresholds(thresholds);
    }

    /// Takes samples and evaluates the alert rules until the future is dropped. Without this, snapshots are made on
    /// request, and no alert is raised.
    pub async fn run(self) {
        let mut ticks = tokio::time::interval(self.inner.settings.sample_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_first = true;
        loop {
            ticks.tick().await;
            let mut state = self.inner.state.lock().await;
            let is_watched = self.inner.events.receiver_count() > 0;
            self.refresh(&mut state, is_watched).await;
            // A process that ends at once does not ask for the account.
            if !std::mem::take(&mut is_first) {
                self.request_accounts(match (is_watched, self.is_keeper(&state)) {
                    (true, _) => ACCOUNT_INTERVAL_WATCHED,
                    (false, true) => ACCOUNT_INTERVAL_KEEPER,
                    (false, false) => ACCOUNT_INTERVAL,
                });
            }
            self.evaluate_rules(&mut state).await;
        }
    }

    /// Receives every alert that this node raises or clears from now on.
    #[must_use]
    pub fn announced(&self) -> broadcast::Receiver<Announcement> {
        self.inner.announced.subscribe()
    }

    /// A snapshot of the node as JSON, at most half a second old.
    pub async fn snapshot(&self) -> Bytes {
        let mut state = self.inner.state.lock().await;
        if let Some((_, snapshot)) =
            state.snapshot.as_ref().filter(|(at, _)| at.elapsed() < SNAPSHOT_INTERVAL / 2)
        {
            return snapshot.clone();
        }
        self.refresh(&mut state, true).await;
        self.request_accounts(ACCOUNT_INTERVAL_WATCHED);
        let snapshot = Bytes::from((self.inner.render)(&self.snapshot_data(&state)));
        state.snapshot = Some((Instant::now(), snapshot.clone()));
        snapshot
    }

    /// Receives a snapshot each second, each as a whole server-sent event.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Bytes> {
        let events = self.inner.events.subscribe();
        if !self.inner.is_publishing.swap(true, Ordering::AcqRel) {
            tokio::spawn(self.clone().publish_snapshots());
        }
        events
    }

    /// Runs until the last watcher is gone.
    async fn publish_snapshots(self) {
        let mut ticks = tokio::time::interval(SNAPSHOT_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if self.inner.events.receiver_count() == 0 {
                self.inner.is_publishing.store(false, Ordering::Release);
                // A watcher that came in between has seen that this task runs, and relies on it.
                let is_needed = self.inner.events.receiver_count() > 0;
                if !is_needed || self.inner.is_publishing.swap(true, Ordering::AcqRel) {
                    return;
                }
            }
            let snapshot = self.snapshot().await;
            let event = [b"event: now\ndata: ".as_slice(), &snapshot, b"\n\n"].concat();
            self.inner.events.send_replace(Bytes::from(event));
        }
    }

    /// The time between two samples, and the samples of the last hour, oldest first.
    pub async fn history(&self) -> (Duration, Vec<Sample>) {
        let state = self.inner.state.lock().await;
        (self.inner.settings.sample_interval, state.history.samples())
    }

    /// The active alerts and those cleared within a day, newest first.
    pub async fn alerts(&self) -> Vec<AlertNote> {
        let mut state = self.inner.state.lock().await;
        self.refresh(&mut state, true).await;
        state.keeper.all(&state.reader.documents)
    }

    /// The accounts of the providers, at most half a minute old.
    pub(crate) async fn read_accounts(&self) -> Vec<KnownAccount> {
        let MonitorSources { accounts, engine, .. } = &self.inner.sources;
        let accounts = accounts.read_all(engine.now()).await;
        for known in &accounts {
            if let Some(account) = known.account {
                engine.note_threads(&known.provider, account.threads);
            }
        }
        accounts
    }

    /// Reads what is due from the store, and adds a sample if one is due.
    async fn refresh(&self, state: &mut MonitorState, is_watched: bool) {
        let Inner { sources: MonitorSources { engine, latencies, .. }, settings, .. } = &*self.inner;
        let MonitorState { reader, history, .. } = state;
        reader.read(engine, history, is_watched).await;
        let interval = settings.sample_interval;
        history.add_sample(engine.now(), interval, reader.order_counts, reader.saved, latencies);
    }

    fn snapshot_data<'a>(&'a self, state: &'a MonitorState) -> SnapshotData<'a> {
        let Inner { sources, started, .. } = &*self.inner;
        let MonitorState { reader, history, keeper, .. } = state;
        let (engine, now) = (&*sources.engine, sources.engine.now());
        let (phases, is_sampled) = reader.phases();
        let (recent, recent_period) = history.recent();
        let own = reader.members.nodes.iter().find(|member| member.node_status.node == engine.node());
        SnapshotData {
            at: now,
            node: engine.node(),
            currency: engine.currency(),
            name: own.map(|member| member.node_status.name.clone()).unwrap_or_default(),
            started: own.map_or(*started, |member| member.node_status.started),
            store: sources.store,
            // A store that can be read but not written is down, as for `/readyz`.
            store_is_up: reader.store_is_up && !engine.store_was_away(STORE_ERROR_PERIOD),
            order_counts: reader.order_counts,
            phases,
            is_sampled,
            recent,
            recent_period,
            latency: sources.latencies.within(now, LATENCY_PERIOD),
            sample: history.newest(),
            today: reader.today,
            saved: reader.saved,
            accounts: self.accounts().1.clone(),
            providers: engine.provider_views_among(&reader.documents),
            pools: engine.pools_among(&reader.documents, &reader.members),
            members: &reader.members,
            alerts: keeper.all(&reader.documents),
            bulks: reader.bulks(),
        }
    }

    /// Reads the accounts in a separate task, so that a slow provider delays nothing.
    fn request_accounts(&self, interval: Duration) {
        {
            let mut accounts = self.accounts();
            if accounts.0.is_some_and(|requested| requested.elapsed() < interval) {
                return;
            }
            accounts.0 = Some(Instant::now());
        }
        let monitor = self.clone();
        drop(tokio::spawn(async move {
            let read = monitor.read_accounts().await;
            monitor.accounts().1 = read;
        }));
    }

    fn accounts(&self) -> MutexGuard<'_, (Option<Instant>, Vec<KnownAccount>)> {
        self.inner.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
