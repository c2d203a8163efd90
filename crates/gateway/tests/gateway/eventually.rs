//! Waiting for a condition that sends no notice. Several test binaries share it.

use std::time::Duration;

/// Longer than anything here may take on a machine that is busy with something else.
const LONG: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// Looks until there is something to see.
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
