//! A daemon at work: its node, its listeners, and the certificate that it reads again. At the end, requests in progress
//! are answered first.

use crate::address_file::AddressFile;
use crate::alert_command::run_program;
use crate::configured_node::{self, STOP_WAIT};
use crate::descriptors::raise;
use crate::gateway_setup::gateway_setup;
use crate::log_watch::log_changes;
use crate::provider_names;
use crate::refusals::refusals;
use crate::reloader::{ReloadSource, Reloader, services};
use crate::setup_error::{SetupError, SetupFault, with_causes};
use crate::shown_certificate::{CertificateSource, WatchedFiles};
use crate::sockets::{HTTPS_DEFAULT, Inherited, ListenRequest};
use crate::systemd::{Systemd, Watchdog};
use quittance::Quittance;
use quittance_admin::reload::{ReloadRequest, ReloadRequests, reload_requests};
use quittance_config::{Config, StoreUrl, secret_variables};
use quittance_gateway::{Gateway, Tls};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Interval;

/// How long requests in progress may take before the process ends.
const DRAIN_WAIT: Duration = Duration::from_secs(10);
/// How often the files of the certificate are checked.
const CERTIFICATE_LOOK: Duration = Duration::from_secs(2);

/// What the command line says about a daemon. Absent values are left to the configuration.
#[derive(Clone, Debug, Default)]
pub struct ServeRequest {
    pub http: Option<SocketAddr>,
    pub https: Option<SocketAddr>,
    /// The folder for a certificate that we make for development.
    pub tls_self_signed: Option<PathBuf>,
    /// Whether the provider is on this machine, so that it can call any address that we listen on.
    pub is_called_nearby: bool,
    /// Where the configuration is read again; `None` if it is not.
    pub reloads: Option<ReloadSource>,
}

impl ServeRequest {
    /// The addresses to listen on.
    pub(crate) fn addresses(&self, config: &Config, has_https: bool) -> ListenRequest {
        ListenRequest {
            http: self.http.unwrap_or(config.listen),
            https: has_https.then(|| self.https.or(config.tls.listen).unwrap_or(HTTPS_DEFAULT)),
            is_open: config.tenants.is_empty(),
        }
    }

    /// The source of the certificate, if there is one.
    pub(crate) fn certificate(&self, config: &Config) -> Result<Option<CertificateSource>, SetupError> {
        if let Some(dir) = &self.tls_self_signed {
            return Ok(Some(CertificateSource::SelfSigned { dir: dir.clone() }));
        }
        let files = config.tls.files().map_err(SetupError::config)?;
        if let Some((cert, key)) = files {
            return Ok(Some(CertificateSource::Files { cert: cert.to_owned(), key: key.to_owned() }));
        }
        if self.https.is_some() || config.tls.listen.is_some() {
            let what = "there is an address for https and no certificate: set `tls.cert_file` and `tls.key_file`, or use \
                        `--tls-self-signed DIR` for development";
            return Err(SetupError::new(SetupFault::Config, what));
        }
        Ok(None)
    }
}

/// A daemon that accepts requests.
#[derive(Debug)]
pub struct ServingDaemon {
    node: Quittance,
    /// The file with the daemon's address, for commands that find the store in use.
    note: Option<AddressFile>,
    gateway: Gateway,
    serving: JoinSet<()>,
    http: SocketAddr,
    https: Option<Https>,
    look: Interval,
    reloads: Option<ReloadRequests>,
}

#[derive(Debug)]
struct Https {
    address: SocketAddr,
    source: CertificateSource,
    files: WatchedFiles,
    tls: Tls,
}

impl ServingDaemon {
    /// Starts the node and its listeners. It accepts requests when this returns.
    pub async fn start(
        request: &ServeRequest,
        config: &Config,
        inherited: Inherited,
    ) -> Result<Self, SetupError> {
        let mut config = config.clone();
        config.listener.connections_max = raise(config.listener.connections_max);
        if let Some(first) = refusals(&config, request).into_iter().next() {
            return Err(first);
        }
        let source = request.certificate(&config)?;
        let loaded = source.as_ref().map(CertificateSource::load).transpose().map_err(SetupError::config)?;
        let addresses = request.addresses(&config, source.is_some());
        // Before the store is opened: a caller that comes early waits a moment instead of getting an error.
        let (http, https) = addresses.bind(inherited).map_err(SetupError::config)?;
        if request.is_called_nearby {
            config.public_url = Some(format!("http://{}", local(&http)?));
        }
        let config = &config;
        let name = configured_node::named(config, http.local_addr().ok());
        let (reloads, reload_receiver) = reload_requests();
        let mut setup = gateway_setup(config, &name)?;
        setup.operator.reloads = request.reloads.is_some().then(|| reloads.clone());
        let node = configured_node::serve(config, setup, &name).await?;
        let gateway = node.gateway().expect("the library was asked for one").clone();
        let mut serving = JoinSet::new();
        let address = local(&http)?;
        serving.spawn(gateway.serve(http, None));
        let https = match (https, source, loaded) {
            (Some(listener), Some(source), Some(loaded)) => {
                let (address, tls) = (local(&listener)?, Tls::new(loaded));
                serving.spawn(gateway.serve(listener, Some(tls.clone())));
                Some(Https { address, tls, files: source.watch(), source })
            }
            _ => None,
        };
        gateway.orders().count_open().await.map_err(SetupError::store)?;
        serving.spawn(log_changes(gateway.clone()));
        let admin = node.admin().expect("a node with a gateway has one");
        let (secrets, known_secrets) = watch::channel(secret_variables(config));
        serving.spawn(run_program(admin.monitor().announced(), config, known_secrets));
        serving.spawn(admin.clone().run());
        if let Some(source) = request.reloads.clone() {
            let https = https.as_ref().map(|https| https.address);
            let reloader = Reloader {
                source,
                request: request.clone(),
                node: node.clone(),
                name: name.clone(),
                listens_on: std::iter::once(address).chain(https).collect(),
                present: config.clone(),
                services: services(config).collect(),
                secrets,
            };
            serving.spawn(reloader.run(reload_receiver));
        }
        gateway.set_ready(true);
        let note = leave_note(config, address);
        let look = tokio::time::interval(CERTIFICATE_LOOK);
        let reloads = request.reloads.is_some().then_some(reloads);
        let daemon = Self { node, note, gateway, serving, http: address, https, look, reloads };
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
            providers = provider_names::in_words(config),
            http = %self.http,
            https = self.https.as_ref().map(|https| https.address.to_string()),
            tenants = config.tenants.len(),
            callbacks = config.public_url.is_some(),
            currency = config.currency(),
            "serving"
        );
        let notes = [config.budgets_that_buy_nothing(), config.budget_notes(), config.provider_notes()];
        for note in notes.concat() {
            tracing::warn!("{note}");
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

    /// The lines that say where the daemon listens.
    #[must_use]
    pub fn addresses(&self) -> String {
        let mut lines = format!("listening on http://{}\n", self.http);
        if let Some(https) = &self.https {
            lines += &format!("listening on https://{}\n", https.address);
            if let Some(ca) = https.source.ca_file() {
                lines += &format!("CA file: {}\n", ca.display());
            }
        }
        lines
    }

    /// Serves until a listener ends by itself, and reads a changed certificate. May be dropped and called again.
    pub async fn serve(&mut self, systemd: &Systemd, watchdog: &mut Watchdog) {
        loop {
            tokio::select! {
                _ = self.look.tick() => {
                    if self.https.as_mut().is_some_and(|https| https.files.have_changed()) {
                        self.reload_certificate("because its files have changed");
                    }
                }
                () = watchdog.due() => systemd.tell("WATCHDOG=1"),
                _ = self.serving.join_next() => return,
            }
        }
    }

    /// Reads the certificate and the configuration again, on SIGHUP. The log has the outcome.
    pub fn reload(&self) {
        self.reload_certificate("on SIGHUP");
        let Some(reloads) = &self.reloads else {
            tracing::info!("this daemon reads no configuration file");
            return;
        };
        let request = ReloadRequest { is_dry_run: false, reply: oneshot::channel().0 };
        if reloads.try_send(request).is_err() {
            // Those that wait have not read the file yet, so they see what this one would see.
            tracing::info!("several reloads wait already: this SIGHUP adds none");
        }
    }

    /// Reads the certificate again. If the new one cannot be used, the present one stays.
    fn reload_certificate(&self, why: &str) {
        let Some(Https { source, tls, .. }) = &self.https else { return };
        match source.load() {
            Ok(loaded) => {
                tls.replace(loaded);
                tracing::info!("the certificate was read again {why}");
            }
            Err(error) => {
                let what = with_causes(&error);
                tracing::warn!(
                    "the certificate could not be read again {why}; the old one stays in use: {what}"
                );
            }
        }
    }

    /// Answers the open requests, and ends the node.
    pub async fn end(&self) {
        // While the store is ours: the next process may write its own file.
        self.note.iter().for_each(AddressFile::take_away);
        self.gateway.set_ready(false);
        // It says itself who had to be cut off.
        self.gateway.drain(DRAIN_WAIT).await;
        if tokio::time::timeout(STOP_WAIT, self.node.stop()).await.is_err() {
            tracing::warn!(
                "some work was still in progress after {} s; its orders are on record",
                STOP_WAIT.as_secs()
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

fn local(listener: &TcpListener) -> Result<SocketAddr, SetupError> {
    listener.local_addr().map_err(|error| SetupError::new(SetupFault::Machine, error.to_string()))
}

/// Whether the URL leads to other machines than this one.
fn leads_outside(url: &str) -> bool {
    let host = quittance::lifecycle::terms::page_host(url).unwrap_or_default();
    let number = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host != "localhost" && !number.is_ok_and(|number| number.is_loopback())
}
