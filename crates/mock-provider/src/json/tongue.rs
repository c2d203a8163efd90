//! How the four put things. They agree on the outline and on little else: what an id is, what stands beside a solution,
//! and what the status says.

use super::{Flavour, codes};
use crate::answer::AGENT;
use crate::reply::{Given, NOT_READY, Reply, price};
use serde_json::{Map, Value, json};

/// How a client of this protocol is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tongue {
    pub flavour: Flavour,
    /// The task that it asks for, and how often that was done before.
    pub asked: Option<(u64, u64)>,
}

impl Tongue {
    /// The code as this provider calls it.
    pub(crate) fn spelled(self, code: &str) -> &str {
        codes::spelled(self.flavour, code)
    }

    pub(crate) fn code(self, code: &str) -> Reply {
        if code == NOT_READY {
            return self.pending();
        }
        let status = codes::status(self.flavour, self.spelled(code));
        reply(status, self.refusal(code, self.asked.map(|(id, _)| id)))
    }

    fn refusal(self, code: &str, id: Option<u64>) -> Map<String, Value> {
        let code = self.spelled(code);
        let mut fields = Map::new();
        fields.insert("errorId".to_owned(), codes::number(self.flavour, code).into());
        fields.insert("errorCode".to_owned(), code.into());
        fields.insert("errorDescription".to_owned(), codes::description(code).into());
        let has_failed = matches!(code, "ERROR_CAPTCHA_UNSOLVABLE" | "ERROR_TOKEN_EXPIRED");
        if self.flavour == Flavour::CapSolver && has_failed {
            fields.insert("status".to_owned(), "failed".into());
            fields.extend(id.map(|id| ("taskId".to_owned(), self.flavour.id_value(id))));
        }
        fields
    }

    fn pending(self) -> Reply {
        let mut fields = self.fine();
        let is_first = self.asked.is_none_or(|(_, before)| before == 0);
        let status = if self.flavour == Flavour::CapSolver && is_first { "idle" } else { "processing" };
        fields.insert("status".to_owned(), status.into());
        self.echo_id(&mut fields, self.asked.map(|(id, _)| id));
        reply(200, fields)
    }

    /// What every good answer has.
    fn fine(self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("errorId".to_owned(), 0.into());
        if self.flavour == Flavour::CapSolver {
            fields.insert("errorCode".to_owned(), "".into());
            fields.insert("errorDescription".to_owned(), "".into());
        }
        fields
    }

    fn echo_id(self, fields: &mut Map<String, Value>, id: Option<u64>) {
        let id = id.filter(|_| self.flavour == Flavour::CapSolver);
        fields.extend(id.map(|id| ("taskId".to_owned(), self.flavour.id_value(id))));
    }

    pub(crate) fn accepted(self, id: u64) -> Reply {
        let mut fields = self.fine();
        fields.insert("taskId".to_owned(), self.flavour.id_value(id));
        if self.flavour == Flavour::CapSolver {
            fields.insert("status".to_owned(), "idle".into());
        }
        reply(200, fields)
    }

    pub(crate) fn balance(self, micros: u64) -> Reply {
        let mut fields = self.fine();
        fields.insert("balance".to_owned(), json!(micros as f64 / 1_000_000.0));
        if self.flavour == Flavour::CapSolver {
            fields.insert("packages".to_owned(), json!([]));
        }
        reply(200, fields)
    }

    pub(crate) fn reported(self) -> Reply {
        let mut fields = self.fine();
        let (name, said) =
            if self.flavour == Flavour::CapSolver { ("message", "okay") } else { ("status", "success") };
        fields.insert(name.to_owned(), said.into());
        reply(200, fields)
    }

    pub(crate) fn answer(self, given: &Given<'_>) -> Reply {
        reply(200, self.result(given))
    }

    fn result(self, given: &Given<'_>) -> Map<String, Value> {
        let mut fields = self.fine();
        fields.insert("status".to_owned(), "ready".into());
        fields.insert("solution".to_owned(), self.solution(given));
        self.echo_id(&mut fields, Some(given.id));
        let facts = match self.flavour {
            Flavour::TwoCaptcha | Flavour::AntiCaptcha => json!({
                "cost": price(given.price_micros),
                "ip": "127.0.0.1",
                "createTime": given.taken_at_ms / 1_000,
                "endTime": given.solved_at_ms / 1_000,
                "solveCount": 1,
            }),
            Flavour::CapMonster | Flavour::CapSolver => Value::Null,
        };
        if let Value::Object(facts) = facts {
            fields.extend(facts);
        }
        fields
    }

    fn solution(self, given: &Given<'_>) -> Value {
        let kind = given.kind;
        let mut fields = match &given.answer.value {
            Value::Object(fields) => return Value::Object(fields.clone()),
            value => Map::from_iter([(kind.solution.to_owned(), value.clone())]),
        };
        if kind.solution == "gRecaptchaResponse" && self.flavour == Flavour::TwoCaptcha {
            fields.insert("token".to_owned(), given.answer.value.clone());
        }
        let is_token = matches!(kind.solution, "gRecaptchaResponse" | "token");
        let has_agent = match self.flavour {
            Flavour::CapMonster => false,
            Flavour::CapSolver => is_token,
            _ => kind.has_agent,
        };
        if has_agent {
            fields.insert("userAgent".to_owned(), AGENT.into());
        }
        Value::Object(fields)
    }

    /// What the callback says: what getTaskResult would, and whose it is.
    pub(crate) fn callback(self, given: Result<&Given<'_>, &str>, id: u64) -> String {
        let mut fields = match given {
            Ok(given) => self.result(given),
            Err(code) => self.refusal(code, Some(id)),
        };
        fields.insert("taskId".to_owned(), self.flavour.id_value(id));
        Value::Object(fields).to_string()
    }
}

fn reply(status: u16, fields: Map<String, Value>) -> Reply {
    Reply { status, body: Value::Object(fields).to_string(), is_json: true, is_open: false }
}
