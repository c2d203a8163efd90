//! How often and how slowly an order is tried again: what the operator sets for all orders, a tenant, a kind or a
//! provider, and what one order asks for. An order can ask for fewer tries and longer pauses, and never for more.

use crate::backoff::Backoff;
use core::time::Duration;

/// The most retries that can be set or asked for.
pub const MAX_RETRIES_MAX: u8 = 50;

/// Limits of retries. An absent field sets no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryLimits {
    /// The most attempts of one life after the first one, whatever the reason. Zero means one attempt only.
    pub max_retries: Option<u8>,
    /// The first pause before a retry.
    pub base: Option<Duration>,
    /// The longest pause before a retry.
    pub cap: Option<Duration>,
}

impl RetryLimits {
    pub const NONE: Self = Self { max_retries: None, base: None, cap: None };

    /// These limits, and where one is absent, that of `general`.
    #[must_use]
    pub fn or(self, general: Self) -> Self {
        Self {
            max_retries: self.max_retries.or(general.max_retries),
            base: self.base.or(general.base),
            cap: self.cap.or(general.cap),
        }
    }

    /// The pauses of the operator with these instead, where they are set.
    #[must_use]
    pub fn replace(self, backoff: Backoff) -> Backoff {
        let base = self.base.unwrap_or(backoff.base);
        Backoff { base, cap: self.cap.unwrap_or(backoff.cap).max(base), ..backoff }
    }

    /// The pauses of an order that asks for these limits: never shorter than the operator's.
    #[must_use]
    pub fn prolong(self, backoff: Backoff) -> Backoff {
        let base = self.base.map_or(backoff.base, |base| base.max(backoff.base));
        let cap = self.cap.map_or(backoff.cap, |cap| cap.max(backoff.cap));
        Backoff { base, cap: cap.max(base), ..backoff }
    }

    /// The number of retries that an order may make: what it asks for, and at most `allowed`.
    #[must_use]
    pub fn retries_within(self, allowed: Option<u8>) -> Option<u8> {
        match (self.max_retries, allowed) {
            (Some(wanted), Some(allowed)) => Some(wanted.min(allowed)),
            (wanted, allowed) => wanted.or(allowed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Preset;

    const fn secs(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    #[test]
    fn an_order_gets_what_it_asks_for_and_at_most_what_the_operator_allows() {
        let asks = |max_retries| RetryLimits { max_retries, ..RetryLimits::NONE };
        for (wanted, allowed, given) in [
            (None, None, None),
            (Some(2), None, Some(2)),
            (None, Some(3), Some(3)),
            (Some(2), Some(3), Some(2)),
            (Some(9), Some(3), Some(3)),
            (Some(0), Some(3), Some(0)),
        ] {
            assert_eq!(asks(wanted).retries_within(allowed), given, "{wanted:?} of {allowed:?}");
        }
    }

    #[test]
    fn an_order_makes_its_pauses_longer_and_never_shorter() {
        let operators = Preset::Patient.backoff();
        let pauses = |base, cap| {
            let backoff = RetryLimits { base, cap, max_retries: None }.prolong(operators);
            (backoff.base.as_secs(), backoff.cap.as_secs())
        };
        assert_eq!(pauses(None, None), (1, 60));
        assert_eq!(pauses(secs(0), secs(5)), (1, 60), "shorter than the operator's");
        assert_eq!(pauses(secs(10), secs(90)), (10, 90));
        assert_eq!(pauses(secs(100), None), (100, 100), "the longest pause is not shorter than the first");
    }

    #[test]
    fn the_more_special_limit_counts() {
        let general = RetryLimits { max_retries: Some(5), base: secs(1), cap: secs(60) };
        let special = RetryLimits { max_retries: Some(9), cap: secs(5), ..RetryLimits::NONE };
        assert_eq!(special.or(general), RetryLimits { max_retries: Some(9), base: secs(1), cap: secs(5) });
        let backoff = special.or(general).replace(Preset::Patient.backoff());
        assert_eq!((backoff.base, backoff.cap), (Duration::from_secs(1), Duration::from_secs(5)));
    }
}
