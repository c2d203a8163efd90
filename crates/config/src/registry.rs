//! Every setting there is, as data: its name, what it may look like, its default and one line of help. Parsing, the
//! environment's names, `config show`, the nearest right name in an error and the table in docs/config.md follow from it.

mod alerts;
mod gateway;
mod orders;
mod providers;
mod stock;
mod usage;

use super::setting::Setting;
use super::value::{SPAN_MOST, Shape, Value};
use quittance_lifecycle::{Policy, Preset};
use std::time::Duration;

pub fn settings() -> impl Iterator<Item = &'static Setting> {
    [orders::ROWS, providers::ROWS, gateway::ROWS, stock::ROWS, usage::ROWS, alerts::ROWS]
        .into_iter()
        .flatten()
}

const MOMENT: Duration = Duration::from_millis(1);
/// More than zero.
const POSITIVE: Shape = Shape::Span { least: MOMENT, most: SPAN_MOST };
/// Zero switches it off.
const ANY: Shape = Shape::Span { least: Duration::ZERO, most: SPAN_MOST };
const SOME: Shape = Shape::Count { least: 1, most: 1_000_000 };
const BYTES: Shape = Shape::Count { least: 1024, most: 1 << 40 };
const REUSE: Shape = Shape::OneOf(&["by_kind", "shared", "exclusive"]);
const PRESET_NAMES: &[&str] = &["patient", "standard", "conservative", "aggressive"];

pub fn preset(name: &str) -> Preset {
    match name {
        "standard" => Preset::Standard,
        "conservative" => Preset::Conservative,
        "aggressive" => Preset::Aggressive,
        _ => Preset::Patient,
    }
}

const fn row(
    path: &'static str,
    shape: Shape,
    default: fn(Preset) -> Option<Value>,
    help: &'static str,
) -> Setting {
    Setting { path, shape, default, help }
}

/// One that nobody needs to set.
const fn optional(path: &'static str, shape: Shape, help: &'static str) -> Setting {
    row(path, shape, |_| None, help)
}

fn text(text: &str) -> Option<Value> {
    Some(Value::Text(text.into()))
}

const fn span(span: Duration) -> Option<Value> {
    Some(Value::Span(span))
}

fn count(count: impl TryInto<u64>) -> Option<Value> {
    Some(Value::Count(count.try_into().unwrap_or(u64::MAX)))
}

const fn flag(flag: bool) -> Option<Value> {
    Some(Value::Flag(flag))
}

fn policy(preset: Preset) -> Policy {
    Policy::DEFAULT.with_preset(preset)
}
