//! The worker's chores: write counters, replay the spill, remove old records, and compact usage. Counters are written
//! after a moment; the other chores run about once a second.

use crate::{CallbackOutcome, Engine, lock};
use quittance_lifecycle::Timestamp;
use quittance_ports::{Day, IncomingEvent, StoreError};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How many forgettable records are removed at a time.
const PURGE_MAX: usize = 256;
/// How long an event for an unreadable record is put off: an operator has to fix the record first.
const UNREADABLE_PAUSE: Duration = Duration::from_secs(30);
/// How long an event for an unknown order is kept, from the birth of the order's record. After this time the record
/// may have been removed in the normal way.
const UNKNOWN_KEPT: Duration = Duration::from_secs(24 * 3600);
/// How soon an event for an order that is not on record is tried again while the order is young.
const FORGOTTEN_PAUSE: Duration = Duration::from_secs(2);
/// An order is young for this time after the birth of its record.
const YOUNG: Duration = Duration::from_secs(600);

/// How often the usage of old days is compacted.
const USAGE_SPAN: Duration = Duration::from_secs(3600);

impl Engine {
    pub(crate) async fn do_chores(&self) {
        self.check_in_hand().await;
        self.replay_spill().await;
        self.ask_for_evidence().await;
        if let Err(error) = self.world.store.purge(self.now(), PURGE_MAX).await {
            self.note_error(&error);
        }
        self.keep_pools().await;
        self.see_to_bulks().await;
        self.share_endpoints().await;
        self.replay_after_outages().await;
        self.compact_usage().await;
    }

    /// Compacts the usage of old days from time to time. Any node may do this, any number of times.
    async fn compact_usage(&self) {
        let now = self.now();
        let last = Timestamp::from_millis(self.usage_compacted_at.load(Ordering::Relaxed));
        // A clock that was set back must not put it off.
        if last <= now && now < last + USAGE_SPAN {
            return;
        }
        self.usage_compacted_at.store(now.as_millis(), Ordering::Relaxed);
        let days_ago = |days: u64| Day(Day::of(now).0.saturating_sub(days));
        let (detail, sums) = (days_ago(self.settings().usage_days), days_ago(self.settings().sums_days));
        if let Err(error) = self.world.store.compact_usage(detail, sums.min(detail)).await {
            self.note_error(&error);
        }
    }

    pub(crate) async fn write_counts(&self) {
        let counts = std::mem::take(&mut *lock(&self.uncounted));
        for (line, counters) in counts {
            if let Err(error) = self.world.store.count(&line, &counters).await {
                self.note_error(&error);
                // If only the reply was lost it will be counted twice: these lines are not money.
                self.count(line, counters);
            }
        }
    }

    /// Whether the order of this event may come back: another node may put it back, or a caller may place it
    /// again.
    pub(crate) fn may_come_back(&self, arrival: &IncomingEvent) -> bool {
        self.now() < arrival.born + UNKNOWN_KEPT.min(self.settings().policy.keep)
    }

    /// Plans another try of an event for an order that the store does not know.
    pub(crate) fn look_again_soon(&self, arrival: &IncomingEvent) {
        let is_young = self.now().since(arrival.born) < YOUNG;
        let at = self.now() + if is_young { FORGOTTEN_PAUSE } else { UNREADABLE_PAUSE };
        let mut run_queue = lock(&self.run_queue);
        run_queue.unreadable_at = Some(run_queue.unreadable_at.map_or(at, |known| known.min(at)));
    }

    /// Moves a spilled event to the end of the spill, so that it does not stop the events behind it. Returns
    /// whether the spill was full: then the event must stay where it is, and the events behind it are applied
    /// again with it.
    fn put_off(&self, arrival: &IncomingEvent) -> bool {
        lock(&self.run_queue).unreadable_at = Some(self.now() + UNREADABLE_PAUSE);
        self.keep_again(arrival)
    }

    /// Appends a spilled event to the spill again. Returns whether the spill was full.
    fn keep_again(&self, arrival: &IncomingEvent) -> bool {
        let is_kept = self.world.spill.keep(arrival).is_ok();
        if is_kept {
            self.note_spilled(&arrival.key);
        }
        !is_kept
    }

    /// Applies the events that came in while the store was away. An event that is applied twice does no harm,
    /// so a crash in the middle does none either.
    async fn replay_spill(&self) {
        {
            let mut run_queue = lock(&self.run_queue);
            let again = run_queue.unreadable_at.take_if(|at| *at <= self.now()).is_some();
            if !std::mem::take(&mut run_queue.has_spilled) && !again {
                return;
            }
        }
        let Ok(waiting) = self.world.spill.waiting() else { return self.expect_spill() };
        // Only the oldest can be forgotten, up to the first that must stay.
        let (mut done, mut must_stay) = (0, false);
        for arrival in &waiting {
            match self.apply_incoming(arrival).await {
                // This node may have been started on the wrong store, or before all orders had been moved to this
                // one.
                Ok(CallbackOutcome::Forgotten) if self.may_come_back(arrival) => {
                    must_stay |= self.keep_again(arrival);
                    self.look_again_soon(arrival);
                }
                Ok(_) => {}
                Err(error @ StoreError::Corrupt { .. }) => {
                    self.note_error(&error);
                    must_stay |= self.put_off(arrival);
                }
                Err(error @ StoreError::Unavailable { .. }) => {
                    self.note_error(&error);
                    self.expect_spill();
                    break;
                }
            }
            done += usize::from(!must_stay);
        }
        match self.world.spill.forget(done) {
            Ok(()) => self.note_removed(&waiting[..done]),
            Err(_) => self.expect_spill(),
        }
    }
}
