//! Computes by formula what to expect of a stock of a given size. A pool that buys an answer for every one that
//! leaves is like Erlang's telephone exchange. An answer on its way is a line in use. An order that finds the stock
//! empty is a call that finds all lines in use.
//!
//! Erlang's formula has no answers that expire, but there is still a closed form. Sort the answers of a pool by when
//! they were ordered. Only the oldest can leave: to an order, at rate `r`, once it is older than the lead `l`; or by
//! expiry, at age `l + u`. The age `x` of the oldest of `s` then has a density of `x^(s-1) exp(-r max(0, x - l))`, up
//! to a constant. Let `P(k; m)` be the probability that a Poisson number of mean `m` is `k`, and `F(k; m)` that it is
//! at most `k`. Then
//!
//! ```text
//! missed            = P(s; r l) / (F(s; r l) - F(s-1; r l + r u))
//! expired per order = P(s-1; r l + r u) / (the same)
//! ```
//!
//! The first is Erlang's formula if `u` is infinite. It is exact if all leads are equal. If they vary, only their
//! mean is used, as in Erlang's formula. The study shows how close this is.

/// What to expect of a pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoolForecast {
    /// The share of orders that the stock serves.
    pub served: f64,
    /// The share of the answers bought for the stock that expire there.
    pub expired: f64,
}

/// The share of calls that find all of `servers` lines in use. `load` is calls per second times seconds per call.
#[must_use]
pub fn erlang_b(servers: u32, load: f64) -> f64 {
    if load <= 0.0 {
        return if servers == 0 { 1.0 } else { 0.0 };
    }
    // One over the share: it only grows, so nothing cancels out.
    let inverse = (1..=servers).fold(1.0, |inverse, line| 1.0 + inverse * f64::from(line) / load);
    1.0 / inverse
}

/// The forecast for a pool of this size. `load` is the orders during one lead, and `per_life` the orders in an
/// answer's usable life.
#[must_use]
pub fn expected(size: u32, load: f64, per_life: f64) -> PoolForecast {
    let mut ladder = Ladder::new(load, per_life);
    (0..size).fold(PoolForecast { served: 0.0, expired: 0.0 }, |_, _| ladder.climb())
}

/// Forecasts for pools of size one, two, three and so on, each computed from the one before.
#[derive(Debug)]
pub(crate) struct Ladder {
    load: f64,
    per_life: f64,
    size: f64,
    /// `F(s; load) / P(s; load)`
    inverse: f64,
    /// `F(s-1; load + per_life) / P(s-1; load + per_life)`, and 0 before the first step.
    inverse_spoiling: f64,
    /// The logarithm of `P(s-1; load + per_life) / P(s; load)`: the ratio itself is out of range for large pools.
    ln_ratio: f64,
}

/// Loads below this count as rounding errors. Zero has no logarithm.
const TINY: f64 = 1e-9;

impl Ladder {
    pub(crate) fn new(load: f64, per_life: f64) -> Self {
        Self { load: load.max(TINY), per_life, size: 0.0, inverse: 1.0, inverse_spoiling: 0.0, ln_ratio: 0.0 }
    }

    pub(crate) fn climb(&mut self) -> PoolForecast {
        let Self { load, per_life, size, .. } = *self;
        let both = load + per_life;
        if size == 0.0 {
            self.ln_ratio = -per_life - load.ln();
            self.inverse_spoiling = 1.0;
        } else {
            self.ln_ratio += (both / load * (size + 1.0) / size).ln();
            self.inverse_spoiling = 1.0 + self.inverse_spoiling * size / both;
        }
        self.size += 1.0;
        self.inverse = 1.0 + self.inverse * self.size / load;
        let ratio = self.ln_ratio.exp();
        let rest = self.inverse - ratio * self.inverse_spoiling;
        if !rest.is_finite() || rest < self.inverse * TINY {
            // So large a pool for so few orders that all but a few answers expire: each place is filled once in lead and life.
            return PoolForecast { served: 1.0, expired: (1.0 - both / self.size).clamp(0.0, 1.0) };
        }
        let (served, expired) = ((1.0 - 1.0 / rest).clamp(0.0, 1.0), ratio / rest);
        PoolForecast { served, expired: if expired > 0.0 { expired / (expired + served) } else { 0.0 } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(found: f64, wanted: f64, tolerance: f64) -> bool {
        (found - wanted).abs() <= tolerance
    }

    #[test]
    fn erlang_b_agrees_with_the_printed_tables() {
        for (lines, load, blocked) in [
            (1, 1.0, 0.5),
            (2, 1.0, 0.2),
            (3, 1.0, 0.0625),
            (5, 3.0, 0.110_054),
            (10, 5.0, 0.018_385),
            (10, 4.461, 0.01),
            (20, 12.031, 0.01),
            (50, 44.533, 0.05),
            (100, 84.064, 0.01),
            (100, 95.24, 0.05),
        ] {
            let found = erlang_b(lines, load);
            assert!(is_near(found, blocked, 1e-5), "{lines} lines, {load} Erlang: {found}");
        }
        assert!(is_near(erlang_b(0, 7.0), 1.0, 0.0) && is_near(erlang_b(3, 0.0), 0.0, 0.0));
        assert!(is_near(erlang_b(1000, 0.5), 0.0, 1e-300), "too small for a number, and no fault");
    }

    #[test]
    fn a_pool_whose_answers_never_expire_is_erlangs() {
        for (size, load) in [(1, 0.3), (4, 1.7), (33, 27.6), (210, 200.0)] {
            let found = expected(size, load, 1e9);
            assert!(is_near(found.served, 1.0 - erlang_b(size, load), 1e-9), "{size} {load}: {found:?}");
            assert!(found.expired < 1e-12);
        }
    }

    /// Checks a pool with one place against a formula by hand. The answer is on its way for the lead, then waits for
    /// an order or for its expiry.
    #[test]
    fn a_pool_of_one_agrees_with_the_formula_worked_out_by_hand() {
        let (load, per_life) = (0.8_f64, 3.0_f64);
        let (waits, taken) = (1.0 - (-per_life).exp(), 1.0 - (-per_life).exp());
        let found = expected(1, load, per_life);
        assert!(is_near(found.served, waits / (load + waits), 1e-12), "{found:?}");
        assert!(is_near(found.expired, 1.0 - taken, 1e-12), "{found:?}");
    }

    #[test]
    fn the_ends_of_the_range_give_shares() {
        for size in [0, 1, 5, 1000] {
            for load in [0.0, 1e-6, 0.5, 200.0, 1e5] {
                for per_life in [0.0, 1e-6, 3.0, 800.0, 1e7] {
                    let PoolForecast { served, expired } = expected(size, load, per_life);
                    let are_shares = (0.0..=1.0).contains(&served) && (0.0..=1.0).contains(&expired);
                    assert!(are_shares, "{size} {load} {per_life}: {served} {expired}");
                }
            }
        }
        assert!(expected(1000, 10.0, 30.0).expired > 0.95);
    }
}
