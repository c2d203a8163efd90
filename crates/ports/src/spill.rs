//! A file for events from a provider while the store is away. The events are paid for, so they must be safe before
//! the provider gets its "200".

use quittance_lifecycle::{Event, Key, Timestamp};

/// An event from a provider for an order, which has not been applied to the order yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingEvent {
    pub key: Key,
    /// The birth of the record for which the event was meant.
    pub born: Timestamp,
    /// The first bytes of the target's digest, for a callback. If an order was placed again after the store forgot
    /// it, this shows whether the new order is for the same target.
    pub target: Option<u64>,
    pub event: Event,
}

#[derive(Debug, thiserror::Error)]
pub enum SpillError {
    #[error("the spill is full ({bytes_max} bytes): bring the store back, and it empties itself")]
    Full { bytes_max: u64 },
    #[error("the spill cannot be written or read")]
    Io(#[from] std::io::Error),
}

pub trait Spill: Send + Sync {
    /// Keeps an event. When this returns, the event survives a crash and a loss of power. It blocks for as long as
    /// the disk takes.
    fn keep(&self, arrival: &IncomingEvent) -> Result<(), SpillError>;

    /// All events that wait, the oldest first. An entry that cannot be read is set aside for an operator, and stops
    /// nothing else.
    fn waiting(&self) -> Result<Vec<IncomingEvent>, SpillError>;

    /// Removes the oldest `count` events, which are safe in the store now.
    fn forget(&self, count: usize) -> Result<(), SpillError>;

    /// Writes that every callback up to this moment was answered. The mark may be lost with the power: an older mark
    /// only makes answers look older than they are.
    fn mark_reachable(&self, _until: Timestamp) {}

    /// The last mark that an earlier process left; `None` if it is not known.
    fn reachable_until(&self) -> Option<Timestamp> {
        None
    }
}
