//! The nodes that work on this store, by the clock of the server, the documents that they share, and whether the
//! store is sealed.

use crate::PostgresStore;
use crate::batch;
use crate::checkup;
use crate::failure::PostgresError;
use crate::identity::SECRET;
use crate::lane::SqlParams;
use crate::notices::hex;
use crate::row::{self, column};
use async_trait::async_trait;
use quittance_lifecycle::Timestamp;
use quittance_ports::document::DOCUMENTS_MAX;
use quittance_ports::membership::NODE_STATUS_LIFE;
use quittance_ports::{
    DocumentWritten, Finding, Member, Members, Membership, NodeStatus, SharedDocument, StoreError,
    StoredDocument, Version,
};
use quittance_record::{decode_document, decode_node_status, encode_document, encode_node_status};
use tokio_postgres::types::Type;

const SIGNING: &str = "signing in";
const CALLING: &str = "calling the roll";
const SEALING: &str = "sealing the store";
const READING: &str = "reading the documents";
const WRITING: &str = "writing a document";
const LOOKING: &str = "looking at the server's settings";
const SHARING: &str = "sharing the secret of the nodes";

/// How often drawing a secret is tried. Another node draws at the same time at most once.
const DRAWS_MAX: usize = 4;

impl PostgresStore {
    /// The secret that all nodes share: `drawn`, unless another node has drawn one before.
    pub async fn shared_secret(&self, drawn: [u8; 32]) -> Result<[u8; 32], StoreError> {
        self.secret(drawn).await.map_err(|failure| failure.while_doing(SHARING))
    }

    /// Replaces the secret that the nodes share. The keys of orders depend on it, so this is only for a store without
    /// orders.
    pub async fn replace_secret(&self, secret: [u8; 32]) -> Result<(), StoreError> {
        let secret = &secret[..];
        let params: SqlParams<'_> = &[(&SECRET, Type::TEXT), (&secret, Type::BYTEA)];
        let replaced = self.shared().ask(&self.shared().statements.replace_secret, params).await;
        replaced.map(drop).map_err(|failure| failure.while_doing(SHARING))
    }

    /// The secret that all nodes share, or `None` if no node has drawn it yet.
    pub async fn secret_as_it_is(&self) -> Result<Option<[u8; 32]>, StoreError> {
        let record = async {
            let rows = self.shared().ask(&self.shared().statements.secret, &[(&SECRET, Type::TEXT)]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            let secret = column::<&[u8]>(row, 0)?.try_into();
            secret.map(Some).map_err(|_| PostgresError::Garbled("the secret is not 32 bytes long".into()))
        };
        record.await.map_err(|failure| failure.while_doing(SHARING))
    }

    async fn secret(&self, drawn: [u8; 32]) -> Result<[u8; 32], PostgresError> {
        let drawn = &drawn[..];
        let params: SqlParams<'_> = &[(&SECRET, Type::TEXT), (&drawn, Type::BYTEA)];
        let statements = &self.shared().statements;
        for draw in 0..DRAWS_MAX {
            // Read first: a server that takes no writes just now must not keep a node from starting.
            let rows = match draw {
                0 => self.shared().ask(&statements.secret, &params[..1]).await?,
                _ => self.shared().ask(&statements.share_secret, params).await?,
            };
            // Nothing, if another node drew while this statement ran: it is there now.
            if let Some(row) = rows.first() {
                let secret = column::<&[u8]>(row, 0)?;
                return secret
                    .try_into()
                    .map_err(|_| PostgresError::Garbled("the secret is not 32 bytes long".into()));
            }
        }
        Err(PostgresError::Contended)
    }

    async fn renew(&self, node_status: &NodeStatus) -> Result<Timestamp, PostgresError> {
        let (node, written) = (node_status.node.cast_signed(), encode_node_status(node_status));
        let life = i64::try_from(NODE_STATUS_LIFE.as_millis()).unwrap_or(i64::MAX);
        let params: SqlParams<'_> = &[(&node, Type::INT8), (&written, Type::BYTEA), (&life, Type::INT8)];
        let rows = self.shared().ask(&self.shared().statements.heartbeat, params).await?;
        let row = rows.first().ok_or_else(|| PostgresError::Garbled("it has no row with the time".into()))?;
        Ok(row::read_moment(column(row, 0)?))
    }

    async fn list_members(&self) -> Result<Members, PostgresError> {
        let rows = self.shared().ask(&self.shared().statements.members, &[]).await?;
        let mut members = Members::default();
        for row in &rows {
            members.now = row::read_moment(column(row, 0)?);
            let Some(node_status) = column::<Option<&[u8]>>(row, 1)? else { continue };
            // What a later version says of itself in another way is not understood here.
            let Ok(node_status) = decode_node_status(node_status) else { continue };
            members.nodes.push(Member { node_status, seen: row::read_moment(column(row, 2)?) });
        }
        members.nodes.sort_by_key(|signed| signed.node_status.node);
        Ok(members)
    }

    async fn close(&self, note: Option<&str>) -> Result<(), PostgresError> {
        let shared = self.shared();
        let Some(note) = note else { return shared.ask(&shared.statements.unseal, &[]).await.map(drop) };
        let wait = shared.settings.call_wait.as_millis().max(1).to_string();
        let seal = shared.statements.seal.replace("{wait}", &wait).replace("{note}", &hex(note.as_bytes()));
        shared.reader().run(&seal).await
    }

    async fn read_documents(&self) -> Result<Vec<StoredDocument>, PostgresError> {
        let rows = self.shared().ask(&self.shared().statements.documents, &[]).await?;
        let mut documents = Vec::with_capacity(rows.len());
        for row in &rows {
            let name = String::from_utf8(column::<&[u8]>(row, 0)?.to_vec());
            // What a later version has written in another way is not understood here.
            let (Ok(name), Ok(document)) = (name, decode_document(column(row, 2)?)) else { continue };
            documents.push(StoredDocument { name, version: row::version(column(row, 1)?), document });
        }
        Ok(documents)
    }

    async fn swap_document(
        &self,
        name: &str,
        expected: Version,
        document: Option<&SharedDocument>,
    ) -> Result<DocumentWritten, PostgresError> {
        let (name, expected, written) =
            (name.as_bytes(), expected.0.cast_signed(), document.map(encode_document));
        let capacity = row::count(DOCUMENTS_MAX as u64);
        let params: SqlParams<'_> = &[
            (&name, Type::BYTEA),
            (&expected, Type::INT8),
            (&written, Type::BYTEA),
            (&capacity, Type::INT8),
        ];
        let rows = self.shared().ask(&self.shared().statements.write_document, params).await?;
        batch::sealed(&rows)?;
        Ok(match (column::<Option<i64>>(&rows[0], 1)?, column(&rows[0], 2)?) {
            (Some(version), _) => DocumentWritten::Done(row::version(version)),
            (None, true) => DocumentWritten::NoRoom,
            (None, false) => DocumentWritten::Conflict,
        })
    }

    async fn note(&self, statement: &str) -> Result<Option<String>, PostgresError> {
        let rows = self.shared().ask(statement, &[]).await?;
        let read = |row| Ok(String::from_utf8_lossy(column(row, 0)?).into_owned());
        rows.first().map(read).transpose()
    }
}

#[async_trait]
impl Membership for PostgresStore {
    async fn heartbeat(&self, node_status: &NodeStatus) -> Result<Timestamp, StoreError> {
        self.renew(node_status).await.map_err(|failure| failure.while_doing(SIGNING))
    }

    async fn leave(&self, node: u64) -> Result<(), StoreError> {
        let node = node.cast_signed();
        let gone = self.shared().ask(&self.shared().statements.leave, &[(&node, Type::INT8)]).await;
        gone.map(drop).map_err(|failure| failure.while_doing(SIGNING))
    }

    async fn members(&self) -> Result<Members, StoreError> {
        self.list_members().await.map_err(|failure| failure.while_doing(CALLING))
    }

    async fn seal(&self, note: Option<&str>) -> Result<(), StoreError> {
        self.close(note).await.map_err(|failure| failure.while_doing(SEALING))
    }

    async fn sealed(&self) -> Result<Option<String>, StoreError> {
        self.note(&self.shared().statements.sealed).await.map_err(|failure| failure.while_doing(SEALING))
    }

    async fn set_filling(&self, note: Option<&str>) -> Result<(), StoreError> {
        let shared = self.shared();
        let set = match note.map(str::as_bytes) {
            Some(note) => shared.ask(&shared.statements.set_filling, &[(&note, Type::BYTEA)]).await,
            None => shared.ask(&shared.statements.filled, &[]).await,
        };
        set.map(drop).map_err(|failure| failure.while_doing(SEALING))
    }

    async fn filling(&self) -> Result<Option<String>, StoreError> {
        self.note(&self.shared().statements.filling).await.map_err(|failure| failure.while_doing(SEALING))
    }

    async fn documents(&self) -> Result<Vec<StoredDocument>, StoreError> {
        self.read_documents().await.map_err(|failure| failure.while_doing(READING))
    }

    async fn write_document(
        &self,
        name: &str,
        expected: Version,
        document: Option<&SharedDocument>,
    ) -> Result<DocumentWritten, StoreError> {
        self.swap_document(name, expected, document).await.map_err(|failure| failure.while_doing(WRITING))
    }

    async fn checkup(&self) -> Result<Vec<Finding>, StoreError> {
        checkup::findings(self.shared()).await.map_err(|failure| failure.while_doing(LOOKING))
    }
}
