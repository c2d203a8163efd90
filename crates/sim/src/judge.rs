//! The judge compares the promises of Quittance with what really happened in the simulation (`truth.rs`). It shares
//! no rule with the engine: it has its own numbers for lifetimes, windows and limits.

mod freshness;

use crate::fleet::SKEW_MAX;
use crate::provider::{PRICE, PROVIDER_NAMES};
use crate::truth::{Arrival, CallerResult, Fate, SimFault, Task, Truth, Visit};
use quittance_lifecycle::{
    Attempt, Counters, FaultClass, Key, Order, Origin, Phase, Progress, Reuse, TimelineEvent, Timestamp,
    provider_of,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// A broken promise, and how it was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    pub promise: &'static str,
    pub detail: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.detail)
    }
}

pub(crate) struct LifeEvidence<'a> {
    pub truth: &'a Truth,
    pub orders: &'a [Arc<Order>],
    pub usage: &'a Counters,
    pub spilled: usize,
    pub has_several_providers: bool,
    /// Whether faults that cost nothing are retried until the deadline (the preset `patient`).
    pub is_patient: bool,
    /// Whether the provider charges for a task that it could not solve.
    pub unsolvable_is_charged: bool,
}

/// How far two clocks may be apart, plus half a second for a message between machines, in milliseconds like
/// all times here.
const SLACK: u64 = 2 * SKEW_MAX.unsigned_abs() + 500;
/// The longest time from the sending of a request to its arrival.
const TRAVEL: u64 = 30_000;
/// The longest time for which a node is frozen, with a reserve.
const FROZEN_MAX: u64 = 120_000;
/// How long a caller has to fetch an answer that is ready.
const COLLECTED_IN: u64 = 15_000;
const REFUSAL_HOLD: u64 = 30_000;
const TASK_LIFE: u64 = 600_000;
/// How long after an operator's release an order may still be sent because of it.
const RELEASE_LASTS: u64 = 15_000;
const DOUBTS_MAX: usize = 3;
/// The shortest time after which a doubt is over without a sign.
const IN_DOUBT_MIN: u64 = 10_000;

/// The life of an answer of this kind, and how much of it a reused answer must have left.
fn life_of(kind: &str) -> Option<(u64, u64)> {
    match kind {
        "recaptcha_v2" | "recaptcha_v3" => Some((120_000, 40_000)),
        "turnstile" => Some((300_000, 50_000)),
        _ => None,
    }
}

/// The most submits in one life of an order, by the class of the fault that it meets.
fn submits_max(class: FaultClass) -> usize {
    1 + match class {
        FaultClass::Busy => 5,
        FaultClass::UnlistedCode | FaultClass::Unsolvable => 2,
        _ => 0,
    }
}

struct Court<'a> {
    evidence: &'a LifeEvidence<'a>,
    truth: &'a Truth,
    orders: BTreeMap<Key, &'a Order>,
    tasks: BTreeMap<&'a str, Vec<&'a Task>>,
    visits: BTreeMap<&'a str, Vec<&'a Visit>>,
    breaches: Vec<Breach>,
}

#[must_use]
pub(crate) fn judge(evidence: &LifeEvidence<'_>) -> Vec<Breach> {
    let truth = evidence.truth;
    let mut court = Court {
        evidence,
        truth,
        orders: evidence.orders.iter().map(|order| (order.key, &**order)).collect(),
        tasks: BTreeMap::new(),
        visits: BTreeMap::new(),
        breaches: Vec::new(),
    };
    for task in &truth.tasks {
        court.tasks.entry(&task.who).or_default().push(task);
    }
    court.tasks.values_mut().for_each(|tasks| tasks.sort_by_key(|task| (task.sent_at, task.attempt)));
    for visit in &truth.visits {
        court.visits.entry(&visit.who).or_default().push(visit);
    }
    court.every_order_ends();
    court.paid_once();
    court.nothing_delivered_is_lost();
    court.answers_are_right_fresh_and_not_given_twice();
    court.what_is_fresh_is_not_refused();
    court.an_answer_is_left_to_those_that_it_was_bought_for();
    court.faults_are_not_retried_beyond_their_limit();
    court.a_closed_account_is_left_in_peace();
    court.an_attempt_names_its_provider();
    court.a_doubt_is_over_before_the_next_submit();
    court.callers_get_an_outcome();
    court.the_usage_agrees_with_the_ledger();
    court.breaches
}

impl Court<'_> {
    fn find(&mut self, promise: &'static str, detail: String) {
        self.breaches.push(Breach { promise, detail });
    }

    fn attempt(&self, task: &Task) -> Option<&Attempt> {
        self.orders.get(&task.key)?.attempts.iter().find(|attempt| attempt.number == task.attempt)
    }

    /// Whether this node was killed or frozen between `from` and `to`.
    fn was_troubled(&self, node: u64, from: u64, to: u64) -> bool {
        self.truth.faults.iter().any(|(group, fault, at)| {
            // A freeze that began before `from` may last into the time.
            let begun = if *fault == SimFault::Frozen { from.saturating_sub(120_000) } else { from };
            *group == node && *at >= begun && *at <= to
        })
    }

    /// Whether the answer of this task went into the stock as an order of its own.
    fn went_to_stock(&self, task: &Task) -> bool {
        let order = self.orders.get(&task.key);
        order.is_some_and(|order| self.orders.contains_key(&order.key.surplus(order.born, task.attempt)))
    }

    /// Whether the order of this task was cancelled, and another order may have taken the answer from the stock: an
    /// exclusive or keyed one, or one with another minimum life.
    fn went_to_another(&self, task: &Task, before: u64) -> bool {
        let is_cancelled = self.truth.cancelled.iter().any(|(who, at)| *who == task.who && *at <= before);
        let could_take = |visit: &Visit| {
            let is_another =
                visit.who != task.who || visit.who.starts_with("exclusive") || visit.who.starts_with("keyed");
            // A caller that waited already when this task was bought may get its answer, too.
            let still_wanted = visit.result_at.as_ref().is_none_or(|(at, _)| *at > task.accepted_at);
            is_another
                && visit.request_spec.identity() == task.identity
                && visit.begun_at < before
                && still_wanted
        };
        is_cancelled && self.truth.visits.iter().any(could_take)
    }

    fn every_order_ends(&mut self) {
        for order in self.evidence.orders {
            let unfinished = |attempt: &Attempt| {
                matches!(
                    attempt.progress,
                    Progress::Trailing { .. } | Progress::Surplus { .. } | Progress::Solving { .. }
                )
            };
            let is_over = matches!(
                order.phase,
                Phase::Solved { .. }
                    | Phase::Claimed { .. }
                    | Phase::Expired { .. }
                    | Phase::Failed { .. }
                    | Phase::Dead { .. }
            );
            if !is_over || order.attempts.iter().any(unfinished) {
                self.find("every order ends", format!("{:?} is still {}", order.key, order.phase.name()));
            }
        }
        for (number, visit) in self.truth.visits.iter().enumerate() {
            if let Some(key) = visit.key
                && !self.orders.contains_key(&key)
            {
                self.find(
                    "never lost",
                    format!("visit {number} was accepted as {key:?}, which is not on record"),
                );
            }
        }
        if self.evidence.spilled > 0 {
            self.find("never lost", format!("{} events are still in a spill", self.evidence.spilled));
        }
        if self.truth.panics > 0 {
            self.find("no panic", format!("{} jobs panicked", self.truth.panics));
        }
    }

    fn paid_once(&mut self) {
        for (who, tasks) in &self.tasks.clone() {
            // Each payment that was followed by another one although it may have been good, counted once.
            let mut doubles = BTreeSet::new();
            for (n, task) in tasks.iter().enumerate() {
                let alive: Vec<_> =
                    tasks[..n].iter().filter(|earlier| !self.is_over(earlier, task)).collect();
                if let Some(earlier) = alive.iter().find(|earlier| !self.is_excused(earlier, task)) {
                    let detail = format!("{who}: task {} while {} was alive and known", task.id, earlier.id);
                    self.find("paid once", detail);
                }
                let in_doubt = alive.iter().filter(|earlier| !self.is_hedged(earlier, task));
                doubles.extend(in_doubt.map(|earlier| earlier.id));
            }
            let keys: BTreeSet<Key> = tasks.iter().map(|task| task.key).collect();
            let listed: u32 =
                keys.iter().filter_map(|key| self.orders.get(key)).map(|o| o.possible_doubles).sum();
            let doubles = doubles.len();
            if doubles > listed as usize {
                let detail = format!("{who}: {doubles} double payments, {listed} listed");
                self.find("every doubt in plain sight", detail);
            }
        }
    }

    /// Whether `earlier` could not bring a useful answer any more when `later` was bought.
    fn is_over(&self, earlier: &Task, later: &Task) -> bool {
        let known = [earlier.fault_reply, earlier.answer_returned, earlier.callback_received]
            .into_iter()
            .flatten()
            .min();
        if known.is_none_or(|result_at| result_at > later.sent_at) {
            return false;
        }
        if earlier.fate == Fate::Unsolvable || earlier.fault_reply.is_some_and(|at| at <= later.sent_at) {
            return true;
        }
        if self.went_to_stock(earlier) || self.went_to_another(earlier, later.sent_at) {
            return true;
        }
        let kind = earlier.identity.split('|').nth(1).unwrap_or_default();
        let Some((life, margin)) = life_of(kind) else { return false };
        let wanted = self.visits.get(earlier.who.as_str()).into_iter().flatten();
        let most = wanted
            .filter_map(|visit| visit.request_spec.min_life)
            .max()
            .map_or(margin, |min_life| u64::try_from(min_life.as_millis()).unwrap_or(u64::MAX).max(margin));
        // The node may have been frozen during the submit. The age of the answer counts from the recorded
        // moment of the submit.
        let frozen = self.was_troubled(earlier.node, earlier.accepted_at - FROZEN_MAX, earlier.accepted_at);
        let meant = match self.attempt(earlier) {
            Some(attempt) => attempt.sent.as_millis(),
            // An order that was placed very often has removed the attempt.
            None if frozen => earlier.accepted_at - FROZEN_MAX,
            None => u64::MAX,
        };
        let oldest = meant.min(earlier.accepted_at - TRAVEL);
        // Clocks may differ, and a caller may need time to fetch the answer.
        later.sent_at + 2 * SLACK + COLLECTED_IN >= oldest + life - most
    }

    /// Whether no node of ours could know, when `later` was bought, that the provider had taken `earlier`.
    fn is_excused(&self, earlier: &Task, later: &Task) -> bool {
        let reply_came = earlier.reply_reached.is_some_and(|at| at <= later.sent_at);
        let callback_came = earlier.callback_acked.is_some_and(|at| {
            let keeper_was_troubled =
                earlier.acked_by.is_some_and(|node| self.was_troubled(node, at, later.sent_at));
            at <= later.sent_at && !keeper_was_troubled
        });
        let node_was_troubled = self.was_troubled(earlier.node, earlier.accepted_at, later.sent_at);
        let was_waited_out = later.sent_at + SLACK >= earlier.accepted_at + TASK_LIFE;
        (!callback_came && (!reply_came || node_was_troubled))
            || was_waited_out
            || self.was_left(earlier, later)
            || self.is_hedged(earlier, later)
    }

    /// Whether `later` was bought beside `earlier` on purpose, because the order is urgent.
    fn is_hedged(&self, earlier: &Task, later: &Task) -> bool {
        let Some(order) = self.orders.get(&earlier.key) else { return false };
        let is_noted = order.timeline.entries.iter().any(
            |entry| matches!(entry.event, TimelineEvent::Hedged { attempt } if attempt == earlier.attempt),
        );
        earlier.provider != later.provider && is_noted
    }

    /// Whether the provider of `earlier` was given up, so that another one got the order: no sooner than after the
    /// shortest time of a doubt, and in plain sight.
    fn was_left(&self, earlier: &Task, later: &Task) -> bool {
        let Some(order) = self.orders.get(&earlier.key) else { return false };
        let is_noted = order.timeline.entries.iter().any(
            |entry| matches!(entry.event, TimelineEvent::GaveUp { attempt } if attempt == earlier.attempt),
        );
        earlier.provider != later.provider
            && later.sent_at + SLACK >= earlier.accepted_at + IN_DOUBT_MIN
            && is_noted
            && order.possible_doubles > 0
    }

    fn nothing_delivered_is_lost(&mut self) {
        for task in &self.truth.tasks {
            let Some(order) = self.orders.get(&task.key) else {
                self.find("never lost", format!("task {}: its order is not on record", task.id));
                continue;
            };
            if order.attempts.len() < order.last_attempt as usize {
                continue;
            }
            let Some(attempt) = self.attempt(task) else {
                self.find("intent before money", format!("task {}: its attempt is not on record", task.id));
                continue;
            };
            let (accepted, progress) = (attempt.accepted, attempt.progress.clone());
            let answered = progress == Progress::Answered;
            if task.fate == Fate::Answer && task.callback_acked.is_some() && !answered {
                let detail = format!("task {}: called back and acknowledged, and is {progress:?}", task.id);
                self.find("never lost", detail);
            }
            let could_be_fetched = task.vanishes_at == u64::MAX
                && (task.accepted_at + TASK_LIFE > self.truth.calm_at + 30_000 || answered);
            if task.fate == Fate::Answer && accepted && could_be_fetched && !answered {
                self.find("never lost", format!("task {}: known, solved, and is {progress:?}", task.id));
            }
            if let Some(at) = task.reply_reached
                && !accepted
                && !self.was_troubled(task.node, at, at + 300_000)
            {
                self.find("never lost", format!("task {}: the reply came, and no record has it", task.id));
            }
        }
    }

    fn answers_are_right_fresh_and_not_given_twice(&mut self) {
        let by_token: BTreeMap<String, &Task> =
            self.truth.tasks.iter().map(|task| (task.token(), task)).collect();
        let mut callers_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for visit in &self.truth.visits {
            let Some((at, CallerResult::Answer { token })) = &visit.result_at else { continue };
            let who = &visit.who;
            callers_of.entry(token).or_default().insert(who);
            let Some(task) = by_token.get(token) else {
                self.find("no answer is made up", format!("{who} got {token}, which was never solved"));
                continue;
            };
            let wanted = visit.request_spec.identity();
            if task.identity != wanted {
                let detail = format!("{who} wanted {wanted} and was given {token} for {}", task.identity);
                self.find("no two orders are mixed up", detail);
            }
            let Some((life, margin)) = life_of(visit.request_spec.kind) else { continue };
            let requested_life = visit
                .request_spec
                .min_life
                .map_or(0, |span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
            let is_reused = matches!(visit.origin, Some(Origin::Cached | Origin::Stock))
                || visit.key.is_some_and(|key| key != task.key);
            let min_life = if is_reused { requested_life.max(margin) } else { requested_life };
            let left = (task.solves_at + life).saturating_sub(*at);
            if left == 0 || left < min_life {
                self.find(
                    "never stale",
                    format!("{who} was given {token} with {left} ms of {min_life} left"),
                );
            }
        }
        for (token, receivers) in callers_of {
            let is_for_ever = by_token.get(token).is_some_and(|task| task.identity.contains("|image|"));
            if receivers.len() > 1 && !is_for_ever {
                self.find("a single-use answer goes to one order", format!("{token} went to {receivers:?}"));
            }
        }
    }

    fn faults_are_not_retried_beyond_their_limit(&mut self) {
        let mut counts: BTreeMap<(&str, FaultClass, usize), usize> = BTreeMap::new();
        for refused in &self.truth.refused {
            *counts.entry((&refused.who, refused.class, refused.provider)).or_default() += 1;
        }
        for task in self.truth.tasks.iter().filter(|task| task.fate == Fate::Unsolvable) {
            *counts.entry((&task.who, FaultClass::Unsolvable, task.provider)).or_default() += 1;
        }
        for ((who, class, _), count) in counts {
            let replays = self.truth.replayed.iter().filter(|name| *name == who).count();
            let is_for_a_pool = usize::from(who.starts_with("pool"));
            let lives = self.visits.get(who).map_or(is_for_a_pool, Vec::len) + replays;
            // A submit whose reply was lost is in doubt, and is retried a few times.
            let most = lives * (submits_max(class) + DOUBTS_MAX);
            let is_free = class == FaultClass::Busy && self.evidence.is_patient;
            let has_limit = !is_free && class != FaultClass::AccountBlocked && class != FaultClass::NoFunds;
            if has_limit && count > most {
                let detail = format!("{who}: {count} times {} in at most {lives} lives", class.name());
                self.find("never wasted", detail);
            }
        }
    }

    fn a_closed_account_is_left_in_peace(&mut self) {
        for refused in &self.truth.refused {
            let Some(at) = refused.reached else { continue };
            if !matches!(refused.class, FaultClass::AccountBlocked | FaultClass::NoFunds)
                || self.was_troubled(refused.node, at, at + 60_000)
                // The account was blocked again while an operator's release was still being carried out.
                || self.truth.released.iter().any(|(_, from, to)| {
                    *from <= at && to.saturating_add(RELEASE_LASTS) >= at
                })
            {
                continue;
            }
            let released = self.truth.released.iter().map(|(_, from, _)| *from).find(|from| *from >= at);
            let until = released.unwrap_or(u64::MAX);
            let repeats = |sent: u64| {
                self.visits.get(refused.who.as_str()).is_some_and(|visits| {
                    visits.iter().any(|visit| {
                        // The request may have waited at a frozen node since long before.
                        visit.begun_at <= sent && visit.accepted.is_none_or(|accepted| accepted > at)
                    })
                })
            };
            let is_there = |arrival: &&Arrival| arrival.provider == refused.provider;
            let again =
                self.truth.arrivals.iter().filter(is_there).find(|Arrival { sent_at, who, .. }| {
                    *who == refused.who && *sent_at > at + SLACK && *sent_at < until && !repeats(*sent_at)
                });
            if let Some(Arrival { sent_at: sent, who, node, .. }) = again {
                let detail = format!("{who}: refused at {at}, sent again by node {node} at {sent}");
                self.find("a closed account is left in peace", detail);
            }
            let released_here =
                self.truth.released.iter().find(|(node, from, _)| *node == refused.node && *from >= at);
            let until_here = released_here.map_or(u64::MAX, |(_, from, _)| *from);
            let from_here =
                self.truth.arrivals.iter().filter(is_there).find(|Arrival { sent_at, node, .. }| {
                    *node == refused.node && *sent_at > at + 15_000 && *sent_at < until_here
                });
            if let Some(Arrival { sent_at: sent, who, node, .. }) = from_here {
                let detail = format!("node {node} was refused at {at} and sent {who} at {sent}");
                self.find("a closed account is left in peace", detail);
            }
        }
    }

    fn an_attempt_names_its_provider(&mut self) {
        if !self.evidence.has_several_providers {
            return;
        }
        for task in &self.truth.tasks {
            let Some(order) = self.orders.get(&task.key) else { continue };
            let Some(attempt) = self.attempt(task) else { continue };
            let named = provider_of(order.account_of(attempt));
            let took = PROVIDER_NAMES[task.provider];
            if named != took {
                let detail = format!("task {} is at {took}, and its attempt says {named}", task.id);
                self.find("the attempt carries its provider", detail);
            }
        }
    }

    fn a_doubt_is_over_before_the_next_submit(&mut self) {
        for order in self.evidence.orders {
            if let Some((doubtful, next)) = asked_again_in_doubt(order) {
                let detail = format!("{:?}: attempt {next} while attempt {doubtful} was in doubt", order.key);
                self.find("no submit before a doubt is over", detail);
            }
        }
    }

    fn callers_get_an_outcome(&mut self) {
        for (number, visit) in self.truth.visits.iter().enumerate() {
            let settled = visit.begun_at >= self.truth.calm_at + 60_000;
            if !settled {
                continue;
            }
            match &visit.result_at {
                None => self.find("callers get an outcome", format!("visit {number} got none")),
                Some((at, CallerResult::NotYet)) => {
                    let order = visit.key.and_then(|key| self.orders.get(&key));
                    if let Some(Phase::Solved { at: solved, .. }) = order.map(|order| &order.phase)
                        && solved.as_millis() + 2 * SLACK < *at
                    {
                        let detail = format!("visit {number} waited on although the order was solved");
                        self.find("waiters are woken", detail);
                    }
                }
                Some((_, CallerResult::Refused { held_back: true, .. })) => {
                    let from = visit.begun_at.saturating_sub(REFUSAL_HOLD + 2 * SLACK);
                    let refused =
                        self.truth.refused.iter().any(|r| r.who == visit.who && r.reached >= Some(from));
                    let vanished =
                        self.truth.tasks.iter().any(|t| t.who == visit.who && t.fault_reply >= Some(from));
                    if !refused && !vanished {
                        self.find(
                            "failure is not cached",
                            format!("visit {number} was held back for too long"),
                        );
                    }
                }
                // A caller that asks for a minimum life may find an answer with less.
                Some((at, CallerResult::Expired))
                    if visit.request_spec.idempotency_key.is_none()
                        && visit.request_spec.min_life.is_none() =>
                {
                    if !self.came_late(visit, *at) {
                        self.find(
                            "callers get an outcome",
                            format!("visit {number} got nothing but an expired answer"),
                        );
                    }
                }
                Some((
                    _,
                    CallerResult::TakenByAnother | CallerResult::Forgotten | CallerResult::NotAccepted,
                )) => {
                    self.find("callers get an outcome", format!("visit {number}: {:?}", visit.result_at));
                }
                Some((_, CallerResult::Failed { .. }))
                    if is_fine(visit) && !self.has_vanished(&visit.who) =>
                {
                    self.find("callers get an outcome", format!("visit {number} failed for no reason"));
                }
                Some(_) => {}
            }
        }
    }

    /// Whether this caller looked later than callers have to. When an order gets an answer from the stock,
    /// that answer may live only for its margin and `COLLECTED_IN`. A caller that looks once a minute can
    /// miss it, even if the order had no answer when it was placed.
    fn came_late(&self, visit: &Visit, at: u64) -> bool {
        let Some(order) = visit.key.and_then(|key| self.orders.get(&key)) else { return false };
        // The timeline shows this, and the phase does not: the answer has expired by now, or the order has a
        // new life.
        let entries = order.timeline.entries.iter().rev();
        let there_since = entries
            .filter(|entry| {
                matches!(entry.event, TimelineEvent::Solved { .. } | TimelineEvent::ServedFromStock { .. })
            })
            .map(|entry| entry.at.as_millis())
            .find(|since| *since <= at + SLACK);
        there_since.is_some_and(|since| at + SLACK >= since + COLLECTED_IN)
    }

    fn has_vanished(&self, who: &str) -> bool {
        self.truth.tasks.iter().any(|task| task.who == who && task.vanishes_at != u64::MAX)
    }

    fn the_usage_agrees_with_the_ledger(&mut self) {
        // An answer from the stock was bought for another order, and is counted there. So is an answer that
        // is an order of its own in the stock.
        let bought = || self.evidence.orders.iter().filter(|order| !is_surplus(order));
        let attempts =
            || bought().flat_map(|order| &order.attempts).filter(|attempt| attempt.made_for.is_none());
        let served_from_stock =
            |order: &Order| order.attempts.iter().filter(|attempt| attempt.made_for.is_some()).count();
        let made: u64 =
            bought().map(|order| u64::from(order.last_attempt) - served_from_stock(order) as u64).sum();
        let recorded = attempts().count() as u64;
        let doubles: u64 = self.evidence.orders.iter().map(|order| u64::from(order.possible_doubles)).sum();
        let known = attempts().filter(|attempt| attempt.accepted).count() as u64;
        let priced: u64 = attempts().filter_map(|attempt| attempt.cost).map(|cost| cost.0).sum();
        let unpriced = attempts().filter(|attempt| attempt.is_unpriced()).count() as u64;
        let usage = *self.evidence.usage;
        let mut compare = |line: &str, booked: u64, counted: u64| {
            if booked != counted {
                let detail = format!("{line}: {booked} in the usage, {counted} in the records");
                self.breaches.push(Breach { promise: "the usage adds up", detail });
            }
        };
        let is_whole = bought().all(|order| order.attempts.len() == order.last_attempt as usize);
        if is_whole {
            compare("attempts", usage.attempts, made);
        }
        compare("possible doubles", usage.possible_doubles, doubles);
        if recorded == made {
            compare("paid", usage.paid, known);
            compare("cost", usage.cost_micros, priced);
            compare("unpriced", usage.spent().unpriced, unpriced);
        }
        self.the_cost_is_within_what_is_not_known();
        self.every_payment_is_known_or_in_doubt();
    }

    /// Checks what the provider has really charged: at least the sum in the usage, and at most that sum plus
    /// a price for each unpriced attempt.
    fn the_cost_is_within_what_is_not_known(&mut self) {
        let is_charged = |task: &&Task| task.fate != Fate::Unsolvable || self.evidence.unsolvable_is_charged;
        let charged = self.truth.tasks.iter().filter(is_charged).count() as u64 * PRICE;
        let spent = self.evidence.usage.spent();
        let most = spent.sum.0 + spent.unpriced * PRICE;
        if charged < spent.sum.0 || charged > most {
            let detail = format!("{charged} were charged, and usage says {spent:?}");
            self.find("what is not known is not zero", detail);
        }
    }

    fn every_payment_is_known_or_in_doubt(&mut self) {
        for task in &self.truth.tasks {
            let Some(attempt) = self.attempt(task) else { continue };
            let is_doubt =
                matches!(attempt.progress, Progress::Sent | Progress::GivenUp { .. } | Progress::Faulted);
            if !attempt.accepted && !is_doubt {
                let detail = format!("task {} is neither known nor in doubt", task.id);
                self.find("every doubt in plain sight", detail);
            }
        }
    }
}

/// The attempt in doubt, and the attempt that was submitted before the doubt was settled or waited out; `None` if there
/// is no such attempt.
#[must_use]
pub fn asked_again_in_doubt(order: &Order) -> Option<(u32, u32)> {
    let mut in_doubt = None;
    for entry in &order.timeline.entries {
        match &entry.event {
            TimelineEvent::InDoubt { attempt, until } => in_doubt = Some((*attempt, *until)),
            TimelineEvent::GaveUp { attempt }
            | TimelineEvent::Accepted { attempt, .. }
            | TimelineEvent::Faulted { attempt, .. }
            | TimelineEvent::Solved { attempt, .. }
            | TimelineEvent::TooOld { attempt }
                if in_doubt.is_some_and(|(doubtful, _)| doubtful == *attempt) =>
            {
                in_doubt = None;
            }
            TimelineEvent::Submitted { attempt } => {
                // An order that died in doubt is replayed when the time of the doubt is over. Clocks may differ.
                let is_over = |until: Timestamp| entry.at.as_millis() + SLACK >= until.as_millis();
                if let Some((doubtful, until)) = in_doubt
                    && doubtful != *attempt
                    && !is_over(until)
                {
                    return Some((doubtful, *attempt));
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether this order is a surplus answer that was put into the stock as an order of its own.
fn is_surplus(order: &Order) -> bool {
    matches!(order.timeline.entries.first().map(|entry| &entry.event), Some(TimelineEvent::Stocked { .. }))
}

/// Whether the provider can fulfil this request.
fn is_fine(visit: &Visit) -> bool {
    !visit.request_spec.site.contains("bad-site")
        && (visit.request_spec.reuse == Reuse::Shared || visit.request_spec.idempotency_key.is_none())
}
