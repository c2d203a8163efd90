//! Three nodes on one store, each a process, with one provider. What one node promises, they promise together,
//! whatever happens to the store or the nodes. Every promise is tested on Redis and on PostgreSQL.

mod any;
mod balancer;
mod caller;
mod clocks;
mod deaths;
mod files;
pub(crate) mod fleet;
mod forgets;
mod herd;
mod judge;
mod keys;
mod load;
mod looks;
mod lost;
mod moved;
mod places;
mod repeats;
mod rolling;
mod server;
mod sight;
mod spill;
mod stock;
mod storms;
mod takeover;

/// One test for each store.
macro_rules! on_both_stores {
    ($($(#[$why:meta])* $name:ident),* $(,)?) => {
        mod redis {
            $($(#[$why])* #[test] fn $name() { super::$name(crate::nodes::server::ServerKind::Redis); })*
        }
        mod postgres {
            $($(#[$why])* #[test] fn $name() { super::$name(crate::nodes::server::ServerKind::Postgres); })*
        }
    };
}
use on_both_stores;

/// Prints a measurement, for a test that is run by hand: `cargo test -p quittance-e2e nodes -- --nocapture`.
macro_rules! tell {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        // There may be no reader.
        _ = writeln!(std::io::stdout(), $($words)*);
    }};
}
use tell;
