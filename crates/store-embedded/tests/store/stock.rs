//! Tests of taking from a stock, and of documents: durable when the call returns, one disk wait for many calls, and
//! still there after reopening.

use super::{NO_CACHE, create, now, write};
use futures_util::future::{join, join_all};
use quittance_lifecycle::{Counters, Event, Key, Order, Timestamp};
use quittance_ports::conformance::samples::{self, START, after};
use quittance_ports::{
    Commit, Day, DocumentWritten, Membership, PoolDocument, PoolSpec, SharedDocument, Store, StoreError,
    Version, Versioned,
};
use quittance_store_embedded::{DATABASE, EmbeddedStore};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const HERE: &str = "https://example.com/here";

fn open(dir: &Path) -> EmbeddedStore {
    EmbeddedStore::open_with(dir, &NO_CACHE).unwrap()
}

fn taker(n: u64) -> Key {
    let mut key = [9; 32];
    key[..8].copy_from_slice(&n.to_be_bytes());
    Key(key)
}

fn stock(store: &EmbeddedStore, count: u64) -> Vec<Key> {
    let stocked = (0..count).map(|n| samples::stocked(&format!("slot {n}"), HERE, after(100 + n)).order);
    stocked
        .map(|order| {
            create(store, &order);
            order.key
        })
        .collect()
}

async fn take_by(store: &EmbeddedStore, by: Key) -> Result<Option<Versioned>, StoreError> {
    let counters = Counters { from_stock: 1, ..Counters::default() };
    store.take(&samples::target(HERE), START, &by, START, &counters).await
}

fn take(store: &EmbeddedStore, n: u64) -> Option<Versioned> {
    now(take_by(store, taker(n))).unwrap()
}

fn counted(store: &EmbeddedStore) -> u64 {
    let usage = now(store.usage(Day(0), Day(u64::MAX))).unwrap();
    usage.iter().map(|(_, counters)| counters.from_stock).sum()
}

#[test]
fn takers_that_come_together_share_a_transaction_and_each_gets_another_answer() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let keys = stock(&store, 200);
    let before = store.transactions();
    // Some of them twice, because they did not hear the first time.
    let takers = (0..200).chain(0..50).map(|n| take_by(&store, taker(n)));
    let taken: Vec<Versioned> =
        now(join_all(takers)).into_iter().map(|taken| taken.unwrap().unwrap()).collect();
    let spent = store.transactions() - before;
    assert!(spent <= 100, "250 takes took {spent} transactions");
    assert_eq!(taken[..50], taken[200..], "a repeated take gives the same");
    let in_turn: Vec<Key> = taken[..200].iter().map(|record| record.order.key).collect();
    assert_eq!(in_turn, keys, "soonest to expire first");
    assert_eq!(counted(&store), 200);
}

/// A take sees what an earlier commit of its transaction added to a stock, and not what it removed.
#[test]
fn takes_and_commits_that_come_together_see_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    for round in 0..40_u64 {
        let name = |n: u64| format!("round {round}, order {n}");
        let stocked = |n: u64| samples::stocked(&name(n), HERE, after(100 + n)).order;
        let leaving: Vec<_> = (0..8).map(stocked).collect();
        let coming: Vec<_> = (8..16).map(stocked).collect();
        let versions: Vec<_> = leaving.iter().map(|order| create(&store, order)).collect();
        let claim = |order: &Arc<Order>| {
            let event = Event::Claimed { by: order.key, min_life: Duration::ZERO };
            Arc::new(samples::next(order, event, START))
        };
        let claimed: Vec<_> = leaving.iter().map(claim).collect();
        let nothing = Counters::default();
        let claims = versions
            .iter()
            .zip(&claimed)
            .map(|(version, next)| store.commit(*version, next, &nothing, START));
        let stocking = coming.iter().map(|order| store.commit(Version::ABSENT, order, &nothing, START));
        let takes = (0..24).map(|n| take_by(&store, taker(round * 100 + n)));
        let ((claims, stocked), taken) =
            now(join(join(join_all(claims), join_all(stocking)), join_all(takes)));
        assert!(stocked.into_iter().all(|done| matches!(done, Ok(Commit::Done(_)))));
        let taken: Vec<Key> =
            taken.into_iter().filter_map(|taken| taken.unwrap().map(|record| record.order.key)).collect();
        let distinct: BTreeSet<Key> = taken.iter().copied().collect();
        assert_eq!(distinct.len(), taken.len(), "none went to two");
        for (claim, order) in claims.into_iter().zip(&claimed) {
            let is_claimants = matches!(claim, Ok(Commit::Done(_)));
            assert_ne!(
                is_claimants,
                distinct.contains(&order.key),
                "the claimer has it or a taker, and never both"
            );
        }
        // What came too late for those takers is for the next.
        let mut left = 0;
        while take(&store, round * 100 + 50 + left).is_some() {
            left += 1;
        }
        assert_eq!(now(store.list_stock(&samples::target(HERE), START, 99)).unwrap(), []);
    }
}

#[test]
fn a_take_of_nothing_or_of_the_same_costs_no_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    stock(&store, 1);
    let own = take(&store, 1);
    let before = store.transactions();
    for n in 2..50 {
        assert_eq!(take(&store, n), None);
        assert_eq!(take(&store, 1), own);
    }
    assert_eq!(store.transactions(), before);
}

#[test]
fn a_taken_answer_stays_with_its_claimant_after_a_reopen_and_later_with_none() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let keys = stock(&store, 3);
    let (first, second) = (take(&store, 1).unwrap(), take(&store, 2).unwrap());
    let returned = samples::next(&second.order, Event::Returned { by: taker(2) }, START);
    write(&store, second.version, &Arc::new(returned));
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.unreadable(), []);
    assert_eq!(take(&store, 1), Some(first), "it is durable");
    assert_eq!(now(store.list_stock(&samples::target(HERE), START, 9)).unwrap(), keys[1..]);
    assert_eq!(take(&store, 3).unwrap().order.key, keys[1], "what was given back goes to the next");
    assert_eq!(take(&store, 2).unwrap().order.key, keys[2]);
    assert_eq!(counted(&store), 4);
    assert_eq!(now(store.purge(Timestamp::MAX, 99)).unwrap(), 0, "no caller has come for them yet");
    for n in 1..=3 {
        let taken = take(&store, n).unwrap();
        let claimed = Event::Claimed { by: taker(n), min_life: Duration::ZERO };
        write(&store, taken.version, &Arc::new(samples::next(&taken.order, claimed, START)));
    }
    assert_eq!(now(store.purge(Timestamp::MAX, 99)).unwrap(), 3);
    assert_eq!(take(&store, 1), None, "what is forgotten has no claimant");
}

#[test]
fn an_unreadable_answer_in_the_stock_is_passed_over_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let keys = stock(&store, 3);
    take(&store, 1).unwrap();
    // Behind its back: so that the indices still believe in them.
    let conn = Connection::open(dir.path().join(DATABASE)).unwrap();
    conn.execute_batch("UPDATE order_records SET record = 'garbage' WHERE id < 3").unwrap();
    assert_eq!(
        take(&store, 1).unwrap().order.key,
        keys[2],
        "nor is a taker left without because its answer is lost"
    );
    assert_eq!(take(&store, 2), None);
    let reported: BTreeSet<Key> = store.unreadable().into_iter().map(|unreadable| unreadable.key).collect();
    assert_eq!(reported, BTreeSet::from([keys[0], keys[1]]));
}

#[test]
fn a_rotten_name_of_a_taker_is_noticed() {
    for rot in ["taker = randomblob(32)", "taker = NULL", "target = randomblob(32)", "target = NULL"] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        let keys = stock(&store, 1);
        take(&store, 1).unwrap();
        drop(store);
        let conn = Connection::open(dir.path().join(DATABASE)).unwrap();
        conn.execute_batch(&format!("UPDATE order_records SET {rot}")).unwrap();
        drop(conn);
        let store = open(dir.path());
        assert_eq!(store.unreadable().iter().map(|record| record.key).collect::<Vec<_>>(), keys, "{rot}");
    }
}

fn pool(name: &str) -> SharedDocument {
    let spec = PoolSpec {
        name: name.to_owned(),
        tenant: "ann".into(),
        kind: "riddle".into(),
        params: BTreeMap::new(),
        goal: quittance_ports::Goal::Fixed { size: 3 },
        budget: None,
        hours: Vec::new(),
        min_life: None,
        is_on: true,
    };
    SharedDocument::Pool(PoolDocument { generations: vec![1, 2], ..PoolDocument::new(spec, Timestamp::ZERO) })
}

fn write_document(
    store: &EmbeddedStore,
    expected: Version,
    document: Option<&SharedDocument>,
    name: &str,
) -> DocumentWritten {
    now(store.write_document(&SharedDocument::pool_name(name), expected, document)).unwrap()
}

#[test]
fn documents_are_there_again_and_no_version_of_them_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let DocumentWritten::Done(survivors) =
        write_document(&store, Version::ABSENT, Some(&pool("kept")), "kept")
    else {
        panic!("only this test writes here")
    };
    let DocumentWritten::Done(made) = write_document(&store, Version::ABSENT, Some(&pool("gone")), "gone")
    else {
        panic!("only this test writes here")
    };
    let DocumentWritten::Done(gone) = write_document(&store, made, None, "gone") else {
        panic!("it was there")
    };
    drop(store);
    let store = open(dir.path());
    let documents = now(store.documents()).unwrap();
    assert_eq!(documents.len(), 1);
    assert_eq!((documents[0].version, &documents[0].document), (survivors, &pool("kept")));
    let DocumentWritten::Done(again) = write_document(&store, Version::ABSENT, Some(&pool("gone")), "gone")
    else {
        panic!("it was taken away")
    };
    assert!(again > gone && again > made && again > survivors);
    assert_eq!(write_document(&store, made, None, "gone"), DocumentWritten::Conflict);

    now(store.seal(Some("moved"))).unwrap();
    assert!(now(store.write_document("pool/new", Version::ABSENT, Some(&pool("new")))).is_err());
    assert!(now(take_by(&store, taker(1))).is_err(), "and a sealed store gives nothing away");
    assert_eq!(now(store.documents()).unwrap().len(), 2, "it can be read all the while");
}

#[test]
fn a_damaged_document_is_left_out_and_only_a_writer_with_its_version_replaces_it() {
    for rot in [
        "document = replace(document, '\"size\":3', '\"size\":9')",
        "version = version + 1",
        "document = 'x'",
        "version = 'x'",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        for name in ["good", "rotten"] {
            assert!(matches!(
                write_document(&store, Version::ABSENT, Some(&pool(name)), name),
                DocumentWritten::Done(_)
            ));
        }
        drop(store);
        let conn = Connection::open(dir.path().join(DATABASE)).unwrap();
        conn.execute_batch(&format!("UPDATE documents SET {rot} WHERE name = 'pool/rotten'")).unwrap();
        drop(conn);
        let store = open(dir.path());
        let names: Vec<String> =
            now(store.documents()).unwrap().into_iter().map(|record| record.name).collect();
        assert_eq!(names, ["pool/good"], "{rot}");
        let written = write_document(&store, Version::ABSENT, Some(&pool("rotten")), "rotten");
        assert_eq!(written, DocumentWritten::Conflict, "{rot}");
    }
}
