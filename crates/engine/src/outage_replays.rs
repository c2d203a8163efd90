//! Replays dead letters after an outage, without a person. Only orders that died because the provider was not there or
//! the account was empty, that can cost nothing twice, and whose callers may still want the answer.
//!
//! Every node notes in a shared document which providers it finds tripped or paused, and which are well again. When a
//! node has found a provider well, and no node has found it down for some seconds, one node replays the orders that died since the outage began: a few a second, and within a
//! budget for each hour. What a replay may cost is counted in the document before it is made, so a crash can count too
//! much and never too little.

use crate::gate::ProviderState;
use crate::pools::WRITES_MAX;
use crate::providers::ProviderAccount;
use crate::{Engine, lock};
use futures_util::future::{Either, select};
use quittance_lifecycle::{Decision, Event, Key, Money, Order, Timestamp};
use quittance_ports::{
    DocumentWritten, OutageNote, OutagesDocument, SharedDocument, Spent, StoreError, Version, Versioned,
    Which,
};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a provider must be well before its outage counts as over.
const WELL_FOR: Duration = Duration::from_secs(10);
/// How often the account of a provider is read to find out whether it is well, while no order finds that out. Some
/// providers allow two requests a minute.
const TRY_SPAN: Duration = Duration::from_secs(30);
/// How often a node looks at its providers, and reads the document, while there is nothing to replay.
const LOOK_SPAN: Duration = Duration::from_secs(3);
const PAGE: usize = 64;
/// How many pages one round reads. The other chores wait for the round.
const PAGES_MAX: usize = 8;

/// What the operator sets about replays after an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutageReplays {
    /// Whether dead letters of an outage are replayed at all.
    pub is_on: bool,
    /// The most replays in one hour.
    pub per_hour: u64,
    /// The most that the replays of one hour may cost. An order without a known price is then not replayed.
    pub money_per_hour: Option<Money>,
    /// The most replays in one second.
    pub per_second: u32,
    /// An order that has been dead for longer is not replayed: its caller has gone on.
    pub age_max: Duration,
}

impl OutageReplays {
    pub const DEFAULT: Self = Self {
        is_on: false,
        per_hour: 1000,
        money_per_hour: None,
        per_second: 2,
        age_max: Duration::from_secs(3600),
    };
}

/// What a look at a provider has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finding {
    Down,
    /// It was down and is not any more, or it has answered a task.
    Well,
    Nothing,
}

/// A provider at the last look.
#[derive(Clone, Copy, Default)]
struct Seen {
    is_down: bool,
    answers: u64,
}

/// Where this node is in its work.
#[derive(Default)]
pub(crate) struct OutageWatch {
    looked_at: Timestamp,
    tried_at: Timestamp,
    is_busy: bool,
    seen: BTreeMap<String, Seen>,
    /// The provider whose dead letters are read, and the last key.
    cursor: Option<(String, Key)>,
    /// Whether this pass over the dead letters has left one for the next hour.
    has_left: bool,
}

/// Why a page was not finished.
enum Stopped {
    /// The pace or the budget.
    Later,
    /// Another node has written the document.
    Lost,
}

impl Engine {
    /// Works one round on the outages.
    pub(crate) async fn replay_after_outages(&self) {
        let now = self.now();
        if !self.settings().outage_replays.is_on {
            return;
        }
        {
            let mut watch = lock(&self.outages);
            let is_soon = watch.looked_at <= now && now < watch.looked_at + LOOK_SPAN;
            if is_soon && !watch.is_busy {
                return;
            }
            watch.looked_at = now;
        }
        match self.work_on_outages(now).await {
            Ok(is_busy) => lock(&self.outages).is_busy = is_busy,
            Err(error) => self.note_error(&error),
        }
    }

    /// What this node has found out about each provider since it last looked.
    fn look_at_providers(&self, now: Timestamp) -> Vec<(String, Finding)> {
        let mut watch = lock(&self.outages);
        let mut look = |provider: &ProviderAccount| {
            let state = lock(&provider.gate).state(now);
            let is_down = matches!(state, ProviderState::Tripped { .. } | ProviderState::Paused { .. });
            let answers = provider.answers.load(Ordering::Relaxed);
            let last = watch.seen.insert(provider.rules.name.clone(), Seen { is_down, answers });
            let Seen { is_down: was_down, answers: before } = last.unwrap_or_default();
            match state {
                // It is not known whether it is still down: the next submit finds out.
                ProviderState::Tripped { until } if until <= now && answers == before => Finding::Nothing,
                ProviderState::Paused { .. } => Finding::Down,
                ProviderState::Tripped { .. } if answers == before => Finding::Down,
                _ if was_down || answers > before => Finding::Well,
                _ => Finding::Nothing,
            }
        };
        self.providers().iter().map(|provider| (provider.rules.name.clone(), look(provider))).collect()
    }

    /// Returns whether there is work left.
    async fn work_on_outages(&self, now: Timestamp) -> Result<bool, StoreError> {
        let found = self.look_at_providers(now);
        let (version, document) = self.note_in_document(&found, now).await?;
        let is_over = |note: &&OutageNote| note.well_at > note.last_seen && now >= note.last_seen + WELL_FOR;
        let over = document.outages.iter().find(is_over).cloned();
        let Some(outage) = over else {
            self.try_providers(&document, now).await?;
            return Ok(false);
        };
        let members = self.world.membership.members().await?;
        if !self.is_keeper(SharedDocument::OUTAGES, &members) {
            return Ok(false);
        }
        self.replay_outage(&outage, document, version).await?;
        Ok(true)
    }

    /// Reads the account of each provider that no node finds down or well, because no order is sent to it: a reply ends
    /// the outage.
    async fn try_providers(&self, document: &OutagesDocument, now: Timestamp) -> Result<(), StoreError> {
        let is_not_known =
            |note: &OutageNote| note.well_at <= note.last_seen && now >= note.last_seen + WELL_FOR;
        if !document.outages.iter().any(is_not_known) || now < lock(&self.outages).tried_at + TRY_SPAN {
            return Ok(());
        }
        let members = self.world.membership.members().await?;
        if !self.is_keeper(SharedDocument::OUTAGES, &members) {
            return Ok(());
        }
        lock(&self.outages).tried_at = now;
        for note in document.outages.iter().filter(|note| is_not_known(note)) {
            let Some(provider) = self.provider_at(&note.provider) else { continue };
            let until = now + self.settings().poll_wait;
            let (account, too_late) = (provider.adapter.account(), self.world.clock.sleep_until(until));
            let account = select(account, too_late).await;
            if let Either::Left((Some(_), _)) = account {
                lock(&provider.gate).answers_again();
                self.wakeup.ring();
            }
        }
        Ok(())
    }

    /// Replays some of the orders that died of this outage. After the last one, the outage is forgotten.
    async fn replay_outage(
        &self,
        outage: &OutageNote,
        mut document: OutagesDocument,
        mut version: Version,
    ) -> Result<(), StoreError> {
        let mut left = self.settings().outage_replays.per_second;
        for _ in 0..PAGES_MAX {
            let after = {
                let mut watch = lock(&self.outages);
                if watch.cursor.as_ref().is_some_and(|(provider, _)| *provider != outage.provider) {
                    (watch.cursor, watch.has_left) = (None, false);
                }
                watch.cursor.as_ref().map(|(_, key)| *key)
            };
            let page = self.world.store.list(Which::DEAD, after.as_ref(), PAGE).await?;
            let is_last = page.len() < PAGE;
            for stored in page {
                let key = stored.as_ref().map_or_else(|unreadable| unreadable.key, |stored| stored.order.key);
                if let Ok(stored) = stored {
                    match self.replay_one(outage, stored, &mut document, &mut version, &mut left).await? {
                        Ok(()) => {}
                        // The next round begins with the same order.
                        Err(Stopped::Later | Stopped::Lost) => return Ok(()),
                    }
                }
                lock(&self.outages).cursor = Some((outage.provider.clone(), key));
            }
            if is_last {
                let has_left = std::mem::take(&mut lock(&self.outages).has_left);
                lock(&self.outages).cursor = None;
                if !has_left {
                    document.outages.retain(|note| note != outage);
                    self.write_outages(version, &document).await?;
                }
                return Ok(());
            }
        }
        Ok(())
    }

    /// Replays one dead letter if the outage was its cause. Its price is counted first.
    async fn replay_one(
        &self,
        outage: &OutageNote,
        stored: Versioned,
        document: &mut OutagesDocument,
        version: &mut Version,
        left: &mut u32,
    ) -> Result<Result<(), Stopped>, StoreError> {
        let now = self.now();
        let rules = self.settings().outage_replays;
        let died_since = outage.began.max(now - rules.age_max);
        let event = Event::ReplayedAfterOutage { provider: outage.provider.clone(), died_since };
        if !self.is_meant(&stored.order, &event, now) {
            return Ok(Ok(()));
        }
        if *left == 0 {
            return Ok(Err(Stopped::Later));
        }
        let Some(counted) = counted(document, rules, stored.order.terms.price, now) else {
            // Not within the budget of this hour. One without a price never is.
            let has_price = stored.order.terms.price.is_some() || rules.money_per_hour.is_none();
            lock(&self.outages).has_left |= has_price;
            return Ok(Ok(()));
        };
        match self.write_outages(*version, &counted).await? {
            Some(written) => (*version, *document) = (written, counted),
            None => return Ok(Err(Stopped::Lost)),
        }
        *left -= 1;
        let key = stored.order.key;
        let may = |order: &Order| self.may_replay(order);
        // If the order was changed meanwhile, a little more is counted than is spent.
        _ = self.apply_if(&key, Some(stored), &event, may).await?;
        Ok(Ok(()))
    }

    /// Whether the provider of this event may get the order, and the order would be replayed.
    fn is_meant(&self, order: &Order, event: &Event, now: Timestamp) -> bool {
        let Event::ReplayedAfterOutage { provider: name, .. } = event else { return false };
        let terms = &order.terms;
        let takers = self.providers_for(&terms.kind, &terms.tenant);
        takers.iter().any(|provider| provider.rules.name == *name) && self.may_replay(order) && {
            let decision = (self.settings().rules.transition)(order, event.clone(), now, &self.policy(order));
            matches!(decision, Decision::Advance(_))
        }
    }

    /// Writes what this node has found, also if other nodes write the document at the same time.
    async fn note_in_document(
        &self,
        found: &[(String, Finding)],
        now: Timestamp,
    ) -> Result<(Version, OutagesDocument), StoreError> {
        let mut stored = self.outages_document().await?;
        for _ in 0..WRITES_MAX {
            let (version, document) = &mut stored;
            if !note_findings(document, found, now) {
                break;
            }
            if let Some(written) = self.write_outages(*version, document).await? {
                *version = written;
                break;
            }
            stored = self.outages_document().await?;
        }
        Ok(stored)
    }

    async fn outages_document(&self) -> Result<(Version, OutagesDocument), StoreError> {
        let documents = self.world.membership.documents().await?;
        let found = documents.into_iter().find_map(|stored| match stored.document {
            SharedDocument::Outages(document) => Some((stored.version, document)),
            _ => None,
        });
        Ok(found.unwrap_or((Version::ABSENT, OutagesDocument::default())))
    }

    /// `None` if another node has written the document, or there is no room for it.
    async fn write_outages(
        &self,
        version: Version,
        document: &OutagesDocument,
    ) -> Result<Option<Version>, StoreError> {
        let whole = SharedDocument::Outages(document.clone());
        let written =
            self.world.membership.write_document(SharedDocument::OUTAGES, version, Some(&whole)).await?;
        Ok(match written {
            DocumentWritten::Done(version) => Some(version),
            DocumentWritten::Conflict | DocumentWritten::NoRoom => None,
        })
    }
}

/// Notes what a node has found out. Returns whether that is news.
fn note_findings(document: &mut OutagesDocument, found: &[(String, Finding)], now: Timestamp) -> bool {
    let mut is_news = false;
    for (name, finding) in found {
        let known = document.outages.iter_mut().find(|note| note.provider == *name);
        match (known, finding) {
            (Some(note), Finding::Down) if now >= note.last_seen + LOOK_SPAN => {
                (note.last_seen, is_news) = (now, true);
            }
            (Some(note), Finding::Well) if note.well_at <= note.last_seen && now > note.last_seen => {
                (note.well_at, is_news) = (now, true);
            }
            (None, Finding::Down) => {
                let provider = (*name).to_owned();
                let note = OutageNote { provider, began: now, last_seen: now, well_at: Timestamp::ZERO };
                document.outages.push(note);
                is_news = true;
            }
            _ => {}
        }
    }
    is_news
}

/// The document with one more replay at this price; `None` if the budget of the hour has no room for it.
fn counted(
    document: &OutagesDocument,
    rules: OutageReplays,
    price: Option<Money>,
    now: Timestamp,
) -> Option<OutagesDocument> {
    let hour = Spent::hour_of(now);
    let mut next = document.clone();
    if next.hour != hour {
        (next.hour, next.replays, next.money) = (hour, 0, Money(0));
    }
    next.replays += 1;
    if let Some(price) = price {
        next.money += price;
    }
    let is_within = rules.money_per_hour.is_none_or(|most| price.is_some() && next.money <= most);
    (next.replays <= rules.per_hour && is_within).then_some(next)
}
