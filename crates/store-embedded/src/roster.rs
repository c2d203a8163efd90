//! The roster of a store that one process has to itself: cards are kept in memory, for that process to show; sheets, and the
//! note that the orders have moved, are on the disk.

use crate::EmbeddedStore;
use crate::home::{FILLING, SEAL};
use crate::reader::{Answer, Question};
use crate::sheets::SheetWrite;
use crate::trouble::{Trouble, unavailable};
use crate::writer::{Done, Task};
use async_trait::async_trait;
use quittance_lifecycle::Timestamp;
use quittance_ports::{
    Card, Finding, Roll, Roster, Sheet, SheetFound, SheetWritten, StoreError, Verdict, Version,
};
use quittance_record::encode_sheet;
use std::sync::Arc;

const NOTING: &str = "reading or keeping the note that the orders have moved";

const READING: &str = "reading the sheets";
const WRITING: &str = "writing a sheet";
const ASKED: &str = "each answer is of the sort that was asked for";

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

    async fn sheets(&self) -> Result<Vec<SheetFound>, StoreError> {
        self.shared().check_up(READING)?;
        match self.shared().questions.ask(Question::Sheets).await? {
            Answer::Sheets(sheets) => Ok(sheets),
            _ => unreachable!("{ASKED}"),
        }
    }

    async fn write_sheet(
        &self,
        name: &str,
        expected: Version,
        sheet: Option<&Sheet>,
    ) -> Result<SheetWritten, StoreError> {
        self.shared().check_open(WRITING)?;
        let write = SheetWrite { name: name.to_owned(), expected, sheet: sheet.map(encode_sheet) };
        match self.write(Task::Sheet(Box::new(write))).await? {
            Done::Sheet(written) => Ok(written),
            _ => unreachable!("{ASKED}"),
        }
    }

    /// What is wrong with it is noticed when it is opened, or when its files are gone.
    async fn checkup(&self) -> Result<Vec<Finding>, StoreError> {
        let damage = self.damage().map(|what| Finding { verdict: Verdict::Bad, what });
        let note = self.trail_note().map(|what| Finding { verdict: Verdict::Note, what });
        Ok(damage.into_iter().chain(note).collect())
    }
}
