//! What was not paid because an answer was there already.

use quittance_lifecycle::{Money, Tally};
use quittance_ports::Line;

/// What those who joined an order, or were given an answer that was already solved, would have cost at the mean price of an answer
/// of the same line.
pub(crate) fn saved(lines: &[(Line, Tally)]) -> Money {
    let of_line = |tally: &Tally| {
        let shared = tally.joined.saturating_add(tally.cached);
        // Those that came late cost as much.
        let answers = tally.solved.saturating_add(tally.late);
        let saved = u128::from(tally.cost_micros) * u128::from(shared) / u128::from(answers.max(1));
        u64::try_from(saved).unwrap_or(u64::MAX)
    };
    Money(lines.iter().map(|(_, tally)| of_line(tally)).fold(0, u64::saturating_add))
}
