//! A second store, as naive as possible: a list of rows that is searched from end to end, with every rule written
//! where it is needed. With a [`Crime`], it does one thing wrong and everything else right.

use crate::crimes::Crime;
use async_trait::async_trait;
use quittance_lifecycle::{Counters, HandOut, Key, Order, Phase, Target, TimelineEvent, Timestamp, Value};
use quittance_ports::{
    Commit, Day, Due, OrderCounts, Store, StoreError, Unreadable, UsageRow, Version, Versioned, Watch,
    Watchers, Which,
};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Naive {
    crime: Option<Crime>,
    state: Arc<Mutex<NaiveState>>,
    /// The watchers of each watch ever made, so that they can be distinguished.
    crowd: Mutex<Vec<(Key, Watchers)>>,
}

#[derive(Default)]
struct NaiveState {
    versions: u64,
    rows: Vec<NaiveRow>,
    usage: Vec<(UsageRow, Counters)>,
}

#[derive(Clone)]
struct NaiveRow {
    record: Versioned,
    claimed_until: Timestamp,
    /// The order when the row was created. Only crimes read it.
    first: Order,
}

/// Lets all other tasks run first, once.
async fn dawdle() {
    let mut dawdled = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut dawdled, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Naive {
    pub(crate) fn guilty_of(crime: Crime) -> Self {
        Self { crime: Some(crime), ..Self::default() }
    }

    /// Another process on these orders: a caller that waits there is not woken from here.
    pub(crate) fn elsewhere(&self) -> Self {
        Self { state: Arc::clone(&self.state), ..Self::default() }
    }

    fn commits(&self, crime: Crime) -> bool {
        self.crime == Some(crime)
    }

    fn state(&self) -> MutexGuard<'_, NaiveState> {
        self.state.lock().expect("no thread panics with the lock")
    }

    fn crowd(&self) -> MutexGuard<'_, Vec<(Key, Watchers)>> {
        self.crowd.lock().expect("no thread panics with the lock")
    }

    fn rows(&self) -> Vec<NaiveRow> {
        self.state().rows.clone()
    }

    fn row(&self, key: &Key) -> Option<NaiveRow> {
        self.rows().into_iter().rev().find(|row| row.record.order.key == *key)
    }

    /// The order from which an index is made.
    fn indexed<'a>(&self, row: &'a NaiveRow, crime: Crime) -> &'a Order {
        if self.commits(crime) { &row.first } else { &row.record.order }
    }

    fn timer(&self, row: &NaiveRow) -> Option<Timestamp> {
        self.indexed(row, Crime::DueAsFirstWritten).due().map(|due| due.max(row.claimed_until))
    }

    fn write(&self, next: &Order) -> Version {
        let old = self.row(&next.key);
        let mut state = self.state();
        // Not the numbers of the memory store: which numbers they are is for each store to choose.
        state.versions += 7;
        let version = match &old {
            Some(old) if self.commits(Crime::VersionsStandStill) && *old.record.order == *next => {
                old.record.version
            }
            _ if self.commits(Crime::VersionsRestartAfterPurge) => {
                Version(old.as_ref().map_or(0, |old| old.record.version.0) + 1)
            }
            _ => Version(state.versions),
        };
        let mut order = next.clone();
        if self.commits(Crime::ForgetsTheTimeline) {
            order.timeline.entries.clear();
        }
        if self.commits(Crime::CutsLongValues) {
            let terms = Arc::make_mut(&mut order.terms);
            for value in terms.params.values_mut().filter(|value| value.as_bytes().len() > 65_535) {
                *value = Value::Bytes(value.as_bytes()[..65_535].to_vec());
            }
        }
        let claimed_until = match &old {
            Some(old) if self.commits(Crime::ClaimOutlivesTheWrite) => old.claimed_until,
            _ => Timestamp::ZERO,
        };
        let first = old.map_or_else(|| order.clone(), |old| old.first);
        if !self.commits(Crime::KeepsOldRows) {
            state.rows.retain(|row| row.record.order.key != next.key);
        }
        state.rows.push(NaiveRow {
            record: Versioned { version, order: Arc::new(order) },
            claimed_until,
            first,
        });
        version
    }

    fn book(&self, line: &UsageRow, counters: &Counters) {
        if *counters == Counters::default() && !self.commits(Crime::UsageHaveEmptyLines) {
            return;
        }
        let mut state = self.state();
        match state.usage.iter_mut().find(|(known, _)| known == line) {
            Some((_, sum)) if self.commits(Crime::UsageKeepTheLastOnly) => *sum = *counters,
            Some((_, sum)) => *sum += *counters,
            None => state.usage.push((line.clone(), *counters)),
        }
    }

    /// Wakes the waiters of the order, if it has an outcome for them.
    fn wake(&self, next: &Order) {
        let key = &next.key;
        let crowd = self.crowd();
        let is_news = match next.hand_out(*key, Duration::ZERO, Timestamp::ZERO) {
            _ if self.commits(Crime::WakesNoWaiter) => false,
            _ if self.commits(Crime::WakesOnlyAtTheEnd) => !next.phase.is_open(),
            HandOut::NotYet => self.commits(Crime::WakesOnEveryCommit),
            _ => true,
        };
        if !is_news {
            return;
        }
        for (watched, watchers) in crowd.iter() {
            if self.commits(Crime::WakesAllWaiters) {
                watchers.wake(watched);
            }
            if watched != key {
                continue;
            }
            if self.commits(Crime::DroppedWatchSilencesTheRest) && watchers.is_empty() {
                return;
            }
            watchers.wake(key);
            if self.commits(Crime::WakesOneOnly) && !watchers.is_empty() {
                return;
            }
        }
    }

    /// The changes that a lost commit of a faulty store leaves behind.
    fn lose(&self, next: &Order, counters: &Counters, at: Timestamp) {
        if self.commits(Crime::UsageCountLosers) {
            self.book(&UsageRow::of(next, at), counters);
        }
        if self.commits(Crime::WakesForLosers) {
            self.wake(next);
        }
        if self.commits(Crime::LoserEndsTheClaim) {
            let mut state = self.state();
            for row in state.rows.iter_mut().filter(|row| row.record.order.key == next.key) {
                row.claimed_until = Timestamp::ZERO;
            }
        }
    }

    fn may_be_forgotten(&self, row: &NaiveRow) -> Option<Timestamp> {
        match row.record.order.phase {
            Phase::Dead { at, .. } if self.commits(Crime::PurgeTakesDeadLetters) => {
                Some(at + Duration::from_secs(3600))
            }
            _ => match self.indexed(row, Crime::PurgeAsFirstWritten).forget_at() {
                // What becomes of it in a column with a sign.
                Some(Timestamp::MAX) if self.commits(Crime::EndOfTimeWraps) => Some(Timestamp::ZERO),
                at => at,
            },
        }
    }
}

#[async_trait]
impl Store for Naive {
    async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        let row = match self.row(key) {
            None if self.commits(Crime::FindsWhatIsNotThere) => self.rows().pop(),
            row => row,
        };
        Ok(row.map(|row| row.record))
    }

    async fn commit(
        &self,
        expected: Version,
        next: &Arc<Order>,
        counters: &Counters,
        at: Timestamp,
    ) -> Result<Commit, StoreError> {
        let record = self.row(&next.key).map(|row| row.record);
        let wins = match &record {
            _ if self.commits(Crime::LastWriteWins) => true,
            None => expected == Version::ABSENT || self.commits(Crime::BringsBackTheGone),
            Some(record) => record.version == expected,
        };
        if !wins {
            self.lose(next, counters, at);
            let record = record.filter(|_| !self.commits(Crime::LoserGetsNoWinner));
            return Ok(Commit::Conflict(record.map(Box::new)));
        }
        if self.commits(Crime::ChecksThenSets) {
            dawdle().await;
        }
        if self.commits(Crime::WakesBeforeItWrites) {
            self.wake(next);
            dawdle().await;
        }
        let day = if self.commits(Crime::UsageByTheDayOfTheOrder) { next.born } else { at };
        let row = if self.commits(Crime::UsageByTheAccountOfTheTerms) {
            UsageRow::for_terms(&next.terms, day)
        } else {
            UsageRow::of(next, day)
        };
        self.book(&row, counters);
        let version = self.write(next);
        if !self.commits(Crime::WakesBeforeItWrites) {
            self.wake(next);
        }
        Ok(Commit::Done(version))
    }

    async fn claim_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, StoreError> {
        let mut rows = self.rows();
        rows.retain(|row| self.timer(row).is_some());
        if !self.commits(Crime::DueInAnyOrder) {
            rows.sort_by_key(|row| (self.timer(row), row.record.order.key));
        }
        if self.commits(Crime::LapsedComesFirst) {
            rows.sort_by_key(|row| (row.record.order.due(), row.record.order.key));
        }
        let is_due = |row: &NaiveRow| match self.timer(row) {
            _ if self.commits(Crime::ClaimNeverLapses) && row.claimed_until > Timestamp::ZERO => false,
            Some(at) if self.commits(Crime::RingsTooSoon) => at <= now + Duration::from_millis(1),
            Some(at) if self.commits(Crime::RingsTooLate) => at < now,
            at => at.is_some_and(|at| at <= now),
        };
        let limit = if self.commits(Crime::DueKnowsNoLimit) { usize::MAX } else { limit };
        let (due, rest): (Vec<NaiveRow>, Vec<NaiveRow>) = rows.into_iter().partition(is_due);
        let beyond = due.iter().skip(limit).filter(|_| !self.commits(Crime::NextForgetsWhatIsBeyondTheLimit));
        let is_claimed = |row: &&NaiveRow| row.claimed_until > Timestamp::ZERO;
        let rest = rest.iter().filter(|row| !(self.commits(Crime::NextForgetsClaims) && is_claimed(row)));
        let next = beyond.chain(rest).filter_map(|row| self.timer(row)).min();
        let orders: Vec<Versioned> = due.into_iter().take(limit).map(|row| row.record).collect();
        if self.commits(Crime::ClaimsThenHides) {
            dawdle().await;
        }
        let mut state = self.state();
        for row in state.rows.iter_mut().filter(|row| orders.contains(&row.record)) {
            if !self.commits(Crime::ClaimHidesNothing) {
                row.claimed_until = row.claimed_until.max(until);
            }
        }
        Ok(Due { orders, next, unreadable: Vec::new() })
    }

    async fn take(
        &self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Result<Option<Versioned>, StoreError> {
        let of_target = |row: &NaiveRow| row.record.order.terms.target == *target;
        let rows: Vec<NaiveRow> = self.rows().into_iter().filter(of_target).collect();
        let is_claimants = |row: &&NaiveRow| match row.record.order.phase {
            _ if self.commits(Crime::TakesAnotherEachTime) => false,
            Phase::Claimed { by: owner, .. } => owner == *by && row.record.order.key != *by,
            _ => false,
        };
        if let Some(their_claim) = rows.iter().find(is_claimants) {
            return Ok(Some(their_claim.record.clone()));
        }
        let returned =
            |order: &Order| order.timeline.entries.iter().any(|entry| entry.event == TimelineEvent::Returned);
        let mut class: Vec<(Timestamp, Key, NaiveRow)> = Vec::new();
        for row in rows {
            let order = &row.record.order;
            if let Some((_, expires)) = order.list_stock()
                && expires >= good_until
                && !(self.commits(Crime::TakesForOneOnly) && returned(order))
            {
                class.push((expires, order.key, row.clone()));
            }
        }
        class.sort_by_key(|(expires, key, _)| (*expires, *key));
        if self.commits(Crime::TakesTheFreshestFirst) {
            class.reverse();
        }
        let Some((.., row)) = class.into_iter().next() else { return Ok(None) };
        if self.commits(Crime::TakesThenHides) {
            dawdle().await;
        }
        let mut taken = (*row.record.order).clone().taken(*by, at);
        if self.commits(Crime::TakesWithoutAMark) {
            taken.timeline.entries.pop();
        }
        if self.commits(Crime::ClaimedForgetsItsFollowUps) {
            taken.webhooks.clear();
        }
        self.book(&UsageRow::of(&taken, at), counters);
        let mut version = self.write(&taken);
        if self.commits(Crime::TakesUnderTheOldVersion) {
            version = row.record.version;
            let mut state = self.state();
            for row in state.rows.iter_mut().filter(|row| row.record.order.key == taken.key) {
                row.record.version = version;
            }
        }
        Ok(Some(Versioned { version, order: Arc::new(taken) }))
    }

    async fn list_stock(
        &self,
        target: &Target,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        let mut class: Vec<(Timestamp, Key)> = Vec::new();
        for row in self.rows() {
            if let Some((of, expires)) = self.indexed(&row, Crime::StockAsFirstWritten).list_stock()
                && (of == *target || self.commits(Crime::StockOfAllTargets))
                && (expires > now || self.commits(Crime::StockOfTheExpired))
            {
                class.push((expires, row.record.order.key));
            }
        }
        if !self.commits(Crime::StockInAnyOrder) {
            class.sort_unstable();
        }
        Ok(class.into_iter().take(limit).map(|(_, key)| key).collect())
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        let watchers = Watchers::default();
        let watch = watchers.watch(key);
        if self.commits(Crime::WatchIsBornRung) {
            watchers.wake(key);
        }
        if !self.commits(Crime::WatchesOnlyWhatIsThere) || self.row(key).is_some() {
            self.crowd().push((*key, watchers));
        }
        Ok(watch)
    }

    async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError> {
        let which = match self.crime {
            Some(Crime::ListIgnoresWhich) => Which { class: None, ..which },
            Some(Crime::ListOfAllTenants) => Which { tenant: None, ..which },
            _ => which,
        };
        let is_of = |row: &NaiveRow| {
            let tenant = &self.indexed(row, Crime::TenantAsFirstWritten).terms.tenant;
            which.tenant.is_none_or(|wanted| wanted == tenant)
        };
        let mut rows = self.rows();
        rows.retain(is_of);
        let mut record: Vec<Versioned> = rows.into_iter().map(|row| row.record).collect();
        record.retain(|record| Which { tenant: None, ..which }.includes(&record.order));
        record.retain(|record| match after {
            Some(after) if self.commits(Crime::ListRepeatsTheLast) => record.order.key >= *after,
            Some(after) => record.order.key > *after,
            None => true,
        });
        record.sort_by_key(|record| record.order.key);
        record.truncate(limit);
        Ok(record.into_iter().map(Ok).collect())
    }

    async fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let mut old: Vec<(Timestamp, Key)> = Vec::new();
        for row in self.rows() {
            if let Some(at) = self.may_be_forgotten(&row).filter(|at| *at <= now) {
                old.push((at, row.record.order.key));
            }
        }
        old.sort_unstable();
        if self.commits(Crime::PurgeTakesTheNewest) {
            old.reverse();
        }
        if !self.commits(Crime::PurgeKnowsNoLimit) {
            old.truncate(limit);
        }
        let mut state = self.state();
        state.rows.retain(|row| !old.iter().any(|(_, key)| *key == row.record.order.key));
        Ok(old.len())
    }

    async fn discard(&self, key: &Key) -> Result<bool, StoreError> {
        if self.commits(Crime::DiscardsWhatCanBeRead) {
            self.state().rows.retain(|row| row.record.order.key != *key);
        }
        Ok(self.commits(Crime::DiscardsWhatIsNotThere) && self.row(key).is_none())
    }

    async fn count(&self, line: &UsageRow, counters: &Counters) -> Result<(), StoreError> {
        if self.commits(Crime::CountReadsThenWrites) {
            let before = self.state().usage.clone();
            dawdle().await;
            self.state().usage = before;
        }
        self.book(line, counters);
        Ok(())
    }

    async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
        let mut usage = self.state().usage.clone();
        usage.retain(|(line, _)| {
            let before_end =
                if self.commits(Crime::UsageIgnoreTheLastDay) { line.day < to } else { line.day <= to };
            line.day >= from && before_end
        });
        if !self.commits(Crime::UsageInAnyOrder) {
            usage.sort_by(|(a, _), (b, _)| a.cmp(b));
        }
        Ok(usage)
    }

    async fn compact_usage(&self, detail: Day, sums: Day) -> Result<(), StoreError> {
        let before = std::mem::take(&mut self.state().usage);
        if self.commits(Crime::ClosingReadsThenWrites) {
            self.state().usage = before.clone();
            dawdle().await;
            self.state().usage.clear();
        }
        for (mut line, counters) in before {
            let is_kept = line.day >= sums || self.commits(Crime::ClosingForgetsNothing);
            if line.day < detail {
                line.site = UsageRow::ALL_SITES.to_owned();
            }
            if self.commits(Crime::ClosingMixesProviders) && line.day < detail {
                line.account = String::new();
            }
            if is_kept {
                self.book(&line, &counters);
            }
        }
        Ok(())
    }

    async fn order_counts(&self) -> Result<OrderCounts, StoreError> {
        let count = async |which| Ok::<_, StoreError>(self.list(which, None, usize::MAX).await?.len() as u64);
        let open =
            count(if self.commits(Crime::OrderCountsCountAll) { Which::ALL } else { Which::OPEN }).await?;
        Ok(OrderCounts { open, dead: count(Which::DEAD).await? })
    }
}
