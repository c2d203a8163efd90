//! Makes answers in the shape that each method has. A token names its task, so that a test can see whose token it is.
//! The answer to a picture depends on the picture alone.

use crate::in_php::{AnswerShape, ProviderRequest};
use crate::rng::MockRng;
use crate::settings::MockClassicDialect;
use quittance_protocol::classic::Form;
use serde_json::{Map, Value, json};

const LETTERS: &[u8] = b"abcdefghjkmnpqrstuvwxyz23456789";
const DIGITS: &[u8] = b"0123456789";
const TOKEN: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
const TOKEN_CHARS: usize = 300;
pub(crate) const AGENT: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MockAnswer {
    /// The value of `request` in the reply.
    pub value: Value,
    pub beside: AnswerExtras,
}

/// What a JSON reply holds beside the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerExtras {
    Nothing,
    /// The answer is in `result` and not in `request`, with `user_agent`.
    InResult,
    UserAgent,
    Useragent,
}

impl MockAnswer {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { value: Value::String(text.into()), beside: AnswerExtras::Nothing }
    }

    /// The answer as a plain text reply holds it.
    pub(crate) fn plain(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// Makes the answer to a task. A task of the JSON protocol has no `dialect`: its answers are the same for every
    /// dialect.
    pub(crate) fn make(
        id: &str,
        luck: u64,
        wanted: &ProviderRequest,
        form: &Form,
        dialect: Option<MockClassicDialect>,
    ) -> Self {
        let is_captchaai = dialect == Some(MockClassicDialect::CaptchaAi);
        let mut own = MockRng::of(luck, "answer", 0);
        let token =
            |own: &mut MockRng, prefix: &str| format!("{prefix}sim-{id}-{}", own.letters(TOKEN, TOKEN_CHARS));
        // What was shown decides; the task's own luck must not.
        let seed = wanted.picture_digest.map_or(luck, |digest| {
            u64::from_be_bytes(digest[..8].try_into().expect("a digest has more than eight bytes"))
        });
        let mut picture_rng = MockRng::of(seed, "seen", 0);
        match wanted.shape {
            AnswerShape::Text => {
                let alphabet = if form.text("numeric") == Some("1") { DIGITS } else { LETTERS };
                Self::text(picture_rng.letters(alphabet, 8))
            }
            shape if dialect.is_none() && shape.is_structured() => structured(shape, &mut picture_rng, form),
            AnswerShape::Grid if is_captchaai => Self::text(json!(cells(&mut picture_rng, form)).to_string()),
            AnswerShape::Bls => Self::text(json!(cells(&mut picture_rng, form)).to_string()),
            AnswerShape::Grid => Self::text(format!("click:{}", joined(cells(&mut picture_rng, form), "/"))),
            AnswerShape::Coordinates => {
                let points = [(); 2]
                    .map(|()| format!("x={},y={}", picture_rng.between(1, 300), picture_rng.between(1, 300)));
                Self::text(format!("coordinate:{}", points.join(";")))
            }
            AnswerShape::Canvas => {
                let points = [(); 8].map(|()| picture_rng.between(1, 300));
                Self::text(format!("canvas:{};", joined(points, ",")))
            }
            AnswerShape::Boxes => {
                let (x, y) = (picture_rng.between(1, 200), picture_rng.between(1, 200));
                Self {
                    value: json!([{"xMin": x, "yMin": y, "xMax": x + 40, "yMax": y + 30}]),
                    beside: AnswerExtras::Nothing,
                }
            }
            AnswerShape::Rotate => {
                let angles = (0..wanted.pictures)
                    .map(|_| i64::try_from(picture_rng.between(0, 18)).unwrap_or(0) * 20 - 160);
                Self::text(joined(angles, "|"))
            }
            AnswerShape::Token(prefix) => Self::text(token(&mut own, prefix)),
            AnswerShape::Bound(prefix) => {
                let beside = if is_captchaai { AnswerExtras::InResult } else { AnswerExtras::UserAgent };
                Self { value: token(&mut own, prefix).into(), beside }
            }
            AnswerShape::TokenAndAgent(prefix) => {
                let beside = if is_captchaai { AnswerExtras::UserAgent } else { AnswerExtras::Useragent };
                Self { value: token(&mut own, prefix).into(), beside }
            }
            AnswerShape::Geetest => geetest(id, &mut own, form, dialect),
            AnswerShape::Fields(names) => {
                let field =
                    |name: &&str| ((*name).to_owned(), format!("sim-{id}-{}", own.letters(TOKEN, 32)).into());
                Self {
                    value: Value::Object(names.iter().map(field).collect()),
                    beside: AnswerExtras::Nothing,
                }
            }
            AnswerShape::Piped => {
                Self::text(format!("{}|r=eu-west-1|metabgclr=transparent", token(&mut own, "")))
            }
            AnswerShape::Cookie => {
                let value = token(&mut own, "");
                Self::text(format!("datadome={value}; Max-Age=31536000; Path=/; Secure; SameSite=Lax"))
            }
        }
    }
}

/// Answers that the classic protocol writes as text, such as points and cells, as the JSON values of the other
/// protocol.
fn structured(shape: AnswerShape, picture_rng: &mut MockRng, form: &Form) -> MockAnswer {
    let mut point = || json!({"x": picture_rng.between(1, 300), "y": picture_rng.between(1, 300)});
    let value = match shape {
        AnswerShape::Coordinates => json!([point(), point()]),
        AnswerShape::Canvas => json!([[point(), point(), point(), point()]]),
        AnswerShape::Rotate => json!(i64::try_from(picture_rng.between(0, 18)).unwrap_or(0) * 20 - 160),
        _ => json!(cells(picture_rng, form)),
    };
    MockAnswer { value, beside: AnswerExtras::Nothing }
}

fn geetest(id: &str, own: &mut MockRng, form: &Form, dialect: Option<MockClassicDialect>) -> MockAnswer {
    let validate = format!("sim-{id}-{}", own.letters(TOKEN, 24));
    let is_captchaai = dialect == Some(MockClassicDialect::CaptchaAi);
    let prefix = if dialect == Some(MockClassicDialect::TwoCaptcha) { "geetest_" } else { "" };
    let fields: Map<String, Value> = [
        ("challenge", form.text("challenge").unwrap_or_default().to_owned()),
        ("seccode", format!("{validate}|jordan")),
        ("validate", validate),
    ]
    .map(|(name, value)| (format!("{prefix}{name}"), value.into()))
    .into_iter()
    .collect();
    let value = Value::Object(fields);
    // The one sends an object, the other a string that holds one.
    let value = if is_captchaai { Value::String(value.to_string()) } else { value };
    MockAnswer { value, beside: AnswerExtras::Nothing }
}

fn cells(picture_rng: &mut MockRng, form: &Form) -> Vec<u64> {
    let side = |name: &str| form.text(name).and_then(|count| count.parse::<u64>().ok());
    let is_large = form.text("grid_size") == Some("4x4");
    let default = if is_large { 4 } else { 3 };
    let rows = side("rows").or(side("recaptcharows")).unwrap_or(default).clamp(1, 30);
    let cols = side("cols").or(side("recaptchacols")).unwrap_or(default).clamp(1, 30);
    let chosen: Vec<u64> = (1..=rows * cols).filter(|_| picture_rng.strikes(0.35)).collect();
    if chosen.is_empty() { vec![1] } else { chosen }
}

fn joined<T: ToString>(items: impl IntoIterator<Item = T>, by: &str) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(by)
}
