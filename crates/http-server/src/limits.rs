//! The limits of a server, and its counters.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most connections that are served at once. A further connection waits until one is closed.
    pub connections_max: usize,
    /// The most requests at once. A further request is refused at once.
    pub requests_max: usize,
    /// The largest body of one request: a picture of 2 MiB in base64 must fit.
    pub body_bytes_max: usize,
    /// The most bytes of all bodies together; small bodies do not count.
    pub bodies_bytes_max: usize,
    /// The largest head of one request, with its query: some providers put the answer into the query.
    pub head_bytes_max: usize,
    /// The timeout for a handshake, a head or a body to arrive.
    pub read_wait: Duration,
    /// The timeout for a caller that does not read the response.
    pub write_wait: Duration,
    /// How long a connection can be idle between two requests.
    pub idle_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 20_000,
            requests_max: 16_384,
            body_bytes_max: 3 * 1024 * 1024,
            bodies_bytes_max: 512 * 1024 * 1024,
            head_bytes_max: 128 * 1024,
            read_wait: Duration::from_secs(10),
            write_wait: Duration::from_secs(30),
            idle_wait: Duration::from_secs(75),
        }
    }
}

/// The counters of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub connections_open: u64,
    pub requests: u64,
    /// Requests in progress.
    pub requests_open: u64,
    /// Requests that were too large, too slow, too many, or broken off.
    pub turned_away: u64,
    pub failed_handshakes: u64,
    /// Panics while answering. Each is a bug, and affects one request only.
    pub panics: u64,
}
