//! The whole system in virtual time, on one thread, from one seed: engine, store, provider, network, clocks and
//! callers. A storm passes over it, then calm; then a judge that shares no rule with the engine holds every
//! promise against what really happened. The same seed gives the same life, byte for byte.
//!
//! A simulation that no bug fails tests nothing: [`plants`] has a wrong idea for every promise, and each must be
//! caught.
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
pub use judge::Breach;
pub use life::{Life, live};
pub use plants::{PLANTS, Plant};
pub use script::Script;
pub use weather::FaultRates;
