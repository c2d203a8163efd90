//! Follow-ups of an order that has ended: webhooks are called, and a caller's report about an answer reaches the
//! provider. Both survive crashes, and neither costs money.

use crate::stories::post::WebhookScript;
use crate::stories::provider::token_of;
use crate::stories::world::{StoryNode, StoryWorld, recaptcha, turnstile, world};
use quittance_engine::ApplyOutcome;
use quittance_lifecycle::follow_up::{WEBHOOK_PAUSES, WEBHOOKS_MAX};
use quittance_lifecycle::{Counters, Key, ReportOutcome, ReportState, WhyIgnored};
use std::sync::Arc;

const HOOK: &str = "https://caller.example.com/hook";

fn reports(node: &StoryNode, key: Key, is_good: bool) -> ApplyOutcome {
    let engine = Arc::clone(&node.engine);
    node.does(async move { engine.report(&key, is_good).await }).expect("the store is there")
}

fn listens(node: &StoryNode, key: Key, url: &str) -> ApplyOutcome {
    let (engine, url) = (Arc::clone(&node.engine), url.to_owned());
    node.does(async move { engine.listen_for(&key, url, "2captcha").await }).expect("the store is there")
}

/// Promise: a report is sent to the provider once, with the provider's task id. A repeat is answered from the record.
#[test]
fn a_report_is_passed_on_once_and_then_answered_from_the_record() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    let caller = node.asks(turnstile("site"));
    assert!(matches!(
        reports(&node, caller.key(), true),
        ApplyOutcome::Ignored { why: WhyIgnored::WrongPhase, .. }
    ));
    world.after(60);
    assert!(caller.token().is_some());
    assert!(matches!(reports(&node, caller.key(), false), ApplyOutcome::Advanced { .. }));
    world.after(1);
    for is_good in [false, true] {
        let ApplyOutcome::Ignored { now, why: WhyIgnored::OldNews } = reports(&node, caller.key(), is_good)
        else {
            panic!("the first word counts")
        };
        assert!(now.order.report().is_some_and(|report| !report.is_good));
    }
    world.after(1_000);
    assert_eq!(world.provider.reports(), [("task-1".to_owned(), false)]);
    assert_eq!(
        node.reads(caller.key()).report().map(|report| report.state.clone()),
        Some(ReportState::Passed)
    );
}

/// Promise: durable. A report whose reply was lost, or whose node died, is repeated until it is accepted.
#[test]
fn a_report_survives_lost_replies_and_the_death_of_its_node() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    let caller = node.asks(turnstile("site"));
    world.after(60);
    world.provider.on_report(&[ReportOutcome::NoReply, ReportOutcome::NoReply]);
    reports(&node, caller.key(), true);
    world.after_ms(100);
    node.kill();
    let other = world.node();
    world.after(120);
    assert_eq!(world.provider.reports().len(), 3, "twice in vain, and once taken");
    assert_eq!(
        other.reads(caller.key()).report().map(|report| report.state.clone()),
        Some(ReportState::Passed)
    );
    world.after(3_600);
    assert_eq!(world.provider.reports().len(), 3);
}

/// A provider that never answers is not called for ever. A provider that refuses is called once.
#[test]
fn a_report_that_is_never_accepted_comes_to_an_end() {
    let world = world();
    let node = world.node();
    for (site, outcome) in
        [("deaf", ReportOutcome::NoReply), ("no", ReportOutcome::Refused { code: "NO".into() })]
    {
        world.provider.solves(site, 5);
        let caller = node.asks(turnstile(site));
        world.after(60);
        let before = world.provider.reports().len();
        world.provider.on_report(&vec![outcome.clone(); 50]);
        reports(&node, caller.key(), true);
        world.after(3_600);
        let (order, tries) = (node.reads(caller.key()), world.provider.reports().len() - before);
        match outcome {
            ReportOutcome::NoReply => {
                assert_eq!((order.report().map(|r| r.state.clone()), tries), (Some(ReportState::Lost), 7));
                world.provider.forget_reports();
            }
            _ => assert_eq!(
                (order.report().map(|r| r.state.clone()), tries),
                (Some(ReportState::Refused { code: "NO".into() }), 1)
            ),
        }
    }
}

/// An answer that a caller has reported bad is not handed out again, except to the same caller under its own key.
#[test]
fn an_answer_that_was_reported_bad_is_not_given_to_the_next() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    let first = node.asks(turnstile("site"));
    world.after(60);
    reports(&node, first.key(), false);
    let second = node.asks(turnstile("site"));
    world.after(60);
    assert_eq!(first.token(), Some(token_of("task-1")));
    assert_eq!(second.token(), Some(token_of("task-2")), "bought again");

    let mine = node.asks(turnstile("site").keyed("mine"));
    world.after(60);
    reports(&node, mine.key(), false);
    let again = node.asks(turnstile("site").keyed("mine"));
    world.after(1);
    assert_eq!(again.token(), mine.token(), "a key is a repeat");
}

/// Promise: a webhook is called once, when the order has ended, or at once if it has ended already.
#[test]
fn a_webhook_is_called_once_when_the_order_is_over_and_at_once_if_it_is() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    let caller = node.asks(turnstile("site"));
    listens(&node, caller.key(), HOOK);
    assert!(matches!(
        listens(&node, caller.key(), HOOK),
        ApplyOutcome::Ignored { why: WhyIgnored::OldNews, .. }
    ));
    assert!(world.post.calls().is_empty(), "there is nothing to tell yet");
    world.after(600);
    assert_eq!(world.post.calls_to(HOOK).len(), 1);
    listens(&node, caller.key(), HOOK);
    world.after(1);
    assert_eq!(world.post.calls_to(HOOK).len(), 2, "added again, so called again");
    world.after(3_600);
    assert_eq!(world.post.calls().len(), 2);
    assert!(node.reads(caller.key()).webhooks.is_empty());
}

/// Promise: a webhook is retried on a schedule. Then its delivery is a dead letter of its own, which an operator can
/// replay or drop. The order is kept as long.
#[test]
fn a_webhook_that_accepts_nothing_becomes_a_dead_letter() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    let caller = node.asks(recaptcha("site"));
    listens(&node, caller.key(), HOOK);
    world.post.on_call(HOOK, &[WebhookScript::Refuses; WEBHOOK_PAUSES.len() + 1]);
    world.after(4 * 3_600);
    let calls = world.post.calls_to(HOOK);
    let pauses: Vec<u64> = calls.windows(2).map(|pair| (pair[1] - pair[0]) / 1000).collect();
    assert_eq!(pauses, WEBHOOK_PAUSES.map(|pause| pause.as_secs()));
    assert!(node.reads(caller.key()).needs_a_person());
    world.after(3 * 24 * 3_600);
    assert_eq!(world.post.calls_to(HOOK).len(), calls.len(), "only a person sends it again");
    assert!(node.reads(caller.key()).needs_a_person(), "never truncated by itself");

    let (engine, key) = (Arc::clone(&node.engine), caller.key());
    node.does(async move { engine.replay(&key).await }).expect("the store is there");
    world.after(1);
    assert_eq!(world.post.calls_to(HOOK).len(), calls.len() + 1);
    assert_eq!(world.provider.submits("site").len(), 1, "a word that is sent again buys nothing");
    assert!(world.orders().is_empty(), "and nothing is owed any more");
}

#[test]
fn a_dropped_delivery_is_forgotten_and_the_order_with_it() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    let caller = node.asks(recaptcha("site"));
    listens(&node, caller.key(), HOOK);
    world.post.on_call(HOOK, &[WebhookScript::Refuses; WEBHOOK_PAUSES.len() + 1]);
    world.after(4 * 3_600);
    let (engine, key) = (Arc::clone(&node.engine), caller.key());
    node.does(async move { engine.drop_dead(&key).await }).expect("the store is there");
    assert!(!node.reads(caller.key()).needs_a_person());
    world.after(3 * 24 * 3_600);
    assert!(world.orders().is_empty());
}

/// A webhook that hangs or panics delays no answers and no other webhooks. If a node dies during the call, another
/// node makes it.
#[test]
fn a_webhook_that_hangs_holds_up_no_other() {
    let world = world();
    let node = world.node();
    let hanging: Vec<_> = (0..40).map(|n| format!("{HOOK}/{n}")).collect();
    for (n, url) in hanging.iter().enumerate() {
        let site = format!("site-{n}");
        world.provider.solves(&site, 5);
        let caller = node.asks(turnstile(&site));
        listens(&node, caller.key(), url);
        world.post.on_call(url, &[if n % 2 == 0 { WebhookScript::Hangs } else { WebhookScript::Panics }]);
    }
    world.provider.solves("quick", 5);
    let caller = node.asks(turnstile("quick"));
    listens(&node, caller.key(), HOOK);
    world.after(40);
    assert!(caller.token().is_some());
    assert_eq!(world.post.calls_to(HOOK).len(), 1);
    node.kill();
    let _other = world.node();
    world.after(120);
    assert!(hanging.iter().all(|url| world.post.calls_to(url).len() == 2), "each was called again");
}

/// A single-use answer is claimed for its caller before the caller's webhook gets it.
#[test]
fn an_exclusive_answer_is_claimed_before_it_is_delivered() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    let caller = node.asks(turnstile("site").exclusive());
    caller.hangs_up();
    listens(&node, caller.key(), HOOK);
    world.after(60);
    assert_eq!(world.post.calls().iter().map(|(.., phase)| *phase).collect::<Vec<_>>(), ["claimed"]);
}

/// Four hours after an order was placed, whose only caller is a webhook that refuses this many calls.
fn after_refusals(is_exclusive: bool, refusals: usize) -> StoryWorld {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    let order = if is_exclusive { recaptcha("site").exclusive() } else { recaptcha("site") };
    let caller = node.asks(order);
    caller.hangs_up();
    listens(&node, caller.key(), HOOK);
    world.post.on_call(HOOK, &vec![WebhookScript::Refuses; refusals]);
    world.after(4 * 3_600);
    world
}

/// Promise: an answer that did not reach its caller never counts as delivered. If a webhook is down until the answer
/// has expired, the usage counts waste, exclusive or shared.
#[test]
fn an_answer_whose_webhook_is_down_until_it_expires_is_waste() {
    for is_exclusive in [true, false] {
        let world = after_refusals(is_exclusive, WEBHOOK_PAUSES.len() + 1);
        let usage = world.usage();
        assert_eq!((usage.solved, usage.wasted), (1, 1), "exclusive: {is_exclusive}");
    }
}

/// The opposite: a webhook that accepts the answer before it expires has collected it, also at a later try.
#[test]
fn an_answer_that_a_webhook_takes_at_a_later_try_is_not_waste() {
    for is_exclusive in [true, false] {
        let world = after_refusals(is_exclusive, 2);
        assert_eq!(world.post.calls_to(HOOK).len(), 3);
        assert_eq!(world.usage().wasted, 0, "exclusive: {is_exclusive}");
    }
}

#[test]
fn no_more_callers_are_remembered_than_the_limit_says() {
    let world = world();
    let node = world.node();
    let caller = node.asks(turnstile("site"));
    for n in 0..WEBHOOKS_MAX {
        assert!(matches!(
            listens(&node, caller.key(), &format!("{HOOK}/{n}")),
            ApplyOutcome::Advanced { .. }
        ));
    }
    let one_more = listens(&node, caller.key(), &format!("{HOOK}/more"));
    assert!(matches!(one_more, ApplyOutcome::Ignored { why: WhyIgnored::TooMany, .. }));
    assert_eq!(
        world.usage(),
        Counters { asked: 1, attempts: 1, paid: 1, ..Counters::default() },
        "none of it is money"
    );
}
