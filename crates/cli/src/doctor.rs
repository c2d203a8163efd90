//! `quittance doctor`: checks what the configuration alone does not show. It checks the store and the clocks of its
//! nodes, each provider and its key, callbacks, and the daemon's addresses. Each finding says what to do.

mod listeners;
mod nodes;
mod store;

use crate::exit::{self, CliError, Exit};
use crate::output::harmless;
use crate::{budget, output, pool, provider, terminal};
use anstyle::{AnsiColor, Style};
use clap::Args;
use quittance::Account;
use quittance_admin::store_status::CheckupState as State;
use quittance_config::{Config, decimal};
use quittance_daemon::ApiClient;
use quittance_daemon::reach::{PublicAddress, arrives};
use quittance_daemon::{SetupFault, configured_node};
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

#[derive(Serialize)]
struct Finding {
    about: &'static str,
    state: State,
    what: String,
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, about: &'static str, state: State, what: impl Into<String>) {
        self.0.push(Finding { about, state, what: what.into() });
    }

    fn good(&mut self, about: &'static str, what: impl Into<String>) {
        self.add(about, State::Good, what);
    }

    fn note(&mut self, about: &'static str, what: impl Into<String>) {
        self.add(about, State::Note, what);
    }

    fn bad(&mut self, about: &'static str, what: impl Into<String>) {
        self.add(about, State::Bad, what);
    }
}

pub(crate) async fn run(args: DoctorArgs, config: &Config) -> Result<Exit, CliError> {
    let mut findings = Findings::default();
    findings.good("config", "it is valid");
    targets(&mut findings, config);
    store::store(&mut findings, config).await;
    providers(&mut findings, config).await;
    prices(&mut findings, config);
    pools(&mut findings, config).await;
    budgets(&mut findings, config).await;
    callbacks(&mut findings, config, args.yes).await;
    listeners::certificate(&mut findings, config);
    listeners::permissions(&mut findings, config);
    listeners::tenants(&mut findings, config);
    alerts(&mut findings, config);
    listeners::descriptors(&mut findings, config);
    let is_bad = findings.0.iter().any(|finding| finding.state == State::Bad);
    output::show(args.json, &findings.0, || as_text(&findings.0))?;
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

fn targets(findings: &mut Findings, config: &Config) {
    if config.targets.allow.iter().any(|pattern| pattern.to_string() == "*") {
        let what = "targets.allow has `*`: every site may be automated; list the hosts that you may automate";
        findings.note("targets", what);
    } else if config.targets.allow.is_empty() {
        let what =
            "no page host is allowed yet, apart from example.com and .test: list yours in targets.allow";
        findings.note("targets", what);
    }
}

/// Where prices come from, and which pools have a budget that lets them buy nothing.
fn prices(findings: &mut Findings, config: &Config) {
    for source in config.price_sources() {
        match source.is_empty {
            true => findings.note("prices", format!("{}: {NO_PRICES}", source.words)),
            false => findings.good("prices", source.words),
        }
    }
    config.budgets_that_buy_nothing().into_iter().for_each(|what| findings.bad("prices", what));
    config.budget_notes().into_iter().for_each(|what| findings.note("budgets", what));
}

/// Pools that buy nothing because a price or their spending is not known, if the store or its daemon can be read.
/// What `prices` has found in the configuration is not repeated.
async fn pools(findings: &mut Findings, config: &Config) {
    let Ok(client) = ApiClient::find(config).await else { return };
    let pools = pool::list(&client).await.unwrap_or_default();
    exit::close(&client).await;
    let known = config.budgets_that_buy_nothing();
    let stopped =
        pools.into_iter().filter_map(|pool| Some(format!("pool `{}`: {}", pool.name, pool.stopped?)));
    stopped.filter(|what| !known.contains(what)).for_each(|what| findings.bad("prices", what));
}

/// Budgets that allow no purchase now, if the store or its daemon can be read.
async fn budgets(findings: &mut Findings, config: &Config) {
    if config.budgets.is_empty() {
        return;
    }
    let Ok(client) = ApiClient::find(config).await else { return };
    let list = budget::list(&client).await;
    exit::close(&client).await;
    let Ok(list) = list else { return };
    for budget in list.budgets {
        match budget.stopped {
            Some(why) => findings.bad("budgets", format!("budget `{}`: {why}", budget.name)),
            None => findings.good("budgets", format!("budget `{}` allows purchases", budget.name)),
        }
    }
}

/// Whether alerts can be delivered.
fn alerts(findings: &mut Findings, config: &Config) {
    let problems = config.alerts.problems();
    if problems.is_empty() && config.alerts.has_receiver() {
        findings.good("alerts", "alerts can be delivered");
    }
    problems.into_iter().for_each(|what| findings.bad("alerts", what));
}

async fn providers(findings: &mut Findings, config: &Config) {
    let about = "provider";
    if config.providers.is_empty() {
        let what = "there is none: run `quittance init`, or add a [[provider]] to the configuration";
        return findings.bad(about, what);
    }
    config.provider_notes().into_iter().for_each(|what| findings.note(about, what));
    let without_orders = provider::without_orders(config).await;
    for provider in &config.providers {
        match configured_node::account(provider).await {
            Ok(account) => {
                let there = what_is_there(&account, &provider.currency);
                let answers = format!("{} answers and accepts the key{there}", provider.name);
                match without_orders.get(&provider.name) {
                    Some(why) => findings.note(about, format!("{answers}. It gets no orders: {why}")),
                    None => findings.good(about, answers),
                }
            }
            Err(error) if error.fault == SetupFault::Config => findings.bad(about, error.what),
            Err(error) => findings.bad(about, format!("{}: {error}", provider.name)),
        }
    }
}

/// Whether a provider's call would reach us.
async fn callbacks(findings: &mut Findings, config: &Config, may_call_out: bool) {
    let about = "callbacks";
    let Some(public_url) = &config.public_url else {
        return findings.note(about, config.lost_reply_risk().unwrap_or_default());
    };
    let Some(address) = PublicAddress::parse(public_url) else {
        return findings.bad(about, format!("{public_url} is no address that can be called"));
    };
    let remedy = "check public_url and what stands in front of us";
    let near = match address.is_near().await {
        Ok(near) => near,
        Err(why) => {
            return findings.bad(about, format!("{public_url} cannot be reached: {why}; {remedy}"));
        }
    };
    if !address.is_https() && !near {
        let what =
            "public_url is http: answers can be read on the way; put https in front of us, or set `tls`";
        findings.note(about, what);
    }
    if !near && !may_call_out {
        let what = format!(
            "whether {public_url} leads here was not tried, because it is another machine: `quittance doctor --yes` calls it"
        );
        return findings.note(about, what);
    }
    match arrives(config, public_url).await {
        Ok(to) => findings.good(about, format!("{public_url} leads to {to}")),
        Err(why) => {
            let listen = config.listen;
            findings.bad(about, format!("{public_url} does not lead to {listen}: {why}; {remedy}"));
        }
    }
}

fn what_is_there(account: &Account, currency: &str) -> String {
    let balance = account.balance.map(|money| format!("balance {}", decimal::with_currency(money, currency)));
    let threads =
        account.threads.map(|threads| format!("{} of {} threads in use", threads.working, threads.total));
    let parts: Vec<String> = balance.into_iter().chain(threads).collect();
    if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) }
}
