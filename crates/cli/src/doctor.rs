//! `quittance doctor`: checks what the configuration alone does not show. It checks the store and the clocks of its
//! nodes, the provider and its key, callbacks, and the daemon's addresses. Each finding says what to do.

mod callback_reach;
mod listeners;
mod nodes;
mod store;

pub(crate) use callback_reach::is_daemon_at;

use crate::api_client::ApiClient;
use crate::exit::{CliError, Exit};
use crate::output::harmless;
use crate::{node, output, pool, terminal};
use anstyle::{AnsiColor, Style};
use clap::Args;
use quittance::Account;
use quittance_admin::pools::ShownPool;
use quittance_config::{Config, Environment, decimal};
use serde::Serialize;
use std::fmt::Write;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance doctor
  quittance doctor --json | jq '.[] | select(.state != \"good\")'
  quittance doctor --yes       also call a public_url on another machine

Exit codes:
  0  no errors
  1  errors found; each finding says what to do
  4  the configuration is wrong

The doctor places no order and pays nothing. While `quittance serve` runs on an
embedded store, the doctor asks the daemon about the store. If an operator's key
is configured (`admin`), set QUITTANCE_ADMIN_KEY to it.";

#[derive(Args, Debug, Default)]
pub(crate) struct DoctorArgs {
    /// Print a JSON array of findings
    #[arg(long)]
    json: bool,
    /// Call public_url even if it points to another machine
    #[arg(long)]
    yes: bool,
}

/// The meaning if neither a list nor the operator sets a price.
const NO_PRICES: &str =
    "what an answer costs is not known unless the provider says it, and callbacks never do; set `prices`";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Good,
    Note,
    Bad,
}

#[derive(Serialize)]
struct Finding {
    about: &'static str,
    state: State,
    what: String,
}

impl Finding {
    fn new(about: &'static str, state: State, what: impl Into<String>) -> Self {
        Self { about, state, what: what.into() }
    }
}

pub(crate) async fn run(
    args: DoctorArgs,
    config: &Config,
    environment: &Environment,
) -> Result<Exit, CliError> {
    let mut findings = vec![Finding::new("config", State::Good, "it is valid")];
    findings.extend(targets(config));
    findings.extend(store::store(config, environment).await);
    findings.extend(provider(config).await);
    findings.extend(prices(config));
    findings.extend(pools(config, environment).await);
    findings.extend(callback_reach::callbacks(config, args.yes).await);
    findings.extend(listeners::certificate(config));
    findings.extend(listeners::permissions(config));
    findings.extend(listeners::tenants(config));
    findings.extend(alerts(config));
    findings.extend(listeners::descriptors(config));
    let is_bad = findings.iter().any(|finding| finding.state == State::Bad);
    output::show(args.json, &findings, || as_text(&findings))?;
    Ok(if is_bad { Exit::Bad } else { Exit::Done })
}

/// The column at which the words of a finding begin.
const COLUMN: usize = 18;

fn as_text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { about, state, what } in findings {
        let (style, word): (Style, _) = match state {
            State::Good => (AnsiColor::Green.on_default(), "good"),
            State::Note => (AnsiColor::Yellow.on_default(), "note"),
            State::Bad => (AnsiColor::Red.on_default().bold(), "BAD"),
        };
        let what = terminal::wrapped(&harmless(what), COLUMN, terminal::width());
        _ = writeln!(text, "{style}{word:<5}{style:#} {about:<11} {what}");
    }
    text
}

fn targets(config: &Config) -> Option<Finding> {
    if config.targets.allow.iter().any(|pattern| pattern.to_string() == "*") {
        let what = "targets.allow has `*`: every site may be automated; list the hosts that you may automate";
        return Some(Finding::new("targets", State::Note, what));
    }
    config.targets.allow.is_empty().then(|| {
        let what =
            "no page host is allowed yet, apart from example.com and .test: list yours in targets.allow";
        Finding::new("targets", State::Note, what)
    })
}

/// Where prices come from, and which pools have a budget that lets them buy nothing.
fn prices(config: &Config) -> Vec<Finding> {
    let stopped = config.budgets_that_buy_nothing().into_iter();
    let source = match config.price_table().is_empty() {
        true => Finding::new("prices", State::Note, format!("{}: {NO_PRICES}", config.price_source())),
        false => Finding::new("prices", State::Good, config.price_source()),
    };
    [source].into_iter().chain(stopped.map(|what| Finding::new("prices", State::Bad, what))).collect()
}

/// Pools that buy nothing because a price or their spending is not known, if the store or its daemon can be read.
/// What `prices` has found in the configuration is not repeated.
async fn pools(config: &Config, environment: &Environment) -> Vec<Finding> {
    let Ok(client) = ApiClient::find(config, environment).await else { return Vec::new() };
    let pools = pool::list(&client).await.unwrap_or_default();
    client.close().await;
    let known = config.budgets_that_buy_nothing();
    let stopped = |pool: ShownPool| {
        let what = format!("pool `{}`: {}", pool.name, pool.stopped?);
        (!known.contains(&what)).then(|| Finding::new("prices", State::Bad, what))
    };
    pools.into_iter().filter_map(stopped).collect()
}

/// Whether alerts can be delivered.
fn alerts(config: &Config) -> Vec<Finding> {
    let problems = config.alerts.problems();
    if problems.is_empty() && config.alerts.has_receiver() {
        return vec![Finding::new("alerts", State::Good, "alerts can be delivered")];
    }
    problems.into_iter().map(|what| Finding::new("alerts", State::Bad, what)).collect()
}

async fn provider(config: &Config) -> Vec<Finding> {
    let Some(first) = config.providers.first() else {
        return vec![Finding::new(
            "provider",
            State::Bad,
            "there is none: run `quittance init`, or add a [[provider]] to the configuration",
        )];
    };
    vec![match node::account(first).await {
        Ok(account) => Finding::new(
            "provider",
            State::Good,
            format!("{} answers and accepts the key{}", first.name, what_is_there(&account, &first.currency)),
        ),
        Err(error) if error.exit == Exit::Config => Finding::new("provider", State::Bad, error.what),
        Err(error) => Finding::new("provider", State::Bad, format!("{}: {error}", first.name)),
    }]
}

fn what_is_there(account: &Account, currency: &str) -> String {
    let balance = account.balance.map(|money| format!("balance {}", decimal::with_currency(money, currency)));
    let threads =
        account.threads.map(|threads| format!("{} of {} threads in use", threads.working, threads.total));
    let parts: Vec<String> = balance.into_iter().chain(threads).collect();
    if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) }
}
