//! The shortest time in which a provider has answered lately, by kind. An order with less time left is not paid for.
//! The shortest, and not a quantile: no order that could have been answered may be refused.

use crate::{Engine, lock};
use quittance_lifecycle::{Event, Order, Phase, PollOutcome, Terms};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// How many of the last solves count.
const SAMPLES_MAX: usize = 128;
/// Fewer solves say too little.
const SAMPLES_MIN: usize = 20;
const KINDS_MAX: usize = 128;

#[derive(Default)]
struct LastTimes {
    times: VecDeque<Duration>,
    shortest: Option<Duration>,
}

/// The last solve times at one provider, by kind.
#[derive(Default)]
pub(crate) struct QuickestTimes(BTreeMap<String, LastTimes>);

impl QuickestTimes {
    /// The shortest of the last solve times; `None` if there are too few.
    pub(crate) fn of(&self, kind: &str) -> Option<Duration> {
        self.0.get(kind)?.shortest
    }

    fn learn(&mut self, kind: &str, time: Duration) {
        if !self.0.contains_key(kind) && self.0.len() >= KINDS_MAX {
            return;
        }
        let LastTimes { times, shortest } = self.0.entry(kind.to_owned()).or_default();
        if times.len() == SAMPLES_MAX {
            times.pop_front();
        }
        times.push_back(time);
        if times.len() >= SAMPLES_MIN {
            *shortest = times.iter().min().copied();
        }
    }
}

impl Engine {
    /// Learns the solve time of the order's kind, if this event has solved the order. A poll finds an answer that was
    /// solved at some moment since the poll before it: half of that time counts.
    pub(crate) fn learn_quickest(&self, order: &Order, event: &Event) {
        let Phase::Solved { answer, at } = &order.phase else { return };
        let Some(attempt) = order.attempt(answer.attempt) else { return };
        let solved_at = match event {
            Event::Polled { asked, outcome: PollOutcome::Answered(_), .. } => {
                answer.earliest + asked.since(answer.earliest) / 2
            }
            Event::CalledBack { receipt: Some(receipt), .. } => receipt.at.min(*at),
            _ => *at,
        };
        let provider = self.provider_of(order, Some(answer.attempt));
        lock(&provider.quickest).learn(&order.terms.kind, solved_at.since(attempt.sent));
    }

    /// The shortest time in which an order of this kind was answered lately, at any provider that may get it. `None` if
    /// it is not known of one of them.
    pub(crate) fn quickest(&self, kind: &str, tenant: &str) -> Option<Duration> {
        let providers = self.providers_for(kind, tenant);
        let times = providers.iter().map(|provider| lock(&provider.quickest).of(kind));
        times.min().flatten()
    }

    /// Whether a submit of this order would come too late for an answer before its deadline.
    pub(crate) fn is_too_late(&self, order: &Order) -> bool {
        self.policy(order).needs_more_than(order.deadline.since(self.now())).is_some()
    }

    /// The least time that a new order of these terms waits behind others in the queue of this node.
    pub(crate) fn queue_wait(&self, terms: &Terms) -> Option<Duration> {
        let now = self.now();
        lock(&self.run_queue).wait_of(&terms.tenant, terms.priority, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_of_the_last_times_counts_once_there_are_enough() {
        let mut times = QuickestTimes::default();
        (1..SAMPLES_MIN as u64).for_each(|n| times.learn("a", Duration::from_secs(n)));
        assert_eq!(times.of("a"), None);
        times.learn("a", Duration::from_secs(30));
        assert_eq!(times.of("a"), Some(Duration::from_secs(1)));
        (0..SAMPLES_MAX).for_each(|_| times.learn("a", Duration::from_secs(9)));
        assert_eq!(times.of("a"), Some(Duration::from_secs(9)), "what is long ago is forgotten");
        (0..1000).for_each(|n| times.learn(&format!("kind {n}"), Duration::ZERO));
        assert_eq!(times.0.len(), KINDS_MAX, "kinds that callers make up do not fill the memory");
    }
}
