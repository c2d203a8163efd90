//! Spans as JSON of OTLP (`POST /v1/traces`): ids are hexadecimal, and times are nanoseconds as strings.

use super::{Span, SpanKind};
use quittance_lifecycle::Timestamp;
use serde_json::{Value, json};

/// The body of one `POST /v1/traces`.
#[must_use]
pub fn encode(node: &str, version: &str, spans: &[Span]) -> Vec<u8> {
    let spans: Vec<Value> = spans.iter().map(span_json).collect();
    let body = json!({ "resourceSpans": [{
        "resource": { "attributes": [
            attribute("service.name", "quittance"),
            attribute("service.instance.id", node),
            attribute("service.version", version),
        ] },
        "scopeSpans": [{ "scope": { "name": "quittance", "version": version }, "spans": spans }],
    }] });
    body.to_string().into_bytes()
}

fn span_json(span: &Span) -> Value {
    let kind = match span.kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
    };
    let status = match &span.error {
        Some(message) => json!({ "code": 2, "message": message }),
        None => json!({}),
    };
    let mut body = json!({
        "traceId": trace_id(span.trace),
        "spanId": span_id(span.id),
        "name": span.name,
        "kind": kind,
        "startTimeUnixNano": nanos(span.start),
        // A clock that was set back must not make a span end before it begins.
        "endTimeUnixNano": nanos(span.end.max(span.start)),
        "attributes": span.attributes.iter().map(|(name, value)| attribute(name, value)).collect::<Vec<_>>(),
        "events": span.events.iter().map(|(at, what)| json!({ "timeUnixNano": nanos(*at), "name": what })).collect::<Vec<_>>(),
        "status": status,
    });
    if let Some(parent) = span.parent {
        body["parentSpanId"] = span_id(parent).into();
    }
    if let Some(link) = &span.link {
        body["links"] = json!([{ "traceId": trace_id(link.trace), "spanId": span_id(link.id) }]);
    }
    body
}

fn attribute(name: &str, value: &str) -> Value {
    json!({ "key": name, "value": { "stringValue": value } })
}

fn nanos(at: Timestamp) -> String {
    (u128::from(at.as_millis()) * 1_000_000).to_string()
}

fn trace_id(id: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(id))
}

fn span_id(id: [u8; 8]) -> String {
    format!("{:016x}", u64::from_be_bytes(id))
}
