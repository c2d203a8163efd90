//! Whether the provider may be given work now. What one order learns slows, stops or releases all of them:
//! a busy provider is left in peace, an unreachable one is tried by one order at a time, and one that has
//! closed the account is not tried at all until a person says so.

use quittance_lifecycle::{Backoff, FaultClass, FaultTable, Gate, Reaction, SubmitOutcome, Timestamp};
use std::time::Duration;

/// So many submits in a row must come to nothing before the circuit opens.
const TRIP_AT: u32 = 5;
/// How long an order waits before it looks again whether a person has mended the account.
const PAUSED_LOOK: Duration = Duration::from_secs(10);
/// How long one order may try the provider while the others wait for what it learns.
const PROBE: Duration = Duration::from_secs(5);
/// Retries may be this many thousandths of first submits, with a burst of [`RETRY_BURST`].
const RETRY_SHARE: u64 = 200;
const RETRY_BURST: u64 = 20_000;
/// One retry earns its way back in this time even when nothing else is submitted.
const RETRY_TRICKLE: Duration = Duration::from_secs(1);

pub(crate) struct ProviderGate {
    backoff: Backoff,
    faults: FaultTable,
    paused: bool,
    shut_until: Timestamp,
    busy_in_a_row: u32,
    lost_in_a_row: u32,
    /// Thousandths of a retry that may be made.
    retry_credit: u64,
    credited_at: Timestamp,
}

impl ProviderGate {
    pub(crate) fn new(backoff: Backoff, faults: FaultTable) -> Self {
        Self {
            backoff,
            faults,
            paused: false,
            shut_until: Timestamp::ZERO,
            busy_in_a_row: 0,
            lost_in_a_row: 0,
            retry_credit: RETRY_BURST,
            credited_at: Timestamp::ZERO,
        }
    }

    /// Whether one more submit may go out now; if so, it is counted.
    pub(crate) fn pass(&mut self, now: Timestamp, is_retry: bool) -> Gate {
        if self.paused {
            return Gate::ShutUntil(now + PAUSED_LOOK);
        }
        if now < self.shut_until {
            return Gate::ShutUntil(self.shut_until);
        }
        if is_retry && !self.spend_retry(now) {
            return Gate::ShutUntil(now + RETRY_TRICKLE);
        }
        if self.lost_in_a_row >= TRIP_AT {
            self.shut_until = now + PROBE;
        }
        if !is_retry {
            self.retry_credit = (self.retry_credit + RETRY_SHARE).min(RETRY_BURST);
        }
        Gate::Open
    }

    fn spend_retry(&mut self, now: Timestamp) -> bool {
        let earned = now.since(self.credited_at).as_millis() / (RETRY_TRICKLE.as_millis() / 1000);
        let earned = u64::try_from(earned).unwrap_or(u64::MAX);
        if earned > 0 {
            self.credited_at = now;
            self.retry_credit = self.retry_credit.saturating_add(earned).min(RETRY_BURST);
        }
        let left = self.retry_credit.checked_sub(1000);
        self.retry_credit = left.unwrap_or(self.retry_credit);
        left.is_some()
    }

    pub(crate) fn learn(&mut self, outcome: &SubmitOutcome, now: Timestamp, grain: u64) {
        let class = match outcome {
            SubmitOutcome::Accepted { .. } | SubmitOutcome::Answered(_) => {
                (self.busy_in_a_row, self.lost_in_a_row, self.shut_until) = (0, 0, Timestamp::ZERO);
                return;
            }
            SubmitOutcome::Refused(fault) => fault.class,
            SubmitOutcome::Unknown => FaultClass::Unknown,
        };
        let in_a_row = match self.faults.rule(class).provider {
            Reaction::Nothing => {
                self.lost_in_a_row = 0;
                return;
            }
            Reaction::Pause => {
                self.paused = true;
                return;
            }
            Reaction::Slow => &mut self.busy_in_a_row,
            Reaction::Trip => &mut self.lost_in_a_row,
        };
        *in_a_row = in_a_row.saturating_add(1);
        let in_a_row = *in_a_row;
        let over = match self.faults.rule(class).provider {
            Reaction::Slow => in_a_row - 1,
            _ if in_a_row < TRIP_AT => return,
            _ => in_a_row - TRIP_AT,
        };
        self.shut_until = self.shut_until.max(now + self.backoff.pause(over, grain));
    }

    pub(crate) const fn is_paused(&self) -> bool {
        self.paused
    }

    /// A person has mended the account.
    pub(crate) fn release(&mut self) {
        self.paused = false;
        (self.busy_in_a_row, self.lost_in_a_row, self.shut_until) = (0, 0, Timestamp::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_lifecycle::{Fault, Preset};

    fn gate() -> ProviderGate {
        ProviderGate::new(Preset::Default.backoff(), FaultTable::DEFAULT)
    }

    const fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1000)
    }

    fn refused(class: FaultClass) -> SubmitOutcome {
        SubmitOutcome::Refused(Fault::new(class, "CODE"))
    }

    fn accepted() -> SubmitOutcome {
        SubmitOutcome::Accepted { task: "1".into() }
    }

    #[test]
    fn a_busy_provider_slows_every_submit_and_more_so_each_time() {
        let mut gate = gate();
        gate.learn(&refused(FaultClass::Busy), at(0), 1);
        let Gate::ShutUntil(first) = gate.pass(at(0), false) else { panic!("open") };
        gate.learn(&refused(FaultClass::Busy), at(0), 1);
        gate.learn(&refused(FaultClass::Busy), at(0), 1);
        let Gate::ShutUntil(third) = gate.pass(at(0), false) else { panic!("open") };
        assert!(third > first);
        assert_eq!(gate.pass(third, false), Gate::Open);
        gate.learn(&accepted(), third, 1);
        gate.learn(&refused(FaultClass::Busy), third, 1);
        assert_eq!(
            gate.pass(third, false),
            Gate::ShutUntil(third + first.since(at(0))),
            "success starts anew"
        );
    }

    #[test]
    fn an_account_that_is_closed_stops_every_submit_until_a_person_says_so() {
        for class in [FaultClass::Account, FaultClass::Broke] {
            let mut gate = gate();
            gate.learn(&refused(class), at(0), 1);
            assert_ne!(gate.pass(at(100_000), false), Gate::Open);
            gate.learn(&accepted(), at(0), 1);
            assert_ne!(
                gate.pass(at(100_000), false),
                Gate::Open,
                "an earlier submit that was taken proves nothing"
            );
            gate.release();
            assert_eq!(gate.pass(at(100_000), false), Gate::Open);
        }
    }

    #[test]
    fn a_provider_that_stays_unreachable_is_tried_by_one_at_a_time() {
        let mut gate = gate();
        for _ in 0..TRIP_AT - 1 {
            gate.learn(&refused(FaultClass::Unreachable), at(0), 1);
            assert_eq!(gate.pass(at(0), false), Gate::Open);
        }
        gate.learn(&SubmitOutcome::Unknown, at(0), 1);
        let Gate::ShutUntil(then) = gate.pass(at(0), false) else { panic!("open") };
        assert_eq!(gate.pass(then, false), Gate::Open, "one tries");
        assert_eq!(gate.pass(then, false), Gate::ShutUntil(then + PROBE), "the others wait for it");
        gate.learn(&accepted(), then, 1);
        assert_eq!(gate.pass(then, false), Gate::Open);
        assert_eq!(gate.pass(then, false), Gate::Open);
    }

    #[test]
    fn retries_stay_a_set_share_of_submits_during_an_outage() {
        let mut gate = gate();
        let (mut firsts, mut retries) = (0u64, 0u64);
        for n in 0..10_000 {
            let now = at(1 + n / 1000);
            firsts += u64::from(gate.pass(now, false) == Gate::Open);
            retries += u64::from(gate.pass(now, true) == Gate::Open);
        }
        assert_eq!(firsts, 10_000);
        assert!((2000..=2040).contains(&retries), "{retries}");
        assert_eq!(gate.pass(at(100), true), Gate::Open, "a lone order may always try again in time");
    }
}
