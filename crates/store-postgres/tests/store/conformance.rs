//! Runs every promise of a store and of a membership, each on a fresh schema.

use super::{fresh_schema, open, settings, settings_at};
use quittance_ports::conformance::{LeasesPromise, MembershipPromise, Promise, Relay};
use quittance_servers::{Pooler, shared_postgres};
use std::sync::{Arc, OnceLock};

fn run(promise: Promise) {
    super::run(async {
        let store = open(settings(&fresh_schema())).await;
        promise(Arc::new(store.clone())).await;
        assert_eq!(store.watching(), 0);
    });
}

quittance_ports::conformance!(run);

mod between_two_nodes {
    use super::{Arc, Promise, Relay, fresh_schema, open, settings};

    fn run(promise: Promise) {
        crate::run(async {
            let schema = fresh_schema();
            let (one, other) = (open(settings(&schema)).await, open(settings(&schema)).await);
            promise(Arc::new(Relay::new(vec![Arc::new(one), Arc::new(other)]))).await;
        });
    }

    quittance_ports::conformance!(run);
}

mod through_a_pooler {
    use super::{Arc, OnceLock, Pooler, Promise, fresh_schema, open, settings_at, shared_postgres};

    /// A pooler for all tests, which stops with the process.
    fn pooler() -> &'static Pooler {
        static POOLER: OnceLock<Pooler> = OnceLock::new();
        POOLER.get_or_init(|| Pooler::start(shared_postgres()))
    }

    fn run(promise: Promise) {
        crate::run(async {
            let settings = settings_at(&pooler().url(), &fresh_schema());
            let store = open(settings.with_listen_url(&shared_postgres().url()).unwrap()).await;
            promise(Arc::new(store)).await;
        });
    }

    quittance_ports::conformance!(run);
}

mod who_works_here {
    use super::{Arc, MembershipPromise, fresh_schema, open, settings};

    fn run(promise: MembershipPromise) {
        crate::run(async { promise(Arc::new(open(settings(&fresh_schema())).await)).await });
    }

    quittance_ports::membership_conformance!(run);
}

mod leasing {
    use super::{Arc, LeasesPromise, fresh_schema, open, settings};

    fn run(promise: LeasesPromise) {
        crate::run(async { promise(Arc::new(open(settings(&fresh_schema())).await)).await });
    }

    quittance_ports::leases_conformance!(run);
}
