//! The JSON protocol, createTask and getTaskResult, in the dialects of four providers. Requests become the parameters
//! of in.php and res.php, so that both protocols share one ledger.

mod error_names;
mod kinds;
mod task;
mod wording;

pub(crate) use kinds::JsonKind;
pub(crate) use wording::JsonFormat;

use crate::rng::{MockRng, hex};
use crate::settings::MockJsonService;
use crate::world::Endpoint;
use quittance_protocol::classic::{Form, Part};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// CapMonster: a key with this suffix asks for a token that is not from the provider's own stock.
const NO_CACHE: &str = "__nocache";

/// The provider whose JSON protocol the mock provider speaks. The first part of the path chooses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MockDialect {
    #[default]
    #[serde(rename = "2captcha")]
    TwoCaptcha,
    AntiCaptcha,
    CapMonster,
    CapSolver,
}

impl MockDialect {
    const ALL: [Self; 4] = [Self::TwoCaptcha, Self::AntiCaptcha, Self::CapMonster, Self::CapSolver];

    /// The name of the dialect, as in the path and in the ledger.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TwoCaptcha => "2captcha",
            Self::AntiCaptcha => "anticaptcha",
            Self::CapMonster => "capmonster",
            Self::CapSolver => "capsolver",
        }
    }

    /// The task id as this provider writes it.
    pub(crate) fn spelled_id(self, id: u64) -> String {
        match self {
            Self::CapSolver => uuid(id),
            _ => id.to_string(),
        }
    }

    pub(crate) fn id_value(self, id: u64) -> Value {
        match self {
            Self::CapSolver => uuid(id).into(),
            _ => id.into(),
        }
    }

    /// Reads a task id: text at CapSolver, a number in the other dialects. Each dialect refuses the other form.
    fn id_of(self, task_id: &Value) -> Option<u64> {
        match (self, task_id) {
            (Self::CapSolver, Value::String(text)) => {
                let id = u64::from_str_radix(text.rsplit('-').next()?, 16).ok()?;
                (uuid(id) == *text).then_some(id)
            }
            (Self::CapSolver, _) => None,
            (_, task_id) => task_id.as_u64(),
        }
    }
}

/// A UUID with the id in its last group. The rest is derived from the id, so an invented UUID is recognized.
fn uuid(id: u64) -> String {
    let mut rng = MockRng::of(id, "uuid", 0);
    let (head, rest) = (hex(&rng.draw().to_be_bytes()), hex(&rng.draw().to_be_bytes()));
    format!("{}-{}-4{}-a{}-{id:012x}", &head[..8], &head[8..12], &rest[..3], &rest[3..6])
}

/// The kinds of captcha that a report is about. Some providers have one method for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concerns {
    Anything,
    Pictures,
    Recaptcha,
    Hcaptcha,
    Tokens,
}

impl Concerns {
    pub(crate) fn suits(self, method: &str) -> bool {
        let is_picture =
            matches!(method, "post" | "base64" | "rotatecaptcha" | "bounding_box" | "audio" | "bls");
        match self {
            Self::Anything => true,
            Self::Pictures => is_picture,
            Self::Recaptcha => method == "userrecaptcha",
            Self::Hcaptcha => method == "hcaptcha",
            Self::Tokens => !is_picture,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Create,
    Result,
    Balance,
    Good(Concerns),
    Bad(Concerns),
    /// A report that is good or bad, as its body says.
    Feedback,
    Unknown,
}

/// A path of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JsonEndpoint {
    pub dialect: MockDialect,
    /// The name under which the ledger counts it.
    pub name: &'static str,
    method: Method,
}

const COMMON: &[(&str, Method)] =
    &[("createTask", Method::Create), ("getTaskResult", Method::Result), ("getBalance", Method::Balance)];

/// The methods by which each provider takes reports.
fn reports(dialect: MockDialect) -> &'static [(&'static str, Method)] {
    use Concerns::{Anything, Hcaptcha, Pictures, Recaptcha, Tokens};
    match dialect {
        MockDialect::TwoCaptcha => &[
            ("reportCorrect", Method::Good(Anything)),
            ("reportIncorrect", Method::Bad(Anything)),
            ("reportCorrectRecaptcha", Method::Good(Anything)),
            ("reportIncorrectRecaptcha", Method::Bad(Anything)),
            ("reportIncorrectImageCaptcha", Method::Bad(Anything)),
        ],
        MockDialect::AntiCaptcha => &[
            ("reportIncorrectImageCaptcha", Method::Bad(Pictures)),
            ("reportIncorrectRecaptcha", Method::Bad(Recaptcha)),
            ("reportCorrectRecaptcha", Method::Good(Recaptcha)),
            ("reportIncorrectHcaptcha", Method::Bad(Hcaptcha)),
        ],
        MockDialect::CapMonster => &[
            ("reportIncorrectImageCaptcha", Method::Bad(Pictures)),
            ("reportIncorrectTokenCaptcha", Method::Bad(Tokens)),
            ("reportIncorrectRecaptcha", Method::Bad(Tokens)),
        ],
        MockDialect::CapSolver => &[("feedbackTask", Method::Feedback)],
    }
}

impl JsonEndpoint {
    /// The endpoint at this path, or `None` if this protocol has none there.
    pub(crate) fn at(path: &str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        let prefixed = path.split_once('/').and_then(|(first, rest)| {
            Some((*MockDialect::ALL.iter().find(|dialect| dialect.name() == first)?, rest))
        });
        let (dialect, wanted) = prefixed.unwrap_or((MockDialect::TwoCaptcha, path));
        let mut known = COMMON.iter().chain(reports(dialect));
        match known.find(|(name, _)| *name == wanted) {
            Some((name, method)) => Some(Self { dialect, name, method: *method }),
            // Below a provider's own path that provider says that there is no such method.
            None if prefixed.is_some() => Some(Self { dialect, name: "unknown", method: Method::Unknown }),
            None => None,
        }
    }

    /// The endpoint at this path of a service that answers in these dialects.
    pub(crate) fn of_service(path: &str, service: MockJsonService) -> Option<Self> {
        match service {
            MockJsonService::All => Self::at(path),
            MockJsonService::None => None,
            MockJsonService::Only(dialect) => {
                let prefix = format!("/{}/", dialect.name());
                let method = path.strip_prefix(prefix.as_str()).or_else(|| path.strip_prefix('/'))?;
                Self::at(&format!("{prefix}{method}"))
            }
        }
    }

    pub(crate) fn endpoint(self) -> Endpoint {
        if self.method == Method::Create { Endpoint::In } else { Endpoint::Res }
    }

    /// Reads the body, or returns `None` if it is no JSON object. Other errors are reported after the key is checked.
    pub(crate) fn read(self, body: &[u8]) -> Option<(Form, JsonTaskOptions)> {
        let Ok(Value::Object(body)) = serde_json::from_slice(body) else { return None };
        let mut form = Form::default();
        let mut set = |name: &str, text: &str| form.0.insert(name.to_owned(), Part::Text(text.to_owned()));
        if let Some(key) = body.get("clientKey").and_then(Value::as_str) {
            let is_capmonster = self.dialect == MockDialect::CapMonster;
            set("key", key.strip_suffix(NO_CACHE).filter(|_| is_capmonster).unwrap_or(key));
        }
        let mut ask = JsonTaskOptions {
            endpoint: self,
            task_type: String::new(),
            kind: None,
            flaw: None,
            concerns: Concerns::Anything,
        };
        if self.method == Method::Create {
            if let Some(address) = body.get("callbackUrl").and_then(Value::as_str) {
                set("pingback", address);
            }
            ask.flaw = ask.read_task(&body, &mut form).err();
            return Some((form, ask));
        }
        let (action, concerns) = match self.method {
            Method::Result => ("get", Concerns::Anything),
            Method::Balance => ("getbalance", Concerns::Anything),
            Method::Good(concerns) => ("reportgood", concerns),
            Method::Bad(concerns) => ("reportbad", concerns),
            Method::Feedback => {
                match body.get("result").and_then(|result| result.get("invalid")?.as_bool()) {
                    Some(true) => ("reportbad", Concerns::Anything),
                    Some(false) => ("reportgood", Concerns::Anything),
                    None => {
                        ask.flaw = Some("ERROR_BAD_PARAMETERS");
                        ("feedback", Concerns::Anything)
                    }
                }
            }
            Method::Create | Method::Unknown => ("unknown", Concerns::Anything),
        };
        set("action", action);
        if let Some(id) = body.get("taskId").and_then(|task_id| self.dialect.id_of(task_id)) {
            set("id", &id.to_string());
        }
        ask.concerns = concerns;
        Some((form, ask))
    }
}

/// What a request of the JSON protocol holds beside the parameters.
#[derive(Clone, Debug)]
pub(crate) struct JsonTaskOptions {
    pub endpoint: JsonEndpoint,
    /// The type of the task, as the client sent it.
    pub task_type: String,
    pub kind: Option<&'static JsonKind>,
    /// The error code of a request that is refused after its key was accepted.
    pub flaw: Option<&'static str>,
    pub concerns: Concerns,
}

impl JsonTaskOptions {
    fn read_task(&mut self, body: &Map<String, Value>, form: &mut Form) -> Result<(), &'static str> {
        let Some(Value::Object(task)) = body.get("task") else { return Err("ERROR_TASK_ABSENT") };
        check_extras(body)?;
        let task_type = task.get("type").and_then(Value::as_str).ok_or("ERROR_TASK_NOT_SUPPORTED")?;
        task_type.clone_into(&mut self.task_type);
        let dialect = self.endpoint.dialect;
        let (kind, proxies) = JsonKind::named(dialect, task_type, task).ok_or("ERROR_TASK_NOT_SUPPORTED")?;
        self.kind = Some(kind);
        task::read(dialect, kind, proxies, task, form)
    }
}

/// Checks two fields that do not change the task, but are refused if they make no sense.
fn check_extras(body: &Map<String, Value>) -> Result<(), &'static str> {
    let is_soft_id = |value: &Value| match value {
        Value::Null | Value::Number(_) => true,
        Value::String(text) => text.bytes().all(|byte| byte.is_ascii_digit()),
        _ => false,
    };
    let soft_ids = ["softId", "soft_id"].iter().filter_map(|name| body.get(*name));
    let pool = body.get("languagePool").filter(|pool| !pool.is_null());
    let is_pool = pool.is_none_or(|pool| matches!(pool.as_str(), Some("en" | "rn")));
    if is_pool && soft_ids.into_iter().all(is_soft_id) { Ok(()) } else { Err("ERROR_BAD_PARAMETERS") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_path_chooses_the_provider_and_each_has_its_own_reports() {
        let at = |path: &str| JsonEndpoint::at(path).map(|endpoint| (endpoint.dialect, endpoint.name));
        assert_eq!(at("/createTask"), Some((MockDialect::TwoCaptcha, "createTask")));
        assert_eq!(at("/capsolver/feedbackTask"), Some((MockDialect::CapSolver, "feedbackTask")));
        assert_eq!(at("/anticaptcha/reportCorrect"), Some((MockDialect::AntiCaptcha, "unknown")));
        assert_eq!(at("/feedbackTask"), None);
        assert_eq!(at("/unknown/createTask"), None);
    }

    #[test]
    fn an_id_comes_back_only_as_it_was_given_out() {
        for dialect in MockDialect::ALL {
            assert_eq!(dialect.id_of(&dialect.id_value(70_000_000_012)), Some(70_000_000_012));
        }
        assert_eq!(MockDialect::TwoCaptcha.id_of(&json!("70000000012")), None);
        assert_eq!(MockDialect::CapSolver.id_of(&json!(70_000_000_012_u64)), None);
        let forged = uuid(7).replace("-4", "-5");
        assert_eq!(MockDialect::CapSolver.id_of(&json!(forged)), None);
        assert_eq!(uuid(u64::from(u32::MAX)).len(), 36);
    }
}
