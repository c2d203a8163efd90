//! Waits for a condition that sends no notice. Several test binaries share it.

use std::time::Duration;

/// Longer than any step here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// Calls `look` until it returns a value.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(seen) = look().await {
                return seen;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(LONG, looking).await.unwrap_or_else(|_| panic!("{what}: not within {LONG:?}"))
}
