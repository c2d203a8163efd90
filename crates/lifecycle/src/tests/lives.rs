//! Single lives, step by step: known traps, and the right decision for each.

use super::{START, agreed, delivery, placed, policy, secs};
use crate::{
    Answer, CallbackResult, DeadCause, Decision, Effect, Event, Evidence, Fault, FaultClass, Key, Offer,
    Order, Pace, Phase, Placement, Policy, PollOutcome, Preset, Refusal, Remedy, Reuse, SubmitOutcome,
    SubmitRoute, Terms, Timestamp, WhenInDoubt, place, surplus_as_order, transition,
};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
/// Runs a life: each step is an event and the seconds since the placement.
fn tell(policy: &Policy, steps: &[(u64, Event)]) -> Order {
    let (key, terms) = agreed(true, Reuse::Shared, false);
    steps.iter().fold(placed(key, &terms, policy), |order, (at, event)| {
        match transition(&order, event.clone(), START + secs(*at), policy) {
            Decision::Advance(advance) => advance.next,
            Decision::Act(_) => order,
            Decision::Ignore(why) => panic!("{event:?} at {at} s on {}: {why:?}", order.phase.name()),
        }
    })
}

const WAKE: Event = Event::Woken { stamp: 1, route: SubmitRoute::To(Offer::OF_TERMS) };

fn refused(attempt: u32, class: FaultClass) -> Event {
    Event::Submitted { attempt, outcome: SubmitOutcome::Rejected(Fault::new(class, "CODE")) }
}

fn accepted(attempt: u32) -> Event {
    Event::Submitted { attempt, outcome: SubmitOutcome::Accepted { task: format!("task-{attempt}") } }
}

fn called_back(attempt: u32) -> Event {
    Event::CalledBack {
        attempt,
        task: None,
        word: CallbackResult::Answered(delivery("token")),
        receipt: None,
    }
}

/// An order that goes through the submit again keeps its count of retries.
#[test]
fn each_class_of_fault_is_tried_again_as_often_as_its_limit_says_and_no_more() {
    let policy = policy(true, WhenInDoubt::Resubmit).with_preset(Preset::Standard);
    for class in FaultClass::ALL {
        let rule = policy.faults.rule(class);
        if matches!(rule.remedy, Remedy::Tell | Remedy::Hold | Remedy::Elsewhere) {
            continue;
        }
        let (key, terms) = agreed(true, Reuse::Shared, false);
        let mut order = placed(key, &terms, &policy);
        let mut now = START;
        while order.phase.is_open() {
            now = now.max(order.due().expect("an open order has a timer"));
            for event in [WAKE, refused(order.last_attempt + 1, class)] {
                if let Decision::Advance(advance) = transition(&order, event, now, &policy) {
                    order = advance.next;
                }
            }
        }
        assert_eq!(order.last_attempt, u32::from(rule.limit.unwrap()) + 1, "{class:?}");
        assert!(
            matches!(&order.phase, Phase::Dead { cause: DeadCause::Spent(fault), .. } if fault.class == class)
        );
    }
}

/// Five "no slot" replies because other orders were quicker must not end an order that has minutes left.
#[test]
fn what_costs_nothing_is_tried_until_the_deadline_and_the_end_names_the_reason() {
    let policy = policy(true, WhenInDoubt::Resubmit);
    for class in [FaultClass::Busy, FaultClass::Unreachable] {
        let (key, terms) = agreed(true, Reuse::Shared, false);
        let mut order = placed(key, &terms, &policy);
        let deadline = order.deadline;
        let mut last_try = START;
        let mut now = START;
        while order.phase.is_open() {
            now = now.max(order.due().expect("an open order has a timer"));
            for event in [WAKE, refused(order.last_attempt + 1, class)] {
                if let Decision::Advance(advance) = transition(&order, event, now, &policy) {
                    order = advance.next;
                    last_try = now;
                }
            }
        }
        assert!(order.last_attempt > 6, "{}", order.last_attempt);
        assert!(deadline.since(last_try) <= policy.backoff.cap + secs(1), "{:?}", deadline.since(last_try));
        let Phase::Dead { cause: DeadCause::NotTaken(Some(fault)), .. } = &order.phase else {
            panic!("{:?}", order.phase)
        };
        assert_eq!(fault.class, class);
    }
}

#[test]
fn a_closed_account_holds_the_order_until_an_operator_fixes_it_and_a_later_deadline_changes_nothing() {
    let policy = policy(true, WhenInDoubt::Resubmit);
    for class in [FaultClass::NoFunds, FaultClass::AccountBlocked] {
        let held = tell(&policy, &[(0, WAKE), (1, refused(1, class))]);
        assert_eq!(held.due(), Some(held.deadline));
        let Placement::Commit { advance, .. } =
            place(Some(&held), None, held.key, &held.terms, START + secs(200), &policy)
        else {
            panic!("a late joiner moves the deadline");
        };
        let Decision::Advance(still) = transition(&advance.next, WAKE, held.deadline, &policy) else {
            panic!()
        };
        assert!(matches!(still.next.phase, Phase::Queued { held: true, .. }), "{:?}", still.next.phase);
        let Decision::Advance(go) = transition(&still.next, Event::Released, START + secs(301), &policy)
        else {
            panic!()
        };
        assert_eq!(go.next.due(), Some(START + secs(301)));
    }
}

#[test]
fn a_replayed_dead_letter_resumes_the_task_that_it_has_paid_for() {
    let policy = policy(true, WhenInDoubt::Resubmit);
    let dead = tell(&policy, &[(0, WAKE), (1, accepted(1)), (300, WAKE)]);
    assert!(matches!(dead.phase, Phase::Dead { cause: DeadCause::Deadline, .. }));
    let Decision::Advance(again) = transition(&dead, Event::Replayed, START + secs(310), &policy) else {
        panic!()
    };
    assert!(matches!(again.next.phase, Phase::Solving { attempt: 1, .. }), "resumed, not paid for again");
    let at = START + policy.task_life + secs(1);
    let Decision::Advance(later) = transition(&dead, Event::Replayed, at, &policy) else { panic!() };
    assert!(matches!(later.next.phase, Phase::Queued { .. }), "a task that old is not worth asking for");
    let Decision::Advance(paid) = transition(&later.next, WAKE, at, &policy) else { panic!() };
    assert_eq!(paid.counters.possible_doubles, 1, "and paying again is counted");
}

#[test]
fn an_answer_to_an_earlier_attempt_settles_the_order_and_the_newer_one_goes_to_the_stock() {
    let policy = policy(true, WhenInDoubt::Resubmit);
    let unknown = Event::Submitted { attempt: 1, outcome: SubmitOutcome::InDoubt(Evidence::default()) };
    let solved =
        tell(&policy, &[(0, WAKE), (2, unknown), (67, WAKE), (68, accepted(2)), (70, called_back(1))]);
    assert!(matches!(&solved.phase, Phase::Solved { answer: Answer { attempt: 1, .. }, .. }));
    assert_eq!(solved.possible_doubles, 1);
    let now = START + secs(75);
    let Decision::Advance(late) = transition(&solved, called_back(2), now, &policy) else { panic!() };
    assert_eq!(late.effect, Some(Effect::Stock { attempt: 2 }));
    let surplus = surplus_as_order(&late.next, 2, now).expect("there is a spare answer");
    assert_eq!(surplus.list_stock().map(|(target, _)| target), Some(solved.terms.target));
    assert_eq!(
        surplus_as_order(&late.next, 2, now + secs(5)).map(|s| s.key),
        Some(surplus.key),
        "the same each time"
    );
    let Decision::Advance(done) = transition(&late.next, Event::Stocked { attempt: 2 }, now, &policy) else {
        panic!()
    };
    let claim = Event::Claimed { by: done.next.key, min_life: secs(0) };
    let Decision::Advance(collected) = transition(&done.next, claim, now, &policy) else { panic!() };
    assert_eq!(collected.next.due(), None);
}

/// After a flat wait of 120 s the answer would be expired, and 5 s of polling must not make it look newer.
#[test]
fn an_answer_lives_from_the_earliest_moment_at_which_it_can_have_been_solved() {
    let policy = policy(false, WhenInDoubt::Resubmit);
    let polled = |asked: u64, outcome| Event::Polled { attempt: 1, asked: START + secs(asked), outcome };
    let steps = [
        (0, WAKE),
        (1, accepted(1)),
        (12, polled(10, PollOutcome::Pending)),
        (20, polled(17, PollOutcome::Answered(delivery("token")))),
    ];
    let solved = tell(&policy, &steps);
    let Phase::Solved { answer, .. } = &solved.phase else { panic!("{:?}", solved.phase) };
    assert_eq!(answer.expires, Some(START + secs(10 + 120)), "not ready at the poll at 10 s");
    let at_once = tell(&policy, &[(5, WAKE), (9, accepted(1)), (30, called_back(1))]);
    let Phase::Solved { answer, .. } = &at_once.phase else { panic!("{:?}", at_once.phase) };
    assert_eq!(
        answer.expires,
        Some(START + secs(5 + 120)),
        "never polled: it may have been there from the start"
    );
}

#[test]
fn the_same_key_with_other_parameters_is_refused_and_with_the_same_ones_replayed_until_it_expires() {
    let policy = policy(true, WhenInDoubt::Resubmit);
    let (key, terms) = agreed(true, Reuse::Shared, true);
    let mut order = placed(key, &terms, &policy);
    let other = Arc::new(Terms { fingerprint: [1; 32], ..(*terms).clone() });
    assert_eq!(
        place(Some(&order), None, key, &other, START, &policy),
        Placement::Refused(Refusal::OtherParameters)
    );
    for (at, event) in [(0, WAKE), (1, accepted(1)), (20, called_back(1))] {
        let Decision::Advance(advance) = transition(&order, event, START + secs(at), &policy) else {
            panic!()
        };
        order = advance.next;
    }
    let Phase::Solved { answer, .. } = &order.phase else { panic!("{order:?}") };
    let life = answer.expires.unwrap().since(START).as_secs();
    // Also where the caller gets an id and reads later: it may read at once.
    for collected_in in [secs(0), secs(15)] {
        let terms = Arc::new(Terms { collected_in, ..(*terms).clone() });
        let again = |at: u64| place(Some(&order), None, key, &terms, START + secs(at), &policy);
        for at in [life - 20, life - 14, life - 1] {
            let placement = again(at);
            assert!(
                matches!(placement, Placement::Stands { origin: crate::Origin::Replayed, .. }),
                "{at}: {placement:?}"
            );
        }
        assert_eq!(again(life), Placement::Refused(Refusal::Expired), "never a second payment in silence");
    }
    let again = |at: u64| place(Some(&order), None, key, &terms, START + secs(at), &policy);
    assert_eq!(again(100_000), Placement::Refused(Refusal::Expired));
}

/// The order after these steps.
fn after(policy: &Policy, order: Order, steps: impl IntoIterator<Item = (u64, Event)>) -> Order {
    steps.into_iter().fold(order, |order, (at, event)| {
        match transition(&order, event, START + secs(at), policy) {
            Decision::Advance(advance) => advance.next,
            other => panic!("{other:?}"),
        }
    })
}

/// Whether a repeat with the key gets the answer that has so many seconds left. The caller comes for it within
/// `collected_in` seconds, and asked for `min_life` seconds of life.
fn repeats(min_life: u64, collected_in: u64, left: &[u64]) -> Vec<bool> {
    let policy = policy(true, WhenInDoubt::Resubmit);
    let (key, terms) = agreed(true, Reuse::Shared, true);
    let (min_life, collected_in) = (secs(min_life), secs(collected_in));
    let terms = Arc::new(Terms { min_life, collected_in, ..(*terms).clone() });
    let steps = [(0, WAKE), (1, accepted(1)), (20, called_back(1))];
    let order = after(&policy, placed(key, &terms, &policy), steps);
    let Phase::Solved { answer, .. } = &order.phase else { panic!("{order:?}") };
    let expires = answer.expires.unwrap().as_millis();
    let is_given = |left: &u64| {
        let now = Timestamp::from_millis(expires - left * 1000);
        match place(Some(&order), None, key, &terms, now, &policy) {
            Placement::Stands { origin: crate::Origin::Replayed, .. } => true,
            Placement::Refused(Refusal::Expired) => false,
            other => panic!("{left} s left: {other:?}"),
        }
    };
    left.iter().map(is_given).collect()
}

/// Trap: a repeat got the id, and its caller was refused when it came for the answer a few seconds later.
#[test]
fn a_repeat_that_asked_for_life_gets_the_id_only_if_that_life_is_left_when_its_caller_comes() {
    assert_eq!(repeats(60, 15, &[76, 75, 74, 61, 60]), [true, true, false, false, false]);
    assert_eq!(repeats(60, 0, &[61, 60, 59]), [true, true, false], "the answer is in the reply");
    assert_eq!(repeats(0, 15, &[14, 1]), [true, true], "it asked for no life");
}

/// Trap: a repeat got the error that the answer had expired, long before it did.
#[test]
fn a_cancelled_order_with_a_key_is_bought_again_if_its_answer_has_gone_to_another_order() {
    let policy = policy(true, WhenInDoubt::Resubmit);
    let (key, terms) = agreed(true, Reuse::Exclusive, true);
    let steps = [(0, WAKE), (1, accepted(1)), (2, Event::Cancelled), (20, called_back(1))];
    let taker = Key([9; 32]);
    let taken = after(&policy, placed(key, &terms, &policy), steps).taken(taker, START + secs(21));
    let Phase::Claimed { answer, .. } = &taken.phase else { panic!("{taken:?}") };
    let (now, expired) = (START + secs(22), answer.expires.unwrap());
    // The taker may still read the answer, so another order follows.
    let Placement::Follow { advance } = place(Some(&taken), None, key, &terms, now, &policy) else {
        panic!("it is wanted again")
    };
    let followed = advance.next;
    assert_eq!(followed.taker(), Some(taker));
    let follower = match place(Some(&followed), None, key, &terms, now, &policy) {
        Placement::Commit { origin: crate::Origin::Api, advance } => advance.next,
        other => panic!("{other:?}"),
    };
    assert_eq!(Some(follower.key), followed.followed_by);
    let again = |terms: &Arc<Terms>, follower: &Order, at: Timestamp| {
        place(Some(&followed), Some(follower), key, terms, at, &policy)
    };
    assert!(matches!(again(&terms, &follower, now), Placement::Stands { origin: crate::Origin::Joined, .. }));
    let other = Arc::new(Terms { fingerprint: [1; 32], ..(*terms).clone() });
    assert_eq!(again(&other, &follower, now), Placement::Refused(Refusal::OtherParameters));
    let solved = after(&policy, follower, [(30, WAKE), (31, accepted(1)), (40, called_back(1))]);
    let replay = again(&terms, &solved, START + secs(41));
    assert!(matches!(replay, Placement::Stands { origin: crate::Origin::Replayed, .. }), "{replay:?}");
    // The key has had an answer now. It has expired, and nothing is bought in silence.
    assert_eq!(again(&terms, &solved, START + secs(100_000)), Placement::Refused(Refusal::Expired));
    match place(Some(&taken), None, key, &terms, expired, &policy) {
        Placement::Commit { origin: crate::Origin::Api, advance } => assert_eq!(advance.next.life, 2),
        other => panic!("no order has to keep the answer any more: {other:?}"),
    }
}

/// The callback that settles a doubt may be with another node, which kept it while the store was away.
#[test]
fn a_doubt_waits_for_a_callback_that_is_here_already_and_not_for_ever() {
    let pace = Pace { p50: secs(1), p95: secs(1), p99: secs(1) };
    let policy = Policy { pace, ..policy(true, WhenInDoubt::Resubmit) };
    let unknown = || Event::Submitted { attempt: 1, outcome: SubmitOutcome::InDoubt(Evidence::default()) };
    let until = |order: &Order| match order.phase {
        Phase::InDoubt { until, .. } => until,
        ref phase => panic!("{}", phase.name()),
    };
    let reported = tell(&policy, &[(0, WAKE), (20, unknown())]);
    assert_eq!(until(&reported), START + secs(30), "time for others to write");
    let silent = tell(&policy, &[(0, WAKE), (30, WAKE)]);
    assert_eq!(until(&silent), START + secs(60), "longer without a report");
    let late = tell(&policy, &[(0, WAKE), (20, unknown()), (35, WAKE)]);
    assert_eq!(until(&late), START + secs(65), "a timer that rings late says that we were away");
    let again = tell(&policy, &[(0, WAKE), (20, unknown()), (35, WAKE), (65, WAKE)]);
    assert_eq!(again.last_attempt, 2);
    let mut always_late = reported;
    let mut now = START + secs(20);
    while matches!(always_late.phase, Phase::InDoubt { .. }) {
        now = until(&always_late) + secs(10);
        let Decision::Advance(advance) = transition(&always_late, WAKE, now, &policy) else { panic!() };
        always_late = advance.next;
    }
    assert!(
        now < START + secs(200) && always_late.last_attempt == 2,
        "a machine that is always late comes to an end"
    );
}

#[test]
fn a_task_that_was_given_up_counts_as_a_possible_double_payment_when_another_is_bought() {
    let policy = policy(true, WhenInDoubt::Resubmit);
    let life = [(0, WAKE), (1, accepted(1)), (300, WAKE), (601, WAKE), (700, Event::Replayed), (700, WAKE)];
    let again = tell(&policy, &life);
    assert_eq!((again.last_attempt, again.possible_doubles), (2, 1));
}

#[test]
fn an_exclusive_answer_with_a_waiting_caller_goes_to_no_other_order() {
    let policy = policy(true, WhenInDoubt::Resubmit);
    let (key, terms) = agreed(true, Reuse::Exclusive, false);
    let mut order = placed(key, &terms, &policy);
    for (at, event) in [(0, WAKE), (1, accepted(1)), (20, called_back(1))] {
        let Decision::Advance(advance) = transition(&order, event, START + secs(at), &policy) else {
            panic!()
        };
        order = advance.next;
    }
    let claim = |by| transition(&order, Event::Claimed { by, min_life: secs(40) }, START + secs(21), &policy);
    assert_eq!(claim(Key([9; 32])), Decision::Ignore(crate::WhyIgnored::TakenByAnother));
    assert!(matches!(claim(key), Decision::Advance(_)));
}

/// Only an operator may decide whether the order was paid for, also when no caller wants it any more.
#[test]
fn where_a_person_decides_about_doubts_a_cancel_does_not_pay_again() {
    let policy = policy(false, WhenInDoubt::DeadLetter);
    let unknown = Event::Submitted { attempt: 1, outcome: SubmitOutcome::InDoubt(Evidence::default()) };
    let dead = tell(&policy, &[(0, WAKE), (1, Event::Cancelled), (20, unknown)]);
    assert!(matches!(dead.phase, Phase::Dead { cause: DeadCause::Doubt, .. }));
    let again = |order: &Order| place(Some(order), None, order.key, &order.terms, START + secs(100), &policy);
    assert_eq!(again(&dead), Placement::Refused(Refusal::NeedsAPerson));
    let Decision::Advance(settled) = transition(&dead, accepted(1), START + secs(90), &policy) else {
        panic!()
    };
    assert!(matches!(again(&settled.next), Placement::Commit { .. }), "no longer in doubt: it goes on");
}

#[test]
fn a_task_with_an_unusable_id_is_a_doubt_and_does_not_fill_the_record() {
    let policy = policy(true, WhenInDoubt::Resubmit);
    let endless = SubmitOutcome::Accepted { task: "9".repeat(100_000) };
    let order = tell(&policy, &[(0, WAKE), (1, Event::Submitted { attempt: 1, outcome: endless })]);
    assert!(matches!(order.phase, Phase::InDoubt { .. }));
}

#[test]
fn a_doubt_remembers_what_was_seen_when_the_attempt_fell_silent() {
    let policy = policy(false, WhenInDoubt::Resubmit);
    let silence = |attempt| {
        let evidence = Evidence::new(format!("HTTP 50{attempt}"));
        Event::Submitted { attempt, outcome: SubmitOutcome::InDoubt(evidence) }
    };
    let mut life = vec![(0, WAKE), (1, silence(1))];
    for attempt in 2..=4 {
        let due = tell(&policy, &life).due().unwrap().since(START).as_secs() + 1;
        life.extend([(due, WAKE), (due + 1, silence(attempt))]);
    }
    life.push((tell(&policy, &life).due().unwrap().since(START).as_secs() + 1, WAKE));
    let order = tell(&policy, &life);
    let Phase::Dead { cause: DeadCause::DoubtsSpent(evidence), .. } = &order.phase else {
        panic!("{:?}", order.phase)
    };
    assert_eq!(evidence.summary, "HTTP 504");
    assert_eq!(order.possible_doubles, 3);
}

#[test]
fn a_dead_letter_that_is_dropped_is_forgotten_in_time_and_nothing_else_can_be_dropped() {
    let policy = policy(false, WhenInDoubt::DeadLetter);
    let unknown = Event::Submitted { attempt: 1, outcome: SubmitOutcome::InDoubt(Evidence::default()) };
    let dropped = tell(&policy, &[(0, WAKE), (1, unknown), (2, Event::Dropped)]);
    assert!(matches!(dropped.phase, Phase::Failed { cause: crate::FailCause::Cancelled, .. }));
    assert_eq!(dropped.forget_at(), Some(START + secs(2) + policy.keep));
    let open = tell(&policy, &[(0, WAKE)]);
    assert_eq!(
        transition(&open, Event::Dropped, START + secs(1), &policy),
        Decision::Ignore(crate::WhyIgnored::WrongPhase)
    );
}

/// An order with a timeout of ten seconds, whose kind usually takes fifteen: its answer may be ready earlier.
#[test]
fn a_task_is_polled_before_the_deadline_however_slow_its_kind_is() {
    for callbacks in [false, true] {
        let pace = Pace { p50: secs(200), p95: secs(400), p99: secs(600) };
        let policy = Policy { pace, ..policy(callbacks, WhenInDoubt::Resubmit) };
        let order = tell(&policy, &[(0, WAKE), (1, accepted(1))]);
        let Phase::Solving { poll_at, .. } = order.phase else { panic!("{}", order.phase.name()) };
        assert!(
            poll_at + policy.usual_interval() < order.deadline,
            "there is time for an answer, and for one lost reply"
        );
    }
    let hasty = Policy { timeout: secs(8), ..policy(false, WhenInDoubt::Resubmit) };
    assert_eq!(
        hasty.first_ask(Some(secs(6))),
        hasty.first_poll(),
        "but never sooner than the provider allows"
    );
}

/// When a store forgets, an order that a node remembers continues, and is listed for an operator until it is dropped.
#[test]
fn an_order_that_was_put_back_goes_on_and_is_for_a_person_until_it_is_dropped() {
    let policy = policy(true, WhenInDoubt::Resubmit);
    let back = Event::PutBack { others_by: START + secs(12) };
    let solved = tell(&policy, &[(0, WAKE), (1, accepted(1)), (2, back.clone()), (20, called_back(1))]);
    assert!(matches!(solved.phase, Phase::Solved { .. }));
    let dead_letter = solved.dead_letter().expect("a person has not seen it");
    assert_eq!(dead_letter.cause, crate::DeadLetterCause::StoreForgot);
    assert_eq!(solved.forget_at(), None);
    let Decision::Advance(seen) = transition(&solved, Event::Dropped, START + secs(30), &policy) else {
        panic!("it can be dropped")
    };
    assert!(
        seen.next.dead_letter().is_none() && seen.next.phase == solved.phase,
        "dropping ends the dead letter only"
    );

    let queued = tell(&policy, &[(2, back)]);
    assert_eq!(queued.due(), Some(START + secs(12)), "another node may know that it was submitted");
}

/// An order that every node forgot is not bought again before an operator decides it. A known task is resumed.
#[test]
fn an_order_whose_last_steps_are_lost_waits_for_a_person_or_resumes_its_task() {
    let policy = policy(true, WhenInDoubt::Resubmit);
    let (key, terms) = agreed(true, Reuse::Shared, false);
    let lost = tell(&policy, &[(1, Event::Lost)]);
    assert!(matches!(lost.phase, Phase::Dead { cause: DeadCause::StoreForgot, .. }));
    let again = place(Some(&lost), None, key, &terms, START + secs(5), &policy);
    assert_eq!(again, Placement::Refused(Refusal::NeedsAPerson));

    let lost = tell(&policy, &[(0, WAKE), (1, accepted(1)), (5, Event::Lost)]);
    let Placement::Commit { advance, .. } = place(Some(&lost), None, key, &terms, START + secs(9), &policy)
    else {
        panic!("there is a task to resume")
    };
    assert!(matches!(advance.next.phase, Phase::Solving { attempt: 1, .. }));
    let revived = tell(&policy, &[(0, WAKE), (1, accepted(1)), (5, Event::Lost), (9, called_back(1))]);
    assert!(matches!(revived.phase, Phase::Solved { .. }));
}

/// When a caller repeats an order with lost steps, its task is resumed. If that brings no answer, the order waits for
/// an operator again, whatever the fault.
#[test]
fn an_order_with_lost_steps_whose_resumed_task_brings_nothing_is_not_bought_again() {
    let policy = policy(true, WhenInDoubt::Resubmit);
    let (key, terms) = agreed(true, Reuse::Shared, true);
    let place_at = |order: &Order, at| place(Some(order), None, key, &terms, START + secs(at), &policy);
    let advance = |order: &Order, at, event: &Event| match transition(
        order,
        event.clone(),
        START + secs(at),
        &policy,
    ) {
        Decision::Advance(advance) => advance.next,
        other => panic!("{event:?} led to {other:?}"),
    };
    let steps = [(0, WAKE), (1, accepted(1)), (5, Event::Lost)];
    let start = placed(key, &terms, &policy);
    let lost = steps.iter().fold(start, |order, (at, event)| advance(&order, *at, event));
    let polled = |outcome| Event::Polled { attempt: 1, asked: START + secs(299), outcome };
    let gone = Fault::new(FaultClass::Unsolvable, "GONE");
    let ends = [
        ("the answer has expired", 300, polled(PollOutcome::Answered(delivery("token")))),
        ("the provider does not know the task", 300, polled(PollOutcome::Faulted(gone))),
        ("the provider refuses it", 300, polled(PollOutcome::Faulted(Fault::new(FaultClass::Caller, "BAD")))),
        ("the deadline", 299 + terms.timeout.as_secs(), WAKE),
    ];
    for (what, at, event) in ends {
        let Placement::Commit { advance: again, .. } = place_at(&lost, 299) else {
            panic!("a task is resumed")
        };
        assert!(matches!(again.next.phase, Phase::Solving { attempt: 1, .. }), "{what}");
        let ended = advance(&again.next, at, &event);
        assert!(
            matches!(ended.phase, Phase::Dead { cause: DeadCause::StoreForgot, .. }),
            "{what}: {:?}",
            ended.phase
        );
        assert_eq!(ended.last_attempt, 1, "{what}");
        // After the life of the task there is nothing to resume.
        let later = place_at(&ended, at + policy.task_life.as_secs());
        assert_eq!(later, Placement::Refused(Refusal::NeedsAPerson), "{what}");
        let replayed = advance(&ended, at + policy.task_life.as_secs(), &Event::Replayed);
        assert!(matches!(replayed.phase, Phase::Queued { .. }), "{what}: a person decides");
        let paid = advance(&replayed, at + policy.task_life.as_secs(), &WAKE);
        assert!(matches!(paid.phase, Phase::Submitting { .. }), "{what}");
    }
    let late = place_at(&lost, policy.task_life.as_secs() + 1);
    assert_eq!(late, Placement::Refused(Refusal::NeedsAPerson), "there is no task that could be resumed");
}

/// An order that was placed again after the store forgot the first record waits for the paid attempts of that record.
#[test]
fn the_attempts_of_a_forgotten_record_are_waited_for_and_not_paid_again() {
    let policy = policy(true, WhenInDoubt::Resubmit);
    let first = tell(&policy, &[(0, WAKE), (1, accepted(1))]);
    let recalled = Event::Recalled { born: first.born, attempts: first.attempts };
    let fresh = tell(&policy, &[(2, recalled.clone())]);
    assert!(matches!(fresh.phase, Phase::Solving { attempt: 1, .. }));
    assert_eq!(fresh.possible_doubles, 0, "nothing was paid for here");
    let again = transition(&fresh, recalled.clone(), START + secs(3), &policy);
    assert!(matches!(again, Decision::Ignore(_)), "each is remembered once");

    let paid = tell(&policy, &[(0, WAKE), (1, accepted(1)), (2, recalled), (9, called_back(2))]);
    assert!(
        matches!(&paid.phase, Phase::Solved { answer, .. } if answer.attempt == 2),
        "either answer will do"
    );
    assert_eq!(paid.possible_doubles, 1);
}
