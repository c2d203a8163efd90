//! Which budgets count an attempt, and what the attempt draws from them before its submit. When its cost is known, the
//! difference comes back. What a crash loses stays drawn: a budget may look more spent than it is, never less.

use super::local_budget::{BudgetNow, LocalBudget, micros};
use super::{BudgetRule, Budgets};
use crate::providers::ProviderAccount;
use crate::targets::HostPattern;
use crate::{Engine, lock};
use quittance_lifecycle::{
    AtLimit, Attempt, BudgetDraw, Money, Order, Progress, Shortage, Terms, Timestamp, WhyShort, provider_of,
};
use std::sync::Arc;
use std::time::Duration;

/// How soon an order looks again if attempts in progress hold what is left.
const HELD_LOOK: Duration = Duration::from_secs(2);
const HELD_LOOK_MAX: Duration = Duration::from_secs(15);
/// How soon an order that waits for the next period looks again: the operator may raise the limit.
const SPENT_LOOK: Duration = Duration::from_secs(60);
/// How long a budget must be short before new orders are refused, although some of it may come back.
const SHORT_FOR: Duration = Duration::from_secs(2);
/// The most prices that are remembered because answers cost more than the list says.
const DEAREST_MAX: usize = 256;

impl BudgetRule {
    /// The period and the name, as the shared document and attempts have them.
    #[must_use]
    pub fn document_name(&self) -> String {
        format!("{}/{}", self.period.name(), self.name)
    }

    /// Whether the budget counts attempts for these terms at this provider.
    fn counts(&self, terms: &Terms, provider: &str, is_hedge: bool) -> bool {
        let scope = &self.scope;
        if scope.hedges && !is_hedge {
            return false;
        }
        let is =
            |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|wanted| wanted == value);
        // A pattern that cannot be read must not let money pass by.
        let is_target = |pattern: &String| {
            HostPattern::parse(pattern).map_or(true, |pattern| pattern.covers(&terms.site))
        };
        let pool = terms.slot.as_ref().map(|slot| &*slot.pool);
        is(&scope.tenant, &terms.tenant)
            && is(&scope.kind, &terms.kind)
            && is(&scope.provider, provider)
            && scope.target.as_ref().is_none_or(is_target)
            && scope.pool.as_deref().is_none_or(|wanted| pool == Some(wanted))
    }
}

impl Engine {
    /// The budgets that count attempts for these terms at this provider.
    pub(super) fn budgets_of(
        &self,
        terms: &Terms,
        provider: &ProviderAccount,
        is_hedge: bool,
    ) -> Vec<Arc<BudgetRule>> {
        let rules = self.budgets();
        let counts = |rule: &&Arc<BudgetRule>| rule.counts(terms, &provider.rules.name, is_hedge);
        rules.iter().filter(counts).cloned().collect()
    }

    /// What an attempt for these terms is expected to cost at this provider: the price of the list, or the last cost if
    /// that was higher.
    pub(super) fn expected_price(&self, terms: &Terms, provider: &ProviderAccount) -> Option<Money> {
        let dearest =
            lock(&self.budgets).dearest.get(&(provider.account.clone(), terms.kind.clone())).copied();
        let price = (self.settings().rules.budget.price)(provider.listed(terms).price)?;
        Some(price.max(dearest.unwrap_or_default()))
    }

    /// The budget that does not allow an attempt for these terms at this provider, if there is one.
    pub(crate) fn shortage(
        &self,
        terms: &Terms,
        provider: &ProviderAccount,
        is_hedge: bool,
        now: Timestamp,
    ) -> Option<Shortage> {
        if self.budgets().is_empty() {
            return None;
        }
        let price = self.expected_price(terms, provider);
        let mut budgets = lock(&self.budgets);
        let mut found: Option<Shortage> = None;
        for rule in self.budgets_of(terms, provider, is_hedge) {
            let Some(shortage) = self.shortage_in(&mut budgets, &rule, (provider, price), now) else {
                continue;
            };
            // One that ends the order counts before one for which it waits.
            if found.as_ref().is_none_or(|found| !found.ends_the_order() && shortage.ends_the_order()) {
                found = Some(shortage);
            }
        }
        found
    }

    fn shortage_in(
        &self,
        budgets: &mut Budgets,
        rule: &BudgetRule,
        (provider, price): (&ProviderAccount, Option<Money>),
        now: Timestamp,
    ) -> Option<Shortage> {
        let (local, budget) = self.local(budgets, rule, now);
        let why = match price {
            _ if provider.rules.currency != rule.currency => Some(WhyShort::OtherCurrency),
            None => Some(WhyShort::PriceNotKnown),
            Some(price) => local.why_not(micros(price), &budget),
        };
        local.why_short = why.or(local.why_short);
        let why = why?;
        let ends = rule.period.ends(now);
        let until = match (why, rule.at_limit) {
            // Many orders may wait, so they look less and less often.
            (WhyShort::Held, _) => {
                let short_for = local.short_since.map_or(Duration::ZERO, |since| now.since(since));
                now + short_for.clamp(HELD_LOOK, HELD_LOOK_MAX)
            }
            (_, AtLimit::Wait) => ends.min(now + SPENT_LOOK),
            _ => ends,
        };
        Some(Shortage {
            budget: rule.name.clone(),
            why,
            at_limit: rule.at_limit,
            is_of_provider: rule.scope.provider.is_some(),
            ends,
            until,
        })
    }

    /// Draws the expected price of an attempt from all budgets that count it, or from none of them.
    pub(crate) fn draw(
        &self,
        order: &Order,
        provider: &ProviderAccount,
        now: Timestamp,
    ) -> Result<Option<BudgetDraw>, Shortage> {
        let (terms, is_hedge) = (&order.terms, order.is_hedging());
        if self.budgets_of(terms, provider, is_hedge).is_empty() {
            return Ok(None);
        }
        if let Some(shortage) = self.shortage(terms, provider, is_hedge, now) {
            return Err(shortage);
        }
        let Some(price) = self.expected_price(terms, provider) else { return Ok(None) };
        let mut budgets = lock(&self.budgets);
        // Another order may have drawn a moment ago.
        for rule in self.budgets_of(terms, provider, is_hedge) {
            if let Some(shortage) = self.shortage_in(&mut budgets, &rule, (provider, Some(price)), now) {
                return Err(shortage);
            }
        }
        let mut draw = BudgetDraw { price, budgets: Vec::new(), until: Timestamp::MAX };
        for rule in self.budgets_of(terms, provider, is_hedge) {
            self.local(&mut budgets, &rule, now).0.draw(micros(price), now);
            draw.budgets.push(rule.document_name());
            draw.until = draw.until.min(rule.period.ends(now));
        }
        Ok(Some(draw))
    }

    /// Gives back a draw for which no attempt was made.
    pub(crate) fn give_back(&self, draw: Option<BudgetDraw>) {
        let Some(draw) = draw else { return };
        let now = self.now();
        let drawn_in = draw.until - Duration::from_millis(1);
        let mut budgets = lock(&self.budgets);
        for rule in self.rules_named(&draw.budgets) {
            let (local, budget) = self.local(&mut budgets, &rule, now);
            if (budget.math.begins)(rule.period, drawn_in) == local.begins {
                local.free = local.free.saturating_add(micros(draw.price));
            }
        }
    }

    /// Gives back a draw, unless the order as it is on record has the attempt for which it was drawn.
    pub(crate) fn give_back_unless_made(&self, draw: Option<BudgetDraw>, order: &Order, since: Timestamp) {
        let is_made = |attempt: &Attempt| attempt.drawn == draw && attempt.sent >= since;
        if !order.attempts.iter().any(is_made) {
            self.give_back(draw);
        }
    }

    /// Settles what a commit of this node has learned about the costs of attempts. Only the node whose commit has won
    /// does this, so nothing is settled twice.
    pub(crate) fn settle_budgets(&self, before: &Order, after: &Order) {
        for attempt in &after.attempts {
            if let Some(draw) = &attempt.drawn
                && let Some(earlier) = before.attempt(attempt.number)
                && earlier != attempt
            {
                self.settle_attempt(earlier, attempt, draw);
                self.note_cost(after, attempt, draw);
            }
        }
    }

    fn settle_attempt(&self, before: &Attempt, after: &Attempt, draw: &BudgetDraw) {
        let now = self.now();
        let effect = self.settings().rules.budget.effect;
        let (was, is) = (effect(before), effect(after));
        if was == is {
            return;
        }
        let mut back = micros(was.held).saturating_sub(micros(is.held));
        // The store may have forgotten that this was settled before.
        if back > 0 && self.recovering().is_some() {
            back = 0;
        }
        let mut budgets = lock(&self.budgets);
        for rule in self.rules_named(&draw.budgets) {
            let (local, budget) = self.local(&mut budgets, &rule, now);
            // A period that is over is not corrected.
            if (budget.math.begins)(rule.period, after.sent) != local.begins {
                continue;
            }
            let charged = micros(is.charged).saturating_sub(micros(was.charged));
            let unpriced = i64::from(is.is_unpriced) - i64::from(was.is_unpriced);
            local.free = local.free.saturating_add(back);
            local.share.charged = local.share.charged.saturating_add(charged);
            local.share.unpriced = local.share.unpriced.saturating_add(unpriced);
        }
    }

    /// Remembers what an answer has cost, if that is more than was drawn for it.
    fn note_cost(&self, order: &Order, attempt: &Attempt, draw: &BudgetDraw) {
        let Some(cost) = attempt.cost.filter(|_| attempt.progress == Progress::Answered) else { return };
        let key = (order.account_of(attempt).to_owned(), order.terms.kind.clone());
        let mut budgets = lock(&self.budgets);
        if cost > draw.price && (budgets.dearest.len() < DEAREST_MAX || budgets.dearest.contains_key(&key)) {
            budgets.dearest.insert(key, cost);
        } else if cost < draw.price {
            budgets.dearest.remove(&key);
        }
    }

    fn rules_named(&self, names: &[String]) -> Vec<Arc<BudgetRule>> {
        self.budgets().iter().filter(|rule| names.contains(&rule.document_name())).cloned().collect()
    }

    /// What this node has of a budget, in the period of `now`.
    pub(super) fn local<'a>(
        &self,
        budgets: &'a mut Budgets,
        rule: &'a BudgetRule,
        now: Timestamp,
    ) -> (&'a mut LocalBudget, BudgetNow<'a>) {
        let Budgets { locals, alive, .. } = budgets;
        let math = self.settings().rules.budget;
        let budget = BudgetNow { rule, node: self.node, now, math, alive };
        let local = locals.entry(rule.document_name()).or_default();
        local.roll(&budget);
        (local, budget)
    }

    /// When the budget ends that allows no new order of these terms; `None` if one may be placed.
    pub(crate) fn no_budget_until(&self, terms: &Terms) -> Option<Timestamp> {
        if self.budgets().is_empty() {
            return None;
        }
        let now = self.now();
        let (mut ends, mut is_any_open) = (None, false);
        for provider in self.providers_for(&terms.kind, &terms.tenant) {
            match self.refusal(terms, &provider, now) {
                Some(shortage) => {
                    let is_first = provider_of(&terms.account) == provider.rules.name;
                    if is_first && shortage.stops_the_order() {
                        return Some(shortage.ends);
                    }
                    ends = ends.max(Some(shortage.ends));
                }
                None => is_any_open = true,
            }
        }
        ends.filter(|_| !is_any_open)
    }

    /// The shortage for which a new order is refused, if its provider would be this one.
    fn refusal(&self, terms: &Terms, provider: &ProviderAccount, now: Timestamp) -> Option<Shortage> {
        let mut shortage = self.shortage(terms, provider, false, now)?;
        if shortage.why == WhyShort::Held {
            let mut budgets = lock(&self.budgets);
            let rule = self
                .budgets_of(terms, provider, false)
                .into_iter()
                .find(|rule| rule.name == shortage.budget)?;
            let short_since = self.local(&mut budgets, &rule, now).0.short_since;
            if short_since.is_some_and(|since| now.since(since) >= SHORT_FOR) {
                shortage.why = WhyShort::Spent;
            }
        }
        shortage.ends_the_order().then_some(shortage)
    }

    /// The budgets that may count an order, and what an attempt draws from each at most and at least.
    pub(super) fn needs_of(&self, order: &Order) -> Vec<(Arc<BudgetRule>, i64, i64)> {
        let mut needs: Vec<(Arc<BudgetRule>, i64, i64)> = Vec::new();
        let terms = &order.terms;
        for provider in self.providers_for(&terms.kind, &terms.tenant) {
            let Some(price) = self.expected_price(terms, &provider).map(micros) else { continue };
            for rule in self.budgets_of(terms, &provider, order.is_hedging()) {
                if provider.rules.currency != rule.currency {
                    continue;
                }
                match needs.iter_mut().find(|(known, ..)| known.name == rule.name) {
                    Some((_, most, least)) => (*most, *least) = (price.max(*most), price.min(*least)),
                    None => needs.push((rule, price, price)),
                }
            }
        }
        needs
    }
}
