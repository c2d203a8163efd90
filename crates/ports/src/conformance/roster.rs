//! What nodes may rely on when they tell each other that they are there.

use super::AVAILABLE;
use super::samples::START;
use crate::roster::{Card, Roster, Vitals};
use std::sync::Arc;

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
