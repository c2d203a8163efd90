//! The settings of the mock provider: accounts, prices, solve times and how strict it is. Every limit has a name
//! here.

use crate::faults::Faults;
use crate::json::MockDialect;
use crate::script::ScriptRule;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};

/// The key of the account that [`Settings::default`] opens.
pub const DEMO_KEY: &str = "0123456789abcdef0123456789abcdef";
/// The length of a real key. A key of another length is refused before it is looked up.
pub const KEY_CHARS: usize = 32;

/// The provider whose behaviour is imitated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MockClassicDialect {
    #[default]
    #[serde(rename = "2captcha")]
    TwoCaptcha,
    #[serde(rename = "captchaai")]
    CaptchaAi,
}

/// Which dialects of the JSON protocol a service answers in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MockJsonService {
    /// All four: the first part of the path selects the dialect, and without one it is 2captcha.
    #[default]
    All,
    /// None: the service speaks the classic protocol only.
    None,
    /// This one, with and without its name in the path.
    #[serde(untagged)]
    Only(MockDialect),
}

impl MockJsonService {
    /// The dialect of a service that answers in one only.
    pub(crate) fn only(self) -> Option<MockDialect> {
        match self {
            Self::Only(dialect) => Some(dialect),
            Self::All | Self::None => None,
        }
    }
}

/// An API key; neither `{:?}` nor JSON shows it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
pub struct MockKey(String);

impl MockKey {
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(crate) fn is(&self, solved: &str) -> bool {
        self.0 == solved
    }

    /// The key in clear, for a command that prints how to reach the mock provider.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for MockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl Serialize for MockKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("(hidden)")
    }
}

/// An account at the provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MockAccount {
    /// The name of the account in the ledger.
    pub name: String,
    pub key: MockKey,
    #[serde(default)]
    pub balance_micros: u64,
    /// How many tasks can be open at once. CaptchaAI sells these threads.
    #[serde(default)]
    pub threads: u32,
    /// CaptchaAI: no task is taken although threads are free.
    #[serde(default)]
    pub plan_ended: bool,
}

/// What one account has of its own. Absent values are those of the service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AccountRules {
    /// How many tasks can be open at once, in every dialect. Above it, the account gets the busy code.
    pub slots: Option<u32>,
    /// Whether the service treats the key as unknown.
    pub key_blocked: bool,
    pub price_micros: Option<u64>,
    pub price_micros_by_method: BTreeMap<String, u64>,
    pub solve_ms: Option<MillisRange>,
    pub solve_ms_by_method: BTreeMap<String, MillisRange>,
    /// Faults for requests with this account's key, in place of those of the service.
    pub faults: Option<Faults>,
}

/// A range in milliseconds: `from` is included, `to` is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MillisRange {
    pub from: u64,
    pub to: u64,
}

/// How long, and how often, the providers of the JSON protocol return a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MockJsonLimits {
    /// Counted from the end of the task.
    pub anticaptcha_result_ms: u64,
    /// Counted from the end of the task.
    pub capmonster_result_ms: u64,
    /// Counted from when the task was taken.
    pub capsolver_task_ms: u64,
    /// CapMonster and CapSolver: how often getTaskResult can be called for one task.
    pub polls_max: u64,
}

impl Default for MockJsonLimits {
    fn default() -> Self {
        Self {
            anticaptcha_result_ms: 60_000,
            capmonster_result_ms: 5 * 60_000,
            capsolver_task_ms: 5 * 60_000,
            polls_max: 120,
        }
    }
}

/// The limits past which an account or an address is banned for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BanLimits {
    pub is_on: bool,
    /// More in.php calls than this in the window: `MAX_USER_TURN`.
    pub submits_max: usize,
    pub submits_window_ms: u64,
    pub turn_ban_ms: u64,
    /// This many unknown keys from one address: `ERROR: 1004` or `IP_BANNED`.
    pub wrong_keys_max: u32,
    pub wrong_key_ban_ms: u64,
    /// More res.php calls than `polls_per_task` for each task plus `polls_free`: `ERROR: 1005`.
    pub polls_per_task: u64,
    pub polls_free: u64,
    pub poll_ban_ms: u64,
    /// This many refusals in the window: `ERROR: 1001` (no slot), `1002` (no money) or `1003` (mostly errors).
    pub refusals_max: usize,
    pub refusals_window_ms: u64,
    /// CapMonster: a client that polls one task more often than `json.polls_max` is banned for this long.
    pub task_polls_ban_ms: u64,
    pub no_slot_ban_ms: u64,
    pub zero_balance_ban_ms: u64,
    pub errors_ban_ms: u64,
}

impl Default for BanLimits {
    fn default() -> Self {
        Self {
            is_on: true,
            submits_max: 60,
            submits_window_ms: 3_000,
            turn_ban_ms: 10_000,
            wrong_keys_max: 5,
            wrong_key_ban_ms: 600_000,
            polls_per_task: 20,
            polls_free: 1_200,
            poll_ban_ms: 300_000,
            refusals_max: 120,
            refusals_window_ms: 60_000,
            task_polls_ban_ms: 600_000,
            no_slot_ban_ms: 600_000,
            zero_balance_ban_ms: 300_000,
            errors_ban_ms: 30_000,
        }
    }
}

impl BanLimits {
    /// No bans, for tests of other behaviour.
    #[must_use]
    pub fn off() -> Self {
        Self { is_on: false, ..Self::default() }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    pub listen: SocketAddr,
    pub dialect: MockClassicDialect,
    pub json_service: MockJsonService,
    pub accounts: Vec<MockAccount>,
    /// What accounts have of their own, by the name of the account.
    pub account_rules: BTreeMap<String, AccountRules>,
    /// The source of all random numbers: the same seed and requests give the same faults and solve times.
    pub seed: u64,
    /// How many times faster than in reality tasks are solved.
    pub speed: f64,
    pub solve_ms: MillisRange,
    pub solve_ms_by_method: BTreeMap<String, MillisRange>,
    pub price_micros: u64,
    pub price_micros_by_method: BTreeMap<String, u64>,
    /// 2captcha: how many open tasks an account can have before it gets "no slot".
    pub queue_max: usize,
    /// The code for an account without a free slot; by default the code of the dialect.
    pub busy_code: Option<String>,
    /// After this time a result is deleted, and its id is unknown.
    pub result_lifetime_ms: u64,
    pub report_window_ms: u64,
    pub json: MockJsonLimits,
    pub image_bytes_min: usize,
    pub image_bytes_max: usize,
    pub image_pixels_max: u32,
    pub pace: BanLimits,
    /// 2captcha: only addresses that the account has registered are called back.
    pub strict_pingback: bool,
    pub pingback_timeout_ms: u64,
    pub faults: Faults,
    pub script: Vec<ScriptRule>,
    pub body_bytes_max: usize,
    pub connections_max: usize,
    /// The most tasks in the ledger. Older finished tasks leave it; the totals keep counting them.
    pub tasks_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        let quick = MillisRange { from: 2_000, to: 12_000 };
        let pictures = ["post", "base64", "textcaptcha", "rotatecaptcha", "bls"];
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            dialect: MockClassicDialect::TwoCaptcha,
            json_service: MockJsonService::All,
            account_rules: BTreeMap::new(),
            accounts: vec![MockAccount {
                name: "demo".to_owned(),
                key: MockKey::new(DEMO_KEY),
                balance_micros: 10_000_000,
                threads: 100,
                plan_ended: false,
            }],
            seed: 0,
            speed: 1.0,
            solve_ms: MillisRange { from: 10_000, to: 60_000 },
            solve_ms_by_method: pictures.map(|method| (method.to_owned(), quick)).into(),
            price_micros: 2_990,
            price_micros_by_method: pictures.map(|method| (method.to_owned(), 500)).into(),
            queue_max: 100,
            busy_code: None,
            result_lifetime_ms: 24 * 3_600_000,
            report_window_ms: 15 * 60_000,
            json: MockJsonLimits::default(),
            image_bytes_min: 100,
            image_bytes_max: 600_000,
            image_pixels_max: 1_000,
            pace: BanLimits::default(),
            strict_pingback: false,
            pingback_timeout_ms: 5_000,
            faults: Faults::default(),
            script: Vec::new(),
            body_bytes_max: 4 << 20,
            connections_max: 4_096,
            tasks_max: 200_000,
        }
    }
}

impl Settings {
    /// Settings for tests: tasks are solved within milliseconds, and no client is banned.
    #[must_use]
    pub fn quick(dialect: MockClassicDialect) -> Self {
        Self {
            dialect,
            solve_ms: MillisRange { from: 1, to: 2 },
            solve_ms_by_method: BTreeMap::new(),
            pace: BanLimits::off(),
            ..Self::default()
        }
    }

    /// Checks that the accounts have distinct names, keys of the right length, and rules that can be kept.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (index, account) in self.accounts.iter().enumerate() {
            let name = &account.name;
            if account.key.0.chars().count() != KEY_CHARS {
                return Err(format!("the key of account {name:?} must have {KEY_CHARS} characters"));
            }
            let others = &self.accounts[..index];
            if others.iter().any(|other| other.name == *name || other.key == account.key) {
                return Err(format!("account {name:?} has the name or the key of another"));
            }
        }
        for (name, rules) in &self.account_rules {
            if !self.accounts.iter().any(|account| account.name == *name) {
                return Err(format!("there are rules for account {name:?}, and no account of that name"));
            }
            if let Some(faults) = &rules.faults {
                faults.check_for_account().map_err(|why| format!("account {name:?}: {why}"))?;
            }
        }
        Ok(())
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float that is too large becomes the largest number"
    )]
    pub(crate) fn at_speed(&self, ms: u64) -> u64 {
        (ms as f64 / self.speed.max(f64::MIN_POSITIVE)) as u64
    }

    /// The range of solve times of a method: the account's own, or else the service's.
    pub(crate) fn solve_span(&self, own: &AccountRules, method: &str) -> MillisRange {
        let of_account = own.solve_ms_by_method.get(method).copied().or(own.solve_ms);
        of_account.or_else(|| self.solve_ms_by_method.get(method).copied()).unwrap_or(self.solve_ms)
    }

    /// The price of a method: the account's own, or else the service's.
    pub(crate) fn price_micros(&self, own: &AccountRules, method: &str) -> u64 {
        let of_account = own.price_micros_by_method.get(method).copied().or(own.price_micros);
        of_account.or_else(|| self.price_micros_by_method.get(method).copied()).unwrap_or(self.price_micros)
    }
}
