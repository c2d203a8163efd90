//! Tests of what Redis keeps and expires by itself, and of the cost of a step.

use super::{FreshPrefix, VERSIONS, create, record, run, settings, write};
use quittance_lifecycle::{Counters, Event, Value};
use quittance_ports::conformance::samples::{self, START, SampleOrder, after, draft, riddle};
use quittance_ports::{Commit, Day, Store, UsageRow, Version, Which};
use quittance_servers::{Redis, shared_redis};
use quittance_store_redis::RedisStore;

fn ttl_ms(name: &str) -> i64 {
    shared_redis().command(&["PTTL", name]).parse().unwrap()
}

#[test]
fn exactly_what_may_be_forgotten_expires_and_nothing_that_is_owed() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        let (mut expected, mut forgotten) = (0, 0);
        for SampleOrder { order, .. } in samples::every_phase() {
            create(&store, &order).await;
            let ttl = ttl_ms(&record(&place.prefix, &order));
            if order.forget_at().is_some() {
                assert!(ttl > 0, "{} may be forgotten", order.phase.name());
                forgotten += 1;
            } else {
                assert_eq!(ttl, -1, "{} is owed", order.phase.name());
                expected += 1;
            }
        }
        assert!(expected > 3 && forgotten > 3, "there is some of either");
    });
}

#[test]
fn what_lives_again_no_longer_expires() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        let ended = samples::failed("again", START).order;
        let version = create(&store, &ended).await;
        assert!(ttl_ms(&record(&place.prefix, &ended)) > 0);
        let version = write(&store, version, &samples::queued("again", after(60)).order).await;
        assert_eq!(ttl_ms(&record(&place.prefix, &ended)), -1);
        write(&store, version, &samples::failed("again", after(60)).order).await;
        assert!(ttl_ms(&record(&place.prefix, &ended)) > 0);
    });
}

/// By the clock of Redis, the order was due for purging long ago. A node that has just written it must still find it.
#[test]
fn what_is_written_late_does_not_vanish_at_once() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        let order = samples::failed("late", quittance_lifecycle::Timestamp::from_millis(1_000_000)).order;
        create(&store, &order).await;
        assert!(store.load(&order.key).await.unwrap().is_some());
        assert!(ttl_ms(&record(&place.prefix, &order)) > 3_000_000);
    });
}

#[test]
fn what_has_expired_is_struck_off_the_lists() {
    run(async {
        let place = FreshPrefix::on_one_server(3);
        let store = place.open().await;
        let orders: Vec<_> = (0..9).map(|n| samples::failed(&format!("gone {n}"), START).order).collect();
        for order in &orders {
            create(&store, order).await;
        }
        let expected = samples::failed("kept", after(1)).order;
        create(&store, &expected).await;
        for order in &orders {
            for partition in 0..3 {
                let name = format!("{{{}:{partition}}}:order:{}", place.prefix, order.key);
                shared_redis().command(&["DEL", &name]);
            }
        }
        let listed = store.list(Which::ALL, None, 3).await.unwrap();
        assert_eq!(listed.len(), 1, "they do not even fill a page");
        assert_eq!(store.purge(after(1_000_000), 1).await.unwrap(), 1, "nor count as removed");
        for partition in 0..3 {
            let of = format!("of:{}:rest", expected.terms.tenant);
            for list in ["open", "rest", "dead", "forget", &of] {
                let left =
                    shared_redis().command(&["ZCARD", &format!("{{{}:{partition}}}:{list}", place.prefix)]);
                assert_eq!(left, "0", "{list}");
            }
        }
    });
}

/// Orders of other tenants change neither the cost nor the content of a tenant's list.
#[test]
fn a_tenants_list_costs_the_same_however_many_orders_others_have() {
    run(async {
        let place = FreshPrefix::on_one_server(3);
        let store = place.open().await;
        for n in 0..5 {
            let order = samples::queued(&format!("bob's {n}"), START).order;
            create(&store, &samples::of_tenant(&order, "bob")).await;
        }
        let cost = async || {
            let before = store.round_trips();
            let listed = store.list(Which::OPEN.of("bob"), None, 100).await.unwrap();
            (listed.len(), store.round_trips() - before)
        };
        let alone = cost().await;
        assert_eq!(alone.0, 5);
        for n in 0..600 {
            create(&store, &samples::queued(&format!("alice's {n}"), START).order).await;
        }
        assert_eq!(cost().await, alone);
    });
}

#[test]
fn placing_joining_reading_and_moving_on_cost_one_round_trip_each() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        create(&store, &samples::queued("first", START).order).await;
        let since = |before: &mut u64| {
            let now = store.round_trips();
            now - std::mem::replace(before, now)
        };
        let mut trips = store.round_trips();
        let order = samples::queued("second", START).order;
        let version = create(&store, &order).await;
        assert_eq!(since(&mut trips), 1, "a new order");
        let joined = super::commit(&store, Version::ABSENT, &order).await.unwrap();
        assert!(matches!(joined, Commit::Conflict(Some(stored)) if stored.order == order));
        assert_eq!(since(&mut trips), 1, "the same again");
        store.load(&order.key).await.unwrap().unwrap();
        assert_eq!(since(&mut trips), 1, "a look at it");
        let _watch = store.watch(&order.key).await.unwrap();
        assert_eq!(since(&mut trips), 0, "waiting for it");
        write(&store, version, &samples::submitting("second", START).order).await;
        assert_eq!(since(&mut trips), 1, "the next step");
        assert_eq!(store.claim_due(after(1_000_000), after(1_000_001), 10).await.unwrap().orders.len(), 2);
        assert_eq!(since(&mut trips), 1, "all that is due");
    });
}

#[test]
fn a_picture_of_a_megabyte_is_sent_once() {
    run(async {
        let redis = Redis::start(&[]);
        let store = RedisStore::open(settings(&redis.url())).await.unwrap();
        let received = || -> u64 {
            let stats = redis.command(&["INFO", "stats"]);
            let line = stats.lines().find_map(|line| line.strip_prefix("total_net_input_bytes:"));
            line.unwrap().trim().parse().unwrap()
        };
        let picture =
            |seed: u8| Value::Bytes((0..1_000_000_u32).map(|n| n.to_le_bytes()[0] ^ seed).collect());
        let draft_of = |seed| draft("https://example.com/login").with("picture", picture(seed));
        let placed = SampleOrder::placed("picture", draft_of(0), &riddle(), START);
        let mut version = create(&store, &placed.order).await;
        let before = received();
        assert!(before > 1_000_000);
        for next in [samples::woken(), samples::accepted(1), Event::Cancelled].into_iter().scan(
            placed,
            |sample, event| {
                *sample = sample.clone().then(event);
                Some(sample.order.clone())
            },
        ) {
            version = write(&store, version, &next).await;
            assert_eq!(store.load(&next.key).await.unwrap().unwrap().order, next);
        }
        assert!(received() - before < 100_000, "{} bytes for three steps", received() - before);

        let other = SampleOrder::placed("picture", draft_of(1), &riddle(), START).order;
        write(&store, version, &other).await;
        assert_eq!(store.load(&other.key).await.unwrap().unwrap().order, other, "a new life has its own");
    });
}

#[test]
fn versions_stay_ahead_when_the_clock_of_redis_is_set_back() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        let order = samples::queued("steady", START).order;
        let version = create(&store, &order).await;
        let ahead = version.0 + 1_000_000_000;
        shared_redis().command(&[
            "HSET",
            &format!("{{{}:0}}:{VERSIONS}", place.prefix),
            "version",
            &ahead.to_string(),
        ]);
        assert_eq!(write(&store, version, &order).await, Version(ahead + 1));
    });
}

#[test]
fn usage_that_are_full_or_damaged_stop_no_order() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        let line = UsageRow {
            day: Day(50_000),
            tenant: "ann".into(),
            kind: "riddle".into(),
            site: "example.com".into(),
            account: String::new(),
        };
        let counters = Counters { asked: u64::MAX, joined: 1, ..Counters::default() };
        for _ in 0..3 {
            store.count(&line, &counters).await.unwrap();
        }
        let usage = store.usage(line.day, line.day).await.unwrap();
        assert_eq!(usage.len(), 1);
        assert_eq!((usage[0].1.asked, usage[0].1.joined), (i64::MAX.unsigned_abs(), 3));

        let today = format!("{{{}:0}}:usage:{}", place.prefix, Day::of(START).0);
        shared_redis().command(&["SET", &today, "no usage at all"]);
        let SampleOrder { order, counters, .. } = samples::queued("unbooked", START);
        let outcome = store.commit(Version::ABSENT, &order, &counters, START).await.unwrap();
        assert!(matches!(outcome, Commit::Done(_)));
        assert!(store.load(&order.key).await.unwrap().is_some());
        assert_eq!(store.list(Which::OPEN, None, 9).await.unwrap().len(), 1);
    });
}

#[test]
fn the_first_secret_that_was_drawn_stands_for_all_nodes() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let (one, other) = (place.open().await, place.open().await);
        assert_eq!(one.shared_secret([1; 32]).await.unwrap(), [1; 32]);
        assert_eq!(other.shared_secret([2; 32]).await.unwrap(), [1; 32]);
        assert_eq!(one.shared_secret([3; 32]).await.unwrap(), [1; 32]);
    });
}

/// A cluster client repeats a request whose outcome is not known: a winner must not learn that it lost.
#[test]
fn a_commit_that_arrives_twice_is_one_commit_and_says_so_both_times() {
    let (prefix, key) = (super::fresh_prefix(), "ab".repeat(32));
    let name = |what: &str| format!("{{{prefix}:0}}:{what}");
    let keys = [
        "order:x", VERSIONS, "due", "forget", "open", "rest", "dead", "stocks", "days", "usage:1", "tenants",
        "identity",
    ]
    .map(name);
    let of = name("of:");
    let commit = |by: &str| {
        let marks = ["", "", "", "", "", "taken:", "rest", "1", "news", "1000", "line:", "1", "1"];
        let rest = [&*of, "alice", "", "", "asked", "5"];
        let step = ["0", &key, by, "{}", "terms", "sum"];
        let script = concat!(
            include_str!("../../src/scripts/steps.lua"),
            include_str!("../../src/scripts/commit.lua")
        );
        let mut all = vec!["EVAL", script, "12"];
        all.extend(keys.iter().map(String::as_str).chain(step).chain(marks).chain(rest));
        shared_redis().command(&all)
    };
    let first = commit("1-1");
    assert!(first.starts_with("done"), "{first}");
    assert_eq!(commit("1-1"), first);
    assert_eq!(
        shared_redis().command(&["HGET", &name("usage:1"), "line:asked"]),
        "5",
        "and it is booked once"
    );
    assert!(commit("1-2").starts_with("conflict"));
}
