//! What the operator says about alerts, and the settings that he may read on the page.

use quittance_alert::Thresholds;
use serde::Serialize;
use std::fmt;
use std::time::Duration;
use utoipa::ToSchema;

/// How often this node looks while nobody watches.
const LOOK_SPAN: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct AlertSettings {
    pub thresholds: Thresholds,
    pub webhook: Option<Webhook>,
    /// How often a sample is taken and the rules are held against it.
    pub look_span: Duration,
}

impl Default for AlertSettings {
    fn default() -> Self {
        Self { thresholds: Thresholds::default(), webhook: None, look_span: LOOK_SPAN }
    }
}

/// Who is called when an alert is raised or cleared.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    pub url: String,
    /// With what the calls are signed.
    pub secret: [u8; 32],
}

impl fmt::Debug for Webhook {
    /// An address may be a secret itself: whoever knows it can speak there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Webhook(..)")
    }
}

/// One effective setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ShownSetting {
    pub name: String,
    /// Value as in a config file; for a secret, whether it is set.
    pub value: String,
    /// Where the value came from.
    pub origin: String,
}
