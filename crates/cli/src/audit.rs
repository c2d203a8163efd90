//! `quittance audit`: lists each attempt that was or may have been paid, why it was made, and who got its answer.
//! Then it compares the attempts with the usage and with the provider's ledger.

mod compare;
mod entry;
mod ledger;
mod summary;

use crate::days::{self, Days};
use crate::exit::{CliError, Exit};
use crate::{output, usage};
use clap::Args;
use compare::Comparison;
use quittance::{Day, SystemClock};
use quittance_admin::audit::{Audit, PaidAttempt};
use quittance_admin::node_state::ShownAccount;
use quittance_config::Config;
use quittance_daemon::ApiClient;
use quittance_daemon::configured_node;
use quittance_ports::Clock;
use std::path::PathBuf;
use summary::Summary;

/// How many attempts are requested at once.
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

pub(crate) async fn run(args: AuditArgs, config: &Config) -> Result<Exit, CliError> {
    let (from, to) = args.days.from(Day::of(SystemClock.now()));
    let form = match (args.json, args.csv) {
        (true, _) => Form::Json,
        (_, true) => Form::Csv,
        _ => Form::Text,
    };
    let theirs = args.ledger.as_deref().map(|path| ledger::read(path, from, to)).transpose()?;
    let mut comparison = theirs.map(Comparison::of);
    let client = ApiClient::find(config).await?;
    let mut summary = Summary::default();
    if form == Form::Csv {
        output::print(&entry::heading())?;
    }
    let mut after = None;
    loop {
        let Audit { currency, entries, unreadable, next } = page(&client, from, to, after.as_deref()).await?;
        summary.unreadable += unreadable as u64;
        summary.currency = currency;
        let mut rendered = String::new();
        for attempt in entries {
            summary.add(&attempt);
            rendered += &render(&attempt, form, &summary.currency)?;
            if let Some(comparison) = &mut comparison {
                comparison.see(attempt);
            }
        }
        output::print(&rendered)?;
        after = next;
        if after.is_none() {
            break;
        }
    }
    summary.usage = usage::read(&client, from, to, &[]).await?.all;
    if comparison.is_none() {
        summary.balance = balance(&client, config).await;
    }
    summary.compared = comparison.map(|comparison| comparison.end(summary.forgotten()));
    print_summary(&summary, form, from, to)?;
    Ok(if summary.is_explained() { Exit::Done } else { Exit::Bad })
}

fn render(attempt: &PaidAttempt, form: Form, currency: &str) -> Result<String, CliError> {
    Ok(match form {
        Form::Text => entry::line(attempt, currency),
        Form::Json => format!("{}\n", output::to_json(attempt)?),
        Form::Csv => entry::row(attempt),
    })
}

async fn page(client: &ApiClient, from: Day, to: Day, after: Option<&str>) -> Result<Audit, CliError> {
    let (from, to) = (days::render(from), days::render(to));
    let after = after.map(|key| format!("&after={key}")).unwrap_or_default();
    Ok(client.get(&format!("/v1/admin/audit?from={from}&to={to}&limit={PAGE}{after}")).await?)
}

/// The balance of the account, from the daemon or from the provider; `None` if neither reports it.
async fn balance(client: &ApiClient, config: &Config) -> Option<String> {
    let account: Option<ShownAccount> = client.get("/v1/account").await.ok();
    if let Some(balance) = account.and_then(|account| account.balance) {
        return Some(balance);
    }
    let provider = config.providers.first().filter(|_| matches!(client, ApiClient::InProcess(_)))?;
    let account = configured_node::account(provider).await.ok()?;
    account.balance.map(|balance| balance.to_string())
}

/// Prints the summary after the attempts. A CSV table has no place for it, so it then goes to standard error.
fn print_summary(summary: &Summary, form: Form, from: Day, to: Day) -> Result<(), CliError> {
    match form {
        Form::Json => output::print(&format!("{}\n", summary.json(from, to))),
        Form::Text => output::print(&summary.text(from, to)),
        Form::Csv => {
            output::tell(&summary.text(from, to));
            Ok(())
        }
    }
}
