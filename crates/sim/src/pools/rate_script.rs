//! The demand of a pool: how orders come, for how long, when their rate steps, and how long solves take.

use super::stock::{Micros, unit};
use crate::rng::Rng;
use quittance_lifecycle::Kind;
use std::time::Duration;

/// For this many lifetimes after a step of the rate, only the time until the pool follows counts.
const SETTLING_LIVES: u32 = 10;
/// The largest share of orders that may come while the rate steps up and down.
const STEPPING_SHARE: f64 = 0.25;
const CYCLES_MAX: u32 = 100;
const CYCLES_MIN: u32 = 4;

/// Lognormal solve times: most are near the median, and some are very long.
#[derive(Clone, Copy, Debug)]
pub(super) struct SolveTimes {
    ln_median_s: f64,
    sigma: f64,
}

impl SolveTimes {
    /// Solve times with the kind's median and 95th percentile from the catalogue.
    fn of(kind: &Kind) -> Self {
        const NORMAL_P95: f64 = 1.644_853_627;
        let ln_median_s = kind.pace.p50.as_secs_f64().ln();
        Self { ln_median_s, sigma: (kind.pace.p95.as_secs_f64().ln() - ln_median_s) / NORMAL_P95 }
    }

    pub(super) fn mean(self) -> Duration {
        Duration::from_secs_f64((self.ln_median_s + self.sigma * self.sigma / 2.0).exp())
    }

    #[expect(clippy::cast_possible_truncation, reason = "whole microseconds")]
    pub(super) fn draw(self, rng: &mut Rng) -> Micros {
        let normal = (-2.0 * unit(rng).ln()).sqrt() * (std::f64::consts::TAU * unit(rng)).cos();
        ((self.ln_median_s + self.sigma * normal).exp() * 1e6) as Micros
    }
}

/// A time span with orders at one rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateSpan {
    pub(super) rate: f64,
    pub(super) micros: Micros,
    pub(super) is_counted: bool,
    /// The best level for this rate, if the rate has just stepped to it.
    pub(super) step_to: Option<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct RateScript {
    pub(super) spans: Vec<RateSpan>,
    pub(super) life: Micros,
    pub(super) usable: Micros,
    pub(super) solve_times: SolveTimes,
}

/// The other rate for steps in a row: ten times as much, or a tenth if that would be outside the range of the study.
pub(super) fn stepped(rate: f64, rate_max: f64) -> f64 {
    if rate * 10.0 <= rate_max * 1.001 { rate * 10.0 } else { rate / 10.0 }
}

impl RateScript {
    /// A steady rate, then tenfold steps to `other` and back, several times, and then the steady rate again.
    pub(super) fn new(kind: &Kind, rate: f64, other: f64, orders: f64, best: [u32; 2]) -> Self {
        let life = kind.life.expect("a pool holds what does not live for ever");
        let settling = life * SETTLING_LIVES;
        let per_cycle = (rate + other) * settling.as_secs_f64();
        let cycles = whole(orders * STEPPING_SHARE / per_cycle).clamp(CYCLES_MIN, CYCLES_MAX);
        let steady = (orders - per_cycle * f64::from(cycles)).max(orders / 2.0) / rate;
        let steady = Duration::from_secs_f64(steady / 10.0);
        let span =
            |rate, span, is_counted, step_to| RateSpan { rate, micros: micros(span), is_counted, step_to };
        let mut spans = vec![span(rate, settling, false, None), span(rate, steady * 3, true, None)];
        for _ in 0..cycles {
            spans.push(span(other, settling, false, Some(best[1])));
            spans.push(span(rate, settling, false, Some(best[0])));
        }
        spans.push(span(rate, steady * 6, true, None));
        spans.push(span(rate, steady, true, None));
        let usable = micros(life.saturating_sub(kind.margin));
        Self { spans, life: micros(life), usable, solve_times: SolveTimes::of(kind) }
    }
}

fn micros(span: Duration) -> Micros {
    u64::try_from(span.as_micros()).expect("a study is shorter than the age of the world")
}

#[expect(clippy::cast_possible_truncation, reason = "small and positive")]
fn whole(number: f64) -> u32 {
    number as u32
}
