//! The text of a webhook: the reply that a poll would get, in the caller's protocol.

use crate::codes::{code_of_outcome, in_classic};
use crate::order_id::OrderId;
use crate::v1::{OrderInFull, Source, json_text};
use quittance_engine::Outcome;
use quittance_lifecycle::{Order, Phase, Timestamp};
use quittance_ports::moment::rfc3339;
use quittance_webhooks::WebhookFormat;
use serde::Serialize;

/// The body of a webhook to a `callback_url`: what happened, when, and the order as the API shows it.
#[derive(Serialize)]
struct WebhookBody {
    r#type: &'static str,
    timestamp: String,
    data: OrderInFull,
}

/// The text of a webhook for an order. `None` if the order is gone.
#[must_use]
pub fn webhook_text(
    format: WebhookFormat,
    order: &Order,
    outcome: &Outcome,
    now: Timestamp,
    currency: &str,
) -> Option<String> {
    // The caller that took an answer from the stock knows it by another id than the caller that had placed the order.
    let is_from_stock = matches!(&order.phase, Phase::Claimed { by, .. } if *by != order.key);
    let id = OrderId::new(&order.key, is_from_stock);
    Some(match format {
        WebhookFormat::Classic(_) => pairs(id, outcome),
        WebhookFormat::Json(dialect) => crate::json_api::webhook_body(dialect, order, id, outcome),
        WebhookFormat::V1 => {
            let data = OrderInFull::of(id, Source::by(id, order), order, outcome, now, currency)?;
            json_text(&WebhookBody { r#type: "order.settled", timestamp: rfc3339(now), data })
        }
    })
}

/// The classic form with the id and the answer or the code.
fn pairs(id: OrderId, outcome: &Outcome) -> String {
    let code = code_of_outcome(outcome);
    let code = match outcome {
        Outcome::Answered(answer) => &answer.payload.text,
        _ => in_classic(&code),
    };
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("id", &id.to_string()).append_pair("code", code).finish()
}
