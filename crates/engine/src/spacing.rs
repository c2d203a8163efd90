//! How far apart submits are kept: the usual interval, and more after each busy reply, until submits are accepted again.

use crate::Throttle;
use quittance_lifecycle::{Backoff, Timestamp};
use std::time::Duration;

/// How far apart submits are first kept when the provider is busy.
pub(crate) const SPACING_MIN: Duration = Duration::from_millis(50);
/// How far apart submits are kept at most when the provider is busy.
const SPACING_MAX: Duration = Duration::from_secs(5);
/// How far ahead turns are given. Turns are planned at the pace of a busy provider, and submits go out much faster
/// once the provider is free. An order behind those that have a turn asks again later.
pub(crate) const LINE_SPAN: Duration = Duration::from_secs(10);

pub(crate) struct Spacing {
    backoff: Backoff,
    /// The minimum, which the provider's rules demand.
    interval: Duration,
    /// The present spacing: grows with each rejected submit, and shrinks with each accepted one to the usual
    /// interval.
    spacing: Duration,
    /// When the next submit may go out.
    next_turn: Timestamp,
    /// The turn that the last submit in line got.
    last_in_line: Timestamp,
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
            interval,
            spacing: interval,
            next_turn: Timestamp::ZERO,
            last_in_line: Timestamp::ZERO,
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

    /// The turn of a submit that comes too soon after the last one. Each submit gets a different turn: if all asked
    /// again at the same moment, only one could go out.
    pub(crate) fn stand_in_line(&mut self, now: Timestamp) -> Option<Timestamp> {
        // A clock that was set back must not stop the line until it has caught up.
        if now >= self.next_turn || self.next_turn > now + self.spacing {
            return None;
        }
        let end = self.next_turn.max(now + LINE_SPAN);
        self.last_in_line = (self.last_in_line + self.spacing).clamp(self.next_turn, end);
        Some(self.last_in_line)
    }

    /// Notes that a submit goes out.
    pub(crate) fn passed(&mut self, now: Timestamp) {
        self.next_turn = now + self.spacing;
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
