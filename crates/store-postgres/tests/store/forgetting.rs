//! Tests of a store that was dropped, truncated or restored: it takes no commit of a node that knows its earlier
//! state until that node has looked. Nodes also learn how long they have to put back their orders in hand.

use super::{commit, create, fresh_schema, open, run, settings};
use quittance_ports::conformance::samples::{self, START};
use quittance_ports::{Commit, MarkRequest, StoreError, StoreForgot, StoreMark, Version};
use quittance_servers::shared_postgres;
use quittance_store_postgres::PostgresStore;

async fn look(store: &PostgresStore, drawn: u8, known: Option<&StoreMark>) -> StoreMark {
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
        let request = || MarkRequest {
            drawn: [3; 16],
            known: known_mark,
            secrets: &[[7; 32]],
            drawn_at: Some(START),
            is_at_work: true,
            is_putting_back: false,
        };
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
        let schema = fresh_schema();
        let nodes = [(); 3].map(|()| open(settings(&schema)));
        let [old, late, new] = nodes;
        let (old, late, new) = (old.await, late.await, new.await);
        let known = old.mark(bring(1, None, &[[7; 32]])).await.unwrap();
        assert!(!known.recovery.is_zero(), "nothing is new before other nodes could bring an older secret");
        let known_too = late.mark(bring(2, Some(&known), &[[7; 32]])).await.unwrap();
        assert_eq!((known_too.identity, known_too.drawn_at), (known.identity, known.drawn_at));
        shared_postgres().sql(&format!("TRUNCATE {schema}.orders, {schema}.secrets"));
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
        let schema = fresh_schema();
        let store = open(settings(&schema)).await;
        let known = store.mark(bring(1, None, &[[7; 32]])).await.unwrap();
        let overwrite = "SET secret = sha256('8') WHERE name = 'callbacks'";
        shared_postgres().sql(&format!("UPDATE {schema}.secrets {overwrite}"));
        let found = store.mark(bring(2, Some(&known), &[[7; 32]])).await.unwrap();
        assert_eq!((found.secrets[0], found.drawn_at), ([7; 32], known.drawn_at));
    });
}

#[test]
fn a_node_that_begins_does_not_bring_an_old_secret_in_the_place_of_one_that_came_with_orders() {
    run(async {
        let store = open(settings(&fresh_schema())).await;
        let known = store.mark(bring(1, None, &[[7; 32]])).await.unwrap();
        store.replace_secret([8; 32]).await.unwrap();
        let begins = MarkRequest { is_at_work: false, ..bring(2, Some(&known), &[[7; 32]]) };
        assert_eq!(store.mark(begins).await.unwrap().secrets[0], [8; 32]);
    });
}
