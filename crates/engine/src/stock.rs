//! Serves orders from stock: in one step for exclusive placements, and before anything is bought for all others.

use crate::node_stats::NodeCounters;
use crate::{ApplyOutcome, Engine, PlaceError, PlacedOrder, lock};
use quittance_lifecycle::{
    Answer, Counters, Draft, Event, Key, Order, Origin, Phase, Policy, Terms, Timestamp, age_at_hand_out,
    currency_of, from_stock_order,
};
use quittance_ports::{StoreError, UsageRow, Versioned};
use std::sync::Arc;

impl Engine {
    /// Takes an answer from stock for an exclusive placement. If the store does not answer, this is tried again for
    /// as long as a placement may take. To buy instead could leave a paid answer with a claimant that never comes.
    pub(crate) async fn take_from_stock(
        &self,
        claimant: Key,
        terms: &Terms,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Option<PlacedOrder>, PlaceError> {
        let record = loop {
            match self.take(claimant, terms, &from_stock_order(policy)).await {
                Ok(record) => break record,
                Err(error @ StoreError::Corrupt { .. }) => return Err(error.into()),
                Err(error) if self.now() >= now + self.settings().place_wait => return Err(error.into()),
                Err(_) => self.pause_before_looking().await,
            }
        };
        let Some(Versioned { order, .. }) = record else { return Ok(None) };
        let at = self.now();
        let Some(answer) = answer_taken(&order).filter(|answer| answer.is_good_for(terms.margin, at)) else {
            return Ok(None);
        };
        // How old it is is known only now; what was counted with the step itself is enough for the money.
        self.count(UsageRow::for_terms(terms, at), age_at_hand_out(answer, at));
        self.note_served(terms);
        NodeCounters::add(&self.node_counters.joined, 1);
        Ok(Some(PlacedOrder {
            key: order.key,
            claimant,
            origin: Origin::Stock,
            min_life: terms.margin,
            until: now + terms.timeout,
            order: Some(order),
        }))
    }

    /// Takes an answer from stock, or returns `None`: nothing is bought.
    pub async fn take_only(&self, kind: &str, draft: Draft) -> Result<Option<PlacedOrder>, PlaceError> {
        let (key, terms, policy) = self.agree(kind, draft)?;
        if !terms.takes_stock {
            return Ok(None);
        }
        self.take_from_stock(key, &terms, &policy, self.now()).await
    }

    /// Serves an order from stock if the stock has an answer. Call this only before anything was bought for the
    /// order.
    pub(crate) async fn supply(&self, record: Versioned) -> Result<Result<(), Versioned>, StoreError> {
        let order = &record.order;
        let waits = matches!(order.phase, Phase::Queued { held: false, .. }) && order.wanted;
        if !order.terms.takes_stock || !waits || order.deadline <= self.now() {
            return Ok(Err(record));
        }
        let Some(taken) = self.take(order.claimant(), &order.terms, &Counters::default()).await? else {
            return Ok(Err(record));
        };
        let (key, by, from) = (order.key, order.claimant(), taken.order.key);
        let served_from_stock = answer_taken(&taken.order).and_then(|answer| {
            let mut attempt = Box::new(taken.order.attempt(answer.attempt)?.clone());
            let mut answer = answer.clone();
            // What it cost says nothing in the currency of this order.
            if currency_of(&taken.order.terms.account) != currency_of(&order.terms.account) {
                (answer.cost, attempt.cost) = (None, None);
            }
            Some(Event::ServedFromStock { by, from, answer, attempt })
        });
        let Some(served_from_stock) = served_from_stock else { return Ok(Err(record)) };
        let terms = Arc::clone(&order.terms);
        match self.apply(&key, Some(record), &served_from_stock).await? {
            ApplyOutcome::Advanced { .. } => {
                self.note_served(&terms);
                self.hand_over(taken, by, key).await;
                Ok(Ok(()))
            }
            ApplyOutcome::Ignored { now, .. } | ApplyOutcome::Act { now, .. } => {
                // Another node may have served the order meanwhile. If not, the order has ended in another way, or
                // the answer has grown too old on the way: the next order can have it.
                if now.order.attempts.iter().any(|attempt| attempt.made_for == Some(from)) {
                    self.hand_over(taken, by, key).await;
                } else {
                    self.apply(&from, Some(taken), &Event::Returned { by }).await?;
                }
                Ok(Err(now))
            }
            ApplyOutcome::Missing => {
                self.apply(&from, Some(taken), &Event::Returned { by }).await?;
                Ok(Ok(()))
            }
        }
    }

    /// Notes in the order that brought an answer which order holds it now. Without this step both orders would count
    /// the answer as waste, even if a caller has it.
    async fn hand_over(&self, taken: Versioned, by: Key, to: Key) {
        let (key, handed_over) = (taken.order.key, Event::HandedOver { by, to });
        if let Err(error) = self.apply(&key, Some(taken), &handed_over).await {
            self.note_error(&error);
        }
    }

    async fn take(
        &self,
        by: Key,
        terms: &Terms,
        counters: &Counters,
    ) -> Result<Option<Versioned>, StoreError> {
        let at = self.now();
        let good_until = at + terms.margin + terms.promised_for();
        let taken = self.world.store.take(&terms.target, good_until, &by, at, counters).await;
        let taken = taken.inspect_err(|error| self.note_error(error))?;
        if let Some(record) = &taken {
            self.note_commit(&record.order);
        }
        Ok(taken)
    }

    /// Counts an order of a target with a pool that was served from stock.
    fn note_served(&self, terms: &Terms) {
        if let Some(demand) = lock(&self.pools).demand_of(&terms.target) {
            demand.served += 1;
        }
    }

    /// Counts an order that must be bought. It counts at its first attempt, once in a life, however long it waits.
    pub(crate) fn note_missed(&self, order: &Order) {
        let of_this_life = order.attempts.iter().filter(|attempt| attempt.sent >= order.placed).count();
        if order.terms.takes_stock
            && of_this_life == 1
            && let Some(demand) = lock(&self.pools).demand_of(&order.terms.target)
        {
            demand.missed += 1;
        }
    }
}

fn answer_taken(order: &Order) -> Option<&Answer> {
    match &order.phase {
        Phase::Claimed { answer, .. } => Some(answer),
        _ => None,
    }
}
