//! Estimates a rate that may change at any moment. A long memory is precise and slow to follow; a short one is quick
//! and noisy. So there is one memory for each moment at which the rate may last have changed, and each memory has
//! odds.
//!
//! The odds of a memory grow with how well it predicts events. While nothing changes, the longest memory predicts
//! best, and the estimate becomes as precise as all data allows. After a change, the memories that began at about
//! that time win within a few events. If it was chance, the long memory wins back its odds.

/// A memory that began at some moment: how many events it has counted since, and over which span.
#[derive(Clone, Copy, Debug)]
struct Regime {
    odds: f64,
    count: f64,
    span: f64,
    /// The reading of the whole span when this memory began.
    began: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct Regimes {
    /// The memories, the oldest first. Never empty.
    regimes: Vec<Regime>,
    elapsed: f64,
    last_began: f64,
    pub(crate) settings: Settings,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// How far apart memories begin.
    pub(crate) apart: f64,
    /// The probability of a change between two beginnings.
    pub(crate) change: f64,
    /// How many events the old rate counts for in a new memory: few, so that its own events soon dominate.
    pub(crate) prior: f64,
    /// A new memory expects at least this rate, even after a quiet time.
    pub(crate) rate_min: f64,
}

/// The most memories: with this many, neighbours differ by a sixth in age when the oldest is a thousand times the
/// youngest.
const REGIMES_MAX: usize = 40;
/// A memory with lower odds is removed.
const ODDS_MIN: f64 = 1e-9;

impl Regimes {
    /// Begins with `count` events in `span`, which were stated and not measured.
    pub(crate) fn new(count: f64, span: f64, settings: Settings) -> Self {
        let first = Regime { odds: 1.0, count, span, began: 0.0 };
        Self { regimes: vec![first], elapsed: 0.0, last_began: 0.0, settings }
    }

    pub(crate) fn rate(&self) -> f64 {
        self.regimes.iter().map(|regime| regime.odds * regime.count / regime.span).sum()
    }

    /// Adds `count` events in `span`. `credence` is how much of that is evidence: less than one if the events are not
    /// independent.
    pub(crate) fn saw(&mut self, count: f64, span: f64, credence: f64) {
        if self.elapsed - self.last_began >= self.settings.apart {
            self.begin();
        }
        self.elapsed += span;
        let foretold =
            self.regimes.iter().map(|regime| regime.odds.ln() + regime.foretold(count, span) * credence);
        let logs: Vec<f64> = foretold.collect();
        let greatest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logs.iter().map(|log| (log - greatest).exp()).sum();
        for (regime, log) in self.regimes.iter_mut().zip(&logs) {
            regime.odds = (log - greatest).exp() / sum;
            regime.count += count;
            regime.span += span;
        }
    }

    fn begin(&mut self) {
        let Settings { change, prior, rate_min, .. } = self.settings;
        let expects = self.rate().max(rate_min);
        self.regimes.retain(|regime| regime.odds > ODDS_MIN);
        while self.regimes.len() >= REGIMES_MAX {
            self.merge();
        }
        for regime in &mut self.regimes {
            regime.odds *= 1.0 - change;
        }
        let began = self.elapsed;
        self.regimes.push(Regime { odds: change, count: prior, span: prior / expects, began });
        self.last_began = began;
    }

    /// Merges the two neighbours whose ages differ least, in proportion. The one with the higher odds stays.
    fn merge(&mut self) {
        let age = |regime: &Regime| self.elapsed - regime.began;
        let ratio = |pair: &[Regime]| age(&pair[0]) / age(&pair[1]).max(f64::MIN_POSITIVE);
        let pairs = self.regimes.windows(2).map(ratio).enumerate();
        let Some((at, _)) = pairs.min_by(|a, b| a.1.total_cmp(&b.1)) else { return };
        let gone = if self.regimes[at].odds < self.regimes[at + 1].odds { at } else { at + 1 };
        let odds = self.regimes.remove(gone).odds;
        self.regimes[at].odds += odds;
    }
}

impl Regime {
    /// The logarithm of the probability that this memory gave to the events, less terms that are equal for all
    /// memories. Its rate is Gamma distributed, so that a short memory does not lose odds for being imprecise.
    fn foretold(&self, count: f64, span: f64) -> f64 {
        let wider = self.span + span;
        let mut log = -self.count * (span / self.span).ln_1p();
        if count > 0.0 {
            log += ln_gamma(self.count + count) - ln_gamma(self.count) - count * wider.ln();
        }
        log
    }
}

/// Stirling's series, after a shift to arguments where it is accurate to nine digits.
fn ln_gamma(x: f64) -> f64 {
    let (mut product, mut x) = (1.0, x);
    while x < 10.0 {
        product *= x;
        x += 1.0;
    }
    let square = x * x;
    let series = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * square)) / square) / x;
    const HALF_LN_TAU: f64 = 0.918_938_533_204_672_8;
    (x - 0.5) * x.ln() - x + HALF_LN_TAU + series - product.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings = Settings { apart: 1.0, change: 0.001, prior: 0.25, rate_min: 0.1 };

    #[test]
    fn the_gamma_function_agrees_with_factorials() {
        let mut factorial = 1.0_f64;
        for n in 1..40 {
            let n = f64::from(n);
            assert!((ln_gamma(n) - factorial.ln()).abs() < 1e-9 * factorial.ln().max(1.0), "{n}");
            factorial *= n;
        }
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-9);
    }

    #[test]
    fn what_stays_the_same_is_known_ever_better() {
        let mut regimes = Regimes::new(0.25, 0.25, SETTINGS);
        for n in 0..20_000 {
            regimes.saw(if n % 2 == 0 { 4.0 } else { 6.0 }, 1.0, 1.0);
        }
        assert!((regimes.rate() - 5.0).abs() < 0.01, "{}", regimes.rate());
        assert!(regimes.regimes.len() <= REGIMES_MAX);
    }

    #[test]
    fn a_tenfold_step_is_followed_at_once_however_long_the_memory_was() {
        let mut regimes = Regimes::new(0.25, 0.25, SETTINGS);
        for _ in 0..20_000 {
            regimes.saw(5.0, 1.0, 1.0);
        }
        for _ in 0..3 {
            regimes.saw(50.0, 1.0, 1.0);
        }
        assert!((regimes.rate() - 50.0).abs() < 5.0, "{}", regimes.rate());
        for _ in 0..6 {
            regimes.saw(5.0, 1.0, 1.0);
        }
        assert!((regimes.rate() - 5.0).abs() < 2.0, "{}", regimes.rate());
    }

    #[test]
    fn odds_are_shares_whatever_comes() {
        let mut regimes = Regimes::new(0.25, 0.25, SETTINGS);
        for (count, span) in [(0.0, 1e6), (1e6, 1e-3), (0.0, 1e-9), (1e9, 1.0), (0.0, 1e9), (3.0, 2.0)] {
            regimes.saw(count, span, 1.0);
            let sum: f64 = regimes.regimes.iter().map(|regime| regime.odds).sum();
            assert!((sum - 1.0).abs() < 1e-6 && regimes.rate().is_finite(), "{count} in {span}: {sum}");
        }
    }
}
