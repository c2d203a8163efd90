//! The identity of this store, in the table of the secrets because it is lost with them. A commit of a node that
//! knows another identity, or more of it, or other files, is refused until that node has put back what it had in
//! hand.

use crate::PostgresStore;
use crate::failure::PostgresError;
use crate::lane::SqlParams;
use crate::notices::hex;
use crate::row::column;
use quittance_ports::membership::RECOVERY_SPAN;
use quittance_ports::{MarkRequest, StoreError, StoreMark};
use std::sync::PoisonError;
use std::time::Duration;
use tokio_postgres::types::Type;

const MARKING: &str = "looking at the identity of the store";

/// The names of what is known.
pub(crate) const SECRET: &str = "callbacks";
const IDENTITY: &str = "identity";
const EPOCH: &str = "epoch";
/// The identity before this one.
const FORMER: &str = "former";
/// Until when nodes put back what they had in hand.
const RECOVERY: &str = "recovery";
/// The file that the orders are in: another, after they were truncated, and after `VACUUM FULL`.
const FILE: &str = "orders file";

/// What commits are held against.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fence {
    /// The identity and the epoch that this node knows, once it does.
    pub(crate) known: Option<([u8; 16], u64)>,
    /// The file of the orders, when the identity was last looked at, and that which commits are for.
    known_file: u32,
    pub(crate) file: u32,
}

/// What stands in the store.
#[derive(Default)]
struct MarkRow {
    identity: Option<[u8; 16]>,
    epoch: u64,
    former: Option<[u8; 16]>,
    secrets: Vec<[u8; 32]>,
    recovery: i64,
    noted_file: Option<u32>,
    now: i64,
    file: u32,
    has_orders: bool,
}

impl MarkRow {
    /// Whether it has this identity, and has come less far than the node knows; or all its orders are gone at once.
    fn went_back(&self, known: ([u8; 16], u64)) -> bool {
        let is_emptied = self.noted_file.is_some_and(|noted| noted != self.file) && !self.has_orders;
        self.identity == Some(known.0) && (self.epoch <= known.1 || is_emptied)
    }

    fn mark(self) -> Result<StoreMark, PostgresError> {
        let recovery = u64::try_from(self.recovery.saturating_sub(self.now)).unwrap_or(0);
        Ok(StoreMark {
            identity: self.identity.ok_or(PostgresError::Contended)?,
            epoch: self.epoch,
            secrets: self.secrets,
            recovery: Duration::from_millis(recovery),
        })
    }
}

impl PostgresStore {
    /// The identity of this store and how far it has come. Where that is gone, or less than the node knows, what was
    /// drawn is its identity from now on, and a recovery begins. Tables that were dropped are made again first, if
    /// the settings allow it.
    pub async fn mark(&self, request: MarkRequest<'_>) -> Result<StoreMark, StoreError> {
        let marked = async {
            self.look_at_tables().await?;
            self.try_mark(&request).await
        };
        marked.await.map_err(|failure| failure.while_doing(MARKING))
    }

    /// From now on commits are for this store: one that is another, or has come less far, refuses them.
    pub fn trust(&self, identity: [u8; 16], epoch: u64) {
        let mut fence = self.shared().fence.lock().unwrap_or_else(PoisonError::into_inner);
        fence.known = Some((identity, epoch));
        fence.file = fence.known_file;
    }

    async fn try_mark(&self, request: &MarkRequest<'_>) -> Result<StoreMark, PostgresError> {
        let statements = &self.shared().statements;
        self.shared().ask(&statements.epoch, &[]).await?;
        let record = self.read_mark().await?;
        self.shared().fence.lock().unwrap_or_else(PoisonError::into_inner).known_file = record.file;
        let is_new = record.identity.is_none();
        let went_back = request.known.is_some_and(|known| record.went_back(known));
        let is_other = |known: ([u8; 16], u64)| went_back || record.identity != Some(known.0);
        let begins_recovery =
            request.known.is_some_and(|known| is_other(known) && record.former != Some(known.0));
        let file_is_new = record.noted_file != Some(record.file);
        let new_secrets = request.secrets.iter().any(|secret| !record.secrets.contains(secret));
        if !(is_new || went_back || begins_recovery || file_is_new || new_secrets || request.is_putting_back)
        {
            return record.mark();
        }
        // A reader of the new identity must find the recovery, too.
        if begins_recovery || request.is_putting_back {
            let span = i64::try_from(RECOVERY_SPAN.as_millis()).unwrap_or(i64::MAX);
            self.shared().ask(&statements.begin_recovery, &[(&span, Type::INT8)]).await?;
        }
        if let Some((identity, epoch)) = request.known.filter(|_| begins_recovery) {
            self.note_mark(FORMER, &identity).await?;
            if went_back {
                self.note_mark(EPOCH, &epoch.saturating_add(1).max(record.epoch).to_be_bytes()).await?;
                let (old, new) = (&identity[..], &request.drawn[..]);
                self.shared().ask(&statements.renew, &[(&old, Type::BYTEA), (&new, Type::BYTEA)]).await?;
            }
        }
        if is_new {
            self.share(IDENTITY, &request.drawn).await?;
        }
        if file_is_new {
            self.note_mark(FILE, &record.file.to_be_bytes()).await?;
        }
        for (n, secret) in request.secrets.iter().enumerate() {
            if n == 0 {
                self.share(SECRET, secret).await?;
            }
            self.share(&format!("{SECRET}/{}", hex(&secret[..8])), secret).await?;
        }
        self.read_mark().await?.mark()
    }

    /// Unless it is there.
    async fn share(&self, name: &str, secret: &[u8]) -> Result<(), PostgresError> {
        let params: SqlParams<'_> = &[(&name, Type::TEXT), (&secret, Type::BYTEA)];
        self.shared().ask(&self.shared().statements.share_secret, params).await.map(drop)
    }

    async fn note_mark(&self, name: &str, value: &[u8]) -> Result<(), PostgresError> {
        let params: SqlParams<'_> = &[(&name, Type::TEXT), (&value, Type::BYTEA)];
        self.shared().ask(&self.shared().statements.note_mark, params).await.map(drop)
    }

    async fn read_mark(&self) -> Result<MarkRow, PostgresError> {
        let rows = self.shared().ask(&self.shared().statements.mark, &[]).await?;
        let mut record = MarkRow::default();
        for row in &rows {
            let (name, value) = (column::<&str>(row, 0)?, column::<&[u8]>(row, 1)?);
            (record.now, record.file, record.has_orders) =
                (column(row, 2)?, column(row, 3)?, column(row, 4)?);
            let garbled = |_| PostgresError::Garbled(format!("its {name}"));
            match name {
                IDENTITY => record.identity = Some(value.try_into().map_err(garbled)?),
                FORMER => record.former = Some(value.try_into().map_err(garbled)?),
                EPOCH => record.epoch = u64::from_be_bytes(value.try_into().map_err(garbled)?),
                RECOVERY => record.recovery = i64::from_be_bytes(value.try_into().map_err(garbled)?),
                FILE => record.noted_file = Some(u32::from_be_bytes(value.try_into().map_err(garbled)?)),
                name if name.starts_with(SECRET) => {
                    if let Ok(secret) = value.try_into()
                        && !record.secrets.contains(&secret)
                    {
                        record.secrets.push(secret);
                    }
                }
                _ => {}
            }
        }
        Ok(record)
    }
}
