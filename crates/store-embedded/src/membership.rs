//! The membership of a store with one process: heartbeats are in memory, for that process to show. Documents, and the
//! note that the orders have moved, are on disk.

use crate::EmbeddedStore;
use crate::documents::DocumentWrite;
use crate::failure::{EmbeddedError, unavailable};
use crate::home::{FILLING, SEAL};
use crate::reader::{Question, ReadAnswer};
use crate::writer::{WriteResult, WriteTask};
use async_trait::async_trait;
use quittance_lifecycle::Timestamp;
use quittance_ports::{
    DocumentWritten, Finding, Members, Membership, NodeStatus, SharedDocument, StoreError, StoredDocument,
    Verdict, Version,
};
use quittance_record::encode_document;
use std::sync::Arc;

const NOTING: &str = "reading or keeping the note that the orders have moved";

const READING: &str = "reading the documents";
const WRITING: &str = "writing a document";
const ASKED: &str = "each answer is of the requested sort";

fn lost(error: std::io::Error) -> StoreError {
    unavailable(NOTING, EmbeddedError::Note(Arc::new(error)))
}

#[async_trait]
impl Membership for EmbeddedStore {
    async fn heartbeat(&self, node_status: &NodeStatus) -> Result<Timestamp, StoreError> {
        self.shared().node_statuses.heartbeat(node_status).await
    }

    async fn leave(&self, node: u64) -> Result<(), StoreError> {
        self.shared().node_statuses.leave(node).await
    }

    async fn members(&self) -> Result<Members, StoreError> {
        self.shared().node_statuses.members().await
    }

    async fn seal(&self, note: Option<&str>) -> Result<(), StoreError> {
        let shared = self.shared();
        // Closed before it is on the disk, and opened after: a call in between is refused, which does no harm.
        if note.is_some() {
            shared.set_sealed(true);
        }
        shared.home.keep_note(SEAL, note).map_err(lost)?;
        shared.set_sealed(note.is_some());
        Ok(())
    }

    async fn sealed(&self) -> Result<Option<String>, StoreError> {
        self.shared().home.note(SEAL).map_err(lost)
    }

    async fn set_filling(&self, note: Option<&str>) -> Result<(), StoreError> {
        self.shared().home.keep_note(FILLING, note).map_err(lost)
    }

    async fn filling(&self) -> Result<Option<String>, StoreError> {
        self.shared().home.note(FILLING).map_err(lost)
    }

    async fn documents(&self) -> Result<Vec<StoredDocument>, StoreError> {
        self.shared().check_up(READING)?;
        match self.shared().questions.ask(Question::Documents).await? {
            ReadAnswer::Documents(documents) => Ok(documents),
            _ => unreachable!("{ASKED}"),
        }
    }

    async fn write_document(
        &self,
        name: &str,
        expected: Version,
        document: Option<&SharedDocument>,
    ) -> Result<DocumentWritten, StoreError> {
        self.shared().check_open(WRITING)?;
        let write =
            DocumentWrite { name: name.to_owned(), expected, document: document.map(encode_document) };
        match self.write(WriteTask::SharedDocument(Box::new(write))).await? {
            WriteResult::SharedDocument(written) => Ok(written),
            _ => unreachable!("{ASKED}"),
        }
    }

    /// The damage that was noticed when the store was opened, or when its files were lost.
    async fn checkup(&self) -> Result<Vec<Finding>, StoreError> {
        let damage = self.damage().map(|what| Finding { verdict: Verdict::Bad, what });
        let note = self.trail_note().map(|what| Finding { verdict: Verdict::Note, what });
        Ok(damage.into_iter().chain(note).collect())
    }
}
