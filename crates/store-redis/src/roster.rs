//! Who works on this store, and whether it is closed. The note of a closed store stands in every partition, because a
//! script can only look into its own.

use crate::layout::FIRST;
use crate::row::text;
use crate::sweep::moment;
use crate::trouble::Trouble;
use crate::{Inner, RedisStore};
use async_trait::async_trait;
use futures_util::future::try_join_all;
use quittance_lifecycle::Timestamp;
use quittance_ports::roster::CARD_LIFE;
use quittance_ports::{
    Card, Finding, Roll, Roster, Sheet, SheetFound, SheetWritten, Signed, StoreError, Version,
};
use quittance_record::{decode_card, encode_card};
use redis::Value;

const SIGNING_IN: &str = "signing in";
const SIGNING_OUT: &str = "signing out";
const CALLING_THE_ROLL: &str = "calling the roll";
const SEALING: &str = "closing the store or opening it";
const READING_SHEETS: &str = "reading the sheets";
const WRITING_A_SHEET: &str = "writing a sheet";
const CHECKING: &str = "looking at the settings of Redis";

/// The fields of the desk that hold notes; the scripts look for the first.
const SEAL: &str = "seal";
const FILLING: &str = "filling";

impl Inner {
    fn cards(&self) -> [String; 2] {
        [self.layout.name(FIRST, "seen"), self.layout.name(FIRST, "cards")]
    }

    async fn sign_in(&self, card: &Card) -> Result<Timestamp, Trouble> {
        let (node, life) = (card.node.to_string(), CARD_LIFE.as_millis().to_string());
        let written = encode_card(card);
        let args = [node.as_bytes(), &written, life.as_bytes()];
        let now = self.run_plain(&self.scripts.sign_in, &self.cards(), &args).await?;
        Ok(Timestamp::from_millis(moment(now)?.ok_or(Trouble::Garbled)?))
    }

    async fn sign_out(&self, node: u64) -> Result<(), Trouble> {
        let node = node.to_string();
        self.run_plain(&self.scripts.sign_out, &self.cards(), &[node.as_bytes()]).await?;
        Ok(())
    }

    async fn roll(&self) -> Result<Roll, Trouble> {
        let life = CARD_LIFE.as_millis().to_string();
        let answer = self.run_plain(&self.scripts.roll, &self.cards(), &[life.as_bytes()]).await?;
        let Value::Array(mut values) = answer else { return Err(Trouble::Garbled) };
        let signed = values.split_off(1.min(values.len()));
        let now = values.pop().map(moment).transpose()?.flatten().ok_or(Trouble::Garbled)?;
        let mut nodes = Vec::with_capacity(signed.len());
        for value in signed {
            let Value::Array(fields) = value else { return Err(Trouble::Garbled) };
            let [seen, card] = <[Value; 2]>::try_from(fields).map_err(|_| Trouble::Garbled)?;
            let seen = Timestamp::from_millis(moment(seen)?.ok_or(Trouble::Garbled)?);
            // A card that cannot be read must not hide the others.
            match text(card)?.map(|card| decode_card(&card)) {
                Some(Ok(card)) => nodes.push(Signed { card, seen }),
                Some(Err(error)) => tracing::debug!(%error, "the card of a node cannot be read"),
                None => {}
            }
        }
        nodes.sort_unstable_by_key(|signed| signed.card.node);
        Ok(Roll { now: Timestamp::from_millis(now), nodes })
    }

    /// The first partition comes last: what it says is true of all the others.
    async fn seal(&self, note: Option<&str>) -> Result<(), Trouble> {
        let mark = |partition| self.mark(partition, SEAL, note);
        try_join_all(self.layout.all().skip(1).map(mark)).await?;
        mark(FIRST).await?;
        Ok(())
    }

    async fn note(&self, name: &str) -> Result<Option<String>, Trouble> {
        let mut command = redis::cmd("HGET");
        command.arg(self.layout.name(FIRST, "desk")).arg(name);
        let note = text(self.ask(&command).await?)?;
        Ok(note.map(|note| String::from_utf8_lossy(&note).into_owned()))
    }

    async fn mark(&self, partition: u16, name: &str, note: Option<&str>) -> Result<Value, Trouble> {
        let desk = self.layout.name(partition, "desk");
        let command = match note {
            Some(note) => redis::cmd("HSET").arg(desk).arg(name).arg(note).to_owned(),
            None => redis::cmd("HDEL").arg(desk).arg(name).to_owned(),
        };
        self.ask(&command).await
    }
}

#[async_trait]
impl Roster for RedisStore {
    async fn sign_in(&self, card: &Card) -> Result<Timestamp, StoreError> {
        self.inner().sign_in(card).await.map_err(|trouble| trouble.unavailable(SIGNING_IN))
    }

    async fn sign_out(&self, node: u64) -> Result<(), StoreError> {
        self.inner().sign_out(node).await.map_err(|trouble| trouble.unavailable(SIGNING_OUT))
    }

    async fn roll(&self) -> Result<Roll, StoreError> {
        self.inner().roll().await.map_err(|trouble| trouble.unavailable(CALLING_THE_ROLL))
    }

    async fn seal(&self, note: Option<&str>) -> Result<(), StoreError> {
        self.inner().seal(note).await.map_err(|trouble| trouble.unavailable(SEALING))
    }

    async fn sealed(&self) -> Result<Option<String>, StoreError> {
        self.inner().note(SEAL).await.map_err(|trouble| trouble.unavailable(SEALING))
    }

    async fn set_filling(&self, note: Option<&str>) -> Result<(), StoreError> {
        let marked = self.inner().mark(FIRST, FILLING, note).await;
        marked.map(drop).map_err(|trouble| trouble.unavailable(SEALING))
    }

    async fn filling(&self) -> Result<Option<String>, StoreError> {
        self.inner().note(FILLING).await.map_err(|trouble| trouble.unavailable(SEALING))
    }

    async fn sheets(&self) -> Result<Vec<SheetFound>, StoreError> {
        self.inner().read_sheets().await.map_err(|trouble| trouble.unavailable(READING_SHEETS))
    }

    async fn write_sheet(
        &self,
        name: &str,
        expected: Version,
        sheet: Option<&Sheet>,
    ) -> Result<SheetWritten, StoreError> {
        let written = self.inner().write_sheet(name, expected, sheet).await;
        written.map_err(|trouble| trouble.unavailable(WRITING_A_SHEET))
    }

    async fn checkup(&self) -> Result<Vec<Finding>, StoreError> {
        self.inner().checkup().await.map_err(|trouble| trouble.unavailable(CHECKING))
    }
}
