//! What this node has done since it started, and its state. Its heartbeat writes this to the membership.

use crate::{Engine, lock};
use quittance_lifecycle::{Order, Phase};
use quittance_ports::NodeStats;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long an error of the store counts as recent.
const A_MOMENT: Duration = Duration::from_secs(5);

/// The most characters of a provider's code in the stats. Every node reads the stats every few seconds, so they must
/// stay small.
const CODE_CHARS_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct NodeCounters {
    pub(crate) placed: AtomicU64,
    pub(crate) joined: AtomicU64,
    pub(crate) attended: AtomicU64,
    pub(crate) submitted: AtomicU64,
    pub(crate) polled: AtomicU64,
    pub(crate) answered: AtomicU64,
    pub(crate) store_errors: AtomicU64,
    pub(crate) unreadable: AtomicU64,
    pub(crate) panics: AtomicU64,
}

impl NodeCounters {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn read(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}

impl Engine {
    /// Counts an answer, if the order has just got one.
    pub(crate) fn count_answer(&self, order: &Order) {
        if matches!(order.phase, Phase::Solved { .. } | Phase::Claimed { .. }) {
            NodeCounters::add(&self.node_counters.answered, 1);
        }
    }

    #[must_use]
    pub fn node_stats(&self) -> NodeStats {
        let (in_hand, has_spilled) = {
            let run_queue = lock(&self.run_queue);
            (run_queue.in_hand() as u64, run_queue.has_spilled || run_queue.unreadable_at.is_some())
        };
        let (node_counters, paused) = (&self.node_counters, self.paused());
        NodeStats {
            placed: NodeCounters::read(&node_counters.placed),
            joined: NodeCounters::read(&node_counters.joined),
            attended: NodeCounters::read(&node_counters.attended),
            submitted: NodeCounters::read(&node_counters.submitted),
            polled: NodeCounters::read(&node_counters.polled),
            answered: NodeCounters::read(&node_counters.answered),
            in_hand,
            store_errors: NodeCounters::read(&node_counters.store_errors),
            unreadable: NodeCounters::read(&node_counters.unreadable),
            panics: NodeCounters::read(&node_counters.panics),
            is_paused: paused.is_some(),
            pause_code: paused.map(|fault| fault.code.chars().take(CODE_CHARS_MAX).collect()),
            store_was_away: self.store_was_away(A_MOMENT),
            has_spilled,
        }
    }
}
