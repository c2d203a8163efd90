//! Which nodes work on a store. The nodes of a store send a heartbeat with their status every few seconds, and learn
//! the store's own time, by which clocks can be compared. A store whose orders were moved elsewhere is sealed, and
//! accepts no more.

use crate::document::{DOCUMENTS_MAX, DocumentWritten, SharedDocument, StoredDocument};
use crate::store::{StoreError, Version};
use async_trait::async_trait;
use quittance_lifecycle::{Key, Outage, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a node sends a heartbeat.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
/// A node without a heartbeat for this long counts as gone, or frozen.
pub const SILENT_AFTER: Duration = Duration::from_secs(8);
/// How long a status is kept without a new heartbeat. Until then operators can see which node is missing.
pub const NODE_STATUS_LIFE: Duration = Duration::from_secs(600);
/// How far the clocks of nodes may differ from the store's. Within this limit nothing is lost or paid for twice. No
/// expired answer is handed out to a caller that requests at least twice this much life (the usual margin is 40 s).
/// The simulation lets the clocks differ by more.
pub const SKEW_MAX: Duration = Duration::from_secs(2);

/// What a node reports about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// A number that is new for each start of each process.
    pub node: u64,
    /// The name of the node.
    pub name: String,
    pub version: String,
    /// The format in which the node writes records.
    pub format: u64,
    pub started: Timestamp,
    /// When the status was written, by the node's own clock.
    pub at: Timestamp,
    /// How far the node's clock is ahead of the store's, in milliseconds; `None` until it has compared them.
    pub skew_ms: Option<i64>,
    pub node_stats: NodeStats,
    /// How callbacks can reach the node; `None` if it does not listen for them.
    pub reach: Option<Reach>,
    /// How many orders the node has seen for each pool since it started, by the pool's name: those served from stock,
    /// and those that had to be bought.
    pub demand: BTreeMap<String, Demand>,
}

/// When callbacks could reach a node. Other nodes need this to date an answer that came to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The address that providers call. Nodes behind one load balancer have the same address. An outage of a node
    /// with another address says nothing about this one.
    pub address: String,
    /// Until when callbacks could reach the node, by its own clock.
    pub until: Timestamp,
    /// The times in which callbacks may not have reached the node, the oldest first.
    pub outages: Vec<Outage>,
    /// The orders with a callback that got no reply from the node, or a late one.
    pub unanswered: BTreeMap<Key, Outage>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    pub served: u64,
    pub missed: u64,
}

/// What a node has done since it started, and its state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeStats {
    /// New orders that callers placed at this node.
    pub placed: u64,
    /// Placements at this node that joined an existing order.
    pub joined: u64,
    /// Orders whose timer this node has handled.
    pub attended: u64,
    /// Calls to the provider.
    pub submitted: u64,
    pub polled: u64,
    /// Orders that got their answer at this node.
    pub answered: u64,
    /// Orders that the node has in hand now.
    pub in_hand: u64,
    /// How often the store did not answer.
    pub store_errors: u64,
    /// How many records could not be read.
    pub unreadable: u64,
    pub panics: u64,
    /// Whether the node submits nothing until an operator has fixed the provider's account.
    pub is_paused: bool,
    /// The provider's code that led to the pause, shortened; `None` if this node did not receive it.
    pub pause_code: Option<String>,
    /// Whether the store did not answer a moment ago.
    pub store_was_away: bool,
    /// Whether the node's spill holds events.
    pub has_spilled: bool,
}

/// The status of a node, and when it was last renewed by the store's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub node_status: NodeStatus,
    pub seen: Timestamp,
}

/// All nodes that have joined and not left, by their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// The store's own time.
    pub now: Timestamp,
    pub nodes: Vec<Member>,
}

/// How a finding affects the promises of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Good,
    /// A promise is weaker than it could be, or an operator should check something.
    Note,
    /// A promise is broken, or will be.
    Bad,
}

/// A finding about the set-up of a store: what it means for the promises, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub verdict: Verdict,
    pub what: String,
}

/// The identity of a shared store, its epoch, and the secrets that have signed callbacks on it. The identity is drawn
/// when the store is first used, and the epoch only grows. A node that finds another identity or a smaller epoch
/// knows that the store was flushed, restored or replaced.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreMark {
    pub identity: [u8; 16],
    pub epoch: u64,
    /// The first secret signs callbacks, and hashes the keys of orders. A callback is genuine if any of the secrets
    /// signed it.
    pub secrets: Vec<[u8; 32]>,
    /// When the first secret was drawn, by the store's clock. If nodes bring two, the older one becomes the first.
    pub drawn_at: Timestamp,
    /// For how much longer nodes put back what the store has forgotten. Until then no order is new. Zero if the store
    /// has forgotten nothing.
    pub recovery: Duration,
}

/// A node's request for the [mark](StoreMark) of its store.
#[derive(Clone, Copy)]
pub struct MarkRequest<'a> {
    /// The identity for a store that has none, or has forgotten something.
    pub drawn: [u8; 16],
    /// The identity and the epoch that this node knows; `None` if it knows none.
    pub known: Option<([u8; 16], u64)>,
    /// The node's secrets, which are added to those of the store. The first one is the one with which this node
    /// signs.
    pub secrets: &'a [[u8; 32]],
    /// When the first secret was drawn, by the store's clock. `None` if it was drawn for this request: a store
    /// without a secret may have been flushed, so no order is new until other nodes had time to bring an older one.
    pub drawn_at: Option<Timestamp>,
    /// Whether this node works with its first secret. If so, it replaces a younger one in the store, however long
    /// that has been there. For a node that only starts, this happens only while no order can have been made with the
    /// younger one.
    pub is_at_work: bool,
    /// Whether this node still puts back what it had in hand. Then the recovery continues.
    pub is_putting_back: bool,
}

/// How long nodes have to notice that the store has forgotten something, and to begin to put back their orders. Each
/// node checks every second. Until then nothing new is accepted.
pub const RECOVERY_SPAN: Duration = Duration::from_secs(4);

/// Nothing was written: the store is not the one that this node knows, and the node must first put back its orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the store was flushed, restored or replaced. The nodes first put back the orders that they hold. Try again in some \
     seconds"
)]
pub struct StoreForgot;

impl std::fmt::Debug for MarkRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MarkRequest").field("is_putting_back", &self.is_putting_back).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for StoreMark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreMark").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

#[async_trait]
pub trait Membership: Send + Sync {
    /// Writes this status, in place of an older one of the same node. Returns the store's own time.
    async fn heartbeat(&self, node_status: &NodeStatus) -> Result<Timestamp, StoreError>;

    /// Removes the status of this node, if there is one.
    async fn leave(&self, node: u64) -> Result<(), StoreError>;

    async fn members(&self) -> Result<Members, StoreError>;

    /// With a note, seals the store: it accepts no commit, claim, purge or count any more, from any process. Without
    /// a note, removes the seal. Reading is always possible.
    async fn seal(&self, note: Option<&str>) -> Result<(), StoreError>;

    /// The note of the seal; `None` if the store is not sealed.
    async fn sealed(&self) -> Result<Option<String>, StoreError>;

    /// With a note, marks the store as being filled: orders are moved here, and no node may begin to work on it.
    /// Without a note, all orders have arrived. The process that moves them may write all the time.
    async fn set_filling(&self, note: Option<&str>) -> Result<(), StoreError>;

    /// The note, if orders are being moved here.
    async fn filling(&self) -> Result<Option<String>, StoreError>;

    /// All documents, sorted by name. A document that cannot be read is left out.
    async fn documents(&self) -> Result<Vec<StoredDocument>, StoreError>;

    /// Writes the document of this name, or removes it, if it still has the version `expected` ([`Version::ABSENT`]
    /// for a new one). Versions of a name only grow, and none is used again. A sealed store refuses, as for commits.
    async fn write_document(
        &self,
        name: &str,
        expected: Version,
        document: Option<&SharedDocument>,
    ) -> Result<DocumentWritten, StoreError>;

    /// Findings about the store's own settings, for `doctor`.
    async fn checkup(&self) -> Result<Vec<Finding>, StoreError>;
}

/// The membership of a store that one process uses alone. It forgets everything when the process ends.
#[derive(Clone, Debug, Default)]
pub struct MemoryMembership(Arc<Mutex<MembershipState>>);

#[derive(Debug, Default)]
struct MembershipState {
    now: Timestamp,
    nodes: BTreeMap<u64, NodeStatus>,
    note: Option<String>,
    filling: Option<String>,
    last_version: u64,
    documents: BTreeMap<String, (Version, SharedDocument)>,
}

impl MemoryMembership {
    /// Locks the state, even if the lock is poisoned: no panic elsewhere can leave a map half-written.
    fn state(&self) -> MutexGuard<'_, MembershipState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Membership for MemoryMembership {
    /// Returns the time of this process: there is no other clock.
    async fn heartbeat(&self, node_status: &NodeStatus) -> Result<Timestamp, StoreError> {
        let mut state = self.state();
        state.now = state.now.max(node_status.at);
        state.nodes.insert(node_status.node, node_status.clone());
        Ok(node_status.at)
    }

    async fn leave(&self, node: u64) -> Result<(), StoreError> {
        self.state().nodes.remove(&node);
        Ok(())
    }

    async fn members(&self) -> Result<Members, StoreError> {
        let state = self.state();
        let nodes = state
            .nodes
            .values()
            .map(|node_status| Member { node_status: node_status.clone(), seen: node_status.at });
        Ok(Members { now: state.now, nodes: nodes.collect() })
    }

    async fn seal(&self, note: Option<&str>) -> Result<(), StoreError> {
        self.state().note = note.map(str::to_owned);
        Ok(())
    }

    async fn sealed(&self) -> Result<Option<String>, StoreError> {
        Ok(self.state().note.clone())
    }

    async fn set_filling(&self, note: Option<&str>) -> Result<(), StoreError> {
        self.state().filling = note.map(str::to_owned);
        Ok(())
    }

    async fn filling(&self) -> Result<Option<String>, StoreError> {
        Ok(self.state().filling.clone())
    }

    async fn documents(&self) -> Result<Vec<StoredDocument>, StoreError> {
        let state = self.state();
        let record = state.documents.iter().map(|(name, (version, document))| StoredDocument {
            name: name.clone(),
            version: *version,
            document: document.clone(),
        });
        Ok(record.collect())
    }

    async fn write_document(
        &self,
        name: &str,
        expected: Version,
        document: Option<&SharedDocument>,
    ) -> Result<DocumentWritten, StoreError> {
        let mut state = self.state();
        let there = state.documents.get(name).map_or(Version::ABSENT, |(version, _)| *version);
        if there != expected {
            return Ok(DocumentWritten::Conflict);
        }
        if document.is_some() && there == Version::ABSENT && state.documents.len() >= DOCUMENTS_MAX {
            return Ok(DocumentWritten::NoRoom);
        }
        state.last_version += 1;
        let version = Version(state.last_version);
        match document {
            Some(document) => drop(state.documents.insert(name.to_owned(), (version, document.clone()))),
            None => drop(state.documents.remove(name)),
        }
        Ok(DocumentWritten::Done(version))
    }

    async fn checkup(&self) -> Result<Vec<Finding>, StoreError> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit for clocks is one number that the documents repeat.
    #[test]
    fn the_bound_for_clocks_is_the_same_in_the_docs() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let bound = SKEW_MAX.as_secs();
        for (file, words) in [
            ("README.md", format!("within {bound} seconds of the store's")),
            ("docs/guarantees.md", format!("off by {bound} s from the store's")),
            ("docs/cli.md", format!("up to {bound} s does no harm")),
            ("docs/cli.md", format!("clock off by more than {bound} s")),
        ] {
            let text = std::fs::read_to_string(format!("{root}/{file}")).expect("the docs are there");
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(&words), "{file} does not say {words:?}");
        }
    }
}
