//! What the stock has done for each target: from the usage and the reports of the store, or as the daemon tells it.

use crate::output;
use crate::pool::share;
use quittance::lifecycle::{Counters, Money, PriceSum, Timestamp};
use quittance::{TrustDocument, UsageRow};
use quittance_config::Config;
use quittance_engine::{TrustView, show_trust, with_life_rules};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Whose, of which kind, on which site.
pub(crate) type Target = (String, String, String);
pub(crate) type Rows = BTreeMap<Target, Row>;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    pub(super) asked: u64,
    pub(super) from_stock: u64,
    /// In thousandths of those that wanted an answer of their own; none if nobody did.
    pub(super) hits: Option<u64>,
    pub(super) stocked: u64,
    pub(super) wasted: u64,
    pub(super) wasted_cost: PriceSum,
    /// How old an answer from the stock was, on the average.
    pub(super) age_ms: Option<u64>,
    /// In all.
    pub(super) saved_ms: u64,
    pub(super) reported_bad: u64,
    pub(super) refusals: usize,
    /// The life without any reports, and the life that is trusted; `None` for answers that never expire.
    pub(super) lives: Option<(Duration, Duration)>,
}

/// Orders that wanted an answer of their own.
const fn wanted(counters: &Counters) -> u64 {
    counters
        .asked
        .saturating_sub(counters.joined)
        .saturating_sub(counters.cached)
        .saturating_sub(counters.refused)
}

impl Row {
    fn of(counters: &Counters) -> Self {
        Self {
            asked: counters.asked,
            from_stock: counters.from_stock,
            hits: share(counters.from_stock, wanted(counters)),
            stocked: counters.stocked,
            wasted: counters.wasted,
            wasted_cost: counters.wasted_cost(),
            age_ms: counters.stock_age_ms.checked_div(counters.from_stock),
            saved_ms: counters.saved_ms,
            reported_bad: counters.reported_bad,
            refusals: 0,
            lives: None,
        }
    }

    fn trusted(&mut self, TrustView { life, trusted, trust, .. }: &TrustView) {
        self.refusals = trust.refusals.len();
        self.lives = Some((*life, *trusted));
    }

    pub(super) fn saved_each_ms(&self) -> Option<u64> {
        self.saved_ms.checked_div(self.from_stock)
    }
}

/// How long answers live of which nobody has reported anything.
fn with_lives(mut rows: Rows, config: &Config) -> Rows {
    let kinds = config.kinds();
    for ((_, kind, site), row) in rows.iter_mut().filter(|(_, row)| row.lives.is_none()) {
        let life = kinds(kind).and_then(|kind| with_life_rules(&config.lifetimes, &kind, site).life);
        row.lives = life.map(|life| (life, life));
    }
    rows
}

pub(crate) fn of_store(
    usage: Vec<(UsageRow, Counters)>,
    trusts: Vec<TrustDocument>,
    now: Timestamp,
    config: &Config,
) -> Rows {
    let mut by_target: BTreeMap<Target, Counters> = BTreeMap::new();
    for (UsageRow { tenant, kind, site, .. }, counters) in usage {
        *by_target.entry((tenant, kind, site)).or_default() += counters;
    }
    let mut rows: Rows =
        by_target.into_iter().map(|(target, counters)| (target, Row::of(&counters))).collect();
    for document in trusts {
        let target = (document.tenant.clone(), document.kind.clone(), document.site.clone());
        let row = rows.entry(target).or_default();
        row.refusals = document.trust.refusals.len();
        let kind = config.kinds()(&document.kind);
        if let Some(shown) = kind.and_then(|kind| show_trust(&config.lifetimes, &kind, document, now)) {
            row.trusted(&shown);
        }
    }
    with_lives(rows, config)
}

/// As `/v1/stock` tells it.
#[derive(Debug, Deserialize)]
pub(crate) struct ToldStock {
    lines: Vec<ToldLine>,
    left_out: usize,
}

#[derive(Debug, Deserialize)]
struct ToldLine {
    tenant: String,
    kind: String,
    site: String,
    asked: u64,
    from_stock: u64,
    hit_rate: Option<f64>,
    stocked: u64,
    wasted: u64,
    wasted_micros: Option<u64>,
    wasted_unpriced: u64,
    mean_age_ms: Option<u64>,
    saved_ms: u64,
    reported_bad: u64,
    trust: Option<ToldTrust>,
}

#[derive(Debug, Deserialize)]
struct ToldTrust {
    life_s: u64,
    trusted_s: u64,
    refusals: usize,
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share is from 0 to 1")]
fn permille(share: f64) -> u64 {
    // It has four places, and the last of them is left out as it is here.
    (share.clamp(0.0, 1.0) * 10_000.0).round() as u64 / 10
}

pub(crate) fn of_daemon(ToldStock { lines, left_out }: ToldStock, config: &Config) -> Rows {
    if left_out > 0 {
        output::tell(&format!(
            "note: {left_out} targets that were asked for least are left out; ask for fewer days\n"
        ));
    }
    let rows = lines.into_iter().map(|line| {
        let seconds = Duration::from_secs;
        let row = Row {
            asked: line.asked,
            from_stock: line.from_stock,
            hits: line.hit_rate.map(permille),
            stocked: line.stocked,
            wasted: line.wasted,
            wasted_cost: PriceSum {
                sum: Money(line.wasted_micros.unwrap_or_default()),
                unpriced: line.wasted_unpriced,
            },
            age_ms: line.mean_age_ms,
            saved_ms: line.saved_ms,
            reported_bad: line.reported_bad,
            refusals: line.trust.as_ref().map_or(0, |trust| trust.refusals),
            lives: line.trust.map(|trust| (seconds(trust.life_s), seconds(trust.trusted_s))),
        };
        ((line.tenant, line.kind, line.site), row)
    });
    with_lives(rows.collect(), config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_config::config_with;
    use serde_json::json;

    #[test]
    fn what_the_daemon_tells_makes_the_same_rows_as_the_usage() {
        let config = config_with(&["lifetimes.1.host=*.example.com", "lifetimes.1.life=240s"]);
        let counters = Counters {
            asked: 120,
            joined: 10,
            refused: 10,
            from_stock: 67,
            stocked: 70,
            wasted: 2,
            wasted_micros: 5_980,
            wasted_unpriced: 1,
            stock_age_ms: 67 * 12_345,
            saved_ms: 67 * 9_500,
            reported_bad: 1,
            ..Counters::default()
        };
        let line = |site: &str| UsageRow {
            day: quittance::Day(1),
            tenant: "default".into(),
            kind: "turnstile".into(),
            site: site.into(),
            account: "main USD".into(),
        };
        let told = json!({
            "from": "2026-11-16", "to": "2026-11-16", "all": {}, "pools": [], "left_out": 0,
            "lines": [{
                "tenant": "default", "kind": "turnstile", "site": "a.example.com", "asked": 120,
                "from_stock": 67, "hit_rate": 0.67, "stocked": 70, "wasted": 2, "wasted_cost": "0.00598",
                "wasted_micros": 5_980, "wasted_unpriced": 1, "mean_age_ms": 12_345, "saved_ms": 67 * 9_500, "reported_bad": 1,
            }],
        });
        let of_daemon = of_daemon(serde_json::from_value(told).unwrap(), &config);
        let of_store =
            of_store(vec![(line("a.example.com"), counters)], Vec::new(), Timestamp::from_millis(1), &config);
        assert_eq!(of_daemon, of_store);
        let row = of_store.into_values().next().unwrap();
        assert_eq!((row.hits, row.lives.map(|(life, _)| life.as_secs())), (Some(670), Some(240)));
    }
}
