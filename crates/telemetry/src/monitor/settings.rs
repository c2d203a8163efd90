//! The operator's settings for alerts.

use crate::alert::Thresholds;
use std::fmt;
use std::time::Duration;

/// Time between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct AlertSettings {
    pub thresholds: Thresholds,
    /// The webhook that is called for each alert that is raised or cleared.
    pub webhook: Option<AlertWebhook>,
    /// The time between two samples; the rules are evaluated after each.
    pub sample_interval: Duration,
}

impl Default for AlertSettings {
    fn default() -> Self {
        Self { thresholds: Thresholds::default(), webhook: None, sample_interval: SAMPLE_INTERVAL }
    }
}

/// The operator's webhook for alerts.
#[derive(Clone, PartialEq, Eq)]
pub struct AlertWebhook {
    pub url: String,
    /// The secret that signs the calls.
    pub secret: [u8; 32],
}

impl fmt::Debug for AlertWebhook {
    /// Hides the address, which can contain a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AlertWebhook(..)")
    }
}
