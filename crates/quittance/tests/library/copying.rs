//! Moving orders from one store to another: nothing is lost, nothing is written to a store that was left, and an
//! interrupted move begins again.

use crate::fixture::{Fixture, eventually};
use quittance::copy::{CopyError, CopyStep, copy, survey};
use quittance::document::DOCUMENTS_MAX;
use quittance::lifecycle::{Counters, Order, Timestamp};
use quittance::{
    Day, Goal, NodeStatus, Opened, Place, PoolDocument, PoolSpec, Quittance, SharedDocument, Spent,
    StartError, UsageRow,
};
use quittance::{NodeStats, TrustDocument, Turnstile, Which};
use quittance_ports::Trust;
use quittance_ports::conformance::samples;
use quittance_ports::{Commit, DocumentWritten, Version};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const ADDRESS: &str = "embedded:elsewhere";

async fn place() -> (TempDir, Place, Opened) {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::Embedded(dir.path().to_owned());
    let opened = place.open().await.unwrap();
    (dir, place, opened)
}

/// One order in every phase, more orders than one page, and usage.
async fn fill(opened: &Opened) -> usize {
    let more = (0..300).map(|n| samples::solving(&format!("order {n}"), samples::START));
    let all: Vec<_> = samples::every_phase().into_iter().chain(more).collect();
    for sample in &all {
        let done = opened
            .store
            .commit(Version::ABSENT, &sample.order, &sample.counters, samples::START)
            .await
            .unwrap();
        assert!(matches!(done, Commit::Done(_)));
    }
    let late = line("late");
    for line in [
        UsageRow { site: UsageRow::ALL_SITES.into(), ..late.clone() },
        UsageRow { account: "another RUB".into(), ..late.clone() },
        late,
    ] {
        opened.store.count(&line, &Counters { joined: 3, ..Counters::default() }).await.unwrap();
    }
    all.len()
}

fn line(tenant: &str) -> UsageRow {
    UsageRow {
        day: Day::of(samples::START),
        tenant: tenant.into(),
        kind: "riddle".into(),
        site: String::new(),
        account: String::new(),
    }
}

async fn put(opened: &Opened, expected: Version, order: &Arc<Order>) {
    let done = opened.store.commit(expected, order, &Counters::default(), samples::START).await.unwrap();
    assert!(matches!(done, Commit::Done(_)));
}

fn pool(name: &str, size: u32) -> SharedDocument {
    let spec = PoolSpec {
        name: name.into(),
        tenant: "default".into(),
        kind: "turnstile".into(),
        params: [("sitekey".into(), "0x4A".into())].into(),
        goal: Goal::Fixed { size },
        budget: None,
        hours: Vec::new(),
        min_life: None,
        is_on: true,
    };
    let spent = Spent::default();
    SharedDocument::Pool(PoolDocument {
        generations: vec![3, 1, 4],
        spent,
        ..PoolDocument::new(spec, Timestamp::ZERO)
    })
}

fn trust() -> SharedDocument {
    let mut trust = Trust::default();
    trust.refused(samples::START, Duration::from_secs(100));
    let site = "shop.example.com".into();
    SharedDocument::Trust(TrustDocument { tenant: "default".into(), kind: "turnstile".into(), site, trust })
}

async fn write(opened: &Opened, document: &SharedDocument) {
    let done =
        opened.membership.write_document(&document.name(), Version::ABSENT, Some(document)).await.unwrap();
    assert!(matches!(done, DocumentWritten::Done(_)), "{done:?}");
}

async fn documents(opened: &Opened) -> Vec<SharedDocument> {
    opened.membership.documents().await.unwrap().into_iter().map(|record| record.document).collect()
}

async fn usage(opened: &Opened) -> Vec<(UsageRow, Counters)> {
    opened.store.usage(Day(0), Day::of(Timestamp::MAX)).await.unwrap()
}

async fn orders(opened: &Opened) -> Vec<Arc<Order>> {
    let listed = opened.store.list(Which::ALL, None, 10_000).await.unwrap();
    listed.into_iter().map(|record| record.unwrap().order).collect()
}

#[tokio::test]
async fn everything_moves_and_the_old_store_takes_no_more() {
    let (_old, place_before, from) = place().await;
    let (_new, place_after, to) = place().await;
    let count = fill(&from).await;
    let mut view = Vec::new();
    let would = survey(&from, &mut |_| ()).await.unwrap();
    assert_eq!((would.written, would.lines), (count as u64, usage(&from).await.len()));
    assert_eq!(from.membership.sealed().await.unwrap(), None, "looking changes nothing");

    let copied = copy(&from, &to, ADDRESS, &mut |progress| view.push(progress)).await.unwrap();
    assert!(copied.is_complete(), "{copied:?}");
    assert_eq!((copied.written, copied.there), (count as u64, 0));
    assert_eq!(orders(&to).await, orders(&from).await);
    assert_eq!(usage(&to).await, usage(&from).await);
    assert_eq!(
        to.secret([1; 32]).await.unwrap(),
        from.secret([2; 32]).await.unwrap(),
        "callbacks are known there"
    );
    assert!(view.contains(&CopyStep::Comparing { orders: count as u64 }), "{view:?}");

    let note = from.membership.sealed().await.unwrap().unwrap();
    assert!(note.contains(ADDRESS), "{note}");
    let order = samples::queued("new", samples::START).order;
    let refused = from.store.commit(Version::ABSENT, &order, &Counters::default(), samples::START).await;
    assert!(refused.is_err());
    drop(from);
    let error = Quittance::builder()
        .place(place_before)
        .provider(crate::fixture::absent_provider())
        .start()
        .await
        .unwrap_err();
    assert!(matches!(&error, StartError::Moved { note } if note.contains(ADDRESS)), "{error}");
    drop(to);
    Quittance::builder().place(place_after).open().await.unwrap();
}

/// The state after a kill in the middle, or if the new store has advanced orders since.
#[tokio::test]
async fn what_is_there_already_is_left_alone_and_usage_are_added_once() {
    let (_old, _, from) = place().await;
    let (_new, _, to) = place().await;
    let count = fill(&from).await;
    let half: Vec<_> = orders(&from).await.into_iter().step_by(2).collect();
    for order in &half {
        put(&to, Version::ABSENT, order).await;
    }
    let solving = samples::solving("order 7", samples::START);
    let record = to.store.load(&solving.order.key).await.unwrap();
    let moved_on = samples::solved("order 7", samples::START).order;
    assert_eq!(moved_on.born, solving.order.born);
    let expected = record.map_or(Version::ABSENT, |record| record.version);
    put(&to, expected, &moved_on).await;

    let first = copy(&from, &to, ADDRESS, &mut |_| ()).await.unwrap();
    assert!(first.is_complete(), "{first:?}");
    assert_eq!(first.written + first.there, count as u64);
    assert!(first.there >= half.len() as u64);
    assert_eq!(
        to.store.load(&moved_on.key).await.unwrap().unwrap().order,
        moved_on,
        "it is further on there"
    );
    // As if it had been interrupted right before its end.
    let note = format!(
        "its orders are being moved to {ADDRESS}; lines of the usage that were copied: {}",
        first.lines
    );
    from.membership.seal(Some(&note)).await.unwrap();
    let again = copy(&from, &to, ADDRESS, &mut |_| ()).await.unwrap();
    assert_eq!((again.written, again.there, again.lines), (0, count as u64, 0));
    assert_eq!(usage(&to).await, usage(&from).await, "no line was added twice");
}

/// In the new store, orders may have ended and been removed. A second move would pay for them again.
#[tokio::test]
async fn what_has_moved_is_not_moved_again_and_not_to_two_places() {
    let (_old, _, from) = place().await;
    let (_new, _, to) = place().await;
    let (_third, _, third) = place().await;
    fill(&from).await;
    copy(&from, &to, ADDRESS, &mut |_| ()).await.unwrap();
    let far = Timestamp::MAX;
    let forgotten = to.store.purge(far, 10_000).await.unwrap();
    assert!(forgotten > 0);
    let left = orders(&to).await;
    let again = copy(&from, &to, ADDRESS, &mut |_| ()).await.unwrap();
    assert!(again.is_repeat && again.is_complete() && again.written == 0);
    assert_eq!(orders(&to).await, left, "what was forgotten stays forgotten");
    let error = copy(&from, &third, "embedded:a-third-place", &mut |_| ()).await.unwrap_err();
    assert!(matches!(&error, CopyError::OtherMove { note } if note.contains(ADDRESS)), "{error}");
    from.membership
        .seal(Some("its orders are being moved to embedded:other; lines of the usage that were copied: 1"))
        .await
        .unwrap();
    let error = copy(&from, &to, ADDRESS, &mut |_| ()).await.unwrap_err();
    assert!(matches!(&error, CopyError::OtherMove { .. }), "{error}");
    from.membership.seal(Some("closed for the night")).await.unwrap();
    assert!(copy(&from, &third, "embedded:a-third-place", &mut |_| ()).await.unwrap().is_complete());
}

#[tokio::test]
async fn pools_and_what_reports_have_taught_move_too_and_the_old_store_is_right() {
    let (_old, _, from) = place().await;
    let (_new, _, to) = place().await;
    for document in [pool("login", 5), pool("search", 2), trust()] {
        write(&from, &document).await;
    }
    // What a copy that was killed has left, what was tried before, and what has nothing to do with it.
    for document in [pool("search", 2), pool("login", 9), pool("other", 1)] {
        write(&to, &document).await;
    }
    assert_eq!(survey(&from, &mut |_| ()).await.unwrap().documents, 3);
    let copied = copy(&from, &to, ADDRESS, &mut |_| ()).await.unwrap();
    assert!(copied.is_complete(), "{copied:?}");
    assert_eq!(copied.documents, 3);
    assert_eq!(documents(&to).await, [pool("login", 5), pool("other", 1), pool("search", 2), trust()]);
}

#[tokio::test]
async fn a_pool_that_does_not_fit_is_named_and_comes_with_the_next_try() {
    let (_old, _, from) = place().await;
    let (_new, _, to) = place().await;
    write(&from, &pool("login", 5)).await;
    for number in 0..DOCUMENTS_MAX {
        write(&to, &pool(&format!("other-{number}"), 1)).await;
    }
    let copied = copy(&from, &to, ADDRESS, &mut |_| ()).await.unwrap();
    assert!(!copied.is_complete());
    assert_eq!((copied.documents, copied.documents_missing), (0, vec![pool("login", 5).name()]));
    assert!(to.membership.filling().await.unwrap().is_some(), "it is not over");
    let record = to.membership.documents().await.unwrap().remove(0);
    _ = to.membership.write_document(&record.name, record.version, None).await.unwrap();
    let again = copy(&from, &to, ADDRESS, &mut |_| ()).await.unwrap();
    assert!(again.is_complete() && again.documents == 1, "{again:?}");
    assert_eq!(to.membership.filling().await.unwrap(), None);
}

#[tokio::test]
async fn another_order_under_the_same_key_is_reported_and_left_alone() {
    let (_old, _, from) = place().await;
    let (_new, _, to) = place().await;
    fill(&from).await;
    let stranger = samples::queued("order 3", samples::after(1)).order;
    put(&to, Version::ABSENT, &stranger).await;
    let copied = copy(&from, &to, ADDRESS, &mut |_| ()).await.unwrap();
    assert!(!copied.is_complete());
    assert_eq!((copied.differ, copied.missing), (vec![stranger.key], vec![]));
    assert_eq!(to.store.load(&stranger.key).await.unwrap().unwrap().order, stranger);
}

/// Otherwise an order that is not copied yet could be placed, and paid for, again.
#[tokio::test]
async fn nothing_is_copied_to_where_nodes_work_already_or_to_a_store_that_was_left() {
    let (_old, _, from) = place().await;
    let (_new, _, to) = place().await;
    fill(&from).await;
    let node_status = NodeStatus {
        node: 1,
        name: "early bird".into(),
        version: "1".into(),
        format: 1,
        started: samples::START,
        at: samples::START,
        skew_ms: None,
        node_stats: NodeStats::default(),
        reach: None,
        demand: std::collections::BTreeMap::new(),
    };
    to.membership.heartbeat(&node_status).await.unwrap();
    let error = copy(&from, &to, ADDRESS, &mut |_| ()).await.unwrap_err();
    assert!(matches!(&error, CopyError::TargetInUse { nodes } if nodes == &["early bird"]), "{error}");
    assert_eq!(from.membership.sealed().await.unwrap(), None);
    to.membership.leave(1).await.unwrap();
    to.membership.seal(Some("moved to the moon")).await.unwrap();
    let error = copy(&from, &to, ADDRESS, &mut |_| ()).await.unwrap_err();
    assert!(matches!(&error, CopyError::TargetSealed { note } if note.contains("moon")), "{error}");
}

/// A node that began to work too early would pay again for the rest.
#[tokio::test]
async fn no_node_begins_to_work_on_a_store_that_is_being_filled() {
    let (_old, _, from) = place().await;
    let (_new, place_after, to) = place().await;
    fill(&from).await;
    copy(&from, &to, ADDRESS, &mut |_| ()).await.unwrap();
    assert_eq!(to.membership.filling().await.unwrap(), None, "all have come");
    // As a copy that was killed leaves it.
    let killed = "orders are being moved here, under the address elsewhere";
    to.membership.set_filling(Some(killed)).await.unwrap();
    drop(to);
    let error = loop {
        let started = Quittance::builder()
            .place(place_after.clone())
            .provider(crate::fixture::absent_provider())
            .start()
            .await;
        match started.unwrap_err() {
            // The last handle on the store goes when its tasks have gone.
            StartError::Open(_) => tokio::task::yield_now().await,
            error => break error,
        }
    };
    assert!(matches!(&error, StartError::BeingFilled { note } if note == killed), "{error}");
}

#[tokio::test]
async fn a_store_is_not_moved_to_itself_whatever_it_is_called() {
    let (_old, _, from) = place().await;
    fill(&from).await;
    let error = copy(&from, &from.clone(), "embedded:under/another/name", &mut |_| ()).await.unwrap_err();
    assert!(matches!(error, CopyError::SameStore), "{error}");
    assert_eq!(from.membership.sealed().await.unwrap(), None, "it is as it was");
    assert_eq!(from.membership.filling().await.unwrap(), None);
}

/// The key of the order with this idempotency key on this node, once it has its answer.
async fn key_of(node: &Quittance, idempotency_key: &str) -> quittance::Key {
    let order = Turnstile::new("0x4AAAAAAADnPIDROrmt1Wwj", "https://shop.example.com/");
    let ticket = node.place(order.idempotency_key(idempotency_key)).await.unwrap();
    ticket.wait().await.unwrap();
    ticket.order()
}

/// The keys of orders are hashed with a secret of the store, so that a dictionary does not reveal what was ordered. A
/// move copies the secret, also if the new store has drawn one because it was opened before.
#[tokio::test]
async fn the_keys_of_orders_follow_from_a_secret_that_lives_as_long_as_they_do() {
    let fixture = Fixture::new(quittance::ClassicDialect::TwoCaptcha).await;
    let first = fixture.polling().await;
    let key = key_of(&first, "job-1").await;
    assert_ne!(
        key,
        quittance::Key::chosen(quittance::DEFAULT_TENANT, "job-1"),
        "that one can be computed without the secret"
    );
    first.stop().await;
    drop(first);
    // The last handle on a store goes when its tasks have gone.
    let again = eventually("a restart", async || fixture.builder().start().await.ok()).await;
    assert_eq!(key_of(&again, "job-1").await, key, "the same after a restart");
    again.stop().await;
    drop(again);

    let (dir, place_after, to) = place().await;
    drop(to);
    let look = async || Quittance::builder().place(place_after.clone()).open().await.ok();
    drop(eventually("a look", look).await);
    let other = fixture.builder().place(Place::Memory).start().await.unwrap();
    assert_ne!(key_of(&other, "job-1").await, key, "another store, another key");
    other.stop().await;
    let to = eventually("the new store", async || place_after.open().await.ok()).await;
    let from = eventually("the old store", async || Place::Embedded(fixture.store()).open().await.ok()).await;
    let copied = copy(&from, &to, ADDRESS, &mut |_| ()).await.unwrap();
    assert!(copied.is_complete() && !copied.other_secret, "{copied:?}");
    drop((from, to));
    // A folder in which a node remembers the secrets of a shared store that it used before.
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("callback-secrets"), [5; 64]).unwrap();
    let moved = async || fixture.builder().embedded(dir.path()).home(home.path()).start().await.ok();
    let moved = eventually("a start on the new store", moved).await;
    assert_eq!(key_of(&moved, "job-1").await, key, "the same in the store that it moved to");
    moved.stop().await;
    assert_eq!(fixture.ledger().totals.accepted, 2, "once here, and once for the store in memory");
}
