//! Tests of the audit: single lives, step by step, and what the audit reads from them.

use super::*;
use quittance_lifecycle::{
    CallbackResult, Decision, DeliveryOutcome, Draft, Event, Evidence, Fault, KeySettings, Offer, Payload,
    Placement, Policy, PollOutcome, ProviderAnswer, Reuse, SubmitOutcome, SubmitRoute, WhenInDoubt, place,
    transition,
};
use std::sync::Arc;
use std::time::Duration;

const START: Timestamp = Timestamp::from_millis(4_102_444_800_000);
const WAKE: Event = Event::Woken { stamp: 1, route: SubmitRoute::To(Offer::OF_TERMS) };

fn policy() -> Policy {
    Policy { callbacks: true, ..Policy::DEFAULT }
}

fn placed(reuse: Reuse) -> Order {
    let mut draft = Draft::new("anna").with("sitekey", "s").with("pageurl", "https://shop.example.com/");
    draft.reuse = Some(reuse);
    let kind = quittance_protocol::kinds::kind("turnstile").unwrap();
    let (key, terms) = draft.check(&kind, KeySettings::default(), &policy(), START, 7).unwrap();
    match place(None, None, key, &Arc::new(terms), START, &policy()) {
        Placement::Commit { advance, .. } => advance.next,
        other => panic!("{other:?}"),
    }
}

fn live(order: Order, steps: &[(u64, Event)]) -> Order {
    steps.iter().fold(order, |order, (at, event)| {
        match transition(&order, event.clone(), START + Duration::from_secs(*at), &policy()) {
            Decision::Advance(advance) => advance.next,
            Decision::Act(_) => order,
            Decision::Ignore(why) => panic!("{event:?} at {at} s on {}: {why:?}", order.phase.name()),
        }
    })
}

fn submitted(attempt: u32, outcome: SubmitOutcome) -> Event {
    Event::Submitted { attempt, outcome }
}

fn accepted(attempt: u32) -> Event {
    submitted(attempt, SubmitOutcome::Accepted { task: format!("task-{attempt}") })
}

fn answered(attempt: u32) -> Event {
    let delivery =
        ProviderAnswer { payload: Payload::text("token"), took_at_least: None, cost: Some(Money(2_990)) };
    Event::CalledBack { attempt, task: None, word: CallbackResult::Answered(delivery), receipt: None }
}

/// The event of an answer that reaches its caller.
fn collected(order: &Order) -> Event {
    Event::Claimed { by: order.key, min_life: Duration::ZERO }
}

/// What the audit reports about each attempt: its number, its task, why it was made, its outcome, and who got it.
fn audited(order: &Order) -> Vec<(u32, Option<String>, String, &'static str, String)> {
    let row = |paid: Paid| {
        (paid.attempt, paid.task, paid.why, paid.state.name(), paid.recipient.words(&order.terms.tenant))
    };
    paid(order).into_iter().map(row).collect()
}

#[test]
fn the_first_attempt_goes_to_the_caller_that_placed_the_order() {
    let waiting = live(placed(Reuse::Shared), &[(0, WAKE), (1, accepted(1)), (9, answered(1))]);
    assert_eq!(paid(&waiting)[0].recipient, Recipient::None("no caller has the answer yet"));
    let order = live(waiting.clone(), &[(10, collected(&waiting))]);
    let [only] = &paid(&order)[..] else { panic!("{order:?}") };
    assert_eq!((only.task.as_deref(), only.cost), (Some("task-1"), Some(Money(2_990))));
    assert_eq!((only.why.as_str(), only.state), ("the first of the order", State::Answered));
    assert_eq!((&only.recipient, only.sent, only.is_possible_double), (&Recipient::Caller, START, false));
}

#[test]
fn a_refusal_is_no_payment_and_the_attempt_after_it_says_why_it_was_made() {
    let busy = SubmitOutcome::Rejected(Fault::new(FaultClass::Busy, "ERROR_NO_SLOT_AVAILABLE"));
    let order =
        live(placed(Reuse::Shared), &[(0, WAKE), (1, submitted(1, busy)), (30, WAKE), (31, accepted(2))]);
    let [only] = &paid(&order)[..] else { panic!("{order:?}") };
    assert_eq!((only.attempt, only.why.as_str(), only.state), (2, "retry 1 for busy", State::Solving));
    assert!(!only.is_possible_double, "the first was not paid");
}

#[test]
fn a_refusal_with_an_unlisted_code_is_no_payment_either() {
    let odd = SubmitOutcome::Rejected(Fault::new(FaultClass::UnlistedCode, "ERROR_BLUE_MOON"));
    let steps = [(0, WAKE), (1, submitted(1, odd)), (30, WAKE), (31, accepted(2))];
    let order = live(placed(Reuse::Shared), &steps);
    let [only] = &paid(&order)[..] else { panic!("{order:?}") };
    assert!(!only.is_possible_double && order.possible_doubles == 0, "{order:?}");
}

#[test]
fn what_a_person_has_replayed_says_so_also_if_it_waited_for_word_first() {
    let policy = Policy { when_in_doubt: WhenInDoubt::DeadLetter, ..Policy::DEFAULT };
    let step = |order: Order, at: u64, event: Event| match transition(
        &order,
        event,
        START + Duration::from_secs(at),
        &policy,
    ) {
        Decision::Advance(advance) => advance.next,
        other => panic!("{other:?}"),
    };
    let doubtful = step(placed(Reuse::Shared), 0, WAKE);
    let mut order = step(doubtful, 1, submitted(1, SubmitOutcome::InDoubt(Evidence::default())));
    for at in [100, 200] {
        if order.phase.is_open() {
            order = step(order, at, WAKE);
        }
    }
    assert!(order.phase.is_dead(), "{order:?}");
    order = step(order, 300, Event::Replayed);
    for at in [500, 700] {
        if order.current().is_none_or(|attempt| attempt == 1) {
            order = step(order, at, WAKE);
        }
    }
    let [_, second] = &paid(&order)[..] else { panic!("{order:?}") };
    assert_eq!(second.why, "replayed by a person");
}

#[test]
fn a_task_that_came_to_nothing_is_named_and_is_no_double() {
    let unsolvable = PollOutcome::Faulted(Fault::new(FaultClass::Unsolvable, "ERROR_CAPTCHA_UNSOLVABLE"));
    let polled = Event::Polled { attempt: 1, asked: START, outcome: unsolvable };
    let steps = [(0, WAKE), (1, accepted(1)), (9, polled), (9, WAKE), (10, accepted(2)), (20, answered(2))];
    let order = live(placed(Reuse::Shared), &steps);
    let order = live(order.clone(), &[(21, collected(&order))]);
    let [first, second] = &paid(&order)[..] else { panic!("{order:?}") };
    assert_eq!((first.task.as_deref(), first.state), (Some("task-1"), State::Faulted));
    assert_eq!(first.recipient, Recipient::None("the attempt got no answer"));
    assert_eq!((second.why.as_str(), &second.recipient), ("retry 1 for unsolvable", &Recipient::Caller));
    assert!(!second.is_possible_double);
}

#[test]
fn an_attempt_after_a_doubt_may_have_been_paid_for_twice_and_says_so() {
    let order = live(
        placed(Reuse::Shared),
        &[(0, WAKE), (1, submitted(1, SubmitOutcome::InDoubt(Evidence::default())))],
    );
    let [doubt] = &paid(&order)[..] else { panic!("{order:?}") };
    assert_eq!((doubt.state, &doubt.task), (State::InDoubt, &None));
    let waited = live(order, &[(200, WAKE), (230, WAKE), (231, accepted(2)), (240, answered(2))]);
    let [doubt, second] = &paid(&waited)[..] else { panic!("{waited:?}") };
    assert_eq!((doubt.state, doubt.is_possible_double), (State::InDoubt, false));
    assert_eq!(second.why, "after a doubt that was not settled in time");
    assert!(second.is_possible_double && waited.possible_doubles == 1, "{waited:?}");
    // The word comes at last: both are known now, and what is left over goes to the stock.
    let settled = live(waited, &[(241, answered(1))]);
    let [late, second] = &paid(&settled)[..] else { panic!("{settled:?}") };
    assert_eq!(
        (late.state, &late.recipient, late.cost),
        (State::Answered, &Recipient::StockPlace, Some(Money(2_990)))
    );
    assert!(second.is_possible_double, "it was one when it was made");
    let stocked = live(settled, &[(241, Event::Stocked { attempt: 1 })]);
    let surplus = stocked.key.surplus(stocked.born, 1);
    assert_eq!(paid(&stocked)[0].recipient, Recipient::Stock(surplus));
}

#[test]
fn a_doubt_with_evidence_of_the_adapter_is_a_doubt_all_the_same() {
    let reset = SubmitOutcome::InDoubt(Evidence::new("CONNECTION_LOST"));
    let steps = [(0, WAKE), (1, submitted(1, reset)), (200, WAKE), (230, WAKE), (231, accepted(2))];
    let order = live(placed(Reuse::Shared), &steps);
    let [_, second] = &paid(&order)[..] else { panic!("{order:?}") };
    assert!(second.is_possible_double && order.possible_doubles == 1, "{order:?}");
}

#[test]
fn what_no_caller_wants_any_more_goes_to_the_order_that_takes_it_from_the_stock() {
    let steps = [(0, WAKE), (1, accepted(1)), (2, Event::Cancelled), (9, answered(1))];
    let order = live(placed(Reuse::Exclusive), &steps);
    assert_eq!(paid(&order)[0].recipient, Recipient::StockPlace);
    let taker = order.key.claimant(9, 9);
    let taken = order.taken(taker, START + Duration::from_secs(20));
    assert_eq!(paid(&taken)[0].recipient, Recipient::Taker(Some(taker)));
    assert_eq!(audited(&taken)[0].4, "another order of anna, from the stock");
}

#[test]
fn what_came_from_the_stock_was_paid_for_by_another_order() {
    let answer = live(placed(Reuse::Exclusive), &[(0, WAKE), (1, accepted(1)), (9, answered(1))]);
    let Phase::Solved { answer: payload, .. } = &answer.phase else { panic!("{answer:?}") };
    let order = placed(Reuse::Shared);
    let served_from_stock = Event::ServedFromStock {
        by: order.claimant(),
        from: answer.key,
        answer: payload.clone(),
        attempt: Box::new(answer.attempts[0].clone()),
    };
    assert_eq!(paid(&live(order, &[(10, served_from_stock)])), []);
}

#[test]
fn a_cancelled_order_that_was_placed_again_still_knows_that_another_order_has_the_answer() {
    let steps = [(0, WAKE), (1, accepted(1)), (2, Event::Cancelled), (9, answered(1))];
    let order = live(placed(Reuse::Shared), &steps);
    let (claimant, to) = (order.key.claimant(9, 9), order.key.claimant(8, 8));
    let taken = order.taken(claimant, START + Duration::from_secs(20));
    let handed_over = live(taken.clone(), &[(20, Event::HandedOver { by: claimant, to })]);
    assert_eq!(paid(&handed_over)[0].recipient, Recipient::Taker(Some(to)));
    for (order, taker) in [(taken, None), (handed_over, Some(to))] {
        let later = START + Duration::from_secs(900);
        let again = match place(Some(&order), None, order.key, &order.terms, later, &policy()) {
            Placement::Commit { advance, .. } => advance.next,
            other => panic!("{other:?}"),
        };
        assert_eq!(paid(&again)[0].recipient, Recipient::Taker(taker));
    }
}

#[test]
fn an_order_knows_what_became_of_an_answer_from_the_stock_also_in_a_later_life() {
    let source = live(placed(Reuse::Exclusive), &[(0, WAKE), (1, accepted(1)), (9, answered(1))]);
    let Phase::Solved { answer, .. } = &source.phase else { panic!("{source:?}") };
    let order = placed(Reuse::Shared);
    let served_from_stock = Event::ServedFromStock {
        by: order.claimant(),
        from: source.key,
        answer: answer.clone(),
        attempt: Box::new(source.attempts[0].clone()),
    };
    let served = live(order, &[(10, served_from_stock)]);
    let read = live(served.clone(), &[(11, collected(&served))]);
    let expired = live(served.clone(), &[(400, WAKE)]);
    assert_eq!(passed_on(&served, &source.key), Some(Recipient::None(UNCOLLECTED)));
    for (order, recipient) in [(read, Recipient::Caller), (expired, Recipient::None(EXPIRED))] {
        assert_eq!(passed_on(&order, &source.key), Some(recipient.clone()), "{order:?}");
        let later = START + Duration::from_secs(900);
        let again = match place(Some(&order), None, order.key, &order.terms, later, &policy()) {
            Placement::Commit { advance, .. } => advance.next,
            other => panic!("{other:?}"),
        };
        assert_eq!(passed_on(&again, &source.key), Some(recipient), "{again:?}");
    }
    assert_eq!(passed_on(&served, &served.key), None);
}

#[test]
fn an_answer_of_a_life_that_is_over_still_has_its_owner() {
    let first = live(placed(Reuse::Shared), &[(0, WAKE), (1, accepted(1)), (9, answered(1))]);
    let first = live(first.clone(), &[(10, collected(&first))]);
    let later = START + Duration::from_secs(900);
    let again = match place(Some(&first), None, first.key, &first.terms, later, &policy()) {
        Placement::Commit { advance, .. } => advance.next,
        other => panic!("{other:?}"),
    };
    let second = live(again, &[(900, WAKE), (901, accepted(2)), (909, answered(2))]);
    let rows = audited(&second);
    let [one, two] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(
        (one.2.as_str(), one.4.as_str()),
        ("the first of the order", "anna, and any placements that joined")
    );
    assert_eq!((two.2.as_str(), two.3), ("placed again: life 2", "answered"));
}

fn tried(outcome: DeliveryOutcome) -> Event {
    Event::WebhookTried { webhook: 1, outcome }
}

/// An order that was solved at 9 s, with a webhook whose first call has begun.
fn solved_with_webhook(reuse: Reuse) -> Order {
    let webhook = Event::WebhookAdded { url: "http://127.0.0.1:9/hook".to_owned(), dialect: "v1".to_owned() };
    live(placed(reuse), &[(0, webhook), (0, WAKE), (1, accepted(1)), (9, answered(1)), (9, WAKE)])
}

#[test]
fn an_answer_whose_webhook_calls_failed_was_given_to_no_one_and_expires_as_waste() {
    let failed = || tried(DeliveryOutcome::NotDelivered { why: "connection refused".to_owned() });
    for reuse in [Reuse::Exclusive, Reuse::Shared] {
        let order = live(solved_with_webhook(reuse), &[(10, failed())]);
        assert_eq!(paid(&order)[0].recipient, Recipient::None(UNCOLLECTED), "{reuse:?}, alive");
        let expired = live(order, &[(12, WAKE), (13, failed()), (400, WAKE)]);
        assert_eq!(paid(&expired)[0].recipient, Recipient::None(EXPIRED), "{reuse:?}, expired");
        // The notice without the answer is acknowledged, or fails as well.
        for outcome in
            [DeliveryOutcome::Delivered, DeliveryOutcome::NotDelivered { why: "HTTP 500".to_owned() }]
        {
            let order = live(expired.clone(), &[(401, WAKE), (402, tried(outcome.clone()))]);
            assert_eq!(paid(&order)[0].recipient, Recipient::None(EXPIRED), "{reuse:?}, {outcome:?}");
        }
    }
}

#[test]
fn an_acknowledged_webhook_call_that_carried_the_answer_gives_it_to_the_caller() {
    for reuse in [Reuse::Exclusive, Reuse::Shared] {
        let order = solved_with_webhook(reuse);
        assert_eq!(paid(&order)[0].recipient, Recipient::None(UNCOLLECTED), "{reuse:?}, on the way");
        let order = live(order, &[(10, tried(DeliveryOutcome::Delivered))]);
        assert_eq!(paid(&order)[0].recipient, Recipient::Caller, "{reuse:?}");
    }
}
