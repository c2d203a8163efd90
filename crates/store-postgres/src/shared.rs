//! The state that all handles and tasks of one open store share.

use crate::failure::PostgresError;
use crate::headcount::Headcount;
use crate::identity::Fence;
use crate::lane::{Lane, SqlParams};
use crate::notices::AnnouncedBatches;
use crate::settings::Settings;
use crate::statements::Statements;
use crate::takings::Takings;
use crate::write_queue::WriteQueue;
use quittance_lifecycle::Key;
use quittance_ports::{Version, Watchers};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_postgres::Row;

/// How often orders with waiting callers are checked while no notices arrive.
pub(crate) const DEAF_RECHECK: Duration = Duration::from_secs(1);

/// The number of parts of the usage. Tasks of different nodes add to different parts, as far as possible.
const SHARDS: u64 = 32;

/// How many reported broken records are remembered. Above that, some are reported again.
const BROKEN_MAX: usize = 10_000;

pub(crate) struct PostgresShared {
    pub(crate) settings: Settings,
    pub(crate) statements: Statements,
    /// A new number for each open store, which marks our own notices.
    pub(crate) node: u64,
    pub(crate) queue: WriteQueue,
    pub(crate) takings: Takings,
    pub(crate) readers: Vec<Lane>,
    /// The connection of each writer.
    pub(crate) writers: Vec<Lane>,
    pub(crate) watchers: Watchers,
    pub(crate) announced: AnnouncedBatches,
    pub(crate) batches: AtomicU64,
    pub(crate) round_trips: AtomicU64,
    /// The last of our own probes that came back.
    pub(crate) probe: watch::Sender<u64>,
    /// Whether notices arrive, as far as is known.
    pub(crate) hears: AtomicBool,
    pub(crate) headcount: Headcount,
    /// The store that commits require.
    pub(crate) fence: Mutex<Fence>,
    /// The tables and functions that were missing at the last look while others existed. Nothing is written until
    /// they are back.
    missing: Mutex<Option<String>>,
    /// Whether it was already reported that the list of the schema's versions is lost and cannot be restored.
    pub(crate) reported_list: AtomicBool,
    broken: Mutex<BTreeSet<(Key, Version)>>,
}

impl PostgresShared {
    /// The shared state. Half of the lanes are for writes.
    pub(crate) fn new(settings: Settings, statements: Statements, node: u64, mut lanes: Vec<Lane>) -> Self {
        let writers = lanes.split_off(lanes.len().div_ceil(2));
        Self {
            settings,
            statements,
            node,
            queue: WriteQueue::default(),
            takings: Takings::default(),
            readers: lanes,
            writers,
            watchers: Watchers::default(),
            announced: AnnouncedBatches::default(),
            batches: AtomicU64::new(1),
            round_trips: AtomicU64::new(0),
            probe: watch::Sender::new(0),
            hears: AtomicBool::new(false),
            headcount: Headcount::default(),
            fence: Mutex::default(),
            missing: Mutex::default(),
            reported_list: AtomicBool::new(false),
            broken: Mutex::default(),
        }
    }

    /// The part of the usage to which this task adds.
    pub(crate) fn shard(&self, task: usize) -> i16 {
        i16::try_from((self.node ^ task as u64) % SHARDS).expect("there are few shards")
    }

    /// The reader with the smallest burden.
    pub(crate) fn reader(&self) -> &Lane {
        self.readers.iter().min_by_key(|lane| lane.burden()).expect("there is at least one")
    }

    pub(crate) async fn ask(
        &self,
        statement: &str,
        params: SqlParams<'_>,
    ) -> Result<Vec<Row>, PostgresError> {
        self.reader().ask(statement, params).await
    }

    /// Fails if the last look has shown that tables are missing.
    pub(crate) fn check_whole(&self) -> Result<(), PostgresError> {
        match &*self.missing.lock().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some(missing) => Err(PostgresError::Incomplete { missing: missing.clone() }),
        }
    }

    /// Notes which tables are missing. Returns whether that has changed.
    pub(crate) fn note_missing(&self, missing: Option<String>) -> bool {
        let mut noted = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = *noted != missing;
        *noted = missing;
        is_news
    }

    pub(crate) fn recheck_span(&self) -> Duration {
        let span = self.settings.recheck;
        if self.hears.load(Ordering::Relaxed) { span } else { span.min(DEAF_RECHECK) }
    }

    /// Whether this version of this order was not reported as broken before.
    pub(crate) fn is_first_broken(&self, key: &Key, version: Version) -> bool {
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        if broken.len() >= BROKEN_MAX {
            broken.clear();
        }
        broken.insert((*key, version))
    }
}
