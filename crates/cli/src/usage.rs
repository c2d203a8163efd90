//! `quittance usage`: the usage, for the person who pays the bill. What was asked, paid and saved on some days, in all or by parts, as a
//! table, or for a spreadsheet or a program.

mod render;
mod reply;

use crate::client::ApiClient;
use crate::days::{self, Days};
use crate::exit::{CliError, Exit};
use crate::{day, output, terminal};
use clap::{Args, ValueEnum};
use quittance::{Day, SystemClock};
use quittance_config::{Config, Environment};
use quittance_ports::Clock;
use reply::Report;
use serde_json::Value;

pub(crate) use reply::Sums;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance usage                              today, in UTC
  quittance usage 7d --by day                  a week, day by day
  quittance usage yesterday --by tenant,kind
  quittance usage 2026-11-01..2026-11-15 --by site --csv > november.csv

Columns:
  JOINED, CACHED  placements that got an answer paid for by another placement
  SAVED           what those would have cost, at the mean price of the same row
                  of the usage
  RETRIED         attempts that were not the first of their order
  BY POLL         answers that came by poll although a callback was due
  FROM DOUBT      attempts that were in doubt and were settled later
  DOUBLES?        attempts made while an earlier one may have been paid for
  WASTED          answers that were paid for and could not be used

Money is in the currency of the provider's account (`currency`). If the provider
reports no price, `prices` or the built-in price list of the service is used;
else the price is not known. See docs/usage.md.

Sites are kept for `usage.detail_days`. Older days keep only totals, with `*`
for the site.

If a daemon uses the embedded store, the command asks the daemon over HTTP. If
an operator's key is configured (`admin`), set QUITTANCE_ADMIN_KEY to it.

Exit codes:
  0  shown
  2  the command was not understood
  3  the result could not be written
  4  the configuration or the operator's key is wrong
  5  the store cannot be opened or used, or its daemon does not answer";

/// What the usage can be told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Day,
    Tenant,
    #[value(alias = "target")]
    Site,
    Kind,
    Provider,
}

impl By {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Tenant => "tenant",
            Self::Site => "site",
            Self::Kind => "kind",
            Self::Provider => "provider",
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct UsageArgs {
    /// Days, in UTC: today, yesterday, 7d, a day, or FROM..TO
    #[arg(value_name = "DAYS", default_value = "today", value_parser = days::read)]
    days: Days,
    /// Group rows by these, separated by commas
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    by: Vec<By>,
    /// Print comma-separated values with every counter, totals last
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(
    args: UsageArgs,
    config: &Config,
    environment: &Environment,
) -> Result<Exit, CliError> {
    let (from, to) = args.days.from(Day::of(SystemClock.now()));
    let mut by: Vec<By> = Vec::new();
    args.by.iter().for_each(|part| {
        if !by.contains(part) {
            by.push(*part);
        }
    });
    let client = ApiClient::find(config, environment).await?;
    let told = ask(&client, from, to, &by).await?;
    let rendered = if args.json {
        format!("{told:#}\n")
    } else {
        let report = Report::read(told, &by)
            .map_err(|why| CliError::new(Exit::Store, format!("the usage make no sense: {why}")))?;
        if args.csv { render::csv(&report) } else { render::text(&report, from, to, terminal::width()) }
    };
    output::print(&rendered)?;
    Ok(Exit::Done)
}

/// The report of these days, as it is told.
pub(crate) async fn ask(client: &ApiClient, from: Day, to: Day, by: &[By]) -> Result<Value, CliError> {
    let parts: Vec<&str> = by.iter().map(|by| by.name()).collect();
    let (from, to) = (day::render(from), day::render(to));
    let path = format!("/v1/admin/usage?from={from}&to={to}&by={}", parts.join(","));
    Ok(client.read(&path).await?)
}
