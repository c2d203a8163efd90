//! What the engine needs from the world, as small contracts: somewhere to write orders down ([`Store`]), somebody
//! who takes attempts ([`Provider`]), the time ([`Clock`]), a place for what comes in while the store is away
//! ([`Spill`]), a way to call callers ([`Courier`]), and a list of who else works on the same orders ([`Roster`]).
//!
//! Each contract has one promise per test; for stores they are gathered in [`mod@conformance`], and every store runs them all.
#![forbid(unsafe_code)]

pub mod clock;
pub mod conformance;
pub mod courier;
pub mod memory;
mod provider;
pub mod roster;
pub mod sheet;
pub mod spill;
pub mod store;
pub mod watch;

pub use clock::Clock;
pub use courier::{Courier, MemoryCourier};
pub use memory::{MemorySpill, MemoryStore};
pub use provider::{
    Account, AskError, Callback, Guard, Params, Penalty, Provider, Saying, Submission, TaskField, Threads,
};
pub use roster::{
    Card, Demand, Finding, MarkRequest, MemoryRoster, Reach, Roll, Roster, Signed, StoreForgot, StoreMark,
    Verdict, Vitals,
};
pub use sheet::{
    AlertNote, AlertSheet, BulkSheet, Deed, LevelShown, Mark, PoolSheet, PoolSpec, PriceBasis, Reserved,
    Sheet, SheetFound, SheetWritten, Spent, TrustSheet,
};
pub use spill::{Arrival, Spill, SpillError};
pub use store::{
    Census, Commit, Day, Due, Line, Standing, Store, StoreError, Unreadable, Version, Versioned, Which,
};
pub use watch::{Watch, Watchers};
