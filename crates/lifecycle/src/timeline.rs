//! What happened to an order, step by step, for an operator. The timeline is bounded: the beginning and the end are
//! kept, and the entries left out between them are counted.

use crate::account::provider_of;
use crate::event::Via;
use crate::fault::{Evidence, Fault, Signal};
use crate::key::Key;
use crate::order::DeadCause;
use crate::priority::Priority;
use crate::routing::PassedOver;
use crate::time::Timestamp;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The longest note that an operator may add.
pub const NOTE_BYTES_MAX: usize = 1000;

/// How many entries are kept: enough for a dead letter that was replayed many times. A third of them are from the
/// beginning.
pub const TIMELINE_ENTRIES_MAX: usize = 256;
/// How many entries are kept from before the left-out ones.
pub const TIMELINE_BEGINNING: usize = TIMELINE_ENTRIES_MAX / 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimelineEvent {
    Placed {
        life: u32,
    },
    Rejoined,
    /// A placement that joined made the order more urgent.
    Hastened {
        priority: Priority,
    },
    Deferred {
        until: Timestamp,
    },
    /// The attempt does not go to the provider that comes first by the operator's rule.
    Routed {
        attempt: u32,
        to: String,
        passed_over: Vec<PassedOver>,
    },
    Submitted {
        attempt: u32,
    },
    Accepted {
        attempt: u32,
        task: String,
    },
    InDoubt {
        attempt: u32,
        until: Timestamp,
    },
    GaveUp {
        attempt: u32,
    },
    /// The task takes long, and the order is urgent: it is also bought at another provider.
    Hedged {
        attempt: u32,
    },
    Faulted {
        attempt: u32,
        fault: Fault,
    },
    /// What was observed of a submit before its attempt was in doubt.
    LeftInDoubt {
        attempt: u32,
        evidence: Evidence,
    },
    Retried {
        class: Signal,
        number: u8,
        at: Timestamp,
    },
    Held,
    Released,
    Solved {
        attempt: u32,
        via: Via,
    },
    CameLate {
        attempt: u32,
    },
    TooOld {
        attempt: u32,
    },
    Stocked {
        attempt: u32,
    },
    Claimed,
    /// The order got the answer of another order from stock.
    ServedFromStock {
        from: Key,
    },
    Returned,
    /// The order that got the answer from stock.
    HandedOver {
        to: Key,
    },
    Expired,
    Failed,
    MovedToDeadLetters {
        cause: DeadCause,
    },
    Cancelled,
    Replayed,
    /// An outage of this provider was over, and the order was replayed without a person.
    ReplayedAfterOutage {
        provider: String,
    },
    Dropped,
    Reported {
        attempt: u32,
        is_good: bool,
    },
    /// An operator's note.
    Noted {
        text: String,
    },
    WebhookDelivered {
        webhook: u32,
    },
    WebhookFailed {
        webhook: u32,
        why: String,
    },
    /// The store forgot the order, and a node put it back.
    PutBack,
    /// An attempt of an earlier record of this order, which the store forgot.
    Recalled {
        attempt: u32,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineEntry {
    pub at: Timestamp,
    pub event: TimelineEvent,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    pub entries: Vec<TimelineEntry>,
    /// How many entries are missing between the beginning and the end.
    pub left_out: u32,
}

impl Timeline {
    pub fn tell(&mut self, at: Timestamp, event: TimelineEvent) {
        // Many checks of a shut gate, one after another, are one wait, and need one entry.
        if let (
            TimelineEvent::Deferred { until: later },
            Some(TimelineEntry { event: TimelineEvent::Deferred { until }, .. }),
        ) = (&event, self.entries.last_mut())
        {
            *until = *later;
            return;
        }
        if self.entries.len() >= TIMELINE_ENTRIES_MAX {
            // An operator's notes are removed last: no other place has them.
            let is_ours = |entry: &TimelineEntry| !matches!(entry.event, TimelineEvent::Noted { .. });
            let oldest = self.entries[TIMELINE_BEGINNING..].iter().position(is_ours).unwrap_or(0);
            self.entries.remove(TIMELINE_BEGINNING + oldest);
            self.left_out = self.left_out.saturating_add(1);
        }
        self.entries.push(TimelineEntry { at, event });
    }
}

/// Writes the entry in words. Future moments are written relative to the entry's own.
impl fmt::Display for TimelineEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.event {
            TimelineEvent::Placed { life: 1 } => f.write_str("placed"),
            TimelineEvent::Placed { life } => write!(f, "placed again, life {life}"),
            TimelineEvent::Rejoined => f.write_str("joined, with a later deadline or after a cancel"),
            TimelineEvent::Hastened { priority } => {
                write!(f, "joined by a more urgent placement: {}", priority.name())
            }
            TimelineEvent::Deferred { until } => {
                write!(f, "the gate is shut; waits {:?}", until.since(self.at))
            }
            TimelineEvent::Routed { attempt, to, passed_over } => {
                write!(f, "attempt {attempt}: goes to {}", provider_of(to))?;
                for (at, PassedOver { account, why }) in passed_over.iter().enumerate() {
                    write!(f, "{}{} {why}", if at == 0 { ", because " } else { ", " }, provider_of(account))?;
                }
                Ok(())
            }
            TimelineEvent::Submitted { attempt } => write!(f, "attempt {attempt}: submitting"),
            TimelineEvent::Accepted { attempt, task } => {
                write!(f, "attempt {attempt}: taken as task {}", task.escape_debug())
            }
            TimelineEvent::InDoubt { attempt, until } => {
                write!(
                    f,
                    "attempt {attempt}: in doubt whether the provider took it; waits {:?}",
                    until.since(self.at)
                )
            }
            TimelineEvent::GaveUp { attempt } => write!(f, "attempt {attempt}: given up"),
            TimelineEvent::Hedged { attempt } => {
                write!(f, "attempt {attempt}: takes long, so another provider is asked as well")
            }
            TimelineEvent::Faulted { attempt, fault } => {
                write!(f, "attempt {attempt}: {} ({})", fault.code.escape_debug(), fault.class.name())
            }
            TimelineEvent::LeftInDoubt { attempt, evidence } => {
                write!(f, "attempt {attempt}: {} (in doubt)", evidence.summary.escape_debug())
            }
            TimelineEvent::Retried { class, number, at } if *at <= self.at => {
                write!(f, "retry {number} for {}, at once", class.name())
            }
            TimelineEvent::Retried { class, number, at } => {
                write!(f, "retry {number} for {}, after {:?}", class.name(), at.since(self.at))
            }
            TimelineEvent::Held => f.write_str("held until the provider's account is fixed"),
            TimelineEvent::Released => f.write_str("released"),
            TimelineEvent::Solved { attempt, via } => write!(
                f,
                "attempt {attempt}: solved, {}",
                match via {
                    Via::Submit => "in the reply to the submit",
                    Via::Callback => "by callback",
                    Via::Poll => "by poll",
                }
            ),
            TimelineEvent::CameLate { attempt } => {
                write!(f, "attempt {attempt}: answered, but no longer needed")
            }
            TimelineEvent::TooOld { attempt } => {
                write!(f, "attempt {attempt}: answered, but too old")
            }
            TimelineEvent::Stocked { attempt } => write!(f, "attempt {attempt}: answer put in stock"),
            TimelineEvent::Claimed => f.write_str("answer taken"),
            TimelineEvent::ServedFromStock { from } => {
                write!(f, "answer of order {} taken from the stock", from.short())
            }
            TimelineEvent::Returned => f.write_str("answer given back to the stock"),
            TimelineEvent::HandedOver { to } => write!(f, "answer handed over to order {}", to.short()),
            TimelineEvent::Expired => f.write_str("answer expired; no caller got it"),
            TimelineEvent::Failed => f.write_str("failed: the caller gets the reason"),
            TimelineEvent::MovedToDeadLetters { cause } => write!(f, "dead letter: {cause}"),
            TimelineEvent::Cancelled => f.write_str("cancelled"),
            TimelineEvent::Replayed => f.write_str("replayed"),
            TimelineEvent::ReplayedAfterOutage { provider } => {
                write!(f, "replayed because the outage of {} is over", provider.escape_debug())
            }
            TimelineEvent::Dropped => f.write_str("dropped by a person"),
            TimelineEvent::Reported { attempt, is_good } => {
                write!(f, "attempt {attempt}: reported {}", if *is_good { "good" } else { "bad" })
            }
            TimelineEvent::Noted { text } => write!(f, "note: {}", text.escape_debug()),
            TimelineEvent::WebhookDelivered { webhook } => write!(f, "webhook {webhook}: delivered"),
            TimelineEvent::WebhookFailed { webhook, why } => {
                write!(f, "webhook {webhook}: not delivered: {}", why.escape_debug())
            }
            TimelineEvent::PutBack => f.write_str("the store forgot the order; a node put it back"),
            TimelineEvent::Recalled { attempt } => {
                write!(f, "attempt {attempt}: made for an earlier record of this order that the store forgot")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_story_keeps_its_beginning_and_its_end_and_counts_the_rest() {
        let mut timeline = Timeline::default();
        for n in 0..1000 {
            timeline.tell(Timestamp::from_millis(n), TimelineEvent::Held);
        }
        let moments: Vec<u64> = timeline.entries.iter().map(|entry| entry.at.as_millis()).collect();
        assert_eq!(moments.len(), TIMELINE_ENTRIES_MAX);
        assert_eq!(moments[..TIMELINE_BEGINNING], (0..TIMELINE_BEGINNING as u64).collect::<Vec<_>>());
        assert_eq!(moments.last(), Some(&999));
        assert_eq!(timeline.left_out as usize, 1000 - TIMELINE_ENTRIES_MAX);
    }

    #[test]
    fn looking_again_and_again_is_one_wait() {
        let mut timeline = Timeline::default();
        let at = Timestamp::from_millis;
        timeline.tell(at(0), TimelineEvent::Placed { life: 1 });
        for n in 1..=1000 {
            timeline.tell(at(n), TimelineEvent::Deferred { until: at(n + 5000) });
        }
        timeline.tell(at(7000), TimelineEvent::Submitted { attempt: 1 });
        let lines: Vec<String> = timeline.entries.iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["placed", "the gate is shut; waits 5.999s", "attempt 1: submitting"]);
        assert_eq!(timeline.left_out, 0);
    }
}
