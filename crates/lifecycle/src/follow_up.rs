//! What is left to do when an order has ended: calls to webhooks, and reports to the provider whether its answer was
//! good. Both are on record before they are carried out. Both have a timer of their own, so a crash makes them late,
//! never lost.

use crate::time::Timestamp;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

/// How many may wait to be called about one order.
pub const WEBHOOKS_MAX: usize = 16;
pub const WEBHOOK_URL_BYTES_MAX: usize = 2048;
/// The longest text that is kept about a webhook that did not accept its call.
pub const WHY_BYTES_MAX: usize = 200;

/// How long one try may stay unreported before it is made again.
pub const FOLLOW_UP_WAIT: Duration = Duration::from_secs(30);

/// The pauses between two tries to tell a listener. When they are used up, a person must look.
pub const WEBHOOK_PAUSES: [Duration; 6] = [
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3600),
];

/// The pauses between two tries to report. Providers count no report that comes more than a quarter of an hour late.
pub const REPORT_PAUSES: [Duration; 6] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(20),
    Duration::from_secs(60),
    Duration::from_secs(3 * 60),
    Duration::from_secs(5 * 60),
];

/// A caller's address, to be called when the order has ended.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Unique among all webhooks that the order ever had.
    pub number: u32,
    pub url: String,
    /// In which form the call is written. The sender of webhooks gives it a meaning.
    pub dialect: String,
    pub state: DeliveryState,
}

impl fmt::Debug for Webhook {
    /// People put secrets into such addresses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({}, {}, {:?})", self.number, self.dialect, self.state)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// To be called at `at`, or as soon after as the order has ended.
    Owed { at: Timestamp, tries: u8 },
    /// The webhook never accepted the call: a dead letter of its own.
    Dead { at: Timestamp, why: String },
}

/// A caller's report about an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub is_good: bool,
    pub at: Timestamp,
    pub state: ReportState,
}

/// Whether the provider knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportState {
    Owed {
        at: Timestamp,
        tries: u8,
    },
    Passed,
    /// The provider does not count it, and will not.
    Refused {
        code: String,
    },
    /// The provider could not be reached in time, or the id of the task was never learned.
    Lost,
}
