//! `quittance top`: a node at work, in the terminal. It shows `/v1/admin/live` of the daemon that uses the store, or
//! what this process reads in a shared store. It changes nothing, and never keeps an embedded store open.

use crate::exit::{CliError, Exit};
use crate::interruption::Interruption;
use crate::top_feed::{Feed, from_outside};
use crate::{output, store};
use clap::Args;
use quittance_config::{Config, Scheme};
use quittance_daemon::ApiClient;
use quittance_top::{Missing, page};
use serde_json::{Value, json};
use std::io::{self, IsTerminal};
use std::time::Duration;
use tokio::sync::mpsc;

const NOW: &str = "/v1/admin/now";
/// The pause before a shared store is read again, because one reading shows no rates.
const LOOK_SPAN: Duration = Duration::from_secs(1);
/// How often a shared store is read at most.
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

pub(crate) async fn run(args: TopArgs, config: &Config) -> Result<Exit, CliError> {
    let is_screen = io::stdout().is_terminal() && io::stdin().is_terminal();
    if !args.once && !args.json && is_screen {
        return Box::pin(watch(Feed::of(config).await?)).await;
    }
    let (snapshot, outside) = look(config).await?;
    if args.json {
        let snapshot = match outside {
            Some(scheme) => without_node(snapshot, scheme),
            None => snapshot,
        };
        return output::print(&format!("{snapshot:#}\n")).map(|()| Exit::Done);
    }
    let snapshot = serde_json::from_value(snapshot).map_err(|error| {
        let what = format!(
            "the snapshot cannot be understood ({error}): is the daemon of another version than this?"
        );
        CliError::new(Exit::Store, what)
    })?;
    output::print(&page(&from_outside(snapshot, outside))).map(|()| Exit::Done)
}

async fn watch(mut feed: Feed) -> Result<Exit, CliError> {
    let mut interrupted = std::pin::pin!(Interruption::listen()?.came());
    let missing = match feed.open().await {
        Ok(()) => None,
        // Waiting does not help: a person must fix it.
        Err(Some(error)) if error.exit != Exit::Store => return Err(error),
        Err(missing) => Some(missing.map_or(Missing::NoDaemon, |error| Missing::Error(error.what))),
    };
    let (sender, snapshots) = mpsc::channel(1);
    tokio::select! {
        exit = &mut interrupted => Ok(exit),
        ended = quittance_top::watch(missing, snapshots) => match ended {
            Ok(is_interrupted) => Ok(if is_interrupted { Exit::Interrupted } else { Exit::Done }),
            Err(error) => Err(CliError::new(Exit::NotWritten, format!("the terminal cannot be used: {error}"))),
        },
        () = feed.send(sender) => Ok(Exit::Done),
    }
}

/// One snapshot, after which the store is free again. If this process has read the store, also the store's scheme. A
/// missing store is not created.
async fn look(config: &Config) -> Result<(Value, Option<Scheme>), CliError> {
    store::must_exist(&config.store)?;
    let client = ApiClient::find(config).await?;
    let mut snapshot: Value = client.get(NOW).await?;
    if matches!(client, ApiClient::Daemon(_)) {
        return Ok((snapshot, None));
    }
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
    Ok((snapshot, Some(scheme)))
}

/// Removes what only a running node knows: its name and age, latencies, and the state of the provider.
fn without_node(mut snapshot: Value, scheme: Scheme) -> Value {
    snapshot["node"] = Value::Null;
    snapshot["providers"] = json!([]);
    snapshot["latency_ms"] = json!({ "p50": null, "p95": null, "p99": null, "count": null });
    snapshot["store"]["kind"] = scheme.word().into();
    snapshot
}
