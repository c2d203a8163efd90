//! What the engine needs from outside, as small contracts: a store for orders ([`Store`]), a service that takes
//! attempts ([`Provider`]), the time ([`Clock`]), and a file for events that come while the store is away
//! ([`Spill`]). There is also a sender of webhooks ([`WebhookSender`]), the list of the nodes of a store
//! ([`Membership`]), and limits that nodes keep together ([`Leases`]).
//!
//! Each contract has one test for each promise. The promises of stores are in [`mod@conformance`], and every store
//! runs them all.
#![forbid(unsafe_code)]

pub mod clock;
pub mod conformance;
pub mod document;
mod fixed_provider;
mod hours;
pub mod leases;
pub mod membership;
pub mod memory;
pub mod moment;
mod provider;
pub mod spill;
pub mod store;
mod trust;
pub mod watch;
pub mod webhook_sender;

pub use clock::Clock;
pub use document::{
    AccountPause, AlertDocument, AlertNote, BudgetDocument, BudgetShare, BulkAction, BulkDocument,
    DocumentWritten, ENDPOINTS_MAX, EndpointNote, EndpointsDocument, GateDocument, GateProbe, Goal,
    LevelView, Mark, OutageNote, OutagesDocument, PoolDocument, PoolSpec, PriceBasis, ProviderMode,
    Reservation, SHARES_MAX, SIZE_MAX, SharedDocument, Spent, StoredDocument, TrustDocument,
};
pub use fixed_provider::FixedProvider;
pub use hours::{Hours, HoursError};
pub use leases::{LeaseOutcome, LeaseTotal, Leases, MemoryLeases};
pub use membership::{
    Demand, Finding, MarkRequest, Member, Members, Membership, MemoryMembership, NodeStats, NodeStatus,
    Reach, StoreForgot, StoreMark, Verdict,
};
pub use memory::{MemorySpill, MemoryStore};
pub use provider::{
    Account, AskError, Callback, CallbackMessage, Guard, Params, Penalty, Provider, Submission, TaskField,
    Threads,
};
pub use spill::{IncomingEvent, Spill, SpillError};
pub use store::{
    Commit, Day, Due, OrderClass, OrderCounts, Store, StoreError, Unreadable, UsageRow, Version, Versioned,
    Which,
};
pub use trust::{AnswerReport, REPORTS_MAX, Trust};
pub use watch::{Watch, Watchers};
pub use webhook_sender::{MemoryWebhooks, WebhookSender};
