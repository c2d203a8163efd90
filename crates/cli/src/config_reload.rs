//! `quittance config reload`: asks the running daemon to read its configuration again, and shows what has changed.

use crate::exit::{CliError, Exit};
use crate::output;
use clap::Args;
use hyper::Method;
use quittance_admin::reload::{ShownChange, ShownReload};
use quittance_config::{ADMIN_KEY, Config};
use quittance_daemon::api_client::ApiError;
use quittance_daemon::{ApiClient, RunningDaemon};
use std::net::SocketAddr;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance config reload --dry-run        what would change
  quittance config reload                  apply it
  systemctl reload quittance               the same; the result is in the log
  quittance config reload --json | jq -r '.changes[] | select(.effect==\"restart\").name'

The daemon reads the file that it was started with, with its own environment.
Providers, tenants, keys, targets, limits, prices, retries, pools and the log
level change at once; no order is lost and no request is refused meanwhile. What
needs a restart keeps its old value. docs/operating.md has the list.

With several nodes on one store, run the command for each node.

The daemon is found by the embedded store, or else at `listen`; --at overrides
both. If an operator's key is configured (`admin`), set QUITTANCE_ADMIN_KEY to
it.

Exit codes:
  0  done: applied, or shown
  1  the process that was asked reads no configuration
  2  the command is invalid
  3  the result could not be written
  4  the configuration is wrong (nothing has changed), or the operator's key
  5  there is no daemon, or it does not answer";

#[derive(Args, Clone, Debug)]
pub(crate) struct ReloadArgs {
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Address of the daemon
    #[arg(long, value_name = "ADDR", value_parser = crate::typed::listen_address)]
    at: Option<SocketAddr>,
    /// Print one JSON object instead
    #[arg(long)]
    json: bool,
}

/// The daemon would find the same errors, so it is not asked.
pub(crate) fn refused(error: &CliError) -> CliError {
    let remedy = "nothing has changed: fix this and reload again";
    CliError::new(error.exit, format!("{}\n{remedy}", error.what))
}

pub(crate) async fn run(args: ReloadArgs, config: &Config) -> Result<Exit, CliError> {
    let client = match args.at {
        Some(at) => ApiClient::Daemon(RunningDaemon::at(at, config, ADMIN_KEY)?),
        None => match ApiClient::of_daemon(&config.store, config, ADMIN_KEY)? {
            Some(daemon) => daemon,
            None => ApiClient::Daemon(RunningDaemon::at(config.listen, config, ADMIN_KEY)?),
        },
    };
    let path = format!("/v1/admin/reload?dry_run={}", args.dry_run);
    match client.call::<ShownReload>(Method::POST, &path).await {
        Ok(reload) => output::show(args.json, &reload, || as_text(&reload)),
        Err(ApiError::Problem(problem)) if problem.code == "config_refused" => {
            Err(refused(&CliError::new(Exit::Config, problem.detail)))
        }
        Err(error) => Err(error.into()),
    }
}

fn as_text(reload: &ShownReload) -> String {
    let mut text = String::new();
    for ShownChange { name, from, to, effect, .. } in &reload.changes {
        let word = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".into());
        let effect =
            if effect == ShownChange::RESTART { "  (needs a restart: the old value stays)" } else { "" };
        text += &format!("{name}: {} -> {}{effect}\n", word(from), word(to));
    }
    for note in &reload.notes {
        text += &format!("note: {note}\n");
    }
    let restarts = reload.changes.iter().filter(|change| change.effect == ShownChange::RESTART).count();
    let live = reload.changes.len() - restarts;
    let file = reload.file.as_deref().unwrap_or("the configuration (no file was found)");
    let done = if reload.is_applied { "applied" } else { "would be applied" };
    text += &match (live, restarts) {
        (0, 0) => format!("{file}: nothing differs\n"),
        (live, 0) => format!("{file}: changes {done}: {live}\n"),
        (live, restarts) => format!("{file}: changes {done}: {live}; restart for the others: {restarts}\n"),
    };
    text.lines().map(|line| format!("{}\n", output::harmless(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_one_line_and_a_restart_is_named() {
        let change = |name: &str, effect: &str| ShownChange {
            name: name.into(),
            from: Some("1".into()),
            to: None,
            origin: None,
            effect: effect.into(),
        };
        let changes = vec![change("trip_at", ShownChange::LIVE), change("listen", ShownChange::RESTART)];
        let reload = ShownReload {
            file: Some("q.toml".into()),
            is_applied: true,
            changes,
            notes: vec!["look".into()],
        };
        assert_eq!(
            as_text(&reload),
            "trip_at: 1 -> not set\nlisten: 1 -> not set  (needs a restart: the old value stays)\nnote: look\n\
             q.toml: changes applied: 1; restart for the others: 1\n"
        );
    }
}
