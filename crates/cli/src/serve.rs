//! `quittance serve`: the daemon. It starts the node and its listeners, and prints where it listens. At the end,
//! requests in progress are answered first.

mod signals;

use crate::config_command::ConfigArgs;
use crate::exit::{CliError, Exit};
use crate::mock_setup::MockSetup;
use crate::output;
use clap::Args;
use clap::builder::PossibleValuesParser;
use quittance_config::{Config, Sources};
use quittance_daemon::{Inherited, ReloadSource, ServeRequest, ServingDaemon, Systemd};
use signals::{Sign, Signals};
use std::net::SocketAddr;
use std::path::PathBuf;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance serve
  quittance serve --mock                         needs no config and no key
  quittance serve --listen 127.0.0.1:0           any free port; it is printed
  quittance serve --tls-self-signed ./tls        https for development
  curl --cacert ./tls/ca.pem https://localhost:8743/healthz

Standard output has one line `listening on ADDRESS` for each address, and then
`ready`. Logs go to standard error.

Without any [[tenant]], callers need no key, so `serve` listens on loopback
only. `quittance tenant new NAME` creates a key.

Signals: TERM or INT finishes the open requests and stops; a second one stops at
once. HUP reads the config file again and applies what needs no restart (see
`quittance config reload`). It also reloads the certificate, as does a change of
its files.

Exit codes:
  0        stopped by a signal
  1        could not continue
  2        the command is invalid
  4        the configuration is wrong: address in use, certificate, key
  5        the store cannot be opened
  130,143  stopped at once by a second signal";

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Use a mock provider, which answers within a second or two; buys nothing
    ///
    /// Needs no config file, key or account, and reads none. Orders are kept in a temporary folder, which is removed at the end.
    #[arg(long)]
    pub(crate) mock: bool,
    /// Address to listen on for http; overrides `listen`
    #[arg(long, value_name = "ADDR", value_parser = crate::typed::listen_address)]
    listen: Option<SocketAddr>,
    /// Address to listen on for https; overrides `tls.listen`
    #[arg(long, value_name = "ADDR", value_parser = crate::typed::listen_address)]
    tls_listen: Option<SocketAddr>,
    /// For development: create a certificate for localhost, with its CA in DIR
    ///
    /// Clients must trust DIR/ca.pem, which stays the same when the daemon restarts.
    #[arg(long, value_name = "DIR")]
    tls_self_signed: Option<PathBuf>,
    /// What to log; overrides `log.level`
    #[arg(long, value_name = "LEVEL", value_parser = PossibleValuesParser::new(["error", "warn", "info", "debug", "trace"]))]
    log_level: Option<String>,
    /// Format of the log; overrides `log.format`
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(["text", "json"]))]
    log_format: Option<String>,
}

/// Serves with a mock provider and a temporary store.
pub(crate) async fn run_with_mock(
    args: ServeArgs,
    config_args: &ConfigArgs,
    inherited: Inherited,
    systemd: Systemd,
) -> Result<Exit, CliError> {
    let setup = MockSetup::start(config_args).await?;
    output::tell(&setup.explain());
    let exit = Box::pin(run(args, &setup.config, None, inherited, systemd)).await;
    setup.end().await;
    exit
}

pub(crate) async fn run(
    args: ServeArgs,
    config: &Config,
    sources: Option<Sources>,
    inherited: Inherited,
    systemd: Systemd,
) -> Result<Exit, CliError> {
    let mut log = config.log;
    if let Some(level) = args.log_level.as_deref().and_then(|level| level.parse().ok()) {
        log.level = level;
    }
    log.is_json = args.log_format.as_deref().map_or(log.is_json, |format| format == "json");
    let log_level = output::log_as(log);
    // A level of the command line stays.
    let log_level = Some(log_level).filter(|_| args.log_level.is_none());
    let mut signals = Signals::listen()?;
    let request = ServeRequest {
        http: args.listen,
        https: args.tls_listen,
        tls_self_signed: args.tls_self_signed,
        is_called_nearby: args.mock,
        reloads: sources.map(|sources| ReloadSource { sources, log_level }),
    };
    let daemon = tokio::select! {
        daemon = ServingDaemon::start(&request, config, inherited) => daemon?,
        // No request has been accepted yet, and every order on record has a timer.
        (signal, _) = signals.end() => {
            tracing::info!(signal, "ended before it was ready");
            return Ok(Exit::Done);
        }
    };
    output::print(&(daemon.addresses() + "ready\n"))?;
    systemd.tell("READY=1");
    until_ended(daemon, signals, &systemd).await
}

async fn until_ended(
    mut daemon: ServingDaemon,
    mut signals: Signals,
    systemd: &Systemd,
) -> Result<Exit, CliError> {
    let mut watchdog = systemd.watchdog();
    let ended = loop {
        tokio::select! {
            sign = signals.next() => match sign {
                Sign::Reload => daemon.reload(),
                sign => break Ok(sign),
            },
            () = daemon.serve(systemd, &mut watchdog) => {
                break Err(CliError::new(Exit::Bad, "a listener has ended by itself: see the log"));
            }
        }
    };
    systemd.tell("STOPPING=1");
    let name = ended.as_ref().map_or("none", |sign| sign.name());
    tracing::info!(
        signal = name,
        "ending: open requests are answered first, and callers that wait for an answer are asked to retry"
    );
    tokio::select! {
        () = daemon.end() => ended.map(|_| Exit::Done),
        (signal, exit) = signals.end() => {
            tracing::warn!(signal, "ended at once, by a second signal; nothing on record is lost");
            Ok(exit)
        }
    }
}
