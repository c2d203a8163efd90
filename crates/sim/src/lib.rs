//! The whole system in virtual time, on one thread, from one seed: engine, store, provider, network, clocks and
//! callers. Each run has a storm of faults and then calm. At the end, a judge that shares no rule with the engine
//! compares every promise with what really happened. One seed always gives the same run, byte for byte.
//!
//! To prove that the judge finds bugs, [`plants`] has a bug for every promise, and each must be caught.
#![forbid(unsafe_code)]

mod args;
mod callers;
pub mod executor;
mod fleet;
pub mod handouts;
mod judge;
mod life;
pub mod night;
pub mod plants;
pub mod pools;
mod provider;
pub mod rng;
mod script;
mod store;
mod storm;
pub mod truth;
mod weather;

pub use fleet::Parts;
pub use judge::{Breach, asked_again_in_doubt};
pub use life::{Life, live};
pub use plants::{
    BUDGET_PLANTS, BudgetPlant, GATE_PLANTS, GatePlant, HEDGE_PLANTS, PLANTS, Plant, RELOAD_PLANTS,
    ROUTING_PLANTS, RoutingPlant,
};
pub use script::Script;
pub use weather::FaultRates;
