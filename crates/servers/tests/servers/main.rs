//! Tests that each server starts, answers, breaks and recovers, and that nothing of it stays behind: neither after a
//! drop nor after its parent was killed.

mod left_behind;
mod postgres;
mod redis;
mod tap;

use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);
/// How long a test waits to see that no reply comes.
const SILENCE: Duration = Duration::from_millis(300);

#[expect(clippy::disallowed_methods, reason = "these tests watch real processes")]
fn now() -> Instant {
    Instant::now()
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = now() + LONG;
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(now() < end, "{what}: not within {LONG:?}");
        thread::park_timeout(Duration::from_millis(10));
    }
}
