//! Tests of notices from other nodes: they come at once, and no caller waits for ever for a lost notice.

use super::{NEVER, create, fresh_schema, open, settings, settings_at, until, write};
use quittance_lifecycle::Order;
use quittance_ports::conformance::samples::{self, START};
use quittance_ports::{Membership, Store, Verdict, Watch};
use quittance_servers::{Pooler, Postgres, Tap, shared_postgres};
use std::sync::Arc;
use std::time::Duration;

fn awaited() -> Arc<Order> {
    samples::queued("watched", START).order
}

fn solved() -> Arc<Order> {
    samples::solved("watched", START).order
}

fn is_rung(watch: &mut Watch) -> bool {
    futures_util::FutureExt::now_or_never(watch.changed()).is_some()
}

#[test]
fn a_waiter_at_another_node_is_woken_without_a_re_check() {
    super::run(async {
        let schema = fresh_schema();
        let (one, other) = (open(settings(&schema)).await, open(settings(&schema)).await);
        let mut version = create(&one, &awaited()).await;
        let mut watch = other.watch(&awaited().key).await.unwrap();
        for _ in 0..5 {
            version = write(&one, version, &solved()).await;
            watch.changed().await;
        }
    });
}

/// More changes than fit into one notice.
#[test]
fn a_crowd_of_answers_wakes_a_crowd_of_waiters() {
    super::run(async {
        let schema = fresh_schema();
        let (one, other) = (open(settings(&schema)).await, open(settings(&schema)).await);
        let orders: Vec<_> = (0..300).map(|n| samples::solved(&format!("order {n}"), START).order).collect();
        let mut watches = Vec::new();
        for order in &orders {
            watches.push(other.watch(&order.key).await.unwrap());
        }
        futures_util::future::join_all(orders.iter().map(|order| create(&one, order))).await;
        futures_util::future::join_all(watches.iter_mut().map(Watch::changed)).await;
    });
}

/// Another program writes to the database, or a notice is lost.
#[test]
fn a_change_without_a_notice_is_found_by_the_re_check_and_no_other_waiter_is_woken() {
    super::run(async {
        let schema = fresh_schema();
        let store = open(settings(&schema).with_recheck(Duration::from_millis(200))).await;
        let bystander = samples::queued("bystander", START).order;
        create(&store, &awaited()).await;
        create(&store, &bystander).await;
        let mut watch = store.watch(&awaited().key).await.unwrap();
        let mut other = store.watch(&bystander.key).await.unwrap();
        let key = awaited().key;
        shared_postgres()
            .sql(&format!("UPDATE {schema}.orders SET awaited = false WHERE key = decode('{key}', 'hex')"));
        watch.changed().await;
        watch.changed().await;
        assert!(!is_rung(&mut other), "it is still awaited");
    });
}

/// A pooler in transaction mode accepts LISTEN, but no notice ever arrives.
#[test]
fn behind_a_pooler_alone_waiters_are_woken_by_the_re_check_and_the_checkup_says_so() {
    super::run(async {
        let pooler = Pooler::start(shared_postgres());
        let schema = fresh_schema();
        let far = open(settings_at(&pooler.url(), &schema).with_recheck(NEVER)).await;
        let near = open(settings(&schema)).await;
        let version = create(&near, &awaited()).await;
        let mut watch = far.watch(&awaited().key).await.unwrap();
        write(&near, version, &solved()).await;
        watch.changed().await;
        let deaf = |findings: Vec<quittance_ports::Finding>| {
            findings.into_iter().any(|f| f.verdict == Verdict::Note && f.what.contains("store.listen_url"))
        };
        assert!(deaf(far.checkup().await.unwrap()));
        assert!(!deaf(near.checkup().await.unwrap()));
    });
}

#[test]
fn a_watch_that_began_before_the_line_was_cut_is_woken_after_it_was_fixed() {
    super::run(async {
        let server = Postgres::start(&[]);
        let tap = Tap::in_front_of(server.port());
        let schema = fresh_schema();
        let cut_off = server.url().replace(&server.port().to_string(), &tap.port().to_string());
        let settings = settings_at(&server.url(), &schema).with_listen_url(&cut_off).unwrap();
        let (far, near) = (open(settings).await, open(settings_at(&server.url(), &schema)).await);
        let version = create(&near, &awaited()).await;
        let mut watch = far.watch(&awaited().key).await.unwrap();
        tap.cut();
        until("the line is known to be cut", async || {
            far.checkup().await.unwrap().iter().any(|finding| finding.what.contains("listen_url"))
        })
        .await;
        let version = write(&near, version, &solved()).await;
        watch.changed().await;
        tap.repair();
        until("it hears again", async || {
            !far.checkup().await.unwrap().iter().any(|finding| finding.what.contains("listen_url"))
        })
        .await;
        while is_rung(&mut watch) {}
        write(&near, version, &solved()).await;
        watch.changed().await;
    });
}
