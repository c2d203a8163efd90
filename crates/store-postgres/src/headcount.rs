//! The last counts of orders. A server counts row by row, which is cheap for a few thousand and expensive for a
//! million. So large counts are made rarely, and need not be exact.

use quittance_ports::OrderCounts;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Up to this number, orders are counted at each call.
const FEW_MAX: u64 = 10_000;
/// The least time between two counts of more orders.
const SPAN: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(crate) struct Headcount(Mutex<Option<(Instant, OrderCounts)>>);

impl Headcount {
    /// The last counts, if they are large and recent.
    pub(crate) fn recent(&self, now: Instant) -> Option<OrderCounts> {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_good = |(at, order_counts): &(Instant, OrderCounts)| {
            order_counts.open + order_counts.dead > FEW_MAX && now.saturating_duration_since(*at) < SPAN
        };
        last.filter(is_good).map(|(_, order_counts)| order_counts)
    }

    pub(crate) fn note(&self, now: Instant, order_counts: OrderCounts) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, order_counts));
    }
}

#[cfg(test)]
mod tests {
    use super::{FEW_MAX, Headcount, SPAN};
    use quittance_ports::OrderCounts;
    use tokio::time::Instant;

    #[test]
    fn a_few_are_counted_each_time_and_many_only_now_and_then() {
        let (headcount, now) = (Headcount::default(), Instant::now());
        assert_eq!(headcount.recent(now), None);
        headcount.note(now, OrderCounts { open: 1, dead: FEW_MAX - 1 });
        assert_eq!(headcount.recent(now), None);
        let many = OrderCounts { open: 1, dead: FEW_MAX };
        headcount.note(now, many);
        assert_eq!(headcount.recent(now + SPAN / 2), Some(many));
        assert_eq!(headcount.recent(now + SPAN), None);
    }
}
