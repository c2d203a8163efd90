//! The one clock of this crate and its one way to wait: for something that can be seen, with a limit that only a broken
//! server reaches.

use std::thread;
use std::time::{Duration, Instant};

/// Longer than a server may need on a machine that is busy with something else.
const LONG: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(5);

#[expect(clippy::disallowed_methods, reason = "it watches real processes, so its limits are in real time")]
fn now() -> Instant {
    Instant::now()
}

/// Looks until there is something to see; nothing, if that takes for ever.
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
