//! What happened to an order, in order, for the person who has to understand it. Bounded: the beginning and the
//! end are kept, and what was left out between them is counted.

use crate::event::Via;
use crate::fault::{Evidence, Fault, Signal};
use crate::key::Key;
use crate::order::DeadCause;
use crate::time::Timestamp;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The longest note that a person may leave.
pub const NOTE_BYTES_MAX: usize = 1000;

/// How many entries are kept: enough for a letter that was replayed many times. A third of them are from the beginning.
pub const STORY_ENTRIES_MAX: usize = 256;
/// How many entries stand before what was left out.
pub const STORY_BEGINNING: usize = STORY_ENTRIES_MAX / 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beat {
    Placed {
        life: u32,
    },
    Rejoined,
    Deferred {
        until: Timestamp,
    },
    Submitted {
        attempt: u32,
    },
    Accepted {
        attempt: u32,
        task: String,
    },
    Doubted {
        attempt: u32,
        until: Timestamp,
    },
    GaveUp {
        attempt: u32,
    },
    Faulted {
        attempt: u32,
        fault: Fault,
    },
    /// What was seen of a submit before it became a doubt.
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
    Taken,
    /// The answer of another order, from the shelf.
    Supplied {
        from: Key,
    },
    Returned,
    Spoiled,
    Failed,
    Buried {
        cause: DeadCause,
    },
    Cancelled,
    Replayed,
    Dropped,
    Reported {
        attempt: u32,
        is_good: bool,
    },
    /// What a person wants others to know about it.
    Noted {
        text: String,
    },
    Told {
        listener: u32,
    },
    NotTold {
        listener: u32,
        why: String,
    },
    /// The store forgot it, and a node put it back.
    PutBack,
    /// An attempt of an earlier record of this order, which the store forgot.
    Recalled {
        attempt: u32,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub at: Timestamp,
    pub beat: Beat,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Story {
    pub entries: Vec<Entry>,
    /// How many entries are missing between the beginning and the end.
    pub left_out: u32,
}

impl Story {
    pub fn tell(&mut self, at: Timestamp, beat: Beat) {
        // To look again and again whether the provider takes work is one wait, not a story.
        if let (Beat::Deferred { until: later }, Some(Entry { beat: Beat::Deferred { until }, .. })) =
            (&beat, self.entries.last_mut())
        {
            *until = *later;
            return;
        }
        if self.entries.len() >= STORY_ENTRIES_MAX {
            // What a person wrote is left out last: nobody can find it out again.
            let is_ours = |entry: &Entry| !matches!(entry.beat, Beat::Noted { .. });
            let oldest = self.entries[STORY_BEGINNING..].iter().position(is_ours).unwrap_or(0);
            self.entries.remove(STORY_BEGINNING + oldest);
            self.left_out = self.left_out.saturating_add(1);
        }
        self.entries.push(Entry { at, beat });
    }
}

/// In words, with moments that lie ahead told as seen from its own.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.beat {
            Beat::Placed { life: 1 } => f.write_str("placed"),
            Beat::Placed { life } => write!(f, "placed again, life {life}"),
            Beat::Rejoined => f.write_str("joined, with a later deadline or after a cancel"),
            Beat::Deferred { until } => {
                write!(f, "the provider takes no work; looked again until {:?} later", until.since(self.at))
            }
            Beat::Submitted { attempt } => write!(f, "attempt {attempt}: submitting"),
            Beat::Accepted { attempt, task } => {
                write!(f, "attempt {attempt}: taken as task {}", task.escape_debug())
            }
            Beat::Doubted { attempt, until } => {
                write!(
                    f,
                    "attempt {attempt}: no word whether it was taken; waiting {:?} for it",
                    until.since(self.at)
                )
            }
            Beat::GaveUp { attempt } => write!(f, "attempt {attempt}: waited out"),
            Beat::Faulted { attempt, fault } => {
                write!(f, "attempt {attempt}: {} ({})", fault.code.escape_debug(), fault.class.name())
            }
            Beat::LeftInDoubt { attempt, evidence } => {
                write!(f, "attempt {attempt}: {} (in doubt)", evidence.seen.escape_debug())
            }
            Beat::Retried { class, number, at } if *at <= self.at => {
                write!(f, "retry {number} for {}, at once", class.name())
            }
            Beat::Retried { class, number, at } => {
                write!(f, "retry {number} for {}, after {:?}", class.name(), at.since(self.at))
            }
            Beat::Held => f.write_str("held until the provider's account is mended"),
            Beat::Released => f.write_str("released"),
            Beat::Solved { attempt, via } => write!(
                f,
                "attempt {attempt}: solved, {}",
                match via {
                    Via::Submit => "in the reply to the submit",
                    Via::Callback => "by callback",
                    Via::Poll => "by poll",
                }
            ),
            Beat::CameLate { attempt } => {
                write!(f, "attempt {attempt}: answered when it was no longer needed")
            }
            Beat::TooOld { attempt } => write!(f, "attempt {attempt}: answered, too old to be of use"),
            Beat::Stocked { attempt } => write!(f, "attempt {attempt}: answer put in stock"),
            Beat::Taken => f.write_str("answer taken"),
            Beat::Supplied { from } => {
                write!(f, "answer taken from the shelf: that of order {}", from.short())
            }
            Beat::Returned => f.write_str("answer given back to the shelf"),
            Beat::Spoiled => f.write_str("answer spoiled, untaken"),
            Beat::Failed => f.write_str("failed: the caller is told"),
            Beat::Buried { cause } => write!(f, "dead letter: {cause}"),
            Beat::Cancelled => f.write_str("cancelled"),
            Beat::Replayed => f.write_str("replayed"),
            Beat::Dropped => f.write_str("dropped by a person"),
            Beat::Reported { attempt, is_good } => {
                write!(f, "attempt {attempt}: reported {}", if *is_good { "good" } else { "bad" })
            }
            Beat::Noted { text } => write!(f, "note: {}", text.escape_debug()),
            Beat::Told { listener } => write!(f, "caller {listener} was called"),
            Beat::NotTold { listener, why } => {
                write!(f, "caller {listener} could not be called: {}", why.escape_debug())
            }
            Beat::PutBack => f.write_str("the store forgot it; a node put it back as it knew it"),
            Beat::Recalled { attempt } => {
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
        let mut story = Story::default();
        for n in 0..1000 {
            story.tell(Timestamp::from_millis(n), Beat::Held);
        }
        let kept: Vec<u64> = story.entries.iter().map(|entry| entry.at.as_millis()).collect();
        assert_eq!(kept.len(), STORY_ENTRIES_MAX);
        assert_eq!(kept[..STORY_BEGINNING], (0..STORY_BEGINNING as u64).collect::<Vec<_>>());
        assert_eq!(kept.last(), Some(&999));
        assert_eq!(story.left_out as usize, 1000 - STORY_ENTRIES_MAX);
    }

    #[test]
    fn looking_again_and_again_is_one_wait() {
        let mut story = Story::default();
        let at = Timestamp::from_millis;
        story.tell(at(0), Beat::Placed { life: 1 });
        for n in 1..=1000 {
            story.tell(at(n), Beat::Deferred { until: at(n + 5000) });
        }
        story.tell(at(7000), Beat::Submitted { attempt: 1 });
        let told: Vec<String> = story.entries.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "placed",
                "the provider takes no work; looked again until 5.999s later",
                "attempt 1: submitting"
            ]
        );
        assert_eq!(story.left_out, 0);
    }
}
