//! Every duration and limit that a decision depends on, with its default. The engine fills in a policy for each
//! decision, from the operator's settings and the measured solve times of the order's kind.

use crate::backoff::{Backoff, Jitter};
use crate::fault::{FaultClass, FaultTable, Remedy, Signal};
use crate::follow_up::WebhookPauses;
use crate::routing::Routing;
use crate::time::{Timestamp, millis};
use core::time::Duration;

/// How long answers of a kind take, as measured percentiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    pub p50: Duration,
    pub p95: Duration,
    pub p99: Duration,
}

impl Pace {
    /// About one answer in ten comes before this. Solve times of people are spread like a log-normal distribution, so
    /// `p05 = p50 * p50 / p95`, `p20 = sqrt(p05 * p50)` and `p10 = sqrt(p05 * p20)`.
    #[must_use]
    pub fn p10(&self) -> Duration {
        let [p50, p95] = [self.p50, self.p95].map(|span| u128::from(millis(span)));
        let p05 = p50.saturating_mul(p50) / p95.max(1);
        let p20 = p05.saturating_mul(p50).isqrt();
        let p10 = u64::try_from(p05.saturating_mul(p20).isqrt()).unwrap_or(u64::MAX);
        Duration::from_millis(p10).min(self.p50)
    }
}

/// A service's rules for polls of one kind: the least times, which it enforces or asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollRules {
    /// The shortest time from the submission of a task to its first poll.
    pub first: Duration,
    /// The shortest time between two polls of a task.
    pub interval: Duration,
}

impl PollRules {
    /// The rules for a provider that states none.
    pub const DEFAULT: Self = Self { first: Duration::from_secs(1), interval: Duration::from_secs(2) };
}

/// The interval between two polls of a task, if the rules of the service allow it.
///
/// A task that is polled alone costs one call for each interval, and its answer is found half an interval after its
/// solve. No other times of polls do much better: the solve times of most kinds are spread over a minute. Three seconds
/// keep the mean delay under 2 s. The number of calls is kept small by batches, which carry a task along for nothing.
const POLL_SPAN: Duration = Duration::from_secs(3);

/// A task that is this many intervals old is polled less often: the longer it has taken, the longer it will take.
const SLOW_AT: u32 = 16;
/// If a callback can come, it most likely brings the answer of a task that was open when it was polled.
const SLOW_AT_WITH_CALLBACKS: u32 = 4;

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
    /// Whether another provider may take the order: one that this life has not used up.
    pub can_fail_over: bool,
    /// After this age of its task, an urgent order is also bought at another provider. `None`: it is not hedged.
    pub hedge_after: Option<Duration>,
    /// How the provider is chosen.
    pub routing: Routing,
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
    /// The operator's shortest time from the submission of a task to its first poll. `None`: the rules of the
    /// provider decide.
    pub first_poll: Option<Duration>,
    /// The operator's interval between two polls of a task. `None`: the rules of the provider and the age of the task
    /// decide.
    pub poll_interval: Option<Duration>,
    /// The provider's rules for polls of the order's kind.
    pub poll_rules: PollRules,
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
    /// The most attempts of one life after the first one, at all accounts together. `None`: as many as the fault table
    /// allows.
    pub max_retries: Option<u8>,
    /// The most attempts of one life after the first one at the account of this attempt.
    pub account_max_retries: Option<u8>,
    pub backoff: Backoff,
    pub faults: FaultTable,
    /// The schedule for webhooks that do not accept their calls.
    pub webhook_pauses: WebhookPauses,
    pub pace: Pace,
    /// The shortest time in which a task of the order's kind was answered lately, at any provider that may get the
    /// order. `None` as long as too few were measured. No task is paid for if less is left until the deadline.
    pub quickest: Option<Duration>,
    /// The least time that a new order waits behind the orders before it, at the pace at which orders leave the queue.
    /// `None` if the pace is not known, or if no order waits.
    pub queue_wait: Option<Duration>,
    /// When the budget ends whose limit allows no purchase for a new order. `None` if budgets allow one.
    pub no_budget_until: Option<Timestamp>,
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
        can_fail_over: false,
        hedge_after: None,
        routing: Routing::DEFAULT,
        other_currency: false,
        submit_wait: Duration::from_secs(30),
        in_doubt_wait: Duration::from_secs(180),
        in_doubt_min: Duration::from_secs(10),
        timer_late: Duration::from_secs(1),
        callback_wait: Duration::from_secs(120),
        first_poll: None,
        poll_interval: None,
        poll_rules: PollRules::DEFAULT,
        result_kept: None,
        task_life: Duration::from_secs(600),
        timeout: Duration::from_secs(300),
        share_window: None,
        callback_lag: Duration::from_secs(5),
        clock_skew: Duration::ZERO,
        refusal_hold: Duration::from_secs(30),
        keep: Duration::from_secs(24 * 3600),
        max_retries: None,
        account_max_retries: None,
        backoff: Preset::Patient.backoff(),
        faults: FaultTable::PATIENT,
        webhook_pauses: WebhookPauses::DEFAULT,
        pace: Pace {
            p50: Duration::from_secs(15),
            p95: Duration::from_secs(60),
            p99: Duration::from_secs(100),
        },
        quickest: None,
        queue_wait: None,
        no_budget_until: None,
    };

    /// How long after its submission a callback may still settle an attempt in doubt.
    #[must_use]
    pub fn doubt_wait(&self) -> Duration {
        and_a_little(self.pace.p99).min(self.in_doubt_wait)
    }

    /// Whether a callback can bring the answer.
    const fn can_be_called(&self) -> bool {
        self.callbacks && !self.callback_lost
    }

    /// The shortest time from the submission of a task to its first poll.
    #[must_use]
    pub fn first_poll(&self) -> Duration {
        self.first_poll.unwrap_or(self.poll_rules.first)
    }

    /// The shortest time between two polls of a task.
    #[must_use]
    pub fn least_interval(&self) -> Duration {
        self.poll_interval.unwrap_or(self.poll_rules.interval)
    }

    /// The time between two polls of a young task.
    #[must_use]
    pub fn usual_interval(&self) -> Duration {
        self.poll_interval.unwrap_or(self.poll_rules.interval.max(POLL_SPAN))
    }

    /// How long after its submission a task is first polled. `usable` is the age from which an answer is too old. A
    /// later poll would find an answer expired, or removed by the provider, that was solved at once.
    ///
    /// Without callbacks this is early: nine of ten first polls find the task open or solved a moment ago.
    #[must_use]
    pub fn first_ask(&self, usable: Option<Duration>) -> Duration {
        let expected = if self.can_be_called() { and_a_little(self.pace.p95) } else { self.pace.p10() };
        // Early enough that one reply may be lost and the next still be of use.
        let latest = self.readable(usable).saturating_sub(self.usual_interval() * 2);
        expected.min(self.callback_wait).min(latest).max(self.first_poll())
    }

    /// How long after a poll a task is polled again that was open at this age. The interval grows with the age, but
    /// never so far that an answer of this service is removed, or too old, before the poll after the next one.
    #[must_use]
    pub fn ask_again(&self, age: Duration, usable: Option<Duration>) -> Duration {
        let slow_at = if self.can_be_called() { SLOW_AT_WITH_CALLBACKS } else { SLOW_AT };
        let interval = (age / slow_at).max(self.usual_interval());
        self.before_it_is_gone(interval, usable)
    }

    /// This pause before a poll, or a shorter one, so that a result can still be read if the reply to the next poll is
    /// lost. It is never shorter than the provider allows.
    #[must_use]
    pub fn before_it_is_gone(&self, pause: Duration, usable: Option<Duration>) -> Duration {
        pause.min(self.readable(usable) / 3).max(self.least_interval())
    }

    /// How long after its solve a result can be read and used.
    fn readable(&self, usable: Option<Duration>) -> Duration {
        usable.unwrap_or(Duration::MAX).min(self.result_kept.unwrap_or(Duration::MAX))
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
        assert_eq!(limits(Preset::Standard), [5, 3, 3, 2, 0, 0, 0, 0, 2].map(Some));
        assert_eq!(limits(Preset::Conservative), [5, 5, 3, 2, 0, 0, 0, 0, 2].map(Some));
        assert_eq!(limits(Preset::Aggressive), [2, 2, 2, 2, 0, 0, 0, 0, 2].map(Some));
        let free = [None, None];
        let costly = [3, 2, 0, 0, 0, 0, 2].map(Some);
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
            secs(74),
            "and never too late for a token, even if one reply is lost"
        );
        assert_eq!(Policy { callbacks: true, ..Policy::DEFAULT }.first_ask(Some(secs(80))), secs(67));
        assert_eq!(slow.first_ask(Some(secs(2))), secs(1), "but never sooner than the provider allows");
        let forgetful = Policy { result_kept: Some(secs(60)), ..slow };
        assert_eq!(
            forgetful.first_ask(Some(secs(80))),
            secs(54),
            "nor when the provider has removed the result"
        );
        assert_eq!(forgetful.first_ask(None), secs(54));
        assert_eq!(slow.doubt_wait(), secs(180), "never longer than in_doubt_wait");
    }

    /// One row for each sort of solve time: p50 and p95 in seconds, when the first poll comes, and how long after it
    /// the next ones come.
    #[test]
    fn without_callbacks_the_first_poll_follows_the_solve_times_and_the_interval_the_age() {
        let rules = PollRules { first: secs(1), interval: secs(2) };
        let strict = PollRules { first: secs(5), interval: secs(4) };
        let rows: [(u64, u64, PollRules, u64, [u64; 3]); 6] = [
            // A quick kind, a usual one, and a slow one.
            (4, 15, rules, 1_484, [3_000, 3_000, 18_750]),
            (10, 45, rules, 3_236, [3_000, 3_000, 18_750]),
            (20, 75, rules, 7_420, [3_000, 3_000, 18_750]),
            // All answers take the same time, or hardly any.
            (20, 20, rules, 20_000, [3_000, 3_000, 18_750]),
            (0, 0, rules, 1_000, [3_000, 3_000, 18_750]),
            // The rules of the service are the lower bound.
            (4, 15, strict, 5_000, [4_000, 4_000, 18_750]),
        ];
        for (p50, p95, poll_rules, first, intervals) in rows {
            let pace = Pace { p50: secs(p50), p95: secs(p95), p99: secs(300) };
            let policy = Policy { pace, poll_rules, ..Policy::DEFAULT };
            let now = policy.first_ask(Some(secs(120)));
            assert!(now.abs_diff(Duration::from_millis(first)) <= Duration::from_millis(5), "{p50}: {now:?}");
            let again = [10, 48, 300].map(|age| millis(policy.ask_again(secs(age), Some(secs(120)))));
            assert_eq!(again, intervals, "{p50}");
            let lost = Policy { callbacks: true, callback_lost: true, ..policy };
            assert_eq!(lost.first_ask(Some(secs(120))), now, "also if no callback can come any more");
        }
    }

    #[test]
    fn an_interval_leaves_time_for_two_polls_before_a_result_is_gone() {
        let kept = |kept, usable| {
            let policy = Policy { result_kept: Some(secs(kept)), ..Policy::DEFAULT };
            policy.ask_again(secs(600), Some(secs(usable))).as_secs()
        };
        assert_eq!(kept(600, 600), 37);
        assert_eq!(kept(60, 600), 20, "the service removes it after a minute");
        assert_eq!(kept(600, 30), 10, "the caller needs it fresh");
        assert_eq!(kept(3, 600), 2, "but the rules of the service count");
    }

    #[test]
    fn what_the_operator_sets_overrides_the_rules_of_the_service() {
        let fast = Duration::from_millis(100);
        let policy = Policy { first_poll: Some(fast), poll_interval: Some(fast), ..Policy::DEFAULT };
        let eager = Policy { pace: Pace { p50: fast, p95: fast, p99: fast }, ..policy };
        assert_eq!((eager.first_ask(None), eager.ask_again(secs(1), None)), (fast, fast));
        let calm = Policy { poll_interval: Some(secs(10)), ..Policy::DEFAULT };
        assert_eq!(calm.ask_again(secs(1), None), secs(10));
    }
}
