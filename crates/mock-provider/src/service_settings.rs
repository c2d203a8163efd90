//! The settings of one of several services: its name, its dialect, and [`Settings`] that play it. They can be read from
//! a table of a file.

use crate::faults::{self, Faults};
use crate::json::MockDialect;
use crate::settings::{
    AccountRules, DEMO_KEY, MillisRange, MockAccount, MockClassicDialect, MockJsonService, MockKey, Settings,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The longest name of a service.
const NAME_CHARS_MAX: usize = 32;

/// The service whose protocols and rules are imitated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MockServiceDialect {
    CaptchaAi,
    #[serde(rename = "2captcha")]
    TwoCaptcha,
    AntiCaptcha,
    CapSolver,
    CapMonster,
}

impl MockServiceDialect {
    pub const ALL: [Self; 5] =
        [Self::CaptchaAi, Self::TwoCaptcha, Self::AntiCaptcha, Self::CapSolver, Self::CapMonster];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CaptchaAi => "captchaai",
            Self::TwoCaptcha => "2captcha",
            Self::AntiCaptcha => "anticaptcha",
            Self::CapSolver => "capsolver",
            Self::CapMonster => "capmonster",
        }
    }

    /// Whether the service has `in.php` and `res.php`.
    #[must_use]
    pub fn is_classic(self) -> bool {
        self != Self::CapSolver
    }

    /// Whether the service has `createTask` and `getTaskResult`.
    #[must_use]
    pub fn is_json(self) -> bool {
        self != Self::CaptchaAi
    }

    /// Lets `settings` play this service alone, without the dialects of others.
    pub fn play(self, settings: &mut Settings) {
        settings.dialect = match self {
            Self::CaptchaAi => MockClassicDialect::CaptchaAi,
            _ => MockClassicDialect::TwoCaptcha,
        };
        settings.json_service = match self {
            Self::CaptchaAi => MockJsonService::None,
            Self::TwoCaptcha => MockJsonService::Only(MockDialect::TwoCaptcha),
            Self::AntiCaptcha => MockJsonService::Only(MockDialect::AntiCaptcha),
            Self::CapSolver => MockJsonService::Only(MockDialect::CapSolver),
            Self::CapMonster => MockJsonService::Only(MockDialect::CapMonster),
        };
    }
}

impl fmt::Display for MockServiceDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MockServiceDialect {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let plain = name.to_ascii_lowercase().replace('-', "");
        let known = Self::ALL.into_iter().find(|dialect| dialect.name() == plain);
        known.ok_or_else(|| {
            format!(
                "there is no dialect `{name}`: write captchaai, 2captcha, anticaptcha, capsolver or capmonster"
            )
        })
    }
}

/// One of several services that one process plays.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceSettings {
    /// The name of the service in the ledger and in the control API.
    pub name: String,
    pub dialect: MockServiceDialect,
    pub settings: Settings,
}

/// One account in a file: who it is, and what it has of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountEntry {
    name: String,
    key: Option<String>,
    balance_micros: Option<u64>,
    threads: Option<u32>,
    #[serde(default)]
    plan_ended: bool,
    slots: Option<u32>,
    #[serde(default)]
    key_blocked: bool,
    price_micros: Option<u64>,
    #[serde(default)]
    price_micros_by_method: BTreeMap<String, u64>,
    solve_ms: Option<MillisRange>,
    #[serde(default)]
    solve_ms_by_method: BTreeMap<String, MillisRange>,
    faults: Option<Value>,
}

impl ServiceSettings {
    /// A service with these settings, apart from the dialect. A name has at most 32 letters, digits, `-` and `_`.
    pub fn new(
        name: impl Into<String>,
        dialect: MockServiceDialect,
        mut settings: Settings,
    ) -> Result<Self, String> {
        let name = name.into();
        let is_plain = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '-' || char == '_');
        if !is_plain || name.is_empty() || name.len() > NAME_CHARS_MAX {
            return Err(format!(
                "`{name}` cannot be the name of a service: use up to {NAME_CHARS_MAX} letters, digits, - and _"
            ));
        }
        dialect.play(&mut settings);
        Ok(Self { name, dialect, settings })
    }

    /// Reads a `[[service]]` table: `name`, `dialect`, `[[service.account]]` tables, `script`, and the fields of
    /// [`Settings`]. What is left out is as in `base`.
    pub fn read(table: &Value, base: &Settings) -> Result<Self, String> {
        let Value::Object(table) = table else {
            return Err("a service is a table: begin it with [[service]]".to_owned());
        };
        let mut fields = table.clone();
        let name = match fields.remove("name") {
            Some(Value::String(name)) => name,
            _ => return Err("a [[service]] has no name: add name = \"a\"".to_owned()),
        };
        let of_service = |why: String| format!("service {name}: {why}");
        let dialect = match fields.remove("dialect") {
            Some(Value::String(dialect)) => dialect.parse().map_err(of_service)?,
            _ => return Err(of_service("it has no dialect: add dialect = \"2captcha\"".to_owned())),
        };
        let settings = read_settings(fields, base).map_err(of_service)?;
        Self::new(name, dialect, settings)
    }
}

fn read_settings(mut fields: Map<String, Value>, base: &Settings) -> Result<Settings, String> {
    for name in ["accounts", "account_rules", "json_service"] {
        if fields.contains_key(name) {
            return Err(format!("there is no setting `{name}`: describe accounts in [[service.account]]"));
        }
    }
    let accounts = fields.remove("account");
    let own_faults = fields.remove("faults").map(|rates| faults::read(&rates, &Faults::default()));
    let mut merged = serde_json::to_value(base).map_err(|why| why.to_string())?;
    faults::merge(&mut merged, &Value::Object(fields));
    // The keys of the base are hidden in JSON, so its accounts are put in again.
    let mut settings: Settings = serde_json::from_value(merged).map_err(|why| why.to_string())?;
    settings.accounts.clone_from(&base.accounts);
    if let Some(faults) = own_faults {
        settings.faults = faults?;
    }
    if let Some(accounts) = accounts {
        let entries: Vec<AccountEntry> =
            serde_json::from_value(accounts).map_err(|why| format!("[[service.account]]: {why}"))?;
        settings.accounts.clear();
        settings.account_rules.clear();
        for entry in entries {
            entry.add_to(&mut settings, base)?;
        }
    }
    Ok(settings)
}

impl AccountEntry {
    fn add_to(self, settings: &mut Settings, base: &Settings) -> Result<(), String> {
        let model = base.accounts.first();
        let account = MockAccount {
            key: match (self.key, model) {
                (Some(key), _) => MockKey::new(key),
                (None, Some(model)) => model.key.clone(),
                (None, None) => MockKey::new(DEMO_KEY),
            },
            balance_micros: self.balance_micros.or(model.map(|model| model.balance_micros)).unwrap_or(0),
            threads: self.threads.or(model.map(|model| model.threads)).unwrap_or(0),
            plan_ended: self.plan_ended,
            name: self.name,
        };
        let own_faults =
            self.faults.map(|rates| faults::read_for_account(&rates, &Faults::default())).transpose();
        let rules = AccountRules {
            slots: self.slots,
            key_blocked: self.key_blocked,
            price_micros: self.price_micros,
            price_micros_by_method: self.price_micros_by_method,
            solve_ms: self.solve_ms,
            solve_ms_by_method: self.solve_ms_by_method,
            faults: own_faults.map_err(|why| format!("account {:?}: {why}", account.name))?,
        };
        settings.account_rules.insert(account.name.clone(), rules);
        settings.accounts.push(account);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_overrides_the_base_and_leaves_the_rest() {
        let base = Settings { speed: 20.0, seed: 7, ..Settings::default() };
        let table = json!({"name": "b", "dialect": "anti-captcha", "seed": 8, "pace": {"submits_max": 5},
            "faults": {"pingback": {"lost": 0.1}, "rejects": ["hcaptcha"]},
            "account": [{"name": "one", "slots": 6, "price_micros": 900},
                {"name": "two", "key": "e".repeat(32), "faults": "storm"}]});
        let service = ServiceSettings::read(&table, &base).expect("a good table");
        let settings = &service.settings;
        assert_eq!((service.name.as_str(), service.dialect), ("b", MockServiceDialect::AntiCaptcha));
        assert_eq!((settings.speed, settings.seed, settings.pace.submits_max), (20.0, 8, 5));
        assert_eq!(settings.pace.submits_window_ms, base.pace.submits_window_ms);
        assert_eq!((settings.faults.pingback.lost, settings.faults.rejects.len()), (0.1, 1));
        assert_eq!(settings.json_service, MockJsonService::Only(MockDialect::AntiCaptcha));
        let one = &settings.account_rules["one"];
        assert_eq!((one.slots, one.price_micros, one.faults.is_none()), (Some(6), Some(900), true));
        assert_eq!(settings.account_rules["two"].faults, Some(Faults { refused: 0.0, ..Faults::storm() }));
        assert!(
            settings.accounts[0].key.reveal() == DEMO_KEY && settings.accounts[1].key.reveal() != DEMO_KEY
        );
        let plain = ServiceSettings::read(&json!({"name": "a", "dialect": "captchaai"}), &base);
        assert_eq!(plain.expect("a good table").settings.accounts, base.accounts);
    }

    #[test]
    fn a_table_that_is_wrong_is_refused_with_the_service_and_the_field() {
        for (table, words) in [
            (json!({"dialect": "2captcha"}), "name"),
            (json!({"name": "a"}), "service a: it has no dialect"),
            (json!({"name": "a", "dialect": "unheard"}), "service a: there is no dialect `unheard`"),
            (json!({"name": "a", "dialect": "2captcha", "sped": 3}), "service a: unknown field `sped`"),
            (json!({"name": "a/b", "dialect": "2captcha"}), "`a/b` cannot be the name"),
            (json!({"name": "a", "dialect": "2captcha", "faults": {"lots": 1}}), "unknown field `lots`"),
            (json!({"name": "a", "dialect": "2captcha", "account": [{"nam": "x"}]}), "[[service.account]]"),
            (json!({"name": "a", "dialect": "2captcha", "accounts": []}), "[[service.account]]"),
        ] {
            let why = ServiceSettings::read(&table, &Settings::default()).expect_err("a wrong table");
            assert!(why.contains(words), "{table}: {why}");
        }
    }
}
