//! A store that was flushed or restored takes no commit of a node that knows it as it was, until that node has
//! looked; and nodes learn how long they have to put back what they had in hand.

use super::{FreshPrefix, commit, create, run};
use quittance_ports::conformance::samples::{self, START};
use quittance_ports::{MarkRequest, StoreError, StoreForgot, StoreMark, Version};
use quittance_store_redis::RedisStore;
use std::sync::Arc;

async fn look(store: &RedisStore, drawn: u8, known: Option<&StoreMark>) -> StoreMark {
    let known = known.map(|mark| (mark.identity, mark.epoch));
    let request = MarkRequest { drawn: [drawn; 16], known, secrets: &[[7; 32]], is_putting_back: false };
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
