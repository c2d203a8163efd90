//! The roster of a store that one process has to itself: cards are kept in memory, for that process to show, and only
//! the note that the orders have moved is on the disk.

use crate::EmbeddedStore;
use crate::home::{FILLING, SEAL};
use crate::trouble::{Trouble, unavailable};
use async_trait::async_trait;
use quittance_lifecycle::Timestamp;
use quittance_ports::{Card, Finding, Roll, Roster, StoreError};
use std::sync::Arc;

const NOTING: &str = "reading or keeping the note that the orders have moved";

fn lost(error: std::io::Error) -> StoreError {
    unavailable(NOTING, Trouble::Note(Arc::new(error)))
}

#[async_trait]
impl Roster for EmbeddedStore {
    async fn sign_in(&self, card: &Card) -> Result<Timestamp, StoreError> {
        self.shared().cards.sign_in(card).await
    }

    async fn sign_out(&self, node: u64) -> Result<(), StoreError> {
        self.shared().cards.sign_out(node).await
    }

    async fn roll(&self) -> Result<Roll, StoreError> {
        self.shared().cards.roll().await
    }

    async fn seal(&self, note: Option<&str>) -> Result<(), StoreError> {
        let shared = self.shared();
        // Closed before it is on the disk, and opened after: whoever is in between is refused, which harms nobody.
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

    /// What could be wrong with it is noticed when it is opened.
    async fn checkup(&self) -> Result<Vec<Finding>, StoreError> {
        Ok(Vec::new())
    }
}
