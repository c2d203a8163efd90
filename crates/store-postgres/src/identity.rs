//! The identity of this store, kept in the table of the secrets so that both are lost together. If a node knows
//! another identity, a later epoch or another orders file, its commits are refused until it has put back its orders
//! in hand.

use crate::PostgresStore;
use crate::failure::PostgresError;
use crate::lane::SqlParams;
use crate::notices::hex;
use crate::row::column;
use quittance_lifecycle::Timestamp;
use quittance_ports::membership::RECOVERY_SPAN;
use quittance_ports::{MarkRequest, StoreError, StoreMark};
use std::sync::PoisonError;
use std::time::Duration;
use tokio_postgres::types::Type;

const MARKING: &str = "looking at the identity of the store";

/// The name of the shared secret.
pub(crate) const SECRET: &str = "callbacks";
const IDENTITY: &str = "identity";
const EPOCH: &str = "epoch";
/// The name of the previous identity.
const FORMER: &str = "former";
/// The name of the note about the secret: when it was drawn, and its first bytes.
const DRAWN: &str = "drawn";
/// The name of the end of a recovery, until which nodes put back their orders in hand.
const RECOVERY: &str = "recovery";
/// The name of the file of the orders, which changes with `TRUNCATE` and `VACUUM FULL`.
const FILE: &str = "orders file";

/// The state against which commits are checked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fence {
    /// The identity and the epoch that this node trusts, if any.
    pub(crate) known: Option<([u8; 16], u64)>,
    /// The file of the orders at the last look.
    known_file: u32,
    /// The file of the orders that commits require.
    pub(crate) file: u32,
}

/// The stored marks.
#[derive(Default)]
struct MarkRow {
    identity: Option<[u8; 16]>,
    epoch: u64,
    former: Option<[u8; 16]>,
    secrets: Vec<[u8; 32]>,
    /// The secret that nodes use.
    standing: Option<[u8; 32]>,
    /// When a secret was drawn, and its first bytes.
    drawn: Option<(Timestamp, [u8; 8])>,
    recovery: i64,
    noted_file: Option<u32>,
    now: i64,
    file: u32,
    has_orders: bool,
}

/// What happens to the secret that all nodes use.
enum SecretStep {
    Stays,
    /// The store has none: this secret becomes the first, drawn at this time.
    First([u8; 32], Timestamp),
    /// The stored secret gets a note that it was drawn at this time.
    Note([u8; 32], Timestamp),
    /// The stored secret is younger than the node's own, and is replaced.
    GivesWay {
        standing: [u8; 32],
        own: [u8; 32],
        at: Timestamp,
    },
}

/// The note about when a secret was drawn.
fn drawn_note(secret: &[u8; 32], at: Timestamp) -> Vec<u8> {
    [&at.as_millis().to_be_bytes()[..], &secret[..8]].concat()
}

impl MarkRow {
    /// Whether the store has this identity but went back: its epoch is not later than the known one, or all its
    /// orders disappeared at once.
    fn went_back(&self, known: ([u8; 16], u64)) -> bool {
        let is_emptied = self.noted_file.is_some_and(|noted| noted != self.file) && !self.has_orders;
        self.identity == Some(known.0) && (self.epoch <= known.1 || is_emptied)
    }

    /// Since when the stored secret is used. A secret that was stored by hand counts as drawn now.
    fn standing_since(&self) -> Timestamp {
        let is_noted = |begins: [u8; 8]| self.standing.is_some_and(|secret| secret[..8] == begins);
        let noted = self.drawn.filter(|(_, begins)| is_noted(*begins)).map(|(at, _)| at);
        noted.unwrap_or_else(|| Timestamp::from_millis(u64::try_from(self.now).unwrap_or(0)))
    }

    /// The step for the secret that nodes use.
    fn step(&self, request: &MarkRequest<'_>) -> SecretStep {
        let Some(own) = request.secrets.first().copied() else { return SecretStep::Stays };
        let since = self.standing_since();
        let now = Timestamp::from_millis(u64::try_from(self.now).unwrap_or(0));
        let is_older = request.drawn_at.is_some_and(|drawn_at| drawn_at < since);
        match (self.standing, request.drawn_at) {
            (None, drawn_at) => SecretStep::First(own, drawn_at.unwrap_or(now)),
            (Some(standing), _) if standing == own => {
                let at = request.drawn_at.unwrap_or(since).min(since);
                let is_noted = self.drawn.is_some_and(|(noted, begins)| noted == at && own[..8] == begins);
                if is_noted { SecretStep::Stays } else { SecretStep::Note(own, at) }
            }
            (Some(standing), Some(at)) if is_older && (request.is_at_work || now < since + RECOVERY_SPAN) => {
                SecretStep::GivesWay { standing, own, at }
            }
            _ => SecretStep::Stays,
        }
    }

    fn mark(self) -> Result<StoreMark, PostgresError> {
        let recovery = u64::try_from(self.recovery.saturating_sub(self.now)).unwrap_or(0);
        let drawn_at = self.standing_since();
        Ok(StoreMark {
            identity: self.identity.ok_or(PostgresError::Contended)?,
            epoch: self.epoch,
            secrets: self.secrets,
            drawn_at,
            recovery: Duration::from_millis(recovery),
        })
    }
}

impl PostgresStore {
    /// The identity and the epoch of this store. If the identity is lost, or the epoch is behind what the node knows,
    /// the drawn identity replaces it, and a recovery begins. Dropped tables are made again first, if the settings
    /// allow it.
    pub async fn mark(&self, request: MarkRequest<'_>) -> Result<StoreMark, StoreError> {
        let marked = async {
            self.look_at_tables().await?;
            self.try_mark(&request).await
        };
        marked.await.map_err(|failure| failure.while_doing(MARKING))
    }

    /// Sets the identity and epoch that commits require. A store with another identity or an earlier epoch refuses
    /// them.
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
        let step = record.step(request);
        let is_drawn = matches!(step, SecretStep::First(..)) && request.drawn_at.is_none();
        let gives_way = matches!(step, SecretStep::GivesWay { .. });
        if !(is_new || went_back || begins_recovery || file_is_new || new_secrets || request.is_putting_back)
            && matches!(step, SecretStep::Stays)
        {
            return record.mark();
        }
        // A reader of the new identity must find the recovery, too.
        if begins_recovery || request.is_putting_back || is_drawn || gives_way {
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
        self.take_step(step).await?;
        if let Some(identity) = record.identity.filter(|_| gives_way && !went_back) {
            // No node may continue with the other secret before it has looked.
            self.note_mark(FORMER, &identity).await?;
            let (old, new) = (&identity[..], &request.drawn[..]);
            self.shared().ask(&statements.renew, &[(&old, Type::BYTEA), (&new, Type::BYTEA)]).await?;
        }
        for secret in request.secrets {
            self.share(&format!("{SECRET}/{}", hex(&secret[..8])), secret).await?;
        }
        self.read_mark().await?.mark()
    }

    async fn take_step(&self, step: SecretStep) -> Result<(), PostgresError> {
        let statements = &self.shared().statements;
        match step {
            SecretStep::Stays => {}
            SecretStep::First(secret, at) => {
                let (secret, note) = (&secret[..], &drawn_note(&secret, at)[..]);
                let params: SqlParams<'_> = &[(&secret, Type::BYTEA), (&note, Type::BYTEA)];
                self.shared().ask(&statements.first_secret, params).await?;
            }
            SecretStep::Note(secret, at) => self.note_mark(DRAWN, &drawn_note(&secret, at)).await?,
            SecretStep::GivesWay { standing, own, at } => {
                // It proves still.
                self.share(&format!("{SECRET}/{}", hex(&standing[..8])), &standing).await?;
                let (old, new, note) = (&standing[..], &own[..], &drawn_note(&own, at)[..]);
                let params: SqlParams<'_> = &[(&old, Type::BYTEA), (&new, Type::BYTEA), (&note, Type::BYTEA)];
                self.shared().ask(&statements.older_secret, params).await?;
            }
        }
        Ok(())
    }

    /// Stores a secret under this name, unless there is one.
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
                DRAWN => record.drawn = read_drawn(value),
                name if name.starts_with(SECRET) => {
                    if name == SECRET {
                        record.standing = value.try_into().ok();
                    }
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

fn read_drawn(note: &[u8]) -> Option<(Timestamp, [u8; 8])> {
    let (at, begins) = note.split_at_checked(8)?;
    Some((Timestamp::from_millis(u64::from_be_bytes(at.try_into().ok()?)), begins.try_into().ok()?))
}
