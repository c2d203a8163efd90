//! One circuit of the circuit breaker: three states, and a function for each that says what comes next.
//!
//! ```text
//!            enough losses             the pause is over
//!   closed ───────────────→ open ─────────────────────────→ half-open: one submit tries, the others wait
//!     ↑                     ↑  │                                 │  │
//!     │                     └──┼──── it is lost: a longer pause ─┘  │
//!     └────────────────────────┴──── a submit is taken, or replied to ──┘
//! ```

use crate::gate_rules::GateRules;
use quittance_lifecycle::Timestamp;
use std::time::Duration;

/// What a circuit learns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CircuitSign {
    /// A submit that was sent at `sent` was lost. `is_enough`: the losses are enough to open the circuit. `pause` is
    /// the next pause of the backoff.
    Lost { sent: Timestamp, is_enough: bool, pause: Duration },
    /// The provider replied to a submit, or a callback has settled a doubt.
    Replied,
    /// A submit goes out.
    Asked,
    /// The submit that went out at `sent` was not made.
    NotMade { sent: Timestamp },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Submits go out.
    Closed,
    /// No submit goes out before `until`. The outage began at `since`, and `failed` probes have failed.
    Open { until: Timestamp, since: Timestamp, failed: u32 },
    /// The submit that went out at `asked` tries the provider; the others wait for its outcome.
    HalfOpen { asked: Timestamp, since: Timestamp, failed: u32 },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Circuit {
    rules: GateRules,
    /// How long the others wait for the probe at most.
    probe: Duration,
    state: State,
}

impl Circuit {
    pub(crate) const fn new(rules: GateRules, probe: Duration) -> Self {
        Self { rules, probe, state: State::Closed }
    }

    pub(crate) const fn set_probe(&mut self, probe: Duration) {
        self.probe = probe;
    }

    pub(crate) fn note(&mut self, sign: CircuitSign, now: Timestamp) {
        self.state = match self.state {
            State::Closed => self.closed(sign, now),
            State::Open { until, since, failed } => self.open(sign, now, (until, since, failed)),
            State::HalfOpen { asked, since, failed } => self.half_open(sign, now, (asked, since, failed)),
        };
    }

    fn closed(&self, sign: CircuitSign, now: Timestamp) -> State {
        match sign {
            CircuitSign::Lost { is_enough: true, pause, .. } => self.opened(pause, now, now, 0),
            CircuitSign::Lost { .. }
            | CircuitSign::Replied
            | CircuitSign::Asked
            | CircuitSign::NotMade { .. } => State::Closed,
        }
    }

    fn open(
        &self,
        sign: CircuitSign,
        now: Timestamp,
        (until, since, failed): (Timestamp, Timestamp, u32),
    ) -> State {
        match sign {
            CircuitSign::Replied => State::Closed,
            CircuitSign::Asked if now >= until => State::HalfOpen { asked: now, since, failed },
            // The rest of a crowd says nothing new.
            CircuitSign::Asked | CircuitSign::Lost { .. } | CircuitSign::NotMade { .. } => {
                State::Open { until, since, failed }
            }
        }
    }

    fn half_open(
        &self,
        sign: CircuitSign,
        now: Timestamp,
        (asked, since, failed): (Timestamp, Timestamp, u32),
    ) -> State {
        match sign {
            CircuitSign::Replied => State::Closed,
            CircuitSign::Lost { sent, pause, .. } if sent >= since => {
                self.opened(pause, now, since, failed.saturating_add(1))
            }
            CircuitSign::NotMade { sent } if sent == asked => State::Open { until: now, since, failed },
            // The probe hangs, and another one goes out.
            CircuitSign::Asked => State::HalfOpen { asked: now, since, failed },
            CircuitSign::Lost { .. } | CircuitSign::NotMade { .. } => {
                State::HalfOpen { asked, since, failed }
            }
        }
    }

    fn opened(&self, pause: Duration, now: Timestamp, since: Timestamp, failed: u32) -> State {
        State::Open { until: now + (self.rules.open_for)(pause, now.since(since)), since, failed }
    }

    /// Leaves it to another node to try the provider until this moment. A submit of this node that tries it already
    /// goes on.
    pub(crate) fn leave_to_another(&mut self, until: Timestamp) {
        if let State::Open { until: own, .. } = &mut self.state {
            *own = until.max(*own);
        }
    }

    /// Since when the provider has not answered; `None` while it does.
    pub(crate) const fn open_since(&self) -> Option<Timestamp> {
        match self.state {
            State::Closed => None,
            State::Open { since, .. } | State::HalfOpen { since, .. } => Some(since),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// How many probes have failed, for the next pause of the backoff.
    pub(crate) const fn failed(&self) -> u32 {
        match self.state {
            State::Closed => 0,
            State::Open { failed, .. } => failed,
            State::HalfOpen { failed, .. } => failed.saturating_add(1),
        }
    }

    /// Until when no submit goes out.
    pub(crate) fn shut_until(&self) -> Timestamp {
        match self.state {
            State::Closed => Timestamp::ZERO,
            State::Open { until, .. } => until,
            State::HalfOpen { .. } if (self.rules.may_join_probe)() => Timestamp::ZERO,
            State::HalfOpen { asked, .. } => asked + self.probe,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBE: Duration = Duration::from_secs(3);

    const fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1000)
    }

    const fn lost(sent: u64, is_enough: bool) -> CircuitSign {
        CircuitSign::Lost { sent: at(sent), is_enough, pause: Duration::from_secs(2) }
    }

    const fn open(until: u64, failed: u32) -> State {
        State::Open { until: at(until), since: at(1), failed }
    }

    const fn half_open(asked: u64, failed: u32) -> State {
        State::HalfOpen { asked: at(asked), since: at(1), failed }
    }

    /// The chart at the head of this file, as a table: state, sign, moment, next state.
    #[test]
    fn the_circuit_follows_the_chart() {
        use State::Closed;
        let chart = [
            (Closed, lost(0, false), 1, Closed),
            (Closed, lost(0, true), 1, open(3, 0)),
            (Closed, CircuitSign::Asked, 1, Closed),
            (open(3, 0), lost(0, true), 2, open(3, 0)),
            (open(3, 0), CircuitSign::Asked, 3, half_open(3, 0)),
            (open(3, 0), CircuitSign::Replied, 2, Closed),
            (half_open(3, 0), lost(0, true), 4, half_open(3, 0)),
            (half_open(3, 0), lost(3, true), 4, open(6, 1)),
            (half_open(3, 0), CircuitSign::NotMade { sent: at(3) }, 4, open(4, 0)),
            (half_open(3, 0), CircuitSign::Asked, 6, half_open(6, 0)),
            (half_open(3, 0), CircuitSign::Replied, 4, Closed),
        ];
        for (state, sign, moment, next) in chart {
            let mut circuit = Circuit { state, ..Circuit::new(GateRules::REAL, PROBE) };
            circuit.note(sign, at(moment));
            assert_eq!(circuit.state, next, "{state:?}, {sign:?}");
        }
    }

    #[test]
    fn a_closed_circuit_holds_nothing_back_an_open_one_all_and_a_half_open_one_all_but_its_probe() {
        let shut_until = |state| Circuit { state, ..Circuit::new(GateRules::REAL, PROBE) }.shut_until();
        assert_eq!(shut_until(State::Closed), Timestamp::ZERO);
        assert_eq!(shut_until(open(3, 0)), at(3));
        assert_eq!(shut_until(half_open(3, 0)), at(6));
    }
}
