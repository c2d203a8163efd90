//! How each rule judges the readings: above the threshold, below the lower one, or neither. Its message ends with
//! what to do next.

use super::readings::{Balance, FailingEndpoint, Health, Node, Readings};
use super::rule::{Rule, Thresholds};
use super::window::{HOUR, Lately, Window};
use super::words::{quoted, span};
use quittance_lifecycle::{Money, PriceSum, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// The period over which rates are computed.
const RATE_SPAN: Duration = Duration::from_secs(600);
/// The shortest time from which a pace is computed.
const PACE_LEAST: Duration = Duration::from_secs(600);
/// How long a pool counts as in demand after an order that it could not serve.
const ASKED_SPAN: Duration = Duration::from_secs(60);

/// A value compared with its thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AlertLevel {
    /// Above the threshold.
    High,
    /// Below the lower threshold.
    Low,
    /// Neither, or not known yet: an active alert stays active, and no alert is raised.
    Between,
}

/// The result of a rule for one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleReading {
    pub(crate) subject: String,
    pub(crate) level: AlertLevel,
    pub(crate) words: String,
}

fn provider(rule: Rule, name: &str, health: &Health) -> RuleReading {
    let (level, words) = match (rule, health) {
        (Rule::ProviderPaused, Health::Paused { code }) => {
            let says = match code.as_str() {
                "" => "does not accept the account, as another node reports".into(),
                code => format!("says {}", quoted(code)),
            };
            let words = format!(
                "nothing is submitted to {name}, which {says}: fix the account there, then run `quittance provider resume \
                 {name}`"
            );
            (AlertLevel::High, words)
        }
        (Rule::ProviderBroken, Health::Broken) => {
            let words = format!(
                "{name} does not answer, and is tried by one order at a time: look at its status page and at the network \
                 (`quittance doctor`)"
            );
            (AlertLevel::High, words)
        }
        _ => (AlertLevel::Low, String::new()),
    };
    RuleReading { subject: name.to_owned(), level, words }
}

/// The reading of a rule that has one subject.
fn one(subject: &str, level: AlertLevel, words: String) -> Option<Vec<RuleReading>> {
    Some(vec![RuleReading { subject: subject.into(), level, words }])
}

pub(super) const fn level(is_high: bool, is_low: bool) -> AlertLevel {
    match (is_high, is_low) {
        (true, _) => AlertLevel::High,
        (_, true) => AlertLevel::Low,
        _ => AlertLevel::Between,
    }
}

/// When each pool last could not serve an order, from counters that only grow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Misses(BTreeMap<String, (u64, Option<Timestamp>)>);

impl Misses {
    pub(crate) fn note(&mut self, readings: &Readings) {
        let Some(pools) = &readings.pools else { return };
        self.0.retain(|name, _| pools.iter().any(|pool| pool.name == *name));
        for pool in pools {
            let (before, at) = self.0.entry(pool.name.clone()).or_insert((pool.missed, None));
            if pool.missed > *before {
                *at = Some(readings.at);
            }
            // A node that has ended takes its count with it.
            *before = pool.missed;
        }
    }

    fn is_asked(&self, pool: &str, now: Timestamp) -> bool {
        self.0.get(pool).and_then(|(_, at)| *at).is_some_and(|at| now.since(at) < ASKED_SPAN)
    }
}

pub(crate) struct Judge<'a> {
    pub(crate) thresholds: &'a Thresholds,
    pub(crate) readings: &'a Readings,
    pub(crate) window: &'a Window,
    pub(crate) misses: &'a Misses,
}

impl Judge<'_> {
    /// A reading of every subject of the rule; `None` if the readings lack the values.
    pub(crate) fn read(&self, rule: Rule) -> Option<Vec<RuleReading>> {
        match rule {
            Rule::DeadLettersGrow => self.dead_letters_grow(),
            Rule::DeadLettersOld => self.dead_letters_old(),
            Rule::ProviderPaused | Rule::ProviderBroken => {
                let providers = self.readings.providers.as_ref()?;
                Some(providers.iter().map(|(name, health)| provider(rule, name, health)).collect())
            }
            Rule::BalanceLow => self.balances_low(),
            Rule::BalanceEnds => self.balance_ends(),
            Rule::BudgetEnds => self.budgets_end(),
            Rule::BudgetLow | Rule::BudgetSpent => self.budgets(rule),
            Rule::InDoubtRate => self.in_doubt_rate(),
            Rule::CallersNotReached => self.callers_not_reached(),
            Rule::EndpointOff => self.endpoints_off(),
            Rule::CallbacksMissing => self.callbacks_missing(),
            Rule::PoolStarves => self.pools_starve(),
            Rule::StoreAway => self.store_away(),
            Rule::StoreForgot => self.store_forgot(),
            Rule::RecordsUnreadable => self.records_unreadable(),
            Rule::SpillNotEmpty => self.spills(),
            Rule::NodeSilent => self.silent_nodes(),
        }
    }

    /// High: more than `most` in the last hour. Low: at most half of it.
    fn in_an_hour(&self, most: u64, counted: impl Fn(&Lately) -> u64) -> Option<(u64, AlertLevel)> {
        self.readings.counts?;
        let lately = self.window.lately(HOUR)?;
        let count = counted(&lately);
        Some((count, level(count > most, lately.is_whole && count <= most / 2)))
    }

    fn dead_letters_grow(&self) -> Option<Vec<RuleReading>> {
        let (count, level) = self.in_an_hour(self.thresholds.dead_new, |lately| lately.counts.dead)?;
        let words = format!(
            "{count} orders became dead letters within an hour: look at `quittance dead list` for what they have in common, fix \
             that, then replay them"
        );
        one("", level, words)
    }

    fn dead_letters_old(&self) -> Option<Vec<RuleReading>> {
        let dead = self.readings.dead?;
        let age = dead.oldest.map(|oldest| self.readings.at.since(oldest)).unwrap_or_default();
        let words = format!(
            "there are {} dead letters, and one has waited for a person for {}: replay or drop it (`quittance dead list`)",
            dead.count,
            span(age)
        );
        one("", level(age >= self.thresholds.dead_age, true), words)
    }

    /// A reading of each account whose balance is known.
    fn balances_low(&self) -> Option<Vec<RuleReading>> {
        let threshold = self.thresholds.balance_low;
        let seen = self.readings.balances.iter().filter_map(|Balance { provider, currency, money }| {
            let balance = (*money)?;
            let words = format!(
                "the balance at {provider} is {balance} {currency}, and is to be at least {threshold} {currency}: top up the \
                 account"
            );
            // The lower threshold is a tenth higher, so that a cent more does not clear the alert.
            let is_low = balance.0 >= threshold.0.saturating_add(threshold.0 / 10);
            let level = level(balance < threshold, is_low);
            Some(RuleReading { subject: provider.clone(), level, words })
        });
        Some(seen.collect())
    }

    /// What is left at all providers whose account is in the currency of the node; `None` if one of them is not known.
    fn balance_in_all(&self) -> Option<Money> {
        let own = self.readings.balances.iter().filter(|balance| balance.currency == self.readings.currency);
        let balances: Vec<Money> = own.map(|balance| balance.money).collect::<Option<_>>()?;
        let sum = balances.iter().fold(0_u64, |sum, balance| sum.saturating_add(balance.0));
        (!balances.is_empty()).then_some(Money(sum))
    }

    fn balance_ends(&self) -> Option<Vec<RuleReading>> {
        let balance = self.balance_in_all()?;
        self.readings.counts?;
        let lately = self.window.lately(HOUR)?;
        let price_sum = lately.counts.spent();
        // Answers without a known price neither raise nor clear the alert.
        price_sum.known()?;
        let PriceSum { sum: spent, unpriced } = price_sum;
        if spent == Money(0) && lately.span >= PACE_LEAST {
            return one("", AlertLevel::Low, String::new());
        }
        if lately.span < PACE_LEAST {
            return one("", AlertLevel::Between, String::new());
        }
        let lasts_s = u128::from(balance.0) * lately.span.as_millis() / u128::from(spent.0) / 1000;
        let threshold_s = u128::from(self.thresholds.balance_lasts.as_secs());
        let at_most = if unpriced > 0 { "at most " } else { "" };
        let words = format!(
            "at the pace of the last hour the balance of {balance} {} is spent in {at_most}{}: top up the account, or see who spends \
             (`quittance usage --by tenant,site`)",
            self.readings.currency,
            span(Duration::from_secs(u64::try_from(lasts_s).unwrap_or(u64::MAX)))
        );
        // Without some prices, the spending may be higher: the alert can be raised, but not cleared.
        one(
            "",
            level(lasts_s < threshold_s, unpriced == 0 && lasts_s >= threshold_s + threshold_s / 10),
            words,
        )
    }

    fn budgets_end(&self) -> Option<Vec<RuleReading>> {
        let pools = self.readings.pools.as_ref()?.iter();
        let seen = pools.filter_map(|pool| {
            let budget = pool.budget.filter(|_| pool.is_on)?;
            let currency = &self.readings.currency;
            if let Some(stopped) = &pool.stopped {
                let words = format!("pool {} has a budget of {budget} {currency} an hour: {stopped}", pool.name);
                return Some(RuleReading { subject: pool.name.clone(), level: AlertLevel::High, words });
            }
            let part = |permille: u32| u128::from(budget.0) * u128::from(permille) / 1000;
            // What a price was known for when it was ordered counts at that price.
            let mut sum = pool.spent.money;
            sum += pool.spent.expected;
            let about = if pool.spent.unpriced > 0 { "about " } else { "" };
            let spent = u128::from(sum.0);
            let used_permille = self.thresholds.budget_used_permille;
            // If less than one price is left, nothing is bought, whatever the threshold is.
            let price = pool.price.filter(|price| spent + u128::from(price.0) > u128::from(budget.0));
            let then = match price {
                Some(price) => format!("which leaves less than the {price} {currency} of another answer until the next hour"),
                None => "and then buys no more until the next".into(),
            };
            let words = format!(
                "pool {} has spent {about}{sum} of the {budget} {currency} that it may in this hour, {then}: raise its budget, or leave it",
                pool.name
            );
            let is_low = price.is_none() && spent < part(used_permille.saturating_sub(100));
            let level = level(price.is_some() || spent >= part(used_permille), is_low);
            Some(RuleReading { subject: pool.name.clone(), level, words })
        });
        Some(seen.collect())
    }

    /// The ratio of two counts, if the whole is at least `least`. The lower threshold is four fifths of the threshold.
    fn rate(
        &self,
        threshold_permille: u32,
        least: u64,
        counted: impl Fn(&Lately) -> (u64, u64),
    ) -> Option<(u64, u64, AlertLevel)> {
        self.readings.counts?;
        let lately = self.window.lately(RATE_SPAN)?;
        let (part, whole) = counted(&lately);
        let permille = u128::from(part) * 1000 / u128::from(whole.max(1));
        let (high, low) = (u128::from(threshold_permille), u128::from(threshold_permille) * 4 / 5);
        let is_low = lately.is_whole && (permille <= low || whole < least);
        Some((part, whole, level(whole >= least && permille > high, is_low)))
    }

    fn in_doubt_rate(&self) -> Option<Vec<RuleReading>> {
        let thresholds = self.thresholds;
        let (in_doubt, attempts, level) =
            self.rate(thresholds.in_doubt_permille, thresholds.in_doubt_attempts, |lately| {
                (lately.counts.in_doubt, lately.counts.attempts)
            })?;
        let words = format!(
            "{in_doubt} of {attempts} attempts in ten minutes are in doubt: the provider may have taken them, and each may \
             be paid twice; look at the network to the provider and at `timing.submit_wait`"
        );
        one("", level, words)
    }

    fn callers_not_reached(&self) -> Option<Vec<RuleReading>> {
        let (count, level) =
            self.in_an_hour(self.thresholds.webhooks_failed, |lately| lately.counts.webhooks_failed)?;
        let words = format!(
            "{count} webhook deliveries failed within an hour: see why in the log or with `quittance dead list --cause \
             delivery`, and inform the operators of those webhooks"
        );
        one("", level, words)
    }

    fn endpoints_off(&self) -> Option<Vec<RuleReading>> {
        let endpoints = self.readings.endpoints.as_ref()?.iter();
        let seen = endpoints.map(|endpoint| {
            let FailingEndpoint { tenant, host, is_off, why } = endpoint;
            let words = format!(
                "webhooks of {tenant} to {host} are switched off, because all of them failed for days, last: {}; inform the \
                 operator of that host. The first success switches it on, or `quittance dead endpoints --on {host} --tenant \
                 {tenant}`; then run `quittance dead replay --cause delivery`",
                quoted(why)
            );
            RuleReading { subject: format!("{tenant} {host}"), level: level(*is_off, true), words }
        });
        Some(seen.collect())
    }

    fn callbacks_missing(&self) -> Option<Vec<RuleReading>> {
        let thresholds = self.thresholds;
        let (polled, solved, level) =
            self.rate(thresholds.polled_permille, thresholds.polled_answers, |lately| {
                (lately.counts.recovered_by_poll, lately.counts.solved)
            })?;
        let words = format!(
            "{polled} of {solved} answers in ten minutes had to be polled although a callback was due: check that \
             `public_url` is reached from outside (`quittance doctor`)"
        );
        one("", level, words)
    }

    fn pools_starve(&self) -> Option<Vec<RuleReading>> {
        let pools = self.readings.pools.as_ref()?.iter();
        let seen = pools.map(|pool| {
            let is_empty = pool.is_on && pool.level > 0 && pool.fresh == 0;
            let is_asked = self.misses.is_asked(&pool.name, self.readings.at);
            let words = format!(
                "pool {} should hold {} answers and has none, while orders for them are bought: see why with `quittance \
                 pool show {}`",
                pool.name, pool.level, pool.name
            );
            RuleReading { subject: pool.name.clone(), level: level(is_empty && is_asked, !is_empty), words }
        });
        Some(seen.collect())
    }

    fn store_away(&self) -> Option<Vec<RuleReading>> {
        let here = &self.readings.here;
        let words = format!(
            "the store does not answer {here}: callers are asked to retry, and callbacks are kept in the spill; \
             look at the store and the way to it (`quittance doctor`)"
        );
        one(here, level(!self.readings.store_is_up, true), words)
    }

    /// The alert stays until an operator has acknowledged the loss.
    fn store_forgot(&self) -> Option<Vec<RuleReading>> {
        let what = self.readings.forgot.as_ref();
        one(&self.readings.here, level(what.is_some(), true), what.cloned().unwrap_or_default())
    }

    fn records_unreadable(&self) -> Option<Vec<RuleReading>> {
        let count = self.readings.unreadable?;
        let words = format!(
            "{count} records cannot be read, and their orders rest: compare `quittance dead list --cause unreadable` with the \
             provider's list, look at the disk, then drop each by its key (`quittance dead drop KEY`)"
        );
        one("", level(count > 0, true), words)
    }

    fn spills(&self) -> Option<Vec<RuleReading>> {
        let seen = self.nodes()?.into_iter().map(|(name, node)| {
            let words = format!(
                "callbacks and replies that {name} received while the store was away wait in its spill: if the store is \
                 back, look for a record that cannot be read (`quittance dead list --cause unreadable`)"
            );
            RuleReading { subject: name.into(), level: level(node.has_spilled, true), words }
        });
        Some(seen.collect())
    }

    fn silent_nodes(&self) -> Option<Vec<RuleReading>> {
        let seen = self.nodes()?.into_iter().map(|(name, node)| {
            let words = format!(
                "{name} has sent no heartbeat for a while: it has died, is frozen or is cut off; other nodes continue its \
                 orders, but its spill waits until it is started again"
            );
            RuleReading { subject: name.into(), level: level(node.is_silent, true), words }
        });
        Some(seen.collect())
    }

    /// The nodes by name. After a restart, a node has two statuses, and the newer one counts.
    fn nodes(&self) -> Option<BTreeMap<&str, &Node>> {
        let mut nodes = BTreeMap::new();
        for node in self.readings.nodes.as_ref()? {
            let known = nodes.entry(node.name.as_str()).or_insert(node);
            if known.is_silent && !node.is_silent {
                *known = node;
            }
        }
        Some(nodes)
    }
}
