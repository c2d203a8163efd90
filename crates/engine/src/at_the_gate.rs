//! Where the engine meets the gate: orders ask for a seat at the provider, and records show when a seat is free.

use crate::gate::{PAUSED_LOOK, Passage};
use crate::providers::{ProviderAccount, is_affordable};
use crate::run_queue::{RunQueue, SubmitItem};
use crate::seats::{SeatId, SubmitAsk};
use crate::{Engine, lock};
use quittance_lifecycle::{
    AtLimit, Attempt, Candidate, Event, GateReadiness, Offer, Order, Phase, Progress, Shortage,
    SubmitOutcome, SubmitRoute, Timestamp,
};
use quittance_ports::Members;
use quittance_ports::membership::SILENT_AFTER;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The seat of a submit at the provider. Dropping it frees the seat, unless the gate has learned the outcome.
pub(crate) struct ProviderSeat<'a> {
    engine: &'a Engine,
    provider: Arc<ProviderAccount>,
    id: SeatId,
    tenant: String,
    was_made: bool,
}

impl ProviderSeat<'_> {
    /// The attempt of this seat is submitted now.
    pub(crate) fn begins(&mut self, order: &Order, attempt: u32) {
        self.was_made = true;
        lock(&self.provider.gate).begins(self.id, order, attempt);
    }

    /// The gate learns the outcome of the submit.
    pub(crate) fn ends(self, outcome: &SubmitOutcome, grain: u64) {
        let now = self.engine.now();
        lock(&self.provider.gate).learn(outcome, self.id, &self.tenant, now, grain);
    }
}

impl Drop for ProviderSeat<'_> {
    fn drop(&mut self) {
        let now = self.engine.now();
        lock(&self.provider.gate).leave(self.id, &self.tenant, now, self.was_made);
        self.engine.wakeup.ring();
    }
}

/// How soon an order asks again, if the moment is not known and another order may pass before.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What an order does next, as far as the gate is concerned.
pub(crate) enum AskOutcome<'a> {
    /// It may go to the provider of this seat.
    Pass(ProviderSeat<'a>, Offer),
    /// It waits in the run queue.
    Wait,
    /// It is woken with this.
    Decided(SubmitRoute),
}

const fn called_back(event: &Event) -> Option<u32> {
    match event {
        Event::CalledBack { attempt, .. } => Some(*attempt),
        _ => None,
    }
}

/// Whether the event is a callback for an attempt whose submit has had no reply.
pub(crate) fn is_silent(order: &Order, event: &Event) -> bool {
    let attempt = called_back(event).and_then(|number| order.attempt(number));
    attempt.is_some_and(|attempt| attempt.progress == Progress::Sent)
}

/// No budget allows the submit. An order that has a task already waits for that, whatever the budget says.
fn no_budget(order: &Order, mut shortage: Shortage) -> AskOutcome<'static> {
    if order.is_hedging() {
        shortage.at_limit = AtLimit::Wait;
    }
    AskOutcome::Decided(SubmitRoute::NoBudget(shortage))
}

impl Engine {
    /// Takes the next order that may ask the gate now.
    pub(crate) fn pop_submit(&self, run_queue: &mut RunQueue, now: Timestamp) -> Option<SubmitItem> {
        if self.is_stopping() {
            return None;
        }
        let before = run_queue.before_gate;
        let due = run_queue.pop_submit(now, |tenant| self.turn_of(tenant, before, now) <= now)?;
        run_queue.before_gate += 1;
        Some(due)
    }

    /// When an order of this tenant should ask the gates: when the first of them may let it pass.
    pub(crate) fn turn_of(&self, tenant: &str, before: usize, now: Timestamp) -> Timestamp {
        let providers = self.providers();
        let turns = providers.iter().map(|it| {
            let mut gate = lock(&it.gate);
            // Beside one that takes orders, a paused one is no reason to ask.
            if gate.is_paused() && providers.len() > 1 {
                return now + PAUSED_LOOK;
            }
            gate.turn_of(tenant, before, now)
        });
        turns.min().unwrap_or(now)
    }

    /// Whether this order may be submitted now, and to which provider. Only an order that waits for its submit needs a seat.
    pub(crate) fn ask_the_gates(&self, order: &Order) -> AskOutcome<'_> {
        let now = self.now();
        let shut_until = |until: Timestamp| AskOutcome::Decided(SubmitRoute::ShutUntil(until));
        let may_be_called_back =
            |attempt: &Attempt| matches!(attempt.progress, Progress::Sent | Progress::GivenUp { .. });
        let is_in_doubt = order.attempts.iter().any(may_be_called_back);
        if !matches!(order.phase, Phase::Queued { held: false, .. } | Phase::InDoubt { .. }) {
            return shut_until(now);
        }
        // If this node could not write for a while, other nodes could not either, and one of them may have spilled the
        // callback that settles this order's doubt. That callback must be written first.
        if is_in_doubt && self.store_was_away(self.settings().others_first) {
            return shut_until(now + self.settings().others_first);
        }
        // The store has forgotten something. Another node may hold this order with a paid attempt, and must have the
        // time to put it back.
        if let Some(until) = self.recovering() {
            return shut_until(until);
        }
        // No turn at the gate is spent on an order that is not paid for any more.
        if matches!(order.phase, Phase::InDoubt { .. }) || order.deadline <= now || self.is_too_late(order) {
            return shut_until(now);
        }
        let ask = SubmitAsk {
            key: order.key,
            tenant: &order.terms.tenant,
            is_retry: order.attempts.last().is_some_and(|attempt| attempt.sent >= order.placed),
            p99: self.policy(order).pace.p99,
            deadline: order.deadline,
        };
        let terms = &order.terms;
        let mut providers = self.providers_for(&terms.kind, &terms.tenant);
        providers.retain(|it| is_affordable(terms, it));
        if let ([only], true) = (&providers[..], order.used_up.is_empty()) {
            let drawn = match self.draw(order, only, now) {
                Ok(drawn) => drawn,
                Err(shortage) => return no_budget(order, shortage),
            };
            let passage = lock(&only.gate).pass(&ask, now);
            let until = match passage {
                Passage::Pass(id) => {
                    let offer = Offer { account: Some(only.listed(terms)), passed_over: Vec::new(), drawn };
                    return AskOutcome::Pass(self.seat(only, id, order), offer);
                }
                Passage::Wait if self.providers().len() == 1 => None,
                // Orders for other providers do not wait behind it.
                Passage::Wait => {
                    let turn = lock(&only.gate).turn_of(&terms.tenant, 0, now);
                    Some(turn.clamp(now + LOOK_AGAIN, now + PAUSED_LOOK))
                }
                Passage::ShutUntil(until) => Some(until),
            };
            self.give_back(drawn);
            return until.map_or(AskOutcome::Wait, shut_until);
        }
        self.ask_several(order, &ask, &providers, now)
    }

    /// Chooses between providers, and passes the gate of the chosen one.
    fn ask_several<'a>(
        &'a self,
        order: &Order,
        ask: &SubmitAsk<'_>,
        providers: &[Arc<ProviderAccount>],
        now: Timestamp,
    ) -> AskOutcome<'a> {
        let candidate = |it: &Arc<ProviderAccount>| Candidate {
            shortage: self.shortage(&order.terms, it, order.is_hedging(), now),
            ..it.candidate(order, now)
        };
        let mut candidates: Vec<Candidate> = providers.iter().map(candidate).collect();
        let routing = self.settings().routing.of(&order.terms);
        loop {
            let choice = (self.settings().rules.choose)(order, &candidates, routing, now);
            let Some(chosen) = choice.chosen else {
                if let Some(shortage) = choice.shortage {
                    return no_budget(order, shortage);
                }
                // It waits here if every provider is busy: a seat that is free wakes it. Otherwise it would ask again
                // and again, because another order may pass.
                if self.turn_of(&order.terms.tenant, 0, now) > now && !self.providers_are_down() {
                    return AskOutcome::Wait;
                }
                let until = choice.until.min(now + PAUSED_LOOK).max(now + LOOK_AGAIN);
                return AskOutcome::Decided(SubmitRoute::ShutUntil(until));
            };
            let provider = &providers[chosen];
            let drawn = match self.draw(order, provider, now) {
                Ok(drawn) => drawn,
                // Another order has drawn since: the next round passes the provider over.
                Err(shortage) => {
                    candidates[chosen].shortage = Some(shortage);
                    continue;
                }
            };
            let passage = lock(&provider.gate).pass(ask, now);
            match passage {
                Passage::Pass(id) => {
                    let account = Some(candidates[chosen].account.clone());
                    let offer = Offer { account, passed_over: choice.passed_over, drawn };
                    return AskOutcome::Pass(self.seat(provider, id, order), offer);
                }
                // Not ready after all: the next round passes it over.
                Passage::Wait => {
                    self.give_back(drawn);
                    candidates[chosen].readiness = GateReadiness::Busy(now + LOOK_AGAIN);
                }
                Passage::ShutUntil(until) => {
                    self.give_back(drawn);
                    candidates[chosen].readiness = GateReadiness::Busy(until.max(now));
                }
            }
        }
    }

    /// Whether no provider takes orders until it is resumed.
    fn providers_are_down(&self) -> bool {
        self.providers().iter().all(|it| lock(&it.gate).is_paused())
    }

    fn seat(&self, provider: &Arc<ProviderAccount>, id: SeatId, order: &Order) -> ProviderSeat<'_> {
        let tenant = order.terms.tenant.clone();
        ProviderSeat { engine: self, provider: Arc::clone(provider), id, tenant, was_made: false }
    }

    /// Shows a record to the gate: the seats of attempts that have ended are free.
    pub(crate) fn see(&self, order: &Order) {
        let now = self.now();
        let mut is_free = false;
        for provider in self.providers_with_tasks() {
            is_free |= lock(&provider.gate).see(order, now);
        }
        if is_free {
            self.wakeup.ring();
        }
    }

    /// Notes that the provider took an attempt whose submit had no reply, if its callback shows that.
    pub(crate) fn note_settled_doubt(&self, order: &Order, event: &Event) {
        let number = called_back(event);
        let attempt = number.and_then(|number| order.attempt(number));
        if attempt.is_some_and(|attempt| (self.settings().rules.gate.settles_doubt)(&attempt.progress)) {
            lock(&self.provider_of(order, number).gate).settled(&order.terms.tenant, self.now());
            self.wakeup.ring();
        }
    }

    /// Counts the nodes that work on the account, so that together they keep the provider's pace.
    pub(crate) fn share_the_pace(&self, members: &Members) {
        let is_there = |seen: Timestamp| members.now.since(seen) < SILENT_AFTER;
        self.note_alive(members, is_there);
        let others = members
            .nodes
            .iter()
            .filter(|member| member.node_status.node != self.node && is_there(member.seen));
        let others = u32::try_from(others.count()).unwrap_or(u32::MAX);
        self.other_nodes.store(others, Ordering::Relaxed);
        let nodes = others.saturating_add(1);
        self.providers().iter().for_each(|it| lock(&it.gate).set_nodes(nodes));
    }
}
