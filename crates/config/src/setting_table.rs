//! All settings, as data: name, field, shape and one line of help. From this follow the parser, the names of
//! variables, `config show`, the suggestions in errors and the tables in docs/config.md.
//!
//! A row is `"name" [field] SHAPE, "help";`. The field belongs to the struct that is named above the rows, and has
//! its default there. `[]` is for a setting without a default that code reads by its name, `["value"]` for one with
//! that default, `[override field]` for a field that keeps its content if nothing is set, and `[limit(...)]` for the
//! limit of retries of one fault class.

mod alerts;
mod gateway;
mod orders;
mod providers;
mod stock;

use crate::setting::Setting;
use crate::setting_shape::{DURATION_MAX, SettingShape};
use quittance_lifecycle::MAX_RETRIES_MAX;
use std::time::Duration;

pub(crate) fn settings() -> impl Iterator<Item = &'static Setting> {
    orders::ROWS
        .iter()
        .chain(providers::rows())
        .chain(gateway::rows())
        .chain(stock::rows())
        .chain(alerts::ROWS)
}

/// The settings that a running daemon cannot change: it keeps the value in use until a restart. A name that ends with a dot
/// stands for a table.
pub(crate) const RESTART: &[&str] = &[
    "listen",
    "public_url",
    "callback_secret_",
    "store.url",
    "store.password_",
    "store.ca_file",
    "store.listen_url",
    "store.migrate",
    "store.home",
    "store.spill_max",
    "node.",
    "listener.",
    "tls.",
    "gateway.dialect",
    "alerts.webhook",
    "alerts.webhook_secret_",
    "alerts.command",
    "log.format",
    "traces.",
    "engine.submits_max",
    "engine.follow_ups_max",
];

/// Whether a running daemon keeps the value in use until a restart.
pub(crate) fn needs_restart(setting: &Setting) -> bool {
    let is_meant = |path: &&str| match path.ends_with(['.', '_']) {
        true => setting.path.starts_with(*path),
        false => setting.path == *path,
    };
    RESTART.iter().any(is_meant)
}

/// Whether this is a secret that a running daemon keeps until a restart.
pub(crate) fn is_restart_secret(name: &str) -> bool {
    let (variable, file) = (format!("{name}_env"), format!("{name}_file"));
    settings().any(|row| (row.path == variable || row.path == file) && needs_restart(row))
}

const fn duration(least: Duration, most: Duration) -> SettingShape {
    SettingShape::Duration { least, most, or: None }
}

const fn count(least: u64, most: u64) -> SettingShape {
    SettingShape::Count { least, most, or: None }
}

/// A duration of more than zero.
const POSITIVE: SettingShape = duration(Duration::from_millis(1), DURATION_MAX);
const SECOND_OR_MORE: SettingShape = duration(Duration::from_secs(1), DURATION_MAX);
/// A duration of which zero switches the feature off.
const ANY: SettingShape = duration(Duration::ZERO, DURATION_MAX);
const SOME: SettingShape = count(1, 1_000_000);
/// How often an order may be tried again.
const MOST_RETRIES: SettingShape = count(0, MAX_RETRIES_MAX as u64);
const MOST_RETRIES_HELP: &str = "overrides retry.max_retries for these orders";
const RETRY_BASE_HELP: &str = "overrides retry.base for these orders";
const RETRY_CAP_HELP: &str = "overrides retry.cap for these orders";
const BYTES: SettingShape = count(1024, 1 << 40);
const REUSE: SettingShape = SettingShape::OneOf(&["by_kind", "shared", "exclusive"]);

macro_rules! rows {
    ($section:ident: $($path:literal $field:tt $shape:expr, $help:expr;)*) => {
        &[$($crate::setting_table::row!($section, $path, $field, $shape, $help)),*]
    };
}

macro_rules! row {
    ($section:ident, $path:expr, $field:tt, $shape:expr, $help:expr) => {
        $crate::setting::Setting {
            path: $path,
            shape: $shape,
            help: $help,
            default: $crate::setting_table::default!($section, $field),
            set: $crate::setting_table::set!($section, $field),
        }
    };
}

macro_rules! default {
    ($section:ident, []) => { |_| None };
    ($section:ident, [$value:literal]) => { |_| Some($crate::value::SettingValue::from($value)) };
    ($section:ident, [$($field:ident).+]) => {
        |defaults| {
            let section: &$section = $crate::setting::Section::of(defaults);
            $crate::value::SettingField::value(&section.$($field).+)
        }
    };
    ($section:ident, [override $($field:ident).+]) => { |_| None };
    ($section:ident, [limit($signal:expr)]) => {
        |defaults| $crate::setting_table::orders::limit($crate::setting::Section::of(defaults), $signal)
    };
}

macro_rules! set {
    ($section:ident, [$($value:literal)?]) => { $crate::setting::Set::ByName };
    ($section:ident, [override $($field:ident).+]) => { $crate::setting_table::set!($section, [$($field).+]) };
    ($section:ident, [$($field:ident).+]) => {
        $crate::setting::Set::$section(|section, value| {
            if let Some(content) = $crate::value::SettingField::of(value) {
                section.$($field).+ = content;
            }
        })
    };
    ($section:ident, [limit($signal:expr)]) => {
        $crate::setting::Set::$section(|config, value| $crate::setting_table::orders::set_limit(config, $signal, value))
    };
}

use {default, row, rows, set};
