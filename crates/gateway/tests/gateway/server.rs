//! Tests of the server around the APIs: limits, slow and silent callers, certificates, and closing.

mod closing;
mod keep_alive;
mod limits;
mod tls;

use quittance_gateway::{GatewaySettings, Limits};

fn with(limits: Limits) -> GatewaySettings {
    GatewaySettings { limits, ..GatewaySettings::default() }
}
