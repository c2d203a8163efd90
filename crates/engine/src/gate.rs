//! Decides whether the provider may be given work now. Each reply changes the pace for all orders: a busy provider
//! gets fewer submits, an unreachable one gets one at a time, and one that has closed the account gets none until an
//! operator releases it.

use crate::Throttle;
use crate::breaker::Breaker;
use crate::spacing::Spacing;
use quittance_lifecycle::{Backoff, Fault, FaultTable, Gate, Reaction, Signal, SubmitOutcome, Timestamp};
use quittance_ports::Penalty;
use std::collections::BTreeMap;
use std::time::Duration;

/// Whether the provider is given work, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderState {
    Ok,
    /// The provider is busy: submits are kept this far apart. If the provider wants a pause, none goes out until the
    /// pause ends.
    Throttled {
        spacing: Duration,
        until: Option<Timestamp>,
    },
    /// The provider does not answer: no submit goes out before `until`, and after that one at a time.
    Tripped {
        until: Timestamp,
    },
    /// No submit goes out until an operator fixes the account.
    Paused {
        fault: Fault,
    },
}

impl ProviderState {
    /// All names that [`name`](Self::name) can return.
    pub const NAMES: [&str; 4] = ["ok", "throttled", "tripped", "paused"];

    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Throttled { .. } => "throttled",
            Self::Tripped { .. } => "tripped",
            Self::Paused { .. } => "paused",
        }
    }
}

/// How long an order waits before it checks again whether an operator has fixed the account.
const PAUSED_LOOK: Duration = Duration::from_secs(10);
/// The weight of one submit in the failing share is 1 in this number: the last few dozen submits decide.
const FAILING_MEMORY: u64 = 16;

pub(crate) struct ProviderGate {
    backoff: Backoff,
    faults: FaultTable,
    throttle: Throttle,
    paused: Option<Fault>,
    spacing: Spacing,
    /// The spacing of each tenant whose submits met a busy provider, if several tenants share it. A code that means
    /// "busy" may be about one tenant's orders, for example a bid that is too low for their kind. So the code slows
    /// that tenant only, until submits of another tenant meet it, too.
    spacing_of: BTreeMap<String, Spacing>,
    is_shared: bool,
    /// Until when the provider wants no submits. A submit that was accepted before does not end this.
    no_submit_until: Timestamp,
    /// Until when the provider wants no polls.
    no_poll_until: Timestamp,
    breaker: Breaker,
    /// The share of each tenant's last submits that failed, in thousandths. While it is below the retry share, the
    /// tenant's retries need no budget. A tenant without an entry has no failures.
    failing: BTreeMap<String, u64>,
    /// The retry credit, in thousandths of a retry.
    retry_credit: u64,
    credited_at: Timestamp,
}

impl ProviderGate {
    pub(crate) fn new(backoff: Backoff, faults: FaultTable, throttle: Throttle, is_shared: bool) -> Self {
        Self {
            backoff,
            faults,
            throttle,
            paused: None,
            spacing: Spacing::new(backoff, throttle),
            spacing_of: BTreeMap::new(),
            is_shared,
            no_submit_until: Timestamp::ZERO,
            no_poll_until: Timestamp::ZERO,
            breaker: Breaker::new(backoff, throttle, is_shared),
            failing: BTreeMap::new(),
            retry_credit: burst(throttle),
            credited_at: Timestamp::ZERO,
        }
    }

    /// Whether another submit of this tenant may go out now. If it may, the submit is counted.
    pub(crate) fn pass(&mut self, tenant: &str, now: Timestamp, is_retry: bool) -> Gate {
        if self.paused.is_some() {
            return Gate::ShutUntil(now + PAUSED_LOOK);
        }
        let own = self.spacing_of.get(tenant).map_or(Timestamp::ZERO, Spacing::shut_until);
        let shut_until = self.shut_until().max(self.breaker.shut_until_for(tenant)).max(own);
        if now < shut_until {
            return Gate::ShutUntil(shut_until);
        }
        let own = self.spacing_of.get_mut(tenant).and_then(|spacing| spacing.stand_in_line(now));
        if let Some(turn) = own.or_else(|| self.spacing.stand_in_line(now)) {
            return Gate::ShutUntil(turn);
        }
        let failing = self.failing.get(tenant).copied().unwrap_or_default();
        if is_retry && failing > u64::from(self.throttle.retry_share) && !self.spend_retry(now) {
            return Gate::ShutUntil(now + self.throttle.retry_trickle);
        }
        self.breaker.passed(tenant, now);
        if !is_retry {
            self.retry_credit =
                (self.retry_credit + u64::from(self.throttle.retry_share)).min(burst(self.throttle));
        }
        self.spacing.passed(now);
        if let Some(spacing) = self.spacing_of.get_mut(tenant) {
            spacing.passed(now);
        }
        Gate::Pass
    }

    /// When the next submit may go out, if submits are kept apart. `None` if they are not, or if none would go out
    /// anyway: then each order asks the gate how long to wait.
    pub(crate) fn next_turn(&self, now: Timestamp) -> Option<Timestamp> {
        let is_shut = self.paused.is_some() || now < self.shut_until().max(self.breaker.shut_until());
        if is_shut { None } else { self.spacing.next_turn(now) }
    }

    fn spend_retry(&mut self, now: Timestamp) -> bool {
        let earned =
            now.since(self.credited_at).as_millis() * 1000 / self.throttle.retry_trickle.as_millis().max(1);
        let earned = u64::try_from(earned).unwrap_or(u64::MAX);
        if earned > 0 {
            self.credited_at = now;
            self.retry_credit = self.retry_credit.saturating_add(earned).min(burst(self.throttle));
        }
        let left = self.retry_credit.checked_sub(1000);
        self.retry_credit = left.unwrap_or(self.retry_credit);
        left.is_some()
    }

    /// Learns from the outcome of a submit of this tenant.
    pub(crate) fn learn(&mut self, outcome: &SubmitOutcome, tenant: &str, now: Timestamp, grain: u64) {
        let signal = match outcome {
            SubmitOutcome::Accepted { .. } | SubmitOutcome::Answered(_) => {
                return self.learn_accepted(tenant, now);
            }
            SubmitOutcome::Rejected(fault) => Signal::Fault(fault.class),
            SubmitOutcome::InDoubt(_) => Signal::InDoubt,
        };
        match self.faults.rule(signal).provider {
            Reaction::Nothing => self.breaker.replied(),
            Reaction::Pause => {
                if let SubmitOutcome::Rejected(fault) = outcome {
                    self.paused = Some(fault.clone());
                }
            }
            Reaction::Slow => {
                if self.met_busy(tenant, now, grain) {
                    self.note_failure(tenant);
                }
            }
            Reaction::Trip => {
                self.note_failure(tenant);
                self.breaker.lost(tenant, now, grain);
            }
        }
    }

    fn learn_accepted(&mut self, tenant: &str, now: Timestamp) {
        // If submits of several tenants met a busy provider, it was about the provider, and it has room again.
        if self.spacing.is_busy() {
            self.spacing_of.clear();
        }
        self.spacing.accepted();
        if let Some(own) = self.spacing_of.get_mut(tenant) {
            own.accepted();
            if !own.is_throttled() {
                self.spacing_of.remove(tenant);
            }
        }
        self.breaker.accepted(tenant, now);
        if let Some(failing) = self.failing.get_mut(tenant) {
            *failing -= failing.div_ceil(FAILING_MEMORY);
            if *failing == 0 {
                self.failing.remove(tenant);
            }
        }
    }

    /// A submit of this tenant met a busy provider. Returns whether that is new information.
    fn met_busy(&mut self, tenant: &str, now: Timestamp, grain: u64) -> bool {
        if !self.is_shared {
            return self.spacing.met_busy(now, grain);
        }
        let backoff = self.backoff;
        let own = self.spacing_of.entry(tenant.to_owned()).or_insert_with(|| Spacing::of_tenant(backoff));
        let is_news = own.met_busy(now, grain);
        let others = self.spacing_of.iter().filter(|(other, _)| *other != tenant);
        if others.into_iter().any(|(_, spacing)| spacing.is_busy()) {
            return self.spacing.met_busy(now, grain) || is_news;
        }
        is_news
    }

    fn note_failure(&mut self, tenant: &str) {
        let failing = self.failing.entry(tenant.to_owned()).or_default();
        *failing += (1000 - *failing) / FAILING_MEMORY;
    }

    /// Until when no submit of any tenant goes out, apart from the circuit breaker.
    fn shut_until(&self) -> Timestamp {
        self.spacing.shut_until().max(self.no_submit_until)
    }

    /// Holds back submits for the pause of the penalty, and polls too if the penalty holds them.
    pub(crate) fn obey(&mut self, penalty: Penalty, now: Timestamp) {
        let until = now + penalty.pause;
        self.no_submit_until = self.no_submit_until.max(until);
        if penalty.holds_polls {
            self.no_poll_until = self.no_poll_until.max(until);
        }
    }

    pub(crate) fn may_poll(&self, now: Timestamp) -> bool {
        now >= self.no_poll_until
    }

    pub(crate) fn state(&self, now: Timestamp) -> ProviderState {
        if let Some(fault) = &self.paused {
            return ProviderState::Paused { fault: fault.clone() };
        }
        if let Some(until) = self.breaker.tripped(now) {
            return ProviderState::Tripped { until: until.max(self.shut_until()) };
        }
        let until = Some(self.shut_until().max(self.breaker.shut_until())).filter(|until| now < *until);
        if until.is_some() || self.spacing.is_throttled() {
            return ProviderState::Throttled { spacing: self.spacing.spacing(), until };
        }
        // What only one tenant has met is the provider's state, if no other tenant's submits are accepted.
        let alone = self.spacing_of.iter().filter(|(tenant, _)| !self.breaker.is_contradicted(tenant, now));
        let slowest = alone.map(|(_, spacing)| spacing).max_by_key(|spacing| spacing.spacing());
        slowest.map_or(ProviderState::Ok, |own| {
            let until = Some(own.shut_until()).filter(|until| now < *until);
            ProviderState::Throttled { spacing: own.spacing(), until }
        })
    }

    pub(crate) fn paused(&self) -> Option<Fault> {
        self.paused.clone()
    }

    /// An operator has fixed the account: submits may go out again.
    pub(crate) fn release(&mut self) {
        self.paused = None;
        self.spacing.reset();
        self.spacing_of.clear();
        self.breaker.reset();
        (self.no_submit_until, self.no_poll_until) = (Timestamp::ZERO, Timestamp::ZERO);
        self.failing.clear();
    }
}

/// The most retries that may go out at once, in thousandths of a retry.
const fn burst(throttle: Throttle) -> u64 {
    throttle.retry_burst as u64 * 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spacing::{LINE_SPAN, SPACING_MIN};
    use quittance_lifecycle::{Evidence, Fault, FaultClass, Preset};

    const ANNA: &str = "anna";

    fn gate() -> ProviderGate {
        ProviderGate::new(Preset::Patient.backoff(), FaultTable::PATIENT, Throttle::DEFAULT, false)
    }

    const fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1000)
    }

    fn refused(class: FaultClass) -> SubmitOutcome {
        SubmitOutcome::Rejected(Fault::new(class, "CODE"))
    }

    fn accepted() -> SubmitOutcome {
        SubmitOutcome::Accepted { task: "1".into() }
    }

    #[test]
    fn a_busy_provider_slows_every_submit_and_more_so_each_time() {
        let mut gate = gate();
        gate.learn(&refused(FaultClass::Busy), ANNA, at(0), 1);
        let Gate::ShutUntil(first) = gate.pass(ANNA, at(0), false) else { panic!("open") };
        gate.learn(&refused(FaultClass::Busy), ANNA, at(0), 1);
        assert_eq!(
            gate.pass(ANNA, at(0), false),
            Gate::ShutUntil(first),
            "the rest of a crowd says nothing new"
        );
        gate.learn(&refused(FaultClass::Busy), ANNA, first, 1);
        let Gate::ShutUntil(third) = gate.pass(ANNA, first, false) else { panic!("open") };
        assert!(third.since(first) > first.since(at(0)));
        assert_eq!(gate.pass(ANNA, third, false), Gate::Pass);
        gate.learn(&accepted(), ANNA, third, 1);
        gate.learn(&refused(FaultClass::Busy), ANNA, third, 1);
        assert_eq!(
            gate.pass(ANNA, third, false),
            Gate::ShutUntil(third + first.since(at(0))),
            "success starts again"
        );
    }

    #[test]
    fn a_crowd_that_was_refused_comes_back_one_by_one_and_faster_with_each_that_is_taken() {
        let mut gate = gate();
        gate.learn(&refused(FaultClass::Busy), ANNA, at(0), 1);
        let Gate::ShutUntil(then) = gate.pass(ANNA, at(0), false) else { panic!("open") };
        assert_eq!(gate.pass(ANNA, then, false), Gate::Pass);
        assert_eq!(gate.pass(ANNA, then, false), Gate::ShutUntil(then + SPACING_MIN), "the next in a moment");
        assert_eq!(gate.pass(ANNA, then, false), Gate::ShutUntil(then + SPACING_MIN * 2));
        for _ in 0..10 {
            gate.learn(&accepted(), ANNA, then, 1);
        }
        let later = then + Duration::from_secs(1);
        assert!((0..5).all(|_| gate.pass(ANNA, later, false) == Gate::Pass), "there is room again, for all");
    }

    #[test]
    fn submits_keep_their_distance_and_each_that_waits_has_a_turn_of_its_own() {
        let submit_interval = Duration::from_millis(100);
        let throttle = Throttle { submit_interval, ..Throttle::DEFAULT };
        let mut gate = ProviderGate::new(Preset::Patient.backoff(), FaultTable::PATIENT, throttle, false);
        assert_eq!(gate.pass(ANNA, at(0), false), Gate::Pass);
        let turns: Vec<_> =
            (1..=50).map(|n| (gate.pass(ANNA, at(0), false), at(0) + submit_interval * n)).collect();
        for (given, turn) in turns {
            assert_eq!(given, Gate::ShutUntil(turn));
            assert_eq!(gate.pass(ANNA, turn, false), Gate::Pass, "and no order is refused twice");
        }
        assert_eq!(gate.pass(ANNA, at(3), false), Gate::Pass);
        assert_eq!(gate.pass(ANNA, at(1), false), Gate::Pass, "a clock that is set back stops no submit");
    }

    #[test]
    fn an_account_that_is_closed_stops_every_submit_until_a_person_says_so() {
        for class in [FaultClass::AccountBlocked, FaultClass::NoFunds] {
            let mut gate = gate();
            gate.learn(&refused(class), ANNA, at(0), 1);
            assert_ne!(gate.pass(ANNA, at(100_000), false), Gate::Pass);
            gate.learn(&accepted(), ANNA, at(0), 1);
            assert_ne!(
                gate.pass(ANNA, at(100_000), false),
                Gate::Pass,
                "an earlier submit that was taken proves nothing"
            );
            gate.release();
            assert_eq!(gate.pass(ANNA, at(100_000), false), Gate::Pass);
        }
    }

    #[test]
    fn a_provider_that_stays_unreachable_is_tried_by_one_at_a_time() {
        let mut gate = gate();
        for _ in 0..Throttle::DEFAULT.trip_at - 1 {
            gate.learn(&refused(FaultClass::Unreachable), ANNA, at(0), 1);
            assert_eq!(gate.pass(ANNA, at(0), false), Gate::Pass);
        }
        gate.learn(&SubmitOutcome::InDoubt(Evidence::default()), ANNA, at(0), 1);
        let Gate::ShutUntil(then) = gate.pass(ANNA, at(0), false) else { panic!("open") };
        assert_eq!(gate.pass(ANNA, then, false), Gate::Pass, "one tries");
        assert_eq!(
            gate.pass(ANNA, then, false),
            Gate::ShutUntil(then + Throttle::DEFAULT.probe),
            "the others wait for it"
        );
        gate.learn(&accepted(), ANNA, then, 1);
        assert_eq!(gate.pass(ANNA, then, false), Gate::Pass);
        assert_eq!(gate.pass(ANNA, then, false), Gate::Pass);
    }

    #[test]
    fn retries_stay_a_set_share_of_submits_during_an_outage() {
        let mut gate = gate();
        let (mut firsts, mut retries) = (0u64, 0u64);
        for n in 0..10_000 {
            let now = at(1 + n / 1000);
            // Every second submit is lost: not so many in a row that the circuit breaker trips.
            gate.learn(
                &if n % 2 == 0 { SubmitOutcome::InDoubt(Evidence::default()) } else { accepted() },
                ANNA,
                now,
                n,
            );
            firsts += u64::from(gate.pass(ANNA, now, false) == Gate::Pass);
            retries += u64::from(gate.pass(ANNA, now, true) == Gate::Pass);
        }
        assert_eq!(firsts, 10_000);
        assert!((2000..=2060).contains(&retries), "{retries}");
        assert_eq!(gate.pass(ANNA, at(100), true), Gate::Pass, "a lone order may always try again in time");
    }

    #[test]
    fn retries_that_lie_in_wait_need_no_budget_when_the_outage_is_over() {
        let mut gate = gate();
        for _ in 0..Throttle::DEFAULT.trip_at - 1 {
            gate.learn(&SubmitOutcome::InDoubt(Evidence::default()), ANNA, at(0), 1);
        }
        let go =
            |gate: &mut ProviderGate| (0..100).filter(|_| gate.pass(ANNA, at(0), true) == Gate::Pass).count();
        assert_eq!(go(&mut gate), Throttle::DEFAULT.retry_burst as usize, "no more than the budget");
        for _ in 0..Throttle::DEFAULT.retry_burst {
            gate.learn(&accepted(), ANNA, at(0), 1);
        }
        assert_eq!(go(&mut gate), 100, "hardly anything fails any more");
    }

    #[test]
    fn a_crowd_that_met_one_refusal_is_not_kept_waiting_when_the_provider_is_free_again() {
        let mut gate = gate();
        gate.learn(&refused(FaultClass::Busy), ANNA, at(0), 1);
        let Gate::ShutUntil(then) = gate.pass(ANNA, at(0), false) else { panic!("open") };
        assert_eq!(gate.pass(ANNA, then, false), Gate::Pass);
        for _ in 0..10_000 {
            let Gate::ShutUntil(turn) = gate.pass(ANNA, then, false) else { panic!("open") };
            assert!(turn <= then + LINE_SPAN, "{turn:?}");
        }
        for _ in 0..10 {
            gate.learn(&accepted(), ANNA, then, 1);
        }
        assert!((0..10_000).all(|_| gate.pass(ANNA, then + LINE_SPAN, false) == Gate::Pass));
    }

    #[test]
    fn busy_replies_to_one_tenant_hold_back_that_tenant_only_and_those_to_two_hold_back_all() {
        let mut gate =
            ProviderGate::new(Preset::Patient.backoff(), FaultTable::PATIENT, Throttle::DEFAULT, true);
        for _ in 0..20 {
            gate.learn(&refused(FaultClass::Busy), ANNA, at(0), 1);
            assert_ne!(gate.pass(ANNA, at(0), false), Gate::Pass);
            assert_eq!(gate.pass("bert", at(0), false), Gate::Pass);
        }
        assert!(
            matches!(gate.state(at(0)), ProviderState::Throttled { .. }),
            "no other says that it is free"
        );
        gate.learn(&accepted(), "bert", at(0), 1);
        assert_eq!(gate.state(at(0)), ProviderState::Ok);
        assert_ne!(
            gate.pass(ANNA, at(0), false),
            Gate::Pass,
            "what bert meets says nothing about anna's orders"
        );
        gate.learn(&refused(FaultClass::Busy), "bert", at(0), 1);
        assert!([ANNA, "bert", "carl"].iter().all(|tenant| gate.pass(tenant, at(0), false) != Gate::Pass));
        gate.learn(&accepted(), "carl", at(1), 1);
        let later = at(1) + SPACING_MIN;
        assert_eq!(gate.pass(ANNA, later, false), Gate::Pass, "the provider has room again");
    }

    #[test]
    fn one_tenants_failures_leave_another_tenants_retries_their_budget() {
        let mut gate =
            ProviderGate::new(Preset::Patient.backoff(), FaultTable::PATIENT, Throttle::DEFAULT, true);
        for _ in 0..100 {
            gate.learn(&SubmitOutcome::InDoubt(Evidence::default()), ANNA, at(0), 1);
        }
        assert_ne!(gate.pass(ANNA, at(0), false), Gate::Pass);
        assert!((0..100).all(|_| gate.pass("bert", at(0), true) == Gate::Pass));
        gate.learn(&accepted(), "bert", at(0), 1);
        assert_eq!(gate.state(at(0)), ProviderState::Ok);
    }
}
