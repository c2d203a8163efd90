//! Configurations as operators write them, right and wrong, through the public interface of the crate.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod budgets;
mod errors;
mod gateway;
mod layers;
mod place;
mod prices;
mod provider_choices;
mod retries;
mod stock;
mod store;

use place::{Place, SMALL, full, show};
use quittance_config::{Config, ConfigErrors, Environment, Sources, StoreUrl, lines, object};
use quittance_engine::Settings;
use quittance_lifecycle::{FaultClass, Money, Policy, Preset, Reuse};
use std::path::Path;
use std::time::Duration;

impl Place {
    /// The error, with the folder left out.
    fn complaint(&self) -> String {
        let folder = format!("{}/", self.folder.path().display());
        self.load().expect_err("it must not be taken").to_string().replace(&folder, "")
    }
}

fn config_with(overrides: &[&str]) -> Config {
    Place::empty().set(overrides).load().unwrap()
}

#[test]
fn nothing_set_means_the_defaults_of_the_engine() {
    let config = Place::empty().load().unwrap();
    assert_eq!(config.policy, Policy::DEFAULT);
    assert_eq!(config.listen.to_string(), "127.0.0.1:8780");
    assert_eq!((config.public_url.as_deref(), config.providers.len()), (None, 0));
    assert_eq!(config.callback_secret().unwrap(), None);
}

#[test]
fn a_small_configuration_means_what_it_says() {
    let place = Place::with_file(SMALL).env(&[("CAPTCHAAI_API_KEY", " secret \n")]);
    let config = place.load().unwrap();
    assert_eq!(config.public_url.as_deref(), Some("http://127.0.0.1:8780"));
    let five = Some(Duration::from_secs(5));
    let policy = Policy { callbacks: true, first_poll: five, poll_interval: five, ..Policy::DEFAULT };
    assert_eq!(config.policy, policy);
    assert_eq!(
        config.store.url,
        StoreUrl::Embedded(place.path("quittance-data")),
        "meant from where the file is"
    );
    assert_eq!(config.targets.allow[0].to_string(), "*.example.org");
    let [provider] = &config.providers[..] else { panic!("{:?}", config.providers) };
    assert_eq!((provider.name.as_str(), provider.dialect().name()), ("main", "captchaai"));
    assert_eq!(provider.url(), "https://ocr.example.com", "a slash at the end is one too many");
    assert_eq!(provider.key.get().unwrap().reveal(), "secret", "with no space around it");
    let missing = config.tenants[0].key.digest().unwrap_err().to_string();
    assert!(missing.contains("tenant.team-a.key") && missing.contains("export"), "{missing}");
}

#[test]
fn every_setting_is_understood() {
    let config = full().load().unwrap();
    let policy = Policy::DEFAULT.with_preset(Preset::Conservative);
    assert_eq!(config.policy.backoff.base, policy.backoff.base);
    assert_eq!(config.policy.faults.rule(FaultClass::Busy).limit, Some(7), "a setting beats the preset");
    assert_eq!(config.policy.faults.rule(FaultClass::Unreachable).limit, Some(5), "the rest is the preset's");
    assert_eq!(config.callback_secret().unwrap(), Some([0x0f; 32]));
    let [second] = &config.providers[..] else { panic!("one provider") };
    assert_eq!(second.codes().classify("ERROR: 1001").class, FaultClass::Unreachable);
    let mut engine = Settings::new(0, |_| None);
    config.apply(&mut engine);
    assert_eq!(
        engine.providers[0].throttle.submit_interval,
        Duration::from_millis(100),
        "what the dialect knows"
    );
    assert_eq!(
        (engine.providers[0].throttle.trip_at, engine.providers[0].throttle.retry_share),
        (9, 250),
        "its own, and the rule for all"
    );
    let price = |kind: &str| engine.providers[0].prices.get(kind).copied();
    assert_eq!(price("turnstile"), Some(Money(2_990)), "the price for all");
    assert_eq!((price("image"), price("hcaptcha")), (Some(Money(1_000)), None), "the first provider's own");
    assert_eq!((engine.usage_days, engine.sums_days), (3, 400));
    let kinds = config.kinds();
    assert_eq!(kinds("recaptcha_v2").unwrap().life, Some(Duration::from_secs(100)));
    assert_eq!(
        kinds("recaptcha_v2").unwrap().pace,
        quittance_protocol::kinds::kind("recaptcha_v2").unwrap().pace
    );
    assert!(!kinds("brand_new").unwrap().single_use);
    assert_eq!(kinds("never_heard_of"), None);
}

#[test]
fn an_exact_host_beats_every_wildcard_and_a_longer_wildcard_beats_a_shorter_one() {
    let file = r#"
[reuse.targets]
"*" = "by_kind"
"*.org" = "shared"
"*.shop.example.org" = "exclusive"
"shop.example.org" = "shared"
"*.example.org" = "by_kind"
"a.org" = "exclusive"
"#;
    let reuse = Place::with_file(file).load().unwrap().reuse;
    for (host, expected) in [
        ("shop.example.org", Some("shop.example.org")),
        ("a.shop.example.org", Some("*.shop.example.org")),
        ("b.example.org", None),
        ("a.org", Some("a.org")),
        ("b.org", Some("*.org")),
        ("b.net", None),
    ] {
        let found = reuse.setting("default", "turnstile", Some(host)).map(|setting| setting.name);
        assert_eq!(found, expected.map(|pattern| format!("reuse.targets.\"{pattern}\"")), "{host}");
    }
}

#[test]
fn the_nearer_to_the_caller_the_stronger_is_the_rule_of_reuse() {
    let reuse = full().load().unwrap().reuse;
    for (tenant, kind, host, expected) in [
        ("other", "turnstile", None, Some((Reuse::Exclusive, "reuse.default"))),
        ("other", "hcaptcha", None, Some((Reuse::Shared, "reuse.kinds.hcaptcha"))),
        ("other", "lemin", None, None),
        (
            "other",
            "turnstile",
            Some("a.example.org"),
            Some((Reuse::Shared, r#"reuse.targets."*.example.org""#)),
        ),
        (
            "other",
            "hcaptcha",
            Some("shop.example.org"),
            Some((Reuse::Exclusive, r#"reuse.targets."shop.example.org""#)),
        ),
        ("other", "turnstile", Some("badexample.org"), Some((Reuse::Exclusive, "reuse.default"))),
        ("team-a", "turnstile", Some("shop.example.org"), Some((Reuse::Shared, "tenant.team-a.reuse"))),
    ] {
        let found = reuse.setting(tenant, kind, host);
        let found = found.as_ref().map(|setting| (setting.reuse, setting.name.as_str()));
        assert_eq!(found, expected, "{tenant} {kind} {host:?}");
    }
}

#[test]
fn config_show_says_where_each_value_came_from() {
    let place = Place::with_file(
        "[timing]\n\ndeadline = \"60s\"\ntask_life = \"900s\"\n[retry]\npreset = \"aggressive\"\n",
    )
    .env(&[("QUITTANCE_TIMING_TASK_LIFE", "800s"), ("QUITTANCE_TARGETS_ALLOW", "a.org, *.b.org")])
    .set(&["engine.polls_max=3"]);
    let config = place.load().unwrap();
    let text = show(&config).replace(&format!("{}/", place.folder.path().display()), "");
    for (line, origin) in [
        ("deadline = \"60s\"", "quittance.toml:3"),
        ("task_life = \"800s\"", "environment QUITTANCE_TIMING_TASK_LIFE"),
        ("allow = [\"a.org\", \"*.b.org\"]", "environment QUITTANCE_TARGETS_ALLOW"),
        ("polls_max = 3", "flag --set"),
        ("base = \"500ms\"", "from retry.preset"),
        ("first_poll = \"auto\"", "default"),
    ] {
        let expected = format!("{line:<44} # {origin}");
        assert!(text.lines().any(|line| line == expected), "{expected}\n{text}");
    }
    let object = object(&config);
    assert_eq!(object["settings"]["timing.task_life"]["value"], "800s");
    assert_eq!(object["settings"]["timing.task_life"]["from"], "environment");
    assert_eq!(object["settings"]["provider_rules.retry_share"]["value"], 0.2);
}

#[test]
fn config_show_never_shows_a_secret() {
    let config = Place::with_file(SMALL).env(&[("CAPTCHAAI_API_KEY", "s3cr3t")]).load().unwrap();
    let (text, object) = (show(&config), object(&config));
    for shown in [&text, &object.to_string(), &format!("{config:?}")] {
        assert!(!shown.contains("s3cr3t"), "{shown}");
    }
    assert!(text.contains("# key: set (from env CAPTCHAAI_API_KEY)"), "{text}");
    assert!(text.contains("# key: missing (env TEAM_A_KEY)"), "{text}");
    assert_eq!(object["secrets"]["provider.main.key"]["state"], "set");
    assert_eq!(object["secrets"]["tenant.team-a.key"]["state"], "missing");
    let set = config.providers[0].key.clone();
    assert!(set.get().is_ok() && !format!("{set:?}").contains("s3cr3t"));
}

#[test]
fn the_file_is_the_one_that_was_named_or_the_one_that_is_there() {
    let place = Place::with_file("[timing]\ndeadline = \"60s\"\n");
    let deadline = |place: &Place| place.load().unwrap().policy.timeout.as_secs();
    assert_eq!(deadline(&place), 60);
    std::fs::write(place.path("other.toml"), "[timing]\ndeadline = \"70s\"\n").unwrap();
    let place = place.env(&[("QUITTANCE_CONFIG", "other.toml")]);
    assert_eq!(deadline(&place), 70);
    let mut place = place;
    place.sources.file = Some(Path::new("quittance.toml").into());
    assert_eq!(deadline(&place), 60);
    place.sources.file = Some("not-there.toml".into());
    let complaint = place.complaint();
    assert!(
        complaint.contains("not-there.toml does not exist") && complaint.contains("--config"),
        "{complaint}"
    );
    let named = Place::empty().env(&[("QUITTANCE_CONFIG", "gone.toml")]).complaint();
    assert!(named.contains("gone.toml") && named.contains("QUITTANCE_CONFIG"), "{named}");
}

#[test]
fn the_real_environment_can_be_read() {
    assert!(Environment::of_process().get("PATH").is_some());
}
