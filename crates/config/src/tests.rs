//! Configurations as people write them, right and wrong, through `Config::load`.

mod errors;
mod fields;
mod gateway;
mod layers;
mod stock;
mod store;

use super::{Config, ConfigErrors, Environment, Secret, Sources, StoreUrl, lines, object};
use quittance_engine::Settings;
use quittance_lifecycle::{FaultClass, Money, Policy, Preset, Reuse};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// A folder to start in, with a config file or without.
pub(crate) struct Place {
    folder: TempDir,
    variables: Vec<(String, String)>,
    sources: Sources,
}

impl Place {
    pub(crate) fn empty() -> Self {
        Self { folder: TempDir::new().unwrap(), variables: Vec::new(), sources: Sources::default() }
    }

    pub(crate) fn with_file(text: &str) -> Self {
        let place = Self::empty();
        std::fs::write(place.path("quittance.toml"), text).unwrap();
        place
    }

    pub(crate) fn env(mut self, variables: &[(&str, &str)]) -> Self {
        self.variables.extend(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        self
    }

    pub(crate) fn set(mut self, overrides: &[&str]) -> Self {
        self.sources.overrides.extend(overrides.iter().map(|words| (*words).into()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn load(&self) -> Result<Config, ConfigErrors> {
        Config::load(&self.sources, &self.variables.iter().cloned().collect(), self.folder.path())
    }

    /// The error, with the folder left out.
    pub(crate) fn complaint(&self) -> String {
        let folder = format!("{}/", self.folder.path().display());
        self.load().expect_err("it must not be taken").to_string().replace(&folder, "")
    }
}

pub(crate) fn config_with(overrides: &[&str]) -> Config {
    Place::empty().set(overrides).load().unwrap()
}

fn show(config: &Config) -> String {
    lines(config).iter().map(|line| format!("{line}\n")).collect()
}

fn show_json(config: &Config) -> serde_json::Value {
    object(config)
}

/// A small configuration with a provider and a tenant; other tools rely on these names.
const SMALL: &str = r#"
listen = "127.0.0.1:8780"
public_url = "http://127.0.0.1:8780"        # absent: no callbacks, polling only
[store]
url = "embedded:./quittance-data"           # later also redis://... and postgres://...
[targets]
allow = ["*.example.org"]                   # page hosts that may be automated
images = true
[[provider]]
name = "main"
protocol = "classic"
profile = "captchaai"                       # or "2captcha"
url = "https://ocr.example.com/"
key_env = "CAPTCHAAI_API_KEY"               # or key_file
[[tenant]]
name = "team-a"
key_env = "TEAM_A_KEY"                      # or key_file
[timing]                                    # every duration, in "120s" / "250ms" form
callback_wait = "120s"
in_doubt_wait = "180s"
first_poll = "5s"
poll_interval = "5s"
deadline = "300s"
[retry]
preset = "patient"                          # standard, conservative, aggressive, or base/cap/jitter/limits by class
"#;

/// With something in every table.
const FULL: &str = r#"
callback_secret_file = "secret"
[retry]
preset = "conservative"
jitter = "full"
unsettled_doubt = "dead_letter"
[retry.limits]
busy = 7
[keys]
proxy_counts = true
window = "10m"
[provider_rules]
retry_share = 0.25
[prices]
turnstile = 0.00299
image = 0.0005
[usage]
detail_days = 3
[reuse]
default = "exclusive"
[reuse.kinds]
hcaptcha = "shared"
lemin = "by_kind"
[reuse.targets]
"*.example.org" = "shared"
"shop.example.org" = "exclusive"
[kinds.recaptcha_v2]
life = "100s"
margin = "30s"
[kinds.image]
life = "forever"
[kinds.brand_new]
new = true
single_use = false
[[provider]]
name = "second-hand"
profile = "2captcha"
url = "https://two.example.com"
key_env = "TWO_KEY"
trip_at = 9
[provider.faults]
ERROR_BAD_PROXY = "busy"
"ERROR: 1001" = "unreachable"
[provider.prices]
image = "0.001"
[[tenant]]
name = "team-a"
key_env = "TEAM_A_KEY"
reuse = "shared"
[[lifetimes]]
host = "*.example.org"
life = "90s"
margin = "20s"
[[lifetimes]]
kind = "turnstile"
provider = "second-hand"
life = "280s"
[[lifetimes]]
provider = "second-hand"
margin = "10s"
[pools.login]
kind = "turnstile"
service_level = 0.95
budget_per_hour = 0.75
hours = ["08:00-12:00", "13:00-20:30"]
min_life = "60s"
enabled = false
[pools.login.params]
sitekey = "0x4A"
pageurl = "https://example.com/login"
[pools.night-shift]
kind = "recaptcha_v3"
size = 5
params = { googlekey = "6Le", pageurl = "https://example.com/", min_score = 0.3 }
"#;

fn full() -> Place {
    let place = Place::with_file(FULL).env(&[("TWO_KEY", "k2"), ("TEAM_A_KEY", "ka")]);
    std::fs::write(place.path("key"), "the-key-in-a-file\n").unwrap();
    std::fs::write(place.path("secret"), "0f".repeat(32)).unwrap();
    place
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
    assert_eq!(config.policy, Policy { callbacks: true, ..Policy::DEFAULT });
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
    assert_eq!(second.throttle.submit_interval, Duration::from_millis(100), "what the profile knows");
    assert_eq!(
        (second.throttle.trip_at, second.throttle.retry_share),
        (9, 250),
        "its own, and the rule for all"
    );
    assert_eq!(second.codes().classify("ERROR: 1001").class, FaultClass::Unreachable);
    let mut engine = Settings::new(0, |_| None);
    config.apply(&mut engine);
    let price = |kind: &str| engine.prices.get(kind).copied();
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
            Some("SHOP.example.org."),
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

/// All that a configuration means: without the origins, and with its secrets.
fn meaning(config: &Config) -> String {
    let tenants: Vec<_> =
        config.tenants.iter().map(|tenant| tenant.key.any_digest().map(|key| key.0)).collect();
    let providers: Vec<_> =
        config.providers.iter().map(|provider| provider.key.get().map(Secret::reveal)).collect();
    let engine = fields::fields(config);
    let secret = config.callback_secret();
    let config = Config { effective: super::effective::Effective::default(), ..config.clone() };
    format!("{config:#?} {engine:?} {tenants:?} {providers:?} {secret:?}")
}

#[test]
fn what_config_show_prints_is_a_config_that_means_the_same() {
    let same_place = |place: &Place| {
        let first = place.load().unwrap();
        let mut copy = Place::with_file(&show(&first));
        copy.variables.clone_from(&place.variables);
        let second = copy.load().unwrap_or_else(|error| panic!("{error}\n{}", show(&first)));
        (first, second)
    };
    for place in
        [full(), Place::with_file(SMALL), full().set(&["retry.preset=aggressive", "retry.jitter=3s"])]
    {
        let (first, second) = same_place(&place);
        assert_eq!(meaning(&first), meaning(&second));
    }
    // The default store stands where the process was started, and the copy in another folder.
    let (first, mut second) = same_place(&Place::empty());
    assert_eq!(first.store.url, StoreUrl::Embedded("./quittance-data".into()));
    assert!(matches!(&second.store.url, StoreUrl::Embedded(folder) if folder.is_absolute()));
    second.store = first.store.clone();
    assert_eq!(meaning(&first), meaning(&second));
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
        ("first_poll = \"5s\"", "default"),
    ] {
        let expected = format!("{line:<44} # {origin}");
        assert!(text.lines().any(|line| line == expected), "{expected}\n{text}");
    }
    let object = show_json(&config);
    assert_eq!(object["settings"]["timing.task_life"]["value"], "800s");
    assert_eq!(object["settings"]["timing.task_life"]["from"], "environment");
    assert_eq!(object["settings"]["provider_rules.retry_share"]["value"], 0.2);
}

#[test]
fn config_show_never_shows_a_secret() {
    let config = Place::with_file(SMALL).env(&[("CAPTCHAAI_API_KEY", "s3cr3t")]).load().unwrap();
    let (text, object) = (show(&config), show_json(&config));
    for shown in [&text, &object.to_string(), &format!("{config:?}")] {
        assert!(!shown.contains("s3cr3t"), "{shown}");
    }
    assert!(text.contains("# key: set (from env CAPTCHAAI_API_KEY)"), "{text}");
    assert!(text.contains("# key: missing (env TEAM_A_KEY)"), "{text}");
    assert_eq!(object["secrets"]["provider.main.key"]["state"], "set");
    assert_eq!(object["secrets"]["tenant.team-a.key"]["state"], "missing");
    let set = config.providers[0].key.clone();
    assert!(set.is_set() && !format!("{set:?}").contains("s3cr3t"));
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
