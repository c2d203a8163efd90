//! When a person must be told: the only crate that may raise an alert, or clear one.
//!
//! Nothing here reads a clock or does I/O. Whoever looks after a node shows a [`Watchman`] what he sees ([`Readings`]) and which
//! alerts stand, and is told what changes. An alert is raised when its rule has held for a span, and cleared when it has been well
//! under a lower bar for another, so none of them flaps.
#![forbid(unsafe_code)]

mod judge;
mod readings;
mod rule;
#[cfg(test)]
mod tests;
mod watchman;
mod window;
pub mod words;

pub use readings::{DeadLetters, Health, Node, Pool, Readings};
pub use rule::{Rule, Thresholds};
pub use watchman::{Change, Named, Watchman};
pub use window::Counts;
