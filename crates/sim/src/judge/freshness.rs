//! Checks that fresh answers are handed out and not refused: the other half of "never stale".

use super::{COLLECTED_IN, Court, FROZEN_MAX, SLACK, life_of};
use crate::truth::{CallerResult, Fate, SimFault};
use quittance_lifecycle::{Origin, TimelineEvent, Via};
use std::time::Duration;

/// How much older than its callback an answer may count as if no fault occurred: the provider's lag, the difference
/// between clocks, and the delay until nodes learn of each other.
const DATED_EARLIER: u64 = 5_000 + 2 * SLACK + 5_000;

/// How long callbacks may go to a node that has died for good, with a reserve.
const STILL_ROUTED: u64 = 60_000 + 2 * SLACK;

/// How long a killed node is away at most, with a reserve.
const RESTART_MAX: u64 = 20_000 + 2 * SLACK;

/// How much earlier a node may count an answer as expired, because clocks differ.
const CLOCK_SKEW: u64 = 5_000;

impl Court<'_> {
    /// Whether callbacks could come all the time between two moments, and the nodes could know it.
    fn was_reachable(&self, from: u64, to: u64) -> bool {
        // A node that died for good may be sent callbacks for a while, and is back in the calm.
        let calm_at = self.truth.calm_at;
        let is_hurt = self.truth.faults.iter().any(|(_, fault, at)| {
            let over = match fault {
                SimFault::Killed => at + RESTART_MAX,
                SimFault::Gone => (at + STILL_ROUTED).min(calm_at.max(*at) + RESTART_MAX),
                SimFault::Frozen => at + FROZEN_MAX,
            };
            *at <= to && from <= over
        });
        // A clock that is set forward looks like a freeze to its node, which then takes answers to be older than they
        // are.
        let begun = from.saturating_sub(2 * SLACK);
        let is_set = self.truth.clock_steps.iter().any(|at| (begun..=to).contains(at));
        !is_hurt && !is_set
    }

    /// Checks that an answer reaches the callers for which it was bought, if it came by callback at once while
    /// nothing was wrong with us.
    pub(super) fn what_is_fresh_is_not_refused(&mut self) {
        let truth = self.truth;
        // Nodes that have just started do not know yet that nothing was missed.
        let begun = truth.visits.first().map_or(0, |visit| visit.begun_at) + 2 * SLACK;
        for task in truth.tasks.iter().filter(|task| task.fate == Fate::Answer) {
            let kind = task.identity.split('|').nth(1).unwrap_or_default();
            let (Some((life, _)), Some(acked)) = (life_of(kind), task.callback_acked) else { continue };
            let Some(order) = self.orders.get(&task.key) else { continue };
            let by_callback = order.timeline.entries.iter().any(|entry| {
                entry.event == TimelineEvent::Solved { attempt: task.attempt, via: Via::Callback }
            });
            // While the store is away, a callback waits in the spill. When the store is back, a poll may be faster.
            let too_old = order.timeline.entries.iter().any(|entry| {
                entry.event == TimelineEvent::TooOld { attempt: task.attempt }
                    && self.was_reachable(task.sent_at, entry.at.as_millis() + SLACK)
            });
            // A submit may be slow, and the task may be solved as soon as it is sent, as far as its node knows;
            // unless a later poll says that it is not.
            let unsolved_at =
                order.attempt(task.attempt).map_or(0, |attempt| attempt.unsolved_at.as_millis());
            if task.sent_at < begun
                || !self.was_reachable(task.sent_at.max(unsolved_at.saturating_sub(2 * SLACK)), acked)
                || order.terms.min_life > Duration::ZERO
            {
                continue;
            }
            if too_old && acked < task.solves_at + 10_000 && order.terms.slot.is_none() && order.wanted {
                let detail = format!(
                    "task {} was too old when it came, {} ms after its solve",
                    task.id,
                    acked - task.solves_at
                );
                self.find("what is fresh is not refused", detail);
                continue;
            }
            let begun = task.callback_begun.unwrap_or(acked);
            let good_until = (begun + life).saturating_sub(DATED_EARLIER);
            let refused = truth.visits.iter().find(|visit| {
                let is_own = matches!(visit.origin, Some(Origin::Api | Origin::Joined | Origin::Replayed));
                let lives = order.life == 1 && visit.key == Some(task.key);
                let is_early = |at: u64| at > acked && at < good_until;
                by_callback
                    && is_own
                    && lives
                    && matches!(visit.result_at, Some((at, CallerResult::Expired)) if is_early(at))
            });
            if let Some(visit) = refused {
                let detail = format!("{} was refused {}, bought for it and fresh", visit.who, task.token());
                self.find("what is fresh is not refused", detail);
            }
        }
        for visit in &truth.visits {
            let is_there = matches!(visit.origin, Some(Origin::Cached | Origin::Stock));
            let (Some(accepted), Some((at, CallerResult::Expired))) = (visit.accepted, &visit.result_at)
            else {
                continue;
            };
            if is_there && *at + SLACK < accepted + COLLECTED_IN {
                let detail =
                    format!("{} came for an answer after {} ms, and was refused", visit.who, at - accepted);
                self.find("an accepted order is served", detail);
            }
        }
    }

    /// Checks that an order does not buy again while an answer of its own is alive. A placement that cannot reuse the
    /// answer must become another order.
    pub(super) fn an_answer_is_left_to_those_that_it_was_bought_for(&mut self) {
        let truth = self.truth;
        for task in truth.tasks.iter().filter(|task| task.fate == Fate::Answer) {
            let kind = task.identity.split('|').nth(1).unwrap_or_default();
            let (Some((life, _)), Some(attempt)) = (life_of(kind), self.attempt(task)) else { continue };
            let Some(order) = self.orders.get(&task.key) else { continue };
            let solved =
                order.timeline.entries.iter().find(
                    |entry| matches!(entry.event, TimelineEvent::Solved { attempt, .. } if attempt == task.attempt),
                );
            let Some(solved) = solved.map(|entry| entry.at.as_millis()) else { continue };
            // Where another task of the order was paid for and not answered yet, a new life resumes that one,
            // and may buy again if it comes to nothing.
            let earlier =
                truth.tasks.iter().filter(|other| other.key == task.key && other.sent_at <= solved + SLACK);
            if earlier.count() > 1 {
                continue;
            }
            // It cannot have been solved before it was sent, so until then it was alive for every node, whatever its
            // clock.
            let alive_until = (attempt.sent.as_millis() + life).saturating_sub(CLOCK_SKEW + 2 * SLACK);
            let bought = truth.tasks.iter().find(|later| {
                later.key == task.key && later.sent_at > solved + SLACK && later.sent_at < alive_until
            });
            if let Some(later) = bought {
                let detail = format!(
                    "{}: task {} was bought under the same id while the answer of {} lived",
                    task.who, later.id, task.id
                );
                self.find("an answer is left to those that it was bought for", detail);
            }
        }
    }
}
