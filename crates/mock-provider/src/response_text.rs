//! The replies of the provider as plain text or JSON, exact to the byte. No reply ends with a newline, because real
//! clients compare whole bodies.

use crate::answer::{AGENT, AnswerExtras, MockAnswer};
use crate::json::{self, JsonKind};
use crate::settings::MockClassicDialect;
use quittance_protocol::classic::{Form, Part};
use serde_json::Value;
use std::fmt::Write;

pub(crate) const NOT_READY: &str = "CAPCHA_NOT_READY";
pub(crate) const PLAIN: &str = "text/html; charset=UTF-8";
pub(crate) const JSON: &str = "application/json; charset=UTF-8";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MockReply {
    pub status: u16,
    pub body: String,
    pub is_json: bool,
    /// Whether any web page may read the reply (CORS).
    pub is_open: bool,
}

impl MockReply {
    pub(crate) fn content_type(&self) -> &'static str {
        if self.is_json { JSON } else { PLAIN }
    }
}

/// An answer and the fields that can stand beside it.
#[derive(Debug)]
pub(crate) struct SolvedTask<'a> {
    pub id: u64,
    pub answer: &'a MockAnswer,
    pub kind: &'static JsonKind,
    pub price_micros: u64,
    /// Whether the reply holds the price. The classic protocol sends it only on request.
    pub with_price: bool,
    pub taken_at_ms: u64,
    pub solved_at_ms: u64,
}

/// The format in which this client gets its replies.
#[derive(Clone, Debug)]
pub(crate) enum ReplyFormat {
    Classic(Classic),
    Json(json::JsonFormat),
}

impl ReplyFormat {
    pub(crate) fn code(&self, code: &str) -> MockReply {
        match self {
            Self::Classic(format) => format.code(code),
            Self::Json(format) => format.code(code),
        }
    }

    /// The code as the reply writes it.
    pub(crate) fn spelled<'a>(&self, code: &'a str) -> &'a str {
        match self {
            Self::Classic(_) => code,
            Self::Json(format) => format.spelled(code),
        }
    }

    pub(crate) fn accepted(&self, id: u64, method: &str) -> MockReply {
        match self {
            Self::Classic(format) => format.accepted(id, method),
            Self::Json(format) => format.accepted(id),
        }
    }

    pub(crate) fn answer(&self, solved: &SolvedTask<'_>) -> MockReply {
        match self {
            Self::Classic(format) => format.answer(solved),
            Self::Json(format) => format.answer(solved),
        }
    }

    pub(crate) fn balance(&self, micros: u64) -> MockReply {
        match self {
            Self::Classic(format) => format.bare(&balance(micros)),
            Self::Json(format) => format.balance(micros),
        }
    }

    pub(crate) fn reported(&self) -> MockReply {
        match self {
            Self::Classic(format) => format.bare("OK_REPORT_RECORDED"),
            Self::Json(format) => format.reported(),
        }
    }

    /// The classic format, for replies that only the classic protocol has.
    pub(crate) fn classic(&self) -> Result<&Classic, String> {
        match self {
            Self::Classic(format) => Ok(format),
            Self::Json(_) => Err("ERROR_EMPTY_ACTION".to_owned()),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Classic {
    pub is_json: bool,
    is_open: bool,
    dialect: MockClassicDialect,
    dump: String,
}

impl Classic {
    pub(crate) fn of(form: &Form, dialect: MockClassicDialect) -> Self {
        let is_set = |name: &str| form.text(name).is_some_and(|value| value != "0");
        // Documented for geetest: JSON by default.
        let is_geetest = form.text("method").is_some_and(|method| method.starts_with("geetest"));
        Self {
            is_json: is_set("json") || (is_geetest && !form.0.contains_key("json")),
            is_open: is_set("header_acao"),
            dialect,
            dump: if is_set("debug_dump") { dump(form) } else { String::new() },
        }
    }

    fn reply(&self, plain: &str, json: impl FnOnce() -> String) -> MockReply {
        let reply_text = if self.is_json { json() } else { plain.to_owned() };
        MockReply {
            status: 200,
            body: format!("{}{reply_text}", self.dump),
            is_json: self.is_json && self.dump.is_empty(),
            is_open: self.is_open,
        }
    }

    fn code(&self, code: &str) -> MockReply {
        if code == "ERROR_UPLOAD" && self.dialect == MockClassicDialect::CaptchaAi {
            // Observed at the real one: plain, whatever was requested.
            let plain = Self { is_json: false, ..self.clone() };
            return plain.reply(code, String::new);
        }
        let text = error_text(code).filter(|_| self.dialect == MockClassicDialect::TwoCaptcha);
        self.reply(code, || match text {
            Some(text) => {
                format!(r#"{{"status":0,"request":{},"error_text":{}}}"#, quoted(code), quoted(text))
            }
            None => format!(r#"{{"status":0,"request":{}}}"#, quoted(code)),
        })
    }

    /// A reply of bare text: a balance, or an accepted report.
    pub(crate) fn bare(&self, text: &str) -> MockReply {
        self.reply(text, || format!(r#"{{"status":1,"request":{}}}"#, quoted(text)))
    }

    pub(crate) fn ok(&self, text: &str) -> MockReply {
        self.reply(&format!("OK|{text}"), || format!(r#"{{"status":1,"request":{}}}"#, quoted(text)))
    }

    fn accepted(&self, id: u64, method: &str) -> MockReply {
        // captchaai sends a number here, and only here.
        if self.dialect == MockClassicDialect::CaptchaAi && method == "userrecaptcha" {
            return self.reply(&format!("OK|{id}"), || format!(r#"{{"status":1,"request":{id}}}"#));
        }
        self.ok(&id.to_string())
    }

    /// A reply in JSON, also to a request for plain text.
    pub(crate) fn json(&self, json: String) -> MockReply {
        Self { is_json: true, ..self.clone() }.reply("", || json)
    }

    fn answer(&self, solved: &SolvedTask<'_>) -> MockReply {
        let answer = solved.answer;
        let price = solved.with_price.then(|| price(solved.price_micros));
        let after = price.as_ref().map(|price| format!("|{price}")).unwrap_or_default();
        self.reply(&format!("OK|{}{after}", answer.plain()), || {
            let name = if answer.beside == AnswerExtras::InResult { "result" } else { "request" };
            let mut json = format!(r#"{{"status":1,"{name}":{}"#, answer.value);
            match answer.beside {
                AnswerExtras::Nothing => {}
                AnswerExtras::InResult | AnswerExtras::UserAgent => add(&mut json, "user_agent", AGENT),
                AnswerExtras::Useragent => add(&mut json, "useragent", AGENT),
            }
            if let Some(price) = &price {
                add(&mut json, "price", price);
            }
            json.push('}');
            json
        })
    }
}

fn add(json: &mut String, name: &str, text: &str) {
    _ = write!(json, r#","{name}":{}"#, quoted(text));
}

fn quoted(text: &str) -> Value {
    Value::String(text.to_owned())
}

/// A price with five decimal places, as `get2` sends it: `0.00299`.
pub(crate) fn price(micros: u64) -> String {
    format!("{}.{:05}", micros / 1_000_000, micros % 1_000_000 / 10)
}

/// A balance with two decimal places, or more if they are not zero: `3.50`.
fn balance(micros: u64) -> String {
    let full = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let short = full.trim_end_matches('0');
    let places = short.len() - short.find('.').unwrap_or(0) - 1;
    full[..short.len() + 2_usize.saturating_sub(places)].to_owned()
}

/// The text that 2captcha sends with some of its codes.
fn error_text(code: &str) -> Option<&'static str> {
    Some(match code {
        "ERROR_WRONG_USER_KEY" => {
            "You've provided key parameter value in incorrect format, it should contain 32 symbols."
        }
        "ERROR_KEY_DOES_NOT_EXIST" => "The key you've provided does not exist.",
        "ERROR_ZERO_BALANCE" => "You don't have money on your account.",
        "ERROR_PAGEURL" => "pageurl parameter is missing or malformed in your request.",
        "ERROR_CAPTCHA_UNSOLVABLE" => "Workers could not solve the captcha.",
        _ => return None,
    })
}

/// Prints a form as PHP's `print_r` does.
fn dump(form: &Form) -> String {
    let mut text = String::from("Array\n(\n");
    for (name, part) in &form.0 {
        let value = match part {
            Part::Text(text) => text.clone(),
            Part::File(bytes) => format!("({} bytes)", bytes.len()),
        };
        _ = writeln!(text, "    [{name}] => {value}");
    }
    text.push_str(")\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_spelled_as_the_provider_spells_it() {
        for (micros, text) in
            [(0, "0.00"), (3_500_000, "3.50"), (3_497_010, "3.49701"), (10_000_000, "10.00"), (1, "0.000001")]
        {
            assert_eq!(balance(micros), text);
        }
        assert_eq!(price(2_990), "0.00299");
        assert_eq!(price(850), "0.00085");
    }
}
