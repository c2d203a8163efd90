//! Creates and updates the tables, and says why a store does not open. Migrations are numbered, plain SQL. All
//! missing ones run in one transaction under a lock, so ten nodes that start together run them once.

use crate::failure::PostgresError;
use crate::lane::{Dial, LaneRefusal, SqlParams};
use crate::shape::{self, SchemaShape};
use crate::statements::quote;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Transaction};

/// The oldest supported server version, in the server's own numbering.
const SERVER_MIN: i32 = 140_000;
/// The number of the lock: "quit" and "tanc" as bytes, so that no other program uses the same lock.
const LOCK: i64 = 0x7175_6974_7461_6e63;

/// The migrations in order. An existing one never changes. `{schema}` stands for the quoted name of the schema. If
/// the derived columns of an order change, a new migration must derive them again.
pub(crate) const STEPS: &[(&str, &str)] = &[
    ("0001_orders", include_str!("../migrations/0001_orders.sql")),
    ("0002_tenants", include_str!("../migrations/0002_tenants.sql")),
    ("0003_leases", include_str!("../migrations/0003_leases.sql")),
];

/// The oldest schema version whose programs still work after each migration.
const USABLE_FROM: &[i32] = &[1, 2, 2];

/// The table that lists the migrations that have run.
const LEDGER: &str = "
CREATE TABLE IF NOT EXISTS {schema}.schema_versions (
    version     integer PRIMARY KEY,
    name        text NOT NULL,
    usable_from integer NOT NULL, -- the oldest schema whose programs can still work here
    applied_at  timestamptz NOT NULL DEFAULT now()
)";

/// Why a store does not open.
#[derive(Debug, thiserror::Error)]
pub enum PostgresOpenError {
    #[error(
        "PostgreSQL at {address} cannot be reached: {why}; check the address, and that the server runs and accepts connections"
    )]
    Unreachable { address: String, why: String },
    #[error("PostgreSQL at {address} rejects the login: {why}; check the user, the password and pg_hba.conf")]
    Refused { address: String, why: String },
    #[error("PostgreSQL at {address} has no such database: {why}; make it with createdb")]
    NoDatabase { address: String, why: String },
    #[error("the certificate authority for {address} cannot be used: {why}")]
    BadCa { address: String, why: String },
    #[error("PostgreSQL at {address} is of version {found}, and 14 is the oldest that Quittance works with")]
    ServerTooOld { address: String, found: String },
    #[error(
        "the schema at {address} is of version {found}, and this version of Quittance knows up to {known}: use the version \
         that made it, or a later one"
    )]
    Newer { address: String, found: i32, known: i32 },
    #[error(
        "the schema at {address} is of version {found}, and this version of Quittance needs {known}: run `quittance \
         store migrate`, or let it migrate by itself (store.migrate = true)"
    )]
    Older { address: String, found: i32, known: i32 },
    #[error(
        "the user may not make or change the schema at {address}: {why}; let its owner run `quittance store migrate`, and grant \
         us its use"
    )]
    NotAllowed { address: String, why: String },
    #[error(
        "the tables of Quittance at {address} are not whole: {differs}. Restore the database from a backup, or, if nothing in the schema is \
         worth keeping, remove it (`DROP SCHEMA ... CASCADE`) and run `quittance store migrate`. If a later version of Quittance made the \
         tables, run `quittance store migrate` of that version. Nothing was changed"
    )]
    Incomplete { address: String, differs: String },
    #[error("PostgreSQL at {address} can only be read: {why}")]
    ReadOnly { address: String, why: String },
    #[error("PostgreSQL at {address} has failed: {why}")]
    Failed { address: String, why: String },
}

/// The result of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version before; zero if there was no schema.
    pub from: i32,
    pub to: i32,
    /// The migrations that have run, in order.
    pub applied: Vec<&'static str>,
}

/// The version of a schema.
#[derive(Clone, Copy)]
struct SchemaVersion {
    version: i32,
    usable_from: i32,
    /// The last version in the schema's own list. It is less than `version` if the list is lost and the tables exist.
    listed: i32,
}

pub(crate) struct Schema<'a> {
    pub(crate) name: &'a str,
    /// The address of the server, for messages.
    pub(crate) address: &'a str,
}

pub(crate) fn known() -> i32 {
    i32::try_from(STEPS.len()).expect("there are few steps")
}

/// The SQL that records each migration, for the quoted name of the schema.
fn notes(schema: &str) -> impl Iterator<Item = String> {
    (1..).zip(STEPS.iter().zip(USABLE_FROM)).map(move |(version, ((name, _), usable_from))| {
        format!(
            "INSERT INTO {schema}.schema_versions (version, name, usable_from) VALUES ({version}, '{name}', {usable_from})"
        )
    })
}

/// Each migration and its record, for the quoted name of the schema.
fn steps(schema: &str) -> impl Iterator<Item = String> {
    STEPS
        .iter()
        .zip(notes(schema))
        .map(move |((_, sql), note)| format!("{}\n{note};\n", sql.replace("{schema}", schema).trim_end()))
}

/// The script that creates a schema of this name, as one transaction.
pub(crate) fn script(name: &str) -> String {
    let schema = quote(name);
    let mut script = format!("BEGIN;\nCREATE SCHEMA IF NOT EXISTS {schema};\n");
    script.push_str(LEDGER.replace("{schema}", &schema).trim_start());
    script.push_str(";\n");
    for ((name, _), step) in STEPS.iter().zip(steps(&schema)) {
        script.push_str(&format!("\n-- {name}\n{step}"));
    }
    script.push_str("COMMIT;\n");
    script
}

impl Schema<'_> {
    pub(crate) async fn dial(&self, dial: &Dial) -> Result<Client, PostgresOpenError> {
        let (client, wire) = dial.connect().await.map_err(|refused| self.refused(&refused))?;
        // It ends with the client, and its end is reported to the calls.
        drop(tokio::spawn(wire));
        Ok(client)
    }

    fn refused(&self, refused: &LaneRefusal) -> PostgresOpenError {
        match refused {
            LaneRefusal::Silent(_) => PostgresOpenError::Unreachable {
                address: self.address.into(),
                why: refused.failure().to_string(),
            },
            LaneRefusal::Replied(error) => self.failed(error),
        }
    }

    fn failed(&self, error: &tokio_postgres::Error) -> PostgresOpenError {
        let failure = PostgresError::of(error);
        let (address, why) = (self.address.to_owned(), failure.to_string());
        match error.code() {
            Some(code) if *code == SqlState::INVALID_CATALOG_NAME => {
                PostgresOpenError::NoDatabase { address, why }
            }
            Some(code) if code.code().starts_with("28") => PostgresOpenError::Refused { address, why },
            Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                PostgresOpenError::NotAllowed { address, why }
            }
            Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
                PostgresOpenError::ReadOnly { address, why }
            }
            // It is starting up, shutting down, or full.
            Some(code) if ["57P", "53", "08"].iter().any(|class| code.code().starts_with(class)) => {
                PostgresOpenError::Unreachable { address, why }
            }
            Some(_) => PostgresOpenError::Failed { address, why },
            None => match failure {
                PostgresError::Away(why)
                    if why.starts_with("authentication") || why.contains("password missing") =>
                {
                    PostgresOpenError::Refused { address, why }
                }
                PostgresError::Away(why) => PostgresOpenError::Unreachable { address, why },
                _ => PostgresOpenError::Unreachable { address, why },
            },
        }
    }

    /// Makes sure that the tables exist in a supported version.
    pub(crate) async fn settle(&self, client: &mut Client, migrate: bool) -> Result<(), PostgresOpenError> {
        self.check_server(client).await?;
        let record = self.version(client).await?;
        let version = record.map_or(0, |record| record.version);
        let is_unlisted = record.is_some_and(|record| record.listed < record.version);
        if !(self.is_older(record)? || is_unlisted && migrate) {
            return Ok(());
        }
        if !migrate {
            return Err(PostgresOpenError::Older {
                address: self.address.into(),
                found: version,
                known: known(),
            });
        }
        self.migrate(client).await.map(drop)
    }

    async fn check_server(&self, client: &Client) -> Result<(), PostgresOpenError> {
        let failed = |error| self.failed(&error);
        let ask = "SELECT current_setting('server_version_num')::int4, current_setting('server_version')";
        let row = client.query_typed_one(ask, &[]).await.map_err(failed)?;
        let (number, record): (i32, String) =
            (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
        if number < SERVER_MIN {
            return Err(PostgresOpenError::ServerTooOld { address: self.address.into(), found: record });
        }
        Ok(())
    }

    /// Whether the schema must be updated. A newer schema is accepted if its list says that this version can use it.
    fn is_older(&self, record: Option<SchemaVersion>) -> Result<bool, PostgresOpenError> {
        match record {
            Some(record) if record.version > known() && record.usable_from > known() => {
                Err(PostgresOpenError::Newer {
                    address: self.address.into(),
                    found: record.version,
                    known: known(),
                })
            }
            Some(record) => Ok(record.version < known()),
            None => Ok(true),
        }
    }

    /// The version of the schema. If the list has fewer migrations than this version knows, the tables themselves are
    /// checked, because they may exist although their list is lost.
    async fn version(&self, client: &Client) -> Result<Option<SchemaVersion>, PostgresOpenError> {
        let record = self.listed_version(client).await?;
        let listed = record.map_or(0, |record| record.version);
        if listed >= known() {
            return Ok(record);
        }
        match shape::look(client, self.name).await.map_err(|error| self.failed(&error))? {
            SchemaShape::Whole(version) if version > listed => {
                let usable_from = USABLE_FROM[usize::try_from(version - 1).expect("steps count from 1")];
                Ok(Some(SchemaVersion { version, usable_from, listed }))
            }
            // An older schema that lacks something says so when the next step fails.
            SchemaShape::Differs(differs) if listed == 0 => {
                Err(PostgresOpenError::Incomplete { address: self.address.into(), differs })
            }
            SchemaShape::Nothing | SchemaShape::Whole(_) | SchemaShape::Differs(_) => Ok(record),
        }
    }

    async fn listed_version(&self, client: &Client) -> Result<Option<SchemaVersion>, PostgresOpenError> {
        let failed = |error| self.failed(&error);
        // Read as a table: what a session remembers of names may be from before it waited for the lock.
        let there = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n \
                     ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'schema_versions')";
        let row = client.query_typed_one(there, &[(&self.name, Type::TEXT)]).await;
        if !row.and_then(|row| row.try_get::<_, bool>(0)).map_err(failed)? {
            return Ok(None);
        }
        let ledger = format!("{}.schema_versions", quote(self.name));
        let ask = format!("SELECT version, usable_from FROM {ledger} ORDER BY version DESC LIMIT 1");
        let Some(row) = client.query_typed_opt(&ask, &[]).await.map_err(failed)? else { return Ok(None) };
        let version = row.try_get(0).map_err(failed)?;
        let usable_from = row.try_get(1).map_err(failed)?;
        Ok(Some(SchemaVersion { version, usable_from, listed: version }))
    }

    pub(crate) async fn migrate(&self, client: &mut Client) -> Result<Migrated, PostgresOpenError> {
        self.check_server(client).await?;
        let transaction = client.transaction().await.map_err(|error| self.failed(&error))?;
        // A process that freezes in the middle of it must not keep the others out for ever.
        let begin = format!(
            "SET LOCAL idle_in_transaction_session_timeout = '60s'; SELECT pg_advisory_xact_lock({LOCK})"
        );
        transaction.batch_execute(&begin).await.map_err(|error| self.failed(&error))?;
        let record = self.version(transaction.client()).await?;
        let (from, listed) = record.map_or((0, 0), |record| (record.version, record.listed));
        let is_older = self.is_older(record)?;
        if !is_older && listed == from {
            self.check_tables(transaction.client()).await?;
            return Ok(Migrated { from, to: from, applied: Vec::new() });
        }
        let failed = |error| self.failed(&error);
        self.list_versions(&transaction, listed, from).await.map_err(failed)?;
        let applied = self.take_steps(&transaction, from).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        if listed < from {
            tracing::warn!(
                listed,
                record = from,
                "the list of the schema's versions (schema_versions) was lost, and was written again: its tables are whole"
            );
        }
        if is_older {
            tracing::info!(from, to = known(), "the schema of the PostgreSQL store was migrated");
        }
        Ok(Migrated { from, to: from.max(known()), applied })
    }

    /// Fails if tables or functions are missing that the list of versions names.
    async fn check_tables(&self, client: &Client) -> Result<(), PostgresOpenError> {
        let (relations, functions) = (shape::relations(), shape::functions());
        let params: SqlParams<'_> =
            &[(&self.name, Type::TEXT), (&relations, Type::TEXT_ARRAY), (&functions, Type::TEXT_ARRAY)];
        let missing = async {
            let rows = client.query_typed(shape::MISSING, params).await?;
            rows.iter().map(|row| row.try_get::<_, String>(0)).collect::<Result<Vec<_>, _>>()
        };
        let missing = missing.await.map_err(|error| self.failed(&error))?;
        if missing.is_empty() {
            return Ok(());
        }
        let differs = format!("missing are {}", shape::name_some(missing));
        Err(PostgresOpenError::Incomplete { address: self.address.into(), differs })
    }

    /// Records again that the migrations after `listed`, up to `taken`, have run.
    async fn list_versions(
        &self,
        transaction: &Transaction<'_>,
        listed: i32,
        taken: i32,
    ) -> Result<(), tokio_postgres::Error> {
        if listed == taken {
            return Ok(());
        }
        let schema = quote(self.name);
        transaction.batch_execute(&LEDGER.replace("{schema}", &schema)).await?;
        for (version, note) in (1..).zip(notes(&schema)) {
            if listed < version && version <= taken {
                transaction.batch_execute(&format!("{note} ON CONFLICT (version) DO NOTHING")).await?;
            }
        }
        Ok(())
    }

    async fn take_steps(
        &self,
        transaction: &Transaction<'_>,
        from: i32,
    ) -> Result<Vec<&'static str>, tokio_postgres::Error> {
        let schema = quote(self.name);
        // To make a schema if it is not there needs the right to make one even if it is.
        let there = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)";
        let row = transaction.query_typed(there, &[(&self.name, Type::TEXT)]).await?;
        if !row.first().map_or(Ok(false), |row| row.try_get::<_, bool>(0))? {
            transaction.batch_execute(&format!("CREATE SCHEMA {schema}")).await?;
        }
        transaction.batch_execute(&LEDGER.replace("{schema}", &schema)).await?;
        let mut applied = Vec::new();
        let is_new = from == 0;
        for (version, ((name, _), step)) in (1..).zip(STEPS.iter().zip(steps(&schema))) {
            if version > from {
                transaction.batch_execute(&step).await?;
                applied.push(*name);
            }
        }
        if is_new {
            // Tables that were dropped and made again must not count as those before did: a slow node could take a
            // new write for the one that it knows.
            let ahead = format!(
                "SELECT setval('{}.versions', (extract(epoch FROM clock_timestamp()) * 1000000)::int8)",
                schema.replace('\'', "''")
            );
            transaction.batch_execute(&ahead).await?;
        }
        Ok(applied)
    }
}
