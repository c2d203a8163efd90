//! Which provider gets an order, and what an order does when one of several fails it.

use super::{START, agreed, delivery, placed, policy, secs};
use crate::routing::Choice;
use crate::{
    AttemptAccount, Candidate, Decision, Effect, Event, Evidence, Fault, FaultClass, GateReadiness, Money,
    Offer, Order, Phase, Policy, PollOutcome, Reuse, Routing, RoutingRule, Signal, SubmitOutcome,
    SubmitRoute, Timestamp, WhenInDoubt, WhyPassedOver, choose, transition,
};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

fn candidate(name: &str, readiness: GateReadiness) -> Candidate {
    let account = AttemptAccount { account: name.into(), price: None };
    Candidate {
        account,
        readiness,
        weight: 1,
        solve_time: None,
        success: None,
        quickest: None,
        shortage: None,
    }
}

fn order() -> Order {
    let (key, terms) = agreed(true, Reuse::Exclusive, false);
    placed(key, &terms, &with_others())
}

fn with_others() -> Policy {
    Policy { can_fail_over: true, ..policy(true, WhenInDoubt::Resubmit) }
}

fn with_rule(rule: RoutingRule) -> Routing {
    Routing { rule, ..Routing::DEFAULT }
}

/// What an order in the hands of the accounts `a` and `b` does, one step after another.
struct Case {
    order: Order,
    now: Timestamp,
    policy: Policy,
}

impl Case {
    fn new() -> Self {
        Self { order: order(), now: START, policy: with_others() }
    }

    fn step(&mut self, event: Event) -> Option<Effect> {
        match transition(&self.order, event, self.now, &self.policy) {
            Decision::Advance(advance) => {
                self.order = advance.next;
                advance.effect
            }
            decision => panic!("{}: {decision:?}", self.order.phase.name()),
        }
    }

    /// Chooses between both accounts when the order is due, and submits if one is ready. Returns the account.
    fn wake(&mut self, a: GateReadiness, b: GateReadiness) -> Option<String> {
        self.now = self.order.phase_due().expect("it waits").max(self.now);
        let candidates = [candidate("a USD", a), candidate("b USD", b)];
        let Choice { chosen, until, passed_over, .. } =
            choose(&self.order, &candidates, self.policy.routing, self.now);
        let route = chosen.map_or(SubmitRoute::ShutUntil(until), |at| {
            SubmitRoute::To(Offer { account: Some(candidates[at].account.clone()), passed_over, drawn: None })
        });
        let effect = self.step(Event::Woken { stamp: 1, route });
        let attempt = self.order.attempts.last()?;
        matches!(effect, Some(Effect::Submit { .. })).then(|| self.order.account_of(attempt).to_string())
    }

    fn reply(&mut self, outcome: SubmitOutcome) {
        let attempt = self.order.last_attempt;
        self.step(Event::Submitted { attempt, outcome });
    }

    fn reject(&mut self, class: FaultClass) {
        self.reply(SubmitOutcome::Rejected(Fault::new(class, "CODE")));
    }

    fn timeline(&self) -> Vec<String> {
        self.order.timeline.entries.iter().map(ToString::to_string).collect()
    }
}

#[test]
fn each_rule_asks_the_providers_in_its_own_order() {
    let mut candidates = [candidate("a", GateReadiness::Ready), candidate("b", GateReadiness::Ready)];
    candidates[0].account.price = None;
    candidates[1].account.price = Some(Money(5));
    (candidates[0].solve_time, candidates[1].solve_time) = (Some(secs(9)), Some(secs(4)));
    (candidates[0].success, candidates[1].success) = (Some(800), Some(950));
    let chosen = |rule, candidates: &[Candidate]| choose(&order(), candidates, with_rule(rule), START).chosen;
    assert_eq!(chosen(RoutingRule::Ordered, &candidates), Some(0));
    assert_eq!(chosen(RoutingRule::Cheapest, &candidates), Some(1), "a price that is not known is not 0");
    assert_eq!(chosen(RoutingRule::Fastest, &candidates), Some(1));
    assert_eq!(chosen(RoutingRule::Best, &candidates), Some(1));
    (candidates[0].solve_time, candidates[0].success) = (None, None);
    assert_eq!(chosen(RoutingRule::Fastest, &candidates), Some(0), "it gets a measurement");
    assert_eq!(chosen(RoutingRule::Best, &candidates), Some(0));
}

#[test]
fn a_provider_that_cannot_answer_before_the_deadline_is_passed_over() {
    let mut candidates = ["a", "b"].map(|name| candidate(name, GateReadiness::Ready));
    candidates[0].quickest = Some(secs(20));
    let order = order();
    let at = |left| order.deadline.since(START).saturating_sub(secs(left));
    let choice = |left| choose(&order, &candidates, Routing::DEFAULT, START + at(left));
    assert_eq!(choice(20).chosen, Some(0));
    let Choice { chosen, passed_over, .. } = choice(19);
    assert_eq!((chosen, passed_over[0].why), (Some(1), WhyPassedOver::TooSlow));
}

#[test]
fn weights_share_the_orders_and_a_weight_of_zero_comes_last() {
    let mut candidates = ["a", "b", "c"].map(|name| candidate(name, GateReadiness::Ready));
    (candidates[0].weight, candidates[1].weight, candidates[2].weight) = (3, 1, 0);
    let mut counts = [0; 3];
    for number in 0..4000u32 {
        let mut order = order();
        order.last_attempt = number;
        let chosen = choose(&order, &candidates, with_rule(RoutingRule::Weighted), START).chosen;
        counts[chosen.expect("all are ready")] += 1;
    }
    assert!((2800..3200).contains(&counts[0]) && counts[2] == 0, "{counts:?}");
}

#[test]
fn an_order_waits_a_little_for_a_busy_provider_and_not_for_one_that_is_down() {
    let order = order();
    let (busy, down) =
        (GateReadiness::Busy(START + secs(60)), |why| GateReadiness::Down(START + secs(60), why));
    let choice = |first, now| {
        choose(&order, &[candidate("a", first), candidate("b", GateReadiness::Ready)], Routing::DEFAULT, now)
    };
    let wait = Routing::DEFAULT.busy_wait;
    assert_eq!((choice(busy, START).chosen, choice(busy, START).until), (None, START + wait));
    assert_eq!(choice(busy, START + wait).chosen, Some(1));
    for why in [WhyPassedOver::Tripped, WhyPassedOver::NoFunds, WhyPassedOver::Paused] {
        let choice = choice(down(why), START);
        assert_eq!((choice.chosen, choice.passed_over[0].why), (Some(1), why));
    }
}

#[test]
fn an_order_that_a_provider_cannot_take_goes_to_the_next_and_its_timeline_says_why() {
    for (class, why) in [
        (FaultClass::NotSold, WhyPassedOver::UsedUp),
        (FaultClass::Unreachable, WhyPassedOver::HeldOff),
        (FaultClass::AccountBlocked, WhyPassedOver::AccountBlocked),
        (FaultClass::NoFunds, WhyPassedOver::NoFunds),
    ] {
        let mut case = Case::new();
        assert_eq!(case.wake(GateReadiness::Ready, GateReadiness::Ready).as_deref(), Some("a USD"));
        case.reject(class);
        let a = match why {
            WhyPassedOver::AccountBlocked | WhyPassedOver::NoFunds => {
                GateReadiness::Down(case.now + secs(10), why)
            }
            _ => GateReadiness::Ready,
        };
        assert_eq!(case.wake(a, GateReadiness::Ready).as_deref(), Some("b USD"), "{class:?}");
        assert_eq!(case.now, START, "at once");
        let expected = alloc::format!("attempt 2: goes to b, because a {why}");
        assert!(case.timeline().contains(&expected), "{class:?}: {:?}", case.timeline());
    }
}

#[test]
fn a_busy_provider_gets_the_order_again_unless_the_wait_is_over() {
    let mut case = Case::new();
    case.wake(GateReadiness::Ready, GateReadiness::Ready);
    case.reject(FaultClass::Busy);
    let first = case.wake(GateReadiness::Ready, GateReadiness::Ready);
    assert_eq!(first.as_deref(), Some("a USD"), "its pause is shorter than the wait");
    let mut tries = 1;
    loop {
        case.reject(FaultClass::Busy);
        match case.wake(GateReadiness::Ready, GateReadiness::Ready).as_deref() {
            Some("a USD") => tries += 1,
            Some(_) => break,
            None => {}
        }
        assert!(tries < 10 && case.now <= START + Routing::DEFAULT.busy_wait);
    }
    assert_eq!(case.now, START + Routing::DEFAULT.busy_wait);
}

/// The retries of the first provider are used up, and the second one has retries of its own.
#[test]
fn used_up_retries_lead_to_the_next_provider_and_then_to_the_dead_letters() {
    let mut case = Case::new();
    let mut went = Vec::new();
    while let Some(account) = case.wake(GateReadiness::Ready, GateReadiness::Ready) {
        went.push(account);
        case.reply(SubmitOutcome::Accepted { task: "7".into() });
        case.now = case.now + secs(10);
        case.policy.can_fail_over = case.order.used_up.is_empty();
        let (attempt, asked) = (case.order.last_attempt, case.now);
        let outcome = PollOutcome::Faulted(Fault::new(FaultClass::Unsolvable, "ERROR_UNSOLVABLE"));
        case.step(Event::Polled { attempt, asked, outcome });
        if case.order.phase.is_dead() {
            break;
        }
    }
    assert_eq!(went, ["a USD", "a USD", "a USD", "b USD", "b USD", "b USD"]);
    assert!(case.order.phase.is_dead());
}

#[test]
fn an_attempt_in_doubt_is_waited_out_before_another_provider_gets_the_order() {
    let mut case = Case::new();
    case.wake(GateReadiness::Ready, GateReadiness::Ready);
    case.reply(SubmitOutcome::InDoubt(Evidence::new("the reply was lost")));
    let Phase::InDoubt { until, .. } = case.order.phase else { panic!("in doubt") };
    assert_eq!(until, START + case.policy.doubt_wait());
    let early = transition(
        &case.order,
        Event::Woken { stamp: 2, route: SubmitRoute::To(Offer::OF_TERMS) },
        START + secs(1),
        &case.policy,
    );
    assert!(matches!(early, Decision::Ignore(_)), "{early:?}");
    let down = GateReadiness::Down(until + secs(60), WhyPassedOver::Tripped);
    assert_eq!(case.wake(down, GateReadiness::Ready).as_deref(), Some("b USD"));
    assert_eq!((case.now, case.order.possible_doubles), (until, 1));
}

/// The late answer of the first provider is paid for there, and the answer of the second one here.
#[test]
fn money_is_counted_on_the_account_that_it_was_spent_at() {
    let mut case = Case::new();
    case.wake(GateReadiness::Ready, GateReadiness::Ready);
    case.reply(SubmitOutcome::InDoubt(Evidence::default()));
    let down = GateReadiness::Down(case.now + secs(600), WhyPassedOver::Tripped);
    case.wake(down, GateReadiness::Ready);
    assert_eq!(case.order.booked_account(), "b USD");
    case.reply(SubmitOutcome::Accepted { task: "8".into() });
    case.step(Event::Submitted { attempt: 1, outcome: SubmitOutcome::Answered(delivery("late")) });
    assert_eq!(case.order.booked_account(), "a USD");
    assert!(matches!(case.order.phase, Phase::Solved { .. }), "the order has its answer");
    case.now = case.now + secs(10);
    let outcome = PollOutcome::Answered(delivery("second"));
    case.step(Event::Polled { attempt: 2, asked: case.now, outcome });
    assert_eq!(case.order.booked_account(), "b USD");
}

/// A provider that took the task and is gone keeps the order only as long as an answer could still be expected.
#[test]
fn a_task_of_a_provider_that_is_gone_is_left_when_its_answer_is_long_overdue() {
    for (can_fail_over, ends_at) in [(true, Some("b USD")), (false, None)] {
        let mut case = Case::new();
        case.policy.can_fail_over = can_fail_over;
        case.wake(GateReadiness::Ready, GateReadiness::Ready);
        case.reply(SubmitOutcome::Accepted { task: "7".into() });
        let mut left_at = None;
        while case.now < case.order.deadline - secs(30) && left_at.is_none() {
            case.now = case.order.phase_due().expect("it is polled again");
            let event = Event::Polled { attempt: 1, asked: case.now, outcome: PollOutcome::NoReply };
            case.step(event);
            left_at = matches!(case.order.phase, Phase::Queued { .. }).then_some(case.now);
        }
        assert_eq!(left_at.is_some(), can_fail_over);
        let Some(left_at) = left_at else { continue };
        assert!(left_at >= START + case.policy.doubt_wait(), "it waits as long as for a doubt");
        assert_eq!(case.wake(GateReadiness::Ready, GateReadiness::Ready).as_deref(), ends_at);
        assert_eq!(case.order.possible_doubles, 1);
    }
}

#[test]
fn a_new_life_may_go_to_every_provider_again() {
    let mut case = Case::new();
    case.wake(GateReadiness::Ready, GateReadiness::Ready);
    case.reject(FaultClass::NotSold);
    assert_eq!(case.order.used_up, ["a USD"]);
    assert_eq!(case.order.retries[Signal::Fault(FaultClass::NotSold).index()], 0);
    case.policy.can_fail_over = false;
    case.wake(GateReadiness::Ready, GateReadiness::Ready);
    case.reject(FaultClass::UnlistedCode);
    case.now = case.order.deadline;
    case.step(Event::Woken { stamp: 3, route: SubmitRoute::ShutUntil(case.now) });
    assert!(case.order.phase.is_dead());
    case.step(Event::Replayed);
    assert!(case.order.used_up.is_empty() && case.order.held_off.is_none());
}

/// Polls the open task until the order leaves it, at most until the deadline. Returns when it did.
fn poll_until_it_is_left(case: &mut Case) -> Option<Timestamp> {
    while case.now < case.order.deadline - secs(30) {
        case.now = case.order.phase_due().expect("it is polled again").max(case.now);
        case.step(Event::Polled { attempt: 1, asked: case.now, outcome: PollOutcome::Pending });
        if matches!(case.order.phase, Phase::Queued { .. }) {
            return Some(case.now);
        }
    }
    None
}

#[test]
fn an_urgent_order_whose_task_takes_long_is_bought_at_another_provider_too_and_the_first_answer_counts() {
    for (can_fail_over, hedge_after) in [(true, Some(secs(45))), (false, Some(secs(45))), (true, None)] {
        let mut case = Case::new();
        (case.policy.can_fail_over, case.policy.hedge_after) = (can_fail_over, hedge_after);
        case.wake(GateReadiness::Ready, GateReadiness::Ready);
        case.reply(SubmitOutcome::Accepted { task: "7".into() });
        let left_at = poll_until_it_is_left(&mut case);
        let is_hedged = can_fail_over && hedge_after.is_some();
        assert_eq!(left_at, is_hedged.then_some(START + secs(45)), "in time, although no callback is due");
        assert_eq!(case.order.is_hedging(), is_hedged);
        if !is_hedged {
            continue;
        }
        assert_eq!(case.wake(GateReadiness::Ready, GateReadiness::Ready).as_deref(), Some("b USD"));
        assert_eq!(case.order.possible_doubles, 0, "the second payment is meant");
        assert!(!case.order.is_hedging());
        case.reply(SubmitOutcome::Accepted { task: "8".into() });
        let (mut first, mut second) = (case.order.clone(), case.order.clone());
        for (order, attempt) in [(&mut first, 1), (&mut second, 2)] {
            let outcome = PollOutcome::Answered(delivery("token"));
            let event = Event::Polled { attempt, asked: case.now, outcome };
            let Decision::Advance(advance) = transition(order, event, case.now, &case.policy) else {
                panic!("attempt {attempt} has answered")
            };
            assert!(matches!(&advance.next.phase, Phase::Solved { answer, .. } if answer.attempt == attempt));
            let other = advance.next.attempt(3 - attempt).expect("it is on record");
            assert!(
                matches!(other.progress, crate::Progress::Trailing { .. }),
                "the other one is fetched, too"
            );
        }
        case.now = START + secs(120);
        case.step(Event::Polled { attempt: 2, asked: case.now, outcome: PollOutcome::Pending });
        assert!(matches!(case.order.phase, Phase::Solving { attempt: 2, .. }), "an order is hedged once");
    }
}

#[test]
fn an_answer_that_comes_before_the_hedge_is_bought_makes_it_needless() {
    let mut case = Case::new();
    case.policy.hedge_after = Some(secs(45));
    case.wake(GateReadiness::Ready, GateReadiness::Ready);
    case.reply(SubmitOutcome::Accepted { task: "7".into() });
    poll_until_it_is_left(&mut case).expect("the task takes long");
    let outcome = PollOutcome::Answered(delivery("token"));
    case.step(Event::Polled { attempt: 1, asked: case.now, outcome });
    assert!(matches!(case.order.phase, Phase::Solved { .. }));
    assert_eq!(case.order.attempts.len(), 1);
}
