//! Tests of the suite itself: every promise catches a wrong store, and every wrong store is caught.

use crate::crimes::{CRIMES, Crime, ModelFinds};
use crate::naive::Naive;
use quittance_ports::conformance::{PROMISES, Promise, Relay, drive, model};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

fn breaks(crime: Crime, promise: Promise) -> bool {
    let store = Arc::new(Naive::guilty_of(crime));
    catch_unwind(AssertUnwindSafe(|| drive(Duration::ZERO, promise(store)))).is_err()
}

/// Two stores with different designs agree on every result: one keeps indices, the other searches everything.
#[test]
fn a_naive_store_that_commits_no_crime_keeps_every_promise_and_agrees_with_the_memory_store() {
    for (_, promise) in PROMISES {
        drive(Duration::ZERO, promise(Arc::new(Naive::default())));
    }
    for seed in 0..50 {
        drive(Duration::ZERO, model::random_operations(Arc::new(Naive::default()), seed, 1000));
    }
}

#[test]
fn every_crime_breaks_its_promise() {
    for (crime, name, _) in CRIMES {
        let (_, promise) = PROMISES.iter().find(|(known, _)| known == name).expect("it is a promise");
        assert!(breaks(*crime, *promise), "{name} does not notice {crime:?}");
    }
}

#[test]
fn every_promise_can_be_broken() {
    let caught: BTreeSet<_> = CRIMES.iter().map(|(_, name, _)| *name).collect();
    for (name, _) in PROMISES {
        assert!(caught.contains(name), "no wrong store is caught by {name}");
    }
}

#[test]
fn the_model_check_catches_each_wrong_store_one_step_at_a_time() {
    for (crime, _, model) in CRIMES {
        let caught = (0..20).any(|seed| {
            let store = Arc::new(Naive::guilty_of(*crime));
            let run = || drive(Duration::ZERO, model::random_operations(store, seed, 1000));
            catch_unwind(AssertUnwindSafe(run)).is_err()
        });
        assert_eq!(caught, *model == ModelFinds::Catches, "{crime:?}");
    }
}

/// Each of the two stores alone is correct.
#[test]
fn a_relay_catches_a_store_that_wakes_no_waiter_in_another_process() {
    let caught = |name| {
        let (_, promise) = PROMISES.iter().find(|(known, _)| *known == name).expect("it is a promise");
        let here = Naive::default();
        let relay = Relay::new(vec![Arc::new(here.elsewhere()), Arc::new(here)]);
        catch_unwind(AssertUnwindSafe(|| drive(Duration::ZERO, promise(Arc::new(relay))))).is_err()
    };
    assert!(caught("a_watch_misses_no_commit_made_after_it_returns"));
    assert!(caught("a_watch_wakes_all_waiters_of_the_order_and_no_others"));
    assert!(!caught("a_record_written_is_read_back_the_same"));
}
