//! How often each fault happens, drawn from the seed. A rate is a fraction of one: 0.1 is every tenth. At most one
//! fault strikes a request. All rates are zero by default.

use crate::rng::MockRng;
use crate::script::FaultAction;
use crate::settings::MillisRange;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Rates of the faults between the client and one endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WireFaults {
    /// The connection ends before the request was acted upon.
    pub request_lost: f64,
    /// The request was acted upon, and the connection ends without an answer.
    pub reply_lost: f64,
    /// A 5xx page. The request was not acted upon.
    pub status_before: f64,
    /// A 5xx page, although the request was acted upon.
    pub status_after: f64,
    /// HTTP 429. The request was not acted upon.
    pub too_many: f64,
    /// Status 200 with an HTML page, although the request was acted upon.
    pub html: f64,
    /// Random bytes, although the request was acted upon.
    pub garbage: f64,
    /// Half of the answer.
    pub truncated: f64,
    /// One of `codes`. The request was not acted upon.
    pub code: f64,
    /// The answer comes after `slow_ms`.
    pub slow: f64,
    /// The request was acted upon. No answer comes for `hang_ms`, then the connection ends.
    pub hang: f64,
    /// res.php with `ids`: fewer parts than ids.
    pub fewer_parts: f64,
    /// Every reply comes this many milliseconds later, beside any other fault. The request is acted upon at once.
    pub delay_ms: u64,
}

/// Rates of the faults of pingbacks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PingbackFaults {
    pub lost: f64,
    pub doubled: f64,
    /// Sent `slow_ms` later.
    pub delayed: f64,
    /// Sent, and answered, before in.php answers.
    pub early: f64,
    /// Forged pingbacks come too: to an address with a changed end, and for an invented task.
    pub forged: f64,
    /// The task cannot be solved, and the pingback holds the code.
    pub code: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// The connection is closed as soon as it is accepted.
    pub refused: f64,
    pub submit: WireFaults,
    pub poll: WireFaults,
    pub pingback: PingbackFaults,
    /// The task cannot be solved.
    pub unsolvable: f64,
    /// The result is gone as soon as it is there.
    pub vanished: f64,
    /// Kinds that are not offered: a classic method (`turnstile`), a task type (`TurnstileTaskProxyless`), or one of
    /// `image`, `recaptcha_v2` and `recaptcha_v3`. The reply is the "not supported" code of the dialect.
    pub rejects: Vec<String>,
    pub slow_ms: MillisRange,
    pub hang_ms: u64,
    pub submit_codes: Vec<String>,
    pub poll_codes: Vec<String>,
}

impl Default for Faults {
    fn default() -> Self {
        let codes = |codes: &[&str]| codes.iter().map(|code| (*code).to_owned()).collect();
        Self {
            refused: 0.0,
            submit: WireFaults::default(),
            poll: WireFaults::default(),
            pingback: PingbackFaults::default(),
            unsolvable: 0.0,
            vanished: 0.0,
            rejects: Vec::new(),
            slow_ms: MillisRange { from: 100, to: 2_000 },
            hang_ms: 30_000,
            submit_codes: codes(&[
                "ERROR_NO_SLOT_AVAILABLE",
                "ERROR_SERVER_ERROR",
                "MAX_USER_TURN",
                "ERROR_BLUE_MOON",
            ]),
            poll_codes: codes(&["ERROR_SERVER_ERROR", "ERROR_INTERNAL_SERVER_ERROR"]),
        }
    }
}

impl Faults {
    /// All faults at once, at rates at which a client with long timeouts still gets its answers.
    #[must_use]
    pub fn storm() -> Self {
        let wire = WireFaults {
            request_lost: 0.03,
            reply_lost: 0.05,
            status_before: 0.03,
            status_after: 0.03,
            too_many: 0.02,
            html: 0.02,
            garbage: 0.01,
            truncated: 0.01,
            code: 0.05,
            slow: 0.05,
            hang: 0.01,
            ..WireFaults::default()
        };
        Self {
            refused: 0.03,
            poll: WireFaults { fewer_parts: 0.05, ..wire.clone() },
            submit: wire,
            pingback: PingbackFaults {
                lost: 0.1,
                doubled: 0.1,
                delayed: 0.1,
                early: 0.05,
                forged: 0.1,
                code: 0.02,
            },
            unsolvable: 0.05,
            vanished: 0.01,
            ..Self::default()
        }
    }

    /// Whether tasks of this method, version and task type are rejected.
    pub(crate) fn rejects(&self, method: &str, version: Option<&str>, task_type: &str) -> bool {
        let kind = match method {
            "post" | "base64" => "image",
            "userrecaptcha" if version == Some("v3") => "recaptcha_v3",
            "userrecaptcha" => "recaptcha_v2",
            other => other,
        };
        self.rejects.iter().any(|rejected| [method, kind, task_type].contains(&rejected.as_str()))
    }

    /// Checks faults of a single account, which cannot strike before the key of a request is known.
    pub(crate) fn check_for_account(&self) -> Result<(), String> {
        match self.refused > 0.0 {
            true => Err("`refused` closes the socket of the whole service, so an account cannot have it: \
                         set it without an account, or use `submit.request_lost`"
                .to_owned()),
            false => Ok(()),
        }
    }

    pub(crate) fn on_submit(&self, rng: &mut MockRng) -> Option<FaultAction> {
        self.on_wire(&self.submit, &self.submit_codes, rng)
    }

    pub(crate) fn on_poll(&self, rng: &mut MockRng) -> Option<FaultAction> {
        self.on_wire(&self.poll, &self.poll_codes, rng)
    }

    fn on_wire(&self, wire: &WireFaults, codes: &[String], rng: &mut MockRng) -> Option<FaultAction> {
        const SICK: [u16; 4] = [500, 502, 503, 521];
        let mut left = rng.fraction();
        let mut strikes = |rate: f64| {
            left -= rate;
            left < 0.0
        };
        let taken = true;
        if strikes(wire.request_lost) {
            Some(FaultAction::RequestLost)
        } else if strikes(wire.reply_lost) {
            Some(FaultAction::ReplyLost)
        } else if strikes(wire.status_before) {
            Some(FaultAction::Status { status: *rng.one_of(&SICK)?, taken: false })
        } else if strikes(wire.status_after) {
            Some(FaultAction::Status { status: *rng.one_of(&SICK)?, taken })
        } else if strikes(wire.too_many) {
            Some(FaultAction::Status { status: 429, taken: false })
        } else if strikes(wire.html) {
            Some(FaultAction::Html { taken })
        } else if strikes(wire.garbage) {
            Some(FaultAction::Garbage { taken })
        } else if strikes(wire.truncated) {
            Some(FaultAction::Truncated { taken })
        } else if strikes(wire.code) {
            rng.one_of(codes).map(|code| FaultAction::Code(code.clone()))
        } else if strikes(wire.slow) {
            Some(FaultAction::Delay { ms: rng.between(self.slow_ms.from, self.slow_ms.to) })
        } else if strikes(wire.hang) {
            Some(FaultAction::Hang { ms: self.hang_ms, taken })
        } else if strikes(wire.fewer_parts) {
            Some(FaultAction::FewerParts)
        } else {
            None
        }
    }

    /// Draws the faults of one pingback. Several can strike at once.
    pub(crate) fn on_pingback(&self, rng: &mut MockRng) -> Vec<FaultAction> {
        let rates = &self.pingback;
        let mut actions = Vec::new();
        let mut may = |rate: f64, action: &dyn Fn(&mut MockRng) -> FaultAction| {
            if rng.strikes(rate) {
                actions.push(action(rng));
            }
        };
        may(rates.lost, &|_| FaultAction::Lost);
        may(rates.doubled, &|_| FaultAction::Doubled);
        may(rates.delayed, &|rng| FaultAction::Delay { ms: rng.between(self.slow_ms.from, self.slow_ms.to) });
        may(rates.early, &|_| FaultAction::Early);
        may(rates.forged, &|_| FaultAction::Forged);
        actions
    }
}

/// Reads faults: `"calm"`, `"storm"`, or rates. What is left out keeps its value in `base`.
pub(crate) fn read(value: &Value, base: &Faults) -> Result<Faults, String> {
    match value {
        Value::String(name) if name == "calm" => Ok(Faults::default()),
        Value::String(name) if name == "storm" => Ok(Faults::storm()),
        Value::Object(_) => {
            let mut merged = serde_json::to_value(base).map_err(|why| why.to_string())?;
            merge(&mut merged, value);
            serde_json::from_value(merged).map_err(|why| why.to_string())
        }
        _ => Err("faults are \"calm\", \"storm\" or an object with rates, such as \
                  {\"pingback\":{\"lost\":0.1}}"
            .to_owned()),
    }
}

/// Reads faults of a single account. A preset comes without the faults that only a whole service can have.
pub(crate) fn read_for_account(value: &Value, base: &Faults) -> Result<Faults, String> {
    let mut faults = read(value, &Faults { refused: 0.0, ..base.clone() })?;
    if value.is_string() {
        faults.refused = 0.0;
    }
    faults.check_for_account()?;
    Ok(faults)
}

/// Puts the values of `change` over those of `base`, also within objects.
pub(crate) fn merge(base: &mut Value, change: &Value) {
    match (base, change) {
        (Value::Object(base), Value::Object(change)) => {
            for (name, value) in change {
                merge(base.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (base, change) => *base = change.clone(),
    }
}
