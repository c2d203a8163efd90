//! What a stock of a given size comes to, by formula. A pool that buys an answer for every one that leaves is Erlang's
//! telephone exchange: what is on its way is a line in use, and an order that finds the stock empty is a call that finds all
//! lines in use.
//!
//! Answers that expire are not in Erlang's formula, and still have a closed form. Line up the answers of a pool by when
//! they were ordered. Only the oldest can leave: by an order, at rate `r`, once it is older than the lead `l`; or by
//! spoiling, at age `l + u`. Then the age `x` of the oldest of `s` has a density of `x^(s-1) exp(-r max(0, x - l))` up to a
//! constant, which with `F(k; m)` for "a Poisson number of mean `m` is at most `k`" and `P(k; m)` for "is `k`" gives
//!
//! ```text
//! missed            = P(s; r l) / (F(s; r l) - F(s-1; r l + r u))
//! expired per order = P(s-1; r l + r u) / (the same)
//! ```
//!
//! The first is Erlang's formula when `u` is endless. It is exact when every lead is the same; with leads that vary only
//! their mean is used, as Erlang's formula would allow, and the study shows how close that comes.

/// What to expect of a pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoolForecast {
    /// The share of orders that the stock serves.
    pub served: f64,
    /// The share of the answers bought for the stock that expire there.
    pub expired: f64,
}

/// The share of calls that find all of so many lines in use; `load` is calls a second times seconds a call.
#[must_use]
pub fn erlang_b(servers: u32, load: f64) -> f64 {
    if load <= 0.0 {
        return if servers == 0 { 1.0 } else { 0.0 };
    }
    // One over the share: it only grows, so nothing cancels out.
    let inverse = (1..=servers).fold(1.0, |inverse, line| 1.0 + inverse * f64::from(line) / load);
    1.0 / inverse
}

/// What to expect of a pool of this size, where `load` orders come while one answer is on its way and `per_life` orders in an
/// answer's usable life.
#[must_use]
pub fn expected(size: u32, load: f64, per_life: f64) -> PoolForecast {
    let mut ladder = Ladder::new(load, per_life);
    (0..size).fold(PoolForecast { served: 0.0, expired: 0.0 }, |_, _| ladder.climb())
}

/// Pools of size one, two, three and so on, each from the one before.
#[derive(Debug)]
pub(crate) struct Ladder {
    load: f64,
    per_life: f64,
    size: f64,
    /// `F(s; load) / P(s; load)`
    inverse: f64,
    /// `F(s-1; load + per_life) / P(s-1; load + per_life)`, and before the first step nothing.
    inverse_spoiling: f64,
    /// The logarithm of `P(s-1; load + per_life) / P(s; load)`: the ratio itself is out of range for large pools.
    ln_ratio: f64,
}

/// Less than this is rounding. A load of nothing has no logarithm.
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

    /// One place: it is on its way for the lead, then waits for an order or for its end, whichever is first.
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
