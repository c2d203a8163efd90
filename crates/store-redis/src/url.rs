//! The address of a store, as operators write it, and the errors in it. An error does not repeat the address, which
//! can hold a password.

/// Why an address of a Redis store cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRedisUrl {
    #[error(
        "the address of a Redis store begins with one of redis, rediss, valkey, valkeys, each with +cluster or \
         +sentinel behind it if it is one, and then ://"
    )]
    Scheme,
    #[error(
        "the address names no server: write redis://HOST:PORT, or several with commas between them for a cluster or sentinels"
    )]
    Host,
    #[error(
        "one server is one host; for several write redis+cluster:// or redis+sentinel:// in front of them"
    )]
    ManyHosts,
    #[error("a port is a number from 1 to 65535, after the host and a colon")]
    Port,
    #[error("a database is a small number after the port, as in redis://HOST:PORT/0")]
    Database,
    #[error("a cluster has no numbered databases: leave out what comes after the servers")]
    ClusterDatabase,
    #[error("after the sentinels comes the name of what they guard, as in redis+sentinel://HOST:PORT/NAME")]
    MasterName,
    #[error(
        "a percent sign in the address is followed by two hexadecimal digits; write %25 for the sign itself"
    )]
    Escape,
    #[error("a prefix is 1 to 64 letters, digits, dots, dashes and underscores, as in ?prefix=quittance")]
    Prefix,
    #[error("partitions are a number from 1 to 256, as in ?partitions=16")]
    Partitions,
    #[error("behind the question mark only prefix=NAME, partitions=N and, for sentinels, db=N are known")]
    Option,
}

/// The arrangement of the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Formation {
    One,
    Cluster,
    Sentinel { master: String },
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) formation: Formation,
    pub(crate) is_tls: bool,
    pub(crate) hosts: Vec<(String, u16)>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) db: i64,
    pub(crate) prefix: Option<String>,
    pub(crate) partitions: Option<u16>,
}

/// The default prefix of a store.
pub(crate) const PREFIX: &str = "quittance";
const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;
const PARTITIONS_MAX: u16 = 256;
const PREFIX_BYTES_MAX: usize = 64;
const DATABASE_MAX: i64 = 1_000_000;

impl Url {
    pub(crate) fn parse(text: &str) -> Result<Self, BadRedisUrl> {
        let (scheme, rest) = text.split_once("://").ok_or(BadRedisUrl::Scheme)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = authority.rsplit_once('@').map_or((None, authority), |(l, h)| (Some(l), h));
        let (server, formation) = scheme.split_once('+').unwrap_or((scheme, ""));
        let is_tls = match server {
            "redis" | "valkey" => false,
            "rediss" | "valkeys" => true,
            _ => return Err(BadRedisUrl::Scheme),
        };
        let (formation, db) = match formation {
            "" => (Formation::One, database(if path.is_empty() { "0" } else { path })?),
            "cluster" if path.is_empty() => (Formation::Cluster, 0),
            "cluster" => return Err(BadRedisUrl::ClusterDatabase),
            "sentinel" if path.is_empty() || path.contains('/') => return Err(BadRedisUrl::MasterName),
            "sentinel" => (Formation::Sentinel { master: unescape(path)? }, 0),
            _ => return Err(BadRedisUrl::Scheme),
        };
        let port = if matches!(formation, Formation::Sentinel { .. }) { SENTINEL_PORT } else { REDIS_PORT };
        let hosts = hosts.split(',').map(|host| read_host(host, port)).collect::<Result<Vec<_>, _>>()?;
        if formation == Formation::One && hosts.len() > 1 {
            return Err(BadRedisUrl::ManyHosts);
        }
        let (user, password) = login.map_or(Ok((None, None)), read_login)?;
        let mut url = Self { formation, is_tls, hosts, user, password, db, prefix: None, partitions: None };
        for option in query.split('&').filter(|option| !option.is_empty()) {
            url.read_option(option)?;
        }
        Ok(url)
    }

    fn read_option(&mut self, option: &str) -> Result<(), BadRedisUrl> {
        let (name, value) = option.split_once('=').ok_or(BadRedisUrl::Option)?;
        match name {
            "prefix" => self.prefix = Some(read_prefix(value)?),
            "partitions" => {
                let count = value.parse().ok().filter(|n| (1..=PARTITIONS_MAX).contains(n));
                self.partitions = Some(count.ok_or(BadRedisUrl::Partitions)?);
            }
            "db" if matches!(self.formation, Formation::Sentinel { .. }) => self.db = database(value)?,
            _ => return Err(BadRedisUrl::Option),
        }
        Ok(())
    }

    /// The address for messages: enough to identify the store, without user and password.
    pub(crate) fn shown(&self) -> String {
        let scheme = if self.is_tls { "rediss" } else { "redis" };
        let show = |(host, port): &(String, u16)| {
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
        };
        let hosts = self.hosts.iter().map(show).collect::<Vec<_>>().join(",");
        let place = match &self.formation {
            Formation::One if self.db == 0 => format!("{scheme}://{hosts}"),
            Formation::One => format!("{scheme}://{hosts}/{}", self.db),
            Formation::Cluster => format!("{scheme}+cluster://{hosts}"),
            Formation::Sentinel { master } => format!("{scheme}+sentinel://{hosts}/{master}"),
        };
        match self.prefix.as_deref() {
            None | Some(PREFIX) => place,
            Some(prefix) => format!("{place}?prefix={prefix}"),
        }
    }
}

fn database(text: &str) -> Result<i64, BadRedisUrl> {
    text.parse().ok().filter(|db| (0..=DATABASE_MAX).contains(db)).ok_or(BadRedisUrl::Database)
}

fn read_prefix(text: &str) -> Result<String, BadRedisUrl> {
    // No braces: they say which part of a key chooses its slot.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let is_good = (1..=PREFIX_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain);
    is_good.then(|| text.to_owned()).ok_or(BadRedisUrl::Prefix)
}

fn read_host(text: &str, default_port: u16) -> Result<(String, u16), BadRedisUrl> {
    let (host, port) = match text.strip_prefix('[') {
        Some(address) => {
            let (host, rest) = address.split_once(']').ok_or(BadRedisUrl::Host)?;
            (host, rest.strip_prefix(':').or((!rest.is_empty()).then_some("")))
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_name) {
        return Err(BadRedisUrl::Host);
    }
    let port = match port {
        None => default_port,
        Some(digits) => digits.parse().ok().filter(|port| *port > 0).ok_or(BadRedisUrl::Port)?,
    };
    Ok((host.to_owned(), port))
}

type Login = (Option<String>, Option<String>);

fn read_login(text: &str) -> Result<Login, BadRedisUrl> {
    let (user, password) = text.split_once(':').map_or((text, None), |(user, rest)| (user, Some(rest)));
    let user = Some(unescape(user)?).filter(|user| !user.is_empty());
    Ok((user, password.map(unescape).transpose()?.filter(|password| !password.is_empty())))
}

fn unescape(text: &str) -> Result<String, BadRedisUrl> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit =
            || rest.next().and_then(|byte| char::from(byte).to_digit(16)).ok_or(BadRedisUrl::Escape);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).map_err(|_| BadRedisUrl::Escape)?);
    }
    String::from_utf8(bytes).map_err(|_| BadRedisUrl::Escape)
}

#[cfg(test)]
mod tests {
    use super::{BadRedisUrl, Formation, Url};

    #[test]
    fn an_address_says_where_how_and_under_which_name() {
        let url =
            Url::parse("rediss://ann:p%40ss%3aword@[::1]:7000/3?prefix=a.b&partitions=4").expect("good");
        assert_eq!(url.hosts, [("::1".to_owned(), 7000)]);
        assert_eq!((url.user.as_deref(), url.password.as_deref()), (Some("ann"), Some("p@ss:word")));
        assert_eq!((url.is_tls, url.db, url.partitions), (true, 3, Some(4)));
        assert_eq!(url.prefix.as_deref(), Some("a.b"));
        assert_eq!(url.shown(), "rediss://[::1]:7000/3?prefix=a.b");
        let url = Url::parse("redis://one?prefix=quittance").expect("good");
        assert_eq!(url.shown(), "redis://one:6379", "the default says nothing, so it is left out");

        let url = Url::parse("valkey+cluster://one:1,two").expect("good");
        assert_eq!(url.formation, Formation::Cluster);
        assert_eq!(url.shown(), "redis+cluster://one:1,two:6379");

        let url = Url::parse("redis+sentinel://:secret@one,two:5/main?db=2").expect("good");
        assert_eq!((&url.formation, url.db), (&Formation::Sentinel { master: "main".into() }, 2));
        assert_eq!((url.user, url.password.as_deref()), (None, Some("secret")));
    }

    #[test]
    fn an_error_in_an_address_is_reported_without_its_secrets() {
        for (text, expected) in [
            ("hunter2", BadRedisUrl::Scheme),
            ("http://:hunter2@host", BadRedisUrl::Scheme),
            ("redis+ring://:hunter2@host", BadRedisUrl::Scheme),
            ("redis://:hunter2@", BadRedisUrl::Host),
            ("redis://:hunter2@one,two", BadRedisUrl::ManyHosts),
            ("redis://:hunter2@host:none", BadRedisUrl::Port),
            ("redis://host:0", BadRedisUrl::Port),
            ("redis://host/hunter2", BadRedisUrl::Database),
            ("redis://:hunter2@host/-1", BadRedisUrl::Database),
            ("redis+cluster://:hunter2@one,two/1", BadRedisUrl::ClusterDatabase),
            ("redis+sentinel://:hunter2@one,two", BadRedisUrl::MasterName),
            ("redis://:hunter2%2@host", BadRedisUrl::Escape),
            ("redis://host?prefix={hunter2}", BadRedisUrl::Prefix),
            ("redis://host?partitions=0", BadRedisUrl::Partitions),
            ("redis://host?partitions=257", BadRedisUrl::Partitions),
            ("redis://host?password=hunter2", BadRedisUrl::Option),
            ("redis://host?hunter2", BadRedisUrl::Option),
        ] {
            let record = Url::parse(text).err();
            assert_eq!(record.as_ref(), Some(&expected), "{text}");
            assert!(!format!("{expected} {expected:?}").contains("hunter2"));
        }
    }
}
