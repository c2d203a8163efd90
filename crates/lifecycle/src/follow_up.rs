//! The work that is left when an order has ended: calls to webhooks, and reports to the provider whether its answer
//! was good. Each is on record before it is carried out, and has a timer of its own. So a crash can delay it, but not
//! lose it.

use crate::time::Timestamp;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

/// The most webhooks that one order may have waiting.
pub const WEBHOOKS_MAX: usize = 16;
pub const WEBHOOK_URL_BYTES_MAX: usize = 2048;
/// The longest text that is kept about a webhook that did not accept its call.
pub const WHY_BYTES_MAX: usize = 200;

/// How long one try may have no result before it is repeated.
pub const FOLLOW_UP_WAIT: Duration = Duration::from_secs(30);

/// The default pauses between two tries to call a webhook.
pub const WEBHOOK_PAUSES: [Duration; 6] = [
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3600),
];

/// The most pauses of a schedule for webhooks.
pub const WEBHOOK_PAUSES_MAX: usize = 16;

/// The pauses between two tries to call a webhook. When they are used up, the delivery becomes a dead letter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WebhookPauses {
    pauses: [Duration; WEBHOOK_PAUSES_MAX],
    count: usize,
}

impl WebhookPauses {
    pub const DEFAULT: Self = {
        let mut pauses = [Duration::ZERO; WEBHOOK_PAUSES_MAX];
        let mut at = 0;
        while at < WEBHOOK_PAUSES.len() {
            pauses[at] = WEBHOOK_PAUSES[at];
            at += 1;
        }
        Self { pauses, count: WEBHOOK_PAUSES.len() }
    };

    /// A schedule of these pauses; `None` if there are more than [`WEBHOOK_PAUSES_MAX`].
    #[must_use]
    pub fn new(list: &[Duration]) -> Option<Self> {
        let mut pauses = [Duration::ZERO; WEBHOOK_PAUSES_MAX];
        pauses.get_mut(..list.len())?.copy_from_slice(list);
        Some(Self { pauses, count: list.len() })
    }

    #[must_use]
    pub fn as_slice(&self) -> &[Duration] {
        &self.pauses[..self.count]
    }

    /// The pause after this many tries; `None` if there was the last one.
    fn after(&self, tries: u8) -> Option<Duration> {
        self.as_slice().get(usize::from(tries).saturating_sub(1)).copied()
    }

    /// The state of a delivery that failed.
    pub(crate) fn next(&self, now: Timestamp, tries: u8, why: &str) -> DeliveryState {
        match self.after(tries) {
            Some(pause) => DeliveryState::Owed { at: now + pause, tries },
            None => DeliveryState::Dead { at: now, why: why.into() },
        }
    }
}

impl fmt::Debug for WebhookPauses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// The pauses between two tries to send a report. Providers do not count a report that is more than 15 minutes late.
pub const REPORT_PAUSES: [Duration; 6] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(20),
    Duration::from_secs(60),
    Duration::from_secs(3 * 60),
    Duration::from_secs(5 * 60),
];

/// An address of a caller, which is called when the order has ended.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Unique among all webhooks that the order ever had.
    pub number: u32,
    pub url: String,
    /// The format of the call. The sender of webhooks interprets it.
    pub dialect: String,
    pub state: DeliveryState,
}

impl fmt::Debug for Webhook {
    /// Leaves out the address: callers put secrets into webhook addresses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({}, {}, {:?})", self.number, self.dialect, self.state)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// The webhook must be called at `at`, or as soon after that as the order has ended.
    Owed { at: Timestamp, tries: u8 },
    /// The webhook never accepted the call. It is a dead letter of its own.
    Dead { at: Timestamp, why: String },
}

/// A caller's report about an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub is_good: bool,
    pub at: Timestamp,
    pub state: ReportState,
}

/// Whether the provider has the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportState {
    Owed {
        at: Timestamp,
        tries: u8,
    },
    Passed,
    /// The provider does not count the report, and never will.
    Refused {
        code: String,
    },
    /// The provider could not be reached in time, or the id of the task was never learned.
    Lost,
}
