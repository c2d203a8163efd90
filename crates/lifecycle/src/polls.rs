//! When the task of an order is polled: alone when its poll is due, or earlier, if a poll of other tasks can carry it
//! along.

use crate::order::{Order, Phase, Progress};
use crate::policy::Policy;
use crate::time::Timestamp;
use core::time::Duration;

/// A task that may join a poll of other tasks: see [`Order::early_poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyPoll<'a> {
    pub attempt: u32,
    pub task: &'a str,
    pub from: Timestamp,
    /// When the task is polled in any case.
    pub due: Timestamp,
}

impl Order {
    /// How long an answer that is solved now can be used. After the deadline, no caller waits for it.
    #[must_use]
    pub fn usable_at(&self, now: Timestamp) -> Option<Duration> {
        let left = Some(self.deadline.since(now)).filter(|left| !left.is_zero());
        self.terms.usable().into_iter().chain(left).min()
    }

    /// When the task of this attempt is first polled.
    #[must_use]
    pub fn first_ask_at(&self, number: u32, policy: &Policy) -> Option<Timestamp> {
        let sent = self.attempt(number)?.sent;
        Some(sent + policy.first_ask(self.usable_at(sent)))
    }

    /// The task for which the order waits, and from when it may be polled together with other tasks, before its own
    /// poll is due. `None` after a poll without a reply: then the task keeps its pause.
    #[must_use]
    pub fn early_poll(&self, policy: &Policy) -> Option<EarlyPoll<'_>> {
        let Phase::Solving { attempt: number, poll_at: due, misses: 0 } = self.phase else { return None };
        let attempt = self.attempt(number)?;
        let Progress::Solving { task } = &attempt.progress else { return None };
        // While a callback is not overdue, a poll costs a call and brings nothing.
        let first = match policy.callbacks {
            true => self.first_ask_at(number, policy)?,
            false => attempt.sent + policy.first_poll(),
        };
        let was_polled = attempt.unsolved_at > attempt.sent;
        let next = if was_polled { attempt.unsolved_at + policy.least_interval() } else { first };
        Some(EarlyPoll { attempt: number, task, from: first.max(next), due })
    }
}
