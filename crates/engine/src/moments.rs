//! When the worker sweeps, submits, writes counts and does its chores.

use crate::providers::ProviderAccount;
use crate::reachability::BEAT_SPAN;
use crate::run_queue::RunQueue;
use crate::work::CHORES_SPAN;
use crate::{Engine, Settings, lock};
use quittance_lifecycle::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// The pause between two sweeps while the backlog is full.
const CROWDED_PAUSE: Duration = Duration::from_millis(250);
/// How long a sweep hides what it claims while the backlog is full.
const CROWDED_CLAIM: Duration = Duration::from_secs(1);

impl Engine {
    /// When the worker looks for work again if nothing wakes it before.
    pub(crate) fn next_look(&self) -> Timestamp {
        let now = self.now();
        let run_queue = lock(&self.run_queue);
        let chores = self.chores_at(&run_queue, now).min(self.counts_at(&run_queue, now));
        let chores = chores.min(self.gates_at(&run_queue, now));
        let next = self.sweep_at(&run_queue, now).min(chores).min(self.submit_at(&run_queue, now));
        next.min(self.poll_at(&run_queue, now)).min(now + BEAT_SPAN)
    }

    /// When to sweep for due orders; never, if something else must happen first that wakes the worker anyway.
    pub(crate) fn sweep_at(&self, run_queue: &RunQueue, now: Timestamp) -> Timestamp {
        let settings = self.settings();
        if self.is_stopping() || run_queue.is_sweeping {
            return Timestamp::MAX;
        }
        // A clock that was set back must not put the worker to sleep until it has caught up.
        if run_queue.swept_at > now {
            return now;
        }
        let (pause, _) = self.sweep_pace(run_queue);
        run_queue
            .timer
            .max(run_queue.swept_at + pause)
            .min(run_queue.swept_at + settings.sweep_interval.max(pause))
    }

    /// The pause before the next sweep, and how long the sweep hides what it claims. Sweeps continue with a full
    /// backlog: it may be one tenant's, and another tenant's order may be due. Claimed orders that find no room here
    /// are soon free for other nodes.
    pub(crate) fn sweep_pace(&self, run_queue: &RunQueue) -> (Duration, Duration) {
        let settings = self.settings();
        if self.is_crowded(run_queue) {
            (CROWDED_PAUSE, CROWDED_CLAIM.min(settings.claim_duration))
        } else {
            (settings.sweep_pause, settings.claim_duration)
        }
    }

    /// Whether the backlog has less free space than one sweep brings.
    pub(crate) fn is_crowded(&self, run_queue: &RunQueue) -> bool {
        let Settings { backlog_max, claim_max, .. } = *self.settings();
        backlog_max.saturating_sub(run_queue.waiting()) < claim_max.min(backlog_max.div_ceil(4))
    }

    /// When the next submit may start, if one waits. Orders wait here for their turn at the gate: tenants take turns,
    /// and an order that only waits needs no write.
    pub(crate) fn submit_at(&self, run_queue: &RunQueue, now: Timestamp) -> Timestamp {
        if self.is_stopping() {
            return Timestamp::MAX;
        }
        run_queue.submit_at(now, |tenant| self.turn_of(tenant, run_queue.before_gate, now))
    }

    /// When the next poll may start; never, if something else must happen first that wakes the worker anyway.
    pub(crate) fn poll_at(&self, run_queue: &RunQueue, now: Timestamp) -> Timestamp {
        if self.is_stopping() || run_queue.polling >= self.settings().polls_max {
            return Timestamp::MAX;
        }
        let call_at =
            |it: &Arc<ProviderAccount>| run_queue.poll_call_at(&it.rules.name, now, it.poll_batch_max());
        self.providers_with_tasks().iter().map(call_at).min().unwrap_or(Timestamp::MAX)
    }

    /// The provider that should be polled now.
    pub(crate) fn poll_now(&self, run_queue: &RunQueue, now: Timestamp) -> Option<Arc<ProviderAccount>> {
        if self.poll_at(run_queue, now) > now {
            return None;
        }
        let call_at =
            |it: &Arc<ProviderAccount>| run_queue.poll_call_at(&it.rules.name, now, it.poll_batch_max());
        self.providers_with_tasks().into_iter().min_by_key(call_at)
    }

    /// Whether tasks may be polled before their own poll is due. While another node may have kept the callback of a
    /// task, the task is not polled.
    pub(crate) fn may_poll_early(&self) -> bool {
        self.callback.is_none() || !self.store_was_away(self.settings().others_first)
    }

    /// How many due orders one sweep may claim. A claimed order that finds no room here is hidden from other nodes
    /// until its claim lapses.
    pub(crate) fn claimable(&self, run_queue: &RunQueue) -> usize {
        let Settings { backlog_max, claim_max, .. } = *self.settings();
        if self.is_crowded(run_queue) {
            claim_max
        } else {
            (backlog_max - run_queue.waiting()).min(claim_max)
        }
    }

    pub(crate) fn chores_at(&self, run_queue: &RunQueue, now: Timestamp) -> Timestamp {
        match run_queue.chores_done_at {
            _ if self.is_stopping() || run_queue.is_at_chores => Timestamp::MAX,
            then if then > now => now,
            then => then + CHORES_SPAN,
        }
    }

    /// When to read and write what all nodes know about the gates.
    pub(crate) fn gates_at(&self, run_queue: &RunQueue, now: Timestamp) -> Timestamp {
        match run_queue.gates_shared_at {
            _ if self.is_stopping() || run_queue.is_sharing_gates => Timestamp::MAX,
            then if then > now => now,
            then => then + self.shared_gates_span(),
        }
    }

    pub(crate) fn counts_at(&self, run_queue: &RunQueue, now: Timestamp) -> Timestamp {
        match run_queue.counts_at {
            _ if self.is_stopping() || run_queue.is_counting => Timestamp::MAX,
            // A clock that was set back must not put it off.
            Some(at) => at.min(now + self.settings().count_interval),
            None => Timestamp::MAX,
        }
    }
}
