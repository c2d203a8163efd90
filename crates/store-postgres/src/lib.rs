//! The store for many machines, in PostgreSQL 14 or newer; no other crate knows PostgreSQL. What it acknowledges is
//! in the server's log on disk. A unique key decides which node made an order, even if several nodes placed it.
//!
//! | to | it does |
//! | --- | --- |
//! | write | hands it to one of a few writers, which take all that wait into one call of one function over arrays |
//! | place what is there already | the same: it returns what stands there, and writes nothing |
//! | give away what is on a stock | the same with takers: the server picks, and notes beside the record which order got it and when |
//! | find what is due | reads it with `SKIP LOCKED`, so that nodes do not wait for each other |
//! | wake waiting callers | one `NOTIFY` for each statement that has news, on a connection that only listens |
//! | not miss what was lost | re-checks slowly all orders with waiting callers, and faster while no notices arrive |
//!
//! Every statement is a transaction and names its schema, so a pooler in transaction mode can stand in between. Only
//! the connection that listens must [bypass it](Settings::with_listen_url).
//!
//! # For people with `psql`
//!
//! The tables are in `migrations/`, with a comment on each column. A record is JSON: `SELECT convert_from(record,
//! 'UTF8') FROM quittance.orders`. If `taken_at` is not null, the answer has gone to `taker` since the record was
//! written. The tables can be read at any time. Write to them only if you know what a version is.
//!
//! # When something is wrong
//!
//! A record that cannot be parsed stays in its row and is listed with the dead letters. Its order answers with
//! [`StoreError::Corrupt`](quittance_ports::StoreError::Corrupt), and nothing else stops. It keeps its timer, because
//! a newer version may have written it. While a server is down, slow, read-only or full, calls are
//! [unavailable](quittance_ports::StoreError::Unavailable); afterwards everything continues by itself. A sealed store
//! answers with [`Sealed`] as the source of that error. [`PostgresOpenError`] says why a store does not open.
#![forbid(unsafe_code)]

mod batch;
mod checkup;
mod failure;
mod headcount;
mod identity;
mod lane;
mod leases;
mod listener;
mod membership;
mod notices;
mod row;
mod schema;
mod settings;
mod shape;
mod shared;
mod statements;
mod store;
mod tables;
mod taker;
mod takings;
mod tls;
mod write_queue;
mod writer;

pub use failure::Sealed;
pub use schema::{Migrated, PostgresOpenError};
pub use settings::{BadPostgresUrl, Settings};

use crate::lane::{Dial, Lane};
use crate::listener::PostgresListener;
use crate::schema::{STEPS, Schema};
use crate::shared::PostgresShared;
use crate::statements::Statements;
use crate::taker::Taker;
use crate::tls::BadCa;
use crate::writer::BatchWriter;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::Client;

/// A handle of the store; its clones share the same connections, which close when the last one is dropped. It needs
/// the tokio runtime on which it was opened.
#[derive(Clone)]
pub struct PostgresStore(Arc<PostgresInner>);

struct PostgresInner {
    shared: Arc<PostgresShared>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for PostgresInner {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl PostgresStore {
    /// Opens the store, and creates or updates its schema unless the settings forbid it. It returns once it is known
    /// whether notices of other nodes arrive. If they do not, it still opens, and logs a warning.
    pub async fn open(settings: Settings) -> Result<Self, PostgresOpenError> {
        let address = settings.address();
        let bad_ca =
            |error: BadCa| PostgresOpenError::BadCa { address: address.clone(), why: error.to_string() };
        let dial = Dial::main(&settings).map_err(bad_ca)?;
        let listening = Dial::listening(&settings).map_err(bad_ca)?;
        let schema = Schema { name: &settings.schema, address: &address };
        let mut client = schema.dial(&dial.patient()).await?;
        schema.settle(&mut client, settings.migrate).await?;
        let node = draw(&client).await.map_err(|error| PostgresOpenError::Failed {
            address: address.clone(),
            why: failure::PostgresError::of(&error).to_string(),
        })?;
        drop(client);
        Ok(Self::begin(settings, dial, listening, node).await)
    }

    async fn begin(settings: Settings, dial: Dial, listening: Dial, node: u64) -> Self {
        let mut tasks = Vec::new();
        let lanes = (0..settings.connections).map(|_| {
            let (lane, keeping) = Lane::new(dial.clone());
            tasks.push(tokio::spawn(keeping));
            lane
        });
        let lanes: Vec<Lane> = lanes.collect();
        let (statements, wait) = (Statements::of(&settings.schema), settings.call_wait);
        let shared = Arc::new(PostgresShared::new(settings, statements, node, lanes));
        for number in 0..shared.writers.len() {
            tasks.push(tokio::spawn(BatchWriter { shared: Arc::clone(&shared), number }.run()));
        }
        for number in 0..shared.readers.len() {
            tasks.push(tokio::spawn(
                Taker { shared: Arc::clone(&shared), number: shared.writers.len() + number }.run(),
            ));
        }
        let tried = watch::Sender::new(false);
        let mut is_tried = tried.subscribe();
        tasks.push(tokio::spawn(listener::recheck(Arc::clone(&shared), tried.subscribe())));
        let listener = PostgresListener { shared: Arc::clone(&shared), dial: listening, tried };
        tasks.push(tokio::spawn(listener.run()));
        // If it takes longer, it is known later.
        drop(timeout(wait, is_tried.wait_for(|tried| *tried)).await);
        Self(Arc::new(PostgresInner { shared, tasks }))
    }

    /// Creates the schema or updates it, and does nothing else.
    pub async fn migrate(settings: &Settings) -> Result<Migrated, PostgresOpenError> {
        let address = settings.address();
        let bad_ca =
            |error: BadCa| PostgresOpenError::BadCa { address: address.clone(), why: error.to_string() };
        let dial = Dial::main(settings).map_err(bad_ca)?;
        let schema = Schema { name: &settings.schema, address: &address };
        let mut client = schema.dial(&dial.patient()).await?;
        schema.migrate(&mut client).await
    }

    /// The name and the SQL of each migration, for operators who run them by hand. `{schema}` stands for the quoted
    /// name of the schema.
    #[must_use]
    pub const fn migrations() -> &'static [(&'static str, &'static str)] {
        STEPS
    }

    /// A script for `psql` that creates the whole schema under this name, in one transaction, if it is empty or
    /// missing. It also records each migration, so that a store opens there without migrating. If a schema has some
    /// migrations already, begin after the record of the last one.
    #[must_use]
    pub fn migration_script(schema: &str) -> String {
        schema::script(schema)
    }

    /// How many statements were sent for calls of the store. Many commits share one.
    #[must_use]
    pub fn round_trips(&self) -> u64 {
        self.shared().round_trips.load(Ordering::Relaxed)
    }

    /// The number of watches. If it is not zero although no caller waits, a watch leaks.
    #[must_use]
    pub fn watching(&self) -> usize {
        self.shared().watchers.len()
    }

    fn shared(&self) -> &PostgresShared {
        &self.0.shared
    }
}

/// A random number from the server that no other open store has.
async fn draw(client: &Client) -> Result<u64, tokio_postgres::Error> {
    let ask = "SELECT ('x' || translate(left(gen_random_uuid()::text, 13), '-', '') || '0000')::bit(64)::int8 # \
               ('x' || right(gen_random_uuid()::text, 12) || '0000')::bit(64)::int8";
    let row = client.query_typed_one(ask, &[]).await?;
    row.try_get::<_, i64>(0).map(i64::cast_unsigned)
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresStore({}, {} watches)", self.shared().settings.address(), self.watching())
    }
}
