//! Every promise of a store and of a membership, each on a fresh one.

use super::settled::Settled;
use super::{Place, run as wait_for};
use quittance_ports::Store;
use quittance_ports::conformance::{LeasesPromise, MembershipPromise, Promise, Relay, model};
use std::sync::Arc;

fn run_on(place: &Place, promise: Promise) {
    wait_for(async {
        let store = place.open().await;
        promise(Arc::new(store.clone())).await;
        assert_eq!(store.watching(), 0, "somebody is still waiting");
    });
}

fn run_between_two(place: &Place, promise: Promise) {
    wait_for(async {
        let mut nodes: Vec<Arc<dyn Store>> = Vec::new();
        for _ in 0..2 {
            nodes.push(Arc::new(Settled { node: place.open().await, place: place.clone() }));
        }
        promise(Arc::new(Relay::new(nodes))).await;
    });
}

fn run_membership_on(place: &Place, promise: MembershipPromise) {
    wait_for(async { promise(Arc::new(place.open().await)).await });
}

fn run(promise: Promise) {
    run_on(&Place::on_one_server(1), promise);
}

quittance_ports::conformance!(run);

fn run_membership(promise: MembershipPromise) {
    run_membership_on(&Place::on_one_server(1), promise);
}

quittance_ports::membership_conformance!(run_membership);

fn run_leases_on(place: &Place, promise: LeasesPromise) {
    wait_for(async { promise(Arc::new(place.open().await)).await });
}

mod leasing {
    use super::{LeasesPromise, Place, run_leases_on};

    fn run(promise: LeasesPromise) {
        run_leases_on(&Place::on_one_server(1), promise);
    }

    quittance_ports::leases_conformance!(run);
}

mod leasing_on_a_cluster {
    use super::{LeasesPromise, Place, run_leases_on};

    fn run(promise: LeasesPromise) {
        run_leases_on(&Place::on_the_cluster(), promise);
    }

    quittance_ports::leases_conformance!(run);
}

mod in_sixteen_partitions {
    use super::{MembershipPromise, Place, Promise, run_membership_on, run_on};

    fn run(promise: Promise) {
        run_on(&Place::on_one_server(16), promise);
    }

    quittance_ports::conformance!(run);

    fn run_membership(promise: MembershipPromise) {
        run_membership_on(&Place::on_one_server(16), promise);
    }

    quittance_ports::membership_conformance!(run_membership);
}

mod between_two_nodes {
    use super::{Place, Promise, run_between_two};

    fn run(promise: Promise) {
        run_between_two(&Place::on_one_server(1), promise);
    }

    quittance_ports::conformance!(run);
}

mod on_a_cluster {
    use super::{MembershipPromise, Place, Promise, run_membership_on, run_on};

    fn run(promise: Promise) {
        run_on(&Place::on_the_cluster(), promise);
    }

    quittance_ports::conformance!(run);

    fn run_membership(promise: MembershipPromise) {
        run_membership_on(&Place::on_the_cluster(), promise);
    }

    quittance_ports::membership_conformance!(run_membership);
}

mod between_two_nodes_on_a_cluster {
    use super::{Place, Promise, run_between_two};

    fn run(promise: Promise) {
        run_between_two(&Place::on_the_cluster(), promise);
    }

    quittance_ports::conformance!(run);
}

#[test]
fn many_days_of_random_operations_are_answered_like_the_memory_store_does() {
    for seed in 100..120 {
        let place = Place::on_one_server(if seed % 2 == 0 { 1 } else { 5 });
        wait_for(async { model::random_operations(Arc::new(place.open().await), seed, 500).await });
    }
}
