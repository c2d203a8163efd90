//! Tests of daily use: the number of statements, many callers and nodes at once, and large pictures.

use super::{commit, create, fresh_schema, open, settings, settings_at, write};
use futures_util::future::join_all;
use quittance_lifecycle::{Counters, Key, Order};
use quittance_ports::conformance::model::random_operations;
use quittance_ports::conformance::samples::{self, START, SampleOrder};
use quittance_ports::{Commit, Day, Store, UsageRow, Version, Versioned};
use quittance_servers::{Postgres, shared_postgres};
use quittance_store_postgres::PostgresStore;
use std::sync::Arc;

const PAGE: &str = "https://example.com/login";

fn queued(n: usize) -> Arc<Order> {
    samples::queued(&format!("order {n}"), START).order
}

/// The number of statements of these calls.
async fn trips<T>(store: &PostgresStore, calls: impl Future<Output = T>) -> (u64, T) {
    let before = store.round_trips();
    let done = calls.await;
    (store.round_trips() - before, done)
}

#[test]
fn placing_joining_stepping_reading_and_claiming_cost_one_round_trip_each() {
    super::run(async {
        let store = open(settings(&fresh_schema())).await;
        let order = queued(1);
        let (cost, version) = trips(&store, create(&store, &order)).await;
        assert_eq!(cost, 1, "a new placement");
        let (cost, joined) = trips(&store, commit(&store, Version::ABSENT, &order)).await;
        let stands = Versioned { version, order: Arc::clone(&order) };
        assert_eq!((cost, joined.unwrap()), (1, Commit::Conflict(Some(Box::new(stands)))), "a join");
        let (cost, _) =
            trips(&store, write(&store, version, &samples::solving("order 1", START).order)).await;
        assert_eq!(cost, 1, "a step");
        assert_eq!(trips(&store, store.load(&order.key)).await.0, 1);
        assert_eq!(trips(&store, store.claim_due(START, START, 10)).await.0, 1);
        assert_eq!(trips(&store, store.watch(&order.key)).await.0, 0);
    });
}

#[test]
fn commits_that_come_together_share_statements() {
    super::run(async {
        let store = open(settings(&fresh_schema())).await;
        let orders: Vec<_> = (0..100).map(queued).collect();
        let placed = join_all(orders.iter().map(|order| create(&store, order)));
        let (cost, versions) = trips(&store, placed).await;
        assert!(cost <= 10, "100 placements took {cost} statements");
        let steps = versions.iter().zip(0..).map(|(version, n)| {
            let next = samples::solving(&format!("order {n}"), START).order;
            let store = &store;
            async move { write(store, *version, &next).await }
        });
        let (cost, _) = trips(&store, join_all(steps)).await;
        assert!(cost <= 10, "100 steps took {cost} statements");
        let line = UsageRow::of(&orders[0], START);
        let counters = Counters { joined: 1, ..Counters::default() };
        let (cost, counted) = trips(&store, join_all((0..100).map(|_| store.count(&line, &counters)))).await;
        assert!(cost <= 10 && counted.iter().all(Result::is_ok), "100 counts took {cost} statements");
        assert_eq!(store.usage(line.day, line.day).await.unwrap()[0].1.joined, 100);
    });
}

/// The server keeps its plans, and those for an empty table must be good for a full one.
#[test]
fn no_commit_and_no_taker_ever_reads_all_orders() {
    super::run(async {
        let server = Postgres::start(&["autovacuum=off"]);
        let store = open(settings_at(&server.url(), "grown")).await;
        let last_version = || {
            server.sql("SELECT seq_tup_read FROM pg_stat_user_tables WHERE schemaname = 'grown' AND relname = 'orders'")
        };
        for _round in 0..2 {
            let placed: Vec<_> = (0..500).map(queued).collect();
            let commits = join_all(placed.iter().map(|order| commit(&store, Version::ABSENT, order))).await;
            let steps = commits.into_iter().zip(0..).filter_map(|(done, n)| match done.unwrap() {
                Commit::Done(version) => {
                    Some((version, samples::solving(&format!("order {n}"), START).order))
                }
                Commit::Conflict(_) => None,
            });
            let steps: Vec<_> = steps.collect();
            join_all(steps.iter().map(|(version, next)| write(&store, *version, next))).await;
            let stocked =
                |n: usize| samples::stocked(&format!("answer {n}"), PAGE, samples::after(100)).order;
            let stocked: Vec<_> = (0..50).map(stocked).collect();
            join_all(stocked.iter().map(|order| commit(&store, Version::ABSENT, order))).await;
            let target = samples::target(PAGE);
            join_all((0..100_u8).map(|n| {
                let (store, by) = (&store, Key([n; 32]));
                async move { store.take(&target, START, &by, START, &Counters::default()).await.unwrap() }
            }))
            .await;
        }
        // A session says what it has done when it ends.
        drop(store);
        super::until("all sessions have ended", async || {
            server.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'quittance'") == "0"
        })
        .await;
        assert_eq!(last_version(), "0");
        let record = server.sql("SELECT idx_scan >= 1500 FROM pg_stat_user_tables WHERE schemaname = 'grown' AND relname = 'orders'");
        assert_eq!(record, "t", "it is the sessions of the store that are counted");
    });
}

/// Many callers that place one order need no statement each.
#[test]
fn a_herd_that_joins_one_order_shares_statements_and_all_get_the_same_record() {
    super::run(async {
        let store = open(settings(&fresh_schema())).await;
        let sample = samples::queued("herd", START);
        let herd =
            join_all((0..500).map(|_| store.commit(Version::ABSENT, &sample.order, &sample.counters, START)));
        let (cost, outcomes) = trips(&store, herd).await;
        // How many share a statement depends on how fast the machine makes placements; without sharing there would be
        // 500.
        assert!(cost <= 100, "500 placements of one order took {cost} statements");
        let stands = store.load(&sample.order.key).await.unwrap();
        let (mut made, mut joined) = (0, 0);
        for outcome in outcomes {
            match outcome.unwrap() {
                Commit::Done(version) => {
                    made += usize::from(Some(version) == stands.as_ref().map(|s| s.version));
                }
                Commit::Conflict(record) => joined += usize::from(record.map(|record| *record) == stands),
            }
        }
        assert_eq!((made, joined), (1, 499));
        let usage = store.usage(Day::of(START), Day::of(START)).await.unwrap();
        assert_eq!(usage, [(UsageRow::of(&sample.order, START), sample.counters)], "it is booked once");
    });
}

/// Updates and creations of the same few orders from several nodes, in overlapping batches.
#[test]
fn nodes_whose_batches_overlap_do_not_get_into_each_others_way() {
    const NODES: usize = 3;
    const ORDERS: usize = 40;
    const ROUNDS: usize = 15;
    super::run(async {
        let schema = fresh_schema();
        let nodes = join_all((0..NODES).map(|_| open(settings(&schema)))).await;
        let counters = Counters { asked: 1, ..Counters::default() };
        let climb = async |node: &PostgresStore, n: usize| {
            let mut won = 0_u64;
            let order = queued(n);
            let mut last_version = Version::ABSENT;
            for _ in 0..ROUNDS {
                match node.commit(last_version, &order, &counters, START).await.unwrap() {
                    Commit::Done(version) => (won, last_version) = (won + 1, version),
                    Commit::Conflict(record) => {
                        last_version = record.map_or(Version::ABSENT, |record| record.version);
                    }
                }
            }
            won
        };
        // Each node comes to the orders in another order.
        let shuffled = |node: usize| (0..ORDERS).map(move |n| (n * (2 * node + 1) + node) % ORDERS);
        let climbs = (0..NODES).flat_map(|node| {
            let (store, climb) = (&nodes[node], &climb);
            shuffled(node).map(move |n| climb(store, n))
        });
        let won: u64 = join_all(climbs).await.into_iter().sum();
        let usage = nodes[0].usage(Day::of(START), Day::of(START)).await.unwrap();
        assert_eq!(usage[0].1.asked, won, "the usage counts each write that was won, once");
        assert!(won >= (ORDERS * ROUNDS) as u64, "one writer wins each round");
    });
}

/// The terms of an order with a picture are not sent and stored again at every step.
#[test]
fn a_large_picture_is_written_once_and_follows_when_it_changes() {
    super::run(async {
        let schema = fresh_schema();
        let store = open(settings(&schema)).await;
        let picture = |seed: u32| -> Vec<u8> {
            (0..300_000_u32).map(|n| (n ^ seed).wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect()
        };
        let placed = |seed| {
            let draft = samples::draft("https://example.com/wall").with("picture", picture(seed));
            SampleOrder::placed("pictured", draft, &samples::riddle(), START)
        };
        let first = placed(1);
        let mut version = create(&store, &first.order).await;
        let size = || shared_postgres().sql(&format!("SELECT pg_table_size('{schema}.orders')"));
        let before: u64 = size().parse().unwrap();
        let solving = first.then(samples::woken()).then(samples::accepted(1));
        for _ in 0..20 {
            let (cost, next) = trips(&store, write(&store, version, &solving.order)).await;
            assert_eq!(cost, 1);
            version = next;
        }
        let after: u64 = size().parse().unwrap();
        assert!(after < before + 100_000, "the table grew from {before} to {after}");
        let loaded = store.load(&solving.order.key).await.unwrap().unwrap();
        assert_eq!(loaded.order, solving.order, "and the picture is still there");

        let other = placed(2).order;
        let (cost, version) = trips(&store, write(&store, version, &other)).await;
        assert_eq!(cost, 2, "the server asks for terms that it does not know");
        assert_eq!(store.load(&other.key).await.unwrap(), Some(Versioned { version, order: other }));
    });
}

/// Counters of the usage stop at the highest number, and never fail.
#[test]
fn the_usage_fill_up_and_do_not_overflow() {
    super::run(async {
        let schema = fresh_schema();
        let (one, other) = (open(settings(&schema)).await, open(settings(&schema)).await);
        let line = UsageRow {
            day: Day(3),
            tenant: "rich\0".into(),
            kind: "riddle".into(),
            site: String::new(),
            account: String::new(),
        };
        let counters = Counters { cost_micros: u64::MAX, asked: 1, ..Counters::default() };
        for store in [&one, &one, &other, &other] {
            store.count(&line, &counters).await.unwrap();
        }
        let usage = one.usage(line.day, line.day).await.unwrap();
        assert_eq!((&usage[0].0, usage[0].1.asked), (&line, 4));
        assert!(usage[0].1.cost_micros >= u64::MAX / 2);
    });
}

/// The server refuses a name that is too long for an index, and with it the whole statement.
#[test]
fn what_the_server_cannot_take_does_not_take_others_with_it() {
    super::run(async {
        let store = open(settings(&fresh_schema())).await;
        let orders: Vec<_> = (0..50).map(queued).collect();
        let counters = Counters { asked: 1, ..Counters::default() };
        // No two bytes alike, or the server would make it short enough.
        let tenant: String = (0..4000_u32).filter_map(|n| char::from_u32(0x4e00 + n * 7 % 20_000)).collect();
        let too_long = UsageRow {
            day: Day(1),
            tenant,
            kind: "riddle".into(),
            site: String::new(),
            account: String::new(),
        };
        let placed =
            join_all(orders.iter().map(|order| store.commit(Version::ABSENT, order, &counters, START)));
        let (placed, refused) = futures_util::future::join(placed, store.count(&too_long, &counters)).await;
        assert!(placed.iter().all(|done| matches!(done, Ok(Commit::Done(_)))), "{placed:?}");
        assert!(super::is_unavailable(&refused), "{refused:?}");
        let usage = store.usage(Day(0), Day::of(START)).await.unwrap();
        assert_eq!(usage, [(UsageRow::of(&orders[0], START), Counters { asked: 50, ..Counters::default() })]);
    });
}

#[test]
fn the_secret_that_one_node_draws_is_that_of_all() {
    super::run(async {
        let schema = fresh_schema();
        let nodes = join_all((0..4).map(|_| open(settings(&schema)))).await;
        let drawn = join_all(nodes.iter().zip(0_u8..).map(|(node, n)| node.shared_secret([n; 32]))).await;
        let first = *drawn[0].as_ref().unwrap();
        assert!(first[0] < 4 && first == [first[0]; 32]);
        assert!(drawn.iter().all(|secret| *secret.as_ref().unwrap() == first));
        assert_eq!(nodes[3].shared_secret([9; 32]).await.unwrap(), first);
    });
}

#[test]
fn of_two_nodes_that_look_at_once_each_due_order_goes_to_one() {
    super::run(async {
        let schema = fresh_schema();
        let nodes = join_all((0..2).map(|_| open(settings(&schema)))).await;
        let orders: Vec<_> = (0..60).map(queued).collect();
        join_all(orders.iter().map(|order| create(&nodes[0], order))).await;
        let claims = join_all((0..12).map(|n| nodes[n % 2].claim_due(START, samples::after(60), 7))).await;
        let mut claimed: Vec<Key> = claims
            .iter()
            .flat_map(|due| due.as_ref().unwrap().orders.iter().map(|record| record.order.key))
            .collect();
        let rest = nodes[0].claim_due(START, samples::after(60), 100).await.unwrap();
        claimed.extend(rest.orders.iter().map(|record| record.order.key));
        claimed.sort_unstable();
        claimed.dedup();
        let total: usize =
            claims.iter().map(|due| due.as_ref().unwrap().orders.len()).sum::<usize>() + rest.orders.len();
        assert_eq!((claimed.len(), total), (60, 60), "each once");
    });
}

/// This server does not wait for its disk, to save time: only answers are compared.
#[test]
fn it_answers_like_the_memory_store_on_many_seeds() {
    let server = Postgres::start(&["fsync=off", "synchronous_commit=off"]);
    super::run(join_all((100..120).map(|seed| {
        let settings = super::settings_at(&server.url(), &fresh_schema());
        async move { random_operations(Arc::new(open(settings).await), seed, 500).await }
    })));
}
