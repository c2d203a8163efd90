//! Every duration and limit that a decision depends on, with its default. The engine fills in a policy for each
//! decision, from the operator's settings and the measured solve times of the order's kind.

use crate::backoff::{Backoff, Jitter};
use crate::fault::{FaultClass, FaultTable, Remedy, Signal};
use core::time::Duration;

/// How long answers of a kind take, as measured percentiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    pub p50: Duration,
    pub p95: Duration,
    pub p99: Duration,
}

/// What to do about an attempt in doubt if no callback can settle it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenInDoubt {
    /// Submit again after the usual pause, and count a possible double payment.
    Resubmit,
    /// Move the order to the dead letters: an operator decides.
    DeadLetter,
}

/// Whether the provider charges a task that it could not solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsolvable {
    /// The task costs as much as an answer.
    Charged,
    /// The provider gives the money back.
    Free,
    NotKnown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Whether the provider can call us: a public address is configured.
    pub callbacks: bool,
    /// A short digest of our address for callbacks. Each attempt stores it.
    pub callback_address: Option<u32>,
    /// Whether no node answers any more at the address to which the order's callback goes.
    pub callback_lost: bool,
    pub when_in_doubt: WhenInDoubt,
    /// What the provider charges for a task that it could not solve.
    pub unsolvable: Unsolvable,
    /// Whether the account now has another currency than when the order was placed. Then the provider's prices say
    /// nothing about the order's own amounts.
    pub other_currency: bool,
    /// The longest time for which a submit may have no outcome on record. After this time the attempt is in doubt.
    pub submit_wait: Duration,
    /// The longest time for which an attempt in doubt waits for a callback.
    pub in_doubt_wait: Duration,
    /// The shortest time for which an attempt stays in doubt, if a callback can settle it: enough time for another
    /// node to write what it kept while the store was away.
    pub in_doubt_min: Duration,
    /// How late a timer may fire when nothing is wrong. A timer that fires later shows that this node or its
    /// store was away.
    pub timer_late: Duration,
    /// The longest time for which an accepted task waits for its callback before it is polled.
    pub callback_wait: Duration,
    /// The shortest time from the submission of a task to its first poll: a rule of the provider.
    pub first_poll: Duration,
    /// The interval between two polls of a task: a rule of the provider.
    pub poll_interval: Duration,
    /// How long the provider keeps a result after the solve. `None`: longer than an order waits, as far as is known.
    pub result_kept: Option<Duration>,
    /// How long after its submission a task is still polled.
    pub task_life: Duration,
    /// How long an order may take if its request sets no timeout.
    pub timeout: Duration,
    /// How long after the solve a placement counts as a repeat of the same order. `None`: as long as the answer can
    /// be reused, which follows from its life and its margin.
    pub share_window: Option<Duration>,
    /// The longest time that a provider takes to call back after the solve, if it can reach our address.
    pub callback_lag: Duration,
    /// The most that the clocks of two nodes may differ. Every answer expires earlier by this time. Zero for a single
    /// node.
    pub clock_skew: Duration,
    /// How long a rejection holds back new lives of the same key.
    pub refusal_hold: Duration,
    /// How long an order that has ended is kept after its answer has expired.
    pub keep: Duration,
    pub backoff: Backoff,
    pub faults: FaultTable,
    pub pace: Pace,
}

/// Adds 10 % and 1 s to a percentile: after this time a callback is late.
fn and_a_little(span: Duration) -> Duration {
    span.saturating_add(span / 10).saturating_add(Duration::from_secs(1))
}

impl Policy {
    pub const DEFAULT: Self = Self {
        callbacks: false,
        callback_address: None,
        callback_lost: false,
        when_in_doubt: WhenInDoubt::Resubmit,
        unsolvable: Unsolvable::NotKnown,
        other_currency: false,
        submit_wait: Duration::from_secs(30),
        in_doubt_wait: Duration::from_secs(180),
        in_doubt_min: Duration::from_secs(10),
        timer_late: Duration::from_secs(1),
        callback_wait: Duration::from_secs(120),
        first_poll: Duration::from_secs(5),
        poll_interval: Duration::from_secs(5),
        result_kept: None,
        task_life: Duration::from_secs(600),
        timeout: Duration::from_secs(300),
        share_window: None,
        callback_lag: Duration::from_secs(5),
        clock_skew: Duration::ZERO,
        refusal_hold: Duration::from_secs(30),
        keep: Duration::from_secs(24 * 3600),
        backoff: Preset::Patient.backoff(),
        faults: FaultTable::PATIENT,
        pace: Pace {
            p50: Duration::from_secs(15),
            p95: Duration::from_secs(60),
            p99: Duration::from_secs(100),
        },
    };

    /// How long after its submission a callback may still settle an attempt in doubt.
    #[must_use]
    pub fn doubt_wait(&self) -> Duration {
        and_a_little(self.pace.p99).min(self.in_doubt_wait)
    }

    /// How long after its submission a task is first polled. `usable` is the age from which an answer is too old. A
    /// later poll would find an answer expired, or removed by the provider, that was solved at once.
    #[must_use]
    pub fn first_ask(&self, usable: Option<Duration>) -> Duration {
        let can_be_called = self.callbacks && !self.callback_lost;
        let expected =
            if can_be_called { and_a_little(self.pace.p95).min(self.callback_wait) } else { self.pace.p50 };
        // Early enough that one reply may be lost and the next still be of use.
        let readable = self.result_kept.unwrap_or(Duration::MAX);
        let latest = usable.unwrap_or(Duration::MAX).min(readable).saturating_sub(self.poll_interval * 2);
        expected.min(self.callback_wait).min(latest).max(self.first_poll)
    }

    #[must_use]
    pub fn with_preset(self, preset: Preset) -> Self {
        Self { backoff: preset.backoff(), faults: preset.faults(), ..self }
    }
}

/// Named sets of pauses and limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The default. Faults that cost nothing and do not depend on the order (busy, unreachable) are retried until the
    /// order's deadline, at the pace of the gate.
    Patient,
    /// The default pauses, and a limit of retries for each fault class.
    Standard,
    Conservative,
    Aggressive,
}

impl Preset {
    #[must_use]
    pub const fn backoff(self) -> Backoff {
        let (base_ms, cap_s, jitter_ms) = match self {
            Self::Patient | Self::Standard => (1000, 60, 1000),
            Self::Conservative => (2000, 120, 2000),
            Self::Aggressive => (500, 30, 500),
        };
        Backoff {
            base: Duration::from_millis(base_ms),
            cap: Duration::from_secs(cap_s),
            jitter: Jitter::UpTo(Duration::from_millis(jitter_ms)),
        }
    }

    /// Applies the preset's number of retries to faults that cost nothing. Faults that may cost money keep their own
    /// limit if it is lower, so no preset makes a double payment more likely.
    fn faults(self) -> FaultTable {
        let mut table = FaultTable::STANDARD;
        let retries = match self {
            Self::Patient => return FaultTable::PATIENT,
            Self::Standard => return table,
            Self::Conservative => 5,
            Self::Aggressive => 2,
        };
        for signal in Signal::ALL {
            let mut rule = table.rule(signal);
            rule.limit = match (rule.remedy, signal) {
                (Remedy::BackOff, Signal::Fault(FaultClass::Busy | FaultClass::Unreachable)) => Some(retries),
                _ => rule.limit.map(|limit| limit.min(retries)),
            };
            table.set(signal, rule);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn presets_limit_free_retries_to_their_number_and_never_raise_what_may_cost_money() {
        let limits = |preset| Signal::ALL.map(|c| Policy::DEFAULT.with_preset(preset).faults.rule(c).limit);
        assert_eq!(limits(Preset::Standard), [5, 3, 3, 2, 0, 0, 0, 2].map(Some));
        assert_eq!(limits(Preset::Conservative), [5, 5, 3, 2, 0, 0, 0, 2].map(Some));
        assert_eq!(limits(Preset::Aggressive), [2, 2, 2, 2, 0, 0, 0, 2].map(Some));
        let free = [None, None];
        let costly = [3, 2, 0, 0, 0, 2].map(Some);
        assert_eq!(limits(Preset::Patient)[..], [&free[..], &costly].concat());
        assert_eq!(Policy::DEFAULT.with_preset(Preset::Patient), Policy::DEFAULT, "the default");
    }

    /// Checks that the first poll depends on the answer's life: after a flat 120 s, a token that lives 120 s would be
    /// expired.
    #[test]
    fn the_first_fallback_poll_comes_while_the_answer_can_still_be_used() {
        let pace = Pace { p50: secs(60), p95: secs(200), p99: secs(300) };
        let slow = Policy { callbacks: true, pace, ..Policy::DEFAULT };
        assert_eq!(slow.first_ask(None), secs(120), "never later than callback_wait");
        assert_eq!(
            slow.first_ask(Some(secs(80))),
            secs(70),
            "and never too late for a token, even if one reply is lost"
        );
        assert_eq!(Policy { callbacks: true, ..Policy::DEFAULT }.first_ask(Some(secs(80))), secs(67));
        assert_eq!(slow.first_ask(Some(secs(2))), secs(5), "but never sooner than the provider allows");
        let forgetful = Policy { result_kept: Some(secs(60)), ..slow };
        assert_eq!(
            forgetful.first_ask(Some(secs(80))),
            secs(50),
            "nor when the provider has removed the result"
        );
        assert_eq!(forgetful.first_ask(None), secs(50));
        assert_eq!(slow.doubt_wait(), secs(180), "never longer than in_doubt_wait");
        assert_eq!(
            Policy::DEFAULT.first_ask(Some(secs(80))),
            secs(15),
            "without callbacks, when half are there"
        );
        let lost = Policy { callbacks: true, callback_lost: true, ..Policy::DEFAULT };
        assert_eq!(lost.first_ask(Some(secs(80))), secs(15), "also if no callback can come any more");
    }
}
