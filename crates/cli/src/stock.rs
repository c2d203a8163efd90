//! `quittance stock`: for each target, how many orders the stock served, the age of its answers, the time saved, and
//! the expired answers; then the pools.

use crate::exit::{CliError, Exit};
use crate::output::harmless;
use crate::pool::{self, percent, price_sum};
use crate::text_table::{self, Cell, cell, count, styled};
use crate::{days, output};
use anstyle::{AnsiColor, Style};
use clap::Args;
use quittance::{Day, SystemClock};
use quittance_admin::pools::ShownPool;
use quittance_admin::stock::{StockReport, StockRow};
use quittance_config::{Config, duration};
use quittance_daemon::ApiClient;
use quittance_ports::Clock;
use std::time::Duration;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance stock                                today, in UTC
  quittance stock --from 2026-11-01 --to 2026-11-15
  quittance stock --json | jq '.rows[] | select(.hit_rate < 0.9)'

Columns:
  FROM STOCK  orders that got an answer from the stock
  HIT RATE    from_stock / (asked - joined - cached - refused)
  WASTED      answers that were paid for and can no longer be used
  COST        cost of the wasted answers: a lower bound if some prices are not
              known, `not known` if none is
  AGE         mean age of answers from the stock when they were handed out
  SOONER      mean time saved, compared with buying the answer
  LIFE        how long answers of that target are trusted

Reports of bad answers (`reportbad`) lower LIFE, if three or more answers of the
last day were refused by the site late in their life. LIFE then also shows its
normal value and the number of refusals. It is never less than half of the
usable life, plus the margin.

At most 1097 days can be shown at once, and the 1000 targets with the most
orders. If a daemon uses the embedded store, the command asks the daemon over
HTTP. If an operator's key is configured (`admin`), set QUITTANCE_ADMIN_KEY to
it.

Exit codes:
  0  shown
  2  the command was not understood
  3  the result could not be written
  4  the configuration or the operator's key is wrong
  5  the store cannot be opened or used, or its daemon does not answer";

#[derive(Args, Debug)]
pub(crate) struct StockArgs {
    /// First day, in UTC, such as 2026-11-16 [default: today]
    #[arg(long, value_name = "DAY", value_parser = read_day)]
    from: Option<Day>,
    /// Last day [default: the later of the first day and today]
    #[arg(long, value_name = "DAY", value_parser = read_day)]
    to: Option<Day>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn read_day(typed: &str) -> Result<Day, String> {
    days::parse(typed).ok_or_else(|| format!("write {}", days::DAY_FORM))
}

pub(crate) async fn run(args: StockArgs, config: &Config) -> Result<Exit, CliError> {
    let (from, to) = days(args.from, args.to, Day::of(SystemClock.now()))?;
    let client = ApiClient::find(config).await?;
    // Only the operator may list pools. This request comes first, so that a tenant's key fails before it shows a part of the usage.
    let pools = pool::list(&client).await?;
    let path = format!("/v1/stock?from={}&to={}", days::render(from), days::render(to));
    let report: StockReport = client.get(&path).await?;
    output::show(args.json, &report, || text(&report, (from, to), &pools))?;
    if report.left_out > 0 {
        output::tell(&format!(
            "note: {} targets with the fewest orders are left out; choose fewer days\n",
            report.left_out
        ));
    }
    Ok(Exit::Done)
}

fn days(from: Option<Day>, to: Option<Day>, today: Day) -> Result<(Day, Day), CliError> {
    let from = from.unwrap_or_else(|| to.map_or(today, |to| to.min(today)));
    let to = to.unwrap_or(from.max(today));
    if from > to {
        let what = format!("{} is after {}: exchange them", days::render(from), days::render(to));
        return Err(CliError::new(Exit::Usage, what));
    }
    Ok((from, to))
}

const NOTE: Style = AnsiColor::Yellow.on_default();
fn cells(line: &StockRow) -> [Cell; 12] {
    let counts = &line.counts;
    let seconds = |ms: Option<u64>| ms.map_or("-".into(), |ms| format!("{:.1} s", ms as f64 / 1000.0));
    let life = match (&line.trust, line.life_ms.map(Duration::from_millis)) {
        (Some(trust), Some(life)) if trust.trusted_s < trust.life_s => {
            let (trusted, life) =
                (duration::render(Duration::from_secs(trust.trusted_s)), duration::render(life));
            styled("LIFE", NOTE, format!("{trusted} of {life} (refused: {})", trust.refusals))
        }
        (_, life) => cell("LIFE", life.map_or("-".into(), duration::render)),
    };
    [
        cell("TENANT", harmless(&line.tenant)),
        cell("KIND", harmless(&line.kind)),
        cell("SITE", if line.site.is_empty() { "-".into() } else { harmless(&line.site) }),
        count("ASKED", counts.asked),
        count("FROM STOCK", counts.from_stock),
        cell("HIT RATE", counts.hit_rate.map_or("-".into(), percent)),
        count("STOCKED", counts.stocked),
        count("WASTED", counts.wasted),
        cell("COST", price_sum(counts.wasted_micros, counts.wasted_unpriced).words("")),
        cell("AGE", seconds(counts.mean_age_ms)),
        cell("SOONER", seconds(counts.saved_ms.checked_div(counts.from_stock))),
        life,
    ]
}

fn text(report: &StockReport, (from, to): (Day, Day), pools: &[ShownPool]) -> String {
    let table = match report.rows.is_empty() {
        true => "No orders were placed.\n".to_owned(),
        false => text_table::render(report.rows.iter().map(cells)),
    };
    let (days, currency) = (days::words(from, to), harmless(&report.currency));
    format!("{days}, in UTC; money in {currency}\n\n{table}\n{}", pool::as_table(pools))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(wasted_micros: Option<u64>, wasted_unpriced: u64) -> String {
        let counts = json!({
            "asked": 120, "from_stock": 90, "hit_rate": 0.9, "stocked": 94, "wasted": 2, "wasted_cost": null,
            "wasted_micros": wasted_micros, "wasted_unpriced": wasted_unpriced, "mean_age_ms": 12_000,
            "saved_ms": 855_000, "reported_bad": 3,
        });
        let mut line = counts.clone();
        for (name, value) in [
            ("tenant", json!("default")),
            ("kind", json!("turnstile")),
            ("site", json!("a.example.com")),
            ("life_ms", json!(300_000)),
            ("trust", json!({ "life_s": 300, "trusted_s": 250, "refusals": 3, "approvals": 0, "why": "" })),
        ] {
            line[name] = value;
        }
        let report = json!({
            "from": "2026-11-15", "to": "2026-11-16", "currency": "USD", "all": counts, "rows": [line],
            "left_out": 0, "pools": [],
        });
        let report: StockReport = serde_json::from_value(report).unwrap();
        anstream::adapter::strip_str(&text(&report, (Day(20_772), Day(20_773)), &[])).to_string()
    }

    #[test]
    fn a_target_is_shown_with_the_reason_for_a_short_life() {
        let text = shown(Some(11_960), 0);
        for words in [
            "2026-11-15 to 2026-11-16, in UTC; money in USD",
            "90 %",
            "0.01196",
            "12.0 s",
            "9.5 s",
            "250s of 300s (refused: 3)",
            "no pools",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn what_was_wasted_without_a_known_price_has_no_cost_of_zero() {
        assert!(shown(None, 2).contains(" not known "));
        assert!(shown(Some(2_990), 1).contains(" at least 0.00299 "));
    }

    #[test]
    fn days_that_are_not_typed_are_today() {
        let today = Day(100);
        let of = |from: Option<u64>, to: Option<u64>| days(from.map(Day), to.map(Day), today);
        for (from, to, expected) in [
            (None, None, (100, 100)),
            (Some(90), None, (90, 100)),
            (None, Some(90), (90, 90)),
            (Some(90), Some(95), (90, 95)),
            (Some(200), None, (200, 200)),
        ] {
            assert_eq!(of(from, to).unwrap(), (Day(expected.0), Day(expected.1)));
        }
        assert_eq!(of(Some(95), Some(90)).unwrap_err().exit, Exit::Usage);
    }
}
