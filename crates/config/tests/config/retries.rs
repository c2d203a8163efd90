//! Limits of retries, replays after an outage and webhooks, as operators write them, and mistakes in them.

use super::Place;
use quittance_engine::Settings;
use quittance_lifecycle::{Money, RetryLimits};
use std::time::Duration;

const FILE: &str = r#"
[retry]
max_retries = 4

[kinds.turnstile]
max_retries = 9
retry_base = "2s"

[webhooks]
pauses = ["5s", "1m"]
off_after = "3d"

[dead_letters]
replay_after_outage = true
replay_money_per_hour = 0.5

[[provider]]
name = "main"
dialect = "2captcha"
url = "https://a.example"
key_env = "K"
max_retries = 0
retry_base = "3s"
retry_cap = "9s"

[[tenant]]
name = "team-a"
key_env = "K"
retry_cap = "30s"
"#;

fn settings(file: &str) -> Settings {
    let config = Place::with_file(file).env(&[("K", "a-key-of-some-length")]).load().unwrap();
    let mut settings = Settings::new(0, |_| None);
    config.apply(&mut settings);
    settings
}

const fn secs(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

#[test]
fn limits_are_read_for_all_for_a_kind_a_tenant_and_a_provider() {
    let settings = settings(FILE);
    assert_eq!(settings.policy.max_retries, Some(4));
    let kind = RetryLimits { max_retries: Some(9), base: secs(2), cap: None };
    assert_eq!(settings.retries.kinds.into_iter().collect::<Vec<_>>(), [("turnstile".to_owned(), kind)]);
    let tenant = RetryLimits { cap: secs(30), ..RetryLimits::NONE };
    assert_eq!(settings.retries.tenants.into_iter().collect::<Vec<_>>(), [("team-a".to_owned(), tenant)]);
    let provider = RetryLimits { max_retries: Some(0), base: secs(3), cap: secs(9) };
    assert_eq!(settings.providers[0].retry, provider);
}

#[test]
fn webhooks_and_replays_after_an_outage_are_settings() {
    let settings = settings(FILE);
    assert_eq!(settings.policy.webhook_pauses.as_slice(), [5, 60].map(Duration::from_secs));
    assert_eq!(settings.webhook_off_after, Duration::from_secs(3 * 24 * 3600));
    assert!(settings.outage_replays.is_on);
    assert_eq!(settings.outage_replays.money_per_hour, Some(Money(500_000)));
    let unlimited = self::settings("[retry]\nmax_retries = \"unlimited\"\n[webhooks]\npauses = []");
    assert_eq!(unlimited.policy.max_retries, None);
    assert_eq!(unlimited.policy.webhook_pauses.as_slice(), []);
    assert!(!unlimited.outage_replays.is_on, "only if the operator wants it");
}

#[test]
fn limits_that_make_no_sense_are_reported() {
    let many = format!("[webhooks]\npauses = [{}]", vec!["\"1s\""; 17].join(", "));
    for (file, words) in [
        ("[retry]\nmax_retries = 51", &["retry.max_retries", "0 to 50"][..]),
        (
            "[kinds.turnstile]\nretry_base = \"2m\"",
            &["kinds.turnstile.retry_base", "longer than the longest"],
        ),
        ("[kinds.turnstile]\nretry_cap = \"10ms\"", &["kinds.turnstile.retry_cap", "`retry_base` up to"]),
        ("[webhooks]\npauses = [\"0s\"]", &["webhooks.pauses", "a list of at most 16 durations"]),
        (&many, &["webhooks.pauses", "at most 16"]),
    ] {
        let complaint = Place::with_file(file).complaint();
        assert!(words.iter().all(|word| complaint.contains(word)), "{words:?}: {complaint}");
    }
}
