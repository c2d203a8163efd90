//! When an answer was solved, how long it lives, which caller may have it at which age, and what counts as waste.

use super::{START, agreed, delivery, placed, policy, secs};
use crate::{
    Advance, Attempt, CallbackResult, Counters, Decision, Event, HandOut, Key, Offer, Order, Origin, Outage,
    Phase, Placement, Policy, PollOutcome, Progress, ProviderAnswer, Receipt, Reuse, SubmitOutcome,
    SubmitRoute, Terms, Timestamp, WhenInDoubt, WhyIgnored, place, transition,
};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

const WAKE: Event = Event::Woken { stamp: 1, route: SubmitRoute::To(Offer::OF_TERMS) };

fn calls() -> Policy {
    policy(true, WhenInDoubt::Resubmit)
}

fn outage(from: u64, to: u64) -> Outage {
    Outage { from: START + secs(from), to: START + secs(to) }
}

fn called_back(at: u64, outages: Vec<Outage>) -> Event {
    let receipt = Some(Receipt { at: START + secs(at), outages });
    Event::CalledBack { attempt: 1, task: None, word: CallbackResult::Answered(delivery("token")), receipt }
}

fn accepted() -> Event {
    Event::Submitted { attempt: 1, outcome: SubmitOutcome::Accepted { task: "task-1".into() } }
}

fn step(order: &Order, at: u64, event: Event) -> Advance {
    match transition(order, event, START + secs(at), &calls()) {
        Decision::Advance(advance) => *advance,
        other => panic!("{other:?}"),
    }
}

/// An order that was submitted at the start, after these steps.
fn life((key, terms): &(Key, Arc<Terms>), steps: &[(u64, Event)]) -> Order {
    let order = placed(*key, terms, &calls());
    let submitted = [(0, WAKE), (1, accepted())];
    submitted.iter().chain(steps).fold(order, |order, (at, event)| step(&order, *at, event.clone()).next)
}

fn shared() -> (Key, Arc<Terms>) {
    agreed(true, Reuse::Shared, false)
}

fn earliest(order: &Order) -> Timestamp {
    match &order.phase {
        Phase::Solved { answer, .. } => answer.earliest,
        phase => panic!("{}", phase.name()),
    }
}

#[test]
fn an_answer_that_came_by_callback_is_dated_from_its_arrival() {
    let solved = life(&shared(), &[(67, called_back(67, vec![]))]);
    assert_eq!(earliest(&solved), START + secs(62), "providers call within 5 s");
    let at_once = life(&shared(), &[(3, called_back(3, vec![]))]);
    assert_eq!(earliest(&at_once), START, "but not before its submit");
}

#[test]
fn an_answer_whose_callback_may_have_been_repeated_is_dated_from_the_beginning_of_the_outage() {
    let dated = |outages| earliest(&life(&shared(), &[(67, called_back(67, outages))]));
    assert_eq!(dated(vec![outage(30, 50)]), START + secs(25));
    assert_eq!(dated(vec![outage(20, 22), outage(30, 50)]), START + secs(15), "the first one counts");
    let earlier = Outage { from: START - secs(60), to: START - secs(1) };
    assert_eq!(dated(vec![earlier]), START + secs(62), "it was over before the submit");
    let across = Outage { from: START - secs(60), to: START + secs(1) };
    assert_eq!(dated(vec![across]), START, "not before the submit");
    let not_ready = PollOutcome::Pending;
    let polled = Event::Polled { attempt: 1, asked: START + secs(55), outcome: not_ready };
    let solved = life(&shared(), &[(56, polled), (67, called_back(67, vec![outage(30, 50)]))]);
    assert_eq!(earliest(&solved), START + secs(62), "it was unsolved when the outage was over");
}

#[test]
fn an_answer_that_waited_in_the_spill_is_dated_from_when_it_came() {
    let solved = life(&shared(), &[(107, called_back(67, vec![]))]);
    assert_eq!(earliest(&solved), START + secs(62));
}

fn polled(at: u64, outcome: PollOutcome) -> (u64, Event) {
    (at, Event::Polled { attempt: 1, asked: START + secs(at), outcome })
}

/// The callback waited in the spill while the store was away. When the store was back, another node's poll was
/// faster.
#[test]
fn a_callback_that_a_poll_overtook_dates_the_answer_that_the_poll_brought() {
    let brought = |at| polled(at, PollOutcome::Answered(delivery("token")));
    let overtaken = life(&shared(), &[brought(100)]);
    assert_eq!(earliest(&overtaken), START, "a poll does not tell when it was solved");
    let dated = step(&overtaken, 101, called_back(67, vec![])).next;
    assert_eq!(earliest(&dated), START + secs(62));
    assert_eq!(dated.due(), Some(START + secs(182)), "it lives as long as if the callback had come first");
    let in_an_outage = step(&overtaken, 101, called_back(67, vec![outage(30, 50)])).next;
    assert_eq!(earliest(&in_an_outage), START + secs(25));
    let known_unsolved = life(&shared(), &[polled(65, PollOutcome::Pending), brought(100)]);
    let decision = transition(&known_unsolved, called_back(67, vec![]), START + secs(101), &calls());
    assert_eq!(decision, Decision::Ignore(WhyIgnored::AlreadyAnswered), "the poll says more: 65 s");
}

/// The first fallback poll came between the solve and the callback.
#[test]
fn a_callback_that_comes_a_moment_after_the_poll_dates_the_answer() {
    let by_poll = life(&shared(), &[polled(70, PollOutcome::Answered(delivery("token")))]);
    assert_eq!(earliest(&by_poll), START);
    for (at, solved) in [(71, 66), (75, 70)] {
        let dated = step(&by_poll, at, called_back(at, vec![])).next;
        assert_eq!(earliest(&dated), START + secs(solved), "{at}");
    }
}

/// The node was away when the provider called. It polled the task after its start, and then the provider called
/// again.
#[test]
fn a_callback_that_is_repeated_after_an_outage_dates_the_answer_that_a_poll_brought_meanwhile() {
    let by_poll = life(&shared(), &[polled(51, PollOutcome::Answered(delivery("token")))]);
    assert_eq!(earliest(&by_poll), START);
    let dated = step(&by_poll, 55, called_back(55, vec![outage(40, 50)])).next;
    assert_eq!(earliest(&dated), START + secs(35), "5 s before the outage began");
}

#[test]
fn a_callback_that_says_nothing_about_when_the_answer_was_solved_does_not_date_it() {
    let by_poll = life(&shared(), &[polled(100, PollOutcome::Answered(delivery("token")))]);
    let by_callback = life(&shared(), &[(67, called_back(67, vec![]))]);
    let claimed = step(&by_callback, 90, Event::Claimed { by: by_callback.key, min_life: secs(0) }).next;
    let unknown = Event::CalledBack {
        attempt: 1,
        task: None,
        word: CallbackResult::Answered(delivery("token")),
        receipt: None,
    };
    let other = Event::CalledBack {
        attempt: 1,
        task: None,
        word: CallbackResult::Answered(delivery("another")),
        receipt: Some(Receipt { at: START + secs(67), outages: vec![] }),
    };
    for (order, event, why) in [
        (&by_poll, called_back(106, vec![]), "it came long after the poll, so it may be a repeat"),
        (&by_poll, unknown, "its arrival time is not known"),
        (&by_poll, other, "it brings another answer"),
        (&by_callback, called_back(67, vec![]), "it is the same callback again"),
        (&by_callback, called_back(100, vec![]), "it is a repeat"),
        (&claimed, called_back(67, vec![]), "its caller has it"),
    ] {
        let decision = transition(order, event, START + secs(107), &calls());
        assert_eq!(decision, Decision::Ignore(WhyIgnored::AlreadyAnswered), "{why}");
    }
}

fn took(seconds: u64) -> ProviderAnswer {
    ProviderAnswer { took_at_least: Some(secs(seconds)), ..delivery("token") }
}

/// Regression: the answer was dated by the end of the task on the provider's clock, and that clock was wrong.
#[test]
fn how_long_the_provider_took_dates_an_answer_from_its_submit_on() {
    let brought = |seconds| polled(100, PollOutcome::Answered(took(seconds)));
    assert_eq!(earliest(&life(&shared(), &[brought(60)])), START + secs(60));
    assert_eq!(earliest(&life(&shared(), &[brought(100)])), START + secs(100));
    assert_eq!(
        earliest(&life(&shared(), &[brought(101)])),
        START,
        "it ends after the answer came: no evidence"
    );
    let known_unsolved = life(&shared(), &[polled(80, PollOutcome::Pending), brought(60)]);
    assert_eq!(earliest(&known_unsolved), START + secs(80), "it was not solved at the last poll");
}

#[test]
fn an_answer_by_callback_is_dated_by_what_says_most() {
    let dated = |seconds, outages| {
        let Event::CalledBack { attempt, task, receipt, .. } = called_back(67, outages) else { panic!() };
        let word = CallbackResult::Answered(took(seconds));
        earliest(&life(&shared(), &[(67, Event::CalledBack { attempt, task, word, receipt })]))
    };
    assert_eq!(dated(20, vec![]), START + secs(62), "the provider took it late: providers call within 5 s");
    assert_eq!(dated(66, vec![]), START + secs(66));
    assert_eq!(dated(66, vec![outage(30, 50)]), START + secs(66), "it may be a repeat, of a late solve");
    assert_eq!(dated(20, vec![outage(30, 50)]), START + secs(25));
    assert_eq!(dated(68, vec![]), START + secs(62), "it ends after the callback: no evidence");
}

#[test]
fn a_callback_dates_an_answer_that_a_poll_brought_with_how_long_it_took() {
    let by_poll = life(&shared(), &[polled(100, PollOutcome::Answered(took(20)))]);
    let with = |answer: ProviderAnswer| {
        let Event::CalledBack { attempt, task, receipt, .. } = called_back(67, vec![]) else { panic!() };
        Event::CalledBack { attempt, task, word: CallbackResult::Answered(answer), receipt }
    };
    assert_eq!(earliest(&step(&by_poll, 101, with(took(20))).next), START + secs(62));
    let by_poll = life(&shared(), &[polled(100, PollOutcome::Answered(took(66)))]);
    let decision = transition(&by_poll, with(took(66)), START + secs(101), &calls());
    assert_eq!(decision, Decision::Ignore(WhyIgnored::AlreadyAnswered), "the poll says as much");
}

/// The clock of the node that sent the submit may be ahead of the clock of the node that gets the answer.
#[test]
fn where_clocks_differ_a_duration_that_ends_a_little_too_late_counts_until_the_arrival() {
    let policy = Policy { clock_skew: secs(4), ..calls() };
    let (key, terms) = shared();
    let submitted = step(&step(&placed(key, &terms, &policy), 0, WAKE).next, 1, accepted()).next;
    let dated = |seconds| {
        let (at, event) = polled(60, PollOutcome::Answered(took(seconds)));
        match transition(&submitted, event, START + secs(at), &policy) {
            Decision::Advance(advance) => earliest(&advance.next),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((dated(64), dated(65)), (START + secs(60), START));
}

#[test]
fn a_callback_without_a_known_arrival_time_is_dated_from_the_submit() {
    let word = CallbackResult::Answered(delivery("token"));
    let event = Event::CalledBack { attempt: 1, task: None, word, receipt: None };
    assert_eq!(earliest(&life(&shared(), &[(67, event)])), START);
}

#[test]
fn where_clocks_differ_an_answer_expires_sooner_by_as_much() {
    let policy = Policy { clock_skew: secs(4), ..calls() };
    let (key, terms) = shared();
    let order = placed(key, &terms, &policy);
    let submitted = step(&order, 0, WAKE).next;
    let event = called_back(67, vec![]);
    let Decision::Advance(solved) = transition(&submitted, event, START + secs(67), &policy) else {
        panic!()
    };
    let Phase::Solved { answer, .. } = &solved.next.phase else { panic!() };
    assert_eq!(answer.expires, Some(START + secs(62 + 120 - 4)));
}

/// Regression: a caller was refused the answer that was bought for it, with 39 s of life left.
#[test]
fn the_callers_that_an_answer_was_bought_for_get_it_as_long_as_it_lives() {
    for (key, terms) in [shared(), agreed(true, Reuse::Exclusive, false), agreed(true, Reuse::Shared, true)] {
        let min_life = terms.min_life;
        let solved = life(&(key, terms), &[(67, called_back(67, vec![]))]);
        let at = |second| solved.hand_out(key, min_life, START + secs(second));
        assert_eq!(at(181), HandOut::Claim, "1 s of life is left");
        assert_eq!(at(182), HandOut::Expired);
        assert_eq!(solved.hand_out(key, secs(60), START + secs(122)), HandOut::Claim);
        assert_eq!(
            solved.hand_out(key, secs(60), START + secs(123)),
            HandOut::Expired,
            "60 s were requested"
        );
    }
}

/// Regression: a repeat was accepted with an id, and refused when its caller fetched the answer.
#[test]
fn a_repeat_is_given_an_answer_only_if_it_keeps_its_margin_until_the_caller_comes_for_it() {
    let (key, terms) = shared();
    let solved = life(&(key, Arc::clone(&terms)), &[(67, called_back(67, vec![]))]);
    let later = Arc::new(Terms { collected_in: secs(15), ..(*terms).clone() });
    let is_cached =
        |terms: &Arc<Terms>, at| match place(Some(&solved), None, key, terms, START + secs(at), &calls()) {
            Placement::Stands { origin: Origin::Cached, .. } => true,
            Placement::Follow { .. } => false,
            other => panic!("{other:?}"),
        };
    // The store is written before a caller that waits has its answer.
    assert!(is_cached(&terms, 141) && !is_cached(&terms, 142), "62 + 120 - 40 - 1");
    assert!(is_cached(&later, 127) && !is_cached(&later, 128), "62 + 120 - 40 - 15");
}

/// Regression: a placement that could not reuse an answer began a new life over it. The callers for which it was
/// bought then got "not ready", another caller's error, or another caller's token.
#[test]
fn an_answer_that_is_alive_and_too_old_for_others_stays_with_those_that_it_was_bought_for() {
    let (key, terms) = shared();
    let solved = life(&(key, Arc::clone(&terms)), &[(67, called_back(67, vec![]))]);
    let put = |existing: &Order, follower: Option<&Order>, at| {
        place(Some(existing), follower, key, &terms, START + secs(at), &calls())
    };
    let begun = |placement| match placement {
        Placement::Commit { origin: Origin::Api, advance } => advance.next,
        other => panic!("{other:?}"),
    };
    let Placement::Follow { advance } = put(&solved, None, 150) else { panic!() };
    assert_eq!(advance.counters, Counters::default(), "nothing is waste, and nothing is bought twice");
    let first = advance.next;
    assert_eq!(first.phase, solved.phase);
    let next = begun(put(&first, None, 150));
    assert_eq!((Some(next.key), next.life), (first.followed_by, 1), "another order, with another id");
    let joined = put(&first, Some(&next), 151);
    assert!(matches!(joined, Placement::Stands { key, origin: Origin::Joined, .. } if key == next.key));
    // When the first answer has expired, the order that follows is still the one to join.
    let joined = put(&first, Some(&next), 183);
    assert!(matches!(joined, Placement::Stands { key, origin: Origin::Joined, .. } if key == next.key));
    // Its own answer is reused, and when that is too old the first order begins again and has no follower any more.
    let solved_next = Order { phase: solved.phase, ..next };
    let cached = put(&first, Some(&solved_next), 100);
    assert!(matches!(cached, Placement::Stands { origin: Origin::Cached, .. }));
    let again = begun(put(&first, Some(&solved_next), 190));
    assert_eq!((again.key, again.life, again.followed_by), (key, 2, None));
    // While both live, there is a third one.
    let Placement::Follow { advance } = put(&first, Some(&solved_next), 150) else { panic!() };
    assert!(advance.next.followed_by.is_some() && advance.next.followed_by != first.followed_by);
}

/// Regression: the order that followed was bought although a task of the first order was paid for and not answered
/// yet.
#[test]
fn a_placement_resumes_a_task_that_is_paid_for_rather_than_with_an_order_that_follows() {
    let (key, terms) = shared();
    let mut solved = life(&(key, Arc::clone(&terms)), &[(67, called_back(67, vec![]))]);
    let trailing = Progress::Trailing { task: "task-2".into(), poll_at: START + secs(155), counted: false };
    let paid =
        Attempt { number: 2, sent: START + secs(140), progress: trailing, ..solved.attempts[0].clone() };
    (solved.last_attempt, solved.uncollected) = (2, false);
    solved.attempts.push(paid);
    let Placement::Commit { origin, advance } =
        place(Some(&solved), None, key, &terms, START + secs(150), &calls())
    else {
        panic!()
    };
    assert_eq!((origin, advance.next.current()), (Origin::Joined, Some(2)));
}

/// The order that follows is found through the first one, so the first one must be kept as long.
#[test]
fn an_order_that_is_followed_is_remembered_for_as_long_as_the_next_one_may_be_open() {
    let (key, terms) = shared();
    let solved = life(&(key, Arc::clone(&terms)), &[(67, called_back(67, vec![]))]);
    let solved = Order { uncollected: false, ..solved };
    let followed = Order { followed_by: Some(Key([7; 32])), ..solved.clone() };
    let (alone, then) = (solved.forget_at().unwrap(), followed.forget_at().unwrap());
    assert_eq!(then, alone + crate::terms::TIMEOUT_MAX);
}

#[test]
fn a_share_window_that_is_set_ends_sharing_sooner() {
    let (key, terms) = shared();
    let solved = life(&(key, Arc::clone(&terms)), &[(67, called_back(67, vec![]))]);
    let policy = Policy { share_window: Some(secs(30)), ..calls() };
    let is_cached = |at| {
        let placement = place(Some(&solved), None, key, &terms, START + secs(at), &policy);
        matches!(placement, Placement::Stands { origin: Origin::Cached, .. })
    };
    assert!(is_cached(97) && !is_cached(98));
}

#[test]
fn an_answer_that_no_caller_came_for_is_waste_when_it_expires_and_one_that_left_is_not() {
    for (key, terms) in [shared(), agreed(true, Reuse::Exclusive, false), agreed(true, Reuse::Shared, true)] {
        let solved = life(&(key, terms), &[(67, called_back(67, vec![]))]);
        assert_eq!(solved.due(), Some(START + secs(182)));
        let expired = step(&solved, 182, WAKE);
        assert_eq!((expired.counters.wasted, expired.counters.wasted_micros), (1, 3));
        assert!(matches!(expired.next.phase, Phase::Expired { .. }));
        let claimed = step(&solved, 100, Event::Claimed { by: key, min_life: secs(0) });
        assert_eq!((claimed.counters.wasted, claimed.next.due()), (0, None));
        assert!(matches!(claimed.next.hand_out(key, secs(0), START + secs(181)), HandOut::Answer(_)));
    }
}

#[test]
fn an_answer_from_the_stock_that_its_caller_did_not_come_for_is_waste() {
    let (key, terms) = agreed(true, Reuse::Exclusive, false);
    let solved = life(&(key, terms), &[(10, called_back(10, vec![]))]);
    let stocked = step(&solved, 11, Event::Cancelled).next;
    let (by, expires) = (Key([9; 32]), START + secs(125));
    let taken = stocked.taken(by, START + secs(12));
    assert_eq!(taken.due(), Some(expires));
    let wasted = step(&taken, 125, WAKE);
    assert_eq!((wasted.counters.wasted, wasted.next.due(), wasted.next.taker()), (1, None, Some(by)));
    let collected = step(&taken, 20, Event::Claimed { by, min_life: secs(40) });
    assert_eq!(collected.next.due(), None);
}

#[test]
fn an_answer_that_a_new_life_replaces_before_a_caller_had_it_is_waste() {
    let (key, terms) = shared();
    let solved = life(&(key, Arc::clone(&terms)), &[(67, called_back(67, vec![]))]);
    let Placement::Commit { advance, .. } =
        place(Some(&solved), None, key, &terms, START + secs(182), &calls())
    else {
        panic!()
    };
    assert_eq!(advance.counters.wasted, 1);
}
