//! The store of many machines, in PostgreSQL 14 or newer; no other crate knows PostgreSQL. What it acknowledges is in
//! the server's log on disk, and a unique key decides who made an order, on however many nodes it was placed.
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
//! Every statement is a transaction of its own and names its schema, so a pooler in transaction mode may stand in
//! between; only the connection that listens must go [past it](Settings::with_listen_url).
//!
//! # For people with `psql`
//!
//! The tables are in `migrations/`, with a word on each column. A record is JSON: `SELECT convert_from(record,
//! 'UTF8') FROM quittance.orders`; where `taken_at` is not null, the answer has gone to `taker` since it was written.
//! Read them at any time; write to them only if you know what a version is.
//!
//! # When something is wrong
//!
//! A record that cannot be understood stays where it is and stands among the dead letters; its order answers with
//! [`StoreError::Corrupt`](quittance_ports::StoreError::Corrupt), and nothing else stops. It keeps its timer, because
//! it may be a newer version that wrote it. A server that is away, slow, read-only or full makes calls
//! [unavailable](quittance_ports::StoreError::Unavailable) for as long as it is, and everything goes on by itself
//! afterwards. A closed store answers with [`Sealed`] behind that error. [`PostgresOpenError`] says why a store does not
//! open.
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

/// A handle; its clones share the same connections. They are closed when the last one is dropped. It lives on the tokio
/// runtime on which it was opened.
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
    /// Opens the store, and makes or updates its schema unless the settings say otherwise. It returns once it is
    /// known whether notices of other nodes arrive; if they do not, it opens all the same, and says so.
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

    /// Makes the schema, or brings it up to date, and nothing else.
    pub async fn migrate(settings: &Settings) -> Result<Migrated, PostgresOpenError> {
        let address = settings.address();
        let bad_ca =
            |error: BadCa| PostgresOpenError::BadCa { address: address.clone(), why: error.to_string() };
        let dial = Dial::main(settings).map_err(bad_ca)?;
        let schema = Schema { name: &settings.schema, address: &address };
        let mut client = schema.dial(&dial.patient()).await?;
        schema.migrate(&mut client).await
    }

    /// The name and the SQL of each step, for people who run them by themselves. `{schema}` stands for the quoted
    /// name of the schema.
    #[must_use]
    pub const fn migrations() -> &'static [(&'static str, &'static str)] {
        STEPS
    }

    /// The whole of it for people who run it by hand with `psql`, in a schema of this name that is empty or not there
    /// yet: one transaction that makes the schema, takes each step and notes it, so that a store opens there without
    /// migrating. A schema that has some of the steps already begins behind the note of the last of them.
    #[must_use]
    pub fn migration_script(schema: &str) -> String {
        schema::script(schema)
    }

    /// How many statements were sent for calls of the store; many commits share one.
    #[must_use]
    pub fn round_trips(&self) -> u64 {
        self.shared().round_trips.load(Ordering::Relaxed)
    }

    /// How many watches there are: zero when no caller waits, or something leaks.
    #[must_use]
    pub fn watching(&self) -> usize {
        self.shared().watchers.len()
    }

    fn shared(&self) -> &PostgresShared {
        &self.0.shared
    }
}

/// A number that no other open store has; the server has dice.
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
