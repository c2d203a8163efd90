//! The nodes that work on this store, and whether the store is sealed. The note of a sealed store is in every
//! partition, because a script can only read its own.

use crate::failure::RedisFailure;
use crate::layout::{FIRST, VERSIONS};
use crate::row::text;
use crate::sweep::moment;
use crate::{RedisInner, RedisStore};
use async_trait::async_trait;
use futures_util::future::try_join_all;
use quittance_lifecycle::Timestamp;
use quittance_ports::membership::NODE_STATUS_LIFE;
use quittance_ports::{
    DocumentWritten, Finding, Member, Members, Membership, NodeStatus, SharedDocument, StoreError,
    StoredDocument, Version,
};
use quittance_record::{decode_node_status, encode_node_status};
use redis::Value;

const SIGNING_IN: &str = "signing in";
const SIGNING_OUT: &str = "signing out";
const LISTING_MEMBERS: &str = "calling the roll";
const SEALING: &str = "closing the store or opening it";
const READING_DOCUMENTS: &str = "reading the documents";
const WRITING_A_DOCUMENT: &str = "writing a document";
const CHECKING: &str = "looking at the settings of Redis";

/// The field with the note of a sealed store, in the hash of versions. The scripts read it.
const SEAL: &str = "seal";
const FILLING: &str = "filling";

impl RedisInner {
    fn node_statuses(&self) -> [String; 2] {
        [self.layout.name(FIRST, "seen"), self.layout.name(FIRST, "cards")]
    }

    async fn heartbeat(&self, node_status: &NodeStatus) -> Result<Timestamp, RedisFailure> {
        let (node, life) = (node_status.node.to_string(), NODE_STATUS_LIFE.as_millis().to_string());
        let written = encode_node_status(node_status);
        let args = [node.as_bytes(), &written, life.as_bytes()];
        let now = self.run_plain(&self.scripts.heartbeat, &self.node_statuses(), &args).await?;
        Ok(Timestamp::from_millis(moment(now)?.ok_or(RedisFailure::Garbled)?))
    }

    async fn leave(&self, node: u64) -> Result<(), RedisFailure> {
        let node = node.to_string();
        self.run_plain(&self.scripts.leave, &self.node_statuses(), &[node.as_bytes()]).await?;
        Ok(())
    }

    async fn members(&self) -> Result<Members, RedisFailure> {
        let life = NODE_STATUS_LIFE.as_millis().to_string();
        let answer = self.run_plain(&self.scripts.members, &self.node_statuses(), &[life.as_bytes()]).await?;
        let Value::Array(mut values) = answer else { return Err(RedisFailure::Garbled) };
        let signed = values.split_off(1.min(values.len()));
        let now = values.pop().map(moment).transpose()?.flatten().ok_or(RedisFailure::Garbled)?;
        let mut nodes = Vec::with_capacity(signed.len());
        for value in signed {
            let Value::Array(fields) = value else { return Err(RedisFailure::Garbled) };
            let [last_heartbeat, node_status] =
                <[Value; 2]>::try_from(fields).map_err(|_| RedisFailure::Garbled)?;
            let last_heartbeat =
                Timestamp::from_millis(moment(last_heartbeat)?.ok_or(RedisFailure::Garbled)?);
            // A status that cannot be read must not hide the others.
            match text(node_status)?.map(|node_status| decode_node_status(&node_status)) {
                Some(Ok(node_status)) => nodes.push(Member { node_status, seen: last_heartbeat }),
                Some(Err(error)) => tracing::debug!(%error, "the status of a node cannot be read"),
                None => {}
            }
        }
        nodes.sort_unstable_by_key(|signed| signed.node_status.node);
        Ok(Members { now: Timestamp::from_millis(now), nodes })
    }

    /// Seals or unseals all partitions, the first one last: its state is then true of all others.
    async fn seal(&self, note: Option<&str>) -> Result<(), RedisFailure> {
        let mark = |partition| self.mark(partition, SEAL, note);
        try_join_all(self.layout.all().skip(1).map(mark)).await?;
        mark(FIRST).await?;
        Ok(())
    }

    async fn note(&self, name: &str) -> Result<Option<String>, RedisFailure> {
        let mut command = redis::cmd("HGET");
        command.arg(self.layout.name(FIRST, VERSIONS)).arg(name);
        let note = text(self.ask(&command).await?)?;
        Ok(note.map(|note| String::from_utf8_lossy(&note).into_owned()))
    }

    async fn mark(&self, partition: u16, name: &str, note: Option<&str>) -> Result<Value, RedisFailure> {
        let versions = self.layout.name(partition, VERSIONS);
        let command = match note {
            Some(note) => redis::cmd("HSET").arg(versions).arg(name).arg(note).to_owned(),
            None => redis::cmd("HDEL").arg(versions).arg(name).to_owned(),
        };
        self.ask(&command).await
    }
}

#[async_trait]
impl Membership for RedisStore {
    async fn heartbeat(&self, node_status: &NodeStatus) -> Result<Timestamp, StoreError> {
        self.inner().heartbeat(node_status).await.map_err(|failure| failure.unavailable(SIGNING_IN))
    }

    async fn leave(&self, node: u64) -> Result<(), StoreError> {
        self.inner().leave(node).await.map_err(|failure| failure.unavailable(SIGNING_OUT))
    }

    async fn members(&self) -> Result<Members, StoreError> {
        self.inner().members().await.map_err(|failure| failure.unavailable(LISTING_MEMBERS))
    }

    async fn seal(&self, note: Option<&str>) -> Result<(), StoreError> {
        self.inner().seal(note).await.map_err(|failure| failure.unavailable(SEALING))
    }

    async fn sealed(&self) -> Result<Option<String>, StoreError> {
        self.inner().note(SEAL).await.map_err(|failure| failure.unavailable(SEALING))
    }

    async fn set_filling(&self, note: Option<&str>) -> Result<(), StoreError> {
        let marked = self.inner().mark(FIRST, FILLING, note).await;
        marked.map(drop).map_err(|failure| failure.unavailable(SEALING))
    }

    async fn filling(&self) -> Result<Option<String>, StoreError> {
        self.inner().note(FILLING).await.map_err(|failure| failure.unavailable(SEALING))
    }

    async fn documents(&self) -> Result<Vec<StoredDocument>, StoreError> {
        self.inner().read_documents().await.map_err(|failure| failure.unavailable(READING_DOCUMENTS))
    }

    async fn write_document(
        &self,
        name: &str,
        expected: Version,
        document: Option<&SharedDocument>,
    ) -> Result<DocumentWritten, StoreError> {
        let written = self.inner().write_document(name, expected, document).await;
        written.map_err(|failure| failure.unavailable(WRITING_A_DOCUMENT))
    }

    async fn checkup(&self) -> Result<Vec<Finding>, StoreError> {
        self.inner().checkup().await.map_err(|failure| failure.unavailable(CHECKING))
    }
}
