//! What a step adds to the usage. A store writes it in the same commit as the step itself, so the usage always agrees
//! with the orders.

use crate::answer::{Money, PriceSum};
use core::ops::AddAssign;

macro_rules! counters {
    ($($(#[doc = $words:literal])+ $field:ident),* $(,)?) => {
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters { $($(#[doc = $words])+ pub $field: u64),* }

        impl Counters {
            /// The name of every counter, in a fixed order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];

            /// What each counter counts, in words, in the order of `NAMES`.
            pub const WORDS: &'static [&'static str] = &[$(concat!($($words),+)),*];

            pub fn lines(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }

            /// The counter of this name, to be filled from a record or a row.
            pub fn line_mut(&mut self, name: &str) -> Option<&mut u64> {
                match name { $(stringify!($field) => Some(&mut self.$field),)* _ => None }
            }
        }

        impl AddAssign for Counters {
            fn add_assign(&mut self, other: Self) { $(self.$field = self.$field.saturating_add(other.$field);)* }
        }
    };
}

counters! {
    /// Placements, with any outcome.
    asked,
    /// Placements that joined an order in flight.
    joined,
    /// Placements that got the answer of an order already solved.
    cached,
    /// Placements that got an answer from the stock.
    from_stock,
    /// Answers added to the stock: refills of pools, late answers, and answers of cancelled orders.
    stocked,
    /// Total age of the answers from the stock when they were handed out.
    stock_age_ms,
    /// Total time that answers from the stock saved, compared with buying them.
    saved_ms,
    /// Answers that a caller reported as refused by the site.
    reported_bad,
    /// Placements refused: after a rejection, answer expired, other parameters under the same key, or a dead letter.
    refused,
    /// Attempts made; each may be charged.
    attempts,
    /// Attempts that the provider is known to have accepted.
    paid,
    /// Attempts that the provider rejected at the submit, for any reason; not those that did not reach it.
    rejected,
    /// Attempts that were not the first of their order.
    retried,
    /// Submits that ended in doubt.
    in_doubt,
    /// Attempts in doubt that a callback or a late reply settled.
    in_doubt_settled,
    /// Answers that came by poll although a callback was due.
    recovered_by_poll,
    /// Attempts made while an earlier one of the same order may have been paid for.
    possible_doubles,
    /// Attempts made at another provider because the first one was slow with an urgent order.
    hedged,
    /// Orders that got an answer.
    solved,
    /// Answers that came too late for their order, from any attempt.
    late,
    /// Answers that were paid for and could not be used.
    wasted,
    /// Orders that failed for good, with the reason reported to the caller.
    failed,
    /// Orders that became dead letters.
    dead,
    /// Dead letters that an answer or an operator revived.
    revived,
    /// Orders that were cancelled.
    cancelled,
    /// Webhook deliveries that failed.
    webhooks_failed,
    /// Attempts that were or may have been charged at a price that is not known; they are not in the cost.
    unpriced,
    /// Unpriced attempts whose price became known on the same day; they are in the cost.
    priced_late,
    /// Attempts charged at a known price, and answers known to be free.
    priced,
    /// Attempts that the provider took, that came to no answer, and that are known to have cost nothing.
    free,
    /// Cost of the attempts with a known price, in millionths.
    cost_micros,
    /// Cost of the wasted answers with a known price, in millionths.
    wasted_micros,
    /// Wasted answers whose price is not known; they are not in the cost of wasted answers.
    wasted_unpriced,
}

impl Counters {
    /// What was spent on answers, and on charged attempts without an answer.
    #[must_use]
    pub const fn spent(&self) -> PriceSum {
        PriceSum { sum: Money(self.cost_micros), unpriced: self.unpriced.saturating_sub(self.priced_late) }
    }

    /// What was spent, as far as it is known. `None` while the only accepted attempts are still open: their price is
    /// not known yet, which is not 0.
    #[must_use]
    pub fn spent_known(&self) -> Option<Money> {
        let spent = self.spent();
        let settled = self.priced.saturating_add(self.free).saturating_add(spent.unpriced);
        let is_worked_on = self.paid > settled;
        spent.known().filter(|sum| *sum != Money(0) || !is_worked_on)
    }

    /// The cost of the wasted answers.
    #[must_use]
    pub const fn wasted_cost(&self) -> PriceSum {
        PriceSum { sum: Money(self.wasted_micros), unpriced: self.wasted_unpriced }
    }
}
