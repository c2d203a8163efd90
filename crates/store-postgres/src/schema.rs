//! How the tables come to be what this version knows, and why a store does not open. Steps are numbered, plain SQL, and all
//! that are missing are taken in one transaction under a lock, so ten nodes that start at once take them once.

use crate::lane::{Dial, Refused};
use crate::statements::quote;
use crate::trouble::Trouble;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Transaction};

/// The oldest server that is known to do what is asked of it, as it numbers itself.
const SERVER_MIN: i32 = 140_000;
/// "quit" and "tanc", so that nobody else takes the same lock.
const LOCK: i64 = 0x7175_6974_7461_6e63;

/// In this order; none is ever changed. `{schema}` stands for the quoted name of the schema. Whoever changes how an order
/// derives what stands beside its record adds a step that derives it anew.
pub(crate) const STEPS: &[(&str, &str)] = &[
    ("0001_orders", include_str!("../migrations/0001_orders.sql")),
    ("0002_tenants", include_str!("../migrations/0002_tenants.sql")),
];

/// The oldest version of the schema whose programs can still work after each step.
const USABLE_FROM: &[i32] = &[1, 2];

/// The table that says which steps were taken, itself.
const LEDGER: &str = "
CREATE TABLE IF NOT EXISTS {schema}.schema_versions (
    version     integer PRIMARY KEY,
    name        text NOT NULL,
    usable_from integer NOT NULL, -- the oldest schema whose programs can still work here
    applied_at  timestamptz NOT NULL DEFAULT now()
)";

/// Why a store does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("PostgreSQL at {address} cannot be reached: {why}")]
    Unreachable { address: String, why: String },
    #[error(
        "PostgreSQL at {address} does not let us in: {why}; check the user, the password and pg_hba.conf"
    )]
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
    #[error("PostgreSQL at {address} can only be read: {why}")]
    ReadOnly { address: String, why: String },
    #[error("PostgreSQL at {address} has failed: {why}")]
    Failed { address: String, why: String },
}

/// What a migration has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Zero where there was nothing.
    pub from: i32,
    pub to: i32,
    /// The steps that were taken, in order.
    pub applied: Vec<&'static str>,
}

/// Where a schema stands.
#[derive(Clone, Copy)]
struct Standing {
    version: i32,
    usable_from: i32,
}

pub(crate) struct Schema<'a> {
    pub(crate) name: &'a str,
    /// For messages.
    pub(crate) address: &'a str,
}

pub(crate) fn known() -> i32 {
    i32::try_from(STEPS.len()).expect("there are few steps")
}

/// Each step, and the note that it was taken, with the quoted name of the schema.
fn steps(schema: &str) -> impl Iterator<Item = String> {
    (1..).zip(STEPS.iter().zip(USABLE_FROM)).map(move |(version, ((name, sql), usable_from))| {
        format!(
            "{}\nINSERT INTO {schema}.schema_versions (version, name, usable_from) VALUES ({version}, '{name}', {usable_from});\n",
            sql.replace("{schema}", schema).trim_end()
        )
    })
}

/// All that makes a schema of this name where there is none, as one transaction.
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
    pub(crate) async fn dial(&self, dial: &Dial) -> Result<Client, OpenError> {
        let (client, wire) = dial.connect().await.map_err(|refused| self.refused(&refused))?;
        // It ends with the client, and how it ends is told to whoever asks.
        drop(tokio::spawn(wire));
        Ok(client)
    }

    fn refused(&self, refused: &Refused) -> OpenError {
        match refused {
            Refused::Silent(_) => {
                OpenError::Unreachable { address: self.address.into(), why: refused.trouble().to_string() }
            }
            Refused::Said(error) => self.failed(error),
        }
    }

    fn failed(&self, error: &tokio_postgres::Error) -> OpenError {
        let trouble = Trouble::of(error);
        let (address, why) = (self.address.to_owned(), trouble.to_string());
        match error.code() {
            Some(code) if *code == SqlState::INVALID_CATALOG_NAME => OpenError::NoDatabase { address, why },
            Some(code) if code.code().starts_with("28") => OpenError::Refused { address, why },
            Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => OpenError::NotAllowed { address, why },
            Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
                OpenError::ReadOnly { address, why }
            }
            // It is starting up, shutting down, or full.
            Some(code) if ["57P", "53", "08"].iter().any(|class| code.code().starts_with(class)) => {
                OpenError::Unreachable { address, why }
            }
            Some(_) => OpenError::Failed { address, why },
            None => match trouble {
                Trouble::Away(why)
                    if why.starts_with("authentication") || why.contains("password missing") =>
                {
                    OpenError::Refused { address, why }
                }
                Trouble::Away(why) => OpenError::Unreachable { address, why },
                _ => OpenError::Unreachable { address, why },
            },
        }
    }

    /// Makes sure that the tables are there and understood.
    pub(crate) async fn settle(&self, client: &mut Client, migrate: bool) -> Result<(), OpenError> {
        self.check_server(client).await?;
        let found = self.standing(client).await?;
        let version = found.map_or(0, |found| found.version);
        if !self.is_older(found)? {
            return Ok(());
        }
        if !migrate {
            return Err(OpenError::Older { address: self.address.into(), found: version, known: known() });
        }
        self.migrate(client).await.map(drop)
    }

    async fn check_server(&self, client: &Client) -> Result<(), OpenError> {
        let failed = |error| self.failed(&error);
        let ask = "SELECT current_setting('server_version_num')::int4, current_setting('server_version')";
        let row = client.query_typed_one(ask, &[]).await.map_err(failed)?;
        let (number, found): (i32, String) =
            (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
        if number < SERVER_MIN {
            return Err(OpenError::ServerTooOld { address: self.address.into(), found });
        }
        Ok(())
    }

    /// What has been made before is not made again; what is newer is good if it says that we can use it.
    fn is_older(&self, found: Option<Standing>) -> Result<bool, OpenError> {
        match found {
            Some(found) if found.version > known() && found.usable_from > known() => {
                Err(OpenError::Newer { address: self.address.into(), found: found.version, known: known() })
            }
            Some(found) => Ok(found.version < known()),
            None => Ok(true),
        }
    }

    async fn standing(&self, client: &Client) -> Result<Option<Standing>, OpenError> {
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
        let standing = Standing {
            version: row.try_get(0).map_err(failed)?,
            usable_from: row.try_get(1).map_err(failed)?,
        };
        Ok(Some(standing))
    }

    pub(crate) async fn migrate(&self, client: &mut Client) -> Result<Migrated, OpenError> {
        self.check_server(client).await?;
        let transaction = client.transaction().await.map_err(|error| self.failed(&error))?;
        // Whoever freezes in the middle of it must not keep the others out for ever.
        let begin = format!(
            "SET LOCAL idle_in_transaction_session_timeout = '60s'; SELECT pg_advisory_xact_lock({LOCK})"
        );
        transaction.batch_execute(&begin).await.map_err(|error| self.failed(&error))?;
        let found = self.standing(transaction.client()).await?;
        let from = found.map_or(0, |found| found.version);
        if !self.is_older(found)? {
            return Ok(Migrated { from, to: from, applied: Vec::new() });
        }
        let applied = self.take_steps(&transaction, from).await.map_err(|error| self.failed(&error))?;
        transaction.commit().await.map_err(|error| self.failed(&error))?;
        tracing::info!(from, to = known(), "the schema of the PostgreSQL store was migrated");
        Ok(Migrated { from, to: known(), applied })
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
            // Tables that were dropped and made again must not count as those before did: a slow node could take a new write for
            // the one that it knows.
            let ahead = format!(
                "SELECT setval('{}.versions', (extract(epoch FROM clock_timestamp()) * 1000000)::int8)",
                schema.replace('\'', "''")
            );
            transaction.batch_execute(&ahead).await?;
        }
        Ok(applied)
    }
}
