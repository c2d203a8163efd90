//! What nodes may rely on when they tell each other that they are there.

use super::AVAILABLE;
use super::samples::START;
use crate::roster::{Card, Demand, Reach, Roster, Vitals};
use crate::sheet::{
    LevelShown, PoolSheet, PoolSpec, PriceBasis, Reserved, SHEETS_MAX, Sheet, SheetFound, SheetWritten,
    Spent, TrustSheet,
};
use crate::store::Version;
use futures_util::future::join_all;
use quittance_lifecycle::{Money, Outage, Timestamp, Value};
use quittance_pool::{Goal, Hours, Trust};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// One promise of a roster that nobody else uses and nobody has used.
pub type RosterPromise = fn(Arc<dyn Roster>) -> super::Promised;

/// Makes a `#[test]` of each promise of a roster. Takes the `fn(RosterPromise)` that runs one.
#[macro_export]
macro_rules! roster_conformance {
    (@tests [$run:expr] $($promise:ident)*) => {$(
        #[test]
        fn $promise() {
            let run: fn($crate::conformance::RosterPromise) = $run;
            run(|roster| ::std::boxed::Box::pin($crate::conformance::$promise(roster)));
        }
    )*};
    ($run:expr) => {
        $crate::roster_conformance! { @tests [$run]
            a_card_is_read_back_and_replaced_by_the_next_of_its_node
            whoever_signs_out_is_gone_and_nobody_else
            the_stores_time_is_told_and_does_not_run_backwards
            a_seal_is_told_until_it_is_lifted
            that_orders_are_on_their_way_is_told_until_they_have_come
            a_sheet_is_read_back_the_same_until_it_is_taken_away
            one_writer_of_a_sheet_wins
            there_is_room_for_so_many_sheets_and_no_more
        }
    };
}

fn card(node: u64, name: &str) -> Card {
    Card {
        node,
        name: name.into(),
        version: "1.2.3".into(),
        format: 1,
        started: START,
        at: START,
        skew_ms: None,
        vitals: Vitals::default(),
        reach: None,
        demand: BTreeMap::new(),
    }
}

async fn cards(roster: &dyn Roster) -> Vec<Card> {
    roster.roll().await.expect(AVAILABLE).nodes.into_iter().map(|signed| signed.card).collect()
}

pub async fn a_card_is_read_back_and_replaced_by_the_next_of_its_node(roster: Arc<dyn Roster>) {
    assert_eq!(cards(&*roster).await, []);
    // The largest number has all its bits.
    let (mut first, second) = (card(u64::MAX, "east \u{e9}\0'\"}"), card(7, "west"));
    for card in [&first, &second] {
        roster.sign_in(card).await.expect(AVAILABLE);
    }
    assert_eq!(cards(&*roster).await, [second.clone(), first.clone()]);
    first.skew_ms = Some(-1500);
    first.reach = Some(Reach {
        address: "http://127.0.0.1/callback/".into(),
        until: START,
        outages: vec![Outage { from: Timestamp::ZERO, to: START }],
    });
    first.demand = BTreeMap::from([
        ("door".to_owned(), Demand { served: 3, missed: 1 }),
        ("w\u{e4}rm \"\0".to_owned(), Demand { served: 0, missed: u64::MAX }),
    ]);
    first.vitals = Vitals {
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
        released: Some(START),
        is_paused: true,
        pause_code: Some("ERROR_ZERO_BALANCE".into()),
        store_was_away: true,
        has_spilled: true,
    };
    roster.sign_in(&first).await.expect(AVAILABLE);
    assert_eq!(cards(&*roster).await, [second, first]);
}

pub async fn whoever_signs_out_is_gone_and_nobody_else(roster: Arc<dyn Roster>) {
    for node in [1, 2] {
        roster.sign_in(&card(node, "one of two")).await.expect(AVAILABLE);
    }
    for _twice in 0..2 {
        roster.sign_out(1).await.expect(AVAILABLE);
        assert_eq!(cards(&*roster).await, [card(2, "one of two")]);
    }
}

pub async fn the_stores_time_is_told_and_does_not_run_backwards(roster: Arc<dyn Roster>) {
    let before = roster.sign_in(&card(1, "clockwatcher")).await.expect(AVAILABLE);
    let roll = roster.roll().await.expect(AVAILABLE);
    assert!(roll.now >= before, "{:?} after {before:?}", roll.now);
    assert!(roll.nodes[0].seen >= before && roll.nodes[0].seen <= roll.now);
    assert!(roster.sign_in(&card(1, "clockwatcher")).await.expect(AVAILABLE) >= before);
}

pub async fn a_seal_is_told_until_it_is_lifted(roster: Arc<dyn Roster>) {
    assert_eq!(roster.sealed().await.expect(AVAILABLE), None);
    for note in ["moved to \u{e9}lsewhere", "and 'on'"] {
        roster.seal(Some(note)).await.expect(AVAILABLE);
        assert_eq!(roster.sealed().await.expect(AVAILABLE).as_deref(), Some(note));
    }
    roster.seal(None).await.expect(AVAILABLE);
    assert_eq!(roster.sealed().await.expect(AVAILABLE), None);
}

/// And it is not the seal.
pub async fn that_orders_are_on_their_way_is_told_until_they_have_come(roster: Arc<dyn Roster>) {
    assert_eq!(roster.filling().await.expect(AVAILABLE), None);
    for note in ["from \u{e9}lsewhere", "and 'on'"] {
        roster.set_filling(Some(note)).await.expect(AVAILABLE);
        assert_eq!(roster.filling().await.expect(AVAILABLE).as_deref(), Some(note));
        assert_eq!(roster.sealed().await.expect(AVAILABLE), None);
    }
    roster.set_filling(None).await.expect(AVAILABLE);
    assert_eq!(roster.filling().await.expect(AVAILABLE), None);
}

fn pool(name: &str) -> Sheet {
    let params = BTreeMap::from([
        ("page".to_owned(), Value::from("https://example.com/\u{e9}\0")),
        ("raw".to_owned(), Value::Bytes((0..=255).collect())),
    ]);
    Sheet::Pool(PoolSheet {
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
        spent: Spent { hour: 495_000, money: Money(1), refills: 2, unpriced: 1 },
        reserved: BTreeMap::from([(2, Reserved { hour: 495_000, price: None })]),
        price: Some(Money(2990)),
        basis: PriceBasis { digest: u64::MAX, since: START },
        currency: "EUR".into(),
        asked_at: START,
        level: Some(LevelShown {
            at: START,
            size: 5,
            why: "because".into(),
            rate_milli: 1500,
            lead: Duration::from_millis(12_345),
            fresh: 3,
            on_their_way: 2,
        }),
    })
}

fn bare_pool(name: &str) -> Sheet {
    let Sheet::Pool(mut sheet) = pool(name) else { unreachable!("it is a pool") };
    sheet.spec = PoolSpec {
        params: BTreeMap::new(),
        goal: Goal::Fixed { size: 3 },
        budget: None,
        hours: Vec::new(),
        min_life: None,
        is_on: false,
        ..sheet.spec
    };
    Sheet::Pool(PoolSheet {
        generations: Vec::new(),
        first_generation: 0,
        spent: Spent::default(),
        reserved: BTreeMap::new(),
        price: None,
        basis: PriceBasis::default(),
        currency: String::new(),
        level: None,
        ..sheet
    })
}

fn trusted() -> Sheet {
    let mut trust = Trust::default();
    trust.refused(START, Duration::from_secs(100));
    trust.approved(START, Duration::from_millis(1_234));
    let (tenant, kind, site) = ("ann".into(), "riddle".into(), "example.com".into());
    Sheet::Trust(TrustSheet { tenant, kind, site, trust })
}

async fn written(roster: &dyn Roster, name: &str, expected: Version, sheet: Option<&Sheet>) -> Version {
    match roster.write_sheet(name, expected, sheet).await.expect(AVAILABLE) {
        SheetWritten::Done(version) => version,
        lost => panic!("nobody else writes {name} here: {lost:?}"),
    }
}

pub async fn a_sheet_is_read_back_the_same_until_it_is_taken_away(roster: Arc<dyn Roster>) {
    let roster = &*roster;
    assert_eq!(roster.sheets().await.expect(AVAILABLE), []);
    let sheets = [bare_pool("bare"), pool("w\u{e4}rm \"door\""), trusted()];
    let mut expected = Vec::new();
    for sheet in sheets {
        let name = sheet.name();
        let version = written(roster, &name, Version::ABSENT, Some(&sheet)).await;
        expected.push(SheetFound { name, version, sheet });
    }
    assert_eq!(roster.sheets().await.expect(AVAILABLE), expected);
    let first = expected.remove(0);
    let again = written(roster, &first.name, first.version, Some(&pool("bare"))).await;
    assert!(again > first.version);
    let gone = written(roster, &first.name, again, None).await;
    assert_eq!(roster.sheets().await.expect(AVAILABLE), expected);
    let anew = written(roster, &first.name, Version::ABSENT, Some(&first.sheet)).await;
    assert!(anew > again && anew > gone.min(again), "no version comes back");
    let old = roster.write_sheet(&first.name, again, Some(&first.sheet)).await.expect(AVAILABLE);
    assert_eq!(old, SheetWritten::Conflict, "whoever slept through all of that loses");
}

pub async fn one_writer_of_a_sheet_wins(roster: Arc<dyn Roster>) {
    let sheet = pool("race");
    let name = sheet.name();
    let mut version = Version::ABSENT;
    for _ in 0..5 {
        let racers = (0..8).map(|_| roster.write_sheet(&name, version, Some(&sheet)));
        let ends = join_all(racers).await.into_iter().map(|end| end.expect(AVAILABLE));
        let won: Vec<Version> = ends
            .filter_map(|end| match end {
                SheetWritten::Done(version) => Some(version),
                SheetWritten::Conflict | SheetWritten::NoRoom => None,
            })
            .collect();
        assert_eq!(won.len(), 1, "{won:?}");
        version = won[0];
    }
}

pub async fn there_is_room_for_so_many_sheets_and_no_more(roster: Arc<dyn Roster>) {
    let roster = &*roster;
    let mut last = (String::new(), Version::ABSENT);
    for n in 0..SHEETS_MAX {
        let sheet = bare_pool(&format!("pool {n}"));
        last = (sheet.name(), written(roster, &sheet.name(), Version::ABSENT, Some(&sheet)).await);
    }
    let more = bare_pool("one more");
    let refused = roster.write_sheet(&more.name(), Version::ABSENT, Some(&more)).await.expect(AVAILABLE);
    assert_eq!(refused, SheetWritten::NoRoom);
    let _gone = written(roster, &last.0, last.1, None).await;
    let _there = written(roster, &more.name(), Version::ABSENT, Some(&more)).await;
    assert_eq!(roster.sheets().await.expect(AVAILABLE).len(), SHEETS_MAX);
}
