//! Planted bugs of a reload: what a node knows is lost when its settings change. The stories about the reload catch
//! them (`tests/sim/stories/reload.rs`): the random lives change no settings.

use crate::plants::RoutingPlant;
use quittance_engine::ReloadRules;

pub const RELOAD_PLANTS: &[RoutingPlant] = &[
    RoutingPlant {
        name: "a gate forgets its pause at a reload",
        sow: |rules| rules.plant_reload(ReloadRules { keeps_gate: || false, ..ReloadRules::REAL }),
    },
    RoutingPlant {
        name: "the tasks of a removed provider are forgotten",
        sow: |rules| rules.plant_reload(ReloadRules { keeps_removed: || false, ..ReloadRules::REAL }),
    },
    RoutingPlant {
        name: "a node asks the wrong provider for a task of one that it does not have",
        sow: |rules| rules.plant_reload(ReloadRules { leaves_to_others: || false, ..ReloadRules::REAL }),
    },
];
