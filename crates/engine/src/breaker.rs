//! The circuit breaker before one provider. Several lost submits in a row shut the breaker. After a pause, one submit
//! at a time tries the provider.
//!
//! A submit may be lost because the provider is away, or because the provider cannot handle that one order. If
//! several tenants share the provider, losses of one tenant shut the breaker for that tenant only. Losses of several
//! tenants shut it for all. Each tenant counts for at most half of `trip_at`. With `trip_at = 5`:
//!
//! ```text
//! 100 losses of alice                     3       alice waits, bob does not
//! 100 losses of alice, 1 of bob           3 + 1   alice waits, bob does not
//! 100 losses of alice, 2 of bob           3 + 2   all wait, and one submit at a time tries
//! a submit of alice or bob is accepted    0       no tenant waits
//! ```

use crate::Throttle;
use quittance_lifecycle::{Backoff, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// For this long, an accepted submit of one tenant shows that another tenant's losses are not the provider's fault.
const ACCEPTED_WINDOW: Duration = Duration::from_secs(60);
/// How much later than the others the tenant that lost the last submit tries: its orders may be the cause.
const LAST_TO_TRY: Duration = Duration::from_secs(1);

/// The losses of one tenant since a submit was last accepted.
#[derive(Default)]
struct Losses {
    in_a_row: u32,
    shut_until: Timestamp,
}

pub(crate) struct Breaker {
    backoff: Backoff,
    throttle: Throttle,
    is_shared: bool,
    /// The tenants that have lost submits since any submit was last accepted. If there is only one tenant, the map
    /// has one entry with an empty name.
    losses: BTreeMap<String, Losses>,
    /// How many submits were lost since the breaker tripped for all tenants; `None` if it has not tripped.
    since_trip: Option<u32>,
    shut_until: Timestamp,
    /// The tenant whose submit was lost last.
    last_lost: String,
    /// When a submit of a tenant was last accepted, within [`ACCEPTED_WINDOW`].
    accepted: BTreeMap<String, Timestamp>,
}

impl Breaker {
    pub(crate) fn new(backoff: Backoff, throttle: Throttle, is_shared: bool) -> Self {
        Self {
            backoff,
            throttle,
            is_shared,
            losses: BTreeMap::new(),
            since_trip: None,
            shut_until: Timestamp::ZERO,
            last_lost: String::new(),
            accepted: BTreeMap::new(),
        }
    }

    fn name<'a>(&self, tenant: &'a str) -> &'a str {
        if self.is_shared { tenant } else { "" }
    }

    /// Whether the losses are the provider's, and not those of one tenant's orders.
    fn is_confirmed(&self) -> bool {
        let trip_at = self.throttle.trip_at;
        let each_max = if self.is_shared { trip_at.div_ceil(2) } else { trip_at };
        let losses = self.losses.values().filter(|losses| losses.in_a_row > 0);
        let (tenants, counted) = losses.fold((0u32, 0u32), |(tenants, counted), losses| {
            (tenants + 1, counted.saturating_add(losses.in_a_row.min(each_max)))
        });
        counted >= trip_at && (!self.is_shared || tenants > 1)
    }

    fn is_tripped_for(&self, losses: &Losses) -> bool {
        losses.in_a_row >= self.throttle.trip_at
    }

    /// Counts a lost submit of this tenant.
    pub(crate) fn lost(&mut self, tenant: &str, now: Timestamp, grain: u64) {
        let tenant = self.name(tenant);
        let losses = self.losses.entry(tenant.to_owned()).or_default();
        losses.in_a_row = losses.in_a_row.saturating_add(1);
        let in_a_row = losses.in_a_row;
        tenant.clone_into(&mut self.last_lost);
        if self.is_confirmed() {
            let since_trip = self.since_trip.map_or(0, |count| count.saturating_add(1));
            self.since_trip = Some(since_trip);
            self.shut_until = self.shut_until.max(now + self.backoff.pause(since_trip, grain));
        } else if let Some(over) = in_a_row.checked_sub(self.throttle.trip_at) {
            let until = now + self.backoff.pause(over, grain);
            let losses = self.losses.entry(tenant.to_owned()).or_default();
            losses.shut_until = losses.shut_until.max(until);
        }
    }

    /// Counts an accepted submit of this tenant: the provider is available.
    pub(crate) fn accepted(&mut self, tenant: &str, now: Timestamp) {
        self.reset();
        if self.is_shared {
            self.accepted.retain(|_, at| *at <= now && now.since(*at) < ACCEPTED_WINDOW);
            self.accepted.insert(tenant.to_owned(), now);
        }
    }

    /// The provider replied, but did not accept. Tenants that wait keep waiting, and the count begins again.
    pub(crate) fn replied(&mut self) {
        self.since_trip = None;
        self.losses.values_mut().for_each(|losses| losses.in_a_row = 0);
    }

    pub(crate) fn reset(&mut self) {
        self.losses.clear();
        (self.since_trip, self.shut_until) = (None, Timestamp::ZERO);
    }

    /// A submit of this tenant goes out. If the breaker has tripped, other submits wait for its result.
    pub(crate) fn passed(&mut self, tenant: &str, now: Timestamp) {
        let until = now + self.throttle.probe;
        if self.since_trip.is_some() {
            self.shut_until = until;
            return;
        }
        let trip_at = self.throttle.trip_at;
        let tenant = self.name(tenant);
        if let Some(losses) = self.losses.get_mut(tenant).filter(|losses| losses.in_a_row >= trip_at) {
            losses.shut_until = until;
        }
    }

    /// Until when no submit of any tenant goes out.
    pub(crate) const fn shut_until(&self) -> Timestamp {
        self.shut_until
    }

    /// Until when no submit of this tenant goes out.
    pub(crate) fn shut_until_for(&self, tenant: &str) -> Timestamp {
        let tenant = self.name(tenant);
        let own = self.losses.get(tenant).map_or(Timestamp::ZERO, |losses| losses.shut_until);
        let is_last = self.is_shared && self.since_trip.is_some() && self.last_lost == tenant;
        let all = if is_last { self.shut_until + LAST_TO_TRY } else { self.shut_until };
        own.max(all)
    }

    /// Until when the breaker is shut because of the provider. It is shut for all tenants, or for one tenant while no
    /// submit of another tenant was accepted within [`ACCEPTED_WINDOW`].
    pub(crate) fn tripped(&self, now: Timestamp) -> Option<Timestamp> {
        if self.since_trip.is_some() {
            return Some(self.shut_until);
        }
        let tripped = self
            .losses
            .iter()
            .filter(|(tenant, losses)| self.is_tripped_for(losses) && !self.is_contradicted(tenant, now));
        tripped.map(|(_, losses)| losses.shut_until).max()
    }

    /// Whether a submit of another tenant was accepted within [`ACCEPTED_WINDOW`]: then this tenant's losses say
    /// nothing about the provider.
    pub(crate) fn is_contradicted(&self, tenant: &str, now: Timestamp) -> bool {
        let is_recent = |at: &Timestamp| *at <= now && now.since(*at) < ACCEPTED_WINDOW;
        self.accepted.iter().any(|(other, at)| other != tenant && is_recent(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_lifecycle::Preset;

    const TRIP_AT: u32 = Throttle::DEFAULT.trip_at;

    fn shared() -> Breaker {
        Breaker::new(Preset::Patient.backoff(), Throttle::DEFAULT, true)
    }

    const fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1000)
    }

    fn is_shut(breaker: &Breaker, tenant: &str, now: Timestamp) -> bool {
        now < breaker.shut_until_for(tenant)
    }

    #[test]
    fn one_tenants_losses_hold_back_that_tenant_only() {
        let mut breaker = shared();
        breaker.accepted("bob", at(0));
        for n in 0..100 {
            assert_eq!(is_shut(&breaker, "alice", at(1)), n >= TRIP_AT);
            breaker.lost("alice", at(1), 1);
            assert!(!is_shut(&breaker, "bob", at(1)));
        }
        assert_eq!(breaker.tripped(at(1)), None, "bob's submit was accepted a moment ago");
        breaker.lost("bob", at(1), 1);
        assert!(!is_shut(&breaker, "bob", at(1)), "one loss of another tenant may be chance");
        breaker.accepted("bob", at(2));
        assert!(!is_shut(&breaker, "alice", at(2)), "and alice may try again");
    }

    #[test]
    fn the_losses_of_different_tenants_hold_back_all_and_the_next_to_try_is_another_one() {
        let mut breaker = shared();
        breaker.accepted("bob", at(0));
        for _ in 0..100 {
            breaker.lost("alice", at(1), 1);
        }
        breaker.lost("bob", at(1), 1);
        breaker.lost("bob", at(1), 1);
        assert!(["alice", "bob", "carol"].iter().all(|tenant| is_shut(&breaker, tenant, at(1))));
        let until = breaker.tripped(at(1)).expect("it has tripped for all");
        assert!(until.since(at(1)) < Duration::from_secs(5), "alice's losses do not make the pause longer");
        assert!(!is_shut(&breaker, "carol", until) && is_shut(&breaker, "bob", until));
        breaker.passed("carol", until);
        assert!(is_shut(&breaker, "carol", until), "one submit at a time tries");
    }

    #[test]
    fn many_tenants_with_one_loss_each_trip_it_for_all() {
        let mut breaker = shared();
        let tenants = ["alice", "bob", "carol", "dave", "erin"];
        for tenant in tenants {
            assert_eq!(breaker.tripped(at(0)), None);
            breaker.lost(tenant, at(0), 1);
        }
        assert!(breaker.tripped(at(0)).is_some());
    }

    /// A provider that is away while one tenant is at work is seen, and tried by one submit at a time.
    #[test]
    fn the_only_tenant_at_work_trips_it_and_that_is_seen() {
        let mut breaker = shared();
        breaker.accepted("alice", at(0));
        for _ in 0..TRIP_AT {
            assert_eq!(breaker.tripped(at(1)), None);
            breaker.lost("alice", at(1), 1);
        }
        let until = breaker.tripped(at(1)).expect("no other tenant says that the provider is there");
        assert!(is_shut(&breaker, "alice", at(1)) && !is_shut(&breaker, "alice", until));
        breaker.passed("alice", until);
        assert!(is_shut(&breaker, "alice", until), "one submit at a time tries");
        assert!(!is_shut(&breaker, "bob", until), "and one of another tenant may try, too");
    }
}
