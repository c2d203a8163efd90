//! The one clock and the one way to wait: for something that can be observed, with a limit that only a broken program
//! reaches. No test sleeps and hopes.

use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything here may take on a machine that is busy with something else.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// How often it is checked again where there is no notice.
const LOOK: Duration = Duration::from_millis(10);

#[expect(
    clippy::disallowed_methods,
    reason = "these tests watch real processes, so their limits are in real time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Looks until there is something to see.
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    until_within(LONG, what, look)
}

/// Looks until there is something to see, at most for this time.
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

/// Lets time pass that has to pass: a pause between two calls, or how long something stays broken. Nothing is
/// expected to have happened by its end.
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
