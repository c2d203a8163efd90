//! Every field that the engine, the gateway and the adapters take has a setting, and the setting changes that field alone.

use super::Config;
use super::place::Place;
use crate::setting::{Defaults, row};
use crate::setting_shape::{SettingShape, signal_word};
use crate::setting_table::settings;
use crate::value::SettingValue;
use quittance::ProviderSettings;
use quittance_engine::{Hedging, OutageReplays, Settings, Targets, Throttle};
use quittance_gateway::{Limits, WebhookSettings};
use quittance_lifecycle::{Backoff, KeySettings, Money, Pace, Policy, Preset, Routing, Signal};
use quittance_telemetry::alert::Thresholds;
use std::time::Duration;

/// Takes a struct apart, in full: a new field without a name here does not compile. The fields after the semicolon
/// have no name of their own: they are taken apart in turn, or are not settings.
macro_rules! named {
    ($fields:ident, $type:ident { $($field:ident: $path:literal),* $(,)? $(; $($apart:ident),*)? } = $value:expr) => {
        let $type { $($field,)* $($($apart: _),*)? } = $value;
        $($fields.push(($path, format!("{:?}", $field)));)*
    };
}

type Fields = Vec<(&'static str, String)>;

pub(super) fn fields(config: &Config) -> Fields {
    let mut fields = Vec::new();
    let mut engine = Settings::new(0, |_| None);
    config.apply(&mut engine);
    of_policy(&mut fields, engine.policy);
    named!(fields, KeySettings { proxy_counts: "keys.proxy_counts", window: "keys.window"; secret } = engine.keys);
    named!(fields, Routing { rule: "routing.rule", busy_wait: "routing.busy_wait" } = engine.routing.routing);
    named!(
        fields,
        OutageReplays {
            is_on: "dead_letters.replay_after_outage",
            per_hour: "dead_letters.replays_per_hour",
            money_per_hour: "dead_letters.replay_money_per_hour",
            per_second: "dead_letters.replays_per_second",
            age_max: "dead_letters.replay_age_max",
        } = engine.outage_replays
    );
    named!(fields, Hedging { after: "hedging.after", budget: "hedging.money_per_day" } = engine.hedging);
    named!(fields, Targets { allow: "targets.allow", images: "targets.images", undescribed: "targets.undescribed"; vendors } = &engine.targets);
    named!(
        fields,
        Throttle {
            submit_interval: "provider_rules.submit_interval",
            trip_at: "provider_rules.trip_at",
            probe: "provider_rules.probe",
            retry_share: "provider_rules.retry_share",
            retry_burst: "provider_rules.retry_burst",
            retry_trickle: "provider_rules.retry_trickle",
        } = engine.providers[0].throttle
    );
    named!(fields, Settings {
        submits_max: "engine.submits_max",
        polls_max: "engine.polls_max",
        steps_max: "engine.steps_max",
        follow_ups_max: "engine.follow_ups_max",
        backlog_max: "engine.backlog_max",
        claim_max: "engine.claim_max",
        claim_duration: "engine.claim_duration",
        sweep_interval: "engine.sweep_interval",
        sweep_pause: "engine.sweep_pause",
        poll_wait: "engine.poll_wait",
        place_wait: "engine.place_wait",
        others_first: "engine.others_first",
        count_interval: "engine.count_interval",
        usage_days: "usage.detail_days",
        sums_days: "usage.sum_days",
        webhook_off_after: "webhooks.off_after";
        outage_replays, retries, node, policy, keys, kinds, lifetimes, targets, tenants, meaning, is_shared, callback, rules, on_commit, providers, in_hand_max, routing, budgets, hedging
    } = &engine);
    named!(
        fields,
        Limits {
            connections_max: "listener.connections_max",
            requests_max: "listener.requests_max",
            body_bytes_max: "listener.body_bytes_max",
            bodies_bytes_max: "listener.bodies_bytes_max",
            head_bytes_max: "listener.head_bytes_max",
            read_wait: "listener.read_wait",
            write_wait: "listener.write_wait",
            idle_wait: "listener.idle_wait",
        } = config.listener
    );
    named!(fields, WebhookSettings {
        allow: "webhooks.allow",
        wait: "webhooks.wait";
        secrets, root_secret, currency
    } = config.webhook_settings().unwrap());
    of_alerts(&mut fields, &config.alerts.thresholds);
    fields.push(("alerts.command", format!("{:?}", config.alerts.command)));
    fields
}

fn of_alerts(fields: &mut Fields, thresholds: &Thresholds) {
    named!(
        fields,
        Thresholds {
            dead_new: "alerts.dead_new",
            dead_age: "alerts.dead_age",
            provider_paused: "alerts.provider_paused",
            provider_broken_for: "alerts.provider_broken_for",
            balance_low: "alerts.balance_low",
            balance_lasts: "alerts.balance_lasts",
            budget_used_permille: "alerts.budget_used",
            budget_low_permille: "alerts.budget_low",
            budget_spent: "alerts.budget_spent",
            in_doubt_permille: "alerts.in_doubt_rate",
            in_doubt_attempts: "alerts.in_doubt_attempts",
            webhooks_failed: "alerts.webhooks_failed",
            endpoint_off: "alerts.endpoint_off",
            polled_permille: "alerts.polled_rate",
            polled_answers: "alerts.polled_answers",
            pool_starves_for: "alerts.pool_starves_for",
            store_away_for: "alerts.store_away_for",
            records_unreadable: "alerts.records_unreadable",
            spill_for: "alerts.spill_for",
            node_silent_for: "alerts.node_silent_for",
            clear_after: "alerts.clear_after",
        } = thresholds
    );
}

fn of_policy(fields: &mut Fields, policy: Policy) {
    named!(fields, Policy {
        when_in_doubt: "retry.when_in_doubt",
        submit_wait: "timing.submit_wait",
        in_doubt_wait: "timing.in_doubt_wait",
        in_doubt_min: "timing.in_doubt_min",
        timer_late: "timing.timer_late",
        callback_wait: "timing.callback_wait",
        first_poll: "timing.first_poll",
        poll_interval: "timing.poll_interval",
        task_life: "timing.task_life",
        timeout: "timing.deadline",
        share_window: "timing.share_window",
        callback_lag: "timing.callback_lag",
        refusal_hold: "timing.refusal_hold",
        keep: "store.keep",
        max_retries: "retry.max_retries",
        webhook_pauses: "webhooks.pauses";
        account_max_retries, callbacks, callback_address, callback_lost, backoff, faults, pace, poll_rules, clock_skew, unsolvable, result_kept,
        other_currency, can_fail_over, hedge_after, routing, quickest, queue_wait, no_budget_until
    } = policy);
    named!(fields, Backoff { base: "retry.base", cap: "retry.cap", jitter: "retry.jitter" } = policy.backoff);
    named!(fields, Pace { p50: "timing.p50", p95: "timing.p95", p99: "timing.p99" } = policy.pace);
    for class in Signal::ALL {
        let path = settings()
            .map(|row| row.path)
            .find(|path| path.strip_prefix("retry.limits.") == Some(&signal_word(class)));
        fields.push((
            path.expect("every class has a limit"),
            policy.faults.rule(class).limit.map_or("deadline".into(), |limit| limit.to_string()),
        ));
    }
}

/// A value next to the default, as text.
fn changed(path: &str) -> String {
    match row(path).default(&Defaults::of(Preset::Patient)) {
        Some(SettingValue::Duration(duration)) => {
            format!("{}ms", (duration + Duration::from_millis(1)).as_millis())
        }
        Some(SettingValue::Count(count)) => (count + 1).to_string(),
        Some(SettingValue::Ratio(ratio)) => SettingValue::Ratio(ratio + 1).to_string(),
        Some(SettingValue::Flag(flag)) => (!flag).to_string(),
        Some(SettingValue::List(_)) if row(path).shape == SettingShape::List(&SettingShape::Pause) => {
            "7s".into()
        }
        Some(SettingValue::List(_)) => "x.org".into(),
        Some(SettingValue::Text(text)) => match row(path).shape {
            SettingShape::OneOf(words) => (*words.iter().find(|word| **word != text).unwrap()).into(),
            SettingShape::Count { .. } => "7".into(),
            SettingShape::Duration { .. } => "7s".into(),
            shape => panic!("{path}: what else could {shape:?} be?"),
        },
        Some(SettingValue::Money(amount)) => SettingValue::Money(Money(amount.0 + 1)).to_string(),
        None if row(path).shape == SettingShape::Flag => "false".into(),
        None if path == "hedging.after" => "p95".into(),
        None if row(path).shape == SettingShape::Money => "0.5".into(),
        None => "7s".into(),
    }
}

fn hedged() -> Place {
    Place::with_file("[hedging]\nmoney_per_day = 1\n")
}

#[test]
fn every_field_has_a_name_that_moves_it_and_nothing_else() {
    let usual = fields(&Place::empty().load().unwrap());
    let is_fixed = |path: &str| row(path).shape == SettingShape::Count { least: 0, most: 0, or: None };
    for (path, _) in usual.iter().filter(|(path, _)| !is_fixed(path)) {
        let flag = format!("{path}={}", changed(path));
        // Hedging is for those who have set a budget for it.
        let is_hedging = *path == "hedging.after";
        let (place, usual) = match is_hedging {
            true => (hedged(), &fields(&hedged().load().unwrap())),
            false => (Place::empty(), &usual),
        };
        let config = place.set(&[&flag]).load().unwrap_or_else(|error| panic!("{error}"));
        let moved = fields(&config).into_iter().zip(usual).filter(|(now, then)| now != *then);
        let moved: Vec<&str> = moved.map(|((path, _), _)| path).collect();
        assert_eq!(moved, [*path], "{flag}");
    }
}

#[test]
fn every_setting_sets_a_field() {
    let fields = fields(&Place::empty().load().unwrap());
    let elsewhere = [
        "listen",
        "public_url",
        "callback_secret_env",
        "callback_secret_file",
        "store.url",
        "store.password_env",
        "store.password_file",
        "store.ca_file",
        "store.listen_url",
        "store.migrate",
        "store.home",
        "node.name",
        "store.spill_max",
        "retry.preset",
        "reuse.default",
        "listener.hosts",
        "tls.listen",
        "tls.cert_file",
        "tls.key_file",
        "gateway.dialect",
        "admin.key_sha256",
        "admin.key_env",
        "admin.key_file",
        "log.level",
        "log.format",
        "traces.url",
        "alerts.webhook",
        "alerts.webhook_secret_env",
        "alerts.webhook_secret_file",
    ];
    for row in settings().filter(|row| !row.is_open()) {
        let is_field = fields.iter().any(|(path, _)| *path == row.path);
        assert!(is_field ^ elsewhere.contains(&row.path), "{}", row.path);
    }
}

/// The configuration with a real authority in `ca.pem`, under a name that the tests below can write.
fn with_authority(place: Place) -> Config {
    let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap().cert.pem();
    std::fs::write(place.path("ca.pem"), &made).unwrap();
    let mut config = place.env(&[("K", "s3cr3t")]).load().unwrap();
    assert_eq!(config.providers[0].settings.extra_ca, made.into_bytes());
    config.providers[0].settings.extra_ca = b"pem".to_vec();
    config
}

/// A provider with every setting, except those that only the other protocol has.
fn provider(protocol: &str) -> ProviderSettings {
    let file = format!(
        r#"
[[provider]]
name = "main"
url = "https://a.example"
key_env = "K"
connect_wait = "1s"
reply_wait = "2s"
poll_reply_wait = "3s"
poll_quota_per_task = 6
reply_bytes_max = 7000
idle_wait = "8s"
idle_connections_max = 9
submit_interval = "10s"
ca_file = "ca.pem"
{protocol}
[provider.faults]
ERROR_X = "busy"
"#
    );
    with_authority(Place::with_file(&file)).providers[0].settings().unwrap()
}

#[test]
fn every_field_of_a_provider_reaches_its_adapter() {
    for (protocol, expected) in [
        (
            "dialect = \"2captcha\"\npoll_batch_max = 5",
            "Some(5) Some(PollQuota { per_task: 6, slack: 1200 })",
        ),
        ("protocol = \"json\"\ndialect = \"capsolver\"", "None Some(PollQuota { per_task: 6, slack: 0 })"),
    ] {
        let (mut fields, settings) = (Vec::new(), provider(protocol));
        assert_eq!(format!("{:?} {:?}", settings.poll_batch_max, settings.poll_quota), expected);
        named!(
            fields,
            ProviderSettings {
                connect_timeout: "1s",
                submit_timeout: "2s",
                poll_timeout: "3s",
                submit_interval: "Some(10s)",
                response_bytes_max: "7000",
                idle_max: "8s",
                idle_connections_max: "9",
                extra_ca: "[112, 101, 109]",
                codes: "{\"ERROR_X\": Busy}",
                url: "\"https://a.example\"",
                name: "\"main\"",
                key: "ApiKey(..)";
                poll_batch_max,
                poll_quota
            } = settings
        );
        for (expected, found) in fields {
            assert_eq!(found, expected);
        }
    }
}
