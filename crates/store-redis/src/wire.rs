//! Makes connections: to one server, to a cluster, or to the server that the sentinels report as the master.

use crate::settings::Settings;
use crate::url::Formation;
use redis::aio::{ConnectionLike, MultiplexedConnection, PubSub};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo};
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo, RedisResult,
    TlsCertificates, TlsMode, Value,
};
use std::time::Duration;

/// How often a cluster client repeats a request, because a slot has moved or a node is gone. A commit that arrives
/// twice is recognized by its mark.
const CLUSTER_RETRIES: u32 = 3;

/// How many servers of a cluster are tried one after another. One may hang, and the time must be enough for the
/// others.
const CLUSTER_SERVERS_IN_A_ROW: u32 = 3;

/// Makes connections of one kind.
pub(crate) struct Maker {
    way: WireKind,
    call_wait: Duration,
}

enum WireKind {
    One(Box<Client>),
    Sentinel(Box<SentinelClient>),
    Cluster { client: Box<ClusterClient>, nodes: Vec<Client>, turn: usize },
}

/// A connection that all calls share.
#[derive(Clone)]
pub(crate) enum RedisWire {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Maker {
    pub(crate) fn new(settings: &Settings) -> RedisResult<Self> {
        let url = &settings.url;
        let way = match &url.formation {
            Formation::One => {
                let (host, port) = &url.hosts[0];
                WireKind::One(Box::new(client(settings, host, *port)?))
            }
            Formation::Sentinel { master } => WireKind::Sentinel(Box::new(sentinels(settings, master)?)),
            Formation::Cluster => {
                let nodes = url.hosts.iter().map(|(host, port)| client(settings, host, *port));
                let client = Box::new(cluster(settings)?);
                WireKind::Cluster { client, nodes: nodes.collect::<RedisResult<_>>()?, turn: 0 }
            }
        };
        Ok(Self { way, call_wait: settings.call_wait })
    }

    pub(crate) async fn wire(&mut self) -> RedisResult<RedisWire> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.call_wait))
            .set_response_timeout(Some(self.call_wait));
        Ok(match &mut self.way {
            WireKind::One(client) => {
                RedisWire::One(client.get_multiplexed_async_connection_with_config(&config).await?)
            }
            WireKind::Sentinel(client) => {
                RedisWire::One(client.get_async_connection_with_config(&config).await?)
            }
            WireKind::Cluster { client, .. } => RedisWire::Cluster(client.get_async_connection().await?),
        })
    }

    /// A connection for notices. Every node of a cluster gets all notices, so any node works. Each call uses the next
    /// node, in case one is broken.
    pub(crate) async fn pubsub(&mut self) -> RedisResult<PubSub> {
        match &mut self.way {
            WireKind::One(client) => client.get_async_pubsub().await,
            WireKind::Sentinel(client) => client.async_get_client().await?.get_async_pubsub().await,
            WireKind::Cluster { nodes, turn, .. } => {
                *turn = (*turn + 1) % nodes.len();
                nodes[*turn].get_async_pubsub().await
            }
        }
    }
}

impl RedisWire {
    pub(crate) async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        match self {
            Self::One(connection) => connection.req_packed_command(command).await?,
            Self::Cluster(connection) => connection.req_packed_command(command).await?,
        }
        .extract_error()
    }

    /// Sends a command to every server that accepts writes.
    pub(crate) async fn send_to_all(&mut self, command: &Cmd) -> RedisResult<Vec<Value>> {
        match self {
            Self::One(_) => Ok(vec![self.send(command).await?]),
            Self::Cluster(connection) => {
                let all = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
                match connection.route_command(command.clone(), all).await?.extract_error()? {
                    Value::Map(nodes) => Ok(nodes.into_iter().map(|(_, value)| value).collect()),
                    Value::Array(values) => Ok(values),
                    other => Ok(vec![other]),
                }
            }
        }
    }
}

fn certificates(settings: &Settings) -> Option<TlsCertificates> {
    settings.ca.clone().map(|pem| TlsCertificates { client_tls: None, root_cert: Some(pem) })
}

fn address(settings: &Settings, host: &str, port: u16) -> ConnectionAddr {
    if settings.url.is_tls {
        ConnectionAddr::TcpTls { host: host.to_owned(), port, insecure: false, tls_params: None }
    } else {
        ConnectionAddr::Tcp(host.to_owned(), port)
    }
}

fn client(settings: &Settings, host: &str, port: u16) -> RedisResult<Client> {
    let url = &settings.url;
    let mut login =
        RedisConnectionInfo::default().set_db(url.db).set_lib_name("quittance", env!("CARGO_PKG_VERSION"));
    if let Some(user) = &url.user {
        login = login.set_username(user);
    }
    if let Some(password) = &url.password {
        login = login.set_password(password);
    }
    let server = address(settings, host, port).into_connection_info()?.set_redis_settings(login);
    match certificates(settings) {
        Some(certificates) if url.is_tls => Client::build_with_tls(server, certificates),
        _ => Client::open(server),
    }
}

fn sentinels(settings: &Settings, master: &str) -> RedisResult<SentinelClient> {
    let url = &settings.url;
    let sentinels = url.hosts.iter().map(|(host, port)| address(settings, host, *port));
    let mut builder = SentinelClientBuilder::new(sentinels, master, SentinelServerType::Master)?
        .set_client_to_redis_db(url.db);
    if url.is_tls {
        builder = builder
            .set_client_to_redis_tls_mode(TlsMode::Secure)
            .set_client_to_sentinel_tls_mode(TlsMode::Secure);
    }
    if let Some(certificates) = certificates(settings).filter(|_| url.is_tls) {
        builder = builder
            .set_client_to_redis_certificates(certificates.clone())
            .set_client_to_sentinel_certificates(certificates);
    }
    if let Some(user) = &url.user {
        builder = builder.set_client_to_redis_username(user);
    }
    if let Some(password) = &url.password {
        builder = builder.set_client_to_redis_password(password);
    }
    builder.build()
}

fn cluster(settings: &Settings) -> RedisResult<ClusterClient> {
    let url = &settings.url;
    let nodes: Vec<_> = url.hosts.iter().map(|(host, port)| address(settings, host, *port)).collect();
    let mut builder = ClusterClient::builder(nodes)
        .retries(CLUSTER_RETRIES)
        .connection_timeout(settings.call_wait / CLUSTER_SERVERS_IN_A_ROW)
        .response_timeout(settings.call_wait);
    if let Some(certificates) = certificates(settings).filter(|_| url.is_tls) {
        builder = builder.certs(certificates);
    }
    if let Some(user) = &url.user {
        builder = builder.username(user);
    }
    if let Some(password) = &url.password {
        builder = builder.password(password);
    }
    builder.build()
}
