//! Translates answers between the two protocols. Our form is that of the classic protocol: one text or one JSON
//! document, and extra fields. A `solution` is an object whose fields depend on the kind. No field of a provider's
//! solution is lost.

use crate::classic::json_document;
use crate::json::dialect::JsonDialect;
use quittance_lifecycle::Payload;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// How the answer of a kind is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SolutionForm {
    /// A token under the old name that reCAPTCHA uses, and that hCaptcha has inherited.
    Response,
    Token,
    Text,
    Cookie,
    /// `click:3/8/9`
    Clicks,
    /// `coordinate:x=39,y=59;x=252,y=72`
    Points,
    /// `canvas:1,2,3,4;`
    Lines,
    Angle,
    Boxes,
    /// Several fields.
    Fields,
}

/// The form of each kind. A kind that is not listed is a token.
const FORMS: &[(&str, SolutionForm)] = &[
    ("recaptcha_v2", SolutionForm::Response),
    ("recaptcha_v3", SolutionForm::Response),
    ("hcaptcha", SolutionForm::Response),
    ("image", SolutionForm::Text),
    ("text", SolutionForm::Text),
    ("audio", SolutionForm::Text),
    ("grid", SolutionForm::Clicks),
    ("bls", SolutionForm::Clicks),
    ("coordinates", SolutionForm::Points),
    ("canvas", SolutionForm::Lines),
    ("rotate", SolutionForm::Angle),
    ("bounding_box", SolutionForm::Boxes),
    ("datadome", SolutionForm::Cookie),
    ("geetest", SolutionForm::Fields),
    ("geetest_v4", SolutionForm::Fields),
    ("capy", SolutionForm::Fields),
    ("lemin", SolutionForm::Fields),
    ("amazon_waf", SolutionForm::Fields),
    ("tencent", SolutionForm::Fields),
];

/// Fields that hold the answer itself, the most likely first.
const MAIN: &[&str] = &["gRecaptchaResponse", "token", "text", "cookie", "answers", "cf_clearance"];

/// Fields that only make sense together: none of them alone is the answer.
const TOGETHER: &[&[&str]] = &[
    &["challenge", "validate"],
    &["lot_number", "pass_token"],
    &["captcha_voucher"],
    &["challengekey"],
    &["challenge_id"],
    &["ticket", "randstr"],
];

/// The `solution` for an answer.
#[must_use]
pub fn solution(dialect: JsonDialect, kind: &str, payload: &Payload) -> Map<String, Value> {
    let form = FORMS.iter().find(|(of, _)| *of == kind).map_or(SolutionForm::Token, |(_, form)| *form);
    let document = || serde_json::from_str::<Value>(&payload.text).ok().filter(Value::is_object);
    let is_document = payload.is_json || form == SolutionForm::Fields;
    let mut solution = match document().filter(|_| is_document) {
        Some(Value::Object(fields)) => {
            fields.into_iter().map(|(name, value)| (bare(kind, name), value)).collect()
        }
        _ => main_fields(dialect, kind, form, payload),
    };
    for (name, text_of) in &payload.extras {
        let name = if name == "user_agent" { "userAgent" } else { name };
        if !solution.contains_key(name) {
            solution.insert(name.to_owned(), typed(text_of));
        }
    }
    solution
}

/// Adds the browser to a Turnstile token if the provider named none: the user agent of the order, or an empty text in
/// dialects whose clients need the field.
pub fn name_the_agent(
    dialect: JsonDialect,
    kind: &str,
    requested_agent: Option<&str>,
    solution: &mut Map<String, Value>,
) {
    if kind != "turnstile" || solution.contains_key("userAgent") {
        return;
    }
    if let Some(agent) = requested_agent.or(dialect.facts().turnstile_has_agent.then_some("")) {
        solution.insert("userAgent".to_owned(), Value::from(agent));
    }
}

/// A field name without the name of the puzzle, which the classic protocol sometimes puts before every field.
fn bare(kind: &str, name: String) -> String {
    match name.strip_prefix("geetest_") {
        Some(bare) if kind == "geetest" => bare.to_owned(),
        _ => name,
    }
}

fn main_fields(
    dialect: JsonDialect,
    kind: &str,
    form: SolutionForm,
    payload: &Payload,
) -> Map<String, Value> {
    let text = payload.text.as_str();
    let whole =
        || serde_json::from_str::<Value>(text).ok().filter(|value| payload.is_json || value.is_array());
    let mut fields = Map::new();
    let is_taken = |name: &str| payload.extras.contains_key(name);
    let mut put = |name: &str, value: Value| {
        // What came along under this name is something else, so the answer came under another.
        let free = MAIN.iter().copied().find(|other| is_taken(name) && !is_taken(other)).unwrap_or(name);
        fields.insert(free.to_owned(), value);
    };
    match form {
        SolutionForm::Response => {
            put("gRecaptchaResponse", text.into());
            if dialect == JsonDialect::TwoCaptcha && !is_taken("token") {
                put("token", text.into());
            }
        }
        SolutionForm::Text => put("text", text.into()),
        SolutionForm::Cookie => put("cookie", text.into()),
        SolutionForm::Clicks => put("click", clicks(text).or_else(whole).unwrap_or_else(|| text.into())),
        SolutionForm::Points => {
            put("coordinates", points(text).or_else(whole).unwrap_or_else(|| text.into()));
        }
        SolutionForm::Lines => put("canvas", text.strip_prefix("canvas:").unwrap_or(text).into()),
        SolutionForm::Angle => put("rotate", text.parse::<i64>().map_or_else(|_| text.into(), Value::from)),
        SolutionForm::Boxes => put("bounding_boxes", whole().unwrap_or_else(|| text.into())),
        SolutionForm::Token | SolutionForm::Fields => put("token", text.into()),
    }
    if kind == "cloudflare_challenge" && !is_taken("cookies") {
        put("cookies", json!({"cf_clearance": text}));
    }
    fields
}

/// The answer in a `solution`, or `None` if it is empty. The fields identify the answer, so `kind` can be any: a poll
/// does not know it.
#[must_use]
pub fn read_solution(kind: &str, solution: &Map<String, Value>) -> Option<Payload> {
    if solution.values().all(|value| value.is_null() || *value == json!("")) {
        return None;
    }
    Some(read_known(kind, solution).unwrap_or_else(|| {
        let text = Value::Object(solution.clone()).to_string();
        Payload { text, is_json: true, extras: BTreeMap::new() }
    }))
}

fn read_known(kind: &str, solution: &Map<String, Value>) -> Option<Payload> {
    let has = |name: &&str| solution.contains_key(*name);
    if TOGETHER.iter().any(|names| names.iter().all(has)) {
        return None;
    }
    let (main, text, is_json) = MAIN
        .iter()
        .find_map(|name| Some((*name, text_of(solution.get(*name)?)?, false)))
        .or_else(|| shaped(solution))
        .or_else(|| only_one(solution))?;
    let mut extras = BTreeMap::new();
    for (name, value) in solution {
        let is_repeated = MAIN.contains(&name.as_str()) && value.as_str() == Some(&text);
        let is_made_up = kind == "cloudflare_challenge" && *value == json!({"cf_clearance": text});
        if name == main || is_repeated || is_made_up || value.is_null() {
            continue;
        }
        let name = if name.eq_ignore_ascii_case("userAgent") { "user_agent" } else { name };
        let words = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if !words.is_empty() {
            extras.insert(name.to_owned(), words);
        }
    }
    Some(Payload { text, is_json, extras })
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Answers that have a special text form in the classic protocol.
fn shaped(solution: &Map<String, Value>) -> Option<(&'static str, String, bool)> {
    if let Some(click) = solution.get("click") {
        let squares: Option<Vec<_>> = click.as_array()?.iter().map(text_of).collect();
        return Some(("click", format!("click:{}", squares?.join("/")), false));
    }
    if let Some(coordinates) = solution.get("coordinates") {
        let point =
            |point: &Value| Some(format!("x={},y={}", text_of(point.get("x")?)?, text_of(point.get("y")?)?));
        let is_a_point = |point: &Value| point.as_object().is_some_and(|point| point.len() == 2);
        let points = coordinates.as_array().filter(|points| points.iter().all(is_a_point))?;
        let points: Option<Vec<_>> = points.iter().map(point).collect();
        return Some(("coordinates", format!("coordinate:{}", points?.join(";")), false));
    }
    if let Some(lines) = solution.get("canvas") {
        return Some(("canvas", format!("canvas:{}", text_of(lines)?), false));
    }
    if let Some(angle) = solution.get("rotate") {
        return Some(("rotate", text_of(angle)?, false));
    }
    let boxes = solution.get("bounding_boxes").filter(|boxes| boxes.is_array())?;
    Some(("bounding_boxes", boxes.to_string(), true))
}

/// The answer of a solution with the single field `answer`. Under another name the name would be lost.
fn only_one(solution: &Map<String, Value>) -> Option<(&'static str, String, bool)> {
    let text = solution.get("answer").and_then(text_of).filter(|_| solution.len() == 1)?;
    Some(("answer", text, false))
}

fn clicks(text: &str) -> Option<Value> {
    let squares = text.strip_prefix("click:")?.split('/').map(|square| square.parse::<u64>().ok());
    squares.collect::<Option<Vec<_>>>().map(Value::from)
}

fn points(text: &str) -> Option<Value> {
    let number = |text: &str| text.parse::<serde_json::Number>().ok();
    let point = |point: &str| {
        let (x, y) = point.split_once(',')?;
        Some(json!({"x": number(x.strip_prefix("x=")?)?, "y": number(y.strip_prefix("y=")?)?}))
    };
    let text = text.strip_prefix("coordinates:").or_else(|| text.strip_prefix("coordinate:"))?;
    let points = text.split(';').filter(|part| !part.is_empty()).map(point);
    points.collect::<Option<Vec<_>>>().map(Value::from)
}

/// Turns the text of an extra field back into the JSON type that it came from.
fn typed(text: &str) -> Value {
    let is_typed = text.starts_with(['{', '[']) || matches!(text, "true" | "false") || {
        text.parse::<serde_json::Number>().is_ok_and(|number| number.to_string() == text)
    };
    if !is_typed {
        return Value::from(text);
    }
    json_document::in_text(text).unwrap_or_else(|| Value::from(text))
}

#[cfg(test)]
mod tests;
