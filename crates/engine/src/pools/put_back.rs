//! Puts pools and the results of reports back after a shared store has forgotten them, like orders. If a document is
//! missing, an operator has removed it or the store has forgotten it. The next check of the store's identity shows
//! which.
//!
//! What a pool has spent is put back, too. Only the node that refills a pool is sure to know all of it. If no such
//! node is present, the budget of this hour counts as spent.

use super::budget::{is_continued_by, remember};
use super::{Pools, WRITES_MAX};
use crate::{Engine, lock};
use quittance_lifecycle::Timestamp;
use quittance_ports::document::DOCUMENTS_MAX;
use quittance_ports::{
    DocumentWritten, PoolDocument, PoolSpec, SharedDocument, Spent, StoreError, StoredDocument, Version,
};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// A document as this node last read or wrote it.
#[derive(Clone, Debug)]
pub struct KnownDocument {
    stored: StoredDocument,
    /// Whether this node refilled the pool: then no other node has spent anything that is not in the document.
    is_complete: bool,
}

const fn is_put_back(document: &SharedDocument) -> bool {
    matches!(document, SharedDocument::Pool(_) | SharedDocument::Trust(_))
}

/// Whether `next` can come from `before` if the store has forgotten nothing in between.
fn is_continued(before: &SharedDocument, next: &SharedDocument) -> bool {
    match (before, next) {
        (SharedDocument::Pool(before), SharedDocument::Pool(next)) => {
            // Put back by a node that did not know all of it.
            let is_lost = next.spent.is_incomplete && !before.spent.is_incomplete;
            !is_lost && is_continued_by(before, next)
        }
        _ => true,
    }
}

impl Pools {
    /// Replaces the known documents by all that exist now. Documents that are missing or have gone back are
    /// remembered for a while.
    pub(super) fn replace_documents(&mut self, stored: Vec<StoredDocument>) {
        let next: BTreeMap<String, StoredDocument> =
            stored.into_iter().map(|stored| (stored.name.clone(), stored)).collect();
        let before = std::mem::replace(&mut self.documents, next);
        for (name, stored) in before.into_iter().filter(|(_, stored)| is_put_back(&stored.document)) {
            let next = self.documents.get(&name);
            if !next.is_some_and(|next| is_continued(&stored.document, &next.document)) {
                let known = self.known(stored);
                self.vanished.entry(name).or_insert(known);
            }
        }
        // Another node may have put back a pool with less than this node knows.
        let is_pool = |known: &KnownDocument| matches!(known.stored.document, SharedDocument::Pool(_));
        self.vanished.retain(|name, known| is_pool(known) || !self.documents.contains_key(name));
        while self.vanished.len() > DOCUMENTS_MAX {
            self.vanished.pop_first();
        }
    }

    fn known(&self, stored: StoredDocument) -> KnownDocument {
        let is_complete = match &stored.document {
            SharedDocument::Pool(pool) => {
                self.refilled.contains(&pool.spec.name) && !pool.spent.is_incomplete
            }
            _ => true,
        };
        KnownDocument { stored, is_complete }
    }
}

impl Engine {
    /// The names of pools whose documents existed before and are missing now, as far as this node has read.
    #[must_use]
    pub fn vanished_pools(&self) -> Vec<String> {
        lock(&self.pools).vanished.keys().cloned().collect()
    }

    /// Forgets these pools: the store is the same as before, so an operator has removed them.
    pub fn pools_were_removed(&self, names: &[String]) {
        let mut pools = lock(&self.pools);
        for name in names {
            pools.vanished.remove(name);
        }
    }

    /// The pools and the results of reports as this node knows them, with those that have vanished since the store
    /// was last known to be the same. Call this when the store has forgotten.
    #[must_use]
    pub fn take_known_pools(&self) -> Vec<KnownDocument> {
        let mut pools = lock(&self.pools);
        let vanished = std::mem::take(&mut pools.vanished);
        let there = pools.documents.values().filter(|stored| is_put_back(&stored.document));
        let there = there.map(|stored| pools.known(stored.clone()));
        vanished.into_values().chain(there).collect()
    }

    /// Puts back the documents that the store no longer has, or has from an earlier time. Returns how many those
    /// were.
    pub async fn put_back_pools(&self, known: &[KnownDocument]) -> Result<usize, StoreError> {
        if known.is_empty() {
            return Ok(0);
        }
        let (documents, now) = (self.world.membership.documents().await?, self.now());
        let is_due = |known: &&KnownDocument| {
            let there = documents.iter().find(|stored| stored.name == known.stored.name);
            known.put_back(there.map(|there| &there.document), now).is_some()
        };
        let mut put_back = 0;
        for known in known.iter().filter(is_due) {
            let is_changed =
                self.change_document(&known.stored.name, |there, now| known.put_back(there, now));
            put_back += usize::from(is_changed.await?);
        }
        if put_back > 0 {
            self.look_at_pools_soon();
        }
        Ok(put_back)
    }

    /// Writes what `change` makes of the present document. Returns whether that differs from it.
    async fn change_document(
        &self,
        name: &str,
        change: impl Fn(Option<&SharedDocument>, Timestamp) -> Option<SharedDocument>,
    ) -> Result<bool, StoreError> {
        for _ in 0..WRITES_MAX {
            let documents = self.world.membership.documents().await?;
            let there = documents.into_iter().find(|stored| stored.name == *name);
            let version = there.as_ref().map_or(Version::ABSENT, |there| there.version);
            let there = there.map(|there| there.document);
            let Some(next) = change(there.as_ref(), self.now()) else { return Ok(false) };
            match self.world.membership.write_document(name, version, Some(&next)).await? {
                DocumentWritten::Done(_) => return Ok(true),
                DocumentWritten::Conflict => {}
                DocumentWritten::NoRoom => return Ok(false),
            }
        }
        Err(StoreError::Unavailable {
            doing: "putting back a pool that the store forgot",
            source: "other nodes write the pool at the same time".into(),
        })
    }

    /// Notes that the store forgot while no node was running. What the pools spent in this hour is not known, so no
    /// pool with a budget buys anything until the hour is over.
    pub async fn lose_spending(&self) -> Result<(), StoreError> {
        self.note_lost_spending();
        for stored in self.world.membership.documents().await? {
            let mark = |there: Option<&SharedDocument>, now| match there {
                Some(SharedDocument::Pool(pool)) if !pool.spent.in_hour_of(now).is_incomplete => {
                    let spent = Spent { is_incomplete: true, ..pool.spent.in_hour_of(now) };
                    Some(SharedDocument::Pool(PoolDocument { spent, ..pool.clone() }))
                }
                _ => None,
            };
            self.change_document(&stored.name, mark).await?;
        }
        Ok(())
    }

    /// Notes that the store forgot while this node was not running. If a pool that the store does not know is set in
    /// this hour, what it spent before is not known.
    pub fn note_lost_spending(&self) {
        self.spending_lost_in.store(Spent::hour_of(self.now()), Ordering::Relaxed);
    }

    /// The document of a new pool.
    pub(super) fn new_pool(&self, spec: PoolSpec) -> PoolDocument {
        let now = self.now();
        let mut document = PoolDocument::new(spec, now);
        if self.spending_lost_in.load(Ordering::Relaxed) == Spent::hour_of(now) {
            document.spent = Spent { is_incomplete: true, ..document.spent.in_hour_of(now) };
        }
        document
    }
}

impl KnownDocument {
    /// The document to write in place of the stored one; `None` if the store knows as much.
    fn put_back(&self, there: Option<&SharedDocument>, now: Timestamp) -> Option<SharedDocument> {
        match (there, &self.stored.document) {
            (None, SharedDocument::Pool(pool)) => {
                let mut spent = pool.spent.in_hour_of(now);
                spent.is_incomplete |= !self.is_complete;
                // An order that was forgotten may have been charged: what was counted for it stays counted.
                let reserved = BTreeMap::new();
                Some(SharedDocument::Pool(PoolDocument { spent, reserved, ..pool.clone() }))
            }
            (None, other) => Some(other.clone()),
            (Some(SharedDocument::Pool(there)), SharedDocument::Pool(pool)) => {
                let next = remember(there, pool, self.is_complete, now);
                let is_same = next == PoolDocument { spent: there.spent.in_hour_of(now), ..there.clone() };
                (!is_same).then_some(SharedDocument::Pool(next))
            }
            // Another node was faster, and knows as much.
            (Some(_), _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_lifecycle::Money;
    use quittance_ports::{AlertDocument, Goal, Reservation, Trust, TrustDocument};

    fn stored(name: &str, document: SharedDocument) -> StoredDocument {
        StoredDocument { name: name.into(), version: Version(1), document }
    }

    #[test]
    fn what_is_no_longer_there_is_remembered_until_it_is_back_and_within_bounds() {
        let trust = |name: &str| {
            let (tenant, kind, site) = (String::new(), String::new(), String::new());
            stored(name, SharedDocument::Trust(TrustDocument { tenant, kind, site, trust: Trust::default() }))
        };
        let mut pools = Pools::default();
        pools.replace_documents(vec![
            trust("a"),
            trust("b"),
            stored("alerts", SharedDocument::Alerts(AlertDocument::default())),
        ]);
        pools.replace_documents(vec![]);
        assert_eq!(pools.vanished.keys().collect::<Vec<_>>(), ["a", "b"], "alerts begin again by themselves");
        pools.replace_documents(vec![trust("b")]);
        assert_eq!(pools.vanished.keys().collect::<Vec<_>>(), ["a"]);
        for n in 0..2 * DOCUMENTS_MAX {
            pools.replace_documents(vec![trust(&n.to_string())]);
        }
        assert_eq!(pools.vanished.len(), DOCUMENTS_MAX);
    }

    const NOW: Timestamp = Timestamp::from_millis(472_222 * 3_600_000 + 60_000);

    /// A pool that has spent this much in this hour, with these generations of its first places.
    fn pool(refills: u64, generations: &[u64]) -> PoolDocument {
        let spec = PoolSpec {
            name: "warm".into(),
            tenant: "ada".into(),
            kind: "turnstile".into(),
            params: BTreeMap::new(),
            goal: Goal::Fixed { size: 5 },
            budget: Some(Money(5_980)),
            hours: Vec::new(),
            min_life: None,
            is_on: true,
        };
        let money = Money(refills * 2_990);
        let spent = Spent { hour: Spent::hour_of(NOW), money, refills, ..Spent::default() };
        PoolDocument {
            spent,
            generations: generations.to_vec(),
            ..PoolDocument::new(spec, Timestamp::from_millis(7))
        }
    }

    fn known(pool: PoolDocument, is_complete: bool) -> KnownDocument {
        KnownDocument { stored: stored("pool/warm", SharedDocument::Pool(pool)), is_complete }
    }

    /// Puts back one document after the other, and returns what was spent in the end.
    fn spent_after(mut there: Option<PoolDocument>, known: &[KnownDocument]) -> Spent {
        for known in known {
            let document = there.clone().map(SharedDocument::Pool);
            match known.put_back(document.as_ref(), NOW) {
                Some(SharedDocument::Pool(next)) => there = Some(next),
                Some(other) => panic!("no pool: {other:?}"),
                None => {}
            }
        }
        there.expect("it was put back").spent
    }

    #[test]
    fn the_node_that_refills_a_pool_puts_back_all_that_it_has_spent_whichever_node_is_first() {
        let complete = known(pool(2, &[8, 8]), true);
        let stale = known(pool(0, &[]), false);
        let mut reserving = pool(2, &[8, 8]);
        reserving.reserved.insert(1, Reservation { hour: Spent::hour_of(NOW), price: Some(Money(2_990)) });
        let put_back = known(reserving, true).put_back(None, NOW);
        let Some(SharedDocument::Pool(put_back)) = put_back else { panic!("it is put back") };
        assert!(put_back.reserved.is_empty(), "the order may be forgotten, and was paid for");
        for order in [[stale.clone(), complete.clone()], [complete.clone(), stale.clone()]] {
            let spent = spent_after(None, &order);
            assert_eq!((spent.refills, spent.money, spent.is_incomplete), (2, Money(5_980), false));
        }
        // Set again, or restored from an earlier time, before any node had put it back.
        for there in [pool(0, &[]), pool(1, &[8])] {
            let spent = spent_after(Some(there), &[stale.clone(), complete.clone()]);
            assert_eq!((spent.refills, spent.is_incomplete), (2, false));
        }
        let made_again = PoolDocument { first_generation: 9_000, ..pool(1, &[9_001]) };
        assert!(spent_after(Some(made_again), &[complete]).is_incomplete, "each counts its own");
    }

    #[test]
    fn without_the_node_that_refills_a_pool_what_it_has_spent_in_this_hour_is_not_known() {
        let stale = known(pool(1, &[8]), false);
        for there in [None, Some(pool(0, &[]))] {
            let spent = spent_after(there, &[stale.clone(), stale.clone()]);
            assert_eq!((spent.refills, spent.is_incomplete), (1, true));
        }
        let spent = spent_after(Some(pool(2, &[8, 8])), &[stale]);
        assert_eq!((spent.refills, spent.is_incomplete), (2, false), "the store knows more");
        let earlier = Spent { hour: Spent::hour_of(NOW) - 1, ..pool(2, &[]).spent };
        let spent = spent_after(None, &[known(PoolDocument { spent: earlier, ..pool(0, &[8, 8]) }, true)]);
        assert_eq!((spent.refills, spent.is_incomplete), (0, false), "another hour has begun");
    }

    #[test]
    fn a_pool_that_went_back_is_remembered_until_the_store_says_that_it_is_the_same() {
        let mut pools = Pools::default();
        let there = |pool| vec![stored("pool/warm", SharedDocument::Pool(pool))];
        pools.replace_documents(there(pool(2, &[8, 8])));
        pools.refilled.insert("warm".into());
        pools.replace_documents(there(pool(3, &[8, 9])));
        assert_eq!(pools.vanished.len(), 0, "it has bought one more");
        pools.replace_documents(there(pool(0, &[])));
        let vanished = pools.vanished.get("pool/warm").expect("it is remembered");
        assert!(vanished.is_complete);
        pools.replace_documents(there(pool(3, &[8, 9])));
        assert_eq!(pools.vanished.len(), 1);

        pools.vanished.clear();
        let mut put_back_by_another = pool(3, &[8, 9]);
        put_back_by_another.spent.is_incomplete = true;
        pools.replace_documents(there(put_back_by_another.clone()));
        let known = pools.vanished.remove("pool/warm").expect("it is remembered");
        let spent = spent_after(Some(put_back_by_another), &[known]);
        assert_eq!((spent.refills, spent.is_incomplete), (3, false), "this node knows all of it");
    }
}
