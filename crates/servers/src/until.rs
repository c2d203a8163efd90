//! The one clock and the one way to wait in this crate: for a visible condition, with a limit that only a broken
//! server reaches.

use std::thread;
use std::time::{Duration, Instant};

/// Longer than a server needs on a busy machine.
const LONG: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(5);

#[expect(clippy::disallowed_methods, reason = "it watches real processes, so its limits are in real time")]
fn now() -> Instant {
    Instant::now()
}

/// Calls `look` until it returns a value, or returns `None` after a long time.
pub(crate) fn until<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = now() + LONG;
    loop {
        if let Some(value) = look() {
            return Some(value);
        }
        if now() >= end {
            return None;
        }
        thread::park_timeout(LOOK);
    }
}
