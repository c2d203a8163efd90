//! What really happened, recorded by the simulation itself. It includes what the provider took, solved and was paid
//! for; what reached us; and what callers wanted and got. It also includes when nodes were killed, frozen or had a
//! wrong clock. The judge reads this and the final records, but nothing that the engine reports about itself.

use crate::executor::Group;
use quittance_lifecycle::{FaultClass, Key, Origin, Reuse};
use std::time::Duration;

/// What a caller wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimOrder {
    pub tenant: String,
    pub kind: &'static str,
    pub site: String,
    pub page: String,
    pub action: String,
    pub reuse: Reuse,
    pub idempotency_key: Option<String>,
    pub min_life: Option<Duration>,
    /// How often the caller looks for an answer; `None` if it waits.
    pub looks_every: Option<u64>,
}

impl SimOrder {
    /// What an answer must have been solved for, to be useful for this order.
    #[must_use]
    pub fn identity(&self) -> String {
        format!("{}|{}|{}|{}|{}", self.tenant, self.kind, self.site, self.page, self.action)
    }
}

/// How a task ends at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Answer,
    Unsolvable,
}

/// A task that the provider took, and so one payment.
#[derive(Clone, Debug)]
pub struct Task {
    pub id: u64,
    /// The order for which the task was taken, by the name that its placement gave.
    pub who: String,
    /// What the task was solved for.
    pub identity: String,
    pub key: Key,
    pub attempt: u32,
    /// The node that submitted the task.
    pub node: Group,
    /// The number of the provider that took it.
    pub provider: usize,
    /// When the submit was sent: the moment of the decision to pay.
    pub sent_at: u64,
    pub accepted_at: u64,
    pub solves_at: u64,
    pub fate: Fate,
    /// After this moment the provider does not know the task any more.
    pub vanishes_at: u64,
    /// When the reply to the submit reached the node.
    pub reply_reached: Option<u64>,
    /// When its answer or fault first reached a node. For a callback, when it was acknowledged.
    pub answer_returned: Option<u64>,
    pub fault_reply: Option<u64>,
    pub callback_acked: Option<u64>,
    /// When the first acknowledged call began.
    pub callback_begun: Option<u64>,
    /// The node that acknowledged the callback.
    pub acked_by: Option<Group>,
    /// When a callback first reached a node, whether or not the node lived to acknowledge it.
    pub callback_received: Option<u64>,
}

impl Task {
    #[must_use]
    pub fn token(&self) -> String {
        format!("token-{}", self.id)
    }
}

/// A submit that reached the provider and was rejected.
#[derive(Clone, Debug)]
pub struct RefusedSubmit {
    pub who: String,
    pub node: Group,
    pub provider: usize,
    pub sent_at: u64,
    pub class: FaultClass,
    /// When the rejection reached the node; `None` if it did not.
    pub reached: Option<u64>,
}

/// A submit that reached a provider, whatever its outcome.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub sent_at: u64,
    pub who: String,
    pub node: Group,
    pub provider: usize,
}

/// How a caller's placement ended, as the caller saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerResult {
    Answer { token: String },
    Refused { held_back: bool, expired: bool, needs_a_person: bool },
    Failed { cancelled: bool },
    Dead,
    Expired,
    TakenByAnother,
    NotYet,
    Forgotten,
    NotAccepted,
}

/// One placement by one caller.
#[derive(Clone, Debug)]
pub struct Visit {
    pub who: String,
    pub request_spec: SimOrder,
    pub begun_at: u64,
    /// When the caller learned that its order was accepted.
    pub accepted: Option<u64>,
    pub key: Option<Key>,
    /// Where the answer should come from, according to the reply to the placement.
    pub origin: Option<Origin>,
    pub result_at: Option<(u64, CallerResult)>,
    /// Whether the whole visit was during the calm.
    pub in_calm: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimFault {
    Killed,
    /// The node was killed, and not started again before the calm.
    Gone,
    Frozen,
}

#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// When the clock of a node was set.
    pub clock_steps: Vec<u64>,
    pub tasks: Vec<Task>,
    pub refused: Vec<RefusedSubmit>,
    pub arrivals: Vec<Arrival>,
    pub visits: Vec<Visit>,
    pub faults: Vec<(Group, SimFault, u64)>,
    /// The names of the dead letters that an operator replayed, once for each replay.
    pub replayed: Vec<String>,
    /// On which node, from when to when, an operator released the account.
    pub released: Vec<(Group, u64, u64)>,
    pub cancelled: Vec<(String, u64)>,
    pub calm_at: u64,
    /// How many forged callbacks were sent.
    pub forged: u64,
    /// How many forged callbacks were recognised by nodes that have died since.
    pub turned_away: u64,
    pub panics: u64,
}
