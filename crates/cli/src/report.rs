//! `quittance report`: the books for whoever pays the bill. What was asked, paid and saved on some days, in all or by parts, as a
//! table, as bars, or for a spreadsheet or a program.

mod chart;
mod shown;
mod told;

use crate::config::{Config, Environment};
use crate::days::{self, Days};
use crate::exit::{Exit, Trouble};
use crate::office::Office;
use crate::{day, output, terminal};
use clap::{Args, ValueEnum};
use quittance::{Day, SystemClock};
use quittance_ports::Clock;
use serde_json::Value;
use told::Report;

pub(crate) use told::Sums;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance report                              today, in UTC
  quittance report 7d --by day                  a week, day by day
  quittance report yesterday --by tenant,kind
  quittance report 2026-11-01..2026-11-15 --by site --csv > november.csv
  quittance report 7d --by tenant --chart       bars: spent, saved and asked

JOINED and CACHED placements were given what somebody else had paid for: SAVED is what they would have
cost, at the mean price of what was bought in the same line of the books. RETRIED attempts were not the first of
their order; BY POLL are answers that had to be asked for although a callback was due; FROM DOUBT are
attempts whose outcome nobody knew at first. DOUBLES? were made while an earlier attempt may have been paid
for. WASTED answers were paid for and nobody could use them any more. Money is in the currency
of the provider's account (`currency`); where the provider says no price, `prices` of the configuration or the
price list that ships for the service counts, and else it is not known. docs/books.md says more.

Days are kept for each site for `books.detail_days`; of older days the sums are left, with `*` for the site.

A daemon that has an embedded store to itself is asked over HTTP. If an operator's key is configured
(`admin`), put it into QUITTANCE_ADMIN_KEY.

Exit codes:
  0  shown
  2  the command was not understood
  3  the result could not be written
  4  the configuration is wrong, or the operator's key
  5  the store cannot be opened or used, or the daemon that has it does not answer";

/// What the books can be told by.
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
pub(crate) struct ReportArgs {
    /// Which days, in UTC: today, yesterday, 7d, a day, or FROM..TO
    #[arg(value_name = "DAYS", default_value = "today", value_parser = days::read)]
    days: Days,
    /// What each row is about; several with commas between them
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    by: Vec<By>,
    /// Print comma-separated values, every line of the books among them, totals last
    #[arg(long, conflicts_with_all = ["json", "chart"])]
    csv: bool,
    /// Print one JSON object
    #[arg(long, conflicts_with = "chart")]
    json: bool,
    /// Draw bars, by the first of the parts; by day if there are none
    #[arg(long)]
    chart: bool,
}

pub(crate) async fn run(
    args: ReportArgs,
    config: &Config,
    environment: &Environment,
) -> Result<Exit, Trouble> {
    let (from, to) = args.days.from(Day::of(SystemClock.now()));
    let mut by: Vec<By> = Vec::new();
    args.by.iter().for_each(|part| {
        if !by.contains(part) {
            by.push(*part);
        }
    });
    if args.chart {
        by = vec![by.first().copied().unwrap_or(By::Day)];
    }
    let office = Office::find(config, environment).await?;
    let told = ask(&office, from, to, &by).await?;
    let rendered = if args.json {
        format!("{told:#}\n")
    } else {
        let report = Report::read(told, &by)
            .map_err(|why| Trouble::new(Exit::Store, format!("the books make no sense: {why}")))?;
        match (args.csv, args.chart) {
            (true, _) => shown::csv(&report),
            (_, true) => chart::draw(&report, terminal::width(), terminal::speaks_utf8(environment)),
            _ => shown::text(&report, from, to, terminal::width()),
        }
    };
    output::print(&rendered)?;
    Ok(Exit::Done)
}

/// The report of these days, as it is told.
pub(crate) async fn ask(office: &Office, from: Day, to: Day, by: &[By]) -> Result<Value, Trouble> {
    let parts: Vec<&str> = by.iter().map(|by| by.name()).collect();
    let (from, to) = (day::render(from), day::render(to));
    let path = format!("/v1/admin/report?from={from}&to={to}&by={}", parts.join(","));
    Ok(office.read(&path).await?)
}
