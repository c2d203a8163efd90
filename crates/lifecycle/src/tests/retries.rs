//! How many attempts one life of an order makes: as many as the operator allows and the caller wants.

use super::{START, agreed, placed, policy, secs};
use crate::{
    AttemptAccount, DeadCause, Decision, DeliveryOutcome, Effect, Event, Evidence, FailCause, Fault,
    FaultClass, MAX_RETRIES_MAX, Offer, Order, Phase, Policy, Preset, RetryLimits, Reuse, SubmitOutcome,
    SubmitRoute, Terms, Timestamp, WebhookPauses, WhenInDoubt, transition,
};
use alloc::sync::Arc;
use alloc::vec::Vec;

const CLASSES: [FaultClass; 5] = [
    FaultClass::Busy,
    FaultClass::Unreachable,
    FaultClass::Unsolvable,
    FaultClass::NoFunds,
    FaultClass::UnlistedCode,
];

struct Case {
    order: Order,
    now: Timestamp,
    policy: Policy,
    account: &'static str,
}

impl Case {
    fn new(asks: Option<u8>, allows: Option<u8>) -> Self {
        let (key, terms) = agreed(true, Reuse::Exclusive, false);
        let retry = RetryLimits { max_retries: asks, ..RetryLimits::NONE };
        let terms = Arc::new(Terms { retry, timeout: secs(20_000), ..(*terms).clone() });
        let policy = Policy { max_retries: allows, ..policy(false, WhenInDoubt::Resubmit) };
        let policy = policy.with_preset(Preset::Patient);
        Self { order: placed(key, &terms, &policy), now: START, policy, account: "a USD" }
    }

    fn apply(&mut self, event: Event) -> Option<Effect> {
        match transition(&self.order, event, self.now, &self.policy) {
            Decision::Advance(advance) => {
                self.order = advance.next;
                advance.effect
            }
            decision => panic!("{}: {decision:?}", self.order.phase.name()),
        }
    }

    /// Waits until the order is due, and submits it to the present account. An operator fixes the account first.
    fn wake(&mut self) -> bool {
        if self.order.phase.is_held() {
            self.apply(Event::Released);
        }
        let Some(due) = self.order.phase_due() else { return false };
        self.now = due.max(self.now);
        let account = AttemptAccount { account: self.account.into(), price: None };
        let route = SubmitRoute::To(Offer { account: Some(account), passed_over: [].into(), drawn: None });
        matches!(self.apply(Event::Woken { stamp: 1, route }), Some(Effect::Submit { .. }))
    }

    fn reply(&mut self, outcome: SubmitOutcome) {
        let attempt = self.order.last_attempt;
        self.apply(Event::Submitted { attempt, outcome });
    }

    /// Submits until the order does not wait any more. Every submit has this outcome.
    fn run(&mut self, outcome: &SubmitOutcome) -> u32 {
        while self.order.phase.is_open() && self.order.last_attempt < 30 {
            if self.wake() {
                self.reply(outcome.clone());
            }
        }
        self.order.last_attempt
    }
}

fn rejected(class: FaultClass) -> SubmitOutcome {
    SubmitOutcome::Rejected(Fault::new(class, "CODE"))
}

#[test]
fn no_retries_means_one_attempt_whatever_went_wrong() {
    let in_doubt = SubmitOutcome::InDoubt(Evidence::new("HTTP 502"));
    for outcome in CLASSES.map(rejected).into_iter().chain([in_doubt]) {
        for (asks, allows) in [(Some(0), None), (None, Some(0)), (Some(9), Some(0)), (Some(0), Some(9))] {
            let mut case = Case::new(asks, allows);
            assert_eq!(case.run(&outcome), 1, "{outcome:?}, {asks:?} of {allows:?}");
            assert!(case.order.phase.is_dead(), "{outcome:?}: {:?}", case.order.phase);
        }
    }
}

#[test]
fn an_order_never_makes_more_attempts_than_the_operator_allows() {
    for (asks, allows, attempts) in
        [(None, Some(3), 4), (Some(2), Some(3), 3), (Some(9), Some(3), 4), (Some(7), None, 8)]
    {
        assert_eq!(
            Case::new(asks, allows).run(&rejected(FaultClass::Busy)),
            attempts,
            "{asks:?} of {allows:?}"
        );
    }
    // The limits of the fault classes hold as ever.
    assert_eq!(Case::new(Some(9), Some(9)).run(&rejected(FaultClass::Unsolvable)), 3);
}

#[test]
fn attempts_for_different_reasons_count_together() {
    let mut case = Case::new(Some(2), None);
    for class in [FaultClass::Busy, FaultClass::Unsolvable, FaultClass::Unreachable] {
        assert!(case.wake());
        case.reply(rejected(class));
    }
    let fault = Fault::new(FaultClass::Unreachable, "CODE");
    assert!(matches!(&case.order.phase, Phase::Dead { cause: DeadCause::Spent(last), .. } if *last == fault));
}

#[test]
fn the_attempts_at_all_accounts_count_together() {
    for can_fail_over in [true, false] {
        let mut case = Case::new(Some(1), None);
        case.policy.can_fail_over = can_fail_over;
        for account in ["a USD", "b USD"] {
            case.account = account;
            assert!(case.wake(), "{account}");
            case.reply(rejected(FaultClass::Unreachable));
        }
        assert!(case.order.phase.is_dead(), "{:?}", case.order.phase);
    }
    let mut case = Case::new(Some(0), None);
    case.policy.can_fail_over = true;
    assert!(case.wake());
    case.reply(rejected(FaultClass::NotSold));
    assert!(matches!(&case.order.phase, Phase::Failed { cause: FailCause::Rejected(_), .. }));
}

#[test]
fn after_the_last_attempt_at_an_account_the_order_goes_to_another_or_dies() {
    for class in CLASSES {
        let mut case = Case::new(None, None);
        case.policy = Policy { can_fail_over: true, account_max_retries: Some(0), ..case.policy };
        assert!(case.wake());
        case.reply(rejected(class));
        assert_eq!(case.order.used_up, ["a USD"], "{}", class.name());
        (case.account, case.policy.can_fail_over) = ("b USD", false);
        assert!(case.wake());
        case.reply(rejected(class));
        assert!(case.order.phase.is_dead(), "{}: {:?}", class.name(), case.order.phase);
    }
}

#[test]
fn a_new_life_has_attempts_of_its_own() {
    let mut case = Case::new(Some(1), None);
    assert_eq!(case.run(&rejected(FaultClass::Busy)), 2);
    case.now = case.now + secs(1);
    case.apply(Event::Replayed);
    assert_eq!(case.run(&rejected(FaultClass::Busy)), 4);
}

#[test]
fn a_longer_pause_is_kept_and_a_shorter_one_is_not() {
    let pause = |base: u64| {
        let mut case = Case::new(None, None);
        let retry = RetryLimits { base: Some(secs(base)), ..RetryLimits::NONE };
        case.order.terms = Arc::new(Terms { retry, ..(*case.order.terms).clone() });
        assert!(case.wake());
        case.reply(rejected(FaultClass::Busy));
        case.order.phase_due().unwrap().since(case.now).as_secs()
    };
    assert!((1..=2).contains(&pause(0)), "the operator's pause");
    assert!((30..=31).contains(&pause(30)));
}

/// An order that died in this way, replayed after an outage that began at the start of the test.
fn replayed_after_an_outage(case: &mut Case) -> bool {
    case.now = case.now + secs(1);
    let event = Event::ReplayedAfterOutage { provider: "a".into(), died_since: START };
    match transition(&case.order, event, case.now, &case.policy) {
        Decision::Advance(advance) => {
            case.order = advance.next;
            true
        }
        _ => false,
    }
}

#[test]
fn an_order_that_died_of_an_outage_is_replayed_once_without_a_person() {
    for class in [FaultClass::Busy, FaultClass::Unreachable, FaultClass::NoFunds] {
        let mut case = Case::new(None, Some(2));
        assert_eq!(case.run(&rejected(class)), 3, "{}", class.name());
        assert!(replayed_after_an_outage(&mut case), "{}", class.name());
        let last = case.order.timeline.entries.last().unwrap();
        assert_eq!(alloc::string::ToString::to_string(last), "replayed because the outage of a is over");
        assert_eq!(case.run(&rejected(class)), 6, "{}", class.name());
        assert!(!replayed_after_an_outage(&mut case), "it died again: a person must look");
    }
}

#[test]
fn an_order_that_died_of_anything_else_waits_for_a_person() {
    for class in [FaultClass::Unsolvable, FaultClass::UnlistedCode, FaultClass::AccountBlocked] {
        let mut case = Case::new(None, Some(0));
        case.run(&rejected(class));
        assert!(case.order.phase.is_dead() && !replayed_after_an_outage(&mut case), "{}", class.name());
    }
    // It may have been paid for, or the caller has had all that it asked for.
    let mut doubted = Case::new(None, Some(1));
    assert!(doubted.wake());
    doubted.reply(SubmitOutcome::InDoubt(Evidence::new("HTTP 502")));
    doubted.run(&rejected(FaultClass::Unreachable));
    assert!(doubted.order.phase.is_dead() && !replayed_after_an_outage(&mut doubted));
    let mut frugal = Case::new(Some(0), None);
    frugal.run(&rejected(FaultClass::Unreachable));
    assert!(frugal.order.phase.is_dead() && !replayed_after_an_outage(&mut frugal));
}

#[test]
fn an_order_that_has_been_dead_for_too_long_is_left_alone() {
    let mut case = Case::new(None, Some(0));
    case.run(&rejected(FaultClass::Unreachable));
    let event = Event::ReplayedAfterOutage { provider: "a".into(), died_since: case.now + secs(1) };
    assert!(matches!(transition(&case.order, event, case.now + secs(9), &case.policy), Decision::Ignore(_)));
}

/// Calls the only webhook of an ended order until there is no timer for it, and returns the pauses between the calls.
fn pauses_of_a_webhook(pauses: &[u64], outcome: &DeliveryOutcome) -> Vec<u64> {
    let mut case = Case::new(Some(0), None);
    let list: Vec<_> = pauses.iter().map(|pause| secs(*pause)).collect();
    case.policy.webhook_pauses = WebhookPauses::new(&list).unwrap();
    case.apply(Event::WebhookAdded { url: "https://caller.test/".into(), dialect: "v1".into() });
    case.run(&rejected(FaultClass::Busy));
    let mut made = Vec::new();
    while let Some(due) = case.order.due() {
        made.push(due.since(case.now).as_secs());
        case.now = due.max(case.now);
        let woken = Event::Woken { stamp: 1, route: SubmitRoute::To(Offer::OF_TERMS) };
        assert_eq!(case.apply(woken), Some(Effect::DeliverWebhook { webhook: 1 }));
        case.apply(Event::WebhookTried { webhook: 1, outcome: outcome.clone() });
    }
    assert!(case.order.has_dead_webhook());
    made
}

#[test]
fn the_schedule_of_webhooks_is_the_operators() {
    let failed = DeliveryOutcome::NotDelivered { why: "HTTP 500".into() };
    assert_eq!(pauses_of_a_webhook(&[7, 3], &failed), [0, 7, 3]);
    assert_eq!(pauses_of_a_webhook(&[], &failed), [0], "one try only");
    assert_eq!(WebhookPauses::new(&[secs(1); 17]), None);
    assert_eq!(WebhookPauses::DEFAULT.as_slice(), crate::follow_up::WEBHOOK_PAUSES);
}

#[test]
fn a_delivery_to_an_endpoint_that_is_off_is_a_dead_letter_at_once() {
    let off = DeliveryOutcome::SwitchedOff { why: "the endpoint is switched off".into() };
    assert_eq!(pauses_of_a_webhook(&[7, 3], &off), [0]);
}

#[test]
fn every_limit_can_be_counted() {
    assert!(usize::from(MAX_RETRIES_MAX) < crate::order::ATTEMPTS_KEPT_MAX);
}
