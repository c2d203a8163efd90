//! The listeners: on sockets that systemd has opened for us, or else on the configured addresses. If no key is
//! needed, only this machine may connect, whatever the configuration says.

use quittance_config::Environment;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::{TcpListener, TcpSocket};

/// The default address for https.
pub(crate) const HTTPS_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8743);
/// The setting with the address for http.
const HTTP_SETTING: &str = "listen";
const HTTPS_SETTING: &str = "tls.listen";
/// How many connections may wait to be accepted.
const BACKLOG: u32 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocketUse {
    Http,
    Https,
}

/// Sockets that were open before this process started.
#[derive(Debug, Default)]
pub struct Inherited {
    http: Option<std::net::TcpListener>,
    https: Option<std::net::TcpListener>,
}

impl Inherited {
    /// Takes the sockets of systemd's socket activation, if there are any. Call this once, before other code
    /// opens files.
    pub fn take(environment: &Environment) -> Result<Self, CannotListen> {
        let mut found = listenfd::ListenFd::from_env();
        let wrong = |what: String| refusal(format!("the sockets from systemd: {what}"));
        let socket_uses = socket_uses(environment.get("LISTEN_FDNAMES"), found.len()).map_err(wrong)?;
        let mut inherited = Self::default();
        for (at, socket_use) in socket_uses.into_iter().enumerate() {
            let listener = found.take_tcp_listener(at).map_err(|error| wrong(error.to_string()))?;
            match socket_use {
                SocketUse::Http => inherited.http = listener,
                SocketUse::Https => inherited.https = listener,
            }
        }
        Ok(inherited)
    }
}

/// The use of each socket: by its name, or http first if there are no names.
fn socket_uses(names: Option<&str>, count: usize) -> Result<Vec<SocketUse>, String> {
    let names: Vec<&str> = names.map(|names| names.split(':').collect()).unwrap_or_default();
    let named = (0..count).map(|at| match names.get(at) {
        Some(&"http") => Some(SocketUse::Http),
        Some(&"https") => Some(SocketUse::Https),
        _ => None,
    });
    let named: Vec<Option<SocketUse>> = named.collect();
    let mut free = [SocketUse::Http, SocketUse::Https]
        .into_iter()
        .filter(|socket_use| !named.contains(&Some(*socket_use)));
    let remedy =
        "there may be one called `http` and one called `https` (FileDescriptorName= in the .socket unit)";
    let socket_uses: Vec<SocketUse> = named
        .iter()
        .map(|socket_use| {
            socket_use.or_else(|| free.next()).ok_or_else(|| format!("there are {count}; {remedy}"))
        })
        .collect::<Result<_, _>>()?;
    let is_twice = |which| socket_uses.iter().filter(|socket_use| **socket_use == which).count() > 1;
    if is_twice(SocketUse::Http) || is_twice(SocketUse::Https) {
        return Err(format!("two have one name; {remedy}"));
    }
    Ok(socket_uses)
}

/// An address to listen on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenRequest {
    pub(crate) http: SocketAddr,
    pub(crate) https: Option<SocketAddr>,
    /// Whether callers need no key, because no tenant is configured.
    pub(crate) is_open: bool,
}

impl ListenRequest {
    /// Opens the sockets, or takes those of systemd.
    pub(crate) fn bind(
        self,
        inherited: Inherited,
    ) -> Result<(TcpListener, Option<TcpListener>), CannotListen> {
        if inherited.https.is_some() && self.https.is_none() {
            let what = "systemd has opened a socket for https, and there is no certificate: set `tls.cert_file` and \
                        `tls.key_file`, or take the socket out of the unit";
            return Err(refusal(what));
        }
        if inherited.http.is_none() && inherited.https.is_none() {
            self.check_distinct()?;
        }
        let http = self.listener(self.http, inherited.http, HTTP_SETTING)?;
        let https =
            self.https.map(|wanted| self.listener(wanted, inherited.https, HTTPS_SETTING)).transpose()?;
        Ok((http, https))
    }

    /// Checks that http and https do not use the same address and port.
    fn check_distinct(self) -> Result<(), CannotListen> {
        let Some(https) = self.https else { return Ok(()) };
        let (one, other) = (self.kept(self.http), self.kept(https));
        let is_shared = covers(one.ip(), other.ip()) || covers(other.ip(), one.ip());
        if one.port() == 0 || one.port() != other.port() || !is_shared {
            return Ok(());
        }
        let what = format!(
            "`{HTTPS_SETTING}` ({https}) and `{HTTP_SETTING}` ({}) are the same port of the same address: give one of them another \
             port",
            self.http
        );
        Err(refusal(what))
    }

    /// Why these addresses cannot be listened on; empty if they can. Each is opened for a test and closed again.
    #[must_use]
    pub(crate) fn unusable(self) -> Vec<CannotListen> {
        let wanted = [(Some(self.http), HTTP_SETTING), (self.https, HTTPS_SETTING)];
        let tried =
            wanted.into_iter().filter_map(|(address, setting)| listen_on(self.kept(address?), setting).err());
        match self.check_distinct() {
            Err(same) => vec![same],
            Ok(()) => tried.collect(),
        }
    }

    /// The address that is really used for this one.
    fn kept(self, wanted: SocketAddr) -> SocketAddr {
        if self.is_open { inside(wanted) } else { wanted }
    }

    fn listener(
        self,
        wanted: SocketAddr,
        inherited: Option<std::net::TcpListener>,
        setting: &'static str,
    ) -> Result<TcpListener, CannotListen> {
        if let Some(listener) = inherited {
            return adopt(listener, self.is_open);
        }
        let address = self.kept(wanted);
        if address != wanted {
            tracing::warn!(
                "no tenant is configured, so no key is needed and only this machine may connect: listening on {address} \
                 instead of {wanted}; `quittance tenant new NAME` makes a key, and then other machines may ask too"
            );
        } else if self.is_open && setting == HTTP_SETTING {
            tracing::info!(
                "no tenant is configured, so no key is needed and only this machine may connect; `quittance tenant new \
                 NAME` makes a key for others"
            );
        }
        listen_on(address, setting)
    }
}

fn refusal(what: impl Into<String>) -> CannotListen {
    CannotListen { what: what.into(), is_in_use: false }
}

/// Why an address or a socket cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct CannotListen {
    pub what: String,
    /// Whether another process listens there, which may be the daemon that is being restarted.
    pub is_in_use: bool,
}

fn listen_on(address: SocketAddr, setting: &'static str) -> Result<TcpListener, CannotListen> {
    listen(address).map_err(|error| CannotListen {
        what: cannot_listen(address, &error, setting),
        is_in_use: error.kind() == ErrorKind::AddrInUse,
    })
}

/// Why this address cannot be listened on, and what to do about it. `setting` is what sets the address.
#[must_use]
pub fn cannot_listen(address: SocketAddr, error: &std::io::Error, setting: &str) -> String {
    let remedy = match error.kind() {
        ErrorKind::PermissionDenied if address.port() < 1024 => format!(
            "ports below 1024 are for root. Use a port above 1023 in `{setting}`, or let systemd open this one with a socket unit"
        ),
        ErrorKind::AddrInUse => {
            format!("another process listens there. Stop it, or choose another `{setting}`")
        }
        ErrorKind::AddrNotAvailable => {
            format!(
                "this machine does not have that address. Choose one that it has for `{setting}`, or 127.0.0.1"
            )
        }
        _ => format!("choose another `{setting}`"),
    };
    format!("cannot listen on {address}: {error}: {remedy}")
}

fn adopt(listener: std::net::TcpListener, is_open: bool) -> Result<TcpListener, CannotListen> {
    let unusable = |error: std::io::Error| refusal(format!("a socket from systemd cannot be used: {error}"));
    let address = listener.local_addr().map_err(unusable)?;
    if is_open && !is_kept_inside(address) {
        let what = format!(
            "systemd listens on {address} for us, and no tenant is configured, so every caller could place orders: make a key with \
             `quittance tenant new NAME`, or let the .socket unit listen on 127.0.0.1"
        );
        return Err(refusal(what));
    }
    listener.set_nonblocking(true).map_err(unusable)?;
    TcpListener::from_std(listener).map_err(unusable)
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A restart must not wait for connections of the past; on Windows it would share the port with a stranger.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Whether the address can be reached from this machine only.
#[must_use]
pub fn is_kept_inside(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// This port on loopback, where only this machine can connect.
fn inside(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if ip.to_canonical().is_loopback() => return address,
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    SocketAddr::new(ip, address.port())
}

/// Whether a socket on the first address receives what is sent to the second. `[::]` receives IPv4, too.
fn covers(wide: IpAddr, narrow: IpAddr) -> bool {
    wide == narrow || wide.is_unspecified() && (wide.is_ipv6() || narrow.is_ipv4())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_no_key_is_needed_only_this_machine_can_connect() {
        for (wanted, kept) in [
            ("0.0.0.0:8780", "127.0.0.1:8780"),
            ("192.0.2.7:1", "127.0.0.1:1"),
            ("127.0.0.2:5", "127.0.0.2:5"),
            ("[::]:8780", "[::1]:8780"),
            ("[2001:db8::1]:3", "[::1]:3"),
            ("[::1]:4", "[::1]:4"),
            ("[::ffff:127.0.0.1]:4", "[::ffff:127.0.0.1]:4"),
            ("[::ffff:192.0.2.7]:4", "[::1]:4"),
        ] {
            assert_eq!(inside(wanted.parse().unwrap()), kept.parse().unwrap(), "{wanted}");
        }
    }

    #[test]
    fn sockets_of_systemd_go_by_their_names_and_else_http_is_first() {
        use SocketUse::{Http, Https};
        for (names, count, expected) in [
            (None, 0, &[][..]),
            (None, 1, &[Http]),
            (None, 2, &[Http, Https]),
            (Some("https"), 1, &[Https]),
            (Some("https:http"), 2, &[Https, Http]),
            (Some("https:quittance.socket"), 2, &[Https, Http]),
            (Some("quittance.socket:quittance.socket"), 2, &[Http, Https]),
        ] {
            assert_eq!(socket_uses(names, count).unwrap(), expected, "{names:?}");
        }
        for (names, count) in
            [(None, 3), (Some("http:http"), 2), (Some("https:https"), 2), (Some("a:b:c"), 3)]
        {
            assert!(socket_uses(names, count).unwrap_err().contains("FileDescriptorName"), "{names:?}");
        }
    }

    #[tokio::test]
    async fn an_open_socket_from_systemd_is_refused_if_no_key_is_needed() {
        let open = || std::net::TcpListener::bind("0.0.0.0:0").unwrap();
        let refused = adopt(open(), true).unwrap_err();
        assert!(refused.what.contains("quittance tenant new"), "{refused}");
        assert!(adopt(open(), false).is_ok(), "with a key, others may come");
        assert!(adopt(std::net::TcpListener::bind("127.0.0.1:0").unwrap(), true).is_ok());
    }

    #[test]
    fn each_reason_why_an_address_cannot_be_used_has_its_own_remedy() {
        for (address, kind, words) in [
            ("127.0.0.1:80", ErrorKind::PermissionDenied, "a port above 1023"),
            ("127.0.0.1:8780", ErrorKind::AddrInUse, "another process listens there"),
            ("192.0.2.7:8780", ErrorKind::AddrNotAvailable, "does not have that address"),
        ] {
            let error = cannot_listen(address.parse().unwrap(), &kind.into(), "listen");
            assert!(error.contains(words) && error.contains("`listen`"), "{error}");
        }
    }

    #[test]
    fn http_and_https_on_one_port_are_refused_also_if_only_one_of_them_names_every_address() {
        for (http, https, is_refused) in [
            ("127.0.0.1:7", "127.0.0.1:7", true),
            ("0.0.0.0:7", "127.0.0.1:7", true),
            ("[::]:7", "0.0.0.0:7", true),
            ("0.0.0.0:7", "[::]:7", true),
            ("127.0.0.1:7", "[::]:7", true),
            ("0.0.0.0:7", "[::1]:7", false),
            ("127.0.0.1:7", "127.0.0.2:7", false),
            ("[::]:7", "0.0.0.0:8", false),
        ] {
            let (http, https) = (http.parse().unwrap(), Some(https.parse().unwrap()));
            let distinct = ListenRequest { http, https, is_open: false }.check_distinct();
            assert_eq!(distinct.is_err(), is_refused, "{http} {https:?}");
        }
    }

    #[tokio::test]
    async fn an_address_in_use_is_reported_with_the_setting_to_change() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let wanted = ListenRequest { http: taken.local_addr().unwrap(), https: None, is_open: false };
        let refused = wanted.bind(Inherited::default()).unwrap_err();
        assert!(refused.what.contains("`listen`") && refused.what.contains("in use"), "{refused}");
    }
}
