//! Answers in the shape that each method has. A token names the task that it came from, so that whoever finds it in the
//! wrong hands knows whose it is; what was read off a picture follows from the picture alone.

use crate::request::{ProviderRequest, Shape};
use crate::rng::Rng;
use crate::settings::Profile;
use quittance_protocol::classic::Form;
use serde_json::{Map, Value, json};

const LETTERS: &[u8] = b"abcdefghjkmnpqrstuvwxyz23456789";
const DIGITS: &[u8] = b"0123456789";
const TOKEN: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
const TOKEN_CHARS: usize = 300;
pub(crate) const AGENT: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// What `request` holds.
    pub value: Value,
    pub beside: Beside,
}

/// What stands beside the answer in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    Nothing,
    /// The answer is in `result` and not in `request`, with `user_agent`.
    InResult,
    UserAgent,
    Useragent,
}

impl Answer {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { value: Value::String(text.into()), beside: Beside::Nothing }
    }

    /// As plain text has it.
    pub(crate) fn plain(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// The JSON protocol is the same whatever the profile: it has none.
    pub(crate) fn make(
        id: &str,
        luck: u64,
        wanted: &ProviderRequest,
        form: &Form,
        profile: Option<Profile>,
    ) -> Self {
        let is_captchaai = profile == Some(Profile::CaptchaAi);
        let mut own = Rng::of(luck, "answer", 0);
        let token =
            |own: &mut Rng, prefix: &str| format!("{prefix}sim-{id}-{}", own.letters(TOKEN, TOKEN_CHARS));
        // What was shown decides; the task's own luck must not.
        let seed = wanted.shown.map_or(luck, |shown| {
            u64::from_be_bytes(shown[..8].try_into().expect("a digest has more than eight bytes"))
        });
        let mut seen = Rng::of(seed, "seen", 0);
        match wanted.shape {
            Shape::Text => {
                let alphabet = if form.text("numeric") == Some("1") { DIGITS } else { LETTERS };
                Self::text(seen.letters(alphabet, 8))
            }
            shape if profile.is_none() && shape.is_structured() => structured(shape, &mut seen, form),
            Shape::Grid if is_captchaai => Self::text(json!(cells(&mut seen, form)).to_string()),
            Shape::Bls => Self::text(json!(cells(&mut seen, form)).to_string()),
            Shape::Grid => Self::text(format!("click:{}", joined(cells(&mut seen, form), "/"))),
            Shape::Coordinates => {
                let points =
                    [(); 2].map(|()| format!("x={},y={}", seen.between(1, 300), seen.between(1, 300)));
                Self::text(format!("coordinate:{}", points.join(";")))
            }
            Shape::Canvas => {
                let points = [(); 8].map(|()| seen.between(1, 300));
                Self::text(format!("canvas:{};", joined(points, ",")))
            }
            Shape::Boxes => {
                let (x, y) = (seen.between(1, 200), seen.between(1, 200));
                Self {
                    value: json!([{"xMin": x, "yMin": y, "xMax": x + 40, "yMax": y + 30}]),
                    beside: Beside::Nothing,
                }
            }
            Shape::Rotate => {
                let angles =
                    (0..wanted.pictures).map(|_| i64::try_from(seen.between(0, 18)).unwrap_or(0) * 20 - 160);
                Self::text(joined(angles, "|"))
            }
            Shape::Token(prefix) => Self::text(token(&mut own, prefix)),
            Shape::Bound(prefix) => {
                let beside = if is_captchaai { Beside::InResult } else { Beside::UserAgent };
                Self { value: token(&mut own, prefix).into(), beside }
            }
            Shape::TokenAndAgent(prefix) => {
                let beside = if is_captchaai { Beside::UserAgent } else { Beside::Useragent };
                Self { value: token(&mut own, prefix).into(), beside }
            }
            Shape::Geetest => geetest(id, &mut own, form, profile),
            Shape::Fields(names) => {
                let field =
                    |name: &&str| ((*name).to_owned(), format!("sim-{id}-{}", own.letters(TOKEN, 32)).into());
                Self { value: Value::Object(names.iter().map(field).collect()), beside: Beside::Nothing }
            }
            Shape::Piped => Self::text(format!("{}|r=eu-west-1|metabgclr=transparent", token(&mut own, ""))),
            Shape::Cookie => {
                let value = token(&mut own, "");
                Self::text(format!("datadome={value}; Max-Age=31536000; Path=/; Secure; SameSite=Lax"))
            }
        }
    }
}

/// What the classic protocol puts into words, the other one leaves as it is.
fn structured(shape: Shape, seen: &mut Rng, form: &Form) -> Answer {
    let mut point = || json!({"x": seen.between(1, 300), "y": seen.between(1, 300)});
    let value = match shape {
        Shape::Coordinates => json!([point(), point()]),
        Shape::Canvas => json!([[point(), point(), point(), point()]]),
        Shape::Rotate => json!(i64::try_from(seen.between(0, 18)).unwrap_or(0) * 20 - 160),
        _ => json!(cells(seen, form)),
    };
    Answer { value, beside: Beside::Nothing }
}

fn geetest(id: &str, own: &mut Rng, form: &Form, profile: Option<Profile>) -> Answer {
    let validate = format!("sim-{id}-{}", own.letters(TOKEN, 24));
    let is_captchaai = profile == Some(Profile::CaptchaAi);
    let prefix = if profile == Some(Profile::TwoCaptcha) { "geetest_" } else { "" };
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
    Answer { value, beside: Beside::Nothing }
}

fn cells(seen: &mut Rng, form: &Form) -> Vec<u64> {
    let side = |name: &str| form.text(name).and_then(|count| count.parse::<u64>().ok());
    let is_large = form.text("grid_size") == Some("4x4");
    let default = if is_large { 4 } else { 3 };
    let rows = side("rows").or(side("recaptcharows")).unwrap_or(default).clamp(1, 30);
    let cols = side("cols").or(side("recaptchacols")).unwrap_or(default).clamp(1, 30);
    let chosen: Vec<u64> = (1..=rows * cols).filter(|_| seen.strikes(0.35)).collect();
    if chosen.is_empty() { vec![1] } else { chosen }
}

fn joined<T: ToString>(items: impl IntoIterator<Item = T>, by: &str) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(by)
}
