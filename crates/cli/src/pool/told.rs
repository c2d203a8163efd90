//! A pool as it is told to people, whoever has told us: the store, or the daemon that has it to itself.

use crate::day;
use quittance::lifecycle::{Money, PriceSum, Timestamp};
use quittance::{Demand, Goal, Hours, LevelView, PoolSpec, PoolView, Spent, Value as Param};
use quittance_config::decimal;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const HOUR_MS: u64 = 3_600_000;
/// What the daemon puts in the place of a password.
pub(super) const CONCEALED: &str = "***";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pool {
    pub(crate) spec: PoolSpec,
    /// Its kind is known here, and its target allowed.
    pub(super) makes_sense: bool,
    pub(super) level: Option<LevelView>,
    /// What it has set out to spend in this hour of the clock, and in how many refills.
    pub(super) spent: PriceSum,
    pub(super) refills: u64,
    /// What the next refill costs, as far as it is known.
    pub(super) price: Option<Money>,
    pub(super) currency: String,
    /// Why its budget lets it buy nothing, whatever is left of it.
    pub(super) stopped: Option<String>,
    pub(super) demand: Demand,
    pub(super) usable: Duration,
}

impl Pool {
    pub(crate) fn of_store(pool: PoolView, now: Timestamp) -> Self {
        let stopped = pool.stopped_by_price();
        let PoolView { document, target, demand, usable, price, currency, .. } = pool;
        let is_now = document.spent.hour == now.as_millis() / HOUR_MS;
        let spent = if is_now { document.spent } else { Spent::default() };
        Self {
            spec: document.spec,
            makes_sense: target.is_some(),
            level: document.level,
            spent: spent.sum(),
            refills: spent.refills,
            price,
            currency,
            stopped,
            demand,
            usable,
        }
    }

    pub(crate) fn of_daemon(told: ToldPool) -> Result<Self, String> {
        let odd = |what: &str| format!("`{what}` of a pool");
        let goal = match (told.service_level, told.size) {
            (Some(part), None) => {
                Goal::Served { permille: permille(part).ok_or_else(|| odd("service_level"))? }
            }
            (None, Some(size)) => Goal::Fixed { size },
            _ => return Err(odd("size")),
        };
        let hours: Result<_, _> = told.hours.iter().map(|part| Hours::parse(part)).collect();
        let sum = |text: String| decimal::money(&text).ok_or_else(|| odd("price"));
        let seconds = |seconds| Duration::try_from_secs_f64(seconds).map_err(|_| odd("min_life_s"));
        Ok(Self {
            spec: PoolSpec {
                name: told.name,
                tenant: told.tenant,
                kind: told.kind,
                params: told.params.into_iter().map(|(name, text)| (name, Param::Text(text))).collect(),
                goal,
                budget: told.budget_per_hour_micros.map(Money),
                hours: hours.map_err(|_| odd("hours"))?,
                min_life: told.min_life_s.map(seconds).transpose()?,
                is_on: told.enabled,
            },
            makes_sense: told.valid,
            level: told.level.map(|level| level.read().ok_or_else(|| odd("level"))).transpose()?,
            spent: PriceSum {
                sum: Money(told.spent.money_micros.unwrap_or_default()),
                unpriced: told.spent.unpriced,
            },
            refills: told.spent.refills,
            price: told.price.map(sum).transpose()?,
            currency: told.currency,
            stopped: told.stopped,
            demand: Demand { served: told.demand.served, missed: told.demand.missed },
            usable: Duration::from_millis(told.usable_ms),
        })
    }
}

/// All pools, as `/v1/pools` tells them.
#[derive(Debug, Deserialize)]
pub(crate) struct ToldPools {
    pub(crate) pools: Vec<ToldPool>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ToldPool {
    name: String,
    tenant: String,
    kind: String,
    params: BTreeMap<String, String>,
    service_level: Option<f64>,
    size: Option<u32>,
    budget_per_hour_micros: Option<u64>,
    hours: Vec<String>,
    min_life_s: Option<f64>,
    enabled: bool,
    valid: bool,
    level: Option<ToldLevel>,
    demand: ToldDemand,
    spent: ToldSpent,
    price: Option<String>,
    currency: String,
    stopped: Option<String>,
    usable_ms: u64,
}

#[derive(Debug, Deserialize)]
struct ToldDemand {
    served: u64,
    missed: u64,
}

#[derive(Debug, Deserialize)]
struct ToldSpent {
    money_micros: Option<u64>,
    refills: u64,
    unpriced: u64,
}

#[derive(Debug, Deserialize)]
struct ToldLevel {
    at: String,
    size: u32,
    why: String,
    fresh: u32,
    on_their_way: u32,
    rate_per_s: f64,
    lead_ms: u64,
}

impl ToldLevel {
    fn read(self) -> Option<LevelView> {
        Some(LevelView {
            at: moment(&self.at)?,
            size: self.size,
            why: self.why,
            rate_milli: thousandths(self.rate_per_s)?,
            lead: Duration::from_millis(self.lead_ms),
            fresh: self.fresh,
            on_their_way: self.on_their_way,
        })
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "its bounds are checked first")]
fn thousandths(number: f64) -> Option<u64> {
    (0.0..1e12).contains(&number).then(|| (number * 1000.0).round() as u64)
}

fn permille(part: f64) -> Option<u32> {
    thousandths(part).and_then(|permille| permille.try_into().ok())
}

/// As in `2026-11-16T03:34:28.000Z`.
fn moment(text: &str) -> Option<Timestamp> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (time, ms) = time.split_once('.').unwrap_or((time, "000"));
    let parts: Option<Vec<u64>> = time.split(':').map(|part| part.parse().ok()).collect();
    let [h, m, s] = parts?[..] else { return None };
    let seconds = day::parse(date)?.0 * 86_400 + h * 3600 + m * 60 + s;
    Some(Timestamp::from_millis(seconds * 1000 + ms.parse::<u64>().ok().filter(|ms| *ms < 1000)?))
}

/// What `/v1/pools` takes.
pub(crate) fn as_request(spec: &PoolSpec) -> Value {
    let mut wish = super::shown::spec_json(spec);
    // The address says it.
    wish.remove("name");
    let plain = |value: &Param| match value {
        Param::Text(text) => text.clone(),
        Param::Bytes(bytes) => format!("({} bytes)", bytes.len()),
    };
    let params: BTreeMap<&String, String> =
        spec.params.iter().map(|(name, value)| (name, plain(value))).collect();
    wish.insert("params".into(), json!(params));
    wish.into()
}

/// Whether this stands for something that the daemon does not tell.
pub(super) fn is_concealed(value: &Param) -> bool {
    let Param::Text(text) = value else { return true };
    let is_file = || text.starts_with('(') && text.ends_with(" bytes)");
    text == CONCEALED || text.contains(&format!("{CONCEALED}@")) || is_file()
}

/// Parameters that would be written over by what is shown in their place.
pub(crate) fn untold(spec: &PoolSpec) -> Vec<&str> {
    let untold = spec.params.iter().filter(|(_, value)| is_concealed(value));
    untold.map(|(name, _)| name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_as_the_daemon_writes_it() {
        let at = Timestamp::from_millis(20_773 * 86_400_000 + 12_868_045);
        assert_eq!(moment("2026-11-16T03:34:28.045Z"), Some(at));
        for odd in ["", "2026-11-16", "2026-11-16T03:34:28", "2026-13-16T03:34:28Z", "2026-11-16T03:34Z"] {
            assert_eq!(moment(odd), None, "{odd}");
        }
    }

    #[test]
    fn what_the_daemon_hides_is_known_as_such() {
        for (text, expected) in
            [("***", true), ("***@h:1", true), ("(12 bytes)", true), ("0x4A", false), ("a***", false)]
        {
            assert_eq!(is_concealed(&Param::Text(text.into())), expected, "{text}");
        }
    }

    #[test]
    fn what_is_told_of_a_pool_is_read_to_the_last_digit_and_sent_back_the_same() {
        let told = json!({
            "name": "login", "tenant": "default", "kind": "turnstile", "params": { "sitekey": "0x4A" },
            "service_level": 0.957, "budget_per_hour": "0.1", "budget_per_hour_micros": 100_000,
            "hours": ["08:00-20:30"], "min_life_s": 1.5, "enabled": true, "valid": true,
            "level": {
                "at": "2026-11-16T03:34:28.045Z", "size": 4, "why": "because", "fresh": 3, "on_their_way": 1,
                "rate_per_s": 0.119, "lead_ms": 12_500,
            },
            "demand": { "served": 412, "missed": 18, "hit_rate": 0.9581 },
            "spent": { "money": "0.41", "money_micros": 410_000, "refills": 137, "unpriced": 0 },
            "price": "0.00299", "currency": "USD", "usable_ms": 250_000, "kept_here": true, "something_new": 1,
        });
        let pool = Pool::of_daemon(serde_json::from_value(told).unwrap()).unwrap();
        assert_eq!(
            (pool.spec.goal, pool.spec.budget),
            (Goal::Served { permille: 957 }, Some(Money(100_000)))
        );
        assert_eq!(pool.level.as_ref().map(|level| level.rate_milli), Some(119));
        assert_eq!(
            (pool.price, pool.spent),
            (Some(Money(2_990)), PriceSum { sum: Money(410_000), unpriced: 0 })
        );
        let wish = as_request(&pool.spec);
        for (name, expected) in [
            ("service_level", json!(0.957)),
            ("budget_per_hour", json!("0.1")),
            ("hours", json!(["08:00-20:30"])),
            ("min_life_s", json!(1.5)),
            ("params", json!({ "sitekey": "0x4A" })),
            ("size", Value::Null),
            ("name", Value::Null),
        ] {
            assert_eq!(wish[name], expected, "{name}");
        }
    }
}
