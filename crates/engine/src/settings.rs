//! What the operator decides for one node, with defaults, and the one seam by which the simulation plants wrong ideas.

use crate::callback::CallbackAddress;
use quittance_lifecycle::{
    Decision, Event, Key, KeySettings, Kind, Order, Placement, Policy, Terms, Timestamp,
};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The decisions themselves, replaceable as a whole: a simulation that no wrong rule fails would test nothing.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub place: fn(Option<&Order>, Key, &Arc<Terms>, Timestamp, &Policy) -> Placement,
    pub transition: fn(&Order, Event, Timestamp, &Policy) -> Decision,
}

impl Rules {
    pub const REAL: Self =
        Self { place: quittance_lifecycle::place, transition: quittance_lifecycle::transition };
}

#[derive(Clone)]
pub struct Settings {
    /// New for each start of each process, so that no two ever mistake each other's writes for their own.
    pub node: u64,
    pub policy: Policy,
    pub keys: KeySettings,
    /// The kinds that are known here.
    pub kinds: fn(&str) -> Option<Kind>,
    /// Where providers can call us, if they can.
    pub callback: Option<CallbackAddress>,
    pub rules: Rules,
    /// How many submits may be under way at once.
    pub submits_max: usize,
    /// How many batches of polls may be under way at once.
    pub polls_max: usize,
    /// How many other steps may be under way at once.
    pub steps_max: usize,
    /// How many orders may wait in memory for one of the above; the rest wait in the store.
    pub backlog_max: usize,
    /// How many due orders are taken from the store at once.
    pub claim_max: usize,
    /// How long a claimed order is hidden from other nodes: longer than a poll may take, or it is asked for twice.
    pub claim_span: Duration,
    /// The longest and the shortest time between two looks for due orders.
    pub sweep_span: Duration,
    pub sweep_pause: Duration,
    /// How long one poll may take before its reply no longer counts.
    pub poll_wait: Duration,
    /// How long placing goes on trying when the store is not available.
    pub place_wait: Duration,
}

impl Settings {
    #[must_use]
    pub fn new(node: u64, kinds: fn(&str) -> Option<Kind>) -> Self {
        Self {
            node,
            policy: Policy::DEFAULT,
            keys: KeySettings::default(),
            kinds,
            callback: None,
            rules: Rules::REAL,
            submits_max: 256,
            polls_max: 64,
            steps_max: 256,
            backlog_max: 1024,
            claim_max: 256,
            claim_span: Duration::from_secs(9),
            sweep_span: Duration::from_secs(2),
            sweep_pause: Duration::from_millis(20),
            poll_wait: Duration::from_secs(8),
            place_wait: Duration::from_secs(2),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("node", &self.node)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
