//! Reads the store for snapshots, no more often than needed. Each part has its own interval, which is longer while
//! the node is not watched, and grows with the cost of the read.

use super::history::{History, Sample};
use crate::account::KnownAccount;
use crate::latencies::LatencyPercentiles;
use crate::money;
use quittance_engine::{BudgetView, Engine, PoolView, ProviderView};
use quittance_lifecycle::{Counters, Phase, PriceSum, Timestamp};
use quittance_ports::{
    AlertNote, BulkDocument, Day, Members, OrderCounts, SharedDocument, StoreError, StoredDocument, Which,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use utoipa::ToSchema;

/// The timeout after which the store counts as down.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);
/// How many open orders are read to count their phases. Keys are digests, so the first orders are a fair sample.
const PHASES_MAX: usize = 1000;
/// Reads of one part take at most one in `THROTTLE` of the time.
const THROTTLE: u32 = 30;
/// How much earlier than due a part can be read, because ticks are not exact.
const TOLERANCE: Duration = Duration::from_millis(100);

/// The time between two reads of a part, while the node is watched and while it is not.
#[derive(Clone, Copy)]
struct Intervals {
    watched: Duration,
    unwatched: Duration,
}

const fn intervals(watched_s: u64, unwatched_s: u64) -> Intervals {
    Intervals { watched: Duration::from_secs(watched_s), unwatched: Duration::from_secs(unwatched_s) }
}

const USAGE: Intervals = intervals(1, 5);
const ORDER_COUNTS: Intervals = intervals(2, 15);
const MEMBERSHIP: Intervals = intervals(2, 5);
const BUDGETS: Intervals = intervals(5, 5);

/// How many open orders are in which phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenPhases {
    pub queued: u64,
    /// Orders that wait until a person fixes the provider's account.
    pub held: u64,
    pub submitting: u64,
    pub solving: u64,
    pub in_doubt: u64,
}

impl OpenPhases {
    fn count(&mut self, phase: &Phase) {
        match phase {
            phase if phase.is_held() => self.held += 1,
            Phase::Queued { .. } => self.queued += 1,
            Phase::Submitting { .. } => self.submitting += 1,
            Phase::Solving { .. } => self.solving += 1,
            Phase::InDoubt { .. } => self.in_doubt += 1,
            _ => {}
        }
    }

    /// Scales a sample of `counted` orders to `all` orders.
    fn scaled(self, counted: u64, all: u64) -> Self {
        let scale = |part: u64| {
            let scaled = u128::from(part) * u128::from(all) / u128::from(counted.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        Self {
            queued: scale(self.queued),
            held: scale(self.held),
            submitting: scale(self.submitting),
            solving: scale(self.solving),
            in_doubt: scale(self.in_doubt),
        }
    }
}

/// When a part was last read, and how long the read took.
#[derive(Debug, Default)]
struct LastRead(Option<(Instant, Duration)>);

impl LastRead {
    fn is_due(&self, intervals: Intervals, is_watched: bool) -> bool {
        let interval = if is_watched { intervals.watched } else { intervals.unwatched };
        self.0.is_none_or(|(read, took)| read.elapsed() + TOLERANCE >= interval.max(took * THROTTLE))
    }

    fn done(&mut self, began: Instant) {
        self.0 = Some((began, began.elapsed()));
    }
}

/// The last values, and when each part was read.
#[derive(Debug, Default)]
pub(super) struct StoreReader {
    usage_read: LastRead,
    order_counts_read: LastRead,
    phases_read: LastRead,
    membership_read: LastRead,
    budgets_read: LastRead,
    pub(super) store_is_up: bool,
    pub(super) today: Counters,
    pub(super) saved: PriceSum,
    pub(super) order_counts: OrderCounts,
    phases: OpenPhases,
    is_sampled: bool,
    pub(super) members: Members,
    pub(super) documents: Vec<StoredDocument>,
    pub(super) budgets: Vec<BudgetView>,
    /// Whether each part was ever read.
    pub(super) has_usage: bool,
    pub(super) has_order_counts: bool,
    pub(super) has_membership: bool,
    pub(super) has_budgets: bool,
}

impl StoreReader {
    /// Reads the parts that are due. If the store does not answer, the last values stay.
    pub(super) async fn read(&mut self, engine: &Engine, history: &mut History, is_watched: bool) {
        let reading = self.read_due_parts(engine, history, is_watched);
        self.store_is_up = timeout(STORE_TIMEOUT, reading).await.is_ok_and(|read| read.is_ok());
    }

    /// Makes the next call read the membership, because its documents have changed.
    pub(super) fn membership_has_changed(&mut self) {
        self.membership_read = LastRead::default();
    }

    async fn read_due_parts(
        &mut self,
        engine: &Engine,
        history: &mut History,
        is_watched: bool,
    ) -> Result<(), StoreError> {
        let (now, began) = (engine.now(), Instant::now());
        if self.usage_read.is_due(USAGE, is_watched) {
            let today = Day::of(now);
            let usage = engine.usage(history.day(today), today).await?;
            let mut rows = money::in_currency(usage, engine.currency());
            let (mut sum, mut before) = (Counters::default(), Counters::default());
            rows.iter().for_each(|(row, counters)| {
                *(if row.day == today { &mut sum } else { &mut before }) += *counters;
            });
            rows.retain(|(row, _)| row.day == today);
            (self.today, self.saved, self.has_usage) = (sum, money::saved(&rows), true);
            history.note(now, sum, before);
            self.usage_read.done(began);
        }
        let began = Instant::now();
        if self.membership_read.is_due(MEMBERSHIP, is_watched) {
            let membership = engine.membership();
            (self.members, self.documents) = (membership.members().await?, membership.documents().await?);
            self.has_membership = true;
            self.membership_read.done(began);
        }
        let began = Instant::now();
        if self.budgets_read.is_due(BUDGETS, is_watched) {
            self.budgets = engine.budget_views().await?;
            self.has_budgets = true;
            self.budgets_read.done(began);
        }
        let began = Instant::now();
        // Phases are for watchers only, and are scaled to the number of open orders.
        let has_phases = is_watched && self.phases_read.is_due(ORDER_COUNTS, is_watched);
        if has_phases || self.order_counts_read.is_due(ORDER_COUNTS, is_watched) {
            self.order_counts = engine.order_counts().await?;
            self.has_order_counts = true;
            self.order_counts_read.done(began);
        }
        if has_phases {
            self.count_phases(engine).await?;
            self.phases_read.done(began);
        }
        Ok(())
    }

    async fn count_phases(&mut self, engine: &Engine) -> Result<(), StoreError> {
        let open = engine.list(Which::OPEN, None, PHASES_MAX).await?;
        let mut phases = OpenPhases::default();
        open.iter().flatten().for_each(|found| phases.count(&found.order.phase));
        let counted = open.len() as u64;
        self.is_sampled = counted == PHASES_MAX as u64 && self.order_counts.open > counted;
        self.phases = if self.is_sampled { phases.scaled(counted, self.order_counts.open) } else { phases };
        Ok(())
    }
}

/// The data of a snapshot.
#[derive(Debug)]
pub struct SnapshotData<'a> {
    pub at: Timestamp,
    pub node: u64,
    pub name: String,
    pub started: Timestamp,
    pub store: Option<&'static str>,
    pub store_is_up: bool,
    pub order_counts: OrderCounts,
    pub phases: OpenPhases,
    pub is_sampled: bool,
    /// The usage of the last `recent_period`.
    pub recent: Counters,
    /// The period of `recent`.
    pub recent_period: Duration,
    pub latency: LatencyPercentiles,
    pub sample: Option<Sample>,
    pub today: Counters,
    pub saved: PriceSum,
    pub currency: &'a str,
    pub accounts: Vec<KnownAccount>,
    pub providers: Vec<ProviderView>,
    pub pools: Vec<PoolView>,
    pub members: &'a Members,
    pub alerts: Vec<AlertNote>,
    pub bulks: Vec<&'a BulkDocument>,
}

impl StoreReader {
    pub(super) const fn phases(&self) -> (OpenPhases, bool) {
        (self.phases, self.is_sampled)
    }

    pub(super) fn bulks(&self) -> Vec<&BulkDocument> {
        let bulks = self.documents.iter().filter_map(|found| match &found.document {
            SharedDocument::Bulk(bulk) if bulk.ended.is_none() => Some(bulk),
            _ => None,
        });
        bulks.collect()
    }
}
