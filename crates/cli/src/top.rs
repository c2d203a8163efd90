//! `quittance top`: a node at work, in the terminal. It shows what `/v1/admin/live` shows, of the daemon that has the store, or what
//! this process sees in a store that is shared. It changes nothing, and never keeps an embedded store open.

mod draw;
mod feed;
mod small_screen;
mod snapshot;
mod terminal;
#[cfg(test)]
mod tests;
mod text;

use crate::client::ApiClient;
use crate::exit::{CliError, Exit};
use crate::{output, store};
use clap::Args;
use feed::Feed;
use quittance_config::{Config, Environment, Scheme};
use serde_json::{Value, json};
use snapshot::Snapshot;
use std::io::{self, IsTerminal};
use std::time::Duration;

const NOW: &str = "/v1/admin/now";
/// One look has no rates: a store is looked at again after so long, and so often at most. One that is slow is not read each time.
const LOOK_SPAN: Duration = Duration::from_secs(1);
const LOOKS_MAX: usize = 5;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance top
  quittance top --once                  one snapshot, as text
  quittance top --json | jq .orders     one snapshot, as the API returns it

Keys: q or Esc quits, p pauses the display, ? shows help.

The command asks the daemon that uses the store, and waits if the daemon does
not run yet. It reads a shared store directly. Set QUITTANCE_ADMIN_KEY to the
operator's key. Without a terminal, it prints one snapshot. Values that are not
known are `-`, and null in JSON.

Exit codes:
  0        shown
  4        the configuration or the key is wrong
  5        the store or the daemon does not answer, or there is no store
  130,143  stopped by a signal";

#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    /// Print one snapshot as text, and exit
    #[arg(long)]
    once: bool,
    /// Print one snapshot as the API returns it, and exit
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: TopArgs, config: &Config, environment: &Environment) -> Result<Exit, CliError> {
    let is_screen = io::stdout().is_terminal() && io::stdin().is_terminal();
    if !args.once && !args.json && is_screen {
        return terminal::watch(Feed::of(config, environment).await?).await;
    }
    let snapshot = look(config, environment).await?;
    if args.json {
        return output::print(&format!("{snapshot:#}\n")).map(|()| Exit::Done);
    }
    let picture: Snapshot = serde_json::from_value(snapshot).map_err(|error| {
        let what = format!(
            "the snapshot cannot be understood ({error}): is the daemon of another version than this?"
        );
        CliError::new(Exit::Store, what)
    })?;
    output::print(&text::page(&picture)).map(|()| Exit::Done)
}

/// One look, after which the store is free again. What is not there is not made to be looked at.
async fn look(config: &Config, environment: &Environment) -> Result<Value, CliError> {
    store::must_exist(&config.store)?;
    let client = ApiClient::find(config, environment).await?;
    let mut snapshot: Value = client.get(NOW).await?;
    if matches!(client, ApiClient::InProcess(_)) {
        let scheme = config.store.url.scheme();
        // A store that is not shared has no node now, and a daemon may be about to start.
        let looks_max = if scheme.is_shared() { LOOKS_MAX } else { 1 };
        for _ in 1..looks_max {
            if snapshot["rates"]["asked"].is_number() || snapshot["store"]["is_up"] != true {
                break;
            }
            tokio::time::sleep(LOOK_SPAN).await;
            snapshot = client.get(NOW).await?;
        }
        from_outside(&mut snapshot, scheme);
    }
    Ok(snapshot)
}

/// Removes what only a node knows. A command that reads a store has no name and no age there, no latencies, and no state of the
/// provider.
fn from_outside(snapshot: &mut Value, scheme: Scheme) {
    snapshot["node"] = Value::Null;
    snapshot["providers"] = json!([]);
    snapshot["latency_ms"] = json!({ "p50": null, "p95": null, "p99": null, "count": null });
    snapshot["store"]["kind"] = scheme.word().into();
}
