//! Runs every promise of the suite, each on a fresh store.

use super::{NO_CACHE, now};
use quittance_ports::conformance::{Promise, Relay};
use quittance_store_embedded::{EmbeddedStore, Settings};
use std::sync::Arc;

fn run_with(settings: &Settings, promise: Promise) {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open_with(dir.path(), settings).unwrap();
    now(promise(Arc::new(store.clone())));
    assert_eq!(store.unreadable(), []);
}

fn run(promise: Promise) {
    run_with(&Settings::default(), promise);
}

quittance_ports::conformance!(run);

mod without_a_cache {
    use super::{NO_CACHE, Promise, run_with};

    fn run(promise: Promise) {
        run_with(&NO_CACHE, promise);
    }

    quittance_ports::conformance!(run);
}

mod between_two_handles {
    use super::{Arc, EmbeddedStore, Promise, Relay, now};

    fn run(promise: Promise) {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(dir.path()).unwrap();
        now(promise(Arc::new(Relay::new(vec![Arc::new(store.clone()), Arc::new(store)]))));
    }

    quittance_ports::conformance!(run);
}

mod membership {
    use super::{Arc, EmbeddedStore, now};
    use quittance_ports::conformance::MembershipPromise;

    fn run(promise: MembershipPromise) {
        let dir = tempfile::tempdir().unwrap();
        now(promise(Arc::new(EmbeddedStore::open(dir.path()).unwrap())));
    }

    quittance_ports::membership_conformance!(run);
}
