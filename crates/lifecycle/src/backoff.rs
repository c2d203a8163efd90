//! How long to wait before trying again: `min(base * 2^retry, cap) + jitter`.
//!
//! The jitter is a hash of the order and its attempt, not a random number. So every node computes the same moment,
//! and no test needs a seed.

use crate::time::millis;
use core::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jitter {
    /// The jitter is added to the wait, uniform from zero up to this.
    UpTo(Duration),
    /// The whole wait is random: uniform from zero up to the wait without jitter.
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    pub base: Duration,
    pub cap: Duration,
    pub jitter: Jitter,
}

impl Backoff {
    /// The wait before retry number `retry`, counted from zero. `grain` decides the jitter.
    #[must_use]
    pub fn pause(&self, retry: u32, grain: u64) -> Duration {
        let factor = 1u64.checked_shl(retry).unwrap_or(u64::MAX);
        let wait = millis(self.base).saturating_mul(factor).min(millis(self.cap));
        Duration::from_millis(match self.jitter {
            Jitter::UpTo(most) => wait.saturating_add(spread(grain, millis(most))),
            Jitter::Full => spread(grain, wait),
        })
    }
}

/// A number in `0..=most`, with a uniform distribution over all grains.
fn spread(grain: u64, most: u64) -> u64 {
    // The finaliser of SplitMix64: neighbours come out unrelated.
    let mut z = grain.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    most.checked_add(1).map_or(z, |n| z % n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Preset;

    fn no_jitter(preset: Preset) -> Backoff {
        Backoff { jitter: Jitter::UpTo(Duration::ZERO), ..preset.backoff() }
    }

    #[test]
    fn waits_double_from_the_base_up_to_the_cap() {
        let seconds = |preset| -> [f32; 9] {
            core::array::from_fn(|n| no_jitter(preset).pause(u32::try_from(n).unwrap(), 0).as_secs_f32())
        };
        assert_eq!(seconds(Preset::Patient), [1., 2., 4., 8., 16., 32., 60., 60., 60.]);
        assert_eq!(seconds(Preset::Conservative), [2., 4., 8., 16., 32., 64., 120., 120., 120.]);
        assert_eq!(seconds(Preset::Aggressive), [0.5, 1., 2., 4., 8., 16., 30., 30., 30.]);
        assert_eq!(no_jitter(Preset::Patient).pause(u32::MAX, 0), Duration::from_secs(60));
    }

    #[test]
    fn jitter_is_added_evenly_within_its_range_and_is_the_same_for_the_same_grain() {
        for (preset, most) in
            [(Preset::Patient, 1000), (Preset::Conservative, 2000), (Preset::Aggressive, 500)]
        {
            let (mut sum, mut least, mut greatest) = (0u64, u64::MAX, 0);
            for grain in 0..10_000 {
                let extra = millis(preset.backoff().pause(0, grain)) - millis(preset.backoff().base);
                assert_eq!(preset.backoff().pause(0, grain), preset.backoff().pause(0, grain));
                sum += extra;
                least = least.min(extra);
                greatest = greatest.max(extra);
            }
            assert!(greatest <= most && greatest > most * 98 / 100, "{greatest} of {most}");
            assert!(least < most / 50, "{least}");
            assert!((sum / 10_000).abs_diff(most / 2) < most / 20, "mean {}", sum / 10_000);
        }
    }

    #[test]
    fn full_jitter_spreads_the_whole_wait() {
        let full = Backoff { jitter: Jitter::Full, ..Preset::Patient.backoff() };
        let waits = || (0..10_000).map(|grain| millis(full.pause(3, grain)));
        assert!(waits().all(|wait| wait <= 8_000));
        assert!(waits().any(|wait| wait < 100) && waits().any(|wait| wait > 7_900));
    }
}
