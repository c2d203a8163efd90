//! What really happened, written down by the world itself: what the provider took, solved and was paid for, what
//! reached us, what callers wanted and got, and when nodes were killed, frozen or had a wrong clock. The judge reads
//! this and the final records, and nothing of the engine's own opinion of itself.

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
    /// How often the caller looks whether there is an answer; `None` if it waits for it.
    pub looks_every: Option<u64>,
}

impl SimOrder {
    /// What an answer must have been solved for to be of use here.
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

/// One task that the provider took: one payment.
#[derive(Clone, Debug)]
pub struct Task {
    pub id: u64,
    /// The order that it was taken for, by the name that the placement gave it.
    pub who: String,
    /// What it was solved for.
    pub identity: String,
    pub key: Key,
    pub attempt: u32,
    /// Who submitted it.
    pub node: Group,
    /// When the submit left our side: the moment at which it was decided to pay.
    pub sent_at: u64,
    pub accepted_at: u64,
    pub solves_at: u64,
    pub fate: Fate,
    /// After this the provider no longer knows it.
    pub vanishes_at: u64,
    /// When the reply to the submit reached the node.
    pub reply_reached: Option<u64>,
    /// When its answer, or its fault, first reached a node; for a callback, when it was acknowledged.
    pub answer_returned: Option<u64>,
    pub fault_reply: Option<u64>,
    pub callback_acked: Option<u64>,
    /// When the call began that was acknowledged first.
    pub callback_begun: Option<u64>,
    /// By which node.
    pub acked_by: Option<Group>,
    /// When a callback was first handed to a node, whether or not it lived to acknowledge it.
    pub callback_received: Option<u64>,
}

impl Task {
    #[must_use]
    pub fn token(&self) -> String {
        format!("token-{}", self.id)
    }
}

/// One submit that reached the provider and was refused.
#[derive(Clone, Debug)]
pub struct RefusedSubmit {
    pub who: String,
    pub node: Group,
    pub sent_at: u64,
    pub class: FaultClass,
    /// When the refusal reached the node, if it did.
    pub reached: Option<u64>,
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
    /// When the caller learned that the order is accepted.
    pub accepted: Option<u64>,
    pub key: Option<Key>,
    /// Where its answer was to come from, by the reply to the placement.
    pub origin: Option<Origin>,
    pub result_at: Option<(u64, CallerResult)>,
    /// Whether the whole visit fell into the calm.
    pub in_calm: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimFault {
    Killed,
    /// Killed, and not started again before the calm.
    Gone,
    Frozen,
}

#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// When the clock of a node was set to another time.
    pub clock_steps: Vec<u64>,
    pub tasks: Vec<Task>,
    pub refused: Vec<RefusedSubmit>,
    /// When each submit that reached the provider was sent, whatever came of it.
    pub arrivals: Vec<(u64, String, Group)>,
    pub visits: Vec<Visit>,
    pub faults: Vec<(Group, SimFault, u64)>,
    /// How often a person replayed the dead letter of this name.
    pub replayed: Vec<String>,
    /// By which node, from when to when, an operator's release of the account was carried out.
    pub released: Vec<(Group, u64, u64)>,
    pub cancelled: Vec<(String, u64)>,
    pub calm_at: u64,
    /// How many forged callbacks were sent, and how many were recognised by nodes that have died since.
    pub forged: u64,
    pub turned_away: u64,
    pub panics: u64,
}
