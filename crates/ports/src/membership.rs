//! Which nodes work on a store. Nodes that share one sign in every few seconds with their status, and learn the
//! store's own time, by which clocks can be compared. A store whose orders have moved elsewhere says so, and takes no
//! more.

use crate::document::{DOCUMENTS_MAX, DocumentWritten, SharedDocument, StoredDocument};
use crate::store::{StoreError, Version};
use async_trait::async_trait;
use quittance_lifecycle::{Key, Outage, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a node signs in.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
/// A node that has not signed in for so long is taken to be gone, or frozen.
pub const SILENT_AFTER: Duration = Duration::from_secs(8);
/// A status that was not renewed for so long may be forgotten; until then people can see which node went missing.
pub const NODE_STATUS_LIFE: Duration = Duration::from_secs(600);
/// How far the clocks of nodes may be from the store's. Within it nothing is lost or paid for twice, and no expired
/// answer is handed out to a caller that asks for at least twice this much life (the usual margin is 40 s). The
/// simulation lets the clocks differ by more.
pub const SKEW_MAX: Duration = Duration::from_secs(2);

/// What a node says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// New for each start of each process.
    pub node: u64,
    /// What people call it.
    pub name: String,
    pub version: String,
    /// The format in which it writes records.
    pub format: u64,
    pub started: Timestamp,
    /// By its own clock.
    pub at: Timestamp,
    /// How far its clock is ahead of the store's, in milliseconds, once it has compared them.
    pub skew_ms: Option<i64>,
    pub node_stats: NodeStats,
    /// How it can be reached by callbacks; `None` if it does not listen for them.
    pub reach: Option<Reach>,
    /// How many orders it has seen for each pool since it started, by the pool's name: those served from the stock, and
    /// those that had to be bought.
    pub demand: BTreeMap<String, Demand>,
}

/// What a node says about how callbacks could reach it: other nodes need it to date an answer that came to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The address that providers call. Nodes behind one load balancer have the same; what befalls a node with
    /// another address says nothing about callbacks to this one.
    pub address: String,
    /// Callbacks could come to it up to this moment, by its own clock.
    pub until: Timestamp,
    /// The times in which callbacks may not have come to it, oldest first.
    pub outages: Vec<Outage>,
    /// The orders of which a callback got no answer from it, or a late one.
    pub unanswered: BTreeMap<Key, Outage>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    pub served: u64,
    pub missed: u64,
}

/// What a node has done since it started, and how it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeStats {
    /// Orders that callers placed here and that were new, and those that joined one that was there.
    pub placed: u64,
    pub joined: u64,
    /// Orders whose timer this node has handled.
    pub attended: u64,
    /// Calls to the provider.
    pub submitted: u64,
    pub polled: u64,
    /// Orders that came to an answer here.
    pub answered: u64,
    /// Orders that it has in hand now.
    pub in_hand: u64,
    /// How often the store did not answer, and how many records could not be read.
    pub store_errors: u64,
    pub unreadable: u64,
    pub panics: u64,
    /// When an operator last released the provider's account on this node: every node that reads it may submit again,
    /// too.
    pub released: Option<Timestamp>,
    /// Whether the node submits nothing until an operator has fixed the provider's account.
    pub is_paused: bool,
    /// The provider's code that led to the pause, shortened; `None` if this node did not receive it.
    pub pause_code: Option<String>,
    /// The store did not answer a moment ago.
    pub store_was_away: bool,
    /// Something that came in waits in its spill.
    pub has_spilled: bool,
}

/// A card, and when it was last renewed by the store's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub node_status: NodeStatus,
    pub seen: Timestamp,
}

/// All nodes that have signed in and not out, by their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// The store's own time.
    pub now: Timestamp,
    pub nodes: Vec<Member>,
}

/// How good something about a store is, for the promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Good,
    /// A promise is weaker than it could be, or an operator should look.
    Note,
    /// A promise is broken, or will be.
    Bad,
}

/// One thing that a person should know about how a store is set up: what it costs in promises, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub verdict: Verdict,
    pub what: String,
}

/// The identity of a shared store, how far it has come, and the secrets that callbacks were signed with on it. The
/// identity is drawn when the store is first used, and the epoch only grows: a node that finds another identity, or a
/// smaller epoch, than before knows that the store was flushed, restored or replaced.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreMark {
    pub identity: [u8; 16],
    pub epoch: u64,
    /// The first signs, and the keys of orders are hashed under it; all of them prove.
    pub secrets: Vec<[u8; 32]>,
    /// When the first was drawn, by the store's clock. Of two that nodes bring, the older one is the first.
    pub drawn_at: Timestamp,
    /// For how much longer nodes put back what the store has forgotten; no order is new until then. Zero, if it has
    /// forgotten nothing.
    pub recovery: Duration,
}

/// How a node asks for the [mark](StoreMark) of its store.
#[derive(Clone, Copy)]
pub struct MarkRequest<'a> {
    /// The identity of a store that has none, or has forgotten something.
    pub drawn: [u8; 16],
    /// The identity and the epoch that this node knows, if it knows any.
    pub known: Option<([u8; 16], u64)>,
    /// Added to those that the store knows. The first is the one that this node signs with.
    pub secrets: &'a [[u8; 32]],
    /// When the first was drawn, by the store's clock. Nothing, if it was drawn for this request: a store without a
    /// secret may have been flushed, so no order is new until other nodes had the time to bring an older one.
    pub drawn_at: Option<Timestamp>,
    /// This node works with its first secret: a younger one in the store gives way to it, however long that has stood
    /// there. Of a node that only begins, it gives way only while no order can have been made under it.
    pub is_at_work: bool,
    /// This node still puts back what it had in hand: the recovery goes on.
    pub is_putting_back: bool,
}

/// How long nodes have to notice that the store has forgotten something, and to begin to put back what they had in
/// hand: each looks every second. Until then nothing new is accepted.
pub const RECOVERY_SPAN: Duration = Duration::from_secs(4);

/// Nothing was written: the store is not the one that this node knows, and what it had in hand is put back first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it was flushed, restored or replaced. The nodes first put back the orders that they hold. Try again in some seconds"
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
    /// Leaves this card, in place of an older one of the same node; tells the store's own time.
    async fn heartbeat(&self, node_status: &NodeStatus) -> Result<Timestamp, StoreError>;

    /// Takes the card of this node away, if there is one.
    async fn leave(&self, node: u64) -> Result<(), StoreError>;

    async fn members(&self) -> Result<Members, StoreError>;

    /// With a note, closes the store: it accepts no commit, claim, purge or count any more, from any process. Without
    /// one, opens it again. What is there can be read all the while.
    async fn seal(&self, note: Option<&str>) -> Result<(), StoreError>;

    /// The note, if it is closed.
    async fn sealed(&self) -> Result<Option<String>, StoreError>;

    /// With a note, says that orders are being moved here, and that no node may begin to work on those that are there
    /// already; without one, that all have come. The process that moves them may write all the while.
    async fn set_filling(&self, note: Option<&str>) -> Result<(), StoreError>;

    /// The note, if orders are being moved here.
    async fn filling(&self) -> Result<Option<String>, StoreError>;

    /// All documents, in the order of their names. One that cannot be understood is left out.
    async fn documents(&self) -> Result<Vec<StoredDocument>, StoreError>;

    /// Writes the document of this name, or takes it away, if it still has the version `expected` (none:
    /// [`Version::ABSENT`]). Versions of a name only grow, and none comes back. A sealed store refuses, as for commits.
    async fn write_document(
        &self,
        name: &str,
        expected: Version,
        document: Option<&SharedDocument>,
    ) -> Result<DocumentWritten, StoreError>;

    /// What the store's own settings promise, for `doctor`.
    async fn checkup(&self) -> Result<Vec<Finding>, StoreError>;
}

/// The membership of a store that one process has to itself. It forgets everything when the process ends.
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
    /// A panic elsewhere cannot have left a map half-written.
    fn state(&self) -> MutexGuard<'_, MembershipState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Membership for MemoryMembership {
    /// It has no clock but that of its one process.
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

    /// One number: people read it in three places.
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
