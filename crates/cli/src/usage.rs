//! `quittance usage`: what was asked, paid and saved on some days, in total or grouped, as a table, as CSV or as JSON.

mod comparison;
mod render;

use crate::days::{self, Days};
use crate::exit::{CliError, Exit};
use crate::{output, terminal};
use clap::Args;
use quittance::{Day, SystemClock};
use quittance_admin::usage::{By, UsageReport};
use quittance_config::Config;
use quittance_daemon::ApiClient;
use quittance_ports::Clock;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance usage                              today, in UTC
  quittance usage 7d --by day                  a week, day by day
  quittance usage yesterday --by tenant,kind
  quittance usage 30d --by provider            compares providers
  quittance usage 2026-11-01..2026-11-15 --by site --csv > november.csv

Columns:
  JOINED, CACHED  placements that got an answer paid for by another placement
  SAVED           what those would have cost, at the mean price of the same row
                  of the usage
  REJECTED        submits that the provider did not take
  RETRIED         attempts that were not the first of their order
  BY POLL         answers that came by poll although a callback was due
  SETTLED         attempts that were in doubt and were settled later
  DOUBLES?        attempts made while an earlier one may have been paid for
  WASTED          answers that were paid for and could not be used

With --by provider, a second table has the price per answer (spent / solved),
the success (solved / paid), the rejected submits (rejected / attempts) and the
answers that callers reported as bad. P50 and P95 are the solve times that the
daemon has measured since its start; with other parts than kind, they are not
known.

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

/// A part to group by; `target` is another name of `site`.
fn by(typed: &str) -> Result<By, String> {
    let typed = if typed == "target" { "site" } else { typed };
    let found = By::ALL.into_iter().find(|(name, _)| *name == typed).map(|(_, by)| by);
    found.ok_or_else(|| format!("choose from {}", By::ALL.map(|(name, _)| name).join(", ")))
}

#[derive(Args, Debug)]
pub(crate) struct UsageArgs {
    /// Days, in UTC: today, yesterday, 7d, a day, or FROM..TO
    #[arg(value_name = "DAYS", default_value = "today", value_parser = days::read)]
    days: Days,
    /// Group rows by these, separated by commas
    ///
    /// Any of day, tenant, site, kind and provider.
    #[arg(long, value_name = "FIELDS", value_delimiter = ',', value_parser = by)]
    by: Vec<By>,
    /// Print comma-separated values with every counter, totals last
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: UsageArgs, config: &Config) -> Result<Exit, CliError> {
    let (from, to) = args.days.from(Day::of(SystemClock.now()));
    let mut by: Vec<By> = Vec::new();
    for part in args.by {
        if !by.contains(&part) {
            by.push(part);
        }
    }
    let client = ApiClient::find(config).await?;
    let report = read(&client, from, to, &by).await?;
    output::show(args.json, &report, || match args.csv {
        true => render::csv(&report),
        false => render::text(&report, from, to, terminal::width()),
    })
}

/// The report of these days, both included.
pub(crate) async fn read(client: &ApiClient, from: Day, to: Day, by: &[By]) -> Result<UsageReport, CliError> {
    let parts: Vec<&str> = by.iter().map(|by| by.name()).collect();
    let (from, to) = (days::render(from), days::render(to));
    Ok(client.get(&format!("/v1/admin/usage?from={from}&to={to}&by={}", parts.join(","))).await?)
}
