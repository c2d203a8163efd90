//! Tests of a server that is killed, paused, cut off or made read-only: calls end in time, everything recovers by
//! itself, and nothing that was acknowledged is lost.

use super::{TIMEOUT, commit, create, is_unavailable, open, settings_at, until, write};
use futures_util::future::join_all;
use quittance_lifecycle::Order;
use quittance_ports::conformance::samples::{self, START};
use quittance_ports::{Commit, Store, Version, Which};
use quittance_servers::{Postgres, Tap};
use quittance_store_postgres::PostgresStore;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const CALL_WAIT: Duration = Duration::from_millis(1500);

async fn hasty(server: &Postgres, schema: &str) -> PostgresStore {
    open(settings_at(&server.url(), schema).with_call_wait(CALL_WAIT).with_recheck(Duration::from_secs(1)))
        .await
}

fn queued(name: &str) -> Arc<Order> {
    samples::queued(name, START).order
}

/// Checks that every kind of call fails as unavailable, in time.
async fn nothing_works(store: &PostgresStore) {
    let order = queued("in vain");
    let calls = async || {
        let line = quittance_ports::UsageRow::of(&order, START);
        let counters = quittance_lifecycle::Counters { asked: 1, ..Default::default() };
        assert!(is_unavailable(&commit(store, Version::ABSENT, &order).await));
        assert!(is_unavailable(&store.load(&order.key).await));
        assert!(is_unavailable(&store.claim_due(START, START, 1).await));
        assert!(is_unavailable(&store.list(Which::ALL, None, 1).await));
        assert!(is_unavailable(&store.count(&line, &counters).await));
        assert!(is_unavailable(&store.purge(START, 1).await));
    };
    let since = Instant::now();
    calls().await;
    assert!(since.elapsed() < CALL_WAIT * 8, "six calls took {:?}", since.elapsed());
}

async fn comes_back(store: &PostgresStore) {
    let order = queued("back again");
    until("it takes orders again", async || commit(store, Version::ABSENT, &order).await.is_ok()).await;
    until("it is read again", async || store.load(&order.key).await.is_ok()).await;
}

#[test]
fn a_server_killed_in_a_storm_loses_nothing_that_it_acknowledged() {
    super::run(async {
        let mut server = Postgres::start(&[]);
        let store = hasty(&server, "storm").await;
        let waited_for = queued("waited for");
        let version = create(&store, &waited_for).await;
        let mut watch = store.watch(&waited_for.key).await.unwrap();
        let storm = (0..8).map(|worker| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut written = Vec::new();
                for n in 0_u32.. {
                    let order = queued(&format!("order {worker}-{n}"));
                    match commit(&store, Version::ABSENT, &order).await {
                        Ok(Commit::Done(version)) => written.push((order.key, version)),
                        Ok(Commit::Conflict(record)) => panic!("only this test places it: {record:?}"),
                        Err(_) => break,
                    }
                }
                written
            })
        });
        let storm: Vec<_> = storm.collect();
        until("the storm has begun", async || store.round_trips() > 50).await;
        server.kill();
        let written: Vec<_> = join_all(storm).await.into_iter().flat_map(Result::unwrap).collect();
        assert!(!written.is_empty());
        nothing_works(&store).await;
        server.start_again();
        comes_back(&store).await;
        for (key, version) in written {
            let record = store.load(&key).await.unwrap().expect("what was acknowledged is there");
            assert_eq!(record.version, version);
        }
        write(&store, version, &samples::solved("waited for", START).order).await;
        tokio::time::timeout(TIMEOUT, watch.changed()).await.unwrap();
    });
}

#[test]
fn a_server_that_is_paused_or_cut_off_is_noticed_in_time_and_used_again() {
    super::run(async {
        let server = Postgres::start(&[]);
        let tap = Tap::in_front_of(server.port());
        let url = server.url().replace(&server.port().to_string(), &tap.port().to_string());
        let settings = settings_at(&url, "timeout").with_call_wait(CALL_WAIT);
        let store = open(settings.with_recheck(Duration::from_secs(1))).await;
        let order = queued("before");
        let version = create(&store, &order).await;
        let mut watch = store.watch(&order.key).await.unwrap();

        server.pause();
        nothing_works(&store).await;
        server.resume();
        comes_back(&store).await;
        tap.cut();
        nothing_works(&store).await;
        tap.repair();
        comes_back(&store).await;
        assert_eq!(store.load(&order.key).await.unwrap().unwrap().version, version);
        write(&store, version, &samples::solved("before", START).order).await;
        watch.changed().await;
    });
}

#[test]
fn a_server_made_read_only_can_be_read_and_is_written_again_afterwards() {
    super::run(async {
        let server = Postgres::start(&[]);
        let store = hasty(&server, "stone").await;
        let order = queued("before");
        let version = create(&store, &order).await;
        server.sql("ALTER SYSTEM SET default_transaction_read_only = on; SELECT pg_reload_conf()");
        // Another order each time: the server takes a moment to hear of it, and one that was written meanwhile
        // would from then on be a conflict, which is found by reading alone.
        let mut tries = 0;
        until("nothing can be written", async || {
            tries += 1;
            is_unavailable(&commit(&store, Version::ABSENT, &queued(&format!("later {tries}"))).await)
        })
        .await;
        assert!(is_unavailable(&store.claim_due(START, START, 1).await));
        assert_eq!(store.load(&order.key).await.unwrap().unwrap().version, version);
        server
            .sql("SET default_transaction_read_only = off; ALTER SYSTEM RESET default_transaction_read_only");
        server.sql("SELECT pg_reload_conf()");
        comes_back(&store).await;
    });
}

/// A call waits for a lock of another session, but not longer than its timeout.
#[test]
fn a_row_locked_by_another_session_holds_up_no_commit_for_ever() {
    super::run(async {
        let server = Postgres::start(&[]);
        let store = hasty(&server, "locked").await;
        let order = queued("locked");
        let version = create(&store, &order).await;
        let held = std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                server.sql("BEGIN; SELECT count(*) FROM (SELECT FROM locked.orders FOR UPDATE) AS l; SELECT pg_sleep(5); COMMIT")
            });
            let tried = tokio::task::block_in_place(|| {
                tokio::runtime::Handle::current().block_on(async {
                    until("the row is locked", async || {
                        server.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
                            == "1"
                    })
                    .await;
                    let due = store.claim_due(START, START, 10).await.unwrap();
                    assert_eq!(due.orders.len(), 0, "it is passed over");
                    commit(&store, version, &samples::solving("locked", START).order).await
                })
            });
            holder.join().unwrap();
            tried
        });
        assert!(is_unavailable(&held));
        comes_back(&store).await;
    });
}
