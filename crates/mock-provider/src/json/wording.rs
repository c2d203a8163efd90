//! The JSON replies of the four providers. They differ in the form of an id, in the fields beside a solution, and in
//! the HTTP status.

use super::{MockDialect, error_names};
use crate::answer::AGENT;
use crate::response_text::{MockReply, NOT_READY, SolvedTask, price};
use serde_json::{Map, Value, json};

/// The format of replies to one client of this protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonFormat {
    pub dialect: MockDialect,
    /// The task that the client polls, and how often it did so before.
    pub polled_task: Option<(u64, u64)>,
}

impl JsonFormat {
    /// The name that this provider gives to a code.
    pub(crate) fn spelled(self, code: &str) -> &str {
        error_names::spelled(self.dialect, code)
    }

    pub(crate) fn code(self, code: &str) -> MockReply {
        if code == NOT_READY {
            return self.pending();
        }
        let status = error_names::status(self.dialect, self.spelled(code));
        reply(status, self.refusal(code, self.polled_task.map(|(id, _)| id)))
    }

    fn refusal(self, code: &str, id: Option<u64>) -> Map<String, Value> {
        let code = self.spelled(code);
        let mut fields = Map::new();
        fields.insert("errorId".to_owned(), error_names::number(self.dialect, code).into());
        fields.insert("errorCode".to_owned(), code.into());
        fields.insert("errorDescription".to_owned(), error_names::description(code).into());
        let has_failed = matches!(code, "ERROR_CAPTCHA_UNSOLVABLE" | "ERROR_TOKEN_EXPIRED");
        if self.dialect == MockDialect::CapSolver && has_failed {
            fields.insert("status".to_owned(), "failed".into());
            fields.extend(id.map(|id| ("taskId".to_owned(), self.dialect.id_value(id))));
        }
        fields
    }

    fn pending(self) -> MockReply {
        let mut fields = self.fine();
        let is_first = self.polled_task.is_none_or(|(_, before)| before == 0);
        let status = if self.dialect == MockDialect::CapSolver && is_first { "idle" } else { "processing" };
        fields.insert("status".to_owned(), status.into());
        self.echo_id(&mut fields, self.polled_task.map(|(id, _)| id));
        reply(200, fields)
    }

    /// The fields that every successful reply has.
    fn fine(self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("errorId".to_owned(), 0.into());
        if self.dialect == MockDialect::CapSolver {
            fields.insert("errorCode".to_owned(), "".into());
            fields.insert("errorDescription".to_owned(), "".into());
        }
        fields
    }

    fn echo_id(self, fields: &mut Map<String, Value>, id: Option<u64>) {
        let id = id.filter(|_| self.dialect == MockDialect::CapSolver);
        fields.extend(id.map(|id| ("taskId".to_owned(), self.dialect.id_value(id))));
    }

    pub(crate) fn accepted(self, id: u64) -> MockReply {
        let mut fields = self.fine();
        fields.insert("taskId".to_owned(), self.dialect.id_value(id));
        if self.dialect == MockDialect::CapSolver {
            fields.insert("status".to_owned(), "idle".into());
        }
        reply(200, fields)
    }

    pub(crate) fn balance(self, micros: u64) -> MockReply {
        let mut fields = self.fine();
        fields.insert("balance".to_owned(), json!(micros as f64 / 1_000_000.0));
        if self.dialect == MockDialect::CapSolver {
            fields.insert("packages".to_owned(), json!([]));
        }
        reply(200, fields)
    }

    pub(crate) fn reported(self) -> MockReply {
        let mut fields = self.fine();
        let (name, text) =
            if self.dialect == MockDialect::CapSolver { ("message", "okay") } else { ("status", "success") };
        fields.insert(name.to_owned(), text.into());
        reply(200, fields)
    }

    pub(crate) fn answer(self, solved: &SolvedTask<'_>) -> MockReply {
        reply(200, self.result(solved))
    }

    fn result(self, solved: &SolvedTask<'_>) -> Map<String, Value> {
        let mut fields = self.fine();
        fields.insert("status".to_owned(), "ready".into());
        fields.insert("solution".to_owned(), self.solution(solved));
        self.echo_id(&mut fields, Some(solved.id));
        let facts = match self.dialect {
            MockDialect::TwoCaptcha | MockDialect::AntiCaptcha => json!({
                "cost": price(solved.price_micros),
                "ip": "127.0.0.1",
                "createTime": solved.taken_at_ms / 1_000,
                "endTime": solved.solved_at_ms / 1_000,
                "solveCount": 1,
            }),
            MockDialect::CapMonster | MockDialect::CapSolver => Value::Null,
        };
        if let Value::Object(facts) = facts {
            fields.extend(facts);
        }
        fields
    }

    fn solution(self, solved: &SolvedTask<'_>) -> Value {
        let kind = solved.kind;
        let mut fields = match &solved.answer.value {
            Value::Object(fields) => return Value::Object(fields.clone()),
            value => Map::from_iter([(kind.solution.to_owned(), value.clone())]),
        };
        if kind.solution == "gRecaptchaResponse" && self.dialect == MockDialect::TwoCaptcha {
            fields.insert("token".to_owned(), solved.answer.value.clone());
        }
        let is_token = matches!(kind.solution, "gRecaptchaResponse" | "token");
        let has_agent = match self.dialect {
            MockDialect::CapMonster => false,
            MockDialect::CapSolver => is_token,
            _ => kind.has_agent,
        };
        if has_agent {
            fields.insert("userAgent".to_owned(), AGENT.into());
        }
        Value::Object(fields)
    }

    /// The body of a callback: the reply of getTaskResult, with the task id.
    pub(crate) fn callback(self, solved: Result<&SolvedTask<'_>, &str>, id: u64) -> String {
        let mut fields = match solved {
            Ok(solved) => self.result(solved),
            Err(code) => self.refusal(code, Some(id)),
        };
        fields.insert("taskId".to_owned(), self.dialect.id_value(id));
        Value::Object(fields).to_string()
    }
}

fn reply(status: u16, fields: Map<String, Value>) -> MockReply {
    MockReply { status, body: Value::Object(fields).to_string(), is_json: true, is_open: false }
}
