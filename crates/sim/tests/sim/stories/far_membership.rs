//! A membership that is far away: its replies take time, and some of them are lost after the write was done.

use async_trait::async_trait;
use quittance_lifecycle::Timestamp;
use quittance_ports::{
    DocumentWritten, Finding, Members, Membership, MemoryMembership, NodeStatus, SharedDocument, StoreError,
    StoredDocument, Version,
};
use quittance_sim::executor::Executor;
use quittance_sim::rng::Rng;
use std::sync::{Arc, Mutex};

#[derive(Debug)]
struct Wire {
    /// The longest time that a call takes each way, in milliseconds.
    wire_ms: u64,
    /// How many of a thousand replies to writes are lost.
    lost: u64,
    rng: Rng,
}

/// Clones of a handle share the way to the store.
#[derive(Clone)]
pub(crate) struct FarMembership {
    executor: Executor,
    near: MemoryMembership,
    wire: Arc<Mutex<Wire>>,
}

impl FarMembership {
    pub(crate) fn new(executor: &Executor, near: MemoryMembership) -> Self {
        let wire = Wire { wire_ms: 0, lost: 0, rng: Rng::new(0, "membership") };
        Self { executor: executor.clone(), near, wire: Arc::new(Mutex::new(wire)) }
    }

    /// From now on a call takes up to so many milliseconds each way, and so many of a thousand replies to writes are
    /// lost.
    pub(crate) fn is_far_away(&self, seed: u64, wire_ms: u64, lost: u64) {
        *self.wire.lock().expect("nothing panics here") =
            Wire { wire_ms, lost, rng: Rng::new(seed, "membership") };
    }

    async fn travel(&self) {
        let wire_ms = {
            let mut wire = self.wire.lock().expect("nothing panics here");
            let longest = wire.wire_ms;
            if longest == 0 { 0 } else { wire.rng.in_range(0..longest) }
        };
        if wire_ms > 0 {
            self.executor.sleep(wire_ms).await;
        }
    }

    fn is_lost(&self) -> bool {
        let mut wire = self.wire.lock().expect("nothing panics here");
        wire.lost > 0 && {
            let lost = wire.lost;
            wire.rng.chance(lost)
        }
    }
}

#[async_trait]
impl Membership for FarMembership {
    async fn heartbeat(&self, node_status: &NodeStatus) -> Result<Timestamp, StoreError> {
        self.near.heartbeat(node_status).await
    }

    async fn leave(&self, node: u64) -> Result<(), StoreError> {
        self.near.leave(node).await
    }

    async fn members(&self) -> Result<Members, StoreError> {
        self.near.members().await
    }

    async fn seal(&self, note: Option<&str>) -> Result<(), StoreError> {
        self.near.seal(note).await
    }

    async fn sealed(&self) -> Result<Option<String>, StoreError> {
        self.near.sealed().await
    }

    async fn set_filling(&self, note: Option<&str>) -> Result<(), StoreError> {
        self.near.set_filling(note).await
    }

    async fn filling(&self) -> Result<Option<String>, StoreError> {
        self.near.filling().await
    }

    async fn documents(&self) -> Result<Vec<StoredDocument>, StoreError> {
        self.travel().await;
        let documents = self.near.documents().await;
        self.travel().await;
        documents
    }

    async fn write_document(
        &self,
        name: &str,
        expected: Version,
        document: Option<&SharedDocument>,
    ) -> Result<DocumentWritten, StoreError> {
        self.travel().await;
        let written = self.near.write_document(name, expected, document).await;
        self.travel().await;
        if self.is_lost() {
            return Err(StoreError::Unavailable { doing: "writing", source: "the reply was lost".into() });
        }
        written
    }

    async fn checkup(&self) -> Result<Vec<Finding>, StoreError> {
        self.near.checkup().await
    }
}
