//! The body that creates, replaces or changes a pool, and its description in the OpenAPI document.

use quittance_gateway::v1::problem::Refused;
use quittance_gateway::v1::request_body::{
    JsonBody, KIND_PATTERN, MIN_LIFE_MAX_S, by_name, check_param_name, or_null, param, seconds,
};
use quittance_lifecycle::terms::{KIND_BYTES_MAX, TENANT_BYTES_MAX, TEXT_BYTES_MAX};
use quittance_lifecycle::{Money, Value as Param};
use quittance_ports::PoolSpec;
use quittance_ports::{Goal, Hours, SIZE_MAX};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The most bytes of a pool's parameters. Every node reads all pools all the time, so they must be small.
const PARAMS_BYTES_MAX: usize = 16 * 1024;
const HOURS_MAX: usize = 16;
const HOURS_PATTERN: &str = "^[0-9]{1,2}:[0-9]{2}-[0-9]{1,2}:[0-9]{2}$";
/// The largest budget, in units of the provider's currency. Its millionths are still exact in a float.
const BUDGET_MAX: u64 = 1_000_000_000;
const BUDGET_PATTERN: &str = r"^[0-9]{1,9}(\.[0-9]{1,6})?$";
const SERVICE_LEVELS: std::ops::RangeInclusive<f64> = 0.001..=0.999;

/// Settings of a pool. In a request to change a pool, an absent field stays as it is, and null resets it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// In a change, null removes a parameter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_level: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    pub budget_per_hour: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hours: Option<Vec<String>>,
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    pub min_life_s: Option<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// Applies a merge patch (RFC 7396) to a pool. A new goal replaces the old one; a new kind starts without parameters.
pub(crate) fn change_pool(body: JsonBody, before: &PoolSpec) -> Result<PoolSpec, Refused> {
    let mut base = body_of(before);
    if body.has("service_level") || body.has("size") {
        base.remove("service_level");
        base.remove("size");
    }
    let is_other_kind = body.has("kind") && !body.is("kind", &before.kind);
    if is_other_kind {
        base.remove("params");
    }
    let is_kept = |name: &str| !is_other_kind && !body.has_entry("params", name);
    let bytes =
        before.params.iter().filter(|(name, value)| matches!(value, Param::Bytes(_)) && is_kept(name));
    let bytes: Vec<_> = bytes.map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut spec = read_pool(body.merge_into(base), before.name.clone(), Some(&before.tenant))?;
    spec.params.extend(bytes);
    Ok(spec)
}

/// The body that sets this pool, without parameters that are bytes.
fn body_of(spec: &PoolSpec) -> Map<String, Value> {
    let text = |(name, value): (&String, &Param)| match value {
        Param::Text(text) => Some((name.clone(), Value::from(text.as_str()))),
        Param::Bytes(_) => None,
    };
    let params: Map<String, Value> = spec.params.iter().filter_map(text).collect();
    let (service_level, size) = match spec.goal {
        Goal::Served { permille } => (Some(f64::from(permille) / 1000.0), None),
        Goal::Fixed { size } => (None, Some(size)),
    };
    let fields = [
        ("tenant", json!(spec.tenant)),
        ("kind", json!(spec.kind)),
        ("params", params.into()),
        ("service_level", json!(service_level)),
        ("size", json!(size)),
        ("budget_per_hour", json!(spec.budget.map(|budget| budget.to_string()))),
        ("hours", json!(spec.hours.iter().map(ToString::to_string).collect::<Vec<_>>())),
        ("min_life_s", json!(spec.min_life.map(|life| life.as_secs_f64()))),
        ("enabled", json!(spec.is_on)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Reads a pool of this name. `only_tenant` is the default tenant.
pub(crate) fn read_pool(
    mut body: JsonBody,
    name: String,
    only_tenant: Option<&str>,
) -> Result<PoolSpec, Refused> {
    let tenant = body.text("tenant")?.or_else(|| only_tenant.map(str::to_owned));
    let tenant = tenant.ok_or_else(|| {
        Refused::bad("tenant", "`tenant` is missing: the tenant whose orders the pool serves.")
    })?;
    let spec = PoolSpec {
        name,
        tenant,
        kind: body.kind()?,
        params: read_params(&mut body)?,
        goal: read_goal(&mut body)?,
        budget: read_budget(&mut body)?,
        hours: read_hours(&mut body)?,
        min_life: body.seconds("min_life_s", 0, MIN_LIFE_MAX_S)?,
        is_on: body.truth("enabled")?.unwrap_or(true),
    };
    body.done()?;
    Ok(spec)
}

fn read_params(body: &mut JsonBody) -> Result<BTreeMap<String, Param>, Refused> {
    let mut params = BTreeMap::new();
    let mut bytes = 0;
    for (name, value) in body.objects("params")? {
        check_param_name("params", &name)?;
        let field = format!("params.{name}");
        let Some(value @ Param::Text(_)) = param(value) else {
            return Err(Refused::bad(&field, "It must be a string, a number, true or false."));
        };
        bytes += name.len() + value.as_bytes().len();
        params.insert(name, value);
    }
    if bytes > PARAMS_BYTES_MAX {
        let words = format!("The params of a pool have at most {PARAMS_BYTES_MAX} bytes.");
        return Err(Refused::bad("params", words));
    }
    Ok(params)
}

fn read_goal(body: &mut JsonBody) -> Result<Goal, Refused> {
    match (body.take("service_level"), body.take("size")) {
        (Some(share), None) => permille(&share).map(|permille| Goal::Served { permille }).ok_or_else(|| {
            Refused::bad(
                "service_level",
                "`service_level` is the share of orders to serve, from 0.001 to 0.999.",
            )
        }),
        (None, Some(size)) => whole(&size)
            .map(|size| Goal::Fixed { size })
            .ok_or_else(|| Refused::bad("size", format!("`size` is a whole number from 1 to {SIZE_MAX}."))),
        (None, None) => {
            Err(Refused::bad("service_level", "A pool needs a `service_level` such as 0.95, or a `size`."))
        }
        (Some(_), Some(_)) => {
            Err(Refused::bad("size", "A pool has a `service_level` or a `size`, and not both."))
        }
    }
}

fn read_budget(body: &mut JsonBody) -> Result<Option<Money>, Refused> {
    let Some(value) = body.take("budget_per_hour") else { return Ok(None) };
    let money = match &value {
        Value::String(text) => read_money(text),
        value => value.as_f64().filter(|units| (0.0..=BUDGET_MAX as f64).contains(units)).map(in_micros),
    };
    money.map(Some).ok_or_else(|| {
        let words = "`budget_per_hour` is a sum in the currency of the provider's account, such as \"0.5\".";
        Refused::bad("budget_per_hour", words)
    })
}

fn read_hours(body: &mut JsonBody) -> Result<Vec<Hours>, Refused> {
    let bad = |words: String| Refused::bad("hours", words);
    let hours = match body.take("hours") {
        None => return Ok(Vec::new()),
        Some(Value::Array(hours)) if hours.len() <= HOURS_MAX => hours,
        Some(_) => {
            return Err(bad(format!("`hours` is a list of at most {HOURS_MAX} parts of the day.")));
        }
    };
    let read = |part: &Value| part.as_str().and_then(|text| Hours::parse(text).ok());
    let hours: Option<Vec<_>> = hours.iter().map(read).collect();
    hours.ok_or_else(|| bad("A part of the day is written like \"08:00-20:30\", in UTC.".to_owned()))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is at most 999, and not negative"
)]
fn permille(share: &Value) -> Option<u32> {
    let share = share.as_f64().filter(|share| SERVICE_LEVELS.contains(share))?;
    Some((share * 1000.0).round() as u32)
}

/// Reads a whole number. In JSON, 5 and 5.0 are equal.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within its bounds")]
fn whole(size: &Value) -> Option<u32> {
    let size = size.as_f64().filter(|size| size.fract() == 0.0)?;
    (1.0..=f64::from(SIZE_MAX)).contains(&size).then_some(size as u32)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the caller checks the bounds")]
fn in_micros(units: f64) -> Money {
    Money((units * 1e6).round() as u64)
}

/// Reads a decimal without a float.
fn read_money(text: &str) -> Option<Money> {
    let (units, places) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str, most: usize| {
        (1..=most).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !is_number(units, 9) || !is_number(places, 6) {
        return None;
    }
    let units: u64 = units.parse().ok()?;
    let micros: u64 = format!("{places:0<6}").parse().ok()?;
    Some(Money(units * 1_000_000 + micros))
}

/// Describes the body of a new pool in the OpenAPI document.
pub(crate) struct NewPool;

impl ToSchema for NewPool {}

impl ToSchema for PoolChange {}

fn budget_schema() -> OneOfBuilder {
    OneOfBuilder::new()
        .item(ObjectBuilder::new().schema_type(Type::String).pattern(Some(BUDGET_PATTERN)))
        .item(
            ObjectBuilder::new()
                .schema_type(Type::Number)
                .minimum(Some(0.0))
                .maximum(Some(BUDGET_MAX as f64)),
        )
        .item(ObjectBuilder::new().schema_type(Type::Null))
        .description(Some(
            "Most that the pool may spend per hour, in the currency of the provider's account.",
        ))
}

fn hours_schema() -> ArrayBuilder {
    let part = ObjectBuilder::new().schema_type(Type::String).pattern(Some(HOURS_PATTERN));
    ArrayBuilder::new().schema_type(or_null(Type::Array)).items(part).max_items(Some(HOURS_MAX)).description(
        Some("Times of day, in UTC, during which the pool is filled; default always. A range may cross midnight."),
    )
}

impl PartialSchema for NewPool {
    fn schema() -> RefOr<Schema> {
        settings_schema(false).required("kind").into()
    }
}

impl PartialSchema for PoolChange {
    fn schema() -> RefOr<Schema> {
        settings_schema(true).into()
    }
}

/// The fields of a pool. In a change, null removes a parameter.
fn settings_schema(is_change: bool) -> ObjectBuilder {
    let text = |most| ObjectBuilder::new().schema_type(Type::String).max_length(Some(most));
    let tenant = text(TENANT_BYTES_MAX)
        .schema_type(or_null(Type::String))
        .description(Some("Tenant whose orders the pool serves; optional if no tenant is configured."));
    let kind = text(KIND_BYTES_MAX).min_length(Some(1)).pattern(Some(KIND_PATTERN));
    let value = OneOfBuilder::new()
        .item(text(TEXT_BYTES_MAX))
        .item(ObjectBuilder::new().schema_type(Type::Number))
        .item(ObjectBuilder::new().schema_type(Type::Boolean));
    let value = match is_change {
        true => value.item(ObjectBuilder::new().schema_type(Type::Null)),
        false => value,
    };
    let level = ObjectBuilder::new()
        .schema_type(or_null(Type::Number))
        .minimum(Some(*SERVICE_LEVELS.start()))
        .maximum(Some(*SERVICE_LEVELS.end()))
        .description(Some("Ratio of orders that the stock should serve. Either this or `size`."));
    let size = ObjectBuilder::new()
        .schema_type(or_null(Type::Integer))
        .minimum(Some(1.0))
        .maximum(Some(f64::from(SIZE_MAX)))
        .description(Some("Fixed number of answers to keep."));
    let enabled = ObjectBuilder::new()
        .schema_type(or_null(Type::Boolean))
        .description(Some("Whether the pool buys answers. A pool that is off is kept but buys nothing."));
    ObjectBuilder::new()
        .description(Some("A pool: keeps the stock of one target at a level."))
        .property("tenant", tenant)
        .property("kind", kind)
        .property(
            "params",
            by_name(value, "Parameters of its orders: the same as those of the orders that it serves."),
        )
        .property("service_level", level)
        .property("size", size)
        .property("budget_per_hour", budget_schema())
        .property("hours", hours_schema())
        .property("min_life_s", seconds(0, MIN_LIFE_MAX_S, "Life that its answers must have left."))
        .property("enabled", enabled)
        .additional_properties(Some(AdditionalProperties::FreeForm(false)))
        .examples([json!({
            "tenant": "crawler",
            "kind": "turnstile",
            "params": { "sitekey": "0x4AAAAAAA", "pageurl": "https://shop.example.com/login" },
            "service_level": 0.95,
            "budget_per_hour": "0.5",
            "hours": ["08:00-20:00"],
        })])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read_as_they_are_written() {
        for (text, micros) in [("0", 0), ("1", 1_000_000), ("0.5", 500_000), ("12.000001", 12_000_001)] {
            assert_eq!(read_money(text), Some(Money(micros)), "{text}");
        }
        assert_eq!(read_money("999999999.999999"), Some(Money(999_999_999_999_999)));
        for odd in ["", ".5", "1.", "-1", "+1", "1e3", "1,5", "0.0000001", "1234567890", "1.5.2", " 1"] {
            assert_eq!(read_money(odd), None, "{odd}");
        }
        assert_eq!(in_micros(0.000_001), Money(1));
        assert_eq!(in_micros(BUDGET_MAX as f64), Money(BUDGET_MAX * 1_000_000));
    }

    #[test]
    fn goals_are_within_their_bounds() {
        assert_eq!(permille(&json!(0.95)), Some(950));
        assert_eq!((permille(&json!(0.001)), permille(&json!(0.999))), (Some(1), Some(999)));
        for odd in [json!(0), json!(1), json!(95), json!(-0.5), json!("0.95"), json!(0.9999), json!([])] {
            assert_eq!(permille(&odd), None, "{odd}");
        }
        assert_eq!(
            (whole(&json!(5)), whole(&json!(5.0)), whole(&json!(1000))),
            (Some(5), Some(5), Some(1000))
        );
        for odd in [json!(0), json!(1.5), json!(-1), json!(1001), json!(1e300), json!("5"), json!(true)] {
            assert_eq!(whole(&odd), None, "{odd}");
        }
    }
}
