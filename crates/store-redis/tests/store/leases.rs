//! Tests of leases that are special to this store.

use super::{FreshPrefix, run};
use quittance_ports::leases::LEASES_FORGOTTEN_AFTER;
use quittance_ports::{LeaseOutcome, LeaseTotal, Leases, Version};
use quittance_servers::shared_redis;
use std::time::Duration;

const LIFE: Duration = Duration::from_secs(30);

#[test]
fn each_step_of_a_lease_costs_one_round_trip_and_a_limit_expires_by_itself() {
    run(async {
        let place = FreshPrefix::on_one_server(4);
        let store = place.open().await;
        // The scripts are known after this.
        let _first = store.lease("first", Version::ABSENT, 1, 1, LIFE).await.unwrap();
        let LeaseTotal { version, .. } = store.leased("first", 1).await.unwrap();
        store.give_back("first", 1, version, 0).await.unwrap();
        let before = store.round_trips();
        assert_eq!(store.leased("second", 1).await.unwrap().version, Version::ABSENT);
        let leased = store.lease("second", Version::ABSENT, 1, 5, LIFE).await.unwrap();
        let LeaseOutcome::Done(version) = leased else { panic!("no other node is here") };
        store.give_back("second", 1, version, 2).await.unwrap();
        assert_eq!(store.round_trips() - before, 3);
        let left = shared_redis().command(&["PTTL", &format!("{{{}:0}}:leases:second", place.prefix)]);
        let left: u64 = left.trim().parse().unwrap();
        assert!(0 < left && u128::from(left) <= LEASES_FORGOTTEN_AFTER.as_millis(), "{left}");
    });
}

#[test]
fn a_lease_that_cannot_be_read_counts_for_nothing() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        let leased = store.lease("limit", Version::ABSENT, 1, 5, LIFE).await.unwrap();
        let LeaseOutcome::Done(version) = leased else { panic!("no other node is here") };
        let leases = format!("{{{}:0}}:leases:limit", place.prefix);
        shared_redis().command(&["HSET", &leases, "7", "garbage"]);
        assert_eq!(store.leased("limit", 2).await.unwrap(), LeaseTotal { version, by_others: 5 });
        let leased = store.lease("limit", version, 2, 1, LIFE).await.unwrap();
        assert!(matches!(leased, LeaseOutcome::Done(_)));
        assert_eq!(shared_redis().command(&["HEXISTS", &leases, "7"]).trim(), "0");
    });
}
