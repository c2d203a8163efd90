//! Unit tests of the life cycle, with shared helpers: an exploration of all states, and single lives step by step.

mod charges;
mod exploration;
mod freshness;
mod in_time;
mod lives;
mod retries;
mod routing;
mod shortages;

use crate::kind::HostRules;
use crate::{
    Draft, Field, Identity, Key, KeySettings, Kind, Money, Order, Pace, Payload, Placement, Policy,
    ProviderAnswer, Reuse, Shape, Terms, Timestamp, WhenInDoubt, place,
};
use alloc::borrow::Cow;
use alloc::sync::Arc;
use core::time::Duration;

const START: Timestamp = Timestamp::from_millis(1_000_000_000);

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn kind(single_use: bool) -> Kind {
    const FIELDS: &[Field] = &[Field {
        name: "what",
        shape: Shape::Text,
        required: true,
        substitutes: &[],
        identifies: true,
        default: None,
    }];
    Kind {
        name: Cow::Borrowed("thing"),
        fields: FIELDS,
        identity: Identity::Fields,
        immaterial: &[],
        address_fields: &[],
        bound_to_address: false,
        life: single_use.then_some(secs(120)),
        margin: if single_use { secs(40) } else { Duration::ZERO },
        single_use,
        hosts: HostRules::NONE,
        pace: Pace { p50: secs(10), p95: secs(40), p99: secs(60) },
    }
}

fn policy(callbacks: bool, when_in_doubt: WhenInDoubt) -> Policy {
    Policy { callbacks, when_in_doubt, pace: kind(true).pace, ..Policy::DEFAULT }
}

fn agreed(single_use: bool, reuse: Reuse, keyed: bool) -> (Key, Arc<Terms>) {
    let mut draft = Draft::new("ada").with("what", "x");
    draft.reuse = Some(reuse);
    draft.idempotency_key = keyed.then(|| "mine".into());
    let (key, terms) = draft
        .check(&kind(single_use), KeySettings::default(), &Policy::DEFAULT, START, 7)
        .expect("the order is good");
    (key, Arc::new(terms))
}

fn placed(key: Key, terms: &Arc<Terms>, policy: &Policy) -> Order {
    match place(None, None, key, terms, START, policy) {
        Placement::Commit { advance, .. } => advance.next,
        other => panic!("a new order is made, not {other:?}"),
    }
}

fn delivery(text: &str) -> ProviderAnswer {
    ProviderAnswer { payload: Payload::text(text), took_at_least: None, cost: Some(Money(3)) }
}
