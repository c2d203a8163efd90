//! Keeps pools filled. One of the present nodes refills each pool. If two nodes think that a pool is theirs, they
//! collide on the document and on the keys, and nothing is bought twice.

use super::budget::{self, Affordable, settle};
use super::local::{BUSY_SPAN, LocalPool, PoolPlace};
use super::{alive, pool_draft};
use crate::sizing::shortfall;
use crate::{Engine, lock};
use futures_util::future::join_all;
use quittance_lifecycle::{FailCause, Key, Order, Phase, TimelineEvent, Timestamp};
use quittance_ports::{
    DocumentWritten, LevelView, Members, PoolDocument, PoolSpec, SharedDocument, StoreError, StoredDocument,
    Versioned,
};
use quittance_ports::{Goal, SIZE_MAX};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often the state of an order on its way to a stock is read.
const CHECK_SPAN: Duration = Duration::from_secs(2);
/// How often a level that changes only a little is written to the document.
const SHOWN_SPAN: Duration = Duration::from_secs(5);
/// How long a pool rests after a refill that failed.
const REST: Duration = Duration::from_secs(30);
/// The longest rest of a pool whose refills fail in a row.
const REST_MAX: Duration = Duration::from_secs(900);
/// For how long an order that was announced in the document may be placed. After `VOID_AFTER` no node places it any
/// more, and its place is free. The time between the two allows for frozen nodes and for clocks that are ahead.
const PLACED_WITHIN: Duration = Duration::from_secs(5);
/// An announced order that was not placed within this time is never placed.
const VOID_AFTER: Duration = Duration::from_secs(10);
/// After this many usable lives without an order, a pool of a fixed size holds nothing, until an order comes or an
/// operator sets the pool again. So an idle pool costs nothing.
const LIVES_UNTIL_IDLE: u32 = 10;
/// How many orders are read or placed at once.
const AT_ONCE: usize = 32;

/// What to buy, decided in one round.
struct RefillPlan {
    level: LevelView,
    /// The places to refill, and those whose order was announced and never placed.
    refill: Vec<usize>,
    announced: Vec<usize>,
}

/// When the answer was added to the stock, if it was.
fn stood_at(order: &Order) -> Option<Timestamp> {
    let solved =
        order.timeline.entries.iter().rev().find(|entry| matches!(entry.event, TimelineEvent::Solved { .. }));
    solved.map(|entry| entry.at)
}

impl Engine {
    pub(crate) async fn keep_pools(&self) {
        let now = self.now();
        {
            let mut pools = lock(&self.pools);
            // A clock that was set back must not put it off.
            if pools.looked_at <= now && now < pools.looks_at() {
                return;
            }
            pools.looked_at = now;
        }
        if let Err(error) = self.look_at_pools(now).await {
            self.note_error(&error);
        }
    }

    async fn look_at_pools(&self, now: Timestamp) -> Result<(), StoreError> {
        let documents = self.world.membership.documents().await?;
        self.forget_removed(&documents, now).await?;
        let is_pool = |stored: &StoredDocument| matches!(&stored.document, SharedDocument::Pool(pool) if !pool.is_removed);
        let has_pools = documents.iter().any(is_pool);
        // Terms ask for what sites are trusted with, so they are made before the lock is taken again.
        let made: BTreeMap<String, Option<LocalPool>> = documents
            .iter()
            .filter_map(|stored| match &stored.document {
                SharedDocument::Pool(document) if !document.is_removed => {
                    Some((document.spec.name.clone(), self.make_local(&document.spec)))
                }
                _ => None,
            })
            .collect();
        lock(&self.pools).learn(documents, now, |spec| made.get(&spec.name).cloned().flatten());
        if !has_pools {
            return Ok(());
        }
        let members = self.world.membership.members().await?;
        for (name, fresh) in made {
            let Some(fresh) = fresh else { continue };
            let stored = {
                let mut pools = lock(&self.pools);
                let own = pools.demand.get(&name).copied().unwrap_or_default();
                let Some(local) = pools.local.get_mut(&name) else { continue };
                // Reports may have changed how long answers are trusted.
                if local.usable != fresh.usable {
                    local.usable = fresh.usable;
                    local.sizer.set_usable(fresh.usable);
                }
                (local.list_price, local.basis) = (fresh.list_price, fresh.basis);
                local.see_demand(now, (self.node, own), &members);
                pools.documents.get(&SharedDocument::pool_name(&name)).cloned()
            };
            if !self.is_keeper(&name, &members) {
                lock(&self.pools).refilled.remove(&name);
                continue;
            }
            lock(&self.pools).refilled.insert(name.clone());
            // While nodes put back pools, another may know better what this one has spent.
            if let Some(stored) = stored.filter(|_| self.recovering().is_none()) {
                self.keep(&name, stored).await?;
            }
        }
        Ok(())
    }

    /// Removes the documents of removed pools whose hour is over. Another node may do it first, with the same result.
    async fn forget_removed(&self, documents: &[StoredDocument], now: Timestamp) -> Result<(), StoreError> {
        for stored in documents {
            if let SharedDocument::Pool(pool) = &stored.document
                && pool.is_removed
                && !budget::has_spent(pool, now)
            {
                // If another node has won the race, the document is gone, or it is a pool again.
                _ = self.world.membership.write_document(&stored.name, stored.version, None).await?;
            }
        }
        Ok(())
    }

    fn make_local(&self, spec: &PoolSpec) -> Option<LocalPool> {
        let (_, terms, policy) = self.agree(&spec.kind, pool_draft(spec, None)).ok()?;
        LocalPool::new(spec, &terms, self.price_basis(&terms), policy.pace.p50 + BUSY_SPAN)
    }

    /// Whether this node does the work of this name, such as keeping a pool. A hash of the node and the work selects
    /// one of the present nodes.
    #[must_use]
    pub fn is_keeper(&self, work: &str, members: &Members) -> bool {
        let rank = |node: u64| -> [u8; 32] {
            let digest = Sha256::new().chain_update(node.to_le_bytes()).chain_update(work.as_bytes());
            digest.finalize().into()
        };
        let own = rank(self.node);
        alive(members).all(|node_status| node_status.node == self.node || rank(node_status.node) < own)
    }

    async fn keep(&self, name: &str, stored: StoredDocument) -> Result<(), StoreError> {
        let StoredDocument { version, document: SharedDocument::Pool(document), .. } = stored else {
            return Ok(());
        };
        // No other task changes it: chores are done one after the other.
        let Some(mut local) = lock(&self.pools).local.get(name).cloned() else { return Ok(()) };
        let mut next = document.clone().in_currency(self.currency());
        local.bring_up_to_date(&mut next, self.now());
        let mut plan = self.plan(&mut local, &mut next).await?;
        plan.level.on_their_way += u32::try_from(plan.refill.len()).unwrap_or(u32::MAX);
        local.is_idle = plan.level.size == 0 && plan.level.fresh == 0 && plan.level.on_their_way == 0;
        for number in &plan.refill {
            if *number >= next.generations.len() {
                next.generations.push(next.first_generation);
            }
            next.generations[*number] = next.generations[*number].saturating_add(1);
            local.reserve(&mut next, *number);
        }
        let is_news = !plan.refill.is_empty()
            || (next.price, next.basis, next.spent) != (document.price, document.basis, document.spent)
            || (&next.reserved, &next.currency) != (&document.reserved, &document.currency)
            || next.asked_at != document.asked_at
            || is_worth_telling(&document, &plan.level);
        let announced: Vec<(usize, u64)> =
            plan.announced.iter().chain(&plan.refill).map(|n| (*n, next.generations[*n])).collect();
        let announced_at = if is_news {
            plan.level.at
        } else {
            document.level.as_ref().map_or(Timestamp::ZERO, |level| level.at)
        };
        next.level = Some(plan.level);
        let mut is_ours = true;
        if is_news {
            let name = SharedDocument::pool_name(name);
            let document = SharedDocument::Pool(next);
            match self.world.membership.write_document(&name, version, Some(&document)).await? {
                DocumentWritten::Done(version) => {
                    lock(&self.pools).note_document(StoredDocument { name, version, document });
                }
                // Another node has decided meanwhile: what is known of the places is out of date.
                DocumentWritten::Conflict | DocumentWritten::NoRoom => {
                    local.places.clear();
                    is_ours = false;
                }
            }
        }
        if is_ours && self.now().since(announced_at) < PLACED_WITHIN {
            self.fill(&mut local, &announced).await;
        }
        if let Some(place) = lock(&self.pools).local.get_mut(name).filter(|place| place.spec == local.spec) {
            *place = local;
        }
        Ok(())
    }

    /// Places the announced orders. An order that cannot be placed now counts as missing in the next round.
    async fn fill(&self, local: &mut LocalPool, announced: &[(usize, u64)]) {
        let looked = self.now();
        for some in announced.chunks(AT_ONCE) {
            let placing = some.iter().map(|(number, generation)| {
                let slot = local.slot(*number, *generation);
                self.place(&local.spec.kind, pool_draft(&local.spec, Some(slot)))
            });
            for ((number, _), placed) in some.iter().zip(join_all(placing).await) {
                if local.places.len() <= *number {
                    local.places.resize(*number + 1, PoolPlace::Unknown);
                }
                local.places[*number] =
                    if placed.is_ok() { PoolPlace::OnItsWay { looked } } else { PoolPlace::Unknown };
            }
        }
    }

    async fn plan(
        &self,
        local: &mut LocalPool,
        document: &mut PoolDocument,
    ) -> Result<RefillPlan, StoreError> {
        let now = self.now();
        let fresh_until = now + local.min_life;
        let class = self.world.store.list_stock(&local.target, fresh_until, SIZE_MAX as usize).await?;
        let class: BTreeSet<Key> = class.into_iter().collect();
        // Once in a usable life is often enough to tell that it is not idle.
        if local.is_asked_for && now.since(document.asked_at) >= local.usable {
            document.asked_at = now;
        }
        let announced = self.look_at_places(local, document, &class).await?;
        let fresh = u32::try_from(class.len()).unwrap_or(u32::MAX);
        let is_coming = |place: &&PoolPlace| matches!(place, PoolPlace::OnItsWay { .. });
        let coming = local.places.iter().filter(is_coming).count() + announced.len();
        let on_their_way = u32::try_from(coming).unwrap_or(u32::MAX);
        let (size, why, rate, lead) = self.level(local, document, now);
        let wanted = shortfall(size, fresh, on_their_way);
        let affordable = if wanted > 0 && self.is_out_of_budget(local) {
            Affordable::Refills(0, "a budget allows no purchase now".to_owned())
        } else {
            local.affordable(document)
        };
        let (afforded, short) = match affordable {
            Affordable::NoBudget => (wanted, None),
            Affordable::Refills(most, words) => (wanted.min(most), Some(words)),
        };
        let afforded = afforded.min(SIZE_MAX);
        let why = match short {
            Some(short) if afforded < wanted => format!("{why}; {short}"),
            _ => why,
        };
        let free = (0..SIZE_MAX as usize)
            .filter(|number| local.places.get(*number).is_none_or(|place| *place == PoolPlace::Free))
            .filter(|number| !announced.contains(number));
        let level = LevelView { at: now, size, why, rate_milli: rate, lead, fresh, on_their_way };
        Ok(RefillPlan { level, refill: free.take(afforded as usize).collect(), announced })
    }

    /// Whether a budget beside the pool's own would refuse a refill.
    fn is_out_of_budget(&self, local: &LocalPool) -> bool {
        let draft = pool_draft(&local.spec, Some(local.slot(0, 0)));
        self.agree(&local.spec.kind, draft).is_ok_and(|(.., policy)| policy.no_budget_until.is_some())
    }

    /// The present level, and why.
    fn level(
        &self,
        local: &mut LocalPool,
        document: &PoolDocument,
        now: Timestamp,
    ) -> (u32, String, u64, Duration) {
        let level = local.sizer.level(now);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate is small, and not negative"
        )]
        let rate = (level.rate * 1000.0) as u64;
        let nothing = |why: &str| (0, why.to_owned(), rate, level.lead);
        if !local.spec.is_on {
            return nothing("the pool is switched off");
        }
        if !local.is_open(now) {
            return nothing("the pool is outside its hours");
        }
        if self.paused().is_some() {
            return nothing("the provider's account must be fixed first");
        }
        if now < local.rests_until {
            let seconds = local.rests_until.since(now).as_secs().div_ceil(60) * 60;
            let code = local.failed_with.escape_debug();
            return nothing(&format!(
                "the last refill brought no answer ({code}): the pool rests for up to {seconds} s more"
            ));
        }
        let given_up = local.usable.saturating_mul(LIVES_UNTIL_IDLE);
        if matches!(local.spec.goal, Goal::Fixed { .. }) && now.since(document.asked_at) >= given_up {
            return nothing(&format!(
                "the size was set, but no order has come for {LIVES_UNTIL_IDLE} usable lives of an answer, so nothing is \
                 held; the next order, or setting the pool again, starts the pool again"
            ));
        }
        // A node that has only just begun to look goes by what the last one saw, for as long as that can be true.
        let is_new = matches!(level.why, crate::sizing::Why::NothingSeenYet);
        if let (Goal::Served { .. }, true, Some(before)) = (local.spec.goal, is_new, &document.level)
            && now.since(before.at) < local.usable
            && before.size > 0
        {
            return (before.size, before.why.clone(), before.rate_milli, before.lead);
        }
        (level.size, level.why.to_string(), rate, level.lead)
    }

    /// Updates what is known of each place. Returns which orders were announced and never placed.
    async fn look_at_places(
        &self,
        local: &mut LocalPool,
        document: &mut PoolDocument,
        class: &BTreeSet<Key>,
    ) -> Result<Vec<usize>, StoreError> {
        let now = self.now();
        local.places.resize(document.generations.len().max(local.places.len()), PoolPlace::Unknown);
        let mut to_check = Vec::new();
        let secret = self.keys().secret;
        for (number, generation) in document.generations.iter().enumerate() {
            let key = local.key(number, *generation, secret.as_ref());
            let place = &mut local.places[number];
            match *place {
                _ if *generation == 0 => *place = PoolPlace::Free,
                PoolPlace::Stands if class.contains(&key) => {}
                PoolPlace::Stands => *place = PoolPlace::Free,
                PoolPlace::Free => {}
                PoolPlace::OnItsWay { looked }
                    if looked <= now && now.since(looked) < CHECK_SPAN && !class.contains(&key) => {}
                PoolPlace::OnItsWay { .. } | PoolPlace::Unknown => to_check.push((number, key)),
            }
        }
        for place in local.places.iter_mut().skip(document.generations.len()) {
            *place = PoolPlace::Free;
        }
        let is_void = document.level.as_ref().is_none_or(|level| now.since(level.at) >= VOID_AFTER);
        let mut announced = Vec::new();
        for some in to_check.chunks(AT_ONCE) {
            let loads = some.iter().map(|(_, key)| self.world.store.load(key));
            for ((number, _), stored) in some.iter().zip(join_all(loads).await) {
                match stored {
                    Ok(stored) => {
                        let was_coming = matches!(local.places[*number], PoolPlace::OnItsWay { .. });
                        local.places[*number] = match &stored {
                            None if is_void => {
                                settle(document, *number, None);
                                PoolPlace::Free
                            }
                            None => {
                                announced.push(*number);
                                PoolPlace::Unknown
                            }
                            Some(stored) => {
                                if !stored.order.phase.is_open() {
                                    local.learn_price(document, *number, &stored.order);
                                    settle(document, *number, Some(&stored.order));
                                }
                                self.look_at_place(local, stored, was_coming, class)
                            }
                        };
                    }
                    // A record that cannot be read is for an operator, and its place is not filled meanwhile.
                    Err(StoreError::Corrupt { .. }) => {
                        local.places[*number] = PoolPlace::OnItsWay { looked: now }
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(announced)
    }

    fn look_at_place(
        &self,
        local: &mut LocalPool,
        stored: &Versioned,
        was_coming: bool,
        class: &BTreeSet<Key>,
    ) -> PoolPlace {
        let (order, now) = (&stored.order, self.now());
        match &order.phase {
            phase if phase.is_open() => PoolPlace::OnItsWay { looked: now },
            Phase::Solved { .. } | Phase::Claimed { .. } => {
                if was_coming && let Some(at) = stood_at(order) {
                    // Half of the time between two looks passes before a node notices that one is missing.
                    local.sizer.bought(at.since(order.born) + BUSY_SPAN / 2);
                    (local.failures, local.rests_until) = (0, Timestamp::ZERO);
                }
                if class.contains(&order.key) { PoolPlace::Stands } else { PoolPlace::Free }
            }
            phase @ (Phase::Failed { .. } | Phase::Dead { .. }) if was_coming => {
                // Several that fail at once are one failure.
                if local.rests_until <= now {
                    let rest = REST.saturating_mul(1 << local.failures.min(10)).min(REST_MAX);
                    local.failures = local.failures.saturating_add(1);
                    local.rests_until = now + rest;
                }
                local.failed_with = match phase {
                    Phase::Failed { cause: FailCause::Rejected(fault), .. } => fault.code.clone(),
                    _ => "no answer in time".to_owned(),
                };
                PoolPlace::Free
            }
            _ => PoolPlace::Free,
        }
    }
}

/// Whether a level that caused no purchase is worth a log line.
fn is_worth_telling(document: &PoolDocument, level: &LevelView) -> bool {
    let Some(before) = &document.level else { return true };
    let has_changed =
        (before.fresh, before.on_their_way, &before.why) != (level.fresh, level.on_their_way, &level.why);
    before.size != level.size || (has_changed && level.at.since(before.at) >= SHOWN_SPAN)
}
