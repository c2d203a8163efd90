//! The address of the server and how to connect. The password is taken out of the address as soon as it is read, and
//! is never shown.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

const SCHEMA: &str = "quittance";
/// The longest name of a schema. PostgreSQL silently cuts longer names, so two schemas could become one.
const SCHEMA_BYTES_MAX: usize = 63;
const CONNECTIONS: usize = 4;
const CONNECTIONS_MAX: usize = 64;
const RECHECK: Duration = Duration::from_secs(5);
const CALL_WAIT: Duration = Duration::from_secs(3);

/// How the connection is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    Disable,
    /// Encrypted if the server supports it. The server is verified only if a certificate authority was set.
    Prefer,
    /// Encrypted, or not at all.
    Require,
    /// Encrypted, and the server's certificate must be valid for its name, from the given authority or a public one.
    VerifyFull,
}

/// The settings of a store.
///
/// The address is `postgres://user:password@host:port/database`. After a `?` it can hold these options:
///
/// | option | means |
/// | --- | --- |
/// | `sslmode` | `disable`; `prefer` (the default): encrypted if the server can; `require`: encrypted; `verify-full`: encrypted, and the server's certificate is checked. If a certificate authority is set, it is checked in all modes except `disable` |
/// | `schema` | the schema in which the tables are, by default `quittance` |
/// | `connections` | how many connections a node keeps open, by default 4, at least 2; the one that listens is not among them |
///
/// The driver's own options work too, such as `connect_timeout` or `target_session_attrs`.
#[derive(Clone)]
pub struct Settings {
    pub(crate) server: ServerAddress,
    pub(crate) listen: Option<ServerAddress>,
    pub(crate) schema: String,
    pub(crate) connections: usize,
    pub(crate) ca: Option<Vec<u8>>,
    pub(crate) migrate: bool,
    pub(crate) recheck: Duration,
    pub(crate) call_wait: Duration,
}

/// The address of a server.
#[derive(Clone)]
pub(crate) struct ServerAddress {
    pub(crate) config: Config,
    pub(crate) protection: Protection,
}

/// Why an address is refused. It does not show the address, which may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPostgresUrl {
    #[error("the address of a PostgreSQL store begins with postgres:// or postgresql://")]
    Scheme,
    #[error(
        "the address of the PostgreSQL store cannot be understood: it is postgres://user@host:port/database?option=value, with % before what is special"
    )]
    Malformed,
    #[error("the address of the PostgreSQL store names no host")]
    NoHost,
    #[error("`sslmode` is one of disable, prefer, require, verify-full")]
    SslMode,
    #[error(
        "`schema` is a name of 1 to {SCHEMA_BYTES_MAX} bytes without a zero byte or braces, and does not begin with pg_"
    )]
    Schema,
    #[error("`connections` is a number from 2 to {CONNECTIONS_MAX}")]
    Connections,
    #[error("the address for notices cannot have `connections` or another `schema`: leave these out")]
    NotForListening,
}

/// The content of an address: our own options, and those of the driver.
struct Read {
    server: ServerAddress,
    schema: Option<String>,
    connections: Option<usize>,
}

impl Settings {
    pub fn parse(url: &str) -> Result<Self, BadPostgresUrl> {
        let Read { server, schema, connections } = read(url)?;
        Ok(Self {
            server,
            listen: None,
            schema: schema.unwrap_or_else(|| SCHEMA.to_owned()),
            connections: connections.unwrap_or(CONNECTIONS),
            ca: None,
            migrate: true,
            recheck: RECHECK,
            call_wait: CALL_WAIT,
        })
    }

    /// Sets the password, for both addresses.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.server.config.password(password);
        if let Some(listen) = &mut self.listen {
            listen.config.password(password);
        }
        self
    }

    /// Trusts only this certificate authority (PEM) for the server's certificate.
    #[must_use]
    pub fn with_ca(mut self, pem: Vec<u8>) -> Self {
        self.ca = Some(pem);
        self
    }

    /// Sets the address for notices of other nodes. It must bypass a pooler in transaction mode, because no notice
    /// arrives through one.
    pub fn with_listen_url(mut self, url: &str) -> Result<Self, BadPostgresUrl> {
        let Read { mut server, schema, connections } = read(url)?;
        if schema.is_some_and(|schema| schema != self.schema) || connections.is_some() {
            return Err(BadPostgresUrl::NotForListening);
        }
        if let (None, Some(password)) = (server.config.get_password(), self.server.config.get_password()) {
            server.config.password(password);
        }
        self.listen = Some(server);
        Ok(self)
    }

    /// Whether the schema is created and updated when the store is opened.
    #[must_use]
    pub const fn with_migrate(mut self, yes: bool) -> Self {
        self.migrate = yes;
        self
    }

    /// How often orders with waiting callers are checked in case a notice was lost.
    #[must_use]
    pub const fn with_recheck(mut self, span: Duration) -> Self {
        self.recheck = span;
        self
    }

    /// The timeout of every call.
    #[must_use]
    pub const fn with_call_wait(mut self, span: Duration) -> Self {
        self.call_wait = span;
        self
    }

    /// The address for messages, without the password.
    #[must_use]
    pub fn address(&self) -> String {
        let ServerAddress { config, .. } = &self.server;
        let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
        let hosts: Vec<String> = config.get_hosts().iter().map(printable_host).collect();
        let port = config.get_ports().first().map_or(String::new(), |port| format!(":{port}"));
        let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
        format!("postgres://{user}{}{port}/{database}?schema={}", hosts.join(","), self.schema)
    }

    /// The name of the schema, unescaped.
    #[must_use]
    pub fn schema(&self) -> &str {
        &self.schema
    }

    pub(crate) fn listen_server(&self) -> &ServerAddress {
        self.listen.as_ref().unwrap_or(&self.server)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Settings").field(&self.address()).finish()
    }
}

fn printable_host(host: &Host) -> String {
    match host {
        Host::Tcp(name) if name.contains(':') => format!("[{name}]"),
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    }
}

fn read(url: &str) -> Result<Read, BadPostgresUrl> {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(BadPostgresUrl::Scheme);
    }
    let (place, options) = url.split_once('?').unwrap_or((url, ""));
    let (mut protection, mut schema, mut connections) = (Protection::Prefer, None, None);
    let mut others = Vec::new();
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').ok_or(BadPostgresUrl::Malformed)?;
        match name {
            "sslmode" => protection = read_protection(value)?,
            "schema" => schema = Some(read_schema(&unescape(value)?)?),
            "connections" => connections = Some(read_connections(value)?),
            _ => others.push(option),
        }
    }
    // What the driver says of a bad address may quote it, and so is not passed on.
    let plain = format!("{place}?{}", others.join("&"));
    let mut config = Config::from_str(plain.trim_end_matches('?')).map_err(|_| BadPostgresUrl::Malformed)?;
    if config.get_hosts().is_empty() {
        return Err(BadPostgresUrl::NoHost);
    }
    config.ssl_mode(match protection {
        Protection::Disable => SslMode::Disable,
        Protection::Prefer => SslMode::Prefer,
        Protection::Require | Protection::VerifyFull => SslMode::Require,
    });
    config.application_name("quittance");
    Ok(Read { server: ServerAddress { config, protection }, schema, connections })
}

fn read_protection(value: &str) -> Result<Protection, BadPostgresUrl> {
    Ok(match value {
        "disable" => Protection::Disable,
        "prefer" => Protection::Prefer,
        "require" => Protection::Require,
        "verify-full" => Protection::VerifyFull,
        _ => return Err(BadPostgresUrl::SslMode),
    })
}

fn read_schema(name: &str) -> Result<String, BadPostgresUrl> {
    // The steps of the schema write functions between these marks.
    let is_plain = !name.contains(['\0', '{', '}']) && !name.contains("$commit$");
    let is_taken = !name.is_empty() && name.len() <= SCHEMA_BYTES_MAX && is_plain;
    if is_taken && !name.starts_with("pg_") { Ok(name.to_owned()) } else { Err(BadPostgresUrl::Schema) }
}

fn read_connections(value: &str) -> Result<usize, BadPostgresUrl> {
    value
        .parse()
        .ok()
        .filter(|count| (2..=CONNECTIONS_MAX).contains(count))
        .ok_or(BadPostgresUrl::Connections)
}

/// Decodes `%41` and the like in an address.
fn unescape(value: &str) -> Result<String, BadPostgresUrl> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let (high, low) = digit().zip(digit()).ok_or(BadPostgresUrl::Malformed)?;
        bytes.push(u8::try_from(high * 16 + low).expect("two hexadecimal digits are a byte"));
    }
    String::from_utf8(bytes).map_err(|_| BadPostgresUrl::Malformed)
}

#[cfg(test)]
mod tests {
    use super::{BadPostgresUrl, Protection, Settings};

    #[test]
    fn an_address_is_read_and_shown_without_its_password() {
        let url = "postgres://ann:s3cr%40t@db.example.com:6432/orders?schema=so%20many&connections=9&sslmode=verify-full";
        let settings = Settings::parse(url).unwrap();
        assert_eq!(settings.address(), "postgres://ann@db.example.com:6432/orders?schema=so many");
        assert_eq!(settings.schema(), "so many");
        assert_eq!((settings.connections, settings.server.protection), (9, Protection::VerifyFull));
        assert_eq!(settings.server.config.get_password(), Some(&b"s3cr@t"[..]));
        assert!(!format!("{settings:?}").contains("s3cr"));
        assert_eq!(
            Settings::parse("postgresql://h/d").unwrap().address(),
            "postgres://h:5432/d?schema=quittance"
        );
    }

    #[test]
    fn a_bad_address_is_refused_with_a_reason_and_not_quoted() {
        for (url, why) in [
            ("redis://h", BadPostgresUrl::Scheme),
            ("postgres://", BadPostgresUrl::NoHost),
            ("postgres://u:s3cret@h:port/d", BadPostgresUrl::Malformed),
            ("postgres://u:s3cret@h/d?nonsense=s3cret", BadPostgresUrl::Malformed),
            ("postgres://u:s3cret@h/d?nonsense", BadPostgresUrl::Malformed),
            ("postgres://h/d?sslmode=allow", BadPostgresUrl::SslMode),
            ("postgres://h/d?schema=", BadPostgresUrl::Schema),
            ("postgres://h/d?schema=pg_x", BadPostgresUrl::Schema),
            ("postgres://h/d?schema=%00", BadPostgresUrl::Schema),
            ("postgres://h/d?schema=a$commit$b", BadPostgresUrl::Schema),
            ("postgres://h/d?schema=%zz", BadPostgresUrl::Malformed),
            ("postgres://h/d?connections=1", BadPostgresUrl::Connections),
        ] {
            let error = Settings::parse(url).unwrap_err();
            assert_eq!(error, why, "{url}");
            assert!(!error.to_string().contains("s3cret") && !format!("{error:?}").contains("s3cret"));
        }
        let settings = Settings::parse("postgres://h/d").unwrap();
        assert_eq!(
            settings.with_listen_url("postgres://h/d?connections=3").unwrap_err(),
            BadPostgresUrl::NotForListening
        );
    }

    #[test]
    fn one_password_holds_for_both_addresses() {
        for settings in [
            Settings::parse("postgres://u:pw@h/d").unwrap().with_listen_url("postgres://u@l/d").unwrap(),
            Settings::parse("postgres://u@h/d")
                .unwrap()
                .with_listen_url("postgres://u@l/d")
                .unwrap()
                .with_password("pw"),
        ] {
            assert_eq!(settings.listen_server().config.get_password(), Some(&b"pw"[..]));
            assert_eq!(settings.server.config.get_password(), Some(&b"pw"[..]));
        }
    }
}
