//! A store that was dropped, truncated or restored takes no commit of a node that knows it as it was, until that node
//! has looked; and nodes learn how long they have to put back what they had in hand.

use super::{commit, create, fresh_schema, open, run, settings};
use quittance_ports::conformance::samples::{self, START};
use quittance_ports::{Commit, MarkRequest, StoreError, StoreForgot, StoreMark, Version};
use quittance_servers::shared_postgres;
use quittance_store_postgres::PostgresStore;

async fn look(store: &PostgresStore, drawn: u8, known: Option<&StoreMark>) -> StoreMark {
    let known = known.map(|mark| (mark.identity, mark.epoch));
    let request = MarkRequest { drawn: [drawn; 16], known, secrets: &[[7; 32]], is_putting_back: false };
    store.mark(request).await.unwrap()
}

fn is_forgotten(answer: &Result<Commit, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Unavailable { source, .. }) if source.is::<StoreForgot>())
}

/// Two nodes on a new store, and what they know.
async fn two(schema: &str) -> [(PostgresStore, StoreMark); 2] {
    let (one, other) = (open(settings(schema)).await, open(settings(schema)).await);
    let (known, known_too) = (look(&one, 1, None).await, look(&other, 2, None).await);
    assert_eq!(known.identity, known_too.identity);
    assert!(known.recovery.is_zero(), "a new store has forgotten nothing");
    one.trust(known.identity, known.epoch);
    other.trust(known_too.identity, known_too.epoch);
    create(&one, &samples::queued("first", START).order).await;
    [(one, known), (other, known_too)]
}

fn refuses_commits_until_each_node_has_looked(lose: &str) {
    run(async {
        let schema = fresh_schema();
        let [(one, known), (other, known_too)] = two(&schema).await;
        shared_postgres().sql(&lose.replace("{schema}", &schema));
        let order = samples::queued("order", START).order;
        assert!(commit(&one, Version::ABSENT, &order).await.is_err(), "it is not the store that it knows");
        let record = look(&one, 3, Some(&known)).await;
        assert_ne!(record.identity, known.identity);
        assert!(!record.recovery.is_zero());
        one.trust(record.identity, record.epoch);
        create(&one, &order).await;
        let late = commit(&other, Version::ABSENT, &order).await;
        assert!(is_forgotten(&late), "the other has not looked: {late:?}");
        let also_read = look(&other, 4, Some(&known_too)).await;
        assert_eq!(also_read.identity, record.identity, "one identity for all");
        assert!(!also_read.recovery.is_zero() && also_read.recovery <= record.recovery, "and one recovery");
        assert_eq!(also_read.secrets, [[7; 32]]);
        other.trust(also_read.identity, also_read.epoch);
        create(&other, &samples::queued("another", START).order).await;
        let latest = look(&one, 5, Some(&record)).await;
        assert_eq!(latest.identity, record.identity, "nothing was lost since");
    });
}

#[test]
fn a_schema_that_was_dropped_takes_no_commit_until_the_node_has_looked() {
    refuses_commits_until_each_node_has_looked("DROP SCHEMA {schema} CASCADE");
}

#[test]
fn one_table_that_was_dropped_stops_the_store_until_a_person_drops_the_schema() {
    run(async {
        let schema = fresh_schema();
        let [(one, known), _] = two(&schema).await;
        shared_postgres().sql(&format!("DROP TABLE {schema}.orders"));
        let known_mark = Some((known.identity, known.epoch));
        let request =
            || MarkRequest { drawn: [3; 16], known: known_mark, secrets: &[[7; 32]], is_putting_back: false };
        for _ in 0..2 {
            assert!(one.mark(request()).await.is_err(), "what is left may be worth something");
            assert!(commit(&one, Version::ABSENT, &samples::queued("order", START).order).await.is_err());
        }
        shared_postgres().sql(&format!("DROP SCHEMA {schema} CASCADE"));
        let record = look(&one, 4, Some(&known)).await;
        assert!(record.identity != known.identity && !record.recovery.is_zero(), "it has forgotten");
    });
}

#[test]
fn orders_that_were_truncated_take_no_commit_until_the_node_has_looked() {
    refuses_commits_until_each_node_has_looked("TRUNCATE {schema}.orders");
}

#[test]
fn a_store_that_was_emptied_takes_no_commit_until_the_node_has_looked() {
    refuses_commits_until_each_node_has_looked("TRUNCATE {schema}.orders, {schema}.secrets");
}

#[test]
fn a_store_that_was_restored_takes_no_commit_until_the_node_has_looked() {
    let back = "UPDATE {schema}.secrets SET secret = int8send(0) WHERE name = 'epoch'";
    refuses_commits_until_each_node_has_looked(back);
}

#[test]
fn tables_that_were_rewritten_have_forgotten_nothing() {
    run(async {
        let schema = fresh_schema();
        let [(one, known), _] = two(&schema).await;
        shared_postgres().sql(&format!("VACUUM FULL {schema}.orders"));
        let order = samples::queued("order", START).order;
        assert!(is_forgotten(&commit(&one, Version::ABSENT, &order).await), "it has to look first");
        let record = look(&one, 3, Some(&known)).await;
        assert_eq!(record.identity, known.identity);
        assert!(record.recovery.is_zero());
        one.trust(record.identity, record.epoch);
        create(&one, &order).await;
    });
}
