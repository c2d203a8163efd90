//! What is read from the store for whoever watches, no more often than it must be: each part has a span of its own, which is longer
//! while nobody watches, and grows with what the reading costs.

use super::history::{History, Sample};
use super::latencies::Spread;
use crate::Desk;
use quittance_engine::{PoolShown, ProviderState};
use quittance_lifecycle::{Phase, PriceSum, Tally, Timestamp};
use quittance_ports::{Account, AlertNote, BulkSheet, Census, Day, Roll, Sheet, SheetFound, Which};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long the store may take before whoever watches is told that it is away.
const STORE_WAIT: Duration = Duration::from_secs(2);
/// How many open orders are looked at to learn in which phases they are. Keys are digests, so the first are as good as any.
const PHASES_MAX: usize = 1000;
/// A reading that takes long is made seldom: it may take one part in so many of the time.
const SPARING: u32 = 30;
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

const BOOKS: Often = often(1, 5);
const CENSUS: Often = often(2, 15);
const ROSTER: Often = often(2, 5);

/// How many open orders are in which phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Phases {
    pub(crate) queued: u64,
    pub(crate) held: u64,
    pub(crate) submitting: u64,
    pub(crate) solving: u64,
    pub(crate) unsure: u64,
}

impl Phases {
    fn count(&mut self, phase: &Phase) {
        match phase {
            phase if phase.is_held() => self.held += 1,
            Phase::Queued { .. } => self.queued += 1,
            Phase::Submitting { .. } => self.submitting += 1,
            Phase::Solving { .. } => self.solving += 1,
            Phase::Unsure { .. } => self.unsure += 1,
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
            unsure: scale(self.unsure),
        }
    }
}

/// When something is to be read next.
#[derive(Debug, Default)]
struct Turn(Option<(Instant, Duration)>);

impl Turn {
    fn is_due(&self, often: Often, is_watched: bool) -> bool {
        let span = if is_watched { often.watched } else { often.else_ };
        self.0.is_none_or(|(read, took)| read.elapsed() + NEARLY >= span.max(took * SPARING))
    }

    fn done(&mut self, began: Instant) {
        self.0 = Some((began, began.elapsed()));
    }
}

/// What was read last, and when each part is to be read again.
#[derive(Debug, Default)]
pub(super) struct Looks {
    books_turn: Turn,
    census_turn: Turn,
    phases_turn: Turn,
    roster_turn: Turn,
    pub(super) store_is_up: bool,
    pub(super) today: Tally,
    pub(super) saved: PriceSum,
    pub(super) census: Census,
    phases: Phases,
    is_sampled: bool,
    pub(super) roll: Roll,
    pub(super) sheets: Vec<SheetFound>,
    /// Whether there is anything to go by at all.
    pub(super) has_books: bool,
    pub(super) has_census: bool,
    pub(super) has_roster: bool,
}

impl Looks {
    /// Reads what is due. A store that does not answer leaves what was known before.
    pub(super) async fn look(&mut self, desk: &Desk, history: &mut History, is_watched: bool) {
        let reading = self.read_what_is_due(desk, history, is_watched);
        self.store_is_up = timeout(STORE_WAIT, reading).await.is_ok_and(|read| read.is_ok());
    }

    /// Somebody has written what the roster holds.
    pub(super) fn look_at_roster_again(&mut self) {
        self.roster_turn = Turn::default();
    }

    async fn read_what_is_due(
        &mut self,
        desk: &Desk,
        history: &mut History,
        is_watched: bool,
    ) -> Result<(), quittance_ports::StoreError> {
        let (now, began) = (desk.clock().now(), Instant::now());
        if self.books_turn.is_due(BOOKS, is_watched) {
            let today = Day::of(now);
            let mut lines = desk.books(history.day(today), today).await?;
            let (mut sum, mut before) = (Tally::default(), Tally::default());
            lines.iter().for_each(|(line, tally)| {
                *(if line.day == today { &mut sum } else { &mut before }) += *tally;
            });
            lines.retain(|(line, _)| line.day == today);
            (self.today, self.saved, self.has_books) = (sum, crate::money::saved(&lines), true);
            history.note(now, sum, before);
            self.books_turn.done(began);
        }
        let began = Instant::now();
        if self.roster_turn.is_due(ROSTER, is_watched) {
            let roster = desk.roster();
            (self.roll, self.sheets) = (roster.roll().await?, roster.sheets().await?);
            self.has_roster = true;
            self.roster_turn.done(began);
        }
        let began = Instant::now();
        // Nobody sees the phases while nobody watches. Whoever does is shown as many orders in them as there are.
        let has_phases = is_watched && self.phases_turn.is_due(CENSUS, is_watched);
        if has_phases || self.census_turn.is_due(CENSUS, is_watched) {
            self.census = desk.engine().census().await?;
            self.has_census = true;
            self.census_turn.done(began);
        }
        if has_phases {
            self.count_phases(desk).await?;
            self.phases_turn.done(began);
        }
        Ok(())
    }

    async fn count_phases(&mut self, desk: &Desk) -> Result<(), quittance_ports::StoreError> {
        let open = desk.engine().list(Which::OPEN, None, PHASES_MAX).await?;
        let mut phases = Phases::default();
        open.iter().flatten().for_each(|found| phases.count(&found.order.phase));
        let counted = open.len() as u64;
        self.is_sampled = counted == PHASES_MAX as u64 && self.census.open > counted;
        self.phases = if self.is_sampled { phases.scaled(counted, self.census.open) } else { phases };
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
    pub(crate) census: Census,
    pub(crate) phases: Phases,
    pub(crate) is_sampled: bool,
    pub(crate) lately: Tally,
    pub(crate) lately_span: Duration,
    pub(crate) latency: Spread,
    pub(crate) sample: Option<Sample>,
    pub(crate) today: Tally,
    pub(crate) saved: PriceSum,
    pub(crate) currency: &'a str,
    pub(crate) account: Option<Account>,
    pub(crate) provider: (&'a str, ProviderState),
    pub(crate) pools: Vec<PoolShown>,
    pub(crate) roll: &'a Roll,
    pub(crate) alerts: Vec<AlertNote>,
    pub(crate) bulks: Vec<&'a BulkSheet>,
}

impl Looks {
    pub(super) const fn phases(&self) -> (Phases, bool) {
        (self.phases, self.is_sampled)
    }

    pub(super) fn bulks(&self) -> Vec<&BulkSheet> {
        let bulks = self.sheets.iter().filter_map(|found| match &found.sheet {
            Sheet::Bulk(bulk) if bulk.ended.is_none() => Some(bulk),
            _ => None,
        });
        bulks.collect()
    }
}
