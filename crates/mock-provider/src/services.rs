//! Several services in one process: each listens on a port of its own, with its own accounts, faults and ledger. A
//! control address reaches all of them, also a service whose own socket is closed by an outage.

use crate::MockProvider;
use crate::control::{self, ControlError, ControlRequest, ControlResult};
use crate::ledger::{AccountTotals, LedgerTask, MockState, Totals};
use crate::outage::OutageKind;
use crate::service::{Cut, read_limited};
use crate::service_settings::{MockServiceDialect, ServiceSettings};
use crate::world::{LedgerQuery, ServicePlace};
use hyper::StatusCode;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The most services of one process: more of them would share ids.
const SERVICES_MAX: usize = 64;
/// The largest body of a request to the control address.
const BODY_BYTES_MAX: usize = 4 << 20;
/// The most connections to the control address.
const CONNECTIONS_MAX: usize = 256;
const HEAD_WAIT: Duration = Duration::from_secs(30);
/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Why several services could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServicesError {
    #[error("there is no service: name at least one")]
    NoService,
    #[error("{0} services are too many: one process plays at most {SERVICES_MAX}")]
    TooMany(usize),
    #[error("two services are called `{0}`: give each a name of its own")]
    SameName(String),
    #[error("`{service}` and `{other}` both listen on {address}: give each a port of its own")]
    SameAddress { service: String, other: String, address: SocketAddr },
    /// The settings of a service make no sense.
    #[error("service {service}: {why}")]
    Settings { service: String, why: String },
    /// A socket could not be opened. Without a service, it is the control address.
    #[error("cannot listen on {address}")]
    Listen { service: Option<String>, address: SocketAddr, source: io::Error },
}

/// The totals of one service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceTotals {
    /// The name of the service.
    pub service: String,
    pub dialect: MockServiceDialect,
    pub totals: Totals,
    pub accounts: Vec<AccountTotals>,
}

/// The response to `GET /mock/ledger` at the control address: the tasks of all services. No two have the same id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServicesLedger {
    /// Milliseconds since 1970.
    pub now_ms: u64,
    pub services: Vec<ServiceTotals>,
    pub tasks: Vec<LedgerTask>,
}

/// One service in the response to `GET /mock/services`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceSummary {
    /// The name of the service.
    pub service: String,
    pub dialect: MockServiceDialect,
    /// The address of the service, without a slash at the end.
    pub url: String,
    /// The path of its control API at the control address.
    pub control: String,
    pub accounts: Vec<String>,
    /// How the service fails at the moment, if it is down.
    pub outage: Option<OutageKind>,
}

#[derive(Debug)]
struct RunningService {
    name: String,
    dialect: MockServiceDialect,
    provider: MockProvider,
}

/// Several running services. Dropping this stops them; [`MockServices::stop`] also waits until they have stopped.
pub struct MockServices {
    services: Arc<Vec<RunningService>>,
    address: SocketAddr,
    control: JoinSet<()>,
}

impl MockServices {
    /// Starts to listen on the address of each service and on the control address. All are ready when this returns.
    pub async fn start(control: SocketAddr, services: Vec<ServiceSettings>) -> Result<Self, ServicesError> {
        check(control, &services)?;
        let listen_error = |service: Option<&str>, address: SocketAddr| {
            let service = service.map(str::to_owned);
            move |source: io::Error| ServicesError::Listen { service, address, source }
        };
        let listener = TcpListener::bind(control).await.map_err(listen_error(None, control))?;
        let address = listener.local_addr().map_err(listen_error(None, control))?;
        let mut running = Vec::new();
        for (service, number) in services.into_iter().zip(1..) {
            let ServiceSettings { name, dialect, settings } = service;
            let wanted = settings.listen;
            let place = ServicePlace { number, name: Some(name.clone()) };
            let provider = MockProvider::start_at(settings, place).await.map_err(|error| {
                if error.kind() == io::ErrorKind::InvalidInput {
                    return ServicesError::Settings { service: name.clone(), why: error.to_string() };
                }
                listen_error(Some(&name), wanted)(error)
            })?;
            running.push(RunningService { name, dialect, provider });
        }
        let services = Arc::new(running);
        let mut control = JoinSet::new();
        control.spawn(listen(services.clone(), listener));
        Ok(Self { services, address, control })
    }

    /// The control address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The control address as `http://127.0.0.1:PORT`, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    #[must_use]
    pub fn service(&self, name: &str) -> Option<&MockProvider> {
        self.services.iter().find(|service| service.name == name).map(|service| &service.provider)
    }

    /// What there is, in the order in which it was started.
    #[must_use]
    pub fn list(&self) -> Vec<ServiceSummary> {
        list(&self.services)
    }

    /// The totals of each service, in the order in which they were started.
    #[must_use]
    pub fn totals(&self) -> Vec<ServiceTotals> {
        let request = LedgerQuery { is_summary: true, ..LedgerQuery::default() };
        joined_ledger(&self.services, &request).services
    }

    /// Ends every connection and every pingback of all services.
    pub async fn stop(mut self) {
        self.control.shutdown().await;
        if let Some(services) = Arc::into_inner(self.services) {
            for service in services {
                service.provider.stop().await;
            }
        }
    }
}

impl fmt::Debug for MockServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockServices")
            .field("address", &self.address)
            .field("services", &self.services)
            .finish_non_exhaustive()
    }
}

fn check(control: SocketAddr, services: &[ServiceSettings]) -> Result<(), ServicesError> {
    if services.is_empty() {
        return Err(ServicesError::NoService);
    }
    if services.len() > SERVICES_MAX {
        return Err(ServicesError::TooMany(services.len()));
    }
    let mut addresses = BTreeMap::from([(control, "the control address")]);
    for (index, service) in services.iter().enumerate() {
        if services[..index].iter().any(|other| other.name == service.name) {
            return Err(ServicesError::SameName(service.name.clone()));
        }
        let address = service.settings.listen;
        if let Some(other) = addresses.insert(address, &service.name).filter(|_| address.port() > 0) {
            let (service, other) = (service.name.clone(), other.to_owned());
            return Err(ServicesError::SameAddress { service, other, address });
        }
    }
    Ok(())
}

async fn listen(services: Arc<Vec<RunningService>>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        if connections.len() < CONNECTIONS_MAX {
            connections.spawn(converse(services.clone(), stream, peer));
        }
    }
}

async fn converse(services: Arc<Vec<RunningService>>, stream: TcpStream, peer: SocketAddr) {
    let service = service_fn(|request| {
        let services = services.clone();
        async move {
            let (head, body) = request.into_parts();
            Ok::<_, Cut>(match read_limited(BODY_BYTES_MAX, body).await {
                Ok(body) => answer(&services, &ControlRequest::read(peer, &head, &body)),
                Err(refusal) => refusal,
            })
        }
    });
    _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Answers a request to the control address.
fn answer(
    services: &[RunningService],
    request: &ControlRequest<'_>,
) -> hyper::Response<crate::service::ReplyBytes> {
    if !request.is_allowed() {
        return crate::service::page(StatusCode::FORBIDDEN);
    }
    if let Some((name, rest)) = of_one_service(request.path) {
        return match services.iter().find(|service| service.name == name) {
            Some(service) => {
                let path = format!("/mock/{rest}");
                control::answer(service.provider.shared(), &request.for_service(&path))
            }
            None => control::response(Err(unknown_service(services, name))),
        };
    }
    let ruled = match (request.path, request.is_writing()) {
        _ if !request.is_reading() && !request.is_writing() => Err(control::wrong_verb()),
        ("/mock/services", false) => control::to_json(&list(services)),
        ("/mock/ledger", false) => ledger(services, request),
        ("/mock/state", false) => control::to_json(&states(services)),
        ("/mock/reset", true) => {
            services.iter().for_each(|service| service.provider.reset());
            control::done()
        }
        (path, _) => Err(not_here(services, path)),
    };
    control::response(ruled)
}

/// The name in `/mock/services/NAME/REST`, and the rest.
fn of_one_service(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("/mock/services/")?.split_once('/')
}

fn names(services: &[RunningService]) -> String {
    services.iter().map(|service| service.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn unknown_service(services: &[RunningService], name: &str) -> ControlError {
    let what = format!("no service is called {name:?}; the services are: {}", names(services));
    (StatusCode::NOT_FOUND, what)
}

fn not_here(services: &[RunningService], path: &str) -> ControlError {
    let rest = path.strip_prefix("/mock/").unwrap_or("ledger");
    let what = format!(
        "this is the control address of several services, and {path} belongs to one of them: use \
         /mock/services/NAME/{rest}; the services are: {}",
        names(services)
    );
    (StatusCode::NOT_FOUND, what)
}

fn list(services: &[RunningService]) -> Vec<ServiceSummary> {
    let entry = |service: &RunningService| {
        let shared = service.provider.shared();
        ServiceSummary {
            service: service.name.clone(),
            dialect: service.dialect,
            url: service.provider.url(),
            control: format!("/mock/services/{}", service.name),
            accounts: shared.world().account_names(),
            outage: shared.outage().map(|outage| outage.kind),
        }
    };
    services.iter().map(entry).collect()
}

fn states(services: &[RunningService]) -> BTreeMap<&str, MockState> {
    services.iter().map(|service| (service.name.as_str(), service.provider.state())).collect()
}

fn ledger(services: &[RunningService], request: &ControlRequest<'_>) -> ControlResult {
    control::to_json(&joined_ledger(services, &request.ledger_query()?))
}

fn joined_ledger(services: &[RunningService], wanted: &LedgerQuery) -> ServicesLedger {
    let mut joined = ServicesLedger { now_ms: 0, services: Vec::new(), tasks: Vec::new() };
    for service in services {
        let shared = service.provider.shared();
        let ledger = shared.world().ledger(shared.clock.now_ms(), wanted);
        joined.now_ms = ledger.now_ms;
        joined.tasks.extend(ledger.tasks);
        joined.services.push(ServiceTotals {
            service: service.name.clone(),
            dialect: service.dialect,
            totals: ledger.totals,
            accounts: ledger.accounts,
        });
    }
    joined
}
