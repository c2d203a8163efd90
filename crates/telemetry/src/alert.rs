//! When a person must act: the only module that raises and clears alerts.
//!
//! Nothing here reads a clock or does I/O. The monitor of a node gives an [`AlertEngine`] its [`Readings`] and the alerts that stand,
//! and gets back what changes. An alert is raised when its rule has held for a while. It is cleared when the value has been below a
//! lower limit for another while, so that no alert flaps.

mod alert_engine;
mod readings;
mod rule;
mod rule_reading;
mod window;
pub mod words;

pub use alert_engine::{AlertChange, AlertEngine, Named};
pub use readings::{DeadLetterReading, Health, Node, Pool, Readings};
pub use rule::{Rule, Thresholds};
pub(crate) use window::difference;
