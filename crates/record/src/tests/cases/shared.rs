//! Cases of what nodes share: their statuses, the pools, and the reports about sites.

use super::{SECRET, at, secret};
use crate::tests::AnyRecord;
use quittance_lifecycle::{Money, Value};
use quittance_ports::{AnswerReport, Goal, Hours, Trust};
use quittance_ports::{
    Demand, LevelView, NodeStats, NodeStatus, PoolDocument, PoolSpec, PriceBasis, SharedDocument, Spent,
    TrustDocument,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// The status of a node that has just started.
pub(super) fn fresh_node_status() -> NodeStatus {
    NodeStatus {
        node: u64::MAX,
        name: "east-1".into(),
        version: "0.1.0".into(),
        format: 1,
        started: at(0),
        at: at(7),
        skew_ms: None,
        node_stats: NodeStats::default(),
        reach: None,
        demand: BTreeMap::new(),
    }
}

pub(super) fn node_statuses() -> Vec<(&'static str, AnyRecord)> {
    let node_stats = NodeStats {
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
        pause_code: None,
        store_was_away: true,
        has_spilled: true,
    };
    let fresh = fresh_node_status();
    let node_status = NodeStatus { skew_ms: Some(-1500), node_stats, ..fresh.clone() };
    let demand = BTreeMap::from([
        ("door".to_owned(), Demand { served: 95, missed: 5 }),
        ("w\u{e4}rm \"\0/".to_owned(), Demand { served: 0, missed: u64::MAX }),
        ("never asked for".to_owned(), Demand::default()),
    ]);
    let keeping = NodeStatus { demand, ..fresh.clone() };
    let pause_code = Some("ERROR_\u{17b}ERO \"BALANCE\"".to_owned());
    let paused = NodeStatus {
        node_stats: NodeStats { is_paused: true, pause_code, ..NodeStats::default() },
        ..fresh.clone()
    };
    [
        ("node-status", node_status),
        ("node-status-fresh", fresh),
        ("node-status-with-pools", keeping),
        ("node-status-paused", paused),
    ]
    .map(|(name, node_status)| (name, AnyRecord::NodeStatus(Box::new(node_status))))
    .into()
}

pub(super) fn pool() -> PoolDocument {
    PoolDocument {
        spec: PoolSpec {
            name: "w\u{e4}rm \"door\"".into(),
            tenant: "archive".into(),
            kind: "recaptcha_v2".into(),
            params: BTreeMap::from([
                ("googlekey".into(), Value::Text(secret("6Le"))),
                ("raw".into(), Value::Bytes(SECRET.into())),
            ]),
            goal: Goal::Served { permille: 950 },
            budget: Some(Money(2_500_000)),
            hours: vec![Hours { from: 480, to: 720 }, Hours { from: 1320, to: 60 }],
            min_life: Some(Duration::from_millis(45_500)),
            is_on: true,
        },
        generations: vec![0, 7, u64::MAX],
        first_generation: 0,
        reserved: BTreeMap::new(),
        basis: PriceBasis::default(),
        currency: String::new(),
        spent: Spent { hour: 472_222, money: Money(8970), refills: 3, ..Spent::default() },
        price: Some(Money(2990)),
        asked_at: at(8),
        level: Some(LevelView {
            at: at(9),
            size: 5,
            why: "the smallest that misses at most one in twenty".into(),
            rate_milli: 100,
            lead: Duration::from_millis(22_500),
            fresh: 3,
            on_their_way: 2,
        }),
        is_removed: false,
    }
}

pub(super) fn documents() -> Vec<(&'static str, AnyRecord)> {
    let bare = PoolDocument {
        spec: PoolSpec {
            params: BTreeMap::new(),
            goal: Goal::Fixed { size: 3 },
            budget: None,
            hours: Vec::new(),
            min_life: None,
            is_on: false,
            ..pool().spec
        },
        generations: Vec::new(),
        first_generation: 0,
        reserved: BTreeMap::new(),
        basis: PriceBasis::default(),
        currency: String::new(),
        spent: Spent::default(),
        price: None,
        asked_at: at(1),
        level: None,
        is_removed: false,
    };
    let heard = |second, age| AnswerReport { at: at(second), age: Duration::from_millis(age) };
    let trust = TrustDocument {
        tenant: "archive".into(),
        kind: "recaptcha_v2".into(),
        site: "example.com".into(),
        trust: Trust {
            refusals: vec![heard(1, 80_000), heard(2, 91_234)],
            approvals: vec![heard(3, 70_000)],
        },
    };
    let silent = TrustDocument { trust: Trust::default(), site: String::new(), ..trust.clone() };
    [
        ("document-pool", SharedDocument::Pool(pool())),
        ("document-pool-removed", SharedDocument::Pool(PoolDocument { is_removed: true, ..pool() })),
        ("document-pool-bare", SharedDocument::Pool(bare)),
        ("document-trust", SharedDocument::Trust(trust)),
        ("document-trust-nothing-heard", SharedDocument::Trust(silent)),
    ]
    .map(|(name, document)| (name, AnyRecord::SharedDocument(Box::new(document))))
    .into()
}
