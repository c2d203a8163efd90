//! When an alert is raised, and where it is sent. Zero, or false, switches a rule off.

use super::{ANY, SECOND_OR_MORE, count, rows};
use crate::Config;
use crate::setting::Setting;
use crate::setting_shape::SettingShape;

const MANY: SettingShape = count(0, 1_000_000_000);

pub(super) static ROWS: &[Setting] = rows! {
    Config:
    "alerts.dead_new" [alerts.thresholds.dead_new] MANY,
        "alert when more orders than this become dead letters in an hour";
    "alerts.dead_age" [alerts.thresholds.dead_age] ANY, "alert when a dead letter has waited this long for a person";
    "alerts.provider_paused" [alerts.thresholds.provider_paused] SettingShape::Flag,
        "alert when submits are paused until a person fixes the account";
    "alerts.provider_broken_for" [alerts.thresholds.provider_broken_for] ANY,
        "alert when the provider has not answered for this long";
    "alerts.balance_low" [alerts.thresholds.balance_low] SettingShape::Money, "alert when the balance is less than this";
    "alerts.balance_lasts" [alerts.thresholds.balance_lasts] ANY,
        "alert when the balance lasts less than this, at the spending rate of the last hour";
    "alerts.budget_used" [alerts.thresholds.budget_used_permille] SettingShape::Ratio,
        "alert when a pool has spent this ratio of its hourly budget";
    "alerts.budget_low" [alerts.thresholds.budget_low_permille] SettingShape::Ratio,
        "alert when less than this ratio of a budget is left in its period";
    "alerts.budget_spent" [alerts.thresholds.budget_spent] SettingShape::Flag,
        "alert when a budget allows no purchase, because its limit is reached, or a price is not known";
    "alerts.in_doubt_rate" [alerts.thresholds.in_doubt_permille] SettingShape::Ratio,
        "alert when more than this ratio of the attempts of ten minutes end in doubt";
    "alerts.in_doubt_attempts" [alerts.thresholds.in_doubt_attempts] MANY,
        "fewest attempts for which in_doubt_rate is checked";
    "alerts.webhooks_failed" [alerts.thresholds.webhooks_failed] MANY,
        "alert when more webhook deliveries than this fail in an hour";
    "alerts.endpoint_off" [alerts.thresholds.endpoint_off] SettingShape::Flag,
        "alert when an endpoint of webhooks is switched off (webhooks.off_after)";
    "alerts.polled_rate" [alerts.thresholds.polled_permille] SettingShape::Ratio,
        "alert when more than this ratio of the answers of ten minutes came by poll although a callback was due";
    "alerts.polled_answers" [alerts.thresholds.polled_answers] MANY,
        "fewest answers for which polled_rate is checked";
    "alerts.pool_starves_for" [alerts.thresholds.pool_starves_for] ANY,
        "alert when a pool with demand has been empty for this long";
    "alerts.store_away_for" [alerts.thresholds.store_away_for] ANY,
        "alert when the store has not answered for this long";
    "alerts.records_unreadable" [alerts.thresholds.records_unreadable] SettingShape::Flag,
        "alert when records cannot be read and wait for a person";
    "alerts.spill_for" [alerts.thresholds.spill_for] ANY,
        "alert when something has waited in a node's spill for this long";
    "alerts.node_silent_for" [alerts.thresholds.node_silent_for] ANY,
        "alert when a node has been silent for this long; a node counts as silent after 8 s without a heartbeat";
    "alerts.clear_after" [alerts.thresholds.clear_after] SECOND_OR_MORE,
        "how long the cause must be gone before an alert is cleared";
    "alerts.webhook" [alerts.webhook] SettingShape::WebAddress,
        "address that gets a signed POST for each alert that is raised or cleared; needs a secret";
    "alerts.webhook_secret_env" [] SettingShape::Variable, "variable with the secret that signs the calls to alerts.webhook";
    "alerts.webhook_secret_file" [] SettingShape::File, "file with the secret that signs the calls to alerts.webhook";
    "alerts.command" [alerts.command] SettingShape::Command,
        "program to run for each alert; it gets the alert as JSON on standard input and in QUITTANCE_ALERT_... \
         variables";
};
