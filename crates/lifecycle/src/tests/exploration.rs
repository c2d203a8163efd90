//! Every phase gets every event, at every interesting moment, and the invariants must hold each time. The orders come
//! from public functions only, breadth first from a placement, so every tested state can happen.

use super::{START, agreed, delivery, placed, policy, secs};
use crate::{
    Advance, Answer, Attempt, AttemptAccount, CallbackResult, Decision, DeliveryOutcome, Effect, Event,
    Evidence, FailCause, Fault, FaultClass, FaultRule, Key, Money, Offer, Order, PassedOver, Phase,
    Placement, Policy, PollOutcome, Progress, ProviderAnswer, Remedy, ReportOutcome, Reuse, Signal,
    SubmitOutcome, SubmitRoute, Terms, Timestamp, WhenInDoubt, WhyPassedOver, place, surplus_as_order,
    transition,
};
use alloc::collections::BTreeMap;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Names every variant from one list. If a variant is new, the match does not compile. If a variant never occurs, the
/// test fails.
macro_rules! every {
    ($all:ident, $name_of:ident, $of:ident: $($name:ident),* $(,)?) => {
        const $all: &[&str] = &[$(stringify!($name)),*];

        fn $name_of(value: &$of) -> &'static str {
            match value { $($of::$name { .. } => stringify!($name)),* }
        }
    };
}

every!(
    PHASES,
    phase_of,
    Phase: Queued,
    Submitting,
    Solving,
    InDoubt,
    Solved,
    Claimed,
    Expired,
    Failed,
    Dead,
);

every!(
    EVENTS,
    name_of,
    Event:
    Woken,
    Submitted,
    Polled,
    CalledBack,
    Stocked,
    ServedFromStock,
    Returned,
    HandedOver,
    Claimed,
    Cancelled,
    Replayed,
    ReplayedAfterOutage,
    Dropped,
    Noted,
    Released,
    Reported,
    ReportPassed,
    WebhookAdded,
    WebhookTried,
    PutBack,
    Lost,
    Recalled,
);

/// An offer of an account that is not the first by the operator's rule.
fn offer_of_another_account() -> Offer {
    let account = AttemptAccount { account: "other USD".into(), price: Some(Money(3)) };
    let passed_over = vec![PassedOver { account: String::new(), why: WhyPassedOver::Tripped }];
    Offer { account: Some(account), passed_over, drawn: None }
}

/// Every event that can happen to this order, in each of its forms.
fn events(order: &Order, now: Timestamp) -> Vec<Event> {
    let mut events = vec![
        Event::Woken { stamp: 1, route: SubmitRoute::To(Offer::OF_TERMS) },
        Event::Woken { stamp: 1, route: SubmitRoute::To(offer_of_another_account()) },
        Event::Woken { stamp: 2, route: SubmitRoute::ShutUntil(now + secs(9)) },
        Event::Claimed { by: order.key, min_life: order.terms.min_life },
        Event::Claimed { by: Key([9; 32]), min_life: order.terms.min_life },
        served_from_stock(order.claimant(), now),
        served_from_stock(order.key, now),
        Event::Returned { by: Key([9; 32]) },
        Event::Returned { by: order.key },
        Event::HandedOver { by: Key([9; 32]), to: Key([7; 32]) },
        Event::HandedOver { by: order.key, to: order.key },
        Event::Cancelled,
        Event::Replayed,
        Event::ReplayedAfterOutage { provider: "first".into(), died_since: START },
        Event::Dropped,
        Event::Released,
        Event::Noted { text: "a note".into() },
        Event::PutBack { others_by: now + secs(9) },
        Event::Lost,
        Event::Recalled { born: START, attempts: Vec::new() },
        Event::Recalled { born: START, attempts: vec![former(1), former(2)] },
        Event::Reported { is_good: true },
        Event::Reported { is_good: false },
        Event::WebhookAdded { url: "https://caller.test/".into(), dialect: "v1".into() },
    ];
    for webhook in 0..=order.last_webhook + 1 {
        let why = || "HTTP 500".into();
        let outcomes = [
            DeliveryOutcome::Delivered,
            DeliveryOutcome::NotDelivered { why: why() },
            DeliveryOutcome::SwitchedOff { why: why() },
        ];
        events.extend(outcomes.map(|outcome| Event::WebhookTried { webhook, outcome }));
    }
    for attempt in 0..=order.last_attempt + 1 {
        events.push(Event::Stocked { attempt });
        let outcomes =
            [ReportOutcome::Accepted, ReportOutcome::Refused { code: "CODE".into() }, ReportOutcome::NoReply];
        events.extend(outcomes.map(|outcome| Event::ReportPassed { attempt, outcome }));
        let faults = FaultClass::ALL.map(|class| Fault::new(class, "CODE"));
        let mut outcomes = vec![
            SubmitOutcome::Accepted { task: format!("task-{attempt}") },
            SubmitOutcome::Answered(delivery("at once")),
            SubmitOutcome::InDoubt(Evidence::default()),
        ];
        outcomes.extend(faults.iter().cloned().map(SubmitOutcome::Rejected));
        events.extend(outcomes.into_iter().map(|outcome| Event::Submitted { attempt, outcome }));
        let mut outcomes =
            vec![PollOutcome::Pending, PollOutcome::NoReply, PollOutcome::Answered(delivery("polled"))];
        outcomes.extend(faults.iter().cloned().map(PollOutcome::Faulted));
        events.extend(outcomes.into_iter().map(|outcome| Event::Polled { attempt, asked: now, outcome }));
        let mut words = vec![CallbackResult::Answered(delivery("called back"))];
        words.extend(faults.iter().cloned().map(CallbackResult::Faulted));
        for word in words {
            events.push(Event::CalledBack { attempt, task: None, word: word.clone(), receipt: None });
            events.push(Event::CalledBack {
                attempt,
                task: Some(format!("task-{attempt}")),
                word,
                receipt: None,
            });
        }
    }
    events
}

/// An attempt of an earlier record, of which we know only that it was made.
fn former(number: u32) -> Attempt {
    Attempt {
        number,
        sent: START,
        unsolved_at: START,
        accepted: false,
        progress: Progress::Sent,
        task: None,
        report: None,
        made_for: None,
        cost: None,
        unpriced_since: None,
        former: None,
        callback_address: None,
        account: None,
        drawn: None,
    }
}

/// An answer from stock with half of its life left.
fn served_from_stock(by: Key, now: Timestamp) -> Event {
    let earliest = Timestamp::from_millis(now.as_millis() - 60_000);
    let attempt = Attempt {
        number: 7,
        sent: earliest,
        unsolved_at: earliest,
        accepted: true,
        progress: Progress::Answered,
        task: Some("of another".into()),
        report: None,
        made_for: None,
        cost: None,
        unpriced_since: None,
        former: None,
        callback_address: None,
        account: None,
        drawn: None,
    };
    let ProviderAnswer { payload, cost, .. } = delivery("from the stock");
    let answer = Answer { payload, attempt: 7, earliest, expires: Some(earliest + secs(120)), cost };
    Event::ServedFromStock { by, from: Key([8; 32]), answer, attempt: attempt.into() }
}

/// The moments at which something could change: each a little before, at, and after.
fn moments(order: &Order, now: Timestamp) -> Vec<Timestamp> {
    let mut edges = BTreeSet::from([now, order.deadline]);
    edges.extend(order.due());
    if let Phase::Solved { answer, .. } | Phase::Claimed { answer, .. } = &order.phase {
        edges.extend(answer.expires);
        edges.extend(answer.expires.map(|e| Timestamp::from_millis(e.as_millis() - 40_000)));
    }
    edges.extend(order.attempts.iter().map(|attempt| attempt.sent + Policy::DEFAULT.task_life));
    let around = |at: Timestamp| [at.as_millis() - 1, at.as_millis(), at.as_millis() + 1];
    edges
        .into_iter()
        .flat_map(around)
        .filter(|at| *at >= now.as_millis())
        .map(Timestamp::from_millis)
        .collect()
}

fn paid(order: &Order) -> usize {
    order.attempts.iter().filter(|attempt| attempt.accepted && attempt.made_for.is_none()).count()
}

/// Checks what must hold for every order.
fn check_order(order: &Order) {
    let name = order.phase.name();
    assert!(!order.phase.is_open() || order.due().is_some(), "{name} waits without a timer");
    assert!(order.attempts.len() <= crate::order::ATTEMPTS_KEPT_MAX);
    assert!(order.timeline.entries.len() <= crate::timeline::TIMELINE_ENTRIES_MAX);
    assert!(order.attempts.windows(2).all(|pair| pair[0].number < pair[1].number), "attempts in order");
    assert!(order.attempts.iter().all(|attempt| attempt.number <= order.last_attempt));
    assert!(order.attempts.iter().all(|attempt| attempt.sent <= attempt.unsolved_at));
    let solving =
        order.attempts.iter().filter(|attempt| matches!(attempt.progress, Progress::Solving { .. }));
    let is_solving = matches!(order.phase, Phase::Solving { .. });
    assert_eq!(
        solving.count(),
        usize::from(is_solving),
        "{name}: one attempt is waited for, exactly when solving"
    );
    if let Some(current) = order.current() {
        let progress = &order.attempt(current).expect("the current attempt is on record").progress;
        assert_eq!(matches!(progress, Progress::Solving { .. }), is_solving);
        assert!(is_solving || *progress == Progress::Sent, "{name} is about an attempt without a reply");
    }
    assert!(order.list_stock().is_none() || (!order.wanted && order.terms.single_use));
    assert!(order.forget_at().is_none() || order.due().is_none(), "nothing is forgotten that is owed");
    assert!(!matches!(order.phase, Phase::Dead { .. }) || order.forget_at().is_none(), "dead letters stay");
}

/// Checks what must hold for every step.
fn check_step(order: &Order, event: &Event, now: Timestamp, policy: &Policy, advance: &Advance) {
    let Advance { next, counters, effect } = advance;
    let context = || format!("{} meets {event:?} and becomes {}", order.phase.name(), next.phase.name());
    check_order(next);
    assert_eq!((next.key, next.born), (order.key, order.born));
    // Money is spent by the timer only, through an open gate, with the intent in the record to be committed.
    let is_from_stock = next.is_from_stock() && matches!(event, Event::ServedFromStock { .. });
    // Attempts of an earlier record were made before.
    let is_recalled = matches!(event, Event::Recalled { .. });
    let spends = next.last_attempt != order.last_attempt && !is_from_stock && !is_recalled;
    assert_eq!(spends, matches!(effect, Some(Effect::Submit { .. })), "{}", context());
    assert_eq!(u64::from(spends), counters.attempts);
    if spends {
        assert!(matches!(event, Event::Woken { route: SubmitRoute::To(_), .. }), "{}", context());
        assert!(order.wanted && now < order.deadline, "{}", context());
        let most = next.terms.retry.retries_within(policy.max_retries);
        assert!(most.is_none_or(|most| next.life_attempts <= u32::from(most) + 1), "{}", context());
        assert!(!order.steps_lost, "only an operator may decide to pay again: {}", context());
        assert!(
            matches!(order.phase, Phase::Queued { held: false, .. } | Phase::InDoubt { .. }),
            "{}",
            context()
        );
        assert!(matches!(next.phase, Phase::Submitting { stamp: 1, .. }), "{}", context());
        assert_eq!(next.last_attempt, order.last_attempt + 1);
        // No doubt is left before it was waited out, whatever other account could take the order.
        let is_in_doubt = matches!(order.phase, Phase::InDoubt { .. });
        assert!(!is_in_doubt || order.phase_due().is_some_and(|due| due <= now), "{}", context());
        // Nothing that may be paid for is left behind uncounted.
        let is_counted =
            |attempt: &&Attempt| matches!(attempt.progress, Progress::Trailing { counted: true, .. });
        let open = order.attempts.iter().filter(|attempt| attempt.is_open() && !is_counted(attempt)).count();
        assert!(counters.possible_doubles >= open as u64, "{}", context());
        let left = next.attempts.iter().filter(|attempt| attempt.is_open() && !is_counted(attempt)).count();
        assert_eq!(left, 1, "{}", context());
        // A task that the provider has is polled until it answers, whatever else the order buys.
        for task in order.attempts.iter().filter(|it| matches!(it.progress, Progress::Trailing { .. })) {
            let still = next.attempt(task.number).map(|attempt| &attempt.progress);
            assert!(matches!(still, None | Some(Progress::Trailing { .. })), "{}", context());
        }
    }
    // An answer from the stock goes to an order with a waiting caller that has bought nothing meanwhile, in the
    // claimant's name.
    if let Event::ServedFromStock { by, .. } = event {
        assert!(is_from_stock && *by == order.claimant() && order.terms.takes_stock, "{}", context());
        assert!(matches!(order.phase, Phase::Queued { .. }) && order.wanted, "{}", context());
        assert_eq!((counters.from_stock, counters.asked, counters.cost_micros), (1, 0, 0));
    }
    assert_eq!(u64::from(next.possible_doubles - order.possible_doubles), counters.possible_doubles);
    assert_eq!(paid(next) - paid(order), usize::try_from(counters.paid).unwrap(), "{}", context());
    // Retries only ever grow within a life, and each stays within its limit. They begin again at another account.
    if next.used_up.len() > order.used_up.len() {
        assert!(policy.can_fail_over, "{}", context());
        assert_eq!(next.retries, [0; Signal::ALL.len()]);
        assert!(matches!(next.phase, Phase::Queued { held: false, .. }), "{}", context());
    } else if next.life == order.life {
        assert!(next.retries.iter().zip(order.retries).all(|(after, before)| *after >= before));
    } else {
        assert_eq!(next.life, order.life + 1);
        assert!(matches!(event, Event::Replayed | Event::ReplayedAfterOutage { .. }), "{}", context());
    }
    for signal in Signal::ALL {
        let limit = policy.faults.rule(signal).limit;
        assert!(limit.is_none_or(|limit| next.retries[signal.index()] <= limit), "{}", context());
    }
    // Without a person, an order is replayed only if nothing can be paid twice by it.
    if let Event::ReplayedAfterOutage { .. } = event {
        let is_free = |attempt: &Attempt| attempt.sent < order.placed || attempt.is_rejected();
        assert!(order.attempts.iter().all(is_free), "{}", context());
        assert!(!order.attempts.iter().any(Attempt::is_open) && !order.steps_lost, "{}", context());
        assert!(matches!(next.phase, Phase::Queued { .. }), "{}", context());
    }
    // What is not fit to be handed out never becomes the answer.
    if let Phase::Solved { answer, .. } = &next.phase
        && order.phase.is_open()
    {
        assert!(answer.is_good_for(next.terms.min_life, now), "{}", context());
        assert!(answer.earliest <= now);
    }
    // A single-use answer that is claimed stays with its claimant.
    if let Phase::Claimed { by, .. } = &order.phase
        && !matches!(event, Event::Lost)
        && *event != (Event::Returned { by: *by })
    {
        assert!(matches!(&next.phase, Phase::Claimed { by: after, .. } if after == by), "{}", context());
    }
    // A permanent fault of the attempt that is waited for ends the life.
    if let Event::Submitted { attempt, outcome: SubmitOutcome::Rejected(fault) } = event
        && order.current() == Some(*attempt)
        && policy.faults.rule(fault.class).remedy == Remedy::Tell
        && order.wanted
        && !order.steps_lost
        && !order.attempts.iter().any(|attempt| matches!(attempt.progress, Progress::Trailing { .. }))
    {
        assert_eq!(next.phase, Phase::Failed { cause: FailCause::Rejected(fault.clone()), at: now });
    }
}

/// Checks that an answer is never thrown away without being counted.
fn check_answer(order: &Order, event: &Event, decision: &Decision) {
    let attempt = match event {
        Event::CalledBack { attempt, word: CallbackResult::Answered(_), .. }
        | Event::Polled { attempt, outcome: PollOutcome::Answered(_), .. }
        | Event::Submitted { attempt, outcome: SubmitOutcome::Answered(_) } => *attempt,
        _ => return,
    };
    let known = order.attempt(attempt).map(|attempt| &attempt.progress);
    match (known, decision) {
        (None, Decision::Ignore(_)) => {}
        (Some(Progress::Answered | Progress::Surplus { .. }), Decision::Ignore(_)) => {}
        (Some(_), Decision::Advance(advance)) => {
            let became = &advance.next.attempt(attempt).expect("still on record").progress;
            let is_solved =
                matches!(&advance.next.phase, Phase::Solved { answer, .. } if answer.attempt == attempt);
            let is_kept = matches!(became, Progress::Surplus { .. });
            assert!(
                is_solved || is_kept || advance.counters.wasted == 1,
                "{event:?} on {}",
                order.phase.name()
            );
            assert_eq!(advance.counters.cost_micros, 3);
        }
        (known, decision) => panic!("an answer to {known:?} led to {decision:?}"),
    }
}

/// The part of an order that determines what can happen next. Of two orders with one shape, one is explored.
fn shape(order: &Order) -> String {
    let attempts: Vec<_> = order.attempts.iter().map(|a| core::mem::discriminant(&a.progress)).collect();
    format!(
        "{} {:?} {} {} {}",
        order.phase.name(),
        attempts,
        order.wanted,
        order.steps_lost,
        matches!(order.phase, Phase::Queued { held: true, .. })
    )
}

/// The most attempts of an explored order. A third attempt would run the same code as the second.
const ATTEMPTS_MAX: u32 = 2;

/// Grows orders from a placement, breadth first, and checks every step on the way.
fn explore(terms: &(Key, Arc<Terms>), policy: &Policy) -> (BTreeMap<&'static str, usize>, usize) {
    let first = placed(terms.0, &terms.1, policy);
    let mut visited = BTreeSet::from([shape(&first)]);
    let mut queue = alloc::collections::VecDeque::from([(first, START)]);
    let (mut phases, mut steps) = (BTreeMap::new(), 0);
    while let Some((order, then)) = queue.pop_front() {
        check_order(&order);
        *phases.entry(phase_of(&order.phase)).or_default() += 1;
        for now in moments(&order, then) {
            if let Placement::Commit { advance, .. } | Placement::Follow { advance } =
                place(Some(&order), None, order.key, &order.terms, now, policy)
            {
                check_order(&advance.next);
                assert_eq!(advance.effect, None, "placing pays for nothing by itself");
                if advance.next.last_attempt <= ATTEMPTS_MAX && visited.insert(shape(&advance.next)) {
                    queue.push_back((advance.next, now));
                }
            }
            let events = events(&order, now);
            let missing: Vec<_> =
                EVENTS.iter().filter(|name| !events.iter().any(|event| name_of(event) == **name)).collect();
            assert!(missing.is_empty(), "no phase meets {missing:?}");
            for event in events {
                steps += 1;
                let decision = transition(&order, event.clone(), now, policy);
                check_answer(&order, &event, &decision);
                match decision {
                    Decision::Advance(advance) => {
                        check_step(&order, &event, now, policy, &advance);
                        if advance.next.last_attempt <= ATTEMPTS_MAX && visited.insert(shape(&advance.next)) {
                            queue.push_back((advance.next, now));
                        }
                    }
                    Decision::Act(effect) => {
                        assert!(!matches!(effect, Effect::Submit { .. }), "money without a commit");
                        if let Effect::Stock { attempt } = effect {
                            check_order(
                                &surplus_as_order(&order, attempt, now).expect("there is a spare answer"),
                            );
                        }
                    }
                    Decision::Ignore(_) => {}
                }
            }
        }
    }
    (phases, steps)
}

/// Limits every class to one retry: a second one is counted like the first.
fn few_retries(mut policy: Policy) -> Policy {
    for signal in Signal::ALL {
        let rule = policy.faults.rule(signal);
        policy
            .faults
            .set(signal, FaultRule { limit: Some(rule.limit.map_or(1, |limit| limit.min(1))), ..rule });
    }
    policy
}

#[test]
fn every_phase_meets_every_event_at_every_interesting_moment() {
    let mut steps = 0;
    let mut met = BTreeSet::new();
    for (callbacks, when_in_doubt) in
        [(true, WhenInDoubt::Resubmit), (false, WhenInDoubt::Resubmit), (false, WhenInDoubt::DeadLetter)]
    {
        for (single_use, reuse, keyed) in [
            (true, Reuse::Shared, false),
            (true, Reuse::Shared, true),
            (true, Reuse::Exclusive, false),
            (true, Reuse::Exclusive, true),
            (false, Reuse::Shared, false),
        ] {
            let terms = agreed(single_use, reuse, keyed);
            for can_fail_over in [false, true] {
                let hedge_after = can_fail_over.then_some(secs(20));
                let policy = Policy { can_fail_over, hedge_after, ..policy(callbacks, when_in_doubt) };
                let (phases, made) = explore(&terms, &few_retries(policy));
                steps += made;
                met.extend(phases.into_keys());
            }
        }
    }
    let terms = agreed(true, Reuse::Exclusive, true);
    for can_fail_over in [false, true] {
        let policy = policy(true, WhenInDoubt::Resubmit);
        let (_, made) = explore(&terms, &Policy { can_fail_over, max_retries: Some(0), ..policy });
        steps += made;
    }
    assert_eq!(met, PHASES.iter().copied().collect());
    assert!(steps > 100_000, "only {steps} steps");
}
