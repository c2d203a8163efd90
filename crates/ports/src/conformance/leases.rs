//! What nodes may rely on when they lease parts of a limit.

use super::AVAILABLE;
use crate::leases::{LeaseOutcome, LeaseTotal, Leases};
use crate::store::Version;
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;

/// One promise of leases. It needs leases of which none has been taken.
pub type LeasesPromise = fn(Arc<dyn Leases>) -> super::PromiseFuture;

/// Makes a `#[test]` of each promise of leases. Takes the `fn(LeasesPromise)` that runs one.
#[macro_export]
macro_rules! leases_conformance {
    (@tests [$run:expr] $($promise:ident)*) => {$(
        #[test]
        fn $promise() {
            let run: fn($crate::conformance::LeasesPromise) = $run;
            run(|leases| ::std::boxed::Box::pin($crate::conformance::$promise(leases)));
        }
    )*};
    ($run:expr) => {
        $crate::leases_conformance! { @tests [$run]
            what_a_node_has_leased_is_known_to_the_others
            of_nodes_that_lease_at_once_under_one_version_one_does
            a_part_that_is_given_back_changes_no_version_and_no_later_lease
            a_lease_ends_by_itself_and_its_version_does_not_come_back
        }
    };
}

/// A life longer than any test takes.
const LONG: Duration = Duration::from_secs(100);
const SHORT: Duration = Duration::from_millis(300);
/// The name of a limit. It may contain all that the name of a tenant may, and more.
const LIMIT: &str = "open/\u{e9} '}{\":";

async fn leased(leases: &dyn Leases, node: u64) -> LeaseTotal {
    leases.leased(LIMIT, node).await.expect(AVAILABLE)
}

async fn lease(leases: &dyn Leases, expected: Version, node: u64, amount: u64, life: Duration) -> Version {
    match leases.lease(LIMIT, expected, node, amount, life).await.expect(AVAILABLE) {
        LeaseOutcome::Done(version) => version,
        LeaseOutcome::Conflict(leased) => panic!("no other node was first: {leased:?}"),
    }
}

pub async fn what_a_node_has_leased_is_known_to_the_others(leases: Arc<dyn Leases>) {
    let nothing = LeaseTotal { version: Version::ABSENT, by_others: 0 };
    assert_eq!(leased(&*leases, 1).await, nothing);
    let first = lease(&*leases, Version::ABSENT, 1, 5, LONG).await;
    // The largest number has all its bits.
    let second = lease(&*leases, first, u64::MAX, 7, LONG).await;
    assert!(second > first && first > Version::ABSENT);
    for (node, by_others) in [(1, 7), (u64::MAX, 5), (3, 12)] {
        assert_eq!(leased(&*leases, node).await, LeaseTotal { version: second, by_others });
    }
    // A node has one lease of a limit.
    let third = lease(&*leases, second, 1, 2, LONG).await;
    assert_eq!(leased(&*leases, 3).await, LeaseTotal { version: third, by_others: 9 });
    assert_eq!(leases.leased("another", 3).await.expect(AVAILABLE), nothing);
}

pub async fn of_nodes_that_lease_at_once_under_one_version_one_does(leases: Arc<dyn Leases>) {
    let mut version = Version::ABSENT;
    for _ in 0..5 {
        let all = (1..=8).map(|node| leases.lease(LIMIT, version, node, node, LONG));
        let outcomes: Vec<LeaseOutcome> =
            join_all(all).await.into_iter().map(|outcome| outcome.expect(AVAILABLE)).collect();
        let done: Vec<Version> = outcomes
            .iter()
            .filter_map(|outcome| match outcome {
                LeaseOutcome::Done(version) => Some(*version),
                LeaseOutcome::Conflict(_) => None,
            })
            .collect();
        assert_eq!(done.len(), 1, "{outcomes:?}");
        version = done[0];
        for (node, outcome) in (1..).zip(outcomes) {
            if let LeaseOutcome::Conflict(found) = outcome {
                assert_eq!(found, leased(&*leases, node).await);
                assert_eq!(found.version, version);
            }
        }
    }
}

pub async fn a_part_that_is_given_back_changes_no_version_and_no_later_lease(leases: Arc<dyn Leases>) {
    let first = lease(&*leases, Version::ABSENT, 1, 9, LONG).await;
    for (amount, stays) in [(6, 6), (8, 6), (4, 4)] {
        leases.give_back(LIMIT, 1, first, amount).await.expect(AVAILABLE);
        assert_eq!(leased(&*leases, 2).await, LeaseTotal { version: first, by_others: stays });
    }
    let second = lease(&*leases, first, 1, 10, LONG).await;
    leases.give_back(LIMIT, 1, first, 0).await.expect(AVAILABLE);
    leases.give_back(LIMIT, 3, second, 0).await.expect(AVAILABLE);
    leases.give_back("another", 1, second, 0).await.expect(AVAILABLE);
    assert_eq!(leased(&*leases, 2).await, LeaseTotal { version: second, by_others: 10 });
    leases.give_back(LIMIT, 1, second, 0).await.expect(AVAILABLE);
    assert_eq!(leased(&*leases, 2).await, LeaseTotal { version: second, by_others: 0 });
}

pub async fn a_lease_ends_by_itself_and_its_version_does_not_come_back(leases: Arc<dyn Leases>) {
    let first = lease(&*leases, Version::ABSENT, 1, 5, SHORT).await;
    let second = lease(&*leases, first, 2, 3, LONG).await;
    while leased(&*leases, 3).await.by_others != 3 {}
    assert_eq!(leased(&*leases, 3).await.version, second);
    let third = lease(&*leases, second, 2, 4, LONG).await;
    assert!(third > second);
    let late = leases.lease(LIMIT, Version::ABSENT, 1, 5, LONG).await.expect(AVAILABLE);
    assert_eq!(late, LeaseOutcome::Conflict(LeaseTotal { version: third, by_others: 4 }));
}
