//! The only clock and the only ways to wait: for something observable, with a limit that only a broken program
//! reaches. No test sleeps and hopes.

use std::thread;
use std::time::{Duration, Instant};

/// A timeout for everything here, also on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// The pause between two checks if there is no notice.
const LOOK: Duration = Duration::from_millis(10);

#[expect(
    clippy::disallowed_methods,
    reason = "these tests watch real processes, so their limits are in real time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Checks repeatedly until `look` returns a value.
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    until_within(LONG, what, look)
}

/// Checks repeatedly until `look` returns a value, at most for this time.
pub(crate) fn until_within<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = now() + limit;
    loop {
        if let Some(view) = look() {
            return view;
        }
        assert!(now() < end, "{what}: not within {limit:?}");
        thread::park_timeout(LOOK);
    }
}

/// Waits for time to pass: a pause between two calls, or while something stays broken. No caller may expect that
/// something has happened by its end.
pub(crate) fn pass(span: Duration) {
    let end = now() + span;
    loop {
        let left = end.saturating_duration_since(now());
        if left.is_zero() {
            return;
        }
        thread::park_timeout(left);
    }
}
