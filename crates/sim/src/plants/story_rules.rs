//! Planted bugs about retries, replays after an outage, webhooks and counters. The stories about these rules catch them: the
//! random lives have no operator who sets such limits.

use quittance_lifecycle::{
    Decision, DeliveryOutcome, Event, Order, Policy, RetryLimits, SubmitOutcome, Terms, TimelineEvent,
    Timestamp, WebhookPauses, transition,
};
use std::sync::Arc;

/// A rule for what an event does to an order.
pub type TransitionRule = fn(&Order, Event, Timestamp, &Policy) -> Decision;

/// Bug: what the caller asks for counts for nothing.
pub fn the_callers_limit_is_ignored(
    order: &Order,
    event: Event,
    now: Timestamp,
    policy: &Policy,
) -> Decision {
    let terms = Arc::new(Terms { retry: RetryLimits::NONE, ..(*order.terms).clone() });
    let real = Arc::clone(&order.terms);
    with_next(transition(&Order { terms, ..order.clone() }, event, now, policy), |next| next.terms = real)
}

/// Bug: a caller gets as many retries as it asks for.
pub fn a_caller_asks_for_more(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    let max_retries = order.terms.retry.max_retries.or(policy.max_retries);
    transition(order, event, now, &Policy { max_retries, ..*policy })
}

/// Bug: the limit of a provider is not looked at.
pub fn a_providers_limit_is_ignored(
    order: &Order,
    event: Event,
    now: Timestamp,
    policy: &Policy,
) -> Decision {
    transition(order, event, now, &Policy { account_max_retries: None, ..*policy })
}

/// Bug: after an outage every dead letter is replayed, whatever it died of.
pub fn every_dead_letter_is_replayed(
    order: &Order,
    event: Event,
    now: Timestamp,
    policy: &Policy,
) -> Decision {
    let event = match event {
        Event::ReplayedAfterOutage { .. } => Event::Replayed,
        event => event,
    };
    transition(order, event, now, policy)
}

/// Bug: an order that dies again after a replay is replayed after the next outage, and so on.
pub fn replays_are_forgotten(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    with_next(transition(order, event, now, policy), |next| {
        let is_replay = |event: &TimelineEvent| matches!(event, TimelineEvent::ReplayedAfterOutage { .. });
        next.timeline.entries.retain(|entry| !is_replay(&entry.event));
    })
}

/// Bug: a delivery to an endpoint that is switched off is tried again later.
pub fn an_endpoint_is_never_off(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    let event = match event {
        Event::WebhookTried { webhook, outcome: DeliveryOutcome::SwitchedOff { why } } => {
            Event::WebhookTried { webhook, outcome: DeliveryOutcome::NotDelivered { why } }
        }
        event => event,
    };
    transition(order, event, now, policy)
}

/// Bug: the operator's schedule of webhooks is not used.
pub fn the_webhook_schedule_is_fixed(
    order: &Order,
    event: Event,
    now: Timestamp,
    policy: &Policy,
) -> Decision {
    transition(order, event, now, &Policy { webhook_pauses: WebhookPauses::DEFAULT, ..*policy })
}

/// Bug: a submit that did not reach the provider counts as rejected by it.
pub fn what_did_not_arrive_was_rejected(
    order: &Order,
    event: Event,
    now: Timestamp,
    policy: &Policy,
) -> Decision {
    let is_rejected = matches!(&event, Event::Submitted { outcome: SubmitOutcome::Rejected(_), .. });
    match transition(order, event, now, policy) {
        Decision::Advance(mut advance) if is_rejected => {
            advance.counters.rejected = 1;
            Decision::Advance(advance)
        }
        other => other,
    }
}

fn with_next(decision: Decision, change: impl FnOnce(&mut Order)) -> Decision {
    match decision {
        Decision::Advance(mut advance) => {
            change(&mut advance.next);
            Decision::Advance(advance)
        }
        other => other,
    }
}
