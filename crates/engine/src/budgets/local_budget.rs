//! What this node has of one budget: what it has leased and not used, and what it must write into the document that all
//! nodes share. The sum of all leases never exceeds the limit, and attempts are paid from leases only.

use super::BudgetRule;
use super::budget_math::BudgetMath;
use quittance_lifecycle::{Money, Timestamp, WhyShort};
use quittance_ports::{BudgetDocument, BudgetShare, SHARES_MAX};
use std::collections::BTreeSet;
use std::time::Duration;

/// After this time without a draw, a node gives back what it has leased and not used.
const IDLE_SPAN: Duration = Duration::from_secs(1);
/// How long no node leases after the store forgot, so that every node can put back its share.
const PUT_BACK_SPAN: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct LocalBudget {
    /// The period of all that follows.
    pub(super) begins: Timestamp,
    /// This node's share, as it is written next.
    pub(super) share: BudgetShare,
    /// What is leased and not drawn, in millionths. Below zero if attempts cost more than was drawn for them.
    pub(super) free: i64,
    /// What orders need that are about to draw.
    pub(super) wanted: i64,
    pub(super) used_at: Timestamp,
    /// Whether a task of this node leases now.
    pub(super) is_leasing: bool,
    /// The document, as this node last read or wrote it.
    pub(super) known: Option<BudgetDocument>,
    pub(super) read_at: Timestamp,
    /// Since when this node finds too little left.
    pub(super) short_since: Option<Timestamp>,
    /// The price for which too little was left then.
    short_price: i64,
    /// Why the last attempt could not draw; `None` after a draw.
    pub(super) why_short: Option<WhyShort>,
}

/// A budget at this moment, for the steps below.
pub(super) struct BudgetNow<'a> {
    pub(super) rule: &'a BudgetRule,
    pub(super) node: u64,
    pub(super) now: Timestamp,
    pub(super) math: BudgetMath,
    /// The nodes that have sent a heartbeat lately; empty if that is not known.
    pub(super) alive: &'a BTreeSet<u64>,
}

/// What a lease needs.
pub(super) enum LeasePlan {
    /// Write this document. With it, so much is leased.
    Write(BudgetDocument, i64),
    /// Nothing can be leased now, or nothing needs to be.
    Nothing,
}

pub(super) fn micros(money: Money) -> i64 {
    i64::try_from(money.0).unwrap_or(i64::MAX)
}

pub(super) fn money(micros: i64) -> Money {
    Money(u64::try_from(micros).unwrap_or(0))
}

/// The sum of all shares.
pub(super) fn sum(document: &BudgetDocument) -> BudgetShare {
    document.nodes.values().fold(document.gone, |sum, share| BudgetShare {
        step: sum.step,
        leased: sum.leased.saturating_add(share.leased),
        charged: sum.charged.saturating_add(share.charged),
        unpriced: sum.unpriced.saturating_add(share.unpriced),
    })
}

impl LocalBudget {
    /// Begins a new period, if the clock has reached one.
    pub(super) fn roll(&mut self, budget: &BudgetNow<'_>) {
        let begins = (budget.math.begins)(budget.rule.period, budget.now);
        if self.begins < begins {
            let Self { wanted, is_leasing, .. } = *self;
            *self = Self { begins, wanted, is_leasing, ..Self::default() };
        }
    }

    /// The document with what this node knows, and whether the store had forgotten something. `None` if another node
    /// has begun the next period already.
    fn merged(
        &mut self,
        stored: Option<&BudgetDocument>,
        budget: &BudgetNow<'_>,
    ) -> Option<(BudgetDocument, bool)> {
        if stored.is_some_and(|stored| stored.begins > self.begins) {
            return None;
        }
        let rule = budget.rule;
        let new = || BudgetDocument {
            budget: rule.document_name(),
            currency: rule.currency.clone(),
            begins: self.begins,
            ..BudgetDocument::default()
        };
        let mut next = stored.filter(|stored| stored.begins == self.begins).cloned().unwrap_or_else(new);
        let Some(known) = &self.known else {
            // The budget was set again on this node. What the node has leased before stays leased.
            if let Some(earlier) = next.nodes.get(&budget.node).filter(|_| self.share.step == 0) {
                self.share = BudgetShare {
                    step: earlier.step,
                    leased: earlier.leased.saturating_add(self.share.leased),
                    charged: earlier.charged.saturating_add(self.share.charged),
                    unpriced: earlier.unpriced.saturating_add(self.share.unpriced),
                };
            }
            return Some((next, false));
        };
        let was_added_up = next.gone.step > known.gone.step
            && known.nodes.contains_key(&budget.node)
            && !next.nodes.contains_key(&budget.node);
        if was_added_up {
            // Another node took this one for gone. Its share is part of the sum now.
            self.share = BudgetShare { step: self.share.step, ..BudgetShare::default() };
        }
        let has_forgotten = (budget.math.put_back)(&mut next, known, budget.node);
        if has_forgotten {
            next.no_leases_until = next.no_leases_until.max(budget.now + PUT_BACK_SPAN);
        }
        Some((next, has_forgotten))
    }

    /// Writes this node's share into the document, and adds up the shares of nodes that are gone.
    fn signed(&mut self, mut next: BudgetDocument, budget: &BudgetNow<'_>) -> BudgetDocument {
        self.share.step = self.share.step.saturating_add(1);
        next.nodes.insert(budget.node, self.share);
        if next.nodes.len() > SHARES_MAX / 2 && !budget.alive.is_empty() {
            let is_gone = |node: &u64| *node != budget.node && !budget.alive.contains(node);
            for (_, share) in next.nodes.extract_if(.., |node, _| is_gone(node)) {
                next.gone.step = next.gone.step.saturating_add(1);
                next.gone.leased = next.gone.leased.saturating_add(share.leased);
                next.gone.charged = next.gone.charged.saturating_add(share.charged);
                next.gone.unpriced = next.gone.unpriced.saturating_add(share.unpriced);
            }
        }
        next
    }

    /// What to write so that the orders that are about to draw can do so. `price` is what one of them needs.
    pub(super) fn plan_lease(
        &mut self,
        stored: Option<&BudgetDocument>,
        price: i64,
        budget: &BudgetNow<'_>,
    ) -> LeasePlan {
        let Some((next, has_forgotten)) = self.merged(stored, budget) else { return LeasePlan::Nothing };
        self.read_at = budget.now;
        if has_forgotten {
            return LeasePlan::Write(self.signed(next, budget), 0);
        }
        let need = self.wanted.saturating_sub(self.free);
        if need <= 0 || next.no_leases_until > budget.now || next.currency != budget.rule.currency {
            self.known = Some(next);
            return LeasePlan::Nothing;
        }
        let written = next.nodes.get(&budget.node).map_or(0, |share| share.leased);
        let by_others = sum(&next).leased.saturating_sub(written);
        let left = micros(budget.rule.limit).saturating_sub(by_others).saturating_sub(self.share.leased);
        let amount = (budget.math.lease)(left, need);
        if amount <= 0 || self.free.saturating_add(amount) < price {
            self.short_since.get_or_insert(budget.now);
            self.short_price = price;
            self.known = Some(next);
            return LeasePlan::Nothing;
        }
        // The lease counts as made only if the write is known to be done.
        let before = self.share.leased;
        self.share.leased = before.saturating_add(amount);
        let next = self.signed(next, budget);
        self.share.leased = before;
        LeasePlan::Write(next, amount)
    }

    /// Notes that the document was written, and with it a lease of this amount.
    pub(super) fn note_written(&mut self, document: BudgetDocument, leased: i64, now: Timestamp) {
        if self.begins != document.begins {
            return;
        }
        self.share.leased = self.share.leased.saturating_add(leased);
        self.free = self.free.saturating_add(leased);
        if leased > 0 {
            (self.short_since, self.used_at) = (None, now);
        }
        self.read_at = now;
        self.known = Some(document);
    }

    /// Gives back what is idle, and returns the document if it must be written.
    pub(super) fn plan_share(
        &mut self,
        stored: Option<&BudgetDocument>,
        budget: &BudgetNow<'_>,
        gives_all_back: bool,
    ) -> Option<BudgetDocument> {
        // A lease that is written, and not known to be, must not be written over: another node could lease it, too.
        if !(budget.math.may_share)(self.is_leasing) {
            return None;
        }
        let (next, has_forgotten) = self.merged(stored, budget)?;
        let is_idle = self.wanted == 0 && budget.now.since(self.used_at) >= IDLE_SPAN;
        if self.free > 0 && (is_idle || gives_all_back) {
            // Gone from here before the write: if its outcome is not known, nothing can be used twice.
            self.share.leased = self.share.leased.saturating_sub(self.free);
            self.free = 0;
        }
        let share = BudgetShare { step: 0, ..self.share };
        let written = next.nodes.get(&budget.node).map(|written| BudgetShare { step: 0, ..*written });
        self.read_at = budget.now;
        // The limit was raised, or others have given back: orders may be accepted again.
        let by_others = sum(&next).leased.saturating_sub(written.unwrap_or_default().leased);
        let left = micros(budget.rule.limit).saturating_sub(by_others).saturating_sub(self.share.leased);
        if self.short_since.is_some() && self.free.saturating_add(left) >= self.short_price {
            (self.short_since, self.why_short) = (None, None);
        }
        if !has_forgotten && written.unwrap_or_default() == share {
            if stored.is_some() {
                self.known = Some(next);
            }
            return None;
        }
        Some(self.signed(next, budget))
    }

    /// Why `price` cannot be drawn now; `None` if it can.
    pub(super) fn why_not(&self, price: i64, budget: &BudgetNow<'_>) -> Option<WhyShort> {
        if self.known.as_ref().is_some_and(|known| known.currency != budget.rule.currency) {
            return Some(WhyShort::OtherCurrency);
        }
        if self.free >= price {
            return None;
        }
        let left = micros(budget.rule.limit).saturating_sub(self.charged(budget.node));
        Some(if left < price { WhyShort::Spent } else { WhyShort::Held })
    }

    /// What all nodes have charged, as far as this node knows.
    fn charged(&self, node: u64) -> i64 {
        let of_others = self.known.as_ref().map_or(0, |known| {
            let own = known.nodes.get(&node).map_or(0, |share| share.charged);
            sum(known).charged.saturating_sub(own)
        });
        of_others.saturating_add(self.share.charged)
    }

    /// The sum of all shares in the document, with this node's own as it is now.
    pub(super) fn with_own(&self, stored: Option<&BudgetDocument>, node: u64) -> BudgetShare {
        let stored = stored.filter(|stored| stored.begins == self.begins);
        let mut document = stored.or(self.known.as_ref()).cloned().unwrap_or_default();
        document.nodes.insert(node, self.share);
        sum(&document)
    }

    pub(super) fn draw(&mut self, price: i64, now: Timestamp) {
        self.free = self.free.saturating_sub(price);
        self.used_at = now;
        (self.short_since, self.why_short) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budgets::{AtLimit, BudgetPeriod, BudgetScope};

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn rule() -> BudgetRule {
        BudgetRule {
            name: "all".into(),
            scope: BudgetScope::default(),
            period: BudgetPeriod::Hour,
            limit: Money(1_000),
            currency: "USD".into(),
            at_limit: AtLimit::Refuse,
        }
    }

    struct Nodes {
        rule: BudgetRule,
        alive: BTreeSet<u64>,
        stored: Option<BudgetDocument>,
    }

    impl Nodes {
        fn new() -> Self {
            Self { rule: rule(), alive: BTreeSet::new(), stored: None }
        }

        /// Leases `price` for an order of this node, if that is possible. Returns whether it was.
        fn leases(&mut self, node: u64, local: &mut LocalBudget, price: i64) -> bool {
            let math = BudgetMath::REAL;
            let budget = BudgetNow { rule: &self.rule, node, now: NOW, math, alive: &self.alive };
            local.roll(&budget);
            local.wanted = price;
            let plan = local.plan_lease(self.stored.as_ref(), price, &budget);
            local.wanted = 0;
            let LeasePlan::Write(next, leased) = plan else { return false };
            self.stored = Some(next.clone());
            local.note_written(next, leased, NOW);
            leased > 0
        }

        fn gives_back(&mut self, node: u64, local: &mut LocalBudget) {
            let (math, now) = (BudgetMath::REAL, NOW);
            let budget = BudgetNow { rule: &self.rule, node, now, math, alive: &self.alive };
            if let Some(next) = local.plan_share(self.stored.as_ref(), &budget, true) {
                self.stored = Some(next.clone());
                local.note_written(next, 0, NOW);
            }
        }

        fn leased(&self) -> i64 {
            sum(self.stored.as_ref().expect("it was written")).leased
        }
    }

    #[test]
    fn nodes_lease_no_more_than_the_limit_and_what_is_given_back_can_be_leased_again() {
        let (mut nodes, mut one, mut other) = (Nodes::new(), LocalBudget::default(), LocalBudget::default());
        assert!(nodes.leases(1, &mut one, 600));
        assert!(!nodes.leases(2, &mut other, 600), "400 are left");
        assert!(nodes.leases(2, &mut other, 400));
        assert_eq!(nodes.leased(), 1_000);
        one.draw(500, NOW);
        nodes.gives_back(1, &mut one);
        assert_eq!(nodes.leased(), 900);
        assert!(nodes.leases(2, &mut other, 500), "400 and 100");
        assert_eq!((nodes.leased(), other.free), (1_000, 500));
    }

    #[test]
    fn the_shares_of_many_nodes_that_are_gone_are_added_up_and_stay_leased() {
        let mut nodes = Nodes::new();
        (nodes.alive, nodes.rule.limit) = ([500].into(), Money(100_000));
        for node in 0..100 {
            assert!(nodes.leases(node, &mut LocalBudget::default(), 5));
        }
        let mut last = LocalBudget::default();
        assert!(nodes.leases(500, &mut last, 5));
        let stored = nodes.stored.as_ref().expect("it was written");
        assert!(stored.nodes.len() <= SHARES_MAX && nodes.leased() >= 505, "{stored:?}");
    }

    /// A node that was frozen is taken for gone. Its share is added up, and what it gives back later still counts.
    #[test]
    fn a_node_that_was_taken_for_gone_leases_nothing_twice() {
        let (mut nodes, mut frozen) = (Nodes::new(), LocalBudget::default());
        assert!(nodes.leases(7, &mut frozen, 100));
        nodes.alive = [500].into();
        for node in 100..140 {
            assert!(nodes.leases(node, &mut LocalBudget::default(), 1));
        }
        let before = nodes.leased();
        assert!(!nodes.stored.as_ref().is_some_and(|stored| stored.nodes.contains_key(&7)));
        nodes.gives_back(7, &mut frozen);
        assert_eq!((nodes.leased(), frozen.free), (before - 100, 0));
    }

    #[test]
    fn a_budget_that_is_removed_and_set_again_keeps_what_was_leased() {
        let (mut nodes, mut local) = (Nodes::new(), LocalBudget::default());
        assert!(nodes.leases(1, &mut local, 700));
        local.draw(700, NOW);
        let mut again = LocalBudget::default();
        assert!(!nodes.leases(1, &mut again, 400), "300 are left");
        assert!(nodes.leases(1, &mut again, 300));
        assert_eq!(nodes.leased(), 1_000);
    }
}
