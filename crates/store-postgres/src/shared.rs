//! What all handles and tasks of one open store share.

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

/// Tasks of different nodes add to the usage in parts of their own, as far as there are parts.
const SHARDS: u64 = 32;

/// Of so many broken records it is remembered that they were reported. Beyond that some are reported again.
const BROKEN_MAX: usize = 10_000;

pub(crate) struct PostgresShared {
    pub(crate) settings: Settings,
    pub(crate) statements: Statements,
    /// New for each open store: marks our own notices.
    pub(crate) node: u64,
    pub(crate) queue: WriteQueue,
    pub(crate) takings: Takings,
    pub(crate) readers: Vec<Lane>,
    /// One for each writer.
    pub(crate) writers: Vec<Lane>,
    pub(crate) watchers: Watchers,
    pub(crate) announced: AnnouncedBatches,
    pub(crate) batches: AtomicU64,
    pub(crate) round_trips: AtomicU64,
    /// The last probe of our own that came back.
    pub(crate) probe: watch::Sender<u64>,
    /// Whether notices arrive, as far as is known.
    pub(crate) hears: AtomicBool,
    pub(crate) headcount: Headcount,
    /// Which store commits are for.
    pub(crate) fence: Mutex<Fence>,
    /// The tables and functions that were gone while others stood, at the last look: until they are back nothing is
    /// written.
    missing: Mutex<Option<String>>,
    /// Whether it was reported that the list of the schema's versions is lost and cannot be written again.
    pub(crate) reported_list: AtomicBool,
    broken: Mutex<BTreeSet<(Key, Version)>>,
}

impl PostgresShared {
    /// Half of the lanes are for writing.
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

    /// Where it is answered soonest.
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

    /// Fails while tables are gone, as far as the last look has shown.
    pub(crate) fn check_whole(&self) -> Result<(), PostgresError> {
        match &*self.missing.lock().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some(missing) => Err(PostgresError::Incomplete { missing: missing.clone() }),
        }
    }

    /// Notes which tables are gone, and says whether that is news.
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

    /// Whether this write of this order has not been reported as broken before.
    pub(crate) fn is_first_broken(&self, key: &Key, version: Version) -> bool {
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        if broken.len() >= BROKEN_MAX {
            broken.clear();
        }
        broken.insert((*key, version))
    }
}
