//! `quittance audit`: every cent explained. Each attempt that was paid for, or may have been, with why it was made and who got its
//! answer; then how that compares with the usage, and with the provider's own ledger where there is one.

mod compare;
mod entry;
mod ledger;
mod summary;

use crate::client::ApiClient;
use crate::days::{self, Days};
use crate::exit::{CliError, Exit};
use crate::usage::Sums;
use crate::{day, node, output, usage};
use clap::Args;
use compare::Comparison;
use entry::{Entry, Page};
use quittance::{Day, SystemClock};
use quittance_config::{Config, Environment};
use quittance_ports::Clock;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::PathBuf;
use summary::Summary;

/// How many are asked for at once.
const PAGE: usize = 500;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance audit                               today, in UTC
  quittance audit 7d --csv > week.csv
  quittance audit yesterday --ledger their.csv  compare with the provider's
  curl -s localhost:8790/mock/ledger | quittance audit --ledger -

Each line is an attempt that the provider accepted, or may have accepted, and
that is still on record. (An order is removed `store.keep` after its answer has
expired.) The end of the output says how much of the usage of the same days
these attempts explain, and how much belongs to orders no longer on record.

The ledger is the mock provider's, JSON lines, or CSV with a header. A task has
  id (or task, task_id, taskId)
  cost or price (or cost_micros, price_micros)
and, where known,
  charged    false: the money was given back
  at_ms      milliseconds since 1970
Tasks that only the ledger has are compared with our attempts in doubt. Tasks
that only we have, and prices that differ, are reported. Without a ledger, the
command asks the provider for the balance.

--json prints one object for each attempt, then one with `summary`.

Exit codes:
  0  everything is explained
  1  something in the ledger or in our records is not explained
  2  the command or the ledger was not understood
  3  the result could not be written
  4  the configuration or the operator's key is wrong
  5  the store cannot be opened or used, or its daemon does not answer";

#[derive(Args, Debug)]
pub(crate) struct AuditArgs {
    /// Days, in UTC: today, yesterday, 7d, a day, or FROM..TO
    #[arg(value_name = "DAYS", default_value = "today", value_parser = days::read)]
    days: Days,
    /// Compare with this ledger of the provider; `-` for standard input
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Print JSON lines
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
    Csv,
}

pub(crate) async fn run(
    args: AuditArgs,
    config: &Config,
    environment: &Environment,
) -> Result<Exit, CliError> {
    let (from, to) = args.days.from(Day::of(SystemClock.now()));
    let form = match (args.json, args.csv) {
        (true, _) => Form::Json,
        (_, true) => Form::Csv,
        _ => Form::Text,
    };
    let theirs = args.ledger.as_deref().map(|path| ledger::read(path, from, to)).transpose()?;
    let mut comparison = theirs.map(Comparison::of);
    let client = ApiClient::find(config, environment).await?;
    let mut summary = Summary::default();
    if form == Form::Csv {
        output::print(&Entry::heading())?;
    }
    let mut after = None;
    loop {
        let Page { currency, entries, unreadable, next } = page(&client, from, to, after.as_deref()).await?;
        summary.unreadable += unreadable;
        summary.currency = currency;
        let mut rendered = String::new();
        for told in &entries {
            let entry =
                Entry::read(told, &summary.currency).map_err(|why| CliError::new(Exit::Store, why))?;
            summary.add(&entry);
            rendered += &match form {
                Form::Text => entry.line(&summary.currency),
                Form::Json => entry.json(told),
                Form::Csv => entry.row(),
            };
            if let Some(comparison) = &mut comparison {
                comparison.see(entry);
            }
        }
        output::print(&rendered)?;
        after = next;
        if after.is_none() {
            break;
        }
    }
    summary.usage = usage(&client, from, to).await?;
    if comparison.is_none() {
        summary.balance = balance(&client, config).await;
    }
    summary.compared = comparison.map(|comparison| comparison.end(summary.forgotten()));
    tell(&summary, form, from, to)?;
    Ok(if summary.is_explained() { Exit::Done } else { Exit::Bad })
}

async fn page(client: &ApiClient, from: Day, to: Day, after: Option<&str>) -> Result<Page, CliError> {
    let (from, to) = (day::render(from), day::render(to));
    let after = after.map(|key| format!("&after={key}")).unwrap_or_default();
    let path = format!("/v1/admin/audit?from={from}&to={to}&limit={PAGE}{after}");
    Ok(client.read(&path).await?)
}

async fn usage(client: &ApiClient, from: Day, to: Day) -> Result<Sums, CliError> {
    let told = usage::ask(client, from, to, &[]).await?;
    let all: Option<Map<String, Value>> = told.get("all").and_then(Value::as_object).cloned();
    all.map(Sums::of).ok_or_else(|| CliError::new(Exit::Store, "the usage make no sense: they have no sums"))
}

#[derive(Deserialize)]
struct Account {
    balance: Option<String>,
}

/// What the account has left, where anybody tells: the daemon, or the provider itself.
async fn balance(client: &ApiClient, config: &Config) -> Option<String> {
    let told: Option<Account> = client.read("/v1/account").await.ok();
    if let Some(balance) = told.and_then(|account| account.balance) {
        return Some(balance);
    }
    // Without a daemon the provider itself is asked.
    let provider = config.providers.first().filter(|_| matches!(client, ApiClient::Here(_)))?;
    let account = node::account(provider).await.ok()?;
    account.balance.map(|balance| balance.to_string())
}

/// What is for a person or a program stands at the end; a table for a spreadsheet has no room for it.
fn tell(summary: &Summary, form: Form, from: Day, to: Day) -> Result<(), CliError> {
    match form {
        Form::Json => output::print(&format!("{}\n", summary.json(from, to))),
        Form::Text => output::print(&summary.text(from, to)),
        Form::Csv => {
            output::tell(&summary.text(from, to));
            Ok(())
        }
    }
}
