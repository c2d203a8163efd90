//! Runs every promise of a store and of a membership, each on a fresh store.

use super::settled::SettledNode;
use super::{FreshPrefix, run as wait_for};
use quittance_ports::Store;
use quittance_ports::conformance::{LeasesPromise, MembershipPromise, Promise, Relay, model};
use std::sync::Arc;

fn run_on(place: &FreshPrefix, promise: Promise) {
    wait_for(async {
        let store = place.open().await;
        promise(Arc::new(store.clone())).await;
        assert_eq!(store.watching(), 0, "a caller is still waiting");
    });
}

fn run_between_two(place: &FreshPrefix, promise: Promise) {
    wait_for(async {
        let mut nodes: Vec<Arc<dyn Store>> = Vec::new();
        for _ in 0..2 {
            nodes.push(Arc::new(SettledNode { node: place.open().await, place: place.clone() }));
        }
        promise(Arc::new(Relay::new(nodes))).await;
    });
}

fn run_membership_on(place: &FreshPrefix, promise: MembershipPromise) {
    wait_for(async { promise(Arc::new(place.open().await)).await });
}

fn run(promise: Promise) {
    run_on(&FreshPrefix::on_one_server(1), promise);
}

quittance_ports::conformance!(run);

fn run_membership(promise: MembershipPromise) {
    run_membership_on(&FreshPrefix::on_one_server(1), promise);
}

quittance_ports::membership_conformance!(run_membership);

fn run_leases_on(place: &FreshPrefix, promise: LeasesPromise) {
    wait_for(async { promise(Arc::new(place.open().await)).await });
}

mod leasing {
    use super::{FreshPrefix, LeasesPromise, run_leases_on};

    fn run(promise: LeasesPromise) {
        run_leases_on(&FreshPrefix::on_one_server(1), promise);
    }

    quittance_ports::leases_conformance!(run);
}

mod leasing_on_a_cluster {
    use super::{FreshPrefix, LeasesPromise, run_leases_on};

    fn run(promise: LeasesPromise) {
        run_leases_on(&FreshPrefix::on_the_cluster(), promise);
    }

    quittance_ports::leases_conformance!(run);
}

mod in_sixteen_partitions {
    use super::{FreshPrefix, MembershipPromise, Promise, run_membership_on, run_on};

    fn run(promise: Promise) {
        run_on(&FreshPrefix::on_one_server(16), promise);
    }

    quittance_ports::conformance!(run);

    fn run_membership(promise: MembershipPromise) {
        run_membership_on(&FreshPrefix::on_one_server(16), promise);
    }

    quittance_ports::membership_conformance!(run_membership);
}

mod between_two_nodes {
    use super::{FreshPrefix, Promise, run_between_two};

    fn run(promise: Promise) {
        run_between_two(&FreshPrefix::on_one_server(1), promise);
    }

    quittance_ports::conformance!(run);
}

mod on_a_cluster {
    use super::{FreshPrefix, MembershipPromise, Promise, run_membership_on, run_on};

    fn run(promise: Promise) {
        run_on(&FreshPrefix::on_the_cluster(), promise);
    }

    quittance_ports::conformance!(run);

    fn run_membership(promise: MembershipPromise) {
        run_membership_on(&FreshPrefix::on_the_cluster(), promise);
    }

    quittance_ports::membership_conformance!(run_membership);
}

mod between_two_nodes_on_a_cluster {
    use super::{FreshPrefix, Promise, run_between_two};

    fn run(promise: Promise) {
        run_between_two(&FreshPrefix::on_the_cluster(), promise);
    }

    quittance_ports::conformance!(run);
}

#[test]
fn many_days_of_random_operations_are_answered_like_the_memory_store_does() {
    for seed in 100..120 {
        let place = FreshPrefix::on_one_server(if seed % 2 == 0 { 1 } else { 5 });
        wait_for(async { model::random_operations(Arc::new(place.open().await), seed, 500).await });
    }
}
