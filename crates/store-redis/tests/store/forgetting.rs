//! Tests of a store that was flushed or restored: it takes no commit of a node that knows its earlier state until
//! that node has looked. Nodes also learn how long they have to put back their orders in hand.

use super::{FreshPrefix, commit, create, run};
use quittance_ports::conformance::samples::{self, START};
use quittance_ports::{MarkRequest, StoreError, StoreForgot, StoreMark, Version};
use quittance_store_redis::RedisStore;
use std::sync::Arc;

async fn look(store: &RedisStore, drawn: u8, known: Option<&StoreMark>) -> StoreMark {
    let known = known.map(|mark| (mark.identity, mark.epoch));
    let request = MarkRequest {
        drawn: [drawn; 16],
        known,
        secrets: &[[7; 32]],
        drawn_at: Some(START),
        is_at_work: true,
        is_putting_back: false,
    };
    store.mark(request).await.unwrap()
}

fn is_forgotten(answer: &Result<quittance_ports::Commit, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Unavailable { source, .. }) if source.is::<StoreForgot>())
}

fn refuses_commits_until_each_node_has_looked(place: &FreshPrefix, lose: impl FnOnce(&FreshPrefix)) {
    run(async {
        let (one, other) = (place.open().await, place.open().await);
        let orders: Vec<_> = (0..40).map(|n| samples::queued(&format!("order {n}"), START).order).collect();
        let known = look(&one, 1, None).await;
        assert!(known.recovery.is_zero(), "a new store has forgotten nothing");
        let known_too = look(&other, 2, None).await;
        assert_eq!(known.identity, known_too.identity);
        one.trust(known.identity, known.epoch);
        other.trust(known_too.identity, known_too.epoch);
        for order in &orders[..20] {
            create(&one, order).await;
        }
        lose(place);
        let answers = async |store: &RedisStore| {
            let mut forgotten = 0;
            for order in &orders[20..] {
                forgotten += usize::from(is_forgotten(&commit(store, Version::ABSENT, order).await));
            }
            forgotten
        };
        assert!(answers(&one).await > 0, "it is not the store that they know");

        let record = look(&one, 3, Some(&known)).await;
        assert_ne!(record.identity, known.identity);
        assert!(!record.recovery.is_zero() && record.epoch > 0);
        one.trust(record.identity, record.epoch);
        assert_eq!(answers(&one).await, 0);
        assert_eq!(answers(&other).await, 20, "the other has not looked");
        let also_read = look(&other, 4, Some(&known_too)).await;
        assert_eq!(also_read.identity, record.identity, "one identity for all");
        assert!(!also_read.recovery.is_zero() && also_read.recovery <= record.recovery, "and one recovery");
        assert_eq!(also_read.secrets, [[7; 32]]);
        other.trust(also_read.identity, also_read.epoch);
        assert_eq!(answers(&other).await, 0);
        let latest = look(&one, 5, Some(&record)).await;
        assert_eq!(latest.identity, record.identity, "nothing was lost since");
    });
}

fn identity(place: &FreshPrefix, partition: u16) -> String {
    format!("{{{}:{partition}}}:identity", place.prefix)
}

#[test]
fn a_store_that_was_flushed_takes_no_commit_until_the_node_has_looked() {
    refuses_commits_until_each_node_has_looked(&FreshPrefix::on_one_server(1), |place| {
        place.servers[0].command(&["del", &identity(place, 0)]);
    });
}

#[test]
fn a_store_that_was_restored_takes_no_commit_until_the_node_has_looked() {
    refuses_commits_until_each_node_has_looked(&FreshPrefix::on_one_server(1), |place| {
        place.servers[0].command(&["hset", &identity(place, 0), "epoch", "0"]);
    });
}

#[test]
fn a_partition_that_was_lost_is_noticed() {
    refuses_commits_until_each_node_has_looked(&FreshPrefix::on_one_server(4), |place| {
        place.servers[0].command(&["del", &identity(place, 3)]);
    });
}

#[test]
fn a_node_that_knows_nothing_writes_as_before() {
    run(async {
        let store = FreshPrefix::on_one_server(1).open().await;
        create(&store, &Arc::clone(&samples::queued("order", START).order)).await;
    });
}

/// The request of a node: a secret, when it was drawn, and whether the node works with it.
fn bring(drawn: u8, known: Option<&StoreMark>, secret: &'static [[u8; 32]]) -> MarkRequest<'static> {
    let known_mark = known.map(|mark| (mark.identity, mark.epoch));
    let drawn_at = known.map(|mark| mark.drawn_at);
    let is_at_work = known.is_some();
    MarkRequest {
        drawn: [drawn; 16],
        known: known_mark,
        secrets: secret,
        drawn_at,
        is_at_work,
        is_putting_back: false,
    }
}

#[test]
fn the_secret_of_a_node_that_worked_before_the_loss_takes_the_place_of_one_that_was_drawn_after_it() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let (old, late, new) = (place.open().await, place.open().await, place.open().await);
        let known = old.mark(bring(1, None, &[[7; 32]])).await.unwrap();
        assert!(!known.recovery.is_zero(), "nothing is new before other nodes could bring an older secret");
        let known_too = late.mark(bring(2, Some(&known), &[[7; 32]])).await.unwrap();
        assert_eq!((known_too.identity, known_too.drawn_at), (known.identity, known.drawn_at));
        for key in ["identity", "secret", "secrets"] {
            place.servers[0].command(&["del", &format!("{{{}:0}}:{key}", place.prefix)]);
        }
        let drawn = new.mark(bring(3, None, &[[9; 32]])).await.unwrap();
        assert_eq!(drawn.secrets, [[9; 32]]);
        assert!(!drawn.recovery.is_zero(), "and it takes no order meanwhile");
        new.trust(drawn.identity, drawn.epoch);

        let agreed = old.mark(bring(4, Some(&known), &[[7; 32]])).await.unwrap();
        assert_eq!(agreed.secrets, [[7; 32], [9; 32]], "the older one signs, the other proves");
        assert!(!agreed.recovery.is_zero() && agreed.drawn_at == known.drawn_at);
        let order = samples::queued("order", START).order;
        assert!(is_forgotten(&commit(&new, Version::ABSENT, &order).await), "it has to look first");
        for (store, knows, secrets) in [(&new, &drawn, &[[9; 32]]), (&late, &known_too, &[[7; 32]])] {
            let found = store.mark(bring(5, Some(knows), secrets)).await.unwrap();
            assert_eq!((found.identity, found.secrets), (agreed.identity, agreed.secrets.clone()));
        }
    });
}

#[test]
fn a_secret_that_was_overwritten_gives_way_to_that_of_the_nodes_at_work() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        let known = store.mark(bring(1, None, &[[7; 32]])).await.unwrap();
        let overwritten = "8".repeat(32);
        place.servers[0].command(&["set", &format!("{{{}:0}}:secret", place.prefix), &overwritten]);
        let found = store.mark(bring(2, Some(&known), &[[7; 32]])).await.unwrap();
        assert_eq!((found.secrets[0], found.drawn_at), ([7; 32], known.drawn_at));
    });
}

#[test]
fn a_node_that_begins_does_not_bring_an_old_secret_in_the_place_of_one_that_came_with_orders() {
    run(async {
        let store = FreshPrefix::on_one_server(1).open().await;
        let known = store.mark(bring(1, None, &[[7; 32]])).await.unwrap();
        store.replace_secret([8; 32]).await.unwrap();
        let begins = MarkRequest { is_at_work: false, ..bring(2, Some(&known), &[[7; 32]]) };
        assert_eq!(store.mark(begins).await.unwrap().secrets[0], [8; 32]);
    });
}
