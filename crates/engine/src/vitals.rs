//! What this node has done since it started, and how it is: for the card that it leaves on the store's roster.

use crate::{Engine, lock};
use quittance_lifecycle::{Order, Phase, Timestamp};
use quittance_ports::Vitals;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long ago "a moment ago" may be.
const A_MOMENT: Duration = Duration::from_secs(5);

/// A card is read by all every few seconds: it has no room for whatever a provider says.
const CODE_CHARS_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) placed: AtomicU64,
    pub(crate) joined: AtomicU64,
    pub(crate) attended: AtomicU64,
    pub(crate) submitted: AtomicU64,
    pub(crate) polled: AtomicU64,
    pub(crate) answered: AtomicU64,
    pub(crate) store_errors: AtomicU64,
    pub(crate) unreadable: AtomicU64,
    pub(crate) panics: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn read(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}

impl Engine {
    /// When a person last said here that the provider's account is mended.
    fn released(&self) -> Option<Timestamp> {
        let at = Timestamp::from_millis(Counters::read(&self.released_at));
        (at > Timestamp::ZERO).then_some(at)
    }

    /// An open order was moved on by what came in.
    pub(crate) fn count_answer(&self, order: &Order) {
        if matches!(order.phase, Phase::Solved { .. } | Phase::Taken { .. }) {
            Counters::add(&self.counters.answered, 1);
        }
    }

    #[must_use]
    pub fn vitals(&self) -> Vitals {
        let (in_hand, has_spilled) = {
            let agenda = lock(&self.agenda);
            (agenda.in_hand() as u64, agenda.has_spilled || agenda.unreadable_at.is_some())
        };
        let (counters, paused) = (&self.counters, self.paused());
        Vitals {
            placed: Counters::read(&counters.placed),
            joined: Counters::read(&counters.joined),
            attended: Counters::read(&counters.attended),
            submitted: Counters::read(&counters.submitted),
            polled: Counters::read(&counters.polled),
            answered: Counters::read(&counters.answered),
            in_hand,
            store_errors: Counters::read(&counters.store_errors),
            unreadable: Counters::read(&counters.unreadable),
            panics: Counters::read(&counters.panics),
            released: self.released(),
            is_paused: paused.is_some(),
            pause_code: paused.map(|fault| fault.code.chars().take(CODE_CHARS_MAX).collect()),
            store_was_away: self.store_was_away(A_MOMENT),
            has_spilled,
        }
    }
}
