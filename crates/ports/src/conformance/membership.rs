//! What nodes may rely on when they share their heartbeats through a membership.

use super::AVAILABLE;
use super::samples::START;
use crate::document::{
    BudgetDocument, BudgetShare, DOCUMENTS_MAX, DocumentWritten, LevelView, PoolDocument, PoolSpec,
    PriceBasis, Reservation, SharedDocument, Spent, StoredDocument, TrustDocument,
};
use crate::membership::{Demand, Membership, NodeStats, NodeStatus, Reach};
use crate::store::Version;
use crate::{Goal, Hours, Trust};
use futures_util::future::join_all;
use quittance_lifecycle::{Key, Money, Outage, Timestamp, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// One promise of a membership. It needs a fresh one that only this test uses.
pub type MembershipPromise = fn(Arc<dyn Membership>) -> super::PromiseFuture;

/// Makes a `#[test]` of each promise of a membership. Takes the `fn(MembershipPromise)` that runs one.
#[macro_export]
macro_rules! membership_conformance {
    (@tests [$run:expr] $($promise:ident)*) => {$(
        #[test]
        fn $promise() {
            let run: fn($crate::conformance::MembershipPromise) = $run;
            run(|membership| ::std::boxed::Box::pin($crate::conformance::$promise(membership)));
        }
    )*};
    ($run:expr) => {
        $crate::membership_conformance! { @tests [$run]
            a_card_is_read_back_and_replaced_by_the_next_of_its_node
            a_node_that_signs_out_is_gone_and_no_other
            the_stores_time_is_returned_and_does_not_run_backwards
            a_seal_is_reported_until_it_is_lifted
            a_filling_store_says_so_until_its_orders_have_arrived
            a_document_is_read_back_the_same_until_it_is_taken_away
            one_writer_of_a_document_wins
            the_number_of_documents_is_limited
        }
    };
}

fn node_status(node: u64, name: &str) -> NodeStatus {
    NodeStatus {
        node,
        name: name.into(),
        version: "1.2.3".into(),
        format: 1,
        started: START,
        at: START,
        skew_ms: None,
        node_stats: NodeStats::default(),
        reach: None,
        demand: BTreeMap::new(),
    }
}

async fn node_statuses(membership: &dyn Membership) -> Vec<NodeStatus> {
    membership.members().await.expect(AVAILABLE).nodes.into_iter().map(|signed| signed.node_status).collect()
}

pub async fn a_card_is_read_back_and_replaced_by_the_next_of_its_node(membership: Arc<dyn Membership>) {
    assert_eq!(node_statuses(&*membership).await, []);
    // The largest number has all its bits.
    let (mut first, second) = (node_status(u64::MAX, "east \u{e9}\0'\"}"), node_status(7, "west"));
    for node_status in [&first, &second] {
        membership.heartbeat(node_status).await.expect(AVAILABLE);
    }
    assert_eq!(node_statuses(&*membership).await, [second.clone(), first.clone()]);
    first.skew_ms = Some(-1500);
    first.reach = Some(Reach {
        address: "http://127.0.0.1/callback/".into(),
        until: START,
        outages: vec![Outage { from: Timestamp::ZERO, to: START }],
        unanswered: BTreeMap::from([(Key([0xf0; 32]), Outage { from: Timestamp::ZERO, to: START })]),
    });
    first.demand = BTreeMap::from([
        ("login".to_owned(), Demand { served: 3, missed: 1 }),
        ("w\u{e4}rm \"\0".to_owned(), Demand { served: 0, missed: u64::MAX }),
    ]);
    first.node_stats = NodeStats {
        placed: 1,
        joined: 2,
        attended: 3,
        submitted: 4,
        polled: 5,
        answered: 6,
        in_hand: 7,
        store_errors: 8,
        unreadable: 9,
        panics: 10,
        is_paused: true,
        pause_code: Some("ERROR_ZERO_BALANCE".into()),
        store_was_away: true,
        has_spilled: true,
    };
    membership.heartbeat(&first).await.expect(AVAILABLE);
    assert_eq!(node_statuses(&*membership).await, [second, first]);
}

pub async fn a_node_that_signs_out_is_gone_and_no_other(membership: Arc<dyn Membership>) {
    for node in [1, 2] {
        membership.heartbeat(&node_status(node, "one of two")).await.expect(AVAILABLE);
    }
    for _twice in 0..2 {
        membership.leave(1).await.expect(AVAILABLE);
        assert_eq!(node_statuses(&*membership).await, [node_status(2, "one of two")]);
    }
}

pub async fn the_stores_time_is_returned_and_does_not_run_backwards(membership: Arc<dyn Membership>) {
    let before = membership.heartbeat(&node_status(1, "clockwatcher")).await.expect(AVAILABLE);
    let members = membership.members().await.expect(AVAILABLE);
    assert!(members.now >= before, "{:?} after {before:?}", members.now);
    assert!(members.nodes[0].seen >= before && members.nodes[0].seen <= members.now);
    assert!(membership.heartbeat(&node_status(1, "clockwatcher")).await.expect(AVAILABLE) >= before);
}

pub async fn a_seal_is_reported_until_it_is_lifted(membership: Arc<dyn Membership>) {
    assert_eq!(membership.sealed().await.expect(AVAILABLE), None);
    for note in ["moved to \u{e9}lsewhere", "and 'on'"] {
        membership.seal(Some(note)).await.expect(AVAILABLE);
        assert_eq!(membership.sealed().await.expect(AVAILABLE).as_deref(), Some(note));
    }
    membership.seal(None).await.expect(AVAILABLE);
    assert_eq!(membership.sealed().await.expect(AVAILABLE), None);
}

/// A note about orders that are on their way is kept until it is removed, and is not the seal.
pub async fn a_filling_store_says_so_until_its_orders_have_arrived(membership: Arc<dyn Membership>) {
    assert_eq!(membership.filling().await.expect(AVAILABLE), None);
    for note in ["from \u{e9}lsewhere", "and 'on'"] {
        membership.set_filling(Some(note)).await.expect(AVAILABLE);
        assert_eq!(membership.filling().await.expect(AVAILABLE).as_deref(), Some(note));
        assert_eq!(membership.sealed().await.expect(AVAILABLE), None);
    }
    membership.set_filling(None).await.expect(AVAILABLE);
    assert_eq!(membership.filling().await.expect(AVAILABLE), None);
}

fn pool(name: &str) -> SharedDocument {
    let params = BTreeMap::from([
        ("page".to_owned(), Value::from("https://example.com/\u{e9}\0")),
        ("raw".to_owned(), Value::Bytes((0..=255).collect())),
    ]);
    SharedDocument::Pool(PoolDocument {
        spec: PoolSpec {
            name: name.to_owned(),
            tenant: "O'Hara".into(),
            kind: "riddle".into(),
            params,
            goal: Goal::Served { permille: 950 },
            budget: Some(Money(2_500_000)),
            hours: vec![Hours { from: 480, to: 1200 }],
            min_life: Some(Duration::from_millis(45_500)),
            is_on: true,
        },
        generations: vec![0, 7, u64::MAX],
        first_generation: 1_700_000_000_000,
        spent: Spent {
            hour: 495_000,
            money: Money(1),
            refills: 4,
            unpriced: 3,
            expected: Money(2),
            without_price: 1,
            is_incomplete: true,
        },
        reserved: BTreeMap::from([(2, Reservation { hour: 495_000, price: None })]),
        price: Some(Money(2990)),
        basis: PriceBasis { digest: u64::MAX, since: START },
        currency: "EUR".into(),
        asked_at: START,
        level: Some(LevelView {
            at: START,
            size: 5,
            why: "because".into(),
            rate_milli: 1500,
            lead: Duration::from_millis(12_345),
            fresh: 3,
            on_their_way: 2,
        }),
        is_removed: true,
    })
}

fn bare_pool(name: &str) -> SharedDocument {
    let SharedDocument::Pool(mut document) = pool(name) else { unreachable!("it is a pool") };
    document.spec = PoolSpec {
        params: BTreeMap::new(),
        goal: Goal::Fixed { size: 3 },
        budget: None,
        hours: Vec::new(),
        min_life: None,
        is_on: false,
        ..document.spec
    };
    SharedDocument::Pool(PoolDocument {
        generations: Vec::new(),
        first_generation: 0,
        spent: Spent::default(),
        reserved: BTreeMap::new(),
        price: None,
        basis: PriceBasis::default(),
        currency: String::new(),
        level: None,
        is_removed: false,
        ..document
    })
}

fn trusted() -> SharedDocument {
    let mut trust = Trust::default();
    trust.refused(START, Duration::from_secs(100));
    trust.approved(START, Duration::from_millis(1_234));
    let (tenant, kind, site) = ("ann".into(), "riddle".into(), "example.com".into());
    SharedDocument::Trust(TrustDocument { tenant, kind, site, trust })
}

fn budget() -> SharedDocument {
    let share = BudgetShare { step: 3, leased: -2_990, charged: 1, unpriced: 1 };
    SharedDocument::Budget(BudgetDocument {
        budget: "hour/caf\u{e9}".into(),
        currency: "EUR".into(),
        begins: START,
        no_leases_until: START,
        nodes: BTreeMap::from([(u64::MAX, share)]),
        gone: share,
    })
}

async fn written(
    membership: &dyn Membership,
    name: &str,
    expected: Version,
    document: Option<&SharedDocument>,
) -> Version {
    match membership.write_document(name, expected, document).await.expect(AVAILABLE) {
        DocumentWritten::Done(version) => version,
        lost => panic!("only this test writes {name}: {lost:?}"),
    }
}

pub async fn a_document_is_read_back_the_same_until_it_is_taken_away(membership: Arc<dyn Membership>) {
    let membership = &*membership;
    assert_eq!(membership.documents().await.expect(AVAILABLE), []);
    let documents = [budget(), bare_pool("bare"), pool("w\u{e4}rm \"login\""), trusted()];
    let mut expected = Vec::new();
    for document in documents {
        let name = document.name();
        let version = written(membership, &name, Version::ABSENT, Some(&document)).await;
        expected.push(StoredDocument { name, version, document });
    }
    assert_eq!(membership.documents().await.expect(AVAILABLE), expected);
    let first = expected.remove(0);
    let again = written(membership, &first.name, first.version, Some(&pool("bare"))).await;
    assert!(again > first.version);
    let gone = written(membership, &first.name, again, None).await;
    assert_eq!(membership.documents().await.expect(AVAILABLE), expected);
    let second_time = written(membership, &first.name, Version::ABSENT, Some(&first.document)).await;
    assert!(second_time > again && second_time > gone.min(again), "no version comes back");
    let old = membership.write_document(&first.name, again, Some(&first.document)).await.expect(AVAILABLE);
    assert_eq!(old, DocumentWritten::Conflict, "a node that slept through all of that loses");
}

pub async fn one_writer_of_a_document_wins(membership: Arc<dyn Membership>) {
    let document = pool("race");
    let name = document.name();
    let mut version = Version::ABSENT;
    for _ in 0..5 {
        let racers = (0..8).map(|_| membership.write_document(&name, version, Some(&document)));
        let ends = join_all(racers).await.into_iter().map(|end| end.expect(AVAILABLE));
        let won: Vec<Version> = ends
            .filter_map(|end| match end {
                DocumentWritten::Done(version) => Some(version),
                DocumentWritten::Conflict | DocumentWritten::NoRoom => None,
            })
            .collect();
        assert_eq!(won.len(), 1, "{won:?}");
        version = won[0];
    }
}

pub async fn the_number_of_documents_is_limited(membership: Arc<dyn Membership>) {
    let membership = &*membership;
    let mut last = (String::new(), Version::ABSENT);
    for n in 0..DOCUMENTS_MAX {
        let document = bare_pool(&format!("pool {n}"));
        last =
            (document.name(), written(membership, &document.name(), Version::ABSENT, Some(&document)).await);
    }
    let more = bare_pool("one more");
    let refused =
        membership.write_document(&more.name(), Version::ABSENT, Some(&more)).await.expect(AVAILABLE);
    assert_eq!(refused, DocumentWritten::NoRoom);
    let _gone = written(membership, &last.0, last.1, None).await;
    let _there = written(membership, &more.name(), Version::ABSENT, Some(&more)).await;
    assert_eq!(membership.documents().await.expect(AVAILABLE).len(), DOCUMENTS_MAX);
}
