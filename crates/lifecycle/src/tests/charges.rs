//! The cost of attempts without an answer: what the provider charges, or "not known", and never 0 by mistake.

use super::{START, agreed, delivery, placed, policy, secs};
use crate::{
    CallbackResult, Counters, Decision, Event, Fault, FaultClass, Money, Offer, Order, Phase, Policy,
    PollOutcome, Reuse, Slot, SubmitOutcome, SubmitRoute, Unsolvable, WhenInDoubt, transition,
};
use alloc::format;
use alloc::sync::Arc;

const WAKE: Event = Event::Woken { stamp: 1, route: SubmitRoute::To(Offer::OF_TERMS) };

/// An order and what its steps have added to usage.
struct ChargeCase {
    order: Order,
    usage: Counters,
    policy: Policy,
}

impl ChargeCase {
    fn new(policy: Policy, price: Option<u64>, is_for_a_pool: bool) -> Self {
        let (key, terms) = agreed(true, Reuse::Exclusive, false);
        let mut terms = (*terms).clone();
        terms.price = price.map(Money);
        terms.slot = is_for_a_pool.then(|| Slot { pool: "warm".into(), number: 0, generation: 1 });
        Self { order: placed(key, &Arc::new(terms), &policy), usage: Counters::default(), policy }
    }

    fn step(&mut self, at: u64, event: Event) {
        match transition(&self.order, event, START + secs(at), &self.policy) {
            Decision::Advance(advance) => {
                self.usage += advance.counters;
                self.order = advance.next;
            }
            Decision::Act(_) => {}
            Decision::Ignore(why) => panic!("at {at} s on {}: {why:?}", self.order.phase.name()),
        }
    }

    fn wake_when_due(&mut self) {
        let due = self.order.due().expect("it waits for something");
        self.step(due.since(START).as_secs() + 1, WAKE);
    }

    fn accept(&mut self) {
        self.step(0, WAKE);
        let task = format!("task-{}", self.order.last_attempt);
        let attempt = self.order.last_attempt;
        self.step(1, Event::Submitted { attempt, outcome: SubmitOutcome::Accepted { task } });
    }

    fn poll(&mut self, at: u64, outcome: PollOutcome) {
        self.step(at, Event::Polled { attempt: 1, asked: START + secs(at), outcome });
    }

    /// The known sum, and how many prices are missing. Usage and the order itself must agree.
    fn spent(&self) -> (Option<u64>, u64) {
        let spent = self.usage.spent();
        assert_eq!(spent, self.order.spent(), "usage and the order agree");
        (spent.known().map(|money| money.0), spent.unpriced)
    }
}

fn unsolvable() -> PollOutcome {
    PollOutcome::Faulted(Fault::new(FaultClass::Unsolvable, "ERROR_UNSOLVABLE"))
}

fn rules(unsolvable: Unsolvable) -> Policy {
    Policy { unsolvable, ..policy(true, WhenInDoubt::Resubmit) }
}

#[test]
fn a_task_that_cannot_be_solved_costs_what_the_provider_charges_for_it() {
    for (rule, price, spent) in [
        (Unsolvable::Charged, Some(2_990), (Some(2_990), 0)),
        (Unsolvable::Charged, None, (None, 1)),
        (Unsolvable::Free, Some(2_990), (Some(0), 0)),
        (Unsolvable::Free, None, (Some(0), 0)),
        (Unsolvable::NotKnown, Some(2_990), (None, 1)),
    ] {
        let mut case = ChargeCase::new(rules(rule), price, false);
        case.accept();
        case.poll(10, unsolvable());
        assert_eq!(case.spent(), spent, "{rule:?} at {price:?}");
    }
}

/// A task that is being worked on has a price that is not known yet, which is not 0.
#[test]
fn what_was_spent_is_not_known_while_the_only_task_is_worked_on() {
    for (rule, known) in
        [(Unsolvable::Free, Some(0)), (Unsolvable::Charged, Some(5)), (Unsolvable::NotKnown, None)]
    {
        let mut case = ChargeCase::new(rules(rule), Some(5), false);
        let spent_known = |case: &ChargeCase| case.usage.spent_known().map(|sum| sum.0);
        assert_eq!(spent_known(&case), Some(0), "nothing was bought");
        case.accept();
        assert_eq!(spent_known(&case), None, "it is worked on");
        case.poll(10, unsolvable());
        assert_eq!(spent_known(&case), known, "{rule:?}");
    }
    let mut case = ChargeCase::new(rules(Unsolvable::Free), Some(5), false);
    case.accept();
    case.poll(10, PollOutcome::Answered(delivery("token")));
    assert_eq!(case.usage.spent_known().map(|sum| sum.0), Some(3), "the answer says its price");
}

#[test]
fn where_answers_are_free_so_is_what_came_to_none() {
    let mut case = ChargeCase::new(rules(Unsolvable::NotKnown), Some(0), false);
    case.accept();
    case.step(300, WAKE);
    assert!(case.order.phase.is_dead());
    assert_eq!(case.spent(), (Some(0), 0));
}

#[test]
fn a_task_that_was_rejected_at_once_costs_nothing() {
    let mut case = ChargeCase::new(rules(Unsolvable::Charged), Some(5), false);
    case.step(0, WAKE);
    let rejected = SubmitOutcome::Rejected(Fault::new(FaultClass::Unsolvable, "CODE"));
    case.step(1, Event::Submitted { attempt: 1, outcome: rejected });
    assert_eq!(case.spent(), (Some(0), 0));
}

/// What did not reach the provider was not rejected by it, and a reply that is repeated counts once.
#[test]
fn a_submit_that_the_provider_rejects_is_counted_once() {
    for (class, rejected) in [
        (FaultClass::Busy, 1),
        (FaultClass::NoFunds, 1),
        (FaultClass::NotSold, 1),
        (FaultClass::Caller, 1),
        (FaultClass::UnlistedCode, 1),
        (FaultClass::Unreachable, 0),
    ] {
        let mut case = ChargeCase::new(rules(Unsolvable::Charged), Some(5), false);
        case.step(0, WAKE);
        let outcome = SubmitOutcome::Rejected(Fault::new(class, "CODE"));
        let reply = Event::Submitted { attempt: 1, outcome };
        case.step(1, reply.clone());
        let again = transition(&case.order, reply, START + secs(2), &case.policy);
        assert!(matches!(again, Decision::Ignore(_)), "{class:?}");
        assert_eq!((case.usage.rejected, case.usage.paid), (rejected, 0), "{class:?}");
    }
}

#[test]
fn a_task_that_is_gone_may_have_been_charged() {
    let mut case = ChargeCase::new(rules(Unsolvable::Free), Some(5), false);
    case.accept();
    case.poll(10, PollOutcome::Faulted(Fault::new(FaultClass::Caller, "ERROR_NO_SUCH_ID")));
    assert_eq!(case.spent(), (None, 1));
}

#[test]
fn what_was_taken_and_not_answered_by_the_deadline_is_not_known_until_the_answer_comes_after_all() {
    let mut case = ChargeCase::new(rules(Unsolvable::Free), Some(5), false);
    case.accept();
    assert_eq!(case.spent(), (Some(0), 0), "it is waited for");
    case.step(300, WAKE);
    assert!(case.order.phase.is_dead());
    assert_eq!(case.spent(), (None, 1), "the price of an answer that never came is not known");
    case.step(700, WAKE);
    assert_eq!(case.spent(), (None, 1), "given up for good, and counted once");
    let word = CallbackResult::Answered(delivery("token"));
    case.step(710, Event::CalledBack { attempt: 1, task: None, word, receipt: None });
    assert_eq!(case.spent(), (Some(3), 0), "the cost is counted once, and the unknown is taken back");
}

/// Each day of usage must be correct by itself: the first day keeps "at least", and the next day has the cost.
#[test]
fn an_answer_on_the_next_day_leaves_the_day_before_at_least() {
    let mut case = ChargeCase::new(rules(Unsolvable::Free), Some(5), false);
    case.accept();
    case.step(300, WAKE);
    let before = case.usage;
    let word = CallbackResult::Answered(delivery("token"));
    case.step(24 * 3600, Event::CalledBack { attempt: 1, task: None, word, receipt: None });
    assert_eq!((before.unpriced, before.priced_late, before.cost_micros), (1, 0, 0));
    assert_eq!((case.usage.unpriced, case.usage.priced_late, case.usage.cost_micros), (1, 0, 3));
    assert_eq!(case.order.spent().unpriced, 0, "the order itself knows");
}

#[test]
fn a_cancelled_task_that_was_taken_is_not_known() {
    let mut case = ChargeCase::new(rules(Unsolvable::Free), Some(5), false);
    case.accept();
    case.step(2, Event::Cancelled);
    assert_eq!(case.spent(), (None, 1));
    case.poll(10, PollOutcome::Answered(delivery("token")));
    assert_eq!(case.spent(), (Some(3), 0));
}

#[test]
fn a_doubt_that_is_paid_over_may_have_been_charged_and_a_refusal_that_comes_late_takes_it_back() {
    let mut case = ChargeCase::new(Policy { callbacks: false, ..rules(Unsolvable::Free) }, Some(5), false);
    case.step(0, WAKE);
    case.step(1, Event::Submitted { attempt: 1, outcome: SubmitOutcome::InDoubt(Default::default()) });
    assert_eq!(case.spent(), (Some(0), 0), "it is waited for");
    case.wake_when_due();
    assert_eq!(case.order.last_attempt, 2);
    assert_eq!(case.spent(), (None, 1));
    let rejected = SubmitOutcome::Rejected(Fault::new(FaultClass::Busy, "CODE"));
    case.step(10, Event::Submitted { attempt: 1, outcome: rejected });
    assert_eq!(case.spent(), (Some(0), 0));
}

/// A pool counts one price for each refill before it is ordered. A second submit would be charged and not counted.
#[test]
fn a_refill_is_not_submitted_again_if_it_may_have_been_charged() {
    let poll_only = |rule| Policy { callbacks: false, ..rules(rule) };
    let mut doubt = ChargeCase::new(poll_only(Unsolvable::Free), Some(5), true);
    doubt.step(0, WAKE);
    doubt.step(1, Event::Submitted { attempt: 1, outcome: SubmitOutcome::InDoubt(Default::default()) });
    doubt.wake_when_due();
    assert_eq!(doubt.order.last_attempt, 1, "the pool decides whether to buy again");
    assert!(matches!(doubt.order.phase, Phase::Failed { .. }), "{:?}", doubt.order.phase);
    for (rule, attempts) in [(Unsolvable::Charged, 1), (Unsolvable::NotKnown, 1), (Unsolvable::Free, 2)] {
        let mut case = ChargeCase::new(poll_only(rule), Some(5), true);
        case.accept();
        case.poll(10, unsolvable());
        case.wake_when_due();
        assert_eq!(case.order.last_attempt, attempts, "{rule:?}");
    }
}
