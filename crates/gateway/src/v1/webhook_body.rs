//! The body of a webhook to a `callback_url`: what happened, when, and the order as the API shows it.

use super::order_view::{OrderInFull, Source};
use crate::OrderId;
use quittance_engine::Outcome;
use quittance_lifecycle::{Order, Timestamp};
use quittance_ports::moment::rfc3339;
use serde::Serialize;

#[derive(Serialize)]
struct WebhookBody {
    r#type: &'static str,
    timestamp: String,
    data: OrderInFull,
}

/// `None` if the order is gone.
pub(crate) fn webhook_body(
    order: &Order,
    id: OrderId,
    outcome: &Outcome,
    now: Timestamp,
    currency: &str,
) -> Option<String> {
    let data = OrderInFull::of(id, Source::by(id, order), order, outcome, now, currency)?;
    Some(super::json_text(&WebhookBody { r#type: "order.settled", timestamp: rfc3339(now), data }))
}
