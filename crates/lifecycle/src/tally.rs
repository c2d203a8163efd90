//! What a step adds to the books. A store adds it up in the same commit as the step itself, so that the books
//! can be neither ahead of the orders nor behind them.

use crate::answer::{Money, PriceSum};
use core::ops::AddAssign;

macro_rules! tally {
    ($($(#[doc = $words:literal])+ $field:ident),* $(,)?) => {
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Tally { $($(#[doc = $words])+ pub $field: u64),* }

        impl Tally {
            /// Every line of the books with its name, in a fixed order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];

            /// What each of them counts, in words, in the same order.
            pub const WORDS: &'static [&'static str] = &[$(concat!($($words),+)),*];

            pub fn lines(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }

            /// The line with this name, to be read from a record or a row.
            pub fn line_mut(&mut self, name: &str) -> Option<&mut u64> {
                match name { $(stringify!($field) => Some(&mut self.$field),)* _ => None }
            }
        }

        impl AddAssign for Tally {
            fn add_assign(&mut self, other: Self) { $(self.$field = self.$field.saturating_add(other.$field);)* }
        }
    };
}

tally! {
    /// Placements, whatever became of them.
    asked,
    /// Placements that joined an order in flight.
    joined,
    /// Placements that were given an answer already solved.
    cached,
    /// Placements that were given an answer from the stock.
    from_stock,
    /// Answers that came to stand on the shelf: refills of pools, and what came late or was cancelled.
    stocked,
    /// How old those were that were handed out from the stock, in all, in milliseconds.
    stock_age_ms,
    /// How much sooner they were there than if they had been bought, in all, in milliseconds.
    saved_ms,
    /// Answers that a caller says the site refused.
    reported_bad,
    /// Placements refused without a new life: held back, expired, other parameters, or waiting for a person.
    refused,
    /// Attempts made: intents to pay.
    attempts,
    /// Attempts that the provider is known to have taken.
    paid,
    /// Attempts that were not the first of their life.
    retried,
    /// Submits whose outcome nobody knew at the time.
    doubts,
    /// Doubts that a callback, or a reply that came late, settled.
    recovered_from_doubt,
    /// Answers that had to be asked for although a callback was due.
    recovered_by_poll,
    /// Attempts made while an earlier one of the same order may have been paid for.
    possible_doubles,
    /// Orders that came to an answer.
    solved,
    /// Answers that came when the order had moved on, from whichever attempt.
    late,
    /// Answers paid for that nobody could use any more.
    wasted,
    /// Orders that were refused for good, and whose callers were told.
    failed,
    /// Orders that became dead letters.
    dead,
    /// Dead orders that an answer or a person brought back.
    revived,
    /// Orders that nobody wanted any more.
    cancelled,
    /// Calls to callers who did not take them.
    untold,
    /// Attempts that were charged, or may have been, at a price that is not known: they are not in the cost.
    unpriced,
    /// Attempts among the unpriced whose price became known on the same day: they are in the cost after all.
    priced_late,
    /// Attempts that were charged at a price that is known, and answers that are known to be free.
    priced,
    /// What the attempts cost whose price is known, in millionths.
    cost_micros,
    /// What the wasted answers cost whose price is known, in millionths.
    wasted_micros,
    /// Wasted answers whose price is not known: they are not in the cost of the wasted ones.
    wasted_unpriced,
}

impl Tally {
    /// What was spent: on answers, and on attempts that came to none and were charged all the same.
    #[must_use]
    pub const fn spent(&self) -> PriceSum {
        PriceSum { sum: Money(self.cost_micros), unpriced: self.unpriced.saturating_sub(self.priced_late) }
    }

    /// What the wasted ones of them cost.
    #[must_use]
    pub const fn wasted_cost(&self) -> PriceSum {
        PriceSum { sum: Money(self.wasted_micros), unpriced: self.wasted_unpriced }
    }
}
