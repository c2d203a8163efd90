//! The numbers of the gate, each a function that the simulation can replace by a wrong one.

use quittance_lifecycle::{Progress, Timestamp};
use std::time::Duration;

/// How long a busy provider is left alone at most before one more task than before is tried for the first time. It is
/// less if tasks take less: then slots become free sooner.
const PROBE_PAUSE: Duration = Duration::from_secs(15);
const PROBE_PAUSE_MAX: Duration = Duration::from_secs(300);
/// How long the circuit breaker stays open at most while an outage is young.
const OPEN_MAX: Duration = Duration::from_secs(3);
/// The breaker stays open for at most this fraction of the outage so far. So the end of an outage is noticed soon
/// after it, compared to its length.
const OPEN_SHARE: u32 = 20;

/// The rules of a gate: always [`REAL`](Self::REAL), except in the simulation, which plants wrong ones to prove that
/// it finds them.
#[derive(Clone, Copy, Debug)]
pub struct GateRules {
    /// How many submits may be in progress before the provider was ever busy, from the number of accepted ones.
    pub slow_start: fn(accepted: u32) -> u32,
    /// The limit after a busy reply that came although fewer tasks than `limit` were at the provider.
    pub lower_limit: fn(limit: u32, taken: u32) -> u32,
    /// How long to wait before one task more than the limit is tried, after this many such tries met "busy" in a row.
    /// `p99` is how long the slowest tasks take.
    pub probe_pause: fn(failed: u32, p99: Duration) -> Duration,
    /// The most tasks that an account with this many threads may have.
    pub bound: fn(threads: u64) -> u32,
    /// Until when a task without an answer counts as being at the provider.
    pub seat_ends: fn(sent: Timestamp, p99: Duration, deadline: Timestamp) -> Timestamp,
    /// Whether an attempt with this progress has left the provider.
    pub frees_seat: fn(&Progress) -> bool,
    /// Whether this progress of an attempt that was in doubt shows that the provider took it.
    pub settles_doubt: fn(&Progress) -> bool,
    /// Whether another submit may go out while the probe of a circuit breaker waits for its reply.
    pub may_join_probe: fn() -> bool,
    /// Whether this node tries a provider that does not answer while another node does that.
    pub may_probe_beside: fn() -> bool,
    /// How long the circuit breaker stays open: `pause` is the next pause of the backoff.
    pub open_for: fn(pause: Duration, outage: Duration) -> Duration,
    /// Whether a retry needs no budget: `failing` of a thousand submits failed, and `share` may.
    pub is_retry_free: fn(failing: u64, share: u64) -> bool,
    /// How far apart this node keeps submits if so many nodes work on the account.
    pub interval: fn(interval: Duration, nodes: u32) -> Duration,
}

impl GateRules {
    pub const REAL: Self = Self {
        slow_start: |accepted| (accepted / 2).saturating_add(8),
        lower_limit: |limit, taken| (limit - limit.div_ceil(4)).max(taken).max(1),
        probe_pause: |failed, p99| {
            p99.min(PROBE_PAUSE).saturating_mul(1 << failed.min(8)).min(PROBE_PAUSE_MAX)
        },
        bound: |threads| u32::try_from(threads).unwrap_or(u32::MAX).max(1),
        seat_ends: |sent, p99, deadline| (sent + p99 + p99 / 10 + Duration::from_secs(1)).min(deadline),
        frees_seat: |progress| {
            !matches!(progress, Progress::Sent | Progress::Solving { .. } | Progress::Trailing { .. })
        },
        settles_doubt: |progress| {
            matches!(progress, Progress::Answered | Progress::Surplus { .. } | Progress::Faulted)
        },
        may_join_probe: || false,
        may_probe_beside: || false,
        open_for: |pause, outage| pause.min(OPEN_MAX.max(outage / OPEN_SHARE)),
        is_retry_free: |failing, share| failing <= share,
        interval: |interval, nodes| interval.saturating_mul(nodes.max(1)),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: GateRules = GateRules::REAL;
    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_task_without_an_answer_keeps_its_seat_for_the_99th_percentile_and_a_little() {
        let sent = Timestamp::from_millis(1_000);
        assert_eq!((REAL.seat_ends)(sent, seconds(100), sent + seconds(300)), sent + seconds(111));
        assert_eq!((REAL.seat_ends)(sent, seconds(100), sent + seconds(60)), sent + seconds(60));
    }

    #[test]
    fn the_limit_falls_by_a_quarter_and_never_below_what_the_provider_has() {
        let lowered = |limit, taken| (REAL.lower_limit)(limit, taken);
        assert_eq!([lowered(100, 10), lowered(100, 90), lowered(2, 0), lowered(1, 0)], [75, 90, 1, 1]);
    }

    #[test]
    fn a_busy_provider_is_tried_for_more_less_and_less_often() {
        let pauses = |p99| (0..7).map(move |failed| (REAL.probe_pause)(failed, seconds(p99)).as_secs());
        assert_eq!(pauses(100).collect::<Vec<_>>(), [15, 30, 60, 120, 240, 300, 300]);
        assert_eq!(pauses(1).collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!((REAL.probe_pause)(u32::MAX, seconds(100)), seconds(300));
    }

    #[test]
    fn the_end_of_an_outage_is_noticed_within_a_twentieth_of_its_length() {
        let open_for = |pause, outage| (REAL.open_for)(seconds(pause), seconds(outage)).as_secs();
        assert_eq!(
            [open_for(1, 0), open_for(32, 60), open_for(60, 600), open_for(60, 86_400)],
            [1, 3, 30, 60]
        );
    }

    #[test]
    fn three_nodes_keep_submits_three_times_as_far_apart_as_one() {
        let interval = |nodes| (REAL.interval)(Duration::from_millis(100), nodes).as_millis();
        assert_eq!([interval(0), interval(1), interval(3)], [100, 100, 300]);
    }
}
