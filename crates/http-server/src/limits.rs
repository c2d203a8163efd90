//! What a caller may cost, as numbers; and what has come so far.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A connection beyond them waits until one is closed.
    pub connections_max: usize,
    /// How many requests are worked on at once; a request beyond it is refused at once.
    pub requests_max: usize,
    /// Of one request: a picture of 2 MiB in base64 must fit.
    pub body_bytes_max: usize,
    /// Of all requests together; small ones do not count.
    pub bodies_bytes_max: usize,
    /// Of one request, the line with its query included: some providers put the answer into the query.
    pub head_bytes_max: usize,
    /// How long a handshake, a head or a body may take to arrive.
    pub read_wait: Duration,
    /// How long a caller may take to read on.
    pub write_wait: Duration,
    /// How long a connection may stay open between two requests.
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

/// What a server has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub connections_open: u64,
    pub requests: u64,
    /// Being worked on now.
    pub requests_open: u64,
    /// Too large, too slow, too many, or broken off.
    pub turned_away: u64,
    pub failed_handshakes: u64,
    /// Each is a bug, and hurt one request only.
    pub panics: u64,
}
