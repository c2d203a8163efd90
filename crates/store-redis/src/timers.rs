//! Restores timers that the index has lost although the records exist: without a timer, no node would continue such
//! an order. Every node checks once a second, which is one short call, and repairs one page at a time.

use crate::RedisInner;
use crate::commit::ScriptAnswer;
use crate::failure::RedisFailure;
use crate::layout::LISTS;
use crate::row::text;
use futures_util::future::try_join_all;
use redis::Value;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How many orders of a list one call compares with the index.
const PAGE: usize = 256;
/// The pause for a partition without missing timers. Dead letters have no timer.
const PAUSE: Duration = Duration::from_secs(60);

/// The progress of the comparison in each partition.
#[derive(Default)]
pub(crate) struct TimerSweeps(Mutex<BTreeMap<u16, TimerSweep>>);

#[derive(Clone, Default)]
struct TimerSweep {
    /// The number of the list that is being compared.
    list: usize,
    /// The last order that was compared.
    after: String,
    restored: u64,
    rests_until: Option<Instant>,
}

impl TimerSweeps {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u16, TimerSweep>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TimerSweep {
    /// Records that a page up to `last` was compared. An empty `last` means the end of the list.
    fn step(&mut self, last: String, restored: u64) {
        self.restored += restored;
        self.after = last;
        if !self.after.is_empty() {
            return;
        }
        self.list += 1;
        if self.list == LISTS.len() {
            let rests_until = (self.restored == 0).then(|| Instant::now() + PAUSE);
            *self = Self { rests_until, ..Self::default() };
        }
    }
}

impl RedisInner {
    pub(crate) async fn restore_timers(&self) -> Result<(), RedisFailure> {
        try_join_all(self.layout.all().map(|partition| self.restore_some(partition))).await.map(drop)
    }

    async fn restore_some(&self, partition: u16) -> Result<(), RedisFailure> {
        let mut sweep = self.timer_sweeps.all().get(&partition).cloned().unwrap_or_default();
        if sweep.rests_until.is_some_and(|until| Instant::now() < until) {
            return Ok(());
        }
        let keys = ["desk", "due", "open", LISTS[sweep.list]].map(|what| self.layout.name(partition, what));
        let (records, limit) = (self.layout.records(partition), PAGE.to_string());
        let args = [records.as_bytes(), sweep.after.as_bytes(), limit.as_bytes()];
        let ScriptAnswer { word, rest } = self.run(&self.scripts.timers, &keys, &args).await?;
        if word == b"whole" {
            return Ok(());
        }
        let [last, restored] = <[Value; 2]>::try_from(rest).map_err(|_| RedisFailure::Garbled)?;
        let last = String::from_utf8(text(last)?.unwrap_or_default()).map_err(|_| RedisFailure::Garbled)?;
        let Value::Int(restored) = restored else { return Err(RedisFailure::Garbled) };
        let restored = u64::try_from(restored).map_err(|_| RedisFailure::Garbled)?;
        self.timers_restored.fetch_add(restored, Ordering::Relaxed);
        sweep.step(last, restored);
        self.timer_sweeps.all().insert(partition, sweep);
        Ok(())
    }
}
