//! Configurations as operators write them, each in a folder of its own. The unit tests of the crate use this file,
//! too.

use super::{Config, ConfigErrors, Sources, lines};
use std::path::PathBuf;
use tempfile::TempDir;

/// A folder to start in, with or without a config file.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) sources: Sources,
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
}

pub(crate) fn show(config: &Config) -> String {
    lines(config).iter().map(|line| format!("{line}\n")).collect()
}

/// A small configuration with a provider and a tenant. Other tools rely on these names.
pub(crate) const SMALL: &str = r#"
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
dialect = "captchaai"                       # or "2captcha"
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

/// A configuration with something in every table.
pub(crate) const FULL: &str = r#"
callback_secret_file = "secret"
[retry]
preset = "conservative"
jitter = "full"
when_in_doubt = "dead_letter"
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
dialect = "2captcha"
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
[[budget]]
name = "team-a-images"
limit = "25.00"
period = "month"
at_limit = "cheaper_provider"
tenant = "team-a"
target = "*.example.org"
kind = "image"
provider = "second-hand"
[[budget]]
name = "all"
limit = 0.5
period = "hour"
"#;

pub(crate) fn full() -> Place {
    let place = Place::with_file(FULL).env(&[("TWO_KEY", "k2"), ("TEAM_A_KEY", "ka")]);
    std::fs::write(place.path("key"), "the-key-in-a-file\n").unwrap();
    std::fs::write(place.path("secret"), "0f".repeat(32)).unwrap();
    place
}
