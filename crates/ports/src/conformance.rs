//! What a store must promise: one named test for each promise, and every store runs them all. A store cannot skip
//! one. A promise without a test here does not count.
//!
//! A store declares its tests in one line. Its own crate provides the store, the runtime and the real time for a
//! test:
//!
//! ```
//! use quittance_ports::conformance::{Promise, drive};
//! use quittance_ports::{MemoryStore, conformance};
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! /// A fresh store for each promise. This one answers at once, so a test that has to wait for it waits for ever.
//! fn run(promise: Promise) {
//!     drive(Duration::ZERO, promise(Arc::new(MemoryStore::default())));
//! }
//!
//! conformance!(run);
//! ```
//!
//! A store behind a network brings its own runtime, set-up and timeout. No promise limits its waiting: the runner
//! knows how long a wake-up takes with this store, and notices if none comes.
//!
//! ```ignore
//! fn run(promise: Promise) {
//!     tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
//!         let schema = Schema::fresh().await;
//!         let store = Arc::new(schema.open().await);
//!         tokio::time::timeout(Duration::from_secs(30), promise(store)).await.expect("it waits for ever");
//!         schema.drop().await;
//!     });
//! }
//! ```
//!
//! A store that several processes share runs the suite a second time behind a [`Relay`] of two handles.
//!
//! The suite has no cargo feature: it is small, it needs no other dependencies, and code that is always compiled does
//! not become outdated.

mod due;
mod keeping;
mod leases;
mod membership;
pub mod model;
mod racing;
mod records;
mod relay;
pub mod samples;
mod stock;
mod taking;
mod usage;
mod watching;

pub use due::*;
pub use keeping::*;
pub use leases::*;
pub use membership::*;
pub use model::it_answers_like_the_memory_store;
pub use racing::*;
pub use records::*;
pub use relay::Relay;
pub use stock::*;
pub use taking::*;
pub use usage::*;
pub use watching::*;

use crate::store::{Commit, Store, Version, Versioned, Which};
use quittance_lifecycle::{Counters, Key, Order};
use std::pin::{Pin, pin};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// One test of the suite. It needs a fresh store that only this test uses.
pub type Promise = fn(Arc<dyn Store>) -> PromiseFuture;

/// The future of a promise. It panics if the promise is broken.
pub type PromiseFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Makes a `#[test]` of each promise, run by a given `fn(Promise)`; see [the module](mod@crate::conformance).
#[macro_export]
macro_rules! conformance {
    (@tests [$run:expr] $($promise:ident)*) => {$(
        #[test]
        fn $promise() {
            let run: fn($crate::conformance::Promise) = $run;
            run(|store| ::std::boxed::Box::pin($crate::conformance::$promise(store)));
        }
    )*};
    (@names [] $($promise:ident)*) => {
        &[$((stringify!($promise), |store| ::std::boxed::Box::pin($promise(store)))),*]
    };
    (@each $what:ident $args:tt) => {
        $crate::conformance! { @$what $args
            absent_is_none
            a_record_written_is_read_back_the_same
            a_record_of_a_megabyte_is_read_back_the_same
            a_write_replaces_the_record
            versions_grow
            a_version_never_comes_back_after_a_purge

            one_creator_wins
            one_writer_wins
            a_commit_with_an_old_version_loses_and_gets_the_winner
            a_commit_to_a_record_that_is_gone_loses_without_a_winner
            a_lost_race_changes_nothing

            an_order_is_not_due_before_its_moment
            due_orders_come_soonest_first_up_to_the_limit
            a_due_order_is_claimed_once_until_the_claim_lapses
            a_due_order_goes_to_one_of_many_claimers
            a_claim_ends_when_the_order_is_written
            a_lapsed_claim_stands_behind_what_was_due_sooner
            the_next_timer_is_returned
            the_due_index_follows_each_write

            the_stock_lists_the_soonest_to_expire_first
            the_stock_leaves_out_what_has_expired
            the_stock_of_a_target_holds_nothing_of_another
            what_was_taken_is_off_the_stock

            the_soonest_to_expire_is_taken_first_and_the_last_like_any_other
            what_is_taken_stands_as_if_it_had_been_claimed
            one_answer_goes_to_one_of_many_takers
            a_repeated_take_gives_the_same
            what_is_given_back_can_be_taken_by_another
            a_taken_answer_can_be_moved_on_by_a_writer_with_its_version
            what_else_a_taken_order_has_to_do_is_still_done

            a_watch_misses_no_commit_made_after_it_returns
            a_watch_wakes_a_caller_that_waits_already
            a_watch_wakes_all_waiters_of_the_order_and_no_others
            a_watch_may_begin_before_the_order
            a_dropped_watch_disturbs_no_other_watch
            a_woken_caller_reads_what_was_written
            a_lost_race_wakes_no_waiter
            a_commit_without_news_for_waiters_wakes_none

            a_list_pages_through_everything_once
            a_tenants_list_holds_its_own_orders_and_no_others
            a_tenants_list_follows_each_write
            purge_removes_only_what_may_be_forgotten
            purge_stops_at_its_limit_and_begins_with_the_oldest
            what_lives_again_is_not_purged
            what_is_kept_until_the_end_of_time_is_kept
            only_unreadable_records_are_discarded

            usage_add_up_with_the_commits
            a_step_is_counted_on_the_account_of_its_attempt
            a_lost_race_is_not_booked
            count_adds_what_changed_no_order
            no_count_is_lost_among_many
            usage_come_by_day_in_the_order_of_their_lines
            a_count_of_nothing_opens_no_line
            closed_usage_keep_their_sums
            nothing_is_lost_when_usage_are_closed_in_a_crowd
            a_count_counts_open_orders_and_those_that_wait_for_an_operator

            it_answers_like_the_memory_store
        }
    };
    ($run:expr) => { $crate::conformance! { @each tests [$run] } };
}

/// Every promise with its name.
pub const PROMISES: &[(&str, Promise)] = conformance!(@each names []);

/// Runs a future to its end on this thread. Panics if the future waits and nothing wakes it within `timeout`: zero
/// for a store that answers at once, real time for a store with threads of its own.
pub fn drive<T>(timeout: Duration, future: impl Future<Output = T>) -> T {
    let bell = Arc::new(WakeFlag::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return done;
        }
        let rung = bell.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut rung, timeout) = bell
            .ringing
            .wait_timeout_while(rung, timeout, |rung| !*rung)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "it waits for something that never comes");
        *rung = false;
    }
}

#[derive(Default)]
struct WakeFlag {
    rung: Mutex<bool>,
    ringing: Condvar,
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ringing.notify_one();
    }
}

/// The message for results of a store that must be `Ok`.
const AVAILABLE: &str = "a store under test is there, and can read what it wrote";

/// Commits without adding to the usage.
async fn commit(store: &dyn Store, expected: Version, next: &Arc<Order>) -> Commit {
    store.commit(expected, next, &Counters::default(), samples::START).await.expect(AVAILABLE)
}

/// Commits over `expected`, which must succeed.
async fn write(store: &dyn Store, expected: Version, next: &Arc<Order>) -> Version {
    match commit(store, expected, next).await {
        Commit::Done(version) => version,
        Commit::Conflict(record) => {
            panic!("only this test writes here, and yet another writer won: {record:?}")
        }
    }
}

async fn create(store: &dyn Store, order: &Arc<Order>) -> Version {
    write(store, Version::ABSENT, order).await
}

/// Lists orders, all of which can be read.
async fn list(store: &dyn Store, which: Which<'_>, after: Option<&Key>, limit: usize) -> Vec<Versioned> {
    let listed = store.list(which, after, limit).await.expect(AVAILABLE);
    listed.into_iter().map(|record| record.expect(AVAILABLE)).collect()
}
