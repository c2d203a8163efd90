//! Tests of the suite itself: it runs all of its tests, its samples cover everything, and it never hangs.

use quittance_lifecycle::Progress;
use quittance_ports::conformance::{PROMISES, drive, samples};
use std::collections::BTreeSet;
use std::future::{pending, poll_fn};
use std::panic::catch_unwind;
use std::task::Poll;
use std::time::Duration;

const SOURCES: [&str; 8] = [
    include_str!("../../src/conformance/usage.rs"),
    include_str!("../../src/conformance/due.rs"),
    include_str!("../../src/conformance/keeping.rs"),
    include_str!("../../src/conformance/racing.rs"),
    include_str!("../../src/conformance/records.rs"),
    include_str!("../../src/conformance/stock.rs"),
    include_str!("../../src/conformance/taking.rs"),
    include_str!("../../src/conformance/watching.rs"),
];

#[test]
fn every_promise_that_is_written_is_run() {
    let written = SOURCES.iter().flat_map(|source| source.split("pub async fn ").skip(1));
    let mut written: Vec<&str> = written.filter_map(|rest| rest.split('(').next()).collect();
    written.push("it_answers_like_the_memory_store");
    let mut run: Vec<&str> = PROMISES.iter().map(|(name, _)| *name).collect();
    written.sort_unstable();
    run.sort_unstable();
    assert_eq!(run, written);
}

#[test]
fn the_samples_know_every_phase_and_every_state_of_an_attempt() {
    let samples = samples::every_phase();
    let phases: BTreeSet<_> = samples.iter().map(|sample| sample.order.phase.name()).collect();
    let all =
        ["claimed", "dead", "expired", "failed", "in_doubt", "queued", "solved", "solving", "submitting"];
    assert_eq!(phases.into_iter().collect::<Vec<_>>(), all);

    let attempts = samples.iter().flat_map(|sample| &sample.order.attempts);
    let states: BTreeSet<_> = attempts
        .map(|attempt| match attempt.progress {
            Progress::Sent => "sent",
            Progress::Solving { .. } => "solving",
            Progress::Trailing { .. } => "trailing",
            Progress::GivenUp { .. } => "given up",
            Progress::Faulted => "faulted",
            Progress::Answered => "answered",
            Progress::Surplus { .. } => "spare",
        })
        .collect();
    assert_eq!(states.len(), 7, "{states:?}");

    let keys: BTreeSet<_> = samples.iter().map(|sample| sample.order.key).collect();
    assert_eq!(keys.len(), samples.len());
}

#[test]
fn a_test_that_waits_for_nothing_fails_and_a_woken_one_goes_on() {
    let stuck = catch_unwind(|| drive(Duration::ZERO, pending::<()>()));
    assert!(stuck.is_err(), "it came back without an end");
    let mut polls = 0;
    drive(
        Duration::ZERO,
        poll_fn(|cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            if polls < 10 { Poll::Pending } else { Poll::Ready(()) }
        }),
    );
    assert_eq!(polls, 10);
}

/// The test for stores that work on a thread of their own.
#[test]
fn real_time_can_be_given_to_a_store_that_needs_it() {
    let mut helper = None;
    let (send, receive) = std::sync::mpsc::channel();
    drive(
        Duration::from_secs(60),
        poll_fn(|cx| {
            if receive.try_recv().is_ok() {
                return Poll::Ready(());
            }
            let (waker, send) = (cx.waker().clone(), send.clone());
            helper.get_or_insert_with(|| {
                std::thread::spawn(move || {
                    let sent = send.send(());
                    waker.wake();
                    sent
                })
            });
            Poll::Pending
        }),
    );
    helper.expect("it was polled").join().expect("no panic there").expect("we listen");
}
