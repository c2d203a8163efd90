//! How far apart submits are kept: the usual interval, and more after each busy reply, until submits are accepted again.

use crate::Throttle;
use crate::gate_rules::GateRules;
use quittance_lifecycle::{Backoff, Timestamp};
use std::time::Duration;

/// How far apart submits are first kept when the provider is busy.
pub(crate) const SPACING_MIN: Duration = Duration::from_millis(50);
/// How far apart submits are kept at most when the provider is busy.
const SPACING_MAX: Duration = Duration::from_secs(5);
pub(crate) struct Spacing {
    backoff: Backoff,
    /// The minimum, which the provider's rules demand of one node that works alone.
    own_interval: Duration,
    /// How many nodes work on the account.
    nodes: u32,
    /// The minimum for this node among all nodes that work on the account.
    interval: Duration,
    /// The present spacing: grows with each rejected submit, and shrinks with each accepted one to the usual
    /// interval.
    spacing: Duration,
    /// When the next submit may go out.
    next_turn: Timestamp,
    /// When a submit last went out, and the turn before it.
    last_passed: Option<(Timestamp, Timestamp)>,
    shut_until: Timestamp,
    busy_in_a_row: u32,
}

impl Spacing {
    pub(crate) const fn new(backoff: Backoff, throttle: Throttle) -> Self {
        Self::with_interval(backoff, throttle.submit_interval)
    }

    /// The spacing for one tenant, in addition to the spacing for all. It is zero until a submit is rejected.
    pub(crate) const fn of_tenant(backoff: Backoff) -> Self {
        Self::with_interval(backoff, Duration::ZERO)
    }

    const fn with_interval(backoff: Backoff, interval: Duration) -> Self {
        Self {
            backoff,
            own_interval: interval,
            nodes: 1,
            interval,
            spacing: interval,
            next_turn: Timestamp::ZERO,
            last_passed: None,
            shut_until: Timestamp::ZERO,
            busy_in_a_row: 0,
        }
    }

    pub(crate) const fn spacing(&self) -> Duration {
        self.spacing
    }

    pub(crate) const fn shut_until(&self) -> Timestamp {
        self.shut_until
    }

    pub(crate) const fn is_busy(&self) -> bool {
        self.busy_in_a_row > 0
    }

    pub(crate) fn is_throttled(&self) -> bool {
        self.spacing > self.interval
    }

    /// When the next submit may go out, if submits are kept apart; `None` if they are not.
    pub(crate) fn next_turn(&self, now: Timestamp) -> Option<Timestamp> {
        // A clock that was set back must not stop the queue until it has caught up.
        let is_ahead = self.next_turn > now + self.spacing;
        (!self.spacing.is_zero() && !is_ahead).then(|| self.next_turn.max(now))
    }

    /// Sets how many nodes work on the account: each keeps its submits as many times as far apart.
    pub(crate) fn set_nodes(&mut self, rules: &GateRules, nodes: u32) {
        let is_usual = self.spacing == self.interval;
        self.nodes = nodes;
        self.interval = (rules.interval)(self.own_interval, nodes);
        self.spacing = if is_usual { self.interval } else { self.spacing.max(self.interval) };
    }

    /// Keeps submits apart by these settings from now on.
    pub(crate) fn follow(&mut self, rules: &GateRules, backoff: Backoff, interval: Duration) {
        (self.backoff, self.own_interval) = (backoff, interval);
        self.set_nodes(rules, self.nodes);
    }

    /// Notes that a submit goes out.
    pub(crate) fn passed(&mut self, now: Timestamp) {
        self.last_passed = Some((now, self.next_turn));
        self.next_turn = now + self.spacing;
    }

    /// The submit that went out at `sent` was not made: its turn goes to another one.
    pub(crate) fn take_back(&mut self, sent: Timestamp) {
        if let Some((_, turn)) = self.last_passed.take_if(|(passed, _)| *passed == sent) {
            self.next_turn = turn;
        }
    }

    /// A submit met a busy provider. Returns whether that is new information. If several submits went out too soon
    /// together, only the first rejection is new.
    pub(crate) fn met_busy(&mut self, now: Timestamp, grain: u64) -> bool {
        if self.is_busy() && now < self.shut_until {
            return false;
        }
        let slower = (self.spacing * 2).clamp(SPACING_MIN, self.backoff.cap.clamp(SPACING_MIN, SPACING_MAX));
        self.spacing = slower.max(self.interval);
        let pause = self.backoff.pause(self.busy_in_a_row, grain);
        self.busy_in_a_row = self.busy_in_a_row.saturating_add(1);
        self.shut_until = self.shut_until.max(now + pause);
        true
    }

    pub(crate) fn accepted(&mut self) {
        (self.busy_in_a_row, self.shut_until) = (0, Timestamp::ZERO);
        self.spacing = self.spacing * 3 / 4;
        if self.spacing < SPACING_MIN / 2 {
            self.spacing = Duration::ZERO;
        }
        self.spacing = self.spacing.max(self.interval);
    }

    pub(crate) fn reset(&mut self) {
        self.spacing = self.interval;
        (self.busy_in_a_row, self.shut_until) = (0, Timestamp::ZERO);
    }
}
