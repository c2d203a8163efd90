//! A node at work, in the terminal. This is the only crate that may draw on a terminal. It gets snapshots, and does
//! not know their source.
#![forbid(unsafe_code)]

mod part_text;
mod screen;
mod small_screen;
mod view;

pub use part_text::page;
pub use screen::{KeyAction, attend, watch};
pub use view::View;

use quittance_admin::alerts::ShownAlert;
use quittance_admin::live::{ShownRates, Snapshot};
use quittance_gateway::harmless;

/// The origin of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotSource {
    /// A node that works.
    Node,
    /// A command that read a shared store. Only a node knows its age, its latencies and the state of the provider.
    SharedStore,
    /// A command that read an embedded store, so no daemon runs on it.
    EmbeddedStore,
}

/// A snapshot, and where it was read: at a daemon or in the store.
#[derive(Debug)]
pub struct TakenSnapshot {
    pub snapshot: Snapshot,
    pub source: SnapshotSource,
    /// Whether the rates are still current.
    pub has_rates: bool,
}

impl TakenSnapshot {
    #[must_use]
    pub const fn new(snapshot: Snapshot, source: SnapshotSource) -> Self {
        Self { snapshot, source, has_rates: true }
    }

    /// A counter of today; 0 if it is not known.
    fn today(&self, counter: &str) -> u64 {
        self.snapshot.today.get(counter).copied().flatten().unwrap_or_default()
    }

    /// A rate, if it is known.
    fn rate(&self, of: impl Fn(&ShownRates) -> Option<f64>) -> Option<f64> {
        of(&self.snapshot.rates).filter(|_| self.has_rates)
    }

    fn active_alerts(&self) -> impl Iterator<Item = &ShownAlert> {
        self.snapshot.alerts.iter().filter(|alert| alert.cleared_at.is_none())
    }
}

/// Why there is no new snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    NoDaemon,
    Error(String),
}

impl Missing {
    /// What happened, and what to do.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::NoDaemon => {
                "no daemon runs on this store: start `quittance serve`; it is shown here as soon as it is there".into()
            }
            Self::Error(what) => harmless(what),
        }
    }
}
