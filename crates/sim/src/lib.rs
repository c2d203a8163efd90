//! The whole system in virtual time, on one thread, from one seed: engine, store, provider, network, clocks and
//! callers. A storm passes over it, then calm; then a judge that shares nothing with the engine holds every
//! promise against what really happened. The same seed gives the same life, byte for byte.
//!
//! A simulation that no bug fails tests nothing: [`plants`] has a wrong idea for every promise, and each must be caught.
#![forbid(unsafe_code)]

pub mod callers;
pub mod dice;
pub mod executor;
pub mod fleet;
pub mod judge;
pub mod life;
pub mod night;
pub mod plants;
pub mod provider;
pub mod store;
pub mod truth;
pub mod weather;

pub use judge::Breach;
pub use life::{Life, Script, live};
pub use plants::{PLANTS, Plant};
