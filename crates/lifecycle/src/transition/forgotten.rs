//! What happens to an order that the store forgot. A node that remembers the order puts it back, and it continues. An
//! order that no node remembers needs an operator. Attempts of a forgotten record count for the record that replaced
//! it. Nothing here costs money.

use super::{Decision, NextOrder, WhyIgnored};
use crate::order::{Attempt, DeadCause, Phase, Progress};
use crate::policy::Policy;
use crate::time::Timestamp;
use crate::timeline::TimelineEvent;
use alloc::vec::Vec;
use core::time::Duration;

impl NextOrder {
    /// Puts the order back as a node remembers it. Another node may have submitted it since, and puts back later
    /// steps. So this node submits nothing before `others_by`.
    pub(super) fn put_back(mut self, others_by: Timestamp) -> Decision {
        if let Phase::Queued { until, held } = &self.next.phase {
            self.next.phase = Phase::Queued { until: (*until).max(others_by), held: *held };
        }
        self.next.put_back = Some(self.now);
        self.tell(TimelineEvent::PutBack);
        self.done()
    }

    /// Marks the last steps as lost: only an operator may decide to pay again.
    pub(super) fn lost(mut self, policy: &Policy) -> Decision {
        if self.next.steps_lost && matches!(self.next.phase, Phase::Dead { .. }) {
            return Decision::Ignore(WhyIgnored::OldNews);
        }
        self.next.steps_lost = true;
        self.move_to_dead_letters(DeadCause::StoreForgot, policy)
    }

    /// Adds attempts of a forgotten record that may still bring an answer, each once. An order that has not paid yet
    /// waits for them.
    pub(super) fn recalled(mut self, born: Timestamp, attempts: Vec<Attempt>, policy: &Policy) -> Decision {
        let is_waiting = matches!(self.next.phase, Phase::Queued { .. });
        let is_bought = self.next.attempts.iter().any(Attempt::is_own);
        let mut recalled = 0;
        for attempt in attempts {
            let former = Some((born, attempt.number));
            let progress = match &attempt.progress {
                _ if self.next.attempts.iter().any(|known| known.former == former) => continue,
                Progress::Solving { task } | Progress::Trailing { task, .. } => Progress::Trailing {
                    task: task.clone(),
                    poll_at: self.now + policy.usual_interval(),
                    counted: !is_waiting && is_bought,
                },
                Progress::Sent | Progress::GivenUp { .. } if is_waiting => Progress::Sent,
                Progress::Sent | Progress::GivenUp { .. } => Progress::GivenUp { counted: true },
                Progress::Faulted | Progress::Answered | Progress::Surplus { .. } => continue,
            };
            let number = self.next.remember(Attempt { progress, former, ..attempt });
            self.tell(TimelineEvent::Recalled { attempt: number });
            recalled += 1;
        }
        if recalled == 0 {
            return Decision::Ignore(WhyIgnored::OldNews);
        }
        // Both lives are known here, and one of them may have been paid for in vain.
        self.next.put_back = Some(self.now);
        if is_waiting {
            self.wait_for_what_is_paid(Timestamp::ZERO, policy);
            // The event that reported the attempt, such as its callback, must be applied first.
            if let Phase::Queued { until, held } = self.next.phase {
                self.next.phase = Phase::Queued { until: until.max(self.now + policy.submit_wait), held };
            }
        } else if is_bought {
            self.next.possible_doubles += recalled;
            self.counters.possible_doubles = recalled.into();
        }
        self.done()
    }

    /// Resumes a task that is paid for, or waits for an attempt in doubt; otherwise the order stays as it is. `since`
    /// is when that attempt was last given up.
    pub(super) fn wait_for_what_is_paid(&mut self, since: Timestamp, policy: &Policy) {
        if self.resume_paid(policy) {
            return;
        }
        let doubt_wait = if policy.callbacks { policy.doubt_wait() } else { Duration::ZERO };
        let doubtful = self.next.attempts.iter().rev().find(|attempt| attempt.progress == Progress::Sent);
        if let Some(Attempt { number, sent, .. }) = doubtful {
            let until = (*sent + doubt_wait).max(since + policy.submit_wait);
            if self.now < until {
                self.next.phase = Phase::InDoubt { attempt: *number, until };
            }
        }
    }
}
