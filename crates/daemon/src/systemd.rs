//! Messages to systemd: ready, stopping, and the watchdog. Without systemd, none is sent.

use quittance_config::Environment;
use std::time::Duration;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// The socket of systemd, if it started this process.
#[derive(Debug, Default)]
pub struct Systemd {
    #[cfg(unix)]
    socket: Option<std::os::unix::net::UnixDatagram>,
    /// How often systemd wants a sign of life.
    timeout: Option<Duration>,
}

impl Systemd {
    /// Reads the socket from the environment. A socket that cannot be reached counts as none.
    #[must_use]
    pub fn of(environment: &Environment) -> Self {
        let number = |name| environment.get(name).and_then(|text| text.parse::<u64>().ok());
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        Self {
            #[cfg(unix)]
            socket: environment.get("NOTIFY_SOCKET").and_then(|address| connect(address).ok()),
            timeout: number("WATCHDOG_USEC").filter(|span| is_ours && *span > 0).map(Duration::from_micros),
        }
    }

    /// Sends a message; without systemd, nothing is sent.
    pub fn tell(&self, state: &str) {
        #[cfg(unix)]
        if let Some(socket) = &self.socket
            && let Err(error) = socket.send(state.as_bytes())
        {
            tracing::debug!("{state} could not be sent to systemd: {error}");
        }
        #[cfg(not(unix))]
        let _ = state;
    }

    /// A watchdog that sends twice in the time after which systemd would restart us.
    #[must_use]
    pub fn watchdog(&self) -> Watchdog {
        Watchdog(self.timeout.map(|timeout| {
            let mut interval = interval_at(Instant::now(), timeout / 2);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        }))
    }
}

/// When the next message for the watchdog is due.
#[derive(Debug)]
pub struct Watchdog(Option<Interval>);

impl Watchdog {
    /// Waits until the next message is due; for ever if there is no watchdog.
    pub async fn due(&mut self) {
        match &mut self.0 {
            Some(interval) => _ = interval.tick().await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(unix)]
fn connect(address: &str) -> std::io::Result<std::os::unix::net::UnixDatagram> {
    let socket = std::os::unix::net::UnixDatagram::unbound()?;
    // A receiver that does not read must not block us.
    socket.set_nonblocking(true)?;
    #[cfg(target_os = "linux")]
    if let Some(name) = address.strip_prefix('@') {
        use std::os::linux::net::SocketAddrExt;
        socket.connect_addr(&std::os::unix::net::SocketAddr::from_abstract_name(name)?)?;
        return Ok(socket);
    }
    socket.connect(address)?;
    Ok(socket)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    fn heard(listener: &UnixDatagram) -> String {
        let mut bytes = [0; 64];
        let read = listener.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..read].to_vec()).unwrap()
    }

    #[test]
    fn messages_go_to_the_socket_that_systemd_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let systemd = Systemd::of(&[("NOTIFY_SOCKET", path.to_str().unwrap())].into_iter().collect());
        systemd.tell("READY=1");
        assert_eq!(heard(&listener), "READY=1");

        let name = format!("quittance-test-{}", std::process::id());
        let listener = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let systemd = Systemd::of(&[("NOTIFY_SOCKET", format!("@{name}"))].into_iter().collect());
        systemd.tell("STOPPING=1");
        assert_eq!(heard(&listener), "STOPPING=1");
    }

    #[test]
    fn without_systemd_nothing_is_sent() {
        Systemd::default().tell("READY=1");
        let gone: Environment = [("NOTIFY_SOCKET", "/nowhere/at/all")].into_iter().collect();
        Systemd::of(&gone).tell("READY=1");
    }

    #[test]
    fn the_watchdog_is_ours_only_if_it_names_us() {
        let timeout = |variables: &[(&str, String)]| {
            let environment = variables.iter().map(|(name, value)| (*name, value.clone())).collect();
            Systemd::of(&environment).timeout
        };
        let span = ("WATCHDOG_USEC", "3000000".to_owned());
        let own = ("WATCHDOG_PID", std::process::id().to_string());
        assert_eq!(timeout(&[span.clone(), own]), Some(Duration::from_secs(3)));
        assert_eq!(timeout(&[span.clone(), ("WATCHDOG_PID", "1".into())]), None);
        assert_eq!(timeout(&[("WATCHDOG_USEC", "0".into())]), None);
        assert_eq!(timeout(&[]), None);
    }
}
