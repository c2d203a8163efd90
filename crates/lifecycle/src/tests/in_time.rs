//! Priorities of placements that join, and orders that cannot be answered in time.

use super::{START, agreed, placed, policy, secs};
use crate::{
    DeadCause, Decision, Draft, Effect, Event, Fault, FaultClass, KeySettings, Offer, Order, Origin, Phase,
    Placement, Policy, Priority, Refusal, Reuse, Slot, SubmitOutcome, SubmitRoute, Terms, Timestamp,
    WhenInDoubt, place, transition,
};
use alloc::string::ToString;
use alloc::sync::Arc;
use core::time::Duration;

const WAKE: Event = Event::Woken { stamp: 1, route: SubmitRoute::To(Offer::OF_TERMS) };

fn measured(quickest: u64) -> Policy {
    Policy { quickest: Some(secs(quickest)), ..policy(true, WhenInDoubt::Resubmit) }
}

fn terms(reuse: Reuse, timeout: u64, priority: Priority) -> Arc<Terms> {
    let (_, terms) = agreed(true, reuse, false);
    Arc::new(Terms { timeout: secs(timeout), priority, takes_stock: false, ..(*terms).clone() })
}

fn step(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> (Order, Option<Effect>) {
    match transition(order, event, now, policy) {
        Decision::Advance(advance) => (advance.next, advance.effect),
        other => panic!("{other:?}"),
    }
}

fn begins(terms: &Arc<Terms>, policy: &Policy) -> Placement {
    let (key, _) = agreed(true, Reuse::Shared, false);
    place(None, None, key, terms, START, policy)
}

#[test]
fn a_more_urgent_placement_that_joins_makes_the_order_more_urgent_and_a_less_urgent_one_changes_nothing() {
    let policy = policy(true, WhenInDoubt::Resubmit);
    let (key, _) = agreed(true, Reuse::Shared, false);
    let order = placed(key, &terms(Reuse::Shared, 300, Priority::Normal), &policy);
    assert_eq!(order.priority, Priority::Normal);
    let joins = |priority| {
        let terms = terms(Reuse::Shared, 300, priority);
        place(Some(&order), None, key, &terms, START + secs(1), &policy)
    };
    for priority in [Priority::Normal, Priority::Bulk] {
        assert!(matches!(joins(priority), Placement::Stands { origin: Origin::Joined, .. }), "{priority:?}");
    }
    let Placement::Commit { origin: Origin::Joined, advance } = joins(Priority::Interactive) else {
        panic!("it is written")
    };
    assert_eq!(advance.next.priority, Priority::Interactive);
    assert_eq!((advance.counters.asked, advance.counters.joined), (1, 1));
    let last = advance.next.timeline.entries.last().map(ToString::to_string);
    assert_eq!(last.as_deref(), Some("joined by a more urgent placement: interactive"));
    let herd = terms(Reuse::Shared, 300, Priority::Interactive);
    let next = place(Some(&advance.next), None, key, &herd, START + secs(2), &policy);
    assert!(matches!(next, Placement::Stands { .. }), "the rest of a herd writes nothing");
}

#[test]
fn a_priority_is_not_part_of_the_identity_and_a_refill_of_a_pool_is_bulk() {
    let check = |priority, slot| {
        let mut draft = Draft::new("ada").with("what", "x");
        (draft.reuse, draft.priority, draft.slot) = (Some(Reuse::Shared), priority, slot);
        let checked = draft.check(&super::kind(true), KeySettings::default(), &Policy::DEFAULT, START, 7);
        let (key, terms) = checked.expect("the order is good");
        (key, terms.fingerprint, terms.priority)
    };
    let (key, fingerprint, usual) = check(None, None);
    assert_eq!(usual, Priority::Normal);
    for priority in Priority::ALL {
        assert_eq!(check(Some(priority), None), (key, fingerprint, priority));
    }
    let slot = Slot { pool: "logins".into(), number: 1, generation: 1 };
    assert_eq!(check(None, Some(slot)).2, Priority::Bulk);
}

#[test]
fn a_timeout_that_no_answer_has_kept_is_refused_when_the_order_is_placed() {
    let policy = measured(9);
    let refused = begins(&terms(Reuse::Exclusive, 8, Priority::Normal), &policy);
    assert_eq!(refused, Placement::Refused(Refusal::TooShort { timeout: secs(8), needs: secs(9) }));
    let exact = begins(&terms(Reuse::Exclusive, 9, Priority::Normal), &policy);
    assert!(matches!(exact, Placement::Commit { .. }), "an answer has come that quickly");
    let not_measured = begins(&terms(Reuse::Exclusive, 1, Priority::Normal), &Policy::DEFAULT);
    assert!(matches!(not_measured, Placement::Commit { .. }), "what is not known refuses no order");
}

#[test]
fn an_order_is_refused_if_the_queue_before_it_is_longer_than_its_timeout() {
    let policy = Policy { queue_wait: Some(secs(300)), ..policy(true, WhenInDoubt::Resubmit) };
    let refused = begins(&terms(Reuse::Exclusive, 300, Priority::Normal), &policy);
    assert_eq!(refused, Placement::Refused(Refusal::QueueTooLong { timeout: secs(300), wait: secs(300) }));
    let patient = begins(&terms(Reuse::Exclusive, 301, Priority::Normal), &policy);
    assert!(matches!(patient, Placement::Commit { .. }));
    let slot = Some(Slot { pool: "logins".into(), number: 1, generation: 1 });
    let refill = Terms { slot, ..(*terms(Reuse::Exclusive, 300, Priority::Bulk)).clone() };
    assert!(matches!(begins(&Arc::new(refill), &policy), Placement::Commit { .. }), "no caller waits for it");
}

/// An order that the stock may still serve is not refused: it fails at its first step, if the stock has nothing.
#[test]
fn an_order_that_the_stock_may_serve_is_not_refused_for_its_timeout() {
    let (key, terms) = agreed(true, Reuse::Shared, true);
    let short = Arc::new(Terms { timeout: secs(5), ..(*terms).clone() });
    let order = match place(None, None, key, &short, START, &measured(9)) {
        Placement::Commit { advance, .. } => advance.next,
        other => panic!("{other:?}"),
    };
    let (failed, effect) = step(&order, WAKE, START, &measured(9));
    assert!(matches!(failed.phase, Phase::Dead { cause: DeadCause::TooLate { .. }, .. }) && effect.is_none());
    let (_, plain) = agreed(true, Reuse::Exclusive, false);
    let plain = Arc::new(Terms { timeout: secs(5), ..(*plain).clone() });
    assert!(matches!(begins(&plain, &measured(9)), Placement::Refused(_)), "it has looked in the stock");
}

#[test]
fn no_submit_is_paid_for_when_no_answer_can_come_before_the_deadline() {
    let policy = measured(9);
    let (key, _) = agreed(true, Reuse::Exclusive, false);
    let order = placed(key, &terms(Reuse::Exclusive, 60, Priority::Normal), &policy);
    let (paid, effect) = step(&order, WAKE, START + secs(51), &policy);
    assert!(matches!(effect, Some(Effect::Submit { .. })) && paid.attempts.len() == 1, "9 s are left");
    let late = START + secs(51) + Duration::from_millis(1);
    let (failed, effect) = step(&order, WAKE, late, &policy);
    let Phase::Dead { cause, .. } = &failed.phase else { panic!("{:?}", failed.phase) };
    assert_eq!(*cause, DeadCause::TooLate { left: Duration::from_millis(8_999), needs: secs(9) });
    assert!(effect.is_none() && failed.attempts.is_empty());
    let why = failed.dead_letter().expect("an operator can replay it").why;
    assert!(why.contains("8.999s were left") && why.contains("took 9s"), "{why}");
}

/// A retry that would come too late is not waited for.
#[test]
fn a_retry_that_would_come_too_late_ends_the_order_at_once() {
    let policy = measured(9);
    let (key, _) = agreed(true, Reuse::Exclusive, false);
    let order = placed(key, &terms(Reuse::Exclusive, 10, Priority::Normal), &policy);
    let (order, _) = step(&order, WAKE, START, &policy);
    let outcome = SubmitOutcome::Rejected(Fault::new(FaultClass::Busy, "ERROR_NO_SLOT_AVAILABLE"));
    let submitted = Event::Submitted { attempt: 1, outcome };
    let (order, _) = step(&order, submitted, START + secs(1), &policy);
    assert!(matches!(order.phase, Phase::Dead { cause: DeadCause::TooLate { .. }, .. }), "{:?}", order.phase);
}
