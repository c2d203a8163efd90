//! The format of replies for one client: plain or JSON, and whether any web page can read them. No reply ends with a
//! newline.

use super::ClassicRefusal;
use crate::api::{self, Body};
use crate::gateway::PLAIN;
use crate::orders::OrderView;
use hyper::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use quittance_engine::Outcome;
use quittance_lifecycle::{Answer, Money, Order, Payload, Value};
use quittance_protocol::Dialect;
use quittance_protocol::classic::{Form, method};
use serde::de::IgnoredAny;
use std::fmt::Write;

const JSON: &str = "application/json";
/// The longest reason. A reason can quote a name from the client, which can be as long as a request.
const REASON_CHARS_MAX: usize = 300;
/// The header with the reason beside a plain code, which has no place for it.
const REASON: HeaderName = HeaderName::from_static("quittance-error-text");
/// The kind whose answer stands in `request` although a browser comes with it.
const IN_REQUEST_ONLY: &str = "captchafox";
/// Members of a reply that are not extra fields.
const OWN: [&str; 4] = ["status", "request", "result", "price"];

#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseFormat {
    pub(super) is_json: bool,
    /// Whether any web page may read the reply (CORS).
    pub(super) is_open: bool,
}

impl ResponseFormat {
    /// Plain for every method, unless the client asks for JSON. Clients that want JSON ask for it, and many others
    /// read only plain text.
    pub(super) fn of(form: &Form) -> Self {
        let is_set =
            |name: &str| form.text(name).is_some_and(|value| !matches!(value.trim(), "" | "0" | "false"));
        Self { is_json: is_set("json"), is_open: is_set("header_acao") }
    }

    fn reply(&self, is_json: bool, body: String) -> Response<Body> {
        let mut answer = api::answer(StatusCode::OK, if is_json { JSON } else { PLAIN }, body);
        let headers = answer.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.is_open {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        }
        answer
    }

    /// The reply to a request that is refused, or whose order has no answer.
    pub(super) fn refuse(&self, why: &ClassicRefusal) -> Response<Body> {
        let ClassicRefusal { code, reason } = why;
        let reason = reason.as_ref().map(|reason| reason.chars().take(REASON_CHARS_MAX));
        let sent = match reason.clone() {
            _ if !self.is_json => code.clone(),
            None => format!(r#"{{"status":0,"request":{}}}"#, quoted(code)),
            Some(reason) => {
                let reason: String = reason.collect();
                format!(r#"{{"status":0,"request":{},"error_text":{}}}"#, quoted(code), quoted(&reason))
            }
        };
        let mut answer = self.reply(self.is_json, sent);
        // A header holds visible ASCII only.
        let in_ascii = |letter: char| if matches!(letter, ' '..='~') { letter } else { '?' };
        let header = reason.filter(|_| !self.is_json).map(|reason| reason.map(in_ascii).collect::<String>());
        if let Some(value) = header.and_then(|reason| HeaderValue::try_from(reason).ok()) {
            answer.headers_mut().insert(REASON, value);
        }
        answer
    }

    /// The reply with a statistic, which is always XML.
    pub(super) fn xml(&self, inner: &str) -> Response<Body> {
        let sent = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><response>{inner}</response>");
        let mut answer = self.reply(false, sent);
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/xml; charset=utf-8"));
        answer
    }

    /// A reply without `OK|`: a balance, or an accepted report.
    pub(super) fn bare(&self, text: &str) -> Response<Body> {
        let sent = if self.is_json { yes(text) } else { text.to_owned() };
        self.reply(self.is_json, sent)
    }

    pub(super) fn ok(&self, text: &str) -> Response<Body> {
        let sent = if self.is_json { yes(text) } else { format!("OK|{text}") };
        self.reply(self.is_json, sent)
    }

    /// A reply that is always JSON.
    pub(super) fn json(&self, json: String) -> Response<Body> {
        self.reply(true, json)
    }

    pub(super) fn balance(&self, money: Money) -> Response<Body> {
        self.bare(&balance(money))
    }

    /// The reply with the outcome of an order.
    pub(super) fn answer(
        &self,
        seen: &OrderView,
        with_price: bool,
    ) -> Result<Response<Body>, ClassicRefusal> {
        let Outcome::Answered(answer) = &seen.outcome else {
            return Err(ClassicRefusal::of_outcome(&seen.outcome));
        };
        // A price that is not known is left out, in JSON and in the plain form: 0 would be a lie.
        let price = answer.cost.filter(|_| with_price).map(price);
        let sent = if self.is_json {
            in_json(&seen.order, answer, price.as_deref())
        } else {
            let text = plain(&answer.payload);
            price.map_or_else(|| format!("OK|{text}"), |price| format!("OK|{text}|{price}"))
        };
        Ok(self.reply(self.is_json, sent))
    }
}

/// The answer as plain text.
pub(super) fn plain(payload: &Payload) -> &str {
    &payload.text
}

fn yes(text: &str) -> String {
    format!(r#"{{"status":1,"request":{}}}"#, quoted(text))
}

/// The answer in JSON. Clients look for the answer and for its browser under the names of their provider, so all
/// these names are set.
fn in_json(order: &Order, answer: &Answer, price: Option<&str>) -> String {
    let Payload { text, is_json, extras } = &answer.payload;
    let terms = &order.terms;
    let is_agent = |name: &str| name.replace('_', "").eq_ignore_ascii_case("useragent");
    let is_bound = method::has_companions(Dialect::CaptchaAi.classic_reply(), &terms.kind, &terms.params);
    let value = if *is_json && is_document(text) { text.clone() } else { quoted(text) };
    let mut json = format!(r#"{{"status":1,"request":{value}"#);
    if is_bound && terms.kind != IN_REQUEST_ONLY {
        add(&mut json, "result", &value);
    }
    let used_agent = extras.iter().find(|(name, _)| is_agent(name)).map(|(_, agent)| agent);
    let is_named = is_bound || terms.kind == "turnstile";
    let asked = terms.params.get("userAgent").filter(|_| is_named).and_then(|agent| match agent {
        Value::Text(agent) => Some(agent),
        Value::Bytes(_) => None,
    });
    // Clients of such kinds read it without asking whether it is there; nothing in it says that any browser will do.
    let agent = used_agent.or(asked).map(String::as_str).or(is_bound.then_some(""));
    if let Some(agent) = agent {
        add(&mut json, "user_agent", &quoted(agent));
        add(&mut json, "useragent", &quoted(agent));
    }
    for (name, sent) in extras.iter().filter(|(name, _)| !is_agent(name) && !OWN.contains(&name.as_str())) {
        let sent =
            if sent.starts_with(['{', '[']) && is_document(sent) { sent.clone() } else { quoted(sent) };
        add(&mut json, name, &sent);
    }
    if let Some(price) = price {
        add(&mut json, "price", &quoted(price));
    }
    json.push('}');
    json
}

fn add(json: &mut String, name: &str, value: &str) {
    _ = write!(json, ",{}:{value}", quoted(name));
}

fn is_document(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A price with five decimal places, as `get2` sends it: `0.00299`. A sixth place is added if it is not zero, so that
/// a tiny price is not 0.
fn price(money: Money) -> String {
    let text = format!("{}.{:06}", money.0 / 1_000_000, money.0 % 1_000_000);
    text.strip_suffix('0').map_or(text.clone(), str::to_owned)
}

/// A balance with two decimal places, or more if they are not zero: `3.50`.
fn balance(money: Money) -> String {
    let mut text = format!("{}.{:06}", money.0 / 1_000_000, money.0 % 1_000_000);
    let places = text.len() - text.trim_end_matches('0').len();
    text.truncate(text.len() - places.min(4));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_spelled_as_clients_know_it() {
        for (micros, text) in
            [(0, "0.00"), (3_500_000, "3.50"), (3_497_010, "3.49701"), (10_000_000, "10.00"), (1, "0.000001")]
        {
            assert_eq!(balance(Money(micros)), text);
        }
        for (micros, text) in [
            (0, "0.00000"),
            (1, "0.000001"),
            (9, "0.000009"),
            (10, "0.00001"),
            (2_990, "0.00299"),
            (1_000_000, "1.00000"),
            (u64::MAX, "18446744073709.551615"),
        ] {
            assert_eq!(price(Money(micros)), text);
        }
    }
}
