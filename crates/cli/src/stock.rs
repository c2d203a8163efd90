//! `quittance stock`: what the stock was worth. For each target how much of what was asked came from it, how old that was and
//! how much sooner it came, and what was paid for and expired; and then how the pools stand.

pub(crate) mod rows;

use crate::exit::{CliError, Exit};
use crate::output::harmless;
use crate::pool::told::Pool;
use crate::pool::{self, percent};
use crate::stock_client::StockClient;
use crate::table::{self, Cell, PLAIN};
use crate::{day, output};
use anstyle::{AnsiColor, Style};
use clap::Args;
use quittance::{Day, SystemClock};
use quittance_config::{Config, Environment, duration};
use quittance_ports::Clock;
use rows::{Row, Rows, Target};
use serde_json::{Value, json};

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance stock                                today, in UTC
  quittance stock --from 2026-11-01 --to 2026-11-15
  quittance stock --json | jq '.targets[] | select(.hit_rate < 0.9)'

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

If a daemon uses the embedded store, the command asks the daemon over HTTP, for
92 days at most. If an operator's key is configured (`admin`), set
QUITTANCE_ADMIN_KEY to it.

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
    day::parse(typed).ok_or_else(|| format!("write {}", day::FORM))
}

struct Report {
    from: Day,
    to: Day,
    /// What all money is in.
    currency: String,
    rows: Rows,
    pools: Vec<Pool>,
}

pub(crate) async fn run(
    args: StockArgs,
    config: &Config,
    environment: &Environment,
) -> Result<Exit, CliError> {
    let (from, to) = days(args.from, args.to, Day::of(SystemClock.now()))?;
    let stock_client = StockClient::find(config, environment).await?;
    // Only the operator may list pools. This request comes first, so that a tenant's key fails before it shows a part of the usage.
    let pools = stock_client.pools().await?;
    let (rows, currency) = (stock_client.stock(from, to, config).await?, config.currency().to_owned());
    let report = Report { from, to, currency, rows, pools };
    output::print(&match args.json {
        true => format!("{:#}\n", report.json()),
        false => report.text(),
    })?;
    Ok(Exit::Done)
}

fn days(from: Option<Day>, to: Option<Day>, today: Day) -> Result<(Day, Day), CliError> {
    let from = from.unwrap_or_else(|| to.map_or(today, |to| to.min(today)));
    let to = to.unwrap_or(from.max(today));
    if from > to {
        let what = format!("{} is after {}: turn them around", day::render(from), day::render(to));
        return Err(CliError::new(Exit::Usage, what));
    }
    Ok((from, to))
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

const NOTE: Style = AnsiColor::Yellow.on_default();
const HEADINGS: [&str; 12] = [
    "TENANT",
    "KIND",
    "SITE",
    "ASKED",
    "FROM STOCK",
    "HIT RATE",
    "STOCKED",
    "WASTED",
    "COST",
    "AGE",
    "SOONER",
    "LIFE",
];

fn cells((target, row): (&Target, &Row)) -> [Cell; 12] {
    let (tenant, kind, site) = target;
    let plain = |text: String| (PLAIN, text);
    let count = |count: u64| (PLAIN, count.to_string());
    let span = |ms: Option<u64>| plain(ms.map_or("-".into(), |ms| format!("{:.1} s", seconds(ms))));
    let life = match row.lives {
        None => plain("-".into()),
        Some((life, trusted)) if trusted < life => {
            let (life, trusted) = (duration::render(life), duration::render(trusted));
            (NOTE, format!("{trusted} of {life} (refused: {})", row.refusals))
        }
        Some((life, _)) => plain(duration::render(life)),
    };
    [
        plain(harmless(tenant)),
        plain(harmless(kind)),
        plain(if site.is_empty() { "-".into() } else { harmless(site) }),
        count(row.asked),
        count(row.from_stock),
        plain(row.hits.map_or("-".into(), percent)),
        count(row.stocked),
        count(row.wasted),
        plain(row.wasted_cost.words("")),
        span(row.age_ms),
        span(row.saved_each_ms()),
        life,
    ]
}

impl Report {
    fn json(&self) -> Value {
        let targets = self.rows.iter().map(|((tenant, kind, site), row)| {
            json!({
                "tenant": tenant, "kind": kind, "site": site, "asked": row.asked,
                "from_stock": row.from_stock, "hit_rate": row.hits.map(|permille| permille as f64 / 1000.0),
                "stocked": row.stocked, "wasted": row.wasted,
                "wasted_micros": row.wasted_cost.known().map(|cost| cost.0), "wasted_unpriced": row.wasted_cost.unpriced,
                "age_s": row.age_ms.map(seconds), "saved_s": row.saved_each_ms().map(seconds),
                "saved_total_s": seconds(row.saved_ms),
                "reported_bad": row.reported_bad, "refusals_remembered": row.refusals,
                "life_s": row.lives.map(|(life, _)| life.as_secs_f64()),
                "trusted_life_s": row.lives.map(|(_, trusted)| trusted.as_secs_f64()),
            })
        });
        json!({
            "from": day::render(self.from), "to": day::render(self.to), "currency": self.currency,
            "targets": targets.collect::<Vec<_>>(),
            "pools": self.pools.iter().map(pool::as_json).collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let days = match self.from == self.to {
            true => day::render(self.from),
            false => format!("{} to {}", day::render(self.from), day::render(self.to)),
        };
        let rows = self.rows.iter().map(cells);
        let table = match self.rows.is_empty() {
            true => "No orders were placed.\n".to_owned(),
            false => table::render(HEADINGS, rows),
        };
        format!("{days}, in UTC; money in {}\n\n{table}\n{}", self.currency, pool::as_table(&self.pools))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_config::config_with;
    use quittance::lifecycle::{Counters, Timestamp};
    use quittance::{TrustDocument, UsageRow};
    use quittance_ports::Trust;
    use std::time::Duration;

    fn line(day: u64, site: &str) -> UsageRow {
        UsageRow {
            day: Day(day),
            tenant: "default".into(),
            kind: "turnstile".into(),
            site: site.into(),
            account: "main USD".into(),
        }
    }

    fn refused(site: &str, now: Timestamp) -> TrustDocument {
        let mut trust = Trust::default();
        (0..3).for_each(|_| trust.refused(now, Duration::from_secs(200)));
        TrustDocument { tenant: "default".into(), kind: "turnstile".into(), site: site.into(), trust }
    }

    fn report(settings: &[&str]) -> Report {
        let counters = |asked, from_stock| Counters {
            asked,
            from_stock,
            joined: 5,
            refused: 5,
            stock_age_ms: from_stock * 12_000,
            saved_ms: from_stock * 9_500,
            stocked: from_stock + 2,
            wasted: 2,
            wasted_micros: 5_980,
            ..Counters::default()
        };
        let now = Timestamp::from_millis(20_773 * 86_400_000);
        let usage = vec![
            (line(20_772, "a.example.com"), counters(60, 40)),
            (line(20_773, "a.example.com"), counters(60, 50)),
            (line(20_773, "b.example.com"), Counters { asked: 1, joined: 1, ..Counters::default() }),
        ];
        let rows = rows::of_store(usage, vec![refused("a.example.com", now)], now, &config_with(settings));
        Report { from: Day(20_772), to: Day(20_773), currency: "USD".into(), rows, pools: Vec::new() }
    }

    #[test]
    fn days_are_added_up_and_those_who_shared_do_not_count_against_the_stock() {
        let object = report(&[]).json();
        assert_eq!((&object["from"], &object["to"]), (&"2026-11-15".into(), &"2026-11-16".into()));
        let target = &object["targets"][0];
        for (name, expected) in [
            ("asked", json!(120)),
            ("hit_rate", json!(0.9)),
            ("wasted_micros", json!(11_960)),
            ("age_s", json!(12.0)),
            ("saved_s", json!(9.5)),
            ("saved_total_s", json!(855.0)),
            ("life_s", json!(300.0)),
            ("trusted_life_s", json!(250.0)),
        ] {
            assert_eq!(target[name], expected, "{name}");
        }
        assert_eq!(object["currency"], "USD");
        assert_eq!(object["targets"][1]["hit_rate"], Value::Null, "nobody wanted one of his own");
    }

    #[test]
    fn a_person_reads_the_same_and_why_a_life_is_short() {
        let text = anstream::adapter::strip_str(&report(&[]).text()).to_string();
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
        let wasted = |unpriced: u64, micros: u64| {
            let counters = Counters {
                asked: 2,
                wasted: 2,
                wasted_unpriced: unpriced,
                wasted_micros: micros,
                ..Counters::default()
            };
            let usage = vec![(line(20_773, "a.example.com"), counters)];
            let rows = rows::of_store(usage, Vec::new(), Timestamp::from_millis(0), &config_with(&[]));
            let report = Report {
                from: Day(20_773),
                to: Day(20_773),
                currency: "USD".into(),
                rows,
                pools: Vec::new(),
            };
            (
                report.json()["targets"][0]["wasted_micros"].clone(),
                anstream::adapter::strip_str(&report.text()).to_string(),
            )
        };
        let (micros, text) = wasted(2, 0);
        assert!(micros.is_null() && text.contains(" not known "), "{text}");
        let (micros, text) = wasted(1, 2_990);
        assert!(micros == 2_990 && text.contains(" at least 0.00299 "), "{text}");
    }

    #[test]
    fn a_rule_for_a_site_changes_its_life_here_as_it_does_in_the_engine() {
        let rule = ["lifetimes.1.host=*.example.com", "lifetimes.1.life=240s"];
        assert_eq!(report(&rule).json()["targets"][0]["life_s"], 240.0);
    }

    #[test]
    fn days_that_are_not_said_are_today() {
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
