//! What whoever gave a `callback_url` is told: what happened, when, and the order as the API shows it.

use super::shown::{OrderInFull, Source};
use crate::OrderId;
use quittance_engine::Outcome;
use quittance_lifecycle::{Order, Timestamp};
use quittance_ports::moment::rfc3339;
use serde::Serialize;

#[derive(Serialize)]
struct Told {
    r#type: &'static str,
    timestamp: String,
    data: OrderInFull,
}

/// Nothing, if there is nothing to show.
pub(crate) fn told(
    order: &Order,
    id: OrderId,
    outcome: &Outcome,
    now: Timestamp,
    currency: &str,
) -> Option<String> {
    let data = OrderInFull::of(id, Source::by(id, order), order, outcome, now, currency)?;
    Some(super::json_text(&Told { r#type: "order.settled", timestamp: rfc3339(now), data }))
}
