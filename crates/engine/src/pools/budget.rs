//! What a pool may spend, and what it has spent. Each refill is counted before it is ordered, at the expected price.
//! When it is over, the count is corrected to the real cost, or to 0 if it was not charged. A refill that may have
//! been charged stays counted.

use super::local::LocalPool;
use super::{price_not_known, prices_not_known, spending_not_known};
use crate::Engine;
use quittance_lifecycle::{Attempt, Money, Order, Phase, PriceSum, Terms, Timestamp};
use quittance_ports::{PoolDocument, PriceBasis, Reservation, Spent};
use sha2::{Digest, Sha256};

/// How many refills the budget of a pool allows now, and the error if that is fewer than needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Affordable {
    /// The pool has no budget: any number of refills.
    NoBudget,
    Refills(u32, String),
}

/// The known price of the next refill: that of the last answer, if the circumstances have not changed since, or else
/// that of the price list.
pub(super) fn price(document: &PoolDocument, basis: u64, list_price: Option<Money>) -> Option<Money> {
    document.price.filter(|_| document.basis.digest == basis).or(list_price)
}

/// Whether the pool has spent anything in the hour of `now`, or may have.
pub(super) fn has_spent(document: &PoolDocument, now: Timestamp) -> bool {
    let spent = document.spent.in_hour_of(now);
    spent.is_incomplete || is_any(spent)
}

fn is_any(spent: Spent) -> bool {
    spent.money > Money(0) || spent.refills > 0 || spent.unpriced > 0
}

/// Corrects the document of a pool, from a store that forgot, by what this node knows. If `is_complete`, this node
/// knows all that was spent until the store forgot.
pub(super) fn remember(
    stored: &PoolDocument,
    known: &PoolDocument,
    is_complete: bool,
    now: Timestamp,
) -> PoolDocument {
    let (here, ours) = (stored.spent.in_hour_of(now), known.spent.in_hour_of(now));
    let is_more = ours.money > here.money || ours.refills > here.refills || ours.unpriced > here.unpriced;
    let is_behind = is_more || !is_continued_by(known, stored);
    let is_incomplete = if is_complete {
        // The store's own document was made again and has spent something, too: neither has the sum of both.
        is_behind && known.first_generation != stored.first_generation && is_any(here)
    } else {
        here.is_incomplete || is_behind
    };
    let mut next = stored.clone();
    next.spent = Spent {
        hour: here.hour,
        money: here.money.max(ours.money),
        refills: here.refills.max(ours.refills),
        unpriced: here.unpriced.max(ours.unpriced),
        expected: here.expected.max(ours.expected),
        without_price: here.without_price.max(ours.without_price),
        is_incomplete,
    };
    next.generations.resize(stored.generations.len().max(known.generations.len()), 0);
    for (generation, known) in next.generations.iter_mut().zip(&known.generations) {
        *generation = (*generation).max(*known);
    }
    if is_behind {
        // An order that was forgotten may have been charged: what was counted for it stays counted.
        next.reserved.clear();
    }
    next.first_generation = stored.first_generation.max(known.first_generation);
    next.asked_at = stored.asked_at.max(known.asked_at);
    next
}

/// Whether `next` is the same pool as `before`, at the same state or a later one.
pub(super) fn is_continued_by(before: &PoolDocument, next: &PoolDocument) -> bool {
    let mut steps = before.generations.iter().enumerate();
    before.first_generation <= next.first_generation
        && steps.all(|(place, step)| next.generations.get(place).is_some_and(|next| next >= step))
}

impl Engine {
    /// A digest of everything that the price of these terms depends on.
    pub(super) fn price_basis(&self, terms: &Terms) -> u64 {
        let list_price = terms.price.map_or_else(String::new, |price| price.to_string());
        let mut digest = Sha256::new().chain_update(terms.target.0);
        for part in [&terms.kind, &terms.account, &list_price] {
            digest = digest.chain_update((part.len() as u64).to_le_bytes()).chain_update(part.as_bytes());
        }
        let digest: [u8; 32] = digest.finalize().into();
        digest.first_chunk().map_or(1, |eight: &[u8; 8]| u64::from_le_bytes(*eight)).max(1)
    }
}

impl LocalPool {
    pub(super) fn price(&self, document: &PoolDocument) -> Option<Money> {
        price(document, self.basis, self.list_price)
    }

    /// Updates a document to the present: a new hour begins with nothing spent, and a price that was learned under
    /// other circumstances is removed.
    pub(super) fn bring_up_to_date(&self, document: &mut PoolDocument, now: Timestamp) {
        document.spent = document.spent.in_hour_of(now);
        if document.basis.digest != self.basis {
            document.price = None;
            document.basis = PriceBasis { digest: self.basis, since: now };
        }
    }

    /// Stores what the answer of a refill cost, if it was bought under the present circumstances.
    pub(super) fn learn_price(&self, document: &mut PoolDocument, place: usize, order: &Order) {
        let is_news = u32::try_from(place).is_ok_and(|place| document.reserved.contains_key(&place));
        let is_of_now = order.terms.target == self.target && order.born >= document.basis.since;
        if let Phase::Solved { answer, .. } | Phase::Claimed { answer, .. } = &order.phase
            && is_news
            && is_of_now
            && answer.cost.is_some()
        {
            document.price = answer.cost;
        }
    }

    /// What is left of the budget of this hour. An unknown price never counts as 0: it stops the pool.
    pub(super) fn affordable(&self, document: &PoolDocument) -> Affordable {
        let Some(budget) = self.spec.budget else { return Affordable::NoBudget };
        let Some(price) = self.price(document) else {
            let none = if budget == Money(0) {
                "the pool's budget is 0".to_owned()
            } else {
                price_not_known(&self.spec.kind)
            };
            return Affordable::Refills(0, none);
        };
        let currency = &document.currency;
        if price > budget {
            let words = format!(
                "the pool's budget of {budget} {currency} an hour is smaller than the price of one answer, {price}"
            );
            return Affordable::Refills(0, words);
        }
        if document.spent.is_incomplete {
            return Affordable::Refills(0, spending_not_known(document.spent.hour));
        }
        if let Some(words) = prices_not_known(&document.spent) {
            return Affordable::Refills(0, words);
        }
        let Spent { money: Money(spent), expected: Money(expected), .. } = document.spent;
        let left = budget.0.saturating_sub(spent).saturating_sub(expected);
        // A price of 0 comes from the provider or the operator: such answers are free.
        let refills =
            left.checked_div(price.0).and_then(|refills| u32::try_from(refills).ok()).unwrap_or(u32::MAX);
        // The list may be wrong by any factor. The first answer tells what one really costs.
        if document.price.is_none() && refills > 0 && price != Money(0) {
            let words = "the pool buys one answer at a time until the first one shows the price".to_owned();
            return Affordable::Refills(u32::from(document.reserved.is_empty()), words);
        }
        Affordable::Refills(refills, "the pool's budget for this hour is spent".to_owned())
    }

    /// Counts a refill that is about to be ordered.
    pub(super) fn reserve(&self, document: &mut PoolDocument, place: usize) {
        let price = self.price(document);
        match price {
            Some(price) => document.spent.money += price,
            None => count_unpriced(&mut document.spent, 1, None),
        }
        document.spent.refills = document.spent.refills.saturating_add(1);
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        document.reserved.insert(place, Reservation { hour: document.spent.hour, price });
    }
}

/// Counts refills whose price is not known, each at its expected price, if there is one.
fn count_unpriced(spent: &mut Spent, refills: u64, expected: Option<Money>) {
    spent.unpriced = spent.unpriced.saturating_add(refills);
    match expected {
        Some(Money(price)) => spent.expected += Money(price.saturating_mul(refills)),
        None => spent.without_price = spent.without_price.saturating_add(refills),
    }
}

/// Corrects the count of a refill that is over, or that was never placed (`None`): the real cost replaces the
/// expected one. A past hour is not corrected.
pub(super) fn settle(document: &mut PoolDocument, place: usize, order: Option<&Order>) {
    let Some(reserved) = u32::try_from(place).ok().and_then(|place| document.reserved.remove(&place)) else {
        return;
    };
    if reserved.hour != document.spent.hour {
        return;
    }
    let spent = &mut document.spent;
    match reserved.price {
        Some(Money(price)) => spent.money = Money(spent.money.0.saturating_sub(price)),
        None => {
            spent.unpriced = spent.unpriced.saturating_sub(1);
            spent.without_price = spent.without_price.saturating_sub(1);
        }
    }
    if let Some(order) = order {
        let PriceSum { sum, unpriced } = order.spent_in(&document.currency);
        spent.money += sum;
        count_unpriced(spent, unpriced, reserved.price);
    }
    let is_bought =
        |attempt: &Attempt| attempt.made_for.is_none() && (attempt.accepted || attempt.may_be_charged());
    if !order.is_some_and(|order| order.attempts.iter().any(is_bought)) {
        document.spent.refills = document.spent.refills.saturating_sub(1);
    }
}
