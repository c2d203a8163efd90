//! `quittance serve`: the daemon. It starts the node and its listeners, and prints where it listens. At the end,
//! requests in progress are answered first.

mod refusals;
mod signals;

pub(crate) use refusals::{refusals, refused_pools, unusable_addresses};

use crate::config_command::ConfigArgs;
use crate::exit::{CliError, Exit, OrExit};
use crate::mock_setup::MockSetup;
use crate::{node, output};
use clap::Args;
use clap::builder::PossibleValuesParser;
use quittance::{GatewaySetup, Quittance};
use quittance_admin::AdminSettings;
use quittance_config::{CallerKey, Config, ProviderConfig, StoreUrl};
use quittance_daemon::{
    AddressFile, CertificateSource, HTTPS_DEFAULT, Inherited, ListenRequest, Systemd, log_changes, raise,
    run_program,
};
use quittance_gateway::{Gateway, GatewaySettings, ReuseRule, Tls};
use quittance_protocol::Dialect;
use quittance_telemetry::TraceSettings;
use signals::{Sign, Signals};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// How long requests in progress may take before the process ends.
const DRAIN_WAIT: Duration = Duration::from_secs(10);
/// The path at which a collector accepts traces.
const TRACES_PATH: &str = "/v1/traces";
/// How often the files of the certificate are checked.
const CERTIFICATE_LOOK: Duration = Duration::from_secs(2);

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
once. HUP reloads the certificate, as does a change of its files.

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
    #[arg(long, value_name = "ADDR", value_parser = crate::node::listen_address)]
    listen: Option<SocketAddr>,
    /// Address to listen on for https; overrides `tls.listen`
    #[arg(long, value_name = "ADDR", value_parser = crate::node::listen_address)]
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
    let exit = Box::pin(run(args, &setup.config, inherited, systemd)).await;
    setup.end().await;
    exit
}

pub(crate) async fn run(
    args: ServeArgs,
    config: &Config,
    inherited: Inherited,
    systemd: Systemd,
) -> Result<Exit, CliError> {
    let mut log = config.log;
    if let Some(level) = args.log_level.as_deref().and_then(|level| level.parse().ok()) {
        log.level = level;
    }
    log.is_json = args.log_format.as_deref().map_or(log.is_json, |format| format == "json");
    output::log_as(log);
    let mut signals = Signals::listen()?;
    let daemon = tokio::select! {
        daemon = Daemon::start(&args, config, inherited) => daemon?,
        // No request has been accepted yet, and every order on record has a timer.
        (signal, _) = signals.end() => {
            tracing::info!(signal, "ended before it was ready");
            return Ok(Exit::Done);
        }
    };
    daemon.tell_ready()?;
    systemd.tell("READY=1");
    daemon.run(signals, &systemd).await
}

struct Daemon {
    node: Quittance,
    /// The file with the daemon's address, for commands that find the store in use.
    note: Option<AddressFile>,
    gateway: Gateway,
    serving: JoinSet<()>,
    http: SocketAddr,
    https: Option<Https>,
}

struct Https {
    address: SocketAddr,
    source: CertificateSource,
    tls: Tls,
}

impl Daemon {
    async fn start(args: &ServeArgs, config: &Config, inherited: Inherited) -> Result<Self, CliError> {
        let mut config = config.clone();
        config.listener.connections_max = raise(config.listener.connections_max);
        let has_https = args.tls_listen.is_some();
        if let Some(first) = refusals(&config, args.tls_self_signed.as_deref(), has_https).into_iter().next()
        {
            return Err(first);
        }
        let source = source(args.tls_self_signed.as_deref(), has_https, &config)?;
        let loaded = source.as_ref().map(CertificateSource::load).transpose().or_exit(Exit::Config)?;
        let wanted = wanted(&config, args.listen, args.tls_listen, source.is_some());
        // Before the store is opened: a caller that comes early waits a moment instead of getting an error.
        let (http, https) = wanted.bind(inherited).or_exit(Exit::Config)?;
        if args.mock {
            // The mock provider is on this machine, so it can call any address that we listen on.
            config.public_url = Some(format!("http://{}", local(&http)?));
        }
        let config = &config;
        let name = node::named(config, http.local_addr().ok());
        let node = node::serve(config, setup(config, &name)?, &name).await?;
        let gateway = node.gateway().expect("the library was asked for one").clone();
        let mut serving = JoinSet::new();
        let address = local(&http)?;
        serving.spawn(gateway.serve(http, None));
        let https = match (https, source, loaded) {
            (Some(listener), Some(source), Some(loaded)) => {
                let (address, tls) = (local(&listener)?, Tls::new(loaded));
                serving.spawn(gateway.serve(listener, Some(tls.clone())));
                Some(Https { address, source, tls })
            }
            _ => None,
        };
        gateway.orders().count_open().await.or_exit(Exit::Store)?;
        serving.spawn(log_changes(gateway.clone()));
        let admin = node.admin().expect("a node with a gateway has one");
        serving.spawn(run_program(admin.monitor().announced(), config));
        serving.spawn(admin.clone().run());
        gateway.set_ready(true);
        let note = leave_note(config, address);
        let daemon = Self { node, note, gateway, serving, http: address, https };
        daemon.summarise(config, &name);
        Ok(daemon)
    }

    /// Logs a summary of the set-up for operators, without secrets.
    fn summarise(&self, config: &Config, name: &str) {
        let store = config.store.url.shown();
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            node = name,
            store,
            provider = config.providers.first().map(|provider| provider.name.as_str()),
            protocol = config.providers.first().map(|provider| provider.protocol.name()),
            dialect = config.providers.first().map(|provider| provider.dialect().name()),
            http = %self.http,
            https = self.https.as_ref().map(|https| https.address.to_string()),
            tenants = config.tenants.len(),
            callbacks = config.public_url.is_some(),
            currency = config.currency(),
            "serving"
        );
        for stopped in config.budgets_that_buy_nothing() {
            tracing::warn!("{stopped}");
        }
        if let Some(risk) = config.lost_reply_risk() {
            tracing::warn!("{risk}");
        }
        if config.tenants.is_empty() && config.public_url.as_deref().is_some_and(leads_outside) {
            tracing::warn!(
                "no tenant is configured, and there is a public_url: every caller that can reach it may place orders, unless what \
                 stands in front of us lets nothing but /callback/ through"
            );
        }
    }

    fn tell_ready(&self) -> Result<(), CliError> {
        let mut lines = format!("listening on http://{}\n", self.http);
        if let Some(https) = &self.https {
            lines += &format!("listening on https://{}\n", https.address);
            if let Some(ca) = https.source.ca_file() {
                lines += &format!("CA file: {}\n", ca.display());
            }
        }
        output::print(&(lines + "ready\n"))
    }

    async fn run(mut self, mut signals: Signals, systemd: &Systemd) -> Result<Exit, CliError> {
        let mut look = tokio::time::interval(CERTIFICATE_LOOK);
        let mut files = self.https.as_ref().map(|https| https.source.watch());
        let mut watchdog = systemd.watchdog();
        let ended = loop {
            tokio::select! {
                sign = signals.next() => match sign {
                    Sign::Reload => self.reload("on SIGHUP"),
                    sign => break Ok(sign),
                },
                _ = look.tick() => {
                    if files.as_mut().is_some_and(|files| files.have_changed()) {
                        self.reload("because its files have changed");
                    }
                }
                () = watchdog.due() => systemd.tell("WATCHDOG=1"),
                _ = self.serving.join_next() => break Err(CliError::new(Exit::Bad, "a listener has ended by itself: see the log")),
            }
        };
        systemd.tell("STOPPING=1");
        let name = ended.as_ref().map_or("none", |sign| sign.name());
        tracing::info!(
            signal = name,
            "ending: open requests are answered first, and callers that wait for an answer are asked to retry"
        );
        tokio::select! {
            () = self.end() => ended.map(|_| Exit::Done),
            (signal, exit) = signals.end() => {
                tracing::warn!(signal, "ended at once, by a second signal; nothing on record is lost");
                Ok(exit)
            }
        }
    }

    /// Reads the certificate again. If the new one cannot be used, the present one stays.
    fn reload(&self, why: &str) {
        let Some(Https { source, tls, .. }) = &self.https else {
            tracing::info!(
                "SIGHUP reads the certificate again, and there is none; restart to apply a changed configuration"
            );
            return;
        };
        match source.load() {
            Ok(loaded) => {
                tls.replace(loaded);
                tracing::info!("the certificate was read again {why}");
            }
            Err(error) => {
                let what = CliError::of(Exit::Config, &error).what;
                tracing::warn!(
                    "the certificate could not be read again {why}; the old one stays in use: {what}"
                );
            }
        }
    }

    async fn end(&self) {
        // While the store is ours: the next process may write its own file.
        self.note.iter().for_each(AddressFile::take_away);
        self.gateway.set_ready(false);
        // It says itself who had to be cut off.
        self.gateway.drain(DRAIN_WAIT).await;
        if tokio::time::timeout(node::STOP_WAIT, self.node.stop()).await.is_err() {
            tracing::warn!(
                "some work was still in progress after {} s; its orders are on record",
                node::STOP_WAIT.as_secs()
            );
        }
        tracing::info!("ended");
    }
}

/// Writes where we listen into a file in a folder that is ours alone. Without the file, commands on this store work
/// only while no daemon runs.
fn leave_note(config: &Config, at: SocketAddr) -> Option<AddressFile> {
    let StoreUrl::Embedded(dir) = &config.store.url else { return None };
    let mut note = AddressFile::of(dir);
    match note.write(at) {
        Ok(()) => Some(note),
        Err(error) => {
            tracing::warn!(
                "the file with our address could not be written, so other commands will not find this daemon: \
                            {error}"
            );
            None
        }
    }
}

/// Whether the URL leads to other machines than this one.
fn leads_outside(url: &str) -> bool {
    let host = quittance_lifecycle::terms::page_host(url).unwrap_or_default();
    let number = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host != "localhost" && !number.is_ok_and(|number| number.is_loopback())
}

fn local(listener: &TcpListener) -> Result<SocketAddr, CliError> {
    listener.local_addr().or_exit(Exit::Bad)
}

/// The addresses to listen on: from the command line, or else from the configuration.
fn wanted(
    config: &Config,
    http: Option<SocketAddr>,
    https: Option<SocketAddr>,
    has_https: bool,
) -> ListenRequest {
    ListenRequest {
        http: http.unwrap_or(config.listen),
        https: has_https.then(|| https.or(config.tls.listen).unwrap_or(HTTPS_DEFAULT)),
        is_open: config.tenants.is_empty(),
    }
}

/// The source of the certificate, if there is one.
fn source(
    tls_self_signed: Option<&Path>,
    has_https: bool,
    config: &Config,
) -> Result<Option<CertificateSource>, CliError> {
    if let Some(dir) = tls_self_signed {
        return Ok(Some(CertificateSource::SelfSigned { dir: dir.to_owned() }));
    }
    let files = config.tls.files().or_exit(Exit::Config)?;
    if let Some((cert, key)) = files {
        return Ok(Some(CertificateSource::Files { cert: cert.to_owned(), key: key.to_owned() }));
    }
    if has_https || config.tls.listen.is_some() {
        let what = "there is an address for https and no certificate: set `tls.cert_file` and `tls.key_file`, or use \
                    `--tls-self-signed DIR` for development";
        return Err(CliError::new(Exit::Config, what));
    }
    Ok(None)
}

/// The default dialect for callers: clients of a provider that calls back in its own dialect expect that from us,
/// too.
fn dialect(config: &Config) -> Option<Dialect> {
    let usual = config.providers.first().map(ProviderConfig::dialect);
    config.dialect.or(usual.filter(|dialect| *dialect == Dialect::CaptchaAi))
}

/// The settings for traces: a collector accepts them at a path of its own.
fn traces(config: &Config, name: &str) -> Result<Option<TraceSettings>, CliError> {
    let Some(url) = &config.traces else { return Ok(None) };
    let url = url.trim_end_matches('/');
    let whole = if url.ends_with(TRACES_PATH) { url.to_owned() } else { format!("{url}{TRACES_PATH}") };
    let collector = whole.parse().map_err(|_| {
        CliError::new(
            Exit::Config,
            format!("traces.url is no address that can be called: {}", output::harmless(url)),
        )
    })?;
    Ok(Some(TraceSettings { collector, node: name.to_owned() }))
}

/// The settings of the gateway: tenants, keys and limits.
fn setup(config: &Config, name: &str) -> Result<GatewaySetup, CliError> {
    let wrong = |error| CliError::of(Exit::Config, &error);
    let tenants = config.tenants.iter().map(|tenant| tenant.settings(&config.targets));
    let reuse = config.reuse.clone();
    Ok(GatewaySetup {
        tenants: tenants.collect::<Result<_, _>>().map_err(wrong)?,
        admin: config.admin.as_ref().map(CallerKey::digest).transpose().map_err(wrong)?,
        settings: GatewaySettings {
            limits: config.listener,
            dialect: dialect(config),
            hosts: config.hosts.clone(),
        },
        operator: AdminSettings {
            alerts: config.alerts.settings().map_err(wrong)?,
            shown: quittance_config::in_force(config),
            store: Some(config.store.url.scheme().word()),
        },
        traces: traces(config, name)?,
        reuse: Some(ReuseRule(Arc::new(move |tenant, kind, host| reuse.setting(tenant, kind, host)))),
    })
}
