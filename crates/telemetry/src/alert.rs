//! Decides when an operator must act; no other module raises or clears alerts.
//!
//! This module reads no clock and does no I/O. The monitor of a node gives an [`AlertEngine`] its [`Readings`] and
//! the active alerts, and gets the changes. An alert is raised when its rule has held for some time. It is cleared
//! when the value has been below a lower threshold for some time, so that no alert flaps.

mod alert_engine;
mod budget_rules;
mod readings;
mod rule;
mod rule_reading;
mod window;
pub mod words;

pub use alert_engine::{AlertChange, AlertEngine, Named};
pub use readings::{
    Balance, BudgetReading, DeadLetterReading, FailingEndpoint, Health, Node, Pool, Readings,
};
pub use rule::{Rule, Thresholds};
pub(crate) use window::difference;
