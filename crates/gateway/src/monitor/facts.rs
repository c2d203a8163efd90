//! What is read from the store for whoever watches, no more often than it must be: each part has a span of its own, which is longer
//! while nobody watches, and grows with what the reading costs.

use super::history::{History, Sample};
use super::latencies::Spread;
use crate::OrderService;
use quittance_engine::{PoolView, ProviderState};
use quittance_lifecycle::{Counters, Phase, PriceSum, Timestamp};
use quittance_ports::{
    Account, AlertNote, BulkDocument, Day, Members, OrderCounts, SharedDocument, StoredDocument, Which,
};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long the store may take before whoever watches is told that it is away.
const STORE_WAIT: Duration = Duration::from_secs(2);
/// How many open orders are looked at to learn in which phases they are. Keys are digests, so the first are as good as any.
const PHASES_MAX: usize = 1000;
/// A reading that takes long is made seldom: it may take one part in so many of the time.
const THROTTLE: u32 = 30;
/// Clocks and ticks are not exact: what is due within this is due.
const NEARLY: Duration = Duration::from_millis(100);

/// How often something is read: while somebody watches, and while nobody does.
#[derive(Clone, Copy)]
struct Often {
    watched: Duration,
    else_: Duration,
}

const fn often(watched_s: u64, else_s: u64) -> Often {
    Often { watched: Duration::from_secs(watched_s), else_: Duration::from_secs(else_s) }
}

const USAGE: Often = often(1, 5);
const ORDER_COUNTS: Often = often(2, 15);
const MEMBERSHIP: Often = often(2, 5);

/// How many open orders are in which phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Phases {
    pub(crate) queued: u64,
    pub(crate) held: u64,
    pub(crate) submitting: u64,
    pub(crate) solving: u64,
    pub(crate) in_doubt: u64,
}

impl Phases {
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

    /// As if `counted` of them were `all`.
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

/// When something is to be read next.
#[derive(Debug, Default)]
struct Turn(Option<(Instant, Duration)>);

impl Turn {
    fn is_due(&self, often: Often, is_watched: bool) -> bool {
        let span = if is_watched { often.watched } else { often.else_ };
        self.0.is_none_or(|(read, took)| read.elapsed() + NEARLY >= span.max(took * THROTTLE))
    }

    fn done(&mut self, began: Instant) {
        self.0 = Some((began, began.elapsed()));
    }
}

/// What was read last, and when each part is to be read again.
#[derive(Debug, Default)]
pub(super) struct Looks {
    usage_turn: Turn,
    order_counts_turn: Turn,
    phases_turn: Turn,
    membership_turn: Turn,
    pub(super) store_is_up: bool,
    pub(super) today: Counters,
    pub(super) saved: PriceSum,
    pub(super) order_counts: OrderCounts,
    phases: Phases,
    is_sampled: bool,
    pub(super) members: Members,
    pub(super) documents: Vec<StoredDocument>,
    /// Whether there is anything to go by at all.
    pub(super) has_usage: bool,
    pub(super) has_order_counts: bool,
    pub(super) has_membership: bool,
}

impl Looks {
    /// Reads what is due. A store that does not answer leaves what was known before.
    pub(super) async fn look(&mut self, orders: &OrderService, history: &mut History, is_watched: bool) {
        let reading = self.read_what_is_due(orders, history, is_watched);
        self.store_is_up = timeout(STORE_WAIT, reading).await.is_ok_and(|read| read.is_ok());
    }

    /// Somebody has written what the membership holds.
    pub(super) fn look_at_membership_again(&mut self) {
        self.membership_turn = Turn::default();
    }

    async fn read_what_is_due(
        &mut self,
        orders: &OrderService,
        history: &mut History,
        is_watched: bool,
    ) -> Result<(), quittance_ports::StoreError> {
        let (now, began) = (orders.clock().now(), Instant::now());
        if self.usage_turn.is_due(USAGE, is_watched) {
            let today = Day::of(now);
            let mut lines = orders.usage(history.day(today), today).await?;
            let (mut sum, mut before) = (Counters::default(), Counters::default());
            lines.iter().for_each(|(line, counters)| {
                *(if line.day == today { &mut sum } else { &mut before }) += *counters;
            });
            lines.retain(|(line, _)| line.day == today);
            (self.today, self.saved, self.has_usage) = (sum, crate::money::saved(&lines), true);
            history.note(now, sum, before);
            self.usage_turn.done(began);
        }
        let began = Instant::now();
        if self.membership_turn.is_due(MEMBERSHIP, is_watched) {
            let membership = orders.membership();
            (self.members, self.documents) = (membership.members().await?, membership.documents().await?);
            self.has_membership = true;
            self.membership_turn.done(began);
        }
        let began = Instant::now();
        // Nobody sees the phases while nobody watches. Whoever does is shown as many orders in them as there are.
        let has_phases = is_watched && self.phases_turn.is_due(ORDER_COUNTS, is_watched);
        if has_phases || self.order_counts_turn.is_due(ORDER_COUNTS, is_watched) {
            self.order_counts = orders.engine().order_counts().await?;
            self.has_order_counts = true;
            self.order_counts_turn.done(began);
        }
        if has_phases {
            self.count_phases(orders).await?;
            self.phases_turn.done(began);
        }
        Ok(())
    }

    async fn count_phases(&mut self, orders: &OrderService) -> Result<(), quittance_ports::StoreError> {
        let open = orders.engine().list(Which::OPEN, None, PHASES_MAX).await?;
        let mut phases = Phases::default();
        open.iter().flatten().for_each(|found| phases.count(&found.order.phase));
        let counted = open.len() as u64;
        self.is_sampled = counted == PHASES_MAX as u64 && self.order_counts.open > counted;
        self.phases = if self.is_sampled { phases.scaled(counted, self.order_counts.open) } else { phases };
        Ok(())
    }
}

/// Everything that a picture shows.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) at: Timestamp,
    pub(crate) node: u64,
    pub(crate) name: String,
    pub(crate) started: Timestamp,
    pub(crate) store: Option<&'static str>,
    pub(crate) store_is_up: bool,
    pub(crate) order_counts: OrderCounts,
    pub(crate) phases: Phases,
    pub(crate) is_sampled: bool,
    pub(crate) lately: Counters,
    pub(crate) lately_span: Duration,
    pub(crate) latency: Spread,
    pub(crate) sample: Option<Sample>,
    pub(crate) today: Counters,
    pub(crate) saved: PriceSum,
    pub(crate) currency: &'a str,
    pub(crate) account: Option<Account>,
    pub(crate) provider: (&'a str, ProviderState),
    pub(crate) pools: Vec<PoolView>,
    pub(crate) members: &'a Members,
    pub(crate) alerts: Vec<AlertNote>,
    pub(crate) bulks: Vec<&'a BulkDocument>,
}

impl Looks {
    pub(super) const fn phases(&self) -> (Phases, bool) {
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
