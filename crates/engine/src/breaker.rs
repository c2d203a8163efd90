//! The circuit breaker before one provider account. Several lost submits in a row open its circuit (`circuit.rs`).
//! After a pause, one submit at a time tries the provider.
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
use crate::circuit::{Circuit, CircuitSign};
use crate::gate_rules::GateRules;
use quittance_lifecycle::{Backoff, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// For this long, an accepted submit of one tenant shows that another tenant's losses are not the provider's fault.
const ACCEPTED_WINDOW: Duration = Duration::from_secs(60);
/// How much later than the others the tenant that lost the last submit tries: its orders may be the cause.
const LAST_TO_TRY: Duration = Duration::from_secs(1);

/// The losses of one tenant since a submit was last accepted.
struct Losses {
    in_a_row: u32,
    circuit: Circuit,
}

pub(crate) struct Breaker {
    backoff: Backoff,
    throttle: Throttle,
    is_shared: bool,
    /// The tenants that have lost submits since any submit was last accepted. If there is only one tenant, the map
    /// has one entry with an empty name.
    losses: BTreeMap<String, Losses>,
    /// The circuit for all tenants.
    circuit: Circuit,
    new_circuit: Circuit,
    /// The tenant whose submit was lost last.
    last_lost: String,
    /// When a submit of a tenant was last accepted, within [`ACCEPTED_WINDOW`].
    accepted: BTreeMap<String, Timestamp>,
}

impl Breaker {
    pub(crate) const fn new(rules: GateRules, backoff: Backoff, throttle: Throttle, is_shared: bool) -> Self {
        let circuit = Circuit::new(rules, throttle.probe);
        Self {
            backoff,
            throttle,
            is_shared,
            losses: BTreeMap::new(),
            circuit,
            new_circuit: circuit,
            last_lost: String::new(),
            accepted: BTreeMap::new(),
        }
    }

    /// Works by these settings from now on. What it has learned about the provider stays.
    pub(crate) fn follow(&mut self, rules: GateRules, backoff: Backoff, throttle: Throttle, is_shared: bool) {
        if self.is_shared != is_shared {
            // The losses have other names from now on.
            self.losses.clear();
        }
        (self.backoff, self.throttle, self.is_shared) = (backoff, throttle, is_shared);
        self.new_circuit = Circuit::new(rules, throttle.probe);
        self.circuit.set_probe(throttle.probe);
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

    /// Counts a lost submit of this tenant, which was sent at `sent`.
    pub(crate) fn lost(&mut self, tenant: &str, sent: Timestamp, now: Timestamp, grain: u64) {
        let tenant = self.name(tenant).to_owned();
        let new = Losses { in_a_row: 0, circuit: self.new_circuit };
        let losses = self.losses.entry(tenant.clone()).or_insert(new);
        losses.in_a_row = losses.in_a_row.saturating_add(1);
        self.last_lost.clone_from(&tenant);
        let is_confirmed = self.is_confirmed();
        let pause = self.backoff.pause(self.circuit.failed(), grain);
        self.circuit.note(CircuitSign::Lost { sent, is_enough: is_confirmed, pause }, now);
        if let Some(losses) = self.losses.get_mut(&tenant).filter(|_| !is_confirmed) {
            let is_enough = losses.in_a_row >= self.throttle.trip_at;
            let pause = self.backoff.pause(losses.circuit.failed(), grain);
            losses.circuit.note(CircuitSign::Lost { sent, is_enough, pause }, now);
        }
    }

    /// A submit of this tenant was accepted, or a callback has settled a doubt: the provider is available.
    pub(crate) fn accepted(&mut self, tenant: &str, now: Timestamp) {
        self.reset();
        if self.is_shared {
            self.accepted.retain(|_, at| *at <= now && now.since(*at) < ACCEPTED_WINDOW);
            self.accepted.insert(tenant.to_owned(), now);
        }
    }

    /// The provider replied to this tenant, but did not accept. Other tenants that wait keep waiting, and the count
    /// begins again.
    pub(crate) fn replied(&mut self, tenant: &str, now: Timestamp) {
        self.circuit.note(CircuitSign::Replied, now);
        let tenant = self.name(tenant);
        for (name, losses) in &mut self.losses {
            losses.in_a_row = 0;
            if name == tenant {
                losses.circuit.note(CircuitSign::Replied, now);
            }
        }
    }

    pub(crate) fn reset(&mut self) {
        self.losses.clear();
        self.circuit = self.new_circuit;
    }

    /// A submit of this tenant goes out. If a circuit is open, other submits wait for its result.
    pub(crate) fn passed(&mut self, tenant: &str, now: Timestamp) {
        self.note(tenant, CircuitSign::Asked, now);
    }

    /// The submit of this tenant that went out at `sent` was not made: another one may try.
    pub(crate) fn not_made(&mut self, tenant: &str, sent: Timestamp, now: Timestamp) {
        self.note(tenant, CircuitSign::NotMade { sent }, now);
    }

    fn note(&mut self, tenant: &str, sign: CircuitSign, now: Timestamp) {
        self.circuit.note(sign, now);
        let tenant = self.name(tenant);
        if let Some(losses) = self.losses.get_mut(tenant) {
            losses.circuit.note(sign, now);
        }
    }

    /// Whether submits go out one at a time, for all tenants or for this one.
    pub(crate) fn is_probing(&self, tenant: &str) -> bool {
        let own = self.losses.get(self.name(tenant));
        !self.circuit.is_closed() || own.is_some_and(|losses| !losses.circuit.is_closed())
    }

    /// The circuit for all tenants.
    pub(crate) const fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    /// Leaves it to another node to try the provider until this moment.
    pub(crate) fn leave_to_another(&mut self, until: Timestamp) {
        self.circuit.leave_to_another(until);
    }

    /// Until when no submit of any tenant goes out.
    pub(crate) fn shut_until(&self) -> Timestamp {
        self.circuit.shut_until()
    }

    /// Until when no submit of this tenant goes out.
    pub(crate) fn shut_until_for(&self, tenant: &str) -> Timestamp {
        let tenant = self.name(tenant);
        let own = self.losses.get(tenant).map_or(Timestamp::ZERO, |losses| losses.circuit.shut_until());
        let is_last = self.is_shared && !self.circuit.is_closed() && self.last_lost == tenant;
        let all = self.circuit.shut_until();
        own.max(if is_last { all + LAST_TO_TRY } else { all })
    }

    /// Until when the breaker is shut because of the provider. It is shut for all tenants, or for one tenant while no
    /// submit of another tenant was accepted within [`ACCEPTED_WINDOW`].
    pub(crate) fn tripped(&self, now: Timestamp) -> Option<Timestamp> {
        if !self.circuit.is_closed() {
            return Some(self.circuit.shut_until());
        }
        let is_tripped =
            |tenant: &str, losses: &Losses| !losses.circuit.is_closed() && !self.is_contradicted(tenant, now);
        let tripped = self.losses.iter().filter(|(tenant, losses)| is_tripped(tenant, losses));
        tripped.map(|(_, losses)| losses.circuit.shut_until()).max()
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
        Breaker::new(GateRules::REAL, Preset::Patient.backoff(), Throttle::DEFAULT, true)
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
            breaker.lost("alice", at(1), at(1), 1);
            assert!(!is_shut(&breaker, "bob", at(1)));
        }
        assert_eq!(breaker.tripped(at(1)), None, "bob's submit was accepted a moment ago");
        breaker.lost("bob", at(1), at(1), 1);
        assert!(!is_shut(&breaker, "bob", at(1)), "one loss of another tenant may be chance");
        breaker.accepted("bob", at(2));
        assert!(!is_shut(&breaker, "alice", at(2)), "and alice may try again");
    }

    #[test]
    fn the_losses_of_different_tenants_hold_back_all_and_the_next_to_try_is_another_one() {
        let mut breaker = shared();
        breaker.accepted("bob", at(0));
        for _ in 0..100 {
            breaker.lost("alice", at(1), at(1), 1);
        }
        breaker.lost("bob", at(1), at(1), 1);
        breaker.lost("bob", at(1), at(1), 1);
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
            breaker.lost(tenant, at(0), at(0), 1);
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
            breaker.lost("alice", at(1), at(1), 1);
        }
        let until = breaker.tripped(at(1)).expect("no other tenant says that the provider is there");
        assert!(is_shut(&breaker, "alice", at(1)) && !is_shut(&breaker, "alice", until));
        breaker.passed("alice", until);
        assert!(is_shut(&breaker, "alice", until), "one submit at a time tries");
        assert!(!is_shut(&breaker, "bob", until), "and one of another tenant may try, too");
    }
}
