//! Finds the account of a request and checks whether the request is allowed: keys, balances, slots, and bans of
//! clients that are too fast.

use super::{Endpoint, MockWorld, ReadRequest};
use crate::ledger::{AccountSummary, AccountTotals, count};
use crate::settings::{
    AccountRules, BanLimits, KEY_CHARS, MillisRange, MockAccount, MockClassicDialect, MockKey, Settings,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

/// The ban of CapMonster for polling one task too often. It holds at every endpoint.
pub(super) const TASK_POLLS_BAN: &str = "ERROR_TOO_MUCH_REQUESTS";

/// The body of `PUT /mock/account`. Absent fields do not change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountChange {
    pub name: String,
    #[serde(default)]
    pub balance_micros: Option<u64>,
    #[serde(default)]
    pub threads: Option<u32>,
    #[serde(default)]
    pub plan_ended: Option<bool>,
    /// How many tasks can be open at once, in every dialect.
    #[serde(default)]
    pub slots: Option<u32>,
    /// Whether the service treats the key as unknown.
    #[serde(default)]
    pub key_blocked: Option<bool>,
    /// The price of each task from now on, whatever its method.
    #[serde(default)]
    pub price_micros: Option<u64>,
    /// The solve times of tasks from now on, whatever their method.
    #[serde(default)]
    pub solve_ms: Option<MillisRange>,
}

/// The state of one account.
#[derive(Debug)]
pub(crate) struct AccountRecord {
    pub name: String,
    key: MockKey,
    pub balance_micros: u64,
    pub threads: u32,
    plan_ended: bool,
    pub rules: AccountRules,
    pub open: usize,
    pub solved: u64,
    /// The sums that the ledger shows. The balance and the open tasks in it are filled in when it is read.
    pub totals: AccountTotals,
    pub bad_reports: u64,
    pub pingbacks: BTreeSet<String>,
    polls: u64,
    /// Tasks taken since the count of polls was last reset.
    accepted: u64,
    submits: VecDeque<u64>,
    /// The recent outcomes of in.php: a code, or `None` for a task that was taken.
    answered: VecDeque<(u64, Option<&'static str>)>,
    bans: BTreeMap<&'static str, u64>,
}

/// Addresses from which wrong keys came, and until when they are banned.
#[derive(Debug, Default)]
pub(crate) struct Strangers(BTreeMap<IpAddr, (u32, u64)>);

impl Strangers {
    pub(crate) fn banned(&self, now: u64) -> usize {
        self.0.values().filter(|(_, until)| now < *until).count()
    }
}

/// The records of all accounts, as they are at the start.
pub(super) fn records(settings: &Settings) -> Vec<AccountRecord> {
    let record = |account: &MockAccount| {
        let rules = settings.account_rules.get(&account.name).cloned().unwrap_or_default();
        AccountRecord::new(account, rules)
    };
    settings.accounts.iter().map(record).collect()
}

impl AccountRecord {
    pub(crate) fn new(account: &MockAccount, rules: AccountRules) -> Self {
        Self {
            name: account.name.clone(),
            key: account.key.clone(),
            balance_micros: account.balance_micros,
            threads: account.threads,
            plan_ended: account.plan_ended,
            rules,
            open: 0,
            solved: 0,
            totals: AccountTotals { account: account.name.clone(), ..AccountTotals::default() },
            bad_reports: 0,
            pingbacks: BTreeSet::new(),
            polls: 0,
            accepted: 0,
            submits: VecDeque::new(),
            answered: VecDeque::new(),
            bans: BTreeMap::new(),
        }
    }

    /// Counts a request with the key of the account, before its outcome is known.
    pub(crate) fn count_request(&mut self, endpoint: Endpoint) {
        match endpoint {
            Endpoint::In | Endpoint::Solve => self.totals.submits += 1,
            Endpoint::Res => self.totals.polls += 1,
        }
    }

    pub(crate) fn change(&mut self, change: &AccountChange) {
        self.balance_micros = change.balance_micros.unwrap_or(self.balance_micros);
        self.threads = change.threads.unwrap_or(self.threads);
        self.plan_ended = change.plan_ended.unwrap_or(self.plan_ended);
        let rules = &mut self.rules;
        rules.slots = change.slots.or(rules.slots);
        rules.key_blocked = change.key_blocked.unwrap_or(rules.key_blocked);
        if let Some(price) = change.price_micros {
            rules.price_micros = Some(price);
            rules.price_micros_by_method.clear();
        }
        if let Some(span) = change.solve_ms {
            rules.solve_ms = Some(span);
            rules.solve_ms_by_method.clear();
        }
    }

    /// The threads that CaptchaAI reports, and beyond which it takes no task.
    pub(crate) fn threads_limit(&self) -> u32 {
        self.rules.slots.unwrap_or(self.threads)
    }

    pub(crate) fn totals(&self) -> AccountTotals {
        AccountTotals {
            balance_micros: self.balance_micros,
            open: self.open as u64,
            solved: self.solved,
            ..self.totals.clone()
        }
    }

    pub(crate) fn standing(&self, now: u64) -> AccountSummary {
        let bans = self.bans.iter().filter(|(_, until)| now < **until);
        AccountSummary {
            name: self.name.clone(),
            balance_micros: self.balance_micros,
            threads: self.threads,
            plan_ended: self.plan_ended,
            slots: self.rules.slots,
            key_blocked: self.rules.key_blocked,
            has_own_faults: self.rules.faults.is_some(),
            open: self.open,
            polls: self.polls,
            bans: bans.map(|(code, until)| ((*code).to_owned(), *until)).collect(),
        }
    }

    /// The ban that is in force at this endpoint, if there is one.
    fn ban(&self, now: u64, endpoint: Endpoint) -> Option<&'static str> {
        let is_for_polls = endpoint == Endpoint::Res;
        let in_force = self.bans.iter().filter(|(_, until)| now < **until);
        in_force.map(|(code, _)| *code).find(|code| match *code {
            TASK_POLLS_BAN => true,
            "ERROR: 1005" => is_for_polls,
            _ => !is_for_polls,
        })
    }

    /// Counts a submission. Too many in the window give a ban.
    fn pace_submit(&mut self, now: u64, pace: &BanLimits) -> Option<(&'static str, u64)> {
        self.submits.push_back(now);
        while self.submits.front().is_some_and(|at| at.saturating_add(pace.submits_window_ms) <= now) {
            self.submits.pop_front();
        }
        if self.submits.len() <= pace.submits_max {
            return None;
        }
        self.submits.clear();
        Some(("MAX_USER_TURN", pace.turn_ban_ms))
    }

    fn pace_poll(&mut self, pace: &BanLimits) -> Option<(&'static str, u64)> {
        if self.polls <= pace.polls_per_task * self.accepted + pace.polls_free {
            return None;
        }
        // Or else the first poll after the ban would be one too many again.
        (self.polls, self.accepted) = (0, 0);
        Some(("ERROR: 1005", pace.poll_ban_ms))
    }

    /// Counts an outcome of in.php. Too many refusals in the window give a ban.
    fn pace_answer(
        &mut self,
        now: u64,
        code: Option<&'static str>,
        pace: &BanLimits,
    ) -> Option<(&'static str, u64)> {
        self.answered.push_back((now, code));
        while self.answered.front().is_some_and(|(at, _)| at.saturating_add(pace.refusals_window_ms) <= now) {
            self.answered.pop_front();
        }
        code?;
        let such = |wanted: &str| self.answered.iter().filter(|(_, code)| *code == Some(wanted)).count();
        let refused = self.answered.iter().filter(|(_, code)| code.is_some()).count();
        let taken = self.answered.len() - refused;
        let ban = if such("ERROR_NO_SLOT_AVAILABLE") >= pace.refusals_max {
            ("ERROR: 1001", pace.no_slot_ban_ms)
        } else if such("ERROR_ZERO_BALANCE") >= pace.refusals_max {
            ("ERROR: 1002", pace.zero_balance_ban_ms)
        } else if refused >= pace.refusals_max && refused > 3 * taken {
            ("ERROR: 1003", pace.errors_ban_ms)
        } else {
            return None;
        };
        self.answered.clear();
        Some(ban)
    }
}

impl MockWorld {
    /// The account whose key the request has, whether or not it is admitted.
    pub(super) fn account_of(&self, arrival: &ReadRequest) -> Option<usize> {
        let key = arrival.form.text("key")?;
        self.accounts.iter().position(|account| account.key.is(key))
    }

    /// The account of the key. Fails if the key, the account or the client's address is refused.
    pub(super) fn admit(&mut self, now: u64, arrival: &ReadRequest) -> Result<usize, String> {
        let pace = self.settings.pace.clone();
        let ip_ban = match self.settings.dialect {
            MockClassicDialect::TwoCaptcha => "ERROR: 1004",
            MockClassicDialect::CaptchaAi => "IP_BANNED",
        };
        if pace.is_on && self.strangers.0.get(&arrival.peer).is_some_and(|(_, until)| now < *until) {
            return Err(ip_ban.to_owned());
        }
        let key = arrival.form.text("key").unwrap_or_default();
        if key.chars().count() != KEY_CHARS {
            return Err("ERROR_WRONG_USER_KEY".to_owned());
        }
        let is_captchaai = self.settings.dialect == MockClassicDialect::CaptchaAi;
        let Some(index) = self.account_of(arrival) else {
            self.note_stranger(now, arrival.peer, &pace, ip_ban);
            return Err("ERROR_KEY_DOES_NOT_EXIST".to_owned());
        };
        let account = &mut self.accounts[index];
        account.polls += u64::from(arrival.endpoint == Endpoint::Res);
        // Such keys do not count as wrong ones: a ban of the address would strike the other accounts, too.
        if account.rules.key_blocked {
            return Err("ERROR_KEY_DOES_NOT_EXIST".to_owned());
        }
        if is_captchaai && account.threads == 0 {
            return Err("ERROR_KEY_DOES_NOT_EXIST".to_owned());
        }
        if !pace.is_on {
            return Ok(index);
        }
        if let Some(code) = account.ban(now, arrival.endpoint) {
            return Err(code.to_owned());
        }
        let offence = match arrival.endpoint {
            // The numbered bans are 2captcha's; of captchaai none is known.
            Endpoint::Res | Endpoint::In | Endpoint::Solve if is_captchaai => None,
            Endpoint::Res => account.pace_poll(&pace),
            Endpoint::In | Endpoint::Solve => account.pace_submit(now, &pace),
        };
        match offence {
            Some((code, ban_ms)) => {
                self.ban(index, code, now.saturating_add(ban_ms));
                Err(code.to_owned())
            }
            None => Ok(index),
        }
    }

    fn note_stranger(&mut self, now: u64, peer: IpAddr, pace: &BanLimits, code: &str) {
        /// How many addresses are kept.
        const STRANGERS_MAX: usize = 1_024;
        if self.strangers.0.len() >= STRANGERS_MAX {
            self.strangers.0.pop_first();
        }
        let (wrong, until) = self.strangers.0.entry(peer).or_default();
        *wrong += 1;
        if pace.is_on && *wrong >= pace.wrong_keys_max {
            (*wrong, *until) = (0, now.saturating_add(pace.wrong_key_ban_ms));
            count(&mut self.totals.bans, code);
        }
    }

    pub(super) fn ban(&mut self, account: usize, code: &'static str, until: u64) {
        self.accounts[account].bans.insert(code, until);
        count(&mut self.accounts[account].totals.bans, code);
        count(&mut self.totals.bans, code);
    }

    /// Checks that the account has a free slot and money for one more task.
    pub(super) fn check_slots(&self, account: usize, price_micros: u64) -> Result<(), String> {
        let (settings, account) = (&self.settings, &self.accounts[account]);
        let busy = |code: &str| Err(settings.busy_code.clone().unwrap_or_else(|| code.to_owned()));
        match settings.dialect {
            MockClassicDialect::CaptchaAi if account.plan_ended => Err("ERROR_ZERO_BALANCE".to_owned()),
            MockClassicDialect::CaptchaAi if account.open >= account.threads_limit() as usize => {
                busy("ERROR_ZERO_BALANCE")
            }
            MockClassicDialect::TwoCaptcha if account.balance_micros < price_micros => {
                Err("ERROR_ZERO_BALANCE".to_owned())
            }
            MockClassicDialect::TwoCaptcha
                if account.open >= account.rules.slots.map_or(settings.queue_max, |slots| slots as usize) =>
            {
                busy("ERROR_NO_SLOT_AVAILABLE")
            }
            _ if self.tasks.len() >= settings.tasks_max => Err("ERROR_NO_SLOT_AVAILABLE".to_owned()),
            _ => Ok(()),
        }
    }

    /// Counts what in.php has answered, and bans a client that does not slow down.
    pub(super) fn note_answer(&mut self, now: u64, account: usize, code: Option<&str>) {
        let code = code.map(|code| match code {
            "ERROR_NO_SLOT_AVAILABLE" => "ERROR_NO_SLOT_AVAILABLE",
            "ERROR_ZERO_BALANCE" => "ERROR_ZERO_BALANCE",
            _ => "other",
        });
        if code.is_none() {
            self.accounts[account].accepted += 1;
        }
        let pace = self.settings.pace.clone();
        if pace.is_on
            && self.settings.dialect == MockClassicDialect::TwoCaptcha
            && let Some((ban, ban_ms)) = self.accounts[account].pace_answer(now, code, &pace)
        {
            self.ban(account, ban, now.saturating_add(ban_ms));
        }
    }
}
