//! What each rule says of what is seen: over its bar, well under it, or neither; and the words for a person, which end in what to
//! do next.

use crate::readings::{Health, Node, Readings};
use crate::rule::{Rule, Thresholds};
use crate::window::{Counts, HOUR, Lately, Window};
use crate::words::{quoted, span};
use quittance_lifecycle::{Money, PriceSum, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// Over which rates are taken.
const RATE_SPAN: Duration = Duration::from_secs(600);
/// A pace that was watched for less than this is none.
const PACE_LEAST: Duration = Duration::from_secs(600);
/// How long after an order that it could not serve a pool counts as asked.
const ASKED_SPAN: Duration = Duration::from_secs(60);

/// Where something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Over the bar.
    High,
    /// Under the lower bar.
    Low,
    /// Neither, or nobody can tell yet: whatever was said stays as it is.
    Between,
}

/// What a rule says about one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleReading {
    pub(crate) subject: String,
    pub(crate) level: Level,
    pub(crate) words: String,
}

/// Of a rule that has one subject.
fn one(subject: &str, level: Level, words: String) -> Option<Vec<RuleReading>> {
    Some(vec![RuleReading { subject: subject.into(), level, words }])
}

const fn level(is_high: bool, is_low: bool) -> Level {
    match (is_high, is_low) {
        (true, _) => Level::High,
        (_, true) => Level::Low,
        _ => Level::Between,
    }
}

/// When a pool last had to turn somebody away, from counts that only grow.
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
    pub(crate) bars: &'a Thresholds,
    pub(crate) readings: &'a Readings,
    pub(crate) window: &'a Window,
    pub(crate) misses: &'a Misses,
}

impl Judge<'_> {
    /// Every subject that the rule knows of; nothing, if it could not look.
    pub(crate) fn says(&self, rule: Rule) -> Option<Vec<RuleReading>> {
        match rule {
            Rule::DeadLettersGrow => self.dead_letters_grow(),
            Rule::DeadLettersOld => self.dead_letters_old(),
            Rule::ProviderPaused | Rule::ProviderBroken => self.provider(rule),
            Rule::BalanceLow => self.balance_low(),
            Rule::BalanceEnds => self.balance_ends(),
            Rule::BudgetEnds => self.budgets_end(),
            Rule::DoubtRate => self.doubt_rate(),
            Rule::CallersNotReached => self.callers_not_reached(),
            Rule::CallbacksMissing => self.callbacks_missing(),
            Rule::PoolStarves => self.pools_starve(),
            Rule::StoreAway => self.store_away(),
            Rule::StoreForgot => self.store_forgot(),
            Rule::SpillNotEmpty => self.spills(),
            Rule::NodeSilent => self.silent_nodes(),
        }
    }

    /// More than so many in the last hour; well again at half of that.
    fn in_an_hour(&self, most: u64, counted: impl Fn(&Lately) -> u64) -> Option<(u64, Level)> {
        self.readings.counts?;
        let lately = self.window.lately(HOUR)?;
        let count = counted(&lately);
        Some((count, level(count > most, lately.is_whole && count <= most / 2)))
    }

    fn dead_letters_grow(&self) -> Option<Vec<RuleReading>> {
        let (count, level) = self.in_an_hour(self.bars.dead_new, |lately| lately.counts.dead)?;
        let words = format!(
            "{count} orders became dead letters within an hour: look at `quittance dead list` for what they have in common, mend \
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
        one("", level(age >= self.bars.dead_age, true), words)
    }

    fn provider(&self, rule: Rule) -> Option<Vec<RuleReading>> {
        let (name, health) = self.readings.provider.as_ref()?;
        match (rule, health) {
            (Rule::ProviderPaused, Health::Paused { code }) => {
                let says = match code.as_str() {
                    "" => "does not accept the account, as another node has heard".into(),
                    code => format!("says {}", quoted(code)),
                };
                let words = format!(
                    "nothing is submitted to {name}, which {says}: mend the account there, then release it (`POST \
                     /v1/admin/release`, or start again)"
                );
                one(name, Level::High, words)
            }
            (Rule::ProviderBroken, Health::Broken) => {
                let words = format!(
                    "{name} does not answer, and is tried by one order at a time: look at its status page and at the network \
                     (`quittance doctor`)"
                );
                one(name, Level::High, words)
            }
            _ => one(name, Level::Low, String::new()),
        }
    }

    fn balance_low(&self) -> Option<Vec<RuleReading>> {
        let (balance, bar) = (self.readings.balance?, self.bars.balance_low);
        let currency = &self.readings.currency;
        let words = format!(
            "the balance is {balance} {currency}, and is to be at least {bar} {currency}: top up the account"
        );
        // A tenth more than the bar, so that it is not met from below by a cent.
        one("", level(balance < bar, balance.0 >= bar.0.saturating_add(bar.0 / 10)), words)
    }

    fn balance_ends(&self) -> Option<Vec<RuleReading>> {
        let balance = self.readings.balance?;
        self.readings.counts?;
        let lately = self.window.lately(HOUR)?;
        let Counts { spent, unpriced, .. } = lately.counts;
        // Answers without a known price say nothing about the pace, and nothing about all being well.
        (PriceSum { sum: spent, unpriced }).known()?;
        if spent == Money(0) && lately.span >= PACE_LEAST {
            return one("", Level::Low, String::new());
        }
        if lately.span < PACE_LEAST {
            return one("", Level::Between, String::new());
        }
        let lasts_s = u128::from(balance.0) * lately.span.as_millis() / u128::from(spent.0) / 1000;
        let bar_s = u128::from(self.bars.balance_lasts.as_secs());
        let at_most = if unpriced > 0 { "at most " } else { "" };
        let words = format!(
            "at the pace of the last hour the balance of {balance} {} is spent in {at_most}{}: top up the account, or see who spends \
             (`quittance usage --by tenant,site`)",
            self.readings.currency,
            span(Duration::from_secs(u64::try_from(lasts_s).unwrap_or(u64::MAX)))
        );
        // What lacks prices can say that the balance ends, and not that it lasts.
        one("", level(lasts_s < bar_s, unpriced == 0 && lasts_s >= bar_s + bar_s / 10), words)
    }

    fn budgets_end(&self) -> Option<Vec<RuleReading>> {
        let pools = self.readings.pools.as_ref()?.iter();
        let seen = pools.filter_map(|pool| {
            let budget = pool.budget.filter(|_| pool.is_on)?;
            let currency = &self.readings.currency;
            if pool.price.is_none() {
                let words = format!(
                    "pool {} has a budget of {budget} {currency} an hour, and the price of an answer is not known: it buys nothing. \
                     Set the price of its kind in the configuration ([prices]), or take its budget away",
                    pool.name
                );
                return Some(RuleReading { subject: pool.name.clone(), level: Level::High, words });
            }
            let part = |permille: u32| u128::from(budget.0) * u128::from(permille) / 1000;
            // A refill whose price was not known counts as the next one does.
            let assumed = pool.price.map_or(0, |price| u128::from(price.0) * u128::from(pool.unpriced));
            let (spent, bar) = (u128::from(pool.spent_this_hour.0) + assumed, self.bars.budget_used_permille);
            // What is left may be less than an answer costs, and then nothing is bought, wherever the bar stands.
            let price = pool.price.filter(|price| spent + u128::from(price.0) > u128::from(budget.0));
            let then = match price {
                Some(price) => format!("which leaves less than the {price} {currency} of another answer until the next hour"),
                None => "and then buys no more until the next".into(),
            };
            let words = format!(
                "pool {} has spent {} of the {budget} {currency} that it may in this hour, {then}: raise its budget, or leave it",
                pool.name,
                PriceSum { sum: pool.spent_this_hour, unpriced: pool.unpriced }.words("")
            );
            let is_low = price.is_none() && spent < part(bar.saturating_sub(100));
            let level = level(price.is_some() || spent >= part(bar), is_low);
            Some(RuleReading { subject: pool.name.clone(), level, words })
        });
        Some(seen.collect())
    }

    /// A part of a whole of at least `least`; well again at four fifths of the bar.
    fn rate(
        &self,
        bar_permille: u32,
        least: u64,
        counted: impl Fn(&Lately) -> (u64, u64),
    ) -> Option<(u64, u64, Level)> {
        self.readings.counts?;
        let lately = self.window.lately(RATE_SPAN)?;
        let (part, whole) = counted(&lately);
        let permille = u128::from(part) * 1000 / u128::from(whole.max(1));
        let (bar, low) = (u128::from(bar_permille), u128::from(bar_permille) * 4 / 5);
        let is_low = lately.is_whole && (permille <= low || whole < least);
        Some((part, whole, level(whole >= least && permille > bar, is_low)))
    }

    fn doubt_rate(&self) -> Option<Vec<RuleReading>> {
        let bars = self.bars;
        let (doubts, attempts, level) = self.rate(bars.doubt_permille, bars.doubt_attempts, |lately| {
            (lately.counts.doubts, lately.counts.attempts)
        })?;
        let words = format!(
            "of {attempts} attempts in ten minutes, nobody knows of {doubts} whether they were taken: each may be paid for twice; \
             look at the network to the provider and at `timing.submit_wait`"
        );
        one("", level, words)
    }

    fn callers_not_reached(&self) -> Option<Vec<RuleReading>> {
        let (count, level) =
            self.in_an_hour(self.bars.webhooks_failed, |lately| lately.counts.webhooks_failed)?;
        let words = format!(
            "{count} calls to callers were not taken within an hour: see what those say in the log or under `quittance dead list \
             --cause delivery`, and tell whoever runs them"
        );
        one("", level, words)
    }

    fn callbacks_missing(&self) -> Option<Vec<RuleReading>> {
        let bars = self.bars;
        let (polled, solved, level) = self.rate(bars.polled_permille, bars.polled_answers, |lately| {
            (lately.counts.recovered_by_poll, lately.counts.solved)
        })?;
        let words = format!(
            "{polled} of {solved} answers in ten minutes had to be fetched although the provider was to call: check that \
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
                "pool {} is to hold {} answers and has none, while orders for them are bought at once: see why with `quittance \
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
            "the store does not answer {here}: callers are told to come again, and what the provider says is kept in the spill; \
             look at the store and the way to it (`quittance doctor`)"
        );
        one(here, level(!self.readings.store_is_up, true), words)
    }

    /// Until a person has seen it.
    fn store_forgot(&self) -> Option<Vec<RuleReading>> {
        let what = self.readings.forgot.as_ref();
        one(&self.readings.here, level(what.is_some(), true), what.cloned().unwrap_or_default())
    }

    fn spills(&self) -> Option<Vec<RuleReading>> {
        let seen = self.nodes()?.into_iter().map(|(name, node)| {
            let words = format!(
                "what came in for {name} while the store was away waits in its spill: if the store is back, look for a record that \
                 cannot be read (`quittance dead list --cause unreadable`)"
            );
            RuleReading { subject: name.into(), level: level(node.has_spilled, true), words }
        });
        Some(seen.collect())
    }

    fn silent_nodes(&self) -> Option<Vec<RuleReading>> {
        let seen = self.nodes()?.into_iter().map(|(name, node)| {
            let words = format!(
                "{name} has not signed in for a while: it is gone, frozen, or cut off; others carry its orders on, but what lies \
                 in its spill waits until it is started again"
            );
            RuleReading { subject: name.into(), level: level(node.is_silent, true), words }
        });
        Some(seen.collect())
    }

    /// By name: one that was started anew has a card of its own beside the one that it left, and the new one counts.
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
