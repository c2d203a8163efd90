//! Planted bugs in the numbers of the gate, each a mistake from real code of this field. The judge does not measure
//! pace, so each is caught by a story instead (`tests/sim/stories/gates.rs`).

use quittance_engine::GateRules;
use quittance_lifecycle::Progress;
use std::fmt;
use std::time::Duration;

/// A bug in the gate, and how to plant it.
#[derive(Clone, Copy)]
pub struct GatePlant {
    pub name: &'static str,
    pub sow: fn(&mut GateRules),
}

impl fmt::Debug for GatePlant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! gate_plants {
    ($($name:literal => $sow:expr),* $(,)?) => { &[$(GatePlant { name: $name, sow: $sow }),*] };
}

pub const GATE_PLANTS: &[GatePlant] = gate_plants! {
    "a crowd is submitted at once" => |rules| rules.slow_start = |_| u32::MAX,
    "busy replies below the limit leave it as it is" => |rules| rules.lower_limit = |limit, _| limit,
    "a full provider is tried for more all the time" => |rules| rules.probe_pause = |_, _| Duration::ZERO,
    "a full provider is never tried for more" => |rules| rules.probe_pause = |_, _| Duration::from_secs(86_400),
    "the threads of the account are ignored" => |rules| rules.bound = |_| u32::MAX,
    "a task without an answer keeps its seat" => |rules| rules.seat_ends = |sent, _, _| sent + Duration::from_secs(86_400),
    "an answer frees no seat" => |rules| rules.frees_seat = |progress| matches!(progress, Progress::GivenUp { .. }),
    "a slow provider is a broken one" => |rules| rules.settles_doubt = |_| false,
    "each order probes a provider that is away" => |rules| rules.may_join_probe = || true,
    "each node probes a provider that is away" => |rules| rules.may_probe_beside = || true,
    "the pauses of an outage grow and grow" => |rules| rules.open_for = |pause, _| pause,
    "retries need no budget" => |rules| rules.is_retry_free = |_, _| true,
    "each node keeps the pace for itself" => |rules| rules.interval = |interval, _| interval,
};
