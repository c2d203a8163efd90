//! The server around the doors: limits, slow and silent callers, certificates, and how it closes.
#![expect(clippy::unwrap_used, reason = "whatever goes wrong in a test is to be seen at once")]

mod closing;
#[path = "../shared/flaky_store.rs"]
mod flaky_store;
mod limits;
mod manners;
#[path = "../shared/still_clock.rs"]
mod still_clock;
mod tls;
#[path = "../classic/world.rs"]
#[allow(dead_code, reason = "the room is shared with the tests of the classic door")]
mod world;

use quittance_gateway::{GatewaySettings, Limits};

fn with(limits: Limits) -> GatewaySettings {
    GatewaySettings { limits, ..GatewaySettings::default() }
}
