//! What operators and monitoring systems learn about a node. No other crate raises alerts, writes metrics or exports
//! traces. Nothing here changes an order.
#![forbid(unsafe_code)]

mod account;
pub mod alert;
mod latencies;
mod metrics;
pub mod money;
mod monitor;
pub mod trace;

pub use account::{AccountCache, AccountCaches, KnownAccount};
pub use latencies::{Histogram, Latencies, LatencyPercentiles};
pub use metrics::{ApiCounts, ignored_reason, metrics_text};
pub use monitor::{
    AlertSettings, AlertWebhook, Announcement, Monitor, MonitorSources, OpenPhases, STORE_ERROR_PERIOD,
    Sample, SnapshotData,
};
pub use trace::{TraceSettings, Traces};
