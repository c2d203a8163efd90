//! Where events from a provider go while the store is away. They are paid for, so they must be safe before the
//! provider gets its "200", store or no store.

use quittance_lifecycle::{Event, Key, Timestamp};

/// Something that came in from a provider for an order, and has not been applied to it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingEvent {
    pub key: Key,
    /// The birth of the record that it was meant for.
    pub born: Timestamp,
    /// The beginning of the target's digest, of a callback: by it an order that was placed again under the same key
    /// after the store forgot the first one is known to be for the same thing.
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
    /// Returns when the arrival would survive a crash and a loss of power. It blocks for as long as a disk takes.
    fn keep(&self, arrival: &IncomingEvent) -> Result<(), SpillError>;

    /// All that waits, oldest first. What cannot be read is set aside for a person and stops nothing else.
    fn waiting(&self) -> Result<Vec<IncomingEvent>, SpillError>;

    /// The oldest `count` are safe in the store now.
    fn forget(&self, count: usize) -> Result<(), SpillError>;

    /// Writes down that every callback that came up to this moment was answered. It need not survive a loss of power:
    /// an older mark only makes answers look older than they are.
    fn mark_reachable(&self, _until: Timestamp) {}

    /// The last mark that an earlier process left; `None` if it is not known.
    fn reachable_until(&self) -> Option<Timestamp> {
        None
    }
}
