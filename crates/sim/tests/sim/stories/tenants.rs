//! One tenant's load does not cost another tenant its turn at the provider, or its webhooks.

use crate::stories::post::WebhookScript;
use crate::stories::provider::SubmitScript;
use crate::stories::world::{StoryNode, StoryOrder, StoryWorld, recaptcha, turnstile, world};
use quittance_engine::{ProviderState, Settings, TenantRule};
use quittance_lifecycle::{FaultClass, Key};
use quittance_ports::MemorySpill;
use std::sync::Arc;
use std::time::Duration;

const UNLISTED: SubmitScript = SubmitScript::Refuses(FaultClass::UnlistedCode, "ERROR_WHAT_IS_THIS");

fn of(tenant: &str, mut request_spec: StoryOrder) -> StoryOrder {
    request_spec.draft.tenant = tenant.into();
    request_spec
}

fn node_with(world: &StoryWorld, adjust: impl FnOnce(&mut Settings)) -> StoryNode {
    world.node_with(Arc::new(MemorySpill::default()), adjust)
}

fn listens(node: &StoryNode, key: Key, url: &str) {
    let (engine, url) = (Arc::clone(&node.engine), url.to_owned());
    node.does(async move { engine.listen_for(&key, url, "2captcha").await }).expect("the store is there");
}

/// Trap: 2,000 orders of one tenant at 10 submits a second, and another tenant's order still waits after 60 s.
#[test]
fn a_tenant_with_two_thousand_orders_holds_up_no_other_tenant() {
    let world = world();
    let node = node_with(&world, |settings| {
        settings.providers[0].throttle.submit_interval = Duration::from_millis(100);
    });
    let crowd: Vec<_> = (0..2_000)
        .map(|n| {
            world.after_ms(1);
            node.begins(of("alice", turnstile(&format!("crowd-{n}"))))
        })
        .collect();
    world.after(3);
    assert!(crowd.iter().all(crate::stories::world::StoryCaller::is_placed));
    for n in 0..20 {
        let (site, begun) = (format!("bob-{n}"), world.now());
        node.asks(of("bob", turnstile(&site)));
        world.after(1);
        let at = world.provider.submitted_at(&site);
        assert!(at.first().is_some_and(|at| at - begun <= 200), "{site} placed at {begun}: {at:?}");
    }
    let submitted = |n: usize| world.provider.submitted_at(&format!("crowd-{n}")).first().copied();
    let times: Vec<_> = (0..2_000).map_while(submitted).collect();
    assert!((200..=240).contains(&times.len()), "the pace is used in full: {}", times.len());
    assert!(times.is_sorted(), "the oldest first");
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 100), "and never faster than allowed");
}

/// Trap: one tenant's slow submits hold every seat, and another tenant's orders wait as long.
#[test]
fn a_tenant_whose_submits_are_slow_leaves_seats_for_others() {
    let world = world();
    let rules = ["alice", "bob"].map(|tenant| (tenant.to_owned(), TenantRule::default()));
    let node = node_with(&world, |settings| settings.tenants = rules.into_iter().collect());
    for n in 0..1_000 {
        let site = format!("crowd-{n}");
        world.provider.on_submit(&site, &[SubmitScript::Takes(9_000)]);
        node.begins(of("alice", turnstile(&site)));
    }
    world.after(1);
    for n in 0..20 {
        let (site, begun) = (format!("bob-{n}"), world.now());
        node.asks(of("bob", turnstile(&site)));
        world.after_ms(500);
        let at = world.provider.submitted_at(&site);
        assert!(at.first().is_some_and(|at| at - begun <= 100), "{site} placed at {begun}: {at:?}");
    }
}

/// Trap: due polls wait in the store behind another tenant's orders for which there was no room in memory.
#[test]
fn a_tenants_polls_come_on_time_although_another_tenant_has_five_thousand_orders_waiting() {
    let world = world();
    let node = node_with(&world, |settings| {
        settings.providers[0].throttle.submit_interval = Duration::from_millis(100);
    });
    for n in 0..5_000 {
        node.begins(of("alice", turnstile(&format!("crowd-{n}"))));
    }
    world.after(5);
    let delays: Vec<_> = (0..15)
        .map(|n| {
            let site = format!("bob-{n}");
            world.provider.solves(&site, 1);
            let caller = node.asks(of("bob", turnstile(&site)));
            world.after(15);
            let submit = world.provider.last_submit(&site);
            let polled = world.provider.polled_at(submit.task.as_deref().expect("it was taken"));
            assert!(caller.token().is_some(), "{site} has no answer: {polled:?}");
            polled[0] - submit.at
        })
        .collect();
    // One of ten answers is there after 3.2 s, when the first poll is due.
    assert!(delays.iter().all(|delay| (3_200..3_500).contains(delay)), "{delays:?}");
}

/// Promise: a tenant's orders do not wait behind another tenant's backlog. Here the node that accepted the backlog is
/// gone, and only timers bring it back.
#[test]
fn a_tenants_orders_are_found_behind_another_tenants_backlog() {
    let world = world();
    let gone = node_with(&world, |settings| {
        settings.providers[0].throttle.submit_interval = Duration::from_secs(3600);
    });
    for n in 0..3_000 {
        gone.begins(of("alice", turnstile(&format!("crowd-{n}"))));
    }
    world.after(1);
    gone.asks(of("bob", turnstile("bob")));
    gone.kill();
    let _node = node_with(&world, |settings| {
        settings.providers[0].throttle.submit_interval = Duration::from_millis(100);
    });
    world.after(15);
    assert_eq!(world.provider.submits("bob").len(), 1);
}

/// Trap: 600 webhooks of one tenant that accept the connection and never answer stop all others.
#[test]
fn one_tenants_hanging_webhooks_hold_up_no_others() {
    let world = world();
    let node = world.node();
    for n in 0..600 {
        let (site, url) = (format!("crowd-{n}"), format!("https://h{}.example.com/{n}", n % 100));
        world.provider.solves(&site, 5);
        world.post.on_call(&url, &[WebhookScript::Hangs; 8]);
        let caller = node.asks(of("alice", turnstile(&site)));
        listens(&node, caller.key(), &url);
    }
    world.after(10);
    for n in 0..10 {
        let (site, url) = (format!("bob-{n}"), format!("https://h1.example.com/bob/{n}"));
        world.provider.solves(&site, 1);
        let caller = node.asks(of("bob", turnstile(&site)));
        listens(&node, caller.key(), &url);
        world.after(30);
        let solved_at = caller.answered_at().expect("it was solved");
        let called = world.post.calls_to(&url);
        assert!(called.first().is_some_and(|at| at.abs_diff(solved_at) < 200), "{solved_at}: {called:?}");
    }
}

/// One host that hangs does not hold up the same tenant's other hosts.
#[test]
fn a_hanging_host_leaves_seats_for_its_tenants_other_hosts() {
    let world = world();
    let node = world.node();
    for n in 0..300 {
        let (site, url) = (format!("crowd-{n}"), format!("https://hangs.example.com/{n}"));
        world.provider.solves(&site, 5);
        world.post.on_call(&url, &[WebhookScript::Hangs; 8]);
        let caller = node.asks(turnstile(&site));
        listens(&node, caller.key(), &url);
    }
    world.after(10);
    world.provider.solves("good", 1);
    let caller = node.asks(turnstile("good"));
    listens(&node, caller.key(), "https://good.example.com/");
    world.after(30);
    assert_eq!(world.post.calls_to("https://good.example.com/").len(), 1);
}

/// Trap: one order every 3 s that the provider rejects with an unlisted code, which makes all orders wait.
#[test]
fn an_unlisted_code_slows_only_its_own_order() {
    let world = world();
    let node = node_with(&world, |settings| settings.is_shared = true);
    for n in 0..20 {
        for (site, request_spec) in
            [(format!("odd-{n}"), turnstile as fn(&str) -> StoryOrder), (format!("new-{n}"), recaptcha)]
        {
            world.provider.on_submit(&site, &[UNLISTED; 10]);
            node.asks(of("alice", request_spec(&site)));
        }
        let site = format!("good-{n}");
        let begun = world.now();
        node.asks(of("bob", turnstile(&site)));
        world.after(3);
        assert_eq!(world.provider.submitted_at(&site), [begun], "{site}");
    }
    assert_eq!(node.engine.provider_states()[0].1, ProviderState::Ok);
    assert_eq!(world.provider.submits("odd-0").len(), 3, "its own limit holds");
}

#[test]
fn an_unlisted_code_of_one_method_slows_no_other_order_on_a_node_with_one_tenant() {
    let world = world();
    let node = world.node();
    for n in 0..10 {
        let site = format!("odd-{n}");
        world.provider.on_submit(&site, &[UNLISTED; 10]);
        node.asks(turnstile(&site));
        world.after_ms(100);
        assert_eq!(node.engine.provider_states()[0].1, ProviderState::Ok);
    }
}

#[test]
fn an_unlisted_code_that_orders_of_two_methods_meet_slows_the_provider() {
    let world = world();
    let node = world.node();
    for (site, request_spec) in [("a", turnstile as fn(&str) -> StoryOrder), ("b", recaptcha)] {
        world.provider.on_submit(site, &[UNLISTED; 10]);
        node.asks(request_spec(site));
    }
    world.after_ms(10);
    assert!(matches!(node.engine.provider_states()[0].1, ProviderState::Throttled { until: Some(_), .. }));

    let other = crate::stories::world::world();
    let node = node_with(&other, |settings| settings.is_shared = true);
    for (tenant, site, request_spec) in
        [("alice", "a", turnstile as fn(&str) -> StoryOrder), ("bob", "b", recaptcha)]
    {
        other.provider.on_submit(site, &[UNLISTED; 10]);
        node.asks(of(tenant, request_spec(site)));
    }
    other.after_ms(10);
    assert!(
        matches!(node.engine.provider_states()[0].1, ProviderState::Throttled { until: Some(_), .. }),
        "tenants that differ, too"
    );
}

/// All that a hostile tenant can do at once: hanging webhooks, 2,000 queued orders, and orders that are rejected with
/// an unlisted code. At most one of its submits goes before another tenant's, and none of its webhooks does.
#[test]
fn beside_a_hostile_tenant_another_tenants_orders_and_webhooks_go_in_their_turn() {
    let world = world();
    let node = node_with(&world, |settings| {
        (settings.is_shared, settings.providers[0].throttle.submit_interval) =
            (true, Duration::from_millis(100));
    });
    let mut of_alice = Vec::new();
    let mut place = |site: String, url: Option<String>| {
        let caller = node.begins(of("alice", turnstile(&site)));
        world.after_ms(1);
        if let Some(url) = url {
            world.post.on_call(&url, &[WebhookScript::Hangs; 8]);
            listens(&node, caller.key(), &url);
        }
        of_alice.push(site);
    };
    for n in 0..600 {
        let site = format!("hung-{n}");
        world.provider.solves(&site, 5);
        place(site, Some(format!("https://h{}.example.com/{n}", n % 20)));
        if n % 3 == 0 {
            let site = format!("odd-{n}");
            world.provider.on_submit(&site, &[UNLISTED; 10]);
            place(site, None);
        }
    }
    (0..1_200).for_each(|n| place(format!("crowd-{n}"), None));
    world.after(30);
    for n in 0..10 {
        let (site, url) = (format!("bob-{n}"), format!("https://bob.example.com/{n}"));
        world.provider.solves(&site, 1);
        let begun = world.now();
        let caller = node.asks(of("bob", turnstile(&site)));
        listens(&node, caller.key(), &url);
        world.after(20);
        let sent = world.provider.submitted_at(&site)[0];
        let ahead = of_alice.iter().flat_map(|site| world.provider.submitted_at(site));
        let ahead = ahead.filter(|at| *at > begun && *at < sent).count();
        assert!(ahead <= 1, "{site}: {ahead} submits of another tenant went first");
        let (solved_at, called) = (caller.answered_at().expect("it was solved"), world.post.calls_to(&url));
        assert!(
            called.first().is_some_and(|at| at.abs_diff(solved_at) < 200),
            "{site} {solved_at}: {called:?}"
        );
    }
    assert_eq!(node.engine.provider_states()[0].1, ProviderState::Ok);
}

/// How long an order of bob waits for its submit, and how long it takes from placement to answer. The provider has
/// the answer after one second, and is polled after ten.
fn waits_and_takes(world: &StoryWorld, node: &StoryNode, site: &str) -> (u64, u64) {
    let begun = world.now();
    world.provider.solves(site, 1);
    let caller = node.asks(of("bob", turnstile(site)));
    let answered = (0..2_000).find_map(|_| {
        world.after_ms(100);
        caller.answered_at()
    });
    assert!(caller.token().is_some(), "{site}: {:?}", caller.last_outcome());
    (world.provider.submitted_at(site)[0] - begun, answered.expect("it was answered") - begun)
}

/// Trap: one tenant's orders always get HTTP 502. The circuit breaker trips, and another tenant's orders wait for
/// minutes.
#[test]
fn a_tenant_whose_submits_always_fail_holds_up_no_other_tenant() {
    let world = world();
    let node = node_with(&world, |settings| settings.is_shared = true);
    let normal =
        (0..5).map(|n| waits_and_takes(&world, &node, &format!("before-{n}")).1).max().expect("five");
    let is_answered_in_time = |site: String| {
        let (waits, takes) = waits_and_takes(&world, &node, &site);
        assert!(waits <= 100 && takes <= normal * 2, "{site}: {waits} ms, {takes} ms; {normal} ms before");
        assert!(!matches!(node.engine.provider_states()[0].1, ProviderState::Tripped { .. }), "{site}");
    };
    for n in 0..80 {
        let site = format!("bad-{n}");
        world.provider.on_submit(&site, &[SubmitScript::BadGateway; 20]);
        node.begins(of("alice", turnstile(&site)));
        world.after_ms(150);
        if n % 8 == 7 {
            is_answered_in_time(format!("good-{n}"));
        }
    }
    (0..20).for_each(|n| is_answered_in_time(format!("after-{n}")));
}

/// Trap: one tenant's orders always get "no slot", because the bid for their kind is too low. The gate takes the
/// provider for busy, and another tenant's orders of half a second wait for 26 s.
#[test]
fn a_tenant_whose_orders_find_no_slot_holds_up_no_other_tenant() {
    const BUSY: SubmitScript = SubmitScript::Refuses(FaultClass::Busy, "ERROR_NO_SLOT_AVAILABLE");
    let world = world();
    let node = node_with(&world, |settings| settings.is_shared = true);
    let normal =
        (0..5).map(|n| waits_and_takes(&world, &node, &format!("before-{n}")).1).max().expect("five");
    for n in 0..40 {
        let site = format!("bad-{n}");
        world.provider.on_submit(&site, &[BUSY; 500]);
        node.begins(of("alice", turnstile(&site)));
        world.after(3);
        let (waits, takes) = waits_and_takes(&world, &node, &format!("good-{n}"));
        assert!(waits <= 100 && takes <= normal * 2, "{n}: {waits} ms, {takes} ms; {normal} ms before");
    }
    // Alice's orders are tried less and less often, however many they are.
    let submits = || (0..40).map(|n| world.provider.submits(&format!("bad-{n}")).len()).sum::<usize>();
    let before = submits();
    world.after(60);
    assert!(
        submits() - before <= 30,
        "{} submits in a minute for orders that find no slot",
        submits() - before
    );
}

/// While submits of both tenants fail, the breaker is tripped and few submits go out. When the provider is back, the
/// tenant whose orders still fail does not delay the other tenant.
#[test]
fn an_outage_that_two_tenants_meet_trips_the_breaker_until_a_submit_of_either_is_taken() {
    const AWAY: SubmitScript = SubmitScript::Refuses(FaultClass::Unreachable, "CONNECT");
    let world = world();
    let node = node_with(&world, |settings| settings.is_shared = true);
    for n in 0..40 {
        for (tenant, site) in [("alice", format!("bad-{n}")), ("bob", format!("good-{n}"))] {
            world.provider.on_submit(&site, &[AWAY; 500]);
            node.begins(of(tenant, turnstile(&site)));
        }
    }
    world.after(2);
    assert!(matches!(node.engine.provider_states()[0].1, ProviderState::Tripped { .. }));
    let sites = || (0..40).flat_map(|n| [format!("bad-{n}"), format!("good-{n}")]);
    let submits = || sites().map(|site| world.provider.submits(&site).len()).sum::<usize>();
    let before = submits();
    world.after(10);
    assert!(submits() - before <= 10, "{} submits in 10 s of an outage", submits() - before);
    // The provider is back, and only the first tenant's orders still fail.
    (0..40).for_each(|n| world.provider.takes_again(&format!("good-{n}")));
    let (waits, _) = waits_and_takes(&world, &node, "later");
    assert!(waits <= 60_000, "{waits} ms until bob's submits go out again");
}
