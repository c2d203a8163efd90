//! Decides whether the provider may be given work now. Each reply changes the pace for all orders: a busy provider
//! gets no more tasks than it takes, an unreachable one gets one submit at a time, and one that has closed the account
//! gets none until an operator releases it. Orders that wait for the gate wait in the run queue, without a write.

use crate::Throttle;
use crate::breaker::Breaker;
use crate::gate_rules::GateRules;
use crate::retry_budget::RetryBudget;
use crate::seats::{SeatId, Seats, SubmitAsk};
use crate::spacing::Spacing;
use crate::submit_pace::SubmitPace;
use quittance_lifecycle::{
    Backoff, Fault, FaultClass, FaultTable, GateReadiness, Order, Reaction, Signal, SubmitOutcome, Timestamp,
    WhyPassedOver,
};
use quittance_ports::{Penalty, ProviderMode, Threads};
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
    /// No submit goes out until the account is fixed, or an operator resumes the provider.
    Paused {
        /// The fault of the account; `None` if an operator has paused the provider.
        fault: Option<Fault>,
    },
    /// The provider finishes the tasks that it has, and gets no more.
    Drained,
}

impl ProviderState {
    /// All names that [`name`](Self::name) can return.
    pub const NAMES: [&str; 5] = ["ok", "throttled", "tripped", "paused", "drained"];

    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Throttled { .. } => "throttled",
            Self::Tripped { .. } => "tripped",
            Self::Paused { .. } => "paused",
            Self::Drained => "drained",
        }
    }
}

/// A fault for which nothing is submitted until the account is fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccountFault {
    pub(crate) fault: Fault,
    pub(crate) at: Timestamp,
}

/// A time in which the provider does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GateOutage {
    pub(crate) since: Timestamp,
    /// When this node will have tried the provider again, if it has an order to try it with.
    pub(crate) tried_by: Timestamp,
}

/// How long an order waits before it checks again whether an operator has fixed the account.
pub(crate) const PAUSED_LOOK: Duration = Duration::from_secs(10);

/// What the gate decides about one submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// The submit may go out now. It has this seat at the provider.
    Pass(SeatId),
    /// Not now: the order waits in the run queue for its turn.
    Wait,
    /// Not before this moment, whatever happens: the order waits in the store.
    ShutUntil(Timestamp),
}

/// One gate stands before one provider account.
pub(crate) struct ProviderGate {
    backoff: Backoff,
    faults: FaultTable,
    rules: GateRules,
    paused: Option<AccountFault>,
    mode: ProviderMode,
    pace: SubmitPace,
    /// The pace of each tenant whose submits met a busy provider, if several tenants share it. A code that means
    /// "busy" may be about one tenant's orders, for example a bid that is too low for their kind. So the code slows
    /// that tenant only, until submits of another tenant meet it, too.
    pace_of: BTreeMap<String, SubmitPace>,
    is_shared: bool,
    /// Until when the provider wants no submits. A submit that was accepted before does not end this.
    no_submit_until: Timestamp,
    /// Until when the provider wants no polls.
    no_poll_until: Timestamp,
    breaker: Breaker,
    /// How long the others wait for one submit that tries the provider.
    probe: Duration,
    retries: RetryBudget,
    seats: Seats,
}

impl ProviderGate {
    pub(crate) fn new(
        rules: GateRules,
        backoff: Backoff,
        faults: FaultTable,
        throttle: Throttle,
        is_shared: bool,
    ) -> Self {
        Self {
            backoff,
            faults,
            rules,
            paused: None,
            mode: ProviderMode::Active,
            pace: SubmitPace::new(backoff, Spacing::new(backoff, throttle), rules),
            pace_of: BTreeMap::new(),
            is_shared,
            no_submit_until: Timestamp::ZERO,
            no_poll_until: Timestamp::ZERO,
            breaker: Breaker::new(rules, backoff, throttle, is_shared),
            probe: throttle.probe,
            retries: RetryBudget::new(rules, throttle),
            seats: Seats::new(rules),
        }
    }

    /// Works by these settings from now on. What it has learned, and who waits for what, stays.
    pub(crate) fn follow(
        &mut self,
        backoff: Backoff,
        faults: FaultTable,
        throttle: Throttle,
        is_shared: bool,
    ) {
        (self.backoff, self.faults, self.is_shared) = (backoff, faults, is_shared);
        self.probe = throttle.probe;
        self.pace.follow(&self.rules, backoff, throttle.submit_interval);
        for pace in self.pace_of.values_mut() {
            pace.follow(&self.rules, backoff, Duration::ZERO);
        }
        self.breaker.follow(self.rules, backoff, throttle, is_shared);
        self.retries.follow(throttle);
    }

    // ---- before a submit -------------------------------------------------------------------------------------

    /// When an order of this tenant should ask the gate. If that is later than `now` and an answer or a reply comes
    /// before, the moment may have changed. `before` submits have been started and have not asked the gate yet.
    pub(crate) fn turn_of(&mut self, tenant: &str, before: usize, now: Timestamp) -> Timestamp {
        if self.is_paused() {
            return now;
        }
        self.seats.look_at_the_time(now);
        let paces = [Some(&self.pace), self.pace_of.get(tenant)];
        let mut turn = self.no_submit_until.max(self.breaker.shut_until_for(tenant)).max(now);
        let mut is_one_by_one = self.breaker.is_probing(tenant);
        let before = u32::try_from(before).unwrap_or(u32::MAX);
        let (mut all, own) = (self.seats.all(), self.seats.of(tenant));
        (all.held, all.asking) = (all.held.saturating_add(before), all.asking.saturating_add(before));
        for (pace, count) in paces.into_iter().flatten().zip([all, own]) {
            turn = turn.max(pace.spacing.shut_until());
            if let Some(next) = pace.spacing.next_turn(now) {
                is_one_by_one = true;
                turn = turn.max(next);
            }
            // While the provider is busy and has nothing of ours, one submit at a time tries it.
            let is_tried = pace.spacing.is_busy() && count.asking > 0;
            if is_tried || pace.limit.room(count, own.asking, now) == 0 {
                turn = turn
                    .max(self.seats.next_change().min(pace.limit.opens_at(now).unwrap_or(Timestamp::MAX)));
            }
        }
        // Whether the one before takes the turn is known when it has asked.
        if is_one_by_one && before > 0 { Timestamp::MAX } else { turn }
    }

    /// Whether a submit of this tenant could go out now. Nothing is counted.
    pub(crate) fn readiness(&mut self, tenant: &str, now: Timestamp) -> GateReadiness {
        let paused = match (self.mode, &self.paused) {
            (ProviderMode::Paused, _) => Some(WhyPassedOver::Paused),
            (ProviderMode::Drained, _) => Some(WhyPassedOver::Drained),
            (ProviderMode::Active, Some(AccountFault { fault, .. })) => Some(match fault.class {
                FaultClass::NoFunds => WhyPassedOver::NoFunds,
                _ => WhyPassedOver::AccountBlocked,
            }),
            (ProviderMode::Active, None) => None,
        };
        if let Some(why) = paused {
            return GateReadiness::Down(now + PAUSED_LOOK, why);
        }
        let tripped_until = self.breaker.shut_until_for(tenant);
        if now < tripped_until {
            return GateReadiness::Down(tripped_until, WhyPassedOver::Tripped);
        }
        let turn = self.turn_of(tenant, 0, now);
        if now < turn { GateReadiness::Busy(turn) } else { GateReadiness::Ready }
    }

    /// Whether this submit may go out now. If it may, it is counted, and has a seat.
    pub(crate) fn pass(&mut self, ask: &SubmitAsk<'_>, now: Timestamp) -> Passage {
        let tenant = ask.tenant;
        if self.is_paused() {
            return Passage::ShutUntil(now + PAUSED_LOOK);
        }
        if self.turn_of(tenant, 0, now) > now {
            return Passage::Wait;
        }
        if ask.is_retry && !self.retries.may_retry(tenant, now) {
            return Passage::ShutUntil(now + self.retries.trickle());
        }
        if !ask.is_retry {
            self.retries.earn();
        }
        self.breaker.passed(tenant, now);
        let (all, own) = (self.seats.all(), self.seats.of(tenant));
        let seat = self.seats.take(ask, now);
        self.pace.spacing.passed(now);
        self.pace.limit.passed(seat.number, all, ask.p99);
        if let Some(pace) = self.pace_of.get_mut(tenant) {
            pace.spacing.passed(now);
            pace.limit.passed(seat.number, own, ask.p99);
        }
        Passage::Pass(seat)
    }

    /// Names the attempt that is submitted from this seat.
    pub(crate) fn begins(&mut self, seat: SeatId, order: &Order, attempt: u32) {
        self.seats.name(seat, order.born, attempt);
    }

    // ---- after a submit --------------------------------------------------------------------------------------

    /// Frees the seat of a submit that was not made, or whose outcome says nothing about the provider. Does nothing if
    /// the gate has learned the outcome.
    pub(crate) fn leave(&mut self, seat: SeatId, tenant: &str, now: Timestamp, was_made: bool) {
        if !self.seats.is_asking(seat) {
            return;
        }
        let sent = self.seats.sent(seat).unwrap_or(now);
        self.seats.remove(seat);
        self.no_probe(seat, tenant, now);
        if !was_made {
            self.pace.spacing.take_back(sent);
            self.breaker.not_made(tenant, sent, now);
        }
    }

    fn no_probe(&mut self, seat: SeatId, tenant: &str, now: Timestamp) {
        self.pace.limit.left(seat.number, now);
        if let Some(own) = self.pace_of.get_mut(tenant) {
            own.limit.left(seat.number, now);
        }
    }

    /// Learns from the outcome of a submit of this tenant.
    pub(crate) fn learn(
        &mut self,
        outcome: &SubmitOutcome,
        seat: SeatId,
        tenant: &str,
        now: Timestamp,
        grain: u64,
    ) {
        let sent = self.seats.sent(seat).unwrap_or(now);
        let is_settled = self.seats.is_settled(seat);
        match outcome {
            SubmitOutcome::Accepted { .. } if !is_settled => {
                self.seats.keep(seat, false);
                return self.learn_accepted(seat, tenant, now);
            }
            // A callback has brought the answer while the submit still waited for its reply.
            SubmitOutcome::InDoubt(_) if !is_settled => self.seats.keep(seat, true),
            SubmitOutcome::Accepted { .. } | SubmitOutcome::Answered(_) | SubmitOutcome::InDoubt(_) => {
                self.seats.remove(seat);
                return self.learn_accepted(seat, tenant, now);
            }
            SubmitOutcome::Rejected(_) => self.seats.remove(seat),
        }
        let signal = match outcome {
            SubmitOutcome::Rejected(fault) => Signal::Fault(fault.class),
            _ => Signal::InDoubt,
        };
        let reaction = self.faults.rule(signal).provider;
        if reaction != Reaction::Slow {
            self.no_probe(seat, tenant, now);
        }
        match reaction {
            Reaction::Nothing => self.breaker.replied(tenant, now),
            Reaction::Pause => {
                if let SubmitOutcome::Rejected(fault) = outcome {
                    self.paused = Some(AccountFault { fault: fault.clone(), at: now });
                }
            }
            Reaction::Slow => {
                self.breaker.replied(tenant, now);
                if self.met_busy((seat.number, sent), tenant, now, grain) {
                    self.retries.failed(tenant);
                }
            }
            Reaction::Trip => {
                self.retries.failed(tenant);
                self.breaker.lost(tenant, sent, now, grain);
            }
        }
    }

    fn learn_accepted(&mut self, seat: SeatId, tenant: &str, now: Timestamp) {
        let (all, own) = (self.seats.all(), self.seats.of(tenant));
        // If submits of several tenants met a busy provider, it was about the provider, and it has room again.
        if self.pace.spacing.is_busy() {
            self.pace_of.clear();
        }
        self.pace.accepted(seat.number, all, now);
        if let Some(pace) = self.pace_of.get_mut(tenant) {
            pace.accepted(seat.number, own, now);
            if pace.is_usual() {
                self.pace_of.remove(tenant);
            }
        }
        self.settled(tenant, now);
    }

    /// The provider has taken a submit of this tenant: it has replied so, or a callback has settled a doubt.
    pub(crate) fn settled(&mut self, tenant: &str, now: Timestamp) {
        self.breaker.accepted(tenant, now);
        self.retries.succeeded(tenant);
    }

    /// A submit of this tenant met a busy provider. Returns whether that is new information.
    fn met_busy(&mut self, submit: (u64, Timestamp), tenant: &str, now: Timestamp, grain: u64) -> bool {
        let (all, own) = (self.seats.all(), self.seats.of(tenant));
        if !self.is_shared {
            return self.pace.met_busy(submit, all, now, grain);
        }
        let (backoff, rules) = (self.backoff, self.rules);
        let new = || SubmitPace::new(backoff, Spacing::of_tenant(backoff), rules);
        let is_news =
            self.pace_of.entry(tenant.to_owned()).or_insert_with(new).met_busy(submit, own, now, grain);
        let mut others = self.pace_of.iter().filter(|(other, _)| *other != tenant);
        if others.any(|(other, pace)| pace.is_busy(self.seats.of(other))) {
            let is_news = self.pace.met_busy(submit, all, now, grain) || is_news;
            // What the account takes is known now, and tenants take turns at it.
            if self.pace.limit.learned().is_some() {
                self.pace_of.clear();
            }
            return is_news;
        }
        is_news
    }

    /// Learns from a record what has become of its attempts. Returns whether a seat is free that was not.
    pub(crate) fn see(&mut self, order: &Order, now: Timestamp) -> bool {
        let freed = self.seats.see(order);
        for seat in &freed {
            self.pace.limit.answered();
            if let Some(pace) = self.pace_of.get_mut(&seat.tenant) {
                pace.limit.answered();
            }
            if seat.is_settled {
                self.settled(&seat.tenant, now);
            }
        }
        !freed.is_empty()
    }

    // ---- what others report ----------------------------------------------------------------------------------

    /// Sets how many nodes work on the account: together they keep the provider's pace.
    pub(crate) fn set_nodes(&mut self, nodes: u32) {
        self.pace.spacing.set_nodes(&self.rules, nodes);
    }

    /// Sets the threads of the account, if the provider sells threads. How many of them are busy is as old as the
    /// read, and is learned better from the replies.
    pub(crate) fn set_threads(&mut self, threads: Option<Threads>) {
        self.pace.limit.set_bound(threads.map(|threads| threads.total));
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

    // ---- what people see and do ------------------------------------------------------------------------------

    /// Until when no submit of any tenant goes out, apart from the circuit breaker.
    fn shut_until(&self) -> Timestamp {
        self.pace.spacing.shut_until().max(self.no_submit_until)
    }

    pub(crate) fn state(&self, now: Timestamp) -> ProviderState {
        match (self.mode, &self.paused) {
            (ProviderMode::Drained, _) => return ProviderState::Drained,
            (_, Some(AccountFault { fault, .. })) => {
                return ProviderState::Paused { fault: Some(fault.clone()) };
            }
            (ProviderMode::Paused, None) => return ProviderState::Paused { fault: None },
            (ProviderMode::Active, None) => {}
        }
        if let Some(until) = self.breaker.tripped(now) {
            return ProviderState::Tripped { until: until.max(self.shut_until()) };
        }
        let until = Some(self.shut_until().max(self.breaker.shut_until())).filter(|until| now < *until);
        if until.is_some() || self.pace.spacing.is_throttled() {
            return ProviderState::Throttled { spacing: self.pace.spacing.spacing(), until };
        }
        // What only one tenant has met is the provider's state, if no other tenant's submits are accepted.
        let is_slow = |pace: &SubmitPace| pace.spacing.is_throttled();
        let alone = self.pace_of.iter().filter(|(tenant, _)| !self.breaker.is_contradicted(tenant, now));
        let slow = alone.map(|(_, pace)| pace).filter(|pace| is_slow(pace));
        let slowest = slow.map(|pace| &pace.spacing).max_by_key(|spacing| spacing.spacing());
        slowest.map_or(ProviderState::Ok, |own| {
            let until = Some(own.shut_until()).filter(|until| now < *until);
            ProviderState::Throttled { spacing: own.spacing(), until }
        })
    }

    /// The fault of the account, and when this node got it.
    pub(crate) fn account_fault(&self) -> Option<AccountFault> {
        self.paused.clone()
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.is_some() || self.mode != ProviderMode::Active
    }

    /// Another node has met this fault of the account.
    pub(crate) fn pause(&mut self, fault: AccountFault) {
        self.paused.get_or_insert(fault);
    }

    pub(crate) const fn set_mode(&mut self, mode: ProviderMode) {
        self.mode = mode;
    }

    /// Until when the provider wants no submits and no polls.
    pub(crate) const fn penalties(&self) -> (Timestamp, Timestamp) {
        (self.no_submit_until, self.no_poll_until)
    }

    /// Holds back submits and polls until these moments, as another node has learned.
    pub(crate) fn obey_until(&mut self, no_submits_until: Timestamp, no_polls_until: Timestamp) {
        self.no_submit_until = self.no_submit_until.max(no_submits_until);
        self.no_poll_until = self.no_poll_until.max(no_polls_until);
    }

    /// The provider does not answer: since when, and until when this node will have tried it again.
    pub(crate) fn outage(&self) -> Option<GateOutage> {
        let since = self.breaker.circuit().open_since()?;
        Some(GateOutage { since, tried_by: self.breaker.shut_until() + self.probe })
    }

    /// Another node tries the provider until this moment.
    pub(crate) fn leave_probe_to_another(&mut self, until: Timestamp) {
        if !(self.rules.may_probe_beside)() {
            self.breaker.leave_to_another(until);
        }
    }

    /// The provider has answered another node: the outage is over.
    pub(crate) fn answers_again(&mut self) {
        self.breaker.reset();
    }

    /// An operator has fixed the account: submits may go out again.
    pub(crate) fn release(&mut self) {
        self.paused = None;
        self.pace.spacing.reset();
        self.pace.limit.restart();
        self.pace_of.clear();
        self.breaker.reset();
        (self.no_submit_until, self.no_poll_until) = (Timestamp::ZERO, Timestamp::ZERO);
        self.retries.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spacing::SPACING_MIN;
    use quittance_lifecycle::{Evidence, FaultClass, Key, Preset};

    const ANNA: &str = "anna";

    /// What a submit gets at the gate.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Gate {
        Pass,
        ShutUntil(Timestamp),
    }

    fn gate() -> ProviderGate {
        ProviderGate::new(
            GateRules::REAL,
            Preset::Patient.backoff(),
            FaultTable::PATIENT,
            Throttle::DEFAULT,
            false,
        )
    }

    /// A gate before a provider that several tenants share.
    fn shared() -> ProviderGate {
        let (rules, backoff) = (GateRules::REAL, Preset::Patient.backoff());
        ProviderGate::new(rules, backoff, FaultTable::PATIENT, Throttle::DEFAULT, true)
    }

    impl ProviderGate {
        /// Lets a submit of this tenant go out, if it may, with its seat.
        fn let_out(&mut self, tenant: &str, now: Timestamp, is_retry: bool) -> Result<SeatId, Timestamp> {
            let (p99, deadline) = (Duration::from_secs(100), now + Duration::from_secs(300));
            let ask = SubmitAsk { key: Key([7; 32]), tenant, is_retry, p99, deadline };
            match self.pass(&ask, now) {
                Passage::Pass(seat) => Ok(seat),
                Passage::Wait => Err(self.turn_of(tenant, 0, now)),
                Passage::ShutUntil(until) => Err(until),
            }
        }

        /// Whether a submit of this tenant may go out. If it may, its seat is free at once.
        fn ask(&mut self, tenant: &str, now: Timestamp, is_retry: bool) -> Gate {
            match self.let_out(tenant, now, is_retry) {
                Ok(seat) => {
                    self.leave(seat, tenant, now, true);
                    Gate::Pass
                }
                Err(until) => Gate::ShutUntil(until),
            }
        }

        /// Learns the outcome of a submit of this tenant, of which the gate knows nothing else.
        fn learn_of(&mut self, outcome: &SubmitOutcome, tenant: &str, now: Timestamp, grain: u64) {
            let (p99, deadline) = (Duration::ZERO, now);
            let ask = SubmitAsk { key: Key([8; 32]), tenant, is_retry: false, p99, deadline };
            let seat = self.seats.take(&ask, now);
            self.learn(outcome, seat, tenant, now, grain);
            self.seats.remove(seat);
        }
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
        gate.learn_of(&refused(FaultClass::Busy), ANNA, at(0), 1);
        let Gate::ShutUntil(first) = gate.ask(ANNA, at(0), false) else { panic!("open") };
        gate.learn_of(&refused(FaultClass::Busy), ANNA, at(0), 1);
        assert_eq!(
            gate.ask(ANNA, at(0), false),
            Gate::ShutUntil(first),
            "the rest of a crowd says nothing new"
        );
        gate.learn_of(&refused(FaultClass::Busy), ANNA, first, 1);
        let Gate::ShutUntil(third) = gate.ask(ANNA, first, false) else { panic!("open") };
        assert!(third.since(first) > first.since(at(0)));
        assert_eq!(gate.ask(ANNA, third, false), Gate::Pass);
        gate.learn_of(&accepted(), ANNA, third, 1);
        gate.learn_of(&refused(FaultClass::Busy), ANNA, third, 1);
        assert_eq!(
            gate.ask(ANNA, third, false),
            Gate::ShutUntil(third + first.since(at(0))),
            "success starts again"
        );
    }

    #[test]
    fn a_crowd_that_was_refused_comes_back_one_by_one_and_faster_with_each_that_is_taken() {
        let mut gate = gate();
        gate.learn_of(&refused(FaultClass::Busy), ANNA, at(0), 1);
        let Gate::ShutUntil(then) = gate.ask(ANNA, at(0), false) else { panic!("open") };
        assert_eq!(gate.ask(ANNA, then, false), Gate::Pass);
        assert_eq!(gate.ask(ANNA, then, false), Gate::ShutUntil(then + SPACING_MIN), "the next in a moment");
        for _ in 0..10 {
            gate.learn_of(&accepted(), ANNA, then, 1);
        }
        let later = then + Duration::from_secs(1);
        assert!((0..5).all(|_| gate.ask(ANNA, later, false) == Gate::Pass), "there is room again, for all");
    }

    #[test]
    fn submits_keep_their_distance() {
        let submit_interval = Duration::from_millis(100);
        let throttle = Throttle { submit_interval, ..Throttle::DEFAULT };
        let mut gate = ProviderGate::new(
            GateRules::REAL,
            Preset::Patient.backoff(),
            FaultTable::PATIENT,
            throttle,
            false,
        );
        assert_eq!(gate.ask(ANNA, at(0), false), Gate::Pass);
        for n in 1..=50 {
            let turn = at(0) + submit_interval * n;
            assert_eq!(gate.ask(ANNA, turn - submit_interval / 2, false), Gate::ShutUntil(turn));
            assert_eq!(gate.turn_of(ANNA, 1, turn), Timestamp::MAX, "one asks at a time");
            assert_eq!(gate.ask(ANNA, turn, false), Gate::Pass);
        }
        assert_eq!(gate.ask(ANNA, at(3), false), Gate::Pass);
        assert_eq!(gate.ask(ANNA, at(1), false), Gate::Pass, "a clock that is set back stops no submit");
    }

    #[test]
    fn an_account_that_is_closed_stops_every_submit_until_a_person_says_so() {
        for class in [FaultClass::AccountBlocked, FaultClass::NoFunds] {
            let mut gate = gate();
            gate.learn_of(&refused(class), ANNA, at(0), 1);
            assert_ne!(gate.ask(ANNA, at(100_000), false), Gate::Pass);
            gate.learn_of(&accepted(), ANNA, at(0), 1);
            assert_ne!(
                gate.ask(ANNA, at(100_000), false),
                Gate::Pass,
                "an earlier submit that was taken proves nothing"
            );
            gate.release();
            assert_eq!(gate.ask(ANNA, at(100_000), false), Gate::Pass);
        }
    }

    #[test]
    fn a_provider_that_stays_unreachable_is_tried_by_one_at_a_time() {
        let mut gate = gate();
        for _ in 0..Throttle::DEFAULT.trip_at - 1 {
            gate.learn_of(&refused(FaultClass::Unreachable), ANNA, at(0), 1);
            assert_eq!(gate.ask(ANNA, at(0), false), Gate::Pass);
        }
        gate.learn_of(&SubmitOutcome::InDoubt(Evidence::default()), ANNA, at(0), 1);
        let Gate::ShutUntil(then) = gate.ask(ANNA, at(0), false) else { panic!("open") };
        assert_eq!(gate.ask(ANNA, then, false), Gate::Pass, "one tries");
        assert_eq!(
            gate.ask(ANNA, then, false),
            Gate::ShutUntil(then + Throttle::DEFAULT.probe),
            "the others wait for it"
        );
        gate.learn_of(&accepted(), ANNA, then, 1);
        assert_eq!(gate.ask(ANNA, then, false), Gate::Pass);
        assert_eq!(gate.ask(ANNA, then, false), Gate::Pass);
    }

    #[test]
    fn retries_stay_a_set_share_of_submits_during_an_outage() {
        let mut gate = gate();
        let (mut firsts, mut retries) = (0u64, 0u64);
        for n in 0..10_000 {
            let now = at(1 + n / 1000);
            // Every second submit is lost: not so many in a row that the circuit breaker trips.
            gate.learn_of(
                &if n % 2 == 0 { SubmitOutcome::InDoubt(Evidence::default()) } else { accepted() },
                ANNA,
                now,
                n,
            );
            firsts += u64::from(gate.ask(ANNA, now, false) == Gate::Pass);
            retries += u64::from(gate.ask(ANNA, now, true) == Gate::Pass);
        }
        assert_eq!(firsts, 10_000);
        assert!((2000..=2060).contains(&retries), "{retries}");
        assert_eq!(gate.ask(ANNA, at(100), true), Gate::Pass, "a lone order may always try again in time");
    }

    #[test]
    fn retries_that_lie_in_wait_need_no_budget_when_the_outage_is_over() {
        let mut gate = gate();
        for _ in 0..Throttle::DEFAULT.trip_at - 1 {
            gate.learn_of(&SubmitOutcome::InDoubt(Evidence::default()), ANNA, at(0), 1);
        }
        let go =
            |gate: &mut ProviderGate| (0..100).filter(|_| gate.ask(ANNA, at(0), true) == Gate::Pass).count();
        assert_eq!(go(&mut gate), Throttle::DEFAULT.retry_burst as usize, "no more than the budget");
        for _ in 0..Throttle::DEFAULT.retry_burst {
            gate.learn_of(&accepted(), ANNA, at(0), 1);
        }
        assert_eq!(go(&mut gate), 100, "hardly anything fails any more");
    }

    #[test]
    fn busy_replies_to_one_tenant_hold_back_that_tenant_only_and_those_to_two_hold_back_all() {
        let mut gate = shared();
        for _ in 0..20 {
            gate.learn_of(&refused(FaultClass::Busy), ANNA, at(0), 1);
            assert_ne!(gate.ask(ANNA, at(0), false), Gate::Pass);
            assert_eq!(gate.ask("bert", at(0), false), Gate::Pass);
        }
        assert!(
            matches!(gate.state(at(0)), ProviderState::Throttled { .. }),
            "no other says that it is free"
        );
        gate.learn_of(&accepted(), "bert", at(0), 1);
        assert_eq!(gate.state(at(0)), ProviderState::Ok);
        assert_ne!(
            gate.ask(ANNA, at(0), false),
            Gate::Pass,
            "what bert meets says nothing about anna's orders"
        );
        gate.learn_of(&refused(FaultClass::Busy), "bert", at(0), 1);
        assert!([ANNA, "bert", "carl"].iter().all(|tenant| gate.ask(tenant, at(0), false) != Gate::Pass));
        gate.learn_of(&accepted(), "carl", at(1), 1);
        let later = at(1) + SPACING_MIN;
        assert_eq!(gate.ask(ANNA, later, false), Gate::Pass, "the provider has room again");
    }

    #[test]
    fn one_tenants_failures_leave_another_tenants_retries_their_budget() {
        let mut gate = shared();
        for _ in 0..100 {
            gate.learn_of(&SubmitOutcome::InDoubt(Evidence::default()), ANNA, at(0), 1);
        }
        assert_ne!(gate.ask(ANNA, at(0), false), Gate::Pass);
        assert!((0..100).all(|_| gate.ask("bert", at(0), true) == Gate::Pass));
        gate.learn_of(&accepted(), "bert", at(0), 1);
        assert_eq!(gate.state(at(0)), ProviderState::Ok);
    }

    /// Six tasks are at the provider, and the seventh submit met "no slot".
    fn full() -> (ProviderGate, Vec<SeatId>) {
        let mut gate = gate();
        let seats = (0..6).map(|_| {
            let seat = gate.let_out(ANNA, at(0), false).expect("the provider has room");
            gate.learn(&accepted(), seat, ANNA, at(0), 1);
            seat
        });
        let seats = seats.collect();
        let seventh = gate.let_out(ANNA, at(0), false).expect("it is not known to be full");
        gate.learn(&refused(FaultClass::Busy), seventh, ANNA, at(1), 1);
        (gate, seats)
    }

    #[test]
    fn a_full_provider_gets_no_submit_until_an_answer_comes_and_then_one_at_once() {
        let (mut gate, seats) = full();
        assert!(gate.let_out(ANNA, at(2), false).is_err());
        gate.seats.remove(seats[0]);
        assert!(gate.let_out(ANNA, at(2), false).is_ok(), "at once, and not after a pause");
        assert!(gate.let_out(ANNA, at(2), false).is_err());
        assert_eq!(gate.state(at(2)), ProviderState::Ok, "a full provider is not a throttled one");
    }

    #[test]
    fn an_order_that_asks_in_vain_takes_no_seat_and_no_turn() {
        let (mut gate, seats) = full();
        gate.seats.remove(seats[0]);
        let seat = gate.let_out(ANNA, at(2), false).expect("a seat is free");
        gate.leave(seat, ANNA, at(2), false);
        assert!(gate.let_out(ANNA, at(2), false).is_ok());
        gate.leave(seats[1], ANNA, at(2), false);
        assert_eq!(gate.seats.all().held, 6, "the seat of a task is not the submit's to give back");
    }

    #[test]
    fn a_reply_in_doubt_whose_callback_came_first_is_no_loss() {
        let mut gate = gate();
        for _ in 0..Throttle::DEFAULT.trip_at * 2 {
            let seat = gate.let_out(ANNA, at(0), false).expect("the provider answers");
            gate.learn(&SubmitOutcome::InDoubt(Evidence::default()), seat, ANNA, at(0), 1);
            gate.settled(ANNA, at(0));
        }
        assert_eq!(gate.state(at(0)), ProviderState::Ok);
    }
}
